/* SPDX-License-Identifier: Apache-2.0 */
/* Packs GEMM operands and stores them in the pack cache. Thread-safe. */
#ifndef TANDEM_OPENCL_GEMM_PACK_CACHE_FILL_H
#define TANDEM_OPENCL_GEMM_PACK_CACHE_FILL_H

#include "opencl/memory/pack_cache.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/queue/stream.h"

/* Returns the cached copy of operand a or b of the GEMM, packed for the kernel
 * `tile`. Returns NULL if the cache has no copy. The first call for an operand
 * only records it. The second call packs it on `stream`. The caller releases
 * the entry with pack_cache_release(). */
struct pack_cache_entry *
pack_cache_acquire_or_pack(struct tandem_stream *stream,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id tile, enum operand_id id);

#endif
