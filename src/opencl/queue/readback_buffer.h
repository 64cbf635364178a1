/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readback buffer: pinned memory of a stream for small downloads, used if the
 * driver's wait functions spin.  Downloads to it do not block, and wait_event
 * then waits without spinning.  Called on the thread that uses the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_READBACK_BUFFER_H
#define TANDEM_OPENCL_QUEUE_READBACK_BUFFER_H

#include "opencl/queue/stream.h"

/* Returns true if a download of `bytes` bytes should use the readback buffer.
 * Allocates the buffer at the first call, which may take up to timeout_ns. */
bool readback_supports(struct tandem_stream *stream, uint64_t bytes,
                       uint64_t timeout_ns);
/* Downloads through pinned memory.  Changes `target` only if successful. */
enum tandem_status readback_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t timeout_ns);
void readback_finish(struct tandem_stream *stream);

#endif
