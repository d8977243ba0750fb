/* policy.c - see policy.h. The document is small and read with jansson. */
#include "policy.h"

#include "plain.h"
#include "redact.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

#define POLICY_MAX ((size_t)4 << 20)
#define OFF        (-1)
#define AS_IT_IS   (-2)

struct change {
    const struct rule *rule;
    int severity; /* enum severity, or OFF */
};

struct suppression {
    const char *rule;
    const char *session;
    const char *server;
    const char *path;
    const char *reason;
};

struct policy {
    const char *path;
    FILE *err;
    json_t *root; /* keeps the texts */
    struct thresholds limit;
    struct change *change;
    size_t change_count;
    struct suppression *suppression;
    size_t suppression_count;
    char sha256[65];
};

static PRINTF_LIKE(2, 3) bool bad(const struct policy *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fprintf(p->err, "sseaudit: %s: ", p->path);
    vfprintf(p->err, fmt, args);
    fputs("; see sseaudit --help-policy\n", p->err);
    va_end(args);
    return false;
}

/* A key of the file, fit for a terminal, until the next call with the same arena. */
static const char *shown(struct arena *a, const char *key)
{
    return plain_text(a, slice_str(key), 80);
}

/* Every member of the object is one of the names (a list that ends with NULL). */
static bool only_known(const struct policy *p, json_t *object, const char *where,
                       const char *const *names)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return bad(p, "%s is no object", where);
    json_object_foreach (object, key, value) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], key) != 0)
            i++;
        if (!names[i])
            return bad(p, "unknown member \"%s\" in %s", shown(a, key), where);
    }
    return true;
}

/* ---- rules ---- */

static bool severity_of(const char *text, int *ret)
{
    if (!text)
        return false;
    for (int s = SEV_INFO; s <= SEV_ERROR; s++) {
        if (strcmp(text, severity_text((enum severity)s)) == 0) {
            *ret = s;
            return true;
        }
    }
    *ret = OFF;
    return strcmp(text, "off") == 0;
}

static bool read_rule(struct policy *p, const char *id, json_t *value)
{
    static const char *const names[] = { "severity", NULL };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct change c = { .rule = rule_find(id) };

    if (!c.rule)
        return bad(p, "unknown rule \"%s\"; sseaudit rules lists them", shown(a, id));
    if (!only_known(p, value, id, names))
        return false;
    if (!severity_of(json_string_value(json_object_get(value, "severity")), &c.severity))
        return bad(p, "%s: severity is error, warning, info or off", id);
    p->change[p->change_count++] = c;
    return true;
}

static bool read_rules(struct policy *p, json_t *rules)
{
    const char *id;
    json_t *value;

    if (!rules)
        return true;
    if (!json_is_object(rules))
        return bad(p, "rules is no object");
    p->change = mem_alloc((json_object_size(rules) + 1) * sizeof(*p->change));
    json_object_foreach (rules, id, value) {
        if (!read_rule(p, id, value))
            return false;
    }
    return true;
}

/* ---- thresholds ---- */

/* How a number of the file becomes a member of struct thresholds. */
enum unit { UNIT_MS, UNIT_S, UNIT_COUNT, UNIT_FACTOR, UNIT_SIZE };

static const struct threshold {
    const char *name;
    enum unit unit;
    size_t offset;
} threshold[] = {
    { "retry_tolerance_ms", UNIT_MS, offsetof(struct thresholds, retry_tolerance) },
    { "resume_loop", UNIT_COUNT, offsetof(struct thresholds, resume_loop) },
    { "storm_count", UNIT_COUNT, offsetof(struct thresholds, storm_count) },
    { "storm_window_s", UNIT_S, offsetof(struct thresholds, storm_window) },
    { "keepalive_factor", UNIT_FACTOR, offsetof(struct thresholds, keepalive_factor) },
    { "idle_timeout_s", UNIT_S, offsetof(struct thresholds, idle_timeout) },
    { "open_after_response_s", UNIT_S, offsetof(struct thresholds, open_after_response) },
    { "poll_factor", UNIT_FACTOR, offsetof(struct thresholds, poll_factor) },
    { "clock_skew_ms", UNIT_MS, offsetof(struct thresholds, clock_skew) },
    { "id_length", UNIT_SIZE, offsetof(struct thresholds, id_length) },
    { "burst_spread_s", UNIT_S, offsetof(struct thresholds, burst_spread) },
};

/* A year in seconds; also enough for counts and sizes. */
#define THRESHOLD_MAX 31536000.0

static void set_threshold(struct thresholds *limit, const struct threshold *t, double value)
{
    void *member = (uint8_t *)limit + t->offset;
    int64_t ns = (int64_t)(value * (double)(t->unit == UNIT_MS ? NS_PER_MS : NS_PER_SEC));
    uint32_t count = (uint32_t)value;
    size_t size = (size_t)value;

    switch (t->unit) {
    case UNIT_MS:
    case UNIT_S: memcpy(member, &ns, sizeof(ns)); break;
    case UNIT_COUNT: memcpy(member, &count, sizeof(count)); break;
    case UNIT_FACTOR: memcpy(member, &value, sizeof(value)); break;
    case UNIT_SIZE: memcpy(member, &size, sizeof(size)); break;
    }
}

static bool read_threshold(struct policy *p, const char *name, json_t *value)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    double number = json_number_value(value);
    bool whole;

    for (size_t i = 0; i < ARRAY_LEN(threshold); i++) {
        if (strcmp(threshold[i].name, name) != 0)
            continue;
        whole = threshold[i].unit == UNIT_COUNT || threshold[i].unit == UNIT_SIZE;
        if (!json_is_number(value) || number < 0 || number > THRESHOLD_MAX ||
            (whole && (!json_is_integer(value) || number < 1)))
            return bad(p, "%s: not a %s up to %.0f", name,
                       whole ? "whole number from 1" : "number from 0", THRESHOLD_MAX);
        set_threshold(&p->limit, &threshold[i], number);
        return true;
    }
    return bad(p, "unknown threshold \"%s\"", shown(a, name));
}

static bool read_thresholds(struct policy *p, json_t *thresholds)
{
    const char *name;
    json_t *value;

    if (!thresholds)
        return true;
    if (!json_is_object(thresholds))
        return bad(p, "thresholds is no object");
    json_object_foreach (thresholds, name, value) {
        if (!read_threshold(p, name, value))
            return false;
    }
    return true;
}

/* ---- suppressions ---- */

static bool text_member(const struct policy *p, json_t *object, const char *name, const char **ret)
{
    json_t *value = json_object_get(object, name);

    *ret = json_string_value(value);
    return !value || *ret || bad(p, "suppress: %s is no string", name);
}

static bool read_suppression(struct policy *p, json_t *value)
{
    static const char *const names[] = { "rule", "session", "server", "path", "reason", NULL };
    struct suppression s = { 0 };

    if (!only_known(p, value, "suppress", names))
        return false;
    if (!text_member(p, value, "rule", &s.rule) || !text_member(p, value, "session", &s.session) ||
        !text_member(p, value, "server", &s.server) || !text_member(p, value, "path", &s.path) ||
        !text_member(p, value, "reason", &s.reason))
        return false;
    if (!s.reason || !*s.reason)
        return bad(p, "suppress: an entry without a reason");
    if (!s.rule && !s.session && !s.server && !s.path)
        return bad(p, "suppress: an entry that names neither rule, session, server nor path");
    p->suppression[p->suppression_count++] = s;
    return true;
}

static bool read_suppress(struct policy *p, json_t *list)
{
    size_t i;
    json_t *value;

    if (!list)
        return true;
    if (!json_is_array(list))
        return bad(p, "suppress is no array");
    p->suppression = mem_alloc((json_array_size(list) + 1) * sizeof(*p->suppression));
    json_array_foreach (list, i, value) {
        if (!read_suppression(p, value))
            return false;
    }
    return true;
}

/* ---- the file ---- */

static bool read_text(struct policy *p, struct buf *text)
{
    FILE *f = fopen(p->path, "re");
    uint8_t chunk[8192];
    char why[100];
    bool ok = true;
    size_t n;

    if (!f)
        return bad(p, "the policy cannot be opened: %s", strerror_r(errno, why, sizeof(why)));
    while (ok && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        ok = buf_add(text, (struct slice){ chunk, n });
    if (!ok)
        bad(p, "the policy is larger than %zu MiB", POLICY_MAX >> 20);
    else if (ferror(f))
        ok = bad(p, "the policy cannot be read: %s", strerror_r(errno, why, sizeof(why)));
    fclose(f);
    return ok;
}

static bool read_policy(struct policy *p, struct slice text)
{
    static const char *const names[] = { "rules", "thresholds", "suppress", NULL };
    json_error_t e;

    p->root =
        json_loadb(text.ptr ? (const char *)text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &e);
    if (!p->root)
        return bad(p, "line %d: %s", e.line, e.text);
    redact_digest(text, 64, p->sha256);
    return only_known(p, p->root, "the policy", names) &&
           read_rules(p, json_object_get(p->root, "rules")) &&
           read_thresholds(p, json_object_get(p->root, "thresholds")) &&
           read_suppress(p, json_object_get(p->root, "suppress"));
}

struct policy *policy_load(const char *path, FILE *err)
{
    struct policy *p = mem_alloc(sizeof(*p));
    struct buf text;
    bool ok;

    p->path = path;
    p->err = err;
    p->limit = thresholds_default;
    if (!path)
        return p;
    buf_init(&text, POLICY_MAX);
    ok = read_text(p, &text) && read_policy(p, buf_slice(&text));
    buf_release(&text);
    if (ok)
        return p;
    policy_free(p);
    return NULL;
}

void policy_free(struct policy *p)
{
    if (!p)
        return;
    json_decref(p->root);
    free(p->change);
    free(p->suppression);
    free(p);
}

const struct thresholds *policy_thresholds(const struct policy *p)
{
    return &p->limit;
}

const char *policy_sha256(const struct policy *p)
{
    return p->sha256[0] ? p->sha256 : NULL;
}

/* ---- applying it ---- */

static int severity_for(const struct policy *p, const struct rule *rule)
{
    for (size_t i = 0; i < p->change_count; i++) {
        if (p->change[i].rule == rule)
            return p->change[i].severity;
    }
    return AS_IT_IS;
}

static bool fits(const char *pattern, const char *text)
{
    return !pattern || (text && fnmatch(pattern, text, 0) == 0);
}

static bool session_fits(const char *pattern, const struct session *s, struct arena *a)
{
    char hex[65];

    if (!pattern)
        return true;
    if (!s)
        return false;
    redact_digest(s->id, 12, hex);
    return fits(pattern, s->name) || (s->id.ptr && (fits(pattern, arena_str(a, s->id)) ||
                                                    fits(pattern, arena_printf(a, "sha:%s", hex))));
}

static bool server_fits(const char *pattern, const struct session *s, struct arena *a)
{
    char address[ENDPOINT_TEXT];

    if (!pattern)
        return true;
    return s && (fits(pattern, endpoint_text(&s->server, address)) ||
                 fits(pattern, arena_str(a, s->authority)));
}

static bool path_fits(const char *pattern, const struct finding *f, struct arena *a)
{
    const struct session *s = f->session;
    uint32_t exch = f->exch;

    if (!pattern)
        return true;
    if (!s || s->exch_count == 0)
        return false;
    /* a finding about the whole session is about the path of its first exchange */
    return fits(pattern, arena_str(a, s->exch[exch < s->exch_count ? exch : 0]->target));
}

static void suppress(const struct policy *p, struct finding *f)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < p->suppression_count && !f->suppressed; i++) {
        const struct suppression *s = &p->suppression[i];
        if (!fits(s->rule, f->rule->id) || !session_fits(s->session, f->session, a) ||
            !server_fits(s->server, f->session, a) || !path_fits(s->path, f, a))
            continue;
        f->suppressed = true;
        f->suppressed_why = s->reason;
    }
}

void policy_apply(const struct policy *p, struct findings *f)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < f->count; i++) {
        int severity = severity_for(p, f->item[i]->rule);
        if (severity == OFF)
            continue;
        if (severity != AS_IT_IS)
            f->item[i]->severity = (enum severity)severity;
        suppress(p, f->item[i]);
        f->item[kept++] = f->item[i];
    }
    f->count = kept;
    kept = 0;
    for (uint32_t i = 0; i < f->undecidable_count; i++) {
        if (severity_for(p, f->undecidable[i].rule) != OFF)
            f->undecidable[kept++] = f->undecidable[i];
    }
    f->undecidable_count = kept;
}
