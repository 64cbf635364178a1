/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample of a kernel variant: the smallest valid call that plans it, for
 * the launch that warms the kernel up (warmup_launch.h).  The planners make it,
 * as they make any call, so its parameters and the extents of its buffers are
 * what the kernel relies on.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_PROGRAM_WARMUP_CALL_H
#define TANDEM_OPENCL_PROGRAM_WARMUP_CALL_H

#include "opencl/memory/buffer.h"
#include "opencl/plan/plan.h"
#include "opencl/device/device_enumeration.h"

/* The caller's buffers of a call: outputs first. */
#define WARMUP_OPERANDS 8u

struct sample {
    struct launch_plan plan;
    const struct kernel_step *step; /* the variant's, in plan */
    /* That each of the step's buffers must have, and no more; whole words, of
     * which cl/transpose.cl reads any that has an element in it. */
    uint64_t bytes[MAX_STEP_BUFFERS];
    /* They stand for the caller's buffers in plan; there is no memory. */
    struct tandem_buffer operands[WARMUP_OPERANDS];
};

/* Fills in the sample of key's variant on hardware.  Indices of 64 bits are
 * sampled by a call that needs 32.  False: there is none, since the kernel is
 * one that kernel_self_test.h runs, or because no call is known that plans it,
 * which tests/unit/opencl/test_warmup_call.c finds. */
bool warmup_call_make(struct sample *out, uint64_t key,
                      const struct platform_device *hardware);

/* ---- warmup_step.c and warmup_call_gemm.c ---- */

/* Takes the step of key, if out->plan has it: the operands' bytes are given. */
bool warmup_call_select_step(struct sample *out, uint64_t key,
                             const uint64_t *operand_bytes);
/* A dtype of the key's type of an operand. */
uint32_t warmup_call_dtype(uint64_t key, uint32_t operand);
/* warmup_call_make, of kernels that belong to matrix products. */
bool warmup_call_make_gemm(struct sample *out, uint64_t key);

#endif
