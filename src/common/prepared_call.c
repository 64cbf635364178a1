/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the two parts of a call: without memory, and its memory. */
#include "common/prepared_call.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/gemm_operator.h"
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_overlap.h"

static struct op_call op_call_of(const struct prepared_call *call)
{
    return (struct op_call){.info = call->info,
                            .op = &call->op,
                            .inputs = call->inputs,
                            .outputs = call->outputs,
                            .input_count = call->input_count,
                            .output_count = call->output_count};
}

/* ---- the call without memory ---- */

enum tandem_status
prepare_arguments_check(uint32_t flags,
                        const struct tandem_prepared_info *out_info,
                        struct tandem_prepared *const *out_prepared)
{
    const uint32_t known = TANDEM_PREPARE_QUERY | TANDEM_PREPARE_COMPILE_NOW;
    enum tandem_status status = check_flags("prepare", flags, known);
    if (status == TANDEM_OK && flags == known)
        return argument_error(
            "prepare: TANDEM_PREPARE_QUERY compiles "
            "nothing, so TANDEM_PREPARE_COMPILE_NOW cannot be "
            "set, too");
    if (status == TANDEM_OK && out_info != NULL)
        status = out_struct_check("prepare: out_info", "tandem_prepared_info",
                                  out_info);
    if (status == TANDEM_OK && out_prepared == NULL &&
        (flags & TANDEM_PREPARE_QUERY) == 0)
        return argument_error("prepare: out_prepared is NULL");
    return status;
}

enum tandem_status operand_desc_check(const char *name, uint32_t operand,
                                      const struct tandem_operand_desc *desc,
                                      uint32_t input_count)
{
    uint32_t reserved = 0, alignment = desc->alignment_bytes;
    for (uint32_t i = 0; i < 4; i++)
        reserved |= desc->reserved[i];
    if (reserved != 0)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "%s: operand %u: a reserved member is not 0; this version does not "
            "know it",
            name, operand);
    if ((alignment & (alignment - 1)) != 0)
        return argument_error("%s: operand %u: the alignment of %u bytes is no "
                              "power of two",
                              name, operand, alignment);
    if (desc->same_as_input > (operand < input_count ? 0 : input_count))
        return argument_error(
            "%s: operand %u: same_as_input is %u; expected 0%s", name, operand,
            desc->same_as_input,
            operand < input_count ? " for an input"
                                  : ", or 1 and the number of an input");
    return TANDEM_OK;
}

/* The strides of an empty tensor, and of an axis with one element, may be any
 * numbers. Replaces those whose products with other numbers could overflow. */
static void strides_limit(struct tandem_tensor_desc *tensor)
{
    bool empty = false;
    for (uint32_t i = 0; i < tensor->rank; i++)
        empty |= tensor->shape[i] == 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const int64_t stride = tensor->strides[i];
        if ((empty || tensor->shape[i] == 1) &&
            (stride < INT32_MIN || stride > INT32_MAX))
            tensor->strides[i] = 0;
    }
}

static void operand_set(struct prepared_operand *out,
                        const struct tandem_operand_desc *desc)
{
    *out = (struct prepared_operand){.is_scalar = desc == NULL};
    if (desc == NULL)
        return;
    out->tensor.dtype = desc->dtype;
    out->tensor.rank = desc->rank;
    memcpy(out->tensor.shape, desc->shape, sizeof(desc->shape));
    memcpy(out->tensor.strides, desc->strides, sizeof(desc->strides));
    out->alignment = desc->alignment_bytes;
    out->alignment_is_known = desc->alignment_bytes != 0;
    out->same_as_input = desc->same_as_input;
}

/* Sets the extent and the alignment of a checked operand. */
static enum tandem_status operand_complete(const struct op_call *call,
                                           uint32_t number,
                                           struct prepared_operand *operand)
{
    /* Elements can be before element (0, ..., 0), but offsets are unsigned. */
    const uint64_t start = INT64_MAX / 2;
    strides_limit(&operand->tensor);
    struct tandem_tensor_desc moved = operand->tensor;
    uint32_t bytes = TANDEM_DTYPE_BYTES(moved.dtype);
    uint64_t first, end;
    moved.byte_offset = start;
    if (!tensor_extent(&moved, &first, &end))
        return operand_error(call, number,
                             "reaches further than any memory (its strides)");
    operand->bytes_before = start - first;
    operand->bytes_after = end - start;
    if (operand->alignment == 0)
        operand->alignment = bytes;
    if (operand->alignment < bytes)
        return operand_error(call, number,
                             "has an alignment of %u bytes; expected at least "
                             "its element size, %u bytes",
                             operand->alignment, bytes);
    return TANDEM_OK;
}

static enum tandem_status output_check(const struct op_call *call,
                                       uint32_t number,
                                       const struct prepared_operand *operand)
{
    const uint32_t input = operand->same_as_input - 1;
    if (tensor_overlaps_itself(&operand->tensor))
        return argument_error("%s: elements of output %u overlap one another",
                              call->info->name, number);
    if (operand->same_as_input == 0)
        return TANDEM_OK;
    if (!op_input_in_place(call, input))
        return argument_error("%s: output %u cannot be input %u",
                              call->info->name, number, input);
    if (call->inputs[input] == NULL ||
        !tensors_same(call->inputs[input], &operand->tensor))
        return argument_error(
            "%s: output %u has another dtype, shape or strides "
            "than input %u, which it should be",
            call->info->name, number, input);
    return TANDEM_OK;
}

static enum tandem_status call_check(struct prepared_call *call)
{
    enum tandem_status status =
        check_op(&call->op, call->inputs, call->input_count, call->outputs,
                 call->output_count, NULL, NULL);
    if (status != TANDEM_OK)
        return status;
    call->info = operator_lookup(call->op.id);
    const struct op_call checked = op_call_of(call);
    struct tandem_gemm gemm;
    if (call->op.id == TANDEM_OP_GEMM)
        status = gemm_from_call(&checked, &gemm);
    for (uint32_t i = 0;
         i < call->input_count + call->output_count && status == TANDEM_OK;
         i++) {
        struct prepared_operand *operand = &call->operands[i];
        if (!operand->is_scalar)
            status = operand_complete(&checked, i, operand);
        if (status == TANDEM_OK && i >= call->input_count)
            status = output_check(&checked, i - call->input_count, operand);
    }
    return status;
}

/* Copies the attributes behind the operands. */
static void attributes_copy(struct prepared_call *call,
                            const struct tandem_op *op, uint32_t operands)
{
    char *memory = (char *)&call->operands[operands];
    memcpy(&call->op, op,
           op->struct_size < sizeof(call->op) ? op->struct_size
                                              : sizeof(call->op));
    call->op.struct_size = sizeof(call->op);
    if (op->ints != NULL && op->int_count > 0) {
        memcpy(memory, op->ints, op->int_count * sizeof(op->ints[0]));
        call->op.ints = (const int64_t *)(void *)memory;
        memory += op->int_count * sizeof(op->ints[0]);
    }
    if (op->floats != NULL && op->float_count > 0) {
        memcpy(memory, op->floats, op->float_count * sizeof(op->floats[0]));
        call->op.floats = (const double *)(void *)memory;
    }
}

/* Returns an unchecked copy of the call, or NULL without memory. */
static struct prepared_call *
call_copy(const struct tandem_op *op,
          const struct tandem_operand_desc *const *inputs, uint32_t input_count,
          const struct tandem_operand_desc *const *outputs,
          uint32_t output_count)
{
    uint32_t count = input_count + output_count;
    struct prepared_call *call =
        calloc(1, sizeof(*call) + count * sizeof(call->operands[0]) +
                      ((size_t)op->int_count + op->float_count) * 8);
    if (call == NULL)
        return NULL;
    call->input_count = input_count;
    call->output_count = output_count;
    for (uint32_t i = 0; i < count; i++) {
        struct prepared_operand *operand = &call->operands[i];
        bool is_input = i < input_count;
        operand_set(operand, is_input ? inputs[i] : outputs[i - input_count]);
        *(is_input ? &call->inputs[i] : &call->outputs[i - input_count]) =
            operand->is_scalar ? NULL : &operand->tensor;
    }
    attributes_copy(call, op, count);
    return call;
}

enum tandem_status prepared_call_create(
    const struct tandem_op *op, const struct tandem_operand_desc *const *inputs,
    uint32_t input_count, const struct tandem_operand_desc *const *outputs,
    uint32_t output_count, struct prepared_call **out_call)
{
    static const struct tandem_tensor_desc *const none[1] = {NULL};
    const struct operator_info *info;
    *out_call = NULL;
    enum tandem_status status = operator_check(op, &info);
    if (status != TANDEM_OK)
        return status;
    if (input_count > TANDEM_MAX_OPERANDS ||
        output_count > TANDEM_MAX_OPERANDS ||
        (inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0))
        /* check_op says what is wrong with the counts and arrays. */
        return check_op(op, inputs != NULL ? none : NULL, input_count,
                        outputs != NULL ? none : NULL, output_count, NULL,
                        NULL);
    for (uint32_t i = 0; i < input_count + output_count; i++) {
        const struct tandem_operand_desc *desc =
            i < input_count ? inputs[i] : outputs[i - input_count];
        if (desc != NULL)
            status = operand_desc_check(info->name, i, desc, input_count);
        if (status != TANDEM_OK)
            return status;
    }
    struct prepared_call *call =
        call_copy(op, inputs, input_count, outputs, output_count);
    if (call == NULL)
        return memory_error("prepare: out of host memory");
    status = call_check(call);
    if (status == TANDEM_OK)
        *out_call = call;
    else
        free(call);
    return status;
}

/* ---- memory ---- */

/* Finds the addresses of an operand and checks that they are valid. */
static enum tandem_status range_find(const struct prepared_call *prepared,
                                     uint32_t number,
                                     const struct tandem_memory *memory,
                                     address_range_fn span, const void *user,
                                     struct tensor_range *out)
{
    const struct prepared_operand *operand = &prepared->operands[number];
    const struct op_call call = op_call_of(prepared);
    char name[OPERAND_NAME_BYTES];
    struct address_range buffer = {.is_sealed = false};
    uint64_t offset = memory->byte_offset;
    if (memory->buffer == NULL)
        return operand_error(&call, number, "has no buffer (NULL)");
    enum tandem_status status = span(user, memory->buffer, &buffer);
    if (status != TANDEM_OK)
        return last_error_prefix(status, operand_name(&call, number, name));
    if (buffer.is_sealed && number >= call.input_count)
        return sealed_error(operand_name(&call, number, name));
    if (offset > buffer.bytes || operand->bytes_before > offset ||
        operand->bytes_after > buffer.bytes - offset)
        return operand_error(
            &call, number,
            "reaches outside its buffer of %llu bytes (offset %llu)",
            (unsigned long long)buffer.bytes, (unsigned long long)offset);
    uint64_t start = buffer.base + offset;
    bool is_empty = operand->bytes_before + operand->bytes_after == 0;
    if (!is_empty && (start & (operand->alignment - 1)) != 0)
        return operand_error(&call, number,
                             "starts at byte %llu, which is not aligned to the "
                             "%u bytes of its description",
                             (unsigned long long)offset, operand->alignment);
    *out =
        (struct tensor_range){&operand->tensor, start - operand->bytes_before,
                              start + operand->bytes_after, start};
    return TANDEM_OK;
}

static bool memory_same(const struct tandem_memory *a,
                        const struct tandem_memory *b)
{
    return a->buffer == b->buffer && a->byte_offset == b->byte_offset;
}

/* Returns true if input i is exactly the output, which is another input, too:
 * for example, x * x in place. */
static bool input_is_same(const struct prepared_call *call, uint32_t i,
                          uint32_t number, const struct tandem_memory *memory)
{
    const struct prepared_operand *output = &call->operands[number];
    const struct op_call checked = op_call_of(call);
    return output->same_as_input != 0 && i < call->input_count &&
           op_input_in_place(&checked, i) &&
           memory_same(&memory[i], &memory[number]) &&
           tensors_same(&call->operands[i].tensor, &output->tensor);
}

/* Checks an output against all operands before it. */
static enum tandem_status
output_check_memory(const struct prepared_call *call, uint32_t number,
                    const struct tandem_memory *memory,
                    const struct tensor_range *ranges)
{
    const char *name = call->info->name;
    const uint32_t output = number - call->input_count;
    const uint32_t same = call->operands[number].same_as_input;
    if (ranges[number].first == ranges[number].end)
        return TANDEM_OK;
    for (uint32_t i = 0; i < number; i++) {
        if (call->operands[i].is_scalar)
            continue;
        if (same == i + 1) {
            if (!memory_same(&memory[i], &memory[number]))
                return argument_error(
                    "%s: output %u is not input %u, as it was prepared", name,
                    output, i);
            continue;
        }
        if (!tensors_overlap(&ranges[number], &ranges[i]) ||
            input_is_same(call, i, number, memory))
            continue;
        return argument_error("%s: output %u overlaps %s %u", name, output,
                              i < call->input_count ? "input" : "output",
                              i < call->input_count ? i
                                                    : i - call->input_count);
    }
    return TANDEM_OK;
}

enum tandem_status
prepared_call_check_memory(const struct prepared_call *call,
                           const struct tandem_memory *memory, uint32_t count,
                           address_range_fn span, const void *user)
{
    struct tensor_range ranges[2 * TANDEM_MAX_OPERANDS];
    enum tandem_status status = TANDEM_OK;
    if (count != call->input_count + call->output_count)
        return argument_error("%s: the number of operands is %u; expected %u",
                              call->info->name, count,
                              call->input_count + call->output_count);
    if (memory == NULL && count > 0)
        return argument_error("%s: the memory is NULL", call->info->name);
    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++)
        if (!call->operands[i].is_scalar)
            status = range_find(call, i, &memory[i], span, user, &ranges[i]);
    for (uint32_t i = call->input_count; i < count && status == TANDEM_OK; i++)
        status = output_check_memory(call, i, memory, ranges);
    return status;
}

/* ---- scalars ---- */

/* Returns true if alpha and beta are 0 in both calls, or in none. */
static bool gemm_factors_fit(const double *a, const double *b)
{
    return (gemm_factor(a[GEMM_ALPHA]) == 0) ==
               (gemm_factor(b[GEMM_ALPHA]) == 0) &&
           (gemm_factor(a[GEMM_BETA]) == 0) == (gemm_factor(b[GEMM_BETA]) == 0);
}

enum tandem_status prepared_call_set_scalars(struct launch_scalars *out,
                                             const struct prepared_call *call,
                                             const double *scalars,
                                             uint32_t count)
{
    const struct op_class *class = op_class_get(call->info->op_class);
    const bool has_step = call->op.id == TANDEM_OP_ADAM;
    const uint32_t floats = call->op.float_count, all = floats + has_step;
    out->op = call->op;
    out->are_changed = false;
    if (scalars == NULL && count == 0)
        return TANDEM_OK;
    if (!class->floats_change && !class->scalars)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: its attributes cannot change from launch to "
                              "launch; prepare it again",
                              call->info->name);
    if (scalars == NULL || count != all)
        return argument_error("%s: the number of scalars is %u; expected %u",
                              call->info->name, scalars == NULL ? 0 : count,
                              all);
    out->op.floats = scalars;
    out->are_changed =
        memcmp(scalars, call->op.floats, floats * sizeof(*scalars)) != 0;
    if (has_step) {
        double step = scalars[floats];
        if (!(step >= 1 && step <= 0x1p53))
            return argument_error("adam: step is %g; expected at least 1",
                                  step);
        memcpy(out->ints, call->op.ints, sizeof(out->ints));
        out->ints[0] = (int64_t)step;
        out->op.ints = out->ints;
        out->are_changed |= out->ints[0] != call->op.ints[0];
    }
    if (call->op.id == TANDEM_OP_GEMM &&
        !gemm_factors_fit(scalars, call->op.floats))
        return argument_error(
            "gemm: alpha is %g and beta %g, but it was prepared with %g and "
            "%g; a factor that is 0 needs another prepared operator",
            scalars[GEMM_ALPHA], scalars[GEMM_BETA],
            call->op.floats[GEMM_ALPHA], call->op.floats[GEMM_BETA]);
    struct op_call checked = op_call_of(call);
    checked.op = &out->op;
    return class->check != NULL ? class->check(&checked) : TANDEM_OK;
}

/* ---- handles ---- */

uint64_t device_id_new(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

enum tandem_status prepared_check(const struct handle_pool *pool,
                                  const void *prepared)
{
    return handle_check(pool, prepared, "prepared",
                        "a prepared operator, or it was released");
}

enum tandem_status prepared_device_closed(void)
{
    return argument_error("the device of the prepared operator was closed");
}

enum tandem_status prepared_other_device(void)
{
    return argument_error(
        "the stream belongs to another device than the prepared operator");
}
