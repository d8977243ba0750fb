/* unpack.c - see unpack.h. RFC 1950 (zlib), RFC 1952 (gzip), RFC 8878 (zstd). */
#include "unpack.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#define DAMAGED "the compressed data is damaged"
#define FOLLOWS "other bytes follow the end of the compressed data"

struct unpack {
    enum packing packing;
    z_stream z;
    ZSTD_DStream *zstd;
    bool inside;     /* in a member or frame */
    bool any_member; /* one has ended */
    const char *damage;
};

enum packing packing_of(struct slice head)
{
    static const uint8_t zstd[4] = { 0x28, 0xb5, 0x2f, 0xfd };
    const uint8_t *p = head.ptr;

    if (head.len >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == Z_DEFLATED)
        return PACKING_GZIP;
    if (head.len >= 4 && memcmp(p, zstd, sizeof(zstd)) == 0)
        return PACKING_ZSTD;
    /* RFC 1950 2.2: a window of 32 KiB, no dictionary, and the header is a multiple of 31. */
    if (head.len >= 2 && p[0] == 0x78 && (p[1] & 0x20) == 0 && (p[0] * 256 + p[1]) % 31 == 0)
        return PACKING_ZLIB;
    return PACKING_NONE;
}

struct unpack *unpack_new(enum packing packing)
{
    struct unpack *u = mem_alloc(sizeof(*u));
    bool ok;

    u->packing = packing;
    if (packing == PACKING_ZSTD) {
        u->zstd = ZSTD_createDStream();
        ok = u->zstd != NULL;
    } else {
        ok = inflateInit2(&u->z, MAX_WBITS + (packing == PACKING_GZIP ? 16 : 0)) == Z_OK;
    }
    if (!ok)
        u->damage = "no memory for decompression";
    return u;
}

void unpack_free(struct unpack *u)
{
    if (!u)
        return;
    if (u->packing == PACKING_ZSTD)
        ZSTD_freeDStream(u->zstd);
    else
        inflateEnd(&u->z);
    free(u);
}

/* Between members: what may follow? False when nothing is left of the input. */
static bool member_begin(struct unpack *u, struct slice *in)
{
    /* tar and tape writers pad with zeros: gzip ignores them too */
    while (u->any_member && in->len > 0 && in->ptr[0] == 0) {
        in->ptr++;
        in->len--;
    }
    if (in->len == 0)
        return false;
    if (u->any_member && (u->packing == PACKING_ZLIB || in->ptr[0] != 0x1f)) {
        u->damage = FOLLOWS;
        return false;
    }
    if (u->any_member)
        inflateReset(&u->z);
    u->inside = true;
    return true;
}

static size_t zlib_read(struct unpack *u, struct slice *in, void *buf, size_t n)
{
    z_stream *z = &u->z;

    z->next_out = buf;
    z->avail_out = n < UINT_MAX ? (uInt)n : UINT_MAX;
    while (z->avail_out > 0 && (u->inside || member_begin(u, in))) {
        uInt step = in->len < UINT_MAX ? (uInt)in->len : UINT_MAX;
        z->next_in = in->ptr;
        z->avail_in = step;
        int rc = inflate(z, Z_NO_FLUSH);
        in->ptr += step - z->avail_in;
        in->len -= step - z->avail_in;
        if (rc == Z_STREAM_END) {
            u->inside = false;
            u->any_member = true;
        } else if (rc == Z_BUF_ERROR) {
            break; /* wants more input */
        } else if (rc != Z_OK) {
            u->damage = DAMAGED;
            break;
        }
    }
    return (size_t)(z->next_out - (Bytef *)buf);
}

static size_t zstd_read(struct unpack *u, struct slice *in, void *buf, size_t n)
{
    ZSTD_outBuffer out = { buf, n, 0 };
    ZSTD_inBuffer from = { in->ptr, in->len, 0 };
    size_t rc = 1;

    do {
        rc = ZSTD_decompressStream(u->zstd, &out, &from);
        if (ZSTD_isError(rc))
            break;
        u->inside = rc != 0;
        u->any_member |= rc == 0;
    } while (out.pos == 0 && from.pos < from.size);
    if (ZSTD_isError(rc))
        u->damage = u->any_member && !u->inside ? FOLLOWS : DAMAGED;
    in->ptr += from.pos;
    in->len -= from.pos;
    return out.pos;
}

size_t unpack_read(struct unpack *u, struct slice *in, void *buf, size_t n)
{
    if (u->damage || n == 0)
        return 0;
    if (u->packing != PACKING_ZSTD)
        return zlib_read(u, in, buf, n);
    if (in->len == 0 && !u->inside)
        return 0;
    return zstd_read(u, in, buf, n);
}

bool unpack_inside(const struct unpack *u)
{
    return u->inside;
}

const char *unpack_damage(const struct unpack *u)
{
    return u->damage;
}
