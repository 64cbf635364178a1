/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of device memory, and the cache of those that no buffer uses.  Any
 * thread; the mutex of the pool guards the cache.
 */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_CACHE_H
#define TANDEM_OPENCL_MEMORY_BLOCK_CACHE_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Eight classes per power of two: a block wastes at most one eighth. */
#define SIZE_CLASS_COUNT 512u

/* Number of operands that the pack cache remembers after their first use. */
#define PACK_CACHE_FINGERPRINTS 256u

/* Memory of the driver.  A buffer owns it, or the cache. */
struct block {
    cl_mem mem;
    uint64_t bytes;
    uint64_t address; /* see struct tandem_buffer */
    uint32_t size_class;
    /* Stream id and seqno of the last use; stream 0 if never used. */
    uint64_t last_stream, last_seqno;
    struct block *next; /* in the cache */
};

/* The memory of a device. */
struct pool {
    pthread_mutex_t mutex;
    struct block *cached[SIZE_CLASS_COUNT];
    struct tandem_buffer *buffers; /* all live buffers */
    struct pinned *pinned;         /* see pinned_memory.c */
    struct deferred_mem *deferred; /* see deferred_release.c */
    uint64_t next_address;
    bool exact_block_size; /* test mode: no size classes */
    struct tandem_memory_stats stats;
    /* Owned by pack_cache.c. The entries are listed by last use. */
    uint64_t pack_cache_limit_bytes, pack_cache_bytes;
    struct pack_cache_entry *pack_cache_newest, *pack_cache_oldest;
    uint64_t pack_cache_fingerprints[PACK_CACHE_FINGERPRINTS];
};

/* Returns the size class for `bytes`.  *out_bytes is the block size of the
 * class, or 0 if it overflows. */
uint32_t size_class_get(uint64_t bytes, uint64_t *out_bytes);
/* Makes the block the memory of a buffer. */
void block_attach(struct block *block, struct tandem_buffer *buffer);
/* Copies the last use of the buffer to its block, for the next owner. */
void block_set_last_use(struct block *block,
                        const struct tandem_buffer *buffer);
/* Releases a list of blocks.  A driver may block here, so no mutex may be held.
 * The driver keeps memory that unfinished commands use. */
void blocks_release(struct block *list);

/* The caller of these functions holds the mutex of the pool. */

/* Removes a block of exactly `bytes` from the cache, or returns NULL. */
struct block *block_take(struct pool *pool, uint32_t size_class,
                         uint64_t bytes);
/* Adds a block to the cache. */
void block_return(struct pool *pool, struct block *block);

#endif
