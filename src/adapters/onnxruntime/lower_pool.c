/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers pooling operators; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

#define MAX_SPATIAL_AXES 3u

/* A spatial axis of a window, with the names that ONNX uses. */
struct pool_axis {
    int64_t kernel, stride, dilation, begin, end;
};

/* Returns number `i` of an attribute that is a list, or the default. */
static int64_t list_entry(const struct lowering *l, const char *name,
                          uint32_t i, int64_t otherwise)
{
    const struct graph_attribute *list = graph_attribute(l->node, name);

    return list != NULL && i < list->integer_count ? list->integers[i]
                                                   : otherwise;
}

/* Sets the padding for the attribute auto_pad: the output then has
 * length / stride elements, rounded up. */
static void axis_pad(struct pool_axis *axis, int64_t length, bool lower)
{
    const int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    const int64_t windows = (length + axis->stride - 1) / axis->stride;
    int64_t total = (windows - 1) * axis->stride + span - length;

    total = total > 0 ? total : 0;
    axis->begin = lower ? (total + 1) / 2 : total / 2;
    axis->end = total - axis->begin;
}

/* Reads the attributes of a spatial axis. */
static bool axis_read(struct lowering *l, uint32_t i, uint32_t spatial,
                      int64_t length, struct pool_axis *out)
{
    const struct graph_attribute *auto_pad =
        graph_attribute(l->node, "auto_pad");
    const char *mode = auto_pad != NULL && auto_pad->string != NULL
                           ? auto_pad->string
                           : "NOTSET";

    out->kernel = list_entry(l, "kernel_shape", i, 0);
    out->stride = list_entry(l, "strides", i, 1);
    out->dilation = list_entry(l, "dilations", i, 1);
    if (out->kernel < 1 || out->stride < 1 || out->dilation < 1 ||
        out->kernel > INT32_MAX || out->stride > INT32_MAX ||
        out->dilation > INT32_MAX)
        return lower_fail(l,
                          "axis %" PRIu32 " has kernel %" PRId64
                          ", stride %" PRId64 " and dilation %" PRId64,
                          2 + i, out->kernel, out->stride, out->dilation);
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
        axis_pad(out, length, strcmp(mode, "SAME_LOWER") == 0);
        return true;
    }
    out->begin = out->end = 0;
    if (strcmp(mode, "NOTSET") == 0) {
        out->begin = list_entry(l, "pads", i, 0);
        out->end = list_entry(l, "pads", spatial + i, 0);
    }
    return true;
}

/* Computes the number of windows. */
static bool axis_windows(struct lowering *l, const struct pool_axis *axis,
                         int64_t length, bool ceil_mode, int64_t *out)
{
    const int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    const int64_t rest = length + axis->begin + axis->end - span;

    if (axis->begin < 0 || axis->end < 0 || axis->begin >= span ||
        axis->end >= span || rest < 0)
        return lower_fail(l,
                          "a window of %" PRId64 " elements does not fit an "
                          "axis of %" PRId64 ", padded by %" PRId64
                          " and %" PRId64,
                          span, length, axis->begin, axis->end);
    *out = rest / axis->stride + 1;
    if (ceil_mode && rest % axis->stride != 0 &&
        *out * axis->stride < length + axis->begin)
        ++*out;
    return true;
}

bool lower_pool(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), outputs[2];
    struct form_step step = step_make(l, l->node->op->tandem_op);
    const bool average = step.op == TANDEM_OP_AVERAGE_POOL;
    const bool ceil_mode = graph_integer(l->node, "ceil_mode", 0) != 0;
    const bool has_indices =
        l->node->output_count > 1 && l->node->outputs[1] != NO_VALUE;
    const uint32_t spatial = x->view.rank - 2, first = average ? 2 : 1;
    int64_t shape[TANDEM_MAX_RANK], *lists = &step.ints[first];

    if (x->view.rank < 3 || spatial > MAX_SPATIAL_AXES)
        return lower_fail(l, "the input has rank %" PRIu32, x->view.rank);
    memcpy(shape, x->view.shape, sizeof(shape));
    step.ints[0] = ceil_mode;
    if (average)
        step.ints[1] = graph_integer(l->node, "count_include_pad", 0) != 0;
    step.int_count = first + 5 * spatial;
    for (uint32_t i = 0; i < spatial; i++) {
        struct pool_axis axis = {0};

        if (!axis_read(l, i, spatial, x->view.shape[2 + i], &axis) ||
            !axis_windows(l, &axis, x->view.shape[2 + i], ceil_mode,
                          &shape[2 + i]))
            return false;
        lists[i] = axis.kernel;
        lists[spatial + i] = axis.stride;
        lists[2 * spatial + i] = axis.dilation;
        lists[3 * spatial + i] = axis.begin;
        lists[4 * spatial + i] = axis.end;
    }
    if (!lower_new(l, TANDEM_F32, x->view.rank, shape, &outputs[0]) ||
        !step_add_input(l, &step, x))
        return false;
    if (!has_indices)
        return lower_step(l, &step, &outputs[0]) &&
               lower_output(l, 0, &outputs[0]);
    step.op = TANDEM_OP_MAX_POOL_INDICES;
    return lower_new(l, TANDEM_I64, x->view.rank, shape, &outputs[1]) &&
           lower_step_outputs(l, &step, outputs, 2) &&
           lower_output(l, 0, &outputs[0]) && lower_output(l, 1, &outputs[1]);
}

/* Global pooling reduces the spatial axes. */
bool lower_global_pool(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct form_step step = step_make(l, l->node->op->tandem_op);
    int64_t shape[TANDEM_MAX_RANK];

    if (x->view.rank < 2)
        return lower_fail(l, "the input has rank %" PRIu32, x->view.rank);
    for (uint32_t i = 0; i < x->view.rank; i++) {
        shape[i] = i < 2 ? x->view.shape[i] : 1;
        step.ints[0] |= i < 2 ? 0 : (int64_t)1 << i;
    }
    if (x->view.rank == 2)
        return lower_output(l, 0, x);
    step.ints[1] = 1;
    step.int_count = 2;
    return lower_new(l, TANDEM_F32, x->view.rank, shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}
