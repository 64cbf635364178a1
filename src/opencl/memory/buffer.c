/* SPDX-License-Identifier: Apache-2.0 */
/* Implements buffers in device memory or host memory; see buffer.h. */
#include "opencl/memory/buffer.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/memory/block_pool.h"
#include "opencl/memory/packed_copy.h"

#define BUFFER_MAGIC 0x62756663u
/* Virtual address of the first block, above all addresses of host memory. */
#define FIRST_BLOCK_ADDRESS ((uint64_t)1 << 60)

static struct handle_pool buffers =
    HANDLE_POOL(struct tandem_buffer, BUFFER_MAGIC);

/* Adds a buffer to the list of buffers.  The caller holds pool.mutex. */
static void list_insert(struct pool *pool, struct tandem_buffer *buffer)
{
    struct tandem_memory_stats *stats = &pool->stats;
    buffer->next = pool->buffers;
    buffer->link = &pool->buffers;
    if (buffer->next != NULL)
        buffer->next->link = &buffer->next;
    pool->buffers = buffer;
    if (!buffer->internal) {
        stats->alloc_count += buffer->block != NULL;
        stats->buffer_count++;
    }
    if (stats->allocated_bytes + stats->cached_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->allocated_bytes + stats->cached_bytes;
}

static void list_add(struct pool *pool, struct tandem_buffer *buffer)
{
    pthread_mutex_lock(&pool->mutex);
    list_insert(pool, buffer);
    pthread_mutex_unlock(&pool->mutex);
}

enum tandem_status buffer_create(struct tandem_device *device, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer)
{
    struct block *block;
    *out_buffer = NULL;
    struct tandem_buffer *buffer = handle_new(&buffers);
    if (buffer == NULL)
        return memory_error("alloc: out of host memory");
    enum tandem_status status = block_acquire(device, bytes, &block);
    if (status != TANDEM_OK) {
        handle_free(&buffers, buffer);
        /* Seeing NOT_READY, callers of launch_plan would make a new plan. */
        return internal && status == TANDEM_NOT_READY
                   ? memory_error("no temporary memory: %s has not completed "
                                  "earlier work in time",
                                  device->hardware->info.name)
                   : status;
    }
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->internal = internal;
    block_attach(block, buffer);
    list_add(&device->pool, buffer);
    *out_buffer = buffer;
    return TANDEM_OK;
}

/* Memory for imports of 0 bytes, because OpenCL has no buffers of size 0. */
static _Alignas(64) unsigned char empty_import[64];

/* The callback of imported memory. It is called when the last reference is
 * dropped: the buffer's, or that of work which used the buffer. */
struct import_release {
    tandem_release_fn call;
    void *user;
    _Atomic uint32_t references;
    struct import_release *next; /* in pool.kept_releases */
};

static struct import_release *import_release_new(tandem_release_fn call,
                                                 void *user)
{
    struct import_release *release = calloc(1, sizeof(*release));
    if (release != NULL)
        *release = (struct import_release){
            .call = call, .user = user, .references = 1};
    return release;
}

void import_release_retain(struct import_release *release)
{
    atomic_fetch_add(&release->references, 1);
}

void import_release_drop(struct import_release *release)
{
    if (atomic_fetch_sub(&release->references, 1) != 1)
        return;
    release->call(release->user);
    free(release);
}

void import_release_keep(struct tandem_device *device,
                         struct import_release *release)
{
    import_release_retain(release);
    pthread_mutex_lock(&device->pool.mutex);
    release->next = device->pool.kept_releases;
    device->pool.kept_releases = release;
    pthread_mutex_unlock(&device->pool.mutex);
}

enum tandem_status buffer_import_with_release(struct tandem_device *device,
                                              void *memory, uint64_t bytes,
                                              tandem_release_fn call,
                                              void *user,
                                              struct tandem_buffer **out_buffer)
{
    *out_buffer = NULL;
    struct import_release *release = import_release_new(call, user);
    if (release == NULL)
        return memory_error("import_host: out of host memory");
    enum tandem_status status =
        buffer_import(device, memory, bytes, out_buffer);
    if (status != TANDEM_OK) {
        free(release);
        return status;
    }
    (*out_buffer)->release = release;
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
        return memory_error("import_host: out of host memory");
    if (bytes == 0)
        memory = empty_import;
    buffer->mem = clCreateBuffer(
        device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
        bytes > 0 ? (size_t)bytes : sizeof(empty_import), memory, &code);
    if (code != CL_SUCCESS) {
        handle_free(&buffers, buffer);
        return status_from_cl(device, code, "clCreateBuffer of host memory");
    }
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->address = (uintptr_t)memory;
    buffer->skew = (uint32_t)((uintptr_t)memory & 63u);
    list_add(&device->pool, buffer);
    *out_buffer = buffer;
    return TANDEM_OK;
}

/* Sets the address of a wrapped buffer, so that buffers in one memory object,
 * or in the same host memory, overlap.  Returns false if the memory belongs to
 * a buffer of the pool.  The caller holds pool.mutex. */
static bool wrapped_address_set(struct pool *pool, struct tandem_buffer *buffer,
                                const struct wrapped_memory *from)
{
    buffer->root_address = pool->next_address;
    for (struct tandem_buffer *other = pool->buffers; other != NULL;
         other = other->next) {
        if (other->block != NULL && other->mem == from->root)
            return false;
        if (other->root == from->root)
            buffer->root_address = other->root_address;
    }
    if (buffer->root_address == pool->next_address)
        pool->next_address += (from->root_bytes + MAX_SLOT_ALIGNMENT - 1) /
                              MAX_SLOT_ALIGNMENT * MAX_SLOT_ALIGNMENT;
    buffer->root = from->root;
    buffer->address = from->host != NULL
                          ? (uintptr_t)from->host
                          : buffer->root_address + from->root_offset;
    return true;
}

enum tandem_status buffer_wrap(struct tandem_device *device,
                               const struct wrapped_memory *from,
                               tandem_release_fn call, void *user,
                               struct tandem_buffer **out_buffer)
{
    struct pool *pool = &device->pool;
    struct import_release *release = NULL;
    *out_buffer = NULL;
    struct tandem_buffer *buffer = handle_new(&buffers);
    if (buffer != NULL && call != NULL)
        release = import_release_new(call, user);
    if (buffer == NULL || (call != NULL && release == NULL)) {
        if (buffer != NULL)
            handle_free(&buffers, buffer);
        return memory_error("buffer_wrap: out of host memory");
    }
    buffer->device = device;
    buffer->mem = from->mem;
    buffer->bytes = from->bytes;
    buffer->skew = (uint32_t)((uintptr_t)from->host & 63u);
    buffer->release = release;
    pthread_mutex_lock(&pool->mutex);
    bool is_foreign = wrapped_address_set(pool, buffer, from);
    cl_int code = is_foreign ? clRetainMemObject(from->mem) : CL_SUCCESS;
    if (is_foreign && code == CL_SUCCESS)
        list_insert(pool, buffer);
    pthread_mutex_unlock(&pool->mutex);
    if (is_foreign && code == CL_SUCCESS) {
        *out_buffer = buffer;
        return TANDEM_OK;
    }
    free(release);
    handle_free(&buffers, buffer);
    return code != CL_SUCCESS
               ? status_from_cl(device, code, "clRetainMemObject")
               : argument_error("buffer_wrap: the memory belongs to a buffer "
                                "of the device; use that buffer");
}

void buffer_expose(struct tandem_buffer *buffer)
{
    atomic_store(&buffer->is_exposed, true);
}

/* Removes a buffer from the list of buffers.  The caller holds pool.mutex. */
static void list_remove(struct pool *pool, struct tandem_buffer *buffer)
{
    *buffer->link = buffer->next;
    if (buffer->next != NULL)
        buffer->next->link = buffer->link;
    pool->stats.buffer_count -= !buffer->internal;
    if (buffer->block != NULL)
        pool->stats.allocated_bytes -= buffer->block->bytes;
}

void buffer_destroy(struct tandem_buffer *buffer)
{
    struct pool *pool = &buffer->device->pool;
    struct import_release *release = buffer->release;
    pthread_mutex_lock(&pool->mutex);
    list_remove(pool, buffer);
    packed_copies_free(buffer);
    if (buffer->block != NULL) {
        block_set_last_use(buffer->block, buffer);
        block_return(pool, buffer->block);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (buffer->block == NULL)
        clReleaseMemObject(buffer->mem);
    handle_free(&buffers, buffer);
    if (release != NULL)
        import_release_drop(release);
}

void pool_start(struct pool *pool, uint64_t limit_bytes)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pool->stats.struct_size = sizeof(pool->stats);
    pool->stats.limit_bytes = limit_bytes;
    pool->next_address = FIRST_BLOCK_ADDRESS;
}

void pool_finish(struct tandem_device *device, bool work_ended)
{
    struct pool *pool = &device->pool;
    while (pool->buffers != NULL) {
        struct tandem_buffer *buffer = pool->buffers;
        if (buffer->release != NULL)
            import_release_keep(device, buffer->release);
        buffer_destroy(buffer);
    }
    while (work_ended && pool->kept_releases != NULL) {
        struct import_release *release = pool->kept_releases;
        pool->kept_releases = release->next;
        import_release_drop(release);
    }
    pool_trim(device, 0);
}

void pool_stats(struct tandem_device *device, struct tandem_memory_stats *out)
{
    pthread_mutex_lock(&device->pool.mutex);
    *out = device->pool.stats;
    pthread_mutex_unlock(&device->pool.mutex);
}

bool buffer_is_live(const struct tandem_buffer *buffer)
{
    return handle_live(&buffers, buffer);
}

enum tandem_status buffer_check_live(const struct tandem_buffer *buffer)
{
    return handle_check(&buffers, buffer, "buffer",
                        "a buffer, or it was freed");
}

enum tandem_status buffer_check_owner(const struct tandem_device *device,
                                      const struct tandem_buffer *buffer)
{
    enum tandem_status status = buffer_check_live(buffer);
    if (status == TANDEM_OK && buffer->device != device)
        return argument_error("the buffer belongs to another device");
    return status;
}

enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer)
{
    enum tandem_status status = buffer_check_owner(device, buffer);
    if (status == TANDEM_OK && atomic_load(&buffer->is_mapped) != 0)
        return argument_error("the buffer is mapped; unmap it first");
    return status;
}

enum tandem_status buffer_seal(struct tandem_buffer *buffer)
{
    enum tandem_status status =
        handle_check(&buffers, buffer, "buffer", "a buffer, or it was freed");
    if (status == TANDEM_OK)
        status = buffer_check(buffer->device, buffer);
    if (status != TANDEM_OK)
        return last_error_prefix(status, "buffer_seal");
    atomic_store(&buffer->is_sealed, true);
    return TANDEM_OK;
}

enum tandem_status buffer_check_poison(const struct tandem_buffer *buffer)
{
    uint32_t poison = atomic_load(&buffer->poison);
    if (poison == TANDEM_OK)
        return TANDEM_OK;
    return last_error_set((enum tandem_status)poison,
                          "the work that should have written buffer %p failed "
                          "(%s): overwrite all of it before reading it",
                          (const void *)buffer,
                          status_name((enum tandem_status)poison));
}

void buffer_poison(struct tandem_buffer *buffer, enum tandem_status status)
{
    if (status == TANDEM_NOT_READY)
        status = TANDEM_FAILED;
    atomic_store_explicit(&buffer->poison, (uint32_t)status,
                          memory_order_relaxed);
}

void buffer_clear_poison(struct tandem_buffer *buffer, uint64_t written_bytes)
{
    if (written_bytes == buffer->bytes)
        atomic_store_explicit(&buffer->poison, TANDEM_OK, memory_order_relaxed);
}

/* Poisons the buffer if its last write is a command of `stream` with a number
 * above `seqno`. */
static void poison_write(struct tandem_buffer *buffer, uint64_t stream,
                         uint64_t seqno, enum tandem_status status)
{
    if (atomic_load(&buffer->written_stream) == stream &&
        atomic_load(&buffer->written_seqno) > seqno)
        atomic_store(&buffer->poison, (uint32_t)status);
}

void pool_poison_writes(struct tandem_device *device, uint64_t stream,
                        uint64_t seqno, enum tandem_status status)
{
    pthread_mutex_lock(&device->pool.mutex);
    for (struct tandem_buffer *buffer = device->pool.buffers; buffer != NULL;
         buffer = buffer->next) {
        poison_write(buffer, stream, seqno, status);
        for (struct packed_copy *copy = buffer->packed_copies; copy != NULL;
             copy = copy->next)
            poison_write(&copy->memory, stream, seqno, status);
    }
    pthread_mutex_unlock(&device->pool.mutex);
}
