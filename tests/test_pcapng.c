/* test_pcapng.c - the pcapng reader: blocks, byte orders, clocks, cuts, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "make_capture.h"

static void pad4(struct made *m)
{
    put_fill(m, 0, (4 - m->len % 4) % 4);
}

static void option(struct made *m, unsigned code, struct slice value)
{
    put16(m, code);
    put16(m, (unsigned)value.len);
    put_slice(m, value);
    pad4(m);
}

/* A block around the body, which is used up. */
static void block(struct made *m, uint32_t type, struct made *body)
{
    pad4(body);
    put32(m, type);
    put32(m, (uint32_t)body->len + 12);
    put_slice(m, made_slice(body));
    put32(m, (uint32_t)body->len + 12);
    made_freep(body);
}

static void section(struct made *m)
{
    struct made b = { .little = m->little };

    put32(&b, 0x1a2b3c4d);
    put16(&b, 1);
    put16(&b, 0);
    put64(&b, UINT64_MAX);
    option(&b, 1, SLICE_LIT("of the section"));
    block(m, 0x0a0d0d0a, &b);
}

/* tsresol < 0: no such option. */
static void interface(struct made *m, unsigned linktype, uint32_t snaplen, int tsresol,
                      int64_t tsoffset)
{
    struct made b = { .little = m->little };

    put16(&b, linktype);
    put16(&b, 0);
    put32(&b, snaplen);
    option(&b, 2, SLICE_LIT("eth0"));
    if (tsresol >= 0) {
        uint8_t v = (uint8_t)tsresol;
        option(&b, 9, (struct slice){ &v, 1 });
    }
    if (tsoffset != 0) {
        put16(&b, 14);
        put16(&b, 8);
        put64(&b, (uint64_t)tsoffset);
    }
    put32(&b, 0); /* end of options */
    block(m, 1, &b);
}

struct packet {
    uint32_t itf;
    uint64_t ticks;
    size_t captured;
    uint32_t wire; /* 0: as captured */
    struct slice comment;
};

static void enhanced(struct made *m, struct packet p)
{
    struct made b = { .little = m->little };

    put32(&b, p.itf);
    put32(&b, (uint32_t)(p.ticks >> 32));
    put32(&b, (uint32_t)p.ticks);
    put32(&b, (uint32_t)p.captured);
    put32(&b, p.wire ? p.wire : (uint32_t)p.captured);
    put_fill(&b, (uint8_t)p.captured, p.captured);
    pad4(&b);
    if (p.comment.len > 0) {
        option(&b, 1, p.comment);
        put32(&b, 0);
    }
    block(m, 6, &b);
}

static void simple(struct made *m, size_t captured, uint32_t wire)
{
    struct made b = { .little = m->little };

    put32(&b, wire);
    put_fill(&b, 0x55, captured);
    block(m, 3, &b);
}

static void obsolete(struct made *m, unsigned itf, uint64_t ticks, size_t captured)
{
    struct made b = { .little = m->little };

    put16(&b, itf);
    put16(&b, 0xffff);
    put32(&b, (uint32_t)(ticks >> 32));
    put32(&b, (uint32_t)ticks);
    put32(&b, (uint32_t)captured);
    put32(&b, (uint32_t)captured);
    put_fill(&b, 0x66, captured);
    block(m, 2, &b);
}

static void secrets(struct made *m, uint32_t type, struct slice text)
{
    struct made b = { .little = m->little };

    put32(&b, type);
    put32(&b, (uint32_t)text.len);
    put_slice(&b, text);
    block(m, 10, &b);
}

static void unknown(struct made *m, uint32_t type, size_t n)
{
    struct made b = { .little = m->little };

    put_fill(&b, 0x77, n);
    block(m, type, &b);
}

/* Two sections of different byte order, interfaces that differ, every kind of block. */
static struct made everything(bool little)
{
    struct made m = { .little = little };

    section(&m);
    secrets(&m, 0x544c534b, SLICE_LIT("CLIENT_RANDOM 1"));
    interface(&m, 1, 65535, -1, 0);
    interface(&m, 113, 96, 9, 0);
    unknown(&m, 4, 21); /* names */
    enhanced(&m, (struct packet){
                     .ticks = 1700000000000001, .captured = 7, .comment = SLICE_LIT("look here") });
    enhanced(&m, (struct packet){
                     .itf = 1, .ticks = 1700000000000000002, .captured = 13, .wire = 1500 });
    simple(&m, 6, 6);
    obsolete(&m, 0, 1700000000000003, 9);
    unknown(&m, 5, 30); /* statistics */
    unknown(&m, 0xbad, 0);
    secrets(&m, 0x57474b4c, SLICE_LIT("of another protocol"));
    m.little = !little;
    section(&m);
    interface(&m, 276, 0, 3, -3600);
    secrets(&m, 0x544c534b, SLICE_LIT("CLIENT_RANDOM 2\n"));
    enhanced(
        &m, (struct packet){ .ticks = 1700000000004, .captured = 0, .comment = SLICE_LIT("bare") });
    return m;
}

static void check_frame(struct capture *cap, const struct frame *want, size_t len)
{
    struct frame f;

    assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
    assert_int_equal(f.data.len, len);
    assert_int_equal(f.wire_len, want->wire_len);
    assert_int_equal(f.linktype, want->linktype);
    assert_int_equal(f.interface, want->interface);
    assert_int_equal(f.at.time, want->at.time);
    assert_int_equal(f.at.frame, want->at.frame);
    assert_int_equal(f.at.input, 3);
}

static void check_everything(bool little)
{
    const int64_t base = 1700000000 * NS_PER_SEC;
    AUTO(made_freep) struct made m = everything(little);
    struct input *in = input_of(made_slice(&m));
    struct input_error err = { "" };
    struct capture *cap = capture_open(in, 3, &err);
    const struct capture_comment *c;
    struct frame f;

    assert_non_null(cap);
    check_frame(cap, &(struct frame){ .wire_len = 7, .linktype = 1, .at = { base + 1000, 1, 3 } },
                7);
    f = (struct frame){
        .wire_len = 1500, .linktype = 113, .interface = 1, .at = { base + 2, 2, 3 }
    };
    check_frame(cap, &f, 13);
    check_frame(cap, &(struct frame){ .wire_len = 6, .linktype = 1, .at = { 0, 3, 3 } }, 6);
    check_frame(cap, &(struct frame){ .wire_len = 9, .linktype = 1, .at = { base + 3000, 4, 3 } },
                9);
    assert_true(slice_eq(capture_secrets(cap), SLICE_LIT("CLIENT_RANDOM 1\n")));
    f = (struct frame){ .linktype = 276,
                        .interface = 2,
                        .at = { base - 3600 * NS_PER_SEC + 4 * NS_PER_MS, 5, 3 } };
    check_frame(cap, &f, 0);
    assert_true(slice_eq(capture_secrets(cap), SLICE_LIT("CLIENT_RANDOM 1\nCLIENT_RANDOM 2\n\n")));
    assert_int_equal(capture_next(cap, &f), CAPTURE_END);
    assert_string_equal(capture_message(cap), "");
    assert_int_equal(capture_comments(cap, &c), 4);
    assert_int_equal(c[0].frame, 0);
    assert_true(slice_eq(c[0].text, SLICE_LIT("of the section")));
    assert_int_equal(c[1].frame, 1);
    assert_true(slice_eq(c[1].text, SLICE_LIT("look here")));
    assert_int_equal(c[3].frame, 5);
    assert_true(slice_eq(c[3].text, SLICE_LIT("bare")));
    capture_free(cap);
    input_free(in);
}

static void test_everything(void **state)
{
    (void)state;
    check_everything(true);
    check_everything(false);
}

static void test_cut(void **state)
{
    (void)state;
    for (unsigned little = 0; little < 2; little++) {
        AUTO(made_freep) struct made m = everything(little == 1);
        struct reading whole = read_all(made_slice(&m));
        size_t last = 0;

        assert_int_equal(whole.frames, 5);
        for (size_t cut = 4; cut < m.len; cut++) {
            struct reading r = read_all((struct slice){ m.ptr, cut });
            assert_true(r.opened);
            assert_true(r.status == CAPTURE_CUT || r.status == CAPTURE_END);
            assert_true(r.frames >= last && r.frames <= last + 1);
            assert_true(r.frames == 0 || r.digest[r.frames - 1] == whole.digest[r.frames - 1]);
            last = r.frames;
        }
        assert_int_equal(last, 4);
        struct reading r = read_all((struct slice){ m.ptr, m.len - 1 });
        assert_int_equal(r.status, CAPTURE_CUT);
        assert_non_null(strstr(r.message, "ends inside the block at offset "));
        assert_non_null(strstr(r.message, "after frame 4"));
    }
}

/* 4.2: what one tick is, and the time of a frame of so many ticks. */
static void test_clocks(void **state)
{
    static const struct {
        int tsresol;
        int64_t offset;
        uint64_t ticks;
        int64_t want;
    } clocks[] = {
        { -1, 0, 1500000, 1500000000 },
        { 0, 0, 5, 5000000000 },
        { 3, 0, 1001, 1001000000 },
        { 9, 0, 7, 7 },
        { 9, 10, 7, 10000000007 },
        { 9, -1, 7, -999999993 },
        { 12, 0, 1999, 1 },
        { 28, 0, UINT64_MAX, 1 },
        { 127, 0, UINT64_MAX, 0 },
        { 0x80, 0, 3, 3000000000 },
        { 0x8a, 0, 1536, 1500000000 },
        { 0xa0, 0, 0x280000000, 2500000000 },
        { 0xbf, 0, UINT64_MAX, 1999999999 },
        { 0xff, 0, UINT64_MAX, 0 },
        { 0, 0, UINT64_MAX, 0 }, /* no such time */
        { 6, INT64_MAX, 1, 0 },
        { 6, INT64_MIN, 1, 0 },
        { 9, 9000000000, INT64_MAX, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        AUTO(made_freep) struct made m = { .little = i % 2 == 0 };
        struct input_error err;
        struct frame f;

        section(&m);
        interface(&m, 1, 0, clocks[i].tsresol, clocks[i].offset);
        enhanced(&m, (struct packet){ .ticks = clocks[i].ticks, .captured = 1 });
        struct input *in = input_of(made_slice(&m));
        struct capture *cap = capture_open(in, 0, &err);
        assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
        assert_int_equal(f.at.time, clocks[i].want);
        capture_free(cap);
        input_free(in);
    }
}

static void test_simple_snaplen(void **state)
{
    AUTO(made_freep) struct made m = { .little = true };
    struct input_error err;
    struct frame f;

    (void)state;
    section(&m);
    interface(&m, 1, 10, -1, 0);
    simple(&m, 10, 1000);
    simple(&m, 3, 3); /* padded to 4 */
    struct input *in = input_of(made_slice(&m));
    struct capture *cap = capture_open(in, 0, &err);
    assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
    assert_int_equal(f.data.len, 10);
    assert_int_equal(f.wire_len, 1000);
    assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
    assert_int_equal(f.data.len, 3);
    assert_int_equal(f.wire_len, 3);
    capture_free(cap);
    input_free(in);
}

/* Blocks that span and exceed the reader's window. */
static void test_large(void **state)
{
    AUTO(made_freep) struct made m = { .little = true };

    (void)state;
    section(&m);
    interface(&m, 1, 0, -1, 0);
    for (size_t i = 0; i < 12; i++) {
        enhanced(&m, (struct packet){ .ticks = i, .captured = 300000 });
        if (i == 5)
            unknown(&m, 0xbad, (size_t)3 << 20);
    }
    struct reading r = read_all(made_slice(&m));
    assert_int_equal(r.status, CAPTURE_END);
    assert_int_equal(r.frames, 12);
}

static void check_damaged(const struct made *m, size_t frames, const char *want)
{
    struct reading r = read_all(made_slice(m));

    assert_true(r.opened);
    assert_int_equal(r.status, CAPTURE_DAMAGED);
    assert_int_equal(r.frames, frames);
    assert_non_null(strstr(r.message, want));
    assert_non_null(strstr(r.message, "at offset "));
}

static void put_damage(struct made *m, size_t n)
{
    switch (n) {
    case 0: enhanced(m, (struct packet){ .itf = 1, .captured = 4 }); return;
    case 1: unknown(m, 6, 19); return; /* padded to 20: captured length of 0x77777777 */
    case 2: unknown(m, 6, 16); return;
    case 3: unknown(m, 1, 4); return;
    case 4: unknown(m, 10, 8); return;
    case 5: unknown(m, 0x0a0d0d0a, 16); return;
    case 6:
        unknown(m, 9, 8);
        m->ptr[m->len - 4] ^= 4;
        return;
    case 7:
        put32(m, 9);
        put32(m, 0xfffffffc);
        put_fill(m, 0, 40);
        return;
    case 8:
        put32(m, 9);
        put32(m, 8);
        put_fill(m, 0, 40);
        return;
    case 9:
        put32(m, 9);
        put32(m, 14);
        put_fill(m, 0, 40);
        return;
    default: unknown(m, 3, 0); return;
    }
}

static void test_damaged(void **state)
{
    static const char *const want[] = {
        "not described",     "not described",     "too short",      "too short",
        "do not fit",        "byte order",        "lengths differ", "impossible length",
        "impossible length", "impossible length", "too short",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        AUTO(made_freep) struct made m = { .little = true };
        section(&m);
        interface(&m, 1, 0, -1, 0);
        enhanced(&m, (struct packet){ .captured = 4 });
        put_damage(&m, i);
        enhanced(&m, (struct packet){ .captured = 4 }); /* not reached */
        check_damaged(&m, 1, want[i]);
    }
}

static void test_longer_than_block(void **state)
{
    AUTO(made_freep) struct made m = { .little = true };

    (void)state;
    section(&m);
    interface(&m, 1, 0, -1, 0);
    enhanced(&m, (struct packet){ .captured = 4 });
    size_t at = m.len;
    enhanced(&m, (struct packet){ .captured = 4 });
    m.ptr[at + 20] = 5; /* captured length */
    check_damaged(&m, 1, "longer than its block");
}

static void test_no_interface(void **state)
{
    AUTO(made_freep) struct made m = { .little = true };

    (void)state;
    section(&m);
    simple(&m, 4, 4);
    check_damaged(&m, 0, "not described");
    m.len = 0;
    section(&m);
    interface(&m, 1, 0, -1, 0);
    section(&m); /* forgets it */
    enhanced(&m, (struct packet){ .captured = 4 });
    check_damaged(&m, 0, "not described");
}

/* Options that run over, or end without an end: the packet itself is fine. */
static void test_options(void **state)
{
    AUTO(made_freep) struct made m = { .little = true };
    struct made b = { .little = true };

    (void)state;
    section(&m);
    interface(&m, 1, 0, -1, 0);
    put_fill(&b, 0, 12);
    put32(&b, 4);
    put32(&b, 4);
    put32(&b, 0x11223344);
    put16(&b, 1);
    put16(&b, 4000);
    block(&m, 6, &b);
    struct reading r = read_all(made_slice(&m));
    assert_int_equal(r.status, CAPTURE_END);
    assert_int_equal(r.frames, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_simple_snaplen),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_no_interface),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_longer_than_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
