/*
 * twins.c - the same exchange seen more than once: by two taps, on both hops of a proxy, in a HAR
 * beside a capture. The first view owns the exchange in its session; the others are its twins,
 * which add what only they show. A HAR that was first gives way to packets: they tell more.
 */
#include "model_impl.h"

#define TWIN_WINDOW (2 * NS_PER_SEC) /* copies of one exchange begin this close together */
#define TWIN_TRIES  256 /* events of the owner's leg that one of a twin is sought among */

static uint64_t fingerprint(const struct exch *x)
{
    uint64_t h = hash_mix(hash_bytes(x->authority), hash_bytes(x->session_id));

    h = hash_mix(h, (uint64_t)x->method);
    h = hash_mix(h, hash_bytes(x->cursor));
    h = hash_mix(h, hash_bytes(x->target));
    for (uint32_t i = 0; i < x->msg_count; i++)
        h = hash_mix(h, x->msg[i].digest);
    return h | 1;
}

static bool is_har(const struct exch *x)
{
    return x->flags & RECF_HAR;
}

static bool same_host(const struct endpoint *a, const struct endpoint *b)
{
    return memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

static bool other_tap(const struct exch *a, const struct exch *b)
{
    return is_har(a) != is_har(b) || !same_host(&a->client, &b->client) ||
           !endpoint_eq(&a->server, &b->server);
}

/* A proxy is the server of one and the client of the other. */
static bool are_hops(const struct exch *a, const struct exch *b)
{
    return same_host(&a->server, &b->client) || same_host(&b->server, &a->client);
}

/* A session id is of one client. Without it two clients may well say the same at the same time:
 * then the addresses must tell that it is one, or (initialize) the answer. */
static bool is_one_client(const struct exch *a, const struct exch *b)
{
    if (a->session_id.len > 0 || (a->initialize && a->msg_count > 0))
        return true;
    return is_har(a) != is_har(b) ? endpoint_eq(&a->server, &b->server) : are_hops(a, b);
}

static bool are_near(const struct exch *a, const struct exch *b)
{
    int64_t apart = b->first.time - a->first.time;
    bool answered = b->initialize && a->response.time && a->response.time < b->first.time;

    return apart < TWIN_WINDOW && apart > -TWIN_WINDOW && !answered;
}

/* A HAR shows an exchange once. */
static bool has_har(const struct exch *x)
{
    return is_har(x) || (x->twin && is_har(x->twin));
}

static void exch_swap(struct model *m, struct exch *a, struct exch *b)
{
#define SWAP(member)                                                                               \
    do {                                                                                           \
        __typeof__(a->member) was = a->member;                                                     \
        a->member = b->member;                                                                     \
        b->member = was;                                                                           \
    } while (0)
    SWAP(serial);
    SWAP(client);
    SWAP(server);
    SWAP(tcp_stream);
    SWAP(conn);
    SWAP(flags);
    SWAP(first);
    SWAP(sent);
    SWAP(user_agent);
    SWAP(credentials);
    SWAP(version);
    SWAP(body_status);
    SWAP(body_whole);
    SWAP(request_gaps);
    SWAP(head_gap);
    SWAP(gap_at);
#undef SWAP
    impl_of(m)->by_serial[a->serial] = a;
    impl_of(m)->by_serial[b->serial] = b;
}

/* The HAR that owns an exchange gives it to the packets x; the session may know it already. */
static void give_way(struct model *m, struct exch *owner, struct exch *x)
{
    struct session *s = owner->session;
    const struct endpoint har = owner->client;

    exch_swap(m, owner, x);
    for (uint32_t i = 0; i < owner->msg_count; i++)
        owner->msg[i].at = owner->sent;
    if (!s)
        return;
    session_is_of(m, s, owner);
    if (s->exch[0] == owner) {
        s->first = owner->first;
        s->client = owner->client;
        s->server = owner->server;
    }
    for (uint32_t i = 0; i < s->peer_count; i++) {
        if (endpoint_eq(&s->peer[i].client, &har))
            s->peer[i] = (struct peer){ .client = owner->client,
                                        .user_agent = hash_bytes(owner->user_agent),
                                        .first = owner->first,
                                        .last = owner->first };
    }
}

void twin_find(struct model *m, struct exch *x)
{
    x->fingerprint = fingerprint(x);
    uint64_t *slot = table_put(&impl_of(m)->prints, x->fingerprint);
    struct exch *first = (struct exch *)(uintptr_t)*slot;
    if (first && other_tap(first, x) && are_near(first, x) && is_one_client(first, x) &&
        !(is_har(x) && has_har(first))) {
        if (is_har(first) && !is_har(x) && !first->response.time)
            give_way(m, first, x);
        x->twin_of = first;
        first->twin = x;
        if (first->twins++ == 0)
            first->twin_place = x->first;
        return;
    }
    *slot = (uint64_t)(uintptr_t)x;
}

/* Two clients may start alike at the same time: then their sessions differ. */
struct exch *twin_other_session(struct exch *x)
{
    struct exch *owner = x->twin_of ? x->twin_of : x;
    struct exch *twin = owner->twin;

    if (!x->initialize || !twin || !owner->response.time || !twin->response.time ||
        !owner->response_session.ptr || !twin->response_session.ptr ||
        slice_eq(owner->response_session, twin->response_session))
        return NULL;
    twin->twin_of = NULL;
    owner->twin = NULL;
    owner->twins--;
    return twin;
}

/* Is part of the owner's response not in the evidence? */
static bool lacks(const struct exch *owner)
{
    return owner->response_gaps > 0 || owner->head_gap || owner->undecodable ||
           (owner->rflags & (RECF_HEAD_LOST | RECF_UNDECODABLE | RECF_NO_BODY_RECORDED));
}

/* ---- events ---- */

static bool same_event(const struct event *e, const struct rec_event *r)
{
    if (e->has_id != r->has_id || !slice_eq(e->id, r->id))
        return false;
    if (e->msg_count == 0 || r->body.count == 0 || e->stripped || r->id_only_known)
        return e->data_len == r->data.len || e->stripped || r->id_only_known;
    return e->msg[0].digest == r->body.msg[0].digest;
}

/* The owner's view shows what a twin showed before: its places count, and its acknowledgement. */
static void event_own(struct session *s, struct exch *owner, struct event *e,
                      const struct record *rec)
{
    struct leg *l = s->leg[owner->leg];

    e->shown_by = NULL;
    e->begin = rec->event.first;
    e->at = rec->at;
    e->tcp_end = rec->event.tcp_end;
    e->no_time = rec->event.no_time;
    e->acked = (struct place){ 0 };
    for (uint32_t i = 0; i < e->msg_count; i++) {
        e->msg[i].at = rec->at;
        e->msg[i].acked = (struct place){ 0 };
    }
    if (l->unacked == NONE || l->unacked > e->index)
        l->unacked = e->index;
    if (owner->acked_to >= e->tcp_end && owner->acked_to > 0)
        leg_ack(s, owner, owner->acked_to, owner->acked);
}

void twin_event(struct model *m, struct exch *x, const struct record *rec)
{
    struct exch *owner = x->twin_of ? x->twin_of : x;
    struct session *s = owner->session;

    if (!s || owner->leg == NONE)
        return;
    struct leg *l = s->leg[owner->leg];
    unsigned tries = TWIN_TRIES;
    for (struct event *e = leg_event_after(s, l, x->twin_at); e && tries-- > 0;
         e = leg_event_after(s, l, e->index)) {
        if (!same_event(e, &rec->event))
            continue;
        if (x == owner && e->shown_by)
            event_own(s, owner, e, rec);
        x->twin_at = e->index;
        return;
    }
    if (x != owner && is_har(x) && !lacks(owner))
        return; /* a HAR's reading of the events does not contradict the bytes */
    leg_event(s, owner, rec, x == owner ? NULL : x);
    x->twin_at = l->last_event;
    if (x != owner && is_har(x))
        event_acked(l, event_at(s, x->twin_at), rec->at); /* as good as it gets: recorded */
    else if (x != owner && x->twin_unacked == NONE)
        x->twin_unacked = x->twin_at;
    ledger_trim(m);
}

/* Acknowledged on the twin's connection: that is the client's word only where the owner's view has
 * a hole. (What a server sent to a proxy may have got no further.) */
static void leg_twin_ack(struct exch *owner, struct exch *x, uint64_t offset, struct place at)
{
    const struct session *s = owner->session;
    struct leg *l = s->leg[owner->leg];
    struct event *e = event_at(s, x->twin_unacked);

    for (; e && (e->shown_by != x || e->tcp_end <= offset); e = event_at(s, e->next_in_leg)) {
        if (e->shown_by == x && !e->acked.time && lacks(owner))
            event_acked(l, e, at);
    }
    x->twin_unacked = e ? e->index : NONE;
}

void twin_ack(struct exch *x, uint64_t offset, struct place at)
{
    struct exch *owner = x->twin_of;

    if (offset > x->acked_to)
        x->acked_to = offset;
    if (!x->acked.time && x->reply_present && x->acked_to >= x->body_end)
        x->acked = at;
    if (owner->session && owner->leg != NONE && x->twin_unacked != NONE)
        leg_twin_ack(owner, x, offset, at);
}

/* ---- what the owner lacks ---- */

static void adopt_head(struct exch *owner, const struct exch *x)
{
    owner->response = x->response;
    owner->status = x->status;
    owner->rflags = x->rflags & ~(unsigned)RECF_HAR;
    owner->content_type = x->content_type;
    owner->coding = x->coding;
    owner->server_name = x->server_name;
    owner->response_session = x->response_session;
    owner->retry_after = x->retry_after;
    owner->content_length = x->content_length;
}

/* True: the owner has a body now, whose messages are to be told. */
bool twin_complete(struct model *m, struct exch *owner)
{
    const struct exch *x = owner->twin;

    if (!x || !x->reply_present || owner->reply_present || owner->leg != NONE || !lacks(owner))
        return false;
    if (owner->status == 0)
        adopt_head(owner, x);
    owner->reply_status = x->reply_status;
    owner->reply_present = x->reply_present;
    owner->reply_whole = x->reply_whole;
    owner->reply_bytes = x->reply_bytes;
    owner->reply_batch = x->reply_batch;
    owner->error_text = x->error_text;
    owner->error_code = x->error_code;
    owner->acked = is_har(x) ? x->last : x->acked;
    owner->reply_count = x->reply_count;
    owner->reply = arena_alloc(m->arena, (x->reply_count + 1) * sizeof(*owner->reply));
    if (x->reply_count > 0)
        memcpy(owner->reply, x->reply, x->reply_count * sizeof(*owner->reply));
    return true;
}

bool twin_note_idle(const struct exch *x, enum note_kind kind)
{
    static const enum note_kind kinds[] = { NOTE_HIDDEN_EVENTS,  NOTE_BODY_NOT_RECORDED,
                                            NOTE_UNKNOWN_CODING, NOTE_CODING_BROKEN,
                                            NOTE_TLS_LOST,       NOTE_HAR };

    for (size_t i = 0; x->twin_of && i < ARRAY_LEN(kinds); i++) {
        if (kind == kinds[i])
            return !lacks(x->twin_of);
    }
    return false;
}
