/* h1_head.c - see h1_head.h. Field lines: RFC 9112 5, lengths: 6.3. */
#include "h1_head.h"

#include <stdlib.h>

#define HEAD_MAX ((size_t)128 << 10) /* http-parser stops at 80 KiB by itself */

/* Offsets into the text, which moves as it grows. */
struct h1_field {
    size_t name;
    size_t name_len;
    size_t value;
    size_t value_len;
    bool folded;
};

void h1_head_init(struct h1_head *h)
{
    *h = (struct h1_head){ 0 };
    buf_init(&h->text, HEAD_MAX);
}

void h1_head_release(struct h1_head *h)
{
    buf_release(&h->text);
    free(h->field);
    free(h->header);
}

void h1_head_clear(struct h1_head *h)
{
    h->text.len = 0;
    h->target_len = 0;
    h->count = 0;
    h->in_value = false;
    h->line_ended = false;
}

bool h1_head_target(struct h1_head *h, struct slice part)
{
    h->target_len += part.len;
    return buf_add(&h->text, part);
}

bool h1_head_name(struct h1_head *h, struct slice part)
{
    if (h->in_value || h->count == 0) {
        GROW(h->field, h->count, h->cap);
        h->field[h->count++] = (struct h1_field){ .name = h->text.len };
        h->in_value = false;
    }
    h->field[h->count - 1].name_len += part.len;
    return buf_add(&h->text, part);
}

bool h1_head_value(struct h1_head *h, struct slice part, bool line_end)
{
    if (h->count == 0)
        return true;
    struct h1_field *f = &h->field[h->count - 1];
    if (!h->in_value) {
        f->value = h->text.len;
        h->in_value = true;
        h->line_ended = false;
    }
    f->folded |= h->line_ended && part.len > 0; /* the blanks of the fold are in the bytes */
    f->value_len += part.len;
    h->line_ended = line_end;
    return buf_add(&h->text, part);
}

static struct slice text_at(const struct h1_head *h, size_t at, size_t len)
{
    return len == 0 ? SLICE_LIT("") : (struct slice){ h->text.ptr + at, len };
}

void h1_head_done(struct h1_head *h)
{
    if (h->header_cap < h->count) {
        h->header_cap = h->cap;
        h->header = mem_grow(h->header, h->header_cap * sizeof(*h->header));
    }
    for (size_t i = 0; i < h->count; i++) {
        const struct h1_field *f = &h->field[i];
        h->header[i] = (struct http_header){
            .name = text_at(h, f->name, f->name_len),
            .value = slice_trim(text_at(h, f->value, f->value_len)),
            .folded = f->folded,
        };
    }
}

struct slice h1_head_get(const struct h1_head *h, struct slice name)
{
    for (size_t i = 0; i < h->count; i++) {
        if (slice_eq_nocase(h->header[i].name, name))
            return h->header[i].value;
    }
    return (struct slice){ 0 };
}

unsigned h1_head_flags(const struct h1_head *h)
{
    const struct http_header *length = NULL;
    unsigned flags = 0;
    bool coded = false;

    for (size_t i = 0; i < h->count; i++) {
        const struct http_header *f = &h->header[i];
        if (f->folded)
            flags |= RECF_OBS_FOLD;
        if (slice_eq_nocase(f->name, SLICE_LIT("Transfer-Encoding")))
            coded = true;
        if (!slice_eq_nocase(f->name, SLICE_LIT("Content-Length")))
            continue;
        if (length && !slice_eq(length->value, f->value))
            flags |= RECF_LENGTH_CONFLICT;
        length = f;
    }
    if (!length)
        return flags;
    return flags | (coded ? RECF_TE_AND_CL : RECF_LENGTH);
}
