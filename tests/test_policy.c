/* test_policy.c - policy files: what is taken, what is refused by name, what it does to findings.
 */
#include "policy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

struct loaded {
    struct policy *policy;
    char path[32];
    char *err;
};

/* Loads the text by way of a file, since that is what users have. ' stands for ". */
static struct loaded load(const char *text)
{
    struct loaded l = { .path = "/tmp/test_policy.XXXXXX" };
    size_t len = 0;
    FILE *err = open_memstream(&l.err, &len);
    int fd = mkstemp(l.path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    assert_non_null(err);
    assert_non_null(f);
    for (; *text; text++)
        fputc(*text == '\'' ? '"' : *text, f);
    fclose(f);
    l.policy = policy_load(l.path, err);
    fclose(err);
    unlink(l.path);
    return l;
}

static void done(struct loaded *l)
{
    policy_free(l->policy);
    free(l->err);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        { "", "line 1" },
        { "[]", "the policy is no object" },
        { "{'rule': {}}", "unknown member \"rule\" in the policy" },
        { "{'rules': []}", "rules is no object" },
        { "{'rules': {'no-such-rule': {'severity': 'off'}}}", "unknown rule \"no-such-rule\"" },
        { "{'rules': {'replay-gap': {'severity': 'fatal'}}}", "error, warning, info or off" },
        { "{'rules': {'replay-gap': {}}}", "error, warning, info or off" },
        { "{'rules': {'replay-gap': {'level': 'off'}}}", "unknown member \"level\"" },
        { "{'rules': {'replay-gap': 'off'}}", "replay-gap is no object" },
        { "{'thresholds': {'resume_lop': 3}}", "unknown threshold \"resume_lop\"" },
        { "{'thresholds': {'resume_loop': 'three'}}", "resume_loop: not a whole number" },
        { "{'thresholds': {'resume_loop': 2.5}}", "resume_loop: not a whole number" },
        { "{'thresholds': {'resume_loop': 0}}", "resume_loop: not a whole number" },
        { "{'thresholds': {'retry_tolerance_ms': -1}}", "retry_tolerance_ms: not a number" },
        { "{'thresholds': {'retry_tolerance_ms': 1e300}}", "retry_tolerance_ms: not a number" },
        { "{'suppress': {}}", "suppress is no array" },
        { "{'suppress': [{'rule': 'idle-*'}]}", "without a reason" },
        { "{'suppress': [{'rule': 'idle-*', 'reason': ''}]}", "without a reason" },
        { "{'suppress': [{'reason': 'all of it'}]}", "names neither" },
        { "{'suppress': [{'rule': 7, 'reason': 'x'}]}", "rule is no string" },
        { "{'suppress': [{'host': 'a', 'reason': 'x'}]}", "unknown member \"host\"" },
        { "{'rules': {}, 'rules': {}}", "duplicate" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct loaded l = load(cases[i].text);

        if (l.policy || !strstr(l.err, cases[i].says) || !strstr(l.err, l.path))
            fail_msg("%s: said: %s", cases[i].text, l.err);
        assert_ptr_equal(strchr(l.err, '\n'), l.err + strlen(l.err) - 1);
        done(&l);
    }
}

static void test_missing(void **state)
{
    char *said = NULL;
    size_t len = 0;
    FILE *err = open_memstream(&said, &len);

    (void)state;
    assert_null(policy_load("/tmp/no/such/policy", err));
    fclose(err);
    assert_non_null(strstr(said, "/tmp/no/such/policy: the policy cannot be opened"));
    free(said);
}

static void test_none(void **state)
{
    struct policy *p = policy_load(NULL, stderr);

    (void)state;
    assert_null(policy_sha256(p));
    assert_memory_equal(policy_thresholds(p), &thresholds_default, sizeof(thresholds_default));
    policy_free(p);
}

static void test_thresholds(void **state)
{
    struct loaded l = load("{'thresholds': {'retry_tolerance_ms': 100, 'resume_loop': 7, "
                           "'storm_count': 20, 'storm_window_s': 1.5, 'keepalive_factor': 3.5, "
                           "'id_length': 64, 'burst_spread_s': 0}}");
    const struct thresholds *t = policy_thresholds(l.policy);

    (void)state;
    assert_int_equal(t->retry_tolerance, 100 * NS_PER_MS);
    assert_int_equal(t->resume_loop, 7);
    assert_int_equal(t->storm_count, 20);
    assert_int_equal(t->storm_window, 1500 * NS_PER_MS);
    assert_true(t->keepalive_factor > 3.4 && t->keepalive_factor < 3.6);
    assert_int_equal(t->id_length, 64);
    assert_int_equal(t->burst_spread, 0);
    assert_int_equal(t->idle_timeout, thresholds_default.idle_timeout);
    assert_int_equal(strlen(policy_sha256(l.policy)), 64);
    done(&l);
}

/* What the policy does to one finding of replay-gap in session s1 of mcp.example at /mcp?a=1. */
static struct finding apply(const char *text, uint32_t *ret_count)
{
    struct loaded l = load(text);
    struct exch exch = { .target = SLICE_LIT("/mcp?a=1") };
    struct exch *list[] = { &exch };
    struct session s = {
        .name = "s1",
        .id = SLICE_LIT("secret-session"),
        .authority = SLICE_LIT("mcp.example"),
        .server = { .port = 443 },
        .exch = list,
        .exch_count = 1,
    };
    struct finding f = {
        .rule = rule_find("replay-gap"), .severity = SEV_ERROR, .session = &s, .exch = NONE
    };
    struct finding *items[] = { &f };
    struct findings all = { .item = items, .count = 1 };

    assert_non_null(l.policy);
    assert_non_null(f.rule);
    policy_apply(l.policy, &all);
    *ret_count = all.count;
    done(&l);
    return f;
}

static void test_severity(void **state)
{
    uint32_t count;
    struct finding f = apply("{'rules': {'replay-gap': {'severity': 'info'}}}", &count);

    (void)state;
    assert_int_equal(f.severity, SEV_INFO);
    assert_int_equal(count, 1);
    f = apply("{'rules': {'replay-gap': {'severity': 'off'}}}", &count);
    assert_int_equal(count, 0);
    f = apply("{'rules': {'replay-empty': {'severity': 'off'}}}", &count);
    assert_int_equal(count, 1);
    assert_int_equal(f.severity, SEV_ERROR);
}

static void test_suppress(void **state)
{
    static const struct {
        const char *text;
        bool suppressed;
    } cases[] = {
        { "{'suppress': [{'rule': 'replay-*', 'reason': 'known'}]}", true },
        { "{'suppress': [{'rule': 'cursor-*', 'reason': 'known'}]}", false },
        { "{'suppress': [{'session': 's1', 'reason': 'known'}]}", true },
        { "{'suppress': [{'session': 'secret-*', 'reason': 'known'}]}", true },
        { "{'suppress': [{'session': 'sha:*', 'reason': 'known'}]}", true },
        { "{'suppress': [{'session': 's2', 'reason': 'known'}]}", false },
        { "{'suppress': [{'server': 'mcp.example', 'reason': 'known'}]}", true },
        { "{'suppress': [{'server': '*:443', 'reason': 'known'}]}", true },
        { "{'suppress': [{'server': 'other', 'reason': 'known'}]}", false },
        { "{'suppress': [{'path': '/mcp*', 'reason': 'known'}]}", true },
        { "{'suppress': [{'path': '/mcp', 'reason': 'known'}]}", false },
        { "{'suppress': [{'rule': 'replay-*', 'path': '/x', 'reason': 'known'}]}", false },
        { "{'suppress': [{'rule': 'x', 'reason': 'a'}, {'rule': 'replay-?ap', 'reason': 'b'}]}",
          true },
    };
    uint32_t count;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct finding f = apply(cases[i].text, &count);

        if (f.suppressed != cases[i].suppressed)
            fail_msg("%s: suppressed %d", cases[i].text, f.suppressed);
        assert_int_equal(count, 1); /* never dropped */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_missing),
        cmocka_unit_test(test_none),     cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_severity), cmocka_unit_test(test_suppress),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
