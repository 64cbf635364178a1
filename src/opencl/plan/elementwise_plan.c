/* SPDX-License-Identifier: Apache-2.0 */
/* Plans element-wise operators, which kernels of cl/elementwise.cl compute. */
#include <stdio.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/op_class.h"
#include "common/operator_table.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/kernel_step.h"
#include "elementwise.cl"

/* Number of bytes that a GPU reads or writes with one memory transaction. */
#define CACHE_LINE_BYTES 128u
/* Side length, in elements, of the tiles in which inputs are transposed, with
 * and without vec4 (TILE in cl/elementwise.cl).  Axes shorter than
 * MIN_TILE_AXIS are not divided into tiles. */
#define TILE_SIDE_VEC4 64u
#define TILE_SIDE 32u
#define MIN_TILE_AXIS 8

/* ---- kernels ---- */

/* Writes the name of the function in cl/common/operators.cl that casts. */
static bool cast_function(char out[DEFINE_VALUE_BYTES],
                          const struct kernel_key *key)
{
    static const char *const names[TYPE_COUNT] = {
        [TYPE_FLOAT] = "f32", [TYPE_INT] = "i32",   [TYPE_LONG] = "i64",
        [TYPE_UCHAR] = "u8",  [TYPE_BOOL] = "bool", [TYPE_F16] = "f16",
        [TYPE_BF16] = "bf16"};
    uint32_t to = key->types[0], from = key->types[1];
    bool narrows = to == TYPE_F16 || to == TYPE_BF16;
    bool is_float = from == TYPE_FLOAT || from == TYPE_F16 || from == TYPE_BF16;
    snprintf(out, DEFINE_VALUE_BYTES, "op_cast_%s_%s",
             is_float || (from == TYPE_INT && narrows) ? names[from] : "int",
             names[to]);
    return true;
}

static bool operator_function(char out[DEFINE_VALUE_BYTES],
                              const struct define_input *in)
{
    const struct operator_info *info = operator_lookup(in->key->op);
    if (info->op_class == TANDEM_CLASS_CAST)
        return cast_function(out, in->key);
    if (info->op_class == TANDEM_CLASS_COPY)
        return define_string(out, "op_move");
    if (info->id == TANDEM_OP_RELU_GRAD)
        return define_string(out, "op_relu_grad");
    /* Operators of integers have the type of their last input as suffix. */
    uint8_t type = in->key->types[info->inputs];
    if (type == TYPE_INT || type == TYPE_LONG) {
        snprintf(out, DEFINE_VALUE_BYTES, "op_%s_%s", info->name,
                 type == TYPE_INT ? "int" : "long");
        return true;
    }
    return define_activation(out, in);
}

/* For these operators, operators.cl has a function op_NAME_fast. */
static uint32_t has_fast_path(const struct define_input *in)
{
    return in->key->op == TANDEM_OP_SIN || in->key->op == TANDEM_OP_COS ||
           in->key->op == TANDEM_OP_TAN || in->key->op == TANDEM_OP_POW;
}

static uint32_t input_count(const struct define_input *in)
{
    return operator_lookup(in->key->op)->inputs;
}

/* The type of operand `in->argument`, if the operator has this operand. */
static bool input_type(char out[DEFINE_VALUE_BYTES],
                       const struct define_input *in)
{
    return in->argument <= operator_lookup(in->key->op)->inputs &&
           define_type(out, in);
}

#define ELEMENTWISE_DEFINES(shape)                                             \
    DEFINE_TEXT("OP", operator_function, 0), DEFINE_CONSTANT("SHAPE", shape),  \
        DEFINE_NUMBER("HAS_FAST_PATH", has_fast_path, 0),                      \
        DEFINE_FIELD("VECTOR", vec4), DEFINE_NUMBER("INPUTS", input_count, 0), \
        DEFINE_TYPE("OUT", 0), DEFINE_TEXT("IN0", input_type, 1),              \
        DEFINE_TEXT("IN1", input_type, 2), DEFINE_TEXT("IN2", input_type, 3)

static const struct kernel_define contiguous_defines[] = {
    ELEMENTWISE_DEFINES(1), END_OF_DEFINES};
static const struct kernel_define strided_defines[] = {ELEMENTWISE_DEFINES(2),
                                                       END_OF_DEFINES};
static const struct kernel_define transposed_defines[] = {
    ELEMENTWISE_DEFINES(3),
    DEFINE_FIELD("TRANSPOSED_INPUTS", transposed_inputs), END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(elementwise);
static const struct kernel_info kernel_elementwise_contiguous = {
    KERNEL_SOURCE(elementwise), .function = "elementwise_contiguous",
    .defines = contiguous_defines,
    .param_bytes = sizeof(struct contiguous_params)};
static const struct kernel_info kernel_elementwise_strided = {
    KERNEL_SOURCE(elementwise), .function = "elementwise_strided",
    .defines = strided_defines, .param_bytes = sizeof(struct strided_params)};
static const struct kernel_info kernel_elementwise_transposed = {
    KERNEL_SOURCE(elementwise), .function = "elementwise_transposed",
    .defines = transposed_defines,
    .param_bytes = sizeof(struct transposed_params)};

/* Returns true if the operator's tolerance allows an error of 3 ULP. */
static bool tolerates_3ulp_division(uint32_t op)
{
    return op == TANDEM_OP_SQRT || op == TANDEM_OP_TANH ||
           op == TANDEM_OP_POW || op == TANDEM_OP_SWISH ||
           op == TANDEM_OP_GELU || op == TANDEM_OP_MISH;
}

/* ---- plans ---- */

/* Returns the output if `number` is 0, otherwise input `number` - 1. */
static const struct tandem_tensor_desc *
operand(const struct op_request *request, uint32_t number)
{
    return number == 0 ? request->outputs[0] : request->inputs[number - 1];
}

/* Returns true if every operand is contiguous or has a single element.  Sets
 * bit i of *out_broadcast if the single element of operand i is broadcast.  In
 * most calls this is the case, and the plan needs no iteration space. */
static bool request_is_contiguous(const struct op_request *request,
                                  uint32_t *out_broadcast)
{
    const struct tandem_tensor_desc *out = request->outputs[0];
    *out_broadcast = 0;
    if (!tensor_contiguous(out))
        return false;
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *in = request->inputs[i];
        if (in == NULL || (shapes_equal(in, out) && tensor_contiguous(in)))
            continue;
        if (shape_elements(in->rank, in->shape) != 1)
            return false;
        *out_broadcast |= 2u << i;
    }
    return true;
}

/* Does the same as request_is_contiguous() for a space with merged axes. */
static bool space_is_contiguous(const struct iteration_space *space,
                                uint32_t *out_broadcast)
{
    *out_broadcast = 0;
    if (!space_contiguous(space, 0))
        return false;
    for (uint32_t i = 1; i < space->operands; i++) {
        if (space->elements > 1 && space_constant(space, i))
            *out_broadcast |= 1u << i;
        else if (!space_contiguous(space, i))
            return false;
    }
    return true;
}

static uint32_t scalar_dtype(const struct op_request *request, uint32_t input)
{
    const struct op_call call = {.info = operator_lookup(request->op->id),
                                 .inputs = request->inputs,
                                 .outputs = request->outputs,
                                 .input_count = request->input_count};
    return op_scalar_dtype(&call, input);
}

/* Sets value[i] to the bits of the scalar that replaces operand i.  For a unary
 * operator, sets value[2] and value[3] to the bits of attributes of the
 * operator.  Returns a mask, in which bit i is set if operand i is a scalar. */
static uint32_t values_fill(uint64_t *value, const struct op_request *request)
{
    const struct tandem_op *op = request->op;
    uint32_t immediate = 0, next = 0;
    float attributes[2];
    if (request->input_count == 1) {
        unary_attributes(attributes, op);
        for (uint32_t i = 0; i < 2; i++)
            value[2 + i] = op_scalar_bits(TANDEM_F32, (double)attributes[i]);
        return 0;
    }
    for (uint32_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i] != NULL)
            continue;
        value[i + 1] =
            op_scalar_bits(scalar_dtype(request, i), op->floats[next++]);
        immediate |= 2u << i;
    }
    return immediate;
}

static struct kernel_key key_of(const struct op_request *request,
                                const struct kernel_info *kernel,
                                bool index_64bit, bool vec4)
{
    const struct tandem_op *op = request->op;
    uint32_t op_class = operator_lookup(op->id)->op_class;
    struct kernel_key key = {.kernel = kernel,
                             .group_log2 = request->group_log2,
                             .index_64bit = index_64bit,
                             .vec4 = vec4};
    if (op_class == TANDEM_CLASS_COPY || op_class == TANDEM_CLASS_TRANSPOSE) {
        key.op = TANDEM_OP_COPY;
        key.types[0] = key.types[1] =
            kernel_bits_type(request->outputs[0]->dtype);
        return key;
    }
    key.op = op->id;
    key.op_form =
        op->id == TANDEM_OP_GELU && op->int_count > 0 && op->ints[0] != 0;
    key.fast_division = tolerates_3ulp_division(op->id);
    key.types[0] = kernel_type_of(request->outputs[0]->dtype);
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *in = request->inputs[i];
        key.types[i + 1] =
            kernel_type_of(in != NULL ? in->dtype : scalar_dtype(request, i));
    }
    return key;
}

/* Adds the operands' buffers to the step, and fills the parameters that all
 * kernels begin with. */
static void operands_fill(struct kernel_step *step,
                          const struct op_request *request, uint32_t broadcast)
{
    struct elementwise_operands *out =
        (struct elementwise_operands *)step->params;
    uint32_t positions[TANDEM_MAX_OPERANDS + 1];
    for (uint32_t i = 0; i <= request->input_count; i++) {
        const struct tandem_tensor_desc *tensor = operand(request, i);
        out->offset[i] = tensor != NULL ? element_offset(tensor) : 0;
        positions[i] = AT(elementwise_operands, offset) +
                       i * (uint32_t)sizeof(out->offset[i]);
    }
    step_add_operands(step, request, positions);
    out->immediate = values_fill(out->value, request);
    out->broadcast = broadcast;
}

/* Sets the parameter at position `at` to the position of the output's first
 * element in its cache line, and the number of work-items to that for groups of
 * four elements which start at cache lines. */
static void lines_align(struct kernel_step *step,
                        const struct op_request *request, uint64_t elements,
                        uint32_t at)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    uint32_t bytes = TANDEM_DTYPE_BYTES(output->dtype);
    uint32_t line = CACHE_LINE_BYTES / bytes;
    bool is_aligned = (slot_alignment(output->buffer) | output->byte_offset) %
                          CACHE_LINE_BYTES ==
                      0;
    step_add_patch(step, PATCH_MISALIGNMENT, output, at, line, 0);
    step_set_items(step, div_ceil(elements + (is_aligned ? 0 : line - 1), 4));
}

static void plan_contiguous(struct launch_plan *plan,
                            const struct op_request *request,
                            uint32_t broadcast)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    int64_t elements = shape_elements(output->rank, output->shape);
    bool vec4 = true;
    for (uint32_t i = 0; i <= request->input_count; i++) {
        const struct tandem_tensor_desc *tensor = operand(request, i);
        if (tensor != NULL && (broadcast >> i & 1u) == 0 &&
            !tensor_is_vec4_aligned(tensor))
            vec4 = false;
    }
    struct kernel_key key = key_of(request, &kernel_elementwise_contiguous,
                                   elements > MAX_32BIT_INDEX, vec4);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct contiguous_params *out = (struct contiguous_params *)step->params;
    out->elements = (uint64_t)elements;
    operands_fill(step, request, broadcast);
    if (vec4)
        step_set_items(step, div_ceil(out->elements, 4));
    else
        lines_align(step, request, out->elements,
                    AT(contiguous_params, misalignment));
}

/* Returns true if every operand i is a scalar, is aligned to vec4 along
 * axes[i], or is an input that is constant along axes[i].  Sets bit i of
 * *out_broadcast if operand i is such a constant input. */
static bool operands_are_vec4(const struct iteration_space *space,
                              const struct op_request *request,
                              const uint32_t *axes, uint32_t *out_broadcast)
{
    for (uint32_t i = 0; i < space->operands; i++) {
        const struct tandem_tensor_desc *tensor = operand(request, i);
        if (tensor == NULL)
            continue;
        if (i > 0 && space->strides[i][axes[i]] == 0)
            *out_broadcast |= 1u << i;
        else if (!axis_is_vec4(space, i, axes[i], tensor))
            return false;
    }
    return true;
}

/* Returns true if operand i is an input that is contiguous along `axis` and
 * strided along the innermost axis. */
static bool input_is_transposed(const struct iteration_space *space, uint32_t i,
                                uint32_t axis)
{
    return i > 0 && space->strides[i][axis] == 1 &&
           space->strides[i][space->rank - 1] > 1;
}

/* Returns an axis along which a transposed input is contiguous, if this axis
 * and the innermost axis are long enough for tiles.  Otherwise returns the
 * innermost axis. */
static uint32_t find_transposed_axis(const struct iteration_space *space)
{
    uint32_t inner = space->rank - 1;
    for (uint32_t i = 1; i < space->operands; i++)
        for (uint32_t axis = 0; axis < inner; axis++)
            if (input_is_transposed(space, i, axis) &&
                space->shape[axis] >= MIN_TILE_AXIS &&
                space->shape[inner] >= MIN_TILE_AXIS)
                return axis;
    return inner;
}

static void transposed_fill(struct transposed_params *out,
                            struct iteration_space *space, uint32_t axis,
                            uint32_t side)
{
    uint32_t inner = space->rank - 1;
    out->columns = (uint64_t)space->shape[inner];
    out->rows = (uint64_t)space->shape[axis];
    out->tiles_per_row = div_ceil(out->columns, side);
    out->tiles_per_plane = out->tiles_per_row * div_ceil(out->rows, side);
    for (uint32_t i = 0; i < space->operands; i++) {
        out->column_strides[i] = space->strides[i][inner];
        out->row_strides[i] = space->strides[i][axis];
    }
    space_remove_axis(space, inner);
    space_remove_axis(space, axis);
    out->rank = fast_divmod_fill(&out->space, space);
    for (uint32_t i = 0; i < space->operands; i++)
        strides_fill(out->strides + i * MAX_AXES, space, i);
}

/* Returns true if the tiles of the transposed inputs fit into half the local
 * memory, because Mesa's rusticl reserves twice as much as a kernel declares.
 */
static bool tiles_fit(const struct op_request *request,
                      const struct iteration_space *space, uint32_t axis,
                      uint32_t side)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < space->operands; i++)
        if (input_is_transposed(space, i, axis))
            bytes += (uint64_t)side * (side + 1) *
                     dtype_bytes(operand(request, i)->dtype);
    return bytes <= request->hardware->info.local_memory_bytes / 2;
}

static void plan_transposed(struct launch_plan *plan,
                            const struct op_request *request,
                            struct iteration_space *space, uint32_t axis)
{
    uint32_t inputs = 0, broadcast = 0, inner = space->rank - 1;
    uint32_t axes[SPACE_OPERANDS];
    for (uint32_t i = 0; i < space->operands; i++) {
        bool transposed = input_is_transposed(space, i, axis);
        axes[i] = transposed ? axis : inner;
        inputs |= transposed ? 1u << (i - 1) : 0;
    }
    bool is_single = (inputs & (inputs - 1)) == 0;
    uint32_t vec4_side = is_single ? TILE_SIDE_VEC4 : TILE_SIDE;
    bool vec4 = request->group_log2 >= LARGE_GROUP_LOG2 &&
                tiles_fit(request, space, axis, vec4_side) &&
                space->shape[inner] % 4 == 0 && space->shape[axis] % 4 == 0 &&
                operands_are_vec4(space, request, axes, &broadcast);
    struct kernel_key key = key_of(request, &kernel_elementwise_transposed,
                                   needs_64bit_offset(space), vec4);
    key.transposed_inputs = (uint8_t)inputs;
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct transposed_params *out = (struct transposed_params *)step->params;
    operands_fill(step, request, broadcast);
    transposed_fill(out, space, axis, vec4 ? vec4_side : TILE_SIDE);
    step->groups = out->tiles_per_plane * (uint64_t)space->elements;
}

void plan_strided(struct launch_plan *plan, const struct op_request *request,
                  struct iteration_space *space)
{
    uint32_t axis = find_transposed_axis(space), inner = space->rank - 1;
    uint32_t broadcast = 0, axes[SPACE_OPERANDS];
    if (axis != inner && (1u << request->group_log2) >= TILE_SIDE &&
        tiles_fit(request, space, axis, TILE_SIDE)) {
        plan_transposed(plan, request, space, axis);
        return;
    }
    for (uint32_t i = 0; i < space->operands; i++)
        axes[i] = inner;
    bool vec4 = space->shape[inner] % 4 == 0 &&
                operands_are_vec4(space, request, axes, &broadcast);
    struct kernel_key key = key_of(request, &kernel_elementwise_strided,
                                   needs_64bit_offset(space), vec4);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct strided_params *out = (struct strided_params *)step->params;
    operands_fill(step, request, broadcast);
    bool fills_lines = !vec4 && space_contiguous(space, 0);
    if (vec4)
        space_to_vec4(space);
    out->items = (uint64_t)space->elements;
    out->rank = fast_divmod_fill(&out->space, space);
    for (uint32_t i = 0; i < space->operands; i++)
        strides_fill(out->strides + i * MAX_AXES, space, i);
    if (fills_lines)
        lines_align(step, request, out->items,
                    AT(strided_params, misalignment));
    else
        step_set_items(step, vec4 ? out->items : div_ceil(out->items, 4));
}

static void plan_elementwise(struct launch_plan *plan,
                             const struct op_request *request)
{
    uint32_t broadcast;
    struct iteration_space space;
    bool contiguous = request_is_contiguous(request, &broadcast);
    if (!contiguous) {
        space_elementwise(&space, request->inputs, request->input_count,
                          request->outputs, request->output_count);
        contiguous = space_is_contiguous(&space, &broadcast);
    }
    if (contiguous)
        plan_contiguous(plan, request, broadcast);
    else
        plan_strided(plan, request, &space);
}

const struct plan_class plan_class_unary = {.plan = plan_elementwise};
const struct plan_class plan_class_binary = {.plan = plan_elementwise};
const struct plan_class plan_class_compare = {.plan = plan_elementwise};
const struct plan_class plan_class_logical = {.plan = plan_elementwise};
const struct plan_class plan_class_ternary = {.plan = plan_elementwise};
const struct plan_class plan_class_gradient = {.plan = plan_elementwise};
const struct plan_class plan_class_cast = {.plan = plan_elementwise};
