/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax and log_softmax over each axis, softmax with cross-entropy and its
 * gradient.
 */
#include "element_value.h"
#include "row_case.h"
#include "slots.h"
#include "tolerance.h"

#include <math.h>

/* ---- reference ---- */

/* Returns e^(x - m) / sum, or its logarithm, for one element. */
static double softmax_value(bool logarithm, const struct slot *slot, double x)
{
    long double d = (long double)x - slot->max;

    if (slot->nan || isinf(slot->max))
        return (double)NAN;
    if (logarithm)
        return (double)(d - logl(slot->exponentials));
    return (double)(expl(d) / slot->exponentials);
}

static void reference_softmax(const struct call *call, const struct dense *in,
                              struct expected *out)
{
    const struct op_row *row = call->row;
    const int64_t axis = axis_from_start(call->ints[0], in->rank);
    const bool logarithm = row->id == TANDEM_OP_LOG_SOFTMAX;
    struct slots slots;

    slots_init(&slots, call, in, 1u << axis, true);
    expected_init(out, EXPECTED_REAL, in->elements);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < in->elements; i++) {
        const struct slot *slot = &slots.all[slots.of_element[i]];
        double x = dense_real(in, i);
        double r = softmax_value(logarithm, slot, x);
        double t = row->tolerance + reference_log2(slot->count);

        out->real[i] = r;
        out->tolerance[i] =
            logarithm ? tolerance_log_sum_exp(row, slot, r)
                      : (t + fabs(x - slot->max)) * TOLERANCE_2EPS * fabs(r);
    }
    slots_finish(&slots);
}

static void loss_row(const struct call *call, const struct dense *in,
                     const struct slot *slot, int64_t row, struct expected *out)
{
    int64_t c = in->shape[1], label = dense_integer(&in[1], row);

    if (label < 0 || label >= c) {
        out->real[row] = (double)NAN;
        return;
    }
    out->real[row] =
        -softmax_value(true, slot, dense_real(in, row * c + label));
    out->tolerance[row] =
        tolerance_log_sum_exp(call->row, slot, out->real[row]);
}

static void loss_gradient(const struct call *call, const struct dense *in,
                          const struct slot *slot, int64_t i,
                          struct expected *out)
{
    int64_t c = in->shape[1], label = dense_integer(&in[1], i / c);
    double x = dense_real(in, i);
    double scale = reference_attribute(call->floats[0]);
    double p = softmax_value(false, slot, x);
    double hot = label == i % c ? 1.0 : 0.0;

    out->real[i] = scale * (p - hot);
    if (label < 0 || label >= c)
        out->real[i] = (double)NAN;
    out->tolerance[i] =
        call->row->tolerance * TOLERANCE_2EPS * fabs(scale) *
        ((p > 0.0 ? p * (1.0 + fabs(x - slot->max) / 16.0) : 0.0) + hot);
}

static void reference_cross_entropy(const struct call *call,
                                    const struct dense *in,
                                    struct expected *out)
{
    const bool gradient = call->row->id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    struct slots slots;

    slots_init(&slots, call, in, 2u, true);
    expected_init(out, EXPECTED_REAL, gradient ? in->elements : slots.count);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < out->elements; i++) {
        if (gradient)
            loss_gradient(call, in, &slots.all[slots.of_element[i]], i, out);
        else
            loss_row(call, in, &slots.all[i], i, out);
    }
    slots_finish(&slots);
}

/* ---- softmax ---- */

static void magnitude_run(struct suite *suite, const struct op_row *row,
                          const struct magnitude *size, int64_t n)
{
    const struct shape shape = S(7, n);
    struct call *call =
        call_begin(suite, row, "magnitude %s [7,%d]", size->name, (int)n);

    if (call == NULL)
        return;
    call->ints[0] = -1;
    operand_fill_magnitude(call_operand(call, 0, TANDEM_F32, &shape, DENSE),
                           call->random, size, false);
    call_operand(call, 1, TANDEM_F32, &shape, DENSE);
    call_end(suite, call);
}

/*
 * Rows in which `length` elements from `first` on are -infinity: parts of the
 * size of a vector, of an iteration of a work-group, or of a split row.
 */
static void masked_run(struct suite *suite, const struct op_row *row, int64_t n,
                       int64_t first, int64_t length)
{
    const struct shape shape = S(1, n);
    struct call *call = call_begin(suite, row, "[1,%d] without %d from %d on",
                                   (int)n, (int)length, (int)first);

    if (call == NULL)
        return;
    call->ints[0] = 1;
    call_operand(call, 0, TANDEM_F32, &shape, OFFSET);
    for (int64_t i = 0; i < n; i++)
        element_set(&call->operands[0], i,
                    i >= first && i < first + length
                        ? (double)-INFINITY
                        : (double)(i * 7 % 13) - 5.5);
    call_operand(call, 1, TANDEM_F32, &shape, OFFSET);
    call_end(suite, call);
}

static void masked_rows_run(struct suite *suite, const struct op_row *row)
{
    static const int64_t counts[] = {3858, 40000, 40001};
    static const int64_t lengths[] = {1,    4,     37,    1024, 4096,
                                      5000, 16384, 20480, 39000};

    for (uint32_t i = 0; i < COUNT_OF(counts) * COUNT_OF(lengths); i++) {
        const int64_t n = counts[i / COUNT_OF(lengths)];
        const int64_t length = lengths[i % COUNT_OF(lengths)];
        const int64_t rest = n - length;

        if (rest <= 0 ||
            (suite->options->smoke && (suite->options->seed + i) % 4 != 0))
            continue;
        masked_run(suite, row, n, 0, length);
        masked_run(suite, row, n, rest, length);
        masked_run(suite, row, n, rest / 2, length);
    }
}

static void softmax_cases(struct suite *suite, const struct op_row *row)
{
    static const struct single_special special = {.keeps_shape = true,
                                                  .out_dtype = TANDEM_F32};

    single_specials_run(suite, row, &special);
    for (uint32_t k = 0; k < MAGNITUDES; k++)
        magnitude_run(suite, row, &magnitudes[k], k % 2 != 0 ? 100 : 10);
    masked_rows_run(suite, row);
}

/* ---- cross-entropy ---- */

/*
 * Logits down to -width: most probabilities are below the range of f32, and
 * the scale brings the results back into the range.
 */
static void loss_magnitude_run(struct suite *suite, const struct op_row *row,
                               double scale, double width, int64_t n)
{
    const struct shape shape = S(5, n), labels = S(5);
    const bool gradient = row->id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    struct call *call = call_begin(suite, row, "magnitude %g, width %g [5,%d]",
                                   scale, width, (int)n);

    if (call == NULL)
        return;
    call->floats[0] = scale;
    call_operand(call, 0, TANDEM_F32, &shape, DENSE);
    for (int64_t i = 0; i < call->operands[0].elements; i++)
        element_set(&call->operands[0], i,
                    i % n == 0 ? 0.0
                               : random_uniform(call->random, -width, 0.0));
    call_operand(call, 1, TANDEM_I32, &labels, DENSE);
    for (int64_t i = 0; i < labels.at[0]; i++)
        operand_set(&call->operands[1], i,
                    (uint64_t)random_between(call->random, 0, n - 1));
    call_operand(call, 2, TANDEM_F32, gradient ? &shape : &labels, DENSE);
    call_end(suite, call);
}

static void cross_entropy_cases(struct suite *suite, const struct op_row *row)
{
    static const double scales[] = {1, 1e10, -1e30, 3e38, 1e-30, 1e39, 1e-46};
    static const double widths[] = {100, 170, 250};
    static const int64_t classes[] = {10, 100, 1021, 40004};
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < COUNT_OF(scales); i++)
        for (uint32_t k = 0; k < COUNT_OF(widths); k++, next++)
            for (uint32_t c = 0; c < COUNT_OF(classes); c++)
                if (suite->options->full || c == next % COUNT_OF(classes))
                    loss_magnitude_run(suite, row, scales[i], widths[k],
                                       classes[c]);
}

/* ---- random calls ---- */

static void draw_loss(struct call *call, const struct block *block)
{
    struct shape logits, labels = {.rank = 1};

    (void)block;
    shape_draw(&logits, call->random, 2, 2);
    labels.at[0] = logits.at[0];
    operand_draw(call, 0, TANDEM_F32, &logits);
    operand_draw(call, 1, index_dtype_draw(call->random), &labels);
    operand_draw(call, 2, TANDEM_F32,
                 call->row->id == TANDEM_OP_CROSS_ENTROPY ? &labels : &logits);
}

static bool fill_labels(struct call *call, uint32_t input,
                        const struct spread *spread)
{
    struct operand *labels = &call->operands[1];
    bool outside = random_once_in(call->random, 3);

    (void)spread;
    for (int64_t i = 0; input == 1 && i < labels->elements; i++) {
        int64_t label = index_draw(
            call->random, call->operands[0].desc.shape[1], false, outside);

        operand_set(labels, i, bits_from_integer(labels->desc.dtype, label));
    }
    return input == 1;
}

static void draw_scale(struct call *call, const struct spread *spread)
{
    (void)spread;
    if (call->row->id != TANDEM_OP_CROSS_ENTROPY_GRAD)
        return;
    call->floats[0] =
        random_once_in(call->random, 3)
            ? (double)random_wide(call->random)
            : (double)(float)random_uniform(call->random, -1.0, 1.0);
}

/* ---- invalid calls ---- */

static void make_valid_loss(struct mistaken_call *p)
{
    mistaken_tensor_set(&p->ins[1], TANDEM_I32, 1, 3, 0);
    if (p->row->id == TANDEM_OP_CROSS_ENTROPY)
        mistaken_tensor_set(&p->outs[0], TANDEM_F32, 1, 3, 0);
}

#define SOFTMAX_MISTAKES(X)                                                    \
    X(softmax_axis_large, SOFTMAX, "an axis too large", 0, p->ints[0] = 2)     \
    X(softmax_axis_negative, SOFTMAX, "an axis too small", 0, p->ints[0] = -3) \
    X(softmax_ints_few, SOFTMAX, "no axis", 0, p->op.int_count--)              \
    X(softmax_output_differs, SOFTMAX, "another output shape", 0,              \
      p->outs[0].shape[0] = 2)
MISTAKE_TABLE(softmax_mistakes, SOFTMAX_MISTAKES)

#define CROSS_ENTROPY_MISTAKES(X)                                              \
    X(cross_entropy_dtype_labels, CROSS_ENTROPY, "labels of f32", MAYBE_LATER, \
      p->ins[1].dtype = TANDEM_F32)                                            \
    X(cross_entropy_output_differs, CROSS_ENTROPY, "another output shape", 0,  \
      p->outs[0].shape[0] = 2)
MISTAKE_TABLE(cross_entropy_mistakes, CROSS_ENTROPY_MISTAKES)

/* ---- the classes ---- */

const struct suite_class suite_softmax = {
    .cases = softmax_cases,
    .reference = reference_softmax,
    .draw = row_draw_call,
    .draw_invalid_attribute = row_draw_invalid_attribute,
    .weight = 4,
    CLASS_MISTAKES(softmax_mistakes),
};

const struct suite_class suite_cross_entropy = {
    .cases = cross_entropy_cases,
    .reference = reference_cross_entropy,
    .draw = draw_loss,
    .fill = fill_labels,
    .draw_attributes = draw_scale,
    .weight = 2,
    .make_valid = make_valid_loss,
    CLASS_MISTAKES(cross_entropy_mistakes),
};
