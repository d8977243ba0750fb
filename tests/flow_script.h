/*
 * flow_script.h - segments written down as lines of text, and chunks turned into lines.
 *
 *     A 100 S                     side A sends a SYN with sequence number 100
 *     B 500 SA a=101 w=1000       flags S F R A; A is implied by a=
 *     A 101 a=501 "GET"           payload; \0, \r and \n are read as in C
 *     A 104 a=501 "xy" wire=10    ... of which the capture holds two bytes only
 *     B 501 a=104 t=300           at 300 ms; without t= one millisecond after the last
 *
 * Also ws= (window scale of a SYN), p= (port of A), ttl=, id=, in= (input), l= (link id).
 */
#ifndef FLOW_SCRIPT_H
#define FLOW_SCRIPT_H

#include "flow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct script {
    struct buf text;
    int64_t ms; /* of the last segment */
    uint32_t frame;
    uint8_t payload[256];
};

static void PRINTF_LIKE(2, 3) script_say(struct script *s, const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (!buf_add(&s->text, slice_str(line)))
        abort();
}

static void script_init(struct script *s)
{
    *s = (struct script){ .ms = 1000 };
    buf_init(&s->text, (size_t)1 << 20);
}

static const char *script_text(struct script *s)
{
    if (!buf_add(&s->text, (struct slice){ (const uint8_t *)"", 1 }))
        abort();
    s->text.len--;
    return (const char *)s->text.ptr;
}

static struct slice script_payload(struct script *s, const char **p)
{
    size_t n = 0;

    for ((*p)++; **p != '"'; (*p)++) {
        char c = **p;
        if (c == '\\') {
            (*p)++;
            c = '\0';
            if (**p != '0')
                c = **p == 'r' ? '\r' : '\n';
        }
        if (n == sizeof(s->payload))
            abort();
        s->payload[n++] = (uint8_t)c;
    }
    (*p)++;
    return (struct slice){ s->payload, n };
}

static void script_flags(struct segment *seg, const char **p)
{
    static const struct {
        char name;
        uint8_t flag;
    } flags[] = { { 'S', TCP_SYN }, { 'F', TCP_FIN }, { 'R', TCP_RST }, { 'A', TCP_ACK } };

    for (; **p >= 'A' && **p <= 'Z'; (*p)++) {
        for (size_t i = 0; i < ARRAY_LEN(flags); i++)
            seg->flags |= flags[i].name == **p ? flags[i].flag : 0;
    }
}

static void script_option(struct script *s, struct segment *seg, struct endpoint *a, const char **p)
{
    const char *name = *p;
    char *end;

    while (**p != '=')
        (*p)++;
    size_t len = (size_t)(*p - name);
    unsigned long v = strtoul(*p + 1, &end, 10);
    *p = end;
    struct slice n = { (const uint8_t *)name, len };
    if (slice_eq(n, SLICE_LIT("a"))) {
        seg->ack = (uint32_t)v;
        seg->flags |= TCP_ACK;
    } else if (slice_eq(n, SLICE_LIT("w"))) {
        seg->window = (uint16_t)v;
    } else if (slice_eq(n, SLICE_LIT("ws"))) {
        seg->window_scale = (int8_t)v;
    } else if (slice_eq(n, SLICE_LIT("wire"))) {
        seg->wire_len = (uint32_t)v;
    } else if (slice_eq(n, SLICE_LIT("t"))) {
        s->ms = (int64_t)v + 1000;
    } else if (slice_eq(n, SLICE_LIT("ttl"))) {
        seg->ttl = (uint8_t)v;
    } else if (slice_eq(n, SLICE_LIT("id"))) {
        seg->ip_id = (uint16_t)v;
    } else if (slice_eq(n, SLICE_LIT("in"))) {
        seg->at.input = (uint32_t)v;
    } else if (slice_eq(n, SLICE_LIT("l"))) {
        seg->link_id = v;
    } else if (slice_eq(n, SLICE_LIT("p"))) {
        a->port = (uint16_t)v;
    } else {
        abort();
    }
}

/* The next line as a segment, borrowed from s until the next one; false: no more. */
static bool script_next(struct script *s, const char **text, struct segment *ret)
{
    struct endpoint a = { .addr = { [15] = 1 }, .port = 4000 };
    struct endpoint b = { .addr = { [15] = 2 }, .port = 80 };
    struct segment seg = { .window = 8000, .window_scale = -1, .ttl = 64 };
    const char *p = *text;
    char *end;

    while (*p == ' ' || *p == '\n')
        p++;
    if (*p == '\0')
        return false;
    s->ms++;
    const bool from_a = *p++ == 'A';
    seg.seq = (uint32_t)strtoul(p, &end, 10);
    p = end;
    while (*p != '\n' && *p != '\0') {
        if (*p == ' ')
            p++;
        else if (*p == '"')
            seg.payload = script_payload(s, &p);
        else if (*p >= 'A' && *p <= 'Z')
            script_flags(&seg, &p);
        else
            script_option(s, &seg, &a, &p);
    }
    if (seg.wire_len < seg.payload.len)
        seg.wire_len = (uint32_t)seg.payload.len;
    seg.src = from_a ? a : b;
    seg.dst = from_a ? b : a;
    seg.at.time = s->ms * NS_PER_MS;
    seg.at.frame = ++s->frame;
    *text = p;
    *ret = seg;
    return true;
}

static void script_silence(struct script *s, const struct silence *q)
{
    script_say(s, "quiet %dms", (int)((q->until.time - q->since.time) / NS_PER_MS));
    if (q->in_flight > 0)
        script_say(s, " flying %d", (int)q->in_flight);
    if (q->window_closed)
        script_say(s, " shut %dms by %d", (int)(q->window_ns / NS_PER_MS),
                   (int)q->window_place.frame);
    if (q->retransmissions > 0)
        script_say(s, " again %d", (int)q->retransmissions);
    if (q->probes > 0)
        script_say(s, " probes %d", (int)q->probes);
    script_say(s, q->ended_by_data ? " then data" : " then none");
}

static void script_piece(struct script *s, const struct piece *p)
{
    script_say(s, "\"");
    for (size_t i = 0; i < p->data.len; i++) {
        switch (p->data.ptr[i]) {
        case '\r': script_say(s, "\\r"); break;
        case '\n': script_say(s, "\\n"); break;
        case '\0': script_say(s, "\\0"); break;
        default: script_say(s, "%c", p->data.ptr[i]); break;
        }
    }
    script_say(s, "\" @%d%s", (int)p->tcp_end, p->ambiguous ? " ambiguous" : "");
}

static void script_done(struct script *s, const struct flow_chunk *c)
{
    script_say(s, "done %d", (int)c->conn->tcp_stream);
    if (c->oriented)
        script_say(s, ", %s is client", c->conn->client.port != 80 ? "A" : "B");
    script_say(s, "%s%s\n", c->conn->starts_late ? ", late" : "", c->idle ? ", idle" : "");
}

/* Side A is the one whose port is not 80. */
static bool script_is_a(const struct flow_chunk *c)
{
    unsigned client = c->oriented ? c->client_side : 0;
    const struct endpoint *e = c->side == client ? &c->conn->client : &c->conn->server;

    return e->port != 80;
}

__attribute__((unused)) static void script_chunk(struct script *s, const struct flow_chunk *c)
{
    if (c->kind == FLOW_DONE) {
        script_done(s, c);
        return;
    }
    script_say(s, script_is_a(c) ? "A " : "B ");
    switch (c->kind) {
    case FLOW_DATA: script_piece(s, &c->piece); break;
    case FLOW_GAP: script_say(s, "gap %d", (int)c->gap_bytes); break;
    case FLOW_ACK: script_say(s, "ack %d", (int)c->tcp_offset); break;
    case FLOW_SILENCE: script_silence(s, &c->silence); break;
    case FLOW_CLOSE:
        script_say(s, c->close == CLOSE_FIN ? "fin" : "rst");
        if (c->middlebox)
            script_say(s, " by a middlebox");
        break;
    case FLOW_CONFLICT: script_say(s, "conflict"); break;
    case FLOW_DONE: break;
    }
    script_say(s, "\n");
}

#endif
