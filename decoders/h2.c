/* h2.c - see h2.h. */
#include "h2.h"

#include "h2_frame.h"
#include "hpack.h"

#include <stdlib.h>

#define WINDOW_INITIAL 65535 /* RFC 9113 6.9.2 */
#define STREAMS_MAX    ((size_t)1024)
#define BLOCK_MAX      ((size_t)256 << 10) /* of a compressed header block, or of any frame kept */
#define SEARCH_MAX     ((size_t)64 << 10)
#define LATE_MAX       64 /* ended exchanges that wait for an acknowledgement */
#define GIVEN_UP_MAX   64 /* streams that the client has given up and the server has not ended */

enum setting { SETTING_INITIAL_WINDOW = 4, SETTING_MAX_FRAME = 5 };

/* One request with its response. */
struct stream {
    uint32_t id;
    struct exchange *x; /* NULL: it has ended (kept while streams may be unknown) */
    bool requested;     /* its request head was read */
    bool asked;         /* its request has ended */
    bool answered;      /* a final response head, or what stands for it, was passed on */
    bool gapped;        /* it may have ended in a gap */
    bool interim;
    int status;        /* of a response head that was read in part only; 0: none */
    struct place last; /* of the response */
    uint64_t end;      /* its last byte in the TCP stream */
    uint64_t acked;
    /* The client's window, apart from what SETTINGS give all streams. */
    int64_t window;
    int64_t before_update; /* the window at the first WINDOW_UPDATE since the last DATA */
    struct place update_at;
    struct silence tcp; /* what TCP said of the silence that is going on */
    /* The client wants no more of it; what the server still sends is evidence all the same. */
    struct place given_up; /* time 0: it has not been */
    struct exchange_end_facts given_up_facts;
};

struct slot {
    uint32_t id;
    struct stream *stream;
};

/* Pieces that wait until a frame boundary is found. */
struct queue {
    struct buf bytes; /* of all of them, from `at` on */
    size_t at;
    struct piece *item; /* data.ptr is of no use */
    size_t first;
    size_t count; /* behind the last */
    size_t cap;
};

struct direction {
    bool started;
    bool searching; /* the frame boundary is lost */
    uint8_t head[H2_FRAME_HEADER];
    size_t have; /* of head */
    bool in_frame;
    struct h2_frame frame;
    struct place first;
    uint32_t left;    /* of the payload */
    uint32_t padding; /* at its end */
    bool padding_known;
    bool damaged;       /* some of the payload is missing */
    struct buf payload; /* of frames other than DATA */
    struct place last;  /* of what was taken last */
    uint64_t tcp_end;   /* behind it */
    uint32_t max_frame;
    struct hpack *hpack;
    bool in_block; /* a header block goes on in CONTINUATION */
    struct h2_frame block_frame;
    struct place block_first;
    struct buf block;
    struct queue queue;
};

struct late {
    uint64_t serial;
    uint64_t end;
};

struct h2 {
    struct exchanges *all;
    const struct conn *conn;
    uint64_t conn_serial;
    struct direction dir[2];
    struct slot *slot; /* by id */
    size_t count;
    size_t cap;
    size_t live;
    size_t given_up;
    uint32_t last_id;    /* highest the client opened */
    bool requests_lost;  /* some may not have been seen */
    bool windows_known;  /* every frame about them was seen */
    int64_t all_windows; /* SETTINGS_INITIAL_WINDOW_SIZE of the client */
    int64_t window;      /* of the connection */
    int64_t before_update;
    struct place update_at;
    struct place last_data; /* from the server, of any stream */
    struct place low_since; /* last_data at the update */
    uint32_t goaway_code;   /* + 1 */
    uint64_t acked;
    uint64_t end; /* of all response bytes */
    struct late late[LATE_MAX];
    size_t late_count;
    struct arena *arena; /* of one header block */
    bool state_noted;
    bool limit_noted;
};

bool h2_is_preface(struct slice s)
{
    return slice_starts(s, SLICE_LIT(H2_PREFACE));
}

bool h2_is_frames(struct slice s)
{
    return h2_frame_chain(s, H2_FRAME_MAX, H2_END) == H2_CHAIN_YES;
}

static void note(struct h2 *h, enum note_kind kind, struct slice text, struct place at)
{
    bool *noted = kind == NOTE_LIMIT ? &h->limit_noted : &h->state_noted;

    if (!*noted)
        exchanges_note(h->all, 0, (struct rec_note){ kind, 1, h->conn->tcp_stream, text }, at);
    *noted = true;
}

static void note_state(struct h2 *h, struct place at)
{
    note(h, NOTE_H2_NO_STATE, (struct slice){ 0 }, at);
}

/* ---- streams ---- */

/* Where id is, or would be. */
static size_t stream_index(const struct h2 *h, uint32_t id)
{
    size_t lo = 0;
    size_t hi = h->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (h->slot[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct stream *stream_find(const struct h2 *h, uint32_t id)
{
    size_t i = stream_index(h, id);

    return i < h->count && h->slot[i].id == id ? h->slot[i].stream : NULL;
}

static void stream_remove(struct h2 *h, size_t i)
{
    free(h->slot[i].stream);
    h->count--;
    memmove(h->slot + i, h->slot + i + 1, (h->count - i) * sizeof(*h->slot));
}

static void forget_oldest_ended(struct h2 *h)
{
    size_t i = 0;

    while (i < h->count && h->slot[i].stream->x)
        i++;
    if (i < h->count)
        stream_remove(h, i);
}

/* NULL: there are too many. x NULL: a new exchange. */
static struct stream *stream_open(struct h2 *h, uint32_t id, struct exchange *x, struct place at)
{
    if (h->live == STREAMS_MAX) {
        note(h, NOTE_LIMIT, SLICE_LIT("streams of one HTTP/2 connection"), at);
        return NULL;
    }
    if (h->count >= 2 * STREAMS_MAX)
        forget_oldest_ended(h);
    GROW(h->slot, h->count, h->cap);
    size_t i = stream_index(h, id);
    memmove(h->slot + i + 1, h->slot + i, (h->count - i) * sizeof(*h->slot));
    h->count++;
    h->live++;
    struct stream *s = mem_alloc(sizeof(*s));
    s->id = id;
    s->last = at;
    s->x = x ? x : exchange_open(h->all, h->conn, h->conn_serial);
    h->slot[i] = (struct slot){ id, s };
    return s;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void window_closed(struct silence *s, struct place since, int64_t until)
{
    int64_t ns = earlier(until, s->until.time) - later(since.time, s->since.time);

    if (ns <= 0)
        return;
    if (!s->window_closed || since.time < s->window_place.time)
        s->window_place = since;
    s->window_closed = true;
    s->window_ns = earlier(s->window_ns + ns, s->until.time - s->since.time);
}

/*
 * Was the stream's or the connection's window in the way? It was until the first WINDOW_UPDATE if
 * it was smaller than the frame that came then (need), and it is now if nothing is left of it.
 */
static void blame_windows(const struct h2 *h, const struct stream *s, struct silence *q,
                          int64_t need)
{
    int64_t window = h->all_windows + s->window;

    if (!h->windows_known)
        return;
    if (s->update_at.time > s->last.time && s->before_update < need)
        window_closed(q, s->last, s->update_at.time);
    if (h->update_at.time > s->last.time && h->before_update < need)
        window_closed(q, h->low_since, h->update_at.time);
    if (!q->ended_by_data && window <= 0)
        window_closed(q, s->last, q->until.time);
    if (!q->ended_by_data && h->window <= 0)
        window_closed(q, h->last_data, q->until.time);
}

/* The stream's silence, if it was one, ends here. need: length of the DATA frame that ends it. */
static void silence_ends(struct h2 *h, struct stream *s, struct place at, bool by_data,
                         int64_t need)
{
    struct silence q = s->tcp;

    s->tcp = (struct silence){ 0 };
    if (!s->answered || s->given_up.time || !exchange_is_leg(s->x) ||
        at.time - s->last.time < SILENCE_MIN)
        return;
    q.since = s->last;
    q.until = at;
    q.ended_by_data = by_data;
    blame_windows(h, s, &q, need);
    exchange_silence(s->x, &q);
}

static void await_late_ack(struct h2 *h, const struct stream *s)
{
    if (s->end <= h->acked)
        return;
    if (h->late_count == LATE_MAX) {
        memmove(h->late, h->late + 1, (LATE_MAX - 1) * sizeof(*h->late));
        h->late_count--;
    }
    h->late[h->late_count++] = (struct late){ exchange_serial(s->x), s->end };
}

static void stream_end(struct h2 *h, struct stream *s, const struct exchange_end_facts *facts,
                       struct place at)
{
    if (!s->x)
        return;
    silence_ends(h, s, at, facts->kind == END_COMPLETE, 0);
    await_late_ack(h, s);
    if (s->given_up.time) {
        h->given_up--;
        /* A client that has closed its side may still read to the end; one that reset does not. */
        if (facts->kind != END_COMPLETE || s->given_up_facts.kind != END_CLIENT_FIN) {
            facts = &s->given_up_facts;
            at = s->given_up;
        }
    }
    exchange_end(MOVE(s->x), facts, at);
    h->live--;
    if (!h->requests_lost && s->id <= h->last_id) /* else it might be taken for an unseen one */
        stream_remove(h, stream_index(h, s->id));
}

static void end_oldest_given_up(struct h2 *h)
{
    static const struct exchange_end_facts open = { .kind = END_OPEN };

    for (size_t i = 0; i < h->count; i++) {
        struct stream *s = h->slot[i].stream;
        if (!s->x || !s->given_up.time)
            continue;
        stream_end(h, s, &open, s->given_up);
        return;
    }
}

static void give_up(struct h2 *h, struct stream *s, const struct exchange_end_facts *facts,
                    struct place at)
{
    if (!s->x || s->given_up.time)
        return;
    silence_ends(h, s, at, false, 0);
    s->given_up = at;
    s->given_up_facts = *facts;
    if (s->gapped)
        s->given_up_facts.kind = END_GAP;
    if (h->given_up++ == GIVEN_UP_MAX)
        end_oldest_given_up(h);
}

static void stream_end_code(struct h2 *h, struct stream *s, enum end_kind kind, uint32_t code,
                            struct place at)
{
    struct exchange_end_facts facts = { .kind = kind, .h2_code = code + 1 };

    if (code == UINT32_MAX)
        facts.h2_code = code;
    stream_end(h, s, &facts, at);
}

/* All that are open; what was hit by a gap may have ended before. */
static void end_all(struct h2 *h, enum end_kind kind, struct place at)
{
    bool reset = kind == END_RST || kind == END_CLIENT_RST;

    for (size_t i = 0; i < h->count;) {
        size_t count = h->count;
        struct stream *s = h->slot[i].stream;
        struct exchange_end_facts facts = { .kind = s->gapped ? END_GAP : kind,
                                            .middlebox = reset && h->conn->middlebox,
                                            .truncated_capture =
                                                kind == END_OPEN && h->conn->truncated,
                                            .h2_code = h->goaway_code };
        stream_end(h, s, &facts, at);
        i += h->count == count; /* else it is gone */
    }
}

/* The client has closed its side: the server may send on. */
static void give_up_all(struct h2 *h, struct place at)
{
    const struct exchange_end_facts facts = { .kind = END_CLIENT_FIN, .h2_code = h->goaway_code };
    size_t i = h->count;

    while (i-- > 0) {
        give_up(h, h->slot[i].stream, &facts, at);
        i = i < h->count ? i : h->count;
    }
}

/* ---- heads ---- */

static struct http_head head_of(const struct direction *d)
{
    return (struct http_head){
        .flags = RECF_HTTP2, .first = d->block_first, .last = d->last, .tcp_end = d->tcp_end
    };
}

/* RFC 9113 8.3: pseudo fields into the head, the others are moved together. */
static void sort_fields(struct hpack_fields *f, struct http_head *head)
{
    uint64_t status = 0;
    size_t n = 0;

    for (size_t i = 0; i < f->count; i++) {
        struct http_header *field = &f->item[i];
        if (field->name.len == 0 || field->name.ptr[0] != ':')
            f->item[n++] = *field;
        else if (slice_eq(field->name, SLICE_LIT(":method")))
            head->method = field->value;
        else if (slice_eq(field->name, SLICE_LIT(":path")))
            head->target = field->value;
        else if (slice_eq(field->name, SLICE_LIT(":authority")))
            head->authority = field->value;
        else if (slice_eq(field->name, SLICE_LIT(":status")) &&
                 slice_u64(field->value, 999, &status))
            head->status = (int)status;
    }
    head->header = f->item;
    head->count = n;
}

static void request_ends(struct stream *s, struct place at)
{
    if (s->x && s->requested && !s->asked)
        exchange_request_end(s->x, true, at);
    s->asked = true;
}

static void take_request(struct h2 *h, struct hpack_fields *f, uint32_t id, bool end_stream)
{
    struct direction *d = &h->dir[DIR_CLIENT];
    struct http_head head = head_of(d);
    struct stream *s = stream_find(h, id);

    if (id % 2 == 0 || (!s && id <= h->last_id && !h->requests_lost))
        return;
    bool is_new = !s;
    if (id > h->last_id)
        h->last_id = id;
    if (is_new)
        s = stream_open(h, id, NULL, d->block_first);
    if (!s || !s->x)
        return;
    s->gapped = false;
    sort_fields(f, &head);
    if (is_new && head.method.len > 0) {
        if (f->incomplete || f->cut)
            head.flags |= RECF_HEAD_LOST; /* what is not there may have been */
        s->requested = true;
        exchange_request_head(s->x, &head);
    }
    if (end_stream)
        request_ends(s, d->last);
}

/* A request that was not seen: may there have been one? */
static struct stream *stream_unseen(struct h2 *h, uint32_t id, struct place at)
{
    if (id % 2 == 0 || (id <= h->last_id && !h->requests_lost))
        return NULL;
    return stream_open(h, id, NULL, at);
}

static bool has_field(const struct http_head *head, struct slice name)
{
    for (size_t i = 0; i < head->count; i++) {
        if (slice_eq(head->header[i].name, name))
            return true;
    }
    return false;
}

static void give_response(struct h2 *h, struct stream *s, const struct http_head *head,
                          struct place at)
{
    s->answered = true;
    s->last = at;
    s->end = head ? head->tcp_end : s->end;
    if (h->end < s->end)
        h->end = s->end;
    exchange_response_head(s->x, head, at);
}

static void response_ends(struct h2 *h, struct stream *s, struct place at)
{
    static const struct exchange_end_facts complete = { .kind = END_COMPLETE };

    if (!s->answered && s->status > 0) {
        struct http_head head = { .status = s->status, .flags = RECF_HTTP2, .first = s->last };
        give_response(h, s, &head, s->last);
    }
    stream_end(h, s, &complete, at);
}

static void take_response(struct h2 *h, struct hpack_fields *f, uint32_t id, bool end_stream)
{
    struct direction *d = &h->dir[DIR_SERVER];
    struct http_head head = head_of(d);
    struct stream *s = stream_find(h, id);

    if (!s)
        s = stream_unseen(h, id, d->block_first);
    if (!s || !s->x)
        return;
    s->gapped = false;
    sort_fields(f, &head);
    if (!s->answered && head.status >= 100 && head.status < 200) {
        s->interim = true;
        return;
    }
    bool unclear = f->incomplete && !end_stream && !has_field(&head, SLICE_LIT("content-type"));
    if (s->answered)
        silence_ends(h, s, d->last, true, 0); /* trailers */
    else if (head.status > 0 && !(unclear && head.status == 200)) {
        head.flags |= s->interim ? RECF_INTERIM : 0;
        give_response(h, s, &head, d->last);
    } else {
        s->status = head.status; /* what its body is will be seen */
    }
    s->last = d->last;
    if (end_stream)
        response_ends(h, s, d->last);
}

static void lose_block(struct h2 *h, enum dir dir)
{
    h->dir[dir].in_block = false;
    h->dir[dir].block.len = 0;
    hpack_lose(h->dir[dir].hpack);
    note_state(h, h->dir[dir].last);
    if (dir == DIR_CLIENT)
        h->requests_lost = true;
}

static void block_ends(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];
    struct h2_frame frame = d->block_frame;
    struct hpack_fields f;

    hpack_read(d->hpack, buf_slice(&d->block), h->arena, &f);
    d->in_block = false;
    d->block.len = 0;
    if (f.incomplete)
        note_state(h, d->last);
    if (f.cut)
        note(h, NOTE_LIMIT, SLICE_LIT("header list of HTTP/2"), d->last);
    if (frame.type == H2_HEADERS && dir == DIR_CLIENT)
        take_request(h, &f, frame.stream, frame.flags & H2_END_STREAM);
    else if (frame.type == H2_HEADERS)
        take_response(h, &f, frame.stream, frame.flags & H2_END_STREAM);
    arena_clear(h->arena);
}

/* Without padding, priority and the promised stream. */
static bool fragment_of(const struct h2_frame *f, struct slice *s)
{
    struct slice skipped;
    uint8_t padding = 0;
    size_t extra = f->type == H2_PUSH_PROMISE                                   ? 4
                   : f->type == H2_HEADERS && (f->flags & H2_HAS_PRIORITY) != 0 ? 5
                                                                                : 0;

    if (f->type != H2_CONTINUATION && (f->flags & H2_PADDED) && !slice_u8(s, &padding))
        return false;
    if (!slice_take(s, extra, &skipped) || padding > s->len)
        return false;
    s->len -= padding;
    return true;
}

static void take_block_frame(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];
    struct slice s = buf_slice(&d->payload);

    if (d->in_block != (d->frame.type == H2_CONTINUATION) ||
        (d->in_block && d->frame.stream != d->block_frame.stream)) {
        lose_block(h, dir); /* part of it is missing */
        if (d->frame.type == H2_CONTINUATION)
            return;
    }
    if (!d->in_block) {
        d->block_frame = d->frame;
        d->block_first = d->first;
        d->in_block = true;
    }
    if (!fragment_of(&d->frame, &s) || !buf_add(&d->block, s)) {
        lose_block(h, dir);
        return;
    }
    if (d->frame.flags & H2_END_HEADERS)
        block_ends(h, dir);
}

/* ---- other frames ---- */

static void take_settings(struct h2 *h, enum dir dir, struct slice s)
{
    struct direction *other = &h->dir[dir == DIR_CLIENT ? DIR_SERVER : DIR_CLIENT];
    uint16_t id;
    uint32_t value;

    while (slice_be16(&s, &id) && slice_be32(&s, &value)) {
        if (id == SETTING_INITIAL_WINDOW && dir == DIR_CLIENT && value <= INT32_MAX)
            h->all_windows = value;
        if (id == SETTING_MAX_FRAME && value > other->max_frame && value <= H2_FRAME_ANY)
            other->max_frame = value;
    }
}

static void take_window_update(struct h2 *h, uint32_t id, struct slice s)
{
    struct place at = h->dir[DIR_CLIENT].last;
    struct stream *stream = stream_find(h, id);
    uint32_t increment;

    if (!slice_be32(&s, &increment))
        return;
    increment &= INT32_MAX;
    if (id == 0) {
        if (h->update_at.time <= h->last_data.time) {
            h->update_at = at;
            h->before_update = h->window;
            h->low_since = h->last_data;
        }
        h->window += increment;
    } else if (stream) {
        if (stream->update_at.time <= stream->last.time) {
            stream->update_at = at;
            stream->before_update = h->all_windows + stream->window;
        }
        stream->window += increment;
    }
}

static void take_reset(struct h2 *h, enum dir dir, uint32_t id, struct slice s)
{
    struct stream *stream = stream_find(h, id);
    struct exchange_end_facts facts = { .kind = END_CLIENT_RST };
    uint32_t code;

    if (!stream || !slice_be32(&s, &code))
        return;
    facts.h2_code = code == UINT32_MAX ? code : code + 1;
    if (dir == DIR_SERVER)
        stream_end_code(h, stream, END_RST, code, h->dir[dir].last);
    else
        give_up(h, stream, &facts, h->dir[dir].last);
}

/* RFC 9113 6.8: the streams above the last one are over. */
static void take_goaway(struct h2 *h, struct slice s)
{
    uint32_t last_id;
    uint32_t code;

    if (!slice_be32(&s, &last_id) || !slice_be32(&s, &code))
        return;
    if (code != 0 && code != UINT32_MAX)
        h->goaway_code = code + 1;
    for (size_t i = h->count; i-- > 0 && h->slot[i].id > (last_id & INT32_MAX);)
        stream_end_code(h, h->slot[i].stream, END_RST, code, h->dir[DIR_SERVER].last);
}

static void take_frame(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];
    struct slice s = buf_slice(&d->payload);

    switch (d->frame.type) {
    case H2_HEADERS:
    case H2_PUSH_PROMISE:
    case H2_CONTINUATION: take_block_frame(h, dir); return;
    case H2_RST_STREAM: take_reset(h, dir, d->frame.stream, s); return;
    case H2_SETTINGS: take_settings(h, dir, s); return;
    case H2_GOAWAY:
        if (dir == DIR_SERVER)
            take_goaway(h, s);
        return;
    case H2_WINDOW_UPDATE:
        if (dir == DIR_CLIENT)
            take_window_update(h, d->frame.stream, s);
        return;
    default: return; /* RFC 9113 4.1, 5.5 */
    }
}

/* ---- DATA ---- */

/* Some line of it is one of an event stream; what comes behind that line is of no matter. */
static bool looks_like_events(struct slice s)
{
    static const char *const starts[] = { "data:", "id:", "event:", "retry:", ":" };

    while (s.len > 0) {
        for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
            if (slice_starts(s, slice_str(starts[i])))
                return true;
        }
        const uint8_t *end = memchr(s.ptr, '\n', s.len);
        size_t n = end ? (size_t)(end - s.ptr) + 1 : s.len;
        if (memchr(s.ptr, 0, n))
            return false;
        s.ptr += n;
        s.len -= n;
    }
    return false;
}

static void response_body(struct h2 *h, struct stream *s, const struct piece *piece)
{
    s->last = piece->at;
    s->end = piece->tcp_end;
    if (h->end < s->end)
        h->end = s->end;
    exchange_response_body(s->x, piece);
}

/* A body without its head waits, as far as its frame goes, until something in it looks like events.
 */
static void headless_data(struct h2 *h, struct stream *s, const struct piece *piece)
{
    struct buf *held = &h->dir[DIR_SERVER].payload;
    struct piece all = *piece;

    s->last = piece->at;
    s->end = piece->tcp_end;
    if (!buf_add(held, piece->data) || !looks_like_events(buf_slice(held)))
        return;
    note_state(h, piece->at);
    give_response(h, s, NULL, piece->at);
    all.data = buf_slice(held);
    response_body(h, s, &all);
    held->len = 0;
}

/* The frame's end: if the status is known the body is given to it, whatever it is. */
static void headless_data_ends(struct h2 *h, struct stream *s)
{
    struct direction *d = &h->dir[DIR_SERVER];
    struct http_head head = {
        .status = s->status, .flags = RECF_HTTP2, .first = s->last, .last = s->last
    };

    if (s->status == 0 || d->payload.len == 0)
        return;
    give_response(h, s, &head, s->last);
    response_body(
        h, s,
        &(struct piece){
            .data = buf_slice(&d->payload), .at = s->last, .tcp_end = s->end, .sealed = true });
}

static void response_data(struct h2 *h, struct stream *s, const struct piece *piece)
{
    silence_ends(h, s, piece->at, true, 0);
    s->gapped = false;
    if (s->answered)
        response_body(h, s, piece);
    else
        headless_data(h, s, piece);
}

static void give_data(struct h2 *h, enum dir dir, const struct piece *piece)
{
    uint32_t id = h->dir[dir].frame.stream;
    struct stream *s = stream_find(h, id);

    if (!s && dir == DIR_SERVER)
        s = stream_unseen(h, id, piece->at);
    if (!s || !s->x || piece->data.len == 0)
        return;
    if (dir == DIR_SERVER)
        response_data(h, s, piece);
    else if (s->requested && !s->asked)
        exchange_request_body(s->x, piece);
}

static struct piece take_part(struct direction *d, struct piece *piece, size_t max)
{
    struct piece part = piece_take(piece, max < piece->data.len ? max : piece->data.len);

    d->last = part.at;
    d->tcp_end = part.tcp_end;
    return part;
}

/* All flow-controlled bytes count, padding too (RFC 9113 6.9.1). */
static void data_begins(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];
    struct stream *s = stream_find(h, d->frame.stream);

    d->padding = 0;
    d->padding_known = !(d->frame.flags & H2_PADDED);
    if (dir == DIR_CLIENT)
        return;
    if (s && s->x) {
        silence_ends(h, s, d->last, true, d->frame.len);
        s->last = d->last;
        s->window -= d->frame.len;
    }
    h->window -= d->frame.len;
    h->last_data = d->last;
}

static void feed_data(struct h2 *h, enum dir dir, struct piece *piece)
{
    struct direction *d = &h->dir[dir];

    if (!d->padding_known) {
        struct piece part = take_part(d, piece, 1);
        d->padding_known = true;
        d->left--;
        d->padding = part.data.ptr[0] < d->left ? part.data.ptr[0] : d->left;
        return;
    }
    bool is_padding = d->left <= d->padding;
    struct piece part = take_part(d, piece, is_padding ? d->left : d->left - d->padding);
    d->left -= (uint32_t)part.data.len;
    if (!is_padding && !d->damaged)
        give_data(h, dir, &part);
}

static void data_ends(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];
    struct stream *s = stream_find(h, d->frame.stream);

    if (!s || !s->x)
        return;
    if (dir == DIR_SERVER && !s->answered)
        headless_data_ends(h, s);
    if (!(d->frame.flags & H2_END_STREAM))
        return;
    if (dir == DIR_CLIENT)
        request_ends(s, d->last);
    else
        response_ends(h, s, d->last);
}

/* ---- frames out of bytes ---- */

static void tell_gap(struct stream *s, enum dir dir, uint64_t len, struct place at)
{
    if (!s->x)
        return;
    if (dir == DIR_SERVER)
        exchange_response_gap(s->x, len, !s->answered, at);
    else if (s->requested && !s->asked)
        exchange_request_gap(s->x, len, false, at);
}

/* Where the next frame begins is not known, nor what the frames before it said. */
static void begin_search(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];

    h->windows_known = false;
    h->dir[dir == DIR_CLIENT ? DIR_SERVER : DIR_CLIENT].max_frame = H2_FRAME_ANY;
    h->requests_lost |= dir == DIR_CLIENT;
    hpack_lose(d->hpack);
    d->in_block = false;
    d->block.len = 0;
    d->in_frame = false;
    d->have = 0;
    d->searching = true;
}

/* Frames are missing, nobody knows of which streams. */
static void lose_boundary(struct h2 *h, enum dir dir, struct place at)
{
    for (size_t i = 0; i < h->count; i++) {
        tell_gap(h->slot[i].stream, dir, 0, at);
        h->slot[i].stream->gapped = true;
    }
    begin_search(h, dir);
}

static void frame_ends(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];
    bool is_block = d->frame.type == H2_HEADERS || d->frame.type == H2_PUSH_PROMISE ||
                    d->frame.type == H2_CONTINUATION;

    d->in_frame = false;
    d->have = 0;
    if (d->in_block && !is_block)
        lose_block(h, dir); /* RFC 9113 6.10: nothing may stand between */
    if (d->frame.type == H2_DATA)
        data_ends(h, dir);
    else if (!d->damaged)
        take_frame(h, dir);
    else if (is_block)
        lose_block(h, dir);
    else
        h->windows_known = false;
    d->payload.len = 0;
}

static void frame_begins(struct h2 *h, enum dir dir)
{
    struct direction *d = &h->dir[dir];

    d->frame = h2_frame_parse((struct slice){ d->head, sizeof(d->head) });
    d->frame.stream &= INT32_MAX;
    if (d->frame.len > d->max_frame) {
        exchanges_note(h->all, 0,
                       (struct rec_note){ NOTE_BAD_HTTP, 1, h->conn->tcp_stream,
                                          SLICE_LIT("HTTP/2 frame longer than allowed") },
                       d->last);
        lose_boundary(h, dir, d->last);
        return;
    }
    d->left = d->frame.len;
    d->in_frame = true;
    d->damaged = false;
    d->payload.len = 0;
    if (d->frame.type == H2_DATA)
        data_begins(h, dir);
    if (d->left == 0)
        frame_ends(h, dir);
}

static void feed_frame(struct h2 *h, enum dir dir, struct piece *piece)
{
    struct direction *d = &h->dir[dir];

    if (!d->in_frame) {
        if (d->have == 0)
            d->first = piece->at;
        struct piece part = take_part(d, piece, H2_FRAME_HEADER - d->have);
        memcpy(d->head + d->have, part.data.ptr, part.data.len);
        d->have += part.data.len;
        if (d->have == H2_FRAME_HEADER)
            frame_begins(h, dir);
        return;
    }
    if (d->frame.type == H2_DATA) {
        feed_data(h, dir, piece);
    } else {
        struct piece part = take_part(d, piece, d->left);
        d->left -= (uint32_t)part.data.len;
        if (!d->damaged && d->frame.type <= H2_CONTINUATION && !buf_add(&d->payload, part.data)) {
            d->damaged = true;
            note(h, NOTE_LIMIT, SLICE_LIT("frame of HTTP/2 other than DATA"), part.at);
        }
    }
    if (d->left == 0)
        frame_ends(h, dir);
}

/* ---- the beginning, and the search for a boundary ---- */

/* The client's first bytes: the preface, else it was joined in the middle. */
static void feed_preface(struct h2 *h, struct piece *piece)
{
    static const char preface[] = H2_PREFACE;
    struct direction *d = &h->dir[DIR_CLIENT];
    struct slice rest = { (const uint8_t *)preface + d->have, sizeof(preface) - 1 - d->have };
    size_t n = rest.len < piece->data.len ? rest.len : piece->data.len;

    if (memcmp(rest.ptr, piece->data.ptr, n) != 0) {
        d->started = true;
        begin_search(h, DIR_CLIENT);
        return;
    }
    take_part(d, piece, n);
    d->have += n;
    if (d->have < sizeof(preface) - 1)
        return;
    d->started = true;
    d->have = 0;
    h->windows_known = true;
}

/* Puts what there is room for into the queue; it keeps its place. */
static void queue_push(struct queue *q, struct piece *piece)
{
    size_t held = q->bytes.len - q->at;

    if (held == 0 || q->at >= SEARCH_MAX) {
        buf_drop(&q->bytes, q->at);
        q->count -= q->first;
        if (q->count > 0)
            memmove(q->item, q->item + q->first, q->count * sizeof(*q->item));
        q->at = q->first = 0;
    }
    size_t room = held < SEARCH_MAX ? SEARCH_MAX - held : 0;
    struct piece part = piece_take(piece, room < piece->data.len ? room : piece->data.len);
    if (part.data.len == 0 || !buf_add(&q->bytes, part.data))
        return;
    GROW(q->item, q->count, q->cap);
    q->item[q->count++] = part;
}

static struct piece queue_front(const struct queue *q)
{
    struct piece front = q->item[q->first];

    front.data.ptr = q->bytes.ptr + q->at;
    return front;
}

static void queue_drop(struct queue *q, size_t n)
{
    q->at += n;
    while (q->first < q->count && q->item[q->first].data.len <= n)
        n -= q->item[q->first++].data.len;
    if (q->first < q->count)
        q->item[q->first].data.len -= n; /* unsealed bytes count from its end */
}

/* True when the queue begins with a frame. */
static bool search(struct direction *d, enum h2_more more)
{
    uint32_t max = d->max_frame == H2_FRAME_ANY ? H2_FRAME_MAX : d->max_frame;

    while (d->queue.at < d->queue.bytes.len) {
        struct slice rest = { d->queue.bytes.ptr + d->queue.at, d->queue.bytes.len - d->queue.at };
        enum h2_chain chain = h2_frame_chain(rest, max, rest.len >= SEARCH_MAX ? H2_END : more);
        if (chain != H2_CHAIN_NO)
            return chain == H2_CHAIN_YES;
        queue_drop(&d->queue, 1);
    }
    return false;
}

static void feed(struct h2 *h, enum dir dir, struct piece *piece)
{
    if (dir == DIR_CLIENT && !h->dir[dir].started)
        feed_preface(h, piece);
    else
        feed_frame(h, dir, piece);
}

/* Works on what is queued, then on the piece, until both are used up or more is needed. */
static void pump(struct h2 *h, enum dir dir, struct piece piece, enum h2_more more)
{
    struct direction *d = &h->dir[dir];

    for (;;) {
        if (d->searching) {
            queue_push(&d->queue, &piece);
            d->searching = !search(d, more);
            if (d->searching && piece.data.len == 0)
                return;
        } else if (d->queue.first < d->queue.count) {
            struct piece front = queue_front(&d->queue);
            size_t len = front.data.len;
            feed(h, dir, &front);
            queue_drop(&d->queue, len - front.data.len);
        } else if (piece.data.len > 0) {
            feed(h, dir, &piece);
        } else {
            return;
        }
    }
}

/* Nothing follows what is queued, or nothing for a while. */
static void settle(struct h2 *h, enum dir dir, enum h2_more more)
{
    pump(h, dir, (struct piece){ .data = SLICE_LIT("") }, more);
}

/* ---- the layer ---- */

static void h2_data(void *self, enum dir dir, const struct piece *piece)
{
    struct h2 *h = self;
    struct direction *d = &h->dir[dir];

    if (dir == DIR_SERVER && !d->started) {
        d->started = true;
        if (h->conn->starts_late && !h->windows_known && h->count == 0)
            begin_search(h, dir); /* nor was the preface seen */
    }
    pump(h, dir, *piece, H2_MORE);
}

/* len bytes of the frame are missing, but its end is known. */
static void gap_in_frame(struct h2 *h, enum dir dir, uint32_t len, struct place at)
{
    struct direction *d = &h->dir[dir];
    struct stream *s = stream_find(h, d->frame.stream);

    d->last = at;
    if (d->frame.type != H2_DATA || !d->padding_known) {
        d->damaged = true;
        if (d->frame.type == H2_DATA && s)
            tell_gap(s, dir, d->left, at);
        d->padding_known = true;
    } else if (d->left > d->padding && s && !d->damaged) {
        uint32_t text = d->left - d->padding;
        tell_gap(s, dir, len < text ? len : text, at);
    }
    d->left -= len;
    if (d->left == 0)
        frame_ends(h, dir);
}

static void h2_gap(void *self, enum dir dir, uint64_t len, struct place at)
{
    struct h2 *h = self;
    struct direction *d = &h->dir[dir];

    settle(h, dir, H2_END);
    d->started = true;
    if (!d->searching && d->in_frame && len > 0 && len <= d->left)
        gap_in_frame(h, dir, (uint32_t)len, at);
    else
        lose_boundary(h, dir, at);
}

static void h2_ack(void *self, enum dir dir, uint64_t tcp_offset, struct place at)
{
    struct h2 *h = self;
    size_t kept = 0;

    settle(h, dir, H2_PAUSE);
    if (dir != DIR_SERVER)
        return;
    for (size_t i = 0; i < h->late_count; i++) {
        exchanges_late_ack(h->all, h->late[i].serial, tcp_offset, at);
        if (h->late[i].end > tcp_offset)
            h->late[kept++] = h->late[i];
    }
    h->late_count = kept;
    if (h->acked >= h->end)
        return; /* it tells nothing new */
    h->acked = tcp_offset;
    for (size_t i = 0; i < h->count; i++) {
        struct stream *s = h->slot[i].stream;
        if (!s->x || s->end <= s->acked)
            continue;
        s->acked = tcp_offset;
        exchange_ack(s->x, tcp_offset, at);
    }
}

/* Adds what TCP says of one silence to what it said of the stream's. */
static void merge_silence(struct silence *q, const struct silence *s)
{
    if (q->until.time == 0)
        q->in_flight = s->in_flight;
    q->until = s->until;
    if (s->window_closed && !q->window_closed)
        q->window_place = s->window_place;
    q->window_closed |= s->window_closed;
    q->window_ns += s->window_ns;
    if (s->retransmissions > 0 && q->retransmissions == 0)
        q->retransmission_place = s->retransmission_place;
    q->retransmissions += s->retransmissions;
    q->probes += s->probes;
}

/* The streams' own silences may be longer: each is reported when the stream goes on or ends. */
static void h2_silence(void *self, enum dir dir, const struct silence *s)
{
    struct h2 *h = self;

    settle(h, dir, H2_PAUSE);
    for (size_t i = 0; dir == DIR_SERVER && i < h->count; i++) {
        if (h->slot[i].stream->x && h->slot[i].stream->answered)
            merge_silence(&h->slot[i].stream->tcp, s);
    }
}

static void h2_close(void *self, enum dir dir, enum close_kind kind, struct place at)
{
    static const enum end_kind ends[2][2] = {
        [DIR_CLIENT] = { [CLOSE_FIN] = END_CLIENT_FIN, [CLOSE_RST] = END_CLIENT_RST },
        [DIR_SERVER] = { [CLOSE_FIN] = END_FIN, [CLOSE_RST] = END_RST },
    };

    settle(self, dir, H2_END);
    if (dir == DIR_CLIENT && kind == CLOSE_FIN)
        give_up_all(self, at);
    else
        end_all(self, ends[dir][kind], at);
}

static void direction_release(struct direction *d)
{
    buf_release(&d->payload);
    buf_release(&d->block);
    buf_release(&d->queue.bytes);
    free(d->queue.item);
    hpack_free(d->hpack);
}

static void h2_finish(void *self, struct place at)
{
    struct h2 *h = self;

    settle(h, DIR_CLIENT, H2_END);
    settle(h, DIR_SERVER, H2_END);
    end_all(h, END_OPEN, at);
    for (size_t i = 0; i < h->count; i++)
        free(h->slot[i].stream);
    free(h->slot);
    direction_release(&h->dir[DIR_CLIENT]);
    direction_release(&h->dir[DIR_SERVER]);
    arena_free(h->arena);
    free(h);
}

static void direction_init(struct direction *d)
{
    buf_init(&d->payload, BLOCK_MAX);
    buf_init(&d->block, BLOCK_MAX);
    buf_init(&d->queue.bytes, 2 * SEARCH_MAX);
    d->hpack = hpack_new();
    d->max_frame = H2_FRAME_MAX;
}

struct layer h2_new(struct exchanges *all, const struct conn *conn, uint64_t conn_serial,
                    struct exchange *upgraded)
{
    static const struct layer_ops ops = { .name = "h2",
                                          .data = h2_data,
                                          .gap = h2_gap,
                                          .ack = h2_ack,
                                          .silence = h2_silence,
                                          .close = h2_close,
                                          .finish = h2_finish };
    struct h2 *h = mem_alloc(sizeof(*h));

    h->all = all;
    h->conn = conn;
    h->conn_serial = conn_serial;
    h->all_windows = h->window = WINDOW_INITIAL;
    h->arena = arena_new();
    direction_init(&h->dir[DIR_CLIENT]);
    direction_init(&h->dir[DIR_SERVER]);
    if (upgraded) { /* RFC 7540 3.2: half closed by the client */
        struct stream *s = stream_open(h, 1, upgraded, conn->first);
        h->last_id = 1;
        s->requested = s->asked = true;
    }
    return (struct layer){ &ops, h };
}
