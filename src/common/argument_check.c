/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the arguments of operator and GEMM calls; see argument_check.h. */
#include <stdio.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/tensor_overlap.h"
#include "common/shape_inference.h"
#include "common/struct_size.h"

/* Arguments of a call of the backend function launch or supports. */
struct call {
    const struct operator_info *row;
    const struct tandem_op *op;
    const struct tandem_tensor_desc *const *inputs, *const *outputs;
    uint32_t input_count, output_count;
    uint32_t scalars; /* number of NULL inputs, which are scalars */
};

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

/* Checks that the attributes that switch an option on or off are 0 or 1, except
 * keepdims, which infer_output checks. */
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
                              row->name, (unsigned)row->ints, row->int_names,
                              op->ints == NULL ? 0u : (unsigned)op->int_count);
    if (op->float_count < floats || (floats > 0 && op->floats == NULL))
        return argument_error(
            "%s: needs %u float attributes (%s%s%u scalars), got %u", row->name,
            (unsigned)floats, row->float_names, row->floats > 0 ? ", " : "",
            (unsigned)call->scalars,
            op->floats == NULL ? 0u : (unsigned)op->float_count);
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
    char what[64];
    if (call->input_count != row->inputs || call->output_count != row->outputs)
        return argument_error(
            "%s: expected %u inputs and %u outputs, got %u and %u", row->name,
            (unsigned)row->inputs, (unsigned)row->outputs,
            (unsigned)call->input_count, (unsigned)call->output_count);
    if (call->inputs == NULL || call->outputs == NULL)
        return argument_error("%s: the array of %s is NULL", row->name,
                              call->inputs == NULL ? "inputs" : "outputs");
    for (uint32_t i = 0; i < row->inputs + row->outputs; i++) {
        bool output = i >= row->inputs;
        uint32_t place = output ? i - row->inputs : i;
        const struct tandem_tensor_desc *tensor =
            output ? call->outputs[place] : call->inputs[place];
        if (tensor == NULL && !output && takes_scalars(row)) {
            call->scalars++;
            continue;
        }
        if (tensor == NULL)
            return argument_error("%s: %s %u is NULL", row->name,
                                  output ? "output" : "input", (unsigned)place);
        /* Formatting names is slow, so the first check passes no name. */
        if (tensor->rank <= TANDEM_MAX_RANK &&
            check_shape("", tensor->dtype, tensor->rank, tensor->shape, NULL) ==
                TANDEM_OK)
            continue;
        operand_name(what, sizeof what, row, output, place);
        return check_shape(what, tensor->dtype, tensor->rank, tensor->shape,
                           NULL);
    }
    if (call->scalars == row->inputs)
        return argument_error(
            "%s: every input is a scalar (NULL); one must be a tensor",
            row->name);
    return check_attributes(call);
}

/* ---- dtypes ---- */

static enum tandem_status expect_dtype(const struct call *call, bool output,
                                       uint32_t place, uint32_t dtype)
{
    const struct tandem_tensor_desc *tensor =
        output ? call->outputs[place] : call->inputs[place];
    if (tensor == NULL || tensor->dtype == dtype)
        return TANDEM_OK;
    return argument_error("%s: %s %u has dtype %s; expected %s",
                          call->row->name, output ? "output" : "input",
                          (unsigned)place, dtype_name(tensor->dtype),
                          dtype_name(dtype));
}

static enum tandem_status expect_index(const struct call *call, uint32_t place)
{
    uint32_t dtype = call->inputs[place]->dtype;
    if (dtype == TANDEM_I32 || dtype == TANDEM_I64)
        return TANDEM_OK;
    return argument_error("%s: input %u has dtype %s; expected i32 or i64",
                          call->row->name, (unsigned)place, dtype_name(dtype));
}

/* Checks that inputs number `first` and later have the same dtype, and writes
 * this dtype to *out_dtype. If `outputs` is true, the outputs must have it,
 * too. Skips NULL inputs. */
static enum tandem_status expect_equal(const struct call *call, uint32_t first,
                                       bool outputs, uint32_t *out_dtype)
{
    uint32_t dtype = 0;
    for (uint32_t i = first; i < call->input_count && dtype == 0; i++)
        if (call->inputs[i] != NULL)
            dtype = call->inputs[i]->dtype;
    if (dtype == 0)
        dtype = outputs ? call->outputs[0]->dtype : TANDEM_F32;
    for (uint32_t i = first; i < call->input_count; i++)
        if (expect_dtype(call, false, i, dtype) != TANDEM_OK)
            return TANDEM_INVALID_ARGUMENT;
    for (uint32_t i = 0; outputs && i < call->output_count; i++)
        if (expect_dtype(call, true, i, dtype) != TANDEM_OK)
            return TANDEM_INVALID_ARGUMENT;
    *out_dtype = dtype;
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
        uint32_t dtype =
            i == 0 ? call->inputs[0]->dtype : call->outputs[0]->dtype;
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
    uint32_t dtype = TANDEM_F32;
    enum tandem_status status = TANDEM_OK;
    switch (call->row->op_class) {
    case TANDEM_CLASS_COMPARE:
        status = expect_equal(call, 0, false, &dtype);
        if (status == TANDEM_OK)
            status = expect_dtype(call, true, 0, TANDEM_BOOL);
        break;
    case TANDEM_CLASS_LOGICAL:
        for (uint32_t i = 0; status == TANDEM_OK && i < call->input_count; i++)
            status = expect_dtype(call, false, i, TANDEM_BOOL);
        if (status == TANDEM_OK)
            status = expect_dtype(call, true, 0, TANDEM_BOOL);
        break;
    case TANDEM_CLASS_CAST:
        return check_cast(call);
    case TANDEM_CLASS_COPY:
    case TANDEM_CLASS_TRANSPOSE:
        return expect_dtype(call, true, 0, call->inputs[0]->dtype);
    case TANDEM_CLASS_ARG_REDUCE:
        dtype = call->inputs[0]->dtype;
        status = expect_dtype(call, true, 0, TANDEM_I64);
        break;
    case TANDEM_CLASS_CROSS_ENTROPY:
        dtype = call->inputs[0]->dtype;
        status = expect_index(call, 1);
        if (status == TANDEM_OK)
            status = expect_dtype(call, true, 0, dtype);
        break;
    case TANDEM_CLASS_GATHER:
        status = expect_index(call, 1);
        if (status != TANDEM_OK)
            return status;
        return expect_dtype(call, true, 0, call->inputs[0]->dtype);
    case TANDEM_CLASS_TERNARY:
        if (call->op->id == TANDEM_OP_WHERE) {
            status = expect_dtype(call, false, 0, TANDEM_BOOL);
            if (status == TANDEM_OK)
                status = expect_equal(call, 1, true, &dtype);
            break;
        }
        /* fall through */
    default:
        status = expect_equal(call, 0, true, &dtype);
    }
    return status == TANDEM_OK ? expect_f32(call, dtype) : status;
}

/* ---- shapes ---- */

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

/* Returns true if all inputs of the operator must have equal shapes. */
static bool wants_equal_inputs(const struct operator_info *row)
{
    return row->op_class == TANDEM_CLASS_GRADIENT ||
           row->op_class == TANDEM_CLASS_OPTIMIZER;
}

static enum tandem_status shape_mismatch(const struct call *call, bool output,
                                         uint32_t place,
                                         const struct tandem_tensor_desc *got,
                                         const struct tandem_tensor_desc *want)
{
    char got_text[SHAPE_TEXT], want_text[SHAPE_TEXT];
    return argument_error("%s: %s %u has shape %s; expected %s",
                          call->row->name, output ? "output" : "input",
                          (unsigned)place, shape_text(got, got_text),
                          shape_text(want, want_text));
}

static enum tandem_status check_shapes(const struct call *call)
{
    struct tandem_tensor_desc want;
    for (uint32_t i = 1; wants_equal_inputs(call->row) && i < call->input_count;
         i++)
        if (!same_shape(call->inputs[i], call->inputs[0]))
            return shape_mismatch(call, false, i, call->inputs[i],
                                  call->inputs[0]);
    for (uint32_t i = 0; i < call->output_count; i++) {
        const struct tandem_tensor_desc *output = call->outputs[i];
        if (call->row->op_class == TANDEM_CLASS_COPY)
            return shape_broadcasts(call->inputs[0], output)
                       ? TANDEM_OK
                       : shape_mismatch(call, false, 0, call->inputs[0],
                                        output);
        enum tandem_status status =
            infer_output(call->op, call->inputs, call->input_count, i, &want);
        if (status != TANDEM_OK)
            return status;
        if (!same_shape(output, &want))
            return shape_mismatch(call, true, i, output, &want);
    }
    return TANDEM_OK;
}

/* ---- memory ---- */

/* Address range [first, end) of a tensor in the backend's address space, and
 * the address of its element (0, ..., 0). */
struct tensor_range {
    uint64_t first, end, origin;
};

/* Prepends the names of operator and operand to the backend's error message. */
static enum tandem_status name_operand(enum tandem_status status,
                                       const char *name, const char *side,
                                       uint32_t number)
{
    char reason[256];
    snprintf(reason, sizeof reason, "%s", last_error_get());
    return last_error_set(status, "%s: %s %u: %s", name, side, (unsigned)number,
                          reason);
}

static enum tandem_status find_range(const struct call *call, bool output,
                                     uint32_t number, address_range_fn span,
                                     const void *user, struct tensor_range *out)
{
    const struct tandem_tensor_desc *tensor =
        output ? call->outputs[number] : call->inputs[number];
    struct address_range memory;
    const char *side = output ? "output" : "input";
    if (tensor->buffer == NULL)
        return argument_error("%s: %s %u has no buffer (NULL)", call->row->name,
                              side, (unsigned)number);
    enum tandem_status status = span(user, tensor->buffer, &memory);
    if (status != TANDEM_OK)
        return name_operand(status, call->row->name, side, number);
    if (!tensor_extent(tensor, &out->first, &out->end) ||
        out->end > memory.bytes)
        return argument_error(
            "%s: %s %u reaches outside its buffer of %llu bytes (offset %llu)",
            call->row->name, side, (unsigned)number,
            (unsigned long long)memory.bytes,
            (unsigned long long)tensor->byte_offset);
    if (tensor->byte_offset % TANDEM_DTYPE_BYTES(tensor->dtype) != 0)
        return argument_error("%s: %s %u starts at byte %llu, which is not a "
                              "multiple of its element size",
                              call->row->name, side, (unsigned)number,
                              (unsigned long long)tensor->byte_offset);
    out->first += memory.base;
    out->end += memory.base;
    out->origin = memory.base + tensor->byte_offset;
    return TANDEM_OK;
}

static bool overlap(const struct tandem_tensor_desc *a,
                    const struct tensor_range *at,
                    const struct tandem_tensor_desc *b,
                    const struct tensor_range *bt)
{
    if (at->first >= bt->end || bt->first >= at->end)
        return false;
    return !tensors_disjoint(a, b, (int64_t)(at->origin - bt->origin));
}

static enum tandem_status check_output(const struct call *call, uint32_t number,
                                       const struct tensor_range *inputs,
                                       const struct tensor_range *outputs)
{
    const struct tandem_tensor_desc *output = call->outputs[number];
    if (outputs[number].first == outputs[number].end)
        return TANDEM_OK;
    if (tensor_overlaps_itself(output))
        return argument_error("%s: elements of output %u overlap one another",
                              call->row->name, (unsigned)number);
    for (uint32_t i = 0; i < call->input_count; i++) {
        const struct tandem_tensor_desc *input = call->inputs[i];
        if (input == NULL ||
            (in_place_allowed(call->row) && tensors_same(input, output)) ||
            !overlap(output, &outputs[number], input, &inputs[i]))
            continue;
        return argument_error("%s: output %u overlaps input %u%s",
                              call->row->name, (unsigned)number, (unsigned)i,
                              in_place_allowed(call->row)
                                  ? " without being exactly the same"
                                  : "");
    }
    for (uint32_t i = 0; i < number; i++)
        if (overlap(output, &outputs[number], call->outputs[i], &outputs[i]))
            return argument_error("%s: outputs %u and %u overlap",
                                  call->row->name, (unsigned)i,
                                  (unsigned)number);
    return TANDEM_OK;
}

static enum tandem_status check_memory(const struct call *call,
                                       address_range_fn span, const void *user)
{
    struct tensor_range inputs[TANDEM_MAX_OPERANDS],
        outputs[TANDEM_MAX_OPERANDS];
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; status == TANDEM_OK && i < call->input_count; i++)
        if (call->inputs[i] != NULL)
            status = find_range(call, false, i, span, user, &inputs[i]);
    for (uint32_t i = 0; status == TANDEM_OK && i < call->output_count; i++)
        status = find_range(call, true, i, span, user, &outputs[i]);
    for (uint32_t i = 0; status == TANDEM_OK && i < call->output_count; i++)
        status = check_output(call, i, inputs, outputs);
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
        return argument_error("operator number %u does not exist",
                              (unsigned)op->id);
    if (*out_row == NULL || op->id == TANDEM_OP_FUSED)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "operator number %u is unsupported in this version",
            (unsigned)op->id);
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
                                  (unsigned)input_count,
                                  (unsigned)output_count);
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
