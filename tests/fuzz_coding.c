/*
 * fuzz_coding.c - however a coded body is cut, it decodes to the same bytes, as far as it is not
 * damaged; the limits hold.
 *
 * Input: one byte that chooses the coding, one the cut, then the body.
 */
#include "coding.h"

#include <stdlib.h>

#define MAX_TOTAL ((size_t)4 << 20)

static void collect(void *ctx, struct slice decoded)
{
    if (decoded.len == 0 || !buf_add(ctx, decoded))
        abort();
}

static enum coding_status run(const char *value, struct slice in, size_t cut, struct buf *out)
{
    struct coding *c = coding_new(slice_str(value), 1000, MAX_TOTAL);
    enum coding_status st = CODING_OK;
    struct slice part;

    buf_init(out, MAX_TOTAL);
    while (in.len > 0 && slice_take(&in, cut < in.len ? cut : in.len, &part)) {
        uint8_t *own = (uint8_t *)mem_dup(part);
        st = coding_feed(c, (struct slice){ own, part.len }, collect, out);
        free(own);
    }
    coding_free(c);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const values[] = { "gzip", "deflate", "br", "zstd", "gzip, br", "identity" };
    struct buf whole;
    struct buf parts;

    if (size < 2)
        return 0;
    const char *value = values[data[0] % ARRAY_LEN(values)];
    const struct slice body = { data + 2, size - 2 };
    enum coding_status a = run(value, body, SIZE_MAX, &whole);
    enum coding_status b = run(value, body, (size_t)data[1] + 1, &parts);
    size_t common = whole.len < parts.len ? whole.len : parts.len;
    if (common > 0 && memcmp(whole.ptr, parts.ptr, common) != 0)
        abort();
    /* How early a library sees damage may depend on the cut. */
    bool fine = (a == CODING_OK || a == CODING_ENDED) && (b == CODING_OK || b == CODING_ENDED);
    if (fine && (a != b || whole.len != parts.len))
        abort();
    buf_release(&whole);
    buf_release(&parts);
    return 0;
}
