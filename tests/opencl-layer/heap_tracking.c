/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks heap blocks of the tested libraries; see heap_tracking.h. */
#include <config.h>

#include "heap_tracking.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#ifdef SANITIZED

void heap_watch(const void *address)
{
    (void)address;
}

uint64_t heap_blocks(void)
{
    return 0;
}

uint64_t heap_bytes(void)
{
    return 0;
}

void heap_print(void)
{
}

#else

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/last_error.h"

/* The names of glibc's own functions for a replacement of malloc. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

#define LIBRARIES 4
#define BUCKETS 4096u
#define BLOCKS 16384u
/* Only pools of handles have this alignment. */
#define POOL_ALIGNMENT 64u

struct block {
    void *memory;
    const void *caller;
    size_t bytes;
    struct block *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct link_map *libraries[LIBRARIES];
static struct block blocks[BLOCKS], *unused, *buckets[BUCKETS];
static uint32_t taken; /* The number of blocks ever used. */
static uint64_t live, live_bytes;

static const struct link_map *library_of(const void *address)
{
    struct dl_find_object object;

    if (_dl_find_object((void *)(uintptr_t)address, &object) != 0)
        return NULL;
    return object.dlfo_link_map;
}

void heap_watch(const void *address)
{
    const struct link_map *library = library_of(address);
    int at = 0;

    while (at < LIBRARIES - 1 && libraries[at])
        at++;
    __atomic_store_n(&libraries[at], library, __ATOMIC_RELEASE);
}

static bool watched(const void *caller)
{
    const struct link_map *library;

    if (!__atomic_load_n(&libraries[0], __ATOMIC_ACQUIRE))
        return false;
    library = library_of(caller);
    for (int i = 0; library && i < LIBRARIES; i++)
        if (__atomic_load_n(&libraries[i], __ATOMIC_ACQUIRE) == library)
            return true;
    return false;
}

uint64_t heap_blocks(void)
{
    return __atomic_load_n(&live, __ATOMIC_RELAXED);
}

uint64_t heap_bytes(void)
{
    return __atomic_load_n(&live_bytes, __ATOMIC_RELAXED);
}

void heap_print(void)
{
    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (const struct block *at = buckets[i]; at; at = at->next) {
            const struct link_map *library = library_of(at->caller);

            fprintf(stderr, "  %zu bytes from %s+%#zx\n", at->bytes,
                    library ? library->l_name : "",
                    library ? (size_t)((uintptr_t)at->caller - library->l_addr)
                            : 0);
        }
    pthread_mutex_unlock(&mutex);
}

/* ---- the table ---- */

static struct block **bucket_of(const void *memory)
{
    return &buckets[((uintptr_t)memory >> 4) * 2654435761u % BUCKETS];
}

static void *block_add(void *memory, size_t bytes, const void *caller)
{
    struct block **bucket = bucket_of(memory), *block;

    /* A thread keeps its error message until it ends, at an unknown time. */
    if (!memory || bytes == LAST_ERROR_BYTES || !watched(caller))
        return memory;
    pthread_mutex_lock(&mutex);
    block = unused;
    if (block)
        unused = block->next;
    else if (taken < BLOCKS)
        block = &blocks[taken++];
    else
        abort();
    *block = (struct block){memory, caller, bytes, *bucket};
    *bucket = block;
    live++;
    live_bytes += bytes;
    pthread_mutex_unlock(&mutex);
    return memory;
}

static void block_remove(const void *memory)
{
    struct block **at = bucket_of(memory), *found;

    if (!memory || heap_blocks() == 0)
        return;
    pthread_mutex_lock(&mutex);
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    found = *at;
    if (found) {
        live--;
        live_bytes -= found->bytes;
        *at = found->next;
        found->next = unused;
        unused = found;
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- replacements of the C library's functions ---- */

#define CALLER __builtin_return_address(0)
#define EXPORT __attribute__((visibility("default")))

EXPORT void *malloc(size_t bytes)
{
    return block_add(__libc_malloc(bytes), bytes, CALLER);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    return block_add(__libc_calloc(count, bytes), count * bytes, CALLER);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    void *moved;

    /* The block goes first: another thread may get its address at once. */
    block_remove(memory);
    moved = __libc_realloc(memory, bytes);
    return block_add(moved, bytes, CALLER);
}

EXPORT void free(void *memory)
{
    block_remove(memory);
    __libc_free(memory);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = __libc_memalign(alignment, bytes);

    return alignment == POOL_ALIGNMENT ? memory
                                       : block_add(memory, bytes, CALLER);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return block_add(__libc_memalign(alignment, bytes), bytes, CALLER);
}

EXPORT int posix_memalign(void **out_memory, size_t alignment, size_t bytes)
{
    void *memory = __libc_memalign(alignment, bytes);

    if (!memory)
        return ENOMEM;
    *out_memory = block_add(memory, bytes, CALLER);
    return 0;
}

EXPORT char *strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = block_add(__libc_malloc(bytes), bytes, CALLER);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

#endif
