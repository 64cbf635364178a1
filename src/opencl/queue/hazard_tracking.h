/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hazard tracking: records which stream used a buffer last, and makes a stream
 * wait for commands of other streams that still use the buffer's block.  The
 * thread of the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H
#define TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H

#include "opencl/queue/stream.h"

/* Call this before a command that uses the buffer is enqueued.  Makes the
 * stream wait, on the device, for the commands of the block's previous
 * owner. */
enum tandem_status stream_begin_use(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer);
/* Call this after the command was enqueued. */
void stream_note_use(struct tandem_stream *stream, struct tandem_buffer *buffer,
                     bool written);
/* Returns true if the stream sees the last write of the buffer without a wait:
 * the stream wrote it, or the write is known to have completed. */
bool stream_sees_last_write(struct tandem_stream *stream,
                            const struct tandem_buffer *buffer);

#endif
