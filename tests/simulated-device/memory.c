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

void memory_release(struct sim_memory *memory)
{
    if (!memory || --memory->references > 0)
        return;
    inner_backend()->free(memory->inner);
    free(memory);
}

/* Locked. */
static enum tandem_status
buffer_create(struct sim_device *device,
              const struct tandem_alloc_options *options,
              struct tandem_buffer **out_buffer)
{
    const struct tandem_backend *inner = inner_backend();
    struct sim_memory *memory;
    struct sim_buffer *buffer;
    enum tandem_status status = alloc_options_check(options);

    if (status == TANDEM_OK && options->alignment > 64)
        status = alloc_alignment_unsupported(options, 64);
    if (status == TANDEM_OK && options->bytes > MAX_ALLOC_BYTES)
        status = memory_error("alloc: more bytes than the device has");
    if (status != TANDEM_OK)
        return status;
    buffer = object_new(device, BUFFER);
    memory = buffer ? calloc(1, sizeof *memory) : NULL;
    if (!memory)
        return memory_error("alloc: no memory");
    buffer->memory = memory;
    memory->references = 1;
    status = inner->alloc(device->inner, TANDEM_BYTES(options->bytes),
                          &memory->inner);
    if (status == TANDEM_OUT_OF_MEMORY) {
        device_drain(device); /* Commands may use freed memory. */
        status = inner->alloc(device->inner, TANDEM_BYTES(options->bytes),
                              &memory->inner);
    }
    COUNT(device, allocs, 1);
    if (status != TANDEM_OK) {
        object_free(&buffer->object);
        return inner_failed(status);
    }
    memory->bytes = options->bytes;
    memory->base = device->next_base;
    device->next_base += ((memory->bytes + 63) & ~UINT64_C(63)) + 64;
    *out_buffer = (struct tandem_buffer *)buffer;
    return TANDEM_OK;
}

enum tandem_status buffer_alloc(struct tandem_device *handle,
                                const struct tandem_alloc_options *options,
                                struct tandem_buffer **out_buffer)
{
    struct sim_device *device;
    enum tandem_status status;

    block_in("alloc", handle);
    if (!out_buffer)
        return argument_error("alloc: out_buffer is NULL");
    *out_buffer = NULL;
    status = object_lock(handle, DEVICE, &device);
    return status == TANDEM_OK
               ? device_unlock(device,
                               buffer_create(device, options, out_buffer))
               : status;
}

void buffer_free(struct tandem_buffer *handle)
{
    block_in("free", handle);
    handle_release(handle, BUFFER);
}

enum tandem_status address_range_of(const void *user,
                                    const struct tandem_buffer *handle,
                                    struct address_range *out)
{
    const struct sim_buffer *buffer = (const void *)handle;

    if (!object_is_live(handle, BUFFER))
        return argument_error("the buffer is NULL or was freed");
    if (buffer->object.device != user)
        return last_error_set(setting("status-order") ? TANDEM_UNSUPPORTED
                                                      : TANDEM_INVALID_ARGUMENT,
                              "the buffer is of another device");
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

    block_in("buffer_seal", handle);
    if (status != TANDEM_OK)
        return status;
    buffer->is_sealed = true;
    COUNT(buffer->object.device, seals, 1);
    return device_unlock(buffer->object.device, TANDEM_OK);
}

/* ---- transfers ---- */

/*
 * Locks the stream, checks the range of the buffer, and sets *out_command to a
 * new command that uses the buffer. On failure nothing is locked.
 */
static enum tandem_status
transfer_begin(const char *what, enum command_kind kind,
               struct tandem_stream *handle, struct tandem_buffer *buffer,
               uint64_t offset, uint64_t bytes, struct sim_stream **out_stream,
               struct command **out_command)
{
    enum tandem_status status = stream_lock(handle, out_stream);
    struct sim_device *device;
    struct address_range range;

    if (status != TANDEM_OK)
        return status;
    device = (*out_stream)->object.device;
    status = address_range_of(device, buffer, &range);
    if (status == TANDEM_OK && range.is_sealed &&
        (kind == COMMAND_UPLOAD || kind == COMMAND_FILL))
        status = sealed_error(what);
    if (status == TANDEM_OK)
        status = check_range(what, offset, bytes, range.bytes);
    if (status == TANDEM_OK && !(*out_command = command_new(kind)))
        status = TANDEM_OUT_OF_MEMORY;
    if (status != TANDEM_OK)
        return device_unlock(device, status);
    (*out_command)->offset = offset;
    (*out_command)->bytes = bytes;
    command_use(*out_command, ((struct sim_buffer *)buffer)->memory);
    return TANDEM_OK;
}

/* Enqueues the command if it does something, and unlocks. */
static enum tandem_status transfer_end(struct sim_stream *stream,
                                       struct command *command,
                                       enum tandem_status status)
{
    struct sim_device *device = stream->object.device;
    struct sim_memory *memory = command->memories[0];

    if (status != TANDEM_OK || command->bytes == 0) {
        command_destroy(command);
        return device_unlock(device, status);
    }
    /* Memory that is written as a whole becomes valid for later commands. */
    if ((command->kind == COMMAND_UPLOAD || command->kind == COMMAND_FILL) &&
        command->offset == 0 && command->bytes == memory->bytes)
        memory->poison = TANDEM_OK;
    stream_enqueue(stream, command);
    return device_unlock(device, TANDEM_OK);
}

enum tandem_status transfer_upload(struct tandem_stream *handle,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    struct sim_stream *stream;
    struct command *command;
    enum tandem_status status =
        check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);

    block_in("upload", handle);
    if (setting("offset"))
        offset = 0;
    if (!source && bytes)
        status = argument_error("upload: source is NULL");
    if (status == TANDEM_OK)
        status = transfer_begin("upload", COMMAND_UPLOAD, handle, buffer,
                                offset, bytes, &stream, &command);
    if (status != TANDEM_OK)
        return status;
    command->source = source;
    if (bytes > 0 && !(flags & TANDEM_TRANSFER_ASYNC)) {
        command->source = command->data = malloc(bytes);
        if (!command->data)
            return transfer_end(stream, command,
                                memory_error("upload: no memory"));
        memcpy(command->data, source, bytes);
    }
    if (bytes > 0) {
        COUNT(stream->object.device, uploads, 1);
        COUNT(stream->object.device, upload_bytes, bytes);
    }
    return answer(transfer_end(stream, command, TANDEM_OK));
}

/*
 * Locked. Waits for the queue and runs the command. The error of a poisoned
 * buffer does not affect the stream.
 */
static enum tandem_status download_now(struct sim_stream *stream,
                                       struct command *command,
                                       uint64_t timeout_ns)
{
    enum tandem_status status =
        stream_reach(stream, stream->enqueued, timeout_ns);

    if (status == TANDEM_OK)
        status = command_run(stream->object.device, command);
    command->bytes = 0; /* It is not enqueued. */
    return status;
}

enum tandem_status transfer_download(struct tandem_stream *handle,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    struct sim_stream *stream;
    struct command *command;
    enum tandem_status status =
        check_flags("download", flags, TANDEM_TRANSFER_ASYNC);

    block_in("download", handle);
    if (!target && bytes)
        status = argument_error("download: target is NULL");
    if (status == TANDEM_OK)
        status = transfer_begin("download", COMMAND_DOWNLOAD, handle, buffer,
                                offset, bytes, &stream, &command);
    if (status != TANDEM_OK)
        return status;
    command->target = target;
    command->read_count = 1;
    if (bytes > 0)
        status = memory_is_valid(command->memories[0], "the buffer");
    if (status == TANDEM_OK && bytes > 0 && !(flags & TANDEM_TRANSFER_ASYNC))
        status = download_now(stream, command, timeout_ns);
    if (status == TANDEM_OK && bytes > 0) {
        COUNT(stream->object.device, downloads, 1);
        COUNT(stream->object.device, download_bytes, bytes);
    }
    return wait_end(transfer_end(stream, command, status));
}

enum tandem_status transfer_copy(struct tandem_stream *handle,
                                 struct tandem_buffer *target,
                                 uint64_t target_offset,
                                 struct tandem_buffer *source,
                                 uint64_t source_offset, uint64_t bytes)
{
    struct address_range range;
    struct sim_stream *stream;
    struct command *command;
    enum tandem_status status =
        transfer_begin("copy: source", COMMAND_COPY, handle, source,
                       source_offset, bytes, &stream, &command);

    if (status != TANDEM_OK)
        return status;
    command->offset = target_offset;
    command->source_offset = source_offset;
    command->read_count = 1;
    status = address_range_of(stream->object.device, target, &range);
    if (status == TANDEM_OK && range.is_sealed)
        status = sealed_error("copy: target");
    if (status == TANDEM_OK)
        status = check_range("copy: target", target_offset, bytes, range.bytes);
    if (status == TANDEM_OK && bytes && target == source &&
        target_offset < source_offset + bytes &&
        source_offset < target_offset + bytes)
        status = argument_error("copy: %llu bytes at %llu and at %llu overlap",
                                (unsigned long long)bytes,
                                (unsigned long long)source_offset,
                                (unsigned long long)target_offset);
    if (status == TANDEM_OK)
        status = memory_is_valid(command->memories[0], "the source");
    if (status == TANDEM_OK)
        command_use(command, ((struct sim_buffer *)target)->memory);
    return transfer_end(stream, command, status);
}

enum tandem_status transfer_fill(struct tandem_stream *handle,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 uint64_t bytes, const void *pattern,
                                 uint32_t pattern_bytes)
{
    struct sim_stream *stream;
    struct command *command;
    enum tandem_status status;

    if (!pattern ||
        (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
         pattern_bytes != 8) ||
        offset % pattern_bytes || bytes % pattern_bytes)
        return argument_error(
            "fill: pattern is NULL, or its %u bytes are not 1, "
            "2, 4 or 8 or do not divide offset and bytes",
            pattern_bytes);
    status = transfer_begin("fill", COMMAND_FILL, handle, buffer, offset, bytes,
                            &stream, &command);
    if (status != TANDEM_OK)
        return status;
    memcpy(command->pattern, pattern, pattern_bytes);
    command->pattern_bytes = pattern_bytes;
    return transfer_end(stream, command, TANDEM_OK);
}
