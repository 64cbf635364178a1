/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues plans.  The thread of the stream. */
#ifndef TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H
#define TANDEM_OPENCL_QUEUE_KERNEL_LAUNCH_H

#include "common/argument_check.h"
#include "opencl/queue/stream.h"

/* Enqueues the steps of plan; NOT_READY (from a kernel that wants smaller
 * groups) asks to plan anew.  A failure has started nothing that shows, or it
 * stays on the stream. */
enum tandem_status launch_plan(struct tandem_stream *stream,
                               struct plan *plan);
/* Its steps, whose kernels the stream has, over a temporary of the caller's. */
enum tandem_status launch_steps(struct tandem_stream *stream, struct plan *plan,
                                struct tandem_buffer *temp);
/* INVALID_ARGUMENT, UNSUPPORTED, OK: check_op with this device's buffers. */
enum tandem_status launch_check(const struct tandem_device *device,
                                const struct request *request, bool buffers);
/* The whole of backend.h's launch, arguments unchecked. */
enum tandem_status launch_op(struct tandem_stream *stream,
                             struct request *request);
/* Whose buffers, and the operator for messages: launch_span's user. */
struct span_user {
    const struct tandem_device *device;
    const char *name;
};
/* argument_check.h's address_range_fn. */
enum tandem_status launch_span(const void *user,
                               const struct tandem_buffer *buffer,
                               struct memory_span *out);

#endif
