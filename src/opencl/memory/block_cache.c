/* SPDX-License-Identifier: Apache-2.0 */
/* Implements block_cache.h: blocks of device memory and their cache. */
#include "opencl/memory/block_cache.h"

#include <stdlib.h>

#include "opencl/objects.h"

/* Size of the smallest block in bytes, a multiple of the cache line size. */
#define MIN_BLOCK_BYTES 512u

uint32_t size_class_get(uint64_t bytes, uint64_t *out_bytes)
{
    *out_bytes = 0;
    if (bytes < MIN_BLOCK_BYTES)
        bytes = MIN_BLOCK_BYTES;
    if (bytes > UINT64_MAX / 4)
        return 0;
    uint32_t log2 = 63u - (uint32_t)__builtin_clzll(bytes);
    uint64_t step = (uint64_t)1 << (log2 - 3);
    uint64_t steps = (bytes + step - 1) / step; /* 8 to 16 */
    *out_bytes = steps * step;
    return log2 * 8u + (uint32_t)(steps - 8u);
}

void block_attach(struct block *block, struct tandem_buffer *buffer)
{
    buffer->block = block;
    buffer->mem = block->mem;
    buffer->address = block->address;
    atomic_store_explicit(&buffer->prior_stream, block->last_stream,
                          memory_order_relaxed);
    atomic_store_explicit(&buffer->prior_seqno, block->last_seqno,
                          memory_order_relaxed);
}

void block_set_last_use(struct block *block, const struct tandem_buffer *buffer)
{
    uint64_t stream = atomic_load(&buffer->used_stream);
    /* If no stream used `buffer`, keep the last use by an earlier buffer. */
    if (stream != 0) {
        block->last_stream = stream;
        block->last_seqno = atomic_load(&buffer->used_seqno);
    }
}

void blocks_release(struct block *list)
{
    while (list != NULL) {
        struct block *next = list->next;
        clReleaseMemObject(list->mem);
        free(list);
        list = next;
    }
}

struct block *block_take(struct pool *pool, uint32_t size_class, uint64_t bytes)
{
    struct block *block = pool->cached[size_class];
    if (block == NULL || block->bytes != bytes)
        return NULL;
    pool->cached[size_class] = block->next;
    pool->stats.cached_bytes -= block->bytes;
    return block;
}

void block_return(struct pool *pool, struct block *block)
{
    block->next = pool->cached[block->size_class];
    pool->cached[block->size_class] = block;
    pool->stats.cached_bytes += block->bytes;
}
