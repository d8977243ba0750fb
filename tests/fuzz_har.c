/*
 * fuzz_har.c - any bytes as a HAR: facts come in the order of time, every exchange ends, and the
 * sizes of the reads do not matter.
 */
#include "har_fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = { data, size };
    struct har_run whole = har_run_steps(bytes, 65536, false);
    struct har_run cut = har_run_steps(bytes, size > 0 ? 1 + data[0] % 50 : 1, false);

    check(strcmp(whole.text, cut.text) == 0);
    check(whole.status == cut.status && whole.entries == cut.entries);
    check(strcmp(whole.message, cut.message) == 0);
    check((whole.status == HAR_COMPLETE) == (whole.message[0] == '\0'));
    check(!whole.backwards && whole.left_open == 0);
    (void)har_is(bytes);
    free(whole.text);
    free(cut.text);
    return 0;
}
