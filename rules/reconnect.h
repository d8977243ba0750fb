/* reconnect.h - what session.c and reconnect.c, the checks of one family, share. */
#ifndef RECONNECT_H
#define RECONNECT_H

#include "rule.h"

/* ---- session.c ---- */

/* Order of the first bytes, for qsort over pointers. */
int exchs_by_first(const void *a, const void *b);
/* The session's exchanges in that order; to be freed. */
const struct exch **exchs_in_time(const struct session *s);
/* What kind of request it is: method, and of a POST the JSON-RPC method or kind. */
uint64_t exch_kind(const struct exch *x);
/* One host's traffic with one authority. */
uint64_t caller_of(const struct endpoint *client, struct slice authority);
/* The client asked for the session's end, whatever the server said. */
bool session_ended_by_client(const struct session *s);

/* ---- reconnect.c ---- */

void check_retry(struct rule_run *run, const struct session *s);
void check_retry_after(struct rule_run *run, const struct session *s);
void whole_storm(struct rule_run *run, const struct model *m);
void check_listen(struct rule_run *run, const struct session *s);

#endif
