/* ledger.c - the events of a session: whole while later rules may ask for them, reduced afterwards.
 */
#include "model_impl.h"

#include <stdlib.h>

struct event *event_at(const struct session *s, uint32_t index)
{
    const struct event_chunk *c = chunk_of(s, index);

    return c && c->full ? c->full[index & (CHUNK - 1)] : NULL;
}

struct event *event_next(const struct session *s, uint32_t index)
{
    for (; index < s->event_count; index++) {
        const struct event_chunk *c = s->chunk[index >> CHUNK_BITS];
        if (!c || !c->full)
            index |= CHUNK - 1;
        else if (c->full[index & (CHUNK - 1)])
            return c->full[index & (CHUNK - 1)];
    }
    return NULL;
}

struct event *stream_next(const struct session *s, const struct stream *st, uint32_t *ordinal)
{
    uint32_t i = *ordinal;
    struct event *found = NULL;

    while (i < st->count && !found) {
        uint32_t index = st->order[i++];
        if (index == NONE)
            continue;
        const struct event_chunk *c = s->chunk[index >> CHUNK_BITS];
        if (c && c->full)
            found = c->full[index & (CHUNK - 1)];
        else /* its neighbours are mostly those of the stream, too */
            while (i < st->count && st->order[i] >> CHUNK_BITS == index >> CHUNK_BITS)
                i++;
    }
    *ordinal = found ? i - 1 : i;
    return found;
}

bool event_brief(const struct session *s, uint32_t index, struct brief *ret)
{
    const struct event_chunk *c = chunk_of(s, index);

    if (!c)
        return false;
    *ret = c->brief[index & (CHUNK - 1)];
    return true;
}

static size_t event_bytes(size_t messages, size_t id_len)
{
    return sizeof(struct event) + messages * sizeof(struct message) + id_len;
}

void event_free(struct model *m, struct event *e)
{
    if (e)
        pool_give(&impl_of(m)->events, e, event_bytes(e->msg_count, e->id.len));
}

void event_adopt(struct session *s, struct event *e)
{
    uint32_t at = s->event_count & (CHUNK - 1);

    if (at == 0) {
        uint32_t n = s->event_count >> CHUNK_BITS;
        if ((n & (n - 1)) == 0) /* 0, 1, 2, 4 ... */
            s->chunk = mem_grow(s->chunk, (n ? n * 2 : 1) * sizeof(struct event_chunk *));
        s->chunk[n] = mem_alloc(sizeof(struct event_chunk));
        s->chunk[n]->full = mem_alloc(CHUNK * sizeof(struct event *));
    }
    struct event_chunk *c = s->chunk[s->event_count >> CHUNK_BITS];
    if (e) {
        e->index = s->event_count;
        c->full[at] = e;
        c->kept++;
    }
    s->event_count++;
    c->used++;
}

/* ---- whole events by age ---- */

static struct aged *aged_at(const struct impl *im, size_t i)
{
    return &im->aged[(im->aged_first + i) & (im->aged_cap - 1)];
}

static void aged_add(struct impl *im, struct session *s, struct event *e)
{
    if (im->aged_count == im->aged_cap) {
        size_t cap = im->aged_cap ? im->aged_cap * 2 : 1024;
        struct aged *wide = mem_grow(NULL, cap * sizeof(*wide));
        for (size_t i = 0; i < im->aged_count; i++)
            wide[i] = *aged_at(im, i);
        free(im->aged);
        im->aged = wide;
        im->aged_cap = cap;
        im->aged_first = 0;
    }
    *aged_at(im, im->aged_count++) = (struct aged){ s, e };
}

struct event *event_new(struct session *s, size_t messages, struct slice id)
{
    struct impl *im = impl_of(s->model);
    size_t bytes = event_bytes(messages, id.len);
    struct event *e = pool_take(&im->events, bytes);

    memset(e, 0, sizeof(*e));
    e->msg = (struct message *)(void *)(e + 1);
    e->msg_count = (uint32_t)messages;
    e->id = (struct slice){ (const uint8_t *)(e->msg + messages), id.len };
    if (id.len > 0)
        memcpy(e->msg + messages, id.ptr, id.len);
    im->full_bytes += bytes;
    im->ids++;
    event_adopt(s, e);
    if (!s->log_expected) /* else anything may be asked for */
        aged_add(im, s, e);
    return e;
}

/* ---- ids ---- */

void event_index_id(struct session *s, struct event *e, const struct id_key *key)
{
    struct event_chunk *c = chunk_of(s, e->index);

    c->brief[e->index & (CHUNK - 1)] = (struct brief){
        .stream = e->stream,
        .ordinal = e->ordinal,
        .digest = (uint32_t)e->digest,
    };
    if (!e->has_id || e->id.len == 0 || e->first != e->index)
        return;
    uint32_t at = ids_put(s, key, e->index);
    if (at == e->index)
        return;
    /* Another event has the id: keep the chain, newest last. */
    for (;;) {
        struct event *other = event_at(s, at);
        if (!other)
            return; /* reduced: the older one keeps the id */
        other->marks |= EV_PINNED;
        if (other->next_same_id == NONE) {
            other->next_same_id = e->index;
            e->marks |= EV_PINNED;
            return;
        }
        at = other->next_same_id;
    }
}

void ledger_take_over(struct session *s, struct session *from, uint32_t base)
{
    struct impl *im = impl_of(s->model);

    for (size_t i = 0; i < im->aged_count; i++) {
        if (aged_at(im, i)->session == from)
            aged_at(im, i)->session = s;
    }
    for (uint32_t i = 0; i < from->event_count; i++) {
        struct brief b;
        if (event_at(s, base + i) || !event_brief(from, i, &b))
            continue;
        b.stream += s->stream_count;
        chunk_of(s, base + i)->brief[(base + i) & (CHUNK - 1)] = b;
    }
    ids_take_over(s, from, base);
}

uint32_t event_by_key(const struct session *s, struct slice id, const struct id_key *key)
{
    uint32_t found = ids_get(s, key);
    const struct event *e = event_at(s, found);

    return e && !slice_eq(e->id, id) ? NONE : found;
}

uint32_t event_by_id(const struct session *s, struct slice id)
{
    struct id_key key = id_key_of(id);

    return id.len ? event_by_key(s, id, &key) : NONE;
}

uint32_t event_by_id_before(const struct session *s, struct slice id, int64_t t)
{
    uint32_t best = event_by_id(s, id);
    const struct event *e = event_at(s, best);

    while (e) {
        if (e->at.time <= t)
            best = e->index;
        e = event_at(s, e->next_same_id);
    }
    return best;
}

void event_pin(struct session *s, uint32_t index)
{
    struct event *e = event_at(s, index);

    if (e)
        e->marks |= EV_PINNED;
}

/* Nothing that a later rule asks of a single event hangs on it. */
static bool is_dull(const struct session *s, const struct event *e)
{
    const struct leg *l = s->leg[e->leg];

    if (e->marks || e->first != e->index || e->new_id_of != NONE || e->same_id != NONE ||
        e->ambiguous || e->not_json || e->status > RPC_EMPTY)
        return false;
    if (e->index == l->first_event || e->index == l->last_event || e->index == l->last_id ||
        e->index == l->last_id_acked || e->index == l->unacked)
        return false;
    return e->dull_messages;
}

bool messages_are_dull(const struct session *s, const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        const struct message *m = &e->msg[i];
        if (m->kind != RPC_NOTIFICATION || !(m->flags & RPC_VERSION_OK) ||
            (m->flags & RPC_DUPLICATE_KEYS) || m->id.type != RPC_ID_NONE ||
            (m->token.type != RPC_ID_NONE && m->request == NONE && !s->orphan) ||
            (m->has_previous && m->progress <= m->previous_progress))
            return false;
    }
    return true;
}

static bool leg_is_live(const struct session *s, const struct event *e)
{
    return !s->leg[e->leg]->ended;
}

static void event_reduce(struct session *s, struct event *e)
{
    struct event_chunk *c = chunk_of(s, e->index);

    c->full[e->index & (CHUNK - 1)] = NULL;
    impl_of(s->model)->full_bytes -= event_bytes(e->msg_count, e->id.len);
    event_free(s->model, e);
    if (--c->kept == 0 && c->used == CHUNK) {
        free(c->full);
        c->full = NULL;
    }
}

/* The session with the most remembered ids forgets its oldest. */
static void forget_oldest(struct model *m)
{
    struct session *most = NULL;
    uint32_t most_left = 0;

    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *s = m->session[i];
        uint32_t n = s->event_count >> CHUNK_BITS;
        while (s->first_chunk < n && (!s->chunk[s->first_chunk] || s->chunk[s->first_chunk]->full))
            s->first_chunk++; /* events kept whole stay */
        if (s->first_chunk < n && n - s->first_chunk > most_left) {
            most = s;
            most_left = n - s->first_chunk;
        }
    }
    if (!most) {
        impl_of(m)->ids = 0; /* nothing can be forgotten: do not look again for a while */
        return;
    }
    /* A sixteenth at a time, so that this search is rare. */
    for (uint32_t i = 0; i <= most_left / 16; i++) {
        uint32_t at = most->first_chunk + i;
        if (!most->chunk[at] || most->chunk[at]->full)
            continue;
        free(most->chunk[at]);
        most->chunk[at] = NULL;
        impl_of(m)->ids -= CHUNK;
    }
    most->forgotten = true;
}

/* ---- the ceilings ---- */

/* The newest events of a session are left alone. */
#define RECENT 8
/* How many of the oldest events are looked at for each new one, so that there is a way back when
 * some have to wait. */
#define LOOKS 2
/* So many before its turn an event is called into the caches. */
#define AHEAD ((size_t)4)

static void aged_prefetch(const struct impl *im)
{
    if (im->aged_count <= AHEAD)
        return;
    mem_prefetch(aged_at(im, AHEAD)->event, sizeof(struct event));
    __builtin_prefetch(aged_at(im, im->aged_count <= 4 * AHEAD ? 0 : 4 * AHEAD));
}

/* Reduces the event that has been there for the longest time, if nothing hangs on it. What is kept
 * then is kept for good. */
static void reduce_oldest(struct impl *im)
{
    struct aged a = *aged_at(im, 0);
    struct event *e = a.event;

    aged_prefetch(im);
    im->aged_first++;
    im->aged_count--;
    bool delivered = event_delivered(a.session, e);
    bool waits = !delivered && leg_is_live(a.session, e);
    if (waits || e->index + RECENT >= a.session->event_count)
        aged_add(im, a.session, e); /* its acknowledgement may still come */
    else if (delivered && is_dull(a.session, e))
        event_reduce(a.session, e);
}

void ledger_trim(struct model *m)
{
    struct impl *im = impl_of(m);

    for (int i = 0; i < LOOKS && im->full_bytes > m->opt.max_full && im->aged_count > 0; i++)
        reduce_oldest(im);
    if (im->ids > m->opt.max_ids)
        forget_oldest(m);
}

struct event *leg_event_after(const struct session *s, const struct leg *l, uint32_t after)
{
    uint32_t i = l->first_event;

    if (l->first_event == NONE)
        return NULL;
    if (after != NONE) {
        const struct event *e = event_at(s, after);
        i = e && e->leg == l->index ? e->next_in_leg : after + 1;
    }
    for (; i <= l->last_event; i++) {
        struct event_chunk *c = chunk_of(s, i);
        if (!c || !c->full) {
            i |= CHUNK - 1;
            continue;
        }
        struct event *e = c->full[i & (CHUNK - 1)];
        if (e && e->leg == l->index)
            return e;
    }
    return NULL;
}

/* ---- a cursor that was changed on its way (cursor-mangled) ---- */

static struct slice percent_decoded(struct slice in, uint8_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        int high = i + 2 < in.len && in.ptr[i] == '%' ? byte_hex(in.ptr[i + 1]) : -1;
        int low = high >= 0 ? byte_hex(in.ptr[i + 2]) : -1;
        if (low >= 0) {
            out[n++] = (uint8_t)(high * 16 + low);
            i += 2;
        } else {
            out[n++] = in.ptr[i];
        }
    }
    return (struct slice){ out, n };
}

/* UTF-8 bytes that were each taken for a Latin-1 character and encoded again, undone; or Latin-1
 * bytes where the id is UTF-8. */
static struct slice latin1_to_utf8(struct slice in, uint8_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        if (in.ptr[i] < 0x80) {
            out[n++] = in.ptr[i];
            continue;
        }
        out[n++] = (uint8_t)(0xc0 | in.ptr[i] >> 6);
        out[n++] = (uint8_t)(0x80 | (in.ptr[i] & 0x3f));
    }
    return (struct slice){ out, n };
}

static struct slice utf8_to_latin1(struct slice in, uint8_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        if ((in.ptr[i] == 0xc2 || in.ptr[i] == 0xc3) && i + 1 < in.len) {
            out[n++] = (uint8_t)((in.ptr[i] & 3) << 6 | (in.ptr[i + 1] & 0x3f));
            i++;
        } else {
            out[n++] = in.ptr[i];
        }
    }
    return (struct slice){ out, n };
}

uint32_t event_by_mangled_id(const struct session *s, struct slice cursor)
{
    static const char *const blanks[] = { " ", "  ", "\t" };
    struct arena *a = arena_new();
    uint8_t *out = arena_alloc(a, 2 * cursor.len + 8);
    uint32_t at = event_by_id(s, percent_decoded(cursor, out));

    if (at == NONE)
        at = event_by_id(s, latin1_to_utf8(cursor, out));
    if (at == NONE)
        at = event_by_id(s, utf8_to_latin1(cursor, out));
    for (size_t i = 0; at == NONE && i < ARRAY_LEN(blanks); i++) {
        size_t n = strlen(blanks[i]);
        memcpy(out, blanks[i], n);
        memcpy(out + n, cursor.ptr, cursor.len);
        at = event_by_id(s, (struct slice){ out, cursor.len + n });
        if (at != NONE)
            break;
        memmove(out, cursor.ptr, cursor.len);
        memcpy(out + cursor.len, blanks[i], n);
        at = event_by_id(s, (struct slice){ out, cursor.len + n });
    }
    arena_free(a);
    return at;
}
