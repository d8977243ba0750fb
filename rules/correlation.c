/* correlation.c - RULES.md section 4: which request each message answered, and how often. */
#include "rule.h"

#include <stdlib.h>

#define ABC (ERA_A | ERA_B | ERA_C)
#define LC  (ERA_L | ABC)

static const struct leg *leg_of(const struct session *s, const struct message *m)
{
    const struct event *e = m->event == NONE ? NULL : event_at(s, m->event);

    return e ? s->leg[e->leg] : NULL;
}

static enum era era_of_message(const struct session *s, const struct message *m)
{
    return s->exch[m->exch]->era;
}

static bool ambiguous(const struct session *s, const struct message *m)
{
    const struct event *e = m->event == NONE ? NULL : event_at(s, m->event);

    return e && e->ambiguous;
}

static struct finding *on_message(struct rule_run *run, const struct session *s,
                                  const struct message *m, enum party party)
{
    struct finding *f = finding_add(run, s);
    const struct event *e = m->event == NONE ? NULL : event_at(s, m->event);

    if (e)
        finding_on_event(run, f, e);
    else
        finding_on_exch(run, f, s->exch[m->exch]);
    f->party = party;
    if (m->id.type != RPC_ID_NONE)
        f->request_id = m->id;
    if (ambiguous(s, m))
        f->certainty = CERTAINTY_LIKELY;
    return f;
}

/*
 * All messages of the server in a session, redeliveries too: bodies first, then events.
 *     struct all a = { 0 };  while ((m = next_message(s, &a)))
 */
struct all {
    uint32_t exch, reply, msg;
    const struct event *e;
    bool begun; /* with the events */
};

static const struct message *next_message(const struct session *s, struct all *a)
{
    for (; a->exch < s->exch_count; a->exch++, a->reply = 0) {
        const struct exch *x = s->exch[a->exch];
        if (x->method == HTTP_METHOD_POST && x->status < 400 && a->reply < x->reply_count)
            return &x->reply[a->reply++];
    }
    if (!a->begun)
        a->e = event_next(s, 0);
    a->begun = true;
    for (; a->e; a->e = event_next(s, a->e->index + 1), a->msg = 0) {
        if (a->msg < a->e->msg_count)
            return &a->e->msg[a->msg++];
    }
    return NULL;
}

/* ---- more than one response ---- */

static const char *both_processed(struct rule_run *run, const struct session *s,
                                  const struct message *a, const struct message *b)
{
    (void)run;
    if (!s->has_log)
        return "";
    if (a->track != NONE && b->track != NONE && a->track != b->track &&
        track_state_at(s, a->track, INT64_MAX) >= HEAD_PROCESSED &&
        track_state_at(s, b->track, INT64_MAX) >= HEAD_PROCESSED)
        return "; by the log both were processed";
    return "; by the log not both were processed";
}

static bool open_together(const struct session *s, const struct message *a, const struct message *b)
{
    const struct leg *la = leg_of(s, a);
    const struct leg *lb = leg_of(s, b);

    return la && lb && la != lb && la->stream != lb->stream && leg_open_at(la, b->at.time);
}

static void second_response(struct rule_run *run, const struct session *s, const struct request *r,
                            const struct message *second, const char *what)
{
    struct finding *f = on_message(run, s, second, PARTY_SERVER);

    finding_on_request(run, f, r);
    finding_message(run, f, "request %s (" SLICE_FMT ") got %s%s", run_rpc_id(run, &r->msg->id),
                    SLICE_ARG(r->msg->method), what, both_processed(run, s, r->response, second));
    finding_frame(run, f, second->at, "the second response");
    finding_frame(run, f, r->response->at, "the first response");
    finding_frame(run, f, r->at, "the request");
}

static void check_duplicate(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (r->from_server || !r->duplicate || r->conflict ||
            open_together(s, r->response, r->duplicate))
            continue;
        second_response(run, s, r, r->duplicate,
                        "a second response, under another event id or leg, which is no redelivery");
    }
}

static void check_conflict(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!r->from_server && r->conflict)
            second_response(run, s, r, r->conflict, "two responses with different content");
    }
}

static void broadcast_finding(struct rule_run *run, const struct session *s,
                              const struct message *a, const struct message *b)
{
    struct finding *f = on_message(run, s, b, PARTY_SERVER);

    finding_message(run, f,
                    "the same message was sent on two legs that were open at the same time");
    finding_frame(run, f, b->at, "sent here");
    finding_frame(run, f, a->at, "and here");
}

static void check_broadcast(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!r->from_server && r->duplicate && !r->conflict &&
            open_together(s, r->response, r->duplicate))
            broadcast_finding(run, s, r->response, r->duplicate);
        const struct request *o =
            r->from_server && r->earlier != NONE ? s->request[r->earlier] : NULL;
        if (o && o->msg->digest == r->msg->digest && open_together(s, o->msg, r->msg))
            broadcast_finding(run, s, o->msg, r->msg);
    }
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        const struct event *o = e->first != e->index ? event_at(s, e->first) : NULL;
        if (!o || e->msg_count == 0 || o->msg_count == 0 || s->leg[e->leg]->resumed ||
            s->leg[o->leg]->resumed || !open_together(s, &o->msg[0], &e->msg[0]))
            continue;
        broadcast_finding(run, s, &o->msg[0], &e->msg[0]);
    }
}

/* ---- responses that answer nothing, or something else ---- */

static const char *nearly(const struct session *s, const struct rpc_id *id)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (r->from_server)
            continue;
        if (rpc_id_eq_converted(&r->msg->id, id))
            return "; it equals the id of a request after string/number conversion: the type of "
                   "the id "
                   "was changed";
        if (rpc_id_eq_rounded(&r->msg->id, id))
            return "; it equals the id of a request after rounding above 2^53: the id lost its "
                   "precision";
    }
    return "";
}

static const struct stream *stream_of(const struct session *s, const struct message *m)
{
    const struct leg *l = leg_of(s, m);

    return l ? s->stream[l->stream] : NULL;
}

static void check_unknown(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    if (s->orphan || s->legacy)
        return;
    while ((m = next_message(s, &a))) {
        const struct stream *st = stream_of(s, m);
        const struct event *e = m->event == NONE ? NULL : event_at(s, m->event);
        if (!rpc_is_response(m->kind) || m->same_as || m->request != NONE ||
            m->id.type <= RPC_ID_NULL)
            continue;
        if ((st && st->kind == STREAM_STANDALONE) || (e && (e->marks & EV_FOREIGN_SESSION)))
            continue;
        if (!session_whole_before(s, m->at.time)) {
            undecidable_add(run, s, st ? st->index : NONE,
                            "response %s: its request may lie in what the recording lacks",
                            run_rpc_id(run, &m->id));
            continue;
        }
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        finding_message(run, f, "the response %s matches no request of the client%s",
                        run_rpc_id(run, &m->id), nearly(s, &m->id));
        finding_frame(run, f, m->at, "the response");
        finding_frame(run, f, s->exch[m->exch]->first, "the request of its exchange");
    }
}

static bool carries_requests(const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind == RPC_REQUEST)
            return true;
    }
    return false;
}

static void check_misrouted(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    while ((m = next_message(s, &a))) {
        const struct leg *l = leg_of(s, m);
        uint32_t own = l ? s->stream[l->stream]->exch : m->exch;
        if (!rpc_is_response(m->kind) || m->same_as || m->request == NONE || s->legacy)
            continue;
        const struct request *r = s->request[m->request];
        if (r->from_server || r->exch == own || !carries_requests(s->exch[own]) ||
            (l && l->resumed))
            continue;
        const struct request *y =
            s->request[s->exch[own]->msg[0].request == NONE ? m->request
                                                            : s->exch[own]->msg[0].request];
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        finding_message(run, f,
                        "the response to request %s (" SLICE_FMT
                        ") came in the exchange of request %s (" SLICE_FMT ")",
                        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method),
                        run_rpc_id(run, &y->msg->id), SLICE_ARG(y->msg->method));
        finding_frame(run, f, m->at, "the response");
        finding_frame(run, f, r->at, "the request that it answers");
        finding_frame(run, f, s->exch[own]->first, "the request of the exchange that it came in");
    }
}

static void check_standalone(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    if (s->legacy)
        return;
    while ((m = next_message(s, &a))) {
        const struct stream *st = stream_of(s, m);
        if (!rpc_is_response(m->kind) || m->same_as || !st || st->kind != STREAM_STANDALONE ||
            era_of_message(s, m) == ERA_L || leg_of(s, m)->resumed)
            continue;
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        finding_message(
            run, f, "the response %s came on a listening stream, which resumes no request's stream",
            run_rpc_id(run, &m->id));
        finding_frame(run, f, m->at, "the response");
        finding_frame(run, f, s->exch[m->exch]->first, "the GET that opened the stream");
        if (m->request != NONE)
            finding_frame(run, f, s->request[m->request]->at, "the request that it answers");
    }
}

/* ---- lost ---- */

static bool log_has_other_response(const struct session *s, const struct request *r)
{
    return s->log_handled[RPC_RESULT] + s->log_handled[RPC_ERROR] > (r->dispatched ? 1u : 0u);
}

/* By the log: the response was on the wire, and never dispatched. */
static bool lost_by_log(const struct session *s, const struct request *r, uint32_t *ret_synthetic)
{
    int64_t t = r->response->at.time;

    *ret_synthetic = r->synthetic;
    if (!s->has_log || s->log_from_map || ambiguous(s, r->response))
        return false;
    if (r->cancelled.time && r->cancelled.time < t)
        return false;
    if (t < s->log_first || (t > s->log_last && *ret_synthetic == NONE))
        return false;
    if (r->dispatched)
        return false;
    return *ret_synthetic != NONE || (s->log_processes && log_has_other_response(s, r)) ||
           (s->log_processes && r->response->track != NONE);
}

/* Sent after the client had gone, and on no later leg. */
static bool lost_on_wire(const struct rule_run *run, const struct session *s,
                         const struct request *r)
{
    const struct leg *l = leg_of(s, r->response);
    int64_t t = r->response->at.time;

    if (r->answered.time || !l || !l->ended || r->cancelled.time || s->truncated ||
        (s->exch[r->response->exch]->rflags & RECF_HAR))
        return false;
    /* An acknowledgement may be late by 200 ms and more; a reset cuts it off. */
    bool client_gone = l->end == END_CLIENT_FIN || l->end == END_CLIENT_RST;
    if (!client_gone && l->end_at.time - t < 500 * NS_PER_MS)
        return false;
    return run->model->end.time - r->response->at.time > 5 * NS_PER_SEC;
}

static bool was_outstanding(const struct resumption *p, const struct request *r)
{
    for (uint32_t k = 0; k < p->outstanding_count; k++) {
        if (p->outstanding[k] == r->index)
            return true;
    }
    return false;
}

static bool lost_in_gap(const struct session *s, const struct request *r,
                        const struct resumption **ret)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *p = s->resumption[i];
        if ((p->faults & RF_GAP) && p->missing_proven && p->leg != NONE &&
            s->leg[p->leg]->end == END_COMPLETE && was_outstanding(p, r)) {
            *ret = p;
            return true;
        }
    }
    return false;
}

static void lost_finding(struct rule_run *run, const struct session *s, const struct request *r,
                         uint32_t synthetic)
{
    const struct message *m = r->response;
    struct finding *f = on_message(run, s, m, PARTY_CLIENT);

    finding_on_request(run, f, r);
    f->request_id = r->msg->id;
    finding_message(
        run, f,
        "the response to request %s (" SLICE_FMT ") was on the wire%s and never reached the "
        "client's dispatch%s",
        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method),
        m->acked.time ? ", acknowledged by the client's host," : "",
        synthetic != NONE ? ": the client made up an error of its own for the request" : "");
    finding_frame(run, f, m->at, "the response");
    finding_frame(run, f, m->acked, "acknowledged by the client's host");
    finding_frame(run, f, r->at, "the request");
    if (synthetic != NONE)
        finding_log(run, f, synthetic, "the error that the client made up");
    if (m->track != NONE && s->track[m->track].count > 0)
        finding_log(run, f, s->track[m->track].entry[s->track[m->track].count - 1],
                    "the last that the log says of it");
}

static void check_lost(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        const struct resumption *p = NULL;
        uint32_t synthetic = NONE;
        if (r->from_server)
            continue;
        if (r->response && (lost_by_log(s, r, &synthetic) || lost_on_wire(run, s, r))) {
            lost_finding(run, s, r, synthetic);
        } else if (!r->response && !r->http_error && lost_in_gap(s, r, &p)) {
            struct finding *f = finding_add(run, s);
            finding_on_request(run, f, r);
            f->party = PARTY_SERVER;
            f->certainty = CERTAINTY_LIKELY;
            finding_message(
                run, f,
                "the response to request %s (" SLICE_FMT ") must lie in the proven gap after %s: "
                "the server ended the stream without it",
                run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method), run_id(run, p->cursor));
            finding_frame(run, f, r->at, "the request");
            finding_frame(run, f, s->exch[p->exch]->first,
                          "the reconnect behind which the gap lies");
            finding_frame(run, f, s->leg[p->leg]->end_at, "the stream ends");
        }
    }
}

static void check_late(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        const struct message *m = r->response;
        if (r->from_server || !m || !r->cancelled.time || m->at.time < r->cancelled.time)
            continue;
        struct finding *f = on_message(run, s, m, PARTY_CLIENT);
        finding_on_request(run, f, r);
        finding_message(run, f,
                        "the response to request %s (" SLICE_FMT
                        ") came %s after the client had cancelled it",
                        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method),
                        run_seconds(run, m->at.time - r->cancelled.time));
        finding_frame(run, f, m->at, "the response");
        finding_frame(run, f, r->cancelled, "the cancellation");
        finding_frame(run, f, r->at, "the request");
    }
}

/* ---- unanswered ---- */

/* Could an answer still come, or have come unseen? NULL: no. */
static const char *answer_may_exist(const struct session *s, const struct request *r)
{
    const struct exch *x = s->exch[r->exch];

    if (s->truncated || x->truncated_capture)
        return "the file is cut";
    if (x->undecodable)
        return "the body of the answer is not in the evidence";
    if (x->response_gaps || x->head_gap)
        return "part of the answer is missing in the capture";
    if (x->reply_present && !x->reply_whole && x->end_kind != END_FIN && x->end_kind != END_RST)
        return "the body of the answer was not read whole";
    if (x->end_kind == END_GAP)
        return "how the exchange ended is lost in a gap of the capture";
    for (uint32_t i = 0; r->stream != NONE && i < s->stream[r->stream]->leg_count; i++) {
        const struct leg *l = s->leg[s->stream[r->stream]->leg[i]];
        if (l->gaps)
            return "part of its stream is missing in the capture";
    }
    return NULL;
}

static bool still_open(const struct session *s, const struct request *r)
{
    const struct exch *x = s->exch[r->exch];

    if (x->end_kind == END_OPEN)
        return true;
    for (uint32_t i = 0; r->stream != NONE && i < s->stream[r->stream]->leg_count; i++) {
        const struct leg *l = s->leg[s->stream[r->stream]->leg[i]];
        if (!l->ended || l->end == END_OPEN)
            return true;
    }
    for (uint32_t i = 0; s->legacy && i < s->leg_count; i++) {
        if (!s->leg[i]->ended || s->leg[i]->end == END_OPEN)
            return true;
    }
    /* A reconnect that the capture does not show the answer of. */
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *p = s->resumption[i];
        if (p->stream == r->stream && p->stream != NONE && s->exch[p->exch]->end_kind == END_OPEN)
            return true;
    }
    return false;
}

static bool answered_elsewhere(const struct session *s, const struct request *r)
{
    /* Under one id twice in flight, one answer may be either's; the other is known to be missing.
     */
    (void)s;
    return r->response || r->http_error;
}

static void check_unanswered(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (r->from_server || answered_elsewhere(s, r) || still_open(s, r))
            continue;
        const char *why = answer_may_exist(s, r);
        if (why) {
            undecidable_add(run, s, r->stream, "request %s: %s", run_rpc_id(run, &r->msg->id), why);
            continue;
        }
        const struct exch *x = s->exch[r->exch];
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        f->party = PARTY_UNKNOWN;
        if (r->cancelled.time)
            f->severity = SEV_INFO;
        finding_message(run, f, "request %s (" SLICE_FMT "%s%s) has no response on any leg%s",
                        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method), r->tool ? " " : "",
                        r->tool ? r->tool : "",
                        r->cancelled.time ? "; the client cancelled it" : "");
        finding_frame(run, f, r->at, "the request");
        finding_frame(run, f, x->end, "its exchange ends (%s)", end_kind_text(x->end_kind));
        finding_frame(run, f, r->cancelled, "the cancellation");
    }
}

/* ---- sent again ---- */

static bool without_effect(struct slice method)
{
    static const char *const harmless[] = { "initialize", "ping", "logging/setLevel",
                                            "subscriptions/listen", "completion/complete" };

    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        if (slice_eq(method, slice_str(harmless[i])))
            return true;
    }
    return method.len > 5 && memcmp(method.ptr + method.len - 5, "/list", 5) == 0;
}

/* Did the exchange or stream of p break before t? What ends after its cancellation is no break. */
static bool broken_before(const struct session *s, const struct request *p, int64_t t)
{
    const struct exch *x = s->exch[p->exch];
    int64_t limit = p->cancelled.time && p->cancelled.time < t ? p->cancelled.time : t;

    if (p->stream == NONE)
        return x->ended && x->end.time < limit && x->end_kind != END_OPEN && x->status < 400;
    const struct stream *st = s->stream[p->stream];
    for (uint32_t i = 0; i < st->leg_count; i++) {
        const struct leg *l = s->leg[st->leg[i]];
        bool broke = l->end != END_COMPLETE || st->leg_count > 1 || !p->response;
        if (l->ended && l->end != END_OPEN && l->end_at.time < limit && broke)
            return true;
    }
    return false;
}

static bool unanswered_at_client(const struct session *s, const struct request *p, int64_t t)
{
    uint32_t synthetic;

    if (p->http_error)
        return false;
    if (request_outstanding(s, p, t) || (p->cancelled.time && !p->answered.time))
        return true;
    return p->response && lost_by_log(s, p, &synthetic);
}

/* The client's calls of a session by method and parameters, each list from the newest on. */
struct calls {
    const struct session *s;
    uint32_t *older; /* of each request: the one before it with the same call, index + 1 */
    uint32_t *slot;  /* newest request of each bucket, index + 1 */
    uint32_t mask;
};

static uint64_t call_key(const struct request *q)
{
    return hash_mix(hash_bytes(q->msg->method), q->msg->body_digest);
}

static void calls_open(struct calls *c, const struct session *s)
{
    uint32_t cap = 16;

    while (cap < s->request_count)
        cap *= 2;
    *c = (struct calls){ .s = s, .mask = cap - 1 };
    c->older = mem_alloc((s->request_count + 1) * sizeof(uint32_t));
    c->slot = mem_alloc(cap * sizeof(uint32_t));
    for (uint32_t i = 0; i < s->request_count; i++) {
        if (s->request[i]->from_server || without_effect(s->request[i]->msg->method))
            continue;
        uint32_t *slot = &c->slot[call_key(s->request[i]) & c->mask];
        c->older[i] = *slot;
        *slot = i + 1;
    }
}

static void calls_close(struct calls *c)
{
    free(c->older);
    free(c->slot);
}

/* The same call before q, broken off and unanswered at the client. Of very many equal calls only
 * the nearest are looked at. */
#define CALLS_LOOKED_AT 256
static const struct request *repeats(const struct calls *c, const struct request *q)
{
    const struct session *o = c->s;
    unsigned tries = CALLS_LOOKED_AT;
    uint32_t at = q->index < o->request_count && o->request[q->index] == q
                      ? c->older[q->index]
                      : c->slot[call_key(q) & c->mask];

    for (; at != 0 && tries-- > 0; at = c->older[at - 1]) {
        const struct request *p = o->request[at - 1];
        if (p == q || p->at.time >= q->at.time || !slice_eq(p->msg->method, q->msg->method) ||
            p->msg->body_digest != q->msg->body_digest)
            continue;
        if (broken_before(o, p, q->at.time) && unanswered_at_client(o, p, q->at.time))
            return p;
    }
    return NULL;
}

static bool stream_has_id(const struct session *s, const struct request *p)
{
    for (uint32_t i = 0; p->stream != NONE && i < s->stream[p->stream]->leg_count; i++) {
        if (s->leg[s->stream[p->stream]->leg[i]]->last_id != NONE)
            return true;
    }
    return false;
}

static void reissued_finding(struct rule_run *run, const struct session *s, const struct session *o,
                             const struct request *p, const struct request *q)
{
    struct finding *f = finding_add(run, s);

    finding_on_request(run, f, q);
    f->party = PARTY_CLIENT;
    if (q->response && (p->response || p->answered.time))
        f->severity = SEV_ERROR;
    if (q->idempotent)
        f->severity = SEV_INFO;
    finding_message(
        run, f,
        "the call of request %s%s%s (" SLICE_FMT "%s%s) was sent again as %s after a break that "
        "left the first unanswered at the client; the first could%s have been resumed%s%s",
        run_rpc_id(run, &p->msg->id), o != s ? " of session " : "", o != s ? o->name : "",
        SLICE_ARG(q->msg->method), q->tool ? " " : "", q->tool ? q->tool : "",
        run_rpc_id(run, &q->msg->id), stream_has_id(o, p) ? "" : " not",
        p->response ? "; its response exists on the wire" : "",
        q->idempotent ? "; the tool is idempotent" : "");
    finding_frame(run, f, q->at, "the call, again");
    finding_frame(run, f, p->at, "the call, first");
    if (p->response)
        finding_frame(run, f, p->response->at, "the response to the first");
    if (q->response)
        finding_frame(run, f, q->response->at, "the response to the second");
}

#define SESSIONS_BACK 8
static void check_reissued(struct rule_run *run, const struct session *s)
{
    struct calls calls[SESSIONS_BACK];
    const struct session *o = s;
    size_t n = 0;

    do {
        calls_open(&calls[n++], o);
        o = o->replaces;
    } while (o && n < SESSIONS_BACK);
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *q = s->request[i];
        const struct request *p = NULL;
        if (q->from_server || without_effect(q->msg->method))
            continue;
        for (size_t k = 0; k < n && !p; k++) {
            p = repeats(&calls[k], q);
            if (p)
                reissued_finding(run, s, calls[k].s, p, q);
        }
    }
    for (size_t k = 0; k < n; k++)
        calls_close(&calls[k]);
}

/* Statuses that say that the request was not taken in: who gets one sends the same again. */
static bool turned_away(int status)
{
    static const int list[] = { 401, 403, 407, 408, 421, 425, 429, 503 };

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        if (status == list[i])
            return true;
    }
    return false;
}

static bool is_first_in_flight(const struct session *s, const struct request *r,
                               const struct request *o)
{
    return r->earlier_in_flight && (r->from_server || request_outstanding(s, o, r->at.time));
}

/* May the id of o be used again for r? */
static bool may_be_reused(const struct session *s, const struct request *r, const struct request *o)
{
    /* One request, sent again as it was. */
    if (o->msg->digest == r->msg->digest && (r->from_server || turned_away(o->http_error)))
        return true;
    /* Without a session id several clients may stand behind one address. */
    if (!s->id.ptr && s->exch[o->exch]->conn != s->exch[r->exch]->conn)
        return true;
    return s->exch[r->exch]->era == ERA_D && !is_first_in_flight(s, r, o);
}

static void check_id_reused(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        const struct request *o = r->earlier == NONE ? NULL : s->request[r->earlier];
        if (!o || may_be_reused(s, r, o))
            continue;
        bool in_flight = is_first_in_flight(s, r, o);
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        f->request = NONE;
        f->subject = run_rpc_id(run, &r->msg->id);
        f->party = r->from_server ? PARTY_SERVER : PARTY_CLIENT;
        if (in_flight)
            f->severity = SEV_ERROR;
        finding_message(run, f, "the id %s is used for another request of the same sender%s",
                        run_rpc_id(run, &r->msg->id),
                        in_flight ? " while the first is in flight: an answer could be either's"
                                  : "");
        finding_frame(run, f, r->at, "the id again (" SLICE_FMT ")", SLICE_ARG(r->msg->method));
        finding_frame(run, f, o->at, "the id before (" SLICE_FMT ")", SLICE_ARG(o->msg->method));
    }
}

/* ---- requests of the server ---- */

#define ANSWER_TIME (5 * NS_PER_SEC)
static void check_server_unanswered(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!r->from_server || r->response || r->cancelled.time || s->truncated ||
            run->model->end.time - r->at.time < ANSWER_TIME || !message_delivered(s, r->msg))
            continue;
        if (s->orphan || s->gaps) {
            undecidable_add(run, s, NONE,
                            "server request %s: the answer may lie in what the capture lacks",
                            run_rpc_id(run, &r->msg->id));
            continue;
        }
        struct finding *f = on_message(run, s, r->msg, PARTY_CLIENT);
        finding_message(run, f,
                        "the server's request %s (" SLICE_FMT ") was never answered by POST",
                        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method));
        finding_frame(run, f, r->at, "the server's request");
    }
}

static void check_server_twice(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!r->from_server || !r->duplicate)
            continue;
        struct finding *f = on_message(run, s, r->duplicate, PARTY_CLIENT);
        finding_message(run, f, "the server's request %s (" SLICE_FMT ") was answered twice",
                        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method));
        finding_frame(run, f, r->duplicate->at, "the second answer");
        finding_frame(run, f, r->response->at, "the first answer");
        finding_frame(run, f, r->at, "the server's request");
    }
}

static void cancel_finding(struct rule_run *run, const struct session *s, const struct message *m,
                           const char *why)
{
    struct finding *f = on_message(run, s, m, PARTY_CLIENT);

    f->request_id = m->cancelled;
    finding_message(run, f, "a cancellation of request %s, %s", run_rpc_id(run, &m->cancelled),
                    why);
    finding_frame(run, f, m->at, "the cancellation");
}

static void check_cancel(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        for (uint32_t k = 0; k < x->msg_count; k++) {
            const struct message *m = &x->msg[k];
            if (m->kind != RPC_NOTIFICATION ||
                !slice_eq(m->method, SLICE_LIT("notifications/cancelled")))
                continue;
            if (m->request != NONE &&
                slice_eq(s->request[m->request]->msg->method, SLICE_LIT("initialize")))
                cancel_finding(run, s, m, "which is initialize: it must not be cancelled");
            else if (m->request == NONE && session_whole_before(s, m->at.time) && s->id.ptr)
                cancel_finding(run, s, m, "which the client never issued");
        }
    }
}

/* ---- progress ---- */

static void check_progress(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    while ((m = next_message(s, &a))) {
        if (m->same_as || !m->has_previous || m->progress > m->previous_progress)
            continue;
        const struct leg *l = leg_of(s, m);
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        f->request_id = s->request[m->request]->msg->id;
        f->event = NONE;
        f->request = m->request;
        finding_message(
            run, f, "progress of request %s goes from %g to %g%s",
            run_rpc_id(run, &s->request[m->request]->msg->id), m->previous_progress, m->progress,
            l && l->resumed ? ", on a resumed leg: the replay is out of order or leaves events out"
                            : "");
        finding_frame(run, f, m->at, "progress %g", m->progress);
        finding_frame(run, f, m->previous_at, "progress %g, before it", m->previous_progress);
    }
}

/* Log messages that count ("5 of 20") along a stream, redeliveries aside. */
struct counting {
    const struct message *last;
    uint32_t steps; /* by one, in a row */
};

static void counter_jump(struct rule_run *run, const struct session *s, const struct message *m,
                         const struct message *before)
{
    struct finding *f = on_message(run, s, m, PARTY_SERVER);

    f->certainty = CERTAINTY_LIKELY;
    finding_message(
        run, f,
        "log messages that count to %u went on by one until the break, and from %u to %u "
        "across it: what lay between was not replayed",
        m->counter_total, before->counter, m->counter);
    finding_frame(run, f, m->at, "%u of %u, after the break", m->counter, m->counter_total);
    finding_frame(run, f, before->at, "%u of %u, before it", before->counter,
                  before->counter_total);
}

static void count_on(struct rule_run *run, const struct session *s, const struct message *m,
                     struct counting *c)
{
    const struct message *p = c->last;
    bool same = p && p->counter_total == m->counter_total;

    if (same && m->counter == p->counter + 1)
        c->steps++;
    else if (same && c->steps >= 2 && m->counter > p->counter + 1 && leg_of(s, p) != leg_of(s, m))
        counter_jump(run, s, m, p);
    else
        c->steps = 0;
    c->last = m;
}

static void counters_of_stream(struct rule_run *run, const struct session *s,
                               const struct stream *st)
{
    struct counting c = { 0 };
    const struct event *e;

    for (uint32_t o = 0; (e = stream_next(s, st, &o)); o++) {
        for (uint32_t k = 0; k < e->msg_count; k++) {
            if (e->msg[k].counter_total > 0 && !e->msg[k].same_as)
                count_on(run, s, &e->msg[k], &c);
        }
    }
}

static void check_counters(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->stream_count; i++)
        counters_of_stream(run, s, s->stream[i]);
}

static void check_jump(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    while ((m = next_message(s, &a))) {
        double skipped = m->progress - m->previous_progress;
        if (m->same_as || !m->across_break || m->step <= 0 || skipped < m->step * 1.5)
            continue;
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        f->request_id = s->request[m->request]->msg->id;
        f->certainty = CERTAINTY_LIKELY;
        finding_message(
            run, f,
            "progress of request %s went on by %g until the break, and from %g to %g across it: "
            "what lay between was not replayed",
            run_rpc_id(run, &s->request[m->request]->msg->id), m->step, m->previous_progress,
            m->progress);
        finding_frame(run, f, m->at, "progress %g, after the break", m->progress);
        finding_frame(run, f, m->previous_at, "progress %g, before it", m->previous_progress);
    }
    check_counters(run, s);
}

static bool is_task(const struct message *m)
{
    return (m->flags & (RPC_RELATED_TASK | RPC_HAS_TASK)) != 0;
}

static void check_after_response(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    while ((m = next_message(s, &a))) {
        if (m->same_as || m->kind != RPC_NOTIFICATION || m->request == NONE || is_task(m) ||
            m->token.type == RPC_ID_NONE)
            continue;
        const struct request *r = s->request[m->request];
        if (!r->response || is_task(r->msg) || is_task(r->response) ||
            r->response->at.time > m->at.time || r->response == m)
            continue;
        bool same_leg =
            leg_of(s, m) == leg_of(s, r->response) && leg_of(s, m) && r->response->event < m->event;
        if (!same_leg && m->at.time - r->response->at.time < NS_PER_SEC)
            continue; /* two connections: they may cross */
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        f->request_id = r->msg->id;
        finding_message(run, f, "progress for request %s, which was already answered",
                        run_rpc_id(run, &r->msg->id));
        finding_frame(run, f, m->at, "the progress notification");
        finding_frame(run, f, r->response->at, "the response");
    }
}

static void check_token(struct rule_run *run, const struct session *s)
{
    struct all a = { 0 };
    const struct message *m;

    if (s->orphan)
        return;
    while ((m = next_message(s, &a))) {
        const struct event *e = m->event == NONE ? NULL : event_at(s, m->event);
        if (m->same_as || m->kind != RPC_NOTIFICATION || m->request != NONE ||
            m->token.type == RPC_ID_NONE || is_task(m) ||
            !slice_eq(m->method, SLICE_LIT("notifications/progress")) ||
            (e && (e->marks & EV_FOREIGN_SESSION)))
            continue;
        if (!session_whole_before(s, m->at.time)) {
            undecidable_add(run, s, NONE,
                            "progress token %s: its request may lie in what the recording lacks",
                            run_rpc_id(run, &m->token));
            continue;
        }
        struct finding *f = on_message(run, s, m, PARTY_SERVER);
        f->subject = run_rpc_id(run, &m->token);
        f->event = NONE;
        finding_message(run, f, "progress for the token %s, which no request of the client carries",
                        run_rpc_id(run, &m->token));
        finding_frame(run, f, m->at, "the progress notification");
    }
}

static void check_disconnect(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (r->leg == NONE || r->outstanding_count == 0 || r->head == NONE ||
        (r->faults & (RF_EMPTY | RF_STALLED | RF_GAP)) || s->leg[r->leg]->end != END_COMPLETE ||
        s->leg[r->leg]->gaps || s->exch[r->exch]->close_not_known)
        return;
    const struct request *q = s->request[r->outstanding[0]];
    const struct stream *st = s->stream[r->stream];
    if (q->response || q->http_error || q->cancelled.time || st->leg[st->leg_count - 1] != r->leg)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->request_id = q->msg->id;
    f->request = q->index;
    f->party = PARTY_SERVER;
    f->certainty = CERTAINTY_LIKELY;
    finding_message(
        run, f,
        "the leg of request %s was cut and rightly resumed; the server sent what it had, "
        "ended the stream, and has no response: it took the disconnect for a cancellation",
        run_rpc_id(run, &q->msg->id));
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    finding_frame(run, f, s->leg[r->leg]->end_at, "the server ends the stream");
    finding_frame(run, f, q->at, "the request");
}

static const struct rule rules[] = {
    {
        .id = "response-duplicate",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "A second response to a request, which is no redelivery of the first.",
        .why = "A client without its own guard takes the effect twice.",
        .advice = "Server: answer a request once. Client: ignore a response to a request that is "
                  "no longer "
                  "pending, and log it.",
        .source = "JSON-RPC 2.0, 5: a request gets one response; MCP 2025-11-25, Transports > "
                  "Multiple Connections: each message goes on one stream only",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<------------ id: 6 {response 1} ---|\n"
                       "  |<------------ id: 9 {response 1} ---|   again, and no replay\n",
            .needs = "Both responses and the request. A redelivery (same event, same or new id, "
                     "on a resumed leg) is recognised and does not count. With a log: whether "
                     "both were processed.",
            .blind = "Two requests under one id: an answer may be either's (then likely, see "
                     "request-id-reused).",
            .client = "Take a request off the list of pending ones with its first response; log "
                      "and drop what comes after. If both were processed, look at the effect.",
            .server = "Look for two writers: a handler that answers and a time-out that answers "
                      "too, or a retry inside the server that ran the tool twice.",
            .path = "A proxy that repeats a POST on its own makes the server run the call twice: "
                    "switch that off for POST.",
        },
        .check = check_duplicate,
    },
    {
        .id = "response-conflict",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "Two responses to one request with different content.",
        .why = "Which of them took effect depends on which came first.",
        .advice = "Server: find out who writes the second response; check that stores and streams "
                  "are keyed "
                  "by session.",
        .source = "JSON-RPC 2.0, 5: one response, with either result or error; MCP 2025-11-25, "
                  "Base Protocol > Responses",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<------ {response 1: result \"a\"} ---|\n"
                       "  |<----------- {response 1: error} ---|   which one holds?\n",
            .needs = "Two responses to one request whose content differs (order of keys and white "
                     "space aside).",
            .blind = "With one request id used twice in flight, each answer may belong to another "
                     "request: then likely.",
            .client = "The first one counts. Tell the application when a second one says "
                      "otherwise, since it acted on the first.",
            .server = "Find the second writer: a time-out error that races the result, an event "
                      "store shared between sessions, or streams that are keyed by the request id "
                      "alone.",
        },
        .check = check_conflict,
    },
    {
        .id = "response-unknown",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "A response whose id matches no request of the client.",
        .why = "The request that it was meant for is never resolved.",
        .advice = "Server: echo the id with its type and every digit. If ids belong to another "
                  "client, look "
                  "for shared state between sessions.",
        .source = "JSON-RPC 2.0, 5: the id of a response is the same value as the request's; MCP "
                  "2025-11-25, Base Protocol > Responses: the same id as the request",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST {\"id\": 51} ---------------->|\n"
                       "  |<--- {\"id\": \"51\", \"result\": ...} ---|   a string: another id\n"
                       "  |    client: \"unknown message id\"    |\n"
                       "  |    (51 runs into its time-out)     |\n",
            .needs = "All requests of the client in this session up to that moment, so the "
                     "session's beginning; otherwise undecidable. The message says when the id "
                     "fits after string/number conversion or after rounding above 2^53.",
            .blind = "Requests sent over a connection that is not recorded. Error bodies of "
                     "refused exchanges, and ids that are null or absent, are left out.",
            .client = "Use small integers or strings as ids, never numbers above 2^53. Do not "
                      "convert ids when you compare them: 1 and \"1\" are two ids.",
            .server = "Keep the id as the raw JSON value, with its type and all digits, from "
                      "request to response. An id that fits another client's request means state "
                      "shared between sessions: treat it as a leak.",
            .path = "A gateway that parses and writes JSON anew must keep large numbers and "
                    "types.",
        },
        .check = check_unknown,
    },
    {
        .id = "response-misrouted",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "The response to one request arrives in the exchange of another.",
        .why = "The waiter of this exchange may take it for its own answer.",
        .advice = "Server: key open streams by session and request, not by the request id alone.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server: the stream of a "
                  "POST carries the responses to its own requests; python-sdk#3060, go-sdk#1004",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST a: call 1 ----------------->|\n"
                       "  |-- POST b: call 2 ----------------->|\n"
                       "  |<------------ on b: {response 1} ---|   belongs to a\n"
                       "  |<------------ on b: {response 2} ---|\n"
                       "  |         (a waits for ever)         |\n",
            .needs = "The response, the exchange that it came in, and the request that it answers "
                     "in another exchange of the session.",
            .blind = "When both requests use one id, which of the two an answer belongs to (then "
                     "likely). Resumed legs are judged by replay-foreign-stream.",
            .client = "Give every request of a session its own id, and match by id, not by \"the "
                      "response on my stream is mine\".",
            .server = "Key open streams by session and by a number of your own, not by the "
                      "JSON-RPC id as text. If the waiter belongs to another client, handle it as "
                      "a leak of data.",
            .path = "Reused upstream connections whose responses get out of step give the same "
                    "picture: compare both sides of the proxy.",
            .known = "python-sdk 57394b0: streams are keyed by str(id), so that 1 and \"1\", or "
                     "one id twice in flight, share one (read in source).",
        },
        .check = check_misrouted,
    },
    {
        .id = "response-lost",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "A response existed, and never reached the client's dispatch.",
        .why = "The call had its effect on the server, and the client believes that it failed.",
        .advice = "Client: find where the message was dropped (cursor before dispatch, parser, "
                  "routing by "
                  "connection). Do not repeat the call blindly: it was executed.",
        .source = "Reasoning: delivery to a socket is not the effect at the client. MCP "
                  "2025-11-25, Transports > Sending Messages to the Server and Resumability and "
                  "Redelivery promise no more than the former",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1: send the mail ----->|\n"
                       "  |       (the call is executed)       |\n"
                       "  |<------------ id: 6 {response 1} ---|   on the wire\n"
                       "  | client: nothing; then \"timed out\"  |\n"
                       "  |  (tempts the caller to repeat it)  |\n",
            .needs = "A response on the wire and a log that covers that time and names others of "
                     "its kind, or shows an error of the client's own making. Without a log: a "
                     "response sent after the client had gone and on no later leg, or inside a "
                     "proven gap.",
            .blind = "Without a log, messages that reached the host and were dropped inside the "
                     "client. A response that a cancellation overtook is response-late.",
            .client = "Do not repeat the call: it was executed. Then look where it was dropped: a "
                      "cursor stored before the handler ran, a parser that gave up on the "
                      "framing, a waiter that was gone.",
            .server = "Keep the final response until the client has come back or the session "
                      "ends, not only until it was written to a socket.",
            .path = "If the client's FIN or RST came before the response, look for a time-out on "
                    "the way that is shorter than the call.",
            .known = "Cloudflare agents a0e134b: deletes the log of a POST stream right after "
                     "writing its final response. mcp-go 56af04b client: ignores responses on a "
                     "GET stream (both read in source).",
        },
        .check = check_lost,
    },
    {
        .id = "response-late",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = LC,
        .summary = "A response after the request was cancelled.",
        .why = "Legal: the call may have had its effect although the client gave it up.",
        .advice =
            "Client: allow more time while progress arrives; treat the late result as information.",
        .source = "MCP 2024-11-05 to 2025-11-25, Cancellation: the receiver should stop and not "
                  "answer, the sender should ignore a late response, and both must bear races",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |-- notifications/cancelled 1 ------>|   client gives up\n"
                       "  |<------------------ {response 1} ---|   it had been done all the same\n",
            .needs = "The cancellation and the response, with their times, in one session.",
            .blind = "Whether the two crossed on the way: that is legal, and the reason why this "
                     "is only info. A time-out that the client did not put on the wire.",
            .client = "Do not take \"cancelled\" for \"not done\". Start the time-out again while "
                      "progress arrives, within an upper limit.",
            .server = "Stop on a cancellation if you can, and do not answer then; if the effect "
                      "is done, the late response is the better choice.",
        },
        .check = check_late,
    },
    {
        .id = "response-on-standalone-stream",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A response on a listening stream that resumes no request's stream.",
        .why = "Clients that look for the response on the request's own stream never see it.",
        .advice =
            "Server: send responses on the stream of their request, or on a GET that resumes it.",
        .source = "MCP 2025-11-25, Transports > Listening for Messages from the Server: no "
                  "response on a GET stream, unless it resumes a stream of an earlier request "
                  "(MUST NOT)",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, no Last-Event-ID ---------->|   a listening stream\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<------ on the GET: {response 1} ---|   must not be there\n"
                       "  |      (the POST stays silent)       |\n",
            .needs = "The GET without cursor (or with a cursor of the listening stream), and the "
                     "response on its leg.",
            .blind = "A GET that resumes a request's stream by a cursor that the recording does "
                     "not know: its leg is then a stream of its own and not judged here. Old "
                     "HTTP+SSE sessions (2024-11-05) work this way and are left out.",
            .client = "Accept a response on any stream of the session and match it by id: that "
                      "rescues the call. Report it.",
            .server = "Send the response on the stream of its POST. If that is cut, keep it for "
                      "the GET that resumes that stream by its cursor.",
        },
        .check = check_standalone,
    },
    {
        .id = "response-broadcast",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The same message on two legs that are open at the same time.",
        .why = "The client processes it twice.",
        .advice = "Server: choose one stream for each message.",
        .source = "MCP 2025-11-25, Transports > Multiple Connections: each message goes on one of "
                  "the connected streams; it MUST NOT be broadcast over several",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, listening ----------------->|\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<------- leg 1 (open): {message} ---|\n"
                       "  |<------- leg 2 (open): {message} ---|   the same one\n",
            .needs = "Two legs of different streams of one session, open at the same time, and "
                     "one message (a response, a server request with one id, or one event) on "
                     "both.",
            .blind = "The same notification for two clients, or two equal notifications: neither "
                     "is a broadcast. In a HAR legs overlap only by their stated times.",
            .client = "Recognise the second copy by event id and JSON-RPC id.",
            .server = "Choose one stream for each message: the request's own, else the listening "
                      "one. \"Send to all connections\" is for several clients, not for several "
                      "streams of one.",
        },
        .check = check_broadcast,
    },
    {
        .id = "request-unanswered",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "A request has no response on any leg, and nothing proves that one existed.",
        .why = "The caller waits until its time-out, and does not know whether the call had its "
               "effect.",
        .advice =
            "Look at how its exchange ended. Server: answer every request, if only by an error.",
        .source = "MCP 2025-11-25, Transports > Sending Messages to the Server: the stream should "
                  "in the end carry one response for each request of the POST; JSON-RPC 2.0, 5",
        .explain = {
            .picture = "client                                server\n"
                       "  |-- POST call 1 ---------------------->|\n"
                       "  |<----------------- 200, {progress} ---|\n"
                       "  | (end of the stream, of all its legs) |\n"
                       "  |         no result, no error          |\n",
            .needs = "The request, and the end of its exchange and of every leg of its stream, "
                     "wholly recorded. While one is open, or a part is missing, it is undecidable "
                     "or silent.",
            .blind = "Whether the call was executed: nothing on the wire tells. If the evidence "
                     "proves that a response existed, response-lost says so instead.",
            .client = "Treat the outcome as unknown: look the effect up before repeating. Check "
                      "whether the stream could have been resumed (resume-missing, "
                      "resume-impossible).",
            .server = "Answer every request, with an error where the handler dies or the process "
                      "stops. Look in the server's log for the end of this handler.",
            .path = "See how the exchange ended: an RST or a FIN after a round number of seconds "
                    "is an idle limit.",
        },
        .check = check_unanswered,
    },
    {
        .id = "request-reissued",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "The same call was sent again after a break that left the first unanswered.",
        .why = "Both may have been executed: a possible double effect.",
        .advice =
            "Client: resume the stream instead of repeating the call, or use an idempotency key. "
            "Server: make the tool idempotent and say so (idempotentHint).",
        .source = "RFC 9110 9.2.2: POST is not idempotent, so it must not be repeated unless it "
                  "is known to be safe. MCP 2026-07-28, changelog, major change 9, makes "
                  "re-issuing the only way after a cut",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1: pay 10 ------------>|\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- POST call 2: pay 10 ------------>|   the same call again\n"
                       "  |<------------------ {response 2} ---|   paid once, or twice?\n",
            .needs = "Two requests with the same method and parameters (_meta aside), the first "
                     "broken off or given up and unanswered at the client. Also across a new "
                     "session of the same client.",
            .blind = "A user who wants the same thing twice looks the same, if a cut lies "
                     "between. Methods that only read lists, initialize, ping and the like are "
                     "left out; idempotent tools are info.",
            .client = "Resume with the last id instead of repeating; if there is none, look up "
                      "the effect first. Send a key of your own with the call by which the server "
                      "can know it again.",
            .server = "Make the tool idempotent by such a key, and annotate it (idempotentHint). "
                      "Keep the response of the first call for the client that comes back.",
            .path = "Switch off automatic repetition of POST in proxies and service meshes.",
        },
        .check = check_reissued,
    },
    {
        .id = "request-id-reused",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "One sender uses a request id twice in a session.",
        .why = "While the first is in flight, nobody can tell which request an answer belongs to.",
        .advice = "Sender: count ids up; never use one again in the session.",
        .source = "MCP 2024-11-05 to 2025-11-25, Base Protocol > Requests: an id MUST NOT have "
                  "been used before by the same requestor in the session. MCP 2026-07-28: not "
                  "while it is in flight",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST {\"id\": 1, call a} --------->|\n"
                       "  |-- POST {\"id\": 1, call b} --------->|   1 is still in flight\n"
                       "  |<------ {\"id\": 1, \"result\": ...} ---|   of a or of b?\n",
            .needs = "Two requests of one sender in one session with the same id (value and JSON "
                     "type). Error while the first is unanswered.",
            .blind = "Without a session id several clients may stand behind one address, so only "
                     "requests of one connection are compared. A server request that comes again "
                     "in a replay does not count.",
            .client = "Count ids up over the whole session, for all tasks that share it; do not "
                      "start at 1 for every request or every connection.",
            .server = "Refuse a request whose id is in flight, and never key streams by the "
                      "request id alone.",
        },
        .check = check_id_reused,
    },
    {
        .id = "server-request-unanswered",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = LC,
        .summary = "A request of the server was never answered by POST.",
        .why = "A server that pings or asks for input waits, or takes the client for dead.",
        .advice = "Client: answer every request of the server, if only by an error.",
        .source = "JSON-RPC 2.0, 5: a request gets a response; MCP 2024-11-05 to 2025-11-25, "
                  "Ping: the receiver must answer promptly",
        .explain = {
            .picture = "client                                  server\n"
                       "  |<------- {\"id\": 7, \"method\": \"ping\"} ---|\n"
                       "  |        (five seconds and more)         |\n"
                       "  |      no POST with the answer to 7      |\n"
                       "  | (the server takes the client for dead) |\n",
            .needs = "The server's request delivered to the client, and at least five seconds of "
                     "a wholly recorded session after it.",
            .blind = "An answer over a connection that the recording lacks: with holes in it, it "
                     "is undecidable. A slow user (elicitation) may still be thinking.",
            .client = "Answer every request, if only by \"method not found\". Check that requests "
                      "are also handled when they come on a resumed leg or on the listening "
                      "stream.",
            .server = "Time out, and do not end the session for one lost ping: the request may "
                      "have been lost on a cut stream.",
            .path = "If the client did POST and the server never got it, compare both sides.",
        },
        .check = check_server_unanswered,
    },
    {
        .id = "server-request-answered-twice",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = LC,
        .summary = "Two answers of the client to one request of the server.",
        .why = "Typical after a replay: the client processed the request twice.",
        .advice = "Client: recognise a redelivered server request by its event id and JSON-RPC id.",
        .source = "JSON-RPC 2.0, 5: one response for a request; MCP 2025-11-25, Transports > "
                  "Resumability and Redelivery: redelivery is of messages, not of effects",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------- id: 5 {request 7} ---|\n"
                       "  |-- POST {answer 7} ---------------->|\n"
                       "  | (cut; the replay starts too early) |\n"
                       "  |<------------- id: 5 {request 7} ---|   a redelivery\n"
                       "  |-- POST {answer 7} ---------------->|   handled twice\n",
            .needs = "The server's request and two POSTs of the client that answer it.",
            .blind = "Whether the user was asked twice, or a stored answer was sent again. A POST "
                     "that a proxy repeated looks the same from the server's side.",
            .client = "Remember which server requests were answered, by session and id; on a "
                      "redelivery send nothing, or the stored answer. Sampling and elicitation "
                      "cost money or patience twice.",
            .server = "Take the first answer and ignore the second, with 202. Do not replay "
                      "requests that were answered.",
        },
        .check = check_server_twice,
    },
    {
        .id = "cancel-not-matching",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = LC,
        .summary = "A cancellation of a request that its sender never issued, or of initialize.",
        .why = "The request that was meant goes on, and has its effect.",
        .advice = "Client: cancel with the id exactly as sent, in its own direction.",
        .source = "MCP 2024-11-05 to 2025-11-25, Cancellation > Behavior Requirements: only "
                  "requests that were issued in the same direction; initialize MUST NOT be "
                  "cancelled",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST {\"id\": 12, call} ---------->|\n"
                       "  |-- cancelled {\"requestId\": \"12\"} -->|   a string: no such id\n"
                       "  |            (12 goes on)            |\n"
                       "  |<----------------- {response 12} ---|\n",
            .needs = "The cancellation and all requests of its sender in the session up to it; so "
                     "a session that is recorded from its start.",
            .blind = "Requests over a connection that is not recorded. A cancellation that "
                     "crosses its response is legal and not meant.",
            .client = "Send the id with the type and value it had in the request, in the session "
                      "that it belongs to. Never cancel initialize: close the connection instead.",
            .server = "Ignore it. Do not convert ids to find one that fits: that may stop another "
                      "call.",
        },
        .check = check_cancel,
    },
    {
        .id = "progress-not-increasing",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "A progress value does not increase for its token.",
        .why = "After a resumption it is evidence that events were left out or came out of order.",
        .advice =
            "Server: send increasing values; check the order in which the event store replays.",
        .source = "MCP 2024-11-05 to 2026-07-28, Progress: the value MUST increase with each "
                  "notification",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------------- progress 10 ---|\n"
                       "  |<------------------- progress 20 ---|\n"
                       "  |<------------------- progress 20 ---|   or less: does not increase\n",
            .needs = "Progress notifications of one token, in the order of the stream, "
                     "redelivered ones taken out.",
            .blind = "Whether the server counts wrongly or the replay is out of order; on a "
                     "resumed leg the message says that the latter is possible.",
            .client = "Show the highest value. On a resumed leg take it as a sign of a bad "
                      "replay.",
            .server = "Raise the value with each notification (count steps, not percent rounded "
                      "down). If it happens after resumptions only, check the order in which the "
                      "store gives events out.",
            .known = "typescript-sdk 1.32.2 and v2, example InMemoryEventStore: replays out of "
                     "order (executed).",
        },
        .check = check_progress,
    },
    {
        .id = "progress-jump",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "Progress that went on evenly skips values across a break.",
        .why = "With opaque ids this is the only trace of a gap in the replay.",
        .advice = "Look at the resumption at the break: were events left out?",
        .source = "MCP 2025-11-25, Progress (increasing values). Reasoning: where ids are opaque, "
                  "evenly stepping values are the only count that a replay can be held against",
        .explain = {
            .picture = "client                              server\n"
                       "  |<-------------- progress 1, 2, 3 ---|   steps of 1\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: x3 --------->|\n"
                       "  |<----------------- progress 7, 8 ---|   where are 4, 5, 6?\n",
            .needs = "A token whose values stepped evenly before the break, and the first value "
                     "after it.",
            .blind = "A server that sends less often while nobody listens, or whose work went "
                     "faster: therefore likely, and info. Uneven progress says nothing.",
            .client = "Suspect a gap: check that no response or request came with the missing "
                      "events before going on.",
            .server = "See whether events that were produced while no connection was there went "
                      "into the store.",
        },
        .check = check_jump,
    },
    {
        .id = "progress-after-response",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "Progress for a request that was already answered.",
        .why =
            "The client has closed the request: the notification is lost, or reported as an error.",
        .advice = "Server: stop progress before the response is written.",
        .source = "MCP 2024-11-05 to 2026-07-28, Progress: notifications MUST stop after "
                  "completion (tasks, 2025-11-25, go on until the task has ended)",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------------- progress 90 ---|\n"
                       "  |<------------------ {response 1} ---|\n"
                       "  |<------------------ progress 100 ---|   after the end\n",
            .needs = "The response and a progress notification of its token behind it: on one "
                     "leg, or a second later on another. Redeliveries and tasks are left out.",
            .blind = "Within one second on two connections the two may have crossed; that is not "
                     "reported.",
            .client = "Ignore it: the request is closed. It is not an error that should end the "
                      "stream.",
            .server = "Stop the reporter and wait for its last write before writing the response.",
        },
        .check = check_after_response,
    },
    {
        .id = "progress-unknown-token",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "Progress for a token that no request of the client carries.",
        .why = "Nobody waits for it: it was meant for another request, session or client.",
        .advice =
            "Server: use the token of the request, with its type; look for state shared between "
            "sessions.",
        .source = "MCP 2024-11-05 to 2026-07-28, Progress: only tokens of an active request, sent "
                  "by its requestor",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1, progressToken: 1 -->|\n"
                       "  |<-- progress, progressToken: \"1\" ---|   nobody's token\n"
                       "  |     (call 1 shows no progress)     |\n",
            .needs = "All requests of the client in the session up to that moment, with the "
                     "tokens in their _meta; otherwise undecidable.",
            .blind = "Requests over connections that are not recorded, and tokens of tasks.",
            .client = "Log and ignore it; a token is compared with its JSON type.",
            .server = "Send the token as it came, with its type. If the token is known in another "
                      "session, state is shared between sessions: treat it as a leak.",
        },
        .check = check_token,
    },
    {
        .id = "disconnect-taken-as-cancel",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary =
            "After a cut and a valid resumption the server has nothing more, and no response.",
        .why = "The call was given up because a connection broke.",
        .advice = "Server: a disconnect is no cancellation; finish the call and keep its response "
                  "for the "
                  "resumption.",
        .source = "MCP 2025-03-26 to 2025-11-25, Transports > Sending Messages to the Server: a "
                  "disconnection SHOULD NOT be taken for a cancellation; to cancel, the client "
                  "sends notifications/cancelled. (2026-07-28 turns this round: there it is one.)",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |  (cut: the server stops the call)  |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------- id: 6 {progress}, end ---|   no response, ever\n",
            .needs = "A cut leg, a resumption with a good cursor, its replay, a clean end by the "
                     "server, and no response on any leg. Without a cancellation of the client.",
            .blind = "Why there is no response: the handler may have died for another reason, "
                     "hence likely. Where nothing at all came, replay-empty or replay-stalled "
                     "tells it.",
            .client = "Treat the outcome as unknown: the call may have been stopped half way. "
                      "Send notifications/cancelled when you do want to cancel.",
            .server = "Do not tie the handler to the connection (the request context of most web "
                      "frameworks ends with it). Let it finish, and store its response under the "
                      "stream.",
            .path = "With this server each cut costs a call: raise idle limits until it is "
                    "repaired.",
        },
        .resumption = check_disconnect,
    },
};

const struct rule_family rules_correlation =
    RULE_FAMILY("correlation", "JSON-RPC correlation", rules);
