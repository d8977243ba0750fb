/*
 * fuzz_h1.c - however the bytes are cut, h1 says the same; and every exchange it opens it ends.
 *
 * Input: one byte of options, then steps: a byte of kind, a byte of length, and so many bytes.
 * Behind an error, a gap or a late join the start of a piece counts as a place where a message may
 * start, so there only the ends are checked.
 */
#include "h1.h"

#include "exchange_log.h"

enum step {
    STEP_CLIENT,
    STEP_SERVER,
    STEP_GAP_CLIENT,
    STEP_GAP_SERVER,
    STEP_ACK,
    STEP_FIN,
    STEP_RST,
    STEP_KINDS,
};

struct fuzz_run {
    struct layer layer;
    uint64_t offset[2];
    uint32_t frame;
    bool exact; /* nothing that makes pieces matter */
};

static void send(struct fuzz_run *r, enum dir dir, struct slice data, size_t cut)
{
    struct slice part;

    while (data.len > 0 && slice_take(&data, cut < data.len ? cut : data.len, &part)) {
        uint8_t *own = (uint8_t *)mem_dup(part);
        r->offset[dir] += part.len;
        r->layer.ops->data(r->layer.self, dir,
                           &(struct piece){ .data = { own, part.len },
                                            .at = { .frame = r->frame },
                                            .tcp_end = r->offset[dir] });
        free(own);
    }
}

static void gap(struct fuzz_run *r, enum dir dir, struct slice arg)
{
    uint64_t len = arg.len > 0 ? arg.ptr[0] : 0;

    r->exact = false;
    r->offset[dir] += len;
    r->layer.ops->gap(r->layer.self, dir, len, (struct place){ .frame = r->frame });
}

static void step(struct fuzz_run *r, enum step kind, struct slice arg, size_t cut)
{
    const struct place at = { .frame = ++r->frame };
    enum dir dir = arg.len % 2 ? DIR_SERVER : DIR_CLIENT;

    switch (kind) {
    case STEP_CLIENT: send(r, DIR_CLIENT, arg, cut); break;
    case STEP_SERVER: send(r, DIR_SERVER, arg, cut); break;
    case STEP_GAP_CLIENT: gap(r, DIR_CLIENT, arg); break;
    case STEP_GAP_SERVER: gap(r, DIR_SERVER, arg); break;
    case STEP_ACK: r->layer.ops->ack(r->layer.self, dir, r->offset[dir] - arg.len, at); break;
    case STEP_FIN: r->layer.ops->close(r->layer.self, dir, CLOSE_FIN, at); break;
    case STEP_RST: r->layer.ops->close(r->layer.self, dir, CLOSE_RST, at); break;
    case STEP_KINDS: break;
    }
}

static bool run(struct exchanges *log, struct slice input, size_t cut)
{
    const struct h1_upgrade none = { 0 };
    struct conn conn = { 0 };
    struct fuzz_run r = { .exact = true };
    struct slice arg;
    uint8_t options;
    uint8_t kind;
    uint8_t len;

    if (!slice_u8(&input, &options))
        return false;
    conn.starts_late = options & 1;
    r.exact = !conn.starts_late;
    r.layer = h1_new(log, &conn, 1, none);
    while (slice_u8(&input, &kind) && slice_u8(&input, &len)) {
        if (slice_take(&input, len < input.len ? len : input.len, &arg))
            step(&r, kind % STEP_KINDS, arg, cut);
    }
    r.layer.ops->finish(r.layer.self, (struct place){ .frame = ++r.frame });
    return r.exact;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exchanges *whole = exchanges_new((struct record_sink){ 0 }, NULL);
    struct exchanges *parts = exchanges_new((struct record_sink){ 0 }, NULL);
    size_t cut = size > 0 ? data[0] / 2 % 16 + 1 : 1;

    bool exact = run(whole, (struct slice){ data, size }, SIZE_MAX);
    run(parts, (struct slice){ data, size }, cut);
    if (whole->open != 0 || parts->open != 0)
        abort();
    const char *text = exchange_log_text(whole);
    if (exact && !strstr(text, "note: ") && strcmp(text, exchange_log_text(parts)) != 0) {
        fprintf(stderr, "whole:\n%s\ncut at %zu:\n%s\n", text, cut, exchange_log_text(parts));
        abort();
    }
    exchanges_free(whole);
    exchanges_free(parts);
    return 0;
}
