/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates device memory up to a limit.  Callable from any thread. */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_POOL_H
#define TANDEM_OPENCL_MEMORY_BLOCK_POOL_H

#include "opencl/memory/block_cache.h"

/* Returns a block of at least `bytes`, which now counts as allocated. */
enum tandem_status block_acquire(struct tandem_device *device, uint64_t bytes,
                                 struct block **out_block);
/* Releases unused blocks until at most keep_bytes remain cached. */
void pool_trim(struct tandem_device *device, uint64_t keep_bytes);

#endif
