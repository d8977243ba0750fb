/*
 * scheme.c - what the capture itself proves of the event ids (DESIGN 2, "id scheme"). Never deduced
 * from the look of an id alone: a number counts only when a whole stream counts by it.
 */
#include "model_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define HEX_DIGITS 16 /* zero-padded counters */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool parse_number(struct slice s, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.len == 0 || s.len > 18)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        unsigned d;
        if (is_digit(c))
            d = c - '0';
        else if (base == 16 && c >= 'a' && c <= 'f')
            d = c - 'a' + 10u;
        else
            return false;
        v = v * base + d;
    }
    *ret = v;
    return true;
}

static bool number_at(struct slice id, size_t from, size_t len, struct id_number *ret)
{
    struct slice part = { id.ptr + from, len };
    unsigned base = len == HEX_DIGITS && part.ptr[0] == '0' ? 16 : 10;
    uint64_t v;

    if (!parse_number(part, base, &v))
        return false;
    *ret = (struct id_number){
        .prefix = { id.ptr, from },
        .suffix = { id.ptr + from + len, id.len - from - len },
        .value = v,
        .digits = len,
        .base = base,
    };
    return true;
}

/* The last word of the id, or else its first, when it is a number. */
bool id_number_of(struct slice id, struct id_number *ret)
{
    size_t last = id.len;
    size_t first = 0;

    while (last > 0 && is_word(id.ptr[last - 1]))
        last--;
    if (last < id.len && number_at(id, last, id.len - last, ret))
        return true;
    /* g-2: a hyphen separates too, when only digits follow it */
    size_t tail = id.len;
    while (tail > 0 && is_digit(id.ptr[tail - 1]))
        tail--;
    if (tail < id.len && tail > 0 && id.ptr[tail - 1] == '-' && id.len - tail < 10 &&
        number_at(id, tail, id.len - tail, ret))
        return true;
    while (first < id.len && is_digit(id.ptr[first]))
        first++;
    return first > 0 && first < id.len && !is_word(id.ptr[first]) && number_at(id, 0, first, ret);
}

struct slice id_with_number(struct model *m, const struct id_number *like, uint64_t value)
{
    char digits[32];
    bool padded = like->base == 16;

    if (padded)
        snprintf(digits, sizeof(digits), "%0*llx", (int)like->digits, (unsigned long long)value);
    else
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
    return slice_str(arena_printf(m->arena, SLICE_FMT "%s" SLICE_FMT, SLICE_ARG(like->prefix),
                                  digits, SLICE_ARG(like->suffix)));
}

bool id_distance(const struct session *s, struct slice a, struct slice b, uint64_t *ret)
{
    struct id_number na;
    struct id_number nb;

    if (s->scheme != SCHEME_DENSE && s->scheme != SCHEME_SPARSE)
        return false;
    if (!id_number_of(a, &na) || !id_number_of(b, &nb) || na.base != nb.base)
        return false;
    if (!slice_eq(na.prefix, nb.prefix) || !slice_eq(na.suffix, nb.suffix) || nb.value < na.value)
        return false;
    *ret = nb.value - na.value;
    return true;
}

/* A run of 10 to 16 digits: seconds, ms or us since 1970, between 2001 and 2286. */
static bool time_in(struct slice id, uint64_t *ret)
{
    for (size_t i = 0; i < id.len; i++) {
        size_t n = 0;
        uint64_t v;
        while (i + n < id.len && is_digit(id.ptr[i + n]))
            n++;
        bool alone = (i == 0 || !is_word(id.ptr[i - 1]) || id.ptr[i - 1] == '-') &&
                     (i + n == id.len || !is_word(id.ptr[i + n]) || id.ptr[i + n] == '-');
        if (alone && (n == 10 || n == 13 || n == 16) && id.ptr[i] != '0' &&
            parse_number((struct slice){ id.ptr + i, n }, 10, &v)) {
            *ret = v;
            return true;
        }
        i += n;
    }
    return false;
}

/* What the streams of a session show. */
struct evidence {
    uint32_t ids;
    uint32_t steps; /* between neighbours on one leg */
    bool not_number;
    bool not_dense;
    bool not_rising;
    bool not_time;

    uint32_t streams; /* with ids */
    bool high_start;  /* a stream begins above 1 */
    struct range {
        uint64_t low, high;
    } * range;
};

static void step_seen(struct evidence *ev, const struct event *a, const struct event *b,
                      bool resumed)
{
    struct id_number na;
    struct id_number nb;
    uint64_t ta;
    uint64_t tb;

    if (!time_in(a->id, &ta) || !time_in(b->id, &tb) || tb < ta)
        ev->not_time = true;
    if (!id_number_of(a->id, &na) || !id_number_of(b->id, &nb) || na.base != nb.base ||
        !slice_eq(na.prefix, nb.prefix) || !slice_eq(na.suffix, nb.suffix)) {
        ev->not_number = true;
        return;
    }
    if (resumed) /* where a replay has gaps or goes back, the server is at fault, not the scheme */
        return;
    ev->steps++;
    if (nb.value <= na.value)
        ev->not_rising = true;
    if (nb.value != na.value + 1)
        ev->not_dense = true;
}

static void stream_evidence(const struct session *s, const struct stream *st, struct evidence *ev)
{
    const struct event *prev = NULL;
    struct range r = { UINT64_MAX, 0 };
    uint64_t first = UINT64_MAX;
    struct id_number n;

    for (uint32_t i = 0; i < st->count; i++) {
        const struct event *e = st->order[i] == NONE ? NULL : event_at(s, st->order[i]);
        if (!e || !e->has_id || e->id.len == 0) {
            prev = e ? prev : NULL;
            continue;
        }
        ev->ids++;
        if (id_number_of(e->id, &n) && n.digits < 13) {
            r.low = n.value < r.low ? n.value : r.low;
            r.high = n.value > r.high ? n.value : r.high;
            first = first == UINT64_MAX ? n.value : first;
        } else {
            ev->not_number = true;
        }
        uint64_t t;
        ev->not_time |= !time_in(e->id, &t);
        const struct leg *l = s->leg[e->leg];
        if (prev && prev->leg == e->leg && l->gaps == 0)
            step_seen(ev, prev, e, l->resumed);
        prev = e;
    }
    if (first == UINT64_MAX)
        return;
    ev->high_start |= first > 1;
    ev->range[ev->streams++] = r;
}

static int by_low(const void *a, const void *b)
{
    const struct range *x = a;
    const struct range *y = b;

    return (x->low > y->low) - (x->low < y->low);
}

static bool ranges_overlap_or_follow(struct evidence *ev)
{
    bool overlap = false;

    qsort(ev->range, ev->streams, sizeof(*ev->range), by_low);
    for (uint32_t i = 1; i < ev->streams; i++)
        overlap |= ev->range[i].low <= ev->range[i - 1].high;
    return overlap;
}

/* Do all numbered ids of the session have one prefix and suffix (then equal numbers are equal ids)?
 */
static bool one_skeleton(const struct session *s)
{
    struct id_number a = { 0 };
    struct id_number b;
    bool have = false;

    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct stream *st = s->stream[i];
        for (uint32_t j = 0; j < st->count; j++) {
            const struct event *e = st->order[j] == NONE ? NULL : event_at(s, st->order[j]);
            if (!e || e->id.len == 0 || !id_number_of(e->id, &b))
                continue;
            if (have && (!slice_eq(a.prefix, b.prefix) || !slice_eq(a.suffix, b.suffix)))
                return false;
            a = b;
            have = true;
            break; /* within a stream the steps tell */
        }
    }
    return have;
}

static enum id_scheme scheme_of(struct session *s, struct evidence *ev)
{
    if (ev->ids == 0)
        return SCHEME_NONE;
    if (s->ids_reused && !s->epoch)
        return SCHEME_NOT_UNIQUE;
    if (ev->ids < 3)
        return SCHEME_OPAQUE;
    if (!ev->not_time)
        return SCHEME_TIME;
    if (ev->not_number || ev->not_rising)
        return SCHEME_OPAQUE;
    bool overlap = ranges_overlap_or_follow(ev);
    bool shared =
        one_skeleton(s) ? ev->streams > 1 : (!overlap && ev->high_start && ev->streams > 1);
    if (shared)
        return SCHEME_SPARSE;
    if (!ev->not_dense && ev->steps > 0)
        return SCHEME_DENSE;
    return ev->steps > 0 ? SCHEME_SPARSE : SCHEME_OPAQUE;
}

/* Ids start again: two or more different ones, or the first of a resumed leg, come with new
 * content. */
static bool epoch_seen(const struct session *s)
{
    const struct event *other = NULL;

    for (uint32_t i = 0; i < s->event_count; i++) {
        const struct event *e = event_at(s, i);
        struct id_number n;
        if (!e || e->same_id == NONE || e->stripped || !id_number_of(e->id, &n))
            continue;
        if (other && !slice_eq(other->id, e->id))
            return true;
        if (s->leg[e->leg]->resumed && !e->priming)
            return true;
        other = e;
    }
    return false;
}

void scheme_prove(struct session *s)
{
    struct evidence ev = { 0 };

    ev.range = mem_alloc((s->stream_count + 1) * sizeof(*ev.range));
    s->epoch = s->ids_reused && epoch_seen(s);
    for (uint32_t i = 0; i < s->stream_count; i++)
        stream_evidence(s, s->stream[i], &ev);
    s->scheme = scheme_of(s, &ev);
    s->scheme_proven =
        s->scheme == SCHEME_DENSE || s->scheme == SCHEME_SPARSE || s->scheme == SCHEME_TIME;
    free(ev.range);
}
