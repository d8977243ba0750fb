/* stateless_request.c - RULES.md section 10: what a client of 2026-07-28 sends. */
#include "stateless_checks.h"

#include "har_text.h"
#include "jtext.h"
#include "pace.h"
#include "traffic.h"

#include <stdlib.h>

#define HEADER_MISMATCH (-32020)
#define NAME_MAX_BYTES  ((size_t)1 << 16)

const struct message *stateless_request(const struct exch *x)
{
    if (x->era != ERA_D || x->method != HTTP_METHOD_POST || x->msg_count != 1 || x->batch ||
        x->msg[0].kind != RPC_REQUEST || message_is(&x->msg[0], "initialize"))
        return NULL;
    return &x->msg[0];
}

/* ---- headers that mirror the body ---- */

enum header {
    HEADER_VERSION,
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_COUNT,
};

static const char *const header_names[] = { "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name" };

static bool has_name(const struct message *m)
{
    static const char *const methods[] = { "tools/call", "prompts/get",  "resources/read",
                                           "tasks/get",  "tasks/update", "tasks/cancel" };

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (message_is(m, methods[i]))
            return m->name.ptr != NULL;
    }
    return false;
}

static struct slice header_of(const struct exch *x, enum header h)
{
    switch (h) {
    case HEADER_VERSION: return x->version;
    case HEADER_METHOD: return x->mcp_method;
    case HEADER_NAME: return x->mcp_name;
    case HEADER_COUNT: break;
    }
    return (struct slice){ 0 };
}

static bool is_required(const struct message *m, enum header h)
{
    return h != HEADER_NAME || has_name(m);
}

static bool is_missing(const struct exch *x, const struct message *m, enum header h)
{
    return is_required(m, h) && header_of(x, h).len == 0;
}

static bool is_plain(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((s.ptr[i] < 0x20 && s.ptr[i] != '\t') || s.ptr[i] > 0x7e)
            return false;
    }
    return true;
}

/* =?base64?...?=; the slice inside, or ptr NULL. */
static struct slice encoded(struct slice s)
{
    static const char open[] = "=?base64?";
    static const char close[] = "?=";
    size_t head = sizeof(open) - 1;
    size_t tail = sizeof(close) - 1;

    if (s.len < head + tail || !slice_starts(s, slice_str(open)) ||
        memcmp(s.ptr + s.len - tail, close, tail) != 0)
        return (struct slice){ 0 };
    return (struct slice){ s.ptr + head, s.len - head - tail };
}

static bool name_differs(struct slice value, struct slice plain)
{
    struct slice inside = encoded(value);
    uint8_t *bytes;
    size_t len;

    if (!inside.ptr)
        return !is_plain(value) || !slice_eq(value, plain);
    if (!har_base64(inside, &bytes, &len))
        return true;
    bool differs = !slice_eq((struct slice){ bytes, len }, plain);
    free(bytes);
    return differs;
}

/* The value as the body has it, unescaped; false: it cannot be compared. */
static bool body_value(const struct message *m, enum header h, struct buf *scratch,
                       struct slice *ret)
{
    struct slice raw = h == HEADER_VERSION ? m->version : h == HEADER_METHOD ? m->method : m->name;

    if (h == HEADER_VERSION && !(m->flags & RPC_META_VERSION))
        return false;
    if (!raw.ptr || raw.len > NAME_MAX_BYTES)
        return false;
    *ret = jtext_unescape(raw, scratch);
    return true;
}

static bool is_unequal(const struct exch *x, const struct message *m, enum header h)
{
    AUTO(buf_release) struct buf scratch;
    struct slice value = header_of(x, h);
    struct slice plain;

    buf_init(&scratch, NAME_MAX_BYTES * 2);
    if (value.len == 0 || !is_required(m, h) || (x->flags & RECF_DUPLICATE_HEADER) ||
        !body_value(m, h, &scratch, &plain))
        return false;
    return h == HEADER_NAME ? name_differs(value, plain) : !slice_eq(value, plain);
}

static const char *why_unequal(struct rule_run *run, const struct exch *x, const struct message *m,
                               enum header h)
{
    struct slice value = header_of(x, h);
    struct slice body = h == HEADER_VERSION ? m->version : h == HEADER_METHOD ? m->method : m->name;

    if (h == HEADER_NAME && !encoded(value).ptr && !is_plain(value))
        return run_text(run, "%s has bytes that must be sent in base64: %s", header_names[h],
                        run_id(run, value));
    return run_text(run, "%s is %s, the body says %s", header_names[h], run_id(run, value),
                    run_id(run, body));
}

void check_stateless_header(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct message *m = stateless_request(x);
        for (enum header h = HEADER_VERSION; m && h < HEADER_COUNT; h++) {
            if (!is_missing(x, m, h) || !request_head_known(x))
                continue;
            struct finding *f = finding_about(run, x, PARTY_CLIENT, header_names[h]);
            finding_message(run, f, "a request (" SLICE_FMT ") carries no %s", SLICE_ARG(m->method),
                            header_names[h]);
            finding_frame(run, f, x->first, "POST without %s", header_names[h]);
        }
    }
}

void check_stateless_mismatch(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct message *m = stateless_request(x);
        for (enum header h = HEADER_VERSION; m && h < HEADER_COUNT; h++) {
            if (!is_unequal(x, m, h))
                continue;
            struct finding *f = finding_about(run, x, PARTY_CLIENT, header_names[h]);
            finding_message(run, f, "a header differs from the body: %s",
                            why_unequal(run, x, m, h));
            finding_frame(run, f, x->first, "POST: %s", why_unequal(run, x, m, h));
        }
    }
}

/* What the server had to refuse; NULL: nothing. A server for older clients too may take a request
 * without the version header for one of theirs. */
static const char *to_be_refused(const struct exch *x, const struct message *m)
{
    for (enum header h = HEADER_VERSION; h < HEADER_COUNT; h++) {
        if (is_unequal(x, m, h))
            return header_names[h];
    }
    for (enum header h = HEADER_METHOD; h < HEADER_COUNT; h++) {
        if (is_missing(x, m, h) && request_head_known(x))
            return header_names[h];
    }
    return NULL;
}

static bool was_refused(const struct session *s, const struct message *m)
{
    const struct request *r = m->request == NONE ? NULL : s->request[m->request];

    return r && r->response && r->response->kind == RPC_ERROR &&
           r->response->error_code == HEADER_MISMATCH;
}

void check_stateless_accepted(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct message *m = stateless_request(x);
        const char *header = m && exch_accepted(x) ? to_be_refused(x, m) : NULL;
        if (!header || was_refused(s, m))
            continue;
        struct finding *f = finding_about(run, x, PARTY_SERVER, header);
        finding_message(run, f,
                        "a request (" SLICE_FMT ") whose %s is missing or differs from the body "
                        "is accepted (%d) instead of refused with 400 and -32020",
                        SLICE_ARG(m->method), header, x->status);
        finding_frame(run, f, x->response, "accepted: status %d", x->status);
        finding_frame(run, f, x->first, "the request");
    }
}

/* ---- _meta ---- */

void check_stateless_meta(struct rule_run *run, const struct session *s)
{
    static const struct {
        unsigned flag;
        const char *name;
    } members[] = {
        { RPC_META_VERSION, "io.modelcontextprotocol/protocolVersion" },
        { RPC_META_CAPABILITIES, "io.modelcontextprotocol/clientCapabilities" },
    };

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const struct message *m = stateless_request(x);
        for (size_t k = 0; m && k < ARRAY_LEN(members); k++) {
            if (m->flags & members[k].flag)
                continue;
            struct finding *f = finding_about(run, x, PARTY_CLIENT, members[k].name);
            finding_message(run, f, "the _meta of a request (" SLICE_FMT ") has no %s",
                            SLICE_ARG(m->method), members[k].name);
            finding_frame(run, f, x->first, "the request");
        }
    }
}

/* ---- what may not be sent ---- */

void check_stateless_client_response(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->era != ERA_D || x->method != HTTP_METHOD_POST || exch_tally(x).responses == 0)
            continue;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "response");
        finding_message(run, f,
                        "the client posts a JSON-RPC response; servers of this revision "
                        "send no requests that could be answered");
        finding_frame(run, f, x->first, "POST with a response");
    }
}

/* When its stream or its exchange broke without a response; time 0: it did not. */
static struct place broke_at(const struct session *s, const struct request *r)
{
    const struct exch *x = s->exch[r->exch];
    bool broke = x->ended && x->end_kind != END_OPEN && x->end_kind != END_GAP &&
                 (x->end_kind != END_COMPLETE || x->leg != NONE);

    if (r->response || r->http_error || !broke || x->response_gaps > 0 || x->close_not_known)
        return (struct place){ 0 };
    return x->end;
}

void check_stateless_same_id(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        const struct request *o = r->earlier == NONE ? NULL : s->request[r->earlier];
        if (r->from_server || !o || !stateless_request(s->exch[r->exch]) ||
            !stateless_request(s->exch[o->exch]) || !slice_eq(r->msg->method, o->msg->method) ||
            r->msg->body_digest != o->msg->body_digest ||
            !same_agent(s->exch[r->exch], s->exch[o->exch]))
            continue;
        struct place broke = broke_at(s, o);
        if (!broke.time || r->at.time < broke.time)
            continue;
        struct finding *f = finding_add(run, s);
        finding_on_request(run, f, r);
        f->party = PARTY_CLIENT;
        f->certainty = CERTAINTY_LIKELY; /* another program at this address may count as this one */
        finding_message(run, f,
                        "the stream of request %s (" SLICE_FMT ") broke before its response; the "
                        "client sends it again under the same id",
                        run_rpc_id(run, &r->msg->id), SLICE_ARG(r->msg->method));
        finding_frame(run, f, r->at, "the request again, id %s", run_rpc_id(run, &r->msg->id));
        finding_frame(run, f, broke, "the first one breaks");
        finding_frame(run, f, o->at, "the request as it was first sent");
    }
}

/* ---- GET, DELETE, sessions ---- */

/* All that JSON-RPC says in this session is of this revision. */
static bool is_stateless(const struct session *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (exch_part(s, x) != PART_POST)
            continue;
        if (x->era != ERA_D)
            return false;
        any = true;
    }
    return any;
}

/* The streams of POSTs that broke without their response, by their end. */
static struct sightings broken_streams(const struct session *s)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        const struct exch *x = leg_exch(s, l);
        const struct message *m = stateless_request(x);
        const struct request *r = m && m->request != NONE ? s->request[m->request] : NULL;
        if (r && !r->response && l->gaps == 0 && (leg_cut(l) || leg_client_left(l)))
            sightings_add(&all, (struct sighting){ 0, l->end_at.time, s, x, false });
    }
    sightings_sort(&all);
    return all;
}

void check_stateless_resume(struct rule_run *run, const struct session *s)
{
    bool stateless = is_stateless(s);
    struct sightings broken = broken_streams(s);

    for (uint32_t i = 0; broken.count > 0 && i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool of_it = x->era == ERA_D || (stateless && x->era == ERA_UNKNOWN);
        if (!of_it || exch_part(s, x) != PART_GET)
            continue;
        const struct sighting *at = sightings_before(&broken, 0, x->first.time);
        if (!at || !same_agent(x, at->exch))
            continue;
        struct finding *f = finding_add(run, s);
        f->exch = x->index;
        f->cursor = x->cursor;
        f->party = PARTY_CLIENT;
        f->subject = "GET";
        if (x->cursor.len == 0)
            f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "after a stream broke the client sends a GET%s, as if this revision could "
                        "resume streams; it is answered %d",
                        x->cursor.len > 0 ? " with Last-Event-ID" : "", x->status);
        finding_frame(run, f, x->first, "GET");
        finding_frame(run, f, s->leg[at->exch->leg]->end_at, "the stream that broke");
    }
    sightings_release(&broken);
}

/* The endpoints at which the older revisions were spoken, too. */
static struct sightings older_endpoints(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            bool older = x->has_request && x->era != ERA_D &&
                         (x->initialize || x->response_session.len > 0 || x->session_id.len > 0 ||
                          exch_part(s, x) == PART_POST);
            if (older && x->status < 400)
                sightings_add(&all, (struct sighting){ endpoint_of(x), 0, s, x, false });
        }
    }
    sightings_sort(&all);
    return all;
}

static bool only_stateless(const struct sightings *older, const struct exch *x)
{
    return !sightings_before(older, endpoint_of(x), INT64_MAX);
}

void whole_stateless_get(struct rule_run *run, const struct model *m)
{
    struct sightings older = older_endpoints(m);

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        bool stateless = is_stateless(s);
        for (uint32_t k = 0; k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            enum part part = exch_part(s, x);
            if ((part != PART_GET && part != PART_DELETE) || !exch_accepted(x) ||
                !(x->era == ERA_D || (stateless && x->era == ERA_UNKNOWN)) ||
                !only_stateless(&older, x))
                continue;
            struct finding *f = finding_about(run, x, PARTY_SERVER, "not 405");
            finding_message(run, f, "a " SLICE_FMT " is answered %d; this revision knows POST only",
                            SLICE_ARG(x->method_text), x->status);
            finding_frame(run, f, x->response, "status %d", x->status);
            finding_frame(run, f, x->first, SLICE_FMT, SLICE_ARG(x->method_text));
        }
    }
    sightings_release(&older);
}

void check_stateless_session(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->era != ERA_D || x->initialize || exch_part(s, x) == PART_NONE)
            continue;
        if (x->session_id.len > 0) {
            struct finding *f = finding_about(run, x, PARTY_CLIENT, "client");
            finding_message(run, f,
                            "the client sends Mcp-Session-Id; this revision has no "
                            "sessions");
            finding_frame(run, f, x->first, "the request with Mcp-Session-Id");
        }
        if (x->response_session.len > 0) {
            struct finding *f = finding_about(run, x, PARTY_SERVER, "server");
            finding_message(run, f,
                            "the server sends Mcp-Session-Id; this revision has no "
                            "sessions");
            finding_frame(run, f, x->response, "the response with Mcp-Session-Id");
        }
    }
}

/* ---- input required, and the retry ---- */

static bool wants_input(const struct request *r)
{
    return r->response && r->response->kind == RPC_RESULT &&
           slice_eq(r->response->result_type, SLICE_LIT("input_required"));
}

static bool may_want_input(const struct message *m)
{
    return message_is(m, "tools/call") || message_is(m, "prompts/get") ||
           message_is(m, "resources/read");
}

static struct finding *on_retry(struct rule_run *run, const struct session *s,
                                const struct request *r, enum party party, const char *about)
{
    struct finding *f = finding_add(run, s);

    finding_on_request(run, f, r);
    f->party = party;
    f->subject = about;
    return f;
}

static void judge_input_result(struct rule_run *run, const struct session *s,
                               const struct request *r)
{
    const struct message *m = r->response;

    if (!may_want_input(r->msg)) {
        struct finding *f = on_retry(run, s, r, PARTY_SERVER, "method");
        finding_message(run, f,
                        "a " SLICE_FMT " is answered input_required, which only "
                        "tools/call, prompts/get and resources/read may be",
                        SLICE_ARG(r->msg->method));
        finding_frame(run, f, m->at, "the result");
        finding_frame(run, f, r->at, "the request");
    }
    if (!(m->flags & RPC_HAS_INPUT_REQUESTS) && m->request_state == 0) {
        struct finding *f = on_retry(run, s, r, PARTY_SERVER, "nothing asked");
        finding_message(run, f,
                        "a result says input_required and has neither inputRequests nor "
                        "requestState");
        finding_frame(run, f, m->at, "the result");
        finding_frame(run, f, r->at, "the request");
    }
}

static bool same_call(const struct request *a, const struct request *b)
{
    return slice_eq(a->msg->method, b->msg->method) && slice_eq(a->msg->name, b->msg->name);
}

/*
 * The request that r tries again: the newest one of the same call that asked for input before r,
 * the one with r's own state before all others. The search looks back over a bounded number.
 */
static const struct request *first_try(const struct session *s, const struct request *r)
{
    const struct request *newest = NULL;
    uint32_t from = r->index > 1024 ? r->index - 1024 : 0;

    for (uint32_t i = r->index; i-- > from;) {
        const struct request *o = s->request[i];
        if (o->from_server || !wants_input(o) || o->response->at.time > r->at.time ||
            !same_call(o, r) || !same_agent(s->exch[o->exch], s->exch[r->exch]))
            continue;
        if (r->msg->request_state && o->response->request_state == r->msg->request_state)
            return o;
        if (!newest)
            newest = o;
    }
    return newest;
}

static const char *state_fault(const struct request *first, const struct request *r)
{
    uint64_t given = first->response->request_state;
    uint64_t sent = r->msg->request_state;

    if (given == sent)
        return NULL;
    if (sent == 0)
        return "leaves out the requestState that it was given";
    return given == 0 ? "invents a requestState, none was given" : "changes the requestState";
}

static void judge_retry(struct rule_run *run, const struct session *s, const struct request *r)
{
    const struct request *first = first_try(s, r);
    const char *fault = first ? state_fault(first, r) : NULL;

    if (!first)
        return;
    if (rpc_id_eq(&first->msg->id, &r->msg->id)) {
        struct finding *f = on_retry(run, s, r, PARTY_CLIENT, "id");
        finding_message(run, f, "the retry of " SLICE_FMT " has the id of the first try: %s",
                        SLICE_ARG(r->msg->method), run_rpc_id(run, &r->msg->id));
        finding_frame(run, f, r->at, "the retry");
        finding_frame(run, f, first->at, "the first try");
    }
    if (!fault)
        return;
    struct finding *f = on_retry(run, s, r, PARTY_CLIENT, "state");
    f->certainty =
        CERTAINTY_LIKELY; /* another call of the same name may be the one that is meant */
    finding_message(run, f, "the retry of " SLICE_FMT " %s", SLICE_ARG(r->msg->method), fault);
    finding_frame(run, f, r->at, "the retry");
    finding_frame(run, f, first->response->at, "the result that asked for input");
}

void check_retry_state(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *r = s->request[i];
        if (r->from_server || !stateless_request(s->exch[r->exch]))
            continue;
        if (wants_input(r))
            judge_input_result(run, s, r);
        if ((r->msg->flags & RPC_HAS_INPUT_RESPONSES) || r->msg->request_state != 0)
            judge_retry(run, s, r);
    }
}

/* ---- removed ---- */

static const char *removed(const struct message *m)
{
    static const char *const methods[] = {
        "initialize",
        "notifications/initialized",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "notifications/cancelled",
    };

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (message_is(m, methods[i]))
            return methods[i];
    }
    return NULL;
}

void check_removed_feature(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        const char *what = x->era == ERA_D && x->method == HTTP_METHOD_POST && x->msg_count > 0
                               ? removed(&x->msg[0])
                               : NULL;
        if (!what)
            continue;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, what);
        finding_message(run, f, "%s was removed in 2026-07-28; it is answered %d", what, x->status);
        finding_frame(run, f, x->first, "POST %s", what);
    }
}
