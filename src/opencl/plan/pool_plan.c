/* SPDX-License-Identifier: Apache-2.0 */
/* Plans pooling: cl/pool.cl. */
#include "common/op_window.h"
#include "opencl/plan/kernel_step.h"
#include "pool.cl"

static const struct kernel_define pool_defines[] = {
    DEFINE_FIELD("REDUCTION", op_form), END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(pool);
static const struct kernel_info kernel_pool = {
    KERNEL_SOURCE(pool), .function = "pool", .defines = pool_defines,
    .param_bytes = sizeof(struct pool_params)};

/* Copies the strides in the order x, y, z, channels, batch. */
static void strides_reverse(int64_t *out,
                            const struct tandem_tensor_desc *tensor)
{
    uint32_t spatial = tensor->rank - 2;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++)
        out[i] = i < spatial ? tensor->strides[tensor->rank - 1 - i] : 0;
    out[3] = tensor->strides[1];
    out[4] = tensor->strides[0];
}

/* Returns true if a position or an offset in the input needs 64 bits. */
static bool needs_64bit(const struct window *window, uint64_t items)
{
    bool needs = items > MAX_32BIT_INDEX;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &window->axis[i];
        needs = needs || axis->in + axis->begin + axis->end +
                                 axis->kernel * axis->dilation >
                             MAX_32BIT_INDEX;
    }
    return needs;
}

static void plan_pool(struct launch_plan *plan,
                      const struct op_request *request)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    bool average = request->op->id == TANDEM_OP_AVERAGE_POOL;
    bool indices = request->output_count > 1;
    struct window window;
    struct iteration_space space = {.rank = 5, .elements = 1};
    const int64_t *kernel = request->op->ints + (average ? 2 : 1);
    window_read(&window, kernel, kernel + input->rank - 2, input, output);
    for (uint32_t i = 0; i < 5; i++) {
        space.shape[i] = i < 2 ? output->shape[i] : window.axis[4 - i].out;
        space.elements *= space.shape[i];
    }
    const struct kernel_key key = {
        .kernel = &kernel_pool,
        .group_log2 = request->group_log2,
        .op_form = average ? 3 : indices ? 2 : 1,
        .index_64bit = needs_64bit(&window, (uint64_t)space.elements)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct pool_params *out = (struct pool_params *)step->params;
    out->items = (uint64_t)space.elements;
    out->out_offset = element_offset(output);
    out->in_offset = element_offset(input);
    fast_divmod_fill(&out->space, &space);
    strides_reverse(out->out_strides, output);
    strides_reverse(out->in_strides, input);
    out->include_pad = average && request->op->ints[1] != 0;
    out->volume = 1;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &window.axis[i];
        out->volume *= (uint64_t)axis->in;
        out->lengths[i] = axis->in;
        out->kernel_size[i] = axis->kernel;
        out->stride[i] = axis->stride;
        out->dilation[i] = axis->dilation;
        out->begin[i] = axis->begin;
        out->counted[i] = axis->in + (out->include_pad ? axis->end : 0);
    }
    step_add_tensor(step, output, true);
    if (indices) {
        out->index_offset = element_offset(request->outputs[1]);
        strides_reverse(out->index_strides, request->outputs[1]);
        step_add_tensor(step, request->outputs[1], true);
    }
    step_add_tensor(step, input, false);
    step_set_items(step, out->items);
}

const struct plan_class plan_class_pool = {.plan = plan_pool};
