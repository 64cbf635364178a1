/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the list of packed copies of a buffer; see packed_copy.h. */
#include "opencl/memory/packed_copy.h"

#include <stdlib.h>
#include <string.h>

/* When a copy is dropped to free memory, the number of uses before it is made
 * again is multiplied by a power of two, up to a maximum.  Otherwise copies
 * that do not fit into the memory would be made and dropped all the time. */
#define BACKOFF_STEP_LOG2 3u
#define MAX_BACKOFF_LOG2 24u

static struct pool *pool_of(const struct packed_copy *copy)
{
    return &copy->memory.device->pool;
}

/* ---- the pool is locked ---- */

/* Returns the entry of the list with `key`, which is added if it is missing, or
 * NULL if the list is full or host memory is exhausted. */
static struct packed_copy *find_or_add(struct tandem_buffer *buffer,
                                       const struct packed_copy_key *key)
{
    uint32_t count = 0;
    struct packed_copy **at = &buffer->packed_copies;
    for (; *at != NULL; at = &(*at)->next, count++)
        if (memcmp(&(*at)->key, key, sizeof(*key)) == 0)
            return *at;
    if (count < MAX_PACKED_COPIES)
        *at = calloc(1, sizeof(**at));
    if (*at != NULL) {
        (*at)->key = *key;
        (*at)->memory.device = buffer->device;
    }
    return *at;
}

/* Returns the memory of the copy, if it has any, to the pool.  The next copy is
 * made after `uses` fewer uses. */
static void memory_drop(struct packed_copy *copy)
{
    struct pool *pool = pool_of(copy);
    struct block *block = copy->memory.block;
    copy->uses = 0;
    copy->is_packed = false;
    if (block == NULL)
        return;
    pool->packed_bytes -= block->bytes;
    pool->stats.cached_bytes -= block->bytes;
    block_set_last_use(block, &copy->memory);
    block_return(pool, block);
    copy->memory = (struct tandem_buffer){.device = copy->memory.device};
}

static void memory_drop_for_others(struct packed_copy *copy)
{
    memory_drop(copy);
    if (copy->backoff_log2 < MAX_BACKOFF_LOG2)
        copy->backoff_log2 += BACKOFF_STEP_LOG2;
}

void packed_copies_drop(struct pool *pool)
{
    if (pool->packed_bytes == 0)
        return;
    for (struct tandem_buffer *buffer = pool->buffers; buffer != NULL;
         buffer = buffer->next)
        for (struct packed_copy *copy = buffer->packed_copies; copy != NULL;
             copy = copy->next)
            if (copy->users == 0 && copy->is_packed)
                memory_drop_for_others(copy);
}

void packed_copies_free(struct tandem_buffer *buffer)
{
    while (buffer->packed_copies != NULL) {
        struct packed_copy *copy = buffer->packed_copies;
        buffer->packed_copies = copy->next;
        memory_drop(copy);
        free(copy);
    }
}

/* ---- copies ---- */

struct packed_copy *packed_copy_acquire(struct tandem_buffer *buffer,
                                        const struct packed_copy_key *key)
{
    struct pool *pool = &buffer->device->pool;
    const uint32_t first = atomic_load(&buffer->is_sealed) ? 1 : 2;
    const uint64_t stream = atomic_load(&buffer->written_stream);
    const uint64_t seqno = atomic_load(&buffer->written_seqno);
    pthread_mutex_lock(&pool->mutex);
    struct packed_copy *copy = find_or_add(buffer, key);
    bool is_current = copy != NULL && copy->written_stream == stream &&
                      copy->written_seqno == seqno &&
                      atomic_load(&copy->memory.poison) == TANDEM_OK;
    if (copy != NULL && !is_current && copy->users == 0) {
        memory_drop(copy);
        copy->written_stream = stream;
        copy->written_seqno = seqno;
        is_current = true;
    }
    /* An unpacked copy with a user is being packed by another thread. */
    if (is_current && !copy->is_packed)
        is_current =
            copy->users == 0 && ++copy->uses >= first << copy->backoff_log2;
    if (is_current)
        copy->users++;
    pthread_mutex_unlock(&pool->mutex);
    return is_current ? copy : NULL;
}

void packed_copy_release(struct packed_copy *copy)
{
    struct pool *pool = pool_of(copy);
    pthread_mutex_lock(&pool->mutex);
    copy->users--;
    pthread_mutex_unlock(&pool->mutex);
}

bool packed_copy_fits(const struct packed_copy *copy, uint64_t bytes)
{
    struct pool *pool = pool_of(copy);
    const struct tandem_memory_stats *stats = &pool->stats;
    pthread_mutex_lock(&pool->mutex);
    bool fits = pool->packed_bytes + bytes <= pool->packed_limit_bytes &&
                (stats->limit_bytes == 0 ||
                 stats->allocated_bytes + stats->cached_bytes + bytes <=
                     stats->limit_bytes);
    pthread_mutex_unlock(&pool->mutex);
    return fits;
}

void packed_copy_set_block(struct packed_copy *copy, struct block *block,
                           uint64_t bytes)
{
    struct pool *pool = pool_of(copy);
    pthread_mutex_lock(&pool->mutex);
    pool->stats.allocated_bytes -= block->bytes;
    pool->stats.cached_bytes += block->bytes;
    pool->packed_bytes += block->bytes;
    copy->memory.bytes = bytes;
    block_attach(block, &copy->memory);
    pthread_mutex_unlock(&pool->mutex);
}

void packed_copy_finish(struct packed_copy *copy, bool is_packed)
{
    struct pool *pool = pool_of(copy);
    pthread_mutex_lock(&pool->mutex);
    copy->is_packed = is_packed;
    if (!is_packed) {
        memory_drop_for_others(copy);
        copy->users--;
    }
    pthread_mutex_unlock(&pool->mutex);
}
