/* test_input.c - files as streams: compression, damage, kinds, digests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "make_capture.h"

#include <zlib.h>
#include <zstd.h>

/* Text that does not compress to nothing. */
static struct made text_of(size_t n)
{
    struct made m = { 0 };
    uint64_t x = 1;

    while (m.len < n) {
        x = hash_mix(x, m.len);
        put8(&m, 'a' + (unsigned)(x % 17));
    }
    return m;
}

static void put_zlib(struct made *m, struct slice s, int window_bits)
{
    z_stream z = { 0 };
    uint8_t out[4096];

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    uint8_t *copy = (uint8_t *)mem_dup(s); /* zlib wants it writable */
    z.next_in = copy;
    z.avail_in = (uInt)s.len;
    int rc = Z_OK;
    while (rc == Z_OK) {
        z.next_out = out;
        z.avail_out = sizeof(out);
        rc = deflate(&z, Z_FINISH);
        put(m, out, sizeof(out) - z.avail_out);
    }
    assert_int_equal(rc, Z_STREAM_END);
    deflateEnd(&z);
    free(copy);
}

static void put_gzip(struct made *m, struct slice s)
{
    put_zlib(m, s, 15 + 16);
}

static void put_zstd(struct made *m, struct slice s)
{
    size_t bound = ZSTD_compressBound(s.len);
    uint8_t *out = mem_alloc(bound);
    size_t n = ZSTD_compress(out, bound, s.ptr, s.len, 1);

    assert_false(ZSTD_isError(n));
    put(m, out, n);
    free(out);
}

/* All of it, by reads of an odd size. */
static struct made drain(struct input *in, size_t step)
{
    struct made m = { 0 };
    uint8_t buf[8192];
    size_t n = 1;

    assert_true(step <= sizeof(buf));
    while (n > 0) {
        n = input_read(in, buf, step);
        put(&m, buf, n);
    }
    return m;
}

static void check_content(struct slice stored, struct slice want, bool compressed)
{
    static const size_t steps[] = { 1, 7, 1000, 8192 };

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct input *in = input_of(stored);
        struct slice head = input_peek(in, 10);
        assert_true(slice_starts(want, head));
        assert_int_equal(head.len, want.len < 10 ? want.len : 10);
        AUTO(made_freep) struct made got = drain(in, steps[i]);
        assert_true(slice_eq(made_slice(&got), want));
        assert_null(input_damage(in));
        assert_false(input_cut(in));
        assert_int_equal(input_compressed(in), compressed);
        input_finish(in);
        assert_int_equal(input_bytes(in), stored.len);
        input_free(in);
    }
}

static void test_plain(void **state)
{
    AUTO(made_freep) struct made text = text_of(5000);

    (void)state;
    check_content(made_slice(&text), made_slice(&text), false);
    check_content((struct slice){ text.ptr, 1 }, (struct slice){ text.ptr, 1 }, false);
    check_content((struct slice){ text.ptr, 0 }, (struct slice){ text.ptr, 0 }, false);
}

static void test_packed(void **state)
{
    AUTO(made_freep) struct made text = text_of(30000);
    AUTO(made_freep) struct made gzip = { 0 };
    AUTO(made_freep) struct made zlib = { 0 };
    AUTO(made_freep) struct made zstd = { 0 };
    struct slice rest = made_slice(&text);
    struct slice first = { 0 };

    (void)state;
    put_zlib(&zlib, rest, 15);
    assert_true(slice_take(&rest, 12345, &first));
    put_gzip(&gzip, first); /* two members, and padding as of a tape */
    put_gzip(&gzip, rest);
    put_fill(&gzip, 0, 50);
    put_zstd(&zstd, first); /* two frames */
    put_zstd(&zstd, rest);
    check_content(made_slice(&zlib), made_slice(&text), true);
    check_content(made_slice(&gzip), made_slice(&text), true);
    check_content(made_slice(&zstd), made_slice(&text), true);
}

/* Whatever is left of a cut file is a beginning of the whole, and the cut is told. */
static void check_cuts(const struct made *packed, struct slice want, size_t border)
{
    size_t last = 0;

    for (size_t cut = 4; cut < packed->len; cut++) {
        struct input *in = input_of((struct slice){ packed->ptr, cut });
        AUTO(made_freep) struct made got = drain(in, 4096);
        assert_true(slice_starts(want, made_slice(&got)));
        assert_true(got.len >= last);
        last = got.len;
        assert_int_equal(input_damage(in) != NULL, cut != border);
        assert_int_equal(input_cut(in), cut != border);
        input_free(in);
    }
    assert_int_equal(last, want.len); /* at the end only the checksum is missing */
}

static void test_cut(void **state)
{
    AUTO(made_freep) struct made text = text_of(1500);
    AUTO(made_freep) struct made gzip = { 0 };
    AUTO(made_freep) struct made zlib = { 0 };
    AUTO(made_freep) struct made zstd = { 0 };
    struct slice all = made_slice(&text);
    struct slice rest = all;
    struct slice first = { 0 };
    size_t border;

    (void)state;
    put_zlib(&zlib, all, 15);
    check_cuts(&zlib, all, 0);
    assert_true(slice_take(&rest, 700, &first));
    put_gzip(&gzip, first);
    border = gzip.len;
    put_gzip(&gzip, rest);
    check_cuts(&gzip, all, border);
    put_zstd(&zstd, first);
    border = zstd.len;
    put_zstd(&zstd, rest);
    zstd.len -= 1; /* without a checksum its last byte holds content */
    check_cuts(&zstd, first, border);
}

static void check_damage(const struct made *stored, const char *want)
{
    struct input *in = input_of(made_slice(stored));
    AUTO(made_freep) struct made got = drain(in, 512);

    assert_true(got.len <= 3000);
    assert_non_null(input_damage(in));
    assert_non_null(strstr(input_damage(in), want));
    assert_false(input_cut(in));
    input_finish(in);
    assert_int_equal(input_bytes(in), stored->len); /* the digest covers the file all the same */
    input_free(in);
}

static void test_damage(void **state)
{
    AUTO(made_freep) struct made text = text_of(3000);
    AUTO(made_freep) struct made gzip = { 0 };
    AUTO(made_freep) struct made zlib = { 0 };
    AUTO(made_freep) struct made zstd = { 0 };

    (void)state;
    put_gzip(&gzip, made_slice(&text));
    put_zlib(&zlib, made_slice(&text), 15);
    put_zstd(&zstd, made_slice(&text));
    put(&gzip, "more", 4);
    put(&zlib, "more", 4);
    put(&zstd, "more", 4);
    check_damage(&gzip, "follow");
    check_damage(&zlib, "follow");
    check_damage(&zstd, "follow");
    gzip.ptr[gzip.len / 2] ^= 0xff;
    zlib.ptr[5] ^= 0xff;
    zstd.ptr[5] ^= 0xff;
    check_damage(&gzip, "damaged");
    check_damage(&zlib, "damaged");
    check_damage(&zstd, "damaged");
}

/* Past the size from which a thread reads ahead: the same bytes and the same digest. */
static void test_large(void **state)
{
    AUTO(made_freep) struct made big = { 0 };
    struct slice block = { 0 };
    size_t sum = 0;

    (void)state;
    AUTO(made_freep) struct made text = text_of(99991);
    while (big.len < ((size_t)9 << 20))
        put_slice(&big, made_slice(&text));
    struct input *in = input_of(made_slice(&big));
    uint8_t *buf = mem_grow(NULL, 300001);
    struct slice want = made_slice(&big);
    for (size_t n = 1; n > 0; sum += n) {
        n = input_read(in, buf, 300001);
        assert_true(slice_take(&want, n, &block) && slice_eq(block, (struct slice){ buf, n }));
    }
    assert_int_equal(sum, big.len);
    char whole[65];
    input_sha256_hex(in, whole);
    input_free(in);

    in = input_of(made_slice(&big)); /* not read at all, and in part */
    char other[65];
    input_sha256_hex(in, other);
    assert_string_equal(other, "");
    input_finish(in);
    input_sha256_hex(in, other);
    assert_string_equal(whole, other);
    assert_int_equal(input_read(in, buf, 10), 0);
    input_free(in);
    in = input_of(made_slice(&big));
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(input_read(in, buf, 300001), 300001);
    input_free(in); /* while the thread is at work */
    free(buf);
}

static void test_digest(void **state)
{
    struct input *in = input_of(SLICE_LIT("abc"));
    char hex[65];

    (void)state;
    assert_int_equal(input_peek(in, 2).len, 2);
    input_finish(in);
    input_sha256_hex(in, hex);
    /* FIPS 180-4, the example of one block */
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    input_free(in);
}

static void test_no_digest(void **state)
{
    AUTO(made_freep) struct made big = text_of(5000000); /* long enough for the thread */
    struct input *in = input_of(made_slice(&big));
    char hex[65];

    (void)state;
    assert_int_equal(input_recognise(in), INPUT_UNKNOWN);
    input_no_digest(in);
    input_finish(in);
    assert_int_equal(input_bytes(in), made_slice(&big).len);
    input_sha256_hex(in, hex);
    assert_string_equal(hex, "");
    input_free(in);
}

/* A stream of stdio has it all, peeked or not, and counts as much as was read, whatever the file.
 */
static void read_stream(struct input *in, struct slice want, bool digest)
{
    uint8_t *got = mem_grow(NULL, want.len + 1);

    assert_true(input_peek(in, 100).len == 100);
    if (!digest)
        input_no_digest(in);
    FILE *stream = input_stream(in);
    assert_non_null(stream);
    assert_int_equal(fread(got, 1, want.len + 1, stream), want.len);
    assert_memory_equal(got, want.ptr, want.len);
    assert_true(feof(stream) != 0);
    fclose(stream);
    input_finish(in);
    assert_null(input_damage(in));
    free(got);
}

static void test_stream(void **state)
{
    AUTO(made_freep) struct made text = text_of(200000);
    struct slice s = made_slice(&text);

    (void)state;
    for (int digest = 0; digest < 2; digest++) {
        struct input *in = input_of(s);
        read_stream(in, s, digest);
        assert_int_equal(input_bytes(in), s.len);
        input_free(in);
        AUTO(made_freep) struct made packed = { 0 };
        put_gzip(&packed, s);
        in = input_of(made_slice(&packed));
        read_stream(in, s, digest);
        assert_int_equal(input_bytes(in), made_slice(&packed).len);
        input_free(in);
    }
}

static void test_peek(void **state)
{
    AUTO(made_freep) struct made text = text_of(200000);
    struct input *in = input_of(made_slice(&text));
    uint8_t buf[100];

    (void)state;
    assert_int_equal(input_peek(in, 10).len, 10);
    assert_int_equal(input_read(in, buf, 4), 4);
    struct slice all = input_peek(in, 1 << 20); /* no more than 64 KiB */
    assert_int_equal(all.len, 65536);
    assert_memory_equal(all.ptr, text.ptr + 4, all.len);
    assert_int_equal(input_read(in, buf, 100), 100);
    assert_memory_equal(buf, text.ptr + 4, 100);
    input_free(in);
}

static void check_kind(struct slice bytes, enum input_kind want)
{
    struct input *in = input_of(bytes);

    assert_int_equal(input_recognise(in), want);
    assert_int_equal(input_recognise(in), want); /* consumes nothing */
    input_free(in);
}

static void test_kinds(void **state)
{
    AUTO(made_freep) struct made gzip = { 0 };
    AUTO(made_freep) struct made hollow = { 0 };

    (void)state;
    check_kind(SLICE_LIT(""), INPUT_EMPTY);
    check_kind(SLICE_LIT("\xd4\xc3\xb2\xa1\x02"), INPUT_PCAP);
    check_kind(SLICE_LIT("\xa1\xb2\xc3\xd4"), INPUT_PCAP);
    check_kind(SLICE_LIT("\x4d\x3c\xb2\xa1"), INPUT_PCAP);
    check_kind(SLICE_LIT("\xa1\xb2\x3c\x4d"), INPUT_PCAP);
    check_kind(SLICE_LIT("\xa1\xb2\xcd\x34"), INPUT_PCAP);
    check_kind(SLICE_LIT("\x0a\x0d\x0d\x0a...."), INPUT_PCAPNG);
    check_kind(SLICE_LIT("\xd4\xc3\xb2"), INPUT_UNKNOWN);
    check_kind(SLICE_LIT("%PDF-1.4"), INPUT_UNKNOWN);
    put_gzip(&gzip, SLICE_LIT("\xd4\xc3\xb2\xa1\x02"));
    check_kind(made_slice(&gzip), INPUT_PCAP);
    check_kind((struct slice){ gzip.ptr, 4 }, INPUT_UNKNOWN); /* cut, not empty */
    put_gzip(&hollow, (struct slice){ gzip.ptr, 0 });
    check_kind(made_slice(&hollow), INPUT_EMPTY);
    assert_string_equal(input_kind_text(INPUT_DISPATCH_LOG), "dispatch-log");
    assert_string_equal(input_kind_text(INPUT_PCAPNG), "pcapng");
}

static void test_not_opened(void **state)
{
    struct input_error err = { "" };

    (void)state;
    assert_null(input_open("/nonexistent/file.pcap", &err));
    assert_string_equal(err.text, "cannot be opened: No such file or directory");
    assert_null(input_open("/", &err));
    assert_string_equal(err.text, "is a directory");
    struct input *in = input_of(SLICE_LIT(""));
    assert_null(capture_open(in, 0, &err));
    assert_string_equal(err.text, "is empty (0 bytes)");
    input_free(in);
}

/* A pipe gives a little at a time, and the magic may come in two pieces. */
static void test_stdin(void **state)
{
    struct input_error err = { "" };
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    AUTO(made_freep) struct made gzip = { 0 };
    put_gzip(&gzip, SLICE_LIT("hello"));
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < gzip.len; i++) {
            if (write(ends[1], gzip.ptr + i, 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    int saved = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    struct input *in = input_open("-", &err);
    assert_non_null(in);
    AUTO(made_freep) struct made got = drain(in, 100);
    assert_true(slice_eq(made_slice(&got), SLICE_LIT("hello")));
    input_free(in);
    dup2(saved, STDIN_FILENO);
    close(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),     cmocka_unit_test(test_packed),
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_damage),
        cmocka_unit_test(test_large),     cmocka_unit_test(test_digest),
        cmocka_unit_test(test_no_digest), cmocka_unit_test(test_stream),
        cmocka_unit_test(test_peek),      cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_stdin),     cmocka_unit_test(test_not_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
