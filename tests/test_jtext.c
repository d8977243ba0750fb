/* test_jtext.c - walking JSON text: values, keys, escapes, and text that makes no sense. */
#include "jtext.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* "key=value;" of an object, "value;" of an array. */
static void assert_walk(const char *text, const char *want)
{
    struct jtext_walk w = { { NULL, 0 } };
    struct slice key = { NULL, 0 };
    struct slice value;
    char got[256] = "";
    size_t n = 0;
    bool object = jtext_first(slice_str(text)) == '{';

    if (!jtext_enter(slice_str(text), &w))
        fail_msg("%s", text);
    while (object ? jtext_member(&w, &key, &value) : jtext_element(&w, &value))
        n += (size_t)snprintf(got + n, sizeof(got) - n, SLICE_FMT "%s" SLICE_FMT ";",
                              SLICE_ARG(key), object ? "=" : "", SLICE_ARG(value));
    assert_string_equal(got, want);
}

static void test_walk(void **unused)
{
    (void)unused;

    assert_walk("{}", "");
    assert_walk(" {\"a\":1,\n\"b\" : \"x\\\"}\" , \"c\":{\"d\":[\"]\"]},\"e\":[1,{}]} ",
                "a=1;b=\"x\\\"}\";c={\"d\":[\"]\"]};e=[1,{}];");
    assert_walk("[1, \"a\",null,[[]],-1.5e3]", "1;\"a\";null;[[]];-1.5e3;");
    assert_walk("{\"a\":1,\"b\":[1,2", "a=1;"); /* cut short */
    assert_walk("{\"a\":1,\"b", "a=1;");
    assert_walk("{\"a\":1,\"b\\\"", "a=1;");
    assert_walk("{\"a\" 1}", "");
    assert_walk("{1:2}", "");
    assert_walk("[}", "");
}

static void test_enter(void **unused)
{
    struct jtext_walk w;
    (void)unused;

    assert_false(jtext_enter(SLICE_LIT("\"{\""), &w));
    assert_false(jtext_enter(SLICE_LIT(""), &w));
    assert_false(jtext_enter((struct slice){ NULL, 0 }, &w));
}

static void test_find(void **unused)
{
    struct slice object = SLICE_LIT("{\"a\":{\"b\":1},\"b\":2,\"b\":3}");
    (void)unused;

    assert_true(slice_eq(jtext_find(object, "b"), SLICE_LIT("3")));
    assert_null(jtext_find(object, "c").ptr);
    assert_null(jtext_find(SLICE_LIT("[\"a\",1]"), "a").ptr);
}

/* However deep, without recursion. */
static void test_depth(void **unused)
{
    enum { DEPTH = 1000000 };
    uint8_t *text = mem_alloc(2 * (size_t)DEPTH);
    struct slice s = { text, 2 * (size_t)DEPTH };
    struct slice value;
    (void)unused;

    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    assert_true(jtext_value(&s, &value));
    assert_int_equal(value.len, 2 * DEPTH);
    free(text);
}

static void test_unescape(void **unused)
{
    static const struct {
        const char *raw;
        const char *want;
    } table[] = {
        { "plain", "plain" },
        { "", "" },
        { "a\\n\\t\\\"\\\\\\/\\b\\f\\r", "a\n\t\"\\/\b\f\r" },
        { "\\u0041\\u00e9\\u20AC\\ud83d\\ude00", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
        { "\\ud83d", "\xef\xbf\xbd" },
        { "\\ude00x", "\xef\xbf\xbdx" },
        { "\\ud83d\\u0041", "\xef\xbf\xbd"
                            "A" },
        { "\\u00", "\xef\xbf\xbd"
                   "00" },
        { "a\\", "a" },
    };
    struct buf scratch;
    (void)unused;

    buf_init(&scratch, 100);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct slice got = jtext_unescape(slice_str(table[i].raw), &scratch);
        if (!slice_eq(got, slice_str(table[i].want)))
            fail_msg("%s gives " SLICE_FMT, table[i].raw, SLICE_ARG(got));
    }
    buf_release(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk),  cmocka_unit_test(test_enter),    cmocka_unit_test(test_find),
        cmocka_unit_test(test_depth), cmocka_unit_test(test_unescape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
