/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the time of a GEMM kernel and chooses into how many ranges of k it
 * is split.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_GEMM_SPLIT_K_CHOICE_H
#define TANDEM_OPENCL_GEMM_SPLIT_K_CHOICE_H

#include "opencl/gemm/gemm_cost_model.h"
#include "opencl/plan/gemm_plan.h"

/* The predicted time of a kernel that cannot be used. */
#define UNUSABLE_NS 1e30

/* A kernel that can compute a GEMM, and the values that predict its time. */
struct gemm_candidate {
    const struct gemm_cost_model *model;
    const struct tandem_gemm *gemm;
    enum gemm_kernel_id kernel;
    const struct gemm_kernel_config *config;
    const struct gemm_kernel_cost *cost;
    double compute_units;
    double tiles; /* work-groups without split-K */
    double k_tile, k_tiles;
};

void gemm_candidate_init(struct gemm_candidate *out,
                         const struct gemm_cost_model *model,
                         double compute_units, const struct tandem_gemm *gemm,
                         enum gemm_kernel_id kernel);

/* Finds the fastest split-K and returns its time. The candidates are to split
 * all tiles, the tiles left after full waves, or the tiles left after all
 * compute units got the same number of tiles. */
double split_k_choose(const struct gemm_candidate *c, struct split_k *out);

#endif
