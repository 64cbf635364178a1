/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix multiplication of tensors, as calls of the operator GEMM.  Inputs
 * whose strides GEMM does not support are copied first.  Any thread may call
 * the functions. */
#include <config.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/tensor_overlap.h"
#include "common/struct_size.h"
#include "host/run/matmul.h"
#include "host/run/run.h"

#include <inttypes.h>
#include <string.h>

/* ---- arguments ---- */

static enum tandem_status tensors_check(struct tandem_context *context,
                                        struct tandem_tensor *const tensors[4])
{
    static const char *const names[4] = {"matmul: a", "matmul: b",
                                         "matmul: bias", "matmul: c"};
    enum tandem_status status = context_check(context);

    for (uint32_t i = 0; i < 4 && status == TANDEM_OK; i++) {
        if (tensors[i] != NULL || i != 2)
            status = tensor_check(tensors[i], context, names[i]);
    }
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
    if (status == TANDEM_OK)
        status = check_flags("matmul", out->flags,
                             TANDEM_GEMM_ALLOW_TF32 |
                                 TANDEM_GEMM_ALLOW_NORMWISE_ERROR);
    return status;
}

/* Makes the call of the operator. */
static void call_set(struct matmul *matmul, struct tandem_context *context,
                     const struct tandem_matmul_options *options,
                     struct tandem_tensor *const tensors[4])
{
    const double beta = gemm_factor(options->beta);
    uint32_t count = 0;

    matmul->ints[GEMM_ACTIVATION] = options->activation;
    matmul->ints[GEMM_RESIDUAL] = beta != 0;
    matmul->floats[GEMM_ALPHA] = gemm_factor(options->alpha);
    matmul->floats[GEMM_BETA] = beta;
    matmul->floats[GEMM_ACTIVATION_PARAMETER] = options->activation_parameter;
    matmul->floats[GEMM_ACTIVATION_PARAMETER + 1] =
        options->activation_parameter2;
    matmul->op = (struct tandem_op){
        .struct_size = sizeof(matmul->op),
        .id = TANDEM_OP_GEMM,
        .flags = gemm_operator_flags(options->flags),
        .int_count = GEMM_INTS,
        .float_count = GEMM_FLOATS,
        .ints = matmul->ints,
        .floats = matmul->floats,
    };
    matmul->operands[count++] = tensors[0];
    matmul->operands[count++] = tensors[1];
    if (tensors[2] != NULL)
        matmul->operands[count++] = tensors[2];
    matmul->copied_inputs = count;
    if (beta != 0)
        matmul->operands[count++] = tensors[3];
    matmul->operands[count] = tensors[3];
    matmul->call = (struct call){.context = context,
                                 .row = operator_lookup(TANDEM_OP_GEMM),
                                 .op = &matmul->op,
                                 .inputs = matmul->operands,
                                 .outputs = matmul->operands + count,
                                 .input_count = count,
                                 .output_count = 1,
                                 .device = options->device};
}

static enum tandem_status c_check(const struct tandem_tensor *c)
{
    const struct tandem_tensor_desc *desc = &c->desc;
    const uint32_t rank = desc->rank;

    if (c->contiguous || rank < 2 || gemm_output_supports(desc))
        return TANDEM_OK;
    return argument_error(
        "matmul: c: strides %" PRId64 ", %" PRId64 " of its last two axes of "
        "%" PRId64 " x %" PRId64 " elements; expected a column stride of 1, a "
        "row stride of at least %" PRId64 " and no negative stride",
        desc->strides[rank - 2], desc->strides[rank - 1], desc->shape[rank - 2],
        desc->shape[rank - 1], desc->shape[rank - 1]);
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
    to->storage->current = from->storage->current;
    to->storage->poison = from->storage->poison;
}

/* Creates a contiguous tensor, which replaces the input, and enqueues the copy,
 * unless the call is a question. */
static enum tandem_status input_copy(struct matmul *matmul, uint32_t index)
{
    static const char *const names[MATMUL_COPIES] = {"a", "b", "bias"};
    struct tandem_tensor *from = matmul->operands[index],
                         **copy = &matmul->copies[index];
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_COPY};
    enum tandem_status status;

    if (overlaps_c(from, matmul->call.outputs[0]))
        return argument_error("matmul: c overlaps %s", names[index]);
    status = tandem_tensor_create(from->context, from->desc.dtype,
                                  from->desc.rank, from->desc.shape, copy);
    if (status == TANDEM_OK && !matmul->is_question)
        status = tandem_run(from->context, &op, &from, 1, copy, 1,
                            TANDEM_RUN_ON(matmul->call.device));
    if (status != TANDEM_OK)
        return status;
    if (matmul->is_question)
        location_copy(from, *copy);
    matmul->operands[index] = *copy;
    return TANDEM_OK;
}

/* Copies the inputs whose strides GEMM does not support.  Checks the call
 * before, so that an invalid one copies nothing. */
static enum tandem_status inputs_copy(struct matmul *matmul)
{
    enum tandem_status status = TANDEM_OK;
    const bool is_empty = matmul->call.outputs[0]->elements == 0;

    for (uint32_t i = 0; i < matmul->copied_inputs && status == TANDEM_OK;
         i++) {
        const struct tandem_tensor *input = matmul->operands[i];

        if (input->contiguous || is_empty ||
            (i < 2 ? gemm_input_supports(&input->desc)
                   : gemm_bias_supports(&input->desc)))
            continue;
        status = call_check_shapes(&matmul->call);
        if (status == TANDEM_OK)
            status = input_copy(matmul, i);
    }
    return status;
}

/* ---- functions of matmul.h and host.h ---- */

enum tandem_status matmul_prepare(struct matmul *matmul,
                                  struct tandem_context *context,
                                  const struct tandem_matmul_options *options,
                                  struct tandem_tensor *a,
                                  struct tandem_tensor *b,
                                  struct tandem_tensor *c, bool is_question)
{
    struct tandem_matmul_options own;
    enum tandem_status status = options_read(options, &own);
    struct tandem_tensor *const tensors[4] = {a, b, own.bias, c};

    memset(matmul->copies, 0, sizeof(matmul->copies));
    matmul->is_question = is_question;
    if (status == TANDEM_OK)
        status = tensors_check(context, tensors);
    if (status == TANDEM_OK)
        status = c_check(c);
    if (status != TANDEM_OK)
        return status;
    call_set(matmul, context, &own, tensors);
    return inputs_copy(matmul);
}

void matmul_finish(struct matmul *matmul)
{
    for (uint32_t i = 0; i < MATMUL_COPIES; i++)
        tandem_tensor_destroy(matmul->copies[i]);
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
