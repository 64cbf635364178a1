/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explanations of operators that ran, observers, operator timing, and the
 * results of explained GEMMs and shorthand functions.
 */
#include <config.h>

#include <string.h>

#include "common/float16.h"
#include "support.h"

#define N 256
static float x[N], y[N], z[N];
static struct tandem_context *context;
static uint32_t simulated;
static struct tandem_tensor *tx, *ty, *tz;

static void context_setup(void)
{
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    count_up(x, N);
    tx = vector_wrap(context, x, N);
    ty = vector_wrap(context, y, N);
    tz = vector_wrap(context, z, N);
}

TEST(test_the_last_operator_is_explained)
{
    struct tandem_explanation e;

    OK(tandem_binary(context, TANDEM_OP_MUL, tx, tx, ty));
    e = last_explanation(context);
    ck_assert_uint_eq(e.op, TANDEM_OP_MUL);
    ck_assert_uint_eq(e.cost_class, TANDEM_COST_ELEMENTWISE);
    ck_assert_double_eq(e.elements, N);
    ck_assert_double_eq(e.bytes, 3 * sizeof x);
    ck_assert_uint_eq(e.forced, 0);
    ck_assert_uint_eq(e.candidate_count, 2);
    OK(tandem_unary(context, TANDEM_OP_EXP, ty, tz));
    e = last_explanation(context);
    ck_assert_uint_eq(e.op, TANDEM_OP_EXP);
    /* Explaining another operator does not change the last explanation. */
    OK(tandem_explain_op(
        context,
        &(struct tandem_op){.struct_size = sizeof(struct tandem_op),
                            .id = TANDEM_OP_ERF},
        &tx, 1, &ty, 1, &e));
    ck_assert_uint_eq(e.op, TANDEM_OP_ERF);
    ck_assert_uint_eq(last_explanation(context).op, TANDEM_OP_EXP);
}

TEST(test_nothing_was_run_yet)
{
    struct tandem_explanation e = {.struct_size = sizeof e};

    BAD(tandem_explain_last(context, &e));
    e.struct_size = 0;
    BAD(tandem_explain_last(context, &e));
    BAD(tandem_explain_last(context, NULL));
}

TEST(test_explaining_runs_nothing)
{
    const struct sim_counters before = counters_read(0);
    struct sim_counters after;
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    struct tandem_explanation e = {.struct_size = sizeof e};

    memset(y, 0x55, sizeof y);
    OK(tandem_explain_op(context, &op, &tx, 1, &ty, 1, &e));
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    after = counters_since(0, &before);
    ck_assert_uint_eq(after.launches + after.uploads + after.downloads, 0);
    for (size_t i = 0; i < sizeof y; i++)
        ck_assert_int_eq(((unsigned char *)y)[i], 0x55);
}

TEST(test_a_short_explanation_is_not_overrun)
{
    struct tandem_explanation e;
    const size_t bytes = offsetof(struct tandem_explanation, candidates);

    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    memset(&e, 0x5a, sizeof e);
    e.struct_size = bytes;
    OK(tandem_explain_last(context, &e));
    ck_assert_uint_eq(e.op, TANDEM_OP_NEG);
    for (size_t i = bytes; i < sizeof e; i++)
        ck_assert_int_eq(((unsigned char *)&e)[i], 0x5a);
}

/* A timed operator waits for its work. */
TEST(test_operator_timing)
{
    const struct sim_counters before = counters_read(0);

    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_double_eq(last_explanation(context).measured_ns, 0);
    OK(tandem_context_set_timing(context, 1));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_double_gt(last_explanation(context).measured_ns, 0);
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    ck_assert_double_gt(last_explanation(context).measured_ns, 0);
    ck_assert_uint_eq(last_explanation(context).chosen, simulated);
    ck_assert_uint_eq(counters_since(0, &before).executed, 1);
    OK(tandem_context_set_timing(context, 0));
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    ck_assert_double_eq(last_explanation(context).measured_ns, 0);
    BAD(tandem_context_set_timing(context, 2));
    BAD(tandem_context_set_timing(NULL, 1));
}

/* ---- text ---- */

TEST(test_an_explanation_is_readable)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    char text[TANDEM_EXPLANATION_TEXT_BYTES], *line;

    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    OK(tandem_explain_last(context, &e));
    OK(tandem_explanation_text(context, &e, text, sizeof text));
    ck_assert_ptr_eq(strstr(text, "neg: "), text);
    line = strstr(text, "\n* cpu:0 ");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, ": launch "));
    ck_assert_ptr_nonnull(strstr(line, ", execute "));
    ck_assert_ptr_nonnull(strstr(text, "\n  simulated:0 "));
    ck_assert_ptr_null(strstr(text, "the program chose"));
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    OK(tandem_explain_last(context, &e));
    OK(tandem_explanation_text(context, &e, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "the program chose"));
    ck_assert_ptr_nonnull(strstr(text, "\n* simulated:0 "));
    /* A candidate that cannot run it, and a time that was measured. */
    e.candidates[0].status = TANDEM_UNSUPPORTED;
    e.measured_ns = 2.5e6;
    OK(tandem_explanation_text(context, &e, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "  cpu:0    unsupported\n"));
    ck_assert_ptr_nonnull(strstr(text, "measured: 2.5 ms\n"));
    /* The longest text fits. */
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        e.candidates[i] = e.candidates[1];
        e.candidates[i].wait_ns = e.candidates[i].transfer_ns = 1e300;
        e.candidates[i].launch_ns = e.candidates[i].execute_ns = 1e300;
        e.candidates[i].download_ns = e.candidates[i].compile_ns = 1e300;
        e.candidates[i].predicted_ns = 1e300;
        e.candidates[i].calibrated = 0;
    }
    e.candidate_count = TANDEM_MAX_DEVICES;
    e.elements = e.bytes = 1e300;
    OK(tandem_explanation_text(context, &e, text, sizeof text));
    BAD(tandem_explanation_text(context, &e, text, 200));
    ck_assert_str_eq(text, "");
    BAD(tandem_explanation_text(context, &e, text, 0));
    BAD(tandem_explanation_text(context, &e, NULL, 100));
    BAD(tandem_explanation_text(context, NULL, text, sizeof text));
    BAD(tandem_explanation_text(NULL, &e, text, sizeof text));
    e.candidate_count = TANDEM_MAX_DEVICES + 1;
    BAD(tandem_explanation_text(context, &e, text, sizeof text));
}

/* ---- observers ---- */

struct observed {
    uint32_t befores, afters;
    uint32_t op, chosen;
    double predicted, measured_before;
    double measured_after;
    bool last_after;
};

static void observe(void *user, const struct tandem_explanation *explanation,
                    bool after)
{
    struct observed *seen = user;

    seen->op = explanation->op;
    seen->chosen = explanation->chosen;
    seen->last_after = after;
    seen->predicted =
        candidate_of(explanation, explanation->chosen)->predicted_ns;
    if (after) {
        seen->afters++;
        seen->measured_after = explanation->measured_ns;
    } else {
        seen->befores++;
        seen->measured_before = explanation->measured_ns;
    }
}

TEST(test_observers_see_every_operator)
{
    struct observed seen = {0};

    OK(tandem_context_set_observer(context, observe, &seen));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_uint_eq(seen.befores, 1);
    ck_assert_uint_eq(seen.afters, 1);
    ck_assert(seen.last_after);
    ck_assert_uint_eq(seen.op, TANDEM_OP_NEG);
    ck_assert_uint_eq(seen.chosen, 0);
    unary_on(context, simulated, TANDEM_OP_ABS, tx, ty);
    ck_assert_uint_eq(seen.befores, 2);
    ck_assert_uint_eq(seen.op, TANDEM_OP_ABS);
    ck_assert_uint_eq(seen.chosen, simulated);
    OK(tandem_context_set_timing(context, 1));
    unary_on(context, simulated, TANDEM_OP_ABS, tx, ty);
    ck_assert_double_eq(seen.measured_before, 0);
    ck_assert_double_gt(seen.measured_after, 0);
    /* A rejected call is not reported. */
    BAD(tandem_unary(context, TANDEM_OP_ADD, tx, ty));
    ck_assert_uint_eq(seen.befores, 3);
    OK(tandem_context_set_observer(context, NULL, NULL));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_uint_eq(seen.befores, 3);
    ck_assert_uint_eq(seen.afters, 3);
}

/* A repeated call with operands on the host is launched at once, but is
 * reported like others. */
TEST(test_observers_see_repeated_calls)
{
    struct observed seen = {0};

    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    OK(tandem_context_set_observer(context, observe, &seen));
    for (uint32_t i = 1; i <= 3; i++) {
        OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
        ck_assert_uint_eq(seen.befores, i);
        ck_assert_uint_eq(seen.afters, i);
        ck_assert_uint_eq(seen.chosen, 0);
        ck_assert_double_gt(seen.predicted, 0);
    }
    OK(tandem_context_set_observer(context, NULL, NULL));
}

/* The copies that a product would need do not run either: the memory of the
 * inputs can be freed after a question. */
TEST(test_questions_about_products_run_nothing)
{
    const int64_t shape[] = {8, 8}, strides[] = {32, 2};
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = simulated};
    struct tandem_explanation e = {.struct_size = sizeof e};
    float *values = calloc(256, sizeof *values);
    struct tandem_tensor *a, *b, *c;
    struct observed seen = {0};

    ck_assert_ptr_nonnull(values);
    OK(tandem_tensor_wrap(context, values, TANDEM_F32, 2, shape, strides, 0,
                          &a));
    OK(tandem_tensor_wrap(context, values + 1, TANDEM_F32, 2, shape, strides,
                          TANDEM_TENSOR_READ_ONLY, &b));
    OK(tandem_tensor_create(context, TANDEM_F32, 2, shape, &c));
    OK(tandem_context_set_observer(context, observe, &seen));
    OK(tandem_explain_matmul(context, &options, a, b, c, &e));
    ck_assert_uint_eq(e.chosen, simulated);
    ck_assert_double_gt(candidate_of(&e, simulated)->transfer_ns, 0);
    OK(tandem_prepare_matmul(context, &options, a, b, c));
    ck_assert_uint_eq(seen.befores, 0);
    OK(tandem_matmul(context, &options, a, b, c));
    ck_assert_uint_eq(seen.befores, 3); /* two copies and the product */
    OK(tensor_wait(c));
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    free(values);
}

/* ---- GEMM and shorthand functions ---- */

#define M 5
#define K 7
#define W 6

/* Returns a matrix of the dtype with these values. */
static struct tandem_tensor *matrix_cast(float *values, int64_t rows,
                                         int64_t columns, uint32_t dtype)
{
    const int64_t shape[2] = {rows, columns};
    struct tandem_tensor *wide = matrix_wrap(context, values, rows, columns);
    struct tandem_tensor *narrow = NULL;

    OK(tandem_tensor_create(context, dtype, 2, shape, &narrow));
    OK(tandem_unary(context, TANDEM_OP_CAST, wide, narrow));
    return narrow;
}

/*
 * GEMMs of f16 and bf16 with a result of the same dtype or f32, on both
 * devices and on the selected one.
 */
LOOP_TEST(test_matmul_of_16_bits, 12)
{
    const uint32_t devices[] = {0, simulated, TANDEM_ANY_DEVICE};
    const uint32_t dtype = _i & 1 ? TANDEM_F16 : TANDEM_BF16;
    const uint32_t c_dtype = _i & 2 ? TANDEM_F32 : dtype;
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1001,
                                            .device = devices[_i / 4]};
    float a[M * K], b[K * W], c[M * W] = {0}, column[M];
    struct tandem_tensor *tc, *result = matrix_wrap(context, c, M, W);

    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 5) - 2;
    for (int i = 0; i < K * W; i++)
        b[i] = (float)(i % 7) - 3;
    for (int i = 0; i < M; i++)
        column[i] = (float)(i * i);
    tc = matrix_cast(c, M, W, c_dtype);
    options.bias = matrix_cast(column, M, 1, c_dtype);
    OK(tandem_matmul(context, &options, matrix_cast(a, M, K, dtype),
                     matrix_cast(b, K, W, dtype), tc));
    OK(tandem_unary(context, TANDEM_OP_CAST, tc, result));
    OK(tensor_wait(result));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < W; j++) {
            float sum = 0;

            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * W + j];
            sum = 1001 * sum + column[i];
            ck_assert_float_eq(c[i * W + j], c_dtype == TANDEM_F16
                                                 ? f16_value(f16_round(sum))
                                             : c_dtype == TANDEM_BF16
                                                 ? bf16_value(bf16_round(sum))
                                                 : sum);
        }
}

TEST(test_reduce_reads_keepdims_off_the_rank)
{
    const int64_t keep[2] = {1, 4};
    float a[12], sums[4];
    struct tandem_tensor *ta = matrix_wrap(context, a, 3, 4);
    struct tandem_tensor *flat = vector_wrap(context, sums, 4), *kept;

    count_up(a, 12);
    OK(tandem_reduce(context, TANDEM_OP_SUM, 1, ta, flat));
    OK(tensor_wait(flat));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(sums[i], (float)(3 * i + 15));
    tandem_tensor_destroy(flat);
    memset(sums, 0, sizeof sums);
    OK(tandem_tensor_wrap(context, sums, TANDEM_F32, 2, keep, NULL, 0, &kept));
    OK(tandem_reduce(context, TANDEM_OP_SUM, 1, ta, kept));
    OK(tensor_wait(kept));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(sums[i], (float)(3 * i + 15));
    BAD(tandem_reduce(context, TANDEM_OP_SUM, 4, ta, kept));
    BAD(tandem_reduce(context, TANDEM_OP_NEG, 1, ta, kept));
}

/* The scalar is the first input; test-prepared-cache has the second one. */
TEST(test_scalars_stand_for_inputs)
{
    const double two = 2;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_POW,
                                 .float_count = 1,
                                 .floats = &two};
    struct tandem_tensor *inputs[2] = {NULL, tx};

    OK(tandem_run(context, &op, inputs, 2, &ty, 1, TANDEM_RUN_ON(simulated)));
    OK(tensor_wait(ty));
    ck_assert_float_eq_tol(y[2], 8, 1e-4f);
}

TEST_MAIN(host_tests_run("explain", context_setup, NULL))
