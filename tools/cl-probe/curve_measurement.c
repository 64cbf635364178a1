/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One curve for each cost class: time over bytes read and written, of an
 * operator that stands for the class.  Child process.
 */
#include <config.h>

#include "../common/clock.h"
#include "../common/statistics.h"
#include "calibration_run.h"
#include "representative_op.h"

/* Up to here whatever the time. */
#define ALWAYS_ELEMENTS (INT64_C(1) << 16)
#define LATE_GROWTH 16 /* when compilers took long: sizes may need others */
#define LONG_ROWS (INT64_C(1) << 10) /* from here on rows are of one length */
/* From here a compiler is slow: one length of row must do. */
#define SLOW_COMPILE_NS (NS_PER_S / 2)

/* In the order of measuring. */
static const uint32_t classes[] = {
    TANDEM_COST_ELEMENTWISE,
    TANDEM_COST_TRANSCENDENTAL,
    TANDEM_COST_MULTI_TRANSCENDENTAL,
    TANDEM_COST_REDUCE,
    TANDEM_COST_SOFTMAX,
    TANDEM_COST_NORM,
    TANDEM_COST_STRIDED,
    TANDEM_COST_GATHER,
    TANDEM_COST_OPTIMIZER,
};

/* A curve being measured with one operator. */
struct curve_run {
    struct session *session;
    const struct sample *sample;
    const char *curve;
    int64_t growth;
    double expected_ns; /* of one launch of the next size; 0 unknown */
    uint32_t points;
    bool more; /* a larger size may follow */
};

/* What the next size should take, buffers included, against the time left. */
static bool size_fits(const struct curve_run *run, const struct work *last,
                      const struct timing *timing)
{
    double growth = (double)run->growth;
    double launch = timing->ns * growth;
    double batch = (double)run->session->plan.batch_ns;
    double needed = (double)last->setup_ns * growth + 3 * launch +
                    (launch > batch ? launch : 2 * batch);

    return needed < (double)step_left_ns(run->session);
}

static enum tandem_status work_measure(struct curve_run *run,
                                       struct work *work, int64_t elements)
{
    struct session *session = run->session;
    struct timing timing;
    enum tandem_status status = session_time(session, work, run->points == 0,
                                             run->expected_ns, &timing);

    if (status != TANDEM_OK)
        return status;
    session_point(session, run->curve, work->c.bytes, timing.ns);
    run->points++;
    run->expected_ns = timing.ns * (double)run->growth;
    run->more &= size_fits(run, work, &timing) || elements < ALWAYS_ELEMENTS;
    return TANDEM_OK;
}

static enum tandem_status measure_size(struct curve_run *run, int64_t elements)
{
    struct session *session = run->session;
    struct work work;
    enum tandem_status status =
        sample_create(run->sample, &session->lane, elements, &work);

    run->more = work.c.bytes * (double)run->growth <=
                (double)session->max_bytes;
    /* Of this size; others may be served. */
    if (status == TANDEM_UNSUPPORTED)
        return TANDEM_OK;
    if (status == TANDEM_OK)
        status = work_measure(run, &work, elements);
    if (status != TANDEM_OK) {
        run->more = false;
        status = session_failed(session, run->curve, status);
    }
    work_destroy(&work);
    return status;
}

static bool compiles_slowly(const struct session *session)
{
    return session->compile_count > 0 &&
           session->compile_ns[0] > (double)SLOW_COMPILE_NS;
}

static bool has_rows(uint32_t cost_class)
{
    return cost_class == TANDEM_COST_REDUCE ||
           cost_class == TANDEM_COST_SOFTMAX || cost_class == TANDEM_COST_NORM;
}

static enum tandem_status measure_sizes(struct curve_run *run)
{
    struct session *session = run->session;
    enum tandem_status status = TANDEM_OK;
    int64_t elements = SAMPLE_FIRST;

    if (has_rows(run->sample->cost_class) && session->quick &&
        compiles_slowly(session))
        elements = LONG_ROWS;
    do {
        status = measure_size(run, elements);
        elements *= session_late(session) ? LATE_GROWTH : run->growth;
    } while (elements <= SAMPLE_LAST && run->more && status == TANDEM_OK);
    return status;
}

/* With the first operator of the class that the device serves, and the next
 * where that one fails. */
static enum tandem_status measure_curve(struct session *session,
                                        uint32_t cost_class)
{
    struct sample sample = {.cost_class = cost_class};
    struct curve_run run = {.session = session,
                            .sample = &sample,
                            .curve = sample_curve(cost_class)};
    enum tandem_status status = TANDEM_OK;

    /* A square grows by 4.  Coarser steps than 2 would miss where a device
     * begins to share work among its cores. */
    run.growth = cost_class == TANDEM_COST_STRIDED ? 4 : 2;
    step_begin(session, WEIGHT_CURVE, run.curve);
    while (status == TANDEM_OK && run.points == 0 &&
           representative_op_next(&sample))
        if (sample_served(&sample, &session->lane) != 0)
            status = measure_sizes(&run);
    step_end(session);
    if (status == TANDEM_OK)
        session_measured(session, run.curve,
                         run.points > 0 ? sample.info->name : NULL);
    return status;
}

enum tandem_status measure_curves(struct session *session)
{
    enum tandem_status status = TANDEM_OK;

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (status != TANDEM_OK)
            return status;
        status = measure_curve(session, classes[i]);
    }
    if (status == TANDEM_OK && session->compile_count > 0 &&
        (session->lane.info.caps & TANDEM_CAP_JIT_COMPILATION) != 0)
        calibration_add_scalar(session, "compile",
                       quantile(session->compile_ns, session->compile_count,
                                0.5));
    return status;
}
