/* session.c - which session an exchange belongs to (DESIGN 2, "session key"). */
#include "model_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static struct slice intern_look_up(struct model *m, struct slice s)
{
    for (uint64_t key = hash_bytes(s);; key = table_again(key)) {
        uint64_t *slot = table_put(&impl_of(m)->interned, key);
        struct slice *have = (struct slice *)(uintptr_t)*slot;
        if (have && !slice_eq(*have, s))
            continue;
        if (!have) {
            have = arena_alloc(m->arena, sizeof(*have));
            *have = (struct slice){ (const uint8_t *)arena_str(m->arena, s), s.len };
            *slot = (uint64_t)(uintptr_t)have;
        }
        return *have;
    }
}

struct slice intern(struct model *m, struct slice s)
{
    if (!s.ptr)
        return s;
    /* Most strings are names that every message has. */
    size_t kind = s.len > 0 ? s.len + s.ptr[0] + s.ptr[s.len - 1] : 0;
    struct slice *recent = &impl_of(m)->recent[kind % ARRAY_LEN(impl_of(m)->recent)];
    if (!recent->ptr || !slice_eq(*recent, s))
        *recent = intern_look_up(m, s);
    return *recent;
}

const char *intern_str(struct model *m, struct slice s)
{
    return s.ptr ? (const char *)intern(m, s).ptr : NULL;
}

static uint64_t session_key(struct slice authority, struct slice id)
{
    return hash_mix(hash_bytes(authority), hash_bytes(id));
}

struct session *session_find(struct model *m, struct slice authority, struct slice id)
{
    uint64_t key = session_key(authority, id);

    for (;; key = table_again(key)) {
        const uint64_t *slot = table_get(&impl_of(m)->sessions, key);
        if (!slot || *slot == 0)
            return NULL;
        struct session *s = m->session[*slot - 1];
        if (slice_eq(s->authority, authority) && (slice_eq(s->key, id) || slice_eq(s->alias, id)))
            return s;
    }
}

static void session_register(struct model *m, const struct session *s, struct slice key)
{
    uint64_t hash = session_key(s->authority, key);

    while (*table_put(&impl_of(m)->sessions, hash) != 0)
        hash = table_again(hash);
    *table_put(&impl_of(m)->sessions, hash) = (uint64_t)s->index + 1;
}

struct session *session_new(struct model *m, struct slice authority, struct slice id)
{
    struct session *s = arena_alloc(m->arena, sizeof(*s));

    s->index = m->session_count;
    s->model = m;
    s->authority = intern(m, authority);
    s->key = s->id = intern(m, id);
    s->initialize = NONE;
    s->initialized = NONE;
    s->gone_exch = NONE;
    s->policy_example = NONE;
    s->log_expected = m->log && m->log->count > 0;
    s->requests_by_id = arena_alloc(m->arena, sizeof(struct table));
    s->requests_by_token = arena_alloc(m->arena, sizeof(struct table));
    GROW(m->session, m->session_count, m->session_cap);
    m->session[m->session_count++] = s;
    session_register(m, s, s->key);
    return s;
}

void session_free(struct session *s)
{
    for (uint32_t i = 0; i < (s->event_count + CHUNK - 1) >> CHUNK_BITS; i++) {
        struct event_chunk *c = s->chunk[i];
        for (uint32_t j = 0; c && c->full && j < CHUNK; j++)
            event_free(s->model, c->full[j]);
        if (c)
            free(c->full);
        free(c);
    }
    free(s->chunk);
    for (uint32_t i = 0; i < s->leg_count; i++)
        leg_release(s->leg[i]);
    for (uint32_t i = 0; i < s->stream_count; i++) {
        stream_release(s->stream[i]);
    }
    for (uint32_t i = 0; i < s->track_count; i++) {
        free(s->track[i].entry);
        free(s->track[i].time);
    }
    free(s->exch);
    free(s->leg);
    free(s->stream);
    free(s->request);
    free(s->resumption);
    free(s->tool);
    free(s->track);
    free(s->log_entry);
    free(s->log_time);
    free(s->unmatched);
    free(s->unmatched_time);
    free(s->peer);
    ids_release(&s->ids);
    table_release(s->requests_by_id);
    table_release(s->requests_by_token);
}

/* Who speaks, where there is no session id: client address without port, credentials, target. */
static struct slice sessionless_id(struct model *m, const struct exch *x)
{
    char host[ENDPOINT_TEXT];

    endpoint_host(&x->client, host);
    return intern(
        m, slice_str(arena_printf(m->arena, "\x01%s %016llx " SLICE_FMT, host,
                                  (unsigned long long)x->credentials, SLICE_ARG(x->target))));
}

/* A HAR does not tell the client's address: the only client of packets that asks the same. */
static struct session *only_sessionless(const struct model *m, const struct exch *x)
{
    struct session *only = NULL;

    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *s = m->session[i];
        if (s->id.ptr || s->orphan || s->replaces || s->alias.ptr || s->exch_count == 0 ||
            !slice_eq(s->authority, x->authority) || !slice_eq(s->exch[0]->target, x->target))
            continue;
        if (only)
            return NULL;
        only = s;
    }
    return only;
}

static void session_alias(struct model *m, struct session *s, struct slice key)
{
    s->alias = key;
    session_register(m, s, key);
}

void session_is_of(struct model *m, struct session *s, const struct exch *x)
{
    struct slice key = sessionless_id(m, x);

    if (!s->id.ptr && !s->alias.ptr && !session_find(m, s->authority, key))
        session_alias(m, s, key);
}

struct session *session_sessionless(struct model *m, const struct exch *x)
{
    struct slice key = sessionless_id(m, x);
    struct session *s = session_find(m, x->authority, key);

    if (s) {
        /* A client that initializes again starts anew; the newest one counts. */
        while (s->replaced_by && !s->replaced_by->id.ptr)
            s = s->replaced_by;
        return s;
    }
    s = x->flags & RECF_HAR ? only_sessionless(m, x) : NULL;
    if (s) {
        session_alias(m, s, key);
        return s;
    }
    s = session_new(m, x->authority, key);
    s->id = (struct slice){ 0 };
    return s;
}

/* A reference that is no absolute path, against the address of its stream (RFC 3986 5.2.3). */
static struct slice resolve(struct model *m, struct slice base, struct slice ref)
{
    const uint8_t *query = base.len > 0 ? memchr(base.ptr, '?', base.len) : NULL;

    if (ref.len > 0 && *ref.ptr == '/')
        return ref;
    if (query)
        base.len = (size_t)(query - base.ptr);
    if (slice_starts(ref, SLICE_LIT("./")))
        ref = (struct slice){ ref.ptr + 2, ref.len - 2 };
    while (ref.len > 0 && *ref.ptr != '?' && base.len > 0 && base.ptr[base.len - 1] != '/')
        base.len--;
    return slice_str(arena_printf(m->arena, SLICE_FMT SLICE_FMT, SLICE_ARG(base), SLICE_ARG(ref)));
}

struct session *session_legacy(struct model *m, const struct exch *x, struct slice endpoint)
{
    /* The endpoint may be absolute: only path and query identify it. */
    const uint8_t *p = memmem(endpoint.ptr, endpoint.len, "://", 3);

    if (p) {
        p = memchr(p + 3, '/', endpoint.len - (size_t)(p + 3 - endpoint.ptr));
        if (p)
            endpoint = (struct slice){ p, endpoint.len - (size_t)(p - endpoint.ptr) };
    }
    endpoint = resolve(m, x->target, endpoint);
    struct session *s = session_find(m, x->authority, endpoint);
    if (!s)
        s = session_new(m, x->authority, endpoint);
    s->legacy = true;
    s->era = ERA_L;
    return s;
}

struct session *session_orphan(struct model *m, const struct exch *x)
{
    char text[ENDPOINT_TEXT];
    struct slice key = slice_str(arena_printf(m->arena, "\x02%llu %s", (unsigned long long)x->conn,
                                              endpoint_text(&x->client, text)));
    struct session *s = session_find(m, x->authority, key);

    if (s)
        return s;
    s = session_new(m, x->authority, key);
    s->id = (struct slice){ 0 };
    s->orphan = true;
    s->starts_late = true;
    return s;
}

struct session *session_of_request(struct model *m, const struct exch *x)
{
    struct session *s;

    if (!x->has_request)
        return session_orphan(m, x);
    s = session_find(m, x->authority, x->target);
    if (s && s->legacy)
        return s;
    if (x->initialize)
        return NULL; /* the response names it */
    if (x->session_id.ptr && x->session_id.len > 0) {
        s = session_find(m, x->authority, x->session_id);
        if (s)
            return s;
        s = session_new(m, x->authority, x->session_id);
        s->starts_late = true;
        return s;
    }
    if (x->method == HTTP_METHOD_GET)
        return NULL; /* its first event may be that of the legacy transport */
    return session_sessionless(m, x);
}

static struct session *initialize_sessionless(struct model *m, const struct exch *x)
{
    struct session *s = session_sessionless(m, x);

    if (s->initialize == NONE && s->exch_count == 0)
        return s;
    if (x->status == 0 || x->status >= 400)
        return s; /* refused: nothing new began */
    char *key = arena_printf(m->arena, "\x03%llu", (unsigned long long)x->serial);
    struct session *next = session_new(m, x->authority, slice_str(key));
    next->id = (struct slice){ 0 };
    next->replaces = s;
    s->replaced_by = next;
    return next;
}

struct session *session_of_response(struct model *m, struct exch *x)
{
    if (!x->initialize)
        return session_sessionless(m, x);
    struct slice id = x->response_session;
    if ((!id.ptr || id.len == 0) && x->session_id.len > 0)
        id = x->session_id;
    if (!id.ptr || id.len == 0)
        return initialize_sessionless(m, x);
    struct session *s = session_find(m, x->authority, id);
    return s ? s : session_new(m, x->authority, id);
}

void session_peer(struct session *s, const struct exch *x)
{
    uint64_t agent = hash_bytes(x->user_agent);

    for (uint32_t i = 0; i < s->peer_count; i++) {
        struct peer *p = &s->peer[i];
        if (memcmp(p->client.addr, x->client.addr, sizeof(p->client.addr)) == 0 &&
            p->user_agent == agent) {
            p->last = x->first;
            return;
        }
    }
    if (s->peer_count >= 64)
        return;
    GROW(s->peer, s->peer_count, s->peer_cap);
    s->peer[s->peer_count++] = (struct peer){
        .client = x->client, .user_agent = agent, .first = x->first, .last = x->first
    };
}

static void initialize_attached(struct session *s, struct exch *x)
{
    if (s->initialize != NONE && (x->status == 0 || x->status >= 400))
        return;
    s->initialize = x->index;
    s->starts_late = false;
}

void session_attach(struct session *s, struct exch *x)
{
    GROW(s->exch, s->exch_count, s->exch_cap);
    x->session = s;
    x->index = s->exch_count;
    s->exch[s->exch_count++] = x;
    if (s->exch_count == 1) {
        s->first = x->first.time ? x->first : x->response;
        s->server = x->server;
        s->client = x->client;
    }
    if (x->has_request)
        session_peer(s, x);
    if (x->initialize)
        initialize_attached(s, x);
    for (uint32_t i = 0; i < x->msg_count; i++)
        message_from_client(s, x, &x->msg[i]);
}

static void absorb_event(struct session *s, struct session *from, uint32_t at, uint32_t base)
{
    struct event_chunk *c = from->chunk[at >> CHUNK_BITS];
    struct event *e = c && c->full ? c->full[at & (CHUNK - 1)] : NULL;

    event_adopt(s, e);
    if (!e)
        return;
    c->full[at & (CHUNK - 1)] = NULL;
    e->leg += s->leg_count;
    e->stream += s->stream_count;
    e->first += base;
    if (e->next_in_leg != NONE)
        e->next_in_leg += base;
    if (e->new_id_of != NONE)
        e->new_id_of += base;
    if (e->same_id != NONE)
        e->same_id += base;
    e->next_same_id = NONE;
    for (uint32_t i = 0; i < e->msg_count; i++) {
        e->msg[i].event = e->index;
        e->msg[i].exch += s->exch_count;
        e->msg[i].request = NONE; /* requests of the orphan's were none of the client's */
    }
    struct id_key key = id_key_of(e->id);
    event_index_id(s, e, &key);
}

static uint32_t moved(uint32_t index, uint32_t base)
{
    return index == NONE ? NONE : index + base;
}

static void absorb_leg(struct session *s, struct leg *l, uint32_t base)
{
    l->index = s->leg_count;
    l->token_requests = NONE;
    l->first_event = moved(l->first_event, base);
    l->last_event = moved(l->last_event, base);
    l->last_id = moved(l->last_id, base);
    l->last_id_acked = moved(l->last_id_acked, base);
    l->tail_event_whole = moved(l->tail_event_whole, base);
    l->unacked = moved(l->unacked, base);
    GROW(s->leg, s->leg_count, s->leg_cap);
    s->leg[s->leg_count++] = l;
}

void session_absorb(struct session *s, struct session *from)
{
    uint32_t base = s->event_count;
    uint32_t legs = s->leg_count;
    uint32_t streams = s->stream_count;
    uint32_t exchs = s->exch_count;

    for (uint32_t i = 0; i < from->event_count; i++)
        absorb_event(s, from, i, base);
    ledger_take_over(s, from, base);
    for (uint32_t i = 0; i < from->leg_count; i++) {
        struct leg *l = from->leg[i];
        l->stream += streams;
        l->exch += exchs;
        absorb_leg(s, l, base);
    }
    for (uint32_t i = 0; i < from->stream_count; i++) {
        struct stream *st = from->stream[i];
        st->index += streams;
        st->exch += exchs;
        for (uint32_t j = 0; j < st->leg_count; j++)
            st->leg[j] += legs;
        for (uint32_t j = 0; j < st->count; j++)
            st->order[j] = moved(st->order[j], base);
        assert(!st->digests); /* no leg without a request is resumed */
        GROW(s->stream, s->stream_count, s->stream_cap);
        s->stream[s->stream_count++] = st;
    }
    for (uint32_t i = 0; i < from->exch_count; i++) {
        struct exch *x = from->exch[i];
        if (x->leg != NONE)
            x->leg += legs;
        session_attach(s, x);
    }
    if (from->first.time && (s->first.time == 0 || from->first.time < s->first.time))
        s->first = from->first;
    s->counted_events += from->counted_events;
    s->starts_late |= from->starts_late;
    /* What is left of it is empty chunks and arrays, whose contents live on in s. */
    for (uint32_t i = 0; i < (from->event_count + CHUNK - 1) >> CHUNK_BITS; i++) {
        if (from->chunk[i])
            free(from->chunk[i]->full);
        free(from->chunk[i]);
    }
    from->event_count = from->leg_count = from->stream_count = from->exch_count = 0;
    from->counted_events = 0;
}
