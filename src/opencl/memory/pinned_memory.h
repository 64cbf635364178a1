/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the driver has pinned.  Any thread. */
#ifndef TANDEM_OPENCL_MEMORY_PINNED_MEMORY_H
#define TANDEM_OPENCL_MEMORY_PINNED_MEMORY_H

#include <stdbool.h>
#include <tandem/backend.h>

struct pinned;

/* NOT_READY: the driver has not pinned it within the limit. */
enum tandem_status pinned_alloc(struct tandem_device *device, uint64_t bytes,
                                uint64_t limit_ns, void **out_memory);
/* Whether all of bytes lies in one such piece of memory. */
bool pinned_contains(struct tandem_device *device, const void *memory,
                     uint64_t bytes);
void pinned_free(struct tandem_device *device, void *memory);
void pinned_finish(struct tandem_device *device);

#endif
