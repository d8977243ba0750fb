/* fuzz_main.c - runs a fuzz target over files, for builds without a fuzzing engine. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc((size_t)1 << 20);
    size_t n = 0;

    if (f && data) {
        n = fread(data, 1, (size_t)1 << 20, f);
        uint8_t *exact = malloc(n ? n : 1); /* so that ASan sees a read past the end */
        for (size_t i = 0; exact && i < n; i++)
            exact[i] = data[i];
        if (exact)
            LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    free(data);
    if (!f) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        return 1;
    }
    fclose(f);
    return 0;
}

int main(int argc, char **argv)
{
    int bad = 0;

    for (int i = 1; i < argc; i++)
        bad |= run_file(argv[i]);
    printf("%d inputs replayed\n", argc - 1);
    return bad || argc < 2;
}
