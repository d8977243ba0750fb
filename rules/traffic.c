/* traffic.c - see traffic.h. */
#include "traffic.h"

#include "spoken.h"

#include <stdlib.h>

bool session_is_mcp(const struct session *s)
{
    if (s->orphan)
        return false;
    if (s->id.ptr || s->legacy)
        return true;
    for (uint32_t i = 0; i < s->exch_count; i++) {
        if (exch_speaks(s, s->exch[i]))
            return true;
    }
    return false;
}

enum part exch_part(const struct session *s, const struct exch *x)
{
    bool marked = x->session_id.len > 0 || x->version.len > 0 || x->cursor.len > 0;

    if (!x->has_request)
        return PART_NONE;
    switch (x->method) {
    case HTTP_METHOD_POST: return marked || exch_speaks(s, x) ? PART_POST : PART_NONE;
    case HTTP_METHOD_GET:
        return marked || (x->flags & RECF_ACCEPT_SSE) || (x->rflags & RECF_SSE) ? PART_GET
                                                                                : PART_NONE;
    case HTTP_METHOD_DELETE: return marked ? PART_DELETE : PART_NONE;
    case HTTP_METHOD_OPTIONS:
    case HTTP_METHOD_OTHER: break;
    }
    return PART_NONE;
}

bool request_head_known(const struct exch *x)
{
    if (!x->has_request || (x->flags & RECF_HEAD_LOST))
        return false;
    if (x->head_gap && x->request_gaps > 0)
        return false;
    /* HAR producers that keep no headers, or only provisional ones */
    return !(x->flags & RECF_HAR) || (x->flags & RECF_ACCEPT);
}

bool response_head_known(const struct exch *x)
{
    if (x->status == 0 || (x->rflags & RECF_HEAD_LOST) || (x->head_gap && x->response_gaps > 0))
        return false;
    return !(x->rflags & RECF_HAR) || (x->flags & RECF_ACCEPT);
}

bool http2_is_blind(const struct model *m)
{
    for (uint32_t i = 0; i < m->note_count; i++) {
        if (m->note[i].kind == NOTE_H2_NO_STATE)
            return true;
    }
    return false;
}

bool exch_accepted(const struct exch *x)
{
    return x->status >= 200 && x->status < 300;
}

bool status_is_ordinary(int status)
{
    return status == 401 || status == 403 || status == 407 || status == 429 || status >= 500;
}

bool exch_is_streamable(const struct session *s, const struct exch *x)
{
    if (s->legacy)
        return false;
    return x->era == ERA_D || x->session_id.len > 0 || x->version.len > 0 ||
           session_initialized_by(s) != NULL;
}

struct tally exch_tally(const struct exch *x)
{
    struct tally t = { 0 };

    for (uint32_t i = 0; i < x->msg_count; i++) {
        switch (x->msg[i].kind) {
        case RPC_REQUEST: t.requests++; break;
        case RPC_NOTIFICATION: t.notifications++; break;
        case RPC_RESULT:
        case RPC_ERROR: t.responses++; break;
        case RPC_OTHER: t.others++; break;
        }
    }
    return t;
}

bool message_is(const struct message *m, const char *method)
{
    return slice_eq(m->method, slice_str(method));
}

const struct request *session_initialize(const struct session *s)
{
    const struct exch *x = s->initialize == NONE ? NULL : s->exch[s->initialize];

    for (uint32_t i = 0; x && i < x->msg_count; i++) {
        const struct message *m = &x->msg[i];
        if (m->kind == RPC_REQUEST && message_is(m, "initialize") && m->request != NONE)
            return s->request[m->request];
    }
    return NULL;
}

const struct message *session_initialized_by(const struct session *s)
{
    const struct request *r = session_initialize(s);

    return r && r->response && r->response->kind == RPC_RESULT ? r->response : NULL;
}

struct slice target_path(struct slice target)
{
    const uint8_t *query = target.len > 0 ? memchr(target.ptr, '?', target.len) : NULL;

    return query ? (struct slice){ target.ptr, (size_t)(query - target.ptr) } : target;
}

uint64_t endpoint_of(const struct exch *x)
{
    return hash_mix(hash_bytes(x->authority), hash_bytes(target_path(x->target)));
}

uint64_t who_is_at(const struct exch *x)
{
    struct slice host = { x->client.addr, sizeof(x->client.addr) };

    return hash_mix(endpoint_of(x), hash_bytes(host));
}

bool same_agent(const struct exch *a, const struct exch *b)
{
    return slice_eq(a->user_agent, b->user_agent);
}

/* ---- sightings ---- */

void sightings_add(struct sightings *all, struct sighting s)
{
    GROW(all->item, all->count, all->cap);
    all->item[all->count++] = s;
}

static int by_key(const void *a, const void *b)
{
    const struct sighting *x = a;
    const struct sighting *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->exch->serial > y->exch->serial) - (x->exch->serial < y->exch->serial);
}

void sightings_sort(struct sightings *all)
{
    if (all->count > 0)
        qsort(all->item, all->count, sizeof(*all->item), by_key);
}

void sightings_release(struct sightings *all)
{
    free(all->item);
    *all = (struct sightings){ 0 };
}

/* How many stand before (key, t). */
static size_t rank(const struct sightings *all, uint64_t key, int64_t t)
{
    size_t lo = 0;
    size_t hi = all->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct sighting *m = &all->item[mid];
        if (m->key < key || (m->key == key && m->time < t))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct sighting *sightings_before(const struct sightings *all, uint64_t key, int64_t t)
{
    size_t i = rank(all, key, t);

    return i > 0 && all->item[i - 1].key == key ? &all->item[i - 1] : NULL;
}

const struct sighting *sightings_after(const struct sightings *all, uint64_t key, int64_t t)
{
    size_t i = rank(all, key, t == INT64_MAX ? t : t + 1);

    return i < all->count && all->item[i].key == key ? &all->item[i] : NULL;
}

struct finding *finding_about(struct rule_run *run, const struct exch *x, enum party party,
                              const char *about)
{
    struct finding *f = finding_add(run, x->session);

    f->exch = x->index;
    f->party = party;
    f->subject = about;
    return f;
}
