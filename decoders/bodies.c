/* bodies.c - see bodies.h. */
#include "bodies.h"

#include "bytes.h"
#include "event_stream.h"
#include "sse.h"

#include <jansson.h>
#include <openssl/sha.h>
#include <stdlib.h>

struct bodies {
    struct record_sink next;
    struct rpc_scanner *scanner;
    struct arena *detail; /* of the message at hand */
    bool want_xxh3;
    bool want_sha256;
    uint8_t sha256[SHA256_DIGEST_LENGTH];
};

struct bodies *bodies_new(struct record_sink next)
{
    struct bodies *b = mem_alloc(sizeof(*b));

    b->next = next;
    b->scanner = rpc_scanner_new();
    b->detail = arena_new();
    return b;
}

void bodies_free(struct bodies *b)
{
    if (!b)
        return;
    rpc_scanner_free(b->scanner);
    arena_free(b->detail);
    free(b);
}

void bodies_want_digests(struct bodies *b, bool sha256)
{
    b->want_xxh3 = true;
    b->want_sha256 |= sha256;
}

/* ---- what only few messages hold ---- */

static struct slice json_text(struct arena *a, const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    if (!json_is_string(v))
        return (struct slice){ 0 };
    return arena_copy(
        a, (struct slice){ (const uint8_t *)json_string_value(v), json_string_length(v) });
}

static void detail_tools(struct arena *a, const json_t *tools, struct rpc_detail *ret)
{
    size_t n = json_array_size(tools);
    size_t i;
    json_t *t;

    if (n == 0)
        return;
    ret->tool = arena_alloc(a, n * sizeof(*ret->tool));
    json_array_foreach (tools, i, t) {
        const json_t *hints = json_object_get(t, "annotations");
        ret->tool[ret->tool_count++] = (struct tool_hint){
            .name = json_text(a, t, "name"),
            .idempotent = json_is_true(json_object_get(hints, "idempotentHint")),
            .read_only = json_is_true(json_object_get(hints, "readOnlyHint")),
        };
    }
}

static void detail_fill(struct arena *a, const json_t *msg, struct rpc_detail *ret)
{
    const json_t *params = json_object_get(msg, "params");
    const json_t *result = json_object_get(msg, "result");
    const json_t *client = json_object_get(params, "clientInfo");
    const json_t *server = json_object_get(result, "serverInfo");

    if (!client)
        client =
            json_object_get(json_object_get(params, "_meta"), "io.modelcontextprotocol/clientInfo");
    if (!server)
        server =
            json_object_get(json_object_get(result, "_meta"), "io.modelcontextprotocol/serverInfo");
    ret->client_name = json_text(a, client, "name");
    ret->client_version = json_text(a, client, "version");
    ret->server_name = json_text(a, server, "name");
    ret->server_version = json_text(a, server, "version");
    ret->protocol_version = json_text(a, params ? params : result, "protocolVersion");
    detail_tools(a, json_object_get(result, "tools"), ret);
}

static bool has_detail(const struct rpc *m)
{
    static const char tools[] = "\"tools\"";

    if (m->kind == RPC_REQUEST)
        return slice_eq(m->method, SLICE_LIT("initialize")) || (m->flags & RPC_META_VERSION);
    if (m->kind != RPC_RESULT)
        return false;
    return m->protocol_version.ptr ||
           memmem(m->body.ptr, m->body.len < 256 ? m->body.len : 256, tools, sizeof(tools) - 1);
}

static const struct rpc_detail *detail_of(struct bodies *b, const struct rpc_scanner *sc)
{
    for (size_t i = 0; i < sc->count; i++) {
        if (!has_detail(&sc->msg[i]))
            continue;
        arena_clear(b->detail);
        struct rpc_detail *d = arena_alloc(b->detail, sizeof(*d));
        json_t *msg = json_loadb((const char *)sc->msg[i].text.ptr, sc->msg[i].text.len,
                                 JSON_ALLOW_NUL, NULL);
        if (!msg)
            continue;
        detail_fill(b->detail, msg, d);
        json_decref(msg);
        return d;
    }
    return NULL;
}

/* ---- every body ---- */

static void digest(struct bodies *b, struct rec_body *body)
{
    struct slice text = body->payload.ptr ? body->payload : SLICE_LIT("");

    if (b->want_xxh3)
        body->xxh3 = hash_bytes(text);
    if (b->want_sha256)
        body->sha256 = SHA256(text.ptr, text.len, b->sha256);
}

static void read_body(struct bodies *b, struct rec_body *body)
{
    struct rpc_scanner *sc = b->scanner;

    digest(b, body);
    if (!body->whole)
        return;
    body->status = rpc_scan(sc, body->payload);
    body->batch = sc->batch;
    body->count = body->status == RPC_OK ? sc->count : 0;
    body->msg = sc->msg;
    if (body->count > 0)
        body->detail = detail_of(b, sc);
}

/* JSON is valid UTF-8; of anything else that is still to be seen. */
static void look_at_bytes(struct rec_event *e)
{
    bool seen = e->body.whole && e->body.status != RPC_NOT_JSON && e->body.status != RPC_TOO_DEEP;

    if (!seen && !utf8_valid(e->data))
        e->oddities |= SSE_BAD_UTF8;
}

/* The body that a record holds; NULL: it holds none. */
static struct rec_body *body_in(struct record *rec)
{
    if (rec->kind == REC_EVENT)
        return rec->event.dispatched ? &rec->event.body : NULL;
    if (rec->kind == REC_REQUEST)
        return &rec->request.body;
    return rec->kind == REC_BODY ? &rec->body : NULL;
}

static void read_record(void *ctx, struct record *rec)
{
    struct bodies *b = ctx;
    struct rec_body *body = body_in(rec);

    if (body)
        read_body(b, body);
    if (body && rec->kind == REC_EVENT)
        look_at_bytes(&rec->event);
    b->next.put(b->next.ctx, rec);
}

static void put(void *ctx, struct record *rec)
{
    event_stream_put((struct record_sink){ .put = read_record, .ctx = ctx }, rec);
}

struct record_sink bodies_sink(struct bodies *b)
{
    return (struct record_sink){ .put = put, .ctx = b };
}
