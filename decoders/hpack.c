/* hpack.c - see hpack.h. Each field is cut out here and handed to nghttp2 by itself. */
#include "hpack.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#define LIST_MAX ((size_t)65536)
/* The encoder says how large its table is. What it may say depends on SETTINGS, which an observer
 * may have missed: any size is believed up to this one. */
#define TABLE_MAX      ((size_t)1 << 20)
#define FIELD_OVERHEAD 32 /* RFC 9113 6.5.2 */

struct hpack {
    nghttp2_hd_inflater *inflater;
};

/* How a field is written (RFC 7541 6). */
enum form { FORM_INDEXED, FORM_ADDED, FORM_LITERAL, FORM_TABLE_SIZE };

struct field {
    enum form form;
    uint64_t index;
    struct slice bytes; /* all of it */
    struct slice value; /* with its length, of a literal */
};

static void renew(struct hpack *h)
{
    if (h->inflater)
        nghttp2_hd_inflate_del(h->inflater);
    if (nghttp2_hd_inflate_new(&h->inflater) != 0) /* out of memory: ends the program */
        mem_grow(NULL, SIZE_MAX / 2);
    nghttp2_hd_inflate_change_table_size(h->inflater, TABLE_MAX);
}

struct hpack *hpack_new(void)
{
    struct hpack *h = mem_alloc(sizeof(*h));

    renew(h);
    return h;
}

void hpack_free(struct hpack *h)
{
    if (!h)
        return;
    nghttp2_hd_inflate_del(h->inflater);
    free(h);
}

void hpack_lose(struct hpack *h)
{
    renew(h);
}

/* RFC 7541 5.1 */
static bool take_integer(struct slice *s, unsigned prefix_bits, uint64_t *ret)
{
    uint64_t max = (UINT64_C(1) << prefix_bits) - 1;
    uint8_t byte;

    if (!slice_u8(s, &byte))
        return false;
    uint64_t v = byte & max;
    for (unsigned shift = 0; v >= max && shift <= 28; shift += 7) {
        if (!slice_u8(s, &byte))
            return false;
        v += (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = v;
            return true;
        }
    }
    *ret = v;
    return v < max;
}

static bool take_string(struct slice *s)
{
    struct slice skipped;
    uint64_t len;

    return take_integer(s, 7, &len) && slice_take(s, (size_t)len, &skipped);
}

static bool take_field(struct slice *block, struct field *ret)
{
    static const struct {
        uint8_t mark;
        enum form form;
        unsigned prefix_bits;
    } forms[] = {
        { 0x80, FORM_INDEXED, 7 },
        { 0x40, FORM_ADDED, 6 },
        { 0x20, FORM_TABLE_SIZE, 5 },
        { 0x00, FORM_LITERAL, 4 }, /* also the never indexed */
    };
    struct slice s = *block;
    size_t i = 0;

    while (s.len > 0 && (s.ptr[0] & forms[i].mark) != forms[i].mark)
        i++;
    ret->form = forms[i].form;
    ret->value = (struct slice){ 0 };
    if (!take_integer(&s, forms[i].prefix_bits, &ret->index))
        return false;
    if (ret->form == FORM_ADDED || ret->form == FORM_LITERAL) {
        if (ret->index == 0 && !take_string(&s))
            return false;
        ret->value = s;
        if (!take_string(&s))
            return false;
        ret->value.len -= s.len;
    }
    return slice_take(block, block->len - s.len, &ret->bytes);
}

/* Stands for a name that is not known; no field can have it (RFC 9110 5.1). */
#define NAMELESS "?"

static void keep(struct hpack_fields *f, struct arena *a, const nghttp2_nv *nv)
{
    if (slice_eq((struct slice){ nv->name, nv->namelen }, SLICE_LIT(NAMELESS))) {
        f->incomplete = true;
        return;
    }
    if (f->bytes + nv->namelen + nv->valuelen + FIELD_OVERHEAD > LIST_MAX) {
        f->cut = true;
        return;
    }
    f->bytes += nv->namelen + nv->valuelen + FIELD_OVERHEAD;
    if (f->count == f->cap) {
        struct http_header *old = f->item;
        f->cap = f->cap > 0 ? f->cap * 2 : 16;
        f->item = arena_alloc(a, f->cap * sizeof(*f->item));
        if (f->count > 0)
            memcpy(f->item, old, f->count * sizeof(*f->item));
    }
    f->item[f->count++] = (struct http_header){
        .name = arena_copy(a, (struct slice){ nv->name, nv->namelen }),
        .value = arena_copy(a, slice_trim((struct slice){ nv->value, nv->valuelen })),
    };
}

/* Some bytes of a block through nghttp2; f NULL: what comes out is not wanted. */
static bool inflate(struct hpack *h, struct slice s, struct hpack_fields *f, struct arena *a)
{
    nghttp2_nv nv;
    int flags;

    for (;;) {
        flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(h->inflater, &nv, &flags, s.ptr, s.len, 0);
        if (n < 0 || (size_t)n > s.len)
            return false;
        s.ptr += n;
        s.len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            if (f)
                keep(f, a, &nv);
        } else if (s.len == 0 || n == 0) {
            return true;
        }
    }
}

/* Its name is too old to be known: the entry goes into the table under another one. */
static bool inflate_nameless(struct hpack *h, const struct field *field)
{
    return inflate(h, (struct slice){ (const uint8_t *)"\x40\x01" NAMELESS, 3 }, NULL, NULL) &&
           inflate(h, field->value, NULL, NULL);
}

static bool read_field(struct hpack *h, const struct field *field, struct arena *a,
                       struct hpack_fields *ret)
{
    bool known = field->form == FORM_TABLE_SIZE ||
                 field->index <= nghttp2_hd_inflate_get_num_table_entries(h->inflater);

    if (known)
        return inflate(h, field->bytes, ret, a);
    ret->incomplete = true;
    return field->form != FORM_ADDED || inflate_nameless(h, field);
}

static bool end_block(struct hpack *h)
{
    nghttp2_nv nv;
    int flags = 0;
    ssize_t n = nghttp2_hd_inflate_hd2(h->inflater, &nv, &flags, (const uint8_t *)"", 0, 1);

    return n == 0 && nghttp2_hd_inflate_end_headers(h->inflater) == 0;
}

void hpack_read(struct hpack *h, struct slice block, struct arena *a, struct hpack_fields *ret)
{
    struct field field;
    bool ok = true;

    *ret = (struct hpack_fields){ 0 };
    while (ok && block.len > 0)
        ok = take_field(&block, &field) && read_field(h, &field, a, ret);
    if (ok && end_block(h))
        return;
    ret->incomplete = true;
    renew(h);
}
