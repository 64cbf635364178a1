/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order statistics of small samples, and curves of times.
 */
#ifndef TOOLS_STATISTICS_H
#define TOOLS_STATISTICS_H

#include <stddef.h>

/* Returns the quantile of `fraction` in [0, 1], or 0 if count is 0.  Sorts
 * `values`. */
double quantile(double *values, size_t count, double fraction);

/* A measured curve: times in ns over x, sorted by x. */
#define CURVE_POINTS 64
struct curve {
    size_t count;
    double x[CURVE_POINTS], ns[CURVE_POINTS];
};

/* Appends a point, or drops it if the curve has CURVE_POINTS points. */
void curve_add(struct curve *curve, double x, double ns);
/* Returns the curve's value at x: interpolated linearly between two points,
 * the first value below the first point, and the last value scaled with x above
 * the last point.  Returns 0 for an empty curve. */
double curve_at(const struct curve *curve, double x);

#endif
