/*
 * options.h - the command line (FORMATS.md 1).
 *
 *     switch (options_parse(argc, argv, &opt, stderr)) {
 *     case OPTIONS_GO: ...
 *     case OPTIONS_DONE: exit status 0 (--help, --version: printed to standard output)
 *     case OPTIONS_BAD:  exit status 2, one line said what and what to do
 *     }
 *     options_release(&opt);
 *
 * Texts are borrowed from argv.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "input.h"
#include "rule.h"

#include <stdio.h>

#define SSEAUDIT_VERSION "0.1.0"

enum exit_status { EXIT_CLEAN = 0, EXIT_FINDINGS = 1, EXIT_USAGE = 2, EXIT_INCOMPLETE = 3 };

enum command {
    COMMAND_AUDIT,
    COMMAND_CORPUS,
    COMMAND_EXTRACT,
    COMMAND_JUDGE,
    COMMAND_ANNOTATE,
    COMMAND_RULES,
    COMMAND_EXPLAIN,
};

enum format {
    FORMAT_NONE,
    FORMAT_TEXT,
    FORMAT_JSON,
    FORMAT_NDJSON,
    FORMAT_HTML,
    FORMAT_SARIF,
    FORMAT_JUNIT,
};

enum when { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };

/* INPUT_UNKNOWN: to be recognised by its content. */
struct file_arg {
    const char *path;
    enum input_kind kind;
};

struct options {
    enum command command;
    int argc; /* of the whole command line */
    char *const *argv;
    struct file_arg *file; /* in the order of the command line; also RULE, DIR */
    size_t file_count;
    size_t file_cap;
    enum format format; /* never FORMAT_NONE after options_parse */
    const char *output; /* NULL: standard output */
    unsigned profiles;  /* enum profile */
    const char *policy;
    bool strict;
    const char **idempotent;
    size_t idempotent_count;
    size_t idempotent_cap;
    const char *session;
    const char *filter;
    int fail_on; /* enum severity; past SEV_ERROR: never */
    bool fail_on_undecidable;
    unsigned jobs; /* threads; 0: as many as there are cores for them */
    enum when color;
    enum when progress;
    bool show_payload;
    bool reveal;
    bool quiet;
    unsigned verbose;
    bool accept;   /* corpus */
    int64_t since; /* 0: from the beginning */
    int64_t until; /* 0: to the end */
    size_t max_ids;
};

enum options_result { OPTIONS_GO, OPTIONS_DONE, OPTIONS_BAD };
enum options_result options_parse(int argc, char *const *argv, struct options *ret, FILE *err);
void options_release(struct options *opt);
const char *profiles_text(unsigned mask);

/* help.c */
extern const char help_text[];
extern const char help_policy_text[];

#endif
