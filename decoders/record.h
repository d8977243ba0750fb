/*
 * record.h - the central cut: what the decoders say about one recording, one fact a record, in the
 * order in which the facts became known. Everything above (sessions, judgement, reports) is made
 * from these alone, in one process or, as lines, between machines (CLUSTER.md 1).
 *
 * A record and all its slices are borrowed until the sink returns.
 */
#ifndef RECORD_H
#define RECORD_H

#include "layer.h"
#include "rpc.h"

enum record_kind {
    REC_REQUEST,  /* an HTTP request is known: head, and body as far as it came */
    REC_RESPONSE, /* the head of its final response */
    REC_EVENT,    /* one SSE block */
    REC_COMMENT,  /* SSE comment(s): a keep-alive */
    REC_BODY,     /* a response body that is no event stream, when it ended */
    REC_ACK,      /* the client's host acknowledged bytes of the response */
    REC_SILENCE,  /* see layer.h, of the response's direction while its body was open */
    REC_GAP,      /* bytes of the exchange are missing in the evidence */
    REC_END,      /* the exchange is over: complete, cut, given up, or open at the end */
    REC_NOTE,     /* something the input could not show, or odd traffic */
    REC_STREAM,   /* bytes of an event stream: event_stream.c makes events of them, and no record of
                     this kind goes beyond */
};

/* A body, and how it was read as JSON-RPC (bodies.c). */
struct rec_body {
    enum rpc_status status;
    bool present; /* there was a body of one byte or more */
    bool whole;   /* complete, within the ceiling, no gap */
    bool batch;
    size_t count;
    const struct rpc *msg;
    size_t bytes;
    struct slice payload;            /* the bytes, when whole; may be empty when too long */
    uint64_t xxh3;                   /* of the payload as received; 0 unless asked for */
    const uint8_t *sha256;           /* 32 bytes; NULL unless asked for (bodies_want_digests) */
    uint64_t tcp_end;                /* see struct piece; of the last byte */
    const struct rpc_detail *detail; /* of initialize and tools/list messages; NULL: none */
};

/* What only few messages hold, read with a JSON library (bodies.c). */
struct rpc_detail {
    struct slice client_name, client_version; /* initialize request, or _meta clientInfo */
    struct slice server_name, server_version; /* initialize result */
    struct slice protocol_version;
    struct tool_hint *tool; /* tools/list result */
    size_t tool_count;
};
struct tool_hint {
    struct slice name;
    bool idempotent;
    bool read_only;
};

enum http_method {
    HTTP_METHOD_OTHER,
    HTTP_METHOD_GET,
    HTTP_METHOD_POST,
    HTTP_METHOD_DELETE,
    HTTP_METHOD_OPTIONS
};

enum rec_http_flag {
    RECF_ACCEPT_JSON = 1 << 0,      /* request: Accept lists application/json */
    RECF_ACCEPT_SSE = 1 << 1,       /* ... text/event-stream */
    RECF_ACCEPT_ANY = 1 << 2,       /* a wildcard covers both */
    RECF_DUPLICATE_HEADER = 1 << 3, /* a session, version, cursor or Mcp- header on two lines */
    RECF_OBS_FOLD = 1 << 4,
    RECF_TE_AND_CL = 1 << 5,
    RECF_ALLOW = 1 << 6, /* response: Allow is present */
    RECF_CHUNKED = 1 << 7,
    RECF_LENGTH = 1 << 8,
    RECF_UNTIL_CLOSE = 1 << 9, /* body ends with the connection */
    RECF_HTTP2 = 1 << 10,
    RECF_HAR = 1 << 11,
    RECF_SSE = 1 << 12,              /* response: Content-Type text/event-stream */
    RECF_JSON = 1 << 13,             /* Content-Type application/json (or +json) */
    RECF_CODED = 1 << 14,            /* a Content-Encoding other than identity */
    RECF_UNDECODABLE = 1 << 15,      /* ... that this tool cannot decode */
    RECF_EMPTY_CURSOR = 1 << 16,     /* Last-Event-ID present with an empty value */
    RECF_HEAD_LOST = 1 << 17,        /* the head itself is not in the evidence: body only */
    RECF_NO_BODY_RECORDED = 1 << 18, /* the HAR producer did not record the body */
    RECF_REQUEST_UNKNOWN = 1 << 19,  /* response without its request */
    RECF_PIPELINED = 1 << 20, /* request sent while the connection's response was still open */
    RECF_INTERIM = 1 << 21,   /* a 1xx came first */
    RECF_ORIGIN = 1 << 22,
    RECF_NO_BUFFERING = 1 << 23,     /* X-Accel-Buffering: no */
    RECF_LENGTH_CONFLICT = 1 << 24,  /* two different Content-Length */
    RECF_DUPLICATE_CURSOR = 1 << 25, /* Last-Event-ID on two lines */
    RECF_ACCEPT = 1 << 26,           /* request: there is an Accept header */
    RECF_IDS_PARTIAL = 1 << 27,      /* HAR: ids without data, and what a cut left, are not shown */
};

struct rec_request {
    struct place first; /* first byte of the request */
    struct endpoint client;
    struct endpoint server;
    uint32_t tcp_stream;
    uint64_t conn; /* serial of the connection */
    enum http_method method;
    struct slice method_text;
    struct slice target;    /* path and query */
    struct slice authority; /* Host or :authority, lower case, default port dropped; may be empty */
    struct slice session;   /* Mcp-Session-Id; ptr NULL: no such header */
    struct slice cursor;    /* Last-Event-ID; ptr NULL: absent */
    struct slice version;   /* MCP-Protocol-Version; ptr NULL: absent */
    struct slice mcp_method; /* Mcp-Method */
    struct slice mcp_name;   /* Mcp-Name */
    struct slice user_agent;
    uint64_t credentials; /* digest of Authorization and Cookie; 0: none */
    unsigned flags;
    struct rec_body body;
};

struct rec_response {
    struct place first;     /* first byte of the head */
    struct endpoint client; /* as in the request, which may be unknown */
    struct endpoint server;
    uint32_t tcp_stream;
    uint64_t conn;
    int status;                /* 0: none arrived (HAR) */
    struct slice session;      /* Mcp-Session-Id; ptr NULL: absent */
    struct slice content_type; /* lower case, without parameters */
    int64_t retry_after;       /* seconds, -1: absent or no number; dates are turned into seconds */
    int64_t content_length;    /* -1: none */
    struct slice server_name;  /* X-Served-By, or Server: a hint at which peer answered */
    struct slice coding;       /* Content-Encoding */
    unsigned flags;
};

struct rec_event {
    struct place first; /* frame of its first byte; record.at is that of its last */
    uint32_t ordinal;   /* in its leg: 0, 1, 2 ... over blocks, comments aside */
    bool has_id;
    struct slice id; /* value of the id field in this block (may be empty) */
    bool dispatched; /* has a data field */
    struct slice data;
    struct slice event; /* event name; empty: message */
    int64_t retry;      /* -1: none */
    unsigned oddities;  /* enum sse_oddity */
    uint64_t tcp_end;   /* see struct piece */
    bool ambiguous;
    bool no_time;         /* the time is not the event's own (HAR without event times) */
    bool id_only_known;   /* HAR sanitized: the data was stripped */
    struct rec_body body; /* data read as JSON-RPC */
};

struct rec_comment {
    uint64_t tcp_end;
};

/* As the JSON report names them. */
enum end_kind {
    END_COMPLETE,   /* protocol end: zero chunk, length, END_STREAM; close-delimited: FIN */
    END_FIN,        /* the server closed inside the body */
    END_RST,        /* the server, or somebody in its name, reset */
    END_CLIENT_FIN, /* the client closed first */
    END_CLIENT_RST,
    END_OPEN, /* still open when the capture ends */
    END_GAP,  /* lost in a gap of the capture: how it ended is not known */
};
const char *end_kind_text(enum end_kind k);

struct rec_end {
    enum end_kind kind;
    bool answered;          /* a final response head had arrived */
    uint64_t body_bytes;    /* of the response, after transfer coding */
    struct place last;      /* the last byte of the response before the end */
    bool close_not_known;   /* HAR: cut or open is inferred */
    bool middlebox;         /* the RST does not fit its sender (TTL, IP id) */
    bool truncated_capture; /* open only because the file was cut */
    uint32_t h2_code;       /* error code of RST_STREAM or GOAWAY + 1; 0: none */
    /* unterminated tail of an event stream: */
    size_t tail_bytes; /* 0: none */
    struct place tail_at;
    bool tail_fields;
    bool tail_has_id; /* the id line was whole */
    struct slice tail_id;
    struct slice tail_data;
    struct slice tail_event;
};

struct rec_ack {
    uint64_t tcp_offset; /* everything before it was acknowledged */
};

struct rec_gap {
    enum dir dir;
    uint64_t bytes; /* 0: unknown */
    bool in_head;   /* the head of request or response is hit */
};

enum note_kind {
    NOTE_STARTS_LATE, /* connection without its handshake; the exchange's head may be missing */
    NOTE_TRUNCATED,   /* the file is cut, or packets are cut by the snap length (count) */
    NOTE_TLS_NO_KEYS, /* TLS that cannot be decrypted */
    NOTE_TLS_LOST,    /* decryption lost after a gap */
    NOTE_UNKNOWN_CODING,
    NOTE_CODING_BROKEN,     /* a content coding that does not decode: damaged, or past the limits */
    NOTE_BODY_NOT_RECORDED, /* HAR: text says by whom */
    NOTE_H2_NO_STATE,       /* HTTP/2 joined in the middle: header compression state unknown */
    NOTE_WEBSOCKET,         /* out of scope, by name */
    NOTE_HTTP3,
    NOTE_OTHER_PROTOCOL, /* a connection that is none of ours */
    NOTE_CONFLICT,       /* retransmission with other content */
    NOTE_UNSOLICITED,    /* response bytes with no request outstanding */
    NOTE_BAD_HTTP,       /* what http-parser refused; text tells */
    NOTE_LIMIT,          /* a ceiling was reached; text tells which */
    NOTE_HAR,            /* what this producer cannot show, or repaired: text tells */
    NOTE_CLOCK_STEP,     /* packet times go back */
    NOTE_HIDDEN_EVENTS,  /* a 2xx body that reads like an event stream under another content type */
};

struct rec_note {
    enum note_kind kind;
    uint64_t count;
    uint32_t tcp_stream; /* of the connection concerned, UINT32_MAX: none */
    struct slice text;   /* a few words more; may be empty */
};

/* See struct piece. */
struct rec_stream {
    struct slice data;
    uint64_t tcp_end;
    bool sealed;
    bool ambiguous;
    bool no_time;
};

struct event_stream; /* see event_stream.h */

struct record {
    enum record_kind kind;
    uint64_t exchange; /* serial, unique in the run, from 1; 0: concerns no exchange */
    struct place at;
    struct event_stream *stream; /* that event_stream.c has to be told of it; else NULL */
    union {
        struct rec_request request;
        struct rec_response response;
        struct rec_event event;
        struct rec_comment comment;
        struct rec_body body;
        struct rec_ack ack;
        struct silence silence;
        struct rec_gap gap;
        struct rec_end end;
        struct rec_note note;
        struct rec_stream bytes;
    };
};

/* All but the part of its kind: clearing that each time would be much. */
static inline void record_begin(struct record *rec, enum record_kind kind, uint64_t exchange,
                                struct place at)
{
    rec->kind = kind;
    rec->exchange = exchange;
    rec->at = at;
    rec->stream = NULL;
}

/* Of a body that is clear, what bodies.c starts from; it reads what is whole. */
static inline void body_begin(struct rec_body *body, struct slice payload, bool whole)
{
    body->status = RPC_EMPTY;
    body->present = payload.len > 0;
    body->whole = whole;
    body->bytes = payload.len;
    body->payload = payload;
}

struct record_sink {
    void (*put)(void *ctx, struct record *rec); /* may change it: bodies.c fills in bodies */
    void *ctx;
};

#endif
