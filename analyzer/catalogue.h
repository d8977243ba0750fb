/* catalogue.h - `sseaudit rules` and `sseaudit explain RULE`. */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include "options.h"

void catalogue_list(FILE *to, enum format format, bool color);
/* False, and the nearest names on err: there is no such rule. */
bool catalogue_explain(const char *id, FILE *to, bool color, FILE *err);

#endif
