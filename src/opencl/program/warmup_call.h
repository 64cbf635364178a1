/* SPDX-License-Identifier: Apache-2.0 */
/* The warm-up call of a kernel variant: the smallest valid call whose plan runs
 * the variant (see warmup_launch.h).  The planners make the parameters and
 * buffer sizes of the kernel.  Any thread may call these pure functions. */
#ifndef TANDEM_OPENCL_PROGRAM_WARMUP_CALL_H
#define TANDEM_OPENCL_PROGRAM_WARMUP_CALL_H

#include "opencl/memory/buffer.h"
#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"

/* Maximum number of operands of a warm-up call.  Outputs come first. */
#define WARMUP_OPERANDS 8u

struct warmup_call {
    struct launch_plan plan;
    const struct kernel_step *step; /* step of `plan` that runs the variant */
    /* Sizes of the buffers that the step uses, rounded up to 4 bytes, because
     * cl/transpose.cl reads whole words. */
    uint64_t bytes[MAX_STEP_BUFFERS];
    /* Buffers without memory that represent the operands in `plan`. */
    struct tandem_buffer operands[WARMUP_OPERANDS];
};

/* Writes the warm-up call of a variant.  If the variant uses 64-bit indices,
 * the call is still small enough for 32-bit indices.  Returns false if the
 * self-test runs the kernel (kernel_self_test.h) or no call is known.
 * tests/unit/opencl/test_warmup_call.c reports variants without a call. */
bool warmup_call_make(struct warmup_call *out, uint64_t key,
                      const struct platform_device *hardware);

/* ---- warmup_call_gemm.c ---- */

/* Selects the step of out->plan that runs `key`, and computes its buffer sizes
 * from operand_bytes.  Returns false if no step runs `key`. */
bool warmup_call_select_step(struct warmup_call *out, uint64_t key,
                             const uint64_t *operand_bytes);
/* Returns a dtype that the kernel of `key` accepts for operand `operand`. */
uint32_t warmup_call_dtype(uint64_t key, uint32_t operand);
/* Implements warmup_call_make for the kernels of a GEMM. */
bool warmup_call_make_gemm(struct warmup_call *out, uint64_t key);

#endif
