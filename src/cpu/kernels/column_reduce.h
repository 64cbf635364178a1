/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column reductions: neighboring results come from contiguous input columns, so
 * the loops reduce many columns at once, row by row.  Layouts are checked.
 */
#ifndef TANDEM_CPU_KERNELS_COLUMN_REDUCE_H
#define TANDEM_CPU_KERNELS_COLUMN_REDUCE_H

#include "common/iteration_space.h"
#include "cpu/objects.h"

/* Maximum number of columns reduced together: a 4 KiB page of each row. */
#define COLUMNS 1024

/* Returns true if the column reduction is faster than reducing row by row. */
bool columns_suit(const struct layout_reduction *layout);
/* Runs the reduction work->op; columns_suit(layout) must be true.  out is i64
 * for argmax and argmin. */
void columns_run(const struct work *work, const struct layout_reduction *layout,
                 const float *in, float *out);

/* Returns the f32 result of a reduction of n elements; defined in reduce.c.
 * value is their product, maximum or minimum.  An operator ignores `sum` or
 * `value` if it does not need that argument. */
float reduction_finish(uint32_t op, double sum, float value, int64_t n);

#endif
