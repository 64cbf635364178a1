/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of the simulated device and their queued transfers. Any thread may
 * call these functions; the device's mutex protects all data.
 */
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "internal.h"

#define MAX_ALLOC_BYTES (UINT64_C(1) << 40)

/* ---- buffers ---- */

void memory_release(struct sim_device *device, struct sim_memory *memory)
{
    if (!memory || --memory->references > 0)
        return;
    inner_backend()->free(memory->inner);
    device->used_bytes -= memory->bytes;
    free(memory);
}

/* Locked. */
static bool memory_is_available(const struct sim_device *device, uint64_t bytes)
{
    const uint64_t limit = device->stats.limit_bytes;

    return limit == 0 ||
           (bytes <= limit && device->used_bytes <= limit - bytes);
}

/* Locked. */
static enum tandem_status memory_create(struct sim_device *device,
                                        uint64_t bytes,
                                        struct sim_memory **out_memory)
{
    struct sim_memory *memory;
    enum tandem_status status;

    if (!memory_is_available(device, bytes))
        device_drain(device);
    if (bytes > MAX_ALLOC_BYTES || !memory_is_available(device, bytes))
        return memory_error("alloc: %llu bytes with %llu in use are more than "
                            "the device has, or than its limit of %llu bytes",
                            (unsigned long long)bytes,
                            (unsigned long long)device->used_bytes,
                            (unsigned long long)device->stats.limit_bytes);
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

/* Locked. */
static enum tandem_status
buffer_create(struct sim_device *device,
              const struct tandem_alloc_options *options,
              struct tandem_buffer **out_buffer)
{
    struct tandem_memory_stats *stats = &device->stats;
    struct sim_memory *memory = NULL;
    struct sim_buffer *buffer;
    enum tandem_status status = alloc_options_check(options);

    if (status == TANDEM_OK && options->alignment > 64)
        status = alloc_alignment_unsupported(options, 64);
    if (status == TANDEM_OK)
        status = memory_create(device, options->bytes, &memory);
    if (status != TANDEM_OK)
        return status;
    buffer = object_new(device, BUFFER);
    if (!buffer) {
        memory_release(device, memory);
        return TANDEM_OUT_OF_MEMORY;
    }
    buffer->memory = memory;
    stats->allocated_bytes += memory->bytes;
    if (stats->allocated_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->allocated_bytes;
    stats->alloc_count++;
    stats->driver_alloc_count++;
    stats->buffer_count++;
    COUNT(device, allocs, 1);
    *out_buffer = (struct tandem_buffer *)buffer;
    return TANDEM_OK;
}

enum tandem_status buffer_alloc(struct tandem_device *handle,
                                const struct tandem_alloc_options *options,
                                struct tandem_buffer **out_buffer)
{
    struct sim_device *device;
    enum tandem_status status;

    if (!out_buffer)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    status = object_lock(handle, DEVICE, &device);
    return status == TANDEM_OK
               ? device_unlock(device,
                               buffer_create(device, options, out_buffer))
               : status;
}

void buffer_finish(struct sim_buffer *buffer)
{
    struct sim_device *device = buffer->object.device;

    device->stats.allocated_bytes -= buffer->memory->bytes;
    device->stats.buffer_count--;
    COUNT(device, frees, 1);
    memory_release(device, buffer->memory);
}

void buffer_free(struct tandem_buffer *handle)
{
    handle_release(handle, BUFFER);
}

enum tandem_status buffer_check(const struct sim_device *device,
                                const char *what,
                                const struct tandem_buffer *handle,
                                struct sim_buffer **out_buffer)
{
    if (!object_is_live(handle, BUFFER))
        return argument_error("%s: buffer %p is NULL or was freed", what,
                              (const void *)handle);
    *out_buffer = (struct sim_buffer *)(uintptr_t)handle;
    if ((*out_buffer)->object.device != device)
        return last_error_set(setting("status-order") ? TANDEM_UNSUPPORTED
                                                      : TANDEM_INVALID_ARGUMENT,
                              "%s: buffer %p is of another device", what,
                              (const void *)handle);
    return TANDEM_OK;
}

enum tandem_status address_range_of(const void *user,
                                    const struct tandem_buffer *handle,
                                    struct address_range *out)
{
    struct sim_buffer *buffer = NULL;
    enum tandem_status status =
        buffer_check(user, "an operand", handle, &buffer);

    if (status != TANDEM_OK)
        return status;
    out->base = buffer->memory->base;
    out->bytes = buffer->memory->bytes;
    out->is_sealed = buffer->is_sealed;
    return TANDEM_OK;
}

enum tandem_status memory_is_valid(const struct sim_memory *memory,
                                   const char *what)
{
    return memory->poison == TANDEM_OK
               ? TANDEM_OK
               : last_error_set(memory->poison,
                                "the work that should have written %s failed",
                                what);
}

enum tandem_status buffer_seal(struct tandem_buffer *handle)
{
    struct sim_buffer *buffer = NULL;
    enum tandem_status status = object_hold(handle, BUFFER, &buffer);

    if (status != TANDEM_OK)
        return status;
    buffer->is_sealed = true;
    COUNT(buffer->object.device, seals, 1);
    return device_unlock(buffer->object.device, TANDEM_OK);
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
    device = (*out_stream)->object.device;
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
    if (setting("offset"))
        offset = 0;
    status = check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = transfer_begin("upload", handle, buffer_handle, offset, bytes,
                                true, &stream, &buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status != TANDEM_OK
                   ? status
                   : device_unlock(stream->object.device, TANDEM_OK);
    command = command_new(COMMAND_UPLOAD);
    if (!command)
        return device_unlock(stream->object.device, TANDEM_OUT_OF_MEMORY);
    command->source = source;
    if (!(flags & TANDEM_TRANSFER_ASYNC)) {
        command->data = malloc(bytes);
        if (!command->data) {
            command_destroy(stream->object.device, command);
            return device_unlock(stream->object.device,
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
    COUNT(stream->object.device, uploads, 1);
    COUNT(stream->object.device, upload_bytes, bytes);
    return device_unlock(stream->object.device, answer(TANDEM_OK));
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

    status = stream_reach(stream, stream->enqueued, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    status = memory_is_valid(buffer->memory, "the buffer");
    if (status != TANDEM_OK)
        return status;
    command = download_new(buffer, offset, target, bytes);
    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    status = command_run(stream->object.device, command);
    command_destroy(stream->object.device, command);
    return status;
}

static enum tandem_status download_enqueue(struct sim_stream *stream,
                                           struct sim_buffer *buffer,
                                           uint64_t offset, void *target,
                                           uint64_t bytes)
{
    struct command *command = download_new(buffer, offset, target, bytes);

    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    stream_enqueue(stream, command);
    return TANDEM_OK;
}

enum tandem_status transfer_download(struct tandem_stream *handle,
                                     struct tandem_buffer *buffer_handle,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    struct sim_stream *stream;
    struct sim_buffer *buffer;
    enum tandem_status status;

    if (!target && bytes)
        return argument_error("download: target is NULL");
    status = check_flags("download", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = transfer_begin("download", handle, buffer_handle, offset,
                                bytes, false, &stream, &buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status != TANDEM_OK
                   ? status
                   : device_unlock(stream->object.device, TANDEM_OK);
    status = memory_is_valid(buffer->memory, "the buffer");
    if (status == TANDEM_OK)
        status = flags & TANDEM_TRANSFER_ASYNC
                     ? download_enqueue(stream, buffer, offset, target, bytes)
                     : download_now(stream, buffer, offset, target, bytes,
                                    timeout_ns);
    if (status == TANDEM_OK) {
        COUNT(stream->object.device, downloads, 1);
        COUNT(stream->object.device, download_bytes, bytes);
    }
    return wait_end(device_unlock(stream->object.device, status));
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
    status = buffer_check(stream->object.device, "copy: source", source, &from);
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
    if (status == TANDEM_OK)
        status = memory_is_valid(from->memory, "the source");
    if (status != TANDEM_OK || bytes == 0)
        return device_unlock(stream->object.device, status);
    command = command_new(COMMAND_COPY);
    if (!command)
        return device_unlock(stream->object.device, TANDEM_OUT_OF_MEMORY);
    command->offset = target_offset;
    command->source_offset = source_offset;
    command->bytes = bytes;
    command_use(command, from->memory);
    command_use(command, to->memory);
    command->read_count = 1;
    stream_enqueue(stream, command);
    return device_unlock(stream->object.device, TANDEM_OK);
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
        return status != TANDEM_OK
                   ? status
                   : device_unlock(stream->object.device, TANDEM_OK);
    command = command_new(COMMAND_FILL);
    if (!command)
        return device_unlock(stream->object.device, TANDEM_OUT_OF_MEMORY);
    command->offset = offset;
    command->bytes = bytes;
    memcpy(command->pattern, pattern, pattern_bytes);
    command->pattern_bytes = pattern_bytes;
    memory_clear_poison(buffer->memory, offset, bytes);
    command_use(command, buffer->memory);
    stream_enqueue(stream, command);
    return device_unlock(stream->object.device, TANDEM_OK);
}
