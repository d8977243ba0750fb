/* scene_pcap.c - see scene_pcap.h. */
#include "scene_pcap.h"

#include "exchange.h"
#include "make_capture.h"
#include "scene_h2.h"
#include "scene_parts.h"

#define ZLIB_CONST
#include <zlib.h>

#define TICK     INT64_C(10000) /* 10 us between the packets of one step */
#define IP_LEN   20u
#define TCP_LEN  20u
#define FIN      0x01u
#define SYN      0x02u
#define RST      0x04u
#define ACK      0x10u
#define WINDOW   65535u
#define GAP_LEN  100u
#define STYLE_ME 65000u
#define HOP      (NS_PER_MS / 5) /* what a proxy takes to pass something on */

struct writer {
    struct scene *sc;
    struct scene_style style;
    struct scene_wire *out;
    uint64_t random;
    struct scene_tls_all *tls; /* NULL: none */
    struct wire *wires;        /* newest first */
};

/* One side of a connection. */
struct end {
    const struct endpoint *self;
    const struct endpoint *peer;
    uint32_t next;  /* sequence number of its next byte */
    uint32_t acked; /* of the peer's, told so far */
    unsigned ttl;
    uint16_t ip_id;
};

struct wire {
    struct end client, server;
    bool gone;             /* reset, or both closed */
    struct slice last;     /* the server's last segment */
    uint32_t last_next;    /* its sequence number */
    struct scene_tls *tls; /* NULL: plain */
    struct scene_h2 *h2;   /* NULL: HTTP/1.1 */
    uint32_t number;       /* of the connection in the scene */
    struct slice session;  /* whose requests it carries; empty: those of no session */
    struct wire *next;
};

/* What an exchange has of its connection. */
struct part {
    struct wire *wire;
    uint32_t stream; /* HTTP/2 */
    bool chunked;
    z_stream *zip;
};

struct segment_plan {
    unsigned flags;
    uint32_t seq;
    unsigned window;
    unsigned ttl; /* 0: the sender's own */
    struct slice payload;
};

/* ---- frames ---- */

static uint32_t sum_of(struct slice s)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < s.len; i++)
        sum += i % 2 ? s.ptr[i] : (uint32_t)s.ptr[i] << 8;
    return sum;
}

static uint16_t folded(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put_ip(struct made *m, const struct end *from, struct slice tcp, unsigned ttl,
                   unsigned id)
{
    size_t at = m->len;

    put8(m, 0x45);
    put8(m, 0);
    put16(m, (unsigned)(IP_LEN + tcp.len));
    put16(m, id);
    put16(m, 0x4000);
    put8(m, ttl);
    put8(m, 6);
    put16(m, 0);
    put(m, from->self->addr + 12, 4);
    put(m, from->peer->addr + 12, 4);
    patch16(m, at + 10, folded(sum_of((struct slice){ m->ptr + at, IP_LEN })));
}

static struct slice tcp_of(struct made *m, const struct end *from, const struct segment_plan *p)
{
    put16(m, from->self->port);
    put16(m, from->peer->port);
    put32(m, p->seq);
    put32(m, p->flags & ACK ? from->acked : 0);
    put8(m, TCP_LEN / 4 << 4);
    put8(m, p->flags);
    put16(m, p->window);
    put32(m, 0);
    put_slice(m, p->payload);
    uint32_t sum = sum_of(made_slice(m)) + sum_of((struct slice){ from->self->addr + 12, 4 }) +
                   sum_of((struct slice){ from->peer->addr + 12, 4 }) + 6 + (uint32_t)m->len;
    patch16(m, 16, folded(sum));
    return made_slice(m);
}

static void put_frame(struct writer *w, struct end *from, const struct segment_plan *p, int64_t t)
{
    static const uint8_t ether[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0 };
    AUTO(made_freep) struct made tcp = { 0 };
    AUTO(made_freep) struct made all = { 0 };
    struct scene_wire *out = w->out;

    put(&all, ether, sizeof(ether));
    unsigned ttl = p->ttl ? p->ttl : from->ttl;
    put_ip(&all, from, tcp_of(&tcp, from, p), ttl, p->ttl ? 0 : ++from->ip_id);
    put_slice(&all, made_slice(&tcp));
    for (unsigned i = 0; i < (w->style.twice ? 2u : 1u); i++) {
        GROW(out->frame, out->count, out->cap);
        out->frame[out->count] =
            (struct scene_frame){ .time = t + (int64_t)i * w->style.echo,
                                  .order = (uint32_t)out->count,
                                  .bytes = arena_copy(w->sc->arena, made_slice(&all)) };
        out->count++;
    }
}

/* ---- segments ---- */

static void bare(struct writer *w, struct end *from, unsigned flags, int64_t t)
{
    const struct segment_plan p = { .flags = flags, .seq = from->next, .window = WINDOW };

    put_frame(w, from, &p, t);
    if (flags & (SYN | FIN))
        from->next++;
}

static size_t piece_size(struct writer *w, size_t left)
{
    size_t n = left < STYLE_ME ? left : STYLE_ME;

    if (w->style.seed == 0)
        return n;
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    size_t cut = 1 + (size_t)(w->random % w->style.most);
    return cut < n ? cut : n;
}

#define PIECES 4096
static void send_data(struct writer *w, struct end *from, struct slice data, int64_t t)
{
    struct segment_plan piece[PIECES];
    size_t n = 0;

    for (; data.len > 0 && n < PIECES; n++) {
        size_t len = n + 1 == PIECES ? data.len : piece_size(w, data.len);
        piece[n] = (struct segment_plan){
            .flags = ACK, .seq = from->next, .window = WINDOW, .payload = { data.ptr, len }
        };
        from->next += (uint32_t)len;
        data = (struct slice){ data.ptr + len, data.len - len };
    }
    for (size_t i = 0; i < n; i++)
        put_frame(w, from, &piece[w->style.backwards ? n - 1 - i : i], t);
}

static void tell_ack(struct writer *w, struct end *from, const struct end *to, int64_t t)
{
    from->acked = to->next;
    bare(w, from, ACK, t);
}

static struct end *end_of(struct wire *c, enum dir dir)
{
    return dir == DIR_CLIENT ? &c->client : &c->server;
}

/* As it goes over the wire; lives as the scene does. */
static struct slice sealed(struct writer *w, struct wire *c, enum dir dir, struct slice data)
{
    return c->tls ? scene_tls_seal(c->tls, dir, data) : arena_copy(w->sc->arena, data);
}

static void say(struct writer *w, struct wire *c, enum dir dir, struct slice data, int64_t t)
{
    send_data(w, end_of(c, dir), sealed(w, c, dir, data), t);
}

static void say_acked(struct writer *w, struct wire *c, enum dir dir, struct slice data, int64_t t)
{
    send_data(w, end_of(c, dir), data, t);
    tell_ack(w, end_of(c, !dir), end_of(c, dir), t + TICK);
}

/* ---- heads ---- */

static void put_text(struct made *m, struct slice s)
{
    put_slice(m, s);
}

static void put_headers(struct made *m, const struct http_head *head, bool gzip)
{
    for (size_t i = 0; i < head->count; i++) {
        put_text(m, head->header[i].name);
        put_text(m, SLICE_LIT(": "));
        put_text(m, head->header[i].value);
        put_text(m, SLICE_LIT("\r\n"));
    }
    if (gzip)
        put_text(m, SLICE_LIT("Content-Encoding: gzip\r\n"));
    put_text(m, SLICE_LIT("\r\n"));
}

/* ---- connections ---- */

static const struct endpoint *endpoint_at(struct writer *w, const struct endpoint *e,
                                          const struct endpoint *peer, enum dir dir)
{
    if (!w->style.hop)
        return e;
    struct endpoint *other = arena_alloc(w->sc->arena, sizeof(*other));
    *other = *e;
    if (dir == DIR_SERVER)
        other->addr[13] = 77;
    if (dir == DIR_CLIENT)
        memcpy(other->addr, peer->addr, sizeof(other->addr)); /* the proxy, whoever asked */
    other->port = (uint16_t)(e->port + (dir == DIR_CLIENT ? 10000 : 8000));
    return other;
}

/* The connection of another exchange that this one is sent on: the scene says so, or it can take
 * another stream of this session. (Without a session two connections may be two clients.) */
static struct wire *wire_shared(struct writer *w, const struct conn *conn, struct slice session)
{
    bool any = w->style.carrier == CARRIER_H2_SHARED && session.len > 0;

    for (struct wire *c = w->wires; c; c = c->next) {
        bool fits = memcmp(c->client.self->addr, conn->client.addr, 16) == 0 &&
                    endpoint_eq(c->server.self, &conn->server) && slice_eq(c->session, session);
        if (!c->gone && (c->number == conn->tcp_stream || (any && fits)))
            return c;
    }
    return NULL;
}

static void shake_hands(struct writer *w, struct wire *c, int64_t t)
{
    enum dir dir = DIR_CLIENT;

    c->tls = scene_tls_connect(w->tls);
    for (unsigned silent = 0; silent < 2; silent++) {
        struct slice flight = scene_tls_flight(c->tls, dir);
        if (flight.len > 0) {
            say_acked(w, c, dir, flight, t);
            silent = 0;
        }
        dir = !dir;
        t += 2 * TICK;
    }
}

static void open_h2(struct writer *w, struct wire *c, int64_t t)
{
    c->h2 = scene_h2_new(w->sc->arena);
    for (enum dir dir = DIR_CLIENT; dir <= DIR_SERVER; dir++)
        say_acked(w, c, dir, sealed(w, c, dir, scene_h2_open(c->h2, dir)),
                  t + 2 * TICK * (int64_t)dir);
}

static void open_wire(struct writer *w, struct wire *c, int64_t t)
{
    bool h2 = w->style.carrier != CARRIER_H1;
    int64_t begin = t - 3 * TICK - (h2 ? 5 * TICK : 0) - (w->tls ? 20 * TICK : 0);

    bare(w, &c->client, SYN, begin);
    c->server.acked = c->client.next;
    bare(w, &c->server, SYN | ACK, begin + TICK);
    tell_ack(w, &c->client, &c->server, begin + 2 * TICK);
    if (w->tls)
        shake_hands(w, c, begin + 3 * TICK);
    if (h2)
        open_h2(w, c, t - 5 * TICK);
}

static struct part *part_new(struct writer *w, struct scene_exchange *x, struct slice session,
                             int64_t t)
{
    bool late = x->conn.starts_late || !x->has_request;
    struct part *p = arena_alloc(w->sc->arena, sizeof(*p));
    uint32_t n = x->conn.tcp_stream;

    x->play = p;
    p->wire = wire_shared(w, &x->conn, session);
    if (p->wire)
        return p;
    struct wire *c = p->wire = arena_alloc(w->sc->arena, sizeof(*c));
    const struct endpoint *client = endpoint_at(w, &x->conn.client, &x->conn.server, DIR_CLIENT);
    const struct endpoint *server = endpoint_at(w, &x->conn.server, &x->conn.client, DIR_SERVER);
    c->client = (struct end){ .self = client, .peer = server, .next = 1000 + n * 77777, .ttl = 64 };
    c->server =
        (struct end){ .self = server, .peer = client, .next = 0xfffff000u + n * 99991, .ttl = 57 };
    c->number = n;
    c->session = arena_copy(w->sc->arena, session);
    c->next = w->wires;
    w->wires = c;
    if (late) {
        c->client.acked = c->server.next;
        c->server.acked = c->client.next;
        return p;
    }
    open_wire(w, c, t);
    return p;
}

static struct wire *wire_of(const struct scene_exchange *x)
{
    const struct part *p = x->play;

    return p ? p->wire : NULL;
}

/* When something of that direction passes here. */
static int64_t passes(const struct writer *w, enum dir dir, int64_t t)
{
    if (!w->style.hop)
        return t;
    return dir == DIR_CLIENT ? t + HOP : t - HOP;
}

static struct slice chunk_of(struct writer *w, struct slice data)
{
    AUTO(made_freep) struct made m = { 0 };
    char size[24];

    if (data.len == 0)
        return data;
    snprintf(size, sizeof(size), "%zx\r\n", data.len);
    put_text(&m, slice_str(size));
    put_slice(&m, data);
    put_text(&m, SLICE_LIT("\r\n"));
    return arena_copy(w->sc->arena, made_slice(&m));
}

/* A body that is sent at once. */
static void put_body(struct writer *w, struct made *m, const struct http_head *head,
                     struct slice body)
{
    if (body.len > 0 && (head->flags & RECF_CHUNKED)) {
        put_slice(m, chunk_of(w, body));
        put_text(m, SLICE_LIT("0\r\n\r\n"));
        return;
    }
    put_slice(m, body);
}

static struct slice request_h1(struct writer *w, const struct http_head *head, struct slice body)
{
    AUTO(made_freep) struct made m = { 0 };

    put_text(&m, head->method);
    put_text(&m, SLICE_LIT(" "));
    put_text(&m, head->target);
    put_text(&m, SLICE_LIT(" HTTP/1.1\r\n"));
    put_headers(&m, head, false);
    put_body(w, &m, head, body);
    return arena_copy(w->sc->arena, made_slice(&m));
}

static struct slice session_of(const struct http_head *head)
{
    for (size_t i = 0; i < head->count; i++) {
        if (slice_eq_nocase(head->header[i].name, SLICE_LIT("Mcp-Session-Id")))
            return head->header[i].value;
    }
    return SLICE_LIT("");
}

static void wire_request(void *ctx, struct scene_exchange *x, const struct http_head *head,
                         struct slice body, int64_t t)
{
    struct writer *w = ctx;

    t = passes(w, DIR_CLIENT, t);
    struct part *p = part_new(w, x, session_of(head), t);
    struct wire *c = p->wire;
    say_acked(
        w, c, DIR_CLIENT,
        sealed(w, c, DIR_CLIENT,
               c->h2 ? scene_h2_request(c->h2, head, body, &p->stream) : request_h1(w, head, body)),
        t);
}

static void zip_begin(struct writer *w, struct part *p)
{
    p->zip = arena_alloc(w->sc->arena, sizeof(*p->zip));
    if (deflateInit2(p->zip, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
}

static struct slice response_h1(struct writer *w, const struct scene_response *r, bool gzip)
{
    AUTO(made_freep) struct made m = { 0 };
    char line[64];

    snprintf(line, sizeof(line), "HTTP/1.1 %d Status\r\n", r->head->status);
    put_text(&m, slice_str(line));
    put_headers(&m, r->head, gzip);
    put_body(w, &m, r->head, r->body);
    return arena_copy(w->sc->arena, made_slice(&m));
}

static struct slice response_h2(struct wire *c, uint32_t stream, const struct scene_response *r,
                                bool gzip)
{
    struct slice head = scene_h2_response(c->h2, stream, r->head, gzip);

    return r->body.len > 0
               ? scene_h2_joined(c->h2, head, scene_h2_data(c->h2, stream, r->body, false))
               : head;
}

static void wire_response(void *ctx, struct scene_exchange *x, const struct scene_response *r,
                          int64_t t)
{
    struct writer *w = ctx;

    if (!r->head)
        return; /* scene_is_wire */
    t = passes(w, DIR_SERVER, t);
    struct part *p = x->play ? x->play : part_new(w, x, SLICE_LIT(""), t);
    struct wire *c = p->wire;
    bool gzip = w->style.gzip && r->leg;
    p->chunked = r->head->flags & RECF_CHUNKED;
    say(w, c, DIR_SERVER, c->h2 ? response_h2(c, p->stream, r, gzip) : response_h1(w, r, gzip), t);
    if (gzip)
        zip_begin(w, p);
}

static struct slice zipped(struct writer *w, struct part *p, struct slice data, int flush)
{
    size_t room = data.len + data.len / 100 + 200;
    uint8_t *out = arena_alloc(w->sc->arena, room);

    p->zip->next_in = data.ptr;
    p->zip->avail_in = (uInt)data.len;
    p->zip->next_out = out;
    p->zip->avail_out = (uInt)room;
    deflate(p->zip, flush);
    return (struct slice){ out, room - p->zip->avail_out };
}

/* Bytes of a body, as one chunk or frame, on the wire. */
static struct slice framed(struct writer *w, const struct part *p, struct slice data)
{
    struct wire *c = p->wire;

    if (c->h2)
        data = scene_h2_data(c->h2, p->stream, data, false);
    else if (p->chunked)
        data = chunk_of(w, data);
    return sealed(w, c, DIR_SERVER, data);
}

static void wire_bytes(void *ctx, struct scene_exchange *x, struct slice data, int64_t t)
{
    struct writer *w = ctx;
    struct part *p = x->play;
    struct wire *c = p->wire;

    c->last = framed(w, p, p->zip ? zipped(w, p, data, Z_SYNC_FLUSH) : data);
    c->last_next = c->server.next;
    send_data(w, &c->server, c->last, passes(w, DIR_SERVER, t));
}

static void wire_ack(void *ctx, struct scene_exchange *x, int64_t t)
{
    struct wire *c = wire_of(x);

    if (c && !c->gone)
        tell_ack(ctx, &c->client, &c->server, passes(ctx, DIR_SERVER, t));
}

static void shut_window(struct writer *w, struct wire *c, const struct silence *s)
{
    struct segment_plan p = { .flags = ACK, .seq = c->client.next, .window = 0 };
    int64_t open = s->since.time + NS_PER_MS + s->window_ns;

    put_frame(w, &c->client, &p, s->since.time + NS_PER_MS);
    p.window = WINDOW;
    put_frame(w, &c->client, &p, open < s->until.time ? open : s->until.time - TICK);
}

static void wire_silence(void *ctx, struct scene_exchange *x, const struct silence *s)
{
    struct writer *w = ctx;
    struct wire *c = wire_of(x);
    int64_t step = (s->until.time - s->since.time) / (s->retransmissions + s->probes + 2);
    int64_t t = s->since.time;

    if (s->window_closed)
        shut_window(w, c, s);
    for (uint32_t i = 0; i < s->retransmissions; i++) {
        const struct segment_plan again = {
            .flags = ACK, .seq = c->last_next, .window = WINDOW, .payload = c->last
        };
        put_frame(w, &c->server, &again, t += step);
    }
    for (uint32_t i = 0; i < s->probes; i++) {
        const struct segment_plan probe = { .flags = ACK,
                                            .seq = c->server.next - 1,
                                            .window = WINDOW };
        put_frame(w, &c->server, &probe, t += step);
    }
}

static void wire_gap(void *ctx, struct scene_exchange *x, const struct rec_gap *gap, int64_t t)
{
    struct writer *w = ctx;
    const struct part *p = x->play;
    struct wire *c = p->wire;
    AUTO(made_freep) struct made m = { 0 };

    put_fill(&m, 'x', gap->bytes ? (size_t)gap->bytes : GAP_LEN);
    c->server.next += (uint32_t)framed(w, p, made_slice(&m)).len;
    tell_ack(w, &c->client, &c->server, passes(w, DIR_SERVER, t));
}

static void wire_note(void *ctx, struct scene_exchange *x, const struct rec_note *note, int64_t t)
{
    (void)ctx;
    (void)x;
    (void)note;
    (void)t; /* scene_is_wire */
}

/* ---- ends ---- */

/* An acknowledgement of a FIN covers all before it: none where something was to stay
 * unacknowledged.
 */
static void close_side(struct writer *w, struct wire *c, enum dir dir, int64_t t)
{
    struct end *from = end_of(c, dir);
    struct end *to = end_of(c, !dir);
    bool all = to->acked == from->next;

    if (c->tls && w->style.tls == SCENE_TLS_12) /* others close without it */
        send_data(w, from, scene_tls_bye(c->tls, dir), t);
    bare(w, from, FIN | ACK, t);
    if (all)
        tell_ack(w, to, from, t + TICK);
}

static void send_reset(struct writer *w, struct wire *c, struct end *from, bool forged, int64_t t)
{
    const struct segment_plan p = { .flags = RST | ACK,
                                    .seq = from->next,
                                    .ttl = forged ? 250 : 0 };

    put_frame(w, from, &p, t);
    c->gone = true;
}

static void end_body(struct writer *w, struct scene_exchange *x, struct wire *c, int64_t t)
{
    struct part *p = x->play;
    bool all = c->client.acked == c->server.next;
    struct slice rest = { 0 };

    if (!x->leg && !c->h2)
        return;
    if (p->zip)
        rest = zipped(w, p, rest, Z_FINISH);
    if (c->h2) {
        say(w, c, DIR_SERVER, scene_h2_data(c->h2, p->stream, rest, true), t);
    } else {
        AUTO(made_freep) struct made m = { 0 };
        put_slice(&m, p->chunked ? chunk_of(w, rest) : rest);
        put_text(&m, p->chunked ? SLICE_LIT("0\r\n\r\n") : SLICE_LIT(""));
        say(w, c, DIR_SERVER, made_slice(&m), t);
    }
    if (x->leg && all)
        tell_ack(w, &c->client, &c->server, t + TICK);
    /* The client keeps the connection for a while; it is never used again. */
}

/* Who ends the exchange. */
static enum dir ended_by(enum end_kind kind)
{
    return kind == END_CLIENT_FIN || kind == END_CLIENT_RST ? DIR_CLIENT : DIR_SERVER;
}

/* One stream of several ends, by RST_STREAM with INTERNAL_ERROR or CANCEL (RFC 9113 7). */
static void end_stream(struct writer *w, const struct scene_exchange *x, enum end_kind kind,
                       int64_t t)
{
    const struct part *p = x->play;
    enum dir dir = ended_by(kind);

    if (kind != END_OPEN && kind != END_GAP)
        say_acked(w, p->wire, dir,
                  sealed(w, p->wire, dir,
                         scene_h2_reset(p->wire->h2, p->stream, dir == DIR_SERVER ? 2 : 8)),
                  t);
}

static void end_wire(struct writer *w, const struct scene_exchange *x, const struct scene_end *end,
                     int64_t t)
{
    struct wire *c = wire_of(x);

    switch (end->kind) {
    case END_FIN:
        close_side(w, c, DIR_SERVER, t);
        if (!x->half)
            close_side(w, c, DIR_CLIENT, t + 2 * TICK);
        c->gone = true;
        break;
    case END_CLIENT_FIN:
        close_side(w, c, DIR_CLIENT, t);
        if (!end->half)
            close_side(w, c, DIR_SERVER, t + 2 * TICK);
        c->gone = !end->half;
        break;
    case END_RST: send_reset(w, c, &c->server, end->middlebox, t); break;
    case END_CLIENT_RST: send_reset(w, c, &c->client, end->middlebox, t); break;
    case END_COMPLETE:
    case END_OPEN:
    case END_GAP: break;
    }
}

static void wire_end(void *ctx, struct scene_exchange *x, const struct scene_end *end, int64_t t)
{
    struct writer *w = ctx;
    struct wire *c = wire_of(x);

    if (!c || c->gone)
        return;
    t = passes(w, ended_by(end->kind), t);
    if (end->kind == END_COMPLETE)
        end_body(w, x, c, t);
    else if (w->style.carrier == CARRIER_H2_SHARED)
        end_stream(w, x, end->kind, t);
    else
        end_wire(w, x, end, t);
}

static void wire_finish(void *ctx, bool truncated, int64_t t)
{
    struct writer *w = ctx;

    (void)t;
    w->out->cut = truncated;
    for (struct scene_exchange *x = w->sc->exchange; x; x = x->next) {
        const struct part *p = x->play;
        if (p && p->zip)
            deflateEnd(p->zip);
        x->play = NULL;
    }
    for (struct wire *c = w->wires; c; c = c->next) {
        if (c->h2)
            scene_h2_free(c->h2);
    }
}

/* ---- the whole ---- */

static int by_time(const void *a, const void *b)
{
    const struct scene_frame *x = a;
    const struct scene_frame *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void scene_wire(struct scene *sc, const struct scene_style *style, struct scene_wire *ret)
{
    struct writer w = {
        .sc = sc, .style = *style, .out = ret, .random = style->seed | UINT64_C(0x9e3779b97f4a7c15)
    };
    const struct scene_player player = {
        .ctx = &w,
        .request = wire_request,
        .response = wire_response,
        .bytes = wire_bytes,
        .ack = wire_ack,
        .silence = wire_silence,
        .gap = wire_gap,
        .note = wire_note,
        .end = wire_end,
        .finish = wire_finish,
    };

    sc->exchange = NULL;
    sc->connections = 0;
    if (style->tls != SCENE_TLS_NONE)
        w.tls =
            scene_tls_new(style->tls, style->carrier == CARRIER_H1 ? "http/1.1" : "h2", sc->arena);
    scene_perform(sc, &player);
    if (w.tls)
        ret->keys = arena_copy(sc->arena, scene_tls_keys(w.tls));
    scene_tls_free(w.tls);
    qsort(ret->frame, ret->count, sizeof(*ret->frame), by_time);
}

void scene_wire_release(struct scene_wire *w)
{
    free(w->frame);
    *w = (struct scene_wire){ 0 };
}

/* Does the word stand near the front of the line (not in what it carries)? */
static bool has_word(const struct scene_line *l, const char *word)
{
    for (size_t k = 1; k < l->count && k < 8; k++) {
        if (slice_eq(l->word[k].raw, slice_str(word)))
            return true;
    }
    return false;
}

bool scene_says(const struct scene *sc, const char *word)
{
    for (size_t i = 0; i < sc->count; i++) {
        if (has_word(&sc->line[i], word))
            return true;
    }
    return false;
}

bool scene_is_wire(const struct scene *sc)
{
    bool unacknowledged = scene_says(sc, "noack");

    for (size_t i = 0; i < sc->count; i++) {
        const struct scene_line *l = &sc->line[i];
        bool gap = has_word(l, "gap");
        if (slice_eq(l->word[0].raw, SLICE_LIT("note")) || has_word(l, "lost") ||
            has_word(l, "lost-end") || (gap && (has_word(l, "request") || has_word(l, "head"))))
            return false;
        /* Nobody sends again what was acknowledged. */
        if (scene_key(l, "resent").ptr && !unacknowledged)
            return false;
        if (scene_key(l, "on").ptr)
            return false; /* each exchange is written as a connection of its own */
    }
    return true;
}
