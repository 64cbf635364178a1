/* SPDX-License-Identifier: Apache-2.0 */
/* The object detector YOLOv8n, as in tests/onnxruntime/vision_models.py. */
#include <config.h>

#include "network_layers.h"
#include "network_models.h"

#include <stdlib.h>

#define CLASSES 80
#define BINS 16 /* of the distribution of a box's side */
#define LEVELS 3
#define MAX_PARTS 4

static const int level_strides[LEVELS] = {8, 16, 32};

static struct value conv_silu(struct network *n, struct value x,
                              int64_t outputs, int window, int stride)
{
    return network_conv(
        n, x,
        &(struct convolution){.outputs = outputs,
                              .window = window,
                              .stride = stride,
                              .activation.op = TANDEM_OP_SWISH});
}

/* A block whose intermediate results are all concatenated. */
static struct value c2f(struct network *n, struct value x, int64_t outputs,
                        uint32_t count, bool has_shortcut)
{
    const int64_t half = outputs / 2;
    struct value parts[MAX_PARTS];
    struct value whole = conv_silu(n, x, outputs, 1, 1);

    parts[0] = value_slice(whole, 1, 0, half);
    parts[1] = value_slice(whole, 1, half, half);
    for (uint32_t i = 2; i < 2 + count; i++) {
        parts[i] = conv_silu(n, parts[i - 1], half, 3, 1);
        parts[i] = conv_silu(n, parts[i], half, 3, 1);
        if (has_shortcut)
            parts[i] = network_binary(n, TANDEM_OP_ADD, parts[i], parts[i - 1]);
    }
    return conv_silu(n, network_concat(n, 1, 2 + count, parts), outputs, 1, 1);
}

static struct value pyramid_pooling(struct network *n, struct value x,
                                    int64_t outputs)
{
    struct value parts[4];

    parts[0] = conv_silu(n, x, x.shape[1] / 2, 1, 1);
    for (uint32_t i = 1; i < 4; i++)
        parts[i] = network_max_pool(n, parts[i - 1], 5, 1, 2);
    return conv_silu(n, network_concat(n, 1, 4, parts), outputs, 1, 1);
}

static struct value concat_channels(struct network *n, struct value a,
                                    struct value b)
{
    return network_concat(n, 1, 2, (const struct value[]){a, b});
}

/* ---- the head ---- */

/* Returns the boxes and classes of an image, [1][64 + 80][h * w]. */
static struct value detect_level(struct network *n, struct value x)
{
    struct value box = conv_silu(n, conv_silu(n, x, 64, 3, 1), 64, 3, 1);
    struct value kind =
        conv_silu(n, conv_silu(n, x, CLASSES, 3, 1), CLASSES, 3, 1);

    box = network_conv(n, box, &(struct convolution){.outputs = 4 * BINS});
    kind = network_conv(n, kind, &(struct convolution){.outputs = CLASSES});
    return value_reshape(concat_channels(n, box, kind),
                         AXES(1, 4 * BINS + CLASSES, x.shape[2] * x.shape[3]));
}

/* The numbers of the bins, with which a convolution computes their mean. */
static struct value bin_numbers(struct network *n)
{
    float *numbers = malloc(BINS * sizeof *numbers);

    for (int i = 0; numbers != NULL && i < BINS; i++)
        numbers[i] = (float)i;
    return network_numbers(n, numbers, AXES(1, BINS, 1, 1));
}

/* The centres of the cells of all levels, [1][2][boxes]. */
static struct value cell_centres(struct network *n, int64_t side, int64_t boxes)
{
    float *numbers = malloc((size_t)(2 * boxes) * sizeof *numbers);
    int64_t box = 0;

    for (int level = 0; numbers != NULL && level < LEVELS; level++) {
        const int64_t cells = side / level_strides[level];

        for (int64_t i = 0; i < cells * cells; i++, box++) {
            numbers[box] = (float)(i % cells) + 0.5f;
            numbers[boxes + box] = (float)(i / cells) + 0.5f;
        }
    }
    return network_numbers(n, numbers, AXES(1, 2, boxes));
}

/* The stride of each box, [1][boxes]. */
static struct value box_strides(struct network *n, int64_t side, int64_t boxes)
{
    float *numbers = malloc((size_t)boxes * sizeof *numbers);
    int64_t box = 0;

    for (int level = 0; numbers != NULL && level < LEVELS; level++) {
        const int64_t cells = side / level_strides[level];

        for (int64_t i = 0; i < cells * cells; i++)
            numbers[box++] = (float)level_strides[level];
    }
    return network_numbers(n, numbers, AXES(1, boxes));
}

/* Returns centre and size of each box from its distances to a cell's centre,
 * [1][4][boxes]. */
static struct value boxes_decode(struct network *n, struct value distances,
                                 int64_t side)
{
    const int64_t boxes = distances.shape[2];
    struct value centres = cell_centres(n, side, boxes);
    struct value low = network_binary(n, TANDEM_OP_SUB, centres,
                                      value_slice(distances, 1, 0, 2));
    struct value high = network_binary(n, TANDEM_OP_ADD, centres,
                                       value_slice(distances, 1, 2, 2));
    struct value centre =
        network_divide(n, network_binary(n, TANDEM_OP_ADD, low, high), 2);
    struct value size = network_binary(n, TANDEM_OP_SUB, high, low);

    return network_binary(n, TANDEM_OP_MUL, concat_channels(n, centre, size),
                          box_strides(n, side, boxes));
}

static void detect(struct network *n, const struct value *maps, int64_t side)
{
    struct value levels[LEVELS], every, box, kind;
    int64_t boxes;

    for (int i = 0; i < LEVELS; i++)
        levels[i] = detect_level(n, maps[i]);
    every = network_concat(n, 2, LEVELS, levels);
    boxes = every.shape[2];
    box = value_reshape(value_slice(every, 1, 0, 4 * BINS),
                        AXES(1, 4, BINS, boxes));
    kind = value_slice(every, 1, 4 * BINS, CLASSES);
    box = network_softmax(n, value_transpose(box, 1, 2), 1);
    box = network_conv_weight(n, box, bin_numbers(n));
    box = boxes_decode(n, value_reshape(box, AXES(1, 4, boxes)), side);
    concat_channels(n, box, network_unary(n, TANDEM_OP_SIGMOID, kind));
}

void yolov8n_build(struct network *n, const int64_t *shape, bool tiny)
{
    const int64_t scale = tiny ? 4 : 1; /* fewer channels */
    const uint32_t twice = tiny ? 1 : 2;
    struct value x = network_random(n, 0, 1, 4, shape);
    struct value fine, middle, coarse, down;

    x = conv_silu(n, x, 16 / scale, 3, 2);
    x = c2f(n, conv_silu(n, x, 32 / scale, 3, 2), 32 / scale, 1, true);
    fine = c2f(n, conv_silu(n, x, 64 / scale, 3, 2), 64 / scale, twice, true);
    middle =
        c2f(n, conv_silu(n, fine, 128 / scale, 3, 2), 128 / scale, twice, true);
    coarse =
        c2f(n, conv_silu(n, middle, 256 / scale, 3, 2), 256 / scale, 1, true);
    coarse = pyramid_pooling(n, coarse, 256 / scale);
    middle = c2f(n, concat_channels(n, network_upsample(n, coarse), middle),
                 128 / scale, 1, false);
    fine = c2f(n, concat_channels(n, network_upsample(n, middle), fine),
               64 / scale, 1, false);
    down = conv_silu(n, fine, 64 / scale, 3, 2);
    middle = c2f(n, concat_channels(n, down, middle), 128 / scale, 1, false);
    down = conv_silu(n, middle, 128 / scale, 3, 2);
    coarse = c2f(n, concat_channels(n, down, coarse), 256 / scale, 1, false);
    detect(n, (const struct value[]){fine, middle, coarse}, shape[2]);
}
