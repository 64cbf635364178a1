/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the attributes of windows; see lower_window.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_window.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>

void window_axis_pad(struct window_axis *axis, int64_t total, bool lower)
{
    total = total > 0 ? total : 0;
    axis->begin = lower ? (total + 1) / 2 : total / 2;
    axis->end = total - axis->begin;
}

bool window_axis_read(struct lowering *l, uint32_t i, uint32_t spatial,
                      int64_t length, struct window_axis *out)
{
    bool lower;

    out->stride = graph_list_integer(l->node, "strides", i, 1);
    out->dilation = graph_list_integer(l->node, "dilations", i, 1);
    if (out->kernel < 1 || out->stride < 1 || out->dilation < 1 ||
        out->kernel > INT32_MAX || out->stride > INT32_MAX ||
        out->dilation > INT32_MAX)
        return lower_fail(l,
                          "axis %" PRIu32 " has kernel %" PRId64
                          ", stride %" PRId64 " and dilation %" PRId64,
                          2 + i, out->kernel, out->stride, out->dilation);
    /* There are then length / stride windows, rounded up. */
    if (node_pads_same(l->node, &lower)) {
        const int64_t windows = (length + out->stride - 1) / out->stride;

        window_axis_pad(out,
                        (windows - 1) * out->stride +
                            (out->kernel - 1) * out->dilation + 1 - length,
                        lower);
        return true;
    }
    out->begin = out->end = 0;
    if (node_pads_explicitly(l->node)) {
        out->begin = graph_list_integer(l->node, "pads", i, 0);
        out->end = graph_list_integer(l->node, "pads", spatial + i, 0);
    }
    return true;
}

bool window_axis_count(struct lowering *l, const struct window_axis *axis,
                       int64_t length, bool ceil_mode, int64_t *out)
{
    const int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    const int64_t rest = length + axis->begin + axis->end - span;

    if (axis->begin < 0 || axis->end < 0)
        return lower_fail(l,
                          "an axis of %" PRId64 " is padded by %" PRId64
                          " and %" PRId64,
                          length, axis->begin, axis->end);
    *out = rest < 0 ? 0 : rest / axis->stride + 1;
    if (ceil_mode && rest > -axis->stride && rest % axis->stride != 0 &&
        *out * axis->stride < length + axis->begin)
        ++*out;
    return true;
}

void window_lists_set(int64_t *lists, uint32_t i, uint32_t spatial,
                      const struct window_axis *axis)
{
    lists[i] = axis->stride;
    lists[spatial + i] = axis->dilation;
    lists[2 * spatial + i] = axis->begin;
    lists[3 * spatial + i] = axis->end;
}
