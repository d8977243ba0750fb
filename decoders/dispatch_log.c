/* dispatch_log.c - see dispatch_log.h: the lines of a file, or the whole, go to the reader of its
 * form (importers/importer.h). */
#include "dispatch_log.h"

#include "importers/importer.h"
#include "log_time.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD         ((size_t)65536) /* as much as input_peek gives */
#define MAX_LINE     ((size_t)1 << 20)
#define MAX_DOCUMENT ((size_t)256 << 20)

struct dispatch_log *dispatch_log_new(void)
{
    struct dispatch_log *log = mem_alloc(sizeof(*log));

    log->arena = arena_new();
    return log;
}

void dispatch_log_free(struct dispatch_log *log)
{
    if (!log)
        return;
    arena_free(log->arena);
    free(log->entry);
    free(log->file);
    free(log->fault);
    free(log);
}

static struct slice without_bom(struct slice s)
{
    struct slice bom;

    if (slice_starts(s, SLICE_LIT("\xef\xbb\xbf")) && slice_take(&s, 3, &bom))
        return s;
    return s;
}

bool dispatch_log_is(struct slice head)
{
    return importer_find(without_bom(head)) != NULL;
}

/* Cuts the stream into lines; a line that lies within one chunk is not copied. */
struct line_cutter {
    struct log_reader *r;
    struct buf part; /* of a line that began in an earlier chunk */
    bool too_long;
};

static void one_line(struct line_cutter *c, struct slice line)
{
    struct log_reader *r = c->r;

    r->line++;
    if (r->line == 1)
        line = without_bom(line);
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (slice_trim(line).len == 0)
        return;
    /* a line that goes on, set off by blanks, belongs to the time of the one before */
    bool goes_on = line.ptr[0] == ' ' || line.ptr[0] == '\t';
    if (!r->form->is_json)
        r->has_time = log_time_of_line(line, &r->time) || (goes_on && r->has_time);
    r->form->line(r, line);
}

static void end_line(struct line_cutter *c)
{
    if (c->too_long) {
        c->r->line++;
        log_reader_fault(c->r, "longer than %zu bytes", MAX_LINE);
    } else {
        one_line(c, buf_slice(&c->part));
    }
    c->too_long = false;
    buf_drop(&c->part, c->part.len);
}

static void cut_chunk(struct line_cutter *c, struct slice chunk)
{
    while (chunk.len > 0) {
        const uint8_t *nl = memchr(chunk.ptr, '\n', chunk.len);
        size_t n = nl ? (size_t)(nl - chunk.ptr) : chunk.len;
        struct slice piece = { chunk.ptr, n };
        bool whole = nl && c->part.len == 0 && !c->too_long;
        if (whole)
            one_line(c, piece);
        else if (!buf_add(&c->part, piece))
            c->too_long = true;
        if (nl && !whole)
            end_line(c);
        n += nl ? 1 : 0;
        chunk = (struct slice){ chunk.ptr + n, chunk.len - n };
    }
}

static void read_lines(struct log_reader *r, struct input *in)
{
    struct line_cutter c = { .r = r };
    uint8_t *chunk = mem_alloc(HEAD);
    size_t n;

    buf_init(&c.part, MAX_LINE);
    while ((n = input_read(in, chunk, HEAD)) > 0)
        cut_chunk(&c, (struct slice){ chunk, n });
    if (c.part.len > 0 || c.too_long)
        end_line(&c);
    buf_release(&c.part);
    free(chunk);
}

static bool read_document(struct log_reader *r, struct input *in, struct input_error *reterr)
{
    uint8_t *chunk = mem_alloc(HEAD);
    struct buf whole;
    bool fits = true;
    size_t n;

    buf_init(&whole, MAX_DOCUMENT);
    while (fits && (n = input_read(in, chunk, HEAD)) > 0)
        fits = buf_add(&whole, (struct slice){ chunk, n });
    if (fits)
        r->form->document(r, without_bom(buf_slice(&whole)));
    else
        snprintf(reterr->text, sizeof(reterr->text),
                 "a dispatch log in one document is read up to %zu MiB only", MAX_DOCUMENT >> 20);
    buf_release(&whole);
    free(chunk);
    return fits;
}

bool dispatch_log_read(struct dispatch_log *log, struct input *in, uint32_t input_index,
                       struct input_error *reterr)
{
    const struct importer *form = importer_find(without_bom(input_peek(in, HEAD)));
    struct log_reader r;
    bool ok = true;

    if (!form) {
        snprintf(reterr->text, sizeof(reterr->text), "not a dispatch log of a form that is known");
        return false;
    }
    log_reader_init(&r, log, form, input_index);
    if (form->document)
        ok = read_document(&r, in, reterr);
    else
        read_lines(&r, in);
    log_reader_release(&r);
    return ok;
}

void dispatch_log_drop_last(struct dispatch_log *log)
{
    uint32_t last = (uint32_t)log->file_count - 1;

    while (log->count > 0 && log->entry[log->count - 1].file == last)
        log->count--;
    while (log->fault_count > 0 && log->fault[log->fault_count - 1].file == last)
        log->fault_count--;
    log->file_count--;
}
