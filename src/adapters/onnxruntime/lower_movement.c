/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers operators that move or repeat elements; see lower.h.  Most of them
 * only make another view of their input. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

bool axis_normalize(struct lowering *l, int64_t axis, uint32_t rank,
                    uint32_t *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return lower_fail(l,
                          "axis %" PRId64 " is out of range for rank %" PRIu32,
                          axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool axes_read(struct lowering *l, uint32_t index, uint32_t rank, bool *out_set,
               uint32_t *out_mask)
{
    struct operand *input = lower_input_operand(l, index);
    const struct graph_attribute *attribute = graph_attribute(l->node, "axes");
    const int64_t *axes = NULL;
    int64_t count = 0;

    *out_mask = 0;
    *out_set = true;
    if (input != NULL) {
        axes = lower_integers(l, input, &count);
        if (axes == NULL)
            return false;
    } else if (attribute != NULL) {
        axes = attribute->integers;
        count = (int64_t)attribute->integer_count;
    } else {
        *out_set = false;
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t axis;

        if (!axis_normalize(l, axes[i], rank, &axis))
            return false;
        *out_mask |= 1u << axis;
    }
    return true;
}

bool lower_identity(struct lowering *l)
{
    return lower_output(l, 0, lower_input_operand(l, 0));
}

bool lower_transpose(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    const struct graph_attribute *perm = graph_attribute(l->node, "perm");
    const uint32_t rank = x->view.rank;

    if (!lower_materialize(l, x))
        return false;
    out = *x;
    out.integers = NULL;
    if (perm != NULL && perm->integer_count != rank)
        return lower_fail(l, "perm has %zu axes, the input has %" PRIu32,
                          perm->integer_count, rank);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t from = rank - 1 - i;

        if (perm != NULL && !axis_normalize(l, perm->integers[i], rank, &from))
            return false;
        out.view.shape[i] = x->view.shape[from];
        out.view.strides[i] = x->view.strides[from];
    }
    return lower_output(l, 0, &out);
}

/* Reshapes the first input to the shape. */
static bool reshape_output(struct lowering *l, uint32_t rank,
                           const int64_t *shape)
{
    struct operand out;

    return lower_reshape(l, lower_input_operand(l, 0), rank, shape, &out) &&
           lower_output(l, 0, &out);
}

bool lower_reshape_op(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0);
    const bool allow_zero = graph_integer(l->node, "allowzero", 0) != 0;
    int64_t shape[TANDEM_MAX_RANK], count, known = 1;
    const int64_t *wanted =
        lower_integers(l, lower_input_operand(l, 1), &count);
    int64_t unknown = -1;

    if (wanted == NULL)
        return false;
    if (count > TANDEM_MAX_RANK)
        return lower_fail(l, "the new shape has more than %u axes",
                          TANDEM_MAX_RANK);
    for (int64_t i = 0; i < count; i++) {
        shape[i] = wanted[i];
        if (wanted[i] == 0 && !allow_zero) {
            if (i >= x->view.rank)
                return lower_fail(l,
                                  "a 0 in the new shape has no axis to copy");
            shape[i] = x->view.shape[i];
        }
        if (wanted[i] == -1 && unknown < 0)
            unknown = i;
        else if (__builtin_mul_overflow(known, shape[i], &known))
            return lower_fail(l, "the new shape is too large");
    }
    if (unknown >= 0 && known > 0 && operand_elements(x) % known != 0)
        return lower_fail(l,
                          "the input has %" PRId64 " elements, which is no "
                          "multiple of the %" PRId64 " elements of the axes "
                          "that are given",
                          operand_elements(x), known);
    if (unknown >= 0)
        shape[unknown] = known > 0 ? operand_elements(x) / known : 0;
    return reshape_output(l, (uint32_t)count, shape);
}

bool lower_flatten(struct lowering *l)
{
    const struct form_view *view = &lower_input_operand(l, 0)->view;
    int64_t axis = graph_integer(l->node, "axis", 1), shape[2] = {1, 1};

    if (axis < 0)
        axis += view->rank;
    if (axis < 0 || axis > view->rank)
        return lower_fail(l, "axis is out of range");
    for (uint32_t i = 0; i < view->rank; i++)
        shape[i < axis ? 0 : 1] *= view->shape[i];
    return reshape_output(l, 2, shape);
}

bool lower_squeeze(struct lowering *l)
{
    const struct form_view *view = &lower_input_operand(l, 0)->view;
    int64_t shape[TANDEM_MAX_RANK];
    uint32_t rank = 0, mask;
    bool set;

    if (!axes_read(l, 1, view->rank, &set, &mask))
        return false;
    for (uint32_t i = 0; i < view->rank; i++) {
        if (set ? !(mask >> i & 1) : view->shape[i] != 1)
            shape[rank++] = view->shape[i];
    }
    return reshape_output(l, rank, shape);
}

bool lower_unsqueeze(struct lowering *l)
{
    const struct form_view *view = &lower_input_operand(l, 0)->view;
    struct operand *axes = lower_input_operand(l, 1);
    const struct graph_attribute *attribute = graph_attribute(l->node, "axes");
    int64_t shape[TANDEM_MAX_RANK], count = 0;
    uint32_t rank, mask, from = 0;
    bool set;

    if (axes != NULL)
        count = operand_elements(axes);
    else if (attribute != NULL)
        count = (int64_t)attribute->integer_count;
    if (count > TANDEM_MAX_RANK - (int64_t)view->rank)
        return lower_fail(l, "the output has more than %u axes",
                          TANDEM_MAX_RANK);
    rank = view->rank + (uint32_t)count;
    if (!axes_read(l, 1, rank, &set, &mask))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (!(mask >> i & 1) && from == view->rank)
            return lower_fail(l, "an axis is given twice");
        shape[i] = mask >> i & 1 ? 1 : view->shape[from++];
    }
    return reshape_output(l, rank, shape);
}

bool lower_expand_op(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), wanted = *x, out;
    struct operand *const operands[] = {x, &wanted};
    int64_t shape[TANDEM_MAX_RANK], count;
    const int64_t *lengths =
        lower_integers(l, lower_input_operand(l, 1), &count);
    uint32_t rank;

    if (lengths == NULL)
        return false;
    if (count > TANDEM_MAX_RANK)
        return lower_fail(l, "the new shape has more than %u axes",
                          TANDEM_MAX_RANK);
    wanted.view.rank = (uint32_t)count;
    memcpy(wanted.view.shape, lengths, (size_t)count * sizeof(lengths[0]));
    return lower_broadcast(l, operands, 2, &rank, shape) &&
           lower_expand(l, x, rank, shape, &out) && lower_output(l, 0, &out);
}

/* ---- slice, split, concat ---- */

/* Restricts an axis to start, start + step, ... before end, as NumPy does. */
static bool view_slice(struct lowering *l, struct form_view *view,
                       uint32_t axis, int64_t start, int64_t end, int64_t step)
{
    const int64_t length = view->shape[axis];
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? length : length - 1;
    int64_t count;

    if (step == 0 || step == INT64_MIN)
        return lower_fail(l, "step %" PRId64 " is not allowed", step);
    if (length == 0)
        return true;
    if (start < 0)
        start += length;
    /* -length - 1 and less mean "before the first element". */
    if (end < 0)
        end = end < -length ? low : end + length;
    start = start > high ? high : start;
    start = start < 0 ? 0 : start;
    end = end < low ? low : end > high && step > 0 ? high : end;
    if (step > 0)
        count = end > start ? (end - start - 1) / step + 1 : 0;
    else
        count = start > end ? (start - end - 1) / -step + 1 : 0;
    if (count > 0)
        view->first_element += start * view->strides[axis];
    view->shape[axis] = count;
    /* The stride of an axis with one element is never used. */
    view->strides[axis] = count > 1 ? view->strides[axis] * step : 1;
    return true;
}

/* Points *out to the integers of input `index`, or to NULL if the node does not
 * have this input.  Returns false if their number is not `expected`, or if they
 * are not known when the form is made. */
static bool slice_parameter(struct lowering *l, uint32_t index,
                            int64_t expected, const int64_t **out)
{
    struct operand *operand = lower_input_operand(l, index);
    int64_t count;

    *out = NULL;
    if (operand == NULL)
        return true;
    *out = lower_integers(l, operand, &count);
    if (*out == NULL)
        return false;
    return count == expected || lower_fail(l,
                                           "input %" PRIu32 " has %" PRId64
                                           " elements; expected %" PRId64,
                                           index, count, expected);
}

bool lower_slice_view(struct lowering *l, struct form_view *view)
{
    const int64_t *starts, *ends, *axes, *steps;
    int64_t count;

    starts = lower_integers(l, lower_input_operand(l, 1), &count);
    if (starts == NULL || !slice_parameter(l, 2, count, &ends) ||
        !slice_parameter(l, 3, count, &axes) ||
        !slice_parameter(l, 4, count, &steps))
        return false;
    for (int64_t i = 0; i < count; i++) {
        uint32_t axis;

        if (!axis_normalize(l, axes != NULL ? axes[i] : i, view->rank, &axis) ||
            !view_slice(l, view, axis, starts[i], ends[i],
                        steps != NULL ? steps[i] : 1))
            return false;
    }
    return true;
}

bool lower_slice(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;

    if (!lower_materialize(l, x))
        return false;
    out = *x;
    out.integers = NULL;
    return lower_slice_view(l, &out.view) && lower_output(l, 0, &out);
}

/* Computes the length of each part of a split. */
static bool split_lengths(struct lowering *l, int64_t total, int64_t *out)
{
    const struct graph_attribute *attribute = graph_attribute(l->node, "split");
    const uint32_t parts = l->node->output_count;
    const int64_t *lengths = NULL;
    const int64_t even = (total + parts - 1) / parts;
    int64_t sum = 0;

    if (!slice_parameter(l, 1, parts, &lengths))
        return false;
    if (attribute != NULL && attribute->integer_count == parts)
        lengths = attribute->integers;
    for (uint32_t i = 0; i < parts; i++) {
        out[i] = lengths != NULL      ? lengths[i]
                 : total - sum < even ? total - sum
                                      : even;
        sum += out[i];
        if (out[i] < 0)
            return lower_fail(l, "part %" PRIu32 " has a negative length", i);
    }
    return sum == total ||
           lower_fail(l,
                      "the parts have %" PRId64 " elements, the axis %" PRId64,
                      sum, total);
}

bool lower_split(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0);
    const uint32_t parts = l->node->output_count;
    int64_t *lengths =
        arena_allocate(&l->form->arena, parts + 1, sizeof(lengths[0]));
    int64_t start = 0;
    uint32_t axis;

    if (lengths == NULL)
        return lower_fail(l, "out of memory");
    if (!axis_normalize(l, graph_integer(l->node, "axis", 0), x->view.rank,
                        &axis) ||
        !split_lengths(l, x->view.shape[axis], lengths) ||
        !lower_materialize(l, x))
        return false;
    for (uint32_t i = 0; i < parts; i++) {
        struct operand part = *x;

        part.integers = NULL;
        part.view.shape[axis] = lengths[i];
        if (lengths[i] > 0)
            part.view.first_element += start * x->view.strides[axis];
        start += lengths[i];
        lower_output(l, i, &part);
    }
    return true;
}

/* Appends a step that joins the inputs along `axis` in *part, a view of the
 * output.  Moves *part to the elements after them. */
static bool concat_part(struct lowering *l, uint32_t axis,
                        struct operand *const *inputs, uint32_t count,
                        struct operand *part)
{
    struct form_step step = step_make(l, TANDEM_OP_CONCAT);

    step.ints[0] = axis;
    step.int_count = 1;
    part->view.shape[axis] = 0;
    for (uint32_t i = 0; i < count; i++) {
        part->view.shape[axis] += inputs[i]->view.shape[axis];
        if (!step_add_input(l, &step, inputs[i]))
            return false;
    }
    if (!lower_step(l, &step, part))
        return false;
    part->view.first_element +=
        part->view.shape[axis] * part->view.strides[axis];
    return true;
}

bool lower_concat(struct lowering *l)
{
    struct operand *first = lower_input_operand(l, 0), out, part;
    struct operand *inputs[TANDEM_MAX_OPERANDS];
    const uint32_t count = l->node->input_count;
    int64_t shape[TANDEM_MAX_RANK];
    uint32_t axis, held = 0;

    if (!axis_normalize(l, graph_integer(l->node, "axis", 0), first->view.rank,
                        &axis))
        return false;
    memcpy(shape, first->view.shape, sizeof(shape));
    for (uint32_t i = 1; i < count; i++) {
        const struct operand *x = lower_input_operand(l, i);

        for (uint32_t k = 0; k < first->view.rank; k++) {
            if (x->view.rank != first->view.rank ||
                (k != axis && x->view.shape[k] != shape[k]))
                return lower_fail(
                    l, "the shapes of inputs 0 and %" PRIu32 " do not fit", i);
        }
        shape[axis] += x->view.shape[axis];
    }
    if (!lower_new(l, first->dtype, first->view.rank, shape, &out))
        return false;
    part = out;
    for (uint32_t i = 0; i < count; i++) {
        struct operand *x = lower_input_operand(l, i);

        if (operand_elements(x) > 0)
            inputs[held++] = x;
        if (held < TANDEM_MAX_OPERANDS && i + 1 < count)
            continue;
        if (held > 0 && !concat_part(l, axis, inputs, held, &part))
            return false;
        held = 0;
    }
    return lower_output(l, 0, &out);
}

/* ---- gather and scatter ---- */

/* Appends a step with both inputs and the attribute. */
static bool gather_step(struct lowering *l, int64_t attribute, uint32_t rank,
                        const int64_t *shape)
{
    struct operand *data = lower_input_operand(l, 0), out;
    struct form_step step = step_make(l, l->node->op->tandem_op);

    step.ints[0] = attribute;
    step.int_count = 1;
    return lower_new(l, data->dtype, rank, shape, &out) &&
           step_add_input(l, &step, data) &&
           step_add_input(l, &step, lower_input_operand(l, 1)) &&
           lower_step(l, &step, &out) && lower_output(l, 0, &out);
}

bool lower_gather(struct lowering *l)
{
    const struct form_view *data = &lower_input_operand(l, 0)->view;
    const struct form_view *indices = &lower_input_operand(l, 1)->view;
    int64_t shape[2 * TANDEM_MAX_RANK];
    uint32_t axis, rank = 0;

    if (!axis_normalize(l, graph_integer(l->node, "axis", 0), data->rank,
                        &axis))
        return false;
    for (uint32_t i = 0; i < data->rank; i++) {
        if (i != axis) {
            shape[rank++] = data->shape[i];
            continue;
        }
        memcpy(&shape[rank], indices->shape, indices->rank * sizeof(shape[0]));
        rank += indices->rank;
    }
    return gather_step(l, axis, rank, shape);
}

bool lower_gather_elements(struct lowering *l)
{
    const struct form_view *data = &lower_input_operand(l, 0)->view;
    const struct form_view *indices = &lower_input_operand(l, 1)->view;
    uint32_t axis;

    return axis_normalize(l, graph_integer(l->node, "axis", 0), data->rank,
                          &axis) &&
           gather_step(l, axis, indices->rank, indices->shape);
}

bool lower_gather_nd(struct lowering *l)
{
    const struct form_view *data = &lower_input_operand(l, 0)->view;
    const struct form_view *indices = &lower_input_operand(l, 1)->view;
    const int64_t batch_dims = graph_integer(l->node, "batch_dims", 0);
    int64_t shape[2 * TANDEM_MAX_RANK];
    const int64_t components =
        indices->rank > 0 ? indices->shape[indices->rank - 1] : 0;
    uint32_t rank = indices->rank - 1;

    if (components < 1 || batch_dims < 0 ||
        batch_dims > data->rank - components)
        return lower_fail(l,
                          "the last axis of the indices has %" PRId64
                          " elements, which do not fit batch_dims %" PRId64
                          " and rank %" PRIu32,
                          components, batch_dims, data->rank);
    memcpy(shape, indices->shape, rank * sizeof(shape[0]));
    for (int64_t i = batch_dims + components; i < data->rank; i++)
        shape[rank++] = data->shape[i];
    return gather_step(l, batch_dims, rank, shape);
}

/* Appends the step with all inputs, whose attributes are set. */
static bool scatter_step(struct lowering *l, struct form_step *step)
{
    struct operand *data = lower_input_operand(l, 0), out;

    step->ints[step->int_count++] = scatter_reduction(l->node);
    return lower_new(l, data->dtype, data->view.rank, data->view.shape, &out) &&
           step_add_input(l, step, data) &&
           step_add_input(l, step, lower_input_operand(l, 1)) &&
           step_add_input(l, step, lower_input_operand(l, 2)) &&
           lower_step(l, step, &out) && lower_output(l, 0, &out);
}

bool lower_scatter_elements(struct lowering *l)
{
    struct form_step step = step_make(l, TANDEM_OP_SCATTER_ELEMENTS);
    uint32_t axis;

    if (!axis_normalize(l, graph_integer(l->node, "axis", 0),
                        lower_input_operand(l, 0)->view.rank, &axis))
        return false;
    step.ints[0] = axis;
    step.int_count = 1;
    return scatter_step(l, &step);
}

bool lower_scatter_nd(struct lowering *l)
{
    struct form_step step = step_make(l, TANDEM_OP_SCATTER_ND);

    return scatter_step(l, &step);
}

/* Splits the four axes of x into six axes of the lengths `split`, permutes them
 * by `perm`, and joins them to four axes of the lengths `joined`. */
static bool blocks_move(struct lowering *l, const int64_t *split,
                        const uint32_t *perm, const int64_t *joined)
{
    struct operand *x = lower_input_operand(l, 0), parts, out;

    if (!lower_reshape(l, x, 6, split, &parts))
        return false;
    out = parts;
    for (uint32_t i = 0; i < 6; i++) {
        out.view.shape[i] = parts.view.shape[perm[i]];
        out.view.strides[i] = parts.view.strides[perm[i]];
    }
    parts = out;
    return lower_reshape(l, &parts, 4, joined, &out) &&
           lower_output(l, 0, &out);
}

/* Returns false unless the input has four axes and lengths that are multiples
 * of `depth` (axis 1) and `space` (axes 2 and 3). */
static bool block_check(struct lowering *l, int64_t block, int64_t depth,
                        int64_t space)
{
    const struct form_view *view = &lower_input_operand(l, 0)->view;

    if (block < 1 || block > INT16_MAX)
        return lower_fail(l, "blocksize %" PRId64 " is not allowed", block);
    if (view->rank != 4 || view->shape[1] % depth != 0 ||
        view->shape[2] % space != 0 || view->shape[3] % space != 0)
        return lower_fail(l, "blocksize %" PRId64 " does not fit the input",
                          block);
    return true;
}

/* Returns true if the attribute `mode` is "CRD" (column, row, depth). */
static bool is_column_first(const struct lowering *l)
{
    const struct graph_attribute *mode = graph_attribute(l->node, "mode");

    return mode != NULL && mode->string != NULL &&
           strcmp(mode->string, "CRD") == 0;
}

bool lower_depth_to_space(struct lowering *l)
{
    static const uint32_t depth_first[] = {0, 3, 4, 1, 5, 2};
    static const uint32_t column_first[] = {0, 1, 4, 2, 5, 3};
    const int64_t *n = lower_input_operand(l, 0)->view.shape;
    const int64_t b = graph_integer(l->node, "blocksize", 0);

    if (!block_check(l, b, b * b, 1))
        return false;
    const int64_t depth = n[1] / (b * b);
    const int64_t joined[] = {n[0], depth, n[2] * b, n[3] * b};
    if (is_column_first(l))
        return blocks_move(l, (int64_t[]){n[0], depth, b, b, n[2], n[3]},
                           column_first, joined);
    return blocks_move(l, (int64_t[]){n[0], b, b, depth, n[2], n[3]},
                       depth_first, joined);
}

bool lower_space_to_depth(struct lowering *l)
{
    static const uint32_t depth_first[] = {0, 3, 5, 1, 2, 4};
    static const uint32_t column_first[] = {0, 1, 3, 5, 2, 4};
    const int64_t *n = lower_input_operand(l, 0)->view.shape;
    const int64_t b = graph_integer(l->node, "blocksize", 0);

    if (!block_check(l, b, 1, b))
        return false;
    return blocks_move(l, (int64_t[]){n[0], n[1], n[2] / b, b, n[3] / b, b},
                       is_column_first(l) ? column_first : depth_first,
                       (int64_t[]){n[0], n[1] * b * b, n[2] / b, n[3] / b});
}
