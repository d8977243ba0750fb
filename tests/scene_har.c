/* scene_har.c - see scene_har.h. */
#include "scene_har.h"

#include "exchange.h"
#include "make_capture.h"
#include "scene_parts.h"
#include "scene_pcap.h"
#include "sse.h"

#include <arpa/inet.h>

/* An entry. */
struct entry {
    const struct scene_exchange *x;
    struct http_head request, response;
    struct slice request_body;
    int64_t start, head, last, end; /* 0: not come to it */
    enum end_kind kind;
    struct made text;
    struct made messages; /* JSON */
    struct sse sse;
    struct slice last_id;
    struct entry *next;
};

struct har_writer {
    struct scene *sc;
    struct entry *first;
    struct entry *last;
};

/* ---- JSON ---- */

static void put_text(struct made *m, const char *text)
{
    put(m, text, strlen(text));
}

static void put_string(struct made *m, struct slice s)
{
    char escape[8];

    put8(m, '"');
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        if (c >= ' ' && c != '"' && c != '\\') {
            put8(m, c);
            continue;
        }
        snprintf(escape, sizeof(escape), "\\u%04x", c);
        put_text(m, escape);
    }
    put8(m, '"');
}

static void put_key(struct made *m, const char *key)
{
    put_string(m, slice_str(key));
    put8(m, ':');
}

static void put_member(struct made *m, const char *key, struct slice value)
{
    put_key(m, key);
    put_string(m, value);
    put8(m, ',');
}

static void put_real(struct made *m, const char *key, double value)
{
    char text[64];

    snprintf(text, sizeof(text), "%.6f,", value);
    put_key(m, key);
    put_text(m, text);
}

static double ms_between(int64_t a, int64_t b)
{
    return b > a ? (double)(b - a) / (double)NS_PER_MS : 0;
}

/* ---- what is played ---- */

static struct http_head head_copy(struct scene *sc, const struct http_head *head)
{
    struct http_header *h = arena_alloc(sc->arena, (head->count + 1) * sizeof(*h));
    struct http_head copy = *head;

    for (size_t i = 0; i < head->count; i++)
        h[i] = (struct http_header){ .name = arena_copy(sc->arena, head->header[i].name),
                                     .value = arena_copy(sc->arena, head->header[i].value) };
    copy.header = h;
    copy.method = arena_copy(sc->arena, head->method);
    copy.target = arena_copy(sc->arena, head->target);
    return copy;
}

static void har_request(void *ctx, struct scene_exchange *x, const struct http_head *head,
                        struct slice body, int64_t t)
{
    struct har_writer *w = ctx;
    struct entry *e = arena_alloc(w->sc->arena, sizeof(*e));

    e->x = x;
    e->request = head_copy(w->sc, head);
    e->request_body = arena_copy(w->sc->arena, body);
    e->start = t;
    e->kind = END_OPEN;
    sse_init(&e->sse, SSE_MAX_EVENT);
    x->play = e;
    if (w->last)
        w->last->next = e;
    else
        w->first = e;
    w->last = e;
}

static void har_response(void *ctx, struct scene_exchange *x, const struct scene_response *r,
                         int64_t t)
{
    struct har_writer *w = ctx;
    struct entry *e = x->play;

    if (!e || !r->head)
        return; /* scene_is_har */
    e->response = head_copy(w->sc, r->head);
    e->head = e->last = t;
    put_slice(&e->text, r->body);
}

/* DevTools writes the last event id as it stands, and only what is dispatched (HAR.md 3.1). */
static void put_message(struct har_writer *w, struct entry *e, const struct sse_item *item,
                        int64_t t)
{
    if (item->has_id)
        e->last_id = arena_copy(w->sc->arena, item->id);
    if (!item->has_data)
        return;
    put_text(&e->messages, e->messages.len > 0 ? ",{" : "{");
    put_real(&e->messages, "time", (double)t / (double)NS_PER_SEC);
    put_member(&e->messages, "eventName", item->event.len > 0 ? item->event : SLICE_LIT("message"));
    put_member(&e->messages, "eventId", e->last_id);
    put_key(&e->messages, "data");
    put_string(&e->messages, item->data);
    put_text(&e->messages, "}");
}

static void har_bytes(void *ctx, struct scene_exchange *x, struct slice data, int64_t t)
{
    struct har_writer *w = ctx;
    struct entry *e = x->play;
    struct sse_item item;

    if (!e)
        return;
    put_slice(&e->text, data);
    e->last = t;
    while (sse_next(&e->sse, &data, &item)) {
        if (item.kind == SSE_BLOCK)
            put_message(w, e, &item, t);
    }
}

static void har_ack(void *ctx, struct scene_exchange *x, int64_t t)
{
    (void)ctx;
    (void)x;
    (void)t;
}

static void har_silence(void *ctx, struct scene_exchange *x, const struct silence *s)
{
    (void)ctx;
    (void)x;
    (void)s;
}

static void har_gap(void *ctx, struct scene_exchange *x, const struct rec_gap *gap, int64_t t)
{
    (void)ctx;
    (void)x;
    (void)gap;
    (void)t;
}

static void har_note(void *ctx, struct scene_exchange *x, const struct rec_note *note, int64_t t)
{
    (void)ctx;
    (void)x;
    (void)note;
    (void)t;
}

static void har_end(void *ctx, struct scene_exchange *x, const struct scene_end *end, int64_t t)
{
    struct entry *e = x->play;

    (void)ctx;
    if (!e || end->half || e->end)
        return;
    e->kind = end->kind;
    e->end = t;
}

static void har_finish(void *ctx, bool truncated, int64_t t)
{
    const struct har_writer *w = ctx;

    (void)truncated;
    (void)t;
    for (struct scene_exchange *x = w->sc->exchange; x; x = x->next)
        x->play = NULL;
}

/* ---- the entries ---- */

static void put_headers(struct made *m, const struct http_head *head)
{
    put_text(m, "\"cookies\":[],\"headers\":[");
    for (size_t i = 0; i < head->count; i++) {
        put_text(m, i > 0 ? ",{" : "{");
        put_member(m, "name", head->header[i].name);
        put_key(m, "value");
        put_string(m, head->header[i].value);
        put8(m, '}');
    }
    put_text(m, "],\"headersSize\":-1,");
}

static struct slice header_of(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++) {
        if (slice_eq_nocase(head->header[i].name, slice_str(name)))
            return head->header[i].value;
    }
    return SLICE_LIT("");
}

static void put_request(struct made *m, const struct entry *e)
{
    AUTO(made_freep) struct made url = { 0 };

    put_text(&url, "http://");
    put_slice(&url, header_of(&e->request, "host"));
    put_slice(&url, e->request.target);
    put_text(m, "\"request\":{\"httpVersion\":\"HTTP/1.1\",\"queryString\":[],");
    put_member(m, "method", e->request.method);
    put_member(m, "url", made_slice(&url));
    put_headers(m, &e->request);
    if (e->request_body.len > 0) {
        put_text(m, "\"postData\":{");
        put_member(m, "mimeType", header_of(&e->request, "content-type"));
        put_key(m, "text");
        put_string(m, e->request_body);
        put_text(m, "},");
    }
    put_key(m, "bodySize");
    char size[32];
    snprintf(size, sizeof(size), "%zu},", e->request_body.len);
    put_text(m, size);
}

static void put_content(struct made *m, const struct entry *e, enum scene_har_shape shape)
{
    char size[48];
    bool text = shape == HAR_SHAPE_FIREFOX || e->kind == END_COMPLETE;

    put_text(m, "\"content\":{");
    put_member(m, "mimeType", header_of(&e->response, "content-type"));
    snprintf(size, sizeof(size), "\"size\":%zu", e->text.len);
    put_text(m, size);
    if (text) {
        put_text(m, ",\"text\":");
        put_string(m, made_slice(&e->text));
    }
    put_text(m, "},");
}

static const char *error_of(const struct entry *e)
{
    switch (e->kind) {
    case END_CLIENT_FIN:
    case END_CLIENT_RST: return "net::ERR_ABORTED";
    case END_RST: return "net::ERR_CONNECTION_RESET";
    case END_FIN:
        return e->head ? "net::ERR_INCOMPLETE_CHUNKED_ENCODING" : "net::ERR_EMPTY_RESPONSE";
    case END_COMPLETE:
    case END_OPEN:
    case END_GAP: break;
    }
    return NULL;
}

static void put_response(struct made *m, const struct entry *e, enum scene_har_shape shape)
{
    const char *error = shape == HAR_SHAPE_DEVTOOLS ? error_of(e) : NULL;
    char status[48];

    snprintf(status, sizeof(status), "\"response\":{\"status\":%d,",
             e->head ? e->response.status : 0);
    put_text(m, status);
    put_text(m, "\"statusText\":\"\",\"httpVersion\":\"HTTP/1.1\",\"redirectURL\":\"\",");
    put_headers(m, &e->response);
    put_content(m, e, shape);
    if (error)
        put_member(m, "_error", slice_str(error));
    put_text(m, "\"bodySize\":-1},");
}

static void put_timings(struct made *m, const struct entry *e, enum scene_har_shape shape)
{
    int64_t head = e->head ? e->head : e->start;
    int64_t end = e->end ? e->end : e->last;

    if (shape == HAR_SHAPE_FIREFOX && e->end == 0) {
        put_text(m, "\"time\":0,\"timings\":{},");
        return;
    }
    put_real(m, "time", ms_between(e->start, end));
    put_text(m, "\"timings\":{\"blocked\":-1,\"dns\":-1,\"connect\":-1,");
    put_real(m, "send", 0);
    put_real(m, "wait", ms_between(e->start, head));
    put_real(m, "receive", ms_between(head, end));
    put_text(m, "\"ssl\":-1},");
}

static void put_entry(struct made *m, const struct entry *e, enum scene_har_shape shape)
{
    char when[TIME_TEXT];
    char address[INET6_ADDRSTRLEN];
    char number[32];
    const struct endpoint *server = &e->x->conn.server;

    time_text(e->start, when); /* ...T16:05:28.696382000Z */
    snprintf(when + strlen("2026-11-30T16:05:28.696"), 8, "%s",
             shape == HAR_SHAPE_FIREFOX ? "+00:00" : "Z");
    inet_ntop(AF_INET, server->addr + 12, address, sizeof(address));
    snprintf(number, sizeof(number), "%u", (unsigned)server->port);
    put_text(m, "{");
    put_member(m, "startedDateTime", slice_str(when));
    put_request(m, e);
    put_response(m, e, shape);
    put_timings(m, e, shape);
    if (shape == HAR_SHAPE_DEVTOOLS &&
        slice_eq(header_of(&e->response, "content-type"), SLICE_LIT("text/event-stream"))) {
        put_text(m, "\"_eventSourceMessages\":[");
        put_slice(m, made_slice(&e->messages));
        put_text(m, "],");
    }
    put_member(m, "serverIPAddress", slice_str(address));
    put_member(m, "connection", slice_str(number));
    put_text(m, "\"cache\":{}}");
}

static void entries_free(struct entry *e)
{
    for (; e; e = e->next) {
        sse_release(&e->sse);
        made_freep(&e->text);
        made_freep(&e->messages);
    }
}

struct slice scene_har(struct scene *sc, enum scene_har_shape shape)
{
    AUTO(made_freep) struct made m = { 0 };
    struct har_writer w = { .sc = sc };
    const struct scene_player player = {
        .ctx = &w,
        .request = har_request,
        .response = har_response,
        .bytes = har_bytes,
        .ack = har_ack,
        .silence = har_silence,
        .gap = har_gap,
        .note = har_note,
        .end = har_end,
        .finish = har_finish,
    };

    sc->exchange = NULL;
    sc->connections = 0;
    scene_perform(sc, &player);
    put_text(&m, shape == HAR_SHAPE_FIREFOX
                     ? "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"Firefox\","
                       "\"version\":\"153\"},\"pages\":[],\"entries\":["
                     : "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"WebInspector\","
                       "\"version\":\"537.36\"},\"pages\":[],\"entries\":[");
    for (const struct entry *e = w.first; e; e = e->next) {
        if (e != w.first)
            put_text(&m, ",");
        put_entry(&m, e, shape);
    }
    put_text(&m, "]}}");
    entries_free(w.first);
    return arena_copy(sc->arena, made_slice(&m));
}

/* Bytes that a HAR cannot keep, and lengths that are not those of the body. */
static bool says_bytes(const struct scene *sc)
{
    for (size_t i = 0; i < sc->count; i++) {
        for (size_t k = 0; k < sc->line[i].count; k++) {
            const struct scene_word *w = &sc->line[i].word[k];
            if (memmem(w->raw.ptr, w->raw.len, "\\x", 2) ||
                (w->key.ptr && slice_eq_nocase(w->key, SLICE_LIT("content-length"))))
                return true;
        }
    }
    return false;
}

bool scene_is_har(const struct scene *sc)
{
    static const char *const words[] = { "gap", "late", "noack", "half", "silence" };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (scene_says(sc, words[i]))
            return false;
    }
    return !sc->noack && !sc->truncated && !says_bytes(sc);
}
