/*
 * fuzz_h2.c - any bytes as an HTTP/2 connection, with gaps, silences and closes. Property: however
 * the bytes are cut, the observer says the same, and ends every exchange it has begun.
 *
 * Input: how to cut, whether joined late, then op, length, bytes. op & 1: direction; op >> 1: data
 * (mostly), gap, acknowledgement, silence, close.
 */
#include "h2.h"

#include <stdlib.h>

#include "exchange_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
    struct layer h2;
    uint64_t offset[2];
    size_t step;
    struct place at;
};

static void run_data(struct run *r, enum dir dir, struct slice bytes)
{
    struct slice part;

    while (bytes.len > 0 && slice_take(&bytes, r->step < bytes.len ? r->step : bytes.len, &part)) {
        r->offset[dir] += part.len;
        r->h2.ops->data(r->h2.self, dir,
                        &(struct piece){ .data = part, .at = r->at, .tcp_end = r->offset[dir] });
    }
}

static void run_op(struct run *r, uint8_t op, struct slice bytes)
{
    enum dir dir = op & 1 ? DIR_SERVER : DIR_CLIENT;
    struct silence silence = { .since = r->at, .until = r->at, .retransmissions = op };

    r->at.frame++;
    r->at.time += (op >> 4) * NS_PER_SEC / 50;
    switch (op >> 1 & 7) {
    case 4:
        r->offset[dir] += bytes.len;
        r->h2.ops->gap(r->h2.self, dir, op & 16 ? 0 : bytes.len, r->at);
        break;
    case 5: r->h2.ops->ack(r->h2.self, dir, r->offset[dir], r->at); break;
    case 6: r->h2.ops->silence(r->h2.self, dir, &silence); break;
    case 7: r->h2.ops->close(r->h2.self, dir, op & 16 ? CLOSE_RST : CLOSE_FIN, r->at); break;
    default: run_data(r, dir, bytes); break;
    }
}

/* What is said of it, to be freed. */
static char *said(struct slice input, size_t step, bool late)
{
    struct exchanges *all = exchanges_new((struct record_sink){ 0 }, NULL);
    struct conn conn = { .starts_late = late };
    struct run r = { .h2 = h2_new(all, &conn, 1, NULL), .step = step, .at.time = NS_PER_SEC };
    struct slice bytes;
    uint16_t len;
    uint8_t op;

    while (slice_u8(&input, &op) && slice_be16(&input, &len)) {
        if (!slice_take(&input, len < input.len ? len : input.len, &bytes))
            break;
        run_op(&r, op, bytes);
    }
    r.h2.ops->finish(r.h2.self, r.at);
    if (all->open != 0)
        abort();
    char *text = mem_dup(slice_str(exchange_log_text(all)));
    exchanges_free(all);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = { data, size };
    uint8_t cut;
    uint8_t late;

    if (!slice_u8(&input, &cut) || !slice_u8(&input, &late))
        return 0;
    char *whole = said(input, SIZE_MAX, late & 1);
    char *pieces = said(input, (size_t)1 + cut % 31, late & 1);
    if (strcmp(whole, pieces) != 0)
        abort();
    free(whole);
    free(pieces);
    return 0;
}
