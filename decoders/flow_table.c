/*
 * flow_table.c - the live flows of a run: found by their pair of endpoints, kept in order of their
 * last segment, and a small memory of those that ended.
 */
#include "flow_parts.h"

#include <stdlib.h>
#include <sys/auxv.h>

/* Late repetitions come minutes after the end: enough for those of the last connections. */
#define GRAVES 4096

/* Flows of the same endpoints in different VLANs or tunnels. */
#define NAMESAKES_MAX 16

/* A flow that was over: where each side's sequence numbers ended. */
struct grave {
    uint64_t key;
    uint64_t sender[2];
    uint32_t end[2];
    bool started[2];
};

struct list {
    struct flow *oldest;
    struct flow *newest;
};

struct flow_table {
    uint64_t seed; /* nobody can aim at one bucket */
    struct flow **bucket;
    size_t mask;
    size_t count;
    struct flow *latest; /* most segments belong to the same flow as the one before */
    struct list list[FLOW_STATES];
    struct grave grave[GRAVES];
};

#define BUCKETS_FIRST ((size_t)1024)

struct flow_table *table_new(void)
{
    struct flow_table *t = mem_alloc(sizeof(*t));
    const void *random = (const void *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr)

    if (random)
        memcpy(&t->seed, random, sizeof(t->seed));
    t->bucket = mem_alloc(BUCKETS_FIRST * sizeof(struct flow *));
    t->mask = BUCKETS_FIRST - 1;
    return t;
}

void table_free(struct flow_table *t)
{
    free(t->bucket);
    free(t);
}

static uint64_t endpoint_hash(const struct flow_table *t, const struct endpoint *e)
{
    uint64_t word[2];

    memcpy(word, e->addr, sizeof(word));
    return hash_mix(word[0] ^ t->seed, word[1] + e->port * (t->seed | 1));
}

/* The same for both directions, and for all VLANs and tunnels. */
static uint64_t key_of(const struct flow_table *t, const struct segment *seg)
{
    return hash_mix(endpoint_hash(t, &seg->src) + endpoint_hash(t, &seg->dst), t->seed);
}

static bool is_of(const struct flow *fl, const struct segment *seg, unsigned *ret_side)
{
    if (endpoint_eq(&fl->end[0], &seg->src) && endpoint_eq(&fl->end[1], &seg->dst)) {
        *ret_side = 0;
        return true;
    }
    if (endpoint_eq(&fl->end[1], &seg->src) && endpoint_eq(&fl->end[0], &seg->dst)) {
        *ret_side = 1;
        return true;
    }
    return false;
}

static bool is_near(const struct half *h, uint32_t seq)
{
    int64_t off = half_offset(h, seq);

    return off >= (int64_t)h->next - FLOW_SEQ_SLACK && off <= (int64_t)h->top + FLOW_SEQ_SLACK;
}

/* From another VLAN or tunnel. The numbers tell whether that is the same connection, captured twice
 * on its way or in a VLAN for each direction, or one of the same addresses somewhere else. */
static bool is_nearly_of(const struct flow *fl, const struct segment *seg, unsigned *ret_side)
{
    if (!is_of(fl, seg, ret_side))
        return false;
    const struct half *h = &fl->half[*ret_side];
    const struct half *peer = &fl->half[*ret_side ^ 1];
    if (h->started)
        return (seg->flags & TCP_SYN) ? seg->seq + 1 == h->base : is_near(h, seg->seq);
    return peer->started && (seg->flags & TCP_ACK) && is_near(peer, seg->ack);
}

struct flow *table_find(struct flow_table *t, const struct segment *seg, unsigned *ret_side)
{
    struct flow *latest = t->latest;

    if (latest && latest->conn.link_id == seg->link_id && is_of(latest, seg, ret_side))
        return latest;

    uint64_t key = key_of(t, seg);
    struct flow *first = t->bucket[key & t->mask];
    for (struct flow *fl = first; fl; fl = fl->chain) {
        if (fl->key == key && fl->conn.link_id == seg->link_id && is_of(fl, seg, ret_side))
            return t->latest = fl;
    }
    for (struct flow *fl = first; fl; fl = fl->chain) {
        if (fl->key == key && fl->conn.link_id != seg->link_id && is_nearly_of(fl, seg, ret_side))
            return fl;
    }
    return NULL;
}

static void table_widen(struct flow_table *t)
{
    size_t mask = t->mask * 2 + 1;
    struct flow **wide = mem_alloc((mask + 1) * sizeof(struct flow *));

    for (size_t i = 0; i <= t->mask; i++) {
        while (t->bucket[i]) {
            struct flow *fl = t->bucket[i];
            t->bucket[i] = fl->chain;
            fl->chain = wide[fl->key & mask];
            wide[fl->key & mask] = fl;
        }
    }
    free(t->bucket);
    t->bucket = wide;
    t->mask = mask;
}

static void list_append(struct list *l, struct flow *fl)
{
    fl->older = l->newest;
    fl->newer = NULL;
    if (l->newest)
        l->newest->newer = fl;
    else
        l->oldest = fl;
    l->newest = fl;
}

static void list_remove(struct list *l, struct flow *fl)
{
    if (fl->older)
        fl->older->newer = fl->newer;
    else
        l->oldest = fl->newer;
    if (fl->newer)
        fl->newer->older = fl->older;
    else
        l->newest = fl->older;
}

struct flow *table_add(struct flow_table *t, const struct segment *seg)
{
    struct flow *fl = mem_alloc(sizeof(*fl));

    if (t->count > t->mask)
        table_widen(t);
    fl->end[0] = seg->src;
    fl->end[1] = seg->dst;
    fl->conn.link_id = seg->link_id;
    fl->key = key_of(t, seg);
    fl->chain = t->bucket[fl->key & t->mask];
    t->bucket[fl->key & t->mask] = fl;
    t->count++;
    list_append(&t->list[fl->state], fl);
    return fl;
}

void table_remove(struct flow_table *t, struct flow *fl)
{
    struct flow **link = &t->bucket[fl->key & t->mask];

    while (*link != fl)
        link = &(*link)->chain;
    *link = fl->chain;
    list_remove(&t->list[fl->state], fl);
    if (t->latest == fl)
        t->latest = NULL;
    t->count--;
}

/* The order of live flows is kept to about this: else each segment would touch three flows. */
#define TOUCH_NS (100 * NS_PER_MS)

void table_touch(struct flow_table *t, struct flow *fl, enum flow_state state)
{
    int64_t passed = fl->last.time - fl->touched;

    if (state == fl->state &&
        (!fl->newer || (state == FLOW_LIVE && passed >= 0 && passed < TOUCH_NS)))
        return;
    fl->touched = fl->last.time;
    list_remove(&t->list[fl->state], fl);
    fl->state = state;
    list_append(&t->list[state], fl);
}

bool table_has_closed(const struct flow_table *t)
{
    return t->list[FLOW_CLOSING].oldest || t->list[FLOW_OVER].oldest;
}

struct flow *table_oldest(const struct flow_table *t, enum flow_state state)
{
    return t->list[state].oldest;
}

struct flow *table_crowding(const struct flow_table *t, const struct segment *seg)
{
    const uint64_t key = key_of(t, seg);
    struct flow *oldest = NULL;
    size_t count = 0;

    for (struct flow *fl = t->bucket[key & t->mask]; fl; fl = fl->chain) {
        if (fl->key != key)
            continue;
        oldest = fl; /* new ones come to the front */
        count++;
    }
    return count < NAMESAKES_MAX ? NULL : oldest;
}

size_t table_count(const struct flow_table *t)
{
    return t->count;
}

void table_bury(struct flow_table *t, const struct flow *fl)
{
    struct grave *g = &t->grave[fl->key % GRAVES];

    g->key = fl->key;
    for (unsigned i = 0; i < 2; i++) {
        const struct half *h = &fl->half[i];
        g->sender[i] = endpoint_hash(t, &fl->end[i]);
        g->started[i] = h->started;
        g->end[i] = h->base + (uint32_t)h->top + (h->fin ? 1 : 0);
    }
}

bool table_is_ghost(const struct flow_table *t, const struct segment *seg)
{
    uint64_t key = key_of(t, seg);
    const struct grave *g = &t->grave[key % GRAVES];

    if (g->key != key || (seg->flags & TCP_SYN))
        return false;

    unsigned side = g->sender[0] == endpoint_hash(t, &seg->src) ? 0 : 1;
    uint32_t end = seg->seq + seg->wire_len + ((seg->flags & TCP_FIN) ? 1 : 0);
    return !g->started[side] || (int32_t)(end - g->end[side]) <= 1; /* a FIN at last */
}
