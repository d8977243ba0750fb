/*
 * har_text.h - repairs of the text in HAR files: what JSON libraries refuse and what exporters
 * spoil (HAR.md 3.1, 5).
 */
#ifndef HAR_TEXT_H
#define HAR_TEXT_H

#include "base.h"

/* Length of the valid UTF-8 sequence (RFC 3629) at the front, 1 to 4; 0: invalid or cut. */
size_t har_utf8_len(struct slice s);

/*
 * JSON text with each lone surrogate escape and each invalid UTF-8 byte replaced by U+FFFD, and how
 * many there were. Without any the result is `in` itself; else it lies in scratch, which the caller
 * inits and releases. False: scratch's ceiling was passed, or there are more than max_values
 * commas and brackets outside strings, so that a tree of it would take too much memory.
 */
struct har_cleaned {
    struct slice text;
    size_t repaired;
};
MUST_CHECK bool har_text_clean(struct slice in, size_t max_values, struct buf *scratch,
                               struct har_cleaned *ret);

/* Standard base64, line breaks and missing padding allowed. ret is malloc'ed; false: wrong. */
MUST_CHECK bool har_base64(struct slice in, uint8_t **ret, size_t *ret_len);

/*
 * Undoes a UTF-8 body that was decoded as windows-1252: every character is encoded back (C1 for the
 * five bytes without a character) and the bytes must be valid UTF-8 with at least one character
 * beyond ASCII. ret is malloc'ed; false: this is no such text.
 */
MUST_CHECK bool har_unmojibake(struct slice in, uint8_t **ret, size_t *ret_len);

#endif
