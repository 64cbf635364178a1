/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and transposed convolutions over one to three spatial axes, with
 * strides, dilations, padding, groups, bias, residual and activation.
 */
#include "elementwise_reference.h"
#include "inputs.h"
#include "suite_class.h"

#include <float.h>
#include <math.h>

#define SPATIAL 3

/* Integer attributes, and lists with one number per spatial axis. */
enum { GROUP, ACTIVATION, RESIDUAL, TABLE_INTS };
enum list { STRIDES, DILATIONS, BEGINS, ENDS, OUTPUT_PADDING };

/* A convolution of a tensor x into `out` channels. */
struct conv_form {
    enum level level;
    struct shape x;
    int64_t out, group;
    int64_t kernel[SPATIAL], lists[OUTPUT_PADDING + 1][SPATIAL];
    enum operand_layout in_layout, weight_layout, out_layout;
};

/* A form with the three layouts, and one whose operands are all dense. */
#define FORM(...)                                                              \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define DENSE_FORM(...) FORM(__VA_ARGS__, DENSE, DENSE, DENSE)

static const struct conv_form forms[] = {
    /* Windows of one element, with and without a stride. */
    DENSE_FORM(ALWAYS, S(2, 16, 5, 7), 24, 1, {1, 1}, {{1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(1, 40, 9, 9), 33, 1, {1, 1}, {{2, 3}, {1, 1}}),
    FORM(ALWAYS, S(2, 16, 5, 7), 24, 1, {1, 1}, {{1, 1}, {1, 1}}, REVERSED,
         REVERSED, REVERSED),
    DENSE_FORM(SOME, S(3, 12, 70), 9, 3, {1}, {{1}, {1}}),
    /* Windows of several elements. */
    DENSE_FORM(ALWAYS, S(2, 8, 13, 17), 16, 1, {3, 3},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}}),
    DENSE_FORM(ALWAYS, S(1, 3, 23, 24), 40, 1, {7, 7},
               {{2, 2}, {1, 1}, {3, 3}, {3, 3}}),
    DENSE_FORM(SOME, S(1, 130, 6, 6), 70, 1, {3, 3},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(2, 5, 12, 11), 6, 1, {3, 2},
               {{2, 1}, {2, 3}, {4, 1}, {2, 3}}),
    DENSE_FORM(SOME, S(2, 6, 200), 12, 2, {5}, {{3}, {2}, {8}, {1}}),
    DENSE_FORM(ALWAYS, S(2, 4, 5, 6, 7), 6, 2, {2, 3, 3},
               {{1, 2, 1}, {2, 1, 1}, {1, 0, 2}, {0, 2, 1}}),
    DENSE_FORM(SOME, S(1, 1, 1, 1), 5, 1, {3, 3},
               {{1, 1}, {3, 3}, {3, 4}, {3, 2}}),
    DENSE_FORM(SOME, S(0, 3, 5, 5), 4, 1, {3, 3}, {{1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(2, 3, 5, 5), 0, 1, {3, 3}, {{1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(2, 0, 5, 5), 6, 1, {3, 3}, {{1, 1}, {1, 1}, {1, 1}}),
    /* Depthwise convolutions, and other groups. */
    DENSE_FORM(ALWAYS, S(2, 19, 14, 15), 19, 19, {3, 3},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(1, 8, 33, 80), 16, 8, {5, 5},
               {{2, 2}, {1, 1}, {2, 2}, {2, 2}}),
    DENSE_FORM(SOME, S(1, 4, 7, 600), 4, 4, {3, 9},
               {{1, 1}, {1, 2}, {1, 8}, {1, 8}}),
    DENSE_FORM(SOME, S(2, 24, 9, 8), 24, 6, {3, 3},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(2, 24, 9, 8), 48, 2, {3, 3},
               {{2, 2}, {1, 1}, {1, 1}, {0, 0}}),
    /* Depthwise convolutions whose rows begin and end at odd positions. */
    DENSE_FORM(ALWAYS, S(2, 5, 11, 9), 5, 5, {3, 3},
               {{2, 2}, {1, 1}, {1, 1}, {1, 1}}),
    /* Maximum padding; strides with dilations; strides above the window. */
    DENSE_FORM(SOME, S(1, 3, 9, 7), 3, 3, {3, 3},
               {{1, 1}, {1, 1}, {2, 2}, {2, 2}}),
    DENSE_FORM(SOME, S(1, 4, 13, 21), 4, 4, {3, 4},
               {{2, 2}, {3, 1}, {0, 2}, {1, 0}}),
    DENSE_FORM(SOME, S(1, 3, 10, 70), 6, 3, {2, 2},
               {{3, 3}, {1, 1}, {1, 0}, {0, 1}}),
    DENSE_FORM(SOME, S(1, 20, 15, 17), 15, 1, {3, 3},
               {{2, 2}, {2, 3}, {2, 1}, {1, 2}}),
    /* Padding beyond the window, and windows longer than the axis. */
    DENSE_FORM(ALWAYS, S(1, 2, 5, 5), 3, 1, {1, 1},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}}),
    DENSE_FORM(ALWAYS, S(2, 16, 5, 7), 24, 1, {1, 1},
               {{1, 2}, {1, 1}, {1, 0}, {0, 2}}),
    DENSE_FORM(ALWAYS, S(1, 6, 9, 12), 6, 6, {2, 2},
               {{1, 1}, {1, 1}, {3, 4}, {2, 5}}),
    DENSE_FORM(SOME, S(1, 18, 9, 12), 20, 2, {2, 3},
               {{2, 1}, {1, 1}, {3, 5}, {2, 3}}),
    DENSE_FORM(ALWAYS, S(1, 3, 2, 4), 5, 1, {3, 3}, {{1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(1, 3, 2, 4), 3, 3, {3, 3}, {{2, 2}, {2, 1}}),
    /* Many taps, and planes and rows that are divided into blocks. */
    DENSE_FORM(SOME, S(1, 3, 20, 21), 5, 1, {9, 9},
               {{1, 1}, {1, 1}, {4, 4}, {4, 4}}),
    DENSE_FORM(SOME, S(1, 2, 90, 80), 2, 2, {3, 3},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(1, 2, 5000), 2, 2, {3}, {{1}, {1}, {1}, {1}}),
    /* Windows of one element: several blocks; channels that are a page apart;
     * one output. */
    DENSE_FORM(SOME, S(1, 9, 23, 29), 20, 1, {1, 1}, {{1, 1}, {1, 1}}),
    DENSE_FORM(SOME, S(1, 9, 32, 32), 20, 1, {1, 1}, {{1, 1}, {1, 1}}),
    DENSE_FORM(ALWAYS, S(2, 20, 1, 1), 30, 1, {1, 1}, {{1, 1}, {1, 1}}),
    /* Layouts. */
    FORM(ALWAYS, S(2, 10, 9, 10), 12, 1, {3, 3},
         {{2, 1}, {1, 1}, {1, 1}, {1, 0}}, PERMUTED, PERMUTED, PERMUTED),
    FORM(SOME, S(2, 10, 9, 10), 12, 2, {3, 3}, {{2, 1}, {1, 1}, {1, 1}, {1, 0}},
         PADDED, PADDED, PADDED),
    FORM(SOME, S(2, 10, 9, 10), 12, 1, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
         ANY, ANY, ANY),
    FORM(SOME, S(2, 6, 9, 5), 6, 6, {2, 3}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}},
         NEGATIVE, REVERSED, NEGATIVE),
    FORM(SOME, S(2, 3, 9, 5), 8, 1, {2, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
         REPEATED, REPEATED, DENSE),
};

static const int64_t output_paddings[][SPATIAL] = {{0}, {1, 0}, {0, 1}};

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
        (call->row->tolerance + 2.0 * sqrt(depth)) * REFERENCE_2EPS;
    int64_t index[TANDEM_MAX_RANK] = {0};

    expected_init(out, EXPECTED_REAL, count);
    expected_allow_unspecified(out);
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
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

/* ---- cases ---- */

struct options {
    uint32_t activation;
    double parameters[2];
    bool bias, residual, special;
    bool tf32;                     /* with TANDEM_OP_ALLOW_TF32 */
    const int64_t *output_padding; /* only for conv_transpose */
};

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
    struct shape weight, bias, out;
};

/* Sets attributes and number of inputs. Returns shapes of other operands. */
static struct shapes attributes_set(struct call *call,
                                    const struct conv_form *form,
                                    const struct options *options)
{
    const uint32_t spatial = form->x.rank - 2;
    const bool transpose = is_transpose(call->row);
    const uint32_t lists = transpose ? 5 : 4;
    struct shapes shapes = {form->x, S(form->out), form->x};

    call->operands[0].desc.rank = form->x.rank;
    call->ints[GROUP] = form->group;
    call->ints[ACTIVATION] = options->activation;
    call->ints[RESIDUAL] = options->residual;
    call->floats[0] = options->parameters[0];
    call->floats[1] = options->parameters[1];
    call->float_count = 2;
    call->flags = options->tf32 ? TANDEM_OP_ALLOW_TF32 : 0;
    call->int_count = TABLE_INTS + lists * spatial;
    call->inputs = 2u + options->bias + options->residual;
    for (uint32_t list = 0; list < lists; list++)
        for (uint32_t i = 0; i < spatial; i++)
            call->ints[TABLE_INTS + list * spatial + i] =
                list == OUTPUT_PADDING ? options->output_padding[i]
                                       : form->lists[list][i];
    shapes.weight.at[0] = transpose ? form->x.at[1] : form->out;
    shapes.weight.at[1] = (transpose ? form->out : form->x.at[1]) / form->group;
    shapes.out.at[1] = form->out;
    for (uint32_t i = 0; i < spatial; i++) {
        shapes.weight.at[2 + i] = form->kernel[i];
        shapes.out.at[2 + i] =
            out_length(call, i, form->x.at[2 + i], form->kernel[i]);
    }
    return shapes;
}

static void operand_fill_values(struct call *call, uint32_t place,
                                const struct options *options)
{
    if (options->special)
        operand_fill_special(&call->operands[place], call->random, 60);
    else
        operand_fill_normal(&call->operands[place], call->random, 1, 0);
}

static void run(struct suite *suite, const struct op_row *row,
                const struct conv_form *form, const struct options *options)
{
    struct shapes shapes;
    struct call *call;
    uint32_t place = 2;

    /* A transposed convolution needs an input, and each padding a place. */
    for (uint32_t i = 2; i < form->x.rank && is_transpose(row); i++)
        if (options->output_padding[i - 2] >= form->lists[STRIDES][i - 2] &&
            options->output_padding[i - 2] >= form->lists[DILATIONS][i - 2])
            return;
    call = call_begin(suite, row, "%s form %d%s%s, activation %u%s%s",
                      shape_text(form->x.rank, form->x.at), (int)(form - forms),
                      options->bias ? ", bias" : "",
                      options->residual ? ", residual" : "",
                      options->activation, options->special ? ", specials" : "",
                      options->tf32 ? ", tf32" : "");
    if (call == NULL)
        return;
    shapes = attributes_set(call, form, options);
    call->passed_inputs = call->inputs;
    call_operand(call, 0, TANDEM_F32, &form->x, form->in_layout);
    operand_fill_values(call, 0, options);
    call_operand(call, 1, TANDEM_F32, &shapes.weight, form->weight_layout);
    operand_fill_values(call, 1, options);
    if (options->bias) {
        call_operand(call, place, TANDEM_F32, &shapes.bias,
                     form->weight_layout);
        operand_fill_values(call, place++, options);
    }
    if (options->residual) {
        call_operand(call, place, TANDEM_F32, &shapes.out, form->in_layout);
        operand_fill_values(call, place++, options);
    }
    call_operand(call, place, TANDEM_F32, &shapes.out, form->out_layout);
    call_end(suite, call);
}

/* Variants 0 to 7 of a form have bits for bias, residual and special values. */
#define WITH_TF32 8u

/*
 * Each activation with a convolution that the OpenCL plugin computes as GEMM
 * and with a depthwise one. Transposed convolutions of the same forms run two
 * other kernels. `cases` has the tanh form of gelu.
 */
static void activations_run(struct suite *suite, const struct op_row *row)
{
    static const uint32_t tested_forms[] = {0, 19};
    const struct op_row *activations[TANDEM_OP_ID_END];
    const uint32_t count = activations_choose(suite, row, activations);

    for (uint32_t i = 0; i < count * COUNT_OF(tested_forms); i++) {
        const uint32_t id = activations[i / COUNT_OF(tested_forms)]->id;
        const struct options options = {
            .activation = id,
            .parameters = {id == TANDEM_OP_GELU ? 0 : 0.25, 0.75},
            .bias = true,
            .residual = true,
            .output_padding = output_paddings[0]};

        run(suite, row, &forms[tested_forms[i % COUNT_OF(tested_forms)]],
            &options);
    }
}

static void cases(struct suite *suite, const struct op_row *row)
{
    static const struct {
        uint32_t op;
        double parameters[2];
    } activations[] = {{TANDEM_OP_INVALID, {0}}, {TANDEM_OP_RELU, {0}},
                       {TANDEM_OP_CLIP, {0, 6}}, {TANDEM_OP_SWISH, {0}},
                       {TANDEM_OP_GELU, {1}},    {TANDEM_OP_MISH, {0}}};
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t f = 0; f < COUNT_OF(forms); f++)
        for (uint32_t variant = 0; variant <= WITH_TF32; variant++) {
            uint32_t a = variant == 0 ? 0 : (f + variant) % 6;
            struct options options = {
                activations[a].op,
                {activations[a].parameters[0], activations[a].parameters[1]},
                (variant & 1) != 0,
                (variant & 2) != 0,
                (variant & 4) != 0,
                variant == WITH_TF32,
                output_paddings[variant % 3]};
            bool always = forms[f].level == ALWAYS &&
                          (variant % 3 == 0 || variant == WITH_TF32);

            if (form_chosen(suite, &choice, always, 4))
                run(suite, row, &forms[f], &options);
        }
    activations_run(suite, row);
}

/* ---- random calls ---- */

static void window_draw(struct call *call, struct conv_form *form, uint32_t i)
{
    struct random *random = call->random;
    int64_t *length = &form->x.at[2 + i], span, most;

    if (*length == 0 || *length > 40)
        *length = random_between(random, 1, 40);
    form->kernel[i] = random_between(random, 1, 4);
    form->lists[STRIDES][i] = random_between(random, 1, 3);
    form->lists[DILATIONS][i] = random_between(random, 1, 2);
    span = (form->kernel[i] - 1) * form->lists[DILATIONS][i] + 1;
    most = random_once_in(random, 4) ? span + 4 : span - 1;
    form->lists[BEGINS][i] = random_between(random, 0, most);
    form->lists[ENDS][i] = random_between(random, 0, most);
    /* The output of a transposed convolution must not be shorter than 0. */
    if (is_transpose(call->row) &&
        (*length - 1) * form->lists[STRIDES][i] + span <
            form->lists[BEGINS][i] + form->lists[ENDS][i])
        form->lists[BEGINS][i] = form->lists[ENDS][i] = 0;
}

static void draw(struct call *call, const struct block *block)
{
    static const int64_t no_padding[SPATIAL] = {0};
    struct random *random = call->random;
    struct conv_form form = {.group = 1};
    struct options options = {.output_padding = no_padding};
    struct shapes shapes;
    uint32_t place = 2;

    shape_draw(&form.x, random, 3, 5);
    form.x.at[0] = random_between(random, 0, 3);
    if (random_once_in(random, 3))
        form.group = random_between(random, 1, 6);
    form.x.at[1] = form.group * random_between(random, 0, 9);
    form.out = form.group * random_between(random, 1, 9);
    if (random_once_in(random, 4)) {
        form.group = random_between(random, 1, 12);
        form.x.at[1] = form.out = form.group;
    }
    for (uint32_t i = 0; i + 2 < form.x.rank; i++)
        window_draw(call, &form, i);
    options.bias = random_once_in(random, 2);
    options.residual = random_once_in(random, 3);
    options.tf32 = random_once_in(random, 4);
    options.activation = activation_draw(block);
    options.parameters[0] = options.activation == TANDEM_OP_GELU
                                ? (double)random_below(random, 2)
                            : options.activation == TANDEM_OP_CELU ? 0.5
                                                                   : -0.5;
    options.parameters[1] = 6;
    shapes = attributes_set(call, &form, &options);
    operand_draw(call, 0, TANDEM_F32, &form.x);
    operand_draw(call, 1, TANDEM_F32, &shapes.weight);
    if (options.bias)
        operand_draw(call, place++, TANDEM_F32, &shapes.bias);
    if (options.residual)
        operand_draw(call, place++, TANDEM_F32, &shapes.out);
    operand_draw(call, place, TANDEM_F32, &shapes.out);
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
    .weight = 3,
    .make_valid = make_valid,
    CLASS_MISTAKES(conv_mistakes),
};
