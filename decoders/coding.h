/*
 * coding.h - content codings, streaming: gzip, deflate (zlib and raw), br, zstd, chains of them
 * (RFC 9110 8.4). What was flushed comes out at once; a stream cut anywhere yields what it held.
 *
 *     c = coding_new(SLICE_LIT("gzip"), max_ratio, max_total);   NULL: unknown coding
 *     st = coding_feed(c, bytes, sink, ctx);   calls sink with decoded bytes, borrowed in the call
 *     coding_free(c);
 */
#ifndef CODING_H
#define CODING_H

#include "base.h"

enum coding_status {
    CODING_OK,
    CODING_ENDED,  /* the coded stream ended by itself; what follows is ignored */
    CODING_BROKEN, /* does not decode */
    CODING_LIMIT,  /* ratio or size limit */
};

struct coding;
typedef void coding_sink(void *ctx, struct slice decoded);

/* value: of Content-Encoding, a comma list; "identity", "none" and empty give a coding that copies.
 */
struct coding *coding_new(struct slice value, size_t max_ratio, uint64_t max_total);
void coding_free(struct coding *c);
bool coding_is_identity(struct slice value);
enum coding_status coding_feed(struct coding *c, struct slice in, coding_sink *sink, void *ctx);

#endif
