/*
 * log_map.c - FORMATS.md 2 (b): {"41":"committed","42":"processed"}, the same as the dispatch_log
 * member of an object with a session and a cursor, or an array of such objects. Event ids to what
 * became of them: a state, not a history.
 */
#include "importers/importer.h"
#include "jtext.h"

/* Counts lines up to a place; places only go forward. */
struct place_in_text {
    struct log_reader *r;
    const uint8_t *at;
};

static void line_to(struct place_in_text *p, const uint8_t *to)
{
    while (p->at < to) {
        const uint8_t *nl = memchr(p->at, '\n', (size_t)(to - p->at));
        if (!nl)
            break;
        p->r->line++;
        p->at = nl + 1;
    }
}

/* An absent state, and the states that can be the last word on an event. */
static bool map_state(struct slice value, bool *absent, enum log_state *ret)
{
    struct slice name = jtext_inside(value);

    *absent = slice_eq(name, SLICE_LIT("unprocessed"));
    return *absent || (log_state_parse(name, ret) && *ret != LOG_CURSOR && *ret != LOG_SENT &&
                       *ret != LOG_RECONNECT);
}

static void read_states(struct place_in_text *p, struct slice map)
{
    struct log_reader *r = p->r;
    struct jtext_walk w;
    struct slice key;
    struct slice value;
    bool absent;

    if (!jtext_enter(map, &w))
        return;
    while (jtext_member(&w, &key, &value)) {
        struct log_entry e = { .from_map = true };
        line_to(p, key.ptr);
        if (!map_state(value, &absent, &e.state)) {
            log_reader_fault(r, "unknown state " SLICE_FMT, (int)(value.len < 40 ? value.len : 40),
                             (const char *)value.ptr);
            continue;
        }
        e.event_id = log_reader_text(r, key);
        if (!absent)
            log_reader_add(r, e);
    }
}

static void read_map(struct place_in_text *p, struct slice object)
{
    struct slice states = jtext_find(object, "dispatch_log");

    line_to(p, object.ptr);
    if (jtext_first(object) != '{' || (states.ptr && states.ptr[0] != '{')) {
        log_reader_fault(p->r, "not a map of event ids to states");
        return;
    }
    if (states.ptr)
        log_reader_settings(p->r, object);
    read_states(p, states.ptr ? states : object);
}

static void read_array(struct place_in_text *p, struct slice array)
{
    uint32_t input = log_reader_file(p->r)->input;
    struct jtext_walk w;
    struct slice object;
    bool first = true;

    if (!jtext_enter(array, &w))
        return;
    for (; jtext_element(&w, &object); first = false) {
        if (!first)
            log_reader_add_file(p->r, input); /* its cursor and its handlers are its own */
        read_map(p, object);
    }
}

static void read_document(struct log_reader *r, struct slice document)
{
    struct place_in_text p = { r, document.ptr };
    enum rpc_status st = rpc_scan(r->scan, document);

    r->line = 1;
    if (st != RPC_OK) {
        size_t at = r->scan->error_at < document.len ? r->scan->error_at : document.len;
        line_to(&p, document.ptr + at);
        r->scan->error_at = (size_t)(document.ptr + at - p.at); /* a column, not an offset */
        log_reader_fault_json(r, "", st);
        return;
    }
    if (jtext_first(document) == '[')
        read_array(&p, document);
    else
        read_map(&p, document);
}

/* The head may end anywhere: count what is there. */
static bool probe_object(struct slice head)
{
    struct jtext_walk w;
    struct slice key;
    struct slice value;
    enum log_state state;
    bool absent;
    size_t states = 0;
    size_t others = 0;

    if (jtext_first(head) != '{' || !jtext_enter(head, &w))
        return false;
    while (jtext_key(&w, &key)) {
        if (slice_eq(key, SLICE_LIT("dispatch_log")) && jtext_first(w.rest) == '{')
            return true;
        if (!jtext_value(&w.rest, &value))
            break;
        if (map_state(value, &absent, &state))
            states++;
        else
            others++;
    }
    return states > others;
}

static bool probe(struct slice head)
{
    struct jtext_walk w;

    if (jtext_first(head) == '[' && jtext_enter(head, &w))
        head = w.rest;
    return probe_object(head);
}

const struct importer log_map = {
    .name = "map",
    .cannot_know = "when anything happened: it is the state at the end",
    .is_json = true,
    .probe = probe,
    .document = read_document,
};
