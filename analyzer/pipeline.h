/*
 * pipeline.h - inputs in, a finished model out: opens and recognises all files, merges captures
 * and HARs by time, and runs packets -> flows -> connections -> exchanges -> model.
 *
 *     a = audit_run(&opt, stderr);       never fails; what cannot be read is said on stderr
 *     ... a->model, a->input[..] ...
 *     audit_free(a);
 */
#ifndef PIPELINE_H
#define PIPELINE_H

#include "options.h"
#include "payload.h"

enum input_status {
    INPUT_COMPLETE,
    INPUT_TRUNCATED, /* it ends too early; what came before was used */
    INPUT_DAMAGED,   /* it does not go on from some place; what came before was used */
    INPUT_UNREAD,    /* nothing of it could be used */
};
const char *input_status_text(enum input_status s);

struct audit_input {
    const char *path;
    enum input_kind kind; /* INPUT_UNKNOWN, INPUT_EMPTY: not used */
    char sha256[65];      /* empty: the file could not be opened */
    uint64_t bytes;
    uint64_t packets; /* captures; HAR and dispatch log: entries */
    int64_t first_time;
    int64_t last_time; /* 0: no time in it */
    enum input_status status;
    char **note;
    size_t note_count;
    size_t note_cap;
};

struct audit {
    const struct options *opt; /* borrowed */
    struct audit_input *input; /* in the order of the command line */
    uint32_t input_count;
    struct dispatch_log *log;
    struct model *model;
    struct payloads *payloads; /* NULL: not asked for */
    bool incomplete;           /* some input was not read, or not to its end */
    uint64_t other_packets;
    uint64_t other_connections;
    uint64_t quic_packets;
    struct arena *arena;
};

struct audit *audit_run(const struct options *opt, FILE *err);
void audit_free(struct audit *a);
/* How often the decoders noted it. */
uint64_t audit_noted(const struct audit *a, enum note_kind kind);

#endif
