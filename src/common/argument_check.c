/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the arguments of operator and GEMM calls; see argument_check.h. */
#include <stdarg.h>
#include <stdio.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/tensor_overlap.h"
#include "common/shape_inference.h"
#include "common/struct_size.h"

/* Arguments of a call of the backend function launch or supports. Operand
 * numbers count the inputs first, then the outputs. */
struct call {
    const struct operator_info *row;
    const struct tandem_op *op;
    const struct tandem_tensor_desc *const *inputs, *const *outputs;
    uint32_t input_count, output_count;
    uint32_t scalars; /* number of NULL inputs, which are scalars */
};

static const struct tandem_tensor_desc *operand_get(const struct call *call,
                                                    uint32_t operand)
{
    return operand < call->input_count
               ? call->inputs[operand]
               : call->outputs[operand - call->input_count];
}

/* Buffer size, in bytes, that suffices for the name of every operand. */
#define OPERAND_NAME_BYTES 64

/* Writes an operand's name, as in "relu: input 0", to text. Returns text. */
static const char *operand_name(const struct call *call, uint32_t operand,
                                char *text)
{
    bool output = operand >= call->input_count;
    snprintf(text, OPERAND_NAME_BYTES, "%s: %s %u", call->row->name,
             output ? "output" : "input",
             output ? operand - call->input_count : operand);
    return text;
}

/* Sets the last error to the operand's name, followed by the formatted text. */
__attribute__((format(printf, 3, 4))) static enum tandem_status
operand_error(const struct call *call, uint32_t operand, const char *format,
              ...)
{
    char name[OPERAND_NAME_BYTES], text[2 * SHAPE_TEXT + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return argument_error("%s %s", operand_name(call, operand, name), text);
}

static bool takes_scalars(const struct operator_info *row)
{
    return row->op_class >= TANDEM_CLASS_BINARY &&
           row->op_class <= TANDEM_CLASS_TERNARY && row->inputs > 1;
}

static bool in_place_allowed(const struct operator_info *row)
{
    return row->op_class >= TANDEM_CLASS_UNARY &&
           row->op_class <= TANDEM_CLASS_OPTIMIZER;
}

/* Checks that each attribute that switches an option on or off is 0 or 1. The
 * attribute keepdims is checked by infer_output instead. */
static enum tandem_status check_choice(const struct call *call)
{
    static const struct {
        uint32_t id, place;
        const char *name;
    } choices[] = {{TANDEM_OP_GELU, 0, "approximate"},
                   {TANDEM_OP_SGD, 0, "nesterov"},
                   {TANDEM_OP_ADAM, 1, "decoupled_weight_decay"}};
    for (uint32_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (call->row->id != choices[i].id)
            continue;
        int64_t value = call->op->ints[choices[i].place];
        if (value != 0 && value != 1)
            return argument_error("%s: %s is %lld; expected 0 or 1",
                                  call->row->name, choices[i].name,
                                  (long long)value);
    }
    return TANDEM_OK;
}

static enum tandem_status check_attributes(const struct call *call)
{
    const struct operator_info *row = call->row;
    const struct tandem_op *op = call->op;
    uint32_t floats = row->floats + call->scalars;
    if (op->int_count < row->ints || (row->ints > 0 && op->ints == NULL))
        return argument_error("%s: needs %u integer attributes (%s), got %u",
                              row->name, row->ints, row->int_names,
                              op->ints == NULL ? 0 : op->int_count);
    if (op->float_count < floats || (floats > 0 && op->floats == NULL))
        return argument_error(
            "%s: needs %u float attributes (%s%s%u scalars), got %u", row->name,
            floats, row->float_names, row->floats > 0 ? ", " : "",
            call->scalars, op->floats == NULL ? 0u : op->float_count);
    if (row->id == TANDEM_OP_ADAM && op->ints[0] < 1)
        return argument_error("adam: step is %lld; expected at least 1",
                              (long long)op->ints[0]);
    enum tandem_status status =
        check_flags(row->name, op->flags, TANDEM_OP_ALLOW_NONDETERMINISM);
    return status == TANDEM_OK ? check_choice(call) : status;
}

/* Checks that all operands and attributes are present and that each operand's
 * dtype, rank and shape is valid. Counts the NULL inputs in call->scalars. */
static enum tandem_status check_operands(struct call *call)
{
    const struct operator_info *row = call->row;
    if (call->input_count != row->inputs || call->output_count != row->outputs)
        return argument_error(
            "%s: expected %u inputs and %u outputs, got %u and %u", row->name,
            row->inputs, row->outputs, call->input_count, call->output_count);
    if (call->inputs == NULL || call->outputs == NULL)
        return argument_error("%s: the array of %s is NULL", row->name,
                              call->inputs == NULL ? "inputs" : "outputs");
    for (uint32_t i = 0; i < row->inputs + row->outputs; i++) {
        const struct tandem_tensor_desc *tensor = operand_get(call, i);
        if (tensor == NULL && i < row->inputs && takes_scalars(row)) {
            call->scalars++;
            continue;
        }
        if (tensor == NULL)
            return operand_error(call, i, "is NULL");
        /* Formatting a name is slow, so the name stays empty until a check
         * fails. */
        if (tensor->rank <= TANDEM_MAX_RANK &&
            check_shape("", tensor->dtype, tensor->rank, tensor->shape) ==
                TANDEM_OK)
            continue;
        char name[OPERAND_NAME_BYTES];
        return check_shape(operand_name(call, i, name), tensor->dtype,
                           tensor->rank, tensor->shape);
    }
    if (call->scalars == row->inputs)
        return argument_error(
            "%s: every input is a scalar (NULL); one must be a tensor",
            row->name);
    return check_attributes(call);
}

/* ---- dtypes ---- */

static enum tandem_status expect_dtype(const struct call *call,
                                       uint32_t operand, uint32_t dtype)
{
    const struct tandem_tensor_desc *tensor = operand_get(call, operand);
    if (tensor == NULL || tensor->dtype == dtype)
        return TANDEM_OK;
    return operand_error(call, operand, "has dtype %s; expected %s",
                         dtype_name(tensor->dtype), dtype_name(dtype));
}

/* Checks that input 1, which holds indices, has the dtype i32 or i64. */
static enum tandem_status expect_index(const struct call *call)
{
    uint32_t dtype = call->inputs[1]->dtype;
    if (dtype == TANDEM_I32 || dtype == TANDEM_I64)
        return TANDEM_OK;
    return operand_error(call, 1, "has dtype %s; expected i32 or i64",
                         dtype_name(dtype));
}

/* Checks that the operands from number `first` to `end` - 1 have the same
 * dtype, and writes this dtype to *out_dtype. Skips NULL inputs. */
static enum tandem_status expect_equal(const struct call *call, uint32_t first,
                                       uint32_t end, uint32_t *out_dtype)
{
    uint32_t dtype = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct tandem_tensor_desc *tensor = operand_get(call, i);
        if (dtype == 0 && tensor != NULL)
            dtype = tensor->dtype;
        if (expect_dtype(call, i, dtype) != TANDEM_OK)
            return TANDEM_INVALID_ARGUMENT;
    }
    *out_dtype = dtype != 0 ? dtype : TANDEM_F32;
    return TANDEM_OK;
}

static enum tandem_status expect_f32(const struct call *call, uint32_t dtype)
{
    if (dtype == TANDEM_F32)
        return TANDEM_OK;
    return last_error_set(TANDEM_UNSUPPORTED,
                          "%s: dtype %s is unsupported; expected f32",
                          call->row->name, dtype_name(dtype));
}

static enum tandem_status check_cast(const struct call *call)
{
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t dtype = operand_get(call, i)->dtype;
        if (dtype != TANDEM_F32 && dtype != TANDEM_F16 &&
            dtype != TANDEM_BF16 && dtype != TANDEM_I32 &&
            dtype != TANDEM_I64 && dtype != TANDEM_U8 && dtype != TANDEM_BOOL)
            return last_error_set(
                TANDEM_UNSUPPORTED,
                "cast: dtype %s is unsupported; expected f32, "
                "f16, bf16, i32, i64, u8 or bool",
                dtype_name(dtype));
    }
    return TANDEM_OK;
}

static enum tandem_status check_dtypes(const struct call *call)
{
    const uint32_t output = call->input_count;
    const uint32_t end = output + call->output_count;
    uint32_t dtype = TANDEM_F32;
    enum tandem_status status = TANDEM_OK;
    switch (call->row->op_class) {
    case TANDEM_CLASS_COMPARE:
        status = expect_equal(call, 0, output, &dtype);
        if (status == TANDEM_OK)
            status = expect_dtype(call, output, TANDEM_BOOL);
        break;
    case TANDEM_CLASS_LOGICAL:
        for (uint32_t i = 0; status == TANDEM_OK && i < end; i++)
            status = expect_dtype(call, i, TANDEM_BOOL);
        break;
    case TANDEM_CLASS_CAST:
        return check_cast(call);
    case TANDEM_CLASS_COPY:
    case TANDEM_CLASS_TRANSPOSE:
        return expect_dtype(call, output, call->inputs[0]->dtype);
    case TANDEM_CLASS_ARG_REDUCE:
        dtype = call->inputs[0]->dtype;
        status = expect_dtype(call, output, TANDEM_I64);
        break;
    case TANDEM_CLASS_CROSS_ENTROPY:
        dtype = call->inputs[0]->dtype;
        /* fall through */
    case TANDEM_CLASS_GATHER:
        status = expect_index(call);
        if (status == TANDEM_OK)
            status = expect_dtype(call, output, call->inputs[0]->dtype);
        break;
    case TANDEM_CLASS_TERNARY:
        if (call->op->id == TANDEM_OP_WHERE) {
            status = expect_dtype(call, 0, TANDEM_BOOL);
            if (status == TANDEM_OK)
                status = expect_equal(call, 1, end, &dtype);
            break;
        }
        /* fall through */
    default:
        status = expect_equal(call, 0, end, &dtype);
    }
    return status == TANDEM_OK ? expect_f32(call, dtype) : status;
}

/* ---- shapes ---- */

static enum tandem_status shape_mismatch(const struct call *call,
                                         uint32_t operand,
                                         const struct tandem_tensor_desc *want)
{
    char got_text[SHAPE_TEXT], want_text[SHAPE_TEXT];
    return operand_error(call, operand, "has shape %s; expected %s",
                         shape_text(operand_get(call, operand), got_text),
                         shape_text(want, want_text));
}

static enum tandem_status check_shapes(const struct call *call)
{
    bool equal_inputs = call->row->op_class == TANDEM_CLASS_GRADIENT ||
                        call->row->op_class == TANDEM_CLASS_OPTIMIZER;
    for (uint32_t i = 1; equal_inputs && i < call->input_count; i++)
        if (!shapes_equal(call->inputs[i], call->inputs[0]))
            return shape_mismatch(call, i, call->inputs[0]);
    if (call->row->op_class == TANDEM_CLASS_COPY)
        return shape_broadcasts(call->inputs[0], call->outputs[0])
                   ? TANDEM_OK
                   : shape_mismatch(call, 0, call->outputs[0]);
    for (uint32_t i = 0; i < call->output_count; i++) {
        struct tandem_tensor_desc want;
        enum tandem_status status =
            infer_output(call->op, call->inputs, call->input_count, i, &want);
        if (status != TANDEM_OK)
            return status;
        if (!shapes_equal(call->outputs[i], &want))
            return shape_mismatch(call, call->input_count + i, &want);
    }
    return TANDEM_OK;
}

/* ---- memory ---- */

static enum tandem_status find_range(const struct call *call, uint32_t operand,
                                     address_range_fn span, const void *user,
                                     struct tensor_range *out)
{
    const struct tandem_tensor_desc *tensor = operand_get(call, operand);
    char name[OPERAND_NAME_BYTES];
    struct address_range memory;
    if (tensor->buffer == NULL)
        return operand_error(call, operand, "has no buffer (NULL)");
    enum tandem_status status = span(user, tensor->buffer, &memory);
    if (status != TANDEM_OK)
        return last_error_prefix(status, operand_name(call, operand, name));
    if (!tensor_range_find(out, tensor, memory.base, memory.bytes))
        return operand_error(
            call, operand,
            "reaches outside its buffer of %llu bytes (offset %llu)",
            (unsigned long long)memory.bytes,
            (unsigned long long)tensor->byte_offset);
    if (tensor->byte_offset % TANDEM_DTYPE_BYTES(tensor->dtype) != 0)
        return operand_error(call, operand,
                             "starts at byte %llu, which is not a multiple of "
                             "its element size",
                             (unsigned long long)tensor->byte_offset);
    return TANDEM_OK;
}

/* Checks that the output overlaps neither itself nor an operand with a smaller
 * number. If the operator works in place, the output is allowed to be the same
 * tensor as an input. */
static enum tandem_status check_output(const struct call *call, uint32_t output,
                                       const struct tensor_range *ranges)
{
    const struct tandem_tensor_desc *tensor = operand_get(call, output);
    const uint32_t number = output - call->input_count;
    const char *name = call->row->name;
    if (ranges[output].first == ranges[output].end)
        return TANDEM_OK;
    if (tensor_overlaps_itself(tensor))
        return argument_error("%s: elements of output %u overlap one another",
                              name, number);
    for (uint32_t i = 0; i < output; i++) {
        const struct tandem_tensor_desc *other = operand_get(call, i);
        bool in_place = i < call->input_count && in_place_allowed(call->row);
        if (other == NULL || (in_place && tensors_same(other, tensor)) ||
            !tensors_overlap(&ranges[output], &ranges[i]))
            continue;
        if (i >= call->input_count)
            return argument_error("%s: outputs %u and %u overlap", name,
                                  i - call->input_count, number);
        return argument_error(
            "%s: output %u overlaps input %u%s", name, number, i,
            in_place ? " without being exactly the same" : "");
    }
    return TANDEM_OK;
}

static enum tandem_status check_memory(const struct call *call,
                                       address_range_fn span, const void *user)
{
    const uint32_t end = call->input_count + call->output_count;
    struct tensor_range ranges[2 * TANDEM_MAX_OPERANDS];
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; status == TANDEM_OK && i < end; i++)
        if (operand_get(call, i) != NULL)
            status = find_range(call, i, span, user, &ranges[i]);
    for (uint32_t i = call->input_count; status == TANDEM_OK && i < end; i++)
        status = check_output(call, i, ranges);
    return status;
}

/* ---- check_op ---- */

static enum tandem_status find_row(const struct tandem_op *op,
                                   const struct operator_info **out_row)
{
    if (op == NULL)
        return argument_error("the operator is NULL");
    enum tandem_status status = struct_size_check(
        "op", "tandem_op", op->struct_size, TANDEM_OP_MIN_SIZE_1_0);
    if (status != TANDEM_OK)
        return status;
    *out_row = operator_lookup(op->id);
    if (op->id == TANDEM_OP_INVALID || op->id >= TANDEM_OP_ID_END)
        return argument_error("operator number %u does not exist", op->id);
    if (*out_row == NULL)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "operator number %u is unsupported in this version", op->id);
    return TANDEM_OK;
}

enum tandem_status check_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, address_range_fn span,
                            const void *user)
{
    struct call call = {NULL,        op,           inputs, outputs,
                        input_count, output_count, 0};
    enum tandem_status status = find_row(op, &call.row);
    if (status != TANDEM_OK)
        return status;
    if (op->id == TANDEM_OP_GEMM) {
        if (input_count != 0 || output_count != 0)
            return argument_error("gemm: expected the operands in op->gemm, "
                                  "got %u inputs and %u outputs",
                                  input_count, output_count);
        return check_gemm(op->gemm, span, user);
    }
    status = check_operands(&call);
    if (status == TANDEM_OK)
        status = check_dtypes(&call);
    if (status == TANDEM_OK)
        status = check_shapes(&call);
    if (status == TANDEM_OK && span != NULL)
        status = check_memory(&call, span, user);
    return status;
}
