/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred release: keeps objects and host memory that unfinished commands may
 * still use, with the queues or events of these commands.  Releases them when
 * the commands have completed, which is checked when a device is opened or
 * closed, or the plugin waits for another command.  Callable from any thread.
 */
#ifndef TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H
#define TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H

#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* ---- objects of one device: pool.deferred ---- */

/* Waits for the command of `event`, which uses `mem`, and releases the event.
 * Returns NOT_READY after limit_ns, or immediately if earlier commands of the
 * device are deferred; `mem` is then released later.  *out_code is negative if
 * the command failed. */
enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code);
/* Waits for the deferred commands, up to limit_ns for each, and releases the
 * memory of completed commands.  Returns true if no deferred memory is left. */
bool deferred_release_finish(struct tandem_device *device, uint64_t limit_ns);

/* ---- objects of the process ---- */

/* Sets device->defers_release, because the driver cannot report whether the
 * work of `queue` has completed. */
void deferred_release_begin(struct tandem_device *device,
                            cl_command_queue queue);
/* Takes ownership of objects that a device with defers_release may not release:
 * `mem`, or `memory` from malloc if `mem` is NULL, and `queue`, which may be
 * NULL. */
void deferred_release_add(cl_mem mem, void *memory, cl_command_queue queue);
/* Waits up to blocking_timeout_ms for `event`, or for all commands of `queue`
 * if `event` is NULL.  Releases the event.  After the timeout, returns FAILED
 * and sets *out_deferred.  Any thread may then call `release`(user) after the
 * commands have completed.  Nothing that the commands use may be released
 * before. */
enum tandem_status deferred_release_wait(struct tandem_device *device,
                                         cl_command_queue queue, cl_event event,
                                         void (*release)(void *), void *user,
                                         bool *out_deferred);
/* Calls the `release` functions of all queues that are idle.  Releases the
 * other objects if all queues without such a function are idle. */
void deferred_release_collect_all(void);

#endif
