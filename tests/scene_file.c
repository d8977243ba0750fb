/* scene_file.c - see scene_file.h. */
#include "scene_file.h"

#include "make_capture.h"
#include "scene_parts.h"

#define ETHER_LEN 14u
#define IP_LEN    20u

#define BLOCK_SECTION   0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET    6u
#define BLOCK_SECRETS   10u
#define SECRETS_TLS     0x544c534bu

/* ---- what stands around the packets ---- */

static const uint8_t ether_head[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };

static uint32_t sum_of(struct slice s, uint32_t sum)
{
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

static void put_vlan(struct made *m, struct slice ip)
{
    put(m, ether_head, sizeof(ether_head));
    put16(m, 0x88a8);
    put16(m, 100);
    put16(m, 0x8100);
    put16(m, 7);
    put16(m, 0x0800);
    put_slice(m, ip);
}

static void put_v6_address(struct made *m, const uint8_t *v4)
{
    static const uint8_t prefix[12] = { 0, 0x64, 0xff, 0x9b };

    put(m, prefix, sizeof(prefix));
    put(m, v4, 4);
}

static void put_ipv6(struct made *m, struct slice ip)
{
    struct slice tcp = { ip.ptr + IP_LEN, ip.len - IP_LEN };

    put(m, ether_head, sizeof(ether_head));
    put16(m, 0x86dd);
    put32(m, 0x60000000);
    put16(m, (unsigned)tcp.len);
    put8(m, 6);
    put8(m, ip.ptr[8]);
    put_v6_address(m, ip.ptr + 12);
    put_v6_address(m, ip.ptr + 16);
    size_t at = m->len;
    put_slice(m, tcp);
    patch16(m, at + 16, 0);
    struct slice addresses = { m->ptr + at - 32, 32 };
    struct slice all = { m->ptr + at, tcp.len };
    patch16(m, at + 16, folded(sum_of(all, sum_of(addresses, 6 + (uint32_t)tcp.len))));
}

static void put_sll2(struct made *m, struct slice ip)
{
    static const uint8_t mac[8] = { 2, 0, 0, 0, 0, 1 };

    put16(m, 0x0800);
    put16(m, 0);
    put32(m, 2); /* interface index */
    put16(m, 1); /* ARPHRD_ETHER */
    put8(m, 0);
    put8(m, 6);
    put(m, mac, sizeof(mac));
    put_slice(m, ip);
}

/* The outer IPv4 header of a tunnel. */
static void put_outer(struct made *m, unsigned protocol, size_t len)
{
    static const uint8_t ends[] = { 172, 16, 0, 1, 172, 16, 0, 2 };
    size_t at;

    put(m, ether_head, sizeof(ether_head));
    put16(m, 0x0800);
    at = m->len;
    put16(m, 0x4500);
    put16(m, (unsigned)(IP_LEN + len));
    put32(m, 0);
    put8(m, 64);
    put8(m, protocol);
    put16(m, 0);
    put(m, ends, sizeof(ends));
    patch16(m, at + 10, folded(sum_of((struct slice){ m->ptr + at, IP_LEN }, 0)));
}

static void put_gre(struct made *m, struct slice ip)
{
    put_outer(m, 47, 4 + ip.len);
    put16(m, 0);
    put16(m, 0x0800);
    put_slice(m, ip);
}

static void put_vxlan(struct made *m, struct slice ip)
{
    size_t len = 8 + 8 + ETHER_LEN + ip.len;

    put_outer(m, 17, len);
    put16(m, 50000);
    put16(m, 4789);
    put16(m, (unsigned)len);
    put16(m, 0);
    put32(m, 0x08000000);
    put32(m, 42 << 8);
    put(m, ether_head, sizeof(ether_head));
    put16(m, 0x0800);
    put_slice(m, ip);
}

static void put_on_link(struct made *m, enum scene_link link, struct slice frame)
{
    struct slice ip = { frame.ptr + ETHER_LEN, frame.len - ETHER_LEN };

    switch (link) {
    case LINK_ETHER: put_slice(m, frame); break;
    case LINK_VLAN: put_vlan(m, ip); break;
    case LINK_IPV6: put_ipv6(m, ip); break;
    case LINK_SLL2: put_sll2(m, ip); break;
    case LINK_GRE: put_gre(m, ip); break;
    case LINK_VXLAN: put_vxlan(m, ip); break;
    }
}

static unsigned link_number(enum scene_link link)
{
    return link == LINK_SLL2 ? 276 : 1;
}

/* ---- the files ---- */

static void put_pcap_head(struct made *m, const struct scene_form *form)
{
    put32(m, 0xa1b23c4d); /* nanoseconds */
    put16(m, 2);
    put16(m, 4);
    put64(m, 0);
    put32(m, 262144);
    put32(m, link_number(form->link[0]));
}

static void put_block(struct made *m, uint32_t type, const struct made *body)
{
    uint32_t len = (uint32_t)(12 + (body->len + 3) / 4 * 4);

    put32(m, type);
    put32(m, len);
    put_slice(m, made_slice(body));
    put_fill(m, 0, len - 12 - body->len);
    put32(m, len);
}

/* Two interfaces of different snap length; the times of the second are in microseconds. */
static void put_pcapng_head(struct made *m, const struct scene_form *form, struct slice keys)
{
    AUTO(made_freep) struct made b = { .little = m->little };

    put32(&b, 0x1a2b3c4d);
    put16(&b, 1);
    put16(&b, 0);
    put64(&b, UINT64_MAX);
    put_block(m, BLOCK_SECTION, &b);
    for (int i = 0; i < 2; i++) {
        b.len = 0;
        put16(&b, link_number(form->link[i]));
        put16(&b, 0);
        put32(&b, i == 0 ? 262144 : 0);
        if (i == 0) {
            put16(&b, 9); /* if_tsresol */
            put16(&b, 1);
            put8(&b, 9);
            put_fill(&b, 0, 3);
            put32(&b, 0);
        }
        put_block(m, BLOCK_INTERFACE, &b);
    }
    if (!form->secrets)
        return;
    b.len = 0;
    put32(&b, SECRETS_TLS);
    put32(&b, (uint32_t)keys.len);
    put_slice(&b, keys);
    put_block(m, BLOCK_SECRETS, &b);
}

static void put_pcap_frame(struct made *m, int64_t time, struct slice frame)
{
    put32(m, (uint32_t)(time / NS_PER_SEC));
    put32(m, (uint32_t)(time % NS_PER_SEC));
    put32(m, (uint32_t)frame.len);
    put32(m, (uint32_t)frame.len);
    put_slice(m, frame);
}

static void put_pcapng_frame(struct made *m, unsigned interface, int64_t time, struct slice frame)
{
    AUTO(made_freep) struct made b = { .little = m->little };
    uint64_t unit = (uint64_t)(interface == 0 ? time : time / 1000);

    put32(&b, interface);
    put32(&b, (uint32_t)(unit >> 32));
    put32(&b, (uint32_t)unit);
    put32(&b, (uint32_t)frame.len);
    put32(&b, (uint32_t)frame.len);
    put_slice(&b, frame);
    put_block(m, BLOCK_PACKET, &b);
}

static bool is_lost(const struct scene_form *form, size_t i)
{
    return form->of > 0 && i % form->of == form->lost;
}

struct slice scene_file(struct scene *sc, const struct scene_wire *w, const struct scene_form *form,
                        size_t part, size_t of)
{
    AUTO(made_freep) struct made m = { .little = !form->big };
    AUTO(made_freep) struct made frame = { 0 };
    bool cut = w->cut && part == 0;

    if (form->pcapng)
        put_pcapng_head(&m, form, w->keys);
    else
        put_pcap_head(&m, form);
    for (size_t i = part; i < w->count + (cut ? 1 : 0); i += of) {
        const struct scene_frame *f = &w->frame[i < w->count ? i : w->count - 1];
        unsigned interface = form->pcapng ? (unsigned)i / 3 % 2 : 0;
        if (is_lost(form, i))
            continue;
        frame.len = 0;
        put_on_link(&frame, form->link[interface], f->bytes);
        if (form->pcapng)
            put_pcapng_frame(&m, interface, f->time + form->late, made_slice(&frame));
        else
            put_pcap_frame(&m, f->time + form->late, made_slice(&frame));
        if (i >= w->count)
            m.len -= 10; /* the file is cut within a copy of its last frame */
    }
    return arena_copy(sc->arena, made_slice(&m));
}
