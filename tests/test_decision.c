/*
 * test_decision.c - the reference decision for integer ids against a table, exhaustively, and the
 * judgement of whole scenes with integer ids against the reference decision.
 */
#include "decision.h"
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>

/* ---- the table ---- */

/* Where the head stands relative to the cursor. */
enum where { BELOW, EQUAL, NEXT, BEYOND, WHERES };

#define STATES (HEAD_COMMITTED + 1)

static const enum decision_kind table[WHERES][STATES][2] = {
    /* [where][state] = { handler not idempotent, idempotent } */
    [BELOW] = { [HEAD_NO_LOG] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_UNPROCESSED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_RECEIVED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_PROCESSED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_COMMITTED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR } },
    [EQUAL] = { [HEAD_NO_LOG] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_UNPROCESSED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_RECEIVED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_PROCESSED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR },
                [HEAD_COMMITTED] = { DECIDE_CURSOR_ERROR, DECIDE_CURSOR_ERROR } },
    [NEXT] = { [HEAD_NO_LOG] = { DECIDE_RESUME, DECIDE_RESUME },
               [HEAD_UNPROCESSED] = { DECIDE_RESUME, DECIDE_RESUME },
               [HEAD_RECEIVED] = { DECIDE_RESUME, DECIDE_RESUME },
               [HEAD_PROCESSED] = { DECIDE_IN_DOUBT, DECIDE_RESUME },
               [HEAD_COMMITTED] = { DECIDE_DUPLICATE, DECIDE_RESUME } },
    [BEYOND] = { [HEAD_NO_LOG] = { DECIDE_GAP, DECIDE_GAP },
                 [HEAD_UNPROCESSED] = { DECIDE_GAP, DECIDE_GAP },
                 [HEAD_RECEIVED] = { DECIDE_GAP, DECIDE_GAP },
                 [HEAD_PROCESSED] = { DECIDE_GAP, DECIDE_GAP },
                 [HEAD_COMMITTED] = { DECIDE_GAP, DECIDE_GAP } },
};

#define RANGE 20u
static enum where where_of(uint64_t cursor, uint64_t head)
{
    if (head < cursor)
        return BELOW;
    if (head == cursor)
        return EQUAL;
    return head - cursor == 1 ? NEXT : BEYOND;
}

static void check_missing(struct decision d, uint64_t cursor, uint64_t head)
{
    for (uint64_t id = 0; id <= RANGE; id++) {
        bool between = id > cursor && id < head;
        bool listed = d.kind == DECIDE_GAP && id >= d.missing_first && id <= d.missing_last;
        assert_int_equal(listed, between && where_of(cursor, head) == BEYOND);
    }
}

static void check_cell(uint64_t cursor, uint64_t head)
{
    for (unsigned state = HEAD_NO_LOG; state < STATES; state++) {
        for (unsigned idempotent = 0; idempotent < 2; idempotent++) {
            struct decision d = decide(cursor, head, (enum head_state)state, idempotent != 0);
            assert_int_equal(d.kind, table[where_of(cursor, head)][state][idempotent]);
            check_missing(d, cursor, head);
        }
    }
}

static void test_table(void **unused)
{
    (void)unused;
    for (uint64_t cursor = 0; cursor <= RANGE; cursor++) {
        for (uint64_t head = 0; head <= RANGE; head++)
            check_cell(cursor, head);
    }
}

static void test_limits(void **unused)
{
    (void)unused;
    assert_int_equal(decide(UINT64_MAX, 0, HEAD_NO_LOG, true).kind, DECIDE_CURSOR_ERROR);
    assert_int_equal(decide(UINT64_MAX, UINT64_MAX, HEAD_NO_LOG, true).kind, DECIDE_CURSOR_ERROR);
    assert_int_equal(decide(UINT64_MAX - 1, UINT64_MAX, HEAD_NO_LOG, false).kind, DECIDE_RESUME);
    struct decision d = decide(0, UINT64_MAX, HEAD_COMMITTED, true);
    assert_int_equal(d.kind, DECIDE_GAP);
    assert_true(d.missing_first == 1 && d.missing_last == UINT64_MAX - 1);
}

/* ---- scenes ---- */

struct plan {
    unsigned cursor, head;
    enum head_state state; /* of the head, at the reconnect */
    bool idempotent;
};

static void put_event(FILE *out, const char *leg, unsigned id)
{
    fprintf(out, "%s event id=%u notify notifications/message {\"level\":\"info\",\"data\":%u}\n",
            leg, id, id);
}

static void put_log(FILE *out, unsigned id, enum head_state state)
{
    if (state >= HEAD_RECEIVED)
        fprintf(out, "+0.001 log received %u\n", id);
    if (state >= HEAD_PROCESSED)
        fprintf(out, "+0.001 log processed %u\n", id);
    if (state >= HEAD_COMMITTED)
        fprintf(out, "+0.001 log committed %u\n", id);
}

/* Events up to the cursor are done; those above it, up to the head, are as far as the plan says. */
static void write_scene(const struct plan *p, FILE *out)
{
    bool seen = p->state >= HEAD_RECEIVED && p->head > p->cursor;
    unsigned last = seen ? p->head : p->cursor;

    if (p->state != HEAD_NO_LOG)
        fprintf(out, "log {\"dispatch_log\":1,\"idempotent_handlers\":%s}\n",
                p->idempotent ? "true" : "false");
    fprintf(out, "session S1 2025-11-25\n@1 a GET\na < 200 sse\n");
    for (unsigned id = 1; id <= last; id++) {
        put_event(out, "a", id);
        if (p->state != HEAD_NO_LOG)
            put_log(out, id, id <= p->cursor ? HEAD_COMMITTED : p->state);
    }
    fprintf(out, "@3 a fin\n@4 b GET cursor=%u\nb < 200 sse\n", p->cursor);
    put_event(out, "b", p->head);
}

static unsigned fault_of(enum decision_kind kind)
{
    static const unsigned faults[] = {
        [DECIDE_CURSOR_ERROR] = RF_AT_OR_BELOW,
        [DECIDE_GAP] = RF_GAP,
        [DECIDE_DUPLICATE] = RF_DUPLICATED,
        [DECIDE_IN_DOUBT] = RF_UNCOMMITTED,
        [DECIDE_RESUME] = 0,
    };

    return faults[kind];
}

static void check_listed(const struct resumption *r, struct decision d)
{
    char text[16];

    assert_int_equal(r->missing_count, d.missing_last - d.missing_first + 1);
    for (uint32_t i = 0; i < r->missing_count; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned)d.missing_first + i);
        assert_true(slice_eq(r->missing[i].id, slice_str(text)));
    }
}

static void check_plan(const struct plan *p)
{
    struct decision d = decide(p->cursor, p->head, p->state, p->idempotent);
    unsigned judged = RF_AT_OR_BELOW | RF_GAP | RF_DUPLICATED | RF_UNCOMMITTED;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    write_scene(p, out);
    fclose(out);
    struct scene *sc = scene_of(slice_str(text), "made", stderr);
    scene_play(sc);
    assert_int_equal(sc->faults, 0);
    assert_int_equal(sc->model->session_count, 1);
    assert_int_equal(sc->model->session[0]->resumption_count, 1);
    const struct resumption *r = sc->model->session[0]->resumption[0];
    enum verdict wanted = d.kind == DECIDE_RESUME ? VERDICT_CONTINUE : VERDICT_FAIL;
    if (r->verdict != wanted || !(fault_of(d.kind) == 0 || (r->faults & fault_of(d.kind))) ||
        (d.kind == DECIDE_RESUME && (r->faults & judged)))
        fail_msg("cursor %u, head %u, state %s, idempotent %d: %s (%s), faults %x\n%s", p->cursor,
                 p->head, head_state_text(p->state), p->idempotent, verdict_text(r->verdict),
                 r->explanation, r->faults, text);
    if (d.kind == DECIDE_GAP)
        check_listed(r, d);
    scene_free(sc);
    free(text);
}

/* From three events on: so many prove that the ids count by one. */
static void test_scenes_agree(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 5 * 10 * STATES * 2; i++) {
        const struct plan p = { 3 + i % 5, 1 + i / 5 % 10, (enum head_state)(i / 50 / 2),
                                i / 50 % 2 };
        if (p.state != HEAD_NO_LOG || !p.idempotent) /* said by the log's header */
            check_plan(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_scenes_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
