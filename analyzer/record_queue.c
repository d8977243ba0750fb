/*
 * record_queue.c - see record_queue.h.
 *
 * A ring of batches, or a single one without a thread. A batch is a run of bytes into which records
 * are packed with the texts and messages that they borrow; it is written by one thread, then read
 * by the other, so that a lock is taken once a batch. A record too large for any batch waits until
 * the other thread is idle and is then put from here, without a copy.
 */
#include "record_queue.h"

#include <pthread.h>
#include <stdlib.h>

#define RING        4u
#define BATCH_BYTES ((size_t)512 * 1024)
#define BATCH_HERE  ((size_t)256 * 1024) /* without a thread: what the nearer caches hold */
#define AHEAD_BYTES ((size_t)768)        /* of the next item */
#define ALIGN       _Alignof(max_align_t)

/* A packed record; behind the part of its kind the union is cut off. */
struct item {
    struct item *next;
    struct record rec;
};

struct batch {
    struct item *first;
    struct item *last;
    size_t size;
    size_t used; /* past size: what was packed last does not fit */
    uint8_t *bytes;
};

struct record_queue {
    struct record_sink to;
    bool threaded; /* else only the first batch is used */
    struct batch batch[RING];
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved;
    size_t head; /* batches filled */
    size_t tail; /* batches emptied */
    bool ended;
};

/* ---- packing ---- */

static const size_t part_size[] = {
    [REC_REQUEST] = sizeof(struct rec_request), [REC_RESPONSE] = sizeof(struct rec_response),
    [REC_EVENT] = sizeof(struct rec_event),     [REC_COMMENT] = sizeof(struct rec_comment),
    [REC_BODY] = sizeof(struct rec_body),       [REC_ACK] = sizeof(struct rec_ack),
    [REC_SILENCE] = sizeof(struct silence),     [REC_GAP] = sizeof(struct rec_gap),
    [REC_END] = sizeof(struct rec_end),         [REC_NOTE] = sizeof(struct rec_note),
    [REC_STREAM] = sizeof(struct rec_stream),
};

/* NULL: the batch is full. */
static void *take(struct batch *b, size_t n)
{
    size_t at = (b->used + ALIGN - 1) / ALIGN * ALIGN;

    if (at > b->size || n > b->size - at) {
        b->used = b->size + 1;
        return NULL;
    }
    b->used = at + n;
    return b->bytes + at;
}

/* NULL: the batch is full, or there is nothing to copy. */
static void *take_copy(struct batch *b, const void *from, size_t n)
{
    void *to = n > 0 ? take(b, n) : NULL;

    return to ? memcpy(to, from, n) : NULL;
}

static void pack_text(struct batch *b, struct slice *s)
{
    if (s->len > 0)
        s->ptr = take_copy(b, s->ptr, s->len);
    else if (s->ptr)
        s->ptr = (const uint8_t *)"";
}

static void pack_detail(struct batch *b, const struct rpc_detail **detail)
{
    struct rpc_detail *d = *detail ? take_copy(b, *detail, sizeof(**detail)) : NULL;

    *detail = d;
    if (!d)
        return;
    pack_text(b, &d->client_name);
    pack_text(b, &d->client_version);
    pack_text(b, &d->server_name);
    pack_text(b, &d->server_version);
    pack_text(b, &d->protocol_version);
    d->tool = take_copy(b, d->tool, d->tool_count * sizeof(*d->tool));
    for (size_t i = 0; d->tool && i < d->tool_count; i++)
        pack_text(b, &d->tool[i].name);
}

/* The texts of a message lie within the payload, and go where that goes. */
static void move_message(struct rpc *m, const uint8_t *from, const uint8_t *to)
{
    struct slice *const texts[] = {
        &m->id.text,           &m->method,        &m->token.text, &m->cancelled.text,
        &m->subscription.text, &m->error_message, &m->name,       &m->protocol_version,
        &m->result_type,       &m->request_state, &m->body,       &m->text,
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i]->ptr)
            texts[i]->ptr = to + (texts[i]->ptr - from);
    }
}

static void pack_body(struct batch *b, struct rec_body *body)
{
    const uint8_t *from = body->payload.ptr;
    struct rpc *msg = take_copy(b, body->msg, body->count * sizeof(*msg));

    pack_text(b, &body->payload);
    for (size_t i = 0; msg && body->payload.ptr && i < body->count; i++)
        move_message(&msg[i], from, body->payload.ptr);
    body->msg = msg;
    body->sha256 = body->sha256 ? take_copy(b, body->sha256, 32) : NULL;
    pack_detail(b, &body->detail);
}

static void pack_request(struct batch *b, struct rec_request *r)
{
    pack_text(b, &r->method_text);
    pack_text(b, &r->target);
    pack_text(b, &r->authority);
    pack_text(b, &r->session);
    pack_text(b, &r->cursor);
    pack_text(b, &r->version);
    pack_text(b, &r->mcp_method);
    pack_text(b, &r->mcp_name);
    pack_text(b, &r->user_agent);
    pack_body(b, &r->body);
}

static void pack_response(struct batch *b, struct rec_response *r)
{
    pack_text(b, &r->session);
    pack_text(b, &r->content_type);
    pack_text(b, &r->server_name);
    pack_text(b, &r->coding);
}

static void pack_event(struct batch *b, struct rec_event *e)
{
    bool same = e->data.ptr == e->body.payload.ptr && e->data.len == e->body.payload.len;

    pack_text(b, &e->id);
    pack_text(b, &e->event);
    pack_body(b, &e->body);
    if (same)
        e->data.ptr = e->body.payload.ptr;
    else
        pack_text(b, &e->data);
}

static void pack_borrowed(struct batch *b, struct record *rec)
{
    switch (rec->kind) {
    case REC_REQUEST: pack_request(b, &rec->request); break;
    case REC_RESPONSE: pack_response(b, &rec->response); break;
    case REC_EVENT: pack_event(b, &rec->event); break;
    case REC_BODY: pack_body(b, &rec->body); break;
    case REC_END:
        pack_text(b, &rec->end.tail_id);
        pack_text(b, &rec->end.tail_data);
        pack_text(b, &rec->end.tail_event);
        break;
    case REC_NOTE: pack_text(b, &rec->note.text); break;
    case REC_STREAM: pack_text(b, &rec->bytes.data); break;
    case REC_COMMENT:
    case REC_ACK:
    case REC_SILENCE:
    case REC_GAP: break; /* they borrow nothing */
    }
}

/* False, and nothing added: it does not fit any more. */
static bool pack(struct batch *b, const struct record *rec)
{
    size_t before = b->used;
    size_t size = offsetof(struct record, request) + part_size[rec->kind];
    struct item *it = take(b, offsetof(struct item, rec) + size);

    if (it) {
        it->next = NULL;
        memcpy(&it->rec, rec, size);
        pack_borrowed(b, &it->rec);
    }
    if (b->used > b->size) {
        b->used = before;
        return false;
    }
    if (b->last)
        b->last->next = it;
    else
        b->first = it;
    b->last = it;
    return true;
}

/* ---- the two ends ---- */

static struct batch *batch_at(struct record_queue *q, size_t i)
{
    return &q->batch[i % RING];
}

static void batch_clear(struct batch *b)
{
    b->first = b->last = NULL;
    b->used = 0;
}

static void batch_put(const struct record_queue *q, const struct batch *b)
{
    for (struct item *it = b->first; it; it = it->next) {
        mem_prefetch(it->next, AHEAD_BYTES);
        q->to.put(q->to.ctx, &it->rec);
    }
}

/* The batch that is being filled is ready; waits until no more than `behind` are not emptied. */
static void hand_on(struct record_queue *q, size_t behind)
{
    if (!q->threaded) {
        batch_put(q, &q->batch[0]);
        batch_clear(&q->batch[0]);
        return;
    }
    pthread_mutex_lock(&q->lock);
    q->head++;
    pthread_cond_signal(&q->moved);
    while (q->head - q->tail > behind)
        pthread_cond_wait(&q->moved, &q->lock);
    pthread_mutex_unlock(&q->lock);
    batch_clear(batch_at(q, q->head));
}

static void put(void *ctx, struct record *rec)
{
    struct record_queue *q = ctx;

    if (pack(batch_at(q, q->head), rec))
        return;
    hand_on(q, RING - 1);
    if (pack(batch_at(q, q->head), rec))
        return;
    hand_on(q, 0);
    q->to.put(q->to.ctx, rec);
}

static void *run(void *arg)
{
    struct record_queue *q = arg;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->head == q->tail && !q->ended)
            pthread_cond_wait(&q->moved, &q->lock);
        if (q->head == q->tail)
            break;
        pthread_mutex_unlock(&q->lock);
        batch_put(q, batch_at(q, q->tail));
        pthread_mutex_lock(&q->lock);
        q->tail++;
        pthread_cond_signal(&q->moved);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- life cycle ---- */

static void batch_init(struct batch *b, size_t size)
{
    b->size = size; /* and a whole record may be copied off the last item's start */
    b->bytes = mem_grow(NULL, size + sizeof(struct item));
}

struct record_queue *record_queue_new(struct record_sink to, bool own_thread)
{
    struct record_queue *q = mem_alloc(sizeof(*q));

    q->to = to;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->moved, NULL);
    q->threaded = own_thread && pthread_create(&q->thread, NULL, run, q) == 0;
    batch_init(&q->batch[0], q->threaded ? BATCH_BYTES : BATCH_HERE);
    for (size_t i = 1; q->threaded && i < RING; i++)
        batch_init(&q->batch[i], BATCH_BYTES);
    return q;
}

static void thread_end(struct record_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->ended = true;
    pthread_cond_signal(&q->moved);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
}

void record_queue_free(struct record_queue *q)
{
    if (!q)
        return;
    hand_on(q, RING - 1);
    if (q->threaded)
        thread_end(q);
    for (size_t i = 0; i < RING; i++)
        free(q->batch[i].bytes);
    pthread_cond_destroy(&q->moved);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

struct record_sink record_queue_sink(struct record_queue *q)
{
    return (struct record_sink){ .put = put, .ctx = q };
}
