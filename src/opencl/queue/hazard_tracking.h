/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hazard tracking: records which stream used a buffer last, and makes a stream
 * wait for commands of other streams that still use the buffer's block.  Called
 * on the thread that uses the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H
#define TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H

#include "opencl/queue/stream.h"

/* Call this before enqueuing a command that uses the buffer.  Makes the stream
 * wait, on the device, for commands of the previous owner of the buffer's
 * block. */
enum tandem_status stream_begin_use(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer);
/* Call this after enqueuing a command that uses the buffer. */
void stream_note_use(struct tandem_stream *stream, struct tandem_buffer *buffer,
                     bool written);
/* Returns true if the stream sees the last write of the buffer without a wait:
 * the stream wrote it, or the write is known to have completed. */
bool stream_sees_last_write(struct tandem_stream *stream,
                            const struct tandem_buffer *buffer);

#endif
