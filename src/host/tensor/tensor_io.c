/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and synchronizes the content of tensors on behalf of the
 * caller, and prefetches it to devices.  The public functions lock the storage
 * and may block. */
#include <config.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "host/tensor/tensor.h"

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
 * is current only on devices. */
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

/* Prepares the storage's host copy for a write. */
static enum tandem_status
host_copy_make_writable(const struct tandem_tensor *tensor)
{
    struct storage *storage = tensor->storage;
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
    return status;
}

/* Writes row-major elements to the tensor, whose storage must be locked. */
static enum tandem_status tensor_write_content(struct tandem_tensor *tensor,
                                               const void *memory)
{
    const struct tandem_tensor_desc *desc = &tensor->desc;
    struct storage *storage = tensor->storage;
    struct device *device = partial_upload_device(tensor);
    int64_t rows[TANDEM_MAX_RANK];
    enum tandem_status status;

    if (device != NULL) {
        status = device_upload(device, storage->buffers[device->id],
                               desc->byte_offset, memory, tensor->bytes);
        if (status == TANDEM_OK)
            storage->current = device->bit;
        return status;
    }
    status = host_copy_make_writable(tensor);
    if (status != TANDEM_OK)
        return status;
    shape_strides(desc->rank, desc->shape, rows);
    strided_copy(desc, storage->host + desc->byte_offset, desc->strides, memory,
                 rows);
    storage_note_host_write(storage);
    return TANDEM_OK;
}

enum tandem_status tensor_lock(struct tandem_tensor *tensor, bool alone,
                               uint64_t deadline_ns, struct float_env *out_host)
{
    struct storage *storage = tensor->storage;
    enum tandem_status status;

    context_note_thread(tensor->context);
    status = storage_lock(storage, alone, deadline_ns);
    if (status != TANDEM_OK)
        return status;
    status = tensor_check(tensor, NULL, "tensor");
    if (status == TANDEM_OK)
        *out_host = float_env_enter();
    else
        storage_unlock(storage);
    return status;
}

void tensor_unlock(struct tandem_tensor *tensor, struct float_env host)
{
    float_env_leave(host);
    storage_unlock(tensor->storage);
}

enum tandem_status tandem_tensor_write(struct tandem_tensor *tensor,
                                       const void *memory, uint64_t bytes)
{
    struct float_env host;
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status == TANDEM_OK)
        status = bytes_check(tensor, memory, bytes);
    if (status != TANDEM_OK)
        return status;
    status = tensor_lock(tensor, true, HANG_DEADLINE, &host);
    if (status != TANDEM_OK)
        return status;
    status = storage_check_writable(tensor->storage, "tensor");
    if (status == TANDEM_OK)
        status = tensor_write_content(tensor, memory);
    tensor_unlock(tensor, host);
    return status;
}

enum tandem_status tandem_tensor_host_written(struct tandem_tensor *tensor)
{
    struct float_env host;
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status != TANDEM_OK)
        return status;
    status = tensor_lock(tensor, true, HANG_DEADLINE, &host);
    if (status != TANDEM_OK)
        return status;
    if (!tensor->storage->wrapped && tensor->storage->host_owners == NULL)
        status = argument_error("tensor: its memory belongs to the library; "
                                "expected a wrapped or exported tensor");
    else if (tensor->storage->is_constant)
        status = argument_error("tensor: it is constant");
    else
        storage_note_host_write(tensor->storage);
    tensor_unlock(tensor, host);
    return status;
}

/* ---- reading ---- */

/* Returns true if the host copy is current and no device writes it, and, if
 * `release` is true, no device reads it either. */
static bool host_copy_is_ready(const struct storage *storage, bool release)
{
    return (storage->current & HOST_BIT) && storage->host_writer == NULL &&
           (!release || storage->host_used == 0);
}

/* Locks the storage and makes the host copy current.  If `release` is true,
 * also waits for device work that reads this copy.  On success the storage
 * stays locked, perhaps shared. */
static enum tandem_status tensor_lock_host_copy(struct tandem_tensor *tensor,
                                                uint64_t timeout_ns,
                                                bool release,
                                                struct float_env *out_host)
{
    struct storage *storage = tensor->storage;
    const uint64_t deadline = clock_deadline(timeout_ns);
    enum tandem_status status = tensor_lock(tensor, false, deadline, out_host);

    if (status != TANDEM_OK)
        return status;
    if (!host_copy_is_ready(storage, release)) {
        tensor_unlock(tensor, *out_host);
        status = tensor_lock(tensor, true, deadline, out_host);
        if (status != TANDEM_OK)
            return status;
        status = storage_sync_host(storage, deadline);
        if (status == TANDEM_OK && release)
            status = storage_wait_host_writable(storage, UINT32_MAX, deadline);
    }
    if (status == TANDEM_OK)
        storage_note_host_read(storage);
    else
        tensor_unlock(tensor, *out_host);
    return status;
}

enum tandem_status tandem_tensor_read(struct tandem_tensor *tensor,
                                      void *memory, uint64_t bytes,
                                      uint64_t timeout_ns)
{
    const struct tandem_tensor_desc *desc;
    int64_t rows[TANDEM_MAX_RANK];
    struct float_env host;
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status == TANDEM_OK)
        status = bytes_check(tensor, memory, bytes);
    if (status == TANDEM_OK)
        status = tensor_lock_host_copy(tensor, timeout_ns, false, &host);
    if (status != TANDEM_OK)
        return status;
    desc = &tensor->desc;
    shape_strides(desc->rank, desc->shape, rows);
    strided_copy(desc, memory, rows, tensor->storage->host + desc->byte_offset,
                 desc->strides);
    tensor_unlock(tensor, host);
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_sync(struct tandem_tensor *tensor,
                                      uint64_t timeout_ns)
{
    struct float_env host;
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    /* The caller may write wrapped memory after this call, so no device may
     * still read the memory. */
    if (status == TANDEM_OK)
        status = tensor_lock_host_copy(tensor, timeout_ns,
                                       tensor->storage->wrapped, &host);
    if (status == TANDEM_OK)
        tensor_unlock(tensor, host);
    return status;
}

enum tandem_status tandem_tensor_host_data(struct tandem_tensor *tensor,
                                           uint64_t timeout_ns,
                                           const void **out_memory)
{
    struct float_env host;
    enum tandem_status status;

    if (out_memory == NULL)
        return argument_error("out_memory: NULL");
    *out_memory = NULL;
    status = tensor_check(tensor, NULL, "tensor");
    if (status == TANDEM_OK)
        status = tensor_lock_host_copy(tensor, timeout_ns, false, &host);
    if (status != TANDEM_OK)
        return status;
    *out_memory = tensor->storage->host + tensor->desc.byte_offset;
    tensor_unlock(tensor, host);
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
        struct device_stream *stream;

        if ((holders >> i & 1) == 0 || device->state != DEVICE_OPEN)
            continue;
        stream = stream_try_acquire(device);
        if (stream == NULL)
            continue;
        status = device->vtable->stream_synchronize(stream->handle, 0);
        if (status == TANDEM_OK)
            device_mark_idle(device);
        /* The poll has cleared the error of the stream. */
        else if (status != TANDEM_NOT_READY)
            device_store_async_error(device, status);
        stream_release(device, stream);
        if (status == TANDEM_OK)
            return true;
    }
    return false;
}

enum tandem_status tandem_tensor_prefetch(struct tandem_tensor *tensor,
                                          uint32_t device_id)
{
    struct device *device;
    struct float_env host;
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status == TANDEM_OK)
        status = device_get(tensor->context, device_id, &device);
    if (status == TANDEM_OK)
        status = device_open(device);
    if (status == TANDEM_OK)
        status = tensor_lock(tensor, true, HANG_DEADLINE, &host);
    if (status != TANDEM_OK)
        return status;
    status = storage_require_content(tensor->storage);
    /* If the move would wait for another device, skip it.  The operator that
     * needs the tensor on the device will move the tensor. */
    if (status == TANDEM_OK && content_is_ready(tensor->storage))
        status = storage_to_device(tensor->storage, device);
    tensor_unlock(tensor, host);
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
    /* Needs no lock: the answer may be outdated when it returns. */
    *out_mask = tensor->storage->current;
    if (*out_mask & HOST_BIT)
        *out_mask |= storage_zero_copy_devices(tensor->storage);
    return TANDEM_OK;
}
