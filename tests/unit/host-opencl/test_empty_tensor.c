/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrapped tensors without elements, on the CPU plugin and on a real OpenCL
 * driver, which imports the host's memory if possible: each operator class
 * accepts them, with a valid or a NULL pointer, with the same result.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "unit/host/support.h"

#define DEVICES 2
static const char *const names[DEVICES] = {"cpu", "opencl"};
static struct tandem_context *context;
static float memory[64], result[64];

static void context_setup(void)
{
    context = context_new(NULL);
    for (int i = 0; i < 64; i++)
        memory[i] = result[i] = 7;
}

static struct tandem_tensor *wrap(void *at, uint32_t dtype, uint32_t rank,
                                  int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    struct tandem_tensor *tensor;

    OK(tandem_tensor_wrap(context, at, dtype, rank, shape, NULL, 0, &tensor));
    return tensor;
}

/*
 * An operator over tensors of rank 2, with the rows of the input and the
 * output.
 */
static const struct row {
    uint32_t id;
    uint32_t inputs, in_dtype, out_dtype, out_rank;
    int64_t in_rows, in_columns, out_rows, out_columns;
    int64_t ints[2];
    double floats[2];
} rows[] = {
    {TANDEM_OP_RELU, 1, TANDEM_F32, TANDEM_F32, 1, 0, 1, 0, 1, {0}, {0}},
    {TANDEM_OP_NEG, 1, TANDEM_F32, TANDEM_F32, 2, 0, 3, 0, 3, {0}, {0}},
    {TANDEM_OP_ADD, 2, TANDEM_F32, TANDEM_F32, 2, 3, 0, 3, 0, {0}, {0}},
    {TANDEM_OP_GREATER, 2, TANDEM_F32, TANDEM_BOOL, 2, 3, 0, 3, 0, {0}, {0}},
    {TANDEM_OP_AND, 2, TANDEM_BOOL, TANDEM_BOOL, 2, 0, 3, 0, 3, {0}, {0}},
    {TANDEM_OP_CAST, 1, TANDEM_F32, TANDEM_I64, 2, 0, 3, 0, 3, {0}, {0}},
    {TANDEM_OP_COPY, 1, TANDEM_I32, TANDEM_I32, 2, 0, 3, 0, 3, {0}, {0}},
    {TANDEM_OP_TRANSPOSE,
     1,
     TANDEM_F32,
     TANDEM_F32,
     2,
     0,
     3,
     3,
     0,
     {1, 0},
     {0}},
    {TANDEM_OP_SOFTMAX, 1, TANDEM_F32, TANDEM_F32, 2, 0, 3, 0, 3, {1}, {0}},
    {TANDEM_OP_SOFTMAX, 1, TANDEM_F32, TANDEM_F32, 2, 3, 0, 3, 0, {1}, {0}},
    {TANDEM_OP_SUM, 1, TANDEM_F32, TANDEM_F32, 1, 0, 3, 3, 0, {1, 0}, {0}},
    {TANDEM_OP_SUM, 1, TANDEM_F32, TANDEM_F32, 1, 3, 0, 3, 0, {2, 0}, {0}},
    {TANDEM_OP_SUM, 1, TANDEM_F32, TANDEM_F32, 0, 0, 3, 0, 0, {3, 0}, {0}},
    {TANDEM_OP_SUM, 1, TANDEM_F32, TANDEM_F32, 1, 0, 3, 0, 0, {2, 0}, {0}},
};

static int64_t elements_of(uint32_t rank, int64_t rows_of, int64_t columns)
{
    return rank == 0 ? 1 : rank == 1 ? rows_of : rows_of * columns;
}

/*
 * Runs the operator on a device and returns its status; the output is in
 * result.
 */
static void row_run(const struct row *row, uint32_t device, bool null)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = row->id,
                                 .int_count = 2,
                                 .ints = row->ints,
                                 .float_count = 2,
                                 .floats = row->floats};
    int64_t written =
        elements_of(row->out_rank, row->out_rows, row->out_columns);
    struct tandem_tensor *in[2], *out;
    uint32_t in_rank = row->id == TANDEM_OP_RELU ? 1 : 2;

    for (uint32_t i = 0; i < row->inputs; i++)
        in[i] = wrap(null ? NULL : memory, row->in_dtype, in_rank, row->in_rows,
                     row->in_columns);
    out = wrap(null && written == 0 ? NULL : result, row->out_dtype,
               row->out_rank, row->out_rows, row->out_columns);
    result[0] = 7;
    OK(tandem_tensor_prefetch(in[0], device));
    OK(tandem_run_on(context, device, &op, in, row->inputs, &out, 1));
    OK(tandem_tensor_sync(out, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(result[0], written == 0 ? 7 : 0);
    tandem_tensor_destroy(out);
    for (uint32_t i = 0; i < row->inputs; i++)
        tandem_tensor_destroy(in[i]);
}

LOOP_TEST(test_operators_accept_empty_tensors, 2 * DEVICES * COUNT_OF(rows))
{
    const struct row *row = &rows[_i / (2 * DEVICES)];

    row_run(row, device_named(context, names[_i / 2 % DEVICES]), _i % 2 != 0);
}

/*
 * An operator whose operands, inputs first, have different shapes. Outputs
 * with elements become 0.
 */
struct operand {
    uint32_t dtype, rank;
    int64_t rows, columns;
};
#define F(...)                                                                 \
    {                                                                          \
        TANDEM_F32, __VA_ARGS__                                                \
    }
#define LABELS(count)                                                          \
    {                                                                          \
        TANDEM_I32, 1, count, 1                                                \
    }
static const struct several {
    uint32_t id, inputs, outputs;
    struct operand operands[7];
    uint32_t int_count, float_count;
    int64_t ints[2];
    double floats[5];
} several[] = {
    {TANDEM_OP_WHERE,
     3,
     1,
     {{TANDEM_BOOL, 2, 0, 3}, F(2, 0, 3), F(2, 0, 3), F(2, 0, 3)},
     0,
     0,
     {0},
     {0}},
    {TANDEM_OP_RELU_GRAD,
     2,
     1,
     {F(2, 3, 0), F(2, 3, 0), F(2, 3, 0)},
     0,
     0,
     {0},
     {0}},
    {TANDEM_OP_LAYER_NORM,
     3,
     1,
     {F(2, 0, 3), F(1, 3, 1), F(1, 3, 1), F(2, 0, 3)},
     1,
     1,
     {1},
     {1e-5}},
    {TANDEM_OP_LAYER_NORM,
     3,
     1,
     {F(2, 3, 0), F(1, 0, 1), F(1, 0, 1), F(2, 3, 0)},
     1,
     1,
     {1},
     {1e-5}},
    {TANDEM_OP_RMS_NORM,
     2,
     1,
     {F(2, 0, 3), F(1, 3, 1), F(2, 0, 3)},
     1,
     1,
     {1},
     {1e-5}},
    {TANDEM_OP_RMS_NORM,
     2,
     1,
     {F(2, 3, 0), F(1, 0, 1), F(2, 3, 0)},
     1,
     1,
     {1},
     {1e-5}},
    {TANDEM_OP_GATHER,
     2,
     1,
     {F(2, 5, 2), LABELS(0), F(2, 0, 2)},
     1,
     0,
     {0},
     {0}},
    {TANDEM_OP_GATHER,
     2,
     1,
     {F(2, 5, 0), LABELS(3), F(2, 3, 0)},
     1,
     0,
     {0},
     {0}},
    {TANDEM_OP_ARGMAX,
     1,
     1,
     {F(2, 0, 3), {TANDEM_I64, 1, 0, 1}},
     2,
     0,
     {2, 0},
     {0}},
    {TANDEM_OP_DOT, 2, 1, {F(1, 0, 1), F(1, 0, 1), F(0, 1, 1)}, 0, 0, {0}, {0}},
    {TANDEM_OP_CROSS_ENTROPY,
     2,
     1,
     {F(2, 0, 5), LABELS(0), F(1, 0, 1)},
     0,
     0,
     {0},
     {0}},
    {TANDEM_OP_CROSS_ENTROPY_GRAD,
     2,
     1,
     {F(2, 0, 5), LABELS(0), F(2, 0, 5)},
     0,
     1,
     {0},
     {1}},
    {TANDEM_OP_SGD,
     3,
     2,
     {F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1)},
     1,
     4,
     {0},
     {0.1, 0.9, 0, 0}},
    {TANDEM_OP_ADAM,
     4,
     3,
     {F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1),
      F(1, 0, 1)},
     2,
     5,
     {1, 0},
     {0.1, 0.9, 0.999, 1e-8, 0}},
};

static void several_run(const struct several *one, uint32_t device, bool null)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = one->id,
                                 .int_count = one->int_count,
                                 .ints = one->ints,
                                 .float_count = one->float_count,
                                 .floats = one->floats};
    struct tandem_tensor *tensors[7];
    uint32_t count = one->inputs + one->outputs;
    int32_t labels[8] = {0};
    float written = 7;

    for (uint32_t i = 0; i < count; i++) {
        const struct operand *of = &one->operands[i];
        int64_t elements = elements_of(of->rank, of->rows, of->columns);
        void *at = of->dtype == TANDEM_I32 ? (void *)labels
                   : i >= one->inputs      ? (void *)result
                                           : (void *)memory;

        tensors[i] = wrap(null && elements == 0 ? NULL : at, of->dtype,
                          of->rank, of->rows, of->columns);
        if (i >= one->inputs && elements > 0)
            written = 0;
        if (i < one->inputs)
            OK(tandem_tensor_prefetch(tensors[i], device));
    }
    OK(tandem_run_on(context, device, &op, tensors, one->inputs,
                     tensors + one->inputs, one->outputs));
    for (uint32_t i = one->inputs; i < count; i++)
        OK(tandem_tensor_sync(tensors[i], TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(result[0], written);
    for (uint32_t i = 0; i < count; i++)
        tandem_tensor_destroy(tensors[i]);
}

LOOP_TEST(test_operators_of_several_operands_accept_them,
          2 * DEVICES * COUNT_OF(several))
{
    const struct several *one = &several[_i / (2 * DEVICES)];

    several_run(one, device_named(context, names[_i / 2 % DEVICES]),
                _i % 2 != 0);
}

LOOP_TEST(test_gemm_accepts_empty_matrices, 2 * DEVICES * 4)
{
    static const int64_t sizes[][3] = {
        {2, 3, 0}, {0, 3, 4}, {2, 0, 4}, {0, 0, 0}};
    const int64_t *size = sizes[_i / (2 * DEVICES)];
    bool null = _i % 2 != 0;
    struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1,
        .device = device_named(context, names[_i / 2 % DEVICES])};
    int64_t m = size[0], n = size[1], k = size[2];
    struct tandem_tensor *a =
        wrap(null && m * k == 0 ? NULL : memory, TANDEM_F32, 2, m, k);
    struct tandem_tensor *b =
        wrap(null && k * n == 0 ? NULL : memory + 16, TANDEM_F32, 2, k, n);
    struct tandem_tensor *c =
        wrap(null && m * n == 0 ? NULL : result, TANDEM_F32, 2, m, n);

    OK(tandem_tensor_prefetch(a, options.device));
    OK(tandem_matmul(context, &options, a, b, c));
    OK(tandem_tensor_sync(c, TANDEM_TIMEOUT_INFINITE));
    for (int64_t i = 0; i < 64; i++)
        ck_assert_float_eq(result[i], i < m * n ? 0 : 7);
}

int main(void)
{
    TCase *tests = opencl_case_new("empty");

    tcase_add_checked_fixture(tests, context_setup, NULL);
    tests_add(tests);
    return runner_run_case("empty", tests);
}
