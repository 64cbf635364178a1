/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hazard tracking: records which stream last used a buffer.  Before a stream
 * uses a new buffer, it waits for commands of other streams that used the same
 * memory for an earlier buffer.  Called on the thread that uses the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H
#define TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H

#include "opencl/queue/stream.h"

/* Call this before enqueuing a command that uses the buffer.  Makes the stream
 * (not the calling thread) wait for commands that use an earlier buffer in the
 * same memory. */
enum tandem_status stream_begin_use(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer);
/* Call this after enqueuing a command that uses the buffer. */
void stream_note_use(struct tandem_stream *stream, struct tandem_buffer *buffer,
                     bool written);
/* Returns true if the stream need not wait for the last write to the buffer:
 * the same stream wrote it, or the write is known to have completed. */
bool stream_sees_last_write(struct tandem_stream *stream,
                            const struct tandem_buffer *buffer);

#endif
