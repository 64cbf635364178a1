/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and transposed convolutions over one to three spatial axes, with
 * strides, dilations, padding, groups, bias, residual and activation.
 */
#include "elementwise_reference.h"
#include "inputs.h"
#include "suite_class.h"
#include "tolerance.h"

#include <float.h>
#include <math.h>

#define SPATIAL 3

/* Integer attributes, and lists with one number per spatial axis. */
enum { GROUP, ACTIVATION, RESIDUAL, TABLE_INTS };
enum list { STRIDES, DILATIONS, BEGINS, ENDS, OUTPUT_PADDING };

/* ---- reference ---- */

static bool is_transpose(const struct op_row *row)
{
    return row->id == TANDEM_OP_CONV_TRANSPOSE;
}

static int64_t attribute_of(const struct call *call, enum list list,
                            uint32_t which)
{
    const uint32_t spatial = call->operands[0].desc.rank - 2;

    return call->ints[TABLE_INTS + (uint32_t)list * spatial + which];
}

static bool has_bias(const struct call *call)
{
    return call->inputs == (call->ints[RESIDUAL] != 0 ? 4 : 3);
}

/*
 * Returns the position that tap k of the window at output element `at` reads
 * along axis i, or -1 if that is padding.
 */
static int64_t position_of(const struct call *call, uint32_t i, int64_t length,
                           int64_t at, int64_t k)
{
    const int64_t stride = attribute_of(call, STRIDES, i);
    const int64_t shift = k * attribute_of(call, DILATIONS, i);
    const int64_t begin = attribute_of(call, BEGINS, i);
    int64_t position = at * stride + shift - begin;

    if (is_transpose(call->row)) {
        position = at + begin - shift;
        if (position % stride != 0)
            return -1;
        position /= stride;
    }
    return position >= 0 && position < length ? position : -1;
}

struct sum {
    double real, magnitude;
    double finite; /* The magnitude of the finite terms. */
    bool padding_meets_infinity;
};

static void term_add(struct sum *sum, double term)
{
    sum->real += term;
    sum->magnitude += fabs(term);
    if (isfinite(term))
        sum->finite += fabs(term);
}

/* Sums up the products of an output element: the index `at`. */
static struct sum products_sum(const struct call *call, const struct dense *in,
                               const int64_t *at, int64_t out_channels)
{
    const struct dense *x = &in[0], *weight = &in[1];
    const uint32_t spatial = x->rank - 2;
    const int64_t group = call->ints[GROUP];
    const int64_t channels = x->shape[1] / group, rows = out_channels / group;
    const int64_t first = at[1] / rows * channels;
    int64_t k[1 + SPATIAL] = {0}, lengths[1 + SPATIAL] = {channels};
    int64_t terms = channels;
    struct sum sum = {0};

    for (uint32_t i = 0; i < spatial; i++) {
        lengths[1 + i] = weight->shape[2 + i];
        terms *= weight->shape[2 + i];
    }
    for (int64_t n = 0; n < terms; n++) {
        const int64_t channel = first + k[0];
        int64_t from = at[0] * x->shape[1] + channel;
        int64_t tap = is_transpose(call->row) ? channel * rows + at[1] % rows
                                              : at[1] * channels + k[0];
        bool inside = true;
        double w;

        for (uint32_t i = 0; i < spatial; i++) {
            const int64_t position =
                position_of(call, i, x->shape[2 + i], at[2 + i], k[1 + i]);

            inside = inside && position >= 0;
            from = from * x->shape[2 + i] + position;
            tap = tap * weight->shape[2 + i] + k[1 + i];
        }
        w = dense_real(weight, tap);
        index_next(1 + spatial, lengths, k);
        if (!inside && !isfinite(w))
            sum.padding_meets_infinity = true;
        if (!inside)
            continue;
        term_add(&sum, w * dense_real(x, from));
    }
    return sum;
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[call->inputs].desc;
    const int64_t count = call->operands[call->inputs].elements;
    const double depth =
        (double)in[1].elements /
        (double)(desc->shape[1] > 0 ? desc->shape[1] : 1) *
        (is_transpose(call->row) ? (double)call->ints[GROUP] : 1.0);
    const double relative =
        (call->row->tolerance + 2.0 * sqrt(depth)) * TOLERANCE_2EPS;
    int64_t index[TANDEM_MAX_RANK] = {0};

    expected_init(out, EXPECTED_REAL, count);
    expected_allow_unspecified(out);
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < count; i++) {
        struct sum sum = products_sum(call, in, index, desc->shape[1]);
        /* The input and the weight are truncated or rounded to TF32. */
        double error = (call->flags & TANDEM_OP_ALLOW_TF32) != 0
                           ? 0x1p-9 * sum.magnitude
                           : 0.0;

        if (has_bias(call))
            term_add(&sum, dense_real(&in[2], index[1]));
        if (call->ints[RESIDUAL] != 0)
            term_add(&sum, dense_real(&in[call->inputs - 1], i));
        /* Subnormal products may be flushed to zero. */
        error += relative * sum.magnitude + (depth + 2.0) * (double)FLT_MIN;
        if (!reference_activation((uint32_t)call->ints[ACTIVATION],
                                  call->floats, sum.real, error, &out->real[i],
                                  &out->tolerance[i]) ||
            sum.padding_meets_infinity || sum.finite > 0x1p127)
            out->unspecified[i] = UNSPECIFIED;
        index_next(desc->rank, desc->shape, index);
    }
}

/* ---- random calls ---- */

/* Returns the length of axis i of the output. */
static int64_t out_length(const struct call *call, uint32_t i, int64_t length,
                          int64_t kernel)
{
    const int64_t stride = attribute_of(call, STRIDES, i);
    const int64_t span = (kernel - 1) * attribute_of(call, DILATIONS, i) + 1;
    const int64_t padding =
        attribute_of(call, BEGINS, i) + attribute_of(call, ENDS, i);

    if (is_transpose(call->row))
        return (length - 1) * stride + span - padding +
               attribute_of(call, OUTPUT_PADDING, i);
    return length + padding < span ? 0 : (length + padding - span) / stride + 1;
}

struct shapes {
    struct shape x, weight, out;
};

/* Draws the sizes of an axis and of a window over it. */
static void window_draw(struct call *call, struct shapes *shapes, uint32_t i,
                        bool one_element)
{
    struct random *random = call->random;
    const uint32_t spatial = shapes->x.rank - 2;
    const int64_t most_length = spatial == 1 ? 5000 : spatial == 2 ? 90 : 40;
    const int64_t most_kernel = random_once_in(random, 12) ? 9 : 4;
    const bool transpose = is_transpose(call->row);
    const int64_t kernel =
        one_element ? 1 : random_between(random, 1, most_kernel);
    const int64_t stride = random_between(random, 1, 3);
    const int64_t dilation = random_between(random, 1, 2);
    const int64_t span = (kernel - 1) * dilation + 1;
    const int64_t most_padding =
        random_once_in(random, 4) ? span + 4 : span - 1;
    int64_t lists[] = {[STRIDES] = random_once_in(random, 2) ? 1 : stride,
                       [DILATIONS] = dilation,
                       [BEGINS] = random_between(random, 0, most_padding),
                       [ENDS] = random_between(random, 0, most_padding),
                       [OUTPUT_PADDING] = random_between(random, 0, 1)};
    int64_t *length = &shapes->x.at[2 + i];

    if (*length == 0 || *length > most_length)
        *length = random_between(random, 1, 40);
    /* The output of a transposed convolution must not be shorter than 0. */
    if (transpose &&
        (*length - 1) * lists[STRIDES] + span < lists[BEGINS] + lists[ENDS])
        lists[BEGINS] = lists[ENDS] = 0;
    if (lists[OUTPUT_PADDING] >= lists[STRIDES] &&
        lists[OUTPUT_PADDING] >= dilation)
        lists[OUTPUT_PADDING] = 0;
    for (uint32_t list = 0; list < (transpose ? 5 : 4); list++)
        call->ints[TABLE_INTS + list * spatial + i] = lists[list];
    shapes->weight.at[2 + i] = kernel;
    shapes->out.at[2 + i] = out_length(call, i, *length, kernel);
}

/* Draws the channels: in groups, depthwise, or many. Returns the groups. */
static int64_t channels_draw(struct call *call, struct shapes *shapes)
{
    struct random *random = call->random;
    const bool transpose = is_transpose(call->row);
    const bool is_small =
        shape_count(shapes->x.rank - 2, &shapes->x.at[2]) < 400;
    int64_t group =
        random_once_in(random, 3) ? random_between(random, 1, 6) : 1;
    int64_t in = group * random_between(random, 0, 9);
    int64_t out =
        group * random_between(random, 0, random_once_in(random, 2) ? 24 : 9);

    if (random_once_in(random, 4))
        group = in = out = random_between(random, 1, 12);
    else if (is_small && group == 1 && random_once_in(random, 6)) {
        in = random_between(random, 10, 140);
        out = random_between(random, 10, 80);
    }
    shapes->x.at[1] = in;
    shapes->out.at[1] = out;
    shapes->weight.at[0] = transpose ? in : out;
    shapes->weight.at[1] = (transpose ? out : in) / group;
    return group;
}

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const bool has_bias = random_once_in(random, 2);
    const bool has_residual = random_once_in(random, 3);
    const uint32_t activation = activation_draw(block);
    /* Windows of one element are products of matrices. */
    const bool one_element = random_once_in(random, 4);
    struct shapes shapes;
    struct shape bias = {.rank = 1};
    uint32_t place = 2;

    shape_draw(&shapes.x, random, 3, 5);
    shapes.x.at[0] = random_between(random, 0, 3);
    shapes.weight.rank = shapes.out.rank = shapes.x.rank;
    shapes.out.at[0] = shapes.x.at[0];
    call->operands[0].desc.rank = shapes.x.rank;
    call->int_count =
        TABLE_INTS + (is_transpose(call->row) ? 5 : 4) * (shapes.x.rank - 2);
    for (uint32_t i = 0; i + 2 < shapes.x.rank; i++)
        window_draw(call, &shapes, i, one_element);
    call->ints[GROUP] = channels_draw(call, &shapes);
    call->ints[ACTIVATION] = activation;
    call->ints[RESIDUAL] = has_residual;
    call->float_count = 2;
    call->floats[0] = activation == TANDEM_OP_GELU
                          ? (double)random_below(random, 2)
                      : activation == TANDEM_OP_CELU ? 0.5
                                                     : -0.5;
    call->floats[1] = 6;
    call->flags = random_once_in(random, 4) ? TANDEM_OP_ALLOW_TF32 : 0;
    call->inputs = 2u + has_bias + has_residual;
    bias.at[0] = shapes.out.at[1];
    images_draw(call, 0, &shapes.x);
    operand_draw(call, 1, TANDEM_F32, &shapes.weight);
    if (has_bias)
        operand_draw(call, place++, TANDEM_F32, &bias);
    if (has_residual)
        operand_draw(call, place++, TANDEM_F32, &shapes.out);
    images_draw(call, place, &shapes.out);
}

/* Each activation, with the same kernels otherwise. */
static void cases(struct suite *suite, const struct op_row *row)
{
    const struct op_row *activations[TANDEM_OP_ID_END];
    const uint32_t count = activations_choose(suite, row, activations);

    for (uint32_t i = 0; i < count; i++) {
        const struct block block = {
            .numbers = {[5] = block_number_of_activation(activations[i]->id)}};

        drawn_case_run(suite, row, &block, "activation %s",
                       activations[i]->name);
    }
}

static bool draw_invalid_attribute(struct call *call)
{
    const uint32_t spatial = call->operands[0].desc.rank - 2;
    const uint32_t which =
        (uint32_t)random_below(call->random, 1 + 4 * spatial);

    if (which == 0)
        call->ints[GROUP] = invalid_number_draw(call->random, 1, INT32_MAX);
    else
        call->ints[TABLE_INTS + which - 1] =
            random_once_in(call->random, 2) ? -1 : INT64_MAX;
    return true;
}

/* ---- invalid calls ---- */

/* Two groups of channels, a window of 2, bias and residual. */
static void make_valid(struct mistaken_call *p)
{
    const bool transpose = is_transpose(p->row);

    MISTAKEN_SHAPE(&p->ins[0], 1, 4, 6);
    MISTAKEN_SHAPE(&p->ins[1], transpose ? 4 : 6, transpose ? 3 : 2, 2);
    mistaken_tensor_set(&p->ins[2], TANDEM_F32, 1, 6, 0);
    MISTAKEN_SHAPE(&p->ins[3], 1, 6, transpose ? 7 : 5);
    MISTAKEN_SHAPE(&p->outs[0], 1, 6, transpose ? 7 : 5);
    p->in_count = 4;
    p->ints[GROUP] = 2;
    p->ints[ACTIVATION] = TANDEM_OP_RELU;
    p->ints[RESIDUAL] = 1;
    p->ints[3] = p->ints[4] = 1;
    p->ints[5] = p->ints[6] = p->ints[7] = 0;
    p->op.int_count = transpose ? 8 : 7;
    p->floats[0] = p->floats[1] = 0;
}

#define CONV_MISTAKES(X)                                                       \
    X(conv_group_zero, CONV, "group 0", 0, p->ints[0] = 0)                     \
    X(conv_group_in, CONV, "a group that does not divide the input channels",  \
      0, p->ints[0] = 3)                                                       \
    X(conv_group_out, CONV,                                                    \
      "a group that does not divide the output channels", 0,                   \
      (p->ints[0] = 4, p->ins[1].shape[1] = 1))                                \
    X(conv_activation, CONV, "the activation add", MAYBE_LATER,                \
      p->ints[1] = TANDEM_OP_ADD)                                              \
    X(conv_activation_negative, CONV, "the activation -1", MAYBE_LATER,        \
      p->ints[1] = -1)                                                         \
    X(conv_gelu, CONV, "form 0.5 of gelu", 0,                                  \
      (p->ints[1] = TANDEM_OP_GELU, p->floats[0] = 0.5))                       \
    X(conv_residual, CONV, "residual 2", 0, p->ints[2] = 2)                    \
    X(conv_residual_missing, CONV, "no weight but a residual", 0,              \
      p->in_count = 2)                                                         \
    X(conv_inputs_many, CONV, "four inputs without residual", 0,               \
      p->ints[2] = 0)                                                          \
    X(conv_residual_shape, CONV, "another shape of the residual", 0,           \
      p->ins[3].shape[2] = 4)                                                  \
    X(conv_bias_shape, CONV, "another length of the bias", 0,                  \
      p->ins[2].shape[0] = 5)                                                  \
    X(conv_weight_rank, CONV, "another rank of the weight", 0,                 \
      p->ins[1].rank = 2)                                                      \
    X(conv_weight_channels, CONV, "other channels of the weight", 0,           \
      p->ins[1].shape[1] = 1)                                                  \
    X(conv_kernel_empty, CONV, "an empty kernel", 0, p->ins[1].shape[2] = 0)   \
    X(conv_stride, CONV, "a stride of 0", 0, p->ints[3] = 0)                   \
    X(conv_dilation, CONV, "a huge dilation", 0, p->ints[4] = INT64_MAX)       \
    X(conv_pad, CONV, "huge padding", 0, p->ints[5] = INT64_MAX)               \
    X(conv_pad_negative, CONV, "negative padding", 0, p->ints[6] = -1)         \
    X(conv_ints_few, CONV, "a missing end", 0, p->op.int_count--)              \
    X(conv_rank, CONV, "no spatial axis", 0,                                   \
      p->ins[0].rank = p->ins[1].rank = p->outs[0].rank = 2)                   \
    X(conv_output, CONV, "another output length", 0, p->outs[0].shape[2] = 4)  \
    X(conv_transpose_group, CONV_TRANSPOSE,                                    \
      "a group that does not divide the channels", 0, p->ints[0] = 3)          \
    X(conv_transpose_weight, CONV_TRANSPOSE, "other channels of the weight",   \
      0, p->ins[1].shape[0] = 5)                                               \
    X(conv_transpose_padding, CONV_TRANSPOSE, "output_padding 1", 0,           \
      p->ints[7] = 1)                                                          \
    X(conv_transpose_padding_negative, CONV_TRANSPOSE, "output_padding -1", 0, \
      p->ints[7] = -1)                                                         \
    X(conv_transpose_ints_few, CONV_TRANSPOSE, "no output_padding", 0,         \
      p->op.int_count--)                                                       \
    X(conv_transpose_empty, CONV_TRANSPOSE, "an empty input axis", 0,          \
      p->ins[0].shape[2] = 0)                                                  \
    X(conv_transpose_output, CONV_TRANSPOSE, "another output length", 0,       \
      p->outs[0].shape[2] = 5)

MISTAKE_TABLE(conv_mistakes, CONV_MISTAKES)

const struct suite_class suite_conv = {
    .rules = VARIADIC,
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 6,
    .make_valid = make_valid,
    CLASS_MISTAKES(conv_mistakes),
};
