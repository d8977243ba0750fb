/* sse.c - see sse.h. Line by line: nothing is copied unless the input ends within a block. */
#include "sse.h"

#include <assert.h>

#include "bytes.h"

#define BOM SLICE_LIT("\xef\xbb\xbf")
/* Longer than any name of a field, its colon, blank and a BOM: a line that is cut at the ceiling
 * plus this still shows that its value is too long. */
#define LINE_EXTRA ((size_t)16)
/* Buffers that grew past this are given back when their block is over. */
#define KEEP_BYTES ((size_t)64 << 10)
#define RETRY_MAX  (INT64_C(1) << 31)

enum line_end {
    END_LF = 1 << 0,
    END_CR = 1 << 1,
    END_CRLF = 1 << 2,
};

static const struct sse_item no_item = { .retry = -1 };

void sse_init(struct sse *d, size_t max_event)
{
    *d = (struct sse){ .item = no_item };
    buf_init(&d->line, max_event + LINE_EXTRA);
    buf_init(&d->id, max_event);
    buf_init(&d->event, max_event);
    buf_init(&d->data, max_event);
}

void sse_release(struct sse *d)
{
    buf_release(&d->line);
    buf_release(&d->id);
    buf_release(&d->event);
    buf_release(&d->data);
}

static void buf_shrink(struct buf *b)
{
    if (b->cap > KEEP_BYTES)
        buf_release(b);
}

/* What no longer fits is left out. */
static void buf_fill(struct buf *b, struct slice s)
{
    if (s.len > b->max - b->len)
        s.len = b->max - b->len;
    bool fits = buf_add(b, s);
    assert(fits);
    (void)fits;
}

/* A value moves from where it stands into its own buffer. */
static void value_keep(struct buf *b, struct slice *value)
{
    if (value->len == 0 && value->ptr)
        *value = SLICE_LIT("");
    if (value->len == 0 || value->ptr == b->ptr)
        return;
    b->len = 0;
    buf_fill(b, *value);
    *value = buf_slice(b);
}

/* The input's bytes, or those of `line`, are about to go away. */
static void block_keep(struct sse *d)
{
    value_keep(&d->id, &d->item.id);
    value_keep(&d->event, &d->item.event);
    value_keep(&d->data, &d->item.data);
}

/* At most max bytes of a value, without a character cut in two. */
static struct slice clip(struct sse_item *it, struct slice value, size_t max)
{
    if (value.len <= max)
        return value;
    it->oddities |= SSE_TOO_LONG;
    size_t n = max;
    while (n > 0 && max - n < 3 && (value.ptr[n] & 0xc0) == 0x80)
        n--;
    return (struct slice){ value.ptr, n };
}

static void field_data(struct sse *d, struct slice value)
{
    struct sse_item *it = &d->item;

    if (!it->has_data) {
        it->has_data = true;
        it->data = clip(it, value, d->data.max);
        d->data_cut = it->data.len < value.len;
        return;
    }
    it->oddities |= SSE_MULTI_DATA;
    if (d->data_cut || it->data.len == d->data.max) {
        it->oddities |= SSE_TOO_LONG;
        d->data_cut = true;
        return;
    }
    if (it->data.ptr != d->data.ptr) {
        d->data.len = 0;
        buf_fill(&d->data, it->data);
    }
    buf_fill(&d->data, SLICE_LIT("\n"));
    struct slice part = clip(it, value, d->data.max - d->data.len);
    d->data_cut = part.len < value.len;
    buf_fill(&d->data, part);
    it->data = buf_slice(&d->data);
}

static void field_id(struct sse *d, struct slice value)
{
    struct sse_item *it = &d->item;

    if (memchr(value.ptr, '\0', value.len)) {
        it->oddities |= SSE_ID_NUL;
        return;
    }
    it->has_id = true;
    it->id = clip(it, value, d->id.max);
    if (!utf8_valid(it->id))
        it->oddities |= SSE_BAD_UTF8;
}

static void field_event(struct sse *d, struct slice value)
{
    d->item.event = clip(&d->item, value, d->event.max);
}

static void field_retry(struct sse *d, struct slice value)
{
    uint64_t ms;
    bool valid = slice_u64(value, INT64_MAX, &ms);

    if (!valid || ms > RETRY_MAX)
        d->item.oddities |= SSE_BAD_RETRY;
    if (valid)
        d->item.retry = (int64_t)ms;
}

struct field {
    struct slice name;
    void (*take)(struct sse *d, struct slice value);
};

enum { FIELD_DATA, FIELD_ID, FIELD_EVENT, FIELD_RETRY };

static const struct field fields[] = {
    [FIELD_DATA] = { { (const uint8_t *)"data", 4 }, field_data },
    [FIELD_ID] = { { (const uint8_t *)"id", 2 }, field_id },
    [FIELD_EVENT] = { { (const uint8_t *)"event", 5 }, field_event },
    [FIELD_RETRY] = { { (const uint8_t *)"retry", 5 }, field_retry },
};

/* The value behind a colon: one blank before it is no part of it. */
static struct slice value_of(struct slice rest)
{
    size_t blank = rest.len > 0 && rest.ptr[0] == ' ';

    return (struct slice){ rest.ptr + blank, rest.len - blank };
}

/* Cuts a field line in two at its first colon; false: it has none, and the value is empty. */
static bool line_split(struct slice line, struct slice *name, struct slice *value)
{
    const uint8_t *colon = memchr(line.ptr, ':', line.len);

    if (!colon) {
        *name = line;
        *value = SLICE_LIT("");
        return false;
    }
    *name = (struct slice){ line.ptr, (size_t)(colon - line.ptr) };
    *value = value_of((struct slice){ colon + 1, line.len - name->len - 1 });
    return true;
}

/* "name:value", as nearly all lines are. The names differ in their first letters. */
static const struct field *field_starts(struct slice line, struct slice *value)
{
    const struct field *f = line.ptr[0] == 'd'   ? &fields[FIELD_DATA]
                            : line.ptr[0] == 'i' ? &fields[FIELD_ID]
                            : line.ptr[0] == 'e' ? &fields[FIELD_EVENT]
                                                 : &fields[FIELD_RETRY];
    size_t n = f->name.len;

    if (line.len <= n || line.ptr[n] != ':')
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (line.ptr[i] != f->name.ptr[i])
            return NULL;
    }
    *value = value_of((struct slice){ line.ptr + n + 1, line.len - n - 1 });
    return f;
}

static void take_field(struct sse *d, struct slice line)
{
    struct slice name;
    struct slice value;

    if (!d->fields)
        d->item.begin = d->line_begin;
    d->fields = true;
    const struct field *field = field_starts(line, &value);
    if (field) {
        field->take(d, value);
        return;
    }
    if (!line_split(line, &name, &value))
        d->item.oddities |= SSE_NO_COLON;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (slice_eq(name, fields[i].name)) {
            fields[i].take(d, value);
            return;
        }
    }
    d->item.oddities |= slice_starts(name, BOM) ? SSE_BOM : SSE_UNKNOWN_FIELD;
}

static void note_end(struct sse *d, enum line_end kind)
{
    d->ends |= kind;
    if (kind == END_CR)
        d->item.oddities |= SSE_CR_ENDS;
    if (kind == END_CRLF)
        d->item.oddities |= SSE_CRLF_ENDS;
}

static void advance(struct sse *d, struct slice *input, size_t n)
{
    input->ptr += n;
    input->len -= n;
    d->offset += n;
}

/* Only the byte after a CR tells whether it was one half of a CRLF. */
static void settle_cr(struct sse *d, struct slice *input)
{
    if (!d->after_cr || input->len == 0)
        return;
    d->after_cr = false;
    if (input->ptr[0] != '\n') {
        note_end(d, END_CR);
        return;
    }
    note_end(d, END_CRLF);
    advance(d, input, 1);
}

/* The next whole line, without its end; false when the input is used up. */
static bool take_line(struct sse *d, struct slice *input, struct slice *line)
{
    settle_cr(d, input);
    if (input->len == 0)
        return false;

    const uint8_t *end = input->ptr + input->len;
    const uint8_t *stop = bytes_line_end(input->ptr, end);
    struct slice part = { input->ptr, (size_t)(stop - input->ptr) };
    bool ended = stop < end;

    if (!d->partial)
        d->line_begin = d->offset;
    *line = part;
    if (d->partial || !ended) {
        d->partial = true;
        buf_fill(&d->line, part);
        *line = buf_slice(&d->line);
    }
    advance(d, input, part.len + ended);
    if (!ended)
        return false;
    d->after_cr = *stop == '\r';
    if (!d->after_cr)
        note_end(d, END_LF);
    return true;
}

/* Ends a block or comment. */
static void put_item(struct sse *d, enum sse_kind kind, struct sse_item *ret)
{
    *ret = d->item;
    ret->kind = kind;
    ret->end = d->offset;
    if ((d->ends & (d->ends - 1)) != 0)
        ret->oddities |= SSE_MIXED_ENDS;
    d->item = no_item;
    d->fields = false;
    d->data_cut = false;
}

/* In the lost state; the first line end after the gap may end a line that began in it. */
static void skip_line(struct sse *d, struct slice line)
{
    if (d->resync && line.len == 0) {
        d->lost = false;
        d->item = no_item;
    }
    d->resync = true;
}

/* Exactly one leading BOM is no part of the text. */
static struct slice strip_bom(const struct sse *d, struct slice line)
{
    if (d->line_begin > 0 || !slice_starts(line, BOM))
        return line;
    return (struct slice){ line.ptr + BOM.len, line.len - BOM.len };
}

/* True when the line completes an item. Not in the lost state. */
static bool take_text(struct sse *d, struct slice line, struct sse_item *ret)
{
    if (line.len > d->line.max)
        line.len = d->line.max; /* as it had come in pieces */
    line = strip_bom(d, line);
    bool comment = line.len > 0 && line.ptr[0] == ':';
    if (line.len > 0 && !comment) {
        take_field(d, line);
        return false;
    }
    if (d->fields == comment)
        return false; /* a comment within a block, or a blank line outside of one */
    if (comment)
        d->item.begin = d->line_begin;
    put_item(d, comment ? SSE_COMMENT : SSE_BLOCK, ret);
    return true;
}

/* Nearly all lines are whole and end with an LF: takes those that come first. */
static bool take_whole_lines(struct sse *d, struct slice *input, struct sse_item *ret)
{
    const uint8_t *p = input->ptr;
    const uint8_t *end = p + input->len;
    uint64_t offset = d->offset;
    bool done = false;

    if (d->partial || d->after_cr || d->lost)
        return false;
    while (!done) {
        const uint8_t *stop = bytes_line_end(p, end);
        if (stop == end || *stop == '\r')
            break;
        d->line_begin = offset;
        offset += (size_t)(stop + 1 - p);
        d->offset = offset;
        d->ends |= END_LF;
        done = take_text(d, (struct slice){ p, (size_t)(stop - p) }, ret);
        p = stop + 1;
    }
    *input = (struct slice){ p, (size_t)(end - p) };
    return done;
}

bool sse_next(struct sse *d, struct slice *input, struct sse_item *ret)
{
    struct slice line;

    if (!d->fields && !d->partial) {
        buf_shrink(&d->line);
        buf_shrink(&d->id);
        buf_shrink(&d->event);
        buf_shrink(&d->data);
    }
    bool done = take_whole_lines(d, input, ret);
    while (!done && take_line(d, input, &line)) {
        if (d->lost)
            skip_line(d, line);
        else
            done = take_text(d, line, ret);
        if (!d->partial)
            continue;
        block_keep(d);
        d->partial = false;
        d->line.len = 0;
    }
    if (!done)
        block_keep(d);
    return done;
}

void sse_gap(struct sse *d, uint64_t len)
{
    d->offset += len;
    d->item = no_item;
    d->line.len = 0;
    d->partial = false;
    d->fields = false;
    d->data_cut = false;
    d->after_cr = false;
    d->lost = true;
    d->resync = false;
}

/* The begun line counts as far as it is known to which field it belongs. */
static void tail_line(struct sse *d, struct slice line, struct sse_tail *ret)
{
    struct slice name;
    struct slice value;

    if (line.len == 0 || line.ptr[0] == ':')
        return;
    ret->has_fields = true;
    if (!line_split(line, &name, &value))
        return;
    if (slice_eq(name, SLICE_LIT("id"))) {
        ret->id = value;
        ret->has_id = false;
    } else if (slice_eq(name, SLICE_LIT("event"))) {
        ret->event = value;
    } else if (slice_eq(name, SLICE_LIT("data"))) {
        field_data(d, value);
    }
}

void sse_tail(struct sse *d, struct sse_tail *ret)
{
    struct sse_item before = d->item;
    size_t data_len = d->data.len;
    bool data_cut = d->data_cut;
    struct slice line = { 0 };

    *ret = (struct sse_tail){ 0 };
    if (d->partial)
        line = strip_bom(d, buf_slice(&d->line));
    if (!sse_in_block(d) || (!d->fields && line.len == 0))
        return; /* nothing, or nothing but a BOM */
    ret->begin = d->fields ? d->item.begin : d->line_begin;
    ret->bytes = d->offset - ret->begin;
    ret->has_fields = d->fields;
    ret->has_id = d->item.has_id;
    ret->id = d->item.id;
    ret->event = d->item.event;
    tail_line(d, line, ret);
    ret->has_data = d->item.has_data;
    ret->data = d->item.data;

    /* A look at the tail changes nothing: the begun line is still to come. */
    d->item = before;
    d->data.len = data_len;
    d->data_cut = data_cut;
    if (before.data.len > 0)
        d->item.data.ptr = d->data.ptr; /* it may have moved */
}
