/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of small samples. */
#ifndef TOOLS_STATISTICS_H
#define TOOLS_STATISTICS_H

#include <stddef.h>

/* Returns the quantile of `fraction` in [0, 1], or 0 if count is 0.  Sorts
 * `values`. */
double quantile(double *values, size_t count, double fraction);

#endif
