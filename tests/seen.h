/* seen.h - lines written down one after the other, to be compared in the end. */
#ifndef SEEN_H
#define SEEN_H

#include <stdarg.h>
#include <stdio.h>

#include "base.h"

struct seen {
    char text[2048];
    size_t len;
};

static inline void PRINTF_LIKE(2, 3) add(struct seen *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(s->text + s->len, sizeof(s->text) - s->len, fmt, ap);
    va_end(ap);
    assert_in_range(n, 0, sizeof(s->text) - s->len - 1);
    s->len += (size_t)n;
}

#endif
