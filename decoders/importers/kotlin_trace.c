/*
 * kotlin_trace.c - the Kotlin SDK at level TRACE:
 *
 *     2026-11-30 16:05:28.696 [main] TRACE ... Client received SSE event: event=message,
 *         data={"jsonrpc":"2.0",...}, id=41          (one line)
 *
 * The transport writes it after it has taken the id as its cursor and before it parses the data.
 * An absent value is written as null.
 */
#include "importers/importer.h"
#include "jtext.h"

#define INTRO "Client received SSE event: event="

/* The last place where text stands, since data may hold it too; false: nowhere. */
static bool split_last(struct slice s, struct slice text, struct slice *before, struct slice *after)
{
    bool found = false;

    for (struct slice rest = importer_after(s, text); rest.ptr; rest = importer_after(rest, text)) {
        *after = rest;
        *before = (struct slice){ s.ptr, s.len - rest.len - text.len };
        found = true;
    }
    return found;
}

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice event = importer_after(line, SLICE_LIT(INTRO));
    struct slice data = importer_after(event, SLICE_LIT(", data="));
    struct slice id = SLICE_LIT("null");

    if (!event.ptr)
        return;
    if (!data.ptr ||
        (!split_last(data, SLICE_LIT(", id="), &data, &id) && rpc_scan(r->scan, data) != RPC_OK)) {
        log_reader_fault(r, "the event goes on after the line");
        return;
    }
    struct log_entry e = log_reader_entry(r, LOG_RECEIVED);
    if (!slice_eq(id, SLICE_LIT("null")))
        e.event_id = log_reader_keep(r, id);
    if (data.len == 0 || slice_eq(data, SLICE_LIT("null")))
        log_reader_add(r, e);
    else
        log_reader_message(r, e, data);
}

static bool probe_line(struct slice line)
{
    return importer_after(line, SLICE_LIT(INTRO)).ptr;
}

const struct importer importer_kotlin_trace = {
    .name = "kotlin-trace",
    .cannot_know =
        "sessions, reconnects, what was sent, whether a handler ran; the cursor is taken "
        "with each received id, in memory only",
    .probe_line = probe_line,
    .line = read_line,
};
