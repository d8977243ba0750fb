/*
 * input.h - one file given to the tool, as a stream of bytes: regular file or standard input ("-"),
 * compressed (gzip, zstd, zlib) or not, recognised by its content.
 *
 *     in = input_open(path, err);         NULL: err is set
 *     head = input_peek(in, 4096);        without consuming; may be shorter at the end
 *     n = input_read(in, buf, sizeof(buf));
 *     input_finish(in);                   reads to the end, so that the digest covers the file
 *     input_free(in);
 */
#ifndef INPUT_H
#define INPUT_H

#include "base.h"

#include <stdio.h>

enum input_kind {
    INPUT_UNKNOWN,
    INPUT_EMPTY, /* 0 bytes */
    INPUT_PCAP,
    INPUT_PCAPNG,
    INPUT_HAR,
    INPUT_DISPATCH_LOG, /* any form, importers included: looked at again by dispatch_log.c */
    INPUT_KEYLOG,
};
const char *input_kind_text(enum input_kind k); /* as in the report: "pcap", "dispatch-log" ... */

/* What went wrong, in words for a person: the program prefixes the file. */
struct input_error {
    char text[200];
};

struct input;
struct input *input_open(const char *path, struct input_error *reterr);
void input_free(struct input *in);
/* Decompressed bytes at the front, up to n (at most 64 KiB), valid until the next input_ call. */
struct slice input_peek(struct input *in, size_t n);
/* Decompressed bytes; 0 at the end or on damage (then input_damage tells). */
size_t input_read(struct input *in, void *buf, size_t n);
/* NULL, or what is wrong with the bytes (read error, damaged compression). */
const char *input_damage(const struct input *in);
/* The damage is only that the (compressed) bytes end early. */
bool input_cut(const struct input *in);
bool input_compressed(const struct input *in); /* known after the first peek or read */
enum input_kind input_recognise(struct input *in);
/* Size and SHA-256 of the file as stored; complete after input_finish. */
void input_finish(struct input *in);
/* The rest as a stream of stdio, for libraries that read from one; in outlives it. NULL: no memory.
 * From then on only input_finish(), and what asks for facts, may be called. */
FILE *input_stream(struct input *in);
/* Before anything but a peek: the SHA-256 is not wanted, and stays empty. */
void input_no_digest(struct input *in);
/* Likewise: nothing is read ahead by another thread. */
void input_no_thread(struct input *in);
uint64_t input_bytes(const struct input *in);
void input_sha256_hex(const struct input *in, char ret[static 65]);

#endif
