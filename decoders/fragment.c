/* fragment.c - see fragment.h. */
#include "fragment.h"

#include <stdlib.h>

#define SLOTS        128u /* with 64 KiB each at most, 8 MiB in all */
#define AGE_MAX      (30 * NS_PER_SEC)
#define DATAGRAM_MAX 65535u
#define UNIT         8u /* fragments begin at multiples of it */
#define UNITS        ((DATAGRAM_MAX + UNIT) / UNIT)

enum slot_state { SLOT_FREE, SLOT_WAITING, SLOT_LENT };

struct slot {
    enum slot_state state;
    uint64_t key;
    uint8_t src[16];
    uint8_t dst[16];
    uint32_t id;
    uint8_t protocol;
    uint64_t link_id;
    int64_t time;  /* of the first fragment */
    uint64_t born; /* order of arrival */
    uint8_t *bytes;
    size_t cap;
    size_t known; /* bytes from here on may be missing: cut by the snap length */
    size_t total; /* 0: the last fragment was not seen */
    size_t reach; /* end of the farthest fragment */
    size_t units; /* seen */
    uint8_t seen[(UNITS + 7) / 8];
};

struct fragments {
    struct slot slot[SLOTS];
    uint64_t born;
    size_t lent;
};

struct fragments *fragments_new(void)
{
    return mem_alloc(sizeof(struct fragments));
}

void fragments_free(struct fragments *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        free(f->slot[i].bytes);
    free(f);
}

void fragments_release(struct fragments *f)
{
    for (size_t i = 0; f->lent > 0 && i < SLOTS; i++) {
        if (f->slot[i].state != SLOT_LENT)
            continue;
        f->slot[i].state = SLOT_FREE;
        f->lent--;
    }
}

/* RFC 791: source, destination, protocol and id; RFC 8200 leaves out the protocol. */
static uint64_t key_of(const struct fragment *p)
{
    uint64_t h = hash_mix(hash_bytes((struct slice){ p->src, 16 }), p->link_id);

    h = hash_mix(h, hash_bytes((struct slice){ p->dst, 16 }));
    return hash_mix(h, (uint64_t)p->id << 16 | (p->ipv6 ? 0x100u : p->protocol));
}

static bool is_of(const struct slot *s, const struct fragment *p, uint64_t key)
{
    return s->state == SLOT_WAITING && s->key == key && s->id == p->id &&
           s->link_id == p->link_id && memcmp(s->src, p->src, 16) == 0 &&
           memcmp(s->dst, p->dst, 16) == 0 && (p->ipv6 || s->protocol == p->protocol);
}

static void slot_begin(struct slot *s, const struct fragment *p, uint64_t key)
{
    uint8_t *bytes = s->bytes;
    size_t cap = s->cap;

    *s = (struct slot){ .state = SLOT_WAITING, .key = key, .bytes = bytes, .cap = cap };
    memcpy(s->src, p->src, 16);
    memcpy(s->dst, p->dst, 16);
    s->id = p->id;
    s->protocol = p->protocol;
    s->link_id = p->link_id;
    s->time = p->time;
    s->known = SIZE_MAX;
}

/* The datagram's slot; a new one takes the place of the oldest. */
static struct slot *slot_for(struct fragments *f, const struct fragment *p)
{
    uint64_t key = key_of(p);
    struct slot *take = NULL;

    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slot[i];
        if (is_of(s, p, key)) {
            if (p->time - s->time > AGE_MAX) /* the id was used again */
                slot_begin(s, p, key);
            return s;
        }
        if (s->state == SLOT_LENT || (take && take->state == SLOT_FREE))
            continue;
        if (!take || s->state == SLOT_FREE || s->born < take->born)
            take = s;
    }
    if (take) {
        slot_begin(take, p, key);
        take->born = ++f->born;
    }
    return take;
}

static bool unit_seen(const struct slot *s, size_t unit)
{
    return (s->seen[unit / 8] >> (unit % 8) & 1) != 0;
}

/* Bytes of a fragment that were there before must be the same. */
static bool agrees(const struct slot *s, const struct fragment *p)
{
    for (size_t at = 0; at < p->data.len; at += UNIT) {
        size_t n = p->data.len - at < UNIT ? p->data.len - at : UNIT;
        size_t pos = p->offset + at;
        if (pos + n > s->known)
            return true;
        if (unit_seen(s, pos / UNIT) && memcmp(s->bytes + pos, p->data.ptr + at, n) != 0)
            return false;
    }
    return true;
}

static void store(struct slot *s, const struct fragment *p, size_t end)
{
    if (end > s->cap) {
        s->cap = end > DATAGRAM_MAX / 4 ? DATAGRAM_MAX : end * 2;
        s->bytes = mem_grow(s->bytes, s->cap);
    }
    memcpy(s->bytes + p->offset, p->data.ptr, p->data.len);
    if (p->data.len < p->wire && p->offset + p->data.len < s->known)
        s->known = p->offset + p->data.len;
    for (size_t unit = p->offset / UNIT; unit * UNIT < end; unit++) {
        s->units += !unit_seen(s, unit);
        s->seen[unit / 8] |= (uint8_t)(1u << unit % 8);
    }
}

static bool is_whole(const struct slot *s)
{
    return s->total > 0 && s->units == (s->total + UNIT - 1) / UNIT;
}

/* What no honest sender does: ends that differ, or data past the end. */
static bool fits(const struct slot *s, const struct fragment *p, size_t end)
{
    if (p->more)
        return s->total == 0 || end < s->total;
    return s->total == 0 ? end >= s->reach : end == s->total;
}

enum fragment_result fragments_add(struct fragments *f, const struct fragment *part,
                                   struct datagram *ret)
{
    size_t end = part->offset + part->wire;

    if (part->wire == 0 || end > DATAGRAM_MAX || (part->more && part->wire % UNIT != 0))
        return FRAGMENT_BROKEN;
    struct slot *s = slot_for(f, part);
    if (!s)
        return FRAGMENT_BROKEN;
    if (!fits(s, part, end) || !agrees(s, part)) {
        s->state = SLOT_FREE;
        return FRAGMENT_BROKEN;
    }
    store(s, part, end);
    if (end > s->reach)
        s->reach = end;
    if (!part->more)
        s->total = end;
    if (part->offset == 0)
        s->protocol = part->protocol;
    if (!is_whole(s))
        return FRAGMENT_HELD;
    s->state = SLOT_LENT;
    f->lent++;
    ret->data = (struct slice){ s->bytes, s->total < s->known ? s->total : s->known };
    ret->wire = s->total;
    ret->protocol = s->protocol;
    return FRAGMENT_WHOLE;
}
