/*
 * inspector.c - an export of MCP Inspector 2: an array of message entries, of network entries, or
 * an object that holds such arrays.
 *
 *     {"id":"..","timestamp":"2026-11-30T16:05:28.696Z","direction":"request","origin":"client",
 *      "message":{...},"response":{...},"duration":424}
 *     {"id":"..","timestamp":"..","method":"GET","url":"..","requestHeaders":{...},...}
 *
 * A message is tracked in the transport, before the Inspector's own handlers see it.
 */
#include "importers/importer.h"
#include "jtext.h"
#include "log_time.h"

/* Older exports do not say who sent it: these only servers send. */
static const char *const from_server[] = {
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
};

static bool sent_by_server(struct slice entry, struct slice message)
{
    struct slice origin = jtext_inside(jtext_find(entry, "origin"));
    struct slice method = jtext_inside(jtext_find(message, "method"));

    if (origin.ptr)
        return slice_eq(origin, SLICE_LIT("server"));
    for (size_t i = 0; i < ARRAY_LEN(from_server); i++) {
        if (slice_eq(method, slice_str(from_server[i])))
            return true;
    }
    return !slice_eq(jtext_inside(jtext_find(entry, "direction")), SLICE_LIT("request"));
}

static void read_response(struct log_reader *r, struct log_entry e, struct slice entry)
{
    struct slice response = jtext_find(entry, "response");
    struct slice took = jtext_find(entry, "duration"); /* ms, perhaps with a fraction */
    uint64_t ms;

    if (jtext_first(response) != '{')
        return;
    struct slice whole = importer_before(took, SLICE_LIT("."));
    e.has_time = e.has_time && slice_u64(whole.ptr ? whole : took, UINT32_MAX, &ms);
    if (e.has_time && __builtin_add_overflow(e.time, (int64_t)ms * NS_PER_MS, &e.time))
        e.has_time = false;
    e.state = e.state == LOG_SENT ? LOG_RECEIVED : LOG_SENT;
    log_reader_message(r, e, response);
}

/* The network entry of a GET that carries a cursor. */
static void read_fetch(struct log_reader *r, struct log_entry e, struct slice headers)
{
    struct jtext_walk w;
    struct slice key;
    struct slice value;

    if (!jtext_enter(headers, &w))
        return;
    while (jtext_member(&w, &key, &value)) {
        if (!slice_eq_nocase(key, SLICE_LIT("last-event-id")) || !jtext_inside(value).ptr)
            continue;
        e.state = LOG_RECONNECT;
        e.event_id = log_reader_text(r, jtext_inside(value));
        log_reader_add(r, e);
    }
}

static void read_entry(struct log_reader *r, struct slice entry)
{
    struct slice message = jtext_find(entry, "message");
    struct slice headers = jtext_find(entry, "requestHeaders");
    struct log_entry e = { 0 };

    e.has_time = log_time_of_text(jtext_inside(jtext_find(entry, "timestamp")), &e.time);
    if (jtext_first(message) == '{') {
        e.state = sent_by_server(entry, message) ? LOG_RECEIVED : LOG_SENT;
        log_reader_message(r, e, message);
        read_response(r, e, entry);
    } else if (headers.ptr) {
        read_fetch(r, e, headers);
    } else {
        log_reader_fault(r, "neither a message nor a network entry");
    }
}

static void read_array(struct log_reader *r, struct slice array)
{
    struct jtext_walk w;
    struct slice entry;

    if (!jtext_enter(array, &w))
        return;
    for (; jtext_element(&w, &entry); r->line++) /* the number of the entry: lines tell nothing */
        read_entry(r, entry);
}

static void read_document(struct log_reader *r, struct slice document)
{
    enum rpc_status st = rpc_scan(r->scan, document);
    struct jtext_walk w;
    struct slice key;
    struct slice value;

    r->line = 1;
    if (st != RPC_OK) {
        log_reader_fault_json(r, "", st);
        return;
    }
    if (jtext_first(document) == '[') {
        read_array(r, document);
        return;
    }
    if (!jtext_enter(document, &w))
        return;
    while (jtext_member(&w, &key, &value)) {
        if (value.ptr[0] == '[')
            read_array(r, value);
    }
}

/* By the keys of the first entry, as far as the head goes. */
static bool probe_entry(struct slice head)
{
    struct slice key;
    struct slice value;
    struct jtext_walk w;
    bool timed = false;
    bool directed = false;

    if (jtext_first(head) != '{' || !jtext_enter(head, &w))
        return false;
    while (jtext_key(&w, &key)) {
        timed |= slice_eq(key, SLICE_LIT("timestamp"));
        directed |= slice_eq(key, SLICE_LIT("direction"));
        if (timed && (slice_eq(key, SLICE_LIT("requestHeaders")) ||
                      (directed && slice_eq(key, SLICE_LIT("message")))))
            return true;
        if (!jtext_value(&w.rest, &value))
            return false;
    }
    return false;
}

static bool probe_array(struct slice head)
{
    struct jtext_walk w;

    return jtext_first(head) == '[' && jtext_enter(head, &w) && probe_entry(w.rest);
}

static bool probe(struct slice head)
{
    struct jtext_walk w;
    struct slice key;
    struct slice value;

    if (jtext_first(head) != '{' || !jtext_enter(head, &w))
        return probe_array(head);
    while (jtext_key(&w, &key)) {
        if (probe_array(w.rest))
            return true;
        if (!jtext_value(&w.rest, &value))
            return false;
    }
    return false;
}

const struct importer importer_inspector = {
    .name = "inspector",
    .cannot_know = "event ids of received messages, the body of the standalone stream, the stored "
                   "cursor, whether a handler ran; secrets are masked, so digests may differ",
    .is_json = true,
    .no_event_ids = true,
    .probe = probe,
    .document = read_document,
};
