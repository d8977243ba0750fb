/*
 * jtext.h - members and elements of JSON text without building a tree: every value is a slice of
 * the text, so that a number keeps its token and a place keeps its offset.
 *
 *     struct jtext_walk w;
 *     if (jtext_enter(text, &w))
 *         while (jtext_member(&w, &key, &value))
 *             ...
 *
 * It does not validate (rpc_scan does), but it is safe on any bytes: what makes no sense ends the
 * walk. Nothing is copied but by jtext_unescape.
 */
#ifndef JTEXT_H
#define JTEXT_H

#include "base.h"

struct jtext_walk {
    struct slice rest;
};

/* Into an object or an array; false for anything else. */
bool jtext_enter(struct slice value, struct jtext_walk *ret);
/* The next member: key without its quotes, as written; value with its quotes or brackets. */
bool jtext_member(struct jtext_walk *w, struct slice *key, struct slice *value);
/* Only the key: the value is what w->rest starts with, complete or not. */
bool jtext_key(struct jtext_walk *w, struct slice *key);
/* The next element of an array; false too when the text ends within it. */
bool jtext_element(struct jtext_walk *w, struct slice *value);
/* One value off the front. */
bool jtext_value(struct slice *s, struct slice *ret);
/* The value of a member by name; the last one counts. ptr NULL: none. */
struct slice jtext_find(struct slice object, const char *name);

/* The first byte that is no white space; 0 at the end. */
uint8_t jtext_first(struct slice s);
/* Between the quotes, as written; ptr NULL when the value is no string. */
struct slice jtext_inside(struct slice value);
/* Escapes resolved (a lone surrogate becomes U+FFFD). The result is raw itself, or scratch. */
struct slice jtext_unescape(struct slice raw, struct buf *scratch);

#endif
