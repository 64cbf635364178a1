/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the costs that do not depend on the size: launch, wait, and
 * allocation from the pool.  Child process only.
 */
#include <config.h>

#include "../common/clock.h"
#include "../common/statistics.h"
#include "calibration_timing.h"
#include "representative_op.h"

#define SAMPLES 33
#define LAUNCHES 256 /* maximum number of launches in a sample */
#define SAMPLE_NS (10.0 * NS_PER_MS)
#define ALLOCS 64
#define ALLOC_BYTES (UINT64_C(1) << 20)

/* Measures the host time of a launch, without the wait.  each_ns is the time of
 * one launch; the longer it is, the fewer launches are in a sample. */
static enum tandem_status time_launch(struct resident_op *work, double each_ns,
                                      double *out_ns)
{
    enum tandem_status status = TANDEM_OK;
    double samples[SAMPLES], launches = SAMPLE_NS / (each_ns + 1);
    uint32_t count;

    launches = launches < 1 ? 1 : launches > LAUNCHES ? LAUNCHES : launches;
    for (count = 0; count < SAMPLES && status == TANDEM_OK; count++) {
        uint64_t start = clock_now_ns();

        for (int i = 0; i < (int)launches && status == TANDEM_OK; i++)
            status = resident_op_launch(work);
        samples[count] = (double)(clock_now_ns() - start) / (int)launches;
        if (status == TANDEM_OK)
            status = device_session_synchronize(work->session);
    }
    *out_ns = quantile(samples, count, 0.5);
    return status;
}

static enum tandem_status time_wait(struct resident_op *work, double launch_ns,
                                    double *out_ns)
{
    enum tandem_status status = TANDEM_OK;
    double samples[SAMPLES];
    uint32_t count;

    for (count = 0; count < SAMPLES && status == TANDEM_OK; count++) {
        uint64_t ns;

        status = resident_op_stream(work, 1, &ns);
        samples[count] = (double)ns - launch_ns;
    }
    *out_ns = quantile(samples, count, 0.5);
    *out_ns = *out_ns > 0 ? *out_ns : 0;
    return status;
}

static enum tandem_status measure_wait(struct calibration_run *calibration,
                                       struct resident_op *work)
{
    struct timing timing;
    double launch, wait;
    enum tandem_status status =
        calibration_time(calibration, work, true, 0, &timing);

    if (status == TANDEM_OK)
        status = time_launch(work, timing.ns, &launch);
    if (status == TANDEM_OK)
        status = time_wait(work, launch, &wait);
    if (status != TANDEM_OK)
        return status;
    calibration_add_scalar(calibration, "launch", launch);
    calibration_add_scalar(calibration, "sync", wait);
    calibration_set_operator(calibration, "launch", work->c.info->name);
    return TANDEM_OK;
}

static enum tandem_status measure_launch(struct calibration_run *calibration)
{
    struct resident_op work;
    enum tandem_status status =
        representative_op_create_smallest(&calibration->session, &work);

    if (status == TANDEM_UNSUPPORTED) {
        calibration_set_operator(calibration, "launch", NULL);
        return TANDEM_OK;
    }
    if (status == TANDEM_OK)
        status = measure_wait(calibration, &work);
    if (status != TANDEM_OK)
        status = calibration_op_failed(calibration, "launch", status);
    resident_op_destroy(&work);
    return status;
}

static enum tandem_status measure_alloc(struct calibration_run *calibration)
{
    const struct tandem_backend *backend = calibration->session.backend;
    double samples[SAMPLES];

    for (uint32_t representative = 0; representative < SAMPLES;
         representative++) {
        uint64_t start = clock_now_ns();

        for (int i = 0; i < ALLOCS; i++) {
            struct tandem_buffer *buffer;
            enum tandem_status status =
                backend->alloc(calibration->session.device,
                               TANDEM_BYTES(ALLOC_BYTES), &buffer);

            if (status != TANDEM_OK)
                return status;
            backend->free(buffer);
        }
        samples[representative] = (double)(clock_now_ns() - start) / ALLOCS;
    }
    calibration_add_scalar(calibration, "alloc",
                           quantile(samples, SAMPLES, 0.5));
    return TANDEM_OK;
}

enum tandem_status measure_scalars(struct calibration_run *calibration)
{
    enum tandem_status status;

    step_begin(calibration, WEIGHT_SCALARS, PART_SCALARS);
    status = measure_alloc(calibration);
    if (status == TANDEM_OK)
        status = measure_launch(calibration);
    step_end(calibration, status);
    return status;
}
