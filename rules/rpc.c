/* rpc.c - RULES.md section 9, the JSON-RPC part: messages that are malformed in themselves,
 * batches, progress tokens and pings. */
#include "spoken.h"

#include <stdlib.h>

#define LABC (ERA_L | ERA_A | ERA_B | ERA_C)
#define BCD  (ERA_B | ERA_C | ERA_D)

#define PING SLICE_LIT("ping")

static const char *kind_text(const struct message *m)
{
    static const char *const text[] = { "object", "request", "notification", "result", "error" };

    return text[m->kind];
}

static const char *method_text(struct rule_run *run, struct slice method)
{
    return run_text(run, SLICE_FMT, (int)(method.len < 60 ? method.len : 60),
                    (const char *)method.ptr);
}

/* By its name, with or without an id. */
static bool is_notification(const struct message *m)
{
    return slice_starts(m->method, SLICE_LIT("notifications/"));
}

/* ---- one message ---- */

/* 1.0 is an integer to many readers, and no integer to others. */
static bool is_whole_fraction(struct slice token)
{
    const uint8_t *dot = memchr(token.ptr, '.', token.len);

    if (!dot)
        return false;
    for (const uint8_t *p = dot + 1; p < token.ptr + token.len; p++) {
        if (*p != '0')
            return false;
    }
    return true;
}

static void on_id(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    const struct message *m = at->m;
    bool null = m->id.type == RPC_ID_NULL && m->kind != RPC_ERROR;

    if (m->kind == RPC_OTHER || (m->id.type != RPC_ID_BAD && !null) || is_notification(m))
        return;
    struct finding *f = spoken_finding(
        run, s, at, run_text(run, "a %s with the id %s", kind_text(m), run_rpc_id(run, &m->id)));
    finding_fold(f, run_text(run, "%s of the %s: %s", kind_text(m), spoken_side(at),
                             null ? "null" : "type"));
    if (m->id.type == RPC_ID_BAD && is_whole_fraction(m->id.text))
        f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f, "the %s sent a %s whose id is %s: an id is a string or an integer",
                    spoken_side(at), kind_text(m), run_rpc_id(run, &m->id));
}

static void check_id(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_id);
}

/* What is wrong with the members that make a message what it is; NULL: nothing. */
static const char *shape_fault(const struct spoken *at)
{
    const struct message *m = at->m;
    unsigned answers = m->flags & (RPC_HAS_RESULT | RPC_HAS_ERROR);
    bool marked = (m->flags & RPC_VERSION_OK) || m->id.type != RPC_ID_NONE;

    if (answers == (RPC_HAS_RESULT | RPC_HAS_ERROR))
        return "both a result and an error";
    if ((m->kind == RPC_REQUEST || m->kind == RPC_NOTIFICATION) && answers)
        return "a method and the answer to one";
    if (m->kind != RPC_OTHER || (at->e && !marked))
        return NULL; /* data of an event that is none at all: sse-data-not-jsonrpc */
    if (!at->from_client && !at->e && !marked && !exch_carries_request(at->x))
        return NULL; /* what comes back for a notification is no message: post-oneway-not-202 */
    if ((m->flags & RPC_ELEMENT) && at->x->era != ERA_A)
        return NULL; /* what the array holds is of no matter where arrays are not allowed */
    return "neither a method, a result nor an error";
}

static void on_shape(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    const char *fault = shape_fault(at);

    if (!fault)
        return;
    struct finding *f = spoken_finding(run, s, at, run_text(run, "the message has %s", fault));
    if (at->m->id.type != RPC_ID_STRING && at->m->id.type != RPC_ID_INT)
        f->subject = fault;
    finding_message(run, f, "the %s sent a message with %s", spoken_side(at), fault);
}

static void check_shape(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_shape);
}

static void on_notification_id(struct rule_run *run, const struct session *s,
                               const struct spoken *at)
{
    const struct message *m = at->m;

    if (m->kind != RPC_REQUEST || !is_notification(m))
        return;
    const char *method = method_text(run, m->method);
    struct finding *f = spoken_finding(
        run, s, at, run_text(run, "%s with the id %s", method, run_rpc_id(run, &m->id)));
    finding_message(run, f,
                    "the %s sent %s with an id: that makes a request of it, which nobody answers",
                    spoken_side(at), method);
}

static void check_notification_id(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_notification_id);
}

static void on_version(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    if (at->m->kind == RPC_OTHER || (at->m->flags & RPC_VERSION_OK))
        return;
    struct finding *f = spoken_finding(
        run, s, at, run_text(run, "a %s without \"jsonrpc\":\"2.0\"", kind_text(at->m)));
    finding_fold(f, spoken_side(at));
    finding_message(run, f,
                    "the %s sends messages whose `jsonrpc` member is missing or not \"2.0\"",
                    spoken_side(at));
}

static void check_version(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_version);
}

static void on_error(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    const struct message *m = at->m;

    if (m->kind != RPC_ERROR || !(m->flags & RPC_ERROR_MALFORMED))
        return;
    struct finding *f = spoken_finding(run, s, at, "the error response");
    finding_message(run, f,
                    "the %s sent an error without an integer `code` or without a `message` text",
                    spoken_side(at));
}

static void check_error(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_error);
}

static void on_null_id(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    if (at->m->kind != RPC_ERROR || at->m->id.type != RPC_ID_NULL)
        return;
    struct finding *f = spoken_finding(run, s, at, "an error with the id null");
    finding_fold(f, spoken_side(at));
    finding_message(run, f,
                    "the %s sent an error whose id is null: JSON-RPC asks for that where the id "
                    "could not be read, MCP's schema has the id absent",
                    spoken_side(at));
}

static void check_null_id(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_null_id);
}

static void on_duplicate(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    if (!(at->m->flags & RPC_DUPLICATE_KEYS))
        return;
    struct finding *f = spoken_finding(run, s, at, run_text(run, "the %s", kind_text(at->m)));
    finding_message(
        run, f,
        "the %s sent a message with one of id, method, params, result, error or jsonrpc "
        "twice: which one counts depends on the reader",
        spoken_side(at));
}

static void check_duplicate(struct rule_run *run, const struct session *s)
{
    spoken_each(run, s, on_duplicate);
}

/* ---- a notification that is answered ---- */

static bool only_notifications(const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind != RPC_NOTIFICATION)
            return false;
    }
    return x->msg_count > 0 && x->body_whole;
}

/* The first response in the exchange, or NULL. */
static const struct message *response_in(const struct session *s, const struct exch *x)
{
    for (uint32_t i = 0; i < x->reply_count; i++) {
        if (rpc_is_response(x->reply[i].kind))
            return &x->reply[i];
    }
    const struct leg *l = x->leg == NONE ? NULL : s->leg[x->leg];
    for (const struct event *e = l ? leg_event_after(s, l, NONE) : NULL; e;
         e = leg_event_after(s, l, e->index)) {
        if ((e->marks & EV_RESPONSE) && e->first == e->index && e->msg_count > 0)
            return &e->msg[0];
    }
    return NULL;
}

static void check_answered(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!exch_speaks(s, x) || !only_notifications(x) || x->status >= 400)
            continue;
        const struct message *m = response_in(s, x);
        if (!m)
            continue;
        struct finding *f = finding_add(run, s);
        f->exch = x->index;
        f->party = PARTY_SERVER;
        finding_message(run, f, "the server answered a notification (%s) with a JSON-RPC %s",
                        method_text(run, x->msg[0].method), kind_text(m));
        finding_frame(run, f, m->at, "the %s, id %s", kind_text(m), run_rpc_id(run, &m->id));
        finding_frame(run, f, x->first, "the notification");
    }
}

/* ---- batches ---- */

static struct finding *on_body(struct rule_run *run, const struct session *s, const struct exch *x,
                               bool reply)
{
    struct finding *f = finding_add(run, s);

    f->exch = x->index;
    f->party = reply ? PARTY_SERVER : PARTY_CLIENT;
    f->subject = reply ? "reply" : "body";
    finding_frame(run, f, reply ? x->last : x->first, reply ? "the response body" : "the POST");
    return f;
}

static bool has_reply(const struct session *s, const struct exch *x)
{
    return exch_speaks(s, x) && x->status >= 200 && x->status < 300 && x->reply_present &&
           x->reply_whole && !x->undecodable;
}

static void check_batch(struct rule_run *run, const struct session *s)
{
    struct spoken_targets targets;

    spoken_targets(s, &targets);
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!rule_surely_in_era(run->rule, x->era) || !exch_should_speak(s, &targets, x))
            continue;
        if (x->batch && x->body_status == RPC_OK)
            finding_message(run, on_body(run, s, x, false),
                            "the client posted an array of %u: revision %s has no batches",
                            x->msg_count, era_text(x->era));
        if (has_reply(s, x) && x->reply_batch && x->reply_status == RPC_OK)
            finding_message(run, on_body(run, s, x, true),
                            "the server answered with an array of %u: revision %s has no batches",
                            x->reply_count, era_text(x->era));
    }
}

static void check_batch_mixed(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool answers = false;
        bool asks = false;
        if (!x->batch || !rule_in_era(run->rule, x->era) || !exch_speaks(s, x))
            continue;
        for (uint32_t k = 0; k < x->msg_count; k++) {
            answers |= rpc_is_response(x->msg[k].kind);
            asks |= x->msg[k].kind == RPC_REQUEST || x->msg[k].kind == RPC_NOTIFICATION;
        }
        if (answers && asks)
            finding_message(
                run, on_body(run, s, x, false),
                "the client posted responses and requests or notifications in one array");
    }
}

static void empty_events(struct rule_run *run, const struct session *s)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (!e->batch || e->status != RPC_OK || e->msg_count > 0 || e->first != e->index)
            continue;
        const struct leg *l = s->leg[e->leg];
        if (!rule_in_era(run->rule, leg_exch(s, l)->era) || !leg_speaks(s, l))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        f->party = PARTY_SERVER;
        finding_message(run, f, "the data of an event is an empty array");
        finding_frame(run, f, e->at, "the event");
    }
}

static void check_batch_empty(struct rule_run *run, const struct session *s)
{
    struct spoken_targets targets;

    if (!session_speaks(s))
        return;
    spoken_targets(s, &targets);
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!rule_in_era(run->rule, x->era) || !exch_should_speak(s, &targets, x))
            continue;
        if (x->batch && x->body_status == RPC_OK && x->msg_count == 0)
            finding_message(run, on_body(run, s, x, false), "the client posted an empty array");
        if (has_reply(s, x) && x->reply_batch && x->reply_status == RPC_OK && x->reply_count == 0)
            finding_message(run, on_body(run, s, x, true),
                            "the server answered with an empty array");
    }
    empty_events(run, s);
}

static void check_batch_initialize(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->batch && x->initialize && rule_in_era(run->rule, x->era))
            finding_message(run, on_body(run, s, x, false),
                            "the client sent `initialize` within an array of %u", x->msg_count);
    }
}

/* ---- bodies that cannot be read ---- */

static const char *body_fault(enum rpc_status st)
{
    if (st == RPC_NOT_JSON)
        return "no valid JSON in UTF-8";
    return st == RPC_NOT_OBJECT ? "JSON, but neither an object nor an array" : NULL;
}

static void on_unreadable(struct rule_run *run, const struct session *s, const struct exch *x,
                          bool reply)
{
    const char *fault = body_fault(reply ? x->reply_status : x->body_status);

    if (!fault)
        return;
    struct finding *f = on_body(run, s, x, reply);
    if (x->flags & RECF_HAR)
        f->certainty = CERTAINTY_LIKELY; /* a recorder may have changed the text */
    finding_message(run, f, "%s is %s",
                    reply ? "the server's reply to a request" : "the body that the client posted",
                    fault);
}

static void check_json(struct rule_run *run, const struct session *s)
{
    struct spoken_targets targets;

    spoken_targets(s, &targets);
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!exch_should_speak(s, &targets, x))
            continue;
        if (x->body_whole && x->request_gaps == 0)
            on_unreadable(run, s, x, false);
        if (has_reply(s, x) && (x->rflags & RECF_JSON) && exch_carries_request(x))
            on_unreadable(run, s, x, true);
    }
}

/* ---- progress ---- */

/* Of a stream with endless legs only the last ones can be open. */
#define LAST_LEGS 8

/* When the last connection that could carry the response ended. */
static int64_t closed_at(const struct session *s, const struct exch *x)
{
    const struct stream *st = x->leg == NONE ? NULL : s->stream[s->leg[x->leg]->stream];
    int64_t end = x->ended && x->end_kind != END_OPEN ? x->end.time : INT64_MAX;

    for (uint32_t i = 0; st && i < st->leg_count && i < LAST_LEGS; i++) {
        const struct leg *l = s->leg[st->leg[st->leg_count - 1 - i]];
        if (!l->ended || l->end == END_OPEN)
            return INT64_MAX;
        if (l->end_at.time > end)
            end = l->end_at.time;
    }
    return end;
}

static int64_t earlier_of(int64_t a, struct place b)
{
    return b.time && b.time < a ? b.time : a;
}

/* When the request was over for certain: answered, cancelled, or with no connection left to be
 * answered on. */
static int64_t active_until(const struct session *s, const struct request *r)
{
    int64_t t = r->from_server ? INT64_MAX : closed_at(s, s->exch[r->exch]);

    if (r->from_server && r->leg != NONE && s->leg[r->leg]->ended &&
        s->leg[r->leg]->end != END_OPEN)
        t = s->leg[r->leg]->end_at.time;
    t = earlier_of(t, r->answered);
    t = earlier_of(t, r->cancelled);
    if (r->response)
        t = earlier_of(t, r->response->at);
    if (r->http_error)
        t = earlier_of(t, s->exch[r->exch]->response);
    return t;
}

static int compare_tokens(const void *va, const void *vb)
{
    const struct request *a = *(const struct request *const *)va;
    const struct request *b = *(const struct request *const *)vb;

    if (a->from_server != b->from_server)
        return a->from_server ? 1 : -1;
    if (a->msg->token.type != b->msg->token.type)
        return a->msg->token.type < b->msg->token.type ? -1 : 1;
    if (a->msg->token.hash != b->msg->token.hash)
        return a->msg->token.hash < b->msg->token.hash ? -1 : 1;
    if (a->at.time != b->at.time)
        return a->at.time < b->at.time ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool same_token(const struct request *a, const struct request *b)
{
    return a->from_server == b->from_server && rpc_id_eq(&a->msg->token, &b->msg->token);
}

/* Without a session id two clients behind one address look like one: only a shared connection
 * tells. A request sent again under its own id is request-id-reused. */
static bool same_sender(const struct session *s, const struct request *a, const struct request *b)
{
    if (rpc_id_eq(&a->msg->id, &b->msg->id))
        return false;
    return s->id.ptr || s->exch[a->exch]->conn == s->exch[b->exch]->conn;
}

/* Requests with a token, by sender, token and time; the caller frees. */
static const struct request **token_requests(const struct rule_run *run, const struct session *s,
                                             size_t *ret_count)
{
    const struct request **list = mem_alloc((s->request_count + 1) * sizeof(struct request *));
    size_t n = 0;

    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (r->msg->token.type != RPC_ID_NONE && rule_in_era(run->rule, s->exch[r->exch]->era))
            list[n++] = r;
    }
    qsort(list, n, sizeof(struct request *), compare_tokens);
    *ret_count = n;
    return list;
}

static void check_token(struct rule_run *run, const struct session *s)
{
    size_t count;
    const struct request **list = token_requests(run, s, &count);
    const struct request *active = NULL; /* of this token, the one that lasts longest */

    for (size_t i = 0; i < count; i++) {
        const struct request *r = list[i];
        const struct request *old = active && same_token(active, r) ? active : NULL;
        if (!old || active_until(s, r) >= active_until(s, old))
            active = r;
        if (!old || !same_sender(s, old, r) || active_until(s, old) <= r->at.time)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        f->party = r->from_server ? PARTY_SERVER : PARTY_CLIENT;
        finding_message(run, f,
                        "request %s carries the progress token %s while request %s with the same "
                        "token is still active: progress cannot be told apart",
                        run_rpc_id(run, &r->msg->id), run_rpc_id(run, &r->msg->token),
                        run_rpc_id(run, &old->msg->id));
        finding_frame(run, f, r->at, "request %s", run_rpc_id(run, &r->msg->id));
        finding_frame(run, f, old->at, "request %s, unanswered", run_rpc_id(run, &old->msg->id));
    }
    free(list);
}

/* The stream's own POST has a request with this token. */
static bool own_token(const struct session *s, const struct stream *st, const struct rpc_id *token)
{
    const struct exch *x = s->exch[st->exch];

    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (rpc_id_eq(&x->msg[i].token, token))
            return true;
    }
    return false;
}

/* The active request that a progress on another stream is about, or NULL. */
static const struct request *foreign_progress(const struct session *s, const struct spoken *at)
{
    const struct message *m = at->m;

    if (at->from_client || !at->e || m->kind != RPC_NOTIFICATION || m->request == NONE ||
        m->token.type == RPC_ID_NONE || !slice_eq(m->method, SLICE_LIT("notifications/progress")))
        return NULL;
    const struct request *r = s->request[m->request];
    const struct leg *l = s->leg[at->e->leg];
    const struct stream *st = s->stream[l->stream];
    if (r->from_server || r->stream == st->index || st->kind == STREAM_UNKNOWN || l->resumed ||
        (m->flags & RPC_RELATED_TASK) || (r->msg->flags & RPC_HAS_TASK) ||
        own_token(s, st, &m->token))
        return NULL;
    return r->at.time < m->at.time && active_until(s, r) > m->at.time ? r : NULL;
}

static void on_progress(struct rule_run *run, const struct session *s, const struct spoken *at)
{
    const struct request *r = foreign_progress(s, at);

    if (!r)
        return;
    bool get = s->stream[s->leg[at->e->leg]->stream]->kind == STREAM_STANDALONE;
    struct finding *f = spoken_finding(
        run, s, at, run_text(run, "progress for token %s", run_rpc_id(run, &at->m->token)));
    finding_fold(f, NULL);
    f->request = r->index;
    f->request_id = r->msg->id;
    if (at->x->era == ERA_D)
        f->severity = SEV_ERROR;
    finding_message(run, f, "progress of request %s came on %s while the request was running",
                    run_rpc_id(run, &r->msg->id),
                    get ? "the standalone stream" : "the stream of another POST");
    finding_frame(run, f, r->at, "request %s", run_rpc_id(run, &r->msg->id));
}

static void check_progress(struct rule_run *run, const struct session *s)
{
    if (!s->legacy)
        spoken_each(run, s, on_progress);
}

/* ---- ping ---- */

static bool is_ping(const struct rule_run *run, const struct session *s, const struct request *r)
{
    return slice_eq(r->msg->method, PING) && rule_in_era(run->rule, s->exch[r->exch]->era) &&
           (r->msg->id.type == RPC_ID_STRING || r->msg->id.type == RPC_ID_INT);
}

/* A server's ping reached the client, as far as can be seen. */
static bool ping_arrived(const struct session *s, const struct request *r)
{
    const struct event *e = event_at(s, r->msg->event);

    return !r->from_server || (e && !e->no_time && event_delivered(s, e));
}

/* The client answers by POST: the evidence must hold its POSTs. */
static bool answers_are_visible(const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (s->exch[i]->has_request && s->exch[i]->method == HTTP_METHOD_POST)
            return true;
    }
    return false;
}

/* The server finished the exchange of a client's ping, and nothing can come any more. */
static bool over_without_answer(const struct session *s, const struct request *r)
{
    const struct exch *x = s->exch[r->exch];
    const struct leg *l = x->leg == NONE ? NULL : s->leg[x->leg];

    if (r->from_server || s->legacy || !x->ended || x->end_kind != END_COMPLETE ||
        x->close_not_known)
        return false;
    return !l || (l->last_id == NONE && l->tail_bytes == 0);
}

static bool ping_lost(const struct rule_run *run, const struct session *s, const struct request *r)
{
    int64_t until = s->deleted.time ? s->deleted.time : s->last.time;

    if (r->response || r->http_error || r->cancelled.time || s->exch[r->exch]->undecodable)
        return false;
    if (over_without_answer(s, r))
        return true;
    return until - r->at.time >= run->limit->idle_timeout && ping_arrived(s, r);
}

static void check_ping(struct rule_run *run, const struct session *s)
{
    if (s->gaps > 0 || s->orphan || !answers_are_visible(s))
        return;
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!is_ping(run, s, r) || !ping_lost(run, s, r))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        finding_fold(f, r->from_server ? "server" : "client");
        f->party = r->from_server ? PARTY_CLIENT : PARTY_SERVER;
        finding_message(run, f, "the %s sent a ping, and the %s never answered it",
                        r->from_server ? "server" : "client", r->from_server ? "client" : "server");
        finding_frame(run, f, r->at, "ping, id %s", run_rpc_id(run, &r->msg->id));
    }
}

static void check_ping_result(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!is_ping(run, s, r) || !r->response || r->response->kind != RPC_RESULT ||
            (r->response->flags & RPC_RESULT_EMPTY))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        finding_fold(f, r->from_server ? "client" : "server");
        f->party = r->from_server ? PARTY_CLIENT : PARTY_SERVER;
        finding_message(run, f, "the %s answers ping with more than an empty result",
                        r->from_server ? "client" : "server");
        finding_frame(run, f, r->response->at, "result of ping, id %s",
                      run_rpc_id(run, &r->msg->id));
    }
}

/* ---- the table ---- */

#define JSONRPC "JSON-RPC 2.0 "

static const struct rule rules[] = {
    {
        .id = "rpc-id-invalid",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A request or response whose id is null, a truth value, an object, an array or "
                   "a fraction.",
        .why = "Such an id cannot be matched: the response to it is lost, or is taken for another.",
        .advice = "Sender: use strings or integers as ids.",
        .source = "MCP, Base Protocol > Requests (string or integer, MUST NOT be null); " JSONRPC "4",
        .explain = {
            .picture = "client -> server   "
                       "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/call\"}\n"
                       "server -> client   which request is this the answer to?\n",
            .needs = "The message.",
            .blind = "1.0 is an integer to some readers: reported as likely only.",
            .client = "Count requests with an integer, or use a UUID as a string.",
            .server = "Refuse such a request with -32600. Give the id back as it came, and of the "
                      "same type.",
        },
        .check = check_id,
    },
    {
        .id = "rpc-both-or-neither",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A message with a result and an error, or with neither method, result nor "
                   "error.",
        .why = "Readers disagree on what it is: one takes it for a success, another for a failure, "
               "a third drops it and the request is never answered.",
        .advice = "Sender: exactly one of method, result and error. Leave out what is null.",
        .source = JSONRPC "5 (either result or error MUST be included, not both)",
        .explain = {
            .picture = "server -> client   {\"id\":3,\"result\":{},\"error\":null}   both\n"
                       "                   {\"jsonrpc\":\"2.0\",\"id\":3}          neither\n",
            .needs = "The message: in a POST, in the JSON reply to one, or in an event.",
            .blind = "Bodies of refusals are looked at only where they say jsonrpc 2.0.",
            .client = "Treat a response with an error member that is not null as an error.",
            .server = "A serialiser that writes null members is the usual cause.",
        },
        .check = check_shape,
    },
    {
        .id = "rpc-notification-with-id",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A message of the method notifications/... that has an id.",
        .why = "The id makes a request of it: the receiver answers with an error, or the sender "
               "waits for an answer that never comes.",
        .advice = "Sender: no id in notifications, not even null.",
        .source = "MCP, Base Protocol > Notifications (MUST NOT include an ID); " JSONRPC "4.1",
        .explain = {
            .picture = "client -> server   {\"id\":1,\"method\":\"notifications/initialized\"}\n",
            .needs = "The message.",
            .blind = "Notifications whose method does not begin with notifications/.",
            .client = "Look for a helper that numbers every message.",
            .server = "Answer with -32600 or -32601, so that nobody waits.",
        },
        .check = check_notification_id,
    },
    {
        .id = "rpc-response-to-notification",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A JSON-RPC response in the exchange of a POST that held notifications only.",
        .why = "The response belongs to nothing: clients report an unknown id or fail.",
        .advice = "Server: answer notifications with 202 and no body, or with an HTTP error.",
        .source = "MCP, Transports > Sending Messages (202, no body); " JSONRPC "4.1 (MUST NOT reply)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST notifications/.. ->|\n"
                       "  |<- 200 {\"result\":{}} ------|  expected: 202 and nothing\n",
            .needs = "The POST and its reply.",
            .blind = "A JSON-RPC error in a refusal (4xx, 5xx) is allowed and not meant.",
            .client = "Ignore it.",
            .server = "Decide by the message, not by the HTTP method: no request, no response.",
        },
        .check = check_answered,
    },
    {
        .id = "rpc-version",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "The member `jsonrpc` is missing or not \"2.0\".",
        .why = "Strict readers drop the message: a request or its response is lost.",
        .advice = "Sender: \"jsonrpc\":\"2.0\" in every message, as a string.",
        .source = JSONRPC "4 and 5 (MUST be exactly \"2.0\")",
        .explain = {
            .picture = "client -> server   {\"id\":1,\"method\":\"ping\"}      missing\n"
                       "                   {\"jsonrpc\":2.0, ...}          a number\n",
            .needs = "The message, in a session that is known to speak JSON-RPC.",
            .blind = "Plain JSON of neighbours on other targets is no fault and not looked at.",
            .client = "Build messages in one place.",
            .server = "Build messages in one place; in batches each element needs the member.",
        },
        .check = check_version,
    },
    {
        .id = "rpc-error-malformed",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "An error without an integer code or without a message text.",
        .why = "Readers that validate it drop the whole response: the request is never settled.",
        .advice = "Sender: {\"code\": integer, \"message\": \"text\"}; more goes into data.",
        .source = JSONRPC "5.1; MCP, Base Protocol > Responses",
        .explain = {
            .picture = "server -> client   {\"id\":3,\"error\":\"not found\"}            a text\n"
                       "                   {\"id\":3,\"error\":{\"code\":\"E_IO\"}}     no "
                       "integer\n",
            .needs = "The response.",
            .blind = "Plain JSON in a refusal (4xx, 5xx) is no JSON-RPC error and not meant.",
            .client = "Settle the request as failed even when the error does not validate.",
            .server = "Map exceptions to -32603 with a message.",
        },
        .check = check_error,
    },
    {
        .id = "rpc-error-null-id",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "An error with the id null.",
        .why = "It obeys JSON-RPC and no schema of MCP: clients that validate messages drop it, "
               "and the reason of a refusal is not shown.",
        .advice = "Server: leave the id out of an error that belongs to no request.",
        .source = JSONRPC "5 (null where the id could not be read); MCP schema (id absent from "
                  "2025-11-25 on)",
        .explain = {
            .picture = "server -> client   400 {\"jsonrpc\":\"2.0\",\"error\":{...},\"id\":null}\n",
            .needs = "The error, in a body or an event.",
            .blind = "Whether the client validates.",
            .client = "Accept both, absent and null.",
            .server = "Where the request's id is known, give it back.",
            .known = "The TypeScript and Go SDK servers write null (read in source).",
        },
        .check = check_null_id,
    },
    {
        .id = "rpc-batch-not-allowed",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = BCD,
        .summary = "An array as a body, in a revision without batches.",
        .why = "Servers refuse it whole: none of its requests is answered.",
        .advice = "Sender: one message a POST, one message a reply.",
        .source = "MCP 2025-06-18, changelog (batching removed); Transports (a single message)",
        .explain = {
            .picture = "client -> server   POST [{...},{...}]   legal in 2025-03-26 only\n",
            .needs = "The negotiated revision, and the body.",
            .blind = "Nothing is said where the revision is not known. Arrays in events: "
                     "sse-batch.",
            .client = "Send the messages one by one; HTTP/2 makes that cheap.",
            .server = "Refuse with 400, so that the client does not wait.",
        },
        .check = check_batch,
    },
    {
        .id = "rpc-batch-mixed",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_A,
        .summary = "Responses together with requests or notifications in one posted array.",
        .why = "The reply of the server has two forms, 202 or a stream, and cannot have both.",
        .advice = "Client: post responses apart from requests and notifications.",
        .source = "MCP 2025-03-26, Transports > Sending Messages (an array of the one or the "
                  "other)",
        .explain = {
            .picture = "client -> server   POST "
                       "[{\"id\":1,\"result\":{}},{\"id\":2,\"method\":...}]\n",
            .needs = "The body of the POST.",
            .blind = "In revisions without batches the array itself is the fault.",
            .client = "Two POSTs.",
            .server = "Refuse with 400.",
        },
        .check = check_batch_mixed,
    },
    {
        .id = "rpc-batch-empty",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_A,
        .summary = "An empty array where a batch should be.",
        .why = "It is no valid request and has no response: whoever waits for one waits for ever.",
        .advice = "Sender: send nothing where there is nothing to send.",
        .source = JSONRPC "6 (an array with at least one value)",
        .explain = {
            .picture = "client -> server   POST []\n",
            .needs = "The body, or the event's data.",
            .blind = "In revisions without batches the array itself is the fault.",
            .client = "Check the queue before posting it.",
            .server = "Nothing is to be returned for a batch of notifications: 202.",
        },
        .check = check_batch_empty,
    },
    {
        .id = "rpc-initialize-in-batch",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_A,
        .summary = "`initialize` within an array.",
        .why = "The other requests of the array would run before anything is negotiated.",
        .advice = "Client: send `initialize` alone, and wait for its response.",
        .source = "MCP 2025-03-26, Lifecycle > Initialization (MUST NOT be part of a batch)",
        .explain = {
            .picture = "client -> server   POST [{initialize},{tools/list}]\n",
            .needs = "The body of the POST.",
            .blind = "Nothing.",
            .client = "Initialize first, then batch.",
            .server = "Refuse with 400.",
        },
        .check = check_batch_initialize,
    },
    {
        .id = "rpc-duplicate-keys",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A message has one of its members twice.",
        .why = "Parsers take the first, the last, or refuse: two parties see two messages, which "
               "is also a way round a gateway's checks.",
        .advice = "Sender: write each member once. Gateways: refuse such messages.",
        .source = "RFC 8259 4 (names SHOULD be unique; behaviour is unpredictable otherwise)",
        .explain = {
            .picture = "client -> server   {\"id\":1,\"id\":2,\"method\":\"tools/call\"}\n",
            .needs = "The message.",
            .blind = "Members within params, result or error.",
            .client = "Look for a message that is put together as text.",
            .server = "Look for a message that is put together as text.",
            .path = "A gateway that reads and writes messages anew removes the doubt.",
        },
        .check = check_duplicate,
    },
    {
        .id = "rpc-invalid-json",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A body that should be JSON-RPC is no valid JSON in UTF-8.",
        .why = "Nothing in it can be read: no request is carried out, no response is seen.",
        .advice = "Sender: one complete JSON document a body, in UTF-8.",
        .source = JSONRPC "4.2, 5.1 (-32700); RFC 8259; MCP, Transports (MUST be UTF-8)",
        .explain = {
            .picture = "client -> server   POST {\"id\":1,...}{\"id\":2,...}   two documents\n",
            .needs = "The whole body; of a POST to a target that took JSON-RPC elsewhere.",
            .blind = "Bodies with a hole, an unknown coding, or past the ceiling. Data of events: "
                     "sse-data-not-jsonrpc.",
            .client = "Look for a body that is cut at a length counted in characters, not bytes.",
            .server = "Answer with 400 and -32700.",
            .path = "A gateway that changes bodies must change Content-Length too.",
        },
        .check = check_json,
    },
    {
        .id = "progress-token-reused",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "Two active requests of one sender carry the same progress token.",
        .why = "Progress of the one is shown as progress of the other, and keeps its time-out from "
               "running.",
        .advice = "Sender: a token of its own for each request, such as the request's id.",
        .source = "MCP, Progress (tokens MUST be unique across all active requests)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- id 1, token \"p\" ------->|\n"
                       "  |-- id 2, token \"p\" ------->|  1 is not answered yet\n"
                       "  |<- progress of \"p\" --------|  whose?\n",
            .needs = "Both requests, and that nothing had ended the first one.",
            .blind = "Without session ids two clients behind one address look like one: only "
                     "requests on one connection are compared then. A request that is sent again "
                     "under its own id is request-id-reused.",
            .client = "Count tokens per session, not per call.",
            .server = "The same holds for requests to the client.",
        },
        .check = check_token,
    },
    {
        .id = "progress-on-foreign-stream",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_A | BCD,
        .summary = "Progress of a running request came on the stream of another one, or on the "
                   "standalone stream.",
        .why = "Clients that bind progress to the request's own stream miss it and time out; after "
               "a break it is replayed on the wrong stream.",
        .advice = "Server: send progress on the stream of the request that it is about.",
        .source = "MCP 2025-03-26 to 2025-11-25, Transports (messages SHOULD relate to the "
                  "originating request; those of a GET stream SHOULD be unrelated); 2026-07-28: "
                  "MUST",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST id 1, token \"p\" -->|\n"
                       "  |-- POST id 2 ------------->|\n"
                       "  |<- on 2: progress of \"p\" --|  belongs on 1\n",
            .needs = "The request with the token, still running, and its stream still open.",
            .blind = "Resumed legs (replay-foreign-stream) and messages of tasks, which may come "
                     "anywhere, are left out.",
            .client = "Match progress by its token alone.",
            .server = "Hand the request's context to whoever reports progress.",
        },
        .check = check_progress,
    },
    {
        .id = "ping-unanswered",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = LABC,
        .summary = "A ping was never answered.",
        .why = "The sender may take the other side for dead and end the connection.",
        .advice = "Receiver: answer ping at once with an empty result, whatever else is running.",
        .source = "MCP, Ping (the receiver MUST respond promptly)",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- data: {id 7, ping} -----|\n"
                       "  |          ...              |  no POST with the result of 7\n",
            .needs = "The ping delivered, and a session that went on for the idle time-out (60 s) "
                     "after it; or an exchange that ended without the answer.",
            .blind = "Sessions with a hole in the evidence are not judged. An answer that the "
                     "server refused counts as one.",
            .client = "Answer pings of every stream, the standalone one too.",
            .server = "Do not queue ping behind running calls.",
        },
        .check = check_ping,
    },
    {
        .id = "ping-result-not-empty",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = LABC,
        .summary = "The result of a ping is not empty.",
        .why = "Readers that validate an empty result refuse it, and take the other side for dead.",
        .advice = "Receiver: answer ping with {\"result\":{}}.",
        .source = "MCP, Ping (an empty response)",
        .explain = {
            .picture = "server -> client   {\"id\":7,\"result\":{\"status\":\"ok\"}}\n",
            .needs = "The response.",
            .blind = "A member _meta is allowed.",
            .client = "Accept any result of a ping.",
            .server = "Accept any result of a ping.",
        },
        .check = check_ping_result,
    },
};

const struct rule_family rules_rpc = RULE_FAMILY("rpc", "JSON-RPC", rules);
