/*
 * go_logging.c - LoggingTransport of the Go SDK:
 *
 *     write: {"jsonrpc":"2.0","id":1,"method":"initialize",...}
 *     read: {"jsonrpc":"2.0","id":1,"result":{...}}
 *     read error: EOF
 *
 * The writer that the program passed may have put a prefix before each line. "read" is written when
 * the session takes the message from the transport, before it is dispatched.
 */
#include "importers/importer.h"

static const struct importer_mark mark[] = {
    { "read: ", LOG_RECEIVED },
    { "write: ", LOG_SENT },
};

static bool is_message(struct slice line)
{
    return importer_marks_json(line, mark, ARRAY_LEN(mark)) &&
           importer_after(line, SLICE_LIT("\"jsonrpc\"")).ptr;
}

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice rest;
    const struct importer_mark *m = importer_marked(line, mark, ARRAY_LEN(mark), &rest);

    if (m && importer_marks_json(line, mark, ARRAY_LEN(mark)))
        log_reader_message(r, log_reader_entry(r, m->state), rest);
}

const struct importer importer_go_logging = {
    .name = "go-logging",
    .cannot_know = "times (unless the program's writer adds them), event ids, sessions, the stored "
                   "cursor, reconnects, whether a handler ran",
    .no_event_ids = true,
    .probe_line = is_message,
    .line = read_line,
};
