/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves storages between the host and devices; see storage.h.
 */
#include <config.h>

#include "common/message.h"
#include "common/operator.h"
#include "host/storage.h"
#include "host/tensor.h"

#include <stdlib.h>

enum tandem_status storage_readable(struct storage *storage)
{
    struct tandem_context *context = storage->context;

    if (storage->current & HOST_BIT)
        return TANDEM_OK;
    for (uint32_t i = 0; i < context->device_count; i++) {
        if (!(storage->current >> i & 1))
            continue;
        if (context->devices[i]->state == DEVICE_OPEN)
            return TANDEM_OK;
        /* The only copy was on a device that is gone. */
        storage->current &= ~(1u << i);
        if (storage->current == 0)
            storage->poison = TANDEM_DEVICE_LOST;
    }
    if (storage->poison != TANDEM_OK)
        return message_set(storage->poison,
                           "the tensor's content was lost with the device "
                           "that held it: write it again");
    return message_set(TANDEM_INVALID_ARGUMENT,
                       "the tensor was never written: it has no content to "
                       "read");
}

/* A device with a current copy; storage_readable said that there is one. */
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

static void claims_copy(struct storage *storage)
{
    for (const struct claim *claim = storage->claims; claim != NULL;
         claim = claim->next) {
        const struct tandem_tensor_desc *desc = &claim->desc;

        strided_copy(storage->host + desc->byte_offset, desc->strides,
                     storage->staging + desc->byte_offset, desc->strides,
                     desc->rank, desc->shape, dtype_bytes(desc->dtype));
    }
}

/* A blocking download, tried again where an error of other work was in its
 * way. */
static enum tandem_status download(struct storage *storage,
                                   struct device *device, void *target,
                                   uint64_t bytes, uint64_t timeout_ns)
{
    enum tandem_status status;

    for (uint32_t attempt = 0;; attempt++) {
        status = device->table->download(
            device->stream, storage->buffers[device->id], 0, target, bytes, 0,
            timeout_ns);
        if (status == TANDEM_NOT_READY) {
            storage->host_used |= 1u << device->id;
            return message_set(status,
                               "%s: work on the tensor is still under way",
                               device->label);
        }
        if (status == TANDEM_OK) {
            device_waited(device);
            storages_leave(device->context);
            return TANDEM_OK;
        }
        device_failed(device, status, "reading the tensor");
        if (attempt > 0 || !device_recover(device))
            return status;
    }
}

/* Waits for the device that writes the host's copy, and hears whether it
 * failed, by reading a byte through it. */
static enum tandem_status host_settle(struct storage *storage,
                                      uint64_t timeout_ns)
{
    struct device *writer = storage->host_writer;
    enum tandem_status status;
    char byte;

    if (writer == NULL)
        return TANDEM_OK;
    if (writer->state != DEVICE_OPEN) {
        storage->poison = TANDEM_DEVICE_LOST;
        storage->current = 0;
        return storage_readable(storage);
    }
    status = download(storage, writer, &byte, storage->bytes > 0, timeout_ns);
    if (status == TANDEM_OK)
        storage->host_writer = NULL;
    return status;
}

enum tandem_status storage_to_host(struct storage *storage,
                                   uint64_t timeout_ns)
{
    struct device *source;
    enum tandem_status status;

    if (storage->current & HOST_BIT)
        return host_settle(storage, timeout_ns);
    status = storage_readable(storage);
    if (status == TANDEM_OK)
        status = storage_host_make(storage);
    if (status == TANDEM_OK)
        status = storage_host_release(storage, storage->context->sharing,
                                      timeout_ns);
    if (status != TANDEM_OK)
        return status;
    if (storage->gaps && storage->staging == NULL) {
        storage->staging = malloc(storage->bytes);
        if (storage->staging == NULL)
            return message_set(TANDEM_OUT_OF_MEMORY,
                               "no memory to bring a strided tensor home");
    }
    source = source_find(storage);
    status = download(storage, source,
                      storage->gaps ? storage->staging : storage->host,
                      storage->bytes, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    if (storage->gaps) {
        claims_copy(storage);
        free(storage->staging);
        storage->staging = NULL;
    }
    storage->current |= HOST_BIT;
    return TANDEM_OK;
}

enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device)
{
    enum tandem_status status;

    if (device->shares_host) {
        if (!(storage->current & HOST_BIT) ||
            (storage->host_writer != NULL && storage->host_writer != device)) {
            status = storage_to_host(storage, TANDEM_FOREVER);
            if (status != TANDEM_OK)
                return status;
        }
        return storage_buffer_make(storage, device);
    }
    if (storage->current & device->bit)
        return TANDEM_OK;
    status = storage_to_host(storage, TANDEM_FOREVER);
    if (status == TANDEM_OK)
        status = storage_buffer_make(storage, device);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t attempt = 0;; attempt++) {
        status = device->table->upload(device->stream,
                                       storage->buffers[device->id], 0,
                                       storage->host, storage->bytes, 0);
        if (status == TANDEM_OK) {
            storage->current |= device->bit;
            return TANDEM_OK;
        }
        device_failed(device, status, "writing the tensor");
        if (attempt > 0 || !device_recover(device))
            return status;
    }
}

enum tandem_status storage_host_release(struct storage *storage,
                                        uint32_t devices, uint64_t timeout_ns)
{
    struct tandem_context *context = storage->context;

    devices &= storage->host_used;
    for (uint32_t i = 0; devices >> i != 0; i++) {
        struct device *device = context->devices[i];

        if (!(devices >> i & 1))
            continue;
        if (device->busy) {
            const enum tandem_status status = device_wait(device, timeout_ns);

            /* An error belongs to what the work wrote, not to this. */
            if (status == TANDEM_NOT_READY)
                return status;
            if (status != TANDEM_OK)
                device_late(device, status);
        }
        storage->host_used &= ~(1u << i);
    }
    return TANDEM_OK;
}
