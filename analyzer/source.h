/*
 * source.h - one capture or HAR as a source of facts in the order of time, and the merge of many.
 *
 *     source_peek(s, ...)      its first time, when it is opened only later
 *     source_open(s, ...)      to its first fact
 *     source_next(s)           the next fact; false: it is over, and closed
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "capture.h"
#include "har.h"
#include "pipeline.h"

struct tally {
    uint64_t count;
    struct place first;
};

struct source {
    uint32_t index; /* of the input */
    struct audit_input *about;
    struct input *in; /* NULL: opened when its time comes */
    bool no_digest;   /* no report will tell its SHA-256 */
    bool no_thread;   /* nothing is read ahead */
    struct capture *cap;
    struct har *har;
    struct frame frame; /* captures: the next packet */
    int64_t key;        /* time of the next fact, never going back */
    int64_t last;       /* time of the last packet, as written */
    size_t secrets;     /* bytes of capture_secrets that were taken */
    struct tally cut;   /* packets cut by the snap length */
    struct tally back;  /* packets whose time is before that of the last one */
    struct tally quic;
    struct tally other;
    struct tally broken;
    struct tally linktype;
    int unknown_linktype; /* the first one */
    char message[320];    /* after the end: what was wrong; empty: nothing */
};

/* Both leave the source closed, and reterr set, when they fail. */
bool source_peek(struct source *s, struct input_error *reterr);
bool source_open(struct source *s, struct exchanges *all, struct input_error *reterr);
bool source_next(struct source *s);
/* Reads what is left for the digest, and closes. */
void source_close(struct source *s);

/* The sources by their next fact: time, then order of the command line. */
struct source_heap {
    struct source **item;
    size_t count;
    size_t cap;
};
void source_heap_add(struct source_heap *h, struct source *s);
/* After the first one moved on: puts it where it belongs, or removes it. */
void source_heap_settle(struct source_heap *h);
void source_heap_remove(struct source_heap *h);
/* The second one in the order; NULL: there is none. */
const struct source *source_heap_second(const struct source_heap *h);
bool source_before(const struct source *a, const struct source *b);
void source_heap_release(struct source_heap *h);

#endif
