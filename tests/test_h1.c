/*
 * test_h1.c - h1.c, driven by small dialogues and watched through exchange_log.h.
 *
 * A dialogue is read line by line:
 *     > text      the client sends text and CRLF
 *     < text      the server does
 *     ! command   cut (a new segment) | fin, rst WHO | gap WHO BYTES | ack OFFSET | silence | late
 * At the end of a line "|" stands for no line end, "~" for a bare LF. Lines of one side that follow
 * each other are one segment. Every dialogue must give the same log wherever its segments are cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "h1.h"

#include "exchange_log.h"

struct play {
    struct exchanges *log;
    struct conn conn;
    struct layer layer;
    struct buf segment[2];
    uint64_t offset[2];
    uint32_t frame;
    size_t cut; /* every segment of cut_dir is cut here too */
    enum dir cut_dir;
    struct h1_upgrade upgrade;
    bool sealed;
};

static struct place play_at(const struct play *p)
{
    return (struct place){ .time = (int64_t)p->frame * NS_PER_MS, .frame = p->frame };
}

static void play_bytes(struct play *p, enum dir dir, const uint8_t *ptr, size_t len)
{
    if (len == 0)
        return;
    p->offset[dir] += len;
    /* A block of its own lets ASan see reads past the end. */
    uint8_t *own = mem_alloc(len);
    memcpy(own, ptr, len);
    p->layer.ops->data(p->layer.self, dir,
                       &(struct piece){ .data = { own, len },
                                        .at = play_at(p),
                                        .tcp_end = p->offset[dir],
                                        .sealed = p->sealed });
    free(own);
}

static void play_send(struct play *p, enum dir dir)
{
    struct buf *b = &p->segment[dir];
    size_t cut = dir == p->cut_dir && p->cut < b->len ? p->cut : b->len;

    if (b->len == 0)
        return;
    p->frame++;
    play_bytes(p, dir, b->ptr, cut);
    play_bytes(p, dir, b->ptr + cut, b->len - cut);
    b->len = 0;
}

static void play_start(struct play *p)
{
    if (!p->layer.ops)
        p->layer = h1_new(p->log, &p->conn, 1, p->upgrade);
}

static enum dir who_of(struct slice s)
{
    return slice_has_nocase(s, SLICE_LIT("client")) ? DIR_CLIENT : DIR_SERVER;
}

static uint64_t number_of(struct slice s)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] >= '0' && s.ptr[i] <= '9')
            v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    return v;
}

static void play_command(struct play *p, struct slice s)
{
    const struct silence silence = { .since = play_at(p) };
    enum dir who = who_of(s);

    if (slice_starts(s, SLICE_LIT("late"))) {
        p->conn.starts_late = true; /* before the first line of bytes */
        return;
    }
    play_start(p);
    play_send(p, DIR_CLIENT);
    play_send(p, DIR_SERVER);
    if (slice_starts(s, SLICE_LIT("cut")))
        return;
    p->frame++;
    if (slice_starts(s, SLICE_LIT("fin")))
        p->layer.ops->close(p->layer.self, who, CLOSE_FIN, play_at(p));
    else if (slice_starts(s, SLICE_LIT("rst")))
        p->layer.ops->close(p->layer.self, who, CLOSE_RST, play_at(p));
    else if (slice_starts(s, SLICE_LIT("ack")))
        p->layer.ops->ack(p->layer.self, DIR_SERVER, number_of(s), play_at(p));
    else if (slice_starts(s, SLICE_LIT("silence")))
        p->layer.ops->silence(p->layer.self, DIR_SERVER, &silence);
    else if (slice_starts(s, SLICE_LIT("gap"))) {
        p->offset[who] += number_of(s);
        p->layer.ops->gap(p->layer.self, who, number_of(s), play_at(p));
    } else
        fail_msg("no such command: " SLICE_FMT, SLICE_ARG(s));
}

static void play_line(struct play *p, struct slice line)
{
    enum dir dir = line.ptr[0] == '>' ? DIR_CLIENT : DIR_SERVER;
    struct slice text = { line.ptr + 2, line.len > 2 ? line.len - 2 : 0 };
    struct slice end = SLICE_LIT("\r\n");

    if (line.ptr[0] == '!') {
        play_command(p, text);
        return;
    }
    play_start(p);
    play_send(p, dir == DIR_CLIENT ? DIR_SERVER : DIR_CLIENT);
    uint8_t last = text.len ? text.ptr[text.len - 1] : 0;
    if (last == '|')
        end.len = 0;
    if (last == '~')
        end = SLICE_LIT("\n");
    if (last == '|' || last == '~')
        text.len--;
    assert_true(buf_add(&p->segment[dir], text) && buf_add(&p->segment[dir], end));
}

static void play_init(struct play *p)
{
    *p = (struct play){ .cut = SIZE_MAX };
    p->log = exchanges_new((struct record_sink){ 0 }, NULL);
    buf_init(&p->segment[0], 1u << 20);
    buf_init(&p->segment[1], 1u << 20);
}

static void play_script(struct play *p, const char *script)
{
    while (*script) {
        size_t n = strcspn(script, "\n");
        play_line(p, (struct slice){ (const uint8_t *)script, n });
        script += n + (script[n] == '\n');
    }
    play_command(p, SLICE_LIT("cut"));
    p->frame++;
    p->layer.ops->finish(p->layer.self, play_at(p));
}

static void play_free(struct play *p)
{
    assert_int_equal(p->log->open, 0);
    buf_release(&p->segment[0]);
    buf_release(&p->segment[1]);
    exchanges_free(p->log);
}

/* The longest segment a dialogue may have, for the cuts. */
#define LONGEST 400

static void check(const char *name, const char *script, const char *want)
{
    for (size_t cut = 0; cut < 2 * (size_t)LONGEST; cut++) {
        struct play p;

        play_init(&p);
        p.cut = cut / 2;
        p.cut_dir = cut % 2 ? DIR_SERVER : DIR_CLIENT;
        play_script(&p, script);
        const char *got = exchange_log_text(p.log);
        if (strcmp(got, want) != 0)
            fail_msg("%s, %s cut at %zu:\n%s", name, cut % 2 ? "server" : "client", cut / 2, got);
        play_free(&p);
    }
}

#define REQUEST                                                                                    \
    "> GET /mcp HTTP/1.1\n"                                                                        \
    "> Host: a\n"                                                                                  \
    ">\n"
#define REQUEST_LOG(n, more)                                                                       \
    "#" n " asks GET /mcp" more "\n"                                                               \
    "   Host=a\n"                                                                                  \
    "#" n " asked\n"
#define CHUNKED                                                                                    \
    "< HTTP/1.1 200 OK\n"                                                                          \
    "< Transfer-Encoding: chunked\n"                                                               \
    "<\n"
#define CHUNKED_LOG(n, more)                                                                       \
    "#" n " answer 200 chunked" more "\n"                                                          \
    "   Transfer-Encoding=chunked\n"

static const struct {
    const char *name;
    const char *script;
    const char *want;
} cases[] = {
    {
        "a length",
        "> POST /mcp HTTP/1.1\n"
        "> Host: example.com\n"
        "> Content-Length: 7\n"
        ">\n"
        "> {\"a\":1}|\n"
        "< HTTP/1.1 200 OK\n"
        "< Content-Length: 5\n"
        "<\n"
        "< hello|\n"
        "! ack 43\n",
        "#1 asks POST /mcp length @60\n"
        "   Host=example.com\n"
        "   Content-Length=7\n"
        "#1 sends \"{\"a\":1}\" @67\n"
        "#1 asked\n"
        "#1 answer 200 length @38\n"
        "   Content-Length=5\n"
        "#1 receives \"hello\" @43\n"
        "#1 end: complete\n"
        "#1 late ack @43\n",
    },
    {
        "chunks, an extension, trailers that are not merged",
        REQUEST CHUNKED "< 5;name=value\n"
                        "< hello\n"
                        "< 00007\n"
                        "<  world!\n"
                        "< 0\n"
                        "< Mcp-Session-Id: no\n"
                        "<\n",
        REQUEST_LOG("1", " @30")
            CHUNKED_LOG("1", " @47") "#1 receives \"hello world!\" @82\n#1 end: complete\n",
    },
    {
        "an open stream, acknowledged step by step",
        REQUEST CHUNKED "! ack 47\n"
                        "< 3\n"
                        "< abc\n"
                        "! ack 55\n"
                        "! ack 55\n"
                        "< 3\n"
                        "< def\n"
                        "! silence\n"
                        "! ack 60\n"
                        "! ack 63\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 ack @47\n"
                                                          "#1 receives \"abc\" @53\n"
                                                          "#1 ack @55\n"
                                                          "#1 receives \"def\" @61\n"
                                                          "#1 silence\n"
                                                          "#1 ack @60\n"
                                                          "#1 ack @63\n"
                                                          "#1 end: open\n",
    },
    {
        "keep-alive, and a late acknowledgement in two steps",
        REQUEST "< HTTP/1.1 200 OK\n"
                "< Content-Length: 2\n"
                "<\n"
                "< hi|\n"
                "! ack 39\n"
                "! ack 40\n" REQUEST CHUNKED "< 0\n<\n"
                "! ack 92\n",
        REQUEST_LOG("1", " @30") "#1 answer 200 length @38\n"
                                 "   Content-Length=2\n"
                                 "#1 receives \"hi\" @40\n"
                                 "#1 end: complete\n"
                                 "#1 late ack @39\n"
                                 "#1 late ack @40\n" REQUEST_LOG("2", " @60")
                                     CHUNKED_LOG("2", " @87") "#2 end: complete\n"
                                                              "#2 late ack @92\n",
    },
    {
        "pipelining",
        REQUEST REQUEST CHUNKED "< 1\n< x\n< 0\n<\n< HTTP/1.1 204 No Content\n<\n",
        REQUEST_LOG("1", " @30") REQUEST_LOG("2", " pipelined @60")
            CHUNKED_LOG("1", " @47") "#1 receives \"x\" @51\n"
                                     "#1 end: complete\n"
                                     "#2 answer 204 @85\n"
                                     "#2 end: complete\n",
    },
    {
        "interim answers",
        REQUEST "< HTTP/1.1 100 Continue\n"
                "<\n"
                "< HTTP/1.1 103 Early Hints\n"
                "< Link: x\n"
                "<\n" CHUNKED,
        REQUEST_LOG("1", " @30") "#1 answer 200 chunked interim @109\n"
                                 "   Transfer-Encoding=chunked\n"
                                 "#1 end: open\n",
    },
    {
        "answers without a body, whatever they say",
        "> HEAD / HTTP/1.1\n>\n"
        "< HTTP/1.1 200 OK\n< Content-Length: 10\n<\n"
        "> GET / HTTP/1.1\n>\n"
        "< HTTP/1.1 304 Not Modified\n< Content-Length: 10\n<\n"
        "> GET / HTTP/1.1\n>\n"
        "< HTTP/1.1 204 No Content\n< Transfer-Encoding: chunked\n<\n"
        "> GET / HTTP/1.1\n>\n"
        "< HTTP/1.1 202 Accepted\n< Content-Length: 0\n<\n",
        "#1 asks HEAD / @19\n#1 asked\n"
        "#1 answer 200 @39\n   Content-Length=10\n#1 end: complete\n"
        "#2 asks GET / @37\n#2 asked\n"
        "#2 answer 304 @88\n   Content-Length=10\n#2 end: complete\n"
        "#3 asks GET / @55\n#3 asked\n"
        "#3 answer 204 @143\n   Transfer-Encoding=chunked\n#3 end: complete\n"
        "#4 asks GET / @73\n#4 asked\n"
        "#4 answer 202 length @187\n   Content-Length=0\n#4 end: complete\n",
    },
    {
        "a tunnel",
        "> CONNECT a:1 HTTP/1.1\n>\n"
        "< HTTP/1.1 200 OK\n<\n"
        "> \x16\x03|\n"
        "< GET|\n",
        "#1 asks CONNECT a:1 @24\n#1 asked\n#1 answer 200 @19\n#1 end: complete\n",
    },
    {
        "until close",
        REQUEST "< HTTP/1.1 200 OK\n<\n< data: 1~\n< ~\n! fin server\n",
        REQUEST_LOG("1", " @30") "#1 answer 200 until-close @19\n"
                                 "#1 receives \"data: 1\\n\\n\" @28\n"
                                 "#1 end: complete\n",
    },
    {
        "lenient: bare LF, empty lines before, folds, no reason",
        "> ~\n>\n> GET /a HTTP/1.1~\n> A: b ~\n>  c~\n> \td~\n> E:~\n> ~\n"
        "<\n< HTTP/1.1 200~\n< Content-Length: 1~\n< ~\n< x|\n",
        "#1 asks GET /a fold @35\n"
        "   A=b  c\\x09d (folded)\n"
        "   E=\n"
        "#1 asked\n"
        "#1 answer 200 length @34\n   Content-Length=1\n#1 receives \"x\" @35\n#1 end: complete\n",
    },
    {
        "two lengths",
        REQUEST "< HTTP/1.1 200 OK\n< Content-Length: 3\n< Content-Length: 2\n<\n< ab|\n",
        REQUEST_LOG("1", " @30") "#1 answer 200 length length-conflict @57\n"
                                 "   Content-Length=3\n   Content-Length=2\n"
                                 "#1 receives \"ab\" @59\n#1 end: complete\n",
    },
    {
        "the same length twice, and length with chunks",
        "> POST / HTTP/1.1\n> Content-Length: 1\n> Content-Length: 1\n>\n> a|\n"
        "< HTTP/1.1 200 OK\n< Transfer-Encoding: chunked\n< Content-Length: 9\n<\n"
        "< 1\n< b\n< 0\n<\n",
        "#1 asks POST / length @57\n   Content-Length=1\n   Content-Length=1\n"
        "#1 sends \"a\" @58\n#1 asked\n"
        "#1 answer 200 te+cl chunked @66\n"
        "   Transfer-Encoding=chunked\n   Content-Length=9\n"
        "#1 receives \"b\" @70\n#1 end: complete\n",
    },
    {
        "cut by the server",
        REQUEST CHUNKED "< 5\n< abc|\n! fin server\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 receives \"abc\" @53\n#1 end: fin\n",
    },
    {
        "reset by the server",
        REQUEST CHUNKED "< 5\n< abc|\n! rst server\n< de\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 receives \"abc\" @53\n#1 end: rst\n",
    },
    {
        "given up by the client; what comes after is still passed on",
        REQUEST CHUNKED "! fin client\n< 3\n< abc\n! rst server\n",
        REQUEST_LOG("1", " @30")
            CHUNKED_LOG("1", " @47") "#1 receives \"abc\" @53\n#1 end: client-fin\n",
    },
    {
        "a half-close, and an answer that is complete",
        REQUEST "! fin client\n" CHUNKED "< 0\n<\n! fin server\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 end: complete\n",
    },
    {
        "a half-close, and an answer until close",
        REQUEST "! fin client\n< HTTP/1.0 200 OK\n<\n< a|\n! fin server\n",
        REQUEST_LOG("1", " @30") "#1 answer 200 until-close @19\n"
                                 "#1 receives \"a\" @20\n#1 end: complete\n",
    },
    {
        "an answer until close that the client did not wait for",
        REQUEST "< HTTP/1.0 200 OK\n<\n< a|\n! fin client\n! fin server\n",
        REQUEST_LOG("1", " @30") "#1 answer 200 until-close @19\n"
                                 "#1 receives \"a\" @20\n#1 end: client-fin\n",
    },
    {
        "reset by the client, with another request behind",
        REQUEST REQUEST CHUNKED "! rst client\n",
        REQUEST_LOG("1", " @30") REQUEST_LOG("2", " pipelined @60")
            CHUNKED_LOG("1", " @47") "#1 end: client-rst\n#2 end: client-rst\n",
    },
    {
        "never answered",
        REQUEST "! fin server\n",
        REQUEST_LOG("1", " @30") "#1 end: fin\n",
    },
    {
        "a request that is cut",
        "> POST / HTTP/1.1\n> Content-Length: 9\n>\n> abc|\n! fin client\n",
        "#1 asks POST / length @38\n   Content-Length=9\n#1 sends \"abc\" @41\n"
        "#1 asked in part\n#1 end: client-fin\n",
    },
    {
        "answered before the request was sent to its end",
        "> POST / HTTP/1.1\n> Content-Length: 6\n>\n> abc|\n"
        "< HTTP/1.1 413 No\n< Content-Length: 0\n<\n"
        "> def|\n" REQUEST,
        "#1 asks POST / length @38\n   Content-Length=6\n#1 sends \"abc\" @41\n"
        "#1 answer 413 length @38\n   Content-Length=0\n#1 end: complete\n" REQUEST_LOG(
            "2", " @74") "#2 end: open\n",
    },
    {
        "an answer nobody asked for",
        "< HTTP/1.1 200 Ok\n< Content-Length: 0\n<\n! fin server\n",
        "#0 note: response without a request\n"
        "#1 answer 200 length request-unknown @38\n   Content-Length=0\n#1 end: complete\n",
    },
    {
        "a server ends an idle connection",
        "< HTTP/1.1 408 Timeout\n< Content-Length: 0\n<\n! fin server\n",
        "#1 answer 408 length request-unknown @43\n   Content-Length=0\n#1 end: complete\n",
    },
    {
        "bytes nobody asked for",
        "< hello\n" REQUEST CHUNKED "< 0\n<\n",
        "#0 note: bytes that answer no request\n" REQUEST_LOG("1", " @30")
            CHUNKED_LOG("1", " @54") "#1 end: complete\n",
    },
    {
        "a bad chunk; the next exchange is found",
        REQUEST CHUNKED "< 2\n< ab\n< xyz\n" REQUEST CHUNKED "< 0\n<\n",
        REQUEST_LOG("1", " @30")
            CHUNKED_LOG("1", " @47") "#1 receives \"ab\" @52\n"
                                     "#1 note: invalid character in chunk size header\n"
                                     "#1 gap of 0 in the answer\n"
                                     "#1 end: gap\n" REQUEST_LOG("2", " @60")
                                         CHUNKED_LOG("2", " @106") "#2 end: complete\n",
    },
    {
        "a bad request; the next one is found",
        "> GET / HTTP/9x\n> Host: a\n>\n"
        "< HTTP/1.1 400 Bad\n< Content-Length: 0\n<\n" REQUEST CHUNKED "< 0\n<\n",
        "#1 note: invalid HTTP version\n"
        "#1 answer 400 length request-unknown @39\n   Content-Length=0\n"
        "#1 end: complete\n" REQUEST_LOG("2", " @56") CHUNKED_LOG("2", " @86") "#2 end: complete\n",
    },
    {
        "a gap within a length",
        REQUEST "< HTTP/1.1 200 OK\n< Content-Length: 9\n<\n< abc|\n! gap server 3\n< def|\n",
        REQUEST_LOG("1", " @30") "#1 answer 200 length @38\n   Content-Length=9\n"
                                 "#1 receives \"abc\" @41\n#1 gap of 3 in the answer\n"
                                 "#1 receives \"def\" @47\n#1 end: complete\n",
    },
    {
        "a gap to the end of a length, and one past it",
        REQUEST "< HTTP/1.1 200 OK\n< Content-Length: 4\n<\n< a|\n! gap server 3\n" REQUEST
                "< HTTP/1.1 200 OK\n< Content-Length: 4\n<\n< a|\n! gap server 4\n" REQUEST CHUNKED,
        REQUEST_LOG("1", " @30") "#1 answer 200 length @38\n   Content-Length=4\n"
                                 "#1 receives \"a\" @39\n#1 gap of 3 in the answer\n"
                                 "#1 end: complete\n" REQUEST_LOG(
                                     "2",
                                     " @60") "#2 answer 200 length @80\n   Content-Length=4\n"
                                             "#2 receives \"a\" @81\n#2 gap of 4 in the answer\n"
                                             "#2 end: gap\n" REQUEST_LOG("3", " @90")
                                                 CHUNKED_LOG("3", " @132") "#3 end: open\n",
    },
    {
        "gaps within a chunk, and to its end",
        REQUEST CHUNKED
        "< 9\n< abc|\n! gap server 3\n< def\n< 4\n< g|\n! gap server 3\n<\n< 0\n<\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 receives \"abc\" @53\n"
                                                          "#1 gap of 3 in the answer\n"
                                                          "#1 receives \"defg\" @65\n"
                                                          "#1 gap of 3 in the answer\n"
                                                          "#1 end: complete\n",
    },
    {
        "a gap over whole chunks",
        REQUEST CHUNKED "< 3\n< abc\n! gap server 50\n< 3\n< def\n< 2\n< gh\n< 0\n<\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 receives \"abc\" @53\n"
                                                          "#1 gap of 50 in the answer\n"
                                                          "#1 receives \"defgh\" @118\n"
                                                          "#1 end: complete\n",
    },
    {
        "a gap that ends within a chunk, of unknown length",
        REQUEST CHUNKED "< 3\n< abc\n! gap server 0\n< rest~\n<\n< 3\n< def\n< 2\n< gh\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 receives \"abc\" @53\n"
                                                          "#1 gap of 0 in the answer\n"
                                                          "#1 receives \"rest\\ndefgh\" @75\n"
                                                          "#1 end: open\n",
    },
    {
        "a gap, and a chunk that is then cut",
        REQUEST CHUNKED "! gap server 9\n< 9\n< abc|\n! fin server\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 gap of 9 in the answer\n"
                                                          "#1 receives \"abc\" @62\n"
                                                          "#1 end: fin\n",
    },
    {
        "a gap over the end of a stream",
        REQUEST CHUNKED "! gap server 9\n! fin server\n",
        REQUEST_LOG("1", " @30")
            CHUNKED_LOG("1", " @47") "#1 gap of 9 in the answer\n#1 end: gap\n",
    },
    {
        "a gap over the end of a stream and the start of the next",
        REQUEST CHUNKED "! gap server 20\n< Server: x\n<\n" REQUEST CHUNKED "< 0\n<\n",
        REQUEST_LOG("1", " @30")
            CHUNKED_LOG("1", " @47") "#1 gap of 20 in the answer\n#1 end: "
                                     "gap\n" REQUEST_LOG("2", " @60")
                                         CHUNKED_LOG("2", " @127") "#2 end: complete\n",
    },
    {
        "a gap over the head of the only answer that can come",
        REQUEST "! gap server 100\n< 3\n< abc\n< 0\n<\n",
        REQUEST_LOG("1", " @30") "#1 gap of 100 in the answer head\n"
                                 "#1 answer without its head\n"
                                 "#1 receives \"abc\" @106\n#1 end: complete\n",
    },
    {
        "a gap over one of two answers: which, cannot be told",
        REQUEST REQUEST "! gap server 100\n" CHUNKED "< 0\n<\n" REQUEST,
        REQUEST_LOG("1", " @30") REQUEST_LOG(
            "2", " pipelined @60") "#1 gap of 100 in the answer head\n"
                                   "#3 answer 200 chunked request-unknown @147\n   "
                                   "Transfer-Encoding=chunked\n"
                                   "#3 end: complete\n"
                                   "#1 end: gap\n"
                                   "#2 end: gap\n" REQUEST_LOG("4", " @90") "#4 end: open\n",
    },
    {
        "a gap in the body of a request",
        "> POST / HTTP/1.1\n> Content-Length: 9\n>\n> abc|\n! gap client 3\n> def|\n"
        "< HTTP/1.1 202 OK\n< Content-Length: 0\n<\n",
        "#1 asks POST / length @38\n   Content-Length=9\n#1 sends \"abc\" @41\n"
        "#1 gap of 3 in the request\n#1 sends \"def\" @47\n#1 asked\n"
        "#1 answer 202 length @38\n   Content-Length=0\n#1 end: complete\n",
    },
    {
        "a gap over a request",
        REQUEST CHUNKED "< 0\n<\n! gap client 100\n" CHUNKED "< 0\n<\n" REQUEST CHUNKED,
        REQUEST_LOG("1", " @30") CHUNKED_LOG(
            "1", " @47") "#1 end: complete\n"
                         "#2 gap of 100 in the request head\n"
                         "#2 answer 200 chunked request-unknown @99\n   Transfer-Encoding=chunked\n"
                         "#2 end: complete\n" REQUEST_LOG("3", " @160")
                             CHUNKED_LOG("3", " @151") "#3 end: open\n",
    },
    {
        "a gap in the head of a request",
        "> GET / HTTP/1.1\n> Ho|\n! gap client 5\n> a\n>\n" CHUNKED "< 0\n<\n" REQUEST,
        "#1 gap of 5 in the request head\n"
        "#1 answer 200 chunked request-unknown @47\n   Transfer-Encoding=chunked\n"
        "#1 end: complete\n" REQUEST_LOG("2", " @58") "#2 end: open\n",
    },
    {
        "joined within a chunk",
        "! late\n< rest~\n< ~\n<\n< 3\n< abc\n< 3\n< def\n",
        "#1 answer without its head\n#1 receives \"rest\\n\\nabcdef\" @22\n#1 end: open\n",
    },
    {
        "joined in a stream without chunks, and in no stream",
        "! late\n< a~\n< data: b~\n< ~\n! fin server\n",
        "#1 answer without its head\n#1 receives \"a\\ndata: b\\n\\n\" @11\n#1 end: complete\n",
    },
    {
        "joined between messages",
        "! late\n" REQUEST CHUNKED "< 0\n<\n",
        REQUEST_LOG("1", " @30") CHUNKED_LOG("1", " @47") "#1 end: complete\n",
    },
    {
        "joined in messages that are of no use",
        "! late\n> rest\":1}|\n! cut\n< rest\":2}|\n! cut\n" REQUEST CHUNKED,
        REQUEST_LOG("1", " @38") CHUNKED_LOG("1", " @55") "#1 end: open\n",
    },
    {
        "an upgrade nobody takes",
        "> GET / HTTP/1.1\n> Connection: Upgrade\n> Upgrade: websocket\n>\n"
        "< HTTP/1.1 101 Switching\n< Connection: Upgrade\n< Upgrade: websocket\n<\n"
        "< \x81\x05hello|\n> \x81\x05hello|\n",
        "#1 asks GET / @59\n   Connection=Upgrade\n   Upgrade=websocket\n#1 asked\n"
        "#1 answer 101 @67\n   Connection=Upgrade\n   Upgrade=websocket\n#1 end: complete\n",
    },
    {
        "an upgrade that is declined",
        "> GET / HTTP/1.1\n> Connection: Upgrade\n> Upgrade: h2c\n>\n" CHUNKED "< 0\n<\n" REQUEST,
        "#1 asks GET / @53\n   Connection=Upgrade\n   Upgrade=h2c\n#1 asked\n" CHUNKED_LOG(
            "1", " @47") "#1 end: complete\n" REQUEST_LOG("2", " @83") "#2 end: open\n",
    },
};

static void test_dialogues(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(cases[i].name, cases[i].script, cases[i].want);
}

static void expect(struct play *p, const char *script, const char *want)
{
    play_script(p, script);
    assert_string_equal(exchange_log_text(p->log), want);
    play_free(p);
}

/* No byte of a sealed piece is there before all of it is. */
static void test_sealed_pieces(void **state)
{
    struct play p;

    (void)state;
    play_init(&p);
    p.sealed = true;
    expect(&p,
           "< HTTP/1.1 200 OK\n<\n< a|\n" /* nobody asked, which is as good here */
           "! fin server\n",
           "#0 note: response without a request\n"
           "#1 answer 200 until-close request-unknown @20\n"
           "#1 receives \"a\" @20\n#1 end: complete\n");
}

static void test_places(void **state)
{
    struct play p;

    (void)state;
    play_init(&p);
    p.log->frames = true;
    expect(&p,
           "> GET / HTTP/1.1\n! cut\n>\n"
           "< HTTP/1.1 200 OK\n! cut\n< Content-Length: 2\n<\n! cut\n< a|\n! cut\n< b|\n"
           "! ack 42\n" REQUEST CHUNKED "! fin client\n< 1\n< x\n! rst server\n",
           "#1 asks GET / @18 in 2\n#1 asked in 2\n"
           "#1 answer 200 length @38 in 4\n   Content-Length=2\n"
           "#1 receives \"ab\" @40\n#1 end: complete in 6\n"
           "#1 late ack @42 in 7\n"
           "#2 asks GET /mcp @48 in 8\n   Host=a\n#2 asked in 8\n"
           "#2 answer 200 chunked @87 in 9\n   Transfer-Encoding=chunked\n"
           "#2 receives \"x\" @91\n"
           "#2 end: client-fin in 10\n");
}

/* What takes over from h1 in the test below: writes down what it gets. */
static void next_data(void *self, enum dir dir, const struct piece *piece)
{
    log_printf(self, "next %s \"" SLICE_FMT "\"\n", dir == DIR_CLIENT ? "sends" : "receives",
               SLICE_ARG(piece->data));
}

static void next_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    (void)dir;
    (void)at;
    log_printf(self, "next gap of %d\n", (int)len);
}

static void next_ack(void *self, enum dir dir, uint64_t tcp_offset, struct place at)
{
    (void)dir;
    (void)at;
    log_printf(self, "next ack @%d\n", (int)tcp_offset);
}

static void next_silence(void *self, enum dir dir, const struct silence *s)
{
    (void)dir;
    (void)s;
    log_printf(self, "next silence\n");
}

static void next_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    (void)dir;
    (void)kind;
    (void)at;
    log_printf(self, "next close\n");
}

static void next_finish(void *self, struct place at)
{
    (void)at;
    log_printf(self, "next finish\n");
}

static struct layer take(void *ctx, struct slice protocol, struct exchange *pending)
{
    static const struct layer_ops ops = { "next",       next_data,  next_gap,   next_ack,
                                          next_silence, next_close, next_finish };
    const struct exchange_end_facts facts = { .kind = END_COMPLETE };
    struct exchanges *all = pending->all;

    log_printf(all, "upgrade to " SLICE_FMT "\n", SLICE_ARG(protocol));
    exchange_end(pending, &facts, (struct place){ 0 });
    return (struct layer){ &ops, ctx };
}

static void test_upgrade_hands_everything_on(void **state)
{
    struct play p;

    (void)state;
    play_init(&p);
    p.upgrade = (struct h1_upgrade){ take, p.log };
    expect(&p,
           "> GET / HTTP/1.1\n> Upgrade: h2c\n>\n"
           "< HTTP/1.1 101 Switching\n< Connection: Upgrade\n< Upgrade: h2c\n<\n< one|\n"
           "> two|\n! ack 5\n! silence\n! gap server 7\n! fin client\n",
           "#1 asks GET / @32\n   Upgrade=h2c\n#1 asked\n"
           "upgrade to h2c\n#1 end: complete\n"
           "next receives \"one\"\nnext sends \"two\"\nnext ack @5\nnext silence\n"
           "next gap of 7\nnext close\nnext finish\n");
}

/* A head that never ends is given up at a ceiling, not collected. */
static void test_endless_head(void **state)
{
    struct play p;
    struct buf line;

    (void)state;
    play_init(&p);
    buf_init(&line, 1u << 20);
    assert_true(buf_add(&line, SLICE_LIT("> GET / HTTP/1.1\n")));
    for (int i = 0; i < 20000; i++)
        assert_true(buf_add(&line, SLICE_LIT("> Name: value\n")));
    assert_true(buf_add(&line, (struct slice){ (const uint8_t *)"", 1 }));
    expect(&p, (const char *)line.ptr,
           "#1 note: too many header bytes seen; overflow detected\n#1 end: open\n");
    buf_release(&line);
}

/* Whatever looks like the start of a head or of chunks to who has to find out what is spoken. */
static void test_first_bytes(void **state)
{
    static const struct {
        const char *text;
        const char *is; /* of q(uestion), a(nswer), c(hunks) */
    } firsts[] = {
        { "GET / HTTP/1.1\r\n", "q" },
        { "POST http://a/b HTTP/1.0\n", "q" },
        { "OPTIONS * HTTP/1.1", "q" },
        { "PO", "q" },
        { "GET / HTCPCP/1.0\r\n", "" },
        { "PRI * HTTP/2.0\r\n", "" },
        { "GET\t/", "" },
        { "HTTP/1.1 200 OK\r\n", "a" },
        { "HTTP/1.0 404", "a" },
        { "HTTP/1.", "a" },
        { "H", "qa" }, /* HEAD */
        { "HTTP/2 200", "" },
        { "HTTP/1.1 OK", "" },
        { "3\r\nabc\r\n", "c" },
        { "3;a=b\r\nabc\r\nA", "c" },
        { "0\r\n\r\n", "c" },
        { "3\r\nabcd\r\n", "" },
        { "3\r\nabc\r\nx", "" },
        { "fffffffff\r\n", "" },
        { "SSH-2.0", "" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
        struct slice s = slice_str(firsts[i].text);
        if (h1_is_request(s) != (strchr(firsts[i].is, 'q') != NULL) ||
            h1_is_response(s) != (strchr(firsts[i].is, 'a') != NULL) ||
            h1_is_chunks(s) != (strchr(firsts[i].is, 'c') != NULL))
            fail_msg("%s", firsts[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dialogues),    cmocka_unit_test(test_sealed_pieces),
        cmocka_unit_test(test_places),       cmocka_unit_test(test_upgrade_hands_everything_on),
        cmocka_unit_test(test_endless_head), cmocka_unit_test(test_first_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
