/* scene_tls.c - see scene_tls.h; libssl on both ends. */
#include "scene_tls.h"

#include <openssl/ssl.h>
#include <stdlib.h>

#define KEYS_MAX ((size_t)4 << 20)

struct scene_tls {
    struct scene_tls_all *all;
    SSL *end[2];
    struct scene_tls *next;
};

struct scene_tls_all {
    SSL_CTX *ctx[2];
    struct scene_tls *first;
    struct arena *arena;
    struct buf keys;
    uint8_t alpn[32]; /* as it is sent: length, name */
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void keep_key(const SSL *ssl, const char *line)
{
    struct scene_tls_all *all = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    must(buf_add(&all->keys, slice_str(line)) && buf_add(&all->keys, SLICE_LIT("\n")));
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl;
    (void)arg;
    must(in_len > in[0]);
    *out = in + 1;
    *len = in[0];
    return SSL_TLSEXT_ERR_OK;
}

static void use_new_certificate(SSL_CTX *ctx)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();

    must(key && cert);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    must(X509_sign(cert, key, EVP_sha256()) > 0);
    must(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

struct scene_tls_all *scene_tls_new(enum scene_tls_version version, const char *alpn,
                                    struct arena *arena)
{
    struct scene_tls_all *all = mem_alloc(sizeof(*all));
    int number = version == SCENE_TLS_12 ? TLS1_2_VERSION : TLS1_3_VERSION;
    size_t len = strlen(alpn);

    all->arena = arena;
    buf_init(&all->keys, KEYS_MAX);
    must(len < sizeof(all->alpn));
    all->alpn[0] = (uint8_t)len;
    memcpy(all->alpn + 1, alpn, len);
    for (int d = 0; d < 2; d++) {
        all->ctx[d] = SSL_CTX_new(d == DIR_CLIENT ? TLS_client_method() : TLS_server_method());
        must(all->ctx[d] != NULL);
        SSL_CTX_set_app_data(all->ctx[d], all);
        SSL_CTX_set_min_proto_version(all->ctx[d], number);
        SSL_CTX_set_max_proto_version(all->ctx[d], number);
        SSL_CTX_set_verify(all->ctx[d], SSL_VERIFY_NONE, NULL);
    }
    SSL_CTX_set_keylog_callback(all->ctx[DIR_CLIENT], keep_key);
    must(SSL_CTX_set_alpn_protos(all->ctx[DIR_CLIENT], all->alpn, (unsigned)len + 1) == 0);
    SSL_CTX_set_alpn_select_cb(all->ctx[DIR_SERVER], choose_protocol, NULL);
    use_new_certificate(all->ctx[DIR_SERVER]);
    return all;
}

void scene_tls_free(struct scene_tls_all *all)
{
    if (!all)
        return;
    for (struct scene_tls *c = all->first; c; c = c->next) {
        SSL_free(c->end[DIR_CLIENT]);
        SSL_free(c->end[DIR_SERVER]);
    }
    SSL_CTX_free(all->ctx[DIR_CLIENT]);
    SSL_CTX_free(all->ctx[DIR_SERVER]);
    buf_release(&all->keys);
    free(all);
}

struct slice scene_tls_keys(const struct scene_tls_all *all)
{
    return buf_slice(&all->keys);
}

struct scene_tls *scene_tls_connect(struct scene_tls_all *all)
{
    struct scene_tls *c = arena_alloc(all->arena, sizeof(*c));

    c->all = all;
    c->next = all->first;
    all->first = c;
    for (int d = 0; d < 2; d++) {
        c->end[d] = SSL_new(all->ctx[d]);
        must(c->end[d] != NULL);
        SSL_set_bio(c->end[d], BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    }
    SSL_set_connect_state(c->end[DIR_CLIENT]);
    SSL_set_accept_state(c->end[DIR_SERVER]);
    return c;
}

/* What the end has written, carried over to the other one. */
static struct slice carried(struct scene_tls *c, enum dir dir)
{
    size_t len = BIO_ctrl_pending(SSL_get_wbio(c->end[dir]));
    uint8_t *out = arena_alloc(c->all->arena, len + 1);

    if (len == 0)
        return (struct slice){ 0 };
    must(BIO_read(SSL_get_wbio(c->end[dir]), out, (int)len) == (int)len);
    must(BIO_write(SSL_get_rbio(c->end[!dir]), out, (int)len) == (int)len);
    return (struct slice){ out, len };
}

struct slice scene_tls_flight(struct scene_tls *c, enum dir dir)
{
    SSL_do_handshake(c->end[dir]);
    return carried(c, dir);
}

static void drain(SSL *end)
{
    uint8_t data[16384];
    size_t n;

    while (SSL_read_ex(end, data, sizeof(data), &n) == 1)
        continue;
}

struct slice scene_tls_seal(struct scene_tls *c, enum dir dir, struct slice plain)
{
    size_t n = 0;

    if (plain.len == 0)
        return plain;
    must(SSL_write_ex(c->end[dir], plain.ptr, plain.len, &n) == 1 && n == plain.len);
    struct slice sealed = carried(c, dir);
    drain(c->end[!dir]);
    return sealed;
}

struct slice scene_tls_bye(struct scene_tls *c, enum dir dir)
{
    SSL_shutdown(c->end[dir]);
    return carried(c, dir);
}
