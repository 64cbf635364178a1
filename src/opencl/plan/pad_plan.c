/* SPDX-License-Identifier: Apache-2.0 */
/* Plans padding and tiling: cl/pad.cl. */
#include "common/pad_space.h"
#include "opencl/plan/kernel_step.h"
#include "pad.cl"

static const struct kernel_define pad_defines[] = {
    DEFINE_TYPE("BITS", 0), DEFINE_FIELD("VECTOR", vec4), END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(pad);
static const struct kernel_info kernel_pad = {
    KERNEL_SOURCE(pad), .function = "pad", .defines = pad_defines,
    .param_bytes = sizeof(struct pad_params)};

static void plan_pad(struct launch_plan *plan, const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *source = request->inputs[0];
    struct kernel_key key = {.kernel = &kernel_pad,
                             .group_log2 = request->group_log2,
                             .types = {kernel_bits_type(target->dtype)}};
    struct pad_space by;
    struct iteration_space *space = &by.space;
    pad_space_build(&by, request->op, source, target);
    uint32_t inner = space->rank - 1;
    key.index_64bit = needs_64bit_index(space);
    for (uint32_t i = 0; i < space->rank; i++)
        key.index_64bit |= by.length[i] > MAX_32BIT_INDEX / 2;
    key.vec4 =
        space->shape[inner] % 4 == 0 && axis_is_vec4(space, 0, inner, target);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct pad_params *out = (struct pad_params *)step->params;
    step_add_operands(step, request,
                      (const uint32_t[]){AT(pad_params, target_offset),
                                         AT(pad_params, source_offset)});
    out->mode = (uint32_t)by.mode;
    if (by.mode == PAD_CONSTANT)
        out->value_bits = pad_value_bits(request->op, target->dtype);
    out->target_offset = element_offset(target);
    out->source_offset = element_offset(source) + (uint64_t)by.input_offset;
    struct tandem_tensor_desc kept = *source;
    kept.byte_offset +=
        (uint64_t)(by.input_offset * (int64_t)TANDEM_DTYPE_BYTES(kept.dtype));
    out->source_is_vec4 = key.vec4 && by.length[inner] == space->shape[inner] &&
                          axis_is_vec4(space, 1, inner, &kept);
    for (uint32_t i = 0; i <= inner; i++) {
        out->begin[i] = by.begin[inner - i];
        out->length[i] = by.length[inner - i];
    }
    int64_t source_stride = space->strides[1][inner];
    if (key.vec4)
        space_to_vec4(space);
    out->items = (uint64_t)space->elements;
    out->rank = fast_divmod_fill(&out->space, space);
    strides_fill(out->target_strides, space, 0);
    strides_fill(out->source_strides, space, 1);
    out->source_strides[0] = source_stride;
    step_set_items(step, out->items);
}

const struct plan_class plan_class_pad = {.plan = plan_pad};
