/* http_session.c - RULES.md section 9: Mcp-Session-Id and MCP-Protocol-Version. */
#include "http_checks.h"

#include "traffic.h"

#define NOT_FOUND        404
#define NOT_ALLOWED      405
#define METHOD_NOT_FOUND (-32601)

static bool names_session(const struct exch *x)
{
    return x->has_request && x->session_id.len > 0;
}

static uint64_t session_key(const struct exch *x, struct slice id)
{
    return hash_mix(hash_bytes(x->authority), hash_bytes(id));
}

/* ---- who was given an id ---- */

/* The exchange in which the server gave the session its id, or NULL. */
static const struct exch *issued_in(const struct session *s)
{
    const struct exch *x = s->initialize == NONE ? NULL : s->exch[s->initialize];

    if (!x || s->legacy || !exch_accepted(x) || !x->response.time ||
        !slice_eq(x->response_session, s->id))
        return NULL;
    return x->response_session.len > 0 ? x : NULL;
}

/* Did the client ever send the id that it was given? */
static bool was_echoed(const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (names_session(s->exch[i]) && !s->exch[i]->initialize)
            return true;
    }
    return false;
}

/* mark: the client sent the id back. */
static struct sightings issued_ids(const struct model *m)
{
    struct sightings all = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        const struct exch *x = issued_in(s);
        if (x)
            sightings_add(&all,
                          (struct sighting){ who_is_at(x), x->response.time, s, x, was_echoed(s) });
    }
    sightings_sort(&all);
    return all;
}

/* ---- session-id-missing ---- */

static bool needs_session(const struct rule_run *run, const struct session *s, const struct exch *x)
{
    if (x->initialize || names_session(x) || !rule_in_era(run->rule, x->era) ||
        !request_head_known(x) || status_is_ordinary(x->status))
        return false;
    switch (x->method) {
    case HTTP_METHOD_POST: return exch_part(s, x) == PART_POST;
    case HTTP_METHOD_GET: return (x->flags & RECF_ACCEPT_SSE) != 0;
    case HTTP_METHOD_DELETE: return true;
    case HTTP_METHOD_OPTIONS:
    case HTTP_METHOD_OTHER: break;
    }
    return false;
}

static bool over_before(const struct session *s, int64_t t)
{
    return (s->deleted.time && s->deleted.time <= t) || (s->gone.time && s->gone.time <= t);
}

/* A client that initialized without being given an id has none to send. */
static bool has_no_session_of_its_own(const struct session *s)
{
    return !s->id.ptr && !s->orphan &&
           (s->initialize == NONE || !exch_accepted(s->exch[s->initialize]));
}

static void missing_finding(struct rule_run *run, const struct exch *x, const struct sighting *at)
{
    struct finding *f = finding_about(run, x, PARTY_CLIENT, at->session->name);

    if (at->mark)
        f->certainty = CERTAINTY_LIKELY; /* another client at this address may have sent it */
    finding_message(run, f,
                    "the server gave this client a session id (session %s), and the client sends "
                    "a " SLICE_FMT " without it%s",
                    at->session->name, SLICE_ARG(x->method_text),
                    at->mark ? "; other requests from this address carry it"
                             : "; it never sent it back at all");
    finding_frame(run, f, x->first, SLICE_FMT " without Mcp-Session-Id, answered %d",
                  SLICE_ARG(x->method_text), x->status);
    finding_frame(run, f, at->exch->response, "the response to initialize with Mcp-Session-Id");
}

void whole_session_missing(struct rule_run *run, const struct model *m)
{
    struct sightings issued = issued_ids(m);

    for (uint32_t i = 0; issued.count > 0 && i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; has_no_session_of_its_own(s) && k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            if (!needs_session(run, s, x))
                continue;
            const struct sighting *at = sightings_before(&issued, who_is_at(x), x->first.time);
            if (at && same_agent(x, at->exch) && !over_before(at->session, x->first.time))
                missing_finding(run, x, at);
        }
    }
    sightings_release(&issued);
}

/* ---- session-id-unknown ---- */

static const struct exch *never_accepted(const struct rule_run *run, const struct session *s)
{
    const struct exch *refused = NULL;

    if (!s->id.ptr || s->legacy || !s->starts_late || s->orphan)
        return NULL;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!rule_in_era(run->rule, x->era) || x->status == 0 || x->status < 400)
            return NULL;
        bool says_so = x->status == NOT_FOUND || refusal_names_session(x);
        if (!refused && says_so && x->error_code != METHOD_NOT_FOUND && names_session(x))
            refused = x;
    }
    return refused;
}

void whole_session_unknown(struct rule_run *run, const struct model *m)
{
    struct sightings issued = issued_ids(m);

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct session *s = m->session[i];
        const struct exch *x = never_accepted(run, s);
        if (!x)
            continue;
        const struct sighting *at = sightings_before(&issued, who_is_at(x), x->first.time);
        bool other = at && same_agent(x, at->exch) && !at->mark;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, NULL);
        f->severity = other ? SEV_WARNING : SEV_INFO;
        f->certainty = CERTAINTY_LIKELY;
        finding_message(run, f,
                        "the client sends a session id that no response of this capture gave "
                        "out, and the server does not know it (%d)%s",
                        x->status,
                        other ? "; the id that it had been given was never sent"
                              : "; it may be one of an earlier time");
        finding_frame(run, f, x->first, "the first request with this id");
        finding_frame(run, f, x->response, "status %d", x->status);
        if (other)
            finding_frame(run, f, at->exch->response, "the id that the client had been given");
    }
    sightings_release(&issued);
}

/* ---- what the id looks like, and whether it changes ---- */

static bool is_visible_ascii(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < 0x21 || s.ptr[i] > 0x7e)
            return false;
    }
    return true;
}

void check_session_charset(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool server = !is_visible_ascii(x->response_session);
        /* A client that sends what it was given does no wrong. */
        bool client =
            !server && !issued_in(s) && x->has_request && !is_visible_ascii(x->session_id);
        if ((!server && !client) || !rule_in_era(run->rule, x->era) ||
            ((x->flags | x->rflags) & RECF_HAR))
            continue;
        struct finding *f =
            finding_about(run, x, server ? PARTY_SERVER : PARTY_CLIENT, server ? "issued" : "sent");
        finding_message(run, f,
                        "the session id has bytes other than visible ASCII (0x21 to 0x7e)%s",
                        server ? "" : ": a blank or a comma may come of a header that stood twice");
        finding_frame(run, f, server ? x->response : x->first, "Mcp-Session-Id with such bytes");
    }
}

void check_session_reassigned(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!names_session(x) || x->initialize || x->cursor.len > 0 ||
            x->response_session.len == 0 || slice_eq(x->response_session, x->session_id) ||
            !rule_in_era(run->rule, x->era))
            continue;
        struct finding *f = finding_about(run, x, PARTY_SERVER, "another id");
        finding_message(run, f,
                        "the answer to a " SLICE_FMT " names another session than the request: "
                        "only the response to initialize may give out an id",
                        SLICE_ARG(x->method_text));
        finding_frame(run, f, x->response, "the response with another Mcp-Session-Id");
        finding_frame(run, f, x->first, "the request");
    }
}

/* ---- after the end ---- */

/* Does the 404 mean the session? GET and DELETE get it where 405 is meant; a cursor may be refused
 * so (replay-refused-404-live-session). */
static bool ends_session(const struct rule_run *run, const struct exch *x)
{
    if (!names_session(x) || x->status != NOT_FOUND || x->initialize ||
        x->error_code == METHOD_NOT_FOUND || refusal_names_cursor(x) ||
        !rule_in_era(run->rule, x->era))
        return false;
    return x->method == HTTP_METHOD_POST || (x->cursor.len == 0 && refusal_names_session(x));
}

/* The 404 that came first, or NULL. */
static const struct exch *first_end(const struct rule_run *run, const struct session *s)
{
    const struct exch *first = NULL;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (ends_session(run, x) && (!first || x->response.time < first->response.time))
            first = x;
    }
    return first;
}

void check_session_zombie(struct rule_run *run, const struct session *s)
{
    const struct exch *end = first_end(run, s);

    for (uint32_t i = 0; end && i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!names_session(x) || x->initialize || x->method != HTTP_METHOD_POST ||
            !exch_accepted(x) || x->first.time <= end->response.time ||
            !rule_in_era(run->rule, x->era))
            continue;
        struct finding *f = finding_about(run, x, PARTY_SERVER, "zombie");
        finding_message(run, f,
                        "the session id was answered 404, which says that the session is over, "
                        "and is accepted again %s later",
                        run_seconds(run, x->first.time - end->response.time));
        finding_frame(run, f, x->response, "accepted: status %d", x->status);
        finding_frame(run, f, end->response, "404 for the same session id");
    }
}

void check_session_dead(struct rule_run *run, const struct session *s)
{
    const struct exch *end = first_end(run, s);

    if (!s->deleted.time || s->legacy || !s->id.ptr)
        return;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool wrong =
            exch_accepted(x) || (x->status >= 400 && x->status != NOT_FOUND &&
                                 x->status != NOT_ALLOWED && !status_is_ordinary(x->status));
        if (end && x->first.time > end->response.time)
            continue; /* session-zombie */
        if (!names_session(x) || x->initialize || x->method == HTTP_METHOD_DELETE || !wrong ||
            x->first.time <= s->deleted.time || !rule_in_era(run->rule, x->era))
            continue;
        struct finding *f = finding_about(run, x, PARTY_SERVER, "after DELETE");
        finding_message(run, f,
                        "the session was ended by DELETE, and a " SLICE_FMT
                        " with its id is answered %d instead of 404",
                        SLICE_ARG(x->method_text), x->status);
        finding_frame(run, f, x->response, "status %d", x->status);
        finding_frame(run, f, s->deleted, "the answer to DELETE");
    }
}

void whole_session_reinit(struct rule_run *run, const struct model *m)
{
    struct sightings ends = { 0 };

    for (uint32_t i = 0; i < m->session_count; i++) {
        const struct exch *x = first_end(run, m->session[i]);
        if (x)
            sightings_add(&ends, (struct sighting){ session_key(x, x->session_id), x->response.time,
                                                    x->session, x, false });
    }
    sightings_sort(&ends);
    for (uint32_t i = 0; ends.count > 0 && i < m->session_count; i++) {
        const struct session *s = m->session[i];
        for (uint32_t k = 0; k < s->exch_count; k++) {
            const struct exch *x = s->exch[k];
            if (!x->initialize || !names_session(x))
                continue;
            const struct sighting *at =
                sightings_before(&ends, session_key(x, x->session_id), x->first.time);
            if (!at)
                continue;
            struct finding *f = finding_about(run, x, PARTY_CLIENT, at->session->name);
            finding_message(run, f,
                            "initialize still carries the session id that was answered 404 "
                            "(session %s)",
                            at->session->name);
            finding_frame(run, f, x->first, "initialize with Mcp-Session-Id");
            finding_frame(run, f, at->exch->response, "404 for this id");
        }
    }
    sightings_release(&ends);
}

/* ---- MCP-Protocol-Version ---- */

static const enum era with_header = ERA_B | ERA_C;

/* The revision that the session speaks, also where this exchange does not say so itself. A session
 * without an id may hold several clients: there only the handshake counts. */
static enum era spoken_era(const struct session *s, const struct exch *x)
{
    if (x->era == ERA_UNKNOWN && s->id.ptr)
        return s->era;
    return x->era == ERA_UNKNOWN || s->id.ptr || session_initialized_by(s) ? x->era : ERA_UNKNOWN;
}

static bool is_initialized(const struct session *s, const struct exch *x)
{
    const struct message *by = session_initialized_by(s);

    return by ? x->first.time > by->at.time : s->starts_late;
}

void check_version_missing(struct rule_run *run, const struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (exch_part(s, x) == PART_NONE || x->initialize || x->version.len > 0 ||
            !(spoken_era(s, x) & with_header) || !is_initialized(s, x) || !request_head_known(x))
            continue;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "no version");
        finding_message(run, f,
                        "a " SLICE_FMT " after the handshake carries no MCP-Protocol-Version; the "
                        "session speaks %s",
                        SLICE_ARG(x->method_text), era_text(spoken_era(s, x)));
        finding_frame(run, f, x->first, SLICE_FMT " without MCP-Protocol-Version",
                      SLICE_ARG(x->method_text));
        const struct message *by = session_initialized_by(s);
        if (by)
            finding_frame(run, f, by->at, "the handshake: revision %s", run_id(run, by->version));
    }
}

void check_version_mismatch(struct rule_run *run, const struct session *s)
{
    const struct message *by = session_initialized_by(s);

    if (!by || !(era_of(by->version) & with_header))
        return;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (exch_part(s, x) == PART_NONE || x->initialize || x->version.len == 0 ||
            slice_eq(x->version, by->version) || !rule_in_era(run->rule, x->era) ||
            (x->flags & RECF_DUPLICATE_HEADER) || x->first.time < by->at.time)
            continue;
        struct finding *f = finding_about(run, x, PARTY_CLIENT, "another version");
        finding_message(run, f, "MCP-Protocol-Version says %s, the handshake had agreed on %s",
                        run_id(run, x->version), run_id(run, by->version));
        finding_frame(run, f, x->first, "MCP-Protocol-Version: %s", run_id(run, x->version));
        finding_frame(run, f, by->at, "the handshake: revision %s", run_id(run, by->version));
    }
}

static bool is_date(struct slice s)
{
    static const char shape[] = "dddd-dd-dd";

    if (s.len != sizeof(shape) - 1)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool digit = byte_is_digit(s.ptr[i]);
        if (shape[i] == 'd' ? !digit : s.ptr[i] != (uint8_t)shape[i])
            return false;
    }
    return true;
}

/* No such revision exists. A server may know drafts, what came before the first revision, and what
 * comes after the last one that we know. */
static bool is_no_revision(struct slice v)
{
    const char *first = era_text(ERA_L);
    const char *last = era_text(ERA_D);

    if (v.len == 0 || era_of(v) != ERA_UNKNOWN || slice_has_nocase(v, SLICE_LIT("draft")))
        return false;
    return !is_date(v) || (memcmp(v.ptr, first, v.len) > 0 && memcmp(v.ptr, last, v.len) < 0);
}

void check_version_invalid(struct rule_run *run, const struct session *s)
{
    const struct message *by = session_initialized_by(s);

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool agreed = by && slice_eq(by->version, x->version);
        if (exch_part(s, x) == PART_NONE || x->initialize || agreed ||
            !is_no_revision(x->version) || !(spoken_era(s, x) & with_header) || !exch_accepted(x))
            continue;
        struct finding *f = finding_about(run, x, PARTY_SERVER, "no revision");
        finding_message(run, f,
                        "MCP-Protocol-Version says %s, which is no revision of MCP, and the "
                        "request is accepted with %d instead of 400",
                        run_id(run, x->version), x->status);
        finding_frame(run, f, x->response, "accepted: status %d", x->status);
        finding_frame(run, f, x->first, "MCP-Protocol-Version: %s", run_id(run, x->version));
    }
}
