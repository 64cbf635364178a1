/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for devices.  While a thread waits the context is unlocked, so that
 * a device that is slow, or hangs, stops only those that need it.  A stream is
 * one thread's at a time: who waits on it holds it, and others wait until it is
 * free before they use it.
 *
 * Whatever was known of storages, devices and judged calls may have changed
 * after a wait.  Functions that may wait say so; context->unlocks differs
 * afterwards where they did, and their callers look again.  All functions:
 * locked.
 */
#ifndef TANDEM_HOST_DEVICE_DEVICE_WAIT_H
#define TANDEM_HOST_DEVICE_DEVICE_WAIT_H

#include "host/device/device.h"

/* A deadline: as long as the context lets a device work before it counts as
 * hung, from when the wait begins.  The device is then lost. */
#define WAIT_LIMIT (TANDEM_TIMEOUT_INFINITE - 1)

/* [may wait]  Until no other thread holds the device's stream. */
enum tandem_status stream_owner_wait(struct device *device,
                                     uint64_t deadline_ns);
static inline enum tandem_status wait_free(struct device *device,
                                           uint64_t deadline_ns)
{
    return device->held ? stream_owner_wait(device, deadline_ns) : TANDEM_OK;
}

/* [may wait]  For the work enqueued so far, holding nothing.  Does nothing
 * where what follows, an operation that waits on the stream, need not fear to
 * keep others from it.  Errors of the work are left for that to find. */
enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns);

/* [may wait]  For all of the device's work: TANDEM_NOT_READY, or the error of
 * that work. */
enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns);

/* [waits]  A blocking download.  The stream is free, the buffer lives. */
enum tandem_status wait_download(struct device *device,
                                 struct tandem_buffer *buffer, void *target,
                                 uint64_t bytes, uint64_t deadline_ns);

/* [may wait]  After a failed call that enqueues: whether the stream had an
 * error from earlier work, which is now cleared, so that the call may be tried
 * again. */
bool wait_recover(struct device *device);

#endif
