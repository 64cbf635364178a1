/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the driver has pinned.  Any thread. */
#ifndef TANDEM_OPENCL_PINNED_H
#define TANDEM_OPENCL_PINNED_H

#include <tandem/backend.h>

enum tandem_status pinned_alloc(struct tandem_device *device, uint64_t bytes,
                                void **out_memory);
void pinned_free(struct tandem_device *device, void *memory);
void pinned_finish(struct tandem_device *device);

#endif
