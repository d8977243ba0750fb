/* test_h1_records.c - h1.c over the real exchange.c: bytes in, records out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "event_stream.h"
#include "h1.h"
#include "seen.h"

static void put_known(struct seen *s, const struct record *r)
{
    if (r->kind == REC_REQUEST)
        add(s, "request " SLICE_FMT " whole=%d", SLICE_ARG(r->request.target),
            r->request.body.whole);
    if (r->kind == REC_RESPONSE)
        add(s, "response %d sse=%d", r->response.status, (r->response.flags & RECF_SSE) != 0);
    if (r->kind == REC_EVENT)
        add(s, "event " SLICE_FMT " @%d", SLICE_ARG(r->event.id), (int)r->event.tcp_end);
    if (r->kind == REC_ACK)
        add(s, "ack @%d", (int)r->ack.tcp_offset);
    if (r->kind == REC_GAP)
        add(s, "gap %d", (int)r->gap.bytes);
    if (r->kind == REC_END)
        add(s, "end %s", end_kind_text(r->end.kind));
}

static void write_down(void *ctx, struct record *r)
{
    struct seen *s = ctx;

    add(s, "#%d in %d: ", (int)r->exchange, (int)r->at.frame);
    put_known(s, r);
    add(s, "\n");
}

static void put(void *ctx, struct record *r)
{
    event_stream_put((struct record_sink){ .put = write_down, .ctx = ctx }, r);
}

struct talk {
    struct seen seen;
    struct exchanges *all;
    struct conn conn;
    struct layer layer;
    uint64_t offset[2];
    uint32_t frame;
};

static void talk_begin(struct talk *t)
{
    static const struct exchange_limits limits = { 1 << 20, 1 << 20, 1000, 1 << 20 };
    const struct h1_upgrade none = { 0 };

    *t = (struct talk){ 0 };
    t->all = exchanges_new((struct record_sink){ .put = put, .ctx = &t->seen }, &limits);
    t->layer = h1_new(t->all, &t->conn, 1, none);
}

static struct place here(struct talk *t)
{
    t->frame++;
    return (struct place){ .time = (int64_t)t->frame * NS_PER_MS, .frame = t->frame };
}

static void say(struct talk *t, enum dir dir, const char *text)
{
    t->offset[dir] += strlen(text);
    t->layer.ops->data(
        t->layer.self, dir,
        &(struct piece){ .data = slice_str(text), .at = here(t), .tcp_end = t->offset[dir] });
}

static void talk_end(struct talk *t, const char *want)
{
    t->layer.ops->finish(t->layer.self, here(t));
    exchanges_free(t->all);
    assert_string_equal(t->seen.text, want);
}

#define GET "GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n"
#define SSE                                                                                        \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

static void test_a_stream_cut_by_the_server(void **state)
{
    struct talk t;

    (void)state;
    talk_begin(&t);
    say(&t, DIR_CLIENT, GET);
    say(&t, DIR_SERVER, SSE);
    say(&t, DIR_SERVER, "f\r\nid: 1\ndata: a\n\n\r\n");
    t.layer.ops->ack(t.layer.self, DIR_SERVER, t.offset[DIR_SERVER], here(&t));
    say(&t, DIR_SERVER, "f\r\nid: 2\ndata");
    t.layer.ops->close(t.layer.self, DIR_SERVER, CLOSE_FIN, here(&t));
    talk_end(&t, "#1 in 1: request /mcp whole=1\n"
                 "#1 in 2: response 200 sse=1\n"
                 "#1 in 3: event 1 @98\n"
                 "#1 in 4: ack @100\n"
                 "#1 in 6: end fin\n");
}

static void test_a_gap_within_a_stream(void **state)
{
    struct talk t;

    (void)state;
    talk_begin(&t);
    say(&t, DIR_CLIENT, GET);
    say(&t, DIR_SERVER, SSE);
    t.offset[DIR_SERVER] += 100;
    t.layer.ops->gap(t.layer.self, DIR_SERVER, 100, here(&t));
    say(&t, DIR_SERVER, "f\r\nid: 8\ndata: a\n\n\r\n");
    say(&t, DIR_SERVER, "f\r\nid: 9\ndata: b\n\n\r\n0\r\n\r\n");
    /* Nobody can tell whether the first block behind the gap is whole. */
    talk_end(&t, "#1 in 1: request /mcp whole=1\n"
                 "#1 in 2: response 200 sse=1\n"
                 "#1 in 3: gap 100\n"
                 "#1 in 5: event 9 @218\n"
                 "#1 in 5: end complete\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_cut_by_the_server),
        cmocka_unit_test(test_a_gap_within_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
