/* reconnect.c - RULES.md section 6: how a client comes back; the rules stand in session.c. */
#include "reconnect.h"

#include "pace.h"
#include "traffic.h"

#include <stdlib.h>

#define NAMED 4 /* refusals that a finding shows */

/* ---- reconnects ---- */

/* A GET for a stream. */
struct reopen {
    const struct exch *x;
    const struct leg *before;   /* the leg that it goes on with; NULL: none that is known */
    const struct exch *earlier; /* the GET of the session before it; NULL: it is the first */
};

struct reopens {
    struct reopen *item;
    uint32_t count;
    size_t cap;
};

static bool for_stream(const struct exch *x)
{
    return x->has_request && x->method == HTTP_METHOD_GET &&
           (x->cursor.len > 0 || (x->flags & RECF_ACCEPT_SSE) || (x->rflags & RECF_SSE));
}

/* exchange -> leg of the cursor's stream before it, or NONE; to be freed */
static uint32_t *legs_resumed(const struct session *s)
{
    uint32_t *before = mem_alloc((s->exch_count + 1) * sizeof(*before));

    for (uint32_t i = 0; i < s->exch_count; i++)
        before[i] = NONE;
    for (uint32_t i = 0; i < s->resumption_count; i++)
        before[s->resumption[i]->exch] = s->resumption[i]->previous_leg;
    return before;
}

static bool is_listening(const struct session *s, const struct leg *l)
{
    return s->stream[l->stream]->kind == STREAM_STANDALONE;
}

/* All GETs for streams in the order of time; item to be freed. */
static struct reopens reopens_of(const struct session *s)
{
    const struct exch **order = exchs_in_time(s);
    uint32_t *resumed = legs_resumed(s);
    struct reopens all = { 0 };
    const struct leg *listening = NULL;
    const struct exch *earlier = NULL;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = order[i];
        if (!for_stream(x))
            continue;
        const struct leg *before = listening;
        if (x->cursor.len > 0)
            before = resumed[x->index] == NONE ? NULL : s->leg[resumed[x->index]];
        GROW(all.item, all.count, all.cap);
        all.item[all.count++] = (struct reopen){ x, before, earlier };
        earlier = x;
        if (x->leg != NONE && is_listening(s, s->leg[x->leg]))
            listening = s->leg[x->leg];
    }
    free(resumed);
    free(order);
    return all;
}

/* The last valid retry (ms) that the client received on this leg, or -1. */
static int64_t retry_received(const struct session *s, const struct leg *l)
{
    int64_t retry = -1;
    bool any = false;

    if (l->retry < 0)
        return -1;
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->retry < 0)
            continue;
        any = true;
        if (event_delivered(s, e))
            retry = e->retry;
    }
    return any ? retry : l->retry; /* an event that is no longer held whole */
}

/* leg -> the last valid retry of its stream up to its end, or -1; to be freed */
static int64_t *retries_of(const struct session *s)
{
    int64_t *retry = mem_alloc((s->leg_count + 1) * sizeof(*retry));

    for (uint32_t i = 0; i < s->stream_count; i++) {
        const struct stream *st = s->stream[i];
        int64_t last = -1;
        for (uint32_t k = 0; k < st->leg_count; k++) {
            int64_t own = retry_received(s, s->leg[st->leg[k]]);
            last = own >= 0 ? own : last;
            retry[st->leg[k]] = last;
        }
    }
    return retry;
}

static bool ended_before(const struct leg *l, int64_t t)
{
    return l->ended && l->end != END_OPEN && l->end != END_GAP && l->end_at.time <= t;
}

/* ---- retry-not-respected ---- */

static bool has_packets(const struct session *s, const struct leg *l)
{
    return !(s->exch[l->exch]->rflags & RECF_HAR);
}

static const char *end_text(const struct leg *l)
{
    switch (l->end) {
    case END_COMPLETE: return "the server ends the leg";
    case END_FIN: return "the server closes the connection";
    case END_RST: return "the leg is reset";
    case END_CLIENT_FIN:
    case END_CLIENT_RST: return "the client closes the leg";
    case END_OPEN:
    case END_GAP: break;
    }
    return "the leg ends";
}

static void too_early(struct rule_run *run, const struct session *s, const struct reopen *o,
                      int64_t retry)
{
    const struct leg *l = o->before;
    int64_t waited = o->x->first.time - l->end_at.time;
    struct finding *f = finding_add(run, s);

    f->stream = l->stream;
    f->leg = l->index;
    f->exch = o->x->index;
    f->cursor = o->x->cursor;
    f->party = PARTY_CLIENT;
    f->severity = s->era == ERA_C ? SEV_ERROR : SEV_WARNING;
    finding_message(run, f, "the server asked for %s before a reconnect, the client came after %s",
                    run_seconds(run, retry * NS_PER_MS), run_seconds(run, waited));
    finding_frame(run, f, o->x->first, "the reconnect, %s after the end of the leg",
                  run_seconds(run, waited));
    finding_frame(run, f, l->end_at, "%s", end_text(l));
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->retry == retry) {
            finding_frame(run, f, e->at, "retry: %lld", (long long)retry);
            break;
        }
    }
}

void check_retry(struct rule_run *run, const struct session *s)
{
    if (!rule_in_era(run->rule, s->era))
        return;
    struct reopens all = reopens_of(s);
    int64_t *retry = retries_of(s);
    bool *seen = mem_alloc((s->leg_count + 1) * sizeof(*seen));

    for (uint32_t i = 0; i < all.count; i++) {
        const struct reopen *o = &all.item[i];
        const struct leg *l = o->before;
        if (!l || seen[l->index] || retry[l->index] < 0)
            continue;
        seen[l->index] = true; /* later attempts are later still */
        if (!ended_before(l, o->x->first.time) || l->gaps > 0 ||
            o->x->first.time >=
                l->end_at.time + retry[l->index] * NS_PER_MS - run->limit->retry_tolerance)
            continue;
        if (has_packets(s, l) && !(o->x->flags & RECF_HAR))
            too_early(run, s, o, retry[l->index]);
        else
            undecidable_add(run, s, l->stream,
                            "the reconnect seems to come earlier than retry, but a HAR does not "
                            "tell when the leg ended");
    }
    free(seen);
    free(retry);
    free(all.item);
}

/* ---- retry-after-ignored ---- */

#define KINDS    64
#define WAIT_MAX INT64_C(31536000) /* a year, s */

/* One kind of request of one client that was told to come back later. */
struct busy {
    uint64_t key;
    const struct exch *told; /* the last 429 or 503 */
    int64_t until;
    const struct exch *refused, *first, *last; /* of what came too early */
    uint32_t count;
};

static uint64_t busy_key(const struct exch *x)
{
    uint64_t host = hash_bytes((struct slice){ x->client.addr, sizeof(x->client.addr) });

    return hash_mix(hash_mix(host, hash_bytes(x->target)), exch_kind(x));
}

static bool told_to_wait(const struct exch *x)
{
    return (x->status == 429 || x->status == 503) && x->retry_after > 0 && x->response.time;
}

static struct busy *busy_find(struct busy *all, size_t *count, uint64_t key, bool add)
{
    for (size_t i = 0; i < *count; i++) {
        if (all[i].key == key)
            return &all[i];
    }
    if (!add || *count == KINDS)
        return NULL;
    all[*count] = (struct busy){ .key = key };
    return &all[(*count)++];
}

/* Seconds are coarse, and dates were rounded to them: a tenth is forgiven. */
static int64_t wait_until(const struct rule_run *run, const struct exch *x)
{
    int64_t wait = (x->retry_after < WAIT_MAX ? x->retry_after : WAIT_MAX) * NS_PER_SEC;
    int64_t slack = wait / 10 < NS_PER_SEC ? wait / 10 : NS_PER_SEC;

    return x->response.time + wait - slack - run->limit->retry_tolerance;
}

static void busy_step(struct rule_run *run, struct busy *b, const struct exch *x)
{
    if (b->told && x->first.time > b->told->response.time && x->first.time < b->until) {
        if (b->count++ == 0) {
            b->refused = b->told;
            b->first = x;
        }
        b->last = x;
    }
    if (!told_to_wait(x))
        return;
    b->told = x;
    b->until = wait_until(run, x);
}

static void busy_finding(struct rule_run *run, const struct session *s, const struct busy *b)
{
    struct finding *f = finding_add(run, s);

    f->exch = b->refused->index;
    f->subject = run_id(run, b->first->method_text);
    f->cursor = b->first->cursor;
    f->party = PARTY_CLIENT;
    f->count = b->count;
    finding_message(run, f,
                    "the server answered %d with Retry-After: %lld; the client sent the same kind "
                    "of request %u time%s earlier than that (first after %s)",
                    b->refused->status, (long long)b->refused->retry_after, b->count,
                    b->count == 1 ? "" : "s",
                    run_seconds(run, b->first->first.time - b->refused->response.time));
    finding_frame(run, f, b->refused->response, "status %d, Retry-After: %lld", b->refused->status,
                  (long long)b->refused->retry_after);
    finding_frame(run, f, b->first->first, "the same kind of request again");
    if (b->last != b->first)
        finding_frame(run, f, b->last->first, "the last one that came too early");
}

void check_retry_after(struct rule_run *run, const struct session *s)
{
    const struct exch **order = exchs_in_time(s);
    struct busy *all = mem_alloc(KINDS * sizeof(*all));
    size_t count = 0;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = order[i];
        struct busy *b =
            x->has_request ? busy_find(all, &count, busy_key(x), told_to_wait(x)) : NULL;
        if (b)
            busy_step(run, b, x);
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i].count > 0)
            busy_finding(run, s, &all[i]);
    }
    free(all);
    free(order);
}

/* ---- reconnect-storm ---- */

struct knock {
    uint64_t who;
    const struct session *s;
    const struct exch *x;
};

struct knocks {
    struct knock *item;
    size_t count;
    size_t cap;
};

static int by_knocker(const void *a, const void *b)
{
    const struct knock *x = a;
    const struct knock *y = b;

    if (x->who != y->who)
        return x->who < y->who ? -1 : 1;
    return exchs_by_first(&x->x, &y->x);
}

static void knock_add(struct knocks *all, const struct session *s, const struct exch *x)
{
    uint64_t who = hash_mix(caller_of(&x->client, x->authority), s->client_identity);

    GROW(all->item, all->count, all->cap);
    all->item[all->count++] = (struct knock){ who, s, x };
}

static bool was_busy(const struct exch *x)
{
    return x && (x->status == 429 || x->status == 503);
}

/* The server itself asked for this pace. */
static bool asked_for(const struct rule_run *run, const struct reopen *o, const int64_t *retry)
{
    const struct leg *l = o->before;

    return l && retry[l->index] >= 0 && ended_before(l, o->x->first.time) &&
           o->x->first.time >=
               l->end_at.time + retry[l->index] * NS_PER_MS - run->limit->retry_tolerance;
}

/* Reconnects that follow one another within the window: a session that comes back once, as all do
 * after a restart of the server, is no storm. */
static void knocks_of_gets(struct rule_run *run, struct knocks *all, const struct session *s)
{
    struct reopens gets = reopens_of(s);
    int64_t *retry = retries_of(s);
    const struct exch *waiting = NULL; /* the one before, when it was not counted yet */

    for (uint32_t i = 0; i < gets.count; i++) {
        const struct reopen *o = &gets.item[i];
        if (!o->earlier || was_busy(o->earlier) || asked_for(run, o, retry)) {
            waiting = NULL;
            continue;
        }
        bool soon = o->x->first.time - o->earlier->first.time < run->limit->storm_window;
        if (soon && waiting)
            knock_add(all, s, waiting);
        waiting = soon ? NULL : o->x;
        if (soon)
            knock_add(all, s, o->x);
    }
    free(retry);
    free(gets.item);
}

static void knocks_of_starts(struct knocks *all, const struct session *s)
{
    const struct exch *earlier = NULL;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!x->initialize)
            continue;
        bool again = !exch_accepted(x) || (s->replaces && !session_ended_by_client(s->replaces));
        if (again && !was_busy(earlier))
            knock_add(all, s, x);
        earlier = x;
    }
}

static void storm_finding(struct rule_run *run, const struct knock *from, size_t count, size_t most)
{
    const struct knock *to = from + count - 1;
    struct finding *f = finding_add(run, from->s);
    char host[ENDPOINT_TEXT];

    f->exch = from->x->index;
    f->subject = "reconnects";
    f->party = PARTY_CLIENT;
    f->count = (uint32_t)count;
    finding_message(run, f,
                    "%s came back %zu times in %s (up to %zu within %s) with GETs for streams or "
                    "initialize requests",
                    endpoint_host(&from->x->client, host), count,
                    run_seconds(run, to->x->first.time - from->x->first.time), most,
                    run_seconds(run, run->limit->storm_window));
    finding_frame(run, f, from->x->first, "the first of them");
    finding_frame(run, f, from[run->limit->storm_count].x->first, "the one that is too many");
    finding_frame(run, f, to->x->first, "the last of them");
}

/* The knocks of one client, in the order of time. */
static void storm_of(struct rule_run *run, const struct knock *item, size_t count)
{
    size_t limit = run->limit->storm_count;
    size_t first = SIZE_MAX;
    size_t last = 0;
    size_t most = 0;

    for (size_t lo = 0, hi = 0; hi < count; hi++) {
        while (lo < hi &&
               item[hi].x->first.time - item[lo].x->first.time >= run->limit->storm_window)
            lo++;
        if (hi - lo + 1 <= limit)
            continue;
        if (first == SIZE_MAX)
            first = lo;
        last = hi;
        most = hi - lo + 1 > most ? hi - lo + 1 : most;
    }
    if (first != SIZE_MAX)
        storm_finding(run, item + first, last - first + 1, most);
}

void whole_storm(struct rule_run *run, const struct model *m)
{
    struct knocks all = { 0 };
    size_t from = 0;

    for (uint32_t i = 0; i < m->session_count; i++) {
        knocks_of_gets(run, &all, m->session[i]);
        knocks_of_starts(&all, m->session[i]);
    }
    if (all.count > 0)
        qsort(all.item, all.count, sizeof(*all.item), by_knocker);
    for (size_t i = 1; i <= all.count; i++) {
        if (i < all.count && all.item[i].who == all.item[from].who)
            continue;
        storm_of(run, all.item + from, i - from);
        from = i;
    }
    free(all.item);
}

/* ---- listen-conflict ---- */

static bool says_other_stream(const struct exch *x)
{
    static const char *const words[] = { "already",    "exist",    "multiple", "only one",
                                         "one stream", "conflict", "in use",   "another" };

    for (size_t i = 0; x->error_text && i < ARRAY_LEN(words); i++) {
        if (strstr(x->error_text, words[i]))
            return true;
    }
    return false;
}

static bool refused_for_other(const struct exch *x)
{
    if (refusal_names_session(x) || (refusal_names_cursor(x) && !says_other_stream(x)))
        return false;
    if (x->status == 409)
        return true;
    return x->status == 400 && (x->cursor.len == 0 || says_other_stream(x));
}

/* When the last POST began that was accepted; 0: none. */
static int64_t posts_work_until(const struct session *s)
{
    int64_t last = 0;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->method == HTTP_METHOD_POST && exch_accepted(x) && x->first.time > last)
            last = x->first.time;
    }
    return last;
}

/* Is it the stream that is refused, not the session or the cursor? */
static bool stream_refused(const struct session *s, const struct reopen *o, int64_t posts_until)
{
    if (!o->before || !is_listening(s, o->before) || !ended_before(o->before, o->x->first.time) ||
        !refused_for_other(o->x))
        return false;
    return o->x->status == 409 || says_other_stream(o->x) || posts_until > o->x->first.time;
}

static void refused_finding(struct rule_run *run, const struct session *s,
                            const struct exch *const *refused, uint32_t count, const struct leg *l)
{
    const struct exch *x = refused[0];
    struct finding *f = finding_add(run, s);

    f->stream = l->stream;
    f->leg = l->index;
    f->exch = x->index;
    f->party = PARTY_SERVER;
    f->count = count;
    finding_message(run, f,
                    "the listening stream was over for the client (%s), yet the server refuses "
                    "the next %u GET%s with %d, as if it were still open",
                    end_text(l), count, count == 1 ? "" : "s", x->status);
    finding_frame(run, f, x->response, "status %d for a GET, %s after the end of the stream",
                  x->status, run_seconds(run, x->first.time - l->end_at.time));
    finding_frame(run, f, l->end_at, "%s", end_text(l));
    for (uint32_t i = 1; i < count && i < NAMED; i++)
        finding_frame(run, f, refused[i]->response, "status %d again", refused[i]->status);
}

static void check_refused(struct rule_run *run, const struct session *s, const struct reopens *all)
{
    const struct exch *refused[NAMED];
    const struct leg *dead = NULL;
    int64_t until = posts_work_until(s);
    uint32_t count = 0;

    for (uint32_t i = 0; until > 0 && i <= all->count; i++) {
        const struct reopen *o = i < all->count ? &all->item[i] : NULL;
        bool conflict = o && stream_refused(s, o, until) && rule_in_era(run->rule, o->x->era);
        const struct leg *l = conflict ? o->before : NULL;
        if (count > 0 && (!o || (l && l != dead))) {
            refused_finding(run, s, refused, count, dead);
            count = 0;
        }
        if (!l)
            continue;
        dead = l;
        if (count < NAMED)
            refused[count] = o->x;
        count++;
    }
}

/* Since a second GET was accepted, the first stream has been silent: its keep-alives too. */
static void check_starved(struct rule_run *run, const struct session *s, const struct reopen *o)
{
    const struct leg *l = o->before;
    const struct leg *second = o->x->leg == NONE ? NULL : s->leg[o->x->leg];
    int64_t period;

    if (!l || !second || !is_listening(s, l) || !is_listening(s, second) ||
        l->stream == second->stream || (o->x->flags & RECF_HAR) || l->gaps > 0)
        return;
    if (!leg_open_at(l, second->begin.time) || !leg_pace(l, &period))
        return;
    int64_t until = l->ended ? l->end_at.time : run->model->end.time;
    int64_t quiet = until - second->begin.time;
    bool stopped = l->last_byte.time <= second->begin.time + period;
    bool went_on = second->last_byte.time > l->last_byte.time + period && second->comments > 0;
    if (!stopped || !went_on || (double)quiet < run->limit->keepalive_factor * (double)period)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_leg(run, f, l);
    f->party = PARTY_SERVER;
    f->certainty = CERTAINTY_LIKELY;
    finding_message(run, f,
                    "since a second listening GET was accepted the first, still open stream has "
                    "been silent for %s, though it had a keep-alive every %s",
                    run_seconds(run, quiet), run_seconds(run, period));
    finding_frame(run, f, o->x->first, "the second GET");
    finding_frame(run, f, l->last_byte, "the last byte of the first stream");
    finding_frame(run, f, second->last_byte, "the second stream goes on");
}

void check_listen(struct rule_run *run, const struct session *s)
{
    struct reopens all = reopens_of(s);

    check_refused(run, s, &all);
    for (uint32_t i = 0; i < all.count; i++)
        check_starved(run, s, &all.item[i]);
    free(all.item);
}
