/* decision.c - see decision.h. */
#include "decision.h"

struct decision decide(uint64_t cursor, uint64_t head, enum head_state state, bool idempotent)
{
    if (head <= cursor)
        return (struct decision){ .kind = DECIDE_CURSOR_ERROR };
    if (head - cursor > 1)
        return (struct decision){ DECIDE_GAP, cursor + 1, head - 1 };
    if (state == HEAD_COMMITTED && !idempotent)
        return (struct decision){ .kind = DECIDE_DUPLICATE };
    if (state == HEAD_PROCESSED && !idempotent)
        return (struct decision){ .kind = DECIDE_IN_DOUBT };
    return (struct decision){ .kind = DECIDE_RESUME };
}
