/* tls_crypto.c - see tls_crypto.h. */
#include "tls_crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#define NONCE 12
/* Sequence number, type, version and length, as every MAC of TLS 1.2 begins. */
#define MAC_HEAD 13

struct tls_cipher {
    const struct tls_suite *suite;
    EVP_CIPHER_CTX *ctx;
    uint8_t iv[NONCE];
    uint8_t mac_key[48];
    bool encrypt_then_mac;
};

#define ROW13(number, mode_, key, hash_)                                                           \
    {                                                                                              \
        .id = (number), .version = TLS13, .mode = (mode_), .key_len = (key), .hash = (hash_)       \
    }
#define AEAD12(number, mode_, key, hash_)                                                          \
    {                                                                                              \
        .id = (number), .version = TLS12, .mode = (mode_), .key_len = (key), .hash = (hash_)       \
    }
#define CBC12(number, key, mac_, hash_)                                                            \
    {                                                                                              \
        .id = (number), .version = TLS12, .mode = TLS_CBC, .key_len = (key), .hash = (hash_),      \
        .mac = (mac_)                                                                              \
    }

/* The key exchange is of no matter: a suite is known by what protects its records. */
static const struct tls_suite suites[] = {
    ROW13(0x1301, TLS_GCM, 16, TLS_SHA256),
    ROW13(0x1302, TLS_GCM, 32, TLS_SHA384),
    ROW13(0x1303, TLS_CHACHA, 32, TLS_SHA256),
    ROW13(0x1304, TLS_CCM, 16, TLS_SHA256),
    ROW13(0x1305, TLS_CCM8, 16, TLS_SHA256),
    /* ECDHE with ECDSA, then RSA */
    AEAD12(0xc02b, TLS_GCM, 16, TLS_SHA256),
    AEAD12(0xc02c, TLS_GCM, 32, TLS_SHA384),
    AEAD12(0xc02f, TLS_GCM, 16, TLS_SHA256),
    AEAD12(0xc030, TLS_GCM, 32, TLS_SHA384),
    AEAD12(0xcca8, TLS_CHACHA, 32, TLS_SHA256),
    AEAD12(0xcca9, TLS_CHACHA, 32, TLS_SHA256),
    CBC12(0xc009, 16, TLS_SHA1, TLS_SHA256),
    CBC12(0xc00a, 32, TLS_SHA1, TLS_SHA256),
    CBC12(0xc013, 16, TLS_SHA1, TLS_SHA256),
    CBC12(0xc014, 32, TLS_SHA1, TLS_SHA256),
    CBC12(0xc023, 16, TLS_SHA256, TLS_SHA256),
    CBC12(0xc024, 32, TLS_SHA384, TLS_SHA384),
    CBC12(0xc027, 16, TLS_SHA256, TLS_SHA256),
    CBC12(0xc028, 32, TLS_SHA384, TLS_SHA384),
    AEAD12(0xc0ac, TLS_CCM, 16, TLS_SHA256),
    AEAD12(0xc0ad, TLS_CCM, 32, TLS_SHA256),
    AEAD12(0xc0ae, TLS_CCM8, 16, TLS_SHA256),
    AEAD12(0xc0af, TLS_CCM8, 32, TLS_SHA256),
    /* DHE */
    AEAD12(0x009e, TLS_GCM, 16, TLS_SHA256),
    AEAD12(0x009f, TLS_GCM, 32, TLS_SHA384),
    AEAD12(0xccaa, TLS_CHACHA, 32, TLS_SHA256),
    AEAD12(0xc09e, TLS_CCM, 16, TLS_SHA256),
    AEAD12(0xc09f, TLS_CCM, 32, TLS_SHA256),
    AEAD12(0xc0a2, TLS_CCM8, 16, TLS_SHA256),
    AEAD12(0xc0a3, TLS_CCM8, 32, TLS_SHA256),
    CBC12(0x0033, 16, TLS_SHA1, TLS_SHA256),
    CBC12(0x0039, 32, TLS_SHA1, TLS_SHA256),
    CBC12(0x0067, 16, TLS_SHA256, TLS_SHA256),
    CBC12(0x006b, 32, TLS_SHA256, TLS_SHA256),
    /* RSA */
    AEAD12(0x009c, TLS_GCM, 16, TLS_SHA256),
    AEAD12(0x009d, TLS_GCM, 32, TLS_SHA384),
    AEAD12(0xc09c, TLS_CCM, 16, TLS_SHA256),
    AEAD12(0xc09d, TLS_CCM, 32, TLS_SHA256),
    AEAD12(0xc0a0, TLS_CCM8, 16, TLS_SHA256),
    AEAD12(0xc0a1, TLS_CCM8, 32, TLS_SHA256),
    CBC12(0x002f, 16, TLS_SHA1, TLS_SHA256),
    CBC12(0x0035, 32, TLS_SHA1, TLS_SHA256),
    CBC12(0x003c, 16, TLS_SHA256, TLS_SHA256),
    CBC12(0x003d, 32, TLS_SHA256, TLS_SHA256),
    /* pre-shared keys: PSK, ECDHE_PSK */
    AEAD12(0x00a8, TLS_GCM, 16, TLS_SHA256),
    AEAD12(0x00a9, TLS_GCM, 32, TLS_SHA384),
    AEAD12(0xccab, TLS_CHACHA, 32, TLS_SHA256),
    AEAD12(0xccac, TLS_CHACHA, 32, TLS_SHA256),
    CBC12(0x008c, 16, TLS_SHA1, TLS_SHA256),
    CBC12(0x008d, 32, TLS_SHA1, TLS_SHA256),
    CBC12(0xc035, 16, TLS_SHA1, TLS_SHA256),
    CBC12(0xc036, 32, TLS_SHA1, TLS_SHA256),
};

const struct tls_suite *tls_suite_find(uint16_t id)
{
    for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
        if (suites[i].id == id)
            return &suites[i];
    }
    return NULL;
}

static const EVP_MD *hash_md(enum tls_hash h)
{
    switch (h) {
    case TLS_SHA1: return EVP_sha1();
    case TLS_SHA256: return EVP_sha256();
    case TLS_SHA384: return EVP_sha384();
    }
    return NULL;
}

static size_t hash_len(enum tls_hash h)
{
    switch (h) {
    case TLS_SHA1: return 20;
    case TLS_SHA256: return 32;
    case TLS_SHA384: return 48;
    }
    return 0;
}

static const EVP_CIPHER *cipher_of(const struct tls_suite *s)
{
    bool wide = s->key_len == 32;

    switch (s->mode) {
    case TLS_GCM: return wide ? EVP_aes_256_gcm() : EVP_aes_128_gcm();
    case TLS_CHACHA: return EVP_chacha20_poly1305();
    case TLS_CCM:
    case TLS_CCM8: return wide ? EVP_aes_256_ccm() : EVP_aes_128_ccm();
    case TLS_CBC: return wide ? EVP_aes_256_cbc() : EVP_aes_128_cbc();
    }
    return NULL;
}

static size_t tag_len(const struct tls_suite *s)
{
    return s->mode == TLS_CCM8 ? 8 : 16;
}

static void hmac(enum tls_hash h, struct slice key, struct slice data, uint8_t out[static 64])
{
    unsigned len = 0;

    HMAC(hash_md(h), key.ptr, (int)key.len, data.ptr, data.len, out, &len);
}

/* HKDF-Expand-Label of RFC 8446 7.1 without a context; one round of HKDF-Expand is enough for n. */
static void expand_label(enum tls_hash h, const struct tls_secret *secret, struct slice label,
                         uint8_t *out, size_t n)
{
    static const char prefix[] = "tls13 ";
    uint8_t info[64];
    uint8_t block[64];
    size_t len = 0;

    info[len++] = 0;
    info[len++] = (uint8_t)n;
    info[len++] = (uint8_t)(sizeof(prefix) - 1 + label.len);
    memcpy(info + len, prefix, sizeof(prefix) - 1);
    len += sizeof(prefix) - 1;
    memcpy(info + len, label.ptr, label.len);
    len += label.len;
    info[len++] = 0; /* empty context */
    info[len++] = 1; /* counter of HKDF-Expand */
    hmac(h, (struct slice){ secret->bytes, secret->len }, (struct slice){ info, len }, block);
    memcpy(out, block, n);
}

void tls_secret_next(const struct tls_suite *suite, struct tls_secret *secret)
{
    struct tls_secret next = { .len = (uint8_t)hash_len(suite->hash) };

    expand_label(suite->hash, secret, SLICE_LIT("traffic upd"), next.bytes, next.len);
    *secret = next;
}

/* The PRF of RFC 5246 5 for "key expansion": fills out. */
static void key_block(const struct tls_suite *s, const struct tls_keys12 *keys, uint8_t *out,
                      size_t n)
{
    static const char label[] = "key expansion";
    uint8_t
        seed[48 + sizeof(label) - 1 + (size_t)2 * TLS_RANDOM]; /* A(i), then label and randoms */
    uint8_t block[64];
    size_t md = hash_len(s->hash);
    struct slice secret = { keys->master->bytes, keys->master->len };
    struct slice fixed = { seed + md, sizeof(label) - 1 + (size_t)2 * TLS_RANDOM };
    uint8_t *p = seed + md;

    memcpy(p, label, sizeof(label) - 1);
    memcpy(p + sizeof(label) - 1, keys->server_random, TLS_RANDOM);
    memcpy(p + sizeof(label) - 1 + TLS_RANDOM, keys->client_random, TLS_RANDOM);
    hmac(s->hash, secret, fixed, block);
    for (size_t done = 0; done < n; done += md) {
        size_t part = n - done < md ? n - done : md;
        memcpy(seed, block, md);
        hmac(s->hash, secret, (struct slice){ seed, md + fixed.len }, block);
        memcpy(out + done, block, part);
        hmac(s->hash, secret, (struct slice){ seed, md }, block);
    }
}

static struct tls_cipher *cipher_new(const struct tls_suite *suite, const uint8_t *key)
{
    struct tls_cipher *c = mem_alloc(sizeof(*c));

    c->suite = suite;
    c->ctx = EVP_CIPHER_CTX_new();
    bool ok = c->ctx && EVP_DecryptInit_ex(c->ctx, cipher_of(suite), NULL, NULL, NULL) == 1;
    if (ok && suite->mode != TLS_CBC)
        ok = EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_AEAD_SET_IVLEN, NONCE, NULL) == 1;
    if (ok && (suite->mode == TLS_CCM || suite->mode == TLS_CCM8))
        ok = EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_AEAD_SET_TAG, (int)tag_len(suite), NULL) == 1;
    if (ok)
        ok = EVP_DecryptInit_ex(c->ctx, NULL, NULL, key, NULL) == 1;
    if (!ok) { /* libcrypto without this algorithm */
        tls_cipher_free(c);
        return NULL;
    }
    EVP_CIPHER_CTX_set_padding(c->ctx, 0);
    return c;
}

struct tls_cipher *tls_cipher_new13(const struct tls_suite *suite, const struct tls_secret *secret)
{
    uint8_t key[32];

    if (secret->len != hash_len(suite->hash))
        return NULL;
    expand_label(suite->hash, secret, SLICE_LIT("key"), key, suite->key_len);
    struct tls_cipher *c = cipher_new(suite, key);
    if (c)
        expand_label(suite->hash, secret, SLICE_LIT("iv"), c->iv, NONCE);
    return c;
}

struct tls_cipher *tls_cipher_new12(const struct tls_suite *suite, const struct tls_keys12 *keys,
                                    enum dir dir)
{
    uint8_t block[2 * (48 + 32 + NONCE)];
    size_t mac = suite->mode == TLS_CBC ? hash_len(suite->mac) : 0;
    size_t key = suite->key_len;
    size_t iv = suite->mode == TLS_CHACHA ? NONCE : suite->mode == TLS_CBC ? 0 : 4;
    size_t mine = dir == DIR_SERVER ? 1 : 0;

    key_block(suite, keys, block, 2 * (mac + key + iv));
    struct tls_cipher *c = cipher_new(suite, block + 2 * mac + mine * key);
    if (!c)
        return NULL;
    memcpy(c->mac_key, block + mine * mac, mac);
    memcpy(c->iv, block + 2 * (mac + key) + mine * iv, iv);
    c->encrypt_then_mac = keys->encrypt_then_mac;
    return c;
}

void tls_cipher_free(struct tls_cipher *c)
{
    if (!c)
        return;
    EVP_CIPHER_CTX_free(c->ctx);
    OPENSSL_cleanse(c, sizeof(*c));
    free(c);
}

static void put_be(uint8_t *out, uint64_t v, size_t n)
{
    while (n > 0) {
        out[--n] = (uint8_t)v;
        v >>= 8;
    }
}

static void mac_head(uint8_t out[static MAC_HEAD], uint64_t seq, const struct tls_record *rec,
                     size_t len)
{
    put_be(out, seq, 8);
    out[8] = rec->type;
    put_be(out + 9, rec->version, 2);
    put_be(out + 11, len, 2);
}

struct aead {
    uint8_t nonce[NONCE];
    uint8_t aad[MAC_HEAD];
    int aad_len;
    struct slice text;
    struct slice tag;
};

static bool aead_split(const struct tls_cipher *c, uint64_t seq, const struct tls_record *rec,
                       struct aead *a)
{
    const struct tls_suite *s = c->suite;
    struct slice rest = rec->payload;
    uint8_t number[8];

    put_be(number, seq, sizeof(number));
    memcpy(a->nonce, c->iv, NONCE);
    if (s->version == TLS12 && s->mode != TLS_CHACHA) {
        struct slice explicit_nonce;
        if (!slice_take(&rest, 8, &explicit_nonce))
            return false;
        memcpy(a->nonce + 4, explicit_nonce.ptr, 8);
    } else {
        for (size_t i = 0; i < sizeof(number); i++)
            a->nonce[NONCE - sizeof(number) + i] ^= number[i];
    }
    if (rest.len < tag_len(s) || !slice_take(&rest, rest.len - tag_len(s), &a->text))
        return false;
    a->tag = rest;
    if (s->version == TLS12) {
        mac_head(a->aad, seq, rec, a->text.len);
        a->aad_len = MAC_HEAD;
        return true;
    }
    a->aad[0] = rec->type;
    put_be(a->aad + 1, rec->version, 2);
    put_be(a->aad + 3, rec->payload.len, 2);
    a->aad_len = 5;
    return true;
}

static bool aead_open(struct tls_cipher *c, const struct aead *a, uint8_t *out)
{
    EVP_CIPHER_CTX *ctx = c->ctx;
    bool ccm = c->suite->mode == TLS_CCM || c->suite->mode == TLS_CCM8;
    int text_len = (int)a->text.len;
    uint8_t tag[16];
    int n = 0;

    memcpy(tag, a->tag.ptr, a->tag.len); /* the API wants it writable */
    if (EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, (int)a->tag.len, tag) != 1 ||
        EVP_DecryptInit_ex(ctx, NULL, NULL, NULL, a->nonce) != 1)
        return false;
    if (ccm && EVP_DecryptUpdate(ctx, NULL, &n, NULL, text_len) != 1)
        return false;
    if (EVP_DecryptUpdate(ctx, NULL, &n, a->aad, a->aad_len) != 1)
        return false;
    if (text_len > 0 && EVP_DecryptUpdate(ctx, out, &n, a->text.ptr, text_len) != 1)
        return false;
    return ccm || EVP_DecryptFinal_ex(ctx, out + text_len, &n) == 1;
}

/* text is a vector of whole blocks after its IV (RFC 5246 6.2.3.2). */
static bool cbc_decrypt(struct tls_cipher *c, struct slice text, uint8_t *out, size_t *ret_len)
{
    struct slice iv;
    int n = 0;

    if (!slice_take(&text, 16, &iv) || text.len == 0 || text.len % 16 != 0)
        return false;
    if (EVP_DecryptInit_ex(c->ctx, NULL, NULL, NULL, iv.ptr) != 1 ||
        EVP_DecryptUpdate(c->ctx, out, &n, text.ptr, (int)text.len) != 1)
        return false;
    size_t pad = (size_t)out[text.len - 1] + 1;
    if (pad > text.len)
        return false;
    for (size_t i = text.len - pad; i < text.len; i++) {
        if (out[i] != pad - 1)
            return false;
    }
    *ret_len = text.len - pad;
    return true;
}

/* The data to authenticate stands behind MAC_HEAD bytes of room, mac wherever it was. */
static bool mac_fits(const struct tls_cipher *c, const uint8_t *room, size_t len,
                     const uint8_t *mac)
{
    uint8_t want[64];
    size_t n = hash_len(c->suite->mac);

    hmac(c->suite->mac, (struct slice){ c->mac_key, n }, (struct slice){ room, MAC_HEAD + len },
         want);
    return CRYPTO_memcmp(want, mac, n) == 0;
}

static bool cbc_open(struct tls_cipher *c, uint64_t seq, const struct tls_record *rec, uint8_t *out,
                     struct slice *plain)
{
    size_t mac = hash_len(c->suite->mac);
    struct slice text = rec->payload;
    size_t len;

    if (text.len < mac)
        return false;
    if (c->encrypt_then_mac) { /* RFC 7366 3 */
        text.len -= mac;
        mac_head(out, seq, rec, text.len);
        memcpy(out + MAC_HEAD, text.ptr, text.len);
        if (!mac_fits(c, out, text.len, text.ptr + text.len))
            return false;
    }
    if (!cbc_decrypt(c, text, out + MAC_HEAD, &len))
        return false;
    if (!c->encrypt_then_mac) {
        if (len < mac)
            return false;
        len -= mac;
        mac_head(out, seq, rec, len);
        if (!mac_fits(c, out, len, out + MAC_HEAD + len))
            return false;
    }
    *plain = (struct slice){ out + MAC_HEAD, len };
    return true;
}

bool tls_cipher_open(struct tls_cipher *c, uint64_t seq, const struct tls_record *rec,
                     uint8_t out[static TLS_OUT_MAX], struct slice *plain)
{
    struct aead a;

    if (rec->payload.len > TLS_PAYLOAD_MAX)
        return false;
    if (c->suite->mode == TLS_CBC)
        return cbc_open(c, seq, rec, out, plain);
    if (!aead_split(c, seq, rec, &a) || !aead_open(c, &a, out))
        return false;
    *plain = (struct slice){ out, a.text.len };
    return true;
}
