/*
 * plain.h - text from the input made fit for people: nothing of it can steer a terminal or turn
 * the direction of writing.
 *
 *     plain_text(arena, bytes, 80)   control characters and bytes that are no UTF-8 as \xNN,
 *                                    cut after 80 bytes of the input with "..."
 */
#ifndef PLAIN_H
#define PLAIN_H

#include "base.h"

#define PLAIN_WHOLE SIZE_MAX

char *plain_text(struct arena *a, struct slice s, size_t max);
/* The first character's length when it may be shown as it is; 0: escape its first byte. */
size_t plain_char(struct slice s);
/* The same into a buffer; false when its ceiling is reached. */
MUST_CHECK bool plain_add(struct buf *b, struct slice s, size_t max);

#endif
