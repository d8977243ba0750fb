/* report_text.c - the report for people. */
#include "page.h"
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>

struct writer {
    struct page p;
    const struct report *r;
    bool base_names; /* of the inputs are enough */
};

static const char *clean(const struct writer *w, struct slice s)
{
    return page_clean(&w->p, s);
}

static const char *clean_id(const struct writer *w, struct slice id)
{
    if (!id.ptr)
        return "-";
    return id.len == 0 ? "(empty)" : clean(w, id);
}

static void title(struct writer *w, const char *text)
{
    fputc('\n', w->p.to);
    page_ink(&w->p, INK_BOLD, text);
    fputc('\n', w->p.to);
}

static enum ink ink_of_severity(enum severity s)
{
    return s == SEV_ERROR ? INK_RED : s == SEV_WARNING ? INK_YELLOW : INK_CYAN;
}

static enum ink ink_of_verdict(enum verdict v)
{
    switch (v) {
    case VERDICT_CONTINUE: return INK_GREEN;
    case VERDICT_FAIL: return INK_RED;
    case VERDICT_WAIT:
    case VERDICT_UNDECIDABLE: break;
    }
    return INK_YELLOW;
}

/* ---- inputs and sessions ---- */

static const char *size_of_input(const struct writer *w, const struct audit_input *in)
{
    const struct page *p = &w->p;

    if (in->kind == INPUT_PCAP || in->kind == INPUT_PCAPNG)
        return page_count(p, in->packets, "packet");
    if (in->kind == INPUT_HAR || in->kind == INPUT_DISPATCH_LOG)
        return in->packets == 1 ? "1 entry"
                                : arena_printf(p->arena, "%" PRIu64 " entries", in->packets);
    return in->kind == INPUT_KEYLOG ? page_count(p, in->bytes, "byte") : "-";
}

static void inputs(struct writer *w)
{
    const struct audit *a = w->r->audit;

    title(w, "Inputs");
    page_table_start(&w->p, 6);
    for (uint32_t i = 0; i < a->input_count; i++) {
        const struct audit_input *in = &a->input[i];
        bool known = in->kind != INPUT_UNKNOWN && in->kind != INPUT_EMPTY;
        page_cell(&w->p, INK_PLAIN, clean(w, slice_str(in->path)));
        page_cell(&w->p, INK_PLAIN, known ? input_kind_text(in->kind) : "?");
        page_cell(&w->p, INK_PLAIN, size_of_input(w, in));
        page_cell(&w->p, INK_PLAIN, page_time(&w->p, in->first_time));
        page_cell(&w->p, INK_PLAIN, page_time(&w->p, in->last_time));
        page_cell(&w->p, in->status == INPUT_COMPLETE ? INK_PLAIN : INK_RED,
                  in->status == INPUT_UNREAD ? "not read" : input_status_text(in->status));
    }
    page_table_end(&w->p);
    for (uint32_t i = 0; i < a->input_count; i++) {
        const char *lead =
            arena_printf(w->p.arena, "  %s: ", clean(w, slice_str(a->input[i].path)));
        for (size_t n = 0; n < a->input[i].note_count; n++)
            page_words(&w->p, lead, a->input[i].note[n]);
    }
}

static const char *peer(const struct writer *w, struct slice name, struct slice version)
{
    if (!name.ptr)
        return "-";
    if (!version.ptr)
        return clean(w, name);
    return arena_printf(w->p.arena, "%s/%s", clean(w, name), clean(w, version));
}

static const char *session_id(const struct writer *w, const struct session *s)
{
    char hex[65];

    if (!s->id.ptr)
        return "(no id)";
    if (w->r->opt->reveal)
        return clean(w, s->id);
    redact_digest(s->id, 6, hex);
    return arena_printf(w->p.arena, "sess:%s", hex);
}

static void head_cells(struct writer *w, const char *const *names, size_t count)
{
    page_table_start(&w->p, count);
    for (size_t i = 0; i < count; i++)
        page_cell(&w->p, INK_DIM, names[i]);
}

static void sessions(struct writer *w)
{
    static const char *const names[] = { "session", "id",        "server", "revision",
                                         "client",  "served by", "ids",    "cursor policy" };

    if (w->r->session_count == 0)
        return;
    title(w, "Sessions");
    head_cells(w, names, ARRAY_LEN(names));
    for (uint32_t i = 0; i < w->r->session_count; i++) {
        const struct session *s = w->r->session[i];
        page_cell(&w->p, INK_PLAIN, s->name);
        page_cell(&w->p, INK_PLAIN, session_id(w, s));
        page_cell(&w->p, INK_PLAIN, clean(w, slice_str(report_server(w->r, s))));
        page_cell(&w->p, INK_PLAIN, clean_id(w, s->revision));
        page_cell(&w->p, INK_PLAIN, peer(w, s->client_name, s->client_version));
        page_cell(&w->p, INK_PLAIN, peer(w, s->server_name, s->server_version));
        page_cell(&w->p, INK_PLAIN, id_scheme_text(s->scheme));
        page_cell(&w->p, INK_PLAIN, cursor_policy_text(s->policy));
    }
    page_table_end(&w->p);
}

static const char *method_of(const struct exch *x)
{
    switch (x->method) {
    case HTTP_METHOD_GET: return "GET";
    case HTTP_METHOD_POST: return "POST";
    case HTTP_METHOD_OTHER:
    case HTTP_METHOD_DELETE:
    case HTTP_METHOD_OPTIONS: break;
    }
    return "-";
}

static void leg_row(struct writer *w, const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[l->exch];
    struct place first = l->begin.time ? l->begin : x->first;

    page_cell(&w->p, INK_PLAIN, report_leg(w->r, s, l->index));
    page_cell(&w->p, INK_PLAIN, x->has_request ? method_of(x) : "-");
    page_cell(&w->p, INK_PLAIN, clean_id(w, x->cursor));
    page_cell(&w->p, INK_PLAIN, page_time(&w->p, first.time));
    page_cell(&w->p, INK_PLAIN, page_time(&w->p, l->end_at.time));
    page_cell(&w->p, INK_PLAIN, page_count(&w->p, l->event_count, "event"));
    page_cell(&w->p, INK_PLAIN, arena_printf(w->p.arena, "%u", x->tcp_stream));
    page_cell(&w->p, INK_PLAIN, end_kind_text(l->end));
}

static void legs(struct writer *w)
{
    static const char *const names[] = { "leg", "by",     "cursor",     "from",
                                         "to",  "events", "tcp.stream", "end" };

    title(w, "Legs");
    head_cells(w, names, ARRAY_LEN(names));
    for (uint32_t i = 0; i < w->r->session_count; i++) {
        const struct session *s = w->r->session[i];
        for (uint32_t k = 0; k < s->stream_count; k++) {
            for (uint32_t n = 0; n < s->stream[k]->leg_count; n++)
                leg_row(w, s, s->leg[s->stream[k]->leg[n]]);
        }
    }
    page_table_end(&w->p);
}

/* ---- resumptions ---- */

static const char *reasons(const struct writer *w, const struct resumption *p)
{
    const char *text = "";

    for (size_t i = 0; i < ARRAY_LEN(p->reason) && p->reason[i]; i++)
        text = arena_printf(w->p.arena, "%s%s%s", text, i > 0 ? ", " : "", p->reason[i]);
    if (*text == '\0' && p->verdict == VERDICT_UNDECIDABLE && p->undecidable)
        return clean(w, slice_str(p->undecidable));
    return *text ? text : "-";
}

static const char *head_of(const struct writer *w, const struct resumption *p)
{
    const struct event *e = p->head == NONE ? NULL : event_at(p->session, p->head);
    const struct exch *x = p->session->exch[p->exch];

    if (e)
        return clean_id(w, e->has_id ? e->id : (struct slice){ 0 });
    return x->status != 0 && x->status != 200 ? arena_printf(w->p.arena, "(%d)", x->status)
                                              : "(none)";
}

static void resumptions(struct writer *w)
{
    static const char *const names[] = { "stream",   "time",    "cursor",     "head",
                                         "expected", "verdict", "client did", "reasons" };

    if (w->r->resumption_count == 0)
        return;
    title(w, "Resumptions");
    head_cells(w, names, ARRAY_LEN(names));
    for (uint32_t i = 0; i < w->r->resumption_count; i++) {
        const struct resumption *p = w->r->resumption[i];
        const struct session *s = p->session;
        page_cell(&w->p, INK_PLAIN,
                  p->leg != NONE      ? report_leg(w->r, s, p->leg)
                  : p->stream != NONE ? report_stream(w->r, s, p->stream)
                                      : s->name);
        page_cell(&w->p, INK_PLAIN, page_time(&w->p, s->exch[p->exch]->first.time));
        page_cell(&w->p, INK_PLAIN, clean_id(w, p->cursor));
        page_cell(&w->p, INK_PLAIN, head_of(w, p));
        page_cell(&w->p, INK_PLAIN, clean_id(w, p->expected));
        page_cell(&w->p, ink_of_verdict(p->verdict), verdict_text(p->verdict));
        page_cell(&w->p, INK_PLAIN, client_did_text(p->did));
        page_cell(&w->p, INK_PLAIN, reasons(w, p));
    }
    page_table_end(&w->p);
}

/* ---- findings ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Base names, where these tell the inputs apart. */
static const char *path_of(const struct writer *w, uint32_t input)
{
    const struct audit *a = w->r->audit;
    const char *path = input < a->input_count ? a->input[input].path : "?";

    return w->base_names ? base_of(path) : path;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool base_names_differ(const struct audit *a)
{
    const char **name = mem_alloc((a->input_count + 1) * sizeof(const char *));
    bool differ = true;

    for (uint32_t i = 0; i < a->input_count; i++)
        name[i] = base_of(a->input[i].path);
    qsort(name, a->input_count, sizeof(const char *), compare_texts);
    for (uint32_t i = 1; i < a->input_count; i++)
        differ = differ && strcmp(name[i - 1], name[i]) != 0;
    free(name);
    return differ;
}

static int compare_frames(const void *va, const void *vb)
{
    const uint32_t *a = va;
    const uint32_t *b = vb;

    return (*a > *b) - (*a < *b);
}

/* Wireshark's display filter for all frames of one input. */
static void filter_line(struct writer *w, const struct finding *f, uint32_t input)
{
    uint32_t *frame = arena_alloc(w->p.arena, f->evidence_count * sizeof(*frame));
    const char *list = "";
    size_t count = 0;
    size_t different = 0;

    for (uint32_t i = 0; i < f->evidence_count; i++) {
        if (f->evidence[i].at.input == input)
            frame[count++] = f->evidence[i].at.frame;
    }
    qsort(frame, count, sizeof(*frame), compare_frames);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || frame[i] != frame[i - 1])
            list = arena_printf(w->p.arena, "%s%s%u", list, different++ > 0 ? ", " : "", frame[i]);
    }
    page_words(&w->p, "  filter  ",
               different == 1 ? arena_printf(w->p.arena, "frame.number == %s", list)
                              : arena_printf(w->p.arena, "frame.number in {%s}", list));
}

static bool seen_before(const struct finding *f, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (f->evidence[k].at.input == f->evidence[i].at.input)
            return true;
    }
    return false;
}

static void look_at(struct writer *w, const struct finding *f)
{
    for (uint32_t i = 0; i < f->evidence_count; i++) {
        const struct evidence *e = &f->evidence[i];
        bool har = report_is_har(w->r, e->at);

        page_words(&w->p, i == 0 ? "  look    " : "          ",
                   arena_printf(w->p.arena, "%s%s%u %s %s", path_of(w, e->at.input),
                                har ? " entry " : ":", e->at.frame, page_time(&w->p, e->at.time),
                                e->what));
    }
    for (uint32_t i = 0; i < f->evidence_count; i++) {
        if (!report_is_har(w->r, f->evidence[i].at) && !seen_before(f, i))
            filter_line(w, f, f->evidence[i].at.input);
    }
}

static void log_lines(struct writer *w, const struct finding *f)
{
    const struct dispatch_log *log = w->r->model->log;

    for (uint32_t i = 0; log && i < f->log_count; i++) {
        const struct log_entry *e = &log->entry[f->log[i].entry];
        page_words(&w->p, i == 0 ? "  log     " : "          ",
                   arena_printf(w->p.arena, "%s:%u %s", path_of(w, log->file[e->file].input),
                                e->line, f->log[i].what));
    }
}

static void payloads(struct writer *w, const struct finding *f)
{
    const struct payload **list;
    size_t count = w->r->audit->payloads ? report_payloads(w->r, f, &list) : 0;

    for (size_t i = 0; i < count; i++) {
        bool cut = list[i]->text.len < list[i]->bytes;
        page_words(&w->p, "  payload ",
                   arena_printf(w->p.arena, "%s:%u %s%s", path_of(w, list[i]->input),
                                list[i]->frame, arena_str(w->p.arena, list[i]->text),
                                cut ? "..." : ""));
    }
}

static const char *subject(const struct writer *w, const struct finding *f)
{
    if (!f->session)
        return "recording";
    if (f->leg != NONE)
        return report_leg(w->r, f->session, f->leg);
    return f->stream != NONE ? report_stream(w->r, f->session, f->stream) : f->session->name;
}

static void finding(struct writer *w, const struct finding *f)
{
    const char *advice = f->advice ? f->advice : f->rule->advice;
    const char *why = f->why ? f->why : f->rule->why;

    fputc('\n', w->p.to);
    page_ink(&w->p, ink_of_severity(f->severity), severity_text(f->severity));
    fputs("  ", w->p.to);
    page_ink(&w->p, INK_BOLD, f->rule->id);
    fprintf(w->p.to, "  %s  (%s, %s", subject(w, f), certainty_text(f->certainty),
            party_text(f->party));
    if (f->count > 1)
        fprintf(w->p.to, ", %u times", f->count);
    fputs(")\n", w->p.to);
    page_words(&w->p, "  what    ", f->message ? f->message : f->rule->summary);
    if (why)
        page_words(&w->p, "  why     ", why);
    if (advice)
        page_words(&w->p, "  do      ", advice);
    look_at(w, f);
    log_lines(w, f);
    payloads(w, f);
}

static void findings(struct writer *w)
{
    const struct report *r = w->r;

    if (r->finding_count > r->suppressed_count)
        title(w, "Findings");
    for (int s = SEV_ERROR; s >= SEV_INFO; s--) {
        for (uint32_t i = 0; i < r->finding_count; i++) {
            if (r->finding[i]->severity == (enum severity)s && !r->finding[i]->suppressed)
                finding(w, r->finding[i]);
        }
    }
}

static void undecidables(struct writer *w)
{
    const struct report *r = w->r;

    if (r->undecidable_count > 0)
        title(w, "Could not be decided");
    for (uint32_t i = 0; i < r->undecidable_count; i++) {
        const struct undecidable *u = r->undecidable[i];
        const char *where = !u->session         ? "recording"
                            : u->stream != NONE ? report_stream(r, u->session, u->stream)
                                                : u->session->name;
        page_words(&w->p, arena_printf(w->p.arena, "  %s %s: ", where, u->rule->id), u->reason);
    }
}

/* ---- the last line ---- */

static void counts(struct writer *w)
{
    const struct report *r = w->r;
    uint64_t streams = 0;
    uint64_t legs_seen = 0;
    uint64_t events = 0;
    uint64_t requests = 0;

    for (uint32_t i = 0; i < r->session_count; i++) {
        streams += r->session[i]->stream_count;
        legs_seen += r->session[i]->leg_count;
        events += r->session[i]->counted_events;
        requests += r->session[i]->client_requests;
    }
    fprintf(w->p.to, "%s, %s, %s, %s, %s, %s\n", page_count(&w->p, r->session_count, "session"),
            page_count(&w->p, streams, "stream"), page_count(&w->p, legs_seen, "leg"),
            page_count(&w->p, events, "event"), page_count(&w->p, requests, "request"),
            page_count(&w->p, r->resumption_count, "resumption"));
}

static void left_out(struct writer *w)
{
    const struct audit *a = w->r->audit;
    uint64_t websockets = audit_noted(a, NOTE_WEBSOCKET);

    if (a->other_connections + a->other_packets > 0)
        fprintf(w->p.to, "left out: %s, %s of other protocols\n",
                page_count(&w->p, a->other_connections, "connection"),
                page_count(&w->p, a->other_packets, "packet"));
    if (a->model->other_http > 0)
        fprintf(w->p.to, "left out: %s without event stream or JSON-RPC\n",
                page_count(&w->p, a->model->other_http, "HTTP exchange"));
    if (websockets > 0)
        fprintf(w->p.to, "not read: %s\n", page_count(&w->p, websockets, "WebSocket connection"));
    if (a->quic_packets > 0)
        fprintf(w->p.to, "not read: %s of HTTP/3 (QUIC)\n",
                page_count(&w->p, a->quic_packets, "packet"));
}

static void last_line(struct writer *w)
{
    const struct report *r = w->r;
    uint32_t errors = report_count(r, SEV_ERROR);

    fputc('\n', w->p.to);
    if (r->model->session_count == 0)
        fputs("No MCP session was found: is the traffic encrypted (--keylog), or another port's?\n",
              w->p.to);
    page_ink(&w->p, errors > 0 ? INK_RED : INK_GREEN, page_count(&w->p, errors, "error"));
    fprintf(w->p.to, ", %s, %u info, %u undecidable",
            page_count(&w->p, report_count(r, SEV_WARNING), "warning"), report_count(r, SEV_INFO),
            r->undecidable_count);
    if (r->suppressed_count > 0)
        fprintf(w->p.to, ", %u suppressed by the policy", r->suppressed_count);
    if (r->audit->incomplete)
        fputs("; not every input was read to its end", w->p.to);
    fputc('\n', w->p.to);
}

void report_text(const struct report *r, FILE *to, bool color)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct writer w = {
        .r = r,
        .p = { .to = to, .color = color, .redact = r->redact, .arena = arena },
    };

    w.base_names = base_names_differ(r->audit);
    fprintf(to, "sseaudit %s, profile %s: ", SSEAUDIT_VERSION, profiles_text(r->opt->profiles));
    counts(&w);
    left_out(&w);
    inputs(&w);
    sessions(&w);
    if (r->opt->verbose > 0)
        legs(&w);
    resumptions(&w);
    findings(&w);
    undecidables(&w);
    last_line(&w);
    page_release(&w.p);
}
