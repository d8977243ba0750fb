/* log_of.h - for tests: read bytes in memory as a file of the dispatch log. */
#ifndef LOG_OF_H
#define LOG_OF_H

#include "dispatch_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A descriptor of a file in memory that holds the bytes. */
static inline int log_of_fd(struct slice text)
{
    int fd = memfd_create("log", 0);

    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n <= 0)
            abort();
        text = (struct slice){ text.ptr + n, text.len - (size_t)n };
    }
    return fd;
}

/* What dispatch_log_read says. */
static inline bool log_of(struct dispatch_log *log, struct slice text)
{
    struct input_error err;
    char path[64];
    int fd = log_of_fd(text);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct input *in = input_open(path, &err);
    bool ok = in && dispatch_log_read(log, in, (uint32_t)log->file_count, &err);
    input_free(in);
    close(fd);
    return ok;
}

#endif
