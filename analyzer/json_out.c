/* json_out.c - see json_out.h. */
#include "json_out.h"

#include "jtext.h"
#include "plain.h"

#include "bytes.h"

#include <inttypes.h>
#include <math.h>

void jout_init(struct json_out *j, FILE *to, bool pretty)
{
    *j = (struct json_out){ .to = to, .pretty = pretty };
}

static void escape(FILE *to, struct slice s, size_t n)
{
    uint32_t c = s.ptr[0];

    if (n == 1) {
        fprintf(to, "\\u%04" PRIx32, c);
        return;
    }
    /* only two and three byte characters are escaped: see plain.c */
    c = n == 2 ? (c & 0x1fu) << 6 | (s.ptr[1] & 0x3fu)
               : (c & 0x0fu) << 12 | (uint32_t)(s.ptr[1] & 0x3f) << 6 | (s.ptr[2] & 0x3fu);
    fprintf(to, "\\u%04" PRIx32, c);
}

static void write_string(FILE *to, struct slice s)
{
    fputc('"', to);
    while (s.len > 0) {
        size_t n = utf8_char(s.ptr, s.ptr + s.len);
        size_t take = n ? n : 1;

        if (n == 0)
            fputs("\xef\xbf\xbd", to);
        else if (s.ptr[0] == '"' || s.ptr[0] == '\\')
            fprintf(to, "\\%c", s.ptr[0]);
        else if (s.ptr[0] == '\n')
            fputs("\\n", to);
        else if (plain_char(s) == 0)
            escape(to, s, n);
        else
            fwrite(s.ptr, 1, n, to);
        s.ptr += take;
        s.len -= take;
    }
    fputc('"', to);
}

static void new_line(struct json_out *j)
{
    bool inside_row = j->row > 0 && j->depth >= j->row;

    if (!j->pretty || j->depth == 0)
        return;
    if (inside_row) {
        if (j->comma)
            fputc(' ', j->to);
        return;
    }
    fputc('\n', j->to);
    for (unsigned i = 0; i < j->depth; i++)
        fputs("  ", j->to);
}

static void before_value(struct json_out *j, const char *key)
{
    if (j->comma)
        fputc(',', j->to);
    new_line(j);
    j->comma = true;
    if (!key)
        return;
    write_string(j->to, slice_str(key));
    fputs(j->pretty ? ": " : ":", j->to);
}

void jout_open(struct json_out *j, const char *key, char bracket)
{
    before_value(j, key);
    fputc(bracket, j->to);
    if (j->depth < JSON_DEPTH)
        j->close[j->depth] = bracket == '{' ? '}' : ']';
    j->depth++;
    j->comma = false;
}

void jout_row(struct json_out *j, const char *key)
{
    jout_open(j, key, '[');
    if (j->row == 0)
        j->row = j->depth;
}

void jout_close(struct json_out *j)
{
    bool in_row = j->row > 0 && j->depth >= j->row;

    if (j->row == j->depth)
        j->row = 0;
    j->depth--;
    if (j->pretty && j->comma && !in_row) {
        fputc('\n', j->to);
        for (unsigned i = 0; i < j->depth; i++)
            fputs("  ", j->to);
    }
    fputc(j->depth < JSON_DEPTH ? j->close[j->depth] : '}', j->to);
    j->comma = j->depth > 0;
    if (j->depth == 0)
        fputc('\n', j->to);
}

void jout_string(struct json_out *j, const char *key, struct slice s)
{
    before_value(j, key);
    write_string(j->to, s);
}

void jout_text(struct json_out *j, const char *key, const char *s)
{
    if (s)
        jout_string(j, key, slice_str(s));
}

void jout_u64(struct json_out *j, const char *key, uint64_t n)
{
    before_value(j, key);
    fprintf(j->to, "%" PRIu64, n);
}

void jout_i64(struct json_out *j, const char *key, int64_t n)
{
    before_value(j, key);
    fprintf(j->to, "%" PRId64, n);
}

void jout_bool(struct json_out *j, const char *key, bool b)
{
    before_value(j, key);
    fputs(b ? "true" : "false", j->to);
}

void jout_number(struct json_out *j, const char *key, double d)
{
    before_value(j, key);
    fprintf(j->to, "%.9g", isfinite(d) ? d : 0.0);
}

void jout_time(struct json_out *j, const char *key, int64_t ns)
{
    char text[TIME_TEXT];

    if (ns != 0)
        jout_text(j, key, time_text(ns, text));
}

void jout_rpc_id(struct json_out *j, const char *key, const struct rpc_id *id)
{
    struct buf scratch;

    if (id->type == RPC_ID_INT) {
        before_value(j, key);
        fwrite(id->text.ptr, 1, id->text.len, j->to);
    }
    if (id->type != RPC_ID_STRING)
        return;
    buf_init(&scratch, SIZE_MAX);
    jout_string(j, key, jtext_unescape(id->text, &scratch));
    buf_release(&scratch);
}
