/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated calls, which libtandem finds in its cache of prepared operators:
 * each difference between calls must be noticed, an invalid call must fail
 * after a valid one, and the cache has a limit.
 */
#include <config.h>

#include "support.h"

#include <stdlib.h>

#define N 6
#define ELEMENTS (N * N)

static struct tandem_context *context;
static uint32_t simulated, cpu;

static void context_setup(void)
{
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    cpu = device_named(context, "cpu");
}

/* ---- GEMM ---- */

/* Views of a matrix: as stored, transposed, and half of a larger one. */
#define VIEWS 3
static const int64_t view_strides[VIEWS][2] = {{N, 1}, {1, N}, {2 * N, 1}};
static const int64_t view_first[VIEWS] = {0, 0, N};
static float data_a[2 * ELEMENTS], data_b[2 * ELEMENTS];
static float data_bias[2 * N];
static struct tandem_tensor *as[VIEWS], *bs[VIEWS];
/* None, by column, by row, another one by column. */
static struct tandem_tensor *biases[4];

static void squares_make(struct tandem_tensor **out, float *data, int salt)
{
    static const int64_t shape[] = {N, N};
    struct tandem_tensor *all = matrix_wrap(context, data, 2 * N, N);

    for (int i = 0; i < 2 * ELEMENTS; i++)
        data[i] = (float)((i * 7 + salt) % 11 - 5);
    for (int i = 0; i < VIEWS; i++)
        OK(tandem_tensor_view(all, view_first[i], 2, shape, view_strides[i],
                              &out[i]));
}

static float view_element(const float *data, int view, int row, int column)
{
    return data[view_first[view] + row * view_strides[view][0] +
                column * view_strides[view][1]];
}

/* Wraps the operands of the GEMMs. */
static void gemm_operands_make(void)
{
    static const int64_t shapes[][2] = {{N}, {N, 1}, {N}};
    static const int64_t steps[] = {1, 1};
    struct tandem_tensor *all;

    squares_make(as, data_a, 3);
    squares_make(bs, data_b, 5);
    for (int i = 0; i < 2 * N; i++)
        data_bias[i] = (float)(i * 5 % 7 - 3);
    all = vector_wrap(context, data_bias, 2 * N);
    for (int i = 1; i < 4; i++)
        OK(tandem_tensor_view(all, i == 3 ? N : 0, i == 2 ? 2 : 1,
                              shapes[i - 1], steps, &biases[i]));
}

struct gemm_case {
    double alpha, beta;
    int a, b, bias;
    uint32_t activation, flags;
};

static const struct gemm_case gemm_cases[] = {
    {1, 0, 0, 0, 0, 0, 0},
    {1, 1, 0, 0, 0, 0, 0},
    {1, 2, 0, 0, 0, 0, 0},
    {2, 0, 0, 0, 0, 0, 0},
    {1, 0, 1, 0, 0, 0, 0},
    {1, 0, 2, 0, 0, 0, 0},
    {1, 0, 0, 1, 0, 0, 0},
    {1, 0, 0, 2, 0, 0, 0},
    {1, 0, 0, 0, 1, 0, 0},
    {1, 1, 0, 0, 1, 0, 0},
    {1, 0, 0, 0, 2, 0, 0},
    {1, 0, 0, 0, 3, 0, 0},
    {1, 0, 0, 0, 0, TANDEM_OP_RELU, 0},
    {1, 1, 0, 0, 0, TANDEM_OP_RELU, 0},
    {1, 0, 0, 0, 0, 0, TANDEM_GEMM_ALLOW_TF32},
};
#define GEMM_CASES (int)(sizeof gemm_cases / sizeof *gemm_cases)

static float expected_value(const struct gemm_case *p, const float *c, int row,
                            int column)
{
    double sum = 0;

    for (int k = 0; k < N; k++)
        sum += (double)view_element(data_a, p->a, row, k) *
               (double)view_element(data_b, p->b, k, column);
    sum *= p->alpha;
    if (p->beta != 0)
        sum += p->beta * (double)c[row * N + column];
    if (p->bias != 0)
        sum += (double)data_bias[p->bias == 3   ? N + column
                                 : p->bias == 1 ? column
                                                : row];
    return sum < 0 && p->activation != 0 ? 0.0f : (float)sum;
}

/* The host writes c before. If beta is 0, its content must not matter. */
static void gemm_run(uint32_t device, const struct gemm_case *p,
                     struct tandem_tensor *c, int turn)
{
    const struct tandem_matmul_options options = {.struct_size = sizeof options,
                                                  .alpha = p->alpha,
                                                  .beta = p->beta,
                                                  .bias = biases[p->bias],
                                                  .activation = p->activation,
                                                  .flags = p->flags,
                                                  .device = device};
    float before[ELEMENTS], got[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        before[i] = (float)((i * 3 + turn) % 13 - 6);
    OK(tandem_tensor_write(c, before, sizeof before));
    OK(tandem_matmul(context, &options, as[p->a], bs[p->b], c));
    OK(tandem_tensor_read(c, got, sizeof got, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < ELEMENTS; i++) {
        const float want = expected_value(p, before, i / N, i % N);

        if (got[i] != want)
            ck_abort_msg("device %u, product %d, element %d: %g, not %g",
                         device, (int)(p - gemm_cases), i, (double)got[i],
                         (double)want);
    }
}

/* Runs each pair of GEMMs in sequence. */
TEST(test_one_gemm_after_another)
{
    const uint32_t devices[] = {simulated, cpu, TANDEM_ANY_DEVICE};
    struct tandem_tensor *c = matrix_new(context, N, N);

    gemm_operands_make();
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < GEMM_CASES; i++)
            for (int j = 0; j < GEMM_CASES; j++) {
                gemm_run(devices[d], &gemm_cases[i], c, j);
                gemm_run(devices[d], &gemm_cases[j], c, i + 5);
            }
}

static enum tandem_status gemm_status(struct tandem_tensor *c, double beta,
                                      uint32_t activation, uint32_t flags)
{
    const struct tandem_matmul_options options = {.struct_size = sizeof options,
                                                  .alpha = 1,
                                                  .beta = beta,
                                                  .activation = activation,
                                                  .flags = flags,
                                                  .device = simulated};

    return tandem_matmul(context, &options, as[0], bs[0], c);
}

TEST(test_an_invalid_gemm_after_a_valid_one)
{
    struct tandem_tensor *c = matrix_new(context, N, N);

    gemm_operands_make();
    for (int i = 0; i < 3; i++) {
        OK(gemm_status(c, 0, 0, 0));
        FAILS(TANDEM_UNSUPPORTED, gemm_status(c, 0, TANDEM_OP_ADD, 0));
        FAILS(TANDEM_UNSUPPORTED, gemm_status(c, 0, 0, 1u << 31));
        OK(gemm_status(c, 1, 0, 0));
        FAILS(TANDEM_UNSUPPORTED, gemm_status(c, 1, TANDEM_OP_ADD, 0));
    }
}

/* ---- operators ---- */

static enum tandem_status axis_run(uint32_t id, int64_t axis, int64_t flag,
                                   struct tandem_tensor *x,
                                   struct tandem_tensor *y)
{
    const int64_t ints[] = {axis, flag};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = id,
                                 .int_count = id == TANDEM_OP_SUM ? 2 : 1,
                                 .ints = ints};

    return tandem_run(context, &op, &x, 1, &y, 1, TANDEM_RUN_ON(simulated));
}

TEST(test_another_axis_on_the_same_tensors)
{
    float x[ELEMENTS], y[N];
    struct tandem_tensor *tx = matrix_wrap(context, x, N, N);
    struct tandem_tensor *ty = vector_wrap(context, y, N);

    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i * i % 17);
    for (int turn = 0; turn < 6; turn++) {
        const int64_t axes = 1 + turn % 2;

        OK(axis_run(TANDEM_OP_SUM, axes, 0, tx, ty));
        OK(tensor_wait(ty));
        for (int i = 0; i < N; i++) {
            float want = 0;

            for (int j = 0; j < N; j++)
                want += axes == 1 ? x[j * N + i] : x[i * N + j];
            ck_assert_float_eq(y[i], want);
        }
        BAD(axis_run(TANDEM_OP_SUM, 3, 0, tx, ty));
        BAD(axis_run(TANDEM_OP_SUM, axes, 1, tx, ty));
    }
}

static enum tandem_status adam_run(int64_t step, struct tandem_tensor **tensors)
{
    const int64_t ints[] = {step, 0};
    const double floats[] = {0.1, 0.9, 0.99, 1e-8, 0};
    struct tandem_tensor *outputs[] = {tensors[0], tensors[2], tensors[3]};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ADAM,
                                 .int_count = 2,
                                 .ints = ints,
                                 .float_count = 5,
                                 .floats = floats};

    return tandem_run(context, &op, tensors, 4, outputs, 3,
                      TANDEM_RUN_ON(simulated));
}

TEST(test_steps_count_from_one)
{
    float ones[N];
    struct tandem_tensor *tensors[4];

    for (int i = 0; i < N; i++)
        ones[i] = 1;
    for (int i = 0; i < 4; i++) {
        tensors[i] = vector_new(context, N);
        OK(tandem_tensor_write(tensors[i], ones, sizeof ones));
    }
    for (int64_t step = 1; step < 4; step++) {
        OK(adam_run(step, tensors));
        BAD(adam_run(0, tensors));
        BAD(adam_run(-1, tensors));
    }
}

/* Computes y = -x with data that no other call uses. */
static void negate(struct tandem_tensor *x, struct tandem_tensor *y, int turn)
{
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = (float)(turn * N + i + 1);
    OK(tandem_tensor_write(x, data, sizeof data));
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    OK(tandem_tensor_read(y, data, sizeof data, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(data[i], -(float)(turn * N + i + 1));
}

TEST(test_other_tensors_share_an_operator)
{
    enum { TENSORS = 40 };
    struct tandem_tensor *one = vector_new(context, N), *others[TENSORS];
    struct sim_counters before;

    for (int i = 0; i < TENSORS; i++)
        others[i] = vector_new(context, N);
    negate(one, others[0], 0);
    before = counters_read(0);
    for (int turn = 0; turn < TENSORS; turn++)
        negate(others[turn], one, turn);
    for (int turn = 0; turn < TENSORS; turn++)
        negate(one, others[turn], turn + TENSORS);
    ck_assert_uint_eq(counters_since(0, &before).prepares, 0);
}

/* Computes y = x + value for x = 1, 2, ... */
static void scalar_add(struct tandem_tensor *x, struct tandem_tensor *y,
                       double value)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ADD,
                                 .float_count = 1,
                                 .floats = &value};
    struct tandem_tensor *inputs[] = {x, NULL};
    float data[N];

    count_up(data, N);
    OK(tandem_tensor_write(x, data, sizeof data));
    OK(tandem_run(context, &op, inputs, 2, &y, 1, TANDEM_RUN_ON(simulated)));
    OK(tandem_tensor_read(y, data, sizeof data, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(data[i], (float)(i + 1) + (float)value);
}

TEST(test_other_scalars_share_an_operator)
{
    struct tandem_tensor *x = vector_new(context, N),
                         *y = vector_new(context, N);
    struct sim_counters before;

    scalar_add(x, y, 1);
    before = counters_read(0);
    scalar_add(x, y, 2.5);
    scalar_add(x, y, 0);
    scalar_add(x, y, -1e6);
    ck_assert_uint_eq(counters_since(0, &before).prepares, 0);
    scalar_add(x, x, 3); /* in place: another operator */
    ck_assert_uint_eq(counters_since(0, &before).prepares, 1);
}

/* Computes relu of a vector of this length. */
static void length_run(int64_t length)
{
    static float data[1200];
    struct tandem_tensor *x = vector_new(context, length);

    data[length - 1] = 7;
    OK(tandem_tensor_write(x, data, (size_t)length * sizeof *data));
    data[length - 1] = 0;
    unary_on(context, simulated, TANDEM_OP_RELU, x, x);
    OK(tandem_tensor_read(x, data, (size_t)length * sizeof *data,
                          TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(data[length - 1], 7);
    tandem_tensor_destroy(x);
}

/* The operators that were not used for the longest time are released. */
TEST(test_the_cache_has_a_limit)
{
    enum { LENGTHS = 1200 }; /* more than MAX_PREPARED_ENTRIES */
    struct sim_counters before = counters_read(0);

    for (int64_t length = 1; length <= LENGTHS; length++) {
        length_run(length);
        length_run(1); /* in use all the time */
    }
    ck_assert_uint_eq(counters_since(0, &before).prepares, LENGTHS);
    length_run(LENGTHS);
    ck_assert_uint_eq(counters_since(0, &before).prepares, LENGTHS);
    length_run(2);
    ck_assert_uint_eq(counters_since(0, &before).prepares, LENGTHS + 1);
}

TEST_MAIN(host_tests_run("prepared cache", context_setup, NULL))
