/* scene_play.c - see scene.h: a scene through exchange.c, the model and the rules. */
#include "scene_parts.h"

#include "bodies.h"
#include "exchange.h"
#include "log_of.h"

#include <stdlib.h>

struct play {
    struct scene *sc;
    struct exchanges *all;
    uint32_t frame;
};

/* What this player keeps of one exchange. */
struct playing {
    struct exchange *x; /* NULL: ended */
    uint64_t serial;
    uint64_t sent; /* bytes of the server */
    bool answered;
};

static struct place place_at(struct play *p, int64_t t)
{
    return (struct place){ .time = t, .frame = ++p->frame };
}

static void response_body(struct exchange *x, struct slice data, struct place at, uint64_t end)
{
    exchange_response_body(x, &(struct piece){ .data = data, .at = at, .tcp_end = end });
}

static void play_request(void *ctx, struct scene_exchange *x, const struct http_head *head,
                         struct slice body, int64_t t)
{
    struct play *p = ctx;
    struct playing *o = arena_alloc(p->sc->arena, sizeof(*o));
    struct http_head h = *head;

    h.first = h.last = place_at(p, t);
    x->play = o;
    x->conn.first = h.first;
    o->x = exchange_open(p->all, &x->conn, x->conn.tcp_stream + 1);
    o->serial = exchange_serial(o->x);
    if (x->conn.starts_late)
        exchanges_note(
            p->all, o->serial,
            (struct rec_note){ NOTE_STARTS_LATE, 1, x->conn.tcp_stream, (struct slice){ 0 } },
            h.first);
    exchange_request_head(o->x, &h);
    if (body.len > 0)
        exchange_request_body(o->x, &(struct piece){ .data = body, .at = h.last });
    exchange_request_end(o->x, true, h.last);
}

static void play_response(void *ctx, struct scene_exchange *x, const struct scene_response *r,
                          int64_t t)
{
    struct play *p = ctx;
    struct playing *o = x->play;
    struct place at = place_at(p, t);

    if (!o) { /* the capture began after its request */
        o = x->play = arena_alloc(p->sc->arena, sizeof(*o));
        x->conn.starts_late = true;
        o->x = exchange_open(p->all, &x->conn, x->conn.tcp_stream + 1);
        o->serial = exchange_serial(o->x);
        exchanges_note(
            p->all, o->serial,
            (struct rec_note){ NOTE_STARTS_LATE, 1, x->conn.tcp_stream, (struct slice){ 0 } }, at);
    }
    o->sent += 200;
    o->answered = true;
    if (!r->head) {
        exchange_response_head(o->x, NULL, at);
        return;
    }
    struct http_head h = *r->head;
    h.first = h.last = at;
    h.tcp_end = o->sent;
    exchange_response_head(o->x, &h, at);
    if (r->body.len == 0)
        return;
    o->sent += r->body.len;
    response_body(o->x, r->body, at, o->sent);
}

static void play_bytes(void *ctx, struct scene_exchange *x, struct slice data, int64_t t)
{
    struct play *p = ctx;
    struct playing *o = x->play;

    o->sent += data.len;
    response_body(o->x, data, place_at(p, t), o->sent);
}

static void play_ack(void *ctx, struct scene_exchange *x, int64_t t)
{
    struct play *p = ctx;
    struct playing *o = x->play;
    struct place at = place_at(p, t);

    if (!o)
        return;
    if (o->x)
        exchange_ack(o->x, o->sent, at);
    else
        exchanges_late_ack(p->all, o->serial, o->sent, at);
}

static void play_silence(void *ctx, struct scene_exchange *x, const struct silence *s)
{
    struct play *p = ctx;
    struct playing *o = x->play;
    struct silence copy = *s;

    copy.since.frame = copy.window_place.frame = copy.retransmission_place.frame = p->frame;
    copy.until = place_at(p, s->until.time);
    if (o && o->x)
        exchange_silence(o->x, &copy);
}

static void play_gap(void *ctx, struct scene_exchange *x, const struct rec_gap *gap, int64_t t)
{
    struct play *p = ctx;
    struct playing *o = x->play;
    struct place at = place_at(p, t);

    if (!o || !o->x)
        return;
    if (gap->dir == DIR_CLIENT) {
        exchange_request_gap(o->x, gap->bytes, gap->in_head, at);
        return;
    }
    o->sent += gap->bytes;
    exchange_response_gap(o->x, gap->bytes, gap->in_head, at);
}

static void play_note(void *ctx, struct scene_exchange *x, const struct rec_note *note, int64_t t)
{
    struct play *p = ctx;
    const struct playing *o = x ? x->play : NULL;

    exchanges_note(p->all, o ? o->serial : 0, *note, place_at(p, t));
}

static void end_now(struct scene_exchange *x, const struct exchange_end_facts *facts,
                    struct place at)
{
    struct playing *o = x->play;

    if (!o || !o->x)
        return;
    exchange_end(MOVE(o->x), facts, at);
}

static void play_end(void *ctx, struct scene_exchange *x, const struct scene_end *end, int64_t t)
{
    struct play *p = ctx;
    struct place at = place_at(p, t);
    struct exchange_end_facts facts = { .kind = end->kind, .middlebox = end->middlebox };

    if (end->half) {
        x->half_at = at;
        return;
    }
    if (x->half && end->kind != END_COMPLETE && end->kind != END_CLIENT_RST) {
        facts.kind = END_CLIENT_FIN;
        at = x->half_at;
    }
    end_now(x, &facts, at);
}

static struct scene_exchange *oldest_open(const struct scene *sc)
{
    struct scene_exchange *best = NULL;

    for (struct scene_exchange *x = sc->exchange; x; x = x->next) {
        const struct playing *o = x->play;
        if (o && o->x)
            best = x; /* newest first in the list */
    }
    return best;
}

static void play_finish(void *ctx, bool truncated, int64_t t)
{
    struct play *p = ctx;
    struct scene_exchange *x;
    struct place end = { .time = t, .frame = p->frame };

    while ((x = oldest_open(p->sc))) {
        const struct exchange_end_facts open = { .kind = END_OPEN, .truncated_capture = truncated };
        const struct exchange_end_facts closed = { .kind = END_CLIENT_FIN };
        end_now(x, x->half ? &closed : &open, x->half ? x->half_at : end);
    }
    if (truncated)
        exchanges_note(p->all, 0,
                       (struct rec_note){ NOTE_TRUNCATED, 1, UINT32_MAX, (struct slice){ 0 } },
                       end);
}

static void to_model(void *ctx, struct record *rec)
{
    model_feed(ctx, rec);
}

void scene_option_idempotent(struct scene *sc, struct slice tool)
{
    size_t n = sc->options.idempotent_count;
    const char **all = arena_alloc(sc->arena, (n + 1) * sizeof(*all));

    for (size_t i = 0; i < n; i++)
        all[i] = sc->options.idempotent[i];
    all[n] = arena_str(sc->arena, tool);
    sc->options.idempotent = all;
    sc->options.idempotent_count = n + 1;
}

static void read_log(struct scene *sc)
{
    if (sc->log_text.len == 0)
        return;
    sc->log = dispatch_log_new();
    if (!log_of(sc->log, buf_slice(&sc->log_text)))
        scene_fault(sc, NULL, "its log is no dispatch log");
    for (size_t i = 0; i < sc->log->fault_count; i++)
        scene_fault(sc, NULL, "line %u of its log: " SLICE_FMT, sc->log->fault[i].line,
                    SLICE_ARG(sc->log->fault[i].what));
}

static bool has_digests(const struct dispatch_log *log)
{
    for (size_t i = 0; log && i < log->count; i++) {
        if (log->entry[i].digest != LOG_DIGEST_NONE)
            return true;
    }
    return false;
}

void scene_play(struct scene *sc)
{
    struct play p = { .sc = sc };
    const struct scene_player player = {
        .ctx = &p,
        .request = play_request,
        .response = play_response,
        .bytes = play_bytes,
        .ack = play_ack,
        .silence = play_silence,
        .gap = play_gap,
        .note = play_note,
        .end = play_end,
        .finish = play_finish,
    };

    scene_set_up(sc);
    read_log(sc);
    sc->model = model_new(&sc->options, sc->log);
    struct bodies *bodies = bodies_new((struct record_sink){ .put = to_model, .ctx = sc->model });
    p.all = exchanges_new(bodies_sink(bodies), &exchange_limits_default);
    if (has_digests(sc->log))
        bodies_want_digests(bodies, sc->log->wants_sha256);
    scene_perform(sc, &player);
    model_finish(sc->model, sc->truncated);
    sc->found = rules_run(sc->model, sc->profiles, &thresholds_default);
    exchanges_free(p.all);
    bodies_free(bodies);
}
