/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted costs of GEMM on a device: built-in values, or tuning results with
 * these keys after "gemm.":
 *
 *   kernel.KERNEL           start_ns latency_ns step_ns (struct
 *                           gemm_kernel_cost); for GEMV, latency_ns and step_ns
 *                           are per row of the matrix
 *   kernel_mn_major.KERNEL  the same for GEMV with an MN-major matrix
 *   launch_ns               time that each additional kernel launch takes
 *   copy_bytes_per_ns       throughput of a kernel that only copies memory
 *   mn_major_penalty        relative extra time for each MN-major operand
 *   clblast_times           measured CLBlast GEMMs: "m n k batch ns; ..."
 *
 * Pure, thread-safe functions.
 */
#ifndef TANDEM_OPENCL_GEMM_GEMM_COST_MODEL_H
#define TANDEM_OPENCL_GEMM_GEMM_COST_MODEL_H

#include "opencl/plan/gemm_plan.h"

/* Cost of a kernel. If every compute unit has g work-groups, a launch takes
 * start_ns + k * max(latency_ns, g * step_ns). */
struct gemm_kernel_cost {
    double start_ns, latency_ns, step_ns;
};

/* A measured time of a CLBlast GEMM per unit of work m * n * k * batch. */
struct clblast_time {
    float log2_size[4], log2_ns_per_work;
};

#define MAX_CLBLAST_TIMES 64u

struct gemm_cost_model {
    struct gemm_kernel_cost kernels[GEMM_KERNEL_COUNT];
    struct gemm_kernel_cost kernels_mn_major[GEMM_KERNEL_COUNT]; /* GEMV only */
    uint32_t calibrated; /* bit i is set if kernel i has tuning results */
    uint32_t calibrated_mn_major; /* kernels with results in kernels_mn_major */
    double launch_ns;
    double bytes_per_ns;
    /* Relative extra time of a 3xTF32 GEMM for each MN-major operand. */
    double mn_major_penalty;
    uint32_t clblast_time_count; /* number of entries in clblast_times */
    double min_clblast_ns;       /* shortest measured time of CLBlast */
    struct clblast_time clblast_times[MAX_CLBLAST_TIMES];
};

/* Sets all costs to their built-in values. */
void gemm_cost_model_init(struct gemm_cost_model *model);
/* Parses and stores the tuning result of a cost. `key` lacks the prefix
 * "gemm.". Returns false and changes nothing if the value is malformed or out
 * of range. Ignores unknown keys, which a later version may have written, and
 * returns true. */
bool gemm_cost_model_parse(struct gemm_cost_model *model, const char *key,
                           const char *value);
/* Predicts the time of CLBlast by interpolation between the measured GEMM
 * sizes. The GEMM must not be empty, and at least one time must be measured. */
double gemm_cost_model_clblast_ns(const struct gemm_cost_model *model,
                                  const struct tandem_gemm *gemm);

/* The predicted time of a kernel that cannot be used. */
#define UNUSABLE_NS 1e30

/* Finds the fastest split-K of a kernel that supports `gemm` and returns the
 * predicted time, or UNUSABLE_NS (split_k_choice.c).  Tries to split k for all
 * tiles of the result, for the tiles left after full waves of work-groups, and
 * for the tiles left after all compute units got the same number of tiles. */
double split_k_choose(const struct gemm_cost_model *model,
                      uint32_t compute_units, const struct tandem_gemm *gemm,
                      enum gemm_kernel_id kernel, struct split_k *out);

#endif
