/* test_tls.c - real TLS conversations between two ends in memory, read by an observer with the
 * keys.
 */
#include "tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

/* ---- the two ends ---- */

struct tls_plan {
    const char *name;
    const char *cipher; /* of either version; NULL: OpenSSL's choice */
    const char *client_groups;
    const char *server_groups;
    size_t fragment; /* longest record the ends send; 0: as usual */
    size_t padding;  /* TLS 1.3: records are padded to a multiple */
    int version;     /* TLS1_2_VERSION or TLS1_3_VERSION */
    bool rsa;        /* the server's key; else an elliptic curve */
    bool no_encrypt_then_mac;
    bool no_master_extension;
    bool no_ticket;
    bool client_auth;
    bool resume;        /* the conversation kept is a resumed one */
    bool early;         /* ... and begins with early data */
    bool early_refused; /* ... which the server refuses */
    bool key_update;
    bool renegotiate;
};

/* What was sent on the wire, in order. */
struct tls_wire {
    enum dir dir;
    size_t begin; /* in bytes */
    size_t len;
};

struct tls_talk {
    struct buf bytes;
    struct tls_wire *wire;
    size_t wire_count;
    size_t wire_cap;
    struct buf sent[2]; /* plaintext by direction */
    struct buf keys;    /* the key log */
};

struct pair {
    const struct tls_plan *plan;
    struct tls_talk *talk;
    SSL_CTX *ctx[2];
    SSL *end[2];
    SSL_SESSION *session;
    bool recording;
};

static void keep_key(const SSL *ssl, const char *line)
{
    struct tls_talk *talk = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    assert_true(buf_add(&talk->keys, slice_str(line)));
    assert_true(buf_add(&talk->keys, SLICE_LIT("\n")));
}

static int take_any_peer(int ok, X509_STORE_CTX *store)
{
    (void)ok;
    (void)store;
    return 1;
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl;
    (void)arg;
    assert_true(in_len > in[0]);
    *out = in + 1;
    *len = in[0];
    return SSL_TLSEXT_ERR_OK;
}

static void use_new_certificate(SSL_CTX *ctx, bool rsa)
{
    EVP_PKEY *key = rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    X509 *cert = X509_new();

    assert_non_null(key);
    assert_non_null(cert);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static SSL_CTX *new_ctx(const struct pair *p, enum dir dir)
{
    const struct tls_plan *plan = p->plan;
    SSL_CTX *ctx = SSL_CTX_new(dir == DIR_CLIENT ? TLS_client_method() : TLS_server_method());
    const char *groups = dir == DIR_CLIENT ? plan->client_groups : plan->server_groups;

    assert_non_null(ctx);
    SSL_CTX_set_app_data(ctx, p->talk);
    SSL_CTX_set_keylog_callback(ctx, dir == DIR_CLIENT ? keep_key : NULL);
    SSL_CTX_set_min_proto_version(ctx, plan->version);
    SSL_CTX_set_max_proto_version(ctx, plan->version);
    if (plan->cipher && plan->version == TLS1_3_VERSION)
        assert_int_equal(SSL_CTX_set_ciphersuites(ctx, plan->cipher), 1);
    else if (plan->cipher)
        assert_int_equal(SSL_CTX_set_cipher_list(ctx, plan->cipher), 1);
    if (groups) {
        char list[64]; /* the macro casts const away */
        snprintf(list, sizeof(list), "%s", groups);
        assert_int_equal(SSL_CTX_set1_groups_list(ctx, list), 1);
    }
    if (plan->no_encrypt_then_mac)
        SSL_CTX_set_options(ctx, SSL_OP_NO_ENCRYPT_THEN_MAC);
    if (plan->no_master_extension)
        SSL_CTX_set_options(ctx, SSL_OP_NO_EXTENDED_MASTER_SECRET);
    if (plan->no_ticket)
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    if (plan->padding > 0)
        SSL_CTX_set_block_padding(ctx, plan->padding);
    if (plan->renegotiate)
        SSL_CTX_set_options(ctx, SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
    SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"t", 1);
    SSL_CTX_set_max_early_data(ctx, 16384);
    SSL_CTX_set_recv_max_early_data(ctx, 16384);
    if (dir == DIR_SERVER || plan->client_auth)
        use_new_certificate(ctx, plan->rsa);
    if (dir == DIR_SERVER) {
        SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
        SSL_CTX_set_verify(ctx, plan->client_auth ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                           take_any_peer);
    } else {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
        assert_int_equal(SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2", 3), 0);
    }
    return ctx;
}

static void open_ends(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        p->end[i] = SSL_new(p->ctx[i]);
        assert_non_null(p->end[i]);
        SSL_set_bio(p->end[i], BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        if (p->plan->fragment > 0)
            SSL_set_max_send_fragment(p->end[i], (long)p->plan->fragment);
    }
    SSL_set_tlsext_host_name(p->end[DIR_CLIENT], "mcp.example");
    SSL_set_connect_state(p->end[DIR_CLIENT]);
    SSL_set_accept_state(p->end[DIR_SERVER]);
    if (p->session)
        assert_int_equal(SSL_set_session(p->end[DIR_CLIENT], p->session), 1);
}

/* Carries what the end has written over to the other. */
static void carry(struct pair *p, enum dir dir)
{
    uint8_t data[4096];
    int n;

    while ((n = BIO_read(SSL_get_wbio(p->end[dir]), data, sizeof(data))) > 0) {
        struct tls_talk *talk = p->talk;
        assert_int_equal(BIO_write(SSL_get_rbio(p->end[!dir]), data, n), n);
        if (!p->recording)
            continue;
        GROW(talk->wire, talk->wire_count, talk->wire_cap);
        talk->wire[talk->wire_count++] =
            (struct tls_wire){ .dir = dir, .begin = talk->bytes.len, .len = (size_t)n };
        assert_true(buf_add(&talk->bytes, (struct slice){ data, (size_t)n }));
    }
}

static void shake_hands(struct pair *p)
{
    for (int i = 0; i < 20; i++) {
        int client = SSL_do_handshake(p->end[DIR_CLIENT]);
        carry(p, DIR_CLIENT);
        int server = SSL_do_handshake(p->end[DIR_SERVER]);
        carry(p, DIR_SERVER);
        if (client == 1 && server == 1)
            return;
    }
    ERR_print_errors_fp(stderr);
    fail_msg("%s: no handshake", p->plan->name);
}

static void receive(struct pair *p, enum dir dir, size_t want)
{
    uint8_t data[4096];
    size_t got = 0;
    size_t n;

    while (SSL_read_ex(p->end[!dir], data, sizeof(data), &n) == 1)
        got += n;
    assert_int_equal(got, want);
}

static void say(struct pair *p, enum dir dir, size_t len)
{
    uint8_t *data = mem_alloc(len);
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)('a' + (i * 7 + len) % 26);
    assert_int_equal(SSL_write_ex(p->end[dir], data, len, &n), 1);
    assert_int_equal(n, len);
    if (p->recording)
        assert_true(buf_add(&p->talk->sent[dir], (struct slice){ data, len }));
    free(data);
    carry(p, dir);
    receive(p, dir, len);
}

static void say_early(struct pair *p)
{
    static const char text[] = "early words";
    uint8_t data[64];
    size_t n = 0;

    assert_int_equal(SSL_write_early_data(p->end[DIR_CLIENT], text, sizeof(text), &n), 1);
    carry(p, DIR_CLIENT);
    int got = SSL_read_early_data(p->end[DIR_SERVER], data, sizeof(data), &n);
    assert_int_equal(got, p->plan->early_refused ? SSL_READ_EARLY_DATA_FINISH
                                                 : SSL_READ_EARLY_DATA_SUCCESS);
    if (!p->plan->early_refused)
        assert_true(buf_add(&p->talk->sent[DIR_CLIENT], slice_str(text)));
    if (!p->plan->early_refused) /* the NUL went along */
        assert_true(buf_add(&p->talk->sent[DIR_CLIENT], (struct slice){ (const uint8_t *)"", 1 }));
    carry(p, DIR_SERVER);
    shake_hands(p);
}

static void update_keys(struct pair *p, enum dir dir, int request)
{
    assert_int_equal(SSL_key_update(p->end[dir], request), 1);
    say(p, dir, 20);
    say(p, !dir, 30);
}

static void renegotiate(struct pair *p)
{
    uint8_t data[16];
    size_t n;

    assert_int_equal(SSL_renegotiate(p->end[DIR_CLIENT]), 1);
    for (int i = 0; i < 6; i++) {
        SSL_do_handshake(p->end[DIR_CLIENT]);
        carry(p, DIR_CLIENT);
        SSL_read_ex(p->end[DIR_SERVER], data, sizeof(data), &n);
        carry(p, DIR_SERVER);
    }
    assert_int_equal(SSL_renegotiate_pending(p->end[DIR_CLIENT]), 0);
}

static void converse(struct pair *p)
{
    say(p, DIR_CLIENT, 100);
    say(p, DIR_SERVER, 1);
    say(p, DIR_SERVER, 3000);
    if (p->plan->key_update) {
        update_keys(p, DIR_CLIENT, SSL_KEY_UPDATE_NOT_REQUESTED);
        update_keys(p, DIR_SERVER, SSL_KEY_UPDATE_REQUESTED);
        update_keys(p, DIR_SERVER, SSL_KEY_UPDATE_REQUESTED);
    }
    if (p->plan->renegotiate)
        renegotiate(p);
    say(p, DIR_CLIENT, 17);
    say(p, DIR_SERVER, 20000);
}

static void close_ends(struct pair *p)
{
    SSL_shutdown(p->end[DIR_SERVER]);
    carry(p, DIR_SERVER);
    SSL_shutdown(p->end[DIR_CLIENT]);
    carry(p, DIR_CLIENT);
    SSL_free(p->end[DIR_CLIENT]);
    SSL_free(p->end[DIR_SERVER]);
}

/* Fails the test when the two ends cannot talk. */
static struct tls_talk *tls_talk_run(const struct tls_plan *plan)
{
    struct tls_talk *talk = mem_alloc(sizeof(*talk));
    struct pair p = { .plan = plan, .talk = talk };
    struct buf *bufs[] = { &talk->bytes, &talk->sent[0], &talk->sent[1], &talk->keys };

    for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
        buf_init(bufs[i], (size_t)1 << 20);
    p.ctx[DIR_CLIENT] = new_ctx(&p, DIR_CLIENT);
    p.ctx[DIR_SERVER] = new_ctx(&p, DIR_SERVER);
    if (plan->resume) {
        open_ends(&p);
        shake_hands(&p);
        converse(&p);
        p.session = SSL_get1_session(p.end[DIR_CLIENT]);
        close_ends(&p);
    }
    if (plan->early_refused) { /* its ticket keys are gone */
        SSL_CTX_free(p.ctx[DIR_SERVER]);
        p.ctx[DIR_SERVER] = new_ctx(&p, DIR_SERVER);
    }
    p.recording = true;
    open_ends(&p);
    if (plan->early)
        say_early(&p);
    else
        shake_hands(&p);
    assert_int_equal(SSL_session_reused(p.end[DIR_CLIENT]), plan->resume && !plan->early_refused);
    converse(&p);
    close_ends(&p);
    SSL_SESSION_free(p.session);
    SSL_CTX_free(p.ctx[DIR_CLIENT]);
    SSL_CTX_free(p.ctx[DIR_SERVER]);
    return talk;
}

static void tls_talk_free(struct tls_talk *talk)
{
    buf_release(&talk->bytes);
    buf_release(&talk->sent[0]);
    buf_release(&talk->sent[1]);
    buf_release(&talk->keys);
    free(talk->wire);
    free(talk);
}

/* ---- the observer ---- */

struct observer {
    struct exchanges *all;
    struct keylog *keys;
    struct conn conn;
    struct layer tls;
    struct buf got[2];
    unsigned gaps[2];
    unsigned closes[2];
    unsigned notes[NOTE_CLOCK_STEP + 1];
    char text[64]; /* of the last note */
    char alpn[16];
    uint64_t tcp_end[2]; /* of the last piece */
    uint64_t offset[2];  /* of the TCP stream */
    bool finished;
};

static void up_data(void *self, enum dir dir, const struct piece *piece)
{
    struct observer *o = self;

    assert_true(piece->sealed);
    assert_true(piece->tcp_end > o->tcp_end[dir]);
    assert_true(piece->tcp_end <= o->offset[dir]);
    o->tcp_end[dir] = piece->tcp_end;
    assert_true(buf_add(&o->got[dir], piece->data));
}

static void up_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    struct observer *o = self;

    (void)len;
    (void)at;
    o->gaps[dir]++;
}

static void up_ack(void *self, enum dir dir, uint64_t tcp_offset, struct place at)
{
    (void)self;
    (void)dir;
    (void)tcp_offset;
    (void)at;
}

static void up_silence(void *self, enum dir dir, const struct silence *s)
{
    (void)self;
    (void)dir;
    (void)s;
}

static void up_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    struct observer *o = self;

    (void)at;
    assert_int_equal(kind, CLOSE_FIN);
    o->closes[dir]++;
}

static void up_finish(void *self, struct place at)
{
    struct observer *o = self;

    (void)at;
    o->finished = true;
}

static struct layer make_up(void *ctx, struct slice alpn, struct slice first, enum dir dir)
{
    static const struct layer_ops ops = { .name = "up",
                                          .data = up_data,
                                          .gap = up_gap,
                                          .ack = up_ack,
                                          .silence = up_silence,
                                          .close = up_close,
                                          .finish = up_finish };
    struct observer *o = ctx;

    (void)dir;
    assert_true(first.len > 0);
    snprintf(o->alpn, sizeof(o->alpn), SLICE_FMT, SLICE_ARG(alpn));
    return (struct layer){ &ops, o };
}

static void put_record(void *ctx, struct record *rec)
{
    struct observer *o = ctx;

    assert_int_equal(rec->kind, REC_NOTE);
    o->notes[rec->note.kind]++;
    snprintf(o->text, sizeof(o->text), SLICE_FMT, SLICE_ARG(rec->note.text));
}

static struct observer *observer_new(struct slice keys)
{
    static const struct exchange_limits limits = { 1 << 20, 1 << 20, 1000, 1 << 20 };
    struct observer *o = mem_alloc(sizeof(*o));

    o->all = exchanges_new((struct record_sink){ .put = put_record, .ctx = o }, &limits);
    o->keys = keylog_new();
    keylog_add(o->keys, keys);
    buf_init(&o->got[0], (size_t)1 << 20);
    buf_init(&o->got[1], (size_t)1 << 20);
    o->tls = tls_new(o->all, o->keys, &o->conn, (struct tls_above){ make_up, o });
    return o;
}

static void observe(struct observer *o, enum dir dir, struct slice bytes, size_t step)
{
    struct slice part;

    while (bytes.len > 0 && slice_take(&bytes, step < bytes.len ? step : bytes.len, &part)) {
        uint8_t *exact = (uint8_t *)mem_dup(part); /* a read past the end is seen */
        o->offset[dir] += part.len;
        o->tls.ops->data(o->tls.self, dir,
                         &(struct piece){ .data = { exact, part.len }, .tcp_end = o->offset[dir] });
        free(exact);
    }
}

static struct slice wire_bytes(const struct tls_talk *talk, size_t i)
{
    return (struct slice){ talk->bytes.ptr + talk->wire[i].begin, talk->wire[i].len };
}

static void observe_all(struct observer *o, const struct tls_talk *talk, size_t step)
{
    for (size_t i = 0; i < talk->wire_count; i++)
        observe(o, talk->wire[i].dir, wire_bytes(talk, i), step);
}

static void observer_finish(struct observer *o)
{
    o->tls.ops->finish(o->tls.self, (struct place){ 0 });
    o->tls.ops = NULL;
}

static void observer_free(struct observer *o)
{
    if (o->tls.ops)
        observer_finish(o);
    exchanges_free(o->all);
    keylog_free(o->keys);
    buf_release(&o->got[0]);
    buf_release(&o->got[1]);
    free(o);
}

static void expect_whole(struct observer *o, const struct tls_talk *talk, const char *name)
{
    for (int d = 0; d < 2; d++) {
        if (!slice_eq(buf_slice(&o->got[d]), buf_slice(&talk->sent[d])))
            fail_msg("%s: direction %d: %zu bytes of %zu (%s)", name, d, o->got[d].len,
                     talk->sent[d].len, o->text);
        assert_int_equal(o->gaps[d], 0);
        assert_int_equal(o->closes[d], 1);
    }
    assert_string_equal(o->alpn, "h2");
    assert_int_equal(o->notes[NOTE_TLS_NO_KEYS] + o->notes[NOTE_TLS_LOST], 0);
}

#define V12 TLS1_2_VERSION
#define V13 TLS1_3_VERSION
static const struct tls_plan plans[] = {
    { .name = "1.3 aes128", .version = V13, .cipher = "TLS_AES_128_GCM_SHA256" },
    { .name = "1.3 aes256", .version = V13, .cipher = "TLS_AES_256_GCM_SHA384" },
    { .name = "1.3 chacha", .version = V13, .cipher = "TLS_CHACHA20_POLY1305_SHA256" },
    { .name = "1.3 ccm", .version = V13, .cipher = "TLS_AES_128_CCM_SHA256" },
    { .name = "1.3 ccm8", .version = V13, .cipher = "TLS_AES_128_CCM_8_SHA256" },
    { .name = "1.3 update", .version = V13, .key_update = true },
    { .name = "1.3 fragments", .version = V13, .fragment = 512, .client_auth = true },
    { .name = "1.3 padding", .version = V13, .padding = 512 },
    { .name = "1.3 retry",
      .version = V13,
      .client_groups = "P-256:X25519",
      .server_groups = "X25519" },
    { .name = "1.3 client auth", .version = V13, .rsa = true, .client_auth = true },
    { .name = "1.3 resume", .version = V13, .resume = true },
    { .name = "1.3 early", .version = V13, .resume = true, .early = true },
    { .name = "1.3 early aes128",
      .version = V13,
      .cipher = "TLS_AES_128_GCM_SHA256",
      .resume = true,
      .early = true,
      .key_update = true },
    { .name = "1.3 early refused",
      .version = V13,
      .resume = true,
      .early = true,
      .early_refused = true },
    { .name = "1.2 aes128gcm", .version = V12, .cipher = "ECDHE-ECDSA-AES128-GCM-SHA256" },
    { .name = "1.2 aes256gcm", .version = V12, .cipher = "ECDHE-ECDSA-AES256-GCM-SHA384" },
    { .name = "1.2 chacha", .version = V12, .cipher = "ECDHE-ECDSA-CHACHA20-POLY1305" },
    { .name = "1.2 ccm", .version = V12, .cipher = "ECDHE-ECDSA-AES256-CCM" },
    { .name = "1.2 ccm8", .version = V12, .cipher = "ECDHE-ECDSA-AES128-CCM8" },
    { .name = "1.2 cbc sha1", .version = V12, .cipher = "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0" },
    { .name = "1.2 cbc sha1, mac first",
      .version = V12,
      .no_encrypt_then_mac = true,
      .cipher = "ECDHE-ECDSA-AES256-SHA:@SECLEVEL=0" },
    { .name = "1.2 cbc sha256", .version = V12, .cipher = "ECDHE-ECDSA-AES128-SHA256" },
    { .name = "1.2 cbc sha384", .version = V12, .cipher = "ECDHE-ECDSA-AES256-SHA384" },
    { .name = "1.2 cbc sha384, mac first",
      .version = V12,
      .no_encrypt_then_mac = true,
      .cipher = "ECDHE-ECDSA-AES256-SHA384" },
    { .name = "1.2 rsa", .version = V12, .rsa = true, .cipher = "AES256-GCM-SHA384" },
    { .name = "1.2 rsa cbc", .version = V12, .rsa = true, .cipher = "AES128-SHA256" },
    { .name = "1.2 old master", .version = V12, .no_master_extension = true },
    { .name = "1.2 ticket", .version = V12, .resume = true },
    { .name = "1.2 session id", .version = V12, .resume = true, .no_ticket = true },
    { .name = "1.2 fragments", .version = V12, .fragment = 512, .client_auth = true, .rsa = true },
    { .name = "1.2 renegotiation", .version = V12, .renegotiate = true },
};

static void test_matrix(void **state)
{
    static const size_t steps[] = { 65536, 1, 7, 1460 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct tls_talk *talk = tls_talk_run(&plans[i]);
        for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
            struct observer *o = observer_new(buf_slice(&talk->keys));
            observe_all(o, talk, steps[k]);
            observer_finish(o);
            expect_whole(o, talk, plans[i].name);
            assert_true(o->finished);
            observer_free(o);
        }
        tls_talk_free(talk);
    }
}

static void test_no_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct tls_talk *talk = tls_talk_run(&plans[i]);
        struct observer *o = observer_new((struct slice){ 0 });
        observe_all(o, talk, 1000);
        observer_finish(o);
        assert_int_equal(o->notes[NOTE_TLS_NO_KEYS], 1);
        assert_string_equal(o->text, "mcp.example");
        assert_int_equal(o->got[0].len + o->got[1].len, 0);
        observer_free(o);
        tls_talk_free(talk);
    }
}

/* The secrets stand in the capture file behind the first records they open. */
static void test_late_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct tls_talk *talk = tls_talk_run(&plans[i]);
        struct observer *o = observer_new((struct slice){ 0 });
        for (size_t k = 0; k < talk->wire_count; k++) {
            if (k + 1 == talk->wire_count)
                keylog_add(o->keys, buf_slice(&talk->keys));
            observe(o, talk->wire[k].dir, wire_bytes(talk, k), 777);
        }
        expect_whole(o, talk, plans[i].name);
        observer_free(o);
        tls_talk_free(talk);
    }
}

static void test_joined_in_the_middle(void **state)
{
    (void)state;
    struct tls_talk *talk = tls_talk_run(&plans[0]);
    struct observer *o = observer_new(buf_slice(&talk->keys));

    for (size_t k = talk->wire_count / 2; k < talk->wire_count; k++)
        observe(o, talk->wire[k].dir, wire_bytes(talk, k), 1000);
    assert_int_equal(o->notes[NOTE_TLS_NO_KEYS], 1);
    assert_string_equal(o->text, "joined in the middle");
    observer_free(o);
    tls_talk_free(talk);
}

/* `len` bytes of the server's stream from `from` on are missing. */
static void observe_with_hole(struct observer *o, const struct tls_talk *talk, uint64_t from,
                              uint64_t len, bool len_known)
{
    for (size_t i = 0; i < talk->wire_count; i++) {
        struct slice s = wire_bytes(talk, i);
        struct slice part;
        uint64_t *at = &o->offset[DIR_SERVER];
        if (talk->wire[i].dir == DIR_CLIENT) {
            observe(o, DIR_CLIENT, s, 1460);
            continue;
        }
        if (*at < from && slice_take(&s, from - *at < s.len ? from - *at : s.len, &part))
            observe(o, DIR_SERVER, part, 1460);
        if (*at == from && s.len > 0)
            o->tls.ops->gap(o->tls.self, DIR_SERVER, len_known ? len : 0, (struct place){ 0 });
        if (*at >= from && *at < from + len &&
            slice_take(&s, from + len - *at < s.len ? from + len - *at : s.len, &part))
            *at += part.len;
        observe(o, DIR_SERVER, s, 1460);
    }
}

static void observe_side(struct observer *o, const struct tls_talk *talk, size_t i)
{
    observe(o, talk->wire[i].dir, wire_bytes(talk, i), 1460);
}

static uint64_t bytes_from(const struct tls_talk *talk, size_t first, enum dir dir)
{
    uint64_t n = 0;

    for (size_t i = first; i < talk->wire_count; i++)
        n += talk->wire[i].dir == dir ? talk->wire[i].len : 0;
    return n;
}

static uint64_t bytes_of(const struct tls_talk *talk, enum dir dir)
{
    return bytes_from(talk, 0, dir);
}

/* What was read with a hole is the beginning and the end of what was said. */
static void expect_holed(const struct observer *o, const struct tls_talk *talk)
{
    const struct buf *got = &o->got[DIR_SERVER];
    const struct buf *sent = &talk->sent[DIR_SERVER];
    size_t head = 0;
    size_t tail = 0;

    while (head < got->len && got->ptr[head] == sent->ptr[head])
        head++;
    while (tail < got->len && got->ptr[got->len - 1 - tail] == sent->ptr[sent->len - 1 - tail])
        tail++;
    assert_true(head + tail >= got->len);
    assert_true(o->got[DIR_CLIENT].len == talk->sent[DIR_CLIENT].len);
}

static void hole_at(const struct tls_talk *talk, uint64_t from, uint64_t len, bool len_known)
{
    struct observer *o = observer_new(buf_slice(&talk->keys));

    observe_with_hole(o, talk, from, len, len_known);
    observer_finish(o); /* what looks like a record that goes on is none then */
    expect_holed(o, talk);
    if (o->got[DIR_SERVER].len < talk->sent[DIR_SERVER].len)
        assert_true(o->gaps[DIR_SERVER] > 0);
    assert_true(o->got[DIR_SERVER].len > 0);
    assert_int_equal(o->closes[DIR_SERVER], 1); /* the last record was read */
    observer_free(o);
}

/* A hole of any place behind the hello: the end is read again. */
static void test_hole(void **state)
{
    static const size_t which[] = { 0, 2, 4, 5, 6, 14, 16, 19, 21 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(which); i++) {
        struct tls_talk *talk = tls_talk_run(&plans[which[i]]);
        uint64_t total = bytes_of(talk, DIR_SERVER);
        uint64_t begin = plans[which[i]].version == V13 ? 200 : total - 22000;
        for (uint64_t from = begin; from + 600 < total; from += 487) {
            hole_at(talk, from, 1, true);
            hole_at(talk, from, 500, true);
            hole_at(talk, from, 500, false);
        }
        tls_talk_free(talk);
    }
}

/* Behind a hole stand bytes of a lost record that look like the header of one, which would reach
 * beyond the end: what is really there is read all the same. */
static void test_false_header(void **state)
{
    static const size_t which[] = { 0, 2, 4, 5, 6, 14, 16, 19, 21 };
    static const uint8_t header[] = { 0x17, 3, 3, 0x40, 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(which); i++) {
        struct tls_talk *talk = tls_talk_run(&plans[which[i]]);
        struct observer *o = observer_new(buf_slice(&talk->keys));
        size_t late = talk->wire_count;
        while (late > 0 && bytes_from(talk, late, DIR_SERVER) < 10000)
            late--;
        for (size_t k = 0; k < late; k++)
            observe_side(o, talk, k);
        o->tls.ops->gap(o->tls.self, DIR_SERVER, 0, (struct place){ 0 });
        observe(o, DIR_SERVER, (struct slice){ header, sizeof(header) }, 1460);
        for (size_t k = late; k < talk->wire_count; k++)
            observe_side(o, talk, k);
        o->tls.ops->close(o->tls.self, DIR_SERVER, CLOSE_FIN, (struct place){ 0 });
        expect_holed(o, talk);
        assert_true(o->got[DIR_SERVER].len > bytes_from(talk, late, DIR_SERVER) / 2);
        observer_free(o);
        tls_talk_free(talk);
    }
}

/* Whatever is damaged, nothing is read that was not said. */
static void test_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plans); i += 5) {
        struct tls_talk *talk = tls_talk_run(&plans[i]);
        for (size_t at = 0; at < talk->bytes.len; at += 211) {
            struct observer *o = observer_new(buf_slice(&talk->keys));
            talk->bytes.ptr[at] ^= 0x55;
            observe_all(o, talk, 1460);
            talk->bytes.ptr[at] ^= 0x55;
            assert_true(o->got[DIR_SERVER].len <= talk->sent[DIR_SERVER].len);
            assert_true(o->got[DIR_CLIENT].len <= talk->sent[DIR_CLIENT].len);
            observer_free(o);
        }
        tls_talk_free(talk);
    }
}

/* ---- the key log ---- */

#define R32  "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define S32  "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"
#define HALF "00112233445566778899aabbccddeeff"

static void test_keylog(void **state)
{
    static const char text[] = "# comment\r\n"
                               "\n"
                               "CLIENT_RANDOM " R32 " " S32 HALF "\r\n"
                               "CLIENT_RANDOM " R32 " " S32 "\n"            /* too short */
                               "CLIENT_TRAFFIC_SECRET_0 " R32 " " S32 "0\n" /* odd */
                               "CLIENT_TRAFFIC_SECRET_0 " HALF " " S32 "\n"
                               "EXPORTER_SECRET " R32 " " S32 "\n"
                               "SERVER_TRAFFIC_SECRET_0 " R32 " " S32 "zz\n"
                               "  SERVER_TRAFFIC_SECRET_0\t" R32 "  " S32;
    uint8_t random[TLS_RANDOM];
    struct keylog *k = keylog_new();

    (void)state;
    for (size_t i = 0; i < sizeof(random); i++)
        random[i] = (uint8_t)i;
    assert_null(keylog_find(k, random, KEY_MASTER));
    assert_int_equal(keylog_add(k, slice_str(text)), 2);
    assert_int_equal(keylog_add(k, slice_str(text)), 2);
    assert_int_equal(keylog_count(k), 2);
    assert_int_equal(keylog_find(k, random, KEY_MASTER)->len, 48);
    assert_int_equal(keylog_find(k, random, KEY_SERVER_TRAFFIC)->bytes[31], 0xff);
    assert_null(keylog_find(k, random, KEY_CLIENT_TRAFFIC));
    random[0] = 1;
    assert_null(keylog_find(k, random, KEY_MASTER));
    keylog_free(k);
}

static void test_many_keys(void **state)
{
    struct keylog *k = keylog_new();
    char line[200];

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(line, sizeof(line), "CLIENT_TRAFFIC_SECRET_0 %08x%s %s%08x\n", i, &S32[8], &S32[8],
                 i);
        assert_int_equal(keylog_add(k, slice_str(line)), 1);
    }
    assert_int_equal(keylog_count(k), 2000);
    for (unsigned i = 0; i < 2000; i++) {
        uint8_t random[TLS_RANDOM];
        for (size_t b = 0; b < TLS_RANDOM; b++)
            random[b] = b == 31 ? 0xff : (uint8_t)b;
        random[0] = random[1] = 0;
        random[2] = (uint8_t)(i >> 8);
        random[3] = (uint8_t)i;
        const struct tls_secret *s = keylog_find(k, random, KEY_CLIENT_TRAFFIC);
        assert_non_null(s);
        assert_int_equal(s->bytes[30] << 8 | s->bytes[31], i);
    }
    keylog_free(k);
}

static void test_keylog_is(void **state)
{
    (void)state;
    assert_true(keylog_is(SLICE_LIT("# SSL/TLS secrets log file, generated by NSS\n")));
    assert_true(keylog_is(SLICE_LIT("# mine\n\nCLIENT_RANDOM " R32 " " S32)));
    assert_true(keylog_is(SLICE_LIT("SERVER_HANDSHAKE_TRAFFIC_SECRET " R32)));
    assert_false(keylog_is(SLICE_LIT("")));
    assert_false(keylog_is(SLICE_LIT("# only a comment\n")));
    assert_false(keylog_is(SLICE_LIT("{\"log\": 1}\nCLIENT_RANDOM " R32 " " S32)));
    assert_false(keylog_is(SLICE_LIT("CLIENT_RANDOM is a label\n")));
}

static void test_is(void **state)
{
    (void)state;
    assert_true(tls_is((struct slice){ (const uint8_t *)"\x16\x03\x01\x02\x00", 5 }));
    assert_true(tls_is((struct slice){ (const uint8_t *)"\x17\x03\x03\x00\x20", 5 }));
    assert_false(tls_is((struct slice){ (const uint8_t *)"\x16\x03\x01\x02", 4 }));
    assert_false(tls_is((struct slice){ (const uint8_t *)"\x16\x03\x01\x00\x00", 5 }));
    assert_false(tls_is((struct slice){ (const uint8_t *)"\x17\x03\x03\xff\x20", 5 }));
    assert_false(tls_is(SLICE_LIT("GET / HTTP/1.1\r\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),    cmocka_unit_test(test_no_keys),
        cmocka_unit_test(test_late_keys), cmocka_unit_test(test_joined_in_the_middle),
        cmocka_unit_test(test_hole),      cmocka_unit_test(test_false_header),
        cmocka_unit_test(test_damage),    cmocka_unit_test(test_keylog),
        cmocka_unit_test(test_many_keys), cmocka_unit_test(test_keylog_is),
        cmocka_unit_test(test_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
