/*
 * capture.h - packets out of a pcap (libpcap) or pcapng (own reader, pcapng.c) input.
 *
 *     cap = capture_open(input, index, &err);
 *     while ((st = capture_next(cap, &frame)) == CAPTURE_FRAME)   frame borrowed until the next
 * call
 *         ...
 *     capture_free(cap);
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include "input.h"
#include "packet.h"

enum capture_status {
    CAPTURE_FRAME,
    CAPTURE_END,
    CAPTURE_CUT,     /* the file ends inside a packet or block; capture_message tells where */
    CAPTURE_DAMAGED, /* it does not go on from here */
};

struct capture;
/* in is borrowed and outlives the capture; input_index goes into places. */
struct capture *capture_open(struct input *in, uint32_t input_index, struct input_error *reterr);
void capture_free(struct capture *cap);
enum capture_status capture_next(struct capture *cap, struct frame *ret);
const char *capture_message(const struct capture *cap);
uint64_t capture_frames(const struct capture *cap);
/* pcapng: text of all Decryption Secrets Blocks (TLS key log) so far; empty: none. */
struct slice capture_secrets(const struct capture *cap);
/* pcapng: comments kept for later use, in file order. frame 0: of a section or an interface. */
struct capture_comment {
    uint32_t frame;
    struct slice text;
};
size_t capture_comments(const struct capture *cap, const struct capture_comment **ret);

/* Compiled BPF per link type (--filter); NULL text: everything passes. */
struct capture_filter;
struct capture_filter *capture_filter_new(const char *expression, struct input_error *reterr);
void capture_filter_free(struct capture_filter *f);
bool capture_filter_pass(struct capture_filter *f, const struct frame *frame);

#endif
