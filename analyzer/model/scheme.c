/*
 * scheme.c - what the capture itself proves of the event ids (DESIGN 2, "id scheme"). Never deduced
 * from the look of an id alone: a number counts only when a whole stream counts by it.
 */
#include "model_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define HEX_DIGITS 16 /* zero-padded counters */

static bool is_word(uint8_t c)
{
    return byte_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool parse_number(struct slice s, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.len == 0 || s.len > 18)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        unsigned d;
        if (byte_is_digit(c))
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
        .padded = len > 1 && part.ptr[0] == '0',
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
    while (tail > 0 && byte_is_digit(id.ptr[tail - 1]))
        tail--;
    if (tail < id.len && tail > 0 && id.ptr[tail - 1] == '-' && id.len - tail < 10 &&
        number_at(id, tail, id.len - tail, ret))
        return true;
    while (first < id.len && byte_is_digit(id.ptr[first]))
        first++;
    return first > 0 && first < id.len && !is_word(id.ptr[first]) && number_at(id, 0, first, ret);
}

struct slice id_with_number(struct model *m, const struct id_number *like, uint64_t value)
{
    char digits[32];
    int width = like->padded || like->base == 16 ? (int)like->digits : 0;

    if (like->base == 16)
        snprintf(digits, sizeof(digits), "%0*llx", width, (unsigned long long)value);
    else
        snprintf(digits, sizeof(digits), "%0*llu", width, (unsigned long long)value);
    return slice_str(arena_printf(m->arena, SLICE_FMT "%s" SLICE_FMT, SLICE_ARG(like->prefix),
                                  digits, SLICE_ARG(like->suffix)));
}

static bool is_hex(uint8_t c)
{
    return byte_is_digit(c) || (c >= 'a' && c <= 'f');
}

/* How far back from `at` the number goes that stands there: a padded hexadecimal word, or digits.
 */
static size_t number_begin(struct slice id, size_t at)
{
    size_t hex = at;
    size_t end = at;

    while (hex > 0 && is_hex(id.ptr[hex - 1]))
        hex--;
    while (end < id.len && is_hex(id.ptr[end]))
        end++;
    if (end - hex == HEX_DIGITS && id.ptr[hex] == '0')
        return hex;
    while (at > 0 && byte_is_digit(id.ptr[at - 1]))
        at--;
    return at;
}

/* Two ids that differ in one number alone: both as that number. */
bool id_pair(struct slice a, struct slice b, struct id_number *ra, struct id_number *rb)
{
    size_t most = a.len < b.len ? a.len : b.len;
    size_t p = 0;
    size_t q = 0;

    while (p < most && a.ptr[p] == b.ptr[p])
        p++;
    if (p == most && a.len == b.len)
        return false; /* equal */
    p = number_begin(a, p);
    size_t pb = number_begin(b, p);
    p = pb < p ? pb : p;
    while (q < most - p && a.ptr[a.len - 1 - q] == b.ptr[b.len - 1 - q])
        q++;
    while (q > 0 && is_hex(a.ptr[a.len - q]) &&
           (byte_is_digit(a.ptr[a.len - q]) || a.len - q - p < HEX_DIGITS))
        q--;
    if (a.len < p + q || b.len < p + q)
        return false;
    return number_at(a, p, a.len - q - p, ra) && number_at(b, p, b.len - q - p, rb) &&
           ra->base == rb->base;
}

/* The id as a number of the same make as `like`. */
bool id_like(struct slice id, const struct id_number *like, struct id_number *ret)
{
    size_t around = like->prefix.len + like->suffix.len;

    if (id.len <= around || !slice_starts(id, like->prefix) ||
        memcmp(id.ptr + id.len - like->suffix.len, like->suffix.ptr, like->suffix.len) != 0)
        return false;
    return number_at(id, like->prefix.len, id.len - around, ret) && ret->base == like->base;
}

bool id_distance(const struct session *s, struct slice a, struct slice b, uint64_t *ret)
{
    struct id_number na;
    struct id_number nb;

    if (s->scheme != SCHEME_DENSE && s->scheme != SCHEME_SPARSE)
        return false;
    if (!id_pair(a, b, &na, &nb) || nb.value < na.value)
        return false;
    *ret = nb.value - na.value;
    return true;
}

/* The same words around other digits: ids of one make, whatever they count. */
bool id_same_make(struct slice a, struct slice b)
{
    size_t i = 0;
    size_t k = 0;

    while (i < a.len && k < b.len) {
        if (byte_is_digit(a.ptr[i]) && byte_is_digit(b.ptr[k])) {
            while (i < a.len && byte_is_digit(a.ptr[i]))
                i++;
            while (k < b.len && byte_is_digit(b.ptr[k]))
                k++;
            continue;
        }
        if (a.ptr[i++] != b.ptr[k++])
            return false;
    }
    return i == a.len && k == b.len;
}

/* A run of 10 to 16 digits: seconds, ms or us since 1970, between 2001 and 2286. */
static bool time_in(struct slice id, uint64_t *ret)
{
    for (size_t i = 0; i < id.len; i++) {
        size_t n = 0;
        uint64_t v;
        while (i + n < id.len && byte_is_digit(id.ptr[i + n]))
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
    uint32_t resumed_steps; /* the same on resumed legs */
    bool resumed_not_dense;
    bool resumed_not_rising;
    bool not_dense;
    bool not_rising;
    bool not_time;

    uint32_t streams; /* with ids */
    bool high_start;  /* a stream begins above 1 */
    struct range {
        uint64_t low, high; /* low > high: empty */
        uint64_t first;
        struct id_number make;
    } * range;
};

static void step_seen(struct evidence *ev, const struct event *a, const struct event *b,
                      bool resumed)
{
    struct id_number na;
    struct id_number nb;
    uint64_t ta;
    uint64_t tb;

    ev->not_time = ev->not_time || !time_in(a->id, &ta) || !time_in(b->id, &tb) || tb < ta;
    if (!id_pair(a->id, b->id, &na, &nb)) {
        ev->not_number = true;
        return;
    }
    if (resumed) { /* where a replay has gaps or goes back, the server may be at fault */
        ev->resumed_not_rising |= nb.value <= na.value;
        ev->resumed_not_dense |= nb.value != na.value + 1;
        ev->resumed_steps++;
        return;
    }
    ev->steps++;
    if (nb.value <= na.value)
        ev->not_rising = true;
    if (nb.value != na.value + 1)
        ev->not_dense = true;
}

/* How the ids of a stream count: from its first two that differ, else from the look of its only
 * one. */
static bool stream_make(const struct session *s, const struct stream *st, struct id_number *ret)
{
    const struct event *first = NULL;
    const struct event *e;
    struct id_number other;

    for (uint32_t o = 0; (e = stream_next(s, st, &o)); o++) {
        if (!e->has_id || e->id.len == 0)
            continue;
        if (first)
            return id_pair(first->id, e->id, ret, &other);
        first = e;
    }
    return first && id_number_of(first->id, ret);
}

/* On a resumed leg: does the event come when the replay must be over, after a pause? */
bool event_is_live(const struct leg *l, const struct event *before, const struct event *e)
{
    return e->begin.time - l->begin.time > NS_PER_SEC &&
           e->begin.time - before->at.time > NS_PER_SEC;
}

static void range_widen(struct range *r, uint64_t value)
{
    if (r->low > r->high) /* the first */
        r->first = value;
    r->low = value < r->low ? value : r->low;
    r->high = value > r->high ? value : r->high;
}

static void stream_evidence(const struct session *s, const struct stream *st, struct evidence *ev)
{
    const struct event *prev = NULL;
    const struct event *e;
    uint32_t expected = 0;
    struct range r = { .low = UINT64_MAX };
    struct id_number n;
    uint64_t t;
    bool made = stream_make(s, st, &r.make);

    for (uint32_t o = 0; (e = stream_next(s, st, &o)); o++) {
        if (o != expected)
            prev = NULL; /* what stood between is not known any more */
        expected = o + 1;
        if (!e->has_id || e->id.len == 0)
            continue;
        ev->ids++;
        ev->not_time = ev->not_time || !time_in(e->id, &t);
        if (made && id_like(e->id, &r.make, &n) && (n.digits < 13 || n.base == 16))
            range_widen(&r, n.value);
        else
            ev->not_number = true;
        const struct leg *l = s->leg[e->leg];
        if (prev && prev->leg == e->leg && l->gaps == 0)
            step_seen(ev, prev, e, l->resumed && !event_is_live(l, prev, e));
        prev = e;
    }
    if (r.low > r.high)
        return;
    ev->high_start |= r.first > 1;
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

/* Do all streams count with one prefix and suffix? Then equal numbers would be equal ids. */
static bool one_skeleton(const struct evidence *ev)
{
    for (uint32_t i = 1; i < ev->streams; i++) {
        if (!slice_eq(ev->range[i].make.prefix, ev->range[0].make.prefix) ||
            !slice_eq(ev->range[i].make.suffix, ev->range[0].make.suffix))
            return false;
    }
    return ev->streams > 0;
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
    /* Legs without a replay prove the scheme; too few of them, and the replay itself must bear it
     * out. */
    if (ev->steps < 2) {
        ev->steps += ev->resumed_steps;
        ev->not_rising |= ev->resumed_not_rising;
        ev->not_dense |= ev->resumed_not_dense;
    }
    if (ev->not_number || ev->not_rising)
        return SCHEME_OPAQUE;
    bool overlap = ranges_overlap_or_follow(ev);
    bool shared =
        one_skeleton(ev) ? ev->streams > 1 : (!overlap && ev->high_start && ev->streams > 1);
    if (shared)
        return SCHEME_SPARSE;
    if (!ev->not_dense && ev->steps > 0)
        return SCHEME_DENSE;
    return ev->steps > 0 ? SCHEME_SPARSE : SCHEME_OPAQUE;
}

/* The client used the id of a request again, and the server names its streams after requests. */
static bool named_after_request(const struct session *s, const struct event *e)
{
    const struct event *o = event_at(s, e->same_id);
    const struct exch *x = s->exch[s->stream[e->stream]->exch];
    const struct exch *y = o ? s->exch[s->stream[o->stream]->exch] : NULL;

    return y && x != y && x->msg_count > 0 && y->msg_count > 0 &&
           x->msg[0].id.type != RPC_ID_NONE && rpc_id_eq(&x->msg[0].id, &y->msg[0].id);
}

/* Ids start again: two or more different ones, or the first of a resumed leg, come with new
 * content. */
static bool epoch_seen(const struct session *s)
{
    const struct event *other = NULL;

    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        struct id_number n;
        if (e->same_id == NONE || e->stripped || !id_number_of(e->id, &n) ||
            named_after_request(s, e))
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
