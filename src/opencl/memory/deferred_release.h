/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred release: keeps device and host memory that unfinished commands may
 * still use, and releases it after these commands.  Checks for completion when
 * a device is opened or closed, and when large or pinned memory is allocated or
 * freed.  Callable from any thread.
 */
#ifndef TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H
#define TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H

#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* ---- objects of one device: pool.deferred ---- */

/* Waits for the command of `event`, which uses `mem`, and releases the event.
 * Returns NOT_READY after limit_ns, or at once if pool.deferred contains
 * unfinished commands; then adds `mem` to pool.deferred.  *out_code is negative
 * if the command failed. */
enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code);
/* Waits for the commands in pool.deferred, each up to limit_ns.  Releases the
 * memory of completed ones.  Returns true if pool.deferred is then empty. */
bool deferred_release_finish(struct tandem_device *device, uint64_t limit_ns);

/* ---- objects of the process ---- */

/* Sets device->defers_release, because the driver cannot report that `queue` is
 * idle.  The device then leaves all releases to this module. */
void deferred_release_begin(struct tandem_device *device,
                            cl_command_queue queue);
/* Takes ownership of objects of a device with defers_release: `mem`, or
 * `memory` from malloc if `mem` is NULL, and `queue`, which may be NULL. */
void deferred_release_add(cl_mem mem, void *memory, cl_command_queue queue);
/* Waits up to blocking_timeout_ms for `event`, or for all commands of `queue`
 * if `event` is NULL.  Releases the event.  After a timeout, returns FAILED and
 * sets *out_deferred; the caller must then keep all memory that the commands
 * use until some thread calls `release`(user), after the commands have
 * completed. */
enum tandem_status deferred_release_wait(struct tandem_device *device,
                                         cl_command_queue queue, cl_event event,
                                         void (*release)(void *), void *user,
                                         bool *out_deferred);
/* Calls `release` of every idle queue that has such a function.  If all other
 * queues in the list are idle too, releases the objects in the list. */
void deferred_release_collect_all(void);

#endif
