/* replay.c - what a resumed leg sent, against what its cursor entitled the client to (DESIGN 4). */
#include "resume.h"

#include <stdlib.h>

#define MISSING_MAX 1000
#define HOLES_MAX   64 /* in one replay: each is looked for over the whole session */

void reason_add(struct resumption *r, const char *rule)
{
    for (size_t i = 0; i + 1 < ARRAY_LEN(r->reason); i++) {
        if (!r->reason[i]) {
            r->reason[i] = rule;
            return;
        }
        if (strcmp(r->reason[i], rule) == 0)
            return;
    }
}

void fault_add(struct resumption *r, unsigned fault, const char *rule)
{
    r->faults |= fault;
    if (rule)
        reason_add(r, rule);
}

void fault_at(struct resumption *r, unsigned fault, const char *rule, const struct event *e)
{
    fault_add(r, fault, rule);
    if (r->first_fault_event == NONE)
        r->first_fault_event = e->index;
}

/* One walk over a leg. */
struct walk {
    struct session *s;
    struct resumption *r;
    const struct stream *st; /* of the cursor */
    const struct leg *leg;
    uint32_t *known; /* events of the stream after the cursor that came before this leg */
    bool *sent;      /* ... which of them the leg sent */
    uint32_t known_count;
    size_t known_cap;
    uint32_t reached; /* how far in `known` the replay is: index of the last sent + 1 */
    uint32_t holes;   /* by the scheme, so far */
    uint32_t fresh;   /* events never seen before, so far */
    const struct event *last_numbered;
    const struct event *last_known; /* the last one sent that was known before */
    uint32_t whole_history;         /* repeated from the stream's first event on, without a hole */
    bool foreign_history;
};

static bool counts(const struct event *e)
{
    return e && e->has_id && e->id.len > 0 && !e->priming;
}

static bool has_rpc_id(const struct event *e)
{
    return e->msg_count > 0 && e->msg[0].kind != RPC_NOTIFICATION && e->msg[0].kind != RPC_OTHER;
}

/* Whatever comes so long after the leg is no matter of its replay. */
static bool is_past(const struct leg *l, const struct event *e)
{
    return l->ended && e->at.time - l->end_at.time > CLOCK_STEP;
}

/* What the server must send after the cursor, as far as the wire has shown it before. */
static void known_collect(struct walk *w)
{
    const struct stream *st = w->st;

    const struct event *e;
    uint32_t o = w->r->cursor_ordinal == NONE ? st->count : w->r->cursor_ordinal + 1;

    for (; (e = stream_next(w->s, st, &o)) && !is_past(w->leg, e); o++) {
        if (!counts(e) || w->s->leg[e->leg]->begin.time >= w->leg->begin.time)
            continue;
        GROW(w->known, w->known_count, w->known_cap);
        w->known[w->known_count++] = e->index;
    }
    w->sent = mem_alloc(w->known_count);
}

/* `known` is in the order of ordinals. */
static uint32_t known_position(const struct walk *w, uint32_t event)
{
    struct brief b;
    uint32_t low = 0;
    uint32_t high = w->known_count;

    if (!event_brief(w->s, event, &b))
        return NONE;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (event_at(w->s, w->known[mid])->ordinal < b.ordinal)
            low = mid + 1;
        else
            high = mid;
    }
    return low < w->known_count && w->known[low] == event ? low : NONE;
}

static void head_set(struct walk *w, const struct event *e, uint32_t stands_for)
{
    if (w->r->head != NONE)
        return;
    w->r->head = e->index;
    w->r->head_first = stands_for;
}

static void missing_add(struct walk *w, struct slice id, uint32_t event)
{
    struct resumption *r = w->r;

    if (r->missing_count >= MISSING_MAX)
        return;
    for (uint32_t i = 0; i < r->missing_count; i++) {
        if (slice_eq(r->missing[i].id, id))
            return;
    }
    if ((r->missing_count & (r->missing_count - 1)) == 0) {
        struct missing_id *more =
            arena_alloc(w->s->model->arena, (r->missing_count * 2 + 1) * sizeof(*more));
        if (r->missing_count > 0)
            memcpy(more, r->missing, r->missing_count * sizeof(*more));
        r->missing = more;
    }
    r->missing[r->missing_count++] = (struct missing_id){ id, event };
    r->missing_known = true;
}

/* A message for a request of another POST cannot belong to this stream. */
static bool foreign_by_request(const struct walk *w, const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        const struct message *m = &e->msg[i];
        if (m->from_client || m->request == NONE || (m->flags & RPC_RELATED_TASK))
            continue;
        const struct request *q = w->s->request[m->request];
        bool answer = rpc_is_response(m->kind);
        bool progress = m->kind == RPC_NOTIFICATION && (m->flags & RPC_HAS_PROGRESS);
        if (q->from_server || q->stream == NONE || q->stream == w->st->index)
            continue;
        if (answer || (progress && w->st->kind == STREAM_POST))
            return true;
    }
    return false;
}

static void see_foreign(struct walk *w, const struct event *e, unsigned fault, const char *rule)
{
    head_set(w, e, e->first);
    fault_at(w->r, fault, rule, e);
    w->foreign_history = true;
}

static void see_below(struct walk *w, const struct event *e, uint32_t ordinal)
{
    struct resumption *r = w->r;

    head_set(w, e, e->first);
    if (ordinal == w->whole_history)
        w->whole_history++;
    if (ordinal == r->cursor_ordinal && !(r->faults & RF_AT_OR_BELOW))
        r->faults |= RF_INCLUSIVE;
    else if (ordinal != r->cursor_ordinal)
        r->faults &= ~(unsigned)RF_INCLUSIVE;
    if (!event_at(w->s, e->first) || (e->first == e->index && !has_rpc_id(e)))
        r->content_unknown = true; /* or an equal notification */
    fault_at(r, RF_AT_OR_BELOW, "replay-at-or-below-cursor", e);
}

/* An event of this stream beyond the cursor which was seen before this leg. */
static void see_known(struct walk *w, const struct event *e, uint32_t stands_for, uint32_t at)
{
    struct resumption *r = w->r;

    head_set(w, e, stands_for);
    if (w->sent[at] || at < w->reached)
        fault_at(r, RF_REORDERED, "replay-reordered", e);
    else if (w->fresh > 0)
        fault_at(r, RF_LIVE_INTERLEAVED, "replay-live-interleaved", e);
    w->sent[at] = true;
    if (at + 1 > w->reached)
        w->reached = at + 1;
    w->last_known = e;
}

static bool all_answered(const struct session *s, const struct stream *st, int64_t t)
{
    const struct request *q;

    for (uint32_t i = 0; (q = stream_request(s, st, &i));) {
        if (!(q->response && q->response->at.time <= t))
            return false;
    }
    return true;
}

/* From the end of this leg on, could the stream have gone on unseen? */
static bool goes_on_unseen(const struct session *s, const struct stream *st, const struct leg *l)
{
    if (!l->ended || l->end == END_OPEN)
        return false;
    return l->end != END_COMPLETE || leg_exch(s, l)->close_not_known ||
           !all_answered(s, st, l->end_at.time);
}

/* Was every other stream of the session open or complete in that time? Then no id of the session
 * can have gone to one of them unseen. */
static bool others_covered(const struct walk *w, int64_t from, int64_t to)
{
    const struct session *s = w->s;

    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct stream *st = s->stream[i];
        for (uint32_t k = 0; st != w->st && k < st->leg_count; k++) {
            const struct leg *l = s->leg[st->leg[k]];
            int64_t back = k + 1 < st->leg_count ? s->leg[st->leg[k + 1]]->begin.time : INT64_MAX;
            if (l->gaps && l->begin.time < to)
                return false;
            if (goes_on_unseen(s, st, l) && l->end_at.time < to && back > from)
                return false;
        }
    }
    return true;
}

struct counted {
    uint64_t low, high, n;
};

/* Ids of one counter outside [from, to]: is none of them missing? Then the counter is the
 * session's. */
static bool counter_is_whole(const struct walk *w, const struct id_number *a, uint64_t to)
{
    const struct session *s = w->s;
    struct counted below = { UINT64_MAX, 0, 0 };
    struct counted above = { UINT64_MAX, 0, 0 };

    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        struct id_number n;
        if (e->first != e->index || e->id.len == 0 || !id_like(e->id, a, &n))
            continue;
        if (n.value > a->value && n.value < to)
            continue;
        struct counted *c = n.value <= a->value ? &below : &above;
        c->low = n.value < c->low ? n.value : c->low;
        c->high = n.value > c->high ? n.value : c->high;
        c->n++;
    }
    return (below.n == 0 || below.high - below.low + 1 == below.n) &&
           (above.n == 0 || above.high - above.low + 1 == above.n);
}

/* Which numbers between two neighbours of the leg never came on the session? */
static uint32_t unseen_between(struct walk *w, const struct id_number *a, uint64_t to, bool add)
{
    uint32_t n = 0;

    for (uint64_t v = a->value + 1; v < to && v - a->value <= MISSING_MAX; v++) {
        struct slice id = id_with_number(w->s->model, a, v);
        if (event_by_id(w->s, id) != NONE)
            continue;
        n++;
        if (add)
            missing_add(w, id, NONE);
    }
    return n;
}

/* Has the other session none of the ids of this one? */
static bool no_common_id(const struct session *s, const struct session *o)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (e->id.len > 0 && event_by_id(o, e->id) != NONE)
            return false;
    }
    return true;
}

/*
 * Did what is missing here go to another session of the same server, which has no id in common with
 * this one? Then one counter serves them all, and holes say nothing.
 */
#define NEIGHBOURS_MAX 256
#define PROBES_MAX     16
static bool counter_of_all_sessions(const struct walk *w, const struct id_number *a, uint64_t to)
{
    const struct model *m = w->s->model;
    uint64_t most = to - a->value > PROBES_MAX ? a->value + PROBES_MAX : to;

    for (uint32_t i = 0; i < m->session_count && i < NEIGHBOURS_MAX; i++) {
        const struct session *o = m->session[i];
        if (o == w->s || !slice_eq(o->authority, w->s->authority))
            continue;
        for (uint64_t v = a->value + 1; v < most; v++) {
            if (event_by_id(o, id_with_number(w->s->model, a, v)) != NONE)
                return no_common_id(w->s, o);
        }
    }
    return false;
}

static bool gap_by_scheme(struct walk *w, struct slice from, const struct event *e)
{
    struct session *s = w->s;
    uint64_t distance;
    struct id_number a;
    struct id_number b;

    if (!id_distance(s, from, e->id, &distance) || distance <= 1 || !id_pair(from, e->id, &a, &b))
        return false;
    if (s->forgotten || s->gaps > 0 || ++w->holes > HOLES_MAX)
        return false;
    if (s->scheme == SCHEME_SPARSE) {
        const struct event *f = event_at(s, event_by_id(s, from));
        int64_t since = f ? f->at.time : w->leg->begin.time;
        if (!others_covered(w, since, e->at.time) || !counter_is_whole(w, &a, a.value + distance))
            return false;
    }
    if (unseen_between(w, &a, a.value + distance, false) == 0 ||
        counter_of_all_sessions(w, &a, a.value + distance))
        return false;
    unseen_between(w, &a, a.value + distance, true);
    /* Only before the head: the server began at the oldest event that it still had. */
    w->r->from_buffer_head = e->index == w->r->head;
    /* A number may have gone to an id without data, which some HAR producers do not show. */
    w->r->missing_proven = !session_ids_partial(s, e->at.time);
    fault_at(w->r, RF_GAP, "replay-gap", e);
    return true;
}

/* The tail of the leg before held the beginning of an event that did not come. */
static void gap_by_tail(struct walk *w, const struct event *e)
{
    struct resumption *r = w->r;
    const struct leg *prev = r->previous_leg == NONE ? NULL : w->s->leg[r->previous_leg];

    if (!prev || !prev->tail_has_id || prev->tail_id.len == 0 || prev->tail_event_whole != NONE)
        return;
    if (r->wire_event != r->cursor_event) /* the tail follows the wire cursor only */
        return;
    missing_add(w, prev->tail_id, NONE);
    r->missing_proven = true;
    fault_at(r, RF_GAP, "replay-gap", e);
}

/* A never seen event: what stands between the last position and it? */
static void see_fresh(struct walk *w, const struct event *e, struct slice after)
{
    struct resumption *r = w->r;
    uint64_t distance;
    struct id_number a;
    struct id_number b;

    if (w->fresh == 0 && r->head == NONE)
        gap_by_tail(w, e);
    head_set(w, e, e->first);
    /* Without times of their own, events behind the head may all be live. */
    bool live = w->last_numbered && (e->no_time || event_is_live(w->leg, w->last_numbered, e));
    bool gap = !live && after.len > 0 && gap_by_scheme(w, after, e);
    if (!gap && w->last_numbered && !id_distance(w->s, w->last_numbered->id, e->id, &distance) &&
        w->s->scheme_proven && w->s->scheme != SCHEME_TIME &&
        id_pair(w->last_numbered->id, e->id, &a, &b) && b.value < a.value)
        fault_at(r, RF_REORDERED, "replay-reordered", e);
    w->fresh++;
}

static void see_progress(struct walk *w, const struct event *e)
{
    for (uint32_t i = 0; i < e->msg_count; i++) {
        const struct message *m = &e->msg[i];
        if (m->has_previous && m->progress <= m->previous_progress)
            fault_at(w->r, 0, "progress-not-increasing", e);
    }
}

static void see_changed(struct walk *w, const struct event *e)
{
    const struct event *o = event_at(w->s, e->same_id);

    head_set(w, e, e->first);
    if (w->s->epoch) {
        fault_at(w->r, RF_EPOCH, "event-id-epoch-reset", e);
        return;
    }
    if (w->s->scheme == SCHEME_NOT_UNIQUE && (!o || o->stream != w->st->index))
        return; /* event-id-reused tells it */
    uint32_t at = known_position(w, e->same_id);
    if (at != NONE)
        w->sent[at] = true;
    fault_at(w->r, RF_PAYLOAD_CHANGED, "replay-payload-changed", e);
}

static bool fresh_priming(const struct event *e)
{
    return e->priming && e->first == e->index;
}

/* A notification that says nothing but its name: equal ones are no sign of a repetition. */
static bool says_nothing(const struct message *m)
{
    static const char end[] = "/list_changed";
    size_t len = sizeof(end) - 1;

    return m->kind == RPC_NOTIFICATION &&
           (m->body_digest == 0 ||
            (m->method.len > len && memcmp(m->method.ptr + m->method.len - len, end, len) == 0));
}

/*
 * Where the replay that a resumed leg begins with repeats what the stream had, in its order and
 * under new ids: the last of these events. NONE: fewer than two, or only words that come again by
 * chance, or live already.
 */
#define REPLAY_TIME NS_PER_SEC
uint32_t renamed_run(const struct session *s, const struct leg *l)
{
    const struct event *last = NULL;
    uint32_t count = 0;
    bool said = false;

    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (fresh_priming(e))
            continue;
        if (e->new_id_of == NONE || (last && e->new_id_of <= last->new_id_of) ||
            e->at.time - l->begin.time > REPLAY_TIME)
            break;
        said |= e->msg_count > 0 && !says_nothing(&e->msg[0]);
        last = e;
        count++;
    }
    return said && count > 1 ? last->index : NONE;
}

/*
 * The same content under another id: a message with a JSON-RPC id cannot be another one; equal
 * notifications can, unless the replay begins with two or more that repeat what the stream had.
 */
bool event_renamed(const struct session *s, const struct event *e)
{
    const struct leg *l = s->leg[e->leg];

    if (!event_at(s, e->new_id_of))
        return false;
    if (has_rpc_id(e))
        return true;
    if (s->epoch)
        return false; /* new ids are the epoch's; equal words are chance */
    return l->renamed_last != NONE && e->index <= l->renamed_last;
}

/* The event, or the message under its new id, came before. */
static void see_again(struct walk *w, const struct event *e, uint32_t stands_for)
{
    struct resumption *r = w->r;
    struct brief b;

    if (!event_brief(w->s, stands_for, &b))
        return;
    const struct event *o = event_at(w->s, stands_for);
    if (o && o->leg == w->leg->index) { /* sent twice on this very leg */
        fault_at(r, RF_REORDERED, "replay-reordered", e);
    } else if (b.stream != w->st->index) {
        see_foreign(w, e, RF_FOREIGN_STREAM, "replay-foreign-stream");
    } else if (r->cursor_ordinal != NONE && b.ordinal <= r->cursor_ordinal) {
        see_below(w, e, b.ordinal);
    } else {
        uint32_t at = known_position(w, stands_for);
        if (at != NONE)
            see_known(w, e, stands_for, at);
    }
}

static void see_event(struct walk *w, const struct event *e)
{
    bool renamed = event_renamed(w->s, e);
    uint32_t stands_for = renamed ? e->new_id_of : e->first;

    if (e->marks & EV_FOREIGN_SESSION) {
        see_foreign(w, e, RF_FOREIGN_SESSION, "replay-foreign-session");
        return;
    }
    if (e->marks & EV_REBOUND) {
        see_foreign(w, e, RF_FOREIGN_STREAM, "replay-foreign-stream");
        return;
    }
    if (e->same_id != NONE && e->first == e->index) {
        see_changed(w, e);
        return;
    }
    if (renamed)
        fault_add(w->r, RF_NEW_ID, "replay-new-id");
    if (stands_for != e->index) {
        see_again(w, e, stands_for);
    } else if (foreign_by_request(w, e)) {
        see_foreign(w, e, RF_FOREIGN_STREAM, "replay-foreign-stream");
        return;
    } else {
        see_fresh(w, e, w->last_numbered ? w->last_numbered->id : w->r->cursor);
        see_progress(w, e);
    }
    if (!renamed)
        w->last_numbered = e;
}

/* Known events which the replay passed over. */
static void known_missing(struct walk *w)
{
    uint32_t upto = w->fresh > 0 ? w->known_count : w->reached;
    const struct event *first = event_at(w->s, w->r->head);

    for (uint32_t i = 0; i < upto; i++) {
        const struct event *e = event_at(w->s, w->known[i]);
        if (w->sent[i] || !e)
            continue;
        missing_add(w, e->id, e->index);
        w->r->missing_proven = true;
        fault_add(w->r, RF_GAP, "replay-gap");
        if (w->r->first_fault_event == NONE && first)
            w->r->first_fault_event = first->index;
    }
}

/*
 * A priming event is no message. It begins a leg under a new id, or under the one that this server
 * primes every leg with; the cursor's own event again is a replay from it on.
 */
static bool primes_leg(struct walk *w, const struct event *e)
{
    struct brief b;

    if (fresh_priming(e))
        return true;
    if (!e->priming || e->index != w->leg->first_event || slice_eq(e->id, w->r->cursor))
        return false;
    if (event_brief(w->s, e->first, &b) && b.stream == w->st->index &&
        b.ordinal == w->whole_history)
        w->whole_history++; /* or the whole history begins with it */
    return true;
}

static void history_check(struct walk *w)
{
    struct resumption *r = w->r;

    if (!(r->faults & RF_AT_OR_BELOW) || r->cursor_ordinal == NONE)
        return;
    uint32_t upto = r->cursor_ordinal + 1;
    if (w->whole_history >= upto && (upto > 2 || (upto > 1 && w->foreign_history)))
        fault_add(r, RF_IGNORED_CURSOR, "replay-ignored-cursor");
}

/* Does some id of the stream differ from this one by a number alone? */
static bool made_alike(const struct session *s, const struct stream *st, struct slice id)
{
    struct id_number a;
    struct id_number b;

    for (uint32_t i = st->count; i-- > 0 && st->count - i < 16;) {
        const struct event *e = st->order[i] == NONE ? NULL : event_at(s, st->order[i]);
        if (e && e->id.len > 0 && id_pair(e->id, id, &a, &b))
            return true;
    }
    return false;
}

/* The resumed leg of a request's stream carries ids of the make of a listening stream alone. */
static void fresh_listening_check(struct walk *w)
{
    struct resumption *r = w->r;
    const struct event *h = event_at(w->s, r->head);

    if (!h || r->faults || w->known_count > 0 || h->first != h->index ||
        w->st->kind != STREAM_POST || made_alike(w->s, w->st, h->id))
        return;
    for (uint32_t i = 0; i < w->s->stream_count; i++) {
        const struct stream *st = w->s->stream[i];
        if (st->kind != STREAM_STANDALONE || !made_alike(w->s, st, h->id))
            continue;
        fault_at(r, RF_IGNORED_CURSOR, "replay-ignored-cursor", h);
        r->as_fresh_stream = true;
        return;
    }
}

static void expected_set(struct walk *w)
{
    struct resumption *r = w->r;
    struct id_number n;

    if (w->known_count > 0) {
        r->expected_event = w->known[0];
        r->expected = event_at(w->s, w->known[0])->id;
    } else if (r->missing_count > 0) {
        r->expected = r->missing[0].id;
    } else if (w->s->scheme == SCHEME_DENSE && id_number_of(r->cursor, &n)) {
        r->expected = id_with_number(w->s->model, &n, n.value + 1);
    } else if (r->head != NONE && !r->faults) {
        r->expected = event_at(w->s, r->head)->id;
    }
}

/* Events that came at once, before the first pause: the replay; what follows is live. */
#define PAUSE (50 * NS_PER_MS)
static void replayed_count(struct walk *w)
{
    int64_t last = 0;

    for (const struct event *e = leg_event_after(w->s, w->leg, NONE); e;
         e = leg_event_after(w->s, w->leg, e->index)) {
        bool again = e->first != e->index || e->new_id_of != NONE;
        if (last && e->at.time - last > PAUSE && !again)
            break;
        last = e->at.time;
        w->r->replayed += e->has_id && e->id.len > 0 && !fresh_priming(e);
    }
}

void replay_walk(struct session *s, struct resumption *r)
{
    struct walk w = { .s = s, .r = r, .leg = s->leg[r->leg] };

    w.st = s->stream[r->stream == NONE ? w.leg->stream : r->stream];
    known_collect(&w);
    for (const struct event *e = leg_event_after(s, w.leg, NONE); e;
         e = leg_event_after(s, w.leg, e->index)) {
        if (!e->has_id || e->id.len == 0 || primes_leg(&w, e))
            continue;
        see_event(&w, e);
    }
    known_missing(&w);
    history_check(&w);
    fresh_listening_check(&w);
    expected_set(&w);
    replayed_count(&w);
    r->known_after = w.known_count;
    free(w.known);
    free(w.sent);
}
