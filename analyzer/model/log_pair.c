/*
 * log_pair.c - the client's dispatch log against the wire: which session an entry speaks of, which
 * event or message, and when that was on the capture's clock.
 */
#include "model_impl.h"

#include <stdlib.h>

/* ---- entries to sessions ---- */

static struct session *session_with_id(const struct model *m, struct slice id)
{
    for (uint32_t i = 0; i < m->session_count; i++) {
        if (m->session[i]->id.ptr && slice_eq(m->session[i]->id, id))
            return m->session[i];
    }
    return NULL;
}

static bool has_traffic(const struct session *s)
{
    return s->exch_count > 0;
}

/* The only session there is, or the only one that a message was exchanged in. */
static struct session *only_session(const struct model *m)
{
    struct session *only = NULL;

    for (uint32_t i = 0; i < m->session_count; i++) {
        if (!has_traffic(m->session[i]))
            continue;
        if (only)
            return NULL;
        only = m->session[i];
    }
    return only;
}

static struct session *session_with_event(const struct model *m, struct slice id)
{
    struct session *found = NULL;

    for (uint32_t i = 0; i < m->session_count; i++) {
        if (event_by_id(m->session[i], id) == NONE)
            continue;
        if (found)
            return NULL;
        found = m->session[i];
    }
    return found;
}

/* A log that names no session and no event in common with one: the session whose ids it uses most.
 */
static struct session *session_of_entry(const struct model *m, const struct log_entry *e,
                                        struct session *only, struct session *last)
{
    struct session *s;

    if (e->session.ptr && e->session.len > 0)
        return last && last->id.ptr && slice_eq(last->id, e->session)
                   ? last
                   : session_with_id(m, e->session);
    if (only)
        return only;
    s = e->event_id.ptr ? session_with_event(m, e->event_id) : NULL;
    return s ? s : last;
}

static void entry_add(struct session *s, uint32_t entry, int64_t time)
{
    size_t cap = s->log_entry_cap;

    if (s->log_entry_count == cap) {
        s->log_entry = mem_double(s->log_entry, &s->log_entry_cap, sizeof(*s->log_entry));
        s->log_time = mem_grow(s->log_time, s->log_entry_cap * sizeof(*s->log_time));
    }
    s->log_entry[s->log_entry_count] = entry;
    s->log_time[s->log_entry_count++] = time;
    s->has_log = true;
}

static void entries_to_sessions(struct model *m)
{
    struct session *only = only_session(m);
    struct session *last = NULL;

    for (size_t i = 0; i < m->log->count; i++) {
        const struct log_entry *e = &m->log->entry[i];
        struct session *s = session_of_entry(m, e, only, last);
        if (!s)
            continue;
        last = s;
        entry_add(s, (uint32_t)i, e->has_time ? e->time : 0);
    }
}

static void session_log_facts(struct session *s)
{
    const struct dispatch_log *log = s->model->log;

    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = &log->entry[s->log_entry[i]];
        const struct log_file *f = &log->file[e->file];
        s->log_has_times |= e->has_time;
        s->log_from_map |= e->from_map;
        s->log_digests |= e->digest != LOG_DIGEST_NONE;
        s->log_names_events |= e->event_id.ptr && !e->from_map;
        s->log_commits |= e->state == LOG_COMMITTED;
        s->log_cursors |= e->state == LOG_CURSOR;
        s->log_processes |= e->state == LOG_PROCESSED || e->state == LOG_COMMITTED;
        s->log_receives |= e->state == LOG_RECEIVED;
        s->log_handles |= e->state == LOG_PROCESSED;
        s->log_atomic |= f->atomic_cursor;
        s->log_idempotent_all |= f->idempotent_all;
    }
}

/* ---- what was on the wire, by content ---- */

/* Equal messages stand under their key in the order of their arrival, see nth_key(). */
struct wire_index {
    struct table content; /* digest or xxh3 of a server's message -> struct message * */
    struct table sha;     /* first 8 bytes of the sha256 */
    struct table count;   /* how many of either */
};

static uint64_t sha_key(const uint8_t *sha)
{
    uint64_t k;

    memcpy(&k, sha, sizeof(k));
    return k;
}

static uint64_t nth_key(uint64_t key, uint64_t n)
{
    return n == 0 ? key : hash_mix(key, n);
}

static void index_put(struct wire_index *w, struct table *t, uint64_t key,
                      const struct message *msg)
{
    uint64_t *n = table_put(&w->count, key);
    uint64_t *slot = table_put(t, nth_key(key, *n));

    if (*slot != 0)
        return;
    *slot = (uint64_t)(uintptr_t)msg;
    (*n)++;
}

static void index_message(struct wire_index *w, const struct message *msg)
{
    if (msg->same_as)
        return;
    index_put(w, &w->content, msg->digest, msg);
    if (msg->xxh3 && msg->xxh3 != msg->digest)
        index_put(w, &w->content, msg->xxh3, msg);
    if (msg->sha256)
        index_put(w, &w->sha, sha_key(msg->sha256), msg);
}

static void index_build(const struct session *s, struct wire_index *w)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        for (uint32_t j = 0; j < e->msg_count; j++)
            index_message(w, &e->msg[j]);
    }
    for (uint32_t i = 0; i < s->exch_count; i++) {
        for (uint32_t j = 0; j < s->exch[i]->reply_count; j++)
            index_message(w, &s->exch[i]->reply[j]);
    }
}

/* ---- entries to tracks ---- */

/* Notifications of one method, or of one method and request, in their order. */
struct node {
    const struct message *msg;
    uint32_t next; /* index + 1 */
};

struct pairing {
    struct session *s;
    struct wire_index wire;
    struct node *node;
    size_t node_count, node_cap;
    struct table first; /* key -> first node + 1 */
    struct table last;
    struct table used; /* key and state -> the node that comes next, + 1 */
};

/* request: of the message, or 0 for any. */
static uint64_t notification_key(struct slice method, uint64_t request)
{
    return hash_mix(hash_bytes(method), request);
}

static void node_add(struct pairing *p, uint64_t key, const struct message *msg)
{
    GROW(p->node, p->node_count, p->node_cap);
    p->node[p->node_count++] = (struct node){ .msg = msg };
    uint64_t *last = table_put(&p->last, key);
    if (*last)
        p->node[*last - 1].next = (uint32_t)p->node_count;
    else
        *table_put(&p->first, key) = p->node_count;
    *table_put(&p->last, key) = p->node_count;
}

static void pairing_open(struct pairing *p, struct session *s)
{
    *p = (struct pairing){ .s = s };
    index_build(s, &p->wire);
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        for (uint32_t k = 0; k < e->msg_count; k++) {
            const struct message *m = &e->msg[k];
            if (m->kind != RPC_NOTIFICATION || m->same_as)
                continue;
            node_add(p, notification_key(m->method, 0), m);
            if (m->request != NONE)
                node_add(p, notification_key(m->method, s->request[m->request]->msg->id.hash), m);
        }
    }
}

static void pairing_close(struct pairing *p)
{
    table_release(&p->wire.content);
    table_release(&p->wire.sha);
    table_release(&p->wire.count);
    table_release(&p->first);
    table_release(&p->last);
    table_release(&p->used);
    free(p->node);
}

static const struct message *nth_equal(const struct table *t, uint64_t key, uint64_t n)
{
    const uint64_t *slot = table_get(t, nth_key(key, n));

    return slot ? (const struct message *)(uintptr_t)*slot : NULL;
}

/*
 * An entry that names no event stands for the next of the messages with that content; those that
 * were over when the log began are none of its business.
 */
static const struct message *by_digest(struct pairing *p, const struct log_entry *e, int64_t t)
{
    bool sha = e->digest == LOG_DIGEST_SHA256;
    const struct table *from = sha ? &p->wire.sha : &p->wire.content;
    const struct message *next;

    if (e->digest == LOG_DIGEST_NONE)
        return NULL;
    uint64_t key = sha ? sha_key(e->sha256) : e->xxh3;
    const struct message *m = nth_equal(from, key, 0);
    if (!m || (e->event_id.ptr && e->event_id.len > 0))
        return m;
    uint64_t *n = table_put(&p->used, hash_mix(key, e->state));
    const struct message *nth = nth_equal(from, key, *n);
    while (nth && nth->at.time < p->s->log_first && (next = nth_equal(from, key, *n + 1)) &&
           next->at.time <= t) {
        nth = next;
        (*n)++;
    }
    if (!nth)
        return m; /* more often than it came */
    (*n)++;
    return nth;
}

static struct track *track_at(struct session *s, uint32_t event, struct message *msg)
{
    struct event *e = event_at(s, event);
    uint32_t *slot = msg ? &msg->track : &e->track;

    if (*slot == NONE) {
        *slot = s->track_count;
        GROW(s->track, s->track_count, s->track_cap);
        struct track *t = &s->track[s->track_count++];
        *t = (struct track){ .event = event, .msg = msg };
        for (unsigned i = 0; i < ARRAY_LEN(t->state); i++)
            t->state[i].first = t->state[i].last = NONE;
    }
    if (e)
        e->track = *slot;
    return &s->track[*slot];
}

/* The messages of events and bodies belong to the session; the model may write to its own. */
static struct message *own(const struct message *msg)
{
    union {
        const struct message *in;
        struct message *out;
    } u = { .in = msg };

    return u.out;
}

static struct track *track_of_event(struct pairing *p, const struct log_entry *e, int64_t t)
{
    struct session *s = p->s;
    uint32_t at =
        s->ids_reused && t ? event_by_id_before(s, e->event_id, t) : event_by_id(s, e->event_id);
    struct event *ev = event_at(s, at);

    if (!ev)
        return NULL;
    for (uint32_t i = 0; i < ev->msg_count; i++) {
        if (ev->msg_count == 1 || rpc_id_eq(&ev->msg[i].id, &e->request))
            return track_at(s, at, &ev->msg[i]);
    }
    return track_at(s, at, NULL);
}

static struct track *track_of_message(struct session *s, const struct message *msg)
{
    return msg ? track_at(s, msg->event, own(msg)) : NULL;
}

/* The next notification of that method (and request) which no entry of this state has taken yet. */
static const struct message *next_notification(struct pairing *p, const struct log_entry *e)
{
    uint64_t request = e->request.type > RPC_ID_NULL ? e->request.hash : 0;
    uint64_t key = notification_key(e->method, request);
    uint64_t *at = table_put(&p->used, hash_mix(key, (uint64_t)e->state + 1));

    if (*at == UINT64_MAX)
        return NULL;
    if (*at == 0) {
        const uint64_t *first = table_get(&p->first, key);
        *at = first ? *first : UINT64_MAX;
    } else {
        uint32_t next = p->node[*at - 1].next;
        *at = next ? next : UINT64_MAX;
    }
    return *at == UINT64_MAX ? NULL : p->node[*at - 1].msg;
}

/* The response (or the server's request) with that id and method; of several the first not yet
 * named. */
static const struct message *by_id(const struct session *s, const struct log_entry *e,
                                   bool from_server)
{
    const struct message *found = NULL;
    const struct message *unnamed = NULL;
    unsigned tries = 64;

    for (const struct request *r = request_newest(s, &e->request, from_server); r && tries-- > 0;
         r = r->next_same_id == NONE ? NULL : s->request[r->next_same_id]) {
        const struct message *m = from_server ? r->msg : r->response;
        if (!m || (e->method.len > 0 && !slice_eq(e->method, r->msg->method)))
            continue;
        found = found ? found : m;
        if (m->track == NONE)
            unnamed = m;
    }
    return unnamed ? unnamed : found;
}

static const struct message *by_request(struct pairing *p, const struct log_entry *e)
{
    const struct message *m;

    if (slice_starts(e->method, SLICE_LIT("notifications/")))
        return next_notification(p, e);
    if (e->request.type <= RPC_ID_NULL)
        return NULL;
    m = by_id(p->s, e, false);
    return m ? m : by_id(p->s, e, true);
}

static void track_add(struct session *s, struct track *t, uint32_t i)
{
    uint32_t entry = s->log_entry[i];
    const struct log_entry *e = &s->model->log->entry[entry];
    int64_t time = s->log_time[i];
    size_t cap = t->cap;

    if (t->count == cap) {
        t->entry = mem_double(t->entry, &t->cap, sizeof(*t->entry));
        t->time = mem_grow(t->time, t->cap * sizeof(*t->time));
    }
    t->entry[t->count] = entry;
    t->time[t->count++] = time;
    if (t->state[e->state].first == NONE) {
        t->state[e->state].first = entry;
        t->state[e->state].first_time = time;
    }
    t->state[e->state].last = entry;
    t->state[e->state].last_time = time;
    t->state[e->state].count++;
}

static struct track *track_find(struct pairing *p, const struct log_entry *e, int64_t t)
{
    struct track *track = NULL;

    if (e->event_id.ptr && e->event_id.len > 0) {
        track = track_of_event(p, e, t);
        if (track)
            return track;
    }
    const struct message *m = by_digest(p, e, t);
    if (!m && !(e->event_id.ptr && e->event_id.len > 0))
        m = by_request(p, e);
    return track_of_message(p->s, m);
}

/* Entries that name a message or event of the server's. */
static bool names_something(const struct log_entry *e)
{
    if (e->synthetic || e->state == LOG_SENT || e->state == LOG_RECONNECT)
        return false;
    return (e->event_id.ptr && e->event_id.len > 0) || e->digest != LOG_DIGEST_NONE ||
           e->request.type > RPC_ID_NULL;
}

static void tracks_build(struct session *s)
{
    const struct dispatch_log *log = s->model->log;
    struct pairing p;

    pairing_open(&p, s);
    s->unmatched = mem_alloc((s->log_entry_count + 1) * sizeof(*s->unmatched));
    s->unmatched_time = mem_alloc((s->log_entry_count + 1) * sizeof(*s->unmatched_time));
    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = &log->entry[s->log_entry[i]];
        if (e->synthetic || e->state == LOG_SENT || e->state == LOG_RECONNECT)
            continue;
        struct track *t = track_find(&p, e, s->log_time[i]);
        if (t) {
            track_add(s, t, i);
        } else if (names_something(e)) {
            s->unmatched_time[s->unmatched_count] = s->log_time[i];
            s->unmatched[s->unmatched_count++] = s->log_entry[i];
        }
    }
    pairing_close(&p);
}

bool track_handled(const struct track *k)
{
    return k->state[LOG_PROCESSED].first != NONE || k->state[LOG_COMMITTED].first != NONE ||
           k->state[LOG_DROPPED].first != NONE || k->state[LOG_FAILED].first != NONE;
}

static void handled_count(struct session *s)
{
    for (uint32_t i = 0; i < s->track_count; i++) {
        const struct track *k = &s->track[i];
        if (!k->msg || !track_handled(k))
            continue;
        s->log_handled[k->msg->kind]++;
        s->log_handles_notifications |= k->msg->kind == RPC_NOTIFICATION;
        bool answer = rpc_is_response(k->msg->kind);
        if (answer && k->msg->request != NONE)
            s->request[k->msg->request]->dispatched = true;
    }
}

/* Answers that the client made up: each belongs to the requests with its id that were open then. */
static void synthetic_find(struct session *s)
{
    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = &s->model->log->entry[s->log_entry[i]];
        unsigned tries = 64;
        if (!e->synthetic || e->request.type <= RPC_ID_NULL)
            continue;
        for (struct request *r = request_newest(s, &e->request, false); r && tries-- > 0;
             r = r->next_same_id == NONE ? NULL : s->request[r->next_same_id]) {
            if (r->synthetic == NONE && s->log_time[i] >= r->at.time)
                r->synthetic = s->log_entry[i];
        }
    }
}

/* ---- the log's clock ---- */

#define WINDOWS ((size_t)16)
struct pair {
    int64_t wire;
    int64_t delta; /* log minus wire */
    uint32_t entry;
};

static const struct message *pair_message(struct pairing *p, const struct log_entry *e,
                                          int64_t *ret_time)
{
    const struct event *ev;
    const struct message *m;

    if (e->event_id.ptr && e->event_id.len > 0) {
        ev = event_at(p->s, event_by_id(p->s, e->event_id));
        if (!ev || ev->next_same_id != NONE || ev->no_time)
            return NULL;
        *ret_time = ev->at.time;
        return ev->msg_count ? &ev->msg[0] : NULL;
    }
    m = by_digest(p, e, 0);
    if (!m && !slice_starts(e->method, SLICE_LIT("notifications/")))
        m = by_request(p, e);
    const struct event *of = m && m->event != NONE ? event_at(p->s, m->event) : NULL;
    if (m && !(of && of->no_time))
        *ret_time = m->at.time;
    return m;
}

/* One pair a message: the first that the log says of it is nearest to its arrival. */
static size_t pairs_of(struct session *s, uint32_t file, struct pair *out, size_t max)
{
    const struct dispatch_log *log = s->model->log;
    struct pairing p;
    struct table seen = { 0 };
    size_t n = 0;

    pairing_open(&p, s);
    for (uint32_t i = 0; i < s->log_entry_count && n < max; i++) {
        const struct log_entry *e = &log->entry[s->log_entry[i]];
        int64_t wire = 0;
        if (e->file != file || !e->has_time || e->synthetic ||
            (e->state != LOG_RECEIVED && e->state != LOG_PROCESSED))
            continue;
        pair_message(&p, e, &wire);
        uint64_t *slot = wire ? table_put(&seen, (uint64_t)wire) : NULL;
        if (!slot || *slot)
            continue;
        *slot = 1;
        out[n++] = (struct pair){ wire, e->time - wire, s->log_entry[i] };
    }
    pairing_close(&p);
    table_release(&seen);
    return n;
}

static int by_wire(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;

    return (x->wire > y->wire) - (x->wire < y->wire);
}

/*
 * A client can read late, never early: the offset is the smallest difference. For the drift the
 * smallest of each window is taken and a line laid through them.
 */
static void skew_fit(struct clock_skew *k, struct pair *p, size_t n)
{
    size_t windows = n / 3 < WINDOWS ? n / 3 : WINDOWS;
    double sx = 0;
    double sy = 0;
    double sxx = 0;
    double sxy = 0;

    qsort(p, n, sizeof(*p), by_wire);
    k->known = true;
    k->since = p[0].wire;
    k->pairs = (uint32_t)n;
    k->offset = INT64_MAX;
    k->entry_first = p[0].entry;
    k->entry_last = p[n - 1].entry;
    for (size_t i = 0; i < n; i++)
        k->offset = p[i].delta < k->offset ? p[i].delta : k->offset;
    if (windows < 3)
        return;
    int64_t base = k->offset;
    for (size_t w = 0; w < windows; w++) {
        const struct pair *best = &p[w * n / windows];
        for (size_t i = w * n / windows; i < (w + 1) * n / windows; i++)
            best = p[i].delta < best->delta ? &p[i] : best;
        double x = (double)(best->wire - k->since);
        double y = (double)(best->delta - base);
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    double nw = (double)windows;
    double det = nw * sxx - sx * sx;
    if (det <= 0)
        return;
    double slope = (nw * sxy - sx * sy) / det;
    double span = (double)(p[n - 1].wire - p[0].wire);
    if (slope * span > -10e6 && slope * span < 10e6)
        return; /* under 10 ms over the whole log: the scatter of reading */
    if (slope > 1e-2 || slope < -1e-2)
        return; /* no clock drifts by a hundredth: the reading was late */
    k->drift = slope;
    k->offset = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t d = p[i].delta - (int64_t)(slope * (double)(p[i].wire - k->since));
        k->offset = d < k->offset ? d : k->offset;
    }
}

#define PAIRS_MAX 65536
static void skews_estimate(struct model *m)
{
    struct pair *p = mem_alloc(PAIRS_MAX * sizeof(*p));

    m->skew_count = (uint32_t)m->log->file_count;
    m->skew = mem_alloc((m->skew_count + 1) * sizeof(*m->skew));
    for (uint32_t f = 0; f < m->skew_count; f++) {
        size_t n = 0;
        m->skew[f].file = f;
        for (uint32_t i = 0; i < m->session_count; i++) {
            if (m->session[i]->has_log)
                n += pairs_of(m->session[i], f, p + n, PAIRS_MAX - n);
        }
        if (n > 0)
            skew_fit(&m->skew[f], p, n);
    }
    free(p);
}

static int64_t to_capture_clock(const struct clock_skew *k, int64_t t)
{
    if (!k->known)
        return t;
    int64_t flat = t - k->offset;
    return flat - (int64_t)(k->drift * (double)(flat - k->since));
}

/* ---- times of entries ---- */

/*
 * A log without times: the order of its lines counts. A line happened when the last thing that it,
 * or one before it, speaks of had arrived. An id seen again is the redelivery of that event.
 */
static int64_t arrival(struct session *s, const struct log_entry *e, int64_t now)
{
    uint32_t at = e->event_id.ptr ? event_by_id(s, e->event_id) : NONE;
    struct event *ev = event_at(s, at);

    if (!ev)
        return 0;
    if (e->state != LOG_RECEIVED || ev->at.time >= now)
        return ev->at.time;
    /* A redelivery follows its break soon; the search for it has an end. */
    for (uint32_t i = at + 1; i < s->event_count && i - at < 4096; i++) {
        const struct event *again = event_at(s, i);
        if (again && again->first == at && again->at.time > now)
            return again->at.time;
    }
    return ev->at.time;
}

static int64_t reply_arrival(struct session *s, const struct log_entry *e)
{
    const struct message *m = by_id(s, e, false);

    return m ? m->at.time : 0;
}

static void times_from_order(struct session *s)
{
    const struct dispatch_log *log = s->model->log;
    int64_t now = s->first.time;

    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = &log->entry[s->log_entry[i]];
        int64_t t = arrival(s, e, now);
        if (t == 0 && e->request.type > RPC_ID_NULL && e->state != LOG_SENT)
            t = reply_arrival(s, e);
        now = t > now ? t : now + 1;
        s->log_time[i] = now;
    }
}

/* A map is the state at the end, taken as the state at the last reconnect. */
static void times_of_map(struct session *s)
{
    int64_t t = s->model->end.time;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (s->exch[i]->method == HTTP_METHOD_GET && s->exch[i]->cursor.len > 0)
            t = s->exch[i]->first.time - 1;
    }
    for (uint32_t i = 0; i < s->log_entry_count; i++)
        s->log_time[i] = t;
}

static void times_set(struct session *s)
{
    const struct model *m = s->model;

    if (s->log_from_map) {
        times_of_map(s);
        return;
    }
    if (!s->log_has_times) {
        times_from_order(s);
        return;
    }
    int64_t last = 0;
    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        const struct log_entry *e = &m->log->entry[s->log_entry[i]];
        if (e->has_time)
            last = to_capture_clock(&m->skew[e->file], e->time);
        s->log_time[i] = last;
    }
}

struct timed {
    int64_t time;
    uint32_t entry;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a;
    const struct timed *y = b;

    if (x->time != y->time)
        return (x->time > y->time) - (x->time < y->time);
    return (x->entry > y->entry) - (x->entry < y->entry);
}

static void entries_sort(struct session *s)
{
    struct timed *t = mem_alloc((s->log_entry_count + 1) * sizeof(*t));

    for (uint32_t i = 0; i < s->log_entry_count; i++)
        t[i] = (struct timed){ s->log_time[i], s->log_entry[i] };
    qsort(t, s->log_entry_count, sizeof(*t), by_time);
    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        s->log_time[i] = t[i].time;
        s->log_entry[i] = t[i].entry;
    }
    free(t);
    s->log_first = s->log_entry_count ? s->log_time[0] : 0;
    s->log_last = s->log_entry_count ? s->log_time[s->log_entry_count - 1] : 0;
}

/* ---- what it shows ---- */

static bool same_txn(const struct session *s, const struct track *t)
{
    const struct dispatch_log *log = s->model->log;

    for (uint32_t i = 0; i < t->count; i++) {
        const struct log_entry *a = &log->entry[t->entry[i]];
        for (uint32_t j = 0; a->state == LOG_CURSOR && a->txn.ptr && j < t->count; j++) {
            const struct log_entry *b = &log->entry[t->entry[j]];
            if (b->state == LOG_COMMITTED && b->txn.ptr && slice_eq(a->txn, b->txn))
                return true;
        }
    }
    return false;
}

static uint32_t line_position(const struct session *s, uint32_t entry)
{
    for (uint32_t i = 0; i < s->log_entry_count; i++) {
        if (s->log_entry[i] == entry)
            return i;
    }
    return NONE;
}

/* Where in the session's order of entries a state stands first. */
static bool stands_before(const struct session *s, const struct track *t, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->entry[i] == a)
            return true;
        if (t->entry[i] == b)
            return false;
    }
    return line_position(s, a) < line_position(s, b);
}

static void policy_of_track(struct session *s, const struct track *t)
{
    uint32_t cursor = t->state[LOG_CURSOR].first;
    uint32_t done = t->state[LOG_PROCESSED].first;

    if (!t->msg)
        return;
    if (done == NONE)
        done = t->state[LOG_COMMITTED].first;
    if (same_txn(s, t) || (s->log_atomic && t->state[LOG_COMMITTED].first != NONE)) {
        s->policy_atomic++;
    } else if (cursor == NONE) {
        return;
    } else if (done == NONE || stands_before(s, t, cursor, done)) {
        s->policy_before++;
    } else {
        s->policy_after++;
    }
    if (s->policy_example == NONE)
        s->policy_example = cursor != NONE ? cursor : t->state[LOG_COMMITTED].first;
}

static void policy_find(struct session *s)
{
    for (uint32_t i = 0; i < s->track_count; i++)
        policy_of_track(s, &s->track[i]);
    int kinds = (s->policy_before > 0) + (s->policy_after > 0) + (s->policy_atomic > 0);
    if (kinds == 0)
        return;
    if (kinds > 1)
        s->policy = POLICY_MIXED;
    else if (s->policy_before)
        s->policy = POLICY_BEFORE;
    else
        s->policy = s->policy_after ? POLICY_AFTER : POLICY_ATOMIC;
}

/* Was this event's id, or a later one's of its stream, stored as the cursor by then? */
static bool stored_by(const struct session *s, const struct track *t, int64_t time)
{
    if (t->state[LOG_CURSOR].first != NONE && t->state[LOG_CURSOR].first_time <= time)
        return true;
    return s->log_atomic && t->state[LOG_COMMITTED].first != NONE &&
           t->state[LOG_COMMITTED].first_time <= time;
}

enum head_state track_state_at(const struct session *s, uint32_t track, int64_t t)
{
    if (!s->has_log)
        return HEAD_NO_LOG;
    if (track == NONE)
        return HEAD_UNPROCESSED;
    const struct track *k = &s->track[track];
    if (k->state[LOG_COMMITTED].first != NONE && k->state[LOG_COMMITTED].first_time <= t)
        return HEAD_COMMITTED;
    if (k->state[LOG_PROCESSED].first != NONE && k->state[LOG_PROCESSED].first_time <= t)
        return !s->log_commits && stored_by(s, k, t) ? HEAD_COMMITTED : HEAD_PROCESSED;
    if (k->state[LOG_RECEIVED].first != NONE && k->state[LOG_RECEIVED].first_time <= t)
        return HEAD_RECEIVED;
    return HEAD_UNPROCESSED;
}

static bool listed(const struct slice *names, size_t n, const char *tool)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(names[i], slice_str(tool)))
            return true;
    }
    return false;
}

static const char *idempotent_by(const struct session *s, const char *tool)
{
    const struct model *m = s->model;

    for (size_t i = 0; tool && i < m->opt.idempotent_count; i++) {
        if (strcmp(m->opt.idempotent[i], tool) == 0)
            return "command line";
    }
    if (s->log_idempotent_all)
        return "log header";
    for (size_t i = 0; tool && m->log && i < m->log->file_count; i++) {
        if (listed(m->log->file[i].idempotent, m->log->file[i].idempotent_count, tool))
            return "log header";
    }
    for (uint32_t i = 0; tool && i < s->tool_count; i++) {
        if (!slice_eq(s->tool[i].name, slice_str(tool)))
            continue;
        if (s->tool[i].idempotent)
            return "idempotentHint";
        return s->tool[i].read_only ? "readOnlyHint" : NULL;
    }
    return NULL;
}

static void idempotency_of_requests(struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        struct request *r = s->request[i];
        if (r->from_server)
            continue;
        r->idempotent_by = idempotent_by(s, r->tool);
        r->idempotent = r->idempotent_by != NULL;
    }
}

void log_pair(struct model *m)
{
    if (m->log && m->log->count > 0) {
        entries_to_sessions(m);
        for (uint32_t i = 0; i < m->session_count; i++)
            session_log_facts(m->session[i]);
        skews_estimate(m);
    }
    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *s = m->session[i];
        if (s->has_log) {
            times_set(s);
            entries_sort(s);
            tracks_build(s);
            handled_count(s);
            synthetic_find(s);
            policy_find(s);
        }
        idempotency_of_requests(s);
    }
}
