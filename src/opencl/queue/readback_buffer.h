/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small downloads from drivers that are busy in their own waits: through
 * pinned memory of the stream, which is read into without waiting, so that the
 * wait is ours.  By the stream's thread.
 */
#ifndef TANDEM_OPENCL_QUEUE_READBACK_BUFFER_H
#define TANDEM_OPENCL_QUEUE_READBACK_BUFFER_H

#include "opencl/queue/stream.h"

/* Whether a download of so many bytes goes this way.  Makes the memory, if
 * that takes no longer than the timeout. */
bool readback_serves(struct tandem_stream *stream, uint64_t bytes,
                     uint64_t timeout_ns);
/* The download, where it does.  NOT_READY leaves target alone. */
enum tandem_status readback_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t timeout_ns);
/* At the stream's end. */
void readback_finish(struct tandem_stream *stream);

#endif
