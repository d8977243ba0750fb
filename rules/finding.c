/* finding.c - building findings; see rule.h. */
#include "finding.h"

#include "plain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ID_SHOWN 80

const char *severity_text(enum severity s)
{
    static const char *const text[] = {
        [SEV_INFO] = "info",
        [SEV_WARNING] = "warning",
        [SEV_ERROR] = "error",
    };
    return text[s];
}

const char *certainty_text(enum certainty c)
{
    static const char *const text[] = {
        [CERTAINTY_LIKELY] = "likely",
        [CERTAINTY_PROVEN] = "proven",
    };
    return text[c];
}

const char *party_text(enum party p)
{
    static const char *const text[] = {
        [PARTY_UNKNOWN] = "unknown", [PARTY_CLIENT] = "client",   [PARTY_SERVER] = "server",
        [PARTY_PATH] = "path",       [PARTY_CAPTURE] = "capture",
    };
    return text[p];
}

bool rule_in_era(const struct rule *r, enum era era)
{
    unsigned eras = era == ERA_UNKNOWN ? ERA_A | ERA_B | ERA_C : era;

    return r->eras == 0 || (r->eras & eras) != 0;
}

bool rule_surely_in_era(const struct rule *r, enum era era)
{
    return era != ERA_UNKNOWN && rule_in_era(r, era);
}

/* ---- text ---- */

const char *run_text(struct rule_run *run, const char *fmt, ...)
{
    va_list args;
    char *text;

    va_start(args, fmt);
    text = arena_vprintf(run->out->arena, fmt, args);
    va_end(args);
    return text;
}

static const char *quoted(struct rule_run *run, struct slice s)
{
    return run_text(run, "\"%s\"", plain_text(run->out->arena, s, ID_SHOWN));
}

const char *run_id(struct rule_run *run, struct slice id)
{
    return quoted(run, id);
}

const char *run_rpc_id(struct rule_run *run, const struct rpc_id *id)
{
    if (id->type == RPC_ID_NONE)
        return "(none)";
    if (id->type == RPC_ID_NULL)
        return "null";
    if (id->type == RPC_ID_STRING)
        return quoted(run, id->text);
    return plain_text(run->out->arena, id->text, ID_SHOWN);
}

const char *run_seconds(struct rule_run *run, int64_t ns)
{
    double s = (double)ns / (double)NS_PER_SEC;
    double size = s < 0 ? -s : s;
    int digits = size < 0.01 ? 6 : size < 10 ? 3 : size < 100 ? 2 : 0;
    char text[64];
    size_t n = (size_t)snprintf(text, sizeof(text), "%.*f", digits, s);

    while (digits > 0 && text[n - 1] == '0')
        n--;
    if (digits > 0 && text[n - 1] == '.')
        n--;
    return run_text(run, "%.*s s", (int)n, text);
}

/* ---- one finding ---- */

/* Room for one more element, in the arena; the old array stays behind there. */
static void *grown(struct arena *a, const void *old, size_t count, size_t *cap, size_t size)
{
    size_t bigger = *cap ? *cap * 2 : 4;
    void *p = arena_alloc(a, bigger * size);

    if (count > 0)
        memcpy(p, old, count * size);
    *cap = bigger;
    return p;
}

void finding_push_evidence(struct findings *all, struct finding *f, struct evidence e)
{
    if (f->evidence_count == f->evidence_cap)
        f->evidence = grown(all->arena, f->evidence, f->evidence_count, &f->evidence_cap,
                            sizeof(*f->evidence));
    f->evidence[f->evidence_count++] = e;
}

void finding_push_log(struct findings *all, struct finding *f, struct log_evidence e)
{
    if (f->log_count == f->log_cap)
        f->log = grown(all->arena, f->log, f->log_count, &f->log_cap, sizeof(*f->log));
    f->log[f->log_count++] = e;
}

void finding_push_also(struct findings *all, struct finding *f, const char *rule_id)
{
    for (uint32_t i = 0; i < f->also_count; i++) {
        if (strcmp(f->also[i], rule_id) == 0)
            return;
    }
    if (f->also_count == f->also_cap)
        f->also = grown(all->arena, f->also, f->also_count, &f->also_cap, sizeof(*f->also));
    f->also[f->also_count++] = rule_id;
}

struct finding *finding_add(struct rule_run *run, const struct session *s)
{
    struct findings *out = run->out;
    struct finding *f = arena_alloc(out->arena, sizeof(*f));

    *f = (struct finding){
        .rule = run->rule,
        .severity = run->rule->severity,
        .certainty = CERTAINTY_PROVEN,
        .session = s,
        .stream = NONE,
        .leg = NONE,
        .exch = NONE,
        .event = NONE,
        .request = NONE,
        .count = 1,
    };
    if (out->count == out->cap) {
        out->cap = out->cap ? out->cap * 2 : 16;
        out->item = mem_grow(out->item, out->cap * sizeof(struct finding *));
    }
    out->item[out->count++] = f;
    return f;
}

void finding_message(struct rule_run *run, struct finding *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    f->message = arena_vprintf(run->out->arena, fmt, args);
    va_end(args);
}

void finding_advice(struct rule_run *run, struct finding *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    f->advice = arena_vprintf(run->out->arena, fmt, args);
    va_end(args);
}

void finding_frame(struct rule_run *run, struct finding *f, struct place at, const char *fmt, ...)
{
    va_list args;

    if (at.time == 0 && at.frame == 0)
        return;
    va_start(args, fmt);
    finding_push_evidence(
        run->out, f,
        (struct evidence){ .at = at, .what = arena_vprintf(run->out->arena, fmt, args) });
    va_end(args);
}

void finding_log(struct rule_run *run, struct finding *f, uint32_t entry, const char *fmt, ...)
{
    va_list args;

    if (entry == NONE)
        return;
    va_start(args, fmt);
    finding_push_log(
        run->out, f,
        (struct log_evidence){ .entry = entry, .what = arena_vprintf(run->out->arena, fmt, args) });
    va_end(args);
}

/* ---- subjects ---- */

static struct slice kept(struct rule_run *run, struct slice s)
{
    return s.ptr ? arena_copy(run->out->arena, s) : s;
}

static void set_request_id(struct rule_run *run, struct finding *f, const struct rpc_id *id)
{
    if (id->type != RPC_ID_STRING && id->type != RPC_ID_INT)
        return;
    f->request_id = *id;
    f->request_id.text = kept(run, id->text);
}

static void on_message(struct rule_run *run, struct finding *f, const struct message *m)
{
    const struct session *s = f->session;

    if (m->request != NONE && s && m->request < s->request_count) {
        f->request = m->request;
        set_request_id(run, f, &s->request[m->request]->msg->id);
        return;
    }
    set_request_id(run, f, &m->id);
}

void finding_on_leg(struct rule_run *run, struct finding *f, const struct leg *l)
{
    (void)run;
    f->leg = l->index;
    f->stream = l->stream;
    f->exch = l->exch;
}

void finding_on_event(struct rule_run *run, struct finding *f, const struct event *e)
{
    const struct session *s = f->session;

    f->event = e->index;
    f->stream = e->stream;
    f->leg = e->leg;
    if (s && e->leg < s->leg_count)
        f->exch = s->leg[e->leg]->exch;
    if (e->has_id)
        f->event_id = kept(run, e->id);
    if (e->msg_count > 0)
        on_message(run, f, &e->msg[0]);
}

void finding_on_exch(struct rule_run *run, struct finding *f, const struct exch *x)
{
    const struct session *s = f->session;

    f->exch = x->index;
    if (x->leg != NONE && s && x->leg < s->leg_count)
        finding_on_leg(run, f, s->leg[x->leg]);
    f->exch = x->index;
    if (x->msg_count == 1)
        set_request_id(run, f, &x->msg[0].id);
}

void finding_on_request(struct rule_run *run, struct finding *f, const struct request *r)
{
    f->request = r->index;
    f->exch = r->exch;
    f->stream = r->stream;
    if (r->from_server) {
        f->leg = r->leg;
        if (f->session && r->leg < f->session->leg_count)
            finding_on_leg(run, f, f->session->leg[r->leg]);
    }
    set_request_id(run, f, &r->msg->id);
}

void finding_on_resumption(struct rule_run *run, struct finding *f, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *head = r->head == NONE ? NULL : event_at(s, r->head);

    f->resumption = r;
    f->exch = r->exch;
    f->leg = r->leg;
    f->stream = r->stream;
    if (f->stream == NONE && r->leg != NONE)
        f->stream = s->leg[r->leg]->stream;
    f->cursor = kept(run, r->cursor);
    if (head && head->has_id)
        f->replay_head = kept(run, head->id);
    if (r->missing_count == 0)
        return;
    f->missing = r->missing;
    f->missing_count = r->missing_count;
    f->has_missing = true;
}

void undecidable_add(struct rule_run *run, const struct session *s, uint32_t stream,
                     const char *fmt, ...)
{
    struct findings *out = run->out;
    va_list args;

    GROW(out->undecidable, out->undecidable_count, out->undecidable_cap);
    va_start(args, fmt);
    out->undecidable[out->undecidable_count++] =
        (struct undecidable){ .rule = run->rule,
                              .session = s,
                              .stream = stream,
                              .reason = arena_vprintf(run->out->arena, fmt, args) };
    va_end(args);
}
