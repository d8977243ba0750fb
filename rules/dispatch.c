/* dispatch.c - RULES.md section 5: the client's dispatch log against the wire. */
#include "rule.h"

#include <stdlib.h>

#define ABC (ERA_A | ERA_B | ERA_C)

static const struct log_entry *entry_at(const struct session *s, uint32_t entry)
{
    return &s->model->log->entry[entry];
}

/* Does the log show, by other entries, that it names messages of this kind when they are handled?
 */
static bool log_names_kind(const struct session *s, const struct message *m)
{
    bool own = m->track != NONE && track_handled(&s->track[m->track]);
    uint32_t n = rpc_is_response(m->kind) ? s->log_handled[RPC_RESULT] + s->log_handled[RPC_ERROR]
                                          : s->log_handled[m->kind];

    return n > (own ? 1u : 0u);
}

/* How the log names messages: an event without an id can only be found by digest or request. */
static bool log_can_name(const struct session *s, const struct event *e, const struct message *m)
{
    if (e && e->has_id && e->id.len > 0 && s->log_names_events)
        return true;
    return rpc_is_response(m->kind) || s->log_digests; /* responses also by request id */
}

static bool covers(const struct session *s, int64_t t)
{
    return s->has_log && !s->log_from_map && t >= s->log_first && t <= s->log_last;
}

static struct finding *on_track(struct rule_run *run, const struct session *s,
                                const struct track *k)
{
    struct finding *f = finding_add(run, s);
    const struct event *e = event_at(s, k->event);

    if (e)
        finding_on_event(run, f, e);
    else if (k->msg)
        finding_on_exch(run, f, s->exch[k->msg->exch]);
    if (k->msg && k->msg->request != NONE)
        f->request_id = s->request[k->msg->request]->msg->id;
    else if (k->msg && k->msg->id.type != RPC_ID_NONE)
        f->request_id = k->msg->id;
    f->party = PARTY_CLIENT;
    return f;
}

static void show_log(struct rule_run *run, struct finding *f, const struct track *k)
{
    for (uint32_t i = 0; i < k->count && i < 6; i++)
        finding_log(run, f, k->entry[i], "%s",
                    log_state_text(entry_at(f->session, k->entry[i])->state));
}

/* ---- skipped ---- */

/* A proof that a cursor of the stream moved: a stored id, or the header of a reconnect. */
struct advance {
    uint32_t stream;
    uint32_t ordinal; /* of the event that it stands behind */
    int64_t time;
    uint32_t order; /* in the log, or among the resumptions */
    uint32_t entry; /* NONE */
    const struct resumption *resumption;
};

/* By stream and time; `furthest` is of each block of so many. */
#define ADVANCE_BLOCK 256
struct advances {
    struct advance *item;
    size_t count;
    size_t cap;
    uint32_t *furthest;
};

static void advances_add(struct advances *all, struct advance a)
{
    GROW(all->item, all->count, all->cap);
    all->item[all->count++] = a;
}

static int by_advance(const void *a, const void *b)
{
    const struct advance *x = a;
    const struct advance *y = b;

    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void advances_sort(struct advances *all)
{
    if (all->count > 0)
        qsort(all->item, all->count, sizeof(*all->item), by_advance);
    all->furthest = mem_alloc((all->count / ADVANCE_BLOCK + 1) * sizeof(*all->furthest));
    for (size_t i = 0; i < all->count; i++) {
        uint32_t *furthest = &all->furthest[i / ADVANCE_BLOCK];
        if (all->item[i].ordinal > *furthest)
            *furthest = all->item[i].ordinal;
    }
}

static void advances_release(struct advances *all)
{
    free(all->item);
    free(all->furthest);
}

/* How many stand before (stream, t). */
static size_t advances_before(const struct advances *all, uint32_t stream, int64_t t)
{
    size_t lo = 0;
    size_t hi = all->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct advance *a = &all->item[mid];
        if (a->stream < stream || (a->stream == stream && a->time < t))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The first one to the event or past it, from t on; NULL: none. */
static const struct advance *advance_past(const struct advances *all, const struct event *e,
                                          int64_t t)
{
    size_t i = advances_before(all, e->stream, t);

    while (i < all->count && all->item[i].stream == e->stream) {
        bool whole_block = i % ADVANCE_BLOCK == 0;
        if (all->item[i].ordinal >= e->ordinal)
            return &all->item[i];
        i += whole_block && all->furthest[i / ADVANCE_BLOCK] < e->ordinal ? ADVANCE_BLOCK : 1;
    }
    return NULL;
}

/* What the session shows of its cursors. */
struct cursors {
    struct advances stored;
    struct advances sent;
};

static struct cursors cursors_of(const struct session *s)
{
    struct cursors c = { 0 };
    struct brief b;

    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *l = entry_at(s, s->log_entry[i]);
        bool stores = l->state == LOG_CURSOR || (s->log_atomic && l->state == LOG_COMMITTED);
        if (stores && l->event_id.ptr && event_brief(s, event_by_id(s, l->event_id), &b) &&
            b.ordinal != NONE)
            advances_add(&c.stored, (struct advance){ b.stream, b.ordinal, s->log_time[i], i,
                                                      s->log_entry[i], NULL });
    }
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        if (r->stream != NONE && r->cursor_ordinal != NONE && !r->ahead)
            advances_add(&c.sent, (struct advance){ r->stream, r->cursor_ordinal,
                                                    s->exch[r->exch]->first.time, i, NONE, r });
    }
    advances_sort(&c.stored);
    advances_sort(&c.sent);
    return c;
}

static void cursors_release(struct cursors *c)
{
    advances_release(&c->stored);
    advances_release(&c->sent);
}

static const struct advance *advanced_past(const struct cursors *c, const struct event *e)
{
    const struct advance *a = advance_past(&c->stored, e, e->begin.time);

    return a ? a : advance_past(&c->sent, e, e->at.time);
}

static bool never_handled(const struct session *s, const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        if (e->msg[i].track != NONE && track_handled(&s->track[e->msg[i].track]))
            return false;
    }
    return e->track == NONE || !track_handled(&s->track[e->track]);
}

/* The proof that the event was skipped, or NULL. */
static const struct advance *skipped_by(const struct session *s, const struct cursors *c,
                                        const struct event *e)
{
    if (!e->has_id || e->no_time || e->msg_count == 0 || e->first != e->index ||
        e->ordinal == NONE || e->ambiguous || e->stripped || !s->log_processes ||
        !covers(s, e->at.time))
        return NULL;
    if (!event_delivered(s, e) || !never_handled(s, e))
        return NULL;
    if (e->track == NONE && !(s->log_names_events && log_names_kind(s, &e->msg[0])))
        return NULL;
    if (e->msg[0].kind == RPC_NOTIFICATION && !s->log_handles_notifications &&
        s->track[e->track].state[LOG_RECEIVED].first == NONE)
        return NULL; /* it stores every id, and tells of responses only */
    return advanced_past(c, e);
}

static void check_skipped(struct rule_run *run, const struct session *s)
{
    struct cursors c = cursors_of(s);

    for (const struct event *e = event_next(s, 0); s->has_log && e;
         e = event_next(s, e->index + 1)) {
        const struct advance *how = skipped_by(s, &c, e);
        if (!how)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        f->party = PARTY_CLIENT;
        if (e->msg[0].request != NONE)
            f->request_id = s->request[e->msg[0].request]->msg->id;
        if (how->resumption)
            f->cursor = how->resumption->cursor;
        if (!s->log_has_times)
            f->certainty = CERTAINTY_PROVEN;
        finding_message(
            run, f,
            "event %s was delivered and the cursor was moved to or past it, but the log never "
            "shows its message processed: no replay will bring it again",
            run_id(run, e->id));
        finding_frame(run, f, e->at, "event %s", run_id(run, e->id));
        finding_frame(run, f, e->acked, "the client's host acknowledges it");
        if (how->resumption)
            finding_frame(run, f, s->exch[how->resumption->exch]->first,
                          "the reconnect behind it: Last-Event-ID: %s",
                          run_id(run, how->resumption->cursor));
        if (how->entry != NONE)
            finding_log(run, f, how->entry, "the cursor is stored");
        if (e->track != NONE)
            show_log(run, f, &s->track[e->track]);
    }
    cursors_release(&c);
}

/* ---- duplicated ---- */

/* The track of the message that this one repeats under a new event id, or itself. */
static uint32_t canonical(const struct session *s, uint32_t at)
{
    const struct message *m = s->track[at].msg;

    return m && m->same_as && m->same_as->track != NONE ? m->same_as->track : at;
}

struct times {
    uint32_t processed, committed;
    uint32_t tracks;
};

static const struct request *request_of(const struct session *s, const struct message *m)
{
    const struct request *r = m->request == NONE ? NULL : s->request[m->request];

    return r && !r->from_server ? r : NULL;
}

static void duplicated_finding(struct rule_run *run, const struct session *s, uint32_t at,
                               struct times t)
{
    const struct track *k = &s->track[at];
    const struct request *q = request_of(s, k->msg);
    bool idempotent = s->log_idempotent_all || (q && q->idempotent);
    bool one_commit = s->log_commits && t.committed <= 1;
    struct finding *f = on_track(run, s, k);
    const struct event *e = event_at(s, k->event);

    if (idempotent || one_commit)
        f->severity = SEV_INFO;
    finding_message(run, f, "one message%s%s was %s %u times%s%s", e ? ", event " : "",
                    e ? run_id(run, e->id) : "", t.committed > 1 ? "committed" : "processed",
                    t.committed > 1 ? t.committed : t.processed,
                    t.tracks > 1 ? ", under more than one event id" : "",
                    idempotent   ? "; its handler is idempotent"
                    : one_commit ? "; only one of the copies was committed"
                                 : "");
    finding_frame(run, f, k->msg->at, "the message, first");
    for (const struct event *again = event_next(s, 0); e && again;
         again = event_next(s, again->index + 1)) {
        if (again != e && (again->first == e->index || again->new_id_of == e->index))
            finding_frame(run, f, again->at, "sent again as event %s", run_id(run, again->id));
    }
    for (uint32_t i = 0; i < s->track_count; i++) {
        if (canonical(s, i) == at)
            show_log(run, f, &s->track[i]);
    }
}

/* A map counts nothing: what it has as committed comes again. */
static void duplicated_by_map(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        const struct event *e = event_at(s, r->head_first);
        if (!(r->faults & RF_DUPLICATED) || !e)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_resumption(run, f, r);
        f->event = e->index;
        f->event_id = e->id;
        f->party = PARTY_CLIENT;
        f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "event %s had been committed when the client reconnected behind it, and it "
                        "comes again",
                        run_id(run, e->id));
        finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                      run_id(run, r->cursor));
        finding_frame(run, f, e->at, "the event, first");
        if (e->track != NONE)
            show_log(run, f, &s->track[e->track]);
    }
}

static void check_duplicated(struct rule_run *run, const struct session *s)
{
    if (s->log_from_map)
        duplicated_by_map(run, s);
    if (s->log_from_map || s->track_count == 0)
        return;
    struct times *t = mem_alloc(s->track_count * sizeof(*t));
    for (uint32_t i = 0; i < s->track_count; i++) {
        const struct track *k = &s->track[i];
        struct times *sum = &t[canonical(s, i)];
        sum->tracks++;
        sum->processed += k->state[LOG_PROCESSED].count;
        sum->committed += k->state[LOG_COMMITTED].count;
    }
    for (uint32_t i = 0; i < s->track_count; i++) {
        if (s->track[i].msg && (t[i].processed > 1 || t[i].committed > 1))
            duplicated_finding(run, s, i, t[i]);
    }
    free(t);
}

static void check_uncommitted(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *e = event_at(s, r->head_first);
    if (!(r->faults & RF_UNCOMMITTED) || !e)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->event = e->index;
    f->event_id = e->id;
    f->party = PARTY_CLIENT;
    if (s->log_from_map)
        f->certainty = CERTAINTY_LIKELY;
    finding_message(
        run, f,
        "event %s was processed and not committed when the client reconnected behind it: "
        "whether its effect lasted is in doubt",
        run_id(run, e->id));
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    finding_frame(run, f, e->at, "the event, first");
    if (e->track != NONE)
        show_log(run, f, &s->track[e->track]);
}

/* ---- missing and phantom ---- */

static bool response_is_lost(const struct session *s, const struct message *m)
{
    return rpc_is_response(m->kind) && m->request != NONE &&
           s->request[m->request]->response == m && log_names_kind(s, m);
}

static void missing_message(struct rule_run *run, const struct session *s, const struct cursors *c,
                            const struct event *e, const struct message *m)
{
    if (m->from_client || m->same_as || m->kind == RPC_OTHER || m->track != NONE ||
        (e && e->no_time) || !covers(s, m->at.time) || !message_delivered(s, m))
        return;
    const struct request *q = m->request == NONE ? NULL : s->request[m->request];
    if (q && q->cancelled.time && q->cancelled.time < m->at.time)
        return; /* given up: dropping it is right */
    if (e && (e->ambiguous || e->first != e->index || skipped_by(s, c, e)))
        return;
    /* A log of commits alone tells of what resolves a request. */
    bool by_id = e && e->has_id && e->id.len > 0 && s->log_names_events &&
                 (s->log_handles || s->log_receives);
    if (!log_can_name(s, e, m) || !(by_id || log_names_kind(s, m)))
        return;
    if (response_is_lost(s, m))
        return; /* response-lost tells it */
    struct finding *f = finding_add(run, s);
    if (e)
        finding_on_event(run, f, e);
    else
        finding_on_exch(run, f, s->exch[m->exch]);
    if (q)
        f->request_id = q->msg->id;
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "a message (" SLICE_FMT
                    "%s) was completely delivered and is absent from a log that "
                    "covers its time and names such messages",
                    SLICE_ARG(m->method), m->method.len ? "" : "response");
    finding_frame(run, f, m->at, "the message");
    finding_frame(run, f, m->acked, "the client's host acknowledges it");
}

static void check_missing(struct rule_run *run, const struct session *s)
{
    if (!s->has_log || s->log_from_map || !(s->log_processes || s->log_receives))
        return;
    struct cursors c = cursors_of(s);
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        for (uint32_t k = 0; k < e->msg_count; k++)
            missing_message(run, s, &c, e, &e->msg[k]);
    }
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        for (uint32_t k = 0; x->status < 400 && x->method == HTTP_METHOD_POST && k < x->reply_count;
             k++)
            missing_message(run, s, &c, NULL, &x->reply[k]);
    }
    cursors_release(&c);
}

/* Is the wire wholly known up to a moment after t, and does the capture go on as far? */
static bool wire_covers(const struct session *s, int64_t t)
{
    return t >= s->first.time && t <= s->model->end.time && !s->truncated && !s->gaps &&
           session_whole_before(s, INT64_MAX);
}

/* The client made up an answer for this request: its entries need no message on the wire. */
static bool named_by_synthetic(const struct session *s, const struct rpc_id *id)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        if (s->request[i]->synthetic != NONE && rpc_id_eq(&s->request[i]->msg->id, id))
            return true;
    }
    return false;
}

/* Does the entry speak of a message that the wire should have carried? */
static bool names_wire(const struct session *s, const struct log_entry *e)
{
    if (e->from_map || e->state == LOG_FAILED)
        return false;
    if (e->event_id.len > 0)
        return true;
    return e->request.type > RPC_ID_NULL && !s->orphan && !named_by_synthetic(s, &e->request);
}

static void check_phantom(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->unmatched_count; i++) {
        const struct log_entry *e = entry_at(s, s->unmatched[i]);
        int64_t t = s->unmatched_time[i];
        bool event = e->event_id.len > 0;
        if (!names_wire(s, e))
            continue;
        if (!wire_covers(s, t)) {
            undecidable_add(run, s, NONE, "log line %u: the capture does not wholly cover its time",
                            e->line);
            continue;
        }
        struct finding *f = finding_add(run, s);
        f->party = PARTY_CLIENT;
        if (event)
            f->event_id = e->event_id;
        f->subject = event ? run_id(run, e->event_id) : run_rpc_id(run, &e->request);
        if (e->request.type > RPC_ID_NULL)
            f->request_id = e->request;
        finding_message(run, f,
                        "the log holds %s %s, which the capture, which covers that time, never "
                        "carried",
                        event ? "the event" : "a message for request",
                        event ? run_id(run, e->event_id) : run_rpc_id(run, &e->request));
        finding_log(run, f, s->unmatched[i], "%s", log_state_text(e->state));
    }
}

/* ---- order and content ---- */

struct position {
    uint32_t track;
    uint32_t stream;
    uint32_t ordinal;
    uint32_t entry;
    int64_t time;
};

static int by_stream_and_time(const void *a, const void *b)
{
    const struct position *x = a;
    const struct position *y = b;

    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->time != y->time)
        return (x->time > y->time) - (x->time < y->time);
    return (x->entry > y->entry) - (x->entry < y->entry);
}

static void order_finding(struct rule_run *run, const struct session *s, const struct position *a,
                          const struct position *b)
{
    const struct track *ka = &s->track[a->track];
    const struct track *kb = &s->track[b->track];
    struct finding *f = on_track(run, s, kb);

    finding_message(
        run, f, "the log processed event %s before %s, which came before it on the wire",
        run_id(run, event_at(s, ka->event)->id), run_id(run, event_at(s, kb->event)->id));
    finding_frame(run, f, event_at(s, kb->event)->at, "came first");
    finding_frame(run, f, event_at(s, ka->event)->at, "came after it");
    finding_log(run, f, a->entry, "processed first");
    finding_log(run, f, b->entry, "processed after it");
}

/* Messages in the order in which the log processed them, stream by stream. */
static size_t processed_order(const struct session *s, struct position *p)
{
    size_t n = 0;

    for (uint32_t i = 0; i < s->track_count; i++) {
        const struct track *k = &s->track[i];
        const struct event *e = event_at(s, k->event);
        if (!e || !k->msg || e->ordinal == NONE || k->state[LOG_PROCESSED].first == NONE)
            continue;
        p[n++] = (struct position){ i, e->stream, e->ordinal, k->state[LOG_PROCESSED].first,
                                    k->state[LOG_PROCESSED].first_time };
    }
    qsort(p, n, sizeof(*p), by_stream_and_time);
    return n;
}

/* received before processed before or with committed; the cursor may stand anywhere after received.
 */
static void state_order(struct rule_run *run, const struct session *s, const struct track *k)
{
    static const struct {
        enum log_state before, after;
    } rules[] = {
        { LOG_RECEIVED, LOG_PROCESSED },
        { LOG_RECEIVED, LOG_COMMITTED },
        { LOG_RECEIVED, LOG_CURSOR },
        { LOG_PROCESSED, LOG_COMMITTED },
    };

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        enum log_state a = rules[i].before;
        enum log_state b = rules[i].after;
        if (k->state[a].first == NONE || k->state[b].first == NONE ||
            k->state[b].first_time >= k->state[a].first_time)
            continue;
        struct finding *f = on_track(run, s, k);
        finding_message(run, f, "the log says %s before %s of one message", log_state_text(b),
                        log_state_text(a));
        if (k->msg)
            finding_frame(run, f, k->msg->at, "the message");
        finding_log(run, f, k->state[b].first, "%s", log_state_text(b));
        finding_log(run, f, k->state[a].first, "%s, later", log_state_text(a));
        return;
    }
}

static void check_reordered(struct rule_run *run, const struct session *s)
{
    if (!s->has_log || s->log_from_map || s->track_count == 0)
        return;
    struct position *p = mem_alloc(s->track_count * sizeof(*p));
    size_t n = processed_order(s, p);
    size_t highest = 0;
    for (size_t i = 1; i < n; i++) {
        if (p[i].stream != p[highest].stream || p[i].ordinal > p[highest].ordinal)
            highest = i;
        else if (p[i].ordinal < p[highest].ordinal)
            order_finding(run, s, &p[highest], &p[i]);
    }
    free(p);
    for (uint32_t i = 0; i < s->track_count; i++)
        state_order(run, s, &s->track[i]);
}

static bool digest_fits(const struct log_entry *e, const struct message *m)
{
    switch (e->digest) {
    case LOG_DIGEST_SHA256: return m->sha256 && memcmp(m->sha256, e->sha256, 32) == 0;
    case LOG_DIGEST_XXH3: return m->xxh3 == e->xxh3;
    case LOG_DIGEST_CONTENT: return m->digest == e->xxh3;
    case LOG_DIGEST_NONE: break;
    }
    return true;
}

/* Any copy of the event on the wire with those bytes? */
static bool some_copy_fits(const struct session *s, const struct track *k,
                           const struct log_entry *e)
{
    if (digest_fits(e, k->msg))
        return true;
    for (uint32_t i = 0; k->event != NONE && i < s->event_count; i++) {
        const struct event *o = event_at(s, i);
        if (o && o->first == k->event && o->msg_count > 0 && digest_fits(e, &o->msg[0]))
            return true;
    }
    return false;
}

/* On a resumed leg clients put the original request's id into the message. */
static bool id_rewritten(const struct session *s, const struct track *k)
{
    for (uint32_t i = 0; k->event != NONE && i < s->event_count; i++) {
        const struct event *o = event_at(s, i);
        if (o && o->first == k->event && s->leg[o->leg]->resumed)
            return true;
    }
    return false;
}

static bool id_differs(const struct session *s, const struct track *k, const struct log_entry *e)
{
    if (!rpc_is_response(k->msg->kind) || e->request.type <= RPC_ID_NULL ||
        k->msg->id.type <= RPC_ID_NULL)
        return false;
    return !rpc_id_eq(&e->request, &k->msg->id) && !id_rewritten(s, k);
}

static void check_payload(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->track_count; i++) {
        const struct track *k = &s->track[i];
        const struct event *ev = event_at(s, k->event);
        for (uint32_t n = 0; k->msg && n < k->count; n++) {
            const struct log_entry *e = entry_at(s, k->entry[n]);
            bool content = !(ev && (ev->batch || ev->stripped)) && !some_copy_fits(s, k, e);
            bool id = id_differs(s, k, e);
            if (!content && !id)
                continue;
            struct finding *f = on_track(run, s, k);
            if (s->exch[k->msg->exch]->flags & RECF_HAR)
                f->certainty = CERTAINTY_LIKELY;
            finding_message(
                run, f,
                content ? "the payload that the client handled is not the one that the wire "
                          "carried: their digests differ"
                        : "the JSON-RPC id in the log (%s) is not the one on the wire",
                run_rpc_id(run, &e->request));
            finding_frame(run, f, k->msg->at, "the message on the wire");
            finding_log(run, f, k->entry[n], "what the client had of it");
            break;
        }
    }
}

/* ---- cursor ---- */

#define STORE_MARGIN (100 * NS_PER_MS)
static bool stored_about_then(const struct session *s, const struct resumption *r)
{
    int64_t t = s->exch[r->exch]->first.time;

    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = entry_at(s, s->log_entry[i]);
        if ((e->state == LOG_CURSOR || e->state == LOG_COMMITTED || e->state == LOG_RECONNECT) &&
            e->event_id.ptr && slice_eq(e->event_id, r->cursor) &&
            s->log_time[i] > t - STORE_MARGIN && s->log_time[i] < t + STORE_MARGIN)
            return true;
    }
    return false;
}

static void check_mismatch(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    struct brief b = { .ordinal = NONE };
    if (r->stored_entry == NONE || s->log_from_map || slice_eq(r->stored_cursor, r->cursor) ||
        r->mangled || stored_about_then(s, r) || s->epoch)
        return;
    (void)event_brief(s, event_by_id(s, r->stored_cursor), &b);
    if (r->cursor_ordinal != NONE && b.ordinal != NONE && b.ordinal > r->cursor_ordinal)
        return; /* cursor-behind, an error by the log, tells it */
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "Last-Event-ID is %s, but the log says that %s was stored as the cursor",
                    run_id(run, r->cursor), run_id(run, r->stored_cursor));
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    finding_log(run, f, r->stored_entry, "the last cursor stored before it");
}

static void check_synthetic(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = entry_at(s, s->log_entry[i]);
        if (!e->synthetic)
            continue;
        struct finding *f = finding_add(run, s);
        f->party = PARTY_CLIENT;
        f->subject = run_rpc_id(run, &e->request);
        if (e->request.type > RPC_ID_NULL)
            f->request_id = e->request;
        finding_message(
            run, f,
            "the log holds a result or error for request %s that the client made up: it "
            "has no counterpart on the wire",
            run_rpc_id(run, &e->request));
        finding_log(run, f, s->log_entry[i], "%s, made up by the client", log_state_text(e->state));
    }
}

static void check_policy(struct rule_run *run, const struct session *s)
{
    if (!s->has_log || s->policy == POLICY_UNKNOWN || s->policy_example == NONE)
        return;
    struct finding *f = finding_add(run, s);
    f->party = PARTY_CLIENT;
    finding_message(
        run, f,
        "this client stores cursor and effect: %s (cursor before dispatch %u times, after it "
        "%u, in one transaction %u)",
        cursor_policy_text(s->policy), s->policy_before, s->policy_after, s->policy_atomic);
    finding_log(run, f, s->policy_example, "an example");
}

#define DRIFT_SHOWN (50 * NS_PER_MS)
static void check_skew(struct rule_run *run, const struct model *m)
{
    for (uint32_t i = 0; i < m->skew_count; i++) {
        const struct clock_skew *k = &m->skew[i];
        double over = k->drift * (double)(m->end.time - k->since);
        int64_t offset = k->offset < 0 ? -k->offset : k->offset;
        if (!k->known || (offset < run->limit->clock_skew && over < (double)DRIFT_SHOWN &&
                          over > -(double)DRIFT_SHOWN))
            continue;
        struct finding *f = finding_add(run, NULL);
        f->party = PARTY_CLIENT;
        f->subject = run_text(run, "log %u", i);
        f->certainty = CERTAINTY_LIKELY;
        finding_message(
            run, f,
            "the log's clock is %s %s the capture's%s; estimated from %u messages, by the "
            "smallest difference between their arrival and the log, and taken off all log times",
            run_seconds(run, offset), k->offset < 0 ? "behind" : "ahead of",
            k->drift != 0 ? run_text(run, " and drifts by %.3g ms a second", k->drift * 1e3) : "",
            k->pairs);
        finding_log(run, f, k->entry_first, "the first pair");
        finding_log(run, f, k->entry_last, "the last pair");
    }
}

static const struct rule rules[] = {
    {
        .id = "dispatch-skipped",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D | NEED_H,
        .eras = ABC,
        .summary = "A delivered message was never processed, and the cursor is past it.",
        .why = "The server will never send it again: it is lost for good, silently.",
        .advice = "Client: store the cursor after, or together with, the effect of the message; on "
                  "restart "
                  "compare log and cursor before resuming.",
        .source = "Reasoning: the cursor is a claim, and what is at or before it is never sent "
                  "again (MCP 2025-11-25, Transports > Resumability and Redelivery); stored "
                  "before dispatch with a crash between, one message is skipped",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 6 {message} ---|   log: received\n"
                       "  |      client stores the cursor      |   log: cursor 6\n"
                       "  |      client crashes, restarts      |   log: 6 never processed\n"
                       "  |-- GET, Last-Event-ID: 6 ---------->|\n"
                       "  |<--------------- id: 7 {message} ---|   6 is lost for good\n",
            .needs = "A dispatch log that writes processed (or committed) for other messages and "
                     "names them by event id or digest; the event delivered on the wire; and the "
                     "cursor at or past it, by the log or by a reconnect.",
            .blind = "A handler that ran and whose line was lost in the crash: the log is taken "
                     "at its word. An event outside the time that the log covers is not judged. "
                     "dropped and failed count as handled.",
            .client = "Look up what the message was (its frame is named) and make its effect good "
                      "by hand, or reconnect with the id of the event before it while the server "
                      "still keeps it. Then store the cursor after the effect, or both in one "
                      "transaction; at start compare log and cursor, and go back to the last "
                      "event that was processed.",
            .known = "Clients that store the id before they dispatch the message, so that a crash "
                     "between skips it: typescript-sdk 1.32.2 and v2 (read in source; a message "
                     "that does not parse moves the cursor too).",
        },
        .check = check_skipped,
    },
    {
        .id = "dispatch-duplicated",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D,
        .summary = "One message was processed or committed more than once.",
        .why = "Its effect happened more than once, unless the handler is idempotent.",
        .advice =
            "Client: recognise a message by its event id and JSON-RPC id before handling it; store "
            "cursor and effect in one transaction.",
        .source = "Reasoning: a cursor stored after dispatch, with a crash between, makes the "
                  "server send one event again, rightly (MCP 2025-11-25, Transports > "
                  "Resumability and Redelivery)",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 6 {message} ---|   log: processed\n"
                       "  | crash before the cursor is stored  |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------------- id: 6 {message} ---|   log: processed, again\n",
            .needs = "A dispatch log with two or more processed (or committed) lines for one "
                     "message: by event id, by digest, or by request id for responses, new event "
                     "ids included.",
            .blind = "Whether the second run had an effect. Info where the handler is known to be "
                     "idempotent, or where the log records commits and only one copy was "
                     "committed. A log in the form of a map keeps one state an event and cannot "
                     "show it.",
            .client = "Check the effect (two mails, two bookings). Then keep the ids of handled "
                      "events and of answered requests beside the cursor, and look there before "
                      "handling.",
            .server = "If the replay began at or below the cursor, that is yours: see "
                      "replay-at-or-below-cursor. Annotate tools that are idempotent.",
        },
        .check = check_duplicated,
    },
    {
        .id = "dispatch-uncommitted",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D,
        .eras = ABC,
        .summary =
            "An event was processed and not committed when the client reconnected behind it.",
        .why = "Nobody knows whether its effect lasted: repeating it may be a double effect, "
               "dropping it a "
               "loss.",
        .advice =
            "Client: look at the effect itself before going on; commit effect and cursor together.",
        .source = "Reasoning: a message that was processed and not committed can be neither "
                  "repeated nor dropped safely; only one transaction, or an idempotent handler, "
                  "decides it",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 6 {message} ---|   log: processed\n"
                       "  |               crash                |   log: no committed\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------------- id: 6 {message} ---|   repeat it, or drop it?\n",
            .needs = "A dispatch log that tells processed from committed, and a reconnect behind "
                     "the event: its replay begins with it.",
            .blind = "Whether the effect lasted: that is the finding. A log that never writes "
                     "committed knows only processed, and is judged so. With a map, the time of a "
                     "state is unknown (likely).",
            .client = "Before handling the event again look at the effect itself, by a key that "
                      "it carries. For the future write effect, commit and cursor in one "
                      "transaction and log them with one txn.",
        },
        .resumption = check_uncommitted,
    },
    {
        .id = "dispatch-missing",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D,
        .summary = "A delivered message is absent from the log.",
        .why = "It reached the host and not the application: parser, routing or filter dropped it.",
        .advice =
            "Client: compare the event's framing with what the parser expects (line ends, chunk "
            "boundaries, event names, several data lines).",
        .source = "WHATWG HTML 9.2.6 says what an event is. Reasoning: delivery to a socket is "
                  "not dispatch, and an event that is whole by the standard should reach a "
                  "handler",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 6 {message} ---|   whole on the wire\n"
                       "  |-- TCP: acknowledged -------------->|   the host had it\n"
                       "  |       log: 5 and 7 processed       |   log: nothing of 6\n",
            .needs = "A log that covers the time of the message and, by its other lines, names "
                     "messages of this kind; the message delivered and acknowledged.",
            .blind = "Where in the client it was dropped, and whether on purpose. A log that "
                     "filters (by level, by kind) in a way that the other lines do not show looks "
                     "the same.",
            .client = "Replay exactly these bytes into the parser: look at line ends (CR, CRLF), "
                      "chunk boundaries inside the event, several data lines, the event name, a "
                      "byte order mark. Then look for a waiter that was gone.",
            .server = "Plain framing trips nobody: LF, one data line, event \"message\" or none, "
                      "no id without data.",
            .path = "A proxy that rewrites the stream between capture and client can do it: "
                    "capture nearer to the client.",
            .known = "eventsource-parser 3.1.1: loses the first event after a byte order mark "
                     "when fed a string (executed). go-sdk 3d6450f: a lone CR is no line end. "
                     "java-sdk 305e4cb and go-sdk: a line without a colon ends the stream. mcp-go "
                     "56af04b: ignores responses on a GET stream (read in source).",
        },
        .check = check_missing,
    },
    {
        .id = "dispatch-phantom",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D | NEED_H,
        .summary = "The log holds an event that the capture never carried.",
        .why = "Either the client acted on something that the server did not send, or the log "
               "belongs to "
               "other traffic.",
        .advice = "Check that log and capture belong together (session ids, times); then look for "
                  "messages "
                  "that the client made up.",
        .source = "Reasoning: cursor, wire and log are three views of one stream; what only one "
                  "of them has is either a hole in the evidence or an invention",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------------ id: 5, id: 6 ---|\n"
                       "  |        (nothing else came)         |\n"
                       "  |          client handles 7          |   log: processed 7\n",
            .needs = "A session wholly recorded around that time, without gaps, and a log line of "
                     "origin wire that fits no event and no response. Otherwise undecidable.",
            .blind = "A second connection or interface that was not captured, and a log of "
                     "another session under the same name. Lines that the log itself calls "
                     "synthetic are left out.",
            .client = "First check that log and capture belong together: session ids, clock, "
                      "host. If they do, look for messages that were restored from a store, or "
                      "made up and not marked: mark them as synthetic.",
            .server = "If your own log has the event as sent, say so: then the capture lacks a "
                      "connection.",
        },
        .check = check_phantom,
    },
    {
        .id = "dispatch-reordered",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D | NEED_H,
        .summary =
            "The log's order is not that of the wire, or its states come in an impossible order.",
        .why = "An effect may rest on one that had not happened yet.",
        .advice = "Client: dispatch the messages of a stream one after the other.",
        .source = "Reasoning: the order of a stream is that of first appearance on the wire (TCP "
                  "and SSE keep it); an effect may depend on the one before",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 5 {message} ---|\n"
                       "  |<--------------- id: 6 {message} ---|\n"
                       "  |          client handles 6          |   log: processed 6\n"
                       "  |          client handles 5          |   log: processed 5\n",
            .needs = "A log with times or in order of lines, and the order of the stream on the "
                     "wire. Or the states of one message: received, then processed, then "
                     "committed; cursor anywhere after received.",
            .blind = "Handlers that run side by side and log when they end, not when they begin. "
                     "Messages of different streams have no order to one another.",
            .client = "Handle the messages of a stream in one queue. If the order does not matter "
                      "to the handlers, say so in a policy file and let the log record the start.",
        },
        .check = check_reordered,
    },
    {
        .id = "dispatch-payload-changed",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D | NEED_H,
        .summary = "Digest or JSON-RPC id in the log differ from the wire.",
        .why = "The client acted on other data than the server sent.",
        .advice = "Client: decode UTF-8 across chunk boundaries, join all data lines of an event, "
                  "and do not "
                  "change ids.",
        .source = "WHATWG HTML 9.2.6: the data of an event are its data lines joined with LF, "
                  "decoded as UTF-8; JSON-RPC 2.0, 5. Reasoning: equal bytes have equal digests",
        .explain = {
            .picture = "client                                server\n"
                       "  |<- id: 6 {\"id\": 3, \"text\": \"e...\"} ---|   xxh3: 1f...\n"
                       "  |    parser, decoder, id rewriting     |\n"
                       "  |          client handles it           |   log: digest 9c..., or id 4\n",
            .needs = "A log with digests of the payload as received, or with the JSON-RPC id, and "
                     "the message on the wire.",
            .blind = "A digest taken after the message was parsed and written anew differs "
                     "without any change. Ids that clients put into messages of a resumed leg are "
                     "known and not reported. From a HAR it is only likely.",
            .client = "Compute the digest over the bytes of the data field, lines joined with LF. "
                      "If they still differ: decode UTF-8 over chunk boundaries, join all data "
                      "lines, trim nothing, and do not overwrite ids.",
            .server = "Send one data line of valid UTF-8; that leaves a parser least to get "
                      "wrong.",
            .path = "A proxy between capture and client that transcodes or rewrites: capture "
                    "nearer to the client.",
            .known = "go-sdk 3d6450f and java-sdk 305e4cb trim white space around the data (read "
                     "in source). typescript-sdk and python-sdk 57394b0 overwrite the id of a "
                     "response on a resumed stream (read in source).",
        },
        .check = check_payload,
    },
    {
        .id = "dispatch-cursor-mismatch",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D | NEED_H,
        .eras = ABC,
        .summary = "Last-Event-ID on the wire is not the cursor that the log says was stored.",
        .why =
            "Two places hold a cursor, and they disagree: what was durable is not what was used.",
        .advice = "Client: read the cursor for a reconnect from the store that the log speaks of.",
        .source = "Reasoning: the cursor on the wire, the one that is stored and the last "
                  "dispatched event are three; only the stored one survives a crash, so it is the "
                  "one to resume from",
        .explain = {
            .picture = "client                              server\n"
                       "  |<----------- id: 5, id: 6, id: 7 ---|\n"
                       "  |               client               |   log: cursor 6 stored\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 7 ---------->|   the log says 6\n",
            .needs = "A log with cursor lines (or atomic commits) before the reconnect, and its "
                     "Last-Event-ID. A line within 100 ms of the request may belong to it.",
            .blind = "A cursor line that was lost in a crash. An older header than the stored one "
                     "is cursor-behind, a mangled one cursor-mangled.",
            .client = "There are two cursors: one in memory, from the parser, and one in the "
                      "store. Read the one for the reconnect from the store, or write the store "
                      "wherever the other moves; else the log proves nothing after a restart.",
        },
        .resumption = check_mismatch,
    },
    {
        .id = "dispatch-synthetic",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D,
        .summary = "The log holds a result or error that the client made up itself.",
        .why = "The application was told of an outcome that the server never reported.",
        .advice = "Look at what the wire shows for this request: it may have been answered.",
        .source = "Reasoning: what the application is told and what the server said are two "
                  "things; the log must keep them apart. Field: clients make up errors at a "
                  "time-out or the end of a stream",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |  (the leg ends, or time runs out)  |\n"
                       "  |      client makes up an error      |   log: origin synthetic\n"
                       "  |<------------ id: 6 {response 1} ---|   perhaps, later\n",
            .needs = "A log line whose origin is synthetic, or a line of a known client's log "
                     "that is made so (see the importers).",
            .blind = "Messages that the client made up and did not mark: they show as "
                     "dispatch-phantom or not at all.",
            .client = "Word the made-up error so that a caller knows that the outcome is unknown, "
                      "not that the call failed. Look at the wire for the real answer before "
                      "repeating.",
            .server = "If the response was sent, see response-lost; if not, request-unanswered.",
            .known = "go-sdk 3d6450f: \"request terminated without response\" when a stream ends "
                     "before an id (read in source).",
        },
        .check = check_synthetic,
    },
    {
        .id = "cursor-policy",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D,
        .eras = ABC,
        .summary = "How this client orders cursor and dispatch.",
        .why = "Before dispatch: a crash skips a message. After it: a crash repeats one. Atomic: "
               "neither.",
        .advice = "Client: store both in one transaction.",
        .source = "Reasoning: of cursor and effect, one is written first unless one transaction "
                  "writes both; a crash between the two shows which",
        .explain = {
            .picture = "before-dispatch:  cursor 6 | crash | effect 6    6 is skipped\n"
                       "after-dispatch:   effect 6 | crash | cursor 6    6 comes twice\n"
                       "atomic:           [ effect 6 + cursor 6 ]        neither\n"
                       "mixed:            now one, now the other         either\n",
            .needs = "A log with cursor lines and processed or committed lines of the same "
                     "events, with times or in order; an equal txn on both proves atomicity.",
            .blind = "What the client would do in a crash that did not happen. Lines written "
                     "later than the deed give a wrong picture of the order.",
            .client = "Put effect and cursor into one transaction and log one txn. If that cannot "
                      "be, choose after-dispatch and idempotent handlers: a repetition can be "
                      "recognised, a skipped message cannot.",
            .known = "Before dispatch: typescript-sdk 1.32.2 and v2 (read in source).",
        },
        .check = check_policy,
    },
    {
        .id = "clock-skew",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_D | NEED_T,
        .summary = "The log's clock differs from the capture's.",
        .why =
            "Log times were corrected by the offset stated; what rests on them is as good as that.",
        .advice = "Keep the clocks of client and capture host in step.",
        .source = "Reasoning: an event cannot be logged before it arrives, so the smallest "
                  "difference bounds the offset; it is stated because times of the log are "
                  "shifted by it",
        .explain = {
            .picture = "capture:  id: 6 arrives   12:00:00.100\n"
                       "log:      6 received      12:00:03.300      about 3.2 s ahead\n"
                       "capture:  id: 7 arrives   12:00:09.500\n"
                       "log:      7 received      12:00:12.700      3.2 s again: an offset\n",
            .needs = "A log with times and messages that are found on the wire too. The smallest "
                     "difference between arrival and log line is the offset; its change over time "
                     "is the drift.",
            .blind = "A delay that every message had (a queue before the log) is counted as "
                     "offset. A clock that was set in between fits no line: times near it are "
                     "poor.",
            .client = "Run NTP on the host, and log times with milliseconds and zone (or UTC).",
            .path = "Keep the clock of the capturing host in step as well: it may be the one that "
                    "is wrong.",
        },
        .whole = check_skew,
    },
};

const struct rule_family rules_dispatch =
    RULE_FAMILY("dispatch", "Dispatch log against the wire", rules);
