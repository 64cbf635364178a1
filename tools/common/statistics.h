/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order statistics of small samples, and curves of times.  Any thread.
 */
#ifndef TOOLS_STATISTICS_H
#define TOOLS_STATISTICS_H

#include <stddef.h>

/* A sample in short: median, and what lies between its quartiles as a
 * fraction of it. */
struct summary {
    double median, low, high, spread;
    size_t count;
};

/* Sorts values.  fraction in [0, 1]; 0 values give 0. */
double quantile(double *values, size_t count, double fraction);
/* Sorts values. */
struct summary summarise(double *values, size_t count);

/* A measured curve: ns over x, points in rising x. */
#define CURVE_POINTS 64
struct curve {
    size_t count;
    double x[CURVE_POINTS], ns[CURVE_POINTS];
};

/* Appends a point; beyond CURVE_POINTS it is dropped. */
void curve_add(struct curve *curve, double x, double ns);
/* Between points in proportion, above the last in proportion to x, below the
 * first its value.  0 for an empty curve. */
double curve_at(const struct curve *curve, double x);

#endif
