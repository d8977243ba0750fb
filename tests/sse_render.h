/*
 * sse_render.h - what the SSE decoder makes of a body, as text, one line an item; the body is fed
 * in pieces that are copied to blocks of their own and freed at once, so that a sanitizer sees
 * every slice that outlives its bytes.
 */
#ifndef SSE_RENDER_H
#define SSE_RENDER_H

#include <stdio.h>
#include <stdlib.h>

#include "sse.h"

static inline void render_slice(FILE *f, const char *name, struct slice s)
{
    fprintf(f, " %s=[", name);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < ' ' || s.ptr[i] > '~')
            fprintf(f, "<%02x>", s.ptr[i]);
        else
            fputc(s.ptr[i], f);
    }
    fputc(']', f);
}

static inline void render_item(FILE *f, const struct sse_item *it)
{
    static const char *const oddity[] = { "cr",  "mixed", "no-colon", "unknown", "retry", "nul",
                                          "bom", "utf8",  "crlf",     "multi",   "long" };

    fprintf(f, "%s", it->kind == SSE_COMMENT ? "comment" : "block");
    if (it->has_id)
        render_slice(f, "id", it->id);
    if (it->has_data)
        render_slice(f, "data", it->data);
    if (it->event.ptr)
        render_slice(f, "event", it->event);
    if (it->retry >= 0)
        fprintf(f, " retry=%lld", (long long)it->retry);
    fprintf(f, " %llu-%llu", (unsigned long long)it->begin, (unsigned long long)it->end);
    for (unsigned i = 0; i < ARRAY_LEN(oddity); i++) {
        if (it->oddities & 1U << i)
            fprintf(f, " %s", oddity[i]);
    }
    fputc('\n', f);
}

static inline void render_tail(FILE *f, struct sse *d)
{
    struct sse_tail tail;

    sse_tail(d, &tail);
    if (tail.bytes == 0)
        return;
    fprintf(f, "tail %llu+%zu%s", (unsigned long long)tail.begin, tail.bytes,
            tail.has_fields ? " fields" : "");
    if (tail.id.ptr)
        render_slice(f, tail.has_id ? "id" : "begun-id", tail.id);
    if (tail.has_data)
        render_slice(f, "data", tail.data);
    if (tail.event.ptr)
        render_slice(f, "event", tail.event);
    fputc('\n', f);
}

static inline void render_piece(FILE *f, struct sse *d, struct slice piece)
{
    uint8_t *copy = malloc(piece.len ? piece.len : 1);
    struct slice input = { copy, piece.len };
    struct sse_item item;

    if (!copy)
        abort();
    if (piece.len > 0)
        memcpy(copy, piece.ptr, piece.len);
    while (sse_next(d, &input, &item))
        render_item(f, &item);
    free(copy);
}

/* In pieces of `step` bytes after a first one of `first` bytes. Free the text. */
static inline char *render(struct slice body, size_t first, size_t step, size_t max_event)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct sse d;
    struct slice piece;

    if (!f)
        abort();
    sse_init(&d, max_event);
    for (size_t n = first; body.len > 0; n = step) {
        if (!slice_take(&body, n < body.len ? n : body.len, &piece))
            break;
        render_piece(f, &d, piece);
    }
    render_tail(f, &d);
    sse_release(&d);
    fclose(f);
    return text;
}

#endif
