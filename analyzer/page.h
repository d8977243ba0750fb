/*
 * page.h - text for people: every string that goes through here is made fit for a terminal, ids
 * of sessions are replaced, long lines are wrapped, and colour is used when asked for.
 *
 *     page_words(p, "  What  ", "long text ...");      wrapped, with a hanging indent
 *     page_table_start(p, 4); page_cell(p, text) ...; page_table_end(p);
 */
#ifndef PAGE_H
#define PAGE_H

#include "redact.h"

#include <stdio.h>

enum ink { INK_PLAIN, INK_BOLD, INK_RED, INK_YELLOW, INK_CYAN, INK_GREEN, INK_DIM };

struct page {
    FILE *to;
    bool color;
    const struct redact *redact;
    struct arena *arena;
    const char **cell; /* of the table that is being made */
    enum ink *ink;
    size_t count;
    size_t cap;
    size_t ink_cap;
    size_t columns;
};

/* Fit for a terminal; lives as long as the arena. */
const char *page_clean(const struct page *p, struct slice s);
void page_ink(const struct page *p, enum ink ink, const char *text);
void page_words(const struct page *p, const char *lead, const char *text);
void page_table_start(struct page *p, size_t columns);
void page_cell(struct page *p, enum ink ink, const char *text);
void page_table_end(struct page *p);
void page_release(struct page *p);
/* "2026-11-30T16:05:28.696382Z": microseconds are enough for people; "-" for 0. */
const char *page_time(const struct page *p, int64_t ns);
/* "1 session", "2 sessions" */
const char *page_count(const struct page *p, uint64_t n, const char *noun);

#endif
