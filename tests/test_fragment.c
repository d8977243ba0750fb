/* test_fragment.c - reassembly: order, duplicates, contradictions, ceilings, age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fragment.h"

#include <stdlib.h>

static const uint8_t src[16] = { [15] = 1 };
static const uint8_t dst[16] = { [15] = 2 };
static uint8_t const text[] = "The quick brown fox jumps over the lazy dog and on.";

enum { LEN = 50 };

/* Bytes from..to of the text, as a fragment of datagram id. */
static struct fragment part(uint32_t id, uint32_t from, uint32_t to)
{
    return (struct fragment){ .src = src,
                              .dst = dst,
                              .id = id,
                              .protocol = 6,
                              .offset = from,
                              .more = to < LEN,
                              .data = { text + from, to - from },
                              .wire = to - from };
}

static enum fragment_result add(struct fragments *f, struct fragment p, struct datagram *ret)
{
    return fragments_add(f, &p, ret);
}

static void check_whole(const struct datagram *d)
{
    assert_true(slice_eq(d->data, (struct slice){ text, LEN }));
    assert_int_equal(d->wire, LEN);
    assert_int_equal(d->protocol, 6);
}

/* Every order of four fragments. */
static void test_orders(void **state)
{
    static const uint32_t border[] = { 0, 8, 24, 40, LEN };
    struct fragments *f = fragments_new();
    struct datagram d;

    (void)state;
    for (unsigned order = 0; order < 256; order++) {
        unsigned seen = 0;
        for (unsigned i = 0; i < 4; i++) {
            unsigned n = order >> 2 * i & 3;
            enum fragment_result r = add(f, part(order, border[n], border[n + 1]), &d);
            seen |= 1u << n;
            assert_int_equal(r, seen == 15 ? FRAGMENT_WHOLE : FRAGMENT_HELD);
            if (r == FRAGMENT_WHOLE)
                check_whole(&d);
        }
        fragments_release(f);
    }
    fragments_free(f);
}

static void test_overlap(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d;

    (void)state;
    /* the same bytes again do no harm */
    assert_int_equal(add(f, part(1, 0, 24), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(1, 0, 24), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(1, 8, 32), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(1, 16, LEN), &d), FRAGMENT_WHOLE);
    check_whole(&d);
    /* other bytes discard all of it */
    struct fragment other = part(2, 8, 32);
    other.data.ptr++;
    assert_int_equal(add(f, part(2, 0, 24), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, other, &d), FRAGMENT_BROKEN);
    assert_int_equal(add(f, part(2, 24, LEN), &d), FRAGMENT_HELD);
    fragments_free(f);
}

static void test_contradiction(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d;
    struct fragment end = part(1, 16, 24);

    (void)state;
    end.more = false;
    assert_int_equal(add(f, part(1, 32, LEN), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, end, &d), FRAGMENT_BROKEN); /* two ends */
    end = part(2, 16, 24);
    end.more = false;
    assert_int_equal(add(f, part(2, 24, 32), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, end, &d), FRAGMENT_BROKEN); /* an end before what is there */
    end = part(3, 16, 24);
    end.more = false;
    assert_int_equal(add(f, end, &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(3, 24, 32), &d), FRAGMENT_BROKEN); /* past the end */
    struct fragment odd = part(4, 0, 13);
    assert_int_equal(add(f, odd, &d), FRAGMENT_BROKEN); /* not the last, and no multiple of 8 */
    odd = part(5, 8, 8);
    assert_int_equal(add(f, odd, &d), FRAGMENT_BROKEN); /* empty */
    odd = part(6, 32, LEN);
    odd.offset = 65528;
    assert_int_equal(add(f, odd, &d), FRAGMENT_BROKEN); /* longer than a datagram can be */
    fragments_free(f);
}

static void test_kept_apart(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d;
    struct fragment p = part(1, 24, LEN);

    (void)state;
    assert_int_equal(add(f, part(1, 0, 24), &d), FRAGMENT_HELD);
    p.link_id = 9;
    assert_int_equal(add(f, p, &d), FRAGMENT_HELD);
    p = part(1, 24, LEN);
    p.src = dst;
    assert_int_equal(add(f, p, &d), FRAGMENT_HELD);
    p = part(1, 24, LEN);
    p.protocol = 17;
    assert_int_equal(add(f, p, &d), FRAGMENT_HELD);
    p = part(1, 24, LEN);
    p.ipv6 = true;
    assert_int_equal(add(f, p, &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(2, 24, LEN), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(1, 24, LEN), &d), FRAGMENT_WHOLE);
    check_whole(&d);
    fragments_free(f);
}

/* RFC 8200 4.5: the protocol is that of the first fragment. */
static void test_protocol(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d;
    struct fragment p = part(1, 24, LEN);

    (void)state;
    p.ipv6 = true;
    p.protocol = 99;
    assert_int_equal(add(f, p, &d), FRAGMENT_HELD);
    p = part(1, 0, 24);
    p.ipv6 = true;
    assert_int_equal(add(f, p, &d), FRAGMENT_WHOLE);
    check_whole(&d);
    fragments_free(f);
}

static void test_age(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d;
    struct fragment p = part(1, 24, LEN);

    (void)state;
    assert_int_equal(add(f, part(1, 0, 24), &d), FRAGMENT_HELD);
    p.time = 60 * NS_PER_SEC; /* another datagram with the same id */
    assert_int_equal(add(f, p, &d), FRAGMENT_HELD);
    p = part(1, 0, 24);
    p.time = 61 * NS_PER_SEC;
    assert_int_equal(add(f, p, &d), FRAGMENT_WHOLE);
    check_whole(&d);
    fragments_free(f);
}

/* A flood of first fragments: the newest are kept. */
static void test_flood(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d;

    (void)state;
    for (uint32_t id = 0; id < 10000; id++)
        assert_int_equal(add(f, part(id, 0, 24), &d), FRAGMENT_HELD);
    assert_int_equal(add(f, part(9999, 24, LEN), &d), FRAGMENT_WHOLE);
    check_whole(&d);
    fragments_release(f);
    assert_int_equal(add(f, part(9950, 24, LEN), &d), FRAGMENT_WHOLE);
    assert_int_equal(add(f, part(3, 24, LEN), &d), FRAGMENT_HELD);
    check_whole(&d); /* not released yet: a newcomer does not take its place */
    fragments_free(f);
}

/* The largest datagram there can be, in the smallest fragments. */
static void test_largest(void **state)
{
    struct fragments *f = fragments_new();
    struct datagram d = { 0 };
    uint8_t *bytes = mem_alloc(65535);

    (void)state;
    for (uint32_t i = 0; i < 65535; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (uint32_t at = 0; at < 65535; at += 8) {
        struct fragment p = part(1, 0, 8);
        p.offset = at;
        p.more = at + 8 < 65535;
        p.wire = p.more ? 8 : 7;
        p.data = (struct slice){ bytes + at, p.wire };
        assert_int_equal(add(f, p, &d), p.more ? FRAGMENT_HELD : FRAGMENT_WHOLE);
    }
    assert_true(slice_eq(d.data, (struct slice){ bytes, 65535 }));
    free(bytes);
    fragments_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_contradiction), cmocka_unit_test(test_kept_apart),
        cmocka_unit_test(test_protocol),      cmocka_unit_test(test_age),
        cmocka_unit_test(test_flood),         cmocka_unit_test(test_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
