/* exchange.c - see exchange.h. */
#include "exchange.h"

#include "coding.h"
#include "event_stream.h"
#include "sse.h"

#include <stdlib.h>
#include <time.h>

const struct exchange_limits exchange_limits_default = {
    .max_event = SSE_MAX_EVENT,
    .max_body = (size_t)16 << 20,
    .max_ratio = 200,
    .max_decoded = UINT64_C(4) << 30,
};

struct exchanges {
    struct record_sink sink;
    struct exchange_limits limits;
    uint64_t serial;
};

enum body_kind {
    BODY_NONE,   /* no response head yet */
    BODY_EVENTS, /* an event stream: a leg */
    BODY_KEPT,   /* JSON, or the words of a refusal: kept whole */
    BODY_PASSED, /* counted only */
};

struct exchange {
    struct exchanges *all;
    const struct conn *conn;
    uint64_t conn_serial;
    uint64_t serial;

    bool answered;
    enum body_kind body;
    struct coding *coding;
    struct event_stream *stream; /* of an event stream; goes with its REC_END */
    uint64_t body_bytes;
    uint64_t tcp_end; /* of the last byte of the response */
    uint64_t acked;
    struct place last;
    const struct piece *now; /* the piece being decoded */
    bool unlabelled;         /* a good response, plain, and of no event stream by its head */

    struct buf kept; /* request body, then a response body that is no event stream */
    bool kept_cut;   /* past the ceiling, or a gap in it */
    struct buf look; /* the first bytes of the body */
    struct place look_at;

    struct arena *head; /* the request's strings, until it is emitted */
    struct rec_request request;
    struct place request_last;
    bool has_request;
    bool request_emitted;
    bool request_whole;
    bool request_coded;
};

struct exchanges *exchanges_new(struct record_sink sink, const struct exchange_limits *limits)
{
    struct exchanges *all = mem_alloc(sizeof(*all));

    all->sink = sink;
    all->limits = *limits;
    return all;
}

void exchanges_free(struct exchanges *all)
{
    free(all);
}

static void emit(struct exchanges *all, struct record *rec)
{
    all->sink.put(all->sink.ctx, rec);
}

void exchanges_note(struct exchanges *all, uint64_t exchange, struct rec_note note, struct place at)
{
    struct record rec = { .kind = REC_NOTE, .exchange = exchange, .at = at };

    rec.note = note;
    emit(all, &rec);
}

static void emit_ack(struct exchanges *all, uint64_t serial, struct event_stream *stream,
                     uint64_t tcp_offset, struct place at)
{
    struct record rec;

    record_begin(&rec, REC_ACK, serial, at);
    rec.stream = stream;
    rec.ack.tcp_offset = tcp_offset;
    emit(all, &rec);
}

void exchanges_late_ack(struct exchanges *all, uint64_t serial, uint64_t tcp_offset,
                        struct place at)
{
    emit_ack(all, serial, NULL, tcp_offset, at);
}

/* ---- heads ---- */

static void lower_copy(struct arena *a, struct slice s, struct slice *ret)
{
    uint8_t *p = arena_alloc(a, s.len + 1);

    for (size_t i = 0; i < s.len; i++)
        p[i] = s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? (uint8_t)(s.ptr[i] + 32) : s.ptr[i];
    *ret = (struct slice){ p, s.len };
}

/* Lower case, without the scheme's default port. */
static struct slice authority_of(struct arena *a, struct slice s, bool tls)
{
    struct slice port = tls ? SLICE_LIT(":443") : SLICE_LIT(":80");
    struct slice ret;

    lower_copy(a, slice_trim(s), &ret);
    if (ret.len > port.len && memcmp(ret.ptr + ret.len - port.len, port.ptr, port.len) == 0)
        ret.len -= port.len;
    return ret;
}

static enum http_method method_of(struct slice s)
{
    static const struct {
        const char *name;
        enum http_method method;
    } table[] = {
        { "GET", HTTP_METHOD_GET },
        { "POST", HTTP_METHOD_POST },
        { "DELETE", HTTP_METHOD_DELETE },
        { "OPTIONS", HTTP_METHOD_OPTIONS },
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (slice_eq(s, slice_str(table[i].name)))
            return table[i].method;
    }
    return HTTP_METHOD_OTHER;
}

static unsigned accept_flags(struct slice v)
{
    unsigned f = RECF_ACCEPT;

    if (slice_has_nocase(v, SLICE_LIT("application/json")))
        f |= RECF_ACCEPT_JSON;
    if (slice_has_nocase(v, SLICE_LIT("text/event-stream")))
        f |= RECF_ACCEPT_SSE;
    if (slice_has_nocase(v, SLICE_LIT("*/*")))
        f |= RECF_ACCEPT_ANY;
    return f;
}

/* A header that may stand once; the last value counts, a second line is remembered. */
static void take_once(struct exchange *x, struct slice *field, struct slice value)
{
    if (field->ptr)
        x->request.flags |= field == &x->request.cursor
                                ? RECF_DUPLICATE_CURSOR | RECF_DUPLICATE_HEADER
                                : RECF_DUPLICATE_HEADER;
    *field = arena_copy(x->head, value);
}

static void request_header(struct exchange *x, const struct http_header *h)
{
    struct rec_request *r = &x->request;
    const struct {
        struct slice name;
        struct slice *field;
    } once[] = {
        { SLICE_LIT("mcp-session-id"), &r->session },
        { SLICE_LIT("last-event-id"), &r->cursor },
        { SLICE_LIT("mcp-protocol-version"), &r->version },
        { SLICE_LIT("mcp-method"), &r->mcp_method },
        { SLICE_LIT("mcp-name"), &r->mcp_name },
    };

    if (h->folded)
        r->flags |= RECF_OBS_FOLD;
    for (size_t i = 0; i < ARRAY_LEN(once); i++) {
        if (slice_eq_nocase(h->name, once[i].name)) {
            take_once(x, once[i].field, h->value);
            return;
        }
    }
    if (slice_eq_nocase(h->name, SLICE_LIT("accept")))
        r->flags |= accept_flags(h->value);
    else if (slice_eq_nocase(h->name, SLICE_LIT("host")) && r->authority.len == 0)
        r->authority = authority_of(x->head, h->value, x->conn->tls);
    else if (slice_eq_nocase(h->name, SLICE_LIT("user-agent")))
        r->user_agent = arena_copy(x->head, h->value);
    else if (slice_eq_nocase(h->name, SLICE_LIT("origin")))
        r->flags |= RECF_ORIGIN;
    else if (slice_eq_nocase(h->name, SLICE_LIT("content-encoding")))
        x->request_coded = !coding_is_identity(h->value);
    else if (slice_eq_nocase(h->name, SLICE_LIT("authorization")) ||
             slice_eq_nocase(h->name, SLICE_LIT("cookie")))
        r->credentials = hash_mix(r->credentials, hash_bytes(h->value));
}

struct exchange *exchange_open(struct exchanges *all, const struct conn *conn, uint64_t conn_serial)
{
    struct exchange *x = mem_alloc(sizeof(*x));

    x->all = all;
    x->conn = conn;
    x->conn_serial = conn_serial;
    x->serial = ++all->serial;
    buf_init(&x->kept, all->limits.max_body);
    return x;
}

uint64_t exchange_serial(const struct exchange *x)
{
    return x->serial;
}

bool exchange_is_leg(const struct exchange *x)
{
    return x->body == BODY_EVENTS;
}

void exchange_request_head(struct exchange *x, const struct http_head *head)
{
    struct rec_request *r = &x->request;

    x->has_request = true;
    x->head = arena_new();
    *r = (struct rec_request){
        .first = head->first,
        .client = x->conn->client,
        .server = x->conn->server,
        .tcp_stream = x->conn->tcp_stream,
        .conn = x->conn_serial,
        .method = method_of(head->method),
        .method_text = arena_copy(x->head, head->method),
        .target = arena_copy(x->head, head->target),
        .flags = head->flags,
    };
    if (head->authority.len > 0)
        r->authority = authority_of(x->head, head->authority, x->conn->tls);
    for (size_t i = 0; i < head->count; i++)
        request_header(x, &head->header[i]);
    if (r->cursor.ptr && r->cursor.len == 0)
        r->flags |= RECF_EMPTY_CURSOR;
    x->request_last = head->last;
}

void exchange_request_body(struct exchange *x, const struct piece *piece)
{
    if (x->request_emitted)
        return; /* answered before it was sent to its end */
    x->request_last = piece->at;
    if (!buf_add(&x->kept, piece->data))
        x->kept_cut = true;
}

static void emit_gap(struct exchange *x, enum dir dir, uint64_t len, bool in_head, struct place at)
{
    struct record rec = { .kind = REC_GAP, .exchange = x->serial, .at = at };

    if (dir == DIR_SERVER)
        rec.stream = x->stream;
    rec.gap = (struct rec_gap){ .dir = dir, .bytes = len, .in_head = in_head };
    emit(x->all, &rec);
}

void exchange_request_gap(struct exchange *x, uint64_t len, bool in_head, struct place at)
{
    x->kept_cut = true;
    emit_gap(x, DIR_CLIENT, len, in_head, at);
}

static void request_emit(struct exchange *x, bool whole)
{
    if (!x->has_request || x->request_emitted)
        return;
    x->request_emitted = true;
    struct record rec = { .kind = REC_REQUEST, .exchange = x->serial, .at = x->request_last };
    rec.request = x->request;
    body_begin(&rec.request.body, buf_slice(&x->kept), whole && !x->kept_cut && !x->request_coded);
    emit(x->all, &rec);
    arena_free(MOVE(x->head));
    buf_release(&x->kept);
    x->kept_cut = false;
}

void exchange_request_end(struct exchange *x, bool complete, struct place at)
{
    if (at.time)
        x->request_last = at;
    x->request_whole = complete;
    request_emit(x, complete);
}

/* Seconds from now until an HTTP-date (RFC 9110 5.6.7), or a plain number of seconds; else -1. */
static int64_t retry_after_of(struct slice v, int64_t now)
{
    char text[64];
    uint64_t n;
    struct tm tm = { 0 };

    if (slice_u64(v, UINT32_MAX, &n))
        return (int64_t)n;
    if (v.len >= sizeof(text))
        return -1;
    memcpy(text, v.ptr, v.len);
    text[v.len] = '\0';
    if (!strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        return -1;
    int64_t left = (int64_t)timegm(&tm) - now / NS_PER_SEC;
    return left > 0 ? left : 0;
}

static void content_type_of(struct arena *a, struct slice v, struct rec_response *r)
{
    const uint8_t *semi = memchr(v.ptr, ';', v.len);

    if (semi)
        v.len = (size_t)(semi - v.ptr);
    lower_copy(a, slice_trim(v), &r->content_type);
    if (slice_eq(r->content_type, SLICE_LIT("text/event-stream")))
        r->flags |= RECF_SSE;
    struct slice t = r->content_type;
    if (slice_eq(t, SLICE_LIT("application/json")) ||
        (t.len > 5 && memcmp(t.ptr + t.len - 5, "+json", 5) == 0))
        r->flags |= RECF_JSON;
}

static void response_header(struct arena *a, const struct http_header *h, struct record *rec)
{
    struct rec_response *r = &rec->response;
    uint64_t n;

    if (slice_eq_nocase(h->name, SLICE_LIT("content-type")))
        content_type_of(a, h->value, r);
    else if (slice_eq_nocase(h->name, SLICE_LIT("mcp-session-id")))
        r->session = h->value.ptr ? h->value : SLICE_LIT("");
    else if (slice_eq_nocase(h->name, SLICE_LIT("retry-after")))
        r->retry_after = retry_after_of(h->value, rec->at.time);
    else if (slice_eq_nocase(h->name, SLICE_LIT("content-length")) &&
             slice_u64(h->value, INT64_MAX, &n))
        r->content_length = (int64_t)n;
    else if (slice_eq_nocase(h->name, SLICE_LIT("content-encoding")))
        r->coding = h->value;
    else if (slice_eq_nocase(h->name, SLICE_LIT("allow")))
        r->flags |= RECF_ALLOW;
    else if (slice_eq_nocase(h->name, SLICE_LIT("x-served-by")) ||
             (slice_eq_nocase(h->name, SLICE_LIT("server")) && r->server_name.len == 0))
        r->server_name = h->value;
    else if (slice_eq_nocase(h->name, SLICE_LIT("x-accel-buffering")) &&
             slice_eq_nocase(h->value, SLICE_LIT("no")))
        r->flags |= RECF_NO_BUFFERING;
}

static void response_coding(struct exchange *x, struct rec_response *r, struct place at)
{
    const struct exchange_limits *l = &x->all->limits;

    if (r->coding.len == 0 || coding_is_identity(r->coding))
        return;
    r->flags |= RECF_CODED;
    x->coding = coding_new(r->coding, l->max_ratio, l->max_decoded);
    if (x->coding)
        return;
    r->flags |= RECF_UNDECODABLE;
    x->body = BODY_PASSED;
    exchanges_note(x->all, x->serial,
                   (struct rec_note){ NOTE_UNKNOWN_CODING, 1, x->conn->tcp_stream, r->coding }, at);
}

static enum body_kind body_kind_of(const struct rec_response *r)
{
    if (r->flags & RECF_SSE)
        return BODY_EVENTS;
    if ((r->flags & RECF_JSON) || r->status >= 400 || r->content_type.len == 0)
        return BODY_KEPT;
    return BODY_PASSED;
}

void exchange_response_head(struct exchange *x, const struct http_head *head, struct place at)
{
    static const struct http_head lost = { .flags = RECF_HEAD_LOST };
    struct record rec = { .kind = REC_RESPONSE, .exchange = x->serial, .at = at };
    struct arena *a = arena_new();

    request_emit(x, x->request_whole);
    x->answered = true;
    x->last = at;
    x->tcp_end = head ? head->tcp_end : 0;
    if (!head)
        head = &lost;
    rec.response = (struct rec_response){ .first = head->first.time ? head->first : at,
                                          .client = x->conn->client,
                                          .server = x->conn->server,
                                          .tcp_stream = x->conn->tcp_stream,
                                          .conn = x->conn_serial,
                                          .status = head->status,
                                          .retry_after = -1,
                                          .content_length = -1,
                                          .flags = head->flags };
    for (size_t i = 0; i < head->count; i++)
        response_header(a, &head->header[i], &rec);
    if (head->flags & RECF_HEAD_LOST)
        rec.response.flags |= RECF_SSE;
    if (!x->has_request)
        rec.response.flags |= RECF_REQUEST_UNKNOWN;
    x->body = body_kind_of(&rec.response);
    response_coding(x, &rec.response, at);
    if (x->body == BODY_EVENTS)
        x->stream = event_stream_new(x->all->limits.max_event);
    x->unlabelled = x->body != BODY_EVENTS && !(rec.response.flags & RECF_CODED) &&
                    head->status >= 200 && head->status < 300;
    emit(x->all, &rec);
    arena_free(a);
}

/* ---- bodies ---- */

static void feed_events(void *ctx, struct slice in)
{
    struct exchange *x = ctx;
    const struct piece *from = x->now;
    struct record rec;

    if (in.len == 0)
        return;
    record_begin(&rec, REC_STREAM, x->serial, from->at);
    rec.stream = x->stream;
    rec.bytes = (struct rec_stream){ .data = in,
                                     .tcp_end = from->tcp_end,
                                     .sealed = from->sealed,
                                     .ambiguous = from->ambiguous,
                                     .no_time = from->no_time };
    emit(x->all, &rec);
}

static void feed_kept(void *ctx, struct slice in)
{
    struct exchange *x = ctx;

    if (!buf_add(&x->kept, in))
        x->kept_cut = true;
}

void exchange_response_gap(struct exchange *x, uint64_t len, bool in_head, struct place at)
{
    x->kept_cut = true;
    emit_gap(x, DIR_SERVER, len, in_head, at);
    if (!x->coding)
        return;
    /* A coded body cannot be picked up again behind a hole. */
    coding_free(MOVE(x->coding));
    x->body = BODY_PASSED;
}

static void feed_coded(struct exchange *x, coding_sink *sink)
{
    struct piece whole = *x->now;

    whole.sealed = true;
    x->now = &whole;
    enum coding_status st = coding_feed(x->coding, whole.data, sink, x);
    if (st == CODING_OK || st == CODING_ENDED)
        return;
    exchanges_note(x->all, x->serial,
                   (struct rec_note){ NOTE_CODING_BROKEN, 1, x->conn->tcp_stream,
                                      st == CODING_LIMIT
                                          ? SLICE_LIT("the decoded body passes the limits")
                                          : SLICE_LIT("the coded body is damaged") },
                   x->now->at);
    exchange_response_gap(x, 0, false, x->now->at);
}

/* Does a body begin with whole lines of events, data among them (WHATWG HTML 9.2.6)? */
static bool begins_with_events(struct slice s)
{
    static const char *const starts[] = { "data:", "id:", "event:", "retry:", ":", "\r", "\n" };
    bool data = false;

    if (s.len > 1024)
        s.len = 1024;
    for (const uint8_t *lf = memchr(s.ptr, '\n', s.len); lf; lf = memchr(s.ptr, '\n', s.len)) {
        size_t i = 0;
        while (i < ARRAY_LEN(starts) && !slice_starts(s, slice_str(starts[i])))
            i++;
        if (i == ARRAY_LEN(starts))
            return false;
        data |= i == 0;
        s.len -= (size_t)(lf + 1 - s.ptr);
        s.ptr = lf + 1;
    }
    return data;
}

/* Only the first bytes are looked at, and at once, in however many pieces they come. */
#define HIDDEN_LOOK 1024
static void judge_hidden_events(struct exchange *x)
{
    if (!x->unlabelled)
        return;
    x->unlabelled = false;
    if (x->look.len > 0 && begins_with_events(buf_slice(&x->look)))
        exchanges_note(
            x->all, x->serial,
            (struct rec_note){ NOTE_HIDDEN_EVENTS, 1, x->conn->tcp_stream, (struct slice){ 0 } },
            x->look_at);
    buf_release(&x->look);
}

static void look_for_hidden_events(struct exchange *x, const struct piece *piece)
{
    if (!x->unlabelled || piece->data.len == 0)
        return;
    if (x->look.len == 0) {
        buf_init(&x->look, HIDDEN_LOOK);
        x->look_at = piece->at;
    }
    struct slice s = piece->data;
    if (s.len > HIDDEN_LOOK - x->look.len)
        s.len = HIDDEN_LOOK - x->look.len;
    if (buf_add(&x->look, s) && x->look.len == HIDDEN_LOOK)
        judge_hidden_events(x);
}

void exchange_response_body(struct exchange *x, const struct piece *piece)
{
    look_for_hidden_events(x, piece);
    x->body_bytes += piece->data.len;
    x->last = piece->at;
    x->tcp_end = piece->tcp_end;
    if (x->body != BODY_EVENTS && x->body != BODY_KEPT)
        return;
    coding_sink *sink = x->body == BODY_EVENTS ? feed_events : feed_kept;
    x->now = piece;
    if (x->coding)
        feed_coded(x, sink);
    else
        sink(x, piece->data);
}

void exchange_response_event(struct exchange *x, const struct sse_item *item, struct place at,
                             bool no_time, bool stripped)
{
    struct record rec = { .kind = REC_EVENT, .exchange = x->serial, .at = at, .stream = x->stream };

    x->last = at;
    x->body_bytes += item->data.len;
    rec.event = (struct rec_event){ .first = at, .no_time = no_time, .id_only_known = stripped };
    event_fill(&rec.event, item);
    emit(x->all, &rec);
}

/* Of an event stream, which event an acknowledgement covers is event_stream.c's to tell. */
void exchange_ack(struct exchange *x, uint64_t tcp_offset, struct place at)
{
    if (x->body == BODY_EVENTS) {
        emit_ack(x->all, x->serial, x->stream, tcp_offset, at);
        return;
    }
    if (x->acked >= x->tcp_end || tcp_offset <= x->acked)
        return;
    x->acked = tcp_offset;
    emit_ack(x->all, x->serial, NULL, tcp_offset, at);
}

void exchange_silence(struct exchange *x, const struct silence *s)
{
    struct record rec = { .kind = REC_SILENCE, .exchange = x->serial, .at = s->until };

    if (!x->answered && !x->has_request)
        return;
    rec.silence = *s;
    emit(x->all, &rec);
}

/* ---- the end ---- */

static void emit_kept(struct exchange *x, bool complete, struct place at)
{
    struct record rec = { .kind = REC_BODY, .exchange = x->serial, .at = x->last };

    if (x->body != BODY_KEPT && x->body != BODY_PASSED)
        return;
    if (x->last.time == 0)
        rec.at = at;
    body_begin(&rec.body, buf_slice(&x->kept), x->body == BODY_KEPT && complete && !x->kept_cut);
    rec.body.bytes = (size_t)x->body_bytes;
    rec.body.present = x->body_bytes > 0;
    rec.body.tcp_end = x->tcp_end;
    emit(x->all, &rec);
}

void exchange_end(struct exchange *x, const struct exchange_end_facts *facts, struct place at)
{
    struct record rec = { .kind = REC_END, .exchange = x->serial, .at = at, .stream = x->stream };

    request_emit(x, x->request_whole);
    judge_hidden_events(x);
    emit_kept(x, facts->kind == END_COMPLETE, at);
    rec.end = (struct rec_end){
        .kind = facts->kind,
        .answered = x->answered,
        .body_bytes = x->body_bytes,
        .last = x->last,
        .close_not_known = facts->close_not_known,
        .middlebox = facts->middlebox,
        .truncated_capture = facts->truncated_capture,
        .h2_code = facts->h2_code,
    };
    if (x->body == BODY_EVENTS)
        rec.end.tail_at = x->last;
    emit(x->all, &rec);
    coding_free(x->coding);
    buf_release(&x->kept);
    buf_release(&x->look);
    arena_free(x->head);
    free(x);
}

const char *end_kind_text(enum end_kind k)
{
    static const char *const text[] = {
        [END_COMPLETE] = "complete",
        [END_FIN] = "fin",
        [END_RST] = "rst",
        [END_CLIENT_FIN] = "client-fin",
        [END_CLIENT_RST] = "client-rst",
        [END_OPEN] = "open",
        [END_GAP] = "gap",
    };

    return text[k];
}
