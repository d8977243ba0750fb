/*
 * rule.h - a rule is a const descriptor and a pure function over a const session; findings own
 * their text. A new rule edits one file: the one of its family. A new family: that file, one line
 * in registry.c and one in CMakeLists.txt.
 *
 *     static void check(struct rule_run *run, const struct session *s) {
 *         struct finding *f = finding_add(run, s);
 *         finding_message(run, f, "...");
 *         finding_frame(run, f, place, "what is seen there");
 *     }
 */
#ifndef RULE_H
#define RULE_H

#include "model.h"

enum severity { SEV_INFO, SEV_WARNING, SEV_ERROR };
enum certainty { CERTAINTY_LIKELY, CERTAINTY_PROVEN };
enum profile { PROFILE_DIVERGENCE = 1, PROFILE_CONFORMANCE = 2 };
enum party { PARTY_UNKNOWN, PARTY_CLIENT, PARTY_SERVER, PARTY_PATH, PARTY_CAPTURE };
const char *severity_text(enum severity s);
const char *certainty_text(enum certainty c);
const char *party_text(enum party p);

/* Evidence that a rule needs. */
enum need { NEED_T = 1, NEED_H = 2, NEED_D = 4 };

struct evidence {
    struct place at;
    const char *what;
};

struct log_evidence {
    uint32_t entry; /* index into the log's entries */
    const char *what;
};

struct finding {
    const struct rule *rule;
    enum severity severity;
    enum certainty certainty;
    enum party party;
    const struct session *session; /* NULL: concerns the recording */
    /* The subject: what it is about. NONE and NULL where it does not apply. */
    uint32_t stream, leg, exch, event, request;
    const struct resumption *resumption;
    const char *subject;   /* further distinction for de-duplication; NULL */
    struct slice event_id; /* ptr NULL: absent, so are the next */
    struct slice cursor;
    struct slice replay_head;
    const struct missing_id *missing;
    uint32_t missing_count;
    bool has_missing;         /* the member is present, even when empty */
    struct rpc_id request_id; /* type RPC_ID_NONE: absent */
    const char *message;      /* what happened */
    const char *why;          /* why it matters here; NULL: the rule's */
    const char *advice;       /* NULL: the rule's */
    uint32_t count;
    struct evidence *evidence;
    uint32_t evidence_count;
    size_t evidence_cap;
    struct log_evidence *log;
    uint32_t log_count;
    size_t log_cap;
    const char **also; /* rules whose finding this one explains */
    uint32_t also_count;
    size_t also_cap;
    bool suppressed; /* by the policy */
    const char *suppressed_why;
};

struct undecidable {
    const struct rule *rule;
    const struct session *session;
    uint32_t stream;
    const char *reason;
};

/* Thresholds that a policy file can move; defaults in registry.c. */
struct thresholds {
    int64_t retry_tolerance; /* ns */
    uint32_t resume_loop;    /* reconnects */
    uint32_t storm_count;
    int64_t storm_window; /* ns */
    double keepalive_factor;
    int64_t idle_timeout;        /* ns: silence that is classified without known keep-alives */
    int64_t open_after_response; /* ns */
    double poll_factor;          /* times retry */
    int64_t clock_skew;          /* ns that are reported */
    size_t id_length;            /* bytes of an event id */
    int64_t burst_spread;        /* ns */
};
extern const struct thresholds thresholds_default;

struct findings {
    struct finding **item;
    uint32_t count;
    size_t cap;
    struct undecidable *undecidable;
    uint32_t undecidable_count;
    size_t undecidable_cap;
    struct arena *arena;
};

struct rule_run {
    const struct rule *rule; /* the one that is being checked */
    const struct model *model;
    const struct thresholds *limit;
    struct findings *out;
};

struct explanation {
    const char *picture;                /* who sent what, ASCII */
    const char *needs;                  /* what evidence, in words */
    const char *blind;                  /* what it cannot see */
    const char *client, *server, *path; /* what to do, for the owner of each; NULL: nothing */
    const char *known; /* shipping implementations known to do it (executed or read); NULL */
};

struct rule {
    const char *id; /* stable for ever: RULES.md */
    enum severity severity;
    enum profile profile;
    unsigned needs;      /* enum need: which evidence it takes; D missing: the rule is silent */
    unsigned eras;       /* enum era bits it applies to; 0: all */
    const char *summary; /* one sentence a user can act on */
    const char *why;     /* why it matters, one sentence */
    const char *advice;  /* what to do, one or two sentences */
    const char *source;  /* document, revision, section; or the reasoning */
    struct explanation explain;
    /* At least one of these: once a session, once a resumption of it, once a recording. */
    void (*check)(struct rule_run *run, const struct session *s);
    void (*resumption)(struct rule_run *run, const struct resumption *r);
    void (*whole)(struct rule_run *run, const struct model *m);
};

struct rule_family {
    const char *name;
    const char *title;
    const struct rule *rule;
    size_t count;
};
#define RULE_FAMILY(n, t, r)                                                                       \
    {                                                                                              \
        .name = (n), .title = (t), .rule = (r), .count = ARRAY_LEN(r)                              \
    }

/* registry.c */
size_t rule_count(void);
const struct rule *rule_at(size_t i);         /* in the order of RULES.md */
const struct rule *rule_find(const char *id); /* NULL: no such rule */
const struct rule_family *rule_family_of(const struct rule *r);
size_t rule_family_count(void);
const struct rule_family *rule_family_at(size_t i);

/* run.c: all rules of the profiles over all sessions, then the precedence ("one fact, one
 * finding"), repetitions counted, and a stable order. */
struct findings *rules_run(const struct model *m, unsigned profiles,
                           const struct thresholds *limit);
void findings_free(struct findings *f);

/* finding.c: building one. Everything is copied into the findings' arena. */
struct finding *finding_add(struct rule_run *run,
                            const struct session *s); /* severity of the rule, proven */
void finding_message(struct rule_run *run, struct finding *f, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void finding_advice(struct rule_run *run, struct finding *f, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* A place without time and frame is left out. */
void finding_frame(struct rule_run *run, struct finding *f, struct place at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void finding_log(struct rule_run *run, struct finding *f, uint32_t entry, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The usual subjects: fill what they imply (stream, event id, request id, place). */
void finding_on_event(struct rule_run *run, struct finding *f, const struct event *e);
void finding_on_leg(struct rule_run *run, struct finding *f, const struct leg *l);
void finding_on_exch(struct rule_run *run, struct finding *f, const struct exch *x);
void finding_on_request(struct rule_run *run, struct finding *f, const struct request *r);
void finding_on_resumption(struct rule_run *run, struct finding *f, const struct resumption *r);
void undecidable_add(struct rule_run *run, const struct session *s, uint32_t stream,
                     const char *fmt, ...) PRINTF_LIKE(4, 5);
const char *run_text(struct rule_run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* An id for a message: quoted, cut, control characters escaped. */
const char *run_id(struct rule_run *run, struct slice id);
const char *run_rpc_id(struct rule_run *run, const struct rpc_id *id);
const char *run_seconds(struct rule_run *run, int64_t ns); /* "1.25 s" */

/* Does the rule apply to exchanges of that era? Unknown eras count as A to C, not as D. */
bool rule_in_era(const struct rule *r, enum era era);
/* ... where not knowing the era is no reason to apply it. */
bool rule_surely_in_era(const struct rule *r, enum era era);

#endif
