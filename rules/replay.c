/* replay.c - RULES.md section 2: where the server really resumed, and what the client made of it.
 */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>

#define ABC (ERA_A | ERA_B | ERA_C)

/* ---- what all of them say ---- */

static const char *outstanding_text(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const char *text = NULL;

    for (uint32_t i = 0; i < r->outstanding_count && i < 20; i++) {
        const struct request *q = s->request[r->outstanding[i]];
        text = run_text(run, "%s%s%s (" SLICE_FMT ")", text ? text : "", text ? ", " : "",
                        run_rpc_id(run, &q->msg->id), SLICE_ARG(q->msg->method));
    }
    return text;
}

static struct finding *on(struct rule_run *run, const struct resumption *r, enum party party)
{
    struct finding *f = finding_add(run, r->session);

    finding_on_resumption(run, f, r);
    f->party = party;
    if (r->outstanding_count > 0)
        f->request_id = r->session->request[r->outstanding[0]]->msg->id;
    return f;
}

static void frame_request(struct rule_run *run, struct finding *f, const struct resumption *r)
{
    finding_frame(run, f, r->session->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
}

static void frame_event(struct rule_run *run, struct finding *f, const struct session *s,
                        uint32_t event, const char *what)
{
    const struct event *e = event_at(s, event);

    if (e)
        finding_frame(run, f, e->at, "%s: event %s", what, run_id(run, e->id));
}

static void frame_head(struct rule_run *run, struct finding *f, const struct resumption *r)
{
    frame_event(run, f, r->session, r->head, "the head of the replay");
}

static bool has(const struct resumption *r, unsigned fault)
{
    return (r->faults & fault) != 0;
}

/* ---- the head ---- */

static void check_below(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_AT_OR_BELOW) || has(r, RF_IGNORED_CURSOR))
        return;
    const struct event *e = event_at(s, r->first_fault_event);
    struct finding *f = on(run, r, PARTY_SERVER);
    f->certainty = r->content_unknown ? CERTAINTY_LIKELY : CERTAINTY_PROVEN;
    if (e)
        f->event_id = e->id;
    finding_message(run, f, "the resumed leg sends %s again%s",
                    has(r, RF_INCLUSIVE) ? "the cursor's own event"
                                         : "events at or before the cursor",
                    has(r, RF_INCLUSIVE) ? " (inclusive replay)" : "");
    frame_request(run, f, r);
    frame_event(run, f, s, r->first_fault_event, "sent again");
    frame_event(run, f, s, r->cursor_event, "the cursor's event as it first came");
}

static void check_ignored(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_IGNORED_CURSOR))
        return;
    struct finding *f = on(run, r, PARTY_SERVER);
    finding_message(run, f, "the server answers the cursor %s %s, as if no cursor had been sent",
                    run_id(run, r->cursor),
                    r->as_fresh_stream ? "with the events of a listening stream"
                                       : "with its history from the first event on");
    frame_request(run, f, r);
    frame_head(run, f, r);
    frame_event(run, f, s, r->cursor_event, "the cursor's event as it first came");
}

/* Progress that went on evenly skips values across this very break. */
static bool progress_agrees(const struct resumption *r)
{
    const struct session *s = r->session;
    const struct leg *l = s->leg[r->leg];

    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        for (uint32_t i = 0; i < e->msg_count; i++) {
            const struct message *m = &e->msg[i];
            if (m->across_break && m->step > 0 &&
                m->progress - m->previous_progress > m->step * 1.5)
                return true;
        }
    }
    return false;
}

static const char *gap_rests_on(const struct resumption *r)
{
    bool seen = false;

    for (uint32_t i = 0; i < r->missing_count; i++)
        seen |= r->missing[i].event != NONE;
    if (seen)
        return "they were on the wire before";
    if (r->previous_leg != NONE && r->missing_count == 1 &&
        slice_eq(r->missing[0].id, r->session->leg[r->previous_leg]->tail_id))
        return "the leg before was cut inside it";
    return r->session->scheme == SCHEME_SPARSE
               ? "one counter serves the session, and these numbers came on none of its streams"
               : "the ids of each stream count by one";
}

static void missing_text(struct rule_run *run, const struct resumption *r, struct finding *f)
{
    const char *list = "";

    for (uint32_t i = 0; i < r->missing_count && i < 8; i++)
        list = run_text(run, "%s%s%s", list, i ? ", " : "", run_id(run, r->missing[i].id));
    if (r->missing_count > 8)
        list = run_text(run, "%s and %u more", list, r->missing_count - 8);
    const char *open = outstanding_text(run, r);
    finding_message(
        run, f,
        "after the cursor %s the replay begins at %s%s; missing, and signalled by nothing: "
        "%s (%s%s)%s%s",
        run_id(run, r->cursor),
        event_at(r->session, r->head) ? run_id(run, event_at(r->session, r->head)->id)
                                      : "a later event",
        r->from_buffer_head ? ", and goes on without a hole from there" : "", list, gap_rests_on(r),
        progress_agrees(r) ? "; the progress values agree" : "",
        open ? "; requests outstanding in that range: " : "", open ? open : "");
}

static void check_gap(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_GAP) || has(r, RF_SIGNALLED))
        return;
    struct finding *f = on(run, r, PARTY_SERVER);
    f->certainty = r->missing_proven || progress_agrees(r) ? CERTAINTY_PROVEN : CERTAINTY_LIKELY;
    f->missing = r->missing;
    f->missing_count = r->missing_count;
    f->has_missing = true;
    missing_text(run, r, f);
    frame_request(run, f, r);
    frame_head(run, f, r);
    frame_event(run, f, s, r->cursor_event, "the cursor's event");
    for (uint32_t k = 0; k < r->missing_count && k < 4; k++)
        frame_event(run, f, s, r->missing[k].event, "came before, and was left out");
}

static void check_signalled(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_SIGNALLED))
        return;
    const struct exch *x = s->exch[r->exch];
    const char *open = outstanding_text(run, r);
    struct finding *f = on(run, r, PARTY_SERVER);
    if (r->signal_event == NONE)
        finding_message(run, f, "the server refused the cursor %s with status %d and said so%s%s",
                        run_id(run, r->cursor), x->status,
                        open ? "; the client must fail the requests " : "", open ? open : "");
    else
        finding_message(run, f, "the server said in the stream that events after %s are gone%s%s",
                        run_id(run, r->cursor), open ? "; the client must fail the requests " : "",
                        open ? open : "");
    frame_request(run, f, r);
    finding_frame(run, f, x->response, "the answer: status %d", x->status);
    frame_event(run, f, s, r->signal_event, "the event that says so");
}

/* ---- nothing came ---- */

static void check_empty(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_EMPTY))
        return;
    const struct exch *x = s->exch[r->exch];
    if (x->end_kind == END_FIN || x->end_kind == END_RST)
        return; /* cut before it could say anything */
    if (x->close_not_known) {
        undecidable_add(run, s, r->stream,
                        "the recording does not tell how the empty leg that "
                        "answered cursor %s ended",
                        run_id(run, r->cursor));
        return;
    }
    const char *open = outstanding_text(run, r);
    struct finding *f = on(run, r, PARTY_SERVER);
    f->severity = open ? SEV_ERROR : SEV_INFO;
    f->subject = open ? NULL : "empty";
    finding_message(run, f,
                    "the reconnect was answered 200, and its leg ended (%s) without any event: "
                    "continuity cannot be proven%s%s",
                    end_kind_text(x->end_kind), open ? "; still outstanding: " : "",
                    open ? open : "");
    frame_request(run, f, r);
    finding_frame(run, f, x->response, "the answer: status %d", x->status);
    finding_frame(run, f, x->end, "the end of the leg");
}

/* A replay takes a moment to begin: what the recording does not cover is not held against it. */
#define STALLED_TIME (5 * NS_PER_SEC)
static void check_stalled(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct leg *l = r->leg == NONE ? NULL : s->leg[r->leg];
    if (!l || !has(r, RF_STALLED) || s->truncated ||
        run->model->end.time - l->begin.time < STALLED_TIME)
        return;
    const char *open = outstanding_text(run, r);
    struct finding *f = on(run, r, PARTY_SERVER);
    f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f, "the reconnect was answered 200 and stays open with %s, no event, %s%s",
                    l->comments ? "keep-alives only" : "no byte at all",
                    open ? "while these requests are outstanding: "
                         : "though newer events than the cursor are known",
                    open ? open : "");
    frame_request(run, f, r);
    finding_frame(run, f, l->begin, "the answer: status %d", s->exch[r->exch]->status);
    finding_frame(run, f, l->last_byte, "the last byte of the leg");
}

/* ---- not of this stream ---- */

static bool is_foreign(const struct resumption *r, const struct event *e, unsigned fault)
{
    const struct session *s = r->session;
    struct brief b;

    if (fault == RF_FOREIGN_SESSION)
        return e->marks & EV_FOREIGN_SESSION;
    if (e->marks & EV_REBOUND)
        return true;
    if (e->first != e->index)
        return event_brief(s, e->first, &b) && b.stream != r->stream;
    return e->index == r->first_fault_event;
}

static void frame_foreign(struct rule_run *run, struct finding *f, const struct session *s,
                          const struct event *e)
{
    const struct session *o = e->other_session ? e->other_session : s;
    const struct event *first =
        e->other_session ? event_at(o, event_by_id(o, e->id)) : event_at(s, e->first);

    finding_frame(run, f, e->at, "sent on the resumed leg: event %s", run_id(run, e->id));
    if (first && first != e)
        finding_frame(run, f, first->at, "... and before on %s %s",
                      e->other_session ? "session" : "another stream of", o->name);
}

static void foreign_finding(struct rule_run *run, const struct resumption *r, unsigned fault)
{
    const struct session *s = r->session;
    const struct leg *l = s->leg[r->leg];
    struct finding *f = on(run, r, PARTY_SERVER);
    const char *list = "";
    uint32_t n = 0;

    frame_request(run, f, r);
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (!e->has_id || !is_foreign(r, e, fault))
            continue;
        if (n == 0)
            f->event_id = e->id;
        if (n < 8)
            list = run_text(run, "%s%s%s", list, n ? ", " : "", run_id(run, e->id));
        if (n++ < 3)
            frame_foreign(run, f, s, e);
    }
    finding_message(run, f,
                    "the leg that resumes the stream of %s carries %u event%s of another %s: %s",
                    run_id(run, r->cursor), n, n == 1 ? "" : "s",
                    fault == RF_FOREIGN_SESSION ? "session" : "stream", list);
}

static void check_foreign_stream(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        if (has(s->resumption[i], RF_FOREIGN_STREAM))
            foreign_finding(run, s->resumption[i], RF_FOREIGN_STREAM);
    }
}

static void check_foreign_session(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        if (has(s->resumption[i], RF_FOREIGN_SESSION))
            foreign_finding(run, s->resumption[i], RF_FOREIGN_SESSION);
    }
}

/* ---- order and content ---- */

/* Did a response, or a message that is no progress, come before another one it used to follow? */
static bool effect_overtook(const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *e = event_at(s, r->first_fault_event);

    if (!e)
        return false;
    const struct leg *l = s->leg[e->leg];
    for (const struct event *p = leg_event_after(s, l, NONE); p && p->index <= e->index;
         p = leg_event_after(s, l, p->index)) {
        for (uint32_t i = 0; i < p->msg_count; i++) {
            if (p->msg[i].kind != RPC_NOTIFICATION)
                return true;
        }
    }
    return false;
}

static void check_reordered(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_REORDERED))
        return;
    struct finding *f = on(run, r, PARTY_SERVER);
    const struct event *e = event_at(s, r->first_fault_event);
    if (effect_overtook(r))
        f->severity = SEV_ERROR;
    if (e)
        f->event_id = e->id;
    finding_message(run, f,
                    "redelivered events come in another order than they first did, or than their "
                    "ids say: %s is the first out of its place",
                    e ? run_id(run, e->id) : "an event");
    frame_request(run, f, r);
    frame_event(run, f, s, r->first_fault_event, "out of its place");
    if (e && e->first != e->index)
        frame_event(run, f, s, e->first, "as it first came");
}

static void check_interleaved(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_LIVE_INTERLEAVED))
        return;
    struct finding *f = on(run, r, PARTY_SERVER);
    const struct event *e = event_at(s, r->first_fault_event);
    if (e)
        f->event_id = e->id;
    finding_message(run, f, "a live event came before the replay had ended: %s follows it",
                    e ? run_id(run, e->id) : "an older event");
    frame_request(run, f, r);
    frame_event(run, f, s, r->first_fault_event, "replayed after a live event");
}

static void check_changed(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_PAYLOAD_CHANGED))
        return;
    const struct leg *l = s->leg[r->leg];
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->same_id == NONE || e->first != e->index)
            continue;
        struct finding *f = on(run, r, PARTY_SERVER);
        f->event = e->index;
        f->event_id = e->id;
        finding_message(run, f, "event %s came again with other content under the same id",
                        run_id(run, e->id));
        frame_request(run, f, r);
        frame_event(run, f, s, e->index, "on the resumed leg");
        frame_event(run, f, s, e->same_id, "as it first came");
    }
}

static void new_id_finding(struct rule_run *run, const struct resumption *r, const struct event *e)
{
    const struct session *s = r->session;
    const struct event *o = event_at(s, e->new_id_of);
    struct finding *f = on(run, r, PARTY_SERVER);
    bool has_rpc_id = e->msg[0].id.type != RPC_ID_NONE;

    f->event_id = e->id;
    f->subject = "new id";
    f->certainty = has_rpc_id ? CERTAINTY_PROVEN : CERTAINTY_LIKELY;
    if (has_rpc_id)
        f->request_id = e->msg[0].id;
    finding_message(
        run, f,
        "a message that the client had already been sent as event %s comes under the new id "
        "%s: no idempotency keyed by event ids can see it",
        run_id(run, o->id), run_id(run, e->id));
    frame_request(run, f, r);
    frame_event(run, f, s, e->index, "under its new id");
    frame_event(run, f, s, o->index, "the same message before");
}

static void check_new_id(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_NEW_ID))
        return;
    const struct leg *l = s->leg[r->leg];
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->new_id_of != NONE && event_renamed(s, e))
            new_id_finding(run, r, e);
    }
}

/* ---- refused ---- */

static bool never_answered(const struct resumption *r)
{
    const struct session *s = r->session;

    for (uint32_t i = 0; i < r->outstanding_count; i++) {
        if (!s->request[r->outstanding[i]]->response)
            return true;
    }
    return false;
}

static void check_refused(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct exch *x = s->exch[r->exch];
    if (!has(r, RF_REFUSED) || x->status == 404)
        return;
    const char *open = outstanding_text(run, r);
    struct finding *f = on(run, r, PARTY_SERVER);
    if (never_answered(r))
        f->severity = SEV_ERROR;
    if (x->status >= 200 && x->status < 300)
        finding_message(run, f, "the reconnect was answered %d with no event stream (%s)%s%s",
                        x->status,
                        x->content_type.len ? (const char *)x->content_type.ptr : "no content type",
                        open ? "; outstanding: " : "", open ? open : "");
    else
        finding_message(
            run, f,
            "the reconnect was refused with status %d, which says neither that the cursor "
            "is gone nor that the session is%s%s",
            x->status, open ? "; outstanding: " : "", open ? open : "");
    frame_request(run, f, r);
    finding_frame(run, f, x->response, "the answer: status %d", x->status);
}

static const struct exch *accepted_after(const struct session *s, int64_t t)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->first.time > t && x->status >= 200 && x->status < 300 && x->session_id.len > 0)
            return x;
    }
    return NULL;
}

static void check_refused_404(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct exch *x = s->exch[r->exch];
    const struct exch *later = x->status == 404 ? accepted_after(s, x->first.time) : NULL;
    if (!later || x->session_id.len == 0)
        return;
    struct finding *f = on(run, r, PARTY_SERVER);
    finding_message(
        run, f,
        "the reconnect was answered 404, which tells the client that its session is gone; "
        "the same session id is accepted later");
    frame_request(run, f, r);
    finding_frame(run, f, x->response, "the answer: status 404");
    finding_frame(run, f, later->response, "the session id is accepted: status %d", later->status);
}

/* ---- the client's side ---- */

static bool goes_on_later(const struct session *s, uint32_t i)
{
    const struct resumption *r = s->resumption[i];

    for (uint32_t k = i + 1; k < s->resumption_count; k++) {
        const struct resumption *later = s->resumption[k];
        if (later->repeats > r->repeats && slice_eq(later->cursor, r->cursor))
            return true;
    }
    return false;
}

static void check_loop(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        if (r->repeats < run->limit->resume_loop || goes_on_later(s, i))
            continue;
        struct finding *f = on(run, r, PARTY_CLIENT);
        uint32_t shown = 0;
        const struct resumption *first = NULL;
        for (uint32_t k = 0; k <= i; k++) {
            const struct resumption *p = s->resumption[k];
            if (!slice_eq(p->cursor, r->cursor))
                continue;
            if (p->repeats == 1)
                first = p;
            if (shown++ < 3 || k == i)
                frame_request(run, f, p);
        }
        int64_t span = first ? s->exch[r->exch]->first.time - s->exch[first->exch]->first.time : 0;
        finding_message(run, f, "%u reconnects with the same cursor %s and no progress, within %s",
                        r->repeats, run_id(run, r->cursor), run_seconds(run, span));
    }
}

static bool is_broken_by_server(const struct leg *l, bool clean_too)
{
    return l->ended &&
           (l->end == END_FIN || l->end == END_RST || (clean_too && l->end == END_COMPLETE));
}

static bool any_id(const struct session *s, const struct stream *st)
{
    for (uint32_t i = 0; i < st->leg_count; i++) {
        if (s->leg[st->leg[i]]->last_id != NONE)
            return true;
    }
    return false;
}

/* The stream's first request that never got an answer, nor was cancelled before t. */
static const struct request *left_open(const struct session *s, const struct stream *st, int64_t t)
{
    const struct request *q;

    for (uint32_t i = 0; (q = stream_request(s, st, &i));) {
        if (!q->response && !q->http_error && request_outstanding(s, q, t))
            return q;
    }
    return NULL;
}

/* What became of a session's streams: one look at its resumptions. */
struct comebacks {
    int64_t *resumed; /* of each stream: when it was resumed last; 0: never */
    bool *failed;     /* of each leg: it resumed the stream, and had to be taken for its end */
};

static struct comebacks comebacks_of(const struct session *s)
{
    struct comebacks c = { mem_alloc((s->stream_count + 1) * sizeof(*c.resumed)),
                           mem_alloc((s->leg_count + 1) * sizeof(*c.failed)) };

    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        int64_t t = s->exch[r->exch]->first.time;
        if (r->stream != NONE && t > c.resumed[r->stream])
            c.resumed[r->stream] = t;
        if (r->leg != NONE && r->verdict == VERDICT_FAIL)
            c.failed[r->leg] = true;
    }
    return c;
}

static void comebacks_release(struct comebacks *c)
{
    free(c->resumed);
    free(c->failed);
}

/* The same call by the same client address, in whatever session. */
static uint64_t call_of(const struct session *s, const struct request *q)
{
    uint64_t who = hash_bytes((struct slice){ s->client.addr, sizeof(s->client.addr) });

    return hash_mix(hash_mix(who, hash_bytes(q->msg->method)), q->msg->body_digest);
}

static struct sightings calls_of(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; k < s->request_count; k++) {
            const struct request *q = s->request[k];
            if (!q->from_server)
                sightings_add(&all, (struct sighting){ call_of(s, q), q->at.time, s,
                                                       s->exch[q->exch], false });
        }
    }
    sightings_sort(&all);
    return all;
}

/* A hole on any leg of the stream may hold the response. */
static bool any_gap(const struct session *s, const struct stream *st)
{
    for (uint32_t i = 0; i < st->leg_count; i++) {
        if (s->leg[st->leg[i]]->gaps > 0)
            return true;
    }
    return false;
}

/* A stream of a POST that the server (or the path) ended before the response. */
static const struct leg *broken_leg(const struct session *s, const struct stream *st,
                                    bool clean_too)
{
    const struct leg *l;

    if (st->kind != STREAM_POST || st->leg_count == 0)
        return NULL;
    l = s->leg[st->leg[st->leg_count - 1]];
    const struct exch *x = leg_exch(s, l);
    if (!is_broken_by_server(l, clean_too) || any_gap(s, st) || x->truncated_capture ||
        x->era == ERA_D || x->era == ERA_L ||
        (x->rflags & RECF_HAR && x->close_not_known && l->end == END_COMPLETE))
        return NULL;
    return l;
}

/* A client that reconnects does so soon: what the recording does not cover is not held against it.
 */
#define COME_BACK (5 * NS_PER_SEC)
static int64_t time_to_come_back(const struct stream *st)
{
    int64_t wait = st->retry > 0 ? 2 * st->retry * NS_PER_MS : 0;

    return wait > COME_BACK ? wait : COME_BACK;
}

static void missing_finding(struct rule_run *run, const struct session *s, const struct leg *l,
                            const struct request *q)
{
    const struct event *e = event_at(s, l->last_id);
    struct finding *f = finding_add(run, s);

    finding_on_request(run, f, q);
    finding_on_leg(run, f, l);
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "the stream of request %s (" SLICE_FMT ") was %s before its response and could "
                    "have been resumed%s%s; the client never reconnected, cancelled or repeated it",
                    run_rpc_id(run, &q->msg->id), SLICE_ARG(q->msg->method),
                    l->end == END_COMPLETE ? "closed by the server" : "cut", e ? " from " : "",
                    e ? run_id(run, e->id) : "");
    finding_frame(run, f, q->at, "the request");
    finding_frame(run, f, l->end_at, "the end of the stream's last leg (%s)",
                  end_kind_text(l->end));
    if (e)
        finding_frame(run, f, e->at, "the last id that was sent");
}

static void missing_in(struct rule_run *run, const struct session *s, const struct sightings *calls)
{
    struct comebacks c = comebacks_of(s);

    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct stream *st = s->stream[i];
        const struct leg *l = broken_leg(s, st, true);
        const struct request *q = l && any_id(s, st) ? left_open(s, st, INT64_MAX) : NULL;
        if (!q || s->truncated || s->replaced_by || c.failed[l->index] ||
            (c.resumed[i] != 0 && c.resumed[i] >= l->end_at.time) ||
            sightings_after(calls, call_of(s, q), q->at.time))
            continue;
        if (run->model->end.time - l->end_at.time >= time_to_come_back(st))
            missing_finding(run, s, l, q);
    }
    comebacks_release(&c);
}

static void check_missing(struct rule_run *run, const struct model *m)
{
    struct sightings calls = calls_of(m);

    for (uint32_t i = 0; i < m->session_count; i++)
        missing_in(run, m->session[i], &calls);
    sightings_release(&calls);
}

static void check_impossible(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct stream *st = s->stream[i];
        const struct leg *l = broken_leg(s, st, false);
        const struct request *q = l && !any_id(s, st) ? left_open(s, st, l->end_at.time) : NULL;
        if (!q)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, q);
        finding_on_leg(run, f, l);
        f->party = l->end == END_RST ? PARTY_PATH : PARTY_SERVER;
        finding_message(
            run, f,
            "the stream of request %s (" SLICE_FMT ") was cut (%s) before any event id was "
            "sent: nothing could be resumed",
            run_rpc_id(run, &q->msg->id), SLICE_ARG(q->msg->method), end_kind_text(l->end));
        finding_frame(run, f, q->at, "the request");
        finding_frame(run, f, l->end_at, "the cut");
    }
}

/* The same cursor, sent again, was honoured after all: it was not dead. */
static bool honoured_later(const struct resumption *r)
{
    const struct session *s = r->session;

    for (uint32_t i = s->resumption_count; i-- > 0 && s->resumption[i] != r;) {
        if (s->resumption[i]->verdict == VERDICT_CONTINUE &&
            slice_eq(s->resumption[i]->cursor, r->cursor))
            return true;
    }
    return false;
}

/* After a signalled gap, failing what was outstanding and going on with other requests is safe. */
static bool went_on_unsafely(const struct resumption *r)
{
    if (r->verdict != VERDICT_FAIL || r->did != DID_CONTINUED)
        return false;
    if (r->cursor_repeated && honoured_later(r))
        return false;
    return !has(r, RF_SIGNALLED) || r->cursor_repeated;
}

static void check_unsafe(struct rule_run *run, const struct resumption *r)
{
    if (!went_on_unsafely(r))
        return;
    struct finding *f = on(run, r, PARTY_CLIENT);
    if (r->did_entry == NONE && !has(r, RF_GAP | RF_AT_OR_BELOW | RF_FOREIGN_STREAM))
        f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f, "the client went on after a resumption that should have failed: %s",
                    r->explanation);
    finding_frame(run, f, r->should_fail_at, "here the session should have been failed");
    frame_request(run, f, r);
    finding_frame(run, f, r->did_at, "the client went on");
    if (r->did_entry != NONE)
        finding_log(run, f, r->did_entry, "a message of this leg is processed");
}

static void check_unproven(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (!has(r, RF_UNPROVEN))
        return;
    struct finding *f = on(run, r, PARTY_CLIENT);
    f->severity = run->model->opt.strict ? SEV_WARNING : SEV_INFO;
    finding_message(run, f, "nothing proves that the client can take a message twice here: %s",
                    s->has_log
                        ? "its log shows neither cursor and effect in one transaction nor "
                          "idempotent handlers"
                        : "there is no dispatch log, and no handler is known to be idempotent");
    frame_request(run, f, r);
    frame_head(run, f, r);
}

static const struct rule rules[] = {
    {
        .id = "replay-at-or-below-cursor",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The resumed leg sends the cursor's own event, or older ones, again.",
        .why = "The client has had these events: each is a duplicate effect unless its handler is "
               "idempotent.",
        .advice = "Server: replay what comes after Last-Event-ID, not from it. Client: treat a "
                  "head at or "
                  "below the cursor as a failed resumption.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: the server may "
                  "replay what would have come after the last event id, so not that event itself",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------------ id: 4, id: 5 ---|   delivered\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   \"after 5\"\n"
                       "  |<------------------------- id: 5 ---|   again: inclusive replay\n"
                       "  |<------------------------- id: 6 ---|\n",
            .needs = "The event of the cursor as it first came, and the same id with the same "
                     "content on the resumed leg. Where the first content is no longer remembered "
                     "the finding is likely.",
            .blind = "A server that sends the cursor's own event again on purpose, as a sign that "
                     "it found it: no revision provides for that. Priming events that are new do "
                     "not count.",
            .client = "Drop events at or below the cursor before they reach a handler, and treat "
                      "a head below it as a failed resumption. If they were handled already, look "
                      "at their effects now.",
            .server = "Start one behind the position that was looked up. Typical causes: "
                      "skip(index) where index + 1 is meant, or a comparison with >= in place of "
                      ">.",
            .known = "rust-sdk (rmcp) 4a738b9: its session cache starts at the event of the "
                     "cursor (read in source).",
        },
        .resumption = check_below,
    },
    {
        .id = "replay-gap",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The replay begins beyond the successor of the cursor, and nothing said so.",
        .why =
            "The missing events will never come; requests that they answered cannot be resolved.",
        .advice = "Server: refuse a cursor older than the buffer, with an error that says so. "
                  "Client: fail "
                  "the requests that were outstanding.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: replay starts after "
                  "the last event id. Reasoning: a head beyond the successor of the cursor leaves "
                  "out what lies between, and retention is not specified",
        .explain = {
            .picture = "client                              server\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |    (cut; 6 and 7 are produced)     |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------- 200, id: 8 {progress} ---|   no 6, no 7, no word of it\n",
            .needs = "Missing events that are known: seen earlier on the wire, begun in the cut "
                     "tail of the leg before, or following from an id scheme that the recording "
                     "itself proves (a counter).",
            .blind = "With opaque ids (UUID and the like) a gap of events that were never on the "
                     "wire leaves no trace in the ids; progress-jump and response-lost may still "
                     "show it. With one counter over several streams it is proven only where "
                     "every other stream is wholly recorded.",
            .client = "Fail the requests that were outstanding at the reconnect, tell the "
                      "application which ids are missing, and drop the cursor. Do not let the "
                      "stream run on.",
            .server = "Keep events at least as long as clients need to come back. When the cursor "
                      "is older than the oldest event kept, answer 400 and say so; do not begin "
                      "at the oldest one.",
            .path = "If the server's own log says that the missing events were sent, something on "
                    "the way lost them: capture both sides of the proxy.",
            .known = "rust-sdk (rmcp) 4a738b9: keeps 16 events and begins at the oldest one kept. "
                     "mcp-lite 0.10.0: likewise for evicted events (both read in source).",
        },
        .resumption = check_gap,
    },
    {
        .id = "replay-gap-signalled",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The server said that it cannot honour the cursor.",
        .why = "What came after the cursor is lost, openly: the requests named must be failed.",
        .advice =
            "Client: fail the outstanding requests of the stream, then go on without the cursor. "
            "Server: keep events longer, if this happens often.",
        .source = "MCP 2025-11-25 leaves open what to answer an event id that cannot be resumed "
                  "(modelcontextprotocol#1939). Reasoning: a loss that is said can be handled",
        .explain = {
            .picture = "client                                 server\n"
                       "  |<----------------- id: 5 {progress} ---|\n"
                       "  |     (the leg is cut, time passes)     |\n"
                       "  |-- GET, Last-Event-ID: 5 ------------->|\n"
                       "  |<- 400, unknown or expired event id ---|   openly: fail call 1\n",
            .needs = "A 4xx whose body speaks of the event id or the cursor, or an event on the "
                     "new leg whose name says gap, expired, truncated, reset, overflow or lost, "
                     "before the replay begins.",
            .blind = "What was lost: the server says that something is, not what. A refusal "
                     "without such words is replay-refused.",
            .client = "Fail the requests named in the finding; look up the effect of each before "
                      "repeating it. Then open a new stream without the cursor: the session "
                      "itself is still good.",
            .server = "This is the right answer. If it comes often, keep events longer than the "
                      "longest usual break, and do not lose them on a restart.",
            .known = "Servers that refuse with 400: typescript-sdk (with a store that looks "
                     "streams up), go-sdk, csharp-sdk, swift-sdk, mcp-go; mcp_dart refuses more "
                     "than 1000 events with 413 (read in source).",
        },
        .resumption = check_signalled,
    },
    {
        .id = "replay-empty",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The reconnect was answered 200 and ended without an event.",
        .why =
            "A 200 hides that nothing was resumed: a client that waits for the response waits for "
            "ever.",
        .advice = "Server: refuse a cursor that cannot be honoured with an error status. Client: "
                  "treat an "
                  "empty replay as lost while a request is outstanding.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery (replay is optional); "
                  "WHATWG HTML 9.2.2: a clean end of a 200 means reconnect, so it cannot say "
                  "\"gone\"",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------ 200, end, no event ---|   where is the response?\n",
            .needs = "The reconnect, its status 200, and the whole leg up to its end. Error where "
                     "a request of the stream is outstanding, else info.",
            .blind = "Whether the server had nothing, or had forgotten the stream. When all "
                     "requests of a POST stream were answered there is nothing to replay, and no "
                     "finding; on a listening stream it cannot be told. A leg that was cut before "
                     "its first byte does not count.",
            .client = "Count an empty 200 as an attempt without progress; after a few, fail the "
                      "request as \"outcome unknown\".",
            .server = "When the cursor is not found, say so with 400; when the call is still "
                      "running, keep the leg open and send keep-alives. An empty 200 is read as a "
                      "clean end, and clients come back for ever.",
            .path = "Where the server's log shows a running call, look for a gateway that ends "
                    "idle responses.",
            .known = "python-sdk 57394b0 and rust-sdk (rmcp) 4a738b9: 200 with an empty body for "
                     "an unknown id. kotlin-sdk a06d699: decides on 400 or 409 after the 200 is "
                     "out (all read in source).",
        },
        .resumption = check_empty,
    },
    {
        .id = "replay-stalled",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The reconnect was answered 200 and stays open without an event.",
        .why = "The stream looks alive and may be bound to nothing: what is outstanding may never "
               "come.",
        .advice =
            "Server: register the resumed connection under its stream, or refuse. Client: give the "
            "resumed leg a limit of its own.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: a resumed leg "
                  "continues the stream that was cut; typescript-sdk#943, #2560",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------------------------- 200 ---|\n"
                       "  |<------------------- : keepalive ---|   and nothing else, for ever\n",
            .needs = "A resumed leg still open at the end of the recording, or at least without "
                     "an event, while a request is outstanding or newer events than the cursor "
                     "are known.",
            .blind = "A call that is simply slow: the server may have nothing to send yet. The "
                     "finding is likely, and it gets stronger the longer the recording goes on.",
            .client = "Give the resumed leg its own limit (a multiple of the call's usual time), "
                      "then treat the outcome as unknown. Keep-alives alone are no sign that the "
                      "stream is bound to your request.",
            .server = "Register the new connection under the stream of the cursor, so that live "
                      "events go to it, or refuse. Check how the store derives the stream from an "
                      "event id.",
            .known = "typescript-sdk's example event store and server-everything 2026.8.31: an "
                     "unknown id or a listening stream's own id gives an open, silent stream "
                     "(executed). java-sdk 305e4cb, @hono/mcp 0.3.2, mcp-lite 0.10.0 and "
                     "Cloudflare agents a0e134b: for unknown ids (read in source).",
        },
        .resumption = check_stalled,
    },
    {
        .id = "replay-foreign-stream",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The resumed leg carries events of another stream of the session.",
        .why = "Messages are delivered twice or to the wrong waiter; some clients take a foreign "
               "response "
               "for the one they wait for.",
        .advice = "Server: look up the cursor's stream and replay that stream alone.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: the server MUST NOT "
                  "replay messages that would have gone to another stream",
        .explain = {
            .picture = "client                               server\n"
                       "  |<---- stream A: id: a3 {progress} ---|\n"
                       "  |<-- stream B: id: b7 {response 2} ---|\n"
                       "  |        (A is cut, B is done)        |\n"
                       "  |-- GET, Last-Event-ID: a3 ---------->|\n"
                       "  |<- a4 {progress}, b7 {response 2} ---|   b7 is not of A\n",
            .needs = "The foreign event as it first came on its own stream, or a response to a "
                     "request that another stream carried.",
            .blind = "An event that was never on the wire before and is no response: nothing "
                     "shows which stream it was meant for.",
            .client = "Check that a response on a resumed leg answers the request of that stream, "
                      "by its id, before handing it over. A client that puts its own id into "
                      "whatever response comes will return B's result as A's.",
            .server = "Store the stream with every event, look up the stream of the cursor, and "
                      "replay that one alone.",
            .known = "server-everything 2026.8.31: replays all later events of the session "
                     "(executed).",
        },
        .check = check_foreign_stream,
    },
    {
        .id = "replay-foreign-session",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The resumed leg carries events that were delivered to another session.",
        .why = "One session's data leaks to another client: a security incident.",
        .advice =
            "Server: key the event store by session as well as by stream; find out who received "
            "whose messages.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: ids and replay are "
                  "per stream of one session; GHSA-84j6-jc92-77jm",
        .explain = {
            .picture = "client 1                    server                    client 2\n"
                       "  |-- session S: call ----->|                            |\n"
                       "  |<-- id: 7 {response} ----|                            |\n"
                       "  |                         |<--- GET, session T, id 6 --|\n"
                       "  |                         |-- id: 7 {response} ------->|   of client 1\n",
            .needs = "Both sessions in one recording: the event under its own session, and its "
                     "content again on a resumed leg of another.",
            .blind = "A leak to a session that the recording does not hold, and messages whose "
                     "content is the same in both sessions for innocent reasons (equal ids and "
                     "equal content are asked for).",
            .client = "Stop using what came on that leg and report it.",
            .server = "Treat it as a breach: stop replay, find out from logs who received what, "
                      "then key the store by session and stream. Stream names such as \"1\" or "
                      "\"_GET_stream\" repeat in every session.",
            .path = "A cache that stores event streams does the same: it must not.",
            .known = "python-sdk 57394b0 hands one event store to all sessions and names streams "
                     "by the request id, and fastmcp b14b137 likewise: stores can mix sessions "
                     "(read in source).",
        },
        .check = check_foreign_session,
    },
    {
        .id = "replay-reordered",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "Redelivered events come in another order than they were first sent.",
        .why = "A response or an effect may overtake what it depends on.",
        .advice = "Server: replay in the order of storing; do not sort by id text.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: ids are a cursor, a "
                  "position within one stream. Reasoning: a position means something only while "
                  "the order stays the same",
        .explain = {
            .picture = "client                              server\n"
                       "  |<---- 6 {progress}, 7 {progress} ---|   as first sent\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<-------------- id: 7 {progress} ---|\n"
                       "  |<-------------- id: 6 {progress} ---|   too late\n",
            .needs = "Two or more redelivered events that were on the wire before, or ids of a "
                     "scheme that the recording proves to be ordered.",
            .blind = "The order of events that were never sent before, when their ids are opaque; "
                     "progress that goes back may still show it.",
            .client = "Stop at the first event out of place: a cursor stored now skips what comes "
                      "late. Do not sort by id.",
            .server = "Replay in the order in which events were stored (a sequence number of the "
                      "store). Sorting by id text breaks when several events share a millisecond "
                      "or when 10 sorts before 9.",
            .known = "typescript-sdk 1.32.2 and v2, example InMemoryEventStore: sorts ids as "
                     "text, out of order in 40 of 40 runs (executed).",
        },
        .resumption = check_reordered,
    },
    {
        .id = "replay-live-interleaved",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A live event precedes the end of the replay.",
        .why = "A client that stores the live event's id as its cursor will never see the rest if "
               "the leg "
               "breaks now.",
        .advice = "Server: hold live events back until the replay has been written.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: a cursor is one "
                  "position. Reasoning: with 9 before 7 no single id says what the client has",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------------------- id: 6 ---|   replay\n"
                       "  |<------------------------- id: 9 ---|   live\n"
                       "  |<------------------ id: 7, id: 8 ---|   replay goes on\n",
            .needs = "A redelivered event, seen on the wire before, behind an event that was "
                     "never seen.",
            .blind = "When none of the replayed events had been on the wire before, replay and "
                     "live cannot be told apart.",
            .client = "Until the replay has caught up, do not store the id of an event that came "
                      "before older ones.",
            .server = "Take the lock of the stream for replay and for live events alike, or queue "
                      "live events until the replay is written.",
        },
        .resumption = check_interleaved,
    },
    {
        .id = "replay-payload-changed",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "An event comes again with other content under the same id.",
        .why = "Which content took effect depends on which copy the client read.",
        .advice = "Server: store events as sent and replay the stored bytes.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: an id is globally "
                  "unique in the session, so it names one message",
        .explain = {
            .picture = "client                              server\n"
                       "  |<----------- id: 6 {\"total\": 10} ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<----------- id: 6 {\"total\": 12} ---|   which one took effect?\n",
            .needs = "Both copies of the event with their payloads, in one session. Order of "
                     "keys, white space and the empty data of priming events do not count as "
                     "changes.",
            .blind = "Which content is right. A store that was rebuilt from a database (new time "
                     "stamps, new numbers) looks the same as a wrong event.",
            .client = "Keep the digest of what was handled under each id; on a difference fail "
                      "the stream, since one of the two was acted on.",
            .server = "Store the bytes that were sent and replay those; do not build the message "
                      "again.",
            .path = "A gateway that rewrites bodies must do so in the same way each time.",
        },
        .resumption = check_changed,
    },
    {
        .id = "replay-new-id",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A message that was already delivered comes again under a new event id.",
        .why = "No idempotency keyed by event ids can see the duplicate.",
        .advice =
            "Server: keep the id of a replayed event. Client: also recognise responses by their "
            "JSON-RPC id.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: whether a replayed "
                  "event keeps its id is not said; unique ids that serve as a cursor imply it",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------ id: 6 {response 1} ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------ id: 9 {response 1} ---|   the same, under a new id\n",
            .needs = "The same message on the stream before and on the resumed leg, under two "
                     "ids. Proven for messages with a JSON-RPC id; likely for notifications, "
                     "where two or more in a row must repeat.",
            .blind = "A single notification that comes again: two equal notifications are legal.",
            .client = "Recognise responses and server requests by their JSON-RPC id as well as by "
                      "the event id; a set of event ids does not catch this.",
            .server = "Store the id with the event, and write that id again on replay.",
        },
        .resumption = check_new_id,
    },
    {
        .id = "replay-refused",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The reconnect was refused by a status that says neither gap nor session end.",
        .why = "The client cannot tell whether to retry, to fail its requests, or to start over.",
        .advice =
            "Server: answer an unusable cursor with a 4xx and a body that says so; release a dead "
            "connection before refusing its successor.",
        .source = "MCP 2025-11-25, Transports > Listening for Messages (event stream or 405); "
                  "WHATWG HTML 9.2.2: any status but 200 fails the stream, and browsers then "
                  "never reconnect",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<---- 409, or 405, 500, 200 JSON ---|   retry? fail? start over?\n",
            .needs = "The reconnect, its status and content type. Error where an outstanding "
                     "request never gets its response later.",
            .blind = "Why: 409 is mostly a server that still holds the old connection; 405 a "
                     "server or a gateway without streams by GET; 5xx anything. 429 and 503 ask "
                     "for patience and are not counted.",
            .client = "409: wait and try again with the same cursor, a few times. 405 and other "
                      "4xx: fail what is outstanding. 5xx: retry with back-off, then fail.",
            .server = "Let the reconnect with a cursor take over from the connection it replaces, "
                      "since the server often learns last that it is dead. Send 400 with a reason "
                      "for a cursor that cannot be used.",
            .path = "A gateway that keeps the upstream connection open after the client has gone "
                    "causes the 409: close it too. 405 may be yours: allow GET.",
            .known = "typescript-sdk with a store that looks streams up, go-sdk 3d6450f, mcp-lite "
                     "0.10.0: 409 while the old connection is held; mcp-lite: 500 for a malformed "
                     "id (read in source).",
        },
        .resumption = check_refused,
    },
    {
        .id = "replay-refused-404-live-session",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The reconnect was answered 404 although the session lives.",
        .why =
            "404 means that the session is gone: a conforming client drops a live session for it.",
        .advice = "Server: answer a cursor that cannot be found with 400, never with 404.",
        .source = "MCP 2025-11-25, Transports > Session Management: 404 to a session id means "
                  "that it has ended, and the client must start a new session",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, session S, cursor 5 ------->|\n"
                       "  |<--------------------------- 404 ---|   means: session S is gone\n"
                       "  |-- POST, session S ---------------->|\n"
                       "  |<--------------------------- 200 ---|   it was not\n",
            .needs = "The 404 to the reconnect, and a later request with the same session id that "
                     "is accepted.",
            .blind = "A client that obeys the 404 at once never shows that the session lives; "
                     "then it is session-lost.",
            .client = "On a 404 to a cursor, one POST (a ping) with the session id tells which of "
                      "the two is gone, before the session is thrown away.",
            .server = "Use 400 for a cursor that is not found; 404 is taken for the end of the "
                      "session by conforming clients.",
            .path = "Replicas that do not share sessions answer 404 in turn: see "
                    "session-flapping.",
            .known = "mcp_dart a2820b4: 404 \"Event ID not found\" (read in source).",
        },
        .resumption = check_refused_404,
    },
    {
        .id = "replay-ignored-cursor",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The server answers with its whole history, as if no cursor had been sent.",
        .why = "Everything is delivered a second time.",
        .advice = "Server: read Last-Event-ID (proxies must pass it on) and begin after it.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: what is replayed "
                  "comes after the last event id",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------- id: 1, 2, 3, 4, 5 ---|   delivered\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<---------- id: 1, 2, 3, 4, 5, 6 ---|   from the beginning\n",
            .needs = "The stream's first events and the cursor's, as they first came, and the "
                     "same from the first on again on the resumed leg. Or: a request's stream "
                     "continued with ids of the listening stream's make.",
            .blind = "On short streams (one or two events) the whole history and an inclusive "
                     "replay look alike; then replay-at-or-below-cursor is given.",
            .client = "Drop what is at or below the cursor. If handlers ran again, look at their "
                      "effects.",
            .server = "Check that the header arrives and is read, whatever its case, and that an "
                      "id of an unexpected form is refused instead of taken for \"no cursor\".",
            .path = "Proxies must pass Last-Event-ID on: compare both sides of yours.",
            .known = "rust-sdk (rmcp) 4a738b9 without an event store: from index 0. Cloudflare "
                     "agents a0e134b: an id without a colon opens a new listening stream (both "
                     "read in source).",
        },
        .resumption = check_ignored,
    },
    {
        .id = "resume-loop",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "Reconnect after reconnect with the same cursor and no progress.",
        .why = "The client waits for what will not come, and loads the server meanwhile.",
        .advice = "Client: count attempts without progress, back off, and fail the stream. Server: "
                  "refuse "
                  "what cannot be resumed, rather than 200 and an empty body.",
        .source = "WHATWG HTML 9.2.3 (back-off is allowed), 9.2.2 (a clean end means reconnect); "
                  "python-sdk#2393, #3257, rust-sdk#958. Reasoning: the same cursor with no event "
                  "is no progress",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------ 200, end, no event ---|\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------ 200, end, no event ---|\n"
                       "  |   ... every second, without end    |\n",
            .needs = "Five (a threshold of the policy) or more reconnects with one cursor, none "
                     "of which brought a newer event.",
            .blind = "A call that takes hours with a server that polls on purpose looks alike: "
                     "its legs end cleanly after a retry field. Raise the threshold for such "
                     "servers.",
            .client = "Count attempts without a new id, also those answered 200; back off, and "
                      "after a few fail the request as \"outcome unknown\". A clean end must not "
                      "reset the counter.",
            .server = "End a stream that has nothing more with its response; refuse a cursor that "
                      "cannot be resumed. Send retry with a sensible time while a call is "
                      "running.",
            .path = "A gateway that ends idle responses after a second or two drives this loop.",
            .known = "python-sdk 57394b0: a clean end resets its count of attempts (read in "
                     "source).",
        },
        .check = check_loop,
    },
    {
        .id = "resume-missing",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A resumable stream broke before its response, and the client never came back.",
        .why = "The response may exist on the server and is never fetched.",
        .advice =
            "Client: resume by GET with the last id after any break, a clean close by the server "
            "included; else cancel the request.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server (after an early "
                  "close the client should poll by reconnecting) and Resumability and Redelivery; "
                  "php-sdk#327, zed#56775",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |    (cut, or closed for polling)    |\n"
                       "  |    no GET, no cancel, no repeat    |\n"
                       "  |  (response 1 waits at the server)  |\n",
            .needs = "A POST stream that gave an id and was ended by the server or the path "
                     "before the response, and at least five seconds (or twice the retry time) of "
                     "recording after it.",
            .blind = "A reconnect over a connection that is not in the recording, and a client "
                     "that was shut down at that moment. Streams that the client gave up itself "
                     "do not count.",
            .client = "Reconnect by GET with the last id after every end that came before the "
                      "response, a clean one included: in 2025-11-25 a server may close and be "
                      "polled. If the call is not wanted any more, send notifications/cancelled.",
            .server = "Keep the finished response for a while; the call was executed.",
            .path = "Find out who cut: an idle limit shorter than the server's keep-alive is the "
                    "usual cause.",
            .known = "php-sdk c882401 has no resumption on either side (read in source).",
        },
        .whole = check_missing,
    },
    {
        .id = "resume-impossible",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A stream with an open request was cut before any event id was sent.",
        .why = "There is no cursor to come back with: the response is lost with the connection.",
        .advice = "Server: send an event with an id first (2025-11-25: the priming event). Path: "
                  "keep idle "
                  "connections open longer, or send keep-alives.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server: the server should "
                  "begin with an event that has an id and empty data, to prime the client for "
                  "reconnecting. Before 2025-11-25: ids are optional",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<--------------------------- 200 ---|\n"
                       "  |<----- {progress}, without an id ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |    no cursor to come back with     |   call 1 is lost\n",
            .needs = "A POST stream cut by FIN or RST with its request unanswered, no id on any "
                     "of its legs, and the leg whole in the recording.",
            .blind = "Whether the server would have sent an id a moment later. A clean close "
                     "before any id is close-before-id (profile conformance).",
            .client = "Nothing can be resumed: treat the outcome as unknown, and look up the "
                      "effect before repeating a call that is not idempotent.",
            .server = "Send an event with an id and empty data as soon as the stream opens, and "
                      "an id with every message; without an event store use keep-alives, or "
                      "answer short calls by JSON.",
            .path = "Raise the idle limit above the longest silence, or make the server's "
                    "keep-alives shorter than it.",
            .known = "php-sdk c882401 and ruby-sdk fcb1ac9: their servers send no ids (read in "
                     "source).",
        },
        .check = check_impossible,
    },
    {
        .id = "resume-when-unsafe",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The client went on after a resumption that could not be continued safely.",
        .why = "From the frame named on, the client's state no longer follows from what the server "
               "sent.",
        .advice = "Client: compare the head of the replay with the cursor before dispatching "
                  "anything, and "
                  "fail the stream's requests when it does not fit.",
        .source = "Reasoning: the cursor, the replay head and the dispatch log are three claims "
                  "about one stream; where they disagree no later message can be trusted to "
                  "follow. MCP 2025-11-25, Transports > Resumability and Redelivery",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------------------- id: 8 ---|   gap: fail the session here\n"
                       "  |     client handles 8, stores 8     |\n"
                       "  |-- POST call 2 -------------------->|   goes on as if whole\n",
            .needs = "A resumption whose verdict is fail, and what the client did then: by the "
                     "log, a message of that leg processed; without a log, that it answered one, "
                     "or let the stream run on.",
            .blind = "Without a log it cannot see what the application was told: a client may "
                     "have reported the loss and still read the stream. After a signalled gap "
                     "going on is safe and not reported.",
            .client = "Judge the head of the replay before dispatching it: the successor of the "
                      "cursor goes on; anything else fails the stream, its outstanding requests "
                      "and its cursor. The frame named is where that was due.",
            .server = "Repair the fault that the verdict names (see the other findings of this "
                      "resumption).",
        },
        .resumption = check_unsafe,
    },
    {
        .id = "resume-unproven",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "Neither atomicity nor idempotent handlers are proven for this resumption.",
        .why = "A crash between effect and cursor would go unnoticed.",
        .advice = "Client: store cursor and effect in one transaction, or make handlers idempotent "
                  "and say "
                  "so (--idempotent, the log's header, tool annotations).",
        .source = "Reasoning: the cursor is the client's claim about what reached a socket; "
                  "nothing in any revision ties it to the effect of the message",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 6 {message} ---|   effect, then a crash?\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------------- id: 6 {message} ---|   effect a second time?\n",
            .needs = "A resumption with a replay. Proof would be: cursor and commit under one txn "
                     "in the dispatch log, atomic_cursor or idempotent_handlers in its header, "
                     "--idempotent, or a tool annotated idempotent or read-only.",
            .blind = "It says that proof is missing, not that something went wrong. An annotation "
                     "is the server's claim, not a proof.",
            .client = "Store cursor and effect in one transaction; or make the handler idempotent "
                      "and declare it, so that the audit can tell. Record a dispatch log with "
                      "txn.",
            .server = "Annotate tools with idempotentHint or readOnlyHint where it is true.",
        },
        .resumption = check_unproven,
    },
};

const struct rule_family rules_replay = RULE_FAMILY("replay", "The server's replay", rules);
