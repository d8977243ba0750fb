/* keylog.c - see keylog.h. A hash table with open addressing. */
#include "keylog.h"

#include <stdlib.h>

struct entry {
    uint8_t random[TLS_RANDOM];
    enum key_label label;
    struct tls_secret secret; /* len 0: a free slot */
};

struct keylog {
    struct entry *slot;
    size_t cap; /* a power of two, or 0 */
    size_t count;
};

static const struct {
    const char *name;
    int label; /* -1: known, of no use here */
} labels[] = {
    { "CLIENT_RANDOM", KEY_MASTER },
    { "CLIENT_EARLY_TRAFFIC_SECRET", KEY_CLIENT_EARLY },
    { "CLIENT_HANDSHAKE_TRAFFIC_SECRET", KEY_CLIENT_HANDSHAKE },
    { "SERVER_HANDSHAKE_TRAFFIC_SECRET", KEY_SERVER_HANDSHAKE },
    { "CLIENT_TRAFFIC_SECRET_0", KEY_CLIENT_TRAFFIC },
    { "SERVER_TRAFFIC_SECRET_0", KEY_SERVER_TRAFFIC },
    { "EXPORTER_SECRET", -1 },
    { "EARLY_EXPORTER_SECRET", -1 },
    { "EARLY_EXPORTER_MASTER_SECRET", -1 },
    { "RSA", -1 },
    { "ECH_SECRET", -1 },
    { "ECH_CONFIG", -1 },
};

struct keylog *keylog_new(void)
{
    return mem_alloc(sizeof(struct keylog));
}

void keylog_free(struct keylog *k)
{
    if (!k)
        return;
    free(k->slot);
    free(k);
}

size_t keylog_count(const struct keylog *k)
{
    return k->count;
}

/* The slot of a key, or the free one where it belongs; the table is never full. */
static struct entry *slot_of(const struct keylog *k, const uint8_t random[TLS_RANDOM],
                             enum key_label label)
{
    size_t i = (size_t)hash_mix(hash_bytes((struct slice){ random, TLS_RANDOM }), label);

    for (;; i++) {
        struct entry *e = &k->slot[i & (k->cap - 1)];
        if (e->secret.len == 0 || (e->label == label && memcmp(e->random, random, TLS_RANDOM) == 0))
            return e;
    }
}

const struct tls_secret *keylog_find(const struct keylog *k, const uint8_t random[TLS_RANDOM],
                                     enum key_label label)
{
    if (!k || k->cap == 0)
        return NULL;
    const struct entry *e = slot_of(k, random, label);
    return e->secret.len > 0 ? &e->secret : NULL;
}

static void make_room(struct keylog *k)
{
    struct keylog old = *k;

    if (k->count < k->cap / 4 * 3)
        return;
    k->cap = old.cap ? old.cap * 2 : 16;
    k->slot = mem_alloc(k->cap * sizeof(*k->slot));
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slot[i].secret.len > 0)
            *slot_of(k, old.slot[i].random, old.slot[i].label) = old.slot[i];
    }
    free(old.slot);
}

static void insert(struct keylog *k, const struct entry *new_entry)
{
    make_room(k);
    struct entry *e = slot_of(k, new_entry->random, new_entry->label);
    if (e->secret.len == 0)
        k->count++;
    *e = *new_entry;
}

static struct slice next_line(struct slice *text)
{
    const uint8_t *end = text->len > 0 ? memchr(text->ptr, '\n', text->len) : NULL;
    struct slice line = { text->ptr, end ? (size_t)(end - text->ptr) : text->len };
    size_t used = line.len + (end ? 1 : 0);

    text->ptr += used;
    text->len -= used;
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return slice_trim(line);
}

static struct slice next_word(struct slice *line)
{
    size_t n = 0;

    *line = slice_trim(*line);
    while (n < line->len && line->ptr[n] != ' ' && line->ptr[n] != '\t')
        n++;
    struct slice word = { line->ptr, n };
    line->ptr += n;
    line->len -= n;
    return word;
}

/* Index into labels; ARRAY_LEN(labels): unknown. */
static size_t label_index(struct slice word)
{
    size_t i = 0;

    while (i < ARRAY_LEN(labels) && !slice_eq(slice_str(labels[i].name), word))
        i++;
    return i;
}

static bool parse_line(struct slice line, struct entry *ret)
{
    struct entry e = { 0 };
    size_t i = label_index(next_word(&line));

    if (i == ARRAY_LEN(labels) || labels[i].label < 0)
        return false;
    e.label = (enum key_label)labels[i].label;
    if (slice_unhex(next_word(&line), e.random, TLS_RANDOM) != TLS_RANDOM)
        return false;
    e.secret.len = (uint8_t)slice_unhex(next_word(&line), e.secret.bytes, sizeof(e.secret.bytes));
    if (e.secret.len != 48 && (e.secret.len != 32 || e.label == KEY_MASTER))
        return false;
    *ret = e;
    return true;
}

size_t keylog_add(struct keylog *k, struct slice text)
{
    size_t n = 0;
    struct entry e;

    while (text.len > 0) {
        if (!parse_line(next_line(&text), &e))
            continue;
        insert(k, &e);
        n++;
    }
    return n;
}

bool keylog_is(struct slice text)
{
    uint8_t id[TLS_RANDOM];

    if (slice_starts(text, SLICE_LIT("# SSL/TLS secrets log file")))
        return true;
    while (text.len > 0) {
        struct slice line = next_line(&text);
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        if (label_index(next_word(&line)) == ARRAY_LEN(labels))
            return false;
        return slice_unhex(next_word(&line), id, sizeof(id)) > 0;
    }
    return false;
}
