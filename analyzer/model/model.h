/*
 * model.h - sessions, streams, events and requests of a recording, made from records alone.
 *
 *     m = model_new(&options, log);
 *     model_feed(m, &rec);            once a record, in their order
 *     model_finish(m);                pairs the log, proves id schemes, judges every resumption
 *     ... rules read m->session[..] ...
 *     model_free(m);
 *
 * Everything reachable from struct model lives until model_free; rules see it const. Indexes are
 * positions in the arrays of their session; NONE means there is no such thing. A place whose time
 * is 0 was not observed.
 *
 * Memory: an event that later rules cannot ask for any more is reduced to its id, digest and
 * ordinal (struct brief); event_at() then returns NULL. Findings never rest on such an event.
 */
#ifndef MODEL_H
#define MODEL_H

#include "dispatch_log.h"
#include "record.h"

#define NONE UINT32_MAX

/* The clock of a capture steps back by less: what is so much later was later. */
#define CLOCK_STEP (10 * NS_PER_SEC)

/* Protocol revisions; see SPEC-NOTES 0.2. */
enum era {
    ERA_UNKNOWN = 0,
    ERA_L = 1 << 0, /* 2024-11-05 */
    ERA_A = 1 << 1, /* 2025-03-26 */
    ERA_B = 1 << 2, /* 2025-06-18 */
    ERA_C = 1 << 3, /* 2025-11-25 */
    ERA_D = 1 << 4, /* 2026-07-28 */
};
enum era era_of(struct slice version); /* ERA_UNKNOWN for a date that is no revision */
const char *era_text(enum era era);    /* "2025-11-25"; NULL for ERA_UNKNOWN */

enum id_scheme {
    SCHEME_NONE,
    SCHEME_OPAQUE,
    SCHEME_DENSE,
    SCHEME_SPARSE,
    SCHEME_TIME,
    SCHEME_NOT_UNIQUE
};
const char *id_scheme_text(enum id_scheme s);

enum cursor_policy { POLICY_UNKNOWN, POLICY_BEFORE, POLICY_AFTER, POLICY_ATOMIC, POLICY_MIXED };
const char *cursor_policy_text(enum cursor_policy p);

/* ---- messages and requests ---- */

/* A JSON-RPC message as it was seen on the wire. */
struct message {
    enum rpc_kind kind;
    unsigned flags; /* enum rpc_flag */
    bool from_client;
    uint32_t exch;
    uint32_t event;     /* that carried it; NONE: a body did */
    struct place at;    /* last byte */
    struct place acked; /* the client's host acknowledged the last byte */
    struct rpc_id id;
    struct slice method;
    struct rpc_id token;
    struct rpc_id cancelled;
    struct rpc_id subscription;
    double progress;
    int64_t error_code;
    struct slice name; /* params.name, uri or taskId (requests) */
    struct slice result_type;
    struct slice version;   /* protocolVersion in it */
    uint64_t request_state; /* digest of requestState; 0: none */
    uint64_t digest;
    uint64_t body_digest;
    uint64_t xxh3; /* of the payload as received, when the log asks for it */
    const uint8_t *sha256;
    uint32_t request; /* response, progress, cancellation: the request concerned, or NONE */
    const struct message *same_as; /* redelivery: the message as it first came */
    /* progress: the last one of its token before it, redeliveries aside */
    bool has_previous;
    double previous_progress;
    struct place previous_at;
    double step;       /* by which the token went on evenly so far; 0: not evenly, or not known */
    bool across_break; /* the previous one came on another leg */
    /* a log message that counts, as "5 of 20" or "5/20"; total 0: it does not */
    uint32_t counter, counter_total;
    uint32_t track; /* its entries in the log: index into session->track, or NONE */
};

/* A JSON-RPC request of either side. */
struct request {
    uint32_t index;
    const struct message *msg;
    bool from_server;
    uint32_t exch;   /* that carried it */
    uint32_t stream; /* client's: opened by its POST, or NONE (JSON reply, none yet) */
    uint32_t leg;    /* server's: leg it came on */
    struct place at;
    const struct message *response;  /* the first one */
    const struct message *duplicate; /* a second one that is no redelivery, or NULL */
    const struct message *conflict;  /* a second one with other content, or NULL */
    uint32_t response_count;         /* redeliveries aside */
    struct place answered;  /* the response (or HTTP error) was completely delivered; time 0: not */
    int http_error;         /* status that answered it, 0: none */
    struct place cancelled; /* by its sender */
    uint32_t earlier;       /* an earlier request of the same sender with the same id, or NONE */
    bool earlier_in_flight; /* ... which was not answered yet */
    uint32_t next_same_id;  /* private */
    double last_progress;   /* private, with the next three: progress of its token so far */
    double progress_step;
    uint32_t progress_count;
    uint32_t progress_leg;
    struct place last_progress_at;
    const char *tool;          /* tools/call: name; NULL */
    bool dispatched;           /* by the log: a copy of its response reached a handler */
    uint32_t synthetic;        /* log entry of an answer that the client made up for it; NONE */
    bool idempotent;           /* by command line, log or hint */
    const char *idempotent_by; /* "command line", "log header", "idempotentHint", "readOnlyHint" */
};

/* ---- exchanges, legs, streams, events ---- */

struct exch {
    uint64_t serial;
    uint32_t index; /* in its session */
    uint32_t leg;   /* NONE: no event stream */
    struct session *session;
    bool has_request;
    unsigned rflags;      /* RECF_ of the response */
    uint32_t twins;       /* how many copies this one has, see twin */
    struct exch *twin_of; /* the same exchange seen again (other tap, other hop): not counted;
                             what only it shows is added to the first one's leg */
    struct place last;    /* last byte of the response */
    struct place acked;   /* of the whole JSON body */
    uint64_t acked_to;    /* private */
    struct endpoint client, server;
    uint32_t tcp_stream;
    uint64_t conn;
    enum http_method method;
    enum era era;   /* that governs it */
    unsigned flags; /* RECF_ of the request */
    struct slice method_text, target, authority, user_agent;
    struct slice session_id; /* request header; ptr NULL: absent */
    struct slice cursor;     /* Last-Event-ID; ptr NULL: absent */
    struct slice version;    /* MCP-Protocol-Version; ptr NULL: absent */
    struct slice mcp_method, mcp_name;
    uint64_t credentials;
    struct place first;    /* first byte of the request */
    struct place sent;     /* last byte of the request */
    struct place response; /* head of the response (time 0: none) */
    struct place end;      /* the end */
    int status;            /* 0: no response */
    struct slice content_type;
    struct slice coding;
    struct slice server_name;
    struct slice response_session; /* Mcp-Session-Id of the response; ptr NULL: absent */
    int64_t retry_after;           /* s, -1 */
    int64_t content_length;        /* -1 */
    bool ended;
    enum end_kind end_kind;
    bool close_not_known;
    bool middlebox;
    bool truncated_capture;
    uint32_t h2_code;
    uint64_t body_bytes;
    struct message *msg; /* the client's messages in the request body */
    uint32_t msg_count;
    bool batch;
    enum rpc_status body_status;
    bool body_whole;
    struct message *reply; /* messages of a JSON response body */
    uint32_t reply_count;
    bool reply_batch;
    enum rpc_status reply_status;
    bool reply_present, reply_whole;
    size_t reply_bytes;
    char *error_text;   /* words of a refusal, lower case, cut; NULL */
    int64_t error_code; /* JSON-RPC code in the body of a refusal */
    uint32_t request_gaps, response_gaps;
    struct place gap_at;
    bool head_gap;           /* a gap hit a head */
    bool undecodable;        /* coding unknown or broken, TLS lost, body not recorded */
    bool initialize;         /* carries an initialize request */
    struct exch *twin;       /* the last such copy of this one; NULL: none */
    uint32_t twin_at;        /* private: last event of the first one's leg that it has shown too */
    uint32_t twin_unacked;   /* private: first event that only it has shown, not yet acknowledged */
    struct place twin_place; /* of the first copy */
    uint64_t body_end;       /* private: tcp_end of the body */
    uint64_t fingerprint;    /* private */
    void *pending;           /* private: clientInfo until the session is known */
};

struct table;

#define LEG_PERIODS 32
/* What every event needs stands first, here and in the others: it is few lines of the cache. */
struct leg {
    uint32_t index;
    uint32_t stream;
    uint32_t exch;
    uint32_t number;                  /* within its stream, from 1 */
    bool resumed;                     /* opened with a cursor */
    struct place begin;               /* response head */
    uint32_t first_event, last_event; /* chain by event.next_in_leg */
    uint32_t event_count;             /* with an id or data */
    uint32_t last_id;                 /* last terminated event with an id on this leg */
    uint32_t last_id_acked; /* ... whose last byte was acknowledged before the client closed */
    bool id_reset;          /* an empty id was committed last */
    int64_t retry;          /* last valid retry on this leg, -1 */
    uint32_t unacked;       /* private: first event not yet acknowledged */
    enum end_kind end;      /* END_OPEN until it ends */
    bool ended;
    unsigned oddities; /* of all its events */
    struct place last_byte;
    uint32_t seen; /* private: so many ordinals its stream had before it (resumed legs) */
    /* Private: the request with the progress token that was last looked up, while the session has
     * no more requests than it had then. */
    uint64_t token_hash;
    struct request *token_request;
    uint32_t token_requests;
    uint32_t comments;
    struct place first_comment, last_comment;
    /* keep-alives: comments, and events that carry no message, by their distance */
    int64_t period[LEG_PERIODS];
    uint32_t period_count;
    struct place last_keepalive;
    struct silence *silence;
    uint32_t silence_count;
    size_t silence_cap;
    struct place end_at;
    uint32_t gaps;
    struct place gap_at;
    bool first_lost; /* a gap before its first event, or its head is not in the evidence */
    /* unterminated tail */
    size_t tail_bytes;
    struct place tail_at;
    bool tail_fields, tail_has_id;
    struct slice tail_id, tail_data, tail_event;
    uint32_t tail_event_whole; /* event that came whole later and begins with the tail, or NONE */
    bool tail_response;        /* the tail holds (the beginning of) a response */
    uint32_t renamed_last; /* of the events it begins with that came before under other ids; NONE */
    struct place oddity_at[11];
};

enum stream_kind { STREAM_POST, STREAM_STANDALONE, STREAM_UNKNOWN };
struct stream {
    uint32_t index;
    enum stream_kind kind;
    uint32_t exch; /* that opened it */
    uint32_t *leg; /* in time order */
    uint32_t leg_count;
    size_t leg_cap;
    uint32_t *order; /* ordinal -> event, id-bearing or dispatched, first appearances */
    uint32_t count;
    size_t cap;
    uint32_t events; /* complete events on every leg (FORMATS 3) */
    uint32_t first_request,
        request_count;     /* client's requests of its POST: index range in exch->msg order */
    int64_t retry;         /* last valid retry received on the stream, -1 */
    bool foreign_cursor;   /* its first leg carried a cursor that was not known */
    bool has_tails;        /* private: some leg of it ended within an event */
    struct table *digests; /* private: of the messages of its first `digested` ordinals */
    uint32_t digested;
};

enum event_mark {
    EV_PINNED = 1 << 0, /* never reduced */
    EV_RESPONSE = 1 << 1,
    EV_FOREIGN_SESSION = 1 << 2, /* first delivered under another session */
    EV_REBOUND =
        1 << 3, /* a replay showed it before its own stream did: foreign where it came first */
};

struct event {
    uint32_t index;
    uint32_t leg;
    uint32_t stream;  /* of its leg */
    uint32_t ordinal; /* within the stream where it first appeared; NONE for a redelivery */
    uint32_t next_in_leg;
    uint32_t first;        /* the event that first came with this id and content; itself when new */
    uint32_t new_id_of;    /* the same message came before under another id: that event, or NONE */
    uint32_t same_id;      /* an earlier event with the same id and other content, or NONE */
    uint32_t next_same_id; /* private */
    unsigned marks;
    unsigned oddities;
    bool has_id; /* an id field in the block; id may be empty */
    bool dispatched;
    bool priming; /* id without a message: empty data, {} or no data */
    bool ambiguous;
    bool no_time;
    bool stripped;
    bool keepalive;     /* no id, no JSON-RPC message */
    bool not_json;      /* data that is no JSON, or no JSON-RPC object */
    bool dull_messages; /* private: notifications that nothing is to be said of */
    enum rpc_status status;
    bool batch;
    uint64_t digest; /* of the content: JSON digest, else of the bytes */
    struct slice id;
    struct slice name; /* event field; empty: message */
    struct place begin, at, acked;
    const struct exch *shown_by; /* the twin that alone has shown it so far; NULL: its exchange */
    uint64_t tcp_end;
    size_t data_len;
    int64_t retry;
    struct message *msg;
    uint32_t msg_count;
    struct session *other_session; /* EV_FOREIGN_SESSION */
    uint32_t track; /* log entries that name it (of the first event with this id); NONE */
};

struct brief {
    uint32_t id_hash; /* high half; the index holds the low one */
    uint32_t stream;
    uint32_t ordinal;
    uint32_t digest; /* low half */
};

/* ---- the log, paired ---- */

/* What the log says of one event or message, in the order of time. */
struct track {
    uint32_t event;            /* first event with that id, or NONE */
    const struct message *msg; /* NULL: the event carries none */
    uint32_t *entry;           /* indexes into log->entry */
    int64_t *time; /* of each, on the capture's clock (made up where the log has none) */
    uint32_t count;
    size_t cap;
    /* first and last time and entry of each state; entry NONE: never */
    struct {
        uint32_t first, last;
        int64_t first_time, last_time;
        uint32_t count;
    } state[LOG_RECONNECT + 1];
};

enum head_state { HEAD_NO_LOG, HEAD_UNPROCESSED, HEAD_RECEIVED, HEAD_PROCESSED, HEAD_COMMITTED };
const char *head_state_text(enum head_state s);

/* ---- resumptions ---- */

enum verdict { VERDICT_CONTINUE, VERDICT_WAIT, VERDICT_FAIL, VERDICT_UNDECIDABLE };
const char *verdict_text(enum verdict v);

enum client_did {
    DID_UNKNOWN,
    DID_CONTINUED,
    DID_FAILED_SESSION,
    DID_REISSUED,
    DID_REINITIALISED,
    DID_GAVE_UP
};
const char *client_did_text(enum client_did d);

/* How the replay relates to the cursor. */
enum replay_fault {
    RF_AT_OR_BELOW = 1 << 0,
    RF_INCLUSIVE = 1 << 1, /* ... only the cursor's own event */
    RF_EPOCH = 1 << 2,
    RF_FOREIGN_STREAM = 1 << 3,
    RF_FOREIGN_SESSION = 1 << 4,
    RF_NEW_ID = 1 << 5,
    RF_GAP = 1 << 6,
    RF_EMPTY = 1 << 7,
    RF_STALLED = 1 << 8,
    RF_REORDERED = 1 << 9,
    RF_LIVE_INTERLEAVED = 1 << 10,
    RF_PAYLOAD_CHANGED = 1 << 11,
    RF_IGNORED_CURSOR = 1 << 12,
    RF_FORGED = 1 << 13,
    RF_FOREIGN_CURSOR = 1 << 14, /* cursor of another session */
    RF_REFUSED = 1 << 15,
    RF_SIGNALLED = 1 << 16,
    RF_SESSION_LOST = 1 << 17,
    RF_SESSION_CHANGED = 1 << 18,
    RF_BUSY = 1 << 19, /* 429, 503 */
    RF_NO_STATUS = 1 << 20,
    RF_SKIPPED = 1 << 21,     /* log: the cursor's message or an earlier one was never processed */
    RF_DUPLICATED = 1 << 22,  /* log: H is committed, or processed and stored, and not idempotent */
    RF_UNCOMMITTED = 1 << 23, /* log: H is processed, its commit unknown */
    RF_UNPROVEN = 1 << 24,    /* no proof of atomicity or idempotency */
    RF_FORGOTTEN = 1 << 25,   /* the cursor may be one of those no longer remembered */
};

struct missing_id {
    struct slice id;
    uint32_t event; /* NONE: only the scheme tells that it existed */
};

struct resumption {
    struct session *session;
    uint32_t exch;
    uint32_t leg;            /* NONE: no event stream came */
    uint32_t stream;         /* of the cursor; NONE: unknown cursor */
    uint32_t previous_leg;   /* of the stream, before it; NONE */
    uint32_t cursor_event;   /* NONE: unknown, or reduced */
    uint32_t cursor_ordinal; /* k; NONE: unknown */
    struct slice cursor;
    struct slice wire_cursor; /* last id in a completely terminated event that reached the client;
                                 ptr NULL */
    uint32_t wire_event;
    uint32_t wire_event_acked;    /* the last one acknowledged before the reconnect */
    struct slice dispatch_cursor; /* last event whose message reached the application, by the log */
    struct slice stored_cursor;   /* last id that the log says was stored before the reconnect */
    uint32_t stored_entry;        /* log entry of it; NONE */
    uint32_t head;                /* event H on the new leg; NONE */
    uint32_t head_first;          /* event that H stands for (replay-new-id: E), else H's first */
    struct slice expected;        /* id of E; ptr NULL: not known */
    uint32_t expected_event;
    uint32_t known_after; /* events of the stream after the cursor that came before this leg */
    uint32_t replayed;    /* id-bearing events of the leg until it had caught up */
    struct missing_id *missing;
    uint32_t missing_count;
    bool mangled; /* the cursor fits an id only after conversion */
    bool ahead;   /* the cursor is the id of an unterminated tail, or of an event not delivered */
    bool missing_known;    /* ids are listed; else only that a gap exists is known */
    bool missing_proven;   /* events that were on the wire, or a proven scheme */
    bool from_buffer_head; /* replay starts at the oldest retained event */
    uint32_t *outstanding; /* client's requests of the stream, unanswered at the reconnect */
    uint32_t outstanding_count;
    enum head_state head_state;
    bool head_idempotent;
    const char *head_idempotent_by;
    bool atomic;     /* proven or claimed */
    unsigned faults; /* enum replay_fault */
    bool likely;     /* the verdict rests on a likely reading */
    bool content_unknown;
    bool as_fresh_stream; /* RF_IGNORED_CURSOR: answered as a new listening stream */
    enum verdict verdict;
    uint32_t failed_at;     /* event at which it failed; NONE: at the head or before any */
    const char *reason[12]; /* rule ids, the deciding one first; NULL ends */
    const char *explanation;
    const char *undecidable; /* why */
    bool cursor_repeated;    /* the client came back with a cursor that was dead */
    enum client_did did;
    struct place did_at;         /* what shows it */
    uint32_t did_entry;          /* log entry that shows it; NONE */
    struct place should_fail_at; /* where the session should have been failed */
    uint32_t signal_event;       /* RF_SIGNALLED: the event that says so; NONE: the status */
    const struct session *foreign_owner; /* RF_FOREIGN_CURSOR */
    uint32_t skipped_event;              /* RF_SKIPPED: which */
    uint32_t first_fault_event;          /* first foreign, repeated or out-of-order event; NONE */
    uint32_t repeats; /* same cursor again without progress: how many so far, this included */
};

/* ---- sessions ---- */

struct peer {
    struct endpoint client;
    uint64_t user_agent;
    struct place first, last;
};

#define CHUNK 64
struct event_chunk;

/* Private: see ids.c. A slot holds the low half of an id's hash and, below it, the event's index +
 * 1; the event's brief holds the high half. */
#define ID_COUNTERS 4
struct id_index {
    uint64_t *slot;
    size_t cap; /* 0 or a power of two */
    size_t count;
    struct {
        uint64_t hash; /* of the first one */
        uint32_t index;
        uint32_t count;
    } run;
    struct {
        uint64_t prefix;
        uint64_t top;
    } counter[ID_COUNTERS];
    unsigned counters;
    bool uncounted; /* there are ids of other prefixes */
};

struct session {
    uint32_t index;    /* order of first appearance */
    bool orphan;       /* of legs whose request is not in the evidence */
    bool ids_reused;   /* one id on two different events */
    bool log_expected; /* a log is given: its events are kept whole, which costs no more than it */
    struct model *model;
    struct id_index ids; /* private */
    struct exch **exch;
    uint32_t exch_count;
    size_t exch_cap;
    struct leg **leg;
    uint32_t leg_count;
    size_t leg_cap;
    struct stream **stream;
    uint32_t stream_count;
    size_t stream_cap;
    struct request **request;
    uint32_t request_count;
    size_t request_cap;
    struct event_chunk **chunk;
    uint32_t event_count;
    uint32_t counted_events;  /* with id or data, duplicates aside (FORMATS 3) */
    uint32_t client_requests; /* JSON-RPC requests of the client */
    bool forgotten;           /* the oldest ids are no longer remembered */

    char name[16];      /* "s1" */
    struct slice id;    /* Mcp-Session-Id, or the legacy endpoint; ptr NULL: none */
    struct slice key;   /* private: what it is looked up by, with the authority */
    struct slice alias; /* private: ... as the other kind of evidence tells it; ptr NULL: none */
    struct slice authority;
    bool legacy; /* HTTP+SSE (2024-11-05) */
    struct endpoint server;
    struct endpoint client;
    uint64_t client_identity; /* address without port, clientInfo, credentials */
    enum era era;             /* negotiated */
    struct slice revision;    /* text of the negotiated protocolVersion */
    struct slice client_name, client_version, server_name, server_version;
    struct place first, last;
    bool starts_late;     /* its initialize is not in the evidence */
    struct place deleted; /* DELETE accepted */
    struct place gone;    /* first 404 (or worded refusal) after it had worked */
    uint32_t gone_exch;
    struct session *replaced_by; /* initialize again by the same client */
    struct session *replaces;
    uint32_t initialize;  /* exch; NONE */
    uint32_t initialized; /* exch that carried notifications/initialized; NONE */
    struct resumption **resumption;
    uint32_t resumption_count;
    size_t resumption_cap;
    struct tool_hint *tool;
    uint32_t tool_count;
    size_t tool_cap;

    enum id_scheme scheme;
    bool scheme_proven;
    bool epoch;    /* ids started again within the session */
    uint32_t gaps; /* holes of the evidence in it */
    struct place gap_at;
    bool truncated; /* the file was cut while it lived */
    /* Up to here the requests and the bytes of all exchanges, and the ids of events, are known. */
    int64_t whole_until, ids_until;

    /* the log */
    bool has_log;
    struct track *track;
    uint32_t track_count;
    size_t track_cap;
    bool log_has_times;
    bool log_names_events, log_commits, log_cursors, log_processes, log_receives;
    bool log_handles;               /* it tells processed from committed */
    bool log_handles_notifications; /* it says of some notification what became of it */
    bool log_from_map;
    bool log_digests;                    /* some entry names a digest */
    uint32_t log_handled[RPC_ERROR + 1]; /* messages of each kind that the log shows handled */
    bool log_atomic;                     /* claimed by the header */
    bool log_idempotent_all;
    int64_t log_first, log_last; /* span that the log covers, on the capture's clock */
    uint32_t *log_entry;         /* all entries of this session, in order of time */
    int64_t *log_time;           /* on the capture's clock */
    uint32_t log_entry_count;
    size_t log_entry_cap;
    uint32_t *unmatched;     /* entries that name something which was never on the wire */
    int64_t *unmatched_time; /* of each, on the capture's clock */
    uint32_t unmatched_count;
    enum cursor_policy policy;
    uint32_t policy_before, policy_after, policy_atomic;
    uint32_t policy_example; /* log entry; NONE */

    struct peer *peer;
    uint32_t peer_count;
    size_t peer_cap;

    void *requests_by_id, *requests_by_token; /* private look-up tables */
    uint32_t first_chunk;                     /* private: chunks below it are forgotten */
};

/* Odd facts of the evidence, one each: see enum note_kind. */
struct note {
    enum note_kind kind;
    uint64_t exchange;
    struct session *session; /* NULL: none */
    uint32_t exch;           /* in session; NONE */
    struct place at;         /* of the first */
    uint64_t count;
    uint32_t tcp_stream;
    char *text;
};

struct model_options {
    const char *const *idempotent; /* tool names from the command line */
    size_t idempotent_count;
    bool strict;
    size_t max_ids;  /* remembered ids in all; older ones are forgotten */
    size_t max_full; /* bytes of events kept whole */
};
extern const struct model_options model_options_default;

struct clock_skew {
    bool known;
    int64_t offset; /* log minus capture, ns, at `since` */
    double drift;   /* ns per ns */
    int64_t since;
    uint32_t pairs;
    uint32_t file;                    /* of the log */
    uint32_t entry_first, entry_last; /* entries that show it */
};

struct model {
    struct model_options opt;
    const struct dispatch_log *log; /* borrowed; NULL: none */
    struct session **session;
    uint32_t session_count;
    size_t session_cap;
    struct note *note;
    uint32_t note_count;
    size_t note_cap;
    struct clock_skew *skew; /* one a log file */
    uint32_t skew_count;
    struct place end; /* last place of the recording */
    bool har;         /* some input is a HAR */
    bool pcap;
    uint64_t other_http; /* exchanges left out: neither event streams nor JSON-RPC */
    struct arena *arena;
    void *impl; /* private */
};

struct model *model_new(const struct model_options *opt, const struct dispatch_log *log);
void model_free(struct model *m);
void model_feed(struct model *m, const struct record *rec);
void model_finish(struct model *m, bool truncated);

/* NULL: reduced, or no such event. */
struct event *event_at(const struct session *s, uint32_t index);
/* The first event from index on that is not reduced; NULL: there is none. */
struct event *event_next(const struct session *s, uint32_t index);
/* Also of reduced events; false: forgotten. */
bool event_brief(const struct session *s, uint32_t index, struct brief *ret);
/* The events of a leg in order, reduced ones left out:
 *     for (e = leg_event_after(s, l, NONE); e; e = leg_event_after(s, l, e->index)) */
struct event *leg_event_after(const struct session *s, const struct leg *l, uint32_t after);
/* First event with this id, or NONE. */
uint32_t event_by_id(const struct session *s, struct slice id);
/* The event whose id becomes this cursor by trimming, percent or Latin-1 conversion, or NONE. */
uint32_t event_by_mangled_id(const struct session *s, struct slice cursor);
/* The leg whose unterminated tail holds this id, or NONE. */
uint32_t leg_by_tail_id(const struct session *s, struct slice id);
/* Last event with this id that came before t (ids that are not unique), or NONE. */
uint32_t event_by_id_before(const struct session *s, struct slice id, int64_t t);

static inline struct exch *leg_exch(const struct session *s, const struct leg *l)
{
    return s->exch[l->exch];
}
/* Was every byte of the event acknowledged by the client's host before the client closed the leg
 * (HAR: recorded)? */
bool event_delivered(const struct session *s, const struct event *e);
/* Was the message (in an event or a body) delivered? */
bool message_delivered(const struct session *s, const struct message *m);
/* On a resumed leg: is this a message that the stream carried before, under a new id? */
bool event_renamed(const struct session *s, const struct event *e);
/* Is the session id refused as gone (404; or the words of another refusal) and never accepted
 * again? */
bool session_refused(const struct session *s, const struct exch *x);
/* Is a JSON-RPC request among what the client sent in it? */
bool exch_carries_request(const struct exch *x);
bool refusal_names_cursor(const struct exch *x);
bool refusal_names_session(const struct exch *x);
/* Outstanding at time t (DESIGN 2). */
bool request_outstanding(const struct session *s, const struct request *r, int64_t t);
/* When t is in no evidence hole: every leg of the session before t is wholly in the evidence. */
bool session_whole_before(const struct session *s, int64_t t);
/* May it have given out ids before t which the evidence (a HAR) does not show? */
bool session_ids_partial(const struct session *s, int64_t t);
/* The client's requests that the POST of the stream carried:
 *     for (i = 0; (q = stream_request(s, st, &i));) */
const struct request *stream_request(const struct session *s, const struct stream *st, uint32_t *i);
/* Did the log show that a handler had the message (processed, committed, dropped or failed)? */
bool track_handled(const struct track *k);
/* The leg of `stream` that was the last to begin before t, or NONE. */
/* The first event of the stream from this ordinal on that is not reduced; sets the ordinal. NULL:
 * there is none. */
struct event *stream_next(const struct session *s, const struct stream *st, uint32_t *ordinal);
/* How many of its legs began before t, which are the first ones; the last of these, or NONE. */
uint32_t stream_legs_before(const struct session *s, const struct stream *st, int64_t t);
uint32_t stream_leg_before(const struct session *s, const struct stream *st, int64_t t);
/* How the log stood with a message at time t. */
enum head_state track_state_at(const struct session *s, uint32_t track, int64_t t);
bool leg_open_at(const struct leg *l, int64_t t);

#endif
