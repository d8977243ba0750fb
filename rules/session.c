/*
 * session.c - RULES.md section 6: sessions that end, change or are refused. The checks of how a
 * client reconnects are in reconnect.c.
 */
#include "pace.h"
#include "reconnect.h"
#include "traffic.h"

#include <stdlib.h>

#define ABC (ERA_A | ERA_B | ERA_C)

/* A request may have been on its way already when the answer to another one came. */
#define CROSSING    (500 * NS_PER_MS)
#define NAMED       4 /* requests that a message names */
#define METHOD_LOST (-32601)

static bool exch_in_session(const struct exch *x)
{
    return x->has_request && x->session_id.len > 0;
}

int exchs_by_first(const void *a, const void *b)
{
    const struct exch *x = *(const struct exch *const *)a;
    const struct exch *y = *(const struct exch *const *)b;

    if (x->first.time != y->first.time)
        return (x->first.time > y->first.time) - (x->first.time < y->first.time);
    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* The session's exchanges in the order of their first bytes; to be freed. */
const struct exch **exchs_in_time(const struct session *s)
{
    const struct exch **order = mem_alloc((s->exch_count + 1) * sizeof(const struct exch *));

    for (uint32_t i = 0; i < s->exch_count; i++)
        order[i] = s->exch[i];
    qsort(order, s->exch_count, sizeof(const struct exch *), exchs_by_first);
    return order;
}

static bool deleted_before(const struct session *s, int64_t t)
{
    return s->deleted.time && s->deleted.time <= t;
}

/* ---- what was left open ---- */

/* Unanswered at t, and nothing after t shows that it could still be answered. */
static bool abandoned(const struct session *s, const struct request *r, int64_t t)
{
    const struct exch *x = s->exch[r->exch];
    const struct leg *l = NULL;

    if (!request_outstanding(s, r, t) || r->http_error || r->answered.time)
        return false;
    if (r->stream != NONE) {
        const struct stream *st = s->stream[r->stream];
        l = s->leg[st->leg[st->leg_count - 1]];
    }
    if (l)
        return l->ended && l->end != END_OPEN && l->end_at.time < t + NS_PER_SEC;
    return x->ended && x->end_kind != END_OPEN && x->end.time < t + NS_PER_SEC;
}

struct left_open {
    uint32_t count;
    const struct request *request[NAMED]; /* the first of them */
};

static struct left_open left_open(const struct session *s, int64_t t, bool for_good)
{
    struct left_open open = { 0 };

    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        bool lost = for_good ? abandoned(s, r, t)
                             : request_outstanding(s, r, t) && !r->http_error && !r->answered.time;
        if (!lost)
            continue;
        if (open.count < NAMED)
            open.request[open.count] = r;
        open.count++;
    }
    return open;
}

static void frames_of_open(struct rule_run *run, struct finding *f, const struct left_open *open)
{
    for (uint32_t i = 0; i < open->count && i < NAMED; i++) {
        const struct request *r = open->request[i];
        finding_frame(run, f, r->at, "request %s (%s) is outstanding", run_rpc_id(run, &r->msg->id),
                      run_id(run, r->msg->method));
    }
}

static const char *open_text(struct rule_run *run, const struct left_open *open)
{
    if (open->count == 0)
        return "no request was outstanding";
    return run_text(run, "%u request%s outstanding, first %s", open->count,
                    open->count == 1 ? " was" : "s were",
                    run_rpc_id(run, &open->request[0]->msg->id));
}

/* ---- session-lost ---- */

/* What session_refused() needs at least, without looking at the whole session. */
static bool may_be_lost(const struct exch *x)
{
    if (!exch_in_session(x) || x->initialize || refusal_names_cursor(x))
        return false;
    if (x->status == 404) {
        /* Servers without GET or DELETE say 404 where 405 is meant. */
        bool means_it =
            x->method == HTTP_METHOD_POST || (x->method == HTTP_METHOD_GET && x->cursor.len > 0);
        return x->error_code != METHOD_LOST && (means_it || refusal_names_session(x));
    }
    if (x->status != 400 && x->status != 401)
        return false;
    return refusal_names_session(x) ||
           (x->method == HTTP_METHOD_POST && x->error_text && !strstr(x->error_text, "already"));
}

/* The last exchange that the server accepted under the id, or NULL. */
static const struct exch *last_accepted(const struct session *s)
{
    const struct exch *last = NULL;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool good = exch_accepted(x) && (exch_in_session(x) || i == s->initialize);
        if (good && (!last || x->first.time > last->first.time))
            last = x;
    }
    return last;
}

/* The first request after which nothing was accepted any more, refused as of no session. */
static const struct exch *lost_at(const struct rule_run *run, const struct session *s,
                                  const struct exch *good)
{
    const struct exch **order = exchs_in_time(s);
    const struct exch *lost = NULL;

    for (uint32_t i = 0; i < s->exch_count && !lost; i++) {
        const struct exch *x = order[i];
        if (x->first.time < good->first.time || !may_be_lost(x) || !rule_in_era(run->rule, x->era))
            continue;
        if (session_refused(s, x))
            lost = x;
    }
    free(order);
    return lost;
}

static void check_lost(struct rule_run *run, const struct session *s)
{
    const struct exch *good = last_accepted(s);
    const struct exch *x = good ? lost_at(run, s, good) : NULL;

    if (!x || deleted_before(s, x->first.time))
        return;
    struct left_open open = left_open(s, x->first.time, false);
    struct finding *f = finding_add(run, s);
    if (open.count > 0)
        finding_on_request(run, f, open.request[0]);
    else
        finding_on_exch(run, f, x);
    f->exch = x->index;
    f->cursor = x->cursor;
    f->party = PARTY_SERVER;
    f->severity = open.count > 0 ? SEV_ERROR : SEV_WARNING;
    if (x->status != 404 && !refusal_names_session(x))
        f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f,
                    "the session is answered %d%s after it had worked (the last accepted request "
                    "began %s before); %s",
                    x->status,
                    x->status == 404           ? ""
                    : refusal_names_session(x) ? ", in words that it is unknown or ended,"
                                               : " from here on",
                    run_seconds(run, x->first.time - good->first.time), open_text(run, &open));
    finding_frame(run, f, x->response, "status %d for the session", x->status);
    finding_frame(run, f, good->first, "the last request that was accepted");
    frames_of_open(run, f, &open);
}

/* ---- session-recreated ---- */

/* A leg of the old session went on to carry bytes: somebody still reads it. */
static bool still_read(const struct session *s, int64_t t)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        if (leg_open_at(l, t) && l->last_byte.time > t + NS_PER_SEC)
            return true;
    }
    return false;
}

bool session_ended_by_client(const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (s->exch[i]->method == HTTP_METHOD_DELETE && exch_in_session(s->exch[i]))
            return true;
    }
    return false;
}

/* A cursor that the client asked to resume from when the session was gone, or that a cut listening
 * stream left behind; ptr NULL: none. */
static struct slice cursor_left(const struct session *s, int64_t t)
{
    for (uint32_t i = s->resumption_count; i-- > 0;) {
        const struct resumption *r = s->resumption[i];
        if ((r->faults & RF_SESSION_LOST) && s->exch[r->exch]->first.time < t)
            return r->cursor;
    }
    for (uint32_t i = s->stream_count; i-- > 0;) {
        const struct stream *st = s->stream[i];
        if (st->kind != STREAM_STANDALONE)
            continue;
        const struct leg *l = s->leg[st->leg[st->leg_count - 1]];
        const struct event *e = event_at(s, l->last_id);
        bool broken = leg_cut(l) && l->end_at.time < t;
        return broken && e ? e->id : (struct slice){ 0 };
    }
    return (struct slice){ 0 };
}

static void check_recreated(struct rule_run *run, const struct session *s)
{
    const struct session *next = s->replaced_by;

    if (!next || s->id.len == 0 || s->legacy || next->initialize == NONE ||
        session_ended_by_client(s) || !rule_in_era(run->rule, s->era))
        return;
    const struct exch *x = next->exch[next->initialize];
    if (still_read(s, x->first.time))
        return;
    struct left_open open = left_open(s, x->first.time, true);
    struct slice cursor = cursor_left(s, x->first.time);
    struct finding *f = finding_add(run, s);
    if (open.count > 0)
        finding_on_request(run, f, open.request[0]);
    f->cursor = cursor;
    f->party = PARTY_CLIENT;
    f->severity = open.count > 0 || cursor.ptr ? SEV_ERROR : SEV_INFO;
    finding_message(run, f,
                    "the client initialized again (session %s) without ending this session and "
                    "never used it afterwards: %s%s%s",
                    next->name, open_text(run, &open),
                    cursor.ptr ? ", and nobody can honour the cursor " : "",
                    cursor.ptr ? run_id(run, cursor) : "");
    finding_frame(run, f, x->first, "initialize of session %s", next->name);
    if (s->last.time < x->first.time)
        finding_frame(run, f, s->last, "the last that was seen of this session");
    frames_of_open(run, f, &open);
}

/* ---- session-changed-on-resume ---- */

static void check_changed(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        const struct exch *x = s->exch[r->exch];
        if (!(r->faults & RF_SESSION_CHANGED) || !rule_in_era(run->rule, x->era))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_resumption(run, f, r);
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "the reconnect with cursor %s asked for session %s; the answer names "
                        "another session, which never gave out this cursor",
                        run_id(run, r->cursor), s->name);
        finding_frame(run, f, x->first, "GET with Last-Event-ID: %s", run_id(run, r->cursor));
        finding_frame(run, f, x->response, "the answer, under another Mcp-Session-Id");
    }
}

/* ---- session-used-after-404 ---- */

/* An initialize request of somebody, by client host and authority. */
struct start {
    uint64_t who;
    int64_t time;
};

uint64_t caller_of(const struct endpoint *client, struct slice authority)
{
    uint64_t host = hash_bytes((struct slice){ client->addr, sizeof(client->addr) });

    return hash_mix(host, hash_bytes(authority));
}

static int by_who(const void *a, const void *b)
{
    const struct start *x = a;
    const struct start *y = b;

    if (x->who != y->who)
        return x->who < y->who ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

struct starts {
    struct start *item;
    size_t count;
    size_t cap;
};

static void starts_add(struct starts *all, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!x->initialize)
            continue;
        GROW(all->item, all->count, all->cap);
        all->item[all->count++] =
            (struct start){ caller_of(&x->client, x->authority), x->first.time };
    }
}

static struct starts starts_of(const struct model *m)
{
    struct starts all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++)
        starts_add(&all, m->session[i]);
    if (all.count > 0)
        qsort(all.item, all.count, sizeof(*all.item), by_who);
    return all;
}

static bool started_after(const struct starts *all, uint64_t who, int64_t t)
{
    size_t lo = 0;
    size_t hi = all->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct start *m = &all->item[mid];
        if (m->who < who || (m->who == who && m->time <= t))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < all->count && all->item[lo].who == who;
}

struct after_end {
    const struct exch *end; /* the first 404 */
    const struct exch *first, *last;
    uint32_t count;
};

static bool goes_on(const struct exch *x, const struct exch *end)
{
    return exch_in_session(x) && !x->initialize && x->method != HTTP_METHOD_DELETE &&
           end->response.time && x->first.time > end->response.time;
}

static struct after_end after_end(const struct rule_run *run, const struct session *s)
{
    const struct exch **order = exchs_in_time(s);
    const struct exch *good = last_accepted(s);
    struct after_end a = { 0 };

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = order[i];
        bool late = !good || x->first.time > good->first.time;
        if (!a.end && late && x->status == 404 && may_be_lost(x) &&
            rule_in_era(run->rule, x->era) && session_refused(s, x))
            a.end = x;
        if (!a.end || !goes_on(x, a.end))
            continue;
        if (a.count++ == 0)
            a.first = x;
        a.last = x;
    }
    free(order);
    return a;
}

static void used_after_404(struct rule_run *run, const struct session *s,
                           const struct starts *starts)
{
    struct after_end a = after_end(run, s);

    if (a.count == 0 ||
        started_after(starts, caller_of(&a.end->client, a.end->authority), a.end->first.time))
        return;
    if (a.count == 1 && a.first->first.time - a.end->response.time < CROSSING)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_exch(run, f, a.end);
    f->party = PARTY_CLIENT;
    f->count = a.count;
    finding_message(run, f,
                    "the session was answered 404; the client went on with its id (%u more "
                    "request%s, over %s) and never initialized again",
                    a.count, a.count == 1 ? "" : "s",
                    run_seconds(run, a.last->first.time - a.end->response.time));
    finding_frame(run, f, a.end->response, "status 404 for the session");
    finding_frame(run, f, a.first->first, "the next request with the same id");
    if (a.last != a.first)
        finding_frame(run, f, a.last->first, "the last request with the same id");
}

static void whole_used_after_404(struct rule_run *run, const struct model *m)
{
    struct starts starts = starts_of(m);

    for (uint32_t i = 0; i < m->session_count; i++) {
        if (m->session[i]->id.len > 0)
            used_after_404(run, m->session[i], &starts);
    }
    free(starts.item);
}

/* ---- session-flapping ---- */

/* What kind of request it is: a server may refuse one kind for reasons of its own. */
uint64_t exch_kind(const struct exch *x)
{
    uint64_t kind = (uint64_t)x->method + 1;

    if (x->msg_count == 0)
        return kind;
    return hash_mix(kind, hash_mix((uint64_t)x->msg[0].kind, hash_bytes(x->msg[0].method)));
}

static bool rejects_session(const struct exch *x)
{
    if (x->status < 400 || x->status >= 500 || refusal_names_cursor(x))
        return false;
    if (refusal_names_session(x))
        return x->status == 400 || x->status == 401 || x->status == 404;
    return x->status == 404 && x->method == HTTP_METHOD_POST && x->error_code != METHOD_LOST;
}

struct flap {
    const struct exch *refused, *taken, *again; /* in this order */
    uint64_t kind;                              /* of the first refusal */
    bool kinds_differ;
    bool post;          /* a POST was refused */
    bool same_kind_too; /* the kind that was refused was accepted afterwards */
    uint32_t turns;
    bool in; /* the last exchange was accepted */
};

static void flap_step(struct flap *p, const struct exch *x)
{
    if (rejects_session(x)) {
        if (!p->refused)
            *p = (struct flap){ .refused = x, .kind = exch_kind(x) };
        else if (p->taken && !p->again)
            p->again = x;
        p->kinds_differ |= exch_kind(x) != p->kind;
        p->post |= x->method == HTTP_METHOD_POST;
        p->turns += p->in;
        p->in = false;
    } else if (exch_accepted(x) && p->refused) {
        if (!p->taken)
            p->taken = x;
        p->same_kind_too |= exch_kind(x) == p->kind;
        p->turns += !p->in;
        p->in = true;
    }
}

static const char *peer_of(struct rule_run *run, const struct exch *x)
{
    char text[ENDPOINT_TEXT];
    const char *at = endpoint_text(&x->server, text);

    if (x->server_name.len == 0)
        return run_text(run, "%s", at);
    return run_text(run, "%s at %s", run_id(run, x->server_name), at);
}

static void check_flapping(struct rule_run *run, const struct session *s)
{
    const struct exch **order = exchs_in_time(s);
    struct flap p = { 0 };

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = order[i];
        if (exch_in_session(x) && !x->initialize && x->method != HTTP_METHOD_DELETE &&
            rule_in_era(run->rule, x->era) && !deleted_before(s, x->first.time))
            flap_step(&p, x);
    }
    free(order);
    if (!p.again || !(p.same_kind_too || (p.kinds_differ && p.post)))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_exch(run, f, p.refused);
    f->party = PARTY_SERVER;
    f->count = p.turns;
    finding_message(run, f,
                    "the session id is refused as unknown and accepted in turn (%u changes): "
                    "refused by %s, accepted by %s, refused again by %s",
                    p.turns, peer_of(run, p.refused), peer_of(run, p.taken), peer_of(run, p.again));
    finding_frame(run, f, p.refused->response, "refused: status %d", p.refused->status);
    finding_frame(run, f, p.taken->response, "accepted: status %d", p.taken->status);
    finding_frame(run, f, p.again->response, "refused again: status %d", p.again->status);
}

/* ---- session-shared ---- */

static bool no_address(const struct endpoint *e)
{
    static const uint8_t none[16] = { 0 };
    static const uint8_t none_v4[16] = { [10] = 0xff, [11] = 0xff };

    return memcmp(e->addr, none, sizeof(none)) == 0 ||
           memcmp(e->addr, none_v4, sizeof(none_v4)) == 0;
}

/* A proxy in between is the server of one hop and the client of the next. */
static bool also_serves(const struct session *s, const struct endpoint *e)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (memcmp(s->exch[i]->server.addr, e->addr, sizeof(e->addr)) == 0 &&
            memcmp(s->exch[i]->client.addr, e->addr, sizeof(e->addr)) != 0)
            return true;
    }
    return false;
}

/* One that came while the other one was at work. */
static const struct peer *other_peer(const struct session *s, const struct peer *p)
{
    for (uint32_t i = 0; i < s->peer_count; i++) {
        const struct peer *o = &s->peer[i];
        if (memcmp(o->client.addr, p->client.addr, sizeof(o->client.addr)) != 0 &&
            !no_address(&o->client) && o->first.time > p->first.time &&
            o->first.time < p->last.time)
            return o;
    }
    return NULL;
}

static void check_shared(struct rule_run *run, const struct session *s)
{
    const struct peer *p = NULL;
    const struct peer *o = NULL;
    char a[ENDPOINT_TEXT];
    char b[ENDPOINT_TEXT];

    if (s->id.len == 0 || (run->model->har && run->model->pcap))
        return;
    for (uint32_t i = 0; i < s->peer_count && !o; i++) {
        p = &s->peer[i];
        o = no_address(&p->client) ? NULL : other_peer(s, p);
    }
    if (!o || also_serves(s, &p->client) || also_serves(s, &o->client))
        return;
    struct finding *f = finding_add(run, s);
    f->party = PARTY_CLIENT;
    finding_message(run, f, "the session id is used from %s and from %s at the same time",
                    endpoint_host(&p->client, a), endpoint_host(&o->client, b));
    finding_frame(run, f, p->first, "the first request from %s", a);
    finding_frame(run, f, o->first, "the first request from %s", b);
    finding_frame(run, f, p->last, "the last request from %s", a);
}

static const struct rule rules[] = {
    {
        .id = "session-lost",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The server no longer knows a session that had worked.",
        .why = "Everything bound to the session is gone with it: responses of open requests and "
               "all that a cursor pointed to.",
        .advice = "Client: fail the outstanding requests, then initialize anew. Server: keep "
                  "sessions over restarts and replicas, or end them while nothing is open.",
        .source = "MCP 2025-11-25, Transports > Session Management, items 3 and 4",
        .explain = {
            .picture = "client                          server\n"
                       "  |-- initialize ---------------->|\n"
                       "  |<------------- session S ------|\n"
                       "  |-- POST, session S ----------->|\n"
                       "  |<--------------------- 200 ----|\n"
                       "  |            (restart, eviction, other replica)\n"
                       "  |-- GET or POST, session S ---->|\n"
                       "  |<--------------------- 404 ----|   and never accepted again\n",
            .needs = "The request with the session id and its status. 404 says it alone; 400 and "
                     "401 count when their body speaks of the session, or when every later request "
                     "is refused too.",
            .blind = "Why the session ended. A GET or DELETE answered 404 by a server that has no "
                     "such method is not taken for it. A refused cursor is another rule.",
            .client = "Tell the application which requests are lost; do not resume across "
                      "sessions.",
            .server = "Answer 404 for a session that is gone, never for a cursor; share the session "
                      "store between replicas; outlive the idle times of your clients.",
            .path = "Route by session id (affinity) when the servers do not share sessions.",
            .known = "Clients that read a 404 to a resume as the end of the session: Go SDK, C# "
                     "SDK, rmcp (read in source). Ruby server: a failed keep-alive write removes the whole "
                     "session (read in source). rmcp server: idle sessions end after 300 s (read in source).",
        },
        .check = check_lost,
    },
    {
        .id = "session-recreated",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The client started a new session in place of one that it never ended.",
        .why = "Cursors and requests of the old session cannot be honoured by the new one: what was "
               "open there is lost without anybody being told.",
        .advice = "Client: fail the old session's outstanding requests before initializing again, "
                  "and end sessions that are no longer needed by DELETE.",
        .source = "MCP 2025-11-25, Transports > Session Management; ids and cursors are bound to "
                  "one session (Resumability and Redelivery)",
        .explain = {
            .picture = "client                          server\n"
                       "  |-- POST call 1, session S ---->|\n"
                       "  |<------------------- id: 6 ----|  (cut: call 1 is outstanding)\n"
                       "  |-- initialize ---------------->|  no DELETE of S\n"
                       "  |<------------- session T ------|\n"
                       "  |   ... S is never used again: call 1 and cursor 6 are lost\n",
            .needs = "Both initialize requests; the client is told by its address, its clientInfo "
                     "and its credentials. Error only where a request or a cursor of the old "
                     "session was outstanding.",
            .blind = "Two programs that look the same and run one after the other are taken for "
                     "one client. A session that is still read (its legs go on) is not taken for "
                     "replaced. Sessions without an id are not looked at.",
            .client = "Report the lost requests to the application; look up their effect before "
                      "you repeat them.",
            .server = "Let sessions live longer than the breaks of your clients.",
            .known = "mcp_dart and rmcp initialize again on a 404 and repeat the request by "
                     "themselves (read in source).",
        },
        .check = check_recreated,
    },
    {
        .id = "session-changed-on-resume",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A reconnect with a cursor was answered under another session id.",
        .why = "The new session never gave out this cursor: what follows is no continuation.",
        .advice = "Server: never create a session on a GET; answer 404 when the session is unknown. "
                  "Client: stop when the id of the answer is not the one that was asked for.",
        .source = "MCP 2025-11-25, Transports > Session Management (the id is assigned with the "
                  "InitializeResult)",
        .explain = {
            .picture = "client                               server\n"
                       "  |-- GET, session S,                  |\n"
                       "  |   Last-Event-ID: 6 --------------->|\n"
                       "  |<-- 200, Mcp-Session-Id: T ---------|\n",
            .needs = "The header of the request and the header of its answer.",
            .blind = "A server that changes the session and does not say so.",
            .client = "Compare the session id of every answer with your own.",
            .server = "Assign ids with the answer to initialize only.",
            .path = "A gateway that keeps its own sessions has to map them back.",
        },
        .check = check_changed,
    },
    {
        .id = "session-used-after-404",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The client goes on with a session id that was answered 404.",
        .why = "Every further call fails: the client never comes back without an initialize.",
        .advice = "Client or proxy: after a 404 for a session start over with initialize, without "
                  "the old id, and tell the application what was lost.",
        .source = "MCP 2025-11-25, Transports > Session Management, item 4 (MUST)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST, session S ------->|\n"
                       "  |<----------------- 404 ----|\n"
                       "  |-- POST, session S ------->|   no initialize\n"
                       "  |<----------------- 404 ----|\n"
                       "  |            ...            |\n",
            .needs = "The 404, a later request with the same id, and no initialize from the same "
                     "address to the same authority after it.",
            .blind = "An initialize that the capture does not hold (other interface, other host). "
                     "One request right after the 404 may have been on its way and does not count; "
                     "nor does a DELETE.",
            .client = "Handle 404 in one place, for POST and GET alike.",
            .server = "404 is the right answer.",
            .path = "In a chain of proxies look at the hop that gets the 404: behind it only errors "
                    "are seen.",
            .known = "TypeScript SDK clients never initialize again by themselves; Python SDK "
                     "clients report \"Session terminated\" and stay so (read in source).",
        },
        .whole = whole_used_after_404,
    },
    {
        .id = "session-flapping",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "One session id is accepted and refused as unknown in turn.",
        .why = "The session lives on one replica and requests reach others too: whether a message "
               "arrives is left to chance.",
        .advice = "Path: route all requests of a session to one replica (by the session id, not by "
                  "connection). Server: or share the sessions between the replicas.",
        .source = "MCP 2025-11-25, Transports > Session Management (a session that is ended stays "
                  "ended: item 3)",
        .explain = {
            .picture = "client               balancer        replica a   replica b\n"
                       "  |-- POST, session S --|--------------->|           |\n"
                       "  |<-------------------------- 404 ------|           |\n"
                       "  |-- POST, session S --|--------------------------->|\n"
                       "  |<-------------------------------------- 200 ------|\n"
                       "  |-- POST, session S --|--------------->|           |\n"
                       "  |<-------------------------- 404 ------|           |\n",
            .needs = "A refusal (404, or words that the session is unknown), an acceptance after "
                     "it, and another refusal. Where only one kind of request is ever refused, and "
                     "that kind never accepted afterwards, the server means the request.",
            .blind = "Which replica answered, unless the address or a header tells.",
            .client = "Nothing that a client can repair; do not retry until it works.",
            .server = "Keep the sessions in a shared store.",
            .path = "Turn on affinity by the Mcp-Session-Id header.",
        },
        .check = check_flapping,
    },
    {
        .id = "session-shared",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "One session id is used from several client addresses at once.",
        .why = "Request ids and cursors of one session are one name space: two users of it collide "
               "and may get one another's messages.",
        .advice = "Client: one session for one client. If this is one client behind several "
                  "outgoing addresses, all is well; else look for a leaked session id.",
        .source = "MCP 2025-11-25, Transports > Session Management; Security Best Practices > "
                  "Session Hijacking",
        .explain = {
            .picture = "client a --- POST, session S --->  server\n"
                       "client b --- POST, session S --->  server   while a goes on\n",
            .needs = "Requests with one session id from two addresses whose times overlap.",
            .blind = "Address translation: several clients behind one address look like one, one "
                     "client behind several like more.",
            .client = "Do not copy sessions between processes.",
            .server = "Bind the session to the user that opened it.",
        },
        .check = check_shared,
    },
    {
        .id = "retry-not-respected",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .eras = ABC,
        .summary = "The client reconnected earlier than the server's retry field allows.",
        .why = "Polling rests on it: a client that comes at once keeps the server from closing "
               "connections, and many of them are a storm.",
        .advice = "Client: wait at least the last retry of the stream after its end before the GET.",
        .source = "MCP 2025-11-25, Transports > Sending Messages, item 6 (MUST respect retry); "
                  "WHATWG HTML 9.2.3",
        .explain = {
            .picture = "client                         server\n"
                       "  |<---- id: 1, retry: 2000 -----|\n"
                       "  |<---- end of the body --------|  0.0 s\n"
                       "  |-- GET, Last-Event-ID: 1 ---->|  0.4 s   2.0 s would be right\n",
            .needs = "Packet times: the end of the leg (its last chunk, FIN, RST, or the client's "
                     "own close), the first byte of the reconnect, and the last valid retry that "
                     "reached the client on that stream. A HAR has no such times.",
            .blind = "Whether the application asked for the reconnect. Coming later than retry is "
                     "allowed.",
            .client = "Keep the value per stream; ignore fields that are not all digits.",
            .server = "Send retry before you close; choose a value that fits the work.",
            .known = "Go, Kotlin, C# and TypeScript SDK clients use the value; the Java SDK "
                     "client reconnects at once (read in source).",
        },
        .check = check_retry,
    },
    {
        .id = "retry-after-ignored",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "The client repeated a request earlier than Retry-After allows.",
        .why = "A server that is overloaded or limits its clients gets the load that it asked to be "
               "spared; the reconnect itself comes later for it.",
        .advice = "Client: wait as long as Retry-After says after 429 or 503, then back off.",
        .source = "RFC 9110 10.2.3 (Retry-After), 15.6.4 (503); RFC 6585 4 (429)",
        .explain = {
            .picture = "client                         server\n"
                       "  |-- GET, Last-Event-ID: 5 ---->|\n"
                       "  |<-- 429, Retry-After: 5 ------|\n"
                       "  |-- GET, Last-Event-ID: 5 ---->|  0.1 s later\n"
                       "  |<-- 429, Retry-After: 5 ------|\n",
            .needs = "The refusal with its header, and the same kind of request (method, target, "
                     "JSON-RPC method, session) from the same address. A tenth of the time, at "
                     "most a second, is forgiven.",
            .blind = "Requests that went by another address. Requests sent before the refusal came "
                     "do not count.",
            .client = "Honour Retry-After on reconnects too, not only on calls.",
            .server = "Give a Retry-After that is meant.",
            .path = "A gateway that makes up 503 itself should say so in the body.",
        },
        .check = check_retry_after,
    },
    {
        .id = "reconnect-storm",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "One client reconnects or initializes more often than is sound.",
        .why = "A loop without back-off loads the server, fills the logs and hides the cause.",
        .advice = "Client: back off between attempts, and do not take a mere 200 for success: reset "
                  "the counter when an event came.",
        .source = "reasoning; WHATWG HTML 9.2.3 (a client may wait longer after failures)",
        .explain = {
            .picture = "client                     server\n"
                       "  |-- GET ------------------>|\n"
                       "  |<-- 200, end of body -----|\n"
                       "  |-- GET ------------------>|\n"
                       "  |<-- 200, end of body -----|   more than 10 times in 10 s\n",
            .needs = "GETs for streams that follow one another in their session, and initialize "
                     "requests that were refused or replace a session, of one client. Thresholds: "
                     "the policy.",
            .blind = "Clients behind one address that cannot be told apart. Repeats after 429 or "
                     "503 are another rule; reconnects at the pace of the server's own retry are "
                     "what it asked for.",
            .client = "Use exponential back-off with jitter and an upper bound.",
            .server = "Refuse with 429 and Retry-After.",
            .known = "TypeScript (executed) and Python (read in source) SDK clients reset their counter on every 200, so "
                     "that 200 with an empty body loops without end, at the pace of retry or 1 s.",
        },
        .whole = whole_storm,
    },
    {
        .id = "listen-conflict",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The listening stream cannot be opened again: the server holds the dead one.",
        .why = "Until the server lets go of the old stream, notifications and server requests do "
               "not reach the client; some servers never do.",
        .advice = "Server: let a new GET of the session replace the old one, or notice its end by "
                  "keep-alives. Client: go on without, and try again with growing pauses.",
        .source = "MCP 2025-11-25, Transports > Multiple Connections; seen in the field: servers with one "
                  "listening stream a session",
        .explain = {
            .picture = "client                     server\n"
                       "  |-- GET ------------------>|\n"
                       "  |<-- 200, stream ----------|\n"
                       "  |    (cut, or the client gives up)\n"
                       "  |-- GET ------------------>|   the server still counts the first one\n"
                       "  |<-- 409 or 400 -----------|\n",
            .needs = "The end of the first listening leg before the GET that is refused, with 409, "
                     "or 400 while POSTs of the session go on. Or, with packet times: a first "
                     "stream that falls silent when a second one is accepted.",
            .blind = "What another hop holds open. A second GET while the first is open on the wire "
                     "is the client's matter, and no finding.",
            .client = "Close the old stream before you open a new one.",
            .server = "Send keep-alives, so that a dead stream is noticed; the newest GET should "
                      "win.",
            .path = "Close the upstream side when the client's side closes.",
            .known = "One listening stream a session, 409 for the second: TypeScript, Python, Go "
                     "and Swift SDK, mcp-lite, Ruby, @hono/mcp (read in source).",
        },
        .check = check_listen,
    },
};

const struct rule_family rules_session = RULE_FAMILY("session", "Sessions and reconnecting", rules);
