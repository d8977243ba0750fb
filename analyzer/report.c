/* report.c - see report.h: the selection, and what its writers share. */
#include "report.h"

#include "plain.h"

#include <stdlib.h>

/* ---- selection ---- */

static bool session_named(const struct session *s, const char *name)
{
    char hex[65];
    struct slice want = slice_str(name);
    struct slice digits;

    if (strcmp(s->name, name) == 0 || (s->id.ptr && slice_eq(s->id, want)))
        return true;
    if (!s->id.ptr)
        return false;
    if (slice_starts(want, SLICE_LIT("sha:")))
        digits = (struct slice){ want.ptr + 4, want.len - 4 };
    else if (slice_starts(want, SLICE_LIT("sess:")))
        digits = (struct slice){ want.ptr + 5, want.len - 5 };
    else
        return false;
    redact_digest(s->id, 64, hex);
    return digits.len >= 4 && slice_starts(slice_str(hex), digits);
}

static bool in_time(const struct options *opt, int64_t t)
{
    return (!opt->since || t >= opt->since) && (!opt->until || t < opt->until);
}

static bool session_chosen(const struct options *opt, const struct session *s)
{
    if (opt->session && !session_named(s, opt->session))
        return false;
    return (!opt->since || s->last.time >= opt->since) &&
           (!opt->until || s->first.time < opt->until);
}

static bool finding_chosen(const struct options *opt, const struct finding *f)
{
    if (opt->session && (!f->session || !session_named(f->session, opt->session)))
        return false;
    if (!opt->since && !opt->until)
        return true;
    for (uint32_t i = 0; i < f->evidence_count; i++) {
        if (in_time(opt, f->evidence[i].at.time))
            return true;
    }
    /* from the log alone: its clock is not the capture's, so it stays */
    return f->evidence_count == 0;
}

static int compare_resumptions(const void *va, const void *vb)
{
    const struct resumption *a = *(const struct resumption *const *)va;
    const struct resumption *b = *(const struct resumption *const *)vb;
    const struct place pa = a->session->exch[a->exch]->first;
    const struct place pb = b->session->exch[b->exch]->first;

    if (a->session->index != b->session->index)
        return a->session->index < b->session->index ? -1 : 1;
    if (pa.time != pb.time)
        return pa.time < pb.time ? -1 : 1;
    return (a->exch > b->exch) - (a->exch < b->exch);
}

static void choose_sessions(struct report *r)
{
    const struct model *m = r->model;
    size_t total = 0;

    for (uint32_t i = 0; i < m->session_count; i++)
        total += m->session[i]->resumption_count;
    r->session = arena_alloc(r->arena, (m->session_count + 1) * sizeof(struct session *));
    r->resumption = arena_alloc(r->arena, (total + 1) * sizeof(struct resumption *));
    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        if (!session_chosen(r->opt, s))
            continue;
        r->session[r->session_count++] = s;
        for (uint32_t k = 0; k < s->resumption_count; k++) {
            if (in_time(r->opt, s->exch[s->resumption[k]->exch]->first.time))
                r->resumption[r->resumption_count++] = s->resumption[k];
        }
    }
    qsort(r->resumption, r->resumption_count, sizeof(struct resumption *), compare_resumptions);
}

static void choose_findings(struct report *r, const struct findings *f)
{
    r->finding = arena_alloc(r->arena, (f->count + 1) * sizeof(struct finding *));
    r->undecidable =
        arena_alloc(r->arena, ((size_t)f->undecidable_count + 1) * sizeof(struct undecidable *));
    for (uint32_t i = 0; i < f->count; i++) {
        if (!finding_chosen(r->opt, f->item[i]))
            continue;
        r->finding[r->finding_count++] = f->item[i];
        r->suppressed_count += f->item[i]->suppressed;
    }
    for (uint32_t i = 0; i < f->undecidable_count; i++) {
        const struct undecidable *u = &f->undecidable[i];
        if (!u->session || session_chosen(r->opt, u->session))
            r->undecidable[r->undecidable_count++] = u;
    }
}

struct report *report_new(const struct options *opt, const struct audit *a,
                          const struct findings *f, const struct policy *policy)
{
    struct report *r = mem_alloc(sizeof(*r));

    r->opt = opt;
    r->audit = a;
    r->policy = policy;
    r->model = a->model;
    r->arena = arena_new();
    r->redact = opt->reveal ? NULL : redact_new(a->model);
    choose_sessions(r);
    choose_findings(r, f);
    return r;
}

bool report_has_session(const struct report *r, FILE *err)
{
    const struct model *m = r->model;

    for (uint32_t i = 0; i < m->session_count; i++) {
        if (!r->opt->session || session_named(m->session[i], r->opt->session))
            return true;
    }
    if (!r->opt->session)
        return true;
    fprintf(err,
            "sseaudit: --session %s: there is no such session among %u; leave it out to see all\n",
            plain_text(r->arena, slice_str(r->opt->session), 80), m->session_count);
    return false;
}

void report_free(struct report *r)
{
    if (!r)
        return;
    redact_free(r->redact);
    arena_free(r->arena);
    free(r);
}

/* ---- what the writers share ---- */

uint32_t report_count(const struct report *r, enum severity severity)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->finding_count; i++)
        n += r->finding[i]->severity == severity && !r->finding[i]->suppressed;
    return n;
}

uint32_t report_verdicts(const struct report *r, enum verdict verdict)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->resumption_count; i++)
        n += r->resumption[i]->verdict == verdict;
    return n;
}

enum exit_status report_status(const struct report *r)
{
    if (r->audit->incomplete)
        return EXIT_INCOMPLETE;
    for (int s = r->opt->fail_on; s <= SEV_ERROR; s++) {
        if (report_count(r, (enum severity)s) > 0)
            return EXIT_FINDINGS;
    }
    if (r->opt->fail_on_undecidable && r->undecidable_count > 0)
        return EXIT_FINDINGS;
    return EXIT_CLEAN;
}

const char *report_stream(const struct report *r, const struct session *s, uint32_t stream)
{
    return arena_printf(r->arena, "%s.%u", s->name, stream + 1);
}

const char *report_leg(const struct report *r, const struct session *s, uint32_t leg)
{
    const struct leg *l = s->leg[leg];

    return arena_printf(r->arena, "%s.%u.%u", s->name, l->stream + 1, l->number);
}

/* A port that the authority leaves out is the scheme's; the address tells it where there is one. */
const char *report_server(const struct report *r, const struct session *s)
{
    char address[ENDPOINT_TEXT];
    const uint8_t *last = s->authority.len > 0 ? s->authority.ptr + s->authority.len : NULL;

    if (!last)
        return arena_str(r->arena, slice_str(endpoint_text(&s->server, address)));
    for (const uint8_t *p = last; p > s->authority.ptr && p[-1] != ']'; p--) {
        if (p[-1] == ':')
            return arena_str(r->arena, s->authority);
    }
    if (s->server.port == 0)
        return arena_str(r->arena, s->authority);
    return arena_printf(r->arena, SLICE_FMT ":%u", SLICE_ARG(s->authority), s->server.port);
}

bool report_is_har(const struct report *r, struct place at)
{
    return at.input < r->audit->input_count && r->audit->input[at.input].kind == INPUT_HAR;
}

static bool has_payload(const struct payload *const *list, size_t count, const struct payload *p)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == p)
            return true;
    }
    return false;
}

/* A frame can hold many messages: not more than this are shown. */
#define PAYLOADS_MAX 16

size_t report_payloads(const struct report *r, const struct finding *f, const struct payload ***ret)
{
    const struct payload **list = arena_alloc(r->arena, PAYLOADS_MAX * sizeof(struct payload *));
    const struct payload *at;
    size_t count = 0;

    for (uint32_t i = 0; i < f->evidence_count; i++) {
        size_t n = payloads_at(r->audit->payloads, f->evidence[i].at, &at);
        for (size_t k = 0; k < n && count < PAYLOADS_MAX; k++) {
            if (!has_payload(list, count, &at[k]))
                list[count++] = &at[k];
        }
    }
    *ret = list;
    return count;
}

void report_write(const struct report *r, FILE *to, bool color)
{
    switch (r->opt->format) {
    case FORMAT_JSON: report_json(r, to); break;
    case FORMAT_NDJSON: report_ndjson(r, to); break;
    case FORMAT_NONE:
    case FORMAT_TEXT:
    case FORMAT_HTML:
    case FORMAT_SARIF:
    case FORMAT_JUNIT: report_text(r, to, color); break;
    }
}
