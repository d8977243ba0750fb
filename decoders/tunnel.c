/*
 * tunnel.c - packets within packets: GRE (RFC 2784, 2890) with ERSPAN, VXLAN (RFC 7348; GPE),
 * Geneve (RFC 8926). IP within IP is a plain step of packet.c.
 */
#include "walk.h"

enum gre_flag {
    GRE_CHECKSUM = 0x8000,
    GRE_ROUTING = 0x4000,
    GRE_KEY = 0x2000,
    GRE_SEQUENCE = 0x1000,
    GRE_VERSION = 0x0007,
};

/* Mirrored traffic. Type I has no header of its own, and GRE then no sequence number. */
static enum step erspan(struct walk *w, uint16_t type, bool has_header)
{
    enum { ERSPAN2 = 8, ERSPAN3 = 12, ERSPAN3_SUBHEADER = 8 };
    const uint8_t *h;

    if (!has_header)
        return walk_tunnel(w, STEP_ETHER);
    if (!walk_take(w, type == 0x88be ? ERSPAN2 : ERSPAN3, &h))
        return walk_short(w);
    if (type == 0x22eb && (h[11] & 1) != 0 && !walk_take(w, ERSPAN3_SUBHEADER, &h))
        return walk_short(w);
    return walk_tunnel(w, STEP_ETHER);
}

enum step step_gre(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 4, &h))
        return walk_short(w);
    unsigned flags = be16(h);
    w->type = be16(h + 2);
    if ((flags & (GRE_ROUTING | GRE_VERSION)) != 0)
        return walk_end(w, PACKET_OTHER);
    if ((flags & GRE_CHECKSUM) != 0 && !walk_take(w, 4, &h))
        return walk_short(w);
    if ((flags & GRE_KEY) != 0) {
        if (!walk_take(w, 4, &h))
            return walk_short(w);
        walk_id(w, STEP_GRE, be32(h));
    }
    if ((flags & GRE_SEQUENCE) != 0 && !walk_take(w, 4, &h))
        return walk_short(w);
    if (w->type == 0x88be || w->type == 0x22eb)
        return erspan(w, w->type, (flags & GRE_SEQUENCE) != 0);
    if (w->type == 0x6558) /* counts as a tunnel itself */
        return STEP_ETHERTYPE;
    return walk_tunnel(w, STEP_ETHERTYPE);
}

enum vxlan_flag { VXLAN_PROTOCOL = 0x04, VXLAN_ID = 0x08 };

enum step step_vxlan(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 8, &h))
        return walk_short(w);
    walk_id(w, STEP_VXLAN, be32(h + 4) >> 8);
    if ((h[0] & VXLAN_PROTOCOL) == 0)
        return walk_tunnel(w, STEP_ETHER);
    switch (h[3]) { /* draft-ietf-nvo3-vxlan-gpe 3.2 */
    case 1: return walk_tunnel(w, STEP_IP4);
    case 2: return walk_tunnel(w, STEP_IP6);
    case 3: return walk_tunnel(w, STEP_ETHER);
    default: return walk_end(w, PACKET_OTHER);
    }
}

enum step step_geneve(struct walk *w)
{
    const uint8_t *h;
    const uint8_t *options;

    if (!walk_take(w, 8, &h) || !walk_take(w, (size_t)(h[0] & 0x3f) * 4, &options))
        return walk_short(w);
    walk_id(w, STEP_GENEVE, be32(h + 4) >> 8);
    w->type = be16(h + 2);
    return w->type == 0x6558 ? STEP_ETHERTYPE : walk_tunnel(w, STEP_ETHERTYPE);
}

/* By the registered port, and the header must look like it: any program may use any port. */
enum step tunnel_of_udp(const struct walk *w, uint16_t dst_port)
{
    const uint8_t *h = w->s.ptr;

    if (w->s.len < 8)
        return STEP_DONE;
    /* 8472: where the Linux kernel's VXLAN was before the port was registered, and often still is
     */
    if ((dst_port == 4789 || dst_port == 8472) && (h[0] & 0x7f) == VXLAN_ID && h[7] == 0)
        return STEP_VXLAN;
    if (dst_port == 4790 && (h[0] & VXLAN_ID) != 0 && h[7] == 0)
        return STEP_VXLAN;
    if (dst_port == 6081 && h[0] >> 6 == 0 && h[7] == 0)
        return STEP_GENEVE;
    return STEP_DONE;
}
