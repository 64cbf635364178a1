/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the path of transfers; see transfer_path.h. */
#include "opencl/transfer/transfer_path.h"

#include <string.h>

#include "opencl/memory/pinned_memory.h"

bool transfer_path_force(struct tandem_device *device, const char *text)
{
    const bool driver = strcmp(text, "driver") == 0;
    if (!driver && strcmp(text, "ring") != 0)
        return false;
    device->forced_transfer_path =
        driver ? TRANSFER_PATH_DRIVER : TRANSFER_PATH_RING;
    return true;
}

bool transfer_uses_ring(const struct transfer *transfer)
{
    const struct tandem_stream *stream = transfer->stream;
    struct tandem_device *device = stream->device;
    const uint64_t bytes = transfer->bytes;
    if (device->forced_transfer_path != TRANSFER_PATH_ANY)
        return device->forced_transfer_path == TRANSFER_PATH_RING;
    const bool idle = atomic_load(&stream->completed_seqno) ==
                      atomic_load(&stream->issued_seqno);
    if (transfer->upload && !idle && bytes <= MAX_BUSY_RING_BYTES)
        return true;
    if (device_shares_host_memory(device))
        return transfer->upload && bytes < MIN_DRIVER_UPLOAD_BYTES;
    return bytes < MIN_BULK_BYTES ||
           !pinned_contains(device, transfer->host, bytes);
}

bool transfer_is_pipelined(const struct transfer *transfer)
{
    const struct tandem_device *device = transfer->stream->device;
    return transfer->bytes >= MIN_BULK_BYTES &&
           (!device_shares_host_memory(device) ||
            device->forced_transfer_path == TRANSFER_PATH_RING);
}
