/* SPDX-License-Identifier: Apache-2.0 */
/* The class ATTENTION; see op_class.h and op_attention.h. */
#include "common/op_attention.h"

#include <string.h>

#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

enum { CAUSAL, PAST };
enum { Q, K, V, MASK };
/* Limits of the attribute past, so that no position overflows. */
#define MAX_PAST INT64_C(0x4000000000000000)

static enum tandem_status attention_check(const struct op_call *call)
{
    const double *floats = call->op->floats;
    int64_t past = call->op->ints[PAST];
    if (past < -MAX_PAST || past > MAX_PAST)
        return argument_error("attention: past is %lld; expected -2^62 to 2^62",
                              (long long)past);
    /* No conversion to float, which can trap in the caller's floating-point
     * environment. */
    if (!islessequal(fabs(floats[0]), (double)FLT_MAX) ||
        !islessequal(floats[1], (double)FLT_MAX) || isless(floats[1], 0))
        return argument_error("attention: scale is %g and softcap %g; expected "
                              "finite numbers, and softcap at least 0",
                              floats[0], floats[1]);
    return check_switch(call, CAUSAL, "causal");
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

static enum tandem_status attention_infer(const struct op_call *call,
                                          uint32_t output,
                                          struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *q = call->inputs[Q], *k = call->inputs[K];
    const struct tandem_tensor_desc *v = call->inputs[V];
    (void)output;
    if (call->input_count > 4)
        return argument_error("attention: got %u inputs; expected q, k, v and, "
                              "if any, a mask",
                              call->input_count);
    for (uint32_t i = 0; i < 3; i++)
        if (call->inputs[i]->rank != 4)
            return operand_error(call, i, "has rank %u; expected 4",
                                 call->inputs[i]->rank);
    for (uint32_t i = 0; i < 8; i++)
        if (call->inputs[i / 4]->shape[i % 4] > INT32_MAX ||
            v->shape[3] > INT32_MAX)
            return last_error_set(TANDEM_UNSUPPORTED,
                                  "attention: an axis has more than %d "
                                  "elements",
                                  INT32_MAX);
    struct tandem_tensor_desc expected = *k;
    expected.shape[0] = q->shape[0];
    expected.shape[3] = q->shape[3];
    enum tandem_status status = check_input(call, K, &expected);
    expected.shape[3] = v->shape[3];
    if (status == TANDEM_OK)
        status = check_input(call, V, &expected);
    if (status != TANDEM_OK)
        return status;
    if (k->shape[1] == 0 ? q->shape[1] != 0 : q->shape[1] % k->shape[1] != 0)
        return argument_error(
            "attention: k and v have %lld heads, which do not "
            "divide the %lld heads of q",
            (long long)k->shape[1], (long long)q->shape[1]);
    shape_copy(out, q);
    out->shape[3] = k->shape[2];
    if (call->input_count > MASK && !shape_broadcasts(call->inputs[MASK], out))
        return shape_mismatch(call, MASK, out);
    out->shape[3] = v->shape[3];
    return TANDEM_OK;
}

static struct attention_strides
strides_of(const struct tandem_tensor_desc *tensor)
{
    const int64_t *strides = tensor->strides;
    return (struct attention_strides){strides[0], strides[1], strides[2],
                                      strides[3]};
}

/* Returns the strides of a mask, which are 0 along axes that broadcast. */
static struct attention_strides
mask_strides(const struct tandem_tensor_desc *mask)
{
    int64_t strides[4] = {0};
    for (uint32_t i = 0; i < mask->rank; i++)
        if (mask->shape[i] != 1)
            strides[4 - mask->rank + i] = mask->strides[i];
    return (struct attention_strides){strides[0], strides[1], strides[2],
                                      strides[3]};
}

void attention_read(struct attention *out, const struct tandem_op *op,
                    const struct tandem_tensor_desc *const *inputs,
                    uint32_t input_count,
                    const struct tandem_tensor_desc *output)
{
    const struct tandem_tensor_desc *q = inputs[Q], *k = inputs[K];
    *out = (struct attention){.batch = q->shape[0],
                              .heads = q->shape[1],
                              .queries = q->shape[2],
                              .keys = k->shape[2],
                              .width = q->shape[3],
                              .value_width = output->shape[3],
                              .group = 1,
                              .q = strides_of(q),
                              .k = strides_of(k),
                              .v = strides_of(inputs[V]),
                              .out = strides_of(output),
                              .causal = op->ints[CAUSAL] != 0,
                              .past = op->ints[PAST],
                              .scale = attribute_f32(op->floats[0]),
                              .softcap = attribute_f32(op->floats[1])};
    if (k->shape[1] > 0)
        out->group = q->shape[1] / k->shape[1];
    if (input_count > MASK) {
        out->mask_tensor = inputs[MASK];
        out->mask = mask_strides(inputs[MASK]);
    }
}

/* Two products of matrices per head. */
static void attention_work(const struct op_call *call, bool contiguous,
                           struct op_work *work)
{
    const int64_t *q = call->inputs[Q]->shape, *v = call->inputs[V]->shape;
    double sizes[] = {(double)q[2], (double)v[2], (double)q[3] + (double)v[3],
                      (double)q[0] * (double)q[1]};
    (void)contiguous;
    for (uint32_t i = 0; i < 4; i++)
        work->gemm_size[i] = sizes[i];
}

/* Self-attention of tensors of this shape. A shape of fewer axes gets a batch
 * and one head. */
static const char *attention_example(const struct operator_info *info,
                                     uint32_t rank, const int64_t *shape,
                                     struct op_example *out)
{
    int64_t queries[4] = {1, 1, 1, 1}, keys[4];
    (void)info;
    if (rank < 1 || rank > 5)
        return "batch, heads, tokens and width, or batch, heads, queries, keys "
               "and width";
    uint32_t missing = rank < 4 ? 4 - rank : 0;
    for (uint32_t i = 0; missing + i < 4; i++)
        queries[missing + i] = shape[i];
    queries[3] = shape[rank - 1];
    memcpy(keys, queries, sizeof keys);
    if (rank == 5)
        keys[2] = shape[3];
    example_input(out, 4, queries);
    example_input(out, 4, keys);
    example_input(out, 4, keys);
    out->floats[0] = 0.125;
    out->floats[1] = 0;
    return NULL;
}

const struct op_class op_class_attention = {.input_dtypes = "fffm",
                                            .output_dtypes = "f",
                                            .variadic = true,
                                            .example_shape = OP_EXAMPLE_ROWS,
                                            .check = attention_check,
                                            .infer = attention_infer,
                                            .work = attention_work,
                                            .example = attention_example};
