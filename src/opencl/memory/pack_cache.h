/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache of packed GEMM operands: the list of entries, eviction and
 * invalidation. gemm/gemm.c packs operands into entries.
 *
 * An entry is removed when its source buffer is written or freed, when the
 * cache limit is reached (option pack_cache_limit_bytes), or when other
 * allocations need the memory.  The statistics count entries as cached memory.
 * Operands in imported memory are not cached, because the caller can change
 * them unnoticed.
 *
 * Any thread may call these functions.  The cache is guarded by pool.mutex.
 */
#ifndef TANDEM_OPENCL_MEMORY_PACK_CACHE_H
#define TANDEM_OPENCL_MEMORY_PACK_CACHE_H

#include "opencl/memory/buffer.h"

/* The default cache limit is the device memory divided by this number. */
#define PACK_CACHE_MEMORY_DIVISOR 8u

/* Identifies a packed operand within its source buffer. Keys are compared with
 * memcmp, so the struct must not contain padding. */
struct pack_cache_key {
    uint64_t byte_offset;
    int64_t rows, depth, ld, batch_stride, batches;
    uint64_t layout; /* from packing_layout_id */
    uint32_t mn_major, dtype;
};

/* The last write to a buffer: the stream id and the number of the command. */
struct buffer_version {
    uint64_t stream, seqno;
};

struct pack_cache_entry {
    struct pack_cache_key key;
    struct buffer_version version;
    struct tandem_device *device;
    struct tandem_buffer *source; /* operand's buffer; NULL after removal */
    struct tandem_buffer memory;  /* without a handle */
    uint32_t users;
    struct pack_cache_entry *next;          /* next entry of `source` */
    struct pack_cache_entry *newer, *older; /* order of last use */
};

struct buffer_version buffer_version_get(const struct tandem_buffer *buffer);

/* Returns the entry of `buffer` with `key` and `version`, or NULL. The entry
 * stays valid until pack_cache_release. Removes an entry with `key` and another
 * version. *out_seen_before is true if the entry is missing and the cache
 * remembers an earlier call with the same arguments. */
struct pack_cache_entry *pack_cache_acquire(struct tandem_buffer *buffer,
                                            const struct pack_cache_key *key,
                                            struct buffer_version version,
                                            bool *out_seen_before);
void pack_cache_release(struct pack_cache_entry *entry);

/* Evicts entries so that a new entry with `bytes` bytes of memory fits. Returns
 * false if the cache limit or the memory limit of the device leaves no room. */
bool pack_cache_make_room(struct tandem_device *device, uint64_t bytes);
/* Creates an entry whose memory is `block`, but does not add it to the cache.
 * If there is no host memory for the entry, returns `block` to the pool and
 * returns NULL. */
struct pack_cache_entry *pack_cache_entry_create(struct tandem_device *device,
                                                 struct block *block,
                                                 uint64_t bytes);
/* Frees an entry that was never passed to pack_cache_insert. */
void pack_cache_entry_destroy(struct pack_cache_entry *entry);
/* Adds `entry` to the cache as an entry of `buffer`, and acquires it. If
 * another thread has already added an equal entry, frees `entry` and acquires
 * the equal entry. Poisons the returned entry if *stream_status is an error. */
struct pack_cache_entry *
pack_cache_insert(struct tandem_buffer *buffer, struct pack_cache_entry *entry,
                  const _Atomic uint32_t *stream_status);

/* The caller of the functions below must hold pool.mutex. */

void pack_cache_invalidate(struct pool *pool, struct tandem_buffer *buffer);
/* Evicts entries that no GEMM is using, the least recently used first, until
 * the cache holds at most `bytes` bytes. */
void pack_cache_evict(struct pool *pool, uint64_t bytes);
/* Poisons entries that `stream` wrote with commands numbered above `seqno`. */
void pack_cache_poison(struct pool *pool, uint64_t stream, uint64_t seqno,
                       uint32_t status);

#endif
