/*
 * flow_parts.h - what the files of flow.c share; nobody else includes it.
 *
 *     flow.c         the segments of a connection: SYN, FIN, RST, ends of flows, the pull API
 *     flow_table.c   where the live flows are kept, which one is idle, which ones are just over
 *     flow_half.c    the bytes of one direction: order, holes, conflicts, acknowledgements
 *     flow_quiet.c   the times without bytes of one direction, and the receiver's window
 */
#ifndef FLOW_PARTS_H
#define FLOW_PARTS_H

#include "flow.h"

/* A segment that was captured twice (two interfaces, a mirror port) comes again within this. */
#define TWIN_NS (10 * NS_PER_MS)

/* How far a sequence number may be off and still be of this connection. */
#define FLOW_SEQ_SLACK 65536

/* Bytes that came before those in front of them. */
struct held {
    uint64_t off;
    size_t len;
    uint8_t *data; /* owned; NULL: known to be missing (snap length) */
    struct place at;
    bool ambiguous;
};

/* A hole that the receiver acknowledged may be one of order only: the capture saw the
 * acknowledgement first. What has passed since it was found. */
struct wait {
    uint64_t hole; /* offset of the hole waited for */
    int64_t time;
    uint64_t segments; /* of the flow */
    uint64_t fresh;    /* of the sender, with new bytes */
};

/* What one side sent. Offsets count the bytes of the stream from 0. */
struct half {
    struct flow *flow;
    uint8_t side;
    bool started;  /* base is known */
    bool from_syn; /* ... because the SYN was seen */
    bool hinted;   /* seq_hint is set */
    bool pre_ack;  /* raw_ack is set */
    bool acks;     /* the other side acknowledges: its direction is in the capture */
    bool fin;
    bool rst;
    bool rst_forged; /* it does not fit its sender */
    bool fin_told;   /* FLOW_CLOSE was given */
    bool rst_told;
    bool active; /* had a byte or more */
    bool beyond; /* the receiver acknowledged bytes that were not seen */
    bool shut;   /* the receiver's window is closed */
    bool window_seen;
    int8_t scale; /* of the windows that this side advertises; -1: none */
    bool syn_seen;
    uint32_t base;     /* sequence number of offset 0 */
    uint32_t seq_hint; /* of an acknowledgement without data that came before offset 0 */
    uint32_t raw_ack;  /* by the receiver, before offset 0 was known */
    uint64_t next;     /* bytes before it were delivered, or given up as gaps */
    uint64_t top;      /* end of the highest byte seen */
    uint64_t acked;    /* by the receiver; may lie beyond next, and counts a FIN */
    uint64_t reported; /* ... as told by FLOW_ACK */
    uint64_t fin_off;
    uint64_t fresh; /* segments that brought new bytes */
    uint64_t window;
    struct place acked_at;
    struct place fin_at;
    struct place rst_at;
    struct place beyond_at;
    struct place shut_at;
    struct wait wait;

    /* The last bytes delivered, at offset & (recent_cap - 1), for comparison. */
    uint8_t *recent;
    size_t recent_cap;
    uint64_t recent_from; /* nothing older is in it */

    struct held *held; /* in order, not overlapping */
    size_t held_count;
    size_t held_cap;
    size_t held_bytes;

    struct silence quiet;   /* as it stands now */
    int64_t shut_from;      /* start of the part of the closed time not yet in quiet.window_ns */
    uint32_t repeat_seq;    /* the last retransmission */
    struct place repeat_at; /* .time 0: none since the last new byte */
    struct place probe_at;

    /* How its packets look, to tell those that somebody else sent in its name. */
    uint8_t ttl_min, ttl_max; /* 0: none seen */
    uint16_t ip_id;
    int64_t ip_id_time; /* when that was */
    bool ip_id_jumps;   /* does not count up */
    uint32_t ip_ids;    /* seen in sequence */
};

enum flow_state { FLOW_LIVE, FLOW_CLOSING, FLOW_OVER, FLOW_STATES };

struct flow {
    uint64_t key; /* what it is found by comes first */
    struct flow *chain;
    struct endpoint end[2];
    struct conn conn;
    void *user;
    struct queue *out;
    const struct flow_limits *limits;
    bool oriented;
    uint8_t client_side;
    enum flow_state state;
    uint32_t last_input;
    uint64_t segments;
    struct place last; /* of its segments */
    int64_t touched;   /* time of the segment that its place among the flows of its state is for */
    struct flow *older, *newer; /* of the same state */
    struct half half[2];
};

/* Chunks made and not yet taken. */
struct queued {
    uint8_t *owned;    /* what the piece borrows from */
    struct flow *done; /* to be freed after FLOW_DONE */
    struct flow_chunk chunk;
};
struct queue {
    struct queued *item;
    size_t head;
    size_t count;
    size_t cap;
};

/* flow_half.c */
/* A new chunk about this direction, to be filled in; valid until the next one is made. */
struct queued *half_emit(struct half *h, enum flow_chunk_kind kind, struct place at);
void half_start(struct half *h, uint32_t base);
/* Bytes, FIN, or nothing: what seg carries in this direction. */
void half_take(struct half *h, const struct segment *seg);
/* What seg says about the bytes of this direction, as their receiver. */
void half_acked(struct half *h, const struct segment *seg, int scale);
int64_t half_offset(const struct half *h, uint32_t seq); /* below 0: before offset 0 */
/* Deliver what has become ready; force: nothing more will come. */
void half_settle(struct half *h, bool force);
/* The receiver has sent new bytes: what it acknowledged must be told before these. */
void half_answered(struct half *h);
void half_clear(struct half *h);
/* The receiver acknowledged bytes that are not there (yet). */
static inline bool half_lacks(const struct half *h)
{
    uint64_t end = h->fin && h->acked > h->fin_off ? h->fin_off : h->acked;

    return h->started && end > h->next;
}

/* Nothing to settle and no close to tell: all that came was in order. */
static inline bool half_is_calm(const struct half *h)
{
    return h->held_count == 0 && !h->fin && !h->rst && h->acked <= h->next &&
           (h->reported == h->acked || !h->started);
}

/* flow_quiet.c */
/* The silence, if any, is over: by bytes from offset `from`, or by something else. */
void quiet_end_by_data(struct half *h, uint64_t from, struct place at);
void quiet_end(struct half *h, struct place at);
void quiet_begin(struct half *h, struct place at);
/* The receiver's window or the bytes in flight have changed. */
void quiet_window(struct half *h, struct place at);
void quiet_repeat(struct half *h, uint32_t seq, struct place at);
void quiet_probe(struct half *h, struct place at);

/* flow_table.c */
struct flow_table;
struct flow_table *table_new(void);
void table_free(struct flow_table *t);
struct flow *table_find(struct flow_table *t, const struct segment *seg, unsigned *ret_side);
struct flow *table_add(struct flow_table *t, const struct segment *seg);
/* Out of the table; the caller frees it. */
void table_remove(struct flow_table *t, struct flow *fl);
/* It had a segment just now, or its state changed. */
void table_touch(struct flow_table *t, struct flow *fl, enum flow_state state);
/* Some are not live any more. */
bool table_has_closed(const struct flow_table *t);
/* The one of a state that is idle for the longest time; NULL: none. */
struct flow *table_oldest(const struct flow_table *t, enum flow_state state);
/* The one to give up before one more flow of the same endpoints is added; NULL: there is room. */
struct flow *table_crowding(const struct flow_table *t, const struct segment *seg);
size_t table_count(const struct flow_table *t);
/* Remembers, for a while, that the flow was over in good order. */
void table_bury(struct flow_table *t, const struct flow *fl);
/* The segment repeats something of a flow that is buried. */
bool table_is_ghost(const struct flow_table *t, const struct segment *seg);

#endif
