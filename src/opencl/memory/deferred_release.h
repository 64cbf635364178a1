/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred release: keeps objects that an unfinished command can still use, and
 * releases them when the command has completed.  The device owns the list, and
 * device->mutex guards it.  Completion is tested when large or pinned memory is
 * allocated, when pinned memory is freed, and when the device is closed.  Any
 * thread may call these functions, but it must not hold device->mutex. */
#ifndef TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H
#define TANDEM_OPENCL_MEMORY_DEFERRED_RELEASE_H

#include <stdbool.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Waits up to limit_ns for the command of `event`, which uses `mem`.  Does not
 * wait if a command of an earlier call is still unfinished.  If the command has
 * not completed, takes ownership of `mem` and returns NOT_READY.  In any case,
 * takes ownership of `event`.  *out_code is negative if the command failed. */
enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code);
/* Waits up to blocking_timeout_ms for `event`, or for all commands of `queue`
 * if `event` is NULL. Releases `event`. If the timeout expires first, returns
 * FAILED and sets *out_deferred. The caller must then keep all memory that the
 * commands use until `release`(user) is called, by any thread. */
enum tandem_status deferred_release_wait(struct tandem_device *device,
                                         cl_command_queue queue, cl_event event,
                                         void (*release)(void *), void *user,
                                         bool *out_deferred);
/* Adds objects that commands of `queue` use.  Their `release` function is
 * called when these commands have ended; it may release the queue. */
void deferred_release_add(struct tandem_device *device, cl_command_queue queue,
                          void (*release)(void *), void *user);
/* Waits up to limit_ns for the commands of the list, and releases the objects
 * of those that have ended.  Returns TANDEM_OK if none are left, NOT_READY if
 * commands are still running, or else DEVICE_LOST, if the driver cannot tell.
 */
enum tandem_status deferred_release_finish(struct tandem_device *device,
                                           uint64_t limit_ns);

#endif
