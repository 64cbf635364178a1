/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of events.  Any thread may call these functions. */
#ifndef TANDEM_OPENCL_QUEUE_EVENT_CALLBACK_H
#define TANDEM_OPENCL_QUEUE_EVENT_CALLBACK_H

#include "opencl/queue/event.h"

/* Implements the entry of backend.h. */
enum tandem_status event_callback(struct tandem_event *event,
                                  tandem_event_fn fn, void *user);
/* Calls all callbacks of a device that is being closed and whose streams are
 * destroyed.  Those whose work has not ended get TANDEM_DEVICE_LOST. */
void event_callbacks_finish(struct tandem_device *device);

#endif
