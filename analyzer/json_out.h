/*
 * json_out.h - a JSON document written as it becomes known: nothing is kept.
 *
 *     json_init(&j, stdout, true);
 *     json_open(&j, NULL, '{');
 *     json_string(&j, "name", text);       bytes that are no UTF-8 become U+FFFD
 *     json_row(&j, "missing");             an array on one line
 *     json_string(&j, NULL, id);           key NULL: an element of an array
 *     json_close(&j);
 *     json_close(&j);                      and a line feed after the outermost one
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

void json_init(struct json_out *j, FILE *to, bool pretty);
void json_open(struct json_out *j, const char *key, char bracket);
void json_row(struct json_out *j, const char *key);
void json_close(struct json_out *j);
void json_string(struct json_out *j, const char *key, struct slice s);
void json_text(struct json_out *j, const char *key, const char *s); /* NULL: nothing */
void json_u64(struct json_out *j, const char *key, uint64_t n);
void json_i64(struct json_out *j, const char *key, int64_t n);
void json_bool(struct json_out *j, const char *key, bool b);
void json_number(struct json_out *j, const char *key, double d);
void json_time(struct json_out *j, const char *key, int64_t ns); /* 0: nothing */
/* With its JSON type, and all its digits; other types than string and integer: nothing. */
void json_rpc_id(struct json_out *j, const char *key, const struct rpc_id *id);

#endif
