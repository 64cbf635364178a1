/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the elements that are reduced together, which the references of
 * reductions, softmax and cross-entropy share. Each element of the input
 * belongs to one slot; slots are numbered in row-major order of the remaining
 * axes. In reduce.c.
 */
#ifndef TANDEM_CONFORMANCE_SLOTS_H
#define TANDEM_CONFORMANCE_SLOTS_H

#include "suite_class.h"

struct slot {
    long double sum, magnitude, exponentials;
    long double product; /* Times 2^exponent. */
    int64_t exponent;
    /* log2 of the product of all finite |x| above 1, and of all nonzero |x|
     * below 1: P and Q of TANDEM_METRIC_PROD. */
    double log2_above, log2_below;
    double max, min, largest; /* The largest finite |x|. */
    int64_t count, max_at, min_at;
    bool nan;
};

struct slots {
    int64_t count;
    struct slot *all;
    int64_t *of_element; /* The slot of each element. */
};

/* exponentials: also adds up e^(x - max). */
void slots_init(struct slots *slots, const struct call *call,
                const struct dense *in, uint32_t axes, bool exponentials);
void slots_finish(struct slots *slots);

#endif
