/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm and rms_norm over the last axes: short and long rows, strides,
 * large means, constant rows, special values, values of all magnitudes.
 */
#include "norm.h"

#include "element_value.h"
#include "row_case.h"
#include "tolerance.h"

#include <math.h>

/* ---- reference ---- */

struct moments moments_of(const struct dense *in, int64_t begin, int64_t count,
                          bool centered, double epsilon)
{
    struct moments row = {0, 0, 0};
    long double square = 0;

    for (int64_t i = begin; i < begin + count; i++) {
        row.mean += dense_real(in, i);
        row.magnitude += fabs(dense_real(in, i));
    }
    row.mean = centered ? row.mean / count : 0;
    row.magnitude /= count;
    for (int64_t i = begin; i < begin + count; i++) {
        long double d = dense_real(in, i) - row.mean;

        square += d * d;
    }
    row.divisor =
        sqrtl(square / count + (long double)(float)reference_epsilon(epsilon));
    return row;
}

/* Returns the error if a plugin takes h as 0, which it may if |h| < 2^-100. */
static double flushed_error(long double h, double scale)
{
    return h != 0 && fabsl(h) < 0x1p-100L ? (double)fabsl(h * scale) : 0.0;
}

void norm_element(const struct call *call, const struct dense *in,
                  const struct moments *row, int64_t i, int64_t within,
                  struct expected *out)
{
    double x = dense_real(&in[0], i);
    double scale = dense_real(&in[1], within);
    double bias = dense_real(&in[2], within);
    long double h = (x - row->mean) / row->divisor;
    long double size = (fabs(x) + row->magnitude) / row->divisor;

    out->real[i] = (double)(h * scale + bias);
    out->tolerance[i] =
        call->row->tolerance * TOLERANCE_2EPS *
        (double)(fabs(scale) * (1 + fabsl(h)) * size + fabs(bias));
    out->tolerance[i] += reference_flushed(bias) +
                         (double)(reference_flushed(scale) * fabsl(h) +
                                  fabs(scale) *
                                      (reference_flushed(x) +
                                       reference_flushed((double)row->mean)) /
                                      row->divisor);
    out->tolerance[i] += flushed_error(h, scale);
    /* The rounding error of the mean decides between 0 / 0 and x / 0, and
     * between 0 and another h, which an infinite scale multiplies. */
    if ((row->divisor == 0 && row->magnitude > 0) ||
        (isinf(scale) && isfinite(row->divisor)))
        out->unspecified[i] = UNSPECIFIED;
}

double norm_epsilon_draw(struct random *random)
{
    static const double usual[] = {1e-12, 1e-8, 1e-5, 1e-3, 0.5};
    static const double extremes[] = {0,     5e-324, 1e-46, 1e-40,
                                      1e-30, 1e30,   3e38,  1e300};

    return random_once_in(random, 3)
               ? extremes[random_below(random, COUNT_OF(extremes))]
               : usual[random_below(random, COUNT_OF(usual))];
}

static void rms_element(const struct call *call, const struct dense *in,
                        const struct moments *row, int64_t i, int64_t within,
                        struct expected *out)
{
    double scale = dense_real(&in[1], within);
    long double h = dense_real(in, i) / row->divisor;

    out->real[i] = (double)(h * scale);
    out->tolerance[i] =
        call->row->tolerance * TOLERANCE_2EPS * fabs(out->real[i]) +
        flushed_error(h, scale);
    if (isinf(flushed_error(h, scale)))
        out->unspecified[i] = UNSPECIFIED;
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    bool layer = call->row->id == TANDEM_OP_LAYER_NORM;
    const int64_t axis = axis_from_start(call->ints[0], in->rank);
    const int64_t count =
        shape_count(in->rank - (uint32_t)axis, &in->shape[axis]);

    expected_init(out, EXPECTED_REAL, in->elements);
    expected_allow_unspecified(out);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t begin = 0; begin < in->elements; begin += count) {
        struct moments row =
            moments_of(in, begin, count, layer, call->floats[0]);

        for (int64_t i = begin; i < begin + count; i++) {
            if (layer) {
                norm_element(call, in, &row, i, i - begin, out);
                continue;
            }
            rms_element(call, in, &row, i, i - begin, out);
        }
    }
}

/* ---- cases ---- */

/*
 * Rows of zeros, of one value, of size, of size and -size, of size and one NaN,
 * and of ordinary values.
 */
static void rows_fill(struct operand *operand, struct random *random,
                      int64_t count, float size)
{
    operand_fill_normal(operand, random, 1.0, 0.0);
    for (int64_t i = 0; i < operand->elements; i++) {
        const float values[] = {0.0f, 3.0f, size, i % 2 ? size : -size,
                                (i + 1) % count ? size : NAN};

        if (i / count < 5)
            operand_set(operand, i, bits_from_float(values[i / count]));
    }
}

/* Most values of epsilon are out of the range of f32. */
static void epsilon_run(struct suite *suite, const struct op_row *row,
                        double epsilon, int64_t count,
                        enum operand_layout layout)
{
    const struct shape shape = S(6, count);
    struct call *call = call_begin(suite, row, "epsilon %g [6,%d]%s", epsilon,
                                   (int)count, layout == DENSE ? "" : " any");
    struct operand *in;

    if (call == NULL)
        return;
    in = &call->operands[0];
    call->ints[0] = 1;
    call->floats[0] = epsilon;
    /* Without strides of 0, because rows differ. */
    operand_init(in, call->random, TANDEM_F32, 2, shape.at, layout, true);
    rows_fill(in, call->random, count, epsilon > 1.0 ? 1e18f : 1e-30f);
    row_parameters(call, 1, layout, NULL);
    call_operand(call, call->inputs, TANDEM_F32, &shape, layout);
    call_end(suite, call);
}

static void epsilons_run(struct suite *suite, const struct op_row *row)
{
    static const double epsilons[] = {1e-46, 1e-5, 5e-324, 1e-40, 1e300};
    static const int64_t counts[] = {7, 768, 1021, 33333, 40004};

    for (uint32_t i = 0; i < COUNT_OF(epsilons); i++)
        for (uint32_t k = 0; k < COUNT_OF(counts); k++)
            if (!suite->options->smoke || i < 2 || (i == 4 && k == 0))
                epsilon_run(suite, row, epsilons[i], counts[k], DENSE);
    epsilon_run(suite, row, 1e-46, 35, ANY);
}

static const struct magnitude_form {
    struct shape shape;
    int64_t axis;
    enum operand_layout layout;
} magnitude_forms[] = {
    {S(6, 10), -1, DENSE},    {S(4, 768), 1, DENSE},   {S(3, 1021), 1, DENSE},
    {S(2, 33333), -1, DENSE}, {S(2, 40004), 1, DENSE}, {S(64, 7), 1, DENSE},
    {S(5, 6, 7), 1, ANY},
};

static void magnitude_run(struct suite *suite, const struct op_row *row,
                          const struct magnitude_form *form,
                          const struct magnitude *size,
                          const struct magnitude *scale, double epsilon,
                          bool positive)
{
    struct call *call =
        call_begin(suite, row, "magnitude %s%s by %s epsilon %g %s",
                   positive ? "+" : "", size->name, scale->name, epsilon,
                   shape_text(form->shape.rank, form->shape.at));

    if (call == NULL)
        return;
    call->ints[0] = form->axis;
    call->floats[0] = epsilon;
    operand_fill_magnitude(
        call_operand(call, 0, TANDEM_F32, &form->shape, form->layout),
        call->random, size, positive);
    row_parameters(call, form->axis, form->layout, scale);
    call_operand(call, call->inputs, TANDEM_F32, &form->shape, form->layout);
    call_end(suite, call);
}

static void magnitudes_run(struct suite *suite, const struct op_row *row)
{
    static const struct magnitude one = {"1", -1, 0};
    static const double epsilons[] = {0, 1e-5, 0, 1e-30, 0, 1e30, 0};
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++) {
        const struct magnitude *scales[] = {
            &one, &magnitudes[MAGNITUDES - 1],
            &magnitudes[(i * 5 + 3) % MAGNITUDES]};

        for (uint32_t turn = 0; turn < COUNT_OF(scales); turn++, next++)
            for (uint32_t k = 0; k < COUNT_OF(magnitude_forms); k++)
                if (suite->options->full ||
                    k == next % COUNT_OF(magnitude_forms))
                    magnitude_run(suite, row, &magnitude_forms[k],
                                  &magnitudes[i], scales[turn],
                                  epsilons[(next * 3 + i) % 7],
                                  (i + next) % 3 == 0);
    }
}

static void cases(struct suite *suite, const struct op_row *row)
{
    static const struct single_special special = {
        .keeps_shape = true, .trailing_axes = true, .out_dtype = TANDEM_F32};

    epsilons_run(suite, row);
    single_specials_run(suite, row, &special);
    magnitudes_run(suite, row);
}

/* ---- random calls ---- */

static void draw_epsilon(struct call *call, const struct spread *spread)
{
    (void)spread;
    call->floats[0] = norm_epsilon_draw(call->random);
}

const struct suite_class suite_norm = {
    .cases = cases,
    .reference = reference,
    .draw = row_draw_call,
    .draw_attributes = draw_epsilon,
    .draw_invalid_attribute = row_draw_invalid_attribute,
    .weight = 4,
};
