/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's memory as a buffer, where that costs no copy.  Any thread. */
#ifndef TANDEM_OPENCL_TRANSFER_HOST_IMPORT_H
#define TANDEM_OPENCL_TRANSFER_HOST_IMPORT_H

#include <tandem/backend.h>

/* Has built, in the background, what the first import tries a device with, so
 * that it waits for no compiler: before the first operator is prepared. */
void import_prepare(struct tandem_device *device);
enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);

#endif
