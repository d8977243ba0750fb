/* plain.c - see plain.h. */
#include "plain.h"

#include "bytes.h"

/* C1 controls, and what changes the order of writing (Unicode 9, UAX 9): U+200E, U+200F,
 * U+2028 to U+202E, U+2066 to U+2069. */
static bool steers(const uint8_t *p, size_t n)
{
    if (n == 2)
        return p[0] == 0xc2 && p[1] < 0xa0;
    if (n != 3 || p[0] != 0xe2)
        return false;
    if (p[1] == 0x80)
        return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae);
    return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9;
}

size_t plain_char(struct slice s)
{
    size_t n = utf8_char(s.ptr, s.ptr + s.len);

    if (n == 0 || (n == 1 && (s.ptr[0] < ' ' || s.ptr[0] == 0x7f)) || steers(s.ptr, n))
        return 0;
    return n;
}

bool plain_add(struct buf *b, struct slice s, size_t max)
{
    static const char hex[] = "0123456789abcdef";
    size_t left = max;

    while (s.len > 0) {
        size_t n = plain_char(s);
        size_t take = n ? n : 1;
        uint8_t escaped[4] = { '\\', 'x', (uint8_t)hex[s.ptr[0] >> 4],
                               (uint8_t)hex[s.ptr[0] & 15] };

        if (take > left)
            return buf_add(b, SLICE_LIT("..."));
        if (!buf_add(b,
                     n ? (struct slice){ s.ptr, n } : (struct slice){ escaped, sizeof(escaped) }))
            return false;
        s.ptr += take;
        s.len -= take;
        left -= take;
    }
    return true;
}

char *plain_text(struct arena *a, struct slice s, size_t max)
{
    struct buf b;
    char *text;

    buf_init(&b, SIZE_MAX);
    (void)!plain_add(&b, s, max);
    text = arena_str(a, buf_slice(&b));
    buf_release(&b);
    return text;
}
