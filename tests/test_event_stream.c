/* test_event_stream.c - bytes of event streams in, records out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "event_stream.h"
#include "seen.h"

static void add_event(struct seen *s, const struct rec_event *e)
{
    add(s, "event %u id=" SLICE_FMT " data=" SLICE_FMT " from %u @%u", e->ordinal, SLICE_ARG(e->id),
        SLICE_ARG(e->data), e->first.frame, (unsigned)e->tcp_end);
    assert_int_equal(e->dispatched, e->body.present || e->data.len > 0);
    if (e->dispatched)
        assert_ptr_equal(e->body.payload.ptr, e->data.ptr);
    add(s, "%s%s", e->ambiguous ? " ambiguous" : "", e->no_time ? " no time" : "");
}

static void put(void *ctx, struct record *r)
{
    struct seen *s = ctx;

    assert_int_equal(r->exchange, 5);
    add(s, "%u: ", r->at.frame);
    if (r->kind == REC_EVENT)
        add_event(s, &r->event);
    else if (r->kind == REC_COMMENT)
        add(s, "comment @%u", (unsigned)r->comment.tcp_end);
    else if (r->kind == REC_ACK)
        add(s, "ack @%u", (unsigned)r->ack.tcp_offset);
    else if (r->kind == REC_GAP)
        add(s, "gap %u", (unsigned)r->gap.bytes);
    else if (r->kind == REC_END)
        add(s, "end, tail of %u: id=" SLICE_FMT " data=" SLICE_FMT, (unsigned)r->end.tail_bytes,
            SLICE_ARG(r->end.tail_id), SLICE_ARG(r->end.tail_data));
    else
        add(s, "kind %d", (int)r->kind);
    add(s, "\n");
}

struct body {
    struct seen seen;
    struct event_stream *stream;
    uint64_t sent;
    uint32_t frame;
};

static struct body body_new(void)
{
    return (struct body){ .stream = event_stream_new(100) };
}

static void feed(struct body *b, struct record *rec)
{
    rec->exchange = 5;
    rec->at.frame = ++b->frame;
    rec->stream = b->stream;
    event_stream_put((struct record_sink){ .put = put, .ctx = &b->seen }, rec);
}

static void feed_bytes(struct body *b, struct slice data, struct rec_stream how)
{
    struct record rec = { .kind = REC_STREAM };
    uint8_t *exact = (uint8_t *)mem_dup(data); /* a read past the end is seen, and later ones too */

    b->sent += data.len;
    how.data = (struct slice){ exact, data.len };
    how.tcp_end = b->sent;
    rec.bytes = how;
    feed(b, &rec);
    free(exact);
}

static void feed_text(struct body *b, const char *text)
{
    feed_bytes(b, slice_str(text), (struct rec_stream){ 0 });
}

static void feed_ack(struct body *b, uint64_t tcp_offset)
{
    struct record rec = { .kind = REC_ACK };

    rec.ack.tcp_offset = tcp_offset;
    feed(b, &rec);
}

static void body_end(struct body *b, const char *want)
{
    struct record rec = { .kind = REC_END };

    feed(b, &rec);
    assert_string_equal(b->seen.text, want);
}

static void test_events(void **state)
{
    struct body b = body_new();

    (void)state;
    feed_text(&b, "id: 1\ndata: a\n\n: hi\nid: 2\n\n");
    feed_text(&b, "data: b");
    feed_text(&b, "c\n\ndata: d\n\nid: 9\ndata: ta");
    body_end(&b, "1: event 0 id=1 data=a from 1 @15\n"
                 "1: comment @20\n"
                 "1: event 1 id=2 data= from 1 @27\n"
                 "3: event 2 id= data=bc from 2 @37\n"
                 "3: event 3 id= data=d from 3 @46\n"
                 "4: end, tail of 14: id=9 data=ta\n");
}

/* However the bytes come: the events, and where they end. */
static void test_any_cut(void **state)
{
    static const char text[] = "id: 1\ndata: a\n\n:c\nevent: e\ndata: b\ndata: c\n\nda";

    (void)state;
    for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
        struct body b = body_new();
        struct record end = { .kind = REC_END };
        feed_bytes(&b, (struct slice){ (const uint8_t *)text, cut }, (struct rec_stream){ 0 });
        feed_text(&b, text + cut);
        feed(&b, &end);
        assert_non_null(strstr(b.seen.text, "event 0 id=1 data=a from 1 @15\n"));
        assert_non_null(strstr(b.seen.text, "comment @18\n"));
        assert_non_null(strstr(b.seen.text, "event 1 id= data=b\nc from "));
        assert_non_null(strstr(b.seen.text, " @44\n"));
        assert_non_null(strstr(b.seen.text, "tail of 2: id= data="));
    }
}

static void test_marks(void **state)
{
    struct body b = body_new();

    (void)state;
    feed_bytes(&b, SLICE_LIT("data: a\n\ndata: b\n\n"), (struct rec_stream){ .sealed = true });
    feed_bytes(&b, SLICE_LIT("data"), (struct rec_stream){ .ambiguous = true });
    feed_bytes(&b, SLICE_LIT(": c\n\ndata: d\n\n"), (struct rec_stream){ .no_time = true });
    body_end(&b, "1: event 0 id= data=a from 1 @18\n"
                 "1: event 1 id= data=b from 1 @18\n"
                 "3: event 2 id= data=c from 2 @27 ambiguous no time\n"
                 "3: event 3 id= data=d from 3 @36 no time\n"
                 "4: end, tail of 0: id= data=\n");
}

/* Only those go on that cover more of an event than the one before. */
static void test_acks(void **state)
{
    struct body b = body_new();

    (void)state;
    feed_ack(&b, 5); /* of the head */
    feed_text(&b, "data: a\n\ndat");
    feed_ack(&b, 4);
    feed_ack(&b, 4);
    feed_ack(&b, 12);
    feed_ack(&b, 12); /* of no event */
    feed_text(&b, "a: b\n\n");
    feed_ack(&b, 18);
    feed_ack(&b, 19);
    body_end(&b, "2: event 0 id= data=a from 2 @9\n"
                 "3: ack @4\n"
                 "5: ack @12\n"
                 "7: event 1 id= data=b from 2 @18\n"
                 "8: ack @18\n"
                 "10: end, tail of 0: id= data=\n");
}

static void test_gap(void **state)
{
    struct body b = body_new();
    struct record gap = { .kind = REC_GAP };

    (void)state;
    gap.gap.bytes = 7;
    feed_text(&b, "data: a\n\ndata: half");
    feed(&b, &gap);
    feed_text(&b, "of it\ndata: x\n\ndata: b\n\nid: t");
    body_end(&b, "1: event 0 id= data=a from 1 @9\n"
                 "2: gap 7\n"
                 "3: event 1 id= data=b from 3 @43\n"
                 "4: end, tail of 5: id=t data=\n");
}

/* Events that a HAR tells one by one count along; what names no stream passes. */
static void test_others(void **state)
{
    struct body b = body_new();

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct record event = { .kind = REC_EVENT };
        event.event.id = SLICE_LIT("h");
        feed(&b, &event);
    }
    for (int kind = REC_REQUEST; kind <= REC_NOTE; kind++) {
        struct record rec = { .kind = (enum record_kind)kind, .exchange = 5 };
        rec.at.frame = 77;
        rec.event.ordinal = 9;
        event_stream_put((struct record_sink){ .put = put, .ctx = &b.seen }, &rec);
    }
    body_end(&b, "1: event 0 id=h data= from 0 @0\n"
                 "2: event 1 id=h data= from 0 @0\n"
                 "77: kind 0\n77: kind 1\n"
                 "77: event 9 id= data= from 0 @0\n"
                 "77: comment @0\n77: kind 4\n77: ack @0\n77: kind 6\n77: gap 0\n"
                 "77: end, tail of 0: id= data=\n"
                 "77: kind 9\n"
                 "3: end, tail of 0: id= data=\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events), cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_marks),  cmocka_unit_test(test_acks),
        cmocka_unit_test(test_gap),    cmocka_unit_test(test_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
