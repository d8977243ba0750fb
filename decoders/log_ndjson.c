/* log_ndjson.c - FORMATS.md 2 (a): one JSON object a line, each one thing that the client did. */
#include "importers/importer.h"
#include "jtext.h"
#include "log_time.h"

enum member {
    TS,
    SESSION,
    STREAM,
    EVENT_ID,
    STATE,
    REQUEST_ID,
    METHOD,
    TOOL,
    TXN,
    ORIGIN,
    DIGEST,
    DISPATCH_LOG,
    MEMBERS
};

static const char *const member_name[MEMBERS] = {
    [TS] = "ts",         [SESSION] = "session",
    [STREAM] = "stream", [EVENT_ID] = "event_id",
    [STATE] = "state",   [REQUEST_ID] = "request_id",
    [METHOD] = "method", [TOOL] = "tool",
    [TXN] = "txn",       [ORIGIN] = "origin",
    [DIGEST] = "digest", [DISPATCH_LOG] = "dispatch_log",
};

/* The members that we know; the last one counts, as with JSON.parse. ptr NULL: absent or null. */
static void collect(struct slice line, struct slice value[static MEMBERS])
{
    struct jtext_walk w;
    struct slice key;
    struct slice v;

    memset(value, 0, MEMBERS * sizeof(*value));
    if (!jtext_enter(line, &w))
        return;
    while (jtext_member(&w, &key, &v)) {
        for (size_t i = 0; i < MEMBERS; i++) {
            if (slice_eq(key, slice_str(member_name[i])))
                value[i] = slice_eq(v, SLICE_LIT("null")) ? (struct slice){ NULL, 0 } : v;
        }
    }
}

static bool is_number(struct slice value)
{
    return value.len > 0 && (value.ptr[0] == '-' || byte_is_digit(value.ptr[0]));
}

/* A string, or a number, whose token is then the text: ids are written both ways. */
static bool text(struct log_reader *r, const struct slice *value, enum member m, struct slice *ret)
{
    struct slice v = value[m];

    if (!v.ptr)
        return true;
    if (v.ptr[0] != '"' && !is_number(v)) {
        log_reader_fault(r, "%s is not a string", member_name[m]);
        return false;
    }
    *ret = is_number(v) ? log_reader_keep(r, v) : log_reader_text(r, jtext_inside(v));
    return true;
}

/* Shown in a fault: as written, cut to a few characters. */
static struct slice shown(struct slice s)
{
    size_t n = s.len < 40 ? s.len : 40;

    while (n > 0 && n < s.len && (s.ptr[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    return (struct slice){ s.ptr, n };
}

static bool state(struct log_reader *r, struct slice value, enum log_state *ret)
{
    if (!value.ptr)
        log_reader_fault(r, "no state");
    else if (value.ptr[0] != '"')
        log_reader_fault(r, "state is not a string");
    else if (!log_state_parse(jtext_inside(value), ret))
        log_reader_fault(r, "unknown state \"" SLICE_FMT "\"",
                         SLICE_ARG(shown(jtext_inside(value))));
    else
        return true;
    return false;
}

static bool timestamp(struct log_reader *r, struct slice value, struct log_entry *e)
{
    if (!value.ptr)
        return true;
    e->has_time = is_number(value) ? log_time_of_number(value, &e->time)
                                   : log_time_of_text(jtext_inside(value), &e->time);
    if (!e->has_time)
        log_reader_fault(r, "ts is not a time: " SLICE_FMT, SLICE_ARG(shown(value)));
    return e->has_time;
}

static bool request_id(struct log_reader *r, struct slice value, struct log_entry *e)
{
    if (!value.ptr)
        return true;
    if (value.ptr[0] != '"' && !is_number(value)) {
        log_reader_fault(r, "request_id is neither a string nor a number");
        return false;
    }
    e->request = log_reader_id(r, value);
    return true;
}

static bool origin(struct log_reader *r, struct slice value, struct log_entry *e)
{
    struct slice name = jtext_inside(value);

    e->synthetic = slice_eq(name, SLICE_LIT("synthetic"));
    if (!value.ptr || e->synthetic || slice_eq(name, SLICE_LIT("wire")))
        return true;
    log_reader_fault(r, "unknown origin " SLICE_FMT, SLICE_ARG(shown(value)));
    return false;
}

static bool digest(struct log_reader *r, struct slice value, struct log_entry *e)
{
    struct slice s = jtext_inside(value);
    struct slice kind;
    uint8_t xxh3[8];

    if (!value.ptr)
        return true;
    if (slice_starts(s, SLICE_LIT("xxh3:")) && slice_take(&s, 5, &kind) &&
        slice_unhex(s, xxh3, sizeof(xxh3)) == sizeof(xxh3)) {
        e->digest = LOG_DIGEST_XXH3;
        for (size_t i = 0; i < sizeof(xxh3); i++)
            e->xxh3 = e->xxh3 << 8 | xxh3[i];
        return true;
    }
    if (slice_starts(s, SLICE_LIT("sha256:")) && slice_take(&s, 7, &kind) &&
        slice_unhex(s, e->sha256, sizeof(e->sha256)) == sizeof(e->sha256)) {
        e->digest = LOG_DIGEST_SHA256;
        return true;
    }
    log_reader_fault(r, "digest is neither xxh3: with 16 nor sha256: with 64 hex digits");
    return false;
}

static void read_header(struct log_reader *r, struct slice line, struct slice version)
{
    if (!slice_eq(version, SLICE_LIT("1")))
        log_reader_fault(r, "dispatch_log is " SLICE_FMT ", only version 1 is known",
                         SLICE_ARG(shown(version)));
    log_reader_settings(r, line);
}

static void read_line(struct log_reader *r, struct slice line)
{
    struct slice v[MEMBERS];
    struct log_entry e = { 0 };
    enum rpc_status st = rpc_scan(r->scan, line);

    if (st != RPC_OK || jtext_first(line) != '{') {
        log_reader_fault_json(r, "", st);
        return;
    }
    collect(line, v);
    if (v[DISPATCH_LOG].ptr && !v[STATE].ptr) {
        read_header(r, line, v[DISPATCH_LOG]);
        return;
    }
    if (state(r, v[STATE], &e.state) && timestamp(r, v[TS], &e) && origin(r, v[ORIGIN], &e) &&
        digest(r, v[DIGEST], &e) && request_id(r, v[REQUEST_ID], &e) &&
        text(r, v, SESSION, &e.session) && text(r, v, STREAM, &e.stream) &&
        text(r, v, EVENT_ID, &e.event_id) && text(r, v, METHOD, &e.method) &&
        text(r, v, TOOL, &e.tool) && text(r, v, TXN, &e.txn))
        log_reader_add(r, e);
}

/* A header, or a state that we know, or another state beside a member that only such logs have. */
static bool probe_line(struct slice line)
{
    struct slice v[MEMBERS];
    enum log_state known;

    if (jtext_first(line) != '{')
        return false;
    collect(line, v);
    if (v[DISPATCH_LOG].ptr && is_number(v[DISPATCH_LOG]))
        return true;
    struct slice name = jtext_inside(v[STATE]);
    return name.ptr && (log_state_parse(name, &known) || v[EVENT_ID].ptr || v[REQUEST_ID].ptr);
}

const struct importer log_ndjson = {
    .name = "ndjson",
    .is_json = true,
    .probe_line = probe_line,
    .line = read_line,
};
