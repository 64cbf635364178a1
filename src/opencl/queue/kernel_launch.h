/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues launch plans.  Called on the thread that uses the stream. */
#ifndef TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H
#define TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H

#include "common/argument_check.h"
#include "opencl/queue/stream.h"

/* Returns the stream's kernel object for a step.  If necessary, builds it. */
enum tandem_status stream_kernel_get(struct tandem_stream *stream,
                                     const struct kernel_step *step,
                                     struct stream_kernel **out_kernel);
void stream_kernels_free(struct tandem_stream *stream);

/* Enqueues the steps of the plan.  Returns NOT_READY if a kernel does not
 * support its work-group size; the caller then makes a new plan.  After any
 * other failure, no output was written or the stream has a sticky error. */
enum tandem_status launch_plan(struct tandem_stream *stream,
                               struct launch_plan *plan);
/* Enqueues the steps of the plan with `temp` as their temporary buffer. */
enum tandem_status launch_steps(struct tandem_stream *stream,
                                struct launch_plan *plan,
                                struct tandem_buffer *temp);
/* Checks the arguments of an operator.  Returns TANDEM_OK, INVALID_ARGUMENT or
 * UNSUPPORTED.  Checks the tensors' buffers only if `buffers` is true. */
enum tandem_status launch_check(const struct tandem_device *device,
                                const struct op_request *request, bool buffers);
/* Plans the kernels of an operator for the device.  Sets the members of
 * `request` that depend on the device. */
enum tandem_status launch_plan_for_device(struct tandem_device *device,
                                          struct op_request *request,
                                          struct launch_plan *out_plan);
/* Checks the arguments of an operator, plans its kernels and enqueues them. */
enum tandem_status launch_op(struct tandem_stream *stream,
                             struct op_request *request);
/* The struct to which the argument `user` of buffer_address_range points. */
struct address_range_user {
    const struct tandem_device *device;
    const char *name; /* operator name for error messages */
};
/* Checks the buffer and returns its address range.  This is a callback of type
 * address_range_fn (argument_check.h). */
enum tandem_status buffer_address_range(const void *user,
                                        const struct tandem_buffer *buffer,
                                        struct address_range *out);

#endif
