/*
 * test_conn.c - who is the client, and what is spoken (conn.h). The layers are replaced by one that
 * writes down what it gets.
 */
#include "conn.h"
#include "flow_script.h"
#include "h1.h"
#include "h2.h"

#include <setjmp.h>

#include <cmocka.h>

struct exchanges {
    struct script log;
};

struct spy {
    struct exchanges *all;
    const struct conn *conn;
    struct h1_upgrade upgrade;
    struct tls_above above;
    struct layer up;
};

static const char *who(enum dir dir)
{
    return dir == DIR_CLIENT ? "C" : "S";
}

static void spy_data(void *self, enum dir dir, const struct piece *piece)
{
    struct spy *s = self;
    struct slice data = piece->data;
    struct slice upgrade = SLICE_LIT("HTTP/1.1 101 ");

    script_say(&s->all->log, "%s ", who(dir));
    script_piece(&s->all->log, piece);
    script_say(&s->all->log, "\n");
    if (slice_starts(data, upgrade) && s->upgrade.take) {
        data.ptr += upgrade.len;
        data.len -= upgrade.len;
        s->up = s->upgrade.take(s->upgrade.ctx, data, NULL);
    }
    if (s->above.make && !s->up.ops && data.ptr[0] == '(') /* "(alpn)first bytes" */ {
        const uint8_t *end = memchr(data.ptr, ')', data.len);
        struct slice alpn = { data.ptr + 1, (size_t)(end - data.ptr) - 1 };
        struct slice first = { end + 1, data.len - alpn.len - 2 };
        s->up = s->above.make(s->above.ctx, alpn, first, dir);
    }
}

static void spy_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    struct spy *s = self;

    (void)at;
    script_say(&s->all->log, "%s gap %d\n", who(dir), (int)len);
}

static void spy_ack(void *self, enum dir dir, uint64_t tcp_offset, struct place at)
{
    struct spy *s = self;

    (void)at;
    script_say(&s->all->log, "%s ack %d\n", who(dir), (int)tcp_offset);
}

static void spy_silence(void *self, enum dir dir, const struct silence *q)
{
    struct spy *s = self;

    script_say(&s->all->log, "%s ", who(dir));
    script_silence(&s->all->log, q);
    script_say(&s->all->log, "\n");
}

static void spy_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    struct spy *s = self;

    (void)at;
    script_say(&s->all->log, "%s %s%s\n", who(dir), kind == CLOSE_FIN ? "fin" : "rst",
               s->conn->middlebox ? " by a middlebox" : "");
}

static void spy_finish(void *self, struct place at)
{
    struct spy *s = self;

    if (s->up.ops)
        s->up.ops->finish(s->up.self, at);
    script_say(&s->all->log, "end%s\n", s->conn->truncated ? " of the file" : "");
    free(s);
}

static struct layer spy_new(const char *name, struct exchanges *all, const struct conn *conn,
                            struct spy with)
{
    static const struct layer_ops ops = {
        .name = "spy",
        .data = spy_data,
        .gap = spy_gap,
        .ack = spy_ack,
        .silence = spy_silence,
        .close = spy_close,
        .finish = spy_finish,
    };
    struct spy *s = mem_alloc(sizeof(*s));

    *s = with;
    s->all = all;
    s->conn = conn;
    script_say(&all->log, "%s, %s is client%s\n", name, conn->client.port != 80 ? "A" : "B",
               conn->starts_late ? ", late" : "");
    return (struct layer){ &ops, s };
}

struct layer h1_new(struct exchanges *all, const struct conn *conn, uint64_t conn_serial,
                    struct h1_upgrade upgrade)
{
    (void)conn_serial;
    return spy_new("h1", all, conn, (struct spy){ .upgrade = upgrade });
}

struct layer h2_new(struct exchanges *all, const struct conn *conn, uint64_t conn_serial,
                    struct exchange *upgraded)
{
    (void)conn_serial;
    (void)upgraded;
    return spy_new("h2", all, conn, (struct spy){ .all = all });
}

struct layer tls_new(struct exchanges *all, const struct keylog *keys, const struct conn *conn,
                     struct tls_above above)
{
    (void)keys;
    return spy_new("tls", all, conn, (struct spy){ .above = above });
}

bool h1_is_chunks(struct slice s)
{
    return slice_starts(s, SLICE_LIT("1f\r\n"));
}

bool h2_is_preface(struct slice s)
{
    return slice_starts(s, SLICE_LIT(H2_PREFACE));
}

bool h2_is_frames(struct slice s)
{
    return slice_starts(s, SLICE_LIT("<frames>"));
}

bool tls_is(struct slice s)
{
    return slice_starts(s, SLICE_LIT("<record>"));
}

// NOLINTNEXTLINE(readability-function-size): as in exchange.h
void exchanges_note(struct exchanges *all, uint64_t exchange, struct rec_note note, struct place at)
{
    (void)exchange;
    (void)at;
    switch ((int)note.kind) {
    case NOTE_STARTS_LATE: script_say(&all->log, "note: starts late"); break;
    case NOTE_CONFLICT: script_say(&all->log, "note: conflict"); break;
    case NOTE_WEBSOCKET: script_say(&all->log, "note: websocket"); break;
    case NOTE_OTHER_PROTOCOL: script_say(&all->log, "note: other protocol"); break;
    default: fail();
    }
    if (note.count > 1)
        script_say(&all->log, " %d", (int)note.count);
    script_say(&all->log, note.tcp_stream != UINT32_MAX ? " in %d\n" : "\n", (int)note.tcp_stream);
}

static void drain(struct flows *f, struct conns *c)
{
    const struct flow_chunk *chunk;

    while ((chunk = flows_next(f)))
        conns_feed(c, chunk);
}

static void run(struct exchanges *all, const char *segments, bool truncated)
{
    struct flows *f = flows_new(&flow_limits_default);
    struct conns *c = conns_new(all, NULL);
    struct segment seg;

    script_init(&all->log);
    while (script_next(&all->log, &segments, &seg)) {
        flows_feed(f, &seg);
        drain(f, c);
    }
    if (truncated)
        conns_set_truncated(c);
    flows_finish(f);
    drain(f, c);
    conns_finish(c, (struct place){ 0 }, truncated);
    conns_free(c);
    flows_free(f);
}

struct vector {
    const char *name;
    const char *segments;
    const char *log;
};

static void check(const struct vector *v, size_t count, bool truncated)
{
    for (size_t i = 0; i < count; i++) {
        struct exchanges all;
        run(&all, v[i].segments, truncated);
        if (strcmp(script_text(&all.log), v[i].log) != 0) {
            print_error("%s: wanted\n%sgot\n%s", v[i].name, v[i].log, script_text(&all.log));
            fail();
        }
        buf_release(&all.log.text);
    }
}

#define CHECK(list) check((list), ARRAY_LEN(list), false)
#define HANDSHAKE   "A 100 S\nB 500 S a=101\nA 101 a=501\n"

static void test_protocol(void **state)
{
    static const struct vector list[] = {
        { "HTTP/1.1",
          HANDSHAKE "A 101 a=501 \"GET / HTTP/1.1\\r\\n\"\nB 501 a=117 \"HTTP/1.1 200 \"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nC ack 16\nS \"HTTP/1.1 200 \" "
          "@13\nend\n" },
        { "in small pieces",
          HANDSHAKE "A 101 a=501 \"PO\"\nA 103 a=501 \"ST \"\nA 106 a=501 \"/x\"\n",
          "h1, A is client\nC \"PO\" @2\nC \"ST \" @5\nC \"/x\" @7\nend\n" },
        { "HTTP/2",
          HANDSHAKE "A 101 a=501 \"PRI * HTTP/2.0\\r\\n\"\nA 117 \"\\r\\nSM\\r\\n\\r\\n\"\n",
          "h2, A is client\nC \"PRI * HTTP/2.0\\r\\n\" @16\nC \"\\r\\nSM\\r\\n\\r\\n\" "
          "@24\nend\n" },
        { "HTTP/2, the server's SETTINGS come first",
          HANDSHAKE "B 501 a=101 \"\\0\\0\\0\x04\\0\\0\\0\\0\\0\"\n",
          "h2, A is client\nS \"\\0\\0\\0\x04\\0\\0\\0\\0\\0\" @9\nend\n" },
        { "another", HANDSHAKE "A 101 a=501 \"SSH-2.0-x\"\nB 501 a=110 \"SSH-2.0-y\"\n",
          "note: other protocol\n" },
        { "another, the server speaks first",
          HANDSHAKE "B 501 a=101 \"220 mail\"\nA 101 a=509 \"EHLO x\"\n",
          "note: other protocol\n" },
        { "nothing is said", HANDSHAKE "A 101 F a=501\nB 501 F a=102\n", "" },
        { "closed within the start", HANDSHAKE "A 101 a=501 \"PO\"\nA 103 F a=501\n",
          "h1, A is client\nC \"PO\" @2\nC fin\nend\n" },
        { "websocket",
          HANDSHAKE "A 101 \"GET / HTTP/1.1\\r\\n\"\nB 501 a=117 \"HTTP/1.1 101 websocket\"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nC ack 16\n"
          "S \"HTTP/1.1 101 websocket\" @22\nnote: websocket in 0\nend\n" },
        { "h2c", HANDSHAKE "A 101 \"GET / HTTP/1.1\\r\\n\"\nB 501 a=117 \"HTTP/1.1 101 h2c\"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nC ack 16\n"
          "S \"HTTP/1.1 101 h2c\" @16\nh2, A is client\nend\nend\n" },
    };

    (void)state;
    CHECK(list);
}

static void test_tls(void **state)
{
    static const struct vector list[] = {
        { "HTTP/1.1 by ALPN", HANDSHAKE "A 101 \"<record>\"\n", "note: other protocol\n" },
        { "late, HTTP/1.1 by ALPN", "A 101 \"<record>\"\nA 109 \"(http/1.1)x\"\n",
          "note: starts late in 0\ntls, A is client, late\nC \"<record>\" @8\n"
          "C \"(http/1.1)x\" @19\nh1, A is client, late\nend\nend\n" },
        { "late, HTTP/2 by ALPN", "A 101 \"<record>\"\nA 109 \"(h2)x\"\n",
          "note: starts late in 0\ntls, A is client, late\nC \"<record>\" @8\n"
          "C \"(h2)x\" @13\nh2, A is client, late\nend\nend\n" },
        { "late, by the first bytes", "A 101 \"<record>\"\nA 109 \"()GET / HTTP/1.1\\r\\n\"\n",
          "note: starts late in 0\ntls, A is client, late\nC \"<record>\" @8\n"
          "C \"()GET / HTTP/1.1\\r\\n\" @26\nh1, A is client, late\nend\nend\n" },
        { "late, none of ours within", "A 101 \"<record>\"\nA 109 \"()SSH\"\n",
          "note: starts late in 0\ntls, A is client, late\nC \"<record>\" @8\n"
          "C \"()SSH\" @13\nend\nnote: other protocol\n" },
        { "a ClientHello", HANDSHAKE "A 101 \"\x16\x03\x01\"\nA 104 \"\x01\\0\x01\"\n",
          "note: other protocol\n" },
    };

    (void)state;
    CHECK(list);
}

static void test_late(void **state)
{
    static const struct vector list[] = {
        { "from a request on: nothing is missing",
          "A 101 a=501 \"GET / HTTP/1.1\\r\\n\"\nB 501 a=117 \"HTTP/1.1 200 \"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nC ack 16\nS \"HTTP/1.1 200 \" "
          "@13\nend\n" },
        { "from a response on", "B 501 a=117 \"HTTP/1.1 200 \"\nA 117 a=514\n",
          "note: starts late in 0\nh1, A is client, late\nS \"HTTP/1.1 200 \" @13\nS ack "
          "13\nend\n" },
        { "in an event stream", "B 501 a=117 \"xyz\\n\\nid: 7\\n\"\nA 117 a=512\n",
          "note: starts late in 0\nh1, A is client, late\nS \"xyz\\n\\nid: 7\\n\" @11\nS ack "
          "11\nend\n" },
        { "in chunks", "B 501 a=117 \"1f\\r\\nxyz\"\n",
          "note: starts late in 0\nh1, A is client, late\nS \"1f\\r\\nxyz\" @7\nend\n" },
        { "in frames", "A 501 a=117 \"<frames>\"\n",
          "note: starts late in 0\nh2, A is client, late\nC \"<frames>\" @8\nend\n" },
        { "in a body of a server that is known",
          "A 1 S p=4001\nA 2 \"GET / HTTP/1.1\\r\\n\" p=4001\nB 501 a=117 \"tail of a body\"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\n"
          "note: starts late in 1\nh1, A is client, late\nS \"tail of a body\" @14\n"
          "end\nend\n" },
        { "in a body of one that is not, until a message starts",
          "A 117 a=501 \"tail\"\nB 501 a=121 \"HTTP/1.1 200 \"\n",
          "note: starts late in 0\nh1, A is client, late\nS \"HTTP/1.1 200 \" @13\nend\n" },
        { "in something else", "A 117 a=501 \"tail\"\nB 501 a=121 \"tail\"\n",
          "note: other protocol\n" },
    };

    (void)state;
    CHECK(list);
}

static void test_hurt(void **state)
{
    static const struct vector list[] = {
        { "the start of the request is missing: from the response on",
          HANDSHAKE "A 111 a=501 \"rest\"\nB 501 a=115 \"HTTP/1.1 200 \"\nA 115 a=514\n",
          "h1, A is client\nC gap 0\nS gap 0\nS \"HTTP/1.1 200 \" @13\nS ack 13\nend\n" },
        { "... and nothing tells",
          HANDSHAKE "A 111 a=501 \"rest\"\nB 501 a=115 \"what\"\n"
                    "A 115 a=505 \"GET / HTTP/1.1\\r\\n\"\n",
          "h1, A is client\nC gap 0\nS gap 0\nC \"GET / HTTP/1.1\\r\\n\" @30\nend\n" },
        { "a conflict",
          HANDSHAKE "A 101 \"GET / HTTP/1.1\\r\\n\"\nA 101 \"PUT / HTTP/1.1\\r\\n\"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nnote: conflict in 0\nend\n" },
        { "a reset by a middlebox", HANDSHAKE "A 101 \"GET / HTTP/1.1\\r\\n\"\nB 501 R ttl=3\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nS rst by a middlebox\nend\n" },
        { "a silence", HANDSHAKE "A 101 \"GET / HTTP/1.1\\r\\n\"\nA 117 \"x\" t=1000\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nC quiet 996ms flying 16 then data\n"
          "C \"x\" @17\nend\n" },
    };

    (void)state;
    CHECK(list);
}

static void test_truncated(void **state)
{
    static const struct vector list[] = {
        { "the file is cut", HANDSHAKE "A 101 \"GET / HTTP/1.1\\r\\n\"\n",
          "h1, A is client\nC \"GET / HTTP/1.1\\r\\n\" @16\nend of the file\n" },
    };

    (void)state;
    check(list, ARRAY_LEN(list), true);
}

static void run_cut(struct exchanges *all, struct slice bytes, size_t cut)
{
    struct flows *f = flows_new(&flow_limits_default);
    struct conns *c = conns_new(all, NULL);
    struct segment seg = {
        .src = { .port = 4000 }, .dst = { .port = 80 }, .flags = TCP_SYN, .window_scale = -1
    };

    script_init(&all->log);
    flows_feed(f, &seg);
    seg = (struct segment){ .src = seg.src, .dst = seg.dst, .seq = 1 };
    while (bytes.len > 0) {
        seg.wire_len = (uint32_t)(bytes.len < cut ? bytes.len : cut);
        assert_true(slice_take(&bytes, seg.wire_len, &seg.payload));
        flows_feed(f, &seg);
        drain(f, c);
        seg.seq += seg.wire_len;
    }
    flows_finish(f);
    drain(f, c);
    conns_free(c);
    flows_free(f);
}

/* However the first bytes are cut, the same layer gets them all. */
static void test_any_cut(void **state)
{
    static const struct {
        const char *bytes;
        const char *layer;
        const char *end;
    } starts[] = {
        { "POST /mcp HTTP/1.1\r\n", "h1,", "@20\nend" },
        { H2_PREFACE, "h2,", "@24\nend" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        for (size_t cut = 1; cut <= strlen(starts[i].bytes); cut++) {
            struct exchanges all;
            run_cut(&all, slice_str(starts[i].bytes), cut);
            struct slice log = slice_str(script_text(&all.log));
            assert_true(slice_starts(log, slice_str(starts[i].layer)));
            assert_true(slice_has_nocase(log, slice_str(starts[i].end)));
            buf_release(&all.log.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protocol),  cmocka_unit_test(test_tls),
        cmocka_unit_test(test_late),      cmocka_unit_test(test_hurt),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_any_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
