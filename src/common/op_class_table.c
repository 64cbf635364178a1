/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operator classes, and what its entries have in common; see
 * op_class.h. */
#include "common/op_class.h"

#include <string.h>

#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

static const struct op_class *const classes[TANDEM_CLASS_END] = {
#define OP_CLASS_ENTRY(ID, number, name) [number] = &op_class_##name,
    TANDEM_CLASSES(OP_CLASS_ENTRY)
#undef OP_CLASS_ENTRY
};

const struct op_class *op_class_get(uint32_t op_class)
{
    return op_class < TANDEM_CLASS_END ? classes[op_class] : NULL;
}

bool op_input_in_place(const struct op_call *call, uint32_t input)
{
    const struct op_class *class = classes[call->info->op_class];
    return (class->in_place >> input & 1u) != 0 ||
           (class->residual_in_place && call->op->ints[1] != 0 &&
            input + 1 == call->input_count);
}

/* ---- dtypes ---- */

/* Returns letter `i` of a dtype rule. The last letter is repeated. */
static char letter_at(const char *letters, uint32_t i)
{
    while (i-- > 0 && letters[1] != '\0')
        letters++;
    return *letters;
}

static const char *input_dtypes(const struct operator_info *info)
{
    const struct op_class *class = classes[info->op_class];
    return class->op_input_dtypes != NULL ? class->op_input_dtypes(info->id)
                                          : class->input_dtypes;
}

static char output_letter(const struct operator_info *info, uint32_t output)
{
    return letter_at(classes[info->op_class]->output_dtypes, output);
}

/* Returns true if all operands with such letters have the same dtype. */
static bool letter_is_common(char letter)
{
    return letter == 'f' || letter == 'e' || letter == 'a';
}

uint32_t op_scalar_dtype(const struct op_call *call, uint32_t input)
{
    const char *letters = input_dtypes(call->info);
    if (letter_at(letters, input) == 'b')
        return TANDEM_BOOL;
    for (uint32_t i = 0; i < call->input_count; i++)
        if (call->inputs[i] != NULL && letter_at(letters, i) != 'b')
            return call->inputs[i]->dtype;
    return call->outputs != NULL &&
                   letter_is_common(output_letter(call->info, 0))
               ? call->outputs[0]->dtype
               : TANDEM_F32;
}

uint64_t op_scalar_bits(uint32_t dtype, double value)
{
    double limit = dtype == TANDEM_I32 ? 0x1p31 : 0x1p63;
    float real = (float)value;
    uint32_t bits;
    switch (dtype) {
    case TANDEM_BOOL:
        return value != 0;
    case TANDEM_I32:
    case TANDEM_I64:
        if (isnan(value))
            return 0;
        if (value >= limit)
            return dtype == TANDEM_I32 ? INT32_MAX : INT64_MAX;
        if (value < -limit)
            return dtype == TANDEM_I32 ? (uint32_t)INT32_MIN
                                       : (uint64_t)INT64_MIN;
        return dtype == TANDEM_I32 ? (uint32_t)(int64_t)value
                                   : (uint64_t)(int64_t)value;
    default:
        memcpy(&bits, &real, sizeof bits);
        return bits;
    }
}

/* Returns true if cast converts from and to the dtype. */
static bool cast_supports(uint32_t dtype)
{
    return dtype == TANDEM_F32 || dtype == TANDEM_F16 || dtype == TANDEM_BF16 ||
           dtype == TANDEM_I32 || dtype == TANDEM_I64 || dtype == TANDEM_U8 ||
           dtype == TANDEM_BOOL;
}

enum tandem_status op_check_dtypes(const struct op_call *call)
{
    const struct op_class *class = classes[call->info->op_class];
    const char *letters = input_dtypes(call->info);
    if (class->check_dtypes != NULL)
        return class->check_dtypes(call);
    uint32_t common = 0; /* dtype of the operands with the letters f, e and a */
    bool computes = false, integers = false;
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        const struct tandem_tensor_desc *tensor = op_call_operand(call, i);
        if (i == call->input_count)
            letters = class->output_dtypes;
        char letter = *letters;
        letters += letters[1] != '\0';
        computes |= letter == 'f' || letter == 'e';
        integers |= letter == 'e';
        if (tensor == NULL)
            continue;
        uint32_t dtype = tensor->dtype, expected = dtype;
        if (letter == 'm' && dtype != TANDEM_BOOL)
            letter = 'f';
        if (letter_is_common(letter)) {
            common = common == 0 ? dtype : common;
            expected = common;
        } else if (letter == 'b') {
            expected = TANDEM_BOOL;
        } else if (letter == 'l') {
            expected = TANDEM_I64;
        } else if (letter == 'n' && dtype != TANDEM_F32 &&
                   dtype != TANDEM_I32 && dtype != TANDEM_I64) {
            return operand_error(call, i,
                                 "has dtype %s; expected f32, i32 or i64",
                                 dtype_name(dtype));
        } else if (letter == 'i' && dtype != TANDEM_I32 &&
                   dtype != TANDEM_I64) {
            return operand_error(call, i, "has dtype %s; expected i32 or i64",
                                 dtype_name(dtype));
        } else if (letter == 'c' && !cast_supports(dtype)) {
            return last_error_set(TANDEM_UNSUPPORTED,
                                  "%s: dtype %s is unsupported; expected f32, "
                                  "f16, bf16, i32, i64, u8 or bool",
                                  call->info->name, dtype_name(dtype));
        }
        if (dtype != expected)
            return operand_error(call, i, "has dtype %s; expected %s",
                                 dtype_name(dtype), dtype_name(expected));
    }
    if (!computes || common == TANDEM_F32 ||
        (integers && (common == TANDEM_I32 || common == TANDEM_I64)))
        return TANDEM_OK;
    return last_error_set(TANDEM_UNSUPPORTED,
                          "%s: dtype %s is unsupported; expected %s",
                          call->info->name, dtype_name(common),
                          integers ? "f32, i32 or i64" : "f32");
}

/* ---- outputs ---- */

static uint32_t output_dtype(const struct op_call *call, uint32_t output,
                             uint32_t given)
{
    const char *letters = input_dtypes(call->info);
    switch (output_letter(call->info, output)) {
    case 'b':
        return TANDEM_BOOL;
    case 'l':
        return TANDEM_I64;
    case 'c':
    case 'n':
        return given;
    default:
        break;
    }
    /* c has the dtype of a bias or a residual. */
    if (call->info->id == TANDEM_OP_GEMM && call->input_count > 2)
        return call->inputs[2]->dtype;
    for (uint32_t i = 0; i < call->input_count; i++) {
        char letter = letter_at(letters, i);
        if (call->inputs[i] != NULL && letter_is_common(letter))
            return call->inputs[i]->dtype;
    }
    return TANDEM_F32;
}

enum tandem_status op_infer(const struct op_call *call, uint32_t output,
                            struct tandem_tensor_desc *out)
{
    const struct op_class *class = classes[call->info->op_class];
    out->dtype = output_dtype(call, output, out->dtype);
    if (class->infer != NULL)
        return class->infer(call, output, out);
    shape_copy(out, call->inputs[0]);
    return TANDEM_OK;
}

enum tandem_status infer_output(const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count, uint32_t output,
                                struct tandem_tensor_desc *out)
{
    const struct op_call call = {.info = operator_lookup(op->id),
                                 .op = op,
                                 .inputs = inputs,
                                 .input_count = input_count};
    if (call.info == NULL || call.info->inputs == 0 ||
        input_count < call.info->inputs ||
        (input_count > call.info->inputs &&
         !classes[call.info->op_class]->variadic) ||
        output >= call.info->outputs)
        return argument_error("%s: no output %u of %u inputs can be inferred",
                              operator_name(op->id), output, input_count);
    return op_infer(&call, output, out);
}

/* ---- work ---- */

void op_work_compute(const struct op_call *call, struct op_work *out)
{
    const struct op_class *class = classes[call->info->op_class];
    bool contiguous = true;
    *out = (struct op_work){.cost_class = call->info->cost_class};
    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        const struct tandem_tensor_desc *tensor = op_call_operand(call, i);
        if (tensor == NULL)
            continue;
        double elements = (double)shape_elements(tensor->rank, tensor->shape);
        out->bytes += tensor_data_bytes(tensor);
        if (elements > out->elements)
            out->elements = elements;
        contiguous &= tensor_contiguous(tensor);
    }
    if (class->strided_cost && !contiguous)
        out->cost_class = TANDEM_COST_STRIDED;
    if (class->work != NULL)
        class->work(call, contiguous, out);
}

/* ---- examples ---- */

/* Sets the dtype, and row-major strides, of an example's operand. */
static void example_complete(struct tandem_tensor_desc *tensor, char letter,
                             bool output)
{
    tensor->dtype = letter == 'b'                                ? TANDEM_BOOL
                    : letter == 'l'                              ? TANDEM_I64
                    : letter == 'i' || (letter == 'c' && output) ? TANDEM_I32
                                                                 : TANDEM_F32;
    shape_strides(tensor->rank, tensor->shape, tensor->strides);
}

/* Completes the inputs, and adds the outputs that an operator of the table has
 * for them. */
static void example_operands(const struct operator_info *info,
                             struct op_example *out)
{
    const struct tandem_tensor_desc *inputs[TANDEM_MAX_OPERANDS];
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = info->id,
                                 .int_count = out->int_count,
                                 .float_count = out->float_count,
                                 .ints = out->ints,
                                 .floats = out->floats};
    for (uint32_t i = 0; i < out->input_count; i++) {
        example_complete(&out->inputs[i], letter_at(input_dtypes(info), i),
                         false);
        inputs[i] = &out->inputs[i];
    }
    for (uint32_t i = 0; i < info->outputs; i++)
        infer_output(&op, inputs, out->input_count, i, &out->outputs[i]);
    if (info->outputs > 0)
        out->output_count = info->outputs;
    for (uint32_t i = 0; i < out->output_count; i++)
        example_complete(&out->outputs[i], output_letter(info, i), true);
}

const char *op_example_build(const struct operator_info *info, uint32_t rank,
                             const int64_t *shape, struct op_example *out)
{
    const struct op_class *class = classes[info->op_class];
    const char *needed = NULL;
    memset(out, 0, sizeof *out);
    out->int_count = info->ints;
    out->float_count = info->floats;
    for (uint32_t i = 0; i < TANDEM_MAX_ATTRIBUTES; i++)
        out->floats[i] = 1;
    for (uint32_t i = 0; i < TANDEM_MAX_OPERANDS; i++)
        out->alias[i] = -1;
    if (class->example != NULL)
        needed = class->example(info, rank, shape, out);
    while (needed == NULL && out->input_count < info->inputs)
        example_input(out, rank, shape);
    if (needed == NULL)
        example_operands(info, out);
    return needed;
}
