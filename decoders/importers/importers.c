/* importers.c - the table of forms, and what their files share. */
#include "importers/importer.h"
#include "jtext.h"

static const struct importer *const form[] = {
    &log_ndjson,
    &log_map,
    &importer_mcpsnoop,
    &importer_inspector,
    &importer_vscode,
    &importer_kotlin_trace,
    &importer_java_debug,
    &importer_python_debug,
    &importer_csharp_trace,
    &importer_mcp_remote,
    &importer_go_logging,
};

/* Takes a line off the front, without its end. */
static bool next_line(struct slice *s, struct slice *ret)
{
    if (s->len == 0)
        return false;
    const uint8_t *nl = memchr(s->ptr, '\n', s->len);
    size_t n = nl ? (size_t)(nl - s->ptr) : s->len;
    *ret = (struct slice){ s->ptr, n };
    n += nl ? 1 : 0;
    *s = (struct slice){ s->ptr + n, s->len - n };
    return true;
}

/*
 * A line of some JSON document (a HAR, say) can hold any text: such a line is not looked into for
 * the marks of a log in plain text. A text line may begin with '[' and a date.
 */
static bool is_json(struct slice line)
{
    uint8_t first = jtext_first(line);
    struct jtext_walk w;

    if (first != '[')
        return first != 0 && strchr("{}]\",", first);
    if (!jtext_enter(line, &w))
        return true;
    first = jtext_first(w.rest);
    return first == 0 || strchr("{[]\"", first);
}

static bool knows(const struct importer *f, struct slice head)
{
    struct slice line;

    if (f->probe)
        return f->probe(head);
    while (next_line(&head, &line)) {
        if (is_json(line) == f->is_json && f->probe_line(line))
            return true;
    }
    return false;
}

const struct importer *importer_find(struct slice head)
{
    for (size_t i = 0; i < ARRAY_LEN(form); i++) {
        if (knows(form[i], head))
            return form[i];
    }
    return NULL;
}

static const uint8_t *find(struct slice line, struct slice text)
{
    return line.len > 0 ? memmem(line.ptr, line.len, text.ptr, text.len) : NULL;
}

struct slice importer_after(struct slice line, struct slice text)
{
    const uint8_t *at = find(line, text);

    if (!at)
        return (struct slice){ NULL, 0 };
    at += text.len;
    return (struct slice){ at, (size_t)(line.ptr + line.len - at) };
}

struct slice importer_before(struct slice line, struct slice text)
{
    const uint8_t *at = find(line, text);

    return at ? (struct slice){ line.ptr, (size_t)(at - line.ptr) } : (struct slice){ NULL, 0 };
}

const struct importer_mark *importer_marked(struct slice line, const struct importer_mark *mark,
                                            size_t count, struct slice *ret_rest)
{
    const struct importer_mark *first = NULL;
    struct slice before = line;

    for (size_t i = 0; i < count; i++) {
        struct slice text = slice_str(mark[i].text);
        struct slice b = importer_before(line, text);
        if (!b.ptr || (first && b.len >= before.len))
            continue;
        first = &mark[i];
        before = b;
        *ret_rest = (struct slice){ b.ptr + b.len + text.len, line.len - b.len - text.len };
    }
    return first;
}

bool importer_marks_json(struct slice line, const struct importer_mark *mark, size_t count)
{
    struct slice rest;

    return importer_marked(line, mark, count, &rest) && jtext_first(rest) == '{';
}
