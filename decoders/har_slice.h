/*
 * har_slice.h - finds the parts of a HAR in its bytes without parsing them: the elements of
 * log.entries[] and the values of log.creator, log.browser and log.comment. Knows strings and
 * brackets, no more, and takes the same small memory for any file.
 *
 *     har_slicer_init(&s);
 *     while (har_slicer_next(&s, &chunk, &span))     chunks in any sizes, in order
 *         span.offset, span.len                      of the file's bytes
 *
 * Whatever stands before the first brace (BOM, a jsonp call) and after the last is passed over.
 */
#ifndef HAR_SLICE_H
#define HAR_SLICE_H

#include "base.h"

enum har_part {
    HAR_PART_OTHER,
    HAR_PART_CREATOR,
    HAR_PART_BROWSER,
    HAR_PART_COMMENT,
    HAR_PART_ENTRY, /* any element of log.entries[], also null */
};

struct har_span {
    enum har_part part;
    uint64_t offset;
    uint64_t len;
};

/* Read the fields by the functions below. */
struct har_slicer {
    uint64_t offset; /* of the next byte */
    uint64_t depth;  /* open brackets */
    uint64_t begin;  /* of the value at hand */
    uint64_t level;  /* depth of the container that holds it */
    enum har_part part;
    uint8_t key[16];
    size_t key_len;
    bool in_string;
    bool escaped;
    bool in_key;
    bool after_colon;
    bool in_value;
    bool in_log;
    bool in_entries;
    bool closed;     /* the root object ended */
    bool has_log;    /* "log" with a key that HAR names, or with none so far */
    bool odd_log;    /* ... its first key is not one of HAR */
    bool has_list;   /* log.entries is an array */
    bool mismatched; /* a closing bracket of the wrong kind between the parts */
};

void har_slicer_init(struct har_slicer *s);
/* Consumes from input up to the end of the next part; false: input is used up. */
MUST_CHECK bool har_slicer_next(struct har_slicer *s, struct slice *input, struct har_span *ret);
/* The file ended inside an element of log.entries[]: its first byte. */
MUST_CHECK bool har_slicer_open_entry(const struct har_slicer *s, uint64_t *ret_offset);

/*
 * End of the JSON object at the front of s (just after its closing brace); 0: it has none, or a
 * line ends inside a string, which JSON does not allow. *ret_read: bytes looked at.
 */
size_t har_object_len(struct slice s, size_t *ret_read);

#endif
