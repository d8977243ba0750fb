/*
 * record_queue.h - records from the code that decodes to the code that judges, in their order and
 * by the batch.
 *
 *     q = record_queue_new(sink, true);   from now on another thread calls sink.put
 *     in = record_queue_sink(q);
 *     in.put(in.ctx, &rec);               copies the record and all that it borrows
 *     record_queue_free(q);               returns when the sink has had every record
 *
 * What waits is bounded: putting blocks while the other thread is too far behind. Without a thread
 * of its own a queue still pays: all that one record needs in code does not fit the processor's
 * cache of instructions, but each half of it does, and stays there for a batch.
 */
#ifndef RECORD_QUEUE_H
#define RECORD_QUEUE_H

#include "record.h"

struct record_queue;
/* own_thread: if it can be had. */
struct record_queue *record_queue_new(struct record_sink to, bool own_thread);
void record_queue_free(struct record_queue *q);
struct record_sink record_queue_sink(struct record_queue *q);

#endif
