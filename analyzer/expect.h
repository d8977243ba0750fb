/*
 * expect.h - an expectation of the corpus (FORMATS.md 5) against a report: both JSON.
 *
 *     faults_init(&faults);
 *     expect_compare(expect, report, status, &faults);
 *     ... faults.item[0 .. faults.count): one line each, fit for a terminal ...
 *     faults_release(&faults);
 */
#ifndef EXPECT_H
#define EXPECT_H

#include "base.h"

#include <jansson.h>

struct faults {
    char **item;
    size_t count;
    size_t cap;
    struct arena *arena;
};
void faults_init(struct faults *f);
void faults_release(struct faults *f);
void faults_add(struct faults *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* What is wrong with the expectation itself. */
void expect_lint(json_t *expect, struct faults *out);
void expect_compare(json_t *expect, json_t *report, int status, struct faults *out);
/* The expectation that this report meets; keeps from the old one (NULL: none) what still holds. */
json_t *expect_of(json_t *old, json_t *report, int status);

#endif
