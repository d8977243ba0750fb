/*
 * csharp_trace.c - the C# SDK at level Trace; the console logger puts the text on a second line:
 *
 *     2026-11-30T16:05:28.696Z trce: ModelContextProtocol.Client.McpClient[1]
 *           Client (app 1.0) transport received message. Message: '{"jsonrpc":"2.0",...}'.
 *
 * What a server wrote ("Server (...") is the other side's, and left out.
 */
#include "importers/importer.h"

static const struct importer_mark mark[] = {
    { "transport received message. Message: '", LOG_RECEIVED },
    { "sending message. Message: '", LOG_SENT },
};

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice json;
    const struct importer_mark *m = importer_marked(line, mark, ARRAY_LEN(mark), &json);
    struct slice end = SLICE_LIT("'.");

    if (!m)
        return;
    struct slice name = importer_before(line, slice_str(m->text));
    if (importer_after(name, SLICE_LIT("Server (")).ptr)
        return;
    json = slice_trim(json);
    if (json.len < end.len ||
        !slice_eq((struct slice){ json.ptr + json.len - end.len, end.len }, end)) {
        log_reader_fault(r, "the message goes on after the line");
        return;
    }
    json.len -= end.len;
    log_reader_message(r, log_reader_entry(r, m->state), json);
}

static bool probe_line(struct slice line)
{
    return importer_marks_json(line, mark, ARRAY_LEN(mark));
}

const struct importer importer_csharp_trace = {
    .name = "csharp-trace",
    .cannot_know = "times (unless the logger's format has them), event ids, sessions, the stored "
                   "cursor, reconnects, whether a handler ran",
    .no_event_ids = true,
    .probe_line = probe_line,
    .line = read_line,
};
