/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between the two paths of transfers: the driver's own command on
 * the caller's memory, or the stream's ring of pinned memory
 * (queue/pinned_ring.h), to or from which several threads copy. Any thread may
 * call these functions. */
#ifndef TANDEM_OPENCL_TRANSFER_TRANSFER_PATH_H
#define TANDEM_OPENCL_TRANSFER_TRANSFER_PATH_H

#include "opencl/queue/buffer_commands.h"

/* The calling thread copies transfers below this size to or from the ring. For
 * larger ones, the driver's own command is faster if the caller's memory is
 * pinned: 28 instead of 40 us for 1 MiB on an H200. */
#define MIN_BULK_BYTES ((uint64_t)128 << 10)
/* If the device shares the host's memory, the driver copies fast, but it takes
 * time to start: below this size, an upload through the ring is faster on an
 * idle stream of PoCL. */
#define MIN_DRIVER_UPLOAD_BYTES ((uint64_t)512 << 10)
/* While earlier commands of the stream are running, uploads of up to this size
 * always use the ring, because the driver's command would wait for them. */
#define MAX_BUSY_RING_BYTES ((uint64_t)4 << 20)

/* Value of device.forced_transfer_path, from the option test.transfer_path. */
enum transfer_path {
    TRANSFER_PATH_ANY, /* not forced */
    TRANSFER_PATH_DRIVER,
    TRANSFER_PATH_RING
};

/* Parses the option test.transfer_path. Returns false if `text` is invalid. */
bool transfer_path_force(struct tandem_device *device, const char *text);
/* Returns true if the transfer should use the ring. */
bool transfer_uses_ring(const struct transfer *transfer);
/* Returns true if a transfer through the ring should be divided into commands,
 * so that threads copy a part while the device transfers another part. */
bool transfer_is_pipelined(const struct transfer *transfer);

#endif
