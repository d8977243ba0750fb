/*
 * fragment.h - reassembly of IPv4 (RFC 791) and IPv6 (RFC 8200 4.5) fragments, within fixed bounds:
 * so many datagrams at a time, the oldest gives way.
 *
 * Hostile input: a fragment that contradicts what is held (overlap with other content, another end)
 * discards the whole datagram, as RFC 5722 asks for.
 */
#ifndef FRAGMENT_H
#define FRAGMENT_H

#include "base.h"

struct fragment {
    const uint8_t *src; /* 16 bytes each */
    const uint8_t *dst;
    uint64_t link_id;
    uint32_t id;
    bool ipv6;
    uint8_t protocol;  /* of the payload */
    uint32_t offset;   /* in bytes */
    bool more;         /* others follow */
    struct slice data; /* what is captured of it */
    size_t wire;       /* its length on the wire */
    int64_t time;
};

enum fragment_result { FRAGMENT_HELD, FRAGMENT_WHOLE, FRAGMENT_BROKEN };

/* A whole datagram; data is shorter than wire when a fragment was cut by the snap length. */
struct datagram {
    struct slice data; /* until fragments_release */
    size_t wire;
    uint8_t protocol; /* of the first fragment */
};

struct fragments;
struct fragments *fragments_new(void);
void fragments_free(struct fragments *f);
enum fragment_result fragments_add(struct fragments *f, const struct fragment *part,
                                   struct datagram *ret);
/* Datagrams handed out are done with. */
void fragments_release(struct fragments *f);

#endif
