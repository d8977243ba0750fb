/* model.c - records into sessions; see model.h. */
#include "model_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define ERROR_TEXT_MAX 400

const struct model_options model_options_default = {
    .max_ids = 1000000,
    .max_full = (size_t)4 << 20,
};

/* ---- names ---- */

static const struct {
    enum era era;
    const char *text;
} eras[] = {
    { ERA_L, "2024-11-05" }, { ERA_A, "2025-03-26" }, { ERA_B, "2025-06-18" },
    { ERA_C, "2025-11-25" }, { ERA_D, "2026-07-28" },
};

enum era era_of(struct slice version)
{
    for (size_t i = 0; i < ARRAY_LEN(eras); i++) {
        if (slice_eq(version, slice_str(eras[i].text)))
            return eras[i].era;
    }
    return ERA_UNKNOWN;
}

const char *era_text(enum era era)
{
    for (size_t i = 0; i < ARRAY_LEN(eras); i++) {
        if (eras[i].era == era)
            return eras[i].text;
    }
    return NULL;
}

const char *id_scheme_text(enum id_scheme s)
{
    static const char *const text[] = { "none", "opaque", "dense", "sparse", "time", "not-unique" };

    return text[s];
}

const char *cursor_policy_text(enum cursor_policy p)
{
    static const char *const text[] = { "unknown", "before-dispatch", "after-dispatch", "atomic",
                                        "mixed" };

    return text[p];
}

const char *head_state_text(enum head_state s)
{
    static const char *const text[] = { "no-log", "unprocessed", "received", "processed",
                                        "committed" };

    return text[s];
}

const char *verdict_text(enum verdict v)
{
    static const char *const text[] = { "continue", "wait", "fail", "undecidable" };

    return text[v];
}

const char *client_did_text(enum client_did d)
{
    static const char *const text[] = { "unknown",  "continued",     "failed-session",
                                        "reissued", "reinitialised", "gave-up" };

    return text[d];
}

/* ---- life cycle ---- */

struct model *model_new(const struct model_options *opt, const struct dispatch_log *log)
{
    struct model *m = mem_alloc(sizeof(*m));

    m->opt = *opt;
    m->log = log;
    m->arena = arena_new();
    m->impl = mem_alloc(sizeof(struct impl));
    impl_of(m)->events.cell = EVENT_CELL;
    return m;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->session_count; i++)
        session_free(m->session[i]);
    struct impl *im = impl_of(m);
    pool_release(&im->events);
    free(im->aged);
    free(im->by_serial);
    table_release(&im->sessions);
    table_release(&im->interned);
    table_release(&im->prints);
    table_release(&im->notes);
    free(im);
    free(m->session);
    free(m->note);
    free(m->skew);
    arena_free(m->arena);
    free(m);
}

/* ---- exchanges ---- */

static struct exch *exch_of(struct model *m, uint64_t serial)
{
    struct impl *im = impl_of(m);

    if (serial >= im->serial_cap) {
        size_t cap = im->serial_cap ? im->serial_cap : 64;
        while (cap <= serial)
            cap *= 2;
        im->by_serial = mem_grow(im->by_serial, cap * sizeof(struct exch *));
        memset(im->by_serial + im->serial_cap, 0, (cap - im->serial_cap) * sizeof(struct exch *));
        im->serial_cap = cap;
    }
    struct exch *x = im->by_serial[serial];
    if (x)
        return x;
    x = arena_alloc(m->arena, sizeof(*x));
    x->serial = serial;
    x->index = NONE;
    x->leg = NONE;
    x->twin_at = x->twin_unacked = NONE;
    x->retry_after = -1;
    x->content_length = -1;
    x->end_kind = END_OPEN;
    im->by_serial[serial] = x;
    return x;
}

static bool any_initialize(const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind == RPC_REQUEST && slice_eq(x->msg[i].method, SLICE_LIT("initialize")))
            return true;
    }
    return false;
}

static void exch_fill(struct model *m, struct exch *x, const struct record *rec)
{
    const struct rec_request *r = &rec->request;

    x->has_request = true;
    m->har |= r->flags & RECF_HAR;
    m->pcap |= !(r->flags & RECF_HAR);
    x->client = r->client;
    x->server = r->server;
    x->tcp_stream = r->tcp_stream;
    x->conn = r->conn;
    x->method = r->method;
    x->flags = r->flags;
    x->method_text = intern(m, r->method_text);
    x->target = intern(m, r->target);
    x->authority = intern(m, r->authority);
    if (x->authority.len == 0) {
        char text[ENDPOINT_TEXT];
        x->authority = intern(m, slice_str(endpoint_text(&r->server, text)));
    }
    x->user_agent = intern(m, r->user_agent);
    x->session_id = intern(m, r->session);
    x->cursor = intern(m, r->cursor);
    x->version = intern(m, r->version);
    x->mcp_method = intern(m, r->mcp_method);
    x->mcp_name = intern(m, r->mcp_name);
    x->credentials = r->credentials;
    x->first = r->first;
    x->sent = rec->at;
    x->body_status = r->body.status;
    x->body_whole = r->body.whole;
    x->batch = r->body.batch;
    x->msg = messages_copy(m, &r->body, rec->at);
    x->msg_count = (uint32_t)r->body.count;
    x->initialize = any_initialize(x);
}

/* ---- feeding ---- */

static struct slice text_of(struct model *m, struct slice have, struct slice more)
{
    return have.ptr || !more.ptr ? have : intern(m, more);
}

static void session_detail(struct model *m, struct session *s, const struct rpc_detail *d)
{
    if (!d)
        return;
    s->client_name = text_of(m, s->client_name, d->client_name);
    s->client_version = text_of(m, s->client_version, d->client_version);
    s->server_name = text_of(m, s->server_name, d->server_name);
    s->server_version = text_of(m, s->server_version, d->server_version);
    for (size_t i = 0; i < d->tool_count; i++) {
        GROW(s->tool, s->tool_count, s->tool_cap);
        s->tool[s->tool_count] = d->tool[i];
        s->tool[s->tool_count++].name = intern(m, d->tool[i].name);
    }
    if (d->server_name.ptr && d->protocol_version.ptr) {
        s->revision = intern(m, d->protocol_version);
        if (!s->legacy)
            s->era = era_of(d->protocol_version);
    }
}

/* clientInfo comes with the request, before the session of an initialize is known. */
struct pending_detail {
    struct slice client_name, client_version;
};

static void on_request(struct model *m, struct exch *x, const struct record *rec)
{
    exch_fill(m, x, rec);
    const struct rpc_detail *d = rec->request.body.detail;
    if (d && d->client_name.ptr) {
        struct pending_detail *p = arena_alloc(m->arena, sizeof(*p));
        *p = (struct pending_detail){ intern(m, d->client_name), intern(m, d->client_version) };
        x->pending = p;
    }
    twin_find(m, x);
    if (x->twin_of)
        return;
    struct session *s = session_of_request(m, x);
    if (!s)
        return;
    session_attach(s, x);
    session_detail(m, s, d);
}

static void attach_late(struct model *m, struct exch *x, struct session *s)
{
    session_attach(s, x);
    const struct pending_detail *p = x->pending;
    if (!p)
        return;
    s->client_name = text_of(m, s->client_name, p->client_name);
    s->client_version = text_of(m, s->client_version, p->client_version);
}

static void http_error_answers(struct session *s, const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind == RPC_REQUEST && x->msg[i].request != NONE)
            s->request[x->msg[i].request]->http_error = x->status;
    }
}

static void response_attached(struct session *s, struct exch *x)
{
    if (x->status >= 400 && x->method == HTTP_METHOD_POST)
        http_error_answers(s, x);
    if (x->method == HTTP_METHOD_DELETE && x->status >= 200 && x->status < 300 && !s->deleted.time)
        s->deleted = x->response;
    if ((x->rflags & RECF_SSE) && x->leg == NONE)
        leg_new(s, x);
}

/* Its session, once the response tells it. */
static void response_session(struct model *m, struct exch *x)
{
    if (!x->session) {
        /* A listening GET waits for its first event: it may be that of the legacy transport. */
        if (x->has_request && !x->initialize && (x->rflags & RECF_SSE))
            return;
        attach_late(m, x, x->has_request ? session_of_response(m, x) : session_orphan(m, x));
    }
    response_attached(x->session, x);
}

static void body_messages(struct exch *x)
{
    if (x->method != HTTP_METHOD_POST || x->status >= 400)
        return;
    for (uint32_t i = 0; i < x->reply_count; i++)
        message_from_server(x->session, x, NULL, NULL, &x->reply[i]);
}

/* A twin no more: what it has shown so far is its own. */
static void twin_leaves(struct model *m, struct exch *x)
{
    response_session(m, x);
    if (x->session && x->reply_present)
        body_messages(x);
}

static void on_response(struct model *m, struct exch *x, const struct record *rec)
{
    const struct rec_response *r = &rec->response;

    x->response = rec->at;
    if (!x->has_request) {
        x->first = r->first;
        x->client = r->client;
        x->server = r->server;
        x->tcp_stream = r->tcp_stream;
        x->conn = r->conn;
    }
    x->status = r->flags & RECF_HEAD_LOST ? 0 : r->status;
    x->rflags = r->flags;
    x->content_type = intern(m, r->content_type);
    x->coding = intern(m, r->coding);
    x->server_name = intern(m, r->server_name);
    x->response_session = intern(m, r->session);
    x->retry_after = r->retry_after;
    x->content_length = r->content_length;
    x->last = rec->at;
    if (r->flags & (RECF_UNDECODABLE | RECF_NO_BODY_RECORDED))
        x->undecodable = true;
    m->har |= r->flags & RECF_HAR;
    m->pcap |= !(r->flags & RECF_HAR);
    struct exch *other = twin_other_session(x);
    if (other && other != x)
        twin_leaves(m, other);
    if (!x->twin_of)
        response_session(m, x);
}

static void attach_waiting(struct model *m, struct exch *x, const struct record *rec)
{
    struct session *s;

    if (x->session || x->twin_of)
        return;
    if (!x->has_request)
        s = session_orphan(m, x);
    else if (rec->kind == REC_EVENT && slice_eq(rec->event.event, SLICE_LIT("endpoint")))
        s = session_legacy(m, x, rec->event.data);
    else
        s = session_of_response(m, x);
    attach_late(m, x, s);
    if (x->response.time)
        response_attached(s, x);
}

static void on_event(struct model *m, struct exch *x, const struct record *rec)
{
    if (x->twin_of || x->twins > 0) {
        twin_event(m, x, rec);
        return;
    }
    if (!x->session || x->leg == NONE)
        return;
    session_detail(m, x->session, rec->event.body.detail);
    leg_event(x->session, x, rec, NULL);
    x->last = rec->at;
    ledger_trim(m);
}

static char *refusal_words(struct model *m, struct slice payload)
{
    size_t n = payload.len > ERROR_TEXT_MAX ? ERROR_TEXT_MAX : payload.len;
    char *text = arena_str(m->arena, (struct slice){ payload.ptr, n });

    for (size_t i = 0; i < n; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + 32);
        else if (text[i] == '\0')
            text[i] = ' ';
    }
    return text;
}

static void body_fill(struct model *m, struct exch *x, const struct record *rec)
{
    const struct rec_body *b = &rec->body;

    x->reply_status = b->status;
    x->reply_present = b->present;
    x->reply_whole = b->whole;
    x->reply_bytes = b->bytes;
    x->reply_batch = b->batch;
    x->body_end = b->tcp_end;
    x->last = rec->at;
    if (x->status >= 400) {
        x->error_text = refusal_words(m, b->payload);
        x->error_code = b->count > 0 ? b->msg[0].error_code : 0;
    }
    if (b->count == 0)
        return;
    x->reply = messages_copy(m, b, rec->at);
    x->reply_count = (uint32_t)b->count;
}

static void on_body(struct model *m, struct exch *x, const struct record *rec)
{
    struct exch *owner = x->twin_of ? x->twin_of : x;

    if (!owner->session && !x->twin_of)
        return;
    body_fill(m, x, rec);
    if (owner->session)
        session_detail(m, owner->session, rec->body.detail);
    if (!x->twin_of)
        body_messages(x);
}

/* What a twin shows of an exchange that is over. */
static void complete(struct model *m, struct exch *owner)
{
    bool attached = owner->session != NULL;

    if (!owner->ended || !twin_complete(m, owner))
        return;
    if (!attached)
        response_session(m, owner);
    else
        response_attached(owner->session, owner);
    if (owner->session)
        body_messages(owner);
}

static void on_ack(struct exch *x, const struct record *rec)
{
    if (x->twin_of) {
        twin_ack(x, rec->ack.tcp_offset, rec->at);
        return;
    }
    if (!x->session)
        return;
    if (x->leg != NONE) {
        leg_ack(x->session, x, rec->ack.tcp_offset, rec->at);
        return;
    }
    if (rec->ack.tcp_offset > x->acked_to)
        x->acked_to = rec->ack.tcp_offset;
    if (!x->acked.time && x->acked_to >= x->body_end)
        x->acked = rec->at;
    for (uint32_t i = 0; x->acked.time && i < x->reply_count; i++)
        x->reply[i].acked = x->acked;
}

static void on_gap(struct exch *x, const struct record *rec)
{
    if (rec->gap.dir == DIR_CLIENT)
        x->request_gaps++;
    else
        x->response_gaps++;
    x->head_gap |= rec->gap.in_head;
    if (!x->gap_at.time)
        x->gap_at = rec->at;
    if (x->twin_of || !x->session)
        return;
    struct session *s = x->session;
    if (s->gaps++ == 0)
        s->gap_at = rec->at;
    if (x->leg == NONE || rec->gap.dir == DIR_CLIENT)
        return;
    struct leg *l = s->leg[x->leg];
    if (l->gaps++ == 0)
        l->gap_at = rec->at;
    /* A twin may have shown events already. */
    if (x->twins > 0 ? x->twin_at == NONE : l->last_id == NONE)
        l->first_lost = true;
}

static void on_end(struct model *m, struct exch *x, const struct record *rec)
{
    const struct rec_end *r = &rec->end;

    x->ended = true;
    x->end = rec->at;
    x->end_kind = r->kind;
    x->close_not_known = r->close_not_known;
    x->middlebox = r->middlebox;
    x->truncated_capture = r->truncated_capture;
    x->h2_code = r->h2_code;
    x->body_bytes = r->body_bytes;
    if (r->last.time)
        x->last = r->last;
    complete(m, x->twin_of ? x->twin_of : x);
    if (x->twin_of || !x->session)
        return;
    struct session *s = x->session;
    s->last = rec->at;
    s->truncated |= r->truncated_capture;
    if (x->leg != NONE)
        leg_end(s, s->leg[x->leg], rec);
}

static void on_note(struct model *m, const struct record *rec)
{
    const struct rec_note *n = &rec->note;
    uint64_t key = hash_mix(hash_mix((uint64_t)n->kind + 1, rec->exchange),
                            hash_mix(hash_bytes(n->text), hash_mix(rec->at.input, n->tcp_stream)));
    uint64_t *slot = table_put(&impl_of(m)->notes, key);

    if (*slot) {
        m->note[*slot - 1].count += n->count ? n->count : 1;
        return;
    }
    GROW(m->note, m->note_count, m->note_cap);
    m->note[m->note_count++] = (struct note){
        .kind = n->kind,
        .exchange = rec->exchange,
        .exch = NONE,
        .at = rec->at,
        .count = n->count ? n->count : 1,
        .tcp_stream = n->tcp_stream,
        .text = arena_str(m->arena, n->text),
    };
    *slot = m->note_count;
    if (rec->exchange == 0)
        return;
    if (n->kind == NOTE_UNKNOWN_CODING || n->kind == NOTE_CODING_BROKEN ||
        n->kind == NOTE_TLS_LOST || n->kind == NOTE_BODY_NOT_RECORDED)
        exch_of(m, rec->exchange)->undecodable = true;
}

void model_feed(struct model *m, const struct record *rec)
{
    struct exch *x;

    if (rec->at.time > m->end.time)
        m->end = rec->at;
    if (rec->kind == REC_NOTE) {
        on_note(m, rec);
        return;
    }
    x = exch_of(m, rec->exchange);
    if (rec->kind == REC_EVENT || rec->kind == REC_BODY || rec->kind == REC_END ||
        rec->kind == REC_GAP)
        attach_waiting(m, x, rec);
    struct leg *l = x->session && x->leg != NONE ? x->session->leg[x->leg] : NULL;
    switch (rec->kind) {
    case REC_REQUEST: on_request(m, x, rec); break;
    case REC_RESPONSE: on_response(m, x, rec); break;
    case REC_EVENT: on_event(m, x, rec); break;
    case REC_COMMENT:
        if (l)
            leg_comment(l, rec);
        break;
    case REC_BODY: on_body(m, x, rec); break;
    case REC_ACK: on_ack(x, rec); break;
    case REC_SILENCE:
        if (l)
            leg_silence(l, &rec->silence);
        break;
    case REC_GAP: on_gap(x, rec); break;
    case REC_END: on_end(m, x, rec); break;
    case REC_NOTE:
    case REC_STREAM: break;
    }
}
