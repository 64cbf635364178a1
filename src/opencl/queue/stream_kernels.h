/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel objects of a stream.  A stream keeps them, so that only its first
 * launch of a kernel locks programs.mutex.  Only the thread that uses the
 * stream may call this. */
#ifndef TANDEM_OPENCL_QUEUE_STREAM_KERNELS_H
#define TANDEM_OPENCL_QUEUE_STREAM_KERNELS_H

#include "opencl/queue/stream.h"

/* Returns the stream's kernel object for a step of the plan. Builds it if
 * needed. */
enum tandem_status stream_kernel_get(struct tandem_stream *stream,
                                     const struct launch_plan *plan,
                                     uint32_t step,
                                     struct stream_kernel **out_kernel);
void stream_kernels_free(struct tandem_stream *stream);

#endif
