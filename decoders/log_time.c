/* log_time.c - see log_time.h. */
#include "log_time.h"

#define DATE_TIME       19 /* 2026-11-30 16:05:28 */
#define MAX_DIGITS      19 /* more do not fit uint64_t, and would be below 1 ns */
#define PREFIX_SEARCHED 64
#define TIME_WITH_ZONE  64

/* A number as digits * 10^exponent. */
struct decimal {
    uint64_t digits;
    int count; /* of significant digits */
    int exponent;
};

static void decimal_digit(struct decimal *d, uint8_t c, bool fraction)
{
    if (d->count == MAX_DIGITS) {
        d->exponent += fraction ? 0 : 1;
        return;
    }
    d->digits = d->digits * 10 + (uint64_t)(c - '0');
    d->count += d->digits > 0 ? 1 : 0;
    d->exponent -= fraction ? 1 : 0;
}

static bool decimal_exponent(struct decimal *d, struct slice s)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    uint64_t v;

    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'))
        s = (struct slice){ s.ptr + 1, s.len - 1 };
    if (!slice_u64(s, 999, &v))
        return false;
    d->exponent += negative ? -(int)v : (int)v;
    return true;
}

static bool decimal_parse(struct slice token, struct decimal *ret)
{
    struct decimal d = { 0 };
    bool fraction = false;
    size_t i = 0;

    if (token.len == 0 || token.len > 4096 || !byte_is_digit(token.ptr[0]))
        return false;
    for (; i < token.len && (byte_is_digit(token.ptr[i]) || (token.ptr[i] == '.' && !fraction));
         i++) {
        if (token.ptr[i] == '.')
            fraction = true;
        else
            decimal_digit(&d, token.ptr[i], fraction);
    }
    if (i < token.len &&
        ((token.ptr[i] | 0x20) != 'e' ||
         !decimal_exponent(&d, (struct slice){ token.ptr + i + 1, token.len - i - 1 })))
        return false;
    *ret = d;
    return true;
}

bool log_time_of_number(struct slice token, int64_t *ret)
{
    static const struct {
        int whole; /* at most so many digits before the point */
        int to_ns;
    } unit[] = { { 11, 9 }, { 14, 6 }, { 17, 3 }, { 19, 0 } };
    struct decimal d;
    size_t u = 0;

    if (!decimal_parse(token, &d))
        return false;
    while (u < ARRAY_LEN(unit) && d.count + d.exponent > unit[u].whole)
        u++;
    if (u == ARRAY_LEN(unit))
        return false;
    int shift = d.exponent + unit[u].to_ns;
    for (; shift > 0; shift--) {
        if (__builtin_mul_overflow(d.digits, 10, &d.digits))
            return false;
    }
    for (; shift < 0 && d.digits > 0; shift++)
        d.digits /= 10;
    if (d.digits > INT64_MAX)
        return false;
    *ret = (int64_t)d.digits;
    return true;
}

bool log_time_of_text(struct slice text, int64_t *ret)
{
    uint8_t zoned[TIME_WITH_ZONE];

    if (time_parse(text, ret))
        return true;
    if (text.len < DATE_TIME || text.len >= sizeof(zoned))
        return false;
    memcpy(zoned, text.ptr, text.len);
    zoned[text.len] = 'Z';
    return time_parse((struct slice){ zoned, text.len + 1 }, ret);
}

static bool shaped(struct slice s, const char *pattern)
{
    size_t n = strlen(pattern);

    if (s.len < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool ok = pattern[i] == '0' ? byte_is_digit(s.ptr[i]) : s.ptr[i] == (uint8_t)pattern[i];
        if (!ok)
            return false;
    }
    return true;
}

/* Bytes of the date and time at the front, with its fraction and its zone; 0: none. */
static size_t time_length(struct slice s)
{
    static const char *const zone[] = { "Z", "+00:00", "-00:00", "+0000", "-0000" };
    size_t n = DATE_TIME;

    if (!shaped(s, "0000-00-00 00:00:00") && !shaped(s, "0000-00-00T00:00:00"))
        return 0;
    if (n + 1 < s.len && (s.ptr[n] == '.' || s.ptr[n] == ',') && byte_is_digit(s.ptr[n + 1])) {
        for (n++; n < s.len && byte_is_digit(s.ptr[n]); n++)
            continue;
    }
    for (size_t i = 0; i < ARRAY_LEN(zone); i++) {
        if (shaped((struct slice){ s.ptr + n, s.len - n }, zone[i]))
            return n + strlen(zone[i]);
    }
    return n;
}

bool log_time_of_line(struct slice line, int64_t *ret)
{
    for (size_t i = 0; i < PREFIX_SEARCHED && i + DATE_TIME <= line.len; i++) {
        if (line.ptr[i] == '{')
            return false;
        if (!byte_is_digit(line.ptr[i]))
            continue;
        size_t n = time_length((struct slice){ line.ptr + i, line.len - i });
        if (n > 0)
            return log_time_of_text((struct slice){ line.ptr + i, n }, ret);
    }
    return false;
}
