/* test_json_out.c - documents are valid, escaped and the same every time; checked with jansson. */
#include "json_out.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>

struct doc {
    struct json_out j;
    char *text;
    size_t len;
};

static void start(struct doc *d, bool pretty)
{
    FILE *to;

    *d = (struct doc){ .text = NULL };
    to = open_memstream(&d->text, &d->len);
    assert_non_null(to);
    jout_init(&d->j, to, pretty);
}

static const char *ended(struct doc *d)
{
    fclose(d->j.to);
    return d->text;
}

static void write_all(struct json_out *j)
{
    struct rpc_id big = { .type = RPC_ID_INT, .text = SLICE_LIT("123456789012345678901234567890") };
    struct rpc_id text = { .type = RPC_ID_STRING, .text = SLICE_LIT("a\\u0062\\\"c") };
    struct rpc_id none = { .type = RPC_ID_NULL };

    jout_open(j, NULL, '{');
    jout_text(j, "a", "b");
    jout_text(j, "absent", NULL);
    jout_open(j, "empty", '[');
    jout_close(j);
    jout_row(j, "row");
    jout_u64(j, NULL, 1);
    jout_rpc_id(j, NULL, &big);
    jout_rpc_id(j, NULL, &text);
    jout_rpc_id(j, NULL, &none);
    jout_close(j);
    jout_open(j, "list", '[');
    jout_open(j, NULL, '{');
    jout_bool(j, "t", true);
    jout_i64(j, "n", -5);
    jout_close(j);
    jout_close(j);
    jout_time(j, "when", NS_PER_SEC);
    jout_time(j, "never", 0);
    jout_close(j);
}

static void test_layout(void **state)
{
    struct doc d;

    (void)state;
    start(&d, true);
    write_all(&d.j);
    assert_string_equal(ended(&d), "{\n"
                                   "  \"a\": \"b\",\n"
                                   "  \"empty\": [],\n"
                                   "  \"row\": [1, 123456789012345678901234567890, \"ab\\\"c\"],\n"
                                   "  \"list\": [\n"
                                   "    {\n"
                                   "      \"t\": true,\n"
                                   "      \"n\": -5\n"
                                   "    }\n"
                                   "  ],\n"
                                   "  \"when\": \"1970-01-01T00:00:01.000000000Z\"\n"
                                   "}\n");
    free(d.text);
}

static void test_one_line(void **state)
{
    struct doc d;

    (void)state;
    start(&d, false);
    write_all(&d.j);
    assert_string_equal(ended(&d),
                        "{\"a\":\"b\",\"empty\":[],\"row\":[1,123456789012345678901234567890,"
                        "\"ab\\\"c\"],\"list\":[{\"t\":true,\"n\":-5}],\"when\":"
                        "\"1970-01-01T00:00:01.000000000Z\"}\n");
    free(d.text);
}

static void test_escapes(void **state)
{
    static const struct {
        struct slice in;
        const char *out;
    } cases[] = {
        { { (const uint8_t *)"\x1b[2J", 4 }, "\"\\u001b[2J\"\n" },
        { { (const uint8_t *)"\0\n\t\x7f", 4 }, "\"\\u0000\\n\\u0009\\u007f\"\n" },
        { { (const uint8_t *)"\"\\/", 3 }, "\"\\\"\\\\/\"\n" },
        { { (const uint8_t *)"\xc2\x85", 2 }, "\"\\u0085\"\n" },     /* a C1 control */
        { { (const uint8_t *)"\xe2\x80\xae", 3 }, "\"\\u202e\"\n" }, /* right to left */
        { { (const uint8_t *)"\xc3\xa4", 2 }, "\"\xc3\xa4\"\n" },    /* as it is */
        { { (const uint8_t *)"\xf0\x9f\x99\x82", 4 }, "\"\xf0\x9f\x99\x82\"\n" },
        { { (const uint8_t *)"\xff", 1 }, "\"\xef\xbf\xbd\"\n" }, /* no UTF-8 */
        { { (const uint8_t *)"\xe2\x80", 2 }, "\"\xef\xbf\xbd\xef\xbf\xbd\"\n" },
        { { (const uint8_t *)"\xed\xa0\x80", 3 }, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n" },
        { { NULL, 0 }, "\"\"\n" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct doc d;

        start(&d, false);
        jout_string(&d.j, NULL, cases[i].in);
        fputc('\n', d.j.to);
        assert_string_equal(ended(&d), cases[i].out);
        free(d.text);
    }
}

/* Whatever the bytes: valid JSON, no control byte, and ASCII comes back as it was. */
static void test_any_bytes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 65536; i++) {
        const uint8_t bytes[4] = { 'x', (uint8_t)(i >> 8), (uint8_t)i, 'y' };
        json_error_t e;
        struct doc d;

        start(&d, false);
        jout_open(&d.j, NULL, '[');
        jout_string(&d.j, NULL, (struct slice){ bytes, 4 });
        jout_close(&d.j);
        json_t *root = json_loads(ended(&d), JSON_ALLOW_NUL, &e);
        if (!root)
            fail_msg("%02x %02x: %s in %s", bytes[1], bytes[2], e.text, d.text);
        for (size_t k = 0; k + 1 < d.len; k++)
            assert_true((uint8_t)d.text[k] >= ' ' && d.text[k] != 0x7f);
        json_decref(root);
        free(d.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
