/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and synchronizes the content of tensors on behalf of the
 * caller, and prefetches it to devices.  The public functions lock the
 * context's mutex and may block. */
#include <config.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "host/tensor/tensor.h"
#include "host/device/device_wait.h"

#include <inttypes.h>

static enum tandem_status bytes_check(const struct tandem_tensor *tensor,
                                      const void *memory, uint64_t bytes)
{
    if (bytes != tensor->bytes)
        return argument_error("bytes: %" PRIu64
                              "; expected the tensor's %" PRIu64,
                              bytes, tensor->bytes);
    if (memory == NULL && bytes > 0)
        return argument_error("memory: NULL");
    return TANDEM_OK;
}

/* ---- writing ---- */

/* Returns a device to which the tensor's new content can be uploaded directly,
 * or NULL.  The tensor must be a contiguous part of a storage without gaps that
 * is current only on devices.  The context must be locked. */
static struct device *partial_upload_device(const struct tandem_tensor *tensor)
{
    const struct storage *storage = tensor->storage;
    struct device *device;

    if (tensor_covers_storage(tensor) || !tensor->contiguous ||
        storage->has_gaps || storage->current == 0 ||
        (storage->current & HOST_BIT))
        return NULL;
    device =
        storage->context->devices[(uint32_t)__builtin_ctz(storage->current)];
    return device->state == DEVICE_OPEN ? device : NULL;
}

/* Uploads `memory` to the tensor's part of the device's copy and sets
 * *out_done.  If the function waited or cleared an error of earlier work
 * instead, the caller must start the write again. */
static enum tandem_status partial_upload(const struct tandem_tensor *tensor,
                                         struct device *device,
                                         const void *memory, bool *recovered,
                                         bool *out_done)
{
    struct storage *storage = tensor->storage;
    enum tandem_status status;

    if (device->stream_owned)
        return stream_owner_wait(device, HANG_DEADLINE);
    status = device->vtable->upload(
        device->stream, storage->buffers[device->id], tensor->desc.byte_offset,
        memory, tensor->bytes, 0);
    if (status == TANDEM_OK) {
        storage->current = device->bit;
        *out_done = true;
        return TANDEM_OK;
    }
    status = device_call_failed(device, status, "writing the tensor");
    return stream_recover(device, status, recovered);
}

/* Prepares the storage's host copy for a write.  If the function waited, sets
 * *out_done to false; the caller must then start the write again. */
static enum tandem_status
host_copy_make_writable(const struct tandem_tensor *tensor, bool *out_done)
{
    struct storage *storage = tensor->storage;
    const uint64_t unlock_epoch = storage->context->unlock_epoch;
    enum tandem_status status = TANDEM_OK;

    /* The host copy must hold the elements that the write does not replace. */
    if (!tensor_covers_storage(tensor) && (storage->current & ~HOST_BIT) != 0)
        status = storage_sync_host(storage, HANG_DEADLINE);
    if (status == TANDEM_OK)
        status = storage_allocate_host(storage);
    if (status == TANDEM_OK)
        status = storage_wait_host_writable(storage, UINT32_MAX, HANG_DEADLINE);
    if (status == TANDEM_OK && storage->has_gaps)
        status = storage_add_writable_layout(storage, &tensor->desc);
    *out_done = unlock_epoch == storage->context->unlock_epoch;
    return status;
}

/* Writes row-major elements to the tensor.  The context must be locked. */
static enum tandem_status tensor_write_content(struct tandem_tensor *tensor,
                                               const void *memory)
{
    const struct tandem_tensor_desc *desc = &tensor->desc;
    struct storage *storage = tensor->storage;
    int64_t rows[TANDEM_MAX_RANK];
    bool recovered = false, done = false;
    enum tandem_status status = TANDEM_OK;

    while (!done) {
        struct device *device = partial_upload_device(tensor);

        if (device != NULL)
            status = partial_upload(tensor, device, memory, &recovered, &done);
        else
            status = host_copy_make_writable(tensor, &done);
        if (status != TANDEM_OK || (device != NULL && done))
            return status;
    }
    shape_strides(desc->rank, desc->shape, rows);
    strided_copy(desc, storage->host + desc->byte_offset, desc->strides, memory,
                 rows);
    storage_note_host_write(storage);
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_write(struct tandem_tensor *tensor,
                                       const void *memory, uint64_t bytes)
{
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status == TANDEM_OK)
        status = bytes_check(tensor, memory, bytes);
    if (status != TANDEM_OK)
        return status;
    if (tensor->storage->read_only)
        return argument_error("tensor: its memory was wrapped read-only");
    context_lock(tensor->context);
    status = tensor_write_content(tensor, memory);
    context_unlock(tensor->context);
    return status;
}

enum tandem_status tandem_tensor_host_written(struct tandem_tensor *tensor)
{
    const enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status != TANDEM_OK)
        return status;
    if (!tensor->storage->wrapped)
        return argument_error("tensor: its memory belongs to the library; "
                              "expected a wrapped tensor");
    context_lock(tensor->context);
    storage_note_host_write(tensor->storage);
    context_unlock(tensor->context);
    return TANDEM_OK;
}

/* ---- reading ---- */

/* Locks the context and makes the host copy current.  If `release` is true,
 * also waits for device work that reads this copy.  On success the context
 * stays locked. */
static enum tandem_status tensor_lock_host_copy(struct tandem_tensor *tensor,
                                                uint64_t timeout_ns,
                                                bool release)
{
    struct tandem_context *context = tensor->context;
    struct storage *storage = tensor->storage;
    const uint64_t deadline = clock_deadline(timeout_ns);
    enum tandem_status status;

    if (!context_lock_until(context, deadline))
        return TANDEM_NOT_READY;
    status = storage_sync_host(storage, deadline);
    if (status == TANDEM_OK && release)
        status = storage_wait_host_writable(storage, UINT32_MAX, deadline);
    if (status != TANDEM_OK) {
        context_unlock(context);
        return status;
    }
    storage_note_host_read(storage);
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_read(struct tandem_tensor *tensor,
                                      void *memory, uint64_t bytes,
                                      uint64_t timeout_ns)
{
    const struct tandem_tensor_desc *desc;
    int64_t rows[TANDEM_MAX_RANK];
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status == TANDEM_OK)
        status = bytes_check(tensor, memory, bytes);
    if (status == TANDEM_OK)
        status = tensor_lock_host_copy(tensor, timeout_ns, false);
    if (status != TANDEM_OK)
        return status;
    desc = &tensor->desc;
    shape_strides(desc->rank, desc->shape, rows);
    strided_copy(desc, memory, rows, tensor->storage->host + desc->byte_offset,
                 desc->strides);
    context_unlock(tensor->context);
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_sync(struct tandem_tensor *tensor,
                                      uint64_t timeout_ns)
{
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    /* The caller may write wrapped memory after this call, so no device may
     * still read the memory. */
    if (status == TANDEM_OK)
        status =
            tensor_lock_host_copy(tensor, timeout_ns, tensor->storage->wrapped);
    if (status == TANDEM_OK)
        context_unlock(tensor->context);
    return status;
}

enum tandem_status tandem_tensor_host_data(struct tandem_tensor *tensor,
                                           uint64_t timeout_ns,
                                           const void **out_memory)
{
    enum tandem_status status;

    if (out_memory == NULL)
        return argument_error("out_memory: NULL");
    *out_memory = NULL;
    status = tensor_check(tensor, NULL, "tensor");
    if (status == TANDEM_OK)
        status = tensor_lock_host_copy(tensor, timeout_ns, false);
    if (status != TANDEM_OK)
        return status;
    *out_memory = tensor->storage->host + tensor->desc.byte_offset;
    context_unlock(tensor->context);
    return TANDEM_OK;
}

/* ---- residency ---- */

/* Returns true if a current copy of the storage is available without a wait. */
static bool content_is_ready(const struct storage *storage)
{
    const struct tandem_context *context = storage->context;
    uint32_t holders = storage->current & ~HOST_BIT;
    enum tandem_status status;

    if (storage->host_writer != NULL)
        holders |= 1u << storage->host_writer->id;
    else if (storage->current & HOST_BIT)
        return true;
    for (uint32_t i = 0; holders >> i != 0; i++) {
        struct device *device = context->devices[i];

        if ((holders >> i & 1) == 0 || device->state != DEVICE_OPEN ||
            device->stream_owned)
            continue;
        status = device->vtable->stream_synchronize(device->stream, 0);
        if (status == TANDEM_OK) {
            device_mark_idle(device);
            return true;
        }
        /* The poll has cleared the error of the stream. */
        if (status != TANDEM_NOT_READY)
            device_store_async_error(device, status);
    }
    return false;
}

enum tandem_status tandem_tensor_prefetch(struct tandem_tensor *tensor,
                                          uint32_t device_id)
{
    struct device *device;
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status != TANDEM_OK)
        return status;
    context_lock(tensor->context);
    status = device_get(tensor->context, device_id, &device);
    if (status == TANDEM_OK)
        status = device_open(device);
    if (status == TANDEM_OK)
        status = storage_require_content(tensor->storage);
    /* If the move would wait for another device, skip it.  The operator that
     * needs the tensor on the device will move the tensor. */
    if (status == TANDEM_OK && content_is_ready(tensor->storage))
        status = storage_to_device(tensor->storage, device);
    context_unlock(tensor->context);
    return status;
}

enum tandem_status tandem_tensor_residency(const struct tandem_tensor *tensor,
                                           uint32_t *out_mask)
{
    enum tandem_status status;

    if (out_mask == NULL)
        return argument_error("out_mask: NULL");
    *out_mask = 0;
    status = tensor_check(tensor, NULL, "tensor");
    if (status != TANDEM_OK)
        return status;
    context_lock(tensor->context);
    *out_mask = tensor->storage->current;
    if (*out_mask & HOST_BIT)
        *out_mask |= storage_zero_copy_devices(tensor->storage);
    context_unlock(tensor->context);
    return TANDEM_OK;
}
