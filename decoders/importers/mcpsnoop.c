/*
 * mcpsnoop.c - a session trace of mcpsnoop, a proxy in the path, one envelope a line:
 *
 *     {"session_id":"...","server_label":"...","seq":4,"ts":"2026-11-30T16:05:28.696Z",
 *      "direction":"s2c","transport":"http","raw":{"jsonrpc":"2.0","id":1,"result":{}}}
 *
 * session_id is the trace's own, not Mcp-Session-Id. That a message passed the proxy does not prove
 * that the client read it; we take it as received, and say so.
 */
#include "importers/importer.h"
#include "jtext.h"
#include "log_time.h"

static const struct {
    const char *direction;
    enum log_state state;
} way[] = { { "\"c2s\"", LOG_SENT }, { "\"s2c\"", LOG_RECEIVED } };

static void read_envelope(struct log_reader *r, struct slice line, enum log_state state)
{
    struct slice ts = jtext_inside(jtext_find(line, "ts"));
    struct slice raw = jtext_find(line, "raw");
    struct log_entry e = { .state = state };

    e.has_time = log_time_of_text(ts, &e.time);
    if (slice_eq(jtext_find(line, "truncated"), SLICE_LIT("true")))
        log_reader_fault(r, "the message was cut by the proxy");
    else if (raw.ptr)
        log_reader_message(r, e, raw);
}

static void read_line(struct log_reader *r, struct slice line)
{
    enum rpc_status st = rpc_scan(r->scan, line);

    if (st != RPC_OK || jtext_first(line) != '{') {
        log_reader_fault_json(r, "", st);
        return;
    }
    struct slice direction = jtext_find(line, "direction");
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        if (slice_eq(direction, slice_str(way[i].direction)))
            read_envelope(r, line, way[i].state);
    }
}

/* By the members in front: a long message may be cut off by the end of the head. */
static bool probe_line(struct slice line)
{
    static const char *const member[] = { "session_id", "server_label", "seq", "direction" };
    size_t found = 0;

    for (size_t i = 0; i < ARRAY_LEN(member); i++)
        found += jtext_find(line, member[i]).ptr ? 1 : 0;
    return found == ARRAY_LEN(member);
}

const struct importer importer_mcpsnoop = {
    .name = "mcpsnoop",
    .cannot_know = "event ids, Mcp-Session-Id, the stored cursor, reconnects, whether the client "
                   "read what passed the proxy, whether a handler ran",
    .is_json = true,
    .no_event_ids = true,
    .probe_line = probe_line,
    .line = read_line,
};
