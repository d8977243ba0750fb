/* h1_sync.c - see h1_sync.h. Chunks: RFC 9112 7.1, start lines: 3 and 4. */
#include "h1_sync.h"

#include <stdlib.h>

/* More is no chunk size line that anybody writes. */
#define SIZE_LINE_MAX 64
#define PIECES_MAX    ((size_t)16384)

static enum h1_match match_prefix(struct slice *s, struct slice text)
{
    size_t n = s->len < text.len ? s->len : text.len;

    if (memcmp(s->ptr, text.ptr, n) != 0)
        return H1_MATCH_NO;
    s->ptr += n;
    s->len -= n;
    return n < text.len ? H1_MATCH_MAYBE : H1_MATCH_YES;
}

static enum h1_match match_response(struct slice s)
{
    enum h1_match m = match_prefix(&s, SLICE_LIT("HTTP/1."));

    if (m != H1_MATCH_YES)
        return m;
    for (size_t i = 0; i < 5 && i < s.len; i++) {
        if (i == 1 ? s.ptr[i] != ' ' : !byte_is_digit(s.ptr[i]))
            return H1_MATCH_NO;
    }
    return s.len < 5 ? H1_MATCH_MAYBE : H1_MATCH_YES;
}

/* The line, when it is there to its end, names the version. */
static bool line_has_version(struct slice s)
{
    const uint8_t *lf = memchr(s.ptr, '\n', s.len);

    if (!lf)
        return true;
    struct slice line = { s.ptr, (size_t)(lf - s.ptr) };
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line.len > 9 && memcmp(line.ptr + line.len - 9, " HTTP/1.", 8) == 0;
}

static enum h1_match match_method(struct slice s, struct slice method)
{
    struct slice rest = s;
    enum h1_match m = match_prefix(&rest, method);

    if (m != H1_MATCH_YES)
        return m;
    if (rest.len == 0)
        return H1_MATCH_MAYBE;
    if (rest.ptr[0] != ' ')
        return H1_MATCH_NO;
    if (rest.len == 1)
        return H1_MATCH_MAYBE;
    if (rest.ptr[1] <= ' ' || rest.ptr[1] >= 0x7f)
        return H1_MATCH_NO;
    return line_has_version(s) ? H1_MATCH_YES : H1_MATCH_NO;
}

static enum h1_match match_request(struct slice s)
{
    static const char *const methods[] = { "GET",     "POST",  "DELETE", "OPTIONS", "HEAD",
                                           "CONNECT", "TRACE", "PUT",    "PATCH",   "PROPFIND" };
    enum h1_match best = H1_MATCH_NO;

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        enum h1_match m = match_method(s, slice_str(methods[i]));
        if (m > best)
            best = m;
    }
    return best;
}

enum h1_match h1_match_start(enum dir dir, struct slice s)
{
    if (s.len == 0)
        return H1_MATCH_MAYBE;
    return dir == DIR_CLIENT ? match_request(s) : match_response(s);
}

/* chunk-size [chunk-ext] CRLF. */
static enum h1_match match_size_line(struct slice s, size_t *ret_size, size_t *ret_len)
{
    size_t size = 0;
    size_t i = 0;

    for (; i < s.len && i < 8 && byte_hex(s.ptr[i]) >= 0; i++)
        size = size * 16 + (size_t)byte_hex(s.ptr[i]);
    if (i == s.len)
        return H1_MATCH_MAYBE;
    if (i == 0)
        return H1_MATCH_NO;
    if (s.ptr[i] == ';' || s.ptr[i] == ' ') {
        while (i < s.len && i < SIZE_LINE_MAX && s.ptr[i] >= ' ')
            i++;
    }
    if (i == SIZE_LINE_MAX || (i < s.len && s.ptr[i] != '\r'))
        return H1_MATCH_NO;
    if (i + 1 >= s.len)
        return H1_MATCH_MAYBE;
    if (s.ptr[i + 1] != '\n')
        return H1_MATCH_NO;
    *ret_size = size;
    *ret_len = i + 2;
    return H1_MATCH_YES;
}

/* After a chunk's data: CRLF, and then the next size line, as far as the bytes go. */
static bool match_chunk_end(struct slice s)
{
    size_t size;
    size_t len;

    if (!slice_starts(s, SLICE_LIT("\r\n")))
        return false;
    s.ptr += 2;
    s.len -= 2;
    return s.len == 0 || match_size_line(s, &size, &len) != H1_MATCH_NO;
}

bool h1_match_chunks(struct slice s)
{
    size_t size;
    size_t len;

    if (s.len == 0 || match_size_line(s, &size, &len) != H1_MATCH_YES || s.len - len < size + 2)
        return false;
    return match_chunk_end((struct slice){ s.ptr + len + size, s.len - len - size });
}

void h1_sync_init(struct h1_sync *s)
{
    *s = (struct h1_sync){ 0 };
    buf_init(&s->bytes, H1_SYNC_MAX);
}

void h1_sync_release(struct h1_sync *s)
{
    buf_release(&s->bytes);
    free(s->held);
    s->held = NULL;
}

void h1_sync_clear(struct h1_sync *s)
{
    h1_sync_release(s);
    h1_sync_init(s);
}

void h1_sync_overflow(struct h1_sync *s)
{
    h1_sync_clear(s);
    s->full = true;
}

bool h1_sync_add(struct h1_sync *s, struct piece piece)
{
    if (s->count == PIECES_MAX || !buf_add(&s->bytes, piece.data))
        return false;
    GROW(s->held, s->count, s->cap);
    s->held[s->count++].piece = piece;
    return true;
}

static struct slice from(const struct h1_sync *s, size_t at)
{
    return (struct slice){ s->bytes.ptr + at, s->bytes.len - at };
}

static bool crlf_at(const struct h1_sync *s, size_t at)
{
    return at + 2 <= s->bytes.len && memcmp(s->bytes.ptr + at, "\r\n", 2) == 0;
}

/* Claims whose end can be seen are proven, or wrong and forgotten. */
static bool claims_check(struct h1_sync *s, size_t *ret_at)
{
    for (size_t i = 0; i < s->claims;) {
        struct h1_claim c = s->claim[i];

        if (s->bytes.len < c.end + 2) {
            i++;
            continue;
        }
        if (match_chunk_end(from(s, c.end))) {
            *ret_at = c.at;
            return true;
        }
        s->claim[i] = s->claim[--s->claims];
    }
    return false;
}

/* What starts at s->scan? MAYBE: more bytes are needed to tell. */
static enum h1_match look(struct h1_sync *s, enum h1_found *ret)
{
    struct slice here = from(s, s->scan);
    enum h1_match m = h1_match_start(DIR_SERVER, here);
    bool edge = s->scan == 0 ? !s->full : s->scan >= 2 && crlf_at(s, s->scan - 2);
    size_t size;
    size_t len;

    if (m == H1_MATCH_YES)
        *ret = H1_FOUND_HEAD;
    if (m != H1_MATCH_NO || !edge)
        return m;
    m = match_size_line(here, &size, &len);
    if (m != H1_MATCH_YES)
        return m;
    if (size > 0) {
        if (s->claims < ARRAY_LEN(s->claim))
            s->claim[s->claims++] = (struct h1_claim){ s->scan, s->scan + len + size };
        return H1_MATCH_NO;
    }
    /* The last chunk, without trailers. */
    if (here.len < len + 2)
        return H1_MATCH_MAYBE;
    if (!crlf_at(s, s->scan + len))
        return H1_MATCH_NO;
    *ret = H1_FOUND_CHUNK;
    return H1_MATCH_YES;
}

enum h1_found h1_sync_scan(struct h1_sync *s, size_t *ret_at)
{
    enum h1_found found = H1_FOUND_NONE;

    for (;;) {
        if (claims_check(s, ret_at))
            return H1_FOUND_CHUNK;
        if (s->scan == s->bytes.len)
            return H1_FOUND_NONE;
        enum h1_match m = look(s, &found);
        if (m == H1_MATCH_MAYBE)
            return H1_FOUND_NONE;
        if (m == H1_MATCH_YES) {
            *ret_at = s->scan;
            return found;
        }
        struct slice rest = from(s, s->scan);
        const uint8_t *lf = memchr(rest.ptr, '\n', rest.len);
        s->scan = lf ? (size_t)(lf - s->bytes.ptr) + 1 : s->bytes.len;
    }
}

bool h1_sync_guess(const struct h1_sync *s, size_t *ret_at)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < s->claims; i++) {
        if (s->claim[i].at < best)
            best = s->claim[i].at;
    }
    if (best == SIZE_MAX)
        return false;
    *ret_at = best;
    return true;
}

static bool is_field_line(struct slice s)
{
    static const char *const starts[] = { "data:", "event:", "id:", "retry:", ":" };

    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        if (slice_starts(s, slice_str(starts[i])))
            return true;
    }
    return false;
}

bool h1_sync_is_text(const struct h1_sync *s)
{
    struct slice rest = buf_slice(&s->bytes);
    bool seen = false;

    if (rest.len == 0 || memchr(rest.ptr, '\0', rest.len))
        return false;
    while (rest.len > 0 && !seen) {
        const uint8_t *lf = memchr(rest.ptr, '\n', rest.len);
        if (!lf)
            break;
        rest.len -= (size_t)(lf + 1 - rest.ptr);
        rest.ptr = lf + 1;
        seen = is_field_line(rest);
    }
    return seen || is_field_line(buf_slice(&s->bytes));
}

bool h1_sync_take(struct h1_sync *s, struct piece *ret)
{
    if (s->next == s->count)
        return false;
    *ret = s->held[s->next++].piece;
    ret->data.ptr = s->bytes.ptr + s->offset;
    s->offset += ret->data.len;
    return true;
}
