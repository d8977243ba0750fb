/*
 * lex.h - JSON tokens (RFC 8259), checked to the letter, each with a hash of what it means. For
 * rpc.c.
 *
 *     struct lex l;
 *     p = lex_begin(&l, text);
 *     p = lex_string(&l, p, &v);   <- the place behind the token; NULL: l.wrong is the first byte
 *                                     that is wrong
 *
 * Hashes are the same on every machine: of a string's value ("\u0041" is "A"), of a number's token,
 * of the type. Texts are hashed by XXH3, short ones by lex_pair.
 *
 * A string's value is hashed, and compared, in its canonical text: escaped is only what cannot
 * stand for itself, by a short escape if there is one, else as \u001f. Most strings are written
 * like that.
 */
#ifndef LEX_H
#define LEX_H

#include "bytes.h"

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
    /* Strings only: the canonical text, until the next token. A lone surrogate is there in three
     * bytes, as UTF-8 would have it. ptr NULL: was rewritten and is longer than LEX_TEXT. */
    struct slice canon;
    bool hashed; /* else lex_hash() is still to be called; strings only */
    uint64_t hash;
};

#define LEX_TEXT 4096

struct lex {
    const uint8_t *end;
    const uint8_t *wrong;
    uint8_t text[LEX_TEXT]; /* room to rewrite a string, piece by piece */
};

static inline const uint8_t *lex_begin(struct lex *l, struct slice text)
{
    l->end = text.ptr + text.len;
    l->wrong = NULL;
    return text.ptr;
}

/* The byte at p; 0, which starts no token, at the end. */
static inline uint8_t lex_byte(const struct lex *l, const uint8_t *p)
{
    return p < l->end ? *p : 0;
}

/* The place behind white space. */
static inline const uint8_t *lex_space(const struct lex *l, const uint8_t *p)
{
    while (p < l->end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* The byte behind white space, which it steps over; 0 at the end. */
static inline uint8_t lex_next(const struct lex *l, const uint8_t **p)
{
    uint8_t c = lex_byte(l, *p);

    if (c > ' ')
        return c;
    *p = lex_space(l, *p);
    return lex_byte(l, *p);
}

/* Of a number, true, false or null. */
MUST_CHECK const uint8_t *lex_word(struct lex *l, const uint8_t *p, struct lex_value *ret);
/* Of a string at p, its opening quote, that is not ended at `stop`, where something else than plain
 * ASCII stands: see lex_string. */
MUST_CHECK const uint8_t *lex_rich(struct lex *l, const uint8_t *p, const uint8_t *stop,
                                   struct lex_value *ret);

/* The hash of a string, as in lex_value, with this value; with this canonical text. */
uint64_t lex_string_hash(struct slice plain);
uint64_t lex_canon_hash(struct slice canon);

static inline void lex_hash(struct lex_value *v)
{
    if (!v->hashed)
        v->hash = lex_canon_hash(v->canon);
    v->hashed = true;
}

/* Of a string, not hashed yet. */
MUST_CHECK static inline const uint8_t *lex_string(struct lex *l, const uint8_t *p,
                                                   struct lex_value *ret)
{
    if (lex_byte(l, p) != '"') {
        l->wrong = p;
        return NULL;
    }
    const uint8_t *stop = bytes_not_plain(p + 1, l->end);
    if (lex_byte(l, stop) != '"')
        return lex_rich(l, p, stop, ret);
    ret->type = LEX_STRING;
    ret->raw = (struct slice){ p, (size_t)(stop + 1 - p) };
    ret->canon = (struct slice){ p + 1, (size_t)(stop - p - 1) };
    ret->hashed = false;
    return stop + 1;
}

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

#endif
