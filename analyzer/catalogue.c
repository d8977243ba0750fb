/* catalogue.c - see catalogue.h. */
#include "catalogue.h"

#include "json_out.h"
#include "page.h"
#include "plain.h"

#include <stdlib.h>

#define NAME_MAX_COMPARED 64
#define SUGGESTIONS       3

struct bit_name {
    unsigned bit;
    const char *name;
};

static const struct bit_name needs[] = {
    { NEED_T, "packets" },
    { NEED_H, "HTTP" },
    { NEED_D, "dispatch log" },
};
static const struct bit_name eras[] = {
    { ERA_L, "2024-11-05" }, { ERA_A, "2025-03-26" }, { ERA_B, "2025-06-18" },
    { ERA_C, "2025-11-25" }, { ERA_D, "2026-07-28" },
};

static void json_bits(struct json_out *j, const char *key, unsigned bits,
                      const struct bit_name *names, size_t count)
{
    jout_row(j, key);
    for (size_t i = 0; i < count; i++) {
        if (bits & names[i].bit)
            jout_text(j, NULL, names[i].name);
    }
    jout_close(j);
}

static const char *text_bits(struct arena *a, unsigned bits, const struct bit_name *names,
                             size_t count)
{
    const char *text = "";

    for (size_t i = 0; i < count; i++) {
        if (bits & names[i].bit)
            text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", names[i].name);
    }
    return *text ? text : "all";
}

/* ---- the list ---- */

static void explanation_json(struct json_out *j, const struct explanation *e)
{
    jout_open(j, "explanation", '{');
    jout_text(j, "picture", e->picture);
    jout_text(j, "needs", e->needs);
    jout_text(j, "blind", e->blind);
    jout_text(j, "client", e->client);
    jout_text(j, "server", e->server);
    jout_text(j, "path", e->path);
    jout_text(j, "known", e->known);
    jout_close(j);
}

static void list_json(FILE *to)
{
    struct json_out j;

    jout_init(&j, to, true);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < rule_count(); i++) {
        const struct rule *r = rule_at(i);
        jout_open(&j, NULL, '{');
        jout_text(&j, "rule", r->id);
        jout_text(&j, "family", rule_family_of(r)->name);
        jout_text(&j, "title", rule_family_of(r)->title);
        jout_text(&j, "severity", severity_text(r->severity));
        jout_text(&j, "profile", profiles_text(r->profile));
        json_bits(&j, "needs", r->needs, needs, ARRAY_LEN(needs));
        json_bits(&j, "revisions", r->eras ? r->eras : ~0u, eras, ARRAY_LEN(eras));
        jout_text(&j, "summary", r->summary);
        jout_text(&j, "why", r->why);
        jout_text(&j, "advice", r->advice);
        jout_text(&j, "source", r->source);
        explanation_json(&j, &r->explain);
        jout_close(&j);
    }
    jout_close(&j);
}

static enum ink ink_of(enum severity s)
{
    return s == SEV_ERROR ? INK_RED : s == SEV_WARNING ? INK_YELLOW : INK_CYAN;
}

static void list_text(struct page *p)
{
    for (size_t f = 0; f < rule_family_count(); f++) {
        const struct rule_family *family = rule_family_at(f);
        if (f > 0)
            fputc('\n', p->to);
        page_ink(p, INK_BOLD, family->title);
        fputc('\n', p->to);
        page_table_start(p, 3);
        for (size_t i = 0; i < family->count; i++) {
            page_cell(p, INK_PLAIN, family->rule[i].id);
            page_cell(p, ink_of(family->rule[i].severity), severity_text(family->rule[i].severity));
            page_cell(p, INK_PLAIN, family->rule[i].summary);
        }
        page_table_end(p);
    }
}

void catalogue_list(FILE *to, enum format format, bool color)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct page p = { .to = to, .color = color, .arena = arena };

    if (format == FORMAT_JSON) {
        list_json(to);
        return;
    }
    list_text(&p);
    page_release(&p);
}

/* ---- one rule ---- */

/* Levenshtein, over the first NAME_MAX_COMPARED bytes. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_COMPARED + 1];
    size_t la = strnlen(a, NAME_MAX_COMPARED);
    size_t lb = strnlen(b, NAME_MAX_COMPARED);

    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[lb];
}

struct near {
    size_t distance;
    size_t index;
};

static int compare_near(const void *va, const void *vb)
{
    const struct near *a = va;
    const struct near *b = vb;

    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static void suggest(const char *id, FILE *err)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    size_t count = rule_count();
    struct near *near = mem_alloc((count + 1) * sizeof(*near));

    for (size_t i = 0; i < count; i++)
        near[i] = (struct near){ distance(id, rule_at(i)->id), i };
    qsort(near, count, sizeof(*near), compare_near);
    fprintf(err, "sseaudit: unknown rule \"%s\"; nearest: ", plain_text(arena, slice_str(id), 80));
    for (size_t i = 0; i < count && i < SUGGESTIONS; i++)
        fprintf(err, "%s%s", i > 0 ? ", " : "", rule_at(near[i].index)->id);
    fputs("; sseaudit rules lists all\n", err);
    free(near);
}

static void part(const struct page *p, const char *title, const char *text)
{
    if (!text)
        return;
    fputc('\n', p->to);
    page_ink(p, INK_BOLD, title);
    fputc('\n', p->to);
    page_words(p, "  ", text);
}

/* A picture keeps its lines. */
static void picture(const struct page *p, const char *text)
{
    if (!text)
        return;
    fputc('\n', p->to);
    page_ink(p, INK_BOLD, "Picture");
    fputc('\n', p->to);
    while (*text) {
        size_t n = strcspn(text, "\n");
        fprintf(p->to, "  %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void explain(const struct page *p, const struct rule *r)
{
    const struct explanation *e = &r->explain;

    page_ink(p, INK_BOLD, r->id);
    fputs("  ", p->to);
    page_ink(p, ink_of(r->severity), severity_text(r->severity));
    fprintf(p->to, "  profile %s, family %s\n", profiles_text(r->profile), rule_family_of(r)->name);
    page_words(p, "  ", r->summary);
    part(p, "Why it matters", r->why);
    picture(p, e->picture);
    part(p, "What it needs",
         e->needs ? e->needs : text_bits(p->arena, r->needs, needs, ARRAY_LEN(needs)));
    part(p, "Protocol revisions", text_bits(p->arena, r->eras, eras, ARRAY_LEN(eras)));
    part(p, "What it cannot see", e->blind);
    part(p, "What to do", r->advice);
    part(p, "For the owner of the client", e->client);
    part(p, "For the owner of the server", e->server);
    part(p, "For the owner of the path between them", e->path);
    part(p, "Known to do it", e->known);
    part(p, "Source", r->source);
}

bool catalogue_explain(const char *id, FILE *to, bool color, FILE *err)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct page p = { .to = to, .color = color, .arena = arena };
    const struct rule *r = rule_find(id);

    if (!r) {
        suggest(id, err);
        return false;
    }
    explain(&p, r);
    page_release(&p);
    return true;
}
