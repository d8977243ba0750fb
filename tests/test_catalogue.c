/*
 * test_catalogue.c - every rule can be acted on without asking anybody: each part of its
 * explanation is there and fits the page, its id is unique and well formed, and ids and severities
 * are those of ../shared/RULES.md, where that file stands beside this tree.
 */
#include "rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PICTURE_COLUMNS 76
#define LISTS_FROM      9 /* sections 1 to 8 are tables, the others lists */

struct part {
    const char *name;
    const char *text;
};

static bool is_blank(const char *text)
{
    return !text || text[strspn(text, " \n\t")] == '\0';
}

static bool is_plain(const char *text, bool lines)
{
    for (; *text; text++) {
        if ((*text < ' ' && !(lines && *text == '\n')) || *text > '~')
            return false;
    }
    return true;
}

/* Prints what is wrong with the part of the rule; 1 or 0. */
static unsigned part_faults(const struct rule *r, const struct part *p, bool needed)
{
    if (!p->text && !needed)
        return 0;
    if (is_blank(p->text))
        print_error("%s: no %s\n", r->id, p->name);
    else if (!is_plain(p->text, false))
        print_error("%s: %s has something else than printable ASCII\n", r->id, p->name);
    else
        return 0;
    return 1;
}

static void test_parts(void **unused)
{
    unsigned faults = 0;
    (void)unused;

    for (size_t i = 0; i < rule_count(); i++) {
        const struct rule *r = rule_at(i);
        const struct part needed[] = {
            { "summary", r->summary },     { "why", r->why },
            { "advice", r->advice },       { "source", r->source },
            { "needs", r->explain.needs }, { "blind", r->explain.blind },
        };
        const struct part wanted[] = {
            { "client", r->explain.client },
            { "server", r->explain.server },
            { "path", r->explain.path },
            { "known", r->explain.known },
        };
        for (size_t k = 0; k < ARRAY_LEN(needed); k++)
            faults += part_faults(r, &needed[k], true);
        for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
            faults += part_faults(r, &wanted[k], false);
        if (!r->check && !r->resumption && !r->whole) {
            print_error("%s: nothing checks it\n", r->id);
            faults++;
        }
    }
    assert_int_equal(faults, 0);
}

static size_t widest_line(const char *text)
{
    size_t widest = 0;

    while (*text) {
        size_t n = strcspn(text, "\n");
        widest = n > widest ? n : widest;
        text += n + (text[n] == '\n');
    }
    return widest;
}

static void test_pictures(void **unused)
{
    unsigned faults = 0;
    (void)unused;

    for (size_t i = 0; i < rule_count(); i++) {
        const struct rule *r = rule_at(i);
        const char *picture = r->explain.picture;
        if (is_blank(picture))
            print_error("%s: no picture\n", r->id);
        else if (!is_plain(picture, true))
            print_error("%s: the picture has something else than ASCII and line ends\n", r->id);
        else if (widest_line(picture) > PICTURE_COLUMNS)
            print_error("%s: the picture has a line of %zu columns\n", r->id, widest_line(picture));
        else
            continue;
        faults++;
    }
    assert_int_equal(faults, 0);
}

static void test_ids(void **unused)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    (void)unused;

    assert_true(rule_count() > 0);
    for (size_t i = 0; i < rule_count(); i++) {
        const struct rule *r = rule_at(i);
        if (!r->id[0] || r->id[strspn(r->id, allowed)])
            fail_msg("\"%s\" is no id", r->id);
        if (rule_find(r->id) != r) /* the first of that id */
            fail_msg("%s stands twice in the registry", r->id);
        if (!rule_family_of(r))
            fail_msg("%s has no family", r->id);
    }
}

/* ---- against RULES.md ---- */

struct document {
    bool seen[512]; /* by the rule's index */
    unsigned faults;
};

static size_t index_of(const struct rule *r)
{
    size_t i = 0;

    while (rule_at(i) != r)
        i++;
    return i;
}

static unsigned severities_in(const char *text, size_t size)
{
    unsigned set = 0;

    for (unsigned s = SEV_INFO; s <= SEV_ERROR; s++) {
        const char *word = severity_text((enum severity)s);
        const char *at = strstr(text, word);
        if (at && (size_t)(at - text) < size)
            set |= 1u << s;
    }
    return set;
}

/* The document names the rule, with one severity or with several and when each holds. */
static void documented(struct document *d, const char *id, unsigned severities)
{
    const struct rule *r = rule_find(id);

    if (!r) {
        print_error("RULES.md has %s, the registry has not\n", id);
        d->faults++;
        return;
    }
    size_t i = index_of(r);
    assert_true(i < ARRAY_LEN(d->seen));
    d->seen[i] = true;
    if (!(severities & 1u << r->severity)) {
        print_error("%s: severity %s is not that of RULES.md\n", id, severity_text(r->severity));
        d->faults++;
    }
}

/* "| id | severity and when | ..." */
static void read_row(struct document *d, const char *line)
{
    char id[64];
    size_t n = line[0] == '|' ? strcspn(line + 1, "|") : 0;

    if (n < 3 || line[1] != ' ' || n - 2 >= sizeof(id) || strncmp(line + 2, "rule ", 5) == 0)
        return;
    snprintf(id, sizeof(id), "%.*s", (int)(n - 2), line + 2);
    const char *severity = line + 1 + n + 1;
    documented(d, id, severities_in(severity, strcspn(severity, "|")));
}

/* "id, id (severity: more), id. Other words." An id is the word with a hyphen and no capitals. */
static void read_list(struct document *d, const char *text)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    char id[64];

    while (*text) {
        size_t n = strspn(text, word);
        if (n == 0) {
            text += *text == '(' ? strcspn(text, ")") : 1;
            continue;
        }
        snprintf(id, sizeof(id), "%.*s", (int)n, text);
        text += n;
        size_t gap = strspn(text, " \n");
        unsigned set = 1u << SEV_WARNING;
        if (text[gap] == '(') {
            unsigned said = severities_in(text + gap, strcspn(text + gap, ")"));
            set = said ? said : set;
        }
        if (strchr(id, '-') && id[strcspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0')
            documented(d, id, set);
    }
}

static void read_document(struct document *d, FILE *f)
{
    char line[4096];
    char list[8192] = "";
    size_t n = 0;
    int section = 0;

    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "## ", 3) == 0)
            section = line[3] >= '1' && line[3] <= '9' ? (line[3] - '0') : 0;
        if (strncmp(line, "## 10", 5) == 0)
            section = 10;
        if (line[0] == '#' || section == 0)
            continue;
        if (section < LISTS_FROM)
            read_row(d, line);
        else
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s", line);
        assert_true(n < sizeof(list));
    }
    read_list(d, list);
}

static void test_document(void **unused)
{
    static const char path[] = SOURCE_DIR "/../shared/RULES.md";
    struct document d = { .faults = 0 };
    FILE *f = fopen(path, "re");
    (void)unused;

    if (!f) {
        print_message("no ../shared/RULES.md beside this tree: ids and severities are not "
                      "compared with it\n");
        skip();
    }
    read_document(&d, f);
    fclose(f);
    for (size_t i = 0; i < rule_count(); i++) {
        if (d.seen[i])
            continue;
        print_error("the registry has %s, RULES.md has not\n", rule_at(i)->id);
        d.faults++;
    }
    assert_int_equal(d.faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_document),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
