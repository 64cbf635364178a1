/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates device memory within its limit.  Callable from any thread. */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_POOL_H
#define TANDEM_OPENCL_MEMORY_BLOCK_POOL_H

#include "opencl/memory/block_cache.h"

/* Returns a cached or new block of at least `bytes`; counts it as allocated. */
enum tandem_status block_acquire(struct tandem_device *device, uint64_t bytes,
                                 struct block **out_block);
/* Releases cached blocks to the driver until at most keep_bytes are left. */
void pool_trim(struct tandem_device *device, uint64_t keep_bytes);

#endif
