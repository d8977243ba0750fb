/* http_start.c - RULES.md section 9: how a session begins, and the older transport HTTP+SSE. */
#include "http_checks.h"

#include "table.h"
#include "traffic.h"

/* A request that has to wait for the handshake. */
static bool must_wait(const struct message *m)
{
    return m->kind == RPC_REQUEST && !message_is(m, "initialize") && !message_is(m, "ping");
}

static const struct message *first_that_waits(const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (must_wait(&x->msg[i]))
            return &x->msg[i];
    }
    return NULL;
}

/* Sessions without an id: all that one address sent to one endpoint. */
static bool is_pool(const struct session *s)
{
    return !s->id.ptr && !s->orphan && !s->legacy;
}

static struct sightings initialize_requests(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            if (x->initialize)
                sightings_add(&all,
                              (struct sighting){ who_is_at(x), x->first.time, s, x, s->id.ptr });
        }
    }
    sightings_sort(&all);
    return all;
}

/* ---- init-not-first ---- */

/* The stream that named the endpoint was seen from its begin: so was all that came of it. */
static void legacy_not_first(struct rule_run *run, const struct session *s)
{
    if (s->gaps > 0 || s->leg_count == 0 || s->leg[0]->first_lost)
        return;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->method != HTTP_METHOD_POST || x->msg_count == 0)
            continue;
        if (!must_wait(&x->msg[0]))
            return;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "legacy");
        finding_message(run, f, "the first message of the session is " SLICE_FMT ", not initialize",
                        SLICE_ARG(x->msg[0].method));
        finding_frame(run, f, x->first, "the first message of the client");
        finding_frame(run, f, s->leg[0]->begin, "the stream of this session begins");
        return;
    }
}

/* Refused, and not for reasons that have nothing to do with the handshake. */
static bool refused_as_early(const struct exch *x)
{
    return x->status >= 400 && x->status != 404 && x->status != 405 &&
           !status_is_ordinary(x->status);
}

static void pool_not_first(struct rule_run *run, const struct session *s,
                           const struct sightings *starts)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct message *msg = first_that_waits(x);
        if (!msg || x->initialize || x->version.len > 0 || !rule_in_era(run->rule, x->era) ||
            !refused_as_early(x) || exch_part(s, x) != PART_POST || !request_head_known(x))
            continue;
        const struct sighting *next = sightings_after(starts, who_is_at(x), x->first.time);
        if (!next || !same_agent(x, next->exch) ||
            sightings_before(starts, who_is_at(x), x->first.time))
            continue;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "refused");
        f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "the client sends " SLICE_FMT " without having initialized, is refused "
                        "(%d), and initializes afterwards",
                        SLICE_ARG(msg->method), x->status);
        finding_frame(run, f, x->first, "the request that came first");
        finding_frame(run, f, x->response, "status %d", x->status);
        finding_frame(run, f, next->exch->first, "initialize");
    }
}

void whole_init_not_first(struct rule_run *run, const struct model *m)
{
    struct sightings starts = initialize_requests(m);

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        if (s->legacy)
            legacy_not_first(run, s);
        else if (is_pool(s) && starts.count > 0)
            pool_not_first(run, s, &starts);
    }
    sightings_release(&starts);
}

/* ---- initialized-missing ---- */

/* Something of the recording could not be read: a notification may have been in it. */
static bool something_unread(const struct model *m)
{
    for (uint32_t i = 0; i < m->note_count; i++) {
        switch (m->note[i].kind) {
        case NOTE_TRUNCATED:
        case NOTE_TLS_NO_KEYS:
        case NOTE_TLS_LOST:
        case NOTE_UNKNOWN_CODING:
        case NOTE_CODING_BROKEN:
        case NOTE_BODY_NOT_RECORDED:
        case NOTE_H2_NO_STATE:
        case NOTE_BAD_HTTP:
        case NOTE_LIMIT: return true;
        case NOTE_STARTS_LATE:
        case NOTE_WEBSOCKET:
        case NOTE_HTTP3:
        case NOTE_OTHER_PROTOCOL:
        case NOTE_CONFLICT:
        case NOTE_UNSOLICITED:
        case NOTE_HAR:
        case NOTE_CLOCK_STEP:
        case NOTE_HIDDEN_EVENTS: break;
        }
    }
    return false;
}

static bool all_posts_known(const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->has_request && x->method == HTTP_METHOD_POST &&
            (!x->body_whole || x->request_gaps > 0))
            return false;
    }
    return s->gaps == 0;
}

/* The first request after the handshake that was answered, or NULL. */
static const struct request *went_on(const struct session *s, int64_t t)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!r->from_server && must_wait(r->msg) && r->at.time > t && r->answered.time &&
            !r->http_error)
            return r;
    }
    return NULL;
}

static bool says_initialized(const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (message_is(&x->msg[i], "notifications/initialized"))
            return true;
    }
    return false;
}

/* The notification may have been sent without the header of its session (session-id-missing). */
static struct sightings stray_initialized(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; is_pool(s) && k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            if (says_initialized(x))
                sightings_add(&all, (struct sighting){ who_is_at(x), x->first.time, s, x, false });
        }
    }
    sightings_sort(&all);
    return all;
}

static void never_initialized(struct rule_run *run, const struct session *s,
                              const struct sightings *stray)
{
    const struct message *by = session_initialized_by(s);
    const struct exch *x = by ? s->exch[s->initialize] : NULL;

    if (!x || s->initialized != NONE || !rule_in_era(run->rule, x->era) || !all_posts_known(s))
        return;
    const struct request *r = went_on(s, by->at.time);
    if (!r || sightings_after(stray, who_is_at(x), by->at.time))
        return;
    struct finding *f = finding_about(run, x, PARTY_CLIENT, NULL);
    finding_message(run, f,
                    "the client never sends notifications/initialized, and goes on with requests");
    finding_frame(run, f, r->at, "the first request after the handshake: " SLICE_FMT,
                  SLICE_ARG(r->msg->method));
    finding_frame(run, f, by->at, "the result of initialize");
}

void whole_initialized_missing(struct rule_run *run, const struct model *m)
{
    if (something_unread(m))
        return;
    struct sightings stray = stray_initialized(m);
    for (uint32_t i = 0; i < m->session_count; i++)
        never_initialized(run, m->session[i], &stray);
    sightings_release(&stray);
}

/* ---- early-request ---- */

static void client_early(struct rule_run *run, const struct exch *x, const struct message *msg,
                         const struct exch *start, enum certainty certainty)
{
    struct finding *f = finding_about(run, x, PARTY_CLIENT, "client");

    f->certainty = certainty;
    finding_message(run, f, "the client sends " SLICE_FMT " before initialize is answered",
                    SLICE_ARG(msg->method));
    finding_frame(run, f, x->first, "the request");
    finding_frame(run, f, start->first, "initialize");
    finding_frame(run, f, start->response, "the answer to initialize");
}

static void legacy_early(struct rule_run *run, const struct session *s, const struct message *by)
{
    const struct exch *start = s->exch[s->initialize];

    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (!r->from_server && must_wait(r->msg) && r->at.time > start->first.time &&
            r->at.time < by->at.time)
            client_early(run, s->exch[r->exch], r->msg, start, CERTAINTY_PROVEN);
    }
}

/* While a session is being given its id, the same program sends a request without one. */
static void pool_early(struct rule_run *run, const struct session *s,
                       const struct sightings *starts)
{
    bool own = s->initialize != NONE && exch_accepted(s->exch[s->initialize]);

    for (uint32_t i = 0; !own && i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct message *msg = first_that_waits(x);
        if (!msg || x->initialize || !rule_in_era(run->rule, x->era) || !request_head_known(x))
            continue;
        const struct sighting *at = sightings_before(starts, who_is_at(x), x->first.time);
        if (at && at->mark && same_agent(x, at->exch) && at->exch->response.time &&
            x->first.time < at->exch->response.time)
            client_early(run, x, msg, at->exch, CERTAINTY_LIKELY);
    }
}

static bool server_must_wait(const struct message *m)
{
    static const char *const free_to_go[] = { "ping", "notifications/message",
                                              "notifications/progress", "notifications/cancelled" };

    if (m->kind != RPC_REQUEST && m->kind != RPC_NOTIFICATION)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(free_to_go); i++) {
        if (message_is(m, free_to_go[i]))
            return false;
    }
    return true;
}

static void server_early(struct rule_run *run, const struct session *s)
{
    const struct exch *ready = s->exch[s->initialized];

    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (e->first != e->index || e->no_time || e->msg_count == 0 ||
            e->at.time >= ready->first.time || !server_must_wait(&e->msg[0]) ||
            !rule_in_era(run->rule, leg_exch(s, s->leg[e->leg])->era))
            continue;
        struct finding *f = finding_about(run, leg_exch(s, s->leg[e->leg]), PARTY_SERVER, "server");
        finding_message(run, f,
                        "the server sends " SLICE_FMT " before the client said "
                        "notifications/initialized",
                        SLICE_ARG(e->msg[0].method));
        finding_frame(run, f, e->at, "the message of the server");
        finding_frame(run, f, ready->first, "notifications/initialized");
    }
}

void whole_early_request(struct rule_run *run, const struct model *m)
{
    struct sightings starts = initialize_requests(m);

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        const struct message *by = session_initialized_by(s);
        if (is_pool(s) && starts.count > 0)
            pool_early(run, s, &starts);
        if (by && s->legacy)
            legacy_early(run, s, by);
        if (by && s->initialized != NONE)
            server_early(run, s);
    }
    sightings_release(&starts);
}

/* ---- HTTP+SSE (2024-11-05) ---- */

static uint64_t host_at(const struct exch *x)
{
    struct slice host = { x->client.addr, sizeof(x->client.addr) };

    return hash_mix(hash_bytes(x->authority), hash_bytes(host)) | 1;
}

static void find_posters(const struct model *m, struct table *ret)
{
    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; k < s->exch_count; k++) {
            if (exch_part(s, s->exch[k]) == PART_POST)
                *table_put(ret, host_at(s->exch[k])) = 1;
        }
    }
}

static bool names_endpoint(const struct event *e)
{
    return e->dispatched && e->msg_count == 0 && slice_eq(e->name, SLICE_LIT("endpoint"));
}

/* The event that names the endpoint, when others came before it; NULL: no such thing. */
static const struct event *late_endpoint(const struct session *s, const struct leg *l,
                                         const struct event **ret_first)
{
    *ret_first = NULL;
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (names_endpoint(e))
            return *ret_first ? e : NULL;
        if (e->dispatched && !*ret_first)
            *ret_first = e;
    }
    return NULL;
}

static void late_endpoints(struct rule_run *run, const struct session *s,
                           const struct table *posters)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        const struct exch *x = leg_exch(s, l);
        const struct event *first;
        if (x->method != HTTP_METHOD_GET || x->cursor.len > 0 || l->first_lost || l->gaps > 0 ||
            !table_get(posters, host_at(x)))
            continue;
        const struct event *e = late_endpoint(s, l, &first);
        if (!e)
            continue;
        struct finding *f = finding_about(run, x, PARTY_SERVER, "endpoint");
        finding_on_leg(run, f, l);
        f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "the event endpoint, which tells where to post, is not the first event of "
                        "its stream");
        finding_frame(run, f, e->at, "the event endpoint");
        finding_frame(run, f, first->at, "the first event");
    }
}

void whole_legacy_endpoint(struct rule_run *run, const struct model *m)
{
    struct table posters = { 0 };

    find_posters(m, &posters);
    for (uint32_t i = 0; i < m->session_count; i++) {
        if (is_pool(m->session[i]))
            late_endpoints(run, m->session[i], &posters);
    }
    table_release(&posters);
}

/* Streams of the older transport, by where they are and by where they want to be posted to. */
static struct sightings legacy_streams(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; s->legacy && k < s->leg_count; k++) {
            const struct exch *x = leg_exch(s, s->leg[k]);
            struct exch to = *x;
            if (x->method != HTTP_METHOD_GET)
                continue;
            to.target = s->id;
            sightings_add(&all, (struct sighting){ who_is_at(x), x->response.time, s, x, false });
            if (who_is_at(&to) != who_is_at(x))
                sightings_add(&all,
                              (struct sighting){ who_is_at(&to), x->response.time, s, x, true });
        }
    }
    sightings_sort(&all);
    return all;
}

static void wrong_uri(struct rule_run *run, const struct exch *x, const struct sighting *at)
{
    const struct session *s = at->session;
    struct finding *f = finding_about(run, x, PARTY_CLIENT, s->name);

    f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f,
                    "a message is posted to %s while the stream of session %s named another "
                    "endpoint, and is refused (%d)",
                    at->mark ? "the endpoint's path with another query"
                             : "the address of the stream",
                    s->name, x->status);
    finding_frame(run, f, x->first, "POST %s", run_id(run, target_path(x->target)));
    finding_frame(run, f, at->exch->response, "the stream that names the endpoint");
}

void whole_legacy_uri(struct rule_run *run, const struct model *m)
{
    struct sightings streams = legacy_streams(m);

    for (uint32_t i = 0; streams.count > 0 && i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; is_pool(s) && k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            if (exch_part(s, x) != PART_POST || x->era == ERA_D || x->status < 400 ||
                status_is_ordinary(x->status))
                continue;
            const struct sighting *at = sightings_before(&streams, who_is_at(x), x->first.time);
            if (at && same_agent(x, at->exch) && !slice_eq(x->target, at->session->id) &&
                leg_open_at(at->session->leg[at->exch->leg], x->first.time))
                wrong_uri(run, x, at);
        }
    }
    sightings_release(&streams);
}

static void response_in_post(struct rule_run *run, const struct exch *x, const struct message *msg)
{
    struct finding *f = finding_about(run, x, PARTY_SERVER, "response in POST");

    finding_message(run, f,
                    "a response comes in the body of the POST; in HTTP+SSE it belongs on the "
                    "stream");
    finding_frame(run, f, msg->at, "the response");
    finding_frame(run, f, x->first, "the POST");
}

void check_legacy_response(struct rule_run *run, const struct session *s)
{
    if (!s->legacy)
        return;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->method == HTTP_METHOD_POST && exch_accepted(x) && x->reply_count > 0 &&
            rpc_is_response(x->reply[0].kind) && exch_part(s, x) == PART_POST)
            response_in_post(run, x, &x->reply[0]);
    }
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        const struct exch *x = e->msg_count > 0 ? leg_exch(s, s->leg[e->leg]) : NULL;
        if (x && x->method == HTTP_METHOD_POST && rpc_is_response(e->msg[0].kind))
            response_in_post(run, x, &e->msg[0]);
    }
}
