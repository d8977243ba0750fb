/*
 * vscode.c - the output channel of an MCP server in VS Code:
 *
 *     2026-11-30 16:05:28.696 [info] [editor -> server] {"jsonrpc":"2.0","id":1,...}
 *     2026-11-30 16:05:28.702 [info] [server -> editor] {"jsonrpc":"2.0","id":1,...}
 *     2026-11-30 16:05:29.120 [trace] Fetching http://... with options: {"method":"GET",...}
 *     2026-11-30 16:05:29.131 [trace] Fetched http://...: {"status":200,"headers":{...}}
 *
 * (early builds: [Client Says], [Server Says]). The received message is written before its handler
 * runs, and an answer that nobody waits for is written just so: it proves no more than "received".
 */
#include "importers/importer.h"
#include "jtext.h"

static const struct importer_mark mark[] = {
    { "[editor -> server] ", LOG_SENT },
    { "[server -> editor] ", LOG_RECEIVED },
    { "[Client Says] ", LOG_SENT },
    { "[Server Says] ", LOG_RECEIVED },
};

static struct slice header(struct slice object, struct slice name)
{
    struct slice headers = jtext_find(object, "headers");
    struct jtext_walk w;
    struct slice key;
    struct slice value;

    if (!jtext_enter(headers, &w))
        return (struct slice){ NULL, 0 };
    while (jtext_member(&w, &key, &value)) {
        if (slice_eq_nocase(key, name))
            return jtext_inside(value);
    }
    return (struct slice){ NULL, 0 };
}

/* The HTTP layer tells the session, and the cursor of a reconnect. */
static void read_http(struct log_reader *r, struct slice line)
{
    struct slice sent = importer_after(line, SLICE_LIT(" with options: "));
    struct slice object = sent.ptr ? sent : importer_after(line, SLICE_LIT(": "));
    struct slice session = header(object, SLICE_LIT("Mcp-Session-Id"));
    struct slice cursor = header(object, SLICE_LIT("Last-Event-ID"));

    if (session.ptr && session.len > 0)
        r->session = log_reader_text(r, session);
    if (!sent.ptr || !cursor.ptr)
        return;
    struct log_entry e = log_reader_entry(r, LOG_RECONNECT);
    e.event_id = log_reader_text(r, cursor);
    log_reader_add(r, e);
}

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice rest;
    const struct importer_mark *m = importer_marked(line, mark, ARRAY_LEN(mark), &rest);
    struct slice fetch = importer_after(line, SLICE_LIT("] Fetch"));

    if (m)
        log_reader_message(r, log_reader_entry(r, m->state), rest);
    else if (slice_starts(fetch, SLICE_LIT("ing ")) || slice_starts(fetch, SLICE_LIT("ed ")))
        read_http(r, fetch);
}

static bool probe_line(struct slice line)
{
    return importer_marks_json(line, mark, ARRAY_LEN(mark));
}

const struct importer importer_vscode = {
    .name = "vscode",
    .cannot_know = "event ids of received messages, the stored cursor, whether a handler ran",
    .no_event_ids = true,
    .probe_line = probe_line,
    .line = read_line,
};
