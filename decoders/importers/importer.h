/*
 * importer.h - one form of dispatch log: how to know it, how to read it, and what it cannot know.
 * A form is a const descriptor in a file of its own, and one line in the table of importers.c.
 */
#ifndef IMPORTER_H
#define IMPORTER_H

#include "log_reader.h"

struct importer {
    const char *name;        /* as in the report */
    const char *cannot_know; /* what the form can never tell; NULL: it can tell all */
    bool is_json;            /* its lines, or the whole, are JSON: never tried on text */
    bool no_event_ids;       /* the form has no place for them */

    /* One of the two probes. A line may be the last of the head and cut short. */
    bool (*probe_line)(struct slice line);
    bool (*probe)(struct slice head);

    /* One of the two readers. Lines come without their ends, r->line and r->time are set. */
    void (*line)(struct log_reader *r, struct slice line);
    void (*document)(struct log_reader *r, struct slice document);
};

/* The form of a file by its first bytes (without a byte order mark); NULL: none. */
const struct importer *importer_find(struct slice head);

/* What follows the first occurrence of a text; ptr NULL when it does not occur. */
struct slice importer_after(struct slice line, struct slice text);
/* What stands before the first occurrence of a text; ptr NULL when it does not occur. */
struct slice importer_before(struct slice line, struct slice text);

/* A text that introduces a message, and what became of the message. */
struct importer_mark {
    const char *text;
    enum log_state state;
};
/* The mark that stands first in the line; NULL: none. ret_rest is what follows it. */
const struct importer_mark *importer_marked(struct slice line, const struct importer_mark *mark,
                                            size_t count, struct slice *ret_rest);
/* For a probe: is there a mark, and a JSON object behind it? */
bool importer_marks_json(struct slice line, const struct importer_mark *mark, size_t count);

extern const struct importer log_ndjson;
extern const struct importer log_map;
extern const struct importer importer_csharp_trace;
extern const struct importer importer_go_logging;
extern const struct importer importer_inspector;
extern const struct importer importer_java_debug;
extern const struct importer importer_kotlin_trace;
extern const struct importer importer_mcp_remote;
extern const struct importer importer_mcpsnoop;
extern const struct importer importer_python_debug;
extern const struct importer importer_vscode;

#endif
