/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls repeated on the same tensors, of which libtandem remembers that they
 * were judged good: whatever differs from one to the next is seen, and what is
 * bad is refused after what was good.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "support.h"

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

static void context_teardown(void)
{
    tandem_context_destroy(context);
}

/* ---- products ---- */

/* A square tensor, and how it lies in its numbers. */
struct square {
    struct tandem_tensor *tensor;
    const float *numbers;
    int64_t row, column;
};

/* As it is, turned, and half of larger ones. */
#define VIEWS 3
static float numbers_a[2 * ELEMENTS], numbers_b[2 * ELEMENTS];
static float numbers_bias[2 * N];
static struct square as[VIEWS], bs[VIEWS];
static struct tandem_tensor *biases[4]; /* none, by column, by row, another */

static void squares_make(struct square *out, float *numbers, int salt)
{
    static const int64_t whole[] = {2 * N, N}, shape[] = {N, N};
    static const int64_t strides[VIEWS][2] = {{N, 1}, {1, N}, {2 * N, 1}};
    static const int64_t first[VIEWS] = {0, 0, N};
    struct tandem_tensor *all;

    for (int i = 0; i < 2 * ELEMENTS; i++)
        numbers[i] = (float)((i * 7 + salt) % 11 - 5);
    OK(tandem_tensor_wrap(context, numbers, TANDEM_F32, 2, whole, NULL, 0,
                          &all));
    for (int i = 0; i < VIEWS; i++) {
        OK(tandem_tensor_view(all, first[i], 2, shape, strides[i],
                              &out[i].tensor));
        out[i].numbers = numbers + first[i];
        out[i].row = strides[i][0];
        out[i].column = strides[i][1];
    }
}

static void products_setup(void)
{
    static const int64_t shapes[][2] = {{N}, {N, 1}, {N}};
    static const int64_t steps[] = {1, 1};
    struct tandem_tensor *all;

    context_setup();
    squares_make(as, numbers_a, 3);
    squares_make(bs, numbers_b, 5);
    for (int i = 0; i < 2 * N; i++)
        numbers_bias[i] = (float)(i * 5 % 7 - 3);
    all = vector_wrap(context, numbers_bias, 2 * N);
    for (int i = 1; i < 4; i++)
        OK(tandem_tensor_view(all, i == 3 ? N : 0, i == 2 ? 2 : 1,
                              shapes[i - 1], steps, &biases[i]));
}

struct product {
    double alpha, beta;
    int a, b, bias;
    uint32_t activation, flags;
};

static const struct product products[] = {
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
#define PRODUCTS (int)(sizeof products / sizeof *products)

static float wanted(const struct product *p, const float *c, int row,
                    int column)
{
    const struct square *a = &as[p->a], *b = &bs[p->b];
    double sum = 0;

    for (int k = 0; k < N; k++)
        sum += (double)a->numbers[row * a->row + k * a->column] *
               (double)b->numbers[k * b->row + column * b->column];
    sum *= p->alpha;
    if (p->beta != 0)
        sum += p->beta * (double)c[row * N + column];
    if (p->bias != 0)
        sum += (double)numbers_bias[p->bias == 3   ? N + column
                                    : p->bias == 1 ? column
                                                   : row];
    return sum < 0 && p->activation != 0 ? 0.0f : (float)sum;
}

/* The host has written c: where it is not read, its numbers must not matter,
 * and where it is, they are these. */
static void product_run(uint32_t device, const struct product *p,
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
    OK(tandem_matmul(context, &options, as[p->a].tensor, bs[p->b].tensor, c));
    OK(tandem_tensor_read(c, got, sizeof got, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < ELEMENTS; i++) {
        const float want = wanted(p, before, i / N, i % N);

        if (got[i] != want)
            ck_abort_msg("device %u, product %d, element %d: %g, not %g",
                         device, (int)(p - products), i, (double)got[i],
                         (double)want);
    }
}

/* Each after each. */
START_TEST(test_a_product_after_another)
{
    const uint32_t devices[] = {simulated, cpu, TANDEM_ANY_DEVICE};
    struct tandem_tensor *c = matrix_new(context, N, N);

    for (int d = 0; d < 3; d++)
        for (int i = 0; i < PRODUCTS; i++)
            for (int j = 0; j < PRODUCTS; j++) {
                product_run(devices[d], &products[i], c, j);
                product_run(devices[d], &products[j], c, i + 5);
            }
}
END_TEST

static enum tandem_status product_bad(struct tandem_tensor *c, double beta,
                                      uint32_t activation, uint32_t flags)
{
    const struct tandem_matmul_options options = {.struct_size = sizeof options,
                                                  .alpha = 1,
                                                  .beta = beta,
                                                  .activation = activation,
                                                  .flags = flags,
                                                  .device = simulated};

    return tandem_matmul(context, &options, as[0].tensor, bs[0].tensor, c);
}

START_TEST(test_a_bad_product_after_a_good_one)
{
    struct tandem_tensor *c = matrix_new(context, N, N);

    for (int i = 0; i < 3; i++) {
        OK(product_bad(c, 0, 0, 0));
        FAILS(TANDEM_UNSUPPORTED, product_bad(c, 0, TANDEM_OP_ADD, 0));
        FAILS(TANDEM_INVALID_ARGUMENT, product_bad(c, 0, 0, 1u << 31));
        OK(product_bad(c, 1, 0, 0));
        FAILS(TANDEM_UNSUPPORTED, product_bad(c, 1, TANDEM_OP_ADD, 0));
    }
}
END_TEST

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

    return tandem_run_on(context, simulated, &op, &x, 1, &y, 1);
}

START_TEST(test_another_axis_on_the_same_tensors)
{
    float x[ELEMENTS], y[N];
    struct tandem_tensor *tx = matrix_wrap(context, x, N, N);
    struct tandem_tensor *ty = vector_wrap(context, y, N);

    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i * i % 17);
    for (int turn = 0; turn < 6; turn++) {
        const int64_t axes = 1 + turn % 2;

        OK(axis_run(TANDEM_OP_SUM, axes, 0, tx, ty));
        OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
        for (int i = 0; i < N; i++) {
            float want = 0;

            for (int j = 0; j < N; j++)
                want += axes == 1 ? x[j * N + i] : x[i * N + j];
            ck_assert_float_eq(y[i], want);
        }
        FAILS(TANDEM_INVALID_ARGUMENT, axis_run(TANDEM_OP_SUM, 3, 0, tx, ty));
        FAILS(TANDEM_INVALID_ARGUMENT,
              axis_run(TANDEM_OP_SUM, axes, 1, tx, ty));
    }
}
END_TEST

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

    return tandem_run_on(context, simulated, &op, tensors, 4, outputs, 3);
}

START_TEST(test_steps_count_from_one)
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
        FAILS(TANDEM_INVALID_ARGUMENT, adam_run(0, tensors));
        FAILS(TANDEM_INVALID_ARGUMENT, adam_run(-1, tensors));
    }
}
END_TEST

/* y = -x, of numbers that no other call has. */
static void negate(struct tandem_tensor *x, struct tandem_tensor *y, int turn)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    float numbers[N];

    for (int i = 0; i < N; i++)
        numbers[i] = (float)(turn * N + i + 1);
    OK(tandem_tensor_write(x, numbers, sizeof numbers));
    OK(tandem_run_on(context, simulated, &op, &x, 1, &y, 1));
    OK(tandem_tensor_read(y, numbers, sizeof numbers, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(numbers[i], -(float)(turn * N + i + 1));
}

/* More calls than are remembered, so that places are shared: by those with one
 * output, or with one input. */
START_TEST(test_other_tensors_are_other_calls)
{
    enum { TENSORS = 400 };
    struct tandem_tensor *one = vector_new(context, N), *others[TENSORS];

    for (int i = 0; i < TENSORS; i++)
        others[i] = vector_new(context, N);
    for (int turn = 0; turn < TENSORS; turn++)
        negate(others[turn], one, turn);
    for (int turn = 0; turn < TENSORS; turn++)
        negate(one, others[turn], turn + TENSORS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judged");
    TCase *tests = case_new(suite, "products");

    tcase_add_checked_fixture(tests, products_setup, context_teardown);
    tcase_add_test(tests, test_a_product_after_another);
    tcase_add_test(tests, test_a_bad_product_after_a_good_one);
    tests = case_new(suite, "operators");
    tcase_add_checked_fixture(tests, context_setup, context_teardown);
    tcase_add_test(tests, test_another_axis_on_the_same_tensors);
    tcase_add_test(tests, test_steps_count_from_one);
    tcase_add_test(tests, test_other_tensors_are_other_calls);
    return suite_run(suite);
}
