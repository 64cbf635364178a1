/* SPDX-License-Identifier: Apache-2.0 */
/* Imports the caller's memory as buffers.  Callable from any thread. */
#ifndef TANDEM_OPENCL_HOST_IMPORT_H
#define TANDEM_OPENCL_HOST_IMPORT_H

#include <tandem/backend.h>

/* Starts a background build of the kernel that tests whether imported memory is
 * coherent, so that the first import need not wait for the build. */
void import_prepare(struct tandem_device *device);
enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes, tandem_release_fn release,
                                 void *user, struct tandem_buffer **out_buffer);
/* Frees a buffer that has a callback, which is called when the commands of all
 * streams that are in progress have ended. If the driver cannot report that,
 * the callback is called when the device is closed. */
void import_free(struct tandem_buffer *buffer);

#endif
