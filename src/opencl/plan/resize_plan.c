/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the operator resize: cl/resize.cl. */
#include "common/operator_table.h"
#include "common/resize_coordinates.h"
#include "opencl/plan/kernel_step.h"
#include "resize.cl"

/* Largest number of elements, of taps, and largest offset for 32-bit indices,
 * and the minimum number of fraction bits. */
#define MAX_32BIT_LENGTH (MAX_32BIT_INDEX / 2)
#define MIN_32BIT_FRACTION 33u
#define NO_AXIS TANDEM_MAX_RANK
#define TEMP_ALIGNMENT 64u

/* kernel_key.op_form of the kernel resize has these bits: the mode, switches,
 * and the number of axes. */
#define FORM_ANTIALIAS 4u
#define FORM_EXCLUDE_OUTSIDE 8u
#define FORM_TAP_IS_VEC4 16u
#define FORM_TWO_AXES 32u
static uint32_t define_mode(const struct define_input *in)
{
    return in->key->op_form % FORM_ANTIALIAS;
}
static uint32_t define_switch(const struct define_input *in)
{
    return (in->key->op_form & in->argument) != 0;
}
static uint32_t define_axes(const struct define_input *in)
{
    return (in->key->op_form & FORM_TWO_AXES) != 0 ? 2 : 1;
}

static const struct kernel_define nearest_defines[] = {
    DEFINE_FIELD("IS_VEC4", vec4), END_OF_DEFINES};
static const struct kernel_define defines[] = {
    DEFINE_FIELD("IS_VEC4", vec4),
    DEFINE_NUMBER("MODE", define_mode, 0),
    DEFINE_NUMBER("ANTIALIAS", define_switch, FORM_ANTIALIAS),
    DEFINE_NUMBER("EXCLUDE_OUTSIDE", define_switch, FORM_EXCLUDE_OUTSIDE),
    DEFINE_NUMBER("TAP_IS_VEC4", define_switch, FORM_TAP_IS_VEC4),
    DEFINE_NUMBER("AXES", define_axes, 0),
    END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(resize);
static const struct kernel_info kernel_nearest = {
    KERNEL_SOURCE(resize), .function = "resize_nearest",
    .defines = nearest_defines,
    .param_bytes = sizeof(struct resize_nearest_params)};
static const struct kernel_info kernel_resize = {
    KERNEL_SOURCE(resize), .function = "resize", .defines = defines,
    .param_bytes = sizeof(struct resize_params)};

/* The input or the output of a pass. */
struct pass_tensor {
    struct tandem_tensor_desc tensor; /* the operand or a temporary tensor */
    bool is_temporary;
};

/* Adds the tensor as an argument of the kernel. */
static void step_add_pass_tensor(struct kernel_step *step,
                                 const struct pass_tensor *from, bool written,
                                 uint32_t at)
{
    if (from->is_temporary)
        step_add_temp(step, written);
    else
        step_add_tensor(step, &from->tensor, written, at);
}

/* Builds a space with the strides of `out` and `in`, and the extents of `out`.
 */
static void space_build(struct iteration_space *space,
                        const struct resize_axes *axes,
                        const struct tandem_tensor_desc *out,
                        const struct tandem_tensor_desc *in)
{
    space->rank = axes->rank;
    space->operands = 2;
    space->elements = 1;
    for (uint32_t i = 0; i < axes->rank; i++) {
        space->shape[i] = out->shape[i];
        space->elements *= out->shape[i];
        space->strides[0][i] = out->strides[i];
        space->strides[1][i] = in->strides[i];
    }
}

static bool stores_vec4(const struct iteration_space *space,
                        const struct tandem_tensor_desc *out)
{
    uint32_t inner = space->rank - 1;
    return space->shape[inner] % 4 == 0 && axis_is_vec4(space, 0, inner, out);
}

/* Returns true if element indices, offsets, coordinates or taps need 64 bits.
 * `in` has the strides of the input. */
static bool needs_64bit(const struct iteration_space *space,
                        const struct resize_axes *axes,
                        const struct tandem_tensor_desc *in)
{
    bool needs = space->elements > MAX_32BIT_LENGTH ||
                 axes->fraction_bits < MIN_32BIT_FRACTION;
    uint64_t reach = 0;
    for (uint32_t i = 0; i < axes->rank; i++) {
        reach += stride_magnitude(in->strides[i]) * (uint64_t)in->shape[i];
        needs = needs || axes->axis[i].taps > MAX_32BIT_LENGTH;
    }
    return needs || reach > MAX_32BIT_LENGTH;
}

/* ---- nearest ---- */

static void plan_nearest(struct launch_plan *plan,
                         const struct op_request *request,
                         const struct resize_axes *axes,
                         const struct pass_tensor *output,
                         const struct pass_tensor *input)
{
    struct iteration_space space;
    space_build(&space, axes, &output->tensor, &input->tensor);
    const struct kernel_key key = {
        .kernel = &kernel_nearest,
        .group_log2 = request->group_log2,
        .vec4 = stores_vec4(&space, &output->tensor),
        .index_64bit = needs_64bit(&space, axes, &input->tensor)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct resize_nearest_params *out =
        (struct resize_nearest_params *)step->params;
    if (key.vec4)
        space_to_vec4(&space);
    strides_fill(out->out_strides, &space, 0);
    out->items = (uint64_t)space.elements;
    out->rank = fast_divmod_fill(&out->space, &space);
    out->out_offset = element_offset(&output->tensor);
    out->in_offset = element_offset(&input->tensor);
    out->rounding = axes->rounding;
    out->slack = axes->slack;
    out->fraction_bits = axes->fraction_bits;
    out->extrapolates = axes->extrapolates;
    out->extrapolation_value =
        attribute_f32(request->op->floats[RESIZE_EXTRAPOLATION_VALUE]);
    for (uint32_t i = 0; i < axes->rank; i++) {
        const struct resize_axis *axis = &axes->axis[axes->rank - 1 - i];
        out->in_strides[i] = axis->in_stride;
        out->lengths[i] = axis->in;
        out->starts[i] = axis->start;
        out->steps[i] = axis->step;
        out->resized_axes |= (uint32_t)axis->is_resized << i;
    }
    step_add_tensor(step, &output->tensor, true,
                    AT(resize_nearest_params, out_offset));
    step_add_tensor(step, &input->tensor, false,
                    AT(resize_nearest_params, in_offset));
    step_set_items(step, out->items);
}

/* ---- linear and cubic ---- */

/* Returns the resized axis before axis `end`, or NO_AXIS. */
static uint32_t previous_axis(const struct resize_axes *axes, uint32_t end)
{
    while (end-- > 0)
        if (axes->axis[end].is_resized)
            return end;
    return NO_AXIS;
}

/* Sets the members that describe interpolated axis number `number`. */
static void interpolated_axis_set(struct resize_params *out, uint32_t number,
                                  const struct resize_axes *axes, uint32_t i,
                                  const struct tandem_tensor_desc *in)
{
    const struct resize_axis *axis = &axes->axis[i];
    out->axes[number] = axes->rank - 1 - i;
    out->lengths[number] = axis->in;
    out->strides[number] = in->strides[i];
    out->starts[number] = axis->start;
    out->steps[number] = axis->step;
    out->taps_before[number] = axis->taps_before;
    out->taps[number] = axis->taps;
    out->filter_scales[number] = (float)axis->filter_scale;
    out->in_strides[axes->rank - 1 - i] = 0;
}

/* Plans a pass along the axes `first` and, unless it is NO_AXIS, `second`. */
static void plan_pass(struct launch_plan *plan,
                      const struct op_request *request,
                      const struct resize_axes *axes, uint32_t first,
                      uint32_t second, const struct pass_tensor *output,
                      const struct pass_tensor *input)
{
    const struct tandem_op *op = request->op;
    const struct tandem_tensor_desc *in = &input->tensor;
    struct iteration_space space;
    uint32_t inner = axes->rank - 1;
    space_build(&space, axes, &output->tensor, in);
    struct kernel_key key = {.kernel = &kernel_resize,
                             .group_log2 = request->group_log2,
                             .index_64bit =
                                 needs_64bit(&space, axes, &input->tensor)};
    /* Four elements along an innermost axis that is not interpolated are read
     * as vec4. */
    bool vec4_taps = first != inner && axis_is_vec4(&space, 1, inner, in);
    key.vec4 =
        stores_vec4(&space, &output->tensor) && (first == inner || vec4_taps);
    key.op_form =
        (uint8_t)(op->ints[RESIZE_MODE] +
                  (op->ints[RESIZE_ANTIALIAS] != 0 ? FORM_ANTIALIAS : 0) +
                  (op->ints[RESIZE_EXCLUDE_OUTSIDE] != 0 ? FORM_EXCLUDE_OUTSIDE
                                                         : 0) +
                  (key.vec4 && first != inner ? FORM_TAP_IS_VEC4 : 0) +
                  (second != NO_AXIS ? FORM_TWO_AXES : 0));
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct resize_params *out = (struct resize_params *)step->params;
    if (key.vec4)
        space_to_vec4(&space);
    out->items = (uint64_t)space.elements;
    out->rank = fast_divmod_fill(&out->space, &space);
    strides_fill(out->out_strides, &space, 0);
    strides_fill(out->in_strides, &space, 1);
    out->out_offset = element_offset(&output->tensor);
    out->in_offset = element_offset(in);
    out->slack = axes->slack;
    out->fraction_bits = axes->fraction_bits;
    out->extrapolates = axes->extrapolates;
    out->extrapolation_value =
        attribute_f32(op->floats[RESIZE_EXTRAPOLATION_VALUE]);
    out->cubic_coeff_a = attribute_f32(op->floats[RESIZE_CUBIC_COEFF_A]);
    out->axes[1] = MAX_AXES;
    interpolated_axis_set(out, 0, axes, first, in);
    if (second != NO_AXIS)
        interpolated_axis_set(out, 1, axes, second, in);
    step_add_pass_tensor(step, output, true, AT(resize_params, out_offset));
    step_add_pass_tensor(step, input, false, AT(resize_params, in_offset));
    step_set_items(step, out->items);
}

/* Reserves a temporary tensor, row-major, with the lengths of `shape`. */
static void temporary_reserve(struct launch_plan *plan, struct pass_tensor *out,
                              uint32_t rank, const int64_t *shape)
{
    int64_t elements = 1;
    *out = (struct pass_tensor){.is_temporary = true};
    out->tensor.buffer = TEMP_BUFFER;
    out->tensor.dtype = TANDEM_F32;
    out->tensor.rank = rank;
    for (uint32_t i = rank; i-- > 0;) {
        out->tensor.shape[i] = shape[i];
        out->tensor.strides[i] = elements;
        elements *= shape[i];
    }
    out->tensor.byte_offset =
        plan_reserve_temp(plan, (uint64_t)elements * 4, TEMP_ALIGNMENT);
}

/* Plans passes from the innermost to the outermost resized axis. */
static void plan_passes(struct launch_plan *plan,
                        const struct op_request *request,
                        const struct resize_axes *axes,
                        const struct pass_tensor *output,
                        const struct pass_tensor *input)
{
    struct pass_tensor from = *input, to;
    int64_t shape[TANDEM_MAX_RANK];
    uint32_t first = previous_axis(axes, axes->rank), count = 0;
    for (uint32_t i = 0; i < axes->rank; i++) {
        shape[i] = axes->axis[i].in;
        count += axes->axis[i].is_resized;
    }
    /* An antialiasing filter has many taps, so each axis has its own pass. */
    bool separate =
        request->op->ints[RESIZE_ANTIALIAS] != 0 && count <= MAX_PLAN_STEPS;
    while (first != NO_AXIS) {
        uint32_t second = separate ? NO_AXIS : previous_axis(axes, first);
        uint32_t last = second != NO_AXIS ? second : first;
        uint32_t next = previous_axis(axes, last);
        shape[first] = axes->axis[first].out;
        shape[last] = axes->axis[last].out;
        if (next == NO_AXIS)
            to = *output;
        else
            temporary_reserve(plan, &to, axes->rank, shape);
        plan_pass(plan, request, axes, first, second, &to, &from);
        from = to;
        first = next;
    }
}

static void plan_resize(struct launch_plan *plan,
                        const struct op_request *request)
{
    struct resize_axes axes;
    struct pass_tensor output = {.tensor = *request->outputs[0]};
    struct pass_tensor input = {.tensor = *request->inputs[0]};
    resize_axes_build(&axes, request->op, &input.tensor, &output.tensor);
    output.tensor.rank = input.tensor.rank = axes.rank;
    for (uint32_t i = 0; i < axes.rank; i++) {
        output.tensor.shape[i] = axes.axis[i].out;
        output.tensor.strides[i] = axes.axis[i].out_stride;
        input.tensor.shape[i] = axes.axis[i].in;
        input.tensor.strides[i] = axes.axis[i].in_stride;
    }
    if (request->op->ints[RESIZE_MODE] == RESIZE_NEAREST ||
        previous_axis(&axes, axes.rank) == NO_AXIS)
        plan_nearest(plan, request, &axes, &output, &input);
    else
        plan_passes(plan, request, &axes, &output, &input);
}

const struct plan_class plan_class_resize = {.plan = plan_resize};
