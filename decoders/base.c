/* base.c - see base.h. */
#include "base.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

bool slice_eq_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

bool slice_starts(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool slice_has_nocase(struct slice hay, struct slice needle)
{
    for (size_t i = 0; i + needle.len <= hay.len; i++) {
        if (slice_eq_nocase((struct slice){ hay.ptr + i, needle.len }, needle))
            return true;
    }
    return false;
}

struct slice slice_trim(struct slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool slice_u64(struct slice s, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!byte_is_digit(s.ptr[i]))
            return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s.ptr[i] - '0', &v))
            return false;
    }
    if (v > max)
        return false;
    *ret = v;
    return true;
}

size_t slice_unhex(struct slice s, uint8_t *out, size_t max)
{
    if (s.len % 2 != 0 || s.len / 2 > max)
        return 0;
    for (size_t i = 0; i < s.len / 2; i++) {
        int hi = byte_hex(s.ptr[2 * i]);
        int lo = byte_hex(s.ptr[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return 0;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return s.len / 2;
}

bool slice_u8(struct slice *s, uint8_t *ret)
{
    struct slice b;

    if (!slice_take(s, 1, &b))
        return false;
    *ret = b.ptr[0];
    return true;
}

bool slice_be16(struct slice *s, uint16_t *ret)
{
    struct slice b;

    if (!slice_take(s, 2, &b))
        return false;
    *ret = (uint16_t)(b.ptr[0] << 8 | b.ptr[1]);
    return true;
}

bool slice_be32(struct slice *s, uint32_t *ret)
{
    struct slice b;

    if (!slice_take(s, 4, &b))
        return false;
    *ret = (uint32_t)b.ptr[0] << 24 | (uint32_t)b.ptr[1] << 16 | (uint32_t)b.ptr[2] << 8 | b.ptr[3];
    return true;
}

static void host_text(const struct endpoint *e, char buf[static INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    if (memcmp(e->addr, mapped, sizeof(mapped)) == 0)
        inet_ntop(AF_INET, e->addr + 12, buf, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, e->addr, buf, INET6_ADDRSTRLEN);
}

const char *endpoint_host(const struct endpoint *e, char buf[static ENDPOINT_TEXT])
{
    host_text(e, buf);
    return buf;
}

const char *endpoint_text(const struct endpoint *e, char buf[static ENDPOINT_TEXT])
{
    char host[INET6_ADDRSTRLEN];

    host_text(e, host);
    snprintf(buf, ENDPOINT_TEXT, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, e->port);
    return buf;
}

static void *or_die(void *p)
{
    if (!p) {
        fputs("sseaudit: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

void *mem_alloc(size_t n)
{
    return or_die(calloc(1, n ? n : 1));
}

void *mem_grow(void *p, size_t n)
{
    return or_die(realloc(p, n ? n : 1));
}

char *mem_dup(struct slice s)
{
    char *p = mem_alloc(s.len + 1);

    if (s.len > 0)
        memcpy(p, s.ptr, s.len);
    return p;
}

void *mem_double(void *p, size_t *cap, size_t size)
{
    size_t want = *cap ? *cap * 2 : 8;
    size_t bytes;

    if (__builtin_mul_overflow(want, size, &bytes))
        or_die(NULL);
    *cap = want;
    return mem_grow(p, bytes);
}

struct block {
    struct block *next;
    size_t cap;
    size_t used;
    max_align_t data[];
};

struct arena {
    struct block *head;  /* in use, newest first */
    struct block *spare; /* standard-size blocks kept by arena_clear */
    size_t bytes;
};

#define ARENA_BLOCK ((size_t)16384)

struct arena *arena_new(void)
{
    return mem_alloc(sizeof(struct arena));
}

static void blocks_free(struct block *b)
{
    while (b) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    blocks_free(a->head);
    blocks_free(a->spare);
    free(a);
}

void arena_freep(struct arena **a)
{
    arena_free(*a);
}

void arena_clear(struct arena *a)
{
    while (a->head) {
        struct block *b = a->head;
        a->head = b->next;
        if (b->cap == ARENA_BLOCK) {
            b->next = a->spare;
            a->spare = b;
        } else {
            free(b);
        }
    }
    a->bytes = 0;
}

static struct block *block_for(struct arena *a, size_t n)
{
#ifdef ARENA_ONE_BLOCK_EACH /* sanitizer builds: let ASan see every object's edges */
    size_t cap = n;
#else
    size_t cap = n > ARENA_BLOCK / 4 ? n : ARENA_BLOCK;
#endif
    struct block *b = a->spare;

    if (b && cap == ARENA_BLOCK)
        a->spare = b->next;
    else
        b = mem_grow(NULL, sizeof(*b) + cap);
    b->cap = cap;
    b->used = 0;
    if (a->head && cap != ARENA_BLOCK) { /* keep filling the current block */
        b->next = a->head->next;
        a->head->next = b;
    } else {
        b->next = a->head;
        a->head = b;
    }
    a->bytes += cap;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t need = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct block *b = a->head;

#ifdef ARENA_ONE_BLOCK_EACH
    need = n ? n : 1;
    b = NULL;
#endif
    if (!b || b->cap - b->used < need)
        b = block_for(a, need);
    void *p = (uint8_t *)b->data + b->used;
    b->used += need;
    memset(p, 0, n);
    return p;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    if (s.len == 0)
        return (struct slice){ (const uint8_t *)"", 0 };
    uint8_t *p = arena_alloc(a, s.len);
    memcpy(p, s.ptr, s.len);
    return (struct slice){ p, s.len };
}

char *arena_str(struct arena *a, struct slice s)
{
    char *p = arena_alloc(a, s.len + 1);

    if (s.len > 0)
        memcpy(p, s.ptr, s.len);
    return p;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return arena_str(a, (struct slice){ 0 });
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, args);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *p = arena_vprintf(a, fmt, args);
    va_end(args);
    return p;
}

size_t arena_bytes(const struct arena *a)
{
    return a->bytes;
}

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max };
}

void buf_release(struct buf *b)
{
    free(b->ptr);
    *b = (struct buf){ .max = b->max };
}

bool buf_add(struct buf *b, struct slice s)
{
    if (s.len == 0)
        return true;
    if (s.len > b->max || b->len > b->max - s.len)
        return false;
    if (b->len + s.len > b->cap) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap < b->len + s.len)
            cap *= 2;
        b->ptr = mem_grow(b->ptr, cap);
        b->cap = cap;
    }
    memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    return true;
}

void buf_drop(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    if (n < b->len)
        memmove(b->ptr, b->ptr + n, b->len - n);
    b->len = n < b->len ? b->len - n : 0;
}

uint64_t hash_bytes(struct slice s)
{
    return XXH3_64bits(s.ptr ? s.ptr : (const uint8_t *)"", s.len);
}

const char *time_text(int64_t ns, char buf[static TIME_TEXT])
{
    int64_t sec = ns / NS_PER_SEC;
    int64_t frac = ns % NS_PER_SEC;
    struct tm tm;

    if (frac < 0) {
        frac += NS_PER_SEC;
        sec--;
    }
    time_t t = (time_t)sec;
    if (!gmtime_r(&t, &tm))
        memset(&tm, 0, sizeof(tm));
    snprintf(buf, TIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)frac);
    return buf;
}

/* Exactly n digits off the front, as a number from lo to hi. */
static bool digits(struct slice *s, size_t n, int64_t lo, int64_t hi, int64_t *ret)
{
    struct slice d;
    uint64_t v;

    if (!slice_take(s, n, &d) || !slice_u64(d, (uint64_t)hi, &v) || (int64_t)v < lo)
        return false;
    *ret = (int64_t)v;
    return true;
}

static bool literal(struct slice *s, const char *any_of)
{
    if (s->len == 0 || s->ptr[0] == '\0' || !strchr(any_of, s->ptr[0]))
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static int64_t fraction(struct slice *s)
{
    int64_t ns = 0;
    int64_t unit = NS_PER_SEC / 10;

    while (s->len > 0 && byte_is_digit(s->ptr[0])) {
        ns += (s->ptr[0] - '0') * unit;
        unit /= 10;
        s->ptr++;
        s->len--;
    }
    return ns;
}

static bool zone(struct slice *s, int64_t *ret)
{
    int64_t h;
    int64_t m;

    if (literal(s, "Zz")) {
        *ret = 0;
        return true;
    }
    if (s->len == 0)
        return false;
    int64_t sign = s->ptr[0] == '-' ? -1 : 1;
    if (!literal(s, "+-") || !digits(s, 2, 0, 23, &h))
        return false;
    (void)literal(s, ":");
    if (!digits(s, 2, 0, 59, &m))
        return false;
    *ret = sign * (h * 3600 + m * 60);
    return true;
}

/* Days since 1970 of a proleptic Gregorian date. */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

bool time_parse(struct slice s, int64_t *ret)
{
    int64_t y;
    int64_t mo;
    int64_t d;
    int64_t h;
    int64_t mi;
    int64_t sec;
    int64_t offset;
    int64_t ns = 0;

    if (!digits(&s, 4, 1970, 2261, &y) || !literal(&s, "-") || !digits(&s, 2, 1, 12, &mo) ||
        !literal(&s, "-") || !digits(&s, 2, 1, 31, &d) || !literal(&s, "Tt ") ||
        !digits(&s, 2, 0, 23, &h) || !literal(&s, ":") || !digits(&s, 2, 0, 59, &mi) ||
        !literal(&s, ":") || !digits(&s, 2, 0, 60, &sec))
        return false;
    if (literal(&s, ".,"))
        ns = fraction(&s);
    if (!zone(&s, &offset) || s.len > 0)
        return false;
    *ret =
        (days_from_civil(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec - offset) * NS_PER_SEC + ns;
    return true;
}
