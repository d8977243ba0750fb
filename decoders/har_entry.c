/* har_entry.c - see har_entry.h; HAR 1.2, and what each producer makes of it (HAR.md). */
#include "har_entry.h"

#include "har_text.h"
#include "sse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A tree takes about 60 bytes a value: an entry with more of them is not read. */
#define MAX_VALUES ((size_t)2 << 20)
/* Firefox keeps this much of a body (devtools.netmonitor.responseBodyLimit). */
#define FIREFOX_LIMIT ((size_t)1 << 20)

/* ---- values ---- */

static struct slice slice_of(const json_t *v)
{
    if (!json_is_string(v))
        return (struct slice){ 0 };
    return (struct slice){ (const uint8_t *)json_string_value(v), json_string_length(v) };
}

struct slice har_string(const json_t *object, const char *key)
{
    return slice_of(json_object_get(object, key));
}

bool har_number(const json_t *object, const char *key, double *ret)
{
    const json_t *v = json_object_get(object, key);
    double d = json_number_value(v);
    char *end;

    if (!json_is_number(v)) {
        const char *s = json_string_value(v);
        if (!s || *s == '\0')
            return false;
        d = strtod(s, &end);
        if (*end != '\0')
            return false;
    }
    if (!isfinite(d))
        return false;
    *ret = d;
    return true;
}

static double number_or(const json_t *object, const char *key, double otherwise)
{
    double d;

    return har_number(object, key, &d) ? d : otherwise;
}

struct slice har_header(const json_t *message, struct slice name)
{
    json_t *list = json_object_get(message, "headers");
    size_t n = json_array_size(list);
    const char *key;
    json_t *v;

    for (size_t i = 0; i < n; i++) {
        const json_t *h = json_array_get(list, i);
        if (slice_eq_nocase(har_string(h, "name"), name))
            return har_string(h, "value");
    }
    json_object_foreach (list, key, v) { /* of an object; nothing for a list */
        if (slice_eq_nocase(slice_str(key), name))
            return slice_of(v);
    }
    return (struct slice){ 0 };
}

static bool is_by(const struct har_entry *e, enum har_producer_kind by)
{
    return e->ctx->by == by;
}

static void note(struct har_entry *e, const char *text)
{
    if (e->note_count < HAR_NOTES_MAX)
        e->note[e->note_count++] = text;
}

/* ---- life ---- */

struct har_entry *har_entry_new(struct slice text, const struct har_context *ctx,
                                struct har_entry_error *reterr)
{
    AUTO(buf_release) struct buf scratch = { .max = text.len * 3 + 16 };
    struct har_cleaned clean;
    json_error_t err;

    if (!har_text_clean(text, MAX_VALUES, &scratch, &clean)) {
        snprintf(reterr->text, sizeof(reterr->text), "too many values in one entry");
        return NULL;
    }
    json_t *root = json_loadb((const char *)clean.text.ptr, clean.text.len,
                              JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &err);
    if (!root) {
        snprintf(reterr->text, sizeof(reterr->text), "%.140s", err.text);
        return NULL;
    }
    if (!json_is_object(json_object_get(root, "request"))) {
        snprintf(reterr->text, sizeof(reterr->text), "no request in it");
        json_decref(root);
        return NULL;
    }
    struct har_entry *e = mem_alloc(sizeof(*e));
    e->ctx = ctx;
    e->root = root;
    e->repaired = clean.repaired;
    e->request = json_object_get(root, "request");
    e->response = json_object_get(root, "response");
    e->content = json_object_get(e->response, "content");
    return e;
}

void har_entry_free(struct har_entry *e)
{
    if (!e)
        return;
    json_decref(e->root);
    json_decref(e->id);
    free(e->owned);
    free(e->piece);
    free(e);
}

/* ---- for the index ---- */

void har_entry_summary(const struct har_entry *e, struct har_summary *ret)
{
    const json_t *post = json_object_get(e->request, "postData");
    const struct slice part[] = {
        har_string(e->request, "method"),
        har_string(e->request, "url"),
        har_string(post, "text"),
        har_header(e->request, SLICE_LIT("last-event-id")),
        har_header(e->request, SLICE_LIT("mcp-session-id")),
    };

    *ret = (struct har_summary){ 0 };
    ret->has_start = time_parse(har_string(e->root, "startedDateTime"), &ret->start);
    ret->body = har_string(e->content, "text").len;
    ret->body += json_array_size(json_object_get(e->root, "_eventSourceMessages"));
    ret->body += number_or(e->response, "status", 0) > 0;
    /* Without its body a POST cannot be told from another one. */
    if (!ret->has_start || (slice_eq(part[0], SLICE_LIT("POST")) && part[2].len == 0))
        return;
    for (size_t i = 0; i < ARRAY_LEN(part); i++)
        ret->key = hash_mix(ret->key, hash_bytes(part[i]) + part[i].len);
}

/* ---- scope ---- */

static bool is_websocket(const struct har_entry *e)
{
    return number_or(e->response, "status", 0) == 101 ||
           json_array_size(json_object_get(e->root, "_webSocketMessages")) > 0 ||
           slice_eq(har_string(e->root, "_resourceType"), SLICE_LIT("websocket"));
}

/* mcpsnoop: {"jsonrpc":...,"id":...,"result":...} around what it kept of the answer. */
static void wrap_result(struct har_entry *e)
{
    struct slice body = har_string(e->content, "text");
    const char *kind = number_or(e->response, "status", 0) == 200 ? "result" : "error";
    AUTO(buf_release) struct buf b = { .max = SIZE_MAX / 2 };
    struct slice front = { body.ptr, body.len < 64 ? body.len : 64 };

    if (body.len == 0 || slice_has_nocase(front, SLICE_LIT("\"jsonrpc\"")))
        return; /* an envelope of its own */
    char *id = json_dumps(e->id, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (id && buf_add(&b, SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":")) &&
        buf_add(&b, slice_str(id)) && buf_add(&b, SLICE_LIT(",\"")) &&
        buf_add(&b, slice_str(kind)) && buf_add(&b, SLICE_LIT("\":")) && buf_add(&b, body) &&
        buf_add(&b, SLICE_LIT("}"))) {
        e->text = buf_slice(&b);
        e->owned = MOVE(b.ptr);
    }
    free(id);
}

/* The request's envelope gives the id by which the answer is matched. */
static bool has_envelope(struct har_entry *e)
{
    struct slice text = har_string(json_object_get(e->request, "postData"), "text");
    json_t *msg = json_loadb((const char *)text.ptr, text.len, JSON_ALLOW_NUL, NULL);
    json_t *id = json_object_get(msg, "id");
    bool has = json_is_string(json_object_get(msg, "method")) &&
               (json_is_string(id) || json_is_integer(id));

    if (has)
        e->id = json_incref(id);
    json_decref(msg);
    return has;
}

static enum har_scope scope_of(struct har_entry *e)
{
    if (is_websocket(e))
        return HAR_SCOPE_WEBSOCKET;
    if (!slice_starts(har_string(e->request, "url"), SLICE_LIT("mcp://")))
        return HAR_SCOPE_HTTP;
    return has_envelope(e) ? HAR_SCOPE_HTTP : HAR_SCOPE_NO_ENVELOPE;
}

/* ---- the response body ---- */

static struct slice content_type(const struct har_entry *e)
{
    struct slice type = har_header(e->response, SLICE_LIT("content-type"));

    return type.len > 0 ? type : har_string(e->content, "mimeType");
}

static bool is_event_stream(struct slice type)
{
    const uint8_t *semi = type.len > 0 ? memchr(type.ptr, ';', type.len) : NULL;

    if (semi)
        type.len = (size_t)(semi - type.ptr);
    return slice_eq_nocase(slice_trim(type), SLICE_LIT("text/event-stream"));
}

static double size_of(const struct har_entry *e)
{
    return number_or(e->content, "size", -1);
}

static bool is_bodiless(const struct har_entry *e)
{
    static const char *const method[] = { "HEAD", "OPTIONS", "CONNECT" };
    bool empty = har_string(e->content, "text").len == 0;

    for (size_t i = 0; i < ARRAY_LEN(method); i++) {
        if (slice_eq(har_string(e->request, "method"), slice_str(method[i])) && empty)
            return true;
    }
    if (e->status < 200 || e->status == 204 || e->status == 205)
        return true;
    return empty && (e->status / 100 == 3 || (e->status == 202 && size_of(e) <= 0));
}

/*
 * Chrome reads an event stream without charset as windows-1252. Where it counts the bytes as they
 * came, content.size decides; Playwright counts the spoilt text.
 */
static void text_unspoil(struct har_entry *e)
{
    double size = size_of(e);
    uint8_t *bytes;
    size_t len;

    if (!e->sse || is_by(e, HAR_BY_FIREFOX) ||
        slice_has_nocase(content_type(e), SLICE_LIT("charset")) ||
        !har_unmojibake(e->text, &bytes, &len))
        return;
    if (size == (double)e->text.len && size != (double)len && !is_by(e, HAR_BY_PLAYWRIGHT)) {
        free(bytes);
        return;
    }
    note(e, "the body was decoded as windows-1252 by the producer; repaired");
    free(e->owned);
    e->owned = bytes;
    e->text = (struct slice){ bytes, len };
}

static void text_load(struct har_entry *e)
{
    const json_t *text = json_object_get(e->content, "text");
    uint8_t *bytes;
    size_t len;

    e->has_text = json_is_string(text);
    e->text = slice_of(text);
    if (e->id)
        wrap_result(e);
    if (!slice_eq_nocase(har_string(e->content, "encoding"), SLICE_LIT("base64"))) {
        text_unspoil(e);
        return;
    }
    if (!har_base64(e->text, &bytes, &len)) {
        note(e, "content.text is not the base64 it claims to be");
        e->spoilt = true;
        e->text = (struct slice){ 0 };
        return;
    }
    free(e->owned);
    e->owned = bytes;
    e->text = (struct slice){ bytes, len };
}

static bool empty_text_is_real(const struct har_entry *e)
{
    if (size_of(e) > 0 ||
        slice_has_nocase(har_string(e->content, "comment"), SLICE_LIT("not included")))
        return false;
    return !(e->sse && is_by(e, HAR_BY_MITMPROXY)); /* streamed, not stored */
}

static enum har_source source_of(struct har_entry *e)
{
    size_t messages = json_array_size(e->messages);

    e->recorded = !e->spoilt;
    if (e->text.len > 0)
        return HAR_BODY_TEXT;
    if (e->spoilt && messages == 0)
        return HAR_BODY_NONE;
    if (e->bodiless || (e->has_text && messages == 0 && empty_text_is_real(e)))
        return HAR_BODY_NONE;
    if (messages > 0 || (json_is_array(e->messages) && size_of(e) == 0)) {
        e->recorded = true;
        return HAR_BODY_MESSAGES;
    }
    e->recorded = !e->has_text && !e->sse && size_of(e) == 0 &&
                  number_or(e->response, "bodySize", 0) <= 0 &&
                  !json_object_get(e->content, "_file");
    return HAR_BODY_NONE;
}

static void plan_body(struct har_entry *e)
{
    double status = number_or(e->response, "status", 0);

    e->status = status >= 100 && status <= 999 ? (int)status : 0;
    if (!har_entry_answered(e))
        return;
    e->sse = is_event_stream(content_type(e));
    e->bodiless = is_bodiless(e);
    if (e->sse)
        e->messages = json_object_get(e->root, "_eventSourceMessages");
    text_load(e);
    e->source = source_of(e);
    e->cut_short = is_by(e, HAR_BY_FIREFOX) && e->text.len + 4 >= FIREFOX_LIMIT;
}

/* ---- times ---- */

static int64_t later(int64_t time, double ms)
{
    static const double ten_years = 3.2e11;
    int64_t ret;

    if (ms <= 0)
        return time;
    return __builtin_add_overflow(time, llround(fmin(ms, ten_years) * 1e6), &ret) ? time : ret;
}

static double sum_of(const json_t *timings, const char *const *key, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += fmax(number_or(timings, key[i], 0), 0);
    return sum;
}

static void plan_times(struct har_entry *e)
{
    /* ssl is contained in connect */
    static const char *const before[] = { "blocked", "dns", "connect", "send", "wait" };
    const json_t *timings = json_object_get(e->root, "timings");
    double receive = number_or(timings, "receive", -1);
    double head = sum_of(timings, before, ARRAY_LEN(before));
    double total = number_or(e->root, "time", -1);

    if (is_by(e, HAR_BY_INSOMNIA)) { /* one time for all entries: that of the export */
        e->head = e->end = e->start;
        return;
    }
    if (total < 0)
        total = head + fmax(receive, 0);
    e->end = later(e->start, total);
    if (receive >= 0 && receive < total)
        head = total - receive;
    e->head = later(e->start, fmin(head, total));
}

/* ns since 1970 of a message's time; false: it is not one of the calendar (seconds since boot). */
static bool message_time(const json_t *msg, int64_t *ret)
{
    double t;

    if (!har_number(msg, "time", &t) || t < 1e9)
        return false;
    while (t >= 1e11) /* some write milliseconds or finer */
        t /= 1e3;
    if (t < 1e9 || t > 9e9)
        return false;
    *ret = llround(t * 1e6) * 1000; /* a double holds no more than microseconds */
    return true;
}

static void piece_add(struct har_entry *e, int64_t time, size_t upto)
{
    GROW(e->piece, e->piece_count, e->piece_cap);
    e->piece[e->piece_count++] = (struct har_piece){ time, upto };
}

/*
 * Time of message i, never before the response or the message before it: DevTools stamps those it
 * had buffered with the start of the request.
 */
static int64_t time_in_order(const struct har_entry *e, size_t i)
{
    int64_t least = e->piece_count > 0 ? e->piece[e->piece_count - 1].time : e->head;
    int64_t t = least;

    (void)message_time(json_array_get(e->messages, i), &t);
    return t > least ? t : least;
}

/* ---- messages and text side by side ---- */

struct comparison {
    struct har_entry *e;
    struct slice cursor;
    struct buf last_id;
    size_t count;
    bool timed;
    bool differs;
};

static bool id_agrees(const struct comparison *c, const json_t *msg)
{
    const json_t *id = json_object_get(msg, "eventId");
    struct slice last = buf_slice(&c->last_id);

    if (!json_is_string(id) || slice_eq(slice_of(id), last))
        return true;
    return last.len == 0 && slice_eq(slice_of(id), c->cursor); /* EventSource goes on from it */
}

static void compare_item(struct comparison *c, const struct sse_item *item)
{
    const json_t *msg = json_array_get(c->e->messages, c->count);
    const json_t *data = json_object_get(msg, "data");

    if (item->has_id) {
        c->last_id.len = 0;
        c->differs |= !buf_add(&c->last_id, item->id);
    }
    if (!item->has_data)
        return;
    c->differs |= !msg || !id_agrees(c, msg) ||
                  (json_is_string(data) && !slice_eq(slice_of(data), item->data));
    if (c->timed && !c->differs)
        piece_add(c->e, time_in_order(c->e, c->count), (size_t)item->end);
    c->count++;
}

/* Text gives the framing, the messages their times, if both tell the same. */
static void plan_text(struct har_entry *e)
{
    struct comparison c = { .e = e, .cursor = har_header(e->request, SLICE_LIT("last-event-id")) };
    struct slice in = e->text;
    struct sse_item item;
    struct sse d;
    int64_t unused;

    c.timed = message_time(json_array_get(e->messages, 0), &unused);
    buf_init(&c.last_id, e->text.len);
    sse_init(&d, SSE_MAX_EVENT);
    while (!c.differs && sse_next(&d, &in, &item)) {
        if (item.kind == SSE_BLOCK)
            compare_item(&c, &item);
    }
    sse_release(&d);
    buf_release(&c.last_id);
    if (!c.differs && c.count == json_array_size(e->messages))
        return;
    note(e, "_eventSourceMessages and content.text do not tell the same events; the text is used");
    e->piece_count = 0;
}

/* The producer's duration may be shorter than what it recorded. */
static void stretch(struct har_entry *e)
{
    int64_t last = e->piece_count > 0 ? e->piece[e->piece_count - 1].time : e->end;

    if (last > e->end)
        e->end = last;
}

static void plan_pieces(struct har_entry *e)
{
    size_t n = json_array_size(e->messages);
    int64_t unused;

    if (e->source == HAR_BODY_TEXT) {
        if (n > 0)
            plan_text(e);
        e->no_time = e->piece_count == 0;
        stretch(e);
        size_t done = e->piece_count > 0 ? e->piece[e->piece_count - 1].upto : 0;
        if (done < e->text.len)
            piece_add(e, e->end, e->text.len);
    }
    if (e->source == HAR_BODY_MESSAGES) {
        e->no_time = !message_time(json_array_get(e->messages, 0), &unused);
        for (size_t i = 0; i < n; i++)
            piece_add(e, e->no_time ? e->end : time_in_order(e, i), i);
        stretch(e);
    }
}

/* ---- how it ended ---- */

static struct slice error_of(const struct har_entry *e)
{
    const struct slice where[] = {
        har_string(e->response, "_error"),
        har_string(e->response, "_failureText"),
        har_string(e->root, "_error"),
    };

    for (size_t i = 0; i < ARRAY_LEN(where); i++) {
        if (where[i].len > 0)
            return where[i];
    }
    return (struct slice){ 0 };
}

static enum end_kind error_kind(struct slice error)
{
    static const struct {
        const char *word;
        enum end_kind kind;
    } table[] = {
        { "abort", END_CLIENT_RST },
        { "cancel", END_CLIENT_RST },
        { "client disconnect", END_CLIENT_RST },
        { "reset", END_RST },
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (slice_has_nocase(error, slice_str(table[i].word)))
            return table[i].kind;
    }
    return END_FIN;
}

/* DevTools and Playwright write ERR_ABORTED when nobody reads the body, and there may be none. */
static bool is_harmless(const struct har_entry *e, struct slice error)
{
    if (e->bodiless)
        return true;
    return !e->sse && e->recorded && error_kind(error) == END_CLIENT_RST;
}

static bool is_open(const struct har_entry *e)
{
    bool no_timings = json_object_size(json_object_get(e->root, "timings")) == 0;
    bool no_time = number_or(e->root, "time", 0) <= 0;

    if (e->bodiless)
        return false;
    if (is_by(e, HAR_BY_PLAYWRIGHT))
        return !e->has_text && size_of(e) < 0;
    if (!e->sse || is_by(e, HAR_BY_MITMPROXY) || is_by(e, HAR_BY_SAFARI))
        return false; /* those export what has ended only */
    if (is_by(e, HAR_BY_HTTP_TOOLKIT))
        return number_or(e->root, "time", 0) < 0;
    if (is_by(e, HAR_BY_DEVTOOLS) || e->source == HAR_BODY_MESSAGES)
        return !e->has_text;
    return no_timings && no_time && !is_by(e, HAR_BY_INSOMNIA);
}

/* Takes one line end off the end. */
static bool drop_line_end(struct slice *s)
{
    if (s->len == 0 || (s->ptr[s->len - 1] != '\n' && s->ptr[s->len - 1] != '\r'))
        return false;
    bool lf = s->ptr[s->len - 1] == '\n';
    s->len--;
    if (lf && s->len > 0 && s->ptr[s->len - 1] == '\r')
        s->len--;
    return true;
}

/* An event stream that stops inside a block, from a producer that has no mark for a cut. */
static bool is_cut_unmarked(const struct har_entry *e)
{
    struct slice s = e->text;

    if (!e->sse || e->source != HAR_BODY_TEXT || is_by(e, HAR_BY_DEVTOOLS) ||
        is_by(e, HAR_BY_PLAYWRIGHT))
        return false;
    return !drop_line_end(&s) || (s.len > 0 && !drop_line_end(&s));
}

static struct exchange_end_facts end_of(const struct har_entry *e)
{
    struct slice error = error_of(e);
    struct exchange_end_facts f = { .kind = END_COMPLETE, .close_not_known = true };

    /* DevTools names what failed: without that the request was going on at the export. */
    bool waits = is_by(e, HAR_BY_DEVTOOLS) && error.len == 0;

    if (!har_entry_answered(e) && !waits)
        f.kind = error_kind(error) == END_CLIENT_RST ? END_CLIENT_RST : END_RST;
    else if (har_entry_answered(e) && error.len > 0 && !is_harmless(e, error))
        f.kind = error_kind(error);
    else if (!har_entry_answered(e) || is_open(e))
        f.kind = END_OPEN;
    else if (is_cut_unmarked(e))
        f.kind = END_FIN;
    else
        f.close_not_known = !e->recorded || (e->sse && is_by(e, HAR_BY_FIREFOX));
    return f;
}

/* ---- the plan ---- */

void har_entry_plan(struct har_entry *e, int64_t start, uint32_t number)
{
    e->start = start;
    e->number = number;
    e->fact_count = 1;
    e->scope = scope_of(e);
    if (e->scope != HAR_SCOPE_HTTP)
        return;
    plan_body(e);
    plan_times(e);
    e->facts = end_of(e);
    if (e->facts.kind == END_OPEN)
        e->end = HAR_AT_END;
    plan_pieces(e);
    e->fact_count = 2 + har_entry_answered(e) + e->piece_count;
}

int64_t har_entry_time(const struct har_entry *e, size_t fact)
{
    if (fact == 0)
        return e->start;
    if (fact + 1 >= e->fact_count)
        return e->end;
    return fact == 1 ? e->head : e->piece[fact - 2].time;
}
