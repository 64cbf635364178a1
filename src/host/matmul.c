/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of tensors: shapes and strides become a struct tandem_gemm.
 */
#include <config.h>

#include "common/check.h"
#include "common/message.h"
#include "common/struct_size.h"
#include "host/run.h"

#include <inttypes.h>
#include <string.h>

/* A tensor of rank 2 or 3 as matrices. */
struct matrices {
    int64_t rows, columns, batch;
    int64_t row_stride, column_stride, batch_stride;
};

static enum tandem_status matrices_read(const char *name,
                                        const struct tandem_tensor *tensor,
                                        struct matrices *out)
{
    const struct tandem_tensor_desc *desc = &tensor->desc;
    const uint32_t rank = desc->rank;

    *out = (struct matrices){0};
    if (rank != 2 && rank != 3)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: %s: rank %u, but 2 or 3 is needed", name,
                           rank);
    out->rows = desc->shape[rank - 2];
    out->columns = desc->shape[rank - 1];
    out->row_stride = desc->strides[rank - 2];
    out->column_stride = desc->strides[rank - 1];
    out->batch = rank == 3 ? desc->shape[0] : 1;
    out->batch_stride = rank == 3 ? desc->strides[0] : 0;
    return TANDEM_OK;
}

static enum tandem_status strides_fail(const char *name,
                                       const struct matrices *matrices)
{
    return message_set(TANDEM_INVALID_ARGUMENT,
                       "matmul: %s: strides %" PRId64 ", %" PRId64
                       " of %" PRId64 " x %" PRId64
                       ": one must be 1 and the other reach over a row, copy "
                       "it first",
                       name, matrices->row_stride, matrices->column_stride,
                       matrices->rows, matrices->columns);
}

/* The leading dimension of an operand that is stored with `across` elements a
 * row, `stride` from row to row, where there are `along` rows; 0: none. */
static int64_t leading(int64_t along, int64_t across, int64_t stride)
{
    const int64_t least = across > 0 ? across : 1;

    if (along <= 1)
        return least;
    return stride >= least ? stride : 0;
}

/* Fills out's ld and batch stride and reads off whether it is transposed. */
static enum tandem_status matrix_make(const char *name,
                                      const struct tandem_tensor *tensor,
                                      const struct matrices *from,
                                      bool may_transpose,
                                      struct tandem_matrix *out,
                                      bool *out_transposed)
{
    int64_t ld = 0;

    *out_transposed = false;
    if (from->column_stride == 1 || from->columns <= 1)
        ld = leading(from->rows, from->columns, from->row_stride);
    if (ld == 0 && may_transpose &&
        (from->row_stride == 1 || from->rows <= 1)) {
        ld = leading(from->columns, from->rows, from->column_stride);
        *out_transposed = ld != 0;
    }
    if (ld == 0)
        return strides_fail(name, from);
    if (from->batch > 1 && from->batch_stride < 0)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: %s: the batch's stride is negative", name);
    out->buffer = (struct tandem_buffer *)tensor->storage;
    out->byte_offset = tensor->desc.byte_offset;
    out->ld = ld;
    out->batch_stride = from->batch > 1 ? from->batch_stride : 0;
    return TANDEM_OK;
}

static enum tandem_status bias_make(const struct tandem_tensor *bias,
                                    struct tandem_gemm *gemm)
{
    const struct tandem_tensor_desc *desc = &bias->desc;

    if (desc->dtype != gemm->c_dtype)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: bias is %s, c %s: they must be alike",
                           dtype_name(desc->dtype), dtype_name(gemm->c_dtype));
    if (desc->rank == 1 && desc->shape[0] == gemm->n)
        gemm->bias_kind = TANDEM_BIAS_PER_COLUMN;
    else if (desc->rank == 2 && desc->shape[0] == gemm->m &&
             desc->shape[1] == 1)
        gemm->bias_kind = TANDEM_BIAS_PER_ROW;
    else
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: bias: its shape is neither [%" PRId64
                           "] nor [%" PRId64 ", 1]",
                           gemm->n, gemm->m);
    if (desc->shape[0] > 1 && desc->strides[0] != 1)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: bias: stride %" PRId64
                           ", but it must be contiguous",
                           desc->strides[0]);
    gemm->bias = (struct tandem_buffer *)bias->storage;
    gemm->bias_byte_offset = desc->byte_offset;
    return TANDEM_OK;
}

static enum tandem_status shapes_check(const struct matrices *a,
                                       const struct matrices *b,
                                       const struct matrices *c)
{
    if (a->columns != b->rows || c->rows != a->rows ||
        c->columns != b->columns)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: a is %" PRId64 " x %" PRId64
                           ", b %" PRId64 " x %" PRId64 ", c %" PRId64
                           " x %" PRId64,
                           a->rows, a->columns, b->rows, b->columns, c->rows,
                           c->columns);
    if ((a->batch != c->batch && a->batch != 1) ||
        (b->batch != c->batch && b->batch != 1))
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: batches of %" PRId64 ", %" PRId64
                           " and %" PRId64 " for a, b and c",
                           a->batch, b->batch, c->batch);
    return TANDEM_OK;
}

/* a, b and c are live tensors of the context. */
static enum tandem_status gemm_make(const struct tandem_tensor *a,
                                    const struct tandem_tensor *b,
                                    const struct tandem_tensor *c,
                                    struct tandem_gemm *gemm)
{
    struct matrices ma, mb, mc;
    bool transpose_a, transpose_b, transpose_c;
    enum tandem_status status = matrices_read("a", a, &ma);

    if (status == TANDEM_OK)
        status = matrices_read("b", b, &mb);
    if (status == TANDEM_OK)
        status = matrices_read("c", c, &mc);
    if (status == TANDEM_OK)
        status = shapes_check(&ma, &mb, &mc);
    if (status == TANDEM_OK && a->desc.dtype != b->desc.dtype)
        status = message_set(TANDEM_INVALID_ARGUMENT,
                             "matmul: a is %s, b %s: they must be alike",
                             dtype_name(a->desc.dtype),
                             dtype_name(b->desc.dtype));
    if (status == TANDEM_OK)
        status = matrix_make("a", a, &ma, true, &gemm->a, &transpose_a);
    if (status == TANDEM_OK)
        status = matrix_make("b", b, &mb, true, &gemm->b, &transpose_b);
    if (status == TANDEM_OK)
        status = matrix_make("c", c, &mc, false, &gemm->c, &transpose_c);
    if (status != TANDEM_OK)
        return status;
    gemm->dtype = a->desc.dtype;
    gemm->c_dtype = c->desc.dtype;
    gemm->flags |= (transpose_a ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                   (transpose_b ? TANDEM_GEMM_TRANSPOSE_B : 0u);
    gemm->m = mc.rows;
    gemm->n = mc.columns;
    gemm->k = ma.columns;
    gemm->batch = mc.batch;
    return TANDEM_OK;
}

static enum tandem_status tensors_check(struct tandem_context *context,
                                        struct tandem_tensor *a,
                                        struct tandem_tensor *b,
                                        struct tandem_tensor *c,
                                        struct tandem_tensor *bias)
{
    enum tandem_status status = context_check(context);

    if (status == TANDEM_OK)
        status = tensor_check(a, context, "matmul: a");
    if (status == TANDEM_OK)
        status = tensor_check(b, context, "matmul: b");
    if (status == TANDEM_OK)
        status = tensor_check(c, context, "matmul: c");
    if (status == TANDEM_OK && bias != NULL)
        status = tensor_check(bias, context, "matmul: bias");
    return status;
}

enum tandem_status call_make_matmul(struct call *call,
                                    struct tandem_context *context,
                                    const struct tandem_matmul_options *options,
                                    struct tandem_tensor *a,
                                    struct tandem_tensor *b,
                                    struct tandem_tensor *c,
                                    struct tandem_tensor **tensors,
                                    struct tandem_gemm *gemm,
                                    struct tandem_op *op)
{
    struct tandem_matmul_options own = {.device = TANDEM_ANY_DEVICE,
                                        .alpha = 1};
    enum tandem_status status = TANDEM_OK;

    if (options != NULL)
        status = struct_size_check(
            "matmul: options", "tandem_matmul_options", options->struct_size,
            TANDEM_MATMUL_OPTIONS_BYTES_0_1);
    if (status != TANDEM_OK)
        return status;
    if (options != NULL)
        memcpy(&own, options,
               options->struct_size < sizeof(own) ? options->struct_size
                                                  : sizeof(own));
    status = tensors_check(context, a, b, c, own.bias);
    if (status != TANDEM_OK)
        return status;
    if (own.flags & ~(uint32_t)(TANDEM_GEMM_ALLOW_TF32 |
                                TANDEM_GEMM_ALLOW_ROW_SCALED))
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "matmul: flags 0x%x have unknown bits", own.flags);
    memset(gemm, 0, sizeof(*gemm));
    gemm->struct_size = sizeof(*gemm);
    gemm->flags = own.flags;
    gemm->alpha = gemm_factor(own.alpha);
    gemm->beta = gemm_factor(own.beta);
    gemm->activation = own.activation;
    gemm->activation_alpha = own.activation_alpha;
    status = gemm_make(a, b, c, gemm);
    if (status == TANDEM_OK && own.bias != NULL)
        status = bias_make(own.bias, gemm);
    if (status != TANDEM_OK)
        return status;
    memset(op, 0, sizeof(*op));
    op->struct_size = sizeof(*op);
    op->id = TANDEM_OP_GEMM;
    op->gemm = gemm;
    tensors[0] = a;
    tensors[1] = b;
    tensors[2] = own.bias;
    tensors[3] = c;
    memset(call, 0, sizeof(*call));
    call->context = context;
    call->row = operator_row(TANDEM_OP_GEMM);
    call->op = op;
    call->inputs = tensors;
    call->outputs = tensors + 3;
    call->input_count = own.bias != NULL ? 3 : 2;
    call->output_count = 1;
    call->device = own.device;
    call->gemm = gemm;
    return TANDEM_OK;
}

enum tandem_status tandem_matmul(struct tandem_context *context,
                                 const struct tandem_matmul_options *options,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *c)
{
    struct tandem_tensor *tensors[4];
    struct tandem_gemm gemm;
    struct tandem_op op;
    struct call call;
    const enum tandem_status status = call_make_matmul(
        &call, context, options, a, b, c, tensors, &gemm, &op);

    return status == TANDEM_OK ? call_run(&call) : status;
}
