/*
 * test_properties.c - every scene as a real capture through the whole of the analysis: it must meet
 * what the scene expects, and say the same however the bytes are cut into packets, reordered,
 * captured twice, compressed, or spread over files in any order.
 *
 *     test_properties              all of them
 *     test_properties SCENE...     these
 */
#include "log_of.h"
#include "make_capture.h"
#include "pipeline.h"
#include "scene_parts.h"
#include "scene_pcap.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <glob.h>
#include <zlib.h>

#define FILES_MAX 4

struct variant {
    const char *name;
    struct scene_style style;
    size_t files;  /* that the frames are spread over, in turn */
    bool reversed; /* their order on the command line */
    bool compressed;
};

static const struct variant variants[] = {
    { .name = "as it is", .files = 1 },
    { .name = "in small segments", .style = { .seed = 1, .most = 40 }, .files = 1 },
    { .name = "byte by byte", .style = { .seed = 2, .most = 1 }, .files = 1 },
    { .name = "in reordered segments",
      .style = { .seed = 3, .most = 60, .backwards = true },
      .files = 1 },
    { .name = "every packet twice", .style = { .twice = true }, .files = 1 },
    { .name = "coded with gzip", .style = { .gzip = true }, .files = 1 },
    { .name = "in three files", .files = 3 },
    { .name = "in three files, backwards, compressed",
      .style = { .seed = 4, .most = 200 },
      .files = 3,
      .reversed = true,
      .compressed = true },
};

/* ---- one run ---- */

static struct slice gzipped(struct scene *sc, struct slice s)
{
    size_t room = s.len + s.len / 100 + 1000;
    uint8_t *out = arena_alloc(sc->arena, room);
    z_stream z = { .next_in = (uint8_t *)arena_str(sc->arena, s),
                   .avail_in = (uInt)s.len,
                   .next_out = out,
                   .avail_out = (uInt)room };

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return (struct slice){ out, room - z.avail_out };
}

struct run {
    struct scene *sc;
    struct scene_wire wire;
    int fd[FILES_MAX + 1];
    char path[FILES_MAX + 1][40];
    size_t files;
    struct file_arg arg[FILES_MAX + 1];
    const char *idempotent[8];
    struct options opt;
    struct audit *audit;
};

static void add_file(struct run *r, struct slice bytes)
{
    size_t i = r->files++;

    r->fd[i] = log_of_fd(bytes);
    snprintf(r->path[i], sizeof(r->path[i]), "/proc/self/fd/%d", r->fd[i]);
}

static void add_captures(struct run *r, const struct variant *v)
{
    for (size_t i = 0; i < v->files; i++) {
        struct slice bytes = scene_pcap(r->sc, &r->wire, i, v->files);
        add_file(r, v->compressed ? gzipped(r->sc, bytes) : bytes);
    }
}

static void name_files(struct run *r, const struct variant *v)
{
    size_t tools = r->sc->options.idempotent_count;

    assert_true(tools <= ARRAY_LEN(r->idempotent));
    for (size_t i = 0; i < tools; i++)
        r->idempotent[i] = r->sc->options.idempotent[i];
    for (size_t i = 0; i < r->files; i++)
        r->arg[i].path = r->path[v->reversed ? r->files - 1 - i : i];
    r->opt = (struct options){ .file = r->arg,
                               .file_count = r->files,
                               .profiles = r->sc->profiles,
                               .strict = r->sc->options.strict,
                               .idempotent = r->idempotent,
                               .idempotent_count = tools,
                               .jobs = 1,
                               .progress = WHEN_NEVER,
                               .quiet = true };
}

/* The scene's model and findings are those of the audit, until run_end. */
static void run_begin(struct run *r, const char *path, const struct variant *v, FILE *err)
{
    *r = (struct run){ .sc = scene_read(path, stderr) };
    assert_non_null(r->sc);
    scene_set_up(r->sc);
    scene_wire(r->sc, &v->style, &r->wire);
    add_captures(r, v);
    if (r->sc->log_text.len > 0)
        add_file(r, buf_slice(&r->sc->log_text));
    name_files(r, v);
    r->audit = audit_run(&r->opt, err);
    r->sc->model = r->audit->model;
    r->sc->found = rules_run(r->audit->model, r->sc->profiles, &thresholds_default);
}

static void run_end(struct run *r)
{
    findings_free(MOVE(r->sc->found));
    r->sc->model = NULL;
    audit_free(r->audit);
    for (size_t i = 0; i < r->files; i++)
        close(r->fd[i]);
    scene_wire_release(&r->wire);
    scene_free(r->sc);
}

/* ---- all that a run says, frames aside ---- */

/* Without numbers where they count frames or coded bytes. */
static void say_text(FILE *out, const char *text, bool numbers)
{
    for (const char *c = text ? text : ""; *c; c++) {
        if (numbers || *c < '0' || *c > '9')
            fputc(*c, out);
    }
    fputc('\n', out);
}

static void say_finding(FILE *out, const struct finding *f, bool numbers)
{
    fprintf(out, "%s %s %s %s.%d " SLICE_FMT " " SLICE_FMT " " SLICE_FMT " n=%u missing=%u ",
            f->rule->id, severity_text(f->severity), certainty_text(f->certainty),
            f->session ? f->session->name : "-", (int)f->stream, SLICE_ARG(f->event_id),
            SLICE_ARG(f->cursor), SLICE_ARG(f->replay_head), f->count, f->missing_count);
    /* It quotes what the reader of the file said. */
    bool quotes = strcmp(f->rule->id, "capture-truncated") == 0;
    say_text(out, quotes ? "" : f->message, numbers);
}

static void say_resumption(FILE *out, const struct resumption *r)
{
    fprintf(out, "resumption " SLICE_FMT ": %s %s %s replayed=%u outstanding=%u faults=%x\n",
            SLICE_ARG(r->cursor), verdict_text(r->verdict), r->explanation ? r->explanation : "",
            client_did_text(r->did), r->replayed, r->outstanding_count, r->faults);
}

static void say_session(FILE *out, const struct session *s)
{
    fprintf(out, "%s " SLICE_FMT " %s events=%u requests=%u legs=%u streams=%u\n", s->name,
            SLICE_ARG(s->id), id_scheme_text(s->scheme), s->counted_events, s->client_requests,
            s->leg_count, s->stream_count);
    for (uint32_t i = 0; i < s->resumption_count; i++)
        say_resumption(out, s->resumption[i]);
}

static char *said(const struct run *r, bool numbers)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    for (uint32_t i = 0; i < r->sc->model->session_count; i++)
        say_session(out, r->sc->model->session[i]);
    for (uint32_t i = 0; i < r->sc->found->count; i++) {
        if (strcmp(r->sc->found->item[i]->rule->id, "sse-compressed") != 0) /* a variant's own */
            say_finding(out, r->sc->found->item[i], numbers);
    }
    for (uint32_t i = 0; i < r->sc->found->undecidable_count; i++)
        fprintf(out, "undecidable %s: %s\n", r->sc->found->undecidable[i].rule->id,
                r->sc->found->undecidable[i].reason);
    fclose(out);
    return text;
}

static bool has_numbers(const struct variant *v, const struct run *r)
{
    return !v->style.gzip && !r->wire.cut;
}

/* A response without its request. */
static bool begins_late(const struct scene *sc)
{
    for (const struct scene_exchange *x = sc->exchange; x; x = x->next) {
        if (!x->has_request)
            return true;
    }
    return false;
}

/* Bytes that are missing at the front or within end what a reordered or coded body can show; and of
 * several files one would be cut, not the recording. */
static bool can_vary(const struct variant *v, const struct scene *sc)
{
    if (v->style.backwards && (scene_says(sc, "late") || begins_late(sc)))
        return false;
    return !(v->style.gzip && scene_says(sc, "gap")) && !(v->files > 1 && sc->truncated);
}

/* True where the variant says the same; also where the scene cannot be told so. */
static bool same_as(const char *path, const struct variant *v, char *const wanted[2])
{
    struct run r;

    run_begin(&r, path, v, stderr);
    bool numbers = has_numbers(v, &r);
    char *got = said(&r, numbers);
    bool same = !can_vary(v, r.sc) || strcmp(got, wanted[numbers]) == 0;
    if (!same)
        fprintf(stderr, "%s: %s: other results\n--- as it is\n%s+++ %s\n%s", path, v->name,
                wanted[numbers], v->name, got);
    free(got);
    run_end(&r);
    return same;
}

static unsigned check_scene(const char *path)
{
    struct run r;
    unsigned failures;

    run_begin(&r, path, &variants[0], stderr);
    failures = scene_check(r.sc, stderr);
    char *wanted[2] = { said(&r, false), said(&r, true) };
    run_end(&r);
    for (size_t i = 1; i < ARRAY_LEN(variants); i++)
        failures += !same_as(path, &variants[i], wanted);
    free(wanted[0]);
    free(wanted[1]);
    return failures;
}

static bool packets_can_show(const char *path)
{
    struct scene *sc = scene_read(path, stderr);
    bool ok = sc && scene_is_wire(sc);

    scene_free(sc);
    return ok;
}

static void test_scenes(void **state)
{
    unsigned failed = 0;
    size_t done = 0;
    glob_t g;

    (void)state;
    assert_int_equal(glob(SOURCE_DIR "/tests/rules/*.scene", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        if (!packets_can_show(g.gl_pathv[i]))
            continue;
        failed += check_scene(g.gl_pathv[i]) > 0;
        done++;
    }
    globfree(&g);
    if (failed > 0)
        fprintf(stderr, "%u of %zu scenes failed\n", failed, done);
    assert_true(done > 0);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenes) };
    unsigned failed = 0;

    for (int i = 1; i < argc; i++)
        failed += check_scene(argv[i]);
    return argc > 1 ? failed > 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
