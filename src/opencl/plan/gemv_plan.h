/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm/gemv.cl: products with few rows or columns.  Pure
 * functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_GEMV_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMV_PLAN_H

#include "opencl/plan/gemm_plan.h"

/* How a variant is cut, as cl/gemm/gemv.cl's macros say. */
struct skinny_shape {
    uint32_t item, lanes, turns, group_log2;
};

/* Work-items of TILE_SKINNY_BROAD's groups. */
#define BROAD_GROUP_LOG2 9u
#define BROAD_GROUP (1u << BROAD_GROUP_LOG2)

/* outer: neighbours in the wide operand do not lie along k. */
const struct skinny_shape *skinny_shape(enum tile_id tile, bool outer);
/* Whether that is how the wide operand lies. */
bool skinny_outer(const struct tandem_gemm *gemm);
/* Whether gemm is narrow enough, its leading dimensions are counted and, for
 * TILE_SKINNY_BROAD, its wide operand lies across k. */
bool gemv_supports(const struct tandem_gemm *gemm, enum tile_id tile);
/* Groups that each split takes; rows of the wide operand that each has, and
 * how much of k at a time. */
uint64_t skinny_groups(const struct tandem_gemm *gemm, enum tile_id tile);
uint32_t skinny_rows(const struct tandem_gemm *gemm, enum tile_id tile);
uint32_t skinny_depth(const struct tandem_gemm *gemm, enum tile_id tile);
/* Appends to plan, after what its temporary holds already. */
void plan_skinny(struct plan *plan, const struct tandem_gemm *gemm,
                 enum tile_id tile, uint32_t splits, uint32_t group_log2);

#endif
