/*
 * output.h - where a report goes: standard output, a device or pipe, or a file that appears only
 * when it is whole.
 *
 *     out = output_open(path, err);         path NULL or "-": standard output
 *                                           NULL: it cannot be written, or is a capture, a HAR or a
 *                                           key log, which no report replaces; one line on err
 *     ... write to out->to ...
 *     ok = output_close(out, err);          renames; false: it could not be written
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *to;
    const char *path; /* NULL: standard output */
    char *place;      /* the file that is to be replaced, links resolved; NULL: written directly */
    char *temporary;
};

struct output *output_open(const char *path, FILE *err);
bool output_close(struct output *out, FILE *err);
/* Nothing is left behind. */
void output_drop(struct output *out);

#endif
