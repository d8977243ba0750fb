/*
 * ids.c - which event of a session has an id.
 *
 * Most ids count: the next one is the last one plus one, and so is the index of its event. Such a
 * run is three numbers, and an id above all with its prefix is new: both without a look at the
 * table. A run that has ended goes into the table. A million ids do not fit the caches there, but
 * the hashes of ids that count differ like their numbers, so that eight in a row stand side by side
 * in one line of the cache; the lines themselves are in no order.
 */
#include "model_impl.h"

#include <stdlib.h>

#define DIGITS_MAX 18

/* Eight numbers in a row differ in the last three bits alone. */
#define PLACE_BITS 3
#define PLACE(h)   ((h)&7)
#define LINE(h)    ((h) >> PLACE_BITS)

/* Where the number begins that the id ends with, without leading zeros; id.len: it ends with none.
 */
static size_t number_begin(struct slice id)
{
    size_t i = id.len;

    while (i > 0 && id.len - i < DIGITS_MAX && byte_is_digit(id.ptr[i - 1]))
        i--;
    while (i + 1 < id.len && id.ptr[i] == '0')
        i++;
    return i;
}

struct id_key id_key_of(struct slice id)
{
    size_t begin = number_begin(id);
    struct id_key key = { .prefix = hash_bytes((struct slice){ id.ptr, begin }) };

    if (begin < id.len)
        key.prefix = hash_mix(key.prefix, 1); /* else "a0" would be "a" */
    for (size_t i = begin; i < id.len; i++)
        key.number = key.number * 10 + (uint64_t)(id.ptr[i] - '0');
    return key;
}

void ids_release(struct id_index *ix)
{
    free(ix->slot);
    *ix = (struct id_index){ 0 };
}

/* The slots where an id may stand, one after the other: with every step in another line, and in the
 * end in all of them. */
struct probe {
    size_t at;
    size_t step;
    size_t mask;
};

/* half: the low half of the hash, as a slot holds it. */
static struct probe probe_begin(const struct id_index *ix, uint32_t half)
{
    uint64_t line = LINE(half) * UINT64_C(0x9e3779b97f4a7c15);
    size_t mask = ix->cap - 1;

    return (struct probe){
        .at = (size_t)(line >> 32 << PLACE_BITS | PLACE(half)) & mask,
        .step = (size_t)(line >> 16 << PLACE_BITS | 1) & mask,
        .mask = mask,
    };
}

static void probe_next(struct probe *p)
{
    p->at = (p->at + p->step) & p->mask;
}

static bool slot_is(const struct session *s, uint64_t slot, uint64_t hash)
{
    if (slot >> 32 != (uint32_t)hash)
        return false;
    const struct event_chunk *c = chunk_of(s, (uint32_t)slot - 1);
    return c && c->brief[((uint32_t)slot - 1) & (CHUNK - 1)].id_hash == (uint32_t)(hash >> 32);
}

/* The slot with an event of that id, or the free one where it would go. */
static uint64_t *slot_find(const struct session *s, uint64_t hash)
{
    const struct id_index *ix = &s->ids;
    struct probe p = probe_begin(ix, (uint32_t)hash);

    while (ix->slot[p.at] != 0 && !slot_is(s, ix->slot[p.at], hash))
        probe_next(&p);
    return &ix->slot[p.at];
}

static void enlarge(struct session *s)
{
    struct id_index *ix = &s->ids;
    struct id_index old = *ix;

    ix->cap = old.cap ? old.cap * 2 : 16;
    ix->slot = mem_alloc(ix->cap * sizeof(*ix->slot));
    ix->count = 0;
    for (size_t k = 0; k < old.cap; k++) {
        if (old.slot[k] == 0 || !chunk_of(s, (uint32_t)old.slot[k] - 1))
            continue; /* forgotten */
        struct probe p = probe_begin(ix, (uint32_t)(old.slot[k] >> 32));
        while (ix->slot[p.at] != 0)
            probe_next(&p);
        ix->slot[p.at] = old.slot[k];
        ix->count++;
    }
    free(old.slot);
}

/* ---- ids that count ---- */

static uint64_t hash_of(const struct id_key *key)
{
    return key->prefix + key->number;
}

/* No id like it came before. */
static bool is_new(const struct id_index *ix, const struct id_key *key)
{
    for (unsigned i = 0; i < ix->counters; i++) {
        if (ix->counter[i].prefix == key->prefix)
            return key->number > ix->counter[i].top;
    }
    return !ix->uncounted;
}

static void note_counter(struct id_index *ix, const struct id_key *key)
{
    unsigned i = 0;

    while (i < ix->counters && ix->counter[i].prefix != key->prefix)
        i++;
    if (i == ID_COUNTERS) {
        ix->uncounted = true;
        return;
    }
    if (i == ix->counters) {
        ix->counters++;
        ix->counter[i].prefix = key->prefix;
        ix->counter[i].top = key->number;
    }
    if (ix->counter[i].top < key->number)
        ix->counter[i].top = key->number;
}

/* How far into the run the id is; not below run.count: it is not in it. */
static uint64_t place_in_run(const struct id_index *ix, const struct id_key *key)
{
    return hash_of(key) - ix->run.hash;
}

/* Unless it is there. */
static void table_add(struct session *s, uint64_t hash, uint32_t index)
{
    struct id_index *ix = &s->ids;

    if (ix->count + ix->count / 3 >= ix->cap)
        enlarge(s);
    uint64_t *slot = slot_find(s, hash);
    if (*slot != 0)
        return;
    *slot = hash << 32 | (index + 1);
    ix->count++;
}

static void run_end(struct session *s)
{
    struct id_index *ix = &s->ids;

    for (uint32_t i = 0; i < ix->run.count; i++) {
        if (chunk_of(s, ix->run.index + i)) /* not forgotten */
            table_add(s, ix->run.hash + i, ix->run.index + i);
    }
    ix->run.count = 0;
}

/* ---- all of them ---- */

void ids_prefetch(const struct session *s, const struct id_key *key)
{
    const struct id_index *ix = &s->ids;

    if (ix->cap > 0 && !is_new(ix, key))
        __builtin_prefetch(&ix->slot[probe_begin(ix, (uint32_t)(hash_of(key))).at]);
}

uint32_t ids_get(const struct session *s, const struct id_key *key)
{
    const struct id_index *ix = &s->ids;
    uint64_t place = place_in_run(ix, key);

    if (is_new(ix, key))
        return NONE;
    if (place < ix->run.count) {
        uint32_t index = ix->run.index + (uint32_t)place;
        return chunk_of(s, index) ? index : NONE; /* forgotten */
    }
    uint64_t slot = ix->cap ? *slot_find(s, hash_of(key)) : 0;
    return slot ? (uint32_t)slot - 1 : NONE;
}

uint32_t ids_put(struct session *s, const struct id_key *key, uint32_t index)
{
    struct id_index *ix = &s->ids;
    uint64_t hash = hash_of(key);
    uint32_t found = ids_get(s, key);

    if (found != NONE)
        return found;
    note_counter(ix, key);
    chunk_of(s, index)->brief[index & (CHUNK - 1)].id_hash = (uint32_t)(hash >> 32);
    if (place_in_run(ix, key) != ix->run.count || index != ix->run.index + ix->run.count) {
        run_end(s);
        ix->run.hash = hash;
        ix->run.index = index;
    }
    ix->run.count++;
    return index;
}

void ids_take_over(struct session *s, struct session *from, uint32_t base)
{
    struct id_index *ix = &s->ids;

    for (unsigned i = 0; i < from->ids.counters; i++)
        note_counter(ix, &(struct id_key){ from->ids.counter[i].prefix, from->ids.counter[i].top });
    ix->uncounted |= from->ids.uncounted;
    run_end(from);
    run_end(s);
    for (size_t k = 0; k < from->ids.cap; k++) {
        uint64_t slot = from->ids.slot[k];
        uint32_t at = (uint32_t)slot - 1;
        struct brief b;
        if (slot != 0 && !event_at(s, base + at) && event_brief(from, at, &b))
            table_add(s, (uint64_t)b.id_hash << 32 | slot >> 32, base + at);
    }
}
