/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of the CPU plugin's objects, checks of the handles that callers pass,
 * and the lists of objects that an open device owns.  Callable from any thread.
 */
#include "config.h"

#include "common/last_error.h"
#include "cpu/objects.h"

struct handle_pool device_pool = HANDLE_POOL(struct tandem_device, 0x63646576u);
struct handle_pool stream_pool = HANDLE_POOL(struct tandem_stream, 0x63737472u);
struct handle_pool event_pool = HANDLE_POOL(struct tandem_event, 0x63657674u);
struct handle_pool buffer_pool = HANDLE_POOL(struct tandem_buffer, 0x63627566u);

/* ---- checks ------------------------------------------------------------- */

enum tandem_status device_check(const struct tandem_device *device)
{
    if (handle_live(&device_pool, device))
        return TANDEM_OK;
    return last_error_set(
        TANDEM_INVALID_ARGUMENT, "the device handle is %s",
        device == NULL ? "NULL" : "invalid: not a device, or it was closed");
}

enum tandem_status stream_check(const struct tandem_stream *stream)
{
    if (handle_live(&stream_pool, stream))
        return TANDEM_OK;
    return last_error_set(
        TANDEM_INVALID_ARGUMENT, "the stream handle is %s",
        stream == NULL ? "NULL" : "invalid: not a stream, or it was destroyed");
}

enum tandem_status event_check(const struct tandem_event *event)
{
    if (handle_live(&event_pool, event))
        return TANDEM_OK;
    return last_error_set(
        TANDEM_INVALID_ARGUMENT, "the event handle is %s",
        event == NULL ? "NULL" : "invalid: not an event, or it was destroyed");
}

enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer)
{
    if (!handle_live(&buffer_pool, buffer))
        return last_error_set(
            TANDEM_INVALID_ARGUMENT, "the buffer handle is %s",
            buffer == NULL ? "NULL" : "invalid: not a buffer, or it was freed");
    if (buffer->owned.device != device)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "the buffer belongs to another device");
    return TANDEM_OK;
}

enum tandem_status buffer_span(const void *user,
                               const struct tandem_buffer *buffer,
                               struct address_range *out)
{
    enum tandem_status status = buffer_check(user, buffer);
    if (status != TANDEM_OK)
        return status;
    if (__atomic_load_n(&buffer->maps, __ATOMIC_RELAXED) != 0)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "the buffer is mapped; unmap it first");
    out->base = (uint64_t)(uintptr_t)buffer->base;
    out->bytes = buffer->bytes;
    return TANDEM_OK;
}

/* ---- lists -------------------------------------------------------------- */

void owned_link(struct owned **list, struct owned *object)
{
    object->previous = NULL;
    object->next = *list;
    if (*list != NULL)
        (*list)->previous = object;
    *list = object;
}

void owned_unlink(struct owned **list, struct owned *object)
{
    if (object->next != NULL)
        object->next->previous = object->previous;
    if (object->previous != NULL)
        object->previous->next = object->next;
    else
        *list = object->next;
}

void *owned_new(struct handle_pool *pool, struct tandem_device *device,
                struct owned **list)
{
    struct owned *object = handle_new(pool);
    if (object == NULL)
        return NULL;
    object->device = device;
    pthread_mutex_lock(&device->mutex);
    owned_link(list, object);
    pthread_mutex_unlock(&device->mutex);
    return object;
}

void owned_free(struct handle_pool *pool, struct owned **list, void *object)
{
    struct owned *owned = object;
    pthread_mutex_lock(&owned->device->mutex);
    owned_unlink(list, owned);
    pthread_mutex_unlock(&owned->device->mutex);
    handle_free(pool, object);
}
