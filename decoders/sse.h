/*
 * sse.h - incremental decoder for text/event-stream bodies (WHATWG HTML 9.2.6).
 *
 * Pull items out of the bytes at hand; what is unfinished is kept. Chunk boundaries never change
 * the result. When a block lies whole in the input nothing is copied.
 *
 *     sse_init(&d, SSE_MAX_EVENT);
 *     while (sse_next(&d, &input, &item))   <- consumes from input; false when it is used up
 *         use(&item);                       <- item's slices stay valid until the next sse_ call
 *                                              and while the input's bytes do
 *     sse_tail(&d, &tail);                  <- end of body: the unterminated rest, no event
 *     sse_release(&d);
 *
 * A CR that ends a block ends it at once, whatever follows: an LF that belongs to it is neither
 * part of the block nor of the next one, and how that last line was ended is told with the next
 * item.
 */
#ifndef SSE_H
#define SSE_H

#include "base.h"

#define SSE_MAX_EVENT ((size_t)16 << 20)

enum sse_kind {
    SSE_BLOCK,   /* a terminated block with at least one field line (known or not) */
    SSE_COMMENT, /* one comment line outside a block: before any field line */
};

/* What a reader with another dialect may stumble over (FIELD-NOTES 1.5). */
enum sse_oddity {
    SSE_CR_ENDS = 1 << 0,       /* a line ended by a lone CR */
    SSE_MIXED_ENDS = 1 << 1,    /* more than one kind of line end in the body so far */
    SSE_NO_COLON = 1 << 2,      /* a field line without a colon */
    SSE_UNKNOWN_FIELD = 1 << 3, /* also the wrong case: ID: */
    SSE_BAD_RETRY = 1 << 4,     /* retry not all digits, empty, or above 2^31 ms */
    SSE_ID_NUL = 1 << 5,        /* id with U+0000: ignored, as the standard says */
    SSE_BOM = 1 << 6,           /* a second BOM, or one that is not first */
    SSE_BAD_UTF8 = 1 << 7,  /* invalid bytes in id (or data, says bodies.c); the slices keep them */
    SSE_CRLF_ENDS = 1 << 8, /* CRLF line ends: no fault, some clients trip */
    SSE_MULTI_DATA = 1 << 9, /* several data lines: no fault, some clients trip */
    SSE_TOO_LONG = 1 << 10,  /* data, id or event passed the ceiling and was cut */
};

struct sse_item {
    enum sse_kind kind;
    bool has_id;        /* a valid id field was in the block (its value may be empty) */
    struct slice id;    /* its value; the last one counts */
    bool has_data;      /* at least one data field: the event is dispatched (WHATWG) */
    struct slice data;  /* lines joined by LF, the last LF dropped */
    struct slice event; /* value of the event field, empty when absent */
    int64_t retry;      /* ms of the last valid retry field in the block, -1: none */
    uint64_t begin;     /* offset in the body of the block's first byte */
    uint64_t end;       /* just after its terminating blank line (comment: its line) */
    unsigned oddities;
};

/* The unterminated rest of a body: what stood after the last blank line. */
struct sse_tail {
    size_t bytes;    /* 0: the body ended between blocks */
    bool has_fields; /* anything but comments in it */
    bool has_id;     /* an id line that was ended by a line end */
    struct slice id; /* the value so far, when an id line was begun (ended or not) */
    bool has_data;
    struct slice data; /* complete data lines and the begun one, joined by LF */
    struct slice event;
    uint64_t begin;
};

struct sse {
    uint64_t offset; /* of the next input byte, in the body */
    /* private from here on */
    struct sse_item item; /* the block so far: slices into the input, or into the buffers below */
    struct buf line;      /* a line that the input cut */
    struct buf id;        /* values of a block that the input cut, or that were joined */
    struct buf event;
    struct buf data;
    uint64_t line_begin;
    unsigned ends; /* kinds of line end seen in the body */
    bool partial;  /* `line` holds the begin of a line */
    bool fields;   /* a field line of this block was seen */
    bool data_cut; /* its data has reached the ceiling */
    bool after_cr; /* the last byte was a CR: one LF belongs to it */
    bool lost;     /* after a gap: skip to after the next blank line */
    bool resync;   /* ... and a whole line begins here */
};

void sse_init(struct sse *d, size_t max_event);
void sse_release(struct sse *d);
MUST_CHECK bool sse_next(struct sse *d, struct slice *input, struct sse_item *ret);
/* True while a block has begun and not ended. */
static inline bool sse_in_block(const struct sse *d)
{
    return !d->lost && (d->fields || d->partial);
}
/* Bytes are missing here: the unfinished block is forgotten, and so is everything up to the next
 * line that is blank for certain (the first line end after the gap may end any line). len 0:
 * unknown. */
void sse_gap(struct sse *d, uint64_t len);
/* Slices valid until the next sse_ call. */
void sse_tail(struct sse *d, struct sse_tail *ret);

#endif
