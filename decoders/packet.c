/*
 * packet.c - see packet.h. IPv4 (RFC 791), IPv6 (RFC 8200), UDP as far as tunnels and QUIC go, and
 * the TCP header (RFC 9293). Checksums are not looked at: what a sender captures of itself has none
 * yet.
 */
#include "walk.h"

#include <stdlib.h>

/* No honest frame has as many headers; 8 tunnels of 8 headers each. */
#define STEPS_MAX 64

enum protocol {
    PROTO_HOP_OPTIONS = 0,
    PROTO_IPIP = 4,
    PROTO_TCP = 6,
    PROTO_UDP = 17,
    PROTO_IPV6 = 41,
    PROTO_ROUTING = 43,
    PROTO_FRAGMENT = 44,
    PROTO_GRE = 47,
    PROTO_AUTHENTICATION = 51,
    PROTO_DESTINATION_OPTIONS = 60,
    PROTO_MOBILITY = 135,
    PROTO_MPLS = 137,
    PROTO_HIP = 139,
    PROTO_SHIM6 = 140,
};

struct packets {
    struct fragments *fragments;
};

struct packets *packets_new(void)
{
    struct packets *p = mem_alloc(sizeof(*p));

    p->fragments = fragments_new();
    return p;
}

void packets_free(struct packets *p)
{
    if (!p)
        return;
    fragments_free(p->fragments);
    free(p);
}

static enum step step_ip(struct walk *w)
{
    if (w->s.len == 0)
        return walk_short(w);
    switch (w->s.ptr[0] >> 4) {
    case 4: return STEP_IP4;
    case 6: return STEP_IP6;
    default: return walk_end(w, PACKET_OTHER);
    }
}

/* What stands at w is one fragment of protocol w->protocol: go on with the whole, if it is. */
static enum step fragment_join(struct walk *w, struct fragment *part)
{
    struct datagram whole;

    part->src = w->seg->src.addr;
    part->dst = w->seg->dst.addr;
    part->link_id = w->seg->link_id;
    part->protocol = w->protocol;
    part->data = w->s;
    part->wire = w->wire;
    part->time = w->frame->at.time;
    switch (fragments_add(w->fragments, part, &whole)) {
    case FRAGMENT_HELD: return walk_end(w, PACKET_HELD);
    case FRAGMENT_BROKEN: return walk_end(w, PACKET_BROKEN);
    case FRAGMENT_WHOLE: break;
    }
    w->s = whole.data;
    w->wire = whole.wire;
    w->protocol = whole.protocol;
    return STEP_PROTOCOL;
}

static void addr4(struct endpoint *e, const uint8_t *from)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    memcpy(e->addr, mapped, sizeof(mapped));
    memcpy(e->addr + sizeof(mapped), from, 4);
}

static enum step step_ip4(struct walk *w)
{
    const uint8_t *h;
    const uint8_t *options;

    if (w->s.len < 20)
        return walk_short(w);
    size_t header = (size_t)(w->s.ptr[0] & 0x0f) * 4;
    size_t total = be16(w->s.ptr + 2);
    if (total == 0) /* the network card cuts it up later: trust the capture */
        total = w->wire;
    if (w->s.ptr[0] >> 4 != 4 || header < 20 || total < header)
        return walk_end(w, PACKET_BROKEN);
    walk_limit(w, total); /* Ethernet pads short frames */
    if (!walk_take(w, 20, &h) || !walk_take(w, header - 20, &options))
        return walk_short(w);
    addr4(&w->seg->src, h + 12);
    addr4(&w->seg->dst, h + 16);
    w->seg->ip_id = be16(h + 4);
    w->seg->ttl = h[8];
    w->protocol = h[9];
    unsigned place = be16(h + 6) & 0x3fff; /* more-fragments flag and offset */
    if (place == 0)
        return STEP_PROTOCOL;
    struct fragment part = { .id = w->seg->ip_id,
                             .offset = (place & 0x1fff) * 8,
                             .more = (place & 0x2000) != 0 };
    return fragment_join(w, &part);
}

static enum step step_ip6(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 40, &h))
        return walk_short(w);
    if (h[0] >> 4 != 6)
        return walk_end(w, PACKET_BROKEN);
    if (be16(h + 4) != 0) /* else a jumbogram, or cut up later: trust the capture */
        walk_limit(w, be16(h + 4));
    w->protocol = h[6];
    w->seg->ttl = h[7];
    w->seg->ip_id = 0;
    memcpy(w->seg->src.addr, h + 8, 16);
    memcpy(w->seg->dst.addr, h + 24, 16);
    return STEP_PROTOCOL;
}

/* RFC 8200 4.5 */
static enum step ip6_fragment(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 8, &h))
        return walk_short(w);
    w->protocol = h[0];
    struct fragment part = {
        .id = be32(h + 4), .ipv6 = true, .offset = be16(h + 2) & 0xfff8u, .more = (h[3] & 1) != 0
    };
    if (part.offset == 0 && !part.more) /* an "atomic" fragment: RFC 6946 */
        return STEP_PROTOCOL;
    return fragment_join(w, &part);
}

/* A header that only stands before another one; its length is in units, the first not counted. */
static enum step extension(struct walk *w, size_t first, size_t unit)
{
    const uint8_t *h;
    const uint8_t *rest;

    if (!walk_take(w, 8, &h) || !walk_take(w, first + h[1] * unit - 8, &rest))
        return walk_short(w);
    w->protocol = h[0];
    return STEP_PROTOCOL;
}

static enum step step_protocol(struct walk *w)
{
    switch (w->protocol) {
    case PROTO_TCP: return STEP_TCP;
    case PROTO_UDP: return STEP_UDP;
    case PROTO_IPIP: return walk_tunnel(w, STEP_IP4);
    case PROTO_IPV6: return walk_tunnel(w, STEP_IP6);
    case PROTO_GRE: return STEP_GRE;
    case PROTO_MPLS: return STEP_MPLS;
    case PROTO_FRAGMENT: return ip6_fragment(w);
    case PROTO_AUTHENTICATION: return extension(w, 8, 4); /* RFC 4302 2.2 */
    case PROTO_HOP_OPTIONS:
    case PROTO_ROUTING:
    case PROTO_DESTINATION_OPTIONS:
    case PROTO_MOBILITY:
    case PROTO_HIP:
    case PROTO_SHIM6: return extension(w, 8, 8);
    default: return walk_end(w, PACKET_OTHER);
    }
}

/* RFC 9000 17.2: long header, fixed bit, and a version that is in use. */
static bool is_quic(struct slice s)
{
    if (s.len < 5 || (s.ptr[0] & 0xc0) != 0xc0)
        return false;
    uint32_t version = be32(s.ptr + 1);
    return version == 1 || version == 0x6b3343cf /* RFC 9369 */ ||
           version >> 8 == 0xff0000 /* drafts */;
}

static enum step step_udp(struct walk *w)
{
    const uint8_t *h;
    enum step tunnel;

    if (!walk_take(w, 8, &h))
        return walk_short(w);
    uint16_t src = be16(h);
    uint16_t dst = be16(h + 2);
    tunnel = tunnel_of_udp(w, dst);
    if (tunnel != STEP_DONE)
        return tunnel;
    return walk_end(w, src == 443 || dst == 443 || is_quic(w->s) ? PACKET_QUIC : PACKET_OTHER);
}

/* RFC 9293 3.2 and RFC 7323 2.2; what is cut or malformed ends the list. */
static void tcp_options(struct slice s, struct segment *seg)
{
    enum { END, NOP, MSS, WINDOW_SCALE, SCALE_MAX = 14 };

    while (s.len > 0 && s.ptr[0] != END) {
        struct slice option;
        size_t len = s.ptr[0] == NOP ? 1 : s.len >= 2 ? s.ptr[1] : 0;

        if (len == 0 || (len == 1 && s.ptr[0] != NOP) || !slice_take(&s, len, &option))
            return;
        if (option.ptr[0] == MSS && len == 4)
            seg->mss = be16(option.ptr + 2);
        if (option.ptr[0] == WINDOW_SCALE && len == 3)
            seg->window_scale = (int8_t)(option.ptr[2] < SCALE_MAX ? option.ptr[2] : SCALE_MAX);
    }
}

static enum step step_tcp(struct walk *w)
{
    struct segment *seg = w->seg;
    const uint8_t *h;
    struct slice options = { 0 };

    if (!walk_take(w, 20, &h))
        return walk_short(w);
    size_t len = (size_t)(h[12] >> 4) * 4;
    if (len < 20 || len - 20 > w->wire)
        return walk_end(w, PACKET_BROKEN);
    /* Options cut by the snap length: the numbers before them still count. */
    (void)!slice_take(&w->s, len - 20 < w->s.len ? len - 20 : w->s.len, &options);
    seg->src.port = be16(h);
    seg->dst.port = be16(h + 2);
    seg->seq = be32(h + 4);
    seg->ack = be32(h + 8);
    seg->flags = h[13];
    seg->window = be16(h + 14);
    seg->mss = 0;
    seg->window_scale = -1;
    if ((seg->flags & TCP_SYN) != 0)
        tcp_options(options, seg);
    seg->payload = w->s;
    seg->wire_len = (uint32_t)(w->wire - (len - 20));
    seg->at = w->frame->at;
    return walk_end(w, PACKET_TCP);
}

typedef enum step step_function(struct walk *w);

enum packet_result packet_decode(struct packets *p, const struct frame *f, struct segment *ret)
{
    static step_function *const steps[STEP_COUNT] = {
        [STEP_LINK] = step_link,   [STEP_ETHER] = step_ether,   [STEP_ETHERTYPE] = step_ethertype,
        [STEP_PPP] = step_ppp,     [STEP_MPLS] = step_mpls,     [STEP_IP] = step_ip,
        [STEP_IP4] = step_ip4,     [STEP_IP6] = step_ip6,       [STEP_PROTOCOL] = step_protocol,
        [STEP_TCP] = step_tcp,     [STEP_UDP] = step_udp,       [STEP_GRE] = step_gre,
        [STEP_VXLAN] = step_vxlan, [STEP_GENEVE] = step_geneve,
    };
    struct walk w = {
        .s = f->data,
        .wire = f->wire_len > f->data.len ? f->wire_len : f->data.len,
        .frame = f,
        .linktype = f->linktype,
        .fragments = p->fragments,
        .seg = ret,
        .result = PACKET_BROKEN, /* when the steps run out */
    };
    enum step step = STEP_LINK;

    fragments_release(p->fragments);
    ret->link_id = 0;
    for (unsigned n = 0; step != STEP_DONE && n < STEPS_MAX; n++)
        step = steps[step](&w);
    return w.result;
}
