/*
 * bytes.h - fast searches over text, and the UTF-8 check. Each search takes a run of bytes as two
 * pointers and returns where it stopped: end when nothing was found.
 *
 * One loop for all: step over words in which nothing of interest stands, then look byte by byte.
 * With SSE2 a word is 16 bytes (four at a time where runs are long), elsewhere 8; both give the
 * same results.
 */
#ifndef BYTES_H
#define BYTES_H

#include "base.h"

#if defined(__SSE2__) && !defined(BYTES_PORTABLE)
#include <emmintrin.h>
#define BYTES_SSE2
#endif

#ifdef BYTES_SSE2
static inline __m128i bytes_load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* The bytes of w that are one of two, as 0xff. */
static inline __m128i bytes_either(__m128i w, __m128i a, __m128i b)
{
    return _mm_or_si128(_mm_cmpeq_epi8(w, a), _mm_cmpeq_epi8(w, b));
}

/* The bytes that bytes_not_plain() stops at, as 0xff. */
static inline __m128i bytes_bent(__m128i w)
{
    __m128i bent = bytes_either(w, _mm_set1_epi8('"'), _mm_set1_epi8('\\'));

    /* signed: what is above 127 counts as negative */
    return _mm_or_si128(bent, _mm_cmplt_epi8(w, _mm_set1_epi8(' ')));
}

/* A bit for each of them. */
static inline unsigned bytes_not_plain16(__m128i w)
{
    return (unsigned)_mm_movemask_epi8(bytes_bent(w));
}
#else
#define BYTES_EACH(x) (UINT64_C(0x0101010101010101) * (x))

static inline uint64_t bytes_load(const uint8_t *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
    return w;
}

/* Not 0 exactly when a byte of w is below n, for n up to 128. (Which byte it is it cannot tell.) */
static inline uint64_t bytes_below(uint64_t w, uint8_t n)
{
    return (w - BYTES_EACH(n)) & ~w & BYTES_EACH(0x80);
}

static inline uint64_t bytes_equal(uint64_t w, uint8_t c)
{
    return bytes_below(w ^ BYTES_EACH(c), 1);
}
#endif

#ifdef BYTES_SSE2
/* A bit for each byte that is 0xff, the first byte's lowest. */
static inline uint64_t bytes_mask64(__m128i a, __m128i b, __m128i c, __m128i d)
{
    uint64_t low = (uint32_t)_mm_movemask_epi8(a) | (uint32_t)_mm_movemask_epi8(b) << 16;
    uint64_t high = (uint32_t)_mm_movemask_epi8(c) | (uint32_t)_mm_movemask_epi8(d) << 16;

    return low | high << 32;
}
#endif

/* The first CR or LF. */
static inline const uint8_t *bytes_line_end(const uint8_t *p, const uint8_t *end)
{
#ifdef BYTES_SSE2
    const __m128i lf = _mm_set1_epi8('\n');
    const __m128i cr = _mm_set1_epi8('\r');

    for (; end - p >= 64; p += 64) {
        __m128i a = bytes_either(bytes_load16(p), lf, cr);
        __m128i b = bytes_either(bytes_load16(p + 16), lf, cr);
        __m128i c = bytes_either(bytes_load16(p + 32), lf, cr);
        __m128i d = bytes_either(bytes_load16(p + 48), lf, cr);
        if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))))
            return p + __builtin_ctzll(bytes_mask64(a, b, c, d));
    }
    for (; end - p >= 16; p += 16) {
        int mask = _mm_movemask_epi8(bytes_either(bytes_load16(p), lf, cr));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#else
    for (; end - p >= 8; p += 8) {
        uint64_t w = bytes_load(p);
        if (bytes_equal(w, '\n') | bytes_equal(w, '\r'))
            break;
    }
#endif
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p;
}

/* The first byte that is not ASCII. */
static inline const uint8_t *bytes_non_ascii(const uint8_t *p, const uint8_t *end)
{
#ifdef BYTES_SSE2
    const uint8_t *begin = p;

    for (; end - p >= 64; p += 64) {
        __m128i ab = _mm_or_si128(bytes_load16(p), bytes_load16(p + 16));
        __m128i cd = _mm_or_si128(bytes_load16(p + 32), bytes_load16(p + 48));
        if (_mm_movemask_epi8(_mm_or_si128(ab, cd)))
            break;
    }
    for (; end - p >= 16; p += 16) {
        int mask = _mm_movemask_epi8(bytes_load16(p));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
    if (end - begin >= 16) { /* the last 16 bytes, some of them again */
        int mask = _mm_movemask_epi8(bytes_load16(end - 16));
        return mask ? end - 16 + __builtin_ctz((unsigned)mask) : end;
    }
#else
    for (; end - p >= 8; p += 8) {
        if (bytes_load(p) & BYTES_EACH(0x80))
            break;
    }
#endif
    while (p < end && *p < 0x80)
        p++;
    return p;
}

static inline bool byte_is_plain(uint8_t c)
{
    return c >= ' ' && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte that ends or bends a JSON string: a quote, a backslash, a control character, or
 * the start of a character outside ASCII. */
static inline const uint8_t *bytes_not_plain(const uint8_t *p, const uint8_t *end)
{
#ifdef BYTES_SSE2
    for (int i = 0; i < 2 && end - p >= 16; i++, p += 16) { /* names and ids are short */
        unsigned mask = bytes_not_plain16(bytes_load16(p));
        if (mask)
            return p + __builtin_ctz(mask);
    }
    for (; end - p >= 64; p += 64) {
        __m128i a = bytes_bent(bytes_load16(p));
        __m128i b = bytes_bent(bytes_load16(p + 16));
        __m128i c = bytes_bent(bytes_load16(p + 32));
        __m128i d = bytes_bent(bytes_load16(p + 48));
        if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))))
            return p + __builtin_ctzll(bytes_mask64(a, b, c, d));
    }
    for (; end - p >= 16; p += 16) {
        unsigned mask = bytes_not_plain16(bytes_load16(p));
        if (mask)
            return p + __builtin_ctz(mask);
    }
#else
    for (; end - p >= 8; p += 8) {
        uint64_t w = bytes_load(p);
        if ((w & BYTES_EACH(0x80)) | bytes_below(w, ' ') | bytes_equal(w, '"') |
            bytes_equal(w, '\\'))
            break;
    }
#endif
    while (p < end && byte_is_plain(*p))
        p++;
    return p;
}

static inline bool bytes_tail(const uint8_t *p, size_t n)
{
    for (size_t i = 1; i <= n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return false;
    }
    return true;
}

/* The length of the UTF-8 character at p (RFC 3629: no surrogates, no overlong forms, up to
 * U+10FFFF); 0: it is none, or cut by end. */
static inline size_t utf8_char(const uint8_t *p, const uint8_t *end)
{
    if (p >= end)
        return 0;
    if (p[0] < 0x80)
        return 1;

    size_t more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    if (p[0] < 0xc2 || p[0] > 0xf4 || (size_t)(end - p) <= more || !bytes_tail(p, more))
        return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return more + 1;
}

static inline bool utf8_valid(struct slice s)
{
    const uint8_t *p = s.ptr;
    const uint8_t *end = s.ptr + s.len;

    if (s.len == 0)
        return true;
    while ((p = bytes_non_ascii(p, end)) < end) {
        size_t n = utf8_char(p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

#endif
