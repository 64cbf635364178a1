/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caching allocator.  A freed block remembers the stream that used it
 * last; whoever gets it next and uses it on another stream waits, on the
 * device, for that work (stream.c, stream_use).
 */
#include "opencl/memory.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/device.h"
#include "opencl/status.h"

#define BUFFER_MAGIC 0x62756663u
/* The smallest block; also keeps neighbours off one cache line. */
#define SMALLEST_BYTES 512u

/* Blocks from this size on are made real at once. */
#define TOUCH_BYTES ((uint64_t)1 << 20)
/* Above every address of host memory. */
#define FIRST_ADDRESS ((uint64_t)1 << 60)

static struct handle_pool buffers =
    HANDLE_POOL(struct tandem_buffer, BUFFER_MAGIC);

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

static struct block *block_take(struct pool *pool, uint32_t size_class)
{
    struct block *block = pool->cached[size_class];
    if (block != NULL) {
        pool->cached[size_class] = block->next;
        pool->stats.cached_bytes -= block->bytes;
    }
    return block;
}

static void block_put(struct pool *pool, struct block *block)
{
    block->next = pool->cached[block->size_class];
    pool->cached[block->size_class] = block;
    pool->stats.cached_bytes += block->bytes;
}

/* The driver keeps memory that work under way still uses. */
static void block_release(struct block *block)
{
    clReleaseMemObject(block->mem);
    free(block);
}

/* Detaches cached blocks, the largest first, until keep_bytes are left. */
static struct block *detach(struct pool *pool, uint64_t keep_bytes)
{
    struct block *list = NULL;
    for (uint32_t i = POOL_CLASSES; i-- > 0;)
        while (pool->stats.cached_bytes > keep_bytes &&
               pool->cached[i] != NULL) {
            struct block *block = block_take(pool, i);
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
    while (list != NULL) {
        struct block *next = list->next;
        block_release(list);
        list = next;
    }
}

/* Drivers of GPUs allocate at first use; a large block is used here, so that
 * it is alloc that fails, and not the work of a stream. */
static cl_int block_touch(struct tandem_device *device, cl_mem mem,
                          uint64_t bytes)
{
    const cl_uint zero = 0;
    if (bytes < TOUCH_BYTES || device->hardware->info.kind == TANDEM_DEVICE_CPU)
        return CL_SUCCESS;
    cl_event event = NULL;
    cl_int state = CL_COMPLETE;
    cl_int code = clEnqueueFillBuffer(device->utility, mem, &zero, sizeof(zero),
                                      0, sizeof(zero), 0, NULL, &event);
    if (code != CL_SUCCESS)
        return code;
    code = clWaitForEvents(1, &event);
    if (clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
                       &state, NULL) == CL_SUCCESS &&
        state < 0)
        code = state;
    clReleaseEvent(event);
    return code;
}

static enum tandem_status driver_block(struct tandem_device *device,
                                       uint64_t bytes, uint32_t size_class,
                                       struct block **out_block)
{
    cl_int code = CL_SUCCESS;
    struct block *block = calloc(1, sizeof(*block));
    *out_block = NULL;
    if (block == NULL)
        return message_set(TANDEM_OUT_OF_MEMORY, "alloc: out of host memory");
    block->mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                (size_t)bytes, NULL, &code);
    if (code == CL_SUCCESS) {
        code = block_touch(device, block->mem, bytes);
        if (code != CL_SUCCESS)
            clReleaseMemObject(block->mem);
    }
    block->bytes = bytes;
    block->size_class = size_class;
    if (code == CL_SUCCESS) {
        *out_block = block;
        return TANDEM_OK;
    }
    free(block);
    enum tandem_status status = status_from_cl(device, code, "clCreateBuffer");
    if (status != TANDEM_OUT_OF_MEMORY)
        return status;
    return message_set(
        status,
        "alloc: %s has no %llu bytes in one piece (limit %llu): free buffers "
        "or use smaller ones",
        device->hardware->info.name, (unsigned long long)bytes,
        (unsigned long long)device->hardware->info.max_alloc_bytes);
}

/* Called with the pool locked, returns with it locked. */
static enum tandem_status reserve(struct tandem_device *device, uint64_t bytes)
{
    struct tandem_memory_stats *stats = &device->pool.stats;
    uint64_t cap = stats->cap_bytes;
    if (cap == 0 || stats->used_bytes + stats->cached_bytes + bytes <= cap)
        return TANDEM_OK;
    if (stats->used_bytes + bytes > cap)
        return message_set(TANDEM_OUT_OF_MEMORY,
                           "alloc: %llu bytes more than the %llu in use would "
                           "pass memory_cap_bytes = %llu",
                           (unsigned long long)bytes,
                           (unsigned long long)stats->used_bytes,
                           (unsigned long long)cap);
    struct block *list = detach(&device->pool, cap - stats->used_bytes - bytes);
    while (list != NULL) {
        struct block *next = list->next;
        block_release(list);
        list = next;
    }
    return TANDEM_OK;
}

static enum tandem_status block_new(struct tandem_device *device,
                                    uint64_t bytes, uint32_t size_class,
                                    struct block **out_block)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->mutex);
    enum tandem_status status = reserve(device, bytes);
    if (status == TANDEM_OK)
        pool->stats.used_bytes += bytes;
    pthread_mutex_unlock(&pool->mutex);
    if (status != TANDEM_OK)
        return status;
    status = driver_block(device, bytes, size_class, out_block);
    if (status == TANDEM_OUT_OF_MEMORY) {
        pool_trim(device, 0);
        status = driver_block(device, bytes, size_class, out_block);
    }
    pthread_mutex_lock(&pool->mutex);
    if (status == TANDEM_OK) {
        pool->stats.driver_alloc_count++;
        (*out_block)->address = pool->next_address;
        pool->next_address += bytes;
    } else {
        pool->stats.used_bytes -= bytes;
    }
    pthread_mutex_unlock(&pool->mutex);
    return status;
}

/* Called with the pool locked. */
static void list_add(struct pool *pool, struct tandem_buffer *buffer)
{
    struct tandem_memory_stats *stats = &pool->stats;
    buffer->next = pool->buffers;
    if (buffer->next != NULL)
        buffer->next->previous = buffer;
    pool->buffers = buffer;
    if (!buffer->internal) {
        stats->alloc_count += buffer->block != NULL;
        stats->buffer_count++;
    }
    if (stats->used_bytes + stats->cached_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->used_bytes + stats->cached_bytes;
}

enum tandem_status buffer_create(struct tandem_device *device, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer)
{
    struct pool *pool = &device->pool;
    uint64_t block_bytes;
    uint32_t size_class = class_of(bytes, &block_bytes);
    struct block *block = NULL;
    *out_buffer = NULL;
    if (block_bytes == 0)
        return message_set(TANDEM_OUT_OF_MEMORY,
                           "alloc: no device has %llu "
                           "bytes",
                           (unsigned long long)bytes);
    struct tandem_buffer *buffer = handle_new(&buffers);
    if (buffer == NULL)
        return message_set(TANDEM_OUT_OF_MEMORY, "alloc: out of host memory");
    pthread_mutex_lock(&pool->mutex);
    block = block_take(pool, size_class);
    if (block != NULL)
        pool->stats.used_bytes += block->bytes;
    pthread_mutex_unlock(&pool->mutex);
    if (block == NULL) {
        enum tandem_status status =
            block_new(device, block_bytes, size_class, &block);
        if (status != TANDEM_OK) {
            handle_free(&buffers, buffer);
            return status;
        }
    }
    buffer->device = device;
    buffer->block = block;
    buffer->mem = block->mem;
    buffer->bytes = bytes;
    buffer->address = block->address;
    buffer->internal = internal;
    atomic_store_explicit(&buffer->former_stream, block->stream,
                          memory_order_relaxed);
    atomic_store_explicit(&buffer->former_serial, block->serial,
                          memory_order_relaxed);
    pthread_mutex_lock(&pool->mutex);
    list_add(pool, buffer);
    pthread_mutex_unlock(&pool->mutex);
    *out_buffer = buffer;
    return TANDEM_OK;
}

enum tandem_status buffer_import(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer)
{
    cl_int code = CL_SUCCESS;
    *out_buffer = NULL;
    struct tandem_buffer *buffer = handle_new(&buffers);
    if (buffer == NULL)
        return message_set(TANDEM_OUT_OF_MEMORY,
                           "import_host: out of host memory");
    buffer->mem =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                       (size_t)bytes, memory, &code);
    if (code != CL_SUCCESS) {
        handle_free(&buffers, buffer);
        return status_from_cl(device, code, "clCreateBuffer of host memory");
    }
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->address = (uintptr_t)memory;
    buffer->skew = (uint32_t)((uintptr_t)memory & 63u);
    pthread_mutex_lock(&device->pool.mutex);
    list_add(&device->pool, buffer);
    pthread_mutex_unlock(&device->pool.mutex);
    *out_buffer = buffer;
    return TANDEM_OK;
}

/* Whoever has the block next must wait for what this owner left; or, where
 * this one never used it, for what the owner before left. */
static void block_inherit(struct block *block,
                          const struct tandem_buffer *buffer)
{
    uint64_t stream = atomic_load(&buffer->used_stream);
    if (stream != 0) {
        block->stream = stream;
        block->serial = atomic_load(&buffer->used_serial);
    }
}

/* Called with the pool locked. */
static void list_remove(struct pool *pool, struct tandem_buffer *buffer)
{
    if (buffer->previous != NULL)
        buffer->previous->next = buffer->next;
    else
        pool->buffers = buffer->next;
    if (buffer->next != NULL)
        buffer->next->previous = buffer->previous;
    pool->stats.buffer_count -= !buffer->internal;
    if (buffer->block != NULL)
        pool->stats.used_bytes -= buffer->block->bytes;
}

void buffer_destroy(struct tandem_buffer *buffer)
{
    struct pool *pool = &buffer->device->pool;
    pthread_mutex_lock(&pool->mutex);
    list_remove(pool, buffer);
    if (buffer->block != NULL) {
        block_inherit(buffer->block, buffer);
        block_put(pool, buffer->block);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (buffer->block == NULL)
        clReleaseMemObject(buffer->mem);
    handle_free(&buffers, buffer);
}

void pool_start(struct pool *pool, uint64_t cap_bytes)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pool->stats.struct_size = sizeof(pool->stats);
    pool->stats.cap_bytes = cap_bytes;
    pool->next_address = FIRST_ADDRESS;
}

void pool_finish(struct tandem_device *device)
{
    while (device->pool.buffers != NULL)
        buffer_destroy(device->pool.buffers);
    pool_trim(device, 0);
    pthread_mutex_destroy(&device->pool.mutex);
}

void pool_stats(struct tandem_device *device, struct tandem_memory_stats *out)
{
    size_t bytes = out->struct_size;
    pthread_mutex_lock(&device->pool.mutex);
    struct tandem_memory_stats stats = device->pool.stats;
    pthread_mutex_unlock(&device->pool.mutex);
    stats.kernel_count = programs_count(&device->programs);
    stats.struct_size = bytes;
    memcpy(out, &stats, bytes < sizeof(stats) ? bytes : sizeof(stats));
}

bool buffer_live(const struct tandem_buffer *buffer)
{
    return handle_live(&buffers, buffer);
}

enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer,
                                const char *what)
{
    if (buffer == NULL)
        return message_set(TANDEM_INVALID_ARGUMENT, "%s: buffer is NULL", what);
    if (!buffer_live(buffer))
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "%s: buffer %p is freed or no buffer of this "
                           "backend",
                           what, (const void *)buffer);
    if (buffer->device != device)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "%s: buffer %p belongs to another device", what,
                           (const void *)buffer);
    if (atomic_load_explicit(&buffer->maps, memory_order_relaxed) != 0)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "%s: buffer %p is mapped: unmap it first", what,
                           (const void *)buffer);
    return TANDEM_OK;
}

enum tandem_status buffer_poisoned(const struct tandem_buffer *buffer)
{
    uint32_t poison =
        atomic_load_explicit(&buffer->poison, memory_order_relaxed);
    if (poison == TANDEM_OK)
        return TANDEM_OK;
    return message_set((enum tandem_status)poison,
                       "the work that should have written buffer %p failed "
                       "(%s): overwrite all of it before it is read",
                       (const void *)buffer,
                       status_name((enum tandem_status)poison));
}

void pool_poison(struct tandem_device *device, uint64_t stream, uint64_t serial,
                 enum tandem_status status)
{
    pthread_mutex_lock(&device->pool.mutex);
    for (struct tandem_buffer *buffer = device->pool.buffers; buffer != NULL;
         buffer = buffer->next)
        if (atomic_load(&buffer->written_stream) == stream &&
            atomic_load(&buffer->written_serial) > serial)
            atomic_store(&buffer->poison, (uint32_t)status);
    pthread_mutex_unlock(&device->pool.mutex);
}
