/*
 * packet.h - one captured frame down to its TCP segment: link layer, tunnels, IP with fragments.
 *
 *     p = packets_new();
 *     if (packet_decode(p, &frame, &seg) == PACKET_TCP) flows_feed(flows, &seg);
 *     packets_free(p);
 */
#ifndef PACKET_H
#define PACKET_H

#include "flow.h"

/* One frame as the capture reader gives it. */
struct frame {
    struct slice data;  /* borrowed until the next read */
    uint32_t wire_len;  /* length on the wire; more than data.len: cut by the snap length */
    int linktype;       /* LINKTYPE_ value (pcap-linktype(7)) */
    uint32_t interface; /* pcapng interface, 0 otherwise */
    struct place at;
};

enum packet_result {
    PACKET_TCP,      /* seg is set; its payload borrowed like the frame, or until the next call */
    PACKET_HELD,     /* an IP fragment that waits for others */
    PACKET_OTHER,    /* another protocol */
    PACKET_QUIC,     /* UDP that looks like QUIC/HTTP3: out of scope, counted by name */
    PACKET_CUT,      /* cut by the snap length before the fixed part of the TCP header was whole */
    PACKET_BROKEN,   /* headers that contradict themselves */
    PACKET_LINKTYPE, /* a link type that is not known */
};

struct packets;
struct packets *packets_new(void);
void packets_free(struct packets *p);
enum packet_result packet_decode(struct packets *p, const struct frame *f, struct segment *ret);

#endif
