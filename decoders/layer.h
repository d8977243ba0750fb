/*
 * layer.h - what passes from one protocol layer to the next above it: pieces of a byte stream,
 * gaps in the evidence, acknowledgements, silences, and the end.
 *
 * A layer (h1, h2, tls) is an object with a const table of functions. The layer below pushes into
 * it in the order of the byte stream; it pushes into the one above. Nothing is ever glued together
 * across a gap: after gap() the next piece does not continue the last one.
 */
#ifndef LAYER_H
#define LAYER_H

#include "base.h"

enum dir {
    DIR_CLIENT, /* from the client to the server */
    DIR_SERVER, /* from the server to the client */
};

/* Bytes of one direction, in order, borrowed until the call returns. */
struct piece {
    struct slice data;
    struct place at; /* the frame that carried them */
    /*
     * Offset in the TCP stream just after the last byte of data: an acknowledgement of tcp_end
     * covers all of it. When sealed (TLS record, compressed block) no byte of the piece can be read
     * before all up to tcp_end has arrived; else byte i of data ends at tcp_end - data.len + i + 1.
     */
    uint64_t tcp_end;
    bool sealed;
    /* Two different readings of some of these bytes were on the wire (conflicting retransmission).
     */
    bool ambiguous;
    bool no_time; /* at.time is not the bytes' own: a HAR tells only when all of it was there */
};

/* n bytes of p from offset `from` on, as a piece of their own. */
static inline struct piece piece_part(const struct piece *p, size_t from, size_t n)
{
    return (struct piece){
        .data = { p->data.ptr + from, n },
        .at = p->at,
        .tcp_end = p->sealed ? p->tcp_end : p->tcp_end - (p->data.len - from - n),
        .sealed = p->sealed,
        .ambiguous = p->ambiguous,
        .no_time = p->no_time,
    };
}

/* The first n bytes of p as a piece of their own; p keeps the rest. n <= p->data.len. */
static inline struct piece piece_take(struct piece *p, size_t n)
{
    struct piece head = piece_part(p, 0, n);

    p->data.ptr += n;
    p->data.len -= n;
    return head;
}

enum close_kind {
    CLOSE_FIN, /* orderly end of the direction */
    CLOSE_RST, /* abort by the sender of the direction */
};

/*
 * No new byte of a direction arrived from `since` until `until` although the connection was open.
 * Reported when it ends (by data, close or end of capture) if it lasted SILENCE_MIN or longer.
 */
#define SILENCE_MIN (200 * NS_PER_MS)
struct silence {
    struct place since; /* the last new byte before it */
    struct place until; /* what ended it */
    bool ended_by_data;
    bool window_closed;        /* the receiver's window was 0, or full, at some time within */
    struct place window_place; /* the frame whose window was closed first, or that filled it */
    int64_t window_ns;         /* for how long it was closed, within the silence */
    uint32_t retransmissions;  /* of bytes not yet acknowledged; window probes aside */
    struct place retransmission_place;
    uint32_t probes;    /* zero-window or keep-alive probes by the sender */
    uint64_t in_flight; /* bytes sent and not acknowledged when it began */
};

struct layer_ops {
    const char *name;
    void (*data)(void *self, enum dir dir, const struct piece *piece);
    /* len bytes (0: unknown) that the receiver acknowledged are not in the capture. */
    void (*gap)(void *self, enum dir dir, uint64_t len, struct place at);
    /* The receiver of dir acknowledged all bytes before tcp_offset. */
    void (*ack)(void *self, enum dir dir, uint64_t tcp_offset, struct place at);
    void (*silence)(void *self, enum dir dir, const struct silence *s);
    /* The sender of dir closed it. */
    void (*close)(void *self, enum dir dir, enum close_kind kind, struct place at);
    /* Nothing more will come (the capture ends, or the connection was given up); frees self. */
    void (*finish)(void *self, struct place at);
};

struct layer {
    const struct layer_ops *ops;
    void *self;
};

/* One connection, as the layers above TCP know it; owned by conn.c, outlives its layers. */
struct conn {
    struct endpoint client;
    struct endpoint server;
    uint32_t tcp_stream; /* Wireshark's tcp.stream: number of the connection, from 0 in its input */
    uint32_t input;      /* of its first frame */
    bool starts_late;    /* the handshake is not in the capture */
    bool tls;
    bool middlebox; /* an RST does not fit its sender; set before close() is called */
    bool truncated; /* the capture is cut, not ended; set before finish() is called */
    /* A link-layer identity: same addresses in two VLANs or tunnels are two connections, unless
     * their sequence numbers agree. */
    uint64_t link_id;
    struct place first;
};

#endif
