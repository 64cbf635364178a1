/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as a product of matrices: for each image and group, output =
 * weight * patches. `weight` has one row per output channel of the group, and
 * `patches` one column per element of the output's spatial axes. Both have
 * `depth` elements along the axis that the product sums up: the elements of the
 * window in each input channel of the group. Pure functions. */
#ifndef TANDEM_COMMON_OP_CONV_H
#define TANDEM_COMMON_OP_CONV_H

#include "common/op_activation.h"
#include "common/op_window.h"

/* Strides of a tensor, in elements; the innermost spatial axis comes first. */
struct conv_strides {
    int64_t batch, channel, axis[MAX_SPATIAL_AXES];
};

struct conv_problem {
    struct window window;
    bool is_transposed; /* conv_transpose */
    int64_t batch, groups;
    int64_t rows;     /* output channels of a group */
    int64_t channels; /* input channels of a group */
    int64_t taps;     /* elements of a window in one channel */
    int64_t depth;    /* channels * taps */
    int64_t columns;  /* elements of the output's spatial axes */
    struct conv_strides x, out, residual;
    /* Strides of the weight: between rows of a group, channels of a group,
     * taps along each axis, and groups. */
    int64_t weight_row, weight_channel, weight_tap[MAX_SPATIAL_AXES];
    int64_t weight_group;
    int64_t bias_stride;
    const struct tandem_tensor_desc *bias_tensor,
        *residual_tensor; /* or NULL */
    struct activation activation;
};

/* Describes a checked call. */
void conv_problem_read(struct conv_problem *out, const struct tandem_op *op,
                       const struct tandem_tensor_desc *const *inputs,
                       uint32_t input_count,
                       const struct tandem_tensor_desc *output);

/* Returns true if the spatial axes of a tensor are one axis with stride
 * axis[0], so that element i of a channel is at i * axis[0]. */
bool conv_strides_are_flat(const struct conv_strides *strides,
                           const int64_t lengths[MAX_SPATIAL_AXES]);

/* Returns the position in the input that tap `tap` of the window at output
 * element `i` reads, or -1 if that is padding. */
static inline int64_t conv_input_position(const struct window_axis *axis,
                                          bool is_transposed, int64_t i,
                                          int64_t tap)
{
    int64_t at;
    if (is_transposed) {
        at = i + axis->begin - tap * axis->dilation;
        if (at < 0 || at % axis->stride != 0)
            return -1;
        at /= axis->stride;
    } else {
        at = i * axis->stride - axis->begin + tap * axis->dilation;
    }
    return at >= 0 && at < axis->in ? at : -1;
}

#endif
