/* SPDX-License-Identifier: Apache-2.0 */
/* Plans pooling: cl/pool.cl. */
#include <string.h>

#include "common/op_window.h"
#include "opencl/plan/kernel_step.h"
#include "pool.cl"

/* kernel_key.op_form: the reduction, plus these multiples of SQUARE_WINDOW and
 * SQUARE_STRIDE. */
#define FORM_WINDOW 4u
#define FORM_STRIDE 16u
#define MIN_SQUARE_WINDOW 2
#define MAX_SQUARE_WINDOW 3
#define MAX_SQUARE_STRIDE 2

static uint32_t define_reduction(const struct define_input *in)
{
    return in->key->op_form % FORM_WINDOW;
}
static uint32_t define_window(const struct define_input *in)
{
    return in->key->op_form % FORM_STRIDE / FORM_WINDOW;
}
static uint32_t define_stride(const struct define_input *in)
{
    return in->key->op_form / FORM_STRIDE;
}
static const struct kernel_define pool_defines[] = {
    DEFINE_NUMBER("REDUCTION", define_reduction, 0),
    DEFINE_NUMBER("SQUARE_WINDOW", define_window, 0),
    DEFINE_NUMBER("SQUARE_STRIDE", define_stride, 0), END_OF_DEFINES};
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

/* Returns true if a position, or an offset in a plane of the input, needs 64
 * bits. */
static bool needs_64bit(const struct window *window, const int64_t *in_strides,
                        uint64_t items)
{
    bool needs = items > MAX_32BIT_INDEX;
    double reach = 0;
    for (uint32_t i = 0; i < MAX_SPATIAL_AXES; i++) {
        const struct window_axis *axis = &window->axis[i];
        int64_t length =
            axis->in + axis->begin + axis->end + axis->kernel * axis->dilation;
        needs = needs || length > MAX_32BIT_INDEX;
        reach += (double)length * (double)stride_magnitude(in_strides[i]);
    }
    return needs || reach > MAX_32BIT_INDEX;
}

/* Returns true if no window of the axis is completely in the padding. */
static bool windows_meet_input(const struct window_axis *axis)
{
    int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    return axis->in > 0 && axis->begin < span && axis->end < span;
}

/* Returns true if a kernel for this window exists; see SQUARE_WINDOW. */
static bool has_square_kernel(const struct window *window)
{
    const struct window_axis *x = &window->axis[0], *y = &window->axis[1];
    const struct window_axis *z = &window->axis[2];
    return x->kernel == y->kernel && x->dilation == 1 && y->dilation == 1 &&
           z->kernel == 1 && x->kernel >= MIN_SQUARE_WINDOW &&
           x->kernel <= MAX_SQUARE_WINDOW && y->stride <= MAX_SQUARE_STRIDE &&
           windows_meet_input(x) && windows_meet_input(y) &&
           windows_meet_input(z);
}

static void plan_pool(struct launch_plan *plan,
                      const struct op_request *request)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    bool average = request->op->id == TANDEM_OP_AVERAGE_POOL;
    bool indices = request->output_count > 1;
    struct window window;
    int64_t in_strides[MAX_AXES] = {0};
    struct iteration_space space = {.rank = 5, .elements = 1};
    const int64_t *kernel = request->op->ints + (average ? 2 : 1);
    window_read(&window, kernel, kernel + input->rank - 2, input, output);
    for (uint32_t i = 0; i < 5; i++)
        space.shape[i] = i < 2 ? output->shape[i] : window.axis[4 - i].out;
    uint32_t form = average ? 3 : indices ? 2 : 1;
    if (!indices && has_square_kernel(&window)) {
        form += FORM_WINDOW * (uint32_t)window.axis[0].kernel +
                FORM_STRIDE * (uint32_t)window.axis[1].stride;
        space.shape[3] = div_ceil((uint64_t)space.shape[3], POOL_OUTPUTS);
    }
    for (uint32_t i = 0; i < 5; i++)
        space.elements *= space.shape[i];
    strides_reverse(in_strides, input);
    const struct kernel_key key = {
        .kernel = &kernel_pool,
        .group_log2 = request->group_log2,
        .op_form = (uint8_t)form,
        .index_64bit =
            needs_64bit(&window, in_strides, (uint64_t)space.elements)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct pool_params *out = (struct pool_params *)step->params;
    out->items = (uint64_t)space.elements;
    out->out_offset = element_offset(output);
    out->in_offset = element_offset(input);
    fast_divmod_fill(&out->space, &space);
    strides_reverse(out->out_strides, output);
    memcpy(out->in_strides, in_strides, sizeof(in_strides));
    out->include_pad = average && request->op->ints[1] != 0;
    out->out_length = window.axis[1].out;
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
    step_add_tensor(step, output, true, AT(pool_params, out_offset));
    if (indices) {
        out->index_offset = element_offset(request->outputs[1]);
        strides_reverse(out->index_strides, request->outputs[1]);
        step_add_tensor(step, request->outputs[1], true,
                        AT(pool_params, index_offset));
    }
    step_add_tensor(step, input, false, AT(pool_params, in_offset));
    step_set_items(step, out->items);
}

const struct plan_class plan_class_pool = {.plan = plan_pool};
