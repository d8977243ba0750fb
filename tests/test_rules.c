/*
 * test_rules.c - every tests/rules/RULE.fire*.scene has its finding, every RULE.quiet*.scene has
 * not, both meet what they expect, and no rule is without one of each.
 *
 *     test_rules              all of them
 *     test_rules SCENE...     these, and what was found in them
 */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>

enum wanted { WANT_FIRE, WANT_QUIET, WANT_NOTHING };

struct scene_name {
    char rule[64];
    enum wanted wanted;
};

/* From "DIR/RULE.fire-anything.scene". */
static struct scene_name name_of(const char *path)
{
    struct scene_name n = { .wanted = WANT_NOTHING };
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strchr(base, '.');

    snprintf(n.rule, sizeof(n.rule), "%.*s", dot ? (int)(dot - base) : 0, base);
    if (dot && strncmp(dot, ".fire", 5) == 0)
        n.wanted = WANT_FIRE;
    else if (dot && strncmp(dot, ".quiet", 6) == 0)
        n.wanted = WANT_QUIET;
    return n;
}

static unsigned run_scene(const char *path)
{
    struct scene_name n = name_of(path);
    struct scene *sc = scene_read(path, stderr);
    unsigned failures = 1;

    if (!sc)
        return 1;
    scene_play(sc);
    failures = scene_check(sc, stderr);
    unsigned found = n.wanted == WANT_NOTHING ? 0 : scene_findings(sc, n.rule);
    if (n.wanted == WANT_FIRE && found == 0) {
        fprintf(stderr, "%s: %s does not fire\n", path, n.rule);
        failures++;
    }
    if (n.wanted == WANT_QUIET && found > 0) {
        fprintf(stderr, "%s: %s fires\n", path, n.rule);
        failures++;
    }
    if (n.wanted != WANT_NOTHING && !rule_find(n.rule)) {
        fprintf(stderr, "%s: there is no such rule\n", path);
        failures++;
    }
    scene_free(sc);
    return failures;
}

static void test_scenes(void **state)
{
    unsigned failed = 0;
    glob_t g;

    (void)state;
    assert_int_equal(glob(SOURCE_DIR "/tests/rules/*.scene", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        failed += run_scene(g.gl_pathv[i]) > 0;
    if (failed > 0)
        fprintf(stderr, "%u of %zu scenes failed\n", failed, g.gl_pathc);
    globfree(&g);
    assert_int_equal(failed, 0);
}

static bool has_scene(const char *rule, const char *kind)
{
    char pattern[512];
    glob_t g;

    snprintf(pattern, sizeof(pattern), "%s/tests/rules/%s.%s*.scene", SOURCE_DIR, rule, kind);
    bool found = glob(pattern, 0, NULL, &g) == 0;
    globfree(&g);
    return found;
}

static void test_every_rule_has_scenes(void **state)
{
    unsigned lacking = 0;

    (void)state;
    for (size_t i = 0; i < rule_count(); i++) {
        const struct rule *r = rule_at(i);
        if (!r->check && !r->resumption && !r->whole)
            continue;
        bool fire = has_scene(r->id, "fire");
        bool quiet = has_scene(r->id, "quiet");
        if (!fire || !quiet)
            fprintf(stderr, "%s lacks a scene:%s%s\n", r->id, fire ? "" : " fire",
                    quiet ? "" : " quiet");
        lacking += !fire || !quiet;
    }
    assert_int_equal(lacking, 0);
}

static void show_finding(const struct finding *f)
{
    printf("  %s %s %s: %s\n", f->rule->id, severity_text(f->severity),
           certainty_text(f->certainty), f->message ? f->message : "");
}

static int show_scene(const char *path)
{
    struct scene *sc = scene_read(path, stderr);

    if (!sc)
        return 1;
    scene_play(sc);
    printf("%s\n", path);
    for (uint32_t i = 0; i < sc->found->count; i++)
        show_finding(sc->found->item[i]);
    for (uint32_t i = 0; i < sc->found->undecidable_count; i++)
        printf("  undecidable %s: %s\n", sc->found->undecidable[i].rule->id,
               sc->found->undecidable[i].reason);
    for (uint32_t i = 0; i < sc->model->session_count; i++) {
        const struct session *s = sc->model->session[i];
        for (uint32_t k = 0; k < s->resumption_count; k++)
            printf("  resumption with " SLICE_FMT ": %s, %s (%s)\n",
                   SLICE_ARG(s->resumption[k]->cursor), verdict_text(s->resumption[k]->verdict),
                   s->resumption[k]->explanation ? s->resumption[k]->explanation : "",
                   client_did_text(s->resumption[k]->did));
    }
    scene_free(sc);
    return run_scene(path) > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenes),
        cmocka_unit_test(test_every_rule_has_scenes),
    };
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= show_scene(argv[i]);
    return argc > 1 ? failed : cmocka_run_group_tests(tests, NULL, NULL);
}
