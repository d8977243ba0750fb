/*
 * h2_frame.h - the frame header of HTTP/2 (RFC 9113 4.1), and how to find one in the middle of a
 * stream of bytes.
 */
#ifndef H2_FRAME_H
#define H2_FRAME_H

#include "base.h"

enum h2_type {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION,
};

enum h2_flag {
    H2_END_STREAM = 0x01,
    H2_ACK = 0x01,
    H2_END_HEADERS = 0x04,
    H2_PADDED = 0x08,
    H2_HAS_PRIORITY = 0x20,
};

#define H2_FRAME_HEADER ((size_t)9)
#define H2_FRAME_MAX    16384 /* unless SETTINGS allow more */
#define H2_FRAME_ANY    0xffffff

struct h2_frame {
    uint32_t len;
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
};

/* s holds at least H2_FRAME_HEADER bytes. */
struct h2_frame h2_frame_parse(struct slice s);

enum h2_chain { H2_CHAIN_NO, H2_CHAIN_MAYBE, H2_CHAIN_YES };
enum h2_more {
    H2_MORE,  /* s may be cut anywhere */
    H2_PAUSE, /* the sender made a pause behind s: a frame that ends there is believed */
    H2_END,   /* nothing follows: there will be no better proof */
};
/* Does s begin with one frame after the other? */
enum h2_chain h2_frame_chain(struct slice s, uint32_t max_frame, enum h2_more more);

#endif
