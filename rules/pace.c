/* pace.c - see pace.h. */
#include "pace.h"

#include <stdlib.h>

#define PERIODS_MIN 2

static int by_length(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

bool leg_pace(const struct leg *l, int64_t *ret)
{
    size_t n = l->period_count < LEG_PERIODS ? l->period_count : LEG_PERIODS;
    int64_t sorted[LEG_PERIODS];
    size_t alike = 0;

    if (n < PERIODS_MIN)
        return false;
    memcpy(sorted, l->period, n * sizeof(sorted[0]));
    qsort(sorted, n, sizeof(sorted[0]), by_length);
    int64_t median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    if (median <= 0)
        return false;
    /* Comments that come now and then are no clock. */
    for (size_t i = 0; i < n; i++)
        alike += sorted[i] >= median / 2 && sorted[i] <= median * 2;
    if (alike < PERIODS_MIN || alike * 4 < n * 3)
        return false;
    *ret = median;
    return true;
}
