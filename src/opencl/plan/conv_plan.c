/* SPDX-License-Identifier: Apache-2.0 */
/* Plans convolutions: as GEMMs, or with cl/conv.cl. */
#include "common/op_conv.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/conv_gemm_plan.h"
#include "opencl/plan/kernel_step.h"
#include "conv.cl"

/* Tile of the kernel conv_tiled, per row of a work-item, and log2 of its
 * work-group size. */
#define ITEM_ROWS_PER_GROUP 8u
#define TILE_N 64u
#define TILED_GROUP_LOG2 7u
/* With fewer output channels per group, most rows of a tile would be empty. */
#define MIN_TILED_ROWS 9

/* Rows of a work-item. With more, Intel's GPUs run out of registers. */
static uint32_t item_rows(const struct platform_device *hardware)
{
    return hardware->nvidia ? 8 : 4;
}

static uint32_t define_item_rows(const struct define_input *in)
{
    return item_rows(in->hardware);
}

#define CONV_DEFINES(transposed)                                               \
    DEFINE_CONSTANT("TRANSPOSED", transposed),                                 \
        DEFINE_TEXT("ACTIVATION", define_activation, 0),                       \
        DEFINE_NUMBER("ITEM_M", define_item_rows, 0), END_OF_DEFINES
static const struct kernel_define conv_defines[] = {CONV_DEFINES(0)};
static const struct kernel_define transpose_defines[] = {CONV_DEFINES(1)};

DECLARE_KERNEL_SOURCE(conv);
static const struct kernel_define depthwise_defines[] = {
    DEFINE_FIELD("WINDOW_X", item_vec4), DEFINE_FIELD("WINDOW_Y", row_elements),
    DEFINE_FIELD("STRIDE_Y", lanes_log2),
    DEFINE_TEXT("ACTIVATION", define_activation, 0), END_OF_DEFINES};
#define CONV_KERNEL(kernel, table)                                             \
    {                                                                          \
        KERNEL_SOURCE(conv), .function = kernel, .defines = table,             \
                             .param_bytes = sizeof(struct conv_params)         \
    }
/* Indexed by whether the convolution is transposed. */
static const struct kernel_info kernels_direct[] = {
    CONV_KERNEL("conv_direct", conv_defines),
    CONV_KERNEL("conv_direct", transpose_defines)};
static const struct kernel_info kernels_tiled[] = {
    CONV_KERNEL("conv_tiled", conv_defines),
    CONV_KERNEL("conv_tiled", transpose_defines)};

static const struct kernel_info kernel_depthwise =
    CONV_KERNEL("conv_depthwise", depthwise_defines);

/* Copies the strides in the order x, y, z, channels, batch. */
static void strides_copy(int64_t *out, const struct conv_strides *strides)
{
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        out[i] = strides->axis[i];
    out[3] = strides->channel;
    out[4] = strides->batch;
}

/* Sets `out` to spatial axes, the innermost first, and further axes. */
static void space_set(struct fast_divmod *out,
                      const int64_t spatial[MAX_SPATIAL_AXES], int64_t next,
                      int64_t last)
{
    struct iteration_space space = {
        .rank = 5, .shape = {last, next, spatial[2], spatial[1], spatial[0]}};
    fast_divmod_fill(out, &space);
}

static void params_fill(struct conv_params *out,
                        const struct conv_problem *conv)
{
    int64_t lengths[MAX_SPATIAL_AXES], taps[MAX_SPATIAL_AXES];
    out->columns = (uint64_t)(conv->batch * conv->columns);
    out->items = out->columns * (uint64_t)(conv->groups * conv->rows);
    strides_copy(out->out_strides, &conv->out);
    strides_copy(out->x_strides, &conv->x);
    strides_copy(out->residual_strides, &conv->residual);
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &conv->window.axis[i];
        lengths[i] = axis->out;
        taps[i] = axis->kernel;
        out->weight_tap[i] = conv->weight_tap[i];
        out->lengths[i] = axis->in;
        out->kernel_size[i] = (int32_t)axis->kernel;
        out->stride[i] = (int32_t)axis->stride;
        out->dilation[i] = (int32_t)axis->dilation;
        out->begin[i] = (int32_t)axis->begin;
    }
    space_set(&out->column_space, lengths, conv->batch, 1);
    space_set(&out->tap_space, taps, conv->channels, 1);
    space_set(&out->item_space, lengths, conv->groups * conv->rows,
              conv->batch);
    out->weight_channel = conv->weight_channel;
    out->weight_row = conv->weight_row;
    out->weight_group = conv->weight_group;
    out->bias_stride = conv->bias_stride;
    out->rows = (uint32_t)conv->rows;
    out->channels = (uint32_t)conv->channels;
    out->depth = (uint32_t)conv->depth;
    const struct activation activation =
        activation_for_kernel(&conv->activation);
    activation_attributes(out->activation, &activation);
}

/* Adds the operands and sets their offsets.  The output stands for a missing
 * bias or residual. */
static void operands_add(struct kernel_step *step, struct conv_params *out,
                         const struct op_request *request,
                         const struct conv_problem *conv)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    const struct tandem_tensor_desc *bias = conv->bias_tensor;
    const struct tandem_tensor_desc *residual = conv->residual_tensor;
    out->out_offset = element_offset(output);
    out->x_offset = element_offset(request->inputs[0]);
    out->weight_offset = element_offset(request->inputs[1]);
    out->has_bias = bias != NULL;
    out->has_residual = residual != NULL;
    if (bias != NULL)
        out->bias_offset = element_offset(bias);
    if (residual != NULL)
        out->residual_offset = element_offset(residual);
    step_add_tensor(step, output, true, AT(conv_params, out_offset));
    step_add_tensor(step, request->inputs[0], false, AT(conv_params, x_offset));
    step_add_tensor(step, request->inputs[1], false,
                    AT(conv_params, weight_offset));
    step_add_tensor(step, bias != NULL ? bias : output, false,
                    bias != NULL ? AT(conv_params, bias_offset) : NO_OFFSET);
    step_add_tensor(step, residual != NULL ? residual : output, false,
                    residual != NULL ? AT(conv_params, residual_offset)
                                     : NO_OFFSET);
}

/* Returns true if positions along an axis, or numbers of elements, need 64
 * bits.
 */
static bool needs_64bit(const struct conv_problem *conv)
{
    bool needs = conv->batch * conv->columns * conv->groups * conv->rows >
                 MAX_32BIT_INDEX;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &conv->window.axis[i];
        int64_t span = axis->kernel * axis->dilation;
        needs = needs || axis->in + axis->out + axis->begin + axis->end + span >
                             MAX_32BIT_INDEX;
    }
    return needs;
}

/* Limits of conv_depthwise: elements of the window, which take registers, and
 * the stride along y. */
#define MAX_DEPTHWISE_TAPS 49
#define MAX_DEPTHWISE_STRIDE 2

static bool is_depthwise(const struct conv_problem *conv)
{
    const struct window_axis *x = &conv->window.axis[0];
    const struct window_axis *y = &conv->window.axis[1];
    const struct window_axis *z = &conv->window.axis[2];
    return !conv->is_transposed && conv->channels == 1 &&
           conv->taps <= MAX_DEPTHWISE_TAPS && x->kernel > 0 && y->kernel > 0 &&
           y->stride <= MAX_DEPTHWISE_STRIDE &&
           (y->dilation == 1 || y->kernel == 1) && z->in == 1 && z->out == 1 &&
           z->kernel == 1 && z->begin == 0;
}

static void plan_depthwise(struct launch_plan *plan,
                           const struct op_request *request,
                           const struct conv_problem *conv)
{
    const struct window_axis *x = &conv->window.axis[0];
    const struct window_axis *y = &conv->window.axis[1];
    struct kernel_key key = {.kernel = &kernel_depthwise,
                             .group_log2 = request->group_log2,
                             .item_vec4 = (uint8_t)x->kernel,
                             .row_elements = (uint8_t)y->kernel,
                             .lanes_log2 = (uint8_t)y->stride};
    kernel_key_set_activation(&key, &conv->activation);
    int64_t blocks = (int64_t)div_ceil((uint64_t)y->out, OUT_LINES);
    int64_t lengths[MAX_SPATIAL_AXES] = {x->out, blocks, 1};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct conv_params *out = (struct conv_params *)step->params;
    params_fill(out, conv);
    operands_add(step, out, request, conv);
    space_set(&out->item_space, lengths, conv->groups * conv->rows,
              conv->batch);
    out->out_lines = (uint32_t)y->out;
    out->items =
        (uint64_t)(x->out * blocks * conv->groups * conv->rows * conv->batch);
    step_set_items(step, out->items);
}

static void plan_conv(struct launch_plan *plan,
                      const struct op_request *request)
{
    struct conv_problem conv;
    conv_problem_read(&conv, request->op, request->inputs, request->input_count,
                      request->outputs[0]);
    bool index_64bit = needs_64bit(&conv);
    if (!index_64bit && is_depthwise(&conv)) {
        plan_depthwise(plan, request, &conv);
        return;
    }
    bool tiled = conv.rows >= MIN_TILED_ROWS && conv.depth > 0 &&
                 !index_64bit && request->group_log2 >= TILED_GROUP_LOG2;
    if (tiled && plan_conv_as_gemm(plan, request, &conv))
        return;
    const struct kernel_info *kernels = tiled ? kernels_tiled : kernels_direct;
    struct kernel_key key = {.kernel = &kernels[conv.is_transposed],
                             .group_log2 =
                                 tiled ? TILED_GROUP_LOG2 : request->group_log2,
                             .index_64bit = index_64bit};
    kernel_key_set_activation(&key, &conv.activation);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct conv_params *out = (struct conv_params *)step->params;
    params_fill(out, &conv);
    operands_add(step, out, request, &conv);
    out->tiles_m =
        (uint32_t)div_ceil((uint64_t)conv.rows,
                           ITEM_ROWS_PER_GROUP * item_rows(request->hardware));
    out->tiles_n = (uint32_t)div_ceil(out->columns, TILE_N);
    step_set_items(step, out->items);
    if (tiled)
        step->groups =
            (uint64_t)out->tiles_m * out->tiles_n * (uint64_t)conv.groups;
}

const struct plan_class plan_class_conv = {.plan = plan_conv};
