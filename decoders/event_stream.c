/* event_stream.c - see event_stream.h. */
#include "event_stream.h"

#include "sse.h"

#include <stdlib.h>

struct event_stream {
    struct sse sse;
    uint32_t ordinal;   /* of the next event */
    uint64_t event_end; /* tcp_end of the last event */
    uint64_t acked;     /* as was handed on */
    struct place first; /* of the unfinished block */
    bool ambiguous;     /* it rests on ambiguous bytes */
};

struct event_stream *event_stream_new(size_t max_event)
{
    struct event_stream *s = mem_alloc(sizeof(*s));

    sse_init(&s->sse, max_event);
    return s;
}

static void hand_on(struct record_sink next, struct record *rec)
{
    next.put(next.ctx, rec);
}

void event_fill(struct rec_event *e, const struct sse_item *item)
{
    e->has_id = item->has_id;
    e->id = item->id;
    e->dispatched = item->has_data;
    e->data = item->data;
    e->event = item->event;
    e->retry = item->retry;
    e->oddities = item->oddities;
    if (item->has_data)
        body_begin(&e->body, item->data, !(item->oddities & SSE_TOO_LONG));
}

static void number(struct event_stream *s, struct rec_event *e)
{
    e->ordinal = s->ordinal++;
    s->event_end = e->tcp_end;
}

/* from: the record that the item ends in, with `left` bytes behind it. */
static void put_item(struct record_sink next, const struct record *from,
                     const struct sse_item *item, size_t left)
{
    const struct rec_stream *bytes = &from->bytes;
    struct event_stream *s = from->stream;
    uint64_t tcp_end = bytes->sealed ? bytes->tcp_end : bytes->tcp_end - left;
    struct record rec;

    record_begin(&rec, item->kind == SSE_COMMENT ? REC_COMMENT : REC_EVENT, from->exchange,
                 from->at);
    if (item->kind == SSE_COMMENT) {
        rec.comment.tcp_end = tcp_end;
    } else {
        rec.event = (struct rec_event){ .first = s->first,
                                        .tcp_end = tcp_end,
                                        .ambiguous = s->ambiguous,
                                        .no_time = bytes->no_time };
        event_fill(&rec.event, item);
        number(s, &rec.event);
    }
    hand_on(next, &rec);
}

static void put_bytes(struct record_sink next, const struct record *rec)
{
    struct event_stream *s = rec->stream;
    struct slice in = rec->bytes.data;
    struct sse_item item;

    if (!sse_in_block(&s->sse)) {
        s->first = rec->at;
        s->ambiguous = false;
    }
    s->ambiguous |= rec->bytes.ambiguous;
    while (in.len > 0 && sse_next(&s->sse, &in, &item)) {
        put_item(next, rec, &item, in.len);
        s->first = rec->at;
        s->ambiguous = rec->bytes.ambiguous;
    }
}

static bool acks_more(struct event_stream *s, uint64_t tcp_offset)
{
    if (s->acked >= s->event_end || tcp_offset <= s->acked)
        return false;
    s->acked = tcp_offset;
    return true;
}

static void put_end(struct record_sink next, struct record *rec)
{
    struct event_stream *s = rec->stream;
    struct rec_end *end = &rec->end;
    struct sse_tail tail;

    sse_tail(&s->sse, &tail);
    end->tail_bytes = tail.bytes;
    end->tail_fields = tail.has_fields;
    end->tail_has_id = tail.has_id;
    end->tail_id = tail.id;
    end->tail_data = tail.data;
    end->tail_event = tail.event;
    hand_on(next, rec);
    sse_release(&s->sse);
    free(s);
}

void event_stream_put(struct record_sink next, struct record *rec)
{
    struct event_stream *s = rec->stream;

    if (!s) {
        hand_on(next, rec);
        return;
    }
    switch (rec->kind) {
    case REC_STREAM: put_bytes(next, rec); return;
    case REC_END: put_end(next, rec); return;
    case REC_ACK:
        if (acks_more(s, rec->ack.tcp_offset))
            hand_on(next, rec);
        return;
    case REC_EVENT: number(s, &rec->event); break;
    case REC_GAP: sse_gap(&s->sse, rec->gap.bytes); break;
    case REC_REQUEST:
    case REC_RESPONSE:
    case REC_COMMENT:
    case REC_BODY:
    case REC_SILENCE:
    case REC_NOTE: break; /* they name none */
    }
    hand_on(next, rec);
}
