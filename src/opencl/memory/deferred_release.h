/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What work may still use of which the driver did not say that it had ended:
 * host memory of lost devices, and all that a command of the plugin's own has
 * which took too long.  It is kept, with the queues of that work, until the
 * driver does.  They are asked whenever a device is opened or closed.  Any
 * thread.
 */
#ifndef TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H
#define TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H

#include "opencl/device/device.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/upload_staging.h"

/* Nobody knows whether the queue's work has ended: the device is adrift. */
void adrift_begin(struct tandem_device *device, cl_command_queue queue);
/* Takes what such a device may not give back. */
void adrift_chunk(const struct staging_chunk *chunk);
/* Likewise, after the last of its streams. */
void adrift_pinned(struct pinned *list);
/* Waits for the end of a queue's commands, as long as blocking_timeout_ms says:
 * event is of the last one, and taken; NULL: the queue is asked.  Else FAILED
 * and *out_left: end(user) is called some time after they have ended, by any
 * thread, and until then nothing that they use is to be given back. */
enum tandem_status adrift_wait(struct tandem_device *device,
                               cl_command_queue queue, cl_event event,
                               void (*end)(void *), void *user,
                               bool *out_left);
/* Gives all of it back once all of those queues are at rest. */
void adrift_settle(void);

#endif
