/* har_slice.c - see har_slice.h. */
#include "har_slice.h"

static const struct {
    const char *key;
    enum har_part part;
} log_keys[] = {
    { "version", HAR_PART_OTHER }, { "creator", HAR_PART_CREATOR },
    { "pages", HAR_PART_OTHER },   { "browser", HAR_PART_BROWSER },
    { "entries", HAR_PART_OTHER }, { "comment", HAR_PART_COMMENT },
};

void har_slicer_init(struct har_slicer *s)
{
    *s = (struct har_slicer){ 0 };
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool key_is(const struct har_slicer *s, const char *key)
{
    return slice_eq((struct slice){ s->key, s->key_len }, slice_str(key));
}

/* Between values of the entries array itself, not deeper. */
static bool at_entries(const struct har_slicer *s)
{
    return s->in_entries && s->depth == 3;
}

static void log_key_seen(struct har_slicer *s)
{
    for (size_t i = 0; i < ARRAY_LEN(log_keys); i++)
        s->has_log |= key_is(s, log_keys[i].key);
    s->odd_log |= !s->has_log && s->key[0] != '_';
}

static enum har_part part_of(const struct har_slicer *s)
{
    if (at_entries(s))
        return HAR_PART_ENTRY;
    if (!s->in_log)
        return HAR_PART_OTHER;
    for (size_t i = 0; i < ARRAY_LEN(log_keys); i++) {
        if (key_is(s, log_keys[i].key))
            return log_keys[i].part;
    }
    return HAR_PART_OTHER;
}

static void string_begins(struct har_slicer *s, bool key)
{
    s->in_string = true;
    s->in_key = key;
    if (key)
        s->key_len = 0;
}

/* c is the first byte of a value in root, log or entries. */
static void value_begins(struct har_slicer *s, uint8_t c)
{
    bool open = c == '{' || c == '[';

    s->after_colon = false;
    if (s->depth == 1 && c == '{' && key_is(s, "log")) {
        s->in_log = true;
        s->depth = 2;
        return;
    }
    if (s->depth == 2 && s->in_log && c == '[' && key_is(s, "entries")) {
        s->in_entries = true;
        s->has_list = true;
        s->depth = 3;
        return;
    }
    s->in_value = true;
    s->part = part_of(s);
    s->begin = s->offset;
    s->level = s->depth;
    s->depth += open;
    if (c == '"')
        string_begins(s, false);
}

/* The value ends before `end`; true when it is a part to report. */
static bool value_ends(struct har_slicer *s, uint64_t end, struct har_span *ret)
{
    s->in_value = false;
    *ret = (struct har_span){ s->part, s->begin, end - s->begin };
    return s->part != HAR_PART_OTHER;
}

/* A closing bracket of root, log or entries; one of the wrong kind is passed over. */
static void container_ends(struct har_slicer *s, uint8_t c)
{
    if (c != (at_entries(s) ? ']' : '}')) {
        s->mismatched = true;
        return;
    }
    s->depth--;
    s->in_entries &= s->depth >= 3;
    s->in_log &= s->depth >= 2;
    s->closed |= s->depth == 0;
    s->after_colon = false;
}

/* A byte outside strings and outside the values of root, log and entries. */
static void between(struct har_slicer *s, uint8_t c)
{
    if (s->depth == 0) {
        s->depth = c == '{' && !s->closed;
        return;
    }
    if (is_blank(c))
        return;
    if (c == '}' || c == ']')
        container_ends(s, c);
    else if (c == ',')
        s->after_colon = false;
    else if (c == ':' && !at_entries(s))
        s->after_colon = true;
    else if (s->after_colon || at_entries(s))
        value_begins(s, c);
    else if (c == '"')
        string_begins(s, true);
}

/* A byte of a value, outside strings. *again: it ended before this byte. */
static bool within(struct har_slicer *s, uint8_t c, struct har_span *ret, bool *again)
{
    bool close = c == '}' || c == ']';

    if (s->depth > s->level) {
        s->depth += c == '{' || c == '[';
        s->depth -= close;
        if (c == '"')
            string_begins(s, false);
        return s->depth == s->level && value_ends(s, s->offset + 1, ret);
    }
    if (!close && c != ',' && !is_blank(c)) {
        if (c == '"')
            string_begins(s, false);
        return false;
    }
    *again = true; /* a number or a word ends where something else begins */
    return value_ends(s, s->offset, ret);
}

/* A byte of a string. */
static bool in_text(struct har_slicer *s, uint8_t c, struct har_span *ret)
{
    if (s->escaped || c == '\\') {
        s->escaped = !s->escaped;
    } else if (c == '"') {
        s->in_string = false;
        if (s->in_key && s->depth == 2 && s->in_log)
            log_key_seen(s);
        return s->in_value && s->depth == s->level && value_ends(s, s->offset + 1, ret);
    }
    if (s->in_key && s->key_len < sizeof(s->key))
        s->key[s->key_len++] = c;
    return false;
}

/* Bytes at the front of a string that cannot end it. */
static size_t plain_text(const struct har_slicer *s, struct slice in)
{
    size_t n = 0;

    if (!s->in_string || s->in_key || s->escaped)
        return 0;
    while (n < in.len && in.ptr[n] != '"' && in.ptr[n] != '\\')
        n++;
    return n;
}

bool har_slicer_next(struct har_slicer *s, struct slice *input, struct har_span *ret)
{
    while (input->len > 0) {
        size_t skip = plain_text(s, *input);
        bool again = false;
        bool found = false;

        input->ptr += skip;
        input->len -= skip;
        s->offset += skip;
        if (input->len == 0)
            break;
        uint8_t c = *input->ptr;
        if (s->in_string)
            found = in_text(s, c, ret);
        else if (s->in_value)
            found = within(s, c, ret, &again);
        else
            between(s, c);
        if (!again) {
            input->ptr++;
            input->len--;
            s->offset++;
        }
        if (found)
            return true;
    }
    return false;
}

bool har_slicer_open_entry(const struct har_slicer *s, uint64_t *ret_offset)
{
    if (!s->in_value || s->part != HAR_PART_ENTRY)
        return false;
    *ret_offset = s->begin;
    return true;
}

size_t har_object_len(struct slice s, size_t *ret_read)
{
    uint64_t depth = 0;
    bool in_string = false;
    size_t i = 0;

    for (; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        if (in_string && c == '\n')
            break;
        if (in_string && c == '\\') {
            i++;
            continue;
        }
        if (c == '"')
            in_string = !in_string;
        if (in_string)
            continue;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        if (depth == 0) {
            *ret_read = i + 1;
            return i + 1;
        }
    }
    *ret_read = i < s.len ? i : s.len;
    return 0;
}
