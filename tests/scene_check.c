/* scene_check.c - see scene.h: what a scene expects against what was found. */
#include "scene_parts.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>

#define VALUE_TEXT 512

struct check {
    struct scene *sc;
    FILE *out;
    const struct scene_line *line;
    unsigned failures;
    uint32_t resumption; /* next one that a line stands for */
    bool resumptions;    /* some line stands for one */
};

static void PRINTF_LIKE(2, 3) fail(struct check *c, const char *fmt, ...)
{
    va_list ap;

    fprintf(c->out, "%s:%u: ", c->sc->path, c->line ? c->line->number : 0);
    va_start(ap, fmt);
    vfprintf(c->out, fmt, ap);
    va_end(ap);
    fputc('\n', c->out);
    c->failures++;
}

static const char *text_of(const struct check *c, struct slice s)
{
    return s.ptr ? arena_str(c->sc->arena, s) : NULL;
}

static const char *number_text(const struct check *c, uint64_t n)
{
    return arena_printf(c->sc->arena, "%llu", (unsigned long long)n);
}

static const char *stream_text(const struct check *c, const struct session *s, uint32_t stream)
{
    if (!s || stream == NONE)
        return NULL;
    return arena_printf(c->sc->arena, "%s.%u", s->name, stream + 1);
}

static const char *missing_text(const struct check *c, const struct missing_id *m, uint32_t n)
{
    const char *text = "";

    for (uint32_t i = 0; i < n; i++)
        text = arena_printf(c->sc->arena, "%s%s" SLICE_FMT, text, i ? "," : "", SLICE_ARG(m[i].id));
    return text;
}

static const char *rpc_id_text(const struct check *c, const struct rpc_id *id)
{
    if (id->type == RPC_ID_NONE)
        return NULL;
    return arena_printf(c->sc->arena, id->type == RPC_ID_STRING ? "\"" SLICE_FMT "\"" : SLICE_FMT,
                        SLICE_ARG(id->text));
}

static const char *also_text(const struct check *c, const struct finding *f)
{
    const char *text = "";

    for (uint32_t i = 0; i < f->also_count; i++)
        text = arena_printf(c->sc->arena, "%s%s%s", text, i ? "," : "", f->also[i]);
    return text;
}

/* The member of a finding as text; NULL: absent, or (*known false) there is no such member. */
static const char *finding_member(const struct check *c, const struct finding *f, const char *key,
                                  bool *known)
{
    const struct {
        const char *key;
        const char *value;
    } members[] = {
        { "severity", severity_text(f->severity) },
        { "certainty", certainty_text(f->certainty) },
        { "session", f->session ? f->session->name : NULL },
        { "stream", stream_text(c, f->session, f->stream) },
        { "event_id", text_of(c, f->event_id) },
        { "cursor", text_of(c, f->cursor) },
        { "replay_head", text_of(c, f->replay_head) },
        { "missing", f->has_missing ? missing_text(c, f->missing, f->missing_count) : NULL },
        { "request_id", rpc_id_text(c, &f->request_id) },
        { "party", party_text(f->party) },
        { "count", number_text(c, f->count) },
        { "also", also_text(c, f) },
        { "says", f->message },
    };

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (strcmp(members[i].key, key) == 0) {
            *known = true;
            return members[i].value;
        }
    }
    *known = false;
    return NULL;
}

/* "a,b": is every part of `wanted` a part of `all`? */
static bool has_parts(const char *all, struct slice wanted)
{
    char padded[VALUE_TEXT];
    char part[VALUE_TEXT];

    snprintf(padded, sizeof(padded), ",%s,", all ? all : "");
    while (wanted.len > 0) {
        const uint8_t *comma = memchr(wanted.ptr, ',', wanted.len);
        size_t n = comma ? (size_t)(comma - wanted.ptr) : wanted.len;
        snprintf(part, sizeof(part), ",%.*s,", (int)n, (const char *)wanted.ptr);
        if (!strstr(padded, part))
            return false;
        n += comma ? 1 : 0;
        wanted = (struct slice){ wanted.ptr + n, wanted.len - n };
    }
    return true;
}

static bool value_fits(struct arena *a, struct slice key, const struct scene_word *w,
                       const char *got)
{
    struct slice want = w->value;

    if (slice_eq(key, SLICE_LIT("says")))
        return got && strstr(got, arena_str(a, want));
    if (slice_eq(key, SLICE_LIT("also")) || slice_eq(key, SLICE_LIT("reasons")))
        return has_parts(got, want);
    if (slice_eq(want, SLICE_LIT("-")))
        return !got || *got == '\0';
    if (!got)
        return false;
    /* A JSON string is compared with its quotes. */
    struct slice raw = { w->raw.ptr + key.len + 1, w->raw.len - key.len - 1 };
    return slice_eq(want, slice_str(got)) || slice_eq(raw, slice_str(got));
}

static bool finding_fits(struct check *c, const struct finding *f)
{
    for (size_t i = 2; i < c->line->count; i++) {
        const struct scene_word *w = &c->line->word[i];
        bool known;
        if (!w->key.ptr || slice_eq(w->key, SLICE_LIT("n")))
            continue;
        const char *got = finding_member(c, f, arena_str(c->sc->arena, w->key), &known);
        if (!known)
            fail(c, "no member " SLICE_FMT, SLICE_ARG(w->key));
        if (!known || !value_fits(c->sc->arena, w->key, w, got))
            return false;
    }
    return true;
}

static void show(struct check *c, const struct finding *f)
{
    const char *id = text_of(c, f->event_id);
    const char *cursor = text_of(c, f->cursor);
    const char *head = text_of(c, f->replay_head);
    const char *request = rpc_id_text(c, &f->request_id);

    fprintf(c->out, "    found %s %s %s", f->rule->id, severity_text(f->severity),
            certainty_text(f->certainty));
    if (f->session)
        fprintf(c->out, " %s",
                f->stream == NONE ? f->session->name : stream_text(c, f->session, f->stream));
    fprintf(c->out, "%s%s%s%s%s%s%s%s", id ? " event_id=" : "", id ? id : "",
            cursor ? " cursor=" : "", cursor ? cursor : "", head ? " head=" : "", head ? head : "",
            request ? " request_id=" : "", request ? request : "");
    if (f->has_missing)
        fprintf(c->out, " missing=%s", missing_text(c, f->missing, f->missing_count));
    fprintf(c->out, "\n        %s%s%s\n", f->message ? f->message : "(no message)",
            f->also_count ? " - also: " : "", also_text(c, f));
}

static void show_all(struct check *c)
{
    const struct findings *all = c->sc->found;

    if (all->count == 0)
        fprintf(c->out, "    found nothing\n");
    for (uint32_t i = 0; i < all->count; i++)
        show(c, all->item[i]);
    for (uint32_t i = 0; i < all->undecidable_count; i++)
        fprintf(c->out, "    undecidable %s: %s\n", all->undecidable[i].rule->id,
                all->undecidable[i].reason);
}

static uint32_t matching(struct check *c, bool pattern, const struct finding **last)
{
    const struct findings *all = c->sc->found;
    const char *rule = arena_str(c->sc->arena, c->line->word[1].value);
    uint32_t n = 0;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct finding *f = all->item[i];
        bool named = pattern ? fnmatch(rule, f->rule->id, 0) == 0 : !strcmp(rule, f->rule->id);
        if (!named || f->suppressed || !finding_fits(c, f))
            continue;
        n++;
        *last = f;
    }
    return n;
}

static void check_expect(struct check *c)
{
    const struct finding *f = NULL;
    struct slice wanted = scene_key(c->line, "n");
    char *rule = arena_str(c->sc->arena, c->line->word[1].value);
    uint64_t n = 0;

    if (!rule_find(rule)) {
        fail(c, "there is no rule %s", rule);
        return;
    }
    uint32_t got = matching(c, false, &f);
    if (wanted.ptr && !slice_u64(wanted, UINT32_MAX, &n))
        fail(c, "n is no number");
    if (wanted.ptr ? got != n : got == 0)
        fail(c, "expected %s, found %u that fit", rule, got);
}

static void check_forbid(struct check *c)
{
    const struct finding *f = NULL;

    if (matching(c, true, &f) > 0)
        fail(c, "forbidden: %s: %s", f->rule->id, f->message);
}

/* Does some `expect` or `allow` line name this finding? */
static bool is_named(struct check *c, const struct finding *f)
{
    for (size_t i = 0; i < c->sc->count; i++) {
        c->line = &c->sc->line[i];
        struct slice word = c->line->word[0].raw;
        bool allow = slice_eq(word, SLICE_LIT("allow"));
        if (c->line->count < 2 || (!allow && !slice_eq(word, SLICE_LIT("expect"))))
            continue;
        if (fnmatch(arena_str(c->sc->arena, c->line->word[1].value), f->rule->id, 0) == 0 &&
            finding_fits(c, f))
            return true;
    }
    return false;
}

static void check_unexpected(struct check *c)
{
    const struct findings *all = c->sc->found;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct finding *f = all->item[i];
        if (f->suppressed || f->severity == SEV_INFO || is_named(c, f))
            continue;
        c->line = NULL;
        fail(c, "not expected: %s: %s", f->rule->id, f->message);
    }
    c->line = NULL;
}

static void check_undecidable(struct check *c)
{
    const struct findings *all = c->sc->found;
    struct slice says = scene_key(c->line, "says");
    const char *rule = arena_str(c->sc->arena, c->line->word[1].value);

    for (uint32_t i = 0; i < all->undecidable_count; i++) {
        const struct undecidable *u = &all->undecidable[i];
        if (strcmp(u->rule->id, rule) == 0 &&
            (!says.ptr || strstr(u->reason, arena_str(c->sc->arena, says))))
            return;
    }
    fail(c, "expected %s to be undecidable", rule);
}

/* ---- resumptions ---- */

static const char *outstanding_text(const struct check *c, const struct resumption *r)
{
    const char *text = "";

    for (uint32_t i = 0; i < r->outstanding_count; i++) {
        const struct request *q = r->session->request[r->outstanding[i]];
        text =
            arena_printf(c->sc->arena, "%s%s%s", text, i ? "," : "", rpc_id_text(c, &q->msg->id));
    }
    return text;
}

static const char *reasons_text(const struct check *c, const struct resumption *r)
{
    const char *text = "";

    for (size_t i = 0; i < ARRAY_LEN(r->reason) && r->reason[i]; i++)
        text = arena_printf(c->sc->arena, "%s%s%s", text, i ? "," : "", r->reason[i]);
    return text;
}

static const char *event_id_text(const struct check *c, const struct resumption *r, uint32_t event)
{
    const struct event *e = event == NONE ? NULL : event_at(r->session, event);

    return e ? text_of(c, e->id) : NULL;
}

static const char *resumption_member(const struct check *c, const struct resumption *r,
                                     struct slice key, bool *known)
{
    const struct {
        const char *key;
        const char *value;
    } members[] = {
        { "session", r->session->name },
        { "stream", stream_text(c, r->session, r->stream) },
        { "cursor", text_of(c, r->cursor) },
        { "verdict", verdict_text(r->verdict) },
        { "head", event_id_text(c, r, r->head) },
        { "state", head_state_text(r->head_state) },
        { "expected", text_of(c, r->expected) },
        { "did", client_did_text(r->did) },
        { "wire", text_of(c, r->wire_cursor) },
        { "dispatch", text_of(c, r->dispatch_cursor) },
        { "stored", text_of(c, r->stored_cursor) },
        { "failed_at", event_id_text(c, r, r->failed_at) },
        { "status", number_text(c, (uint64_t)r->session->exch[r->exch]->status) },
        { "missing", missing_text(c, r->missing, r->missing_count) },
        { "outstanding", outstanding_text(c, r) },
        { "replayed", number_text(c, r->replayed) },
        { "reason", r->reason[0] },
        { "reasons", reasons_text(c, r) },
    };

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (slice_eq(key, slice_str(members[i].key))) {
            *known = true;
            return members[i].value;
        }
    }
    *known = false;
    return NULL;
}

static int by_time(const void *a, const void *b)
{
    const struct resumption *x = *(const struct resumption *const *)a;
    const struct resumption *y = *(const struct resumption *const *)b;
    int64_t tx = x->session->exch[x->exch]->first.time;
    int64_t ty = y->session->exch[y->exch]->first.time;

    if (x->session != y->session)
        return x->session->index < y->session->index ? -1 : 1;
    return tx < ty ? -1 : tx > ty;
}

/* By session, then by time; NULL: not so many. */
static const struct resumption *resumption_at(struct check *c, uint32_t n, uint32_t *ret_count)
{
    const struct model *m = c->sc->model;
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->session_count; i++)
        count += m->session[i]->resumption_count;
    *ret_count = count;
    if (n >= count)
        return NULL;
    const struct resumption **all = arena_alloc(c->sc->arena, count * sizeof(struct resumption *));
    count = 0;
    for (uint32_t i = 0; i < m->session_count; i++) {
        for (uint32_t k = 0; k < m->session[i]->resumption_count; k++)
            all[count++] = m->session[i]->resumption[k];
    }
    qsort(all, count, sizeof(struct resumption *), by_time);
    return all[n];
}

static void check_resumption(struct check *c)
{
    uint32_t count;
    const struct resumption *r = resumption_at(c, c->resumption++, &count);

    c->resumptions = true;
    if (!r) {
        fail(c, "there are only %u resumptions", count);
        return;
    }
    for (size_t i = 1; i < c->line->count; i++) {
        const struct scene_word *w = &c->line->word[i];
        bool known;
        const char *got = resumption_member(c, r, w->key, &known);
        if (!known)
            fail(c, "no member " SLICE_FMT, SLICE_ARG(w->raw));
        else if (!value_fits(c->sc->arena, w->key, w, got))
            fail(c, "resumption %u (cursor %s): " SLICE_FMT ", got %s (%s; %s)", c->resumption,
                 text_of(c, r->cursor), SLICE_ARG(w->raw), got ? got : "nothing",
                 verdict_text(r->verdict), r->explanation ? r->explanation : "no explanation");
    }
}

/* ---- counts ---- */

struct counts {
    uint64_t sessions, streams, legs, events, requests, resumptions;
};

static void count_session(const struct session *s, struct counts *n)
{
    n->sessions++;
    n->streams += s->stream_count;
    n->legs += s->leg_count;
    n->events += s->counted_events;
    n->requests += s->client_requests;
    n->resumptions += s->resumption_count;
}

static const char *count_member(struct check *c, const struct counts *n, struct slice key)
{
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        { "sessions", n->sessions },
        { "streams", n->streams },
        { "legs", n->legs },
        { "events", n->events },
        { "requests", n->requests },
        { "resumptions", n->resumptions },
        { "findings", c->sc->found->count },
        { "undecidable", c->sc->found->undecidable_count },
    };

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (slice_eq(key, slice_str(members[i].key)))
            return number_text(c, members[i].value);
    }
    return NULL;
}

static void compare(struct check *c, const struct scene_word *w, const char *got)
{
    if (!got)
        fail(c, "no member " SLICE_FMT, SLICE_ARG(w->raw));
    else if (!slice_eq(w->value, slice_str(got)))
        fail(c, "expected " SLICE_FMT ", got %s", SLICE_ARG(w->raw), got);
}

static void check_count(struct check *c)
{
    const struct model *m = c->sc->model;
    struct counts n = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++)
        count_session(m->session[i], &n);
    for (size_t i = 1; i < c->line->count; i++)
        compare(c, &c->line->word[i], count_member(c, &n, c->line->word[i].key));
}

static const char *session_member(struct check *c, const struct session *s, struct slice key)
{
    struct counts n = { 0 };

    if (slice_eq(key, SLICE_LIT("id")))
        return s->id.ptr ? text_of(c, s->id) : "-";
    if (slice_eq(key, SLICE_LIT("scheme")))
        return id_scheme_text(s->scheme);
    if (slice_eq(key, SLICE_LIT("policy")))
        return cursor_policy_text(s->policy);
    if (slice_eq(key, SLICE_LIT("revision")))
        return era_text(s->era) ? era_text(s->era) : "-";
    count_session(s, &n);
    return count_member(c, &n, key);
}

static void check_session(struct check *c)
{
    const struct model *m = c->sc->model;

    for (uint32_t i = 0; i < m->session_count; i++) {
        if (!slice_eq(c->line->word[1].value, slice_str(m->session[i]->name)))
            continue;
        for (size_t k = 2; k < c->line->count; k++)
            compare(c, &c->line->word[k], session_member(c, m->session[i], c->line->word[k].key));
        return;
    }
    fail(c, "there is no session " SLICE_FMT, SLICE_ARG(c->line->word[1].value));
}

unsigned scene_check(struct scene *sc, FILE *out)
{
    static const struct {
        const char *word;
        size_t words;
        void (*check)(struct check *c);
    } kinds[] = {
        { "expect", 2, check_expect },
        { "forbid", 2, check_forbid },
        { "expect-undecidable", 2, check_undecidable },
        { "expect-resumption", 2, check_resumption },
        { "expect-session", 3, check_session },
        { "expect-count", 2, check_count },
    };
    struct check c = { .sc = sc, .out = out };
    uint32_t count;

    for (size_t i = 0; i < sc->count; i++) {
        c.line = &sc->line[i];
        struct slice word = c.line->word[0].raw;
        bool known = !slice_starts(word, SLICE_LIT("expect"));
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            if (!slice_eq(word, slice_str(kinds[k].word)) || c.line->count < kinds[k].words)
                continue;
            kinds[k].check(&c);
            known = true;
        }
        if (!known)
            fail(&c, "not an expectation: " SLICE_FMT, SLICE_ARG(word));
    }
    check_unexpected(&c);
    resumption_at(&c, UINT32_MAX, &count);
    if (c.resumptions && c.resumption < count)
        fail(&c, "there are %u resumptions, %u were expected", count, c.resumption);
    if (c.failures > 0)
        show_all(&c);
    return c.failures + sc->faults;
}

unsigned scene_findings(const struct scene *sc, const char *rule)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < sc->found->count; i++)
        n += strcmp(sc->found->item[i]->rule->id, rule) == 0;
    return n;
}
