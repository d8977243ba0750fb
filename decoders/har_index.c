/* har_index.c - see har_index.h. */
#include "har_index.h"

#include "har_slice.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* An entry longer than this is not read. */
#define MAX_ENTRY ((uint64_t)128 << 20)
/* Entries of one request may start so far apart. */
#define DUPLICATE_NS NS_PER_MS

/* ---- producers ---- */

static const struct {
    const char *creator; /* log.creator.name begins so */
    const char *name;
    enum har_producer_kind by;
    const char *limits;
} producers[] = {
    { "WebInspector", "Chrome DevTools", HAR_BY_DEVTOOLS,
      "no text of streams that were cut or are open: comments, retry fields and unfinished events "
      "of those are not recorded" },
    { "Firefox", "Firefox", HAR_BY_FIREFOX,
      "no time per event and no mark for a cut or aborted stream; bodies up to 1 MiB" },
    { "WebKit Web Inspector", "Safari", HAR_BY_SAFARI,
      "no open streams, no time per event; repeated headers are merged" },
    { "Playwright", "Playwright", HAR_BY_PLAYWRIGHT,
      "no body of streams that were cut, aborted or open, no time per event" },
    { "mitmproxy", "mitmproxy", HAR_BY_MITMPROXY,
      "no body of streamed responses, no time per event; cut and failed exchanges may be missing" },
    { "Charles", "Charles", HAR_BY_CHARLES, "no time per event, no mark for a cut stream" },
    { "HTTP Toolkit", "HTTP Toolkit", HAR_BY_HTTP_TOOLKIT,
      "no bodies above 40 KB, no time per event, no mark for a cut stream" },
    { "Insomnia", "Insomnia", HAR_BY_INSOMNIA,
      "no times at all: every entry carries that of the export" },
    { "mcpsnoop", "mcpsnoop", HAR_BY_MCPSNOOP,
      "one entry per call, made up from messages: no HTTP, no event ids, no sessions" },
    { "pcap2har", "pcap2har", HAR_BY_PCAP2HAR, "no time per event" },
};

static void producer_set(struct har_index *ix, struct slice name, struct slice version)
{
    const char *known = NULL;

    if (name.len == 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(producers) && !known; i++) {
        if (!slice_starts(name, slice_str(producers[i].creator)))
            continue;
        known = producers[i].name;
        ix->ctx.by = producers[i].by;
        ix->limits = producers[i].limits;
    }
    int n = name.len < 40 ? (int)name.len : 40;
    int v = version.len < 40 ? (int)version.len : 40;
    snprintf(ix->producer, sizeof(ix->producer), "%.*s%s%.*s", known ? 40 : n,
             known ? known : (const char *)name.ptr, v > 0 ? " " : "", v,
             v > 0 ? (const char *)version.ptr : "");
}

/* ---- the spool ---- */

struct mapped {
    void *base;
    size_t len;
    struct slice text;
};

static void mapped_release(struct mapped *m)
{
    if (m->base)
        munmap(m->base, m->len);
}

/* Bytes of the spool, until mapped_release. */
static bool spool_map(const struct har_index *ix, uint64_t offset, uint64_t len, struct mapped *ret)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t skip = offset % page;

    *ret = (struct mapped){ 0 };
    if (len == 0 || len > SIZE_MAX - skip)
        return false;
    void *p =
        mmap(NULL, (size_t)(len + skip), PROT_READ, MAP_PRIVATE, ix->fd, (off_t)(offset - skip));
    if (p == MAP_FAILED)
        return false;
    *ret = (struct mapped){ p, (size_t)(len + skip), { (uint8_t *)p + skip, (size_t)len } };
    return true;
}

static bool spool_open(struct har_index *ix)
{
    ix->spool = tmpfile();
    ix->fd = ix->spool ? fileno(ix->spool) : memfd_create("har", MFD_CLOEXEC);
    return ix->fd >= 0;
}

static bool spool_add(struct har_index *ix, struct slice s)
{
    while (s.len > 0) {
        ssize_t n = write(ix->fd, s.ptr, s.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        s.ptr += n;
        s.len -= (size_t)n;
        ix->size += (uint64_t)n;
    }
    return true;
}

struct har_entry *har_index_read(const struct har_index *ix, uint64_t offset, uint64_t len,
                                 struct har_entry_error *reterr)
{
    AUTO(mapped_release) struct mapped m = { 0 };

    if (len > MAX_ENTRY) {
        snprintf(reterr->text, sizeof(reterr->text), "longer than %d MiB", (int)(MAX_ENTRY >> 20));
        return NULL;
    }
    if (!spool_map(ix, offset, len, &m)) {
        snprintf(reterr->text, sizeof(reterr->text), "cannot be read back");
        return NULL;
    }
    return har_entry_new(m.text, &ix->ctx, reterr);
}

/* ---- the index ---- */

static void item_add(struct har_index *ix, const struct har_entry *e, uint64_t offset, uint64_t len)
{
    struct har_summary sum;
    struct har_item item = { .offset = offset, .len = (uint32_t)len, .number = ix->numbers };

    har_entry_summary(e, &sum);
    item.start = sum.start;
    if (!sum.has_start) { /* it stands where its neighbour does */
        item.start = ix->count > 0 ? ix->item[ix->count - 1].start : 0;
        ix->untimed++;
    }
    item.key = sum.key & ((UINT64_C(1) << 40) - 1);
    item.body = (sum.body < (1U << 23) ? sum.body : (1U << 23) - 1) & ((1U << 23) - 1);
    GROW(ix->item, ix->count, ix->cap);
    ix->item[ix->count++] = item;
}

static bool entry_index(struct har_index *ix, uint64_t offset, uint64_t len,
                        struct har_entry_error *reterr)
{
    struct har_entry *e = har_index_read(ix, offset, len, reterr);

    if (!e)
        return false;
    item_add(ix, e, offset, len);
    ix->numbers++;
    har_entry_free(e);
    return true;
}

/* May an entry begin here: an object in a list. */
static bool is_element(struct slice all, size_t at)
{
    if (all.ptr[at] != '{')
        return false;
    while (at > 0 && (all.ptr[at - 1] == ' ' || all.ptr[at - 1] == '\n' ||
                      all.ptr[at - 1] == '\r' || all.ptr[at - 1] == '\t'))
        at--;
    uint8_t before = at > 0 ? all.ptr[at - 1] : ',';
    return before == ',' || before == '[' || before == '}' || before == ']';
}

static bool looks_like_entry(struct slice s)
{
    static const char start[] = "\"startedDateTime\"";
    static const char request[] = "\"request\"";

    return memmem(s.ptr, s.len, start, sizeof(start) - 1) &&
           memmem(s.ptr, s.len, request, sizeof(request) - 1);
}

/*
 * Entries that were swallowed by a damaged one (a quote or a bracket is missing, so the slicer ran
 * on): any object in a list that reads as an entry. The work is bounded, however odd the bytes.
 */
static void salvage(struct har_index *ix, uint64_t offset, uint64_t len)
{
    AUTO(mapped_release) struct mapped m = { 0 };
    struct har_entry_error err;
    uint64_t budget = len > UINT64_MAX / 16 ? UINT64_MAX : len * 16;

    if (!spool_map(ix, offset, len, &m))
        return;
    struct slice all = m.text;
    for (size_t i = 1; i < all.len && budget > 0; i++) {
        size_t read = 0;
        if (!is_element(all, i))
            continue;
        struct slice rest = { all.ptr + i, all.len - i };
        if (rest.len > MAX_ENTRY)
            rest.len = MAX_ENTRY;
        size_t n = har_object_len(rest, &read);
        rest.len = n;
        budget -= read < budget ? read : budget;
        if (n > 0 && looks_like_entry(rest) && entry_index(ix, offset + i, n, &err))
            i += n - 1;
    }
}

static void damage_add(struct har_index *ix, const struct har_entry_error *why)
{
    if (ix->damaged < HAR_DAMAGE_TOLD)
        ix->damage[ix->damaged] = (struct har_damage){ ix->numbers, *why };
    ix->damaged++;
    ix->numbers++;
}

/* The file ends inside an entry: it is cut, unless whole entries come later (a quote is missing).
 */
static void cut_entry(struct har_index *ix, uint64_t offset)
{
    static const struct har_entry_error why = { "it does not end" };
    size_t had = ix->count;

    damage_add(ix, &why);
    salvage(ix, offset, ix->size - offset);
    ix->swallowed = ix->count > had;
    if (ix->swallowed)
        return;
    ix->damaged--;
    ix->numbers--;
}

static void read_creator(struct har_index *ix, const struct har_span *span)
{
    AUTO(mapped_release) struct mapped m = { 0 };

    if (span->len > 65536 || !spool_map(ix, span->offset, span->len, &m))
        return;
    json_t *creator =
        json_loadb((const char *)m.text.ptr, m.text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    producer_set(ix, har_string(creator, "name"), har_string(creator, "version"));
    json_decref(creator);
}

static void part_found(struct har_index *ix, const struct har_span *span)
{
    struct har_entry_error err;

    if (span->part == HAR_PART_CREATOR)
        read_creator(ix, span);
    if (span->part != HAR_PART_ENTRY || ix->numbers == UINT32_MAX)
        return;
    if (entry_index(ix, span->offset, span->len, &err))
        return;
    damage_add(ix, &err);
    salvage(ix, span->offset, span->len);
}

static int by_time(const void *pa, const void *pb)
{
    const struct har_item *a = pa;
    const struct har_item *b = pb;

    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_key(const void *pa, const void *pb)
{
    const struct har_item *a = *(struct har_item *const *)pa;
    const struct har_item *b = *(struct har_item *const *)pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return by_time(a, b);
}

/* The same request twice within a millisecond (service worker and network, merged files): the entry
 * with more of the response stays. */
static void mark_duplicates(struct har_index *ix)
{
    if (ix->ctx.by == HAR_BY_INSOMNIA || ix->ctx.by == HAR_BY_MCPSNOOP || ix->count < 2)
        return;
    struct har_item **order = mem_alloc(ix->count * sizeof(struct har_item *));
    for (size_t i = 0; i < ix->count; i++)
        order[i] = &ix->item[i];
    qsort(order, ix->count, sizeof(struct har_item *), by_key);
    struct har_item *best = order[0];
    for (size_t i = 1; i < ix->count; i++) {
        struct har_item *it = order[i];
        bool same = it->key != 0 && it->key == best->key && it->start - best->start <= DUPLICATE_NS;
        if (same && it->body <= best->body) {
            it->duplicate = 1;
            continue;
        }
        best->duplicate = same;
        best = it;
    }
    free(order);
}

/* ---- opening ---- */

static bool spool_all(struct har_index *ix, struct input *in, struct har_slicer *slicer)
{
    static const size_t chunk = 65536;
    uint8_t *bytes = mem_alloc(chunk);
    struct har_span span;
    bool ok = true;
    size_t n;

    while (ok && (n = input_read(in, bytes, chunk)) > 0) {
        struct slice s = { bytes, n };
        ok = spool_add(ix, s);
        while (ok && har_slicer_next(slicer, &s, &span))
            part_found(ix, &span);
    }
    free(bytes);
    return ok;
}

static void set_status(struct har_index *ix, const struct har_slicer *s, const char *damage)
{
    size_t room = sizeof(ix->message);
    bool odd = s->mismatched || ix->swallowed;

    if (!s->closed && !odd) {
        ix->status = HAR_TRUNCATED;
        snprintf(ix->message, room, "the file ends inside %s after %u entries%s%.100s",
                 s->in_entries ? "log.entries" : "the log", ix->numbers, damage ? ": " : "",
                 damage ? damage : "");
        return;
    }
    if (damage || ix->damaged > 0 || odd || !s->has_list)
        ix->status = HAR_DAMAGED;
    if (damage)
        snprintf(ix->message, room, "%.200s", damage);
    else if (ix->damaged > 0)
        snprintf(ix->message, room, "entries that do not parse: %zu; the first is entry %u: %.140s",
                 ix->damaged, ix->damage[0].number, ix->damage[0].why.text);
    else if (odd)
        snprintf(ix->message, room, "brackets do not match between the entries");
    else if (!s->has_list)
        snprintf(ix->message, room, "there is no log.entries");
}

bool har_index_fill(struct har_index *ix, struct input *in, uint32_t input_index,
                    struct input_error *reterr)
{
    struct har_slicer slicer;
    uint64_t open;

    *ix = (struct har_index){
        .ctx = { .producer = ix->producer, .input = input_index },
        .producer = "unknown producer",
        .limits = "times per event and how streams ended are known as far as it tells",
    };
    har_slicer_init(&slicer);
    if (!spool_open(ix) || !spool_all(ix, in, &slicer)) {
        snprintf(reterr->text, sizeof(reterr->text), "no room for a temporary copy: %s",
                 strerror(errno));
        return false;
    }
    if (har_slicer_open_entry(&slicer, &open))
        cut_entry(ix, open);
    set_status(ix, &slicer, input_damage(in));
    if (ix->count > 0)
        qsort(ix->item, ix->count, sizeof(*ix->item), by_time);
    mark_duplicates(ix);
    return true;
}

void har_index_release(struct har_index *ix)
{
    free(ix->item);
    if (ix->spool)
        fclose(ix->spool);
    else if (ix->fd >= 0)
        close(ix->fd);
}
