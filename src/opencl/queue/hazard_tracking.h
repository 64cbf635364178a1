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
/* Poisons the buffer if the stream has a sticky error.  Call this after a write
 * was recorded in the buffer or has cleared its poison: another thread that
 * waits for an event can record the failure of an earlier command, and poison
 * the buffers that were written since, in the middle of a launch. */
void stream_check_write(const struct tandem_stream *stream,
                        struct tandem_buffer *buffer);
/* Returns true if the stream need not wait for the last write to the buffer.
 * This is the case if the same stream wrote the buffer, or if the write is
 * known to have completed. */
bool stream_sees_last_write(struct tandem_stream *stream,
                            const struct tandem_buffer *buffer);

#endif
