/* test_redact.c - no session id of the recording leaves in clear, whatever stands around it. */
#include "redact.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAX_IDS 6

struct redact_case {
    const char *ids[MAX_IDS];
    const char *text;
    const char *want; /* # stands for a digest */
};

/* Every "sess:" with its six digits as one #. */
static const char *marked(struct arena *a, struct slice s)
{
    const char *out = "";
    const char *text = arena_str(a, s);
    const char *hit;

    while ((hit = strstr(text, "sess:")) != NULL) {
        out = arena_printf(a, "%s%.*s#", out, (int)(hit - text), text);
        assert_int_equal(strspn(hit + 5, "0123456789abcdef") >= 6, true);
        text = hit + 11;
    }
    return arena_printf(a, "%s%s", out, text);
}

static void run_case(const struct redact_case *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct session sessions[MAX_IDS];
    struct session *list[MAX_IDS];
    struct model m = { .session = list };

    memset(sessions, 0, sizeof(sessions));
    for (size_t i = 0; i < MAX_IDS && c->ids[i]; i++) {
        sessions[i].id = slice_str(c->ids[i]);
        list[m.session_count++] = &sessions[i];
    }
    struct redact *r = redact_new(&m);
    assert_string_equal(marked(a, redact_text(r, a, slice_str(c->text))), c->want);
    redact_free(r);
}

static void test_cases(void **state)
{
    static const struct redact_case cases[] = {
        { { NULL }, "secret-1", "secret-1" },
        { { "secret-1" }, "", "" },
        { { "secret-1" }, "nothing here", "nothing here" },
        { { "secret-1" }, "secret-1", "#" },
        { { "secret-1" }, "event secret-1_00042 of secret-1", "event #_00042 of #" },
        { { "secret-1" }, "secret-", "secret-" },
        { { "secret-1", "secret-10" }, "secret-10 secret-1 secret-12", "# # #2" },
        { { "secret-1", "secret-15", "secret-1999" }, "secret-199 secret-1999", "#99 #" },
        { { "secret-1", "secret-1" }, "secret-1secret-1", "##" },
        { { "aaaaaa", "aaaaaaaa" }, "aaaaaaa aaaaaaaa", "#a #" },
        { { "abc" }, "abc is too short to be a secret", "abc is too short to be a secret" },
        { { "secret-1", "t-1sec" }, "secret-1secret-1", "##" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        run_case(&cases[i]);
}

static void test_reveal(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice s = redact_text(NULL, a, SLICE_LIT("as it is"));

    (void)state;
    assert_true(slice_eq(s, SLICE_LIT("as it is")));
}

static void test_digest(void **state)
{
    char hex[65];

    (void)state;
    redact_digest(SLICE_LIT("abc"), 12, hex);
    assert_string_equal(hex, "ba7816bf8f01"); /* FIPS 180-2, B.1 */
    redact_digest((struct slice){ 0 }, 64, hex);
    assert_int_equal(strlen(hex), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_reveal),
        cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
