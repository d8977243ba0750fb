/* did.c - what a refusal says, and what the client did after a resumption. */
#include "resume.h"

static bool any_word(const char *text, const char *const *word, size_t n)
{
    for (size_t i = 0; text && i < n; i++) {
        if (strstr(text, word[i]))
            return true;
    }
    return false;
}

bool refusal_names_cursor(const struct exch *x)
{
    static const char *const words[] = {
        "event id", "event-id", "event_id", "eventid", "last event",      "cursor",
        "resum",    "replay",   "evict",    "purged",  "event not found",
    };

    return any_word(x->error_text, words, ARRAY_LEN(words));
}

bool refusal_names_session(const struct exch *x)
{
    static const char *const gone[] = {
        "not found", "unknown",   "invalid",    "no valid",  "expired", "terminated",
        "ended",     "not exist", "no longer",  "not valid", "closed",  "missing",
        "no such",   "no active", "terminated", "gone",
    };

    return x->error_text && strstr(x->error_text, "session") && !strstr(x->error_text, "already") &&
           !refusal_names_cursor(x) && any_word(x->error_text, gone, ARRAY_LEN(gone));
}

static bool accepted(const struct exch *x)
{
    return x->status >= 200 && x->status < 300;
}

static bool used_later(const struct session *s, int64_t t, bool want_accepted)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->has_request && x->first.time > t && (accepted(x) || !want_accepted) &&
            x->session_id.len > 0)
            return true;
    }
    return false;
}

static bool later_post_refused(const struct session *s, int64_t t)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->first.time > t && x->status >= 400 && x->method == HTTP_METHOD_POST)
            return true;
    }
    return false;
}

bool session_refused(const struct session *s, const struct exch *x)
{
    if (x->session_id.len == 0 || x->status < 400 || x->status >= 500)
        return false;
    if (refusal_names_cursor(x) || used_later(s, x->first.time, true))
        return false;
    if (x->status == 404)
        return x->error_code != -32601; /* 2026-07-28: unknown method */
    if (x->status != 400 && x->status != 401)
        return false;
    if (refusal_names_session(x))
        return true;
    return x->method == HTTP_METHOD_POST && x->error_text && !strstr(x->error_text, "already") &&
           later_post_refused(s, x->first.time);
}

/* ---- what the client did ---- */

static bool did_reinitialise(const struct session *s, struct resumption *r, int64_t t)
{
    const struct session *next = s->replaced_by;

    if (!next || next->first.time <= t)
        return false;
    r->did = DID_REINITIALISED;
    r->did_at = next->first;
    return true;
}

static bool did_delete(const struct session *s, struct resumption *r, int64_t t)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (x->method != HTTP_METHOD_DELETE || x->first.time < t)
            continue;
        r->did = DID_FAILED_SESSION;
        r->did_at = x->first;
        return true;
    }
    return false;
}

static bool did_reissue(const struct session *s, struct resumption *r, int64_t t)
{
    for (uint32_t i = 0; i < r->outstanding_count; i++) {
        const struct request *o = s->request[r->outstanding[i]];
        for (uint32_t j = 0; j < s->request_count; j++) {
            const struct request *q = s->request[j];
            if (q == o || q->from_server || q->at.time < t ||
                !slice_eq(q->msg->method, o->msg->method) ||
                q->msg->body_digest != o->msg->body_digest)
                continue;
            r->did = DID_REISSUED;
            r->did_at = q->at;
            return true;
        }
    }
    return false;
}

/* By the log: a message of this leg was processed after it had come on it. */
static bool log_processed(const struct session *s, struct resumption *r, const struct leg *l)
{
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        const struct event *first = event_at(s, e->first);
        uint32_t track = first ? first->track : NONE;
        if (track == NONE)
            continue;
        const struct track *k = &s->track[track];
        for (uint32_t i = 0; i < k->count; i++) {
            enum log_state st = s->model->log->entry[k->entry[i]].state;
            if ((st != LOG_PROCESSED && st != LOG_COMMITTED) || k->time[i] < e->begin.time)
                continue;
            r->did = DID_CONTINUED;
            r->did_at = e->at;
            r->did_entry = k->entry[i];
            return true;
        }
    }
    return false;
}

static bool answered_server(const struct session *s, struct resumption *r, const struct leg *l)
{
    for (uint32_t i = 0; i < s->request_count; i++) {
        const struct request *q = s->request[i];
        if (!q->from_server || q->leg != l->index || !q->response)
            continue;
        r->did = DID_CONTINUED;
        r->did_at = q->response->at;
        return true;
    }
    return false;
}

/* The client let the leg run on after the event at which it should have stopped. */
#define PROMPTLY (500 * NS_PER_MS)
static bool let_run(const struct session *s, struct resumption *r, const struct leg *l)
{
    int64_t stop = r->should_fail_at.time;
    bool client_closed = l->end == END_CLIENT_FIN || l->end == END_CLIENT_RST;

    if (client_closed && l->end_at.time - stop < PROMPTLY)
        return false;
    for (const struct event *e = leg_event_after(s, l, NONE); e;
         e = leg_event_after(s, l, e->index)) {
        if (e->at.time < stop || e->priming || !e->has_id)
            continue;
        bool acked = e->acked.time > 0;
        if (!acked && !event_delivered(s, e))
            continue;
        r->did = DID_CONTINUED;
        r->did_at = e->at;
        return true;
    }
    return false;
}

static bool same_cursor_again(const struct session *s, struct resumption *r)
{
    const struct exch *x = s->exch[r->exch];

    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *y = s->exch[i];
        if (y->method != HTTP_METHOD_GET || y->first.time <= x->first.time || !y->cursor.ptr ||
            !slice_eq(y->cursor, x->cursor))
            continue;
        r->did = DID_CONTINUED;
        r->did_at = y->first;
        r->cursor_repeated = true;
        return true;
    }
    return false;
}

static bool did_give_up(const struct session *s, struct resumption *r, int64_t t)
{
    for (uint32_t i = 0; i < r->outstanding_count; i++) {
        const struct request *q = s->request[r->outstanding[i]];
        if (!q->cancelled.time)
            continue;
        r->did = DID_GAVE_UP;
        r->did_at = q->cancelled;
        return true;
    }
    if (used_later(s, t, false))
        return false;
    r->did = DID_GAVE_UP;
    return true;
}

void client_did_after(struct session *s, struct resumption *r)
{
    const struct exch *x = s->exch[r->exch];
    const struct leg *l = r->leg == NONE ? NULL : s->leg[r->leg];
    int64_t t = x->first.time;

    r->did_entry = NONE;
    if (l && s->has_log && log_processed(s, r, l))
        return;
    if (did_reissue(s, r, t) || did_reinitialise(s, r, t))
        return;
    if (l && (answered_server(s, r, l) || let_run(s, r, l)))
        return;
    if (r->verdict == VERDICT_FAIL && same_cursor_again(s, r))
        return;
    if (did_delete(s, r, t) || did_give_up(s, r, t))
        return;
    r->did = DID_UNKNOWN;
}
