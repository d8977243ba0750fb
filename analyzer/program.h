/*
 * program.h - the commands. One audit from options to report, used by the main job and, once a
 * case, by the corpus.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "options.h"

/* The report goes to `to`; EXIT_USAGE when nothing was analysed. */
enum exit_status program_audit(const struct options *opt, FILE *to, bool color, FILE *err);
/* The whole command line. */
enum exit_status program_run(int argc, char *const *argv);

#endif
