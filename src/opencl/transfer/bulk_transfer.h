/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large transfers of the caller's memory go, once the stream has nothing
 * else to do: by the driver, which often knows no better than to copy it in
 * one thread; through a ring of pinned memory, copied by several; or, where
 * device and host share memory, by several into the buffer itself, mapped.
 * Which is quickest is measured, for each direction, on the first transfers.
 *
 * One transfer of a device has the ring at a time; others go by the driver.
 */
#ifndef TANDEM_OPENCL_TRANSFER_BULK_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_BULK_TRANSFER_H

#include <pthread.h>
#include <stdatomic.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"
#include "opencl/transfer/copy_threads.h"

/* What is smaller is copied by the caller's thread: upload_staging.h,
 * readback_buffer.h. */
#define HAUL_BYTES ((uint64_t)128 << 10)

enum haul_way { HAUL_DIRECT, HAUL_RING, HAUL_MAPPED, HAUL_WAYS };

/* The ways of one direction, for transfers that are small or large. */
struct haul_contest {
    uint32_t turns[HAUL_WAYS];
    double rate[HAUL_WAYS]; /* the best, bytes/ns */
    uint32_t way;           /* enum haul_way */
    bool decided;
};

struct haul {
    pthread_mutex_t busy;
    struct copier copier;
    unsigned char *ring; /* pinned; NULL: not made */
    bool ringless;       /* there is no memory for it, or no use */
    uint64_t moved;      /* bytes, while there is no ring */
    uint32_t maps;       /* whether mapped memory was right: unknown, yes, no */
    struct haul_contest contests[2][2]; /* down, up; small, large */
    /* Of the open key test.transfers: a way, or -1; uploads are staged. */
    int forced;
    bool staged;
};

void haul_start(struct haul *haul, uint64_t most_threads);
/* Whether text names a way. */
bool haul_force(struct haul *haul, const char *text);
/* Before the device's pinned memory goes; no transfer is under way. */
void haul_finish(struct haul *haul);
/* Gives the ring back, unless a transfer is going on. */
void haul_trim(struct tandem_device *device);

/* Whether such a transfer is for here: a processor's driver copies by itself,
 * and nothing is won by a detour. */
bool haul_serves(const struct tandem_device *device, uint64_t bytes);
/* Whether an upload that need not wait is better off in staging memory, where
 * it returns before it is over: where the device's memory is its own, and the
 * source is not pinned already. */
bool haul_stages(struct tandem_device *device, const void *source,
                 uint64_t bytes);
/* As memcpy to memory that a device will read; by several threads, where there
 * are any that have nothing else to do and it is worth them. */
void haul_fill(struct tandem_device *device, void *target, const void *source,
               uint64_t bytes);
/* All of bytes, HAUL_BYTES or more, on a stream that has nothing to do; returns
 * when it is there.  What it fails with is its own.  Of a download that fails,
 * target may be written in part; NOT_READY: it was not there by the deadline,
 * of monotonic_ns (TANDEM_TIMEOUT_INFINITE: none), and target is in use. */
enum tandem_status bulk_upload(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               const void *source, uint64_t bytes);
enum tandem_status haul_download(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t deadline_ns);

#endif
