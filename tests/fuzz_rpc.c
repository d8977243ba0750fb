/*
 * fuzz_rpc.c - jansson agrees on what is JSON, and what it writes of the same document in another
 * order and form has the same digest; lines one after the other are each read as by a new scanner.
 */
#include <jansson.h>
#include <stdlib.h>

#include "rpc.h"
#include "rpc_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Depth beyond ours, numbers out of range, lone surrogates, and a NUL (which jansson skips after a
 * number) are where the two may differ. */
static bool comparable(struct slice text, const json_error_t *error, enum rpc_status st)
{
    if (st == RPC_EMPTY || st == RPC_TOO_DEEP || memchr(text.ptr, '\0', text.len))
        return false;
    return json_error_code(error) != json_error_numeric_overflow && !strstr(error->text, "\\u");
}

/* jansson writes 1e2 as 100.0 (and -0 as 0; duplicate names it was told to refuse). */
static bool rewritable(json_t *value, size_t depth)
{
    const char *key;
    json_t *child;
    size_t i;

    if (json_is_real(value) || depth > RPC_MAX_DEPTH)
        return false;
    json_object_foreach (value, key, child) {
        if (!rewritable(child, depth + 1))
            return false;
    }
    json_array_foreach (value, i, child) {
        if (!rewritable(child, depth + 1))
            return false;
    }
    return true;
}

static void check_form(struct rpc_scanner *sc, const json_t *root, size_t form, uint64_t want)
{
    char *text = json_dumps(root, form | JSON_ENCODE_ANY);

    if (!text)
        return;
    enum rpc_status st = rpc_scan(sc, slice_str(text));
    if ((st != RPC_OK && st != RPC_NOT_OBJECT) || sc->digest != want)
        abort();
    free(text);
}

static void check_facts(const struct rpc_scanner *sc, struct slice text)
{
    for (size_t i = 0; i < sc->count; i++) {
        const struct rpc *m = &sc->msg[i];
        if (m->text.ptr < text.ptr || m->text.ptr + m->text.len > text.ptr + text.len)
            abort();
        if ((m->kind == RPC_REQUEST || m->kind == RPC_NOTIFICATION) != (m->method.ptr != NULL))
            abort();
    }
}

/* The line goes on otherwise, from some places on. */
static void check_other_ends(struct rpc_scanner *sc, struct slice line)
{
    static const char *const ends[] = { "}}", "1}}", "\"a\":1}}", ",\"a\":1}", " }", "\"" };

    for (size_t at = 1; at < line.len; at += 1 + line.len / 16) {
        const char *end = ends[line.ptr[at] % ARRAY_LEN(ends)];
        struct buf b;
        buf_init(&b, line.len + 100);
        if (!buf_add(&b, (struct slice){ line.ptr, at }) || !buf_add(&b, slice_str(end)) ||
            !rpc_scans_as_new(sc, buf_slice(&b)))
            abort();
        buf_release(&b);
    }
}

/* Each line a few times, so that what it begins with is learnt. */
static void check_past(struct slice text)
{
    struct rpc_scanner *sc = rpc_scanner_new();

    while (text.len > 0) {
        const uint8_t *lf = memchr(text.ptr, '\n', text.len);
        size_t n = lf ? (size_t)(lf - text.ptr) + 1 : text.len;
        for (int i = 0; i < 3; i++) {
            if (!rpc_scans_as_new(sc, (struct slice){ text.ptr, n }))
                abort();
        }
        check_other_ends(sc, (struct slice){ text.ptr, n });
        text = (struct slice){ text.ptr + n, text.len - n };
    }
    rpc_scanner_free(sc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { data, size };
    json_error_t error = { 0 };
    struct rpc_scanner *sc = rpc_scanner_new();
    enum rpc_status st = rpc_scan(sc, text);
    bool valid = st == RPC_OK || st == RPC_NOT_OBJECT;
    size_t options = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
    json_t *root = json_loadb((const char *)data, size, options, &error);
    bool twice = json_error_code(&error) == json_error_duplicate_key;

    check_facts(sc, text);
    if (size < 4096)
        check_past(text);
    if (comparable(text, &error, st) && !twice && valid != (root != NULL))
        abort();
    if (valid && root && !memchr(data, '-', size) && rewritable(root, 0)) {
        uint64_t want = sc->digest;
        check_form(sc, root, JSON_COMPACT, want);
        check_form(sc, root, JSON_SORT_KEYS | JSON_INDENT(2), want);
        check_form(sc, root, JSON_ENSURE_ASCII | JSON_ESCAPE_SLASH, want);
    }
    json_decref(root);
    rpc_scanner_free(sc);
    return 0;
}
