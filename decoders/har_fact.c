/* har_fact.c - tells an exchange what an entry of a HAR holds, fact by fact (har_entry.h). */
#include "har_entry.h"
#include "har_text.h"
#include "sse.h"

#include <arpa/inet.h>
#include <stdlib.h>

static struct place place_at(const struct har_entry *e, int64_t time)
{
    return (struct place){ .time = time, .frame = e->number, .input = e->ctx->input };
}

/* ---- URL and addresses ---- */

struct url {
    bool tls;
    struct slice authority; /* host[:port], without user and password */
    struct slice host;      /* without the brackets of IPv6 */
    uint16_t port;
    struct slice target; /* path and query */
};

/* Bytes before the first of `any`. */
static size_t span_until(struct slice s, const char *any)
{
    size_t n = 0;

    while (n < s.len && (s.ptr[n] == '\0' || !strchr(any, s.ptr[n])))
        n++;
    return n;
}

static struct slice without_brackets(struct slice s)
{
    if (s.len < 2 || s.ptr[0] != '[')
        return s;
    s.ptr++;
    s.len--;
    s.len = span_until(s, "]");
    return s;
}

static void url_port(struct url *u)
{
    struct slice rest = u->authority;
    struct slice host = u->authority;
    uint64_t port;

    if (rest.len > 0 && rest.ptr[0] == '[')
        host.len = span_until(rest, "]") < rest.len ? span_until(rest, "]") + 1 : rest.len;
    else
        host.len = span_until(rest, ":");
    u->host = without_brackets(host);
    rest.ptr += host.len;
    rest.len -= host.len;
    u->port = u->tls ? 443 : 80;
    if (rest.len > 1 && rest.ptr[0] == ':' &&
        slice_u64((struct slice){ rest.ptr + 1, rest.len - 1 }, UINT16_MAX, &port))
        u->port = (uint16_t)port;
}

static struct url url_of(struct slice s)
{
    struct url u = { .target = SLICE_LIT("/") };
    size_t scheme = span_until(s, ":/?#");

    s.len = span_until(s, "#");
    if (!s.ptr || s.len < scheme + 3 || memcmp(s.ptr + scheme, "://", 3) != 0) {
        u.target = s;
        return u;
    }
    struct slice name = { s.ptr, scheme };
    u.tls = slice_eq_nocase(name, SLICE_LIT("https")) || slice_eq_nocase(name, SLICE_LIT("wss"));
    s.ptr += scheme + 3;
    s.len -= scheme + 3;
    u.authority = (struct slice){ s.ptr, span_until(s, "/?") };
    size_t user = span_until(u.authority, "@");
    if (s.len > u.authority.len)
        u.target = (struct slice){ s.ptr + u.authority.len, s.len - u.authority.len };
    if (user < u.authority.len) {
        u.authority.ptr += user + 1;
        u.authority.len -= user + 1;
    }
    url_port(&u);
    if (slice_eq_nocase(name, SLICE_LIT("mcp")))
        u.target = SLICE_LIT("/"); /* mcpsnoop puts method and tool there: no endpoint */
    return u;
}

static bool address_of(struct slice s, uint8_t ret[static 16])
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;

    s = without_brackets(s);
    s.len = span_until(s, "%"); /* scope of a link-local address */
    if (!s.ptr || s.len == 0 || s.len >= sizeof(text))
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (inet_pton(AF_INET6, text, ret) == 1)
        return true;
    if (inet_pton(AF_INET, text, &v4) != 1)
        return false;
    memset(ret, 0, 10);
    ret[10] = ret[11] = 0xff;
    memcpy(ret + 12, &v4, 4);
    return true;
}

static void conn_fill(const struct har_entry *e, const struct url *u, struct conn *ret)
{
    static const struct endpoint unknown = { .addr = { [10] = 0xff, [11] = 0xff } };

    *ret = (struct conn){
        .client = unknown,
        .server = unknown,
        .tcp_stream = UINT32_MAX,
        .input = e->ctx->input,
        .tls = u->tls,
        .first = place_at(e, e->start),
    };
    ret->server.port = u->port;
    if (!address_of(har_string(e->root, "serverIPAddress"), ret->server.addr) &&
        !address_of(u->host, ret->server.addr))
        ret->server = (struct endpoint){ .addr = { [10] = 0xff, [11] = 0xff }, .port = u->port };
}

/* `connection` is no connection in Chrome and Firefox (the server's port): HAR.md 6.7. Bit 63 keeps
 * the numbers apart from those of TCP connections. */
static uint64_t conn_serial(const struct har_entry *e)
{
    struct slice id = har_string(e->root, "_connectionId");
    uint64_t serial = (uint64_t)e->ctx->input << 32 | e->number;

    if (id.len > 0)
        serial = hash_mix(hash_bytes(id), e->ctx->input) >> 2 | UINT64_C(1) << 62;
    return serial | UINT64_C(1) << 63;
}

/* ---- headers ---- */

struct header_list {
    struct http_header *item;
    size_t count;
    size_t cap;
    bool coded; /* the length told is not that of the decoded body */
};

static void list_release(struct header_list *l)
{
    free(l->item);
}

/* Bodies in a HAR are decoded: what told the coding on the wire would mislead. */
static bool misleads(const struct header_list *l, struct slice name)
{
    return slice_eq_nocase(name, SLICE_LIT("content-encoding")) ||
           slice_eq_nocase(name, SLICE_LIT("transfer-encoding")) ||
           (l->coded && slice_eq_nocase(name, SLICE_LIT("content-length")));
}

/* Chrome and Firefox join the lines of a repeated header with a line feed. */
static void list_add(struct header_list *l, struct slice name, struct slice value)
{
    if (name.len == 0 || name.ptr[0] == ':' || !value.ptr || misleads(l, name))
        return;
    for (;;) {
        struct slice line = { value.ptr, span_until(value, "\r\n") };
        GROW(l->item, l->count, l->cap);
        l->item[l->count++] = (struct http_header){ .name = name, .value = slice_trim(line) };
        value.ptr += line.len;
        value.len -= line.len;
        if (value.len == 0)
            return;
        value.ptr++;
        value.len--;
    }
}

static void list_fill(struct header_list *l, const json_t *message)
{
    json_t *headers = json_object_get(message, "headers");
    size_t n = json_array_size(headers);
    const char *key;
    json_t *v;

    l->coded = har_header(message, SLICE_LIT("content-encoding")).len > 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *h = json_array_get(headers, i);
        list_add(l, har_string(h, "name"), har_string(h, "value"));
    }
    json_object_foreach (headers, key, v) { /* of an object; nothing for a list */
        if (json_is_string(v))
            list_add(
                l, slice_str(key),
                (struct slice){ (const uint8_t *)json_string_value(v), json_string_length(v) });
    }
}

/* The content type that only the body's description knows. */
static void list_type(struct header_list *l, const json_t *message, struct slice mime)
{
    struct slice name = SLICE_LIT("content-type");

    if (!har_header(message, name).ptr && mime.len > 0 &&
        !slice_has_nocase(mime, SLICE_LIT("unknown")))
        list_add(l, name, mime);
}

static unsigned version_flags(const json_t *message)
{
    struct slice v = har_string(message, "httpVersion");
    struct slice front = { v.ptr, v.len < 6 ? v.len : 6 };

    return RECF_HAR |
           (slice_eq_nocase(v, SLICE_LIT("h2")) || slice_eq_nocase(front, SLICE_LIT("http/2"))
                ? RECF_HTTP2
                : 0U);
}

/* ---- the facts ---- */

static void tell(const struct har_entry *e, const struct har_leg *leg, enum note_kind kind,
                 const char *text)
{
    exchanges_note(leg->all, leg->x ? exchange_serial(leg->x) : 0,
                   (struct rec_note){ kind, 1, UINT32_MAX, slice_str(text) },
                   place_at(e, e->start));
}

static void tell_notes(const struct har_entry *e, const struct har_leg *leg)
{
    for (size_t i = 0; i < e->note_count; i++)
        tell(e, leg, NOTE_HAR, e->note[i]);
    if (e->repaired > 0)
        exchanges_note(
            leg->all, exchange_serial(leg->x),
            (struct rec_note){ NOTE_HAR, e->repaired, UINT32_MAX,
                               SLICE_LIT("lone surrogates or invalid bytes replaced by U+FFFD") },
            place_at(e, e->start));
}

static void request_body(const struct har_entry *e, struct exchange *x)
{
    const json_t *post = json_object_get(e->request, "postData");
    struct slice text = har_string(post, "text");
    struct place at = place_at(e, e->start);
    bool whole = true;
    uint8_t *bytes = NULL;
    double size = 0;
    size_t len;

    if (slice_eq_nocase(har_string(post, "encoding"), SLICE_LIT("base64"))) {
        whole = har_base64(text, &bytes, &len);
        text = whole ? (struct slice){ bytes, len } : (struct slice){ 0 };
    }
    if (!har_number(e->request, "bodySize", &size) || size < 0)
        size = slice_eq(har_string(e->request, "method"), SLICE_LIT("POST"));
    if (text.len > 0)
        exchange_request_body(x, &(struct piece){ .data = text, .at = at });
    else
        whole = whole && size == 0;
    if (!whole)
        exchange_request_gap(x, 0, false, at);
    exchange_request_end(x, whole, at);
    free(bytes);
}

static void request_fact(const struct har_entry *e, struct har_leg *leg)
{
    AUTO(list_release) struct header_list list = { 0 };
    struct url u = url_of(har_string(e->request, "url"));
    struct slice authority = har_header(e->request, SLICE_LIT(":authority"));
    struct place at = place_at(e, e->start);

    conn_fill(e, &u, &leg->conn);
    leg->x = exchange_open(leg->all, &leg->conn, conn_serial(e));
    list_fill(&list, e->request);
    list_type(&list, e->request, har_string(json_object_get(e->request, "postData"), "mimeType"));
    if (authority.len == 0 && har_header(e->request, SLICE_LIT("host")).len == 0)
        authority = u.authority;
    struct http_head head = {
        .method = har_string(e->request, "method"),
        .target = u.target,
        .authority = authority,
        .header = list.item,
        .count = list.count,
        .flags = version_flags(e->request),
        .first = at,
        .last = at,
    };
    exchange_request_head(leg->x, &head);
    request_body(e, leg->x);
    tell_notes(e, leg);
}

/*
 * DevTools writes the last event id as it stands after a message: an id that repeats the one before
 * was not in the event. On an EventSource that was opened again it starts from the cursor.
 */
static bool has_own_id(const struct har_entry *e, size_t i)
{
    struct slice id = har_string(json_array_get(e->messages, i), "eventId");
    struct slice before = SLICE_LIT("");
    struct slice cursor = har_header(e->request, SLICE_LIT("last-event-id"));
    size_t last = json_array_size(e->messages) - 1;

    if (i > 0)
        before = har_string(json_array_get(e->messages, i - 1), "eventId");
    if (!id.ptr || slice_eq(id, before))
        return false;
    if (i > 0 || !slice_eq(har_string(e->root, "_resourceType"), SLICE_LIT("eventsource")))
        return true;
    /* the stream has no ids at all, or its first event repeats the cursor: the last one tells */
    return !slice_eq(id, cursor) ||
           (last > 0 && !slice_eq(har_string(json_array_get(e->messages, last), "eventId"), id));
}

/* Bytes of a message on the wire, written as servers do. */
static double wire_size(const struct har_entry *e, size_t i, bool names, size_t line_end)
{
    const json_t *msg = json_array_get(e->messages, i);
    struct slice data = har_string(msg, "data");
    struct slice name = har_string(msg, "eventName");
    size_t lines = 1;
    size_t n = line_end;

    for (size_t k = 0; k < data.len; k++)
        lines += data.ptr[k] == '\n';
    n += data.len - (lines - 1) + lines * (strlen("data: ") + line_end);
    if (has_own_id(e, i))
        n += strlen("id: ") + har_string(msg, "eventId").len + line_end;
    if (names || !slice_eq(name, SLICE_LIT("message")))
        n += strlen("event: ") + name.len + line_end;
    return (double)n;
}

/* Messages alone do not show ids without data, nor what a cut left of an event; their size does
 * tell that there was nothing else. */
static bool har_messages_are_all(const struct har_entry *e)
{
    double size;

    if (e->source != HAR_BODY_MESSAGES)
        return true;
    if (!har_number(e->content, "size", &size))
        return false;
    for (unsigned form = 0; form < 4; form++) {
        double sum = 0;
        for (size_t i = 0; i < json_array_size(e->messages); i++)
            sum += wire_size(e, i, form & 1, form & 2 ? 2 : 1);
        if (sum == size)
            return true;
    }
    return false;
}

static void head_fact(const struct har_entry *e, struct har_leg *leg)
{
    AUTO(list_release) struct header_list list = { 0 };
    struct place at = place_at(e, e->head);

    list_fill(&list, e->response);
    list_type(&list, e->response, har_string(e->content, "mimeType"));
    struct http_head head = {
        .status = e->status,
        .header = list.item,
        .count = list.count,
        .flags = version_flags(e->response) | (e->recorded ? 0U : RECF_NO_BODY_RECORDED) |
                 (har_messages_are_all(e) ? 0U : RECF_IDS_PARTIAL),
        .first = at,
        .last = at,
    };
    exchange_response_head(leg->x, &head, at);
    if (!e->recorded)
        exchanges_note(
            leg->all, exchange_serial(leg->x),
            (struct rec_note){ NOTE_BODY_NOT_RECORDED, 1, UINT32_MAX, slice_str(e->ctx->producer) },
            at);
}

static void message_fact(const struct har_entry *e, const struct har_piece *p, struct place at,
                         struct har_leg *leg)
{
    const json_t *msg = json_array_get(e->messages, p->upto);
    struct slice name = har_string(msg, "eventName");
    struct slice data = har_string(msg, "data");
    struct sse_item item = { .kind = SSE_BLOCK, .has_data = true, .retry = -1 };

    item.has_id = has_own_id(e, p->upto);
    if (item.has_id)
        item.id = har_string(msg, "eventId");
    if (!slice_eq(name, SLICE_LIT("message")))
        item.event = name;
    item.data = data.ptr ? data : SLICE_LIT("");
    exchange_response_event(leg->x, &item, at, e->no_time, !data.ptr);
}

static void piece_fact(const struct har_entry *e, size_t i, int64_t now, struct har_leg *leg)
{
    const struct har_piece *p = &e->piece[i];
    struct place at = place_at(e, now);
    size_t begin = i > 0 ? e->piece[i - 1].upto : 0;

    if (e->source == HAR_BODY_MESSAGES) {
        message_fact(e, p, at, leg);
        return;
    }
    exchange_response_body(leg->x,
                           &(struct piece){ .data = { e->text.ptr + begin, p->upto - begin },
                                            .at = at,
                                            .no_time = e->no_time });
}

static void end_fact(const struct har_entry *e, int64_t now, struct har_leg *leg)
{
    struct place at = place_at(e, now);

    if (e->cut_short)
        exchange_response_gap(leg->x, 0, false, at);
    exchange_end(MOVE(leg->x), &e->facts, at);
}

void har_fact(const struct har_entry *e, size_t fact, int64_t now, struct har_leg *leg)
{
    if (e->scope == HAR_SCOPE_WEBSOCKET)
        tell(e, leg, NOTE_WEBSOCKET, "");
    else if (e->scope == HAR_SCOPE_NO_ENVELOPE)
        return; /* har.c counts them */
    else if (fact == 0)
        request_fact(e, leg);
    else if (fact + 1 >= e->fact_count)
        end_fact(e, now, leg);
    else if (fact == 1)
        head_fact(e, leg);
    else
        piece_fact(e, fact - 2, now, leg);
}
