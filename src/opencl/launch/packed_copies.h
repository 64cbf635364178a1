/* SPDX-License-Identifier: Apache-2.0 */
/* Packs GEMM operands into copies that belong to their buffers.  Only the
 * thread that uses the stream may call this. */
#ifndef TANDEM_OPENCL_LAUNCH_PACKED_COPIES_H
#define TANDEM_OPENCL_LAUNCH_PACKED_COPIES_H

#include "opencl/launch/kernel_launch.h"
#include "opencl/memory/packed_copy.h"
#include "opencl/plan/gemm_plan.h"

struct packed_copies {
    struct packed_copy *copies[OPERAND_COUNT]; /* NULL: no copy */
};

/* Finds or makes copies of the operands that the plan packs, and adds them to
 * `memory`.  Returns a mask of the operands that have a copy. */
uint32_t packed_copies_acquire(struct packed_copies *out,
                               struct tandem_stream *stream,
                               const struct launch_plan *plan,
                               struct launch_memory *memory);
void packed_copies_release(const struct packed_copies *copies);

#endif
