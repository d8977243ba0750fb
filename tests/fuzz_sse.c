/* fuzz_sse.c - however a body is cut, the decoder says the same of it. The first two bytes choose
 * the cut and the ceiling. */
#include "sse_render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice body = { data, size };
    uint8_t cut;
    uint8_t max;

    if (!slice_u8(&body, &cut) || !slice_u8(&body, &max))
        return 0;
    size_t ceiling = max & 1 ? SSE_MAX_EVENT : max;
    char *whole = render(body, body.len, 1, ceiling);
    char *pieces = render(body, cut, (size_t)1 + cut % 7, ceiling);
    if (strcmp(whole, pieces) != 0)
        abort();
    free(whole);
    free(pieces);
    return 0;
}
