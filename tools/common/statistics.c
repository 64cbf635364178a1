/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics; see statistics.h. */
#include <config.h>

#include "statistics.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double quantile(double *values, size_t count, double fraction)
{
    const double place = fraction * ((double)count - 1);
    const size_t below = count > 0 ? (size_t)place : 0;

    qsort(values, count, sizeof *values, compare_doubles);
    if (count == 0)
        return 0;
    if (below + 1 >= count)
        return values[count - 1];
    return values[below] +
           (place - (double)below) * (values[below + 1] - values[below]);
}
