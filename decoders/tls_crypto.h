/*
 * tls_crypto.h - the record protection of TLS 1.2 (RFC 5246, 5288, 6655, 7366, 7905) and 1.3 (RFC
 * 8446), reading side only, with the primitives of libcrypto.
 *
 *     c = tls_cipher_new13(suite, &secret);
 *     if (tls_cipher_open(c, seq, &rec, out, &plain)) ...
 *     tls_cipher_free(c);
 */
#ifndef TLS_CRYPTO_H
#define TLS_CRYPTO_H

#include "keylog.h"
#include "layer.h"

enum tls_mode { TLS_GCM, TLS_CHACHA, TLS_CCM, TLS_CCM8, TLS_CBC };
enum tls_hash { TLS_SHA1, TLS_SHA256, TLS_SHA384 };

#define TLS12 0x0303
#define TLS13 0x0304

struct tls_suite {
    uint16_t id;
    uint16_t version;
    enum tls_mode mode;
    uint8_t key_len;
    enum tls_hash hash; /* of the key schedule */
    enum tls_hash mac;  /* TLS_CBC */
};
/* NULL: not one that this tool can decrypt. */
const struct tls_suite *tls_suite_find(uint16_t id);

struct tls_record {
    uint8_t type;
    uint16_t version;
    struct slice payload;
};

/* RFC 5246 6.2.3: no longer than this on the wire. */
#define TLS_PAYLOAD_MAX (16384 + 2048)
/* Room that tls_cipher_open wants. */
#define TLS_OUT_MAX (TLS_PAYLOAD_MAX + 64)

struct tls_cipher;
struct tls_cipher *tls_cipher_new13(const struct tls_suite *suite, const struct tls_secret *secret);
struct tls_keys12 {
    const struct tls_secret *master;
    const uint8_t *client_random;
    const uint8_t *server_random;
    bool encrypt_then_mac;
};
struct tls_cipher *tls_cipher_new12(const struct tls_suite *suite, const struct tls_keys12 *keys,
                                    enum dir dir);
void tls_cipher_free(struct tls_cipher *c);
/* Decrypts and verifies; plain is within out. In TLS 1.3 it still has type and padding behind it.
 */
MUST_CHECK bool tls_cipher_open(struct tls_cipher *c, uint64_t seq, const struct tls_record *rec,
                                uint8_t out[static TLS_OUT_MAX], struct slice *plain);
/* RFC 8446 7.2: the secret after a KeyUpdate. */
void tls_secret_next(const struct tls_suite *suite, struct tls_secret *secret);

#endif
