/*
 * flow.c - see flow.h. Which connection a segment belongs to, how connections begin and end; the
 * bytes of one direction are flow_half.c's.
 */
#include "flow_parts.h"

#include <stdlib.h>

const struct flow_limits flow_limits_default = {
    .max_segments = 1024,
    .max_buffer = (size_t)4 << 20,
    .max_flows = 32768,
};

/* Of what a flow's user keeps of it, as much as is worth to be called into the caches. */
#define USER_BYTES 256

/* How long a flow is kept without a segment, for what still comes late. */
static const int64_t linger[FLOW_STATES] = {
    [FLOW_LIVE] = INT64_MAX,
    [FLOW_CLOSING] = 60 * NS_PER_SEC,
    [FLOW_OVER] = 5 * NS_PER_SEC,
};

struct flows {
    struct flow_limits limits;
    struct flow_table *table;
    struct queue out;
    uint8_t *owned; /* by the chunk given out last: lives until the next call */
    struct flow *done;
    uint32_t *streams; /* connections seen, by input */
    size_t stream_count;
    size_t stream_cap;
    struct place last; /* of all segments */
    bool finishing;
};

struct flows *flows_new(const struct flow_limits *limits)
{
    struct flows *f = mem_alloc(sizeof(*f));

    f->limits = *limits;
    f->table = table_new();
    return f;
}

static void flow_free(struct flow *fl)
{
    half_clear(&fl->half[0]);
    half_clear(&fl->half[1]);
    free(fl);
}

/* What the chunk given out last borrowed from. */
static void let_go(struct flows *f)
{
    if (!f->owned && !f->done)
        return;
    if (f->done)
        flow_free(f->done);
    free(f->owned);
    f->done = NULL;
    f->owned = NULL;
}

static void take(struct flows *f, const struct queued *q)
{
    let_go(f);
    f->owned = q->owned;
    f->done = q->done;
}

static void queue_drop(struct flows *f)
{
    for (; f->out.head < f->out.count; f->out.head++)
        take(f, &f->out.item[f->out.head]);
    let_go(f);
    f->out.head = f->out.count = 0;
}

void flows_free(struct flows *f)
{
    if (!f)
        return;
    queue_drop(f);
    for (int i = 0; i < FLOW_STATES; i++) {
        struct flow *fl;
        while ((fl = table_oldest(f->table, (enum flow_state)i))) {
            table_remove(f->table, fl);
            flow_free(fl);
        }
    }
    table_free(f->table);
    free(f->out.item);
    free(f->streams);
    free(f);
}

size_t flows_live(const struct flows *f)
{
    return table_count(f->table);
}

/* --- the end of a connection --- */

static void close_tell(struct half *h, enum close_kind kind, struct place at)
{
    quiet_end(&h->flow->half[0], at);
    quiet_end(&h->flow->half[1], at);

    struct flow_chunk *c = &half_emit(h, FLOW_CLOSE, at)->chunk;
    c->close = kind;
    c->middlebox = kind == CLOSE_RST && h->rst_forged;
}

/* A close is told only after the bytes that its sender had acknowledged. */
static void half_close(struct half *h, bool force)
{
    const bool fin = h->fin && !h->fin_told && h->next == h->fin_off;
    const bool rst = h->rst && !h->rst_told;

    if ((!fin && !rst) || (!force && half_lacks(&h->flow->half[h->side ^ 1])))
        return;
    if (fin) {
        close_tell(h, CLOSE_FIN, h->fin_at);
        h->fin_told = true;
    }
    if (rst) {
        close_tell(h, CLOSE_RST, h->rst_at);
        h->rst_told = true;
    }
}

/* The one that closed first goes first. */
static void flow_close(struct flow *fl, bool force)
{
    const struct half *a = &fl->half[0];
    const struct half *b = &fl->half[1];
    const unsigned first = a->fin && b->fin && b->fin_at.time < a->fin_at.time;

    half_close(&fl->half[first], force);
    half_close(&fl->half[first ^ 1], force);
}

static void flow_end(struct flows *f, struct flow *fl, struct place at, bool idle)
{
    half_settle(&fl->half[0], true);
    half_settle(&fl->half[1], true);
    flow_close(fl, true);
    quiet_end(&fl->half[0], at);
    quiet_end(&fl->half[1], at);

    struct queued *q = half_emit(&fl->half[0], FLOW_DONE, at);
    q->chunk.idle = idle;
    q->done = fl;
    table_remove(f->table, fl);
}

static void flows_expire(struct flows *f)
{
    if (!table_has_closed(f->table))
        return;
    for (int i = FLOW_CLOSING; i < FLOW_STATES; i++) {
        struct flow *fl = table_oldest(f->table, (enum flow_state)i);
        if (!fl || f->last.time - fl->last.time <= linger[i])
            continue;
        table_bury(f->table, fl);
        flow_end(f, fl, fl->last, false);
    }
}

static struct flow *flows_oldest(const struct flows *f)
{
    for (int i = FLOW_STATES - 1; i >= 0; i--) {
        struct flow *fl = table_oldest(f->table, (enum flow_state)i);
        if (fl)
            return fl;
    }
    return NULL;
}

/* --- the start of a connection --- */

static uint32_t stream_number(struct flows *f, uint32_t input)
{
    while (f->stream_count <= input) {
        GROW(f->streams, f->stream_count, f->stream_cap);
        f->streams[f->stream_count++] = 0;
    }
    return f->streams[input]++;
}

static struct flow *flow_new(struct flows *f, const struct segment *seg)
{
    struct flow *old = table_crowding(f->table, seg);

    if (!old && table_count(f->table) >= f->limits.max_flows)
        old = flows_oldest(f);
    if (old)
        flow_end(f, old, f->last, old->state == FLOW_LIVE);

    struct flow *fl = table_add(f->table, seg);
    fl->out = &f->out;
    fl->limits = &f->limits;
    fl->last_input = seg->at.input;
    fl->conn = (struct conn){ .client = seg->src,
                              .server = seg->dst,
                              .tcp_stream = stream_number(f, seg->at.input),
                              .input = seg->at.input,
                              .starts_late = true,
                              .link_id = seg->link_id,
                              .first = seg->at };
    for (uint8_t i = 0; i < 2; i++) {
        fl->half[i].flow = fl;
        fl->half[i].side = i;
        fl->half[i].scale = -1;
    }
    return fl;
}

enum syn_fate {
    SYN_FITS,   /* of this connection: the first, or again */
    SYN_REUSES, /* the pair of ports begins a new connection */
    SYN_STRAY,  /* of an old connection, or somebody's try: the endpoints ignore it (RFC 5961 4) */
};

static enum syn_fate syn_fate(const struct flow *fl, unsigned side, const struct segment *seg)
{
    const struct half *h = &fl->half[side];
    const uint32_t base = seg->seq + 1;

    if (h->started && h->base == base)
        return SYN_FITS;
    if (fl->state != FLOW_LIVE)
        return SYN_REUSES;
    if (!h->started && h->pre_ack) /* by a SYN-ACK that was captured first */
        return h->raw_ack - base < FLOW_SEQ_SLACK ? SYN_FITS : SYN_REUSES;
    if (!h->started)
        return SYN_FITS;

    int64_t off = half_offset(h, base);
    int64_t window = h->window > FLOW_SEQ_SLACK ? (int64_t)h->window : FLOW_SEQ_SLACK;
    return off < (int64_t)h->next - FLOW_SEQ_SLACK || off > (int64_t)h->top + window ? SYN_REUSES
                                                                                     : SYN_STRAY;
}

static struct flow *flow_for(struct flows *f, const struct segment *seg, unsigned *ret_side)
{
    struct flow *fl = table_find(f->table, seg, ret_side);

    if (fl && (seg->flags & TCP_SYN)) {
        switch (syn_fate(fl, *ret_side, seg)) {
        case SYN_FITS: break;
        case SYN_STRAY: return NULL;
        case SYN_REUSES:
            flow_end(f, fl, seg->at, false);
            fl = NULL;
            break;
        }
    }
    if (fl)
        return fl;
    *ret_side = 0;
    return table_is_ghost(f->table, seg) ? NULL : flow_new(f, seg);
}

static void take_syn(struct half *h, const struct segment *seg)
{
    struct flow *fl = h->flow;

    if (!h->started)
        half_start(h, seg->seq + 1);
    h->syn_seen = true;
    h->scale = seg->window_scale;
    if (h->scale > 14) /* RFC 7323 2.3 */
        h->scale = 14;
    if (fl->oriented)
        return;
    fl->oriented = true;
    fl->client_side = (seg->flags & TCP_ACK) ? h->side ^ 1 : h->side;
    fl->conn.client = fl->end[fl->client_side];
    fl->conn.server = fl->end[fl->client_side ^ 1];
    fl->conn.starts_late = false;
}

/* --- segments --- */

/* How many times the windows that `h` advertises are shifted: only if both sides asked for it. */
static int window_shift(const struct half *h)
{
    const struct half *peer = &h->flow->half[h->side ^ 1];

    return h->scale > 0 && (!peer->syn_seen || peer->scale >= 0) ? h->scale : 0;
}

/* The steps between IP ids that a sender that counts makes: with segmentation by the network card
 * one packet in the capture is up to 45 on the wire; retransmissions may be reordered. */
#define IP_ID_BACK  (-64)
#define IP_ID_AHEAD 256
#define IP_IDS_SURE 4

static void look_at(struct half *h, const struct segment *seg)
{
    if (seg->ttl != 0) {
        h->ttl_min = h->ttl_min == 0 || seg->ttl < h->ttl_min ? seg->ttl : h->ttl_min;
        h->ttl_max = seg->ttl > h->ttl_max ? seg->ttl : h->ttl_max;
    }
    if (seg->ip_id == 0)
        return;
    int step = (int16_t)(seg->ip_id - h->ip_id);
    if (h->ip_ids > 0 && (step < IP_ID_BACK || step > IP_ID_AHEAD))
        h->ip_id_jumps = true;
    if (step != 0)
        h->ip_ids++;
    h->ip_id = seg->ip_id;
    h->ip_id_time = seg->at.time;
}

static bool looks_forged(const struct half *h, const struct segment *seg)
{
    if (h->ttl_max != 0 && seg->ttl != 0 && (seg->ttl < h->ttl_min || seg->ttl > h->ttl_max))
        return true;
    /* A host may count ids over all its connections: after a pause the distance says nothing. */
    if (h->ip_id_jumps || h->ip_ids < IP_IDS_SURE || seg->ip_id == 0 ||
        seg->at.time - h->ip_id_time > NS_PER_SEC)
        return false;
    int step = (int16_t)(seg->ip_id - h->ip_id);
    return step < 4 * IP_ID_BACK || step > 16 * IP_ID_AHEAD;
}

/* RFC 9293 3.10.7.4, with room for what the capture did not see. */
static bool rst_is_plausible(const struct half *h, const struct segment *seg)
{
    const struct half *peer = &h->flow->half[h->side ^ 1];

    if (h->started) {
        int64_t off = half_offset(h, seg->seq);
        int64_t window = h->window > FLOW_SEQ_SLACK ? (int64_t)h->window : FLOW_SEQ_SLACK;
        int64_t known = (int64_t)(h->acked > h->next ? h->next : h->acked);
        return off >= known - FLOW_SEQ_SLACK && off <= (int64_t)h->top + window;
    }
    if (!peer->started || !(seg->flags & TCP_ACK))
        return true;
    int64_t off = half_offset(peer, seg->ack); /* refuses a SYN */
    return off >= (int64_t)peer->acked && off <= (int64_t)peer->top + 1;
}

static void take_rst(struct half *h, const struct segment *seg)
{
    struct half *peer = &h->flow->half[h->side ^ 1];

    if (h->rst || !rst_is_plausible(h, seg))
        return;
    h->rst = true;
    h->rst_at = seg->at;
    h->rst_forged = looks_forged(h, seg);
    if ((seg->flags & TCP_ACK) && !h->rst_forged)
        half_acked(peer, seg, 0);
    half_settle(h, true);
}

static void take_segment(struct half *h, const struct segment *seg)
{
    struct half *peer = &h->flow->half[h->side ^ 1];

    if (seg->flags & TCP_SYN)
        take_syn(h, seg);
    look_at(h, seg);
    if (seg->flags & TCP_ACK)
        half_acked(peer, seg, window_shift(h));
    if (peer->held_count > 0 && seg->payload.len > 0 && h->started &&
        half_offset(h, seg->seq) >= (int64_t)h->top)
        half_answered(peer);
    half_take(h, seg);
}

static enum flow_state state_of(const struct flow *fl)
{
    const struct half *a = &fl->half[0];
    const struct half *b = &fl->half[1];

    if (a->rst || b->rst)
        return FLOW_OVER;
    if (!a->fin || !b->fin)
        return FLOW_LIVE;
    return a->acked > a->fin_off && b->acked > b->fin_off ? FLOW_OVER : FLOW_CLOSING;
}

void flows_feed(struct flows *f, const struct segment *seg)
{
    unsigned side;

    queue_drop(f);
    f->last = seg->at;
    struct flow *fl = flow_for(f, seg, &side);
    if (!fl) {
        flows_expire(f);
        return;
    }
    mem_prefetch(fl, sizeof(*fl)); /* other flows had their turn since its last segment */
    mem_prefetch(fl->user, USER_BYTES);
    fl->segments++;
    fl->last = seg->at;
    if (seg->at.input > fl->last_input) { /* it goes on in the next file, which counts it too */
        fl->last_input = seg->at.input;
        (void)stream_number(f, seg->at.input);
    }
    if (seg->flags & TCP_RST)
        take_rst(&fl->half[side], seg);
    else
        take_segment(&fl->half[side], seg);
    if (!half_is_calm(&fl->half[0]) || !half_is_calm(&fl->half[1])) {
        half_settle(&fl->half[side], false);
        half_settle(&fl->half[side ^ 1], false);
        flow_close(fl, false);
    }
    table_touch(f->table, fl, state_of(fl));
    flows_expire(f);
}

const struct flow_chunk *flows_next(struct flows *f)
{
    let_go(f);
    if (f->out.head == f->out.count) {
        f->out.head = f->out.count = 0;
        struct flow *fl = f->finishing ? flows_oldest(f) : NULL;
        if (!fl)
            return NULL;
        flow_end(f, fl, f->last, false);
    }
    const struct queued *q = &f->out.item[f->out.head++];
    take(f, q);
    return &q->chunk;
}

void flows_finish(struct flows *f)
{
    f->finishing = true;
}
