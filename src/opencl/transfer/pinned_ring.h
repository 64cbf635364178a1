/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through a ring of pinned memory.  Copy threads fill or empty slots
 * of the ring while the driver transfers other slots.  Only the transfer that
 * holds bulk_transfer.mutex may use the ring. */
#ifndef TANDEM_OPENCL_TRANSFER_PINNED_RING_H
#define TANDEM_OPENCL_TRANSFER_PINNED_RING_H

#include <stdbool.h>
#include <tandem/backend.h>

struct pinned_ring {
    void *memory;          /* NULL until the ring is allocated */
    bool unavailable;      /* memory is exhausted, or a command hangs */
    uint64_t bytes_before; /* bytes transferred before the ring existed */
};

/* Returns true if the device has a ring. Allocates the ring if `force` is true,
 * or if `bytes` plus earlier transfers justify the time to pin the ring. */
bool pinned_ring_is_available(struct tandem_device *device, uint64_t bytes,
                              bool force);
struct transfer;
/* Runs a transfer like bulk_transfer_run. */
enum tandem_status pinned_ring_transfer(const struct transfer *request,
                                        uint64_t deadline_ns);

#endif
