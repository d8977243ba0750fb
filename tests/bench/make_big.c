/*
 * make_big.c - writes an SSE-heavy capture for measurements: make_big OUT.pcap MEGABYTES [SESSIONS]
 *
 * Every session opens one POST stream; events of about 400 bytes, one chunk a segment, come in turn
 * on all of them, every second segment is acknowledged; each stream ends with its response. Ids are
 * dense per stream, progress values increase. The same arguments give the same bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct side {
    uint32_t seq;
};

struct session {
    struct side client, server;
    uint16_t port;
    uint32_t events;
    char id[40];
};

static FILE *out;
static uint64_t now = UINT64_C(1788249600000000); /* us */
static uint64_t written;

static void put32(uint32_t v)
{
    fwrite(&v, 4, 1, out);
}

static void be16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void be32(uint8_t *p, uint32_t v)
{
    be16(p, v >> 16);
    be16(p + 2, v & 0xffff);
}

static void segment(struct session *s, int from_server, uint8_t flags, const char *data, size_t len)
{
    uint8_t h[54] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45 };
    struct side *me = from_server ? &s->server : &s->client;
    struct side *peer = from_server ? &s->client : &s->server;

    be16(h + 16, (uint32_t)(40 + len));
    h[22] = 64;
    h[23] = 6;
    be32(h + 26, from_server ? 0xc0000201 : 0xc0000202);
    be32(h + 30, from_server ? 0xc0000202 : 0xc0000201);
    be16(h + 34, from_server ? 8080 : s->port);
    be16(h + 36, from_server ? s->port : 8080);
    be32(h + 38, me->seq);
    be32(h + 42, flags == 2 ? 0 : peer->seq);
    h[46] = 0x50;
    h[47] = flags;
    be16(h + 48, 65000);
    put32((uint32_t)(now / 1000000));
    put32((uint32_t)(now % 1000000));
    put32((uint32_t)(54 + len));
    put32((uint32_t)(54 + len));
    fwrite(h, sizeof(h), 1, out);
    fwrite(data, 1, len, out);
    written += 70 + len;
    me->seq += (uint32_t)len + (flags & 3 ? 1 : 0);
    now += 5;
}

static void text(struct session *s, int from_server, const char *t)
{
    segment(s, from_server, 0x18, t, strlen(t));
}

static void chunk(struct session *s, const char *event)
{
    char buf[2048];
    int n = snprintf(buf, sizeof(buf), "%zx\r\n%s\r\n", strlen(event), event);

    segment(s, 1, 0x18, buf, (size_t)n);
}

static void post(struct session *s, const char *body)
{
    char buf[2048];
    char session[80] = "";

    if (s->id[0])
        snprintf(session, sizeof(session), "Mcp-Session-Id: %s\r\n", s->id);
    snprintf(buf, sizeof(buf),
             "POST /mcp HTTP/1.1\r\nHost: bench.example\r\nAccept: application/json, "
             "text/event-stream\r\n"
             "Content-Type: application/json\r\n%sMCP-Protocol-Version: 2025-11-25\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             session, strlen(body), body);
    text(s, 0, buf);
}

static void open_session(struct session *s, unsigned n)
{
    static const char init[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":"
                               "\"2025-11-25\",\"capabilities\":{},"
                               "\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
    char buf[1024];

    s->port = (uint16_t)(20000 + n);
    s->client.seq = 1000 * n;
    s->server.seq = 77000 * n;
    segment(s, 0, 0x02, "", 0);
    segment(s, 1, 0x12, "", 0);
    segment(s, 0, 0x10, "", 0);
    post(s,
         "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
         "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}"
         "}");
    snprintf(s->id, sizeof(s->id), "session-%08x-%04u", n * 2654435761u, n);
    snprintf(buf, sizeof(buf),
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             s->id, sizeof(init) - 1, init);
    text(s, 1, buf);
    post(s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    text(s, 1, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    post(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"long\","
            "\"arguments\":{},\"_meta\":{\"progressToken\":1}}}");
    text(
        s, 1,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void event(struct session *s)
{
    static const char filler[] =
        "some words about what the tool is doing at the moment, long enough to look like a real "
        "message of a "
        "server that reports what it has found, which file it reads, and how much of it is left to "
        "do before "
        "the result can be sent; with \\\"quoted\\\" parts and a few numbers 1 2 3";
    char buf[1024];

    s->events++;
    snprintf(buf, sizeof(buf),
             "event: message\nid: %s_%u\ndata: "
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
             "\"params\":{\"progressToken\":1,\"progress\":%u,\"message\":\"%s\"}}\n\n",
             s->id, s->events, s->events, filler);
    chunk(s, buf);
    if (s->events % 2 == 0)
        segment(s, 0, 0x10, "", 0);
}

static void close_session(struct session *s)
{
    char buf[512];

    snprintf(buf, sizeof(buf),
             "event: message\nid: %s_%u\ndata: "
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n",
             s->id, s->events + 1);
    chunk(s, buf);
    text(s, 1, "0\r\n\r\n");
    segment(s, 0, 0x10, "", 0);
    segment(s, 0, 0x11, "", 0);
    segment(s, 1, 0x11, "", 0);
    segment(s, 0, 0x10, "", 0);
}

int main(int argc, char **argv)
{
    unsigned sessions = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 100;
    uint64_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) * 1000000 : 0;

    if (bytes == 0 || sessions == 0 || sessions > 40000) {
        fputs("usage: make_big OUT.pcap MEGABYTES [SESSIONS]\n", stderr);
        return 2;
    }
    out = fopen(argv[1], "wb");
    struct session *s = calloc(sessions, sizeof(*s));
    if (!out || !s) {
        fputs("make_big: cannot write\n", stderr);
        return 1;
    }
    put32(0xa1b2c3d4);
    put32(2 | 4u << 16);
    put32(0);
    put32(0);
    put32(262144);
    put32(1);
    for (unsigned i = 0; i < sessions; i++)
        open_session(&s[i], i + 1);
    while (written < bytes) {
        for (unsigned i = 0; i < sessions; i++)
            event(&s[i]);
        now += 1000;
    }
    for (unsigned i = 0; i < sessions; i++)
        close_session(&s[i]);
    free(s);
    return fclose(out) != 0;
}
