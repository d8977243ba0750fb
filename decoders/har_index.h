/*
 * har_index.h - a HAR's entries in the order of time, 32 bytes each, over a copy of its bytes in a
 * file without a name (the input may be compressed, or a pipe).
 *
 *     if (!har_index_fill(&ix, in, input_index, err))     release it all the same
 *     e = har_index_read(&ix, ix.item[i].offset, ix.item[i].len, err)
 *     har_index_release(&ix)
 */
#ifndef HAR_INDEX_H
#define HAR_INDEX_H

#include "har.h"
#include "har_entry.h"

#include <stdio.h>

struct har_item {
    int64_t start;
    uint64_t offset; /* in the copy */
    uint32_t len;
    uint32_t number;   /* in log.entries[] */
    uint64_t key : 40; /* 0: not compared */
    uint64_t body : 23;
    uint64_t duplicate : 1; /* of another entry, which has more */
};
_Static_assert(sizeof(struct har_item) == 32, "memory per entry");

/* Damaged entries kept for telling one by one. */
#define HAR_DAMAGE_TOLD 16
struct har_damage {
    uint32_t number;
    struct har_entry_error why;
};

struct har_index {
    struct har_context ctx;
    char producer[96];
    const char *limits; /* what it cannot show */
    enum har_status status;
    char message[256];

    FILE *spool;
    int fd; /* of the copy */
    uint64_t size;
    struct har_item *item;
    size_t count;
    size_t cap;
    uint32_t numbers; /* elements seen */
    size_t untimed;   /* entries without a start time */
    struct har_damage damage[HAR_DAMAGE_TOLD];
    size_t damaged; /* all of them */
    bool swallowed; /* the last entry ran on over others */
};

/* False: there is no room for the copy. The index stays in place until it is released. */
MUST_CHECK bool har_index_fill(struct har_index *ix, struct input *in, uint32_t input_index,
                               struct input_error *reterr);
void har_index_release(struct har_index *ix);
struct har_entry *har_index_read(const struct har_index *ix, uint64_t offset, uint64_t len,
                                 struct har_entry_error *reterr);

#endif
