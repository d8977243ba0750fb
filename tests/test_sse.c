/* test_sse.c - the event stream decoder: the standard's cases, its oddities, and every cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bytes.h"
#include "sse_render.h"

struct vector {
    struct slice body;
    const char *want;
};

#define V(body, want)                                                                              \
    {                                                                                              \
        { (const uint8_t *)(body), sizeof(body) - 1 }, want                                        \
    }

static const struct vector vectors[] = {
    /* ends of body */
    V("", ""),
    V("\n\n\r\r\n", ""),
    V("id: 1\ndata: a\n\nid: 2\ndata: b",
      "block id=[1] data=[a] 0-15\ntail 15+13 fields id=[2] data=[b]\n"),
    V("id: 1", "tail 0+5 fields begun-id=[1]\n"),
    V("id: 1\nid: 2", "tail 0+11 fields begun-id=[2]\n"),
    V("id: 1\n", "tail 0+6 fields id=[1]\n"),
    V("id: 1\r", "tail 0+6 fields id=[1]\n"),
    V("data: a\ndata: b\neven", "tail 0+20 fields data=[a<0a>b]\n"),
    V("data: a\ndata: b", "tail 0+15 fields data=[a<0a>b]\n"),
    V("event: x", "tail 0+8 fields event=[x]\n"),
    V("da", "tail 0+2 fields\n"),
    V(": pi", "tail 0+4\n"),
    V("data: a\n\n: pi", "block data=[a] 0-9\ntail 9+4\n"),
    V("\xef\xbb\xbf", ""),
    V("\xef\xbb", "tail 0+2 fields\n"),
    V("\xef\xbb\xbfid: 3", "tail 0+8 fields begun-id=[3]\n"),
    /* blocks with and without data */
    V("id: 7\n\n", "block id=[7] 0-7\n"),
    V("id: 7\ndata:\n\n", "block id=[7] data=[] 0-13\n"),
    V("id: 1\ndata: 1\n\nid:\ndata:2\n\ndata:3\n\n",
      "block id=[1] data=[1] 0-15\nblock id=[] data=[2] 15-27\nblock data=[3] 27-35\n"),
    V("id: a\0b\ndata: x\n\n", "block data=[x] 0-17 nul\n"),
    V("id: 1\nid: a\0b\n\n", "block id=[1] 0-15 nul\n"),
    V("id\n\n", "block id=[] 0-4 no-colon\n"),
    V("foo: bar\n\n", "block 0-10 unknown\n"),
    V("event: e\nid: 1\nid: 2\n\n", "block id=[2] event=[e] 0-22\n"),
    V("event: e\nevent\ndata\n\n", "block data=[] event=[] 0-21 no-colon\n"),
    /* BOM */
    V("\xef\xbb\xbf"
      "data:1\n\ndata:2\n\n",
      "block data=[1] 0-11\nblock data=[2] 11-19\n"),
    V("\xef\xbb\xbf\xef\xbb\xbf"
      "data:1\n\ndata:2\n\n",
      "block 0-14 bom\nblock data=[2] 14-22\n"),
    V("data:1\n\n\xef\xbb\xbf"
      "data:2\n\n",
      "block data=[1] 0-8\nblock 8-19 bom\n"),
    V("\xef\xbb\xbf\ndata:1\n\n", "block data=[1] 4-12\n"),
    V("data:\xef\xbb\xbf\n\n", "block data=[<ef><bb><bf>] 0-10\n"),
    /* line ends */
    V("data: x\r\n\r\n", "block data=[x] 0-10 crlf\n"),
    V("data: x\r\n\r\ndata: y\r\n\r\n", "block data=[x] 0-10 crlf\nblock data=[y] 11-21 crlf\n"),
    V("data:x\r\rdata:y\r\r", "block data=[x] 0-8 cr\nblock data=[y] 8-16 cr\n"),
    V("data: x\r\n\ndata: y\n\n", "block data=[x] 0-10 mixed crlf\nblock data=[y] 10-19 mixed\n"),
    V("data: x\n\r\ndata: y\n\n", "block data=[x] 0-9\nblock data=[y] 10-19 mixed crlf\n"),
    V("data: x\n\rdata: y\n\n", "block data=[x] 0-9\nblock data=[y] 9-18 cr mixed\n"),
    V(": a\r\ndata: x\r\n\r\n", "comment 0-4\nblock data=[x] 5-15 crlf\n"),
    V("data: x\n\r", "block data=[x] 0-9\n"),
    /* the standard's examples */
    V("data: YHOO\ndata: +2\ndata: 10\n\n", "block data=[YHOO<0a>+2<0a>10] 0-30 multi\n"),
    V(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
      "event\n\n",
      "comment 0-14\nblock id=[1] data=[first event] 15-40\n"
      "block id=[] data=[second event] 40-62 no-colon\nblock data=[ third event] 62-82\n"),
    V("data\n\ndata\ndata\n\ndata:",
      "block data=[] 0-6 no-colon\nblock data=[<0a>] 6-17 no-colon multi\n"
      "tail 17+5 fields data=[]\n"),
    V("data:test\n\ndata: test\n\n", "block data=[test] 0-11\nblock data=[test] 11-23\n"),
    /* web-platform-tests eventsource/format-* */
    V("data:test\r\ndata\ndata:test\r\n\r\n",
      "block data=[test<0a><0a>test] 0-28 mixed no-colon crlf multi\n"),
    V("data: test\x00\n\n", "block data=[test<00>] 0-13\n"),
    V("data:test\n:data\ndata:test\n\n", "block data=[test<0a>test] 0-27 multi\n"),
    V("data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
      "block data=[test<0a><0a>test] 0-75 no-colon unknown multi\n"),
    V("data:\ttest\rdata: \ndata:test\n\n",
      "block data=[<09>test<0a><0a>test] 0-29 cr mixed multi\n"),
    V("Data:test\nID: 3\ndata:x\n\n", "block data=[x] 0-24 unknown\n"),
    V("data:ok\ndata :x\n\n", "block data=[ok] 0-17 unknown\n"),
    V("data: a:b: c\n\n", "block data=[a:b: c] 0-14\n"),
    V("id:  x \ndata\n\n", "block id=[ x ] data=[] 0-14 no-colon\n"),
    /* retry */
    V("retry: 100\nid: 5\ndata: \n\n", "block id=[5] data=[] retry=100 0-25\n"),
    V("retry:1000\nretry:2000x\n\n", "block retry=1000 0-24 retry\n"),
    V("retry: -1\n\nretry: 1.5\n\nretry:  10\n\n",
      "block 0-11 retry\nblock 11-23 retry\nblock 23-35 retry\n"),
    V("retry\n\nretry:\n\n", "block 0-7 no-colon retry\nblock 7-15 retry\n"),
    V("retry: 007\n\n", "block retry=7 0-12\n"),
    V("retry: 2147483648\n\nretry: 2147483649\n\n",
      "block retry=2147483648 0-19\nblock retry=2147483649 19-38 retry\n"),
    V("retry: 99999999999999999999\n\n", "block 0-29 retry\n"),
    /* comments */
    V(": ping\n", "comment 0-7\n"),
    V(": ping\n\n: ping\n\n", "comment 0-7\ncomment 8-15\n"),
    V(":\n:\n\ndata: x\n\n", "comment 0-2\ncomment 2-4\nblock data=[x] 5-14\n"),
    V("data: a\n: in between\ndata: b\n\n", "block data=[a<0a>b] 0-30 multi\n"),
    V(": ok\ndata: a\n\n", "comment 0-5\nblock data=[a] 5-14\n"),
    /* UTF-8 */
    V("data: \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\n",
      "block data=[<c3><a9><e2><82><ac><f0><9f><98><80>] 0-17\n"),
    V("data: \xc3(\n\n", "block data=[<c3>(] 0-10\n"), /* bodies.c looks into data */
    V("id: \xff\ndata: x\n\n", "block id=[<ff>] data=[x] 0-15 utf8\n"),
    V("id: \xed\xa0\x80\n\n", "block id=[<ed><a0><80>] 0-9 utf8\n"),
    V("data: \xc3\ndata: \xa9\n\n", "block data=[<c3><0a><a9>] 0-17 multi\n"),
    V("foo: \xff\n\n", "block 0-8 unknown\n"),
};

static void check_text(struct slice body, size_t first, size_t step, size_t max, const char *want)
{
    char *got = render(body, first, step, max);

    if (strcmp(got, want) != 0)
        print_error("cut at %zu, then every %zu:\n", first, step);
    assert_string_equal(got, want);
    free(got);
}

/* Whole, cut in two at every byte, and in pieces of every small size. */
static void check_cuts(struct slice body, size_t max, const char *want)
{
    check_text(body, body.len + 1, 1, max, want);
    for (size_t i = 0; i < body.len; i++)
        check_text(body, i, body.len + 1, max, want);
    for (size_t n = 1; n < 8; n++)
        check_text(body, n, n, max, want);
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
        check_cuts(vectors[i].body, SSE_MAX_EVENT, vectors[i].want);
}

/* All of them in one body, as far as they end between blocks. */
static void test_joined(void **state)
{
    uint8_t text[4096];
    struct slice body = { text, 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct slice s = vectors[i].body;
        if (strstr(vectors[i].want, "tail") || body.len + s.len > sizeof(text))
            continue;
        if (s.len > 0)
            memcpy(text + body.len, s.ptr, s.len);
        body.len += s.len;
    }
    char *want = render(body, body.len, 1, SSE_MAX_EVENT);
    check_cuts(body, SSE_MAX_EVENT, want);
    free(want);
}

static void test_ceiling(void **state)
{
    static const struct vector cut[] = {
        V("data: 12345678\n\n", "block data=[12345678] 0-16\n"),
        V("data: 123456789\nid: 3\n\n", "block id=[3] data=[12345678] 0-23 long\n"),
        V("data: 1234567890123456789012345678901234567890\n\ndata: x\n\n",
          "block data=[12345678] 0-48 long\nblock data=[x] 48-57\n"),
        V("data: 1234\ndata: 567\n\n", "block data=[1234<0a>567] 0-22 multi\n"),
        V("data: 1234\ndata: 5678\ndata\n\n",
          "block data=[1234<0a>567] 0-28 no-colon multi long\n"),
        V("data: 12345678\ndata\n\n", "block data=[12345678] 0-21 no-colon multi long\n"),
        V("data: 12345678901\ndata: 1\n\n", "block data=[12345678] 0-27 multi long\n"),
        V("id: 1234567890123456789012345\nevent: 123456789\ndata: x\n\n",
          "block id=[12345678] data=[x] event=[12345678] 0-56 long\n"),
        V("data: 1234567\xc3\xa9\n\n", "block data=[1234567] 0-17 long\n"),
        V("data: 12345\xf0\x9f\x98\x80\n\n", "block data=[12345] 0-17 long\n"),
        V(": 12345678901234567890123456789\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: x\n\n",
          "comment 0-32\nblock 32-75 no-colon unknown\n"),
        V("\xef\xbb\xbf"
          "event: 123456789\n\n",
          "block event=[12345678] 0-21 long\n"),
        V("data: 123456789012345678901234567890", "tail 0+36 fields data=[12345678]\n"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cut); i++)
        check_cuts(cut[i].body, 8, cut[i].want);
}

static char *render_gap(const char *before, uint64_t len, const char *after)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct sse d;

    sse_init(&d, SSE_MAX_EVENT);
    render_piece(f, &d, slice_str(before));
    sse_gap(&d, len);
    assert_false(sse_in_block(&d));
    for (const char *p = after; *p; p++)
        render_piece(f, &d, (struct slice){ (const uint8_t *)p, 1 });
    render_tail(f, &d);
    sse_release(&d);
    fclose(f);
    return text;
}

static void test_gap(void **state)
{
    static const struct {
        const char *before;
        uint64_t len;
        const char *after;
        const char *want;
    } gaps[] = {
        { "data: a\n\nid: 1\nda", 100, "ta: x\n\ndata: b\n\n",
          "block data=[a] 0-9\nblock data=[b] 124-133\n" },
        { "data: a\n\n", 0, "\ndata: b\n\ndata: c\n\n",
          "block data=[a] 0-9\nblock data=[c] 19-28\n" },
        { "data: a\n\n", 5, "\n\ndata: b\n\n", "block data=[a] 0-9\nblock data=[b] 16-25\n" },
        { "data: a\r", 1, "\r\n\r\ndata: b\r\n\r\n", "block data=[b] 13-23 crlf\n" },
        { "", 3, ": ping\n\xef\xbb\xbf\nid: 3", "" },
        { "id: 4\n", 3, "x\n\nid: 3", "tail 12+5 fields begun-id=[3]\n" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(gaps); i++) {
        char *got = render_gap(gaps[i].before, gaps[i].len, gaps[i].after);
        assert_string_equal(got, gaps[i].want);
        free(got);
    }
}

/* A block that lies whole in the input is not copied. */
static void test_no_copy(void **state)
{
    struct slice body = SLICE_LIT("event: message\nid: 5\ndata: {\"a\":1}\n\nid: 6");
    const uint8_t *begin = body.ptr;
    struct sse_item item;
    struct sse d;

    (void)state;
    sse_init(&d, SSE_MAX_EVENT);
    assert_true(sse_next(&d, &body, &item));
    assert_ptr_equal(item.event.ptr, begin + 7);
    assert_ptr_equal(item.id.ptr, begin + 19);
    assert_ptr_equal(item.data.ptr, begin + 27);
    assert_int_equal(item.data.len, 7);
    assert_false(sse_in_block(&d));
    assert_null(d.data.ptr);
    assert_false(sse_next(&d, &body, &item));
    assert_true(sse_in_block(&d));
    assert_int_equal(body.len, 0);
    sse_release(&d);
}

/* sse_tail is a look, not an end. */
static void test_tail_again(void **state)
{
    struct slice body = SLICE_LIT("data: a\ndata: b\ndata: c");
    struct slice rest = SLICE_LIT("d\n\n");
    struct sse_item item;
    struct sse_tail tail;
    struct sse d;

    (void)state;
    sse_init(&d, SSE_MAX_EVENT);
    assert_false(sse_next(&d, &body, &item));
    for (int i = 0; i < 2; i++) {
        sse_tail(&d, &tail);
        assert_true(slice_eq(tail.data, SLICE_LIT("a\nb\nc")));
    }
    assert_true(sse_next(&d, &rest, &item));
    assert_true(slice_eq(item.data, SLICE_LIT("a\nb\ncd")));
    sse_release(&d);
}

/* What a large event needed is given back. */
static void test_memory(void **state)
{
    static uint8_t big[1 << 20];
    struct slice small = SLICE_LIT("\n\ndata: x\n\n");
    struct slice body = { big, sizeof(big) };
    struct slice name = SLICE_LIT("data:");
    struct sse_item item;
    struct sse d;

    (void)state;
    memset(big, 'x', sizeof(big));
    memcpy(big, name.ptr, name.len);
    sse_init(&d, SSE_MAX_EVENT);
    assert_false(sse_next(&d, &body, &item));
    assert_true(sse_next(&d, &small, &item));
    assert_int_equal(item.data.len, sizeof(big) - name.len);
    assert_true(sse_next(&d, &small, &item));
    assert_int_equal(item.data.len, 1);
    assert_true(d.line.cap + d.id.cap + d.event.cap + d.data.cap <= 256 << 10);
    sse_release(&d);
}

static void test_utf8(void **state)
{
    static const struct {
        struct slice s;
        bool valid;
    } cases[] = {
        { { (const uint8_t *)"", 0 }, true },
        { { (const uint8_t *)"\x7f\xc2\x80\xdf\xbf", 5 }, true },
        { { (const uint8_t *)"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80", 9 }, true },
        { { (const uint8_t *)"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8 }, true },
        { { (const uint8_t *)"\x80", 1 }, false },
        { { (const uint8_t *)"\xc0\x80", 2 }, false },
        { { (const uint8_t *)"\xc1\xbf", 2 }, false },
        { { (const uint8_t *)"\xe0\x9f\xbf", 3 }, false },
        { { (const uint8_t *)"\xed\xa0\x80", 3 }, false },
        { { (const uint8_t *)"\xf0\x8f\xbf\xbf", 4 }, false },
        { { (const uint8_t *)"\xf4\x90\x80\x80", 4 }, false },
        { { (const uint8_t *)"\xf5\x80\x80\x80", 4 }, false },
        { { (const uint8_t *)"\xe2\x82", 2 }, false },
        { { (const uint8_t *)"abcdefghijklmnop\xf0\x9f\x98", 19 }, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(utf8_valid(cases[i].s), cases[i].valid);
}

/* c at `at` of `len` bytes, the rest plain. */
static void search(uint8_t *text, size_t len, size_t at, uint8_t c)
{
    const uint8_t *end = text + len;
    const uint8_t *hit = text + at;
    const uint8_t *from = text + at % 3;
    bool eol = c == '\n' || c == '\r';
    bool bent = c < ' ' || c > 127 || c == '"' || c == '\\';

    memset(text, 'a', len);
    text[at] = c;
    assert_ptr_equal(bytes_line_end(from, end), eol ? hit : end);
    assert_ptr_equal(bytes_non_ascii(from, end), c > 127 ? hit : end);
    assert_ptr_equal(bytes_not_plain(from, end), bent ? hit : end);
}

/* The fast searches against the obvious ones, at every alignment and length. */
static void test_searches(void **state)
{
    uint8_t text[150];

    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < 40; at++)
            search(text, 41, at, (uint8_t)c);
        for (size_t at = 0; at < sizeof(text); at += 7)
            search(text, sizeof(text), at, (uint8_t)c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),  cmocka_unit_test(test_joined),
        cmocka_unit_test(test_ceiling),  cmocka_unit_test(test_gap),
        cmocka_unit_test(test_no_copy),  cmocka_unit_test(test_tail_again),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_searches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
