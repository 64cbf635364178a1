/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage: the bytes that a tensor and its views share.  The host and each
 * device may have a copy; the storage tracks which copies are current.  The
 * context's mutex must be held for all functions.  Functions marked [may wait]
 * can release it meanwhile; see device_wait.h.
 */
#ifndef TANDEM_HOST_TENSOR_STORAGE_H
#define TANDEM_HOST_TENSOR_STORAGE_H

#include "host/context/context.h"
#include "host/device/device.h"

/* Upper limit of storage.backoff: credits are scaled by 2^-backoff. */
#define STORAGE_BACKOFF_MAX 20u
/* The host is no longer expected to read wrapped memory after this many
 * results were overwritten unread. */
#define STORAGE_UNREAD_MAX 4u

/* A writable layout: the elements that the library may write in wrapped memory
 * in which other bytes belong to the caller. */
struct claim {
    struct claim *next;
    struct tandem_tensor_desc desc;
};

struct storage {
    struct tandem_context *context;
    struct storage *next; /* next in the list context->leaving */
    uint32_t references;
    bool wrapped; /* `host` is the caller's memory */
    bool read_only;
    /* The wrapped memory has bytes between the elements that the library must
     * not change.  Only the layouts in `claims` are written. */
    bool gaps;
    uint64_t bytes;
    /* The address used to detect overlaps: the host address of wrapped memory,
     * otherwise a number that no other storage uses. */
    uint64_t address;
    char *host;    /* the host copy; NULL before it is allocated */
    char *staging; /* target of a download into memory with gaps, or NULL */
    struct claim *claims;

    /* Current copies: HOST_BIT and device bits.  0 means that the storage was
     * never written or that its content was lost. */
    uint32_t current;
    enum tandem_status poison; /* if not TANDEM_OK, the error of a read */
    /* Devices with pending work that may use the host copy. */
    uint32_t host_used;
    /* The device from which a thread is downloading now, or NULL. */
    struct device *mover;
    char settled; /* target of the one-byte download in host_settle */
    /* The device whose pending work may still write the host copy, or NULL. */
    struct device *host_writer;
    struct tandem_buffer *buffers[TANDEM_MAX_DEVICES];
    /* Bit d is set if buffers[d] is the host copy, imported by a device that
     * has its own memory. */
    uint32_t imported;
    /* Sequence number of the last launch of device d that wrote buffers[d]. */
    uint64_t written[TANDEM_MAX_DEVICES];

    /* State of the chooser; see chooser.h. */
    float migration_credit_ns[TANDEM_MAX_DEVICES];
    uint32_t moved; /* bit d is set after a move to device d on credit */
    float migration_cost_ns;  /* predicted cost of the last such move */
    float migration_saved_ns; /* predicted time saved by it so far */
    uint8_t backoff;   /* consecutive moves that saved less than they cost */
    uint8_t unread;    /* consecutive results overwritten before a host read */
    bool produced;     /* a device wrote it and the host has not read it yet */
    bool awaited;      /* a device wrote it and no device has read it yet */
    uint8_t reader;    /* first device to read the last result, plus 1; or 0 */
    uint8_t reader_op; /* the operator of that read */
    bool read_by_host; /* the host has read at least one result */
};

/* Returns a storage with one reference, or NULL if memory is exhausted.
 * `wrapped` is the caller's memory; NULL means that the library allocates. */
struct storage *storage_new(struct tandem_context *context, uint64_t bytes,
                            void *wrapped);
/* Drops a reference.  The last one frees the storage, or defers this to
 * storages_free_pending while device work may use its host memory. */
void storage_drop(struct storage *storage);
/* Frees the storages in context->leaving that no device work uses any more. */
void storages_free_pending(struct tandem_context *context);

/* Leaks the storages that are still in context->leaving when the context is
 * destroyed, because a hung device may still use their memory. */
void storages_abandon(struct tandem_context *context);

/* Records that the library may write the elements of `desc` to a storage with
 * gaps.  desc->byte_offset counts from the start of the storage. */
enum tandem_status
storage_add_writable_layout(struct storage *storage,
                            const struct tandem_tensor_desc *desc);

/* Both functions allocate memory, on the host or on a device, unless the
 * storage has memory there.  Content is not moved. */
enum tandem_status storage_host_make(struct storage *storage);
enum tandem_status storage_buffer_make(struct storage *storage,
                                       struct device *device);

/* Returns true if the size, alignment and layout of the host copy allow the
 * devices of context->importing to use it in place. */
bool storage_importable(const struct storage *storage);

/* Returns the mask of the devices that use the host copy in place. */
static inline uint32_t storage_zero_copy_devices(const struct storage *storage)
{
    return storage->context->sharing | storage->imported;
}

static inline bool storage_shared(const struct storage *storage,
                                  const struct device *device)
{
    return storage_zero_copy_devices(storage) >> device->id & 1;
}

/* Returns storage_zero_copy_devices and, in addition, the devices that will
 * import the host copy at their next use of the storage. */
static inline uint32_t storage_home(const struct storage *storage)
{
    uint32_t devices = storage->context->importing;

    if (devices != 0 && storage_importable(storage)) {
        for (uint32_t i = 0; i < storage->context->device_count; i++) {
            if (storage->buffers[i] != NULL)
                devices &= ~(1u << i);
        }
    } else {
        devices = 0;
    }
    return storage_zero_copy_devices(storage) | devices;
}

/* Returns the bit of `current` that stands for the device's copy. */
static inline uint32_t storage_bit(const struct storage *storage,
                                   const struct device *device)
{
    return storage_shared(storage, device) ? HOST_BIT : device->bit;
}

/* Returns TANDEM_OK if there is content to read, TANDEM_INVALID_ARGUMENT if
 * there never was, otherwise the reason for the loss. */
enum tandem_status storage_readable(struct storage *storage);

/* [may wait]  Makes the host copy current and waits for all writes to it. */
enum tandem_status storage_to_host(struct storage *storage,
                                   uint64_t deadline_ns);
/* [may wait, up to WAIT_LIMIT]  Makes the copy of a device current. */
enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device);

/* [may wait]  Waits until no work of `devices` (a mask) uses the host copy, so
 * that the host copy may be written.  Fails if such a device hangs. */
enum tandem_status storage_host_release(struct storage *storage,
                                        uint32_t devices, uint64_t deadline_ns);

/* Frees the device's own copy if the device can import the host copy, which
 * must be current. */
void storage_settle_home(struct storage *storage, struct device *device);

/* Frees the device's buffer if failed work may have poisoned it.  For use
 * before a launch that overwrites the whole storage. */
void storage_buffer_renew(struct storage *storage, struct device *device);

/* Record that the host wrote the storage, which makes all device copies stale,
 * or that the host read it. */
void storage_host_wrote(struct storage *storage);
void storage_host_read(struct storage *storage);
/* Records that the latest launch on the device wrote the storage. */
void storage_device_wrote(struct storage *storage, struct device *device);

/* Records that a launch of operator `op` on the device reads the storage. */
static inline void storage_device_reads(struct storage *storage,
                                        const struct device *device,
                                        uint32_t op)
{
    if (storage->awaited) {
        storage->reader = (uint8_t)(device->id + 1);
        storage->reader_op = (uint8_t)op;
    }
    storage->awaited = false;
}

/* Returns true if the caller is expected to read the next result on the host.
 * For wrapped memory this holds unless the last STORAGE_UNREAD_MAX results were
 * overwritten unread; for other memory only if the last result was read. */
static inline bool storage_read_expected(const struct storage *storage)
{
    return storage->wrapped ? storage->unread < STORAGE_UNREAD_MAX
                            : storage->read_by_host && storage->unread == 0;
}

#endif
