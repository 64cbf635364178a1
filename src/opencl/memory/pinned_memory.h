/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory.  Any thread may call the functions of this file. */
#ifndef TANDEM_OPENCL_MEMORY_PINNED_MEMORY_H
#define TANDEM_OPENCL_MEMORY_PINNED_MEMORY_H

#include <stdbool.h>
#include <tandem/backend.h>

struct pinned;

/* Allocates pinned memory that starts at a page boundary.  Returns NOT_READY if
 * the driver does not map the memory within limit_ns. */
enum tandem_status pinned_alloc(struct tandem_device *device, uint64_t bytes,
                                uint64_t limit_ns, void **out_memory);
/* Returns true if the range lies within the memory of one pinned_alloc call. */
bool pinned_contains(struct tandem_device *device, const void *memory,
                     uint64_t bytes);
void pinned_free(struct tandem_device *device, void *memory);
/* Frees all pinned memory of a device that is being closed.  No command may use
 * the memory. */
void pinned_finish(struct tandem_device *device);

#endif
