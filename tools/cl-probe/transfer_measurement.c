/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads and downloads, of ordinary and of pinned memory: time over bytes.
 * Child process.
 */
#include <config.h>

#include "../common/clock.h"
#include "../common/statistics.h"
#include "calibration_run.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES (UINT64_C(4) << 10)
#define LAST_BYTES (UINT64_C(256) << 20)
#define GROWTH 4
#define SAMPLES 9

struct transfer {
    const char *curve;
    bool upload, pinned;
    struct tandem_buffer *buffer;
    void *memory;
};

static void *memory_alloc(struct session *session, bool pinned, uint64_t bytes)
{
    struct lane *lane = &session->lane;
    void *memory = NULL;

    if (!pinned)
        memory = aligned_alloc(4096, bytes);
    else if (lane->backend->host_alloc(lane->device, bytes, &memory) !=
             TANDEM_OK)
        return NULL;
    /* A page never touched would be counted as the transfer's. */
    if (memory != NULL)
        memset(memory, 1, bytes);
    return memory;
}

static void memory_free(struct session *session, bool pinned, void *memory)
{
    if (memory != NULL && pinned)
        session->lane.backend->host_free(session->lane.device, memory);
    else
        free(memory);
}

/* Uploads one after another and one wait; downloads wait each. */
static enum tandem_status transfer_many(struct lane *lane,
                                        const struct transfer *transfer,
                                        uint64_t bytes, uint64_t count,
                                        double *out_ns)
{
    uint64_t start = clock_now_ns();
    enum tandem_status status = TANDEM_OK;

    for (uint64_t i = 0; i < count && status == TANDEM_OK; i++)
        status = transfer->upload
                     ? lane->backend->upload(lane->stream, transfer->buffer, 0,
                                             transfer->memory, bytes, 0)
                     : lane->backend->download(lane->stream, transfer->buffer,
                                               0, transfer->memory, bytes, 0,
                                               TANDEM_TIMEOUT_INFINITE);
    if (status == TANDEM_OK)
        status = lane_synchronize(lane);
    *out_ns = (double)(clock_now_ns() - start) / (double)count;
    return status;
}

static enum tandem_status transfer_time(struct session *session,
                                        const struct transfer *transfer,
                                        uint64_t bytes, double *out_ns)
{
    struct lane *lane = &session->lane;
    double samples[SAMPLES];
    double once;
    uint64_t count;
    uint32_t done = 0;
    enum tandem_status status = transfer_many(lane, transfer, bytes, 2, &once);

    count = (uint64_t)((double)session->plan.batch_ns / 8 / (once + 1)) + 1;
    while (status == TANDEM_OK && done < SAMPLES &&
           (done < 3 || step_left_ns(session) > 0)) {
        status =
            transfer_many(lane, transfer, bytes, count, &samples[done]);
        done++;
    }
    *out_ns = quantile(samples, done, 0.5);
    return status;
}

/* Larger and larger while the next should still fit into the time left. */
static enum tandem_status transfer_sizes(struct session *session,
                                         const struct transfer *transfer,
                                         uint64_t last_bytes)
{
    double ns = 0;
    enum tandem_status status = TANDEM_OK;

    for (uint64_t bytes = FIRST_BYTES;
         bytes <= last_bytes && status == TANDEM_OK; bytes *= GROWTH) {
        if (ns * GROWTH * 6 > (double)step_left_ns(session) &&
            bytes > UINT64_C(1) << 20)
            break;
        status = transfer_time(session, transfer, bytes, &ns);
        if (status == TANDEM_OK)
            session_point(session, transfer->curve, (double)bytes, ns);
    }
    return status;
}

static enum tandem_status measure_transfer(struct session *session,
                                           struct transfer *transfer,
                                           uint64_t last_bytes)
{
    struct lane *lane = &session->lane;
    enum tandem_status status;

    step_begin(session, WEIGHT_TRANSFER, transfer->curve);
    transfer->memory = memory_alloc(session, transfer->pinned, last_bytes);
    if (transfer->memory == NULL) {
        session_skip(session, transfer->curve);
        step_end(session);
        return TANDEM_OK;
    }
    status = lane_buffer(lane, last_bytes, 0, &transfer->buffer);
    if (status == TANDEM_OK)
        status = transfer_sizes(session, transfer, last_bytes);
    if (transfer->buffer != NULL)
        lane->backend->free(transfer->buffer);
    memory_free(session, transfer->pinned, transfer->memory);
    step_end(session);
    return status;
}

enum tandem_status measure_transfers(struct session *session)
{
    struct transfer transfers[] = {
        {"upload", true, false, NULL, NULL},
        {"download", false, false, NULL, NULL},
        {"upload_pinned", true, true, NULL, NULL},
        {"download_pinned", false, true, NULL, NULL},
    };
    uint64_t last_bytes = session->quick ? LAST_BYTES / 4 : LAST_BYTES;
    enum tandem_status status = TANDEM_OK;

    while (last_bytes > session->max_bytes / 4 && last_bytes > FIRST_BYTES)
        last_bytes /= GROWTH;
    for (size_t i = 0; i < 4 && status == TANDEM_OK; i++)
        status = measure_transfer(session, &transfers[i], last_bytes);
    return status;
}
