/*
 * redact.h - session ids are credentials: text that goes out holds a short digest in their place.
 *
 *     r = redact_new(model);
 *     text = redact_text(r, arena, text);     "sess:3f9a1c" for every id of the recording in it
 *     redact_free(r);
 */
#ifndef REDACT_H
#define REDACT_H

#include "model.h"

struct redact;
struct redact *redact_new(const struct model *m);
void redact_free(struct redact *r);
/* s itself where it holds none; else a copy in the arena. r NULL: everything is shown. */
struct slice redact_text(const struct redact *r, struct arena *a, struct slice s);
/* The first `digits` hex digits of the SHA-256. */
void redact_digest(struct slice id, size_t digits, char ret[static 65]);

#endif
