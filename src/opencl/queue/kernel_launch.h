/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues launch plans.  Called on the thread that uses the stream. */
#ifndef TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H
#define TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H

#include "common/argument_check.h"
#include "opencl/queue/stream.h"

/* Returns the stream's kernel for a step.  Builds the kernel if necessary. */
enum tandem_status stream_kernel_get(struct tandem_stream *stream,
                                     const struct kernel_step *step,
                                     struct stream_kernel **out_kernel);
void stream_kernels_free(struct tandem_stream *stream);

/* Enqueues the steps of the plan.  Returns NOT_READY if a kernel does not
 * support the work-group size; the caller then makes a new plan.  After any
 * other failure, no output is written or the stream has a sticky error. */
enum tandem_status launch_plan(struct tandem_stream *stream,
                               struct launch_plan *plan);
/* Enqueues the steps of the plan with `temp` as their temporary buffer. */
enum tandem_status launch_steps(struct tandem_stream *stream,
                                struct launch_plan *plan,
                                struct tandem_buffer *temp);
/* Returns the result of check_op: TANDEM_OK, INVALID_ARGUMENT or UNSUPPORTED.
 * Checks the tensors' buffers only if `buffers` is true. */
enum tandem_status launch_check(const struct tandem_device *device,
                                const struct op_request *request, bool buffers);
/* Checks, plans and enqueues one call of an operator. */
enum tandem_status launch_op(struct tandem_stream *stream,
                             struct op_request *request);
/* Context for buffer_address_range, passed as its argument `user`. */
struct address_range_user {
    const struct tandem_device *device;
    const char *name; /* name of the operator, for messages */
};
/* Checks the buffer and returns its address range.  The function is an
 * address_range_fn of argument_check.h. */
enum tandem_status buffer_address_range(const void *user,
                                        const struct tandem_buffer *buffer,
                                        struct memory_span *out);

#endif
