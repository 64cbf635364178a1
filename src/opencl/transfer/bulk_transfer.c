/* SPDX-License-Identifier: Apache-2.0 */
/* Times and chooses the paths of bulk transfers; see bulk_transfer.h. */
#include "opencl/transfer/bulk_transfer.h"

#include <string.h>

#include "opencl/device/event_poll.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/transfer/mapped_transfer.h"

/* Transfers of at least this size are large.  They are timed separately. */
#define LARGE_BYTES ((uint64_t)2 << 20)
#define SAMPLES 3u
/* A path replaces the fastest path only if it is faster by this factor. */
#define MIN_SPEEDUP 1.1

static bool path_is_available(struct tandem_stream *stream,
                              enum transfer_path path, uint64_t bytes)
{
    struct tandem_device *device = stream->device;
    struct bulk_transfer *bulk = &device->bulk_transfer;
    if (path == TRANSFER_PATH_RING)
        return pinned_ring_is_available(device, bytes, bulk->forced_path >= 0);
    return path == TRANSFER_PATH_DIRECT ||
           ((device->hardware->unified || bulk->forced_path == (int)path) &&
            mapped_memory_is_coherent(stream, &bulk->map_coherence));
}

/* Until all transfer paths are timed, returns the path with the fewest samples.
 * After that, returns the fastest path. */
static enum transfer_path path_choose(struct tandem_stream *stream,
                                      struct path_timing *timing,
                                      uint64_t bytes)
{
    int path = stream->device->bulk_transfer.forced_path;
    enum transfer_path least = TRANSFER_PATH_DIRECT;
    if (path < 0 && timing->decided)
        path = (int)timing->fastest;
    /* Check the path again: bulk_transfer_trim can have freed the ring. */
    if (path >= 0)
        return path_is_available(stream, (enum transfer_path)path, bytes)
                   ? (enum transfer_path)path
                   : TRANSFER_PATH_DIRECT;
    for (uint32_t i = TRANSFER_PATH_COUNT; i-- > 0;)
        if (timing->samples[i] < timing->samples[least] &&
            path_is_available(stream, (enum transfer_path)i, bytes))
            least = (enum transfer_path)i;
    return least;
}

static bool path_may_still_be_timed(const struct tandem_device *device,
                                    enum transfer_path path)
{
    const struct bulk_transfer *bulk = &device->bulk_transfer;
    if (path == TRANSFER_PATH_RING)
        return !bulk->ring.unavailable;
    return path == TRANSFER_PATH_DIRECT ||
           (device->hardware->unified &&
            bulk->map_coherence != COHERENCE_FAILED);
}

static void path_timing_add(struct tandem_device *device,
                            struct path_timing *timing, enum transfer_path path,
                            uint64_t bytes, uint64_t ns)
{
    static const char *const names[TRANSFER_PATH_COUNT] = {
        "the driver", "pinned memory", "mapped memory"};
    if (timing->decided)
        return;
    double rate = (double)bytes / (double)(ns + 1);
    if (rate > timing->best_rate[path])
        timing->best_rate[path] = rate;
    timing->samples[path]++;
    timing->decided = true;
    for (uint32_t i = 0; i < TRANSFER_PATH_COUNT; i++) {
        if (timing->best_rate[i] >
            timing->best_rate[timing->fastest] * MIN_SPEEDUP)
            timing->fastest = i;
        timing->decided &=
            timing->samples[i] >= SAMPLES ||
            !path_may_still_be_timed(device, (enum transfer_path)i);
    }
    if (!timing->decided)
        return;
    device_log(device, TANDEM_LOG_DEBUG,
               "%s use %s: %.1f GB/s; the driver reaches %.1f GB/s",
               timing >= device->bulk_transfer.timings[1] ? "uploads"
                                                          : "downloads",
               names[timing->fastest], timing->best_rate[timing->fastest],
               timing->best_rate[TRANSFER_PATH_DIRECT]);
}

static enum tandem_status transfer_direct(const struct transfer *transfer,
                                          uint64_t deadline_ns)
{
    return transfer->upload || deadline_ns == TANDEM_TIMEOUT_INFINITE
               ? transfer_enqueue(transfer, CL_TRUE, NULL)
               : transfer_wait(transfer,
                               remaining_ns(deadline_ns, UINT64_MAX - 1));
}

enum tandem_status bulk_transfer_run(const struct transfer *transfer,
                                     uint64_t deadline_ns)
{
    const uint64_t bytes = transfer->bytes;
    struct tandem_device *device = transfer->stream->device;
    struct bulk_transfer *bulk = &device->bulk_transfer;
    struct path_timing *timing =
        &bulk->timings[transfer->upload][bytes >= LARGE_BYTES];
    /* The driver transfers pinned memory directly, without a copy. */
    if (pinned_contains(device, transfer->host, bytes) ||
        pthread_mutex_trylock(&bulk->mutex) != 0)
        return transfer_direct(transfer, deadline_ns);
    enum transfer_path path = path_choose(transfer->stream, timing, bytes);
    const uint64_t start_ns = monotonic_ns();
    enum tandem_status status =
        path == TRANSFER_PATH_RING ? pinned_ring_transfer(transfer, deadline_ns)
        : path == TRANSFER_PATH_MAPPED
            ? mapped_transfer_run(transfer, deadline_ns)
            : transfer_direct(transfer, deadline_ns);
    if (status == TANDEM_OK)
        path_timing_add(device, timing, path, bytes, monotonic_ns() - start_ns);
    pthread_mutex_unlock(&bulk->mutex);
    return status;
}

bool bulk_transfer_supports(const struct tandem_device *device, uint64_t bytes)
{
    return bytes >= MIN_BULK_BYTES &&
           (device->hardware->info.kind != TANDEM_DEVICE_CPU ||
            device->bulk_transfer.forced_path >= 0 ||
            device->bulk_transfer.force_staging);
}

bool bulk_transfer_prefers_staging(struct tandem_device *device,
                                   const void *source, uint64_t bytes)
{
    const struct bulk_transfer *bulk = &device->bulk_transfer;
    bool staging = bulk->force_staging ||
                   (bulk->forced_path < 0 && !device->hardware->unified);
    return bulk_transfer_supports(device, bytes) && staging &&
           !pinned_contains(device, source, bytes);
}

void bulk_copy_to_staging(struct tandem_device *device, void *target,
                          const void *source, uint64_t bytes)
{
    struct bulk_transfer *bulk = &device->bulk_transfer;
    if (!bulk_transfer_supports(device, bytes) ||
        pthread_mutex_trylock(&bulk->mutex) != 0) {
        memcpy(target, source, (size_t)bytes);
        return;
    }
    copy_threads_copy(&bulk->threads, (void *)(uintptr_t)source, target, bytes,
                      true);
    pthread_mutex_unlock(&bulk->mutex);
}

void bulk_transfer_start(struct bulk_transfer *bulk, uint64_t max_threads)
{
    pthread_mutex_init(&bulk->mutex, NULL);
    copy_threads_start(&bulk->threads, max_threads);
}

bool bulk_transfer_force_path(struct bulk_transfer *bulk, const char *text)
{
    static const char *const names[TRANSFER_PATH_COUNT] = {"direct", "ring",
                                                           "mapped"};
    bulk->force_staging = strcmp(text, "staged") == 0;
    for (int path = 0; path < TRANSFER_PATH_COUNT; path++)
        if (strcmp(text, names[path]) == 0) {
            bulk->forced_path = path;
            return true;
        }
    return bulk->force_staging;
}

void bulk_transfer_finish(struct bulk_transfer *bulk)
{
    copy_threads_finish(&bulk->threads);
    pthread_mutex_destroy(&bulk->mutex);
}

void bulk_transfer_trim(struct tandem_device *device)
{
    struct bulk_transfer *bulk = &device->bulk_transfer;
    if (pthread_mutex_trylock(&bulk->mutex) != 0)
        return;
    void *ring = bulk->ring.memory;
    bulk->ring.memory = NULL;
    pthread_mutex_unlock(&bulk->mutex);
    if (ring != NULL)
        pinned_free(device, ring);
}
