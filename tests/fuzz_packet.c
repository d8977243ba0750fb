/*
 * fuzz_packet.c - any bytes as frames: what comes out lies within what went in, a second decoder
 * agrees, and a shorter snap length never gives more.
 *
 * Input: two bytes of link type, then frames: a byte of length, a byte that is cut off by the snap
 * length, and the bytes.
 */
#include "packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check_segment(const struct segment *a, const struct segment *b)
{
    expect(a->payload.len <= a->wire_len);
    expect(slice_eq(a->payload, b->payload));
    expect(endpoint_eq(&a->src, &b->src) && endpoint_eq(&a->dst, &b->dst));
    expect(a->seq == b->seq && a->ack == b->ack && a->link_id == b->link_id);
    expect(a->wire_len == b->wire_len && a->window_scale == b->window_scale);
    expect(a->window_scale >= -1 && a->window_scale <= 14);
}

/* The same frame with half of it captured. */
static void check_shorter(const struct frame *f, const struct segment *whole)
{
    struct packets *p = packets_new();
    struct frame half = *f;
    struct segment s;

    half.data.len /= 2;
    half.wire_len = f->wire_len;
    if (packet_decode(p, &half, &s) == PACKET_TCP && s.link_id == whole->link_id)
        expect(s.payload.len <= s.wire_len);
    packets_free(p);
}

static void one_frame(struct packets *p, struct packets *other, const struct frame *f)
{
    uint8_t *exact = mem_alloc(f->data.len); /* its end is seen by a sanitizer */
    struct frame copy = *f;
    struct segment a;
    struct segment b;

    if (f->data.len > 0)
        memcpy(exact, f->data.ptr, f->data.len);
    copy.data.ptr = exact;
    enum packet_result r = packet_decode(p, &copy, &a);
    expect(r == packet_decode(other, f, &b));
    if (r == PACKET_TCP) {
        check_segment(&a, &b);
        check_shorter(f, &a);
    }
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = { data, size };
    struct frame f = { .at = { 1, 0, 0 } };
    struct packets *p = packets_new();
    struct packets *other = packets_new();
    uint16_t linktype = 0;
    uint8_t len;
    uint8_t cut;

    if (slice_be16(&rest, &linktype))
        f.linktype = linktype;
    while (slice_u8(&rest, &len) && slice_u8(&rest, &cut)) {
        if (!slice_take(&rest, len < rest.len ? len : rest.len, &f.data))
            break;
        f.wire_len = (uint32_t)f.data.len + cut;
        f.at.frame++;
        one_frame(p, other, &f);
    }
    packets_free(p);
    packets_free(other);
    return 0;
}
