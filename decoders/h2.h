/*
 * h2.h - HTTP/2 over one connection (RFC 9113), framing and HPACK by nghttp2, as a layer (layer.h).
 *
 * Every stream is an exchange with its own end: END_STREAM, RST_STREAM with its code, GOAWAY, loss
 * of the connection. Flow-control windows are evidence: a closed stream or connection window is a
 * silence with window_closed. Joined in the middle, the compression state is unknown: what can be
 * read is read (NOTE_H2_NO_STATE).
 */
#ifndef H2_H
#define H2_H

#include "exchange.h"

#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* upgraded: the exchange of the request that asked for h2c, which is stream 1 here; NULL: none. */
struct layer h2_new(struct exchanges *all, const struct conn *conn, uint64_t conn_serial,
                    struct exchange *upgraded);
/* Does this look like an HTTP/2 connection: the preface, or (server side, or joined late) frames?
 */
bool h2_is_preface(struct slice s);
bool h2_is_frames(struct slice s);

#endif
