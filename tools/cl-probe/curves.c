/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One curve for each cost class: time over bytes read and written, of an
 * operator that stands for the class.  Child process.
 */
#include <config.h>

#include "../common/clock.h"
#include "../common/statistics.h"
#include "measure.h"

#define FIRST_ELEMENTS (INT64_C(1) << 6)
#define LAST_ELEMENTS (INT64_C(1) << 26)
/* Up to here whatever the time. */
#define ALWAYS_ELEMENTS (INT64_C(1) << 16)
#define ROW 1024       /* of reductions, softmax and norms */
#define LATE_GROWTH 16 /* when compilers took long: sizes may need others */
#define SHORT_ROW 64   /* no more than FIRST_ELEMENTS */
/* From here a compiler is slow: one length of row must do. */
#define SLOW_COMPILE_NS (NS_PER_S / 2)

enum curve_shape { SHAPE_FLAT, SHAPE_ROWS, SHAPE_SQUARE, SHAPE_SHORT_ROWS };

static const struct curve_row {
    const char *curve, *op;
    enum curve_shape shape;
} curve_rows[] = {
    {"elementwise", "add", SHAPE_FLAT},
    {"exp", "exp", SHAPE_FLAT},
    {"heavy", "gelu", SHAPE_FLAT},
    {"reduce", "reduce_sum", SHAPE_ROWS},
    {"softmax", "softmax", SHAPE_ROWS},
    {"norm", "layer_norm", SHAPE_ROWS},
    {"strided", "transpose", SHAPE_SQUARE},
    {"gather", "gather", SHAPE_SHORT_ROWS},
    {"optimizer", "adam", SHAPE_FLAT},
};

static uint32_t make_shape(enum curve_shape kind, int64_t elements,
                           int64_t shape[2])
{
    int64_t side = 1;

    switch (kind) {
    case SHAPE_FLAT:
        shape[0] = elements;
        return 1;
    case SHAPE_ROWS:
        /* Two lengths of row: each may be a kernel to be compiled. */
        shape[1] = elements < ROW ? SHORT_ROW : ROW;
        break;
    case SHAPE_SHORT_ROWS:
        shape[1] = SHORT_ROW;
        break;
    case SHAPE_SQUARE:
        while (side * side < elements)
            side *= 2;
        shape[1] = side;
        break;
    }
    shape[0] = elements / shape[1];
    return 2;
}

/* What the next size should take, buffers included, against the time left. */
static bool size_fits(const struct session *session, const struct work *last,
                      const struct timing *timing, int64_t growth)
{
    double launch = timing->ns * (double)growth;
    double batch = (double)session->plan.batch_ns;
    double needed = (double)last->setup_ns * (double)growth + 3 * launch +
                    (launch > batch ? launch : 2 * batch);

    return needed < (double)step_left_ns(session);
}

/* *out_more: a larger size may follow. */
static enum tandem_status measure_size(struct session *session,
                                       const struct curve_row *row,
                                       int64_t elements, int64_t growth,
                                       bool first, double *expected_ns,
                                       bool *out_more)
{
    struct work work;
    struct timing timing;
    int64_t shape[2] = {0, 1};
    uint32_t rank = make_shape(row->shape, elements, shape);
    enum tandem_status status =
        work_create(&work, &session->lane, row->op, rank, shape);

    *out_more = false;
    if (status == TANDEM_UNSUPPORTED || status == TANDEM_OUT_OF_MEMORY) {
        session_skip(session, row->curve);
        return TANDEM_OK;
    }
    if (status != TANDEM_OK)
        return status;
    status = session_time(session, &work, first, *expected_ns, &timing);
    if (status == TANDEM_OK) {
        session_point(session, row->curve, work.c.bytes, timing.ns);
        *expected_ns = timing.ns * (double)growth;
        *out_more = work.c.bytes * (double)growth <=
                        (double)session->max_bytes &&
                    (size_fits(session, &work, &timing, growth) ||
                     elements < ALWAYS_ELEMENTS);
    }
    work_destroy(&work);
    return status;
}

static bool compiles_slowly(const struct session *session)
{
    return session->compile_count > 0 &&
           session->compile_ns[0] > (double)SLOW_COMPILE_NS;
}

static enum tandem_status measure_curve(struct session *session,
                                        const struct curve_row *row)
{
    /* A transpose of a square grows by 4.  Coarser steps than 2 would miss
     * where a device begins to share work among its cores. */
    int64_t growth = row->shape == SHAPE_SQUARE ? 4 : 2;
    enum tandem_status status = TANDEM_OK;
    int64_t first = FIRST_ELEMENTS;
    double expected_ns = 0;
    bool more = true;

    if (row->shape == SHAPE_ROWS && session->quick && compiles_slowly(session))
        first = ROW;
    step_begin(session, WEIGHT_CURVE, row->curve);
    for (int64_t elements = first;
         elements <= LAST_ELEMENTS && more && status == TANDEM_OK;
         elements *= session_late(session) ? LATE_GROWTH : growth)
        status = measure_size(session, row, elements, growth,
                              elements == first, &expected_ns, &more);
    step_end(session);
    return status;
}

enum tandem_status measure_curves(struct session *session)
{
    enum tandem_status status = TANDEM_OK;

    for (size_t i = 0; i < sizeof curve_rows / sizeof curve_rows[0]; i++) {
        if (status != TANDEM_OK)
            return status;
        status = measure_curve(session, &curve_rows[i]);
    }
    if (status == TANDEM_OK && session->compile_count > 0 &&
        (session->lane.info.caps & TANDEM_CAP_COMPILES) != 0)
        session_scalar(session, "compile",
                       quantile(session->compile_ns, session->compile_count,
                                0.5));
    return status;
}
