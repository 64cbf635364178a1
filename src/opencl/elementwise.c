/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for the operators of cl/elementwise.cl. */
#include "common/check.h"
#include "common/operator.h"
#include "opencl/memory.h"
#include "opencl/plan.h"

/* What a GPU reads and writes at a time. */
#define LINE_BYTES 128u
#define TILE_SIDE 32

/* As in cl/elementwise.cl. */
struct flat {
    uint64_t elements;
    uint32_t vector, given, single, skew;
    float value[4];
    uint64_t offset[4];
};

struct strided {
    uint64_t items;
    uint32_t rank, vector, given, single;
    float value[4];
    uint64_t offset[4];
    uint32_t span, inner;
    int64_t far[4];
    struct extents space;
    int64_t strides[4][AXES];
};

/* Operand 0 is the output, then the inputs. */
static const struct tandem_tensor_desc *operand(const struct request *request,
                                                uint32_t number)
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
static bool plainly_flat(const struct request *request, uint32_t *out_single)
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
static uint32_t values_fill(float *value, const struct request *request)
{
    const struct tandem_op *op = request->op;
    uint32_t given = 0, next = 0;
    if (request->input_count == 1) {
        for (uint32_t i = 0; i < 2 && i < op->float_count; i++)
            value[2 + i] = (float)op->floats[i];
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

static uint64_t key_of(const struct request *request, uint32_t kernel,
                       bool wide)
{
    const struct tandem_op *op = request->op;
    uint64_t key = kernel_key(kernel, op->id, wide, request->group_log2);
    bool where = op->id == TANDEM_OP_WHERE;
    bool logical = operator_row(op->id)->op_class == TANDEM_CLASS_LOGICAL;
    key |= key_type(0, type_of(request->outputs[0]->dtype));
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *in = request->inputs[i];
        uint32_t absent = logical || (where && i == 0) ? TYPE_BOOL : TYPE_FLOAT;
        key |= key_type(i + 1, in != NULL ? type_of(in->dtype) : absent);
    }
    return key | key_tanh(op->id == TANDEM_OP_GELU && op->int_count > 0 &&
                          op->ints[0] != 0);
}

static void buffers_fill(struct step *step, const struct request *request)
{
    step_buffer(step, request->outputs[0]->buffer, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_buffer(step,
                    request->inputs[i] != NULL ? request->inputs[i]->buffer
                                               : request->outputs[0]->buffer,
                    false);
}

/* Elements between the line of the cache that tensor starts in and tensor. */
static uint32_t line_skew(const struct tandem_tensor_desc *tensor)
{
    uint64_t bytes = tensor->byte_offset +
                     (tensor->buffer != NULL ? tensor->buffer->skew : 0);
    return (uint32_t)(bytes % LINE_BYTES / TANDEM_DTYPE_BYTES(tensor->dtype));
}

static void plan_flat(struct plan *plan, const struct request *request,
                      uint32_t single)
{
    struct step *step = plan_step(plan, key_of(request, KERNEL_FLAT, false),
                                  sizeof(struct flat));
    struct flat *flat = (struct flat *)step->params;
    buffers_fill(step, request);
    flat->elements = (uint64_t)shape_elements(request->outputs[0]->rank,
                                              request->outputs[0]->shape);
    flat->given = values_fill(flat->value, request);
    flat->single = single;
    flat->vector = 1;
    for (uint32_t i = 0; i <= request->input_count; i++) {
        const struct tandem_tensor_desc *tensor = operand(request, i);
        if (tensor == NULL)
            continue;
        flat->offset[i] = element_offset(tensor);
        if ((single >> i & 1u) == 0 && !vector_aligned(tensor))
            flat->vector = 0;
    }
    if (!flat->vector)
        flat->skew = line_skew(request->outputs[0]);
    step_items(step, (flat->elements + flat->skew + 3) / 4);
}

/* Whether four neighbours along the innermost axis can be one vector for
 * every operand: step 1 and aligned everywhere, or step 0. */
static bool vector_strides(const struct layout *layout,
                           const struct request *request, uint32_t given,
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
            !vector_aligned(operand(request, i)))
            return false;
        for (uint32_t axis = 0; axis < inner; axis++)
            if (layout->strides[i][axis] % 4 != 0)
                return false;
    }
    return true;
}

/* An axis that some operand walks by 1 while it jumps along the innermost one,
 * if both are made of tiles; or the innermost. */
static uint32_t crossing_axis(const struct layout *layout)
{
    uint32_t inner = layout->rank - 1;
    if (layout->rank + 3 > TANDEM_MAX_RANK ||
        layout->shape[inner] % TILE_SIDE != 0)
        return inner;
    for (uint32_t i = 0; i < layout->operands; i++)
        for (uint32_t axis = 0; axis < inner; axis++)
            if (layout->strides[i][axis] == 1 &&
                layout->strides[i][inner] > 1 &&
                layout->shape[axis] % TILE_SIDE == 0)
                return axis;
    return inner;
}

/* Cuts such an axis and the innermost so that a group has a tile of the two:
 * from the inside, 8 x 8 elements, 4 of these along the innermost axis, and an
 * item's four elements 8 apart along the other. */
static bool tile_fill(struct strided *out, struct layout *layout)
{
    uint32_t inner = layout->rank - 1, axis = crossing_axis(layout);
    if (axis == inner)
        return false;
    int64_t long_side = layout->shape[inner] / TILE_SIDE;
    layout->elements /= 4;
    layout->shape[axis] /= TILE_SIDE;
    layout->shape[inner] = long_side;
    layout->shape[inner + 1] = 4;
    layout->shape[inner + 2] = layout->shape[inner + 3] = 8;
    layout->rank += 3;
    for (uint32_t i = 0; i < layout->operands; i++) {
        int64_t *strides = layout->strides[i];
        int64_t along = strides[inner], across = strides[axis];
        out->far[i] = 8 * across;
        strides[axis] = TILE_SIDE * across;
        strides[inner] = TILE_SIDE * along;
        strides[inner + 1] = 8 * along;
        strides[inner + 2] = across;
        strides[inner + 3] = along;
    }
    out->span = 1;
    out->inner = UINT32_MAX;
    return true;
}

static void plan_strided(struct plan *plan, const struct request *request,
                         struct layout *layout)
{
    uint32_t inner = layout->rank - 1;
    struct step *step =
        plan_step(plan, key_of(request, KERNEL_STRIDED, needs_wide(layout)),
                  sizeof(struct strided));
    struct strided *strided = (struct strided *)step->params;
    buffers_fill(step, request);
    strided->given = values_fill(strided->value, request);
    strided->vector =
        vector_strides(layout, request, strided->given, &strided->single);
    if (strided->vector) {
        layout->shape[inner] /= 4;
        layout->elements /= 4;
        for (uint32_t i = 0; i < layout->operands; i++)
            layout->strides[i][inner] *= 4;
    } else if (!tile_fill(strided, layout)) {
        strided->inner = (uint32_t)layout->shape[inner];
        strided->span = layout_spans(layout);
        for (uint32_t i = 0; i < layout->operands; i++)
            strided->far[i] = strided->span * layout->strides[i][inner];
    }
    strided->items = (uint64_t)layout->elements;
    strided->rank = layout->rank;
    extents_fill(&strided->space, layout);
    for (uint32_t i = 0; i < layout->operands; i++) {
        const struct tandem_tensor_desc *tensor = operand(request, i);
        strides_fill(strided->strides[i], layout, i);
        strided->offset[i] = tensor != NULL ? element_offset(tensor) : 0;
    }
    step_items(step, strided->items);
}

enum tandem_status plan_elementwise(struct plan *plan,
                                    const struct request *request)
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
