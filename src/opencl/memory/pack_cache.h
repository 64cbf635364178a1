/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache of packed GEMM operands: the list of entries, eviction and
 * invalidation. gemm/pack_cache_fill.c packs operands into entries.
 *
 * An entry stays until its source buffer is written or freed, until the cache
 * limit is reached (option pack_cache_limit_bytes), or until memory is needed
 * elsewhere. The memory of entries counts as cached. Operands in imported
 * memory are not cached, because the caller can change them unnoticed.
 *
 * Any thread may call these functions. The mutex of the pool guards the cache.
 */
#ifndef TANDEM_OPENCL_MEMORY_PACK_CACHE_H
#define TANDEM_OPENCL_MEMORY_PACK_CACHE_H

#include "opencl/memory/buffer.h"

/* By default, the cache may use the device memory divided by this number. */
#define PACK_CACHE_MEMORY_DIVISOR 8u

/* Identifies a packed operand within its buffer. Compared as bytes, so the
 * padding must be zero. */
struct pack_cache_key {
    uint64_t byte_offset;
    int64_t rows, depth, ld, batch_stride, batches;
    uint64_t layout; /* packing_layout_id() */
    uint32_t mn_major, dtype;
};

/* The last write of a buffer: a stream and the seqno of its command. */
struct buffer_version {
    uint64_t stream, seqno;
};

struct pack_cache_entry {
    struct pack_cache_key key;
    struct buffer_version version;
    struct tandem_device *device;
    struct tandem_buffer *source; /* NULL if invalidated while in use */
    struct tandem_buffer memory;  /* without a handle */
    struct tandem_matrix matrix;  /* the packed operand in `memory` */
    uint32_t users;
    struct pack_cache_entry *next;          /* same source */
    struct pack_cache_entry *newer, *older; /* by last use */
};

struct buffer_version buffer_version_get(const struct tandem_buffer *buffer);

/* Returns the entry of `buffer` with `key` and `version`, or NULL. The entry
 * stays valid until pack_cache_release(). Removes an outdated entry. If NULL is
 * returned, *out_seen_before is true if the operand was looked up before. */
struct pack_cache_entry *pack_cache_acquire(struct tandem_buffer *buffer,
                                            const struct pack_cache_key *key,
                                            struct buffer_version version,
                                            bool *out_seen_before);
void pack_cache_release(struct pack_cache_entry *entry);

/* Evicts entries so that a new entry with `bytes` of memory fits. Returns false
 * if the memory limits leave no room. */
bool pack_cache_make_room(struct tandem_device *device, uint64_t bytes);
/* Creates an entry outside of any list, with `block` as its memory. If there is
 * no host memory, returns the block to the pool and returns NULL. */
struct pack_cache_entry *pack_cache_entry_create(struct tandem_device *device,
                                                 struct block *block,
                                                 uint64_t bytes);
/* Frees an entry that is not in the list. */
void pack_cache_entry_destroy(struct pack_cache_entry *entry);
/* Adds an entry to the list of `buffer` and acquires it. If another thread
 * added an equal entry meanwhile, frees `entry` and acquires the other one.
 * Poisons the entry if *stream_status is an error. */
struct pack_cache_entry *
pack_cache_insert(struct tandem_buffer *buffer, struct pack_cache_entry *entry,
                  const _Atomic uint32_t *stream_status);

/* The caller of the functions below holds the mutex of the pool. */

void pack_cache_invalidate(struct pool *pool, struct tandem_buffer *buffer);
/* Frees all entries that no GEMM uses. */
void pack_cache_evict_unused(struct pool *pool);
/* Poisons the entries that `stream` packed after command `seqno`. */
void pack_cache_poison(struct pool *pool, uint64_t stream, uint64_t seqno,
                       uint32_t status);

#endif
