/* test_bodies.c - what bodies.c makes of the payloads in records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bodies.h"
#include "sse.h"

/* What came out last. */
struct seen {
    unsigned count;
    enum record_kind kind;
    struct rec_body body; /* its slices are those of the payload */
    enum rpc_kind first;
    unsigned oddities;
    uint8_t sha256[32];
    bool has_sha256;
    bool has_detail;
};

static void see(void *ctx, struct record *rec)
{
    struct seen *s = ctx;

    s->count++;
    s->kind = rec->kind;
    if (rec->kind != REC_EVENT && rec->kind != REC_BODY && rec->kind != REC_REQUEST)
        return;
    s->body = rec->kind == REC_EVENT     ? rec->event.body
              : rec->kind == REC_REQUEST ? rec->request.body
                                         : rec->body;
    s->oddities = rec->kind == REC_EVENT ? rec->event.oddities : 0;
    s->first = s->body.count > 0 ? s->body.msg[0].kind : RPC_OTHER;
    s->has_sha256 = s->body.sha256 != NULL;
    if (s->has_sha256)
        memcpy(s->sha256, s->body.sha256, sizeof(s->sha256));
    s->has_detail = s->body.detail != NULL;
}

static struct record event_of(struct slice data, bool whole)
{
    struct record rec = { .kind = REC_EVENT, .exchange = 1 };

    rec.event.dispatched = true;
    rec.event.data = data;
    rec.event.body = (struct rec_body){ .status = RPC_EMPTY,
                                        .present = data.len > 0,
                                        .whole = whole,
                                        .payload = data,
                                        .bytes = data.len };
    return rec;
}

static void put(struct bodies *b, struct record *rec)
{
    struct record_sink sink = bodies_sink(b);

    sink.put(sink.ctx, rec);
}

static void test_status(void **state)
{
    const struct {
        struct slice data;
        bool whole;
        enum rpc_status status;
        bool bad_utf8;
    } cases[] = {
        { SLICE_LIT("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"), true, RPC_OK, false },
        { SLICE_LIT("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"), false, RPC_EMPTY, false },
        { SLICE_LIT("{\"a\":\"\xff\"}"), true, RPC_NOT_JSON, true },
        { SLICE_LIT("{\"a\":\"\xff\"}"), false, RPC_EMPTY, true },
        { SLICE_LIT("plain words"), true, RPC_NOT_JSON, false },
        { SLICE_LIT("plain \xc3("), true, RPC_NOT_JSON, true },
        { SLICE_LIT("\xc3\n\xa9"), true, RPC_NOT_JSON, true },
        { SLICE_LIT(""), true, RPC_EMPTY, false },
        { SLICE_LIT("7"), true, RPC_NOT_OBJECT, false },
    };
    struct seen seen = { 0 };
    struct bodies *b = bodies_new((struct record_sink){ .put = see, .ctx = &seen });

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct record rec = event_of(cases[i].data, cases[i].whole);
        put(b, &rec);
        assert_int_equal(seen.count, i + 1);
        assert_int_equal(seen.body.status, cases[i].status);
        assert_int_equal(seen.oddities, cases[i].bad_utf8 ? SSE_BAD_UTF8 : 0);
        assert_int_equal(seen.body.count, cases[i].status == RPC_OK);
    }
    bodies_free(b);
}

/* An event without data has no body to be read, and other records pass as they are. */
static void test_others(void **state)
{
    struct seen seen = { 0 };
    struct bodies *b = bodies_new((struct record_sink){ .put = see, .ctx = &seen });
    struct record rec = event_of(SLICE_LIT(""), true);

    (void)state;
    rec.event.dispatched = false;
    rec.event.body = (struct rec_body){ 0 };
    put(b, &rec);
    assert_int_equal(seen.body.status, RPC_OK);
    assert_int_equal(seen.body.count, 0);
    for (int kind = REC_COMMENT; kind <= REC_NOTE; kind++) {
        if (kind == REC_BODY)
            continue;
        rec = (struct record){ .kind = (enum record_kind)kind };
        put(b, &rec);
        assert_int_equal(seen.kind, kind);
    }
    bodies_free(b);
}

static void test_digests(void **state)
{
    static const uint8_t abc[] = { 0xba, 0x78, 0x16, 0xbf }; /* FIPS 180-4 */
    struct seen seen = { 0 };
    struct bodies *b = bodies_new((struct record_sink){ .put = see, .ctx = &seen });
    struct record rec = event_of(SLICE_LIT("abc"), true);

    (void)state;
    put(b, &rec);
    assert_true(seen.body.xxh3 == 0);
    assert_false(seen.has_sha256);
    bodies_want_digests(b, false);
    put(b, &rec);
    assert_true(seen.body.xxh3 == hash_bytes(SLICE_LIT("abc")));
    assert_false(seen.has_sha256);
    bodies_want_digests(b, true);
    put(b, &rec);
    assert_true(seen.has_sha256);
    assert_memory_equal(seen.sha256, abc, sizeof(abc));
    bodies_free(b);
}

static void test_detail(void **state)
{
    struct seen seen = { 0 };
    struct bodies *b = bodies_new((struct record_sink){ .put = see, .ctx = &seen });
    struct record rec = { .kind = REC_REQUEST, .exchange = 1 };

    (void)state;
    rec.request.body = (struct rec_body){
        .whole = true,
        .present = true,
        .payload = SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
                             "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                             "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}"),
    };
    put(b, &rec);
    assert_int_equal(seen.first, RPC_REQUEST);
    assert_true(seen.has_detail);
    rec = (struct record){ .kind = REC_BODY, .exchange = 1 };
    rec.body = (struct rec_body){ .whole = true,
                                  .present = true,
                                  .payload = SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":0,"
                                                       "\"result\":{}}") };
    put(b, &rec);
    assert_int_equal(seen.first, RPC_RESULT);
    assert_false(seen.has_detail);
    bodies_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_detail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
