/*
 * payload.h - with --show-payload: what stood in the messages that findings point at. A sink in
 * front of the model keeps the beginning of every payload, up to a ceiling in all.
 *
 *     p = payloads_new(next);
 *     ... records go to payloads_sink(p) ...
 *     payloads_seal(p);
 *     n = payloads_at(p, place, &first);      first[0 .. n): in the order of the records
 *     payloads_free(p);
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include "record.h"

struct payload {
    uint32_t input;
    uint32_t frame;
    size_t number;     /* order of the records */
    size_t bytes;      /* of the whole */
    struct slice text; /* cut */
};

struct payloads;
struct payloads *payloads_new(struct record_sink next);
void payloads_free(struct payloads *p);
struct record_sink payloads_sink(struct payloads *p);
void payloads_seal(struct payloads *p);
/* p NULL: none. */
size_t payloads_at(const struct payloads *p, struct place at, const struct payload **ret);

#endif
