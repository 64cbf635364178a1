/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves the content of storages between the host and devices; see storage.h.
 * The context's mutex must be held.
 */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "host/tensor/storage.h"
#include "host/tensor/tensor.h"
#include "host/device/device_wait.h"

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
        /* The device that held this copy was lost. */
        storage->current &= ~(1u << i);
        if (storage->current == 0)
            storage->poison = TANDEM_DEVICE_LOST;
    }
    if (storage->poison != TANDEM_OK)
        return last_error_set(storage->poison,
                              "the tensor's content was lost with the device "
                              "that held it: write it again");
    return last_error_set(TANDEM_INVALID_ARGUMENT,
                          "the tensor was never written: it has no content to "
                          "read");
}

/* The state of storage_to_host over its steps. */
struct homecoming {
    uint64_t deadline_ns;
    const struct device *awaited; /* the device last waited for, or NULL */
    uint64_t sequence;            /* its last launch before that wait */
    uint32_t waits;               /* number of such waits */
    bool recovered; /* an error of earlier work was cleared once */
    bool waiting;   /* source_await released the mutex, so state may differ */
    bool done;      /* the download of this step succeeded */
};

/* Other threads can enqueue more work at any time.  After this many waits, the
 * download itself waits for their work. */
#define WAITS_MAX 4u

/* Returns a device with a current copy, preferably an idle one.  At least one
 * must exist, see storage_readable. */
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

/* Waits for the work on the stream of `source`, so that the download itself
 * blocks the stream only briefly.  Sets state->waiting if the mutex was
 * released meanwhile. */
static enum tandem_status source_await(struct device *source,
                                       struct homecoming *state)
{
    const uint64_t unlocks = source->context->unlocks;
    enum tandem_status status = wait_free(source, state->deadline_ns);

    if (status == TANDEM_OK && unlocks == source->context->unlocks &&
        state->waits < WAITS_MAX &&
        (state->awaited != source || state->sequence != source->sequence)) {
        state->awaited = source;
        state->sequence = source->sequence;
        state->waits++;
        status = wait_enqueued(source, state->deadline_ns);
    }
    state->waiting = unlocks != source->context->unlocks;
    return status;
}

/* Copies all writable layouts from the staging memory to the host copy. */
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

/* Downloads the content and waits for it.  Sets state->done on success.  If an
 * error of earlier work made the download fail, clears the error once and
 * returns TANDEM_OK without state->done: the caller tries again. */
static enum tandem_status download(struct storage *storage,
                                   struct device *device, void *target,
                                   uint64_t bytes, struct homecoming *state)
{
    const uint32_t bit = 1u << device->id;
    const bool used = storage->host_used & bit;
    enum tandem_status status;

    storage->host_used |= bit;
    storage->mover = device;
    status = wait_download(device, storage->buffers[device->id], target, bytes,
                           state->deadline_ns);
    storage->mover = NULL;
    if (status == TANDEM_NOT_READY || device->hung)
        return status;
    if (status == TANDEM_OK || !used)
        storage->host_used &= ~bit;
    if (status == TANDEM_OK) {
        state->done = true;
        storages_free_pending(device->context);
        return TANDEM_OK;
    }
    if (state->recovered || !wait_recover(device))
        return status;
    state->recovered = true;
    return TANDEM_OK;
}

/* Waits for the device that may still write the host copy.  A download of one
 * byte through that device reports whether its work failed. */
static enum tandem_status host_settle(struct storage *storage,
                                      struct homecoming *state)
{
    struct device *writer = storage->host_writer;
    enum tandem_status status;

    if (writer == NULL)
        return TANDEM_OK;
    if (writer->state != DEVICE_OPEN) {
        storage->poison = TANDEM_DEVICE_LOST;
        storage->current = 0;
        return storage_readable(storage);
    }
    status = source_await(writer, state);
    if (status != TANDEM_OK || state->waiting)
        return status;
    status =
        download(storage, writer, &storage->settled, storage->bytes > 0, state);
    if (state->done && storage->host_writer == writer)
        storage->host_writer = NULL;
    return status;
}

static enum tandem_status host_fetch(struct storage *storage,
                                     struct homecoming *state)
{
    struct device *source = source_find(storage);
    enum tandem_status status = source_await(source, state);

    if (status != TANDEM_OK || state->waiting)
        return status;
    if (storage->gaps && storage->staging == NULL) {
        storage->staging = malloc(storage->bytes);
        if (storage->staging == NULL)
            return last_error_set(TANDEM_OUT_OF_MEMORY,
                                  "no memory to bring a strided tensor home");
    }
    status = download(storage, source,
                      storage->gaps ? storage->staging : storage->host,
                      storage->bytes, state);
    if (!state->done)
        return status;
    if (storage->gaps) {
        claims_copy(storage);
        free(storage->staging);
        storage->staging = NULL;
    }
    storage->current |= HOST_BIT;
    storage_settle_home(storage, source);
    return TANDEM_OK;
}

/* One step of storage_to_host, repeated if it released the mutex. */
static enum tandem_status home_step(struct storage *storage,
                                    struct homecoming *state)
{
    const uint64_t unlocks = storage->context->unlocks;
    enum tandem_status status;

    if (storage->mover != NULL)
        return stream_owner_wait(storage->mover, state->deadline_ns);
    if (storage->current & HOST_BIT)
        return host_settle(storage, state);
    status = storage_readable(storage);
    if (status == TANDEM_OK)
        status = storage_host_make(storage);
    if (status == TANDEM_OK)
        status = storage_host_release(
            storage, storage_zero_copy_devices(storage), state->deadline_ns);
    if (status != TANDEM_OK || unlocks != storage->context->unlocks)
        return status;
    return host_fetch(storage, state);
}

enum tandem_status storage_to_host(struct storage *storage,
                                   uint64_t deadline_ns)
{
    struct tandem_context *context = storage->context;
    struct homecoming state = {.deadline_ns = deadline_ns};
    uint64_t unlocks;
    enum tandem_status status;

    do {
        unlocks = context->unlocks;
        state.waiting = false;
        state.done = false;
        status = home_step(storage, &state);
    } while (status == TANDEM_OK && unlocks != context->unlocks);
    return status;
}

/* Returns true if a device that computes in host memory needs storage_to_host
 * before it can use the host copy. */
static bool host_needed(const struct storage *storage,
                        const struct device *device)
{
    return !(storage->current & HOST_BIT) ||
           (storage->host_writer != NULL && storage->host_writer != device);
}

/* Uploads the host copy, which must be current.  No other thread may own the
 * stream.  Clears an error of earlier work once and sets *recovered: the caller
 * then tries again. */
static enum tandem_status upload(struct storage *storage, struct device *device,
                                 bool *recovered)
{
    /* The device may have been lost during the wait for the host copy. */
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    status = device->table->upload(device->stream, storage->buffers[device->id],
                                   0, storage->host, storage->bytes, 0);
    if (status == TANDEM_OK) {
        storage->current |= device->bit;
        return TANDEM_OK;
    }
    status = device_failed(device, status, "writing the tensor");
    if (*recovered || !wait_recover(device))
        return status;
    *recovered = true;
    return TANDEM_OK;
}

/* Plugins copy at most this much to a staging buffer.  A larger upload blocks,
 * with the mutex held, until all earlier work is done, so storage_to_device
 * waits for that work first, with the mutex released. */
#define COPIED_BYTES ((uint64_t)4 << 20)

enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device)
{
    bool recovered = false, awaited = storage->bytes <= COPIED_BYTES;
    enum tandem_status status = TANDEM_OK;

    if (storage_shared(storage, device)) {
        if (host_needed(storage, device))
            status = storage_to_host(storage, WAIT_LIMIT);
        return status == TANDEM_OK ? storage_buffer_make(storage, device)
                                   : status;
    }
    while (!(storage->current & storage_bit(storage, device)) &&
           status == TANDEM_OK) {
        status = storage_to_host(storage, WAIT_LIMIT);
        if (status == TANDEM_OK)
            status = storage_buffer_make(storage, device);
        if (status == TANDEM_OK && storage_shared(storage, device))
            return TANDEM_OK;
        if (status == TANDEM_OK && device->held) {
            status = stream_owner_wait(device, WAIT_LIMIT);
        } else if (status == TANDEM_OK && !awaited && device->busy) {
            status = wait_enqueued(device, WAIT_LIMIT);
            awaited = true;
        } else if (status == TANDEM_OK) {
            status = upload(storage, device, &recovered);
        }
    }
    return status;
}

enum tandem_status storage_host_release(struct storage *storage,
                                        uint32_t devices, uint64_t deadline_ns)
{
    struct tandem_context *context = storage->context;

    while ((storage->host_used & devices) != 0) {
        const uint32_t id =
            (uint32_t)__builtin_ctz(storage->host_used & devices);
        struct device *device = context->devices[id];

        if (device->busy || device->held) {
            const enum tandem_status status = wait_idle(device, deadline_ns);

            /* The error concerns the outputs of that work, not this call. */
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
