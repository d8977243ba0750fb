/*
 * json_out.h - a JSON document written as it becomes known: nothing is kept.
 *
 *     jout_init(&j, stdout, true);
 *     jout_open(&j, NULL, '{');
 *     jout_string(&j, "name", text);       bytes that are no UTF-8 become U+FFFD
 *     jout_row(&j, "missing");             an array on one line
 *     jout_string(&j, NULL, id);           key NULL: an element of an array
 *     jout_close(&j);
 *     jout_close(&j);                      and a line feed after the outermost one
 *
 * Control characters, and what steers a terminal or the direction of writing, are escaped.
 */
#ifndef JSON_OUT_H
#define JSON_OUT_H

#include "rpc.h"

#include <stdio.h>

#define JSON_DEPTH 16

struct json_out {
    FILE *to;
    bool pretty;
    bool comma; /* something stands before in this container */
    unsigned depth;
    unsigned row;           /* depth from which all is on one line; 0: none */
    char close[JSON_DEPTH]; /* of every open container */
};

void jout_init(struct json_out *j, FILE *to, bool pretty);
void jout_open(struct json_out *j, const char *key, char bracket);
void jout_row(struct json_out *j, const char *key);
void jout_close(struct json_out *j);
void jout_string(struct json_out *j, const char *key, struct slice s);
void jout_text(struct json_out *j, const char *key, const char *s); /* NULL: nothing */
void jout_u64(struct json_out *j, const char *key, uint64_t n);
void jout_i64(struct json_out *j, const char *key, int64_t n);
void jout_bool(struct json_out *j, const char *key, bool b);
void jout_number(struct json_out *j, const char *key, double d);
void jout_time(struct json_out *j, const char *key, int64_t ns); /* 0: nothing */
/* With its JSON type, and all its digits; other types than string and integer: nothing. */
void jout_rpc_id(struct json_out *j, const char *key, const struct rpc_id *id);

#endif
