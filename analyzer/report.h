/*
 * report.h - what goes out: one selection of what the model and the rules hold, written as text or
 * JSON. Nothing here judges.
 *
 *     r = report_new(&opt, audit, findings, policy);
 *     report_write(r, stdout, color);
 *     status = report_status(r);
 *     report_free(r);
 */
#ifndef REPORT_H
#define REPORT_H

#include "pipeline.h"
#include "policy.h"
#include "redact.h"

struct report {
    const struct options *opt;
    const struct audit *audit;
    const struct policy *policy;
    const struct model *model;
    /* What --session, --since and --until left. */
    const struct session **session;
    uint32_t session_count;
    const struct resumption **resumption; /* by session, then first byte of the request */
    uint32_t resumption_count;
    struct finding **finding;
    uint32_t finding_count;
    uint32_t suppressed_count; /* of them */
    const struct undecidable **undecidable;
    uint32_t undecidable_count;
    struct redact *redact; /* NULL: --reveal */
    struct arena *arena;
};

struct report *report_new(const struct options *opt, const struct audit *a,
                          const struct findings *f, const struct policy *policy);
void report_free(struct report *r);
/* False, and one line on err: --session names none of the sessions. */
bool report_has_session(const struct report *r, FILE *err);
enum exit_status report_status(const struct report *r);
/* In the format of the options. */
void report_write(const struct report *r, FILE *to, bool color);

/* report_json.c, report_text.c */
void report_json(const struct report *r, FILE *to);
void report_ndjson(const struct report *r, FILE *to);
void report_text(const struct report *r, FILE *to, bool color);

/* Helpers of the writers. Texts live as long as the report. */
const char *report_stream(const struct report *r, const struct session *s, uint32_t stream);
const char *report_leg(const struct report *r, const struct session *s, uint32_t leg);
const char *report_server(const struct report *r, const struct session *s);
bool report_is_har(const struct report *r, struct place at);
/* The payloads at the places of a finding, each once, in the arena of the report. */
size_t report_payloads(const struct report *r, const struct finding *f,
                       const struct payload ***ret);
/* Counts of unsuppressed findings. */
uint32_t report_count(const struct report *r, enum severity severity);
uint32_t report_verdicts(const struct report *r, enum verdict verdict);

#endif
