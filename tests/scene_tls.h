/*
 * scene_tls.h - the two ends of a real TLS connection in memory, whose records are put into the
 * packets of a scene. The secrets are made anew in each run, and written down as a key log.
 *
 *     all = scene_tls_new(SCENE_TLS_13, "http/1.1", arena);
 *     c = scene_tls_connect(all);
 *     while ((flight = scene_tls_flight(c, dir)).len > 0)   alternately, until both are silent
 *     bytes = scene_tls_seal(c, dir, plain);                to be sent; live as the arena does
 *     scene_tls_keys(all)
 */
#ifndef SCENE_TLS_H
#define SCENE_TLS_H

#include "layer.h"

enum scene_tls_version { SCENE_TLS_NONE, SCENE_TLS_12, SCENE_TLS_13 };

struct scene_tls_all;
struct scene_tls;

struct scene_tls_all *scene_tls_new(enum scene_tls_version version, const char *alpn,
                                    struct arena *arena);
void scene_tls_free(struct scene_tls_all *all);
struct slice scene_tls_keys(const struct scene_tls_all *all);

/* Lives as `all` does. */
struct scene_tls *scene_tls_connect(struct scene_tls_all *all);
/* What the end has to say in the handshake now, after all that the other one said. */
struct slice scene_tls_flight(struct scene_tls *c, enum dir dir);
struct slice scene_tls_seal(struct scene_tls *c, enum dir dir, struct slice plain);
/* close_notify (RFC 8446 6.1) */
struct slice scene_tls_bye(struct scene_tls *c, enum dir dir);

#endif
