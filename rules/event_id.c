/* event_id.c - RULES.md section 3: event ids. */
#include "rule.h"

#define ABC (ERA_A | ERA_B | ERA_C)

static bool resumed(const struct session *s, const struct event *e)
{
    return s->leg[e->leg]->resumed;
}

static bool in_era(const struct session *s, const struct event *e, unsigned eras)
{
    enum era era = leg_exch(s, s->leg[e->leg])->era;

    return era == ERA_UNKNOWN || (era & eras);
}

static void frame_both(struct rule_run *run, struct finding *f, const struct session *s,
                       const struct event *e, uint32_t other)
{
    const struct event *o = event_at(s, other);

    finding_frame(run, f, e->at, "event %s", run_id(run, e->id));
    if (o)
        finding_frame(run, f, o->at, "another event with this id");
}

static void check_reused(struct rule_run *run, const struct session *s)
{
    if (!s->ids_reused || s->epoch)
        return;
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (e->same_id == NONE || e->first != e->index || e->stripped || !in_era(s, e, ABC))
            continue;
        const struct event *o = event_at(s, e->same_id);
        if (o && o->priming && e->priming && o->stream == e->stream)
            continue;
        if (resumed(s, e) && o && o->stream == e->stream)
            continue; /* within a replay: replay-payload-changed */
        struct finding *f = finding_add(run, s);
        f->event_id = e->id;
        f->subject = run_id(run, e->id);
        f->party = PARTY_SERVER;
        f->stream = e->stream;
        finding_message(
            run, f,
            "the id %s stands on two different events of the session: as a cursor it would be "
            "ambiguous",
            run_id(run, e->id));
        frame_both(run, f, s, e, e->same_id);
    }
}

/* Where the ids start again, and the last id before that. */
static void check_epoch(struct rule_run *run, const struct session *s)
{
    const struct event *at = NULL;
    const struct resumption *r = NULL;

    for (const struct event *e = event_next(s, 0); s->epoch && e && !at;
         e = event_next(s, e->index + 1)) {
        if (e->same_id != NONE && e->first == e->index && !e->stripped)
            at = e;
    }
    if (!at)
        return;
    for (uint32_t i = 0; i < s->resumption_count && !r; i++) {
        if (s->resumption[i]->faults & RF_EPOCH)
            r = s->resumption[i];
    }
    struct finding *f = finding_add(run, s);
    if (r)
        finding_on_resumption(run, f, r);
    f->event_id = at->id;
    f->stream = r ? f->stream : at->stream;
    f->party = PARTY_SERVER;
    finding_message(
        run, f, "the event ids start again within the session: %s is given to another event%s%s",
        run_id(run, at->id), r ? "; the cursor points into another epoch: " : "",
        r ? run_id(run, r->cursor) : "");
    if (r)
        finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                      run_id(run, r->cursor));
    frame_both(run, f, s, at, at->same_id);
}

/* The trailing number of an id, for schemes that are proven to count. */
static bool number_of(struct slice id, struct slice *ret_rest, uint64_t *ret)
{
    size_t n = id.len;

    while (n > 0 && byte_is_digit(id.ptr[n - 1]))
        n--;
    *ret_rest = (struct slice){ id.ptr, n };
    return slice_u64((struct slice){ id.ptr + n, id.len - n }, UINT64_MAX, ret);
}

static void back_step(struct rule_run *run, const struct session *s, const struct event *p,
                      const struct event *e)
{
    struct slice a;
    struct slice b;
    uint64_t na;
    uint64_t nb;

    if (!number_of(p->id, &a, &na) || !number_of(e->id, &b, &nb) || !slice_eq(a, b) || nb >= na)
        return;
    struct finding *f = finding_add(run, s);
    f->event_id = e->id;
    f->event = e->index;
    f->stream = e->stream;
    f->party = PARTY_SERVER;
    finding_message(run, f, "the id goes back from %s to %s, outside a replay", run_id(run, p->id),
                    run_id(run, e->id));
    finding_frame(run, f, e->at, "event %s", run_id(run, e->id));
    finding_frame(run, f, p->at, "the event before it: %s", run_id(run, p->id));
}

/* A step of a counter: up, and not far. Random numbers do not climb like this. */
static bool counts_up(const struct event *a, const struct event *b)
{
    struct slice ra;
    struct slice rb;
    uint64_t na;
    uint64_t nb;

    return number_of(a->id, &ra, &na) && number_of(b->id, &rb, &nb) && slice_eq(ra, rb) &&
           nb > na && nb - na < 1000;
}

/* The leg's own ids prove the order: three steps up before the one that goes back. */
#define PROOF 3
static void monotonic_on_leg(struct rule_run *run, const struct session *s, const struct leg *l)
{
    const struct event *high = NULL;
    unsigned steps = 0;

    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (!e->has_id || e->id.len == 0 || e->first != e->index)
            continue;
        bool up = high && counts_up(high, e);
        steps += up;
        if (high && !up && steps >= PROOF)
            back_step(run, s, high, e);
        if (!high || up)
            high = e;
    }
}

static void check_monotonic(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; !s->epoch && i < s->leg_count; i++) {
        if (!s->leg[i]->resumed)
            monotonic_on_leg(run, s, s->leg[i]);
    }
}

static bool stream_uses_ids(const struct session *s, const struct stream *st)
{
    for (uint32_t i = 0; i < st->leg_count; i++) {
        if (s->leg[st->leg[i]]->last_id != NONE)
            return true;
    }
    return false;
}

static const struct message *needs_id(const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        if (rpc_is_response(e->msg[i].kind) || e->msg[i].kind == RPC_REQUEST)
            return &e->msg[i];
    }
    return NULL;
}

static void check_partial(struct rule_run *run, const struct session *s)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        const struct message *m = !e->has_id ? needs_id(e) : NULL;
        if (!m || !in_era(s, e, ABC) || !stream_uses_ids(s, s->stream[e->stream]))
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        f->request_id = m->id;
        f->party = PARTY_SERVER;
        finding_message(
            run, f, "the stream uses event ids, but this %s has none: it cannot be asked for again",
            m->kind == RPC_REQUEST ? "server request" : "response");
    }
}

static const char *unsafe_how(struct slice id, size_t limit)
{
    if (id.len > limit)
        return "it is longer than a header should be";
    if (id.len > 0 && (id.ptr[0] == ' ' || id.ptr[id.len - 1] == ' ' || id.ptr[0] == '\t' ||
                       id.ptr[id.len - 1] == '\t'))
        return "blanks at its ends are lost in a header";
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < 0x20 || id.ptr[i] == 0x7f)
            return "it has control bytes";
        if (id.ptr[i] >= 0x80)
            return "it has bytes outside ASCII";
    }
    return NULL;
}

static void check_unsafe(struct rule_run *run, const struct session *s)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        const char *how = e->has_id ? unsafe_how(e->id, run->limit->id_length) : NULL;
        bool nul = (e->oddities & 1u << 5);
        if (!how && !nul)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        f->party = PARTY_SERVER;
        f->subject = how ? how : "NUL";
        f->event = NONE;
        if (!how)
            f->severity = SEV_INFO;
        finding_message(run, f, "an event id cannot travel in a header unchanged: %s",
                        how ? how : "it holds U+0000, so that the standard ignores the field");
    }
}

static void check_removed(struct rule_run *run, const struct session *s)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (!e->has_id || leg_exch(s, s->leg[e->leg])->era != ERA_D)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_event(run, f, e);
        f->event = NONE;
        f->subject = "id in D";
        f->party = PARTY_SERVER;
        finding_message(run, f,
                        "an id field in a stream of revision 2026-07-28, where ids mean nothing");
    }
}

static const struct rule rules[] = {
    {
        .id = "event-id-reused",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "One id stands on two different events of a session.",
        .why =
            "A cursor with this id points at two places: a resumption may skip or repeat events.",
        .advice = "Server: make ids unique over all streams of the session.",
        .source = "MCP 2025-03-26, 2025-06-18 and 2025-11-25, Transports > Resumability and "
                  "Redelivery: an id MUST be globally unique over all streams of the session",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--- stream A: id: 0 {message x} ---|\n"
                       "  |<--- stream B: id: 0 {message y} ---|   the same id\n"
                       "  |             (A is cut)             |\n"
                       "  |-- GET, Last-Event-ID: 0 ---------->|   after x, or after y?\n",
            .needs = "Two events of one session with one id and different content, outside of a "
                     "replay. Both must be whole in the recording.",
            .blind = "Ids beyond --max-ids, and reuse with the same content (that looks like a "
                     "redelivery). Two priming events of one stream under one id are left out.",
            .client = "Nothing protects you but luck: after a break resume only streams whose ids "
                      "are unique, and take anything unexpected in the replay for a failure.",
            .server = "Put the stream into the id (stream and number) or count over the whole "
                      "session; never use the session id or a constant as an event id, and do not "
                      "start a counter again when a request id comes again.",
            .known = "java-sdk 305e4cb: the session id on every final response. rust-sdk (rmcp) "
                     "4a738b9: \"0\" on priming events, which the first common event has too. "
                     "csharp-sdk 609499b: starts again when a request id is reused (all read in "
                     "source).",
        },
        .check = check_reused,
    },
    {
        .id = "event-id-epoch-reset",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The event ids start again within a session.",
        .why =
            "Old cursors now point at other events: a resumption skips or repeats without notice.",
        .advice = "Server: persist the counter with the session, or put an epoch into the ids, or "
                  "end the "
                  "session on restart.",
        .source = "MCP 2025-03-26 to 2025-11-25, Transports > Resumability and Redelivery: ids "
                  "MUST be globally unique in the session. Reasoning: the same numbers with other "
                  "content are a new count",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------- id: 1, 2, 3, 4, 5 ---|\n"
                       "  |     (cut; the server restarts)     |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   5 of before\n"
                       "  |<--- id: 1, 2 ... other messages ---|   another count\n",
            .needs = "Ids of a counting scheme that come again with other content, in order, "
                     "within one session.",
            .blind = "A restart after which the new count has not yet reached a number that was "
                     "used before: until then it looks like old ids going back. Opaque ids cannot "
                     "show it.",
            .client = "Fail the outstanding requests, drop all cursors of the session, and start "
                      "a new session.",
            .server = "Keep the counter with the session in the same store, or begin each process "
                      "with a new prefix in the ids, or let the session end with the restart "
                      "(404).",
            .path = "With several replicas behind one address, each with its own counter, every "
                    "change of replica looks like this: route by session.",
        },
        .check = check_epoch,
    },
    {
        .id = "event-id-not-monotonic",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary =
            "In a stream whose ids are proven to count up, an id goes back outside a replay.",
        .why = "A server that replays by comparing numbers will repeat or skip here.",
        .advice = "Server: assign ids in the order of sending.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: ids mark a position "
                  "in a stream; their order is left to the server. Reasoning: a counter that goes "
                  "back no longer marks a position",
        .explain = {
            .picture = "client                              server\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |<-------------- id: 7 {progress} ---|\n"
                       "  |<-------------- id: 6 {response} ---|   goes back, no replay\n"
                       "  |        (cut here: cursor 6)        |\n"
                       "  |-- GET, Last-Event-ID: 6 ---------->|   is 7 after it?\n",
            .needs = "A leg that resumes nothing, and ids of which the recording itself proves "
                     "that they count up (three or more, no contradiction).",
            .blind = "Opaque ids and ids with a time in them: no order is asked of them. No "
                     "revision asks for an order at all; it is a risk, not a breach.",
            .client = "Take the last id received, not the highest one.",
            .server = "Assign the id at the moment of writing, under the lock of the stream. If "
                      "the store replays by comparing numbers, a cursor taken here skips or "
                      "repeats.",
        },
        .check = check_monotonic,
    },
    {
        .id = "event-id-partial",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A stream that uses ids sends a response or a server request without one.",
        .why = "If the connection breaks here, this message cannot be asked for again.",
        .advice = "Server: give every message of a resumable stream an id.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: ids are optional, "
                  "and what can be replayed comes after an id. Reasoning: a message without one "
                  "can be neither named nor acknowledged",
        .explain = {
            .picture = "client                              server\n"
                       "  |<-------------- id: 5 {progress} ---|\n"
                       "  |<----------- {response 1}, no id ---|   cannot be asked for\n"
                       "  |      (cut before it arrives)       |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<--------------------- id: 6 ... ---|   is response 1 in the store?\n",
            .needs = "A response or a request of the server without an id field, on a stream on "
                     "which other events have ids.",
            .blind = "A server may keep messages without an id in its store all the same; only a "
                     "cut shows it.",
            .client = "After a break behind such a message do not count on the replay: treat the "
                      "request as outcome unknown.",
            .server = "Give an id to every message of a stream that can be resumed; notifications "
                      "that may be lost are the only ones that can go without.",
        },
        .check = check_partial,
    },
    {
        .id = "event-id-unsafe",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ERA_L | ABC,
        .summary = "An event id cannot travel in a header unchanged.",
        .why = "The cursor that comes back will not equal the id.",
        .advice = "Server: use visible ASCII without blanks, shorter than 4 KiB.",
        .source = "WHATWG HTML 9.2.6 (an id with U+0000 is ignored), 9.2.4 (values of the last "
                  "event ID); RFC 9110 5.5 (no control bytes, outer blanks are lost); "
                  "whatwg/html#689, #7363",
        .explain = {
            .picture = "client                              server\n"
                       "  |<-------------- id: \" caf\\xe9 1\" ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- Last-Event-ID: caf? 1 ---------->|   blanks and bytes changed\n"
                       "  |<--------- 400, unknown event id ---|\n",
            .needs = "The id field as bytes. The limit of the length is a threshold of the policy "
                     "(4096).",
            .blind = "Whether this client and these proxies change it: see cursor-mangled for a "
                     "case where it happened.",
            .client = "Send the id UTF-8 encoded and unchanged; if that cannot be done, send no "
                      "header and fail the stream.",
            .server = "Use letters, digits and - _ . : only, short. An id with U+0000 is not "
                      "stored by any standard parser: the cursor stays at the event before.",
            .path = "Header limits of 8 KiB in all are common: long ids make the whole reconnect "
                    "fail with 431 or 400.",
        },
        .check = check_unsafe,
    },
    {
        .id = "event-id-in-removed-revision",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "An id field in a stream of a revision without resumption.",
        .why = "It promises a cursor that no server honours.",
        .advice = "Server: leave the field out in 2026-07-28 exchanges.",
        .source = "MCP 2026-07-28, changelog, major change 9: event ids and redelivery were "
                  "removed; Transports > Streamable HTTP: streams cannot be resumed",
        .explain = {
            .picture = "client                                    server\n"
                       "  |-- POST tools/call,                       |\n"
                       "  |   MCP-Protocol-Version: 2026-07-28 ----->|\n"
                       "  |<------------------- id: 5 {progress} ----|   promises a cursor\n"
                       "  |<------------------- id: 6 {response} ----|   that nobody honours\n",
            .needs = "An id field in a response stream of an exchange governed by 2026-07-28.",
            .blind = "Nothing forbids the field; it is only without meaning there, and harmless "
                     "to clients that know so.",
            .client = "Do not store it, and do not reconnect with it: a cut stream is a lost "
                      "request, to be issued anew.",
            .server = "Switch the event store off for exchanges of 2026-07-28.",
        },
        .check = check_removed,
    },
};

const struct rule_family rules_event_id = RULE_FAMILY("event-id", "Event ids", rules);
