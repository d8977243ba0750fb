/*
 * python_debug.c - the logger mcp.client.streamable_http of the Python SDK at level DEBUG:
 *
 *     2026-11-30 16:05:28,696 - mcp.client.streamable_http - DEBUG - SSE message:
 *         root=JSONRPCResponse(jsonrpc='2.0', id=3, result={...})        (one line)
 *     ... Sending client message: root=JSONRPCRequest(method='tools/call', params={...}, id=3)
 *     ... Received session ID: 5c1a...
 *     ... GET stream disconnected, reconnecting in 1000ms...
 *
 * A message is a Python repr, not JSON: only the arguments at its top are taken, where quotes and
 * brackets before them are balanced. It is written before the message is handed to the session.
 */
#include "importers/importer.h"

static void skip(struct slice *s, size_t n)
{
    s->ptr += n;
    s->len -= n;
}

/* Bytes of the Python string at the front with its quotes; 0: it does not end. */
static size_t quoted_length(struct slice s)
{
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == s.ptr[0])
            return i + 1;
        if (s.ptr[i] == '\\')
            i++;
    }
    return 0;
}

/* The value of an argument: up to the comma or bracket that ends it. */
static bool take_value(struct slice *s, struct slice *ret)
{
    size_t depth = 0;
    size_t i = 0;

    while (i < s->len) {
        uint8_t c = s->ptr[i];
        bool quote = c == '\'' || c == '"';
        size_t step = quote ? quoted_length((struct slice){ s->ptr + i, s->len - i }) : 1;
        if (step == 0)
            return false;
        if (depth == 0 && (c == ',' || c == ')'))
            return slice_take(s, i, ret);
        if (c == '(' || c == '[' || c == '{')
            depth++;
        else if (depth > 0 && (c == ')' || c == ']' || c == '}'))
            depth--;
        i += step;
    }
    return false;
}

static bool take_name(struct slice *s, struct slice *ret)
{
    while (s->len > 0 && (s->ptr[0] == ' ' || s->ptr[0] == ','))
        skip(s, 1);
    const uint8_t *eq = s->len > 0 ? memchr(s->ptr, '=', s->len) : NULL;
    if (!eq || !slice_take(s, (size_t)(eq - s->ptr), ret))
        return false;
    skip(s, 1);
    return true;
}

/* A repr without escapes, as every id and method has in practice. */
static struct slice plain_string(struct slice value)
{
    if (value.len < 2 || (value.ptr[0] != '\'' && value.ptr[0] != '"') ||
        value.ptr[value.len - 1] != value.ptr[0] || memchr(value.ptr, '\\', value.len))
        return (struct slice){ NULL, 0 };
    return (struct slice){ value.ptr + 1, value.len - 2 };
}

static void set_id(struct log_reader *r, struct log_entry *e, struct slice value)
{
    struct slice digits = value;
    struct slice text = plain_string(value);
    uint64_t v;

    if (digits.len > 0 && digits.ptr[0] == '-')
        skip(&digits, 1);
    if (text.ptr)
        e->request = rpc_id_of_string(log_reader_keep(r, text));
    else if (slice_u64(digits, UINT64_MAX, &v))
        e->request = log_reader_id(r, value);
}

static void read_message(struct log_reader *r, enum log_state state, struct slice repr)
{
    struct log_entry e = log_reader_entry(r, state);
    struct slice rest = importer_after(repr, SLICE_LIT("("));
    struct slice name;
    struct slice value;

    if (!importer_after(repr, SLICE_LIT("JSONRPC")).ptr || !rest.ptr) {
        log_reader_fault(r, "the message is not the repr of a JSON-RPC message");
        return;
    }
    while (take_name(&rest, &name) && take_value(&rest, &value)) {
        if (slice_eq(name, SLICE_LIT("id")))
            set_id(r, &e, value);
        else if (slice_eq(name, SLICE_LIT("method")))
            e.method = log_reader_keep(r, plain_string(value));
    }
    log_reader_add(r, e);
}

static const struct importer_mark message[] = {
    { "SSE message: ", LOG_RECEIVED },
    { "Sending client message: ", LOG_SENT },
};

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice rest;
    const struct importer_mark *m = importer_marked(line, message, ARRAY_LEN(message), &rest);
    struct slice session = importer_after(line, SLICE_LIT("Received session ID: "));
    struct slice dropped = importer_after(line, SLICE_LIT("unknown/late request id "));
    struct log_entry e;

    if (m) {
        read_message(r, m->state, rest);
    } else if (session.ptr) {
        r->session = log_reader_keep(r, slice_trim(session));
    } else if (importer_after(line, SLICE_LIT("stream disconnected, reconnecting")).ptr) {
        log_reader_add(r, log_reader_entry(r, LOG_RECONNECT));
    } else if (dropped.ptr && importer_after(line, SLICE_LIT("dropping response for ")).ptr) {
        e = log_reader_entry(r, LOG_DROPPED);
        set_id(r, &e, slice_trim(dropped));
        log_reader_add(r, e);
    }
}

static bool probe_line(struct slice line)
{
    struct slice rest;

    return importer_marked(line, message, ARRAY_LEN(message), &rest) &&
           importer_after(rest, SLICE_LIT("JSONRPC")).ptr;
}

const struct importer importer_python_debug = {
    .name = "python-debug",
    .cannot_know = "event ids, the content of messages, the stored cursor, whether a handler ran; "
                   "times only where the logging format has the date",
    .no_event_ids = true,
    .probe_line = probe_line,
    .line = read_line,
};
