/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for devices.  The context must be locked for all functions.  Functions
 * marked [may wait] can unlock it while they wait, so that a slow or hung
 * device delays only the threads that need this device.  After a wait,
 * context->unlock_epoch has a new value, and the caller must read the state of
 * storages, devices and cached calls again.
 *
 * A thread that waits for a device can own the device's stream (stream_owned).
 * Until it releases the stream, other threads must not use the stream. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_WAIT_H
#define TANDEM_HOST_DEVICE_DEVICE_WAIT_H

#include "host/device/device.h"

/* This deadline stands for the hang timeout (context->hang_timeout_ns), counted
 * from the start of a wait.  If it passes, the wait marks the device as hung
 * and returns TANDEM_DEVICE_LOST. */
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

/* [may wait]  Waits for the work that is on the device's stream at the time of
 * the call.  If this work fails, the next stream operation returns the error.
 * Other threads can use the stream during the wait.  If only one thread uses
 * the context, returns at once unless deadline_ns is HANG_DEADLINE. */
enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns);

/* [may wait]  Waits until all work of the device is complete.  Returns the
 * error of failed work, or TANDEM_NOT_READY if deadline_ns passes first. */
enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns);

/* [may wait]  Downloads the first `bytes` bytes of `buffer` to `target`.  The
 * caller must keep the buffer allocated until the function returns.  No thread
 * may own the device's stream when the function is called. */
enum tandem_status wait_download(struct device *device,
                                 struct tandem_buffer *buffer, void *target,
                                 uint64_t bytes, uint64_t deadline_ns);

/* [may wait]  Handles the failure of a plugin call that enqueues work.  `error`
 * is the status of the call.  If an error of earlier work on the stream made
 * the call fail and *recovered is false, clears this error, sets *recovered and
 * returns TANDEM_OK; the caller may then repeat the call.  Otherwise returns
 * `error`. */
enum tandem_status stream_recover(struct device *device,
                                  enum tandem_status error, bool *recovered);

#endif
