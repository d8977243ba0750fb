/*
 * test_h2.c - HTTP/2 connections made by nghttp2's own client and server in memory, and by hand,
 * read by an observer; what it says is text (exchange_log.h).
 */
#include "h2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "exchange_log.h"
#include "h2_frame.h"
#include "hpack.h"

/* ---- what is on the wire ---- */

struct wire {
    struct buf bytes;
    struct span {
        enum dir dir;
        size_t begin;
        size_t len;
    } span[512];
    size_t count;
};

static struct wire *wire_new(void)
{
    struct wire *w = mem_alloc(sizeof(*w));

    buf_init(&w->bytes, (size_t)1 << 22);
    return w;
}

static void wire_free(struct wire *w)
{
    buf_release(&w->bytes);
    free(w);
}

static void wire_add(struct wire *w, enum dir dir, struct slice s)
{
    assert_true(w->count < ARRAY_LEN(w->span));
    w->span[w->count++] = (struct span){ dir, w->bytes.len, s.len };
    assert_true(buf_add(&w->bytes, s));
}

static void wire_frame(struct wire *w, enum dir dir, struct h2_frame f, struct slice payload)
{
    uint8_t bytes[1024] = { (uint8_t)(payload.len >> 16),
                            (uint8_t)(payload.len >> 8),
                            (uint8_t)payload.len,
                            f.type,
                            f.flags,
                            (uint8_t)(f.stream >> 24),
                            (uint8_t)(f.stream >> 16),
                            (uint8_t)(f.stream >> 8),
                            (uint8_t)f.stream };

    assert_true(payload.len + 9 <= sizeof(bytes));
    if (payload.len > 0)
        memcpy(bytes + 9, payload.ptr, payload.len);
    wire_add(w, dir, (struct slice){ bytes, payload.len + 9 });
}

/* ---- the observer ---- */

struct observer {
    struct exchanges *all;
    struct conn conn;
    struct layer h2;
    uint64_t offset[2];
    int64_t now; /* ms */
};

static struct observer *observer_new(bool late)
{
    struct observer *o = mem_alloc(sizeof(*o));

    o->all = exchanges_new((struct record_sink){ 0 }, NULL);
    o->conn.starts_late = late;
    o->now = 1000;
    o->h2 = h2_new(o->all, &o->conn, 1, NULL);
    return o;
}

static struct place now(const struct observer *o)
{
    return (struct place){ .time = o->now * NS_PER_MS, .frame = (uint32_t)o->now };
}

static void observe(struct observer *o, enum dir dir, struct slice bytes)
{
    uint8_t *exact = (uint8_t *)mem_dup(bytes);

    o->offset[dir] += bytes.len;
    o->h2.ops->data(
        o->h2.self, dir,
        &(struct piece){ .data = { exact, bytes.len }, .at = now(o), .tcp_end = o->offset[dir] });
    free(exact);
}

static void observe_wire(struct observer *o, const struct wire *w, size_t first, size_t step)
{
    for (size_t i = first; i < w->count; i++) {
        struct slice s = { w->bytes.ptr + w->span[i].begin, w->span[i].len };
        struct slice part;
        while (s.len > 0 && slice_take(&s, step < s.len ? step : s.len, &part))
            observe(o, w->span[i].dir, part);
        if (o->conn.starts_late)
            o->h2.ops->ack(o->h2.self, w->span[i].dir, o->offset[w->span[i].dir], now(o));
    }
}

/* The text of it, to be freed; the observer is gone. */
static char *observer_end(struct observer *o)
{
    o->h2.ops->finish(o->h2.self, now(o));
    assert_int_equal(o->all->open, 0);
    char *text = mem_dup(slice_str(exchange_log_text(o->all)));
    exchanges_free(o->all);
    free(o);
    return text;
}

static char *read_wire(const struct wire *w, size_t first, size_t step, bool late)
{
    struct observer *o = observer_new(late);

    observe_wire(o, w, first, step);
    return observer_end(o);
}

static void expect_text(const struct wire *w, const char *want)
{
    for (size_t step = 1; step < 70; step = step * 2 + 1) {
        char *got = read_wire(w, 0, step == 63 ? SIZE_MAX : step, false);
        assert_string_equal(got, want);
        free(got);
    }
}

/* ---- two ends of nghttp2 ---- */

struct body {
    const char *text;
    size_t sent;
    bool endless; /* no END_STREAM after it */
    bool trailers;
};

struct ends {
    struct wire *wire;
    nghttp2_session *end[2];
    size_t padding;
    struct body body[16]; /* of responses, by stream id / 2 */
    int resets;
};

/* The library takes bytes that it does not change as if it might. */
static uint8_t *unconst(const void *p)
{
    uint8_t *q;

    memcpy(&q, &p, sizeof(q));
    return q;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){ unconst(name), unconst(value), strlen(name), strlen(value),
                         NGHTTP2_NV_FLAG_NONE };
}

static ssize_t pad(nghttp2_session *session, const nghttp2_frame *frame, size_t max, void *user)
{
    const struct ends *e = user;
    size_t len = frame->hd.length + e->padding;

    (void)session;
    return (ssize_t)(len < max ? len : max);
}

static int count_reset(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    struct ends *e = user;

    (void)session;
    (void)id;
    e->resets += code != 0;
    return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
static ssize_t give_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct body *b = source->ptr;
    size_t left = strlen(b->text) - b->sent;
    size_t n = left < len ? left : len;

    (void)user;
    if (left == 0 && b->endless)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(out, b->text + b->sent, n);
    b->sent += n;
    if (n < left || b->endless)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (b->trailers) {
        nghttp2_nv nv[] = { field("x-sum", "1") };
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, nv, 1);
    }
    return (ssize_t)n;
}

static struct ends *ends_new(struct wire *w, size_t padding, uint32_t window)
{
    struct ends *e = mem_alloc(sizeof(*e));
    nghttp2_session_callbacks *calls;
    nghttp2_settings_entry set[] = { { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window } };

    e->wire = w;
    e->padding = padding;
    assert_int_equal(nghttp2_session_callbacks_new(&calls), 0);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, count_reset);
    if (padding > 0)
        nghttp2_session_callbacks_set_select_padding_callback(calls, pad);
    assert_int_equal(nghttp2_session_client_new(&e->end[DIR_CLIENT], calls, e), 0);
    assert_int_equal(nghttp2_session_server_new(&e->end[DIR_SERVER], calls, e), 0);
    nghttp2_session_callbacks_del(calls);
    nghttp2_submit_settings(e->end[DIR_CLIENT], 0, set, window > 0);
    nghttp2_submit_settings(e->end[DIR_SERVER], 0, NULL, 0);
    return e;
}

static void ends_free(struct ends *e)
{
    nghttp2_session_del(e->end[DIR_CLIENT]);
    nghttp2_session_del(e->end[DIR_SERVER]);
    free(e);
}

/* Carries frames until both are silent. */
static void run(struct ends *e)
{
    const uint8_t *data;
    bool busy = true;

    while (busy) {
        busy = false;
        for (enum dir dir = DIR_CLIENT; dir <= DIR_SERVER; dir++) {
            ssize_t n = nghttp2_session_mem_send(e->end[dir], &data);
            assert_true(n >= 0);
            if (n == 0)
                continue;
            wire_add(e->wire, dir, (struct slice){ data, (size_t)n });
            nghttp2_session_mem_recv(e->end[!dir], e->wire->bytes.ptr + e->wire->bytes.len - n,
                                     (size_t)n);
            busy = true;
        }
    }
}

static int32_t ask(struct ends *e, const char *path, const char *header)
{
    nghttp2_nv nv[] = { field(":method", "GET"), field(":path", path), field(":scheme", "http"),
                        field(":authority", "a.example"), field("x-h", header) };
    int32_t id = nghttp2_submit_request(e->end[DIR_CLIENT], NULL, nv, ARRAY_LEN(nv), NULL, NULL);

    assert_true(id > 0);
    run(e);
    return id;
}

static void answer(struct ends *e, int32_t id, struct body body)
{
    nghttp2_nv nv[] = { field(":status", "200"), field("content-type", "text/event-stream") };
    struct body *b = &e->body[id / 2];
    nghttp2_data_provider source = { .source.ptr = b, .read_callback = give_body };

    *b = body;
    assert_int_equal(nghttp2_submit_response(e->end[DIR_SERVER], id, nv, ARRAY_LEN(nv), &source),
                     0);
}

static void more(struct ends *e, int32_t id, const char *text)
{
    e->body[id / 2] = (struct body){ .text = text, .endless = true };
    assert_int_equal(nghttp2_session_resume_data(e->end[DIR_SERVER], id), 0);
    run(e);
}

/* ---- tests ---- */

/* Takes the offsets off the text: nghttp2's compression is its own affair. */
static char *without_offsets(char *text)
{
    char *out = text;

    for (const char *in = text; *in;) {
        if (in[0] == ' ' && in[1] == '@') {
            in += 2 + strspn(in + 2, "0123456789");
            continue;
        }
        *out++ = *in++;
    }
    *out = '\0';
    return text;
}

static void expect_any_cut(const struct wire *w, const char *want)
{
    char *whole = read_wire(w, 0, SIZE_MAX, false);

    for (size_t step = 1; step <= 64; step = step * 2 + 1) {
        char *got = read_wire(w, 0, step, false);
        assert_string_equal(got, whole);
        free(got);
    }
    assert_string_equal(without_offsets(whole), want);
    free(whole);
}

static void test_multiplexed(void **state)
{
    struct wire *w = wire_new();
    struct ends *e = ends_new(w, 0, 0);

    (void)state;
    int32_t a = ask(e, "/a", "1");
    int32_t b = ask(e, "/b", "1");
    answer(e, a, (struct body){ .text = "data: a1\n\n", .endless = true });
    answer(e, b, (struct body){ .text = "data: b1\n\n", .endless = true });
    run(e);
    more(e, a, "data: a2\n\n");
    more(e, b, "data: b2\n\n");
    nghttp2_submit_rst_stream(e->end[DIR_CLIENT], 0, a, NGHTTP2_CANCEL);
    run(e);
    more(e, b, "data: b3\n\n");
    nghttp2_submit_rst_stream(e->end[DIR_SERVER], 0, b, NGHTTP2_INTERNAL_ERROR);
    run(e);
    expect_any_cut(w, "#1 asks GET /a\n   x-h=1\n#1 asked\n"
                      "#2 asks GET /b\n   x-h=1\n#2 asked\n"
                      "#1 answer 200\n   content-type=text/event-stream\n"
                      "#2 answer 200\n   content-type=text/event-stream\n"
                      "#1 receives \"data: a1\\n\\n\"\n"
                      "#2 receives \"data: b1\\n\\n\"\n"
                      "#1 receives \"data: a2\\n\\n\"\n"
                      "#2 receives \"data: b2\\n\\ndata: b3\\n\\n\"\n"
                      "#2 end: rst by code 2\n"
                      "#1 end: client-rst by code 8\n"); /* what may still come is awaited */
    ends_free(e);
    wire_free(w);
}

static void test_padding_and_trailers(void **state)
{
    struct wire *w = wire_new();
    struct ends *e = ends_new(w, 17, 0);

    (void)state;
    answer(e, ask(e, "/t", "1"), (struct body){ .text = "data: x\n\n", .trailers = true });
    run(e);
    expect_any_cut(w, "#1 asks GET /t\n   x-h=1\n#1 asked\n"
                      "#1 answer 200\n   content-type=text/event-stream\n"
                      "#1 receives \"data: x\\n\\n\"\n#1 end: complete\n");
    ends_free(e);
    wire_free(w);
}

/* A head of many frames. */
static void test_continuation(void **state)
{
    struct wire *w = wire_new();
    struct ends *e = ends_new(w, 0, 0);
    char *large = mem_alloc(40001);

    (void)state;
    memset(large, '~', 40000); /* long under Huffman: sent as it is */
    answer(e, ask(e, "/c", large), (struct body){ .text = "data: x\n\n" });
    run(e);
    char *got = read_wire(w, 0, 1000, false);
    assert_true(slice_has_nocase(slice_str(got), slice_str(large)));
    assert_non_null(strstr(got, "#1 end: complete"));
    free(got);
    free(large);
    ends_free(e);
    wire_free(w);
}

static void test_goaway(void **state)
{
    struct wire *w = wire_new();
    struct ends *e = ends_new(w, 0, 0);

    (void)state;
    answer(e, ask(e, "/a", "1"), (struct body){ .text = "data: a\n\n", .endless = true });
    run(e);
    nghttp2_submit_goaway(e->end[DIR_SERVER], 0, 1, NGHTTP2_ENHANCE_YOUR_CALM, NULL, 0);
    wire_frame(w, DIR_CLIENT, (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 3 },
               SLICE_LIT("\x82\x84\x86"));
    run(e);
    struct observer *o = observer_new(false);
    observe_wire(o, w, 0, SIZE_MAX);
    o->h2.ops->close(o->h2.self, DIR_SERVER, CLOSE_FIN, now(o));
    char *got = without_offsets(observer_end(o));
    assert_string_equal(got, "#1 asks GET /a\n   x-h=1\n#1 asked\n"
                             "#1 answer 200\n   content-type=text/event-stream\n"
                             "#1 receives \"data: a\\n\\n\"\n"
                             "#2 asks GET /\n#2 asked\n"
                             "#2 end: rst by code 11\n"
                             "#1 end: fin by code 11\n");
    free(got);
    ends_free(e);
    wire_free(w);
}

static void test_closes(void **state)
{
    static const struct {
        enum dir dir;
        enum close_kind kind;
        const char *want;
    } cases[] = {
        { DIR_SERVER, CLOSE_FIN, "#1 end: fin\n" },
        { DIR_SERVER, CLOSE_RST, "#1 end: rst\n" },
        { DIR_CLIENT, CLOSE_FIN, "#1 end: client-fin\n" },
        { DIR_CLIENT, CLOSE_RST, "#1 end: client-rst\n" },
    };
    struct wire *w = wire_new();

    (void)state;
    wire_add(w, DIR_CLIENT, SLICE_LIT(H2_PREFACE));
    wire_frame(w, DIR_CLIENT, (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 1 },
               SLICE_LIT("\x82\x84\x86"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct observer *o = observer_new(false);
        observe_wire(o, w, 0, SIZE_MAX);
        o->h2.ops->close(o->h2.self, cases[i].dir, cases[i].kind, now(o));
        char *got = observer_end(o);
        assert_non_null(strstr(got, cases[i].want));
        free(got);
    }
    char *got = read_wire(w, 0, SIZE_MAX, false);
    assert_non_null(strstr(got, "#1 end: open\n"));
    free(got);
    wire_free(w);
}

/* The literal fields of these heads are static or spelled out. */
static const struct h2_frame head_1 = { .type = H2_HEADERS, .flags = 4, .stream = 1 };
static const struct h2_frame data_1 = { .type = H2_DATA, .stream = 1 };
#define ASK     SLICE_LIT("\x82\x84\x86")
#define SSE_200 SLICE_LIT("\x88\x5f\x11text/event-stream")

static void one_leg(struct wire *w)
{
    wire_add(w, DIR_CLIENT, SLICE_LIT(H2_PREFACE));
    wire_frame(w, DIR_CLIENT, (struct h2_frame){ .type = H2_SETTINGS }, (struct slice){ 0 });
    wire_frame(w, DIR_CLIENT, (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 1 },
               ASK);
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_SETTINGS }, (struct slice){ 0 });
}

/* Interim answers, pushes, unknown frames, frames of ended streams. */
/* What the server sends after the client has given up is evidence; the end is the client's. */
static void test_given_up(void **state)
{
    static const struct h2_frame end_1 = { .type = H2_DATA, .flags = 1, .stream = 1 };
    static const struct h2_frame rst_1 = { .type = H2_RST_STREAM, .stream = 1 };

    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        for (int ends = 0; ends < 2; ends++) {
            struct wire *w = wire_new();
            struct observer *o = observer_new(false);
            bool complete = !reset && ends;
            one_leg(w);
            wire_frame(w, DIR_SERVER, head_1, SSE_200);
            observe_wire(o, w, 0, SIZE_MAX);
            size_t done = w->count;
            if (reset)
                wire_frame(w, DIR_CLIENT, rst_1, SLICE_LIT("\0\0\0\x08"));
            else
                o->h2.ops->close(o->h2.self, DIR_CLIENT, CLOSE_FIN, now(o));
            wire_frame(w, DIR_SERVER, ends ? end_1 : data_1, SLICE_LIT("data: x\n\n"));
            observe_wire(o, w, done, SIZE_MAX);
            char *got = without_offsets(observer_end(o));
            const char *at = strstr(got, "#1 receives \"data: x");
            assert_non_null(at);
            assert_non_null(strstr(at, complete ? "#1 end: complete\n"
                                       : reset  ? "#1 end: client-rst by code 8\n"
                                                : "#1 end: client-fin\n"));
            free(got);
            wire_free(w);
        }
    }
}

/* More of them than are awaited: the oldest ends at once. */
static void test_many_given_up(void **state)
{
    struct wire *w = wire_new();
    struct observer *o = observer_new(false);

    (void)state;
    wire_add(w, DIR_CLIENT, SLICE_LIT(H2_PREFACE));
    for (uint32_t i = 0; i < 70; i++) {
        wire_frame(w, DIR_CLIENT,
                   (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 2 * i + 1 }, ASK);
        wire_frame(w, DIR_CLIENT, (struct h2_frame){ .type = H2_RST_STREAM, .stream = 2 * i + 1 },
                   SLICE_LIT("\0\0\0\x08"));
    }
    observe_wire(o, w, 0, SIZE_MAX);
    assert_int_equal(o->all->open, 64);
    char *got = observer_end(o);
    assert_non_null(strstr(got, "#70 end: client-rst by code 8\n"));
    free(got);
    wire_free(w);
}

static void test_odd_frames(void **state)
{
    struct wire *w = wire_new();

    (void)state;
    one_leg(w);
    wire_frame(w, DIR_SERVER, head_1,
               SLICE_LIT("\x08\x03"
                         "103"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = 0x77, .flags = 0xff, .stream = 1 },
               SLICE_LIT("anything"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_PUSH_PROMISE, .flags = 4, .stream = 1 },
               SLICE_LIT("\0\0\0\x02\x82\x84\x40\x01"
                         "a"
                         "\x01"
                         "b"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_HEADERS, .flags = 4, .stream = 2 },
               SLICE_LIT("\x88\xbe"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .flags = 1, .stream = 2 },
               SLICE_LIT("pushed"));
    wire_frame(w, DIR_SERVER, head_1, SLICE_LIT("\x88\xbe"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_PING }, SLICE_LIT("12345678"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .flags = 9, .stream = 1 },
               SLICE_LIT("\x03"
                         "hello"
                         "\0\0\0"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_RST_STREAM, .stream = 1 },
               SLICE_LIT("\0\0\0\0"));
    wire_frame(w, DIR_SERVER, data_1, SLICE_LIT("late"));
    expect_text(w, "#1 asks GET / @45\n#1 asked\n"
                   "#1 answer 200 interim @97\n   a=b\n"
                   "#1 receives \"hello\" @129\n#1 end: complete\n");
    wire_free(w);
}

static void test_request_body(void **state)
{
    struct wire *w = wire_new();

    (void)state;
    wire_add(w, DIR_CLIENT, SLICE_LIT(H2_PREFACE));
    wire_frame(w, DIR_CLIENT, head_1, SLICE_LIT("\x83\x84\x86"));
    wire_frame(w, DIR_CLIENT, data_1, SLICE_LIT("{}"));
    wire_frame(w, DIR_CLIENT, (struct h2_frame){ .type = H2_DATA, .flags = 1, .stream = 1 },
               SLICE_LIT("[]"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 1 },
               SLICE_LIT("\x48\x03"
                         "202"));
    expect_text(w, "#1 asks POST / @36\n#1 sends \"{}[]\" @58\n#1 asked\n#1 answer 202 @14\n"
                   "#1 end: complete\n");
    wire_free(w);
}

static void test_upgraded(void **state)
{
    struct exchanges *all = exchanges_new((struct record_sink){ 0 }, NULL);
    struct conn conn = { .starts_late = true };
    struct observer o = { .all = all, .now = 5 };
    struct wire *w = wire_new();

    (void)state;
    o.h2 = h2_new(all, &conn, 1, exchange_open(all, &conn, 1));
    one_leg(w);
    wire_frame(w, DIR_SERVER, head_1, SSE_200);
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .flags = 1, .stream = 1 },
               SLICE_LIT("data: x\n\n"));
    observe_wire(&o, w, 3, 5);
    o.h2.ops->finish(o.h2.self, now(&o));
    assert_string_equal(exchange_log_text(all),
                        "#1 answer 200 @38\n   content-type=text/event-stream\n"
                        "#1 receives \"data: x\\n\\n\" @56\n#1 end: complete\n");
    exchanges_free(all);
    wire_free(w);
}

/* ---- windows, silences and acknowledgements ---- */

static void observe_frame(struct observer *o, enum dir dir, struct h2_frame f, struct slice payload)
{
    struct wire *w = wire_new();

    wire_frame(w, dir, f, payload);
    observe_wire(o, w, 0, SIZE_MAX);
    wire_free(w);
}

static struct observer *observe_leg(struct slice settings)
{
    struct observer *o = observer_new(false);

    observe(o, DIR_CLIENT, SLICE_LIT(H2_PREFACE));
    observe_frame(o, DIR_CLIENT, (struct h2_frame){ .type = H2_SETTINGS }, settings);
    observe_frame(o, DIR_CLIENT, (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 1 },
                  ASK);
    observe_frame(o, DIR_SERVER, head_1, SSE_200);
    return o;
}

static void test_closed_window(void **state)
{
    struct observer *o = observe_leg(SLICE_LIT("\0\4\0\0\0\x0a")); /* 10 bytes */

    (void)state;
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT("data: 1\n\n\n"));
    o->now += 700;
    observe_frame(o, DIR_CLIENT, (struct h2_frame){ .type = H2_WINDOW_UPDATE, .stream = 1 },
                  SLICE_LIT("\0\0\0\x0a"));
    o->now += 300;
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT(":\n"));
    o->now += 300;
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT(":\n"));
    o->now += 50;
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT(":\n"));
    o->now += 500;
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT(":\n\n\n"));
    o->now += 400;
    char *got = observer_end(o);
    const char *first = strstr(got, "#1 silence, window closed for 700 ms\n");
    assert_non_null(first);
    const char *second = strstr(first + 1, "#1 silence\n");
    assert_non_null(second);
    const char *third = strstr(second + 1, "#1 silence\n");
    assert_non_null(third); /* 4 bytes were left, 4 came */
    assert_non_null(strstr(third + 1, "#1 silence, window closed for 400 ms\n#1 end: open\n"));
    free(got);
}

/* Another stream's traffic does not end a stream's silence, and TCP's are not told twice. */
static void test_silence_of_one_stream(void **state)
{
    struct observer *o = observe_leg((struct slice){ 0 });
    struct silence tcp = { .window_closed = true, .window_ns = 100 * NS_PER_MS };

    (void)state;
    observe_frame(o, DIR_CLIENT, (struct h2_frame){ .type = H2_HEADERS, .flags = 5, .stream = 3 },
                  ASK);
    observe_frame(o, DIR_SERVER, (struct h2_frame){ .type = H2_HEADERS, .flags = 4, .stream = 3 },
                  SSE_200);
    for (int i = 0; i < 5; i++) {
        o->now += 100;
        observe_frame(o, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .stream = 3 },
                      SLICE_LIT("."));
    }
    tcp.since = now(o);
    o->now += 250;
    tcp.until = now(o);
    o->h2.ops->silence(o->h2.self, DIR_SERVER, &tcp);
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT("1"));
    observe_frame(o, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .stream = 3 }, SLICE_LIT("."));
    char *got = without_offsets(observer_end(o));
    assert_non_null(strstr(got, "#2 receives \".....\"\n"
                                "#1 silence, window closed for 100 ms\n#1 receives \"1\"\n"
                                "#2 silence, window closed for 100 ms\n#2 receives \".\"\n"));
    free(got);
}

static void test_acks(void **state)
{
    struct observer *o = observe_leg((struct slice){ 0 });

    (void)state;
    observe_frame(o, DIR_SERVER, data_1, SLICE_LIT("one"));
    uint64_t middle = o->offset[DIR_SERVER];
    observe_frame(o, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .flags = 1, .stream = 1 },
                  SLICE_LIT("two"));
    o->h2.ops->ack(o->h2.self, DIR_SERVER, middle, now(o));
    o->h2.ops->ack(o->h2.self, DIR_SERVER, middle + 12, now(o));
    o->h2.ops->ack(o->h2.self, DIR_SERVER, middle + 100, now(o));
    char *got = observer_end(o);
    assert_non_null(strstr(got, "#1 end: complete\n#1 late ack @41\n#1 late ack @53\n"));
    assert_null(strstr(got, "@140"));
    free(got);
}

/* ---- missing parts ---- */

static void test_gap_in_data(void **state)
{
    struct observer *o = observe_leg((struct slice){ 0 });

    (void)state;
    observe(o, DIR_SERVER,
            SLICE_LIT("\0\0\x0a\0\0\0\0\0\1"
                      "data"));
    o->h2.ops->gap(o->h2.self, DIR_SERVER, 3, now(o));
    o->offset[DIR_SERVER] += 3;
    observe(o, DIR_SERVER, SLICE_LIT("d\n\n"));
    observe_frame(o, DIR_SERVER, (struct h2_frame){ .type = H2_DATA, .flags = 1, .stream = 1 },
                  SLICE_LIT("data: 2\n\n"));
    char *got = without_offsets(observer_end(o));
    assert_non_null(strstr(got, "#1 receives \"data\"\n#1 gap of 3 in the answer\n"
                                "#1 receives \"d\\n\\ndata: 2\\n\\n\"\n#1 end: complete\n"));
    free(got);
}

/* The next frames are found, wherever the gap ended, however the bytes come. */
static void test_gap_between_frames(void **state)
{
    struct wire *w = wire_new();

    (void)state;
    wire_add(w, DIR_SERVER, SLICE_LIT("the rest of an event\n\n"));
    wire_frame(w, DIR_SERVER, data_1, SLICE_LIT("data: 7\n\n"));
    wire_frame(w, DIR_SERVER, (struct h2_frame){ .type = H2_PING }, SLICE_LIT("12345678"));
    wire_frame(w, DIR_SERVER, data_1, SLICE_LIT("data: 8\n\n"));
    for (size_t step = 1; step < 80; step += 7) {
        struct observer *o = observe_leg((struct slice){ 0 });
        o->h2.ops->gap(o->h2.self, DIR_SERVER, 100, now(o));
        observe_wire(o, w, 0, step);
        char *got = observer_end(o);
        assert_non_null(strstr(got, "#1 gap of 0 in the answer\n"
                                    "#1 receives \"data: 7\\n\\ndata: 8\\n\\n\" @104\n"
                                    "#1 end: open\n"));
        free(got);
    }
    struct observer *o = observe_leg((struct slice){ 0 });
    o->h2.ops->gap(o->h2.self, DIR_SERVER, 0, now(o));
    char *got = observer_end(o);
    assert_non_null(strstr(got, "#1 end: gap\n")); /* it may have ended in it */
    free(got);
    wire_free(w);
}

/* A connection from its middle: bodies that look like events are read, heads as far as possible. */
static void test_joined_in_the_middle(void **state)
{
    struct wire *w = wire_new();
    struct ends *e = ends_new(w, 0, 0);

    (void)state;
    int32_t a = ask(e, "/a", "1");
    answer(e, a, (struct body){ .text = "data: a1\n\n", .endless = true });
    run(e);
    size_t first = w->count;
    more(e, a, "data: a2\n\n");
    int32_t b = ask(e, "/b", "2"); /* authority and x-h's name are in the table */
    answer(e, b, (struct body){ .text = "data: b1\n\n", .endless = true });
    run(e);
    more(e, a, "data: a3\n\n");
    answer(e, ask(e, "/c", "2"), (struct body){ .text = "data: c1\n\n" });
    run(e);
    char *whole = read_wire(w, first, SIZE_MAX, true);
    for (size_t step = 1; step < 64; step += 9) {
        char *got = read_wire(w, first, step, true);
        assert_string_equal(got, whole);
        free(got);
    }
    assert_non_null(strstr(whole, "receives \"data: a2\\n\\n\""));
    assert_non_null(strstr(whole, "receives \"data: b1\\n\\n\""));
    assert_non_null(strstr(whole, "receives \"data: a3\\n\\n\""));
    assert_non_null(strstr(whole, "answer without its head"));
    assert_non_null(strstr(whole, "asks GET /c"));
    assert_null(strstr(whole, "asks GET /a"));
    assert_non_null(strstr(whole, "note: \n"));
    free(whole);
    ends_free(e);
    wire_free(w);
}

/* ---- HPACK ---- */

static void add_field(struct buf *b, const struct http_header *h)
{
    assert_true(buf_add(b, h->name) && buf_add(b, SLICE_LIT("=")) && buf_add(b, h->value) &&
                buf_add(b, SLICE_LIT("\n")));
}

/* What a reader who has missed the first `missed` blocks reads is part of what was written. */
static void read_late(const struct slice *block, char *const *want, size_t count, size_t missed)
{
    struct hpack *h = hpack_new();
    struct arena *a = arena_new();

    for (size_t i = missed; i < count; i++) {
        struct hpack_fields f;
        hpack_read(h, block[i], a, &f);
        struct buf got;
        buf_init(&got, 1 << 16);
        for (size_t k = 0; k < f.count; k++) {
            got.len = 0;
            add_field(&got, &f.item[k]);
            assert_true(slice_has_nocase(slice_str(want[i]), buf_slice(&got)));
        }
        if (missed == 0)
            assert_false(f.incomplete);
        buf_release(&got);
    }
    arena_free(a);
    hpack_free(h);
}

static void test_hpack_never_misreads(void **state)
{
    enum { BLOCKS = 60 };
    static const char *const names[] = { "a", "b", "content-type", "mcp-session-id", "x-y" };
    nghttp2_hd_deflater *d;
    struct slice block[BLOCKS];
    char *want[BLOCKS];

    (void)state;
    assert_int_equal(nghttp2_hd_deflate_new(&d, 400), 0); /* small: old entries leave it */
    for (size_t i = 0; i < BLOCKS; i++) {
        char value[4][8];
        nghttp2_nv nv[4];
        struct buf text;
        uint8_t *out = mem_alloc(1000);
        buf_init(&text, 1 << 16);
        for (size_t k = 0; k < 4; k++) {
            snprintf(value[k], sizeof(value[k]), "v%zu", (i * 5 + k * k * 3) % 11);
            nv[k] = field(names[(i + k * 2) % ARRAY_LEN(names)], value[k]);
            add_field(&text, &(struct http_header){ .name = { nv[k].name, nv[k].namelen },
                                                    .value = { nv[k].value, nv[k].valuelen } });
        }
        ssize_t n = nghttp2_hd_deflate_hd(d, out, 1000, nv, 4);
        assert_true(n > 0);
        block[i] = (struct slice){ out, (size_t)n };
        want[i] = mem_dup(buf_slice(&text));
        buf_release(&text);
    }
    for (size_t missed = 0; missed < BLOCKS; missed++)
        read_late(block, want, BLOCKS, missed);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(want[i]);
        free(unconst(block[i].ptr));
    }
    nghttp2_hd_deflate_del(d);
}

static void test_is(void **state)
{
    (void)state;
    assert_true(h2_is_preface(SLICE_LIT(H2_PREFACE "\0\0\0\4\0\0\0\0\0")));
    assert_false(h2_is_preface(SLICE_LIT("PRI * HTTP/2.0\r\n")));
    assert_true(h2_is_frames(SLICE_LIT("\0\0\0\4\0\0\0\0\0")));
    assert_true(h2_is_frames(SLICE_LIT("\0\0\0\4\0\0\0\0\0\0\0\4\x08\0\0\0\0\0\0")));
    assert_false(h2_is_frames(SLICE_LIT("\0\0\1\4\0\0\0\0\0.")));
    assert_false(h2_is_frames(SLICE_LIT("\0\0\x08\0\0\0\0\0\1data")));
    assert_false(h2_is_frames(SLICE_LIT("HTTP/1.1 200 OK\r\n")));
    assert_false(h2_is_frames(SLICE_LIT("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multiplexed),
        cmocka_unit_test(test_padding_and_trailers),
        cmocka_unit_test(test_continuation),
        cmocka_unit_test(test_goaway),
        cmocka_unit_test(test_closes),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_many_given_up),
        cmocka_unit_test(test_odd_frames),
        cmocka_unit_test(test_request_body),
        cmocka_unit_test(test_upgraded),
        cmocka_unit_test(test_closed_window),
        cmocka_unit_test(test_silence_of_one_stream),
        cmocka_unit_test(test_acks),
        cmocka_unit_test(test_gap_in_data),
        cmocka_unit_test(test_gap_between_frames),
        cmocka_unit_test(test_joined_in_the_middle),
        cmocka_unit_test(test_hpack_never_misreads),
        cmocka_unit_test(test_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
