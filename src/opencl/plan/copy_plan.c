/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for copies and transposes: cl/transpose.cl. */
#include "common/argument_check.h"
#include "common/last_error.h"
#include "opencl/memory/buffer.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/device/device_enumeration.h"

/* As in cl/transpose.cl. */
struct tiled {
    uint64_t columns, rows;
    uint64_t tiles_across, tiles, groups;
    uint64_t target_offset, source_offset;
    int64_t target_pitch, source_pitch;
    uint32_t rank, skews;
    struct fast_divmod space;
    int64_t target_strides[TANDEM_MAX_RANK];
    int64_t source_strides[TANDEM_MAX_RANK];
};

struct transpose_tile transpose_tile(uint32_t type, bool vector)
{
    switch (type) {
    case TYPE_UCHAR:
        return vector ? (struct transpose_tile){4, 4, 1, 128, 128}
                      : (struct transpose_tile){4, 4, 32, 128, 128};
    case TYPE_USHORT:
        return vector ? (struct transpose_tile){2, 4, 1, 64, 128}
                      : (struct transpose_tile){2, 4, 16, 128, 64};
    case TYPE_UINT:
        return (struct transpose_tile){1, 4, vector ? 1 : 8, 64, 64};
    default:
        return (struct transpose_tile){1, 2, vector ? 1 : 4, 32, 32};
    }
}

static void plan_contiguous(struct launch_plan *plan,
                            const struct tandem_tensor_desc *target,
                            const struct tandem_tensor_desc *source,
                            int64_t elements)
{
    struct kernel_step *step = plan_add_step(plan, KERNEL_COPY_BUFFER, 0);
    step_add_buffer(step, target->buffer, true);
    step_add_buffer(step, source->buffer, false);
    step->target_offset = target->byte_offset;
    step->source_offset = source->byte_offset;
    step->bytes = (uint64_t)elements * TANDEM_DTYPE_BYTES(target->dtype);
}

/* The axis along which the source walks by ones, worth tiles together with
 * the target's innermost; or rank. */
static uint32_t tiled_axis(const struct layout *layout)
{
    uint32_t inner = layout->rank - 1;
    if (layout->strides[0][inner] != 1 || layout->strides[1][inner] == 1 ||
        layout->strides[1][inner] == 0 || layout->shape[inner] < 8)
        return layout->rank;
    for (uint32_t axis = 0; axis < inner; axis++)
        if (layout->strides[1][axis] == 1 && layout->shape[axis] >= 8)
            return axis;
    return layout->rank;
}

/* Whether every plane of operand starts where vectors of four do. */
static bool planes_vector(const struct layout *layout, uint32_t operand,
                          const struct tandem_tensor_desc *tensor)
{
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->strides[operand][axis] % 4 != 0)
            return false;
    return tensor_is_vec4_aligned(tensor);
}

/* Elements from where the buffer's memory is aligned to the buffer's first. */
static uint32_t skew_of(const struct tandem_tensor_desc *tensor)
{
    uint32_t bytes = buffer_misalignment(tensor->buffer);
    return bytes / TANDEM_DTYPE_BYTES(tensor->dtype);
}

static uint64_t magnitude(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether a sheared tile works out places beyond 32 bits, though no element is:
 * it starts lines before its first column, the last tile may start past the
 * last column, and of words it works out the whole tile's, there or not. */
static bool shear_far(const struct tiled *tiled,
                      const struct transpose_tile *tile)
{
    uint64_t more = tile->store_alignment - 1;
    uint64_t lines = larger(tiled->columns + 2 * more,
                            tile->columns + tile->store_alignment);
    uint64_t rows = larger(tiled->rows, tile->rows);
    uint64_t from = magnitude(tiled->source_pitch) * lines + rows;
    uint64_t to = magnitude(tiled->target_pitch) * rows + lines;
    return more != 0 && (from > MAX_32BIT_INDEX || to > MAX_32BIT_INDEX);
}

static void plan_tiled(struct launch_plan *plan,
                       const struct op_request *request, struct layout *layout,
                       uint32_t axis, const struct tandem_tensor_desc *source)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    uint32_t inner = layout->rank - 1;
    struct kernel_step *step = plan_add_step(plan, 0, sizeof(struct tiled));
    struct tiled *tiled = (struct tiled *)step->params;
    step_add_buffer(step, target->buffer, true);
    step_add_buffer(step, source->buffer, false);
    tiled->columns = (uint64_t)layout->shape[inner];
    tiled->rows = (uint64_t)layout->shape[axis];
    tiled->target_pitch = layout->strides[0][axis];
    tiled->source_pitch = layout->strides[1][inner];
    uint32_t type = kernel_bits_type(target->dtype);
    bool far = needs_64bit_offset(layout);
    layout_remove_axis(layout, inner);
    layout_remove_axis(layout, axis);
    bool vector = tiled->target_pitch % 4 == 0 &&
                  tiled->source_pitch % 4 == 0 &&
                  planes_vector(layout, 0, target) &&
                  planes_vector(layout, 1, source);
    struct transpose_tile tile = transpose_tile(type, vector);
    far = far || shear_far(tiled, &tile);
    step->key = variant_key_kernel(KERNEL_TRANSPOSE_TILED, 0, far,
                                   request->group_log2) |
                variant_key_type(0, type) | variant_key_vec4(vector);
    /* The first columns of some rows are left to the tile before. */
    tiled->tiles_across =
        (tiled->columns + tile.store_alignment - 1 + tile.columns - 1) /
        tile.columns;
    tiled->skews = skew_of(target) | skew_of(source) << 16;
    tiled->tiles =
        tiled->tiles_across * ((tiled->rows + tile.rows - 1) / tile.rows);
    tiled->groups = tiled->tiles * (uint64_t)layout->elements;
    tiled->target_offset = element_offset(target);
    tiled->source_offset = element_offset(source);
    tiled->rank = layout->rank;
    fast_divmod_fill(&tiled->space, layout);
    strides_fill(tiled->target_strides, layout, 0);
    strides_fill(tiled->source_strides, layout, 1);
    step->groups = tiled->groups;
}

enum tandem_status plan_copy(struct launch_plan *plan,
                             const struct op_request *request)
{
    struct layout layout;
    struct tandem_tensor_desc permuted;
    const struct tandem_tensor_desc *source = request->inputs[0];
    if (request->op->id == TANDEM_OP_TRANSPOSE) {
        layout_permute(&permuted, source, request->op->ints);
        source = &permuted;
    }
    layout_elementwise(&layout, &source, 1, request->outputs, 1);
    if (layout_contiguous(&layout, 0) && layout_contiguous(&layout, 1)) {
        plan_contiguous(plan, request->outputs[0], source, layout.elements);
        return TANDEM_OK;
    }
    struct op_request moved = *request;
    moved.inputs = &source;
    uint32_t axis = tiled_axis(&layout);
    if (axis < layout.rank && request->group_log2 >= LARGE_GROUP_LOG2)
        plan_tiled(plan, request, &layout, axis, source);
    else
        plan_strided(plan, &moved, &layout);
    return TANDEM_OK;
}
