/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted costs of GEMM on a device: built-in values, or tuning results with
 * these keys after "gemm.":
 *
 *   kernel.KERNEL           start_ns latency_ns step_ns (struct
 *                           gemm_kernel_cost); for GEMV, latency_ns and step_ns
 *                           are per row of the matrix
 *   kernel_mn_major.KERNEL  the same for GEMV with an MN-major matrix
 *   launch_ns               time of an additional kernel
 *   copy_bytes_per_ns       speed of a kernel that only moves memory
 *   mn_major_penalty        see the field
 *   clblast_times           times of CLBlast: m n k batch ns; m n k batch ns...
 *
 * Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_GEMM_GEMM_COST_MODEL_H
#define TANDEM_OPENCL_GEMM_GEMM_COST_MODEL_H

#include "opencl/plan/gemm_plan.h"

/* If every compute unit has g work-groups, a launch takes start_ns plus, for
 * each unit of k, latency_ns or g * step_ns, whichever is larger. */
struct gemm_kernel_cost {
    double start_ns, latency_ns, step_ns;
};

/* A measured time of CLBlast; "work" is m n k batch. */
struct clblast_time {
    float log2_size[4], log2_ns_per_work;
};

#define MAX_CLBLAST_TIMES 64u

struct gemm_cost_model {
    struct gemm_kernel_cost kernels[GEMM_KERNEL_COUNT];
    struct gemm_kernel_cost kernels_mn_major[GEMM_KERNEL_COUNT]; /* GEMV only */
    uint32_t calibrated; /* a bit for each kernel with tuning results */
    uint32_t calibrated_mn_major; /* the same for kernels_mn_major */
    double launch_ns;
    double bytes_per_ns;
    /* Fraction of its time that an MN-major operand adds to a 3xTF32 GEMM. */
    double mn_major_penalty;
    uint32_t clblast_time_count; /* 0 if CLBlast was not measured */
    double min_clblast_ns;       /* shortest measured time */
    struct clblast_time clblast_times[MAX_CLBLAST_TIMES];
};

/* Sets the built-in costs. */
void gemm_cost_model_init(struct gemm_cost_model *model);
/* Takes one of the keys above, without "gemm.". Returns false and changes
 * nothing if the value is malformed or out of range. Ignores unknown keys,
 * which a later version may have written, and returns true. */
bool gemm_cost_model_parse(struct gemm_cost_model *model, const char *key,
                           const char *value);
/* Interpolates the time of CLBlast between the measured sizes. The GEMM must
 * not be empty, and there must be at least one measured time. */
double gemm_cost_model_clblast_ns(const struct gemm_cost_model *model,
                                  const struct tandem_gemm *gemm);

#endif
