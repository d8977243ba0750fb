/*
 * walk.h - the way down through the headers of one frame; shared by packet.c (IP and above), link.c
 * and tunnel.c, of no use to others.
 *
 * Each header is a step: a function that takes it off the front and names the next step. A loop
 * runs them, so the depth of a frame never becomes depth of the stack.
 */
#ifndef WALK_H
#define WALK_H

#include "fragment.h"
#include "packet.h"

enum step {
    STEP_LINK,      /* w->linktype */
    STEP_ETHER,     /* addresses and type */
    STEP_ETHERTYPE, /* w->type */
    STEP_PPP,
    STEP_MPLS,
    STEP_IP, /* version by the first nibble */
    STEP_IP4,
    STEP_IP6,
    STEP_PROTOCOL, /* IP protocol or IPv6 next header w->protocol */
    STEP_TCP,
    STEP_UDP,
    STEP_GRE,
    STEP_VXLAN,
    STEP_GENEVE,
    STEP_DONE, /* w->result */
    STEP_COUNT = STEP_DONE,
};

struct walk {
    struct slice s; /* what is captured of the rest */
    size_t wire;    /* its length on the wire; never less than s.len */
    const struct frame *frame;
    struct fragments *fragments;
    struct segment *seg;
    int linktype;
    uint16_t type;    /* Ethernet type */
    uint8_t protocol; /* IP */
    unsigned tunnels;
    enum packet_result result;
};

#define TUNNELS_MAX 8u

/* The walk is over. */
static inline enum step walk_end(struct walk *w, enum packet_result result)
{
    w->result = result;
    return STEP_DONE;
}

/* A header is not whole: cut by the snap length, or the frame contradicts itself. */
static inline enum step walk_short(struct walk *w)
{
    return walk_end(w, w->wire > w->s.len ? PACKET_CUT : PACKET_BROKEN);
}

MUST_CHECK static inline bool walk_take(struct walk *w, size_t n, const uint8_t **ret)
{
    struct slice head;

    if (!slice_take(&w->s, n, &head))
        return false;
    w->wire -= n;
    *ret = head.ptr;
    return true;
}

/* Of here on the headers above say how long the rest is on the wire. */
static inline void walk_limit(struct walk *w, size_t wire)
{
    w->wire = wire;
    if (w->s.len > wire)
        w->s.len = wire;
}

/* A VLAN or tunnel id that tells apart equal addresses. */
static inline void walk_id(struct walk *w, enum step kind, uint32_t id)
{
    w->seg->link_id = hash_mix(w->seg->link_id, (uint64_t)kind << 32 | id);
}

/* Into a tunnel, unless there are too many. */
static inline enum step walk_tunnel(struct walk *w, enum step next)
{
    return w->tunnels++ < TUNNELS_MAX ? next : walk_end(w, PACKET_OTHER);
}

static inline uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be32(const uint8_t *p)
{
    return (uint32_t)be16(p) << 16 | be16(p + 2);
}

/* link.c */
enum step step_link(struct walk *w);
enum step step_ether(struct walk *w);
enum step step_ethertype(struct walk *w);
enum step step_ppp(struct walk *w);
enum step step_mpls(struct walk *w);
/* tunnel.c */
enum step step_gre(struct walk *w);
enum step step_vxlan(struct walk *w);
enum step step_geneve(struct walk *w);
/* STEP_DONE when the datagram is none of these; w is then as before */
enum step tunnel_of_udp(const struct walk *w, uint16_t dst_port);

#endif
