/*
 * settle.h - what the rules found becomes what is reported: one fact, one finding (head of
 * RULES.md), repetitions counted, a stable order.
 */
#ifndef SETTLE_H
#define SETTLE_H

#include "rule.h"

/* Evidence of a finding that folds repetitions is kept up to this many places. */
#define SETTLE_EVIDENCE 8

void findings_settle(struct findings *all, const struct dispatch_log *log);

#endif
