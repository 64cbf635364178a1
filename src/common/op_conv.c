/* SPDX-License-Identifier: Apache-2.0 */
/* The class CONV; see op_class.h and op_conv.h. */
#include "common/op_conv.h"

#include "common/last_error.h"
#include "common/tensor_extent.h"

/* Integer attributes of the operator table, which the lists follow. */
enum { GROUP, ACTIVATION, RESIDUAL, TABLE_INTS };

static bool is_transpose(const struct operator_info *info)
{
    return info->id == TANDEM_OP_CONV_TRANSPOSE;
}

/* The list output_padding of conv_transpose follows the window's lists. */
static uint32_t list_count(const struct operator_info *info)
{
    return WINDOW_LISTS + (is_transpose(info) ? 1 : 0);
}

static struct activation activation_of(const struct tandem_op *op)
{
    int64_t id = op->ints[ACTIVATION];
    uint32_t number = id < 0 || id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
    return (struct activation){number, {op->floats[0], op->floats[1]}};
}

static enum tandem_status conv_check(const struct op_call *call)
{
    const char *name = call->info->name;
    int64_t id = call->op->ints[ACTIVATION];
    struct activation activation = activation_of(call->op);
    enum tandem_status status = check_switch(call, RESIDUAL, "residual");
    if (status == TANDEM_OK && (id < 0 || id > UINT32_MAX))
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "%s: activation is %lld; expected 0 or the number "
            "of an operator of class unary",
            name, (long long)id);
    return status == TANDEM_OK ? activation_check(name, &activation) : status;
}

static bool has_residual(const struct tandem_op *op)
{
    return op->ints[RESIDUAL] != 0;
}

static enum tandem_status check_input_count(const struct op_call *call)
{
    uint32_t least = 2 + has_residual(call->op);
    if (call->input_count >= least && call->input_count <= least + 1)
        return TANDEM_OK;
    return argument_error("%s: got %u inputs with residual %d; expected %u or "
                          "%u: x, weight, a bias if any, and the residual",
                          call->info->name, call->input_count,
                          has_residual(call->op), least, least + 1);
}

/* Checks that group divides the channels of input 0, and the shape of the
 * weight. Sets *out_channels to the number of output channels. */
static enum tandem_status check_channels(const struct op_call *call,
                                         int64_t *out_channels)
{
    const struct tandem_tensor_desc *x = call->inputs[0];
    const struct tandem_tensor_desc *weight = call->inputs[1];
    bool transpose = is_transpose(call->info);
    int64_t group = call->op->ints[GROUP], channels = x->shape[1];
    struct tandem_tensor_desc expected = *weight;
    if (group < 1)
        return argument_error("%s: group is %lld; expected at least 1",
                              call->info->name, (long long)group);
    if (weight->rank != x->rank)
        return operand_error(call, 1, "has rank %u; expected %u, that of x",
                             weight->rank, x->rank);
    if (channels % group != 0)
        return argument_error("%s: group %lld does not divide the %lld "
                              "channels of input 0",
                              call->info->name, (long long)group,
                              (long long)channels);
    expected.shape[transpose ? 0 : 1] = transpose ? channels : channels / group;
    if (!shapes_equal(weight, &expected))
        return shape_mismatch(call, 1, &expected);
    *out_channels = weight->shape[0];
    if (transpose)
        return __builtin_mul_overflow(weight->shape[1], group, out_channels)
                   ? argument_error("%s: the output has more than %lld "
                                    "channels",
                                    call->info->name, (long long)INT64_MAX)
                   : TANDEM_OK;
    if (*out_channels % group != 0)
        return argument_error("%s: group %lld does not divide the %lld "
                              "channels of the output",
                              call->info->name, (long long)group,
                              (long long)*out_channels);
    return TANDEM_OK;
}

/* Checks that the number of products of an element of the output fits 31 bits,
 * to which libraries for matrix products are limited. */
static enum tandem_status check_depth(const struct op_call *call)
{
    const struct tandem_tensor_desc *weight = call->inputs[1];
    int64_t depth = call->inputs[0]->shape[1] / call->op->ints[GROUP];
    for (uint32_t i = 2; i < weight->rank; i++)
        if (__builtin_mul_overflow(depth, weight->shape[i], &depth) ||
            depth > INT32_MAX)
            return last_error_set(TANDEM_UNSUPPORTED,
                                  "%s: the windows have more than %d elements "
                                  "in the channels of a group",
                                  call->info->name, INT32_MAX);
    return TANDEM_OK;
}

/* Sets the lengths of the spatial axes of conv_transpose. */
static enum tandem_status transpose_infer(const struct op_call *call,
                                          const int64_t *kernel,
                                          const int64_t *lists,
                                          struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *x = call->inputs[0];
    uint32_t spatial = x->rank - 2;
    enum tandem_status status = window_check(call, kernel, lists);
    for (uint32_t i = 0; i < spatial && status == TANDEM_OK; i++) {
        int64_t stride = lists[WINDOW_STRIDES * spatial + i];
        int64_t dilation = lists[WINDOW_DILATIONS * spatial + i];
        int64_t more = lists[WINDOW_LISTS * spatial + i];
        int64_t least = stride > dilation ? stride : dilation;
        int64_t rest = (kernel[i] - 1) * dilation + 1 + more -
                       lists[WINDOW_BEGINS * spatial + i] -
                       lists[WINDOW_ENDS * spatial + i];
        int64_t *length = &out->shape[2 + i];
        if (more < 0 || more >= least)
            return argument_error("%s: output_padding[%u] is %lld; expected 0 "
                                  "to %lld, below the stride or the dilation",
                                  call->info->name, i, (long long)more,
                                  (long long)(least - 1));
        if (x->shape[2 + i] < 1 ||
            __builtin_mul_overflow(x->shape[2 + i] - 1, stride, length) ||
            __builtin_add_overflow(*length, rest, length) || *length < 0)
            return argument_error("%s: axis %u of the output would have an "
                                  "invalid length (input %lld, stride %lld, "
                                  "padding %lld and %lld)",
                                  call->info->name, 2 + i,
                                  (long long)x->shape[2 + i], (long long)stride,
                                  (long long)lists[WINDOW_BEGINS * spatial + i],
                                  (long long)lists[WINDOW_ENDS * spatial + i]);
    }
    return status;
}

/* Checks bias and residual. */
static enum tandem_status check_addends(const struct op_call *call,
                                        const struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc bias = {.rank = 1,
                                            .shape = {out->shape[1]}};
    uint32_t last = call->input_count - 1;
    bool residual = has_residual(call->op);
    if (call->input_count == 3u + residual &&
        !shapes_equal(call->inputs[2], &bias))
        return shape_mismatch(call, 2, &bias);
    if (residual && !shapes_equal(call->inputs[last], out))
        return shape_mismatch(call, last, out);
    return TANDEM_OK;
}

static enum tandem_status conv_infer(const struct op_call *call,
                                     uint32_t output,
                                     struct tandem_tensor_desc *out)
{
    const int64_t *lists = call->op->ints + TABLE_INTS;
    int64_t channels = 0;
    (void)output;
    enum tandem_status status = check_input_count(call);
    if (status == TANDEM_OK)
        status = window_check_lists(call, TABLE_INTS, list_count(call->info));
    if (status == TANDEM_OK)
        status = check_channels(call, &channels);
    if (status != TANDEM_OK)
        return status;
    const int64_t *kernel = call->inputs[1]->shape + 2;
    status = check_depth(call);
    if (status != TANDEM_OK)
        return status;
    shape_copy(out, call->inputs[0]);
    out->shape[1] = channels;
    status = is_transpose(call->info)
                 ? transpose_infer(call, kernel, lists, out)
                 : window_infer(call, kernel, lists, false, out);
    return status == TANDEM_OK ? check_addends(call, out) : status;
}

/* Copies strides; a missing spatial axis has stride 0. */
static struct conv_strides strides_of(const struct tandem_tensor_desc *tensor)
{
    struct conv_strides out = {tensor->strides[0], tensor->strides[1], {0}};
    for (uint32_t i = 0; i + 2 < tensor->rank; i++)
        out.axis[i] = tensor->strides[tensor->rank - 1 - i];
    return out;
}

void conv_problem_read(struct conv_problem *out, const struct tandem_op *op,
                       const struct tandem_tensor_desc *const *inputs,
                       uint32_t input_count,
                       const struct tandem_tensor_desc *output)
{
    const struct tandem_tensor_desc *x = inputs[0], *weight = inputs[1];
    uint32_t spatial = x->rank - 2;
    *out = (struct conv_problem){.is_transposed =
                                     op->id == TANDEM_OP_CONV_TRANSPOSE,
                                 .batch = x->shape[0],
                                 .groups = op->ints[GROUP],
                                 .taps = 1,
                                 .columns = 1,
                                 .x = strides_of(x),
                                 .out = strides_of(output),
                                 .activation = activation_of(op)};
    window_read(&out->window, weight->shape + 2, op->ints + TABLE_INTS, x,
                output);
    out->rows = output->shape[1] / out->groups;
    out->channels = x->shape[1] / out->groups;
    for (uint32_t i = 0; i < spatial; i++) {
        out->taps *= weight->shape[2 + i];
        out->columns *= output->shape[2 + i];
        out->weight_tap[i] = weight->strides[weight->rank - 1 - i];
    }
    out->depth = out->channels * out->taps;
    out->weight_row = weight->strides[out->is_transposed ? 1 : 0];
    out->weight_channel = weight->strides[out->is_transposed ? 0 : 1];
    out->weight_group = out->is_transposed ? out->channels * out->weight_channel
                                           : out->rows * out->weight_row;
    if (input_count == 3u + has_residual(op)) {
        out->bias_tensor = inputs[2];
        out->bias_stride = inputs[2]->strides[0];
    }
    if (has_residual(op)) {
        out->residual_tensor = inputs[input_count - 1];
        out->residual = strides_of(out->residual_tensor);
    }
}

bool conv_strides_are_flat(const struct conv_strides *strides,
                           const int64_t lengths[MAX_SPATIAL_AXES])
{
    int64_t step = strides->axis[0] * lengths[0];
    for (uint32_t i = 1; i < MAX_SPATIAL_AXES; i++) {
        if (lengths[i] > 1 && strides->axis[i] != step)
            return false;
        step *= lengths[i];
    }
    return true;
}

static void conv_lists(const struct op_call *call, uint32_t *ints,
                       uint32_t *floats)
{
    (void)floats;
    *ints += list_count(call->info) * (call->inputs[0]->rank - 2);
}

/* The product of matrices that does the same work. */
static void conv_work(const struct op_call *call, bool contiguous,
                      struct op_work *work)
{
    struct conv_problem conv;
    (void)contiguous;
    conv_problem_read(&conv, call->op, call->inputs, call->input_count,
                      call->outputs[0]);
    double sizes[] = {(double)conv.rows, (double)conv.columns,
                      (double)conv.depth,
                      (double)conv.batch * (double)conv.groups};
    for (uint32_t i = 0; i < 4; i++)
        work->gemm_size[i] = sizes[i];
}

/* A convolution with a window of 3 along each axis, as many output channels as
 * input channels, and bias. A shape of one or two axes gets a batch of 1, and
 * one channel. */
static const char *conv_example(const struct operator_info *info, uint32_t rank,
                                const int64_t *shape, struct op_example *out)
{
    int64_t whole[2 + MAX_SPATIAL_AXES] = {1, 1}, weight[2 + MAX_SPATIAL_AXES];
    uint32_t missing = rank < 3 ? 3 - rank : 0;
    if (rank < 1 || rank > 2 + MAX_SPATIAL_AXES)
        return "batch, channels and one to three spatial axes";
    for (uint32_t i = 0; i < rank; i++)
        whole[missing + i] = shape[i];
    uint32_t whole_rank = rank + missing, spatial = whole_rank - 2;
    for (uint32_t i = 0; i < whole_rank; i++)
        weight[i] = i < 2 ? whole[1] : 3;
    example_input(out, whole_rank, whole);
    example_input(out, whole_rank, weight);
    example_input(out, 1, &whole[1]);
    out->ints[GROUP] = 1;
    window_example(out->ints + TABLE_INTS, spatial, 3, 1);
    out->int_count = TABLE_INTS + list_count(info) * spatial;
    return NULL;
}

const struct op_class op_class_conv = {.input_dtypes = "f",
                                       .output_dtypes = "f",
                                       .variadic = true,
                                       .check = conv_check,
                                       .infer = conv_infer,
                                       .lists = conv_lists,
                                       .work = conv_work,
                                       .example = conv_example};
