/* messages.c - JSON-RPC correlation: (session, direction, stream or exchange, type of the id, id).
 */
#include "model_impl.h"

static struct rpc_id id_copy(struct model *m, struct rpc_id id)
{
    id.text = intern(m, id.text);
    return id;
}

/* A number of up to 9 digits at i; returns where it ends, i when there is none. */
static size_t number_end(struct slice s, size_t i, uint32_t *ret)
{
    uint32_t v = 0;
    size_t n = i;

    while (n < s.len && n - i < 9 && byte_is_digit(s.ptr[n]))
        v = v * 10 + (uint32_t)(s.ptr[n++] - '0');
    *ret = v;
    return n;
}

/* The first "X of N" or "X/N" in a log message: a counter that tells what is missing. */
#define COUNTER_LOOK 1024
static void message_counter(struct message *d, struct slice body)
{
    uint32_t x;
    uint32_t n;

    body.len = body.len < COUNTER_LOOK ? body.len : COUNTER_LOOK;
    for (size_t i = 0; i < body.len; i++) {
        size_t end = number_end(body, i, &x);
        struct slice rest = { body.ptr + end, body.len - end };
        if (end == i)
            continue;
        i = end;
        size_t skip =
            slice_starts(rest, SLICE_LIT(" of ")) ? 4 : slice_starts(rest, SLICE_LIT("/"));
        if (skip == 0 || number_end(body, end + skip, &n) == end + skip || x == 0 || x > n)
            continue;
        d->counter = x;
        d->counter_total = n;
        return;
    }
}

static void message_fill(struct model *m, struct message *d, const struct rpc *r, struct place at)
{
    *d = (struct message){
        .kind = r->kind,
        .flags = r->flags,
        .event = NONE,
        .request = NONE,
        .track = NONE,
        .at = at,
        .id = id_copy(m, r->id),
        .method = intern(m, r->method),
        .token = id_copy(m, r->token),
        .cancelled = id_copy(m, r->cancelled),
        .subscription = id_copy(m, r->subscription),
        .progress = r->progress,
        .error_code = r->error_code,
        .result_type = intern(m, r->result_type),
        .version = intern(m, r->protocol_version),
        .request_state = r->request_state.ptr ? hash_bytes(r->request_state) | 1 : 0,
        .digest = r->digest,
        .body_digest = r->body_digest,
    };
    if (r->kind == RPC_REQUEST)
        d->name = intern(m, r->name);
    else if (r->kind == RPC_NOTIFICATION && slice_eq(r->method, SLICE_LIT("notifications/message")))
        message_counter(d, r->body);
}

void messages_fill(struct model *m, struct message *d, const struct rec_body *body, struct place at)
{
    for (size_t i = 0; i < body->count; i++) {
        message_fill(m, &d[i], &body->msg[i], at);
        d[i].xxh3 = body->xxh3;
        if (!body->sha256)
            continue;
        struct slice copy = arena_copy(m->arena, (struct slice){ body->sha256, 32 });
        d[i].sha256 = copy.ptr;
    }
}

struct message *messages_copy(struct model *m, const struct rec_body *body, struct place at)
{
    if (body->count == 0)
        return NULL;
    struct message *d = arena_alloc(m->arena, body->count * sizeof(*d));
    messages_fill(m, d, body, at);
    return d;
}

static uint64_t side_key(uint64_t hash, bool from_server)
{
    return hash_mix(hash, from_server ? 2 : 3);
}

struct request *request_newest(const struct session *s, const struct rpc_id *id, bool from_server)
{
    const uint64_t *slot;

    if (id->type == RPC_ID_NONE || id->type == RPC_ID_NULL)
        return NULL;
    slot = table_get(s->requests_by_id, side_key(id->hash, from_server));
    if (!slot || *slot == 0)
        return NULL;
    struct request *r = s->request[*slot - 1];
    return rpc_id_eq(&r->msg->id, id) ? r : NULL;
}

static struct request *older(const struct session *s, const struct request *r)
{
    return r->next_same_id == NONE ? NULL : s->request[r->next_same_id];
}

/* A request with that id which is not answered yet counts before those that are. */
static struct request *request_open_by_id(const struct session *s, const struct rpc_id *id,
                                          bool from_server)
{
    struct request *newest = request_newest(s, id, from_server);
    unsigned tries = 64;

    for (struct request *r = newest; r && tries-- > 0; r = older(s, r)) {
        if (!r->response && !r->http_error)
            return r;
    }
    return newest;
}

static struct request *request_add(struct session *s, struct exch *x, struct message *msg,
                                   bool from_server)
{
    struct request *r = arena_alloc(s->model->arena, sizeof(*r));
    struct request *same = request_newest(s, &msg->id, from_server);

    r->index = s->request_count;
    r->msg = msg;
    r->from_server = from_server;
    r->exch = x->index;
    r->stream = NONE;
    r->leg = NONE;
    r->at = from_server ? msg->at : x->first;
    r->earlier = NONE;
    r->next_same_id = NONE;
    r->progress_leg = NONE;
    r->synthetic = NONE;
    if (same) {
        r->earlier = r->next_same_id = same->index;
        r->earlier_in_flight = !same->response && !same->http_error && !same->cancelled.time;
    }
    if (!from_server && slice_eq(msg->method, SLICE_LIT("tools/call")))
        r->tool = (const char *)msg->name.ptr;
    GROW(s->request, s->request_count, s->request_cap);
    s->request[s->request_count++] = r;
    if (msg->id.type != RPC_ID_NONE)
        *table_put(s->requests_by_id, side_key(msg->id.hash, from_server)) = (uint64_t)r->index + 1;
    if (msg->token.type != RPC_ID_NONE)
        *table_put(s->requests_by_token, side_key(msg->token.hash, from_server)) =
            (uint64_t)r->index + 1;
    msg->request = r->index;
    return r;
}

static struct request *request_by_token(const struct session *s, const struct rpc_id *token,
                                        bool from_server)
{
    const uint64_t *slot = table_get(s->requests_by_token, side_key(token->hash, from_server));

    return slot && *slot ? s->request[*slot - 1] : NULL;
}

static void answer(struct request *r, struct message *msg)
{
    msg->request = r->index;
    r->response_count++;
    if (!r->response) {
        r->response = msg;
        return;
    }
    if (!r->duplicate)
        r->duplicate = msg;
    if (!r->conflict && msg->body_digest != r->response->body_digest)
        r->conflict = msg;
}

static void cancel(struct session *s, struct message *msg, bool from_server)
{
    struct request *r = request_newest(s, &msg->cancelled, from_server);

    if (!r)
        return;
    msg->request = r->index;
    if (!r->cancelled.time)
        r->cancelled = msg->at;
}

void message_from_client(struct session *s, struct exch *x, struct message *msg)
{
    struct request *r;

    msg->from_client = true;
    msg->exch = x->index;
    switch (msg->kind) {
    case RPC_REQUEST:
        request_add(s, x, msg, false);
        s->client_requests++;
        break;
    case RPC_RESULT:
    case RPC_ERROR:
        r = request_open_by_id(s, &msg->id, true);
        if (r)
            answer(r, msg);
        break;
    case RPC_NOTIFICATION:
        if (slice_eq(msg->method, SLICE_LIT("notifications/cancelled")))
            cancel(s, msg, false);
        else if (slice_eq(msg->method, SLICE_LIT("notifications/initialized")) &&
                 s->initialized == NONE)
            s->initialized = x->index;
        break;
    case RPC_OTHER: break;
    }
}

/* The request that a response answers: one of its own POST or stream before any other. */
static struct request *request_answered(const struct session *s, const struct exch *x,
                                        const struct leg *leg, const struct rpc_id *id)
{
    uint32_t own = leg ? s->stream[leg->stream]->exch : x->index;
    unsigned tries = 64;

    for (struct request *r = request_newest(s, id, false); r && tries-- > 0; r = older(s, r)) {
        if (r->exch == own)
            return r;
    }
    return request_open_by_id(s, id, false);
}

/* One stream's progress is mostly that of one request. */
static struct request *request_in_progress(const struct session *s, struct leg *leg,
                                           const struct rpc_id *token)
{
    if (!leg)
        return request_by_token(s, token, false);
    if (leg->token_requests != s->request_count || leg->token_hash != token->hash) {
        leg->token_request = request_by_token(s, token, false);
        leg->token_hash = token->hash;
        leg->token_requests = s->request_count;
    }
    return leg->token_request;
}

static void progress_from_server(struct session *s, struct leg *leg, struct message *msg)
{
    struct request *r = request_in_progress(s, leg, &msg->token);

    if (!r)
        return;
    msg->request = r->index;
    if (!(msg->flags & RPC_HAS_PROGRESS))
        return;
    if (r->progress_count > 0) {
        double step = msg->progress - r->last_progress;
        msg->has_previous = true;
        msg->previous_progress = r->last_progress;
        msg->previous_at = r->last_progress_at;
        msg->across_break = leg && r->progress_leg != leg->index;
        msg->step = r->progress_count > 2 ? r->progress_step : 0;
        if (r->progress_count == 1)
            r->progress_step = step;
        else if (step != r->progress_step && !msg->across_break)
            r->progress_step = 0;
    }
    r->progress_count++;
    r->last_progress = msg->progress;
    r->last_progress_at = msg->at;
    r->progress_leg = leg ? leg->index : NONE;
}

/* The message as it first came, when the event is a redelivery. */
static const struct message *first_copy(const struct session *s, const struct event *e,
                                        const struct message *msg)
{
    /* Equal notifications under two ids may be two: renamed_settle() decides when all is known. */
    bool renamed = e->first == e->index && msg->kind != RPC_NOTIFICATION;
    uint32_t first = renamed ? e->new_id_of : e->first;
    const struct event *f = first == e->index ? NULL : event_at(s, first);
    size_t i = (size_t)(msg - e->msg);

    if (!f || i >= f->msg_count)
        return NULL;
    return f->msg[i].same_as ? f->msg[i].same_as : &f->msg[i];
}

/* A copy of what came before is no second message. */
static bool is_redelivery(const struct session *s, struct event *e, struct message *msg)
{
    msg->event = e->index;
    msg->same_as = first_copy(s, e, msg);
    if (msg->same_as)
        msg->request = msg->same_as->request;
    if (rpc_is_response(msg->kind))
        e->marks |= EV_RESPONSE | EV_PINNED;
    else if (msg->kind == RPC_REQUEST)
        e->marks |= EV_PINNED;
    return msg->same_as || e->first != e->index;
}

void message_from_server(struct session *s, struct exch *x, struct leg *leg, struct event *e,
                         struct message *msg)
{
    struct request *r;

    msg->exch = x->index;
    if (e && is_redelivery(s, e, msg))
        return;
    switch (msg->kind) {
    case RPC_REQUEST: request_add(s, x, msg, true)->leg = leg ? leg->index : NONE; break;
    case RPC_RESULT:
    case RPC_ERROR:
        r = request_answered(s, x, leg, &msg->id);
        if (r)
            answer(r, msg);
        break;
    case RPC_NOTIFICATION:
        if (msg->token.type != RPC_ID_NONE)
            progress_from_server(s, leg, msg);
        else if (slice_eq(msg->method, SLICE_LIT("notifications/cancelled")))
            cancel(s, msg, true);
        break;
    case RPC_OTHER: break;
    }
}

bool message_delivered(const struct session *s, const struct message *m)
{
    const struct exch *x = s->exch[m->exch];

    if (m->event != NONE) {
        const struct event *e = event_at(s, m->event);
        return !e || event_delivered(s, e);
    }
    return (x->rflags & RECF_HAR) || x->acked.time != 0 || x->acked_to == 0;
}

static int64_t delivered_time(const struct session *s, const struct message *m)
{
    const struct exch *x = s->exch[m->exch];

    if (m->event != NONE)
        return m->acked.time ? m->acked.time : m->at.time;
    return x->acked.time ? x->acked.time : m->at.time;
}

static void settle(struct session *s, const struct message *msg)
{
    if (msg->request == NONE || (msg->kind != RPC_RESULT && msg->kind != RPC_ERROR))
        return;
    struct request *r = s->request[msg->request];
    if (r->from_server || !message_delivered(s, msg))
        return;
    int64_t t = delivered_time(s, msg);
    if (r->answered.time == 0 || t < r->answered.time) {
        r->answered = msg->at;
        r->answered.time = t;
    }
}

void requests_settle(struct session *s)
{
    for (const struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (!(e->marks & EV_RESPONSE))
            continue;
        for (uint32_t j = 0; j < e->msg_count; j++)
            settle(s, &e->msg[j]);
    }
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        for (uint32_t j = 0; j < x->reply_count; j++)
            settle(s, &x->reply[j]);
    }
    for (uint32_t i = 0; i < s->request_count; i++) {
        struct request *r = s->request[i];
        const struct exch *x = s->exch[r->exch];
        if (!r->from_server && r->http_error && !r->answered.time)
            r->answered = x->response;
    }
}

bool request_outstanding(const struct session *s, const struct request *r, int64_t t)
{
    (void)s;
    return !r->from_server && r->at.time < t && !(r->answered.time && r->answered.time <= t) &&
           !(r->cancelled.time && r->cancelled.time < t);
}

/* Notifications that a replay brought again under new ids. */
void renamed_settle(struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++)
        s->leg[i]->renamed_last = s->leg[i]->resumed ? renamed_run(s, s->leg[i]) : NONE;
    for (struct event *e = event_next(s, 0); e; e = event_next(s, e->index + 1)) {
        if (e->new_id_of == NONE || !event_renamed(s, e))
            continue;
        const struct event *o = event_at(s, e->new_id_of);
        for (uint32_t k = 0; k < e->msg_count && k < o->msg_count; k++) {
            if (e->msg[k].same_as)
                continue;
            e->msg[k].same_as = o->msg[k].same_as ? o->msg[k].same_as : &o->msg[k];
            e->msg[k].has_previous = false;
        }
    }
}
