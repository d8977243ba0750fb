/*
 * h1_head.h - collects the head of an HTTP/1.1 message from the fragments in which a parser hands
 * it over.
 *
 *     h1_head_clear(&h);
 *     h1_head_target / _name / _value      fragments, in order; false: too long
 *     h1_head_done(&h);                    h.header[0..h.count) is valid until the next clear
 */
#ifndef H1_HEAD_H
#define H1_HEAD_H

#include "exchange.h"

struct h1_field;
struct h1_head {
    struct buf text; /* the target, then names and values */
    size_t target_len;
    struct h1_field *field;
    size_t count;
    size_t cap;
    struct http_header *header;
    size_t header_cap;
    bool in_value;
    bool line_ended; /* the value's line is over: more of it is a fold */
};

void h1_head_init(struct h1_head *h);
void h1_head_release(struct h1_head *h);
void h1_head_clear(struct h1_head *h);
MUST_CHECK bool h1_head_target(struct h1_head *h, struct slice part);
MUST_CHECK bool h1_head_name(struct h1_head *h, struct slice part);
/* line_end: the value stops here because its line does. */
MUST_CHECK bool h1_head_value(struct h1_head *h, struct slice part, bool line_end);
void h1_head_done(struct h1_head *h);
/* ptr NULL: no such field. */
struct slice h1_head_get(const struct h1_head *h, struct slice name);
/* RECF_ flags: OBS_FOLD, TE_AND_CL, LENGTH_CONFLICT, and LENGTH when a length alone tells the
 * framing. */
unsigned h1_head_flags(const struct h1_head *h);

#endif
