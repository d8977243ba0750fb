/*
 * spoken.h - the JSON-RPC of a session, so that rules about it leave everything else alone: event
 * streams of other services, OAuth and other neighbours, the words of a refusal.
 */
#ifndef SPOKEN_H
#define SPOKEN_H

#include "rule.h"

/* A JSON-RPC message was exchanged in the session at all. */
bool session_speaks(const struct session *s);
/* A message in the request body of the exchange is JSON-RPC. */
bool exch_speaks(const struct session *s, const struct exch *x);
/* The leg may carry nothing but JSON-RPC: a GET's, or that of a POST whose body was JSON-RPC. */
bool leg_speaks(const struct session *s, const struct leg *l);

/* Where JSON-RPC was posted to. Sessions with more targets are judged by the first ones. */
#define SPOKEN_TARGETS 64
struct spoken_targets {
    struct slice target[SPOKEN_TARGETS];
    size_t count;
};
void spoken_targets(const struct session *s, struct spoken_targets *ret);
/* A POST whose body is JSON-RPC, or should be: its target took JSON-RPC elsewhere. */
bool exch_should_speak(const struct session *s, const struct spoken_targets *t,
                       const struct exch *x);
/* The JSON reply to a POST of JSON-RPC; a refusal's only where it says itself that it is one. */
bool reply_speaks(const struct session *s, const struct exch *x, const struct message *m);

/* A message and where it stood. */
struct spoken {
    const struct message *m;
    const struct exch *x;
    const struct event *e; /* NULL: in a body */
    bool from_client;
};
typedef void spoken_fn(struct rule_run *run, const struct session *s, const struct spoken *at);
/* Every message of the session, redelivered ones left out, in an exchange that `run->rule` applies
 * to. */
void spoken_each(struct rule_run *run, const struct session *s, spoken_fn *fn);

const char *spoken_side(const struct spoken *at); /* "client", "server" */

/* A finding on the message, with its subject, party and place. */
struct finding *spoken_finding(struct rule_run *run, const struct session *s,
                               const struct spoken *at, const char *what);
/* What one sender does again and again is one finding of its stream, or of its POSTs. */
void finding_fold(struct finding *f, const char *subject);

#endif
