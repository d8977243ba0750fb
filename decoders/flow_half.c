/*
 * flow_half.c - one direction of a flow: puts its bytes in order, compares what comes twice, and
 * decides when a hole is a hole of the capture (RFC 9293 3.4, 3.10).
 */
#include "flow_parts.h"

#include <stdlib.h>

/* Nothing honest is further ahead of what is known: more than any common window. */
#define AHEAD_MAX (INT64_C(16) << 20)
/* Bytes that one segment may claim to have had beyond what the capture holds. */
#define MISSING_MAX ((size_t)1 << 20)
/* Delivered bytes kept for comparison: as many as are not acknowledged, within these. */
#define RECENT_MIN ((size_t)2048)
#define RECENT_MAX ((size_t)65536)

/* How long an acknowledged hole is waited for, see struct wait ... */
#define WAIT_FRESH    2
#define WAIT_SEGMENTS 16
#define WAIT_NS       NS_PER_SEC
/* ... and any hole, in a capture that has only this direction. */
#define WAIT_FRESH_ONE_WAY 64

/* Bytes of one segment: data, then `missing` more that the capture cut off. */
struct run {
    uint64_t off;
    struct slice data;
    size_t missing;
    struct place at;
};

static uint64_t run_end(const struct run *r)
{
    return r->off + r->data.len + r->missing;
}

/* Without its first n bytes. */
static void run_skip(struct run *r, uint64_t n)
{
    size_t of_data = n < r->data.len ? (size_t)n : r->data.len;

    r->off += n;
    r->data.ptr += of_data;
    r->data.len -= of_data;
    r->missing -= (size_t)(n - of_data);
}

/* Only the bytes before `end`, which lies within it. */
static void run_cut(struct run *r, uint64_t end)
{
    size_t len = (size_t)(end - r->off);

    if (len <= r->data.len) {
        r->data.len = len;
        r->missing = 0;
    } else {
        r->missing = len - r->data.len;
    }
}

struct queued *half_emit(struct half *h, enum flow_chunk_kind kind, struct place at)
{
    struct flow *fl = h->flow;
    struct queue *q = fl->out;

    GROW(q->item, q->count, q->cap);
    struct queued *made = &q->item[q->count++];
    made->owned = NULL;
    made->done = NULL;
    struct flow_chunk *c = &made->chunk; /* what belongs to other kinds is not touched: it is big */
    c->kind = kind;
    c->conn = &fl->conn;
    c->user = &fl->user;
    c->side = h->side;
    c->oriented = fl->oriented;
    c->client_side = fl->client_side;
    c->at = at;
    c->gap_bytes = 0;
    c->tcp_offset = 0;
    c->close = CLOSE_FIN;
    c->middlebox = false;
    c->idle = false;
    return made;
}

int64_t half_offset(const struct half *h, uint32_t seq)
{
    return (int64_t)h->next + (int32_t)(seq - h->base - (uint32_t)h->next);
}

void half_start(struct half *h, uint32_t base)
{
    h->started = true;
    h->base = base;
    h->wait.hole = UINT64_MAX;
    if (!h->pre_ack)
        return;
    int64_t acked = half_offset(h, h->raw_ack);
    if (acked > 0 && acked <= AHEAD_MAX)
        h->acked = (uint64_t)acked;
}

void half_clear(struct half *h)
{
    for (size_t i = 0; i < h->held_count; i++)
        free(h->held[i].data);
    free(h->held);
    free(h->recent);
    h->held = NULL;
    h->recent = NULL;
    h->held_count = h->held_cap = h->held_bytes = h->recent_cap = 0;
}

/* --- what was delivered --- */

static uint64_t recent_first(const struct half *h)
{
    uint64_t first = h->next > h->recent_cap ? h->next - h->recent_cap : 0;

    return first > h->recent_from ? first : h->recent_from;
}

/* s, which ends at offset `end`, into a ring of cap bytes. */
static void recent_copy(uint8_t *ring, size_t cap, struct slice s, uint64_t end)
{
    if (s.len > cap) {
        s.ptr += s.len - cap;
        s.len = cap;
    }
    size_t pos = (size_t)(end - s.len) & (cap - 1);
    size_t n = s.len < cap - pos ? s.len : cap - pos;
    memcpy(ring + pos, s.ptr, n);
    memcpy(ring, s.ptr + n, s.len - n);
}

static void recent_grow(struct half *h, size_t want)
{
    size_t cap = h->recent_cap ? h->recent_cap : RECENT_MIN;

    while (cap < want)
        cap *= 2;
    uint8_t *ring = mem_grow(NULL, cap);
    uint64_t off = h->recent ? recent_first(h) : h->next;
    h->recent_from = off;
    while (off < h->next) {
        size_t pos = (size_t)off & (h->recent_cap - 1);
        size_t n = h->recent_cap - pos;
        if (n > h->next - off)
            n = (size_t)(h->next - off);
        off += n;
        recent_copy(ring, cap, (struct slice){ h->recent + pos, n }, off);
    }
    free(h->recent);
    h->recent = ring;
    h->recent_cap = cap;
}

static void recent_add(struct half *h, struct slice s)
{
    uint64_t end = h->next + s.len;
    uint64_t open = h->acks && end > h->acked ? end - h->acked : RECENT_MIN;

    if (open > RECENT_MAX)
        open = RECENT_MAX;
    if (open > h->recent_cap)
        recent_grow(h, (size_t)open);
    recent_copy(h->recent, h->recent_cap, s, end);
}

static bool recent_differs(const struct half *h, const struct run *r)
{
    uint64_t off = recent_first(h);
    uint64_t end = r->off + r->data.len;

    if (off < r->off)
        off = r->off;
    if (end > h->next)
        end = h->next;
    while (off < end) {
        size_t pos = (size_t)off & (h->recent_cap - 1);
        size_t n = h->recent_cap - pos;
        if (n > end - off)
            n = (size_t)(end - off);
        if (memcmp(h->recent + pos, r->data.ptr + (off - r->off), n) != 0)
            return true;
        off += n;
    }
    return false;
}

static void deliver(struct half *h, struct slice data, bool ambiguous, struct place at)
{
    if (data.len == 0)
        return;
    recent_add(h, data);
    h->next += data.len;
    half_emit(h, FLOW_DATA, at)->chunk.piece =
        (struct piece){ .data = data, .at = at, .tcp_end = h->next, .ambiguous = ambiguous };
}

static void give_up(struct half *h, uint64_t len, struct place at)
{
    if (len == 0)
        return;
    half_emit(h, FLOW_GAP, at)->chunk.gap_bytes = len;
    h->next += len;
    h->recent_from = h->next;
    if (h->top < h->next)
        h->top = h->next;
}

/* --- what is out of order --- */

static void held_insert(struct half *h, size_t at, const struct held *x)
{
    GROW(h->held, h->held_count, h->held_cap);
    memmove(h->held + at + 1, h->held + at, (h->held_count - at) * sizeof(*h->held));
    h->held[at] = *x;
    h->held_count++;
    if (!x->data)
        return;
    h->held[at].data = mem_grow(NULL, x->len);
    memcpy(h->held[at].data, x->data, x->len);
    h->held_bytes += x->len;
}

/* The bytes of x that stand in `old` too: a different reading makes old ambiguous. */
static void held_compare(struct half *h, struct held *old, const struct held *x)
{
    uint64_t off = x->off > old->off ? x->off : old->off;
    uint64_t end = x->off + x->len < old->off + old->len ? x->off + x->len : old->off + old->len;

    if (!old->data || !x->data || off >= end)
        return;
    if (memcmp(old->data + (off - old->off), x->data + (off - x->off), (size_t)(end - off)) == 0)
        return;
    old->ambiguous = true;
    half_emit(h, FLOW_CONFLICT, x->at);
}

/* Keeps what of x is not held yet; false: nothing. */
static bool held_add(struct half *h, struct held x)
{
    const uint64_t end = x.off + x.len;
    size_t i = h->held_count;
    bool added = false;

    while (i > 0 && h->held[i - 1].off + h->held[i - 1].len > x.off)
        i--;
    while (x.off < end) {
        const bool last = i == h->held_count;
        uint64_t stop = !last && h->held[i].off < end ? h->held[i].off : end;
        if (stop > x.off) {
            struct held part = x;
            part.len = (size_t)(stop - x.off);
            held_insert(h, i++, &part);
            added = true;
        }
        if (stop == end)
            break;
        held_compare(h, &h->held[i], &x);
        stop = h->held[i].off + h->held[i].len;
        i++;
        if (stop >= end)
            break;
        x.data = x.data ? x.data + (stop - x.off) : NULL;
        x.off = stop;
        x.len = (size_t)(end - stop);
    }
    return added;
}

static bool hold(struct half *h, const struct run *r)
{
    /* held_add() copies, it does not write there */
    uint8_t *bytes = (uint8_t *)(uintptr_t)r->data.ptr; // NOLINT(performance-no-int-to-ptr)
    struct held x = { .off = r->off, .len = r->data.len, .data = bytes, .at = r->at };
    bool added = x.len > 0 && held_add(h, x);

    if (r->missing == 0)
        return added;
    x = (struct held){ .off = r->off + r->data.len, .len = r->missing, .at = r->at };
    return held_add(h, x) || added;
}

static void held_drop_first(struct half *h, size_t n)
{
    h->held_count -= n;
    memmove(h->held, h->held + n, h->held_count * sizeof(*h->held));
}

/* What has become ready. */
static void held_deliver(struct half *h)
{
    size_t n = 0;

    while (n < h->held_count && h->held[n].off == h->next) {
        const struct held *x = &h->held[n++];
        if (!x->data) {
            give_up(h, x->len, x->at);
            continue;
        }
        h->held_bytes -= x->len;
        deliver(h, (struct slice){ x->data, x->len }, x->ambiguous, x->at);
        h->flow->out->item[h->flow->out->count - 1].owned = x->data;
    }
    if (n > 0)
        held_drop_first(h, n);
}

static void held_forget(struct half *h)
{
    for (size_t i = 0; i < h->held_count; i++)
        free(h->held[i].data);
    h->held_count = 0;
    h->held_bytes = 0;
    h->top = h->next;
}

/* --- holes --- */

static bool is_closing(const struct half *h)
{
    return (h->rst && !h->rst_told) || (h->fin && !h->fin_told && h->next == h->fin_off);
}

/* There is a hole up to `to`, and `at` is where that is seen. A hole at the tail counts only when
 * it holds up a close (or everything). */
static bool hole_find(struct half *h, bool tail, uint64_t *ret_to, struct place *ret_at)
{
    if (h->held_count > 0) {
        *ret_to = h->held[0].off;
        *ret_at = h->held[0].at;
        return true;
    }
    if (h->fin && h->next < h->fin_off) {
        *ret_to = h->fin_off;
        *ret_at = h->fin_at;
        return true;
    }
    if (!half_lacks(h) || (!tail && !is_closing(&h->flow->half[h->side ^ 1])))
        return false;
    *ret_to = h->acked;
    *ret_at = h->acked_at;
    return true;
}

/* Has it been waited for long enough? */
static bool hole_is_final(struct half *h, uint64_t to)
{
    const struct flow *fl = h->flow;
    const bool acked = h->acked >= to;

    if (h->held_count > fl->limits->max_segments || h->held_bytes > fl->limits->max_buffer)
        return true;
    if (!acked && h->acks)
        return false;
    if (h->wait.hole != h->next) {
        h->wait = (struct wait){ h->next, fl->last.time, fl->segments, h->fresh };
        return false;
    }
    if (fl->last.time - h->wait.time >= WAIT_NS)
        return true;
    if (!acked)
        return h->fresh - h->wait.fresh >= WAIT_FRESH_ONE_WAY;
    return h->fresh - h->wait.fresh >= WAIT_FRESH ||
           fl->segments - h->wait.segments >= WAIT_SEGMENTS;
}

static void ack_report(struct half *h)
{
    uint64_t upto = h->acked < h->next ? h->acked : h->next;

    if (upto <= h->reported)
        return;
    h->reported = upto;
    half_emit(h, FLOW_ACK, h->acked_at)->chunk.tcp_offset = upto;
}

/* One sequence number more than there were bytes, at the very end: that was a FIN. */
static bool fin_missed(struct half *h, uint64_t to)
{
    if (h->fin || h->held_count > 0 || to != h->next + 1 || h->acked != to)
        return false;
    h->fin = true;
    h->fin_off = h->next;
    h->fin_at = h->acked_at;
    return true;
}

void half_settle(struct half *h, bool force)
{
    uint64_t to;
    struct place at;

    if (!h->started)
        return;
    held_deliver(h);
    while (hole_find(h, force, &to, &at)) {
        if (!force && !hole_is_final(h, to))
            break;
        if (fin_missed(h, to))
            break;
        /* a stray of some other connection */
        if (h->held_count > 0 && h->acks && to > h->acked && to > h->next + (uint64_t)AHEAD_MAX) {
            held_forget(h);
            continue;
        }
        give_up(h, to - h->next, at);
        held_deliver(h);
    }
    ack_report(h);
}

void half_answered(struct half *h)
{
    while (h->held_count > 0 && h->acked >= h->held[0].off) {
        give_up(h, h->held[0].off - h->next, h->held[0].at);
        held_deliver(h);
    }
    ack_report(h);
}

/* --- segments --- */

/* Offset 0 without a SYN: the first byte seen. False: seg does not tell where that is. */
static bool start_late(struct half *h, uint32_t seq, const struct run *r, bool fin)
{
    uint64_t len = r->data.len + r->missing;

    if (len == 0 && !fin) {
        h->hinted = true;
        h->seq_hint = seq;
        return false;
    }
    if (len == 1 && r->data.len == 1 && r->data.ptr[0] == 0)
        return false; /* a keep-alive probe with its byte of garbage (RFC 9293 3.8.4) */

    /* what came before offset 0 was acknowledged up to the hint, or one more after a probe */
    uint32_t ahead = seq - h->seq_hint;
    half_start(h, h->hinted && ahead > 1 && ahead < AHEAD_MAX ? h->seq_hint : seq);
    return true;
}

static void take_fin(struct half *h, int64_t off, struct place at)
{
    uint64_t known = h->top > h->acked ? h->top : h->acked;

    if (h->fin || off < (int64_t)h->top || off > (int64_t)known + AHEAD_MAX)
        return;
    h->fin = true;
    h->fin_off = (uint64_t)off;
    h->fin_at = at;
}

/* A byte, or none, just below what is acknowledged: asks for an acknowledgement. */
static bool is_probe(const struct half *h, uint64_t end, size_t len)
{
    if (len > 1)
        return false;
    if (len == 1 && h->window_seen && h->window == 0)
        return true;
    return len == 0 ? end + 1 == (h->acks ? h->acked : h->next) : h->acks && end == h->acked;
}

/* Nothing new in it. */
static void take_again(struct half *h, const struct run *r)
{
    uint64_t end = run_end(r);

    if (is_probe(h, end, r->data.len + r->missing)) {
        quiet_probe(h, r->at);
        return;
    }
    if (recent_differs(h, r))
        half_emit(h, FLOW_CONFLICT, r->at);
    if (end > h->acked)
        quiet_repeat(h, h->base + (uint32_t)r->off, r->at);
}

static void take_bytes(struct half *h, struct run *r)
{
    const uint64_t end = run_end(r);

    if (end <= h->next) {
        take_again(h, r);
        return;
    }
    if (r->off < h->next) {
        if (recent_differs(h, r))
            half_emit(h, FLOW_CONFLICT, r->at);
        run_skip(r, h->next - r->off);
    }
    if (r->off == h->next && (h->held_count == 0 || h->held[0].off >= end)) {
        quiet_end_by_data(h, r->off, r->at);
        deliver(h, r->data, false, r->at);
        give_up(h, r->missing, r->at);
    } else if (hold(h, r)) {
        quiet_end_by_data(h, r->off, r->at);
    } else {
        quiet_repeat(h, h->base + (uint32_t)r->off, r->at);
        return;
    }
    if (h->top < end)
        h->top = end;
    h->active = true;
    h->fresh++;
    quiet_begin(h, r->at);
    quiet_window(h, r->at);
}

void half_take(struct half *h, const struct segment *seg)
{
    struct run r = { .data = seg->payload, .at = seg->at };
    const uint32_t seq = seg->seq + ((seg->flags & TCP_SYN) ? 1 : 0);
    const bool fin = (seg->flags & TCP_FIN) != 0;

    if (h->rst)
        return;
    if (seg->wire_len > r.data.len)
        r.missing = seg->wire_len - r.data.len;
    if (r.missing > MISSING_MAX)
        r.missing = MISSING_MAX;
    if (!h->started && !start_late(h, seq, &r, fin))
        return;

    int64_t off = half_offset(h, seq);
    int64_t end = off + (int64_t)(r.data.len + r.missing);
    if (fin)
        take_fin(h, end, seg->at);
    if (h->fin && end > (int64_t)h->fin_off)
        end = (int64_t)h->fin_off;
    if (end < 0 || off > end)
        return; /* all of it before offset 0, or after the end */
    r.off = (uint64_t)off;
    if (off < 0)
        run_skip(&r, (uint64_t)-off); /* wraps to 0 */
    run_cut(&r, (uint64_t)end);
    if (run_end(&r) > r.off)
        take_bytes(h, &r);
    else if (!(seg->flags & (TCP_SYN | TCP_FIN)) && is_probe(h, (uint64_t)end, 0))
        quiet_probe(h, seg->at);
}

void half_acked(struct half *h, const struct segment *seg, int scale)
{
    const bool new_window = !(seg->flags & TCP_RST);
    const uint64_t window = (uint64_t)seg->window << ((seg->flags & TCP_SYN) ? 0 : scale);

    h->acks = true;
    if (!h->started) {
        h->pre_ack = true;
        h->raw_ack = seg->ack;
        h->acked_at = seg->at;
        h->window = window;
        h->window_seen = new_window;
        return;
    }

    int64_t off = half_offset(h, seg->ack);
    if (off < (int64_t)h->acked || off > (int64_t)h->top + AHEAD_MAX)
        return;
    if (off > (int64_t)h->acked) {
        h->acked = (uint64_t)off;
        h->acked_at = seg->at;
    }
    if (h->acked > h->top && !h->fin) {
        h->beyond = true;
        h->beyond_at = seg->at;
    }
    if (new_window) {
        h->window = window;
        h->window_seen = true;
        quiet_window(h, seg->at);
    }
    ack_report(h);
}
