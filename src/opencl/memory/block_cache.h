/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of device memory, and a cache of blocks that no buffer uses.  Any
 * thread may call these functions.  The cache is guarded by pool.mutex. */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_CACHE_H
#define TANDEM_OPENCL_MEMORY_BLOCK_CACHE_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Number of block sizes, of which there are eight per power of two. Rounding up
 * to a block size wastes at most an eighth of the block. */
#define SIZE_CLASS_COUNT 512u

/* A piece of device memory (cl_mem) that a buffer or the cache owns. */
struct block {
    cl_mem mem;
    uint64_t bytes;
    uint64_t address; /* see struct tandem_buffer */
    uint32_t size_class;
    /* Stream id and command number of the block's last use, or 0 for no use. */
    uint64_t last_stream, last_seqno;
    struct block *next; /* next block in the cache */
};

/* Memory pool of a device: its buffers and its cached blocks. */
struct pool {
    pthread_mutex_t mutex;
    struct block *cached[SIZE_CLASS_COUNT];
    struct tandem_buffer *buffers;        /* all live buffers */
    struct pinned *pinned;                /* see pinned_memory.c */
    struct import_release *kept_releases; /* see buffer.c */
    uint64_t next_address;
    bool exact_block_size; /* for tests: do not round up block sizes */
    struct tandem_memory_stats stats;
    /* Size of the packed copies of all buffers, and the limit of that size. */
    uint64_t packed_bytes, packed_limit_bytes;
};

/* Returns the index of the smallest block size that holds `bytes` bytes.  Sets
 * *out_bytes to the block size, or to 0 if the size overflows 64 bits. */
uint32_t size_class_get(uint64_t bytes, uint64_t *out_bytes);
/* Makes `buffer` use the block as its memory. */
void block_attach(struct block *block, struct tandem_buffer *buffer);
/* Copies the last use of `buffer` to `block`, which is the buffer's memory. */
void block_set_last_use(struct block *block,
                        const struct tandem_buffer *buffer);
/* Releases a list of blocks to the driver. The driver keeps the memory until no
 * command uses it. The driver may block, so the caller must hold no mutex. */
void blocks_release(struct block *list);

/* The caller of block_take and block_return must hold pool.mutex. */

/* Takes a block of exactly `bytes` bytes from the cache, or returns NULL. */
struct block *block_take(struct pool *pool, uint32_t size_class,
                         uint64_t bytes);
void block_return(struct pool *pool, struct block *block);

#endif
