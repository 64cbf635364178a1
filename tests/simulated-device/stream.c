/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of the simulated GPU. A queue runs its commands only when a caller
 * waits for or queries it. A command that fails leaves its error on the
 * stream, and the commands behind it only poison their outputs. The device's
 * mutex protects all data.
 */
#include <stdio.h>
#include <time.h>

#include "common/last_error.h"
#include "internal.h"

struct handle_pool stream_pool = HANDLE_POOL(struct sim_stream, 0x53494d53u);

/* ---- running ---- */

static void stream_fail(struct sim_stream *stream, struct command *command,
                        enum tandem_status status)
{
    command_poison(command, status);
    if (status == TANDEM_DEVICE_LOST)
        stream->device->lost = true;
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
    struct command *command = stream->first;
    enum tandem_status status = stream->error;

    if (stream_other(stream)) {
        stream_step(stream_other(stream));
        return;
    }
    if (status == TANDEM_OK && stream->device->lost)
        status =
            last_error_set(TANDEM_DEVICE_LOST, "simulated: device %u is lost",
                           stream->device->index);
    if (status == TANDEM_OK)
        status = command_run(stream->device, command);
    if (status != TANDEM_OK)
        stream_fail(stream, command, status);
    stream->first = command->next;
    if (!stream->first)
        stream->last = NULL;
    stream->executed++;
    command_destroy(stream->device, command);
}

/* ---- hanging ---- */

#define HANG_NAP_NS 1000000

static bool released; /* Launches no longer hang. */

void tandem_sim_release(void)
{
    __atomic_store_n(&released, true, __ATOMIC_RELEASE);
}

/* Returns true if the first command, or the one it waits for, hangs. */
static bool stream_hangs(const struct sim_stream *stream)
{
    while (stream_other(stream))
        stream = stream_other(stream);
    return stream->first->hangs && stream->error == TANDEM_OK &&
           !__atomic_load_n(&released, __ATOMIC_ACQUIRE);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Runs all commands before position. Returns false if a command hangs and the
 * timeout expired. Other threads may use the device meanwhile.
 */
static bool stream_advance(struct sim_stream *stream, uint64_t position,
                           uint64_t timeout_ns)
{
    const struct timespec nap = {0, HANG_NAP_NS};
    const uint64_t start = clock_ns();

    while (stream->executed < position) {
        if (!stream_hangs(stream)) {
            stream_step(stream);
            continue;
        }
        if (clock_ns() - start >= timeout_ns)
            return false;
        pthread_mutex_unlock(&stream->device->mutex);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&stream->device->mutex);
    }
    return true;
}

void stream_drain(struct sim_stream *stream)
{
    stream_advance(stream, stream->enqueued, TANDEM_TIMEOUT_INFINITE);
}

/* Returns the stream's error with a message. */
static enum tandem_status stream_error(const struct sim_stream *stream)
{
    return stream->error == TANDEM_OK
               ? TANDEM_OK
               : last_error_set(stream->error, "%s", stream->error_message);
}

enum tandem_status wait_begin(struct sim_device *device, uint64_t timeout_ns)
{
    if (timeout_ns == 0)
        COUNT(device, polls, 1);
    else
        COUNT(device, waits, 1);
    if (++device->wait_count != device->script.fault_wait)
        return TANDEM_OK;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE)
        return last_error_set(TANDEM_NOT_READY,
                              "simulated: scripted to hang: %llu ns ran out",
                              (unsigned long long)timeout_ns);
    device->lost = true;
    return last_error_set(
        TANDEM_DEVICE_LOST,
        "simulated: scripted to hang without a timeout: lost");
}

enum tandem_status stream_reach(struct sim_stream *stream, uint64_t position,
                                uint64_t timeout_ns)
{
    if (timeout_ns == 0 && stream->executed < position) {
        if (!stream_hangs(stream))
            stream_step(stream);
        return last_error_set(
            TANDEM_NOT_READY, "simulated: %llu commands are under way",
            (unsigned long long)(position - stream->executed + 1));
    }
    if (!stream_advance(stream, position, timeout_ns))
        return last_error_set(TANDEM_NOT_READY,
                              "simulated: a command hangs: %llu ns ran out",
                              (unsigned long long)timeout_ns);
    if (stream->error != TANDEM_OK && stream->error_position <= position)
        return stream_error(stream);
    return TANDEM_OK;
}

/* ---- entries ---- */

/*
 * Returns a live stream with its device locked, even if the device is lost or
 * the stream has an error.
 */
static enum tandem_status stream_hold(struct tandem_stream *handle,
                                      struct sim_stream **out_stream)
{
    struct sim_stream *stream = (struct sim_stream *)handle;

    if (!handle_live(&stream_pool, stream))
        return argument_error("simulated: stream %p is NULL or was destroyed",
                              (void *)handle);
    pthread_mutex_lock(&stream->device->mutex);
    *out_stream = stream;
    return TANDEM_OK;
}

/* Like stream_hold, for a device that must not be lost. */
static enum tandem_status stream_hold_present(struct tandem_stream *handle,
                                              struct sim_stream **out_stream)
{
    enum tandem_status status = stream_hold(handle, out_stream);

    if (status == TANDEM_OK && (*out_stream)->device->lost)
        return device_unlock((*out_stream)->device,
                             last_error_set(TANDEM_DEVICE_LOST,
                                            "simulated: device %u is lost",
                                            (*out_stream)->device->index));
    return status;
}

enum tandem_status stream_lock(struct tandem_stream *handle,
                               struct sim_stream **out_stream)
{
    enum tandem_status status = stream_hold_present(handle, out_stream);

    if (status == TANDEM_OK && (*out_stream)->error != TANDEM_OK)
        return device_unlock((*out_stream)->device, stream_error(*out_stream));
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

    if (!out_stream)
        return argument_error("stream_create: out_stream is NULL");
    *out_stream = NULL;
    status = check_flags("stream_create", flags, TANDEM_STREAM_PROFILING);
    if (status != TANDEM_OK)
        return status;
    status = device_lock(handle, &device);
    if (status != TANDEM_OK)
        return status;
    stream = handle_new(&stream_pool);
    if (!stream)
        return device_unlock(device, memory_error("stream_create: no memory"));
    stream->device = device;
    stream->flags = flags;
    LIST_INSERT_HEAD(&device->streams, stream, link);
    COUNT(device, streams, 1);
    *out_stream = (struct tandem_stream *)stream;
    return device_unlock(device, TANDEM_OK);
}

/* Events and waits that refer to a drained stream are complete. */
static void stream_forget(struct sim_stream *stream)
{
    struct sim_device *device = stream->device;
    struct sim_stream *other;
    struct sim_event *event;

    LIST_FOREACH(event, &device->events, link)
    if (event->stream == stream)
        event->stream = NULL;
    LIST_FOREACH(other, &device->streams, link)
    for (struct command *c = other->first; c; c = c->next)
        if (c->stream == stream)
            c->stream = NULL;
}

void stream_release(struct sim_stream *stream)
{
    struct sim_device *device = stream->device;

    stream_drain(stream);
    stream_forget(stream);
    LIST_REMOVE(stream, link);
    COUNT(device, streams_destroyed, 1);
    handle_free(&stream_pool, stream);
}

void stream_destroy(struct tandem_stream *handle)
{
    struct sim_stream *stream = NULL;
    struct sim_device *device;

    if (!handle || stream_hold(handle, &stream) != TANDEM_OK)
        return;
    device = stream->device;
    stream_release(stream);
    pthread_mutex_unlock(&device->mutex);
}

enum tandem_status stream_synchronize(struct tandem_stream *handle,
                                      uint64_t timeout_ns)
{
    struct sim_stream *stream;
    enum tandem_status status = stream_hold_present(handle, &stream);

    if (status != TANDEM_OK)
        return status;
    status = wait_begin(stream->device, timeout_ns);
    if (status == TANDEM_OK) {
        status = stream_reach(stream, stream->enqueued, timeout_ns);
        if (status != TANDEM_NOT_READY && status != TANDEM_DEVICE_LOST)
            stream->error = TANDEM_OK;
    }
    return device_unlock(stream->device, status);
}

enum tandem_status stream_wait_event(struct tandem_stream *handle,
                                     struct tandem_event *event_handle)
{
    struct sim_event *event = (struct sim_event *)event_handle;
    struct sim_stream *stream;
    struct command *command;
    enum tandem_status status = stream_lock(handle, &stream);

    if (status != TANDEM_OK)
        return status;
    if (!handle_live(&event_pool, event) || event->device != stream->device)
        return device_unlock(
            stream->device,
            argument_error(
                "stream_wait_event: event %p is NULL, was destroyed or "
                "is of another device",
                (void *)event_handle));
    if (!event->stream || event->stream == stream)
        return device_unlock(stream->device, TANDEM_OK);
    command = command_new(COMMAND_WAIT);
    if (!command)
        return device_unlock(stream->device, TANDEM_OUT_OF_MEMORY);
    command->stream = event->stream;
    command->position = event->position;
    stream_enqueue(stream, command);
    return device_unlock(stream->device, TANDEM_OK);
}
