/* har_text.c - see har_text.h. */
#include "har_text.h"

#include <stdlib.h>

size_t har_utf8_len(struct slice s)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

    if (s.len == 0)
        return 0;
    uint8_t lead = s.ptr[0];
    size_t n = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (n == 1)
        return 1;
    if (lead < 0xc2 || lead > 0xf4 || s.len < n)
        return 0;
    uint32_t c = lead & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s.ptr[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s.ptr[i] & 0x3fU);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : n;
}

/* ---- what jansson would refuse ---- */

/* The code unit of a \uXXXX escape at the front; -1: there is none. */
static int32_t unit_of(struct slice s)
{
    int32_t v = 0;

    if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        int d = byte_hex(s.ptr[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* Bytes of the escape at the front of s, a surrogate pair being one; *lone: a half without the
 * other. */
static size_t escape_len(struct slice s, bool *lone)
{
    int32_t u = unit_of(s);

    if (u < 0)
        return s.len < 2 ? s.len : 2;
    if (u < 0xd800 || u > 0xdfff)
        return 6;
    int32_t next = unit_of((struct slice){ s.ptr + 6, s.len - 6 });
    if (u < 0xdc00 && next >= 0xdc00 && next <= 0xdfff)
        return 12;
    *lone = true;
    return 6;
}

struct cleaner {
    struct slice in;
    size_t done; /* bytes of `in` already in scratch */
    struct buf *scratch;
    size_t repaired;
    bool full;
};

static void replace(struct cleaner *c, size_t at, size_t n, struct slice by)
{
    struct slice before = { c->in.ptr + c->done, at - c->done };

    c->full |= !buf_add(c->scratch, before) || !buf_add(c->scratch, by);
    c->done = at + n;
    c->repaired++;
}

/* One character of a string, at `at`; returns its length. */
static size_t clean_char(struct cleaner *c, size_t at)
{
    struct slice rest = { c->in.ptr + at, c->in.len - at };
    bool lone = false;

    if (rest.ptr[0] == '\\') {
        size_t n = escape_len(rest, &lone);
        if (lone)
            replace(c, at, n, SLICE_LIT("\\ufffd"));
        return n;
    }
    size_t n = har_utf8_len(rest);
    if (n > 0)
        return n;
    replace(c, at, 1, SLICE_LIT("\xef\xbf\xbd"));
    return 1;
}

bool har_text_clean(struct slice in, size_t max_values, struct buf *scratch,
                    struct har_cleaned *ret)
{
    struct cleaner c = { .in = in, .scratch = scratch };
    bool in_string = false;
    size_t values = 0;
    size_t i = 0;

    while (i < in.len && !c.full) {
        uint8_t b = in.ptr[i];
        if (b == '"')
            in_string = !in_string;
        else if (!in_string)
            values += b == ',' || b == '[' || b == '{';
        if (in_string && (b == '\\' || b >= 0x80))
            i += clean_char(&c, i);
        else
            i++;
    }
    if (c.full || values > max_values)
        return false;
    *ret = (struct har_cleaned){ in, c.repaired };
    if (c.repaired == 0)
        return true;
    if (!buf_add(scratch, (struct slice){ in.ptr + c.done, in.len - c.done }))
        return false;
    ret->text = buf_slice(scratch);
    return true;
}

/* ---- base64 (RFC 4648) ---- */

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool har_base64(struct slice in, uint8_t **ret, size_t *ret_len)
{
    uint8_t *out = mem_alloc(in.len / 4 * 3 + 3);
    size_t len = 0;
    size_t digits = 0;
    size_t pad = 0;
    uint32_t acc = 0;
    bool wrong = false;

    for (size_t i = 0; i < in.len && !wrong; i++) {
        uint8_t c = in.ptr[i];
        int d = base64_digit(c);
        if (c == '\r' || c == '\n')
            continue;
        pad += c == '=';
        wrong = d < 0 ? c != '=' : pad > 0;
        if (d < 0 || wrong)
            continue;
        acc = acc << 6 | (uint32_t)d;
        if (digits++ % 4 > 0)
            out[len++] = (uint8_t)(acc >> (6 - 2 * ((digits - 1) % 4)));
    }
    size_t over = digits % 4;
    if (wrong || over == 1 || pad > 2 || (pad > 0 && (over + pad) % 4 != 0)) {
        free(out);
        return false;
    }
    *ret = out;
    *ret_len = len;
    return true;
}

/* ---- windows-1252 read as if it were the text ---- */

/* Code points of the bytes 0x80 to 0x9f (WHATWG index windows-1252). */
static const uint16_t cp1252[32] = {
    0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178,
};

/* The byte of a character; -1: it has none. */
static int cp1252_byte(uint32_t c)
{
    if (c < 0x80 || (c >= 0xa0 && c <= 0xff))
        return (int)c;
    for (size_t i = 0; i < ARRAY_LEN(cp1252); i++) {
        if (cp1252[i] == c)
            return (int)(0x80 + i);
    }
    return -1;
}

static uint32_t code_point(struct slice s, size_t n)
{
    uint32_t c = n == 1 ? s.ptr[0] : s.ptr[0] & (0x7fU >> n);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s.ptr[i] & 0x3fU);
    return c;
}

static bool is_utf8(struct slice s)
{
    struct slice c;

    while (s.len > 0) {
        if (!slice_take(&s, har_utf8_len(s), &c) || c.len == 0)
            return false;
    }
    return true;
}

bool har_unmojibake(struct slice in, uint8_t **ret, size_t *ret_len)
{
    uint8_t *out = mem_alloc(in.len);
    size_t len = 0;
    bool beyond_ascii = false;
    bool wrong = false;

    while (in.len > 0 && !wrong) {
        size_t n = har_utf8_len(in);
        int b = n > 0 ? cp1252_byte(code_point(in, n)) : -1;
        wrong = b < 0;
        if (wrong)
            break;
        beyond_ascii |= b >= 0x80;
        out[len++] = (uint8_t)b;
        in.ptr += n;
        in.len -= n;
    }
    if (wrong || !beyond_ascii || !is_utf8((struct slice){ out, len })) {
        free(out);
        return false;
    }
    *ret = out;
    *ret_len = len;
    return true;
}
