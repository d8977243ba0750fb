/* page.c - see page.h. */
#include "page.h"

#include "plain.h"

#include "bytes.h"

#include <inttypes.h>
#include <stdlib.h>

#define WIDTH 100

const char *page_clean(const struct page *p, struct slice s)
{
    return plain_text(p->arena, redact_text(p->redact, p->arena, s), PLAIN_WHOLE);
}

static const char *const ink_code[] = {
    [INK_PLAIN] = "",  [INK_BOLD] = "1",   [INK_RED] = "1;31", [INK_YELLOW] = "33",
    [INK_CYAN] = "36", [INK_GREEN] = "32", [INK_DIM] = "2",
};

void page_ink(const struct page *p, enum ink ink, const char *text)
{
    if (p->color && ink != INK_PLAIN)
        fprintf(p->to, "\033[%sm%s\033[0m", ink_code[ink], text);
    else
        fputs(text, p->to);
}

/* Characters, not bytes; wide ones count as one. */
static size_t width_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((uint8_t)*text & 0xc0) != 0x80;
    return n;
}

static void spaces(FILE *to, size_t n)
{
    fprintf(to, "%*s", (int)n, "");
}

void page_words(const struct page *p, const char *lead, const char *text)
{
    const char *clean = page_clean(p, slice_str(text));
    size_t indent = width_of(lead);
    size_t at = indent;

    page_ink(p, INK_DIM, lead);
    while (*clean) {
        size_t n = strcspn(clean, " ");
        size_t width = width_of(arena_str(p->arena, (struct slice){ (const uint8_t *)clean, n }));

        if (at > indent && at + 1 + width > WIDTH) {
            fputc('\n', p->to);
            spaces(p->to, indent);
            at = indent;
        } else if (at > indent) {
            fputc(' ', p->to);
            at++;
        }
        fwrite(clean, 1, n, p->to);
        at += width;
        clean += n;
        clean += strspn(clean, " ");
    }
    fputc('\n', p->to);
}

void page_table_start(struct page *p, size_t columns)
{
    p->columns = columns;
    p->count = 0;
}

void page_cell(struct page *p, enum ink ink, const char *text)
{
    size_t count = p->count;

    if (count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 64;
        p->cell = mem_grow(p->cell, p->cap * sizeof(const char *));
        p->ink = mem_grow(p->ink, p->cap * sizeof(*p->ink));
    }
    p->cell[count] = text;
    p->ink[count] = ink;
    p->count++;
}

void page_table_end(struct page *p)
{
    size_t *width = mem_alloc((p->columns + 1) * sizeof(*width));

    for (size_t i = 0; i < p->count; i++) {
        size_t n = width_of(p->cell[i]);
        if (n > width[i % p->columns])
            width[i % p->columns] = n;
    }
    for (size_t i = 0; i < p->count; i++) {
        size_t column = i % p->columns;
        fputs("  ", p->to);
        page_ink(p, p->ink[i], p->cell[i]);
        if (column + 1 < p->columns)
            spaces(p->to, width[column] - width_of(p->cell[i]));
        else
            fputc('\n', p->to);
    }
    free(width);
}

void page_release(struct page *p)
{
    free(p->cell);
    free(p->ink);
}

const char *page_time(const struct page *p, int64_t ns)
{
    char text[TIME_TEXT];
    size_t n;

    if (ns == 0)
        return "-";
    n = strlen(time_text(ns, text));
    if (n < 4)
        return "-";
    return arena_printf(p->arena, "%.*sZ", (int)(n - 4), text);
}

const char *page_count(const struct page *p, uint64_t n, const char *noun)
{
    return arena_printf(p->arena, "%" PRIu64 " %s%s", n, noun, n == 1 ? "" : "s");
}
