/* settle.c - see settle.h. */
#include "settle.h"

#include "finding.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- evidence for those that named none ---- */

static bool is_known(struct place at)
{
    return at.time != 0 || at.frame != 0;
}

static struct place or_else(struct place at, struct place other)
{
    return is_known(at) ? at : other;
}

static struct place leg_place(const struct session *s, const struct leg *l)
{
    const struct event *first = l->first_event == NONE ? NULL : event_at(s, l->first_event);
    struct place at = or_else(l->begin, first ? first->begin : l->first_comment);

    return or_else(at, l->last_byte);
}

static struct place exch_place(const struct session *s, const struct exch *x)
{
    struct place at = or_else(x->first, x->response);

    if (!is_known(at) && x->leg < s->leg_count)
        at = leg_place(s, s->leg[x->leg]);
    return or_else(at, or_else(x->last, x->end));
}

/* Where to look for what a finding is about: the closest place that is known. */
static struct place subject_place(const struct finding *f)
{
    const struct session *s = f->session;
    const struct event *e = s && f->event != NONE ? event_at(s, f->event) : NULL;
    struct place at = { 0 };

    if (!s)
        return at;
    if (e)
        at = e->at;
    if (!is_known(at) && f->request < s->request_count)
        at = s->request[f->request]->at;
    if (!is_known(at) && f->exch < s->exch_count)
        at = exch_place(s, s->exch[f->exch]);
    if (!is_known(at) && f->leg < s->leg_count)
        at = leg_place(s, s->leg[f->leg]);
    if (!is_known(at) && s->exch_count > 0)
        at = or_else(s->first, exch_place(s, s->exch[0]));
    return or_else(at, s->last);
}

static void need_evidence(struct findings *all, struct finding *f)
{
    struct place at = subject_place(f);

    if (f->evidence_count > 0 || f->log_count > 0 || !is_known(at))
        return;
    finding_push_evidence(all, f,
                          (struct evidence){ .at = at, .what = "the subject of this finding" });
}

/* ---- order ---- */

struct sorted {
    struct finding *f;
    int64_t time;
    uint64_t key;
    size_t before; /* position it had: keeps the sort stable */
    size_t parent; /* finding that explains it, as an index into the list; SIZE_MAX: none */
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static uint32_t session_order(const struct session *s)
{
    return s ? s->index : UINT32_MAX;
}

static int64_t time_of(const struct finding *f, const struct dispatch_log *log)
{
    if (f->evidence_count > 0)
        return f->evidence[0].at.time;
    if (f->log_count > 0 && log && f->log[0].entry < log->count)
        return log->entry[f->log[0].entry].time;
    return 0;
}

static struct place first_place(const struct finding *f)
{
    return f->evidence_count > 0 ? f->evidence[0].at : (struct place){ 0 };
}

static int compare_reported(const void *va, const void *vb)
{
    const struct sorted *a = va;
    const struct sorted *b = vb;
    struct place pa = first_place(a->f);
    struct place pb = first_place(b->f);
    int c = compare_u64(session_order(a->f->session), session_order(b->f->session));

    if (c == 0)
        c = (a->time > b->time) - (a->time < b->time);
    if (c == 0)
        c = compare_u64(pa.input, pb.input);
    if (c == 0)
        c = compare_u64(pa.frame, pb.frame);
    if (c == 0)
        c = strcmp(a->f->rule->id, b->f->rule->id);
    return c ? c : compare_u64(a->before, b->before);
}

/* By key, then time. */
static int compare_key(const void *va, const void *vb)
{
    const struct sorted *a = va;
    const struct sorted *b = vb;
    int c = compare_u64(session_order(a->f->session), session_order(b->f->session));

    if (c == 0)
        c = compare_u64(a->key, b->key);
    if (c == 0)
        c = (a->time > b->time) - (a->time < b->time);
    return c ? c : compare_u64(a->before, b->before);
}

static int compare_undecidable(const void *va, const void *vb)
{
    const struct undecidable *a = va;
    const struct undecidable *b = vb;
    int c = compare_u64(session_order(a->session), session_order(b->session));

    if (c == 0)
        c = compare_u64(a->stream, b->stream);
    if (c == 0)
        c = strcmp(a->rule->id, b->rule->id);
    return c ? c : strcmp(a->reason, b->reason);
}

/* ---- one fact, one finding ---- */

enum scope { SCOPE_SESSION, SCOPE_STREAM, SCOPE_LEG, SCOPE_EXCH, SCOPE_REQUEST };

/* In the session scope a finding only explains what comes at or after it. */
static const struct precedence {
    const char *winner;
    const char *loser;
    enum scope scope;
} precedence[] = {
    { "event-id-epoch-reset", "event-id-reused", SCOPE_SESSION },
    { "event-id-epoch-reset", "replay-payload-changed", SCOPE_SESSION },
    { "event-id-epoch-reset", "replay-at-or-below-cursor", SCOPE_SESSION },
    { "event-id-epoch-reset", "replay-foreign-stream", SCOPE_SESSION },
    { "event-id-epoch-reset", "replay-new-id", SCOPE_SESSION },
    { "event-id-epoch-reset", "replay-ignored-cursor", SCOPE_SESSION },
    { "event-id-epoch-reset", "cursor-regressed", SCOPE_SESSION },
    { "replay-ignored-cursor", "replay-foreign-stream", SCOPE_LEG },
    { "replay-foreign-stream", "replay-gap", SCOPE_LEG },
    { "replay-foreign-stream", "response-misrouted", SCOPE_LEG },
    { "replay-foreign-stream", "response-unknown", SCOPE_LEG },
    { "replay-foreign-stream", "progress-unknown-token", SCOPE_LEG },
    { "replay-foreign-stream", "response-on-standalone-stream", SCOPE_LEG },
    { "replay-foreign-session", "replay-gap", SCOPE_LEG },
    { "replay-foreign-session", "response-misrouted", SCOPE_LEG },
    { "replay-foreign-session", "response-unknown", SCOPE_LEG },
    { "replay-foreign-session", "progress-unknown-token", SCOPE_LEG },
    { "replay-foreign-session", "response-on-standalone-stream", SCOPE_LEG },
    { "cursor-foreign-session", "cursor-forged", SCOPE_EXCH },
    { "replay-new-id", "replay-gap", SCOPE_LEG },
    { "replay-new-id", "response-duplicate", SCOPE_STREAM },
    { "replay-live-interleaved", "replay-reordered", SCOPE_LEG },
    { "replay-live-interleaved", "event-id-not-monotonic", SCOPE_LEG },
    { "replay-live-interleaved", "progress-not-increasing", SCOPE_LEG },
    { "replay-reordered", "event-id-not-monotonic", SCOPE_LEG },
    { "replay-reordered", "progress-not-increasing", SCOPE_LEG },
    { "event-id-not-monotonic", "progress-not-increasing", SCOPE_LEG },
    { "replay-empty", "disconnect-taken-as-cancel", SCOPE_STREAM },
    { "replay-stalled", "disconnect-taken-as-cancel", SCOPE_STREAM },
    { "session-lost", "replay-refused", SCOPE_EXCH },
    { "response-lost", "request-unanswered", SCOPE_REQUEST },
    { "response-broadcast", "response-duplicate", SCOPE_REQUEST },
    { "request-reissued", "request-id-reused", SCOPE_REQUEST },
    { "session-flapping", "session-zombie", SCOPE_SESSION },
    { "stateless-resume-attempt", "cursor-in-removed-revision", SCOPE_EXCH },
    { "rpc-notification-with-id", "post-request-bad-reply", SCOPE_REQUEST },
    { "rpc-notification-with-id", "request-unanswered", SCOPE_REQUEST },
};

#define NO_KEY UINT64_MAX

static uint64_t scope_key(const struct finding *f, enum scope scope)
{
    uint32_t index = NONE;

    switch (scope) {
    case SCOPE_SESSION: return 0;
    case SCOPE_REQUEST:
        if (f->request_id.type == RPC_ID_NONE)
            return NO_KEY;
        return hash_mix(f->request_id.hash, (uint64_t)f->request_id.type) >> 1;
    case SCOPE_STREAM: index = f->stream; break;
    case SCOPE_LEG: index = f->leg; break;
    case SCOPE_EXCH: index = f->exch; break;
    }
    return index == NONE ? NO_KEY : index;
}

/* The first winner with the loser's session and key; winners are in the order of compare_key. */
static const struct sorted *find_winner(const struct sorted *win, size_t count,
                                        const struct sorted *loser)
{
    size_t lo = 0;
    size_t hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare_u64(session_order(win[mid].f->session), session_order(loser->f->session));
        if (c == 0)
            c = compare_u64(win[mid].key, loser->key);
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == count || win[lo].f->session != loser->f->session || win[lo].key != loser->key)
        return NULL;
    return &win[lo];
}

static int64_t last_time(const struct sorted *s)
{
    int64_t last = s->time;

    for (uint32_t i = 0; i < s->f->evidence_count; i++) {
        if (s->f->evidence[i].at.time > last)
            last = s->f->evidence[i].at.time;
    }
    return last;
}

static void apply_row(const struct precedence *row, struct sorted *list, size_t count,
                      struct sorted *room)
{
    size_t winners = 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].f->rule->id, row->winner) != 0)
            continue;
        room[winners] = list[i];
        room[winners].key = scope_key(list[i].f, row->scope);
        winners += room[winners].key != NO_KEY;
    }
    if (winners == 0)
        return;
    qsort(room, winners, sizeof(*room), compare_key);
    for (size_t i = 0; i < count; i++) {
        if (list[i].parent != SIZE_MAX || strcmp(list[i].f->rule->id, row->loser) != 0)
            continue;
        list[i].key = scope_key(list[i].f, row->scope);
        const struct sorted *w =
            list[i].key == NO_KEY ? NULL : find_winner(room, winners, &list[i]);
        if (w && (row->scope != SCOPE_SESSION || last_time(&list[i]) >= w->time))
            list[i].parent = w->before;
    }
}

/* list[i].before == i here. The table has no cycle, so the chain of parents ends. */
static size_t explain(struct findings *all, struct sorted *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t root = i;
        while (list[root].parent != SIZE_MAX)
            root = list[root].parent;
        if (root != i)
            finding_push_also(all, list[root].f, list[i].f->rule->id);
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i].parent == SIZE_MAX)
            list[kept++] = list[i];
    }
    return kept;
}

static size_t apply_precedence(struct findings *all, struct sorted *list, size_t count)
{
    struct sorted *room = mem_grow(NULL, (count + 1) * sizeof(*room));

    for (size_t i = 0; i < ARRAY_LEN(precedence); i++)
        apply_row(&precedence[i], list, count, room);
    free(room);
    return explain(all, list, count);
}

/* ---- repetitions ---- */

static uint64_t subject_hash(const struct finding *f)
{
    uint64_t h = hash_bytes(slice_str(f->rule->id));

    h = hash_mix(h, ((uint64_t)f->severity << 8) | (uint64_t)f->certainty);
    h = hash_mix(h, ((uint64_t)f->stream << 32) | f->event);
    h = hash_mix(h, f->request_id.hash);
    h = hash_mix(h, hash_bytes(slice_str(f->subject ? f->subject : "")));
    h = hash_mix(h, hash_bytes(f->event_id));
    h = hash_mix(h, hash_bytes(f->cursor));
    h = hash_mix(h, hash_bytes(f->replay_head));
    return hash_mix(h, f->missing_count);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_missing(const struct finding *a, const struct finding *b)
{
    if (a->missing_count != b->missing_count)
        return false;
    for (uint32_t i = 0; i < a->missing_count; i++) {
        if (!slice_eq(a->missing[i].id, b->missing[i].id))
            return false;
    }
    return true;
}

static bool same_subject(const struct finding *a, const struct finding *b)
{
    return a->rule == b->rule && a->severity == b->severity && a->certainty == b->certainty &&
           a->session == b->session && a->stream == b->stream && a->event == b->event &&
           a->request == b->request && rpc_id_eq(&a->request_id, &b->request_id) &&
           same_text(a->subject, b->subject) && slice_eq(a->event_id, b->event_id) &&
           slice_eq(a->cursor, b->cursor) && slice_eq(a->replay_head, b->replay_head) &&
           same_missing(a, b);
}

static bool has_place(const struct finding *f, struct place at)
{
    for (uint32_t i = 0; i < f->evidence_count; i++) {
        if (f->evidence[i].at.frame == at.frame && f->evidence[i].at.input == at.input)
            return true;
    }
    return false;
}

static void add_repetition(struct findings *all, struct finding *f, const struct finding *again)
{
    f->count += again->count;
    for (uint32_t i = 0; i < again->evidence_count && f->evidence_count < SETTLE_EVIDENCE; i++) {
        if (!has_place(f, again->evidence[i].at))
            finding_push_evidence(all, f, again->evidence[i]);
    }
    for (uint32_t i = 0; i < again->log_count && f->log_count < SETTLE_EVIDENCE; i++)
        finding_push_log(all, f, again->log[i]);
    for (uint32_t i = 0; i < again->also_count; i++)
        finding_push_also(all, f, again->also[i]);
}

/* The list is in the order of the report, and stays so. */
static size_t fold(struct findings *all, struct sorted *list, size_t count)
{
    struct sorted *by_key = mem_grow(NULL, (count + 1) * sizeof(*by_key));
    size_t first = 0;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        list[i].key = subject_hash(list[i].f);
        list[i].before = i;
        by_key[i] = list[i];
    }
    qsort(by_key, count, sizeof(*by_key), compare_key);
    for (size_t i = 1; i < count; i++) {
        if (by_key[i].key != by_key[first].key || !same_subject(by_key[first].f, by_key[i].f)) {
            first = i;
            continue;
        }
        add_repetition(all, by_key[first].f, by_key[i].f);
        list[by_key[i].before].f = NULL;
    }
    free(by_key);
    for (size_t i = 0; i < count; i++) {
        if (list[i].f)
            list[kept++] = list[i];
    }
    return kept;
}

/* ---- */

static void name_also(struct findings *all, struct finding *f)
{
    struct buf text;

    if (f->also_count == 0)
        return;
    buf_init(&text, SIZE_MAX);
    for (uint32_t i = 0; i < f->also_count; i++) {
        (void)!buf_add(&text, i > 0 ? SLICE_LIT(", ") : SLICE_LIT(""));
        (void)!buf_add(&text, slice_str(f->also[i]));
    }
    f->message = arena_printf(all->arena, "%s (this explains also: " SLICE_FMT ")",
                              f->message ? f->message : "", SLICE_ARG(buf_slice(&text)));
    buf_release(&text);
}

static void settle_undecidable(struct findings *all)
{
    uint32_t kept = 0;

    if (all->undecidable_count == 0)
        return;
    qsort(all->undecidable, all->undecidable_count, sizeof(*all->undecidable), compare_undecidable);
    for (uint32_t i = 1; i < all->undecidable_count; i++) {
        if (compare_undecidable(&all->undecidable[kept], &all->undecidable[i]) != 0)
            all->undecidable[++kept] = all->undecidable[i];
    }
    all->undecidable_count = kept + 1;
}

void findings_settle(struct findings *all, const struct dispatch_log *log)
{
    size_t count = all->count;
    struct sorted *list = mem_grow(NULL, (count + 1) * sizeof(*list));

    for (size_t i = 0; i < count; i++) {
        need_evidence(all, all->item[i]);
        list[i] = (struct sorted){
            .f = all->item[i], .time = time_of(all->item[i], log), .before = i, .parent = SIZE_MAX
        };
    }
    count = apply_precedence(all, list, count);
    qsort(list, count, sizeof(*list), compare_reported);
    count = fold(all, list, count);
    for (size_t i = 0; i < count; i++) {
        all->item[i] = list[i].f;
        name_also(all, all->item[i]);
    }
    all->count = (uint32_t)count;
    free(list);
    settle_undecidable(all);
}
