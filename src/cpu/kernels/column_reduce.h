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
#define MAX_COLUMNS 1024

/* Returns true if the column reduction is faster than reducing row by row. */
bool column_reduce_supports(const struct layout_reduction *layout);
/* Runs the reduction work->op; column_reduce_supports(layout) must be true.
 * out is i64 for argmax and argmin. */
void column_reduce_run(const struct work *work,
                       const struct layout_reduction *layout, const float *in,
                       float *out);

#endif
