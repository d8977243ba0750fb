/* finding.h - adding to the lists of a finding, which live in the findings' arena. */
#ifndef FINDING_H
#define FINDING_H

#include "rule.h"

void finding_push_evidence(struct findings *all, struct finding *f, struct evidence e);
void finding_push_log(struct findings *all, struct finding *f, struct log_evidence e);
/* Once each. */
void finding_push_also(struct findings *all, struct finding *f, const char *rule_id);

#endif
