/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators of the example plugin: add, mul, relu and gemm of f32, one
 * element after another. Pure functions over host memory.
 */
#include "example/example.h"

#include <stdlib.h>

#include "common/argument_check.h"
#include "common/gemm_operator.h"
#include "common/last_error.h"

/* Tells the checks where a buffer is, if it belongs to the device. */
static enum tandem_status buffer_span(const void *device,
                                      const struct tandem_buffer *buffer,
                                      struct address_range *out)
{
    const struct object *object = object_get(buffer, BUFFER);

    if (object == NULL)
        return TANDEM_INVALID_ARGUMENT;
    if (object->device != device)
        return argument_error("the buffer is of another device");
    *out = (struct address_range){.base = (uintptr_t)object->memory,
                                  .bytes = object->bytes};
    return TANDEM_OK;
}

static enum tandem_status gemm_is_supported(const struct tandem_gemm *gemm)
{
    if (gemm->dtype != TANDEM_F32 || gemm_c_dtype(gemm) != TANDEM_F32)
        return last_error_set(TANDEM_UNSUPPORTED, "gemm: only f32");
    if (gemm->bias_kind != TANDEM_BIAS_NONE ||
        gemm->activation != TANDEM_OP_INVALID)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "gemm: neither bias nor activation");
    return TANDEM_OK;
}

enum tandem_status gemm_check(const struct tandem_gemm *gemm,
                              const struct object *device)
{
    enum tandem_status status = check_gemm(gemm, buffer_span, device);

    return status == TANDEM_OK ? gemm_is_supported(gemm) : status;
}

/* Element (0, ..., 0) of a tensor is at its buffer's memory + byte_offset. */
static float *first_element(const struct tandem_buffer *buffer,
                            uint64_t byte_offset)
{
    const struct object *object = (const struct object *)(const void *)buffer;

    return (float *)(void *)(object->memory + byte_offset);
}

/* index: of the output, to which the tensor broadcasts. */
static float *element_at(const struct tandem_tensor_desc *tensor,
                         const int64_t *index, uint32_t rank)
{
    float *element = first_element(tensor->buffer, tensor->byte_offset);

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] != 1)
            element += index[rank - tensor->rank + i] * tensor->strides[i];
    return element;
}

static float value_compute(uint32_t id, float a, float b)
{
    switch (id) {
    case TANDEM_OP_ADD:
        return a + b;
    case TANDEM_OP_MUL:
        return a * b;
    case TANDEM_OP_GEMM: /* the residual */
        return a;
    default: /* relu, which keeps NaN */
        return a <= 0 ? 0 : a;
    }
}

static void op_compute(const struct tandem_op *op,
                       const struct tandem_tensor_desc *const *inputs,
                       uint32_t input_count,
                       const struct tandem_tensor_desc *output)
{
    int64_t index[TANDEM_MAX_RANK] = {0}, elements = 1;

    for (uint32_t i = 0; i < output->rank; i++)
        elements *= output->shape[i];
    for (int64_t n = 0; n < elements; n++) {
        float values[2] = {0, 0};

        /* A NULL input is the next float attribute. */
        for (uint32_t k = 0, scalar = 0; k < input_count; k++)
            values[k] = inputs[k] != NULL
                            ? *element_at(inputs[k], index, output->rank)
                            : (float)op->floats[scalar++];
        *element_at(output, index, output->rank) =
            value_compute(op->id, values[0], values[1]);
        for (uint32_t i = output->rank;
             i-- > 0 && ++index[i] == output->shape[i];)
            index[i] = 0;
    }
}

/* A sum of products in double, so that its rounding errors do not matter. */
static double dot_strided(const float *a, int64_t a_stride, const float *b,
                          int64_t b_stride, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i * a_stride] * (double)b[i * b_stride];
    return sum;
}

void gemm_compute(const struct tandem_gemm *gemm)
{
    const bool ta = gemm->flags & TANDEM_GEMM_TRANSPOSE_A;
    const bool tb = gemm->flags & TANDEM_GEMM_TRANSPOSE_B;
    const double alpha = gemm_factor(gemm->alpha);
    const double beta = gemm_factor(gemm->beta);
    struct tandem_gemm g;

    gemm_args_complete(&g, gemm); /* Strides that do not matter become valid. */
    for (int64_t batch = 0; batch < g.batch; batch++) {
        const float *a = first_element(g.a.buffer, g.a.byte_offset) +
                         batch * g.a.batch_stride;
        const float *b = first_element(g.b.buffer, g.b.byte_offset) +
                         batch * g.b.batch_stride;
        float *c = first_element(g.c.buffer, g.c.byte_offset) +
                   batch * g.c.batch_stride;

        for (int64_t i = 0; i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++) {
                float *out = c + i * g.c.ld + j;
                /* Operands that are multiplied by 0 must not be read. */
                double value =
                    alpha == 0 ? 0
                               : alpha * dot_strided(a + i * (ta ? 1 : g.a.ld),
                                                     ta ? g.a.ld : 1,
                                                     b + j * (tb ? g.b.ld : 1),
                                                     tb ? 1 : g.b.ld, g.k);

                if (beta != 0)
                    value += beta * (double)*out;
                *out = (float)value;
            }
    }
}

/* ---- prepared operators ---- */

static struct op_call checked_call(const struct prepared_call *call,
                                   const struct tandem_op *op,
                                   const struct tandem_tensor_desc *const *in,
                                   const struct tandem_tensor_desc *const *out)
{
    return (struct op_call){.info = call->info,
                            .op = op,
                            .inputs = in,
                            .outputs = out,
                            .input_count = call->input_count,
                            .output_count = call->output_count};
}

static enum tandem_status call_is_supported(const struct prepared_call *call)
{
    const struct op_call checked =
        checked_call(call, &call->op, call->inputs, call->outputs);
    struct tandem_gemm gemm;
    enum tandem_status status;

    switch (call->op.id) {
    case TANDEM_OP_ADD:
    case TANDEM_OP_MUL:
    case TANDEM_OP_RELU:
        if (call->outputs[0]->dtype != TANDEM_F32)
            return last_error_set(TANDEM_UNSUPPORTED, "only f32");
        return TANDEM_OK;
    case TANDEM_OP_GEMM:
        if (call->input_count > (call->op.ints[GEMM_RESIDUAL] != 0 ? 3 : 2))
            return last_error_set(TANDEM_UNSUPPORTED, "gemm: no bias");
        status = gemm_from_call(&checked, &gemm);
        if (status == TANDEM_OK)
            status = gemm_is_supported(&gemm);
        return status;
    default:
        return last_error_set(TANDEM_UNSUPPORTED,
                              "the operator %s is not supported",
                              call->info->name);
    }
}

enum tandem_status op_prepare(const struct tandem_op *op,
                              const struct tandem_operand_desc *const *inputs,
                              uint32_t input_count,
                              const struct tandem_operand_desc *const *outputs,
                              uint32_t output_count,
                              struct prepared_call **out_call)
{
    enum tandem_status status = prepared_call_create(
        op, inputs, input_count, outputs, output_count, out_call);

    if (status == TANDEM_OK)
        status = call_is_supported(*out_call);
    if (status != TANDEM_OK) {
        free(*out_call);
        *out_call = NULL;
    }
    return status;
}

enum tandem_status op_launch(const struct object *device,
                             const struct prepared_call *call,
                             const struct tandem_memory *memory, uint32_t count,
                             const double *scalars, uint32_t scalar_count)
{
    struct tandem_tensor_desc tensors[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *pointers[2 * TANDEM_MAX_OPERANDS];
    struct launch_scalars set;
    struct tandem_gemm gemm;
    enum tandem_status status =
        prepared_call_set_scalars(&set, call, scalars, scalar_count);

    if (status == TANDEM_OK)
        status = prepared_call_check_memory(call, memory, count, buffer_span,
                                            device);
    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++) {
        tensors[i] = call->operands[i].tensor;
        tensors[i].buffer = memory[i].buffer;
        tensors[i].byte_offset = memory[i].byte_offset;
        pointers[i] = call->operands[i].is_scalar ? NULL : &tensors[i];
    }
    if (status != TANDEM_OK)
        return status;
    if (call->op.id == TANDEM_OP_GEMM) {
        const struct op_call checked =
            checked_call(call, &set.op, pointers, pointers + call->input_count);

        status = gemm_from_call(&checked, &gemm);
        if (status != TANDEM_OK)
            return status;
        /* beta multiplies what is in c: the residual, which may be c. */
        if (gemm.beta != 0)
            op_compute(&set.op, &pointers[gemm_residual_input(&checked)], 1,
                       pointers[call->input_count]);
        gemm_compute(&gemm);
        return TANDEM_OK;
    }
    op_compute(&set.op, pointers, call->input_count,
               pointers[call->input_count]);
    return TANDEM_OK;
}
