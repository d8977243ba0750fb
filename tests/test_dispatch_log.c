/* test_dispatch_log.c - the NDJSON and map forms, and how a log is told from other files. */
#include "log_of.h"
#include "log_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct dispatch_log *read_text(const char *text)
{
    struct dispatch_log *log = dispatch_log_new();

    assert_true(log_of(log, slice_str(text)));
    return log;
}

static bool is(struct slice s, const char *want)
{
    return s.ptr && slice_eq(s, slice_str(want));
}

static void assert_fault(const struct dispatch_log *log, size_t i, uint32_t line, const char *what)
{
    assert_in_range(i, 0, log->fault_count - 1);
    if (!is(log->fault[i].what, what))
        fail_msg("fault %zu is \"" SLICE_FMT "\", not \"%s\"", i, SLICE_ARG(log->fault[i].what),
                 what);
    assert_int_equal(log->fault[i].line, line);
}

static void test_members(void **unused)
{
    struct dispatch_log *log = read_text(
        "{\"dispatch_log\":1,\"client\":\"app/"
        "2\",\"idempotent_handlers\":[\"read\",\"l\\u0069st\"],"
        "\"atomic_cursor\":true}\n"
        "{\"ts\":\"2026-11-30T16:05:28.5Z\",\"session\":\"s\",\"stream\":\"p\",\"event_id\":\"41\","
        "\"state\":\"committed\",\"request_id\":7,\"method\":\"tools/call\",\"tool\":\"send\","
        "\"txn\":12,\"origin\":\"synthetic\",\"digest\":\"xxh3:00000000000000ff\",\"more\":[{}]}\n"
        "{\"state\":\"reconnect\",\"event_id\":null,\"request_id\":null,\"txn\":\"t\"}\n");
    const struct log_file *f = &log->file[0];
    const struct log_entry *e = log->entry;
    (void)unused;

    assert_int_equal(log->fault_count, 0);
    assert_int_equal(log->count, 2);
    assert_true(is(f->client, "app/2") && is(f->format, "ndjson") && f->atomic_cursor);
    assert_int_equal(f->idempotent_count, 2);
    assert_true(is(f->idempotent[0], "read") && is(f->idempotent[1], "list"));
    assert_true(!f->idempotent_all && !f->is_map && f->has_times && f->names_events);
    assert_true(f->says_processed);
    assert_true(e->has_time && e->time == INT64_C(1796054728500000000));
    assert_true(is(e->session, "s") && is(e->stream, "p") && is(e->event_id, "41"));
    assert_true(is(e->method, "tools/call") && is(e->tool, "send") && is(e->txn, "12"));
    assert_true(e->state == LOG_COMMITTED && e->synthetic && e->line == 2 && e->file == 0);
    assert_true(e->request.type == RPC_ID_INT && is(e->request.text, "7"));
    assert_true(e->digest == LOG_DIGEST_XXH3 && e->xxh3 == 0xff);
    e++;
    assert_true(!e->has_time && !e->event_id.ptr && !e->session.ptr && is(e->txn, "t"));
    assert_true(e->request.type == RPC_ID_NONE && e->digest == LOG_DIGEST_NONE && !e->synthetic);
    dispatch_log_free(log);
}

static void test_sha256(void **unused)
{
    struct dispatch_log *log = read_text("{\"state\":\"received\",\"digest\":\"sha256:"
                                         "0123456789abcdef0123456789abcdef"
                                         "0123456789ABCDEF0123456789abcdef\"}");
    (void)unused;

    assert_int_equal(log->count, 1);
    assert_true(log->wants_sha256 && log->entry[0].digest == LOG_DIGEST_SHA256);
    assert_int_equal(log->entry[0].sha256[0], 0x01);
    assert_int_equal(log->entry[0].sha256[23], 0xef);
    dispatch_log_free(log);
}

static void test_ids_keep_their_type(void **unused)
{
    struct dispatch_log *log = read_text(
        "{\"state\":\"received\",\"request_id\":18446744073709551617}\n"
        "{\"state\":\"received\",\"request_id\":18446744073709551616}\n"
        "{\"state\":\"received\",\"request_id\":\"7\"}\n{\"state\":\"received\",\"request_id\":7}\n"
        "{\"state\":\"received\",\"event_id\":7}\n{\"state\":\"received\",\"event_id\":\"\"}\n");
    (void)unused;

    assert_int_equal(log->fault_count, 0);
    assert_true(is(log->entry[0].request.text, "18446744073709551617"));
    assert_false(rpc_id_eq(&log->entry[0].request, &log->entry[1].request));
    assert_false(rpc_id_eq(&log->entry[2].request, &log->entry[3].request));
    assert_true(is(log->entry[4].event_id, "7") && is(log->entry[5].event_id, ""));
    dispatch_log_free(log);
}

static void test_strings_are_shared(void **unused)
{
    struct dispatch_log *log =
        read_text("{\"state\":\"received\",\"session\":\"a\\u0062\\u0000\"}\n"
                  "{\"state\":\"cursor\",\"session\":\"ab\\u0000\"}\n");
    (void)unused;

    assert_int_equal(log->count, 2);
    assert_int_equal(log->entry[0].session.len, 3);
    assert_ptr_equal(log->entry[0].session.ptr, log->entry[1].session.ptr);
    dispatch_log_free(log);
}

static void test_faults(void **unused)
{
    struct dispatch_log *log =
        read_text("\xef\xbb\xbf{\"state\":\"received\",\"event_id\":\"1\"}\r\n"
                  "\r\n"
                  "{\"state\":\"recei\n"
                  "{\"state\":\"eaten\"}\n"
                  "{\"event_id\":\"1\"}\n"
                  "[1]\n"
                  "{\"state\":7}\n"
                  "{\"state\":\"cursor\",\"ts\":\"today\"}\n"
                  "{\"state\":\"cursor\",\"digest\":\"md5:00\"}\n"
                  "{\"state\":\"cursor\",\"origin\":\"moon\"}\n"
                  "{\"state\":\"cursor\",\"request_id\":true}\n"
                  "{\"state\":\"cursor\",\"session\":[]}\n"
                  "   \n"
                  "{\"state\":\"cursor\",\"event_id\":\"1\"}");
    (void)unused;

    assert_int_equal(log->count, 2);
    assert_int_equal(log->entry[0].line, 1);
    assert_int_equal(log->entry[1].line, 14);
    assert_int_equal(log->fault_count, 10);
    assert_int_equal(log->file[0].skipped, 10);
    assert_int_equal(log->fault[0].line, 3);
    assert_true(slice_starts(log->fault[0].what, SLICE_LIT("not valid JSON at column ")));
    assert_fault(log, 1, 4, "unknown state \"eaten\"");
    assert_fault(log, 2, 5, "no state");
    assert_fault(log, 3, 6, "not a JSON object");
    assert_fault(log, 4, 7, "state is not a string");
    assert_fault(log, 5, 8, "ts is not a time: \"today\"");
    assert_fault(log, 6, 9, "digest is neither xxh3: with 16 nor sha256: with 64 hex digits");
    assert_fault(log, 7, 10, "unknown origin \"moon\"");
    assert_fault(log, 8, 11, "request_id is neither a string nor a number");
    assert_fault(log, 9, 12, "session is not a string");
    dispatch_log_free(log);
}

static void test_long_line(void **unused)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct dispatch_log *log = dispatch_log_new();
    (void)unused;

    fprintf(f, "{\"state\":\"received\"}\n{%*s}\n{\"state\":\"received\"}\n", 3 << 20, "");
    fclose(f);
    assert_true(log_of(log, (struct slice){ (uint8_t *)text, len }));
    assert_int_equal(log->count, 2);
    assert_int_equal(log->entry[1].line, 3);
    assert_fault(log, 0, 2, "longer than 1048576 bytes");
    dispatch_log_free(log);
    free(text);
}

/* A line may fall on any place of the chunks in which the file is read. */
static void test_many_lines(void **unused)
{
    enum { LINES = 20000 };
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct dispatch_log *log = dispatch_log_new();
    (void)unused;

    for (int i = 0; i < LINES; i++)
        fprintf(f, "{\"ts\":%d,\"state\":\"received\",\"event_id\":\"%d\"}\n", 1700000000 - i, i);
    fclose(f);
    assert_true(log_of(log, (struct slice){ (uint8_t *)text, len }));
    assert_int_equal(log->fault_count, 0);
    assert_int_equal(log->count, LINES);
    for (int i = 0; i < LINES; i++) {
        char id[16];
        snprintf(id, sizeof(id), "%d", i);
        assert_true(is(log->entry[i].event_id, id));
        assert_int_equal(log->entry[i].line, i + 1);
        assert_true(log->entry[i].time == (1700000000 - i) * NS_PER_SEC);
    }
    dispatch_log_free(log);
    free(text);
}

static void test_times(void **unused)
{
    static const struct {
        const char *token;
        int64_t ns; /* -1: not a time */
    } table[] = {
        { "1788249600", INT64_C(1788249600000000000) },
        { "1788249600.014020", INT64_C(1788249600014020000) },
        { "1788249600.123456789", INT64_C(1788249600123456789) },
        { "1788249600.1234567891234", INT64_C(1788249600123456789) },
        { "1.7882496e9", INT64_C(1788249600000000000) },
        { "17882496000E-1", INT64_C(1788249600000000000) },
        { "1788249600014", INT64_C(1788249600014000000) },
        { "1788249600014.25", INT64_C(1788249600014250000) },
        { "1788249600014020", INT64_C(1788249600014020000) },
        { "1788249600014020007", INT64_C(1788249600014020007) },
        { "9223372036", INT64_C(9223372036000000000) },
        { "100000000000", INT64_C(100000000000000000) },       /* the least ms */
        { "99999999999999", -1 },                              /* the most ms: past 2262 */
        { "100000000000000", INT64_C(100000000000000000) },    /* the least us */
        { "100000000000000000", INT64_C(100000000000000000) }, /* the least ns */
        { "99999999999", -1 },                                 /* the most s */
        { "9223372036854775807", INT64_MAX },
        { "9223372036854775808", -1 },
        { "0", 0 },
        { "0.000000001", 1 },
        { "0.0000000001", 0 },
        { "-1", -1 },
        { "1e999", -1 },
        { "1e-999", 0 },
        { "", -1 },
        { "true", -1 },
    };
    (void)unused;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int64_t ns = -1;
        bool ok = log_time_of_number(slice_str(table[i].token), &ns);
        if (ok != (table[i].ns >= 0) || ns != table[i].ns)
            fail_msg("%s gives %lld", table[i].token, (long long)ns);
    }
}

static void test_text_times(void **unused)
{
    static const struct {
        const char *line;
        const char *utc; /* NULL: no time */
    } table[] = {
        { "2026-11-30T16:05:28.696Z x", "2026-11-30T16:05:28.696Z" },
        { "2026-11-30 16:05:28.696 [info] x", "2026-11-30T16:05:28.696Z" },
        { "2026-11-30 16:05:28,696 - x", "2026-11-30T16:05:28.696Z" },
        { "[2026-11-30T16:05:28.696Z][1] x", "2026-11-30T16:05:28.696Z" },
        { "INFO 2026-11-30T16:05:28+01:00 x", "2026-11-30T15:05:28Z" },
        { "2026-11-30T16:05:28.5-0130 x", "2026-11-30T17:35:28.5Z" },
        { "2026-11-30T16:05:28", "2026-11-30T16:05:28Z" },
        { "16:05:28.696 [main] x", NULL },
        { "read: {\"at\":\"2026-11-30T16:05:28Z\"}", NULL },
        { "2026-13-30T16:05:28Z", NULL },
        { "2026-11-30T16:05:2", NULL },
        { "", NULL },
    };
    (void)unused;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int64_t want = 0;
        int64_t got = 0;
        bool ok = log_time_of_line(slice_str(table[i].line), &got);
        assert_int_equal(ok, table[i].utc != NULL);
        if (ok)
            assert_true(time_parse(slice_str(table[i].utc), &want) && want == got);
    }
}

static void test_plain_map(void **unused)
{
    struct dispatch_log *log =
        read_text("{\n \"41\" : \"committed\",\n\n \"4\\u0032\":\"processed\", "
                  "\"43\":\"unprocessed\",\n\"44\":\"sent\",\"45\":null\n}");
    (void)unused;

    assert_int_equal(log->count, 2);
    assert_true(log->file[0].is_map && is(log->file[0].format, "map"));
    assert_true(log->entry[0].from_map && !log->entry[0].has_time);
    assert_true(is(log->entry[0].event_id, "41") && log->entry[0].state == LOG_COMMITTED);
    assert_int_equal(log->entry[0].line, 2);
    assert_true(is(log->entry[1].event_id, "42") && log->entry[1].state == LOG_PROCESSED);
    assert_int_equal(log->entry[1].line, 4);
    assert_int_equal(log->fault_count, 2);
    assert_fault(log, 0, 5, "unknown state \"sent\"");
    assert_fault(log, 1, 5, "unknown state null");
    dispatch_log_free(log);
}

static void test_map_with_session(void **unused)
{
    struct dispatch_log *log =
        read_text("{\"dispatch_log\":{\"41\":\"committed\",\"42\":\"dropped\"},\"session\":\"s\","
                  "\"last_event_id\":\"42\",\"idempotent_handlers\":true}");
    const struct log_file *f = &log->file[0];
    (void)unused;

    assert_int_equal(log->count, 2);
    assert_true(is(f->map_cursor, "42") && f->idempotent_all && f->is_map);
    assert_true(is(log->entry[0].session, "s") && log->entry[1].state == LOG_DROPPED);
    dispatch_log_free(log);
}

static void test_map_array(void **unused)
{
    struct dispatch_log *log = read_text(
        " [ {\"session\":\"a\",\"last_event_id\":2,\"dispatch_log\":{\"1\":\"failed\"}},\n"
        "{\"session\":\"b\",\"dispatch_log\":{\"1\":\"received\"},\"idempotent_handlers\":[\"x\"]},"
        "7]");
    (void)unused;

    assert_int_equal(log->count, 2);
    assert_int_equal(log->file_count, 3); /* one for each object: each has its own cursor */
    assert_int_equal(log->file[0].input, log->file[1].input);
    assert_true(is(log->file[0].map_cursor, "2") && !log->file[1].map_cursor.ptr);
    assert_true(is(log->entry[0].session, "a") && is(log->entry[1].session, "b"));
    assert_int_equal(log->entry[1].file, 1);
    assert_int_equal(log->entry[1].line, 2);
    assert_true(is(log->file[1].idempotent[0], "x") && log->file[0].idempotent_count == 0);
    assert_fault(log, 0, 2, "not a map of event ids to states");
    dispatch_log_free(log);
}

static void test_damaged_map(void **unused)
{
    struct dispatch_log *log = read_text("{\"41\":\"committed\",\n\"42\":\"committed\"");
    (void)unused;

    assert_int_equal(log->count, 0);
    assert_int_equal(log->fault_count, 1);
    assert_int_equal(log->fault[0].line, 2);
    assert_int_equal(log->file[0].skipped, 1);
    dispatch_log_free(log);
}

static void test_several_files(void **unused)
{
    struct dispatch_log *log = read_text("{\"state\":\"received\",\"event_id\":\"1\"}\n");
    (void)unused;

    assert_true(log_of(log, SLICE_LIT("{\"1\":\"committed\"}")));
    assert_int_equal(log->count, 2);
    assert_int_equal(log->file_count, 2);
    assert_true(log->entry[1].file == 1 && log->entry[1].from_map && !log->entry[0].from_map);
    dispatch_log_free(log);
}

static void test_recognised(void **unused)
{
    static const struct {
        const char *head;
        bool yes;
    } table[] = {
        { "{\"state\":\"received\"}\n", true },
        { "\xef\xbb\xbf\r\n{\"state\":\"received\"}\n", true },
        { "{\"broken\n{\"ts\":1,\"state\":\"cursor\",\"event_id\":\"1\"}\n", true },
        { "{\"state\":\"eaten\",\"event_id\":\"1\"}\n", true },
        { "{\"dispatch_log\":1}", true },
        { "{\"41\":\"committed\"}", true },
        { "{\"41\":\"committed\",\"42\":\"proce", true },
        { "{\"session\":\"s\",\n\"dispatch_log\":{\"1\":\"comm", true },
        { "[{\"last_event_id\":\"1\",\"dispatch_log\":{", true },
        { "", false },
        { "{}", false },
        { "[]", false },
        { "{\"state\":\"open\",\"number\":7}", false },
        { "{\"name\":\"x\",\"status\":\"failed\"}", false },
        { "{\"log\":{\"version\":\"1.2\",\"entries\":[{\"state\":\"received\"}]}}", false },
        { "{\n\"log\": {\n\"text\": \"2026-01-01 [server -> editor] {}\",\n", false },
        { "CLIENT_RANDOM 00 00\n", false },
        { "the state is \"received\"\n", false },
        { "\xd4\xc3\xb2\xa1\x02\x00", false },
    };
    (void)unused;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (dispatch_log_is(slice_str(table[i].head)) != table[i].yes)
            fail_msg("%s", table[i].head);
    }
}

static void test_not_a_log(void **unused)
{
    struct dispatch_log *log = dispatch_log_new();
    (void)unused;

    assert_false(log_of(log, SLICE_LIT("hello\n")));
    assert_int_equal(log->file_count, 0);
    dispatch_log_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_ids_keep_their_type),
        cmocka_unit_test(test_strings_are_shared),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_text_times),
        cmocka_unit_test(test_plain_map),
        cmocka_unit_test(test_map_with_session),
        cmocka_unit_test(test_map_array),
        cmocka_unit_test(test_damaged_map),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_recognised),
        cmocka_unit_test(test_not_a_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
