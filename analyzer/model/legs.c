/* legs.c - legs, the streams they belong to, and their events (DESIGN 2: stream, ordinal, cursor).
 */
#include "model_impl.h"

#include <stdlib.h>

#define SEEN_MAX     65536 /* events of a stream that a resumed leg is compared with by content */
#define SILENCES_MAX 256
#define TAIL_MAX     65536

/* ---- legs and streams ---- */

static struct stream *stream_new(struct session *s, const struct exch *x, enum stream_kind kind)
{
    struct stream *st = arena_alloc(s->model->arena, sizeof(*st));

    st->index = s->stream_count;
    st->kind = kind;
    st->exch = x->index;
    st->retry = -1;
    GROW(s->stream, s->stream_count, s->stream_cap);
    s->stream[s->stream_count++] = st;
    return st;
}

bool exch_carries_request(const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind == RPC_REQUEST)
            return true;
    }
    return false;
}

/* A leg whose request was not seen may be the one that the cursor was given on. */
static uint32_t adopt_orphan(struct session *s, const struct exch *x)
{
    struct model *m = s->model;

    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *o = m->session[i];
        if (!o->orphan || o->event_count == 0 || !endpoint_eq(&o->server, &x->server) ||
            memcmp(o->client.addr, x->client.addr, sizeof(x->client.addr)) != 0)
            continue;
        if (event_by_id(o, x->cursor) == NONE)
            continue;
        session_absorb(s, o);
        return event_by_id(s, x->cursor);
    }
    return NONE;
}

static bool has_cursor(const struct exch *x)
{
    return x->method == HTTP_METHOD_GET && x->cursor.len > 0;
}

static struct stream *stream_of(struct session *s, const struct exch *x)
{
    struct brief b;

    if (!x->has_request)
        return stream_new(s, x, STREAM_UNKNOWN);
    if (has_cursor(x)) {
        uint32_t at = event_by_id_before(s, x->cursor, x->first.time);
        if (at == NONE)
            at = adopt_orphan(s, x);
        if (at == NONE)
            at = event_by_mangled_id(s, x->cursor);
        uint32_t tail = at == NONE ? leg_by_tail_id(s, x->cursor) : NONE;
        if (tail != NONE)
            return s->stream[s->leg[tail]->stream];
        if (at != NONE && event_brief(s, at, &b) && b.stream < s->stream_count)
            return s->stream[b.stream];
        struct stream *st = stream_new(s, x, STREAM_UNKNOWN);
        st->foreign_cursor = true;
        return st;
    }
    if (x->method == HTTP_METHOD_POST)
        return stream_new(s, x, STREAM_POST);
    return stream_new(s, x, STREAM_STANDALONE);
}

static void requests_get_stream(struct session *s, const struct exch *x, const struct stream *st)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind == RPC_REQUEST && x->msg[i].request != NONE)
            s->request[x->msg[i].request]->stream = st->index;
    }
}

/* What the stream carried so far, by content: a replay under new ids is seen by it. */
static void remember_seen(const struct session *s, struct stream *st, struct leg *l)
{
    if (!st->digests)
        st->digests = mem_alloc(sizeof(*st->digests));
    if (st->digests->count > SEEN_MAX)
        table_release(st->digests);
    if (st->digests->count == 0 && st->count > SEEN_MAX / 2)
        st->digested = st->count - SEEN_MAX / 2;
    const struct event *e;
    for (uint32_t o = st->digested; (e = stream_next(s, st, &o)); o++) {
        if (e->msg_count > 0)
            *table_put(st->digests, e->digest) = (uint64_t)e->index + 1;
    }
    st->digested = l->seen = st->count;
}

void stream_release(struct stream *st)
{
    free(st->leg);
    free(st->order);
    if (st->digests)
        table_release(st->digests);
    free(MOVE(st->digests));
}

void leg_release(struct leg *l)
{
    free(l->silence);
}

struct leg *leg_new(struct session *s, struct exch *x)
{
    struct leg *l = arena_alloc(s->model->arena, sizeof(*l));
    struct stream *st = stream_of(s, x);

    l->index = s->leg_count;
    l->stream = st->index;
    l->exch = x->index;
    l->begin = x->response;
    l->last_byte = x->response;
    l->first_event = l->last_event = l->last_id = l->last_id_acked = NONE;
    l->tail_event_whole = NONE;
    l->unacked = l->renamed_last = l->token_requests = NONE;
    l->retry = -1;
    l->end = END_OPEN;
    l->resumed = has_cursor(x);
    l->first_lost = x->head_gap || (x->rflags & RECF_HEAD_LOST);
    GROW(s->leg, s->leg_count, s->leg_cap);
    s->leg[s->leg_count++] = l;
    GROW(st->leg, st->leg_count, st->leg_cap);
    st->leg[st->leg_count++] = l->index;
    l->number = st->leg_count;
    x->leg = l->index;
    if (st->leg_count == 1 && exch_carries_request(x))
        requests_get_stream(s, x, st);
    if (l->resumed)
        remember_seen(s, st, l);
    return l;
}

bool leg_open_at(const struct leg *l, int64_t t)
{
    return l->begin.time <= t && (!l->ended || l->end == END_OPEN || l->end_at.time > t);
}

uint32_t leg_by_tail_id(const struct session *s, struct slice id)
{
    for (uint32_t i = s->leg_count; i-- > 0;) {
        const struct leg *l = s->leg[i];
        if (l->tail_bytes > 0 && l->tail_id.len > 0 && slice_eq(l->tail_id, id))
            return i;
    }
    return NONE;
}

const struct request *stream_request(const struct session *s, const struct stream *st, uint32_t *i)
{
    const struct exch *x = s->exch[st->exch];

    while (*i < x->msg_count) {
        const struct message *m = &x->msg[(*i)++];
        if (m->kind != RPC_REQUEST || m->request == NONE)
            continue;
        const struct request *q = s->request[m->request];
        if (!q->from_server && q->stream == st->index)
            return q;
    }
    return NULL;
}

uint32_t stream_legs_before(const struct session *s, const struct stream *st, int64_t t)
{
    uint32_t low = 0;
    uint32_t high = st->leg_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->leg[st->leg[mid]]->begin.time < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint32_t stream_leg_before(const struct session *s, const struct stream *st, int64_t t)
{
    uint32_t n = stream_legs_before(s, st, t);

    return n > 0 ? st->leg[n - 1] : NONE;
}

/* ---- events ---- */

static bool blank(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != ' ' && s.ptr[i] != '\n')
            return false;
    }
    return true;
}

static bool has_message(const struct rec_body *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->msg[i].kind != RPC_OTHER)
            return true;
    }
    return false;
}

static uint64_t content_digest(const struct rec_event *r, bool priming)
{
    if (priming)
        return 1;
    if (r->body.status == RPC_OK && r->body.count > 0) {
        uint64_t d = r->body.msg[0].digest;
        for (size_t i = 1; i < r->body.count; i++)
            d = hash_mix(d, r->body.msg[i].digest);
        return d;
    }
    return hash_bytes(r->data);
}

static void event_fill(struct session *s, struct event *e, const struct record *rec)
{
    const struct rec_event *r = &rec->event;
    bool nothing = !r->dispatched || blank(r->data) ||
                   (r->body.count == 1 && (r->body.msg[0].flags & RPC_EMPTY_OBJECT));
    bool message = has_message(&r->body);

    e->has_id = r->has_id;
    e->dispatched = r->dispatched;
    e->priming = r->has_id && !r->id_only_known && nothing;
    e->ambiguous = r->ambiguous;
    e->no_time = r->no_time;
    e->stripped = r->id_only_known;
    e->keepalive = !r->has_id && !message && !r->id_only_known && nothing;
    e->not_json = r->dispatched && !nothing && !message && !r->id_only_known;
    e->status = r->body.status;
    e->batch = r->body.batch;
    e->digest = r->id_only_known ? 0 : content_digest(r, e->priming);
    e->name = intern(s->model, r->event);
    e->begin = r->first;
    e->at = rec->at;
    e->tcp_end = r->tcp_end;
    e->data_len = r->data.len;
    e->retry = r->retry;
    e->oddities = r->oddities;
}

static bool same_content(const struct event *a, const struct event *b)
{
    return a->digest == b->digest || a->stripped || b->stripped;
}

/* Looks the id up: is this an event that came before, or another one under its id? */
static void event_identify(struct session *s, struct event *e, const struct id_key *key)
{
    uint32_t at = e->has_id && e->id.len ? event_by_key(s, e->id, key) : NONE;
    struct brief b;

    e->first = e->index;
    if (at == NONE)
        return;
    if (!event_at(s, at)) { /* reduced: half of the digest is left */
        if (event_brief(s, at, &b) && b.digest == (uint32_t)e->digest)
            e->first = at;
        else
            e->same_id = at;
        return;
    }
    e->same_id = at;
    for (const struct event *o = event_at(s, at); o; o = event_at(s, o->next_same_id)) {
        /* Empty priming events are all alike: outside a replay, two streams' are two events. */
        bool other = e->priming && o->stream != e->stream && !s->leg[e->leg]->resumed;
        if (!same_content(o, e) || other)
            continue;
        e->first = o->index;
        e->same_id = NONE;
        return;
    }
}

/* The same content came on this stream before, under another id (or none). */
static void event_find_renamed(struct session *s, const struct leg *l, struct event *e)
{
    const uint64_t *slot;

    if (l->seen == 0 || e->first != e->index || e->msg_count == 0 || !e->has_id)
        return;
    slot = table_get(s->stream[l->stream]->digests, e->digest);
    if (!slot || *slot == 0)
        return;
    struct event *o = event_at(s, (uint32_t)(*slot - 1));
    if (!o || o->digest != e->digest || o->ordinal >= l->seen)
        return;
    e->new_id_of = o->index;
    e->marks |= EV_PINNED;
    o->marks |= EV_PINNED;
}

/* Ids of one make in two sessions may be equal by chance: that is no proof of anything. */
static void event_find_foreign(struct session *s, const struct leg *l, struct event *e)
{
    struct model *m = s->model;

    if (!l->resumed || e->first != e->index || e->msg_count == 0 || !e->has_id ||
        e->same_id != NONE || id_same_make(leg_exch(s, l)->cursor, e->id))
        return;
    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *o = m->session[i];
        uint32_t at = o != s ? event_by_id(o, e->id) : NONE;
        struct event *other = event_at(o, at);
        if (!other || other->digest != e->digest)
            continue;
        e->marks |= EV_FOREIGN_SESSION | EV_PINNED;
        e->other_session = o;
        other->marks |= EV_PINNED;
        return;
    }
}

static void stream_append(struct session *s, struct stream *st, struct event *e)
{
    (void)s;
    e->ordinal = st->count;
    GROW(st->order, st->count, st->cap);
    st->order[st->count++] = e->index;
}

/*
 * A replay on another stream's leg was the first to show this event; here it comes on a leg that
 * was opened without a cursor, so this is the stream that it belongs to.
 */
static void event_rebind(struct session *s, struct event *first, struct event *e, struct leg *l)
{
    struct event_chunk *c = s->chunk[first->index >> CHUNK_BITS];

    if (l->resumed || !s->leg[first->leg]->resumed || first->stream == l->stream ||
        first->ordinal == NONE || (first->marks & EV_REBOUND))
        return;
    s->stream[first->stream]->order[first->ordinal] = NONE;
    first->marks |= EV_REBOUND | EV_PINNED;
    first->stream = l->stream;
    stream_append(s, s->stream[l->stream], first);
    c->brief[first->index & (CHUNK - 1)].stream = l->stream;
    c->brief[first->index & (CHUNK - 1)].ordinal = first->ordinal;
    e->marks |= EV_PINNED;
}

static void event_bind(struct session *s, struct leg *l, struct event *e, const struct id_key *key)
{
    struct event *first = event_at(s, e->first);

    e->ordinal = NONE;
    e->stream = l->stream;
    if (e->first != e->index) {
        e->marks |= EV_PINNED;
        if (first) {
            first->marks |= EV_PINNED;
            event_rebind(s, first, e, l);
        }
    } else if (!e->keepalive) {
        stream_append(s, s->stream[l->stream], e);
    }
    event_index_id(s, e, key);
    if (e->same_id != NONE) {
        s->ids_reused = true;
        e->marks |= EV_PINNED;
    }
}

static void leg_chain(struct session *s, struct leg *l, struct event *e)
{
    struct event *last = event_at(s, l->last_event);

    if (last)
        last->next_in_leg = e->index;
    if (l->first_event == NONE)
        l->first_event = e->index;
    l->last_event = e->index;
    if (l->unacked == NONE)
        l->unacked = e->index;
    if (e->has_id || e->dispatched) {
        l->event_count++;
        s->stream[l->stream]->events++;
        s->counted_events++;
    }
    if (e->has_id) {
        l->id_reset = e->id.len == 0;
        if (e->id.len > 0)
            l->last_id = e->index;
    }
    if (e->retry >= 0)
        l->retry = s->stream[l->stream]->retry = e->retry;
}

static void leg_oddities(struct leg *l, const struct event *e)
{
    l->oddities |= e->oddities;
    if (e->oddities == 0)
        return;
    for (unsigned i = 0; i < ARRAY_LEN(l->oddity_at); i++) {
        if ((e->oddities >> i & 1) && !l->oddity_at[i].time)
            l->oddity_at[i] = e->at;
    }
}

static void keepalive_seen(struct leg *l, struct place at)
{
    if (l->last_keepalive.time)
        l->period[l->period_count++ % LEG_PERIODS] = at.time - l->last_keepalive.time;
    l->last_keepalive = at;
}

/* Is the tail of an earlier leg the beginning of this event? */
static void tails_match(struct session *s, const struct stream *st, const struct event *e,
                        struct slice data)
{
    for (uint32_t i = 0; st->has_tails && i + 1 < st->leg_count; i++) {
        struct leg *l = s->leg[st->leg[i]];
        if (!l->tail_fields || l->tail_event_whole != NONE || l->index == e->leg)
            continue;
        if (l->tail_has_id ? !slice_eq(l->tail_id, e->id) : !slice_starts(e->id, l->tail_id))
            continue;
        if (l->tail_has_id || l->tail_data.len == 0 || slice_starts(data, l->tail_data))
            l->tail_event_whole = e->index;
    }
}

void leg_event(struct session *s, struct exch *x, const struct record *rec,
               const struct exch *shown_by)
{
    struct leg *l = s->leg[x->leg];
    const struct rec_event *r = &rec->event;
    size_t msgs = r->body.status == RPC_OK ? r->body.count : 0;
    struct event *e = event_new(s, msgs, r->id);
    struct id_key key = id_key_of(e->id);

    ids_prefetch(s, &key); /* far from the caches, and not needed yet */
    e->leg = l->index;
    e->stream = l->stream;
    e->shown_by = shown_by;
    e->next_in_leg = e->same_id = e->next_same_id = e->new_id_of = e->track = NONE;
    event_fill(s, e, rec);
    messages_fill(s->model, e->msg, &r->body, e->at);
    event_identify(s, e, &key);
    event_find_renamed(s, l, e);
    event_find_foreign(s, l, e);
    event_bind(s, l, e, &key);
    leg_chain(s, l, e);
    leg_oddities(l, e);
    if (e->keepalive)
        keepalive_seen(l, e->at);
    for (size_t i = 0; i < msgs; i++)
        message_from_server(s, x, l, e, &e->msg[i]);
    e->dull_messages = messages_are_dull(s, e);
    if (e->first == e->index && l->number > 1 && !e->priming)
        tails_match(s, s->stream[l->stream], e, r->data);
    l->last_byte = e->at;
    if (!shown_by && x->acked_to >= e->tcp_end && x->acked_to > 0)
        leg_ack(s, x, x->acked_to, x->acked);
}

void leg_comment(struct leg *l, const struct record *rec)
{
    if (l->comments++ == 0)
        l->first_comment = rec->at;
    l->last_comment = rec->at;
    l->last_byte = rec->at;
    keepalive_seen(l, rec->at);
}

void event_acked(struct leg *l, struct event *e, struct place at)
{
    e->acked = at;
    for (uint32_t j = 0; j < e->msg_count; j++)
        e->msg[j].acked = at;
    if (e->has_id && e->id.len > 0)
        l->last_id_acked = e->index;
}

void leg_ack(struct session *s, struct exch *x, uint64_t offset, struct place at)
{
    struct leg *l = s->leg[x->leg];
    uint32_t i = l->unacked;

    if (offset > x->acked_to) {
        x->acked_to = offset;
        x->acked = at;
    }
    while (i != NONE) {
        struct event *e = event_at(s, i);
        if (!e)
            e = leg_event_after(s, l, i); /* a reduced one waits for nothing */
        if (!e || (!e->shown_by && e->tcp_end > offset))
            break;
        if (!e->shown_by && !e->acked.time)
            event_acked(l, e, at);
        i = e->next_in_leg;
    }
    l->unacked = i;
}

bool event_delivered(const struct session *s, const struct event *e)
{
    const struct leg *l = s->leg[e->leg];
    bool client_closed = l->end == END_CLIENT_FIN || l->end == END_CLIENT_RST;

    if (client_closed && l->end_at.time && e->at.time > l->end_at.time)
        return false;
    if (e->acked.time != 0)
        return true;
    const struct exch *x = leg_exch(s, l);
    /* A capture of one direction alone holds no acknowledgement of anything. */
    return (x->rflags & RECF_HAR) || (x->acked_to == 0 && !x->has_request);
}

void leg_silence(struct leg *l, const struct silence *sil)
{
    if (l->silence_count >= SILENCES_MAX) { /* the last one, before the end, counts most */
        l->silence[SILENCES_MAX - 1] = *sil;
        return;
    }
    GROW(l->silence, l->silence_count, l->silence_cap);
    l->silence[l->silence_count++] = *sil;
}

static bool looks_like_response(struct slice data)
{
    return (memmem(data.ptr, data.len, "\"result\"", 8) ||
            memmem(data.ptr, data.len, "\"error\"", 7)) &&
           !memmem(data.ptr, data.len, "\"method\"", 8);
}

static struct slice cut(struct slice s, size_t max)
{
    return (struct slice){ s.ptr, s.len > max ? max : s.len };
}

void leg_end(struct session *s, struct leg *l, const struct record *rec)
{
    const struct rec_end *r = &rec->end;
    struct arena *a = s->model->arena;

    l->ended = true;
    l->end = r->kind;
    l->end_at = rec->at;
    if (r->last.time)
        l->last_byte = r->last;
    l->tail_bytes = r->tail_bytes;
    if (r->tail_bytes == 0)
        return;
    l->tail_at = r->tail_at;
    l->tail_fields = r->tail_fields;
    s->stream[l->stream]->has_tails |= r->tail_fields;
    l->tail_has_id = r->tail_has_id;
    l->tail_id = arena_copy(a, cut(r->tail_id, TAIL_MAX));
    l->tail_data = arena_copy(a, cut(r->tail_data, TAIL_MAX));
    l->tail_event = arena_copy(a, cut(r->tail_event, 256));
    l->tail_response = looks_like_response(l->tail_data);
}
