/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference of layer_norm, which group_norm and instance_norm share. In
 * norm.c.
 */
#ifndef TANDEM_CONFORMANCE_NORM_H
#define TANDEM_CONFORMANCE_NORM_H

#include "suite_class.h"

/* Statistics of a row. magnitude is the mean of |x|. */
struct moments {
    long double mean, magnitude, divisor;
};

/*
 * Returns the statistics of a row of count elements that starts at begin.
 * Unless it is centered, the mean counts as 0.
 */
struct moments moments_of(const struct dense *in, int64_t begin, int64_t count,
                          bool centered, double epsilon);
/*
 * Computes element i of the output and its tolerance. within is its element of
 * scale and bias, inputs 1 and 2. The caller has called
 * expected_allow_unspecified, here and below.
 */
void norm_element(const struct call *call, const struct dense *in,
                  const struct moments *row, int64_t i, int64_t within,
                  struct expected *out);
/* Returns an epsilon of a usual size or, once in three, of any size. */
double norm_epsilon_draw(struct random *random);

#endif
