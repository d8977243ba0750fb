/* scene.c - see scene.h: from text to lines of words. */
#include "scene.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#define STEP         (10 * NS_PER_MS)
#define MAX_SCENE    ((size_t)1 << 20)
#define WORDS_A_LINE 256

void scene_fault(struct scene *sc, const struct scene_line *l, const char *fmt, ...)
{
    va_list ap;

    fprintf(sc->complain, "%s:%u: ", sc->path, l ? l->number : 0);
    va_start(ap, fmt);
    vfprintf(sc->complain, fmt, ap);
    va_end(ap);
    fputc('\n', sc->complain);
    sc->faults++;
}

struct slice scene_key(const struct scene_line *l, const char *key)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->word[i].key.ptr && slice_eq(l->word[i].key, slice_str(key)))
            return l->word[i].value;
    }
    return (struct slice){ 0 };
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static int hex_of(const uint8_t *p)
{
    char text[3] = { (char)p[0], (char)p[1], '\0' };
    char *end;
    long v = strtol(text, &end, 16);

    return *end == '\0' ? (int)v : -1;
}

/* One character of a quoted run off the front. */
static uint8_t unescape(struct slice *s)
{
    static const char from[] = "nrt0";
    static const char to[] = "\n\r\t\0";
    uint8_t c = *s->ptr;
    size_t used = 1;

    if (c == '\\' && s->len > 1) {
        const char *at = s->ptr[1] ? strchr(from, s->ptr[1]) : NULL;
        used = 2;
        c = s->ptr[1];
        if (at) {
            c = (uint8_t)to[at - from];
        } else if (c == 'x' && s->len >= 4 && hex_of(s->ptr + 2) >= 0) {
            c = (uint8_t)hex_of(s->ptr + 2);
            used = 4;
        }
    }
    s->ptr += used;
    s->len -= used;
    return c;
}

/* JSON to the end of the line: is what stands here its begin? */
static bool begins_json(struct slice s)
{
    return s.len > 0 && (*s.ptr == '{' || *s.ptr == '[');
}

static struct scene_word word_of(struct arena *a, struct slice *rest)
{
    struct scene_word w = { .raw = *rest };
    uint8_t *out = arena_alloc(a, rest->len + 1);
    size_t n = 0;
    bool quoted = false;
    bool keyed = false;

    if (begins_json(*rest)) {
        w.json = true;
        w.value = *rest;
        *rest = (struct slice){ rest->ptr + rest->len, 0 };
        return w;
    }
    while (rest->len > 0 && (quoted || !is_blank(*rest->ptr))) {
        uint8_t c = *rest->ptr;
        if (c == '"') {
            quoted = !quoted;
            keyed = true; /* an equals sign behind a quote belongs to the text */
            rest->ptr++;
            rest->len--;
        } else if (c == '=' && !keyed && n > 0) {
            keyed = true;
            w.key = arena_copy(a, (struct slice){ out, n });
            n = 0;
            rest->ptr++;
            rest->len--;
        } else if (quoted) {
            out[n++] = unescape(rest);
        } else {
            out[n++] = c;
            rest->ptr++;
            rest->len--;
        }
    }
    w.raw.len = (size_t)(rest->ptr - w.raw.ptr);
    w.value = (struct slice){ out, n };
    return w;
}

static void skip_blanks(struct slice *s)
{
    while (s->len > 0 && is_blank(*s->ptr)) {
        s->ptr++;
        s->len--;
    }
}

static bool time_word(const struct scene_word *w, char mark, int64_t *ret)
{
    char text[32];
    char *end;

    if (w->raw.len < 2 || w->raw.len > sizeof(text) || *w->raw.ptr != (uint8_t)mark)
        return false;
    memcpy(text, w->raw.ptr + 1, w->raw.len - 1);
    text[w->raw.len - 1] = '\0';
    double v = strtod(text, &end);
    *ret = (int64_t)(v * 1e6 + (v < 0 ? -0.5 : 0.5)) * 1000;
    return *end == '\0';
}

static void line_time(struct scene *sc, struct scene_line *l, int64_t now)
{
    int64_t t;

    l->time = now + STEP;
    if (l->count > 0 && time_word(&l->word[0], '@', &t)) {
        l->time = SCENE_START + t;
        l->timed = true;
    } else if (l->count > 0 && time_word(&l->word[0], '+', &t)) {
        l->time = now + t;
        l->timed = true;
    }
    if (!l->timed)
        return;
    l->word++;
    l->count--;
    if (l->time < now)
        scene_fault(sc, l, "goes back in time");
}

/* Settings, logs without a time and expectations take no time. */
static bool takes_time(const struct scene_line *l)
{
    static const char *const still[] = { "profile",   "option", "cut",    "log",
                                         "log-clock", "expect", "forbid", "allow" };

    if (l->timed)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(still); i++) {
        if (slice_eq(l->word[0].value, slice_str(still[i])))
            return false;
    }
    return !slice_starts(l->word[0].value, SLICE_LIT("expect-"));
}

static void add_line(struct scene *sc, struct slice text, unsigned number, int64_t *now)
{
    struct scene_word word[WORDS_A_LINE];
    struct scene_line l = { .number = number };

    for (skip_blanks(&text); text.len > 0 && l.count < WORDS_A_LINE; skip_blanks(&text))
        word[l.count++] = word_of(sc->arena, &text);
    if (l.count == 0)
        return;
    l.word = arena_alloc(sc->arena, l.count * sizeof(word[0]));
    memcpy(l.word, word, l.count * sizeof(word[0]));
    line_time(sc, &l, *now);
    if (l.count == 0) {
        scene_fault(sc, &l, "a time, and nothing that happens then");
        return;
    }
    if (takes_time(&l))
        *now = l.time;
    else
        l.time = *now;
    GROW(sc->line, sc->count, sc->cap);
    sc->line[sc->count++] = l;
}

static struct slice next_line(struct slice *text)
{
    const uint8_t *nl = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
    size_t n = nl ? (size_t)(nl - text->ptr) : text->len;
    struct slice line = { text->ptr, n };

    text->ptr += n + (nl ? 1 : 0);
    text->len -= n + (nl ? 1 : 0);
    while (line.len > 0 && isspace(line.ptr[line.len - 1]))
        line.len--;
    return line;
}

struct scene *scene_of(struct slice text, const char *name, FILE *complain)
{
    struct scene *sc = mem_alloc(sizeof(*sc));
    int64_t now = SCENE_START - STEP;
    unsigned number = 0;

    sc->arena = arena_new();
    sc->path = arena_str(sc->arena, slice_str(name));
    sc->complain = complain;
    sc->options = model_options_default;
    sc->profiles = PROFILE_DIVERGENCE;
    buf_init(&sc->log_text, MAX_SCENE);
    text = arena_copy(sc->arena, text);
    while (text.len > 0) {
        struct slice line = next_line(&text);
        unsigned first = ++number;
        while (line.len > 0 && text.len > 0 && is_blank(*text.ptr)) {
            struct slice more = next_line(&text);
            number++;
            char *joined = arena_printf(sc->arena, SLICE_FMT " " SLICE_FMT, SLICE_ARG(line),
                                        SLICE_ARG(slice_trim(more)));
            line = slice_trim(slice_str(joined));
        }
        if (line.len > 0 && *line.ptr != '#')
            add_line(sc, line, first, &now);
    }
    return sc;
}

struct scene *scene_read(const char *path, FILE *complain)
{
    FILE *in = fopen(path, "re");
    struct buf text;
    uint8_t part[4096];
    size_t n;
    bool ok = in != NULL;

    if (!in) {
        fprintf(complain, "%s: cannot be opened\n", path);
        return NULL;
    }
    buf_init(&text, MAX_SCENE);
    while (ok && (n = fread(part, 1, sizeof(part), in)) > 0)
        ok = buf_add(&text, (struct slice){ part, n });
    fclose(in);
    struct scene *sc = ok ? scene_of(buf_slice(&text), path, complain) : NULL;
    buf_release(&text);
    if (!sc)
        fprintf(complain, "%s: is too long\n", path);
    return sc;
}

void scene_free(struct scene *sc)
{
    if (!sc)
        return;
    findings_free(sc->found);
    if (sc->model)
        model_free(sc->model);
    if (sc->log)
        dispatch_log_free(sc->log);
    buf_release(&sc->log_text);
    free(sc->line);
    arena_free(sc->arena);
    free(sc);
}
