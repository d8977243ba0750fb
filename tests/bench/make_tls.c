/*
 * make_tls.c - wraps the TCP conversations of a plain capture into TLS 1.3, segment by segment, for
 * measurements: make_tls PLAIN.pcap OUT.pcap OUT.keys
 *
 * Reads what make_big writes: little-endian pcap in microseconds, Ethernet, IPv4 without options,
 * TCP without options, in order, each connection from its SYN on, no more than one a pair of ports.
 * What comes out is such a file, too: handshakes by libssl, then one record a segment.
 */
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADERS   54u /* Ethernet, IPv4, TCP */
#define FRAME_MAX 65536u
#define SYN       0x02u
#define PORTS     65536u

struct end {
    SSL *ssl;
    uint32_t added; /* bytes that the wire has more than the plain capture */
};

struct conversation {
    struct end end[2]; /* client, server */
    int established;
};

struct frame {
    uint8_t head[16]; /* of the record in the file */
    uint8_t bytes[FRAME_MAX];
    size_t len;
};

static FILE *out;
static FILE *keys;

static void fail(const char *what)
{
    fprintf(stderr, "make_tls: %s\n", what);
    exit(1);
}

static uint32_t get16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
    return get16(p) << 16 | get16(p + 2);
}

static void set16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void set32(uint8_t *p, uint32_t v)
{
    set16(p, v >> 16);
    set16(p + 2, v & 0xffff);
}

static void keep_key(const SSL *ssl, const char *line)
{
    (void)ssl;
    fprintf(keys, "%s\n", line);
}

static SSL_CTX *new_ctx(int server)
{
    SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

    if (!ctx)
        fail("no TLS");
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(ctx, 0);
    if (!server) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
        SSL_CTX_set_keylog_callback(ctx, keep_key);
        return ctx;
    }
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    if (!key || !cert)
        fail("no key");
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_sign(cert, key, EVP_sha256());
    SSL_CTX_use_certificate(ctx, cert);
    SSL_CTX_use_PrivateKey(ctx, key);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}

static void open_end(struct end *e, SSL_CTX *ctx, int server)
{
    e->ssl = SSL_new(ctx);
    if (!e->ssl)
        fail("no TLS");
    SSL_set_bio(e->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (server)
        SSL_set_accept_state(e->ssl);
    else
        SSL_set_connect_state(e->ssl);
}

/* What the end has written, to `to` and to the peer; its length. */
static size_t carry(const struct end *from, const struct end *to, uint8_t *data, size_t room)
{
    int n = BIO_read(SSL_get_wbio(from->ssl), data, (int)room);

    if (n <= 0)
        return 0;
    BIO_write(SSL_get_rbio(to->ssl), data, n);
    return (size_t)n;
}

static void drain(const struct end *e)
{
    uint8_t data[16384];
    size_t n;

    while (SSL_read_ex(e->ssl, data, sizeof(data), &n) == 1)
        continue;
}

/* The frame with other bytes in it, and the sequence numbers of the wire. */
static void put_frame(const struct frame *f, uint32_t seq, uint32_t ack, const uint8_t *data,
                      size_t len)
{
    uint8_t head[16];
    uint8_t h[HEADERS];
    const uint32_t total = (uint32_t)(HEADERS + len);

    memcpy(head, f->head, sizeof(head));
    memcpy(head + 8, &total, 4);
    memcpy(head + 12, &total, 4);
    memcpy(h, f->bytes, sizeof(h));
    set16(h + 16, total - 14);
    set32(h + 38, seq);
    set32(h + 42, ack);
    if (fwrite(head, sizeof(head), 1, out) != 1 || fwrite(h, sizeof(h), 1, out) != 1 ||
        (len > 0 && fwrite(data, len, 1, out) != 1))
        fail("cannot write");
}

/* A frame of the other direction, made from this one. */
static void turn(const struct frame *f, struct frame *ret)
{
    memcpy(ret->head, f->head, sizeof(ret->head));
    memcpy(ret->bytes, f->bytes, HEADERS);
    memcpy(ret->bytes + 26, f->bytes + 30, 4);
    memcpy(ret->bytes + 30, f->bytes + 26, 4);
    memcpy(ret->bytes + 34, f->bytes + 36, 2);
    memcpy(ret->bytes + 36, f->bytes + 34, 2);
    memcpy(ret->bytes + 38, f->bytes + 42, 4);
    memcpy(ret->bytes + 42, f->bytes + 38, 4);
}

/* Before the client's first segment f. */
static void shake_hands(struct conversation *c, const struct frame *f)
{
    static struct frame back;
    uint8_t data[16384];
    int silent = 0;

    turn(f, &back);
    for (int side = 0; silent < 2; side = !side) {
        const struct frame *g = side ? &back : f;
        struct end *me = &c->end[side];
        struct end *peer = &c->end[!side];
        SSL_do_handshake(me->ssl);
        size_t n = carry(me, peer, data, sizeof(data));
        silent = n > 0 ? 0 : silent + 1;
        if (n == 0)
            continue;
        put_frame(g, get32(g->bytes + 38) + me->added, get32(g->bytes + 42) + peer->added, data, n);
        me->added += (uint32_t)n;
    }
    if (!SSL_is_init_finished(c->end[1].ssl))
        fail("no handshake");
    c->established = 1;
}

static void wrap(struct conversation *c, const struct frame *f, int side)
{
    static uint8_t data[FRAME_MAX];
    struct end *me = &c->end[side];
    struct end *peer = &c->end[!side];
    size_t plain = get16(f->bytes + 16) - (HEADERS - 14);
    size_t n = 0;
    size_t done;

    if (plain > 0 && !c->established && side == 0)
        shake_hands(c, f);
    uint32_t seq = get32(f->bytes + 38) + me->added;
    uint32_t ack = get32(f->bytes + 42) + peer->added;
    if (plain > 0) {
        if (SSL_write_ex(me->ssl, f->bytes + HEADERS, plain, &done) != 1)
            fail("cannot encrypt");
        n = carry(me, peer, data, sizeof(data));
        drain(peer);
        me->added += (uint32_t)(n - plain);
    }
    put_frame(f, seq, f->bytes[47] == SYN ? 0 : ack, data, n);
}

static int read_frame(FILE *in, struct frame *f)
{
    uint32_t len;

    if (fread(f->head, sizeof(f->head), 1, in) != 1)
        return 0;
    memcpy(&len, f->head + 8, 4);
    if (len < HEADERS || len > FRAME_MAX)
        fail("not what make_big writes");
    f->len = len;
    return fread(f->bytes, len, 1, in) == 1;
}

static void convert(FILE *in, SSL_CTX *client, SSL_CTX *server)
{
    static struct conversation *by_port[PORTS];
    static struct frame f;
    uint32_t listens = 0;

    while (read_frame(in, &f)) {
        uint32_t from = get16(f.bytes + 34);
        uint32_t to = get16(f.bytes + 36);
        if (f.bytes[47] == SYN) {
            struct conversation *c = calloc(1, sizeof(*c));
            if (!c)
                fail("no memory");
            open_end(&c->end[0], client, 0);
            open_end(&c->end[1], server, 1);
            by_port[from] = c;
            listens = to;
        }
        int side = from == listens;
        struct conversation *c = by_port[side ? to : from];
        if (!c)
            fail("a connection without its start");
        wrap(c, &f, side);
    }
}

int main(int argc, char **argv)
{
    uint8_t head[24];

    if (argc != 4) {
        fputs("usage: make_tls PLAIN.pcap OUT.pcap OUT.keys\n", stderr);
        return 2;
    }
    FILE *in = fopen(argv[1], "rbe");
    out = fopen(argv[2], "wbe");
    keys = fopen(argv[3], "we");
    if (!in || !out || !keys)
        fail("cannot open");
    if (fread(head, sizeof(head), 1, in) != 1 || memcmp(head, "\xd4\xc3\xb2\xa1", 4) != 0)
        fail("not what make_big writes");
    fwrite(head, sizeof(head), 1, out);
    convert(in, new_ctx(0), new_ctx(1));
    fclose(in);
    return fclose(out) != 0 || fclose(keys) != 0;
}
