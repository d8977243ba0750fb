/* test_packet.c - frames down to TCP: link layers, tunnels, IP oddities, fragments, cuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "make_capture.h"

enum { ETHERNET = 1, RAW = 101, CLIENT_PORT = 51000, SERVER_PORT = 8080 };

#define PAYLOAD SLICE_LIT("0123456789abcdef0123")

static const uint8_t client4[4] = { 10, 0, 0, 1 };
static const uint8_t server4[4] = { 192, 0, 2, 9 };
static const uint8_t client6[16] = { 0x20, 1, 0x0d, 0xb8, [15] = 1 };
static const uint8_t server6[16] = { 0x20, 1, 0x0d, 0xb8, [15] = 9 };

static void put_ether(struct made *m, unsigned type)
{
    put_fill(m, 0xee, 12);
    put16(m, type);
}

static void put_ip4(struct made *m, unsigned protocol, size_t payload, unsigned fragment)
{
    put16(m, 0x4500);
    put16(m, (unsigned)(20 + payload));
    put16(m, 0x1234); /* id */
    put16(m, fragment);
    put8(m, 63);
    put8(m, protocol);
    put16(m, 0); /* checksum: wrong */
    put(m, client4, 4);
    put(m, server4, 4);
}

static void put_ip6(struct made *m, unsigned next, size_t payload)
{
    put32(m, 0x60000000);
    put16(m, (unsigned)payload);
    put8(m, next);
    put8(m, 62);
    put(m, client6, 16);
    put(m, server6, 16);
}

static void put_tcp(struct made *m, unsigned flags, struct slice options, struct slice payload)
{
    put16(m, CLIENT_PORT);
    put16(m, SERVER_PORT);
    put32(m, 1000);
    put32(m, 2000);
    put8(m, (unsigned)(5 + options.len / 4) << 4);
    put8(m, flags);
    put16(m, 512);
    put32(m, 0);
    put_slice(m, options);
    put_slice(m, payload);
}

static void put_udp(struct made *m, unsigned dst, size_t payload)
{
    put16(m, 33333);
    put16(m, dst);
    put16(m, (unsigned)(8 + payload));
    put16(m, 0);
}

/* IPv4 with TCP and the payload: what is at the bottom of most frames here. */
static struct made packet4(void)
{
    struct made m = { 0 };

    put_ip4(&m, 6, 20 + PAYLOAD.len, 0);
    put_tcp(&m, TCP_ACK, (struct slice){ 0 }, PAYLOAD);
    return m;
}

static struct made packet6(void)
{
    struct made m = { 0 };

    put_ip6(&m, 6, 20 + PAYLOAD.len);
    put_tcp(&m, TCP_ACK, (struct slice){ 0 }, PAYLOAD);
    return m;
}

static struct frame frame_of(const struct made *m, int linktype)
{
    return (struct frame){ .data = made_slice(m),
                           .wire_len = (uint32_t)m->len,
                           .linktype = linktype,
                           .at = { NS_PER_SEC, 5, 2 } };
}

static enum packet_result decode(struct packets *p, const struct made *m, int linktype,
                                 struct segment *ret)
{
    struct frame f = frame_of(m, linktype);

    return packet_decode(p, &f, ret);
}

static void check_segment(const struct segment *s, bool ipv6)
{
    char text[ENDPOINT_TEXT];

    assert_string_equal(endpoint_text(&s->src, text),
                        ipv6 ? "[2001:db8::1]:51000" : "10.0.0.1:51000");
    assert_string_equal(endpoint_text(&s->dst, text),
                        ipv6 ? "[2001:db8::9]:8080" : "192.0.2.9:8080");
    assert_int_equal(s->seq, 1000);
    assert_int_equal(s->ack, 2000);
    assert_int_equal(s->window, 512);
    assert_int_equal(s->flags, TCP_ACK);
    assert_int_equal(s->window_scale, -1);
    assert_int_equal(s->mss, 0);
    assert_int_equal(s->ttl, ipv6 ? 62 : 63);
    assert_int_equal(s->ip_id, ipv6 ? 0 : 0x1234);
    assert_true(slice_eq(s->payload, PAYLOAD));
    assert_int_equal(s->wire_len, PAYLOAD.len);
    assert_int_equal(s->at.frame, 5);
    assert_int_equal(s->at.input, 2);
}

/* Headers, then the packet: must give the segment. Returns the link id. */
static uint64_t check_below(const struct made *headers, int linktype, bool ipv6)
{
    AUTO(made_freep) struct made inner = ipv6 ? packet6() : packet4();
    AUTO(made_freep) struct made m = { 0 };
    struct packets *p = packets_new();
    struct segment s = { 0 };

    put_slice(&m, made_slice(headers));
    put_slice(&m, made_slice(&inner));
    put_fill(&m, 0, 6); /* padding, or a frame check sequence */
    assert_int_equal(decode(p, &m, linktype, &s), PACKET_TCP);
    check_segment(&s, ipv6);
    packets_free(p);
    return s.link_id;
}

/* for tables: a compound literal is no constant */
#define HEX(s)                                                                                     \
    {                                                                                              \
        (const uint8_t *)("" s), sizeof(s) - 1                                                     \
    }

static const struct {
    struct slice header;
    int linktype;
    bool ipv6;
    bool has_id; /* VLAN or tunnel id */
} links[] = {
    { HEX("\x02\0\0\0"), 0, false, false },
    { HEX("\0\0\0\x02"), 0, false, false },
    { HEX("\x1e\0\0\0"), 0, true, false },
    { HEX("\0\0\0\x18"), 0, true, false },
    { HEX("\0\0\0\x02"), 108, false, false },
    { HEX(""), 12, false, false },
    { HEX(""), 14, true, false },
    { HEX(""), 101, false, false },
    { HEX(""), 101, true, false },
    { HEX(""), 228, false, false },
    { HEX(""), 229, true, false },
    { HEX("\xff\x03\0\x21"), 9, false, false },
    { HEX("\0\x57"), 9, true, false },
    { HEX("\x21"), 9, false, false },
    { HEX("\xff\x03\0\x21"), 50, false, false },
    { HEX("\x0f\0\x08\0"), 104, false, false },
    { HEX("\0\0\0\x01\0\x06\x01\x02\x03\x04\x05\x06\0\0\x08\0"), 113, false, false },
    { HEX("\0\0\0\x01\0\x06\x01\x02\x03\x04\x05\x06\0\0\x81\0\0\x07\x08\0"), 113, false, true },
    { HEX("\x86\xdd\0\0\0\0\0\x02\0\x01\0\x06\x01\x02\x03\x04\x05\x06\0\0"), 276, true, false },
    /* NFLOG: a packet header attribute (padded), then the payload, in both byte orders */
    { HEX("\x02\0\0\0\x07\0\x01\0abc\0\x46\0\x09\0"), 239, false, false },
    { HEX("\x02\0\0\0\0\x07\0\x01"
          "abc\0\0\x46\0\x09"),
      239, false, false },
};

static void test_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        AUTO(made_freep) struct made m = { 0 };
        put_slice(&m, links[i].header);
        uint64_t id = check_below(&m, links[i].linktype, links[i].ipv6);
        assert_int_equal(id != 0, links[i].has_id);
    }
}

static void test_pktap(void **state)
{
    AUTO(made_freep) struct made m = { .little = true };

    (void)state;
    put32(&m, 112);
    put32(&m, 1);
    put32(&m, 0); /* loopback */
    put_fill(&m, 0x33, 100);
    put32(&m, 2);
    check_below(&m, 258, false);
    check_below(&m, 149, false);
}

/* What may stand between an Ethernet header and IP. */
static const struct {
    struct slice header;
    unsigned type;
    bool ipv6;
    bool has_id;
} ether[] = {
    { HEX(""), 0x0800, false, false },
    { HEX(""), 0x86dd, true, false },
    { HEX("\x20\x05\x08\0"), 0x8100, false, true },
    { HEX("\xe0\0\x08\0"), 0x8100, false, false }, /* priority only */
    { HEX("\0\x07\x81\0\0\x08\x86\xdd"), 0x88a8, true, true },
    { HEX("\0\x07\x08\0"), 0x9100, false, true },
    { HEX("\0\x01\x01\x40"), 0x8847, false, false },
    { HEX("\0\x01\0\x40\0\x02\x01\x40"), 0x8847, true, false },
    /* pseudo wire, with and without control word */
    { HEX("\0\x01\x01\x40\0\0\x01\0aaaaaabbbbbb\x08\0"), 0x8847, false, false },
    { HEX("\0\x01\x01\x40\x22"
          "aaaaabbbbbb\x08\0"),
      0x8847, false, false },
    { HEX("\x11\0\x12\x34\0\x50\0\x21"), 0x8864, false, true },
    { HEX("\x11\0\x12\x34\0\x50\0\x57"), 0x8864, true, true },
    { HEX("\xaa\xaa\x03\0\0\0\x08\0"), 100, false, false },
};

static void test_ether(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ether); i++) {
        AUTO(made_freep) struct made m = { 0 };
        put_ether(&m, ether[i].type);
        put_slice(&m, ether[i].header);
        uint64_t id = check_below(&m, ETHERNET, ether[i].ipv6);
        assert_int_equal(id != 0, ether[i].has_id);
    }
}

/* What may stand between IPv4 and the packet; protocol 17 with a port is UDP. */
static const struct {
    unsigned protocol;
    unsigned port;
    struct slice header;
    bool ipv6;
    bool has_id;
} tunnels[] = {
    { 4, 0, HEX(""), false, false },
    { 41, 0, HEX(""), true, false },
    { 137, 0, HEX("\0\x01\x01\x40"), false, false },
    { 51, 0, HEX("\x04\x04\0\0aaaabbbbccccccccdddd"), false, false },
    { 47, 0, HEX("\0\0\x08\0"), false, false },
    { 47, 0, HEX("\0\0\x86\xdd"), true, false },
    { 47, 0, HEX("\xb0\0\x08\0cksmkkkkseqn"), false, true },
    { 47, 0, HEX("\x20\0\x65\x58kkkkaaaaaabbbbbb\x08\0"), false, true },
    { 47, 0,
      HEX("\0\0\x88\xbe"
          "aaaaaabbbbbb\x08\0"),
      false, false },
    { 47, 0, HEX("\x10\0\x88\xbeseqn\x10\0\0\0\0\0\0\0aaaaaabbbbbb\x08\0"), false, false },
    { 47, 0, HEX("\x10\0\x22\xebseqn\x20\0\0\0tttt\0\0\0\x01platformaaaaaabbbbbb\x08\0"), false,
      false },
    { 17, 4789, HEX("\x08\0\0\0\0\0\x05\0aaaaaabbbbbb\x08\0"), false, true },
    { 17, 8472, HEX("\x08\0\0\0\0\0\x05\0aaaaaabbbbbb\x86\xdd"), true, true },
    { 17, 4789, HEX("\x88\0\0\x10\0\0\x05\0aaaaaabbbbbb\x81\0\0\x02\x08\0"), false, true },
    { 17, 4790, HEX("\x0c\0\0\x01\0\0\x05\0"), false, true },
    { 17, 4790, HEX("\x0c\0\0\x02\0\0\x05\0"), true, true },
    { 17, 4790, HEX("\x0c\0\0\x03\0\0\x05\0aaaaaabbbbbb\x08\0"), false, true },
    { 17, 6081, HEX("\0\0\x65\x58\0\0\x05\0aaaaaabbbbbb\x08\0"), false, true },
    { 17, 6081, HEX("\x02\0\x08\0\0\0\x05\0optionsX"), false, true },
};

static void put_tunnel(struct made *m, size_t i)
{
    bool udp = tunnels[i].port != 0;
    size_t inner = tunnels[i].header.len + 40 + PAYLOAD.len + (tunnels[i].ipv6 ? 20 : 0);

    put_ip4(m, tunnels[i].protocol, inner + (udp ? 8 : 0), 0);
    if (udp)
        put_udp(m, tunnels[i].port, inner);
    put_slice(m, tunnels[i].header);
}

static void test_tunnels(void **state)
{
    uint64_t ids[ARRAY_LEN(tunnels)];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tunnels); i++) {
        AUTO(made_freep) struct made m = { 0 };
        put_ether(&m, 0x0800);
        put_tunnel(&m, i);
        ids[i] = check_below(&m, ETHERNET, tunnels[i].ipv6);
        assert_int_equal(ids[i] != 0, tunnels[i].has_id);
    }
    assert_int_equal(ids[11], ids[12]); /* the same network, by either port */
    assert_int_not_equal(ids[11], ids[13]);
    assert_int_not_equal(ids[11], ids[17]);
}

static void test_nesting(void **state)
{
    struct packets *p = packets_new();
    AUTO(made_freep) struct made inner = packet4();
    struct segment s = { 0 };

    (void)state;
    for (unsigned depth = 0; depth < 200; depth++) {
        AUTO(made_freep) struct made m = { 0 };
        for (unsigned i = 0; i < depth; i++)
            put_ip4(&m, 4, 20 * (size_t)(depth - i - 1) + inner.len, 0);
        put_slice(&m, made_slice(&inner));
        assert_int_equal(decode(p, &m, RAW, &s), depth <= 8 ? PACKET_TCP : PACKET_OTHER);
    }
    AUTO(made_freep) struct made tags = { 0 };
    put_ether(&tags, 0x8100);
    for (unsigned i = 0; i < 10000; i++)
        put32(&tags, 0x00058100);
    assert_int_equal(decode(p, &tags, ETHERNET, &s), PACKET_BROKEN);
    packets_free(p);
}

/* IPv6: headers before TCP. */
static void test_extensions(void **state)
{
    static const struct {
        unsigned next;
        struct slice header;
    } cases[] = {
        { 0, HEX("\x06\0\x01\x04\0\0\0\0") },
        { 43, HEX("\x06\x02\0\0aaaabbbbccccddddeeee") },
        { 60, HEX("\x2c\0\x01\x04\0\0\0\0\x06\0\0\0abcd") }, /* with an atomic fragment */
        { 51, HEX("\x06\x04\0\0aaaabbbbccccddddeeee") },
        { 135, HEX("\x06\0\0\0\0\0\0\0") },
    };
    struct packets *p = packets_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(made_freep) struct made m = { 0 };
        struct segment s = { 0 };
        put_ip6(&m, cases[i].next, cases[i].header.len + 20 + PAYLOAD.len);
        put_slice(&m, cases[i].header);
        put_tcp(&m, TCP_ACK, (struct slice){ 0 }, PAYLOAD);
        assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
        check_segment(&s, true);
    }
    packets_free(p);
}

static void test_lengths(void **state)
{
    struct packets *p = packets_new();
    AUTO(made_freep) struct made m = packet4();
    AUTO(made_freep) struct made v6 = packet6();
    struct segment s = { 0 };

    (void)state;
    patch16(&m, 2, 0); /* cut up later by the card: all of the capture counts */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
    check_segment(&s, false);
    patch16(&v6, 4, 0);
    assert_int_equal(decode(p, &v6, RAW, &s), PACKET_TCP);
    check_segment(&s, true);
    patch16(&m, 2, 40 + PAYLOAD.len - 3); /* shorter than the frame */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
    assert_int_equal(s.payload.len, PAYLOAD.len - 3);
    assert_int_equal(s.wire_len, PAYLOAD.len - 3);
    patch16(&m, 2, 1500); /* longer than the frame says */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
    assert_true(slice_eq(s.payload, PAYLOAD));
    assert_int_equal(s.wire_len, 1460);
    patch16(&m, 2, 30); /* ends in the TCP header */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_BROKEN);
    patch16(&m, 2, 19);
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_BROKEN);
    packets_free(p);
}

static void test_options(void **state)
{
    static const struct {
        struct slice options;
        int scale;
        unsigned mss;
    } cases[] = {
        { HEX("\x02\x04\x05\xb4\x01\x03\x03\x07\x04\x02\0\0"), 7, 1460 },
        { HEX("\x03\x03\x10\x01"), 14, 0 }, /* RFC 7323 2.3: no more than 14 */
        { HEX("\x01\x01\x01\x01"), -1, 0 },
        { HEX("\0\x03\x03\x07"), -1, 0 },
        { HEX("\x05\0\x03\x03"), -1, 0 },              /* length 0 */
        { HEX("\x02\x03\x05\x03\x03\x07\0\0"), 7, 0 }, /* an MSS of one byte */
        { HEX("\x03\x04\x07\0\x02\x02\0\0"), -1, 0 },
        { HEX("\x01\x01\x02\x40"), -1, 0 },
    };
    struct packets *p = packets_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(made_freep) struct made m = { 0 };
        struct segment s = { 0 };
        size_t at = 20 + 13;
        put_ip4(&m, 6, 20 + cases[i].options.len, 0);
        put_tcp(&m, TCP_SYN, cases[i].options, (struct slice){ 0 });
        assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
        assert_int_equal(s.window_scale, cases[i].scale);
        assert_int_equal(s.mss, cases[i].mss);
        assert_int_equal(s.wire_len, 0);
        m.ptr[at] = TCP_ACK; /* outside a SYN they mean nothing */
        assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
        assert_int_equal(s.window_scale, -1);
        assert_int_equal(s.mss, 0);
    }
    packets_free(p);
}

/* Any snap length: the lengths on the wire stay known, and nothing is invented. */
static void check_snaplen(const struct made *m, int linktype, size_t tcp_at, size_t payload_at)
{
    struct packets *p = packets_new();
    struct segment s = { 0 };

    for (size_t cut = 0; cut <= m->len; cut++) {
        uint8_t *exact = mem_grow(NULL, cut ? cut : 1); /* so that a sanitizer sees its end */
        struct frame f = frame_of(m, linktype);
        memcpy(exact, m->ptr, cut);
        f.data = (struct slice){ exact, cut };
        enum packet_result r = packet_decode(p, &f, &s);
        assert_int_equal(r, cut < tcp_at + 20 ? PACKET_CUT : PACKET_TCP);
        if (r == PACKET_TCP) {
            assert_int_equal(s.wire_len, m->len - payload_at);
            assert_int_equal(s.payload.len, cut > payload_at ? cut - payload_at : 0);
        }
        /* the same bytes without the wire's length: a frame that contradicts itself */
        f.wire_len = (uint32_t)cut;
        r = packet_decode(p, &f, &s);
        assert_true(r == PACKET_BROKEN || r == PACKET_CUT || r == PACKET_TCP);
        free(exact);
    }
    packets_free(p);
}

static void test_snaplen(void **state)
{
    AUTO(made_freep) struct made m = { 0 };
    AUTO(made_freep) struct made vxlan = { 0 };
    AUTO(made_freep) struct made inner = packet4();

    (void)state;
    put_ether(&m, 0x8100);
    put32(&m, 0x00070800);
    put_ip4(&m, 6, 32 + PAYLOAD.len, 0);
    put_tcp(&m, TCP_SYN, SLICE_LIT("\x02\x04\x05\xb4\x01\x03\x03\x07\x01\x01\x01\x01"), PAYLOAD);
    check_snaplen(&m, ETHERNET, 38, 70);
    put_ip4(&vxlan, 17, 30 + inner.len, 0);
    put_udp(&vxlan, 4789, 22 + inner.len);
    put64(&vxlan, 0x0800000000000500);
    put_ether(&vxlan, 0x0800);
    put_slice(&vxlan, made_slice(&inner));
    /* before the tunnel's own header is whole it is any UDP datagram */
    struct packets *p = packets_new();
    for (size_t cut = 20; cut <= vxlan.len; cut++) {
        struct frame f = frame_of(&vxlan, RAW);
        struct segment s = { 0 };
        f.data.len = cut;
        assert_int_equal(packet_decode(p, &f, &s), cut >= 90  ? PACKET_TCP
                                                   : cut < 28 ? PACKET_CUT
                                                   : cut < 36 ? PACKET_OTHER
                                                              : PACKET_CUT);
    }
    packets_free(p);
}

static void check_udp(unsigned dst, struct slice payload, enum packet_result want)
{
    AUTO(made_freep) struct made m = { 0 };
    struct packets *p = packets_new();
    struct segment s = { 0 };

    put_ip4(&m, 17, 8 + payload.len, 0);
    put_udp(&m, dst, payload.len);
    put_slice(&m, payload);
    assert_int_equal(decode(p, &m, RAW, &s), want);
    packets_free(p);
}

static void test_udp(void **state)
{
    (void)state;
    check_udp(443, SLICE_LIT("\x40short header"), PACKET_QUIC);
    check_udp(8443, SLICE_LIT("\xc3\0\0\0\x01\x08........"), PACKET_QUIC);
    check_udp(8443, SLICE_LIT("\xd3\x6b\x33\x43\xcf\x08........"), PACKET_QUIC);
    check_udp(8443, SLICE_LIT("\xc0\xff\0\0\x1d\x08........"), PACKET_QUIC);
    check_udp(8443, SLICE_LIT("\xc3\x12\0\0\x01\x08........"), PACKET_OTHER);
    check_udp(8443, SLICE_LIT("\x83\0\0\0\x01\x08........"), PACKET_OTHER);
    check_udp(53, SLICE_LIT(""), PACKET_OTHER);
    check_udp(4789, SLICE_LIT("anything else"), PACKET_OTHER);
    check_udp(6081, SLICE_LIT("\xff\xff\xff\xff\xff\xff\xff\xff"), PACKET_OTHER);
}

static void test_others(void **state)
{
    static const struct {
        struct slice bytes;
        int linktype;
        enum packet_result want;
    } cases[] = {
        { HEX("aaaaaabbbbbb\x08\x06"), 1, PACKET_OTHER },                 /* ARP */
        { HEX("aaaaaabbbbbb\0\x26\x42\x42\x03......"), 1, PACKET_OTHER }, /* spanning tree */
        { HEX("aaaaaabbbbbb\x88\x64\x21\0\0\0\0\0\0\x21"), 1, PACKET_OTHER },
        { HEX("aaaaaabbbbbb"), 1, PACKET_BROKEN },
        { HEX("\x07\0\0\0...."), 0, PACKET_OTHER },
        { HEX("\xc0\x21...."), 9, PACKET_OTHER },
        { HEX(""), 101, PACKET_BROKEN },
        { HEX("\x5f"), 101, PACKET_OTHER },
        { HEX("\x65......................"), 228, PACKET_BROKEN },
        { HEX("\x02\0\0\0\x04\0\x01\0"), 239, PACKET_OTHER },
        { HEX("\x02\0\0\0\0\0\0\0"), 239, PACKET_OTHER },
        { HEX("................"), 105, PACKET_LINKTYPE },
        { HEX(""), 9999, PACKET_LINKTYPE },
    };
    struct packets *p = packets_new();
    struct segment s = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(made_freep) struct made m = { 0 };
        put_slice(&m, cases[i].bytes);
        assert_int_equal(decode(p, &m, cases[i].linktype, &s), cases[i].want);
    }
    AUTO(made_freep) struct made m = packet4();
    m.ptr[20 + 12] = 0x40; /* TCP header of 16 bytes */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_BROKEN);
    m.ptr[20 + 12] = 0xf0; /* and one that is longer than the packet */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_BROKEN);
    m.ptr[0] = 0x44;
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_BROKEN);
    m.ptr[0] = 0x45;
    m.ptr[9] = 1; /* ICMP */
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_OTHER);
    packets_free(p);
}

/* Of a packet, the part that one fragment carries. */
struct range {
    size_t from;
    size_t to;
};

static void put_fragment(struct made *m, bool ipv6, unsigned protocol, struct slice whole,
                         struct range r)
{
    size_t len = r.to - r.from;
    bool more = r.to < whole.len;

    m->len = 0;
    if (ipv6) {
        put_ip6(m, 44, 8 + len);
        put16(m, protocol << 8);
        put16(m, (unsigned)r.from | more);
        put32(m, 77);
    } else {
        put_ip4(m, protocol, len, (unsigned)(r.from / 8) | (more ? 0x2000 : 0));
    }
    put(m, whole.ptr + r.from, len);
}

/* The TCP part of a packet in fragments of n bytes, the last first if so wished. */
static void check_fragments(bool ipv6, size_t n, bool backwards)
{
    AUTO(made_freep) struct made tcp = { 0 };
    AUTO(made_freep) struct made m = { 0 };
    struct packets *p = packets_new();
    struct segment s = { 0 };

    put_tcp(&tcp, TCP_ACK, (struct slice){ 0 }, PAYLOAD);
    size_t count = (tcp.len + n - 1) / n;
    for (size_t i = 0; i < count; i++) {
        size_t at = (backwards ? count - 1 - i : i) * n;
        size_t end = at + n < tcp.len ? at + n : tcp.len;
        put_fragment(&m, ipv6, 6, made_slice(&tcp), (struct range){ at, end });
        assert_int_equal(decode(p, &m, RAW, &s), i + 1 < count ? PACKET_HELD : PACKET_TCP);
    }
    check_segment(&s, ipv6);
    packets_free(p);
}

static void test_fragments(void **state)
{
    (void)state;
    for (size_t n = 8; n < 40; n += 8) {
        check_fragments(false, n, false);
        check_fragments(false, n, true);
        check_fragments(true, n, false);
        check_fragments(true, n, true);
    }
}

/* Fragments within a tunnel whose own packets are fragments: both wholes live until the end. */
static void test_fragments_nested(void **state)
{
    AUTO(made_freep) struct made tcp = { 0 };
    AUTO(made_freep) struct made inner = { 0 };
    AUTO(made_freep) struct made m = { 0 };
    struct packets *p = packets_new();
    struct segment s = { 0 };

    (void)state;
    put_tcp(&tcp, TCP_ACK, (struct slice){ 0 }, PAYLOAD);
    for (unsigned i = 0; i < 2; i++) {
        put_fragment(&inner, false, 6, made_slice(&tcp),
                     (struct range){ 24 * (size_t)i, i == 0 ? 24 : tcp.len });
        put_fragment(&m, true, 4, made_slice(&inner), (struct range){ 0, 16 });
        assert_int_equal(decode(p, &m, RAW, &s), PACKET_HELD);
        put_fragment(&m, true, 4, made_slice(&inner), (struct range){ 16, inner.len });
        assert_int_equal(decode(p, &m, RAW, &s), i == 0 ? PACKET_HELD : PACKET_TCP);
    }
    check_segment(&s, false);
    packets_free(p);
}

static void test_fragment_snaplen(void **state)
{
    AUTO(made_freep) struct made tcp = { 0 };
    AUTO(made_freep) struct made m = { 0 };
    struct packets *p = packets_new();
    struct segment s = { 0 };

    (void)state;
    put_tcp(&tcp, TCP_ACK, (struct slice){ 0 }, PAYLOAD);
    put_fragment(&m, false, 6, made_slice(&tcp), (struct range){ 0, 32 });
    struct frame f = frame_of(&m, RAW);
    f.data.len = 20 + 25;
    assert_int_equal(packet_decode(p, &f, &s), PACKET_HELD);
    put_fragment(&m, false, 6, made_slice(&tcp), (struct range){ 32, tcp.len });
    assert_int_equal(decode(p, &m, RAW, &s), PACKET_TCP);
    assert_int_equal(s.wire_len, PAYLOAD.len);
    assert_int_equal(s.payload.len, 5); /* no byte after the hole is glued on */
    packets_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_pktap),
        cmocka_unit_test(test_ether),
        cmocka_unit_test(test_tunnels),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_extensions),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_snaplen),
        cmocka_unit_test(test_udp),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_fragments_nested),
        cmocka_unit_test(test_fragment_snaplen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
