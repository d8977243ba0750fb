/*
 * h1_sync.h - finds the framing of an HTTP/1.1 byte stream again behind a hole, or when the
 * capture joins in the middle: the start of a message, or a chunk header that the bytes prove.
 *
 *     h1_sync_init(&s);
 *     if (!h1_sync_add(&s, piece))             false: full, nothing was found in all that
 *         ...
 *     found = h1_sync_scan(&s, &offset);       H1_FOUND_NONE: add more
 *     while (h1_sync_take(&s, &piece))         the held bytes, in the pieces they came in
 *         use(piece);
 *     h1_sync_clear(&s);
 */
#ifndef H1_SYNC_H
#define H1_SYNC_H

#include "layer.h"

/* Bytes held while nothing is found. */
#define H1_SYNC_MAX ((size_t)256 << 10)

enum h1_match {
    H1_MATCH_NO,
    H1_MATCH_MAYBE, /* so far; more bytes decide */
    H1_MATCH_YES,
};
/* Is this the start of a request (DIR_CLIENT), or of a response? */
enum h1_match h1_match_start(enum dir dir, struct slice s);

/* Is this a chunk that ends as its size line says, with a size line behind it or nothing? */
bool h1_match_chunks(struct slice s);

/* Bytes of a start that decide, at most: what a caller has to keep of a MAYBE. */
#define H1_START_MAX 16

struct h1_held {
    struct piece piece; /* data.ptr is not valid */
};

/* A chunk header that is true if its chunk ends as it says. */
struct h1_claim {
    size_t at;  /* of the size line */
    size_t end; /* of the chunk's data */
};

struct h1_sync {
    struct buf bytes;
    struct h1_held *held;
    size_t count;
    size_t cap;
    size_t scan; /* next offset that may start something */
    struct h1_claim claim[16];
    size_t claims;
    size_t next;   /* h1_sync_take: piece, and offset of its bytes */
    size_t offset; /* ... */
    bool full;     /* older bytes were dropped: offset 0 is no edge */
};

enum h1_found {
    H1_FOUND_NONE,
    H1_FOUND_HEAD,  /* a response starts at the offset */
    H1_FOUND_CHUNK, /* a chunk size line starts there */
};

void h1_sync_init(struct h1_sync *s);
void h1_sync_release(struct h1_sync *s);
/* Forget the bytes; what is added next stands directly behind a hole. */
void h1_sync_clear(struct h1_sync *s);
MUST_CHECK bool h1_sync_add(struct h1_sync *s, struct piece piece);
/* Drop all, to go on searching in what follows. */
void h1_sync_overflow(struct h1_sync *s);
enum h1_found h1_sync_scan(struct h1_sync *s, size_t *ret_at);
/* Nothing more will come: the first claim that was not refuted. */
MUST_CHECK bool h1_sync_guess(const struct h1_sync *s, size_t *ret_at);
/* Do the bytes read as an event stream without chunks? */
bool h1_sync_is_text(const struct h1_sync *s);
/* The next held piece; its bytes are valid until the next call that adds or clears. */
MUST_CHECK bool h1_sync_take(struct h1_sync *s, struct piece *ret);

#endif
