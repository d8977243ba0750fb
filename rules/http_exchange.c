/* http_exchange.c - RULES.md section 9: the framing of HTTP, and how POST and GET are asked and
 * answered. */
#include "http_checks.h"

#include "traffic.h"

#include <inttypes.h>

#define HTTP_ACCEPTED 202
#define NO_CONTENT    204
#define NOT_MODIFIED  304
#define NOT_ALLOWED   405

typedef void exch_fn(struct rule_run *run, const struct session *s, const struct exch *x,
                     enum part part);

/* Every exchange of MCP that the rule applies to. */
static void each_exch(struct rule_run *run, const struct session *s, exch_fn *fn)
{
    if (!session_is_mcp(s))
        return;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        enum part part = rule_in_era(run->rule, x->era) ? exch_part(s, x) : PART_NONE;
        if (part != PART_NONE)
            fn(run, s, x, part);
    }
}

static void frame_request(struct rule_run *run, struct finding *f, const struct exch *x)
{
    finding_frame(run, f, x->first, SLICE_FMT " %s", SLICE_ARG(x->method_text),
                  run_id(run, target_path(x->target)));
}

/* ---- how bodies end ---- */

/* The end was seen, and the server or the path made it. */
static bool cut_by_server(const struct exch *x)
{
    return x->ended && (x->end_kind == END_FIN || x->end_kind == END_RST) &&
           x->response_gaps == 0 && !(x->rflags & (RECF_HAR | RECF_HEAD_LOST));
}

static enum party who_cut(const struct exch *x)
{
    if (x->middlebox)
        return PARTY_PATH;
    return x->end_kind == END_FIN ? PARTY_SERVER : PARTY_UNKNOWN;
}

static const char *cut_text(const struct exch *x)
{
    if (x->middlebox)
        return "a reset that does not fit the server";
    return x->end_kind == END_FIN ? "the server's FIN" : "a reset from the server's side";
}

static struct finding *on_body(struct rule_run *run, const struct session *s, const struct exch *x)
{
    struct finding *f = finding_add(run, s);

    if (x->leg != NONE)
        finding_on_leg(run, f, s->leg[x->leg]);
    f->exch = x->index;
    f->party = who_cut(x);
    return f;
}

static void chunked(struct rule_run *run, const struct session *s, const struct exch *x,
                    enum part part)
{
    (void)part;
    if (!(x->rflags & RECF_CHUNKED) || !cut_by_server(x))
        return;
    struct finding *f = on_body(run, s, x);
    finding_message(run, f,
                    "a chunked body of %" PRIu64 " bytes ends by %s, without its last chunk",
                    x->body_bytes, cut_text(x));
    finding_frame(run, f, x->end, "%s", cut_text(x));
    finding_frame(run, f, x->last, "the last byte of the body");
}

void check_http_chunked(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, chunked);
}

static bool ends_short(const struct exch *x)
{
    bool http2 = x->rflags & RECF_HTTP2;

    if (x->status == NO_CONTENT || x->status == NOT_MODIFIED || x->content_length < 0 ||
        (!http2 && !(x->rflags & RECF_LENGTH)) || (x->rflags & (RECF_HAR | RECF_CHUNKED)))
        return false;
    if (x->body_bytes >= (uint64_t)x->content_length)
        return false;
    return cut_by_server(x) || (http2 && x->ended && x->end_kind == END_COMPLETE &&
                                x->response_gaps == 0 && !(x->rflags & RECF_HEAD_LOST));
}

static void cut_short(struct rule_run *run, const struct session *s, const struct exch *x,
                      enum part part)
{
    (void)part;
    if (!ends_short(x))
        return;
    struct finding *f = on_body(run, s, x);
    if (x->end_kind == END_COMPLETE)
        f->party = PARTY_SERVER;
    finding_message(run, f, "the body ends after %" PRIu64 " of %" PRId64 " bytes", x->body_bytes,
                    x->content_length);
    finding_frame(run, f, x->end, "the end of the body");
    finding_frame(run, f, x->response, "Content-Length: %" PRId64, x->content_length);
}

void check_http_short(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, cut_short);
}

static void until_close(struct rule_run *run, const struct session *s, const struct exch *x,
                        enum part part)
{
    (void)s;
    (void)part;
    if (!(x->rflags & RECF_SSE) || !(x->rflags & RECF_UNTIL_CLOSE) ||
        (x->rflags & (RECF_HTTP2 | RECF_HAR | RECF_HEAD_LOST)))
        return;
    struct finding *f = finding_about(run, x, PARTY_SERVER, "body until close");
    finding_message(run, f,
                    "an event stream has neither chunks nor a length: it ends with the "
                    "connection, and a cut cannot be told from an end");
    finding_frame(run, f, x->response, "the head, without Transfer-Encoding and Content-Length");
}

void check_http_until_close(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, until_close);
}

/* ---- ambiguous or odd heads ---- */

static const char *conflict_text(unsigned flags)
{
    if (flags & RECF_TE_AND_CL)
        return "both Transfer-Encoding and Content-Length";
    return flags & RECF_LENGTH_CONFLICT ? "two different Content-Length" : NULL;
}

static void length_conflict(struct rule_run *run, const struct session *s, const struct exch *x,
                            enum part part)
{
    const char *request = conflict_text(x->flags);
    const char *response = conflict_text(x->rflags);

    (void)s;
    (void)part;
    if (request) {
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "length of a request");
        finding_message(run, f, "a request has %s: its end is a matter of opinion", request);
        finding_frame(run, f, x->first, "the request with %s", request);
    }
    if (response) {
        struct finding *f = finding_about(run, x, PARTY_SERVER, "length of a response");
        finding_message(run, f, "a response has %s: its end is a matter of opinion", response);
        finding_frame(run, f, x->response, "the response with %s", response);
    }
}

void check_http_length(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, length_conflict);
}

static void fold(struct rule_run *run, const struct session *s, const struct exch *x,
                 enum part part)
{
    (void)s;
    (void)part;
    if (x->flags & RECF_OBS_FOLD) {
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "folded request header");
        finding_message(run, f, "a header of the request goes on in a second, indented line");
        finding_frame(run, f, x->first, "the request with a folded header");
    }
    if (x->rflags & RECF_OBS_FOLD) {
        struct finding *f = finding_about(run, x, PARTY_SERVER, "folded response header");
        finding_message(run, f, "a header of the response goes on in a second, indented line");
        finding_frame(run, f, x->response, "the response with a folded header");
    }
}

void check_http_fold(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, fold);
}

/* Last-Event-ID on two lines is cursor-mangled. */
static void duplicate(struct rule_run *run, const struct session *s, const struct exch *x,
                      enum part part)
{
    (void)s;
    (void)part;
    if (!(x->flags & RECF_DUPLICATE_HEADER) || (x->flags & RECF_DUPLICATE_CURSOR))
        return;
    struct finding *f = finding_about(run, x, PARTY_CLIENT, "header twice");
    finding_message(run, f,
                    "a request has one of Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, "
                    "Mcp-Name on two lines");
    finding_frame(run, f, x->first, "the request with the header twice");
}

void check_http_duplicate(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, duplicate);
}

static void not_allowed(struct rule_run *run, const struct session *s, const struct exch *x,
                        enum part part)
{
    (void)s;
    (void)part;
    if (x->status != NOT_ALLOWED || (x->rflags & RECF_ALLOW) || !response_head_known(x))
        return;
    struct finding *f = finding_about(run, x, PARTY_SERVER, "405");
    finding_message(run, f, "a " SLICE_FMT " is answered 405 without the header Allow",
                    SLICE_ARG(x->method_text));
    finding_frame(run, f, x->response, "405 without Allow");
    frame_request(run, f, x);
}

/* ---- all sessions, HTTP/2 that was joined late aside ---- */

static void whole_exch(struct rule_run *run, const struct model *m, exch_fn *fn)
{
    bool blind = http2_is_blind(m);

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        if (!session_is_mcp(s))
            continue;
        for (uint32_t k = 0; k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            enum part part = rule_in_era(run->rule, x->era) ? exch_part(s, x) : PART_NONE;
            if (part != PART_NONE && !(blind && ((x->flags | x->rflags) & RECF_HTTP2)))
                fn(run, s, x, part);
        }
    }
}

void whole_http_allow(struct rule_run *run, const struct model *m)
{
    whole_exch(run, m, not_allowed);
}

/* ---- connections ---- */

static uint64_t connection_of(uint32_t input, uint32_t tcp_stream)
{
    return hash_mix(input, tcp_stream);
}

/* The exchanges of MCP by their connections. */
static struct sightings connections(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; session_is_mcp(s) && k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            uint64_t key = connection_of(x->first.input, x->tcp_stream);
            if (exch_part(s, x) != PART_NONE && !((x->flags | x->rflags) & RECF_HAR))
                sightings_add(&all, (struct sighting){ key, x->first.time, s, x, false });
        }
    }
    sightings_sort(&all);
    return all;
}

static void unsolicited(struct rule_run *run, const struct note *n, const struct exch *x)
{
    struct finding *f = finding_about(run, x, PARTY_SERVER, "bytes without a request");

    f->count = (uint32_t)n->count;
    finding_message(run, f,
                    "the server sends on a connection on which no request waits for an answer "
                    "(%s)",
                    n->text && *n->text ? n->text : "bytes");
    finding_frame(run, f, n->at, "bytes of the server that answer nothing");
    finding_frame(run, f, x->first, "the last request of this connection");
}

void whole_http_unsolicited(struct rule_run *run, const struct model *m)
{
    struct sightings all = { 0 };
    bool gathered = false;

    for (uint32_t i = 0; i < m->note_count; i++) {
        const struct note *n = &m->note[i];
        if (n->kind != NOTE_UNSOLICITED || n->tcp_stream == UINT32_MAX)
            continue;
        if (!gathered)
            all = connections(m);
        gathered = true;
        const struct sighting *at =
            sightings_before(&all, connection_of(n->at.input, n->tcp_stream), n->at.time);
        if (at)
            unsolicited(run, n, at->exch);
    }
    sightings_release(&all);
}

static bool is_h1_stream(const struct exch *x)
{
    return x->leg != NONE && (x->rflags & RECF_SSE) && !(x->rflags & (RECF_HTTP2 | RECF_HAR)) &&
           x->has_request && x->response.time != 0;
}

static void gather_streams(const struct model *m, struct sightings *streams,
                           struct sightings *queued)
{
    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            const struct sighting at = { x->conn, x->response.time, s, x, false };
            if (is_h1_stream(x))
                sightings_add(streams, at);
            if ((x->flags & RECF_PIPELINED) && !(x->flags & (RECF_HTTP2 | RECF_HAR)))
                sightings_add(queued, at);
        }
    }
    sightings_sort(streams);
}

/* The client had the head of an event stream on this connection, and its end was not in sight. */
static const struct exch *stream_before(const struct sightings *streams, const struct exch *x)
{
    const struct sighting *at = sightings_before(streams, x->conn, x->first.time);
    const struct exch *y = at ? at->exch : NULL;

    if (!y || y == x)
        return NULL;
    return !y->ended || y->end_kind == END_OPEN || y->end.time > x->first.time ? y : NULL;
}

void whole_http_pipelined(struct rule_run *run, const struct model *m)
{
    struct sightings streams = { 0 };
    struct sightings queued = { 0 };

    gather_streams(m, &streams, &queued);
    for (size_t i = 0; i < queued.count; i++) {
        const struct exch *x = queued.item[i].exch;
        const struct exch *y = stream_before(&streams, x);
        if (!y || !session_is_mcp(x->session) || exch_part(x->session, x) == PART_NONE)
            continue;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "behind an event stream");
        finding_message(run, f,
                        "a " SLICE_FMT " is sent on a connection whose event stream is still "
                        "open: it cannot be answered before the stream ends",
                        SLICE_ARG(x->method_text));
        finding_frame(run, f, x->first, "the request that waits");
        finding_frame(run, f, y->response, "the event stream on the same connection");
    }
    sightings_release(&streams);
    sightings_release(&queued);
}

/* ---- Accept ---- */

static const char *accept_text(const struct exch *x)
{
    if (!(x->flags & RECF_ACCEPT))
        return "there is no Accept header";
    if (x->flags & RECF_ACCEPT_JSON)
        return "text/event-stream is missing";
    return x->flags & RECF_ACCEPT_SSE ? "application/json is missing" : "both are missing";
}

static void post_accept(struct rule_run *run, const struct session *s, const struct exch *x,
                        enum part part)
{
    const unsigned both = RECF_ACCEPT_JSON | RECF_ACCEPT_SSE;

    if (part != PART_POST || s->legacy || !request_head_known(x) || (x->flags & both) == both)
        return;
    if (x->status == HTTP_ACCEPTED && !exch_is_streamable(s, x))
        return; /* it may be the older transport, joined late */
    bool any = x->flags & RECF_ACCEPT_ANY;
    struct finding *f = finding_about(run, x, PARTY_CLIENT, any ? "*/*" : accept_text(x));
    if (any)
        f->severity = SEV_INFO;
    finding_message(run, f,
                    "the Accept of a POST must list application/json and text/event-stream; %s%s",
                    accept_text(x), any ? ", and */* does not stand for it" : "");
    finding_frame(run, f, x->first, "POST: %s", accept_text(x));
}

void check_post_accept(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, post_accept);
}

static void get_accept(struct rule_run *run, const struct session *s, const struct exch *x,
                       enum part part)
{
    if (part != PART_GET || s->legacy || !request_head_known(x) || (x->flags & RECF_ACCEPT_SSE) ||
        status_is_ordinary(x->status))
        return;
    bool any = x->flags & RECF_ACCEPT_ANY;
    struct finding *f = finding_about(run, x, PARTY_CLIENT, any ? "*/*" : "GET");
    if (any)
        f->severity = SEV_INFO;
    finding_message(run, f, "the Accept of a GET must list text/event-stream; %s",
                    any                        ? "*/* does not stand for it"
                    : (x->flags & RECF_ACCEPT) ? "it is missing"
                                               : "there is no Accept header");
    finding_frame(run, f, x->first, "GET without Accept: text/event-stream");
}

void check_get_accept(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, get_accept);
}

/* ---- replies ---- */

static const char *type_text(struct rule_run *run, const struct exch *x)
{
    return x->content_type.len > 0 ? run_id(run, x->content_type) : "no content type";
}

static const char *bad_reply(struct rule_run *run, const struct exch *x)
{
    bool json = x->rflags & RECF_JSON;
    bool whole = x->ended && x->end_kind == END_COMPLETE && x->response_gaps == 0;

    if (!(x->rflags & RECF_SSE) && !json)
        return run_text(run, "%d with %s", x->status, type_text(run, x));
    if (json && whole && x->body_bytes == 0 && !(x->rflags & (RECF_HAR | RECF_NO_BODY_RECORDED)))
        return run_text(run, "%d with an empty body", x->status);
    return NULL;
}

static void post_reply(struct rule_run *run, const struct session *s, const struct exch *x,
                       enum part part)
{
    if (part != PART_POST || !exch_accepted(x) || exch_tally(x).requests == 0 ||
        !response_head_known(x) || !exch_is_streamable(s, x))
        return;
    const char *how = bad_reply(run, x);
    if (!how)
        return;
    struct finding *f = finding_add(run, s);
    finding_on_exch(run, f, x);
    f->party = PARTY_SERVER;
    finding_message(run, f,
                    "a POST with a request is answered %s, where only a JSON response or an event "
                    "stream can carry the answer",
                    how);
    finding_frame(run, f, x->response, "the reply: %s", how);
    finding_frame(run, f, x->first, "POST with " SLICE_FMT, SLICE_ARG(x->msg[0].method));
}

void whole_post_reply(struct rule_run *run, const struct model *m)
{
    whole_exch(run, m, post_reply);
}

/* Nothing in the body wants an answer. */
static bool is_oneway(const struct session *s, const struct exch *x)
{
    struct tally t = exch_tally(x);

    if (t.requests > 0 || t.others > 0 || x->msg_count == 0 || !x->body_whole ||
        !exch_is_streamable(s, x))
        return false;
    return x->era == ERA_D ? t.notifications > 0 && t.responses == 0 : true;
}

static const char *oneway_text(const struct exch *x)
{
    struct tally t = exch_tally(x);

    if (t.responses == 0)
        return "a notification";
    return t.notifications == 0 ? "a response" : "notifications and responses";
}

static void post_oneway(struct rule_run *run, const struct session *s, const struct exch *x,
                        enum part part)
{
    if (part != PART_POST || !exch_accepted(x) || x->status == HTTP_ACCEPTED || !is_oneway(s, x))
        return;
    struct finding *f = finding_about(run, x, PARTY_SERVER, oneway_text(x));
    finding_message(run, f, "a POST with %s is accepted with status %d; it must be 202",
                    oneway_text(x), x->status);
    finding_frame(run, f, x->response, "status %d", x->status);
    finding_frame(run, f, x->first, "POST with %s", oneway_text(x));
}

void check_post_oneway(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, post_oneway);
}

static void post_202_body(struct rule_run *run, const struct session *s, const struct exch *x,
                          enum part part)
{
    if (part != PART_POST || x->status != HTTP_ACCEPTED || x->body_bytes == 0 || !is_oneway(s, x))
        return;
    struct finding *f = finding_about(run, x, PARTY_SERVER, "body of 202");
    finding_message(run, f, "a POST with %s is answered 202 with a body of %" PRIu64 " bytes",
                    oneway_text(x), x->body_bytes);
    finding_frame(run, f, x->response, "202 with a body");
    finding_frame(run, f, x->first, "POST with %s", oneway_text(x));
}

void check_post_202_body(struct rule_run *run, const struct session *s)
{
    each_exch(run, s, post_202_body);
}

/* A GET with a cursor that is answered so is replay-refused. */
static void get_reply(struct rule_run *run, const struct session *s, const struct exch *x,
                      enum part part)
{
    if (part != PART_GET || s->legacy || !exch_accepted(x) || (x->rflags & RECF_SSE) ||
        x->cursor.len > 0 || !response_head_known(x))
        return;
    struct finding *f = finding_add(run, s);
    finding_on_exch(run, f, x);
    f->party = PARTY_SERVER;
    f->subject = "GET";
    finding_message(run, f,
                    "a GET that asks for an event stream is answered %d with %s; it must be an "
                    "event stream or 405",
                    x->status, type_text(run, x));
    finding_frame(run, f, x->response, "status %d, %s", x->status, type_text(run, x));
    frame_request(run, f, x);
}

void whole_get_reply(struct rule_run *run, const struct model *m)
{
    whole_exch(run, m, get_reply);
}
