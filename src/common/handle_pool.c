/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the handle pools; see handle_pool.h. */
#include "common/handle_pool.h"
#include "common/atfork.h"
#include "common/last_error.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_OBJECTS 64u

/* Blocks are never freed, because freed handles must stay readable. */
struct handle_block {
    struct handle_block *next;
    _Alignas(64) unsigned char objects[];
};

static void push_free(struct handle_pool *pool, struct handle *object)
{
    object->magic = 0;
    object->next = NULL;
    if (pool->last_free != NULL)
        pool->last_free->next = object;
    else
        pool->first_free = object;
    pool->last_free = object;
    pool->free_count++;
}

/* Adds free slots. pool->mutex must be held. Returns false if memory is out. */
static bool add_block(struct handle_pool *pool)
{
    size_t stride = (pool->object_bytes + 63u) & ~(size_t)63u;
    size_t bytes = sizeof(struct handle_block) + BLOCK_OBJECTS * stride;
    struct handle_block *block =
        aligned_alloc(64, (bytes + 63u) & ~(size_t)63u);
    if (block == NULL)
        return false;
    memset(block, 0, bytes);
    block->next = pool->blocks;
    pool->blocks = block;
    for (size_t i = 0; i < BLOCK_OBJECTS; i++)
        push_free(pool, (struct handle *)(block->objects + i * stride));
    return true;
}

/* ---- forks ---- */

/* List of the pools of this shared object that are in use. All mutexes are held
 * during a fork, so that the child finds the pools unlocked and consistent. */
static pthread_mutex_t pools_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle_pool *pools;
static struct atfork pools_atfork = ATFORK;

static void pools_lock(void)
{
    pthread_mutex_lock(&pools_mutex);
    for (struct handle_pool *pool = pools; pool != NULL; pool = pool->next)
        pthread_mutex_lock(&pool->mutex);
}

static void pools_unlock(void)
{
    for (struct handle_pool *pool = pools; pool != NULL; pool = pool->next)
        pthread_mutex_unlock(&pool->mutex);
    pthread_mutex_unlock(&pools_mutex);
}

/* Adds the pool to the list `pools`. Returns false if memory is out. */
static bool pool_enlist(struct handle_pool *pool)
{
    if (!atfork_once(&pools_atfork, pools_lock, pools_unlock, pools_unlock))
        return false;
    pthread_mutex_lock(&pools_mutex);
    if (!pool->used) {
        pool->next = pools;
        pools = pool;
        __atomic_store_n(&pool->used, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&pools_mutex);
    return true;
}

/* ---- objects ---- */

void *handle_new(struct handle_pool *pool)
{
    if (!__atomic_load_n(&pool->used, __ATOMIC_ACQUIRE) && !pool_enlist(pool))
        return NULL;
    pthread_mutex_lock(&pool->mutex);
    while (pool->free_count <= HANDLE_QUARANTINE && add_block(pool))
        continue;
    /* If add_block failed, reuse a recently freed slot instead of failing. */
    if (pool->first_free == NULL) {
        pthread_mutex_unlock(&pool->mutex);
        return NULL;
    }
    struct handle *object = pool->first_free;
    pool->first_free = object->next;
    if (pool->first_free == NULL)
        pool->last_free = NULL;
    pool->free_count--;
    memset(object, 0, pool->object_bytes);
    object->magic = pool->magic;
    pthread_mutex_unlock(&pool->mutex);
    return object;
}

void handle_free(struct handle_pool *pool, void *object)
{
    if (object == NULL)
        return;
    pthread_mutex_lock(&pool->mutex);
    push_free(pool, object);
    pthread_mutex_unlock(&pool->mutex);
}

enum tandem_status handle_check(const struct handle_pool *pool,
                                const void *object, const char *name,
                                const char *what)
{
    if (handle_live(pool, object))
        return TANDEM_OK;
    if (object == NULL)
        return argument_error("the %s handle is NULL", name);
    return argument_error("the %s handle is invalid: not %s", name, what);
}
