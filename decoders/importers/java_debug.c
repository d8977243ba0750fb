/*
 * java_debug.c - the client of the Java SDK at level DEBUG:
 *
 *     16:05:28.696 [...] DEBUG ... Updating last id a_1 -> a_2 for stream 0
 *     16:05:28.700 [...] DEBUG ... Reconnecting stream 0 with lastId Optional[a_2]
 *     16:05:28.702 [...] DEBUG ... Received response: JSONRPCResponse[jsonrpc=2.0, id=b-0, ...]
 *     16:05:28.702 [...] WARN  ... Unexpected response for unknown id b-0
 *
 * The last id moves before the event's messages are handed on. A record is printed without quotes,
 * so 7 and "7" look the same: an id of digits only is left out. The client makes ids with a dash.
 */
#include "importers/importer.h"

static bool all_digits(struct slice s)
{
    uint64_t v;

    return s.len == 0 || s.len > 18 || slice_u64(s, UINT64_MAX, &v);
}

static void set_id(struct log_reader *r, struct log_entry *e, struct slice id)
{
    if (!all_digits(id) && !slice_eq(id, SLICE_LIT("null")))
        e->request = rpc_id_of_string(log_reader_keep(r, id));
}

static void read_cursor(struct log_reader *r, struct slice ids)
{
    struct slice to = importer_after(ids, SLICE_LIT(" -> "));
    struct slice id = importer_before(to, SLICE_LIT(" for stream "));
    struct log_entry e = log_reader_entry(r, LOG_CURSOR);

    if (!id.ptr) {
        log_reader_fault(r, "the line ends within the id");
        return;
    }
    e.event_id = log_reader_keep(r, id);
    e.stream = log_reader_keep(r, importer_after(to, SLICE_LIT(" for stream ")));
    log_reader_add(r, e);
}

static void read_reconnect(struct log_reader *r, struct slice rest)
{
    struct slice last = importer_after(rest, SLICE_LIT(" with lastId "));
    struct slice id = importer_before(importer_after(last, SLICE_LIT("Optional[")), SLICE_LIT("]"));
    struct log_entry e = log_reader_entry(r, LOG_RECONNECT);

    if (last.ptr)
        e.stream = log_reader_keep(r, importer_before(rest, SLICE_LIT(" with lastId ")));
    e.event_id = log_reader_keep(r, id); /* Optional.empty: none */
    log_reader_add(r, e);
}

/* A member at the front of the record, where no text of the other side can stand before it. */
static struct slice component(struct slice record, struct slice name)
{
    struct slice value = importer_after(record, name);
    struct slice end = importer_before(value, SLICE_LIT(", "));

    return end.ptr ? end : importer_before(value, SLICE_LIT("]"));
}

static void read_response(struct log_reader *r, struct slice record)
{
    struct log_entry e = log_reader_entry(r, LOG_RECEIVED);

    set_id(r, &e, component(record, SLICE_LIT("[jsonrpc=2.0, id=")));
    log_reader_add(r, e);
}

static void read_method(struct log_reader *r, struct slice record)
{
    struct log_entry e = log_reader_entry(r, LOG_RECEIVED);
    struct slice method = component(record, SLICE_LIT("[jsonrpc=2.0, method="));
    struct slice rest = importer_after(record, SLICE_LIT("[jsonrpc=2.0, method="));

    e.method = log_reader_keep(r, method);
    if (method.ptr && rest.len > method.len) {
        struct slice next = { rest.ptr + method.len, rest.len - method.len };
        if (slice_starts(next, SLICE_LIT(", id=")))
            set_id(r, &e, component(next, SLICE_LIT(", id=")));
    }
    log_reader_add(r, e);
}

static void read_unexpected(struct log_reader *r, struct slice id)
{
    struct log_entry e = log_reader_entry(r, LOG_DROPPED);

    set_id(r, &e, slice_trim(id));
    log_reader_add(r, e);
}

static const struct {
    const char *intro;
    void (*read)(struct log_reader *r, struct slice rest);
} shape[] = {
    { "Updating last id ", read_cursor },
    { "Reconnecting stream ", read_reconnect },
    { "Received response: JSONRPCResponse", read_response },
    { "Received Response: JSONRPCResponse", read_response },
    { "Received request: JSONRPCRequest", read_method },
    { "Received notification: JSONRPCNotification", read_method },
    { "Unexpected response for unknown id ", read_unexpected },
};

static void read_line(struct log_reader *r, struct slice line)
{
    for (size_t i = 0; i < ARRAY_LEN(shape); i++) {
        struct slice rest = importer_after(line, slice_str(shape[i].intro));
        if (rest.ptr) {
            shape[i].read(r, rest);
            return;
        }
    }
}

static bool probe_line(struct slice line)
{
    struct slice moved = importer_after(line, SLICE_LIT("Updating last id "));
    struct slice again = importer_after(line, SLICE_LIT("Reconnecting stream "));

    return importer_after(moved, SLICE_LIT(" for stream ")).ptr ||
           importer_after(again, SLICE_LIT(" with lastId ")).ptr;
}

const struct importer importer_java_debug = {
    .name = "java-debug",
    .cannot_know =
        "the content of messages, the type of a request id of digits only, which message "
        "an event id belongs to, sessions, whether a handler ran; the cursor is in "
        "memory only; a time without a date is no time",
    .probe_line = probe_line,
    .line = read_line,
};
