/* pool.c - see pool.h. */
#include "pool.h"

#include <stdlib.h>

#define SLAB_CELLS 64

struct link {
    struct link *next;
};

struct slab {
    struct slab *next;
    max_align_t cells[];
};

static size_t cell_bytes(const struct pool *p)
{
    return (p->cell + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
}

static bool is_celled(const struct pool *p, size_t n)
{
#ifdef ARENA_ONE_BLOCK_EACH
    (void)p;
    (void)n;
    return false;
#else
    return n <= p->cell;
#endif
}

static void slab_add(struct pool *p)
{
    struct slab *s = mem_grow(NULL, sizeof(*s) + SLAB_CELLS * cell_bytes(p));

    s->next = p->slabs;
    p->slabs = s;
    p->fresh = (uint8_t *)s->cells;
    p->fresh_count = SLAB_CELLS;
}

void *pool_take(struct pool *p, size_t n)
{
    struct link *l = p->free;
    uint8_t *cell;

    if (!is_celled(p, n))
        return mem_grow(NULL, n);
    if (l) {
        p->free = l->next;
        return l;
    }
    if (p->fresh_count == 0)
        slab_add(p);
    cell = p->fresh;
    p->fresh += cell_bytes(p);
    p->fresh_count--;
    return cell;
}

void pool_give(struct pool *p, void *object, size_t n)
{
    struct link *l = object;

    if (!is_celled(p, n)) {
        free(object);
        return;
    }
    mem_prefetch(object, p->cell); /* the next one taken will be here */
    l->next = p->free;
    p->free = l;
}

void pool_release(struct pool *p)
{
    struct slab *s = p->slabs;

    while (s) {
        struct slab *next = s->next;
        free(s);
        s = next;
    }
    *p = (struct pool){ .cell = p->cell };
}
