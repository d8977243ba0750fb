/* test_coding.c - coding.c: round trips at every cut, flushes, damage, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "coding.h"

#define FIRST  "id: 1\ndata: hello hello\n\n"
#define SECOND "id: 2\ndata: hello again\n\n"

/* FIRST, a flush, SECOND. */
static const uint8_t brotli[] = {
    0x0b, 0x0c, 0x80, 0x69, 0x64, 0x3a, 0x20, 0x31, 0x0a, 0x64, 0x61, 0x74, 0x61, 0x3a,
    0x20, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x0a,
    0x81, 0x01, 0x80, 0xdf, 0x48, 0xe9, 0xf2, 0xa1, 0x55, 0x2b, 0xc8, 0xe8, 0xa4, 0x29,
    0x10, 0xb2, 0x1c, 0x44, 0x92, 0x74, 0x0a, 0x05, 0x39, 0xfe, 0xc8, 0x00,
};
#define BROTLI_FLUSHED 28

static void collect(void *ctx, struct slice decoded)
{
    assert_true(decoded.len > 0);
    assert_true(buf_add(ctx, decoded));
}

/* bits as inflateInit2 takes them: 31 gzip, 15 zlib, -15 raw. */
static void deflate_to(struct buf *out, int bits, struct slice in, int flush)
{
    z_stream z = { 0 };
    uint8_t block[512];

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    uint8_t *own = (uint8_t *)mem_dup(in);
    z.next_in = own;
    z.avail_in = (unsigned)in.len;
    do {
        z.next_out = block;
        z.avail_out = sizeof(block);
        deflate(&z, flush);
        assert_true(buf_add(out, (struct slice){ block, sizeof(block) - z.avail_out }));
    } while (z.avail_out == 0);
    deflateEnd(&z);
    free(own);
}

static void zstd_to(struct buf *out, struct slice in)
{
    size_t room = ZSTD_compressBound(in.len);
    uint8_t *block = mem_alloc(room);
    size_t n = ZSTD_compress(block, room, in.ptr, in.len, 3);

    assert_false(ZSTD_isError(n));
    assert_true(buf_add(out, (struct slice){ block, n }));
    free(block);
}

static void encode(struct buf *out, const char *how, struct slice in)
{
    if (strcmp(how, "gzip") == 0)
        deflate_to(out, 31, in, Z_FINISH);
    else if (strcmp(how, "zlib") == 0)
        deflate_to(out, 15, in, Z_FINISH);
    else if (strcmp(how, "raw") == 0)
        deflate_to(out, -15, in, Z_FINISH);
    else if (strcmp(how, "zstd") == 0)
        zstd_to(out, in);
    else if (strcmp(how, "br") == 0)
        assert_true(buf_add(out, (struct slice){ brotli, sizeof(brotli) }));
    else
        assert_true(buf_add(out, in));
}

static enum coding_status decode(const char *value, struct slice in, size_t cut, struct buf *out)
{
    struct coding *c = coding_new(slice_str(value), 1000, UINT64_MAX);
    struct slice head = { 0 };
    enum coding_status st;

    assert_non_null(c);
    assert_true(slice_take(&in, cut, &head));
    st = coding_feed(c, head, collect, out);
    /* Blocks of their own let ASan see reads past the end. */
    uint8_t *own = (uint8_t *)mem_dup(in);
    if (in.len > 0)
        st = coding_feed(c, (struct slice){ own, in.len }, collect, out);
    free(own);
    coding_free(c);
    return st;
}

static const struct {
    const char *value;
    const char *how[3]; /* applied in this order */
    enum coding_status end;
} trips[] = {
    { "gzip", { "gzip" }, CODING_ENDED },
    { "X-GZip", { "gzip" }, CODING_ENDED },
    { "deflate", { "zlib" }, CODING_ENDED },
    { "deflate", { "raw" }, CODING_ENDED },
    { "zstd", { "zstd" }, CODING_ENDED },
    { "br", { "br" }, CODING_ENDED },
    { "br, gzip", { "br", "gzip" }, CODING_ENDED },
    { "gzip,identity ,deflate,\tzstd", { "gzip", "zlib", "zstd" }, CODING_ENDED },
    { "identity", { "none" }, CODING_OK },
    { "none", { "none" }, CODING_OK },
    { "", { "none" }, CODING_OK },
};

/* What `how`, step by step, makes of FIRST SECOND. */
static void encode_all(struct buf *out, const char *const how[3])
{
    buf_init(out, 1 << 16);
    assert_true(buf_add(out, SLICE_LIT(FIRST SECOND)));
    for (size_t k = 0; k < 3 && how[k]; k++) {
        struct buf next;
        buf_init(&next, 1 << 16);
        encode(&next, how[k], buf_slice(out));
        buf_release(out);
        *out = next;
    }
}

static void check_trip(const char *value, struct slice coded, size_t cut, enum coding_status end)
{
    struct buf out;

    buf_init(&out, 1 << 16);
    enum coding_status st = decode(value, coded, cut, &out);
    if (!slice_eq(buf_slice(&out), SLICE_LIT(FIRST SECOND)) || st != end)
        fail_msg("%s, cut at %zu: status %d, \"" SLICE_FMT "\"", value, cut, st,
                 SLICE_ARG(buf_slice(&out)));
    buf_release(&out);
}

static void test_round_trips_at_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(trips); i++) {
        struct buf coded;
        encode_all(&coded, trips[i].how);
        for (size_t cut = 0; cut <= coded.len; cut++)
            check_trip(trips[i].value, buf_slice(&coded), cut, trips[i].end);
        buf_release(&coded);
    }
}

/* Whatever was flushed is there at once, and no more is needed for it. */
static void test_flushed_bytes_come_at_once(void **state)
{
    (void)state;
    struct buf coded;
    struct buf out;

    buf_init(&out, 1 << 16);
    assert_int_equal(decode("br", (struct slice){ brotli, BROTLI_FLUSHED }, 3, &out), CODING_OK);
    assert_true(slice_eq(buf_slice(&out), SLICE_LIT(FIRST)));
    buf_release(&out);
    static const int bits[] = { 31, 15, -15 };
    for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
        buf_init(&coded, 1 << 16);
        deflate_to(&coded, bits[i], SLICE_LIT(FIRST), Z_SYNC_FLUSH);
        const char *name = bits[i] == 31 ? "gzip" : "deflate";
        assert_int_equal(decode(name, buf_slice(&coded), 1, &out), CODING_OK);
        assert_true(slice_eq(buf_slice(&out), SLICE_LIT(FIRST)));
        buf_release(&out);
        buf_release(&coded);
    }
}

static void test_truncated_streams_yield_what_they_held(void **state)
{
    static const char *const names[] = { "gzip", "zlib", "raw", "zstd", "br" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf coded;
        buf_init(&coded, 1 << 16);
        encode(&coded, names[i], SLICE_LIT(FIRST SECOND));
        for (size_t n = 0; n < coded.len; n++) {
            struct buf out;
            buf_init(&out, 1 << 16);
            bool deflate = i == 1 || i == 2;
            enum coding_status st =
                decode(deflate ? "deflate" : names[i], (struct slice){ coded.ptr, n }, n / 2, &out);
            assert_int_equal(st, CODING_OK);
            assert_true(out.len <= sizeof(FIRST SECOND) &&
                        memcmp(FIRST SECOND, out.len ? out.ptr : (const uint8_t *)"", out.len) ==
                            0);
            buf_release(&out);
        }
        buf_release(&coded);
    }
}

static void test_several_members_and_what_follows(void **state)
{
    static const char *const names[] = { "gzip", "zstd" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf coded;
        buf_init(&coded, 1 << 16);
        encode(&coded, names[i], SLICE_LIT(FIRST));
        encode(&coded, names[i], SLICE_LIT(SECOND));
        assert_true(buf_add(&coded, SLICE_LIT("and something else")));
        for (size_t cut = 0; cut <= coded.len; cut++) {
            struct buf out;
            buf_init(&out, 1 << 16);
            assert_int_equal(decode(names[i], buf_slice(&coded), cut, &out), CODING_ENDED);
            assert_true(slice_eq(buf_slice(&out), SLICE_LIT(FIRST SECOND)));
            buf_release(&out);
        }
        buf_release(&coded);
    }
}

static void test_damage_is_broken_and_stays_so(void **state)
{
    static const char *const names[] = { "gzip", "deflate", "br", "zstd", "gzip, br" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct coding *c = coding_new(slice_str(names[i]), 1000, UINT64_MAX);
        struct buf out;
        buf_init(&out, 1 << 16);
        struct slice junk = SLICE_LIT("\xff\xff\xff\xff this is not coded \xff\xff at all");
        assert_int_equal(coding_feed(c, junk, collect, &out), CODING_BROKEN);
        assert_int_equal(coding_feed(c, junk, collect, &out), CODING_BROKEN);
        coding_free(c);
        buf_release(&out);
    }
}

static void count(void *ctx, struct slice decoded)
{
    *(uint64_t *)ctx += decoded.len;
}

/* 64 MiB of nothing. */
static enum coding_status blow(const char *value, const char *how, size_t ratio, uint64_t total,
                               uint64_t *ret_out)
{
    size_t size = (size_t)64 << 20;
    uint8_t *zeros = mem_alloc(size);
    struct buf coded;
    struct buf twice;

    *ret_out = 0;
    buf_init(&coded, 1 << 20);
    buf_init(&twice, 1 << 20);
    encode(&coded, how, (struct slice){ zeros, size });
    if (strchr(value, ','))
        encode(&twice, how, buf_slice(&coded));
    struct coding *c = coding_new(slice_str(value), ratio, total);
    enum coding_status st = coding_feed(c, buf_slice(twice.len ? &twice : &coded), count, ret_out);
    coding_free(c);
    buf_release(&coded);
    buf_release(&twice);
    free(zeros);
    return st;
}

static void test_bombs(void **state)
{
    uint64_t out;

    (void)state;
    assert_int_equal(blow("gzip", "gzip", 100, UINT64_MAX, &out), CODING_LIMIT);
    assert_in_range(out, 1, (uint64_t)8 << 20);
    assert_int_equal(blow("zstd", "zstd", 100, UINT64_MAX, &out), CODING_LIMIT);
    assert_in_range(out, 0, (uint64_t)8 << 20);
    assert_int_equal(blow("gzip, gzip", "gzip", 1000, UINT64_MAX, &out), CODING_LIMIT);
    assert_in_range(out, 0, (uint64_t)8 << 20);
    assert_int_equal(blow("gzip", "gzip", 100000, (uint64_t)3 << 20, &out), CODING_LIMIT);
    assert_in_range(out, (uint64_t)2 << 20, (uint64_t)3 << 20);
    assert_int_equal(blow("gzip", "gzip", 100000, UINT64_MAX, &out), CODING_ENDED);
    assert_int_equal(out, (uint64_t)64 << 20);
}

static void test_names(void **state)
{
    static const char *const unknown[] = { "compress", "gzip, exi", "gzip;q=1", "gzip gzip",
                                           "gzip,gzip,gzip,gzip,gzip" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        assert_null(coding_new(slice_str(unknown[i]), 1, 1));
    assert_true(coding_is_identity((struct slice){ 0 }));
    assert_true(coding_is_identity(SLICE_LIT(" identity, None,,")));
    assert_false(coding_is_identity(SLICE_LIT("identity, gzip")));
    assert_false(coding_is_identity(SLICE_LIT("x")));
    coding_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips_at_every_cut),
        cmocka_unit_test(test_flushed_bytes_come_at_once),
        cmocka_unit_test(test_truncated_streams_yield_what_they_held),
        cmocka_unit_test(test_several_members_and_what_follows),
        cmocka_unit_test(test_damage_is_broken_and_stays_so),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
