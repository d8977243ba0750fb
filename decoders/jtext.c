/* jtext.c - see jtext.h. */
#include "jtext.h"

static void skip(struct slice *s, size_t n)
{
    s->ptr += n;
    s->len -= n;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blank(struct slice *s)
{
    while (s->len > 0 && is_blank(s->ptr[0]))
        skip(s, 1);
}

uint8_t jtext_first(struct slice s)
{
    skip_blank(&s);
    return s.len > 0 ? s.ptr[0] : 0;
}

/* The length of the string at the front with both quotes; 0: it does not end. */
static size_t string_length(struct slice s)
{
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == '"')
            return i + 1;
        if (s.ptr[i] == '\\')
            i++;
    }
    return 0;
}

static size_t nested_length(struct slice s)
{
    size_t depth = 0;
    size_t i = 0;

    while (i < s.len) {
        uint8_t c = s.ptr[i];
        size_t step = c == '"' ? string_length((struct slice){ s.ptr + i, s.len - i }) : 1;
        if (step == 0)
            return 0;
        i += step;
        if (c == '{' || c == '[')
            depth++;
        if ((c == '}' || c == ']') && --depth == 0)
            return i;
    }
    return 0;
}

static size_t scalar_length(struct slice s)
{
    size_t i = 0;

    while (i < s.len && !is_blank(s.ptr[i]) && s.ptr[i] != '\0' && !strchr(",:]}[{\"", s.ptr[i]))
        i++;
    return i;
}

bool jtext_value(struct slice *s, struct slice *ret)
{
    size_t n;

    skip_blank(s);
    if (s->len == 0)
        return false;
    if (s->ptr[0] == '"')
        n = string_length(*s);
    else if (s->ptr[0] == '{' || s->ptr[0] == '[')
        n = nested_length(*s);
    else
        n = scalar_length(*s);
    return n > 0 && slice_take(s, n, ret);
}

bool jtext_enter(struct slice value, struct jtext_walk *ret)
{
    skip_blank(&value);
    if (value.len == 0 || (value.ptr[0] != '{' && value.ptr[0] != '['))
        return false;
    skip(&value, 1);
    ret->rest = value;
    return true;
}

bool jtext_element(struct jtext_walk *w, struct slice *value)
{
    if (jtext_first(w->rest) == ',') {
        skip_blank(&w->rest);
        skip(&w->rest, 1);
    }
    return jtext_value(&w->rest, value);
}

bool jtext_key(struct jtext_walk *w, struct slice *key)
{
    struct slice quoted;

    if (!jtext_element(w, &quoted) || quoted.ptr[0] != '"' || jtext_first(w->rest) != ':')
        return false;
    *key = jtext_inside(quoted);
    skip_blank(&w->rest);
    skip(&w->rest, 1);
    return true;
}

bool jtext_member(struct jtext_walk *w, struct slice *key, struct slice *value)
{
    return jtext_key(w, key) && jtext_value(&w->rest, value);
}

struct slice jtext_find(struct slice object, const char *name)
{
    struct slice found = { NULL, 0 };
    struct slice key;
    struct slice value;
    struct jtext_walk w;

    if (jtext_first(object) != '{' || !jtext_enter(object, &w))
        return found;
    while (jtext_member(&w, &key, &value)) {
        if (slice_eq(key, slice_str(name)))
            found = value;
    }
    return found;
}

struct slice jtext_inside(struct slice value)
{
    if (value.len < 2 || value.ptr[0] != '"' || value.ptr[value.len - 1] != '"')
        return (struct slice){ NULL, 0 };
    return (struct slice){ value.ptr + 1, value.len - 2 };
}

static bool hex4(struct slice s, uint32_t *ret)
{
    uint32_t v = 0;

    if (s.len < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        int d = byte_hex(s.ptr[i]);
        if (d < 0)
            return false;
        v = v << 4 | (uint32_t)d;
    }
    *ret = v;
    return true;
}

/* The code point of \uXXXX with raw just behind the u; takes a second half with it. */
static uint32_t code_point(struct slice *raw)
{
    uint32_t hi;
    uint32_t lo;

    if (!hex4(*raw, &hi))
        return 0xfffd;
    skip(raw, 4);
    if (hi < 0xd800 || hi > 0xdfff)
        return hi;
    if (hi > 0xdbff || raw->len < 6 || raw->ptr[0] != '\\' || raw->ptr[1] != 'u' ||
        !hex4((struct slice){ raw->ptr + 2, raw->len - 2 }, &lo) || lo < 0xdc00 || lo > 0xdfff)
        return 0xfffd;
    skip(raw, 6);
    return 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
}

static size_t utf8_encode(uint32_t c, uint8_t out[static 4])
{
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (uint8_t)(lead[n] | c);
    return n;
}

/* The escape behind a backslash, off the front of raw. */
static size_t escape(struct slice *raw, uint8_t out[static 4])
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    uint8_t c = raw->ptr[0];

    skip(raw, 1);
    if (c == 'u')
        return utf8_encode(code_point(raw), out);
    const char *at = c ? strchr(from, c) : NULL;
    out[0] = at ? (uint8_t)to[at - from] : c;
    return 1;
}

struct slice jtext_unescape(struct slice raw, struct buf *scratch)
{
    struct slice whole = raw;
    uint8_t out[4];

    if (raw.len == 0 || !memchr(raw.ptr, '\\', raw.len))
        return raw;
    buf_drop(scratch, scratch->len);
    while (raw.len > 0) {
        const uint8_t *slash = memchr(raw.ptr, '\\', raw.len);
        size_t plain = slash ? (size_t)(slash - raw.ptr) : raw.len;
        if (!buf_add(scratch, (struct slice){ raw.ptr, plain }))
            return whole;
        skip(&raw, plain);
        if (raw.len < 2)
            break;
        skip(&raw, 1);
        size_t n = escape(&raw, out);
        if (!buf_add(scratch, (struct slice){ out, n }))
            return whole;
    }
    return buf_slice(scratch);
}
