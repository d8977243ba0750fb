/* h2_frame.c - see h2_frame.h. */
#include "h2_frame.h"

#define CHAIN_PROOF 3 /* headers in a row that fit are no accident */

enum scope { SCOPE_STREAM, SCOPE_CONNECTION, SCOPE_ANY };

struct shape {
    uint32_t min_len;
    uint32_t max_len;
    uint8_t flags; /* defined ones */
    enum scope scope;
};

/* RFC 9113 6 */
static const struct shape shapes[] = {
    [H2_DATA] = { 0, H2_FRAME_ANY, H2_END_STREAM | H2_PADDED, SCOPE_STREAM },
    [H2_HEADERS] = { 1, H2_FRAME_ANY, H2_END_STREAM | H2_END_HEADERS | H2_PADDED | H2_HAS_PRIORITY,
                     SCOPE_STREAM },
    [H2_PRIORITY] = { 5, 5, 0, SCOPE_STREAM },
    [H2_RST_STREAM] = { 4, 4, 0, SCOPE_STREAM },
    [H2_SETTINGS] = { 0, 600, H2_ACK, SCOPE_CONNECTION },
    [H2_PUSH_PROMISE] = { 5, H2_FRAME_ANY, H2_END_HEADERS | H2_PADDED, SCOPE_STREAM },
    [H2_PING] = { 8, 8, H2_ACK, SCOPE_CONNECTION },
    [H2_GOAWAY] = { 8, H2_FRAME_MAX, 0, SCOPE_CONNECTION },
    [H2_WINDOW_UPDATE] = { 4, 4, 0, SCOPE_ANY },
    [H2_CONTINUATION] = { 0, H2_FRAME_ANY, H2_END_HEADERS, SCOPE_STREAM },
};

struct h2_frame h2_frame_parse(struct slice s)
{
    const uint8_t *p = s.ptr;

    return (struct h2_frame){
        .len = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
        .type = p[3],
        .flags = p[4],
        .stream = (uint32_t)p[5] << 24 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 8 | p[8],
    };
}

static bool is_plausible(struct slice s, uint32_t max_frame)
{
    struct h2_frame f = h2_frame_parse(s);

    if (f.type >= ARRAY_LEN(shapes))
        return false;
    const struct shape *shape = &shapes[f.type];
    if (f.len < shape->min_len || f.len > shape->max_len || f.len > max_frame)
        return false;
    if ((f.flags & ~shape->flags) != 0 || f.stream > INT32_MAX)
        return false;
    if (f.type == H2_SETTINGS && (f.len % 6 != 0 || ((f.flags & H2_ACK) && f.len > 0)))
        return false;
    return shape->scope == SCOPE_ANY || (shape->scope == SCOPE_CONNECTION) == (f.stream == 0);
}

enum h2_chain h2_frame_chain(struct slice s, uint32_t max_frame, enum h2_more more)
{
    struct slice skipped;
    int count = 0;
    bool cut = false;

    while (count < CHAIN_PROOF && s.len >= H2_FRAME_HEADER && !cut) {
        if (!is_plausible(s, max_frame))
            return H2_CHAIN_NO;
        count++;
        cut = !slice_take(&s, H2_FRAME_HEADER + h2_frame_parse(s).len, &skipped);
    }
    cut |= s.len > 0;
    if (count == CHAIN_PROOF || (count > 0 && !cut && more != H2_MORE))
        return H2_CHAIN_YES;
    if (more != H2_END)
        return H2_CHAIN_MAYBE;
    return count >= 2 ? H2_CHAIN_YES : H2_CHAIN_NO;
}
