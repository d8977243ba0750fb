/*
 * keylog.h - the secrets of a key log (NSS SSLKEYLOGFILE format), by client random.
 *
 *     k = keylog_new();
 *     keylog_add(k, text);                     any number of times, also while decoding goes on
 *     secret = keylog_find(k, random, label);  borrowed until the next keylog_add; NULL: not there
 *     keylog_free(k);
 */
#ifndef KEYLOG_H
#define KEYLOG_H

#include "base.h"

enum key_label {
    KEY_MASTER, /* CLIENT_RANDOM: the master secret of TLS 1.2 */
    KEY_CLIENT_EARLY,
    KEY_CLIENT_HANDSHAKE,
    KEY_SERVER_HANDSHAKE,
    KEY_CLIENT_TRAFFIC,
    KEY_SERVER_TRAFFIC,
};

#define TLS_RANDOM 32
struct tls_secret {
    uint8_t bytes[48];
    uint8_t len; /* 32 or 48 */
};

/* Secrets by client random; owns what it is given. */
struct keylog;
struct keylog *keylog_new(void);
void keylog_free(struct keylog *k);
/* Adds all lines of a key log; returns how many lines were keys. Others are comments or unknown. */
size_t keylog_add(struct keylog *k, struct slice text);
size_t keylog_count(const struct keylog *k);
/* The first lines look like a key log? */
bool keylog_is(struct slice text);
const struct tls_secret *keylog_find(const struct keylog *k, const uint8_t random[TLS_RANDOM],
                                     enum key_label label);

#endif
