/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and lifetime of storages; see storage.h.  migration.c moves content.
 */
#include <config.h>

#include "host/tensor/storage.h"
#include "common/last_error.h"
#include "common/relaxed.h"
#include "common/tensor_overlap.h"
#include "host/loader/plugin_reply.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct handle_pool storage_pool = HANDLE_POOL(struct storage, 0x5453544f);

#define HOST_ALIGNMENT 64u
/* A device with its own memory uses host memory in place (imports it) only if
 * the address is a multiple of PAGE_BYTES and the size is at least
 * IMPORT_BYTES, because small transfers are fast.  The size of wrapped memory
 * must also be a multiple of IMPORT_UNIT. */
#define PAGE_BYTES 4096u
#define IMPORT_BYTES ((uint64_t)128 << 10)
#define IMPORT_UNIT 64u

/* Reserves artificial addresses for library memory, in the upper half of the
 * address space, and returns the first.  Reuses addresses if none is left. */
static uint64_t address_reserve(struct tandem_context *context, uint64_t bytes)
{
    const uint64_t start = UINT64_C(1) << 63;
    const uint64_t reserved_bytes =
        (bytes / HOST_ALIGNMENT + 1) * HOST_ALIGNMENT;
    uint64_t address;

    pthread_mutex_lock(&context->mutex);
    address = context->next_address;
    if (address < start || reserved_bytes > UINT64_MAX - address)
        address = start;
    context->next_address = address + reserved_bytes;
    pthread_mutex_unlock(&context->mutex);
    return address;
}

struct storage *storage_new(struct tandem_context *context, uint64_t bytes,
                            void *wrapped)
{
    struct storage *storage = handle_new(&storage_pool);

    if (storage == NULL)
        return NULL;
    pthread_rwlock_init(&storage->lock, NULL);
    storage->context = context;
    storage->references = 1;
    storage->bytes = bytes;
    storage->wrapped = wrapped != NULL;
    storage->host = wrapped;
    storage->current = wrapped != NULL ? HOST_BIT : 0;
    storage->address = wrapped != NULL ? (uint64_t)(uintptr_t)wrapped
                                       : address_reserve(context, bytes);
    return storage;
}

void storage_set_buffer(struct storage *storage, struct device *device,
                        struct tandem_buffer *buffer)
{
    storage->lender = device;
    storage->buffers[device->id] = buffer;
    storage->current = device->bit;
}

void storage_free_buffer(struct storage *storage, uint32_t id)
{
    if (storage->lender != NULL && storage->lender->id == id)
        return;
    if (storage->buffers[id] != NULL)
        storage->context->devices[id]->vtable->free(storage->buffers[id]);
    storage->buffers[id] = NULL;
    storage->imported &= ~(1u << id);
}

static void storage_free(struct storage *storage)
{
    for (uint32_t i = 0; i < storage->context->device_count; i++)
        storage_free_buffer(storage, i);
    while (storage->writable_layouts != NULL) {
        struct writable_layout *first = storage->writable_layouts;

        storage->writable_layouts = first->next;
        free(first);
    }
    if (storage->host_owners != NULL)
        memory_owners_drop(storage->host_owners);
    else if (!storage->wrapped)
        free(storage->host);
    free(storage->staging);
    memory_owners_drop(storage->buffer_owners);
    handle_free(&storage_pool, storage);
}

/* ---- the lock ---- */

/* Minimum time to wait for a lock, even if the timeout is 0, because most calls
 * hold it only briefly. */
#define MIN_LOCK_WAIT_NS UINT64_C(5000000)

static bool lock_try(pthread_rwlock_t *lock, bool alone)
{
    return (alone ? pthread_rwlock_trywrlock(lock)
                  : pthread_rwlock_tryrdlock(lock)) == 0;
}

static bool lock_wait(pthread_rwlock_t *lock, bool alone, uint64_t timeout_ns)
{
    struct timespec until;

    if (timeout_ns > UINT64_C(1000000000000000000))
        return (alone ? pthread_rwlock_wrlock(lock)
                      : pthread_rwlock_rdlock(lock)) == 0;
    clock_gettime(CLOCK_REALTIME, &until);
    timeout_ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(timeout_ns / 1000000000u);
    until.tv_nsec = (long)(timeout_ns % 1000000000u);
    return (alone ? pthread_rwlock_timedwrlock(lock, &until)
                  : pthread_rwlock_timedrdlock(lock, &until)) == 0;
}

/* Waits without a limit, unless the holder of the lock waits for one device
 * during the whole hang timeout. */
static enum tandem_status lock_wait_for_holder(struct storage *storage,
                                               bool alone)
{
    for (;;) {
        struct device *device = storage->waits_for;

        if (lock_wait(&storage->lock, alone, storage->context->hang_timeout_ns))
            return TANDEM_OK;
        if (device != NULL && device == storage->waits_for)
            return device_mark_hung(device);
    }
}

enum tandem_status storage_lock(struct storage *storage, bool alone,
                                uint64_t deadline_ns)
{
    uint64_t left;

    if (lock_try(&storage->lock, alone))
        return TANDEM_OK;
    if (deadline_ns == HANG_DEADLINE)
        return lock_wait_for_holder(storage, alone);
    left = clock_left(deadline_ns);
    if (lock_wait(&storage->lock, alone,
                  left > MIN_LOCK_WAIT_NS ? left : MIN_LOCK_WAIT_NS))
        return TANDEM_OK;
    return last_error_set(
        TANDEM_NOT_READY,
        "tensor: another thread uses its memory; try again later");
}

/* ---- memory ---- */

enum tandem_status storage_check_writable(const struct storage *storage,
                                          const char *what)
{
    if (storage->read_only)
        return argument_error("%s: its memory was wrapped read-only", what);
    if (storage->is_constant)
        return argument_error("%s: it is constant", what);
    return TANDEM_OK;
}

/* Returns true if device work may use memory that the storage's end releases.
 * Plugins keep their own buffers until their work has ended. */
static bool memory_is_in_use(const struct storage *storage)
{
    const struct tandem_context *context = storage->context;

    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct device *device = context->devices[i];

        /* A hung device may later resume work that uses the memory. */
        if (((storage->host_used >> i & 1) || storage->lender == device) &&
            (device->busy || device->hung || device->lost_with_pending_work))
            return true;
    }
    return false;
}

void storage_release(struct storage *storage)
{
    struct tandem_context *context;

    if (storage == NULL || --storage->references > 0)
        return;
    /* If another thread uses the storage and waits for a hung device, leak it.
     */
    if (storage_lock(storage, true, HANG_DEADLINE) != TANDEM_OK)
        return;
    storage_unlock(storage);
    if (!memory_is_in_use(storage)) {
        storage_free(storage);
        return;
    }
    context = storage->context;
    pthread_mutex_lock(&context->mutex);
    storage->next = context->pending_free;
    context->pending_free = storage;
    pthread_mutex_unlock(&context->mutex);
}

/* Removes the storages that no device uses from the list, and returns them. */
static struct storage *pending_remove(struct tandem_context *context)
{
    struct storage **link = &context->pending_free, *removed = NULL;

    while (*link != NULL) {
        struct storage *storage = *link;

        if (memory_is_in_use(storage)) {
            link = &storage->next;
        } else {
            *link = storage->next;
            storage->next = removed;
            removed = storage;
        }
    }
    return removed;
}

void storages_free_pending(struct tandem_context *context)
{
    struct storage *removed;

    pthread_mutex_lock(&context->mutex);
    removed = pending_remove(context);
    pthread_mutex_unlock(&context->mutex);
    while (removed != NULL) {
        struct storage *storage = removed;

        removed = storage->next;
        storage_free(storage);
    }
}

/* Moves context->pending_free to a global list, so that leak checkers still
 * find a pointer to the storages. */
void storages_leak_pending(struct tandem_context *context)
{
    static struct storage *abandoned;
    struct storage *last = context->pending_free;

    if (last == NULL)
        return;
    while (last->next != NULL)
        last = last->next;
    last->next = __atomic_exchange_n(&abandoned, context->pending_free,
                                     __ATOMIC_RELAXED);
    context->pending_free = NULL;
}

enum tandem_status
storage_add_writable_layout(struct storage *storage,
                            const struct tandem_tensor_desc *desc)
{
    struct tandem_tensor_desc layout = *desc;
    struct writable_layout *claim;

    layout.buffer = NULL;
    for (claim = storage->writable_layouts; claim != NULL;
         claim = claim->next) {
        if (tensors_same(&claim->desc, &layout))
            return TANDEM_OK;
    }
    claim = malloc(sizeof(*claim));
    if (claim == NULL)
        return memory_error("no memory for a layout");
    claim->desc = layout;
    claim->next = storage->writable_layouts;
    storage->writable_layouts = claim;
    return TANDEM_OK;
}

/* Memory that devices may import fills whole pages, so that no other allocation
 * shares its last page. */
enum tandem_status storage_allocate_host(struct storage *storage)
{
    const size_t alignment =
        storage->bytes < IMPORT_BYTES ? HOST_ALIGNMENT : PAGE_BYTES;
    void *memory = NULL;
    uint64_t bytes = storage->bytes > 0 ? storage->bytes : 1;

    if (storage->host != NULL)
        return TANDEM_OK;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (bytes > SIZE_MAX - PAGE_BYTES ||
        posix_memalign(&memory, alignment, (size_t)bytes) != 0)
        return memory_error("no host memory for a tensor of %" PRIu64 " bytes",
                            storage->bytes);
    storage->host = memory;
    return TANDEM_OK;
}

bool storage_is_importable(const struct storage *storage)
{
    return storage->host != NULL && storage->bytes >= IMPORT_BYTES &&
           !storage->read_only && !storage->has_gaps &&
           (uintptr_t)storage->host % PAGE_BYTES == 0 &&
           (!storage->wrapped || storage->bytes % IMPORT_UNIT == 0);
}

/* Imports the host copy into the device if possible.  Otherwise leaves the
 * device's buffer NULL.  Records if the device does not support imports. */
static void buffer_import(struct storage *storage, struct device *device)
{
    struct tandem_context *context = storage->context;
    struct tandem_buffer **buffer = &storage->buffers[device->id];
    const uint64_t bytes =
        (storage->bytes + IMPORT_UNIT - 1) / IMPORT_UNIT * IMPORT_UNIT;
    enum tandem_status status;

    if (!(context->import_devices >> device->id & 1) ||
        !storage_is_importable(storage))
        return;
    status = plugin_reply_sanitize_status(device->vtable->import_host(
        device->handle, storage->host, bytes, NULL, NULL, buffer));
    if (status == TANDEM_OK) {
        storage->imported |= 1u << device->id;
        return;
    }
    *buffer = NULL;
    if (status != TANDEM_UNSUPPORTED)
        return;
    context->import_devices &= ~(1u << device->id);
    log_message(&context->log, TANDEM_LOG_WARNING,
                "%s: tensors are copied, although the device should share host "
                "memory: %s",
                device->label, plugin_reply_error(device->vtable));
}

/* Seals a new buffer that has the content of a constant, because it is the host
 * copy. */
static enum tandem_status buffer_seal_constant(const struct storage *storage,
                                               const struct device *device)
{
    if (storage->is_constant && storage_is_zero_copy(storage, device))
        (void)device->vtable->buffer_seal(storage->buffers[device->id]);
    return TANDEM_OK;
}

enum tandem_status storage_allocate_buffer(struct storage *storage,
                                           struct device *device)
{
    struct tandem_buffer **buffer = &storage->buffers[device->id];
    enum tandem_status status;

    if (*buffer != NULL)
        return TANDEM_OK;
    status = device_open(device);
    if (status != TANDEM_OK)
        return status;
    storage->last_write[device->id] = 0;
    buffer_import(storage, device);
    if (*buffer != NULL)
        return buffer_seal_constant(storage, device);
    if (device->is_zero_copy) {
        status = storage_allocate_host(storage);
        if (status != TANDEM_OK)
            return status;
        status = device->vtable->import_host(
            device->handle, storage->host, storage->bytes, NULL, NULL, buffer);
    } else {
        status = device->vtable->alloc(device->handle,
                                       TANDEM_BYTES(storage->bytes), buffer);
    }
    if (status == TANDEM_OK)
        return buffer_seal_constant(storage, device);
    *buffer = NULL;
    return device_call_failed(device, status,
                              device->is_zero_copy ? "importing host memory"
                                                   : "allocating");
}

void storage_drop_device_copy(struct storage *storage, struct device *device)
{
    if (!(storage->context->import_devices >> device->id & 1) ||
        storage_is_zero_copy(storage, device) || storage->lender == device ||
        !storage_is_importable(storage))
        return;
    storage_free_buffer(storage, device->id);
    storage->current &= ~device->bit;
}

void storage_drop_poisoned_buffer(struct storage *storage,
                                  struct device *device)
{
    const uint64_t written = storage->last_write[device->id];

    if (written <= device->unconfirmed_after ||
        written > device->unconfirmed_until ||
        storage->buffers[device->id] == NULL)
        return;
    storage_free_buffer(storage, device->id);
    if (storage->host_writer == device)
        storage->host_writer = NULL;
}

/* Called when a write makes the copies on the devices in the mask `stale`
 * stale.  If the storage's last migration saved less time than it cost,
 * increments credit_halvings, otherwise resets it to 0. */
static void migration_evaluate(struct storage *storage, uint32_t stale)
{
    if (!(storage->migrated_to & stale))
        return;
    storage->migrated_to &= ~stale;
    if (storage->migration_saved_ns >= storage->migration_cost_ns)
        storage->credit_halvings = 0;
    else if (storage->credit_halvings < MAX_CREDIT_HALVINGS)
        storage->credit_halvings++;
}

/* The copies on devices are stale from now on. */
static void copies_outdate(struct storage *storage)
{
    migration_evaluate(storage, UINT32_MAX);
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++)
        storage->migration_credit_ns[i] = 0;
    storage->poison = TANDEM_OK;
    storage->unread_by_host = false;
    storage->unread_by_devices = false;
}

void storage_forget_content(struct storage *storage)
{
    copies_outdate(storage);
    storage->current = 0;
}

void storage_note_host_write(struct storage *storage)
{
    /* The device's work that wrote the host copy may have failed.  The plugin
     * may then refuse to read the buffer, so free the buffer. */
    if (storage->host_writer != NULL) {
        storage_free_buffer(storage, storage->host_writer->id);
        storage->host_writer = NULL;
    }
    copies_outdate(storage);
    storage->current = HOST_BIT;
}

void storage_note_host_read(struct storage *storage)
{
    if (storage->unread_by_host) {
        storage->unread_by_host = false;
        storage->host_reads_results = true;
        storage->unread_results = 0;
    }
}

void storage_note_device_write(struct storage *storage, struct device *device,
                               uint64_t launch)
{
    const bool shared = storage_is_zero_copy(storage, device);
    const uint8_t unread = relaxed_load(&storage->unread_results);

    relaxed_update(&storage->current, shared ? HOST_BIT : device->bit);
    relaxed_update(&storage->poison, TANDEM_OK);
    storage->last_write[device->id] = launch;
    migration_evaluate(storage, ~(1u << device->id));
    if (relaxed_load(&storage->unread_by_host) && unread < UINT8_MAX)
        relaxed_store(&storage->unread_results, unread + 1);
    relaxed_update(&storage->unread_by_host, true);
    relaxed_update(&storage->unread_by_devices, true);
    storage->host_writer = shared && device->async ? device : NULL;
}
