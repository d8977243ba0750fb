/*
 * conn.h - one TCP connection above TCP: finds out who is the client and what is spoken (HTTP/1.1,
 * HTTP/2, TLS with either inside, none of ours), and hands the chunks of the flow to that layer.
 *
 *     conns = conns_new(exchanges, keylog);
 *     while ((chunk = flows_next(flows)))
 *         conns_feed(conns, &chunk);
 *     conns_set_truncated(conns);       if the capture is cut, before flows_finish()
 *     conns_finish(conns, place, cut);  ends every connection that is still open
 *     conns_free(conns);
 */
#ifndef CONN_H
#define CONN_H

#include "exchange.h"
#include "flow.h"
#include "tls.h"

struct conns;
struct conns *conns_new(struct exchanges *all, const struct keylog *keys);
void conns_free(struct conns *c);
void conns_feed(struct conns *c, const struct flow_chunk *chunk);
/* The connections that end from now on are open only because the capture is cut. */
void conns_set_truncated(struct conns *c);
void conns_finish(struct conns *c, struct place at, bool truncated_capture);
/* Counters for "what was left out": connections that spoke none of our protocols. */
uint64_t conns_other(const struct conns *c);

#endif
