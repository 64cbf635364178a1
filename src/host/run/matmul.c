/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix multiplication of tensors: converts shapes and strides to a struct
 * tandem_gemm.  Inputs whose strides the struct cannot express are copied
 * first.  Any thread may call the functions, which lock the context's mutex. */
#include <config.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/tensor_overlap.h"
#include "common/struct_size.h"
#include "host/run/run.h"

#include <inttypes.h>
#include <string.h>

/* A tensor of rank 2 or 3 as a batch of matrices, with strides in elements. */
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

    if (rank != 2 && rank != 3)
        return argument_error("matmul: %s: rank %u; expected 2 or 3", name,
                              rank);
    *out = (struct matrices){
        .rows = desc->shape[rank - 2],
        .columns = desc->shape[rank - 1],
        .batch = rank == 3 ? desc->shape[0] : 1,
        .row_stride = desc->strides[rank - 2],
        .column_stride = desc->strides[rank - 1],
        .batch_stride = rank == 3 ? desc->strides[0] : 0,
    };
    return TANDEM_OK;
}

/* Sets the strides of contiguous matrices.  Used for matrices that are not
 * accessed or were copied to contiguous memory. */
static void strides_reset(struct matrices *matrices, int64_t batch_stride)
{
    matrices->column_stride = 1;
    matrices->row_stride = matrices->columns > 1 ? matrices->columns : 1;
    matrices->batch_stride = batch_stride;
}

static enum tandem_status c_strides_error(const struct matrices *c)
{
    return argument_error(
        "matmul: c: strides %" PRId64 ", %" PRId64 ", %" PRId64
        " of shape %" PRId64 " x %" PRId64 " x %" PRId64
        "; expected a column stride of 1, a row stride of at least %" PRId64
        " and a batch stride of at least 0",
        c->batch_stride, c->row_stride, c->column_stride, c->batch, c->rows,
        c->columns, c->columns);
}

/* Returns the leading dimension of a matrix with `along` rows of `across`
 * contiguous elements.  The rows start `stride` elements apart.  Returns 0 if
 * the rows overlap or the stride is negative. */
static int64_t leading_dimension(int64_t along, int64_t across, int64_t stride)
{
    const int64_t min_ld = across > 0 ? across : 1;

    if (along <= 1)
        return min_ld;
    return stride >= min_ld ? stride : 0;
}

/* Sets out->ld, out->batch_stride and *out_transposed to the layout of `from`.
 * Returns false if a struct tandem_matrix cannot express the strides. */
static bool matrix_layout(const struct matrices *from,
                          struct tandem_matrix *out, bool *out_transposed)
{
    int64_t ld = 0;

    *out_transposed = false;
    if (from->column_stride == 1 || from->columns <= 1)
        ld = leading_dimension(from->rows, from->columns, from->row_stride);
    if (ld == 0 && (from->row_stride == 1 || from->rows <= 1)) {
        ld = leading_dimension(from->columns, from->rows, from->column_stride);
        *out_transposed = ld != 0;
    }
    out->ld = ld;
    out->batch_stride = from->batch > 1 ? from->batch_stride : 0;
    return ld != 0 && out->batch_stride >= 0;
}

/* ---- copies ---- */

/* Returns true if a matmul input shares a byte with the output.  Must be called
 * before the input is copied, because call_check sees only the copy. */
static bool overlaps_c(const struct tandem_tensor *input,
                       const struct tandem_tensor *c)
{
    struct tensor_range at, c_at;

    return tensor_range_find(&at, &input->desc, input->storage->address,
                             UINT64_MAX) &&
           tensor_range_find(&c_at, &c->desc, c->storage->address,
                             UINT64_MAX) &&
           tensors_overlap(&c_at, &at);
}

/* Lets `to`, which has no content, count as current where `from` is. */
static void location_copy(const struct tandem_tensor *from,
                          struct tandem_tensor *to)
{
    context_lock(from->context);
    to->storage->current = from->storage->current;
    to->storage->poison = from->storage->poison;
    context_unlock(from->context);
}

/* Creates a contiguous tensor, which replaces the input in matmul->tensors, and
 * enqueues the copy, unless the call is a question. */
static enum tandem_status input_copy(struct matmul *matmul, uint32_t index,
                                     uint32_t device)
{
    static const char *const names[] = {"a", "b", "bias"};
    struct tandem_tensor *from = matmul->tensors[index],
                         **copy = &matmul->copies[index];
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_COPY};
    enum tandem_status status;

    if (overlaps_c(from, matmul->tensors[3]))
        return argument_error("matmul: c overlaps %s", names[index]);
    status = tandem_tensor_create(from->context, from->desc.dtype,
                                  from->desc.rank, from->desc.shape, copy);
    if (status == TANDEM_OK && !matmul->is_question)
        status = tandem_run_on(from->context, device, &op, &from, 1, copy, 1);
    if (status != TANDEM_OK)
        return status;
    if (matmul->is_question)
        location_copy(from, *copy);
    matmul->tensors[index] = *copy;
    return TANDEM_OK;
}

void matmul_finish(struct matmul *matmul)
{
    for (uint32_t i = 0; i < 3; i++)
        tandem_tensor_destroy(matmul->copies[i]);
}

/* Copies input `a` or `b` if necessary, and fills `out` with its layout.  Adds
 * transpose_flag to the flags of the GEMM if the input is transposed. */
static enum tandem_status input_convert(struct matmul *matmul, uint32_t index,
                                        uint32_t device, struct matrices *from,
                                        uint32_t transpose_flag,
                                        struct tandem_matrix *out)
{
    bool transposed;

    if (!matrix_layout(from, out, &transposed)) {
        const enum tandem_status status = input_copy(matmul, index, device);

        if (status != TANDEM_OK)
            return status;
        strides_reset(from, from->rows * from->columns);
        matrix_layout(from, out, &transposed);
    }
    if (transposed)
        matmul->gemm.flags |= transpose_flag;
    out->byte_offset = matmul->tensors[index]->desc.byte_offset;
    return TANDEM_OK;
}

/* ---- the struct tandem_gemm ---- */

static enum tandem_status bias_check(const struct tandem_tensor *bias,
                                     struct tandem_gemm *gemm)
{
    const struct tandem_tensor_desc *desc = &bias->desc;

    if (desc->dtype != gemm->c_dtype)
        return argument_error(
            "matmul: bias is %s and c is %s; expected equal dtypes",
            dtype_name(desc->dtype), dtype_name(gemm->c_dtype));
    if (desc->rank == 1 && desc->shape[0] == gemm->n)
        gemm->bias_kind = TANDEM_BIAS_PER_COLUMN;
    else if (desc->rank == 2 && desc->shape[0] == gemm->m &&
             desc->shape[1] == 1)
        gemm->bias_kind = TANDEM_BIAS_PER_ROW;
    else
        return argument_error("matmul: bias: expected shape [%" PRId64
                              "] or [%" PRId64 ", 1]",
                              gemm->n, gemm->m);
    return TANDEM_OK;
}

static enum tandem_status shapes_check(const struct matrices *a,
                                       const struct matrices *b,
                                       const struct matrices *c)
{
    if (a->columns != b->rows || c->rows != a->rows || c->columns != b->columns)
        return argument_error(
            "matmul: a is %" PRId64 " x %" PRId64 ", b %" PRId64 " x %" PRId64
            ", c %" PRId64 " x %" PRId64 "; expected m x k, k x n and m x n",
            a->rows, a->columns, b->rows, b->columns, c->rows, c->columns);
    if ((a->batch != c->batch && a->batch != 1) ||
        (b->batch != c->batch && b->batch != 1))
        return argument_error(
            "matmul: batches of %" PRId64 ", %" PRId64 " and %" PRId64
            " for a, b and c; expected equal ones, or 1 for a or b",
            a->batch, b->batch, c->batch);
    return TANDEM_OK;
}

/* Checks the shapes and dtypes of `a`, `b`, `c` and the bias, if there is one.
 * Fills `out` with the shapes and strides of `a`, `b` and `c`, and sets all
 * fields of gemm that do not depend on the strides of inputs. */
static enum tandem_status operands_check(const struct matmul *matmul,
                                         struct matrices out[3],
                                         struct tandem_gemm *gemm)
{
    static const char *const names[3] = {"a", "b", "c"};
    struct tandem_tensor *const *tensors = matmul->tensors;
    const struct tandem_tensor *const matrices[3] = {tensors[0], tensors[1],
                                                     tensors[3]};
    enum tandem_status status = TANDEM_OK;
    bool transposed;

    for (uint32_t i = 0; i < 3 && status == TANDEM_OK; i++)
        status = matrices_read(names[i], matrices[i], &out[i]);
    if (status == TANDEM_OK)
        status = shapes_check(&out[0], &out[1], &out[2]);
    if (status == TANDEM_OK && tensors[0]->desc.dtype != tensors[1]->desc.dtype)
        status =
            argument_error("matmul: a is %s and b is %s; expected equal dtypes",
                           dtype_name(tensors[0]->desc.dtype),
                           dtype_name(tensors[1]->desc.dtype));
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < 3; i++) {
        if (matrices[i]->elements == 0 || tensors[3]->elements == 0)
            strides_reset(&out[i], 0);
    }
    if (!matrix_layout(&out[2], &gemm->c, &transposed) || transposed)
        return c_strides_error(&out[2]);
    gemm->c.byte_offset = tensors[3]->desc.byte_offset;
    gemm->dtype = tensors[0]->desc.dtype;
    gemm->c_dtype = tensors[3]->desc.dtype;
    gemm->m = out[2].rows;
    gemm->n = out[2].columns;
    gemm->k = out[0].columns;
    gemm->batch = out[2].batch;
    return tensors[2] != NULL ? bias_check(tensors[2], gemm) : TANDEM_OK;
}

/* Sets the fields of gemm that depend on the strides of the inputs.  Copies
 * inputs whose strides a struct tandem_gemm cannot express. */
static enum tandem_status inputs_convert(struct matmul *matmul, uint32_t device,
                                         struct matrices *a, struct matrices *b,
                                         struct tandem_gemm *gemm)
{
    struct tandem_tensor **bias = &matmul->tensors[2];
    enum tandem_status status =
        input_convert(matmul, 0, device, a, TANDEM_GEMM_TRANSPOSE_A, &gemm->a);

    if (status == TANDEM_OK)
        status = input_convert(matmul, 1, device, b, TANDEM_GEMM_TRANSPOSE_B,
                               &gemm->b);
    if (status != TANDEM_OK || *bias == NULL)
        return status;
    if (matmul->tensors[3]->elements > 0 && (*bias)->desc.shape[0] > 1 &&
        (*bias)->desc.strides[0] != 1)
        status = input_copy(matmul, 2, device);
    gemm->bias_byte_offset = (*bias)->desc.byte_offset;
    return status;
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

/* Copies the caller's matmul options, which may be of an older version of the
 * struct.  If `from` is NULL, `out` gets the defaults. */
static enum tandem_status options_read(const struct tandem_matmul_options *from,
                                       struct tandem_matmul_options *out)
{
    enum tandem_status status;

    *out = (struct tandem_matmul_options){
        .struct_size = sizeof(*out), .device = TANDEM_ANY_DEVICE, .alpha = 1};
    if (from == NULL)
        return TANDEM_OK;
    status =
        input_struct_check("matmul: options", "tandem_matmul_options", from,
                           sizeof(*from), TANDEM_MATMUL_OPTIONS_MIN_SIZE_0_1);
    if (status == TANDEM_OK)
        struct_size_fill(out, from, from->struct_size);
    return status;
}

static enum tandem_status gemm_init(struct matmul *matmul,
                                    const struct tandem_matmul_options *options)
{
    struct tandem_gemm *gemm = &matmul->gemm;
    struct matrices matrices[3];
    enum tandem_status status;

    status =
        check_flags("matmul", options->flags,
                    TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR);
    if (status != TANDEM_OK)
        return status;
    *gemm = (struct tandem_gemm){
        .struct_size = sizeof(*gemm),
        .flags = options->flags,
        .alpha = gemm_factor(options->alpha),
        .beta = gemm_factor(options->beta),
        .activation = options->activation,
        .activation_parameter = options->activation_parameter,
        .activation_parameter2 = options->activation_parameter2,
    };
    status = operands_check(matmul, matrices, gemm);
    if (status == TANDEM_OK)
        status = inputs_convert(matmul, options->device, &matrices[0],
                                &matrices[1], gemm);
    if (status == TANDEM_OK && matmul->tensors[3]->elements == 0) {
        gemm->m = gemm->n = gemm->k = 0;
        gemm->batch = 1; /* struct tandem_gemm does not allow a batch of 0 */
    }
    return status;
}

/* Makes the call of the operator from the layouts in matmul->gemm. */
static void operator_set(struct matmul *matmul, struct tandem_context *context,
                         uint32_t device)
{
    struct gemm_operator *operator= & matmul->as_operator;
    struct tandem_tensor *const *tensors = matmul->tensors;
    struct tandem_gemm gemm;
    uint32_t count = 0;

    gemm_args_normalize(&gemm, &matmul->gemm);
    gemm_operator_make(operator, & gemm);
    matmul->operands[count++] = tensors[0];
    matmul->operands[count++] = tensors[1];
    if (tensors[2] != NULL)
        matmul->operands[count++] = tensors[2];
    if (matmul->gemm.beta != 0)
        matmul->operands[count++] = tensors[3];
    matmul->operands[count] = tensors[3];
    matmul->call = (struct call){.context = context,
                                 .row = operator_lookup(TANDEM_OP_GEMM),
                                 .op = &operator->op,
                                 .inputs = matmul->operands,
                                 .outputs = matmul->operands + count,
                                 .input_count = count,
                                 .output_count = 1,
                                 .device = device};
    for (uint32_t i = 0; i <= count; i++) {
        const struct tandem_operand_desc *from = &operator->operands[i];
        struct tandem_tensor_desc *desc = &matmul->descs[i];

        desc->buffer = matmul->operands[i]->desc.buffer;
        desc->dtype = from->dtype;
        desc->rank = from->rank;
        desc->byte_offset = operator->memory[i].byte_offset;
        memcpy(desc->shape, from->shape, sizeof(desc->shape));
        memcpy(desc->strides, from->strides, sizeof(desc->strides));
        if (i < count)
            matmul->call.input_descs[i] = desc;
        else
            matmul->call.output_descs[0] = desc;
    }
}

enum tandem_status matmul_prepare(struct matmul *matmul,
                                  struct tandem_context *context,
                                  const struct tandem_matmul_options *options,
                                  struct tandem_tensor *a,
                                  struct tandem_tensor *b,
                                  struct tandem_tensor *c, bool is_question)
{
    struct tandem_matmul_options own;
    enum tandem_status status = options_read(options, &own);

    memset(matmul->copies, 0, sizeof(matmul->copies));
    matmul->is_question = is_question;
    if (status == TANDEM_OK)
        status = tensors_check(context, a, b, c, own.bias);
    if (status != TANDEM_OK)
        return status;
    matmul->tensors[0] = a;
    matmul->tensors[1] = b;
    matmul->tensors[2] = own.bias;
    matmul->tensors[3] = c;
    status = gemm_init(matmul, &own);
    if (status != TANDEM_OK)
        return status;
    operator_set(matmul, context, own.device);
    return TANDEM_OK;
}

enum tandem_status tandem_matmul(struct tandem_context *context,
                                 const struct tandem_matmul_options *options,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *c)
{
    struct matmul matmul;
    enum tandem_status status =
        matmul_prepare(&matmul, context, options, a, b, c, false);

    if (status == TANDEM_OK)
        status = call_run(&matmul.call);
    matmul_finish(&matmul);
    return status;
}
