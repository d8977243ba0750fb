/*
 * conn.c - see conn.h. Until it is known what a connection speaks its chunks are kept (few and
 * small: the first bytes tell); then a layer is made and gets them all.
 */
#include "conn.h"

#include "h1.h"
#include "h1_sync.h"
#include "h2.h"

#include <stdlib.h>

#define HEAD_MAX  64 /* first bytes of a side that are looked at */
#define EARLY_MAX 32 /* chunks kept while nothing is known */
/* Conflicts noted one by one; more are summed up at the end. */
#define CONFLICTS_MAX 16
#define SERVERS       1024

enum proto { PROTO_NONE, PROTO_H1, PROTO_H2, PROTO_TLS };

/* A chunk that came before it was known what is spoken. */
struct early {
    struct flow_chunk chunk;
    uint8_t *bytes; /* of its piece */
};

enum talk_state { TALK_UNKNOWN, TALK_OURS, TALK_OTHER };

struct talk {
    struct conns *all;
    struct talk *prev, *next;
    struct conn conn;
    uint64_t serial;
    enum talk_state state;
    struct layer layer;
    unsigned client_side;
    bool oriented;       /* a SYN told client_side */
    bool hurt[2];        /* something is missing at the start of the side */
    bool spoke[2];       /* it had data */
    unsigned first_side; /* whose data came first, once one spoke */
    uint8_t head[2][HEAD_MAX];
    uint8_t head_len[2];
    struct early *early;
    size_t early_count;
    size_t early_cap;
    uint64_t conflicts;
    struct place conflict_at;
};

/* What runs at an endpoint, as other connections showed. A hint, so a newer one may overwrite. */
struct server {
    struct endpoint at;
    bool known;
    enum proto proto;
};

struct conns {
    struct exchanges *exchanges;
    const struct keylog *keys;
    struct talk *first;
    uint64_t serials;
    uint64_t other;
    bool truncated;
    struct server server[SERVERS];
};

struct conns *conns_new(struct exchanges *all, const struct keylog *keys)
{
    struct conns *c = mem_alloc(sizeof(*c));

    c->exchanges = all;
    c->keys = keys;
    return c;
}

static struct talk *talk_new(struct conns *c)
{
    struct talk *t = mem_alloc(sizeof(*t));

    t->all = c;
    t->serial = ++c->serials;
    t->next = c->first;
    if (t->next)
        t->next->prev = t;
    c->first = t;
    return t;
}

static void early_drop(struct talk *t)
{
    for (size_t i = 0; i < t->early_count; i++)
        free(t->early[i].bytes);
    free(t->early);
    t->early = NULL;
    t->early_count = t->early_cap = 0;
}

static void talk_free(struct talk *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        t->all->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    early_drop(t);
    free(t);
}

/* --- what runs where --- */

static struct server *server_slot(struct conns *c, const struct endpoint *at)
{
    uint64_t host = hash_bytes((struct slice){ at->addr, sizeof(at->addr) });

    return &c->server[hash_mix(host, at->port) % SERVERS];
}

static void server_learn(struct conns *c, const struct endpoint *at, enum proto proto)
{
    struct server *s = server_slot(c, at);

    if (proto == PROTO_NONE && s->known && endpoint_eq(&s->at, at))
        return;
    *s = (struct server){ .at = *at, .known = true, .proto = proto };
}

static const struct server *server_find(struct conns *c, const struct endpoint *at)
{
    const struct server *s = server_slot(c, at);

    return s->known && endpoint_eq(&s->at, at) ? s : NULL;
}

/* --- what the bytes say --- */

enum answer { ANSWER_NO, ANSWER_MAYBE, ANSWER_YES };

static struct slice head_of(const struct talk *t, unsigned side)
{
    return (struct slice){ t->head[side], t->head_len[side] };
}

static bool fits_so_far(struct slice s, struct slice text)
{
    return s.len < text.len && memcmp(s.ptr, text.ptr, s.len) == 0;
}

/* A ClientHello or ServerHello (RFC 8446 4), or the alert that refuses it. */
static enum answer hello_starts(struct slice s, enum dir dir)
{
    static const uint8_t handshake[] = { 0x16, 0x03 };
    const uint8_t hello = dir == DIR_CLIENT ? 1 : 2;

    if (fits_so_far(s, (struct slice){ handshake, sizeof(handshake) }))
        return ANSWER_MAYBE;
    if (s.len >= 5 && !tls_is(s))
        return ANSWER_NO;
    if (s.ptr[0] == 0x15 && dir == DIR_SERVER && s.len >= 5)
        return ANSWER_YES;
    if (s.ptr[0] != handshake[0] || s.ptr[1] != handshake[1])
        return ANSWER_NO;
    if (s.len < 6)
        return ANSWER_MAYBE;
    return s.ptr[5] == hello ? ANSWER_YES : ANSWER_NO;
}

/* The preface of either side (RFC 9113 3.4). */
static enum answer h2_starts(struct slice s, enum dir dir)
{
    if (dir == DIR_CLIENT && fits_so_far(s, SLICE_LIT(H2_PREFACE)))
        return ANSWER_MAYBE;
    if (dir == DIR_CLIENT)
        return h2_is_preface(s) ? ANSWER_YES : ANSWER_NO;
    /* SETTINGS on stream 0, no acknowledgement, of less than 256 bytes */
    static const uint8_t settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
    for (size_t i = 0; i < s.len && i < sizeof(settings); i++) {
        if (i == 2 ? s.ptr[i] % 6 != 0 : s.ptr[i] != settings[i])
            return ANSWER_NO;
    }
    return s.len < sizeof(settings) ? ANSWER_MAYBE : ANSWER_YES;
}

static enum answer h1_starts(struct slice s, enum dir dir)
{
    switch (h1_match_start(dir, s)) {
    case H1_MATCH_NO: return ANSWER_NO;
    case H1_MATCH_MAYBE: return ANSWER_MAYBE;
    case H1_MATCH_YES: break;
    }
    return ANSWER_YES;
}

/* Do a direction's first bytes start one of our protocols? */
static enum answer starts(struct slice s, enum dir dir, enum proto *ret)
{
    static const struct {
        enum proto proto;
        enum answer (*starts)(struct slice s, enum dir dir);
    } protos[] = {
        { PROTO_H1, h1_starts },
        { PROTO_H2, h2_starts },
        { PROTO_TLS, hello_starts },
    };
    enum answer best = ANSWER_NO;

    for (size_t i = 0; i < ARRAY_LEN(protos) && s.len > 0; i++) {
        enum answer a = protos[i].starts(s, dir);
        if (a <= best)
            continue;
        best = a;
        *ret = protos[i].proto;
    }
    return best;
}

/* A line of an event stream that is all there (WHATWG HTML 9.2.6), in the first part of s. */
static bool looks_like_events(struct slice s)
{
    static const char *const starts[] = { "data:", "id:", "event:", "retry:", ": " };

    if (s.len > 512)
        s.len = 512;
    while (s.len > 0) {
        const uint8_t *lf = memchr(s.ptr, '\n', s.len);
        for (size_t i = 0; lf && i < ARRAY_LEN(starts); i++) {
            if (slice_starts(s, slice_str(starts[i])))
                return true;
        }
        if (!lf)
            return false;
        s.len -= (size_t)(lf + 1 - s.ptr);
        s.ptr = lf + 1;
    }
    return false;
}

/* --- the layer --- */

static void note(const struct talk *t, enum note_kind kind, uint64_t count, struct place at)
{
    exchanges_note(t->all->exchanges, 0,
                   (struct rec_note){ kind, count, t->conn.tcp_stream, (struct slice){ 0 } }, at);
}

static struct layer upgrade(void *ctx, struct slice protocol, struct exchange *pending)
{
    struct talk *t = ctx;

    if (slice_eq_nocase(protocol, SLICE_LIT("h2c")))
        return h2_new(t->all->exchanges, &t->conn, t->serial, pending);
    if (slice_eq_nocase(protocol, SLICE_LIT("websocket")))
        note(t, NOTE_WEBSOCKET, 1, t->conn.first);
    return (struct layer){ 0 };
}

static struct layer above_tls(void *ctx, struct slice alpn, struct slice first, enum dir dir);

static struct layer layer_make(struct talk *t, enum proto proto)
{
    struct conns *c = t->all;

    switch (proto) {
    case PROTO_H1:
        return h1_new(c->exchanges, &t->conn, t->serial,
                      (struct h1_upgrade){ .take = upgrade, .ctx = t });
    case PROTO_H2: return h2_new(c->exchanges, &t->conn, t->serial, NULL);
    case PROTO_TLS:
        return tls_new(c->exchanges, c->keys, &t->conn,
                       (struct tls_above){ .make = above_tls, .ctx = t });
    case PROTO_NONE: break;
    }
    return (struct layer){ 0 };
}

static struct layer above_tls(void *ctx, struct slice alpn, struct slice first, enum dir dir)
{
    struct talk *t = ctx;
    enum proto proto = PROTO_NONE;

    if (slice_eq(alpn, SLICE_LIT("h2")))
        return layer_make(t, PROTO_H2);
    if (slice_eq(alpn, SLICE_LIT("http/1.1")) || slice_eq(alpn, SLICE_LIT("http/1.0")))
        return layer_make(t, PROTO_H1);
    if (alpn.len == 0 && starts(first, dir, &proto) == ANSWER_NO && t->conn.starts_late) {
        if (h2_is_frames(first))
            proto = PROTO_H2;
        else if (looks_like_events(first) || h1_is_chunks(first))
            proto = PROTO_H1;
    }
    if (proto == PROTO_TLS)
        proto = PROTO_NONE;
    if (proto == PROTO_NONE)
        t->all->other++;
    return layer_make(t, proto);
}

static enum dir dir_of(const struct talk *t, unsigned side)
{
    return side == t->client_side ? DIR_CLIENT : DIR_SERVER;
}

static void conflict(struct talk *t, struct place at)
{
    if (t->conflicts++ < CONFLICTS_MAX)
        note(t, NOTE_CONFLICT, 1, at);
    t->conflict_at = at;
}

static void forward(struct talk *t, const struct flow_chunk *c)
{
    const struct layer_ops *ops = t->layer.ops;
    void *self = t->layer.self;
    enum dir dir = dir_of(t, c->side);

    if (!ops)
        return;
    switch (c->kind) {
    case FLOW_DATA: ops->data(self, dir, &c->piece); return;
    case FLOW_GAP: ops->gap(self, dir, c->gap_bytes, c->at); return;
    case FLOW_ACK: ops->ack(self, dir, c->tcp_offset, c->at); return;
    case FLOW_SILENCE: ops->silence(self, dir, &c->silence); return;
    case FLOW_CLOSE:
        t->conn.middlebox |= c->middlebox;
        ops->close(self, dir, c->close, c->at);
        return;
    case FLOW_CONFLICT: conflict(t, c->at); return;
    case FLOW_DONE: return; /* talk_end() */
    }
}

/* --- the decision --- */

struct decision {
    enum proto proto;
    unsigned client_side;
    bool from_client; /* it is the client's first bytes that told */
};

static void conn_orient(struct talk *t, unsigned client_side)
{
    if (client_side != t->client_side) {
        struct endpoint e = t->conn.client;
        t->conn.client = t->conn.server;
        t->conn.server = e;
    }
    t->client_side = client_side;
}

static void talk_begin(struct talk *t, const struct decision *d)
{
    conn_orient(t, d->client_side);
    t->state = TALK_OURS;
    t->conn.tls = d->proto == PROTO_TLS;
    /* Nothing is missing when all that there is begins with the client's first bytes. */
    if (d->from_client && t->first_side == d->client_side && !t->hurt[0] && !t->hurt[1])
        t->conn.starts_late = false;
    if (t->conn.starts_late)
        note(t, NOTE_STARTS_LATE, 1, t->conn.first);
    server_learn(t->all, &t->conn.server, d->proto);
    t->layer = layer_make(t, d->proto);
    for (size_t i = 0; i < t->early_count; i++)
        forward(t, &t->early[i].chunk);
    early_drop(t);
}

/* Tries both roles unless a SYN told them. */
static enum answer decide_by_start(const struct talk *t, struct decision *ret)
{
    enum answer best = ANSWER_NO;

    for (unsigned client = 0; client < 2; client++) {
        if (t->oriented && client != t->client_side)
            continue;
        for (unsigned side = 0; side < 2; side++) {
            enum proto proto = PROTO_NONE;
            enum answer a =
                starts(head_of(t, side), side == client ? DIR_CLIENT : DIR_SERVER, &proto);
            if (a <= best)
                continue;
            best = a;
            *ret = (struct decision){ .proto = proto,
                                      .client_side = client,
                                      .from_client = side == client };
        }
    }
    return best;
}

static unsigned guess_client(const struct talk *t)
{
    if (t->oriented)
        return t->client_side;
    if (server_find(t->all, &t->conn.server))
        return t->client_side;
    if (server_find(t->all, &t->conn.client))
        return t->client_side ^ 1;
    return t->conn.server.port <= t->conn.client.port ? t->client_side : t->client_side ^ 1;
}

/* The capture joins in the middle of something; sample: bytes of `side`. */
static bool decide_by_guess(const struct talk *t, struct slice sample, unsigned side,
                            struct decision *ret)
{
    struct decision d = { .proto = PROTO_NONE, .client_side = guess_client(t) };
    const struct endpoint *server =
        d.client_side == t->client_side ? &t->conn.server : &t->conn.client;
    const struct server *known = server_find(t->all, server);

    if (h2_is_frames(sample)) {
        d.proto = PROTO_H2;
    } else if (tls_is(sample)) {
        d.proto = PROTO_TLS;
    } else if (looks_like_events(sample) || h1_is_chunks(sample)) {
        d.proto = PROTO_H1;
        if (!t->oriented)
            d.client_side = side ^ 1;
    } else if (known) {
        d.proto = known->proto;
    }
    *ret = d;
    return d.proto != PROTO_NONE;
}

static bool is_hurt(const struct talk *t)
{
    return t->conn.starts_late || t->hurt[0] || t->hurt[1];
}

/* last: no more bytes will come before it must be known. */
static void decide(struct talk *t, struct slice sample, unsigned side, bool last)
{
    struct decision d;

    if (t->head_len[0] + t->head_len[1] == 0)
        return;
    enum answer a = decide_by_start(t, &d);
    if (a == ANSWER_YES || (a == ANSWER_MAYBE && last)) {
        talk_begin(t, &d);
        return;
    }
    if (a == ANSWER_MAYBE && !last)
        return;
    if (is_hurt(t) && decide_by_guess(t, sample, side, &d)) {
        talk_begin(t, &d);
        return;
    }
    /* A server may speak before its client: what that says decides. */
    if (!last && t->oriented && t->head_len[t->client_side] == 0 &&
        t->head_len[t->client_side ^ 1] < HEAD_MAX)
        return;
    t->state = TALK_OTHER;
    t->all->other++;
    early_drop(t);
}

static void early_keep(struct talk *t, const struct flow_chunk *c)
{
    GROW(t->early, t->early_count, t->early_cap);
    struct early *e = &t->early[t->early_count++];
    *e = (struct early){ .chunk = *c };
    if (c->kind != FLOW_DATA)
        return;
    e->bytes = mem_grow(NULL, c->piece.data.len);
    memcpy(e->bytes, c->piece.data.ptr, c->piece.data.len);
    e->chunk.piece.data.ptr = e->bytes;
}

static void head_add(struct talk *t, unsigned side, struct slice s)
{
    size_t room = HEAD_MAX - t->head_len[side];
    size_t n = s.len < room ? s.len : room;

    if (!t->spoke[0] && !t->spoke[1])
        t->first_side = side;
    t->spoke[side] = true;
    memcpy(t->head[side] + t->head_len[side], s.ptr, n);
    t->head_len[side] = (uint8_t)(t->head_len[side] + n);
}

static void talk_listen(struct talk *t, const struct flow_chunk *c)
{
    struct slice sample = { 0 };

    if (c->oriented && !t->oriented) {
        t->conn = *c->conn;
        t->oriented = true;
        t->client_side = c->client_side;
        server_learn(t->all, &t->conn.server, PROTO_NONE);
    }
    if (c->kind == FLOW_DATA) {
        sample = c->piece.data;
        head_add(t, c->side, sample);
    }
    if (c->kind == FLOW_GAP) {
        t->hurt[c->side] = true;
        t->head_len[c->side] = 0;
    }
    if (c->kind == FLOW_DATA || c->kind == FLOW_CLOSE)
        decide(t, sample, c->side, c->kind == FLOW_CLOSE || t->early_count == EARLY_MAX);
    if (t->state == TALK_OURS)
        forward(t, c);
    else if (t->state == TALK_UNKNOWN && t->early_count < EARLY_MAX)
        early_keep(t, c);
}

/* None of ours, but part of it was not seen: it becomes ours when a message starts. */
static void talk_watch(struct talk *t, const struct flow_chunk *c)
{
    struct decision d;

    if (c->kind == FLOW_GAP)
        t->hurt[c->side] = true;
    if (c->kind != FLOW_DATA || !is_hurt(t))
        return;
    t->head_len[0] = t->head_len[1] = 0;
    head_add(t, c->side, c->piece.data);
    if (decide_by_start(t, &d) != ANSWER_YES || d.proto != PROTO_H1)
        return;
    d.from_client = false; /* there was something before it */
    t->all->other--;
    talk_begin(t, &d);
    if (!t->conn.starts_late) {
        t->layer.ops->gap(t->layer.self, DIR_CLIENT, 0, c->at);
        t->layer.ops->gap(t->layer.self, DIR_SERVER, 0, c->at);
    }
    forward(t, c);
}

static void talk_end(struct talk *t, struct place at)
{
    if (t->state == TALK_UNKNOWN)
        decide(t, (struct slice){ 0 }, 0, true);
    t->conn.truncated = t->all->truncated;
    if (t->state == TALK_OURS)
        t->layer.ops->finish(t->layer.self, at);
    if (t->conflicts > CONFLICTS_MAX)
        note(t, NOTE_CONFLICT, t->conflicts - CONFLICTS_MAX, t->conflict_at);
    talk_free(t);
}

static void talks_end(struct conns *c, struct place at)
{
    struct talk *next;

    for (struct talk *t = c->first; t; t = next) {
        next = t->next;
        talk_end(t, at);
    }
}

void conns_feed(struct conns *c, const struct flow_chunk *chunk)
{
    struct talk *t = *chunk->user;

    if (!t) {
        t = talk_new(c);
        *chunk->user = t;
        t->conn = *chunk->conn;
    }
    if (chunk->kind == FLOW_DONE) {
        *chunk->user = NULL;
        talk_end(t, chunk->at);
        return;
    }
    switch (t->state) {
    case TALK_UNKNOWN: talk_listen(t, chunk); return;
    case TALK_OURS: forward(t, chunk); return;
    case TALK_OTHER: talk_watch(t, chunk); return;
    }
}

void conns_set_truncated(struct conns *c)
{
    c->truncated = true;
}

void conns_finish(struct conns *c, struct place at, bool truncated_capture)
{
    c->truncated |= truncated_capture;
    talks_end(c, at);
    if (c->other > 0)
        exchanges_note(
            c->exchanges, 0,
            (struct rec_note){ NOTE_OTHER_PROTOCOL, c->other, UINT32_MAX, (struct slice){ 0 } },
            at);
}

void conns_free(struct conns *c)
{
    if (!c)
        return;
    talks_end(c, (struct place){ 0 });
    free(c);
}

uint64_t conns_other(const struct conns *c)
{
    return c->other;
}
