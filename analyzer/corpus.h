/* corpus.h - `sseaudit corpus`: each case folder against its expect.json (FORMATS.md 5). */
#ifndef CORPUS_H
#define CORPUS_H

#include "options.h"

/* EXIT_FINDINGS when a case differs; EXIT_USAGE when there is no case at all. */
enum exit_status corpus_run(const struct options *opt, FILE *to, FILE *err);

#endif
