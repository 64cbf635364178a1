/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_norm, instance_norm and group_norm: short and long groups, strides,
 * large means, special values, values of all magnitudes.
 */
#include "element_value.h"
#include "norm.h"
#include "tolerance.h"

#include <math.h>

/* ---- reference ---- */

static int64_t groups_of(const struct call *call)
{
    return call->row->id == TANDEM_OP_GROUP_NORM
               ? call->ints[0]
               : call->operands[0].desc.shape[1];
}

static void batch_reference(const struct call *call, const struct dense *in,
                            struct expected *out)
{
    const double epsilon = (double)(float)reference_epsilon(call->floats[0]);
    const int64_t channels = in->shape[1];
    const int64_t spatial = shape_count(in->rank - 2, &in->shape[2]);

    expected_allow_unspecified(out);
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t c = i / spatial % channels;
        double x = dense_real(&in[0], i), mean = dense_real(&in[3], c);
        double scale = dense_real(&in[1], c), bias = dense_real(&in[2], c);
        double variance = dense_real(&in[4], c);
        long double divisor = sqrtl((long double)variance + epsilon);
        long double size = fabs(scale) * ((long double)fabs(x) + fabs(mean));

        out->real[i] =
            (double)(((long double)x - mean) / divisor * scale + bias);
        out->tolerance[i] = call->row->tolerance * TOLERANCE_2EPS *
                            (double)(size / divisor + fabs(bias));
        out->tolerance[i] +=
            reference_flushed(bias) +
            (double)((reference_flushed(scale) * fabsl(x - mean) +
                      fabs(scale) *
                          (reference_flushed(x) + reference_flushed(mean))) /
                     divisor);
        if (variance < 0 ||
            (reference_flushed(variance) > 0 && epsilon < 0x1p-110))
            out->unspecified[i] = UNSPECIFIED;
    }
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    expected_init(out, EXPECTED_REAL, in->elements);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    if (in->elements == 0)
        return;
    if (call->row->id == TANDEM_OP_BATCH_NORM) {
        batch_reference(call, in, out);
        return;
    }
    const int64_t spatial = shape_count(in->rank - 2, &in->shape[2]);
    const int64_t count = in->shape[1] / groups_of(call) * spatial;

    expected_allow_unspecified(out);
    for (int64_t begin = 0; begin < in->elements; begin += count) {
        struct moments row =
            moments_of(in, begin, count, true, call->floats[0]);

        for (int64_t i = begin; i < begin + count; i++)
            norm_element(call, in, &row, i, i / spatial % in->shape[1], out);
    }
}

/* ---- cases ---- */

/* Makes the values of a variance valid. */
static void make_positive(struct operand *operand)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        double x = bits_real(TANDEM_F32, operand_get(operand, i));

        element_set(operand, i, fabs(x));
    }
}

/*
 * Adds the inputs after the first one. Scale and variance have the magnitude
 * `size`, bias and mean the magnitude `near`.
 */
static void parameters(struct call *call, int64_t channels,
                       enum operand_layout layout, const struct magnitude *size,
                       const struct magnitude *near)
{
    const struct shape shape = S(channels);

    for (uint32_t i = 1; i < call->inputs; i++) {
        struct operand *operand =
            call_operand(call, i, TANDEM_F32, &shape, layout);

        operand_fill_magnitude(operand, call->random,
                               i == 2 || i == 3 ? near : size, false);
        if (i == 4)
            make_positive(operand);
    }
}

static const struct magnitude_form {
    struct shape shape;
    int64_t groups;
    enum operand_layout layout;
} magnitude_forms[] = {
    {S(2, 6, 3, 5), 2, DENSE},  {S(2, 8, 16, 12), 2, DENSE},
    {S(1, 4, 9001), 2, DENSE},  {S(2, 3, 40004), 3, DENSE},
    {S(2, 12, 4), 3, DENSE},    {S(2, 12, 5, 4), 3, CHANNELS_LAST},
    {S(2, 4, 5, 6, 7), 2, ANY},
};

/* The values of x, and those of the other inputs, have these magnitudes. */
static void magnitude_run(struct suite *suite, const struct op_row *row,
                          const struct magnitude_form *form,
                          const struct magnitude *size,
                          const struct magnitude *scale,
                          const struct magnitude *bias, double epsilon)
{
    struct call *call =
        call_begin(suite, row, "magnitude %s by %s plus %s epsilon %g %s",
                   size->name, scale->name, bias->name, epsilon,
                   shape_text(form->shape.rank, form->shape.at));

    if (call == NULL)
        return;
    call->ints[0] = form->groups;
    call->floats[0] = epsilon;
    operand_fill_magnitude(
        call_operand(call, 0, TANDEM_F32, &form->shape, form->layout),
        call->random, size, random_once_in(call->random, 3));
    parameters(call, form->shape.at[1], form->layout == ANY ? ANY : DENSE,
               scale, bias);
    call_operand(call, call->inputs, TANDEM_F32, &form->shape, form->layout);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    static const double extremes[] = {0, 1e-5, 1e-30, 1e30, 3e38};
    static const struct magnitude one = {"1", -1, 0};
    const struct suite_options *options = suite->options;
    uint32_t next = (uint32_t)options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++)
        for (uint32_t k = 0; k < 4; k++, next++) {
            const struct magnitude *size = &magnitudes[i];
            const struct magnitude *scale =
                k == 0 ? &one : &magnitudes[(i * 5 * k + 11) % MAGNITUDES];
            const struct magnitude *bias = k < 2 ? scale : size;

            for (uint32_t f = 0; f < COUNT_OF(magnitude_forms); f++)
                if (options->full || f == next % COUNT_OF(magnitude_forms))
                    magnitude_run(suite, row, &magnitude_forms[f], size, scale,
                                  bias, extremes[(next * 3 + i) % 5]);
        }
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape shape;

    (void)block;
    shape_draw(&shape, random, 2, random_once_in(random, 3) ? 8 : 4);
    const struct shape channels = S(shape.at[1]);

    call->ints[0] =
        random_between(random, 1, shape.at[1] > 0 ? shape.at[1] : 1);
    while (shape.at[1] % call->ints[0] != 0)
        call->ints[0]--;
    images_draw(call, 0, &shape);
    for (uint32_t i = 1; i < call->inputs; i++)
        operand_draw(call, i, TANDEM_F32, &channels);
    images_draw(call, call->inputs, &shape);
}

/* A variance is positive. */
static bool fill(struct call *call, uint32_t input, const struct spread *spread)
{
    if (input != 4)
        return false;
    reals_fill(&call->operands[4], spread, call->random);
    make_positive(&call->operands[4]);
    return true;
}

static void draw_epsilon(struct call *call, const struct spread *spread)
{
    (void)spread;
    call->floats[0] = norm_epsilon_draw(call->random);
}

static bool draw_invalid_attribute(struct call *call)
{
    int64_t channels = call->operands[0].desc.shape[1];

    if (call->row->ints == 0)
        return false;
    call->ints[0] =
        channels == 0 ? 0 : invalid_number_draw(call->random, 1, channels);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    for (uint32_t i = 1; i < MISTAKE_OPERANDS; i++)
        mistaken_tensor_set(&p->ins[i], TANDEM_F32, 1, 4, 1);
    /* The variance is the mean. */
    p->in_pointers[4] = &p->ins[3];
    p->ints[0] = 2;
}

#define CHANNEL_NORM_MISTAKES(X)                                               \
    X(groups_zero, GROUP_NORM, "0 groups", 0, p->ints[0] = 0)                  \
    X(groups_negative, GROUP_NORM, "-2 groups", 0, p->ints[0] = -2)            \
    X(groups_three, GROUP_NORM, "3 groups of 4 channels", 0, p->ints[0] = 3)   \
    X(groups_many, GROUP_NORM, "8 groups of 4 channels", 0, p->ints[0] = 8)    \
    X(groups_least, GROUP_NORM, "-2^63 groups", 0, p->ints[0] = INT64_MIN)     \
    X(groups_missing, GROUP_NORM, "no number of groups", 0,                    \
      p->op.int_count = 0)                                                     \
    X(images_rank, INSTANCE_NORM, "rank 1", 0,                                 \
      p->ins[0].rank = p->outs[0].rank = 1)                                    \
    X(images_output, BATCH_NORM, "another output shape", 0,                    \
      p->outs[0].shape[0] = 2)                                                 \
    X(channel_scale, INSTANCE_NORM, "a scale of 3 channels", 0,                \
      p->ins[1].shape[0] = 3)                                                  \
    X(channel_bias, GROUP_NORM, "a bias of one element", 0,                    \
      p->ins[2].shape[0] = 1)                                                  \
    X(channel_variance, BATCH_NORM, "a variance of rank 0", 0,                 \
      p->ins[3].rank = 0)                                                      \
    X(channel_epsilon, BATCH_NORM, "no epsilon", 0, p->op.float_count = 0)

MISTAKE_TABLE(channel_norm_mistakes, CHANNEL_NORM_MISTAKES)

const struct suite_class suite_channel_norm = {
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = fill,
    .draw_attributes = draw_epsilon,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 3,
    .make_valid = make_valid,
    CLASS_MISTAKES(channel_norm_mistakes),
};
