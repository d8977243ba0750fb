/* input.c - RULES.md section 7: what the input could not show. What rests on it, the rules
 * concerned say themselves (undecidable). */
#include "rule.h"

#include <stdlib.h>

#define PLACES 8 /* named in one finding */
#define TEXTS  5

/* ---- capture-gap ---- */

static uint32_t gaps_of(const struct exch *x)
{
    return x->request_gaps + x->response_gaps;
}

static void gap_finding(struct rule_run *run, const struct session *s, uint32_t gaps,
                        uint32_t exchanges, uint32_t legs)
{
    struct finding *f = finding_add(run, s);
    uint32_t shown = 0;

    f->party = PARTY_CAPTURE;
    f->count = gaps;
    finding_message(
        run, f,
        "%u gap%s in %u exchange%s of the session (%u event stream%s): bytes that their "
        "receiver acknowledged are not in the capture; rules that argue from absence "
        "are suspended there",
        gaps, gaps == 1 ? "" : "s", exchanges, exchanges == 1 ? "" : "s", legs,
        legs == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->exch_count && shown < PLACES; i++) {
        const struct exch *x = s->exch[i];
        if (gaps_of(x) == 0)
            continue;
        if (shown++ == 0)
            finding_on_exch(run, f, x);
        finding_frame(run, f, x->gap_at, "bytes of the %s are missing before this%s",
                      x->response_gaps > 0 ? "response" : "request",
                      x->head_gap ? " (the head is hit)" : "");
    }
    f->request_id = (struct rpc_id){ 0 };
}

static void check_gap(struct rule_run *run, const struct session *s)
{
    uint32_t gaps = 0;
    uint32_t exchanges = 0;
    uint32_t legs = 0;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (gaps_of(x) == 0 || (x->flags & RECF_HAR))
            continue;
        gaps += gaps_of(x);
        exchanges++;
        legs += x->leg != NONE && x->response_gaps > 0;
    }
    if (gaps > 0)
        gap_finding(run, s, gaps, exchanges, legs);
}

/* ---- capture-starts-late ---- */

static bool needs_initialize(const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (s->exch[i]->era != ERA_D)
            return true;
    }
    return false;
}

static void check_late(struct rule_run *run, const struct session *s)
{
    if (!s->starts_late || s->legacy || !needs_initialize(s))
        return;
    struct finding *f = finding_add(run, s);
    f->party = PARTY_CAPTURE;
    if (s->orphan)
        finding_message(run, f,
                        "the capture begins inside the event stream: its request, session and "
                        "earlier events are not known");
    else
        finding_message(run, f,
                        "the session's initialize is not in the evidence: the capture began later, "
                        "or the client kept the session id from an earlier run; what was sent "
                        "before is not known");
    finding_frame(run, f, s->first, "the first that is seen of it");
}

static void whole_late(struct rule_run *run, const struct model *m)
{
    struct finding *f = NULL;

    for (uint32_t i = 0; i < m->note_count; i++) {
        const struct note *n = &m->note[i];
        if (n->kind != NOTE_STARTS_LATE)
            continue;
        if (!f) {
            f = finding_add(run, NULL);
            f->party = PARTY_CAPTURE;
            f->subject = "connections";
            f->count = 0;
        }
        if (f->count < PLACES)
            finding_frame(run, f, n->at, "the first packet of connection %u (tcp.stream)",
                          n->tcp_stream);
        f->count += (uint32_t)n->count;
    }
    if (f)
        finding_message(run, f,
                        "the start of %u connection%s is not in the capture: what was open then is "
                        "seen from the middle",
                        f->count, f->count == 1 ? "" : "s");
}

/* ---- capture-truncated ---- */

static void truncated_note(struct rule_run *run, const struct note *n)
{
    struct finding *f = finding_add(run, NULL);
    bool cut_packets = strstr(n->text, "snap") != NULL;

    f->party = PARTY_CAPTURE;
    f->subject = run_text(run, "%u %s", n->at.input, n->text);
    f->count = n->count < UINT32_MAX ? (uint32_t)n->count : UINT32_MAX;
    if (cut_packets)
        finding_message(run, f,
                        "%llu packet%s cut by the snap length of the capture: the bytes after the "
                        "cut are unknown",
                        (unsigned long long)n->count, n->count == 1 ? " is" : "s are");
    else
        finding_message(run, f, "the file ends in the middle: %s",
                        n->text[0] ? run_id(run, slice_str(n->text)) : "its last record is cut");
    finding_advice(run, f, "%s",
                   cut_packets ? "Capture again with the full packet length (tcpdump -s 0)."
                               : "Copy the file again, or stop the capture before copying it; "
                                 "look for a full disk.");
    finding_frame(run, f, n->at, "%s", cut_packets ? "the first cut packet" : "the last whole one");
}

static void whole_truncated(struct rule_run *run, const struct model *m)
{
    bool told = false;
    bool cut = false;

    for (uint32_t i = 0; i < m->note_count; i++) {
        if (m->note[i].kind != NOTE_TRUNCATED)
            continue;
        truncated_note(run, &m->note[i]);
        told = true;
    }
    for (uint32_t i = 0; i < m->session_count; i++)
        cut |= m->session[i]->truncated;
    if (told || !cut)
        return;
    struct finding *f = finding_add(run, NULL);
    f->party = PARTY_CAPTURE;
    finding_message(run, f, "an input could not be read to its end: what came after is unknown");
    finding_frame(run, f, m->end, "the last that could be read");
}

/* ---- capture-undecodable ---- */

static const struct undecoded {
    enum note_kind kind;
    const char *what;
    const char *remedy;
} undecoded[] = {
    { NOTE_TLS_NO_KEYS, "TLS connection%s without keys",
      "Set SSLKEYLOGFILE for the client (or server) and give the file with --keylog, or capture "
      "behind the TLS end." },
    { NOTE_TLS_LOST, "TLS connection%s that could no longer be decrypted",
      "Capture without loss: one lost record hides all that follows in its direction." },
    { NOTE_UNKNOWN_CODING, "response%s in a content coding that is not known",
      "Have the server send gzip, deflate, br or zstd, or no coding at all." },
    { NOTE_CODING_BROKEN, "response%s whose content coding does not decode",
      "Capture without loss; if it was whole, the sender's coding is damaged or past the limits." },
    { NOTE_BODY_NOT_RECORDED, "bod%s that the producer of the HAR did not record",
      "Record packets, or export the HAR with content from a producer that keeps event streams." },
    { NOTE_H2_NO_STATE, "HTTP/2 connection%s joined in the middle, so that heads cannot be read",
      "Start the capture before the client connects." },
};

static const struct undecoded *undecoded_of(enum note_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(undecoded); i++) {
        if (undecoded[i].kind == kind)
            return &undecoded[i];
    }
    return NULL;
}

/* Other traffic of a browser or proxy is not what is audited. */
static bool is_ours(const struct exch *x)
{
    return x->msg_count > 0 || x->session_id.len > 0 || x->cursor.len > 0 || x->version.len > 0 ||
           x->response_session.len > 0 || (x->rflags & RECF_SSE) || (x->flags & RECF_ACCEPT_SSE);
}

static bool counts(const struct note *n)
{
    if (!undecoded_of(n->kind))
        return false;
    return !n->session || is_ours(n->session->exch[n->exch]);
}

static int by_group(const void *a, const void *b)
{
    const struct note *x = *(const struct note *const *)a;
    const struct note *y = *(const struct note *const *)b;
    uint32_t sx = x->session ? x->session->index : NONE;
    uint32_t sy = y->session ? y->session->index : NONE;

    if (sx != sy)
        return sx < sy ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x > y) - (x < y);
}

static const char *texts_of(struct rule_run *run, const struct note *const *note, size_t count)
{
    const char *text[TEXTS];
    const char *all = "";
    size_t n = 0;

    for (size_t i = 0; i < count && n < TEXTS; i++) {
        size_t k = 0;
        while (k < n && strcmp(text[k], note[i]->text) != 0)
            k++;
        if (k < n || note[i]->text[0] == '\0')
            continue;
        text[n++] = note[i]->text;
        all = run_text(run, "%s%s%s", all, all[0] ? ", " : ": ",
                       run_id(run, slice_str(note[i]->text)));
    }
    return all;
}

static void undecoded_finding(struct rule_run *run, const struct note *const *note, size_t count)
{
    const struct undecoded *u = undecoded_of(note[0]->kind);
    bool bodies = note[0]->kind == NOTE_BODY_NOT_RECORDED;
    struct finding *f = finding_add(run, note[0]->session);
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += note[i]->count;
    const char *plural = bodies ? (total == 1 ? "y" : "ies") : (total == 1 ? "" : "s");
    const char *head = strstr(u->what, "%s");
    f->party = PARTY_CAPTURE;
    f->subject = u->remedy;
    f->count = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
    finding_message(run, f, "%llu %.*s%s%s%s: what they carried is not known",
                    (unsigned long long)total, (int)(head - u->what), u->what, plural, head + 2,
                    texts_of(run, note, count));
    finding_advice(run, f, "%s", u->remedy);
    for (size_t i = 0; i < count && i < PLACES; i++)
        finding_frame(run, f, note[i]->at, "the %s of them", i == 0 ? "first" : "next");
}

static void whole_undecodable(struct rule_run *run, const struct model *m)
{
    const struct note **order = mem_alloc((m->note_count + 1) * sizeof(const struct note *));
    size_t count = 0;
    size_t from = 0;

    for (uint32_t i = 0; i < m->note_count; i++) {
        if (counts(&m->note[i]))
            order[count++] = &m->note[i];
    }
    qsort(order, count, sizeof(const struct note *), by_group);
    for (size_t i = 1; i <= count; i++) {
        if (i < count && order[i]->session == order[from]->session &&
            order[i]->kind == order[from]->kind)
            continue;
        undecoded_finding(run, order + from, i - from);
        from = i;
    }
    free(order);
}

/* ---- capture-duplicate-leg ---- */

static void check_duplicate(struct rule_run *run, const struct session *s)
{
    struct finding *f = NULL;
    uint32_t exchanges = 0;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->twins == 0)
            continue;
        if (!f) {
            f = finding_add(run, s);
            f->party = PARTY_CAPTURE;
            f->count = 0;
        }
        f->count += x->twins;
        if (exchanges++ >= PLACES / 2)
            continue;
        finding_frame(run, f, x->first, "an exchange that was counted");
        finding_frame(run, f, x->twin_place, "the same exchange, seen again");
    }
    if (f)
        finding_message(run, f,
                        "%u exchange%s of the session %s seen more than once (both sides of a "
                        "proxy, or several captures): each is counted once",
                        exchanges, exchanges == 1 ? "" : "s", exchanges == 1 ? "was" : "were");
}

/* ---- sse-unterminated-tail ---- */

/* A request of the leg's stream that never got the response which the tail may have held. */
static const struct request *never_answered(const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[s->stream[l->stream]->exch];

    for (uint32_t i = 0; i < x->msg_count; i++) {
        uint32_t r = x->msg[i].kind == RPC_REQUEST ? x->msg[i].request : NONE;
        if (r != NONE && !s->request[r]->response && !s->request[r]->http_error)
            return s->request[r];
    }
    return NULL;
}

static void tail_finding(struct rule_run *run, const struct session *s, const struct leg *l)
{
    const struct exch *x = s->exch[l->exch];
    const struct event *whole = event_at(s, l->tail_event_whole);
    const struct request *r = l->tail_response ? never_answered(s, l) : NULL;
    bool client_left = l->end == END_CLIENT_FIN || l->end == END_CLIENT_RST;
    struct finding *f = finding_add(run, s);

    if (r && l->tail_event_whole == NONE)
        finding_on_request(run, f, r);
    finding_on_leg(run, f, l);
    f->party = client_left ? PARTY_CLIENT : PARTY_UNKNOWN;
    f->subject = run_text(run, "leg %u", l->index);
    if (l->tail_has_id)
        f->event_id = l->tail_id;
    if (x->close_not_known)
        f->certainty = CERTAINTY_LIKELY;
    f->severity = l->tail_event_whole != NONE ? SEV_INFO : r ? SEV_ERROR : SEV_WARNING;
    finding_message(run, f,
                    "the leg ends (%s) inside an event: %zu bytes without the blank line%s%s are "
                    "discarded%s",
                    end_kind_text(l->end), l->tail_bytes, l->tail_has_id ? ", id " : "",
                    l->tail_has_id ? run_id(run, l->tail_id) : "",
                    l->tail_event_whole != NONE ? "; the event came whole later"
                    : r                         ? "; they held a response that never came"
                                                : "; the event did not come again");
    finding_frame(run, f, l->tail_at, "the last byte of the unfinished event");
    finding_frame(run, f, l->end_at, "the end of the leg");
    if (whole)
        finding_frame(run, f, whole->at, "the same event, whole");
}

static void check_tail(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->leg_count; i++) {
        const struct leg *l = s->leg[i];
        bool over = l->ended && l->end != END_OPEN && l->end != END_GAP;
        if (l->tail_bytes > 0 && l->tail_fields && over)
            tail_finding(run, s, l);
    }
}

static const struct rule rules[] = {
    {
        .id = "capture-gap",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "Bytes that their receiver acknowledged are not in the capture.",
        .why = "A hole in the capture is not a hole in the stream: nothing can be concluded from "
               "what is absent there.",
        .advice = "Capture with a larger buffer (tcpdump -B), on a host that is not overloaded, or "
                  "nearer to one end.",
        .source = "RFC 9293 3.4 (acknowledgements are cumulative)",
        .explain = {
            .picture = "server --> [ 1..100 ] [ 101..180 ] [ 181..260 ] --> client\n"
                       "capture:   [ 1..100 ]              [ 181..260 ]\n"
                       "client:    ACK 261: it had received all of it\n",
            .needs = "Sequence and acknowledgement numbers.",
            .blind = "What the missing bytes were.",
            .path = "Compare the drop counter of the capturing program.",
        },
        .check = check_gap,
    },
    {
        .id = "capture-starts-late",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "The start of a connection or a session is not in the evidence.",
        .why = "Ids, requests and sessions from before are not known; rules that need them say "
               "nothing.",
        .advice = "Start the capture before the client starts, or add the earlier files of the "
                  "rotation.",
        .source = "reasoning",
        .explain = {
            .picture = "initialize, POST call 1, id: 1, id: 2   | capture begins |   id: 3, id: 4\n",
            .needs = "A connection without its handshake, or a session without its initialize. "
                     "Revision 2026-07-28 has no initialize and is never late.",
            .blind = "Whether the client kept a session id from an earlier run.",
        },
        .check = check_late,
        .whole = whole_late,
    },
    {
        .id = "capture-truncated",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "A capture file is cut, or its packets are.",
        .why = "What is missing may be the very bytes that matter; the audit covers only the rest.",
        .advice = "Capture whole packets, and copy the file after the capture has ended.",
        .source = "pcap and pcapng: captured length against original length; a record longer than "
                  "the file",
        .explain = {
            .picture = "record: captured 96 of 1514 bytes   |   file ends inside a record\n",
            .needs = "The records of the capture file.",
            .blind = "What was cut off.",
        },
        .whole = whole_truncated,
    },
    {
        .id = "capture-undecodable",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "Part of the traffic could not be read.",
        .why = "No finding about it is no clean bill.",
        .advice = "Give the TLS keys (--keylog), or record where the traffic is readable.",
        .source = "reasoning; RFC 8446 (TLS 1.3), NSS key log format, HAR 1.2",
        .explain = {
            .picture = "client ==== TLS ==== server        keys: none\n",
            .needs = "TLS without keys, an unknown or damaged content coding, HTTP/2 joined in the "
                     "middle, or a body that the producer of a HAR left out.",
            .blind = "Everything inside.",
            .client = "SSLKEYLOGFILE works for browsers, curl, Node (--tls-keylog), Python and "
                      "others.",
            .path = "A capture behind the TLS end needs no keys.",
            .known = "Playwright's recordHar keeps only bodies of streams that ended cleanly; "
                     "Chrome's keeps events, not bytes; mitmproxy's leaves streamed bodies out (executed).",
        },
        .whole = whole_undecodable,
    },
    {
        .id = "capture-duplicate-leg",
        .severity = SEV_INFO,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_T,
        .summary = "The same exchange was captured more than once.",
        .why = "Counted twice, every event would look like a duplicate.",
        .advice = "Nothing to do. To look at one hop alone, give one capture, or --filter.",
        .source = "reasoning: same authority, session, method, cursor and messages at the same time "
                  "on two connections",
        .explain = {
            .picture = "client --- hop 1 ---> proxy --- hop 2 ---> server\n"
                       "            |                    |\n"
                       "          capture              capture\n",
            .needs = "Two exchanges with the same content, close in time, on different connections.",
            .blind = "A proxy that changes messages.",
        },
        .check = check_duplicate,
    },
    {
        .id = "sse-unterminated-tail",
        .severity = SEV_WARNING,
        .profile = PROFILE_DIVERGENCE,
        .needs = NEED_H,
        .summary = "A leg ends inside an event: the unfinished part counts for nothing.",
        .why = "A client that dispatches the tail, or takes its id for the cursor, is ahead of the "
               "stream: that event will never be sent to it again.",
        .advice = "Client: discard what has no blank line after it, and resume with the id of the "
                  "last whole event. Server: keep the event until it is resumed past.",
        .source = "WHATWG HTML 9.2.6 (an incomplete block at the end of the file is discarded)",
        .explain = {
            .picture = "id: 5 / data: {...} / (blank)     whole: the cursor is 5\n"
                       "id: 6 / data: {\"jsonr             cut here: no event, the cursor stays 5\n",
            .needs = "The bytes of the body up to its end.",
            .blind = "Whether the client dispatched it, unless the log or the next cursor tells "
                     "(cursor-ahead).",
            .client = "Test your parser with a body that ends at every byte.",
            .known = "Go SDK and the Java SDK's client dispatch a last event without its blank "
                     "line; eventsource-parser (TypeScript) discards it, as does httpx-sse, Python "
                     "v1 (read in source).",
        },
        .check = check_tail,
    },
};

const struct rule_family rules_input = RULE_FAMILY("input", "What the input could not show", rules);
