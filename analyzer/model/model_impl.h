/* model_impl.h - what the files of the model share and nobody else sees. */
#ifndef MODEL_IMPL_H
#define MODEL_IMPL_H

#include "model.h"
#include "pool.h"
#include "table.h"

/* An event that may be reduced. */
struct aged {
    struct session *session;
    struct event *event;
};

struct impl {
    struct exch **by_serial; /* exchange serial -> exch */
    size_t serial_cap;
    struct table sessions;   /* key of authority and id -> index + 1 */
    struct table interned;   /* hash -> struct slice * */
    struct slice recent[64]; /* ... those asked for last */
    struct table prints;     /* fingerprint of an exchange -> struct exch * */
    struct table notes;      /* kind, exchange, text -> index + 1 */
    struct pool events;
    size_t full_bytes; /* of events kept whole */
    struct aged *aged; /* whole events from the oldest on, in a ring */
    size_t aged_first, aged_count;
    size_t aged_cap; /* 0 or a power of two */
    size_t ids;      /* remembered events in all */
};

/* An event with one message and an id as most are. */
#define EVENT_CELL (sizeof(struct event) + sizeof(struct message) + 80)

#define CHUNK_BITS 6
struct event_chunk {
    struct brief brief[CHUNK];
    struct event **full; /* CHUNK pointers; NULL when all are reduced */
    uint32_t kept;       /* of them not NULL */
    uint32_t used;
};

static inline struct impl *impl_of(const struct model *m)
{
    return m->impl;
}

/* One copy of equal strings, for the life of the model. ptr stays NULL for an absent one. */
struct slice intern(struct model *m, struct slice s);
const char *intern_str(struct model *m, struct slice s); /* NUL-terminated; NULL when absent */

/* session.c */
struct session *session_new(struct model *m, struct slice authority, struct slice id);
struct session *session_find(struct model *m, struct slice authority, struct slice id);
/* The session of an exchange as far as its request tells, or NULL: the response or the first event
 * will tell. */
struct session *session_of_request(struct model *m, const struct exch *x);
struct session *session_of_response(struct model *m, struct exch *x);
struct session *session_sessionless(struct model *m, const struct exch *x);
struct session *session_legacy(struct model *m, const struct exch *x, struct slice endpoint);
struct session *session_orphan(struct model *m, const struct exch *x);
/* No session id: packets now tell who the client is that a HAR showed. */
void session_is_of(struct model *m, struct session *s, const struct exch *x);
void session_attach(struct session *s, struct exch *x);
/* All of `from`, a session of legs without requests, becomes part of s. */
void session_absorb(struct session *s, struct session *from);
void session_free(struct session *s);
void session_peer(struct session *s, const struct exch *x);

static inline struct event_chunk *chunk_of(const struct session *s, uint32_t index)
{
    return index < s->event_count ? s->chunk[index >> CHUNK_BITS] : NULL;
}

/* ids.c */
void ids_release(struct id_index *ix);
/* What an id is known by: two with the same sum are the same. */
struct id_key {
    uint64_t prefix; /* hash of what stands before the number that it ends with */
    uint64_t number; /* 0: none */
};
struct id_key id_key_of(struct slice id);
/* An id will be asked for. */
void ids_prefetch(const struct session *s, const struct id_key *key);
/* The event with that id; NONE: there is none. */
uint32_t ids_get(const struct session *s, const struct id_key *key);
/* The same, where index, that of the newest event, takes the place if there is none. */
uint32_t ids_put(struct session *s, const struct id_key *key, uint32_t index);
/* The ids of reduced events of `from`, which are now those from index `base` on in s. */
void ids_take_over(struct session *s, struct session *from, uint32_t base);

/* ledger.c */
/* The next event of a session, zeroed but for a copy of its id and so many messages. */
struct event *event_new(struct session *s, size_t messages, struct slice id);
/* The next event of s is one that another session gives up; NULL: it is reduced. */
void event_adopt(struct session *s, struct event *e);
/* After all events of `from` became those from index `base` on in s: what is known of them. */
void ledger_take_over(struct session *s, struct session *from, uint32_t base);
void event_free(struct model *m, struct event *e);
void event_index_id(struct session *s, struct event *e, const struct id_key *key);
/* Reduces old events when they take too much memory; forgets the oldest ids past the ceiling. */
void ledger_trim(struct model *m);
/* event_by_id() of an id, not empty, whose key is known. */
uint32_t event_by_key(const struct session *s, struct slice id, const struct id_key *key);
bool messages_are_dull(const struct session *s, const struct event *e);
void event_pin(struct session *s, uint32_t index);

/* messages.c */
void messages_fill(struct model *m, struct message *d, const struct rec_body *body,
                   struct place at);
struct message *messages_copy(struct model *m, const struct rec_body *body, struct place at);
void message_from_client(struct session *s, struct exch *x, struct message *msg);
/* leg NULL: it came in a body. */
void message_from_server(struct session *s, struct exch *x, struct leg *leg, struct event *e,
                         struct message *msg);
/* The newest request of that side with that id, or NULL; the ones before by next_same_id. */
struct request *request_newest(const struct session *s, const struct rpc_id *id, bool from_server);
void renamed_settle(struct session *s);
uint32_t renamed_run(const struct session *s, const struct leg *l);
void requests_settle(struct session *s); /* when each was answered, for good */

/* twins.c */
void twin_find(struct model *m, struct exch *x); /* sets x->twin_of if it is one */
/* A twin that turns out to be another session's, by its response: NULL, or it has none any more. */
struct exch *twin_other_session(struct exch *x);
void twin_event(struct model *m, struct exch *x, const struct record *rec);
void twin_ack(struct exch *x, uint64_t offset, struct place at);
/* A note on a view that does not matter: the owner's has it all, or says the same. */
bool twin_note_idle(const struct exch *x, enum note_kind kind);
bool twin_complete(struct model *m, struct exch *owner);

/* legs.c */
struct leg *leg_new(struct session *s, struct exch *x);
void leg_release(struct leg *l); /* what it owns */
void stream_release(struct stream *st);
/* shown_by: see struct event. */
void leg_event(struct session *s, struct exch *x, const struct record *rec,
               const struct exch *shown_by);
void leg_comment(struct leg *l, const struct record *rec);
void leg_ack(struct session *s, struct exch *x, uint64_t offset, struct place at);
void event_acked(struct leg *l, struct event *e, struct place at);
void leg_silence(struct leg *l, const struct silence *sil);
void leg_end(struct session *s, struct leg *l, const struct record *rec);

/* log_pair.c, scheme.c, resume.c, did.c */
void log_pair(struct model *m);
void scheme_prove(struct session *s);
void resumptions_judge(struct session *s);
void client_did_after(struct session *s, struct resumption *r);

/* The number at the end (or the only digits) of an id, and what stands around it. */
struct id_number {
    struct slice prefix;
    struct slice suffix;
    uint64_t value;
    size_t digits; /* with leading zeros */
    unsigned base; /* 10 or 16 */
    bool padded;   /* begins with a zero */
};
bool id_number_of(struct slice id, struct id_number *ret);
bool id_pair(struct slice a, struct slice b, struct id_number *ra, struct id_number *rb);
bool id_like(struct slice id, const struct id_number *like, struct id_number *ret);
bool id_same_make(struct slice a, struct slice b);
/* Does the scheme say that b is the direct successor of a, or how many lie between? */
bool id_distance(const struct session *s, struct slice a, struct slice b, uint64_t *ret);
bool event_is_live(const struct leg *l, const struct event *before, const struct event *e);
struct slice id_with_number(struct model *m, const struct id_number *like, uint64_t value);

#endif
