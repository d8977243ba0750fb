/*
 * base.h - the vocabulary every other file uses: borrowed bytes, places, memory, and a few macros.
 *
 * Times are int64_t nanoseconds since 1970 (UTC). Frames count from 1 within their input, as
 * Wireshark counts them; for a HAR the frame is the index of the entry, from 0.
 */
#ifndef BASE_H
#define BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define AUTO(fn)               __attribute__((cleanup(fn)))
#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))

/* Hand ownership on: yields p and leaves NULL behind, so an AUTO() pointer frees nothing. */
#define MOVE(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(p) moved_ = (p);                                                                \
        (p) = NULL;                                                                                \
        moved_;                                                                                    \
    })

#define NS_PER_SEC INT64_C(1000000000)
#define NS_PER_MS  INT64_C(1000000)

/* A borrowed run of bytes: never owned, never NUL-terminated. Pass by value. */
struct slice {
    const uint8_t *ptr;
    size_t len;
};

#define SLICE_LIT(s) ((struct slice){ (const uint8_t *)("" s), sizeof(s) - 1 })
#define SLICE_FMT    "%.*s"
#define SLICE_ARG(s) (int)(s).len, (const char *)(s).ptr

static inline struct slice slice_str(const char *s)
{
    return (struct slice){ (const uint8_t *)s, s ? strlen(s) : 0 };
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool byte_is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit; -1: it is none. */
static inline int byte_hex(uint8_t c)
{
    if (byte_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ASCII case ignored. */
bool slice_eq_nocase(struct slice a, struct slice b);
bool slice_starts(struct slice s, struct slice prefix);
/* The first occurrence of needle, ASCII case ignored. */
bool slice_has_nocase(struct slice hay, struct slice needle);
/* Without the blanks and tabs around it. */
struct slice slice_trim(struct slice s);
/* A decimal number that fills the slice; false, and *ret untouched, otherwise or when it exceeds
 * max. */
MUST_CHECK bool slice_u64(struct slice s, uint64_t max, uint64_t *ret);
/* The whole of s as hexadecimal digits into at most max bytes; the number of bytes, 0: it is none.
 */
MUST_CHECK size_t slice_unhex(struct slice s, uint8_t *out, size_t max);

/* Returns false, and takes nothing, when fewer than n bytes are left. */
MUST_CHECK static inline bool slice_take(struct slice *s, size_t n, struct slice *out)
{
    if (n > s->len)
        return false;
    *out = (struct slice){ s->ptr, n };
    s->ptr += n;
    s->len -= n;
    return true;
}

/* Big-endian numbers off the front; false, and nothing taken, when too few bytes are left. */
MUST_CHECK bool slice_u8(struct slice *s, uint8_t *ret);
MUST_CHECK bool slice_be16(struct slice *s, uint16_t *ret);
MUST_CHECK bool slice_be32(struct slice *s, uint32_t *ret);

/* Where something stands in the evidence. */
struct place {
    int64_t time;   /* ns since 1970; 0: unknown */
    uint32_t frame; /* from 1 (HAR: entry, from 0) */
    uint32_t input; /* index of the file, as in the report's inputs */
};

/* Two addresses of one flow; IPv4 is kept as ::ffff:a.b.c.d. */
struct endpoint {
    uint8_t addr[16];
    uint16_t port;
};

static inline bool endpoint_eq(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

/* "192.0.2.1:80" or "[2001:db8::1]:80"; the text fits ENDPOINT_TEXT bytes with its NUL. */
#define ENDPOINT_TEXT 56
const char *endpoint_text(const struct endpoint *e, char buf[static ENDPOINT_TEXT]);
/* The same without the port. */
const char *endpoint_host(const struct endpoint *e, char buf[static ENDPOINT_TEXT]);

/* Memory: these never return NULL; out of memory ends the program with one message. */
void *mem_alloc(size_t n);         /* zeroed */
void *mem_grow(void *p, size_t n); /* realloc */
char *mem_dup(struct slice s);     /* NUL-terminated copy */

/* Calls what is there, if anything, into the caches, to be used shortly. */
static inline void mem_prefetch(const void *p, size_t size)
{
    for (size_t at = 0; p && at < size; at += 64)
        __builtin_prefetch((const uint8_t *)p + at);
}

/*
 * Makes room for one more element in a heap array: *cap doubles up to what is needed.
 *     GROW(a->item, a->count, a->cap);
 *     a->item[a->count++] = x;
 */
#define GROW(ptr, count, cap)                                                                      \
    do {                                                                                           \
        if ((count) == (cap))                                                                      \
            (ptr) = mem_double((ptr), &(cap), sizeof(*(ptr)));                                     \
    } while (0)
void *mem_double(void *p, size_t *cap, size_t size);

/* Objects that live and die together. Sanitizer builds make every object a block of its own. */
struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);
void arena_freep(struct arena **a);
/* Everything in it is gone, the memory stays for reuse. */
void arena_clear(struct arena *a);
void *arena_alloc(struct arena *a, size_t n); /* zeroed, aligned for anything */
struct slice arena_copy(struct arena *a, struct slice s);
char *arena_str(struct arena *a, struct slice s); /* NUL-terminated */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list args) PRINTF_LIKE(2, 0);
size_t arena_bytes(const struct arena *a);

/* A growable run of bytes with a ceiling. */
struct buf {
    uint8_t *ptr;
    size_t len;
    size_t cap;
    size_t max; /* never longer than this */
};
void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
/* False, and nothing added, when the ceiling would be passed. */
MUST_CHECK bool buf_add(struct buf *b, struct slice s);
void buf_drop(struct buf *b, size_t n); /* forget the first n bytes */
static inline struct slice buf_slice(const struct buf *b)
{
    return (struct slice){ b->ptr, b->len };
}

/* A 64-bit hash (XXH3) of bytes; the same on every machine. */
uint64_t hash_bytes(struct slice s);
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xff51afd7ed558ccd);
    return x ^ (x >> 32);
}

/* "2026-11-30T16:05:28.696382000Z" */
#define TIME_TEXT 88
const char *time_text(int64_t ns, char buf[static TIME_TEXT]);
/* RFC 3339 with 0 to 9 (more are cut) fraction digits, Z or an offset. */
MUST_CHECK bool time_parse(struct slice s, int64_t *ret);

#endif
