/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates device memory up to a limit.  Any thread may call these
 * functions. */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_POOL_H
#define TANDEM_OPENCL_MEMORY_BLOCK_POOL_H

#include "opencl/memory/block_cache.h"

/* Returns a block of at least `bytes` bytes and counts it as allocated. */
enum tandem_status block_acquire(struct tandem_device *device, uint64_t bytes,
                                 struct block **out_block);
/* Releases cached memory until at most keep_bytes bytes stay cached. */
void pool_trim(struct tandem_device *device, uint64_t keep_bytes);

#endif
