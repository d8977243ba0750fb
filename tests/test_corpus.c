/* test_corpus.c - the corpus command over a folder made here, and the file that a report goes to.
 */
#include "corpus.h"
#include "output.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLE SOURCE_DIR "/samples/silent-gap/capture.pcap"

struct scratch {
    char dir[32];
    char path[96];
    char *out;
    char *err;
};

static int setup(void **state)
{
    struct scratch *s = mem_alloc(sizeof(*s));

    snprintf(s->dir, sizeof(s->dir), "/tmp/test_corpus.XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    *state = s;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct scratch *s = *state;

    nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(s->out);
    free(s->err);
    free(s);
    return 0;
}

static const char *in_dir(struct scratch *s, const char *name)
{
    snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, name);
    return s->path;
}

static void write_file(struct scratch *s, const char *name, const void *bytes, size_t len)
{
    FILE *f = fopen(in_dir(s, name), "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

static char *read_file(struct scratch *s, const char *name)
{
    FILE *f = fopen(in_dir(s, name), "rb");
    char *text = mem_alloc((size_t)1 << 16);

    assert_non_null(f);
    text[fread(text, 1, ((size_t)1 << 16) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* A case of that name: the sample's capture and an expectation. */
static void new_case(struct scratch *s, const char *name, const char *expect)
{
    static uint8_t bytes[1 << 18];
    FILE *f = fopen(SAMPLE, "rb");
    size_t len;
    char file[64];

    assert_non_null(f);
    len = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    assert_int_equal(mkdir(in_dir(s, name), 0700), 0);
    snprintf(file, sizeof(file), "%s/capture.pcap", name);
    write_file(s, file, bytes, len);
    if (!expect)
        return;
    snprintf(file, sizeof(file), "%s/expect.json", name);
    write_file(s, file, expect, strlen(expect));
}

static enum exit_status run(struct scratch *s, struct options opt)
{
    struct file_arg dir = { s->dir, INPUT_UNKNOWN };
    size_t out_len;
    size_t err_len;
    enum exit_status status;

    free(s->out);
    free(s->err);
    FILE *out = open_memstream(&s->out, &out_len);
    FILE *err = open_memstream(&s->err, &err_len);
    assert_true(out && err);
    opt.command = COMMAND_CORPUS;
    opt.file = &dir;
    opt.file_count = 1;
    status = corpus_run(&opt, out, err);
    fclose(out);
    fclose(err);
    return status;
}

#define GAP "{\"require\": [{\"rule\": \"replay-gap\"}], \"allow\": [\"*\"], \"exit\": 1}"

static void test_same_and_different(void **state)
{
    struct scratch *s = *state;
    struct options text = { .format = FORMAT_TEXT };

    new_case(s, "a-gap", GAP);
    assert_int_equal(run(s, text), EXIT_CLEAN);
    assert_string_equal(s->out, "ok    a-gap\n1 passed, 0 failed\n");

    new_case(s, "b-clean", "{\"require\": [], \"exit\": 0}");
    new_case(s, "c-broken", "{\"require\": [");
    new_case(s, "d-option", "{\"require\": [], \"options\": [\"--nonsense\"]}");
    new_case(s, "e-none", NULL); /* no case */
    assert_int_equal(run(s, text), EXIT_FINDINGS);
    assert_non_null(strstr(s->out, "ok    a-gap\nDIFF  b-clean\n"));
    assert_non_null(strstr(s->out, "        not expected: rule=\"replay-gap\""));
    assert_non_null(strstr(s->out, "        exit status 0 expected, got 1\n"));
    assert_non_null(strstr(s->out, "DIFF  c-broken\n        expect.json: line 1: "));
    assert_non_null(
        strstr(s->out, "DIFF  d-option\n        exit status 2: nothing was analysed\n"));
    assert_non_null(strstr(s->out, "--nonsense is not an option"));
    assert_non_null(strstr(s->out, "\n1 passed, 3 failed\n"));
}

static void test_stray_file(void **state)
{
    struct scratch *s = *state;

    new_case(s, "a", GAP);
    write_file(s, "a/notes.txt", "x", 1);
    assert_int_equal(run(s, (struct options){ .format = FORMAT_TEXT }), EXIT_FINDINGS);
    assert_non_null(strstr(s->out, "no input pattern matches: notes.txt"));
}

static void test_accept(void **state)
{
    struct scratch *s = *state;
    struct options accept = { .format = FORMAT_TEXT, .accept = true };
    char *written;

    new_case(s, "a",
             "{\"title\": \"kept\", \"require\": [], \"forbid\": [\"replay-gap\", \"x-*\"]}");
    new_case(s, "b", NULL);
    assert_int_equal(run(s, accept), EXIT_FINDINGS);
    assert_non_null(strstr(s->out, "forbidden: ")); /* the difference is shown first */
    written = read_file(s, "a/expect.json");
    assert_non_null(strstr(written, "\"title\": \"kept\""));
    assert_non_null(strstr(written, "x-*"));
    free(written);
    assert_int_equal(run(s, (struct options){ .format = FORMAT_TEXT }), EXIT_CLEAN);
    assert_string_equal(s->out, "ok    a\nok    b\n2 passed, 0 failed\n");
}

static void test_junit(void **state)
{
    struct scratch *s = *state;

    new_case(s, "a<b>&\"c\"", GAP);
    new_case(s, "d", "{\"require\": [], \"exit\": 0}");
    assert_int_equal(run(s, (struct options){ .format = FORMAT_JUNIT }), EXIT_FINDINGS);
    assert_int_equal(strncmp(s->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", 39), 0);
    assert_non_null(strstr(s->out, "tests=\"2\" failures=\"1\""));
    assert_non_null(strstr(s->out, "name=\"a&lt;b&gt;&amp;&quot;c&quot;\"/>"));
    assert_non_null(strstr(s->out, "rule=&quot;replay-gap&quot;"));
    assert_non_null(strstr(s->out, "</testsuites>\n"));
}

static void test_nothing(void **state)
{
    struct scratch *s = *state;

    assert_int_equal(run(s, (struct options){ .format = FORMAT_TEXT }), EXIT_USAGE);
    assert_non_null(strstr(s->err, "no case found"));
    assert_int_equal(rmdir(s->dir), 0);
    assert_int_equal(run(s, (struct options){ .format = FORMAT_TEXT }), EXIT_USAGE);
    assert_non_null(strstr(s->err, "no such folder"));
}

/* ---- the file of a report ---- */

static size_t files_in(const struct scratch *s)
{
    DIR *d = opendir(s->dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static void test_output(void **state)
{
    struct scratch *s = *state;
    struct output *out = output_open(in_dir(s, "report"), stderr);
    struct stat st;
    char *text;

    assert_non_null(out);
    assert_int_equal(access(s->path, F_OK), -1); /* not before it is whole */
    fputs("all of it", out->to);
    assert_true(output_close(out, stderr));
    assert_int_equal(stat(s->path, &st), 0);
    text = read_file(s, "report");
    assert_string_equal(text, "all of it");
    free(text);

    out = output_open(in_dir(s, "report"), stderr);
    fputs("never mind", out->to);
    output_drop(out);
    text = read_file(s, "report");
    assert_string_equal(text, "all of it");
    free(text);
    assert_int_equal(files_in(s), 1);
}

static void test_output_fails(void **state)
{
    struct scratch *s = *state;
    size_t len;
    FILE *err = open_memstream(&s->err, &len);

    assert_null(output_open(in_dir(s, "no/such/folder/report"), err));
    fclose(err);
    assert_non_null(strstr(s->err, "the report cannot be written"));
}

/* "-o capture.pcap log.ndjson" is a slip that must not cost the capture. */
static void test_output_is_a_recording(void **state)
{
    static const uint8_t pcap[24] = { 0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, [17] = 4, [20] = 1 };
    static const char log[] = "{\"ts\":\"2026-01-01T00:00:00Z\",\"session\":\"s\","
                              "\"event_id\":\"1\",\"state\":\"received\"}\n";
    struct scratch *s = *state;
    size_t len;
    FILE *err = open_memstream(&s->err, &len);

    write_file(s, "recording", (const char *)pcap, sizeof(pcap));
    assert_null(output_open(in_dir(s, "recording"), err));
    write_file(s, "recording", log, sizeof(log) - 1);
    assert_null(output_open(in_dir(s, "recording"), err));
    fclose(err);
    assert_non_null(strstr(s->err, "this is a recording"));
    assert_int_equal(files_in(s), 1);
}

static void test_output_interrupted(void **state)
{
    struct scratch *s = *state;
    const char *path = in_dir(s, "report");
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        if (output_open(path, stderr))
            raise(SIGTERM);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(files_in(s), 0);
}

/* What is no file stays what it is, and a folder is refused before any work is done. */
static void test_output_elsewhere(void **state)
{
    struct scratch *s = *state;
    struct output *out;
    struct stat st;
    char text[8] = "";
    size_t len;
    FILE *err = open_memstream(&s->err, &len);

    assert_null(output_open(s->dir, err));
    assert_null(output_open("", err));
    fclose(err);

    assert_int_equal(mkfifo(in_dir(s, "pipe"), 0600), 0);
    int reader = open(s->path, O_RDONLY | O_NONBLOCK);
    out = output_open(s->path, stderr);
    assert_non_null(out);
    fputs("all", out->to);
    assert_true(output_close(out, stderr));
    assert_int_equal(read(reader, text, sizeof(text) - 1), 3);
    close(reader);
    assert_string_equal(text, "all");
    assert_int_equal(lstat(s->path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(files_in(s), 1);
}

static void test_output_through_link(void **state)
{
    struct scratch *s = *state;
    struct output *out;
    struct stat st;
    char *text;

    write_file(s, "real", "old", 3);
    assert_int_equal(symlink("real", in_dir(s, "link")), 0);
    out = output_open(s->path, stderr);
    assert_non_null(out);
    fputs("new", out->to);
    assert_true(output_close(out, stderr));
    assert_int_equal(lstat(in_dir(s, "link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    text = read_file(s, "real");
    assert_string_equal(text, "new");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_and_different, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stray_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_junit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_is_a_recording, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_interrupted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_output_through_link, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
