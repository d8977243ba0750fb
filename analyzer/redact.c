/*
 * redact.c - see redact.h. The ids are sorted, so that at each place of a text the longest one that
 * begins there is found by one binary search and a walk over ids that begin with each other.
 */
#include "redact.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

/* Shorter ids are no secrets, and would turn up in any text. */
#define SECRET_MIN 6
#define DIGITS     6

struct secret {
    struct slice id;
    size_t shorter; /* index of the longest other id that this one begins with; SIZE_MAX: none */
};

struct redact {
    struct secret *secret;
    size_t count;
    bool begins[256]; /* some id begins with this byte */
};

void redact_digest(struct slice id, size_t digits, char ret[static 65])
{
    uint8_t hash[SHA256_DIGEST_LENGTH];

    SHA256(id.ptr ? id.ptr : (const uint8_t *)"", id.len, hash);
    for (size_t i = 0; i < sizeof(hash); i++)
        snprintf(ret + 2 * i, 3, "%02x", hash[i]);
    ret[digits < 64 ? digits : 64] = '\0';
}

static int compare(struct slice a, struct slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = memcmp(a.ptr, b.ptr, n);

    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static int compare_secrets(const void *a, const void *b)
{
    const struct secret *x = a;
    const struct secret *y = b;

    return compare(x->id, y->id);
}

/* The ids that this one begins with are all before it, each beginning with the next shorter. */
static void link_shorter(struct redact *r, size_t i)
{
    size_t at = i == 0 ? SIZE_MAX : i - 1;

    while (at != SIZE_MAX && !slice_starts(r->secret[i].id, r->secret[at].id))
        at = r->secret[at].shorter;
    r->secret[i].shorter = at;
}

static size_t unique(struct secret *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !slice_eq(list[kept - 1].id, list[i].id))
            list[kept++] = list[i];
    }
    return kept;
}

struct redact *redact_new(const struct model *m)
{
    struct redact *r = mem_alloc(sizeof(*r));

    r->secret = mem_alloc((m->session_count + 1) * sizeof(*r->secret));
    for (uint32_t i = 0; i < m->session_count; i++) {
        if (m->session[i]->id.len >= SECRET_MIN)
            r->secret[r->count++].id = m->session[i]->id;
    }
    qsort(r->secret, r->count, sizeof(*r->secret), compare_secrets);
    r->count = unique(r->secret, r->count);
    for (size_t i = 0; i < r->count; i++) {
        r->begins[r->secret[i].id.ptr[0]] = true;
        link_shorter(r, i);
    }
    return r;
}

void redact_free(struct redact *r)
{
    if (!r)
        return;
    free(r->secret);
    free(r);
}

/* The longest id that s begins with; NULL: none. */
static const struct secret *find(const struct redact *r, struct slice s)
{
    size_t lo = 0;
    size_t hi = r->count;

    if (!r->begins[s.ptr[0]])
        return NULL;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(r->secret[mid].id, s) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t at = lo == 0 ? SIZE_MAX : lo - 1;
    while (at != SIZE_MAX && !slice_starts(s, r->secret[at].id))
        at = r->secret[at].shorter;
    return at == SIZE_MAX ? NULL : &r->secret[at];
}

static bool add_digest(struct buf *b, struct slice id)
{
    char hex[65];

    redact_digest(id, DIGITS, hex);
    return buf_add(b, SLICE_LIT("sess:")) && buf_add(b, slice_str(hex));
}

struct slice redact_text(const struct redact *r, struct arena *a, struct slice s)
{
    struct buf b;
    struct slice rest = s;
    size_t hits = 0;
    bool ok = true;

    if (!r || r->count == 0)
        return s;
    buf_init(&b, SIZE_MAX);
    while (ok && rest.len > 0) {
        const struct secret *secret = find(r, rest);
        size_t n = secret ? secret->id.len : 1;

        hits += secret != NULL;
        ok = secret ? add_digest(&b, secret->id) : buf_add(&b, (struct slice){ rest.ptr, 1 });
        rest.ptr += n;
        rest.len -= n;
    }
    struct slice out = hits > 0 ? arena_copy(a, buf_slice(&b)) : s;
    buf_release(&b);
    return out;
}
