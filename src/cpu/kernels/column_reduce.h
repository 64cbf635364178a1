/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions whose results lie side by side in the input: many columns are
 * reduced at once, row by row.  Pure functions over checked layouts.
 */
#ifndef TANDEM_CPU_KERNELS_COLUMN_REDUCE_H
#define TANDEM_CPU_KERNELS_COLUMN_REDUCE_H

#include "common/iteration_space.h"
#include "cpu/objects.h"

/* Columns that are reduced together, at most: enough for a page of each row. */
#define COLUMNS 1024

/* Whether the walk across columns is the faster one. */
bool columns_suit(const struct layout_reduction *layout);
/* work->op over a layout that suits. */
void columns_run(const struct work *work, const struct layout_reduction *layout,
                 const float *in, float *out);

/* Returns the f32 result of a reduction of n elements; defined in reduce.c.
 * value is their product, maximum or minimum.  Operators that need no sum or no
 * value ignore it. */
float reduction_finish(uint32_t op, double sum, float value, int64_t n);

#endif
