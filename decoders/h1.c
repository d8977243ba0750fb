/*
 * h1.c - see h1.h.
 *
 * http-parser frames the messages: heads, lengths, chunks. Its callbacks collect, hand body bytes
 * on, and pause at the end of a head and of a message, so that the exact offset of both is known
 * and everything else happens outside of them. What it cannot do is done here: pairing, gaps, and
 * finding a message again (h1_sync.h).
 *
 * The queue holds the requests not yet answered. `response` is the exchange whose response began.
 * After a gap that may have swallowed whole messages the connection is in doubt: then a response is
 * paired only if one request alone waits for it, and a client that was never seen to send ahead
 * ends the doubt by its next request, for it must have had all the answers.
 */
#include "h1.h"

#include "h1_head.h"
#include "h1_sync.h"

#include <stdlib.h>

/* Both this library and record.h have an enum of that name. */
#define http_method http_parser_method /* NOLINT(readability-identifier-naming) */
#include <http_parser.h>
#undef http_method

#define QUEUE_MAX  1024
#define LATE_MAX   16
#define NO_OFFSET  UINT64_MAX
#define CHUNK_HEAD "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

enum mode {
    MODE_PARSE,
    MODE_LOST,   /* look for the start of a message */
    MODE_SEARCH, /* server, behind a gap or joined late: look for a start, or for chunks */
    MODE_RAW,    /* an event stream without head and chunks */
    MODE_OFF,    /* no HTTP any more, or the connection was reset */
};

enum where {
    WHERE_START, /* between messages */
    WHERE_HEAD,
    WHERE_BODY,
};

/* One request and its response. */
struct pending {
    struct pending *next;
    struct exchange *x; /* NULL until the request's head is whole */
    bool is_head;
    bool is_connect;
    bool pipelined;
    bool unknown; /* the request's head was not seen */
    bool interim;
    bool answered;    /* the final head was handed on */
    bool half_closed; /* ... when the client had closed its side already */
    uint64_t end;     /* offset after the last byte handed on */
};

/* Ended, with bytes that are not acknowledged yet. */
struct late {
    uint64_t serial;
    uint64_t end;
};

struct side {
    struct h1 *h;
    enum dir dir;
    enum mode mode;
    enum where where;
    http_parser parser;
    const struct piece *piece; /* under the parser */
    struct place first;        /* of the message */
    struct h1_head head;
    bool skip_body;
    /* what the callbacks saw */
    bool head_done;
    bool message_done;
    bool in_chunk;
    bool in_trailer;
    bool muted; /* the bytes are ours, not the peer's */
    /* LOST */
    bool edge; /* the next byte may start a message */
    uint8_t carry[H1_START_MAX];
    size_t carry_len;
    struct piece carry_piece;
    /* SEARCH */
    struct h1_sync sync;
    bool joined; /* since the beginning of the capture, not behind a gap */
};

struct h1 {
    struct exchanges *all;
    const struct conn *conn;
    uint64_t serial;
    struct h1_upgrade upgrade;
    struct layer up;       /* has taken over */
    struct pending *first; /* the queue */
    struct pending *last;
    size_t waiting;
    struct pending *request;  /* whose request is being parsed; in the queue, or `response` */
    struct pending *response; /* whose response has begun */
    bool doubt;
    bool pipelines; /* the client was seen to send ahead */
    bool client_closed;
    struct place client_close;
    uint64_t acked;
    struct place acked_at;
    size_t lates;
    struct side side[2];
    struct late late[LATE_MAX];
};

static void settle(struct side *s);
static void feed(struct side *s, const struct piece *piece);

static struct side *side_of(struct h1 *h, enum dir dir)
{
    return &h->side[dir];
}

static void note(struct h1 *h, const struct pending *p, enum note_kind kind, const char *text,
                 struct place at)
{
    exchanges_note(h->all, p && p->x ? exchange_serial(p->x) : 0,
                   (struct rec_note){ kind, 1, h->conn->tcp_stream, slice_str(text) }, at);
}

static struct exchange *opened(struct h1 *h, struct pending *p)
{
    if (!p->x) {
        p->x = exchange_open(h->all, h->conn, h->serial);
        p->unknown = true;
    }
    return p->x;
}

/* The queue. */

static struct pending *queue_pop(struct h1 *h)
{
    struct pending *p = h->first;

    h->first = p->next;
    if (!h->first)
        h->last = NULL;
    h->waiting--;
    p->next = NULL;
    return p;
}

static void late_add(struct h1 *h, uint64_t serial, uint64_t end)
{
    if (end <= h->acked)
        return;
    if (h->lates == LATE_MAX) {
        memmove(h->late, h->late + 1, sizeof(h->late) - sizeof(h->late[0]));
        h->lates--;
    }
    h->late[h->lates++] = (struct late){ serial, end };
}

/* Ends and frees p, which is in no queue any more. */
static void pending_end(struct h1 *h, struct pending *p, enum end_kind kind, struct place at)
{
    bool reset = kind == END_RST || kind == END_CLIENT_RST;
    const struct exchange_end_facts facts = {
        .kind = kind,
        .middlebox = reset && h->conn->middlebox,
        .truncated_capture = kind == END_OPEN && h->conn->truncated,
    };

    if (h->request == p)
        h->request = NULL;
    if (h->response == p)
        h->response = NULL;
    if (p->x) {
        uint64_t serial = exchange_serial(p->x);
        exchange_end(p->x, &facts, at);
        late_add(h, serial, p->end);
    }
    free(p);
}

static void end_waiting(struct h1 *h, enum end_kind kind, struct place at)
{
    while (h->first)
        pending_end(h, queue_pop(h), kind, at);
}

/* Nothing of the server is under way: not in a message, not a stream that still counts. */
static bool server_between(struct h1 *h)
{
    const struct side *s = side_of(h, DIR_SERVER);

    return s->mode != MODE_PARSE || s->where == WHERE_START;
}

/* The client sends its next request: the answers to the ones before are lost in the gap. */
static void doubt_end(struct h1 *h, struct place at)
{
    struct side *s = side_of(h, DIR_SERVER);

    settle(s);
    if (!server_between(h))
        return;
    if (h->response)
        pending_end(h, h->response, END_GAP, at);
    end_waiting(h, END_GAP, at);
    if (s->mode == MODE_RAW)
        s->mode = MODE_SEARCH;
    h->doubt = false;
}

static void request_begin(struct h1 *h, struct place at)
{
    if (h->doubt && !h->pipelines)
        doubt_end(h, at);
    if (h->waiting == QUEUE_MAX) {
        note(h, h->first, NOTE_LIMIT, "too many requests without an answer", at);
        pending_end(h, queue_pop(h), END_GAP, at);
        h->doubt = true;
    }
    struct pending *p = mem_alloc(sizeof(*p));
    p->pipelined = h->response || h->first;
    if (h->last)
        h->last->next = p;
    else
        h->first = p;
    h->last = p;
    h->waiting++;
    h->request = p;
}

/* Which request does the response that begins answer? */
static struct pending *response_pair(struct h1 *h, struct place at)
{
    if (h->response)
        return h->response; /* after a 1xx */
    if (h->first && (!h->doubt || h->waiting == 1)) {
        h->response = queue_pop(h);
        h->pipelines |= h->response->pipelined && !h->doubt;
        h->doubt = h->doubt && h->first;
        return h->response;
    }
    /* A server may close an idle connection with a 408 (RFC 9110 15.5.9). */
    bool idle = h->side[DIR_SERVER].parser.status_code == 408;
    if (!h->first && !h->doubt && !idle)
        note(h, NULL, NOTE_UNSOLICITED, "response without a request", at);
    h->response = mem_alloc(sizeof(*h->response));
    return h->response;
}

/* Heads. */

/* RFC 9112 6.3, as http-parser followed it. */
static unsigned head_flags(const struct side *s)
{
    unsigned flags = h1_head_flags(&s->head);

    if (s->skip_body)
        return flags & ~(unsigned)RECF_LENGTH;
    if (s->parser.flags & F_CHUNKED)
        return flags | RECF_CHUNKED;
    if (s->dir == DIR_SERVER && !(flags & RECF_LENGTH))
        return flags | RECF_UNTIL_CLOSE;
    return flags;
}

static bool until_close(const struct side *s)
{
    return s->mode == MODE_RAW ||
           (s->mode == MODE_PARSE && s->where == WHERE_BODY && !(s->parser.flags & F_CHUNKED) &&
            s->parser.content_length == UINT64_MAX);
}

static void request_head(struct side *s, const struct http_head *base)
{
    struct pending *p = s->h->request;
    struct http_head head = *base;

    if (!p)
        return; /* answered, and over, before it was sent to its end */
    head.method = slice_str(http_method_str(s->parser.method));
    head.target = (struct slice){ s->head.text.ptr, s->head.target_len };
    if (p->pipelined)
        head.flags |= RECF_PIPELINED;
    p->is_head = s->parser.method == HTTP_HEAD;
    p->is_connect = s->parser.method == HTTP_CONNECT;
    if (p->x)
        return;
    p->x = exchange_open(s->h->all, s->h->conn, s->h->serial);
    exchange_request_head(p->x, &head);
}

/* Acknowledgements may overtake the bytes, or these were held back. */
static void acked_already(struct h1 *h, struct pending *p, uint64_t end)
{
    p->end = end;
    if (end <= h->acked)
        exchange_ack(p->x, h->acked, h->acked_at);
}

static void response_head(struct side *s, const struct http_head *base)
{
    struct h1 *h = s->h;
    struct pending *p = h->response;
    struct http_head head = *base;

    head.status = (int)s->parser.status_code;
    if (head.status / 100 == 1) {
        p->interim = true;
        return; /* 101: see upgrade() */
    }
    opened(h, p);
    if (p->unknown)
        head.flags |= RECF_REQUEST_UNKNOWN;
    if (p->interim)
        head.flags |= RECF_INTERIM;
    exchange_response_head(p->x, &head, head.last);
    p->answered = true;
    p->half_closed = h->client_closed;
    acked_already(h, p, head.tcp_end);
}

/* The head's last byte is the last of `bytes`. */
static void head_end(struct side *s, const struct piece *bytes)
{
    h1_head_done(&s->head);
    const struct http_head head = { .header = s->head.header,
                                    .count = s->head.count,
                                    .flags = head_flags(s),
                                    .first = s->first,
                                    .last = bytes->at,
                                    .tcp_end = bytes->tcp_end };

    s->where = WHERE_BODY;
    if (s->dir == DIR_CLIENT)
        request_head(s, &head);
    else
        response_head(s, &head);
}

/* Bodies and ends. */

static void body(struct side *s, const struct piece *piece)
{
    struct h1 *h = s->h;

    if (s->dir == DIR_CLIENT) {
        if (h->request && h->request->x)
            exchange_request_body(h->request->x, piece);
        return;
    }
    if (!h->response)
        return;
    exchange_response_body(h->response->x, piece);
    acked_already(h, h->response, piece->tcp_end);
}

static void parser_reset(struct side *s)
{
    http_parser_init(&s->parser, s->dir == DIR_CLIENT ? HTTP_REQUEST : HTTP_RESPONSE);
    s->parser.data = s;
    s->parser.lenient_http_headers = 1; /* odd traffic is data */
    s->parser.allow_chunked_length = 1;
    s->where = WHERE_START;
    s->in_chunk = false;
    s->in_trailer = false;
    s->skip_body = false;
}

/* 101: another protocol takes over, or nobody does. */
static void upgrade(struct side *s, const struct piece *bytes)
{
    struct h1 *h = s->h;
    struct pending *p = h->response;
    struct slice protocol = h1_head_get(&s->head, SLICE_LIT("Upgrade"));

    h->response = NULL;
    opened(h, p);
    if (h->upgrade.take)
        h->up = h->upgrade.take(h->upgrade.ctx, protocol, p->x);
    if (h->up.ops) {
        if (h->request == p)
            h->request = NULL;
        free(p); /* the exchange is theirs now */
        return;
    }
    const struct http_head head = { .status = 101,
                                    .header = s->head.header,
                                    .count = s->head.count,
                                    .flags = p->unknown ? RECF_REQUEST_UNKNOWN : 0,
                                    .first = s->first,
                                    .last = bytes->at,
                                    .tcp_end = bytes->tcp_end };
    exchange_response_head(p->x, &head, bytes->at);
    p->end = bytes->tcp_end;
    pending_end(h, p, END_COMPLETE, bytes->at);
    h->side[DIR_CLIENT].mode = h->side[DIR_SERVER].mode = MODE_OFF;
}

static void response_end(struct side *s, const struct piece *bytes)
{
    struct h1 *h = s->h;
    struct pending *p = h->response;
    unsigned status = s->parser.status_code;

    if (!p)
        return;
    if (status == 101) {
        upgrade(s, bytes);
        return;
    }
    if (!p->answered)
        return; /* 1xx: the final one is to come */
    if (p->is_connect && status / 100 == 2)
        h->side[DIR_CLIENT].mode = h->side[DIR_SERVER].mode = MODE_OFF;
    if (bytes->tcp_end != NO_OFFSET)
        p->end = bytes->tcp_end;
    pending_end(h, p, END_COMPLETE, bytes->at);
}

/* The message's last byte is the last of `bytes`. */
static void message_end(struct side *s, const struct piece *bytes)
{
    struct h1 *h = s->h;

    if (s->dir == DIR_SERVER) {
        response_end(s, bytes);
    } else if (h->request) {
        exchange_request_end(h->request->x, true, bytes->at);
        h->request = NULL;
    }
    parser_reset(s);
}

/* Callbacks of http-parser: collect, no more. */

static struct slice span(const char *at, size_t len)
{
    return (struct slice){ (const uint8_t *)at, len };
}

static int on_message_begin(http_parser *p)
{
    struct side *s = p->data;

    if (s->muted)
        return 0;
    h1_head_clear(&s->head);
    s->first = s->piece->at;
    s->where = WHERE_HEAD;
    if (s->dir == DIR_CLIENT)
        request_begin(s->h, s->first);
    return 0;
}

static int on_url(http_parser *p, const char *at, size_t len)
{
    struct side *s = p->data;

    return h1_head_target(&s->head, span(at, len)) ? 0 : 1;
}

static int on_header_field(http_parser *p, const char *at, size_t len)
{
    struct side *s = p->data;

    if (s->muted || s->in_trailer)
        return 0;
    /* A second Content-Length would be an error; h1_head_flags() tells of it instead. */
    p->flags &= (unsigned)~F_CONTENTLENGTH & 0xff;
    return h1_head_name(&s->head, span(at, len)) ? 0 : 1;
}

static int on_header_value(http_parser *p, const char *at, size_t len)
{
    struct side *s = p->data;
    /* Before the end of the input it is the line's end that stops a value. */
    const uint8_t *end = s->piece->data.ptr + s->piece->data.len;

    if (s->muted || s->in_trailer)
        return 0;
    return h1_head_value(&s->head, span(at, len), (const uint8_t *)at + len < end) ? 0 : 1;
}

static bool has_no_body(const struct pending *p, const http_parser *parser)
{
    unsigned status = parser->status_code;

    return p->is_head || status / 100 == 1 || status == 204 || status == 304 ||
           (p->is_connect && status / 100 == 2);
}

static int on_headers_complete(http_parser *p)
{
    struct side *s = p->data;

    if (s->muted)
        return 0;
    p->upgrade = 0; /* it is the response that decides */
    if (s->dir == DIR_SERVER)
        s->skip_body = has_no_body(response_pair(s->h, s->piece->at), p);
    s->head_done = true;
    http_parser_pause(p, 1);
    return s->skip_body ? 1 : 0;
}

static int on_body(http_parser *p, const char *at, size_t len)
{
    struct side *s = p->data;

    if (s->muted)
        return 0;
    struct piece part =
        piece_part(s->piece, (size_t)((const uint8_t *)at - s->piece->data.ptr), len);
    body(s, &part);
    return 0;
}

static int on_chunk_header(http_parser *p)
{
    struct side *s = p->data;

    s->in_chunk = p->content_length > 0;
    s->in_trailer = !s->in_chunk;
    return 0;
}

static int on_chunk_complete(http_parser *p)
{
    struct side *s = p->data;

    s->in_chunk = false;
    return 0;
}

static int on_message_complete(http_parser *p)
{
    struct side *s = p->data;

    s->message_done = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings callbacks = {
    .on_message_begin = on_message_begin,
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
    .on_chunk_header = on_chunk_header,
    .on_chunk_complete = on_chunk_complete,
};

/* Parsing. */

/* The request will not go on. */
static void request_stop(struct h1 *h, struct place at)
{
    struct pending *p = h->request;

    h->request = NULL;
    if (p && p->x && !p->unknown)
        exchange_request_end(p->x, false, at);
}

/* http-parser gave up: say so, and look for the next message. */
static void broken(struct side *s, enum http_errno err, struct place at)
{
    struct h1 *h = s->h;
    struct pending *p = s->dir == DIR_CLIENT ? h->request : h->response;
    const char *why = http_errno_description(err);

    s->mode = MODE_LOST;
    s->edge = false;
    s->carry_len = 0;
    if (s->dir == DIR_CLIENT) {
        if (p)
            opened(h, p);
        note(h, p, NOTE_BAD_HTTP, why, at);
        request_stop(h, at);
    } else if (!p && !h->first && !h->doubt) {
        note(h, NULL, NOTE_UNSOLICITED, "bytes that answer no request", at);
    } else {
        note(h, p ? p : h->first, NOTE_BAD_HTTP, why, at);
    }
    if (s->dir == DIR_SERVER && p && p->answered)
        exchange_response_gap(p->x, 0, false, at);
    h->doubt = true;
    parser_reset(s);
}

static size_t execute(struct side *s, const struct piece *p)
{
    s->piece = p;
    s->head_done = false;
    s->message_done = false;
    return http_parser_execute(&s->parser, &callbacks, (const char *)p->data.ptr, p->data.len);
}

/* Takes bytes off the front of p, at least one. */
static void parse(struct side *s, struct piece *p)
{
    size_t n = execute(s, p);
    enum http_errno err = HTTP_PARSER_ERRNO(&s->parser);

    if (err == HPE_PAUSED) {
        /* It stopped on a head's last byte and wants to see it again. */
        struct piece bytes = piece_part(p, 0, s->head_done ? n + 1 : n);
        http_parser_pause(&s->parser, 0);
        (void)piece_take(p, n);
        if (s->head_done)
            head_end(s, &bytes);
        else
            message_end(s, &bytes);
        return;
    }
    if (err != HPE_OK) {
        (void)piece_take(p, n < p->data.len ? n : p->data.len);
        broken(s, err, p->at);
        return;
    }
    p->data.len = 0;
}

/* Bytes of our own, to bring the parser into a state. */
static void parse_muted(struct side *s, struct slice text)
{
    const struct piece p = { .data = text };

    s->muted = true;
    (void)execute(s, &p);
    s->muted = false;
}

static void resume(struct side *s)
{
    s->mode = MODE_PARSE;
    parser_reset(s);
}

static void carry_on(struct side *s, struct slice start)
{
    struct piece p = s->carry_piece;

    p.data = start;
    s->carry_len = 0;
    resume(s);
    while (p.data.len > 0 && s->mode == MODE_PARSE)
        parse(s, &p);
}

/* The start of a message was cut: do the bytes kept and the next ones make one? */
static void lost_carry(struct side *s, struct piece *p)
{
    uint8_t bytes[2 * H1_START_MAX];
    size_t n = p->data.len < H1_START_MAX ? p->data.len : H1_START_MAX;

    memcpy(bytes, s->carry, s->carry_len);
    memcpy(bytes + s->carry_len, p->data.ptr, n);
    switch (h1_match_start(s->dir, (struct slice){ bytes, s->carry_len + n })) {
    case H1_MATCH_YES: carry_on(s, (struct slice){ bytes, s->carry_len }); break;
    case H1_MATCH_MAYBE: /* then n is all of p, and short */
        memcpy(s->carry + s->carry_len, p->data.ptr, n);
        s->carry_len += n;
        p->data.len = 0;
        break;
    case H1_MATCH_NO:
        s->carry_len = 0;
        s->edge = false;
        break;
    }
}

static void lost(struct side *s, struct piece *p)
{
    if (s->carry_len > 0) {
        lost_carry(s, p);
        return;
    }
    enum h1_match m = s->edge ? h1_match_start(s->dir, p->data) : H1_MATCH_NO;
    if (m == H1_MATCH_YES) {
        resume(s);
        return;
    }
    if (m == H1_MATCH_MAYBE && p->data.len < H1_START_MAX) {
        s->carry_piece = *p;
        s->carry_len = p->data.len;
        memcpy(s->carry, p->data.ptr, p->data.len);
        p->data.len = 0;
        return;
    }
    const uint8_t *lf = memchr(p->data.ptr, '\n', p->data.len);
    size_t skip = lf ? (size_t)(lf - p->data.ptr) + 1 : p->data.len;
    (void)piece_take(p, skip);
    s->edge = lf != NULL;
}

/* Searching. */

static void search_begin(struct side *s)
{
    s->mode = MODE_SEARCH;
    s->carry_len = 0;
    parser_reset(s);
    h1_sync_clear(&s->sync);
    s->h->doubt = true;
}

/* A body goes on whose head is lost. */
static void response_headless(struct side *s, struct place at)
{
    struct h1 *h = s->h;

    if (!h->response && !s->joined && h->waiting == 1)
        h->response = queue_pop(h);
    if (!h->response)
        h->response = mem_alloc(sizeof(*h->response));
    opened(h, h->response);
    exchange_response_head(h->response->x, NULL, at);
    h->response->answered = true;
}

/* The part of p, which begins at offset start, from `from` to `to`. */
static struct piece part_between(const struct piece *p, size_t start, size_t from, size_t to)
{
    size_t end = start + p->data.len;

    from = from > start ? from : start;
    to = to < end ? to : end;
    return from < to ? piece_part(p, from - start, to - from) : piece_part(p, 0, 0);
}

/* Hands the held bytes of [from, to) on as body, and those from `resume_at` to the parser: the
 * search is over, so that feed() does not come here again. */
static void replay(struct side *s, size_t from, size_t to, size_t resume_at)
{
    struct h1_sync held = s->sync;
    struct piece p;
    size_t at = 0;

    h1_sync_init(&s->sync);
    while (h1_sync_take(&held, &p)) {
        struct piece tail = part_between(&p, at, from, to);
        struct piece rest = part_between(&p, at, resume_at, SIZE_MAX);
        if (tail.data.len > 0)
            body(s, &tail);
        feed(s, &rest);
        at += p.data.len;
    }
    h1_sync_release(&held);
}

static struct place held_place(const struct h1_sync *s, size_t at)
{
    size_t end = 0;

    for (size_t i = 0; i < s->count; i++) {
        end += s->held[i].piece.data.len;
        if (at < end)
            return s->held[i].piece.at;
    }
    return (struct place){ 0 };
}

static void search_head_found(struct side *s, size_t at)
{
    if (s->h->response)
        pending_end(s->h, s->h->response, END_GAP, held_place(&s->sync, at));
    resume(s);
    replay(s, 0, 0, at);
}

static void search_chunk_found(struct side *s, size_t at)
{
    bool known = s->h->response != NULL;
    /* What stands before is the rest of a chunk; or of a head, when that was hit. */
    size_t tail = (known || s->joined) && at > 2 ? at - 2 : 0;

    if (!known)
        response_headless(s, held_place(&s->sync, tail ? 0 : at));
    resume(s);
    parse_muted(s, SLICE_LIT(CHUNK_HEAD));
    s->where = WHERE_BODY;
    replay(s, 0, tail, at);
}

/* Nothing more will come of this search: take what is likely. */
static void settle(struct side *s)
{
    size_t at;

    if (s->mode != MODE_SEARCH)
        return;
    if (h1_sync_guess(&s->sync, &at)) {
        search_chunk_found(s, at);
    } else if (!s->h->response && h1_sync_is_text(&s->sync)) {
        response_headless(s, held_place(&s->sync, 0));
        s->mode = MODE_RAW;
        replay(s, 0, SIZE_MAX, SIZE_MAX);
    } else {
        h1_sync_clear(&s->sync);
    }
}

static void search(struct side *s, struct piece *p)
{
    struct piece rest = *p;
    size_t at;
    struct piece part =
        piece_take(&rest, p->data.len < H1_SYNC_MAX / 4 ? p->data.len : H1_SYNC_MAX / 4);

    if (!h1_sync_add(&s->sync, part)) {
        settle(s);
        h1_sync_overflow(&s->sync);
        return; /* and try again, or go on otherwise */
    }
    *p = rest;
    switch (h1_sync_scan(&s->sync, &at)) {
    case H1_FOUND_NONE: break;
    case H1_FOUND_HEAD: search_head_found(s, at); break;
    case H1_FOUND_CHUNK: search_chunk_found(s, at); break;
    }
}

static void raw(struct side *s, struct piece *p)
{
    if (h1_match_start(s->dir, p->data) == H1_MATCH_YES) {
        pending_end(s->h, s->h->response, END_GAP, p->at);
        resume(s);
        return;
    }
    body(s, p);
    p->data.len = 0;
}

static void feed(struct side *s, const struct piece *piece)
{
    struct piece p = *piece;

    s->edge = true;
    while (p.data.len > 0) {
        if (s->h->up.ops) {
            s->h->up.ops->data(s->h->up.self, s->dir, &p);
            return;
        }
        switch (s->mode) {
        case MODE_PARSE: parse(s, &p); break;
        case MODE_LOST: lost(s, &p); break;
        case MODE_SEARCH: search(s, &p); break;
        case MODE_RAW: raw(s, &p); break;
        case MODE_OFF: return;
        }
    }
}

/* Gaps. */

/* Does the body, as far as is known of it, cover len missing bytes? */
static bool gap_fits(const struct side *s, uint64_t len)
{
    if (until_close(s))
        return s->dir == DIR_SERVER;
    if (s->mode != MODE_PARSE || s->where != WHERE_BODY || len == 0)
        return false;
    if ((s->parser.flags & F_CHUNKED) && !s->in_chunk)
        return false;
    return len <= s->parser.content_length;
}

static void gap_skip(struct side *s, uint64_t len, struct place at)
{
    const struct piece none = { .at = at, .tcp_end = NO_OFFSET };

    if (until_close(s))
        return;
    s->parser.content_length -= len - 1;
    parse_muted(s, SLICE_LIT("?")); /* stands for the last one, and moves the parser on */
    if (s->message_done) {
        http_parser_pause(&s->parser, 0);
        message_end(s, &none);
    }
}

static void client_gap(struct side *s, uint64_t len, struct place at)
{
    struct h1 *h = s->h;
    bool fits = gap_fits(s, len);
    bool in_head = s->where != WHERE_BODY;

    s->carry_len = 0;
    if (s->mode != MODE_PARSE) {
        h->doubt = true;
        return;
    }
    if (s->where == WHERE_START)
        request_begin(h, at);
    if (h->request)
        exchange_request_gap(opened(h, h->request), len, in_head, at);
    if (fits) {
        gap_skip(s, len, at);
        return;
    }
    request_stop(h, at);
    h->doubt = true;
    parser_reset(s);
    s->mode = MODE_LOST;
}

/* The head of a response, or all of it, is in the gap. */
static void server_head_gap(struct h1 *h, uint64_t len, struct place at)
{
    struct pending *p = h->response;

    if (p) { /* after a 1xx: it waits again */
        p->next = h->first;
        h->first = p;
        h->last = h->last ? h->last : p;
        h->waiting++;
        h->response = NULL;
    }
    if (h->first)
        exchange_response_gap(opened(h, h->first), len, true, at);
}

static void server_gap(struct side *s, uint64_t len, struct place at)
{
    struct h1 *h = s->h;

    settle(s);
    bool fits = gap_fits(s, len);
    bool ends = s->mode == MODE_PARSE && s->where == WHERE_BODY && !(s->parser.flags & F_CHUNKED);

    if (h->response && h->response->answered)
        exchange_response_gap(h->response->x, len, false, at);
    else
        server_head_gap(h, len, at);
    if (fits) {
        gap_skip(s, len, at);
        return;
    }
    if (h->response && ends) /* its end by length is in the gap, and perhaps more */
        pending_end(h, h->response, END_GAP, at);
    s->joined = false;
    search_begin(s);
}

/* Ends. */

static void end_all(struct h1 *h, enum end_kind kind, struct place at)
{
    const struct side *s = side_of(h, DIR_SERVER);
    bool lost_it = s->mode == MODE_SEARCH && h->doubt && !s->joined;

    if (lost_it) {
        kind = END_GAP;
    } else if (h->client_closed) {
        kind = END_CLIENT_FIN;
        at = h->client_close;
    }
    if (h->response)
        pending_end(h, h->response, kind, at);
    end_waiting(h, kind, at);
}

static void client_fin(struct h1 *h, struct place at)
{
    if (h->client_closed)
        return;
    if (h->request && !h->request->x)
        note(h, NULL, NOTE_BAD_HTTP, "the head of a request is cut", at);
    request_stop(h, at);
    h->client_closed = true;
    h->client_close = at;
    h->side[DIR_CLIENT].mode = MODE_OFF;
}

static void server_fin(struct h1 *h, struct place at)
{
    struct side *s = side_of(h, DIR_SERVER);
    struct pending *p = h->response;

    if (p && p->answered && until_close(s) && (!h->client_closed || p->half_closed))
        pending_end(h, p, END_COMPLETE, at);
    end_all(h, END_FIN, at);
    s->mode = MODE_OFF;
}

/* The layer. */

static void h1_data(void *self, enum dir dir, const struct piece *piece)
{
    struct h1 *h = self;

    feed(&h->side[dir], piece);
}

static void h1_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    struct h1 *h = self;
    struct side *s = &h->side[dir];

    if (h->up.ops)
        h->up.ops->gap(h->up.self, dir, len, at);
    else if (s->mode != MODE_OFF)
        (dir == DIR_CLIENT ? client_gap : server_gap)(s, len, at);
}

static void h1_ack(void *self, enum dir dir, uint64_t tcp_offset, struct place at)
{
    struct h1 *h = self;
    uint64_t before = h->acked;
    size_t kept = 0;

    if (h->up.ops)
        h->up.ops->ack(h->up.self, dir, tcp_offset, at);
    if (dir == DIR_CLIENT || tcp_offset <= before)
        return;
    h->acked = tcp_offset;
    h->acked_at = at;
    for (size_t i = 0; i < h->lates; i++) {
        exchanges_late_ack(h->all, h->late[i].serial, tcp_offset, at);
        if (h->late[i].end > tcp_offset)
            h->late[kept++] = h->late[i];
    }
    h->lates = kept;
    if (h->response && h->response->answered && h->response->end > before)
        exchange_ack(h->response->x, tcp_offset, at);
}

static void h1_silence(void *self, enum dir dir, const struct silence *silence)
{
    struct h1 *h = self;

    if (h->up.ops)
        h->up.ops->silence(h->up.self, dir, silence);
    else if (dir == DIR_SERVER && h->response && h->response->answered)
        exchange_silence(h->response->x, silence);
}

static void h1_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    struct h1 *h = self;

    if (h->up.ops) {
        h->up.ops->close(h->up.self, dir, kind, at);
        return;
    }
    if (kind == CLOSE_FIN && dir == DIR_CLIENT) {
        client_fin(h, at);
        return;
    }
    settle(side_of(h, DIR_SERVER));
    if (kind == CLOSE_FIN) {
        server_fin(h, at);
        return;
    }
    end_all(h, dir == DIR_SERVER ? END_RST : END_CLIENT_RST, at);
    h->side[DIR_CLIENT].mode = h->side[DIR_SERVER].mode = MODE_OFF;
}

static void side_release(struct side *s)
{
    h1_head_release(&s->head);
    h1_sync_release(&s->sync);
}

static void h1_finish(void *self, struct place at)
{
    struct h1 *h = self;

    if (h->up.ops)
        h->up.ops->finish(h->up.self, at);
    else
        settle(side_of(h, DIR_SERVER));
    end_all(h, END_OPEN, at);
    side_release(&h->side[DIR_CLIENT]);
    side_release(&h->side[DIR_SERVER]);
    free(h);
}

static const struct layer_ops h1_ops = {
    .name = "http/1.1",
    .data = h1_data,
    .gap = h1_gap,
    .ack = h1_ack,
    .silence = h1_silence,
    .close = h1_close,
    .finish = h1_finish,
};

static void side_init(struct side *s, struct h1 *h, enum dir dir)
{
    s->h = h;
    s->dir = dir;
    h1_head_init(&s->head);
    h1_sync_init(&s->sync);
    parser_reset(s);
}

struct layer h1_new(struct exchanges *all, const struct conn *conn, uint64_t conn_serial,
                    struct h1_upgrade upgrade)
{
    struct h1 *h = mem_alloc(sizeof(*h));

    h->all = all;
    h->conn = conn;
    h->serial = conn_serial;
    h->upgrade = upgrade;
    side_init(&h->side[DIR_CLIENT], h, DIR_CLIENT);
    side_init(&h->side[DIR_SERVER], h, DIR_SERVER);
    if (conn->starts_late) {
        h->side[DIR_CLIENT].mode = MODE_LOST;
        h->side[DIR_SERVER].mode = MODE_SEARCH;
        h->side[DIR_SERVER].joined = true;
        h->doubt = true;
    }
    return (struct layer){ &h1_ops, h };
}

bool h1_is_request(struct slice s)
{
    return s.len > 0 && h1_match_start(DIR_CLIENT, s) != H1_MATCH_NO;
}

bool h1_is_response(struct slice s)
{
    return s.len > 0 && h1_match_start(DIR_SERVER, s) != H1_MATCH_NO;
}

bool h1_is_chunks(struct slice s)
{
    return h1_match_chunks(s);
}
