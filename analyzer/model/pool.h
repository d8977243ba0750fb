/*
 * pool.h - memory for objects of about one size that come and go all the time (events).
 *
 *     struct pool p = { .cell = 700 };
 *     e = pool_take(&p, n);         not zeroed, aligned for anything; never NULL
 *     pool_give(&p, e, n);          with the n that it was taken with
 *     pool_release(&p);             once all is given back
 *
 * What is larger than a cell comes from the heap. Sanitizer builds make every object a block of its
 * own.
 */
#ifndef POOL_H
#define POOL_H

#include "base.h"

struct pool {
    size_t cell;    /* bytes of an object; set before first use */
    void *free;     /* private: cells given back, one leads to the next */
    void *slabs;    /* private */
    uint8_t *fresh; /* private: cells of the newest slab that were never taken */
    size_t fresh_count;
};

void *pool_take(struct pool *p, size_t n);
void pool_give(struct pool *p, void *object, size_t n);
void pool_release(struct pool *p);

#endif
