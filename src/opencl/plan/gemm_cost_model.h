/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted costs of GEMM on a device. The costs are built-in values until
 * tuning results with these keys (after the prefix "gemm.") replace them:
 *
 *   kernel.KERNEL           start_ns latency_ns step_ns (struct
 *                           gemm_kernel_cost); for GEMV, latency_ns and step_ns
 *                           are per row of the matrix
 *   kernel_mn_major.KERNEL  the same for GEMV with an MN-major matrix
 *   launch_ns               time that each additional kernel launch takes
 *   copy_bytes_per_ns       throughput of a kernel that only copies memory
 *   mn_major_penalty        relative extra time for each MN-major operand
 *   clblast                 measured CLBlast GEMMs: "m n k ns; ..."
 *
 * All functions are thread-safe and have no state. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_COST_MODEL_H
#define TANDEM_OPENCL_PLAN_GEMM_COST_MODEL_H

#include "opencl/plan/gemm_plan.h"

/* Cost of a kernel. A launch with g work-groups per compute unit that each sum
 * k products per element takes start_ns + k * max(latency_ns, g * step_ns). */
struct gemm_kernel_cost {
    double start_ns, latency_ns, step_ns;
};

/* A measured time of a CLBlast GEMM, divided by its work m * n * k. */
struct clblast_time {
    float log2_size[3], log2_ns_per_work;
};

#define MAX_CLBLAST_TIMES 64u

struct gemm_cost_model {
    struct gemm_kernel_cost kernels[GEMM_KERNEL_COUNT];
    struct gemm_kernel_cost kernels_mn_major[GEMM_KERNEL_COUNT]; /* GEMV only */
    uint32_t calibrated; /* bit i is set if kernel i has tuning results */
    uint32_t calibrated_mn_major; /* same for kernels_mn_major */
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
 * of range. Ignores an unknown key, which may be from a later version, and
 * returns true. */
bool gemm_cost_model_parse(struct gemm_cost_model *model, const char *key,
                           const char *value);
/* Predicts the time of CLBlast by interpolation between the measured GEMM
 * sizes. The GEMM must not be empty, and at least one time must be measured. */
double gemm_cost_model_clblast_ns(const struct gemm_cost_model *model,
                                  const struct tandem_gemm *gemm);

/* The predicted time of a kernel that cannot be used. */
#define UNUSABLE_NS 1e30

/* Finds the split-K with which `kernel` computes `gemm` fastest
 * (split_k_choice.c). Returns the predicted time, or UNUSABLE_NS if the kernel
 * cannot be used. The kernel must support `gemm`. Three sets of tiles are tried
 * for split-K: all tiles, the tiles of the last incomplete wave of work-groups,
 * and the tiles left after all compute units got the same number of tiles. */
double split_k_choose(const struct gemm_cost_model *model,
                      uint32_t compute_units, const struct tandem_gemm *gemm,
                      enum gemm_kernel_id kernel, struct split_k *out);

#endif
