/*
 * flow.h - TCP reassembly with acknowledgement tracking (RFC 9293). Segments in, ordered chunks
 * out.
 *
 *     flows = flows_new(&limits);
 *     flows_feed(flows, &seg);               in-order payload passes through, nothing is copied
 *     while ((chunk = flows_next(flows)))    borrowed until the next flows_ call
 *         use(chunk);
 *     flows_finish(flows);                   then flows_next until NULL: what is left, FLOW_DONE
 *     flows_free(flows);
 *
 * Right under reordering, retransmission (same or other content), overlap, duplicated packets (two
 * interfaces, SPAN, the same connection in two VLANs or in and outside of a tunnel), sequence
 * wrap-around, a missing handshake, and reuse of a port pair. A hole that the receiver acknowledged
 * is a FLOW_GAP; a hole not acknowledged is loss on the path, and waits (up to the ceilings). First
 * content wins; a different second reading marks bytes `ambiguous` if they were not delivered yet,
 * and always gives FLOW_CONFLICT.
 */
#ifndef FLOW_H
#define FLOW_H

#include "layer.h"

enum tcp_flag { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_PSH = 0x08, TCP_ACK = 0x10 };

/* One TCP segment, as packet.c found it. */
struct segment {
    struct endpoint src;
    struct endpoint dst;
    uint64_t link_id; /* VLANs and tunnels it came through, 0: none */
    uint32_t seq;
    uint32_t ack;
    uint16_t window;
    uint8_t flags;       /* enum tcp_flag */
    int8_t window_scale; /* of a SYN; -1: option absent */
    uint16_t mss;        /* of a SYN; 0: absent */
    uint8_t ttl;
    uint16_t ip_id;       /* IPv4; 0 for IPv6 */
    struct slice payload; /* what the capture holds of it */
    uint32_t wire_len;    /* payload bytes on the wire; more than payload.len: snap length */
    struct place at;
};

enum flow_chunk_kind {
    FLOW_DATA, /* piece: next bytes of the direction */
    FLOW_GAP,  /* gap_bytes are missing in the evidence */
    FLOW_ACK,  /* tcp_offset was acknowledged (only when it advances) */
    FLOW_SILENCE,
    FLOW_CLOSE,    /* close kind */
    FLOW_CONFLICT, /* a retransmission had other content than was seen first */
    FLOW_DONE,     /* the flow is over, or given up; its state is freed after this chunk */
};

struct flow_limits {
    size_t max_segments; /* out-of-order segments held per direction */
    size_t max_buffer;   /* bytes held per direction; past it the hole becomes a gap */
    size_t max_flows;    /* live flows; past it the longest idle one (to 0.1 s) is given up */
};
extern const struct flow_limits flow_limits_default;

/* A flow has two sides: side 0 sent the first segment that was seen. */
struct flow_chunk {
    enum flow_chunk_kind kind;
    struct conn *conn; /* client/server as far as a SYN tells (else side 0 is `client`);
                          valid until FLOW_DONE has been taken */
    void **user;       /* a slot of the caller's per flow, NULL at first */
    unsigned side; /* sender of the bytes concerned: 0 or 1 (for ACK: of the bytes acknowledged) */
    bool oriented; /* a SYN or SYN-ACK told who is the client: side 0/1 map to it by client_side */
    unsigned client_side;
    struct place at;
    struct piece piece;     /* FLOW_DATA */
    uint64_t gap_bytes;     /* FLOW_GAP; 0: unknown */
    uint64_t tcp_offset;    /* FLOW_ACK */
    enum close_kind close;  /* FLOW_CLOSE */
    bool middlebox;         /* FLOW_CLOSE by an RST whose TTL or IP id does not fit its sender */
    bool idle;              /* FLOW_DONE because of a ceiling, not of its end */
    struct silence silence; /* FLOW_SILENCE; else not set, nor is piece */
};

struct flows;
struct flows *flows_new(const struct flow_limits *limits);
void flows_free(struct flows *f);
void flows_feed(struct flows *f, const struct segment *seg);
MUST_CHECK const struct flow_chunk *flows_next(struct flows *f);
void flows_finish(struct flows *f);
size_t flows_live(const struct flows *f);

#endif
