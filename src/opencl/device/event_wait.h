/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for events with a timeout.  May be called from any thread. */
#ifndef TANDEM_OPENCL_DEVICE_EVENT_WAIT_H
#define TANDEM_OPENCL_DEVICE_EVENT_WAIT_H

#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"

/* Waits for the event. Returns NOT_READY if timeout_ns passes before the event
 * completes. *out_code is negative if the event's command failed. */
enum tandem_status wait_event(struct tandem_device *device, cl_event event,
                              uint64_t timeout_ns, cl_int *out_code);

#endif
