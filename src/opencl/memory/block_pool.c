/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates blocks of device memory; see block_pool.h. */
#include "opencl/memory/block_pool.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/memory/deferred_release.h"
#include "opencl/memory/packed_copy.h"

/* block_touch writes only to new blocks of at least this many bytes. */
#define MIN_TOUCHED_BYTES ((uint64_t)1 << 20)

/* If more than keep_bytes of memory are cached, drops the packed copies, then
 * removes cached blocks, the largest first, until at most keep_bytes are left.
 * Returns the list of removed blocks. */
static struct block *detach_cached(struct pool *pool, uint64_t keep_bytes)
{
    struct block *list = NULL;
    if (pool->stats.cached_bytes > keep_bytes)
        packed_copies_drop(pool);
    for (uint32_t i = SIZE_CLASS_COUNT; i-- > 0;)
        while (pool->stats.cached_bytes > keep_bytes &&
               pool->cached[i] != NULL) {
            struct block *block = block_take(pool, i, pool->cached[i]->bytes);
            block->next = list;
            list = block;
        }
    return list;
}

void pool_trim(struct tandem_device *device, uint64_t keep_bytes)
{
    pthread_mutex_lock(&device->pool.mutex);
    struct block *list = detach_cached(&device->pool, keep_bytes);
    pthread_mutex_unlock(&device->pool.mutex);
    blocks_release(list);
}

/* Writes to a large new block. GPU drivers allocate memory when a command first
 * uses it, so without this write a later command could fail for lack of memory.
 * If this returns NOT_READY, deferred_release.c owns block->mem. */
static enum tandem_status block_touch(struct tandem_device *device,
                                      const struct block *block,
                                      cl_int *out_code)
{
    const cl_uint zero = 0;
    cl_event event = NULL;
    *out_code = CL_SUCCESS;
    if (block->bytes < MIN_TOUCHED_BYTES ||
        device->hardware->info.kind == TANDEM_DEVICE_CPU)
        return TANDEM_OK;
    *out_code =
        clEnqueueFillBuffer(device->utility, block->mem, &zero, sizeof(zero), 0,
                            sizeof(zero), 0, NULL, &event);
    if (*out_code != CL_SUCCESS)
        return TANDEM_OK;
    return deferred_release_wait_mem(device, device->utility, block->mem, event,
                                     device_timeout_ns(device), out_code);
}

/* Sets the error message for a failed allocation of `requested` bytes. */
static enum tandem_status report_failure(struct tandem_device *device,
                                         uint64_t requested, cl_int code)
{
    const struct tandem_device_info *info = &device->hardware->info;
    enum tandem_status status = status_from_cl(device, code, "clCreateBuffer");
    if (status != TANDEM_OUT_OF_MEMORY || code == CL_OUT_OF_HOST_MEMORY)
        return status;
    if (requested > info->max_alloc_bytes)
        return last_error_set(
            status,
            "alloc: %llu bytes are more than the largest allocation of %s, "
            "%llu bytes (CL_DEVICE_MAX_MEM_ALLOC_SIZE): use smaller buffers",
            (unsigned long long)requested, info->name,
            (unsigned long long)info->max_alloc_bytes);
    return last_error_set(status,
                          "alloc: %s has no %llu bytes in one piece (limit "
                          "%llu): free buffers or use smaller ones",
                          info->name, (unsigned long long)requested,
                          (unsigned long long)info->max_alloc_bytes);
}

/* Allocates memory of block->bytes bytes for the block. */
static enum tandem_status memory_create(struct tandem_device *device,
                                        uint64_t requested, struct block *block)
{
    cl_int code = CL_SUCCESS;
    block->mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                (size_t)block->bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return report_failure(device, requested, code);
    enum tandem_status status = block_touch(device, block, &code);
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                              "alloc: %s has not provided %llu new bytes in "
                              "time: try again later, or close the device",
                              device->hardware->info.name,
                              (unsigned long long)block->bytes);
    if (status == TANDEM_OK && code != CL_SUCCESS)
        status = report_failure(device, requested, code);
    if (status != TANDEM_OK)
        clReleaseMemObject(block->mem);
    return status;
}

static enum tandem_status block_create(struct tandem_device *device,
                                       uint64_t requested, uint64_t bytes,
                                       uint32_t size_class,
                                       struct block **out_block)
{
    struct block *block = calloc(1, sizeof(*block));
    if (block == NULL)
        return memory_error("alloc: out of host memory");
    block->bytes = bytes;
    block->size_class = size_class;
    enum tandem_status status = memory_create(device, requested, block);
    if (status == TANDEM_OK)
        *out_block = block;
    else
        free(block);
    return status;
}

/* Checks that `bytes` more bytes fit the device's memory limit. To make room,
 * moves cached blocks to *out_excess. The caller must hold pool.mutex, and must
 * release *out_excess after unlocking the mutex. */
static enum tandem_status check_limit(struct tandem_device *device,
                                      uint64_t bytes, struct block **out_excess)
{
    struct tandem_memory_stats *stats = &device->pool.stats;
    uint64_t limit = stats->limit_bytes;
    *out_excess = NULL;
    if (limit == 0 ||
        stats->allocated_bytes + stats->cached_bytes + bytes <= limit)
        return TANDEM_OK;
    if (stats->allocated_bytes + bytes > limit)
        return memory_error("alloc: %llu bytes and the allocated %llu exceed "
                            "memory_limit_bytes = %llu",
                            (unsigned long long)bytes,
                            (unsigned long long)stats->allocated_bytes,
                            (unsigned long long)limit);
    *out_excess =
        detach_cached(&device->pool, limit - stats->allocated_bytes - bytes);
    /* Copies in use by a GEMM stay cached, so check the limit again. */
    if (stats->allocated_bytes + stats->cached_bytes + bytes <= limit)
        return TANDEM_OK;
    return memory_error("alloc: %llu bytes exceed memory_limit_bytes = %llu "
                        "while a GEMM uses packed operands",
                        (unsigned long long)bytes, (unsigned long long)limit);
}

static enum tandem_status
block_create_within_limit(struct tandem_device *device, uint64_t requested,
                          uint64_t bytes, uint32_t size_class,
                          struct block **out_block)
{
    struct pool *pool = &device->pool;
    struct block *excess;
    pthread_mutex_lock(&pool->mutex);
    enum tandem_status status = check_limit(device, bytes, &excess);
    if (status == TANDEM_OK)
        pool->stats.allocated_bytes += bytes;
    pthread_mutex_unlock(&pool->mutex);
    blocks_release(excess);
    if (status != TANDEM_OK)
        return status;
    status = block_create(device, requested, bytes, size_class, out_block);
    if (status == TANDEM_OUT_OF_MEMORY) {
        pool_trim(device, 0);
        compile_pool_end_idle(device);
        status = block_create(device, requested, bytes, size_class, out_block);
    }
    pthread_mutex_lock(&pool->mutex);
    if (status == TANDEM_OK) {
        pool->stats.driver_alloc_count++;
        (*out_block)->address = pool->next_address;
        /* Drivers align memory, too. */
        pool->next_address += (bytes + MAX_SLOT_ALIGNMENT - 1) /
                              MAX_SLOT_ALIGNMENT * MAX_SLOT_ALIGNMENT;
    } else {
        pool->stats.allocated_bytes -= bytes;
    }
    pthread_mutex_unlock(&pool->mutex);
    return status;
}

enum tandem_status block_acquire(struct tandem_device *device, uint64_t bytes,
                                 struct block **out_block)
{
    struct pool *pool = &device->pool;
    uint64_t block_bytes;
    uint32_t size_class = size_class_get(bytes, &block_bytes);
    *out_block = NULL;
    if (block_bytes == 0)
        return memory_error("alloc: no device has %llu bytes",
                            (unsigned long long)bytes);
    /* A rounded-up size must not exceed the device's maximum allocation. */
    uint64_t max_bytes = device->hardware->info.max_alloc_bytes;
    if (block_bytes > max_bytes && bytes <= max_bytes && bytes != 0)
        block_bytes = max_bytes;
    if (pool->exact_block_size)
        block_bytes = bytes != 0 ? bytes : 1;
    pthread_mutex_lock(&pool->mutex);
    struct block *block = block_take(pool, size_class, block_bytes);
    if (block != NULL)
        pool->stats.allocated_bytes += block->bytes;
    pthread_mutex_unlock(&pool->mutex);
    if (block == NULL)
        return block_create_within_limit(device, bytes, block_bytes, size_class,
                                         out_block);
    *out_block = block;
    return TANDEM_OK;
}
