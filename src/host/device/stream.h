/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of a device's streams, and waits for its work.  A thread acquires a
 * stream, calls the plugin, and releases the stream; other threads that need
 * the stream wait meanwhile.  Any thread may call these functions. */
#ifndef TANDEM_HOST_DEVICE_STREAM_H
#define TANDEM_HOST_DEVICE_STREAM_H

#include "host/device/device.h"

/* This deadline stands for the hang timeout (context->hang_timeout_ns), counted
 * from the start of a wait.  If it passes, the wait marks the device as hung
 * and returns TANDEM_DEVICE_LOST. */
#define HANG_DEADLINE (TANDEM_TIMEOUT_INFINITE - 1)

/* [may wait]  Acquires a stream of the open device. */
enum tandem_status stream_acquire(struct device *device, uint64_t deadline_ns,
                                  struct device_stream **out_stream);
/* Returns a stream of the device, or NULL if other threads use all. */
struct device_stream *stream_try_acquire(struct device *device);
void stream_release(struct device *device, struct device_stream *stream);

/* [may wait]  Waits for the work that is on the device's stream at the time of
 * the call.  If this work fails, the next stream operation returns the error.
 * Other threads can use the stream during the wait.  If only one thread uses
 * the context, returns at once unless deadline_ns is HANG_DEADLINE. */
enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns);

/* [may wait]  Waits until all work of the device is complete.  Returns the
 * error of failed work, or TANDEM_NOT_READY if deadline_ns passes first. */
enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns);

/* [may wait]  Downloads the first `bytes` bytes of `buffer` to `target`.  If
 * earlier work of the stream failed, stores this error and tries again. */
enum tandem_status device_download(struct device *device,
                                   struct tandem_buffer *buffer, void *target,
                                   uint64_t bytes, uint64_t deadline_ns);
/* [may wait, up to HANG_DEADLINE]  Uploads to the buffer, from byte_offset on,
 * like device_download. */
enum tandem_status device_upload(struct device *device,
                                 struct tandem_buffer *buffer,
                                 uint64_t byte_offset, const void *source,
                                 uint64_t bytes);

/* [may wait]  Handles the failure of a plugin call that enqueues work on the
 * acquired stream.  `error` is the status of the call.  If an error of earlier
 * work on the stream made the call fail and *recovered is false, clears this
 * error, sets *recovered and returns TANDEM_OK; the caller may then repeat the
 * call.  Otherwise returns `error`. */
enum tandem_status stream_recover(struct device *device,
                                  const struct device_stream *stream,
                                  enum tandem_status error, bool *recovered);

#endif
