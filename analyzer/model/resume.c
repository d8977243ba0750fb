/*
 * resume.c - one verdict for every reconnect that carries a cursor, as the client should have
 * decided it then (DESIGN 4). The rows of the table are tried in their order: the first that holds
 * gives the verdict, all that hold give reasons.
 */
#include "resume.h"
#include "table.h"

#include <stdlib.h>

struct judge {
    struct session *s;
    struct resumption *r;
    const struct exch *x;
    const struct leg *leg;   /* NULL: no event stream came */
    const struct stream *st; /* of the cursor; NULL: unknown */
    int64_t t;               /* of the reconnect */
};

static void decide_as(struct judge *j, enum verdict v, const char *explanation)
{
    if (j->r->explanation)
        return; /* an earlier row holds */
    j->r->verdict = v;
    j->r->explanation = explanation;
}

static bool decided(const struct judge *j)
{
    return j->r->explanation != NULL;
}

static void fail(struct judge *j, const char *rule, unsigned fault, const char *explanation)
{
    fault_add(j->r, fault, rule);
    decide_as(j, VERDICT_FAIL, explanation);
}

static void undecided(struct judge *j, const char *why)
{
    if (!decided(j))
        j->r->undecidable = why;
    decide_as(j, VERDICT_UNDECIDABLE, why);
}

/* ---- facts before the rows ---- */

bool session_whole_before(const struct session *s, int64_t t)
{
    return !s->starts_late && !s->forgotten && t <= s->whole_until;
}

bool session_ids_partial(const struct session *s, int64_t t)
{
    return t > s->ids_until;
}

static void find_cursor(struct judge *j)
{
    struct session *s = j->s;
    struct resumption *r = j->r;
    uint32_t at = event_by_id_before(s, r->cursor, j->t);
    const struct event *e = event_at(s, at);
    struct brief b;

    if (at == NONE || (e && e->at.time > j->t)) {
        at = event_by_mangled_id(s, r->cursor);
        r->mangled = at != NONE;
    }
    if (at == NONE) {
        uint32_t tail = leg_by_tail_id(s, r->cursor);
        if (tail == NONE)
            return;
        r->ahead = true;
        r->stream = s->leg[tail]->stream;
        j->st = s->stream[r->stream];
        /* What the client really had is the last whole event before the tail. */
        e = event_at(s, s->leg[tail]->last_id);
        r->cursor_ordinal = e ? e->ordinal : NONE;
        return;
    }
    if (!event_brief(s, at, &b))
        return;
    r->cursor_event = at;
    r->cursor_ordinal = b.ordinal;
    r->stream = b.stream;
    j->st = s->stream[b.stream];
    if (e && !event_delivered(s, e) && leg_exch(s, s->leg[e->leg])->acked_to > 0)
        r->ahead = s->leg[e->leg]->stream == b.stream && e->at.time >= j->t;
}

/* The last whole id that reached the client on the stream before the reconnect. */
static void find_wire_cursor(struct judge *j)
{
    struct session *s = j->s;
    struct resumption *r = j->r;

    if (!j->st)
        return;
    /* From the newest leg back, until there is nothing left to learn. */
    for (uint32_t i = stream_legs_before(s, j->st, j->t); i-- > 0;) {
        uint32_t at = j->st->leg[i];
        const struct leg *l = s->leg[at];
        if (at == r->leg)
            continue;
        if (r->previous_leg == NONE)
            r->previous_leg = at;
        uint32_t acked = l->last_id_acked;
        if (r->wire_event_acked == NONE)
            r->wire_event_acked = acked;
        const struct exch *x = leg_exch(s, l);
        uint32_t whole = (x->rflags & RECF_HAR) || x->acked_to == 0 ? l->last_id : acked;
        if (r->wire_event == NONE)
            r->wire_event = whole;
        const struct event *e = event_at(s, whole);
        if (e && !r->wire_cursor.ptr)
            r->wire_cursor = e->id;
        if (r->wire_cursor.ptr && r->wire_event_acked != NONE)
            break;
    }
}

static void find_log_cursors(struct judge *j)
{
    struct session *s = j->s;
    struct resumption *r = j->r;
    uint32_t best = 0;
    bool have = false;

    r->stored_entry = NONE;
    if (!s->has_log || !j->st)
        return;
    for (uint32_t i = 0; i < s->track_count; i++) {
        const struct track *k = &s->track[i];
        const struct event *e = event_at(s, k->event);
        if (!e || e->stream != j->st->index || e->ordinal == NONE)
            continue;
        enum head_state st = track_state_at(s, i, j->t);
        if (st < HEAD_PROCESSED || (have && e->ordinal < best))
            continue;
        have = true;
        best = e->ordinal;
        r->dispatch_cursor = e->id;
    }
    for (uint32_t i = 0; i < s->log_entry_count && s->log_time[i] <= j->t; i++) {
        const struct log_entry *e = &s->model->log->entry[s->log_entry[i]];
        struct brief b;
        bool stores = e->state == LOG_CURSOR || (s->log_atomic && e->state == LOG_COMMITTED);
        if (!stores || !e->event_id.ptr || e->from_map)
            continue;
        uint32_t at = event_by_id(s, e->event_id);
        if (!event_brief(s, at, &b) || b.stream != j->st->index)
            continue;
        r->stored_cursor = e->event_id;
        r->stored_entry = s->log_entry[i];
    }
}

static void find_outstanding(struct judge *j)
{
    struct session *s = j->s;
    struct resumption *r = j->r;

    if (!j->st)
        return;
    const struct exch *x = s->exch[j->st->exch];
    const struct request *q;
    r->outstanding = arena_alloc(s->model->arena, (x->msg_count + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; (q = stream_request(s, j->st, &i));) {
        if (request_outstanding(s, q, j->t))
            r->outstanding[r->outstanding_count++] = q->index;
    }
}

/* A hole on a leg before may hold the answer. */
static bool answer_may_be_lost(const struct judge *j)
{
    for (uint32_t i = 0; j->st && i < j->st->leg_count; i++) {
        const struct leg *l = j->s->leg[j->st->leg[i]];
        if (l->gaps > 0 && l->begin.time < j->t && l->index != j->r->leg)
            return true;
    }
    return false;
}

static bool carried_requests(const struct judge *j)
{
    uint32_t i = 0;

    return j->st && stream_request(j->s, j->st, &i);
}

/* ---- rows ---- */

static void row_head_not_in_evidence(struct judge *j)
{
    const struct exch *x = j->x;

    if (x->head_gap || (j->leg && j->leg->first_lost))
        undecided(j, "the head of the replay is not in the capture");
    else if (x->undecodable && (!j->leg || j->leg->event_count == 0))
        undecided(j, "the body of the answer is not in the evidence");
    else if (x->status == 0 && x->end_kind == END_OPEN)
        undecided(j, "the recording ends before the answer");
    else if (x->status == 0 && x->response_gaps > 0)
        undecided(j, "the answer is lost in a gap of the capture");
    else if (j->leg && x->truncated_capture && j->leg->event_count == 0)
        undecided(j, "the file is cut before the head of the replay");
}

static const struct session *foreign_owner(const struct judge *j)
{
    const struct model *m = j->s->model;

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *o = m->session[i];
        const struct event *e;
        if (o == j->s || o->orphan)
            continue;
        e = event_at(o, event_by_id(o, j->r->cursor));
        if (e && e->at.time < j->t)
            return o;
    }
    return NULL;
}

static void row_cursor_unknown(struct judge *j)
{
    struct resumption *r = j->r;

    if (j->st)
        return;
    const struct session *owner = foreign_owner(j);
    if (owner) {
        r->foreign_owner = owner;
        fault_add(r, RF_FOREIGN_CURSOR, "cursor-foreign-session");
        if (!decided(j))
            decide_as(j, VERDICT_FAIL, "the cursor was given out under another session only");
        return;
    }
    if (!session_whole_before(j->s, j->t) || session_ids_partial(j->s, j->t)) {
        r->faults |= RF_FORGOTTEN;
        undecided(j,
                  j->s->forgotten
                      ? "the cursor may be one of the oldest ids, which are no longer remembered"
                      : "the cursor may have been given out before the capture began, or in a part "
                        "that it lacks");
        return;
    }
    fail(j, "cursor-forged", RF_FORGED, "the cursor was never sent to this session");
}

static void row_no_status(struct judge *j)
{
    if (j->x->status != 0)
        return;
    fault_add(j->r, RF_NO_STATUS, NULL);
    decide_as(j, VERDICT_WAIT, "the connection failed before any answer");
}

static void row_busy(struct judge *j)
{
    if (j->x->status != 429 && j->x->status != 503)
        return;
    fault_add(j->r, RF_BUSY, NULL);
    decide_as(j, VERDICT_WAIT, "the server asked to come back later");
}

static bool gap_event(const struct event *e)
{
    static const char *const words[] = {
        "gap", "expired", "truncated", "reset", "overflow", "lost"
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (slice_has_nocase(e->name, slice_str(words[i])))
            return true;
        for (uint32_t k = 0; k < e->msg_count; k++) {
            const struct message *m = &e->msg[k];
            if (m->kind == RPC_NOTIFICATION && i < 3 &&
                slice_has_nocase(m->method, slice_str(words[i])))
                return true;
        }
    }
    return false;
}

static const struct event *signalled_in_stream(const struct judge *j)
{
    if (!j->leg)
        return NULL;
    for (const struct event *e = leg_event_after(j->s, j->leg, NONE); e;
         e = leg_event_after(j->s, j->leg, e->index)) {
        if (gap_event(e))
            return e;
        if (e->has_id && !e->priming)
            return NULL; /* the replay had begun */
    }
    return NULL;
}

static void row_signalled(struct judge *j)
{
    const struct exch *x = j->x;
    const struct event *e = signalled_in_stream(j);

    if (e) {
        j->r->signal_event = e->index;
        fail(j, "replay-gap-signalled", RF_SIGNALLED,
             "the server said in the stream that events are gone");
    } else if (x->status >= 400 && x->status < 500 && x->status != 429 && x->status != 409 &&
               refusal_names_cursor(x)) {
        fail(j, "replay-gap-signalled", RF_SIGNALLED,
             "the server said that it cannot honour the cursor");
    }
}

static void row_session(struct judge *j)
{
    const struct exch *x = j->x;
    struct slice asked = x->session_id;

    if (x->status >= 200 && x->status < 300 && asked.len > 0 && x->response_session.len > 0 &&
        !slice_eq(asked, x->response_session))
        fail(j, "session-changed-on-resume", RF_SESSION_CHANGED,
             "the answer came under another session, which cannot honour the cursor");
    if (j->r->faults & RF_SIGNALLED)
        return;
    if (session_refused(j->s, x))
        fail(j, "session-lost", RF_SESSION_LOST,
             "the session is gone; a new one cannot honour the cursor");
    else if (x->status == 404)
        fail(j, "replay-refused-404-live-session", RF_REFUSED,
             "refused as if the session were gone, which it was not");
}

static void row_refused(struct judge *j)
{
    const struct exch *x = j->x;
    unsigned told = RF_SIGNALLED | RF_SESSION_LOST | RF_SESSION_CHANGED | RF_BUSY | RF_REFUSED;

    if (x->status == 0 || (j->r->faults & told) || j->leg)
        return;
    fail(j, "replay-refused", RF_REFUSED, "the reconnect was refused");
}

/* Does the log, by other entries, show that it would have named this message? */
static bool log_would_name(const struct session *s, const struct event *e)
{
    bool read = e->track != NONE && s->track[e->track].state[LOG_RECEIVED].first != NONE;

    if (e->msg_count > 0 && e->msg[0].kind == RPC_NOTIFICATION && !read &&
        !s->log_handles_notifications)
        return false;
    return s->log_processes && s->log_names_events && !s->log_from_map && e->msg_count > 0 &&
           !e->no_time && e->at.time >= s->log_first && e->at.time <= s->log_last;
}

static bool never_processed(const struct session *s, const struct event *e)
{
    const struct track *k;

    if (e->track == NONE)
        return true;
    k = &s->track[e->track];
    return k->state[LOG_PROCESSED].first == NONE && k->state[LOG_COMMITTED].first == NONE &&
           k->state[LOG_DROPPED].first == NONE && k->state[LOG_FAILED].first == NONE;
}

/* The stream's first event up to the cursor that the log shows as never processed. */
static const struct event *skipped_event(const struct judge *j)
{
    const struct session *s = j->s;

    if (!s->has_log || !j->st || j->r->cursor_ordinal == NONE)
        return NULL;
    for (uint32_t o = 0; o <= j->r->cursor_ordinal && o < j->st->count; o++) {
        const struct event *e = j->st->order[o] == NONE ? NULL : event_at(s, j->st->order[o]);
        if (!e || !e->has_id || e->ambiguous || !log_would_name(s, e) || !event_delivered(s, e))
            continue;
        if (e->at.time < j->t && never_processed(s, e))
            return e;
    }
    return NULL;
}

static void row_skipped(struct judge *j)
{
    const struct event *e = skipped_event(j);

    if (!e)
        return;
    j->r->skipped_event = e->index;
    fail(j, "dispatch-skipped", RF_SKIPPED,
         "cursor and dispatch log are inconsistent: a message at or before the cursor was never "
         "processed and will not be sent again");
}

static bool dispatched_without_id(const struct judge *j)
{
    for (const struct event *e = leg_event_after(j->s, j->leg, NONE); e;
         e = leg_event_after(j->s, j->leg, e->index)) {
        if (!e->has_id && e->msg_count > 0)
            return true;
    }
    return false;
}

static void row_empty(struct judge *j)
{
    struct resumption *r = j->r;
    bool ended = j->leg && j->leg->ended && j->leg->end != END_OPEN;

    if (!j->leg || r->head != NONE || !ended || (r->faults & (RF_SIGNALLED | RF_FORGED)))
        return;
    if (j->leg->gaps) {
        undecided(j, "part of the resumed leg is not in the capture");
        return;
    }
    if (dispatched_without_id(j)) {
        r->likely = true;
        decide_as(j, VERDICT_CONTINUE, "the leg went on without event ids");
        return;
    }
    if (r->outstanding_count > 0 && answer_may_be_lost(j)) {
        undecided(j, "the answer may have come in a part that the capture lacks");
        return;
    }
    if (r->outstanding_count > 0) {
        fail(j, "replay-empty", RF_EMPTY,
             j->leg->end == END_FIN || j->leg->end == END_RST
                 ? "the leg was cut before any event while a request was outstanding"
                 : "the leg ended without an event while a request was outstanding");
        return;
    }
    if (carried_requests(j)) {
        decide_as(j, VERDICT_CONTINUE,
                  "every request of the stream had been answered: nothing was "
                  "left to replay");
        return;
    }
    r->faults |= RF_EMPTY;
    undecided(j,
              "the server sent nothing and ended: whether anything had been missed cannot be told");
}

static void row_open(struct judge *j)
{
    struct resumption *r = j->r;

    if (!j->leg || r->head != NONE || (j->leg->ended && j->leg->end != END_OPEN))
        return;
    if (r->faults & (RF_SIGNALLED | RF_FORGED))
        return;
    const struct leg *prev = r->previous_leg == NONE ? NULL : j->s->leg[r->previous_leg];
    bool newer = r->known_after > 0 ||
                 (prev && prev->tail_has_id && prev->tail_event_whole == NONE && prev->tail_id.len);
    if ((r->outstanding_count > 0 && !answer_may_be_lost(j)) || newer)
        fault_add(r, RF_STALLED, "replay-stalled");
    decide_as(j, VERDICT_WAIT, "the leg is open and has sent no event yet");
}

static void rows_head(struct judge *j)
{
    struct resumption *r = j->r;

    if (r->head == NONE)
        return;
    if (r->faults & RF_EPOCH)
        decide_as(j, VERDICT_FAIL,
                  "the ids have started again: the cursor points into another epoch");
    if (r->faults & RF_FOREIGN_SESSION)
        decide_as(j, VERDICT_FAIL, "the replay holds messages of another session");
    if (r->faults & RF_FOREIGN_STREAM)
        decide_as(j, VERDICT_FAIL, "the replay holds messages of another stream");
    if (r->faults & RF_IGNORED_CURSOR)
        decide_as(j, VERDICT_FAIL, "the server sent its whole history, as if there were no cursor");
    if (r->faults & RF_AT_OR_BELOW) {
        r->likely |= r->content_unknown;
        decide_as(j, VERDICT_FAIL, "the replay begins at or below the cursor");
    }
    if (r->faults & RF_PAYLOAD_CHANGED)
        decide_as(j, VERDICT_FAIL, "a message came again with other content under its id");
    if (r->faults & RF_GAP)
        decide_as(j, VERDICT_FAIL, "the replay leaves events out");
}

/* The tool whose handler the message reaches. */
static const struct request *request_of_event(const struct session *s, const struct event *e)
{
    for (uint32_t i = 0; e && i < e->msg_count; i++) {
        if (e->msg[i].request != NONE && !s->request[e->msg[i].request]->from_server)
            return s->request[e->msg[i].request];
    }
    return NULL;
}

static void find_head_state(struct judge *j)
{
    struct session *s = j->s;
    struct resumption *r = j->r;
    const struct event *e = event_at(s, r->head_first);
    const struct request *q = request_of_event(s, e);

    r->atomic = s->log_atomic || s->policy == POLICY_ATOMIC;
    r->head_idempotent = s->log_idempotent_all || (q && q->idempotent);
    r->head_idempotent_by =
        q && q->idempotent_by ? q->idempotent_by : (s->log_idempotent_all ? "log header" : NULL);
    r->head_state = s->has_log ? HEAD_UNPROCESSED : HEAD_NO_LOG;
    if (!s->has_log || !e)
        return;
    uint32_t track = e->track;
    for (uint32_t i = 0; track == NONE && i < e->msg_count; i++)
        track = e->msg[i].track;
    r->head_state = track_state_at(s, track, j->t);
}

static void rows_log(struct judge *j)
{
    struct resumption *r = j->r;

    if (r->head == NONE)
        return;
    if (r->head_state == HEAD_COMMITTED && !r->head_idempotent)
        fail(j, "dispatch-duplicated", RF_DUPLICATED,
             "the head of the replay had been committed already: a duplicate effect");
    if (r->head_state == HEAD_PROCESSED && !r->head_idempotent && !r->atomic)
        fail(j, "dispatch-uncommitted", RF_UNCOMMITTED,
             "the head of the replay had been processed and not committed: its effect is in doubt");
    if (r->head_idempotent && (r->head_state == HEAD_COMMITTED || r->head_state == HEAD_PROCESSED))
        decide_as(j, VERDICT_CONTINUE, "the head comes again, and its handler is idempotent");
}

static void rows_within(struct judge *j)
{
    struct resumption *r = j->r;

    if (r->faults & (RF_REORDERED | RF_LIVE_INTERLEAVED))
        decide_as(j, VERDICT_FAIL, "the replay comes in another order than the events first did");
    for (size_t i = 0; i < ARRAY_LEN(r->reason) && r->reason[i]; i++) {
        if (strcmp(r->reason[i], "progress-not-increasing") == 0)
            decide_as(j, VERDICT_FAIL, "progress goes back within the replay: it is out of order");
    }
}

static void row_unproven(struct judge *j)
{
    struct resumption *r = j->r;

    if (r->head == NONE)
        return;
    bool proven = r->atomic || r->head_idempotent || r->head_state == HEAD_UNPROCESSED ||
                  r->head_state == HEAD_RECEIVED;
    if (!r->atomic && !r->head_idempotent)
        fault_add(r, RF_UNPROVEN, "resume-unproven");
    if (!proven && j->s->model->opt.strict && r->head_state == HEAD_NO_LOG &&
        event_at(j->s, r->head) && event_at(j->s, r->head)->first != r->head)
        decide_as(j, VERDICT_FAIL,
                  "a message comes again, and nothing proves that the client can take it "
                  "twice");
    if (r->head_state == HEAD_NO_LOG)
        r->likely |= r->expected_event == NONE;
    decide_as(j, VERDICT_CONTINUE,
              r->head_first != r->head || event_at(j->s, r->head)->first != r->head
                  ? "the replay begins with the successor of the cursor"
                  : "the replay begins with an event that was never seen before, and nothing "
                    "contradicts that it is the successor");
}

/* The cursor is of no stream: where the leg begins, without a judgement on it. */
static void head_of_leg(struct judge *j)
{
    for (const struct event *e = leg_event_after(j->s, j->leg, NONE); e;
         e = leg_event_after(j->s, j->leg, e->index)) {
        if (!e->has_id || e->id.len == 0 || (e->priming && e->first == e->index))
            continue;
        j->r->head = e->index;
        j->r->head_first = e->first;
        return;
    }
}

static void judge_rows(struct judge *j)
{
    struct resumption *r = j->r;

    row_head_not_in_evidence(j);
    row_cursor_unknown(j);
    row_no_status(j);
    row_busy(j);
    row_signalled(j);
    row_session(j);
    row_refused(j);
    row_skipped(j);
    if (j->leg && j->st && !(r->faults & RF_FOREIGN_CURSOR))
        replay_walk(j->s, r);
    else if (j->leg)
        head_of_leg(j);
    row_empty(j);
    row_open(j);
    if (r->head != NONE)
        find_head_state(j);
    else
        r->head_state = j->s->has_log ? HEAD_UNPROCESSED : HEAD_NO_LOG;
    rows_head(j);
    rows_log(j);
    rows_within(j);
    row_unproven(j);
    if (!decided(j))
        undecided(j, "the evidence does not tell");
}

static void settle_failure(struct judge *j)
{
    struct resumption *r = j->r;

    r->should_fail_at = j->x->response.time ? j->x->response : j->x->first;
    if (r->verdict != VERDICT_FAIL)
        return;
    if (r->first_fault_event != NONE) {
        const struct event *e = event_at(j->s, r->first_fault_event);
        r->failed_at = r->first_fault_event;
        if (e)
            r->should_fail_at = e->at;
    } else if (r->head != NONE && (r->faults & (RF_DUPLICATED | RF_UNCOMMITTED))) {
        r->failed_at = r->head;
        r->should_fail_at = event_at(j->s, r->head)->at;
    }
}

static void count_repeats(struct session *s)
{
    struct table last = { 0 }; /* hash of a cursor -> index + 1 of the last one with it */

    for (uint32_t i = 0; i < s->resumption_count; i++) {
        struct resumption *r = s->resumption[i];
        uint64_t *slot = table_put(&last, hash_bytes(r->cursor));
        const struct resumption *p = *slot ? s->resumption[*slot - 1] : NULL;
        bool again = p && slice_eq(p->cursor, r->cursor) && p->head == NONE;
        r->repeats = again ? p->repeats + 1 : 1;
        *slot = i + 1;
    }
    table_release(&last);
}

static struct resumption *resumption_add(struct session *s, const struct exch *x)
{
    struct resumption *r = arena_alloc(s->model->arena, sizeof(*r));

    r->session = s;
    r->exch = x->index;
    r->leg = x->leg;
    r->stream = r->previous_leg = r->cursor_event = r->cursor_ordinal = NONE;
    r->wire_event = r->wire_event_acked = r->stored_entry = NONE;
    r->head = r->head_first = r->expected_event = r->failed_at = NONE;
    r->skipped_event = r->first_fault_event = r->signal_event = r->did_entry = NONE;
    r->cursor = x->cursor;
    GROW(s->resumption, s->resumption_count, s->resumption_cap);
    s->resumption[s->resumption_count++] = r;
    return r;
}

static void judge_one(struct session *s, const struct exch *x)
{
    struct judge j = { .s = s, .x = x, .t = x->first.time };

    j.r = resumption_add(s, x);
    j.leg = x->leg == NONE ? NULL : s->leg[x->leg];
    find_cursor(&j);
    find_wire_cursor(&j);
    find_log_cursors(&j);
    find_outstanding(&j);
    judge_rows(&j);
    settle_failure(&j);
    client_did_after(s, j.r);
}

static int by_first(const void *a, const void *b)
{
    const struct exch *x = *(struct exch *const *)a;
    const struct exch *y = *(struct exch *const *)b;

    if (x->first.time != y->first.time)
        return (x->first.time > y->first.time) - (x->first.time < y->first.time);
    return (x->serial > y->serial) - (x->serial < y->serial);
}

void resumptions_judge(struct session *s)
{
    struct exch **order = mem_alloc((s->exch_count + 1) * sizeof(struct exch *));

    if (s->exch_count > 0)
        memcpy(order, s->exch, s->exch_count * sizeof(struct exch *));
    qsort(order, s->exch_count, sizeof(struct exch *), by_first);
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = order[i];
        if (x->method == HTTP_METHOD_GET && x->has_request && x->cursor.len > 0 && x->era != ERA_D)
            judge_one(s, x);
    }
    free(order);
    count_repeats(s);
}
