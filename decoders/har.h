/*
 * har.h - HAR 1.2 exports of every producer in HAR.md, entry by entry: memory does not grow with
 * the file. A source of exchanges in the order of time.
 *
 *     har = har_open(input, index, exchanges, &err);
 *     while (har_time(har, &t))      time of its next fact; false: nothing left
 *         har_step(har);             emits the records of that fact through exchanges
 *     har_free(har);
 *
 * har_status after the last step: complete, or truncated/damaged with a message (every complete
 * entry was used).
 */
#ifndef HAR_H
#define HAR_H

#include "exchange.h"
#include "input.h"

enum har_status { HAR_COMPLETE, HAR_TRUNCATED, HAR_DAMAGED };

struct har;
struct har *har_open(struct input *in, uint32_t input_index, struct exchanges *all,
                     struct input_error *reterr);
void har_free(struct har *har);
MUST_CHECK bool har_time(const struct har *har, int64_t *ret);
void har_step(struct har *har);
enum har_status har_status(const struct har *har);
const char *har_message(const struct har *har);
uint64_t har_entries(const struct har *har);
struct slice har_producer(const struct har *har); /* "Firefox 153" */
bool har_is(struct slice head);

#endif
