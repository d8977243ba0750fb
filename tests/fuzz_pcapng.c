/*
 * fuzz_pcapng.c - any bytes as a capture: reading ends, and the frames of a beginning of the file
 * are a beginning of the file's frames. The first byte says where to cut.
 */
#include "make_capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t section[4] = { 0x0a, 0x0d, 0x0d, 0x0a };
    AUTO(made_freep) struct made m = { 0 };

    if (size < 2)
        return 0;
    put(&m, section, sizeof(section)); /* always for our reader */
    put(&m, data + 1, size - 1);
    size_t cut = 4 + (size - 1) * data[0] / 255;
    struct reading whole = read_all(made_slice(&m));
    struct reading part = read_all((struct slice){ m.ptr, cut });
    if (part.frames > whole.frames)
        abort();
    if (part.frames > 0 && part.frames == whole.frames &&
        part.digest[(part.frames - 1) % ARRAY_LEN(part.digest)] !=
            whole.digest[(part.frames - 1) % ARRAY_LEN(whole.digest)])
        abort();
    if (part.frames > 0 && whole.frames <= ARRAY_LEN(whole.digest) &&
        part.digest[part.frames - 1] != whole.digest[part.frames - 1])
        abort();
    return 0;
}
