/*
 * scene.h - small readable scenes of who sent what and when, played through the real decoders, the
 * model and the rules; each test of a rule is one such file (tests/rules/). Without TCP, or
 * (scene_pcap.c) written as a real capture.
 *
 *     scene = scene_read(path, stderr);     NULL: it does not say anything readable
 *     scene_play(scene);
 *     failures = scene_check(scene, stderr);
 *     ... scene->found, scene->model
 *     scene_free(scene);
 *
 * THE LANGUAGE. One step a line; a line that begins with a blank continues the one before; `#`
 * first makes a comment. Steps stand in the order of time. A step begins with its time: `@1.5`
 * (seconds from the start) or `+0.2` (after the step before); none: 10 ms after the step before.
 * Words are split at blanks; "..." keeps blanks and knows \n \r \t \0 \" \\ \xHH.
 *
 * Settings, anywhere:
 *   profile divergence|conformance|all     rules that run (default divergence)
 *   option strict | idempotent TOOL | noack (nothing is acknowledged unless `ack` says so)
 *   cut                                    the capture ends because the file was cut
 *
 * Sessions:
 *   session ID REVISION [KEY=VALUE...]     plays initialize (request id 0) and
 *                                          notifications/initialized; client=NAME/VERSION,
 *                                          server=NAME/VERSION, and the keys of a request, which
 *                                          are then kept for its later requests (from=...).
 *                                          Later requests belong to it (header, version from
 *                                          2025-06-18 on) until the next `session`, or where they
 *                                          say session=OTHER; session=- leaves both headers out.
 *
 * Exchanges, each under a name of its own, one TCP connection each:
 *   x POST|GET|DELETE [/PATH] [KEY=VALUE...] [MESSAGE]
 *         keys: session cursor version; from=ADDRESS to=ADDRESS:PORT authority; any other key is
 *         the name of a header. VALUE - leaves the header out. Accept has its usual value.
 *         late: the connection's start is not in the evidence; on=y: sent on the connection of y
 *   x < STATUS [KEY=VALUE...] sse          begins an event stream (chunked)
 *   x < STATUS [KEY=VALUE...] [MESSAGE]    the whole response, JSON unless type=... says otherwise;
 *                                          keys as above; session=ID is Mcp-Session-Id; end=fin
 *                                          (or another end): its body ends so
 *   x < lost                               the head of its response is not in the evidence
 *         An x that no request began is a response without its request (capture started late).
 * On an event stream:
 *   x event [id=ID] [event=NAME] [retry=MS] [data=TEXT] [noack] [MESSAGE]   one block; data lines
 *                                          only with data= or a MESSAGE
 *   x prime [id=ID] [retry=MS]             the same with an empty data line
 *   x comment [TEXT]                       a keep-alive
 *   x raw "BYTES" [noack]                  as they are
 *   x ack                                  the client's host acknowledges all of it; done 50 us
 *                                          after each step that sends bytes, without noack
 *   x silence since=TIME [window=SECONDS] [resent=N] [probes=N] [flight=N] [data]
 *                                          TCP saw none of its bytes from TIME until now; window:
 *                                          how long the client's was closed; data: new bytes ended
 *                                          it
 *   x gap [BYTES] [request] [head]         acknowledged bytes that are not in the evidence
 * Its end (without one it is still open when the capture ends):
 *   x complete | fin | rst | client-fin | client-rst | lost-end [middlebox] [half]
 *         half: only the client has closed; the server may send on, and ends with fin or rst
 *   note KIND [text=TEXT] [count=N] [of=x]    note of the decoders: starts-late truncated
 * tls-no-keys tls-lost unknown-coding coding-broken body-not-recorded h2-no-state websocket http3
 *         other-protocol conflict unsolicited bad-http limit har clock-step
 *
 * MESSAGE, always last:
 *   {JSON} or [JSON]                       to the end of the line
 *   request ID METHOD [{PARAMS}]           ID is JSON: 1 or "a"
 *   call ID TOOL [{ARGUMENTS}]             tools/call
 *   notify METHOD [{PARAMS}]
 *   result ID [{RESULT}]                   {} without one
 *   text ID "TEXT"                         result of a tool
 *   error ID CODE [TEXT]
 *   progress TOKEN N                       notifications/progress
 *   cancel ID                              notifications/cancelled
 *   body "BYTES"                           no JSON-RPC
 *
 * Dispatch log (NDJSON; ts is the time of the step where the line gives one with @ or +):
 *   log STATE EVENT_ID|- [KEY=VALUE...] [MESSAGE]   keys are members (numbers stay numbers); the
 *                                          digest of the MESSAGE becomes the member digest
 *   log {JSON}                             a line as it is: header, map; ts added when timed
 *   log-clock SECONDS                      the log's clock is so much ahead from here on
 *
 * What must come of it. KEY=VALUE compare members of FORMATS.md 3:
 *   expect RULE [n=N] [KEY=VALUE...]       a finding: severity certainty session stream event_id
 *                                          cursor replay_head missing=a,b request_id party count;
 *                                          says=TEXT: its message contains that; also=RULE;
 *                                          n=N: so many match
 *   forbid PATTERN [KEY=VALUE...]          no finding matches (fnmatch)
 *   allow PATTERN [KEY=VALUE...]           findings of severity error or warning that no `expect`
 * or `allow` names fail the scene expect-undecidable RULE [says=TEXT] expect-resumption
 * KEY=VALUE...         in order, all or none: cursor verdict head state expected did wire dispatch
 * stored failed_at status missing=a,b outstanding=1,2 replayed reason=RULE (first) reasons=a,b (all
 * of these) expect-session s1 KEY=VALUE...         id scheme policy revision events requests
 * streams legs resumptions expect-count KEY=VALUE...              sessions streams legs events
 * requests resumptions findings undecidable, of all
 */
#ifndef SCENE_H
#define SCENE_H

#include "rule.h"

#include <stdio.h>

#define SCENE_START (INT64_C(1767225600) * NS_PER_SEC) /* 2026-01-01 */

struct scene_word {
    struct slice raw;   /* as written */
    struct slice key;   /* of KEY=VALUE; ptr NULL: none */
    struct slice value; /* unescaped; the whole word when it has no key */
    bool json;          /* ran to the end of the line */
};

struct scene_line {
    unsigned number;
    bool timed; /* the line says its time */
    int64_t time;
    struct scene_word *word;
    size_t count;
};

/* One exchange of the scene, and the connection that carries it. */
struct scene_exchange {
    const char *name;
    struct conn conn;
    bool has_request;
    bool leg;
    bool ended;
    bool half;            /* the client has closed */
    struct place half_at; /* ... here */
    void *play;           /* of the player */
    struct scene_exchange *next;
};

struct scene_response {
    struct http_head *head; /* NULL: lost */
    struct slice body;
    bool leg;
};

struct scene_end {
    enum end_kind kind;
    bool middlebox;
    bool half; /* only the client's direction is closed */
};

/* Who carries out what a scene says: exchange.c, or a writer of captures. */
struct scene_player {
    void *ctx;
    void (*request)(void *ctx, struct scene_exchange *x, const struct http_head *head,
                    struct slice body, int64_t t);
    void (*response)(void *ctx, struct scene_exchange *x, const struct scene_response *r,
                     int64_t t);
    void (*bytes)(void *ctx, struct scene_exchange *x, struct slice data, int64_t t);
    void (*ack)(void *ctx, struct scene_exchange *x, int64_t t);
    void (*silence)(void *ctx, struct scene_exchange *x, const struct silence *s);
    void (*gap)(void *ctx, struct scene_exchange *x, const struct rec_gap *gap, int64_t t);
    void (*note)(void *ctx, struct scene_exchange *x, const struct rec_note *note, int64_t t);
    void (*end)(void *ctx, struct scene_exchange *x, const struct scene_end *end, int64_t t);
    void (*finish)(void *ctx, bool truncated, int64_t t);
};

struct scene {
    const char *path;
    struct arena *arena;
    struct scene_line *line;
    size_t count;
    size_t cap;
    FILE *complain;
    unsigned faults; /* lines that could not be read or played */

    struct scene_exchange *exchange;
    uint32_t connections;

    struct buf log_text;
    struct dispatch_log *log; /* NULL: none */
    struct model_options options;
    unsigned profiles;
    bool noack;
    bool truncated;
    struct model *model;
    struct findings *found;
};

struct scene *scene_read(const char *path, FILE *complain);
struct scene *scene_of(struct slice text, const char *name, FILE *complain);
/* Through exchange.c, the model and the rules. */
void scene_play(struct scene *sc);
/* Each unmet expectation is one failure and one line. */
unsigned scene_check(struct scene *sc, FILE *out);
unsigned scene_findings(const struct scene *sc, const char *rule);
void scene_free(struct scene *sc);

/* Carry out the scene with any player; scene_play does it with its own. */
void scene_perform(struct scene *sc, const struct scene_player *player);
/* Does the scene hold what no packets can show (notes, lost heads, ...)? */
bool scene_is_wire(const struct scene *sc);
void scene_fault(struct scene *sc, const struct scene_line *l, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* The value of that key in a line; ptr NULL: none. */
struct slice scene_key(const struct scene_line *l, const char *key);

#endif
