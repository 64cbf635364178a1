/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers convolutions; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/lower_window.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

/* Integer attributes that the lists follow. */
enum { GROUP, ACTIVATION, RESIDUAL, TABLE_INTS };

/* Sets padding and length of an axis of ConvTranspose. */
static bool transpose_axis(struct lowering *l, uint32_t i,
                           struct window_axis *axis, int64_t length,
                           int64_t more, int64_t *out_length)
{
    const int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    bool lower;

    /* The output then has length * stride elements. */
    if (node_pads_same(l->node, &lower))
        window_axis_pad(axis, span - axis->stride + more, lower);
    *out_length =
        (length - 1) * axis->stride + span + more - axis->begin - axis->end;
    if (axis->begin >= 0 && axis->end >= 0 && length > 0 && *out_length >= 0)
        return true;
    return lower_fail(l,
                      "axis %" PRIu32 " has %" PRId64
                      " elements and is padded by %" PRId64 " and %" PRId64,
                      2 + i, length, axis->begin, axis->end);
}

/* Sets the lists of the step, and the lengths of the output. */
static bool axes_lower(struct lowering *l, const struct operand *x,
                       const struct operand *weight, struct form_step *step,
                       int64_t *shape)
{
    const bool transpose = step->op == TANDEM_OP_CONV_TRANSPOSE;
    const uint32_t spatial = x->view.rank - 2;
    int64_t *lists = &step->ints[TABLE_INTS];

    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t length = x->view.shape[2 + i];
        const int64_t more =
            graph_list_integer(l->node, "output_padding", i, 0);
        struct window_axis axis = {.kernel = weight->view.shape[2 + i]};

        if (!window_axis_read(l, i, spatial, length, &axis) ||
            !(transpose
                  ? transpose_axis(l, i, &axis, length, more, &shape[2 + i])
                  : window_axis_count(l, &axis, length, false, &shape[2 + i])))
            return false;
        window_lists_set(lists, i, spatial, &axis);
        if (transpose)
            lists[4 * spatial + i] = more;
    }
    step->int_count = TABLE_INTS + (transpose ? 5 : 4) * spatial;
    return true;
}

static bool shapes_are_equal(const struct operand *a, const struct operand *b)
{
    return a->view.rank == b->view.rank &&
           memcmp(a->view.shape, b->view.shape,
                  a->view.rank * sizeof(a->view.shape[0])) == 0;
}

bool lower_conv(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct operand *weight = lower_input_operand(l, 1);
    struct operand *bias = lower_input_operand(l, 2);
    struct operand *residual = lower_input_operand(l, 3);
    struct form_step step = step_make(l, l->node->op->tandem_op);
    const bool transpose = step.op == TANDEM_OP_CONV_TRANSPOSE;
    const int64_t group = graph_integer(l->node, "group", 1);
    int64_t shape[TANDEM_MAX_RANK];
    uint32_t activation = l->node->epilogue.activation;
    double parameters[2];
    bool fits;

    memcpy(parameters, l->node->epilogue.parameters, sizeof(parameters));
    if (activation == TANDEM_OP_INVALID)
        fused_conv_activation(l->node, &activation, parameters);

    if (x->view.rank < 3 || x->view.rank > 2 + MAX_SPATIAL_AXES ||
        weight->view.rank != x->view.rank || group < 1 ||
        x->view.shape[1] % group != 0)
        return lower_fail(l,
                          "input of rank %" PRIu32 ", weight of rank %" PRIu32
                          ", group %" PRId64,
                          x->view.rank, weight->view.rank, group);
    shape[0] = x->view.shape[0];
    shape[1] =
        transpose ? weight->view.shape[1] * group : weight->view.shape[0];
    if (!axes_lower(l, x, weight, &step, shape) ||
        !lower_new(l, TANDEM_F32, x->view.rank, shape, &out))
        return false;
    /* A residual that broadcasts is added by an operator of its own. */
    fits = residual == NULL || shapes_are_equal(residual, &out);
    step.ints[GROUP] = group;
    step.ints[ACTIVATION] = fits ? activation : TANDEM_OP_INVALID;
    step.ints[RESIDUAL] = residual != NULL && fits;
    memcpy(step.floats, parameters, sizeof(parameters));
    step.float_count = 2;
    if (!step_add_input(l, &step, x) || !step_add_input(l, &step, weight) ||
        (bias != NULL && !step_add_input(l, &step, bias)) ||
        (step.ints[RESIDUAL] != 0 && !step_add_input(l, &step, residual)) ||
        !lower_step(l, &step, &out))
        return false;
    if (!fits && (!lower_binary(l, TANDEM_OP_ADD, &out, residual, &out) ||
                  (activation != TANDEM_OP_INVALID &&
                   !lower_parametric(l, activation, parameters, &out, &out))))
        return false;
    return lower_output(l, 0, &out);
}
