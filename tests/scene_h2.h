/*
 * scene_h2.h - the frames of one HTTP/2 connection (RFC 9113, prior knowledge or under TLS) that
 * carry exchanges of a scene; header compression by nghttp2's encoder. All bytes live as the arena.
 */
#ifndef SCENE_H2_H
#define SCENE_H2_H

#include "exchange.h"

struct scene_h2;

struct scene_h2 *scene_h2_new(struct arena *arena);
void scene_h2_free(struct scene_h2 *h);

/* The first bytes of a side: preface, SETTINGS, a wide window. */
struct slice scene_h2_open(struct scene_h2 *h, enum dir dir);
/* A new stream, 1, 3, 5 ...; *ret is its id. */
struct slice scene_h2_request(struct scene_h2 *h, const struct http_head *head, struct slice body,
                              uint32_t *ret);
struct slice scene_h2_response(struct scene_h2 *h, uint32_t stream, const struct http_head *head,
                               bool gzip);
struct slice scene_h2_data(struct scene_h2 *h, uint32_t stream, struct slice data, bool end);
struct slice scene_h2_joined(struct scene_h2 *h, struct slice a, struct slice b);
struct slice scene_h2_reset(struct scene_h2 *h, uint32_t stream, uint32_t code);

#endif
