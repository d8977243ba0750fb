/*
 * event_stream.h - the bodies of event streams, read behind the cut that record.h is: what comes as
 * REC_STREAM goes on as REC_EVENT and REC_COMMENT.
 *
 *     stream = event_stream_new(limit);     exchange.c makes one for a leg, and names it in all
 *                                           records of the leg that concern its body
 *     event_stream_put(next, rec);          bodies.c, perhaps on another thread; REC_END frees it
 */
#ifndef EVENT_STREAM_H
#define EVENT_STREAM_H

#include "record.h"

/* max_event: bytes of one event. */
struct event_stream *event_stream_new(size_t max_event);
/*
 * Hands rec on, or what is made of it: REC_STREAM becomes the events and comments that it
 * completes, REC_EVENT gets its ordinal, REC_ACK goes on only if it covers more of an event than
 * the one before, REC_END gets the tail. Records that name no stream go on as they are.
 */
void event_stream_put(struct record_sink next, struct record *rec);
/* What an item tells of an event. */
struct sse_item;
void event_fill(struct rec_event *e, const struct sse_item *item);

#endif
