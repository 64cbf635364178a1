/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers reductions, cumsum, topk, softmax and normalizations; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Shape after a reduction over the axes in the mask. */
static uint32_t reduced_shape(const struct form_view *view, uint32_t mask,
                              bool keep, int64_t *out)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < view->rank; i++) {
        if (!(mask >> i & 1))
            out[rank++] = view->shape[i];
        else if (keep)
            out[rank++] = 1;
    }
    return rank;
}

/* Appends a reduction of x over the axes in the mask. */
static bool append_reduce(struct lowering *l, uint32_t op, struct operand *x,
                          uint32_t mask, bool keep, uint32_t dtype,
                          struct operand *out)
{
    struct form_step step = step_make(l, op);
    int64_t shape[TANDEM_MAX_RANK];
    const uint32_t rank = reduced_shape(&x->view, mask, keep, shape);

    step.ints[0] = mask;
    step.ints[1] = keep;
    step.int_count = 2;
    return lower_new(l, dtype, rank, shape, out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, out);
}

/* Result of a reduction of no elements, or NaN if the operator of Tandem
 * computes it. */
static double empty_reduction(uint32_t op)
{
    if (op == TANDEM_OP_REDUCE_MAX)
        return -INFINITY;
    return op == TANDEM_OP_REDUCE_MIN ? INFINITY : NAN;
}

/* Applies what follows or precedes the reduction in Tandem's terms: L1 sums
 * magnitudes, LogSum takes the logarithm of a sum. */
static bool reduce_over(struct lowering *l, struct operand *x, uint32_t mask,
                        bool keep, struct operand *out)
{
    const uint32_t op = l->node->op->tandem_op;
    const bool l1 = strcmp(l->node->type, "ReduceL1") == 0;
    const bool log_sum = strcmp(l->node->type, "ReduceLogSum") == 0;
    const double empty = empty_reduction(op);
    struct operand magnitude;

    if (operand_elements(x) == 0 && !isnan(empty)) {
        int64_t shape[TANDEM_MAX_RANK];
        const uint32_t rank = reduced_shape(&x->view, mask, keep, shape);

        return lower_new_constant(l, empty, rank, shape, out);
    }
    if (l1) {
        if (!lower_unary(l, TANDEM_OP_ABS, x, &magnitude))
            return false;
        x = &magnitude;
    }
    if (!append_reduce(l, op, x, mask, keep, TANDEM_F32, out))
        return false;
    return !log_sum || lower_unary(l, TANDEM_OP_LOG, out, out);
}

/* Reduces each element alone, along a new last axis of length 1. */
static bool reduce_no_axes(struct lowering *l, struct operand *x)
{
    struct operand apart, out;
    int64_t shape[TANDEM_MAX_RANK];

    if (x->view.rank == TANDEM_MAX_RANK)
        return lower_fail(l, "a reduction of no axes needs rank 7 or less");
    memcpy(shape, x->view.shape, x->view.rank * sizeof(shape[0]));
    shape[x->view.rank] = 1;
    return lower_reshape(l, x, x->view.rank + 1, shape, &apart) &&
           reduce_over(l, &apart, 1u << x->view.rank, false, &out) &&
           lower_output(l, 0, &out);
}

bool lower_reduce(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out = *x;
    const bool keep = graph_integer(l->node, "keepdims", 1) != 0;
    uint32_t mask;
    bool set;

    if (!axes_read(l, 1, x->view.rank, &set, &mask))
        return false;
    /* No axes means all axes, or none if noop_with_empty_axes is set. */
    if (mask == 0) {
        if (graph_integer(l->node, "noop_with_empty_axes", 0) != 0)
            return reduce_no_axes(l, x);
        mask = (uint32_t)((1u << x->view.rank) - 1);
    }
    return reduce_over(l, x, mask, keep, &out) && lower_output(l, 0, &out);
}

bool lower_arg_reduce(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    const bool keep = graph_integer(l->node, "keepdims", 1) != 0;
    uint32_t axis = 0;

    if (x->view.rank > 0 &&
        !axis_normalize(l, graph_integer(l->node, "axis", 0), x->view.rank,
                        &axis))
        return false;
    return append_reduce(l, l->node->op->tandem_op, x,
                         x->view.rank > 0 ? 1u << axis : 0, keep, TANDEM_I64,
                         &out) &&
           lower_output(l, 0, &out);
}

/* CumSum.  Its second input is the axis. */
bool lower_cumsum(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct form_step step = step_make(l, TANDEM_OP_CUMSUM);
    int64_t count;
    const int64_t *axes = lower_integers(l, lower_input_operand(l, 1), &count);
    uint32_t axis;

    if (axes == NULL)
        return false;
    if (count != 1)
        return lower_fail(l, "expected one axis, not %" PRId64, count);
    if (!axis_normalize(l, axes[0], x->view.rank, &axis))
        return false;
    step.ints[0] = axis;
    step.ints[1] = graph_integer(l->node, "exclusive", 0) != 0;
    step.ints[2] = graph_integer(l->node, "reverse", 0) != 0;
    step.int_count = 3;
    return lower_new(l, TANDEM_F32, x->view.rank, x->view.shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}

/* TopK.  The number of elements is an attribute before version 10, then the
 * second input. */
bool lower_topk(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out[2];
    struct operand *k_input = lower_input_operand(l, 1);
    struct form_step step = step_make(l, TANDEM_OP_TOPK);
    int64_t k = graph_integer(l->node, "k", 0), count = 1;
    int64_t shape[TANDEM_MAX_RANK];
    const int64_t *content = &k;
    uint32_t axis;

    if (k_input != NULL)
        content = lower_integers(l, k_input, &count);
    if (content == NULL)
        return false;
    if (count != 1)
        return lower_fail(l, "expected one k, not %" PRId64, count);
    k = *content;
    if (!axis_normalize(l, graph_integer(l->node, "axis", -1), x->view.rank,
                        &axis))
        return false;
    if (k < 0 || k > x->view.shape[axis])
        return lower_fail(l,
                          "k is %" PRId64 "; the axis has %" PRId64 " elements",
                          k, x->view.shape[axis]);
    memcpy(shape, x->view.shape, sizeof(shape));
    shape[axis] = k;
    step.ints[0] = axis;
    step.ints[1] = k;
    step.ints[2] = graph_integer(l->node, "largest", 1) != 0;
    step.ints[3] = graph_integer(l->node, "sorted", 1) != 0;
    step.int_count = 4;
    return step_add_input(l, &step, x) &&
           lower_new(l, TANDEM_F32, x->view.rank, shape, &out[0]) &&
           lower_new(l, TANDEM_I64, x->view.rank, shape, &out[1]) &&
           lower_step_outputs(l, &step, out, 2) &&
           lower_output(l, 0, &out[0]) && lower_output(l, 1, &out[1]);
}

/* Softmax and LogSoftmax.  Before opset 13, the input is seen as a matrix whose
 * rows begin at `axis`. */
bool lower_softmax(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), rows = *x, out;
    const bool matrix = l->node->since_version < 13;
    struct form_step step = step_make(l, l->node->op->tandem_op);
    const uint32_t rank = x->view.rank;
    int64_t shape[2] = {1, 1};
    uint32_t axis;

    /* The axis of a matrix may equal the rank. */
    if (matrix && graph_integer(l->node, "axis", 1) == rank)
        axis = rank;
    else if (!axis_normalize(l, graph_integer(l->node, "axis", matrix ? 1 : -1),
                             rank, &axis))
        return false;
    if (matrix) {
        for (uint32_t i = 0; i < rank; i++)
            shape[i < axis ? 0 : 1] *= x->view.shape[i];
        if (!lower_reshape(l, x, 2, shape, &rows))
            return false;
        axis = 1;
    }
    step.ints[0] = axis;
    step.int_count = 1;
    if (!lower_new(l, TANDEM_F32, rows.view.rank, rows.view.shape, &out) ||
        !step_add_input(l, &step, &rows) || !lower_step(l, &step, &out))
        return false;
    return lower_reshape(l, &out, rank, x->view.shape, &out) &&
           lower_output(l, 0, &out);
}

/* Returns true if the parameter is absent or broadcasts to the normalized axes,
 * which are the last `rank` ones. */
static bool fits_normalized_axes(const struct operand *parameter, uint32_t rank)
{
    for (uint32_t i = 0; parameter != NULL && i + rank < parameter->view.rank;
         i++) {
        if (parameter->view.shape[i] != 1)
            return false;
    }
    return true;
}

/* Makes a scale or bias with the shape of the normalized axes. If the node has
 * none, all elements are `neutral`. */
static bool norm_parameter(struct lowering *l, struct operand *parameter,
                           double neutral, uint32_t rank, const int64_t *shape,
                           struct operand *out)
{
    struct operand expanded;

    if (parameter == NULL
            ? !lower_new_constant(l, neutral, rank, shape, &expanded)
            : !lower_expand(l, parameter, rank, shape, &expanded))
        return false;
    return lower_contiguous(l, &expanded, out);
}

/* Appends a step that normalizes x. */
static bool append_norm_step(struct lowering *l, struct form_step *step,
                             struct operand *x, struct operand *scale,
                             struct operand *bias, struct operand *out)
{
    const bool has_bias = step->op == TANDEM_OP_LAYER_NORM;
    const uint32_t axis = (uint32_t)step->ints[0];
    const uint32_t rank = x->view.rank - axis;
    const int64_t *shape = x->view.shape + axis;
    struct operand parameters[2];

    return norm_parameter(l, scale, 1, rank, shape, &parameters[0]) &&
           (!has_bias ||
            norm_parameter(l, bias, 0, rank, shape, &parameters[1])) &&
           lower_new(l, TANDEM_F32, x->view.rank, x->view.shape, out) &&
           step_add_input(l, step, x) &&
           step_add_input(l, step, &parameters[0]) &&
           (!has_bias || step_add_input(l, step, &parameters[1])) &&
           lower_step(l, step, out);
}

/* Appends layer_norm or rms_norm. Parameters with more axes than the normalized
 * ones are applied to the result. */
static bool append_norm(struct lowering *l, uint32_t op, struct operand *x,
                        struct operand *scale, struct operand *bias)
{
    struct form_step step = step_make(l, op);
    const uint32_t x_rank = x->view.rank;
    struct operand out;
    uint32_t axis, rank;

    if (!axis_normalize(l, graph_integer(l->node, "axis", -1), x_rank, &axis))
        return false;
    rank = x_rank - axis;
    step.ints[0] = axis;
    step.int_count = 1;
    step.floats[0] = graph_real(l->node, "epsilon", 1e-5);
    step.float_count = 1;
    if (fits_normalized_axes(scale, rank) && fits_normalized_axes(bias, rank))
        return append_norm_step(l, &step, x, scale, bias, &out) &&
               lower_output(l, 0, &out);
    return append_norm_step(l, &step, x, NULL, NULL, &out) &&
           (scale == NULL ||
            lower_binary(l, TANDEM_OP_MUL, &out, scale, &out)) &&
           (bias == NULL || lower_binary(l, TANDEM_OP_ADD, &out, bias, &out)) &&
           (out.view.rank == x_rank ||
            lower_fail(l, "a parameter has more axes than the input")) &&
           lower_output(l, 0, &out);
}

bool lower_norm(struct lowering *l)
{
    return append_norm(l, l->node->op->tandem_op, lower_input_operand(l, 0),
                       lower_input_operand(l, 1), lower_input_operand(l, 2));
}

/* com.microsoft SkipLayerNormalization: layer_norm of input + skip + bias. */
bool lower_skip_layer_norm(struct lowering *l)
{
    struct operand *bias = lower_input_operand(l, 4), sum;

    if (!lower_binary(l, TANDEM_OP_ADD, lower_input_operand(l, 0),
                      lower_input_operand(l, 1), &sum) ||
        (bias != NULL && !lower_binary(l, TANDEM_OP_ADD, &sum, bias, &sum)))
        return false;
    lower_output(l, 3, &sum);
    return append_norm(l, TANDEM_OP_LAYER_NORM, &sum, lower_input_operand(l, 2),
                       lower_input_operand(l, 3));
}

/* Reads a parameter of every channel. Until opset 20, GroupNormalization has
 * parameters of every group. */
static bool channel_parameter(struct lowering *l, uint32_t index,
                              int64_t channels, int64_t groups,
                              struct operand *out)
{
    struct operand *parameter = lower_input_operand(l, index);
    const int64_t rows[2] = {groups, 1}, all[2] = {groups, channels / groups};
    const bool by_group = l->node->op->tandem_op == TANDEM_OP_GROUP_NORM &&
                          l->node->since_version < 21;
    const int64_t length = by_group ? groups : channels;

    if (parameter->view.rank != 1 || parameter->view.shape[0] != length)
        return lower_fail(l,
                          "input %" PRIu32 " does not have the shape "
                          "[%" PRId64 "]",
                          index, length);
    *out = *parameter;
    return !by_group || (lower_reshape(l, parameter, 2, rows, out) &&
                         lower_expand(l, out, 2, all, out) &&
                         lower_reshape(l, out, 1, &channels, out));
}

/* BatchNormalization, InstanceNormalization and GroupNormalization. */
bool lower_channel_norm(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), parameter, out;
    struct form_step step = step_make(l, l->node->op->tandem_op);
    const bool grouped = step.op == TANDEM_OP_GROUP_NORM;
    const int64_t groups =
        grouped ? graph_integer(l->node, "num_groups", 0) : 1;
    const int64_t channels = x->view.rank < 2 ? 0 : x->view.shape[1];

    if (x->view.rank < 2)
        return lower_fail(l, "the input has rank %" PRIu32, x->view.rank);
    if (groups < 1 || channels % groups != 0)
        return lower_fail(l,
                          "num_groups is %" PRId64 ", but there are %" PRId64
                          " channels",
                          groups, channels);
    step.ints[0] = groups;
    step.int_count = grouped;
    step.floats[0] = graph_real(l->node, "epsilon", 1e-5);
    step.float_count = 1;
    if (!step_add_input(l, &step, x))
        return false;
    for (uint32_t i = 1; i < l->node->op->required_inputs; i++) {
        if (!channel_parameter(l, i, channels, groups, &parameter) ||
            !step_add_input(l, &step, &parameter))
            return false;
    }
    return lower_new(l, TANDEM_F32, x->view.rank, x->view.shape, &out) &&
           lower_step(l, &step, &out) && lower_output(l, 0, &out);
}
