/* SPDX-License-Identifier: Apache-2.0 */
/* Storage: the bytes that a tensor and its views share.  The host and each
 * device may have a copy; the storage tracks which copies are current.
 *
 * A storage has a lock.  A call that only reads the content where it is shares
 * the lock with others; a call that changes or moves the content, or creates or
 * frees a copy, needs the lock alone.  The functions below need it alone unless
 * their comment says otherwise.  Functions marked [may wait] wait for devices
 * while they hold it. */
#ifndef TANDEM_HOST_TENSOR_STORAGE_H
#define TANDEM_HOST_TENSOR_STORAGE_H

#include "common/tensor_desc.h"
#include "host/context/context.h"
#include "host/device/stream.h"
#include "host/tensor/memory_owners.h"

/* Maximum number of times that a storage's migration credits are halved. */
#define MAX_CREDIT_HALVINGS 20u
/* If this number of successive results were overwritten before the host read
 * them, the host is not expected to read the next result in wrapped memory. */
#define MAX_UNREAD_RESULTS 4u

/* Layout of the elements that the library may write in wrapped memory whose
 * other bytes belong to the caller. */
struct writable_layout {
    struct writable_layout *next;
    struct tandem_tensor_desc desc;
};

struct storage {
    struct handle handle; /* in storage_pool */
    struct tandem_context *context;
    pthread_rwlock_t lock;
    _Atomic uint32_t references;

    /* These fields do not change, except at creation. */
    bool wrapped;   /* true if `host` is memory of the caller */
    bool read_only; /* the library must not write it */
    /* The wrapped memory has bytes between the elements that the library must
     * not change.  The library writes only the elements of writable_layouts. */
    bool has_gaps;
    uint64_t bytes;
    /* Start of the address range that overlap checks use: the host address of
     * wrapped memory, otherwise an address that no other storage uses. */
    _Atomic uint64_t address;
    atomic_bool is_constant; /* nobody changes the content any more */

    struct storage *next; /* next in context->pending_free */
    char *host;           /* host copy of the content; NULL before allocation */
    /* Those of `host`, if it has a release callback or was exported. */
    struct memory_owners *host_owners;
    char *staging; /* temporary download target if has_gaps, or NULL */
    struct writable_layout *writable_layouts;

    /* Mask of locations (HOST_BIT and device bits) with a current copy.  0
     * means that the storage has no content: it was never written, was reset,
     * or its content was lost. */
    _Atomic uint32_t current;
    /* Why the content was lost, or TANDEM_OK. */
    _Atomic enum tandem_status poison;
    /* Devices whose work may still use `host`.  A call that shares the lock may
     * add one. */
    _Atomic uint32_t host_used;
    /* The device for which the thread that holds the lock waits, or NULL. */
    _Atomic(struct device *) waits_for;
    char sync_byte; /* target of the 1-byte download that checks host_writer */
    /* The device whose pending work may still write the host copy, or NULL. */
    struct device *host_writer;
    struct tandem_buffer *buffers[TANDEM_MAX_DEVICES];
    /* The device whose buffer belongs to the program, or NULL.  Set at
     * creation.  This buffer is never freed or replaced. */
    struct device *lender;
    /* Those of this buffer, if it has a release callback. */
    struct memory_owners *buffer_owners;
    /* Bit d is set if buffers[d] is the host copy, imported by device d. */
    _Atomic uint32_t imported;
    /* last_write[d] is the number of the last launch on device d that wrote
     * buffers[d]; 0 means that none did. */
    uint64_t last_write[TANDEM_MAX_DEVICES];

    /* The next fields are for predictions.  Calls that share the lock may
     * change them.
     *
     * Migration credit; see chooser.h. */
    _Atomic float migration_credit_ns[TANDEM_MAX_DEVICES];
    /* Devices to which credit moved the storage. */
    _Atomic uint32_t migrated_to;
    _Atomic float migration_cost_ns;  /* predicted time of the last migration */
    _Atomic float migration_saved_ns; /* time that it saved so far */
    /* New credit is divided by 2^credit_halvings. */
    _Atomic uint8_t credit_halvings;
    /* Access history, which predicts the next reader of the storage. */
    _Atomic uint8_t unread_results; /* successive results overwritten unread */
    atomic_bool unread_by_host;     /* the host has not read the last result of
                                       a device */
    atomic_bool unread_by_devices;  /* no device has read the last result */
    atomic_bool host_reads_results; /* the host has read at least one result */
    /* Number plus 1 of the device that first read the last result (0 if none
     * did), and the operator (enum tandem_op_id) that read it there. */
    _Atomic uint8_t first_reader, first_reader_op;
};

/* The memory of freed storages stays readable, so a call whose tensor another
 * thread destroys, against the rules, finds out. */
extern struct handle_pool storage_pool;

/* [may wait]  Takes the lock, alone or shared.  Returns TANDEM_NOT_READY after
 * deadline_ns, or after 5 ms if that is longer.  With HANG_DEADLINE, gives up
 * only if the thread that holds the lock waits for a device all the time: the
 * device is then marked as hung. */
enum tandem_status storage_lock(struct storage *storage, bool alone,
                                uint64_t deadline_ns);
static inline void storage_unlock(struct storage *storage)
{
    pthread_rwlock_unlock(&storage->lock);
}

/* Returns a storage with one reference, or NULL if memory is exhausted.
 * `wrapped` is the caller's memory; if NULL, the library allocates memory.
 * Needs no lock. */
struct storage *storage_new(struct tandem_context *context, uint64_t bytes,
                            void *wrapped);
/* Lets a new storage use the program's buffer, which has its content. */
void storage_set_buffer(struct storage *storage, struct device *device,
                        struct tandem_buffer *buffer);
/* Drops a reference and, if it was the last one, frees the storage, after the
 * calls that use it.  If device work may still use the host memory or the
 * program's buffer, storages_free_pending frees it later. The lock must not be
 * held. */
void storage_release(struct storage *storage);
/* Frees the storages in context->pending_free that no device work uses.  Needs
 * no lock. */
void storages_free_pending(struct tandem_context *context);

/* Leaks the storages that are still in context->pending_free when the context
 * is destroyed, because a hung device may still use their memory. */
void storages_leak_pending(struct tandem_context *context);

/* Records that the library may write the elements of `desc` in a storage with
 * gaps (has_gaps).  desc->byte_offset counts from the storage's start. */
enum tandem_status
storage_add_writable_layout(struct storage *storage,
                            const struct tandem_tensor_desc *desc);

/* Allocates the storage's host memory if it has none.  Moves no content. */
enum tandem_status storage_allocate_host(struct storage *storage);
/* Allocates or imports the device's buffer if missing.  Moves no content. */
enum tandem_status storage_allocate_buffer(struct storage *storage,
                                           struct device *device);

/* Frees the buffer of device `id`, if there is one, but not that of the
 * program. */
void storage_free_buffer(struct storage *storage, uint32_t id);

/* Returns true if the size, alignment and layout of the host copy allow the
 * devices of context->import_devices to use it in place. */
bool storage_is_importable(const struct storage *storage);

/* Returns the mask of the devices that use the host copy in place. */
static inline uint32_t storage_zero_copy_devices(const struct storage *storage)
{
    return storage->context->zero_copy_devices | storage->imported;
}

static inline bool storage_is_zero_copy(const struct storage *storage,
                                        const struct device *device)
{
    return storage_zero_copy_devices(storage) >> device->id & 1;
}

/* Returns the mask of the devices that use the host copy in place or will
 * import the host copy at their next use of the storage. */
static inline uint32_t
storage_host_accessible_devices(const struct storage *storage)
{
    uint32_t devices = storage->context->import_devices;

    if (devices == 0 || !storage_is_importable(storage))
        return storage_zero_copy_devices(storage);
    for (uint32_t i = 0; i < storage->context->device_count; i++) {
        if (storage->buffers[i] != NULL)
            devices &= ~(1u << i);
    }
    return storage_zero_copy_devices(storage) | devices;
}

/* Returns the bit of storage->current that stands for the device's copy. */
static inline uint32_t storage_location_bit(const struct storage *storage,
                                            const struct device *device)
{
    return storage_is_zero_copy(storage, device) ? HOST_BIT : device->bit;
}

/* Returns true if an operator must not write the storage. */
static inline bool storage_is_unwritable(const struct storage *storage)
{
    return storage->read_only || storage->is_constant;
}

/* Returns TANDEM_OK if the library may write the storage.  Otherwise sets the
 * error message, in which `what` names the tensor. */
enum tandem_status storage_check_writable(const struct storage *storage,
                                          const char *what);

/* Returns TANDEM_OK if the storage has content, TANDEM_INVALID_ARGUMENT if it
 * has none, otherwise the error that destroyed the content.  The lock
 * may be shared. */
enum tandem_status storage_require_content(struct storage *storage);

/* [may wait]  Makes the host copy current and waits for all writes to it. */
enum tandem_status storage_sync_host(struct storage *storage,
                                     uint64_t deadline_ns);
/* [may wait, up to HANG_DEADLINE]  Makes the copy on a device current. */
enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device);
/* Returns true if storage_to_device would change nothing.  The lock may be
 * shared. */
bool storage_is_on_device(const struct storage *storage,
                          const struct device *device);

/* [may wait]  Waits until no work of `devices` (a mask) uses the host copy, so
 * that the caller may write this copy.  Fails if one of the devices hangs. */
enum tandem_status storage_wait_host_writable(struct storage *storage,
                                              uint32_t devices,
                                              uint64_t deadline_ns);

/* Copies the elements of a tensor between two layouts in host memory.  `desc`
 * gives the dtype, rank and shape.  Strides count elements.  Needs no lock. */
void strided_copy(const struct tandem_tensor_desc *desc, char *target,
                  const int64_t *target_strides, const char *source,
                  const int64_t *source_strides);

/* Frees the device's own copy if the device can use the host copy in place
 * instead.  The host copy must be current. */
void storage_drop_device_copy(struct storage *storage, struct device *device);

/* Called before a launch that overwrites the whole storage.  If a launch that
 * wrote the device's buffer may have failed, frees the buffer, because the
 * plugin may refuse to use it. */
void storage_drop_poisoned_buffer(struct storage *storage,
                                  struct device *device);

/* Records that the host wrote the storage, so that device copies are stale. */
void storage_note_host_write(struct storage *storage);
/* Makes the content undefined. */
void storage_forget_content(struct storage *storage);
/* Records that the host read the storage.  The lock may be shared. */
void storage_note_host_read(struct storage *storage);
/* Records that a launch on the device, with this number, wrote the storage. */
void storage_note_device_write(struct storage *storage, struct device *device,
                               uint64_t launch);

/* Records that a launch of operator `op` on the device reads the storage.  The
 * lock may be shared. */
static inline void storage_note_device_read(struct storage *storage,
                                            const struct device *device,
                                            uint32_t op)
{
    if (!storage->unread_by_devices)
        return;
    storage->first_reader = (uint8_t)(device->id + 1);
    storage->first_reader_op = (uint8_t)op;
    storage->unread_by_devices = false;
}

/* Returns true if the caller is expected to read the next result on the host.
 * For wrapped memory, this is true unless the last MAX_UNREAD_RESULTS results
 * were overwritten before the host read them.  For other memory, this is true
 * if the host has read a result and no later result was overwritten unread. */
static inline bool storage_read_expected(const struct storage *storage)
{
    return storage->wrapped
               ? storage->unread_results < MAX_UNREAD_RESULTS
               : storage->host_reads_results && storage->unread_results == 0;
}

#endif
