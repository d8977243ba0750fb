/*
 * har_entry.h - one element of log.entries[]: what it holds, and when each of its facts is due.
 *
 *     e = har_entry_new(text, &ctx, err);       NULL: does not parse, err tells
 *     har_entry_summary(e, &sum);               for the index
 *     har_entry_plan(e, start, number);         facts 0 .. e->fact_count - 1 in the order of time
 *     har_entry_time(e, i);                     HAR_AT_END: when the recording ends
 *     har_fact(e, i, now, &leg);                har_fact.c: tells the exchange
 *
 * The text may be dropped after har_entry_new. Slices live until har_entry_free.
 */
#ifndef HAR_ENTRY_H
#define HAR_ENTRY_H

#include "exchange.h"

#include <jansson.h>

enum har_producer_kind {
    HAR_BY_OTHER,
    HAR_BY_DEVTOOLS,
    HAR_BY_FIREFOX,
    HAR_BY_SAFARI,
    HAR_BY_PLAYWRIGHT,
    HAR_BY_MITMPROXY,
    HAR_BY_CHARLES,
    HAR_BY_HTTP_TOOLKIT,
    HAR_BY_INSOMNIA,
    HAR_BY_MCPSNOOP,
    HAR_BY_PCAP2HAR,
};

/* What all entries of a file share. */
struct har_context {
    enum har_producer_kind by;
    const char *producer; /* in words */
    uint32_t input;
};

enum har_scope {
    HAR_SCOPE_HTTP,
    HAR_SCOPE_WEBSOCKET,
    HAR_SCOPE_NO_ENVELOPE, /* mcpsnoop: params and result without the message around them */
};

enum har_source {
    HAR_BODY_NONE,     /* none, or not recorded */
    HAR_BODY_TEXT,     /* content.text */
    HAR_BODY_MESSAGES, /* _eventSourceMessages */
};

#define HAR_AT_END    INT64_MAX
#define HAR_NOTES_MAX 6

/* One delivery of the response body. */
struct har_piece {
    int64_t time;
    size_t upto; /* text: end of the piece in it; messages: index */
};

struct har_entry {
    const struct har_context *ctx;
    json_t *root;
    const json_t *request;
    const json_t *response;
    const json_t *content;
    size_t repaired; /* lone surrogates and invalid bytes, now U+FFFD */

    /* plan */
    uint32_t number; /* index in log.entries[] */
    enum har_scope scope;
    int status; /* 0: no response */
    bool sse;
    bool bodiless; /* a response of this kind has no body */
    bool recorded;
    bool cut_short; /* the producer's limit cut the text */
    bool no_time;   /* the pieces have no time of their own */
    bool has_text;  /* content.text is there */
    bool spoilt;    /* ... and is not the base64 it claims to be */
    struct slice text;
    void *owned; /* memory of text, when it is not the tree's */
    json_t *id;  /* mcpsnoop: of the request's envelope */
    enum har_source source;
    const json_t *messages;
    int64_t start;
    int64_t head;
    int64_t end;
    struct har_piece *piece;
    size_t piece_count;
    size_t piece_cap;
    struct exchange_end_facts facts;
    const char *note[HAR_NOTES_MAX];
    size_t note_count;
    size_t fact_count;
};

struct har_entry_error {
    char text[160];
};

struct har_entry *har_entry_new(struct slice text, const struct har_context *ctx,
                                struct har_entry_error *reterr);
void har_entry_free(struct har_entry *e);

struct har_summary {
    bool has_start;
    int64_t start;
    uint64_t key; /* digest of method, URL, cursor, session and body; 0: not to be compared */
    size_t body;  /* how much of the response is there */
};
void har_entry_summary(const struct har_entry *e, struct har_summary *ret);
void har_entry_plan(struct har_entry *e, int64_t start, uint32_t number);
int64_t har_entry_time(const struct har_entry *e, size_t fact);
/* Between the request (fact 0) and the end: response head, then the pieces. */
static inline bool har_entry_answered(const struct har_entry *e)
{
    return e->status > 0;
}

/* Values as producers write them: null anywhere, numbers as strings. Missing: ptr NULL, false. */
struct slice har_string(const json_t *object, const char *key);
MUST_CHECK bool har_number(const json_t *object, const char *key, double *ret);
/* The value of a header, name in lower case; ptr NULL: absent. Lists of pairs and plain objects. */
struct slice har_header(const json_t *message, struct slice name);

/* har_fact.c: where an entry's facts go; conn must stay in place until the last fact. */
struct har_leg {
    struct exchanges *all;
    struct exchange *x;
    struct conn conn;
};
void har_fact(const struct har_entry *e, size_t fact, int64_t now, struct har_leg *leg);

#endif
