/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and their memory blocks.  There are four size classes per power of
 * two, each with a list of free blocks.  Free blocks are cached until a trim,
 * the memory limit or a failed allocation releases them.  Any thread may call;
 * the device's mutex guards the lists and the statistics. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/last_error.h"
#include "common/struct_size.h"
#include "cpu/objects.h"

#define BLOCK_ALIGNMENT 64u
#define PAGE_ALIGNMENT 4096u

/* Address of imports of 0 bytes, because arithmetic on NULL is invalid. */
static unsigned char empty_import[1];

uint64_t memory_of_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

/* Returns the bytes that Linux can allocate without swapping, or else the bytes
 * of unused pages, or 0 if the system does not tell. */
static uint64_t memory_available(void)
{
    uint64_t kib = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (kib == 0 && file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtoull(line + 13, NULL, 10);
    if (file != NULL)
        fclose(file);
    if (kib != 0)
        return kib * 1024;
    long pages = sysconf(_SC_AVPHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

static uint64_t block_align(uint64_t bytes)
{
    return (bytes + BLOCK_ALIGNMENT - 1) & ~(uint64_t)(BLOCK_ALIGNMENT - 1);
}

/* Returns the block size of a size class in bytes.  The sizes are 64, 80, 96,
 * 112, 128, 160, ..., rounded up to multiples of BLOCK_ALIGNMENT. */
static uint64_t class_bytes(uint32_t number)
{
    return block_align((uint64_t)(4 + number % 4) << (number / 4 + 4));
}

/* Returns the smallest size class whose blocks hold `bytes` bytes. */
static uint32_t size_class(uint64_t bytes)
{
    if (bytes <= BLOCK_ALIGNMENT)
        return 0;
    uint32_t log = 63u - (uint32_t)__builtin_clzll(bytes - 1);
    return (log - 6) * 4 + (uint32_t)((bytes - 1) >> (log - 2)) - 3;
}

static void *block_new(uint64_t bytes)
{
    void *block = NULL;
    size_t alignment =
        bytes < PAGE_ALIGNMENT ? BLOCK_ALIGNMENT : PAGE_ALIGNMENT;
    int error = posix_memalign(&block, alignment, (size_t)bytes);
    return error == 0 ? block : NULL;
}

/* Frees cached blocks, the largest first, until at most keep_bytes bytes are
 * cached.  The caller holds the device's mutex. */
static void cache_trim(struct memory *memory, uint64_t keep_bytes)
{
    for (uint32_t i = MEMORY_CLASSES; i-- > 0;) {
        while (memory->free[i] != NULL &&
               memory->stats.cached_bytes > keep_bytes) {
            struct free_block *block = memory->free[i];
            memory->free[i] = block->next;
            memory->stats.cached_bytes -= class_bytes(i);
            free(block);
        }
    }
}

/* Allocates a block of exactly `bytes` bytes from the system.  Frees cached
 * blocks if the memory limit requires it or the system refuses the block.
 * Returns NULL on failure.  The caller holds the device's mutex. */
static void *block_take(struct memory *memory, uint64_t bytes)
{
    struct tandem_memory_stats *stats = &memory->stats;
    if (stats->limit_bytes != 0) {
        if (bytes > stats->limit_bytes ||
            stats->allocated_bytes > stats->limit_bytes - bytes)
            return NULL;
        if (stats->allocated_bytes + stats->cached_bytes >
            stats->limit_bytes - bytes)
            cache_trim(memory,
                       stats->limit_bytes - bytes - stats->allocated_bytes);
    }
    void *block = block_new(bytes);
    if (block == NULL && stats->cached_bytes > 0) {
        cache_trim(memory, 0);
        block = block_new(bytes);
    }
    return block;
}

/* Assigns a cached or new block of at least `bytes` bytes to the buffer and
 * counts the allocation.
 * Returns false if memory is exhausted.  The caller holds the device's mutex.
 */
static bool buffer_fill(struct memory *memory, struct tandem_buffer *buffer,
                        uint64_t bytes)
{
    struct tandem_memory_stats *stats = &memory->stats;
    uint32_t number = size_class(bytes);
    uint64_t block_bytes = class_bytes(number);
    struct free_block *block = memory->free[number];
    if (block != NULL) {
        memory->free[number] = block->next;
        stats->cached_bytes -= block_bytes;
    } else {
        block = block_take(memory, block_bytes);
        if (block == NULL) {
            /* If the class size is too large, try the size of the buffer. */
            number = MEMORY_CLASSES;
            block_bytes = block_align(bytes);
            block = block_take(memory, block_bytes);
        }
        if (block == NULL)
            return false;
        stats->driver_alloc_count++;
    }
    buffer->base = (void *)block;
    buffer->block_bytes = block_bytes;
    buffer->size_class = number;
    stats->allocated_bytes += block_bytes;
    stats->alloc_count++;
    stats->buffer_count++;
    if (stats->allocated_bytes + stats->cached_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->allocated_bytes + stats->cached_bytes;
    return true;
}

static enum tandem_status alloc_aligned(struct tandem_device *device,
                                        uint64_t bytes, uint32_t alignment,
                                        struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (bytes > device->machine_bytes)
        return memory_error(
            "alloc: %llu bytes are more than the %llu bytes of physical memory",
            (unsigned long long)bytes,
            (unsigned long long)device->machine_bytes);
    struct tandem_buffer *buffer = handle_new(&buffer_pool);
    if (buffer == NULL)
        return memory_error("alloc: out of host memory");
    buffer->owned.device = device;
    buffer->bytes = bytes;
    pthread_mutex_lock(&device->mutex);
    /* Blocks of a page or more begin at a page. */
    bool filled = buffer_fill(
        &device->memory, buffer,
        alignment > BLOCK_ALIGNMENT && bytes < PAGE_ALIGNMENT ? PAGE_ALIGNMENT
                                                              : bytes);
    if (filled)
        owned_link(&device->buffers, &buffer->owned);
    struct tandem_memory_stats stats = device->memory.stats;
    pthread_mutex_unlock(&device->mutex);
    if (!filled) {
        handle_free(&buffer_pool, buffer);
        return memory_error(
            "alloc: cannot allocate %llu bytes; %llu bytes are in use and "
            "memory_limit_bytes is %llu (0 means no limit)",
            (unsigned long long)bytes,
            (unsigned long long)stats.allocated_bytes,
            (unsigned long long)stats.limit_bytes);
    }
    *out_buffer = buffer;
    return TANDEM_OK;
}

enum tandem_status memory_alloc(struct tandem_device *device, uint64_t bytes,
                                struct tandem_buffer **out_buffer)
{
    return alloc_aligned(device, bytes, BLOCK_ALIGNMENT, out_buffer);
}

enum tandem_status
memory_alloc_options(struct tandem_device *device,
                     const struct tandem_alloc_options *options,
                     struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = alloc_options_check(options);
    if (status != TANDEM_OK)
        return status;
    if (options->alignment > PAGE_ALIGNMENT)
        return alloc_alignment_unsupported(options, PAGE_ALIGNMENT);
    return alloc_aligned(device, options->bytes, options->alignment,
                         out_buffer);
}

/* Adds the buffer's block to the cache.  Frees a block that has no size class.
 * The caller holds the device's mutex. */
static void block_return(struct memory *memory, struct tandem_buffer *buffer)
{
    struct free_block *block = (void *)buffer->base;
    memory->stats.buffer_count--;
    if (buffer->block_bytes == 0) /* imported */
        return;
    memory->stats.allocated_bytes -= buffer->block_bytes;
    if (buffer->size_class == MEMORY_CLASSES) {
        free(block);
        return;
    }
    block->next = memory->free[buffer->size_class];
    memory->free[buffer->size_class] = block;
    memory->stats.cached_bytes += buffer->block_bytes;
}

void memory_free(struct tandem_buffer *buffer)
{
    if (!handle_live(&buffer_pool, buffer))
        return;
    struct tandem_device *device = buffer->owned.device;
    pthread_mutex_lock(&device->mutex);
    owned_unlink(&device->buffers, &buffer->owned);
    block_return(&device->memory, buffer);
    pthread_mutex_unlock(&device->mutex);
    tandem_release_fn release = buffer->release;
    void *user = buffer->release_user;
    handle_free(&buffer_pool, buffer);
    /* The work that used the buffer ended in the call that started it. */
    if (release != NULL)
        release(user);
}

enum tandem_status memory_import_host(struct tandem_device *device,
                                      void *memory, uint64_t bytes,
                                      tandem_release_fn release, void *user,
                                      struct tandem_buffer **out_buffer)
{
    if (out_buffer == NULL)
        return argument_error("import_host: out_buffer is NULL");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (memory == NULL && bytes > 0)
        return argument_error(
            "import_host: memory is NULL, but the size is %llu bytes",
            (unsigned long long)bytes);
    if (bytes > UINTPTR_MAX - (uintptr_t)memory)
        return argument_error(
            "import_host: %llu bytes from memory on exceed the address space",
            (unsigned long long)bytes);
    struct tandem_buffer *buffer = handle_new(&buffer_pool);
    if (buffer == NULL)
        return memory_error("import_host: out of host memory");
    buffer->owned.device = device;
    buffer->base = bytes > 0 ? memory : empty_import;
    buffer->bytes = bytes;
    buffer->release = release;
    buffer->release_user = user;
    pthread_mutex_lock(&device->mutex);
    device->memory.stats.buffer_count++;
    owned_link(&device->buffers, &buffer->owned);
    pthread_mutex_unlock(&device->mutex);
    *out_buffer = buffer;
    return TANDEM_OK;
}

enum tandem_status memory_host_alloc(struct tandem_device *device,
                                     uint64_t bytes, void **out_memory)
{
    if (out_memory == NULL)
        return argument_error("host_alloc: out_memory is NULL");
    *out_memory = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (bytes > device->machine_bytes ||
        posix_memalign(out_memory, PAGE_ALIGNMENT,
                       bytes == 0 ? 1 : (size_t)bytes) != 0) {
        *out_memory = NULL;
        return memory_error("host_alloc: cannot allocate %llu bytes",
                            (unsigned long long)bytes);
    }
    return TANDEM_OK;
}

void memory_host_free(struct tandem_device *device, void *memory)
{
    (void)device;
    free(memory);
}

enum tandem_status memory_stats(struct tandem_device *device,
                                struct tandem_memory_stats *out_stats)
{
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    status = out_struct_check("memory_stats: out_stats", "tandem_memory_stats",
                              out_stats);
    if (status != TANDEM_OK)
        return status;
    pthread_mutex_lock(&device->mutex);
    struct tandem_memory_stats stats = device->memory.stats;
    pthread_mutex_unlock(&device->mutex);
    stats.free_bytes = memory_available();
    struct_size_fill(out_stats, &stats, sizeof stats);
    return TANDEM_OK;
}

enum tandem_status memory_trim(struct tandem_device *device,
                               uint64_t keep_bytes)
{
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    pthread_mutex_lock(&device->mutex);
    cache_trim(&device->memory, keep_bytes);
    pthread_mutex_unlock(&device->mutex);
    return TANDEM_OK;
}
