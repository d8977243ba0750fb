/*
 * exchange.h - one HTTP request with its response, whatever carried it (HTTP/1.1, HTTP/2, HAR):
 * reads the heads, undoes content codings, and emits records. What stands in the bodies is read
 * behind that cut: event_stream.c, bodies.c.
 *
 *     x = exchange_open(all, conn, place);          request head, body and end
 *     exchange_request_head / _body / _end
 *     exchange_response_head / _body / _gap
 *     exchange_end(x, kind, place);                 emits REC_END and frees x
 *
 * The caller owns x until exchange_end. Slices and pieces are borrowed during the call. A response
 * may come without a request (capture started late): skip the request calls.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "record.h"

struct exchanges; /* what all exchanges of a run share: serial numbers, limits, the sink */
struct exchange;

struct exchange_limits {
    size_t max_event;     /* bytes of one event */
    size_t max_body;      /* bytes of a JSON body that are looked at */
    size_t max_ratio;     /* of a content coding, output to input */
    uint64_t max_decoded; /* bytes of one decoded body */
};
extern const struct exchange_limits exchange_limits_default;

struct exchanges *exchanges_new(struct record_sink sink, const struct exchange_limits *limits);
void exchanges_free(struct exchanges *all);
/* A record that concerns no exchange, or one by serial. */
void exchanges_note(struct exchanges *all, uint64_t exchange, struct rec_note note,
                    struct place at);

struct http_header {
    struct slice name;
    struct slice value; /* outer blanks removed */
    bool folded;        /* obs-fold was undone */
};

struct http_head {
    struct slice method; /* requests */
    struct slice target;
    struct slice authority; /* :authority of HTTP/2; empty: take Host */
    int status;             /* responses */
    const struct http_header *header;
    size_t count;
    unsigned flags;     /* RECF_ of the framing: CHUNKED, LENGTH, UNTIL_CLOSE, HTTP2, HAR, ... */
    struct place first; /* first byte of the head */
    struct place last;  /* last byte */
    uint64_t tcp_end;   /* of the last byte */
};

struct exchange *exchange_open(struct exchanges *all, const struct conn *conn,
                               uint64_t conn_serial);
uint64_t exchange_serial(const struct exchange *x);

void exchange_request_head(struct exchange *x, const struct http_head *head);
void exchange_request_body(struct exchange *x, const struct piece *piece);
void exchange_request_gap(struct exchange *x, uint64_t len, bool in_head, struct place at);
/* The request ended (complete) or will not go on. Implied by the response head and by exchange_end.
 */
void exchange_request_end(struct exchange *x, bool complete, struct place at);

/* head NULL: the response head is not in the evidence, its body is taken for an event stream
 * (capture started in the middle; RECF_HEAD_LOST). */
void exchange_response_head(struct exchange *x, const struct http_head *head, struct place at);
void exchange_response_body(struct exchange *x, const struct piece *piece);
void exchange_response_gap(struct exchange *x, uint64_t len, bool in_head, struct place at);
/* For sources that know events, not bytes (HAR). item's slices are borrowed. */
struct sse_item;
void exchange_response_event(struct exchange *x, const struct sse_item *item, struct place at,
                             bool no_time, bool stripped);
void exchange_ack(struct exchange *x, uint64_t tcp_offset, struct place at);
void exchange_silence(struct exchange *x, const struct silence *s);
/* True between response head and end when the body is an event stream. */
bool exchange_is_leg(const struct exchange *x);

/* Acknowledgements that come after exchange_end, for what was then not yet acknowledged. */
void exchanges_late_ack(struct exchanges *all, uint64_t serial, uint64_t tcp_offset,
                        struct place at);

struct exchange_end_facts {
    enum end_kind kind;
    bool close_not_known;
    bool middlebox;
    bool truncated_capture;
    uint32_t h2_code; /* error code + 1 */
};
void exchange_end(struct exchange *x, const struct exchange_end_facts *facts, struct place at);

#endif
