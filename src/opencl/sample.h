/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample of a kernel variant: the smallest valid call that plans it, for
 * the launch that warms the kernel up (warmup.h).  The planners make it, as
 * they make any call, so its parameters and the extents of its buffers are
 * what the kernel relies on.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_SAMPLE_H
#define TANDEM_OPENCL_SAMPLE_H

#include "opencl/memory.h"
#include "opencl/plan.h"
#include "opencl/platform.h"

/* The caller's buffers of a call: outputs first. */
#define SAMPLE_OPERANDS 8u

struct sample {
    struct plan plan;
    const struct step *step; /* the variant's, in plan */
    /* That each of the step's buffers must have, and no more; whole words, of
     * which cl/copy.cl reads any that has an element in it. */
    uint64_t bytes[STEP_BUFFERS];
    /* They stand for the caller's buffers in plan; there is no memory. */
    struct tandem_buffer operands[SAMPLE_OPERANDS];
};

/* Fills in the sample of key's variant on hardware.  Indices of 64 bits are
 * sampled by a call that needs 32.  False: there is none, since the kernel is
 * one that proof.h runs, or because no call is known that plans it, which
 * tests/opencl/test-sample.c finds. */
bool sample_make(struct sample *out, uint64_t key,
                 const struct platform_device *hardware);

/* ---- for sample.c and sample_product.c ---- */

/* Takes the step of key, if out->plan has it: the operands' bytes are given. */
bool sample_take(struct sample *out, uint64_t key,
                 const uint64_t *operand_bytes);
/* A dtype of the key's type of an operand. */
uint32_t sample_dtype(uint64_t key, uint32_t operand);
/* sample_make, of kernels that belong to matrix products. */
bool sample_product(struct sample *out, uint64_t key);

#endif
