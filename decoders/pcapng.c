/* pcapng.c - see pcapng.h. Section numbers are those of draft-ietf-opsawg-pcapng. */
#include "pcapng.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW        ((size_t)1 << 20)
#define BLOCK_MAX     ((size_t)16 << 20) /* as libpcap */
#define INTERFACE_MAX ((size_t)65536)
#define SECRETS_MAX   ((size_t)16 << 20)
#define COMMENT_BYTES ((size_t)4 << 20) /* of all comments; the rest is not kept */
#define COMMENT_COUNT ((size_t)65536)

enum block_type {
    BLOCK_SECTION = 0x0a0d0d0a,
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 2, /* obsolete */
    BLOCK_SIMPLE = 3,
    BLOCK_ENHANCED = 6,
    BLOCK_SECRETS = 10,
};
enum option_code { OPTION_END = 0, OPTION_COMMENT = 1, OPTION_TSRESOL = 9, OPTION_TSOFFSET = 14 };

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define TLS_KEY_LOG      0x544c534bu /* 4.7: secrets type */

__extension__ typedef unsigned __int128 wide;

struct interface {
    int linktype;
    uint32_t snaplen; /* 0: no limit */
    /* ns = ticks * mul / div for a base of 10, ticks * mul >> shift for a base of 2 */
    uint64_t mul;
    uint64_t div; /* 0: base 2 */
    unsigned shift;
    int64_t offset; /* seconds */
};

struct pcapng {
    struct input *in;
    uint32_t input_index;
    enum capture_status status; /* CAPTURE_FRAME while it goes on */
    uint8_t *window;
    size_t cap;
    size_t start; /* of what is not used yet */
    size_t end;
    uint64_t offset; /* in the file, of window + start */
    bool swapped;    /* numbers of the section are not in this machine's order */
    struct interface *interface;
    size_t count; /* of interfaces of the section */
    size_t interface_cap;
    uint32_t base; /* interfaces of the sections before: they are numbered through */
    uint64_t frames;
    struct buf secrets;
    struct arena *texts;
    struct capture_comment *comment;
    size_t comments;
    size_t comment_cap;
    size_t comment_bytes;
    char message[240];
};

struct pcapng *pcapng_new(struct input *in, uint32_t input_index)
{
    struct pcapng *ng = mem_alloc(sizeof(*ng));

    ng->in = in;
    ng->input_index = input_index;
    ng->status = CAPTURE_FRAME;
    ng->cap = WINDOW;
    ng->window = mem_grow(NULL, ng->cap);
    ng->texts = arena_new();
    buf_init(&ng->secrets, SECRETS_MAX);
    return ng;
}

void pcapng_free(struct pcapng *ng)
{
    if (!ng)
        return;
    free(ng->window);
    free(ng->interface);
    free(ng->comment);
    arena_free(ng->texts);
    buf_release(&ng->secrets);
    free(ng);
}

/* The end: keeps the status for every later call, and says where it is. */
PRINTF_LIKE(3, 4)
static enum capture_status stop(struct pcapng *ng, enum capture_status status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(ng->message, sizeof(ng->message), fmt, ap);
    va_end(ap);
    ng->status = status;
    return status;
}

static enum capture_status damaged(struct pcapng *ng, const char *what)
{
    return stop(ng, CAPTURE_DAMAGED,
                "damaged block at offset %" PRIu64 ", after frame %" PRIu64 ": %s", ng->offset,
                ng->frames, what);
}

static uint32_t num32(const struct pcapng *ng, const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return ng->swapped ? __builtin_bswap32(v) : v;
}

static uint16_t num16(const struct pcapng *ng, const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return ng->swapped ? __builtin_bswap16(v) : v;
}

/* n bytes in one piece at window + start; false when the file has fewer. */
static bool want(struct pcapng *ng, size_t n)
{
    if (ng->end - ng->start >= n)
        return true;
    memmove(ng->window, ng->window + ng->start, ng->end - ng->start);
    ng->end -= ng->start;
    ng->start = 0;
    if (n > ng->cap) {
        ng->cap = n + WINDOW;
        ng->window = mem_grow(ng->window, ng->cap);
    }
    while (ng->end < n) {
        size_t got = input_read(ng->in, ng->window + ng->end, ng->cap - ng->end);
        if (got == 0)
            return false;
        ng->end += got;
    }
    return true;
}

static void comment_add(struct pcapng *ng, struct slice text, uint32_t frame)
{
    if (ng->comments >= COMMENT_COUNT || text.len > COMMENT_BYTES - ng->comment_bytes)
        return;
    ng->comment_bytes += text.len;
    GROW(ng->comment, ng->comments, ng->comment_cap);
    ng->comment[ng->comments++] = (struct capture_comment){ frame, arena_copy(ng->texts, text) };
}

/* 3.5: the next option, or false at the end (also when the rest is no option). */
static bool option_next(const struct pcapng *ng, struct slice *rest, uint16_t *code,
                        struct slice *value)
{
    struct slice head;
    struct slice padding;

    if (!slice_take(rest, 4, &head))
        return false;
    *code = num16(ng, head.ptr);
    size_t len = num16(ng, head.ptr + 2);
    if (*code == OPTION_END || !slice_take(rest, len, value))
        return false;
    return slice_take(rest, (4 - len % 4) % 4, &padding) || rest->len == 0;
}

static void comments_of(struct pcapng *ng, struct slice options, uint32_t frame)
{
    struct slice value;
    uint16_t code;

    while (option_next(ng, &options, &code, &value)) {
        if (code == OPTION_COMMENT)
            comment_add(ng, value, frame);
    }
}

static uint64_t power10(unsigned n)
{
    uint64_t v = 1;

    while (n-- > 0)
        v *= 10;
    return v;
}

/* 4.2, if_tsresol: the most significant bit tells the base, the rest is a negative exponent. */
static void resolution_set(struct interface *itf, uint8_t tsresol)
{
    unsigned n = tsresol & 0x7f;

    itf->mul = 1;
    itf->div = 1;
    itf->shift = 0;
    if (tsresol & 0x80) {
        itf->mul = (uint64_t)NS_PER_SEC;
        itf->div = 0;
        itf->shift = n;
    } else if (n <= 9) {
        itf->mul = power10(9 - n);
    } else if (n <= 28) {
        itf->div = power10(n - 9);
    } else {
        itf->mul = 0; /* no 64 bits of such ticks make a nanosecond */
    }
}

/* 0, unknown, for what no clock shows. */
static int64_t time_of(const struct interface *itf, uint32_t high, uint32_t low)
{
    wide ticks = (wide)((uint64_t)high << 32 | low) * itf->mul;
    wide ns = itf->div == 0 ? ticks >> itf->shift : itf->div == 1 ? ticks : ticks / itf->div;
    int64_t offset;
    int64_t sum;

    if (ns > INT64_MAX || __builtin_mul_overflow(itf->offset, NS_PER_SEC, &offset) ||
        __builtin_add_overflow((int64_t)ns, offset, &sum))
        return 0;
    return sum;
}

static enum capture_status section_begin(struct pcapng *ng, struct slice body)
{
    struct slice head;

    if (!slice_take(&body, 16, &head))
        return damaged(ng, "a section header that is too short");
    if (num16(ng, head.ptr + 4) != 1)
        return damaged(ng, "a version of pcapng that is not known");
    ng->base += (uint32_t)ng->count;
    ng->count = 0;
    comments_of(ng, body, 0);
    return CAPTURE_FRAME;
}

static void interface_option(const struct pcapng *ng, struct interface *itf, uint16_t code,
                             struct slice value)
{
    uint64_t v;

    if (code == OPTION_TSRESOL && value.len >= 1)
        resolution_set(itf, value.ptr[0]);
    if (code == OPTION_TSOFFSET && value.len >= 8) {
        memcpy(&v, value.ptr, sizeof(v));
        itf->offset = (int64_t)(ng->swapped ? __builtin_bswap64(v) : v);
    }
}

static enum capture_status interface_add(struct pcapng *ng, struct slice body)
{
    struct interface itf = { 0 };
    struct slice head;
    struct slice value;
    uint16_t code;

    if (!slice_take(&body, 8, &head))
        return damaged(ng, "an interface description that is too short");
    if (ng->count >= INTERFACE_MAX)
        return damaged(ng, "more than 65536 interfaces");
    itf.linktype = num16(ng, head.ptr);
    itf.snaplen = num32(ng, head.ptr + 4);
    resolution_set(&itf, 6);
    comments_of(ng, body, 0);
    while (option_next(ng, &body, &code, &value))
        interface_option(ng, &itf, code, value);
    GROW(ng->interface, ng->count, ng->interface_cap);
    ng->interface[ng->count++] = itf;
    return CAPTURE_FRAME;
}

/* 4.7. Several blocks may follow each other: each begins on a line of its own. */
static enum capture_status secrets_add(struct pcapng *ng, struct slice body)
{
    struct slice head;
    struct slice text;

    if (!slice_take(&body, 8, &head) || !slice_take(&body, num32(ng, head.ptr + 4), &text))
        return damaged(ng, "secrets that do not fit their block");
    if (num32(ng, head.ptr) != TLS_KEY_LOG)
        return CAPTURE_FRAME;
    if (buf_add(&ng->secrets, text)) /* past the ceiling they are missed where they are needed */
        (void)!buf_add(&ng->secrets, SLICE_LIT("\n"));
    return CAPTURE_FRAME;
}

/* The fields in which the three kinds of packet block differ. */
struct packet_head {
    uint32_t interface;
    uint32_t high;
    uint32_t low;
    uint32_t captured;
    uint32_t wire;
    bool timed;
};

static enum capture_status packet_emit(struct pcapng *ng, const struct packet_head *h,
                                       struct slice body, struct frame *ret)
{
    struct slice padding;

    if (h->interface >= ng->count)
        return damaged(ng, "a packet of an interface that was not described");
    const struct interface *itf = &ng->interface[h->interface];
    if (!slice_take(&body, h->captured, &ret->data))
        return damaged(ng, "a packet that is longer than its block");
    ng->frames++;
    ret->wire_len = h->wire > h->captured ? h->wire : h->captured;
    ret->linktype = itf->linktype;
    ret->interface = ng->base + h->interface;
    ret->at.time = h->timed ? time_of(itf, h->high, h->low) : 0;
    ret->at.frame = (uint32_t)ng->frames;
    ret->at.input = ng->input_index;
    if (h->timed && slice_take(&body, (4 - h->captured % 4) % 4, &padding) && body.len > 0)
        comments_of(ng, body, ret->at.frame);
    return CAPTURE_FRAME;
}

/* The enhanced block; the obsolete one is as long, but its interface has 16 bits, and a count of
 * drops follows. */
static enum capture_status packet_timed(struct pcapng *ng, struct slice body, bool obsolete,
                                        struct frame *ret)
{
    struct slice head;

    if (!slice_take(&body, 20, &head))
        return damaged(ng, "a packet block that is too short");
    struct packet_head h = {
        .interface = obsolete ? num16(ng, head.ptr) : num32(ng, head.ptr),
        .high = num32(ng, head.ptr + 4),
        .low = num32(ng, head.ptr + 8),
        .captured = num32(ng, head.ptr + 12),
        .wire = num32(ng, head.ptr + 16),
        .timed = true,
    };
    return packet_emit(ng, &h, body, ret);
}

/* 4.4: of the first interface, without a time; as much is captured as the snap length allows. */
static enum capture_status packet_simple(struct pcapng *ng, struct slice body, struct frame *ret)
{
    struct packet_head h = { 0 };
    struct slice head;

    if (!slice_take(&body, 4, &head))
        return damaged(ng, "a packet block that is too short");
    if (ng->count == 0)
        return damaged(ng, "a packet of an interface that was not described");
    h.wire = num32(ng, head.ptr);
    h.captured = h.wire;
    if (ng->interface[0].snaplen != 0 && ng->interface[0].snaplen < h.captured)
        h.captured = ng->interface[0].snaplen;
    if (h.captured > body.len)
        h.captured = (uint32_t)body.len;
    return packet_emit(ng, &h, body, ret);
}

struct block {
    uint32_t type;
    size_t len; /* all of it */
    struct slice body;
};

static bool is_packet(const struct block *b)
{
    return b->type == BLOCK_ENHANCED || b->type == BLOCK_PACKET || b->type == BLOCK_SIMPLE;
}

static enum capture_status block_use(struct pcapng *ng, const struct block *b, struct frame *ret)
{
    switch (b->type) {
    case BLOCK_ENHANCED: return packet_timed(ng, b->body, false, ret);
    case BLOCK_PACKET: return packet_timed(ng, b->body, true, ret);
    case BLOCK_SIMPLE: return packet_simple(ng, b->body, ret);
    case BLOCK_SECTION: return section_begin(ng, b->body);
    case BLOCK_INTERFACE: return interface_add(ng, b->body);
    case BLOCK_SECRETS: return secrets_add(ng, b->body);
    default: return CAPTURE_FRAME;
    }
}

/* The bytes are over, at a block's border or inside one. */
static enum capture_status at_end(struct pcapng *ng)
{
    const char *why = input_damage(ng->in);

    if (ng->start == ng->end && !why)
        return stop(ng, CAPTURE_END, "%s", "");
    return stop(ng, why && !input_cut(ng->in) ? CAPTURE_DAMAGED : CAPTURE_CUT,
                "ends inside the block at offset %" PRIu64 ", after frame %" PRIu64 "%s%s",
                ng->offset, ng->frames, why ? ": " : "", why ? why : "");
}

/* 4.1: a section says its byte order itself, behind its length. */
static bool order_learn(struct pcapng *ng)
{
    uint32_t magic;

    memcpy(&magic, ng->window + ng->start + 8, sizeof(magic));
    ng->swapped = magic == __builtin_bswap32(BYTE_ORDER_MAGIC);
    return ng->swapped || magic == BYTE_ORDER_MAGIC;
}

/* The next whole block. */
static enum capture_status block_next(struct pcapng *ng, struct block *ret)
{
    const uint8_t *p;

    if (!want(ng, 12))
        return at_end(ng);
    ret->type = num32(ng, ng->window + ng->start);
    if (ret->type == BLOCK_SECTION && !order_learn(ng))
        return damaged(ng, "a byte order that is not known");
    if (ng->offset == 0 && ret->type != BLOCK_SECTION)
        return damaged(ng, "does not begin with a section header");
    ret->len = num32(ng, ng->window + ng->start + 4);
    if (ret->len < 12 || ret->len % 4 != 0 || ret->len > BLOCK_MAX)
        return damaged(ng, "an impossible length");
    if (!want(ng, ret->len))
        return at_end(ng);
    p = ng->window + ng->start;
    if (num32(ng, p + ret->len - 4) != ret->len)
        return damaged(ng, "its two lengths differ");
    ret->body = (struct slice){ p + 8, ret->len - 12 };
    return CAPTURE_FRAME;
}

enum capture_status pcapng_next(struct pcapng *ng, struct frame *ret)
{
    struct block b = { 0 };

    while (ng->status == CAPTURE_FRAME && !is_packet(&b)) {
        if (block_next(ng, &b) != CAPTURE_FRAME || block_use(ng, &b, ret) != CAPTURE_FRAME)
            return ng->status;
        ng->start += b.len;
        ng->offset += b.len;
    }
    return ng->status;
}

const char *pcapng_message(const struct pcapng *ng)
{
    return ng->message;
}

uint64_t pcapng_frames(const struct pcapng *ng)
{
    return ng->frames;
}

struct slice pcapng_secrets(const struct pcapng *ng)
{
    return buf_slice(&ng->secrets);
}

size_t pcapng_comments(const struct pcapng *ng, const struct capture_comment **ret)
{
    *ret = ng->comment;
    return ng->comments;
}
