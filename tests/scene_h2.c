/* scene_h2.c - see scene_h2.h. */
#include "scene_h2.h"

#include "make_capture.h"

#include <nghttp2/nghttp2.h>

#define FRAME_MAX   16384 /* SETTINGS_MAX_FRAME_SIZE as it is at first */
#define WINDOW_MAX  0x7fffffffu
#define WINDOW_INIT 65535u
#define FIELDS_MAX  32
#define FIRST_SIZE  4096

struct scene_h2 {
    struct arena *arena;
    nghttp2_hd_deflater *deflater[2];
    uint32_t streams;
};

struct fields {
    nghttp2_nv nv[FIELDS_MAX];
    size_t count;
};

struct scene_h2 *scene_h2_new(struct arena *arena)
{
    struct scene_h2 *h = arena_alloc(arena, sizeof(*h));

    h->arena = arena;
    for (int d = 0; d < 2; d++) {
        if (nghttp2_hd_deflate_new(&h->deflater[d], FIRST_SIZE) != 0)
            abort();
    }
    return h;
}

void scene_h2_free(struct scene_h2 *h)
{
    nghttp2_hd_deflate_del(h->deflater[DIR_CLIENT]);
    nghttp2_hd_deflate_del(h->deflater[DIR_SERVER]);
}

static void put_frame(struct made *m, unsigned type, unsigned flags, uint32_t stream,
                      struct slice payload)
{
    put_number(m, payload.len, 3);
    put8(m, type);
    put8(m, flags);
    put32(m, stream);
    put_slice(m, payload);
}

struct slice scene_h2_open(struct scene_h2 *h, enum dir dir)
{
    AUTO(made_freep) struct made m = { 0 };
    AUTO(made_freep) struct made p = { 0 };

    if (dir == DIR_CLIENT)
        put_slice(&m, SLICE_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    put16(&p, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);
    put32(&p, WINDOW_MAX);
    put_frame(&m, NGHTTP2_SETTINGS, 0, 0, made_slice(&p));
    p.len = 0;
    put32(&p, WINDOW_MAX - WINDOW_INIT);
    put_frame(&m, NGHTTP2_WINDOW_UPDATE, 0, 0, made_slice(&p));
    return arena_copy(h->arena, made_slice(&m));
}

/* The library takes bytes that it does not change as if it might. */
static uint8_t *unconst(const void *p)
{
    uint8_t *q;

    memcpy(&q, &p, sizeof(q));
    return q;
}

static void add_field(struct fields *f, struct slice name, struct slice value)
{
    if (f->count == FIELDS_MAX)
        abort();
    f->nv[f->count++] = (nghttp2_nv){ unconst(name.ptr), unconst(value.ptr), name.len, value.len,
                                      NGHTTP2_NV_FLAG_NONE };
}

/* Names are lower case (8.2.1). */
static struct slice lower(struct scene_h2 *h, struct slice name)
{
    uint8_t *text = arena_alloc(h->arena, name.len + 1);

    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        text[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
    }
    return (struct slice){ text, name.len };
}

/* The framing of HTTP/1.1 does not exist (8.2.2), and Host is :authority. */
static bool is_left(struct slice name, const struct http_head *head)
{
    static const char *const none[] = { "host", "transfer-encoding", "connection", "keep-alive" };

    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        if (slice_eq(name, slice_str(none[i])))
            return true;
    }
    return slice_eq(name, SLICE_LIT("content-length")) &&
           (head->flags & (RECF_LENGTH | RECF_LENGTH_CONFLICT)) != RECF_LENGTH;
}

static void add_headers(struct scene_h2 *h, struct fields *f, const struct http_head *head)
{
    for (size_t i = 0; i < head->count; i++) {
        struct slice name = lower(h, head->header[i].name);
        if (!is_left(name, head))
            add_field(f, name, head->header[i].value);
    }
}

struct block {
    enum dir dir;
    uint32_t stream;
    bool end;
};

static void put_headers(struct scene_h2 *h, struct made *m, const struct block *b,
                        const struct fields *f)
{
    nghttp2_hd_deflater *d = h->deflater[b->dir];
    size_t room = nghttp2_hd_deflate_bound(d, f->nv, f->count);
    uint8_t *bytes = arena_alloc(h->arena, room);
    ssize_t n = nghttp2_hd_deflate_hd(d, bytes, room, f->nv, f->count);

    if (n < 0 || n > FRAME_MAX)
        abort();
    put_frame(m, NGHTTP2_HEADERS,
              NGHTTP2_FLAG_END_HEADERS | (b->end ? NGHTTP2_FLAG_END_STREAM : 0u), b->stream,
              (struct slice){ bytes, (size_t)n });
}

static void put_data(struct made *m, uint32_t stream, struct slice data, bool end)
{
    do {
        size_t n = data.len < FRAME_MAX ? data.len : FRAME_MAX;
        bool last = end && n == data.len;
        put_frame(m, NGHTTP2_DATA, last ? NGHTTP2_FLAG_END_STREAM : 0, stream,
                  (struct slice){ data.ptr, n });
        data = (struct slice){ data.ptr + n, data.len - n };
    } while (data.len > 0);
}

static struct slice authority_of(const struct http_head *head)
{
    for (size_t i = 0; i < head->count; i++) {
        if (slice_eq_nocase(head->header[i].name, SLICE_LIT("host")))
            return head->header[i].value;
    }
    return (struct slice){ 0 };
}

struct slice scene_h2_request(struct scene_h2 *h, const struct http_head *head, struct slice body,
                              uint32_t *ret)
{
    AUTO(made_freep) struct made m = { 0 };
    struct fields f = { .count = 0 };
    struct slice authority = authority_of(head);

    *ret = 2 * h->streams++ + 1;
    add_field(&f, SLICE_LIT(":method"), head->method);
    add_field(&f, SLICE_LIT(":scheme"), SLICE_LIT("http"));
    if (authority.len > 0)
        add_field(&f, SLICE_LIT(":authority"), authority);
    add_field(&f, SLICE_LIT(":path"), head->target);
    add_headers(h, &f, head);
    put_headers(h, &m, &(struct block){ DIR_CLIENT, *ret, body.len == 0 }, &f);
    if (body.len > 0)
        put_data(&m, *ret, body, true);
    return arena_copy(h->arena, made_slice(&m));
}

struct slice scene_h2_response(struct scene_h2 *h, uint32_t stream, const struct http_head *head,
                               bool gzip)
{
    AUTO(made_freep) struct made m = { 0 };
    struct fields f = { .count = 0 };

    add_field(&f, SLICE_LIT(":status"), slice_str(arena_printf(h->arena, "%03d", head->status)));
    add_headers(h, &f, head);
    if (gzip)
        add_field(&f, SLICE_LIT("content-encoding"), SLICE_LIT("gzip"));
    put_headers(h, &m, &(struct block){ DIR_SERVER, stream, false }, &f);
    return arena_copy(h->arena, made_slice(&m));
}

struct slice scene_h2_data(struct scene_h2 *h, uint32_t stream, struct slice data, bool end)
{
    AUTO(made_freep) struct made m = { 0 };

    put_data(&m, stream, data, end);
    return arena_copy(h->arena, made_slice(&m));
}

struct slice scene_h2_joined(struct scene_h2 *h, struct slice a, struct slice b)
{
    AUTO(made_freep) struct made m = { 0 };

    put_slice(&m, a);
    put_slice(&m, b);
    return arena_copy(h->arena, made_slice(&m));
}

struct slice scene_h2_reset(struct scene_h2 *h, uint32_t stream, uint32_t code)
{
    AUTO(made_freep) struct made m = { 0 };
    AUTO(made_freep) struct made p = { 0 };

    put32(&p, code);
    put_frame(&m, NGHTTP2_RST_STREAM, 0, stream, made_slice(&p));
    return arena_copy(h->arena, made_slice(&m));
}
