/*
 * silence.c - RULES.md section 6: times in which a leg brought no byte. Delayed is told from failed
 * by packets: who closed a window, who sent again, who left. A HAR shows none of it.
 */
#include "pace.h"
#include "rule.h"

#include <stdlib.h>

/* Shorter pauses need no explanation. */
#define STALL_MIN NS_PER_SEC

static int64_t length(const struct silence *q)
{
    return q->until.time - q->since.time;
}

/* The receiver did not read, for most of the time. */
static bool by_window(const struct silence *q)
{
    return q->window_closed && q->window_ns >= SILENCE_MIN && q->window_ns * 2 >= length(q);
}

/* Retransmissions double their distance (RFC 6298 5.5): n of them explain some 2^n seconds. */
static bool by_loss(const struct silence *q)
{
    uint32_t n = q->retransmissions < 10 ? q->retransmissions : 10;

    return n > 0 && !by_window(q) && length(q) <= (int64_t)(1U << (n + 1)) * NS_PER_SEC;
}

static bool has_packets(const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[l->exch];

    return !((x->flags | x->rflags) & RECF_HAR);
}

/* The silence that lasted until the leg's end, or NULL. */
static const struct silence *final_silence(const struct leg *l)
{
    const struct silence *q = l->silence_count ? &l->silence[l->silence_count - 1] : NULL;

    if (!q || q->ended_by_data || (l->ended && q->until.time > l->end_at.time + NS_PER_SEC))
        return NULL;
    return q;
}

/* Did anybody wait for something on this stream at t? */
static bool awaited(const struct session *s, const struct leg *l, int64_t t)
{
    const struct stream *st = s->stream[l->stream];
    const struct exch *x = s->exch[st->exch];

    if (st->kind != STREAM_POST)
        return true;
    for (uint32_t i = 0; i < x->msg_count; i++) {
        uint32_t r = x->msg[i].kind == RPC_REQUEST ? x->msg[i].request : NONE;
        if (r != NONE && request_outstanding(s, s->request[r], t))
            return true;
    }
    return false;
}

/* A request of the stream that is unanswered at t and that nobody cancelled, or NULL. */
static const struct request *waiting_request(const struct session *s, const struct leg *l,
                                             int64_t t)
{
    const struct exch *x = s->exch[s->stream[l->stream]->exch];

    for (uint32_t i = 0; i < x->msg_count; i++) {
        uint32_t r = x->msg[i].kind == RPC_REQUEST ? x->msg[i].request : NONE;
        if (r != NONE && request_outstanding(s, s->request[r], t) && !s->request[r]->cancelled.time)
            return s->request[r];
    }
    return NULL;
}

/* leg -> the first reconnect that goes on with its stream after it, or NONE; to be freed */
static uint32_t *resumed_by(const struct session *s)
{
    uint32_t *by = mem_alloc((s->leg_count + 1) * sizeof(*by));

    for (uint32_t i = 0; i < s->leg_count; i++)
        by[i] = NONE;
    for (uint32_t i = s->resumption_count; i-- > 0;) {
        const struct resumption *r = s->resumption[i];
        if (r->previous_leg != NONE)
            by[r->previous_leg] = r->exch;
    }
    return by;
}

/* ---- one silence of a leg for all of its kind ---- */

typedef bool (*silence_test)(const struct rule_run *run, const struct session *s,
                             const struct leg *l, const struct silence *q);

struct quiet {
    const struct silence *longest;
    uint32_t count;
    int64_t total;
};

static struct quiet quiet_of(const struct rule_run *run, const struct session *s,
                             const struct leg *l, silence_test is)
{
    struct quiet all = { 0 };

    for (uint32_t i = 0; i < l->silence_count; i++) {
        const struct silence *q = &l->silence[i];
        if (!is(run, s, l, q))
            continue;
        all.count++;
        all.total += length(q);
        if (!all.longest || length(q) > length(all.longest))
            all.longest = q;
    }
    return all;
}

static struct finding *quiet_finding(struct rule_run *run, const struct session *s,
                                     const struct leg *l, const struct quiet *all)
{
    struct finding *f = finding_add(run, s);

    finding_on_leg(run, f, l);
    f->count = all->count;
    finding_frame(run, f, all->longest->since, "the last byte before the silence");
    finding_frame(run, f, all->longest->until, "%s",
                  all->longest->ended_by_data ? "the next byte" : "nothing came until here");
    return f;
}

static const char *times_text(struct rule_run *run, const struct quiet *all)
{
    if (all->count == 1)
        return "";
    return run_text(run, " (the longest of %u, %s in all)", all->count,
                    run_seconds(run, all->total));
}

/* ---- stall-backpressure ---- */

static bool is_backpressure(const struct rule_run *run, const struct session *s,
                            const struct leg *l, const struct silence *q)
{
    (void)run;
    (void)s;
    (void)l;
    return length(q) >= STALL_MIN && by_window(q);
}

/* The client did not wait for the end of the silence that it caused. */
static bool given_up(const struct session *s, const struct leg *l, const struct silence *q,
                     uint32_t resumed)
{
    if (leg_client_left(l) && q == final_silence(l))
        return true;
    if (resumed == NONE || (l->ended && l->end != END_OPEN && !leg_client_left(l)))
        return false; /* never resumed, or ended by the other side */
    int64_t t = s->exch[resumed]->first.time;
    return t > q->since.time && t <= q->until.time + NS_PER_SEC;
}

static void check_backpressure(struct rule_run *run, const struct session *s)
{
    uint32_t *resumed = resumed_by(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        struct quiet all = quiet_of(run, s, l, is_backpressure);
        if (all.count == 0 || !has_packets(s, l))
            continue;
        const struct silence *last = final_silence(l);
        const struct silence *q =
            last && is_backpressure(run, s, l, last) && given_up(s, l, last, resumed[i])
                ? last
                : all.longest;
        bool left = given_up(s, l, q, resumed[i]);
        all.longest = q;
        struct finding *f = quiet_finding(run, s, l, &all);
        f->severity = left ? SEV_WARNING : SEV_INFO;
        f->party = PARTY_CLIENT;
        finding_message(run, f,
                        "no byte for %s while the client's receive window was closed or filled "
                        "(%s of it)%s: the client did not read, the stream was delayed, not "
                        "failed%s",
                        run_seconds(run, length(q)), run_seconds(run, q->window_ns),
                        times_text(run, &all),
                        left ? "; the client then gave it up all the same" : "");
        finding_frame(run, f, q->window_place, "the window is closed, or filled by this");
        if (left && leg_client_left(l))
            finding_frame(run, f, l->end_at, "the client closes the leg");
    }
    free(resumed);
}

/* ---- stall-network ---- */

static bool is_loss(const struct rule_run *run, const struct session *s, const struct leg *l,
                    const struct silence *q)
{
    (void)run;
    (void)s;
    (void)l;
    return length(q) >= STALL_MIN && by_loss(q);
}

static void check_network(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        struct quiet all = quiet_of(run, s, l, is_loss);
        if (all.count == 0 || !has_packets(s, l))
            continue;
        struct finding *f = quiet_finding(run, s, l, &all);
        f->party = PARTY_PATH;
        f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "no new byte for %s while the server sent again what was not acknowledged "
                        "(%u time%s)%s: loss on the path",
                        run_seconds(run, length(all.longest)), all.longest->retransmissions,
                        all.longest->retransmissions == 1 ? "" : "s", times_text(run, &all));
        finding_frame(run, f, all.longest->retransmission_place, "the first retransmission");
    }
}

/* ---- stall-keepalive-stopped ---- */

static bool is_stopped(const struct rule_run *run, const struct session *s, const struct leg *l,
                       const struct silence *q)
{
    int64_t period;

    if (by_window(q) || by_loss(q) || !leg_pace(l, &period))
        return false;
    /* The distance across a silence that a keep-alive ended is one of those seen. */
    if (q->ended_by_data && l->period_count < 3)
        return false;
    return (double)length(q) > run->limit->keepalive_factor * (double)period &&
           awaited(s, l, q->until.time);
}

static void check_stopped(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        struct quiet all = quiet_of(run, s, l, is_stopped);
        int64_t period;
        if (all.count == 0 || !has_packets(s, l) || l->gaps > 0 || !leg_pace(l, &period))
            continue;
        struct finding *f = quiet_finding(run, s, l, &all);
        f->party = PARTY_UNKNOWN;
        finding_message(run, f,
                        "no byte for %s, though a keep-alive had come every %s (median of %u "
                        "distances) and the client's window was open%s: server or path went silent",
                        run_seconds(run, length(all.longest)), run_seconds(run, period),
                        l->period_count < LEG_PERIODS ? l->period_count : LEG_PERIODS,
                        times_text(run, &all));
        finding_frame(run, f, l->last_keepalive, "the last keep-alive of the leg");
        if (l->ended && l->end != END_OPEN)
            finding_frame(run, f, l->end_at, "the leg ends (%s)", end_kind_text(l->end));
    }
}

/* ---- idle-cut ---- */

/* What middleboxes, balancers and runtimes are set to, as shipped, in seconds. */
static const uint16_t idle_times[] = { 30,  55,  60,  100, 120,  180,  240,
                                       300, 350, 600, 900, 1200, 1800, 3600 };

static uint16_t idle_signature(int64_t quiet)
{
    for (size_t i = 0; i < ARRAY_LEN(idle_times); i++) {
        int64_t t = idle_times[i] * NS_PER_SEC;
        int64_t near = t / 50 > NS_PER_SEC ? t / 50 : NS_PER_SEC;
        if (quiet >= t - near && quiet <= t + near)
            return idle_times[i];
    }
    return 0;
}

static uint16_t idle_cut_of(const struct session *s, const struct leg *l)
{
    const struct silence *q = final_silence(l);

    if (!(leg_cut(l) || leg_client_left(l)) || !has_packets(s, l) || (q && (by_window(q))) ||
        !awaited(s, l, l->end_at.time))
        return 0;
    return idle_signature(l->end_at.time - l->last_byte.time);
}

static void check_idle_cut(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        uint16_t usual = idle_cut_of(s, l);
        if (usual == 0 || l->gaps > 0)
            continue;
        const struct exch *x = s->exch[l->exch];
        bool client = leg_client_left(l);
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->party = client ? PARTY_CLIENT : x->middlebox ? PARTY_PATH : PARTY_UNKNOWN;
        f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "the stream was %s after %s without a byte; %u s is a usual idle time-out",
                        client              ? "given up by the client's side"
                        : x->middlebox      ? "reset by a middlebox in the server's name"
                        : l->end == END_RST ? "reset from the server's side"
                                            : "closed from the server's side",
                        run_seconds(run, l->end_at.time - l->last_byte.time), usual);
        finding_frame(run, f, l->end_at, "the leg ends (%s)", end_kind_text(l->end));
        finding_frame(run, f, l->last_byte, "the last byte before");
    }
}

/* ---- held back on the way ---- */

#define BURST     NS_PER_SEC
#define BURST_MIN 3 /* keep-alives that came all at once */

/* A single answer that is written at once as a finished event stream holds nothing back. */
static bool length_known(const struct rule_run *run, const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[l->exch];
    bool waited = x->sent.time && l->begin.time - x->sent.time >= run->limit->burst_spread;

    bool length = (x->rflags & RECF_LENGTH) || ((x->rflags & RECF_HTTP2) && x->content_length >= 0);

    return length && l->event_count > 0 && (l->event_count + l->comments > 1 || waited);
}

/* Keep-alives are sent to be apart: those that come together after a long wait were held back. */
static bool came_at_once(const struct rule_run *run, const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[l->exch];
    const struct event *e = event_at(s, l->first_event);
    int64_t from = l->first_comment.time;

    if (l->comments < BURST_MIN || l->gaps > 0 || x->sent.time == 0)
        return false;
    if (e && e->begin.time < from)
        from = e->begin.time;
    for (uint32_t i = 0; i < l->silence_count; i++) {
        if (by_window(&l->silence[i]) || by_loss(&l->silence[i]))
            return false;
    }
    return from - x->sent.time >= run->limit->burst_spread &&
           l->last_comment.time - from <= BURST && l->last_byte.time - from <= BURST;
}

/* ---- stall-server-silent ---- */

static bool is_silent(const struct rule_run *run, const struct session *s, const struct leg *l,
                      const struct silence *q)
{
    int64_t period;

    if (length(q) <= run->limit->idle_timeout || by_window(q) || q->retransmissions > 0 ||
        leg_pace(l, &period))
        return false;
    return awaited(s, l, q->until.time) && !came_at_once(run, s, l) &&
           !(q == final_silence(l) && idle_cut_of(s, l));
}

static void check_silent(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        struct quiet all = quiet_of(run, s, l, is_silent);
        if (all.count == 0 || !has_packets(s, l) || l->gaps > 0)
            continue;
        struct finding *f = quiet_finding(run, s, l, &all);
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "no byte for %s with an open window, nothing sent again and no keep-alive "
                        "to expect%s: the server had nothing to say",
                        run_seconds(run, length(all.longest)), times_text(run, &all));
    }
}

/* ---- idle-timeout-premature ---- */

/* The last event that carries a message, or the begin of the leg. */
static struct place last_message(const struct session *s, const struct leg *l)
{
    struct place at = l->begin;

    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (!e->keepalive && !e->priming)
            at = e->at;
    }
    return at;
}

/* Keep-alives went on, and only messages had not come for a while: a crash of the client looks
 * alike, but comes at any time. */
static bool kept_alive(const struct rule_run *run, const struct session *s, const struct leg *l,
                       struct place *ret_message)
{
    int64_t period;

    if (!leg_pace(l, &period))
        return false;
    double reach = run->limit->keepalive_factor * (double)period;
    *ret_message = last_message(s, l);
    return (double)(l->end_at.time - l->last_keepalive.time) <= reach &&
           l->last_keepalive.time >= ret_message->time + period &&
           (double)(l->end_at.time - ret_message->time) > reach;
}

static void check_premature(struct rule_run *run, const struct session *s)
{
    uint32_t *resumed = resumed_by(s);

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        struct place message = l->last_byte;
        if (!leg_client_left(l) || resumed[i] == NONE || !has_packets(s, l) || l->gaps > 0)
            continue;
        const struct exch *again = s->exch[resumed[i]];
        const struct request *r = waiting_request(s, l, l->end_at.time);
        const struct silence *q = final_silence(l);
        bool held = q && is_backpressure(run, s, l, q);
        if (again->first.time < l->end_at.time || !r || !(held || kept_alive(run, s, l, &message)))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        finding_on_leg(run, f, l);
        f->party = PARTY_CLIENT;
        f->certainty = held ? CERTAINTY_PROVEN : CERTAINTY_LIKELY;
        finding_message(
            run, f,
            "the client gave up a leg that was alive (%s) while request %s was outstanding, %s "
            "after its last message, and resumed it",
            held ? "held back by the client's own closed window" : "keep-alives were coming",
            run_rpc_id(run, &r->msg->id), run_seconds(run, l->end_at.time - message.time));
        finding_frame(run, f, l->end_at, "the client closes the leg");
        finding_frame(run, f, held ? q->window_place : l->last_keepalive, "%s",
                      held ? "the client's window is closed" : "the last keep-alive");
        finding_frame(run, f, again->first, "the client resumes the stream");
    }
    free(resumed);
}

/* ---- proxy-buffered ---- */

static void check_buffered(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        const struct exch *x = s->exch[l->exch];
        bool length_given = length_known(run, s, l);
        if (!has_packets(s, l) || !(length_given || came_at_once(run, s, l)))
            continue;
        int64_t wait = l->begin.time - x->sent.time;
        struct finding *f = finding_add(run, s);
        finding_on_leg(run, f, l);
        f->party = PARTY_PATH;
        f->certainty = CERTAINTY_LIKELY;
        if (length_given)
            finding_message(run, f,
                            "the event stream has a Content-Length: its end was known before its "
                            "first byte was sent (%s after the request), so it was collected, not "
                            "streamed",
                            run_seconds(run, wait));
        else
            finding_message(run, f,
                            "%u keep-alives and %u events came within %s, %s after the request: "
                            "something held them back",
                            l->comments, l->event_count,
                            run_seconds(run, l->last_byte.time - l->first_comment.time),
                            run_seconds(run, l->first_comment.time - x->sent.time));
        finding_frame(run, f, x->sent, "the request");
        finding_frame(run, f, l->begin, "the head of the answer");
        finding_frame(run, f, l->last_byte, "the last byte of the stream");
    }
}

static const struct rule rules[] = {
    {
        .id = "stall-backpressure",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "The stream was silent because the client did not read.",
        .why = "The server could not send, keep-alives included: the stream was delayed. Giving it "
               "up then is the client's own doing.",
        .advice = "Client: read the body in a task of its own, and let no handler hold it up; "
                  "measure silence only while you are reading.",
        .source = "RFC 9293 3.8.6 (window management, zero-window probes)",
        .explain = {
            .picture = "client                    server\n"
                       "  |<------- event 11 --------|\n"
                       "  |-- ACK, window 0 -------->|\n"
                       "  |   (does not read)        |   events and keep-alives wait here\n"
                       "  |<------- probe -----------|\n"
                       "  |-- ACK, window 0 -------->|\n",
            .needs = "The client's acknowledgements with their window; closed, or filled by what "
                     "was sent, for at least half of the silence.",
            .blind = "Windows of HTTP/2 streams. Without the handshake the scale of the window is "
                     "not known: then only a window of zero counts.",
            .client = "Hand messages to a queue instead of handling them in the reader.",
            .server = "Bound what you store for a client that does not read; its cursor stays good.",
        },
        .check = check_backpressure,
    },
    {
        .id = "stall-keepalive-stopped",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "Keep-alives that had come regularly stopped while the client was ready to read.",
        .why = "The server or the path went silent without closing: what was sent since then may "
               "never arrive on this leg.",
        .advice = "Client: resume with the cursor after two or three missed keep-alives. Path: look "
                  "for a middlebox that drops idle connections without telling.",
        .source = "WHATWG HTML 9.2.7 (a comment every 15 seconds or so); reasoning",
        .explain = {
            .picture = "client                    server\n"
                       "  |<------- : keepalive -----|   15 s\n"
                       "  |<------- : keepalive -----|   15 s\n"
                       "  |<------- : keepalive -----|   15 s\n"
                       "  |                          |   40 s of nothing, window open, no FIN\n",
            .needs = "Two or more regular distances of keep-alives (comments, or events without a "
                     "message), then more than 2.5 times their median without a byte, while the "
                     "window is open and nothing is sent again.",
            .blind = "Which side of the capture went silent. Irregular comments are no clock.",
            .client = "Count any byte as life, not only messages.",
            .server = "Send keep-alives from a timer that the work cannot block.",
            .path = "Idle time-outs longer than the keep-alives' distance, and a reset when they "
                    "strike.",
            .known = "Distances as shipped: TypeScript and Python SDK, rmcp 15 s; Cloudflare 25 s; "
                     "Ruby, @hono/mcp 30 s (read in source).",
        },
        .check = check_stopped,
    },
    {
        .id = "stall-network",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "The stream was silent because packets were lost and sent again.",
        .why = "Delay by loss looks like a dead server to an idle timer.",
        .advice = "Path: look for loss between the two ends (MTU, wireless, overload). Client: do "
                  "not choose idle times below some seconds.",
        .source = "RFC 6298 5 (retransmission timer, back-off)",
        .explain = {
            .picture = "client                    server\n"
                       "  |          X<-- event 7 ---|\n"
                       "  |          X<-- event 7 ---|   again\n"
                       "  |<------------- event 7 ---|   again, and here it comes\n",
            .needs = "Retransmissions of bytes that were not acknowledged, as many as such a pause "
                     "takes, and a window that was not closed.",
            .blind = "Loss between the capture and the sender shows only as a pause.",
            .path = "Compare captures of both ends.",
        },
        .check = check_network,
    },
    {
        .id = "stall-server-silent",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "The server sent nothing for long, and no keep-alive could be expected.",
        .why = "Nobody can tell such a stream from a dead one; idle timers on the way will cut it.",
        .advice = "Server: send a comment every 15 s or so on every open stream, POST streams too.",
        .source = "WHATWG HTML 9.2.7; threshold idle_timeout of the policy (60 s)",
        .explain = {
            .picture = "client                    server\n"
                       "  |-- POST call ------------>|\n"
                       "  |<-- 200, stream ----------|\n"
                       "  |                          |   75 s of nothing\n",
            .needs = "A silence above the threshold with an open window, without retransmissions, on "
                     "a leg that has no regular keep-alives and on which something is awaited.",
            .blind = "What the server was doing.",
            .server = "Report progress on long calls.",
            .known = "No keep-alives of their own: Go SDK; TypeScript SDK before July 2026 (read in source).",
        },
        .check = check_silent,
    },
    {
        .id = "idle-timeout-premature",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "The client gave up a stream that was delayed, not failed.",
        .why = "Every needless reconnect is a replay, and every replay a chance to lose or to do "
               "something twice.",
        .advice = "Client: let any byte, keep-alives too, restart the idle timer, and do not count "
                  "time in which you did not read.",
        .source = "reasoning: the boundary of delayed and failed is the replay proof, not the time; "
                  "WHATWG HTML 9.2.7 (keep-alive comments)",
        .explain = {
            .picture = "client                    server\n"
                       "  |-- POST call 1 ---------->|\n"
                       "  |<-- id: 5 ----------------|\n"
                       "  |<-- : keepalive ----------|\n"
                       "  |<-- : keepalive ----------|\n"
                       "  |-- FIN ------------------>|   gives up though it is alive\n"
                       "  |-- GET, cursor 5 -------->|\n",
            .needs = "The client's own close while a request is outstanding and not cancelled, then "
                     "a resumption; before the close either regular keep-alives, or its own closed "
                     "window.",
            .blind = "A client that crashed between two keep-alives and started again: certainty "
                     "is likely, not proven.",
            .client = "Cancel a request that took too long; do not drop its stream.",
        },
        .check = check_premature,
    },
    {
        .id = "idle-cut",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "A stream was cut after a silence as long as a usual idle time-out.",
        .why = "It will happen again at the same age of silence, whatever the two ends do.",
        .advice = "Server: send keep-alives on every open stream, at less than half of this time. "
                  "Path: raise the idle time-out for event streams.",
        .source = "reasoning: defaults of load balancers, proxies and runtimes",
        .explain = {
            .picture = "client           balancer           server\n"
                       "  |<-- head ------|-------------------|\n"
                       "  |               |   60 s of nothing |\n"
                       "  |<-- RST -------|                   |\n",
            .needs = "The time from the last byte to the cut, within 2 percent or 1 s of 30, 55, 60, "
                     "100, 120, 180, 240, 300, 350, 600, 900 s and the like.",
            .blind = "Whose timer it was: a capture near the client sees a balancer's reset as the "
                     "server's. By chance a server that dies can hit such a time too.",
            .client = "Resume; do not take it for the end of the call.",
            .server = "Keep-alives on one stream do not keep another one alive.",
            .path = "60 s, 100 s and 350 s are what balancers and proxies are shipped with; 300 s "
                    "is that of some HTTP client runtimes.",
        },
        .check = check_idle_cut,
    },
    {
        .id = "proxy-buffered",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "An event stream was collected on the way and delivered in one piece.",
        .why = "Times of its events say nothing about the server, progress is useless, and a cut "
               "loses all of it at once.",
        .advice = "Path: turn off response buffering for text/event-stream. Server: send "
                  "X-Accel-Buffering: no and Cache-Control: no-transform.",
        .source = "WHATWG HTML 9.2.7 (chunking and buffering by intermediaries); MCP 2026-07-28 "
                  "(X-Accel-Buffering)",
        .explain = {
            .picture = "client            gateway            server\n"
                       "  |                 |<-- : ping -------|\n"
                       "  |                 |<-- : ping -------|\n"
                       "  |                 |<-- progress -----|\n"
                       "  |<== all of it ===|<-- response -----|\n",
            .needs = "A Content-Length on a stream of several events (or of one that came late), or "
                     "three or more keep-alives together after a long wait.",
            .blind = "Buffers that let go now and then. A server that writes its single answer at "
                     "once as a finished event stream has a Content-Length too, and holds nothing "
                     "back.",
            .server = "Flush after every event.",
            .path = "Also look for compression without flushes.",
        },
        .check = check_buffered,
    },
};

const struct rule_family rules_silence = RULE_FAMILY("silence", "Silence", rules);
