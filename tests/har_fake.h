/*
 * har_fake.h - stands in for input.c and exchange.c: bytes in memory as an input, and every call of
 * exchange.h as a line of text. Included once by a test of har.c.
 *
 *     text = har_log(bytes)      free() it
 *
 * Times are ms after 2026-01-01T00:00:00Z.
 */
#ifndef HAR_FAKE_H
#define HAR_FAKE_H

#include "har.h"
#include "sse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct input {
    struct slice rest;
    size_t step; /* most bytes of one read */
    const char *damage;
};

size_t input_read(struct input *in, void *buf, size_t n)
{
    struct slice s;

    if (n > in->step)
        n = in->step;
    if (!slice_take(&in->rest, n < in->rest.len ? n : in->rest.len, &s) || s.len == 0)
        return 0;
    memcpy(buf, s.ptr, s.len);
    return s.len;
}

const char *input_damage(const struct input *in)
{
    return in->damage;
}

struct exchanges {
    FILE *out;
    uint64_t serial;
    int64_t last;   /* time of the last fact */
    bool backwards; /* a fact came before an earlier one */
    size_t open;    /* exchanges without an end */
    bool quiet;     /* notes of the file are left out */
};

struct exchange {
    struct exchanges *all;
    uint64_t serial;
    bool answered;
};

static void say(struct exchanges *all, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct exchanges *all, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(all->out, fmt, ap);
    va_end(ap);
}

static void say_text(struct exchanges *all, const char *name, struct slice s)
{
    say(all, " %s=\"", name);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\n')
            say(all, "\\n");
        else if (s.ptr[i] < 32)
            say(all, "\\x%02x", s.ptr[i]);
        else
            fputc(s.ptr[i], all->out);
    }
    say(all, "\"");
}

static void say_time(struct exchanges *all, struct place at)
{
    static const int64_t base = INT64_C(1767225600) * NS_PER_SEC;

    if (at.time < all->last)
        all->backwards = true;
    all->last = at.time;
    say(all, "%g", at.time == 0 ? 0.0 : (double)(at.time - base) / (double)NS_PER_MS);
}

void exchanges_note(struct exchanges *all, uint64_t exchange, struct rec_note note, struct place at)
{
    static const char *const name[] = {
        [NOTE_BODY_NOT_RECORDED] = "not-recorded",
        [NOTE_WEBSOCKET] = "websocket",
        [NOTE_HAR] = "har",
    };

    if (note.tcp_stream != UINT32_MAX)
        abort();
    if (all->quiet && exchange == 0 && note.kind == NOTE_HAR)
        return;
    say(all, "#%d note %s %d", (int)exchange, name[note.kind], (int)note.count);
    if (exchange == 0)
        say(all, " entry %u", at.frame);
    say_text(all, "text", note.text);
    say(all, "\n");
}

struct exchange *exchange_open(struct exchanges *all, const struct conn *conn, uint64_t conn_serial)
{
    struct exchange *x = mem_alloc(sizeof(*x));
    char buf[ENDPOINT_TEXT];

    if (!(conn_serial >> 63))
        abort();
    x->all = all;
    x->serial = ++all->serial;
    all->open++;
    say(all, "#%d entry %u %s%s", (int)x->serial, conn->first.frame,
        endpoint_text(&conn->server, buf), conn->tls ? " tls" : "");
    if (conn_serial >> 62 == 3)
        say(all, " conn=%x", (unsigned)(conn_serial & 0xfff));
    say(all, "\n");
    return x;
}

uint64_t exchange_serial(const struct exchange *x)
{
    return x->serial;
}

static void say_head(struct exchange *x, const struct http_head *h)
{
    if (h->authority.len > 0)
        say_text(x->all, "authority", h->authority);
    for (size_t i = 0; i < h->count; i++)
        say(x->all, " [" SLICE_FMT ": " SLICE_FMT "]", SLICE_ARG(h->header[i].name),
            SLICE_ARG(h->header[i].value));
    if (!(h->flags & RECF_HAR))
        abort();
    if (h->flags & RECF_NO_BODY_RECORDED)
        say(x->all, " NO-BODY");
    say(x->all, "\n");
}

void exchange_request_head(struct exchange *x, const struct http_head *h)
{
    say(x->all, "#%d ", (int)x->serial);
    say_time(x->all, h->first);
    say(x->all, " " SLICE_FMT " " SLICE_FMT, SLICE_ARG(h->method), SLICE_ARG(h->target));
    say_head(x, h);
}

void exchange_request_body(struct exchange *x, const struct piece *p)
{
    say(x->all, "#%d", (int)x->serial);
    say_text(x->all, "body", p->data);
    say(x->all, "\n");
}

void exchange_request_gap(struct exchange *x, uint64_t len, bool in_head, struct place at)
{
    (void)at;
    say(x->all, "#%d request gap %d%s\n", (int)x->serial, (int)len, in_head ? " head" : "");
}

void exchange_request_end(struct exchange *x, bool complete, struct place at)
{
    (void)at;
    if (!complete)
        say(x->all, "#%d request incomplete\n", (int)x->serial);
}

void exchange_response_head(struct exchange *x, const struct http_head *h, struct place at)
{
    x->answered = true;
    say(x->all, "#%d ", (int)x->serial);
    say_time(x->all, at);
    say(x->all, " %d", h->status);
    say_head(x, h);
}

void exchange_response_body(struct exchange *x, const struct piece *p)
{
    if (!x->answered)
        abort();
    say(x->all, "#%d ", (int)x->serial);
    say_time(x->all, p->at);
    say_text(x->all, p->no_time ? "untimed" : "data", p->data);
    say(x->all, "\n");
}

void exchange_response_gap(struct exchange *x, uint64_t len, bool in_head, struct place at)
{
    (void)at;
    say(x->all, "#%d response gap %d%s\n", (int)x->serial, (int)len, in_head ? " head" : "");
}

void exchange_response_event(struct exchange *x, const struct sse_item *item, struct place at,
                             bool no_time, bool stripped)
{
    if (!x->answered)
        abort();
    say(x->all, "#%d ", (int)x->serial);
    say_time(x->all, at);
    say(x->all, " event%s%s", no_time ? " untimed" : "", stripped ? " stripped" : "");
    if (item->has_id)
        say_text(x->all, "id", item->id);
    if (item->event.len > 0)
        say_text(x->all, "name", item->event);
    say_text(x->all, "data", item->data);
    say(x->all, "\n");
}

void exchange_end(struct exchange *x, const struct exchange_end_facts *f, struct place at)
{
    static const char *const name[] = {
        [END_COMPLETE] = "complete",
        [END_FIN] = "fin",
        [END_RST] = "rst",
        [END_CLIENT_FIN] = "client-fin",
        [END_CLIENT_RST] = "client-rst",
        [END_OPEN] = "open",
        [END_GAP] = "gap",
    };

    say(x->all, "#%d ", (int)x->serial);
    say_time(x->all, at);
    say(x->all, " %s%s\n", name[f->kind], f->close_not_known ? "?" : "");
    x->all->open--;
    free(x);
}

struct har_run {
    char *text;
    enum har_status status;
    char message[256];
    char producer[100];
    uint64_t entries;
    bool backwards;
    size_t left_open;
};

static struct har_run har_run_steps(struct slice bytes, size_t step, bool quiet)
{
    struct exchanges all = { .quiet = quiet };
    struct input in = { .rest = bytes, .step = step };
    struct har_run run = { 0 };
    struct input_error err;
    size_t len;
    int64_t t;

    all.out = open_memstream(&run.text, &len);
    struct har *har = har_open(&in, 2, &all, &err);
    if (!all.out || !har)
        abort();
    while (har_time(har, &t))
        har_step(har);
    run.status = har_status(har);
    snprintf(run.message, sizeof(run.message), "%s", har_message(har));
    snprintf(run.producer, sizeof(run.producer), SLICE_FMT, SLICE_ARG(har_producer(har)));
    run.entries = har_entries(har);
    run.backwards = all.backwards;
    run.left_open = all.open;
    har_free(har);
    fclose(all.out);
    return run;
}

#endif
