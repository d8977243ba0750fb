/*
 * test_properties.c - every scene as a real capture through the whole of the analysis: it must meet
 * what the scene expects, and its twins must say the same: however the bytes are cut into packets,
 * reordered, captured twice, compressed, tunnelled, or spread over files in any order; over TLS and
 * HTTP/2; seen by several taps, of which none has all; and as a browser exports it.
 *
 *     test_properties              all of them
 *     test_properties SCENE...     these
 */
#include "log_of.h"
#include "make_capture.h"
#include "pipeline.h"
#include "scene_file.h"
#include "scene_har.h"
#include "scene_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fnmatch.h>
#include <glob.h>
#include <zlib.h>

#define FILES_MAX 8

enum har_use {
    HAR_NONE,
    HAR_BESIDE_NOTHING, /* alone */
    HAR_BESIDE_PCAP,
};

/* How closely the messages of findings are compared. */
enum words {
    WORDS_ALL,
    WORDS_NO_NUMBERS, /* times differ by as much as the taps, or bytes are counted */
    WORDS_NONE,       /* they quote what differs: addresses, FIN or RST_STREAM */
    WORDS_HAR,        /* ... and less is proven */
};

struct variant {
    const char *name;
    struct scene_style style;
    struct scene_form form;
    struct scene_form second; /* of another tap */
    bool taps;                /* there is one */
    size_t files;             /* of one tap, over which its frames are spread in turn; 0: one */
    bool reversed;            /* their order on the command line */
    unsigned jobs;            /* threads; 0: one */
    bool compressed;
    bool proxy; /* both legs of a proxy */
    enum har_use har;
    enum scene_har_shape shape;
    enum words words;
    const char *const *unlike; /* rules that may say otherwise; NULL ends */
    bool (*can)(const struct scene *sc);
    unsigned one_of; /* only one scene of so many, by its name; 0: all */
};

/* Compression is the variant's own. */
static const char *const unlike_gzip[] = { "sse-compressed", NULL };
/* HTTP/1.1's framing does not exist in HTTP/2. */
static const char *const unlike_h2[] = { "http-*", NULL };
/* ... and closed windows and silences are those of the connection. */
static const char *const unlike_h2_shared[] = { "http-*", "stall-*", "idle-*", NULL };
static const char *const unlike_copies[] = { "capture-duplicate-leg", NULL };

/* What a HAR lacks: heads as bytes, client addresses, who closed; what it says of itself. */
static const char *const unlike_har[] = { "http-*", "capture-*", "session-shared",
                                          /* what a header or body that is not there means */
                                          "post-accept-incomplete", "post-request-bad-reply",
                                          /* it repeats what the resumption lacks */
                                          "resume-unproven",
                                          /* codings are undone, characters are replaced */
                                          "sse-compressed", "session-id-charset",
                                          /* it looks at how the first try ended */
                                          "stateless-reissue-same-id", NULL };
/* Firefox has one time for all events of a stream, that of its end. */
static const char *const unlike_firefox[] = {
    "http-*",      "capture-*", "session-*",
    "dispatch-*",  "cursor-*",  "replay-*",
    "resume-*",    "request-*", "progress-unknown-token",
    "response-*",  "post-*",    "sse-compressed",
    "stateless-*", NULL,
};
/* A HAR has no client addresses. */
static const char *const unlike_har_beside[] = { "capture-duplicate-leg", "session-shared", NULL };

static bool is_whole(const struct scene *sc)
{
    return !sc->truncated;
}

static bool has_key(const struct scene *sc, const char *key)
{
    for (size_t i = 0; i < sc->count; i++) {
        for (size_t k = 0; k < sc->line[i].count; k++) {
            struct slice have = sc->line[i].word[k].key;
            if (have.ptr && slice_eq_nocase(have, slice_str(key)))
                return true;
        }
    }
    return false;
}

/* Without its hello a TLS connection cannot be decrypted, and without its start the compression
 * state of HTTP/2 is not known. */
static bool has_begins(const struct scene *sc)
{
    for (const struct scene_exchange *x = sc->exchange; x; x = x->next) {
        if (!x->has_request || x->conn.starts_late)
            return false;
    }
    return true;
}

static bool can_har(const struct scene *sc)
{
    return scene_is_har(sc) && has_begins(sc);
}

/* It is of one client. */
static bool can_har_alone(const struct scene *sc)
{
    return can_har(sc) && !has_key(sc, "from");
}

/* DevTools does not show an id that comes alone, so that its number looks lost. */
static bool can_devtools_alone(const struct scene *sc)
{
    for (size_t i = 0; i < sc->count; i++) {
        const struct scene_line *l = &sc->line[i];
        if (l->count == 3 && slice_eq(l->word[1].raw, SLICE_LIT("event")) && l->word[2].key.ptr &&
            slice_eq(l->word[2].key, SLICE_LIT("id")))
            return false;
    }
    return can_har_alone(sc);
}

/* A leg without its request cannot be recognised in another place. */
static bool can_hop(const struct scene *sc)
{
    return has_begins(sc) && !sc->truncated;
}

static bool can_h2(const struct scene *sc)
{
    return has_begins(sc) && !has_key(sc, "content-length") && !has_key(sc, "on");
}

/* What is acknowledged, closed by half or missing (there may have been a head in the gap) concerns
 * all streams of a connection. */
static bool can_share(const struct scene *sc)
{
    return can_h2(sc) && !sc->noack && !scene_says(sc, "noack") && !scene_says(sc, "half") &&
           !scene_says(sc, "gap") && !scene_says(sc, "silence");
}

static const struct variant variants[] = {
    { .name = "as it is" },
    { .name = "by two threads", .jobs = 2 },
    { .name = "by three threads", .jobs = 3 },
    { .name = "in small segments", .style = { .seed = 1, .most = 40 } },
    { .name = "byte by byte", .one_of = 2, .style = { .seed = 2, .most = 1 } },
    { .name = "in reordered segments", .style = { .seed = 3, .most = 60, .backwards = true } },
    { .name = "every packet twice", .style = { .twice = true } },
    { .name = "coded with gzip", .style = { .gzip = true }, .unlike = unlike_gzip },
    { .name = "in three files", .files = 3 },
    { .name = "in three files, backwards, compressed",
      .style = { .seed = 4, .most = 200 },
      .files = 3,
      .reversed = true,
      .compressed = true },
    /* other files and links */
    { .name = "pcapng, two interfaces",
      .form = { .pcapng = true, .link = { LINK_ETHER, LINK_SLL2 } } },
    { .name = "pcapng, big endian, small segments",
      .one_of = 2,
      .style = { .seed = 5, .most = 100 },
      .form = { .pcapng = true, .big = true, .link = { LINK_SLL2, LINK_ETHER } } },
    { .name = "in VLANs", .one_of = 3, .form = { .link = { LINK_VLAN } } },
    { .name = "over IPv6", .one_of = 2, .form = { .link = { LINK_IPV6 } }, .words = WORDS_NONE },
    { .name = "SLL2", .one_of = 3, .form = { .link = { LINK_SLL2 } } },
    { .name = "in GRE", .one_of = 3, .form = { .link = { LINK_GRE } } },
    { .name = "in VXLAN", .one_of = 3, .form = { .link = { LINK_VXLAN } } },
    { .name = "within and without VXLAN",
      .one_of = 2,
      .form = { .pcapng = true, .link = { LINK_VXLAN, LINK_ETHER } } },
    /* several taps */
    { .name = "doubles of -i any",
      .style = { .twice = true, .echo = NS_PER_MS },
      .form = { .link = { LINK_SLL2 } },
      .words = WORDS_NO_NUMBERS },
    { .name = "two taps",
      .second = { .late = 300000, .link = { LINK_VLAN } },
      .taps = true,
      .reversed = true,
      .words = WORDS_NO_NUMBERS,
      .can = is_whole },
    { .name = "two lossy taps",
      .form = { .of = 5, .lost = 1 },
      .second = { .of = 5, .lost = 3 },
      .taps = true,
      .words = WORDS_NO_NUMBERS,
      .can = is_whole },
    { .name = "both legs of a proxy",
      .proxy = true,
      .words = WORDS_NO_NUMBERS,
      .unlike = unlike_copies,
      .can = can_hop },
    /* TLS */
    { .name = "TLS 1.3", .style = { .tls = SCENE_TLS_13 }, .can = has_begins },
    { .name = "TLS 1.3 in small segments, secrets within",
      .one_of = 2,
      .style = { .tls = SCENE_TLS_13, .seed = 6, .most = 70 },
      .form = { .pcapng = true, .secrets = true },
      .can = has_begins },
    { .name = "TLS 1.2, keys first",
      .one_of = 2,
      .style = { .tls = SCENE_TLS_12 },
      .reversed = true },
    { .name = "TLS 1.3, two lossy taps",
      .one_of = 2,
      .style = { .tls = SCENE_TLS_13 },
      .form = { .of = 5, .lost = 1 },
      .second = { .of = 5, .lost = 3 },
      .taps = true,
      .words = WORDS_NO_NUMBERS,
      .can = is_whole },
    /* HTTP/2 */
    { .name = "HTTP/2",
      .style = { .carrier = CARRIER_H2 },
      .words = WORDS_NO_NUMBERS,
      .unlike = unlike_h2,
      .can = can_h2 },
    { .name = "HTTP/2 byte by byte",
      .one_of = 4,
      .style = { .carrier = CARRIER_H2, .seed = 7, .most = 1 },
      .words = WORDS_NO_NUMBERS,
      .unlike = unlike_h2,
      .can = can_h2 },
    { .name = "HTTP/2, streams together",
      .style = { .carrier = CARRIER_H2_SHARED },
      .words = WORDS_NONE,
      .unlike = unlike_h2_shared,
      .can = can_share },
    { .name = "HTTP/2 over TLS 1.3, streams together",
      .style = { .carrier = CARRIER_H2_SHARED, .tls = SCENE_TLS_13, .seed = 8, .most = 300 },
      .words = WORDS_NONE,
      .unlike = unlike_h2_shared,
      .can = can_share },
    /* HAR */
    { .name = "HAR of Firefox",
      .har = HAR_BESIDE_NOTHING,
      .shape = HAR_SHAPE_FIREFOX,
      .words = WORDS_HAR,
      .unlike = unlike_firefox,
      .can = can_har_alone },
    { .name = "HAR of DevTools",
      .har = HAR_BESIDE_NOTHING,
      .shape = HAR_SHAPE_DEVTOOLS,
      .words = WORDS_HAR,
      .unlike = unlike_har,
      .can = can_devtools_alone },
    { .name = "pcap and HAR of Firefox",
      .har = HAR_BESIDE_PCAP,
      .shape = HAR_SHAPE_FIREFOX,
      .words = WORDS_NO_NUMBERS,
      .unlike = unlike_har_beside,
      .can = can_har },
    { .name = "pcap and HAR of DevTools",
      .har = HAR_BESIDE_PCAP,
      .shape = HAR_SHAPE_DEVTOOLS,
      .words = WORDS_NO_NUMBERS,
      .unlike = unlike_har_beside,
      .can = can_har },
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
    int fd[FILES_MAX];
    char path[FILES_MAX][40];
    size_t files;
    struct file_arg arg[FILES_MAX];
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

static void add_frames(struct run *r, const struct variant *v, const struct scene_form *form)
{
    size_t files = v->files ? v->files : 1;

    for (size_t i = 0; i < files; i++) {
        struct slice bytes = scene_file(r->sc, &r->wire, form, i, files);
        add_file(r, v->compressed ? gzipped(r->sc, bytes) : bytes);
    }
}

static void add_hop(struct run *r, const struct variant *v)
{
    struct scene_style style = v->style;

    style.hop = true;
    scene_wire_release(&r->wire);
    scene_wire(r->sc, &style, &r->wire);
    add_frames(r, v, &v->form);
}

static void add_captures(struct run *r, const struct variant *v)
{
    if (v->har != HAR_BESIDE_NOTHING) {
        scene_wire(r->sc, &v->style, &r->wire);
        add_frames(r, v, &v->form);
        if (v->taps)
            add_frames(r, v, &v->second);
        if (v->style.tls && !v->form.secrets)
            add_file(r, r->wire.keys);
    }
    if (v->proxy)
        add_hop(r, v);
    if (v->har != HAR_NONE)
        add_file(r, scene_har(r->sc, v->shape));
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
                               .jobs = v->jobs ? v->jobs : 1,
                               .progress = WHEN_NEVER,
                               .quiet = true };
}

/* The scene's model and findings are those of the audit, until run_end. */
static void run_begin(struct run *r, const char *path, const struct variant *v, FILE *err)
{
    *r = (struct run){ .sc = scene_read(path, stderr) };
    assert_non_null(r->sc);
    scene_set_up(r->sc);
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

/* Numbers that may differ are left out, with the units of times. */
static void say_text(FILE *out, const char *text, enum words words)
{
    for (const char *c = text && words < WORDS_NONE ? text : ""; *c; c++) {
        if (words == WORDS_ALL || ((*c < '0' || *c > '9') && *c != '.'))
            fputc(*c, out);
    }
    fputc('\n', out);
}

static bool is_alone(const struct variant *v)
{
    return v->har == HAR_BESIDE_NOTHING;
}

static void say_finding(FILE *out, const struct finding *f, enum words words)
{
    /* Without acknowledgements less is proven. */
    bool sure = words != WORDS_HAR;

    fprintf(out, "%s %s %s %s.%d " SLICE_FMT " " SLICE_FMT " " SLICE_FMT " n=%u missing=%u ",
            f->rule->id, sure ? severity_text(f->severity) : "",
            sure ? certainty_text(f->certainty) : "", f->session ? f->session->name : "-",
            (int)f->stream, SLICE_ARG(f->event_id), SLICE_ARG(f->cursor), SLICE_ARG(f->replay_head),
            sure ? f->count : 0, f->missing_count);
    /* It quotes what the reader of the file said. */
    bool quotes = strcmp(f->rule->id, "capture-truncated") == 0;
    say_text(out, quotes ? "" : f->message, words);
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

static bool is_unlike(const struct variant *v, const struct rule *rule)
{
    /* Packets alone tell that. */
    if (is_alone(v) && (rule->needs & NEED_T))
        return true;
    for (size_t i = 0; v->unlike && v->unlike[i]; i++) {
        if (fnmatch(v->unlike[i], rule->id, 0) == 0)
            return true;
    }
    return false;
}

static char *said(const struct run *r, const struct variant *v, enum words words)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    for (uint32_t i = 0; !is_alone(v) && i < r->sc->model->session_count; i++)
        say_session(out, r->sc->model->session[i]);
    for (uint32_t i = 0; i < r->sc->found->count; i++) {
        if (!is_unlike(v, r->sc->found->item[i]->rule))
            say_finding(out, r->sc->found->item[i], words);
    }
    for (uint32_t i = 0; i < r->sc->found->undecidable_count; i++) {
        const struct undecidable *u = &r->sc->found->undecidable[i];
        if (!is_unlike(v, u->rule) && !is_alone(v))
            fprintf(out, "undecidable %s: %s\n", u->rule->id, u->reason);
    }
    fclose(out);
    return text;
}

/* Coded bytes are counted, and those of a frame that is cut. */
static enum words words_of(const struct variant *v, const struct run *r)
{
    if (v->words == WORDS_ALL && (v->style.gzip || r->wire.cut))
        return WORDS_NO_NUMBERS;
    return v->words;
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
    const char *name = strrchr(sc->path, '/');

    if (v->one_of > 0 && hash_bytes(slice_str(name ? name : sc->path)) % v->one_of != 0)
        return false;
    if (v->style.backwards && (scene_says(sc, "late") || begins_late(sc)))
        return false;
    if (v->can && !v->can(sc))
        return false;
    return !(v->style.gzip && scene_says(sc, "gap")) && !(v->files > 1 && sc->truncated);
}

/* Does the HAR lack what the packets show: unfinished events, ids without data, whole bodies? */
static bool is_partial(const struct run *r)
{
    for (uint32_t i = 0; i < r->sc->model->session_count; i++) {
        const struct session *s = r->sc->model->session[i];
        for (uint32_t k = 0; k < s->exch_count; k++) {
            if (s->exch[k]->undecodable || (s->exch[k]->rflags & RECF_IDS_PARTIAL))
                return true;
        }
    }
    return false;
}

/* Is each line of a also one of b? */
static bool lines_in(const char *a, const char *b)
{
    for (const char *end; (end = strchr(a, '\n')); a = end + 1) {
        size_t n = (size_t)(end + 1 - a);
        const char *at = memmem(b, strlen(b), a, n);
        if (!at || (at > b && at[-1] != '\n'))
            return false;
    }
    return true;
}

/* A HAR alone says nothing that packets do not say, and no less unless it lacks something. */
static bool is_same(const struct variant *v, const struct run *r, const char *got,
                    const char *wanted)
{
    if (!is_alone(v))
        return strcmp(got, wanted) == 0;
    bool less = v->shape == HAR_SHAPE_FIREFOX || is_partial(r);

    return lines_in(got, wanted) && (less || lines_in(wanted, got));
}

/* True where the variant says the same; also where the scene cannot be told so. */
static bool same_as(const char *path, const struct variant *v, const struct run *as_it_is)
{
    struct run r;

    if (!can_vary(v, as_it_is->sc))
        return true;
    run_begin(&r, path, v, stderr);
    enum words words = words_of(v, &r);
    char *wanted = said(as_it_is, v, words);
    char *got = said(&r, v, words);
    bool same = is_same(v, &r, got, wanted);
    if (!same)
        fprintf(stderr, "%s: %s: other results\n--- as it is\n%s+++ %s\n%s", path, v->name, wanted,
                v->name, got);
    free(wanted);
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
    for (size_t i = 1; i < ARRAY_LEN(variants); i++)
        failures += !same_as(path, &variants[i], &r);
    run_end(&r);
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
