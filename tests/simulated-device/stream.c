/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of the simulated device. A queue runs its commands only when a caller
 * waits for or queries it. The inner plugin computes a command. A command that
 * fails leaves its error on the stream, and the commands behind it only poison
 * their outputs: reading these returns the error. An event is a
 * stream and a number of commands. The device's mutex protects all data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

/* ---- commands ---- */

struct command *command_new(enum command_kind kind)
{
    struct command *command = calloc(1, sizeof *command);

    if (!command)
        memory_error("no memory for a command");
    else
        command->kind = kind;
    return command;
}

void command_use(struct command *command, struct sim_memory *memory)
{
    memory->references++;
    command->memories[command->memory_count++] = memory;
}

void command_destroy(struct command *command)
{
    if (!command)
        return;
    for (uint32_t i = 0; i < command->memory_count; i++)
        memory_release(command->memories[i]);
    free(command->data);
    free(command->scalars);
    if (command->prepared)
        prepared_put(command->prepared);
    free(command);
}

static enum tandem_status launch_run(struct tandem_stream *stream,
                                     const struct command *command)
{
    const struct tandem_backend *inner = inner_backend();
    const struct tandem_memory *operands = command->operands;
    const uint32_t id = command->prepared->call->op.id;
    const uint64_t us = setting_number("slow", 0);
    const struct timespec pause_time = {(time_t)(us / 1000000),
                                        (long)(us % 1000000 * 1000)};
    enum tandem_status status = inner->launch(
        stream, command->prepared->inner, operands, command->operand_count,
        command->scalars, command->scalar_count);

    if (id == TANDEM_OP_GEMM && us > 0)
        nanosleep(&pause_time, NULL);
    if (status == TANDEM_OK && id == TANDEM_OP_RELU && setting("overwrite") &&
        operands[1].byte_offset > 0)
        status = inner->fill(stream, operands[1].buffer,
                             operands[1].byte_offset - 1, 1, "\x5a", 1);
    return status;
}

/* Runs the command on the inner plugin without waiting. */
static enum tandem_status inner_run(struct sim_device *device,
                                    struct command *command)
{
    const struct tandem_backend *inner = inner_backend();
    struct tandem_stream *stream = device->inner_stream;
    struct tandem_buffer *first =
        command->memory_count ? command->memories[0]->inner : NULL;

    switch (command->kind) {
    case COMMAND_UPLOAD:
        return inner->upload(stream, first, command->offset, command->source,
                             command->bytes, 0);
    case COMMAND_DOWNLOAD:
        return inner->download(stream, first, command->offset, command->target,
                               command->bytes, 0, TANDEM_TIMEOUT_INFINITE);
    case COMMAND_COPY:
        return inner->copy(stream, command->memories[1]->inner, command->offset,
                           first, command->source_offset, command->bytes);
    case COMMAND_FILL:
        return inner->fill(stream, first, command->offset, command->bytes,
                           command->pattern, command->pattern_bytes);
    case COMMAND_LAUNCH:
        COUNT(device, executed, 1);
        return launch_run(stream, command);
    case COMMAND_WAIT:
        break;
    }
    return TANDEM_OK;
}

enum tandem_status command_run(struct sim_device *device,
                               struct command *command)
{
    enum tandem_status status = TANDEM_OK;

    if (command->fault != TANDEM_OK)
        return last_error_set(command->fault, "scripted fault");
    for (uint32_t i = 0; i < command->read_count && status == TANDEM_OK; i++)
        status = memory_is_valid(command->memories[i], "an input");
    if (status != TANDEM_OK)
        return status;
    status = inner_run(device, command);
    if (status == TANDEM_OK)
        status = inner_backend()->stream_synchronize(device->inner_stream,
                                                     TANDEM_TIMEOUT_INFINITE);
    if (status != TANDEM_OK)
        return inner_failed(status);
    if ((command->kind == COMMAND_UPLOAD || command->kind == COMMAND_FILL) &&
        command->offset == 0 && command->bytes == command->memories[0]->bytes)
        command->memories[0]->poison = TANDEM_OK;
    return TANDEM_OK;
}

/* ---- running ---- */

static void stream_fail(struct sim_stream *stream, struct command *command,
                        enum tandem_status status)
{
    for (uint32_t i = command->read_count; i < command->memory_count; i++)
        command->memories[i]->poison = status;
    if (status == TANDEM_DEVICE_LOST)
        stream->object.device->lost = true;
    if (stream->error != TANDEM_OK)
        return;
    stream->error = status;
    stream->error_position = stream->executed + 1;
    snprintf(stream->error_message, sizeof stream->error_message, "%s",
             last_error_get());
}

/* Returns the stream that the first command waits for, or NULL. */
static struct sim_stream *stream_other(const struct sim_stream *stream)
{
    const struct command *command = stream->first;

    return command->kind == COMMAND_WAIT && command->stream &&
                   command->stream->executed < command->position
               ? command->stream
               : NULL;
}

/* Runs the first command in the queue, or one that it waits for. */
static void stream_step(struct sim_stream *stream)
{
    struct sim_device *device = stream->object.device;
    struct command *command = stream->first;
    enum tandem_status status = stream->error;

    if (stream_other(stream)) {
        stream_step(stream_other(stream));
        return;
    }
    if (status == TANDEM_OK && device->lost)
        status = last_error_set(TANDEM_DEVICE_LOST, "device %u is gone",
                                device->index);
    if (status == TANDEM_OK)
        status = command_run(device, command);
    if (status != TANDEM_OK)
        stream_fail(stream, command, status);
    stream->first = command->next;
    if (!stream->first)
        stream->last = NULL;
    stream->executed++;
    command_destroy(command);
}

/* ---- stalled commands ---- */

#define STALL_NAP_NS 1000000

static bool released; /* Launches no longer stall. */

void tandem_sim_release(void)
{
    __atomic_store_n(&released, true, __ATOMIC_RELEASE);
}

bool stalls_are_released(void)
{
    return __atomic_load_n(&released, __ATOMIC_ACQUIRE);
}

/* Returns true if the first command, or the one it waits for, stalls. */
static bool stream_stalls(const struct sim_stream *stream)
{
    while (stream_other(stream))
        stream = stream_other(stream);
    return stream->first->stalls && stream->error == TANDEM_OK &&
           !stalls_are_released();
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Runs all commands before position. Returns false if a command stalls and the
 * timeout expired. Other threads may use the device meanwhile.
 */
static bool stream_advance(struct sim_stream *stream, uint64_t position,
                           uint64_t timeout_ns)
{
    const struct timespec nap = {0, STALL_NAP_NS};
    const uint64_t start = clock_ns();

    while (stream->executed < position) {
        if (!stream_stalls(stream)) {
            stream_step(stream);
            continue;
        }
        if (clock_ns() - start >= timeout_ns)
            return false;
        pthread_mutex_unlock(&stream->object.device->mutex);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&stream->object.device->mutex);
    }
    return true;
}

void device_drain(struct sim_device *device)
{
    struct object *object;

    LIST_FOREACH(object, &device->objects, link)
    if (object->kind == STREAM) {
        struct sim_stream *stream = (struct sim_stream *)object;

        stream_advance(stream, stream->enqueued, TANDEM_TIMEOUT_INFINITE);
    }
}

/* Returns the stream's error with a message. */
static enum tandem_status stream_error(const struct sim_stream *stream)
{
    return stream->error == TANDEM_OK
               ? TANDEM_OK
               : last_error_set(stream->error, "%s", stream->error_message);
}

/* Counts a wait, and returns the result of its scripted fault. */
static enum tandem_status wait_begin(struct sim_device *device,
                                     uint64_t timeout_ns)
{
    if (timeout_ns != 0)
        COUNT(device, waits, 1);
    if (++device->wait_count != device->fault_wait)
        return TANDEM_OK;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE)
        return last_error_set(TANDEM_NOT_READY,
                              "scripted to hang: %llu ns ran out",
                              (unsigned long long)timeout_ns);
    device->lost = true;
    return last_error_set(TANDEM_DEVICE_LOST,
                          "scripted to hang without a timeout: lost");
}

enum tandem_status stream_reach(struct sim_stream *stream, uint64_t position,
                                uint64_t timeout_ns)
{
    enum tandem_status status = wait_begin(stream->object.device, timeout_ns);

    if (status != TANDEM_OK)
        return status;
    if (timeout_ns == 0 && stream->executed < position) {
        if (!stream_stalls(stream))
            stream_step(stream);
        return last_error_set(
            TANDEM_NOT_READY, "%llu commands are under way",
            (unsigned long long)(position - stream->executed + 1));
    }
    if (!stream_advance(stream, position, timeout_ns))
        return last_error_set(TANDEM_NOT_READY,
                              "a command hangs: %llu ns ran out",
                              (unsigned long long)timeout_ns);
    return stream->error_position <= position ? stream_error(stream)
                                              : TANDEM_OK;
}

/* ---- streams ---- */

enum tandem_status stream_lock(struct tandem_stream *handle,
                               struct sim_stream **out_stream)
{
    enum tandem_status status = object_lock(handle, STREAM, out_stream);

    if (status == TANDEM_OK && (*out_stream)->error != TANDEM_OK)
        return device_unlock((*out_stream)->object.device,
                             stream_error(*out_stream));
    return status;
}

void stream_enqueue(struct sim_stream *stream, struct command *command)
{
    if (stream->last)
        stream->last->next = command;
    else
        stream->first = command;
    stream->last = command;
    stream->enqueued++;
}

enum tandem_status stream_create(struct tandem_device *handle, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    struct sim_device *device;
    struct sim_stream *stream;
    enum tandem_status status;

    block_in("stream_create", handle);
    if (!out_stream)
        return argument_error("stream_create: out_stream is NULL");
    *out_stream = NULL;
    status = check_flags("stream_create", flags, TANDEM_STREAM_PROFILING);
    if (status == TANDEM_OK)
        status = object_lock(handle, DEVICE, &device);
    if (status != TANDEM_OK)
        return status;
    status = setting_status("stream", device->index);
    if (status != TANDEM_OK) {
        *out_stream = (void *)(uintptr_t)0xdead0000;
        return device_unlock(device, last_error_set(status, "as scripted"));
    }
    stream = object_new(device, STREAM);
    if (!stream)
        return device_unlock(device, TANDEM_OUT_OF_MEMORY);
    COUNT(device, streams, 1);
    *out_stream = (struct tandem_stream *)stream;
    return device_unlock(device, TANDEM_OK);
}

/* Events and waits that refer to the drained stream are complete. */
void stream_finish(struct sim_stream *stream)
{
    struct object *object;

    stream_advance(stream, stream->enqueued, TANDEM_TIMEOUT_INFINITE);
    LIST_FOREACH(object, &stream->object.device->objects, link)
    if (object->kind == EVENT) {
        struct sim_event *event = (struct sim_event *)object;

        if (event->stream == stream)
            event->stream = NULL;
    } else if (object->kind == STREAM) {
        struct command *c = ((struct sim_stream *)object)->first;

        for (; c; c = c->next)
            if (c->stream == stream)
                c->stream = NULL;
    }
}

void stream_destroy(struct tandem_stream *handle)
{
    handle_release(handle, STREAM);
}

enum tandem_status stream_synchronize(struct tandem_stream *handle,
                                      uint64_t timeout_ns)
{
    struct sim_stream *stream;
    enum tandem_status status = object_lock(handle, STREAM, &stream);

    block_in("stream_synchronize", handle);
    if (status != TANDEM_OK)
        return status;
    status = stream_reach(stream, stream->enqueued, timeout_ns);
    if (status != TANDEM_NOT_READY && status != TANDEM_DEVICE_LOST)
        stream->error = TANDEM_OK;
    return wait_end(device_unlock(stream->object.device, status));
}

/* ---- events ---- */

enum tandem_status stream_wait_event(struct tandem_stream *handle,
                                     struct tandem_event *event_handle)
{
    struct sim_event *event;
    struct sim_stream *stream;
    struct command *command;
    enum tandem_status status = object_hold(event_handle, EVENT, &event);

    if (status != TANDEM_OK)
        return status;
    pthread_mutex_unlock(&event->object.device->mutex);
    status = stream_lock(handle, &stream);
    if (status != TANDEM_OK)
        return status;
    if (event->object.device != stream->object.device)
        return device_unlock(
            stream->object.device,
            argument_error(
                "stream_wait_event: the event is of another device"));
    if (!event->stream || event->stream == stream)
        return device_unlock(stream->object.device, TANDEM_OK);
    command = command_new(COMMAND_WAIT);
    if (!command)
        return device_unlock(stream->object.device, TANDEM_OUT_OF_MEMORY);
    command->stream = event->stream;
    command->position = event->position;
    stream_enqueue(stream, command);
    return device_unlock(stream->object.device, TANDEM_OK);
}

enum tandem_status event_record(struct tandem_stream *handle,
                                struct tandem_event **out_event)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim_event *event;
    enum tandem_status status;

    block_in("event_record", handle);
    if (!out_event)
        return argument_error("event_record: out_event is NULL");
    *out_event = NULL;
    status = stream_lock(handle, &stream);
    if (status != TANDEM_OK)
        return status;
    device = stream->object.device;
    event = object_new(device, EVENT);
    if (!event)
        return device_unlock(device, TANDEM_OUT_OF_MEMORY);
    event->stream = stream;
    event->position = stream->enqueued;
    COUNT(device, events, 1);
    *out_event = (struct tandem_event *)event;
    return device_unlock(device, TANDEM_OK);
}

void event_destroy(struct tandem_event *handle)
{
    block_in("event_destroy", handle);
    handle_release(handle, EVENT);
}

enum tandem_status event_wait(struct tandem_event *handle, uint64_t timeout_ns)
{
    struct sim_event *event;
    enum tandem_status status = object_lock(handle, EVENT, &event);

    block_in("event_wait", handle);
    if (status != TANDEM_OK)
        return status;
    if (event->stream)
        status = stream_reach(event->stream, event->position, timeout_ns);
    return wait_end(device_unlock(event->object.device, status));
}
