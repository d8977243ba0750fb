/* spoken.c - see spoken.h. */
#include "spoken.h"

/* Other services post objects with a `method` or a `result` too: one of the marks of JSON-RPC or
 * MCP must be there. */
static bool is_spoken(const struct session *s, const struct message *m)
{
    bool known = s->id.ptr || s->legacy || s->initialize != NONE;

    return m->kind != RPC_OTHER && (known || (m->flags & RPC_VERSION_OK));
}

static bool any_spoken(const struct session *s, const struct message *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_spoken(s, &m[i]))
            return true;
    }
    return false;
}

bool exch_speaks(const struct session *s, const struct exch *x)
{
    return x->has_request && x->method == HTTP_METHOD_POST && any_spoken(s, x->msg, x->msg_count);
}

bool session_speaks(const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (any_spoken(s, x->msg, x->msg_count) || any_spoken(s, x->reply, x->reply_count))
            return true;
    }
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (any_spoken(s, e->msg, e->msg_count))
            return true;
    }
    return false;
}

bool leg_speaks(const struct session *s, const struct leg *l)
{
    const struct exch *x = leg_exch(s, l);

    return x->method != HTTP_METHOD_POST || !x->has_request || !x->body_whole || exch_speaks(s, x);
}

static bool target_speaks(const struct spoken_targets *t, struct slice target)
{
    for (size_t i = 0; i < t->count; i++) {
        if (slice_eq(t->target[i], target))
            return true;
    }
    return false;
}

void spoken_targets(const struct session *s, struct spoken_targets *ret)
{
    ret->count = 0;
    for (uint32_t i = 0; i < s->exch_count && ret->count < SPOKEN_TARGETS; i++) {
        const struct exch *x = s->exch[i];
        if (exch_speaks(s, x) && !target_speaks(ret, x->target))
            ret->target[ret->count++] = x->target;
    }
}

bool exch_should_speak(const struct session *s, const struct spoken_targets *t,
                       const struct exch *x)
{
    return x->has_request && x->method == HTTP_METHOD_POST &&
           (exch_speaks(s, x) || target_speaks(t, x->target));
}

bool reply_speaks(const struct session *s, const struct exch *x, const struct message *m)
{
    return exch_speaks(s, x) && (x->status < 400 || (m->flags & RPC_VERSION_OK));
}

/* ---- every message ---- */

static void each_body(struct rule_run *run, const struct session *s, spoken_fn *fn)
{
    struct spoken_targets targets;

    spoken_targets(s, &targets);
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        struct spoken at = { .x = x, .from_client = true };
        if (!rule_in_era(run->rule, x->era) || !exch_should_speak(s, &targets, x))
            continue;
        for (uint32_t k = 0; k < x->msg_count; k++) {
            at.m = &x->msg[k];
            fn(run, s, &at);
        }
        at.from_client = false;
        for (uint32_t k = 0; k < x->reply_count; k++) {
            at.m = &x->reply[k];
            if (reply_speaks(s, x, at.m))
                fn(run, s, &at);
        }
    }
}

static void each_event(struct rule_run *run, const struct session *s, spoken_fn *fn)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (e->msg_count == 0 || e->first != e->index || e->new_id_of != NONE)
            continue;
        struct spoken at = { .x = leg_exch(s, s->leg[e->leg]), .e = e };
        if (!rule_in_era(run->rule, at.x->era) || !leg_speaks(s, s->leg[e->leg]))
            continue;
        for (uint32_t k = 0; k < e->msg_count; k++) {
            at.m = &e->msg[k];
            fn(run, s, &at);
        }
    }
}

void spoken_each(struct rule_run *run, const struct session *s, spoken_fn *fn)
{
    if (!session_speaks(s))
        return;
    each_body(run, s, fn);
    each_event(run, s, fn);
}

/* ---- findings ---- */

const char *spoken_side(const struct spoken *at)
{
    return at->from_client ? "client" : "server";
}

struct finding *spoken_finding(struct rule_run *run, const struct session *s,
                               const struct spoken *at, const char *what)
{
    struct finding *f = finding_add(run, s);

    if (at->e)
        finding_on_event(run, f, at->e);
    else
        finding_on_exch(run, f, at->x);
    if (at->m->id.type == RPC_ID_STRING || at->m->id.type == RPC_ID_INT)
        f->request_id = at->m->id;
    f->party = at->from_client ? PARTY_CLIENT : PARTY_SERVER;
    finding_frame(run, f, at->from_client ? at->x->first : at->m->at, "%s", what);
    return f;
}

void finding_fold(struct finding *f, const char *subject)
{
    f->subject = subject;
    f->event = NONE;
    f->request = NONE;
    f->event_id = (struct slice){ 0 };
    f->request_id = (struct rpc_id){ 0 };
}
