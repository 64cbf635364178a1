/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: the driver's memory of which buffers are made, and the pool that
 * caches those that no buffer has.  Any thread; the pool has its mutex.
 *
 * A freed block remembers the stream that used it last; whoever gets it next
 * and uses it on another stream waits, on the device, for that work
 * (hazard_tracking.c).
 */
#ifndef TANDEM_OPENCL_MEMORY_BLOCK_POOL_H
#define TANDEM_OPENCL_MEMORY_BLOCK_POOL_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Eight classes to each power of two: at most an eighth is wasted. */
#define POOL_CLASSES 512u

/* Number of operands that the pack cache remembers after their first use. */
#define PACK_CACHE_FINGERPRINTS 256u

/* Memory of the driver, cached while no buffer has it. */
struct block {
    cl_mem mem;
    uint64_t bytes;
    uint64_t address; /* as in tandem_buffer */
    uint32_t size_class;
    uint64_t last_stream, last_seqno; /* last use; 0 if never used */
    struct block *next;
};

struct pool {
    pthread_mutex_t mutex;
    struct block *cached[POOL_CLASSES];
    struct tandem_buffer *buffers; /* live, the caller's and ours */
    struct pinned *pinned;         /* of host_alloc */
    struct deferred_mem *deferred; /* see deferred_release.c */
    uint64_t next_address;
    bool exact; /* for tests: blocks have the bytes that were asked for */
    struct tandem_memory_stats stats;
    /* Owned by pack_cache.c. The entries are listed by last use. */
    uint64_t pack_cache_limit_bytes, pack_cache_bytes;
    struct pack_cache_entry *pack_cache_newest, *pack_cache_oldest;
    uint64_t pack_cache_fingerprints[PACK_CACHE_FINGERPRINTS];
};

/* A block of at least so many bytes, cached or new, counted as used. */
enum tandem_status block_acquire(struct tandem_device *device, uint64_t bytes,
                                 struct block **out_block);
/* Whoever has the block next must wait for what buffer's owner left. */
void block_set_last_use(struct block *block,
                        const struct tandem_buffer *buffer);
/* Into the cache; the pool is locked, and the block no longer counted as
 * used. */
void block_return(struct pool *pool, struct block *block);
/* Gives cached blocks back to the driver until keep_bytes are left. */
void pool_trim(struct tandem_device *device, uint64_t keep_bytes);

#endif
