/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers pooling operators; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/lower_window.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

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
        struct window_axis axis = {
            .kernel = graph_list_integer(l->node, "kernel_shape", i, 0)};

        if (!window_axis_read(l, i, spatial, x->view.shape[2 + i], &axis) ||
            !window_axis_count(l, &axis, x->view.shape[2 + i], ceil_mode,
                               &shape[2 + i]))
            return false;
        lists[i] = axis.kernel;
        window_lists_set(&lists[spatial], i, spatial, &axis);
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
