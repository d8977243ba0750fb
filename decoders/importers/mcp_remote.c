/*
 * mcp_remote.c - the debug file of mcp-remote --debug, which is the client on the HTTP side:
 *
 *     [2026-11-30T16:05:28.696Z][4711] Local → Remote message {"method":"tools/call","id":3,...}
 *     [2026-11-30T16:05:29.120Z][4711] Remote → Local message {"id":3,"result":"result-present"}
 *
 * The object is a summary, not the message: it has no digest. The short lines "[Remote→Local] 3"
 * say the same again, without the type of the id, and are left out.
 */
#include "importers/importer.h"
#include "jtext.h"

static const struct importer_mark mark[] = {
    { "Remote \xe2\x86\x92 Local message ", LOG_RECEIVED },
    { "Local \xe2\x86\x92 Remote message ", LOG_SENT },
};

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice json;
    const struct importer_mark *m = importer_marked(line, mark, ARRAY_LEN(mark), &json);

    if (!m || jtext_first(json) != '{')
        return;
    enum rpc_status st = rpc_scan(r->scan, json);
    if (st != RPC_OK) {
        log_reader_fault_json(r, "the summary is ", st);
        return;
    }
    struct log_entry e = log_reader_entry(r, m->state);
    struct slice id = jtext_find(json, "id");
    if (id.ptr && !slice_eq(id, SLICE_LIT("null")))
        e.request = log_reader_id(r, id);
    e.method = log_reader_text(r, jtext_inside(jtext_find(json, "method")));
    log_reader_add(r, e);
}

static bool probe_line(struct slice line)
{
    return importer_marks_json(line, mark, ARRAY_LEN(mark));
}

const struct importer importer_mcp_remote = {
    .name = "mcp-remote",
    .cannot_know = "event ids, the content of a message, sessions, the stored cursor, reconnects, "
                   "whether the program behind mcp-remote took the message",
    .no_event_ids = true,
    .probe_line = probe_line,
    .line = read_line,
};
