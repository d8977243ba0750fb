/* cursor.c - RULES.md section 1: the cursor that the client claimed to have. */
#include "rule.h"
#include "sse.h"

#define ABC (ERA_A | ERA_B | ERA_C)

/* Bytes that a host acknowledged this shortly before a reset may never have been read. */
#define UNREAD_MARGIN (200 * NS_PER_MS)

static const char *break_number(const struct resumption *r)
{
    const struct session *s = r->session;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->resumption_count; i++)
        n += s->resumption[i] != r && s->resumption[i]->stream == r->stream &&
             s->resumption[i]->exch < r->exch;
    return n ? "a later break of the stream" : "the first break of the stream";
}

/* ---- cursor-dropped ---- */

static bool ended_by_server(const struct leg *l)
{
    return l->ended && (l->end == END_FIN || l->end == END_RST || l->end == END_COMPLETE);
}

/* The stream's last committed id, or NULL. */
static const struct event *committed_id(const struct session *s, const struct stream *st, int64_t t)
{
    for (uint32_t i = stream_legs_before(s, st, t); i-- > 0;) {
        const struct leg *l = s->leg[st->leg[i]];
        const struct event *e = event_at(s, l->last_id);
        if (l->id_reset)
            return NULL;
        if (e && event_delivered(s, e))
            return e;
    }
    return NULL;
}

static bool resumed_after(const struct session *s, const struct stream *st, int64_t t)
{
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        if (r->stream == st->index && s->exch[r->exch]->first.time > t)
            return true;
    }
    return false;
}

static bool has_outstanding(const struct session *s, const struct stream *st, int64_t t)
{
    const struct request *q;

    for (uint32_t i = 0; (q = stream_request(s, st, &i));) {
        if (request_outstanding(s, q, t))
            return true;
    }
    return false;
}

/* Broken, with a cursor, with something left to come, and no leg of it open. */
static bool waits_for_reconnect(const struct session *s, const struct stream *st, int64_t t)
{
    uint32_t at = stream_leg_before(s, st, t);
    const struct leg *l;

    if (at == NONE || !committed_id(s, st, t))
        return false;
    l = s->leg[at];
    if (!ended_by_server(l) || l->end_at.time >= t || l->gaps > 0)
        return false;
    return st->kind == STREAM_STANDALONE || has_outstanding(s, st, t);
}

static const struct stream *reconnected_without(const struct session *s, const struct exch *x)
{
    const struct stream *own = x->leg == NONE ? NULL : s->stream[s->leg[x->leg]->stream];
    const struct stream *listening = NULL;
    const struct stream *post = NULL;

    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct stream *st = s->stream[i];
        if (st == own || stream_leg_before(s, st, x->first.time) == NONE)
            continue;
        if (st->kind == STREAM_STANDALONE)
            listening = st; /* the newest is the one to reopen */
        else if (waits_for_reconnect(s, st, x->first.time) && !resumed_after(s, st, x->first.time))
            post = st;
    }
    if (listening && waits_for_reconnect(s, listening, x->first.time))
        return listening;
    if (!listening || !post)
        return post;
    /* A listening stream that is over is what this GET reopens, unless it was itself opened after
     * the break: then it was the same reconnect before. One that is open needs no reopening. */
    const struct leg *l = s->leg[stream_leg_before(s, listening, x->first.time)];
    const struct leg *broken = s->leg[stream_leg_before(s, post, x->first.time)];
    if (!leg_open_at(l, x->first.time) && l->begin.time < broken->end_at.time)
        return NULL;
    return post;
}

static bool plain_get(const struct exch *x)
{
    return x->has_request && x->method == HTTP_METHOD_GET && x->cursor.len == 0 &&
           x->era != ERA_D && x->era != ERA_L;
}

static void check_dropped(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct stream *st = plain_get(x) ? reconnected_without(s, x) : NULL;
        if (!st)
            continue;
        if (x->request_gaps > 0) {
            undecidable_add(run, s, st->index,
                            "a reconnect without Last-Event-ID: part of its head is not in the "
                            "capture");
            continue;
        }
        const struct event *e = committed_id(s, st, x->first.time);
        const struct leg *l = s->leg[stream_leg_before(s, st, x->first.time)];
        struct finding *f = finding_add(run, s);
        f->stream = st->index;
        f->event_id = e->id;
        f->party = PARTY_CLIENT;
        f->certainty = st->kind == STREAM_STANDALONE ? CERTAINTY_PROVEN : CERTAINTY_LIKELY;
        finding_message(
            run, f,
            "the %s stream had given the client the id %s and was then %s; the reconnect "
            "carries no Last-Event-ID (%s)",
            st->kind == STREAM_STANDALONE ? "listening" : "POST", run_id(run, e->id),
            l->end == END_COMPLETE ? "closed by the server" : "cut",
            l->number > 1 ? "a later break of the stream" : "its first break");
        finding_frame(run, f, x->first, "GET without Last-Event-ID");
        finding_frame(run, f, e->at, "the last whole event with an id: %s", run_id(run, e->id));
        finding_frame(run, f, l->end_at, "the leg before ends (%s)", end_kind_text(l->end));
    }
}

/* ---- cursor-behind, -frozen, -regressed, -not-advanced ---- */

/* Was the event read for certain before its leg broke? */
static bool surely_read(const struct session *s, const struct event *e)
{
    const struct leg *l = s->leg[e->leg];
    int64_t at = e->acked.time ? e->acked.time : e->at.time;

    for (uint32_t i = 0; i < l->silence_count; i++) {
        if (l->silence[i].window_closed && l->silence[i].until.time >= e->at.time)
            return false;
    }
    if (leg_exch(s, l)->close_not_known && e->no_time)
        return false; /* the client may have closed it with events unread */
    if (l->end == END_FIN || l->end == END_COMPLETE)
        return true;
    return l->ended && l->end_at.time - at >= UNREAD_MARGIN;
}

static uint32_t ordinal_of_id(const struct session *s, struct slice id)
{
    struct brief b;

    return id.ptr && event_brief(s, event_by_id(s, id), &b) ? b.ordinal : NONE;
}

/* The newest event of the stream that the client had read beyond its cursor, priming and such aside
 * when `messages`. */
static const struct event *newest_read(const struct resumption *r, bool messages)
{
    const struct session *s = r->session;
    const struct event *best = NULL;

    if (r->stream == NONE || r->cursor_ordinal == NONE || r->mangled)
        return NULL;
    int64_t t = s->exch[r->exch]->first.time;
    const struct stream *st = s->stream[r->stream];
    uint32_t stored = ordinal_of_id(s, r->stored_cursor);
    const struct event *e;
    for (uint32_t o = r->cursor_ordinal + 1;
         (e = stream_next(s, st, &o)) && e->at.time - t <= CLOCK_STEP; o++) {
        if (!e->has_id || e->id.len == 0 || e->at.time >= t || e->leg == r->leg)
            continue;
        if (messages && (e->priming || !e->dispatched))
            continue;
        bool kept = stored != NONE && o <= stored; /* by the log */
        if (event_delivered(s, e) && (kept || surely_read(s, e)))
            best = e;
    }
    return best;
}

/* By the log, had a newer id been stored? Without a log, true: the wire alone speaks. */
static bool log_allows_lag(const struct resumption *r, bool *ret_stored)
{
    const struct session *s = r->session;
    uint32_t stored = ordinal_of_id(s, r->stored_cursor);

    *ret_stored = stored != NONE && stored > r->cursor_ordinal;
    return !s->has_log || *ret_stored;
}

static const struct resumption *earlier_on_stream(const struct resumption *r)
{
    const struct session *s = r->session;
    bool before = false;

    for (uint32_t i = s->resumption_count; i-- > 0;) {
        const struct resumption *p = s->resumption[i];
        if (before && p->stream == r->stream && p->cursor_ordinal != NONE)
            return p;
        before |= p == r;
    }
    return NULL;
}

static bool leg_gave_newer(const struct resumption *p)
{
    const struct session *s = p->session;

    if (p->leg == NONE)
        return false;
    const struct leg *l = s->leg[p->leg];
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->has_id && e->id.len > 0 && e->ordinal != NONE && e->ordinal > p->cursor_ordinal &&
            event_delivered(s, e) && surely_read(s, e))
            return true;
    }
    return false;
}

static bool is_frozen(const struct resumption *r)
{
    const struct resumption *p = earlier_on_stream(r);

    return p && slice_eq(p->cursor, r->cursor) && leg_gave_newer(p);
}

static bool is_regressed(const struct resumption *r)
{
    const struct resumption *p = earlier_on_stream(r);

    return p && r->cursor_ordinal != NONE && r->cursor_ordinal < p->cursor_ordinal &&
           !r->session->epoch;
}

/* Framing on which shipping parsers are known to lose events (FIELD-NOTES 1.5). */
static const char *dialect_of(const struct session *s, const struct event *e)
{
    unsigned odd = s->leg[e->leg]->oddities | e->oddities;

    if (odd & SSE_CR_ENDS)
        return "; its lines end in a lone CR, which some clients do not take for a line end";
    if (odd & SSE_NO_COLON)
        return "; its stream has a line without a colon, on which some clients give up";
    if (odd & SSE_BOM)
        return "; its stream has a byte order mark where some clients lose a field to it";
    return "";
}

static void lag_frames(struct rule_run *run, struct finding *f, const struct resumption *r,
                       const struct event *e)
{
    const struct session *s = r->session;

    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    finding_frame(run, f, e->at, "last byte of event %s", run_id(run, e->id));
    finding_frame(run, f, e->acked, "the client's host acknowledges it");
    if (r->stored_entry != NONE)
        finding_log(run, f, r->stored_entry, "the last id that was stored as the cursor");
}

static void check_behind(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *e = newest_read(r, true);
    bool stored;
    if (!e || !log_allows_lag(r, &stored) || is_frozen(r) || is_regressed(r))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    f->event_id = e->id;
    if (stored)
        f->severity = SEV_ERROR;
    f->certainty = stored || e->acked.time ? CERTAINTY_PROVEN : CERTAINTY_LIKELY;
    finding_message(
        run, f, "Last-Event-ID is %s, though %s had been completely delivered%s%s (%s)%s",
        run_id(run, r->cursor), run_id(run, e->id),
        e->acked.time ? ", acknowledged by the client's host" : "",
        stored ? ", and a newer id stored by the log" : "", break_number(r), dialect_of(s, e));
    lag_frames(run, f, r, e);
}

static void check_frozen(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *e = newest_read(r, false);
    bool stored;
    if (!e || !is_frozen(r) || !log_allows_lag(r, &stored))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    f->event_id = e->id;
    finding_message(run, f,
                    "the leg before was resumed with %s and delivered events up to %s, yet this "
                    "reconnect repeats the old cursor",
                    run_id(run, r->cursor), run_id(run, e->id));
    lag_frames(run, f, r, e);
}

static void check_regressed(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct resumption *p = earlier_on_stream(r);
    if (!is_regressed(r))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "this reconnect carries the cursor %s, an earlier one of the same "
                    "stream carried %s, which is newer",
                    run_id(run, r->cursor), run_id(run, p->cursor));
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    finding_frame(run, f, s->exch[p->exch]->first, "earlier GET with Last-Event-ID: %s",
                  run_id(run, p->cursor));
}

static void check_not_advanced(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *e = newest_read(r, false);
    if (!e || newest_read(r, true) || is_frozen(r))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    f->event_id = e->id;
    finding_message(
        run, f,
        "the last committed id is %s, of an event %s; the client sent the older %s: its "
        "parser does not move the cursor on such events",
        run_id(run, e->id), e->dispatched ? "with empty data" : "without data",
        run_id(run, r->cursor));
    lag_frames(run, f, r, e);
}

/* ---- cursor-ahead ---- */

/* Sent, and sent again for a second or more, and never acknowledged: the client's host had it not.
 */
static bool never_arrived(const struct session *s, const struct event *e)
{
    const struct leg *l = s->leg[e->leg];

    if (e->acked.time || leg_exch(s, l)->acked_to == 0)
        return false;
    for (uint32_t i = 0; i < l->silence_count; i++) {
        const struct silence *sil = &l->silence[i];
        if (sil->retransmissions > 0 && sil->until.time - sil->since.time >= NS_PER_SEC &&
            sil->until.time > e->at.time + NS_PER_SEC)
            return true;
    }
    return false;
}

static void check_ahead(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct event *e = event_at(s, r->cursor_event);
    uint32_t tail = e ? NONE : leg_by_tail_id(s, r->cursor);
    bool after_close =
        e && !event_delivered(s, e) &&
        (s->leg[e->leg]->end == END_CLIENT_FIN || s->leg[e->leg]->end == END_CLIENT_RST) &&
        e->at.time > s->leg[e->leg]->end_at.time;
    bool unacked = e && !after_close && never_arrived(s, e);
    if (!(r->ahead && tail != NONE) && !after_close && !unacked)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "Last-Event-ID names %s, an event whose end never reached the client: %s",
                    run_id(run, r->cursor),
                    tail != NONE ? "its terminating blank line was not sent before the leg broke"
                    : unacked    ? "it was never acknowledged, though it was sent again"
                                 : "it was sent after the client had closed the leg");
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    if (tail != NONE)
        finding_frame(run, f, s->leg[tail]->tail_at, "the leg ends inside this event");
    else
        finding_frame(run, f, e->at, "last byte of the event, %s",
                      unacked ? "never acknowledged" : "after the client's close");
}

/* ---- cursors that are not of this stream or session ---- */

static void check_forged(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (r->faults & RF_FORGOTTEN)
        undecidable_add(run, s, r->stream, "cursor %s: %s", run_id(run, r->cursor),
                        s->forgotten ? "it may be one of the oldest ids, which are no longer "
                                       "remembered (--max-ids)"
                                     : "not every earlier leg of the session is wholly in the "
                                       "evidence");
    if (!(r->faults & RF_FORGED))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f, "Last-Event-ID is %s, an id that the server never sent to this session",
                    run_id(run, r->cursor));
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
}

static bool is_predecessor(const struct session *s, const struct session *o)
{
    unsigned steps = 0;

    for (const struct session *p = s->replaces; p && steps++ < 1000; p = p->replaces) {
        if (p == o)
            return true;
    }
    return false;
}

static void foreign_owner_finding(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct session *o = r->foreign_owner;
    const struct event *e = event_at(o, event_by_id(o, r->cursor));
    struct finding *f = finding_add(run, s);

    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f, "the cursor %s was given out under session %s%s, not under %s",
                    run_id(run, r->cursor), o->name,
                    is_predecessor(s, o) ? ", which this one replaced" : "", s->name);
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    if (e)
        finding_frame(run, f, e->at, "the event with this id, in session %s", o->name);
}

static void check_foreign_session(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if ((r->faults & RF_FOREIGN_CURSOR) && !is_predecessor(s, r->foreign_owner))
        foreign_owner_finding(run, r);
}

static void check_after_change(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if ((r->faults & RF_FOREIGN_CURSOR) && is_predecessor(s, r->foreign_owner))
        foreign_owner_finding(run, r);
}

/* The streams that are broken at t and wait for a reconnect; one: it, more or none: NULL. */
static const struct stream *only_broken(const struct session *s, int64_t t)
{
    const struct stream *only = NULL;

    for (uint32_t i = 0; i < s->stream_count; i++) {
        if (!waits_for_reconnect(s, s->stream[i], t))
            continue;
        if (only)
            return NULL;
        only = s->stream[i];
    }
    return only;
}

/* Open, or answered and closed: nothing of it waits for a reconnect. */
static bool is_whole(const struct session *s, const struct stream *st, int64_t t)
{
    uint32_t at = stream_leg_before(s, st, t);

    if (at == NONE)
        return false;
    if (leg_open_at(s->leg[at], t))
        return true;
    return st->kind == STREAM_POST && !has_outstanding(s, st, t) &&
           s->leg[at]->end == END_COMPLETE && s->leg[at]->end_at.time < t;
}

static void check_foreign_stream(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    int64_t t = s->exch[r->exch]->first.time;
    const struct stream *x = r->stream == NONE ? NULL : only_broken(s, t);
    if (!x || x->index == r->stream || !is_whole(s, s->stream[r->stream], t) ||
        resumed_after(s, x, t))
        return;
    const struct event *e = committed_id(s, x, t);
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f,
                    "the only stream that was broken is %s.%u (last id %s), but the cursor %s "
                    "belongs to %s.%u, which was not",
                    s->name, x->index + 1, run_id(run, e->id), run_id(run, r->cursor), s->name,
                    r->stream + 1);
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    finding_frame(run, f, e->at, "the last id of the broken stream");
}

/* Closing the old leg and opening the new one may cross by a moment. */
#define LIVE_MARGIN NS_PER_SEC
static void check_live(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;
    const struct exch *x = s->exch[r->exch];
    if (r->previous_leg == NONE || r->stream == NONE || (x->flags & RECF_HAR))
        return;
    const struct leg *l = s->leg[r->previous_leg];
    bool alive = l->last_byte.time > x->first.time + LIVE_MARGIN;
    if (!leg_open_at(l, x->first.time + LIVE_MARGIN) || !alive)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "the stream of cursor %s still has an open leg, which goes on to carry bytes, "
                    "when this GET asks to resume it",
                    run_id(run, r->cursor));
    finding_frame(run, f, x->first, "GET with Last-Event-ID: %s", run_id(run, r->cursor));
    finding_frame(run, f, l->begin, "the leg that is still open began");
    finding_frame(run, f, l->last_byte, "its last byte, later than the GET");
}

/* ---- the header itself ---- */

static void check_on_post(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->method != HTTP_METHOD_POST || x->cursor.len == 0 || x->era == ERA_D)
            continue;
        struct finding *f = finding_add(run, s);
        f->subject = "POST with Last-Event-ID";
        f->cursor = x->cursor;
        f->party = PARTY_CLIENT;
        finding_message(run, f,
                        "a POST carries Last-Event-ID: %s; streams are resumed by GET alone",
                        run_id(run, x->cursor));
        finding_frame(run, f, x->first, "POST with Last-Event-ID: %s", run_id(run, x->cursor));
    }
}

static void check_not_reset(struct rule_run *run, const struct resumption *r)
{
    const struct session *s = r->session;

    if (r->previous_leg == NONE || !s->leg[r->previous_leg]->id_reset)
        return;
    const struct leg *l = s->leg[r->previous_leg];
    struct finding *f = finding_add(run, s);
    finding_on_resumption(run, f, r);
    f->party = PARTY_CLIENT;
    finding_message(run, f,
                    "the server had reset the last event id (an empty id), yet the reconnect "
                    "sends %s",
                    run_id(run, r->cursor));
    finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                  run_id(run, r->cursor));
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->has_id && e->id.len == 0)
            finding_frame(run, f, e->at, "event with an empty id");
    }
}

static const char *mangled_how(const struct exch *x)
{
    if (x->flags & RECF_DUPLICATE_CURSOR)
        return "the header stands twice";
    if (x->flags & RECF_EMPTY_CURSOR)
        return "the header is there, and empty";
    return NULL;
}

static void check_mangled(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const char *how = x->era == ERA_D ? NULL : mangled_how(x);
        if (!how)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_exch(run, f, x);
        f->cursor = x->cursor;
        f->party = PARTY_CLIENT;
        finding_message(run, f, "Last-Event-ID is malformed: %s", how);
        finding_frame(run, f, x->first, "the request");
    }
    for (uint32_t i = 0; i < s->resumption_count; i++) {
        const struct resumption *r = s->resumption[i];
        if (!r->mangled)
            continue;
        const struct event *e = event_at(s, r->cursor_event);
        struct finding *f = finding_add(run, s);
        finding_on_resumption(run, f, r);
        f->party = PARTY_CLIENT;
        if (e)
            f->event_id = e->id;
        finding_message(
            run, f,
            "Last-Event-ID %s is no id that the server sent; it equals %s after trimming, "
            "percent or Latin-1 conversion",
            run_id(run, r->cursor), e ? run_id(run, e->id) : "one of them");
        finding_frame(run, f, s->exch[r->exch]->first, "GET with Last-Event-ID: %s",
                      run_id(run, r->cursor));
        if (e)
            finding_frame(run, f, e->at, "the event whose id is meant");
    }
}

static void check_removed(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->era != ERA_D || !x->cursor.ptr)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_exch(run, f, x);
        f->cursor = x->cursor;
        f->party = PARTY_CLIENT;
        finding_message(run, f,
                        "Last-Event-ID in an exchange of revision 2026-07-28, which has no "
                        "resumption: servers ignore it");
        finding_frame(run, f, x->first, "request with Last-Event-ID: %s", run_id(run, x->cursor));
    }
}

static const struct rule rules[] = {
    {
        .id = "cursor-dropped",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary =
            "A reconnect carries no Last-Event-ID although the broken stream had given an id.",
        .why = "Without the cursor the server takes the request for a new stream: what was sent in "
               "between, and the response of an open request, is lost.",
        .advice =
            "Client: keep the last id per stream until a newer one arrives, also when a resumed "
            "leg ends before it carried an id.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: to resume, the "
                  "client should issue a GET that carries the last id it received. WHATWG HTML "
                  "9.2.3: the header is sent whenever the last event ID is not empty",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- POST call 1 -------------------->|\n"
                       "  |<------------------------- id: 5 ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, no Last-Event-ID ---------->|   5 was known\n"
                       "  |<------- 200, a new empty stream ---|   call 1 never answered\n",
            .needs = "The last whole event with an id that reached the client, how its leg ended "
                     "(cut, or closed by the server), and the next GET of the session. A capture "
                     "or a HAR will do; no log.",
            .blind = "Which stream a GET without cursor is meant for. Where a listening stream "
                     "waits to be reopened, the GET is taken for that; for the stream of a POST "
                     "the finding is therefore likely, never proven. Legs that the client gave up "
                     "itself do not count.",
            .client = "Keep the cursor outside of the code that reads one response body, and seed "
                      "every new leg with it: most clients that fail here forget the cursor when "
                      "a resumed leg ends before its first id. Until that is fixed, pass the "
                      "resumption token yourself.",
            .server = "Send an id early on every resumed leg (a fresh priming event), so that "
                      "forgetful clients have one again.",
            .path = "If the header is there on the client's side of a proxy and missing on the "
                    "server's, let the proxy pass Last-Event-ID on.",
            .known = "typescript-sdk 1.32.2 and client 2.4.0 (v2), mcp-remote 0.15.1: at the "
                     "second break (executed). go-sdk 3d6450f: likewise (read in source).",
        },
        .check = check_dropped,
    },
    {
        .id = "cursor-behind",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "Last-Event-ID is older than the last event that had been completely delivered.",
        .why = "The server will send events again that the client has had: each is a possible "
               "duplicate effect.",
        .advice = "Client: store the id of an event together with its effect, and resume with the "
                  "newest stored id.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: the cursor is the "
                  "last event id that the client received. Events are counted as received once "
                  "their final blank line is (WHATWG HTML 9.2.6)",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 5 {message} ---|\n"
                       "  |<--------------- id: 6 {message} ---|\n"
                       "  |-- TCP: all acknowledged ---------->|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   6 was there\n"
                       "  |<--------------- id: 6 {message} ---|   a second time\n",
            .needs = "The event whole on the wire, and for a proof the acknowledgement of its "
                     "last byte by the client's host before the break. With a dispatch log: the "
                     "line that stores a newer id as the cursor.",
            .blind = "Bytes that the host had acknowledged and the program had not read yet. "
                     "Events of the last 200 ms before a reset, or behind a closed window, are "
                     "therefore left out. With a log, an event that was read and not yet stored "
                     "is no lag but a crash: see dispatch-uncommitted and dispatch-duplicated.",
            .client = "Find what keeps the stored id behind: a callback that is awaited, a write "
                      "that is batched, an id taken from the wrong leg. If the lag is wanted "
                      "(cursor after effect), recognise repeated messages by event id and "
                      "JSON-RPC id.",
            .known = "Parsers that miss the event miss its id: go-sdk 3d6450f does not take a "
                     "lone CR for a line end (read in source); eventsource-parser 3.1.1 holds the "
                     "last event of a CR-only stream back (executed).",
        },
        .resumption = check_behind,
    },
    {
        .id = "cursor-ahead",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "Last-Event-ID names an event that never reached the client whole.",
        .why = "The server goes on after it, so nobody will ever send this event again.",
        .advice =
            "Client: move the cursor at the blank line that ends an event, not before; discard "
            "an unterminated block at the end of a body.",
        .source = "WHATWG HTML 9.2.6: at the end of the stream a pending block is discarded, so "
                  "that its id is not committed; MCP 2025-11-25, Transports > Resumability and "
                  "Redelivery: last event id received",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------- id: 5 {message} (whole) ---|\n"
                       "  |<------------------- id: 6 {mess ---|   cut: no blank line\n"
                       "  |-- GET, Last-Event-ID: 6 ---------->|\n"
                       "  |<--------------- id: 7 {message} ---|   6 is lost\n",
            .needs = "The end of the leg before the reconnect: the bytes after its last blank "
                     "line, or an event sent after the client had closed. A HAR shows it only "
                     "with a whole body.",
            .blind = "A client that read the event on a connection which the recording does not "
                     "hold.",
            .client = "Look for a parser that flushes what it has at the end of the body: it "
                      "takes half an event for a whole one, and stores its id. Discard that rest.",
            .server = "If clients do it, send the terminating blank line in the same write as the "
                      "event, which makes the cut rare. Replay cannot bring back what the client "
                      "says it has.",
            .known = "go-sdk 3d6450f and java-sdk 305e4cb (JDK client) take an unterminated last "
                     "block as an event (read in source).",
        },
        .resumption = check_ahead,
    },
    {
        .id = "cursor-regressed",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A later reconnect of a stream carries an older cursor than an earlier one.",
        .why = "A cursor that goes back makes the server send events again.",
        .advice =
            "Client: never replace a stored cursor by an older one; look for two writers of the "
            "cursor.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: the cursor is the "
                  "last id received, so it cannot become older while the stream lives",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, Last-Event-ID: 8 ---------->|\n"
                       "  |<--------------------------- ... ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   older than before\n"
                       "  |<------------------- id: 6, 7, 8 ---|   all of it again\n",
            .needs = "Two reconnects of one stream and the order of both cursors as they first "
                     "came on the wire.",
            .blind = "A client that goes back on purpose, to read something again. Silent where "
                     "the ids have started again (event-id-epoch-reset) or where a cursor is not "
                     "known from the wire.",
            .client = "Look for two tasks that write the cursor of one stream, for a cursor "
                      "restored from an old file, or for a retry that still holds the token of "
                      "its first attempt. Write it only forward.",
        },
        .resumption = check_regressed,
    },
    {
        .id = "cursor-frozen",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary =
            "A resumed leg delivered newer ids, yet the next reconnect repeats the old cursor.",
        .why =
            "Every further break replays from the same place: duplicates grow with each reconnect.",
        .advice = "Client: take over the ids of resumed legs into the stored cursor.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: the last id "
                  "received, on whichever leg of the stream it was",
        .explain = {
            .picture = "client                              server\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|\n"
                       "  |<------------------ id: 6, id: 7 ---|   delivered\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   still 5\n"
                       "  |<------------------ id: 6, id: 7 ---|   a second time\n",
            .needs = "A resumed leg that delivered newer ids, and the next reconnect of the "
                     "stream with the same cursor. With a log: that a newer id had been stored.",
            .blind = "Ids that arrived in the last 200 ms before a reset may not have been read "
                     "and do not count.",
            .client = "The ids of the resumed leg go into another variable than the one that the "
                      "next reconnect reads. Make reading a leg and opening the next one share "
                      "one cursor.",
        },
        .resumption = check_frozen,
    },
    {
        .id = "cursor-forged",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "Last-Event-ID was never sent by the server to this session.",
        .why = "Nothing that the server answers to it can be trusted to be a continuation.",
        .advice = "Client: use only ids that were received on this session. Server: refuse unknown "
                  "cursors with an error that says so.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: the cursor is an id "
                  "that the client received from this server; what to answer an unknown one is "
                  "left open (modelcontextprotocol#1939)",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------------------- id: 1 ---|\n"
                       "  |<------------------------- id: 2 ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 99 --------->|   never sent here\n"
                       "  |<----------------------- 200 ... ---|   continues what?\n",
            .needs = "Every earlier leg of the session whole in the recording, from its start on. "
                     "Otherwise the rule says undecidable, with what is missing.",
            .blind = "Ids given out before the recording began or on a connection that it lacks, "
                     "and ids beyond --max-ids: these are undecidable. It cannot tell a client's "
                     "mistake from an attack.",
            .client = "Look for an id that was computed (counted on, parsed and put together "
                      "again) or restored from an earlier run. Ids are opaque: send back only "
                      "what came.",
            .server = "Answer 400 and say that the event id is unknown; never start somewhere "
                      "else instead. Check the range before using a number out of the header.",
            .path = "A cache or balancer that answers with a stored stream can hand out ids of "
                    "other connections.",
        },
        .resumption = check_forged,
    },
    {
        .id = "cursor-foreign-stream",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The cursor belongs to another stream than the one that was broken.",
        .why = "The broken stream is not resumed: its events stay undelivered.",
        .advice = "Client: keep one cursor per stream, not one per transport.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: ids are assigned per "
                  "stream and act as a cursor within that stream",
        .explain = {
            .picture = "client                              server\n"
                       "  |<-------------- stream A: id: a3 ---|\n"
                       "  |<--- stream B: id: b9 {response} ---|\n"
                       "  |         (stream A is cut)          |\n"
                       "  |-- GET, Last-Event-ID: b9 --------->|   a3 was meant\n"
                       "  |<------------------ 200, nothing ---|   A stays broken\n",
            .needs = "Exactly one broken stream that waits for its reconnect, and a cursor that "
                     "was given out on another stream, one that had been answered and closed.",
            .blind = "What the client meant: a late reconnect of the finished stream looks the "
                     "same, so the finding is likely. Where several streams are broken at once it "
                     "is silent.",
            .client = "A client with one lastEventId for all its streams does this whenever a "
                      "POST stream ends after the last event of the listening stream. Keep a "
                      "cursor for each stream.",
            .server = "Answer with the stream that the cursor belongs to, and with nothing else.",
            .known = "swift-sdk 6132fd4: one last event id for the whole transport, written by "
                     "POST and GET streams (read in source).",
        },
        .resumption = check_foreign_stream,
    },
    {
        .id = "cursor-foreign-session",
        .severity = SEV_ERROR,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "The cursor was delivered under another session id only.",
        .why = "A server that honours it gives one session's messages to another.",
        .advice =
            "Client: bind cursors to their session. Server: look cursors up within the session.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: an id is unique "
                  "within its session only, so it means nothing in another",
        .explain = {
            .picture = "client                                 server\n"
                       "  |<---- session S: id: 41 ---------------|\n"
                       "  |-- GET, session T,                     |\n"
                       "  |   Last-Event-ID: 41 ----------------->|   T never had 41\n"
                       "  |<---- id: 42 --------------------------|   whose message is it?\n",
            .needs = "Both sessions in the recording: the id as it came under one, and the "
                     "reconnect under the other, with all earlier legs of that other session "
                     "whole.",
            .blind = "Two sessions that both use short numbers may hold the same id by accident; "
                     "only ids that the asking session never had count. A session outside of the "
                     "recording is not seen.",
            .client = "Store the cursor under its session id, and look at processes that share a "
                      "configuration or a cache folder: one of them reads the other's state.",
            .server = "Look a cursor up inside the session of the request and refuse it (400) "
                      "when it is not there. If it was honoured, treat it as a leak of data: see "
                      "replay-foreign-session.",
        },
        .resumption = check_foreign_session,
    },
    {
        .id = "cursor-after-session-change",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A cursor of the old session is sent under the new session id.",
        .why =
            "The new session cannot honour it: what the old one still held is lost, or a number is "
            "taken for another event.",
        .advice =
            "Client: drop all cursors when a new session begins, and fail what was outstanding.",
        .source = "MCP 2025-11-25, Transports > Session Management: after 404 the client starts a "
                  "new session without the old id; Resumability and Redelivery: ids are unique "
                  "within a session",
        .explain = {
            .picture = "client                                 server\n"
                       "  |<---- session S: id: 7 ----------------|\n"
                       "  |-- POST initialize ------------------->|   S is gone\n"
                       "  |<---- session T -----------------------|\n"
                       "  |-- GET, session T,                     |\n"
                       "  |   Last-Event-ID: 7 ------------------>|   7 is of S\n",
            .needs = "The old session with the id, the initialize of the same client (address, "
                     "clientInfo, credentials) that replaced it, and the reconnect under the new "
                     "session id.",
            .blind = "A server that moved the events of the old session into the new one on "
                     "purpose. It is not told from one that did not.",
            .client = "On a new session: forget every cursor, fail the requests of the old "
                      "session, and let the application decide what to repeat.",
            .server = "Refuse the cursor with 400 rather than reading it as a number of the new "
                      "session.",
        },
        .resumption = check_after_change,
    },
    {
        .id = "cursor-on-live-stream",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .eras = ABC,
        .summary =
            "The stream that the cursor belongs to still has an open leg when the GET starts.",
        .why = "Two legs of one stream are open: events may come twice, or be split between them.",
        .advice = "Client: close the old leg before resuming, or wait for its end.",
        .source = "MCP 2025-11-25, Transports > Multiple Connections (each message on one stream "
                  "only); modelcontextprotocol#1847: several streams, not several connections to "
                  "one stream",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------- id: 5 (leg 1 is open) ---|\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   leg 2\n"
                       "  |<------------------ leg 1: id: 6 ---|\n"
                       "  |<------------------ leg 2: id: 6 ---|   twice, or only one of them\n",
            .needs = "Packets: the old leg must still carry bytes more than a second after the "
                     "GET. A HAR has no such times, the rule is silent there.",
            .blind = "A client that reconnects because it believes the old leg dead, while the "
                     "server's bytes are still on their way. A leg on which nothing comes any "
                     "more is not counted as open.",
            .client = "Abort the old response body before the GET, also after a time-out of your "
                      "own. If you reconnect on silence, use keep-alives to tell silence from "
                      "death.",
            .server = "Decide which leg wins: end the old one (usual), or refuse the new one with "
                      "409. Do not write to both.",
            .path = "If the client had closed the old leg and the server never learned of it, a "
                    "proxy keeps it open: pass the close on.",
        },
        .resumption = check_live,
    },
    {
        .id = "cursor-on-post",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ABC,
        .summary = "A POST carries Last-Event-ID.",
        .why = "Streams are resumed by GET only: the header has no effect here, and some servers "
               "refuse the request for it.",
        .advice =
            "Client: send Last-Event-ID on the GET that resumes a stream, and on nothing else.",
        .source = "MCP 2025-11-25, Transports > Resumability and Redelivery: resumption is always "
                  "by GET, also of a stream that a POST began",
        .explain = {
            .picture = "client                              server\n"
                       "  |<------------------------- id: 5 ---|\n"
                       "  |-- POST call 2, Last-Event-ID: 5 -->|   means nothing here\n"
                       "  |<-------------------- 200 or 400 ---|\n"
                       "  |-- GET, no Last-Event-ID ---------->|   often seen with it\n",
            .needs = "The headers of a POST of a revision that has resumption.",
            .blind = "Who put it there: a client library, or a proxy that adds headers. POSTs of "
                     "exchanges that are not MCP are not looked at.",
            .client = "Set the header in the code that reopens a stream, not in the headers "
                      "common to all requests. Check that the reconnecting GET has it.",
            .server = "Ignore it. go-sdk refuses such a POST with 400, which then loses the "
                      "request itself.",
        },
        .check = check_on_post,
    },
    {
        .id = "cursor-not-reset",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ERA_L | ABC,
        .summary =
            "The server reset the last event id, the next reconnect still sends the old one.",
        .why = "The server said that there is nothing to resume from; the old id asks for what it "
               "gave "
               "up.",
        .advice = "Client: an empty id field empties the cursor; send no Last-Event-ID afterwards.",
        .source = "WHATWG HTML 9.2.6: an empty id field sets the last event ID to the empty "
                  "string; 9.2.3: with an empty one no header is sent",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 5 {message} ---|\n"
                       "  |<------------------- id: (empty) ---|   forget 5\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   no header was due\n",
            .needs = "An event whose id field is empty, whole on the leg before, and the "
                     "reconnect after it.",
            .blind = "Whether the server meant it: an empty id field also comes from a server "
                     "that has no id to give. Several clients ignore empty ids by design.",
            .client = "Treat an empty id field as a value: store the empty string, and send no "
                      "header.",
            .server = "Do not write \"id:\" where you have no id: leave the line out.",
            .known = "typescript-sdk 3924de9, python-sdk 57394b0 and csharp-sdk 609499b keep the "
                     "last id that was not empty (read in source).",
        },
        .resumption = check_not_reset,
    },
    {
        .id = "cursor-not-advanced",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ERA_L | ABC,
        .summary =
            "The last committed id came with empty or no data, and the client sent an older one.",
        .why = "A parser that moves the cursor only on events with data re-reads what it had; "
               "otherwise harmless.",
        .advice = "Client: commit the id at the blank line, whether or not there was data.",
        .source = "WHATWG HTML 9.2.6, dispatch, step 1: the id is committed at the blank line, "
                  "before the data are looked at. Field: parsers differ on blocks without data",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------- id: 5 {message} ---|\n"
                       "  |<------------- id: 6 and no data ---|   commits 6\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: 5 ---------->|   6 was passed over\n",
            .needs = "An event with an id and empty or no data as the last of the leg, delivered "
                     "whole, and the reconnect.",
            .blind = "Whether the client chose it: some move the cursor only with messages. "
                     "Nothing is lost by it; the server sends the empty event again.",
            .client = "Take over the id of every block that ends with a blank line, data or not. "
                      "With a parser library that hides blocks without data there is nothing to "
                      "take: send \"data:\" in priming events instead.",
            .server = "Give a priming event an empty data line (\"data:\"), not an id alone: more "
                      "parsers pass it on.",
            .known = "eventsource-parser 3.1.1, so typescript-sdk and mcp-remote 0.15.1: a block "
                     "without data is never seen (executed). java-sdk 305e4cb: neither that nor "
                     "\"data:\" without a blank behind it (read in source).",
        },
        .resumption = check_not_advanced,
    },
    {
        .id = "cursor-mangled",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ERA_L | ABC,
        .summary = "Last-Event-ID differs from the id it stands for, or is empty, or stands twice.",
        .why = "A server that compares bytes does not find the event.",
        .advice =
            "Client: send the id's bytes unchanged (UTF-8). Server: use ids of visible ASCII.",
        .source = "WHATWG HTML 9.2.3 (the header is the id, UTF-8 encoded), 9.2.4; RFC 9110 5.5 "
                  "(outer blanks are no part of a field value), 5.3 (one line only); "
                  "whatwg/html#689, #7363",
        .explain = {
            .picture = "client                              server\n"
                       "  |<--------------------- id: a%2Fb ---|\n"
                       "  |          (the leg is cut)          |\n"
                       "  |-- GET, Last-Event-ID: a/b -------->|   other bytes\n"
                       "  |<--------- 400, unknown event id ---|\n",
            .needs = "The id as it came and the header as it went, both as bytes. A HAR that "
                     "normalises headers may hide it.",
            .blind = "Which side of a proxy changed the header, unless both sides are captured. "
                     "Only trimming, percent and Latin-1 conversions are tried.",
            .client = "Send the bytes of the id as they came, UTF-8, once, and no header at all "
                      "when there is no id.",
            .server = "Use ids of visible ASCII without blanks, percent signs or quotes, shorter "
                      "than 4 KiB: then no client and no proxy can change them.",
            .path = "Do not decode, trim or join Last-Event-ID.",
            .known = "go-sdk 3d6450f and java-sdk 305e4cb trim white space off the id (read in "
                     "source).",
        },
        .check = check_mangled,
    },
    {
        .id = "cursor-in-removed-revision",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .eras = ERA_D,
        .summary = "Last-Event-ID in an exchange of a revision that has no resumption.",
        .why = "The server ignores it: a broken stream is a lost request.",
        .advice = "Client: issue the request again under a new id, if that is safe.",
        .source = "MCP 2026-07-28, Transports > Streamable HTTP (streams cannot be resumed by "
                  "Last-Event-ID; it should be ignored) and changelog, major change 9",
        .explain = {
            .picture = "client                                    server\n"
                       "  |-- POST tools/call,                       |\n"
                       "  |   MCP-Protocol-Version: 2026-07-28 ----->|\n"
                       "  |<------------------------- progress ------|   cut\n"
                       "  |-- GET, Last-Event-ID: 5 ---------------->|   has no meaning there\n"
                       "  |<------------------------- 405 -----------|   the call is lost\n",
            .needs = "A Last-Event-ID header in an exchange that is governed by 2026-07-28 (its "
                     "version header or _meta says so).",
            .blind = "A client of both eras that asks an older server: the revision is decided "
                     "for each exchange, but a GET that names none is judged by its neighbours.",
            .client = "After a cut stream issue the call again as a new request with a new id, if "
                      "repeating it is safe. For work that must survive a cut use tasks.",
            .server = "Ignore the header; answer a GET with 405.",
        },
        .check = check_removed,
    },
};

const struct rule_family rules_cursor = RULE_FAMILY("cursor", "The client's cursor", rules);
