/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem_matmul with any strides of its inputs, with empty batches, and with
 * strides that no address depends on, on the CPU plugin and on a real OpenCL
 * driver, against sums in float64.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define DEVICES 2
static const char *const names[DEVICES] = {"cpu", "opencl"};

#define ROOM 4096 /* elements of each operand's memory */
#define LEAST INT64_MIN
#define MOST INT64_MAX

static struct tandem_context *context;
static float memory[4][ROOM]; /* a, b, bias, c */

static void plugins_setup(void)
{
    scratch_setup();
    file_copy(scratch_path("plugins/tandem-opencl.so"),
              build_path("tandem-opencl.so"));
}

static void context_setup(void)
{
    environment_setup();
    setenv("TANDEM_BACKENDS", "cpu,opencl", 1);
    context = context_new(NULL);
}

static void context_teardown(void)
{
    tandem_context_destroy(context);
}

/* From -1 to 1, from a linear congruential generator. */
static float random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / 0x1p23 - 1);
}

/* A tensor whose element (0, ..., 0) lies in the middle of its memory. */
struct form {
    uint32_t rank; /* 0: no tensor */
    int64_t shape[3], strides[3];
};
enum { A, B, BIAS, C, OPERANDS };
struct product {
    struct form forms[OPERANDS];
    double beta;
};

static float *origin(int operand)
{
    return &memory[operand][ROOM / 2];
}

static struct tandem_tensor *form_wrap(const struct product *product,
                                       int operand)
{
    const struct form *form = &product->forms[operand];
    struct tandem_tensor *tensor = NULL;

    if (form->rank > 0)
        OK(tandem_tensor_wrap(context, origin(operand), TANDEM_F32, form->rank,
                              form->shape, form->strides, 0, &tensor));
    return tensor;
}

/* The size of an axis, which counts from the last; 1 if there is none. */
static int64_t size_of(const struct form *form, uint32_t from_last)
{
    return form->rank > from_last ? form->shape[form->rank - 1 - from_last] : 1;
}

/* Where an element lies; an axis of one element repeats. */
static int64_t place(const struct form *form, int64_t batch, int64_t row,
                     int64_t column)
{
    const int64_t index[3] = {column, row, batch};
    int64_t at = 0;

    for (uint32_t i = 0; i < form->rank; i++)
        if (size_of(form, i) > 1)
            at += index[i] * form->strides[form->rank - 1 - i];
    return at;
}

static double bias_of(const struct form *bias, int64_t row, int64_t column)
{
    if (bias->rank == 0)
        return 0;
    return bias->rank == 1 ? origin(BIAS)[place(bias, 0, 0, column)]
                           : origin(BIAS)[place(bias, 0, row, 0)];
}

/* before: c's memory before the product. */
static void element_check(const struct product *product, const float *before,
                          int64_t batch, int64_t row, int64_t column)
{
    const struct form *forms = product->forms;
    const int64_t k = size_of(&forms[A], 0);
    const int64_t at = place(&forms[C], batch, row, column);
    const double bias = bias_of(&forms[BIAS], row, column);
    double sum = product->beta * before[ROOM / 2 + at] + bias;
    double magnitudes = fabs(product->beta * before[ROOM / 2 + at]) +
                        fabs(bias);

    for (int64_t i = 0; i < k; i++) {
        const double term =
            (double)origin(A)[place(&forms[A], batch, row, i)] *
            origin(B)[place(&forms[B], batch, i, column)];

        sum += term;
        magnitudes += fabs(term);
    }
    ck_assert_msg(fabs(origin(C)[at] - sum) <=
                      (8 + 2 * sqrt((double)k)) * 0x1p-23 * magnitudes,
                  "c[%lld][%lld][%lld] is %.9g, not %.9g", (long long)batch,
                  (long long)row, (long long)column, origin(C)[at], sum);
}

/* Fills all memory and runs the product, also as an explanation. */
static void product_run(const struct product *product, const char *device,
                        float *before)
{
    struct tandem_explanation explanation = {.struct_size =
                                                 sizeof explanation};
    struct tandem_tensor *tensors[OPERANDS];
    struct tandem_matmul_options options = {
        .struct_size = sizeof options,
        .alpha = 1,
        .beta = product->beta,
        .device = device_named(context, device)};
    uint64_t state = 1;

    for (int i = 0; i < OPERANDS; i++)
        for (int j = 0; j < ROOM; j++)
            memory[i][j] = random_next(&state);
    memcpy(before, memory[C], sizeof memory[C]);
    for (int i = 0; i < OPERANDS; i++)
        tensors[i] = form_wrap(product, i);
    options.bias = tensors[BIAS];
    OK(tandem_explain_matmul(context, &options, tensors[A], tensors[B],
                             tensors[C], &explanation));
    ck_assert_uint_eq(explanation.op, TANDEM_OP_GEMM);
    OK(tandem_matmul(context, &options, tensors[A], tensors[B], tensors[C]));
    OK(tandem_tensor_sync(tensors[C], TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < OPERANDS; i++)
        tandem_tensor_destroy(tensors[i]);
}

static void product_check(const struct product *product, const char *device)
{
    static float before[ROOM];
    const struct form *c = &product->forms[C];
    int64_t written = 0;

    product_run(product, device, before);
    for (int64_t batch = 0; batch < size_of(c, 2); batch++)
        for (int64_t row = 0; row < size_of(c, 1); row++)
            for (int64_t column = 0; column < size_of(c, 0); column++) {
                element_check(product, before, batch, row, column);
                before[ROOM / 2 + place(c, batch, row, column)] =
                    origin(C)[place(c, batch, row, column)];
                written++;
            }
    ck_assert_msg(memcmp(before, memory[C], sizeof before) == 0,
                  "%lld elements were written, and others too",
                  (long long)written);
}

#define FORM2(rows, columns, ...)                                             \
    {                                                                         \
        2, {rows, columns}, {__VA_ARGS__}                                     \
    }
#define FORM3(batch, rows, columns, ...)                                      \
    {                                                                         \
        3, {batch, rows, columns}, {__VA_ARGS__}                              \
    }
#define NO_BIAS                                                               \
    {                                                                         \
        0, {0}, {0}                                                           \
    }
#define BIAS1(n, stride)                                                      \
    {                                                                         \
        1, {n}, {stride}                                                      \
    }
#define B67 FORM2(7, 6, 6, 1)
#define C56 FORM2(5, 6, 6, 1)

/* Strides that a matrix with a leading dimension cannot express, and the same
 * in batches. */
static const struct product strided[] = {
    {{FORM2(5, 7, 0, 1), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 1, 1), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, -4, 1), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 6, 1), B67, NO_BIAS, C56}, 1},
    {{FORM2(5, 7, 1, 0), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 1, -9), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 7, -1), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, -7, -1), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 2, 11), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 0, 0), B67, NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 7, 1), FORM2(7, 6, 0, 1), NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 7, 1), FORM2(7, 6, 1, 1), NO_BIAS, C56}, 0},
    {{FORM2(5, 7, 7, 1), FORM2(7, 6, -6, 1), BIAS1(6, -1), C56}, 0.5},
    {{FORM2(5, 7, 2, 14), FORM2(7, 6, -12, 2), BIAS1(6, 3), C56}, 0},
    {{FORM2(5, 7, 7, 1), B67, BIAS1(6, 0), C56}, 0},
    {{FORM2(5, 7, 7, 1), B67, FORM2(5, 1, 2, MOST), C56}, 0},
    {{FORM2(5, 7, 7, 1), B67, FORM2(5, 1, -1, 1), C56}, 0},
    {{FORM3(3, 5, 7, -35, 7, 1), FORM3(3, 7, 6, 42, 6, 1), NO_BIAS,
      FORM3(3, 5, 6, 30, 6, 1)},
     0},
    {{FORM3(3, 5, 7, 35, -7, 1), FORM3(3, 7, 6, -1, 3, 25), NO_BIAS,
      FORM3(3, 5, 6, 40, 7, 1)},
     1},
    {{FORM3(3, 5, 7, 0, 0, 1), FORM3(1, 7, 6, MOST, -6, -1), NO_BIAS,
      FORM3(3, 5, 6, 30, 6, 1)},
     0},
    {{FORM2(5, 7, 3, 2), FORM3(3, 7, 6, 2, 0, 1), NO_BIAS,
      FORM3(3, 5, 6, 30, 6, 1)},
     0},
    /* A column whose stride is no leading dimension. */
    {{FORM2(5, 1, -2, 1), FORM2(1, 6, 6, 1), NO_BIAS, C56}, 0},
    {{FORM2(5, 1, 0, 3), FORM2(1, 6, 6, 2), NO_BIAS, C56}, 0},
};

START_TEST(test_inputs_have_any_strides)
{
    product_check(&strided[_i / DEVICES], names[_i % DEVICES]);
}
END_TEST

/* Axes of at most one element with strides that make no sense. */
static const struct product junk[] = {
    {{FORM2(1, 7, LEAST, 1), FORM2(7, 1, 1, LEAST), BIAS1(1, -3),
      FORM2(1, 1, LEAST, MOST)},
     1},
    {{FORM2(5, 1, 1, MOST), FORM2(1, 6, MOST, 1), FORM2(5, 1, 1, LEAST), C56},
     0},
    {{FORM3(1, 5, 7, LEAST, 7, 1), FORM3(1, 7, 6, MOST, 6, 1), NO_BIAS,
      FORM3(1, 5, 6, -1, 6, 1)},
     0},
    /* No elements: k, m, n, the batch. */
    {{FORM2(5, 0, LEAST, MOST), FORM2(0, 6, MOST, LEAST), BIAS1(6, 1), C56},
     1},
    {{FORM3(2, 5, 0, -1, MOST, MOST), FORM3(2, 0, 6, LEAST, -1, 0), NO_BIAS,
      FORM3(2, 5, 6, 30, 6, 1)},
     0},
    {{FORM2(0, 7, MOST, -3), FORM2(7, 6, 0, 2), BIAS1(6, -5),
      FORM2(0, 6, LEAST, MOST)},
     1},
    {{FORM2(5, 7, 2, 0), FORM2(7, 0, 2, 3), FORM2(5, 1, -9, 1),
      FORM2(5, 0, 0, 7)},
     0},
    {{FORM3(0, 5, 7, 35, 7, 1), FORM3(0, 7, 6, 42, 6, 1), NO_BIAS,
      FORM3(0, 5, 6, 30, 6, 1)},
     0},
    {{FORM3(0, 5, 7, LEAST, MOST, 0), FORM3(1, 7, 6, 42, 0, 2), BIAS1(6, 2),
      FORM3(0, 5, 6, MOST, 3, LEAST)},
     0.5},
    {{FORM2(5, 7, 7, 1), FORM2(7, 6, 6, 1), FORM2(5, 1, 3, 1),
      FORM3(0, 5, 6, 30, 6, 1)},
     1},
};

START_TEST(test_strides_of_single_elements_are_ignored)
{
    product_check(&junk[_i / DEVICES], names[_i % DEVICES]);
}
END_TEST

/* ---- what is refused ---- */

static void product_fails(const struct product *product)
{
    const struct tandem_matmul_options options = {.struct_size = sizeof options,
                                                  .alpha = 1,
                                                  .device = TANDEM_ANY_DEVICE};
    struct tandem_tensor *a = form_wrap(product, A);
    struct tandem_tensor *b = form_wrap(product, B);
    struct tandem_tensor *c = form_wrap(product, C);

    FAILS(TANDEM_INVALID_ARGUMENT, tandem_matmul(context, &options, a, b, c));
    ck_assert_msg(strstr(tandem_last_error(), "matmul: c: strides"),
                  "the message is \"%s\"", tandem_last_error());
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
}

START_TEST(test_c_has_rows)
{
    static const struct product products[] = {
        {{FORM2(5, 7, 7, 1), B67, NO_BIAS, FORM2(5, 6, 12, 2)}, 0},
        {{FORM2(5, 7, 7, 1), B67, NO_BIAS, FORM2(5, 6, 1, 5)}, 0},
        {{FORM2(5, 7, 7, 1), B67, NO_BIAS, FORM2(5, 6, -6, 1)}, 0},
        {{FORM2(5, 7, 7, 1), B67, NO_BIAS, FORM3(2, 5, 6, -30, 6, 1)}, 0},
    };

    product_fails(&products[_i]);
}
END_TEST

/* A copy of an input would hide that c overlaps it. */
START_TEST(test_c_overlaps_no_input)
{
    const int64_t shape[2] = {8, 8}, strides[2] = {16, 2}, other[2] = {8, 1};
    struct tandem_tensor *whole = matrix_new(context, 16, 16), *a, *b, *c;

    b = matrix_new(context, 8, 8);
    OK(tandem_tensor_write(whole, memory[A], 256 * sizeof(float)));
    OK(tandem_tensor_write(b, memory[B], 64 * sizeof(float)));
    OK(tandem_tensor_view(whole, 0, 2, shape, strides, &a));
    OK(tandem_tensor_view(whole, 64, 2, shape, other, &c));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_matmul(context, NULL, a, b, c));
    ck_assert_str_eq(tandem_last_error(), "matmul: c overlaps a");
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_matmul(context, NULL, b, a, c));
    ck_assert_str_eq(tandem_last_error(), "matmul: c overlaps b");
    tandem_tensor_destroy(c);
    /* Behind a. */
    OK(tandem_tensor_view(whole, 128, 2, shape, other, &c));
    OK(tandem_matmul(context, NULL, a, b, c));
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
    tandem_tensor_destroy(whole);
}
END_TEST

/* ---- tensors ---- */

START_TEST(test_empty_tensors_have_any_strides)
{
    const int64_t shape[3] = {5, 0, 1}, strides[3] = {MOST, LEAST, MOST};
    const struct tandem_op copy = {.struct_size = sizeof copy,
                                   .id = TANDEM_OP_COPY};
    struct tandem_tensor *tensor, *view;

    OK(tandem_tensor_wrap(context, memory[A], TANDEM_F32, 3, shape, strides, 0,
                          &tensor));
    OK(tandem_tensor_view(tensor, 0, 3, shape, strides, &view));
    OK(tandem_run_on(context, device_named(context, names[_i]), &copy, &tensor,
                     1, &view, 1));
    OK(tandem_tensor_sync(view, TANDEM_TIMEOUT_INFINITE));
    tandem_tensor_destroy(view);
    tandem_tensor_destroy(tensor);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("matmul");
    TCase *tests = tcase_create("matmul");

    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, plugins_setup, scratch_teardown);
    tcase_add_checked_fixture(tests, context_setup, context_teardown);
    tcase_add_loop_test(tests, test_inputs_have_any_strides, 0,
                        DEVICES * COUNT(strided));
    tcase_add_loop_test(tests, test_strides_of_single_elements_are_ignored, 0,
                        DEVICES * COUNT(junk));
    tcase_add_loop_test(tests, test_c_has_rows, 0, 4);
    tcase_add_test(tests, test_c_overlaps_no_input);
    tcase_add_loop_test(tests, test_empty_tensors_have_any_strides, 0,
                        DEVICES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
