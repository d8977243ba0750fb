/* corpus.c - see corpus.h. expect.c compares; here are the folders, the runs and the output. */
#include "corpus.h"

#include "expect.h"
#include "output.h"
#include "plain.h"
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a case folder may hold. */
static const char *const input_patterns[] = {
    "capture*.pcap",     "capture*.pcapng", "capture*.pcap.gz", "capture*.pcapng.gz",
    "capture*.pcap.zst", "capture*.har",    "capture*.har.gz",  "dispatch*.ndjson",
    "dispatch*.json",    "keys*.log",
};
static const char *const notes[] = { "expect.json", "truth.md", "README.md" };

struct names {
    char **item;
    size_t count;
    size_t cap;
};

struct corpus {
    const struct options *opt;
    FILE *to;
    FILE *err;
    struct arena *arena;
    size_t passed;
    size_t failed;
};

/* One case while it runs. */
struct trial {
    struct corpus *corpus;
    const char *dir;
    const char *name;
    json_t *expect; /* NULL: none yet (--accept) */
    json_t *report;
    int status;
    struct faults faults;
};

/* ---- folders ---- */

static void names_add(struct names *n, char *name)
{
    if (n->count == n->cap) {
        n->cap = n->cap ? n->cap * 2 : 16;
        n->item = mem_grow(n->item, n->cap * sizeof(char *));
    }
    n->item[n->count++] = name;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, . and .. aside; false: no such folder. */
static bool names_of(struct arena *a, const char *dir, struct names *ret)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    *ret = (struct names){ 0 };
    if (!d)
        return false;
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            names_add(ret, arena_str(a, slice_str(e->d_name)));
    }
    closedir(d);
    if (ret->count > 0)
        qsort(ret->item, ret->count, sizeof(char *), compare_names);
    return true;
}

static bool is_input(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(input_patterns); i++) {
        if (fnmatch(input_patterns[i], name, 0) == 0)
            return true;
    }
    return false;
}

static bool is_note(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
        if (strcmp(notes[i], name) == 0)
            return true;
    }
    return false;
}

/* ---- one run ---- */

static void inputs_of_folder(struct trial *t, struct names *args)
{
    struct arena *a = t->faults.arena;
    struct names all;

    if (!names_of(a, t->dir, &all)) {
        faults_add(&t->faults, "the folder cannot be read");
        return;
    }
    for (size_t i = 0; i < all.count; i++) {
        if (is_input(all.item[i]))
            names_add(args, arena_printf(a, "%s/%s", t->dir, all.item[i]));
        else if (!is_note(all.item[i]))
            faults_add(&t->faults, "file that no input pattern matches: %s", all.item[i]);
    }
    free(all.item);
}

static void add_strings(struct trial *t, json_t *list, const char *prefix, struct names *args)
{
    size_t i;
    json_t *value;

    json_array_foreach (list, i, value) {
        if (json_is_string(value))
            names_add(args,
                      arena_printf(t->faults.arena, "%s%s", prefix, json_string_value(value)));
        else
            faults_add(&t->faults, "expect.json: options and inputs are strings");
    }
}

static void arguments(struct trial *t, struct names *args)
{
    struct arena *a = t->faults.arena;
    json_t *inputs = json_object_get(t->expect, "inputs");

    names_add(args, arena_str(a, SLICE_LIT("sseaudit")));
    add_strings(t, json_object_get(t->expect, "options"), "", args);
    if (inputs)
        add_strings(t, inputs, arena_printf(a, "%s/", t->dir), args);
    else
        inputs_of_folder(t, args);
}

static json_t *parse(const char *text, size_t len, json_error_t *reterr)
{
    json_t *root = json_loadb(text, len, 0, reterr);

    /* ids past 64 bits: compared as doubles, rather than not at all */
    return root ? root : json_loadb(text, len, JSON_DECODE_INT_AS_REAL, reterr);
}

static void audit(struct trial *t, struct options *opt, FILE *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    json_error_t e;

    if (!to)
        return;
    opt->format = FORMAT_JSON;
    opt->progress = WHEN_NEVER;
    t->status = (int)program_audit(opt, to, false, err);
    fclose(to);
    t->report = t->status == EXIT_USAGE ? NULL : parse(text, len, &e);
    if (!t->report && t->status != EXIT_USAGE)
        faults_add(&t->faults, "the report is not JSON: %s", e.text);
    free(text);
}

/* What was said on standard error, one fault a line. */
static void tell_errors(struct trial *t, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        faults_add(&t->faults, "said: %.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void run_case(struct trial *t)
{
    struct names args = { 0 };
    struct options opt;
    char *said = NULL;
    size_t len = 0;
    FILE *err = open_memstream(&said, &len);

    if (!err)
        return;
    arguments(t, &args);
    t->status = EXIT_USAGE;
    if (options_parse((int)args.count, args.item, &opt, err) == OPTIONS_GO) {
        audit(t, &opt, err);
        options_release(&opt);
    }
    fclose(err);
    if (t->status == EXIT_USAGE) {
        faults_add(&t->faults, "exit status 2: nothing was analysed");
        tell_errors(t, said);
    }
    free(said);
    free(args.item);
}

/* ---- output ---- */

static void xml_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", to);
        else if (*text == '<')
            fputs("&lt;", to);
        else if (*text == '>')
            fputs("&gt;", to);
        else if (*text == '"')
            fputs("&quot;", to);
        else
            fputc(*text, to);
    }
}

static void tell_junit(const struct trial *t)
{
    FILE *to = t->corpus->to;

    fputs("    <testcase classname=\"sseaudit.corpus\" name=\"", to);
    xml_text(to, plain_text(t->faults.arena, slice_str(t->name), PLAIN_WHOLE));
    if (t->faults.count == 0) {
        fputs("\"/>\n", to);
        return;
    }
    fprintf(to, "\">\n      <failure message=\"%zu difference%s\">", t->faults.count,
            t->faults.count == 1 ? "" : "s");
    for (size_t i = 0; i < t->faults.count; i++) {
        xml_text(to, t->faults.item[i]);
        fputc('\n', to);
    }
    fputs("</failure>\n    </testcase>\n", to);
}

static void tell_text(const struct trial *t)
{
    FILE *to = t->corpus->to;

    if (t->corpus->opt->quiet && t->faults.count == 0)
        return;
    fprintf(to, "%s%s\n", t->faults.count == 0 ? "ok    " : "DIFF  ",
            plain_text(t->faults.arena, slice_str(t->name), PLAIN_WHOLE));
    for (size_t i = 0; i < t->faults.count; i++)
        fprintf(to, "        %s\n", t->faults.item[i]);
}

/* ---- one case ---- */

static void accept_case(struct trial *t)
{
    const char *path = arena_printf(t->faults.arena, "%s/expect.json", t->dir);
    struct output *out = output_open(path, t->corpus->err);
    json_t *expect = expect_of(t->expect, t->report, t->status);

    if (out) {
        json_dumpf(expect, out->to, JSON_INDENT(2));
        fputc('\n', out->to);
        if (output_close(out, t->corpus->err) && t->corpus->opt->format == FORMAT_TEXT)
            fputs("        accepted: expect.json says so from now on\n", t->corpus->to);
    }
    json_decref(expect);
}

/* NULL where there is none yet, or where it cannot be read: then a fault says so. */
static json_t *read_expectation(struct trial *t)
{
    const char *path = arena_printf(t->faults.arena, "%s/expect.json", t->dir);
    json_error_t e;
    json_t *root;

    if (access(path, F_OK) != 0) {
        faults_add(&t->faults, "there is no expect.json");
        return NULL;
    }
    root = json_load_file(path, 0, &e);
    if (!root)
        root = json_load_file(path, JSON_DECODE_INT_AS_REAL, &e);
    if (!root)
        faults_add(&t->faults, "expect.json: line %d: %s", e.line, e.text);
    if (root && !json_is_object(root))
        faults_add(&t->faults, "expect.json: no object");
    return root;
}

static void judge_case(struct trial *t)
{
    bool is_new;

    t->expect = read_expectation(t);
    is_new = !t->expect;
    if (!is_new && !json_is_object(t->expect))
        return;
    if (is_new && !t->corpus->opt->accept)
        return;
    run_case(t);
    if (!is_new)
        expect_lint(t->expect, &t->faults);
    if (t->report && !is_new)
        expect_compare(t->expect, t->report, t->status, &t->faults);
}

static void one_case(struct corpus *c, const char *dir, const char *name)
{
    struct trial t = { .corpus = c, .dir = dir, .name = name };

    faults_init(&t.faults);
    judge_case(&t);
    if (c->opt->format == FORMAT_JUNIT)
        tell_junit(&t);
    else
        tell_text(&t);
    if (c->opt->accept && t.faults.count > 0 && t.report)
        accept_case(&t);
    c->passed += t.faults.count == 0;
    c->failed += t.faults.count > 0;
    json_decref(t.expect);
    json_decref(t.report);
    faults_release(&t.faults);
    fflush(c->to);
}

/* ---- the whole ---- */

static bool has_file(struct arena *a, const char *dir, const char *name)
{
    return access(arena_printf(a, "%s/%s", dir, name), F_OK) == 0;
}

/* A folder is a case when it holds an expectation, or, to be accepted, inputs. */
static bool is_case(struct corpus *c, const char *dir)
{
    struct names all;
    bool found = false;

    if (has_file(c->arena, dir, "expect.json"))
        return true;
    if (!c->opt->accept || !names_of(c->arena, dir, &all))
        return false;
    for (size_t i = 0; i < all.count; i++)
        found |= is_input(all.item[i]);
    free(all.item);
    return found;
}

static bool one_folder(struct corpus *c, const char *dir)
{
    struct names all;

    if (!names_of(c->arena, dir, &all)) {
        fprintf(c->err, "sseaudit: %s: no such folder; name the folder that holds the cases\n",
                plain_text(c->arena, slice_str(dir), PLAIN_WHOLE));
        return false;
    }
    if (is_case(c, dir)) {
        one_case(c, dir, dir);
        free(all.item);
        return true;
    }
    for (size_t i = 0; i < all.count; i++) {
        const char *path = arena_printf(c->arena, "%s/%s", dir, all.item[i]);
        if (is_case(c, path))
            one_case(c, path, all.item[i]);
    }
    free(all.item);
    return true;
}

static void end_junit(const struct corpus *c, FILE *to, const char *cases)
{
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"sseaudit corpus\" tests=\"%zu\" failures=\"%zu\">\n"
            "%s  </testsuite>\n</testsuites>\n",
            c->passed + c->failed, c->failed, cases);
}

enum exit_status corpus_run(const struct options *opt, FILE *to, FILE *err)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct corpus c = { .opt = opt, .to = to, .err = err, .arena = arena };
    char *cases = NULL;
    size_t len = 0;
    FILE *junit = opt->format == FORMAT_JUNIT ? open_memstream(&cases, &len) : NULL;
    bool ok = true;

    if (junit)
        c.to = junit;
    for (size_t i = 0; i < opt->file_count; i++)
        ok = one_folder(&c, opt->file[i].path) && ok;
    if (junit) {
        fclose(junit);
        end_junit(&c, to, cases);
    }
    free(cases);
    if (!ok)
        return EXIT_USAGE;
    if (c.passed + c.failed == 0) {
        fputs("sseaudit: corpus: no case found; a case is a folder with expect.json\n", err);
        return EXIT_USAGE;
    }
    if (!junit)
        fprintf(to, "%zu passed, %zu failed\n", c.passed, c.failed);
    return c.failed > 0 ? EXIT_FINDINGS : EXIT_CLEAN;
}
