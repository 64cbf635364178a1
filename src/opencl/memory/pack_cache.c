/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of packed GEMM operands; see pack_cache.h. */
#include "opencl/memory/pack_cache.h"

#include <stdlib.h>
#include <string.h>

struct buffer_version buffer_version_get(const struct tandem_buffer *buffer)
{
    return (struct buffer_version){atomic_load(&buffer->written_stream),
                                   atomic_load(&buffer->written_seqno)};
}

/* Returns a nonzero 64-bit hash (FNV-1a) of an operand. */
static uint64_t operand_fingerprint(const struct pack_cache_key *key,
                                    uint64_t address,
                                    struct buffer_version version)
{
    unsigned char bytes[sizeof(*key) + sizeof(address) + sizeof(version)];
    uint64_t hash = 0xcbf29ce484222325u;
    memcpy(bytes, key, sizeof(*key));
    memcpy(bytes + sizeof(*key), &address, sizeof(address));
    memcpy(bytes + sizeof(*key) + sizeof(address), &version, sizeof(version));
    for (size_t i = 0; i < sizeof(bytes); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash != 0 ? hash : 1;
}

/* ---- the list; the pool is locked ---- */

static void lru_remove(struct pool *pool, struct pack_cache_entry *entry)
{
    if (entry->newer != NULL)
        entry->newer->older = entry->older;
    else
        pool->pack_cache_newest = entry->older;
    if (entry->older != NULL)
        entry->older->newer = entry->newer;
    else
        pool->pack_cache_oldest = entry->newer;
}

static void lru_add(struct pool *pool, struct pack_cache_entry *entry)
{
    entry->newer = NULL;
    entry->older = pool->pack_cache_newest;
    if (entry->older != NULL)
        entry->older->newer = entry;
    else
        pool->pack_cache_oldest = entry;
    pool->pack_cache_newest = entry;
}

/* Frees an entry that is not in the cache.  Returns its block to the pool. */
static void entry_free(struct pool *pool, struct pack_cache_entry *entry)
{
    pool->stats.cached_bytes -= entry->memory.block->bytes;
    block_set_last_use(entry->memory.block, &entry->memory);
    block_return(pool, entry->memory.block);
    free(entry);
}

static void entry_remove(struct pool *pool, struct pack_cache_entry *entry)
{
    struct pack_cache_entry **at = &entry->source->pack_cache_entries;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    lru_remove(pool, entry);
    pool->pack_cache_bytes -= entry->memory.bytes;
    entry->source = NULL;
    if (entry->users == 0)
        entry_free(pool, entry);
}

void pack_cache_invalidate(struct pool *pool, struct tandem_buffer *buffer)
{
    while (buffer->pack_cache_entries != NULL)
        entry_remove(pool, buffer->pack_cache_entries);
}

void pack_cache_evict(struct pool *pool, uint64_t bytes)
{
    struct pack_cache_entry *newer;
    for (struct pack_cache_entry *at = pool->pack_cache_oldest;
         at != NULL && pool->pack_cache_bytes > bytes; at = newer) {
        newer = at->newer;
        if (at->users == 0)
            entry_remove(pool, at);
    }
}

void pack_cache_poison(struct pool *pool, uint64_t stream, uint64_t seqno,
                       uint32_t status)
{
    for (struct pack_cache_entry *at = pool->pack_cache_newest; at != NULL;
         at = at->older)
        if (atomic_load(&at->memory.written_stream) == stream &&
            atomic_load(&at->memory.written_seqno) > seqno)
            atomic_store(&at->memory.poison, status);
}

/* Returns the entry with `key`, or NULL. If the entry is outdated or poisoned,
 * removes it and returns NULL. */
static struct pack_cache_entry *entry_find(struct pool *pool,
                                           struct tandem_buffer *buffer,
                                           const struct pack_cache_key *key,
                                           struct buffer_version version)
{
    struct pack_cache_entry *at = buffer->pack_cache_entries;
    while (at != NULL && memcmp(&at->key, key, sizeof(*key)) != 0)
        at = at->next;
    if (at == NULL || (at->version.stream == version.stream &&
                       at->version.seqno == version.seqno &&
                       atomic_load(&at->memory.poison) == TANDEM_OK))
        return at;
    entry_remove(pool, at);
    return NULL;
}

static struct pack_cache_entry *entry_use(struct pool *pool,
                                          struct pack_cache_entry *entry)
{
    if (entry == NULL)
        return NULL;
    entry->users++;
    lru_remove(pool, entry);
    lru_add(pool, entry);
    return entry;
}

/* ---- entries ---- */

bool pack_cache_make_room(struct tandem_device *device, uint64_t bytes)
{
    struct pool *pool = &device->pool;
    const struct tandem_memory_stats *stats = &pool->stats;
    const uint64_t limit = pool->pack_cache_limit_bytes;
    pthread_mutex_lock(&pool->mutex);
    bool room = bytes <= limit &&
                (stats->limit_bytes == 0 ||
                 stats->allocated_bytes + stats->cached_bytes + bytes <=
                     stats->limit_bytes);
    if (room) {
        pack_cache_evict(pool, limit - bytes);
        room = pool->pack_cache_bytes <= limit - bytes;
    }
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

struct pack_cache_entry *pack_cache_entry_create(struct tandem_device *device,
                                                 struct block *block,
                                                 uint64_t bytes)
{
    struct pool *pool = &device->pool;
    struct pack_cache_entry *entry = calloc(1, sizeof(*entry));
    pthread_mutex_lock(&pool->mutex);
    pool->stats.allocated_bytes -= block->bytes;
    if (entry != NULL)
        pool->stats.cached_bytes += block->bytes;
    else
        block_return(pool, block);
    pthread_mutex_unlock(&pool->mutex);
    if (entry == NULL)
        return NULL;
    entry->device = device;
    entry->memory.device = device;
    entry->memory.bytes = bytes;
    entry->memory.internal = true;
    block_attach(block, &entry->memory);
    return entry;
}

void pack_cache_entry_destroy(struct pack_cache_entry *entry)
{
    struct pool *pool = &entry->device->pool;
    pthread_mutex_lock(&pool->mutex);
    entry_free(pool, entry);
    pthread_mutex_unlock(&pool->mutex);
}

struct pack_cache_entry *
pack_cache_insert(struct tandem_buffer *buffer, struct pack_cache_entry *entry,
                  const _Atomic uint32_t *stream_status)
{
    struct pool *pool = &buffer->device->pool;
    pthread_mutex_lock(&pool->mutex);
    struct pack_cache_entry *found =
        entry_find(pool, buffer, &entry->key, entry->version);
    if (found != NULL) {
        entry_free(pool, entry);
        entry_use(pool, found);
    } else {
        found = entry;
        found->source = buffer;
        found->next = buffer->pack_cache_entries;
        buffer->pack_cache_entries = found;
        found->users = 1;
        lru_add(pool, found);
        pool->pack_cache_bytes += found->memory.bytes;
    }
    /* If the stream failed before the entry was in the cache, pack_cache_poison
     * has missed the entry, so poison it here. */
    uint32_t failed = atomic_load(stream_status);
    if (failed != TANDEM_OK)
        atomic_store(&found->memory.poison, failed);
    pthread_mutex_unlock(&pool->mutex);
    return found;
}

struct pack_cache_entry *pack_cache_acquire(struct tandem_buffer *buffer,
                                            const struct pack_cache_key *key,
                                            struct buffer_version version,
                                            bool *out_seen_before)
{
    struct pool *pool = &buffer->device->pool;
    uint64_t fingerprint = operand_fingerprint(key, buffer->address, version);
    uint64_t *slot =
        &pool->pack_cache_fingerprints[fingerprint % PACK_CACHE_FINGERPRINTS];
    pthread_mutex_lock(&pool->mutex);
    struct pack_cache_entry *entry =
        entry_use(pool, entry_find(pool, buffer, key, version));
    *out_seen_before = entry == NULL && *slot == fingerprint;
    if (entry == NULL)
        *slot = fingerprint;
    pthread_mutex_unlock(&pool->mutex);
    return entry;
}

void pack_cache_release(struct pack_cache_entry *entry)
{
    if (entry == NULL)
        return;
    struct pool *pool = &entry->device->pool;
    pthread_mutex_lock(&pool->mutex);
    if (--entry->users == 0 && entry->source == NULL)
        entry_free(pool, entry);
    pthread_mutex_unlock(&pool->mutex);
}
