/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cumulative sums over each axis, with and without the switches exclusive and
 * reverse.
 */
#include "element_value.h"
#include "row_case.h"
#include "tolerance.h"

#include <math.h>

/* A partial sum may leave the range of f32 above this sum of magnitudes. */
#define MAX_MAGNITUDE 0x1p127

/* ---- reference ---- */

/* Sums of the elements so far: of x, |x|, and the finite |x|. */
struct totals {
    long double sum, magnitude, finite;
};

/*
 * Sums up one line. first: the element where the sum starts. step: the distance
 * of its elements, which is negative if the sum runs backwards.
 */
static void line_sum(const struct call *call, const struct dense *in,
                     int64_t first, int64_t step, int64_t n,
                     struct expected *out)
{
    const double t = call->row->tolerance + reference_log2(n);
    struct totals now = {0};

    for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i * step;
        const double x = dense_real(in, at);
        const struct totals before = now;

        now.sum += x;
        now.magnitude += fabs(x);
        now.finite += isfinite(x) ? fabs(x) : 0.0;
        const struct totals *totals = call->ints[1] != 0 ? &before : &now;
        out->real[at] = (double)totals->sum;
        out->tolerance[at] = t * TOLERANCE_2EPS * (double)totals->magnitude;
        if (totals->finite > (long double)MAX_MAGNITUDE)
            out->unspecified[at] = UNSPECIFIED_UNLESS_NAN;
    }
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const int64_t axis = axis_from_start(call->ints[0], in->rank);
    const int64_t n = in->shape[axis];
    const int64_t inner =
        shape_count(in->rank - (uint32_t)axis - 1, &in->shape[axis + 1]);

    expected_init(out, EXPECTED_REAL, in->elements);
    expected_allow_unspecified(out);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t line = 0; n > 0 && line < in->elements / n; line++) {
        int64_t start = line / inner * n * inner + line % inner;

        if (call->ints[2] != 0)
            line_sum(call, in, start + (n - 1) * inner, -inner, n, out);
        else
            line_sum(call, in, start, inner, n, out);
    }
}

/* ---- cases ---- */

/* Both switches, and values of one sign, whose rounding errors add up. */
static void switches_run(struct suite *suite, const struct op_row *row,
                         int64_t n)
{
    const struct shape shape = S(3, n);

    for (int64_t i = 0; i < 4; i++) {
        struct call *call = call_begin(
            suite, row, "equal values [3,%d] exclusive %d reverse %d", (int)n,
            (int)i & 1, (int)i >> 1);

        if (call == NULL)
            continue;
        call->ints[0] = 1;
        call->ints[1] = i & 1;
        call->ints[2] = i >> 1;
        call_operand(call, 0, TANDEM_F32, &shape, DENSE);
        for (int64_t k = 0; k < call->operands[0].elements; k++)
            operand_set(&call->operands[0], k, bits_from_float(0.1f));
        call_operand(call, 1, TANDEM_F32, &shape, DENSE);
        call_end(suite, call);
    }
}

static void cases(struct suite *suite, const struct op_row *row)
{
    static const struct single_special special = {.keeps_shape = true,
                                                  .out_dtype = TANDEM_F32};

    single_specials_run(suite, row, &special);
    switches_run(suite, row, 13);
    switches_run(suite, row, 20001);
}

/* ---- invalid calls ---- */

#define CUMSUM_MISTAKES(X)                                                     \
    X(cumsum_axis_large, CUMSUM, "an axis too large", 0, p->ints[0] = 2)       \
    X(cumsum_axis_negative, CUMSUM, "an axis too small", 0, p->ints[0] = -3)   \
    X(cumsum_exclusive, CUMSUM, "exclusive 2", 0, p->ints[1] = 2)              \
    X(cumsum_reverse, CUMSUM, "reverse -1", 0, p->ints[2] = -1)                \
    X(cumsum_ints_few, CUMSUM, "no reverse", 0, p->op.int_count--)             \
    X(cumsum_output_differs, CUMSUM, "another output shape", 0,                \
      p->outs[0].shape[0] = 2)
MISTAKE_TABLE(cumsum_mistakes, CUMSUM_MISTAKES)

const struct suite_class suite_cumsum = {
    .cases = cases,
    .reference = reference,
    .draw = row_draw_call,
    .draw_invalid_attribute = row_draw_invalid_attribute,
    .weight = 2,
    CLASS_MISTAKES(cumsum_mistakes),
};
