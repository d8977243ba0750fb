/*
 * log_time.h - times as logs write them, to ns since 1970. A time without a zone is taken as UTC:
 * how far the client's clock was off is estimated later, from the wire.
 */
#ifndef LOG_TIME_H
#define LOG_TIME_H

#include "base.h"

/*
 * A JSON number of seconds, ms, us or ns, told apart by its magnitude: below 10^11 seconds, below
 * 10^14 ms, below 10^17 us, else ns (so each unit covers 1973 to 5138). Read from the token, so
 * that no digit is lost: a double cannot hold ns since 1970.
 */
MUST_CHECK bool log_time_of_number(struct slice token, int64_t *ret);
/* RFC 3339, also with a blank for the T, a comma for the point, and without the zone. */
MUST_CHECK bool log_time_of_text(struct slice text, int64_t *ret);
/* The date and time near the start of a line of text, before any JSON in it. */
MUST_CHECK bool log_time_of_line(struct slice line, int64_t *ret);

#endif
