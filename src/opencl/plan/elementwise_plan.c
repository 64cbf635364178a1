/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for the operators of cl/elementwise.cl. */
#include <string.h>

#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/memory/buffer.h"
#include "opencl/plan/kernel_step.h"

/* What a GPU reads and writes at a time. */
#define LINE_BYTES 128u
/* A side of a tile, as in cl/elementwise.cl; and the shortest worth one. */
#define TILE_VECTORS 64u
#define TILE_SIDE 32u
#define TILE_LEAST 8

/* As in cl/elementwise.cl. */
struct flat {
    uint64_t elements;
    uint32_t given, single, skew, reserved;
    float value[4];
    uint64_t offset[4];
};

struct strided {
    uint64_t items;
    uint32_t rank, given, single, skew;
    float value[4];
    uint64_t offset[4];
    struct fast_divmod space;
    int64_t strides[4][TANDEM_MAX_RANK];
};

struct crossed {
    uint64_t columns, rows, tiles_along, tiles;
    uint32_t rank, given, single, reserved;
    float value[4];
    uint64_t offset[4];
    int64_t along[4], down[4];
    struct fast_divmod space;
    int64_t strides[4][TANDEM_MAX_RANK];
};

/* Operand 0 is the output, then the inputs. */
static const struct tandem_tensor_desc *
operand(const struct op_request *request, uint32_t number)
{
    return number == 0 ? request->outputs[0] : request->inputs[number - 1];
}

static bool same_shape(const struct tandem_tensor_desc *a,
                       const struct tandem_tensor_desc *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* Whether all operands are plainly contiguous, or single values: what most
 * calls are, told without laying out axes. */
static bool plainly_flat(const struct op_request *request, uint32_t *out_single)
{
    const struct tandem_tensor_desc *out = request->outputs[0];
    *out_single = 0;
    if (!tensor_contiguous(out))
        return false;
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *in = request->inputs[i];
        if (in == NULL || (same_shape(in, out) && tensor_contiguous(in)))
            continue;
        if (shape_elements(in->rank, in->shape) != 1)
            return false;
        *out_single |= 2u << i;
    }
    return true;
}

static bool laid_out_flat(const struct layout *layout, uint32_t *out_single)
{
    *out_single = 0;
    if (!layout_contiguous(layout, 0))
        return false;
    for (uint32_t i = 1; i < layout->operands; i++) {
        if (layout->elements > 1 && layout_constant(layout, i))
            *out_single |= 1u << i;
        else if (!layout_contiguous(layout, i))
            return false;
    }
    return true;
}

/* Scalars in the place of tensors, and attributes. */
static uint32_t values_fill(float *value, const struct op_request *request)
{
    const struct tandem_op *op = request->op;
    uint32_t given = 0, next = 0;
    if (request->input_count == 1) {
        bool bounds = op->id == TANDEM_OP_CLIP;
        for (uint32_t i = 0; i < 2 && i < op->float_count; i++)
            value[2 + i] = bounds ? (float)op->floats[i]
                                  : attribute_f32(op->floats[i]);
        return 0;
    }
    bool logical = operator_row(op->id)->op_class == TANDEM_CLASS_LOGICAL;
    for (uint32_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i] != NULL)
            continue;
        double scalar = op->floats[next++];
        bool truth = logical || (op->id == TANDEM_OP_WHERE && i == 0);
        value[i + 1] = truth ? (float)(scalar != 0) : (float)scalar;
        given |= 2u << i;
    }
    return given;
}

static bool moves(const struct op_request *request)
{
    uint32_t op_class = operator_row(request->op->id)->op_class;
    return op_class == TANDEM_CLASS_COPY || op_class == TANDEM_CLASS_TRANSPOSE;
}

static uint64_t key_of(const struct op_request *request, uint32_t kernel,
                       bool wide, bool vector)
{
    const struct tandem_op *op = request->op;
    uint64_t key = variant_key_vec4(vector);
    if (moves(request)) {
        uint32_t type = kernel_bits_type(request->outputs[0]->dtype);
        return key | variant_key_type(0, type) | variant_key_type(1, type) |
               variant_key_kernel(kernel, TANDEM_OP_COPY, wide,
                                  request->group_log2);
    }
    key |= variant_key_kernel(kernel, op->id, wide, request->group_log2);
    bool where = op->id == TANDEM_OP_WHERE;
    bool logical = operator_row(op->id)->op_class == TANDEM_CLASS_LOGICAL;
    key |= variant_key_type(0, kernel_type_of(request->outputs[0]->dtype));
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *in = request->inputs[i];
        uint32_t absent = logical || (where && i == 0) ? TYPE_BOOL : TYPE_FLOAT;
        key |= variant_key_type(i + 1, in != NULL ? kernel_type_of(in->dtype)
                                                  : absent);
    }
    return key | variant_key_gelu_tanh(op->id == TANDEM_OP_GELU &&
                                       op->int_count > 0 && op->ints[0] != 0);
}

static void offsets_fill(uint64_t *offset, const struct op_request *request)
{
    for (uint32_t i = 0; i <= request->input_count; i++)
        if (operand(request, i) != NULL)
            offset[i] = element_offset(operand(request, i));
}

static void buffers_fill(struct kernel_step *step,
                         const struct op_request *request)
{
    step_add_buffer(step, request->outputs[0]->buffer, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_add_buffer(step,
                        request->inputs[i] != NULL
                            ? request->inputs[i]->buffer
                            : request->outputs[0]->buffer,
                        false);
}

/* Elements between the line of the cache that tensor starts in and tensor. */
static uint32_t line_skew(const struct tandem_tensor_desc *tensor)
{
    uint64_t bytes = tensor->byte_offset + buffer_misalignment(tensor->buffer);
    return (uint32_t)(bytes % LINE_BYTES / TANDEM_DTYPE_BYTES(tensor->dtype));
}

static void plan_flat(struct launch_plan *plan,
                      const struct op_request *request, uint32_t single)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    int64_t elements = shape_elements(output->rank, output->shape);
    bool vector = true;
    for (uint32_t i = 0; i <= request->input_count; i++) {
        const struct tandem_tensor_desc *tensor = operand(request, i);
        if (tensor != NULL && (single >> i & 1u) == 0 &&
            !tensor_is_vec4_aligned(tensor))
            vector = false;
    }
    struct kernel_step *step =
        plan_add_step(plan,
                      key_of(request, KERNEL_ELEMENTWISE_CONTIGUOUS,
                             elements > MAX_32BIT_INDEX, vector),
                      sizeof(struct flat));
    struct flat *flat = (struct flat *)step->params;
    buffers_fill(step, request);
    flat->elements = (uint64_t)elements;
    flat->given = values_fill(flat->value, request);
    flat->single = single;
    offsets_fill(flat->offset, request);
    flat->skew = vector ? 0 : line_skew(output);
    step_set_items(step, (flat->elements + flat->skew + 3) / 4);
}

/* Whether four neighbours along the innermost axis can be one vector for
 * every operand: step 1 and aligned everywhere, or step 0. */
static bool vector_strides(const struct layout *layout,
                           const struct op_request *request, uint32_t given,
                           uint32_t *out_single)
{
    uint32_t inner = layout->rank - 1;
    *out_single = 0;
    if (layout->shape[inner] % 4 != 0 || layout->strides[0][inner] != 1)
        return false;
    for (uint32_t i = 0; i < layout->operands; i++) {
        if ((given >> i & 1u) != 0)
            continue;
        if (layout->strides[i][inner] == 0) {
            *out_single |= 1u << i;
            continue;
        }
        if (layout->strides[i][inner] != 1 ||
            !tensor_is_vec4_aligned(operand(request, i)))
            return false;
        for (uint32_t axis = 0; axis < inner; axis++)
            if (layout->strides[i][axis] % 4 != 0)
                return false;
    }
    return true;
}

/* Whether input i walks axis by 1, while the output walks the innermost. */
static bool walks_across(const struct layout *layout, uint32_t i, uint32_t axis)
{
    return i > 0 && layout->strides[i][axis] == 1 &&
           layout->strides[i][layout->rank - 1] > 1;
}

/* An axis that some input walks by 1 while it jumps along the innermost one, if
 * both are worth a tile; or the innermost. */
static uint32_t crossing_axis(const struct layout *layout)
{
    uint32_t inner = layout->rank - 1;
    for (uint32_t i = 1; i < layout->operands; i++)
        for (uint32_t axis = 0; axis < inner; axis++)
            if (walks_across(layout, i, axis) &&
                layout->shape[axis] >= TILE_LEAST &&
                layout->shape[inner] >= TILE_LEAST)
                return axis;
    return inner;
}

/* Whether all operands can be read in vectors of four, each along its axis of
 * the two that cross; bits of *out_single: repeats along the innermost. */
static bool crossed_vector(const struct layout *layout,
                           const struct op_request *request, uint32_t given,
                           uint32_t axis, uint32_t *out_single)
{
    uint32_t inner = layout->rank - 1;
    *out_single = 0;
    if (request->group_log2 < LARGE_GROUP_LOG2 ||
        layout->shape[inner] % 4 != 0 || layout->shape[axis] % 4 != 0)
        return false;
    for (uint32_t i = 0; i < layout->operands; i++) {
        const int64_t *strides = layout->strides[i];
        uint32_t along = walks_across(layout, i, axis) ? axis : inner;
        if ((given >> i & 1u) != 0)
            continue;
        if (i > 0 && strides[along] == 0) {
            *out_single |= 1u << i;
            continue;
        }
        if (strides[along] != 1 || !tensor_is_vec4_aligned(operand(request, i)))
            return false;
        for (uint32_t other = 0; other < layout->rank; other++)
            if (other != along && strides[other] % 4 != 0)
                return false;
    }
    return true;
}

static void crossed_fill(struct crossed *out, struct layout *layout,
                         uint32_t axis, uint32_t side)
{
    uint32_t inner = layout->rank - 1;
    out->columns = (uint64_t)layout->shape[inner];
    out->rows = (uint64_t)layout->shape[axis];
    out->tiles_along = (out->columns + side - 1) / side;
    out->tiles = out->tiles_along * ((out->rows + side - 1) / side);
    for (uint32_t i = 0; i < layout->operands; i++) {
        out->along[i] = layout->strides[i][inner];
        out->down[i] = layout->strides[i][axis];
    }
    layout_remove_axis(layout, inner);
    layout_remove_axis(layout, axis);
    out->rank = layout->rank;
    fast_divmod_fill(&out->space, layout);
    for (uint32_t i = 0; i < layout->operands; i++)
        strides_fill(out->strides[i], layout, i);
}

static void plan_crossed(struct launch_plan *plan,
                         const struct op_request *request,
                         struct layout *layout, uint32_t axis)
{
    uint32_t across = 0, single;
    float value[4] = {0};
    uint32_t given = values_fill(value, request);
    for (uint32_t i = 1; i < layout->operands; i++)
        across |= (uint32_t)walks_across(layout, i, axis) << (i - 1);
    bool vector = crossed_vector(layout, request, given, axis, &single);
    struct kernel_step *step =
        plan_add_step(plan,
                      key_of(request, KERNEL_ELEMENTWISE_TRANSPOSED,
                             needs_64bit_offset(layout), vector) |
                          variant_key_transposed_inputs(across),
                      sizeof(struct crossed));
    struct crossed *crossed = (struct crossed *)step->params;
    buffers_fill(step, request);
    memcpy(crossed->value, value, sizeof(value));
    crossed->given = given;
    crossed->single = single;
    offsets_fill(crossed->offset, request);
    bool one = (across & (across - 1)) == 0;
    crossed_fill(crossed, layout, axis,
                 vector && one ? TILE_VECTORS : TILE_SIDE);
    step->groups = crossed->tiles * (uint64_t)layout->elements;
}

void plan_strided(struct launch_plan *plan, const struct op_request *request,
                  struct layout *layout)
{
    uint32_t axis = crossing_axis(layout), single, inner = layout->rank - 1;
    if (axis != inner && (1u << request->group_log2) >= TILE_SIDE) {
        plan_crossed(plan, request, layout, axis);
        return;
    }
    float value[4] = {0};
    uint32_t given = values_fill(value, request);
    bool vector = vector_strides(layout, request, given, &single);
    struct kernel_step *step =
        plan_add_step(plan,
                      key_of(request, KERNEL_ELEMENTWISE_STRIDED,
                             needs_64bit_offset(layout), vector),
                      sizeof(struct strided));
    struct strided *strided = (struct strided *)step->params;
    buffers_fill(step, request);
    memcpy(strided->value, value, sizeof(value));
    strided->given = given;
    strided->single = single;
    offsets_fill(strided->offset, request);
    if (!vector && layout_contiguous(layout, 0))
        strided->skew = line_skew(request->outputs[0]);
    if (vector)
        layout_to_vec4(layout);
    strided->items = (uint64_t)layout->elements;
    strided->rank = layout->rank;
    fast_divmod_fill(&strided->space, layout);
    for (uint32_t i = 0; i < layout->operands; i++)
        strides_fill(strided->strides[i], layout, i);
    step_set_items(step, vector ? strided->items
                                : (strided->items + strided->skew + 3) / 4);
}

enum tandem_status plan_elementwise(struct launch_plan *plan,
                                    const struct op_request *request)
{
    uint32_t single;
    struct layout layout;
    if (plainly_flat(request, &single)) {
        plan_flat(plan, request, single);
        return TANDEM_OK;
    }
    layout_elementwise(&layout, request->inputs, request->input_count,
                       request->outputs, request->output_count);
    if (laid_out_flat(&layout, &single))
        plan_flat(plan, request, single);
    else
        plan_strided(plan, request, &layout);
    return TANDEM_OK;
}
