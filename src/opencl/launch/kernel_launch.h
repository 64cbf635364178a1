/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues launch plans. Only the thread that uses the stream may call this. */
#ifndef TANDEM_OPENCL_LAUNCH_KERNEL_LAUNCH_H
#define TANDEM_OPENCL_LAUNCH_KERNEL_LAUNCH_H

#include "common/argument_check.h"
#include "opencl/queue/stream.h"

/* The memory of a launch: the buffer of each slot that the plan uses, and the
 * offset in it where the operand starts. */
struct launch_memory {
    struct tandem_buffer *buffers[SLOT_COUNT];
    uint64_t byte_offsets[SLOT_COUNT];
};
/* Sets the memory of a slot.  `buffer` may be NULL if the plan is not launched.
 * Returns what stands for the buffer in tensors that are planned. */
struct tandem_buffer *launch_memory_set(struct launch_memory *out,
                                        uint32_t slot,
                                        struct tandem_buffer *buffer,
                                        uint64_t byte_offset);

/* Enqueues the steps of the plan. Returns NOT_READY if a kernel does not
 * support its work-group size. The caller must then make a new plan. If this
 * returns another error, no output was written or the stream has a sticky
 * error.  `memory` has the operands; this sets the other slots. */
enum tandem_status launch_plan(struct tandem_stream *stream,
                               const struct launch_plan *plan,
                               struct launch_memory *memory);
/* Replaces the memory of the operands by slots, for a plan. */
void gemm_memory_to_slots(struct tandem_gemm *gemm, struct launch_memory *out);

/* Returns true if CLBlast, which the plan uses, can compute the GEMM with this
 * memory: it limits offsets and alignment. */
bool launch_supports_clblast(const struct launch_plan *plan,
                             const struct launch_memory *memory);
/* Enqueues the steps of the plan. `memory` also has the temporary buffer. */
enum tandem_status launch_steps(struct tandem_stream *stream,
                                const struct launch_plan *plan,
                                const struct launch_memory *memory);
/* Plans the kernels of a request whose tensors have slots, for the device. */
enum tandem_status device_plan_make(struct tandem_device *device,
                                    const struct op_request *request,
                                    struct launch_plan *out_plan);
/* Checks that the buffer belongs to the struct tandem_device `user`, and
 * returns its address range in *out. This function is a callback of type
 * address_range_fn (argument_check.h). */
enum tandem_status buffer_address_range(const void *user,
                                        const struct tandem_buffer *buffer,
                                        struct address_range *out);

#endif
