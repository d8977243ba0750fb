/*
 * fuzz_flow.c - any segments: what comes out of a direction is one run of data and gaps without
 * a hole or an overlap, acknowledgements only advance, within it, and the ceilings hold.
 */
#include "flow.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FLOWS_MAX 3

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* In the slot of a flow. */
struct seen {
    uint64_t offset[2];
    uint64_t acked[2];
    bool fin[2];
};

/* Reads every byte, so that ASan sees one that is not there. */
static volatile uint8_t touched;

static void touch(struct slice s)
{
    uint8_t x = touched;

    for (size_t i = 0; i < s.len; i++)
        x ^= s.ptr[i];
    touched = x;
}

static void check(const struct flow_chunk *c)
{
    struct seen *s = *c->user;

    if (!s)
        *c->user = s = calloc(1, sizeof(*s));
    must(s && c->side < 2 && c->conn);
    switch (c->kind) {
    case FLOW_DATA:
        must(c->piece.data.len > 0 && !s->fin[c->side]);
        must(c->piece.tcp_end - c->piece.data.len == s->offset[c->side]);
        s->offset[c->side] = c->piece.tcp_end;
        touch(c->piece.data);
        return;
    case FLOW_GAP:
        must(c->gap_bytes > 0 && !s->fin[c->side]);
        s->offset[c->side] += c->gap_bytes;
        return;
    case FLOW_ACK:
        must(c->tcp_offset > s->acked[c->side] && c->tcp_offset <= s->offset[c->side]);
        s->acked[c->side] = c->tcp_offset;
        return;
    case FLOW_SILENCE:
        must(c->silence.until.time - c->silence.since.time >= SILENCE_MIN);
        must(c->silence.window_ns >= 0 && (c->silence.window_closed || c->silence.window_ns == 0));
        return;
    case FLOW_CLOSE: s->fin[c->side] |= c->close == CLOSE_FIN; return;
    case FLOW_CONFLICT: return;
    case FLOW_DONE:
        free(s);
        *c->user = NULL;
        return;
    }
}

static void drain(struct flows *f)
{
    const struct flow_chunk *c;

    while ((c = flows_next(f)))
        check(c);
    must(flows_live(f) <= FLOWS_MAX);
}

/* Ten bytes a segment, close enough to each other that they concern the same bytes. */
static struct segment segment_of(struct slice *in, int64_t *time, uint8_t *payload)
{
    static const uint32_t bases[] = { 0, 1000, UINT32_MAX - 30, 0x80000000u };
    struct slice op = { 0 };
    struct segment seg = { .window_scale = -1 };

    if (!slice_take(in, 10, &op))
        return seg;
    const uint8_t *b = op.ptr;
    seg.src.port = (uint16_t)(1 + (b[0] & 1));
    seg.dst.port = (uint16_t)(2 - (b[0] & 1));
    seg.link_id = (b[0] >> 1) & 7;
    seg.seq = bases[b[0] >> 6] + b[1];
    seg.ack = bases[b[0] >> 6] + b[2];
    seg.flags = b[3] & 0x1f;
    seg.window = b[4] & 0x7f;
    if (b[4] & 0x80)
        seg.window_scale = (int8_t)(b[4] & 0x0f);
    seg.ttl = b[5] & 3;
    seg.ip_id = b[5];
    *time += (int64_t)b[6] * b[6] * NS_PER_MS / 8;
    seg.at.time = *time - (b[7] & 1) * NS_PER_MS;
    for (size_t i = 0; i < (b[7] >> 2); i++)
        payload[i] = (uint8_t)(seg.seq + i + (b[8] == 0));
    seg.payload = (struct slice){ payload, b[7] >> 2 };
    seg.wire_len = (uint32_t)seg.payload.len + ((b[9] & 0xc0) == 0xc0 ? b[9] & 0x3fu : 0);
    return seg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct flow_limits limits = { .max_segments = 8,
                                        .max_buffer = 100,
                                        .max_flows = FLOWS_MAX };
    struct flows *f = flows_new(&limits);
    struct slice in = { data, size };
    int64_t time = NS_PER_SEC;
    uint8_t payload[64];

    while (in.len >= 10) {
        struct segment seg = segment_of(&in, &time, payload);
        flows_feed(f, &seg);
        drain(f);
        memset(payload, 0xee, sizeof(payload));
    }
    flows_finish(f);
    drain(f);
    must(flows_live(f) == 0);
    flows_free(f);
    return 0;
}
