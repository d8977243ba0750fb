/*
 * bodies.h - reads the bodies in records, event by event (event_stream.h), as JSON-RPC: stands
 * between the decoders and the model.
 *
 *     b = bodies_new(next);
 *     sink = bodies_sink(b);       records come in with payloads that nobody has looked into,
 *                                  and go on to next with struct rec_body filled
 *     bodies_free(b);
 *
 * It is a step of its own so that it can run on another thread than the decoders.
 */
#ifndef BODIES_H
#define BODIES_H

#include "record.h"

struct bodies;
struct bodies *bodies_new(struct record_sink next);
void bodies_free(struct bodies *b);
/* Fill rec_body.xxh3, and .sha256 too, from now on (a dispatch log names digests of payloads). */
void bodies_want_digests(struct bodies *b, bool sha256);
struct record_sink bodies_sink(struct bodies *b);

#endif
