/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the suite "layers"; see layer_case.h. */
#include <config.h>

#include "bench.h"
#include "layer_case.h"

#include "common/op_class.h"
#include "common/resize_coordinates.h"
#include "common/tensor_extent.h"

#include <math.h>
#include <string.h>

/* Positions of conv's integer attributes: the lists strides, dilations, begins
 * and ends follow `group`, `activation` and `residual`. */
enum { GROUP, FIRST_LIST = 3, AXES = 2 };

/* Returns the number after a word of the detail, or `otherwise`. */
static int64_t word_number(const struct row *row, const char *word,
                           int64_t otherwise)
{
    size_t length = strlen(word);

    for (const char *at = row->detail; *at != '\0'; at++)
        if ((at == row->detail || at[-1] == ' ') &&
            strncmp(at, word, length) == 0 && at[length] >= '0' &&
            at[length] <= '9')
            return atoll(at + length);
    return otherwise;
}

static void shape_set(struct tandem_tensor_desc *desc)
{
    shape_strides(desc->rank, desc->shape, desc->strides);
}

static void conv_apply(const struct row *row, struct op_case *c)
{
    struct tandem_tensor_desc *weight = &c->in[1], *bias = &c->in[2];
    int64_t window = word_number(row, "k", 1);
    const int64_t lists[] = {word_number(row, "s", 1), 1,
                             word_number(row, "p", 0),
                             word_number(row, "p", 0)};

    c->op.flags = row_has(row, "tf32") ? TANDEM_OP_ALLOW_TF32 : 0;
    c->ints[GROUP] = word_number(row, "g", 1);
    for (uint32_t i = 0; i < COUNT(lists); i++)
        for (uint32_t axis = 0; axis < AXES; axis++)
            c->ints[FIRST_LIST + i * AXES + axis] = lists[i];
    weight->shape[0] = bias->shape[0] = word_number(row, "m", 1);
    weight->shape[1] = c->in[0].shape[1] / c->ints[GROUP];
    weight->shape[2] = weight->shape[3] = window;
    shape_set(weight);
}

static void attention_apply(const struct row *row, struct op_case *c)
{
    c->ints[0] = row_has(row, "causal");
    for (uint32_t i = 1; i < 3; i++) {
        c->in[i].shape[2] = word_number(row, "keys", c->in[0].shape[2]);
        shape_set(&c->in[i]);
    }
}

void layer_case_apply(const struct row *row, struct op_case *c)
{
    const struct tandem_tensor_desc *in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor_desc *out = &c->out[0];

    if (strcmp(row->suite, "layers") != 0)
        return;
    switch (c->op.id) {
    case TANDEM_OP_CONV:
        conv_apply(row, c);
        break;
    case TANDEM_OP_ATTENTION:
        attention_apply(row, c);
        break;
    case TANDEM_OP_RESIZE:
        c->ints[RESIZE_MODE] =
            row_has(row, "nearest") ? RESIZE_NEAREST : RESIZE_LINEAR;
        break;
    case TANDEM_OP_CONCAT:
        c->ints[0] = word_number(row, "axis", 0);
        break;
    default:
        return;
    }
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++)
        in[i] = &c->in[i];
    infer_output(&c->op, in, c->inputs, 0, out);
    shape_set(out);
    c->bytes = desc_bytes(out);
    for (uint32_t i = 0; i < c->inputs; i++)
        c->bytes += desc_bytes(&c->in[i]);
}

double layer_operations(const struct op_case *c)
{
    const int64_t *weight = c->in[1].shape, *q = c->in[0].shape;

    if (c->op.id == TANDEM_OP_CONV && weight[1] > 1)
        return 2 * desc_elements(&c->out[0]) *
               (double)(weight[1] * weight[2] * weight[3]);
    if (c->op.id == TANDEM_OP_ATTENTION)
        return (c->ints[0] != 0 ? 2 : 4) * desc_elements(&c->out[0]) *
               (double)c->in[1].shape[2] * (q[2] > 1);
    return 0;
}

/* ---- expected values ---- */

static double expected_conv(const struct op_case *c, uint64_t index)
{
    const int64_t *x = c->in[0].shape, *weight = c->in[1].shape;
    const int64_t *out = c->out[0].shape;
    const int64_t stride = c->ints[FIRST_LIST];
    const int64_t padding = c->ints[FIRST_LIST + 2 * AXES];
    int64_t at = (int64_t)index, column = at % out[3], line, channel, image;

    at /= out[3];
    line = at % out[2];
    at /= out[2];
    channel = at % out[1];
    image = at / out[1];
    double sum = (double)seed_value((uint64_t)channel);
    int64_t first = channel / (out[1] / c->ints[GROUP]) * weight[1];

    for (int64_t i = 0; i < weight[1] * weight[2] * weight[3]; i++) {
        int64_t tap_x = i % weight[3], tap_y = i / weight[3] % weight[2];
        int64_t in_channel = first + i / (weight[3] * weight[2]);
        int64_t in_x = column * stride - padding + tap_x;
        int64_t in_y = line * stride - padding + tap_y;

        if (in_x < 0 || in_x >= x[3] || in_y < 0 || in_y >= x[2])
            continue;
        at = ((image * x[1] + in_channel) * x[2] + in_y) * x[3] + in_x;
        sum += (double)seed_value((uint64_t)at) *
               (double)seed_value(
                   (uint64_t)(channel * weight[1] * weight[2] * weight[3] + i));
    }
    return sum;
}

static double expected_attention(const struct op_case *c, uint64_t index)
{
    const uint64_t width = (uint64_t)c->out[0].shape[3];
    const uint64_t queries = (uint64_t)c->out[0].shape[2];
    const uint64_t keys = (uint64_t)c->in[1].shape[2];
    const uint64_t row = index / width, head = row / queries;
    const uint64_t visible =
        c->ints[0] != 0 ? row % queries + 1 : keys; /* with "causal" */
    double sum = 0, weights = 0;

    for (uint64_t key = 0; key < visible; key++) {
        const uint64_t line = (head * keys + key) * width;
        double score = 0;

        for (uint64_t i = 0; i < width; i++)
            score += (double)seed_value(row * width + i) *
                     (double)seed_value(line + i);
        score = exp(score * c->floats[0]);
        weights += score;
        sum += score * (double)seed_value(line + index % width);
    }
    return sum / weights;
}

/* Returns the result of pooling with the example's windows of 3 x 3 elements, a
 * stride of 2 and a padding of 1, which average_pool does not count. */
static double expected_pool(const struct op_case *c, uint64_t index)
{
    const int64_t rows = c->in[0].shape[2], columns = c->in[0].shape[3];
    const int64_t out_rows = c->out[0].shape[2];
    const int64_t out_columns = c->out[0].shape[3];
    const int64_t x = (int64_t)index % out_columns * 2 - 1;
    const int64_t y = (int64_t)index / out_columns % out_rows * 2 - 1;
    const int64_t plane = (int64_t)index / (out_columns * out_rows);
    double largest = -INFINITY, sum = 0, count = 0;

    for (int64_t i = y < 0 ? 0 : y; i < y + 3 && i < rows; i++)
        for (int64_t j = x < 0 ? 0 : x; j < x + 3 && j < columns; j++) {
            double value = (double)seed_value(
                (uint64_t)((plane * rows + i) * columns + j));

            largest = fmax(largest, value);
            sum += value;
            count++;
        }
    return c->op.id == TANDEM_OP_MAX_POOL ? largest : sum / count;
}

/* Returns scale * (x - mean) / deviation + bias. */
static double expected_channel_norm(const struct op_case *c, uint64_t index)
{
    const int64_t *shape = c->in[0].shape;
    const uint64_t channels = (uint64_t)shape[1];
    const uint64_t plane = (uint64_t)(shape[2] * shape[3]);
    const uint64_t channel = index / plane % channels;
    double parameter = (double)seed_value(channel);
    double mean = parameter, variance = parameter;

    if (c->op.id != TANDEM_OP_BATCH_NORM) {
        uint64_t groups =
            c->op.id == TANDEM_OP_GROUP_NORM ? (uint64_t)c->ints[0] : channels;
        uint64_t count = channels / groups * plane;
        uint64_t first = index / count * count;

        mean = variance = 0;
        for (uint64_t i = 0; i < count; i++)
            mean += (double)seed_value(first + i) / (double)count;
        for (uint64_t i = 0; i < count; i++)
            variance +=
                pow((double)seed_value(first + i) - mean, 2) / (double)count;
    }
    return parameter * ((double)seed_value(index) - mean) /
               sqrt(variance + c->floats[0]) +
           parameter;
}

/* Returns the element of an image of twice the size, with ONNX's coordinates
 * half_pixel and rounding round_prefer_floor. */
static double expected_resize(const struct op_case *c, uint64_t index)
{
    const int64_t rows = c->in[0].shape[2], columns = c->in[0].shape[3];
    const int64_t x = (int64_t)index % (2 * columns);
    const int64_t y = (int64_t)index / (2 * columns) % (2 * rows);
    const int64_t plane = (int64_t)index / (4 * rows * columns) * rows;
    /* The second nearest element, in the direction of the output's odd half. */
    int64_t x2 = x / 2 + (x % 2 != 0 ? 1 : -1);
    int64_t y2 = y / 2 + (y % 2 != 0 ? 1 : -1);
    double sum = 0;

    x2 = x2 < 0 ? 0 : x2 < columns ? x2 : columns - 1;
    y2 = y2 < 0 ? 0 : y2 < rows ? y2 : rows - 1;
    const int64_t xs[] = {x / 2, x2}, ys[] = {y / 2, y2};
    const double weights[] = {0.75, 0.25};

    if (c->ints[RESIZE_MODE] == RESIZE_NEAREST)
        return (double)seed_value(
            (uint64_t)((plane + y / 2) * columns + x / 2));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            sum += weights[i] * weights[j] *
                   (double)seed_value(
                       (uint64_t)((plane + ys[i]) * columns + xs[j]));
    return sum;
}

static double expected_concat(const struct op_case *c, uint64_t index)
{
    const struct tandem_tensor_desc *in = &c->in[0];
    uint64_t length = 1; /* elements of one input that follow each other */

    for (uint32_t axis = (uint32_t)c->ints[0]; axis < in->rank; axis++)
        length *= (uint64_t)in->shape[axis];
    return (double)seed_value(index / (2 * length) * length + index % length);
}

double layer_expected(const struct op_case *c, uint64_t index)
{
    switch (c->info->op_class) {
    case TANDEM_CLASS_CONV:
        return expected_conv(c, index);
    case TANDEM_CLASS_ATTENTION:
        return expected_attention(c, index);
    case TANDEM_CLASS_POOL:
        return expected_pool(c, index);
    case TANDEM_CLASS_CHANNEL_NORM:
        return expected_channel_norm(c, index);
    case TANDEM_CLASS_RESIZE:
        return expected_resize(c, index);
    default:
        return expected_concat(c, index);
    }
}
