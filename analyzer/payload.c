/* payload.c - see payload.h. */
#include "payload.h"

#include <stdlib.h>

#define ONE_MAX ((size_t)2048)
#define ALL_MAX ((size_t)64 << 20)

struct payloads {
    struct record_sink next;
    struct arena *arena;
    size_t kept; /* bytes */
    struct payload *item;
    size_t count;
    size_t cap;
};

struct payloads *payloads_new(struct record_sink next)
{
    struct payloads *p = mem_alloc(sizeof(*p));

    p->next = next;
    p->arena = arena_new();
    return p;
}

void payloads_free(struct payloads *p)
{
    if (!p)
        return;
    free(p->item);
    arena_free(p->arena);
    free(p);
}

static void keep(struct payloads *p, struct place at, struct slice text)
{
    struct slice part = { text.ptr, text.len < ONE_MAX ? text.len : ONE_MAX };

    if (part.len == 0 || p->kept + part.len > ALL_MAX)
        return;
    p->kept += part.len + sizeof(struct payload);
    GROW(p->item, p->count, p->cap);
    p->item[p->count] = (struct payload){
        .input = at.input,
        .frame = at.frame,
        .number = p->count,
        .bytes = text.len,
        .text = arena_copy(p->arena, part),
    };
    p->count++;
}

static void put(void *ctx, struct record *rec)
{
    struct payloads *p = ctx;

    if (rec->kind == REC_EVENT)
        keep(p, rec->at, rec->event.data);
    else if (rec->kind == REC_REQUEST)
        keep(p, rec->at, rec->request.body.payload);
    else if (rec->kind == REC_BODY)
        keep(p, rec->at, rec->body.payload);
    p->next.put(p->next.ctx, rec);
}

struct record_sink payloads_sink(struct payloads *p)
{
    return (struct record_sink){ .put = put, .ctx = p };
}

/* By place, then in the order in which they came. */
static int compare(const void *va, const void *vb)
{
    const struct payload *a = va;
    const struct payload *b = vb;

    if (a->input != b->input)
        return a->input < b->input ? -1 : 1;
    if (a->frame != b->frame)
        return a->frame < b->frame ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

void payloads_seal(struct payloads *p)
{
    if (p && p->count > 1)
        qsort(p->item, p->count, sizeof(*p->item), compare);
}

size_t payloads_at(const struct payloads *p, struct place at, const struct payload **ret)
{
    const struct payload want = { .input = at.input, .frame = at.frame };
    size_t lo = 0;
    size_t hi = p ? p->count : 0;
    size_t end;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(&p->item[mid], &want) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (end = lo; p && end < p->count; end++) {
        if (p->item[end].input != at.input || p->item[end].frame != at.frame)
            break;
    }
    *ret = end > lo ? &p->item[lo] : NULL;
    return end - lo;
}
