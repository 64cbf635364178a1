/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the content of storages between the host and devices; see storage.h.
 */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/tensor_extent.h"
#include "host/tensor/storage.h"

#include <stdlib.h>
#include <string.h>

static void row_copy(char *target, int64_t target_stride, const char *source,
                     int64_t source_stride, int64_t count,
                     uint32_t element_bytes)
{
    if (target_stride == 1 && source_stride == 1) {
        memcpy(target, source, (size_t)count * element_bytes);
        return;
    }
    target_stride *= element_bytes;
    source_stride *= element_bytes;
    for (int64_t i = 0; i < count; i++) {
        memcpy(target, source, element_bytes);
        target += target_stride;
        source += source_stride;
    }
}

void strided_copy(const struct tandem_tensor_desc *desc, char *target,
                  const int64_t *target_strides, const char *source,
                  const int64_t *source_strides)
{
    const uint32_t element_bytes = dtype_bytes(desc->dtype);
    const uint32_t last = desc->rank - 1;
    const int64_t *shape = desc->shape;
    int64_t index[TANDEM_MAX_RANK] = {0}, row_elements;
    uint32_t outer = last; /* number of axes that are not merged into rows */

    if (!tensor_has_elements(desc))
        return;
    if (desc->rank == 0) {
        memcpy(target, source, element_bytes);
        return;
    }
    row_elements = shape[last];
    for (; outer > 0; outer--) {
        if (target_strides[outer - 1] != target_strides[last] * row_elements ||
            source_strides[outer - 1] != source_strides[last] * row_elements)
            break;
        row_elements *= shape[outer - 1];
    }
    for (;;) {
        uint32_t axis = outer;

        row_copy(target, target_strides[last], source, source_strides[last],
                 row_elements, element_bytes);
        /* Advance `index` to the next row.  The last axis changes fastest. */
        for (;;) {
            if (axis-- == 0)
                return;
            target += target_strides[axis] * element_bytes;
            source += source_strides[axis] * element_bytes;
            if (++index[axis] < shape[axis])
                break;
            target -= target_strides[axis] * shape[axis] * element_bytes;
            source -= source_strides[axis] * shape[axis] * element_bytes;
            index[axis] = 0;
        }
    }
}

enum tandem_status storage_require_content(struct storage *storage)
{
    struct tandem_context *context = storage->context;

    if (storage->current & HOST_BIT)
        return TANDEM_OK;
    for (uint32_t i = 0; i < context->device_count; i++) {
        if (!(storage->current >> i & 1))
            continue;
        if (context->devices[i]->state == DEVICE_OPEN)
            return TANDEM_OK;
        /* The device that held this copy was lost. */
        storage->current &= ~(1u << i);
        if (storage->current == 0)
            storage->poison = TANDEM_DEVICE_LOST;
    }
    if (storage->poison != TANDEM_OK)
        return last_error_set(storage->poison,
                              "tensor: its content was lost with the device "
                              "that held it; write it again");
    return argument_error("tensor: it was never written, or was reset, so it "
                          "has no content to read");
}

/* Returns a device with a current copy of the storage, preferably an idle one.
 * The caller must have ensured that a copy exists (storage_require_content). */
static struct device *source_find(const struct storage *storage)
{
    struct tandem_context *context = storage->context;
    struct device *source = NULL;

    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if (!(storage->current >> i & 1) || device->state != DEVICE_OPEN)
            continue;
        if (source == NULL || (source->busy && !device->busy))
            source = device;
    }
    return source;
}

static void writable_layouts_copy(struct storage *storage)
{
    for (const struct writable_layout *claim = storage->writable_layouts;
         claim != NULL; claim = claim->next) {
        const struct tandem_tensor_desc *desc = &claim->desc;

        strided_copy(desc, storage->host + desc->byte_offset, desc->strides,
                     storage->staging + desc->byte_offset, desc->strides);
    }
}

/* Downloads a storage's content, after earlier work of the device, and waits
 * until it arrives.  First waits for that work without the stream. */
static enum tandem_status download(struct storage *storage,
                                   struct device *device, void *target,
                                   uint64_t bytes, uint64_t deadline_ns)
{
    const uint32_t bit = 1u << device->id;
    const bool used = storage->host_used & bit;
    enum tandem_status status;

    storage->waits_for = device;
    status = wait_enqueued(device, deadline_ns);
    if (status != TANDEM_OK) {
        storage->waits_for = NULL;
        return status;
    }
    storage->host_used |= bit;
    status = device_download(device, storage->buffers[device->id], target,
                             bytes, deadline_ns);
    storage->waits_for = NULL;
    if (status == TANDEM_NOT_READY || device->hung)
        return status;
    if (status == TANDEM_OK || !used)
        storage->host_used &= ~bit;
    if (status == TANDEM_OK)
        storages_free_pending(device->context);
    return status;
}

/* Waits for the device, if any, whose work may still write the host copy.
 * Downloads one byte from that device to learn whether its work failed. */
static enum tandem_status host_writer_wait(struct storage *storage,
                                           uint64_t deadline_ns)
{
    struct device *writer = storage->host_writer;
    enum tandem_status status;

    if (writer == NULL)
        return TANDEM_OK;
    if (writer->state != DEVICE_OPEN) {
        storage->poison = TANDEM_DEVICE_LOST;
        storage->current = 0;
        return storage_require_content(storage);
    }
    status = download(storage, writer, &storage->sync_byte, storage->bytes > 0,
                      deadline_ns);
    if (status == TANDEM_OK)
        storage->host_writer = NULL;
    return status;
}

static enum tandem_status host_copy_download(struct storage *storage,
                                             uint64_t deadline_ns)
{
    struct device *source = source_find(storage);
    enum tandem_status status;

    if (source == NULL) /* it was lost meanwhile */
        return storage_require_content(storage);
    if (storage->has_gaps && storage->staging == NULL) {
        storage->staging = malloc(storage->bytes);
        if (storage->staging == NULL)
            return memory_error("no memory to download a strided tensor");
    }
    status = download(storage, source,
                      storage->has_gaps ? storage->staging : storage->host,
                      storage->bytes, deadline_ns);
    if (status != TANDEM_OK)
        return status;
    if (storage->has_gaps) {
        writable_layouts_copy(storage);
        free(storage->staging);
        storage->staging = NULL;
    }
    storage->current |= HOST_BIT;
    storage_drop_device_copy(storage, source);
    return TANDEM_OK;
}

enum tandem_status storage_sync_host(struct storage *storage,
                                     uint64_t deadline_ns)
{
    enum tandem_status status;

    if (storage->current & HOST_BIT)
        return host_writer_wait(storage, deadline_ns);
    status = storage_require_content(storage);
    if (status == TANDEM_OK)
        status = storage_allocate_host(storage);
    if (status == TANDEM_OK)
        status = storage_wait_host_writable(
            storage, storage_zero_copy_devices(storage), deadline_ns);
    return status == TANDEM_OK ? host_copy_download(storage, deadline_ns)
                               : status;
}

bool storage_is_on_device(const struct storage *storage,
                          const struct device *device)
{
    if (storage->buffers[device->id] == NULL ||
        !(storage->current & storage_location_bit(storage, device)))
        return false;
    return !storage_is_zero_copy(storage, device) ||
           storage->host_writer == NULL || storage->host_writer == device;
}

/* Plugins copy uploads of at most this size to a staging buffer.  An upload
 * above this size uses the stream until all earlier work is done.  To avoid
 * this, storage_to_device first waits for that work without the stream. */
#define MAX_STAGED_BYTES ((uint64_t)4 << 20)

/* Uploads the host copy, which must be current. */
static enum tandem_status upload(struct storage *storage, struct device *device)
{
    struct tandem_buffer *buffer = storage->buffers[device->id];
    enum tandem_status status = TANDEM_OK;

    if (storage->bytes > MAX_STAGED_BYTES)
        status = wait_enqueued(device, HANG_DEADLINE);
    if (status == TANDEM_OK)
        status =
            device_upload(device, buffer, 0, storage->host, storage->bytes);
    if (status != TANDEM_OK)
        return status;
    storage->current |= device->bit;
    if (storage_is_unwritable(storage))
        (void)device->vtable->buffer_seal(buffer);
    return TANDEM_OK;
}

enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device)
{
    enum tandem_status status = TANDEM_OK;

    if (storage_is_on_device(storage, device))
        return TANDEM_OK;
    /* An outdated copy of a read-only storage is sealed. */
    if (storage_is_unwritable(storage) &&
        !storage_is_zero_copy(storage, device))
        storage_free_buffer(storage, device->id);
    if (!(storage->current & storage_location_bit(storage, device)) ||
        storage_is_zero_copy(storage, device))
        status = storage_sync_host(storage, HANG_DEADLINE);
    if (status == TANDEM_OK)
        status = storage_allocate_buffer(storage, device);
    if (status != TANDEM_OK ||
        storage->current & storage_location_bit(storage, device))
        return status;
    /* The device may have been lost during the wait for the host copy. */
    status = device_open(device);
    return status == TANDEM_OK ? upload(storage, device) : status;
}

enum tandem_status storage_wait_host_writable(struct storage *storage,
                                              uint32_t devices,
                                              uint64_t deadline_ns)
{
    struct tandem_context *context = storage->context;

    while ((storage->host_used & devices) != 0) {
        const uint32_t id =
            (uint32_t)__builtin_ctz(storage->host_used & devices);
        struct device *device = context->devices[id];

        if (device->busy || device->streams[0].is_used) {
            enum tandem_status status;

            storage->waits_for = device;
            status = wait_idle(device, deadline_ns);
            storage->waits_for = NULL;

            /* The error is from earlier work, not from this call. */
            if (status == TANDEM_NOT_READY)
                return status;
            if (status != TANDEM_OK && !device->hung)
                device_store_async_error(device, status);
        }
        if (device->hung)
            return last_error_set(TANDEM_DEVICE_LOST,
                                  "%s is lost and may still use the tensor's "
                                  "memory: use another tensor",
                                  device->label);
        storage->host_used &= ~(1u << id);
    }
    return TANDEM_OK;
}
