/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cumulative sums over each axis, with and without the switches exclusive and
 * reverse.
 */
#include "element_value.h"
#include "row_case.h"

#include <math.h>

/* A partial sum may leave the range of f32 above this sum of magnitudes. */
#define MAX_MAGNITUDE 0x1p127

static const struct row_form forms[] = {
    {"[1]", SOME, S(1), DENSE, DENSE, DENSE, 1, 0},
    {"[2]", SOME, S(2), DENSE, DENSE, DENSE, 5, 0},
    {"[16]", SOME, S(16), DENSE, DENSE, DENSE, 1, 0},
    {"[1021]", ALWAYS, S(1021), DENSE, DENSE, DENSE, 1, 0},
    {"[70001]", ALWAYS, S(70001), DENSE, DENSE, DENSE, 1, 0},
    {"[3,40004]", ALWAYS, S(3, 40004), DENSE, DENSE, DENSE, 1, 0},
    {"far [2,33000]", ALWAYS, S(2, 33000), DENSE, DENSE, DENSE, 1, 1000},
    {"[20,300]", SOME, S(20, 300), DENSE, DENSE, DENSE, 1, 0},
    {"[4,3858]", SOME, S(4, 3858), DENSE, DENSE, DENSE, 1, 0},
    {"[128,10]", ALWAYS, S(128, 10), DENSE, DENSE, DENSE, 1, 0},
    {"[3001,3]", SOME, S(3001, 3), DENSE, DENSE, DENSE, 1, 0},
    {"[5,1]", SOME, S(5, 1), DENSE, DENSE, DENSE, 1, 0},
    {"[1,5]", SOME, S(1, 5), DENSE, DENSE, DENSE, 1, 0},
    {"huge [9,40]", ALWAYS, S(9, 40), DENSE, DENSE, DENSE, 1e37, 0},
    {"specials [64,7]", ALWAYS, S(64, 7), DENSE, DENSE, DENSE, 0, 0},
    {"specials [3,400]", ALWAYS, S(3, 400), DENSE, DENSE, DENSE, 0, 0},
    {"specials [2,40000]", SOME, S(2, 40000), DENSE, DENSE, DENSE, 0, 0},
    {"[4,9,13]", SOME, S(4, 9, 13), DENSE, DENSE, DENSE, 1, 0},
    {"[2,600,36]", SOME, S(2, 600, 36), DENSE, DENSE, DENSE, 1, 0},
    {"offset [7,31]", SOME, S(7, 31), OFFSET, DENSE, OFFSET, 1, 0},
    {"padded [9,23]", SOME, S(9, 23), PADDED, DENSE, PADDED, 1, 0},
    {"transposed [19,21]", SOME, S(19, 21), REVERSED, DENSE, DENSE, 1, 0},
    {"negative [12,34]", SOME, S(12, 34), NEGATIVE, DENSE, NEGATIVE, 1, 0},
    {"any [5,6,7]", ALWAYS, S(5, 6, 7), ANY, DENSE, ANY, 1, 0},
    {"any [2,3,4,2,3]", SOME, S(2, 3, 4, 2, 3), ANY, DENSE, ANY, 1, 0},
    {"rank 8", SOME, S(2, 1, 3, 2, 2, 1, 2, 2), ANY, DENSE, ANY, 1, 0},
    {"zero [8,9]", SOME, S(8, 9), REPEATED, DENSE, DENSE, 1, 0},
    {"empty [0,4]", SOME, S(0, 4), DENSE, DENSE, DENSE, 1, 0},
    {"empty [4,0]", SOME, S(4, 0), DENSE, DENSE, DENSE, 1, 0},
    {"long [3,300007]", FULL, S(3, 300007), DENSE, DENSE, DENSE, 1, 0},
    {"many [100003,7]", FULL, S(100003, 7), DENSE, DENSE, DENSE, 1, 0},
};

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
        out->tolerance[at] = t * REFERENCE_2EPS * (double)totals->magnitude;
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
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t line = 0; n > 0 && line < in->elements / n; line++) {
        int64_t start = line / inner * n * inner + line % inner;

        if (call->ints[2] != 0)
            line_sum(call, in, start + (n - 1) * inner, -inner, n, out);
        else
            line_sum(call, in, start, inner, n, out);
    }
}

/* ---- cases ---- */

static void values_fill(struct operand *operand, struct random *random,
                        double scale, double shift)
{
    if (scale != 0.0)
        operand_fill_normal(operand, random, scale, shift);
    else
        operand_fill_special(operand, random, 100);
}

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

    row_forms_run(suite, row, forms, COUNT_OF(forms), values_fill);
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
