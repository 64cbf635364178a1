/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures one curve for each cost class: the time of a representative operator
 * over the bytes that it reads and writes.  Child process only.
 */
#include <config.h>

#include "../common/clock.h"
#include "../common/statistics.h"
#include "calibration_timing.h"
#include "representative_op.h"

/* Sizes up to this one are measured even if the time is used up. */
#define ALWAYS_ELEMENTS (INT64_C(1) << 16)
#define LATE_GROWTH 16 /* growth of sizes after compile_deadline_ns */
#define LONG_ROWS                                                              \
    (INT64_C(1) << 10) /* all rows of larger sizes have one length */
/* A compiler that takes longer than this is slow; then only one row length is
 * measured. */
#define SLOW_COMPILE_NS (NS_PER_S / 2)

/* Measurement of a curve with one operator. */
struct curve_run {
    struct calibration_run *calibration;
    const struct representative_op *representative;
    const char *curve;
    int64_t growth;
    double expected_ns; /* of one launch of the next size; 0 if unknown */
    uint32_t points;
    bool more; /* the next size fits into the time left */
};

/* Returns true if the next size, with its buffers, fits into the time left. */
static bool size_fits(const struct curve_run *run,
                      const struct resident_op *last,
                      const struct timing *timing)
{
    double growth = (double)run->growth;
    double launch = timing->ns * growth;
    double batch = (double)run->calibration->plan.batch_ns;
    double needed = (double)last->setup_ns * growth + 3 * launch +
                    (launch > batch ? launch : 2 * batch);

    return needed < (double)step_left_ns(run->calibration);
}

static enum tandem_status resident_op_measure(struct curve_run *run,
                                              struct resident_op *work,
                                              int64_t elements)
{
    struct calibration_run *calibration = run->calibration;
    struct timing timing;
    enum tandem_status status = calibration_time(
        calibration, work, run->points == 0, run->expected_ns, &timing);

    if (status != TANDEM_OK)
        return status;
    calibration_add_point(calibration, run->curve, work->c.bytes, timing.ns);
    run->points++;
    run->expected_ns = timing.ns * (double)run->growth;
    run->more &= size_fits(run, work, &timing) || elements < ALWAYS_ELEMENTS;
    return TANDEM_OK;
}

static enum tandem_status measure_size(struct curve_run *run, int64_t elements)
{
    struct calibration_run *calibration = run->calibration;
    struct resident_op work;
    enum tandem_status status = representative_op_create(
        run->representative, &calibration->session, elements, &work);

    run->more =
        work.c.bytes * (double)run->growth <= (double)calibration->max_bytes;
    /* The device may support other sizes. */
    if (status == TANDEM_UNSUPPORTED)
        return TANDEM_OK;
    if (status == TANDEM_OK)
        status = resident_op_measure(run, &work, elements);
    if (status != TANDEM_OK) {
        run->more = false;
        status = calibration_op_failed(calibration, run->curve, status);
    }
    resident_op_destroy(&work);
    return status;
}

static bool compiles_slowly(const struct calibration_run *calibration)
{
    return calibration->compile_count > 0 &&
           calibration->compile_ns[0] > (double)SLOW_COMPILE_NS;
}

static enum tandem_status measure_sizes(struct curve_run *run)
{
    struct calibration_run *calibration = run->calibration;
    enum tandem_status status = TANDEM_OK;
    int64_t elements = SAMPLE_FIRST;

    if (representative_op_has_rows(run->representative) && calibration->quick &&
        compiles_slowly(calibration))
        elements = LONG_ROWS;
    do {
        status = measure_size(run, elements);
        elements *=
            calibration_is_late(calibration) ? LATE_GROWTH : run->growth;
    } while (elements <= SAMPLE_LAST && run->more && status == TANDEM_OK);
    return status;
}

/* Measures the curve with the first operator of the class that the device
 * supports, or with the next one if a launch fails. */
static enum tandem_status measure_curve(struct calibration_run *calibration,
                                        uint32_t cost_class)
{
    struct representative_op representative = {.cost_class = cost_class};
    struct curve_run run = {.calibration = calibration,
                            .representative = &representative,
                            .curve = cost_class_curve(cost_class)};
    enum tandem_status status = TANDEM_OK;

    /* The size of a square matrix grows by 4.  For the others, a step greater
     * than 2 would miss the size at which a device uses all its cores. */
    run.growth = cost_class == TANDEM_COST_STRIDED ? 4 : 2;
    step_begin(calibration, WEIGHT_CURVE, run.curve);
    while (status == TANDEM_OK && run.points == 0 &&
           representative_op_next(&representative))
        if (representative_op_is_supported(&representative,
                                           &calibration->session) != 0)
            status = measure_sizes(&run);
    if (status == TANDEM_OK)
        calibration_set_operator(calibration, run.curve,
                                 run.points > 0 ? representative.info->name
                                                : NULL);
    step_end(calibration, status);
    return status;
}

enum tandem_status measure_curves(struct calibration_run *calibration)
{
    enum tandem_status status = TANDEM_OK;

    for (uint32_t c = 0; c < TANDEM_COST_CLASS_COUNT; c++)
        if (c != TANDEM_COST_GEMM && status == TANDEM_OK)
            status = measure_curve(calibration, c);
    if (status == TANDEM_OK && calibration->compile_count > 0 &&
        (calibration->session.info.caps & TANDEM_CAP_JIT_COMPILATION) != 0)
        calibration_add_scalar(
            calibration, "compile",
            quantile(calibration->compile_ns, calibration->compile_count, 0.5));
    child_partial(calibration->link, calibration->result);
    return status;
}
