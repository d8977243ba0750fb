/*
 * bench_scan.c - how fast sse_next and rpc_scan go through a generated body, in MB/s and against
 * memchr over the same bytes in the same run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rpc.h"
#include "sse.h"

#define BODY_BYTES ((size_t)8 << 20)
#define ROUNDS     20
#define PIECE      ((size_t)16 << 10) /* as a chunk or a TLS record comes */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The text of message number i; the length of its long string decides its size. */
static int message(char *to, size_t room, unsigned i)
{
    static const char filler[] =
        "The quick brown fox jumps over the lazy dog, and the dog, being lazy, lets it. ";
    int text = (int)(i % (sizeof(filler) - 1));

    switch (i % 4) {
    case 0:
        return snprintf(to, room,
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                        "\"progressToken\":\"t-%u\",\"progress\":%u,\"total\":100,\"message\":"
                        "\"%s%.*s\"}}",
                        i / 100, i % 100, filler, text, filler);
    case 1:
        return snprintf(
            to, room,
            "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{\"content\":[{\"type\":\"text\","
            "\"text\":\"{\\\"city\\\": \\\"Oslo\\\", \\\"temp\\\": %u}\\n%s%s%s%.*s\"}],"
            "\"isError\":false,\"structuredContent\":{\"city\":\"Oslo\",\"temp\":%u}}}",
            i, i % 30, filler, filler, filler, text, filler, i % 30);
    case 2:
        return snprintf(
            to, room,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
            "\"level\":\"info\",\"logger\":\"worker\",\"data\":\"caf\xc3\xa9: %s%s%s%s%.*s\""
            "}}",
            filler, filler, filler, filler, text, filler);
    default:
        return snprintf(
            to, room,
            "{\"jsonrpc\":\"2.0\",\"id\":\"srv-%u\",\"method\":\"sampling/createMessage\","
            "\"params\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
            "\"text\":\"%s%s%s%s%s%s%s%s%.*s\"}}],\"maxTokens\":100,\"_meta\":{"
            "\"progressToken\":%u}}}",
            i, filler, filler, filler, filler, filler, filler, filler, filler, text, filler, i);
    }
}

static struct slice make_body(char *body)
{
    size_t len = 0;

    for (unsigned i = 0; BODY_BYTES - len > 4096; i++) {
        len += (size_t)snprintf(body + len, 64, "event: message\nid: %u\ndata: ", i);
        len += (size_t)message(body + len, 2048, i);
        body[len++] = '\n';
        body[len++] = '\n';
    }
    return (struct slice){ (const uint8_t *)body, len };
}

/* Counts the messages, or the events when sc is NULL. */
static size_t decode(struct slice body, struct rpc_scanner *sc)
{
    struct sse d;
    struct sse_item item;
    struct slice piece;
    size_t n = 0;

    sse_init(&d, SSE_MAX_EVENT);
    while (body.len > 0) {
        if (!slice_take(&body, body.len < PIECE ? body.len : PIECE, &piece))
            break;
        while (sse_next(&d, &piece, &item)) {
            if (!sc)
                n++;
            else if (rpc_scan(sc, item.data) == RPC_OK)
                n += sc->count;
        }
    }
    sse_release(&d);
    return n;
}

static size_t lines(struct slice body)
{
    const uint8_t *end = body.ptr + body.len;
    const uint8_t *p = body.ptr;
    size_t n = 0;

    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        n++;
    }
    return n;
}

struct measure {
    double mbps;
    size_t count;
};

static struct measure measure(struct slice body, struct rpc_scanner *sc, bool scan)
{
    struct measure best = { 0 };

    for (int i = 0; i < ROUNDS; i++) {
        double begin = seconds();
        best.count = scan ? decode(body, sc) : lines(body);
        double mbps = (double)body.len / 1e6 / (seconds() - begin);
        best.mbps = mbps > best.mbps ? mbps : best.mbps;
    }
    return best;
}

int main(void)
{
    char *text = mem_alloc(BODY_BYTES);
    struct slice body = make_body(text);
    struct rpc_scanner *sc = rpc_scanner_new();
    struct measure line = measure(body, NULL, false);
    struct measure sse = measure(body, NULL, true);
    struct measure all = measure(body, sc, true);

    printf("body           %8.1f MB, %zu events, %zu messages, %zu bytes each\n",
           (double)body.len / 1e6, sse.count, all.count, body.len / all.count);
    printf("memchr by line %8.0f MB/s\n", line.mbps);
    printf("sse            %8.0f MB/s  %6.3f of memchr\n", sse.mbps, sse.mbps / line.mbps);
    printf("sse + rpc      %8.0f MB/s  %6.3f of memchr\n", all.mbps, all.mbps / line.mbps);
    printf("rpc alone      %8.0f MB/s\n", 1 / (1 / all.mbps - 1 / sse.mbps));
    rpc_scanner_free(sc);
    free(text);
    return all.count == sse.count ? 0 : 1;
}
