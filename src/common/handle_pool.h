/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of fixed-size objects whose addresses are the handles that callers get.
 * A freed handle stays readable forever and is recognized as freed. Free slots
 * are reused in FIFO order. A pool reuses slots only while more than
 * HANDLE_QUARANTINE slots are free, or if memory is out. May be called from any
 * thread. Each pool has one mutex. */
#ifndef TANDEM_COMMON_HANDLE_POOL_H
#define TANDEM_COMMON_HANDLE_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/backend.h>

#define HANDLE_QUARANTINE 64u

/* First member of every object in a pool. */
struct handle {
    uint32_t magic; /* pool->magic while the object is live, otherwise 0 */
    uint32_t reserved;
    struct handle *next; /* next object in the pool's free list */
};

/* Pool in static storage, initialized by HANDLE_POOL and never destroyed.
 * After a fork, its mutex is unlocked in the child. */
struct handle_pool {
    pthread_mutex_t mutex;
    size_t object_bytes;
    uint32_t magic; /* nonzero number, different for each kind of object */
    uint32_t free_count;
    struct handle *first_free, *last_free;
    struct handle_block *blocks;
    struct handle_pool *next; /* next pool in the list of all used pools */
    bool used;
};
#define HANDLE_POOL(type, magic_number)                                        \
    {                                                                          \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .object_bytes = sizeof(type),      \
        .magic = (magic_number),                                               \
    }

/* Returns a new live object that is zeroed, or NULL if memory is out. */
void *handle_new(struct handle_pool *pool);
/* Frees a live object or one hidden by handle_hide. NULL is allowed. */
void handle_free(struct handle_pool *pool, void *object);
/* Makes handle_live return false for a live object. The object keeps its slot
 * in the pool until the caller passes it to handle_free. */
static inline void handle_hide(void *object)
{
    ((struct handle *)object)->magic = 0;
}
/* Returns true if the object is not NULL and is a live object of this pool. */
static inline bool handle_live(const struct handle_pool *pool,
                               const void *object)
{
    return object != NULL && ((uintptr_t)object & 7u) == 0 &&
           ((const struct handle *)object)->magic == pool->magic;
}
/* Returns TANDEM_OK if `object` is a live object of the pool. Otherwise sets an
 * error that calls the object `name` and says that the handle is not `what`. */
enum tandem_status handle_check(const struct handle_pool *pool,
                                const void *object, const char *name,
                                const char *what);

#endif
