/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time of uploads and downloads over their size, with pageable and
 * with pinned memory.  Child process only.
 */
#include <config.h>

#include "../common/clock.h"
#include "../common/statistics.h"
#include "calibration_timing.h"

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

static void *memory_alloc(struct calibration_run *calibration, bool pinned,
                          uint64_t bytes)
{
    struct device_session *session = &calibration->session;
    void *memory = NULL;

    if (!pinned)
        memory = aligned_alloc(4096, bytes);
    else if (session->backend->host_alloc(session->device, bytes, &memory) !=
             TANDEM_OK)
        return NULL;
    /* Otherwise the transfer's time would contain page faults. */
    if (memory != NULL)
        memset(memory, 1, bytes);
    return memory;
}

static void memory_free(struct calibration_run *calibration, bool pinned,
                        void *memory)
{
    if (memory != NULL && pinned)
        calibration->session.backend->host_free(calibration->session.device,
                                                memory);
    else
        free(memory);
}

/* Measures `count` transfers: uploads with one wait at the end, downloads with
 * one wait each. */
static enum tandem_status transfer_many(struct device_session *session,
                                        const struct transfer *transfer,
                                        uint64_t bytes, uint64_t count,
                                        double *out_ns)
{
    uint64_t start = clock_now_ns();
    enum tandem_status status = TANDEM_OK;

    for (uint64_t i = 0; i < count && status == TANDEM_OK; i++)
        status =
            transfer->upload
                ? session->backend->upload(session->stream, transfer->buffer, 0,
                                           transfer->memory, bytes, 0)
                : session->backend->download(session->stream, transfer->buffer,
                                             0, transfer->memory, bytes, 0,
                                             TANDEM_TIMEOUT_INFINITE);
    if (status == TANDEM_OK)
        status = device_session_synchronize(session);
    *out_ns = (double)(clock_now_ns() - start) / (double)count;
    return status;
}

static enum tandem_status transfer_time(struct calibration_run *calibration,
                                        const struct transfer *transfer,
                                        uint64_t bytes, double *out_ns)
{
    struct device_session *session = &calibration->session;
    double samples[SAMPLES];
    double once;
    uint64_t count;
    uint32_t done = 0;
    enum tandem_status status =
        transfer_many(session, transfer, bytes, 2, &once);

    count = (uint64_t)((double)calibration->plan.batch_ns / 8 / (once + 1)) + 1;
    while (status == TANDEM_OK && done < SAMPLES &&
           (done < 3 || step_left_ns(calibration) > 0)) {
        status = transfer_many(session, transfer, bytes, count, &samples[done]);
        done++;
    }
    *out_ns = quantile(samples, done, 0.5);
    return status;
}

/* Measures growing sizes while the next one fits into the time left. */
static enum tandem_status transfer_sizes(struct calibration_run *calibration,
                                         const struct transfer *transfer,
                                         uint64_t last_bytes)
{
    double ns = 0;
    enum tandem_status status = TANDEM_OK;

    for (uint64_t bytes = FIRST_BYTES;
         bytes <= last_bytes && status == TANDEM_OK; bytes *= GROWTH) {
        if (ns * GROWTH * 6 > (double)step_left_ns(calibration) &&
            bytes > UINT64_C(1) << 20)
            break;
        status = transfer_time(calibration, transfer, bytes, &ns);
        if (status == TANDEM_OK)
            calibration_add_point(calibration, transfer->curve, (double)bytes,
                                  ns);
    }
    return status;
}

static enum tandem_status measure_transfer(struct calibration_run *calibration,
                                           struct transfer *transfer,
                                           uint64_t last_bytes)
{
    struct device_session *session = &calibration->session;
    enum tandem_status status;

    step_begin(calibration, WEIGHT_TRANSFER, transfer->curve);
    transfer->memory = memory_alloc(calibration, transfer->pinned, last_bytes);
    if (transfer->memory == NULL) {
        calibration_skip(calibration, transfer->curve);
        step_end(calibration, TANDEM_OK);
        return TANDEM_OK;
    }
    status = device_session_buffer(session, last_bytes, 0, &transfer->buffer);
    if (status == TANDEM_OK)
        status = transfer_sizes(calibration, transfer, last_bytes);
    if (transfer->buffer != NULL)
        session->backend->free(transfer->buffer);
    memory_free(calibration, transfer->pinned, transfer->memory);
    step_end(calibration, status);
    return status;
}

enum tandem_status measure_transfers(struct calibration_run *calibration)
{
    struct transfer transfers[] = {
        {"upload", true, false, NULL, NULL},
        {"download", false, false, NULL, NULL},
        {"upload_pinned", true, true, NULL, NULL},
        {"download_pinned", false, true, NULL, NULL},
    };
    uint64_t last_bytes = calibration->quick ? LAST_BYTES / 4 : LAST_BYTES;
    enum tandem_status status = TANDEM_OK;

    while (last_bytes > calibration->max_bytes / 4 && last_bytes > FIRST_BYTES)
        last_bytes /= GROWTH;
    for (size_t i = 0; i < 4 && status == TANDEM_OK; i++)
        status = measure_transfer(calibration, &transfers[i], last_bytes);
    return status;
}
