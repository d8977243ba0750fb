/* scene_perform.c - see scene.h: from lines to what a player carries out. */
#include "scene_parts.h"

#include "exchange.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define HEADERS_MAX 24

struct scene_session {
    struct slice id;
    struct slice version; /* of MCP-Protocol-Version; empty: none */
    const struct scene_line *line;
    struct scene_session *next;
};

struct perform {
    struct scene *sc;
    const struct scene_player *player;
    const struct scene_line *line;
    struct scene_session *sessions; /* newest first */
    int64_t time;
};

struct heads {
    struct http_header header[HEADERS_MAX];
    struct http_head head;
};

static void fault(struct perform *p, const char *what, struct slice about)
{
    scene_fault(p->sc, p->line, "%s: " SLICE_FMT, what, SLICE_ARG(about));
}

/* ---- exchanges ---- */

static void address(struct perform *p, struct slice text, const char *plain, struct endpoint *ret)
{
    char *s = arena_str(p->sc->arena, text.ptr ? text : slice_str(plain));
    char *colon = strrchr(s, ':');
    struct in_addr a;

    if (colon) {
        *colon = '\0';
        ret->port = (uint16_t)strtoul(colon + 1, NULL, 10);
    }
    ret->addr[10] = ret->addr[11] = 0xff;
    if (inet_pton(AF_INET, s, &a) == 1)
        memcpy(ret->addr + 12, &a, sizeof(a));
    else if (inet_pton(AF_INET6, s, ret->addr) != 1)
        fault(p, "no address", slice_str(s));
}

static struct scene_exchange *find(const struct scene *sc, struct slice name)
{
    for (struct scene_exchange *x = sc->exchange; x; x = x->next) {
        if (slice_eq(slice_str(x->name), name))
            return x;
    }
    return NULL;
}

static struct scene_session *session_find(const struct perform *p, struct slice id)
{
    for (struct scene_session *s = p->sessions; s; s = s->next) {
        if (slice_eq(s->id, id))
            return s;
    }
    return NULL;
}

/* Does the word stand in the line? */
static bool has_word(const struct scene_line *l, const char *word)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!l->word[i].key.ptr && slice_eq(l->word[i].raw, slice_str(word)))
            return true;
    }
    return false;
}

static struct scene_exchange *open_exchange(struct perform *p, struct slice name,
                                            const struct scene_session *s)
{
    struct scene *sc = p->sc;
    struct scene_exchange *x = arena_alloc(sc->arena, sizeof(*x));
    struct slice from = scene_key(p->line, "from");
    struct slice to = scene_key(p->line, "to");

    if (!from.ptr && s)
        from = scene_key(s->line, "from");
    if (!to.ptr && s)
        to = scene_key(s->line, "to");
    x->name = arena_str(sc->arena, name);
    x->conn.tcp_stream = sc->connections++;
    address(p, from, "192.0.2.1", &x->conn.client);
    x->conn.client.port = (uint16_t)(40000 + x->conn.tcp_stream);
    x->conn.server.port = 80;
    address(p, to, "198.51.100.1:80", &x->conn.server);
    x->conn.first.time = p->time;
    x->conn.starts_late = has_word(p->line, "late");
    x->next = sc->exchange;
    sc->exchange = x;
    return x;
}

/* ---- messages ---- */

static struct slice joined(struct perform *p, const char *open, struct slice middle,
                           const char *close)
{
    return slice_str(
        arena_printf(p->sc->arena, "%s" SLICE_FMT "%s", open, SLICE_ARG(middle), close));
}

static struct slice raw_at(const struct scene_line *l, size_t i, const char *otherwise)
{
    if (i >= l->count)
        return slice_str(otherwise);
    return l->word[i].json ? l->word[i].value : l->word[i].raw;
}

/* The value without its quotes, as it may stand between quotes again. */
static struct slice bare_at(const struct scene_line *l, size_t i, const char *otherwise)
{
    return i < l->count ? l->word[i].value : slice_str(otherwise);
}

#define RPC_OPEN "{\"jsonrpc\":\"2.0\","

static struct slice message_request(struct perform *p, size_t i)
{
    struct slice params = raw_at(p->line, i + 3, "");
    struct slice id = raw_at(p->line, i + 1, "null");
    struct slice method = bare_at(p->line, i + 2, "");

    if (params.len > 0)
        params = joined(p, ",\"params\":", params, "");
    return slice_str(arena_printf(
        p->sc->arena, RPC_OPEN "\"id\":" SLICE_FMT ",\"method\":\"" SLICE_FMT "\"" SLICE_FMT "}",
        SLICE_ARG(id), SLICE_ARG(method), SLICE_ARG(params)));
}

static struct slice message_call(struct perform *p, size_t i)
{
    struct slice id = raw_at(p->line, i + 1, "null");
    struct slice tool = bare_at(p->line, i + 2, "");
    struct slice arguments = raw_at(p->line, i + 3, "{}");

    return slice_str(arena_printf(
        p->sc->arena,
        RPC_OPEN "\"id\":" SLICE_FMT ",\"method\":\"tools/call\",\"params\":{\"name\":\"" SLICE_FMT
                 "\",\"arguments\":" SLICE_FMT ",\"_meta\":{\"progressToken\":" SLICE_FMT "}}}",
        SLICE_ARG(id), SLICE_ARG(tool), SLICE_ARG(arguments), SLICE_ARG(id)));
}

static struct slice message_notify(struct perform *p, size_t i)
{
    struct slice params = raw_at(p->line, i + 2, "");

    if (params.len > 0)
        params = joined(p, ",\"params\":", params, "");
    return slice_str(arena_printf(p->sc->arena,
                                  RPC_OPEN "\"method\":\"" SLICE_FMT "\"" SLICE_FMT "}",
                                  SLICE_ARG(bare_at(p->line, i + 1, "")), SLICE_ARG(params)));
}

static struct slice message_result(struct perform *p, size_t i)
{
    return slice_str(arena_printf(
        p->sc->arena, RPC_OPEN "\"id\":" SLICE_FMT ",\"result\":" SLICE_FMT "}",
        SLICE_ARG(raw_at(p->line, i + 1, "null")), SLICE_ARG(raw_at(p->line, i + 2, "{}"))));
}

static struct slice message_text(struct perform *p, size_t i)
{
    return slice_str(arena_printf(
        p->sc->arena,
        RPC_OPEN "\"id\":" SLICE_FMT ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
                 "\"" SLICE_FMT "\"}]}}",
        SLICE_ARG(raw_at(p->line, i + 1, "null")), SLICE_ARG(bare_at(p->line, i + 2, "done"))));
}

static struct slice message_error(struct perform *p, size_t i)
{
    return slice_str(arena_printf(p->sc->arena,
                                  RPC_OPEN "\"id\":" SLICE_FMT ",\"error\":{\"code\":" SLICE_FMT
                                           ",\"message\":\"" SLICE_FMT "\"}}",
                                  SLICE_ARG(raw_at(p->line, i + 1, "null")),
                                  SLICE_ARG(raw_at(p->line, i + 2, "-32000")),
                                  SLICE_ARG(bare_at(p->line, i + 3, "error"))));
}

static struct slice message_progress(struct perform *p, size_t i)
{
    return slice_str(arena_printf(
        p->sc->arena,
        RPC_OPEN "\"method\":\"notifications/progress\",\"params\":{"
                 "\"progressToken\":" SLICE_FMT ",\"progress\":" SLICE_FMT "}}",
        SLICE_ARG(raw_at(p->line, i + 1, "1")), SLICE_ARG(raw_at(p->line, i + 2, "1"))));
}

static struct slice message_cancel(struct perform *p, size_t i)
{
    return slice_str(arena_printf(p->sc->arena,
                                  RPC_OPEN "\"method\":\"notifications/cancelled\",\"params\":{"
                                           "\"requestId\":" SLICE_FMT "}}",
                                  SLICE_ARG(raw_at(p->line, i + 1, "1"))));
}

static struct slice message_body(struct perform *p, size_t i)
{
    return bare_at(p->line, i + 1, "");
}

/* The message that begins at word i, if one does. */
static bool message_at(struct perform *p, size_t i, struct slice *ret)
{
    static const struct {
        const char *word;
        struct slice (*make)(struct perform *p, size_t i);
    } kinds[] = {
        { "request", message_request },   { "call", message_call },
        { "notify", message_notify },     { "result", message_result },
        { "text", message_text },         { "error", message_error },
        { "progress", message_progress }, { "cancel", message_cancel },
        { "body", message_body },
    };
    const struct scene_word *w = &p->line->word[i];

    if (w->json) {
        *ret = w->value;
        return true;
    }
    for (size_t k = 0; !w->key.ptr && k < ARRAY_LEN(kinds); k++) {
        if (slice_eq(w->raw, slice_str(kinds[k].word))) {
            *ret = kinds[k].make(p, i);
            return true;
        }
    }
    return false;
}

/* The line's message and where it begins (its count without one). */
static size_t message_of(struct perform *p, size_t from, struct slice *ret)
{
    for (size_t i = from; i < p->line->count; i++) {
        if (message_at(p, i, ret))
            return i;
    }
    *ret = (struct slice){ 0 };
    return p->line->count;
}

/* ---- heads ---- */

static void add_header(struct heads *h, struct slice name, struct slice value)
{
    if (h->head.count == HEADERS_MAX || slice_eq(value, SLICE_LIT("-")))
        return;
    bool folded = value.len > 0 && memchr(value.ptr, '\n', value.len);
    h->header[h->head.count++] =
        (struct http_header){ .name = name, .value = value, .folded = folded };
}

static bool names_header(const struct scene_line *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->word[i].key.ptr && slice_eq_nocase(l->word[i].key, slice_str(name)))
            return true;
    }
    return false;
}

/* The name of the header that a key stands for; empty: none. */
static struct slice header_name(struct slice key)
{
    static const char *const table[][2] = {
        { "session", "Mcp-Session-Id" },
        { "cursor", "Last-Event-ID" },
        { "version", "MCP-Protocol-Version" },
        { "authority", "Host" },
        { "type", "Content-Type" },
        { "from", "" },
        { "to", "" },
        { "on", "" },
        { "end", "" },
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (slice_eq(key, slice_str(table[i][0])))
            return slice_str(table[i][1]);
    }
    return key;
}

static void key_headers(struct perform *p, struct heads *h, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct scene_word *w = &p->line->word[i];
        struct slice name = header_name(w->key);
        if (w->key.ptr && name.len > 0)
            add_header(h, name, w->value);
    }
}

static bool is_known(const struct scene_line *l, const char *key)
{
    return scene_key(l, key).ptr != NULL;
}

static void request_headers(struct perform *p, struct heads *h, const struct scene_session *s,
                            struct slice body)
{
    bool post = slice_eq(h->head.method, SLICE_LIT("POST"));

    if (!is_known(p->line, "authority"))
        add_header(h, SLICE_LIT("Host"),
                   s && is_known(s->line, "authority") ? scene_key(s->line, "authority")
                                                       : SLICE_LIT("mcp.example"));
    if (!names_header(p->line, "accept") && !slice_eq(h->head.method, SLICE_LIT("DELETE")))
        add_header(h, SLICE_LIT("Accept"),
                   post ? SLICE_LIT("application/json, text/event-stream")
                        : SLICE_LIT("text/event-stream"));
    if (post && !is_known(p->line, "type"))
        add_header(h, SLICE_LIT("Content-Type"), SLICE_LIT("application/json"));
    if (s && !is_known(p->line, "session"))
        add_header(h, SLICE_LIT("Mcp-Session-Id"), s->id);
    if (s && s->version.len > 0 && !is_known(p->line, "version"))
        add_header(h, SLICE_LIT("MCP-Protocol-Version"), s->version);
    if (post)
        add_header(h, SLICE_LIT("Content-Length"),
                   slice_str(arena_printf(p->sc->arena, "%zu", body.len)));
}

/* What the headers say of the body's end, and how they are written. */
static unsigned framing(const struct heads *h, bool request)
{
    const struct http_header *length = NULL;
    unsigned flags = 0;

    for (size_t i = 0; i < h->head.count; i++) {
        const struct http_header *f = &h->header[i];
        if (f->folded)
            flags |= RECF_OBS_FOLD;
        if (slice_eq_nocase(f->name, SLICE_LIT("transfer-encoding")))
            flags |= RECF_CHUNKED;
        if (!slice_eq_nocase(f->name, SLICE_LIT("content-length")))
            continue;
        if (length && !slice_eq(length->value, f->value))
            flags |= RECF_LENGTH_CONFLICT;
        length = f;
    }
    if (length)
        return flags | (flags & RECF_CHUNKED ? RECF_TE_AND_CL : RECF_LENGTH);
    return request || (flags & RECF_CHUNKED) ? flags : flags | RECF_UNTIL_CLOSE;
}

/* Sent on the connection of another exchange, which may still be open. */
static unsigned share_connection(struct perform *p, struct scene_exchange *x)
{
    struct slice on = scene_key(p->line, "on");
    const struct scene_exchange *other = on.ptr ? find(p->sc, on) : NULL;

    if (!other) {
        if (on.ptr)
            fault(p, "no such exchange", on);
        return 0;
    }
    x->conn = other->conn;
    return other->ended ? 0 : RECF_PIPELINED;
}

static void step_request(struct perform *p)
{
    const struct scene_line *l = p->line;
    struct heads h = { .head = { .method = l->word[1].value, .target = SLICE_LIT("/mcp") } };
    struct slice said = scene_key(l, "session");
    const struct scene_session *s = said.ptr ? session_find(p, said) : p->sessions;
    struct slice body;
    size_t end = message_of(p, 2, &body);

    if (find(p->sc, l->word[0].value)) {
        fault(p, "an exchange of this name is there already", l->word[0].value);
        return;
    }
    h.head.header = h.header;
    bool path = end > 2 && *l->word[2].raw.ptr == '/';
    if (path)
        h.head.target = l->word[2].raw; /* a query has equals signs, too */
    request_headers(p, &h, s, body);
    key_headers(p, &h, path ? 3 : 2, end);
    struct scene_exchange *x = open_exchange(p, l->word[0].value, s);
    x->has_request = true;
    h.head.flags = framing(&h, true) | share_connection(p, x);
    p->player->request(p->player->ctx, x, &h.head, body, p->time);
}

static bool response_begins_leg(const struct scene_line *l)
{
    return has_word(l, "sse");
}

static void auto_ack(struct perform *p, struct scene_exchange *x)
{
    if (!p->sc->noack && !has_word(p->line, "noack"))
        p->player->ack(p->player->ctx, x, p->time + 50000);
}

/* "lost-end", or the end's name. */
static enum end_kind end_of(struct slice word)
{
    for (int k = END_COMPLETE; k < END_OPEN; k++) {
        if (slice_eq(word, slice_str(end_kind_text((enum end_kind)k))))
            return (enum end_kind)k;
    }
    return END_GAP;
}

static void response_lost(struct perform *p, struct scene_exchange *x)
{
    const struct scene_response r = { .leg = true };

    x->leg = true;
    p->player->response(p->player->ctx, x, &r, p->time);
}

static void step_response(struct perform *p, struct scene_exchange *x)
{
    const struct scene_line *l = p->line;
    struct heads h = { .head.header = h.header };
    struct scene_response r = { .head = &h.head, .leg = response_begins_leg(l) };
    uint64_t status = 0;
    size_t end = message_of(p, 3, &r.body);

    if (l->count > 2 && slice_eq(l->word[2].raw, SLICE_LIT("lost"))) {
        response_lost(p, x);
        return;
    }
    if (l->count < 3 || !slice_u64(l->word[2].raw, 999, &status)) {
        fault(p, "no status", l->word[0].value);
        return;
    }
    h.head.status = (int)status;
    if (!is_known(l, "type") && (r.leg || r.body.len > 0))
        add_header(&h, SLICE_LIT("Content-Type"),
                   r.leg ? SLICE_LIT("text/event-stream") : SLICE_LIT("application/json"));
    if (!r.leg && !names_header(l, "content-length"))
        add_header(&h, SLICE_LIT("Content-Length"),
                   slice_str(arena_printf(p->sc->arena, "%zu", r.body.len)));
    if (r.leg && !names_header(l, "transfer-encoding"))
        add_header(&h, SLICE_LIT("Transfer-Encoding"), SLICE_LIT("chunked"));
    key_headers(p, &h, 3, end);
    h.head.flags = framing(&h, false);
    x->leg = r.leg;
    p->player->response(p->player->ctx, x, &r, p->time);
    if (!r.leg) {
        struct slice how = scene_key(l, "end");
        x->ended = true;
        const struct scene_end end_facts = { .kind = how.ptr ? end_of(how) : END_COMPLETE };
        p->player->end(p->player->ctx, x, &end_facts, p->time);
    }
    auto_ack(p, x);
}

/* ---- event streams ---- */

static void add(struct buf *b, const char *name, struct slice value)
{
    if (!buf_add(b, slice_str(name)) || !buf_add(b, value) || !buf_add(b, SLICE_LIT("\n")))
        abort();
}

static void send_bytes(struct perform *p, struct scene_exchange *x, struct slice data)
{
    if (!x->leg || x->ended)
        fault(p, "sends on something that is no open event stream", p->line->word[0].value);
    else
        p->player->bytes(p->player->ctx, x, data, p->time);
    auto_ack(p, x);
}

static void step_event(struct perform *p, struct scene_exchange *x)
{
    static const char *const fields[][2] = { { "id", "id: " },
                                             { "event", "event: " },
                                             { "retry", "retry: " } };
    const struct scene_line *l = p->line;
    bool prime = slice_eq(l->word[1].raw, SLICE_LIT("prime"));
    struct slice message;
    struct buf b;

    buf_init(&b, (size_t)1 << 22);
    message_of(p, 2, &message);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct slice v = scene_key(l, fields[i][0]);
        if (v.ptr)
            add(&b, fields[i][1], v);
    }
    if (is_known(l, "data"))
        add(&b, "data: ", scene_key(l, "data"));
    if (message.len > 0 || prime)
        add(&b, "data: ", message);
    add(&b, "", SLICE_LIT(""));
    send_bytes(p, x, buf_slice(&b));
    buf_release(&b);
}

static void step_comment(struct perform *p, struct scene_exchange *x)
{
    struct slice text = bare_at(p->line, 2, " ping");

    send_bytes(p, x, joined(p, ":", text, "\n\n"));
}

static void step_raw(struct perform *p, struct scene_exchange *x)
{
    send_bytes(p, x, bare_at(p->line, 2, ""));
}

static void step_ack(struct perform *p, struct scene_exchange *x)
{
    p->player->ack(p->player->ctx, x, p->time);
}

static double number_of(const struct scene_line *l, const char *key)
{
    char text[32] = "";
    struct slice v = scene_key(l, key);

    if (v.len > 0 && v.len < sizeof(text))
        memcpy(text, v.ptr, v.len);
    return strtod(text, NULL);
}

static void step_silence(struct perform *p, struct scene_exchange *x)
{
    const struct scene_line *l = p->line;
    int64_t since = SCENE_START + (int64_t)(number_of(l, "since") * 1e6 + 0.5) * 1000;
    struct silence s = {
        .since = { .time = since, .frame = 1 },
        .until = { .time = p->time },
        .ended_by_data = has_word(l, "data"),
        .window_closed = is_known(l, "window"),
        .window_ns = (int64_t)(number_of(l, "window") * 1e9),
        .retransmissions = (uint32_t)number_of(l, "resent"),
        .probes = (uint32_t)number_of(l, "probes"),
        .in_flight = (uint64_t)number_of(l, "flight"),
    };

    if (s.window_closed)
        s.window_place = (struct place){ .time = since + NS_PER_MS, .frame = 1 };
    if (s.retransmissions > 0)
        s.retransmission_place = (struct place){ .time = since + NS_PER_MS, .frame = 1 };
    p->player->silence(p->player->ctx, x, &s);
}

static void step_gap(struct perform *p, struct scene_exchange *x)
{
    struct rec_gap gap = { .dir = has_word(p->line, "request") ? DIR_CLIENT : DIR_SERVER,
                           .in_head = has_word(p->line, "head") };

    if (p->line->count > 2 && !slice_u64(p->line->word[2].raw, UINT32_MAX, &gap.bytes))
        gap.bytes = 0;
    p->player->gap(p->player->ctx, x, &gap, p->time);
}

static void step_end(struct perform *p, struct scene_exchange *x)
{
    struct slice verb = p->line->word[1].raw;
    struct scene_end e = { .kind = end_of(verb),
                           .middlebox = has_word(p->line, "middlebox"),
                           .half = has_word(p->line, "half") };

    if (x->ended) {
        fault(p, "has ended before", p->line->word[0].value);
        return;
    }
    x->half |= e.half;
    x->ended = !e.half;
    p->player->end(p->player->ctx, x, &e, p->time);
}

static bool on_exchange(struct perform *p)
{
    static const struct {
        const char *verb;
        void (*step)(struct perform *p, struct scene_exchange *x);
    } verbs[] = {
        { "<", step_response },      { "event", step_event },  { "prime", step_event },
        { "comment", step_comment }, { "raw", step_raw },      { "ack", step_ack },
        { "silence", step_silence }, { "gap", step_gap },      { "complete", step_end },
        { "fin", step_end },         { "rst", step_end },      { "client-fin", step_end },
        { "client-rst", step_end },  { "lost-end", step_end },
    };
    const struct scene_line *l = p->line;
    struct scene_exchange *x = find(p->sc, l->word[0].value);

    if (l->count < 2)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (!slice_eq(l->word[1].raw, slice_str(verbs[i].verb)))
            continue;
        if (!x && verbs[i].step == step_response)
            x = open_exchange(p, l->word[0].value, NULL);
        if (x)
            verbs[i].step(p, x);
        return x != NULL;
    }
    if (l->word[1].key.ptr)
        return false;
    for (size_t i = 0; i < l->word[1].raw.len; i++) {
        if (l->word[1].raw.ptr[i] < 'A' || l->word[1].raw.ptr[i] > 'Z')
            return false;
    }
    step_request(p);
    return true;
}

/* ---- sessions ---- */

/* A line that the scene did not write, with the name of an exchange that nobody can mean. */
static void play_line(struct perform *p, int64_t after, const char *text)
{
    struct scene *made = scene_of(slice_str(text), p->sc->path, p->sc->complain);
    const struct scene_line *before = p->line;
    struct scene_line *l = arena_alloc(p->sc->arena, sizeof(*l));

    *l = made->line[0];
    l->number = before->number;
    l->word = arena_alloc(p->sc->arena, l->count * sizeof(*l->word));
    for (size_t i = 0; i < l->count; i++) {
        const struct scene_word *w = &made->line[0].word[i];
        l->word[i] = (struct scene_word){ .raw = arena_copy(p->sc->arena, w->raw),
                                          .value = arena_copy(p->sc->arena, w->value),
                                          .json = w->json };
        if (w->key.ptr)
            l->word[i].key = arena_copy(p->sc->arena, w->key);
    }
    p->line = l;
    p->time += after;
    if (!on_exchange(p))
        fault(p, "cannot be played", slice_str(text));
    p->line = before;
    scene_free(made);
}

static struct slice info_of(struct perform *p, const char *key, const char *otherwise)
{
    struct slice v = scene_key(p->line, key);

    if (!v.ptr)
        v = slice_str(otherwise);
    const uint8_t *slash = memchr(v.ptr, '/', v.len);
    size_t n = slash ? (size_t)(slash - v.ptr) : v.len;
    return slice_str(arena_printf(
        p->sc->arena, "{\"name\":\"" SLICE_FMT "\",\"version\":\"" SLICE_FMT "\"}",
        SLICE_ARG(((struct slice){ v.ptr, n })),
        SLICE_ARG(((struct slice){ v.ptr + n + (slash ? 1 : 0), v.len - n - (slash ? 1 : 0) }))));
}

static const char *kept_keys(struct perform *p)
{
    const char *kept = "";

    for (size_t i = 0; i < p->line->count; i++) {
        const struct scene_word *w = &p->line->word[i];
        if (w->key.ptr && !slice_eq(w->key, SLICE_LIT("client")) &&
            !slice_eq(w->key, SLICE_LIT("server")))
            kept = arena_printf(p->sc->arena, "%s " SLICE_FMT, kept, SLICE_ARG(w->raw));
    }
    return kept;
}

static void step_session(struct perform *p)
{
    const struct scene_line *l = p->line;
    struct scene_session *s = arena_alloc(p->sc->arena, sizeof(*s));
    struct slice revision = bare_at(l, 2, "2025-11-25");
    struct slice id = bare_at(l, 1, "S1");
    const char *kept = kept_keys(p);
    const char *name = arena_printf(p->sc->arena, "session.%u", p->sc->connections);
    struct slice client = info_of(p, "client", "tester/1.0");
    struct slice server = info_of(p, "server", "server/1.0");

    play_line(p, 0,
              arena_printf(p->sc->arena,
                           "%s POST session=- version=-%s request 0 initialize "
                           "{\"protocolVersion\":\"" SLICE_FMT
                           "\",\"capabilities\":{},\"clientInfo\":" SLICE_FMT "}",
                           name, kept, SLICE_ARG(revision), SLICE_ARG(client)));
    play_line(p, NS_PER_MS,
              arena_printf(p->sc->arena,
                           "%s < 200 session=\"" SLICE_FMT "\" result 0 "
                           "{\"protocolVersion\":\"" SLICE_FMT
                           "\",\"capabilities\":{\"tools\":{}},\"serverInfo\":" SLICE_FMT "}",
                           name, SLICE_ARG(id), SLICE_ARG(revision), SLICE_ARG(server)));
    s->id = id;
    s->line = l;
    if (era_of(revision) == ERA_B || era_of(revision) == ERA_C)
        s->version = revision;
    s->next = p->sessions;
    p->sessions = s;
    play_line(
        p, NS_PER_MS,
        arena_printf(p->sc->arena, "%s.i POST%s notify notifications/initialized", name, kept));
    play_line(p, NS_PER_MS, arena_printf(p->sc->arena, "%s.i < 202", name));
}

/* ---- notes, settings ---- */

static void step_note(struct perform *p)
{
    static const char *const kinds[] = {
        [NOTE_STARTS_LATE] = "starts-late",
        [NOTE_TRUNCATED] = "truncated",
        [NOTE_TLS_NO_KEYS] = "tls-no-keys",
        [NOTE_TLS_LOST] = "tls-lost",
        [NOTE_UNKNOWN_CODING] = "unknown-coding",
        [NOTE_CODING_BROKEN] = "coding-broken",
        [NOTE_BODY_NOT_RECORDED] = "body-not-recorded",
        [NOTE_H2_NO_STATE] = "h2-no-state",
        [NOTE_WEBSOCKET] = "websocket",
        [NOTE_HTTP3] = "http3",
        [NOTE_OTHER_PROTOCOL] = "other-protocol",
        [NOTE_CONFLICT] = "conflict",
        [NOTE_UNSOLICITED] = "unsolicited",
        [NOTE_BAD_HTTP] = "bad-http",
        [NOTE_LIMIT] = "limit",
        [NOTE_HAR] = "har",
        [NOTE_CLOCK_STEP] = "clock-step",
    };
    struct slice of = scene_key(p->line, "of");
    struct scene_exchange *x = of.ptr ? find(p->sc, of) : NULL;
    struct rec_note n = { .count = (uint64_t)number_of(p->line, "count"),
                          .tcp_stream = x ? x->conn.tcp_stream : UINT32_MAX,
                          .text = scene_key(p->line, "text") };
    bool known = false;

    for (size_t i = 0; p->line->count > 1 && i < ARRAY_LEN(kinds); i++) {
        if (slice_eq(p->line->word[1].raw, slice_str(kinds[i]))) {
            n.kind = (enum note_kind)i;
            known = true;
        }
    }
    if (!known || (of.ptr && !x))
        fault(p, "no such note, or of nothing", p->line->word[0].value);
    else
        p->player->note(p->player->ctx, x, &n, p->time);
}

static void option(struct perform *p)
{
    struct scene *sc = p->sc;
    struct slice what = bare_at(p->line, 1, "");

    if (slice_eq(what, SLICE_LIT("strict")))
        sc->options.strict = true;
    else if (slice_eq(what, SLICE_LIT("noack")))
        sc->noack = true;
    else if (slice_eq(what, SLICE_LIT("idempotent")) && p->line->count > 2)
        scene_option_idempotent(sc, p->line->word[2].value);
    else
        fault(p, "no such option", what);
}

static void profile(struct perform *p)
{
    struct slice what = bare_at(p->line, 1, "");

    if (slice_eq(what, SLICE_LIT("all")))
        p->sc->profiles = PROFILE_DIVERGENCE | PROFILE_CONFORMANCE;
    else if (slice_eq(what, SLICE_LIT("conformance")))
        p->sc->profiles = PROFILE_CONFORMANCE;
    else if (!slice_eq(what, SLICE_LIT("divergence")))
        fault(p, "no such profile", what);
}

/* ---- the log ---- */

static void log_add(struct scene *sc, struct slice s)
{
    if (!buf_add(&sc->log_text, s))
        abort();
}

static bool is_number(struct slice s)
{
    size_t i = s.len > 1 && *s.ptr == '-' ? 1 : 0;

    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return s.len > 0;
}

static struct slice log_members(struct perform *p, size_t end)
{
    struct slice id = bare_at(p->line, 2, "-");
    const char *text = arena_printf(p->sc->arena, "{\"state\":\"" SLICE_FMT "\"",
                                    SLICE_ARG(bare_at(p->line, 1, "")));

    if (!slice_eq(id, SLICE_LIT("-")))
        text = arena_printf(p->sc->arena, "%s,\"event_id\":\"" SLICE_FMT "\"", text, SLICE_ARG(id));
    for (size_t i = 3; i < end; i++) {
        const struct scene_word *w = &p->line->word[i];
        struct slice raw = { w->raw.ptr + w->key.len + 1, w->raw.len - w->key.len - 1 };
        bool bare = is_number(w->value) || *raw.ptr == '"' || slice_eq(raw, SLICE_LIT("null"));
        if (!w->key.ptr) {
            fault(p, "not KEY=VALUE", w->raw);
            continue;
        }
        text = arena_printf(p->sc->arena,
                            bare ? "%s,\"" SLICE_FMT "\":" SLICE_FMT
                                 : "%s,\"" SLICE_FMT "\":\"" SLICE_FMT "\"",
                            text, SLICE_ARG(w->key), SLICE_ARG(raw));
    }
    struct slice message;
    if (end < p->line->count && message_at(p, end, &message))
        text = arena_printf(p->sc->arena, "%s,\"digest\":\"xxh3:%016llx\"", text,
                            (unsigned long long)hash_bytes(message));
    return joined(p, "", slice_str(text), "}");
}

static void step_log(struct perform *p, int64_t ahead)
{
    char when[TIME_TEXT];
    struct slice message;
    struct slice line;

    if (p->line->count > 1 && p->line->word[1].json)
        line = p->line->word[1].value;
    else
        line = log_members(p, message_of(p, 3, &message));
    if (p->line->timed && line.len > 1)
        line = slice_str(arena_printf(p->sc->arena, "{\"ts\":\"%s\"," SLICE_FMT,
                                      time_text(p->line->time + ahead, when),
                                      SLICE_ARG(((struct slice){ line.ptr + 1, line.len - 1 }))));
    log_add(p->sc, line);
    log_add(p->sc, SLICE_LIT("\n"));
}

/* Settings and the log: known before the first step is played. */
static void set_up(struct perform *p, int64_t *ahead)
{
    struct slice first = p->line->word[0].raw;

    if (slice_eq(first, SLICE_LIT("profile")))
        profile(p);
    else if (slice_eq(first, SLICE_LIT("option")))
        option(p);
    else if (slice_eq(first, SLICE_LIT("cut")))
        p->sc->truncated = true;
    else if (slice_eq(first, SLICE_LIT("log")))
        step_log(p, *ahead);
    else if (slice_eq(first, SLICE_LIT("log-clock")))
        *ahead = (int64_t)(strtod(arena_str(p->sc->arena, bare_at(p->line, 1, "0")), NULL) * 1e9);
}

void scene_set_up(struct scene *sc)
{
    struct perform p = { .sc = sc };
    int64_t ahead = 0;

    for (size_t i = 0; i < sc->count; i++) {
        p.line = &sc->line[i];
        set_up(&p, &ahead);
    }
}

static bool is_set_up(const struct scene_line *l)
{
    static const char *const words[] = { "profile",   "option", "cut",   "log", "forbid",
                                         "log-clock", "expect", "allow", NULL };

    for (size_t i = 0; words[i]; i++) {
        if (slice_eq(l->word[0].raw, slice_str(words[i])))
            return true;
    }
    return slice_starts(l->word[0].raw, SLICE_LIT("expect-"));
}

void scene_perform(struct scene *sc, const struct scene_player *player)
{
    struct perform p = { .sc = sc, .player = player, .time = SCENE_START };

    for (size_t i = 0; i < sc->count; i++) {
        p.line = &sc->line[i];
        if (is_set_up(p.line))
            continue;
        p.time = p.line->time;
        if (slice_eq(p.line->word[0].raw, SLICE_LIT("session")))
            step_session(&p);
        else if (slice_eq(p.line->word[0].raw, SLICE_LIT("note")))
            step_note(&p);
        else if (!on_exchange(&p))
            fault(&p, "nothing that a scene can say", p.line->word[0].raw);
    }
    player->finish(player->ctx, sc->truncated, p.time);
}
