/* test_pipeline.c - from files to a model: one capture, cut in pieces, spoiled, and given in other
 * orders. The captures are made of a recorded sample. */
#include "pipeline.h"

#include "report.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE     SOURCE_DIR "/samples/session-lost/capture.pcap"
#define LOG        SOURCE_DIR "/samples/session-lost/dispatch.ndjson"
#define HEAD       24u
#define MAX_FRAMES 200

/* The sample, frame by frame, and a folder for what is made of it. */
struct scratch {
    uint8_t *bytes;
    size_t len;
    struct slice frame[MAX_FRAMES]; /* with its record header */
    size_t count;
    char dir[32];
    char path[MAX_FRAMES][64];
    size_t paths;
    char *err; /* what the last run said */
};

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int setup(void **state)
{
    struct scratch *s = mem_alloc(sizeof(*s));
    FILE *f = fopen(SAMPLE, "rb");
    size_t at = HEAD;

    assert_non_null(f);
    s->bytes = mem_alloc((size_t)1 << 20);
    s->len = fread(s->bytes, 1, (size_t)1 << 20, f);
    fclose(f);
    while (at + 16 <= s->len && s->count < MAX_FRAMES) {
        size_t n = 16 + le32(s->bytes + at + 8);
        s->frame[s->count++] = (struct slice){ s->bytes + at, n };
        at += n;
    }
    assert_int_equal(at, s->len);
    assert_true(s->count > 64);
    snprintf(s->dir, sizeof(s->dir), "/tmp/test_pipeline.XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    *state = s;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct scratch *s = *state;

    nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(s->err);
    free(s->bytes);
    free(s);
    return 0;
}

static const char *new_file(struct scratch *s, struct slice head, struct slice body)
{
    char *path = s->path[s->paths];
    FILE *f;

    snprintf(path, sizeof(s->path[0]), "%s/%zu", s->dir, s->paths++);
    f = fopen(path, "wb");
    assert_non_null(f);
    if (head.len > 0)
        fwrite(head.ptr, 1, head.len, f);
    if (body.len > 0)
        fwrite(body.ptr, 1, body.len, f);
    fclose(f);
    return path;
}

static struct slice head_of(const struct scratch *s)
{
    return (struct slice){ s->bytes, HEAD };
}

static void add_file(struct options *opt, const char *path)
{
    GROW(opt->file, opt->file_count, opt->file_cap);
    opt->file[opt->file_count++] = (struct file_arg){ path, INPUT_UNKNOWN };
}

static struct audit *run(struct scratch *s, const struct options *opt)
{
    size_t len = 0;
    FILE *err;

    free(s->err);
    s->err = NULL;
    err = open_memstream(&s->err, &len);
    assert_non_null(err);
    struct audit *a = audit_run(opt, err);
    fclose(err);
    return a;
}

/* What was found, without frames: sessions, events, verdicts, rules. */
static char *outcome(const struct audit *a, const struct options *opt)
{
    struct findings *f = rules_run(a->model, PROFILE_DIVERGENCE, &thresholds_default);
    struct policy *policy = policy_load(NULL, stderr);
    struct report *r = report_new(opt, a, f, policy);
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    for (uint32_t i = 0; i < r->session_count; i++)
        fprintf(to, "%s: %u streams, %u legs, %u events\n", r->session[i]->name,
                r->session[i]->stream_count, r->session[i]->leg_count,
                r->session[i]->counted_events);
    for (uint32_t i = 0; i < r->resumption_count; i++)
        fprintf(to, "%s\n", verdict_text(r->resumption[i]->verdict));
    for (uint32_t i = 0; i < r->finding_count; i++)
        fprintf(to, "%s %s\n", r->finding[i]->rule->id, severity_text(r->finding[i]->severity));
    fclose(to);
    report_free(r);
    policy_free(policy);
    findings_free(f);
    return text;
}

static char *outcome_of(struct scratch *s, const struct options *opt)
{
    struct audit *a = run(s, opt);
    char *text;

    assert_non_null(a);
    text = outcome(a, opt);
    audit_free(a);
    return text;
}

static char *expected(struct scratch *s)
{
    struct options opt = { .jobs = 1 };
    char *text;

    add_file(&opt, SAMPLE);
    add_file(&opt, LOG);
    text = outcome_of(s, &opt);
    assert_non_null(strstr(text, "session-lost error"));
    assert_string_equal(s->err, "");
    options_release(&opt);
    return text;
}

/* Every frame a file of its own, named in reverse: more files than are kept open at once. */
static void test_many_files(void **state)
{
    struct scratch *s = *state;
    struct options opt = { .jobs = 1 };
    char *want = expected(s);
    char *got;

    for (size_t i = 0; i < s->count; i++)
        new_file(s, head_of(s), s->frame[i]);
    add_file(&opt, LOG);
    for (size_t i = s->count; i > 0; i--)
        add_file(&opt, s->path[i - 1]);
    got = outcome_of(s, &opt);
    assert_string_equal(got, want);
    free(got);
    free(want);
    options_release(&opt);
}

/* Two halves, one of them twice as a third file: duplicates change nothing but the inputs. */
static void test_two_files(void **state)
{
    struct scratch *s = *state;
    struct options opt = { .jobs = 2 };
    struct slice first = { s->frame[0].ptr, (size_t)(s->frame[40].ptr - s->frame[0].ptr) };
    struct slice rest = { s->frame[40].ptr, s->len - (size_t)(s->frame[40].ptr - s->bytes) };
    char *want = expected(s);
    char *got;

    add_file(&opt, new_file(s, head_of(s), rest));
    add_file(&opt, LOG);
    add_file(&opt, new_file(s, head_of(s), first));
    got = outcome_of(s, &opt);
    assert_string_equal(got, want);
    free(got);
    free(want);
    options_release(&opt);
}

static void test_cut_everywhere(void **state)
{
    struct scratch *s = *state;

    for (size_t len = 0; len < s->len; len += len < 200 ? 1 : 997) {
        struct options opt = { .jobs = 1 };

        s->paths = 0;
        add_file(&opt, new_file(s, (struct slice){ 0 }, (struct slice){ s->bytes, len }));
        struct audit *a = run(s, &opt);
        bool whole = len == HEAD;
        for (size_t i = 0; i < s->count; i++)
            whole |= s->frame[i].ptr + s->frame[i].len == s->bytes + len;
        if (a->incomplete == whole)
            fail_msg("cut after %zu bytes: incomplete %d, said: %s", len, a->incomplete, s->err);
        assert_true(whole == (s->err[0] == '\0'));
        if (!whole && len > HEAD)
            assert_int_equal(a->input[0].status, INPUT_TRUNCATED);
        audit_free(a);
        options_release(&opt);
    }
}

/* One bad file does not stop the others. */
static void test_bad_neighbours(void **state)
{
    static const struct {
        const char *bytes;
        const char *says;
    } bad[] = {
        { "", "is empty (0 bytes)" },
        { "just a few words\n", "not a capture, HAR, dispatch log or key log" },
    };
    struct scratch *s = *state;
    struct options opt = { .jobs = 1 };
    char *want = expected(s);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        add_file(&opt, new_file(s, (struct slice){ 0 }, slice_str(bad[i].bytes)));
    add_file(&opt, s->dir);
    add_file(&opt, "/tmp/no/such/file");
    add_file(&opt, SAMPLE);
    add_file(&opt, LOG);
    struct audit *a = run(s, &opt);
    char *got = outcome(a, &opt);
    assert_string_equal(got, want);
    assert_true(a->incomplete);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_non_null(strstr(s->err, bad[i].says));
    assert_non_null(strstr(s->err, "is a directory"));
    assert_non_null(strstr(s->err, "/tmp/no/such/file: cannot be opened"));
    assert_int_equal(a->input[0].kind, INPUT_EMPTY);
    assert_int_equal(a->input[0].status, INPUT_UNREAD);
    assert_int_equal(a->input[4].status, INPUT_COMPLETE);
    assert_int_equal(strlen(a->input[4].sha256), 64);
    assert_int_equal(a->input[4].packets, s->count);
    assert_int_equal(a->input[4].bytes, s->len);
    free(got);
    free(want);
    audit_free(a);
    options_release(&opt);
}

/* A capture without a packet is no error. */
static void test_no_packet(void **state)
{
    struct scratch *s = *state;
    struct options opt = { .jobs = 1 };

    add_file(&opt, new_file(s, head_of(s), (struct slice){ 0 }));
    struct audit *a = run(s, &opt);
    assert_false(a->incomplete);
    assert_string_equal(s->err, "");
    assert_int_equal(a->model->session_count, 0);
    assert_int_equal(a->input[0].first_time, 0);
    audit_free(a);
    options_release(&opt);
}

/* The clock of the capturing host was set back for the last frames: the order of the file counts,
 * and the report says so. */
static void test_clock_step(void **state)
{
    struct scratch *s = *state;
    struct options opt = { .jobs = 1 };
    char *want = expected(s);
    char *got;

    for (size_t i = s->count - 20; i < s->count; i++) {
        uint8_t *seconds = s->bytes + (s->frame[i].ptr - s->bytes);
        uint32_t v = le32(seconds) - 1000;
        for (int k = 0; k < 4; k++)
            seconds[k] = (uint8_t)(v >> (8 * k));
    }
    add_file(&opt, new_file(s, (struct slice){ 0 }, (struct slice){ s->bytes, s->len }));
    struct audit *a = run(s, &opt);
    assert_int_equal(a->input[0].note_count, 1);
    assert_non_null(strstr(a->input[0].note[0], "with a time before"));
    got = outcome(a, &opt);
    assert_memory_equal(got, want, 20); /* sessions and streams */
    free(got);
    free(want);
    audit_free(a);
    options_release(&opt);
}

static void test_filter(void **state)
{
    struct scratch *s = *state;
    struct options opt = { .jobs = 1, .filter = "tcp port 1" };

    add_file(&opt, SAMPLE);
    struct audit *a = run(s, &opt);
    assert_non_null(a);
    assert_int_equal(a->model->session_count, 0);
    assert_int_equal(a->input[0].packets, s->count);
    audit_free(a);
    opt.filter = "tcp port";
    assert_null(run(s, &opt));
    assert_non_null(strstr(s->err, "--filter: "));
    options_release(&opt);
}

static void test_bad_log_lines(void **state)
{
    struct scratch *s = *state;
    struct options opt = { .jobs = 1 };

    add_file(&opt, SAMPLE);
    add_file(&opt, new_file(s, (struct slice){ 0 },
                            SLICE_LIT("{\"event_id\":\"1\",\"state\":\"received\"}\n"
                                      "{\"event_id\":\"1\",\"state\":\n"
                                      "{\"event_id\":\"1\",\"state\":\"committed\"}\n")));
    struct audit *a = run(s, &opt);
    assert_true(a->incomplete);
    assert_non_null(strstr(s->err, ":2: "));
    assert_int_equal(a->log->count, 2);
    assert_int_equal(a->input[1].kind, INPUT_DISPATCH_LOG);
    assert_int_equal(a->input[1].status, INPUT_DAMAGED);
    audit_free(a);
    options_release(&opt);
}

/* A log or a HAR given twice, under one name or two, is there once. */
static void test_given_twice(void **state)
{
    static const char har[] =
        "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"x\",\"version\":\"1\"},\"entries\":"
        "[{\"startedDateTime\":\"2026-01-01T00:00:00.000Z\",\"time\":5,\"request\":"
        "{\"method\":\"GET\",\"url\":\"http://h/mcp\",\"headers\":[]},\"response\":"
        "{\"status\":405,\"headers\":[],\"content\":{\"size\":0}}}]}}";
    const struct slice log = SLICE_LIT("{\"event_id\":\"1\",\"state\":\"received\"}\n"
                                       "{\"event_id\":\"1\",\"state\":\n");
    struct scratch *s = *state;
    struct options opt = { .jobs = 1 };

    add_file(&opt, new_file(s, (struct slice){ 0 }, log));
    add_file(&opt, new_file(s, (struct slice){ 0 }, log));
    add_file(&opt, new_file(s, slice_str(har), (struct slice){ 0 }));
    add_file(&opt, opt.file[2].path);
    struct audit *a = run(s, &opt);
    assert_int_equal(a->log->file_count, 1);
    assert_int_equal(a->log->count, 1);
    assert_int_equal(a->log->fault_count, 1);
    assert_int_equal(a->input[0].packets, 1);
    assert_int_equal(a->input[1].packets, 0);
    assert_int_equal(a->input[2].packets, 1);
    assert_int_equal(a->input[3].packets, 0);
    assert_string_equal(a->input[3].sha256, a->input[2].sha256);
    for (int i = 1; i <= 3; i += 2) {
        assert_true(a->input[i].note_count > 0);
        assert_non_null(strstr(a->input[i].note[a->input[i].note_count - 1], "not counted again"));
    }
    audit_free(a);
    options_release(&opt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_everywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_neighbours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_packet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clock_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_log_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_twice, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
