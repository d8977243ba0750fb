/* stateless_reply.c - RULES.md section 10: what a server of 2026-07-28 answers, and what it sends
 * on the streams of subscriptions. */
#include "stateless_checks.h"

#include "pace.h"
#include "traffic.h"

#include <inttypes.h>

#define BAD_REQUEST 400
#define NOT_FOUND   404

#define CODE_HEADER_MISMATCH    (-32020)
#define CODE_MISSING_CAPABILITY (-32021)
#define CODE_VERSION            (-32022)
#define CODE_METHOD             (-32601)
#define CODE_RESOURCE           (-32002)
#define CODE_URL_ELICITATION    (-32042)
#define CODE_RESERVED_FIRST     (-32020)
#define CODE_RESERVED_LAST      (-32099)

/* What a client may still get after it closed: what was on its way, and what a server writes before
 * it takes notice. */
#define CANCEL_SLACK (100 * NS_PER_MS)

#define LEGS_AHEAD 1024

/* A message of the server in an exchange of this revision. */
struct reply {
    const struct message *m;
    const struct exch *x;
    const struct event *e; /* NULL: in a body */
};
typedef void reply_fn(struct rule_run *run, const struct session *s, const struct reply *at);

static void each_reply(struct rule_run *run, const struct session *s, reply_fn *fn)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        for (uint32_t k = 0; x->era == ERA_D && k < x->reply_count; k++)
            fn(run, s, &(struct reply){ &x->reply[k], x, NULL });
    }
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        const struct exch *x = e->msg_count > 0 ? leg_exch(s, s->leg[e->leg]) : NULL;
        for (uint32_t k = 0; x && x->era == ERA_D && k < e->msg_count; k++)
            fn(run, s, &(struct reply){ &e->msg[k], x, e });
    }
}

static struct finding *on_reply(struct rule_run *run, const struct session *s,
                                const struct reply *at)
{
    struct finding *f = finding_add(run, s);

    if (at->e)
        finding_on_event(run, f, at->e);
    else
        finding_on_exch(run, f, at->x);
    f->party = PARTY_SERVER;
    if (at->e && at->e->ambiguous)
        f->certainty = CERTAINTY_LIKELY;
    return f;
}

/* The stream of a subscription, and the request that opened it; NULL: it is none. */
static const struct message *listen_request(const struct exch *x)
{
    const struct message *m = stateless_request(x);

    return m && x->leg != NONE && message_is(m, "subscriptions/listen") ? m : NULL;
}

/* ---- errors ---- */

static int status_of_code(int64_t code)
{
    switch (code) {
    case CODE_HEADER_MISMATCH:
    case CODE_MISSING_CAPABILITY:
    case CODE_VERSION: return BAD_REQUEST;
    case CODE_METHOD: return NOT_FOUND;
    default: return 0;
    }
}

static void error_status(struct rule_run *run, const struct session *s, const struct reply *at)
{
    int status = at->m->kind == RPC_ERROR ? status_of_code(at->m->error_code) : 0;

    if (status == 0 || !stateless_request(at->x) || at->x->status == status || at->x->status == 0)
        return;
    struct finding *f = on_reply(run, s, at);
    if (at->e)
        f->severity = SEV_INFO;
    finding_message(run, f, "the error %" PRId64 " comes with status %d instead of %d%s",
                    at->m->error_code, at->x->status, status,
                    at->e ? ": an event stream had been begun" : "");
    finding_frame(run, f, at->m->at, "error %" PRId64, at->m->error_code);
    finding_frame(run, f, at->x->response, "status %d", at->x->status);
}

void check_stateless_status(struct rule_run *run, const struct session *s)
{
    each_reply(run, s, error_status);
}

static bool is_reserved(int64_t code)
{
    if (code == CODE_RESOURCE || code == CODE_URL_ELICITATION)
        return true;
    return code <= CODE_RESERVED_FIRST && code >= CODE_RESERVED_LAST && status_of_code(code) == 0;
}

static void reserved_code(struct rule_run *run, const struct session *s, const struct reply *at)
{
    if (at->m->kind != RPC_ERROR || !is_reserved(at->m->error_code))
        return;
    struct finding *f =
        finding_about(run, at->x, PARTY_SERVER, run_text(run, "%" PRId64, at->m->error_code));
    (void)s;
    finding_message(run, f,
                    "the error code %" PRId64 " is reserved, and not defined in this revision",
                    at->m->error_code);
    finding_frame(run, f, at->m->at, "error %" PRId64, at->m->error_code);
}

void check_reserved_code(struct rule_run *run, const struct session *s)
{
    each_reply(run, s, reserved_code);
}

/* ---- messages that may not be ---- */

static void server_request(struct rule_run *run, const struct session *s, const struct reply *at)
{
    if (at->m->kind != RPC_REQUEST)
        return;
    struct finding *f = on_reply(run, s, at);
    finding_message(run, f,
                    "the server sends a request (" SLICE_FMT "); in this revision it must ask by "
                    "a result with inputRequests",
                    SLICE_ARG(at->m->method));
    finding_frame(run, f, at->m->at, "the request of the server");
    finding_frame(run, f, at->x->first, "the request on whose stream it comes");
}

void check_stateless_server_request(struct rule_run *run, const struct session *s)
{
    each_reply(run, s, server_request);
}

/* At least one round trip: from the request to the head of its response. */
static int64_t round_trip(const struct exch *x)
{
    return x->response.time > x->sent.time ? x->response.time - x->sent.time : 0;
}

/* The client closed the stream, and did not only say that it has no more to send: what came
 * afterwards nobody acknowledged. */
static void after_cancel(struct rule_run *run, const struct session *s, const struct reply *at)
{
    const struct leg *l = at->e ? s->leg[at->e->leg] : NULL;

    if (!l || !leg_client_left(l) || (at->x->rflags & RECF_HAR) || at->e->acked.time ||
        !stateless_request(at->x) || l->end_at.time <= l->begin.time)
        return;
    int64_t late = at->e->begin.time - l->end_at.time;
    if (late <= round_trip(at->x) + CANCEL_SLACK)
        return;
    struct finding *f = on_reply(run, s, at);
    finding_message(run, f,
                    "the client closed the stream, which cancels the request; %s later the server "
                    "still sends messages for it",
                    run_seconds(run, late));
    finding_frame(run, f, at->e->at, "a message after the cancellation");
    finding_frame(run, f, l->end_at, "the client closes the stream");
}

void check_stateless_cancelled(struct rule_run *run, const struct session *s)
{
    each_reply(run, s, after_cancel);
}

static void log_message(struct rule_run *run, const struct session *s, const struct reply *at)
{
    const struct message *request = stateless_request(at->x);

    if (!at->e || !request || listen_request(at->x) || at->m->kind != RPC_NOTIFICATION ||
        !message_is(at->m, "notifications/message") || (request->flags & RPC_META_LOG_LEVEL))
        return;
    struct finding *f = finding_about(run, at->x, PARTY_SERVER, "log");
    finding_on_leg(run, f, s->leg[at->e->leg]);
    finding_message(run, f,
                    "the server sends log messages for a request (" SLICE_FMT ") that did not ask "
                    "for them",
                    SLICE_ARG(request->method));
    finding_frame(run, f, at->m->at, "notifications/message");
    finding_frame(run, f, at->x->first, "the request, without logLevel in its _meta");
}

void check_log_optin(struct rule_run *run, const struct session *s)
{
    each_reply(run, s, log_message);
}

static void result_type(struct rule_run *run, const struct session *s, const struct reply *at)
{
    const struct message *request = stateless_request(at->x);

    (void)s;
    if (at->m->kind != RPC_RESULT || !request || (at->m->flags & RPC_HAS_RESULT_TYPE))
        return;
    struct finding *f = finding_about(run, at->x, PARTY_SERVER, "resultType");
    finding_message(run, f, "a result (of " SLICE_FMT ") has no resultType",
                    SLICE_ARG(request->method));
    finding_frame(run, f, at->m->at, "the result");
    finding_frame(run, f, at->x->first, "the request");
}

void check_result_type(struct rule_run *run, const struct session *s)
{
    each_reply(run, s, result_type);
}

/* ---- subscriptions ---- */

typedef void listen_fn(struct rule_run *run, const struct session *s, const struct leg *l,
                       const struct message *request);

static void each_listen(struct rule_run *run, const struct session *s, listen_fn *fn)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        const struct message *request = listen_request(leg_exch(s, l));
        if (request)
            fn(run, s, l, request);
    }
}

static bool is_ack(const struct message *m)
{
    return m->kind == RPC_NOTIFICATION && message_is(m, "notifications/subscriptions/acknowledged");
}

static const struct event *first_message(const struct session *s, const struct leg *l)
{
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->msg_count > 0)
            return e;
    }
    return NULL;
}

static void listen_ack(struct rule_run *run, const struct session *s, const struct leg *l,
                       const struct message *request)
{
    const struct event *e = l->first_lost || l->gaps > 0 ? NULL : first_message(s, l);

    if (!e || is_ack(&e->msg[0]) || e->msg[0].kind == RPC_ERROR)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_leg(run, f, l);
    f->party = PARTY_SERVER;
    f->request_id = request->id;
    finding_message(run, f,
                    "the first message on the stream of a subscription is %s, not "
                    "notifications/subscriptions/acknowledged",
                    e->msg[0].method.ptr ? run_id(run, e->msg[0].method) : "a response");
    finding_frame(run, f, e->at, "the first message");
    finding_frame(run, f, leg_exch(s, l)->first, "subscriptions/listen");
}

void check_listen_ack(struct rule_run *run, const struct session *s)
{
    each_listen(run, s, listen_ack);
}

/* Responses say it by their own id; how a server ends a subscription is not settled. */
static bool needs_subscription(const struct message *m)
{
    if (m->kind == RPC_NOTIFICATION)
        return !message_is(m, "notifications/cancelled");
    return m->kind == RPC_RESULT && m->subscription.type != RPC_ID_NONE;
}

static void listen_id(struct rule_run *run, const struct session *s, const struct leg *l,
                      const struct message *request)
{
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        const struct message *m = e->msg_count > 0 ? &e->msg[0] : NULL;
        if (!m || !needs_subscription(m) || rpc_id_eq(&m->subscription, &request->id))
            continue;
        bool none = m->subscription.type == RPC_ID_NONE;
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->party = PARTY_SERVER;
        f->request_id = request->id;
        f->subject = none ? "no id" : "another id";
        finding_message(
            run, f, "a message on the stream of subscription %s carries %s%s%s",
            run_rpc_id(run, &request->id), none ? "no subscriptionId" : "the subscriptionId ",
            none ? "" : run_rpc_id(run, &m->subscription),
            rpc_id_eq_converted(&m->subscription, &request->id) ? ": another type of the same value"
                                                                : "");
        finding_frame(run, f, e->at, "the message");
        finding_frame(run, f, leg_exch(s, l)->first, "subscriptions/listen, id %s",
                      run_rpc_id(run, &request->id));
    }
}

void check_listen_id(struct rule_run *run, const struct session *s)
{
    each_listen(run, s, listen_id);
}

static const struct {
    const char *method;
    unsigned flag; /* 0: never on such a stream */
} listen_types[] = {
    { "notifications/tools/list_changed", RPC_FILTER_TOOLS },
    { "notifications/prompts/list_changed", RPC_FILTER_PROMPTS },
    { "notifications/resources/list_changed", RPC_FILTER_RESOURCES },
    { "notifications/resources/updated", RPC_FILTER_UPDATES },
    { "notifications/progress", 0 },
    { "notifications/message", 0 },
};

/* Types of extensions are not known here, and are allowed. */
static bool was_asked_for(const struct message *m, unsigned filter)
{
    for (size_t i = 0; m->kind == RPC_NOTIFICATION && i < ARRAY_LEN(listen_types); i++) {
        if (!message_is(m, listen_types[i].method))
            continue;
        if (listen_types[i].flag == 0)
            return false;
        return !(filter & RPC_HAS_FILTER) || (filter & listen_types[i].flag);
    }
    return true;
}

static void listen_type(struct rule_run *run, const struct session *s, const struct leg *l,
                        const struct message *request)
{
    unsigned filter = request->flags;

    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        const struct message *m = e->msg_count > 0 ? &e->msg[0] : NULL;
        if (m && is_ack(m) && (m->flags & RPC_HAS_FILTER))
            filter = m->flags;
        if (!m || was_asked_for(m, filter & request->flags) || !m->method.ptr)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->party = PARTY_SERVER;
        f->request_id = request->id;
        f->subject = run_id(run, m->method);
        finding_message(run, f, SLICE_FMT " comes on the stream of a subscription that %s",
                        SLICE_ARG(m->method),
                        message_is(m, "notifications/progress") ||
                                message_is(m, "notifications/message")
                            ? "never carries it"
                            : "did not ask for it, or was not granted it");
        finding_frame(run, f, e->at, "the notification");
        finding_frame(run, f, leg_exch(s, l)->first, "subscriptions/listen");
    }
}

void check_listen_type(struct rule_run *run, const struct session *s)
{
    each_listen(run, s, listen_type);
}

/* The next subscription of the same client, or NULL; not looked for among too many streams. */
static const struct exch *listens_again(const struct session *s, const struct leg *l)
{
    for (uint32_t i = l->index + 1; i < s->leg_count && i - l->index <= LEGS_AHEAD; i++) {
        const struct exch *x = leg_exch(s, s->leg[i]);
        if (listen_request(x) && x->first.time > l->end_at.time && same_agent(x, leg_exch(s, l)))
            return x;
    }
    return NULL;
}

static void listen_end(struct rule_run *run, const struct session *s, const struct leg *l,
                       const struct message *request)
{
    const struct request *r = request->request == NONE ? NULL : s->request[request->request];
    bool ended = l->ended && (l->end == END_COMPLETE || leg_cut(l)) && l->gaps == 0;

    if (!ended || !r || r->response || leg_exch(s, l)->close_not_known)
        return;
    const struct exch *again = listens_again(s, l);
    struct finding *f = finding_add(run, s);
    finding_on_leg(run, f, l);
    f->request_id = request->id;
    f->party = leg_exch(s, l)->middlebox ? PARTY_PATH : PARTY_UNKNOWN;
    finding_message(run, f, "the stream of a subscription ends (%s) without a response; %s",
                    end_kind_text(l->end),
                    again ? run_text(run, "the client subscribes again %s later",
                                     run_seconds(run, again->first.time - l->end_at.time))
                          : "the client does not subscribe again");
    finding_frame(run, f, l->end_at, "the end of the stream");
    finding_frame(run, f, leg_exch(s, l)->first, "subscriptions/listen");
    if (again)
        finding_frame(run, f, again->first, "subscriptions/listen again");
}

void check_listen_end(struct rule_run *run, const struct session *s)
{
    each_listen(run, s, listen_end);
}
