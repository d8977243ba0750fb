/* run.c - all rules over all sessions; see rule.h. What comes of it is settled in settle.c. */
#include "settle.h"

#include <stdlib.h>

static void run_on_session(struct rule_run *run, const struct session *s)
{
    const struct rule *r = run->rule;

    if ((r->needs & NEED_D) && !s->has_log)
        return;
    if (r->check)
        r->check(run, s);
    for (uint32_t k = 0; r->resumption && k < s->resumption_count; k++)
        r->resumption(run, s->resumption[k]);
}

/* session NULL: on the recording as a whole. */
static void run_rules(struct rule_run *run, unsigned profiles, const struct session *session)
{
    for (size_t i = 0; i < rule_count(); i++) {
        run->rule = rule_at(i);
        if (!(run->rule->profile & profiles))
            continue;
        if (session)
            run_on_session(run, session);
        else if (run->rule->whole)
            run->rule->whole(run, run->model);
    }
}

struct findings *rules_run(const struct model *m, unsigned profiles, const struct thresholds *limit)
{
    struct findings *out = mem_alloc(sizeof(*out));
    struct rule_run run = { .model = m, .limit = limit, .out = out };

    out->arena = arena_new();
    /* Session by session: what one rule has looked at is in the caches for the next one. */
    for (uint32_t i = 0; i < m->session_count; i++)
        run_rules(&run, profiles, m->session[i]);
    run_rules(&run, profiles, NULL);
    findings_settle(out, m->log);
    return out;
}

void findings_free(struct findings *f)
{
    if (!f)
        return;
    free(f->item);
    free(f->undecidable);
    arena_free(f->arena);
    free(f);
}
