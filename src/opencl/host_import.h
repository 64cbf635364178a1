/* SPDX-License-Identifier: Apache-2.0 */
/* Imports the caller's memory as buffers.  Callable from any thread. */
#ifndef TANDEM_OPENCL_HOST_IMPORT_H
#define TANDEM_OPENCL_HOST_IMPORT_H

#include <tandem/backend.h>

/* Starts a background build of the kernel that tests whether imported memory is
 * coherent, so that the first import need not wait for the build. */
void import_prepare(struct tandem_device *device);
enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);

#endif
