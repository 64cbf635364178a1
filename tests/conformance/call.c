/* SPDX-License-Identifier: Apache-2.0 */
/* Builds calls under test; see call.h. */
#include "call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct call current;

bool call_is_gemm(const struct call *call)
{
    return call->row->id == TANDEM_OP_GEMM;
}

void call_init(struct call *call, const struct op_row *row,
               struct random *random)
{
    *call = (struct call){
        .row = row,
        .random = random,
        .int_count = row->ints,
        .float_count = row->floats,
        /* The operator table gives GEMM no operands. */
        .inputs = row->id == TANDEM_OP_GEMM ? 3 : row->inputs,
        .outputs = row->id == TANDEM_OP_GEMM ? 1 : row->outputs,
        .required_caps = row->required ? TANDEM_CAP_CORE_OPERATORS : 0,
        .what = "",
        .struct_size = sizeof(struct tandem_op)};
    call->passed_inputs = call->inputs;
    call->passed_outputs = call->outputs;
    for (uint32_t i = 0; i < CALL_OPERANDS; i++)
        call->storage[i] = i;
}

void call_finish(struct call *call)
{
    for (uint32_t i = 0; i < CALL_OPERANDS; i++) {
        if (call->storage[i] != i)
            call->operands[i].image = NULL;
        operand_finish(&call->operands[i]);
    }
}

struct call *call_begin(struct suite *suite, const struct op_row *row,
                        const char *format, ...)
{
    char name[sizeof(suite->name)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    if (!case_begin(suite, row->name, "%s", name))
        return NULL;
    call_init(&current, row, &suite->random);
    return &current;
}

void call_end(struct suite *suite, struct call *call)
{
    call_run(suite, call);
    call_finish(call);
    case_end(suite);
}

struct operand *call_operand(struct call *call, uint32_t place, uint32_t dtype,
                             const struct shape *shape,
                             enum operand_layout layout)
{
    struct operand *operand = &call->operands[place];

    operand_init(operand, call->random, dtype, shape->rank, shape->at, layout,
                 place >= call->inputs);
    return operand;
}

void call_scalar(struct call *call, uint32_t place, uint32_t dtype,
                 double value)
{
    operand_scalar(&call->operands[place], dtype, value);
    call->floats[call->float_count++] = value;
}

void call_in_place(struct call *call, uint32_t k, uint32_t input)
{
    struct operand *out = &call->operands[call->inputs + k];
    struct operand *in = &call->operands[input];
    uint64_t bytes = (uint64_t)in->elements * sizeof(int64_t);

    operand_finish(out);
    *out = *in;
    out->offsets = must_allocate(bytes);
    memcpy(out->offsets, in->offsets, bytes);
    call->storage[call->inputs + k] = input;
}

/* ---- text ---- */

static size_t gemm_text(const struct tandem_gemm *gemm, char *text, size_t size)
{
    const struct op_row *activation = op_find(gemm->activation);

    return (size_t)snprintf(
        text, size,
        " %" PRId64 "x%" PRId64 "x%" PRId64 " batch %" PRId64
        " flags %#x alpha %g beta %g bias %u %s %g %g",
        gemm->m, gemm->n, gemm->k, gemm->batch, gemm->flags, gemm->alpha,
        gemm->beta, gemm->bias_kind,
        activation != NULL ? activation->name : "linear",
        gemm->activation_parameter, gemm->activation_parameter2);
}

void call_text(const struct call *call, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", call->row->name);
    char one[400];

    if (call_is_gemm(call))
        used += gemm_text(&call->gemm, text + used, size - used);
    if (call->flags != 0)
        used += (size_t)snprintf(text + used, size - used, " flags %#x",
                                 call->flags);
    for (uint32_t i = 0; i < call->int_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %" PRId64,
                                 call->ints[i]);
    for (uint32_t i = 0; i < call->float_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %.9g",
                                 call->floats[i]);
    for (uint32_t i = 0; i < call->inputs + call->outputs && used < size; i++) {
        operand_text(&call->operands[i], one, sizeof(one));
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i < call->inputs ? ", " : " -> ", one);
        if (call->storage[i] != i && used < size)
            used += (size_t)snprintf(text + used, size - used,
                                     " in the buffer of %u", call->storage[i]);
    }
    if (call->what[0] != '\0' && used < size)
        snprintf(text + used, size - used, " (%s)", call->what);
}
