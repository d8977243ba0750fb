/* test_finding.c - findings as they are built, and how they are settled: one fact one finding,
 * repetitions folded, a stable order. Rules and session are made up here. */
#include "settle.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

struct made {
    struct session session;
    struct session other;
    struct findings *out;
    struct rule_run run;
    struct arena *arena;
};

static int setup(void **state)
{
    struct made *m = mem_alloc(sizeof(*m));

    m->session.index = 0;
    m->other.index = 1;
    m->out = mem_alloc(sizeof(*m->out));
    m->out->arena = arena_new();
    m->run.out = m->out;
    m->arena = arena_new();
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct made *m = *state;

    findings_free(m->out);
    arena_free(m->arena);
    free(m);
    return 0;
}

/* One descriptor a name. */
static const struct rule *rule_named(struct made *m, const char *id)
{
    struct rule *r;

    for (uint32_t i = 0; i < m->out->count; i++) {
        if (strcmp(m->out->item[i]->rule->id, id) == 0)
            return m->out->item[i]->rule;
    }
    r = arena_alloc(m->arena, sizeof(*r));
    *r = (struct rule){ .id = id, .severity = SEV_WARNING };
    return r;
}

/* A finding of a rule with that name, with one place as its evidence. */
static struct finding *add(struct made *m, const char *rule, int64_t time)
{
    struct finding *f;

    m->run.rule = rule_named(m, rule);
    f = finding_add(&m->run, &m->session);
    finding_message(&m->run, f, "%s at %lld", rule, (long long)time);
    finding_frame(&m->run, f, (struct place){ .time = time, .frame = (uint32_t)time }, "here");
    return f;
}

/* "rule rule ..." as it is reported. */
static const char *settled(struct made *m)
{
    const char *text = "";

    findings_settle(m->out, NULL);
    for (uint32_t i = 0; i < m->out->count; i++)
        text = arena_printf(m->arena, "%s%s%s", text, i > 0 ? " " : "", m->out->item[i]->rule->id);
    return text;
}

static void test_defaults(void **state)
{
    struct made *m = *state;
    struct finding *f = add(m, "replay-gap", 5);

    assert_int_equal(f->severity, SEV_WARNING);
    assert_int_equal(f->certainty, CERTAINTY_PROVEN);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->stream, NONE);
    assert_int_equal(f->request_id.type, RPC_ID_NONE);
    assert_string_equal(f->message, "replay-gap at 5");
    finding_frame(&m->run, f, (struct place){ 0 }, "nowhere");
    assert_int_equal(f->evidence_count, 1);
    for (int i = 0; i < 20; i++)
        finding_frame(&m->run, f, (struct place){ .time = 9, .frame = 9 }, "%d", i);
    assert_int_equal(f->evidence_count, 21);
    assert_string_equal(f->evidence[20].what, "19");
    finding_log(&m->run, f, NONE, "no line");
    assert_int_equal(f->log_count, 0);
}

static void test_texts(void **state)
{
    struct made *m = *state;
    char longer[200];
    struct rpc_id number = { .type = RPC_ID_INT, .text = SLICE_LIT("99999999999999999999") };
    struct rpc_id text = { .type = RPC_ID_STRING, .text = SLICE_LIT("a") };

    memset(longer, 'x', sizeof(longer));
    assert_string_equal(run_id(&m->run, SLICE_LIT("42")), "\"42\"");
    assert_string_equal(run_id(&m->run, SLICE_LIT("a\x1b[2J\xff")), "\"a\\x1b[2J\\xff\"");
    assert_string_equal(run_id(&m->run, SLICE_LIT("\xc3\xa4")), "\"\xc3\xa4\"");
    assert_string_equal(run_id(&m->run, SLICE_LIT("\xe2\x80\xae")), "\"\\xe2\\x80\\xae\"");
    assert_int_equal(strlen(run_id(&m->run, (struct slice){ (uint8_t *)longer, 200 })), 80 + 5);
    assert_string_equal(run_rpc_id(&m->run, &number), "99999999999999999999");
    assert_string_equal(run_rpc_id(&m->run, &text), "\"a\"");
    assert_string_equal(run_seconds(&m->run, 1250 * NS_PER_MS), "1.25 s");
    assert_string_equal(run_seconds(&m->run, 60 * NS_PER_SEC), "60 s");
    assert_string_equal(run_seconds(&m->run, 300 * NS_PER_SEC), "300 s");
    assert_string_equal(run_seconds(&m->run, 40000), "0.00004 s");
    assert_string_equal(run_seconds(&m->run, 0), "0 s");
    assert_string_equal(run_seconds(&m->run, -NS_PER_SEC), "-1 s");
}

static void test_eras(void **state)
{
    const struct rule all = { .eras = 0 };
    const struct rule early = { .eras = ERA_L };
    const struct rule middle = { .eras = ERA_A | ERA_B | ERA_C };
    const struct rule late = { .eras = ERA_D };

    (void)state;
    assert_true(rule_in_era(&all, ERA_UNKNOWN));
    assert_true(rule_in_era(&middle, ERA_UNKNOWN));
    assert_false(rule_in_era(&late, ERA_UNKNOWN));
    assert_false(rule_in_era(&early, ERA_UNKNOWN));
    assert_true(rule_in_era(&late, ERA_D));
    assert_false(rule_in_era(&middle, ERA_D));
}

static void test_same_leg(void **state)
{
    struct made *m = *state;
    struct finding *winner = add(m, "replay-foreign-stream", 10);

    winner->leg = 3;
    add(m, "replay-gap", 11)->leg = 3;
    add(m, "replay-gap", 12)->leg = 4;
    add(m, "response-misrouted", 13)->leg = 3;
    add(m, "replay-gap", 14)->stream = 1; /* of no leg */
    assert_string_equal(settled(m), "replay-foreign-stream replay-gap replay-gap");
    assert_int_equal(winner->also_count, 2);
    assert_string_equal(winner->message,
                        "replay-foreign-stream at 10 (this explains also: replay-gap, "
                        "response-misrouted)");
}

static void test_same_request(void **state)
{
    struct made *m = *state;
    struct rpc_id one = rpc_id_of_token(SLICE_LIT("1"));
    struct rpc_id text = rpc_id_of_token(SLICE_LIT("\"1\""));

    add(m, "response-lost", 10)->request_id = one;
    add(m, "request-unanswered", 11)->request_id = one;
    add(m, "request-unanswered", 12)->request_id = text;
    assert_string_equal(settled(m), "response-lost request-unanswered");
}

static void test_other_session_stays(void **state)
{
    struct made *m = *state;
    struct finding *f;

    add(m, "replay-foreign-stream", 10)->leg = 3;
    f = add(m, "replay-gap", 11);
    f->leg = 3;
    f->session = &m->other;
    assert_string_equal(settled(m), "replay-foreign-stream replay-gap");
}

/* A new epoch explains what comes after it, not what came before. */
static void test_epoch(void **state)
{
    struct made *m = *state;

    add(m, "event-id-epoch-reset", 10);
    add(m, "cursor-regressed", 5);
    add(m, "cursor-regressed", 15)->stream = 1;
    add(m, "replay-ignored-cursor", 20);
    assert_string_equal(settled(m), "cursor-regressed event-id-epoch-reset");
}

/* ignored-cursor before foreign-stream before response-unknown: the first one gets all. */
static void test_chain(void **state)
{
    struct made *m = *state;
    struct finding *first = add(m, "replay-ignored-cursor", 9);

    first->leg = 1;
    add(m, "replay-foreign-stream", 10)->leg = 1;
    add(m, "response-unknown", 11)->leg = 1;
    assert_string_equal(settled(m), "replay-ignored-cursor");
    assert_int_equal(first->also_count, 2);
}

static void test_fold(void **state)
{
    struct made *m = *state;

    for (int i = 0; i < 20; i++)
        add(m, "retry-malformed", 100 + i)->stream = 2;
    add(m, "retry-malformed", 50)->stream = 3;
    add(m, "retry-malformed", 60)->severity = SEV_ERROR;
    assert_string_equal(settled(m), "retry-malformed retry-malformed retry-malformed");
    assert_int_equal(m->out->item[2]->count, 20);
    assert_int_equal(m->out->item[2]->evidence_count, SETTLE_EVIDENCE);
    assert_int_equal(m->out->item[2]->evidence[7].at.frame, 107);
    assert_int_equal(m->out->item[0]->count, 1);
}

static void test_other_missing_stays(void **state)
{
    const struct missing_id six = { .id = SLICE_LIT("6") };
    const struct missing_id seven = { .id = SLICE_LIT("7") };
    struct made *m = *state;
    struct finding *a = add(m, "replay-gap", 1);
    struct finding *b = add(m, "replay-gap", 2);

    a->missing = &six;
    b->missing = &seven;
    a->missing_count = b->missing_count = 1;
    assert_string_equal(settled(m), "replay-gap replay-gap");
}

static void test_order(void **state)
{
    struct made *m = *state;

    add(m, "b", 20);
    add(m, "c", 10);
    add(m, "a", 20);
    add(m, "d", 1)->session = NULL; /* of the recording: last */
    add(m, "e", 1)->session = &m->other;
    assert_string_equal(settled(m), "c a b e d");
}

static void test_undecidable(void **state)
{
    struct made *m = *state;
    static const struct rule r = { .id = "replay-gap" };

    m->run.rule = &r;
    undecidable_add(&m->run, &m->other, 1, "a gap");
    undecidable_add(&m->run, &m->session, NONE, "a gap");
    undecidable_add(&m->run, &m->session, 2, "a gap");
    undecidable_add(&m->run, &m->session, 2, "a gap");
    findings_settle(m->out, NULL);
    assert_int_equal(m->out->undecidable_count, 3);
    assert_int_equal(m->out->undecidable[0].stream, 2);
    assert_ptr_equal(m->out->undecidable[2].session, &m->other);
}

/* Half of them explain the other half; in no more than n log n. */
static void test_many(void **state)
{
    struct made *m = *state;

    for (uint32_t i = 0; i < 20000; i++) {
        add(m, i % 2 ? "replay-gap" : "replay-foreign-stream", i + 1)->leg = i / 2;
        m->out->item[i]->stream = i;
    }
    findings_settle(m->out, NULL);
    assert_int_equal(m->out->count, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eras, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_leg, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_session_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_missing_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undecidable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
