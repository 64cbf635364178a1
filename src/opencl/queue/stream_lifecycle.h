/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, destroys and finds streams.  Any thread may call these functions. */
#ifndef TANDEM_OPENCL_QUEUE_STREAM_LIFECYCLE_H
#define TANDEM_OPENCL_QUEUE_STREAM_LIFECYCLE_H

#include "opencl/queue/stream.h"

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream);
/* Creates a stream in a queue, and takes over a reference to the queue, which
 * is released on failure. */
enum tandem_status stream_adopt(struct tandem_device *device,
                                cl_command_queue queue, uint32_t flags,
                                struct tandem_stream **out_stream);
/* Waits for the stream's commands and frees the stream.  If the wait exceeds
 * the timeout, marks the device as lost.  If commands can still be running, the
 * stream is freed when they have ended (deferred_release.h). */
void stream_destroy(struct tandem_stream *stream);

/* Returns the stream with this id, or NULL if the stream was destroyed.  The
 * stream stays valid until the caller calls stream_release. */
struct tandem_stream *stream_acquire(struct tandem_device *device, uint64_t id);
void stream_release(struct tandem_stream *stream);
/* Frees the ring of pinned memory of every stream that is not using the ring.
 */
void streams_trim(struct tandem_device *device);

#endif
