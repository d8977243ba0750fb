/*
 * hpack.h - header blocks of HTTP/2 (RFC 7541), decoded by nghttp2, for an observer who may have
 * missed some of them.
 *
 * Entries of the dynamic table count from the newest. So a table that begins in the middle is right
 * for all that was added since; what refers to older entries is left out, never misread.
 */
#ifndef HPACK_H
#define HPACK_H

#include "exchange.h"

struct hpack_fields {
    struct http_header *item; /* in the arena */
    size_t count;
    size_t cap;
    size_t bytes;
    bool incomplete; /* some fields could not be read */
    bool cut;        /* the list was too long: the rest was left out */
};

struct hpack;
struct hpack *hpack_new(void);
void hpack_free(struct hpack *h);
/* A header block was missed. */
void hpack_lose(struct hpack *h);
/* Reads one whole block; the fields live in a. */
void hpack_read(struct hpack *h, struct slice block, struct arena *a, struct hpack_fields *ret);

#endif
