/*
 * policy.h - what a policy file says (sseaudit --help-policy): severities, thresholds, and
 * findings that are accepted for a reason.
 *
 *     p = policy_load(path, stderr);     path NULL: the defaults; NULL: bad, one line said why
 *     policy_apply(p, findings);
 *     policy_free(p);
 */
#ifndef POLICY_H
#define POLICY_H

#include "rule.h"

#include <stdio.h>

struct policy;
struct policy *policy_load(const char *path, FILE *err);
void policy_free(struct policy *p);
const struct thresholds *policy_thresholds(const struct policy *p);
const char *policy_sha256(const struct policy *p); /* hex; NULL: no file */
/* Severities changed, what is off removed, what is accepted marked as suppressed. */
void policy_apply(const struct policy *p, struct findings *f);

#endif
