/*
 * rpc.h - one pass over a JSON-RPC 2.0 payload: validates the JSON (RFC 8259), finds the envelope
 * of each message, and digests it. Never allocates on the way (but for a growing batch), never
 * recurses.
 *
 *     struct rpc_scanner *sc = rpc_scanner_new();
 *     st = rpc_scan(sc, payload);           <- sc->msg[0 .. sc->count) until the next rpc_scan
 *     rpc_scanner_free(sc);
 *
 * Digests ignore the order of keys, white space, and how a character is escaped; numbers count by
 * their token. They are the same on every machine and in every run.
 */
#ifndef RPC_H
#define RPC_H

#include "base.h"

#define RPC_MAX_DEPTH 512
#define RPC_MAX_BATCH 4096

enum rpc_status {
    RPC_OK,        /* valid JSON; msg[] holds an object, or the elements of an array (batch) */
    RPC_EMPTY,     /* nothing but white space */
    RPC_NOT_JSON,  /* not valid JSON, or not UTF-8; error_at tells where */
    RPC_TOO_DEEP,  /* nesting past RPC_MAX_DEPTH */
    RPC_NOT_OBJECT /* valid JSON, neither object nor array (a string, a number ...) */
};

enum rpc_kind {
    RPC_OTHER,   /* an object that is no JSON-RPC message, `{}` too; or a batch element that is no
                    object */
    RPC_REQUEST, /* method and id */
    RPC_NOTIFICATION, /* method, no id */
    RPC_RESULT,       /* result, no method */
    RPC_ERROR,        /* error, no method */
};

static inline bool rpc_is_response(enum rpc_kind kind)
{
    return kind == RPC_RESULT || kind == RPC_ERROR;
}

enum rpc_id_type {
    RPC_ID_NONE, /* absent */
    RPC_ID_NULL,
    RPC_ID_STRING,
    RPC_ID_INT, /* an integer token of any size */
    RPC_ID_BAD, /* bool, object, array, or a number with a fraction or exponent */
};

struct rpc_id {
    enum rpc_id_type type;
    struct slice text; /* string: between the quotes, as written; else the token */
    uint64_t hash;     /* of type and (unescaped) value: equal ids have equal hashes */
};

static inline bool rpc_id_eq(const struct rpc_id *a, const struct rpc_id *b)
{
    return a->type == b->type && a->hash == b->hash;
}
/* 1 against "1": equal after string/number conversion, and not equal. */
bool rpc_id_eq_converted(const struct rpc_id *a, const struct rpc_id *b);
/* Integers above 2^53 that an IEEE double cannot tell apart, and that are not equal. */
bool rpc_id_eq_rounded(const struct rpc_id *a, const struct rpc_id *b);

enum rpc_flag {
    RPC_HAS_RESULT = 1 << 0,
    RPC_HAS_ERROR = 1 << 1,
    RPC_VERSION_OK = 1 << 2,     /* "jsonrpc":"2.0" */
    RPC_DUPLICATE_KEYS = 1 << 3, /* id, method, params, result, error or jsonrpc twice at the top */
    RPC_ERROR_MALFORMED = 1 << 4, /* error without integer code, or without string message */
    RPC_HAS_PROGRESS = 1 << 5,    /* params.progress is a number */
    RPC_EMPTY_OBJECT = 1 << 6,    /* the payload is {} */
    RPC_RESULT_EMPTY = 1 << 7,    /* result is {} (or has only _meta) */
    RPC_HAS_RESULT_TYPE = 1 << 8, /* result.resultType */
    RPC_RELATED_TASK =
        1 << 9, /* _meta["io.modelcontextprotocol/related-task"] in params or result */
    RPC_META_VERSION = 1 << 10,      /* params._meta["io.modelcontextprotocol/protocolVersion"] */
    RPC_META_CAPABILITIES = 1 << 11, /* ... clientCapabilities */
    RPC_META_LOG_LEVEL = 1 << 12,    /* ... logLevel */
    RPC_HAS_TASK = 1 << 13, /* params.task, or result.task: a task-augmented request / its result */
    RPC_ELEMENT = 1 << 14,  /* an element of a batch */
    RPC_HAS_INPUT_REQUESTS = 1 << 15,  /* result.inputRequests */
    RPC_HAS_INPUT_RESPONSES = 1 << 16, /* params.inputResponses */
    RPC_HAS_FILTER = 1 << 17,          /* params.notifications, an object: what was subscribed to */
    RPC_FILTER_TOOLS = 1 << 18,        /* ... toolsListChanged: true */
    RPC_FILTER_PROMPTS = 1 << 19,      /* ... promptsListChanged: true */
    RPC_FILTER_RESOURCES = 1 << 20,    /* ... resourcesListChanged: true */
    RPC_FILTER_UPDATES = 1 << 21,      /* ... resourceSubscriptions */
};

/* Slices point into the payload. Absent strings have ptr NULL. */
struct rpc {
    enum rpc_kind kind;
    unsigned flags;
    struct rpc_id id;
    struct slice method;        /* as written between the quotes */
    struct rpc_id token;        /* params.progressToken, else params._meta.progressToken */
    struct rpc_id cancelled;    /* params.requestId */
    struct rpc_id subscription; /* params|result ._meta["io.modelcontextprotocol/subscriptionId"] */
    double progress;            /* params.progress */
    double total;               /* params.total, 0: none */
    int64_t error_code;
    struct slice error_message;    /* between the quotes */
    struct slice name;             /* params.name: the tool or prompt; params.uri; params.taskId */
    struct slice protocol_version; /* params.protocolVersion, result.protocolVersion, or _meta's */
    struct slice result_type;
    struct slice request_state; /* result.requestState or params.requestState */
    struct slice body;          /* the params, result or error value */
    struct slice text;          /* the whole message */
    uint64_t digest;            /* of the whole message */
    uint64_t body_digest;       /* of params, result or error; of params without _meta */
};

struct rpc_scanner {
    struct rpc *msg;
    size_t count;
    size_t cap;
    bool batch;      /* the payload is an array */
    bool too_many;   /* more than RPC_MAX_BATCH elements: the rest was validated only */
    size_t error_at; /* offset of the first byte that is wrong */
    uint64_t digest; /* of the whole payload when it is valid JSON */
    void *stack;     /* private */
};

struct rpc_scanner *rpc_scanner_new(void);
void rpc_scanner_free(struct rpc_scanner *sc);
enum rpc_status rpc_scan(struct rpc_scanner *sc, struct slice payload);
const char *rpc_status_text(enum rpc_status st);

/* An id value on its own (from a log): JSON scalar text. */
struct rpc_id rpc_id_of_string(struct slice plain);     /* its unescaped value */
struct rpc_id rpc_id_of_token(struct slice json_token); /* 1, "a", null ... */

#endif
