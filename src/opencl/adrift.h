/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of lost devices that work may still use, since the driver did
 * not say that it had ended: kept, with the queues of that work, until it
 * does.  They are asked whenever a device is opened or closed.  Any thread.
 */
#ifndef TANDEM_OPENCL_ADRIFT_H
#define TANDEM_OPENCL_ADRIFT_H

#include "opencl/device.h"
#include "opencl/pinned.h"
#include "opencl/staging.h"

/* Nobody knows whether the queue's work has ended: the device is adrift. */
void adrift_begin(struct tandem_device *device, cl_command_queue queue);
/* Takes what such a device may not give back. */
void adrift_chunk(const struct staging_chunk *chunk);
/* Likewise, after the last of its streams. */
void adrift_pinned(struct pinned *list);
/* Gives all of it back once all of those queues are at rest. */
void adrift_settle(void);

#endif
