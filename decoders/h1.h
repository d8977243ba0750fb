/*
 * h1.h - HTTP/1.1 over one connection (RFC 9112), behind http-parser, as a layer (layer.h).
 *
 * Keep-alive, pipelining, 1xx, HEAD/204/304, chunked, length, close-delimited, trailers; a body
 * that is never finished is delivered as it arrives. The request is paired before its response is
 * parsed. No other file sees http-parser.
 */
#ifndef H1_H
#define H1_H

#include "exchange.h"

/* conn is borrowed and outlives the layer. upgrade may be NULL: called once when the connection
 * leaves HTTP/1.1 by 101 ("h2c", "websocket"); it returns the layer that takes all bytes from then
 * on, or { NULL } to ignore them. */
struct h1_upgrade {
    struct layer (*take)(void *ctx, struct slice protocol, struct exchange *pending);
    void *ctx;
};
struct layer h1_new(struct exchanges *all, const struct conn *conn, uint64_t conn_serial,
                    struct h1_upgrade upgrade);
/* Does this look like the start of a request, or of a response? True too for fewer bytes than
 * decide, as long as they fit ("PO"). */
bool h1_is_request(struct slice s);
bool h1_is_response(struct slice s);
/* Or like chunks of a body, from the first on (a stream that the capture joins late)? */
bool h1_is_chunks(struct slice s);

#endif
