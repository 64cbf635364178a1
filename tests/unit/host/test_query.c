/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about operators without tensors: the outputs that follow from the
 * inputs, and which device supports an operator, how fast and when.
 */
#include <config.h>

#include "support.h"

#include <fenv.h>
#include <string.h>

static struct tandem_context *context;
static uint32_t simulated, cpu;

static void context_setup(void)
{
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    cpu = device_named(context, "cpu");
}

/* Returns a row-major operand of rank 2 or, if columns is 0, of rank 1. */
static struct tandem_operand_desc operand(uint32_t dtype, int64_t rows,
                                          int64_t columns)
{
    return (struct tandem_operand_desc){
        .dtype = dtype,
        .rank = columns > 0 ? 2 : 1,
        .shape = {rows, columns},
        .strides = {columns > 0 ? columns : 1, 1}};
}

/* ---- inference ---- */

static void infers(const struct tandem_op *op,
                   const struct tandem_operand_desc *a,
                   const struct tandem_operand_desc *b,
                   const struct tandem_operand_desc *expected, uint32_t given)
{
    const struct tandem_operand_desc *inputs[] = {a, b};
    struct tandem_operand_desc out, *outputs[] = {&out};

    memset(&out, 0xa5, sizeof out);
    out.dtype = given;
    OK(tandem_op_infer(op, inputs, b != NULL ? 2 : 1, outputs, 1));
    ck_assert_uint_eq(out.dtype, expected->dtype);
    ck_assert_uint_eq(out.rank, expected->rank);
    for (uint32_t i = 0; i < out.rank; i++) {
        ck_assert_int_eq(out.shape[i], expected->shape[i]);
        ck_assert_int_eq(out.strides[i], expected->strides[i]);
    }
    ck_assert_uint_eq(out.alignment_bytes, 0);
    ck_assert_uint_eq(out.same_as_input, 0);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(out.reserved[i], 0);
}

TEST(test_outputs_follow_from_the_inputs)
{
    const struct tandem_operand_desc row = operand(TANDEM_I64, 1, 5),
                                     column = operand(TANDEM_I64, 3, 1),
                                     matrix = operand(TANDEM_I64, 3, 5),
                                     truth = operand(TANDEM_BOOL, 3, 5),
                                     half = operand(TANDEM_F16, 3, 5),
                                     floats = operand(TANDEM_F32, 3, 5),
                                     sums = operand(TANDEM_F32, 3, 0);
    struct tandem_operand_desc rows = matrix;
    int64_t axis[] = {2, 0}; /* the mask of axis 1 */
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ADD};

    infers(&op, &row, &column, &matrix, 0);
    op.id = TANDEM_OP_LESS;
    infers(&op, &row, &column, &truth, TANDEM_F32);
    op.id = TANDEM_OP_CAST;
    infers(&op, &matrix, NULL, &half, TANDEM_F16);
    op = (struct tandem_op){.struct_size = sizeof op,
                            .id = TANDEM_OP_SUM,
                            .int_count = 2,
                            .ints = axis};
    infers(&op, &floats, NULL, &sums, 0);
    /* The outputs are row-major, whatever the inputs are. */
    rows.strides[0] = 1;
    rows.strides[1] = 3;
    op = (struct tandem_op){.struct_size = sizeof op, .id = TANDEM_OP_COPY};
    infers(&op, &rows, NULL, &matrix, 0);
}

TEST(test_a_product_has_the_dtype_of_its_bias)
{
    const struct tandem_operand_desc a = operand(TANDEM_F16, 3, 4),
                                     b = operand(TANDEM_F16, 4, 5),
                                     bias = operand(TANDEM_F32, 5, 0);
    const struct tandem_operand_desc *inputs[] = {&a, &b, &bias};
    int64_t ints[] = {0, 0};
    double floats[] = {1, 0, 0, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_GEMM,
                                 .int_count = 2,
                                 .ints = ints,
                                 .float_count = 4,
                                 .floats = floats};
    struct tandem_operand_desc out = {0}, *outputs[] = {&out};

    OK(tandem_op_infer(&op, inputs, 2, outputs, 1));
    ck_assert_uint_eq(out.dtype, TANDEM_F16);
    OK(tandem_op_infer(&op, inputs, 3, outputs, 1));
    ck_assert_uint_eq(out.dtype, TANDEM_F32);
    ck_assert_int_eq(out.shape[0], 3);
    ck_assert_int_eq(out.shape[1], 5);
}

TEST(test_invalid_calls_infer_nothing)
{
    struct tandem_operand_desc a = operand(TANDEM_F32, 3, 4),
                               b = operand(TANDEM_F32, 2, 4), out = a;
    const struct tandem_operand_desc *inputs[] = {&a, &b};
    const struct tandem_operand_desc *none[] = {NULL, NULL};
    struct tandem_operand_desc *outputs[] = {&out, NULL};
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ADD};

    BAD(tandem_op_infer(NULL, inputs, 2, outputs, 1));
    BAD(tandem_op_infer(&op, inputs, 2, outputs, 1));
    BAD(tandem_op_infer(&op, NULL, 2, outputs, 1));
    BAD(tandem_op_infer(&op, inputs, 2, NULL, 1));
    BAD(tandem_op_infer(&op, none, 2, outputs, 1));
    BAD(tandem_op_infer(&op, inputs, 2, &outputs[1], 1));
    BAD(tandem_op_infer(&op, inputs, 1, outputs, 1));
    BAD(tandem_op_infer(&op, inputs, 2, outputs, 2));
    BAD(tandem_op_infer(&op, inputs, 1000, outputs, 1));
    op.id = TANDEM_OP_ID_END;
    FAILS(TANDEM_UNSUPPORTED, tandem_op_infer(&op, inputs, 2, outputs, 1));
    op.id = TANDEM_OP_CAST; /* to no dtype */
    out.dtype = 0;
    FAILS(TANDEM_UNSUPPORTED, tandem_op_infer(&op, inputs, 1, outputs, 1));
    op.id = TANDEM_OP_RELU;
    a.rank = TANDEM_MAX_RANK + 1;
    BAD(tandem_op_infer(&op, inputs, 1, outputs, 1));
    a = b;
    a.shape[0] = -1;
    BAD(tandem_op_infer(&op, inputs, 1, outputs, 1));
    a = b;
    a.reserved[3] = 1;
    FAILS(TANDEM_UNSUPPORTED, tandem_op_infer(&op, inputs, 1, outputs, 1));
    /* The product of the lengths overflows. */
    a = operand(TANDEM_F32, INT64_C(1) << 40, 1);
    b = operand(TANDEM_F32, 1, INT64_C(1) << 40);
    op.id = TANDEM_OP_ADD;
    BAD(tandem_op_infer(&op, inputs, 2, outputs, 1));
}

/* ---- questions ---- */

static enum tandem_status ask(uint32_t device, uint32_t id,
                              const struct tandem_operand_desc *x,
                              const struct tandem_operand_desc *y,
                              uint32_t flags, struct tandem_op_answer *answer)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    *answer = (struct tandem_op_answer){.struct_size = sizeof *answer};
    return tandem_op_query(context, device, &op, &x, 1, &y, 1, flags, answer);
}

TEST(test_a_question_needs_no_tensor)
{
    const struct tandem_operand_desc x = operand(TANDEM_F32, 256, 0);
    struct tandem_op_answer answer;
    struct tandem_tensor *tensor = vector_new(context, 256);
    float data[256] = {0};
    struct sim_counters before;

    OK(ask(cpu, TANDEM_OP_RELU, &x, &x, 0, &answer));
    ck_assert_uint_eq(answer.device, cpu);
    ck_assert_uint_eq(answer.ready, 1);
    ck_assert_double_gt(answer.launch_ns + answer.execute_ns, 0);
    ck_assert_double_eq(answer.compile_ns, 0);
    before = counters_read(0);
    OK(ask(simulated, TANDEM_OP_RELU, &x, &x, 0, &answer));
    ck_assert_uint_eq(answer.device, simulated);
    ck_assert_uint_eq(counters_since(0, &before).launches, 0);
    /* A call with such tensors is not prepared again. */
    OK(ask(simulated, TANDEM_OP_RELU, &x, &x, TANDEM_QUERY_COMPILE, &answer));
    before = counters_read(0);
    OK(tandem_tensor_write(tensor, data, sizeof data));
    unary_on(context, simulated, TANDEM_OP_RELU, tensor,
             vector_new(context, 256));
    ck_assert_uint_eq(counters_since(0, &before).prepares, 0);
}

TEST(test_any_device_means_the_fastest)
{
    const struct tandem_operand_desc x = operand(TANDEM_F32, 4096, 0);
    struct script script = script_free();
    struct tandem_op_answer answer, other;

    script.launch = 4000;
    script_all(&script, 10000, 0);
    script_save("simulated", &script);
    script.launch = 100;
    script_all(&script, 100, 1);
    script_save("cpu", &script);
    context = context_new(NULL);
    OK(ask(TANDEM_ANY_DEVICE, TANDEM_OP_RELU, &x, &x, 0, &answer));
    ck_assert_uint_eq(answer.device, simulated);
    ck_assert_uint_eq(answer.calibrated, 1);
    ck_assert_double_eq_tol(answer.launch_ns, 4000, 1);
    ck_assert_double_eq_tol(answer.execute_ns, 6000, 1);
    OK(ask(cpu, TANDEM_OP_RELU, &x, &x, 0, &other));
    ck_assert_double_eq_tol(other.launch_ns + other.execute_ns, 100 + 4096 * 8,
                            400);
}

/* The context's device answers, even if another one is faster. */
TEST(test_a_forced_device_answers)
{
    const struct tandem_operand_desc x = operand(TANDEM_F32, 4096, 0);
    struct tandem_op_answer answer;

    for (uint32_t device = cpu; device <= simulated; device++) {
        OK(tandem_context_force_device(context, device));
        OK(ask(TANDEM_ANY_DEVICE, TANDEM_OP_RELU, &x, &x, 0, &answer));
        ck_assert_uint_eq(answer.device, device);
    }
}

TEST(test_in_place_is_part_of_the_question)
{
    const struct tandem_operand_desc x = operand(TANDEM_F32, 64, 0);
    struct tandem_operand_desc same = x;
    const struct tandem_operand_desc *inputs = &x, *outputs = &same;
    int64_t axis = 0;
    const struct tandem_op softmax = {.struct_size = sizeof softmax,
                                      .id = TANDEM_OP_SOFTMAX,
                                      .int_count = 1,
                                      .ints = &axis};
    struct tandem_op_answer answer = {.struct_size = sizeof answer};

    same.same_as_input = 1;
    OK(ask(cpu, TANDEM_OP_RELU, &x, &same, 0, &answer));
    same.same_as_input = 2;
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &same, 0, &answer));
    /* A softmax reads elements after it has written others. */
    same.same_as_input = 1;
    BAD(tandem_op_query(context, cpu, &softmax, &inputs, 1, &outputs, 1, 0,
                        &answer));
    expect_last_error("cannot be input 0");
    same.same_as_input = 0;
    OK(tandem_op_query(context, cpu, &softmax, &inputs, 1, &outputs, 1, 0,
                       &answer));
    same.same_as_input = 1;
    same.shape[0] = 63;
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &same, 0, &answer));
}

/* A program may let floating-point exceptions trap. */
TEST(test_answers_do_not_trap)
{
    const struct tandem_operand_desc x = {
        .dtype = TANDEM_F32, .rank = 1, .shape = {7}, .strides = {1}};
    const struct tandem_operand_desc *in = &x;
    struct tandem_operand_desc y = {0}, *inferred = &y;
    const struct tandem_operand_desc *out = &y;
    int64_t ints[5] = {0};
    double floats[] = {-0.75, 0, 1.37};
    const struct tandem_op resize = {.struct_size = sizeof resize,
                                     .id = TANDEM_OP_RESIZE,
                                     .int_count = 5,
                                     .ints = ints,
                                     .float_count = 3,
                                     .floats = floats};
    struct tandem_op_answer answer = {.struct_size = sizeof answer};

    feenableexcept(FE_INEXACT | FE_INVALID | FE_DIVBYZERO);
    OK(tandem_op_infer(&resize, &in, 1, &inferred, 1));
    OK(tandem_op_query(context, TANDEM_ANY_DEVICE, &resize, &in, 1, &out, 1, 0,
                       &answer));
    ck_assert_int_eq(fedisableexcept(FE_ALL_EXCEPT),
                     FE_INEXACT | FE_INVALID | FE_DIVBYZERO);
    ck_assert_int_eq(y.shape[0], 9);
}

TEST(test_invalid_questions_have_no_answer)
{
    struct tandem_operand_desc x = operand(TANDEM_F32, 64, 0), y = x;
    const struct tandem_operand_desc *inputs[] = {&x}, *outputs[] = {&y};
    struct tandem_op_answer answer = {.struct_size = sizeof answer};
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_RELU};

    BAD(tandem_op_query(NULL, cpu, &op, inputs, 1, outputs, 1, 0, &answer));
    BAD(tandem_op_query(context, cpu, NULL, inputs, 1, outputs, 1, 0, &answer));
    BAD(tandem_op_query(context, cpu, &op, NULL, 1, outputs, 1, 0, &answer));
    BAD(tandem_op_query(context, cpu, &op, inputs, 1, NULL, 1, 0, &answer));
    BAD(tandem_op_query(context, cpu, &op, inputs, 1, outputs, 1, 0, NULL));
    BAD(tandem_op_query(context, 15, &op, inputs, 1, outputs, 1, 0, &answer));
    FAILS(TANDEM_UNSUPPORTED, tandem_op_query(context, cpu, &op, inputs, 1,
                                              outputs, 1, 4, &answer));
    BAD(ask(cpu, TANDEM_OP_RELU, &x, NULL, 0, &answer));
    y.shape[0] = 63;
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &y, 0, &answer));
    y = x;
    y.strides[0] = 0; /* its elements overlap */
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &y, 0, &answer));
    y = x;
    y.alignment_bytes = 12;
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &y, 0, &answer));
    y.alignment_bytes = 2; /* less than an element */
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &y, 0, &answer));
    y = x;
    y.rank = 99;
    BAD(ask(cpu, TANDEM_OP_RELU, &x, &y, 0, &answer));
    y = x;
    x.reserved[0] = 1;
    FAILS(TANDEM_UNSUPPORTED, ask(cpu, TANDEM_OP_RELU, &x, &y, 0, &answer));
    x = y;
    answer.struct_size = 4;
    BAD(tandem_op_query(context, cpu, &op, inputs, 1, outputs, 1, 0, &answer));
}

/* A caller with an older header gets the members that it knows. */
TEST(test_answers_fill_the_struct_of_the_caller)
{
    struct tandem_op_answer answer;
    const struct tandem_operand_desc x = operand(TANDEM_F32, 64, 0);
    const struct tandem_operand_desc *operands[] = {&x};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_RELU};

    memset(&answer, 0xa5, sizeof answer);
    answer.struct_size = offsetof(struct tandem_op_answer, calibrated);
    OK(tandem_op_query(context, cpu, &op, operands, 1, operands, 1, 0,
                       &answer));
    ck_assert_uint_eq(answer.device, cpu);
    ck_assert_uint_eq(answer.ready, 1);
    ck_assert_uint_eq(answer.calibrated, 0xa5a5a5a5);
}

TEST_MAIN(host_tests_run("query", context_setup, NULL))
