/* SPDX-License-Identifier: Apache-2.0 */
/* Plans concatenations.  cl/concat.cl copies all inputs in one launch if their
 * rows are contiguous.  Otherwise each input is copied by a step of its own. */
#include "opencl/plan/kernel_step.h"
#include "concat.cl"

_Static_assert(CONCAT_PARTS == TANDEM_MAX_OPERANDS, "concat.cl");

static const struct kernel_define concat_defines[] = {DEFINE_TYPE("BITS", 0),
                                                      END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(concat);
static const struct kernel_info kernel_concat = {
    KERNEL_SOURCE(concat), .function = "concat", .defines = concat_defines,
    .param_bytes = sizeof(struct concat_params)};

/* An input and the part of the output that it fills. */
struct part {
    const struct tandem_tensor_desc *source;
    struct tandem_tensor_desc target;
    struct iteration_space space; /* operands: target, source */
};

/* Sets *out to the parts with elements.  Returns their number. */
static uint32_t parts_fill(struct part *out, const struct op_request *request)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    int64_t axis = request->op->ints[0], first = 0;
    uint32_t count = 0;
    axis += axis < 0 ? output->rank : 0;
    for (uint32_t i = 0; i < request->input_count; i++) {
        struct part *part = &out[count];
        part->source = request->inputs[i];
        int64_t length = part->source->shape[axis];
        tensor_slice(&part->target, output, (uint32_t)axis, first, length);
        first += length;
        space_broadcast(
            &part->space,
            (const struct tandem_tensor_desc *[]){&part->target, part->source},
            2, false);
        count += part->space.elements > 0;
    }
    return count;
}

/* Returns true if the part consists of contiguous rows. */
static bool has_contiguous_rows(const struct part *part)
{
    const struct iteration_space *space = &part->space;
    uint32_t inner = space->rank - 1;
    return space->rank <= 2 &&
           (space->elements == 1 ||
            (space->strides[0][inner] == 1 && space->strides[1][inner] == 1));
}

/* Returns true if the rows consist of vec4 that are aligned in both tensors. */
static bool rows_are_vec4(const struct part *part)
{
    uint32_t inner = part->space.rank - 1;
    return part->space.shape[inner] % 4 == 0 &&
           axis_is_vec4(&part->space, 0, inner, &part->target) &&
           axis_is_vec4(&part->space, 1, inner, part->source);
}

/* Fills the members of part number `i`, whose first work-group is `group`.
 * Returns the number of its work-groups. */
static uint64_t part_params_fill(struct concat_params *out, uint32_t i,
                                 uint64_t group, uint32_t group_log2,
                                 const struct part *part)
{
    struct iteration_space rows = part->space;
    struct fast_divmod row_units;
    if (rows_are_vec4(part)) {
        out->vec4_parts |= (uint64_t)1 << i;
        space_to_vec4(&rows);
    }
    fast_divmod_fill(&row_units, &rows);
    out->row_units.extent[i] = row_units.extent[0];
    out->row_units.multiplier[i] = row_units.multiplier[0];
    out->row_units.shift[i] = row_units.shift[0];
    out->first_group[i] = group;
    out->units[i] = (uint64_t)rows.elements;
    out->target_offset[i] = element_offset(&part->target);
    out->source_offset[i] = element_offset(part->source);
    if (part->space.rank == 2) {
        out->target_pitch[i] = part->space.strides[0][0];
        out->source_pitch[i] = part->space.strides[1][0];
    }
    return div_ceil(out->units[i], (uint64_t)ITEM_UNITS << group_log2);
}

/* Plans one launch that copies all parts. */
static void plan_rows(struct launch_plan *plan,
                      const struct op_request *request,
                      const struct part *parts, uint32_t count)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    struct kernel_key key = {.kernel = &kernel_concat,
                             .group_log2 = request->group_log2,
                             .types = {kernel_bits_type(output->dtype)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct concat_params *out = (struct concat_params *)step->params;
    step_add_tensor(step, output, true, NO_OFFSET);
    for (uint32_t i = 0; i < CONCAT_PARTS; i++) {
        if (i >= count) {
            /* The argument must be a buffer; the kernel does not read it. */
            step_add_tensor(step, parts[0].source, false, NO_OFFSET);
            out->first_group[i] = step->groups;
            continue;
        }
        step_add_tensor(step, parts[i].source, false,
                        AT(concat_params, source_offset[0]) +
                            i * (uint32_t)sizeof(out->source_offset[0]));
        step_patch_offset(step, &parts[i].target,
                          AT(concat_params, target_offset[0]) +
                              i * (uint32_t)sizeof(out->target_offset[0]));
        step->groups += part_params_fill(out, i, step->groups,
                                         request->group_log2, &parts[i]);
        step->key.index_64bit |= needs_64bit_index(&parts[i].space);
    }
}

static void plan_concat(struct launch_plan *plan,
                        const struct op_request *request)
{
    static const struct tandem_op copy = {.struct_size = sizeof copy,
                                          .id = TANDEM_OP_COPY};
    struct part parts[CONCAT_PARTS];
    uint32_t count = parts_fill(parts, request);
    bool contiguous = true;
    for (uint32_t i = 0; i < count; i++)
        contiguous = contiguous && has_contiguous_rows(&parts[i]);
    if (contiguous && count > 1) {
        plan_rows(plan, request, parts, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct op_request part = *request;
        part.op = &copy;
        part.inputs = &parts[i].source;
        part.input_count = 1;
        part.outputs = &(const struct tandem_tensor_desc *){&parts[i].target};
        plan_copy(plan, &part);
    }
}

const struct plan_class plan_class_concat = {.plan = plan_concat};
