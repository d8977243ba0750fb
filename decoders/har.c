/*
 * har.c - see har.h. har_index.c has found the entries; here each is read again when its time has
 * come, and its facts are told in the order of time.
 */
#include "har.h"

#include "har_index.h"
#include "har_slice.h"

#include <stdlib.h>

/* Text of the entries whose trees are kept while they are in progress; others are read again. */
#define KEEP_BYTES ((size_t)8 << 20)
/* What reading again may cost, in sizes of the file: then trees are kept after all. */
#define REREAD_MAX 8

/* An entry between its request and its end. */
struct live {
    size_t fact; /* the next */
    const struct har_item *item;
    struct har_entry *entry; /* NULL: to be read again */
    struct har_leg leg;
};

struct slot {
    int64_t time;
    uint32_t number;
    struct live *live;
};

struct har {
    struct exchanges *all;
    struct har_index index;
    size_t next; /* first item not started */
    struct slot *heap;
    size_t live;
    size_t live_cap;
    size_t kept;     /* bytes of text behind the trees in memory */
    uint64_t reread; /* bytes */
    int64_t now;
    bool told;
    size_t no_envelope;
};

struct har *har_open(struct input *in, uint32_t input_index, struct exchanges *all,
                     struct input_error *reterr)
{
    struct har *har = mem_alloc(sizeof(*har));

    har->all = all;
    if (!har_index_fill(&har->index, in, input_index, reterr)) {
        har_free(har);
        return NULL;
    }
    har->now = har->index.count > 0 ? har->index.item[0].start : 0;
    return har;
}

static void live_free(struct live *l, int64_t now)
{
    static const struct exchange_end_facts open = { .kind = END_OPEN, .close_not_known = true };

    if (l->leg.x)
        exchange_end(MOVE(l->leg.x), &open, (struct place){ .time = now });
    har_entry_free(l->entry);
    free(l);
}

void har_free(struct har *har)
{
    if (!har)
        return;
    for (size_t i = 0; i < har->live; i++)
        live_free(har->heap[i].live, har->now);
    free(har->heap);
    har_index_release(&har->index);
    free(har);
}

/* ---- entries in progress: a heap by time, then by number ---- */

static bool before(const struct slot *a, const struct slot *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void heap_swap(struct har *har, size_t a, size_t b)
{
    struct slot t = har->heap[a];

    har->heap[a] = har->heap[b];
    har->heap[b] = t;
}

static void heap_down(struct har *har, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < har->live; k++)
            least = before(&har->heap[k], &har->heap[least]) ? k : least;
        if (least == i)
            return;
        heap_swap(har, i, least);
        i = least;
    }
}

static void heap_push(struct har *har, struct live *l, int64_t time)
{
    size_t i = har->live;

    GROW(har->heap, har->live, har->live_cap);
    har->heap[har->live++] = (struct slot){ time, l->item->number, l };
    while (i > 0 && before(&har->heap[i], &har->heap[(i - 1) / 2])) {
        heap_swap(har, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static struct live *heap_pop(struct har *har)
{
    struct live *l = har->heap[0].live;

    har->heap[0] = har->heap[--har->live];
    heap_down(har, 0);
    return l;
}

/* ---- facts ---- */

static bool live_load(struct har *har, struct live *l)
{
    struct har_entry_error err;

    if (l->entry)
        return true;
    l->entry = har_index_read(&har->index, l->item->offset, l->item->len, &err);
    if (!l->entry)
        return false; /* it did parse before: the spool is gone */
    har_entry_plan(l->entry, l->item->start, l->item->number);
    har->kept += l->item->len;
    if (l->fact > 0)
        har->reread += l->item->len;
    return true;
}

static void live_unload(struct har *har, struct live *l)
{
    if (!l->entry)
        return;
    har->kept -= l->item->len;
    har_entry_free(MOVE(l->entry));
}

/* Whether the next fact to come is the start of an entry, not one of those in progress. */
static bool next_is_start(const struct har *har)
{
    if (har->next >= har->index.count)
        return false;
    const struct har_item *it = &har->index.item[har->next];
    if (har->live == 0 || it->start != har->heap[0].time)
        return har->live == 0 || it->start < har->heap[0].time;
    return it->number < har->heap[0].number;
}

bool har_time(const struct har *har, int64_t *ret)
{
    if (har->next >= har->index.count && har->live == 0)
        return false;
    int64_t t = next_is_start(har) ? har->index.item[har->next].start : har->heap[0].time;
    *ret = t == HAR_AT_END || t < har->now ? har->now : t;
    return true;
}

static void tell(struct har *har, uint64_t count, struct slice text, uint32_t number)
{
    struct place at = { .time = har->now, .frame = number, .input = har->index.ctx.input };

    exchanges_note(har->all, 0, (struct rec_note){ NOTE_HAR, count, UINT32_MAX, text }, at);
}

static void tell_damage(struct har *har)
{
    char text[220];

    for (size_t i = 0; i < har->index.damaged && i < HAR_DAMAGE_TOLD; i++) {
        snprintf(text, sizeof(text), "entry %u does not parse: %s", har->index.damage[i].number,
                 har->index.damage[i].why.text);
        tell(har, 1, slice_str(text), har->index.damage[i].number);
    }
    if (har->index.damaged > HAR_DAMAGE_TOLD)
        tell(har, har->index.damaged - HAR_DAMAGE_TOLD, SLICE_LIT("more entries do not parse"), 0);
}

/* What the reader of the report has to know of this file, before its first fact. */
static void tell_file(struct har *har)
{
    char text[400];

    if (har->told)
        return;
    har->told = true;
    snprintf(text, sizeof(text), "%s: no acknowledgements, no way to see who closed; %s",
             har->index.producer, har->index.limits);
    tell(har, 1, slice_str(text), 0);
    tell_damage(har);
    if (har->index.untimed > 0)
        tell(har, har->index.untimed,
             SLICE_LIT("entries without a start time stand where they are"), 0);
}

static struct live *start_next(struct har *har)
{
    const struct har_item *it = &har->index.item[har->next++];

    if (it->duplicate) {
        tell(har, 1, SLICE_LIT("a second entry of the same request, not used"), it->number);
        return NULL;
    }
    struct live *l = mem_alloc(sizeof(*l));
    l->item = it;
    l->leg.all = har->all;
    return l;
}

/* Tells the next fact; false: that was the last one. *ret: when the one after it is due. */
static bool live_step(struct har *har, struct live *l, int64_t *ret)
{
    if (!live_load(har, l))
        return false;
    har->no_envelope += l->entry->scope == HAR_SCOPE_NO_ENVELOPE;
    har_fact(l->entry, l->fact++, har->now, &l->leg);
    if (l->fact >= l->entry->fact_count)
        return false;
    *ret = har_entry_time(l->entry, l->fact);
    if (har->kept > KEEP_BYTES && har->reread / REREAD_MAX < har->index.size)
        live_unload(har, l);
    return true;
}

void har_step(struct har *har)
{
    struct live *l;
    int64_t due;

    if (!har_time(har, &har->now))
        return;
    tell_file(har);
    l = next_is_start(har) ? start_next(har) : heap_pop(har);
    if (l && live_step(har, l, &due)) {
        heap_push(har, l, due);
    } else if (l) {
        live_unload(har, l);
        live_free(l, har->now);
    }
    if (har->no_envelope > 0 && har->next >= har->index.count && har->live == 0)
        tell(har, har->no_envelope,
             SLICE_LIT("calls without a JSON-RPC envelope: nothing to match them by"), 0);
}

/* ---- what is known of the file ---- */

enum har_status har_status(const struct har *har)
{
    return har->index.status;
}

const char *har_message(const struct har *har)
{
    return har->index.message;
}

uint64_t har_entries(const struct har *har)
{
    return har->index.numbers;
}

struct slice har_producer(const struct har *har)
{
    return slice_str(har->index.producer);
}

static struct slice skip_blanks(struct slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r'))) {
        s.ptr++;
        s.len--;
    }
    return s;
}

static bool is_name_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || c == '.';
}

/* Without BOM, blanks, and the call of a jsonp file (Firefox can write one). */
static struct slice skip_front(struct slice s)
{
    size_t n = 0;

    if (slice_starts(s, SLICE_LIT("\xef\xbb\xbf"))) {
        s.ptr += 3;
        s.len -= 3;
    }
    s = skip_blanks(s);
    while (n < s.len && n < 64 && is_name_char(s.ptr[n]))
        n++;
    if (n > 0 && n < s.len && s.ptr[n] == '(') {
        s.ptr += n + 1;
        s.len -= n + 1;
    }
    return skip_blanks(s);
}

bool har_is(struct slice head)
{
    struct har_slicer s;
    struct har_span span;

    head = skip_front(head);
    if (head.len == 0 || head.ptr[0] != '{')
        return false;
    har_slicer_init(&s);
    while (har_slicer_next(&s, &head, &span))
        continue;
    return s.has_log || (s.in_log && !s.odd_log);
}
