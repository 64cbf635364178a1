/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed operands that are kept.  An operand that is packed a second time, and
 * was not written between, is packed into memory of its own, from which later
 * products take it, until its buffer is written or freed, the cap is reached
 * (the open key pack_cache_limit_bytes) or memory is wanted otherwise.  That
 * memory counts as cached.
 *
 * What a buffer holds is told by its last write, a stream's serial; nothing is
 * packed while another stream may still write it.  Memory of the caller's,
 * which is written unseen, is not kept.
 *
 * Any thread; all of it is under the pool's mutex.
 */
#ifndef TANDEM_OPENCL_MEMORY_PACK_CACHE_H
#define TANDEM_OPENCL_MEMORY_PACK_CACHE_H

#include "opencl/plan/gemm_plan.h"

struct kept;
struct pool;
struct tandem_stream;

/* The operand, which the tile needs packed (operand_packing.h), as it is kept;
 * NULL: it is not.  Where it is to be kept from now on, stream is given the
 * launches that pack it.  The plugin owns it; it stays until the caller's
 * pack_cache_release. */
struct kept *pack_cache_acquire_or_pack(struct tandem_stream *stream,
                       const struct tandem_gemm *gemm, enum tile_id tile,
                       enum operand_id id);
void pack_cache_release(struct kept *kept);
/* Where it lies; NULL for NULL. */
const struct tandem_matrix *kept_matrix(const struct kept *kept);

/* Of the share of a device's memory, where pack_cache_limit_bytes is not given.
 */
#define KEPT_SHARE 8u

/* For memory.c and block_pool.c, the pool being locked: forgets all that is
 * kept of the buffer; all that nobody uses at the moment; and notes what stream
 * was to pack after serial, and did not. */
void kept_forget(struct pool *pool, struct tandem_buffer *buffer);
void kept_drop(struct pool *pool);
void kept_poison(struct pool *pool, uint64_t stream, uint64_t serial,
                 uint32_t status);

#endif
