/* test_capture.c - classic pcap: byte orders, resolutions, cuts, damage; and the filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "make_capture.h"

#define MICRO 0xa1b2c3d4u
#define NANO  0xa1b23c4du

struct variant {
    uint32_t magic;
    bool little;
};

static const struct variant variants[] = {
    { MICRO, false },
    { MICRO, true },
    { NANO, false },
    { NANO, true },
};

static struct made pcap_begin(const struct variant *v, uint32_t linktype, uint32_t snaplen)
{
    struct made m = { .little = v->little };

    put32(&m, v->magic);
    put16(&m, 2);
    put16(&m, 4);
    put64(&m, 0);
    put32(&m, snaplen);
    put32(&m, linktype);
    return m;
}

static void pcap_add(struct made *m, uint32_t sec, uint32_t fraction, size_t captured,
                     uint32_t wire)
{
    put32(m, sec);
    put32(m, fraction);
    put32(m, (uint32_t)captured);
    put32(m, wire);
    put_fill(m, (uint8_t)(sec + captured), captured);
}

static void test_variants(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        AUTO(made_freep) struct made m = pcap_begin(&variants[i], 1, 65535);
        int64_t unit = variants[i].magic == MICRO ? 1000 : 1;
        struct input_error err = { "" };
        struct frame f;

        pcap_add(&m, 1700000000, 123456, 60, 60);
        pcap_add(&m, 1700000001, 1, 10, 1514); /* cut by the snap length */
        pcap_add(&m, 1700000001, 2, 0, 0);
        struct input *in = input_of(made_slice(&m));
        struct capture *cap = capture_open(in, 7, &err);
        assert_non_null(cap);
        assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
        assert_int_equal(f.data.len, 60);
        assert_int_equal(f.wire_len, 60);
        assert_int_equal(f.linktype, 1);
        assert_int_equal(f.interface, 0);
        assert_int_equal(f.at.time, 1700000000 * NS_PER_SEC + 123456 * unit);
        assert_int_equal(f.at.frame, 1);
        assert_int_equal(f.at.input, 7);
        assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
        assert_int_equal(f.data.len, 10);
        assert_int_equal(f.wire_len, 1514);
        assert_int_equal(f.at.time, 1700000001 * NS_PER_SEC + unit);
        assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
        assert_int_equal(f.at.frame, 3);
        assert_int_equal(capture_next(cap, &f), CAPTURE_END);
        assert_int_equal(capture_frames(cap), 3);
        assert_int_equal(capture_secrets(cap).len, 0);
        capture_free(cap);
        input_free(in);
    }
}

/* Cut anywhere, a file gives the frames that are whole, and says that it is cut. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        AUTO(made_freep) struct made m = pcap_begin(&variants[i], 1, 65535);
        size_t border[5] = { m.len };
        for (uint32_t n = 1; n < ARRAY_LEN(border); n++) {
            pcap_add(&m, n, n, n, n + 5);
            border[n] = m.len;
        }
        struct reading whole = read_all(made_slice(&m));
        assert_int_equal(whole.status, CAPTURE_END);
        assert_int_equal(whole.frames, 4);
        for (size_t cut = 0; cut < m.len; cut++) {
            struct reading r = read_all((struct slice){ m.ptr, cut });
            size_t want = 0;
            while (want + 1 < ARRAY_LEN(border) && border[want + 1] <= cut)
                want++;
            assert_int_equal(r.opened, cut >= border[0]);
            assert_true(r.opened || r.message[0] != '\0');
            if (!r.opened)
                continue;
            assert_int_equal(r.frames, want);
            assert_int_equal(r.status, cut == border[want] ? CAPTURE_END : CAPTURE_CUT);
            assert_true(want == 0 || r.digest[want - 1] == whole.digest[want - 1]);
        }
    }
}

static void test_cut_message(void **state)
{
    AUTO(made_freep) struct made m = pcap_begin(&variants[1], 1, 65535);

    (void)state;
    pcap_add(&m, 1, 0, 50, 50);
    pcap_add(&m, 2, 0, 50, 50);
    struct reading r = read_all((struct slice){ m.ptr, m.len - 1 });
    assert_non_null(strstr(r.message, "ends inside frame 2, after 1 whole"));
    r = read_all((struct slice){ m.ptr, 10 });
    assert_non_null(strstr(r.message, "is cut within the first 24 bytes"));
}

static void test_damaged(void **state)
{
    AUTO(made_freep) struct made m = pcap_begin(&variants[1], 1, 65535);

    (void)state;
    pcap_add(&m, 1, 0, 50, 50);
    put32(&m, 2);
    put32(&m, 0);
    put32(&m, 0x7fffffff); /* captured: impossible */
    put32(&m, 0x7fffffff);
    put_fill(&m, 0, 100);
    struct reading r = read_all(made_slice(&m));
    assert_int_equal(r.status, CAPTURE_DAMAGED);
    assert_int_equal(r.frames, 1);
    assert_non_null(strstr(r.message, "damaged at frame 2"));
    m.ptr[4] = 9; /* version */
    r = read_all(made_slice(&m));
    assert_false(r.opened);
    assert_non_null(strstr(r.message, "cannot be read as a capture: "));
}

static void test_not_a_capture(void **state)
{
    struct reading r = read_all(SLICE_LIT("{\"neither\": \"of the two\"}"));

    (void)state;
    assert_false(r.opened);
    assert_string_equal(r.message, "is not a capture (neither pcap nor pcapng)");
}

/* Raw IP has two values; frames carry that of the file format whatever libpcap makes of it. */
static void test_raw(void **state)
{
    static const uint32_t raw[] = { 12, 101 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(raw); i++) {
        AUTO(made_freep) struct made m = pcap_begin(&variants[1], raw[i], 65535);
        struct input_error err;
        struct frame f;

        pcap_add(&m, 1, 0, 40, 40);
        struct input *in = input_of(made_slice(&m));
        struct capture *cap = capture_open(in, 0, &err);
        assert_int_equal(capture_next(cap, &f), CAPTURE_FRAME);
        assert_int_equal(f.linktype, 101);
        capture_free(cap);
        input_free(in);
    }
}

/* IPv4, TCP from port 1000 to 80. */
static struct made ip_frame(size_t link_header, unsigned ethertype)
{
    struct made m = { 0 };

    put_fill(&m, 0, link_header);
    if (ethertype != 0)
        patch16(&m, link_header - 2, ethertype);
    put64(&m, 0x4500002800010000);
    put64(&m, 0x400600000a000001);
    put32(&m, 0x0a000002);
    put16(&m, 1000);
    put16(&m, 80);
    put_fill(&m, 0, 8);
    put32(&m, 0x50100000);
    put32(&m, 0);
    return m;
}

static bool passes(struct capture_filter *f, const struct made *m, int linktype)
{
    struct frame frame = { .data = made_slice(m),
                           .wire_len = (uint32_t)m->len,
                           .linktype = linktype };

    return capture_filter_pass(f, &frame);
}

static void test_filter(void **state)
{
    AUTO(made_freep) struct made ether = ip_frame(14, 0x0800);
    AUTO(made_freep) struct made raw = ip_frame(0, 0);
    AUTO(made_freep) struct made sll = ip_frame(16, 0x0800);
    struct input_error err = { "" };
    struct capture_filter *f = capture_filter_new("tcp port 80", &err);

    (void)state;
    assert_non_null(f);
    assert_true(passes(f, &ether, 1));
    assert_true(passes(f, &raw, 101));
    assert_true(passes(f, &raw, 12));
    assert_true(passes(f, &sll, 113));
    assert_false(passes(f, &ether, 101));
    assert_false(passes(f, &ether, 9999)); /* a link type without a program */
    capture_filter_free(f);
    f = capture_filter_new("tcp port 81", &err);
    assert_false(passes(f, &ether, 1));
    assert_false(passes(f, &raw, 101));
    capture_filter_free(f);
    f = capture_filter_new("ether host 00:00:00:00:00:00", &err); /* not on all link types */
    assert_true(passes(f, &ether, 1));
    assert_false(passes(f, &raw, 101));
    capture_filter_free(f);
    f = capture_filter_new(NULL, &err);
    assert_true(passes(f, &ether, 9999));
    capture_filter_free(f);
    assert_null(capture_filter_new("port eighty ((", &err));
    assert_non_null(strstr(err.text, "filter: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),      cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_message),   cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_not_a_capture), cmocka_unit_test(test_raw),
        cmocka_unit_test(test_filter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
