/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the attributes of operators whose windows slide over spatial axes. */
#ifndef TANDEM_ONNXRUNTIME_LOWER_WINDOW_H
#define TANDEM_ONNXRUNTIME_LOWER_WINDOW_H

#include "adapters/onnxruntime/lower.h"
#include "adapters/onnxruntime/onnx_operator.h"

/* A spatial axis of a window, with the names that ONNX uses. */
struct window_axis {
    int64_t kernel, stride, dilation, begin, end;
};

/* Divides the padding `total` between both ends. */
void window_axis_pad(struct window_axis *axis, int64_t total, bool lower);

/* Reads strides, dilations and padding of spatial axis `i`, which has `length`
 * elements. The caller has set out->kernel. */
bool window_axis_read(struct lowering *l, uint32_t i, uint32_t spatial,
                      int64_t length, struct window_axis *out);
/* Computes the number of windows, 0 if the window is longer than the axis. */
bool window_axis_count(struct lowering *l, const struct window_axis *axis,
                       int64_t length, bool ceil_mode, int64_t *out);
/* Stores an axis in the attributes strides, dilations, begins and ends. */
void window_lists_set(int64_t *lists, uint32_t i, uint32_t spatial,
                      const struct window_axis *axis);

#endif
