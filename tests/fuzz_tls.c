/*
 * fuzz_tls.c - any bytes as a TLS connection, cut and holed at will, with a key log among them.
 * Property: what goes up is in order, within what came, and never without a key.
 *
 * Input: pieces of the form op, length, bytes. op & 1: direction; op >> 1: data, gap, key log text,
 * close.
 */
#include "tls.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct watch {
    uint64_t came[2];
    uint64_t tcp_end[2];
    bool has_keys;
};

#define CHECK(cond) ((cond) ? (void)0 : abort())

static void put_record(void *ctx, struct record *rec)
{
    (void)ctx;
    CHECK(rec->kind == REC_NOTE);
}

static void up_data(void *self, enum dir dir, const struct piece *piece)
{
    struct watch *w = self;

    CHECK(w->has_keys);
    CHECK(piece->sealed && piece->tcp_end > w->tcp_end[dir] && piece->tcp_end <= w->came[dir]);
    w->tcp_end[dir] = piece->tcp_end;
}

static void up_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    (void)self;
    (void)dir;
    (void)len;
    (void)at;
}

static void up_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    (void)self;
    (void)dir;
    (void)kind;
    (void)at;
}

static void up_finish(void *self, struct place at)
{
    (void)self;
    (void)at;
}

static struct layer make_up(void *ctx, struct slice alpn, struct slice first, enum dir dir)
{
    static const struct layer_ops ops = {
        .name = "up", .data = up_data, .gap = up_gap, .close = up_close, .finish = up_finish
    };

    (void)alpn;
    (void)dir;
    CHECK(first.len > 0);
    return (struct layer){ &ops, ctx };
}

static void run_op(const struct layer *tls, struct keylog *keys, struct watch *w, uint8_t op,
                   struct slice bytes)
{
    enum dir dir = op & 1 ? DIR_SERVER : DIR_CLIENT;

    switch (op >> 1 & 3) {
    case 0:
        w->came[dir] += bytes.len;
        tls->ops->data(tls->self, dir, &(struct piece){ .data = bytes, .tcp_end = w->came[dir] });
        break;
    case 1:
        w->came[dir] += bytes.len;
        tls->ops->gap(tls->self, dir, op & 8 ? 0 : bytes.len, (struct place){ 0 });
        break;
    case 2: w->has_keys |= keylog_add(keys, bytes) > 0; break;
    default: tls->ops->close(tls->self, dir, CLOSE_FIN, (struct place){ 0 }); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct exchange_limits limits = { 1 << 20, 1 << 20, 1000, 1 << 20 };
    struct slice rest = { data, size };
    struct watch w = { 0 };
    struct conn conn = { 0 };
    struct exchanges *all =
        exchanges_new((struct record_sink){ .put = put_record, .ctx = NULL }, &limits);
    struct keylog *keys = keylog_new();
    struct layer tls = tls_new(all, keys, &conn, (struct tls_above){ make_up, &w });
    struct slice bytes;
    uint16_t len;
    uint8_t op;

    while (slice_u8(&rest, &op) && slice_be16(&rest, &len)) {
        if (!slice_take(&rest, len < rest.len ? len : rest.len, &bytes))
            break;
        run_op(&tls, keys, &w, op, bytes);
    }
    tls.ops->finish(tls.self, (struct place){ 0 });
    keylog_free(keys);
    exchanges_free(all);
    return 0;
}
