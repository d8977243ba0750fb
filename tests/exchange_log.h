/*
 * exchange_log.h - stands in for exchange.c: what a layer calls becomes text, line by line, with
 * stream offsets. Consecutive body bytes make one line, so that the text does not depend on how the
 * bytes came. Include it in one file of a program that does not link exchange.c.
 *
 *     struct exchanges *log = exchanges_new(...);
 *     ...
 *     exchange_log_text(log)      valid until exchanges_free
 */
#ifndef EXCHANGE_LOG_H
#define EXCHANGE_LOG_H

#include "exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct exchanges {
    struct buf text;
    struct buf body; /* not written yet */
    uint64_t body_of;
    enum dir body_dir;
    uint64_t body_end;
    uint64_t serials;
    uint64_t open;
    bool frames; /* show frames too */
};

struct exchange {
    struct exchanges *all;
    uint64_t serial;
};

static void log_add(struct exchanges *all, struct slice s)
{
    if (!buf_add(&all->text, s))
        abort();
}

static void PRINTF_LIKE(2, 3) log_printf(struct exchanges *all, const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    log_add(all, slice_str(line));
}

static void log_quoted(struct exchanges *all, struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        if (c == '\r' || c == '\n')
            log_printf(all, "\\%c", c == '\r' ? 'r' : 'n');
        else if (c < ' ' || c >= 0x7f)
            log_printf(all, "\\x%02x", c);
        else
            log_add(all, (struct slice){ &c, 1 });
    }
}

static void log_flush(struct exchanges *all)
{
    if (all->body_of == 0)
        return;
    log_printf(all, "#%d %s \"", (int)all->body_of,
               all->body_dir == DIR_CLIENT ? "sends" : "receives");
    log_quoted(all, buf_slice(&all->body));
    log_printf(all, "\" @%d\n", (int)all->body_end);
    all->body.len = 0;
    all->body_of = 0;
}

static void log_body(const struct exchange *x, enum dir dir, const struct piece *piece)
{
    struct exchanges *all = x->all;

    if (piece->data.len == 0)
        abort(); /* no layer hands on nothing */
    if (all->body_of != x->serial || all->body_dir != dir)
        log_flush(all);
    all->body_of = x->serial;
    all->body_dir = dir;
    all->body_end = piece->tcp_end;
    if (!buf_add(&all->body, piece->data))
        abort();
}

static void log_frame(struct exchanges *all, struct place at)
{
    if (all->frames)
        log_printf(all, " in %d", (int)at.frame);
    log_add(all, SLICE_LIT("\n"));
}

static void log_flags(struct exchanges *all, unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {
        { RECF_DUPLICATE_HEADER, "duplicate" },
        { RECF_OBS_FOLD, "fold" },
        { RECF_TE_AND_CL, "te+cl" },
        { RECF_CHUNKED, "chunked" },
        { RECF_LENGTH, "length" },
        { RECF_UNTIL_CLOSE, "until-close" },
        { RECF_REQUEST_UNKNOWN, "request-unknown" },
        { RECF_PIPELINED, "pipelined" },
        { RECF_INTERIM, "interim" },
        { RECF_LENGTH_CONFLICT, "length-conflict" },
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (flags & names[i].flag)
            log_printf(all, " %s", names[i].name);
    }
}

static void log_head(struct exchanges *all, const struct http_head *head)
{
    log_flags(all, head->flags);
    log_printf(all, " @%d", (int)head->tcp_end);
    log_frame(all, head->last);
    for (size_t i = 0; i < head->count; i++) {
        log_add(all, SLICE_LIT("   "));
        log_quoted(all, head->header[i].name);
        log_add(all, SLICE_LIT("="));
        log_quoted(all, head->header[i].value);
        log_add(all, head->header[i].folded ? SLICE_LIT(" (folded)\n") : SLICE_LIT("\n"));
    }
}

static const char *exchange_log_text(struct exchanges *all)
{
    log_flush(all);
    log_add(all, (struct slice){ (const uint8_t *)"", 1 });
    all->text.len--;
    return (const char *)all->text.ptr;
}

struct exchanges *exchanges_new(struct record_sink sink, const struct exchange_limits *limits)
{
    struct exchanges *all = mem_alloc(sizeof(*all));

    (void)sink;
    (void)limits;
    buf_init(&all->text, (size_t)64 << 20);
    buf_init(&all->body, (size_t)64 << 20);
    return all;
}

void exchanges_free(struct exchanges *all)
{
    buf_release(&all->text);
    buf_release(&all->body);
    free(all);
}

void exchanges_note(struct exchanges *all, uint64_t exchange, struct rec_note note, struct place at)
{
    log_flush(all);
    log_printf(all, "#%d note: " SLICE_FMT, (int)exchange, SLICE_ARG(note.text));
    log_frame(all, at);
}

void exchanges_late_ack(struct exchanges *all, uint64_t serial, uint64_t tcp_offset,
                        struct place at)
{
    log_flush(all);
    log_printf(all, "#%d late ack @%d", (int)serial, (int)tcp_offset);
    log_frame(all, at);
}

struct exchange *exchange_open(struct exchanges *all, const struct conn *conn, uint64_t conn_serial)
{
    struct exchange *x = mem_alloc(sizeof(*x));

    (void)conn;
    (void)conn_serial;
    x->all = all;
    x->serial = ++all->serials;
    all->open++;
    return x;
}

uint64_t exchange_serial(const struct exchange *x)
{
    return x->serial;
}

void exchange_request_head(struct exchange *x, const struct http_head *head)
{
    log_flush(x->all);
    log_printf(x->all, "#%d asks ", (int)x->serial);
    log_quoted(x->all, head->method);
    log_add(x->all, SLICE_LIT(" "));
    log_quoted(x->all, head->target);
    log_head(x->all, head);
}

void exchange_request_body(struct exchange *x, const struct piece *piece)
{
    log_body(x, DIR_CLIENT, piece);
}

static void log_gap(struct exchange *x, const char *who, uint64_t len, bool in_head)
{
    log_flush(x->all);
    log_printf(x->all, "#%d gap of %d in the %s%s\n", (int)x->serial, (int)len, who,
               in_head ? " head" : "");
}

void exchange_request_gap(struct exchange *x, uint64_t len, bool in_head, struct place at)
{
    (void)at;
    log_gap(x, "request", len, in_head);
}

void exchange_request_end(struct exchange *x, bool complete, struct place at)
{
    log_flush(x->all);
    log_printf(x->all, "#%d asked%s", (int)x->serial, complete ? "" : " in part");
    log_frame(x->all, at);
}

void exchange_response_head(struct exchange *x, const struct http_head *head, struct place at)
{
    log_flush(x->all);
    if (head) {
        log_printf(x->all, "#%d answer %d", (int)x->serial, head->status);
        log_head(x->all, head);
        return;
    }
    log_printf(x->all, "#%d answer without its head", (int)x->serial);
    log_frame(x->all, at);
}

void exchange_response_body(struct exchange *x, const struct piece *piece)
{
    log_body(x, DIR_SERVER, piece);
}

void exchange_response_gap(struct exchange *x, uint64_t len, bool in_head, struct place at)
{
    (void)at;
    log_gap(x, "answer", len, in_head);
}

void exchange_ack(struct exchange *x, uint64_t tcp_offset, struct place at)
{
    log_flush(x->all);
    log_printf(x->all, "#%d ack @%d", (int)x->serial, (int)tcp_offset);
    log_frame(x->all, at);
}

bool exchange_is_leg(const struct exchange *x)
{
    return x != NULL;
}

void exchange_silence(struct exchange *x, const struct silence *s)
{
    log_flush(x->all);
    log_printf(x->all, "#%d silence", (int)x->serial);
    if (s->window_closed)
        log_printf(x->all, ", window closed for %d ms", (int)(s->window_ns / NS_PER_MS));
    log_frame(x->all, s->since);
}

void exchange_end(struct exchange *x, const struct exchange_end_facts *facts, struct place at)
{
    static const char *const kinds[] = { "complete",   "fin",  "rst", "client-fin",
                                         "client-rst", "open", "gap" };

    log_flush(x->all);
    log_printf(x->all, "#%d end: %s", (int)x->serial, kinds[facts->kind]);
    if (facts->h2_code > 0)
        log_printf(x->all, " by code %d", (int)facts->h2_code - 1);
    log_frame(x->all, at);
    x->all->open--;
    free(x);
}

#endif
