/*
 * measure.c - runs a command several times: measure TIMES COMMAND [ARG...]
 *
 * Prints "WALL CPU RSS": the best wall-clock and processor seconds, and the largest resident set in
 * KB. The output of the command is thrown away. Exit status 1 when the command could not be run or
 * ended by a signal.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOT_RUN 127

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void become(char **argv)
{
    int null = open("/dev/null", O_WRONLY);

    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    execvp(argv[0], argv);
    _exit(NOT_RUN);
}

/* False: it did not run to its end. */
static int run(char **argv, double *wall, struct rusage *use)
{
    double begin = now();
    pid_t pid = fork();
    int status;

    if (pid == 0)
        become(argv);
    if (pid < 0 || wait4(pid, &status, 0, use) != pid)
        return 0;
    *wall = now() - begin;
    return WIFEXITED(status) && WEXITSTATUS(status) != NOT_RUN;
}

int main(int argc, char **argv)
{
    long times = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    double best_wall = 1e9;
    double best_cpu = 1e9;
    long rss = 0;

    if (times < 1) {
        fputs("usage: measure TIMES COMMAND [ARG...]\n", stderr);
        return 2;
    }
    for (long i = 0; i < times; i++) {
        struct rusage use;
        double wall;
        if (!run(argv + 2, &wall, &use))
            return 1;
        double cpu = seconds(use.ru_utime) + seconds(use.ru_stime);
        best_wall = wall < best_wall ? wall : best_wall;
        best_cpu = cpu < best_cpu ? cpu : best_cpu;
        rss = use.ru_maxrss > rss ? use.ru_maxrss : rss;
    }
    printf("%.4f %.4f %ld\n", best_wall, best_cpu, rss);
    return 0;
}
