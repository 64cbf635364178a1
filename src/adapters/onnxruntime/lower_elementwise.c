/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers element-wise operators; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <math.h>
#include <string.h>

bool lower_elementwise_unary(struct lowering *l)
{
    struct operand out;

    return lower_unary(l, l->node->op->tandem_op, lower_input_operand(l, 0),
                       &out) &&
           lower_output(l, 0, &out);
}

/* Lowers the node to a unary operator with the parameters. */
static bool node_parametric(struct lowering *l, uint32_t op,
                            const double parameters[2])
{
    struct operand out;

    return lower_parametric(l, op, parameters, lower_input_operand(l, 0),
                            &out) &&
           lower_output(l, 0, &out);
}

bool lower_activation(struct lowering *l)
{
    double floats[2];
    uint32_t op;

    return node_activation(l->graph, l->node, &op, floats) &&
           node_parametric(l, op, floats);
}

/* Gelu, and com.microsoft BiasGelu and FastGelu, which first add a bias. */
bool lower_gelu(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0);
    struct operand *bias = lower_input_operand(l, 1), sum, out;
    struct form_step step = step_make(l, TANDEM_OP_GELU);

    if (bias != NULL) {
        if (!lower_binary(l, TANDEM_OP_ADD, x, bias, &sum))
            return false;
        x = &sum;
    }
    step.ints[0] = gelu_is_approximate(l->node);
    step.int_count = 1;
    return lower_new(l, x->dtype, x->view.rank, x->view.shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}

/* ONNX 24 Swish: x sigmoid(alpha x). */
bool lower_swish(struct lowering *l)
{
    const double alpha = graph_real(l->node, "alpha", 1);
    struct operand *x = lower_input_operand(l, 0);
    struct operand scale, scaled, gate, out;

    if (alpha == 1)
        return lower_unary(l, TANDEM_OP_SWISH, x, &out) &&
               lower_output(l, 0, &out);
    return lower_new_constant(l, alpha, 0, NULL, &scale) &&
           lower_binary(l, TANDEM_OP_MUL, x, &scale, &scaled) &&
           lower_unary(l, TANDEM_OP_SIGMOID, &scaled, &gate) &&
           lower_binary(l, TANDEM_OP_MUL, x, &gate, &out) &&
           lower_output(l, 0, &out);
}

/* Reads a bound of Clip, which is an input from opset 11 on.  Sets *out_tensor
 * to the input if it is not constant, else *out to its value. */
static void clip_bound(struct lowering *l, uint32_t index, const char *name,
                       double otherwise, double *out,
                       struct operand **out_tensor)
{
    *out = graph_real(l->node, name, otherwise);
    *out_tensor = lower_input_operand(l, index);
    if (*out_tensor != NULL && lower_constant_scalar(l, index, out))
        *out_tensor = NULL;
}

/* Limits *x by a tensor, or by a constant if it is not the neutral one. */
static bool clip_side(struct lowering *l, uint32_t op, struct operand *bound,
                      double constant, double neutral, struct operand *x)
{
    struct operand made;

    if (bound == NULL) {
        if (constant == neutral)
            return true;
        if (!lower_new_constant(l, constant, 0, NULL, &made))
            return false;
        bound = &made;
    }
    return lower_binary(l, op, x, bound, x);
}

bool lower_clip(struct lowering *l)
{
    struct operand out = *lower_input_operand(l, 0), *low, *high;
    double bounds[2];

    clip_bound(l, 1, "min", -INFINITY, &bounds[0], &low);
    clip_bound(l, 2, "max", INFINITY, &bounds[1], &high);
    if (low == NULL && high == NULL)
        return node_parametric(l, TANDEM_OP_CLIP, bounds);
    return clip_side(l, TANDEM_OP_MAX, low, bounds[0], -INFINITY, &out) &&
           clip_side(l, TANDEM_OP_MIN, high, bounds[1], INFINITY, &out) &&
           lower_output(l, 0, &out);
}

/* Appends an operator whose inputs 0 to count - 1 are broadcast.  A constant
 * with one element becomes a scalar, except if all inputs are such constants.
 */
static bool append_broadcast(struct lowering *l, uint32_t op, uint32_t count,
                             uint32_t dtype)
{
    struct form_step step = step_make(l, op);
    struct operand *inputs[MAX_STEP_INPUTS], aligned[MAX_STEP_INPUTS], out;
    int64_t shape[TANDEM_MAX_RANK];
    bool scalar[MAX_STEP_INPUTS], all_scalar = true;
    double value;
    uint32_t rank;

    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = lower_input_operand(l, i);
        if (!lower_materialize(l, inputs[i]))
            return false;
        scalar[i] = lower_constant_scalar(l, i, &value);
        all_scalar = all_scalar && scalar[i];
    }
    if (!lower_broadcast(l, inputs, count, &rank, shape) ||
        !lower_new(l, dtype, rank, shape, &out))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        aligned[i] = operand_align(inputs[i], rank);
        if (scalar[i] && !all_scalar) {
            lower_constant_scalar(l, i, &step.floats[step.float_count++]);
            step_add_input(l, &step, NULL);
        } else if (!step_add_input(l, &step, &aligned[i])) {
            return false;
        }
    }
    return lower_step(l, &step, &out) && lower_output(l, 0, &out);
}

bool lower_elementwise_binary(struct lowering *l)
{
    return append_broadcast(l, l->node->op->tandem_op, 2,
                            lower_input_operand(l, 0)->dtype);
}

bool lower_mod(struct lowering *l)
{
    const bool has_sign_of_dividend = graph_integer(l->node, "fmod", 0) != 0;

    return append_broadcast(
        l, has_sign_of_dividend ? TANDEM_OP_FMOD : TANDEM_OP_MOD, 2,
        lower_input_operand(l, 0)->dtype);
}

/* Reads the exponent of Pow if it is a constant with one element. */
static bool constant_exponent(struct lowering *l, double *out)
{
    const struct graph_value *exponent = graph_input(l->graph, l->node, 1);
    int64_t count;
    const int64_t *integers;

    if (exponent->dtype == TANDEM_F32)
        return lower_constant_scalar(l, 1, out);
    integers = lower_integers(l, lower_input_operand(l, 1), &count);
    if (integers == NULL)
        return false;
    *out = (double)integers[0];
    return true;
}

/* A square is a product, which is much faster than pow. */
bool lower_pow(struct lowering *l)
{
    static const int64_t ones[TANDEM_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct operand *x = lower_input_operand(l, 0), power, out;
    const uint32_t rank = lower_input_operand(l, 1)->view.rank;
    double exponent;

    if (!constant_exponent(l, &exponent))
        return l->problem[0] == '\0' &&
               append_broadcast(l, TANDEM_OP_POW, 2, TANDEM_F32);
    if (exponent == 2 && rank <= x->view.rank)
        return lower_binary(l, TANDEM_OP_MUL, x, x, &out) &&
               lower_output(l, 0, &out);
    return lower_new_constant(l, exponent, rank, ones, &power) &&
           lower_binary(l, TANDEM_OP_POW, x, &power, &out) &&
           lower_output(l, 0, &out);
}

bool lower_compare(struct lowering *l)
{
    return append_broadcast(l, l->node->op->tandem_op, 2, TANDEM_BOOL);
}

/* IsNaN and IsInf. */
bool lower_predicate(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct form_step step = step_make(l, l->node->op->tandem_op);

    if (step.op == TANDEM_OP_IS_INF) {
        step.ints[0] = graph_integer(l->node, "detect_negative", 1) != 0;
        step.ints[1] = graph_integer(l->node, "detect_positive", 1) != 0;
        step.int_count = 2;
    }
    return lower_new(l, TANDEM_BOOL, x->view.rank, x->view.shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}

bool lower_logical(struct lowering *l)
{
    return append_broadcast(l, l->node->op->tandem_op, 2, TANDEM_BOOL);
}

bool lower_where(struct lowering *l)
{
    return append_broadcast(l, TANDEM_OP_WHERE, 3,
                            lower_input_operand(l, 1)->dtype);
}

/* Sum, Mean, Min and Max of any number of inputs. */
bool lower_variadic(struct lowering *l)
{
    const uint32_t count = l->node->input_count;
    struct operand result = *lower_input_operand(l, 0), factor;

    for (uint32_t i = 1; i < count; i++) {
        if (!lower_binary(l, l->node->op->tandem_op, &result,
                          lower_input_operand(l, i), &result))
            return false;
    }
    if (strcmp(l->node->type, "Mean") == 0 && count > 1 &&
        (!lower_new_constant(l, 1.0 / count, 0, NULL, &factor) ||
         !lower_binary(l, TANDEM_OP_MUL, &result, &factor, &result)))
        return false;
    return lower_output(l, 0, &result);
}

bool lower_cast_integers(struct lowering *l, struct operand *x, uint32_t dtype)
{
    int64_t count;
    const int64_t *integers = lower_integers(l, x, &count);
    struct operand out;
    float *content;

    if (integers == NULL ||
        !lower_new_integers(l, TANDEM_I32, x->view.rank, x->view.shape, &out))
        return false;
    out.dtype = dtype;
    if (dtype != TANDEM_F32) {
        for (int64_t i = 0; i < count; i++)
            out.integers[i] = integer_narrow(dtype, integers[i]);
        return lower_output(l, 0, &out);
    }
    /* An f32 has as many bytes as an i32: make the storage, then replace its
     * content. */
    if (!lower_materialize(l, &out))
        return false;
    out.integers = NULL;
    content =
        arena_allocate(&l->form->arena, (size_t)count + 1, sizeof(content[0]));
    if (content == NULL)
        return lower_fail(l, "out of memory");
    for (int64_t i = 0; i < count; i++)
        content[i] = (float)integers[i];
    l->form->storages[out.view.storage].content = content;
    return lower_output(l, 0, &out);
}

/* Cast, and CastLike, whose second input has the output's dtype. */
bool lower_cast(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0);
    const uint32_t dtype = cast_dtype(l->graph, l->node);
    struct form_step step = step_make(l, TANDEM_OP_CAST);
    struct operand out;

    if (x->dtype == dtype)
        return lower_output(l, 0, x);
    if (x->view.storage == NO_STORAGE)
        return lower_cast_integers(l, x, dtype);
    return lower_new(l, dtype, x->view.rank, x->view.shape, &out) &&
           step_add_input(l, &step, x) && lower_step(l, &step, &out) &&
           lower_output(l, 0, &out);
}
