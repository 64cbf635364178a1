/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of device memory and their cache; see block_pool.h. */
#include "opencl/memory/block_pool.h"

#include <stdlib.h>

#include "opencl/device/device.h"
#include "opencl/memory/pack_cache.h"
#include "opencl/memory/deferred_release.h"
#include "opencl/device/cl_status.h"

/* The smallest block; also keeps neighbours off one cache line. */
#define SMALLEST_BYTES 512u
/* Blocks from this size on are made real at once. */
#define TOUCH_BYTES ((uint64_t)1 << 20)

/* The class of bytes and the size of its blocks; 0 on overflow. */
static uint32_t class_of(uint64_t bytes, uint64_t *out_bytes)
{
    *out_bytes = 0;
    if (bytes < SMALLEST_BYTES)
        bytes = SMALLEST_BYTES;
    if (bytes > UINT64_MAX / 4)
        return 0;
    uint32_t log2 = 63u - (uint32_t)__builtin_clzll(bytes);
    uint64_t step = (uint64_t)1 << (log2 - 3);
    uint64_t steps = (bytes + step - 1) / step; /* 8 to 16 */
    *out_bytes = steps * step;
    return log2 * 8u + (uint32_t)(steps - 8u);
}

/* NULL where there is none; of the pool's own sizes all of a class are of as
 * many bytes. */
static struct block *block_take(struct pool *pool, uint32_t size_class,
                                uint64_t bytes)
{
    struct block *block = pool->cached[size_class];
    if (block != NULL && block->bytes != bytes)
        return NULL;
    if (block != NULL) {
        pool->cached[size_class] = block->next;
        pool->stats.cached_bytes -= block->bytes;
    }
    return block;
}

void block_return(struct pool *pool, struct block *block)
{
    block->next = pool->cached[block->size_class];
    pool->cached[block->size_class] = block;
    pool->stats.cached_bytes += block->bytes;
}

void block_set_last_use(struct block *block,
                        const struct tandem_buffer *buffer)
{
    uint64_t stream = atomic_load(&buffer->used_stream);
    /* If the buffer was never used, the block keeps the use of the owner
     * before. */
    if (stream != 0) {
        block->last_stream = stream;
        block->last_seqno = atomic_load(&buffer->used_seqno);
    }
}

/* The driver keeps memory that work under way still uses. */
static void block_release(struct block *block)
{
    clReleaseMemObject(block->mem);
    free(block);
}

/* A driver may wait in it: with nothing locked. */
static void blocks_release(struct block *list)
{
    while (list != NULL) {
        struct block *next = list->next;
        block_release(list);
        list = next;
    }
}

/* Detaches cached blocks, the largest first, until keep_bytes are left; before
 * that, all that is kept becomes such blocks. */
static struct block *detach(struct pool *pool, uint64_t keep_bytes)
{
    struct block *list = NULL;
    if (pool->stats.cached_bytes > keep_bytes)
        pack_cache_evict_unused(pool);
    for (uint32_t i = POOL_CLASSES; i-- > 0;)
        while (pool->stats.cached_bytes > keep_bytes &&
               pool->cached[i] != NULL) {
            struct block *block =
                block_take(pool, i, pool->cached[i]->bytes);
            block->next = list;
            list = block;
        }
    return list;
}

void pool_trim(struct tandem_device *device, uint64_t keep_bytes)
{
    pthread_mutex_lock(&device->pool.mutex);
    struct block *list = detach(&device->pool, keep_bytes);
    pthread_mutex_unlock(&device->pool.mutex);
    blocks_release(list);
}

/* Drivers of GPUs allocate at first use; a large block is used here, so that
 * it is alloc that fails, and not the work of a stream.  NOT_READY: the memory
 * is no longer the caller's. */
static enum tandem_status block_touch(struct tandem_device *device, cl_mem mem,
                                      uint64_t bytes, cl_int *out_code)
{
    const cl_uint zero = 0;
    cl_event event = NULL;
    *out_code = CL_SUCCESS;
    if (bytes < TOUCH_BYTES || device->hardware->info.kind == TANDEM_DEVICE_CPU)
        return TANDEM_OK;
    *out_code = clEnqueueFillBuffer(device->utility, mem, &zero, sizeof(zero),
                                    0, sizeof(zero), 0, NULL, &event);
    if (*out_code != CL_SUCCESS)
        return TANDEM_OK;
    return deferred_release_wait_mem(device, device->utility, mem, event,
                                     device_timeout_ns(device), out_code);
}

/* asked: the bytes that the caller asked for, of a block of as many or more. */
static enum tandem_status no_block(struct tandem_device *device, uint64_t asked,
                                   cl_int code)
{
    const struct tandem_device_info *info = &device->hardware->info;
    enum tandem_status status = status_from_cl(device, code, "clCreateBuffer");
    if (status != TANDEM_OUT_OF_MEMORY || code == CL_OUT_OF_HOST_MEMORY)
        return status;
    if (asked > info->max_alloc_bytes)
        return last_error_set(
            status,
            "alloc: %llu bytes are more than the largest allocation of %s, "
            "%llu bytes (CL_DEVICE_MAX_MEM_ALLOC_SIZE): use smaller buffers",
            (unsigned long long)asked, info->name,
            (unsigned long long)info->max_alloc_bytes);
    return last_error_set(
        status,
        "alloc: %s has no %llu bytes in one piece (limit %llu): free buffers "
        "or use smaller ones",
        info->name, (unsigned long long)asked,
        (unsigned long long)info->max_alloc_bytes);
}

/* Memory of the driver that is there. */
static enum tandem_status memory_make(struct tandem_device *device,
                                      uint64_t asked, uint64_t bytes,
                                      cl_mem *out_mem)
{
    cl_int code = CL_SUCCESS;
    *out_mem = NULL;
    cl_mem mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                (size_t)bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return no_block(device, asked, code);
    enum tandem_status status = block_touch(device, mem, bytes, &code);
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                           "alloc: %s has not touched %llu new bytes in time; "
                           "the work before that may never end: try again "
                           "later, or close the device",
                           device->hardware->info.name,
                           (unsigned long long)bytes);
    if (status == TANDEM_OK && code != CL_SUCCESS)
        status = no_block(device, asked, code);
    if (status == TANDEM_OK)
        *out_mem = mem;
    else
        clReleaseMemObject(mem);
    return status;
}

static enum tandem_status driver_block(struct tandem_device *device,
                                       uint64_t asked, uint64_t bytes,
                                       uint32_t size_class,
                                       struct block **out_block)
{
    *out_block = NULL;
    struct block *block = calloc(1, sizeof(*block));
    if (block == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                              "alloc: out of host memory");
    block->bytes = bytes;
    block->size_class = size_class;
    enum tandem_status status = memory_make(device, asked, bytes, &block->mem);
    if (status == TANDEM_OK)
        *out_block = block;
    else
        free(block);
    return status;
}

/* Called with the pool locked.  *out_over: what is to be released for it. */
static enum tandem_status reserve(struct tandem_device *device, uint64_t bytes,
                                  struct block **out_over)
{
    struct tandem_memory_stats *stats = &device->pool.stats;
    uint64_t cap = stats->limit_bytes;
    *out_over = NULL;
    if (cap == 0 || stats->allocated_bytes + stats->cached_bytes + bytes <= cap)
        return TANDEM_OK;
    if (stats->allocated_bytes + bytes > cap)
        return last_error_set(
            TANDEM_OUT_OF_MEMORY,
            "alloc: %llu bytes more than the %llu in use would "
            "pass memory_limit_bytes = %llu",
            (unsigned long long)bytes,
            (unsigned long long)stats->allocated_bytes,
            (unsigned long long)cap);
    *out_over = detach(&device->pool, cap - stats->allocated_bytes - bytes);
    /* What a product takes of what is kept stays. */
    if (stats->allocated_bytes + stats->cached_bytes + bytes <= cap)
        return TANDEM_OK;
    return last_error_set(TANDEM_OUT_OF_MEMORY,
                       "alloc: %llu bytes more would pass memory_limit_bytes = "
                       "%llu while a product takes what is kept for it",
                       (unsigned long long)bytes, (unsigned long long)cap);
}

static enum tandem_status block_new(struct tandem_device *device,
                                    uint64_t asked, uint64_t bytes,
                                    uint32_t size_class,
                                    struct block **out_block)
{
    struct pool *pool = &device->pool;
    struct block *over;
    pthread_mutex_lock(&pool->mutex);
    enum tandem_status status = reserve(device, bytes, &over);
    if (status == TANDEM_OK)
        pool->stats.allocated_bytes += bytes;
    pthread_mutex_unlock(&pool->mutex);
    blocks_release(over);
    if (status != TANDEM_OK)
        return status;
    status = driver_block(device, asked, bytes, size_class, out_block);
    if (status == TANDEM_OUT_OF_MEMORY) {
        pool_trim(device, 0);
        status = driver_block(device, asked, bytes, size_class, out_block);
    }
    pthread_mutex_lock(&pool->mutex);
    if (status == TANDEM_OK) {
        pool->stats.driver_alloc_count++;
        (*out_block)->address = pool->next_address;
        pool->next_address += bytes;
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
    uint32_t size_class = class_of(bytes, &block_bytes);
    *out_block = NULL;
    if (block_bytes == 0)
        return last_error_set(TANDEM_OUT_OF_MEMORY, "alloc: no device has %llu "
                           "bytes",
                           (unsigned long long)bytes);
    /* The class's size may be more than the device allocates at once. */
    uint64_t most = device->hardware->info.max_alloc_bytes;
    if (block_bytes > most && bytes <= most && bytes != 0)
        block_bytes = most;
    if (pool->exact)
        block_bytes = bytes != 0 ? bytes : 1;
    pthread_mutex_lock(&pool->mutex);
    struct block *block = block_take(pool, size_class, block_bytes);
    if (block != NULL)
        pool->stats.allocated_bytes += block->bytes;
    pthread_mutex_unlock(&pool->mutex);
    if (block == NULL)
        return block_new(device, bytes, block_bytes, size_class, out_block);
    *out_block = block;
    return TANDEM_OK;
}
