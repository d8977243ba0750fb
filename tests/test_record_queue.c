/* test_record_queue.c - what comes out of the queue is what was put in, in order, although the
 * lender takes everything back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "record_queue.h"

#define BIG ((size_t)300 * 1024)

/* One hash of all that was put, in order. */
struct seen {
    uint64_t hash;
    size_t count;
};

static void see(struct seen *s, struct slice text)
{
    s->hash = hash_mix(s->hash, text.ptr ? hash_bytes(text) : 7);
}

static void see_number(struct seen *s, uint64_t n)
{
    s->hash = hash_mix(s->hash, n);
}

static void see_detail(struct seen *s, const struct rpc_detail *d)
{
    see(s, d->client_name);
    see(s, d->server_version);
    see(s, d->protocol_version);
    for (size_t i = 0; i < d->tool_count; i++) {
        see(s, d->tool[i].name);
        see_number(s, d->tool[i].idempotent);
    }
}

static void see_body(struct seen *s, const struct rec_body *b)
{
    see(s, b->payload);
    see_number(s, b->count);
    for (size_t i = 0; i < b->count; i++) {
        const struct rpc *m = &b->msg[i];
        see(s, m->id.text);
        see(s, m->method);
        see(s, m->token.text);
        see(s, m->cancelled.text);
        see(s, m->subscription.text);
        see(s, m->error_message);
        see(s, m->name);
        see(s, m->protocol_version);
        see(s, m->result_type);
        see(s, m->request_state);
        see(s, m->body);
        see(s, m->text);
        see_number(s, m->digest);
    }
    if (b->sha256)
        see(s, (struct slice){ b->sha256, 32 });
    if (b->detail)
        see_detail(s, b->detail);
}

static void see_request(struct seen *s, const struct rec_request *r)
{
    see(s, r->method_text);
    see(s, r->target);
    see(s, r->authority);
    see(s, r->session);
    see(s, r->cursor);
    see(s, r->version);
    see(s, r->mcp_method);
    see(s, r->mcp_name);
    see(s, r->user_agent);
    see_body(s, &r->body);
}

static void see_event(struct seen *s, const struct rec_event *e)
{
    see(s, e->id);
    see(s, e->data);
    see(s, e->event);
    see_number(s, e->tcp_end);
    see_body(s, &e->body);
}

static void see_rest(struct seen *s, const struct record *r)
{
    if (r->kind == REC_RESPONSE) {
        see(s, r->response.session);
        see(s, r->response.content_type);
        see(s, r->response.server_name);
        see(s, r->response.coding);
    }
    if (r->kind == REC_END) {
        see(s, r->end.tail_id);
        see(s, r->end.tail_data);
        see(s, r->end.tail_event);
    }
    if (r->kind == REC_NOTE)
        see(s, r->note.text);
    if (r->kind == REC_STREAM)
        see(s, r->bytes.data);
    if (r->kind == REC_ACK)
        see_number(s, r->ack.tcp_offset);
    if (r->kind == REC_SILENCE)
        see_number(s, r->silence.in_flight);
}

static void put(void *ctx, struct record *r)
{
    struct seen *s = ctx;
    struct record all = *r; /* as the model does */

    s->count++;
    see_number(s, (uint64_t)all.kind);
    see_number(s, all.exchange);
    see_number(s, (uint64_t)all.at.time);
    if (r->kind == REC_REQUEST)
        see_request(s, &r->request);
    else if (r->kind == REC_EVENT)
        see_event(s, &r->event);
    else if (r->kind == REC_BODY)
        see_body(s, &r->body);
    else
        see_rest(s, r);
}

/* ---- records whose texts live in one lent buffer ---- */

struct lender {
    struct rpc_scanner *scanner;
    struct tool_hint tool[2];
    struct rpc_detail detail;
    uint8_t sha256[32];
    size_t used;
    uint8_t bytes[BIG + 4096];
};

static PRINTF_LIKE(2, 3) struct slice lend(struct lender *l, const char *fmt, ...)
{
    char *at = (char *)l->bytes + l->used;
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(at, 200, fmt, ap);
    va_end(ap);
    assert_in_range(len, 0, 199);
    l->used += (size_t)len;
    return (struct slice){ (uint8_t *)at, (size_t)len };
}

/* A message whose payload has about `size` bytes. */
static void lend_body(struct lender *l, unsigned n, size_t size, struct rec_body *b)
{
    struct slice head = lend(l,
                             "[{\"jsonrpc\":\"2.0\",\"id\":\"i%u\",\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"t\",\"_meta\":{\"progressToken\":9}}},"
                             "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"",
                             n);
    memset(l->bytes + l->used, 'x', size);
    l->used += size;
    struct slice end = lend(l, "\"}}]");
    b->payload = (struct slice){ head.ptr, (size_t)(end.ptr + end.len - head.ptr) };
    b->status = rpc_scan(l->scanner, b->payload);
    assert_int_equal(b->status, RPC_OK);
    b->present = b->whole = true;
    b->count = l->scanner->count;
    b->msg = l->scanner->msg;
    memset(l->sha256, (int)(n & 0xff), sizeof(l->sha256));
    b->sha256 = n % 3 ? l->sha256 : NULL;
}

static void lend_detail(struct lender *l, unsigned n, struct rec_body *b)
{
    l->tool[0] = (struct tool_hint){ .name = lend(l, "tool-%u", n), .idempotent = true };
    l->tool[1] = (struct tool_hint){ .name = lend(l, "other-%u", n) };
    l->detail = (struct rpc_detail){ .client_name = lend(l, "client %u", n),
                                     .protocol_version = lend(l, "2026-%u", n),
                                     .tool = l->tool,
                                     .tool_count = 2 };
    b->detail = &l->detail;
}

static void fill_event(struct lender *l, unsigned n, struct record *r)
{
    size_t size = n % 97 == 0 ? BIG : n % 1000;

    r->event = (struct rec_event){ .id = lend(l, "id_%u", n), .tcp_end = n };
    if (n % 5 == 0) {
        r->event.data = SLICE_LIT("");
        return;
    }
    lend_body(l, n, size, &r->event.body);
    r->event.data = n % 7 ? r->event.body.payload : lend(l, "other data %u", n);
}

static void fill(struct lender *l, unsigned n, struct record *r)
{
    l->used = 0;
    *r = (struct record){ .kind = (enum record_kind)(n % (REC_STREAM + 1)),
                          .exchange = n,
                          .at = { .time = n } };
    switch (r->kind) {
    case REC_REQUEST:
        r->request = (struct rec_request){ .target = lend(l, "/mcp?%u", n),
                                           .session = SLICE_LIT(""),
                                           .user_agent = lend(l, "agent %u", n) };
        lend_body(l, n, n % 50, &r->request.body);
        lend_detail(l, n, &r->request.body);
        break;
    case REC_RESPONSE: r->response.content_type = lend(l, "text/%u", n); break;
    case REC_EVENT: fill_event(l, n, r); break;
    case REC_BODY:
        r->body = (struct rec_body){ 0 };
        lend_body(l, n, n % 2000, &r->body);
        break;
    case REC_END: r->end.tail_data = lend(l, "{\"jsonrpc\":%u", n); break;
    case REC_NOTE: r->note.text = lend(l, "note %u", n); break;
    case REC_ACK: r->ack.tcp_offset = n; break;
    case REC_SILENCE: r->silence.in_flight = n; break;
    case REC_STREAM: r->bytes.data = lend(l, "data: %u", n); break;
    case REC_COMMENT:
    case REC_GAP: break;
    }
}

static void compare(bool own_thread)
{
    struct lender *l = mem_alloc(sizeof(*l));
    struct seen direct = { 0 };
    struct seen queued = { 0 };
    struct record_queue *q =
        record_queue_new((struct record_sink){ .put = put, .ctx = &queued }, own_thread);

    l->scanner = rpc_scanner_new();
    assert_non_null(q);
    struct record_sink in = record_queue_sink(q);
    for (unsigned n = 0; n < 5000; n++) {
        struct record r;
        fill(l, n, &r);
        put(&direct, &r);
        in.put(in.ctx, &r);
        memset(l->bytes, '#', l->used);
        memset(l->tool, 0, sizeof(l->tool));
        memset(&l->detail, 0, sizeof(l->detail));
    }
    record_queue_free(q);
    assert_int_equal(queued.count, 5000);
    assert_int_equal(queued.count, direct.count);
    assert_true(queued.hash == direct.hash);
    rpc_scanner_free(l->scanner);
    free(l);
}

static void same_records(void **state)
{
    (void)state;
    compare(true);
}

static void same_records_here(void **state)
{
    (void)state;
    compare(false);
}

static void nothing_put(void **state)
{
    struct seen seen = { 0 };

    (void)state;
    record_queue_free(record_queue_new((struct record_sink){ .put = put, .ctx = &seen }, true));
    record_queue_free(record_queue_new((struct record_sink){ .put = put, .ctx = &seen }, false));
    record_queue_free(NULL);
    assert_int_equal(seen.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_records),
        cmocka_unit_test(same_records_here),
        cmocka_unit_test(nothing_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
