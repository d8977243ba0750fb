/*
 * rpc_same.h - two scanners have found the same in two copies of a payload: whatever a scanner was
 * shown before must not show.
 */
#ifndef RPC_SAME_H
#define RPC_SAME_H

#include "rpc.h"

/* What was found in a payload that lies at `base`. */
struct rpc_found {
    const struct rpc_scanner *sc;
    enum rpc_status status;
    const uint8_t *base;
};

static inline bool rpc_same_text(const struct rpc_found *a, struct slice x,
                                 const struct rpc_found *b, struct slice y)
{
    if (!x.ptr || !y.ptr)
        return !x.ptr && !y.ptr;
    return x.ptr - a->base == y.ptr - b->base && x.len == y.len;
}

static inline bool rpc_same_id(const struct rpc_found *a, const struct rpc_id *x,
                               const struct rpc_found *b, const struct rpc_id *y)
{
    return rpc_id_eq(x, y) && rpc_same_text(a, x->text, b, y->text);
}

static inline bool rpc_same_message(const struct rpc_found *a, const struct rpc *x,
                                    const struct rpc_found *b, const struct rpc *y)
{
    return x->kind == y->kind && x->flags == y->flags && rpc_same_id(a, &x->id, b, &y->id) &&
           rpc_same_text(a, x->method, b, y->method) && rpc_same_id(a, &x->token, b, &y->token) &&
           rpc_same_id(a, &x->cancelled, b, &y->cancelled) &&
           rpc_same_id(a, &x->subscription, b, &y->subscription) && x->progress == y->progress &&
           x->total == y->total && x->error_code == y->error_code &&
           rpc_same_text(a, x->error_message, b, y->error_message) &&
           rpc_same_text(a, x->name, b, y->name) &&
           rpc_same_text(a, x->protocol_version, b, y->protocol_version) &&
           rpc_same_text(a, x->result_type, b, y->result_type) &&
           rpc_same_text(a, x->request_state, b, y->request_state) &&
           rpc_same_text(a, x->body, b, y->body) && rpc_same_text(a, x->text, b, y->text) &&
           x->digest == y->digest && x->body_digest == y->body_digest;
}

static inline bool rpc_same(const struct rpc_found *a, const struct rpc_found *b)
{
    if (a->status != b->status || a->sc->count != b->sc->count || a->sc->batch != b->sc->batch ||
        a->sc->too_many != b->sc->too_many || a->sc->error_at != b->sc->error_at ||
        a->sc->digest != b->sc->digest)
        return false;
    for (size_t i = 0; i < a->sc->count; i++) {
        if (!rpc_same_message(a, &a->sc->msg[i], b, &b->sc->msg[i]))
            return false;
    }
    return true;
}

/* Scans text with a scanner that has a past, and with one that has none. */
static inline bool rpc_scans_as_new(struct rpc_scanner *sc, struct slice text)
{
    struct rpc_scanner *fresh = rpc_scanner_new();
    uint8_t *copy = (uint8_t *)mem_dup(text); /* exact: a read past the end is seen */
    struct rpc_found a = { sc, rpc_scan(sc, text), text.ptr };
    struct rpc_found b = { fresh, rpc_scan(fresh, (struct slice){ copy, text.len }), copy };
    bool same = rpc_same(&a, &b);

    free(copy);
    rpc_scanner_free(fresh);
    return same;
}

#endif
