/* run.c - all rules over all sessions; see rule.h. What comes of it is settled in settle.c. */
#include "settle.h"

#include <stdlib.h>

static void run_rule(struct rule_run *run)
{
    const struct rule *r = run->rule;
    const struct model *m = run->model;

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        if ((r->needs & NEED_D) && !s->has_log)
            continue;
        if (r->check)
            r->check(run, s);
        for (uint32_t k = 0; r->resumption && k < s->resumption_count; k++)
            r->resumption(run, s->resumption[k]);
    }
    if (r->whole)
        r->whole(run, m);
}

struct findings *rules_run(const struct model *m, unsigned profiles, const struct thresholds *limit)
{
    struct findings *out = mem_alloc(sizeof(*out));
    struct rule_run run = { .model = m, .limit = limit, .out = out };

    out->arena = arena_new();
    for (size_t i = 0; i < rule_count(); i++) {
        run.rule = rule_at(i);
        if (run.rule->profile & profiles)
            run_rule(&run);
    }
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
