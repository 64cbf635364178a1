/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for devices.  The context is unlocked during a wait, so that a slow or
 * hung device delays only the threads that need this device.  A thread that
 * waits on a stream owns the stream; other threads must wait until the stream
 * is released before they use it.
 *
 * A wait may change the state of storages, devices and cached calls.  [may
 * wait] marks the functions that may wait.  They increment
 * context->unlock_epoch if they did, and the caller must then read the state
 * again.  The context's mutex must be held for all functions. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_WAIT_H
#define TANDEM_HOST_DEVICE_DEVICE_WAIT_H

#include "host/device/device.h"

/* A deadline that stands for the hang timeout (context->hang_timeout_ns) after
 * the start of the wait.  A device that exceeds this deadline is marked as
 * lost. */
#define HANG_DEADLINE (TANDEM_TIMEOUT_INFINITE - 1)

/* [may wait]  Waits until no thread owns the device's stream. */
enum tandem_status stream_owner_wait(struct device *device,
                                     uint64_t deadline_ns);
static inline enum tandem_status
stream_owner_wait_if_held(struct device *device, uint64_t deadline_ns)
{
    return device->stream_owned ? stream_owner_wait(device, deadline_ns)
                                : TANDEM_OK;
}

/* [may wait]  Waits for the work enqueued so far without owning the stream, so
 * that other threads can use the stream.  Called before a blocking stream
 * operation, which reports the errors of the work.  Returns TANDEM_OK at once
 * if only one thread uses the context, unless deadline_ns is HANG_DEADLINE. */
enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns);

/* [may wait]  Waits for all of the device's work.  Returns TANDEM_NOT_READY at
 * the deadline, or the error of the work. */
enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns);

/* [waits]  Downloads the first bytes of buffer to target and blocks until this
 * is done.  No thread may own the stream, and buffer must stay allocated. */
enum tandem_status wait_download(struct device *device,
                                 struct tandem_buffer *buffer, void *target,
                                 uint64_t bytes, uint64_t deadline_ns);

/* [may wait]  Handles the failure of a call that enqueues work.  Returns true
 * if the stream had an error from earlier work and this error is now cleared,
 * so that the caller may retry the call. */
bool stream_recover(struct device *device);

#endif
