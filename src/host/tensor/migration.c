/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the content of storages between the host and devices; see storage.h.
 * The context's mutex must be held. */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/tensor_extent.h"
#include "host/tensor/storage.h"
#include "host/device/device_wait.h"

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
    return argument_error(
        "tensor: it was never written, so it has no content to read");
}

/* State that storage_sync_host keeps between its steps. */
struct host_sync {
    uint64_t deadline_ns;
    uint64_t unlock_epoch;           /* context->unlock_epoch before the step */
    const struct device *waited_for; /* device of the last wait, or NULL */
    uint64_t last_launch;            /* waited_for->last_launch at that wait */
    uint32_t waits;                  /* number of waits for devices so far */
    bool recovered;                  /* stream_recover cleared an error */
    bool done;                       /* the step's download succeeded */
};

/* Maximum number of waits for source devices before a download.  A limit is
 * necessary because other threads can enqueue more work during each wait. */
#define MAX_WAITS 4u

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

/* Returns true if the current step released the context's mutex. */
static bool step_unlocked(const struct storage *storage,
                          const struct host_sync *state)
{
    return storage->context->unlock_epoch != state->unlock_epoch;
}

/* Waits for the work on the stream of `source`, so that the next download from
 * this device is short. */
static enum tandem_status source_wait(const struct storage *storage,
                                      struct device *source,
                                      struct host_sync *state)
{
    enum tandem_status status =
        stream_owner_wait_if_held(source, state->deadline_ns);

    if (status == TANDEM_OK && !step_unlocked(storage, state) &&
        state->waits < MAX_WAITS &&
        (state->waited_for != source ||
         state->last_launch != source->last_launch)) {
        state->waited_for = source;
        state->last_launch = source->last_launch;
        state->waits++;
        status = wait_enqueued(source, state->deadline_ns);
    }
    return status;
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

/* Downloads a storage's content, waits until it arrives, and sets state->done.
 * If an error of earlier work makes the download fail, clears the error (once
 * per struct host_sync) and returns TANDEM_OK without setting state->done.  The
 * caller must then repeat the step. */
static enum tandem_status download(struct storage *storage,
                                   struct device *device, void *target,
                                   uint64_t bytes, struct host_sync *state)
{
    const uint32_t bit = 1u << device->id;
    const bool used = storage->host_used & bit;
    enum tandem_status status;

    storage->host_used |= bit;
    storage->downloading_from = device;
    status = wait_download(device, storage->buffers[device->id], target, bytes,
                           state->deadline_ns);
    storage->downloading_from = NULL;
    if (status == TANDEM_NOT_READY || device->hung)
        return status;
    if (status == TANDEM_OK || !used)
        storage->host_used &= ~bit;
    if (status == TANDEM_OK) {
        state->done = true;
        storages_free_pending(device->context);
        return TANDEM_OK;
    }
    return stream_recover(device, status, &state->recovered);
}

/* Waits for the device, if any, whose work may still write the host copy.
 * Downloads one byte from that device to learn whether its work failed. */
static enum tandem_status host_sync_wait_writer(struct storage *storage,
                                                struct host_sync *state)
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
    status = source_wait(storage, writer, state);
    if (status != TANDEM_OK || step_unlocked(storage, state))
        return status;
    status = download(storage, writer, &storage->sync_byte, storage->bytes > 0,
                      state);
    if (state->done && storage->host_writer == writer)
        storage->host_writer = NULL;
    return status;
}

static enum tandem_status host_sync_download(struct storage *storage,
                                             struct host_sync *state)
{
    struct device *source = source_find(storage);
    enum tandem_status status = source_wait(storage, source, state);

    if (status != TANDEM_OK || step_unlocked(storage, state))
        return status;
    if (storage->has_gaps && storage->staging == NULL) {
        storage->staging = malloc(storage->bytes);
        if (storage->staging == NULL)
            return memory_error("no memory to download a strided tensor");
    }
    status = download(storage, source,
                      storage->has_gaps ? storage->staging : storage->host,
                      storage->bytes, state);
    if (!state->done)
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

/* Performs one step of storage_sync_host.  If the step released the mutex,
 * storage_sync_host performs another step. */
static enum tandem_status host_sync_step(struct storage *storage,
                                         struct host_sync *state)
{
    enum tandem_status status;

    if (storage->downloading_from != NULL)
        return stream_owner_wait(storage->downloading_from, state->deadline_ns);
    if (storage->current & HOST_BIT)
        return host_sync_wait_writer(storage, state);
    status = storage_require_content(storage);
    if (status == TANDEM_OK)
        status = storage_allocate_host(storage);
    if (status == TANDEM_OK)
        status = storage_wait_host_writable(
            storage, storage_zero_copy_devices(storage), state->deadline_ns);
    if (status != TANDEM_OK || step_unlocked(storage, state))
        return status;
    return host_sync_download(storage, state);
}

enum tandem_status storage_sync_host(struct storage *storage,
                                     uint64_t deadline_ns)
{
    struct host_sync state = {.deadline_ns = deadline_ns};
    enum tandem_status status;

    do {
        state.unlock_epoch = storage->context->unlock_epoch;
        state.done = false;
        status = host_sync_step(storage, &state);
    } while (status == TANDEM_OK && step_unlocked(storage, &state));
    return status;
}

/* Uploads the host copy, which must be current.  No other thread may own the
 * device's stream.  If an error of earlier work makes the upload fail, clears
 * it once and sets *recovered; the caller must repeat the upload. */
static enum tandem_status upload(struct storage *storage, struct device *device,
                                 bool *recovered)
{
    /* The device may have been lost during the wait for the host copy. */
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    status =
        device->vtable->upload(device->stream, storage->buffers[device->id], 0,
                               storage->host, storage->bytes, 0);
    if (status == TANDEM_OK) {
        storage->current |= device->bit;
        if (storage->read_only)
            (void)device->vtable->buffer_seal(storage->buffers[device->id]);
        return TANDEM_OK;
    }
    status = device_call_failed(device, status, "writing the tensor");
    return stream_recover(device, status, recovered);
}

/* Plugins copy uploads of at most this size to a staging buffer.  An upload
 * above this size blocks, with the mutex held, until all earlier work is done.
 * To avoid this, storage_to_device first waits for that work with the mutex
 * released. */
#define MAX_STAGED_BYTES ((uint64_t)4 << 20)

enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device)
{
    bool recovered = false, awaited = storage->bytes <= MAX_STAGED_BYTES;
    enum tandem_status status = TANDEM_OK;

    if (storage_is_zero_copy(storage, device)) {
        if (!(storage->current & HOST_BIT) ||
            (storage->host_writer != NULL && storage->host_writer != device))
            status = storage_sync_host(storage, HANG_DEADLINE);
        return status == TANDEM_OK ? storage_allocate_buffer(storage, device)
                                   : status;
    }
    while (!(storage->current & storage_location_bit(storage, device)) &&
           status == TANDEM_OK) {
        /* An outdated copy of a read-only storage is sealed. */
        if (storage->read_only)
            storage_free_buffer(storage, device->id);
        status = storage_sync_host(storage, HANG_DEADLINE);
        if (status == TANDEM_OK)
            status = storage_allocate_buffer(storage, device);
        if (status != TANDEM_OK || storage_is_zero_copy(storage, device))
            return status;
        if (device->stream_owned) {
            status = stream_owner_wait(device, HANG_DEADLINE);
        } else if (!awaited && device->busy) {
            status = wait_enqueued(device, HANG_DEADLINE);
            awaited = true;
        } else {
            status = upload(storage, device, &recovered);
        }
    }
    return status;
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

        if (device->busy || device->stream_owned) {
            const enum tandem_status status = wait_idle(device, deadline_ns);

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
