/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between the operator GEMM and struct tandem_gemm; see
 * gemm_operator.h. */
#include "common/gemm_operator.h"

#include <string.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/op_call.h"

uint32_t gemm_residual_input(const struct op_call *call)
{
    return call->op->ints[GEMM_RESIDUAL] != 0 ? call->input_count - 1
                                              : UINT32_MAX;
}

/* ---- struct tandem_gemm ---- */

uint32_t gemm_c_dtype(const struct tandem_gemm *gemm)
{
    bool there =
        gemm->struct_size >= TANDEM_SIZE_THROUGH(struct tandem_gemm, c_dtype);
    return there && gemm->c_dtype != 0 ? gemm->c_dtype : gemm->dtype;
}

struct activation gemm_activation(const struct tandem_gemm *gemm)
{
    bool there = gemm->struct_size >=
                 TANDEM_SIZE_THROUGH(struct tandem_gemm, activation_parameter2);
    return (struct activation){
        gemm->activation,
        {gemm->activation_parameter, there ? gemm->activation_parameter2 : 0}};
}

double gemm_factor(double value)
{
    /* Without volatile, GCC 12 vectorizes two adjacent calls of gemm_factor and
     * omits the rounding to f32. */
    volatile float rounded = (float)value;
    return rounded;
}

/* Sets each stride that affects no address to its smallest valid value, so that
 * no later code depends on the stride that the caller wrote. */
static void matrix_normalize_strides(struct tandem_matrix *matrix,
                                     int64_t batch, int64_t rows,
                                     int64_t columns)
{
    bool empty = batch < 1 || rows < 1 || columns < 1;
    if (empty || rows == 1)
        matrix->ld = columns > 1 ? columns : 1;
    if (empty || batch == 1)
        matrix->batch_stride = 0;
}

static void gemm_normalize_strides(struct tandem_gemm *gemm)
{
    bool at = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool bt = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    matrix_normalize_strides(&gemm->a, gemm->batch, at ? gemm->k : gemm->m,
                             at ? gemm->m : gemm->k);
    matrix_normalize_strides(&gemm->b, gemm->batch, bt ? gemm->n : gemm->k,
                             bt ? gemm->k : gemm->n);
    matrix_normalize_strides(&gemm->c, gemm->batch, gemm->m, gemm->n);
}

void gemm_args_complete(struct tandem_gemm *out, const struct tandem_gemm *gemm)
{
    memset(out, 0, sizeof(*out));
    memcpy(out, gemm,
           gemm->struct_size < sizeof(*out) ? gemm->struct_size : sizeof(*out));
    out->struct_size = sizeof(*out);
    out->c_dtype = gemm_c_dtype(gemm);
    gemm_normalize_strides(out);
}

void gemm_args_normalize(struct tandem_gemm *out,
                         const struct tandem_gemm *gemm)
{
    gemm_args_complete(out, gemm);
    out->alpha = gemm_factor(gemm->alpha);
    out->beta = gemm_factor(gemm->beta);
}

/* ---- from the operator to struct tandem_gemm ---- */

/* Returns the stride of the tensor along an axis of the output, which are
 * counted from the last one. */
static int64_t broadcast_stride(const struct tandem_tensor_desc *tensor,
                                uint32_t from_last)
{
    if (from_last >= tensor->rank)
        return 0;
    uint32_t axis = tensor->rank - 1 - from_last;
    return tensor->shape[axis] == 1 ? 0 : tensor->strides[axis];
}

/* Describes all dimensions before the last two as one, with a stride for each
 * of a, b and c.  Returns false if that is not possible. */
static bool batch_collapse(const struct tandem_tensor_desc *const *operands,
                           const struct tandem_tensor_desc *c,
                           int64_t out_strides[3], int64_t *out_batch)
{
    *out_batch = 1;
    memset(out_strides, 0, 3 * sizeof(out_strides[0]));
    for (uint32_t i = 2; i < c->rank; i++) {
        int64_t extent = c->shape[c->rank - 1 - i];
        for (uint32_t k = 0; k < 3 && extent != 1; k++) {
            const struct tandem_tensor_desc *tensor = operands[k];
            int64_t stride = broadcast_stride(tensor, i);
            if (shape_elements(tensor->rank, tensor->shape) == 0)
                stride = 0; /* k is 0 */
            if (*out_batch == 1)
                out_strides[k] = stride;
            else if (stride != out_strides[k] * *out_batch)
                return false;
            if (stride < 0)
                return false;
        }
        *out_batch *= extent;
    }
    return true;
}

/* Returns the leading dimension of `along` rows of `across` contiguous elements
 * that start `stride` elements apart, or 0 if the rows overlap. */
static int64_t leading_dimension(int64_t along, int64_t across, int64_t stride)
{
    const int64_t min_ld = across > 0 ? across : 1;
    if (along <= 1)
        return min_ld;
    return stride >= min_ld ? stride : 0;
}

/* Finds the leading dimension of the last two axes, and if they are transposed.
 * Returns false if struct tandem_matrix cannot describe their strides. */
static bool matrix_layout(const struct tandem_tensor_desc *tensor,
                          int64_t *out_ld, bool *out_transposed)
{
    const int64_t *shape = tensor->shape + tensor->rank - 2;
    const int64_t *strides = tensor->strides + tensor->rank - 2;
    *out_ld = 0;
    *out_transposed = false;
    if (strides[1] == 1 || shape[1] <= 1)
        *out_ld = leading_dimension(shape[0], shape[1], strides[0]);
    if (*out_ld == 0 && (strides[0] == 1 || shape[0] <= 1)) {
        *out_ld = leading_dimension(shape[1], shape[0], strides[1]);
        *out_transposed = true;
    }
    return *out_ld != 0;
}

/* Returns true if the operator supports the strides of a matrix by themselves.
 * The axes before the last two can still be an obstacle if there is more than
 * one (batch_collapse). */
static bool matrix_supported(const struct tandem_tensor_desc *tensor,
                             bool may_be_transposed)
{
    int64_t ld;
    bool transposed;
    if (tensor->rank < 2 || shape_elements(tensor->rank, tensor->shape) == 0)
        return true;
    for (uint32_t i = 0; i + 2 < tensor->rank; i++)
        if (tensor->shape[i] != 1 && tensor->strides[i] < 0)
            return false;
    return matrix_layout(tensor, &ld, &transposed) &&
           (may_be_transposed || !transposed);
}

bool gemm_input_supports(const struct tandem_tensor_desc *tensor)
{
    return matrix_supported(tensor, true);
}

bool gemm_output_supports(const struct tandem_tensor_desc *tensor)
{
    return matrix_supported(tensor, false);
}

bool gemm_bias_supports(const struct tandem_tensor_desc *bias)
{
    return bias->rank == 0 || bias->shape[0] <= 1 || bias->strides[0] == 1;
}

static enum tandem_status layout_error(const struct op_call *call,
                                       uint32_t operand)
{
    char name[OPERAND_NAME_BYTES];
    return last_error_set(
        TANDEM_UNSUPPORTED,
        "%s has strides that gemm does not support; copy it to contiguous "
        "memory first",
        operand_name(call, operand, name));
}

static enum tandem_status bias_set(const struct op_call *call,
                                   struct tandem_gemm *out)
{
    const struct tandem_tensor_desc *bias = call->inputs[2];
    bool per_row = bias->rank == 2;
    if (!gemm_bias_supports(bias))
        return layout_error(call, 2);
    out->bias = bias->buffer;
    out->bias_byte_offset = bias->byte_offset;
    out->bias_kind = per_row ? TANDEM_BIAS_PER_ROW : TANDEM_BIAS_PER_COLUMN;
    return TANDEM_OK;
}

static uint32_t gemm_flags_of(const struct op_call *call)
{
    return ((call->op->flags & TANDEM_OP_ALLOW_TF32) != 0
                ? TANDEM_GEMM_ALLOW_TF32
                : 0u) |
           ((call->op->flags & TANDEM_OP_ALLOW_NORMWISE_ERROR) != 0
                ? TANDEM_GEMM_ALLOW_NORMWISE_ERROR
                : 0u);
}

enum tandem_status gemm_from_call(const struct op_call *call,
                                  struct tandem_gemm *out)
{
    const struct tandem_op *op = call->op;
    const struct tandem_tensor_desc *a = call->inputs[0], *b = call->inputs[1],
                                    *c = call->outputs[0];
    const struct tandem_tensor_desc *const operands[] = {a, b, c};
    const uint32_t residual = gemm_residual_input(call);
    bool transpose_a, transpose_b, transpose_c;
    int64_t strides[3];
    *out = (struct tandem_gemm){
        .struct_size = sizeof(*out),
        .dtype = a->dtype,
        .c_dtype = c->dtype,
        .flags = gemm_flags_of(call),
        .alpha = gemm_factor(op->floats[GEMM_ALPHA]),
        .beta = residual != UINT32_MAX ? gemm_factor(op->floats[GEMM_BETA]) : 0,
        .activation = (uint32_t)op->ints[GEMM_ACTIVATION],
        .activation_parameter = op->floats[GEMM_ACTIVATION_PARAMETER],
        .activation_parameter2 = op->floats[GEMM_ACTIVATION_PARAMETER + 1]};
    out->a = (struct tandem_matrix){a->buffer, a->byte_offset, 1, 0};
    out->b = (struct tandem_matrix){b->buffer, b->byte_offset, 1, 0};
    out->c = (struct tandem_matrix){c->buffer, c->byte_offset, 1, 0};
    out->batch = 1;
    if (shape_elements(c->rank, c->shape) == 0)
        return TANDEM_OK;
    out->m = c->shape[c->rank - 2];
    out->n = c->shape[c->rank - 1];
    out->k = a->shape[a->rank - 1];
    if (!matrix_layout(c, &out->c.ld, &transpose_c) || transpose_c)
        return layout_error(call, call->input_count);
    /* Without elements, the strides of a and b mean nothing. */
    if (out->k == 0) {
        out->a.ld = 1;
        out->b.ld = out->n;
        transpose_a = transpose_b = false;
    } else if (!matrix_layout(a, &out->a.ld, &transpose_a)) {
        return layout_error(call, 0);
    } else if (!matrix_layout(b, &out->b.ld, &transpose_b)) {
        return layout_error(call, 1);
    }
    if (!batch_collapse(operands, c, strides, &out->batch))
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "gemm: the dimensions before the last two are not like one "
            "dimension in memory; copy the inputs to contiguous memory first");
    out->a.batch_stride = strides[0];
    out->b.batch_stride = strides[1];
    out->c.batch_stride = strides[2];
    out->flags |= (transpose_a ? TANDEM_GEMM_TRANSPOSE_A : 0u) |
                  (transpose_b ? TANDEM_GEMM_TRANSPOSE_B : 0u);
    return call->input_count > 2 && residual != 2 ? bias_set(call, out)
                                                  : TANDEM_OK;
}

/* ---- from struct tandem_gemm to the operator ---- */

static void operand_add(struct gemm_operator *out, uint32_t number,
                        struct tandem_buffer *buffer, uint64_t byte_offset,
                        const struct tandem_operand_desc *desc)
{
    out->operands[number] = *desc;
    out->pointers[number] = &out->operands[number];
    out->memory[number] = (struct tandem_memory){buffer, byte_offset};
}

static struct tandem_operand_desc matrix_desc(const struct tandem_gemm *gemm,
                                              const struct tandem_matrix *from,
                                              uint32_t dtype, int64_t rows,
                                              int64_t columns, bool transposed)
{
    return (struct tandem_operand_desc){.dtype = dtype,
                                        .rank = 3,
                                        .shape = {gemm->batch, rows, columns},
                                        .strides = {from->batch_stride,
                                                    transposed ? 1 : from->ld,
                                                    transposed ? from->ld : 1}};
}

uint32_t gemm_operator_flags(uint32_t gemm_flags)
{
    return ((gemm_flags & TANDEM_GEMM_ALLOW_TF32) != 0 ? TANDEM_OP_ALLOW_TF32
                                                       : 0u) |
           ((gemm_flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR) != 0
                ? TANDEM_OP_ALLOW_NORMWISE_ERROR
                : 0u);
}

void gemm_operator_make(struct gemm_operator *out,
                        const struct tandem_gemm *gemm)
{
    const bool by_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    uint32_t count = 2;
    *out = (struct gemm_operator){
        .op = {.struct_size = sizeof(out->op),
               .id = TANDEM_OP_GEMM,
               .flags = gemm_operator_flags(gemm->flags),
               .int_count = GEMM_INTS,
               .float_count = GEMM_FLOATS},
        .ints = {gemm->activation, gemm->beta != 0},
        .floats = {gemm->alpha, gemm->beta, gemm->activation_parameter,
                   gemm->activation_parameter2}};
    out->op.ints = out->ints;
    out->op.floats = out->floats;
    const struct tandem_operand_desc
        a = matrix_desc(gemm, &gemm->a, gemm->dtype, gemm->m, gemm->k,
                        (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0),
        b = matrix_desc(gemm, &gemm->b, gemm->dtype, gemm->k, gemm->n,
                        (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0);
    struct tandem_operand_desc c =
        matrix_desc(gemm, &gemm->c, gemm->c_dtype, gemm->m, gemm->n, false);
    operand_add(out, 0, gemm->a.buffer, gemm->a.byte_offset, &a);
    operand_add(out, 1, gemm->b.buffer, gemm->b.byte_offset, &b);
    if (gemm->bias_kind != TANDEM_BIAS_NONE) {
        const struct tandem_operand_desc bias = {
            .dtype = gemm->c_dtype,
            .rank = by_row ? 2 : 1,
            .shape = {by_row ? gemm->m : gemm->n, by_row ? 1 : 0},
            .strides = {1, by_row ? 1 : 0}};
        operand_add(out, count++, gemm->bias, gemm->bias_byte_offset, &bias);
    }
    if (gemm->beta != 0)
        operand_add(out, count++, gemm->c.buffer, gemm->c.byte_offset, &c);
    c.same_as_input = gemm->beta != 0 ? count : 0;
    operand_add(out, count, gemm->c.buffer, gemm->c.byte_offset, &c);
    out->input_count = count;
}
