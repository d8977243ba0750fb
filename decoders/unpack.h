/*
 * unpack.h - decompression of a whole file, streaming: gzip (any number of members), zlib, zstd
 * (any number of frames). A file that is cut yields what it holds.
 *
 *     u = unpack_new(packing_of(head));
 *     n = unpack_read(u, &in, buf, sizeof(buf));   takes from in what it used; 0: wants more input
 *     unpack_inside(u)                             at the end of the input: is it cut?
 *     unpack_free(u);
 */
#ifndef UNPACK_H
#define UNPACK_H

#include "base.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZLIB, PACKING_ZSTD };
enum packing packing_of(struct slice head);

struct unpack;
struct unpack *unpack_new(enum packing packing); /* not PACKING_NONE */
void unpack_free(struct unpack *u);
/* When it returns 0, then in is empty or unpack_damage tells. */
size_t unpack_read(struct unpack *u, struct slice *in, void *buf, size_t n);
/* A compressed stream has begun and not ended. */
bool unpack_inside(const struct unpack *u);
/* NULL, or what is wrong; static text. */
const char *unpack_damage(const struct unpack *u);

#endif
