/* SPDX-License-Identifier: Apache-2.0 */
/* Launches GEMMs as an operator; see gemm_launch.h. */
#include "gemm_launch.h"

#include "../../tools/common/tensor_call.h"

#include <string.h>

/* The matrix as a tensor of rank 3, or of rank 2 without a batch. */
static struct tandem_tensor_desc matrix_tensor(const struct tandem_gemm *gemm,
                                               const struct tandem_matrix *from,
                                               uint32_t dtype, int64_t rows,
                                               int64_t columns, bool transposed)
{
    struct tandem_tensor_desc tensor = {.buffer = from->buffer,
                                        .byte_offset = from->byte_offset,
                                        .dtype = dtype,
                                        .rank = 3,
                                        .shape = {gemm->batch, rows, columns},
                                        .strides = {from->batch_stride,
                                                    transposed ? 1 : from->ld,
                                                    transposed ? from->ld : 1}};

    if (gemm->batch == 1) {
        tensor.rank = 2;
        memmove(tensor.shape, tensor.shape + 1, 2 * sizeof(tensor.shape[0]));
        memmove(tensor.strides, tensor.strides + 1,
                2 * sizeof(tensor.strides[0]));
    }
    return tensor;
}

/* Returns the end of c in its buffer, in bytes. */
static uint64_t c_end(const struct tandem_gemm *gemm, uint32_t dtype)
{
    const int64_t last = (gemm->batch - 1) * gemm->c.batch_stride +
                         (gemm->m - 1) * gemm->c.ld + gemm->n - 1;

    return gemm->c.byte_offset +
           (uint64_t)(last + 1) * TANDEM_DTYPE_BYTES(dtype);
}

/* Copies c, for the residual, and fills it with NaN. */
static enum tandem_status residual_separate(const struct tandem_backend *api,
                                            struct tandem_device *device,
                                            struct tandem_stream *stream,
                                            const struct tandem_gemm *gemm,
                                            struct tandem_tensor_desc *residual)
{
    const uint32_t nan = 0xffffffff;
    const uint64_t from = gemm->c.byte_offset,
                   end = c_end(gemm, residual->dtype);
    enum tandem_status status =
        api->alloc(device, TANDEM_BYTES(end), &residual->buffer);

    if (status == TANDEM_OK)
        status = api->copy(stream, residual->buffer, from, gemm->c.buffer, from,
                           end - from);
    /* The bytes between rows do not change. */
    for (int64_t i = 0; i < gemm->batch * gemm->m && status == TANDEM_OK; i++) {
        const int64_t bytes = TANDEM_DTYPE_BYTES(residual->dtype);
        const int64_t at =
            i / gemm->m * gemm->c.batch_stride + i % gemm->m * gemm->c.ld;

        status =
            api->fill(stream, gemm->c.buffer, from + (uint64_t)(at * bytes),
                      (uint64_t)(gemm->n * bytes), &nan, (uint32_t)bytes);
    }
    return status;
}

/* A GEMM as a call of the operator. */
struct operator_call {
    struct tandem_op op;
    int64_t ints[2];
    double floats[4];
    struct tandem_tensor_desc a, b, c, bias, residual;
    const struct tandem_tensor_desc *inputs[4], *output;
    uint32_t input_count;
};

static uint32_t op_flags(const struct tandem_gemm *gemm)
{
    uint32_t flags = 0;

    if ((gemm->flags & TANDEM_GEMM_ALLOW_TF32) != 0)
        flags |= TANDEM_OP_ALLOW_TF32;
    if ((gemm->flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR) != 0)
        flags |= TANDEM_OP_ALLOW_NORMWISE_ERROR;
    return flags;
}

static void call_make(struct operator_call *out, const struct tandem_gemm *gemm)
{
    const uint32_t c_dtype = gemm->c_dtype != 0 ? gemm->c_dtype : gemm->dtype;
    const bool by_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    const bool has_residual = (float)gemm->beta != 0;

    *out = (struct operator_call){
        .op = {.struct_size = sizeof(out->op),
               .id = TANDEM_OP_GEMM,
               .flags = op_flags(gemm),
               .int_count = 2,
               .float_count = 4,
               .ints = out->ints,
               .floats = out->floats},
        .ints = {gemm->activation, has_residual},
        .floats = {gemm->alpha, gemm->beta, gemm->activation_parameter,
                   gemm->activation_parameter2},
        .a = matrix_tensor(gemm, &gemm->a, gemm->dtype, gemm->m, gemm->k,
                           (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0),
        .b = matrix_tensor(gemm, &gemm->b, gemm->dtype, gemm->k, gemm->n,
                           (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0),
        .c = matrix_tensor(gemm, &gemm->c, c_dtype, gemm->m, gemm->n, false),
        .bias = {.buffer = gemm->bias,
                 .byte_offset = gemm->bias_byte_offset,
                 .dtype = c_dtype,
                 .rank = by_row ? 2 : 1,
                 .shape = {by_row ? gemm->m : gemm->n, 1},
                 .strides = {1, 1}},
        .inputs = {&out->a, &out->b},
        .output = &out->c,
        .input_count = 2};
    out->residual = out->c;
    if (gemm->bias_kind != TANDEM_BIAS_NONE)
        out->inputs[out->input_count++] = &out->bias;
    if (has_residual)
        out->inputs[out->input_count++] = &out->residual;
}

enum tandem_status gemm_supported_as_operator(const struct tandem_backend *api,
                                              struct tandem_device *device,
                                              const struct tandem_gemm *gemm)
{
    struct operator_call call;

    call_make(&call, gemm);
    return tensors_supported(api, device, &call.op, call.inputs,
                             call.input_count, &call.output, 1);
}

enum tandem_status gemm_launch_as_operator(const struct tandem_backend *api,
                                           struct tandem_device *device,
                                           struct tandem_stream *stream,
                                           const struct tandem_gemm *gemm,
                                           bool is_separate)
{
    struct operator_call call;
    enum tandem_status status = TANDEM_OK;

    call_make(&call, gemm);
    is_separate =
        is_separate && (float)gemm->beta != 0 && gemm->m > 0 && gemm->n > 0;
    if (is_separate)
        status = residual_separate(api, device, stream, gemm, &call.residual);
    if (status == TANDEM_OK)
        status = tensors_launch(api, device, stream, &call.op, call.inputs,
                                call.input_count, &call.output, 1, 64);
    /* A call that is rejected changes nothing. */
    if (is_separate && status != TANDEM_OK && call.residual.buffer != NULL)
        api->copy(stream, gemm->c.buffer, gemm->c.byte_offset,
                  call.residual.buffer, gemm->c.byte_offset,
                  c_end(gemm, call.c.dtype) - gemm->c.byte_offset);
    if (is_separate)
        api->free(call.residual.buffer);
    return status;
}
