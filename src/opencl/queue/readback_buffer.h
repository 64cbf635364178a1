/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readback buffer: pinned memory of a stream for small downloads, used if the
 * driver's waits spin.  A download is enqueued without blocking, and wait_event
 * waits for it without spinning.  Called on the thread that uses the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_READBACK_BUFFER_H
#define TANDEM_OPENCL_QUEUE_READBACK_BUFFER_H

#include "opencl/queue/stream.h"

/* Returns true if a download of `bytes` should use the readback buffer.  The
 * first call allocates the buffer, if that does not exceed the timeout. */
bool readback_supports(struct tandem_stream *stream, uint64_t bytes,
                       uint64_t timeout_ns);
/* Downloads through pinned memory.  After NOT_READY, `target` is unchanged. */
enum tandem_status readback_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t timeout_ns);
void readback_finish(struct tandem_stream *stream);

#endif
