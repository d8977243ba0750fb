/*
 * pace.h - the pace of a leg's keep-alives, as far as the capture shows one.
 *
 *     if (leg_pace(l, &period))   two or more distances were seen, and they agree
 */
#ifndef PACE_H
#define PACE_H

#include "model.h"

/* The median distance of the last keep-alives; false: too few, or not regular. */
MUST_CHECK bool leg_pace(const struct leg *l, int64_t *ret);

static inline bool leg_client_left(const struct leg *l)
{
    return l->ended && (l->end == END_CLIENT_FIN || l->end == END_CLIENT_RST);
}

static inline bool leg_cut(const struct leg *l)
{
    return l->ended && (l->end == END_FIN || l->end == END_RST);
}

#endif
