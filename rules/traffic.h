/*
 * traffic.h - what the conformance rules about HTTP need to know of an exchange: whether it is MCP
 * at all, what of it is in the evidence, and which client made it.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "rule.h"

#define STREAMABLE_AC (ERA_A | ERA_B | ERA_C)
#define STREAMABLE    (STREAMABLE_AC | ERA_D)
#define INITIALIZED   (ERA_L | STREAMABLE_AC)

/* What an exchange is to MCP. */
enum part {
    PART_NONE, /* other traffic of the web: never judged */
    PART_POST, /* carries JSON-RPC, or a header of MCP */
    PART_GET,  /* asks for an event stream */
    PART_DELETE,
};

/* The session exists by its header, or JSON-RPC was posted in it. */
bool session_is_mcp(const struct session *s);
/* In a session that is. */
enum part exch_part(const struct session *s, const struct exch *x);

/* Are all header lines in the evidence? */
bool request_head_known(const struct exch *x);
bool response_head_known(const struct exch *x);
/* Some HTTP/2 connection was joined in the middle: a header that is not seen may have been there.
 */
bool http2_is_blind(const struct model *m);

bool exch_accepted(const struct exch *x); /* 2xx */
/* Authentication, overload, failure: HTTP as everywhere, which says nothing about MCP. */
bool status_is_ordinary(int status);
/* The evidence shows Streamable HTTP, and not HTTP+SSE joined late. */
bool exch_is_streamable(const struct session *s, const struct exch *x);

/* The client's JSON-RPC messages of an exchange, by kind. */
struct tally {
    uint32_t requests, notifications, responses, others;
};
struct tally exch_tally(const struct exch *x);
bool message_is(const struct message *m, const char *method);

/* The initialize request that the session came of, or NULL; its response may be missing. */
const struct request *session_initialize(const struct session *s);
/* The result of it; NULL: refused, or not seen. */
const struct message *session_initialized_by(const struct session *s);

struct slice target_path(struct slice target); /* without the query */
/* One client's traffic with one endpoint: host, authority, path. */
uint64_t who_is_at(const struct exch *x);
uint64_t endpoint_of(const struct exch *x); /* authority and path */
/* One program, as far as the User-Agent tells. */
bool same_agent(const struct exch *a, const struct exch *b);

/* Exchanges under a key, to be looked up by time. */
struct sighting {
    uint64_t key;
    int64_t time;
    const struct session *session;
    const struct exch *exch;
    bool mark; /* of the one who gathers */
};
struct sightings {
    struct sighting *item;
    size_t count;
    size_t cap;
};
void sightings_add(struct sightings *all, struct sighting s);
void sightings_sort(struct sightings *all);
void sightings_release(struct sightings *all);
/* The last one under the key before t, or NULL; those before it stand before it. */
const struct sighting *sightings_before(const struct sightings *all, uint64_t key, int64_t t);
/* The first one under the key after t, or NULL; those after it stand after it. */
const struct sighting *sightings_after(const struct sightings *all, uint64_t key, int64_t t);

/* A finding about an exchange; those of a session with the same `about` are one. */
struct finding *finding_about(struct rule_run *run, const struct exch *x, enum party party,
                              const char *about);

#endif
