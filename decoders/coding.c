/*
 * coding.c - see coding.h. gzip RFC 1952, zlib RFC 1950, deflate RFC 1951, br RFC 7932, zstd
 * RFC 8878.
 *
 * A chain of stages, the coding that was applied last first. Each decodes into a block of its own,
 * which the next one uses up before there is more.
 */
#include "coding.h"

#define ZLIB_CONST /* next_in points to const */
#include <brotli/decode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define STAGES_MAX 4 /* nobody stacks more; also bounds run() */
#define BLOCK      ((size_t)16 << 10)
/* Below this much output no ratio is held against a body. */
#define RATIO_FREE ((uint64_t)1 << 20)
/* RFC 9659: a zstd content coding needs a window of 8 MB at most. */
#define ZSTD_WINDOW_LOG 23

enum step {
    STEP_ON,      /* there may be more at once */
    STEP_STARVED, /* all input is used up */
    STEP_ENDED,   /* the stream ended; what is left of the input is ignored */
    STEP_BROKEN,
};

struct stage;
struct stage_kind {
    const char *name;
    const char *alias; /* may be NULL */
    bool (*init)(struct stage *s);
    /* Takes from in, fills the block; *ret_out tells how far, also with STEP_BROKEN. */
    enum step (*decode)(struct stage *s, struct slice *in, size_t *ret_out);
    void (*release)(struct stage *s);
};

struct stage {
    const struct stage_kind *kind;
    union {
        z_stream z;
        BrotliDecoderState *br;
        ZSTD_DStream *zstd;
    } u;
    bool started; /* deflate: the wrapper is known */
    bool between; /* a gzip member or zstd frame ended; another may follow */
    bool later;   /* zstd: not the first frame */
    bool gave;    /* zstd: the frame gave output */
    bool ended;
    uint8_t held; /* deflate: the first byte, until the second tells the wrapper */
    bool has_held;
    uint64_t out;
    uint8_t block[BLOCK];
};

struct coding {
    struct stage *stage[STAGES_MAX];
    size_t count;
    size_t max_ratio;
    uint64_t max_total;
    uint64_t in;
    enum coding_status status;
    coding_sink *sink;
    void *ctx;
};

/* zlib counts in unsigned int. */
static struct slice at_most(struct slice s, size_t n)
{
    return (struct slice){ s.ptr, s.len < n ? s.len : n };
}

static int inflate_some(struct stage *s, struct slice *in, size_t *ret_out)
{
    z_stream *z = &s->u.z;
    struct slice part = at_most(*in, (size_t)1 << 30);
    struct slice used;

    z->next_in = part.ptr;
    z->avail_in = (unsigned)part.len;
    z->next_out = s->block;
    z->avail_out = sizeof(s->block);
    int rc = inflate(z, Z_SYNC_FLUSH);
    *ret_out = sizeof(s->block) - z->avail_out;
    if (!slice_take(in, part.len - z->avail_in, &used))
        return Z_STREAM_ERROR;
    return rc;
}

static enum step inflate_step(int rc, const struct stage *s)
{
    if (rc == Z_STREAM_END)
        return STEP_ENDED;
    if (rc == Z_BUF_ERROR)
        return STEP_STARVED;
    if (rc != Z_OK)
        return STEP_BROKEN;
    return s->u.z.avail_in == 0 && s->u.z.avail_out > 0 ? STEP_STARVED : STEP_ON;
}

static bool gzip_init(struct stage *s)
{
    return inflateInit2(&s->u.z, 15 + 16) == Z_OK;
}

/* Members follow each other (RFC 1952 2.2). */
static enum step gzip_decode(struct stage *s, struct slice *in, size_t *ret_out)
{
    if (s->between && in->len == 0)
        return STEP_STARVED;
    if (s->between && (in->ptr[0] != 0x1f || inflateReset(&s->u.z) != Z_OK))
        return STEP_ENDED;
    s->between = false;
    enum step st = inflate_step(inflate_some(s, in, ret_out), s);
    if (st != STEP_ENDED)
        return st;
    s->between = true;
    return STEP_ON;
}

static void zlib_release(struct stage *s)
{
    inflateEnd(&s->u.z);
}

/* "deflate" is zlib's format by the book, and raw deflate from some; the first two bytes tell. */
static bool is_zlib(uint8_t a, uint8_t b)
{
    return (a & 0x0f) == 8 && a >> 4 <= 7 && (a << 8 | b) % 31 == 0;
}

static bool deflate_init(struct stage *s)
{
    return inflateInit2(&s->u.z, -15) == Z_OK;
}

static enum step deflate_start(struct stage *s, struct slice in)
{
    struct slice first = { &s->held, 1 };
    size_t none;

    s->started = true;
    if (is_zlib(s->held, in.ptr[0]) && inflateReset2(&s->u.z, 15) != Z_OK)
        return STEP_BROKEN;
    enum step st = inflate_step(inflate_some(s, &first, &none), s);
    return st == STEP_STARVED ? STEP_ON : st;
}

static enum step deflate_decode(struct stage *s, struct slice *in, size_t *ret_out)
{
    if (!s->has_held) {
        s->has_held = slice_u8(in, &s->held);
        return s->has_held ? STEP_ON : STEP_STARVED;
    }
    if (!s->started)
        return in->len > 0 ? deflate_start(s, *in) : STEP_STARVED;
    return inflate_step(inflate_some(s, in, ret_out), s);
}

static bool br_init(struct stage *s)
{
    s->u.br = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    return s->u.br != NULL;
}

static enum step br_decode(struct stage *s, struct slice *in, size_t *ret_out)
{
    uint8_t *out = s->block;
    size_t room = sizeof(s->block);
    BrotliDecoderResult rc =
        BrotliDecoderDecompressStream(s->u.br, &in->len, &in->ptr, &room, &out, NULL);

    *ret_out = sizeof(s->block) - room;
    switch (rc) {
    case BROTLI_DECODER_RESULT_SUCCESS: return STEP_ENDED;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return STEP_STARVED;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return STEP_ON;
    case BROTLI_DECODER_RESULT_ERROR: break;
    }
    return STEP_BROKEN;
}

static void br_release(struct stage *s)
{
    BrotliDecoderDestroyInstance(s->u.br);
}

static bool zstd_init(struct stage *s)
{
    s->u.zstd = ZSTD_createDStream();
    return s->u.zstd &&
           !ZSTD_isError(ZSTD_DCtx_setParameter(s->u.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG));
}

static enum step zstd_decode(struct stage *s, struct slice *in, size_t *ret_out)
{
    ZSTD_inBuffer from = { in->ptr, in->len, 0 };
    ZSTD_outBuffer to = { s->block, sizeof(s->block), 0 };

    if (in->len == 0 && s->between)
        return STEP_STARVED;
    size_t rc = ZSTD_decompressStream(s->u.zstd, &to, &from);
    *ret_out = to.pos;
    in->ptr += from.pos;
    in->len -= from.pos;
    s->gave |= to.pos > 0;
    s->between = false;
    if (ZSTD_isError(rc)) /* what follows a frame may be no frame */
        return s->later && !s->gave ? STEP_ENDED : STEP_BROKEN;
    if (rc == 0) {
        s->between = s->later = true;
        s->gave = false;
        return STEP_ON;
    }
    return in->len == 0 && to.pos < to.size ? STEP_STARVED : STEP_ON;
}

static void zstd_release(struct stage *s)
{
    ZSTD_freeDStream(s->u.zstd);
}

static const struct stage_kind kinds[] = {
    { "gzip", "x-gzip", gzip_init, gzip_decode, zlib_release },
    { "deflate", NULL, deflate_init, deflate_decode, zlib_release },
    { "br", NULL, br_init, br_decode, br_release },
    { "zstd", NULL, zstd_init, zstd_decode, zstd_release },
};

/* The next element of a comma list; false at its end. */
static bool list_next(struct slice *list, struct slice *ret)
{
    if (!list->ptr || list->len == 0)
        return false;
    const uint8_t *comma = memchr(list->ptr, ',', list->len);
    size_t n = comma ? (size_t)(comma - list->ptr) : list->len;

    *ret = slice_trim((struct slice){ list->ptr, n });
    list->ptr += n;
    list->len -= n;
    if (comma) {
        list->ptr++;
        list->len--;
    }
    return true;
}

static bool copies(struct slice name)
{
    return name.len == 0 || slice_eq_nocase(name, SLICE_LIT("identity")) ||
           slice_eq_nocase(name, SLICE_LIT("none"));
}

bool coding_is_identity(struct slice value)
{
    struct slice name;

    while (list_next(&value, &name)) {
        if (!copies(name))
            return false;
    }
    return true;
}

static const struct stage_kind *kind_of(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (slice_eq_nocase(name, slice_str(kinds[i].name)) ||
            (kinds[i].alias && slice_eq_nocase(name, slice_str(kinds[i].alias))))
            return &kinds[i];
    }
    return NULL;
}

static bool stage_add(struct coding *c, struct slice name)
{
    const struct stage_kind *kind = kind_of(name);

    if (!kind || c->count == STAGES_MAX)
        return false;
    /* Decoding undoes the list from its end. */
    for (size_t i = c->count; i > 0; i--)
        c->stage[i] = c->stage[i - 1];
    c->stage[0] = mem_alloc(sizeof(struct stage));
    c->stage[0]->kind = kind;
    c->count++;
    return kind->init(c->stage[0]);
}

struct coding *coding_new(struct slice value, size_t max_ratio, uint64_t max_total)
{
    struct coding *c = mem_alloc(sizeof(*c));
    struct slice name;

    c->max_ratio = max_ratio;
    c->max_total = max_total;
    while (list_next(&value, &name)) {
        if (copies(name) || stage_add(c, name))
            continue;
        coding_free(c);
        return NULL;
    }
    return c;
}

void coding_free(struct coding *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        c->stage[i]->kind->release(c->stage[i]);
        free(c->stage[i]);
    }
    free(c);
}

/* May n more bytes come out of a stage that gave `before`? */
static bool within_limits(const struct coding *c, uint64_t before, size_t n)
{
    uint64_t most;

    if (n > c->max_total || before > c->max_total - n)
        return false;
    if (before + n <= RATIO_FREE)
        return true;
    return __builtin_mul_overflow(c->in, (uint64_t)c->max_ratio, &most) || before + n <= most;
}

/* Through stage i and those behind it. */
static enum coding_status run(struct coding *c, size_t i, struct slice in)
{
    if (i == c->count) {
        c->sink(c->ctx, in);
        return CODING_OK;
    }
    struct stage *s = c->stage[i];
    enum step st = s->ended ? STEP_ENDED : STEP_ON;
    while (st == STEP_ON) {
        size_t before = in.len;
        size_t out = 0;
        st = s->kind->decode(s, &in, &out);
        if (i == 0)
            c->in += before - in.len;
        if (out == 0)
            continue;
        if (!within_limits(c, s->out, out))
            return CODING_LIMIT;
        s->out += out;
        enum coding_status next = run(c, i + 1, (struct slice){ s->block, out });
        if (next == CODING_BROKEN || next == CODING_LIMIT)
            return next;
    }
    s->ended = st == STEP_ENDED;
    if (st == STEP_BROKEN)
        return CODING_BROKEN;
    return s->ended || s->between ? CODING_ENDED : CODING_OK;
}

enum coding_status coding_feed(struct coding *c, struct slice in, coding_sink *sink, void *ctx)
{
    if (c->status == CODING_BROKEN || c->status == CODING_LIMIT || in.len == 0)
        return c->status;
    c->sink = sink;
    c->ctx = ctx;
    c->in += c->count == 0 ? in.len : 0;
    c->status = run(c, 0, in);
    return c->status;
}
