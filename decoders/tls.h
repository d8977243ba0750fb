/*
 * tls.h - TLS 1.2 and 1.3 over one connection with the secrets of a key log (NSS SSLKEYLOGFILE
 * format, or a pcapng Decryption Secrets Block), as a layer (layer.h) that feeds another one.
 *
 * Decrypted bytes go up as sealed pieces (layer.h) with the record's tcp_end. Without keys:
 * NOTE_TLS_NO_KEYS once a connection. After a gap the sequence number is found again by trial over
 * a bounded window, else NOTE_TLS_LOST.
 */
#ifndef TLS_H
#define TLS_H

#include "exchange.h"
#include "keylog.h"

/* above(ctx, alpn) makes the layer that gets the plaintext, at its first byte; alpn may be empty.
 */
struct tls_above {
    struct layer (*make)(void *ctx, struct slice alpn, struct slice first_bytes,
                         enum dir first_dir);
    void *ctx;
};
struct layer tls_new(struct exchanges *all, const struct keylog *keys, const struct conn *conn,
                     struct tls_above above);
bool tls_is(struct slice s); /* a TLS record header of a handshake, alert or application record */

#endif
