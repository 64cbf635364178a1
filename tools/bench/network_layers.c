/* SPDX-License-Identifier: Apache-2.0 */
/* Appends layers to a network; see network_layers.h. */
#include <config.h>

#include "network_layers.h"

#include <math.h>
#include <string.h>

#define BIAS_DEVIATION 0.1
/* Variance of a convolution's weights, times the number of terms. */
#define CONV_VARIANCE 1.7

static void append_ints(struct network_call *call, uint32_t count,
                        int64_t value)
{
    for (uint32_t i = 0; i < count; i++)
        call->ints[call->int_count++] = value;
}

/* ---- products ---- */

/* Sets attributes of a convolution without padding along `spatial` axes. */
static struct network_call conv_call(uint32_t spatial, int64_t groups,
                                     const struct activation *activation,
                                     bool has_residual, int64_t stride,
                                     int64_t padding)
{
    struct network_call call = {.op = TANDEM_OP_CONV, .float_count = 2};

    append_ints(&call, 1, groups);
    append_ints(&call, 1, activation->op);
    append_ints(&call, 1, has_residual);
    append_ints(&call, spatial, stride);
    append_ints(&call, spatial, 1); /* dilations */
    append_ints(&call, spatial, padding);
    append_ints(&call, spatial, padding);
    memcpy(call.floats, activation->parameters, sizeof activation->parameters);
    return call;
}

static int64_t or_one(int64_t number)
{
    return number != 0 ? number : 1;
}

struct value network_conv(struct network *network, struct value x,
                          const struct convolution *convolution)
{
    const uint32_t spatial = x.rank - 2;
    const int64_t window = or_one(convolution->window);
    const int64_t stride = or_one(convolution->stride);
    const int64_t groups = or_one(convolution->groups);
    const int64_t padding = window / 2, outputs = convolution->outputs;
    const bool has_residual = convolution->residual != NULL;
    int64_t kernel[MAX_NETWORK_AXES] = {outputs, x.shape[1] / groups};
    int64_t shape[MAX_NETWORK_AXES] = {x.shape[0], outputs};
    int64_t terms = kernel[1];
    struct network_call call =
        conv_call(spatial, groups, &convolution->activation, has_residual,
                  stride, padding);

    for (uint32_t i = 2; i < x.rank; i++) {
        kernel[i] = window;
        terms *= window;
        shape[i] = (x.shape[i] + 2 * padding - window) / stride + 1;
    }
    call.inputs[call.input_count++] = x;
    call.inputs[call.input_count++] = network_random(
        network, 0, sqrt(CONV_VARIANCE / (double)terms), x.rank, kernel);
    call.inputs[call.input_count++] =
        network_random(network, 0, BIAS_DEVIATION, AXES(outputs));
    if (has_residual)
        call.inputs[call.input_count++] = *convolution->residual;
    call.output = network_result(network, TANDEM_F32, x.rank, shape);
    network_append(network, &call, 1);
    network_count_product(network, value_elements(&call.output), terms);
    return call.output;
}

struct value network_conv_weight(struct network *network, struct value x,
                                 struct value weight)
{
    const struct activation none = {0};
    struct network_call call = conv_call(x.rank - 2, 1, &none, false, 1, 0);
    int64_t shape[MAX_NETWORK_AXES];

    memcpy(shape, x.shape, sizeof shape);
    shape[1] = weight.shape[0];
    call.inputs[call.input_count++] = x;
    call.inputs[call.input_count++] = weight;
    call.output = network_result(network, TANDEM_F32, x.rank, shape);
    network_append(network, &call, 1);
    network_count_product(network, value_elements(&call.output), x.shape[1]);
    return call.output;
}

struct value network_linear(struct network *network, struct value x,
                            const struct linear *linear)
{
    const int64_t inputs = x.shape[x.rank - 1], outputs = linear->outputs;
    const int64_t rows = value_elements(&x) / inputs;
    const double deviation = 1 / sqrt((double)inputs);
    struct network_call call = {.op = TANDEM_OP_GEMM,
                                .accumulates = linear->residual != NULL,
                                .input_count = 3,
                                .int_count = 1,
                                .float_count = 2};
    struct value weight, out;
    int64_t shape[MAX_NETWORK_AXES];

    memcpy(shape, x.shape, sizeof shape);
    shape[x.rank - 1] = outputs;
    if (linear->transposed)
        weight = value_transpose(
            network_random(network, 0, deviation, AXES(outputs, inputs)), 0, 1);
    else
        weight = network_random(network, 0, deviation, AXES(inputs, outputs));
    out = linear->residual != NULL
              ? *linear->residual
              : network_result(network, TANDEM_F32, x.rank, shape);
    call.inputs[0] = value_reshape(x, AXES(rows, inputs));
    call.inputs[1] = weight;
    call.inputs[2] =
        linear->no_bias
            ? absent_value
            : network_random(network, 0, BIAS_DEVIATION, AXES(outputs));
    call.output = value_reshape(out, AXES(rows, outputs));
    call.ints[0] = linear->activation.op;
    memcpy(call.floats, linear->activation.parameters,
           sizeof linear->activation.parameters);
    network_append(network, &call, 1);
    network_count_product(network, rows * outputs, inputs);
    network->output = out;
    return out;
}

struct value network_attention(struct network *network,
                               const struct attention *attention)
{
    const int64_t *shape = attention->q.shape;
    const int64_t keys = attention->k.shape[2];
    struct value out = network_result(
        network, TANDEM_F32, AXES(shape[0], shape[2], shape[1] * shape[3]));
    struct network_call call = {
        .op = TANDEM_OP_ATTENTION,
        .input_count = attention->mask != NULL ? 4 : 3,
        .inputs = {attention->q, attention->k, attention->v},
        .output = value_heads(out, shape[1]),
        .int_count = 2,
        .ints = {attention->causal, attention->past},
        .float_count = 2,
        .floats = {1 / sqrt((double)shape[3]), 0},
    };

    if (attention->mask != NULL)
        call.inputs[3] = *attention->mask;
    network_append(network, &call, 2);
    network_count_product(network, shape[0] * shape[1] * shape[2] * keys,
                          shape[3]);
    network_count_product(network, value_elements(&out), keys);
    return out;
}

/* ---- other operators ---- */

/* Appends a call whose output is a new array, which it returns. */
static struct value append_new(struct network *network,
                               struct network_call *call, uint32_t dtype,
                               uint32_t rank, const int64_t *shape)
{
    call->output = network_result(network, dtype, rank, shape);
    network_append(network, call, 0);
    return call->output;
}

struct value network_layer_norm(struct network *network, struct value x,
                                double epsilon)
{
    const int64_t width = x.shape[x.rank - 1];
    struct network_call call = {
        .op = TANDEM_OP_LAYER_NORM,
        .input_count = 3,
        .inputs = {x, network_random(network, 1, BIAS_DEVIATION, AXES(width)),
                   network_random(network, 0, BIAS_DEVIATION, AXES(width))},
        .int_count = 1,
        .ints = {x.rank - 1},
        .float_count = 1,
        .floats = {epsilon},
    };

    return append_new(network, &call, TANDEM_F32, x.rank, x.shape);
}

struct value network_unary(struct network *network, uint32_t op, struct value x)
{
    struct network_call call = {.op = op, .input_count = 1, .inputs = {x}};

    return append_new(network, &call, TANDEM_F32, x.rank, x.shape);
}

struct value network_binary(struct network *network, uint32_t op,
                            struct value a, struct value b)
{
    struct network_call call = {.op = op, .input_count = 2, .inputs = {a, b}};

    return append_new(network, &call, TANDEM_F32, a.rank, a.shape);
}

struct value network_divide(struct network *network, struct value x,
                            double divisor)
{
    struct network_call call = {.op = TANDEM_OP_DIV,
                                .input_count = 2,
                                .inputs = {x, absent_value},
                                .float_count = 1,
                                .floats = {divisor}};

    return append_new(network, &call, TANDEM_F32, x.rank, x.shape);
}

struct value network_to_bool(struct network *network, struct value x)
{
    struct network_call call = {
        .op = TANDEM_OP_CAST, .input_count = 1, .inputs = {x}};

    return append_new(network, &call, TANDEM_BOOL, x.rank, x.shape);
}

struct value network_concat(struct network *network, uint32_t axis,
                            uint32_t count, const struct value *parts)
{
    struct network_call call = {.op = TANDEM_OP_CONCAT,
                                .input_count = count,
                                .int_count = 1,
                                .ints = {axis}};
    int64_t shape[MAX_NETWORK_AXES];

    memcpy(shape, parts[0].shape, sizeof shape);
    shape[axis] = 0;
    for (uint32_t i = 0; i < count; i++) {
        call.inputs[i] = parts[i];
        shape[axis] += parts[i].shape[axis];
    }
    return append_new(network, &call, TANDEM_F32, parts[0].rank, shape);
}

void network_join(struct network *network, struct value past, struct value new,
                  struct value out)
{
    const struct network_call call = {.op = TANDEM_OP_CONCAT,
                                      .input_count = 2,
                                      .inputs = {past, new},
                                      .output = out,
                                      .int_count = 1,
                                      .ints = {2}};

    network_append(network, &call, 0);
}

struct value network_softmax(struct network *network, struct value x,
                             uint32_t axis)
{
    struct network_call call = {.op = TANDEM_OP_SOFTMAX,
                                .input_count = 1,
                                .inputs = {x},
                                .int_count = 1,
                                .ints = {axis}};

    return append_new(network, &call, TANDEM_F32, x.rank, x.shape);
}

struct value network_max_pool(struct network *network, struct value x,
                              int64_t window, int64_t stride, int64_t padding)
{
    struct network_call call = {
        .op = TANDEM_OP_MAX_POOL, .input_count = 1, .inputs = {x}};
    int64_t shape[MAX_NETWORK_AXES];

    memcpy(shape, x.shape, sizeof shape);
    for (uint32_t i = 2; i < 4; i++)
        shape[i] = (x.shape[i] + 2 * padding - window) / stride + 1;
    append_ints(&call, 1, 0); /* ceil_mode */
    append_ints(&call, 2, window);
    append_ints(&call, 2, stride);
    append_ints(&call, 2, 1); /* dilations */
    append_ints(&call, 2, padding);
    append_ints(&call, 2, padding);
    return append_new(network, &call, TANDEM_F32, x.rank, shape);
}

struct value network_average(struct network *network, struct value x)
{
    struct network_call call = {.op = TANDEM_OP_MEAN,
                                .input_count = 1,
                                .inputs = {x},
                                .int_count = 2,
                                .ints = {1 << 2 | 1 << 3, 1}};

    return append_new(network, &call, TANDEM_F32,
                      AXES(x.shape[0], x.shape[1], 1, 1));
}

struct value network_upsample(struct network *network, struct value x)
{
    /* mode nearest, coordinates asymmetric, rounding floor */
    struct network_call call = {.op = TANDEM_OP_RESIZE,
                                .input_count = 1,
                                .inputs = {x},
                                .int_count = 5,
                                .ints = {0, 4, 2, 0, 0},
                                .float_count = 2,
                                .floats = {-0.75, 0}};

    return append_new(
        network, &call, TANDEM_F32,
        AXES(x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]));
}

struct value network_gather(struct network *network, struct value table,
                            struct value indices)
{
    struct network_call call = {.op = TANDEM_OP_GATHER,
                                .input_count = 2,
                                .inputs = {table, indices},
                                .int_count = 1,
                                .ints = {0}};

    return append_new(network, &call, TANDEM_F32,
                      AXES(indices.shape[0], indices.shape[1], table.shape[1]));
}
