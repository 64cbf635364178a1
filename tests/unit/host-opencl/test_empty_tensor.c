/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrapped tensors without elements, on the CPU plugin and on a real OpenCL
 * driver, which imports the host's memory if possible: operators accept them,
 * with a valid or a NULL pointer, with the same result. The conformance suite
 * tests each operator of the plugins.
 */
#include <config.h>

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
 * An operator with its operands, inputs first. Outputs with elements become 0.
 */
struct operand {
    uint32_t dtype, rank;
    int64_t rows, columns;
};
static const struct empty_case {
    uint32_t id;
    struct operand operands[7];
    int64_t ints[2];
    double floats[5];
} cases[] = {
#define TENSOR(...)                                                            \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define F(...) TENSOR(TANDEM_F32, __VA_ARGS__)
#define LABELS(count) TENSOR(TANDEM_I32, 1, count, 1)
    {TANDEM_OP_RELU, {F(1, 0, 1), F(1, 0, 1)}, {0}, {0}},
    {TANDEM_OP_TRANSPOSE, {F(2, 0, 3), F(2, 3, 0)}, {1, 0}, {0}},
    {TANDEM_OP_SUM, {F(2, 0, 3), F(1, 3, 1)}, {1, 0}, {0}},
    {TANDEM_OP_SUM, {F(2, 0, 3), F(0, 1, 1)}, {3, 0}, {0}},
    {TANDEM_OP_GATHER, {F(2, 5, 2), LABELS(0), F(2, 0, 2)}, {0}, {0}},
    {TANDEM_OP_GATHER, {F(2, 5, 0), LABELS(3), F(2, 3, 0)}, {0}, {0}},
    {TANDEM_OP_DOT, {F(1, 0, 1), F(1, 0, 1), F(0, 1, 1)}, {0}, {0}},
    {TANDEM_OP_ADAM,
     {F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1), F(1, 0, 1),
      F(1, 0, 1)},
     {1, 0},
     {0.1, 0.9, 0.999, 1e-8, 0}},
};

/* Runs the operator on a device. null: empty operands have no memory. */
static void case_run(const struct empty_case *one, uint32_t device, bool null)
{
    const struct tandem_op_info *info = tandem_op_by_id(one->id);
    const uint32_t inputs = info->input_count;
    const struct tandem_op op = {
        .struct_size = sizeof op,
        .id = one->id,
        .int_count = one->id == TANDEM_OP_TRANSPOSE ? 2 : info->int_count,
        .ints = one->ints,
        .float_count = info->float_count,
        .floats = one->floats};
    struct tandem_tensor *tensors[7];
    int32_t labels[8] = {0};
    float written = 7;

    for (uint32_t i = 0; i < inputs + info->output_count; i++) {
        const struct operand *of = &one->operands[i];
        const int64_t elements = of->rank == 0   ? 1
                                 : of->rank == 1 ? of->rows
                                                 : of->rows * of->columns;
        void *at = i >= inputs               ? (void *)result
                   : of->dtype == TANDEM_I32 ? (void *)labels
                                             : (void *)memory;

        tensors[i] = wrap(null && elements == 0 ? NULL : at, of->dtype,
                          of->rank, of->rows, of->columns);
        if (i >= inputs && elements > 0)
            written = 0;
        if (i < inputs)
            OK(tandem_tensor_prefetch(tensors[i], device));
    }
    OK(tandem_run(context, &op, tensors, inputs, tensors + inputs,
                  info->output_count, TANDEM_RUN_ON(device)));
    for (uint32_t i = 0; i < info->output_count; i++)
        OK(tandem_tensor_sync(tensors[inputs + i], TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(result[0], written);
}

LOOP_TEST(test_operators_accept_empty_tensors, 2 * DEVICES * CASES_IN(cases))
{
    case_run(&cases[_i / (2 * DEVICES)],
             device_named(context, names[_i / 2 % DEVICES]), _i % 2 != 0);
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

TEST_MAIN(host_opencl_tests_run("empty", context_setup))
