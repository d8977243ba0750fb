/*
 * lex.h - JSON tokens (RFC 8259), checked to the letter, each with a hash of what it means. For
 * rpc.c.
 *
 *     struct lex l;
 *     lex_init(&l, text);
 *     if (!lex_scalar(&l, &v))   <- l.p stands on the first byte that is wrong
 *
 * Hashes are the same on every machine: of a string's unescaped value ("\u0041" is "A"), of a
 * number's token, of the type. Texts are hashed by XXH3, short ones by lex_pair.
 */
#ifndef LEX_H
#define LEX_H

#include "base.h"

enum lex_type {
    LEX_NULL,
    LEX_FALSE,
    LEX_TRUE,
    LEX_INT,  /* a number without fraction and exponent */
    LEX_REAL, /* any other number */
    LEX_STRING,
    LEX_ARRAY, /* containers are put together by the caller */
    LEX_OBJECT,
};

struct lex_value {
    enum lex_type type;
    struct slice raw; /* as written; strings with their quotes */
    /* Strings only: the unescaped value, until the next token. A lone surrogate is there in three
     * bytes, as UTF-8 would have it. ptr NULL: has escapes and is longer than LEX_TEXT. */
    struct slice plain;
    uint64_t hash;
};

#define LEX_TEXT 4096

struct lex {
    const uint8_t *p; /* the next byte */
    const uint8_t *end;
    uint8_t text[LEX_TEXT]; /* room to unescape a string, piece by piece */
};

static inline void lex_init(struct lex *l, struct slice text)
{
    l->p = text.ptr;
    l->end = text.ptr + text.len;
}

/* The next byte; 0, which starts no token, at the end. */
static inline uint8_t lex_peek(const struct lex *l)
{
    return l->p < l->end ? *l->p : 0;
}

static inline void lex_space(struct lex *l)
{
    while (l->p < l->end && *l->p <= ' ' &&
           (*l->p == ' ' || *l->p == '\n' || *l->p == '\r' || *l->p == '\t'))
        l->p++;
}

/* True, and taken, when c comes next. */
static inline bool lex_is(struct lex *l, uint8_t c)
{
    if (l->p == l->end || *l->p != c)
        return false;
    l->p++;
    return true;
}

/* A string, number, true, false or null. */
MUST_CHECK bool lex_scalar(struct lex *l, struct lex_value *ret);
/* A string, at its opening quote. */
MUST_CHECK bool lex_string(struct lex *l, struct lex_value *ret);

/* One hash of an ordered pair: the two halves of a product, as in wyhash. The pair itself goes in
 * too, in case that a factor is 0. */
static inline uint64_t lex_pair(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 x = a ^ UINT64_C(0x9e3779b185ebca87);

    x *= b ^ UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint64_t)x ^ (uint64_t)(x >> 64) ^ a ^ (b << 32 | b >> 32);
}

static inline uint64_t lex_typed(enum lex_type type, uint64_t hash)
{
    return lex_pair(hash, (uint64_t)type + 1);
}

/* The hash of a string with this unescaped value, as in lex_value. */
uint64_t lex_string_hash(struct slice plain);

#endif
