/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of the CPU plugin's objects, checks of the handles that callers pass,
 * and the lists of objects that an open device owns. */
#include "config.h"

#include "common/last_error.h"
#include "cpu/objects.h"

struct handle_pool device_pool = HANDLE_POOL(struct tandem_device, 0x63646576u);
struct handle_pool stream_pool = HANDLE_POOL(struct tandem_stream, 0x63737472u);
struct handle_pool event_pool = HANDLE_POOL(struct tandem_event, 0x63657674u);
struct handle_pool buffer_pool = HANDLE_POOL(struct tandem_buffer, 0x63627566u);

enum tandem_status device_check(const struct tandem_device *device)
{
    return handle_check(&device_pool, device, "device",
                        "a device, or it was closed");
}

enum tandem_status stream_check(struct tandem_stream *stream)
{
    return handle_check(&stream_pool, stream, "stream",
                        "a stream, or it was destroyed");
}

enum tandem_status event_check(struct tandem_event *event)
{
    return handle_check(&event_pool, event, "event",
                        "an event, or it was destroyed");
}

enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer)
{
    enum tandem_status status = handle_check(&buffer_pool, buffer, "buffer",
                                             "a buffer, or it was freed");
    if (status == TANDEM_OK && buffer->owned.device != device)
        return argument_error("the buffer belongs to another device");
    return status;
}

enum tandem_status buffer_span(const void *user,
                               const struct tandem_buffer *buffer,
                               struct address_range *out)
{
    enum tandem_status status = buffer_check(user, buffer);
    if (status != TANDEM_OK)
        return status;
    if (__atomic_load_n(&buffer->is_mapped, __ATOMIC_RELAXED) != 0)
        return argument_error("the buffer is mapped; unmap it first");
    out->base = (uint64_t)(uintptr_t)buffer->base;
    out->bytes = buffer->bytes;
    out->is_sealed = __atomic_load_n(&buffer->is_sealed, __ATOMIC_RELAXED);
    return TANDEM_OK;
}

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
