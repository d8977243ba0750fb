/*
 * stored.h - the bytes of one file as they are stored, in large runs, hashed on the way.
 *
 *     s = stored_new(fd, regular);
 *     while ((run = stored_next(s)).len > 0)    borrowed until the next call
 *         use(run);
 *     stored_sha256_hex(s, hex);                complete once stored_next returned nothing
 *     stored_free(s);
 *
 * A large regular file is read ahead and hashed by a thread of its own, so that the digest takes
 * little time on a machine with cores to spare; where a thread cannot be had, the caller's does the
 * work.
 */
#ifndef STORED_H
#define STORED_H

#include "base.h"

#include <stdio.h>

struct stored;
/* Takes fd and closes it, unless it is standard input. */
struct stored *stored_new(int fd, bool regular);
void stored_free(struct stored *s);
struct slice stored_next(struct stored *s);
/* NULL, or why reading stopped before the end. */
const char *stored_error(const struct stored *s);
uint64_t stored_bytes(const struct stored *s); /* handed out so far */
/* Nobody will ask for the digest: saves the time for it, and the thread. */
void stored_no_digest(struct stored *s);
/* All of the work is for the caller's thread. */
void stored_no_thread(struct stored *s);
/* Without digest, between two runs: the next bytes straight into buf; 0 at the end. */
size_t stored_read(struct stored *s, void *buf, size_t n);
bool stored_has_digest(const struct stored *s);
/* A regular file without digest: a stream by which it is read from now on, again from `back` bytes
 * before on. NULL: it is another file, or there is no memory. */
FILE *stored_stream(struct stored *s, size_t back);
/* Empty before the end was reached, or without digest. */
void stored_sha256_hex(const struct stored *s, char ret[static 65]);

#endif
