/* SPDX-License-Identifier: Apache-2.0 */
/* A bulk transfer is a large transfer of the caller's memory on a stream
 * without unfinished commands. The first transfers of each direction are timed
 * on every path (enum transfer_path). Later transfers use the fastest path.
 *
 * Only one transfer of a device at a time uses the ring or a mapped buffer.
 * Meanwhile, other transfers use the direct path. */
#ifndef TANDEM_OPENCL_TRANSFER_BULK_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_BULK_TRANSFER_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/transfer/copy_threads.h"
#include "opencl/transfer/pinned_ring.h"

/* Minimum size of a bulk transfer. The caller's thread copies smaller
 * transfers; see upload_staging.h and transfer.c. */
#define MIN_BULK_BYTES ((uint64_t)128 << 10)

/* Result of the test whether host and device see each other's writes. */
enum coherence { COHERENCE_UNKNOWN, COHERENCE_PASSED, COHERENCE_FAILED };

enum transfer_path {
    TRANSFER_PATH_DIRECT, /* the driver copies, often with one thread */
    TRANSFER_PATH_RING,   /* several threads copy through pinned memory */
    TRANSFER_PATH_MAPPED, /* several threads copy to or from a mapped buffer */
    TRANSFER_PATH_COUNT
};

/* Measured speed of each path, for one direction and one size class. */
struct path_timing {
    uint32_t samples[TRANSFER_PATH_COUNT];
    double best_rate[TRANSFER_PATH_COUNT]; /* in bytes per ns */
    uint32_t fastest;                      /* an enum transfer_path */
    bool decided;
};

struct bulk_transfer {
    pthread_mutex_t mutex; /* held while the ring or a mapped buffer is used */
    struct copy_threads threads;
    struct pinned_ring ring;
    enum coherence map_coherence;     /* of mapped buffers */
    struct path_timing timings[2][2]; /* [is upload][is large] */
    /* The device_open option test.transfer_path sets both fields. forced_path
     * is the path of all bulk transfers, or -1 for no forced path.  If
     * force_staging is true, all uploads use staging memory. */
    int forced_path;
    bool force_staging;
};

void bulk_transfer_start(struct bulk_transfer *bulk, uint64_t max_threads);
/* Parses the option test.transfer_path. Returns false if `text` is invalid. */
bool bulk_transfer_force_path(struct bulk_transfer *bulk, const char *text);
/* Ends the copy threads.  Call this before pinned_finish, when no transfer is
 * running. */
void bulk_transfer_finish(struct bulk_transfer *bulk);
/* Frees the ring of pinned memory, unless a transfer is using the ring. */
void bulk_transfer_trim(struct tandem_device *device);

/* Returns true if a transfer of this size is a bulk transfer.  CPU devices have
 * no bulk transfers, because their drivers copy fast. */
bool bulk_transfer_supports(const struct tandem_device *device, uint64_t bytes);
/* Returns true if an upload should go through staging memory, so that it
 * returns before the transfer completes.  This requires a device with its own
 * memory and a source that is not pinned. */
bool bulk_transfer_prefers_staging(struct tandem_device *device,
                                   const void *source, uint64_t bytes);
/* Copies the caller's data to staging memory.  Uses the copy threads if they
 * are idle and if bulk_transfer_supports returns true for this size. */
void bulk_copy_to_staging(struct tandem_device *device, void *target,
                          const void *source, uint64_t bytes);
/* Runs a transfer of at least MIN_BULK_BYTES on a stream without unfinished
 * commands, and waits for completion.  A download returns NOT_READY if it is
 * not complete at deadline_ns, a time of monotonic_ns.  The driver can then
 * still write to the target.  A failed download can have written a part of the
 * target. */
enum tandem_status bulk_transfer_run(const struct transfer *transfer,
                                     uint64_t deadline_ns);

#endif
