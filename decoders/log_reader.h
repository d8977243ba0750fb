/*
 * log_reader.h - what every form of dispatch log shares while one file is read: where it is, how an
 * entry or a fault is added, and strings kept once however often they occur.
 */
#ifndef LOG_READER_H
#define LOG_READER_H

#include "dispatch_log.h"

struct importer;

struct log_reader {
    struct dispatch_log *log;
    const struct importer *form;
    uint32_t file; /* index into log->file */
    uint32_t line; /* from 1 */
    int64_t time;  /* of the line, for forms that write it at the front */
    bool has_time;
    struct slice session; /* of the entries that name none; ptr NULL: unknown */
    struct rpc_scanner *scan;
    struct buf scratch;
    struct slice *kept; /* private: a hash table of the strings kept so far */
    size_t kept_count;
    size_t kept_cap;
};

void log_reader_init(struct log_reader *r, struct dispatch_log *log, const struct importer *form,
                     uint32_t input);
void log_reader_release(struct log_reader *r);

/* A log_file for the next part of the same input (an array of maps). */
void log_reader_add_file(struct log_reader *r, uint32_t input);
struct log_file *log_reader_file(const struct log_reader *r);

/* A copy that lives as long as the log; equal strings share one. */
struct slice log_reader_keep(struct log_reader *r, struct slice s);
/* The same of the text of a JSON string, given as written between its quotes. */
struct slice log_reader_text(struct log_reader *r, struct slice raw);
/* The same of an id given as its JSON token. */
struct rpc_id log_reader_id(struct log_reader *r, struct slice token);

/* Something that could not be read: it is skipped and counted. */
void log_reader_fault(struct log_reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The fault of text that rpc_scan did not take: what it is, and where it breaks. */
void log_reader_fault_json(struct log_reader *r, const char *what, enum rpc_status st);

/* Adds an entry; file, line and a missing session are filled in. */
void log_reader_add(struct log_reader *r, struct log_entry e);
/* An entry to fill and add, with the time of the line. */
struct log_entry log_reader_entry(const struct log_reader *r, enum log_state state);
/* Adds e once for every JSON-RPC message in json, with its id, method, tool and digest. */
void log_reader_message(struct log_reader *r, struct log_entry e, struct slice json);

/* client, session, idempotent_handlers, atomic_cursor, last_event_id of a header or a map. */
void log_reader_settings(struct log_reader *r, struct slice object);

/* False when it is no name of a state. */
MUST_CHECK bool log_state_parse(struct slice name, enum log_state *ret);

#endif
