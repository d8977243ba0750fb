/* expect.c - see expect.h. */
#include "expect.h"

#include "plain.h"
#include "rule.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define COMPACT (JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY)

void faults_init(struct faults *f)
{
    *f = (struct faults){ .arena = arena_new() };
}

void faults_release(struct faults *f)
{
    free(f->item);
    arena_free(f->arena);
    *f = (struct faults){ 0 };
}

void faults_add(struct faults *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = arena_vprintf(f->arena, fmt, args);
    va_end(args);
    GROW(f->item, f->count, f->cap);
    f->item[f->count++] = plain_text(f->arena, slice_str(text), PLAIN_WHOLE);
}

/* ---- comparing ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The elements as text, sorted. */
static char **sorted_texts(json_t *list)
{
    size_t count = json_array_size(list);
    char **text = mem_alloc((count + 1) * sizeof(char *));

    for (size_t i = 0; i < count; i++)
        text[i] = json_dumps(json_array_get(list, i), COMPACT);
    qsort(text, count, sizeof(char *), compare_texts);
    return text;
}

static bool same_elements(json_t *a, json_t *b)
{
    size_t count = json_array_size(a);
    bool same = count == json_array_size(b);

    if (!same)
        return false;
    char **left = sorted_texts(a);
    char **right = sorted_texts(b);
    for (size_t i = 0; i < count; i++) {
        same = same && strcmp(left[i], right[i]) == 0;
        free(left[i]);
        free(right[i]);
    }
    free(left);
    free(right);
    return same;
}

/* Lists hold the same elements in any order; the rest is equal, type included. */
static bool same(json_t *want, json_t *got)
{
    if (json_is_array(want) && json_is_array(got))
        return same_elements(want, got);
    return json_equal(want, got) == 1;
}

static bool matches(json_t *want, json_t *got)
{
    const char *key;
    json_t *value;

    if (!json_is_object(got) || !json_is_object(want))
        return false;
    json_object_foreach (want, key, value) {
        if (!same(value, json_object_get(got, key)))
            return false;
    }
    return true;
}

static bool any_matches(json_t *want, json_t *list)
{
    size_t i;
    json_t *got;

    json_array_foreach (list, i, got) {
        if (matches(want, got))
            return true;
    }
    return false;
}

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* A pattern is a rule's name with wildcards, or an object whose members the finding has. */
static bool hits(json_t *pattern, json_t *finding)
{
    if (json_is_object(pattern))
        return matches(pattern, finding);
    return json_is_string(pattern) &&
           fnmatch(json_string_value(pattern), text_of(finding, "rule"), FNM_NOESCAPE) == 0;
}

static bool any_hits(json_t *patterns, json_t *finding)
{
    size_t i;
    json_t *pattern;

    json_array_foreach (patterns, i, pattern) {
        if (hits(pattern, finding))
            return true;
    }
    return false;
}

/* ---- words ---- */

/* Text of a JSON value, in the faults' arena. */
static const char *shown(struct faults *out, json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    const char *kept = text ? arena_str(out->arena, slice_str(text)) : "null";

    free(text);
    return kept;
}

static const char *describe(struct faults *out, json_t *finding)
{
    static const char *const keys[] = { "rule",     "severity",   "certainty",
                                        "event_id", "cursor",     "replay_head",
                                        "missing",  "request_id", "message" };
    const char *text = "";

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_t *value = json_object_get(finding, keys[i]);
        if (value)
            text = arena_printf(out->arena, "%s%s%s=%s", text, *text ? ", " : "", keys[i],
                                shown(out, value));
    }
    return text;
}

/* The members of got that want names. */
static const char *part_of(struct faults *out, json_t *want, json_t *got)
{
    json_t *part = json_object();
    const char *key;
    json_t *value;
    const char *text;

    json_object_foreach (want, key, value) {
        if (json_object_get(got, key))
            json_object_set(part, key, json_object_get(got, key));
    }
    text = shown(out, part);
    json_decref(part);
    return text;
}

/* ---- the expectation itself ---- */

static void lint_entry(json_t *want, struct faults *out)
{
    const char *rule = text_of(want, "rule");

    if (!rule_find(rule))
        faults_add(out, "expect.json: unknown rule \"%s\"", rule);
}

static void lint_pattern(json_t *pattern, json_t *wanted, json_t *allow, struct faults *out)
{
    size_t i;
    json_t *entry;

    if (!json_is_string(pattern))
        return;
    json_array_foreach (wanted, i, entry) {
        if (hits(pattern, entry)) {
            faults_add(out, "expect.json: %s forbids what it requires: %s", shown(out, pattern),
                       shown(out, entry));
            return;
        }
    }
    json_array_foreach (allow, i, entry) {
        if (json_is_string(entry) &&
            fnmatch(json_string_value(pattern), json_string_value(entry), FNM_NOESCAPE) == 0) {
            faults_add(out, "expect.json: %s forbids what it allows: %s", shown(out, pattern),
                       shown(out, entry));
            return;
        }
    }
}

/* All entries of require and of the groups of any_of. */
static json_t *wanted_of(json_t *expect)
{
    json_t *wanted = json_array();
    json_t *group;
    size_t i;

    json_array_extend(wanted, json_object_get(expect, "require"));
    json_array_foreach (json_object_get(expect, "any_of"), i, group) {
        json_array_extend(wanted, group);
    }
    return wanted;
}

static const char *const members[] = { "title",       "options",  "require", "forbid",
                                       "allow",       "any_of",   "inputs",  "resumptions",
                                       "undecidable", "sessions", "summary", "exit" };

static bool is_member(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (strcmp(members[i], key) == 0)
            return true;
    }
    return false;
}

void expect_lint(json_t *expect, struct faults *out)
{
    json_t *wanted = wanted_of(expect);
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach (expect, key, value) {
        if (!is_member(key))
            faults_add(out, "expect.json: unknown member \"%s\"", key);
    }
    json_array_foreach (wanted, i, value) {
        lint_entry(value, out);
    }
    json_array_foreach (json_object_get(expect, "forbid"), i, value) {
        lint_pattern(value, wanted, json_object_get(expect, "allow"), out);
    }
    json_decref(wanted);
}

/* ---- findings ---- */

static void check_required(json_t *want, json_t *findings, struct faults *out)
{
    const char *near = "";
    size_t i;
    json_t *finding;

    if (any_matches(want, findings))
        return;
    json_array_foreach (findings, i, finding) {
        if (strcmp(text_of(want, "rule"), text_of(finding, "rule")) == 0)
            near =
                arena_printf(out->arena, "%s%s%s", near, *near ? "; " : "", describe(out, finding));
    }
    if (*near)
        faults_add(out, "missing: %s (has: %s)", shown(out, want), near);
    else
        faults_add(out, "missing: %s", shown(out, want));
}

static void check_group(json_t *group, json_t *findings, struct faults *out)
{
    size_t i;
    json_t *want;

    json_array_foreach (group, i, want) {
        if (any_matches(want, findings))
            return;
    }
    faults_add(out, "missing one of: %s", shown(out, group));
}

static bool covered(json_t *finding, json_t *wanted, json_t *allow)
{
    size_t i;
    json_t *want;

    json_array_foreach (wanted, i, want) {
        if (matches(want, finding))
            return true;
    }
    return any_hits(allow, finding);
}

static void check_found(json_t *expect, json_t *findings, struct faults *out)
{
    json_t *wanted = wanted_of(expect);
    json_t *forbid = json_object_get(expect, "forbid");
    json_t *allow = json_object_get(expect, "allow");
    size_t i;
    json_t *f;

    json_array_foreach (findings, i, f) {
        if (any_hits(forbid, f))
            faults_add(out, "forbidden: %s", describe(out, f));
        else if (strcmp(text_of(f, "severity"), "info") != 0 && !covered(f, wanted, allow))
            faults_add(out, "not expected: %s", describe(out, f));
        if (!json_object_get(f, "evidence") && !json_object_get(f, "log"))
            faults_add(out, "no evidence: %s", describe(out, f));
    }
    json_decref(wanted);
}

/* ---- lists ---- */

static void check_resumptions(json_t *want, json_t *got, struct faults *out)
{
    static const char *const keys[] = { "cursor", "replay_head", "verdict" };
    size_t i;
    json_t *entry;

    if (!want)
        return;
    if (json_array_size(want) == json_array_size(got)) {
        json_array_foreach (want, i, entry) {
            if (!matches(entry, json_array_get(got, i)))
                faults_add(out, "resumption %zu: expected %s, got %s", i, shown(out, entry),
                           part_of(out, entry, json_array_get(got, i)));
        }
        return;
    }
    const char *list = "";
    json_array_foreach (got, i, entry) {
        list = arena_printf(out->arena, "%s [", list);
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            list = arena_printf(out->arena, "%s%s%s", list, k > 0 ? ", " : "",
                                json_object_get(entry, keys[k]) ? text_of(entry, keys[k]) : "-");
        list = arena_printf(out->arena, "%s]", list);
    }
    faults_add(out, "%zu resumptions expected, %zu reported:%s", json_array_size(want),
               json_array_size(got), list);
}

static void check_list(const char *name, json_t *want, json_t *got, struct faults *out)
{
    size_t i;
    size_t k;
    json_t *entry;
    json_t *other;

    json_array_foreach (want, i, entry) {
        const char *has = "";
        if (any_matches(entry, got))
            continue;
        json_array_foreach (got, k, other) {
            has = arena_printf(out->arena, "%s %s", has, part_of(out, entry, other));
        }
        faults_add(out, "nothing in %s has %s:%s", name, shown(out, entry), has);
    }
}

static void check_summary(json_t *want, json_t *got, struct faults *out)
{
    const char *key;
    json_t *value;

    json_object_foreach (want, key, value) {
        json_t *has = json_object_get(got, key);
        if (!same(value, has))
            faults_add(out, "summary.%s: %s expected, got %s", key, shown(out, value),
                       has ? shown(out, has) : "nothing");
    }
}

static void check_exit(json_t *want, int status, struct faults *out)
{
    if (want && json_integer_value(want) != status)
        faults_add(out, "exit status %lld expected, got %d", (long long)json_integer_value(want),
                   status);
    if (!want && status == 3)
        faults_add(out, "exit status 3: an input was not read to its end");
}

void expect_compare(json_t *expect, json_t *report, int status, struct faults *out)
{
    json_t *findings = json_object_get(report, "findings");
    size_t i;
    json_t *want;

    json_array_foreach (json_object_get(expect, "require"), i, want) {
        check_required(want, findings, out);
    }
    json_array_foreach (json_object_get(expect, "any_of"), i, want) {
        check_group(want, findings, out);
    }
    check_found(expect, findings, out);
    check_resumptions(json_object_get(expect, "resumptions"),
                      json_object_get(report, "resumptions"), out);
    check_list("undecidable", json_object_get(expect, "undecidable"),
               json_object_get(report, "undecidable"), out);
    check_list("sessions", json_object_get(expect, "sessions"), json_object_get(report, "sessions"),
               out);
    check_summary(json_object_get(expect, "summary"), json_object_get(report, "summary"), out);
    check_exit(json_object_get(expect, "exit"), status, out);
}

/* ---- accepting ---- */

static json_t *members_of(json_t *object, const char *const *keys, size_t count)
{
    json_t *part = json_object();

    for (size_t i = 0; i < count; i++) {
        if (json_object_get(object, keys[i]))
            json_object_set(part, keys[i], json_object_get(object, keys[i]));
    }
    return part;
}

static json_t *required_of(json_t *findings)
{
    static const char *const keys[] = { "rule",   "severity",    "certainty", "event_id",
                                        "cursor", "replay_head", "missing",   "request_id" };
    json_t *list = json_array();
    size_t i;
    json_t *f;

    json_array_foreach (findings, i, f) {
        if (strcmp(text_of(f, "severity"), "info") != 0)
            json_array_append_new(list, members_of(f, keys, ARRAY_LEN(keys)));
    }
    return list;
}

static json_t *resumptions_of(json_t *resumptions)
{
    static const char *const keys[] = { "cursor",        "status",  "replay_head",
                                        "expected_head", "missing", "outstanding",
                                        "head_state",    "verdict", "client_did" };
    json_t *list = json_array();
    size_t i;
    json_t *r;

    json_array_foreach (resumptions, i, r) {
        json_array_append_new(list, members_of(r, keys, ARRAY_LEN(keys)));
    }
    return list;
}

static bool any_is_hit(json_t *pattern, json_t *findings)
{
    size_t i;
    json_t *f;

    json_array_foreach (findings, i, f) {
        if (hits(pattern, f))
            return true;
    }
    return false;
}

/* Patterns that no finding matches. */
static json_t *still_forbidden(json_t *forbid, json_t *findings)
{
    json_t *list = json_array();
    size_t i;
    json_t *pattern;

    json_array_foreach (forbid, i, pattern) {
        if (!any_is_hit(pattern, findings))
            json_array_append(list, pattern);
    }
    return list;
}

static json_t *still_there(json_t *entries, json_t *list)
{
    json_t *kept = json_array();
    size_t i;
    json_t *entry;

    json_array_foreach (entries, i, entry) {
        if (any_matches(entry, list))
            json_array_append(kept, entry);
    }
    return kept;
}

static void set_list(json_t *object, const char *key, json_t *list)
{
    if (json_array_size(list) > 0)
        json_object_set(object, key, list);
    json_decref(list);
}

json_t *expect_of(json_t *old, json_t *report, int status)
{
    static const char *const kept[] = { "title", "options", "inputs" };
    static const char *const counted[] = { "sessions", "streams",  "legs",
                                           "events",   "requests", "resumptions" };
    json_t *findings = json_object_get(report, "findings");
    json_t *expect = members_of(old, kept, ARRAY_LEN(kept));

    json_object_set_new(expect, "require", required_of(findings));
    set_list(expect, "forbid", still_forbidden(json_object_get(old, "forbid"), findings));
    if (json_object_get(old, "allow"))
        json_object_set(expect, "allow", json_object_get(old, "allow"));
    json_object_set_new(expect, "resumptions",
                        resumptions_of(json_object_get(report, "resumptions")));
    set_list(
        expect, "undecidable",
        still_there(json_object_get(old, "undecidable"), json_object_get(report, "undecidable")));
    set_list(expect, "sessions",
             still_there(json_object_get(old, "sessions"), json_object_get(report, "sessions")));
    json_object_set_new(
        expect, "summary",
        members_of(json_object_get(report, "summary"), counted, ARRAY_LEN(counted)));
    json_object_set_new(expect, "exit", json_integer(status));
    return expect;
}
