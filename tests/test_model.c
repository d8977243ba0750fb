/* test_model.c - what the model keeps of events, and what of it is left when there are many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "model_impl.h"
#include "table.h"

#define MS (INT64_C(1788249600000000000) / NS_PER_MS)

/* A recording that is made up as it goes. */
struct tape {
    struct model *model;
    struct bodies *bodies;
    struct record_sink sink;
    uint32_t frame;
};

static void feed(void *ctx, struct record *rec)
{
    model_feed(ctx, rec);
}

static struct tape tape_new(size_t max_full)
{
    struct model_options opt = model_options_default;
    struct tape t = { 0 };

    opt.max_full = max_full;
    t.model = model_new(&opt, NULL);
    t.bodies = bodies_new((struct record_sink){ .put = feed, .ctx = t.model });
    t.sink = bodies_sink(t.bodies);
    return t;
}

static void tape_free(struct tape *t)
{
    bodies_free(t->bodies);
    model_free(t->model);
}

static struct record next(struct tape *t, enum record_kind kind, uint64_t exchange)
{
    t->frame++;
    return (struct record){ .kind = kind,
                            .exchange = exchange,
                            .at = { .time = (MS + t->frame) * NS_PER_MS, .frame = t->frame } };
}

static void put(struct tape *t, struct record *rec)
{
    t->sink.put(t->sink.ctx, rec);
}

static void put_get(struct tape *t, uint64_t exchange, struct slice cursor)
{
    struct record rec = next(t, REC_REQUEST, exchange);

    rec.request = (struct rec_request){ .first = rec.at,
                                        .client = { .port = 40000 },
                                        .server = { .port = 80 },
                                        .method = HTTP_METHOD_GET,
                                        .target = SLICE_LIT("/mcp"),
                                        .session = SLICE_LIT("s"),
                                        .cursor = cursor,
                                        .flags = RECF_ACCEPT_SSE };
    put(t, &rec);
}

static void put_head(struct tape *t, uint64_t exchange)
{
    struct record rec = next(t, REC_RESPONSE, exchange);

    rec.response = (struct rec_response){ .first = rec.at,
                                          .client = { .port = 40000 },
                                          .server = { .port = 80 },
                                          .status = 200,
                                          .session = SLICE_LIT("s"),
                                          .retry_after = -1,
                                          .content_length = -1,
                                          .flags = RECF_SSE };
    put(t, &rec);
}

/* The event `number`, which ends at byte 100 * (number + 1). */
static void put_event_as(struct tape *t, uint64_t exchange, unsigned number, const char *id)
{
    struct record rec = next(t, REC_EVENT, exchange);
    char data[200];

    snprintf(data, sizeof(data),
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\","
             "\"params\":{\"n\":%u}}",
             number);
    rec.event = (struct rec_event){ .first = rec.at,
                                    .has_id = true,
                                    .id = slice_str(id),
                                    .dispatched = true,
                                    .data = slice_str(data),
                                    .retry = -1,
                                    .tcp_end = 100 * (number + 1),
                                    .body = { .present = true,
                                              .whole = true,
                                              .payload = slice_str(data),
                                              .bytes = strlen(data) } };
    put(t, &rec);
}

static void put_event(struct tape *t, uint64_t exchange, unsigned number)
{
    char id[20];

    snprintf(id, sizeof(id), "e%u", number);
    put_event_as(t, exchange, number, id);
}

static void put_ack(struct tape *t, uint64_t exchange, uint64_t tcp_offset)
{
    struct record rec = next(t, REC_ACK, exchange);

    rec.ack.tcp_offset = tcp_offset;
    put(t, &rec);
}

static unsigned whole_events(const struct session *s)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < s->event_count; i++)
        n += event_at(s, i) != NULL;
    return n;
}

static void test_oldest_is_reduced(void **state)
{
    struct tape t = tape_new(20000);
    struct brief b;

    (void)state;
    put_get(&t, 1, (struct slice){ 0 });
    put_head(&t, 1);
    for (unsigned i = 0; i < 1000; i++) {
        put_event(&t, 1, i);
        put_ack(&t, 1, 100 * (i + 1));
    }
    const struct session *s = t.model->session[0];
    assert_int_equal(s->event_count, 1000);
    assert_non_null(event_at(s, 0)); /* the first of its leg */
    for (uint32_t i = 1; i < 900; i++)
        assert_null(event_at(s, i));
    for (uint32_t i = 992; i < 1000; i++)
        assert_non_null(event_at(s, i));
    assert_in_range(whole_events(s), 9, 20000 / sizeof(struct event));
    assert_true(event_brief(s, 500, &b));
    assert_int_equal(b.ordinal, 500);
    assert_int_equal(event_by_id(s, SLICE_LIT("e500")), 500);
    assert_int_equal(event_by_id(s, SLICE_LIT("e1000")), NONE);
    tape_free(&t);
}

/* Whether an event was delivered is asked when its acknowledgement is in. */
static void test_unacknowledged_waits(void **state)
{
    struct tape t = tape_new(20000);

    (void)state;
    put_get(&t, 1, (struct slice){ 0 });
    put_head(&t, 1);
    put_event(&t, 1, 0);
    put_ack(&t, 1, 100);
    for (unsigned i = 1; i < 500; i++)
        put_event(&t, 1, i);
    const struct session *s = t.model->session[0];
    assert_int_equal(whole_events(s), 500);
    put_ack(&t, 1, 100 * 500);
    for (unsigned i = 500; i < 1200; i++) {
        put_event(&t, 1, i);
        put_ack(&t, 1, 100 * (i + 1));
    }
    assert_in_range(whole_events(s), 9, 20000 / sizeof(struct event));
    tape_free(&t);
}

/* The leg whose request was not seen is found by a cursor that points at a reduced event. */
static void test_orphan_keeps_its_ids(void **state)
{
    struct tape t = tape_new(20000);

    (void)state;
    put_head(&t, 1);
    for (unsigned i = 0; i < 300; i++)
        put_event(&t, 1, i);
    assert_null(event_at(t.model->session[0], 100));
    put_get(&t, 2, SLICE_LIT("e100"));
    put_head(&t, 2);
    put_event(&t, 2, 101);

    const struct session *s = t.model->session[t.model->session_count - 1];
    assert_int_not_equal(event_by_id(s, SLICE_LIT("e250")), NONE);
    assert_int_equal(event_by_id(s, SLICE_LIT("e300")), NONE);
    put_event(&t, 2, 300);
    struct brief b;
    assert_int_equal(s->leg_count, 2);
    assert_int_equal(s->leg[0]->stream, s->leg[1]->stream);
    const struct event *e = event_at(s, s->leg[1]->last_event - 1);
    assert_true(event_brief(s, e->first, &b)); /* known, though reduced: sent again */
    assert_int_not_equal(e->first, e->index);
    assert_int_equal(b.ordinal, 101);
    assert_int_equal(event_at(s, s->leg[1]->last_event)->ordinal, 300);
    put_event(&t, 2, 299); /* and so is one that comes after they were moved */
    e = event_at(s, s->leg[1]->last_event);
    assert_int_not_equal(e->first, e->index);
    tape_free(&t);
}

/* The newest events are whole, and do not tell how far the reduced ones counted. */
static void test_orphan_keeps_its_counters(void **state)
{
    struct tape t = tape_new(20000);
    char id[20];

    (void)state;
    put_head(&t, 1);
    for (unsigned i = 0; i < 300; i++)
        put_event(&t, 1, i);
    for (unsigned i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "f%u", i);
        put_event_as(&t, 1, 300 + i, id);
    }
    put_get(&t, 2, SLICE_LIT("e100"));
    put_head(&t, 2);
    put_event(&t, 2, 101);

    const struct session *s = t.model->session[t.model->session_count - 1];
    assert_int_equal(s->leg_count, 2);
    assert_int_not_equal(event_by_id(s, SLICE_LIT("e250")), NONE);
    assert_int_equal(event_by_id(s, SLICE_LIT("e300")), NONE);
    tape_free(&t);
}

/* A replay showed an event of another stream first, and then two streams show it: it is the first
 * one's, and stays there. */
static void test_rebound_once(void **state)
{
    struct tape t = tape_new(100000);

    (void)state;
    put_get(&t, 1, (struct slice){ 0 });
    put_head(&t, 1);
    for (unsigned i = 0; i < 5; i++)
        put_event(&t, 1, i);
    put_get(&t, 2, SLICE_LIT("e4"));
    put_head(&t, 2);
    put_event(&t, 2, 900);
    put_get(&t, 3, (struct slice){ 0 });
    put_head(&t, 3);
    put_event(&t, 3, 100);
    put_event(&t, 3, 101);
    put_event(&t, 3, 900);
    put_get(&t, 4, (struct slice){ 0 });
    put_head(&t, 4);
    put_event(&t, 4, 200);
    put_event(&t, 4, 900);

    const struct session *s = t.model->session[0];
    const struct event *e = event_at(s, event_by_id(s, SLICE_LIT("e900")));
    assert_int_equal(s->stream_count, 3);
    assert_true(e->marks & EV_REBOUND);
    assert_int_equal(e->stream, s->leg[2]->stream);
    assert_int_equal(s->stream[e->stream]->order[e->ordinal], e->index);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(s->stream[0]->order[i], i);
    assert_int_equal(s->stream[0]->order[5], NONE);
    assert_int_equal(s->stream[2]->count, 1);
    tape_free(&t);
}

/* Ids that count, by one or by more, with and without leading zeros, and ids that do not. */
static void id_of_any_form(unsigned i, char id[static 40])
{
    static const char *const forms[] = { "%u",   "%u0",  "a%u",       "a0%u", "a%05u",
                                         "%u-b", "%x-c", "a%u000000", "b%u8", "%o_%u" };
    unsigned n = i / ARRAY_LEN(forms);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(id, 40, forms[i % ARRAY_LEN(forms)], n, n);
#pragma GCC diagnostic pop
    if (i % 97 == 0)
        snprintf(id, 40, "%016llx", (unsigned long long)hash_mix(i, 7));
}

static void id_of_one_run(unsigned i, char id[static 40])
{
    snprintf(id, 40, "stream-1_%u", i + 7);
}

/* Counts to a hundred, jumps on, and goes back by half of it. */
static void id_of_runs(unsigned i, char id[static 40])
{
    unsigned round = i / 100;
    unsigned begin = round * 200;

    if (round > 0 && round % 2 == 0)
        begin -= 150;
    snprintf(id, 40, "e%u", begin + i % 100);
}

/* Several counters take turns, each for a while. */
static void id_of_three(unsigned i, char id[static 40])
{
    snprintf(id, 40, "%c%u", (int)('a' + i / 5 % 3), i / 15 * 5 + i % 5);
}

static void id_of_many(unsigned i, char id[static 40])
{
    snprintf(id, 40, "%c%u", (int)('a' + i / 2 % 13), i / 26 * 2 + i % 2);
}

static void check_ids(void (*id_of)(unsigned i, char id[static 40]))
{
    struct tape t = tape_new(100000);
    char id[40];

    put_get(&t, 1, (struct slice){ 0 });
    put_head(&t, 1);
    struct table first = { 0 };
    for (unsigned i = 0; i < 20000; i++) {
        id_of(i, id);
        uint64_t *at = table_put(&first, hash_bytes(slice_str(id)));
        *at = *at ? *at : i + 1;
        put_event_as(&t, 1, i, id);
        put_ack(&t, 1, 100 * (i + 1));
        if (i % 37 == 0) { /* at any time, not only in the end */
            id_of(i / 2, id);
            assert_int_equal(event_by_id(t.model->session[0], slice_str(id)),
                             *table_get(&first, hash_bytes(slice_str(id))) - 1);
        }
    }
    const struct session *s = t.model->session[0];
    for (unsigned i = 0; i < 20000; i++) {
        id_of(i, id);
        assert_int_equal(event_by_id(s, slice_str(id)),
                         *table_get(&first, hash_bytes(slice_str(id))) - 1);
    }
    static const char *const absent[] = { "",   "a",  "a00", "a000000", "-b",     "20000000000",
                                          "00", "8b", "b",   "a2001",   "a02001", "2000-b" };
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        const uint64_t *at = table_get(&first, hash_bytes(slice_str(absent[i])));
        assert_int_equal(event_by_id(s, slice_str(absent[i])), at ? *at - 1 : NONE);
    }
    table_release(&first);
    tape_free(&t);
}

static void test_ids(void **state)
{
    (void)state;
    check_ids(id_of_any_form);
    check_ids(id_of_one_run);
    check_ids(id_of_runs);
    check_ids(id_of_three);
    check_ids(id_of_many);
}

static void put_end(struct tape *t, uint64_t exchange)
{
    struct record rec = next(t, REC_END, exchange);

    rec.end = (struct rec_end){ .kind = END_FIN, .answered = true, .last = rec.at };
    put(t, &rec);
}

/* A stream that is polled: each leg brings two events and is resumed where the last one ended. */
static void test_many_resumptions(void **state)
{
    struct tape t = tape_new(4000000);
    char cursor[20];

    (void)state;
    for (unsigned i = 0; i < 500; i++) {
        snprintf(cursor, sizeof(cursor), "e%u", 2 * i - 1);
        put_get(&t, i + 1, i > 0 ? slice_str(cursor) : (struct slice){ 0 });
        put_head(&t, i + 1);
        put_event(&t, i + 1, 2 * i);
        put_event(&t, i + 1, 2 * i + 1);
        put_ack(&t, i + 1, 100 * (2 * i + 2));
        put_end(&t, i + 1);
    }
    model_finish(t.model, false);
    const struct session *s = t.model->session[0];
    assert_int_equal(s->stream_count, 1);
    assert_int_equal(s->resumption_count, 499);
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        snprintf(cursor, sizeof(cursor), "e%u", 2 * i + 1);
        assert_int_equal(r->previous_leg, i);
        assert_true(slice_eq(r->wire_cursor, slice_str(cursor)));
        assert_int_equal(r->wire_event_acked, 2 * i + 1);
        assert_int_equal(r->head, 2 * i + 2);
        assert_int_equal(r->repeats, 1);
    }
    for (uint32_t n = 0; n <= s->leg_count; n++) {
        int64_t time = n < s->leg_count ? s->leg[n]->begin.time : INT64_MAX;
        assert_int_equal(stream_legs_before(s, s->stream[0], time), n);
        assert_int_equal(stream_leg_before(s, s->stream[0], time), n > 0 ? n - 1 : NONE);
    }
    tape_free(&t);
}

static void test_pool(void **state)
{
    struct pool p = { .cell = 50 };
    uint8_t *object[300];

    (void)state;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(object); i++) {
            size_t n = i % 7 == 0 ? 500 : 1 + i % 50;
            object[i] = pool_take(&p, n);
            assert_int_equal((uintptr_t)object[i] % _Alignof(max_align_t), 0);
            memset(object[i], (int)i, n);
        }
        for (size_t i = 0; i < ARRAY_LEN(object); i++) {
            size_t n = i % 7 == 0 ? 500 : 1 + i % 50;
            assert_int_equal(object[i][0], (uint8_t)i);
            assert_int_equal(object[i][n - 1], (uint8_t)i);
            pool_give(&p, object[i], n);
        }
    }
    pool_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_is_reduced),
        cmocka_unit_test(test_unacknowledged_waits),
        cmocka_unit_test(test_orphan_keeps_its_ids),
        cmocka_unit_test(test_orphan_keeps_its_counters),
        cmocka_unit_test(test_rebound_once),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_many_resumptions),
        cmocka_unit_test(test_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
