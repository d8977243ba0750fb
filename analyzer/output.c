/* output.c - see output.h. */
#include "output.h"

#include "input.h"
#include "plain.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(FILE *err, const char *path, const char *what, int number)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char text[100];

    fprintf(err, "sseaudit: %s: %s: %s\n", plain_text(a, slice_str(path), PLAIN_WHOLE), what,
            strerror_r(number, text, sizeof(text)));
}

/* The temporary file of the one report that is being written, for a signal to take away. */
static const char *volatile unfinished;

static void on_interrupt(int number)
{
    if (unfinished)
        unlink(unfinished);
    raise(number); /* as the handler is gone by now (SA_RESETHAND), this ends the program */
}

static void take_away_when_interrupted(const char *temporary)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction act = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
    struct sigaction old;

    unfinished = temporary;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        /* What is ignored (nohup) stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &act, NULL);
    }
}

static FILE *open_temporary(struct output *out)
{
    size_t len = strlen(out->place) + sizeof(".XXXXXX");
    mode_t mask = umask(077);
    FILE *to = NULL;
    int fd;

    out->temporary = mem_alloc(len);
    snprintf(out->temporary, len, "%s.XXXXXX", out->place);
    fd = mkstemp(out->temporary);
    umask(mask);
    if (fd >= 0 && (fchmod(fd, 0666 & ~mask) != 0 || !(to = fdopen(fd, "w")))) {
        close(fd);
        unlink(out->temporary);
    }
    if (to)
        take_away_when_interrupted(out->temporary);
    return to;
}

/* A device or a pipe is written to; a file renamed into its place would replace it. */
static FILE *open_file(struct output *out)
{
    struct stat st;

    if (stat(out->path, &st) == 0 && !S_ISREG(st.st_mode))
        return fopen(out->path, "we"); /* refuses a folder */
    if (out->path[0] == '\0') {
        errno = ENOENT;
        return NULL;
    }
    out->place = realpath(out->path, NULL); /* a symbolic link stays one */
    if (!out->place)
        out->place = strdup(out->path);
    return out->place ? open_temporary(out) : NULL;
}

static void output_free(struct output *out)
{
    if (unfinished == out->temporary)
        unfinished = NULL;
    free(out->place);
    free(out->temporary);
    free(out);
}

static bool is_recording(const char *path)
{
    struct input_error ignored;
    struct stat st;
    struct input *in;
    enum input_kind kind;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    in = input_open(path, &ignored);
    if (!in)
        return false;
    kind = input_recognise(in);
    input_free(in);
    return kind != INPUT_UNKNOWN && kind != INPUT_EMPTY;
}

struct output *output_open(const char *path, FILE *err)
{
    struct output *out;

    if (path && strcmp(path, "-") != 0 && is_recording(path)) {
        say(err, path, "this is a recording, and the report would replace it; name another file",
            EEXIST);
        return NULL;
    }
    out = mem_alloc(sizeof(*out));
    out->path = path && strcmp(path, "-") != 0 ? path : NULL;
    out->to = out->path ? open_file(out) : stdout;
    if (out->to)
        return out;
    say(err, path, "the report cannot be written", errno);
    output_free(out);
    return NULL;
}

/* A reader that has seen enough closes the pipe: that is no failure. */
static int flush_all(FILE *to)
{
    if (fflush(to) == 0 && !ferror(to))
        return 0;
    return errno == EPIPE ? 0 : errno ? errno : EIO;
}

bool output_close(struct output *out, FILE *err)
{
    int failed = flush_all(out->to);

    if (out->path) {
        if (failed == 0 && fsync(fileno(out->to)) != 0 && errno != EINVAL && errno != EROFS)
            failed = errno;
        if (fclose(out->to) != 0 && failed == 0)
            failed = errno;
    }
    if (out->temporary) {
        if (failed == 0 && rename(out->temporary, out->place) != 0)
            failed = errno;
        if (failed != 0)
            unlink(out->temporary);
    }
    if (failed != 0)
        say(err, out->path ? out->path : "standard output", "the report cannot be written", failed);
    output_free(out);
    return failed == 0;
}

void output_drop(struct output *out)
{
    if (out->path)
        fclose(out->to);
    if (out->temporary)
        unlink(out->temporary);
    output_free(out);
}
