/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects whose first or last command, one of the plugin's own, has not
 * ended in time.  No driver takes a command back, so the object is kept until
 * it has.  Any thread; the list is under the pool's mutex.
 */
#ifndef TANDEM_OPENCL_MEMORY_LATE_H
#define TANDEM_OPENCL_MEMORY_LATE_H

#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Waits for the command that event is of, and which uses mem; while others are
 * late, not at all.  NOT_READY: mem, too, is kept here from now on.  Takes the
 * event.  out_code: what the command failed with, below 0. */
enum tandem_status late_wait(struct tandem_device *device,
                             cl_command_queue queue, cl_mem mem,
                             cl_event event, uint64_t limit_ns,
                             cl_int *out_code);
/* Waits for the late commands, up to `limit_ns` for each, and gives back the
 * memory of those that have ended.  Returns true if none is left. */
bool late_finish(struct tandem_device *device, uint64_t limit_ns);

#endif
