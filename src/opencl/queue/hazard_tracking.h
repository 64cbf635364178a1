/* SPDX-License-Identifier: Apache-2.0 */
/* Hazard tracking: records which stream last used a buffer. A new buffer can
 * get the memory of a destroyed buffer that commands still use. A stream that
 * uses the new buffer therefore first waits for these commands, except its own.
 * Only the thread that uses the stream may call these functions. */
#ifndef TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H
#define TANDEM_OPENCL_QUEUE_HAZARD_TRACKING_H

#include "opencl/queue/stream.h"

/* Call this before enqueuing a command that uses the buffer. Makes the stream
 * wait for commands of other streams that use an earlier buffer in the same
 * memory. The calling thread does not wait. */
enum tandem_status stream_begin_use(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer);
/* Call this after enqueuing a command that uses the buffer. */
void stream_note_use(struct tandem_stream *stream, struct tandem_buffer *buffer,
                     bool written);
/* Call this after a command that writes `bytes` bytes of the buffer was
 * enqueued and noted. If these are all its bytes, the buffer is no longer
 * poisoned, unless the stream has a sticky error. */
void stream_note_overwrite(const struct tandem_stream *stream,
                           struct tandem_buffer *buffer, uint64_t bytes);
/* Returns true if the stream need not wait for the last write to the buffer.
 * This is the case if the same stream wrote the buffer, or if the write is
 * known to have completed. */
bool stream_sees_last_write(struct tandem_stream *stream,
                            const struct tandem_buffer *buffer);

#endif
