/* table.c - see table.h. */
#include "table.h"

#include <stdlib.h>

void table_release(struct table *t)
{
    free(t->key);
    free(t->value);
    *t = (struct table){ 0 };
}

static size_t slot_of(const struct table *t, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->cap - 1);

    while (t->key[i] != 0 && t->key[i] != key)
        i = (i + 1) & (t->cap - 1);
    return i;
}

uint64_t *table_get(const struct table *t, uint64_t key)
{
    if (t->cap == 0)
        return NULL;
    key += key == 0;
    size_t i = slot_of(t, key);
    return t->key[i] == key ? &t->value[i] : NULL;
}

static void table_enlarge(struct table *t)
{
    struct table old = *t;

    t->cap = old.cap ? old.cap * 2 : 16;
    t->key = mem_alloc(t->cap * sizeof(*t->key));
    t->value = mem_alloc(t->cap * sizeof(*t->value));
    for (size_t i = 0; i < old.cap; i++) {
        if (old.key[i] == 0)
            continue;
        size_t j = slot_of(t, old.key[i]);
        t->key[j] = old.key[i];
        t->value[j] = old.value[i];
    }
    free(old.key);
    free(old.value);
}

uint64_t *table_put(struct table *t, uint64_t key)
{
    key += key == 0;
    if (t->count + t->count / 3 >= t->cap)
        table_enlarge(t);
    size_t i = slot_of(t, key);
    if (t->key[i] == 0) {
        t->key[i] = key;
        t->count++;
    }
    return &t->value[i];
}
