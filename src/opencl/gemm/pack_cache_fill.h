/* SPDX-License-Identifier: Apache-2.0 */
/* Packs GEMM operands and stores them in the pack cache. Any thread. */
#ifndef TANDEM_OPENCL_GEMM_PACK_CACHE_FILL_H
#define TANDEM_OPENCL_GEMM_PACK_CACHE_FILL_H

#include "opencl/memory/pack_cache.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/queue/stream.h"

/* Returns the cached copy of operand `id` (a or b), packed for the kernel
 * `tile`, or NULL if it is not cached. The first call for an operand only
 * records it. The second call packs it on `stream`. The caller releases the
 * entry with pack_cache_release(). */
struct pack_cache_entry *
pack_cache_acquire_or_pack(struct tandem_stream *stream,
                           const struct tandem_gemm *gemm,
                           enum gemm_kernel_id tile, enum operand_id id);

#endif
