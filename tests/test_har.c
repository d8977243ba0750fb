/*
 * test_har.c - HARs of every producer in small, as the calls they make of exchange.h
 * (har_cases.txt), and files that are cut, damaged, unsorted, large.
 */
#include "har_fake.h"

#include "har_slice.h"
#include "har_text.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define OPEN      "{\"log\":{\"creator\":{\"name\":\"X\"},\"entries\":["
#define REQUEST   "\"request\":{\"method\":\"GET\",\"url\":\"http://a.test/mcp\"}"
#define START(ms) "\"startedDateTime\":\"2026-01-01T00:00:00." ms "Z\""
#define GOOD(ms)  "{" START(ms) "," REQUEST ",\"response\":{\"status\":204}}"
#define DONE      "]}}"

static struct har_run run_text(const char *text, size_t step, bool quiet)
{
    return har_run_steps(slice_str(text), step, quiet);
}

/* ---- cases ---- */

static char *file_text(const char *path)
{
    static const size_t most = (size_t)1 << 20;
    char *text = mem_alloc(most);
    FILE *f = fopen(path, "r");

    if (!f || fread(text, 1, most - 1, f) == 0)
        abort();
    fclose(f);
    return text;
}

/* The lines of a case as a HAR: a creator and entries, or as they are. */
static char *har_of(char *lines)
{
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    char *save = NULL;
    const char *first = strtok_r(lines, "\n", &save);
    const char *comma = "";

    if (!f || !first)
        abort();
    if (strcmp(first, "!") == 0) {
        fputs(save, f);
        fclose(f);
        return out;
    }
    fprintf(f, "{\"log\":{\"creator\":{\"name\":\"%s\",\"version\":\"1\"},\"entries\":[", first);
    for (const char *e = strtok_r(NULL, "\n", &save); e; e = strtok_r(NULL, "\n", &save)) {
        fprintf(f, "%s%s", comma, e);
        comma = ",\n";
    }
    fputs(DONE, f);
    fclose(f);
    return out;
}

static void check_case(char *text)
{
    char *want = strstr(text, "\n---\n");
    char *lines = strchr(text, '\n');

    if (!want || !lines)
        abort();
    *want = '\0';
    *lines = '\0';
    want += strlen("\n---\n");
    char *har = har_of(lines + 1);
    struct har_run run = run_text(har, 65536, true);
    if (strcmp(run.text, want) != 0)
        fail_msg("%s: got\n%swanted\n%s", text, run.text, want);
    assert_int_equal(run.status, HAR_COMPLETE);
    assert_false(run.backwards);
    assert_int_equal(run.left_open, 0);
    free(run.text);
    free(har);
}

static void test_cases(void **state)
{
    char *text = file_text(SOURCE_DIR "/tests/har_cases.txt");
    char *next = strstr(text, "\n=== ");
    size_t count = 0;

    (void)state;
    while (next) {
        char *at = next + strlen("\n=== ");
        next = strstr(at, "\n=== ");
        if (next)
            *next = '\0';
        check_case(at);
        count++;
    }
    assert_true(count > 30);
    free(text);
}

static void test_connection_ids(void **state)
{
#define ON(ms, id) "{" START(ms) "," REQUEST ",\"connection\":\"80\"" id "}"
    struct har_run run = run_text(OPEN ON("100", ",\"_connectionId\":\"5\"") "," ON(
                                      "200", ",\"_connectionId\":\"5\"") "," ON("300", "") DONE,
                                  65536, true);
    const char *first = strstr(run.text, "conn=");
    const char *second = first ? strstr(first + 1, "conn=") : NULL;

    (void)state;
    if (!first || !second)
        abort();
    assert_memory_equal(first, second, strcspn(first, "\n"));
    assert_null(strstr(second + 1, "conn="));
    free(run.text);
}

/* What the file cannot show is said once, before its first fact. */
static void test_file_note(void **state)
{
    static const char begin[] = "#0 note har 1 entry 0 text=\"X: no acknowledgements";
    struct har_run run = run_text(OPEN GOOD("100") "," GOOD("200") DONE, 65536, false);

    (void)state;
    assert_memory_equal(run.text, begin, sizeof(begin) - 1);
    assert_null(strstr(run.text + 1, "#0 note"));
    assert_string_equal(run.producer, "X");
    assert_int_equal(run.entries, 2);
    free(run.text);
}

/* ---- damage ---- */

static void test_damage(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        size_t good;
        enum har_status status;
    } cases[] = {
        { "no JSON", OPEN GOOD("100") ",{\"request\":{},NaN}," GOOD("200") DONE, 2, HAR_DAMAGED },
        { "null", OPEN GOOD("100") ",null," GOOD("200") DONE, 2, HAR_DAMAGED },
        { "no request", OPEN GOOD("100") ",{}," GOOD("200") DONE, 2, HAR_DAMAGED },
        { "a bracket is missing",
          OPEN GOOD("100") ",{" REQUEST ",\"x\":{," GOOD("200") "," GOOD("300") DONE, 3,
          HAR_DAMAGED },
        { "a quote is missing", OPEN GOOD("100") ",{\"x:1,{}," GOOD("200") "," GOOD("300") DONE, 3,
          HAR_DAMAGED },
        { "a bracket too many", OPEN GOOD("100") "}," GOOD("200") DONE, 2, HAR_DAMAGED },
        { "no list", "{\"log\":{\"creator\":{}}}", 0, HAR_DAMAGED },
        { "cut before the list", "{\"log\":{\"creator\":{}", 0, HAR_TRUNCATED },
        { "cut behind an entry", OPEN GOOD("100") ",", 1, HAR_TRUNCATED },
        { "cut inside one", OPEN GOOD("100") ",{" REQUEST ",\"response\":{", 1, HAR_TRUNCATED },
        { "empty", "", 0, HAR_TRUNCATED },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct har_run run = run_text(cases[i].text, 7, true);
        size_t good = 0;
        for (const char *p = run.text; (p = strstr(p, " 204\n")); p++)
            good++;
        if (good != cases[i].good || run.status != cases[i].status)
            fail_msg("%s: %zu entries, status %d, %s\n%s", cases[i].name, good, run.status,
                     run.message, run.text);
        assert_true(run.message[0] != '\0');
        free(run.text);
    }
}

static void test_damage_is_told(void **state)
{
    struct har_run run = run_text(OPEN GOOD("100") ",{\"request\":{},NaN}" DONE, 65536, false);

    (void)state;
    assert_non_null(strstr(run.text, "entry 1 text=\"entry 1 does not parse: "));
    assert_non_null(strstr(run.message, "entry 1: "));
    free(run.text);
}

/* Damage of the compression is the input's to see. */
static void test_input_damage(void **state)
{
    struct exchanges all = { .out = fopen("/dev/null", "w") };
    struct input in = { slice_str(OPEN GOOD("100")), 65536, "the gzip data is cut" };
    struct input_error err;

    (void)state;
    struct har *har = har_open(&in, 0, &all, &err);
    assert_non_null(har);
    assert_int_equal(har_status(har), HAR_TRUNCATED);
    assert_non_null(strstr(har_message(har), "the gzip data is cut"));
    har_free(har);
    fclose(all.out);
}

static const char sample[] = OPEN "{" START(
    "100") ",\"time\":20,\"request\":{\"method\":\"POST\",\"url\":\"http://a/\","
           "\"postData\":{\"text\":\"{\\\"id\\\":1}\"}},\"response\":{\"status\":200,\"content\":{"
           "\"text\":\"{}\"}}},\n{" START(
               "110") "," REQUEST ",\"response\":{\"status\":200,\"content\":{"
                      "\"mimeType\":\"text/event-stream\",\"text\":\"id: "
                      "[{\\u00e9\\\\\\n\\n\"}}},\n{" START(
                          "115") "," REQUEST
                                 ",\"response\":{\"status\":200,\"content\":{\"size\":9,"
                                 "\"mimeType\":\"text/"
                                 "event-stream\"}},\"_eventSourceMessages\":[{\"time\":1767225600."
                                 "118,"
                                 "\"eventId\":\"a\",\"data\":\"]\"}]}" DONE;

/* Any cut of the file gives the entries that are whole, and says that it is cut. */
static void test_every_cut(void **state)
{
    struct har_run whole = run_text(sample, 65536, true);

    (void)state;
    assert_int_equal(whole.status, HAR_COMPLETE);
    assert_int_equal(whole.entries, 3);
    for (size_t cut = 0; cut + 1 < sizeof(sample); cut++) {
        struct slice bytes = { (const uint8_t *)sample, cut };
        struct har_run run = har_run_steps(bytes, 1 + cut % 5, true);
        assert_int_equal(run.status, HAR_TRUNCATED);
        assert_int_equal(run.left_open, 0);
        assert_true(run.entries <= whole.entries);
        if (run.entries == whole.entries)
            assert_string_equal(run.text, whole.text);
        free(run.text);
    }
    free(whole.text);
}

/* Nor do the sizes of the reads matter. */
static void test_every_read_size(void **state)
{
    struct har_run whole = run_text(sample, 65536, false);

    (void)state;
    for (size_t step = 1; step < 40; step++) {
        struct har_run run = run_text(sample, step, false);
        assert_string_equal(run.text, whole.text);
        free(run.text);
    }
    free(whole.text);
}

/* ---- order ---- */

/* Lines without what tells the position in the file. */
static void drop_positions(char *text)
{
    for (char *p = text; (p = strstr(p, " entry ")); p++)
        p[7] = '_';
}

static void test_unsorted_equals_sorted(void **state)
{
#define LASTS(ms, time)                                                                            \
    "{" START(ms) ",\"time\":" time "," REQUEST                                                    \
                  ",\"response\":{\"status\":200,\"content\":{\"text\":\"" ms "\"}}}"
#define A LASTS("100", "200")
#define B LASTS("120", "30.5")
#define C LASTS("310", "0")
    struct har_run sorted = run_text(OPEN A "," B "," C DONE, 65536, true);
    struct har_run mixed = run_text(OPEN C "," A "," B DONE, 65536, true);

    (void)state;
    drop_positions(sorted.text);
    drop_positions(mixed.text);
    assert_string_equal(sorted.text, mixed.text);
    assert_false(sorted.backwards || mixed.backwards);
    free(sorted.text);
    free(mixed.text);
}

static void test_ties_by_position(void **state)
{
    struct har_run run =
        run_text(OPEN GOOD("100") "," GOOD("100") "," LASTS("105", "0") DONE, 65536, true);

    (void)state;
    assert_non_null(strstr(run.text, "#1 entry 0"));
    assert_null(strstr(run.text, "#2 entry 1")); /* it repeats the first */
    free(run.text);
}

static void test_no_start_time(void **state)
{
    struct har_run run =
        run_text(OPEN GOOD("100") ",{" REQUEST "}," GOOD("300") DONE, 65536, false);

    (void)state;
    assert_non_null(strstr(run.text, "#2 entry 1"));
    assert_non_null(strstr(run.text, "#2 100 GET"));
    assert_non_null(strstr(run.text, "entries without a start time"));
    free(run.text);
}

/* ---- memory ---- */

static char *many(size_t n, size_t body, bool overlap)
{
    char *out;
    size_t len;
    FILE *f = open_memstream(&out, &len);

    assert_non_null(f);
    fputs("{\"log\":{\"creator\":{\"name\":\"X\"},\"entries\":[", f);
    for (size_t i = 0; i < n; i++) {
        fprintf(f,
                "%s{\"startedDateTime\":\"2026-01-01T00:%02zu:%02zu.%03zuZ\",\"time\":%d,"
                "\"request\":{\"method\":\"POST\",\"url\":\"http://a.test/mcp\",\"postData\":{"
                "\"text\":\"%zu\"}},\"response\":{\"status\":200,\"content\":{\"text\":\"%0*d\"}}}",
                i ? "," : "", i / 60000 % 60, i / 1000 % 60, i % 1000, overlap ? 100000 : 1, i,
                (int)body, 0);
    }
    fputs("]}}", f);
    fclose(f);
    return out;
}

/* Heap in use at the worst moment, on top of what was in use before. */
static size_t peak_of(const char *json)
{
    struct exchanges all = { .out = fopen("/dev/null", "w") };
    struct input in = { .rest = slice_str(json), .step = 65536 };
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct input_error err;
    size_t steps = 0;
    size_t peak = 0;
    int64_t t;

    assert_non_null(all.out);
    struct har *har = har_open(&in, 0, &all, &err);
    assert_non_null(har);
    while (har_time(har, &t)) {
        har_step(har);
        if (steps++ % 8 > 0)
            continue; /* looking is slow */
        size_t now = mallinfo2().uordblks + mallinfo2().hblkhd;
        peak = now > peak ? now : peak;
    }
    assert_int_equal(har_status(har), HAR_COMPLETE);
    assert_int_equal(all.open, 0);
    assert_false(all.backwards);
    har_free(har);
    fclose(all.out);
    return peak > before ? peak - before : 0;
}

static void test_memory(void **state)
{
    static const size_t index = 32;
    static const size_t n = 20000;
    char *few = many(200, 1000, false);
    char *lots = many(n, 1000, false);

    (void)state;
    /* The index doubles its room: up to twice 32 bytes an entry, and nothing else grows. */
    assert_true(peak_of(lots) <= peak_of(few) + 3 * index * n);
    free(few);
    free(lots);
}

/* All entries in progress at once: their bodies are read again, not kept. */
static void test_memory_overlap(void **state)
{
    char *lots = many(3000, 20000, true);

    (void)state;
    assert_true(peak_of(lots) < strlen(lots) / 2);
    free(lots);
}

/* ---- parts ---- */

static void test_har_is(void **state)
{
    static const struct {
        const char *head;
        bool want;
    } cases[] = {
        { "{\"log\":{\"version\":\"1.2\"", true },
        { "\xef\xbb\xbf { \"log\" : {\"entries\":[", true },
        { "cb({\"log\":{\"_x\":1,\"creator\":{}", true },
        { "{\"comment\":\"log\",\"log\":{", true },
        { "{\"log\":{\"level\":\"info\",\"message\":\"x\"}}", false },
        { "{\"log\":[]}", false },
        { "{\"a\":{\"log\":{\"version\":1}}}", false },
        { "{\"jsonrpc\":\"2.0\"}", false },
        { "[{\"log\":{\"version\":1}}]", false },
        { "", false },
        { "cb(", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (har_is(slice_str(cases[i].head)) != cases[i].want)
            fail_msg("%s", cases[i].head);
    }
}

static void test_base64(void **state)
{
    static const struct {
        const char *in;
        const char *want; /* NULL: wrong */
    } cases[] = {
        { "", "" },         { "Zg==", "f" },       { "Zm8=", "fo" }, { "Zm9v", "foo" },
        { "Zg", "f" },      { "Zm\r\n9v", "foo" }, { "Z", NULL },    { "Zg=", NULL },
        { "Zg==Zg", NULL }, { "Z*==", NULL },      { "====", NULL }, { "Zm9vYmFy", "foobar" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t *got = NULL;
        size_t len = 0;
        bool ok = har_base64(slice_str(cases[i].in), &got, &len);
        if (ok != !!cases[i].want ||
            (ok && !slice_eq((struct slice){ got, len }, slice_str(cases[i].want))))
            fail_msg("%s", cases[i].in);
        free(got);
    }
}

static void test_unmojibake(void **state)
{
    static const struct {
        const char *in;
        const char *want; /* NULL: no such text */
    } cases[] = {
        { "abc", NULL },
        { "h\xc3\xa9", NULL },                              /* a lone e9 is no UTF-8 */
        { "h\xc3\x83\xc2\xa9", "h\xc3\xa9" },               /* e with acute */
        { "\xc3\xa2\xe2\x80\x9a\xc2\xac", "\xe2\x82\xac" }, /* the euro sign: e2 82 ac */
        { "\xc3\x83\xc2\x81", "\xc3\x81" },                 /* 81 has no character: C1 */
        { "\xc3\x83\xc2\xa9\xe2\x98\x83", NULL },           /* a snowman is no windows-1252 */
        { "\xff", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t *got = NULL;
        size_t len = 0;
        bool ok = har_unmojibake(slice_str(cases[i].in), &got, &len);
        if (ok != !!cases[i].want ||
            (ok && !slice_eq((struct slice){ got, len }, slice_str(cases[i].want))))
            fail_msg("case %zu", i);
        free(got);
    }
}

static void test_clean(void **state)
{
    static const struct {
        const char *in;
        const char *want;
        size_t repaired;
    } cases[] = {
        { "{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\\ud83d\\ude00\"}", 0 },
        { "\"\\ud83d\\u0041\"", "\"\\ufffd\\u0041\"", 1 },
        { "\"\\\\ud83d\"", "\"\\\\ud83d\"", 0 }, /* an escaped backslash */
        { "\"\\ud83d", "\"\\ufffd", 1 },
        { "\"a\xff\xc3\"", "\"a\xef\xbf\xbd\xef\xbf\xbd\"", 2 },
        { "\"\\", "\"\\", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_release) struct buf scratch = { .max = 100 };
        struct har_cleaned got;
        if (!har_text_clean(slice_str(cases[i].in), 10, &scratch, &got) ||
            got.repaired != cases[i].repaired || !slice_eq(got.text, slice_str(cases[i].want)))
            fail_msg("case %zu", i);
    }
}

static void test_clean_limits(void **state)
{
    AUTO(buf_release) struct buf scratch = { .max = 4 };
    struct har_cleaned got;

    (void)state;
    assert_true(har_text_clean(SLICE_LIT("[1,\",,,,\"]"), 2, &scratch, &got));
    assert_false(har_text_clean(SLICE_LIT("[1,2,3]"), 2, &scratch, &got));
    assert_false(har_text_clean(SLICE_LIT("\"\xff\xff\""), 2, &scratch, &got));
}

static void test_utf8(void **state)
{
    static const struct {
        const char *in;
        size_t want;
    } cases[] = {
        { "a", 1 },
        { "\xc3\xa9", 2 },
        { "\xe2\x82\xac", 3 },
        { "\xf0\x9f\x98\x80", 4 },
        { "\xc0\x80", 0 },
        { "\xed\xa0\x80", 0 },
        { "\xe0\x80\x80", 0 },
        { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 },
        { "\xe2\x82", 0 },
        { "\x80", 0 },
        { "\xc3(", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(har_utf8_len(slice_str(cases[i].in)), cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_connection_ids),
        cmocka_unit_test(test_file_note),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damage_is_told),
        cmocka_unit_test(test_input_damage),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_read_size),
        cmocka_unit_test(test_unsorted_equals_sorted),
        cmocka_unit_test(test_ties_by_position),
        cmocka_unit_test(test_no_start_time),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_overlap),
        cmocka_unit_test(test_har_is),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_unmojibake),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_clean_limits),
        cmocka_unit_test(test_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
