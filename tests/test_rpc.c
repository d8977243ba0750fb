/* test_rpc.c - the JSON-RPC scanner: envelopes, digests, what is no JSON, ids; against jansson. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "rpc.h"
#include "rpc_same.h"

static int setup(void **state)
{
    *state = rpc_scanner_new();
    return 0;
}

static int teardown(void **state)
{
    rpc_scanner_free(*state);
    return 0;
}

#define ASSERT_TEXT(s, want) assert_true(slice_eq((s), slice_str(want)))

static const struct rpc *scan_one(struct rpc_scanner *sc, const char *text)
{
    enum rpc_status st = rpc_scan(sc, slice_str(text));

    if (st != RPC_OK || sc->count != 1)
        print_error("%s: %s at %zu\n", text, rpc_status_text(st), sc->error_at);
    assert_int_equal(st, RPC_OK);
    assert_int_equal(sc->count, 1);
    return sc->msg;
}

/* envelopes */

struct envelope_case {
    const char *text;
    enum rpc_kind kind;
    unsigned flags;
    enum rpc_id_type id;
    const char *method; /* NULL: none */
    const char *name;
    const char *version;
    const char *body;
};

#define V2  "\"jsonrpc\":\"2.0\""
#define MCP "io.modelcontextprotocol/"

static const struct envelope_case envelopes[] = {
    { "{}", RPC_OTHER, RPC_EMPTY_OBJECT, RPC_ID_NONE, NULL, NULL, NULL, NULL },
    { "{\"a\":1}", RPC_OTHER, 0, RPC_ID_NONE, NULL, NULL, NULL, NULL },
    { "{" V2 ",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST, RPC_VERSION_OK, RPC_ID_INT, "ping",
      NULL, NULL, NULL },
    { " { \"method\" : \"ping\" , \"id\" : \"x\" , \"jsonrpc\" : \"2\\u002e0\" } ", RPC_REQUEST,
      RPC_VERSION_OK, RPC_ID_STRING, "ping", NULL, NULL, NULL },
    { "{\"\\u0069d\":null,\"m\\u0065thod\":\"ping\",\"jsonrpc\":2.0}", RPC_REQUEST, 0, RPC_ID_NULL,
      "ping", NULL, NULL, NULL },
    { "{" V2 ",\"id\":1.5,\"method\":\"a\\/b\"}", RPC_REQUEST, RPC_VERSION_OK, RPC_ID_BAD, "a\\/b",
      NULL, NULL, NULL },
    { "{" V2 ",\"method\":\"notifications/initialized\"}", RPC_NOTIFICATION, RPC_VERSION_OK,
      RPC_ID_NONE, "notifications/initialized", NULL, NULL, NULL },
    { "{" V2 ",\"id\":1,\"method\":7}", RPC_OTHER, RPC_VERSION_OK, RPC_ID_INT, NULL, NULL, NULL,
      NULL },
    { "{" V2 ",\"id\":1,\"result\":{\"a\":[{\"id\":2,\"method\":\"no\"}]}}", RPC_RESULT,
      RPC_VERSION_OK | RPC_HAS_RESULT, RPC_ID_INT, NULL, NULL, NULL,
      "{\"a\":[{\"id\":2,\"method\":\"no\"}]}" },
    { "{" V2 ",\"id\":1,\"result\":{}}", RPC_RESULT,
      RPC_VERSION_OK | RPC_HAS_RESULT | RPC_RESULT_EMPTY, RPC_ID_INT, NULL, NULL, NULL, "{}" },
    { "{" V2 ",\"id\":1,\"result\":{\"_meta\":{}}}", RPC_RESULT,
      RPC_VERSION_OK | RPC_HAS_RESULT | RPC_RESULT_EMPTY, RPC_ID_INT, NULL, NULL, NULL,
      "{\"_meta\":{}}" },
    { "{" V2 ",\"id\":1,\"result\":\"text\"}", RPC_RESULT, RPC_VERSION_OK | RPC_HAS_RESULT,
      RPC_ID_INT, NULL, NULL, NULL, "\"text\"" },
    { "{" V2 ",\"id\":1,\"result\":null}", RPC_RESULT, RPC_VERSION_OK | RPC_HAS_RESULT, RPC_ID_INT,
      NULL, NULL, NULL, "null" },
    { "{" V2 ",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"resultType\":\"complete\","
      "\"task\":{}}}",
      RPC_RESULT, RPC_VERSION_OK | RPC_HAS_RESULT | RPC_HAS_RESULT_TYPE | RPC_HAS_TASK, RPC_ID_INT,
      NULL, NULL, "2025-06-18",
      "{\"protocolVersion\":\"2025-06-18\",\"resultType\":\"complete\",\"task\":{}}" },
    { "{" V2 ",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}", RPC_ERROR,
      RPC_VERSION_OK | RPC_HAS_ERROR, RPC_ID_INT, NULL, NULL, NULL,
      "{\"code\":-32601,\"message\":\"no\"}" },
    { "{" V2 ",\"id\":null,\"error\":{\"code\":1.0,\"message\":\"no\"}}", RPC_ERROR,
      RPC_VERSION_OK | RPC_HAS_ERROR | RPC_ERROR_MALFORMED, RPC_ID_NULL, NULL, NULL, NULL,
      "{\"code\":1.0,\"message\":\"no\"}" },
    { "{" V2 ",\"error\":{\"code\":1}}", RPC_ERROR,
      RPC_VERSION_OK | RPC_HAS_ERROR | RPC_ERROR_MALFORMED, RPC_ID_NONE, NULL, NULL, NULL,
      "{\"code\":1}" },
    { "{" V2 ",\"error\":{\"code\":1,\"message\":\"a\",\"code\":\"b\"}}", RPC_ERROR,
      RPC_VERSION_OK | RPC_HAS_ERROR | RPC_ERROR_MALFORMED, RPC_ID_NONE, NULL, NULL, NULL,
      "{\"code\":1,\"message\":\"a\",\"code\":\"b\"}" },
    { "{" V2 ",\"error\":\"no\"}", RPC_ERROR, RPC_VERSION_OK | RPC_HAS_ERROR | RPC_ERROR_MALFORMED,
      RPC_ID_NONE, NULL, NULL, NULL, "\"no\"" },
    { "{\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"a\"}}", RPC_RESULT,
      RPC_HAS_RESULT | RPC_HAS_ERROR, RPC_ID_INT, NULL, NULL, NULL, "1" },
    { "{\"id\":1,\"result\":{},\"method\":\"m\",\"params\":[1]}", RPC_REQUEST,
      RPC_HAS_RESULT | RPC_RESULT_EMPTY, RPC_ID_INT, "m", NULL, NULL, "[1]" },
    { "{\"id\":1,\"id\":\"2\",\"method\":\"a\",\"method\":\"b\"}", RPC_REQUEST, RPC_DUPLICATE_KEYS,
      RPC_ID_STRING, "b", NULL, NULL, NULL },
    { "{\"method\":\"m\",\"params\":{\"name\":\"a\",\"progress\":1},\"params\":{\"uri\":\"u\"}}",
      RPC_NOTIFICATION, RPC_DUPLICATE_KEYS, RPC_ID_NONE, "m", "u", NULL, "{\"uri\":\"u\"}" },
    { "{\"x\":1,\"x\":2}", RPC_OTHER, 0, RPC_ID_NONE, NULL, NULL, NULL, NULL },
    /* params */
    { "{\"method\":\"m\",\"params\":{\"uri\":\"u\",\"taskId\":\"t\",\"name\":\"n\"}}",
      RPC_NOTIFICATION, 0, RPC_ID_NONE, "m", "n", NULL,
      "{\"uri\":\"u\",\"taskId\":\"t\",\"name\":\"n\"}" },
    { "{\"method\":\"m\",\"params\":{\"taskId\":\"t\",\"name\":3}}", RPC_NOTIFICATION, 0,
      RPC_ID_NONE, "m", "t", NULL, "{\"taskId\":\"t\",\"name\":3}" },
    { "{\"method\":\"m\",\"params\":{\"arguments\":{\"name\":\"no\",\"_meta\":{\"" MCP
      "logLevel\":\"info\"}}}}",
      RPC_NOTIFICATION, 0, RPC_ID_NONE, "m", NULL, NULL,
      "{\"arguments\":{\"name\":\"no\",\"_meta\":{\"" MCP "logLevel\":\"info\"}}}" },
    { "{\"method\":\"m\",\"params\":{\"_meta\":{\"" MCP "protocolVersion\":\"2026-07-28\",\"" MCP
      "clientCapabilities\":{},\"" MCP "logLevel\":\"info\",\"" MCP "related-task\":{\"taskId\":"
      "\"x\"}},\"task\":{}}}",
      RPC_NOTIFICATION,
      RPC_META_VERSION | RPC_META_CAPABILITIES | RPC_META_LOG_LEVEL | RPC_RELATED_TASK |
          RPC_HAS_TASK,
      RPC_ID_NONE, "m", NULL, "2026-07-28",
      "{\"_meta\":{\"" MCP "protocolVersion\":\"2026-07-28\",\"" MCP
      "clientCapabilities\":{},\"" MCP "logLevel\":\"info\",\"" MCP
      "related-task\":{\"taskId\":\"x\"}},\"task\":{}}" },
    { "{\"method\":\"m\",\"params\":{\"protocolVersion\":\"a\",\"_meta\":{\"" MCP
      "protocolVersion\":\"b\"}}}",
      RPC_NOTIFICATION, RPC_META_VERSION, RPC_ID_NONE, "m", NULL, "a",
      "{\"protocolVersion\":\"a\",\"_meta\":{\"" MCP "protocolVersion\":\"b\"}}" },
    { "{\"method\":\"m\",\"params\":{\"_meta\":{\"" MCP "logLevel\":\"info\"},\"_meta\":{}}}",
      RPC_NOTIFICATION, 0, RPC_ID_NONE, "m", NULL, NULL,
      "{\"_meta\":{\"" MCP "logLevel\":\"info\"},\"_meta\":{}}" },
    { "{\"method\":\"m\",\"params\":null}", RPC_NOTIFICATION, 0, RPC_ID_NONE, "m", NULL, NULL,
      "null" },
};

static bool same_text(struct slice got, const char *want)
{
    return want ? slice_eq(got, slice_str(want)) : got.ptr == NULL;
}

static void test_envelopes(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(envelopes); i++) {
        const struct envelope_case *c = &envelopes[i];
        const struct rpc *m = scan_one(*state, c->text);

        if (m->kind != c->kind || m->flags != c->flags || m->id.type != c->id ||
            !same_text(m->method, c->method) || !same_text(m->name, c->name) ||
            !same_text(m->protocol_version, c->version) || !same_text(m->body, c->body))
            fail_msg("%s: kind %d, flags %x, id %d", c->text, (int)m->kind, m->flags,
                     (int)m->id.type);
        assert_true(slice_eq(m->text, slice_trim(slice_str(c->text))));
    }
}

static void test_members(void **state)
{
    const struct rpc *m;

    m = scan_one(*state,
                 "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\","
                 "\"progress\":-12.5e1,\"total\":200,\"_meta\":{\"progressToken\":4}}}");
    assert_true(m->flags & RPC_HAS_PROGRESS);
    assert_true(m->progress == -125 && m->total == 200);
    assert_int_equal(m->token.type, RPC_ID_STRING);
    ASSERT_TEXT(m->token.text, "t");

    m = scan_one(*state, "{\"method\":\"x\",\"params\":{\"progress\":\"1\",\"_meta\":{"
                         "\"progressToken\":4,\"" MCP "subscriptionId\":\"s\"},\"requestId\":12}}");
    assert_false(m->flags & RPC_HAS_PROGRESS);
    ASSERT_TEXT(m->token.text, "4");
    ASSERT_TEXT(m->cancelled.text, "12");
    ASSERT_TEXT(m->subscription.text, "s");

    m = scan_one(*state, "{\"method\":\"x\",\"params\":{\"progress\":1e999}}");
    assert_false(m->flags & RPC_HAS_PROGRESS);

    m = scan_one(*state, "{\"id\":1,\"result\":{\"requestState\":\"st\",\"resultType\":"
                         "\"input_required\",\"_meta\":{\"" MCP "subscriptionId\":9}}}");
    ASSERT_TEXT(m->request_state, "st");
    ASSERT_TEXT(m->result_type, "input_required");
    ASSERT_TEXT(m->subscription.text, "9");

    m = scan_one(*state, "{\"id\":1,\"error\":{\"message\":\"a\\nb\",\"code\":-32000}}");
    assert_int_equal(m->error_code, -32000);
    ASSERT_TEXT(m->error_message, "a\\nb");
    m = scan_one(*state, "{\"error\":{\"message\":\"\",\"code\":-99999999999999999999}}");
    assert_int_equal(m->error_code, INT64_MIN);
    assert_false(m->flags & RPC_ERROR_MALFORMED);
}

/* batches */

static void test_batch(void **state)
{
    struct rpc_scanner *sc = *state;

    assert_int_equal(rpc_scan(sc, SLICE_LIT("[]")), RPC_OK);
    assert_true(sc->batch);
    assert_int_equal(sc->count, 0);

    assert_int_equal(rpc_scan(sc, SLICE_LIT(" [ {\"id\":1,\"method\":\"a\",\"params\":{\"name\":"
                                            "\"n\"}} , 5, [{\"method\":\"no\"}], {}, "
                                            "{\"result\":1} ]\n")),
                     RPC_OK);
    assert_int_equal(sc->count, 5);
    static const enum rpc_kind kinds[] = { RPC_REQUEST, RPC_OTHER, RPC_OTHER, RPC_OTHER,
                                           RPC_RESULT };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(sc->msg[i].kind, kinds[i]);
        assert_true(sc->msg[i].flags & RPC_ELEMENT);
        assert_false(sc->msg[i].flags & RPC_EMPTY_OBJECT);
    }
    ASSERT_TEXT(sc->msg[1].text, "5");
    ASSERT_TEXT(sc->msg[2].text, "[{\"method\":\"no\"}]");
    assert_int_equal(sc->msg[4].id.type, RPC_ID_NONE);
    assert_null(sc->msg[4].name.ptr);

    /* an element has the digest of the message on its own */
    uint64_t digest = sc->msg[4].digest;
    assert_true(scan_one(sc, "{\"result\": 1}")->digest == digest);
    assert_false(sc->batch);

    assert_int_equal(rpc_scan(sc, SLICE_LIT("[{\"id\":1},")), RPC_NOT_JSON);
    assert_int_equal(sc->count, 0);
}

static void test_batch_limit(void **state)
{
    struct rpc_scanner *sc = *state;
    size_t n = RPC_MAX_BATCH + 2;
    char *text = mem_alloc(3 * n + 2);

    text[0] = '[';
    for (size_t i = 0; i < n; i++) {
        text[1 + 3 * i] = '{';
        text[2 + 3 * i] = '}';
        text[3 + 3 * i] = i + 1 < n ? ',' : ']';
    }
    assert_int_equal(rpc_scan(sc, slice_str(text)), RPC_OK);
    assert_int_equal(sc->count, RPC_MAX_BATCH);
    assert_true(sc->too_many);
    text[3 * n] = '}';
    assert_int_equal(rpc_scan(sc, slice_str(text)), RPC_NOT_JSON);
    assert_int_equal(sc->error_at, 3 * n);
    assert_int_equal(rpc_scan(sc, SLICE_LIT("[{}]")), RPC_OK);
    assert_false(sc->too_many);
    free(text);
}

/* digests */

static uint64_t digest(struct rpc_scanner *sc, const char *text)
{
    enum rpc_status st = rpc_scan(sc, slice_str(text));

    assert_true(st == RPC_OK || st == RPC_NOT_OBJECT);
    return sc->digest;
}

static void test_digests_equal(void **state)
{
    static const char *const pairs[][2] = {
        { "{\"a\":1,\"b\":2}", "{ \"b\" : 2,\r\n\t\"a\" : 1 }" },
        { "{\"a\":{\"x\":1,\"y\":[1,2]},\"b\":2}", "{\"b\":2,\"a\":{\"y\":[1, 2],\"x\":1}}" },
        { "[\"A\"]", "[\"\\u0041\"]" },
        { "[\"/\"]", "[\"\\/\"]" },
        { "[\"\\n\\t\\\"\\\\\"]", "[\"\\u000A\\u0009\\u0022\\u005c\"]" },
        { "[\"\xc3\xa9\"]", "[\"\\u00e9\"]" },
        { "[\"\xf0\x9f\x98\x80\"]", "[\"\\ud83d\\uDE00\"]" },
        { "{\"\\u0061\":null}", "{\"a\":null}" },
        { "[]", "[ ]" },
        { "{}", "{\n}" },
        { "\"x\"", " \"\\u0078\"" },
    };

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (digest(*state, pairs[i][0]) != digest(*state, pairs[i][1]))
            fail_msg("%s is not as %s", pairs[i][0], pairs[i][1]);
    }
}

static const char *const distinct[] = {
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "[[],[]]",
    "null",
    "[null]",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "1.0",
    "10",
    "1e0",
    "1E0",
    "\"1\"",
    "\"\"",
    "\"null\"",
    "[1,2]",
    "[2,1]",
    "[[1],2]",
    "[1,[2]]",
    "[1,2,null]",
    "[\"1,2\"]",
    "{\"a\":1}",
    "{\"a\":\"1\"}",
    "{\"a\":[1]}",
    "{\"b\":1}",
    "{\"1\":\"a\"}",
    "{\"a\":\"b\"}",
    "{\"b\":\"a\"}",
    "{\"a\":1,\"b\":2}",
    "{\"a\":2,\"b\":1}",
    "{\"a\":1,\"a\":1}",
    "{\"a\":{\"b\":1}}",
    "{\"a\":{},\"b\":1}",
    "{\"\":1}",
    "[\"a\",\"b\"]",
    "[\"ab\"]",
    "[\"\\u0000\"]",
    "[\"\"]",
    "[\"\\ud83d\"]",
    "[\"\\ude00\"]",
    "[\"\\ud83d \\ude00\"]",
    "[\"\\ude00\\ud83d\"]",
    "[\"\\ud83d\\ude00\"]",
    "[\"\\ud83d\\ud83d\\ude00\"]",
    "[\"\\\\u0041\"]",
    "[\"A\"]",
};

/* The digests of the texts before text i are in seen[]. */
static void check_new(const uint64_t *seen, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (seen[i] == seen[j])
            fail_msg("%s is as %s", distinct[i], distinct[j]);
    }
}

static void test_digests_differ(void **state)
{
    uint64_t seen[ARRAY_LEN(distinct)];

    for (size_t i = 0; i < ARRAY_LEN(distinct); i++) {
        seen[i] = digest(*state, distinct[i]);
        check_new(seen, i);
    }
}

/* They are stored and compared between machines: the values may never change. */
static void test_digests_fixed(void **state)
{
    assert_true(digest(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,true,null]}}") ==
                UINT64_C(0xbd66e88f10182095));
    assert_true(digest(*state, "[\"a longer string that takes another path, \\u00e9\"]") ==
                UINT64_C(0x371a05b6033415ca));
}

/* Escapes anywhere in a string of any length, below and above the block size. */
static void test_digest_long_strings(void **state)
{
    static const size_t sizes[] = { 1, 15, 16, 4095, 4096, 4097, 8191, 8192, 8193, 20000 };

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        char *text = mem_alloc(n + 16);
        text[0] = '"';
        for (size_t k = 0; k < n; k++)
            text[1 + k] = (char)('a' + k % 26);
        text[1 + n] = '"';
        uint64_t want = digest(*state, text);
        for (size_t at = 0; at < n; at += at < 4090 && n > 40 ? 31 : 1) {
            char *bent = mem_alloc(n + 16);
            snprintf(bent, n + 16, "%.*s\\u%04x%s", (int)at + 1, text, text[1 + at], text + at + 2);
            assert_true(digest(*state, bent) == want);
            free(bent);
            if (at > 4200)
                break;
        }
        struct rpc_id a = rpc_id_of_token(slice_str(text));
        struct rpc_id b = rpc_id_of_string((struct slice){ (const uint8_t *)text + 1, n });
        assert_true(rpc_id_eq(&a, &b));
        free(text);
    }
}

/* A simple escape anywhere, one or two of them, is what it stands for, written in full. */
static void test_digest_simple_escapes(void **state)
{
    static const size_t sizes[] = { 0, 1, 14, 15, 16, 17, 31, 32, 40, 4094, 4095, 4096, 4100 };
    static const char *const escapes[][2] = {
        { "\\n", "\\u000a" }, { "\\\"", "\\u0022" },          { "\\\\", "\\u005C" }, { "\\/", "/" },
        { "\\b", "\\u0008" }, { "\\t\\r", "\\u0009\\u000D" }, { "\\f", "\\u000C" },
    };

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        char *plain = mem_alloc(n + 1);
        char *bent = mem_alloc(n + 100);
        char *full = mem_alloc(n + 100);
        memset(plain, 'x', n);
        for (size_t at = 0; at <= n; at += n > 100 && at > 40 && at + 40 < n ? 97 : 1) {
            const char *const *e = escapes[at % ARRAY_LEN(escapes)];
            snprintf(bent, n + 100, "\"%.*s%s%s%s\"", (int)at, plain, e[0], plain + at, e[0]);
            snprintf(full, n + 100, "\"%.*s%s%s%s\"", (int)at, plain, e[1], plain + at, e[1]);
            assert_true(digest(*state, bent) == digest(*state, full));
            snprintf(full, n + 100, "\"%.*s%s%s!%s\"", (int)at, plain, e[1], plain + at, e[1]);
            assert_true(digest(*state, bent) != digest(*state, full));
        }
        free(full);
        free(bent);
        free(plain);
    }
}

static void test_body_digest(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool same;
    } cases[] = {
        { "{\"id\":1,\"method\":\"m\",\"params\":{\"a\":1,\"_meta\":{\"progressToken\":1}}}",
          "{\"id\":2,\"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":2},\"a\":1}}",
          true },
        { "{\"method\":\"m\",\"params\":{\"_meta\":{}}}", "{\"method\":\"m\",\"params\":{}}",
          true },
        { "{\"method\":\"m\",\"params\":{\"a\":1}}", "{\"method\":\"m\",\"params\":{\"a\":2}}",
          false },
        { "{\"method\":\"m\",\"params\":{\"x\":{\"_meta\":1}}}",
          "{\"method\":\"m\",\"params\":{\"x\":{}}}", false },
        { "{\"id\":1,\"result\":{\"a\":1}}", "{\"result\":{\"a\":1},\"id\":2}", true },
        { "{\"id\":1,\"result\":{\"a\":1}}", "{\"id\":1,\"result\":{\"a\":1,\"_meta\":{}}}",
          false },
        { "{\"id\":1,\"error\":{\"code\":1,\"message\":\"a\"}}",
          "{\"error\":{\"message\":\"a\",\"code\":1},\"id\":2}", true },
        { "{\"method\":\"m\",\"params\":[1]}", "{\"method\":\"m\",\"params\":[2]}", false },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t a = scan_one(*state, cases[i].a)->body_digest;
        uint64_t b = scan_one(*state, cases[i].b)->body_digest;
        if ((a == b) != cases[i].same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
    /* a result's body digest is that of the value on its own */
    uint64_t body = scan_one(*state, "{\"id\":1,\"result\":{\"b\":[1],\"a\":2}}")->body_digest;
    assert_true(digest(*state, "{\"a\":2,\"b\":[1]}") == body);
}

/* what is no JSON */

static const struct {
    struct slice text;
    size_t at;
} broken[] = {
#define BAD(s, at)                                                                                 \
    {                                                                                              \
        { (const uint8_t *)(s), sizeof(s) - 1 }, at                                                \
    }
    BAD("{", 1),
    BAD("[", 1),
    BAD("}", 0),
    BAD("{]", 1),
    BAD("[}", 1),
    BAD("[1,]", 3),
    BAD("[,1]", 1),
    BAD("[1 2]", 3),
    BAD("{\"a\"}", 4),
    BAD("{\"a\":}", 5),
    BAD("{\"a\":1,}", 7),
    BAD("{\"a\":1 \"b\":2}", 7),
    BAD("{a:1}", 1),
    BAD("{1:1}", 1),
    BAD("{'a':1}", 1),
    BAD("{}x", 2),
    BAD("{} {}", 3),
    BAD("[1]]", 3),
    BAD("\xef\xbb\xbf{}", 0),
    BAD("//\n{}", 0),
    BAD("[tru]", 4),
    BAD("[truee]", 5),
    BAD("[True]", 1),
    BAD("[nul", 4),
    BAD("[NaN]", 1),
    BAD("[-Infinity]", 2),
    BAD("[01]", 2),
    BAD("[-]", 2),
    BAD("[+1]", 1),
    BAD("[.5]", 1),
    BAD("[1.]", 3),
    BAD("[1.e1]", 3),
    BAD("[1e]", 3),
    BAD("[1e+]", 4),
    BAD("[1e5.5]", 4),
    BAD("[-01]", 3),
    BAD("[0x1]", 2),
    BAD("-", 1),
    BAD("\"abc", 4),
    BAD("\"abc\\", 5),
    BAD("\"\\\"", 3),
    BAD("[\"a\nb\"]", 3),
    BAD("[\"a\0b\"]", 3),
    BAD("[\"0123456789abcdefghij\x1f\"]", 22),
    BAD("[\"\\x41\"]", 3),
    BAD("[\"\\\0\"]", 3),
    BAD("[\"\\U0041\"]", 3),
    BAD("[\"\\u004\"]", 7),
    BAD("[\"\\u00g1\"]", 6),
    BAD("[\"\\ud83d\\u00\"]", 12),
    BAD("[\"\x80\"]", 2),
    BAD("[\"ok \xc3\"]", 5),
    BAD("[\"\xc0\xaf\"]", 2),
    BAD("[\"\xed\xa0\x80\"]", 2),
    BAD("[\"\xf4\x90\x80\x80\"]", 2),
    BAD("[\"\\n\xff\"]", 4),
    BAD("[\"\xc3\xa9\xff\"]", 4),
    BAD("{\"\xff\":1}", 2),
    BAD("\0", 0),
    BAD("[1\0]", 2),
    BAD("[1,\f2]", 3),
    BAD("[\xc2\xa0]", 1),
};

static void test_invalid(void **state)
{
    struct rpc_scanner *sc = *state;

    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        enum rpc_status st = rpc_scan(sc, broken[i].text);
        if (st != RPC_NOT_JSON || sc->error_at != broken[i].at)
            fail_msg(SLICE_FMT ": %s, at %zu", SLICE_ARG(broken[i].text), rpc_status_text(st),
                     sc->error_at);
        assert_int_equal(sc->count, 0);
    }
}

static void test_status(void **state)
{
    assert_int_equal(rpc_scan(*state, (struct slice){ 0 }), RPC_EMPTY);
    assert_int_equal(rpc_scan(*state, SLICE_LIT(" \r\n\t")), RPC_EMPTY);
    assert_int_equal(rpc_scan(*state, SLICE_LIT("\"x\"")), RPC_NOT_OBJECT);
    assert_int_equal(rpc_scan(*state, SLICE_LIT(" -1.5E+3 ")), RPC_NOT_OBJECT);
    assert_int_equal(rpc_scan(*state, SLICE_LIT("null")), RPC_NOT_OBJECT);
    assert_string_equal(rpc_status_text(RPC_NOT_JSON), "not JSON");
}

/* Every start of a message is no JSON, wrong at its end. */
static void test_cut(void **state)
{
    const char *text = "{\"jsonrpc\":\"2.0\",\"id\":\"a\\u00e9\xc3\xa9\",\"params\":[true,-1.5e+3,"
                       "{\"a\":null}]}";
    struct rpc_scanner *sc = *state;

    for (size_t n = 1; n < strlen(text); n++) {
        char *part = mem_dup((struct slice){ (const uint8_t *)text, n });
        uint8_t *exact = mem_grow(part, n); /* without the NUL: a read past the end shows */
        assert_int_equal(rpc_scan(sc, (struct slice){ exact, n }), RPC_NOT_JSON);
        assert_true(sc->error_at == n || (uint8_t)text[sc->error_at] == 0xc3);
        free(exact);
    }
}

static void test_depth(void **state)
{
    struct rpc_scanner *sc = *state;
    char text[2 * RPC_MAX_DEPTH + 8] = { 0 };

    memset(text, '[', RPC_MAX_DEPTH);
    memset(text + RPC_MAX_DEPTH, ']', RPC_MAX_DEPTH);
    assert_int_equal(rpc_scan(sc, slice_str(text)), RPC_OK);
    memset(text, '[', RPC_MAX_DEPTH + 1);
    assert_int_equal(rpc_scan(sc, slice_str(text)), RPC_TOO_DEEP);
    assert_int_equal(sc->error_at, RPC_MAX_DEPTH);
    assert_int_equal(sc->count, 0);
    assert_int_equal(rpc_scan(sc, SLICE_LIT("{}")), RPC_OK);
}

/* ids */

static void test_ids(void **state)
{
    enum relation { EQUAL, CONVERTED, ROUNDED, OTHER };
    static const struct {
        const char *a;
        const char *b;
        enum relation relation;
    } cases[] = {
        { "1", "1", EQUAL },
        { "\"a\"", "\"\\u0061\"", EQUAL },
        { "null", "null", EQUAL },
        { "1", "\"1\"", CONVERTED },
        { "\"\\u0031\"", "1", CONVERTED },
        { "12345678901234567890123", "\"12345678901234567890123\"", CONVERTED },
        { "1", "2", OTHER },
        { "1", "\"01\"", OTHER },
        { "1", "1.0", OTHER },
        { "null", "\"null\"", OTHER },
        { "\"a\"", "\"b\"", OTHER },
        { "true", "\"true\"", OTHER },
        { "9007199254740993", "9007199254740992", ROUNDED },
        { "-9007199254740993", "-9007199254740992", ROUNDED },
        { "123456789012345678901234567890", "123456789012345678901234567891", ROUNDED },
        { "9007199254740991", "9007199254740992", OTHER },
        { "9007199254740993", "\"9007199254740992\"", OTHER },
        { "9007199254740993", "-9007199254740993", OTHER },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rpc_id a = rpc_id_of_token(slice_str(cases[i].a));
        struct rpc_id b = rpc_id_of_token(slice_str(cases[i].b));
        if (rpc_id_eq(&a, &b) != (cases[i].relation == EQUAL) ||
            rpc_id_eq_converted(&a, &b) != (cases[i].relation == CONVERTED) ||
            rpc_id_eq_converted(&b, &a) != (cases[i].relation == CONVERTED) ||
            rpc_id_eq_rounded(&a, &b) != (cases[i].relation == ROUNDED) ||
            rpc_id_eq_rounded(&b, &a) != (cases[i].relation == ROUNDED))
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
}

static void test_id_sources(void **state)
{
    struct rpc_id in_message = scan_one(*state, "{\"id\":\"a\\tb\",\"result\":1}")->id;
    struct rpc_id from_text = rpc_id_of_string(SLICE_LIT("a\tb"));
    struct rpc_id from_token = rpc_id_of_token(SLICE_LIT(" \"a\\u0009b\" "));

    assert_true(rpc_id_eq(&in_message, &from_text));
    assert_true(rpc_id_eq(&in_message, &from_token));
    ASSERT_TEXT(in_message.text, "a\\tb");
    ASSERT_TEXT(from_text.text, "a\tb");

    in_message = scan_one(*state, "{\"id\":9007199254740993,\"result\":1}")->id;
    from_token = rpc_id_of_token(SLICE_LIT("9007199254740993"));
    assert_true(rpc_id_eq(&in_message, &from_token));

    assert_int_equal(rpc_id_of_token(SLICE_LIT("")).type, RPC_ID_NONE);
    assert_int_equal(rpc_id_of_token(SLICE_LIT("null")).type, RPC_ID_NULL);
    assert_int_equal(rpc_id_of_token(SLICE_LIT("1.0")).type, RPC_ID_BAD);
    assert_int_equal(rpc_id_of_token(SLICE_LIT("1x")).type, RPC_ID_BAD);
    assert_int_equal(rpc_id_of_token(SLICE_LIT("{}")).type, RPC_ID_BAD);
    assert_int_equal(rpc_id_of_string((struct slice){ 0 }).type, RPC_ID_STRING);
}

/* A value from a log, not escaped, against the same in a message in any form. */
static void test_id_characters(void **state)
{
    static const size_t before[] = { 0, 3, 20, 4094, 4095, 4096, 9000 };
    char *plain = mem_alloc(10000);
    char *full = mem_alloc(10000);

    (void)state;
    memset(plain, 'x', 9000);
    for (unsigned c = 0; c < 128; c++) {
        for (size_t i = 0; i < ARRAY_LEN(before); i++) {
            size_t n = before[i];
            plain[n] = (char)c;
            plain[n + 1] = 'n';
            snprintf(full, 10000, "\"%.*s\\u%04Xn\"", (int)n, plain, c);
            struct rpc_id a = rpc_id_of_string((struct slice){ (uint8_t *)plain, n + 2 });
            struct rpc_id b = rpc_id_of_token(slice_str(full));
            assert_true(rpc_id_eq(&a, &b));
            if (c >= 0x20 && c != '"' && c != '\\') {
                snprintf(full, 10000, "\"%.*sn\"", (int)n + 1, plain);
                b = rpc_id_of_token(slice_str(full));
                assert_true(rpc_id_eq(&a, &b));
            }
            plain[n] = 'x';
        }
    }
    struct rpc_id line = rpc_id_of_string(SLICE_LIT("\n"));
    struct rpc_id two = rpc_id_of_string(SLICE_LIT("\\n"));
    struct rpc_id token = rpc_id_of_token(SLICE_LIT("\"\\\\n\""));
    assert_false(rpc_id_eq(&line, &two));
    assert_true(rpc_id_eq(&token, &two));
    free(full);
    free(plain);
}

/* against jansson */

struct text {
    char bytes[1024];
    size_t len;
    char close[16]; /* what is open */
    size_t depth;
    bool first; /* nothing in it yet */
    uint32_t seed;
};

static uint32_t pick(struct text *t, uint32_t n)
{
    t->seed = t->seed * 1664525 + 1013904223;
    return (t->seed >> 8) % n;
}

static void put(struct text *t, const char *s)
{
    for (; *s && t->len < sizeof(t->bytes); s++)
        t->bytes[t->len++] = *s;
}

static void put_one(struct text *t, const char *const *from, size_t count)
{
    put(t, from[pick(t, (uint32_t)count)]);
}

static void put_close(struct text *t)
{
    const char close[] = { t->close[--t->depth], '\0' };

    put(t, close);
    t->first = false;
}

static void put_open(struct text *t)
{
    bool array = pick(t, 2);

    put(t, array ? "[" : "{");
    t->close[t->depth++] = array ? ']' : '}';
    t->first = true;
}

/* One more member or element, with something wrong now and then. */
static void put_value(struct text *t)
{
    static const char *const scalars[] = {
        "0",
        "-1",
        "12",
        "3.5",
        "1e3",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\"",
        "\"\\n\\u00e9\"",
        "\"\\\\\"",
        "\"\xc3\xa9\"",
        "\"\\ud83d\\ude00\"",
        "-0.25E-2",
        "\"a long enough string of text\"",
    };
    static const char *const keys[] = { "\"a\":", "\"id\" :", "\"params\":", "\"\\u0062\":" };
    static const char *const noise[] = { ",", ":", "}", "]", "{", "[", "\"", "\\", "\x01", "1" };

    if (!t->first)
        put(t, pick(t, 3) ? "," : " ,\n");
    t->first = false;
    if (t->close[t->depth - 1] == '}')
        put_one(t, keys, ARRAY_LEN(keys));
    if (pick(t, 60) == 0)
        put_one(t, noise, ARRAY_LEN(noise));
    if (pick(t, 3) == 0 && t->depth < sizeof(t->close))
        put_open(t);
    else
        put_one(t, scalars, ARRAY_LEN(scalars));
}

/* Random pieces in an order that is often, but not always, JSON. */
static void make_text(struct text *t)
{
    t->len = 0;
    t->depth = 0;
    put_open(t);
    for (uint32_t n = pick(t, 30); n > 0 && t->depth > 0; n--) {
        if (pick(t, 4) == 0)
            put_close(t);
        else
            put_value(t);
    }
    while (t->depth > 0)
        put_close(t);
    char *bent = &t->bytes[pick(t, (uint32_t)t->len)];
    if (pick(t, 4) == 0)
        *bent = (char)(*bent ^ 1 << pick(t, 7));
    if (*bent == '\0') /* jansson skips a NUL after a number */
        *bent = '?';
}

/* jansson refuses numbers out of range and lone surrogates, which are JSON. */
static bool jansson_limit(const json_error_t *error)
{
    return json_error_code(error) == json_error_numeric_overflow ||
           strstr(error->text, "\\u") != NULL;
}

static void test_against_jansson(void **state)
{
    struct text t = { .seed = 20261130 };
    size_t valid = 0;
    size_t invalid = 0;

    for (int i = 0; i < 20000; i++) {
        json_error_t error;
        make_text(&t);
        json_t *root = json_loadb(t.bytes, t.len, JSON_ALLOW_NUL, &error);
        enum rpc_status st = rpc_scan(*state, (struct slice){ (uint8_t *)t.bytes, t.len });
        if (!root && jansson_limit(&error))
            continue;
        if ((root != NULL) != (st == RPC_OK))
            fail_msg("%.*s: jansson says %s, we %s", (int)t.len, t.bytes,
                     root ? "valid" : error.text, rpc_status_text(st));
        valid += root != NULL;
        invalid += root == NULL;
        json_decref(root);
    }
    assert_true(valid > 5000 && invalid > 2000);
}

/* What jansson writes of the same document in another order and form has the same digest. */
static void test_rewritten(void **state)
{
    static const size_t forms[] = { JSON_COMPACT, JSON_SORT_KEYS | JSON_INDENT(3),
                                    JSON_ENSURE_ASCII | JSON_INDENT(1),
                                    JSON_ESCAPE_SLASH | JSON_SORT_KEYS };
    const char *text =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"z\":[1,2,{\"k\":\"/\xc3\xa9\","
        "\"j\":null}],\"content\":[{\"type\":\"text\",\"text\":\"a\\n\xf0\x9f\x98\x80"
        "\"}],\"isError\":false}}";
    uint64_t want = scan_one(*state, text)->digest;
    json_t *root = json_loads(text, 0, NULL);

    assert_non_null(root);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        char *other = json_dumps(root, forms[i]);
        assert_true(scan_one(*state, other)->digest == want);
        free(other);
    }
    json_decref(root);
}

/* Payloads that begin alike are not read twice; that must not show. */

static const char *const alike[] = {
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%u,"
    "\"progress\":%u,\"message\":\"%u\"}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"_meta\":{"
    "\"progressToken\":%u},\"progress\":%u.5,\"total\":%u}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":%u}%u%u",
    "{\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":{\"n\":%u,"
    "\"deep\":{\"a\":[{\"b\":%u}]}}},\"jsonrpc\":\"2.0\",\"id\":%u}",
    "{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%u\"}],\"isError\":false},"
    "\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{},\"id\":%u}",
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"failed at "
    "%u\"},\"id\":\"%u-%u\"}",
    "{\"jsonrpc\":\"2.0\",\"params\":{\"name\":\"a\",\"uri\":\"b%u\"},\"params\":{\"taskId\":%u},"
    "\"method\":\"m\",\"id\":%u}",
    "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
    "progress\",\"params\":{\"progressToken\":%u}},"
    "{\"id\":%u,\"result\":{}},%u]",
    "  {\"jsonrpc\":\"2.0\", \"method\":\"notifications/cancelled\", \"params\": {\"requestId\": "
    "%u,"
    " \"reason\":\"%u %u\"}}",
    "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"some name\":1,\"another "
    "name\":%u,\"id\":%u}}}}}},\"z\":%u}",
};

/* What was learnt of objects that begin with a name is of no use where there is none. */
static void test_alike_but_empty(void **state)
{
    static const char *const after[] = { "{}}",        "{ }}",  "{1}}",        "{,\"a\":1}}",
                                         "{\"c\":4}}", "{\n}}", "{\"c\":4,}}", "{" };
    char text[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(after); i++) {
        struct rpc_scanner *sc = rpc_scanner_new();
        const char *const rest[] = { "{\"a\":1}}", "{\"a\":2}}", "{\"b\":2}}", after[i], after[i] };
        for (size_t k = 0; k < ARRAY_LEN(rest); k++) {
            snprintf(text, sizeof(text),
                     "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"params\":%s", rest[k]);
            assert_true(rpc_scans_as_new(sc, slice_str(text)));
            snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"as long as it is\",%s",
                     rest[k] + 1);
            assert_true(rpc_scans_as_new(sc, slice_str(text)));
        }
        rpc_scanner_free(sc);
    }
}

static void test_alike(void **state)
{
    struct text t = { .seed = 4711 };
    size_t wrong = 0;

    (void)state;
    struct rpc_scanner *sc = rpc_scanner_new();
    for (int i = 0; i < 20000; i++) {
        /* for a while few forms, so that each is learnt, and few numbers, so that some come again
         */
        uint32_t form = (uint32_t)i / 500 + pick(&t, i / 250 % 2 ? 3 : 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        int len = snprintf(t.bytes, sizeof(t.bytes), alike[form % ARRAY_LEN(alike)], pick(&t, 3),
                           pick(&t, 3), pick(&t, 1000));
#pragma GCC diagnostic pop
        size_t n = (size_t)len;
        if (pick(&t, 20) == 0)
            n = pick(&t, (uint32_t)n + 1);
        if (n > 0 && pick(&t, 20) == 0)
            t.bytes[pick(&t, (uint32_t)n)] ^= (char)(1 << pick(&t, 7));
        wrong += !rpc_scans_as_new(sc, (struct slice){ (uint8_t *)t.bytes, n });
    }
    assert_int_equal(wrong, 0);
    rpc_scanner_free(sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelopes),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_batch_limit),
        cmocka_unit_test(test_digests_equal),
        cmocka_unit_test(test_digests_differ),
        cmocka_unit_test(test_digests_fixed),
        cmocka_unit_test(test_digest_long_strings),
        cmocka_unit_test(test_digest_simple_escapes),
        cmocka_unit_test(test_body_digest),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_id_sources),
        cmocka_unit_test(test_id_characters),
        cmocka_unit_test(test_against_jansson),
        cmocka_unit_test(test_rewritten),
        cmocka_unit_test(test_alike_but_empty),
        cmocka_unit_test(test_alike),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
