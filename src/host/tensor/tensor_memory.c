/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions that change what a tensor's memory is, or
 * what may be done with it.  Any thread may call them. */
#include <config.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "host/tensor/tensor.h"

#include <inttypes.h>

/* Locks the storage alone, as tensor_io.c does. */
static enum tandem_status memory_lock(struct tandem_tensor *tensor,
                                      struct float_env *out_host)
{
    enum tandem_status status = tensor_check(tensor, NULL, "tensor");

    if (status == TANDEM_OK)
        status = tensor_lock(tensor, true, HANG_DEADLINE, out_host);
    return status;
}

/* ---- content ---- */

enum tandem_status tandem_tensor_reset(struct tandem_tensor *tensor)
{
    struct float_env host;
    enum tandem_status status = memory_lock(tensor, &host);

    if (status != TANDEM_OK)
        return status;
    status = storage_check_writable(tensor->storage, "tensor");
    if (status == TANDEM_OK)
        storage_forget_content(tensor->storage);
    tensor_unlock(tensor, host);
    return status;
}

/* Seals the current copies on devices, and frees the others, which could not be
 * updated. */
static void buffers_seal(struct storage *storage)
{
    struct tandem_context *context = storage->context;

    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];

        if (storage->buffers[i] == NULL)
            continue;
        if (storage->current & storage_location_bit(storage, device))
            (void)device->vtable->buffer_seal(storage->buffers[i]);
        else
            storage_free_buffer(storage, i);
    }
}

enum tandem_status tandem_tensor_set_constant(struct tandem_tensor *tensor)
{
    struct float_env host;
    enum tandem_status status = memory_lock(tensor, &host);

    if (status != TANDEM_OK)
        return status;
    status = storage_require_content(tensor->storage);
    if (status == TANDEM_OK && !tensor->storage->is_constant) {
        tensor->storage->is_constant = true;
        buffers_seal(tensor->storage);
    }
    tensor_unlock(tensor, host);
    return status;
}

/* ---- memory of the caller ---- */

static enum tandem_status release_set(struct storage *storage,
                                      tandem_release_fn release, void *user)
{
    struct memory_owners **owners = storage->lender != NULL
                                        ? &storage->buffer_owners
                                        : &storage->host_owners;

    if (!storage->wrapped && storage->lender == NULL)
        return argument_error("tensor: its memory belongs to the library; "
                              "expected memory or a buffer of the program");
    if (release == NULL)
        return argument_error("release: NULL");
    if (*owners != NULL)
        return argument_error("tensor: its memory already has a release "
                              "callback, or was exported");
    *owners = memory_owners_new(release, user);
    return *owners != NULL ? TANDEM_OK
                           : memory_error("no memory for a release callback");
}

enum tandem_status tandem_tensor_set_release(struct tandem_tensor *tensor,
                                             tandem_release_fn release,
                                             void *user)
{
    struct float_env host;
    enum tandem_status status = memory_lock(tensor, &host);

    if (status != TANDEM_OK)
        return status;
    status = release_set(tensor->storage, release, user);
    tensor_unlock(tensor, host);
    return status;
}

/* Moves the storage, which is locked, to other memory of the caller.  Sets
 * *out_old to the owners of the old memory, or NULL. */
static enum tandem_status storage_rebind(struct tandem_tensor *tensor,
                                         char *memory,
                                         struct memory_owners **out_old)
{
    struct storage *storage = tensor->storage;
    struct tandem_context *context = storage->context;
    enum tandem_status status =
        storage_wait_host_writable(storage, UINT32_MAX, HANG_DEADLINE);

    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < context->device_count; i++) {
        if (storage_is_zero_copy(storage, context->devices[i]) ||
            storage->read_only)
            storage_free_buffer(storage, i);
    }
    storage_note_host_write(storage);
    if (storage->bytes > 0) {
        storage->host = memory - tensor->desc.byte_offset;
        storage->address = (uint64_t)(uintptr_t)storage->host;
    }
    *out_old = storage->host_owners;
    storage->host_owners = NULL;
    tensor_layout_update(tensor);
    context->rebinds++;
    return TANDEM_OK;
}

static enum tandem_status rebind_check(const struct tandem_tensor *tensor,
                                       const void *memory)
{
    const struct storage *storage = tensor->storage;

    if (!storage->wrapped)
        return argument_error("tensor: its memory belongs to the library; "
                              "expected a wrapped tensor");
    if (storage->is_constant)
        return argument_error("tensor: it is constant");
    if (storage->references > 1)
        return argument_error("tensor: other tensors are views of its memory");
    if (memory == NULL && storage->bytes > 0)
        return argument_error("memory: NULL for a tensor of %" PRIu64 " bytes",
                              storage->bytes);
    if ((uintptr_t)memory % dtype_bytes(tensor->desc.dtype) != 0)
        return argument_error("memory: %p is not aligned to an element of %s",
                              memory, dtype_name(tensor->desc.dtype));
    return TANDEM_OK;
}

enum tandem_status tandem_tensor_rebind(struct tandem_tensor *tensor,
                                        void *memory)
{
    struct memory_owners *old = NULL;
    struct float_env host;
    enum tandem_status status = memory_lock(tensor, &host);

    if (status != TANDEM_OK)
        return status;
    status = rebind_check(tensor, memory);
    if (status == TANDEM_OK)
        status = storage_rebind(tensor, memory, &old);
    tensor_unlock(tensor, host);
    memory_owners_drop(old);
    return status;
}
