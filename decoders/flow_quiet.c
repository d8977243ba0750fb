/*
 * flow_quiet.c - times in which one direction of a flow brought no new byte, and why: was the
 * receiver's window closed, were bytes under way, did the sender try again (see struct silence).
 */
#include "flow_parts.h"

static uint64_t in_flight(const struct half *h)
{
    return h->top > h->acked ? h->top - h->acked : 0;
}

static void window_time_add(struct half *h, int64_t until)
{
    if (h->shut && until > h->shut_from)
        h->quiet.window_ns += until - h->shut_from;
    h->shut_from = until;
}

void quiet_begin(struct half *h, struct place at)
{
    h->quiet.since = at;
    h->quiet.in_flight = in_flight(h);
    h->quiet.retransmissions = 0;
    h->quiet.probes = 0;
    h->quiet.window_ns = 0;
    h->quiet.window_closed = h->shut;
    h->repeat_at.time = 0;
    if (!h->shut)
        return;
    h->quiet.window_place = h->shut_at;
    h->shut_from = at.time;
}

static void quiet_tell(struct half *h, struct place at, bool by_data)
{
    if (at.time - h->quiet.since.time < SILENCE_MIN)
        return;
    window_time_add(h, at.time);
    struct silence *s = &half_emit(h, FLOW_SILENCE, at)->chunk.silence;
    *s = h->quiet;
    if (!s->window_closed)
        s->window_place = (struct place){ 0 };
    if (s->retransmissions == 0)
        s->retransmission_place = (struct place){ 0 };
    s->until = at;
    s->ended_by_data = by_data;
}

/* Bytes that are missing came when their receiver acknowledged them, at the latest. */
static void quiet_missed(struct half *h)
{
    if (h->beyond)
        quiet_begin(h, h->beyond_at);
    h->beyond = false;
}

void quiet_end_by_data(struct half *h, uint64_t from, struct place at)
{
    if (from > h->top)
        quiet_missed(h);
    h->beyond = false; /* else the acknowledgement was only captured before these bytes */
    if (h->active)
        quiet_tell(h, at, true);
}

void quiet_end(struct half *h, struct place at)
{
    if (!h->active || h->fin_told || h->rst_told || h->flow->half[h->side ^ 1].rst_told)
        return;
    quiet_missed(h);
    quiet_tell(h, at, false);
    quiet_begin(h, at);
}

void quiet_window(struct half *h, struct place at)
{
    /* Without its SYN the unit of the receiver's window is not known, but zero is zero. */
    bool exact = h->flow->half[h->side ^ 1].syn_seen;
    bool shut = h->window_seen &&
                (h->window == 0 || (exact && in_flight(h) > 0 && in_flight(h) >= h->window));

    if (shut == h->shut)
        return;
    if (!shut) {
        window_time_add(h, at.time);
        h->shut = false;
        return;
    }
    h->shut = true;
    h->shut_at = at;
    h->shut_from = at.time;
    if (h->quiet.window_closed)
        return;
    h->quiet.window_closed = true;
    h->quiet.window_place = at;
}

static bool is_twin(struct place before, struct place at)
{
    return before.time != 0 && at.time - before.time < TWIN_NS;
}

void quiet_repeat(struct half *h, uint32_t seq, struct place at)
{
    if (is_twin(h->quiet.since, at))
        return;
    if (is_twin(h->repeat_at, at) && (int32_t)(seq - h->repeat_seq) <= 0)
        return;
    h->repeat_seq = seq;
    h->repeat_at = at;
    if (h->quiet.retransmissions++ == 0)
        h->quiet.retransmission_place = at;
}

void quiet_probe(struct half *h, struct place at)
{
    if (!h->active || is_twin(h->probe_at, at))
        return;
    h->probe_at = at;
    h->quiet.probes++;
}
