/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ResNet-50 and MobileNet v2 and v3 (large), with the batch norms folded into
 * the weights of the convolutions, like tests/onnxruntime/vision_models.py.
 */
#include <config.h>

#include "network_layers.h"
#include "network_models.h"

#define CLASSES 1000
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct activation relu = {.op = TANDEM_OP_RELU};
static const struct activation relu6 = {.op = TANDEM_OP_CLIP,
                                        .parameters = {0, 6}};
static const struct activation hardswish = {.op = TANDEM_OP_HARDSWISH};
static const struct activation hardsigmoid = {.op = TANDEM_OP_HARDSIGMOID,
                                              .parameters = {1.0 / 6, 0.5}};

static struct value images(struct network *n, const int64_t *shape)
{
    return network_random(n, 0, 1, 4, shape);
}

/* Returns the averages of the channels, [n][c]. */
static struct value pooled(struct network *n, struct value x)
{
    return value_reshape(network_average(n, x), AXES(x.shape[0], x.shape[1]));
}

/* ---- ResNet-50 ---- */

static struct value bottleneck(struct network *n, struct value x, int width,
                               int stride, bool is_first)
{
    struct value shortcut = x, out;

    out = network_conv(
        n, x, &(struct convolution){.outputs = width, .activation = relu});
    out = network_conv(n, out,
                       &(struct convolution){.outputs = width,
                                             .window = 3,
                                             .stride = stride,
                                             .activation = relu});
    if (is_first)
        shortcut = network_conv(
            n, x,
            &(struct convolution){.outputs = 4 * width, .stride = stride});
    return network_conv(n, out,
                        &(struct convolution){.outputs = 4 * width,
                                              .activation = relu,
                                              .residual = &shortcut});
}

void resnet50_build(struct network *n, const int64_t *shape, bool tiny)
{
    static const int blocks[] = {3, 4, 6, 3};
    struct value x = network_conv(
        n, images(n, shape),
        &(struct convolution){
            .outputs = 64, .window = 7, .stride = 2, .activation = relu});

    x = network_max_pool(n, x, 3, 2, 1);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < (tiny ? 1 : blocks[stage]); i++)
            x = bottleneck(n, x, (tiny ? 8 : 64) << stage,
                           stage > 0 && i == 0 ? 2 : 1, i == 0);
    network_linear(n, pooled(n, x),
                   &(struct linear){.outputs = CLASSES, .transposed = true});
}

/* ---- MobileNet v2 ---- */

/* Adds the last convolution of a block, and the block's input if the shapes are
 * equal. */
static struct value project(struct network *n, struct value out, struct value x,
                            int channels, int stride)
{
    const bool adds = stride == 1 && x.shape[1] == channels;

    return network_conv(n, out,
                        &(struct convolution){.outputs = channels,
                                              .residual = adds ? &x : NULL});
}

void mobilenet_v2_build(struct network *n, const int64_t *shape, bool tiny)
{
    static const struct {
        int expansion, channels, blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const struct convolution first = {
        .outputs = 32, .window = 3, .stride = 2, .activation = relu6};
    struct value x = network_conv(n, images(n, shape), &first);

    for (size_t i = 0; i < (tiny ? 3 : COUNT(stages)); i++)
        for (int block = 0; block < (tiny ? 2 : stages[i].blocks); block++) {
            const int64_t hidden = x.shape[1] * stages[i].expansion;
            const int stride = block == 0 ? stages[i].stride : 1;
            struct value out = x;

            if (hidden != x.shape[1])
                out = network_conv(n, x,
                                   &(struct convolution){.outputs = hidden,
                                                         .activation = relu6});
            out = network_conv(n, out,
                               &(struct convolution){.outputs = hidden,
                                                     .window = 3,
                                                     .stride = stride,
                                                     .groups = hidden,
                                                     .activation = relu6});
            x = project(n, out, x, stages[i].channels, stride);
        }
    x = network_conv(
        n, x, &(struct convolution){.outputs = 1280, .activation = relu6});
    network_linear(n, pooled(n, x),
                   &(struct linear){.outputs = CLASSES, .transposed = true});
}

/* ---- MobileNet v3 ---- */

/* Rounds to a multiple of 8, but not below 0.9 of the number. */
static int64_t divisible_by_8(double number)
{
    const int64_t near = (int64_t)(number + 4) / 8 * 8;
    const int64_t rounded = near > 8 ? near : 8;

    return (double)rounded < 0.9 * number ? rounded + 8 : rounded;
}

static struct value squeeze_and_excite(struct network *n, struct value x)
{
    const int64_t channels = x.shape[1];
    const struct convolution squeeze = {
        .outputs = divisible_by_8((double)channels / 4), .activation = relu};
    const struct convolution excite = {.outputs = channels,
                                       .activation = hardsigmoid};
    struct value scale = network_conv(n, network_average(n, x), &squeeze);

    scale = network_conv(n, scale, &excite);
    return network_binary(n, TANDEM_OP_MUL, x, scale);
}

struct mobile_block {
    int window, hidden, channels;
    bool squeezes, is_hardswish;
    int stride;
};

static struct value mobile_block(struct network *n, struct value x,
                                 const struct mobile_block *block)
{
    const struct activation activation = block->is_hardswish ? hardswish : relu;
    const struct convolution expand = {.outputs = block->hidden,
                                       .activation = activation};
    const struct convolution depthwise = {.outputs = block->hidden,
                                          .window = block->window,
                                          .stride = block->stride,
                                          .groups = block->hidden,
                                          .activation = activation};
    struct value out = x;

    if (block->hidden != x.shape[1])
        out = network_conv(n, out, &expand);
    out = network_conv(n, out, &depthwise);
    if (block->squeezes)
        out = squeeze_and_excite(n, out);
    return project(n, out, x, block->channels, block->stride);
}

void mobilenet_v3_build(struct network *n, const int64_t *shape, bool tiny)
{
    static const struct mobile_block blocks[] = {
        {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2},
        {3, 72, 24, false, false, 1}, {5, 72, 40, true, false, 2},
        {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
        {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1},
        {3, 184, 80, false, true, 1}, {3, 184, 80, false, true, 1},
        {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
        {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1},
        {5, 960, 160, true, true, 1},
    };
    const struct convolution first = {
        .outputs = 16, .window = 3, .stride = 2, .activation = hardswish};
    const struct convolution last = {.outputs = 960, .activation = hardswish};
    struct value x = network_conv(n, images(n, shape), &first);

    for (size_t i = 0; i < (tiny ? 7 : COUNT(blocks)); i++)
        x = mobile_block(n, x, &blocks[i]);
    x = network_conv(n, x, &last);
    x = network_linear(n, pooled(n, x),
                       &(struct linear){.outputs = 1280,
                                        .transposed = true,
                                        .activation = hardswish});
    network_linear(n, x,
                   &(struct linear){.outputs = CLASSES, .transposed = true});
}
