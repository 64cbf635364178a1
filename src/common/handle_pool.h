/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of fixed-size objects that are handed to callers as handles.  A freed
 * handle stays readable for ever and is recognised as freed; its slot is
 * reused as late as possible (first freed, first reused, and only once
 * HANDLE_QUARANTINE slots are free).  Any thread; one mutex a pool.
 */
#ifndef TANDEM_COMMON_HANDLE_POOL_H
#define TANDEM_COMMON_HANDLE_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE_QUARANTINE 64u

/* First member of every object of a pool. */
struct handle {
    uint32_t magic; /* the pool's while live, else 0 */
    uint32_t reserved;
    struct handle *next; /* pool's own */
};

/* Static storage, initialised by HANDLE_POOL; never destroyed.  Its mutex is
 * free in the child of a fork, whatever other threads were doing. */
struct handle_pool {
    pthread_mutex_t mutex;
    size_t object_bytes;
    uint32_t magic; /* distinct for each kind of object, not 0 */
    uint32_t free_count;
    struct handle *first_free, *last_free;
    struct handle_block *blocks;
    struct handle_pool *next; /* of those that were used, see handle_pool.c */
    bool used;
};
#define HANDLE_POOL(type, magic_number)      \
    {                                        \
        .mutex = PTHREAD_MUTEX_INITIALIZER,  \
        .object_bytes = sizeof(type),        \
        .magic = (magic_number),             \
    }

/* A live object, zeroed but for its handle; NULL when memory is out. */
void *handle_new(struct handle_pool *pool);
/* NULL is accepted; object must be live, or hidden. */
void handle_free(struct handle_pool *pool, void *object);
/* A live object that no caller is to find again; it lives until handle_free, or
 * for ever. */
static inline void handle_hide(void *object)
{
    ((struct handle *)object)->magic = 0;
}
/* Whether object is a live object of this pool (NULL: false). */
static inline bool handle_live(const struct handle_pool *pool,
                               const void *object)
{
    return object != NULL && ((uintptr_t)object & 7u) == 0 &&
           ((const struct handle *)object)->magic == pool->magic;
}

#endif
