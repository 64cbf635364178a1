/* SPDX-License-Identifier: Apache-2.0 */
/* Creates buffers in the caller's memory without a copy, on any thread. */
#ifndef TANDEM_OPENCL_TRANSFER_HOST_IMPORT_H
#define TANDEM_OPENCL_TRANSFER_HOST_IMPORT_H

#include <tandem/backend.h>

/* Starts to build the kernel that tests if imported memory is coherent.  It is
 * built in the background, so that the first import need not wait for it. */
void import_prepare(struct tandem_device *device);
enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);

#endif
