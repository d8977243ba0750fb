/* test_flow.c - segments in, chunks out (flow.h). */
#include "flow_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

static void drain(struct flows *f, struct script *s)
{
    const struct flow_chunk *c;

    while ((c = flows_next(f)))
        script_chunk(s, c);
}

static void run(struct script *s, const char *segments, const struct flow_limits *limits)
{
    struct flows *f = flows_new(limits);
    struct segment seg;

    script_init(s);
    while (script_next(s, &segments, &seg)) {
        flows_feed(f, &seg);
        drain(f, s);
    }
    flows_finish(f);
    drain(f, s);
    assert_int_equal(flows_live(f), 0);
    flows_free(f);
}

struct vector {
    const char *name;
    const char *segments;
    const char *chunks;
};

static void check(const struct vector *v, size_t count, const struct flow_limits *limits)
{
    for (size_t i = 0; i < count; i++) {
        struct script s;
        run(&s, v[i].segments, limits);
        if (strcmp(script_text(&s), v[i].chunks) != 0) {
            print_error("%s: wanted\n%sgot\n%s", v[i].name, v[i].chunks, script_text(&s));
            fail();
        }
        buf_release(&s.text);
    }
}

#define HANDSHAKE   "A 100 S\nB 500 S a=101\nA 101 a=501\n"
#define DONE        "done 0, A is client\n"
#define CHECK(list) check((list), ARRAY_LEN(list), &flow_limits_default)

static void test_order(void **state)
{
    static const struct vector list[] = {
        { "in order", HANDSHAKE "A 101 a=501 \"GET\"\nB 501 a=104 \"OK\"\nA 104 a=503\n",
          "A \"GET\" @3\nA ack 3\nB \"OK\" @2\nB ack 2\n" DONE },
        { "one overtakes", HANDSHAKE "A 104 a=501 \"def\"\nA 101 a=501 \"abc\"\n",
          "A \"abc\" @3\nA \"def\" @6\n" DONE },
        { "three, backwards", HANDSHAKE "A 107 \"ghi\"\nA 104 \"def\"\nA 101 \"abc\"\n",
          "A \"abc\" @3\nA \"def\" @6\nA \"ghi\" @9\n" DONE },
        { "the same again", HANDSHAKE "A 101 \"abc\"\nA 101 \"abc\"\nA 104 \"def\"\n",
          "A \"abc\" @3\nA \"def\" @6\n" DONE },
        { "the same again, held", HANDSHAKE "A 104 \"def\"\nA 104 \"def\"\nA 101 \"abc\"\n",
          "A \"abc\" @3\nA \"def\" @6\n" DONE },
        { "again, and more", HANDSHAKE "A 101 \"abc\"\nA 101 \"abcdef\"\n",
          "A \"abc\" @3\nA \"def\" @6\n" DONE },
        { "over what is held", HANDSHAKE "A 103 \"c\"\nA 105 \"e\"\nA 101 \"abcdef\"\n",
          "A \"ab\" @2\nA \"c\" @3\nA \"d\" @4\nA \"e\" @5\nA \"f\" @6\n" DONE },
        { "ends in what is held", HANDSHAKE "A 103 \"cdef\"\nA 101 \"abcd\"\n",
          "A \"ab\" @2\nA \"cdef\" @6\n" DONE },
        { "numbers wrap", "A 4294967293 S\nA 4294967294 \"ab\"\nA 1 \"de\"\nA 0 \"c\"\n",
          "A \"ab\" @2\nA \"c\" @3\nA \"de\" @5\n" DONE },
        { "data in the SYN", "A 100 S \"GET\"\nB 500 S a=104\nB 501 a=104 \"OK\"\n",
          "A \"GET\" @3\nA ack 3\nB \"OK\" @2\n" DONE },
        { "... refused", "A 100 S \"GET\"\nB 500 S a=101\nA 101 a=501 \"GET\"\n",
          "A \"GET\" @3\n" DONE },
    };

    (void)state;
    CHECK(list);
}

static void test_start(void **state)
{
    static const struct vector list[] = {
        { "SYN-ACK first", "B 500 S a=101\nA 100 S\nA 101 a=501 \"GET\"\n", "A \"GET\" @3\n" DONE },
        { "only the SYN-ACK", "B 500 S a=101\nA 101 a=501 \"GET\"\n", "A \"GET\" @3\n" DONE },
        { "SYN again", "A 100 S\nA 100 S\nB 500 S a=101\nB 500 S a=101\nA 101 a=501 \"GET\"\n",
          "A \"GET\" @3\n" DONE },
        { "late", "A 777 a=900 \"x\"\nB 900 a=778 \"y\"\nA 778 a=901\n",
          "A \"x\" @1\nA ack 1\nB \"y\" @1\nB ack 1\ndone 0, late\n" },
        { "late, after an acknowledgement", "B 900 a=777\nA 777 a=900 \"x\"\nB 900 a=778\n",
          "A \"x\" @1\nA ack 1\ndone 0, late\n" },
        { "late, the byte before offset 0 comes after it",
          "A 777 a=900 \"xy\"\nA 774 a=900 \"uvw\"\n", "A \"xy\" @2\ndone 0, late\n" },
        { "late, with a hole before the first byte",
          "B 900 a=777\nA 777 a=900\nB 905 a=777 \"ef\"\nA 777 a=907\nB 907 a=777 \"g\"\n"
          "A 777 a=908\nB 908 a=777 \"h\"\n",
          "B gap 5\nB \"ef\" @7\nB \"g\" @8\nB \"h\" @9\nB ack 8\ndone 0, late\n" },
        { "late, by a keep-alive probe", "B 899 a=777 \"\\0\"\nA 777 a=900\nB 900 a=777 \"OK\"\n",
          "B \"OK\" @2\ndone 0, late\n" },
        { "late, by an empty probe", "B 899 a=777\nA 777 a=900\nB 900 a=777 \"OK\"\n",
          "B \"OK\" @2\ndone 0, late\n" },
    };

    (void)state;
    CHECK(list);
}

static void test_gap(void **state)
{
    static const struct vector list[] = {
        { "a hole that was acknowledged",
          HANDSHAKE "B 501 a=101 \"ab\"\nB 506 a=101 \"fg\"\nA 101 a=508\nB 508 a=101 \"h\"\n"
                    "B 509 a=101 \"i\"\n",
          "B \"ab\" @2\nB ack 2\nB gap 3\nB \"fg\" @7\nB \"h\" @8\nB \"i\" @9\nB ack 7\n" DONE },
        { "... and a second later",
          HANDSHAKE "B 503 a=101 \"cd\"\nA 101 a=505\nA 101 a=505 t=1200\n",
          "B gap 2\nB \"cd\" @4\nB ack 4\nB quiet 1196ms flying 4 then none\n" DONE },
        { "the acknowledgement was captured first",
          HANDSHAKE "A 101 a=505\nB 503 a=101 \"cd\"\nB 501 a=101 \"ab\"\n",
          "B \"ab\" @2\nB \"cd\" @4\nB ack 4\n" DONE },
        { "not acknowledged: waits",
          HANDSHAKE "B 503 a=101 \"cd\"\nA 101 a=501\nB 505 a=101 \"e\"\nB 506 a=101 \"f\"\n"
                    "B 507 a=101 \"g\"\nB 501 a=101 \"ab\" t=5000\n",
          "B quiet 4992ms flying 7 then data\n"
          "B \"ab\" @2\nB \"cd\" @4\nB \"e\" @5\nB \"f\" @6\nB \"g\" @7\n" DONE },
        { "the client's next request is proof",
          HANDSHAKE "B 503 a=101 \"cd\"\nA 101 a=505 \"GET\"\n",
          "B gap 2\nB \"cd\" @4\nB ack 4\nA \"GET\" @3\n" DONE },
        { "at the end", HANDSHAKE "B 501 a=101 \"ab\"\nA 101 a=507\n",
          "B \"ab\" @2\nB ack 2\nB gap 4\nB ack 6\n" DONE },
        { "before the FIN", HANDSHAKE "B 501 a=101 \"ab\"\nB 507 F a=101\nA 101 a=508\n",
          "B \"ab\" @2\nB ack 2\nB gap 4\nB ack 6\nB fin\n" DONE },
        { "before the other side's FIN", HANDSHAKE "B 501 a=101 \"ab\"\nA 101 F a=507\n",
          "B \"ab\" @2\nB ack 2\nB gap 4\nB ack 6\nA fin\n" DONE },
        { "... which was only captured first",
          HANDSHAKE "B 501 a=101 \"ab\"\nA 101 F a=507\nB 503 a=101 \"cdef\"\nB 507 a=102\n",
          "B \"ab\" @2\nB ack 2\nB \"cdef\" @6\nB ack 6\nA fin\n" DONE },
        { "cut by the snap length",
          HANDSHAKE "B 501 a=101 \"ab\" wire=6\nB 507 a=101 \"gh\"\nA 101 a=509\n",
          "B \"ab\" @2\nB gap 4\nB \"gh\" @8\nB ack 8\n" DONE },
        { "... and out of order", HANDSHAKE "B 504 a=101 \"d\" wire=3\nB 501 a=101 \"ab\" wire=3\n",
          "B \"ab\" @2\nB gap 1\nB \"d\" @4\nB gap 2\n" DONE },
        { "only one direction, and a second",
          "B 500 S a=101\nB 501 a=101 \"a\"\nB 503 a=101 \"c\"\nB 504 a=101 \"d\" t=1500\n",
          "B \"a\" @1\nB quiet 1497ms flying 3 then data\n"
          "B gap 1\nB \"c\" @3\nB \"d\" @4\n" DONE },
        { "the FIN was not captured",
          HANDSHAKE "B 501 a=101 \"ab\"\nA 101 a=504\nA 101 F a=504\nB 504 a=102\n",
          "B \"ab\" @2\nB ack 2\nB fin\nA fin\n" DONE },
        { "a stray far ahead",
          HANDSHAKE "B 1000000000 a=101 \"zz\"\nB 501 a=101 \"ab\"\nA 101 a=503\n",
          "B \"ab\" @2\nB ack 2\n" DONE },
        { "an acknowledgement of nothing real",
          HANDSHAKE "B 501 a=101 \"ab\"\nA 101 a=2000000000\n", "B \"ab\" @2\n" DONE },
    };

    (void)state;
    CHECK(list);
}

static void test_conflict(void **state)
{
    static const struct vector list[] = {
        { "delivered, not acknowledged", HANDSHAKE "B 501 a=101 \"p:2\"\nB 501 a=101 \"p:9\"\n",
          "B \"p:2\" @3\nB conflict\n" DONE },
        { "delivered, acknowledged", HANDSHAKE "B 501 \"p:2\"\nA 101 a=504\nB 501 \"p:9\"\n",
          "B \"p:2\" @3\nB ack 3\nB conflict\n" DONE },
        { "cut in another way", HANDSHAKE "B 501 \"ab\"\nB 503 \"cd\"\nB 502 \"bXde\"\n",
          "B \"ab\" @2\nB \"cd\" @4\nB conflict\nB \"e\" @5\n" DONE },
        { "held", HANDSHAKE "B 503 \"cd\"\nB 503 \"cX\"\nB 501 \"ab\"\n",
          "B conflict\nB \"ab\" @2\nB \"cd\" @4 ambiguous\n" DONE },
        { "held, by what fills the hole", HANDSHAKE "B 503 \"cd\"\nB 501 \"abX\"\n",
          "B conflict\nB \"ab\" @2\nB \"cd\" @4 ambiguous\n" DONE },
        { "the same bytes are none", HANDSHAKE "B 501 \"ab\"\nB 503 \"cd\"\nB 501 \"abcd\"\n",
          "B \"ab\" @2\nB \"cd\" @4\n" DONE },
        { "nor is the garbage of a keep-alive",
          HANDSHAKE "B 501 \"ab\"\nA 101 a=503\nB 502 \"\\0\"\n", "B \"ab\" @2\nB ack 2\n" DONE },
    };

    (void)state;
    CHECK(list);
}

static void test_close(void **state)
{
    static const struct vector list[] = {
        { "both sides",
          HANDSHAKE "A 101 a=501 \"GET\"\nB 501 F a=104 \"OK\"\nA 104 F a=504\nB 504 a=105\n",
          "A \"GET\" @3\nA ack 3\nB \"OK\" @2\nB fin\nB ack 2\nA fin\n" DONE },
        { "half", HANDSHAKE "A 101 F a=501 \"GET\"\nB 501 a=105 \"OK\"\nA 105 a=503\n",
          "A \"GET\" @3\nA fin\nA ack 3\nB \"OK\" @2\nB ack 2\n" DONE },
        { "bytes after the FIN", HANDSHAKE "A 101 F \"GET\"\nA 104 \"more\"\nA 101 \"GETmore\"\n",
          "A \"GET\" @3\nA fin\n" DONE },
        { "FIN again", HANDSHAKE "A 101 F\nA 101 F\n", "A fin\n" DONE },
        { "FIN overtakes", HANDSHAKE "A 104 F\nA 101 \"GET\"\n", "A \"GET\" @3\nA fin\n" DONE },
        { "reset", HANDSHAKE "B 501 a=101 \"OK\"\nA 101 R a=503\nB 503 a=101 \"more\"\n",
          "B \"OK\" @2\nB ack 2\nA rst\nB \"more\" @6\n" DONE },
        { "FIN, then reset", HANDSHAKE "A 101 F a=501\nB 501 a=102 \"OK\"\nA 102 R\n",
          "A fin\nB \"OK\" @2\nA rst\n" DONE },
        { "reset out of the window", HANDSHAKE "B 501 a=101 \"OK\"\nA 90101 R a=503\nA 101 \"x\"\n",
          "B \"OK\" @2\nA \"x\" @1\n" DONE },
        { "refused", "A 100 S\nB 0 R a=101\n", "B rst\n" DONE },
        { "reset with another TTL", HANDSHAKE "B 501 a=101 \"OK\"\nB 503 R a=101 ttl=57\n",
          "B \"OK\" @2\nB rst by a middlebox\n" DONE },
        { "reset with another IP id",
          HANDSHAKE "B 501 a=101 \"a\" id=10\nB 502 a=101 \"b\" id=11\nB 503 a=101 \"c\" id=12\n"
                    "B 504 a=101 \"d\" id=13\nB 505 a=101 \"e\" id=14\nB 506 R id=40000\n",
          "B \"a\" @1\nB \"b\" @2\nB \"c\" @3\nB \"d\" @4\nB \"e\" @5\nB rst by a "
          "middlebox\n" DONE },
        { "... of a sender whose ids are random",
          HANDSHAKE "B 501 a=101 \"a\" id=10\nB 502 a=101 \"b\" id=31000\nB 503 a=101 \"c\" id=7\n"
                    "B 504 a=101 \"d\" id=900\nB 505 a=101 \"e\" id=60000\nB 506 R id=40000\n",
          "B \"a\" @1\nB \"b\" @2\nB \"c\" @3\nB \"d\" @4\nB \"e\" @5\nB rst\n" DONE },
    };

    (void)state;
    CHECK(list);
}

static void test_reuse(void **state)
{
    static const struct vector list[] = {
        { "after the end",
          HANDSHAKE "A 101 F a=501\nB 501 F a=102\nA 102 a=502\nA 90000 S\nA 90001 \"x\"\n",
          "A fin\nB fin\n" DONE "A \"x\" @1\ndone 1, A is client\n" },
        { "after a reset", HANDSHAKE "A 101 R a=501\nA 102 S\nA 103 \"x\"\n",
          "A rst\n" DONE "A \"x\" @1\ndone 1, A is client\n" },
        { "the end was not captured", HANDSHAKE "A 101 \"ab\"\nA 5000000 S\nA 5000001 \"x\"\n",
          "A \"ab\" @2\n" DONE "A \"x\" @1\ndone 1, A is client\n" },
        { "a SYN in the window is a stray", HANDSHAKE "A 101 \"ab\"\nA 300 S\nA 103 \"c\"\n",
          "A \"ab\" @2\nA \"c\" @3\n" DONE },
        { "numbers in order of appearance", "A 1 S p=4001\nA 1 S p=4002\nA 2 p=4002 \"y\"\n",
          "A \"y\" @1\ndone 0, A is client\ndone 1, A is client\n" },
        { "two VLANs with the same addresses",
          "A 100 S l=1\nA 90000000 S l=2\nA 101 l=1 \"x\"\nA 90000001 l=2 \"y\"\n",
          "A \"x\" @1\nA \"y\" @1\n" DONE "done 1, A is client\n" },
        { "one connection, captured in two VLANs",
          "A 100 S l=1\nA 100 S l=2\nB 500 S a=101 l=2\nB 500 S a=101 l=1\nA 101 a=501 l=1 \"x\"\n"
          "A 101 a=501 l=2 \"x\"\nB 501 a=102 l=2\nB 501 a=102 l=1\n",
          "A \"x\" @1\nA ack 1\n" DONE },
        { "a VLAN for each direction",
          "A 100 S l=1\nB 500 S a=101 l=2\nA 101 a=501 l=1 \"x\"\nB 501 a=102 l=2 \"y\"\n",
          "A \"x\" @1\nA ack 1\nB \"y\" @1\n" DONE },
        { "each input counts for itself",
          "A 1 S p=4001\nA 1 S p=4002\nA 2 p=4001 in=1 \"y\"\nA 1 S p=4003 in=1\n",
          "A \"y\" @1\ndone 1, A is client\ndone 0, A is client\ndone 1, A is client\n" },
        { "what comes long after the end is no new connection",
          HANDSHAKE "A 101 R a=501\nA 1 S p=4001 t=9000\nA 1 S p=4001\nB 501 F a=101 t=60000\n"
                    "B 501 a=101 \"ab\"\n",
          "A rst\n" DONE "B \"ab\" @2\ndone 1, A is client\ndone 2, late\n" },
    };

    (void)state;
    CHECK(list);
}

static void test_silence(void **state)
{
    static const struct vector list[] = {
        { "nothing to send",
          HANDSHAKE "B 501 a=101 \"a\" t=100\nA 101 a=502\nB 502 a=101 \"b\" t=400\n",
          "B \"a\" @1\nB ack 1\nB quiet 300ms flying 1 then data\nB \"b\" @2\n" DONE },
        { "short of the minimum", HANDSHAKE "B 501 \"a\" t=100\nB 502 \"b\" t=299\n",
          "B \"a\" @1\nB \"b\" @2\n" DONE },
        { "the window is zero",
          HANDSHAKE "B 501 a=101 \"abc\" t=100\nA 101 a=504 w=0 t=140\nB 503 a=101 t=300\n"
                    "A 101 a=504 w=0\nB 503 a=101 t=700\nA 101 a=504 w=9 t=1140\n"
                    "B 504 a=101 \"d\" t=1150\n",
          "B \"abc\" @3\nB ack 3\nB quiet 1050ms flying 3 shut 1000ms by 5 probes 2 then data\n"
          "B \"d\" @4\n" DONE },
        { "the window is full",
          "A 100 S ws=0\nB 500 S a=101 ws=0\nA 101 a=501 w=3\nB 501 a=101 \"abc\" t=100\n"
          "A 101 a=504 w=3 t=600\nB 504 a=101 \"d\" t=610\n",
          "B \"abc\" @3\nB ack 3\nB quiet 510ms flying 3 shut 500ms by 4 then data\nB \"d\" "
          "@4\n" DONE },
        { "the window is scaled",
          "A 100 S ws=1\nB 500 S a=101 ws=7\nA 101 a=501 w=3\nB 501 a=101 \"abc\" t=100\n"
          "B 504 a=101 \"d\" t=610\n",
          "B \"abc\" @3\nB quiet 510ms flying 3 then data\nB \"d\" @4\n" DONE },
        { "lost on the way",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nB 501 a=101 \"ab\" t=300\nB 501 a=101 \"ab\" t=700\n"
                    "A 101 a=503\nB 503 a=101 \"c\"\n",
          "B \"ab\" @2\nB ack 2\nB quiet 602ms flying 2 again 2 then data\nB \"c\" @3\n" DONE },
        { "captured twice is not sent twice",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nB 501 a=101 \"ab\"\nB 501 a=101 \"ab\" t=300\n"
                    "B 501 a=101 \"ab\"\nB 503 a=101 \"c\" t=500\n",
          "B \"ab\" @2\nB quiet 400ms flying 2 again 1 then data\nB \"c\" @3\n" DONE },
        { "kept alive by TCP",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nA 101 a=503\nB 502 a=101 t=1000\nA 101 a=503\n"
                    "B 503 F a=101 t=2000\n",
          "B \"ab\" @2\nB ack 2\nB quiet 1900ms flying 2 probes 1 then none\nB fin\n" DONE },
        { "ended by the other side",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nA 101 F a=503 t=600\nB 503 a=102 \"c\" t=900\n",
          "B \"ab\" @2\nB ack 2\nB quiet 500ms flying 2 then none\nA fin\n"
          "B quiet 300ms then data\nB \"c\" @3\n" DONE },
        { "ended by a reset, which has no window",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nA 101 R a=503 w=0 t=600\n",
          "B \"ab\" @2\nB ack 2\nB quiet 500ms flying 2 then none\nA rst\n" DONE },
        { "... after which nobody waits",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nA 101 R a=503 t=600\nA 1 S p=4001 t=1200\n",
          "B \"ab\" @2\nB ack 2\nB quiet 500ms flying 2 then none\nA rst\n" DONE
          "done 1, A is client\n" },
        { "ended by the capture", HANDSHAKE "B 501 a=101 \"ab\" t=100\nA 101 a=503 t=600\n",
          "B \"ab\" @2\nB ack 2\nB quiet 500ms flying 2 then none\n" DONE },
        { "bytes that are missing broke it",
          HANDSHAKE "B 501 a=101 \"ab\" t=100\nA 101 a=503\nA 101 a=505 t=600\n"
                    "B 505 a=101 \"ef\" t=700\nA 101 a=507\nB 507 a=101 \"g\" t=705\n"
                    "B 508 a=101 \"h\" t=710\n",
          "B \"ab\" @2\nB ack 2\nB gap 2\nB \"ef\" @6\nB \"g\" @7\nB \"h\" @8\nB ack 6\n" DONE },
    };

    (void)state;
    CHECK(list);
}

static void test_limits(void **state)
{
    static const struct vector held[] = {
        { "too many held",
          HANDSHAKE "A 101 a=501\nB 502 \"b\"\nB 504 \"d\"\nB 506 \"f\"\nB 508 \"h\"\n",
          "B gap 1\nB \"b\" @2\nB gap 1\nB \"d\" @4\nB gap 1\nB \"f\" @6\nB gap 1\nB \"h\" "
          "@8\n" DONE },
        { "too much held", HANDSHAKE "A 101 a=501\nB 502 \"0123456789ABCDEF\"\nB 518 \"G\"\n",
          "B gap 1\nB \"0123456789ABCDEF\" @17\nB \"G\" @18\n" DONE },
    };
    static const struct vector flows[] = {
        { "the one idle longest goes",
          "A 1 S p=4001\nA 1 S p=4002\nA 2 p=4001 t=150 \"x\"\nA 1 S p=4003 t=160\n"
          "A 2 p=4001 t=270 \"x\"\n",
          "A \"x\" @1\ndone 1, A is client, idle\ndone 2, A is client\ndone 0, A is client\n" },
    };
    const struct flow_limits limits = { .max_segments = 3, .max_buffer = 16, .max_flows = 2 };

    (void)state;
    check(held, ARRAY_LEN(held), &limits);
    check(flows, ARRAY_LEN(flows), &limits);
}

/* A flow that is over does not stay. */
static void test_linger(void **state)
{
    struct flows *f = flows_new(&flow_limits_default);
    const char *text = HANDSHAKE "A 101 F a=501\nB 501 F a=102\nA 102 a=502\n";
    const char *later = "A 1 S p=4001 t=6000\nA 2 p=4001\n";
    struct script s;
    struct segment seg;

    (void)state;
    script_init(&s);
    while (script_next(&s, &text, &seg))
        flows_feed(f, &seg);
    assert_int_equal(flows_live(f), 1);
    while (script_next(&s, &later, &seg))
        flows_feed(f, &seg);
    assert_int_equal(flows_live(f), 1);
    flows_free(f);
    buf_release(&s.text);
}

/* Nobody makes the table slow with one pair of endpoints in many tunnels. */
static void test_namesakes(void **state)
{
    struct flows *f = flows_new(&flow_limits_default);
    const struct flow_chunk *c;

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct segment seg = { .src.port = 1, .dst.port = 2, .link_id = i, .seq = i << 20 };
        seg.flags = TCP_SYN;
        flows_feed(f, &seg);
        while ((c = flows_next(f)))
            assert_int_equal(c->kind, FLOW_DONE);
        assert_true(flows_live(f) <= 16);
    }
    flows_free(f);
}

/* --- any cut, any order --- */

#define STREAM_MAX 4000

struct rng {
    uint64_t x;
};

static uint32_t rng_below(struct rng *r, uint32_t n)
{
    r->x ^= r->x << 13;
    r->x ^= r->x >> 7;
    r->x ^= r->x << 17;
    return (uint32_t)((r->x >> 16) % n);
}

/* What came out of one direction. */
struct got {
    uint8_t bytes[STREAM_MAX];
    size_t len; /* with gaps */
    size_t gaps;
    size_t gap_at;
    size_t gap_len;
    size_t acked;
    size_t conflicts;
};

static void got_take(struct got *g, struct flows *f)
{
    const struct flow_chunk *c;

    while ((c = flows_next(f))) {
        if (c->kind == FLOW_CONFLICT)
            g->conflicts++;
        if (c->kind == FLOW_ACK) {
            assert_true(c->tcp_offset > g->acked && c->tcp_offset <= g->len);
            g->acked = c->tcp_offset;
        }
        if (c->kind == FLOW_GAP) {
            g->gaps++;
            g->gap_at = g->len;
            g->gap_len = c->gap_bytes;
            g->len += c->gap_bytes;
        }
        if (c->kind == FLOW_DATA) {
            assert_true(g->len + c->piece.data.len <= STREAM_MAX);
            memcpy(g->bytes + g->len, c->piece.data.ptr, c->piece.data.len);
            g->len += c->piece.data.len;
            assert_int_equal(c->piece.tcp_end, g->len);
            assert_false(c->piece.ambiguous);
        }
    }
}

struct sender {
    struct flows *f;
    struct got *got;
    const uint8_t *bytes;
    uint32_t isn;
    int64_t time;
};

static struct segment segment_from(struct sender *s, unsigned side)
{
    s->time += NS_PER_MS / 4;
    struct segment seg = { .src = { .port = side ? 2000 : 80 },
                           .dst = { .port = side ? 80 : 2000 },
                           .window = 60000,
                           .window_scale = -1,
                           .flags = TCP_ACK,
                           .at = { .time = s->time } };
    return seg;
}

static void send_bytes(struct sender *s, size_t off, size_t len)
{
    struct segment seg = segment_from(s, 0);

    seg.seq = s->isn + 1 + (uint32_t)off;
    seg.ack = 1;
    seg.payload = (struct slice){ s->bytes + off, len };
    seg.wire_len = (uint32_t)len;
    flows_feed(s->f, &seg);
    got_take(s->got, s->f);
}

static void send_ack(struct sender *s, size_t off)
{
    struct segment seg = segment_from(s, 1);

    seg.seq = 1;
    seg.ack = s->isn + 1 + (uint32_t)off;
    flows_feed(s->f, &seg);
    got_take(s->got, s->f);
}

static void send_start(struct sender *s, struct rng *r, struct got *got, uint8_t *bytes, size_t len)
{
    *got = (struct got){ .len = 0 };
    *s = (struct sender){ .f = flows_new(&flow_limits_default),
                          .got = got,
                          .bytes = bytes,
                          .isn = rng_below(r, 2) ? UINT32_MAX - rng_below(r, 2000)
                                                 : rng_below(r, UINT32_MAX),
                          .time = NS_PER_SEC };
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)rng_below(r, 256);
    struct segment syn = segment_from(s, 0);
    syn.flags = TCP_SYN;
    syn.seq = s->isn;
    flows_feed(s->f, &syn);
    got_take(got, s->f);
}

static void send_end(struct sender *s)
{
    flows_finish(s->f);
    got_take(s->got, s->f);
    flows_free(s->f);
}

/* How far the receiver has all, byte by byte. */
static size_t have_all(const bool *have, size_t from, size_t len)
{
    while (from < len && have[from])
        from++;
    return from;
}

/* Segments overtake each other, come again, cut in another way; none is lost. */
static void shuffled(struct rng *r)
{
    uint8_t bytes[STREAM_MAX];
    bool have[STREAM_MAX] = { false };
    struct sender s;
    struct got got;
    size_t len = 1 + rng_below(r, STREAM_MAX);
    size_t reach = 1 + rng_below(r, 300);
    size_t next = 0;

    send_start(&s, r, &got, bytes, len);
    while (next < len) {
        size_t off = next + rng_below(r, (uint32_t)reach);
        off -= off > 40 ? rng_below(r, 40) : 0;
        if (rng_below(r, 3) == 0)
            off = next;
        if (off >= len)
            off = len - 1;
        size_t n = 1 + rng_below(r, 60);
        n = n < len - off ? n : len - off;
        send_bytes(&s, off, n);
        memset(have + off, true, n);
        next = have_all(have, next, len);
        if (rng_below(r, 2))
            send_ack(&s, next);
    }
    send_ack(&s, len);
    assert_int_equal(got.len, len);
    assert_int_equal(got.acked, len);
    send_end(&s);
    assert_int_equal(got.gaps, 0);
    assert_int_equal(got.conflicts, 0);
    assert_memory_equal(got.bytes, bytes, len);
}

static void test_shuffled(void **state)
{
    struct rng r = { 42 };

    (void)state;
    for (int i = 0; i < 1500; i++)
        shuffled(&r);
}

/* One segment is not in the capture, but was received. */
static void one_dropped(struct rng *r, size_t dropped)
{
    uint8_t bytes[STREAM_MAX];
    struct sender s;
    struct got got;
    const size_t len = 1200;
    size_t off = 0;
    size_t hole = 0;
    size_t hole_len = 0;

    send_start(&s, r, &got, bytes, len);
    for (size_t i = 0; off < len; i++) {
        size_t n = 2 + rng_below(r, 60);
        n = len - off - n < 2 || n > len - off ? len - off : n;
        if (i != dropped)
            send_bytes(&s, off, n);
        if (i == dropped)
            hole = off, hole_len = n;
        off += n;
        if (rng_below(r, 2))
            send_ack(&s, off);
    }
    send_ack(&s, len);
    send_end(&s);
    assert_int_equal(got.len, len);
    assert_int_equal(got.acked, len);
    assert_int_equal(got.gaps, hole_len > 0 ? 1 : 0);
    assert_int_equal(got.gap_len, hole_len);
    if (hole_len == 0)
        return;
    assert_int_equal(got.gap_at, hole);
    memcpy(got.bytes + hole, bytes + hole, hole_len);
    assert_memory_equal(got.bytes, bytes, len);
}

static void test_one_dropped(void **state)
{
    struct rng r = { 7 };

    (void)state;
    for (size_t dropped = 0; dropped < 42; dropped++) {
        for (int i = 0; i < 20; i++)
            one_dropped(&r, dropped);
    }
}

/* A conflict is found in as many bytes as are under way, up to 64 KiB. */
static void test_conflict_far_back(void **state)
{
    static uint8_t bytes[STREAM_MAX];
    struct rng r = { 3 };
    struct sender s;
    struct got got;
    uint8_t first = 0;

    (void)state;
    send_start(&s, &r, &got, bytes, STREAM_MAX);
    first = bytes[0];
    send_ack(&s, 0);
    for (size_t off = 0; off < STREAM_MAX; off += 100)
        send_bytes(&s, off, 100);
    bytes[0] ^= 1;
    send_bytes(&s, 0, 100);
    assert_int_equal(got.conflicts, 1);
    bytes[0] = first;
    send_bytes(&s, 0, 100);
    assert_int_equal(got.conflicts, 1);
    send_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_conflict),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_linger),
        cmocka_unit_test(test_namesakes),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_one_dropped),
        cmocka_unit_test(test_conflict_far_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
