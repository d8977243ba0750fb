/* test_options.c - the command line: what is taken, what is refused, and in which words. */
#include "options.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>

#define MAX_ARGS 12

struct parsed {
    enum options_result result;
    struct options opt;
    char *argv[MAX_ARGS + 2];
    char *err; /* what was said */
};

/* In place, since the options borrow from argv. */
static void parse(struct parsed *p, const char *const *args)
{
    size_t len = 0;
    int argc = 0;
    FILE *err;

    *p = (struct parsed){ .result = OPTIONS_BAD };
    err = open_memstream(&p->err, &len);
    assert_non_null(err);
    p->argv[argc++] = strdup("sseaudit");
    for (size_t i = 0; i < MAX_ARGS && args[i]; i++)
        p->argv[argc++] = strdup(args[i]);
    p->result = options_parse(argc, p->argv, &p->opt, err);
    fclose(err);
}

static void done(struct parsed *p)
{
    for (size_t i = 0; p->argv[i]; i++)
        free(p->argv[i]);
    options_release(&p->opt);
    free(p->err);
}

static void test_refused(void **state)
{
    static const struct {
        const char *args[MAX_ARGS];
        const char *says;
    } cases[] = {
        { { NULL }, "no input" },
        { { "--nonsense", "a.pcap" }, "--nonsense is not an option" },
        { { "-x", "a.pcap" }, "-x is not an option" },
        { { "a.pcap", "--log" }, "--log needs a value" },
        { { "a.pcap", "-o" }, "-o needs a value" },
        { { "--format", "yaml", "a" }, "use text, json, ndjson, html, sarif or junit" },
        { { "--format", "html", "a" }, "not in this version" },
        { { "--format=junit", "a" }, "not in this version" },
        { { "-o", "r.sarif", "a" }, "not in this version" },
        { { "--profile", "some", "a" }, "use divergence, conformance or all" },
        { { "--fail-on", "fatal", "a" }, "\"fatal\"" },
        { { "--fail-on", "error,sometimes", "a" }, "\"sometimes\"" },
        { { "--fail-on", "", "a" }, "unknown value \"\"" },
        { { "--strict=yes", "a" }, "--strict takes no value" },
        { { "--quiet=1", "a" }, "--quiet takes no value" },
        { { "--format", "\x1b[31mred", "a" }, "\"\\x1b[31mred\"" },
        { { "--\x1b[31m=1\n", "a" }, "--\\x1b[31m=1\\x0a is not an option" },
        { { "--color", "red", "a" }, "use auto, always or never" },
        { { "-j", "0", "a" }, "-j: \"0\" is no number" },
        { { "-j", "many", "a" }, "-j: \"many\" is no number" },
        { { "--max-ids", "-1", "a" }, "--max-ids: \"-1\" is no number" },
        { { "--since", "yesterday", "a" }, "--since: \"yesterday\" is no time" },
        { { "--since", "2026-01-02T00:00:00Z", "--until", "2026-01-01T00:00:00Z", "a" },
          "--until is not after --since" },
        { { "--accept", "a" }, "--accept belongs to sseaudit corpus" },
        { { "extract", "a" }, "extract is not in this version" },
        { { "judge" }, "judge is not in this version" },
        { { "annotate", "-o", "x", "a" }, "annotate is not in this version" },
        { { "corpus" }, "name the folder" },
        { { "corpus", "--strict", "d" }, "stand in its expect.json" },
        { { "rules", "replay-gap" }, "sseaudit explain replay-gap" },
        { { "explain" }, "name one rule" },
        { { "explain", "a", "b" }, "name one rule" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parsed p;

        parse(&p, cases[i].args);

        if (p.result != OPTIONS_BAD || !strstr(p.err, cases[i].says))
            fail_msg("case %zu: result %d, said: %s", i, (int)p.result, p.err);
        /* one line, by name */
        assert_ptr_equal(strchr(p.err, '\n'), p.err + strlen(p.err) - 1);
        assert_int_equal(strncmp(p.err, "sseaudit: ", 10), 0);
        done(&p);
    }
}

static void test_defaults(void **state)
{
    struct parsed p;

    parse(&p, (const char *const[]){ "a.pcap", NULL });

    (void)state;
    assert_int_equal(p.result, OPTIONS_GO);
    assert_int_equal(p.opt.command, COMMAND_AUDIT);
    assert_int_equal(p.opt.format, FORMAT_TEXT);
    assert_int_equal(p.opt.profiles, PROFILE_DIVERGENCE);
    assert_int_equal(p.opt.fail_on, SEV_ERROR);
    assert_false(p.opt.fail_on_undecidable);
    assert_false(p.opt.reveal);
    assert_false(p.opt.show_payload);
    assert_int_equal(p.opt.jobs, 0); /* as many as there are cores */
    done(&p);
}

/* Files keep their order, whatever option names them: the report counts inputs by it. */
static void test_files_in_order(void **state)
{
    struct parsed p;

    parse(&p,
          (const char *const[]){ "a", "--log", "b", "-q", "c", "--keylog=d", "--", "--e", NULL });

    (void)state;
    assert_int_equal(p.result, OPTIONS_GO);
    assert_int_equal(p.opt.file_count, 5);
    assert_string_equal(p.opt.file[0].path, "a");
    assert_int_equal(p.opt.file[0].kind, INPUT_UNKNOWN);
    assert_string_equal(p.opt.file[1].path, "b");
    assert_int_equal(p.opt.file[1].kind, INPUT_DISPATCH_LOG);
    assert_string_equal(p.opt.file[2].path, "c");
    assert_string_equal(p.opt.file[3].path, "d");
    assert_int_equal(p.opt.file[3].kind, INPUT_KEYLOG);
    assert_string_equal(p.opt.file[4].path, "--e");
    done(&p);
}

static void test_all_options(void **state)
{
    struct parsed p;

    parse(&p, (const char *const[]){ "--profile=all", "--strict", "--idempotent=a",
                                     "--idempotent=b", "--fail-on=warning,undecidable", "-j4",
                                     "-vv", "--reveal", "--session=s1", "--max-ids=7", "x", NULL });

    (void)state;
    assert_int_equal(p.result, OPTIONS_GO);
    assert_int_equal(p.opt.profiles, PROFILE_DIVERGENCE | PROFILE_CONFORMANCE);
    assert_string_equal(profiles_text(p.opt.profiles), "all");
    assert_true(p.opt.strict);
    assert_int_equal(p.opt.idempotent_count, 2);
    assert_string_equal(p.opt.idempotent[1], "b");
    assert_int_equal(p.opt.fail_on, SEV_WARNING);
    assert_true(p.opt.fail_on_undecidable);
    assert_int_equal(p.opt.jobs, 4);
    assert_int_equal(p.opt.verbose, 2);
    assert_true(p.opt.reveal);
    assert_string_equal(p.opt.session, "s1");
    assert_int_equal(p.opt.max_ids, 7);
    done(&p);
}

static void test_format_of_output(void **state)
{
    static const struct {
        const char *args[MAX_ARGS];
        enum format format;
    } cases[] = {
        { { "-o", "r.json", "a" }, FORMAT_JSON },
        { { "-o", "r.ndjson", "a" }, FORMAT_NDJSON },
        { { "-o", "r.txt", "a" }, FORMAT_TEXT },
        { { "-o", ".json", "a" }, FORMAT_TEXT },
        { { "-o", "r.json", "--format", "text", "a" }, FORMAT_TEXT },
        { { "rules", "--format", "json" }, FORMAT_JSON },
        { { "corpus", "--format", "junit", "d" }, FORMAT_JUNIT },
        { { "corpus", "-o", "r.xml", "d" }, FORMAT_JUNIT },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct parsed p;

        parse(&p, cases[i].args);

        assert_int_equal(p.result, OPTIONS_GO);
        assert_int_equal(p.opt.format, cases[i].format);
        done(&p);
    }
}

static void test_times(void **state)
{
    struct parsed p;

    parse(&p, (const char *const[]){ "--since", "1970-01-01T00:00:01Z", "--until",
                                     "1970-01-01T01:00:02.5+01:00", "a", NULL });

    (void)state;
    assert_int_equal(p.result, OPTIONS_GO);
    assert_int_equal(p.opt.since, NS_PER_SEC);
    assert_int_equal(p.opt.until, 2 * NS_PER_SEC + NS_PER_SEC / 2);
    done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),          cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_files_in_order),   cmocka_unit_test(test_all_options),
        cmocka_unit_test(test_format_of_output), cmocka_unit_test(test_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
