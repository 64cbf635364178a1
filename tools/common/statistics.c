/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order statistics and curves; see statistics.h.
 */
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

void curve_add(struct curve *curve, double x, double ns)
{
    if (curve->count == CURVE_POINTS)
        return;
    curve->x[curve->count] = x;
    curve->ns[curve->count++] = ns;
}

double curve_at(const struct curve *curve, double x)
{
    size_t last = curve->count - 1;
    double part;

    if (curve->count == 0)
        return 0;
    if (x <= curve->x[0])
        return curve->ns[0];
    if (x >= curve->x[last])
        return curve->ns[last] * x / curve->x[last];
    for (size_t i = 1;; i++) {
        if (x > curve->x[i])
            continue;
        part = (x - curve->x[i - 1]) / (curve->x[i] - curve->x[i - 1]);
        return curve->ns[i - 1] + part * (curve->ns[i] - curve->ns[i - 1]);
    }
}
