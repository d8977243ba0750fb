/* finish.c - when all records are in: eras, who replaced whom, the log, the schemes, the judgement.
 */
#include "model_impl.h"

#include <stdio.h>
#include <stdlib.h>

static enum era era_of_exchange(const struct session *s, const struct exch *x)
{
    for (uint32_t i = 0; i < x->msg_count; i++) {
        if ((x->msg[i].flags & RPC_META_VERSION) && era_of(x->msg[i].version))
            return era_of(x->msg[i].version);
    }
    if (era_of(x->version) == ERA_D)
        return ERA_D;
    if (s->era)
        return s->era;
    return era_of(x->version);
}

static void eras_set(struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        struct exch *x = s->exch[i];
        x->era = era_of_exchange(s, x);
        if (!s->revision.ptr && x->version.len > 0)
            s->revision = x->version;
    }
    if (s->legacy)
        s->revision = SLICE_LIT("2024-11-05");
    if (!s->revision.ptr) {
        for (uint32_t i = 0; i < s->exch_count && !s->revision.ptr; i++) {
            const char *text = era_text(s->exch[i]->era);
            if (text)
                s->revision = slice_str(text);
        }
    }
    if (!s->era)
        s->era = era_of(s->revision);
}

static void identity_set(struct session *s)
{
    const struct exch *x = s->initialize == NONE ? NULL : s->exch[s->initialize];
    uint64_t h = hash_bytes((struct slice){ s->client.addr, sizeof(s->client.addr) });

    h = hash_mix(h, hash_bytes(s->client_name));
    h = hash_mix(h, hash_bytes(s->client_version));
    s->client_identity = hash_mix(h, x ? x->credentials : 0);
}

static int64_t last_use(const struct session *s)
{
    int64_t t = 0;

    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (s->exch[i]->has_request && s->exch[i]->first.time > t)
            t = s->exch[i]->first.time;
    }
    return t;
}

/* When a client began a session, and when it had done with it. */
struct turn {
    struct session *session;
    int64_t time;
    bool begins;
};

static int same_client(const struct session *x, const struct session *y)
{
    size_t len = x->authority.len;

    if (x->client_identity != y->client_identity)
        return x->client_identity < y->client_identity ? -1 : 1;
    if (len != y->authority.len)
        return len < y->authority.len ? -1 : 1;
    return len > 0 ? memcmp(x->authority.ptr, y->authority.ptr, len) : 0;
}

/* A session that was still used at that moment is not replaced: what begins comes first. */
static int by_client_and_time(const void *a, const void *b)
{
    const struct turn *x = a;
    const struct turn *y = b;
    int order = same_client(x->session, y->session);

    if (order != 0)
        return order;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? -1 : 1;
    return (x->session->index > y->session->index) - (x->session->index < y->session->index);
}

static size_t turns_of(const struct model *m, struct turn *turn)
{
    size_t n = 0;

    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *s = m->session[i];
        if (s->initialize == NONE)
            continue;
        int64_t begin = s->exch[s->initialize]->first.time;
        int64_t end = last_use(s);
        turn[n++] = (struct turn){ s, begin, true };
        turn[n++] = (struct turn){ s, end > begin ? end : begin, false };
    }
    if (n > 0)
        qsort(turn, n, sizeof(*turn), by_client_and_time);
    return n;
}

/* The same client initializes again, and never uses the old session afterwards. */
static void replaced_find(struct model *m)
{
    struct turn *turn = mem_alloc(2 * (size_t)m->session_count * sizeof(*turn) + 1);
    struct session **left = mem_alloc((size_t)m->session_count * sizeof(struct session *) + 1);
    size_t count = turns_of(m, turn);
    size_t n = 0; /* sessions that this client has left, the last one on top */

    for (size_t i = 0; i < count; i++) {
        struct session *s = turn[i].session;
        if (i > 0 && same_client(turn[i - 1].session, s) != 0)
            n = 0;
        if (!turn[i].begins && !s->replaced_by) {
            left[n++] = s;
        } else if (turn[i].begins && !s->replaces && n > 0) {
            s->replaces = left[--n];
            s->replaces->replaced_by = s;
        }
    }
    free(left);
    free(turn);
}

/* From when on something of the exchange is missing. */
static int64_t whole_until(const struct exch *x)
{
    if (x->undecodable || x->head_gap || (x->rflags & RECF_HEAD_LOST) || !x->has_request)
        return x->first.time;
    if (!x->gap_at.time)
        return INT64_MAX;
    return x->gap_at.time > x->first.time ? x->gap_at.time : x->first.time;
}

static void evidence_set(struct session *s)
{
    s->whole_until = INT64_MAX;
    s->ids_until = INT64_MAX;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (whole_until(x) < s->whole_until)
            s->whole_until = whole_until(x);
        if ((x->rflags & RECF_IDS_PARTIAL) && x->first.time < s->ids_until)
            s->ids_until = x->first.time;
    }
}

static void gone_find(struct session *s)
{
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        if (!session_refused(s, x) || (s->gone.time && s->gone.time <= x->response.time))
            continue;
        s->gone = x->response;
        s->gone_exch = i;
    }
}

static int by_first_seen(const void *a, const void *b)
{
    const struct session *x = *(struct session *const *)a;
    const struct session *y = *(struct session *const *)b;

    if (x->first.time != y->first.time)
        return (x->first.time > y->first.time) - (x->first.time < y->first.time);
    if (x->first.input != y->first.input)
        return x->first.input < y->first.input ? -1 : 1;
    if (x->first.frame != y->first.frame)
        return x->first.frame < y->first.frame ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Neither an event stream nor a JSON-RPC message: other traffic of the web, left out and counted.
 */
static bool is_other_http(const struct session *s)
{
    if (s->leg_count > 0 || s->id.ptr)
        return false;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        const struct exch *x = s->exch[i];
        bool asks = x->cursor.ptr || x->session_id.ptr || (x->flags & RECF_ACCEPT_SSE);
        if (x->msg_count > 0 || asks)
            return false;
        for (uint32_t k = 0; k < x->reply_count; k++) {
            if (x->reply[k].kind != RPC_OTHER)
                return false;
        }
    }
    return true;
}

/* Order of appearance, whatever the order of the files; sessions that others absorbed are gone. */
static void sessions_sort(struct model *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *s = m->session[i];
        if (s->exch_count > 0 && is_other_http(s)) {
            m->other_http += s->exch_count;
            for (uint32_t k = 0; k < s->exch_count; k++)
                s->exch[k]->session = NULL;
            s->exch_count = 0;
        }
        if (s->exch_count == 0) {
            session_free(s);
            continue;
        }
        m->session[n++] = s;
    }
    m->session_count = n;
    if (n > 0)
        qsort(m->session, n, sizeof(struct session *), by_first_seen);
    for (uint32_t i = 0; i < n; i++) {
        m->session[i]->index = i;
        snprintf(m->session[i]->name, sizeof(m->session[i]->name), "s%u", i + 1);
    }
}

static void note_place(struct note *n, const struct exch *x)
{
    if (x->twin_of)
        x = x->twin_of;
    if (!x->session)
        return;
    n->session = x->session;
    n->exch = x->index;
}

static void notes_place(struct model *m)
{
    const struct impl *im = impl_of(m);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < m->note_count; i++) {
        struct note *n = &m->note[i];
        struct exch *x =
            n->exchange && n->exchange < im->serial_cap ? im->by_serial[n->exchange] : NULL;
        if (x && twin_note_idle(x, n->kind))
            continue;
        if (x)
            note_place(n, x);
        m->note[kept++] = *n;
    }
    m->note_count = kept;
}

static void attach_rest(struct model *m)
{
    struct impl *im = impl_of(m);
    struct record rec = { .kind = REC_END };

    /* Records end every exchange; what is still unattached had no end, and is over now. */
    for (size_t i = 1; i < im->serial_cap; i++) {
        struct exch *x = im->by_serial[i];
        if (!x || x->session || x->twin_of || !(x->has_request || x->response.time))
            continue;
        rec.exchange = i;
        rec.at = m->end;
        rec.end.kind = END_OPEN;
        model_feed(m, &rec);
    }
}

void model_finish(struct model *m, bool truncated)
{
    attach_rest(m);
    sessions_sort(m);
    for (uint32_t i = 0; i < m->session_count; i++) {
        struct session *s = m->session[i];
        s->truncated |= truncated;
        eras_set(s);
        identity_set(s);
        gone_find(s);
        evidence_set(s);
        requests_settle(s);
    }
    replaced_find(m);
    notes_place(m);
    for (uint32_t i = 0; i < m->session_count; i++) {
        scheme_prove(m->session[i]);
        renamed_settle(m->session[i]);
    }
    log_pair(m);
    for (uint32_t i = 0; i < m->session_count; i++)
        resumptions_judge(m->session[i]);
}
