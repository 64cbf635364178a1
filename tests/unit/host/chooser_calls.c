/* SPDX-License-Identifier: Apache-2.0 */
/* Calls for the tests of the chooser; see chooser_calls.h. */
#include <config.h>

#include <math.h>

#include "chooser_calls.h"

float pool[4][ROOM];
static int64_t indices[ROOM];

const struct class_case classes[CLASSES] = {
    {TANDEM_COST_ELEMENTWISE, TANDEM_OP_ADD, 12, 0},
    {TANDEM_COST_TRANSCENDENTAL, TANDEM_OP_TANH, 8, 0},
    {TANDEM_COST_MULTI_TRANSCENDENTAL, TANDEM_OP_ERF, 8, 0},
    {TANDEM_COST_REDUCE, TANDEM_OP_SUM, 4, 4},
    {TANDEM_COST_SOFTMAX, TANDEM_OP_SOFTMAX, 8, 0},
    {TANDEM_COST_STRIDED, TANDEM_OP_TRANSPOSE, 16, 0},
    {TANDEM_COST_GATHER, TANDEM_OP_GATHER, 16, 0},
    {TANDEM_COST_OPTIMIZER, TANDEM_OP_SGD, 20, 0},
};

static void describe_shapes(struct tandem_context *context, struct op_case *out,
                            int64_t n)
{
    static const int64_t reduce[] = {1, 0}, permutation[] = {1, 0};
    static const int64_t zero[] = {0}, one[] = {1};
    static const double rates[] = {0.1, 0.9, 0, 0};

    out->inputs[0] = vector_wrap(context, pool[0], n);
    out->outputs[0] = vector_wrap(context, pool[1], n);
    switch (out->op.id) {
    case TANDEM_OP_ADD:
        out->inputs[1] = vector_wrap(context, pool[2], n);
        break;
    case TANDEM_OP_SUM:
        OK(tandem_tensor_wrap(context, pool[1], TANDEM_F32, 0, NULL, NULL, 0,
                              &out->outputs[0]));
        out->op.ints = reduce;
        break;
    case TANDEM_OP_SOFTMAX:
        out->inputs[0] = matrix_wrap(context, pool[0], 1, n);
        out->outputs[0] = matrix_wrap(context, pool[1], 1, n);
        out->op.ints = one;
        break;
    case TANDEM_OP_TRANSPOSE:
        out->inputs[0] = matrix_wrap(context, pool[0], n, 2);
        out->outputs[0] = matrix_wrap(context, pool[1], 2, n);
        out->op.ints = permutation;
        break;
    case TANDEM_OP_GATHER:
        OK(tandem_tensor_wrap(context, indices, TANDEM_I64, 1, &n, NULL, 0,
                              &out->inputs[1]));
        out->op.ints = zero;
        break;
    case TANDEM_OP_SGD:
        out->inputs[1] = vector_wrap(context, pool[2], n);
        out->inputs[2] = vector_wrap(context, pool[3], n);
        out->outputs[0] = out->inputs[0];
        out->outputs[1] = out->inputs[2];
        out->op.ints = zero;
        out->op.floats = rates;
        break;
    default:
        break;
    }
}

struct op_case op_case(struct tandem_context *context,
                              const struct class_case *of, int64_t n)
{
    const struct tandem_op_info *info = tandem_op_by_id(of->op);
    struct op_case out = {.op = {.struct_size = sizeof out.op, .id = of->op}};

    out.input_count = info->input_count;
    out.output_count = info->output_count;
    out.op.int_count = of->op == TANDEM_OP_TRANSPOSE ? 2 : info->int_count;
    out.op.float_count = info->float_count;
    out.bytes = (double)(of->bytes_each * n + of->bytes_more);
    describe_shapes(context, &out, n);
    return out;
}

struct tandem_explanation explain(struct tandem_context *context,
                                         const struct op_case *call)
{
    struct tandem_explanation out = {.struct_size = sizeof out};

    OK(tandem_explain_op(context, &call->op, call->inputs, call->input_count,
                         call->outputs, call->output_count, &out));
    return out;
}

void run(struct tandem_context *context, const struct op_case *call)
{
    OK(tandem_run(context, &call->op, call->inputs, call->input_count,
                  call->outputs, call->output_count));
}

void near(double value, double expected)
{
    ck_assert_msg(fabs(value - expected) <= 1e-6 * (1 + fabs(expected)),
                  "%.9g is not %.9g", value, expected);
}

struct tandem_context *context_with_costs(const struct script *cpu,
                                                 const struct script *gpu)
{
    script_save("cpu", cpu);
    script_save("simulated", gpu);
    return context_new(NULL);
}
