/*
 * rpc.c - see rpc.h. Tokens come from lex.c; here they are put together: a stack of open objects
 * and arrays, the digests, and the facts that a table of member names asks for.
 */
#include "rpc.h"

#include <math.h>
#include <stdlib.h>

#include "lex.h"

/* Which members of an object are facts. */
enum scope {
    SCOPE_NONE,
    SCOPE_BATCH, /* the array at the top */
    SCOPE_MESSAGE,
    SCOPE_PARAMS,
    SCOPE_RESULT,
    SCOPE_ERROR,
    SCOPE_META,   /* of params or result */
    SCOPE_FILTER, /* params.notifications */
    SCOPE_COUNT,
};

/* How the value of a fact is kept. */
enum keep {
    KEEP_MARK,    /* only its flag: present with this type */
    KEEP_TEXT,    /* struct span, between the quotes */
    KEEP_ID,      /* struct id, of any type */
    KEEP_DOUBLE,  /* double */
    KEEP_INT,     /* int64_t, as near as it comes */
    KEEP_VERSION, /* a flag: is "2.0" */
    KEEP_PART,    /* struct part: params, result, error */
    KEEP_META,    /* the _meta of a part */
};

/* Flags of a part that rpc.h does not know. */
#define PART_CODE    (1U << 30)
#define PART_MESSAGE (1U << 31)
#define META_FLAGS                                                                                 \
    ((unsigned)(RPC_RELATED_TASK | RPC_META_VERSION | RPC_META_CAPABILITIES | RPC_META_LOG_LEVEL))

/* Bytes of the payload by their place in it, which holds for any payload that begins alike. No text
 * of a message begins at 0, which says that there is none. */
struct span {
    size_t at;
    size_t len;
};

struct id {
    enum rpc_id_type type;
    struct span text;
    uint64_t hash;
};

struct meta {
    struct id token;
    struct id subscription;
    struct span version;
};

/* What was found in params, result or error. */
struct part {
    struct span raw; /* none: no such member */
    uint64_t digest;
    uint64_t own_digest; /* without _meta */
    size_t own;          /* members other than _meta, of an object */
    enum lex_type type;
    unsigned flags;
    struct id token;
    struct id cancelled;
    double progress;
    double total;
    int64_t code;
    struct span message;
    struct span name;
    struct span uri;
    struct span task_id;
    struct span version;
    struct span request_state;
    struct span result_type;
    struct meta meta;
};

/* What was found in a message. */
struct envelope {
    size_t used;   /* its bytes before the parts that have not begun */
    unsigned seen; /* facts of SCOPE_MESSAGE, one bit each */
    unsigned flags;
    struct id id;
    struct span method;
    struct part params; /* of what is absent only `raw` is set */
    struct part result;
    struct part error;
};

static const struct part absent = { 0 };

struct fact {
    struct slice name;
    size_t at; /* where it is kept: in the envelope (SCOPE_MESSAGE) or the part */
    enum keep keep;
    enum lex_type type; /* that it must have: KEEP_MARK, KEEP_TEXT */
    unsigned flag;      /* set when it is there as it should be */
    enum scope inner;   /* of an object as its value */
};

#define NAME(s)     .name = { (const uint8_t *)(s), sizeof(s) - 1 }
#define MCP(s)      NAME("io.modelcontextprotocol/" s)
#define IN_MSG(m)   .at = offsetof(struct envelope, m)
#define IN_PART(m)  .at = offsetof(struct part, m)
#define TEXT(m)     .keep = KEEP_TEXT, .type = LEX_STRING, IN_PART(m)
#define ID(m)       .keep = KEEP_ID, IN_PART(m)
#define NUMBER(m)   .keep = KEEP_DOUBLE, IN_PART(m)
#define MARK(t, f)  .keep = KEEP_MARK, .type = (t), .flag = (f)
#define PART(m, in) .keep = KEEP_PART, IN_MSG(m), .inner = (in)
#define META        NAME("_meta"), .keep = KEEP_META, .inner = SCOPE_META

static const struct fact message_facts[] = {
    { NAME("jsonrpc"), .keep = KEEP_VERSION, .flag = RPC_VERSION_OK },
    { NAME("id"), .keep = KEEP_ID, IN_MSG(id) },
    { NAME("method"), .keep = KEEP_TEXT, .type = LEX_STRING, IN_MSG(method) },
    { NAME("params"), PART(params, SCOPE_PARAMS) },
    { NAME("result"), PART(result, SCOPE_RESULT), .flag = RPC_HAS_RESULT },
    { NAME("error"), PART(error, SCOPE_ERROR), .flag = RPC_HAS_ERROR },
};
static const struct fact params_facts[] = {
    { NAME("name"), TEXT(name) },
    { NAME("uri"), TEXT(uri) },
    { NAME("taskId"), TEXT(task_id) },
    { NAME("progressToken"), ID(token) },
    { NAME("requestId"), ID(cancelled) },
    { NAME("progress"), NUMBER(progress), .flag = RPC_HAS_PROGRESS },
    { NAME("total"), NUMBER(total) },
    { NAME("protocolVersion"), TEXT(version) },
    { NAME("requestState"), TEXT(request_state) },
    { NAME("task"), MARK(LEX_OBJECT, RPC_HAS_TASK) },
    { NAME("inputResponses"), MARK(LEX_OBJECT, RPC_HAS_INPUT_RESPONSES) },
    { NAME("notifications"), MARK(LEX_OBJECT, RPC_HAS_FILTER), .inner = SCOPE_FILTER },
    { META },
};
static const struct fact result_facts[] = {
    { NAME("protocolVersion"), TEXT(version) },
    { NAME("resultType"), TEXT(result_type), .flag = RPC_HAS_RESULT_TYPE },
    { NAME("requestState"), TEXT(request_state) },
    { NAME("inputRequests"), MARK(LEX_OBJECT, RPC_HAS_INPUT_REQUESTS) },
    { NAME("task"), MARK(LEX_OBJECT, RPC_HAS_TASK) },
    { META },
};
static const struct fact filter_facts[] = {
    { NAME("toolsListChanged"), MARK(LEX_TRUE, RPC_FILTER_TOOLS) },
    { NAME("promptsListChanged"), MARK(LEX_TRUE, RPC_FILTER_PROMPTS) },
    { NAME("resourcesListChanged"), MARK(LEX_TRUE, RPC_FILTER_RESOURCES) },
    { NAME("resourceSubscriptions"), MARK(LEX_ARRAY, RPC_FILTER_UPDATES) },
};
static const struct fact error_facts[] = {
    { NAME("code"), .keep = KEEP_INT, IN_PART(code), .flag = PART_CODE },
    { NAME("message"), TEXT(message), .flag = PART_MESSAGE },
};
static const struct fact meta_facts[] = {
    { NAME("progressToken"), ID(meta.token) },
    { MCP("subscriptionId"), ID(meta.subscription) },
    { MCP("protocolVersion"), TEXT(meta.version), .flag = RPC_META_VERSION },
    { MCP("clientCapabilities"), MARK(LEX_OBJECT, RPC_META_CAPABILITIES) },
    { MCP("logLevel"), MARK(LEX_STRING, RPC_META_LOG_LEVEL) },
    { MCP("related-task"), MARK(LEX_OBJECT, RPC_RELATED_TASK) },
};

static const struct {
    const struct fact *fact;
    size_t count;
} scopes[SCOPE_COUNT] = {
    [SCOPE_MESSAGE] = { message_facts, ARRAY_LEN(message_facts) },
    [SCOPE_PARAMS] = { params_facts, ARRAY_LEN(params_facts) },
    [SCOPE_RESULT] = { result_facts, ARRAY_LEN(result_facts) },
    [SCOPE_ERROR] = { error_facts, ARRAY_LEN(error_facts) },
    [SCOPE_META] = { meta_facts, ARRAY_LEN(meta_facts) },
    [SCOPE_FILTER] = { filter_facts, ARRAY_LEN(filter_facts) },
};

/* An open object or array. */
struct frame {
    size_t begin;            /* its place in the payload */
    const struct fact *fact; /* that the member at hand is, or NULL */
    uint64_t key;            /* its hash */
    uint64_t sum;            /* object: sum over its members; array: chain of its elements */
    uint64_t meta_sum;       /* ... the share of _meta */
    size_t count;
    size_t meta_count;
    enum scope scope;
    bool object;
};

/* See fact_find. */
#define FACTS_MAX 16
#define LENGTHS   64
struct names {
    uint8_t first[LENGTHS];  /* by length: index + 1 of a fact */
    uint8_t next[FACTS_MAX]; /* ... of another one with the same length */
    uint64_t hash[FACTS_MAX];
};

/*
 * Most payloads of a stream begin alike ({"jsonrpc":"2.0","method":"notifications/progress", ...).
 * A memo keeps what the scan knows at a member's name; a payload that begins with the same bytes,
 * up to the quote of that name, is scanned from there on. The place is found by two payloads, the
 * third one gives the state, the fourth one is the first to gain by it.
 */
#define MEMOS      8
#define MEMO_TEXT  256
#define MEMO_DEPTH 4
#define MEMO_LEAST 32 /* less would not pay */
struct memo {
    size_t text_len;
    size_t len;              /* of the text before that quote; 0: it is not known yet */
    bool ready;              /* and so is what follows */
    uint8_t text[MEMO_TEXT]; /* how the last payload began that was not helped by this */
    size_t depth;
    struct frame frame[MEMO_DEPTH];
    struct part *part;
    struct envelope env;
};

struct work {
    struct lex lex;
    const uint8_t *payload;
    struct envelope env; /* of the message at hand */
    struct part *part;   /* of it that the members at hand belong to */
    struct names names[SCOPE_COUNT];
    struct memo memo[MEMOS];
    struct memo *learner; /* what this payload is shown to, or NULL */
    size_t watch;         /* names that begin before this place are of interest to it */
    size_t place;         /* the last one of those that it may keep */
    bool too_deep;
    size_t depth;
    struct frame frame[RPC_MAX_DEPTH];
};

static struct work *work_of(const struct rpc_scanner *sc)
{
    return sc->stack;
}

/* A number's value; false: it has more digits than make sense, or is too large for a double. */
static bool number_value(struct slice token, double *ret)
{
    char text[400];
    uint64_t exact;

    if (token.len <= 15 && slice_u64(token, UINT64_MAX, &exact)) {
        *ret = (double)exact;
        return true;
    }
    if (token.len == 0 || token.len >= sizeof(text))
        return false;
    memcpy(text, token.ptr, token.len);
    text[token.len] = '\0';
    *ret = strtod(text, NULL);
    return isfinite(*ret);
}

/* An integer token's value, as near as it comes in 64 bits. */
static int64_t int_value(struct slice token)
{
    bool negative = token.len > 0 && token.ptr[0] == '-';
    struct slice digits = { token.ptr + negative, token.len - negative };
    uint64_t v;

    if (!slice_u64(digits, INT64_MAX, &v))
        return negative ? INT64_MIN : INT64_MAX;
    return negative ? -(int64_t)v : (int64_t)v;
}

static struct span span_of(const struct work *w, struct slice s)
{
    return (struct span){ (size_t)(s.ptr - w->payload), s.len };
}

static struct slice slice_of(const struct work *w, struct span s)
{
    return s.at ? (struct slice){ w->payload + s.at, s.len } : (struct slice){ 0 };
}

static struct slice unquoted(const struct lex_value *v)
{
    return (struct slice){ v->raw.ptr + 1, v->raw.len - 2 };
}

static enum rpc_id_type id_type(enum lex_type type)
{
    static const enum rpc_id_type types[] = {
        [LEX_NULL] = RPC_ID_NULL,     [LEX_FALSE] = RPC_ID_BAD,  [LEX_TRUE] = RPC_ID_BAD,
        [LEX_INT] = RPC_ID_INT,       [LEX_REAL] = RPC_ID_BAD,   [LEX_ARRAY] = RPC_ID_BAD,
        [LEX_STRING] = RPC_ID_STRING, [LEX_OBJECT] = RPC_ID_BAD,
    };

    return types[type];
}

static struct slice id_text(const struct lex_value *v)
{
    return v->type == LEX_STRING ? unquoted(v) : v->raw;
}

static struct rpc_id rpc_id_of(const struct work *w, const struct id *id)
{
    return (struct rpc_id){ id->type, slice_of(w, id->text), id->hash };
}

/* The facts of a scope by the length of their names, which tells them apart but for a few. */
static size_t length_of(struct slice name)
{
    return name.len < LENGTHS ? name.len : 0;
}

static void names_fill(struct names names[SCOPE_COUNT])
{
    for (size_t s = 0; s < SCOPE_COUNT; s++) {
        for (uint8_t i = 0; i < scopes[s].count; i++) {
            struct slice name = scopes[s].fact[i].name;
            uint8_t *first = &names[s].first[length_of(name)];
            names[s].next[i] = *first;
            names[s].hash[i] = lex_string_hash(name);
            *first = i + 1;
        }
    }
}

/* memcmp for so few bytes that its call is most of it. */
static bool same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint64_t x;
    uint64_t y;

    if (n < sizeof(x)) {
        while (n > 0 && a[n - 1] == b[n - 1])
            n--;
        return n == 0;
    }
    for (size_t i = 0; i < n; i += sizeof(x)) {
        size_t at = i + sizeof(x) <= n ? i : n - sizeof(x); /* the last eight, some of them again */
        memcpy(&x, a + at, sizeof(x));
        memcpy(&y, b + at, sizeof(y));
        if (x != y)
            return false;
    }
    return true;
}

/* The fact that this member is, or NULL; hashes the name. */
static const struct fact *fact_find(const struct names *names, enum scope scope,
                                    struct lex_value *name)
{
    for (unsigned i = names->first[length_of(name->canon)]; i > 0; i = names->next[i - 1]) {
        const struct fact *f = &scopes[scope].fact[i - 1];
        if (f->name.len != name->canon.len ||
            !same_bytes(name->canon.ptr, f->name.ptr, f->name.len))
            continue;
        name->hash = names->hash[i - 1];
        return f;
    }
    lex_hash(name);
    return NULL;
}

static void *fact_place(struct work *w, const struct frame *f)
{
    uint8_t *base = f->scope == SCOPE_MESSAGE ? (uint8_t *)&w->env : (uint8_t *)w->part;

    return base + f->fact->at;
}

/* A member that is a fact begins; what an earlier one of the same name told is void. */
static void fact_begin(struct work *w, const struct frame *f)
{
    if (f->scope == SCOPE_MESSAGE) {
        unsigned bit = 1U << (f->fact - message_facts);
        if (w->env.seen & bit)
            w->env.flags |= RPC_DUPLICATE_KEYS;
        w->env.seen |= bit;
    }
    if (f->fact->keep == KEEP_PART) {
        size_t end = f->fact->at + sizeof(*w->part);
        w->part = fact_place(w, f);
        *w->part = (struct part){ 0 };
        if (w->env.used < end)
            w->env.used = end;
    }
    if (f->fact->keep == KEEP_META) {
        w->part->meta = (struct meta){ 0 };
        w->part->flags &= ~META_FLAGS;
    }
}

/* Keeps a value; false when it is not what the fact should be. */
static bool fact_keep(struct work *w, const struct frame *f, const struct lex_value *v)
{
    void *place = fact_place(w, f);

    switch (f->fact->keep) {
    case KEEP_MARK: return v->type == f->fact->type;
    case KEEP_TEXT:
        *(struct span *)place =
            v->type == LEX_STRING ? span_of(w, unquoted(v)) : (struct span){ 0 };
        return v->type == LEX_STRING;
    case KEEP_ID:
        *(struct id *)place = (struct id){ id_type(v->type), span_of(w, id_text(v)), v->hash };
        return true;
    case KEEP_DOUBLE:
        *(double *)place = 0;
        return (v->type == LEX_INT || v->type == LEX_REAL) && number_value(v->raw, place);
    case KEEP_INT:
        *(int64_t *)place = v->type == LEX_INT ? int_value(v->raw) : 0;
        return v->type == LEX_INT;
    case KEEP_VERSION: return v->type == LEX_STRING && slice_eq(v->canon, SLICE_LIT("2.0"));
    case KEEP_PART:
        w->part->raw = span_of(w, v->raw);
        w->part->type = v->type;
        w->part->digest = v->hash;
        if (v->type != LEX_OBJECT)
            w->part->own_digest = v->hash;
        return true;
    case KEEP_META: return true;
    }
    return false;
}

static void fact_end(struct work *w, const struct frame *f, const struct lex_value *v)
{
    unsigned *flags = f->scope == SCOPE_MESSAGE ? &w->env.flags : &w->part->flags;

    *flags &= ~f->fact->flag;
    if (fact_keep(w, f, v))
        *flags |= f->fact->flag;
}

static struct span first_of(struct span a, struct span b)
{
    return a.at ? a : b;
}

static enum rpc_kind kind_of(const struct envelope *e)
{
    if (e->method.at)
        return e->id.type == RPC_ID_NONE ? RPC_NOTIFICATION : RPC_REQUEST;
    if (e->result.raw.at)
        return RPC_RESULT;
    return e->error.raw.at ? RPC_ERROR : RPC_OTHER;
}

static const struct part *part_of(const struct part *p)
{
    return p->raw.at ? p : &absent;
}

static unsigned flags_of(const struct envelope *e, const struct part *p)
{
    unsigned flags = e->flags | (p->flags & ~(PART_CODE | PART_MESSAGE));
    unsigned well = PART_CODE | PART_MESSAGE;

    if (e->error.raw.at && (e->error.flags & well) != well)
        flags |= RPC_ERROR_MALFORMED;
    if (e->result.raw.at && e->result.type == LEX_OBJECT && e->result.own == 0)
        flags |= RPC_RESULT_EMPTY;
    return flags;
}

static struct rpc *add_message(struct rpc_scanner *sc)
{
    if (sc->count == RPC_MAX_BATCH) {
        sc->too_many = true;
        return NULL;
    }
    GROW(sc->msg, sc->count, sc->cap);
    return &sc->msg[sc->count++];
}

/* The facts are taken from the part that makes the message what it is. */
static void put_message(struct rpc_scanner *sc, const struct lex_value *v)
{
    const struct work *w = work_of(sc);
    const struct envelope *e = &w->env;
    enum rpc_kind kind = kind_of(e);
    const struct part *p = part_of(kind == RPC_RESULT  ? &e->result
                                   : kind == RPC_ERROR ? &e->error
                                                       : &e->params);
    const struct part *error = part_of(&e->error);
    struct rpc *m = add_message(sc);

    if (!m)
        return;
    *m = (struct rpc){
        .kind = kind,
        .flags = flags_of(e, p) | (sc->batch ? RPC_ELEMENT : 0U),
        .id = rpc_id_of(w, &e->id),
        .method = slice_of(w, e->method),
        .token = rpc_id_of(w, p->token.type != RPC_ID_NONE ? &p->token : &p->meta.token),
        .cancelled = rpc_id_of(w, &p->cancelled),
        .subscription = rpc_id_of(w, &p->meta.subscription),
        .progress = p->progress,
        .total = p->total,
        .error_code = error->code,
        .error_message = slice_of(w, error->message),
        .name = slice_of(w, first_of(p->name, first_of(p->uri, p->task_id))),
        .protocol_version = slice_of(w, first_of(p->version, p->meta.version)),
        .result_type = slice_of(w, p->result_type),
        .request_state = slice_of(w, p->request_state),
        .body = slice_of(w, p->raw),
        .text = v->raw,
        .digest = v->hash,
        .body_digest = kind == RPC_RESULT || kind == RPC_ERROR ? p->digest : p->own_digest,
    };
}

/* An element of a batch that is no object. */
static void put_other(struct rpc_scanner *sc, const struct lex_value *v)
{
    struct rpc *m = add_message(sc);

    if (m)
        *m = (struct rpc){ .flags = RPC_ELEMENT, .text = v->raw, .digest = v->hash };
}

static uint64_t object_hash(uint64_t sum, size_t count)
{
    return lex_typed(LEX_OBJECT, lex_pair(sum, count));
}

static void envelope_clear(struct envelope *e)
{
    e->used = offsetof(struct envelope, params);
    e->seen = 0;
    e->flags = 0;
    e->id = (struct id){ 0 };
    e->method = (struct span){ 0 };
    e->params.raw.at = e->result.raw.at = e->error.raw.at = 0;
}

static enum scope scope_inside(const struct work *w, bool object)
{
    if (w->depth == 0)
        return object ? SCOPE_MESSAGE : SCOPE_BATCH;
    const struct frame *f = &w->frame[w->depth - 1];
    if (!object)
        return SCOPE_NONE;
    if (f->scope == SCOPE_BATCH)
        return SCOPE_MESSAGE;
    return f->fact ? f->fact->inner : SCOPE_NONE;
}

/* An object or array opens at p; false: too deep. */
static bool push(struct work *w, const uint8_t *p, bool object)
{
    if (w->depth == RPC_MAX_DEPTH)
        return false;
    enum scope scope = scope_inside(w, object);
    if (scope == SCOPE_MESSAGE)
        envelope_clear(&w->env);
    w->frame[w->depth++] = (struct frame){
        .begin = (size_t)(p - w->payload),
        .scope = scope,
        .object = object,
    };
    return true;
}

/* The innermost object or array has ended before p, and is a value now. */
static void pop(struct rpc_scanner *sc, const uint8_t *p, struct lex_value *ret)
{
    struct work *w = work_of(sc);
    const struct frame *f = &w->frame[--w->depth];

    ret->type = f->object ? LEX_OBJECT : LEX_ARRAY;
    const uint8_t *begin = w->payload + f->begin;
    ret->raw = (struct slice){ begin, (size_t)(p - begin) };
    ret->hash = f->object ? object_hash(f->sum, f->count)
                          : lex_typed(LEX_ARRAY, lex_pair(f->sum, f->count));
    if (f->scope == SCOPE_PARAMS || f->scope == SCOPE_RESULT) {
        w->part->own = f->count - f->meta_count;
        w->part->own_digest = object_hash(f->sum - f->meta_sum, w->part->own);
    }
    if (f->scope == SCOPE_MESSAGE) {
        if (f->count == 0 && !sc->batch)
            w->env.flags |= RPC_EMPTY_OBJECT;
        put_message(sc, ret);
    }
}

/* A value becomes part of the object or array around it. */
static void add_value(struct rpc_scanner *sc, const struct lex_value *v)
{
    struct work *w = work_of(sc);
    struct frame *f = &w->frame[w->depth - 1];

    f->count++;
    if (!f->object) {
        f->sum = lex_pair(f->sum, v->hash);
        if (f->scope == SCOPE_BATCH && v->type != LEX_OBJECT)
            put_other(sc, v);
        return;
    }
    uint64_t member = lex_pair(f->key, v->hash);
    f->sum += member; /* a sum: the order does not matter */
    if (!f->fact)
        return;
    if (f->fact->keep == KEEP_META) {
        f->meta_sum += member;
        f->meta_count++;
    }
    fact_end(w, f, v);
}

/*
 * The steps of the scan take the place where they begin and return the one behind; NULL: lex.wrong
 * tells the place of what is wrong, and `too_deep` whether it is only that.
 */

static const uint8_t *wrong(struct work *w, const uint8_t *p)
{
    w->lex.wrong = p;
    return NULL;
}

/* ---- what payloads begin with ---- */

/* The one for payloads like this; NULL: it is too short for any. */
static struct memo *memo_of(struct work *w, struct slice payload)
{
    uint64_t a;
    uint64_t b;

    if (payload.len <= MEMO_LEAST)
        return NULL;
    memcpy(&a, payload.ptr + MEMO_LEAST - 16, sizeof(a));
    memcpy(&b, payload.ptr + MEMO_LEAST - 8, sizeof(b));
    return &w->memo[lex_pair(a, b) % MEMOS];
}

static size_t common_prefix(const struct memo *m, struct slice payload)
{
    size_t most = payload.len < m->text_len ? payload.len : m->text_len;
    size_t n = 0;

    while (n < most && m->text[n] == payload.ptr[n])
        n++;
    return n;
}

static bool memo_fits(const struct memo *m, struct slice payload)
{
    return m->len > 0 && m->len < payload.len && memcmp(m->text, payload.ptr, m->len + 1) == 0;
}

/* A member's name should begin at p, before the end of what is watched. */
static void memo_show(struct work *w, const uint8_t *p)
{
    struct memo *m = w->learner;

    if (*p != '"' || w->frame[0].scope != SCOPE_MESSAGE || w->depth > MEMO_DEPTH)
        return;
    w->place = (size_t)(p - w->payload);
    if (w->place != m->len)
        return;
    m->ready = true;
    m->depth = w->depth;
    memcpy(m->frame, w->frame, w->depth * sizeof(m->frame[0]));
    m->part = w->part;
    memcpy(&m->env, &w->env, w->env.used);
}

/* The payload has been scanned; the next one like it is to be shown at the place that was found. */
static void memo_learn(struct work *w, struct slice payload)
{
    struct memo *m = w->learner;

    if (m->ready && m->len == w->place)
        return;
    m->ready = false;
    m->len = w->place >= MEMO_LEAST ? w->place : 0;
    m->text_len = payload.len < MEMO_TEXT ? payload.len : MEMO_TEXT;
    memcpy(m->text, payload.ptr, m->text_len);
}

/* Goes on where m ends; returns that place. */
static const uint8_t *memo_resume(struct work *w, const struct memo *m)
{
    w->depth = m->depth;
    memcpy(w->frame, m->frame, m->depth * sizeof(m->frame[0]));
    w->part = m->part;
    envelope_clear(&w->env);
    memcpy(&w->env, &m->env, m->env.used);
    return w->payload + m->len;
}

/* ---- the steps of a scan ---- */

/* A member's name and the colon. */
static const uint8_t *take_key(struct work *w, const uint8_t *p)
{
    struct frame *f = &w->frame[w->depth - 1];
    struct lex_value key;

    (void)lex_next(&w->lex, &p);
    if ((size_t)(p - w->payload) < w->watch)
        memo_show(w, p);
    p = lex_string(&w->lex, p, &key);
    if (!p)
        return NULL;
    f->fact = fact_find(&w->names[f->scope], f->scope, &key);
    f->key = key.hash;
    if (f->fact)
        fact_begin(w, f);
    return lex_next(&w->lex, &p) == ':' ? p + 1 : wrong(w, p);
}

/* An object or array at p; *ret_ended when it is empty, and a value already. */
static const uint8_t *open_container(struct rpc_scanner *sc, const uint8_t *p,
                                     struct lex_value *ret, bool *ret_ended)
{
    struct work *w = work_of(sc);
    bool object = *p == '{';

    if (!push(w, p, object)) {
        w->too_deep = true;
        return wrong(w, p);
    }
    if (w->depth == 1)
        sc->batch = !object;
    p++;
    *ret_ended = lex_next(&w->lex, &p) == (object ? '}' : ']');
    if (*ret_ended)
        pop(sc, p + 1, ret);
    else if (object)
        return take_key(w, p);
    return p + *ret_ended;
}

/* A value; of an object or array that is not empty only its beginning. */
static const uint8_t *begin_value(struct rpc_scanner *sc, const uint8_t *p, struct lex_value *ret,
                                  bool *ret_ended)
{
    struct work *w = work_of(sc);

    *ret_ended = true;
    switch (lex_next(&w->lex, &p)) {
    case '"':
        p = lex_string(&w->lex, p, ret);
        if (p)
            lex_hash(ret);
        return p;
    case '{':
    case '[': return open_container(sc, p, ret, ret_ended);
    default: return lex_word(&w->lex, p, ret);
    }
}

/* After a value: a comma, or the end of what is around it, which is then the value that ended. */
static const uint8_t *end_value(struct rpc_scanner *sc, const uint8_t *p, struct lex_value *v,
                                bool *ret_ended)
{
    struct work *w = work_of(sc);

    add_value(sc, v);
    bool object = w->frame[w->depth - 1].object;
    uint8_t c = lex_next(&w->lex, &p);
    *ret_ended = c == (object ? '}' : ']');
    if (*ret_ended)
        pop(sc, p + 1, v);
    else if (c != ',')
        return wrong(w, p);
    return object && c == ',' ? take_key(w, p + 1) : p + 1;
}

/* From p on, which is where a value begins or, when resumed, a member's name. */
static enum rpc_status scan_value(struct rpc_scanner *sc, const uint8_t *p, bool resumed)
{
    struct work *w = work_of(sc);
    struct lex_value v = { 0 };
    bool ended = false;

    if (resumed)
        p = take_key(w, p);
    while (p && !(ended && w->depth == 0))
        p = ended ? end_value(sc, p, &v, &ended) : begin_value(sc, p, &v, &ended);
    if (!p)
        return w->too_deep ? RPC_TOO_DEEP : RPC_NOT_JSON;
    p = lex_space(&w->lex, p);
    if (p < w->lex.end) {
        wrong(w, p);
        return RPC_NOT_JSON;
    }
    sc->digest = v.hash;
    return v.type == LEX_OBJECT || v.type == LEX_ARRAY ? RPC_OK : RPC_NOT_OBJECT;
}

/* At p, where the payload's text begins. */
static enum rpc_status scan_text(struct rpc_scanner *sc, struct slice payload, const uint8_t *p)
{
    struct work *w = work_of(sc);
    struct memo *m = memo_of(w, payload);
    bool fits = m && memo_fits(m, payload);

    w->watch = 0;
    if (!m)
        return scan_value(sc, p, false);
    if (fits && m->ready)
        return scan_value(sc, memo_resume(w, m), true);
    w->learner = m;
    w->place = 0;
    w->watch = fits ? m->len + 1 : common_prefix(m, payload);
    enum rpc_status st = scan_value(sc, p, false);
    memo_learn(w, payload);
    return st;
}

enum rpc_status rpc_scan(struct rpc_scanner *sc, struct slice payload)
{
    struct work *w = work_of(sc);

    sc->count = 0;
    sc->batch = false;
    sc->too_many = false;
    sc->error_at = 0;
    sc->digest = 0;
    w->depth = 0;
    w->too_deep = false;
    w->payload = payload.ptr;
    const uint8_t *p = lex_space(&w->lex, lex_begin(&w->lex, payload));
    if (p == w->lex.end)
        return RPC_EMPTY;

    enum rpc_status st = scan_text(sc, payload, p);
    if (st == RPC_NOT_JSON || st == RPC_TOO_DEEP) {
        sc->error_at = (size_t)(w->lex.wrong - payload.ptr);
        sc->count = 0;
    }
    return st;
}

struct rpc_scanner *rpc_scanner_new(void)
{
    struct rpc_scanner *sc = mem_alloc(sizeof(*sc));

    sc->stack = mem_alloc(sizeof(struct work));
    names_fill(work_of(sc)->names);
    GROW(sc->msg, sc->count, sc->cap);
    return sc;
}

void rpc_scanner_free(struct rpc_scanner *sc)
{
    if (!sc)
        return;
    free(sc->msg);
    free(sc->stack);
    free(sc);
}

const char *rpc_status_text(enum rpc_status st)
{
    static const char *const text[] = {
        [RPC_OK] = "valid",
        [RPC_EMPTY] = "empty",
        [RPC_NOT_JSON] = "not JSON",
        [RPC_TOO_DEEP] = "nested too deep",
        [RPC_NOT_OBJECT] = "neither object nor array",
    };

    return text[st];
}

struct rpc_id rpc_id_of_string(struct slice plain)
{
    return (struct rpc_id){ RPC_ID_STRING, plain, lex_string_hash(plain) };
}

struct rpc_id rpc_id_of_token(struct slice json_token)
{
    struct lex l;
    struct lex_value v;

    const uint8_t *p = lex_space(&l, lex_begin(&l, json_token));
    if (p == l.end)
        return (struct rpc_id){ 0 };
    p = *p == '"' ? lex_string(&l, p, &v) : lex_word(&l, p, &v);
    if (p && lex_space(&l, p) == l.end) {
        lex_hash(&v);
        return (struct rpc_id){ id_type(v.type), id_text(&v), v.hash };
    }
    return (struct rpc_id){ RPC_ID_BAD, json_token, hash_bytes(json_token) };
}

bool rpc_id_eq_converted(const struct rpc_id *a, const struct rpc_id *b)
{
    if (a->type == RPC_ID_STRING && b->type == RPC_ID_INT)
        return a->hash == lex_string_hash(b->text);
    if (a->type == RPC_ID_INT && b->type == RPC_ID_STRING)
        return b->hash == lex_string_hash(a->text);
    return false;
}

bool rpc_id_eq_rounded(const struct rpc_id *a, const struct rpc_id *b)
{
    const double exact = 9007199254740992.0; /* 2^53: from here on integers share doubles */
    double x;
    double y;

    if (a->type != RPC_ID_INT || b->type != RPC_ID_INT || rpc_id_eq(a, b))
        return false;
    return number_value(a->text, &x) && number_value(b->text, &y) && x == y && fabs(x) >= exact;
}
