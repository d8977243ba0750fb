/* report_json.c - the report as JSON, and as one object a line (FORMATS.md 3). */
#include "json_out.h"
#include "jtext.h"
#include "report.h"

struct writer {
    struct json_out j;
    const struct report *r;
    bool lines; /* ndjson */
};

/* Free text: ids of sessions in it are replaced. */
static void put_words(struct writer *w, const char *key, const char *text)
{
    if (text)
        jout_string(&w->j, key, redact_text(w->r->redact, w->r->arena, slice_str(text)));
}

/* A value of the wire, that of a session id excepted: some servers put theirs into event ids. */
static void put_value(struct writer *w, const char *key, struct slice value)
{
    jout_string(&w->j, key, redact_text(w->r->redact, w->r->arena, value));
}

static void put_id(struct writer *w, const char *key, struct slice id)
{
    if (id.ptr)
        put_value(w, key, id);
}

static void put_rpc_id(struct writer *w, const char *key, const struct rpc_id *id)
{
    struct buf scratch;

    if (id->type != RPC_ID_STRING) {
        jout_rpc_id(&w->j, key, id);
        return;
    }
    buf_init(&scratch, SIZE_MAX);
    put_value(w, key, jtext_unescape(id->text, &scratch));
    buf_release(&scratch);
}

/* One object of a list; as a line of its own it says what it is. */
static void open_item(struct writer *w, const char *type)
{
    jout_open(&w->j, NULL, '{');
    if (w->lines)
        jout_text(&w->j, "type", type);
}

static void open_list(struct writer *w, const char *key)
{
    if (!w->lines)
        jout_open(&w->j, key, '[');
}

static void close_list(struct writer *w)
{
    if (!w->lines)
        jout_close(&w->j);
}

static void put_place(struct writer *w, struct place at)
{
    jout_u64(&w->j, "input", at.input);
    jout_u64(&w->j, report_is_har(w->r, at) ? "entry" : "frame", at.frame);
}

/* ---- head ---- */

static void put_tool(struct writer *w)
{
    const struct options *opt = w->r->opt;

    jout_text(&w->j, "schema", "sseaudit.report/1");
    jout_open(&w->j, "tool", '{');
    jout_text(&w->j, "name", "sseaudit");
    jout_text(&w->j, "version", SSEAUDIT_VERSION);
    jout_row(&w->j, "command");
    jout_text(&w->j, NULL, "sseaudit");
    for (int i = 1; i < opt->argc; i++)
        put_words(w, NULL, opt->argv[i]);
    jout_close(&w->j);
    jout_text(&w->j, "profile", profiles_text(opt->profiles));
    jout_text(&w->j, "policy_sha256", policy_sha256(w->r->policy));
    jout_close(&w->j);
}

static const char *kind_of(const struct audit_input *in)
{
    return in->kind == INPUT_UNKNOWN || in->kind == INPUT_EMPTY ? NULL : input_kind_text(in->kind);
}

static void put_input(struct writer *w, const struct audit_input *in)
{
    bool counts = in->kind == INPUT_PCAP || in->kind == INPUT_PCAPNG;

    open_item(w, "input");
    put_words(w, "path", in->path);
    jout_text(&w->j, "kind", kind_of(in));
    if (in->sha256[0]) {
        jout_text(&w->j, "sha256", in->sha256);
        jout_u64(&w->j, "bytes", in->bytes);
    }
    if (counts || in->kind == INPUT_HAR || in->kind == INPUT_DISPATCH_LOG)
        jout_u64(&w->j, counts ? "packets" : "entries", in->packets);
    jout_time(&w->j, "first_ts", in->first_time);
    jout_time(&w->j, "last_ts", in->last_time);
    jout_text(&w->j, "status", input_status_text(in->status));
    jout_open(&w->j, "notes", '[');
    for (size_t i = 0; i < in->note_count; i++)
        put_words(w, NULL, in->note[i]);
    jout_close(&w->j);
    jout_close(&w->j);
}

/* ---- summary ---- */

static void put_severities(struct writer *w)
{
    jout_open(&w->j, "findings", '{');
    for (int s = SEV_ERROR; s >= SEV_INFO; s--) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < w->r->finding_count; i++)
            n += w->r->finding[i]->severity == (enum severity)s;
        jout_u64(&w->j, severity_text((enum severity)s), n);
    }
    jout_close(&w->j);
}

/* Clocks of the logs against the capture's, as they were applied. */
static void put_clocks(struct writer *w)
{
    const struct model *m = w->r->model;

    jout_open(&w->j, "clocks", '[');
    for (uint32_t i = 0; i < m->skew_count; i++) {
        const struct clock_skew *c = &m->skew[i];
        if (!c->known || !m->log || c->file >= m->log->file_count)
            continue;
        jout_open(&w->j, NULL, '{');
        jout_u64(&w->j, "input", m->log->file[c->file].input);
        jout_i64(&w->j, "offset_ns", c->offset);
        jout_number(&w->j, "drift_ppm", c->drift * 1e6);
        jout_u64(&w->j, "pairs", c->pairs);
        jout_close(&w->j);
    }
    jout_close(&w->j);
}

static void put_left_out(struct writer *w)
{
    const struct audit *a = w->r->audit;

    jout_open(&w->j, "left_out", '{');
    jout_u64(&w->j, "connections", a->other_connections);
    jout_u64(&w->j, "packets", a->other_packets);
    jout_u64(&w->j, "quic_packets", a->quic_packets);
    jout_u64(&w->j, "websockets", audit_noted(a, NOTE_WEBSOCKET));
    jout_u64(&w->j, "http_exchanges", a->model->other_http);
    jout_close(&w->j);
}

static void put_summary(struct writer *w)
{
    const struct report *r = w->r;
    uint64_t streams = 0;
    uint64_t legs = 0;
    uint64_t events = 0;
    uint64_t requests = 0;

    for (uint32_t i = 0; i < r->session_count; i++) {
        streams += r->session[i]->stream_count;
        legs += r->session[i]->leg_count;
        events += r->session[i]->counted_events;
        requests += r->session[i]->client_requests;
    }
    jout_u64(&w->j, "sessions", r->session_count);
    jout_u64(&w->j, "streams", streams);
    jout_u64(&w->j, "legs", legs);
    jout_u64(&w->j, "events", events);
    jout_u64(&w->j, "requests", requests);
    jout_u64(&w->j, "resumptions", r->resumption_count);
    jout_open(&w->j, "verdicts", '{');
    for (int v = VERDICT_CONTINUE; v <= VERDICT_UNDECIDABLE; v++)
        jout_u64(&w->j, verdict_text((enum verdict)v), report_verdicts(r, (enum verdict)v));
    jout_close(&w->j);
    put_severities(w);
    jout_u64(&w->j, "suppressed", r->suppressed_count);
    jout_u64(&w->j, "undecidable", r->undecidable_count);
    put_left_out(w);
    put_clocks(w);
}

/* ---- sessions ---- */

static void put_peer(struct writer *w, const char *key, struct slice name, struct slice version)
{
    if (!name.ptr && !version.ptr)
        return;
    jout_open(&w->j, key, '{');
    put_id(w, "name", name);
    put_id(w, "version", version);
    jout_close(&w->j);
}

static void put_leg(struct writer *w, const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[l->exch];
    struct place first = l->begin.time ? l->begin : x->first;
    struct place last = x->last.time ? x->last : x->end;
    bool har = report_is_har(w->r, first);

    jout_open(&w->j, NULL, '{');
    jout_text(&w->j, "leg", report_leg(w->r, s, l->index));
    jout_u64(&w->j, "input", first.input);
    if (har) {
        jout_u64(&w->j, "entry", first.frame);
    } else {
        jout_u64(&w->j, "tcp_stream", x->tcp_stream);
        jout_u64(&w->j, "first_frame", first.frame);
        jout_u64(&w->j, "last_frame", last.time ? last.frame : first.frame);
    }
    jout_text(&w->j, "end", end_kind_text(l->end));
    jout_u64(&w->j, "events", l->event_count);
    jout_close(&w->j);
}

static void put_stream(struct writer *w, const struct session *s, const struct stream *st)
{
    const struct exch *x = s->exch[st->exch];

    jout_open(&w->j, NULL, '{');
    jout_text(&w->j, "stream", report_stream(w->r, s, st->index));
    if (x->has_request && x->method != HTTP_METHOD_OTHER)
        jout_text(&w->j, "opened_by", x->method == HTTP_METHOD_POST ? "POST" : "GET");
    jout_row(&w->j, "requests");
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if (x->msg[i].kind == RPC_REQUEST)
            put_rpc_id(w, NULL, &x->msg[i].id);
    }
    jout_close(&w->j);
    jout_u64(&w->j, "events", st->events);
    jout_open(&w->j, "legs", '[');
    for (uint32_t i = 0; i < st->leg_count; i++)
        put_leg(w, s, s->leg[st->leg[i]]);
    jout_close(&w->j);
    jout_close(&w->j);
}

static void put_session_id(struct writer *w, const struct session *s)
{
    char hex[65];

    if (!s->id.ptr)
        return;
    if (w->r->opt->reveal) {
        jout_string(&w->j, "id", s->id);
        return;
    }
    redact_digest(s->id, 12, hex);
    jout_text(&w->j, "id", arena_printf(w->r->arena, "sha:%s", hex));
}

static void put_session(struct writer *w, const struct session *s)
{
    open_item(w, "session");
    jout_text(&w->j, "session", s->name);
    put_session_id(w, s);
    jout_text(&w->j, "server", report_server(w->r, s));
    put_id(w, "revision", s->revision);
    put_peer(w, "client_info", s->client_name, s->client_version);
    put_peer(w, "server_info", s->server_name, s->server_version);
    jout_text(&w->j, "id_scheme", id_scheme_text(s->scheme));
    jout_text(&w->j, "cursor_policy", cursor_policy_text(s->policy));
    jout_time(&w->j, "first_ts", s->first.time);
    jout_time(&w->j, "last_ts", s->last.time);
    jout_open(&w->j, "streams", '[');
    for (uint32_t i = 0; i < s->stream_count; i++)
        put_stream(w, s, s->stream[i]);
    jout_close(&w->j);
    jout_close(&w->j);
}

/* ---- resumptions ---- */

static void put_event_id(struct writer *w, const char *key, const struct session *s, uint32_t event)
{
    const struct event *e = event == NONE ? NULL : event_at(s, event);

    if (e && e->has_id)
        put_value(w, key, e->id);
}

static void put_missing(struct writer *w, const struct missing_id *list, uint32_t count)
{
    jout_row(&w->j, "missing");
    for (uint32_t i = 0; i < count; i++)
        put_value(w, NULL, list[i].id);
    jout_close(&w->j);
}

static void put_outstanding(struct writer *w, const struct resumption *p)
{
    const struct session *s = p->session;

    jout_row(&w->j, "outstanding");
    for (uint32_t i = 0; i < p->outstanding_count; i++) {
        if (p->outstanding[i] < s->request_count)
            put_rpc_id(w, NULL, &s->request[p->outstanding[i]]->msg->id);
    }
    jout_close(&w->j);
}

static void put_replay(struct writer *w, const struct resumption *p)
{
    put_event_id(w, "replay_head", p->session, p->head);
    put_id(w, "expected_head", p->expected);
    jout_u64(&w->j, "replayed", p->replayed);
    if (p->missing_known || !(p->faults & RF_GAP))
        put_missing(w, p->missing, p->missing_count);
    put_outstanding(w, p);
    if (p->head != NONE || !p->session->has_log)
        jout_text(&w->j, "head_state", head_state_text(p->head_state));
}

static void put_resumption(struct writer *w, const struct resumption *p)
{
    const struct session *s = p->session;
    const struct exch *x = s->exch[p->exch];
    uint32_t stream = p->stream == NONE && p->leg != NONE ? s->leg[p->leg]->stream : p->stream;

    open_item(w, "resumption");
    jout_text(&w->j, "session", s->name);
    if (stream != NONE)
        jout_text(&w->j, "stream", report_stream(w->r, s, stream));
    if (p->leg != NONE)
        jout_text(&w->j, "leg", report_leg(w->r, s, p->leg));
    put_place(w, x->first);
    jout_time(&w->j, "ts", x->first.time);
    put_id(w, "cursor", p->cursor);
    put_id(w, "wire_cursor", p->wire_cursor);
    put_id(w, "dispatch_cursor", p->dispatch_cursor);
    if (x->status > 0)
        jout_i64(&w->j, "status", x->status);
    put_replay(w, p);
    jout_text(&w->j, "verdict", verdict_text(p->verdict));
    put_event_id(w, "failed_at", s, p->failed_at);
    jout_row(&w->j, "reasons");
    for (size_t i = 0; i < ARRAY_LEN(p->reason) && p->reason[i]; i++)
        jout_text(&w->j, NULL, p->reason[i]);
    jout_close(&w->j);
    put_words(w, "explanation", p->explanation);
    put_words(w, "undecidable", p->undecidable);
    jout_text(&w->j, "client_did", client_did_text(p->did));
    jout_close(&w->j);
}

/* ---- findings ---- */

static void put_evidence(struct writer *w, const struct finding *f)
{
    if (f->evidence_count == 0)
        return;
    jout_open(&w->j, "evidence", '[');
    for (uint32_t i = 0; i < f->evidence_count; i++) {
        const struct evidence *e = &f->evidence[i];
        jout_open(&w->j, NULL, '{');
        put_place(w, e->at);
        jout_time(&w->j, "ts", e->at.time);
        put_words(w, "what", e->what);
        if (!report_is_har(w->r, e->at))
            jout_text(&w->j, "filter",
                      arena_printf(w->r->arena, "frame.number == %u", e->at.frame));
        jout_close(&w->j);
    }
    jout_close(&w->j);
}

static void put_log(struct writer *w, const struct finding *f)
{
    const struct dispatch_log *log = w->r->model->log;

    if (f->log_count == 0 || !log)
        return;
    jout_open(&w->j, "log", '[');
    for (uint32_t i = 0; i < f->log_count; i++) {
        const struct log_entry *e = &log->entry[f->log[i].entry];
        jout_open(&w->j, NULL, '{');
        jout_u64(&w->j, "input", log->file[e->file].input);
        jout_u64(&w->j, "line", e->line);
        put_words(w, "what", f->log[i].what);
        jout_close(&w->j);
    }
    jout_close(&w->j);
}

static void put_payloads(struct writer *w, const struct finding *f)
{
    const struct payload **list;
    size_t count = w->r->audit->payloads ? report_payloads(w->r, f, &list) : 0;

    if (count == 0)
        return;
    jout_open(&w->j, "payloads", '[');
    for (size_t i = 0; i < count; i++) {
        jout_open(&w->j, NULL, '{');
        put_place(w, (struct place){ .input = list[i]->input, .frame = list[i]->frame });
        jout_u64(&w->j, "bytes", list[i]->bytes);
        jout_string(&w->j, "text", redact_text(w->r->redact, w->r->arena, list[i]->text));
        jout_close(&w->j);
    }
    jout_close(&w->j);
}

static void put_subject(struct writer *w, const struct finding *f)
{
    const struct session *s = f->session;

    if (s)
        jout_text(&w->j, "session", s->name);
    if (s && f->stream != NONE)
        jout_text(&w->j, "stream", report_stream(w->r, s, f->stream));
    if (s && f->leg != NONE)
        jout_text(&w->j, "leg", report_leg(w->r, s, f->leg));
    put_id(w, "event_id", f->event_id);
    put_id(w, "cursor", f->cursor);
    put_id(w, "replay_head", f->replay_head);
    if (f->has_missing)
        put_missing(w, f->missing, f->missing_count);
    put_rpc_id(w, "request_id", &f->request_id);
}

static void put_finding(struct writer *w, const struct finding *f)
{
    open_item(w, "finding");
    jout_text(&w->j, "rule", f->rule->id);
    jout_text(&w->j, "severity", severity_text(f->severity));
    jout_text(&w->j, "certainty", certainty_text(f->certainty));
    put_subject(w, f);
    jout_text(&w->j, "party", party_text(f->party));
    put_words(w, "message", f->message);
    put_words(w, "why", f->why ? f->why : f->rule->why);
    put_words(w, "advice", f->advice ? f->advice : f->rule->advice);
    jout_u64(&w->j, "count", f->count);
    if (f->also_count > 0) {
        jout_row(&w->j, "explains");
        for (uint32_t i = 0; i < f->also_count; i++)
            jout_text(&w->j, NULL, f->also[i]);
        jout_close(&w->j);
    }
    if (f->suppressed)
        put_words(w, "suppressed", f->suppressed_why);
    put_evidence(w, f);
    put_log(w, f);
    put_payloads(w, f);
    jout_close(&w->j);
}

static void put_undecidable(struct writer *w, const struct undecidable *u)
{
    open_item(w, "undecidable");
    jout_text(&w->j, "rule", u->rule->id);
    if (u->session) {
        jout_text(&w->j, "session", u->session->name);
        if (u->stream != NONE)
            jout_text(&w->j, "stream", report_stream(w->r, u->session, u->stream));
    }
    put_words(w, "reason", u->reason);
    jout_close(&w->j);
}

/* ---- the whole ---- */

static void put_inputs(struct writer *w)
{
    open_list(w, "inputs");
    for (uint32_t i = 0; i < w->r->audit->input_count; i++)
        put_input(w, &w->r->audit->input[i]);
    close_list(w);
}

static void put_lists(struct writer *w)
{
    const struct report *r = w->r;

    open_list(w, "sessions");
    for (uint32_t i = 0; i < r->session_count; i++)
        put_session(w, r->session[i]);
    close_list(w);
    open_list(w, "resumptions");
    for (uint32_t i = 0; i < r->resumption_count; i++)
        put_resumption(w, r->resumption[i]);
    close_list(w);
    open_list(w, "findings");
    for (uint32_t i = 0; i < r->finding_count; i++)
        put_finding(w, r->finding[i]);
    close_list(w);
    open_list(w, "undecidable");
    for (uint32_t i = 0; i < r->undecidable_count; i++)
        put_undecidable(w, r->undecidable[i]);
    close_list(w);
}

void report_json(const struct report *r, FILE *to)
{
    struct writer w = { .r = r };

    jout_init(&w.j, to, true);
    jout_open(&w.j, NULL, '{');
    put_tool(&w);
    put_inputs(&w);
    jout_open(&w.j, "summary", '{');
    put_summary(&w);
    jout_close(&w.j);
    put_lists(&w);
    jout_close(&w.j);
}

void report_ndjson(const struct report *r, FILE *to)
{
    struct writer w = { .r = r, .lines = true };

    jout_init(&w.j, to, false);
    put_inputs(&w);
    put_lists(&w);
    open_item(&w, "summary");
    put_tool(&w);
    put_summary(&w);
    jout_close(&w.j);
}
