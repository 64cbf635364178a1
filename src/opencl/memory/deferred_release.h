/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred release: keeps device and host memory that unfinished commands can
 * still use, and releases it when they have completed. Completion is tested
 * when a device is opened or closed, when large or pinned memory is allocated,
 * and when pinned memory is freed. Any thread may call these functions. */
#ifndef TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H
#define TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H

#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* ---- objects of one device: pool.deferred ---- */

/* Waits up to limit_ns for the command of `event`, which uses `mem`.  Does not
 * wait if pool.deferred already has unfinished commands.  If the command has
 * not completed, adds `mem` and `event` to pool.deferred and returns NOT_READY.
 * Otherwise, releases `event`.  *out_code is negative if the command failed. */
enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code);
/* Waits for the commands in pool.deferred, up to limit_ns for each.  Releases
 * the memory of completed commands.  Returns true if pool.deferred is then
 * empty. */
bool deferred_release_finish(struct tandem_device *device, uint64_t limit_ns);

/* ---- objects of the process ---- */

/* Call this if the driver cannot report that `queue` is idle. Sets
 * device->defers_release: deferred_release_collect_all then releases the
 * device's pinned and staging memory. */
void deferred_release_begin(struct tandem_device *device,
                            cl_command_queue queue);
/* Takes ownership of `mem` and `queue`.  If `mem` is NULL, takes ownership of
 * `memory`, which is from malloc.  `queue` may be NULL.  The device must have
 * defers_release set. */
void deferred_release_add(cl_mem mem, void *memory, cl_command_queue queue);
/* Waits up to blocking_timeout_ms for `event`, or for all commands of `queue`
 * if `event` is NULL. Releases `event`. If the timeout expires first, returns
 * FAILED and sets *out_deferred. The caller must then keep all memory that the
 * commands use until deferred_release_collect_all calls `release`(user). */
enum tandem_status deferred_release_wait(struct tandem_device *device,
                                         cl_command_queue queue, cl_event event,
                                         void (*release)(void *), void *user,
                                         bool *out_deferred);
/* Calls the `release` function of every idle queue in the list.  If all queues
 * without such a function are idle, releases all objects in the list. */
void deferred_release_collect_all(void);

#endif
