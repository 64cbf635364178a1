/* SPDX-License-Identifier: Apache-2.0 */
/* Counted and failing allocations; see failing_malloc.h. */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_malloc.h"

/* The names of glibc's own functions for a replacement of malloc. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

#define BLOCKS 65536u /* a power of two */
#define FRAMES 12

struct block {
    void *memory;
    int depth;
    void *frames[FRAMES];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[BLOCKS]; /* open addressing, linear */
static uint64_t live, counted, failed, fail_at;
static enum allocation_mode fail_mode;
static struct block first_failure;
static bool traced;
/*
 * Number of library calls that this thread is in; and nonzero while this
 * thread is in the functions below.
 */
static __thread int call_depth, in_wrapper;

void allocation_trace(void)
{
    traced = true;
}

void allocation_fail(uint64_t n, enum allocation_mode mode)
{
    void *frames[2];

    /* The first call of backtrace() loads libraries. */
    in_wrapper++;
    backtrace(frames, 2);
    in_wrapper--;
    counted = failed = 0;
    fail_at = n;
    fail_mode = mode;
}

uint64_t allocation_failed(void)
{
    return failed;
}

uint64_t allocation_live(void)
{
    return live;
}

void allocation_enter(void)
{
    call_depth++;
}

void allocation_leave(void)
{
    call_depth--;
}

/* Returns true if this project, or code that it called, asks for memory. */
static bool is_caller_counted(const void *caller)
{
    static const char *const others[] = {"tandem-simulated.so", "/libopenblas"};
    struct dl_find_object object;

    if (call_depth == 0 || in_wrapper > 0)
        return false;
    if (_dl_find_object((void *)(uintptr_t)caller, &object) != 0)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strstr(object.dlfo_link_map->l_name, others[i]) != NULL)
            return false;
    }
    return true;
}

static void frames_take(struct block *block)
{
    in_wrapper++;
    block->depth = backtrace(block->frames, FRAMES);
    in_wrapper--;
}

/* Counts an allocation and returns true if it must fail. */
static bool allocation_must_fail(void)
{
    bool fail;

    pthread_mutex_lock(&mutex);
    counted++;
    fail = fail_at != 0 && (fail_mode == ALLOCATION_FROM ? counted >= fail_at
                                                         : counted == fail_at);
    if (fail && failed++ == 0)
        frames_take(&first_failure);
    pthread_mutex_unlock(&mutex);
    return fail;
}

static uint32_t place_of(const void *memory)
{
    const uint64_t hash =
        (uint64_t)(uintptr_t)memory * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(hash >> 48) % BLOCKS;
}

static void *block_add(void *memory)
{
    uint32_t i = place_of(memory);

    if (memory == NULL)
        return NULL;
    pthread_mutex_lock(&mutex);
    if (live == BLOCKS / 2)
        abort();
    while (blocks[i].memory != NULL)
        i = (i + 1) % BLOCKS;
    blocks[i].memory = memory;
    blocks[i].depth = 0;
    if (traced)
        frames_take(&blocks[i]);
    live++;
    pthread_mutex_unlock(&mutex);
    return memory;
}

/* Forgets a block. Returns true if the block was one of the counted blocks. */
static bool block_remove(const void *memory)
{
    uint32_t i = place_of(memory), hole;

    if (memory == NULL)
        return false;
    pthread_mutex_lock(&mutex);
    while (blocks[i].memory != NULL && blocks[i].memory != memory)
        i = (i + 1) % BLOCKS;
    if (blocks[i].memory == NULL) {
        pthread_mutex_unlock(&mutex);
        return false;
    }
    live--;
    /* Entries behind the hole move up if a search would no longer find them. */
    for (hole = i;;) {
        uint32_t home;

        i = (i + 1) % BLOCKS;
        if (blocks[i].memory == NULL)
            break;
        home = place_of(blocks[i].memory);
        if ((i - home) % BLOCKS >= (i - hole) % BLOCKS) {
            blocks[hole] = blocks[i];
            hole = i;
        }
    }
    blocks[hole].memory = NULL;
    pthread_mutex_unlock(&mutex);
    return true;
}

void allocation_failure_print(void)
{
    if (first_failure.depth > 0)
        backtrace_symbols_fd(first_failure.frames, first_failure.depth,
                             STDERR_FILENO);
}

void allocation_live_print(void)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].memory == NULL || blocks[i].depth == 0)
            continue;
        backtrace_symbols_fd(blocks[i].frames, blocks[i].depth, STDERR_FILENO);
        (void)!write(STDERR_FILENO, "--\n", 3);
    }
}

/* ---- the process's allocator ---- */

#define CALLER __builtin_return_address(0)

/* The dynamic linker finds these definitions before glibc's. */
#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
    if (!is_caller_counted(CALLER))
        return __libc_malloc(bytes);
    if (allocation_must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    return block_add(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    if (!is_caller_counted(CALLER))
        return __libc_calloc(count, bytes);
    if (allocation_must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    return block_add(__libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    const bool counts = is_caller_counted(CALLER);
    bool known;
    void *grown;

    if (counts && bytes > 0 && allocation_must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    known = block_remove(memory);
    grown = __libc_realloc(memory, bytes);
    if (grown != NULL)
        return known || counts ? block_add(grown) : grown;
    if (known && bytes > 0)
        block_add(memory);
    return NULL;
}

void free(void *memory)
{
    if (memory != NULL && __atomic_load_n(&live, __ATOMIC_RELAXED) > 0)
        block_remove(memory);
    __libc_free(memory);
}

static void *memalign_counted(const void *caller, size_t alignment,
                              size_t bytes)
{
    if (!is_caller_counted(caller))
        return __libc_memalign(alignment, bytes);
    if (allocation_must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    return block_add(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign_counted(CALLER, alignment, bytes);
}

int posix_memalign(void **out_memory, size_t alignment, size_t bytes)
{
    void *memory = memalign_counted(CALLER, alignment, bytes);

    if (memory == NULL)
        return ENOMEM;
    *out_memory = memory;
    return 0;
}

int pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                   void *(*start)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);

    if (is_caller_counted(CALLER) && allocation_must_fail())
        return EAGAIN;
    if (real == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_create");

        memcpy(&real, &symbol, sizeof real);
    }
    return real(out_thread, attributes, start, argument);
}

void *dlopen(const char *path, int mode)
{
    static void *(*real)(const char *, int);
    void *object;

    if (is_caller_counted(CALLER) && allocation_must_fail())
        return NULL;
    if (real == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "dlopen");

        memcpy(&real, &symbol, sizeof real);
    }
    in_wrapper++;
    object = real(path, mode);
    in_wrapper--;
    return object;
}

#pragma GCC visibility pop
