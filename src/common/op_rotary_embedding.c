/* SPDX-License-Identifier: Apache-2.0 */
/* The class ROTARY_EMBEDDING; see op_class.h and op_rotary_embedding.h. */
#include "common/op_rotary_embedding.h"

#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

enum { INTERLEAVED, ROTARY_DIM };
enum { X, COS, SIN, POSITIONS };

static enum tandem_status rotary_check(const struct op_call *call)
{
    return check_switch(call, INTERLEAVED, "interleaved");
}

/* Checks that input `input` has the shape `expected`. */
static enum tandem_status check_input(const struct op_call *call,
                                      uint32_t input,
                                      const struct tandem_tensor_desc *expected)
{
    return shapes_equal(call->inputs[input], expected)
               ? TANDEM_OK
               : shape_mismatch(call, input, expected);
}

/* Returns the number of elements of a row that are rotated. */
static int64_t rotary_width(const struct tandem_op *op,
                            const struct tandem_tensor_desc *x)
{
    return op->ints[ROTARY_DIM] != 0 ? op->ints[ROTARY_DIM] : x->shape[3];
}

static enum tandem_status rotary_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *x = call->inputs[X];
    struct tandem_tensor_desc cache = {.rank = 3}, positions = {.rank = 2};
    (void)output;
    if (call->input_count > 4)
        return argument_error("%s: got %u inputs; expected x, cos, sin and, if "
                              "any, positions",
                              call->info->name, call->input_count);
    if (x->rank != 4)
        return operand_error(call, X, "has rank %u; expected 4", x->rank);
    int64_t width = rotary_width(call->op, x);
    if (width < 0 || width > x->shape[3] || width % 2 != 0)
        return argument_error("%s: rotary_dim is %lld; expected an even number "
                              "up to %lld, or 0 if that is even",
                              call->info->name,
                              (long long)call->op->ints[ROTARY_DIM],
                              (long long)x->shape[3]);
    positions.shape[0] = cache.shape[0] = x->shape[0];
    positions.shape[1] = cache.shape[1] = x->shape[2];
    cache.shape[2] = width / 2;
    if (call->input_count > POSITIONS) {
        if (call->inputs[COS]->rank != 2)
            return operand_error(call, COS, "has rank %u; expected 2",
                                 call->inputs[COS]->rank);
        cache.rank = 2;
        cache.shape[0] = call->inputs[COS]->shape[0];
        cache.shape[1] = width / 2;
    }
    enum tandem_status status = check_input(call, COS, &cache);
    if (status == TANDEM_OK)
        status = check_input(call, SIN, &cache);
    if (status == TANDEM_OK && call->input_count > POSITIONS)
        status = check_input(call, POSITIONS, &positions);
    shape_copy(out, x);
    return status;
}

void rotary_embedding_read(struct rotary_embedding *out,
                           const struct tandem_op *op,
                           const struct tandem_tensor_desc *const *inputs,
                           uint32_t input_count,
                           const struct tandem_tensor_desc *output)
{
    const struct tandem_tensor_desc *x = inputs[X];
    const bool indexed = input_count > POSITIONS;
    *out = (struct rotary_embedding){.batch = x->shape[0],
                                     .heads = x->shape[1],
                                     .tokens = x->shape[2],
                                     .width = x->shape[3],
                                     .pairs = rotary_width(op, x) / 2,
                                     .x = x->strides,
                                     .out = output->strides,
                                     .interleaved = op->ints[INTERLEAVED] != 0};
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t *strides = inputs[COS + i]->strides;
        out->caches[i][0] = indexed ? 0 : strides[0];
        out->caches[i][1] = strides[indexed ? 0 : 1];
        out->caches[i][2] = strides[indexed ? 1 : 2];
    }
    if (indexed) {
        out->positions = inputs[POSITIONS];
        out->length = inputs[COS]->shape[0];
    }
}

/* Reads the rows of the caches that the positions select. */
static void rotary_work(const struct op_call *call, bool contiguous,
                        struct op_work *work)
{
    const struct tandem_tensor_desc *x = call->inputs[X];
    (void)contiguous;
    if (call->input_count <= POSITIONS)
        return;
    work->bytes -= 2 * (double)tensor_data_bytes(call->inputs[COS]);
    work->bytes += (double)x->shape[0] * (double)x->shape[2] *
                   (double)rotary_width(call->op, x) *
                   TANDEM_DTYPE_BYTES(x->dtype);
}

/* `shape` is the shape of x, whose first axes may be left out. If the rows have
 * an odd number of elements, the last element is not rotated. */
static const char *rotary_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    int64_t whole[4] = {1, 1, 1, 1};
    (void)info;
    if (rank < 1 || rank > 4 || shape[rank - 1] == 1)
        return "batch, heads, tokens and a width of 2 or more";
    for (uint32_t i = 0; i < rank; i++)
        whole[4 - rank + i] = shape[i];
    const int64_t cache[] = {whole[0], whole[2], whole[3] / 2};
    if (whole[3] % 2 != 0)
        out->ints[ROTARY_DIM] = whole[3] - 1;
    example_input(out, 4, whole);
    example_input(out, 3, cache);
    example_input(out, 3, cache);
    return NULL;
}

const struct op_class op_class_rotary_embedding = {.input_dtypes = "fffi",
                                                   .output_dtypes = "f",
                                                   .variadic = true,
                                                   .example_shape =
                                                       OP_EXAMPLE_ROWS,
                                                   .check = rotary_check,
                                                   .infer = rotary_infer,
                                                   .work = rotary_work,
                                                   .example = rotary_example};
