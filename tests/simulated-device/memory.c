/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of the simulated GPU and their queued transfers. Any thread may call
 * these functions; the device's mutex protects all data.
 */
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "internal.h"

struct handle_pool buffer_pool = HANDLE_POOL(struct sim_buffer, 0x53494d42u);

void memory_release(struct sim_device *device, struct sim_memory *memory)
{
    if (!memory || --memory->references > 0)
        return;
    inner_backend()->free(memory->inner);
    device->used_bytes -= memory->bytes;
    free(memory);
}

void device_drain(struct sim_device *device)
{
    struct sim_stream *s;

    LIST_FOREACH(s, &device->streams, link)
    stream_drain(s);
}

/* Locked. */
static enum tandem_status memory_create(struct sim_device *device,
                                        uint64_t bytes,
                                        struct sim_memory **out_memory)
{
    const uint64_t cap = device->stats.limit_bytes;
    struct sim_memory *memory;
    enum tandem_status status;

    *out_memory = NULL;
    if (cap && (bytes > cap || device->used_bytes > cap - bytes))
        device_drain(device);
    if (cap && (bytes > cap || device->used_bytes > cap - bytes))
        return memory_error("alloc: %llu bytes with %llu in use pass the cap "
                            "of %llu bytes",
                            (unsigned long long)bytes,
                            (unsigned long long)device->used_bytes,
                            (unsigned long long)cap);
    memory = calloc(1, sizeof *memory);
    if (!memory)
        return memory_error("alloc: no memory");
    status = inner_backend()->alloc(device->inner, TANDEM_BYTES(bytes),
                                    &memory->inner);
    if (status != TANDEM_OK) {
        free(memory);
        return inner_failed(status);
    }
    memory->bytes = bytes;
    memory->references = 1;
    memory->base = device->next_base;
    device->next_base += ((bytes + 63) & ~UINT64_C(63)) + 64;
    device->used_bytes += bytes;
    *out_memory = memory;
    return TANDEM_OK;
}

enum tandem_status buffer_alloc(struct tandem_device *handle,
                                const struct tandem_alloc_options *options,
                                struct tandem_buffer **out_buffer)
{
    struct sim_device *device;
    struct sim_buffer *buffer;
    struct tandem_memory_stats *stats;
    enum tandem_status status;
    uint64_t bytes;

    if (!out_buffer)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    status = device_lock(handle, &device);
    if (status != TANDEM_OK)
        return status;
    status = alloc_options_check(options);
    if (status == TANDEM_OK && options->alignment > 64)
        status = alloc_alignment_unsupported(options, 64);
    if (status != TANDEM_OK)
        return device_unlock(device, status);
    bytes = options->bytes;
    if (bytes > UINT64_C(1) << 40)
        return device_unlock(
            device, memory_error("alloc: %llu bytes are more than the device "
                                 "has",
                                 (unsigned long long)bytes));
    buffer = handle_new(&buffer_pool);
    if (!buffer)
        return device_unlock(device, memory_error("alloc: no memory"));
    status = memory_create(device, bytes, &buffer->memory);
    if (status != TANDEM_OK) {
        handle_free(&buffer_pool, buffer);
        return device_unlock(device, status);
    }
    buffer->device = device;
    LIST_INSERT_HEAD(&device->buffers, buffer, link);
    stats = &device->stats;
    stats->allocated_bytes += bytes;
    if (stats->allocated_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->allocated_bytes;
    stats->alloc_count++;
    stats->driver_alloc_count++;
    stats->buffer_count++;
    COUNT(device, allocs, 1);
    COUNT(device, alloc_bytes, bytes);
    *out_buffer = (struct tandem_buffer *)buffer;
    return device_unlock(device, TANDEM_OK);
}

void buffer_release(struct sim_buffer *buffer)
{
    struct sim_device *device = buffer->device;

    LIST_REMOVE(buffer, link);
    device->stats.allocated_bytes -= buffer->memory->bytes;
    device->stats.buffer_count--;
    COUNT(device, frees, 1);
    memory_release(device, buffer->memory);
    handle_free(&buffer_pool, buffer);
}

void buffer_free(struct tandem_buffer *handle)
{
    struct sim_buffer *buffer = (struct sim_buffer *)handle;
    struct sim_device *device;

    if (!handle_live(&buffer_pool, buffer))
        return;
    device = buffer->device;
    pthread_mutex_lock(&device->mutex);
    buffer_release(buffer);
    pthread_mutex_unlock(&device->mutex);
}

enum tandem_status buffer_import(struct tandem_device *handle, void *memory,
                                 uint64_t bytes, tandem_release_fn release,
                                 void *user, struct tandem_buffer **out_buffer)
{
    struct sim_device *device;
    enum tandem_status status;

    (void)release, (void)user;

    if (!out_buffer)
        return argument_error("import_host: out_buffer is NULL");
    *out_buffer = NULL;
    status = device_lock(handle, &device);
    if (status != TANDEM_OK)
        return status;
    if (!memory && bytes > 0)
        return device_unlock(device, argument_error("import_host: memory is "
                                                    "NULL"));
    return device_unlock(
        device, last_error_set(TANDEM_UNSUPPORTED,
                               "import_host: %llu bytes at %p: this device has "
                               "memory of its own",
                               (unsigned long long)bytes, memory));
}

enum tandem_status buffer_check(const struct sim_device *device,
                                const char *what,
                                const struct tandem_buffer *handle,
                                struct sim_buffer **out_buffer)
{
    struct sim_buffer *buffer = (struct sim_buffer *)(uintptr_t)handle;

    if (!handle_live(&buffer_pool, buffer))
        return argument_error("%s: buffer %p is NULL or was freed", what,
                              (const void *)handle);
    if (buffer->device != device)
        return argument_error("%s: buffer %p is of another device", what,
                              (const void *)handle);
    *out_buffer = buffer;
    return TANDEM_OK;
}

enum tandem_status buffer_seal(struct tandem_buffer *handle)
{
    struct sim_buffer *buffer = (struct sim_buffer *)handle;
    struct sim_device *device;

    if (!handle_live(&buffer_pool, buffer))
        return argument_error("buffer_seal: buffer %p is NULL or was freed",
                              (const void *)handle);
    device = buffer->device;
    pthread_mutex_lock(&device->mutex);
    buffer->is_sealed = true;
    COUNT(device, seals, 1);
    return device_unlock(device, TANDEM_OK);
}

/* ---- transfers ---- */

/*
 * Locked. Memory that is written as a whole becomes valid for all later
 * commands, unless the write itself fails.
 */
static void memory_clear_poison(struct sim_memory *memory, uint64_t offset,
                                uint64_t bytes)
{
    if (offset == 0 && bytes == memory->bytes)
        memory->poison = TANDEM_OK;
}

/* Locks the stream and checks the buffer, which is not sealed if the transfer
 * writes it, and the range. Unlocks on an error. */
static enum tandem_status
transfer_begin(const char *what, struct tandem_stream *handle,
               struct tandem_buffer *buffer_handle, uint64_t offset,
               uint64_t bytes, bool writes, struct sim_stream **out_stream,
               struct sim_buffer **out_buffer)
{
    enum tandem_status status = stream_lock(handle, out_stream);
    struct sim_device *device;

    if (status != TANDEM_OK)
        return status;
    device = (*out_stream)->device;
    status = buffer_check(device, what, buffer_handle, out_buffer);
    if (status == TANDEM_OK && writes && (*out_buffer)->is_sealed)
        status = sealed_error(what);
    if (status == TANDEM_OK)
        status = check_range(what, offset, bytes, (*out_buffer)->memory->bytes);
    if (status != TANDEM_OK)
        pthread_mutex_unlock(&device->mutex);
    return status;
}

enum tandem_status transfer_upload(struct tandem_stream *handle,
                                   struct tandem_buffer *buffer_handle,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    struct sim_stream *stream;
    struct sim_buffer *buffer;
    struct command *command;
    enum tandem_status status;

    if (!source && bytes)
        return argument_error("upload: source is NULL");
    status = check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = transfer_begin("upload", handle, buffer_handle, offset, bytes,
                                true, &stream, &buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status != TANDEM_OK ? status
                                   : device_unlock(stream->device, TANDEM_OK);
    command = command_new(COMMAND_UPLOAD);
    if (!command)
        return device_unlock(stream->device, TANDEM_OUT_OF_MEMORY);
    command->source = source;
    if (!(flags & TANDEM_TRANSFER_ASYNC)) {
        command->data = malloc(bytes);
        if (!command->data) {
            command_destroy(stream->device, command);
            return device_unlock(stream->device,
                                 memory_error("upload: no memory"));
        }
        memcpy(command->data, source, bytes);
        command->source = command->data;
    }
    command->offset = offset;
    command->bytes = bytes;
    memory_clear_poison(buffer->memory, offset, bytes);
    command_use(command, buffer->memory);
    stream_enqueue(stream, command);
    COUNT(stream->device, uploads, 1);
    COUNT(stream->device, upload_bytes, bytes);
    return device_unlock(stream->device, TANDEM_OK);
}

/* Locked. Returns the command of a download, or NULL if memory runs out. */
static struct command *download_new(struct sim_buffer *buffer, uint64_t offset,
                                    void *target, uint64_t bytes)
{
    struct command *command = command_new(COMMAND_DOWNLOAD);

    if (!command)
        return NULL;
    command->offset = offset;
    command->bytes = bytes;
    command->target = target;
    command_use(command, buffer->memory);
    command->read_count = 1;
    return command;
}

/*
 * Locked. The error of a poisoned buffer does not affect the stream, so the
 * queue is executed first and the buffer is read directly.
 */
static enum tandem_status download_now(struct sim_stream *stream,
                                       struct sim_buffer *buffer,
                                       uint64_t offset, void *target,
                                       uint64_t bytes, uint64_t timeout_ns)
{
    enum tandem_status status;
    struct command *command;

    status = wait_begin(stream->device, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    status = stream_reach(stream, stream->enqueued, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    if (buffer->memory->poison != TANDEM_OK)
        return last_error_set(buffer->memory->poison,
                              "download: the work that should have written the "
                              "buffer failed");
    command = download_new(buffer, offset, target, bytes);
    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    status = command_run(stream->device, command);
    command_destroy(stream->device, command);
    return status;
}

enum tandem_status transfer_download(struct tandem_stream *handle,
                                     struct tandem_buffer *buffer_handle,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    struct sim_stream *stream;
    struct sim_buffer *buffer;
    struct command *command;
    enum tandem_status status;

    if (!target && bytes)
        return argument_error("download: target is NULL");
    status = check_flags("download", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = transfer_begin("download", handle, buffer_handle, offset,
                                bytes, false, &stream, &buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status != TANDEM_OK ? status
                                   : device_unlock(stream->device, TANDEM_OK);
    if (buffer->memory->poison != TANDEM_OK)
        status =
            last_error_set(buffer->memory->poison,
                           "download: the work that should have written the "
                           "buffer failed");
    else if (!(flags & TANDEM_TRANSFER_ASYNC))
        status =
            download_now(stream, buffer, offset, target, bytes, timeout_ns);
    else if (!(command = download_new(buffer, offset, target, bytes)))
        status = TANDEM_OUT_OF_MEMORY;
    else
        stream_enqueue(stream, command);
    if (status == TANDEM_OK) {
        COUNT(stream->device, downloads, 1);
        COUNT(stream->device, download_bytes, bytes);
    }
    return device_unlock(stream->device, status);
}

enum tandem_status transfer_copy(struct tandem_stream *handle,
                                 struct tandem_buffer *target,
                                 uint64_t target_offset,
                                 struct tandem_buffer *source,
                                 uint64_t source_offset, uint64_t bytes)
{
    struct sim_stream *stream;
    struct sim_buffer *to, *from;
    struct command *command;
    enum tandem_status status;

    status = transfer_begin("copy: target", handle, target, target_offset,
                            bytes, true, &stream, &to);
    if (status != TANDEM_OK)
        return status;
    status = buffer_check(stream->device, "copy: source", source, &from);
    if (status == TANDEM_OK)
        status = check_range("copy: source", source_offset, bytes,
                             from->memory->bytes);
    if (status == TANDEM_OK && bytes && to == from &&
        target_offset < source_offset + bytes &&
        source_offset < target_offset + bytes)
        status = argument_error("copy: %llu bytes at %llu and at %llu overlap",
                                (unsigned long long)bytes,
                                (unsigned long long)source_offset,
                                (unsigned long long)target_offset);
    if (status == TANDEM_OK && from->memory->poison != TANDEM_OK)
        status = last_error_set(from->memory->poison,
                                "copy: the work that should have written the "
                                "source failed");
    if (status != TANDEM_OK || bytes == 0)
        return device_unlock(stream->device, status);
    command = command_new(COMMAND_COPY);
    if (!command)
        return device_unlock(stream->device, TANDEM_OUT_OF_MEMORY);
    command->offset = target_offset;
    command->source_offset = source_offset;
    command->bytes = bytes;
    command_use(command, from->memory);
    command_use(command, to->memory);
    command->read_count = 1;
    stream_enqueue(stream, command);
    COUNT(stream->device, copies, 1);
    return device_unlock(stream->device, TANDEM_OK);
}

enum tandem_status transfer_fill(struct tandem_stream *handle,
                                 struct tandem_buffer *buffer_handle,
                                 uint64_t offset, uint64_t bytes,
                                 const void *pattern, uint32_t pattern_bytes)
{
    struct sim_stream *stream;
    struct sim_buffer *buffer;
    struct command *command;
    enum tandem_status status;

    if (!pattern ||
        (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
         pattern_bytes != 8) ||
        offset % pattern_bytes || bytes % pattern_bytes)
        return argument_error("fill: pattern %p of %u bytes, offset %llu, %llu "
                              "bytes: pattern_bytes must be 1, 2, 4 or 8 and "
                              "divide both",
                              pattern, pattern_bytes,
                              (unsigned long long)offset,
                              (unsigned long long)bytes);
    status = transfer_begin("fill", handle, buffer_handle, offset, bytes, true,
                            &stream, &buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status != TANDEM_OK ? status
                                   : device_unlock(stream->device, TANDEM_OK);
    command = command_new(COMMAND_FILL);
    if (!command)
        return device_unlock(stream->device, TANDEM_OUT_OF_MEMORY);
    command->offset = offset;
    command->bytes = bytes;
    memcpy(command->pattern, pattern, pattern_bytes);
    command->pattern_bytes = pattern_bytes;
    memory_clear_poison(buffer->memory, offset, bytes);
    command_use(command, buffer->memory);
    stream_enqueue(stream, command);
    COUNT(stream->device, fills, 1);
    return device_unlock(stream->device, TANDEM_OK);
}
