/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of device memory up to a limit, callable from any thread. */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_POOL_H
#define TANDEM_OPENCL_MEMORY_BLOCK_POOL_H

#include "opencl/memory/block_cache.h"

/* Returns a block of at least `bytes` bytes, counted as allocated memory. */
enum tandem_status block_acquire(struct tandem_device *device, uint64_t bytes,
                                 struct block **out_block);
/* Releases cached blocks until at most keep_bytes bytes stay in the cache. */
void pool_trim(struct tandem_device *device, uint64_t keep_bytes);

#endif
