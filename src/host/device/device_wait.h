/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for devices.  The context is unlocked during a wait, so that a slow or
 * hung device delays only the threads that need this device.  A thread that
 * waits on a device's stream owns the stream; other threads must not use it
 * until it is released.  A wait may change the state of storages, devices and
 * cached calls.  The mark [may wait] means that a function may wait.  If such a
 * function waited, it has incremented context->unlock_epoch, and the caller
 * must read the state again.  The context's mutex must be held for all
 * functions. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_WAIT_H
#define TANDEM_HOST_DEVICE_DEVICE_WAIT_H

#include "host/device/device.h"

/* This deadline stands for the hang timeout (context->hang_timeout_ns), counted
 * from the start of a wait.  A device that exceeds it is marked as hung. */
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

/* [may wait]  Waits for the work that the device's stream contains at the time
 * of the call.  The next stream operation reports errors of the work.  Other
 * threads can use the stream during the wait.  If only one thread uses the
 * context, returns at once unless deadline_ns is HANG_DEADLINE. */
enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns);

/* [may wait]  Waits until all work of the device is complete.  Returns
 * TANDEM_NOT_READY at the deadline, or the error of failed work. */
enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns);

/* [waits]  Downloads the first `bytes` bytes of `buffer` to `target`.  The
 * buffer must stay allocated meanwhile.  No thread may own the device's
 * stream. */
enum tandem_status wait_download(struct device *device,
                                 struct tandem_buffer *buffer, void *target,
                                 uint64_t bytes, uint64_t deadline_ns);

/* [may wait]  Handles the failure of a plugin call that enqueues work.  `error`
 * is the status of the call.  If the cause was an error of earlier work on the
 * stream, clears this error, sets *recovered and returns TANDEM_OK; the caller
 * may then retry the call.  Otherwise, or if *recovered is already true,
 * returns `error`. */
enum tandem_status stream_recover(struct device *device,
                                  enum tandem_status error, bool *recovered);

#endif
