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

TEST(test_operator_timing)
{
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};

    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_double_eq(last_explanation(context).measured_ns, 0);
    OK(tandem_context_set_timing(context, 1));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_double_gt(last_explanation(context).measured_ns, 0);
    OK(tandem_run_on(context, simulated, &op, &tx, 1, &ty, 1));
    ck_assert_double_gt(last_explanation(context).measured_ns, 0);
    ck_assert_uint_eq(last_explanation(context).chosen, simulated);
    OK(tandem_context_set_timing(context, 0));
    OK(tandem_run_on(context, simulated, &op, &tx, 1, &ty, 1));
    ck_assert_double_eq(last_explanation(context).measured_ns, 0);
    BAD(tandem_context_set_timing(context, 2));
    BAD(tandem_context_set_timing(NULL, 1));
}

TEST(test_operator_timing_waits_for_the_work)
{
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    const struct sim_counters before = counters_read(0);

    OK(tandem_context_set_timing(context, 1));
    OK(tandem_run_on(context, simulated, &op, &tx, 1, &ty, 1));
    ck_assert_uint_eq(counters_since(0, &before).executed, 1);
}

/* ---- observers ---- */

struct observed {
    uint32_t befores, afters;
    uint32_t op, chosen;
    double measured_before;
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
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ABS};

    OK(tandem_context_set_observer(context, observe, &seen));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_uint_eq(seen.befores, 1);
    ck_assert_uint_eq(seen.afters, 1);
    ck_assert(seen.last_after);
    ck_assert_uint_eq(seen.op, TANDEM_OP_NEG);
    ck_assert_uint_eq(seen.chosen, 0);
    OK(tandem_run_on(context, simulated, &op, &tx, 1, &ty, 1));
    ck_assert_uint_eq(seen.befores, 2);
    ck_assert_uint_eq(seen.op, TANDEM_OP_ABS);
    ck_assert_uint_eq(seen.chosen, simulated);
    OK(tandem_context_set_timing(context, 1));
    OK(tandem_run_on(context, simulated, &op, &tx, 1, &ty, 1));
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
    OK(tandem_tensor_sync(c, TANDEM_TIMEOUT_INFINITE));
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    free(values);
}

/* ---- GEMM and shorthand functions ---- */

#define M 5
#define K 7
#define W 6

static float activated(double value, uint32_t activation)
{
    return activation == TANDEM_OP_RELU && value < 0 ? 0.0f : (float)value;
}

/* Each combination of transposes, bias and activation, on both devices. */
LOOP_TEST(test_matmul, 16)
{
    const bool turn_a = _i & 1, turn_b = _i & 2, bias = _i & 4, on_sim = _i & 8;
    const int64_t shape_a[2] = {M, K}, shape_b[2] = {K, W};
    const int64_t strides_a[2] = {turn_a ? 1 : K, turn_a ? M : 1};
    const int64_t strides_b[2] = {turn_b ? 1 : W, turn_b ? K : 1};
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 2,
                                            .beta = 0.5,
                                            .activation = TANDEM_OP_RELU,
                                            .device = on_sim ? simulated : 0};
    float a[M * K], b[K * W], c[M * W], row[W], before[M * W];
    struct tandem_tensor *ta, *tb, *tc = matrix_wrap(context, c, M, W);

    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 5) - 2;
    for (int i = 0; i < K * W; i++)
        b[i] = (float)(i % 7) - 3;
    for (int i = 0; i < M * W; i++)
        before[i] = c[i] = (float)i;
    count_up(row, W);
    OK(tandem_tensor_wrap(context, a, TANDEM_F32, 2, shape_a, strides_a, 0,
                          &ta));
    OK(tandem_tensor_wrap(context, b, TANDEM_F32, 2, shape_b, strides_b, 0,
                          &tb));
    if (bias)
        options.bias = vector_wrap(context, row, W);
    OK(tandem_matmul(context, &options, ta, tb, tc));
    ck_assert_uint_eq(last_explanation(context).op, TANDEM_OP_GEMM);
    ck_assert_uint_eq(last_explanation(context).chosen, options.device);
    ck_assert_uint_eq(last_explanation(context).forced, 1);
    OK(tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < W; j++) {
            double sum = 0;

            for (int k = 0; k < K; k++)
                sum += (double)a[i * strides_a[0] + k * strides_a[1]] *
                       (double)b[k * strides_b[0] + j * strides_b[1]];
            sum = 2 * sum + 0.5 * (double)before[i * W + j] +
                  (bias ? (double)row[j] : 0);
            ck_assert_float_eq(c[i * W + j],
                               activated(sum, options.activation));
        }
    }
}

static float value_16(uint32_t dtype, uint16_t bits)
{
    return dtype == TANDEM_F16 ? f16_value(bits) : bf16_value(bits);
}

static uint16_t round_16(uint32_t dtype, float value)
{
    return dtype == TANDEM_F16 ? f16_round(value) : bf16_round(value);
}

/*
 * GEMMs of f16 and bf16 with a result of the same dtype or f32, on both
 * devices and on the selected one, with operands that are cast from f32.
 */
LOOP_TEST(test_matmul_of_16_bits, 16)
{
    const uint32_t dtype = _i & 1 ? TANDEM_F16 : TANDEM_BF16;
    const bool wide = _i & 2, on_sim = _i & 4;
    const int64_t shape[3][2] = {{M, K}, {K, W}, {M, W}};
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1001,
                                            .device = _i & 8 ? TANDEM_ANY_DEVICE
                                                      : on_sim ? simulated
                                                               : 0};
    float a[M * K], b[K * W], c[M * W], row[W];
    uint16_t narrow_c[M * W], narrow_row[W];
    struct tandem_tensor *wide_a = matrix_wrap(context, a, M, K);
    struct tandem_tensor *wide_b = matrix_wrap(context, b, K, W);
    struct tandem_tensor *ta, *tb, *tc;

    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 5) - 2;
    for (int i = 0; i < K * W; i++)
        b[i] = (float)(i % 7) - 3;
    for (int i = 0; i < W; i++) {
        row[i] = (float)(i * i);
        narrow_row[i] = round_16(dtype, row[i]);
    }
    OK(tandem_tensor_create(context, dtype, 2, shape[0], &ta));
    OK(tandem_tensor_create(context, dtype, 2, shape[1], &tb));
    OK(tandem_unary(context, TANDEM_OP_CAST, wide_a, ta));
    OK(tandem_unary(context, TANDEM_OP_CAST, wide_b, tb));
    OK(tandem_tensor_wrap(context, wide ? (void *)c : narrow_c,
                          wide ? TANDEM_F32 : dtype, 2, shape[2], NULL, 0,
                          &tc));
    OK(tandem_tensor_wrap(context, wide ? (void *)row : narrow_row,
                          wide ? TANDEM_F32 : dtype, 1, &shape[2][1], NULL, 0,
                          &options.bias));
    OK(tandem_matmul(context, &options, ta, tb, tc));
    OK(tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < W; j++) {
            float sum = 0;

            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * W + j];
            sum = 1001 * sum + row[j];
            if (wide)
                ck_assert_float_eq(c[i * W + j], sum);
            else
                ck_assert_float_eq(value_16(dtype, narrow_c[i * W + j]),
                                   value_16(dtype, round_16(dtype, sum)));
        }
}

LOOP_TEST(test_matmul_batches, 2)
{
    const int64_t shape_a[3] = {3, 2, 2}, shape_b[3] = {1, 2, 2};
    float a[12], b[4] = {1, 1, 0, 1}, c[12];
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1,
                                            .device = _i ? simulated : 0};
    struct tandem_tensor *ta, *tb, *tc;

    count_up(a, 12);
    OK(tandem_tensor_wrap(context, a, TANDEM_F32, 3, shape_a, NULL, 0, &ta));
    OK(tandem_tensor_wrap(context, b, TANDEM_F32, 3, shape_b, NULL, 0, &tb));
    OK(tandem_tensor_wrap(context, c, TANDEM_F32, 3, shape_a, NULL, 0, &tc));
    OK(tandem_matmul(context, &options, ta, tb, tc));
    OK(tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(c[i], i % 2 ? a[i - 1] + a[i] : a[i]);
}

TEST(test_reduce_reads_keepdims_off_the_rank)
{
    const int64_t keep[2] = {1, 4};
    float a[12], sums[4];
    struct tandem_tensor *ta = matrix_wrap(context, a, 3, 4);
    struct tandem_tensor *flat = vector_wrap(context, sums, 4), *kept;

    count_up(a, 12);
    OK(tandem_reduce(context, TANDEM_OP_SUM, 1, ta, flat));
    OK(tandem_tensor_sync(flat, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(sums[i], (float)(3 * i + 15));
    tandem_tensor_destroy(flat);
    memset(sums, 0, sizeof sums);
    OK(tandem_tensor_wrap(context, sums, TANDEM_F32, 2, keep, NULL, 0, &kept));
    OK(tandem_reduce(context, TANDEM_OP_SUM, 1, ta, kept));
    OK(tandem_tensor_sync(kept, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(sums[i], (float)(3 * i + 15));
    BAD(tandem_reduce(context, TANDEM_OP_SUM, 4, ta, kept));
    BAD(tandem_reduce(context, TANDEM_OP_NEG, 1, ta, kept));
}

LOOP_TEST(test_scalars_stand_for_inputs, 2)
{
    const double two = 2;
    struct tandem_op op = {.struct_size = sizeof op,
                           .id = TANDEM_OP_POW,
                           .float_count = 1,
                           .floats = &two};
    struct tandem_tensor *inputs[2] = {tx, NULL};

    OK(tandem_run_on(context, _i ? simulated : 0, &op, inputs, 2, &ty, 1));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq_tol(y[2], 9, 1e-4f);
    inputs[0] = NULL;
    inputs[1] = tx;
    OK(tandem_run_on(context, _i ? simulated : 0, &op, inputs, 2, &ty, 1));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq_tol(y[2], 8, 1e-4f);
}

TEST_MAIN(host_tests_run("explain", context_setup, NULL))
