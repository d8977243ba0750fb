/* log_reader.c - see log_reader.h. */
#include "log_reader.h"

#include "importers/importer.h"
#include "jtext.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A hostile file of a million damaged lines needs no million explanations: all are counted. */
#define MAX_FAULTS_KEPT ((size_t)10000)
#define MAX_TEXT        ((size_t)1 << 20)

static const char *const state_name[] = {
    [LOG_RECEIVED] = "received",   [LOG_CURSOR] = "cursor",       [LOG_PROCESSED] = "processed",
    [LOG_COMMITTED] = "committed", [LOG_DROPPED] = "dropped",     [LOG_FAILED] = "failed",
    [LOG_SENT] = "sent",           [LOG_RECONNECT] = "reconnect",
};

const char *log_state_text(enum log_state s)
{
    return state_name[s];
}

bool log_state_parse(struct slice name, enum log_state *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(state_name); i++) {
        if (slice_eq(name, slice_str(state_name[i]))) {
            *ret = (enum log_state)i;
            return true;
        }
    }
    return false;
}

void log_reader_init(struct log_reader *r, struct dispatch_log *log, const struct importer *form,
                     uint32_t input)
{
    *r = (struct log_reader){ .log = log, .form = form, .scan = rpc_scanner_new() };
    buf_init(&r->scratch, MAX_TEXT);
    log_reader_add_file(r, input);
}

void log_reader_release(struct log_reader *r)
{
    rpc_scanner_free(r->scan);
    buf_release(&r->scratch);
    free(r->kept);
    *r = (struct log_reader){ 0 };
}

void log_reader_add_file(struct log_reader *r, uint32_t input)
{
    struct dispatch_log *log = r->log;

    GROW(log->file, log->file_count, log->file_cap);
    log->file[log->file_count] = (struct log_file){
        .input = input,
        .format = slice_str(r->form->name),
        .cannot_know = slice_str(r->form->cannot_know ? r->form->cannot_know : ""),
        .is_map = r->form == &log_map,
    };
    r->file = (uint32_t)log->file_count++;
    r->session = (struct slice){ NULL, 0 };
}

struct log_file *log_reader_file(const struct log_reader *r)
{
    return &r->log->file[r->file];
}

static size_t slot_of(const struct slice *kept, size_t cap, struct slice s)
{
    size_t i = (size_t)hash_bytes(s) & (cap - 1);

    while (kept[i].ptr && !slice_eq(kept[i], s))
        i = (i + 1) & (cap - 1);
    return i;
}

static void kept_grow(struct log_reader *r)
{
    size_t cap = r->kept_cap ? r->kept_cap * 2 : 256;
    struct slice *kept = mem_alloc(cap * sizeof(*kept));

    for (size_t i = 0; i < r->kept_cap; i++) {
        if (r->kept[i].ptr)
            kept[slot_of(kept, cap, r->kept[i])] = r->kept[i];
    }
    free(r->kept);
    r->kept = kept;
    r->kept_cap = cap;
}

struct slice log_reader_keep(struct log_reader *r, struct slice s)
{
    if (!s.ptr)
        return s;
    if (r->kept_count >= r->kept_cap / 2)
        kept_grow(r);
    size_t i = slot_of(r->kept, r->kept_cap, s);
    if (!r->kept[i].ptr) {
        r->kept[i] = arena_copy(r->log->arena, s);
        r->kept_count++;
    }
    return r->kept[i];
}

struct slice log_reader_text(struct log_reader *r, struct slice raw)
{
    return log_reader_keep(r, jtext_unescape(raw, &r->scratch));
}

struct rpc_id log_reader_id(struct log_reader *r, struct slice token)
{
    return rpc_id_of_token(log_reader_keep(r, token));
}

void log_reader_fault(struct log_reader *r, const char *fmt, ...)
{
    struct dispatch_log *log = r->log;
    char text[256];
    va_list ap;

    log_reader_file(r)->skipped++;
    if (log->fault_count >= MAX_FAULTS_KEPT)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    GROW(log->fault, log->fault_count, log->fault_cap);
    log->fault[log->fault_count++] = (struct log_fault){
        .file = r->file,
        .line = r->line,
        .what = arena_copy(log->arena, slice_str(text)),
    };
}

void log_reader_fault_json(struct log_reader *r, const char *what, enum rpc_status st)
{
    if (st == RPC_NOT_JSON)
        log_reader_fault(r, "%snot valid JSON at column %zu", what, r->scan->error_at + 1);
    else if (st == RPC_TOO_DEEP)
        log_reader_fault(r, "%sJSON nested too deep", what);
    else
        log_reader_fault(r, "%snot a JSON object", what);
}

struct log_entry log_reader_entry(const struct log_reader *r, enum log_state state)
{
    return (struct log_entry){ .state = state, .time = r->time, .has_time = r->has_time };
}

void log_reader_add(struct log_reader *r, struct log_entry e)
{
    struct dispatch_log *log = r->log;
    struct log_file *file = log_reader_file(r);

    e.file = r->file;
    e.line = r->line;
    e.no_event_ids = r->form->no_event_ids;
    if (!e.session.ptr)
        e.session = r->session;
    file->has_times |= e.has_time;
    file->names_events |= e.event_id.ptr != NULL;
    file->says_processed |= e.state == LOG_PROCESSED || e.state == LOG_COMMITTED;
    log->wants_sha256 |= e.digest == LOG_DIGEST_SHA256;
    GROW(log->entry, log->count, log->cap);
    log->entry[log->count++] = e;
}

void log_reader_message(struct log_reader *r, struct log_entry e, struct slice json)
{
    enum rpc_status st = rpc_scan(r->scan, json);

    if (st != RPC_OK) {
        log_reader_fault_json(r, "the message is ", st);
        return;
    }
    for (size_t i = 0; i < r->scan->count; i++) {
        const struct rpc *m = &r->scan->msg[i];
        struct log_entry one = e;
        one.request = m->id;
        one.request.text = log_reader_keep(r, m->id.text);
        one.method = log_reader_text(r, m->method);
        if (slice_eq(m->method, SLICE_LIT("tools/call")))
            one.tool = log_reader_text(r, m->name);
        one.digest = LOG_DIGEST_CONTENT;
        one.xxh3 = m->digest;
        log_reader_add(r, one);
    }
}

static void idempotent_handlers(struct log_reader *r, struct slice value)
{
    struct log_file *file = log_reader_file(r);
    struct jtext_walk w;
    struct slice tool;
    size_t n = 0;

    file->idempotent_all = slice_eq(value, SLICE_LIT("true"));
    if (jtext_first(value) != '[' || !jtext_enter(value, &w))
        return;
    while (jtext_element(&w, &tool))
        n++;
    file->idempotent = arena_alloc(r->log->arena, (n + 1) * sizeof(*file->idempotent));
    file->idempotent_count = 0;
    jtext_enter(value, &w);
    while (jtext_element(&w, &tool)) {
        if (jtext_inside(tool).ptr)
            file->idempotent[file->idempotent_count++] = log_reader_text(r, jtext_inside(tool));
    }
}

/* A string, or a number as its token: ids are written both ways. */
static struct slice text_or_number(struct log_reader *r, struct slice value)
{
    uint8_t c = jtext_first(value);

    if (c == '"')
        return log_reader_text(r, jtext_inside(value));
    return c == '-' || byte_is_digit(c) ? log_reader_keep(r, value) : (struct slice){ NULL, 0 };
}

void log_reader_settings(struct log_reader *r, struct slice object)
{
    struct log_file *file = log_reader_file(r);
    struct jtext_walk w;
    struct slice key;
    struct slice value;

    if (!jtext_enter(object, &w))
        return;
    while (jtext_member(&w, &key, &value)) {
        if (slice_eq(key, SLICE_LIT("client")))
            file->client = text_or_number(r, value);
        else if (slice_eq(key, SLICE_LIT("session")))
            r->session = text_or_number(r, value);
        else if (slice_eq(key, SLICE_LIT("last_event_id")))
            file->map_cursor = text_or_number(r, value);
        else if (slice_eq(key, SLICE_LIT("atomic_cursor")))
            file->atomic_cursor = slice_eq(value, SLICE_LIT("true"));
        else if (slice_eq(key, SLICE_LIT("idempotent_handlers")))
            idempotent_handlers(r, value);
    }
}
