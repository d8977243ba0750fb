/*
 * record_queue.h - records from the thread that decodes to the one that judges, in their order.
 *
 *     q = record_queue_new(sink);         from now on another thread calls sink.put
 *     in = record_queue_sink(q);
 *     in.put(in.ctx, &rec);               copies the record and all that it borrows
 *     record_queue_free(q);               returns when the sink has had every record
 *
 * What waits is bounded: putting blocks while the other thread is too far behind.
 */
#ifndef RECORD_QUEUE_H
#define RECORD_QUEUE_H

#include "record.h"

struct record_queue;
/* NULL: a thread cannot be had. */
struct record_queue *record_queue_new(struct record_sink to);
void record_queue_free(struct record_queue *q);
struct record_sink record_queue_sink(struct record_queue *q);

#endif
