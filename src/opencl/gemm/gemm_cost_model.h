/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What matrix products cost on a device: built in, or as the profile has it,
 * in the keys of its section that begin with "gemm.":
 *
 *   kernel.NAME      start_ns latency_ns step_ns of a kernel; those of a GEMV
 *                    kernel are per row of the wide operand
 *   kernel_mn_major.NAME  of a GEMV kernel whose matrix is MN-major; without
 *                    this key, kernel.NAME is scaled as the built-in costs are
 *   launch_ns        time of one more kernel in a stream
 *   copy_bytes_per_ns  speed of a copy on the device
 *   mn_major_penalty what a 3xTF32 GEMM loses for each MN-major operand
 *   clblast_times    m n k batch ns; m n k batch ns; ...
 *
 * Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_GEMM_GEMM_COST_MODEL_H
#define TANDEM_OPENCL_GEMM_GEMM_COST_MODEL_H

#include "opencl/plan/gemm_plan.h"

/* A launch in which every compute unit has g groups takes start_ns, and for
 * each unit of k latency_ns or, where that is more, g step_ns. */
struct gemm_kernel_cost {
    double start_ns, latency_ns, step_ns;
};

/* What CLBlast took for one product.  The logarithms, base 2, of its size, and
 * of its time in ns by m n k batch. */
struct clblast_time {
    float size[4], rate;
};

#define MAX_CLBLAST_TIMES 64u

struct gemm_cost_model {
    struct gemm_kernel_cost kernels[GEMM_KERNEL_COUNT];
    /* Of skinny ones whose wide operand lies across k. */
    struct gemm_kernel_cost kernels_mn_major[GEMM_KERNEL_COUNT];
    uint32_t calibrated;          /* bits of tiles that are the profile's */
    uint32_t calibrated_mn_major; /* likewise */
    double launch_ns;    /* of a kernel more */
    double bytes_per_ns; /* of a kernel that moves memory */
    /* What a strict product loses by an operand that does not lie along k. */
    double mn_major_overhead;
    uint32_t clblast_time_count; /* 0: CLBlast was not measured */
    double min_clblast_ns;
    struct clblast_time clblast_times[MAX_CLBLAST_TIMES];
};

/* The built-in ones. */
void gemm_cost_model_init(struct gemm_cost_model *model);
/* Takes one of the keys above, without "gemm.".  False where value is not what
 * it should be, or out of range: then nothing changes.  Other keys are a later
 * version's. */
bool gemm_cost_model_parse(struct gemm_cost_model *model, const char *key,
                           const char *value);
/* What CLBlast takes for a product that is not empty, in proportion to those
 * measured that are like it.  There are some. */
double gemm_cost_model_clblast_ns(const struct gemm_cost_model *model,
                                  const struct tandem_gemm *gemm);

#endif
