/* SPDX-License-Identifier: Apache-2.0 */
/* Plans copies and transposes.  A plan has one step: clEnqueueCopyBuffer, the
 * tiled transpose of cl/transpose.cl, or the strided element-wise kernel. */
#include <string.h>

#include "opencl/plan/kernel_step.h"
#include "transpose.cl"

/* ---- kernel ---- */

struct transpose_tile transpose_tile(uint32_t type, bool vec4)
{
    switch (type) {
    case TYPE_UCHAR:
        return (struct transpose_tile){4, 4, vec4 ? 1 : 32, 128, 128};
    case TYPE_USHORT:
        return vec4 ? (struct transpose_tile){2, 4, 1, 64, 128}
                    : (struct transpose_tile){2, 4, 16, 128, 64};
    case TYPE_UINT:
        return (struct transpose_tile){1, 4, vec4 ? 1 : 8, 64, 64};
    default:
        return (struct transpose_tile){1, 2, vec4 ? 1 : 4, 32, 32};
    }
}

/* A macro with a member of struct transpose_tile, at the offset
 * `in->argument`. */
static uint32_t tile_member(const struct define_input *in)
{
    const struct transpose_tile tile =
        transpose_tile(in->key->types[0], in->key->vec4 != 0);
    uint32_t value;
    memcpy(&value, (const char *)&tile + in->argument, sizeof(value));
    return value;
}
#define DEFINE_TILE(name, member)                                              \
    DEFINE_NUMBER(name, tile_member, offsetof(struct transpose_tile, member))

static const struct kernel_define transpose_defines[] = {
    DEFINE_TYPE("BITS", 0),
    DEFINE_FIELD("VECTOR", vec4),
    DEFINE_TILE("BLOCK", block),
    DEFINE_TILE("VECTOR_ELEMENTS", per),
    DEFINE_TILE("STORE_ALIGNMENT", store_alignment),
    DEFINE_TILE("COLUMNS", columns),
    DEFINE_TILE("ROWS", rows),
    END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(transpose);
static const struct kernel_info kernel_transpose_tiled = {
    KERNEL_SOURCE(transpose), .function = "transpose_tiled",
    .defines = transpose_defines,
    .param_bytes = sizeof(struct transpose_params)};

/* ---- plans ---- */

static void plan_buffer_copy(struct launch_plan *plan,
                             const struct op_request *request, int64_t elements)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct kernel_key key = {.kernel = NULL};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    step_add_operands(step, request, (const uint32_t[]){NO_OFFSET, NO_OFFSET});
    step->target_offset = target->byte_offset;
    step->source_offset = request->inputs[0]->byte_offset;
    step->bytes = (uint64_t)elements * TANDEM_DTYPE_BYTES(target->dtype);
}

/* If a tiled transpose is worthwhile, returns the axis along which the source
 * is contiguous.  Otherwise returns the rank. */
static uint32_t find_tiled_axis(const struct iteration_space *space)
{
    uint32_t inner = space->rank - 1;
    if (space->strides[0][inner] != 1 || space->strides[1][inner] == 1 ||
        space->strides[1][inner] == 0 || space->shape[inner] < 8)
        return space->rank;
    for (uint32_t axis = 0; axis < inner; axis++)
        if (space->strides[1][axis] == 1 && space->shape[axis] >= 8)
            return axis;
    return space->rank;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns true if an offset that the transpose kernel computes outside the
 * matrix can exceed MAX_32BIT_INDEX.  If store_alignment is 1, there is no such
 * offset.  Otherwise a tile can start up to store_alignment - 1 columns early,
 * can start after the last column, and can be larger than the matrix. */
static bool tile_needs_64bit_offset(const struct transpose_params *params,
                                    const struct transpose_tile *tile)
{
    uint64_t extra = tile->store_alignment - 1;
    uint64_t columns = max_u64(params->columns + 2 * extra,
                               tile->columns + tile->store_alignment);
    uint64_t rows = max_u64(params->rows, tile->rows);
    uint64_t source = stride_magnitude(params->source_pitch) * columns + rows;
    uint64_t target = stride_magnitude(params->target_pitch) * rows + columns;
    return extra != 0 && (source > MAX_32BIT_INDEX || target > MAX_32BIT_INDEX);
}

/* Plans a tiled transpose that swaps `axis` and the innermost axis. */
static void plan_tiled(struct launch_plan *plan,
                       const struct op_request *request,
                       struct iteration_space *space, uint32_t axis)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *source = request->inputs[0];
    uint32_t inner = space->rank - 1;
    struct kernel_key key = {.kernel = &kernel_transpose_tiled,
                             .group_log2 = request->group_log2,
                             .types = {kernel_bits_type(target->dtype)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct transpose_params *out = (struct transpose_params *)step->params;
    step_add_operands(step, request,
                      (const uint32_t[]){AT(transpose_params, target_offset),
                                         AT(transpose_params, source_offset)});
    out->columns = (uint64_t)space->shape[inner];
    out->rows = (uint64_t)space->shape[axis];
    out->target_pitch = space->strides[0][axis];
    out->source_pitch = space->strides[1][inner];
    bool offset_64bit = needs_64bit_offset(space);
    space_remove_axis(space, inner);
    space_remove_axis(space, axis);
    bool vec4 = out->target_pitch % 4 == 0 && out->source_pitch % 4 == 0 &&
                rows_are_vec4_aligned(space, 0, target) &&
                rows_are_vec4_aligned(space, 1, source);
    struct transpose_tile tile = transpose_tile(key.types[0], vec4);
    offset_64bit = offset_64bit || tile_needs_64bit_offset(out, &tile);
    step->key.index_64bit = offset_64bit;
    step->key.vec4 = vec4;
    /* To align stores, tiles start up to store_alignment - 1 columns early. */
    out->tiles_per_row =
        div_ceil(out->columns + tile.store_alignment - 1, tile.columns);
    step_add_patch(step, PATCH_BUFFER_MISALIGNMENT, target,
                   AT(transpose_params, misalignments), 64, 0);
    step_add_patch(step, PATCH_BUFFER_MISALIGNMENT, source,
                   AT(transpose_params, misalignments), 64, 16);
    out->tiles_per_plane = out->tiles_per_row * div_ceil(out->rows, tile.rows);
    out->groups = out->tiles_per_plane * (uint64_t)space->elements;
    out->target_offset = element_offset(target);
    out->source_offset = element_offset(source);
    out->rank = fast_divmod_fill(&out->space, space);
    strides_fill(out->target_strides, space, 0);
    strides_fill(out->source_strides, space, 1);
    step->groups = out->groups;
}

void plan_copy(struct launch_plan *plan, const struct op_request *request)
{
    struct iteration_space space;
    struct tandem_tensor_desc permuted;
    const struct tandem_tensor_desc *source = request->inputs[0];
    if (request->op->id == TANDEM_OP_TRANSPOSE) {
        space_permute(&permuted, source, request->op->ints);
        source = &permuted;
    }
    space_elementwise(&space, &source, 1, request->outputs, 1);
    struct op_request moved = *request;
    moved.inputs = &source;
    uint32_t axis = find_tiled_axis(&space);
    if (space_contiguous(&space, 0) && space_contiguous(&space, 1))
        plan_buffer_copy(plan, &moved, space.elements);
    else if (axis < space.rank && request->group_log2 >= LARGE_GROUP_LOG2)
        plan_tiled(plan, &moved, &space, axis);
    else
        plan_strided(plan, &moved, &space);
}

const struct plan_class plan_class_copy = {.plan = plan_copy};
const struct plan_class plan_class_transpose = {.plan = plan_copy};
