/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues launch plans. Only the thread that uses the stream may call this. */
#ifndef TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H
#define TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H

#include "common/argument_check.h"
#include "opencl/queue/stream.h"

/* Returns the stream's kernel object for a step of the plan. Builds it if
 * needed. */
enum tandem_status stream_kernel_get(struct tandem_stream *stream,
                                     const struct launch_plan *plan,
                                     uint32_t step,
                                     struct stream_kernel **out_kernel);
void stream_kernels_free(struct tandem_stream *stream);

/* Enqueues the steps of the plan. Returns NOT_READY if a kernel does not
 * support its work-group size. The caller must then make a new plan. If this
 * returns another error, no output was written or the stream has a sticky
 * error. */
enum tandem_status launch_plan(struct tandem_stream *stream,
                               struct launch_plan *plan);
/* Enqueues the steps of the plan, which use `temp` as temporary buffer. */
enum tandem_status launch_steps(struct tandem_stream *stream,
                                struct launch_plan *plan,
                                struct tandem_buffer *temp);
/* Checks the arguments of an operator.  Returns TANDEM_OK, INVALID_ARGUMENT or
 * UNSUPPORTED.  If `buffers` is false, does not check the tensors' buffers. */
enum tandem_status launch_check(const struct tandem_device *device,
                                const struct op_request *request, bool buffers);
/* Plans the kernels of an operator for the device.  Also fills the members of
 * `request` that depend on the device. */
enum tandem_status launch_plan_for_device(struct tandem_device *device,
                                          struct op_request *request,
                                          struct launch_plan *out_plan);
/* Checks the arguments of an operator, plans its kernels and enqueues them. */
enum tandem_status launch_op(struct tandem_stream *stream,
                             struct op_request *request);
/* Checks that the buffer belongs to the struct tandem_device `user`, and
 * returns its address range in *out. This function is a callback of type
 * address_range_fn (argument_check.h). */
enum tandem_status buffer_address_range(const void *user,
                                        const struct tandem_buffer *buffer,
                                        struct address_range *out);

#endif
