/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column reductions, for layouts in which neighboring results come from
 * contiguous input columns.  The loops reduce many columns at once, row by row.
 */
#ifndef TANDEM_CPU_KERNELS_COLUMN_REDUCE_H
#define TANDEM_CPU_KERNELS_COLUMN_REDUCE_H

#include "common/iteration_space.h"
#include "cpu/objects.h"

/* Maximum columns that are reduced at once: a 4 KiB page of each f32 row. */
#define MAX_COLUMNS 1024

/* Returns true if column_reduce_run is faster than one reduction per result. */
bool column_reduce_supports(const struct reduction_spaces *spaces);
/* Runs reduction work->op on a space that column_reduce_supports.  `out`
 * points to f32 results, or i64 results for argmax and argmin. */
void column_reduce_run(const struct work *work,
                       const struct reduction_spaces *spaces, const float *in,
                       float *out);

#endif
