/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem_matmul with arbitrary strides of its inputs, with empty batches, and
 * with strides that do not matter, on the CPU plugin and on a real OpenCL
 * driver, compared with sums in float64.
 */
#include <config.h>

#include <math.h>
#include <string.h>

#include "unit/host/support.h"

#define DEVICES 2
static const char *const names[DEVICES] = {"cpu", "opencl"};

#define ELEMENTS 4096 /* The number of elements of each operand's memory. */
#define STRIDE_MIN INT64_MIN
#define STRIDE_MAX INT64_MAX

static struct tandem_context *context;
static float memory[4][ELEMENTS]; /* a, b, bias, c. */

static void context_setup(void)
{
    context = context_new(NULL);
}

/* Returns a number from -1 to 1 from a linear congruential generator. */
static float random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / 0x1p23 - 1);
}

/*
 * Layout of a tensor whose element (0, ..., 0) is in the middle of its memory.
 */
struct operand_layout {
    uint32_t rank; /* 0 stands for a missing tensor. */
    int64_t shape[3], strides[3];
};
enum { A, B, BIAS, C, OPERANDS };
struct gemm_case {
    struct operand_layout layouts[OPERANDS];
    double beta;
};

static float *origin(int operand)
{
    return &memory[operand][ELEMENTS / 2];
}

static struct tandem_tensor *operand_wrap(const struct gemm_case *gemm_case,
                                          int operand)
{
    const struct operand_layout *operand_layout = &gemm_case->layouts[operand];
    struct tandem_tensor *tensor = NULL;

    if (operand_layout->rank > 0)
        OK(tandem_tensor_wrap(context, origin(operand), TANDEM_F32,
                              operand_layout->rank, operand_layout->shape,
                              operand_layout->strides, 0, &tensor));
    return tensor;
}

/* Returns the size of an axis, counted from the last, or 1 if the operand has
 * fewer axes. */
static int64_t axis_size(const struct operand_layout *operand_layout,
                         uint32_t from_last)
{
    return operand_layout->rank > from_last
               ? operand_layout->shape[operand_layout->rank - 1 - from_last]
               : 1;
}

/* Returns the index of an element in memory; an axis of size 1 is broadcast. */
static int64_t element_index(const struct operand_layout *operand_layout,
                             int64_t batch, int64_t row, int64_t column)
{
    const int64_t index[3] = {column, row, batch};
    int64_t at = 0;

    for (uint32_t i = 0; i < operand_layout->rank; i++)
        if (axis_size(operand_layout, i) > 1)
            at += index[i] *
                  operand_layout->strides[operand_layout->rank - 1 - i];
    return at;
}

static double bias_of(const struct operand_layout *bias, int64_t row,
                      int64_t column)
{
    if (bias->rank == 0)
        return 0;
    return bias->rank == 1 ? origin(BIAS)[element_index(bias, 0, 0, column)]
                           : origin(BIAS)[element_index(bias, 0, row, 0)];
}

/* before: the memory of c before the call. */
static void element_check(const struct gemm_case *gemm_case,
                          const float *before, int64_t batch, int64_t row,
                          int64_t column)
{
    const struct operand_layout *layouts = gemm_case->layouts;
    const int64_t k = axis_size(&layouts[A], 0);
    const int64_t at = element_index(&layouts[C], batch, row, column);
    const double bias = bias_of(&layouts[BIAS], row, column);
    double sum = gemm_case->beta * before[ELEMENTS / 2 + at] + bias;
    double magnitudes =
        fabs(gemm_case->beta * before[ELEMENTS / 2 + at]) + fabs(bias);

    for (int64_t i = 0; i < k; i++) {
        const double term =
            (double)origin(A)[element_index(&layouts[A], batch, row, i)] *
            origin(B)[element_index(&layouts[B], batch, i, column)];

        sum += term;
        magnitudes += fabs(term);
    }
    ck_assert_msg(fabs(origin(C)[at] - sum) <=
                      (8 + 2 * sqrt((double)k)) * 0x1p-23 * magnitudes,
                  "c[%lld][%lld][%lld] is %.9g, not %.9g", (long long)batch,
                  (long long)row, (long long)column, origin(C)[at], sum);
}

/* Fills the memory of all operands, explains the GEMM and runs it. */
static void gemm_run(const struct gemm_case *gemm_case, const char *device,
                     float *before)
{
    struct tandem_explanation explanation = {.struct_size = sizeof explanation};
    struct tandem_tensor *tensors[OPERANDS];
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1,
                                            .beta = gemm_case->beta,
                                            .device =
                                                device_named(context, device)};
    uint64_t state = 1;

    for (int i = 0; i < OPERANDS; i++)
        for (int j = 0; j < ELEMENTS; j++)
            memory[i][j] = random_next(&state);
    memcpy(before, memory[C], sizeof memory[C]);
    for (int i = 0; i < OPERANDS; i++)
        tensors[i] = operand_wrap(gemm_case, i);
    options.bias = tensors[BIAS];
    OK(tandem_explain_matmul(context, &options, tensors[A], tensors[B],
                             tensors[C], &explanation));
    ck_assert_uint_eq(explanation.op, TANDEM_OP_GEMM);
    OK(tandem_matmul(context, &options, tensors[A], tensors[B], tensors[C]));
    OK(tandem_tensor_sync(tensors[C], TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < OPERANDS; i++)
        tandem_tensor_destroy(tensors[i]);
}

static void gemm_check(const struct gemm_case *gemm_case, const char *device)
{
    static float before[ELEMENTS];
    const struct operand_layout *c = &gemm_case->layouts[C];
    int64_t written = 0;

    gemm_run(gemm_case, device, before);
    for (int64_t batch = 0; batch < axis_size(c, 2); batch++)
        for (int64_t row = 0; row < axis_size(c, 1); row++)
            for (int64_t column = 0; column < axis_size(c, 0); column++) {
                element_check(gemm_case, before, batch, row, column);
                before[ELEMENTS / 2 + element_index(c, batch, row, column)] =
                    origin(C)[element_index(c, batch, row, column)];
                written++;
            }
    ck_assert_msg(memcmp(before, memory[C], sizeof before) == 0,
                  "%lld elements were written, and others too",
                  (long long)written);
}

#define LAYOUT2(rows, columns, ...)                                            \
    {                                                                          \
        2, {rows, columns},                                                    \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define LAYOUT3(batch, rows, columns, ...)                                     \
    {                                                                          \
        3, {batch, rows, columns},                                             \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define NO_BIAS                                                                \
    {                                                                          \
        0, {0},                                                                \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }
#define BIAS1(n, stride)                                                       \
    {                                                                          \
        1, {n},                                                                \
        {                                                                      \
            stride                                                             \
        }                                                                      \
    }
#define B67 LAYOUT2(7, 6, 6, 1)
#define C56 LAYOUT2(5, 6, 6, 1)

/* Strides that no leading dimension expresses, with and without batches. */
static const struct gemm_case strided[] = {
    {{LAYOUT2(5, 7, 0, 1), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 1, 1), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, -4, 1), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 6, 1), B67, NO_BIAS, C56}, 1},
    {{LAYOUT2(5, 7, 1, 0), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 1, -9), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 7, -1), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, -7, -1), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 2, 11), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 0, 0), B67, NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 7, 1), LAYOUT2(7, 6, 0, 1), NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 7, 1), LAYOUT2(7, 6, 1, 1), NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 7, 7, 1), LAYOUT2(7, 6, -6, 1), BIAS1(6, -1), C56}, 0.5},
    {{LAYOUT2(5, 7, 2, 14), LAYOUT2(7, 6, -12, 2), BIAS1(6, 3), C56}, 0},
    {{LAYOUT2(5, 7, 7, 1), B67, BIAS1(6, 0), C56}, 0},
    {{LAYOUT2(5, 7, 7, 1), B67, LAYOUT2(5, 1, 2, STRIDE_MAX), C56}, 0},
    {{LAYOUT2(5, 7, 7, 1), B67, LAYOUT2(5, 1, -1, 1), C56}, 0},
    {{LAYOUT3(3, 5, 7, -35, 7, 1), LAYOUT3(3, 7, 6, 42, 6, 1), NO_BIAS,
      LAYOUT3(3, 5, 6, 30, 6, 1)},
     0},
    {{LAYOUT3(3, 5, 7, 35, -7, 1), LAYOUT3(3, 7, 6, -1, 3, 25), NO_BIAS,
      LAYOUT3(3, 5, 6, 40, 7, 1)},
     1},
    {{LAYOUT3(3, 5, 7, 0, 0, 1), LAYOUT3(1, 7, 6, STRIDE_MAX, -6, -1), NO_BIAS,
      LAYOUT3(3, 5, 6, 30, 6, 1)},
     0},
    {{LAYOUT2(5, 7, 3, 2), LAYOUT3(3, 7, 6, 2, 0, 1), NO_BIAS,
      LAYOUT3(3, 5, 6, 30, 6, 1)},
     0},
    /* A column whose stride is not a valid leading dimension. */
    {{LAYOUT2(5, 1, -2, 1), LAYOUT2(1, 6, 6, 1), NO_BIAS, C56}, 0},
    {{LAYOUT2(5, 1, 0, 3), LAYOUT2(1, 6, 6, 2), NO_BIAS, C56}, 0},
};

LOOP_TEST(test_inputs_have_any_strides, DEVICES *CASES_IN(strided))
{
    gemm_check(&strided[_i / DEVICES], names[_i % DEVICES]);
}

/* Axes of size 0 or 1 with meaningless strides. */
static const struct gemm_case meaningless_strides[] = {
    {{LAYOUT2(1, 7, STRIDE_MIN, 1), LAYOUT2(7, 1, 1, STRIDE_MIN), BIAS1(1, -3),
      LAYOUT2(1, 1, STRIDE_MIN, STRIDE_MAX)},
     1},
    {{LAYOUT2(5, 1, 1, STRIDE_MAX), LAYOUT2(1, 6, STRIDE_MAX, 1),
      LAYOUT2(5, 1, 1, STRIDE_MIN), C56},
     0},
    {{LAYOUT3(1, 5, 7, STRIDE_MIN, 7, 1), LAYOUT3(1, 7, 6, STRIDE_MAX, 6, 1),
      NO_BIAS, LAYOUT3(1, 5, 6, -1, 6, 1)},
     0},
    /* k, m, n or the batch is 0. */
    {{LAYOUT2(5, 0, STRIDE_MIN, STRIDE_MAX),
      LAYOUT2(0, 6, STRIDE_MAX, STRIDE_MIN), BIAS1(6, 1), C56},
     1},
    {{LAYOUT3(2, 5, 0, -1, STRIDE_MAX, STRIDE_MAX),
      LAYOUT3(2, 0, 6, STRIDE_MIN, -1, 0), NO_BIAS, LAYOUT3(2, 5, 6, 30, 6, 1)},
     0},
    {{LAYOUT2(0, 7, STRIDE_MAX, -3), LAYOUT2(7, 6, 0, 2), BIAS1(6, -5),
      LAYOUT2(0, 6, STRIDE_MIN, STRIDE_MAX)},
     1},
    {{LAYOUT2(5, 7, 2, 0), LAYOUT2(7, 0, 2, 3), LAYOUT2(5, 1, -9, 1),
      LAYOUT2(5, 0, 0, 7)},
     0},
    {{LAYOUT3(0, 5, 7, 35, 7, 1), LAYOUT3(0, 7, 6, 42, 6, 1), NO_BIAS,
      LAYOUT3(0, 5, 6, 30, 6, 1)},
     0},
    {{LAYOUT3(0, 5, 7, STRIDE_MIN, STRIDE_MAX, 0), LAYOUT3(1, 7, 6, 42, 0, 2),
      BIAS1(6, 2), LAYOUT3(0, 5, 6, STRIDE_MAX, 3, STRIDE_MIN)},
     0.5},
    {{LAYOUT2(5, 7, 7, 1), LAYOUT3(0, 7, 6, -1, 6, 1), LAYOUT2(5, 1, 3, 1),
      LAYOUT3(0, 5, 6, 30, 6, 1)},
     1},
};

LOOP_TEST(test_strides_of_single_elements_are_ignored,
          DEVICES *CASES_IN(meaningless_strides))
{
    gemm_check(&meaningless_strides[_i / DEVICES], names[_i % DEVICES]);
}

/* ---- rejected calls ---- */

static void expect_gemm_error(const struct gemm_case *gemm_case)
{
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = TANDEM_ANY_DEVICE};
    struct tandem_tensor *a = operand_wrap(gemm_case, A);
    struct tandem_tensor *b = operand_wrap(gemm_case, B);
    struct tandem_tensor *c = operand_wrap(gemm_case, C);

    BAD(tandem_matmul(context, &options, a, b, c));
    expect_last_error("matmul: c: strides");
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
}

LOOP_TEST(test_c_must_be_row_major, 4)
{
    static const struct gemm_case gemm_cases[] = {
        {{LAYOUT2(5, 7, 7, 1), B67, NO_BIAS, LAYOUT2(5, 6, 12, 2)}, 0},
        {{LAYOUT2(5, 7, 7, 1), B67, NO_BIAS, LAYOUT2(5, 6, 1, 5)}, 0},
        {{LAYOUT2(5, 7, 7, 1), B67, NO_BIAS, LAYOUT2(5, 6, -6, 1)}, 0},
        {{LAYOUT2(5, 7, 7, 1), B67, NO_BIAS, LAYOUT3(2, 5, 6, -30, 6, 1)}, 0},
    };

    expect_gemm_error(&gemm_cases[_i]);
}

/* The overlap must be detected although the input is copied for its strides. */
TEST(test_c_overlaps_no_input)
{
    const int64_t shape[2] = {8, 8}, strides[2] = {16, 2}, other[2] = {8, 1};
    struct tandem_tensor *whole = matrix_new(context, 16, 16), *a, *b, *c;

    b = matrix_new(context, 8, 8);
    OK(tandem_tensor_write(whole, memory[A], 256 * sizeof(float)));
    OK(tandem_tensor_write(b, memory[B], 64 * sizeof(float)));
    OK(tandem_tensor_view(whole, 0, 2, shape, strides, &a));
    OK(tandem_tensor_view(whole, 64, 2, shape, other, &c));
    BAD(tandem_matmul(context, NULL, a, b, c));
    ck_assert_str_eq(tandem_last_error(), "matmul: c overlaps a");
    BAD(tandem_matmul(context, NULL, b, a, c));
    ck_assert_str_eq(tandem_last_error(), "matmul: c overlaps b");
    tandem_tensor_destroy(c);
    /* c follows a. */
    OK(tandem_tensor_view(whole, 128, 2, shape, other, &c));
    OK(tandem_matmul(context, NULL, a, b, c));
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
    tandem_tensor_destroy(whole);
}

/* ---- tensors ---- */

LOOP_TEST(test_empty_tensors_have_any_strides, DEVICES)
{
    const int64_t shape[3] = {5, 0, 1},
                  strides[3] = {STRIDE_MAX, STRIDE_MIN, STRIDE_MAX};
    const struct tandem_op copy = {.struct_size = sizeof copy,
                                   .id = TANDEM_OP_COPY};
    struct tandem_tensor *tensor, *view;

    OK(tandem_tensor_wrap(context, memory[A], TANDEM_F32, 3, shape, strides, 0,
                          &tensor));
    OK(tandem_tensor_view(tensor, 0, 3, shape, strides, &view));
    OK(tandem_run(context, &copy, &tensor, 1, &view, 1,
                  TANDEM_RUN_ON(device_named(context, names[_i]))));
    OK(tandem_tensor_sync(view, TANDEM_TIMEOUT_INFINITE));
}

TEST_MAIN(host_opencl_tests_run("matmul", context_setup))
