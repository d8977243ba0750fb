/*
 * dispatch_log.h - what the client did with what it received (FORMATS.md 2), in one form whatever
 * the log's: NDJSON, a map, or one of the importers/.
 *
 *     log = dispatch_log_new();
 *     ok = dispatch_log_read(log, input, index, &err);   false: not a log at all, err tells
 *     ... log->entry[0 .. log->count)
 *     dispatch_log_free(log);
 *
 * Several files may be read into one log. Everything reachable lives until dispatch_log_free.
 */
#ifndef DISPATCH_LOG_H
#define DISPATCH_LOG_H

#include "input.h"
#include "rpc.h"

enum log_state {
    LOG_RECEIVED,
    LOG_CURSOR,
    LOG_PROCESSED,
    LOG_COMMITTED,
    LOG_DROPPED,
    LOG_FAILED,
    LOG_SENT,
    LOG_RECONNECT,
};
const char *log_state_text(enum log_state s);

enum log_digest { LOG_DIGEST_NONE, LOG_DIGEST_XXH3, LOG_DIGEST_SHA256, LOG_DIGEST_CONTENT };

struct log_entry {
    int64_t time; /* ns since 1970; meaningful when has_time */
    bool has_time;
    bool synthetic;    /* made up by the client: no wire counterpart */
    bool from_map;     /* state at the end (or at the last reconnect), not an event in time */
    bool no_event_ids; /* the source cannot know event ids (importer) */
    enum log_state state;
    uint32_t file;        /* index into log->file */
    uint32_t line;        /* from 1 */
    struct slice session; /* ptr NULL: none given */
    struct slice stream;
    struct slice event_id; /* ptr NULL: none given */
    struct slice method;
    struct slice tool;
    struct slice txn;      /* ptr NULL: none */
    struct rpc_id request; /* type RPC_ID_NONE: none given */
    enum log_digest digest;
    uint64_t xxh3; /* LOG_DIGEST_XXH3: of the payload as received; _CONTENT: rpc digest of
                      the message (importers that hold the JSON itself) */
    uint8_t sha256[32];
};

/* One input file of the log and what its header said. */
struct log_file {
    uint32_t input;      /* index of the input */
    struct slice client; /* "name/version" */
    struct slice format; /* "ndjson", "map", or the importer's name */
    bool idempotent_all;
    struct slice *idempotent; /* tool names */
    size_t idempotent_count;
    bool atomic_cursor;
    bool has_times;
    bool names_events;   /* some entry carries an event id */
    bool says_processed; /* some entry says processed or committed: else silence about it means
                            nothing */
    bool is_map;
    struct slice map_cursor;  /* last_event_id of a map; ptr NULL: none */
    uint32_t skipped;         /* lines that could not be read */
    struct slice cannot_know; /* importer: what it cannot know, for the report; empty: all */
};

/* A line that could not be read. */
struct log_fault {
    uint32_t file;
    uint32_t line;
    struct slice what;
};

struct dispatch_log {
    struct log_entry *entry; /* in the order of files and lines */
    size_t count;
    size_t cap;
    struct log_file *file;
    size_t file_count;
    size_t file_cap;
    struct log_fault *fault;
    size_t fault_count;
    size_t fault_cap;
    bool wants_sha256; /* some entry has a SHA-256 digest */
    struct arena *arena;
};

struct dispatch_log *dispatch_log_new(void);
void dispatch_log_free(struct dispatch_log *log);
bool dispatch_log_read(struct dispatch_log *log, struct input *in, uint32_t input_index,
                       struct input_error *reterr);
/* Takes back what the last file read has put in, for one that turns out to be there already. */
void dispatch_log_drop_last(struct dispatch_log *log);
/* Do the first bytes look like a dispatch log of any form? */
bool dispatch_log_is(struct slice head);

#endif
