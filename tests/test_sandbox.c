/* test_sandbox.c - what the program cannot do any more once it reads input. */
#include "sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static void *a_thread(void *arg)
{
    *(int *)arg = 1;
    return NULL;
}

static void test_given_up(void **state)
{
    char *const argv[] = { (char[]){ "true" }, NULL };
    int ran = 0;
    pthread_t t;

    (void)state;
#ifdef ARENA_ONE_BLOCK_EACH
    print_message("skipped: sanitizer builds have no sandbox\n");
    skip();
#endif
    sandbox_enter();
    assert_int_equal(socket(AF_INET, SOCK_STREAM, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(execv("/bin/true", argv), -1);
    assert_int_equal(errno, EPERM);
    /* what it needs still works: files and threads */
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(pthread_create(&t, NULL, a_thread, &ran), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(ran, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_given_up) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
