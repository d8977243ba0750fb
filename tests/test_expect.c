/* test_expect.c - expectations against reports, one table; and that what is accepted then holds. */
#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* ' stands for ". */
static json_t *parse(const char *text)
{
    char *copy = strdup(text);
    json_error_t e;
    json_t *root;

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    root = json_loads(copy, 0, &e);
    if (!root)
        fail_msg("%s: %s", text, e.text);
    free(copy);
    return root;
}

#define REPORT                                                                                     \
    "{'summary': {'sessions': 1, 'findings': {'error': 1, 'warning': 1, 'info': 1}},"              \
    " 'sessions': [{'session': 's1', 'id_scheme': 'dense'}],"                                      \
    " 'resumptions': [{'cursor': '5', 'verdict': 'fail', 'missing': ['6', '7']}],"                 \
    " 'findings': ["                                                                               \
    "  {'rule': 'replay-gap', 'severity': 'error', 'missing': ['6', '7'], 'request_id': 1,"        \
    "   'evidence': [{}]},"                                                                        \
    "  {'rule': 'cursor-behind', 'severity': 'warning', 'evidence': [{}]},"                        \
    "  {'rule': 'resume-unproven', 'severity': 'info', 'log': [{}]}],"                             \
    " 'undecidable': [{'rule': 'cursor-forged', 'session': 's1'}]}"

/* What fits it, but for the case's own members. */
#define ALL "'require': [{'rule': 'replay-gap'}, {'rule': 'cursor-behind'}]"

static const struct {
    const char *expect;
    const char *fault; /* NULL: none */
} cases[] = {
    { "{" ALL "}", NULL },
    { "{'require': [{'rule': 'replay-gap'}]}", "not expected: rule=\"cursor-behind\"" },
    { "{'require': [{'rule': 'replay-gap'}], 'allow': ['cursor-*']}", NULL },
    { "{'require': [{'rule': 'replay-gap'}], 'allow': [{'severity': 'warning'}]}", NULL },
    { "{'require': [{'rule': 'replay-gap', 'missing': ['7', '6']}], 'allow': ['*']}", NULL },
    { "{'require': [{'rule': 'replay-gap', 'missing': ['7']}], 'allow': ['*']}", "missing: " },
    { "{'require': [{'rule': 'replay-gap', 'request_id': '1'}], 'allow': ['*']}", "missing: " },
    { "{'require': [{'rule': 'replay-gap', 'cursor': '5'}], 'allow': ['*']}", "missing: " },
    { "{'require': [{'rule': 'session-lost'}], 'allow': ['*']}", "missing: " },
    { "{" ALL ", 'any_of': [[{'rule': 'session-lost'}, {'rule': 'replay-gap'}]]}", NULL },
    { "{" ALL ", 'any_of': [[{'rule': 'session-lost'}]]}", "missing one of: " },
    { "{" ALL ", 'forbid': ['resume-*']}", "forbidden: rule=\"resume-unproven\"" },
    { "{" ALL ", 'forbid': ['resume-[!u]*']}", NULL },
    { "{" ALL ", 'forbid': [{'rule': 'replay-gap', 'request_id': 2}]}", NULL },
    { "{" ALL ", 'forbid': [{'severity': 'info'}]}", "forbidden: " },
    { "{" ALL ", 'resumptions': [{'cursor': '5', 'verdict': 'fail'}]}", NULL },
    { "{" ALL ", 'resumptions': [{'cursor': '5', 'verdict': 'wait'}]}", "resumption 0: expected " },
    { "{" ALL ", 'resumptions': []}", "0 resumptions expected, 1 reported" },
    { "{" ALL ", 'sessions': [{'id_scheme': 'dense'}]}", NULL },
    { "{" ALL ", 'sessions': [{'id_scheme': 'time'}]}", "nothing in sessions has " },
    { "{" ALL ", 'undecidable': [{'rule': 'cursor-forged'}]}", NULL },
    { "{" ALL ", 'undecidable': [{'rule': 'replay-gap'}]}", "nothing in undecidable has " },
    { "{" ALL ", 'summary': {'sessions': 1}}", NULL },
    { "{" ALL ", 'summary': {'sessions': 1.0}}", "summary.sessions: 1.0 expected, got 1" },
    { "{" ALL ", 'summary': {'streams': 1}}", "summary.streams: 1 expected, got nothing" },
    { "{" ALL ", 'exit': 1}", NULL },
    { "{" ALL ", 'exit': 0}", "exit status 0 expected, got 1" },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *expect = parse(cases[i].expect);
        json_t *report = parse(REPORT);
        struct faults f;

        faults_init(&f);
        expect_compare(expect, report, 1, &f);
        if (f.count != (cases[i].fault ? 1 : 0))
            fail_msg("%s: %zu faults, the first: %s", cases[i].expect, f.count,
                     f.count > 0 ? f.item[0] : "-");
        if (cases[i].fault && strncmp(f.item[0], cases[i].fault, strlen(cases[i].fault)) != 0)
            fail_msg("%s: %s", cases[i].expect, f.item[0]);
        faults_release(&f);
        json_decref(expect);
        json_decref(report);
    }
}

static void test_status_3(void **state)
{
    json_t *expect = parse("{" ALL "}");
    json_t *report = parse(REPORT);
    struct faults f;

    (void)state;
    faults_init(&f);
    expect_compare(expect, report, 3, &f);
    assert_int_equal(f.count, 1);
    assert_string_equal(f.item[0], "exit status 3: an input was not read to its end");
    faults_release(&f);
    json_decref(expect);
    json_decref(report);
}

static void test_lint(void **state)
{
    static const struct {
        const char *expect;
        size_t faults;
    } lints[] = {
        { "{" ALL ", 'title': 't', 'options': ['--strict'], 'inputs': ['a'], 'exit': 1}", 0 },
        { "{'require': [{'rule': 'replay-gpa'}]}", 1 },
        { "{'any_of': [[{'rule': 'replay-gpa'}, {}]]}", 2 },
        { "{'require': [{'rule': 'replay-gap'}], 'forbid': ['replay-*']}", 1 },
        { "{'require': [], 'allow': ['replay-gap'], 'forbid': ['replay-*']}", 1 },
        { "{'require': [], 'forbids': ['replay-*']}", 1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lints); i++) {
        json_t *expect = parse(lints[i].expect);
        struct faults f;

        faults_init(&f);
        expect_lint(expect, &f);
        if (f.count != lints[i].faults)
            fail_msg("%s: %zu faults", lints[i].expect, f.count);
        faults_release(&f);
        json_decref(expect);
    }
}

static void test_accepted_holds(void **state)
{
    json_t *report = parse(REPORT);

    (void)state;
    for (size_t i = 0; i <= ARRAY_LEN(cases); i++) {
        json_t *old = i < ARRAY_LEN(cases) ? parse(cases[i].expect) : NULL;
        json_t *accepted = expect_of(old, report, 1);
        struct faults f;

        faults_init(&f);
        expect_lint(accepted, &f);
        expect_compare(accepted, report, 1, &f);
        if (f.count > 0)
            fail_msg("case %zu: %s", i, f.item[0]);
        faults_release(&f);
        json_decref(accepted);
        json_decref(old);
    }
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_status_3),
        cmocka_unit_test(test_lint),
        cmocka_unit_test(test_accepted_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
