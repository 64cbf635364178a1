/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded and failing allocations; see heap_tracking.h. */
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

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/last_error.h"

/* The names of glibc's own functions for a replacement of malloc. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

#define LIBRARIES 4
#define BUCKETS 4096u
#define BLOCKS 65536u
#define FRAMES 12
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
/* Since heap_fail: allocations, and those that failed. */
static uint64_t counted, failed, fail_nth, fail_times;
static void *failure[FRAMES]; /* The stack of the first failure. */
static int failure_depth;
/* The number of calls of the library that this thread is in; and nonzero while
 * this thread is in the functions below. */
static __thread int call_depth, in_wrapper;

/* ---- which allocations are recorded ---- */

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

void heap_call_enter(void)
{
    call_depth++;
}

void heap_call_leave(void)
{
    call_depth--;
}

static bool is_recorded(const void *caller)
{
    const struct link_map *library;

    if (in_wrapper > 0 ||
        (call_depth == 0 && !__atomic_load_n(&libraries[0], __ATOMIC_ACQUIRE)))
        return false;
    library = library_of(caller);
    if (call_depth > 0)
        return !library || (!strstr(library->l_name, "tandem-simulated.so") &&
                            !strstr(library->l_name, "/libopenblas"));
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

/* ---- failures ---- */

static int stack_take(void **frames)
{
    int depth;

    in_wrapper++; /* The first call of backtrace() loads libraries. */
    depth = backtrace(frames, FRAMES);
    in_wrapper--;
    return depth;
}

void heap_fail(uint64_t nth, uint64_t times)
{
    failure_depth = stack_take(failure);
    failure_depth = 0;
    counted = failed = 0;
    fail_nth = nth;
    fail_times = times;
}

uint64_t heap_failed(void)
{
    return failed;
}

void heap_failure_print(void)
{
    if (failure_depth > 0)
        backtrace_symbols_fd(failure, failure_depth, STDERR_FILENO);
}

/* Counts an allocation that is recorded. Returns true if it must fail. */
static bool must_fail(const void *caller)
{
    bool fail;

    if (!is_recorded(caller))
        return false;
    pthread_mutex_lock(&mutex);
    counted++;
    fail =
        fail_nth != 0 && counted >= fail_nth && counted - fail_nth < fail_times;
    if (fail && failed++ == 0)
        failure_depth = stack_take(failure);
    pthread_mutex_unlock(&mutex);
    return fail;
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
    if (!memory || bytes == LAST_ERROR_BYTES || !is_recorded(caller))
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

/* Returns what is forgotten: a block with memory NULL if it is not recorded. */
static struct block block_remove(const void *memory)
{
    struct block **at = bucket_of(memory), *found, removed = {.memory = NULL};

    if (!memory || heap_blocks() == 0)
        return removed;
    pthread_mutex_lock(&mutex);
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    found = *at;
    if (found) {
        removed = *found;
        live--;
        live_bytes -= found->bytes;
        *at = found->next;
        found->next = unused;
        unused = found;
    }
    pthread_mutex_unlock(&mutex);
    return removed;
}

/* ---- replacements of the C library's functions ---- */

#define CALLER __builtin_return_address(0)
#define EXPORT __attribute__((visibility("default")))

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

EXPORT void *malloc(size_t bytes)
{
    return must_fail(CALLER) ? no_memory()
                             : block_add(__libc_malloc(bytes), bytes, CALLER);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    return must_fail(CALLER)
               ? no_memory()
               : block_add(__libc_calloc(count, bytes), count * bytes, CALLER);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    struct block old;
    void *moved;

    if (bytes > 0 && must_fail(CALLER))
        return no_memory();
    /* The block goes first: another thread may get its address at once. */
    old = block_remove(memory);
    moved = __libc_realloc(memory, bytes);
    if (moved || bytes == 0 || !old.memory)
        return block_add(moved, bytes, CALLER);
    block_add(memory, old.bytes, old.caller);
    return NULL;
}

EXPORT void free(void *memory)
{
    block_remove(memory);
    __libc_free(memory);
}

static void *memalign_recorded(size_t alignment, size_t bytes,
                               const void *caller)
{
    void *memory;

    if (must_fail(caller))
        return no_memory();
    memory = __libc_memalign(alignment, bytes);
    return alignment == POOL_ALIGNMENT ? memory
                                       : block_add(memory, bytes, caller);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign_recorded(alignment, bytes, CALLER);
}

EXPORT int posix_memalign(void **out_memory, size_t alignment, size_t bytes)
{
    void *memory = memalign_recorded(alignment, bytes, CALLER);

    if (!memory)
        return ENOMEM;
    *out_memory = memory;
    return 0;
}

EXPORT char *strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy;

    if (must_fail(CALLER))
        return no_memory();
    copy = block_add(__libc_malloc(bytes), bytes, CALLER);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

EXPORT int pthread_create(pthread_t *out_thread,
                          const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");

    if (must_fail(CALLER))
        return EAGAIN;
    memcpy(&real, &symbol, sizeof real);
    return real(out_thread, attributes, start, argument);
}

EXPORT void *dlopen(const char *path, int mode)
{
    static void *(*real)(const char *, int);
    void *symbol = dlsym(RTLD_NEXT, "dlopen"), *library;

    if (must_fail(CALLER))
        return NULL;
    memcpy(&real, &symbol, sizeof real);
    in_wrapper++;
    library = real(path, mode);
    in_wrapper--;
    return library;
}

#endif
