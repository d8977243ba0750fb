/* sse.c - RULES.md section 8: the event stream itself, and priming, closing and polling. */
#include "sse.h"

#include "spoken.h"

#include <stdlib.h>

#define ABC (ERA_A | ERA_B | ERA_C)

/* ---- what the rules of closing share ---- */

static const struct exch *opener(const struct session *s, const struct leg *l)
{
    return s->exch[s->stream[l->stream]->exch];
}

/* A leg of the stream of a POST with requests, as far as it matters here all in the evidence. */
static bool on_request_stream(const struct session *s, const struct leg *l)
{
    const struct exch *x = leg_exch(s, l);

    return s->stream[l->stream]->kind == STREAM_POST && exch_carries_request(opener(s, l)) &&
           x->has_request && x->status == 200 && !x->undecodable && !l->first_lost && l->gaps == 0;
}

static bool is_post_leg(const struct session *s, const struct leg *l)
{
    return on_request_stream(s, l) && l->number == 1 && !l->resumed &&
           leg_exch(s, l)->method == HTTP_METHOD_POST;
}

/* The client's request in a message, or NULL: no request, or one that no response could name. */
static const struct request *request_of(const struct session *s, const struct message *m)
{
    if (m->kind != RPC_REQUEST || m->request == NONE)
        return NULL;
    return m->id.type == RPC_ID_STRING || m->id.type == RPC_ID_INT ? s->request[m->request] : NULL;
}

static bool awaited(const struct request *r, int64_t t)
{
    if (r->http_error || (r->cancelled.time && r->cancelled.time <= t))
        return false;
    return !r->response || r->response->at.time > t;
}

/* A request of the stream's POST that has no answer when the leg ends. */
static const struct request *awaited_at_end(const struct session *s, const struct leg *l)
{
    const struct exch *x = opener(s, l);

    for (uint32_t i = 0; i < x->msg_count; i++) {
        const struct request *r = request_of(s, &x->msg[i]);
        if (r && awaited(r, l->end_at.time))
            return r;
    }
    return NULL;
}

/* Could the response hide in what the leg carried, unread or unmatched? */
static bool hides_response(const struct session *s, const struct leg *l)
{
    if (l->tail_response)
        return true;
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->not_json || e->stripped || e->ambiguous || (e->oddities & SSE_TOO_LONG))
            return true;
        if ((e->marks & EV_RESPONSE) && e->msg_count > 0 && e->msg[0].request == NONE)
            return true;
    }
    return false;
}

#define REFUSALS_SEEN 16

/* The session was refused as gone in the end, so it may have been gone before that. */
static bool session_expired(const struct session *s)
{
    unsigned tries = REFUSALS_SEEN;

    for (uint32_t i = s->exch_count; i-- > 0 && tries > 0;) {
        const struct exch *x = s->exch[i];
        if (x->status < 400 || x->status >= 500)
            continue;
        if (session_refused(s, x))
            return true;
        tries--;
    }
    return false;
}

/* From when on the server may close streams, whatever they wait for. */
static int64_t session_over(const struct session *s)
{
    if (session_expired(s))
        return INT64_MIN;
    for (uint32_t i = 0; s->deleted.time && i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->method == HTTP_METHOD_DELETE && x->status >= 200 && x->status < 300)
            return x->first.time;
    }
    return INT64_MAX;
}

/* The server ended the leg by the protocol's own end, a request of its stream unanswered: the
 * request, else NULL. */
static const struct request *closed_early(const struct session *s, const struct leg *l,
                                          int64_t over)
{
    if (!l->ended || l->end != END_COMPLETE || leg_exch(s, l)->close_not_known ||
        l->end_at.time >= over)
        return NULL;
    const struct request *r = awaited_at_end(s, l);
    return r && !hides_response(s, l) ? r : NULL;
}

/* What a stream has carried up to a leg; legs stand in the order of time. */
struct so_far {
    int64_t retry; /* the last valid one, -1 */
    bool id;
};

/* One a stream; the caller frees. */
static struct so_far *so_far_new(const struct session *s)
{
    struct so_far *stream = mem_alloc((s->stream_count + 1) * sizeof(*stream));

    for (uint32_t i = 0; i < s->stream_count; i++)
        stream[i].retry = -1;
    return stream;
}

static const struct so_far *so_far_add(struct so_far *stream, const struct leg *l)
{
    struct so_far *at = &stream[l->stream];

    at->id |= l->last_id != NONE;
    if (l->retry >= 0)
        at->retry = l->retry;
    return at;
}

static const char *request_text(struct rule_run *run, const struct request *r)
{
    return run_text(run, "%s (" SLICE_FMT ")", run_rpc_id(run, &r->msg->id),
                    (int)(r->msg->method.len < 60 ? r->msg->method.len : 60),
                    (const char *)r->msg->method.ptr);
}

/* A close-delimited body ends the same way when the path breaks. */
static struct finding *early_finding(struct rule_run *run, const struct session *s,
                                     const struct leg *l, const struct request *r)
{
    struct finding *f = finding_add(run, s);

    finding_on_leg(run, f, l);
    f->request = r->index;
    f->request_id = r->msg->id;
    f->party = PARTY_SERVER;
    if (leg_exch(s, l)->rflags & RECF_UNTIL_CLOSE)
        f->certainty = CERTAINTY_LIKELY;
    finding_frame(run, f, l->end_at, "the server ends the body here");
    finding_frame(run, f, r->at, "request %s", request_text(run, r));
    return f;
}

/* ---- priming ---- */

/* The leg's first event; NULL: none, or it is no longer held whole. */
static const struct event *first_event(const struct session *s, const struct leg *l)
{
    const struct event *e = event_at(s, l->first_event);

    while (e && e->keepalive)
        e = event_at(s, e->next_in_leg);
    return e;
}

static void check_priming_missing(struct rule_run *run, const struct session *s)
{
    int64_t over = session_over(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        if (!is_post_leg(s, l) || !rule_surely_in_era(run->rule, leg_exch(s, l)->era))
            continue;
        const struct event *e = first_event(s, l);
        if (!e || e->stripped || (e->priming && e->id.len > 0))
            continue;
        const struct request *early = closed_early(s, l, over);
        if (l->last_id == NONE && !early)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "the event stream of a POST does not begin with a priming event: %s%s",
                        !e->has_id  ? "its first event has no id"
                        : e->id.len ? "its first event has an id, and data already"
                                    : "the id of its first event is empty",
                        early ? ", and the server closed it before the response" : "");
        finding_frame(run, f, e->at, "the first event of the stream");
    }
}

static void check_priming_old(struct rule_run *run, const struct session *s)
{
    bool speaks = session_speaks(s);

    for (const struct event *e = event_next(s, 0); speaks && e; e = event_next(s, e->index + 1)) {
        if (!e->priming || !e->dispatched || e->status != RPC_EMPTY || e->stripped ||
            e->id.len == 0 || (e->oddities & SSE_TOO_LONG))
            continue;
        const struct leg *l = s->leg[e->leg];
        if (!rule_surely_in_era(run->rule, leg_exch(s, l)->era) || !leg_speaks(s, l))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        finding_fold(f, "priming");
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "a priming event (an id and empty data) in a session of revision %s, whose "
                        "clients do not know it",
                        era_text(leg_exch(s, l)->era));
        finding_frame(run, f, e->at, "event %s with empty data", run_id(run, e->id));
    }
}

/* ---- closing before the response ---- */

static void check_close_before_id(struct rule_run *run, const struct session *s)
{
    int64_t over = session_over(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        if (!is_post_leg(s, l) || l->last_id != NONE ||
            !rule_surely_in_era(run->rule, leg_exch(s, l)->era))
            continue;
        const struct request *r = closed_early(s, l, over);
        if (!r)
            continue;
        struct finding *f = early_finding(run, s, l, r);
        finding_message(run, f,
                        "the server closed the event stream of request %s before its response and "
                        "before any event id: the client has nothing to come back with",
                        request_text(run, r));
    }
}

static void check_close_before_response(struct rule_run *run, const struct session *s)
{
    int64_t over = session_over(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        if (!is_post_leg(s, l) || !rule_surely_in_era(run->rule, leg_exch(s, l)->era))
            continue;
        const struct request *r = closed_early(s, l, over);
        if (!r)
            continue;
        struct finding *f = early_finding(run, s, l, r);
        finding_message(run, f,
                        "the server closed the event stream of request %s before its response, "
                        "which revision %s asks it not to do",
                        request_text(run, r), era_text(leg_exch(s, l)->era));
    }
}

static void check_close_without_retry(struct rule_run *run, const struct session *s)
{
    int64_t over = session_over(s);
    struct so_far *stream = so_far_new(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        const struct so_far *had = so_far_add(stream, l);
        if (!had->id || had->retry >= 0 || l->event_count == 0 || !on_request_stream(s, l) ||
            !rule_surely_in_era(run->rule, leg_exch(s, l)->era))
            continue;
        const struct request *r = closed_early(s, l, over);
        if (!r)
            continue;
        struct finding *f = early_finding(run, s, l, r);
        finding_message(run, f,
                        "the server closed the event stream of request %s to have the client poll, "
                        "and never said on it with `retry` when to come back",
                        request_text(run, r));
    }
    free(stream);
}

/* ---- a client that does not poll ---- */

/* A GET that may be the poll: of a stream, or (NONE) of any. */
struct poll {
    uint32_t stream;
    int64_t time;
};

static int compare_polls(const void *va, const void *vb)
{
    const struct poll *a = va;
    const struct poll *b = vb;

    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

/* Sorted; the caller frees. */
static struct poll *polls_of(const struct session *s, size_t *ret_count)
{
    struct poll *poll = mem_alloc((s->exch_count + s->resumption_count + 1) * sizeof(*poll));
    size_t n = 0;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->has_request && x->method == HTTP_METHOD_GET && x->cursor.len == 0)
            poll[n++] = (struct poll){ NONE, x->first.time };
    }
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        poll[n++] = (struct poll){ r->stream, s->exch[r->exch]->first.time };
    }
    qsort(poll, n, sizeof(*poll), compare_polls);
    *ret_count = n;
    return poll;
}

static bool polled(const struct poll *poll, size_t count, struct poll after, int64_t until)
{
    size_t lo = 0;
    size_t hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_polls(&poll[mid], &after) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < count && poll[lo].stream == after.stream && poll[lo].time <= until;
}

/* tasks/get and tasks/result may be dropped at any time (2025-11-25, tasks). */
static bool may_be_dropped(const struct request *r)
{
    return slice_starts(r->msg->method, SLICE_LIT("tasks/"));
}

static int64_t poll_window(const struct rule_run *run, int64_t retry)
{
    double window = run->limit->poll_factor * (double)retry * (double)NS_PER_MS;

    if (window < (double)NS_PER_SEC)
        return NS_PER_SEC;
    return window < 1e18 ? (int64_t)window : (int64_t)1e18;
}

static bool left_alone(const struct session *s, int64_t until)
{
    const struct session *next = s->replaced_by;

    return until <= s->model->end.time && !(next && next->first.time <= until);
}

static void check_poll_abandoned(struct rule_run *run, const struct session *s)
{
    int64_t over = session_over(s);
    size_t count;
    struct poll *poll = polls_of(s, &count);
    struct so_far *stream = so_far_new(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        const struct so_far *had = so_far_add(stream, l);
        int64_t retry = had->retry;
        if (retry < 0 || !had->id || !on_request_stream(s, l) ||
            !rule_surely_in_era(run->rule, leg_exch(s, l)->era) ||
            (leg_exch(s, l)->rflags & RECF_HAR))
            continue;
        const struct request *r = closed_early(s, l, over);
        int64_t until = l->end_at.time + poll_window(run, retry);
        if (!r || r->response || may_be_dropped(r) || !awaited(r, until) || until >= over ||
            !left_alone(s, until) ||
            polled(poll, count, (struct poll){ l->stream, l->end_at.time }, until) ||
            polled(poll, count, (struct poll){ NONE, l->end_at.time }, until))
            continue;
        struct finding *f = early_finding(run, s, l, r);
        f->party = PARTY_CLIENT;
        finding_message(run, f,
                        "the server closed the stream of request %s for the client to poll, "
                        "`retry` asked it back after %s, and no GET came in the %s that followed",
                        request_text(run, r), run_seconds(run, retry * NS_PER_MS),
                        run_seconds(run, until - l->end_at.time));
    }
    free(stream);
    free(poll);
}

/* ---- after the response ---- */

/* The last response of the stream; NULL: some request has none or two, or it came elsewhere or
 * from elsewhere. */
static const struct event *last_response(const struct session *s, const struct stream *st)
{
    const struct exch *x = s->exch[st->exch];
    const struct event *last = NULL;

    for (uint32_t i = 0; i < x->msg_count; i++) {
        const struct request *r = request_of(s, &x->msg[i]);
        if (!r && x->msg[i].kind != RPC_REQUEST)
            continue;
        const struct event *e =
            r && r->response && !r->duplicate ? event_at(s, r->response->event) : NULL;
        if (!e || s->leg[e->leg]->stream != st->index ||
            (e->marks & (EV_FOREIGN_SESSION | EV_REBOUND)))
            return NULL;
        if (!last || e->index > last->index)
            last = e;
    }
    return last;
}

static const struct event *last_response_surely(const struct rule_run *run, const struct session *s,
                                                const struct stream *st)
{
    if (st->kind != STREAM_POST || !rule_in_era(run->rule, s->exch[st->exch]->era))
        return NULL;
    return last_response(s, st);
}

static bool held_up(const struct leg *l, int64_t since)
{
    for (uint32_t i = 0; i < l->silence_count; i++) {
        if (l->silence[i].window_closed && l->silence[i].until.time > since)
            return true;
    }
    return false;
}

static void check_open_after(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct event *e = last_response_surely(run, s, s->stream[i]);
        if (!e)
            continue;
        const struct leg *l = s->leg[e->leg];
        const struct exch *x = leg_exch(s, l);
        bool open = !l->ended || l->end == END_OPEN;
        int64_t end = l->end_at.time ? l->end_at.time : run->model->end.time;
        if (end - e->at.time <= run->limit->open_after_response || (x->rflags & RECF_HAR) ||
            e->no_time || l->gaps > 0 || l->end == END_GAP || held_up(l, e->at.time))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->request_id = e->msg[0].id;
        f->party = PARTY_SERVER;
        finding_message(run, f, "the stream had carried its last response and stayed open %s%s",
                        run_seconds(run, end - e->at.time),
                        open ? " more, to the end of the capture" : " more");
        finding_frame(run, f, e->at, "the last response of the stream");
        if (!open)
            finding_frame(run, f, l->end_at, "the leg ends (%s)", end_kind_text(l->end));
    }
}

/* No response, no redelivery, nothing of another stream, and nothing of a task (whose messages may
 * come anywhere). */
static const struct message *late_message(const struct event *e)
{
    if (e->first != e->index || e->new_id_of != NONE ||
        (e->marks & (EV_FOREIGN_SESSION | EV_REBOUND)))
        return NULL;
    for (uint32_t i = 0; i < e->msg_count; i++) {
        const struct message *m = &e->msg[i];
        if ((m->kind == RPC_REQUEST || m->kind == RPC_NOTIFICATION) &&
            !(m->flags & RPC_RELATED_TASK))
            return m;
    }
    return NULL;
}

static void check_message_after(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct event *last = last_response_surely(run, s, s->stream[i]);
        const struct leg *l = last ? s->leg[last->leg] : NULL;
        for (const struct event *e = last ? leg_event_after(s, l, last->index) : NULL; e;
             e = leg_event_after(s, l, e->index)) {
            const struct message *m = late_message(e);
            if (!m)
                continue;
            struct finding *f = finding_add(run, s);
            finding_on_event(run, f, e);
            finding_fold(f, "after the response");
            f->party = PARTY_SERVER;
            finding_message(run, f,
                            "a message came on the stream of a POST after its last response");
            finding_frame(run, f, e->at, "%s " SLICE_FMT,
                          m->kind == RPC_REQUEST ? "server request" : "notification",
                          (int)(m->method.len < 60 ? m->method.len : 60),
                          (const char *)m->method.ptr);
            finding_frame(run, f, last->at, "the last response of the stream");
        }
    }
}

/* ---- the text of the stream ---- */

static unsigned bit_index(unsigned bit)
{
    return (unsigned)__builtin_ctz(bit);
}

/* One finding a leg on which the oddity was seen. */
static void on_oddity(struct rule_run *run, const struct session *s, unsigned bit, const char *what)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        if (!(l->oddities & bit))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->party = PARTY_SERVER;
        finding_message(run, f, "%s", what);
        finding_frame(run, f, l->oddity_at[bit_index(bit)],
                      "first seen in the event that ends here");
    }
}

static void check_retry(struct rule_run *run, const struct session *s)
{
    on_oddity(run, s, SSE_BAD_RETRY,
              "a `retry` field that is empty, not all digits, or above 2^31 ms: clients ignore it, "
              "or wait for ever");
}

static void check_utf8(struct rule_run *run, const struct session *s)
{
    on_oddity(run, s, SSE_BAD_UTF8,
              "the id or data of an event holds bytes that are no UTF-8: a reader puts U+FFFD in "
              "their place, and neither the message nor the cursor is what was meant");
}

static void check_bom(struct rule_run *run, const struct session *s)
{
    on_oddity(run, s, SSE_BOM,
              "a byte order mark that does not stand alone at the start of the body: it becomes a "
              "part of the field name behind it, and the line is lost");
}

static void check_dialect(struct rule_run *run, const struct session *s)
{
    static const struct {
        unsigned bit;
        unsigned unless; /* that one says it already */
        const char *subject, *text;
    } dialects[] = {
        { SSE_CR_ENDS, 0, "CR",
          "lines end with a lone CR: legal, but the Go SDK's client knows no such line end, and "
          "eventsource-parser 3.1 (TypeScript SDK, mcp-remote) holds the last event back until "
          "more bytes come" },
        { SSE_MIXED_ENDS, SSE_CR_ENDS, "mixed",
          "the stream mixes LF and CRLF line ends: legal, no SDK is known to fail, but gateways "
          "that look for one kind of blank line miss the other" },
        { SSE_NO_COLON, 0, "no colon",
          "a line without a colon (a field with an empty value): legal, but the clients of the Go "
          "and Java SDKs end the connection over it" },
        { SSE_UNKNOWN_FIELD, 0, "unknown field",
          "a field name that the standard does not know (names are case-sensitive): readers ignore "
          "the line, but the Java SDK's JDK client ends the connection over it" },
    };

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        for (size_t k = 0; k < ARRAY_LEN(dialects); k++) {
            if (!(l->oddities & dialects[k].bit) || (l->oddities & dialects[k].unless))
                continue;
            struct finding *f = finding_add(run, s);
            finding_on_leg(run, f, l);
            f->party = PARTY_SERVER;
            f->subject = dialects[k].subject;
            finding_message(run, f, "%s", dialects[k].text);
            finding_frame(run, f, l->oddity_at[bit_index(dialects[k].bit)],
                          "first seen in the event that ends here");
        }
    }
}

/* ---- events and what they carry ---- */

static bool is_message_name(struct slice name)
{
    return name.len == 0 || slice_eq(name, SLICE_LIT("message"));
}

static bool has_message(const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        if (e->msg[i].kind != RPC_OTHER)
            return true;
    }
    return false;
}

static void check_event_name(struct rule_run *run, const struct session *s)
{
    bool speaks = session_speaks(s);

    for (const struct event *e = event_next(s, 0); speaks && e; e = event_next(s, e->index + 1)) {
        if (is_message_name(e->name) || !has_message(e) || !leg_speaks(s, s->leg[e->leg]))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        finding_fold(f, run_id(run, e->name));
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "a JSON-RPC message under the event name %s: clients that listen for "
                        "`message` never see it",
                        run_id(run, e->name));
        finding_frame(run, f, e->at, "event: %s", run_id(run, e->name));
    }
}

/* An object that has the marks of JSON-RPC is what rpc-both-or-neither is about. */
static bool is_near_message(const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        if ((e->msg[i].flags & RPC_VERSION_OK) || e->msg[i].id.type != RPC_ID_NONE)
            return true;
    }
    return false;
}

/* How the data fails to be a message; NULL: it does not, or another rule says so. */
static const char *data_fault(const struct event *e)
{
    if (!e->not_json || !is_message_name(e->name) || e->ambiguous || is_near_message(e) ||
        (e->oddities & (SSE_BAD_UTF8 | SSE_TOO_LONG)))
        return NULL;
    if (e->status == RPC_NOT_JSON)
        return "the data is no JSON";
    if (e->status == RPC_NOT_OBJECT)
        return "the data is JSON, but no object";
    if (e->status != RPC_OK || e->batch)
        return NULL; /* rpc-batch-empty, sse-batch */
    return "the data is a JSON object, but no JSON-RPC message";
}

/* Harmless stuffing that some clients try to read as a message. */
static const char *data_stuffing(const struct event *e)
{
    bool empty_object = e->status == RPC_OK && e->msg_count == 1;

    if (!e->dispatched || e->stripped || (e->oddities & SSE_TOO_LONG))
        return NULL;
    if (e->priming)
        return empty_object ? "`{}` as priming: a client takes it for a message that says nothing"
                            : NULL;
    if (!e->keepalive || (!empty_object && !is_message_name(e->name)))
        return NULL;
    return empty_object
               ? "`{}` as a keep-alive: a client takes it for a message that says nothing"
               : "an event with empty data as a keep-alive: a client takes it for a message";
}

static void on_data(struct rule_run *run, const struct session *s, const struct event *e,
                    const char *what, bool stuffing)
{
    struct finding *f = finding_add(run, s);

    finding_on_event(run, f, e);
    finding_fold(f, what);
    f->party = PARTY_SERVER;
    if (stuffing)
        f->severity = SEV_INFO;
    finding_message(run, f, "%s%s", what,
                    stuffing ? "; a comment line would do, and disturb nobody"
                             : ": every client drops it, or ends the connection");
    finding_frame(run, f, e->at,
                  e->has_id ? "event %s, %zu bytes of data" : "event%s, %zu bytes of data",
                  e->has_id ? run_id(run, e->id) : "", e->data_len);
}

static void check_data(struct rule_run *run, const struct session *s)
{
    bool speaks = session_speaks(s);

    for (const struct event *e = event_next(s, 0); speaks && e; e = event_next(s, e->index + 1)) {
        if (e->first != e->index || !leg_speaks(s, s->leg[e->leg]))
            continue;
        const char *fault = data_fault(e);
        const char *stuffing = data_stuffing(e);
        if (fault)
            on_data(run, s, e, fault, false);
        else if (stuffing)
            on_data(run, s, e, stuffing, true);
    }
}

static void check_batch(struct rule_run *run, const struct session *s)
{
    bool speaks = session_speaks(s);

    for (const struct event *e = event_next(s, 0); speaks && e; e = event_next(s, e->index + 1)) {
        if (!e->batch || e->status != RPC_OK || e->first != e->index)
            continue;
        const struct leg *l = s->leg[e->leg];
        if (!rule_surely_in_era(run->rule, leg_exch(s, l)->era) || !leg_speaks(s, l))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        finding_fold(f, "batch");
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "the data of an event is an array of %u: revision %s has no batches, each "
                        "message is an event of its own",
                        e->msg_count, era_text(leg_exch(s, l)->era));
        finding_frame(run, f, e->at, "an event with an array as its data");
    }
}

/* ---- the response that carries the stream ---- */

static void check_status(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!(x->rflags & RECF_SSE) || x->status == 0 || x->status == 200)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_exch(run, f, x);
        finding_fold(f, run_text(run, "%d", x->status));
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "text/event-stream with status %d: a reader by the standard fails the "
                        "connection and never reconnects",
                        x->status);
        finding_frame(run, f, x->response, "the response head");
    }
}

static void whole_status(struct rule_run *run, const struct model *m)
{
    for (uint32_t i = 0; i < m->note_count; i++) {
        const struct note *n = &m->note[i];
        if (n->kind != NOTE_HIDDEN_EVENTS || !n->session || n->exch == NONE)
            continue;
        const struct exch *x = n->session->exch[n->exch];
        bool asked = x->method == HTTP_METHOD_GET && (x->flags & RECF_ACCEPT_SSE);
        if (!asked && !exch_speaks(n->session, x))
            continue;
        struct finding *f = finding_add(run, n->session);
        finding_on_exch(run, f, x);
        finding_fold(f, run_id(run, x->content_type));
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "the body is an event stream, the content type says %s: no client reads it "
                        "as one",
                        x->content_type.len ? run_id(run, x->content_type) : "nothing");
        finding_frame(run, f, n->at, "the body begins with events");
        finding_frame(run, f, x->response, "the response head");
    }
}

static void check_compressed(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!(x->rflags & RECF_SSE) || !(x->rflags & RECF_CODED))
            continue;
        bool unknown = x->rflags & RECF_UNDECODABLE;
        struct finding *f = finding_add(run, s);
        finding_on_exch(run, f, x);
        finding_fold(f, run_id(run, x->coding));
        f->party = PARTY_SERVER;
        if (unknown)
            f->severity = SEV_ERROR;
        finding_message(run, f,
                        unknown
                            ? "cannot decode: the event stream has the unknown content coding %s"
                            : "the event stream has the content coding %s: events wait in the "
                              "compressor until it is flushed",
                        run_id(run, x->coding));
        finding_frame(run, f, x->response, "the response head");
    }
}

/* ---- the table ---- */

#define SPEC_C "MCP 2025-11-25, Transports > Sending Messages to the Server"

static const struct rule rules[] = {
    {
        .id = "priming-missing",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_C,
        .summary = "The event stream of a POST uses ids (or is closed early) and does not begin "
                   "with an id and empty data.",
        .why = "If the connection breaks before the first event with an id, the client has no "
               "cursor: the response cannot be fetched any more.",
        .advice = "Server: send an event with an id and an empty data field as soon as the stream "
                  "begins, to clients of 2025-11-25.",
        .source = SPEC_C " (SHOULD); SEP-1699",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call ------->|\n"
                       "  |<- 200 text/event-stream --|\n"
                       "  |<- id: 1  data: {...} -----|  the first event is a message already:\n"
                       "  |                           |  until here a break loses the request\n",
            .needs = "The beginning of the leg, and the negotiated revision (2025-11-25).",
            .blind = "A browser's recording without data (sanitized) does not show whether the "
                     "first event had any. GET streams need no priming.",
            .client = "Nothing; be ready for a stream that breaks before any id (issue the request "
                      "again only if that is safe).",
            .server = "Write the priming event before the handler runs, so that it is on the wire "
                      "even when the handler takes long.",
            .known = "mcp-go and @hono/mcp number their events and do not prime (read in source).",
        },
        .check = check_priming_missing,
    },
    {
        .id = "priming-to-old-client",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_A | ERA_B,
        .summary = "An event with an id and empty data in a session older than 2025-11-25.",
        .why = "Clients of those revisions give the empty data to their JSON parser and fail.",
        .advice = "Server: send priming events only where 2025-11-25 was negotiated.",
        .source = "MCP 2025-11-25, changelog (priming is new there); typescript-sdk#1233, "
                  "python-sdk#1719, go-sdk#696",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- initialize 2025-06-18 ->|\n"
                       "  |-- POST tools/call ------->|\n"
                       "  |<- id: 1  data: -----------|  JSON.parse(\"\") at the client\n",
            .needs = "The negotiated revision, and the event.",
            .blind = "Whether this client really fails: some older ones skip empty data.",
            .client = "Skip events whose data is empty before parsing; keep their id.",
            .server = "Ask the negotiated revision, not the presence of an event store.",
            .known = "The Swift SDK server primes from 2025-03-26 on, rmcp primes GET and "
                     "initialize streams in any revision (read in source).",
        },
        .check = check_priming_old,
    },
    {
        .id = "close-before-id",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T | NEED_H,
        .eras = ERA_C,
        .summary = "The server closed the stream of a request before its response and before any "
                   "event id.",
        .why = "Polling needs a cursor: without one the response can never reach the client.",
        .advice = "Server: send an event with an id before closing early, or keep the stream open "
                  "until the response.",
        .source = SPEC_C ": the connection may be closed after an event ID was sent",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call id 3 -->|\n"
                       "  |<- 200 text/event-stream --|\n"
                       "  |<- data: progress ---------|  no id\n"
                       "  |<- (end of body) ----------|  no response to 3, nothing to resume "
                       "from\n",
            .needs = "The whole leg and its end by the protocol (last chunk, length, END_STREAM).",
            .blind = "A body that only ends with its connection looks the same when the path "
                     "breaks: then it is likely, not proven. A cut stream is resume-impossible.",
            .client = "Fail the request at once: there is no GET that could bring its response.",
            .server = "Look for a handler that ended without a response, or a time-out that closes "
                      "streams whatever they wait for.",
            .path = "A gateway that ends the upstream body cleanly after its own time-out makes "
                    "the same picture.",
        },
        .check = check_close_before_id,
    },
    {
        .id = "close-before-response",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T | NEED_H,
        .eras = ERA_A | ERA_B,
        .summary = "The server ended the stream of a request cleanly before its response.",
        .why = "In these revisions the end of the stream means that there will be no response: "
               "the client fails the request, or waits for ever.",
        .advice = "Server: keep the stream open until every request of the POST is answered; "
                  "polling exists from 2025-11-25 on.",
        .source = "MCP 2025-03-26 and 2025-06-18, Transports > Sending Messages to the Server "
                  "(SHOULD NOT close before the response)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call id 3 -->|\n"
                       "  |<- data: progress ---------|\n"
                       "  |<- (end of body) ----------|  no response to 3\n",
            .needs = "The whole leg, its clean end, and the negotiated revision.",
            .blind = "Whether the session had just expired, unless a 404 says so later. A body "
                     "that ends with its connection is likely only.",
            .client = "If the stream had ids, resume it by GET; else fail the request.",
            .server = "For a batch, wait for the last of its responses.",
            .path = "A gateway that ends the upstream body cleanly makes the same picture.",
        },
        .check = check_close_before_response,
    },
    {
        .id = "close-without-retry",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_C,
        .summary = "The server closed a stream early without ever having sent `retry` on it.",
        .why = "The client comes back when it likes: at once and in a loop, or after many "
               "seconds.",
        .advice = "Server: send a `retry` field before closing the connection of an unfinished "
                  "stream.",
        .source = SPEC_C " (SHOULD send a retry field before closing)",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- id: 1  data: -----------|  no retry here,\n"
                       "  |<- (end of body) ----------|  nor before the end\n"
                       "  |-- GET Last-Event-ID: 1 -->|  when? the client guesses\n",
            .needs = "Every leg of the stream up to the close.",
            .blind = "A HAR of Chrome never shows `retry` fields.",
            .client = "Use a back-off of your own, a second or more.",
            .server = "The priming event is the natural place for it.",
        },
        .check = check_close_without_retry,
    },
    {
        .id = "poll-abandoned",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .eras = ERA_C,
        .summary = "The server closed a stream for the client to poll, and the client never came "
                   "back.",
        .why = "The response waits at the server; the caller waits at the client.",
        .advice = "Client: after the end of a stream with an id and an open request, reconnect by "
                  "GET with Last-Event-ID once `retry` has passed.",
        .source = SPEC_C " (SHOULD poll by reconnecting)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- POST tools/call id 3 -->|\n"
                       "  |<- id: 1 retry: 500 data: -|\n"
                       "  |<- (end of body) ----------|\n"
                       "  |          ...              |  ten times retry, and no GET\n",
            .needs = "Packet times, a `retry` on the stream, and a capture that goes on for ten "
                     "times as long after the close.",
            .blind = "Whether the client's program still ran. A later GET outside the capture.",
            .client = "The end of the body is no answer: only a response is.",
            .server = "Keep the response until the session ends.",
            .known = "The PHP SDK client takes the end of the body for the end of the call; VS "
                     "Code keeps no ids of POST streams; mcp-go's client never sends "
                     "Last-Event-ID (read in source).",
        },
        .check = check_poll_abandoned,
    },
    {
        .id = "stream-open-after-response",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_T,
        .eras = ABC | ERA_D,
        .summary = "The stream of a POST stays open although its last response was sent.",
        .why = "It holds a connection, and a client that waits for the end of the body hangs.",
        .advice = "Server: end the stream after the last response.",
        .source = "MCP 2025-03-26 to 2026-07-28, Transports (SHOULD close or terminate the stream "
                  "after the response)",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- data: {result, id 3} ---|\n"
                       "  |          ...              |  five seconds and more: still open\n",
            .needs = "Packet times. A silence while the client's own window was closed does not "
                     "count.",
            .blind = "Why: a handler that still runs, or a proxy that holds the end back.",
            .client = "Take the response when it comes; do not wait for the end of the body.",
            .server = "Replayed streams too: end them after the response has been replayed.",
            .path = "A proxy may hold the last chunk back.",
            .known = "The Python SDK server keeps the replay of an already finished stream open "
                     "(read in source).",
        },
        .check = check_open_after,
    },
    {
        .id = "message-after-response",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ABC | ERA_D,
        .summary = "A message on the stream of a POST after its last response.",
        .why = "Clients stop reading at the response: the message is lost without notice.",
        .advice = "Server: send what belongs to the request before its response, everything else "
                  "on the standalone stream.",
        .source = "MCP 2025-03-26 to 2026-07-28, Transports (messages MAY be sent before the "
                  "response; the response ends the stream)",
        .explain = {
            .picture = "client                      server\n"
                       "  |<- data: {result, id 3} ---|\n"
                       "  |<- data: notification -----|  nobody may be reading any more\n",
            .needs = "The leg with the response.",
            .blind = "Whether the client still read. Messages of tasks may come anywhere and are "
                     "left out.",
            .client = "Read the stream to its end.",
            .server = "Await the notifications of a handler before its response is written.",
        },
        .check = check_message_after,
    },
    {
        .id = "retry-malformed",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A `retry` field that is no number of milliseconds, or far too large.",
        .why = "Readers ignore the field, and come back when they like.",
        .advice = "Server: ASCII digits only, milliseconds: `retry: 5000`.",
        .source = "WHATWG HTML 9.2.6 (retry: only ASCII digits, else ignore the field)",
        .explain = {
            .picture = "server -> client   retry: 5s      ignored\n"
                       "                   retry: -1      ignored\n"
                       "                   retry:         browsers differ\n",
            .needs = "The event stream's text.",
            .blind = "A HAR of Chrome never shows `retry` fields.",
            .client = "Ignore it; keep the value you had.",
            .server = "The unit is the millisecond; Retry-After, the HTTP header, counts seconds.",
        },
        .check = check_retry,
    },
    {
        .id = "sse-invalid-utf8",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "Bytes that are no UTF-8 in the id or data of an event.",
        .why = "Each reader replaces them: the message is not the one that was sent, and a cursor "
               "made of such an id is not found again.",
        .advice = "Server: encode events as UTF-8; look for text that was cut within a character.",
        .source = "WHATWG HTML 9.2.5 and 9.2.6 (always UTF-8); MCP, Transports (JSON-RPC MUST be "
                  "UTF-8)",
        .explain = {
            .picture = "server -> client   data: {\"text\":\"caf\\xe9\"}   Latin-1: U+FFFD at the "
                       "reader\n",
            .needs = "The bytes of the body; a content coding must be decodable.",
            .blind = "A HAR holds text, not bytes: what was invalid is replaced there already.",
            .client = "Decode the body as a stream, not chunk by chunk: a character may be split.",
            .server = "Write bytes, or set the encoder to UTF-8.",
            .path = "A gateway that decodes chunk by chunk makes U+FFFD of a split character; "
                    "that is valid UTF-8 and not seen here.",
        },
        .check = check_utf8,
    },
    {
        .id = "sse-bom",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A byte order mark within the event stream.",
        .why = "It becomes a part of the field name behind it: that line, an id or data, is lost.",
        .advice = "Server: at most one at the very start, better none.",
        .source = "WHATWG HTML 9.2.5 (one leading BOM is dropped); WPT eventsource/format-bom-2",
        .explain = {
            .picture = "server -> client   EF BB BF data: ...   at the start: dropped\n"
                       "                   EF BB BF data: ...   later: an unknown field\n",
            .needs = "The event stream's text.",
            .blind = "A browser's list of events shows only that one is missing.",
            .server = "Look for parts that are written with a text writer of their own each.",
            .known = "A BOM at the start, too, costs the first field in the Go SDK's client and "
                     "ends the connection of the Java SDK's JDK client (read in source).",
        },
        .check = check_bom,
    },
    {
        .id = "sse-line-dialect",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "Legal line ends or lines that some shipping client cannot read.",
        .why = "It explains why one client works and the other loses events or the connection.",
        .advice = "Server: end lines with LF, write `field: value` with the four known names only.",
        .source = "WHATWG HTML 9.2.6 (grammar and line ends); shipping readers compared",
        .explain = {
            .picture = "server -> client   data: x<CR><CR>     legal, unknown to some\n"
                       "                   data                no colon: an empty value\n"
                       "                   ID: 7               unknown: case counts\n",
            .needs = "The event stream's text.",
            .blind = "CRLF throughout is legal and usual, and no finding.",
            .client = "Use a parser that passes the Web Platform Tests for event streams.",
            .server = "Nothing is wrong by the standard; be strict in what you send all the same.",
            .known = "Lone CR: no line end to the Go SDK's client (read in source); "
                     "eventsource-parser 3.1.1, of the TypeScript SDK and mcp-remote, delays the "
                     "last event (executed). No colon: ends the connection in the Go and Java "
                     "SDKs. Unknown fields: end it in the Java SDK's JDK client (read in source).",
        },
        .check = check_dialect,
    },
    {
        .id = "sse-unexpected-event-name",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "A JSON-RPC message under an event name other than `message`.",
        .why = "Most clients skip other names: the message is delivered and never seen.",
        .advice = "Server: leave the `event` field out, or write `message`.",
        .source = "MCP 2024-11-05, HTTP with SSE (message events); WHATWG HTML 9.2.6 (default "
                  "type)",
        .explain = {
            .picture = "server -> client   event: result\n"
                       "                   data: {\"jsonrpc\":\"2.0\",...}   skipped\n",
            .needs = "The event stream's text.",
            .blind = "Whether this client listens for that name.",
            .client = "Nothing; a client may look at all names.",
            .server = "Names for control events without a message are harmless.",
            .known = "The Go SDK server names its priming and closing events `prime` and `close` "
                     "(read in source): they carry no message and are no finding.",
        },
        .check = check_event_name,
    },
    {
        .id = "sse-data-not-jsonrpc",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "The data of a message event is no JSON, or no JSON-RPC message.",
        .why = "A client drops it, reports an error, or ends the connection over it.",
        .advice = "Server: send nothing but JSON-RPC as `message` data, and comment lines as "
                  "keep-alives.",
        .source = "MCP, Transports (messages are JSON-RPC, in the data of events)",
        .explain = {
            .picture = "server -> client   data: still working...        no JSON\n"
                       "                   data: {\"progress\": 3}         no JSON-RPC\n"
                       "                   data: {}                      stuffing (info)\n",
            .needs = "The event's data, in a session that speaks JSON-RPC.",
            .blind = "Events under other names are not looked at, but for `{}`.",
            .client = "Report and skip such an event; keep its id.",
            .server = "`{}` as priming or keep-alive is harmless to most; empty data or a comment "
                      "is better.",
            .path = "A gateway that adds its own keep-alives as data is the usual cause.",
            .known = "The TypeScript SDK server replays its priming event as `{}`. The Go SDK's "
                     "client ends the connection at bad JSON (read in source).",
        },
        .check = check_data,
    },
    {
        .id = "sse-batch",
        .severity = SEV_ERROR,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .eras = ERA_B | ERA_C | ERA_D,
        .summary = "An array as the data of an event, in a revision without batches.",
        .why = "Clients of these revisions read one message an event: the whole array is lost.",
        .advice = "Server: one message an event.",
        .source = "MCP 2025-06-18, changelog (batching removed)",
        .explain = {
            .picture = "server -> client   data: [{...},{...}]   legal in 2025-03-26 only\n",
            .needs = "The negotiated revision, and the event's data.",
            .blind = "Nothing is said where the revision is not known.",
            .client = "Do not read it as messages; report it.",
            .server = "Split the array; each message of a resumable stream needs its own id.",
        },
        .check = check_batch,
    },
    {
        .id = "sse-status",
        .severity = SEV_WARNING,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "An event stream with a status other than 200, or under another content type.",
        .why = "A reader by the standard takes neither for an event stream, and gives up for good.",
        .advice = "Server: status 200 and text/event-stream together, or neither.",
        .source = "WHATWG HTML 9.2.2 (any other status or type fails the connection)",
        .explain = {
            .picture = "client                      server\n"
                       "  |-- GET ------------------->|\n"
                       "  |<- 206 text/event-stream --|  or: 200 text/plain, data: {...}\n",
            .needs = "The response head; for the content type the first bytes of the body.",
            .blind = "A stream of another type whose first bytes are no whole event line.",
            .client = "Do not reconnect after such an answer.",
            .server = "A refusal should not keep the content type of the stream it refuses.",
            .path = "Frameworks and gateways that rewrite the content type are the usual cause.",
        },
        .check = check_status,
        .whole = whole_status,
    },
    {
        .id = "sse-compressed",
        .severity = SEV_INFO,
        .profile = PROFILE_CONFORMANCE,
        .needs = NEED_H,
        .summary = "An event stream with a content coding.",
        .why = "Legal, but an event may sit in the compressor, and the time at which it could be "
               "read is that of the next flush.",
        .advice = "Server, path: leave event streams uncompressed, or flush after each event.",
        .source = "RFC 9110 8.4 (content codings); codings are decoded as a stream",
        .explain = {
            .picture = "server -> client   Content-Encoding: gzip\n"
                       "                   [event 1 event 2 .. | flush]   readable only here\n",
            .needs = "The response head. An unknown coding is an error of the evidence: it cannot "
                     "be read.",
            .blind = "When the server wrote an event. A HAR holds decoded bodies.",
            .client = "Ask with Accept-Encoding: identity for event streams.",
            .server = "Exclude text/event-stream from compression.",
            .path = "Cache-Control: no-transform keeps proxies from compressing.",
        },
        .check = check_compressed,
    },
};

const struct rule_family rules_sse = RULE_FAMILY("sse", "SSE and priming", rules);
