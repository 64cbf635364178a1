/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers through a ring of pinned memory: copy threads fill or empty slots
 * of the ring while the driver transfers others.  One transfer per device at a
 * time, under bulk_transfer.mutex.
 */
#ifndef TANDEM_OPENCL_TRANSFER_PINNED_RING_H
#define TANDEM_OPENCL_TRANSFER_PINNED_RING_H

#include <stdbool.h>
#include <tandem/backend.h>

struct pinned_ring {
    unsigned char *memory; /* NULL until it is allocated */
    bool unavailable;      /* there is no memory, or an unfinished command */
    uint64_t bytes_before; /* transferred before the ring was allocated */
};

/* Returns true if the device has a ring.  Allocates it when transfers of
 * `bytes` and before are worth its cost, or if `force` is true. */
bool pinned_ring_is_available(struct tandem_device *device, uint64_t bytes,
                              bool force);
/* Transfers from `host` to the buffer if `upload` is true, else to `host`.
 * Returns NOT_READY at deadline_ns. */
enum tandem_status pinned_ring_transfer(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, unsigned char *host,
                                        uint64_t bytes, bool upload,
                                        uint64_t deadline_ns);
/* Detaches the ring's memory, which the caller frees.  May return NULL. */
void *pinned_ring_detach(struct pinned_ring *ring);

#endif
