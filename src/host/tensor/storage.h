/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage: the bytes that a tensor and its views share, of which the host and
 * any device may have a copy, and which copies are current (residency).  All
 * functions: locked.  What may wait: see device_wait.h.
 */
#ifndef TANDEM_HOST_TENSOR_STORAGE_H
#define TANDEM_HOST_TENSOR_STORAGE_H

#include "host/context/context.h"
#include "host/device/device.h"

#define STORAGE_BACKOFF_MAX 20u
#define STORAGE_UNREAD_MAX 4u

/* A layout of elements in a storage, where not all of its bytes belong to
 * elements. */
struct claim {
    struct claim *next;
    struct tandem_tensor_desc desc;
};

struct storage {
    struct tandem_context *context;
    struct storage *next; /* of context->leaving */
    uint32_t references;
    bool wrapped;
    bool read_only;
    /* Wrapped, and between its elements lie bytes of others': only those of
     * the claims are written. */
    bool gaps;
    uint64_t bytes;
    /* Where it lies for the purpose of finding overlaps: the host address of
     * wrapped memory, else one that is nobody's. */
    uint64_t address;
    char *host; /* NULL: none yet; the caller's where wrapped */
    char *staging; /* for downloads with gaps, or NULL */
    struct claim *claims;

    uint32_t current; /* HOST_BIT, device bits; 0: never written */
    enum tandem_status poison; /* not TANDEM_OK: what reading gives */
    /* Devices of which work that uses the host's copy may be under way. */
    uint32_t host_used;
    /* The device from which a thread is bringing it home, or NULL. */
    struct device *mover;
    char settled; /* what host_settle reads */
    /* The device that wrote the host's copy and may not be done, or NULL. */
    struct device *host_writer;
    struct tandem_buffer *buffers[TANDEM_MAX_DEVICES];
    /* Bit d: device d has memory of its own, but its buffer is the host's
     * copy, imported. */
    uint32_t imported;
    /* The number of the device's last launch that wrote the buffer. */
    uint64_t written[TANDEM_MAX_DEVICES];

    /* For the chooser; see chooser.h. */
    float migration_credit_ns[TANDEM_MAX_DEVICES];
    uint32_t moved;    /* bit d: it was moved to device d on credit, */
    float migration_cost_ns;    /* which took so long, */
    float migration_saved_ns;   /* and has saved so much since */
    uint8_t backoff;   /* such moves in a row that did not earn their price */
    uint8_t unread;    /* results overwritten without a read by the host */
    bool produced;     /* by a device, and not read by the host since */
    bool awaited;      /* by a device, and not read by a device since */
    uint8_t reader;    /* the device that read the last result first, plus 1, */
    uint8_t reader_op; /* for this operator */
    bool read_by_host; /* some result was */
};

/* One reference.  wrapped: host is the caller's; else NULL. */
struct storage *storage_new(struct tandem_context *context, uint64_t bytes,
                            void *wrapped);
void storage_drop(struct storage *storage);
/* Frees those of context->leaving that no work uses any more. */
void storages_free_pending(struct tandem_context *context);

/* The context ends: those that are still there, since devices that hang may use
 * their memory, stay for ever. */
void storages_abandon(struct tandem_context *context);

/* Notes that the elements of desc (its byte_offset in the storage) are the
 * library's to write, where the storage has gaps. */
enum tandem_status storage_add_writable_layout(struct storage *storage,
                                 const struct tandem_tensor_desc *desc);

/* Memory on the host, on a device; nothing is moved. */
enum tandem_status storage_host_make(struct storage *storage);
enum tandem_status storage_buffer_make(struct storage *storage,
                                       struct device *device);

/* Whether the host's copy is of the kind that a device of context->importing
 * can use where it lies. */
bool storage_importable(const struct storage *storage);

/* The devices that use the host's copy where it lies. */
static inline uint32_t storage_zero_copy_devices(const struct storage *storage)
{
    return storage->context->sharing | storage->imported;
}

static inline bool storage_shared(const struct storage *storage,
                                  const struct device *device)
{
    return storage_zero_copy_devices(storage) >> device->id & 1;
}

/* And those that would at their next use of it, too. */
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

/* Where device's copy is: a bit of current. */
static inline uint32_t storage_bit(const struct storage *storage,
                                   const struct device *device)
{
    return storage_shared(storage, device) ? HOST_BIT : device->bit;
}

/* Whether there is something to read: TANDEM_OK, or the poison, or
 * TANDEM_INVALID_ARGUMENT where it was never written. */
enum tandem_status storage_readable(struct storage *storage);

/* [may wait]  Makes the host's copy current and all writing to it done. */
enum tandem_status storage_to_host(struct storage *storage,
                                   uint64_t deadline_ns);
/* [may wait, up to WAIT_LIMIT]  Makes a device's copy current. */
enum tandem_status storage_to_device(struct storage *storage,
                                     struct device *device);

/* [may wait]  Waits for work of devices (a mask) that uses the host's copy, so
 * that it may be written. */
enum tandem_status storage_host_release(struct storage *storage,
                                        uint32_t devices, uint64_t deadline_ns);

/* Its content is on the host: device's own copy is given up where device can
 * use the host's from now on. */
void storage_settle_home(struct storage *storage, struct device *device);

/* Before a launch on device overwrites all of it: a buffer that failed work
 * may have poisoned is given up. */
void storage_buffer_renew(struct storage *storage, struct device *device);

/* The host wrote all of it, or read the result. */
void storage_host_wrote(struct storage *storage);
void storage_host_read(struct storage *storage);
/* The device's latest launch wrote it. */
void storage_device_wrote(struct storage *storage, struct device *device);

/* A launch of op on device reads it. */
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

/* Whether the caller is expected to read the next result on the host: of
 * wrapped memory yes, unless the last few results were overwritten unread; of
 * the library's own where he read the last one. */
static inline bool storage_read_expected(const struct storage *storage)
{
    return storage->wrapped ? storage->unread < STORAGE_UNREAD_MAX
                            : storage->read_by_host && storage->unread == 0;
}

#endif
