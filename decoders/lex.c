/* lex.c - see lex.h. */
#include "lex.h"

#include <endian.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * A text is hashed in blocks of LEX_TEXT bytes, so that a string can be hashed while it is
 * rewritten block by block.
 */
static uint64_t block_hash(const uint8_t *p, size_t n)
{
    return XXH3_64bits(p, n);
}

static uint64_t long_hash(struct slice s)
{
    uint64_t hash = 0;
    struct slice block;

    while (slice_take(&s, LEX_TEXT, &block))
        hash = lex_pair(hash, block_hash(block.ptr, block.len));
    return lex_pair(hash, block_hash(s.ptr, s.len));
}

static uint64_t load_le(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return le64toh(v);
}

/* Names, ids and numbers: too short for a call of a hash of everything to pay. */
#define SHORT_TEXT 16
static uint64_t short_hash(const uint8_t *p, size_t n)
{
    uint64_t tag = (uint64_t)n << 56;

    if (n >= 8)
        return lex_pair(load_le(p, 8) ^ tag, load_le(p + n - 8, 8));
    if (n >= 4)
        return lex_pair(load_le(p, 4) ^ tag, load_le(p + n - 4, 4));
    if (n > 0)
        tag ^= p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    return lex_pair(tag, 0);
}

static inline uint64_t text_hash(struct slice s)
{
    if (s.len <= SHORT_TEXT)
        return short_hash(s.ptr, s.len);
    return s.len < LEX_TEXT ? block_hash(s.ptr, s.len) : long_hash(s);
}

uint64_t lex_canon_hash(struct slice canon)
{
    return lex_typed(LEX_STRING, text_hash(canon.ptr ? canon : SLICE_LIT("")));
}

/* Where the reading of a token stands. */
struct reader {
    const uint8_t *p;
    const uint8_t *end;
    uint8_t *text; /* LEX_TEXT bytes */
};

static uint8_t peek(const struct reader *l)
{
    return l->p < l->end ? *l->p : 0;
}

/* True, and taken, when c comes next. */
static bool is_next(struct reader *l, uint8_t c)
{
    if (l->p == l->end || *l->p != c)
        return false;
    l->p++;
    return true;
}

/* A string's canonical text, so far. */
struct rewritten {
    struct reader *l;
    size_t used;    /* of l->text */
    bool flushed;   /* blocks went before it */
    uint64_t hash;  /* of those */
    uint32_t surro; /* a high surrogate that waits for its low one, or 0 */
};

static void out_add(struct rewritten *out, const uint8_t *p, size_t n)
{
    while (n >= LEX_TEXT - out->used) {
        size_t room = LEX_TEXT - out->used;
        memcpy(out->l->text + out->used, p, room);
        out->hash = lex_pair(out->hash, block_hash(out->l->text, LEX_TEXT));
        out->flushed = true;
        out->used = 0;
        p += room;
        n -= room;
    }
    memcpy(out->l->text + out->used, p, n);
    out->used += n;
}

/* The letter of the short escape that stands for a character; 0: there is none. */
static uint8_t short_escape(uint32_t code)
{
    switch (code) {
    case '"':
    case '\\': return (uint8_t)code;
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

static void out_code(struct rewritten *out, uint32_t code)
{
    uint8_t letter = short_escape(code);
    uint8_t b[8] = { '\\', letter };
    size_t n;

    if (letter) {
        n = 2;
    } else if (code < 0x20) {
        n = (size_t)snprintf((char *)b, sizeof(b), "\\u%04x", (unsigned)code);
    } else if (code < 0x80) {
        b[0] = (uint8_t)code;
        n = 1;
    } else if (code < 0x800) {
        b[0] = (uint8_t)(0xc0 | code >> 6);
        n = 2;
    } else if (code < 0x10000) {
        b[0] = (uint8_t)(0xe0 | code >> 12);
        n = 3;
    } else {
        b[0] = (uint8_t)(0xf0 | code >> 18);
        n = 4;
    }
    for (size_t i = 1; code >= 0x80 && i < n; i++)
        b[i] = (uint8_t)(0x80 | (code >> 6 * (n - 1 - i) & 0x3f));
    out_add(out, b, n);
}

/* A high surrogate that no low one followed counts as it is. */
static void out_lone(struct rewritten *out)
{
    if (out->surro)
        out_code(out, out->surro);
    out->surro = 0;
}

/* Four hexadecimal digits, at the `u`. */
static bool take_hex(struct reader *l, uint32_t *ret)
{
    uint32_t v = 0;

    l->p++;
    for (int i = 0; i < 4; i++) {
        int d = byte_hex(peek(l));
        if (d < 0)
            return false;
        v = v << 4 | (uint32_t)d;
        l->p++;
    }
    *ret = v;
    return true;
}

static bool take_unicode(struct rewritten *out)
{
    uint32_t code;

    if (!take_hex(out->l, &code))
        return false;
    if (out->surro && code >= 0xdc00 && code <= 0xdfff) {
        out_code(out, 0x10000 + ((out->surro - 0xd800) << 10) + (code - 0xdc00));
        out->surro = 0;
        return true;
    }
    out_lone(out);
    if (code >= 0xd800 && code <= 0xdbff)
        out->surro = code;
    else
        out_code(out, code);
    return true;
}

/* What a character stands for behind a backslash; 0: nothing, or more than one byte. */
static const uint8_t simple[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* An escape, at its backslash. */
static bool take_escape(struct rewritten *out)
{
    uint8_t c;

    out->l->p++;
    c = peek(out->l);
    if (c == 'u')
        return take_unicode(out);
    if (!simple[c])
        return false;
    out_lone(out);
    out_code(out, simple[c]);
    out->l->p++;
    return true;
}

/* Steps over what stands for itself: ASCII and whole UTF-8 characters. False on bad UTF-8. */
static bool skip_plain(struct reader *l)
{
    for (;;) {
        l->p = bytes_not_plain(l->p, l->end);
        if (peek(l) < 0x80)
            return true;
        while (peek(l) >= 0x80) {
            size_t n = utf8_char(l->p, l->end);
            if (n == 0)
                return false;
            l->p += n;
        }
    }
}

/* All of it is there: its hash, unless it is short enough for the caller to see it first. */
static void out_end(struct rewritten *out, struct lex_value *ret)
{
    out_lone(out);
    ret->canon = (struct slice){ out->l->text, out->used };
    ret->hashed = out->flushed;
    if (!out->flushed)
        return;
    ret->hash = lex_typed(LEX_STRING, lex_pair(out->hash, block_hash(out->l->text, out->used)));
    ret->canon = (struct slice){ 0 };
}

/* The rest of a string from an escape on that is not canonical; begin is just after its opening
 * quote. */
static bool string_rewritten(struct reader *l, const uint8_t *begin, struct lex_value *ret)
{
    struct rewritten out = { .l = l };

    out_add(&out, begin, (size_t)(l->p - begin));
    while (peek(l) == '\\') {
        if (!take_escape(&out))
            return false;
        const uint8_t *from = l->p;
        if (!skip_plain(l))
            return false;
        if (l->p == from)
            continue;
        out_lone(&out);
        out_add(&out, from, (size_t)(l->p - from));
    }
    out_end(&out, ret);
    return true;
}

/* At a backslash: a short escape, of a character that cannot stand for itself. */
static bool escape_is_canonical(const struct reader *l)
{
    return l->end - l->p >= 2 && l->p[1] != '/' && simple[l->p[1]];
}

/* Most strings are canonical as they are written. */
static bool string_rest(struct reader *l, const uint8_t *begin, struct lex_value *ret)
{
    for (;;) {
        if (!skip_plain(l))
            return false;
        if (peek(l) != '\\')
            break;
        if (!escape_is_canonical(l))
            return string_rewritten(l, begin, ret) && is_next(l, '"');
        l->p += 2;
    }
    ret->canon = (struct slice){ begin, (size_t)(l->p - begin) };
    ret->hashed = false;
    return is_next(l, '"'); /* else the end of the text, or a control character */
}

uint64_t lex_string_hash(struct slice plain)
{
    uint8_t text[LEX_TEXT];
    struct reader l = { .text = text };
    struct rewritten out = { .l = &l };
    struct lex_value v;
    size_t i = 0;

    while (i < plain.len && plain.ptr[i] >= 0x20 && !short_escape(plain.ptr[i]))
        i++;
    if (i == plain.len)
        return lex_canon_hash(plain);
    for (i = 0; i < plain.len; i++) {
        if (plain.ptr[i] < 0x80)
            out_code(&out, plain.ptr[i]);
        else
            out_add(&out, &plain.ptr[i], 1);
    }
    out_end(&out, &v);
    lex_hash(&v);
    return v.hash;
}

const uint8_t *lex_rich(struct lex *l, const uint8_t *p, const uint8_t *stop, struct lex_value *ret)
{
    struct reader r = { stop, l->end, l->text };

    if (!string_rest(&r, p + 1, ret)) {
        l->wrong = r.p;
        return NULL;
    }
    ret->type = LEX_STRING;
    ret->raw = (struct slice){ p, (size_t)(r.p - p) };
    return r.p;
}

static bool take_digits(struct reader *l)
{
    if (!byte_is_digit(peek(l)))
        return false;
    while (byte_is_digit(peek(l)))
        l->p++;
    return true;
}

static bool take_exponent(struct reader *l)
{
    if (!is_next(l, 'e') && !is_next(l, 'E'))
        return true; /* there is none */
    if (!is_next(l, '+') && !is_next(l, '-') && !byte_is_digit(peek(l)))
        return false;
    return take_digits(l);
}

static bool take_number(struct reader *l, struct lex_value *ret)
{
    const uint8_t *begin = l->p;

    (void)is_next(l, '-');
    if (!is_next(l, '0') && !take_digits(l))
        return false;
    const uint8_t *whole = l->p;
    if (is_next(l, '.') && !take_digits(l))
        return false;
    if (!take_exponent(l))
        return false;
    ret->type = l->p == whole ? LEX_INT : LEX_REAL;
    ret->raw = (struct slice){ begin, (size_t)(l->p - begin) };
    ret->hash = lex_typed(ret->type, text_hash(ret->raw));
    return true;
}

static bool take_word(struct reader *l, const char *word, enum lex_type type, struct lex_value *ret)
{
    const uint8_t *begin = l->p;

    for (const char *c = word; *c; c++) {
        if (!is_next(l, (uint8_t)*c))
            return false;
    }
    ret->type = type;
    ret->raw = (struct slice){ begin, (size_t)(l->p - begin) };
    ret->hash = lex_typed(type, 0);
    return true;
}

static bool take_any(struct reader *r, struct lex_value *ret)
{
    switch (peek(r)) {
    case 't': return take_word(r, "true", LEX_TRUE, ret);
    case 'f': return take_word(r, "false", LEX_FALSE, ret);
    case 'n': return take_word(r, "null", LEX_NULL, ret);
    default: return take_number(r, ret);
    }
}

/* The place behind a plain number at p, such as 0 or 17, that is an integer; NULL: it is none. */
static const uint8_t *plain_integer(const struct lex *l, const uint8_t *p)
{
    const uint8_t *q = p;

    while (q < l->end && byte_is_digit(*q))
        q++;
    bool sound = q > p && (*p != '0' || q == p + 1);
    uint8_t after = lex_byte(l, q);
    return sound && after != '.' && (after | 0x20) != 'e' ? q : NULL;
}

const uint8_t *lex_word(struct lex *l, const uint8_t *p, struct lex_value *ret)
{
    struct reader r = { p, l->end, l->text };

    ret->canon = (struct slice){ 0 };
    ret->hashed = true;
    const uint8_t *stop = plain_integer(l, p);
    if (stop) {
        ret->type = LEX_INT;
        ret->raw = (struct slice){ p, (size_t)(stop - p) };
        ret->hash = lex_typed(LEX_INT, text_hash(ret->raw));
        return stop;
    }
    if (take_any(&r, ret))
        return r.p;
    l->wrong = r.p;
    return NULL;
}
