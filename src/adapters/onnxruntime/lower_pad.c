/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers Pad and Tile; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

/* Reads the attribute `mode` of Pad. */
static bool mode_read(struct lowering *l, int64_t *out)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const struct graph_attribute *mode = graph_attribute(l->node, "mode");

    for (*out = 0; *out < 4; (*out)++) {
        if (mode == NULL || mode->string == NULL ||
            strcmp(mode->string, names[*out]) == 0)
            return true;
    }
    return lower_fail(l, "mode \"%s\" is unknown", mode->string);
}

/* Sets the value that mode "constant" adds: an attribute of operator-set
 * version 2, later an input. */
static bool value_read(struct lowering *l, uint32_t dtype,
                       struct form_step *step)
{
    const struct graph_attribute *attribute = graph_attribute(l->node, "value");
    struct operand *value = lower_input_operand(l, 2);
    const int64_t *integers = NULL;
    const float *reals = NULL;
    int64_t count;

    if (attribute != NULL)
        step->floats[0] = (double)attribute->real;
    if (value == NULL)
        return true;
    if (dtype == TANDEM_F32)
        reals = lower_reals(l, value, &count);
    else
        integers = lower_integers(l, value, &count);
    if (reals == NULL && integers == NULL)
        return false;
    if (count != 1)
        return lower_fail(l, "constant_value has %" PRId64 " elements", count);
    if (reals != NULL)
        step->floats[0] = (double)reals[0];
    else
        step->ints[1] = integers[0];
    return true;
}

/* Reads the pads into begins[axis] and ends[axis]. */
static bool pads_read(struct lowering *l, uint32_t rank, int64_t *begins,
                      int64_t *ends)
{
    const struct graph_attribute *attribute = graph_attribute(l->node, "pads");
    struct operand *input = lower_input_operand(l, 1);
    struct operand *axes_input = lower_input_operand(l, 3);
    const int64_t *pads = NULL, *axes = NULL;
    int64_t count = 0, axis_count = rank;

    if (input != NULL) {
        pads = lower_integers(l, input, &count);
        if (pads == NULL)
            return false;
    } else if (attribute != NULL) {
        pads = attribute->integers;
        count = (int64_t)attribute->integer_count;
    }
    if (axes_input != NULL) {
        axes = lower_integers(l, axes_input, &axis_count);
        if (axes == NULL)
            return false;
    }
    if (count != 2 * axis_count)
        return lower_fail(
            l, "pads has %" PRId64 " elements; expected two for each axis",
            count);
    for (int64_t i = 0; i < axis_count; i++) {
        uint32_t axis;

        if (!axis_normalize(l, axes != NULL ? axes[i] : i, rank, &axis))
            return false;
        begins[axis] = pads[i];
        ends[axis] = pads[axis_count + i];
    }
    return true;
}

bool lower_pad(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct form_step step = step_make(l, TANDEM_OP_PAD);
    const uint32_t rank = x->view.rank;
    int64_t *begins = &step.ints[2], *ends = &step.ints[2 + rank];
    int64_t shape[TANDEM_MAX_RANK];

    step.int_count = 2 + 2 * rank;
    step.float_count = 1;
    if (!mode_read(l, &step.ints[0]) || !value_read(l, x->dtype, &step) ||
        !pads_read(l, rank, begins, ends))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t n = x->view.shape[i];

        if (begins[i] < INT32_MIN || ends[i] < INT32_MIN ||
            begins[i] > INT32_MAX || ends[i] > INT32_MAX ||
            n + begins[i] + ends[i] < 0)
            return lower_fail(l,
                              "axis %" PRIu32 " of length %" PRId64
                              " cannot be padded by %" PRId64 " and %" PRId64,
                              i, n, begins[i], ends[i]);
        shape[i] = n + begins[i] + ends[i];
    }
    return lower_new(l, x->dtype, rank, shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}

bool lower_tile(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct form_step step = step_make(l, TANDEM_OP_TILE);
    const uint32_t rank = x->view.rank;
    int64_t shape[TANDEM_MAX_RANK], count;
    const int64_t *repeats =
        lower_integers(l, lower_input_operand(l, 1), &count);

    if (repeats == NULL)
        return false;
    if (count != rank)
        return lower_fail(l, "%" PRId64 " repeats for rank %" PRIu32, count,
                          rank);
    step.int_count = rank;
    for (uint32_t i = 0; i < rank; i++) {
        step.ints[i] = repeats[i];
        if (repeats[i] < 0 ||
            __builtin_mul_overflow(x->view.shape[i], repeats[i], &shape[i]))
            return lower_fail(l, "axis %" PRIu32 " cannot be repeated %" PRId64
                                 " times",
                              i, repeats[i]);
    }
    return lower_new(l, x->dtype, rank, shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}
