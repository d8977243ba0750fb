/*
 * link.c - link layers down to IP: the link types of pcap-linktype(7), VLAN tags (IEEE 802.1Q),
 * LLC/SNAP, PPP (RFC 1661, 1662), PPPoE (RFC 2516), MPLS (RFC 3032).
 */
#include "walk.h"

enum linktype {
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_PPP = 9,
    LINK_RAW_BSD = 12,
    LINK_RAW_OPENBSD = 14,
    LINK_PPP_HDLC = 50,
    LINK_RAW = 101,
    LINK_C_HDLC = 104,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_NFLOG = 239,
    LINK_PKTAP_APPLE = 149, /* what Apple's tools write: a value for private use */
    LINK_PKTAP = 258,
    LINK_SLL2 = 276,
};

/* Loopback of the BSDs: an address family, in the byte order of the machine that captured. */
static enum step link_null(struct walk *w)
{
    static const uint32_t family[] = { 2, 10, 24, 28, 30 }; /* AF_INET; AF_INET6 by system */
    const uint8_t *h;

    if (!walk_take(w, 4, &h))
        return walk_short(w);
    uint32_t v = be32(h);
    if (v > 0xffff)
        v = __builtin_bswap32(v);
    for (size_t i = 0; i < ARRAY_LEN(family); i++) {
        if (v == family[i])
            return STEP_IP;
    }
    return walk_end(w, PACKET_OTHER);
}

/* Cisco's: address, control, and a type as of Ethernet. */
static enum step link_c_hdlc(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 4, &h))
        return walk_short(w);
    w->type = be16(h + 2);
    return STEP_ETHERTYPE;
}

static enum step link_sll(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 16, &h))
        return walk_short(w);
    w->type = be16(h + 14);
    return STEP_ETHERTYPE;
}

static enum step link_sll2(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 20, &h))
        return walk_short(w);
    w->type = be16(h);
    return STEP_ETHERTYPE;
}

static uint16_t num16(const uint8_t *p, bool big)
{
    return (uint16_t)(big ? p[0] << 8 | p[1] : p[1] << 8 | p[0]);
}

/* Finds the packet among the attributes of an NFLOG record. */
static bool nflog_payload(struct slice s, bool big, struct slice *ret)
{
    enum { HEADER = 4, NFULA_PAYLOAD = 9 };

    while (s.len >= HEADER) {
        struct slice value;
        size_t len = num16(s.ptr, big);
        unsigned type = num16(s.ptr + 2, big) & 0x7fff;

        if (type == NFULA_PAYLOAD && len >= HEADER) { /* may be cut by the snap length */
            *ret = (struct slice){ s.ptr + HEADER, (len < s.len ? len : s.len) - HEADER };
            return true;
        }
        if (len < HEADER || !slice_take(&s, (len + 3) / 4 * 4, &value))
            return false;
    }
    return false;
}

/* The attributes are in the byte order of the machine that captured, which nothing tells. */
static enum step link_nflog(struct walk *w)
{
    struct slice payload;
    const uint8_t *h;

    if (!walk_take(w, 4, &h))
        return walk_short(w);
    if (!nflog_payload(w->s, false, &payload) && !nflog_payload(w->s, true, &payload))
        return w->wire > w->s.len ? walk_short(w) : walk_end(w, PACKET_OTHER);
    w->wire -= (size_t)(payload.ptr - w->s.ptr);
    w->s = payload;
    return STEP_IP;
}

static uint32_t le32(const uint8_t *p)
{
    return __builtin_bswap32(be32(p));
}

/* Apple's "any" interface: length, record type and link type of what follows, then names. */
static enum step link_pktap(struct walk *w)
{
    enum { PKTAP_HEADER = 108, RECORD_PACKET = 1 };
    const uint8_t *h;

    if (w->s.len < PKTAP_HEADER)
        return walk_short(w);
    w->linktype = (int)le32(w->s.ptr + 8);
    if (le32(w->s.ptr + 4) != RECORD_PACKET || le32(w->s.ptr) < PKTAP_HEADER)
        return walk_end(w, PACKET_LINKTYPE);
    return walk_take(w, le32(w->s.ptr), &h) ? STEP_LINK : walk_short(w);
}

enum step step_link(struct walk *w)
{
    switch (w->linktype) {
    case LINK_ETHERNET: return STEP_ETHER;
    case LINK_NULL:
    case LINK_LOOP: return link_null(w);
    case LINK_RAW_BSD:
    case LINK_RAW_OPENBSD:
    case LINK_RAW: return STEP_IP;
    case LINK_IPV4: return STEP_IP4;
    case LINK_IPV6: return STEP_IP6;
    case LINK_C_HDLC: return link_c_hdlc(w);
    case LINK_PPP:
    case LINK_PPP_HDLC: return STEP_PPP;
    case LINK_SLL: return link_sll(w);
    case LINK_SLL2: return link_sll2(w);
    case LINK_PKTAP:
    case LINK_PKTAP_APPLE: return link_pktap(w);
    case LINK_NFLOG: return link_nflog(w);
    default: return walk_end(w, PACKET_LINKTYPE);
    }
}

enum step step_ether(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 14, &h))
        return walk_short(w);
    w->type = be16(h + 12);
    return STEP_ETHERTYPE;
}

static enum step vlan(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 4, &h))
        return walk_short(w);
    uint32_t id = be16(h) & 0x0fff;
    if (id != 0) /* 0: the tag holds a priority only */
        walk_id(w, STEP_ETHERTYPE, id);
    w->type = be16(h + 2);
    return STEP_ETHERTYPE;
}

/* The type is a length: IP goes over LLC with a SNAP header (RFC 1042). */
static enum step snap(struct walk *w)
{
    static const uint8_t rfc1042[6] = { 0xaa, 0xaa, 0x03 };
    const uint8_t *h;

    if (w->s.len < 8 || memcmp(w->s.ptr, rfc1042, sizeof(rfc1042)) != 0 || !walk_take(w, 8, &h))
        return walk_end(w, PACKET_OTHER);
    w->type = be16(h + 6);
    return w->type > 1500 ? STEP_ETHERTYPE : walk_end(w, PACKET_OTHER);
}

static enum step pppoe(struct walk *w)
{
    const uint8_t *h;

    if (!walk_take(w, 6, &h))
        return walk_short(w);
    if (h[0] != 0x11 || h[1] != 0)
        return walk_end(w, PACKET_OTHER);
    walk_id(w, STEP_PPP, be16(h + 2));
    return STEP_PPP;
}

enum step step_ethertype(struct walk *w)
{
    switch (w->type) {
    case 0x0800: return STEP_IP4;
    case 0x86dd: return STEP_IP6;
    case 0x8100: /* 802.1Q, 802.1ad and its forerunners */
    case 0x88a8:
    case 0x9100:
    case 0x9200: return vlan(w);
    case 0x8847:
    case 0x8848: return STEP_MPLS;
    case 0x8864: return pppoe(w);
    case 0x880b: return STEP_PPP;
    case 0x6558: return walk_tunnel(w, STEP_ETHER);
    default: return w->type <= 1500 ? snap(w) : walk_end(w, PACKET_OTHER);
    }
}

enum step step_ppp(struct walk *w)
{
    const uint8_t *h;
    uint16_t protocol;

    if (w->s.len >= 2 && w->s.ptr[0] == 0xff && w->s.ptr[1] == 0x03 && !walk_take(w, 2, &h))
        return walk_short(w);
    if (!walk_take(w, 1, &h))
        return walk_short(w);
    protocol = h[0];
    if ((protocol & 1) == 0) { /* not compressed (RFC 1661 6.5) */
        if (!walk_take(w, 1, &h))
            return walk_short(w);
        protocol = (uint16_t)(protocol << 8 | h[0]);
    }
    switch (protocol) {
    case 0x0021: return STEP_IP4;
    case 0x0057: return STEP_IP6;
    case 0x0281:
    case 0x0283: return STEP_MPLS;
    default: return walk_end(w, PACKET_OTHER);
    }
}

/*
 * Labels differ between the two directions of a path, so they are no part of the link's identity.
 * Nothing says what is below the last one: IP by its version, else Ethernet, with or without a
 * control word (RFC 4385).
 */
enum step step_mpls(struct walk *w)
{
    const uint8_t *h;

    do {
        if (!walk_take(w, 4, &h))
            return walk_short(w);
    } while ((h[2] & 1) == 0);
    if (w->s.len == 0)
        return walk_short(w);
    switch (w->s.ptr[0] >> 4) {
    case 4: return walk_tunnel(w, STEP_IP4);
    case 6: return walk_tunnel(w, STEP_IP6);
    case 0: return walk_take(w, 4, &h) ? walk_tunnel(w, STEP_ETHER) : walk_short(w);
    default: return walk_tunnel(w, STEP_ETHER);
    }
}
