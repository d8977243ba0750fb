/*
 * decision.h - the reference decision for integer ids (DESIGN 4): pure, and tested exhaustively
 * against a table (tests/test_decision.c). The general case in resume.c agrees with it.
 */
#ifndef DECISION_H
#define DECISION_H

#include "model.h"

enum decision_kind {
    DECIDE_CURSOR_ERROR, /* head at or below the cursor */
    DECIDE_GAP,          /* head beyond cursor + 1: cursor + 1 .. head - 1 are missing */
    DECIDE_DUPLICATE,    /* head is next, committed already, handlers not idempotent */
    DECIDE_IN_DOUBT,     /* head is next, processed and not known to be committed, not idempotent */
    DECIDE_RESUME,       /* go on at head */
};

struct decision {
    enum decision_kind kind;
    uint64_t missing_first, missing_last; /* DECIDE_GAP */
};

/* state: HEAD_NO_LOG counts as unprocessed (the transport alone). */
struct decision decide(uint64_t cursor, uint64_t head, enum head_state state, bool idempotent);

#endif
