/* SPDX-License-Identifier: Apache-2.0 */
/* The class GEMM (see op_class.h), and the check of a GEMM's arguments (see
 * argument_check.h). */
#include <string.h>

#include "common/argument_check.h"

#include "common/gemm_operator.h"
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_overlap.h"
#include "common/struct_size.h"

struct operand {
    const char *name; /* name of the operand in messages, as in "gemm: a" */
    struct tandem_tensor_desc tensor;
    struct tensor_range range; /* set by find_operand */
};

static struct operand matrix_operand(const char *name,
                                     const struct tandem_gemm *gemm,
                                     uint32_t dtype,
                                     const struct tandem_matrix *matrix,
                                     int64_t rows, int64_t columns)
{
    return (struct operand){
        .name = name,
        .tensor = {.buffer = matrix->buffer,
                   .byte_offset = matrix->byte_offset,
                   .dtype = dtype,
                   .rank = 3,
                   .shape = {gemm->batch, rows, columns},
                   .strides = {matrix->batch_stride, matrix->ld, 1}}};
}

/* Checks the dtype of GEMM operands. `what` names the operands in messages. */
static enum tandem_status check_dtype(const char *what, uint32_t dtype)
{
    if (dtype_bytes(dtype) == 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "gemm: unknown dtype 0x%x of %s", dtype, what);
    if (dtype != TANDEM_F32 && dtype != TANDEM_F16 && dtype != TANDEM_BF16)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "gemm: dtype %s of %s is unsupported; expected f32, f16 or bf16",
            dtype_name(dtype), what);
    return TANDEM_OK;
}

static enum tandem_status check_numbers(const struct tandem_gemm *gemm)
{
    if (gemm->m < 0 || gemm->n < 0 || gemm->k < 0 || gemm->batch < 1)
        return argument_error("gemm: m %lld, n %lld and k %lld must be at "
                              "least 0, and batch %lld at least 1",
                              (long long)gemm->m, (long long)gemm->n,
                              (long long)gemm->k, (long long)gemm->batch);
    enum tandem_status status = check_flags("gemm", gemm->flags, 15u);
    if (status != TANDEM_OK)
        return status;
    if (gemm->bias_kind > TANDEM_BIAS_PER_ROW)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "gemm: bias_kind is %u; expected 0 to %u",
                              gemm->bias_kind, (unsigned)TANDEM_BIAS_PER_ROW);
    status = check_dtype("a and b", gemm->dtype);
    if (status == TANDEM_OK)
        status = check_dtype("c", gemm_c_dtype(gemm));
    if (status != TANDEM_OK)
        return status;
    struct activation activation = gemm_activation(gemm);
    return activation_check("gemm", &activation);
}

static enum tandem_status check_matrix(const struct operand *operand)
{
    const struct tandem_tensor_desc *tensor = &operand->tensor;
    if (tensor->strides[1] < 1 || tensor->strides[1] < tensor->shape[2])
        return argument_error(
            "%s: ld is %lld; expected at least %lld, the number of columns",
            operand->name, (long long)tensor->strides[1],
            (long long)tensor->shape[2]);
    if (tensor->strides[0] < 0)
        return argument_error(
            "%s: the batch stride is %lld; expected at least 0", operand->name,
            (long long)tensor->strides[0]);
    return check_shape(operand->name, tensor->dtype, 3, tensor->shape);
}

static enum tandem_status find_operand(struct operand *operand,
                                       address_range_fn span, const void *user)
{
    struct address_range memory;
    const struct tandem_tensor_desc *tensor = &operand->tensor;
    if (tensor->buffer == NULL)
        return argument_error("%s has no buffer (NULL)", operand->name);
    enum tandem_status status = span(user, tensor->buffer, &memory);
    if (status != TANDEM_OK)
        return last_error_prefix(status, operand->name);
    if (!tensor_range_find(&operand->range, tensor, memory.base,
                           memory.bytes) ||
        tensor->byte_offset % TANDEM_DTYPE_BYTES(tensor->dtype) != 0)
        return argument_error("%s at offset %llu reaches outside its buffer of "
                              "%llu bytes, or is not aligned",
                              operand->name,
                              (unsigned long long)tensor->byte_offset,
                              (unsigned long long)memory.bytes);
    return TANDEM_OK;
}

static enum tandem_status check_operands(const struct tandem_gemm *gemm,
                                         address_range_fn span,
                                         const void *user)
{
    const int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    bool at = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool bt = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    struct operand operands[4] = {
        matrix_operand("gemm: c", gemm, gemm->c_dtype, &gemm->c, m, n),
        matrix_operand("gemm: a", gemm, gemm->dtype, &gemm->a, at ? k : m,
                       at ? m : k),
        matrix_operand("gemm: b", gemm, gemm->dtype, &gemm->b, bt ? n : k,
                       bt ? k : n)};
    enum tandem_status status;
    uint32_t count = 3;
    for (uint32_t i = 0; i < count; i++)
        if ((status = check_matrix(&operands[i])) != TANDEM_OK)
            return status;
    if (gemm->bias_kind != TANDEM_BIAS_NONE)
        operands[count++] = (struct operand){
            .name = "gemm: bias",
            .tensor = {
                .buffer = gemm->bias,
                .byte_offset = gemm->bias_byte_offset,
                .dtype = gemm->c_dtype,
                .rank = 1,
                .shape = {gemm->bias_kind == TANDEM_BIAS_PER_COLUMN ? n : m},
                .strides = {1}}};
    else if (span != NULL && gemm->bias != NULL)
        return argument_error(
            "gemm: bias is set, but bias_kind is TANDEM_BIAS_NONE");
    if (tensor_overlaps_itself(&operands[0].tensor))
        return argument_error(
            "gemm: the matrices of c overlap one another (batch stride %lld)",
            (long long)gemm->c.batch_stride);
    for (uint32_t i = 0; span != NULL && i < count; i++)
        if ((status = find_operand(&operands[i], span, user)) != TANDEM_OK)
            return status;
    for (uint32_t i = 1; span != NULL && i < count; i++)
        if (tensors_overlap(&operands[0].range, &operands[i].range))
            return argument_error("gemm: c overlaps %s",
                                  strchr(operands[i].name, ' ') + 1);
    return TANDEM_OK;
}

enum tandem_status gemm_check_size(const struct tandem_gemm *gemm)
{
    if (gemm == NULL)
        return argument_error("gemm: the description is NULL");
    return input_struct_check("gemm", "tandem_gemm", gemm, sizeof(*gemm),
                              TANDEM_GEMM_MIN_SIZE_1_0);
}

enum tandem_status check_gemm(const struct tandem_gemm *gemm,
                              address_range_fn span, const void *user)
{
    struct tandem_gemm args;
    enum tandem_status status = gemm_check_size(gemm);
    if (status == TANDEM_OK)
        status = check_numbers(gemm);
    if (status != TANDEM_OK)
        return status;
    gemm_args_complete(&args, gemm);
    if (args.reserved != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "gemm: reserved is %u; expected 0",
                              args.reserved);
    return check_operands(&args, span, user);
}

/* ---- the operator ---- */

static struct activation activation_of(const struct tandem_op *op)
{
    int64_t id = op->ints[GEMM_ACTIVATION];
    const double *parameters = op->floats + GEMM_ACTIVATION_PARAMETER;
    uint32_t number = id < 0 || id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
    return (struct activation){number, {parameters[0], parameters[1]}};
}

static enum tandem_status gemm_class_check(const struct op_call *call)
{
    struct activation activation = activation_of(call->op);
    enum tandem_status status = check_switch(call, GEMM_RESIDUAL, "residual");
    return status == TANDEM_OK ? activation_check("gemm", &activation) : status;
}

/* Returns the name of input 2 or 3. */
static const char *operand_label(const struct op_call *call, uint32_t input)
{
    return input == gemm_residual_input(call) ? "the residual" : "bias";
}

static enum tandem_status gemm_class_check_dtypes(const struct op_call *call)
{
    enum tandem_status status = check_dtype("a", call->inputs[0]->dtype);
    for (uint32_t i = 0; i <= call->input_count && status == TANDEM_OK; i++) {
        const struct tandem_tensor_desc *tensor = op_call_operand(call, i);
        uint32_t expected =
            i < 2 ? call->inputs[0]->dtype : call->outputs[0]->dtype;
        if (tensor->dtype != expected)
            return argument_error("gemm: %s is %s and %s is %s; expected equal "
                                  "dtypes",
                                  i < 2 ? "a" : operand_label(call, i),
                                  dtype_name(i < 2 ? expected : tensor->dtype),
                                  i < 2 ? "b" : "c",
                                  dtype_name(i < 2 ? tensor->dtype : expected));
    }
    return status == TANDEM_OK ? check_dtype("c", call->outputs[0]->dtype)
                               : status;
}

/* Sets the shape of the output before the last two dimensions. */
static enum tandem_status batch_infer(const struct op_call *call,
                                      struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *a = call->inputs[0], *b = call->inputs[1];
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 2; i < out->rank; i++) {
        int64_t left = i < a->rank ? a->shape[a->rank - 1 - i] : 1;
        int64_t right = i < b->rank ? b->shape[b->rank - 1 - i] : 1;
        if (left != right && left != 1 && right != 1)
            return argument_error(
                "gemm: dimension -%u of a is %lld and that of b %lld; expected "
                "equal numbers, or 1",
                i + 1, (long long)left, (long long)right);
        out->shape[out->rank - 1 - i] = left == 1 ? right : left;
    }
    return TANDEM_OK;
}

/* Checks bias and residual. */
static enum tandem_status check_addends(const struct op_call *call,
                                        const struct tandem_tensor_desc *out)
{
    const uint32_t residual = gemm_residual_input(call);
    const int64_t m = out->shape[out->rank - 2], n = out->shape[out->rank - 1];
    if (residual != UINT32_MAX && !shapes_equal(call->inputs[residual], out))
        return shape_mismatch(call, residual, out);
    if (call->input_count == 2 || residual == 2)
        return TANDEM_OK;
    const struct tandem_tensor_desc *bias = call->inputs[2];
    if ((bias->rank == 1 && bias->shape[0] == n) ||
        (bias->rank == 2 && bias->shape[0] == m && bias->shape[1] == 1))
        return TANDEM_OK;
    return argument_error(
        "gemm: bias (input 2) has another shape than [%lld] or [%lld, 1]",
        (long long)n, (long long)m);
}

static enum tandem_status gemm_class_infer(const struct op_call *call,
                                           uint32_t output,
                                           struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *a = call->inputs[0], *b = call->inputs[1];
    const uint32_t least = 2 + (call->op->ints[GEMM_RESIDUAL] != 0);
    (void)output;
    if (call->input_count < least || call->input_count > least + 1)
        return argument_error("gemm: got %u inputs with residual %u; expected "
                              "%u or %u: a, b, a bias if any, and the residual",
                              call->input_count, least - 2, least, least + 1);
    for (uint32_t i = 0; i < 2; i++)
        if (call->inputs[i]->rank < 2)
            return operand_error(call, i, "has rank %u; expected 2 or more",
                                 call->inputs[i]->rank);
    if (a->shape[a->rank - 1] != b->shape[b->rank - 2])
        return argument_error(
            "gemm: a is %lld x %lld and b is %lld x %lld; expected m x k and "
            "k x n",
            (long long)a->shape[a->rank - 2], (long long)a->shape[a->rank - 1],
            (long long)b->shape[b->rank - 2], (long long)b->shape[b->rank - 1]);
    enum tandem_status status = batch_infer(call, out);
    if (status != TANDEM_OK)
        return status;
    out->shape[out->rank - 2] = a->shape[a->rank - 2];
    out->shape[out->rank - 1] = b->shape[b->rank - 1];
    return check_addends(call, out);
}

static void gemm_class_work(const struct op_call *call, bool contiguous,
                            struct op_work *work)
{
    const struct tandem_tensor_desc *a = call->inputs[0], *c = call->outputs[0];
    double elements = (double)shape_elements(c->rank, c->shape);
    double sizes[] = {(double)c->shape[c->rank - 2],
                      (double)c->shape[c->rank - 1],
                      (double)a->shape[a->rank - 1], 1};
    (void)contiguous;
    if (elements > 0)
        sizes[3] = elements / (sizes[0] * sizes[1]);
    memcpy(work->gemm_size, sizes, sizeof(sizes));
}

/* `shape` is m, n and k, or batch, m, n and k. The inputs are a [m][k] and b
 * [k][n]; a batch dimension, if any, comes first. */
static const char *gemm_example(const struct operator_info *info, uint32_t rank,
                                const int64_t *shape, struct op_example *out)
{
    (void)info;
    if (rank != 3 && rank != 4)
        return "MxNxK or BATCHxMxNxK";
    const int64_t *mnk = shape + rank - 3;
    int64_t a[] = {shape[0], mnk[0], mnk[2]}, b[] = {shape[0], mnk[2], mnk[1]};
    example_input(out, rank - 1, &a[4 - rank]);
    example_input(out, rank - 1, &b[4 - rank]);
    out->floats[GEMM_BETA] = 0;
    return NULL;
}

const struct op_class op_class_gemm = {.input_dtypes = "f",
                                       .output_dtypes = "f",
                                       .variadic = true,
                                       .residual_in_place = true,
                                       .floats_change = true,
                                       .example_shape = OP_EXAMPLE_CUBE,
                                       .check = gemm_class_check,
                                       .check_dtypes = gemm_class_check_dtypes,
                                       .infer = gemm_class_infer,
                                       .work = gemm_class_work,
                                       .example = gemm_example};
