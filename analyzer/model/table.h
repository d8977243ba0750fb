/*
 * table.h - a look-up table from 64-bit hashes to pointers or numbers. The caller compares what it
 * finds with what it looked for, and on a mismatch looks again with table_again(key).
 */
#ifndef TABLE_H
#define TABLE_H

#include "base.h"

struct table {
    uint64_t *key; /* 0: free */
    uint64_t *value;
    size_t count;
    size_t cap; /* 0 or a power of two */
};

void table_release(struct table *t);
/* The value's slot, or NULL. Valid until the next table_put. */
uint64_t *table_get(const struct table *t, uint64_t key);
/* The slot of key, made with value 0 when it is new. */
uint64_t *table_put(struct table *t, uint64_t key);
/* The next key to try when another thing stands under this one. */
static inline uint64_t table_again(uint64_t key)
{
    return hash_mix(key, 1);
}

#endif
