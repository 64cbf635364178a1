/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid arguments of every public function: the call returns an error with a
 * message that names the argument and its values; nothing starts and nothing
 * changes.
 */
#include <config.h>

#include <math.h>
#include <string.h>

#include "support.h"

#define N 12
static float x[N], y[N];
static struct tandem_context *context, *other;
static struct tandem_tensor *tx, *ty, *other_context_tensor, *freed;
static struct tandem_tensor *a, *b, *c; /* A product of x and x in y. */
static uint32_t simulated;
static struct sim_counters before;

static void input_setup(void)
{
    context = context_new(NULL);
    other = context_new(NULL);
    simulated = device_named(context, "simulated");
    count_up(x, N);
    memset(y, 0x5a, sizeof y);
    tx = vector_wrap(context, x, N);
    ty = vector_wrap(context, y, N);
    other_context_tensor = vector_wrap(other, x, N);
    freed = vector_wrap(context, x, N);
    tandem_tensor_destroy(freed);
    a = matrix_wrap(context, x, 3, 4);
    b = matrix_wrap(context, x, 4, 3);
    c = matrix_wrap(context, y, 3, 3);
    before = counters_read(UINT32_MAX);
}

/*
 * Checks after each rejected call that no work was started and that inputs and
 * outputs are unchanged.
 */
static void input_teardown(void)
{
    const struct sim_counters after = counters_since(UINT32_MAX, &before);

    ck_assert_uint_eq(after.launches + after.gemms + after.uploads, 0);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(x[i], (float)(i + 1));
    for (size_t i = 0; i < sizeof y; i++)
        ck_assert_int_eq(((unsigned char *)y)[i], 0x5a);
}

static struct tandem_op operator(uint32_t id)
{
    return (struct tandem_op){.struct_size = sizeof(struct tandem_op),
                              .id = id};
}

TEST(test_context_functions)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    const struct tandem_backend *table = (void *)&info;
    struct tandem_device *handle = (void *)&info;
    struct tandem_context *gone = context_new(NULL);
    const char *name;
    uint32_t value;

    tandem_context_destroy(gone);
    BAD(tandem_context_create(NULL, NULL));
    BAD(tandem_device_count(NULL, &value));
    BAD(tandem_device_count(context, NULL));
    BAD(tandem_device_count(gone, &value));
    BAD(tandem_device_describe(NULL, 0, &info));
    BAD(tandem_device_describe(context, 0, NULL));
    BAD(tandem_device_describe(context, 15, &info));
    expect_last_error("15");
    BAD(tandem_device_name(context, 15, &name, &value));
    BAD(tandem_device_name(NULL, 0, &name, &value));
    BAD(tandem_device_find(context, NULL, &value));
    BAD(tandem_device_find(context, "cpu", NULL));
    BAD(tandem_device_find(NULL, "cpu", &value));
    BAD(tandem_device_is_calibrated(context, 15, &value));
    BAD(tandem_device_is_calibrated(context, 0, NULL));
    BAD(tandem_device_is_calibrated(NULL, 0, &value));
    BAD(tandem_device_profile_path(context, 15, &name));
    BAD(tandem_device_profile_path(context, 0, NULL));
    BAD(tandem_device_profile_path(NULL, 0, &name));
    BAD(tandem_device_backend(context, 15, &table, &handle));
    ck_assert_ptr_null(table);
    ck_assert_ptr_null(handle);
    BAD(tandem_device_backend(context, 0, NULL, &handle));
    BAD(tandem_device_backend(context, 0, &table, NULL));
    BAD(tandem_device_backend(NULL, 0, &table, &handle));
    BAD(tandem_context_force_device(NULL, 0));
    BAD(tandem_context_force_device(context, 15));
    BAD(tandem_context_set_observer(NULL, NULL, NULL));
    BAD(tandem_context_synchronize(NULL, TANDEM_TIMEOUT_INFINITE));
    BAD(tandem_context_synchronize(gone, TANDEM_TIMEOUT_INFINITE));
    ck_assert_ptr_null(tandem_context_load_error(NULL, 0));
    ck_assert_ptr_null(tandem_context_load_error(context, UINT32_MAX));
}

TEST(test_options)
{
    struct tandem_context_options options = {.struct_size = sizeof options,
                                             .plugin_path =
                                                 scratch_path("plugins"),
                                             .open_count = 1};
    const char *const keys[1] = {"max_isa"}, *const none[1] = {NULL};
    struct tandem_context *made = NULL;

    BAD(tandem_context_create(&options, &made));
    options.open_keys = keys;
    options.open_values = none;
    BAD(tandem_context_create(&options, &made));
    options.open_keys = none;
    options.open_values = keys;
    BAD(tandem_context_create(&options, &made));
    ck_assert_ptr_null(made);
    options.open_count = 0;
    options.reserved = 1;
    FAILS(TANDEM_UNSUPPORTED, tandem_context_create(&options, &made));
    ck_assert_ptr_null(made);
}

/*
 * A struct_size of 0 is an omitted one, the size of a pointer is a common
 * mistake, and one less than the first version's size is invalid. A host with a
 * later version of the header sets fields that this library does not know.
 */
TEST(test_sizes_of_options)
{
    struct {
        struct tandem_context_options options;
        unsigned char tail[8];
    } later = {.options = {.plugin_path = scratch_path("plugins")}};
    struct {
        struct tandem_matmul_options options;
        unsigned char tail[8];
    } how = {.options = {.alpha = 1, .device = TANDEM_ANY_DEVICE}};
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_context *made = (void *)&how;

    for (size_t i = 0; i <= 2 * sizeof(void *); i += sizeof(void *)) {
        const size_t size = i <= sizeof(void *) ? i : SIZE_MAX;

        later.options.struct_size =
            size < SIZE_MAX ? size : TANDEM_CONTEXT_OPTIONS_MIN_SIZE_0_1 - 1;
        BAD(tandem_context_create(&later.options, &made));
        expect_last_error("options.struct_size");
        expect_last_error("set it to sizeof(struct tandem_context_options)");
        ck_assert_ptr_null(made);
        how.options.struct_size =
            size < SIZE_MAX ? size : TANDEM_MATMUL_OPTIONS_MIN_SIZE_0_1 - 1;
        BAD(tandem_matmul(context, &how.options, a, b, c));
        expect_last_error("matmul: options.struct_size");
        expect_last_error("set it to sizeof(struct tandem_matmul_options)");
        BAD(tandem_explain_matmul(context, &how.options, a, b, c, &e));
    }
    later.options.struct_size = sizeof later;
    how.options.struct_size = sizeof how;
    OK(tandem_context_create(&later.options, &made));
    tandem_context_destroy(made);
    OK(tandem_explain_matmul(context, &how.options, a, b, c, &e));
    for (int i = 0; i < 8; i++) {
        later.tail[i] = how.tail[i] = 1;
        FAILS(TANDEM_UNSUPPORTED, tandem_context_create(&later.options, &made));
        ck_assert_ptr_null(made);
        FAILS(TANDEM_UNSUPPORTED,
              tandem_matmul(context, &how.options, a, b, c));
        later.tail[i] = how.tail[i] = 0;
    }
}

/* Structs that are passed to the library or filled by it. */
TEST(test_struct_sizes)
{
    struct tandem_device_info info = {.kind = 77};
    struct tandem_explanation e = {.op = 77};
    struct tandem_op op = operator(TANDEM_OP_NEG), none = op;

    none.struct_size = 0;
    BAD(tandem_device_describe(context, 0, &info));
    expect_last_error("out_info.struct_size");
    expect_last_error("sizeof(struct tandem_device_info)");
    BAD(tandem_explain_last(context, &e));
    expect_last_error("out.struct_size");
    BAD(tandem_explain_op(context, &op, &tx, 1, &ty, 1, &e));
    expect_last_error("sizeof(struct tandem_explanation)");
    e.struct_size = 4;
    BAD(tandem_explain_matmul(context, NULL, a, b, c, &e));
    expect_last_error("out.struct_size");
    ck_assert_uint_eq(info.kind, 77);
    ck_assert_uint_eq(e.op, 77);
    BAD(tandem_run(context, &none, &tx, 1, &ty, 1, NULL));
    expect_last_error("op.struct_size");
    expect_last_error("sizeof(struct tandem_op)");
    BAD(tandem_run(context, &none, &tx, 1, &ty, 1, TANDEM_RUN_ON(simulated)));
}

TEST(test_tensors)
{
    static const int64_t one[1] = {1}, minus[1] = {-1}, nine[9] = {1};
    static const int64_t huge[2] = {INT64_MAX / 2, 3}, large[1] = {INT64_MAX};
    static const int64_t wild[1] = {INT64_MIN}, two[1] = {2};
    struct tandem_tensor *made = (void *)x;

    BAD(tandem_tensor_create(NULL, TANDEM_F32, 1, one, &made));
    ck_assert_ptr_null(made);
    BAD(tandem_tensor_create(context, TANDEM_F32, 1, one, NULL));
    BAD(tandem_tensor_create(context, TANDEM_F32, 1, NULL, &made));
    BAD(tandem_tensor_create(context, TANDEM_F32, 9, nine, &made));
    expect_last_error("9");
    BAD(tandem_tensor_create(context, TANDEM_F32, 1, minus, &made));
    expect_last_error("-1");
    BAD(tandem_tensor_create(context, TANDEM_F32, 2, huge, &made));
    BAD(tandem_tensor_create(context, TANDEM_F32, 1, large, &made));
    FAILS(TANDEM_UNSUPPORTED, tandem_tensor_create(context, 0, 1, one, &made));
    FAILS(TANDEM_UNSUPPORTED,
          tandem_tensor_create(context, 0x0230, 1, one, &made));
    BAD(tandem_tensor_wrap(NULL, x, TANDEM_F32, 1, one, NULL, 0, &made));
    BAD(tandem_tensor_wrap(context, NULL, TANDEM_F32, 1, one, NULL, 0, &made));
    BAD(tandem_tensor_wrap(context, x, TANDEM_F32, 1, NULL, NULL, 0, &made));
    BAD(tandem_tensor_wrap(context, x, TANDEM_F32, 1, one, NULL, 0, NULL));
    FAILS(TANDEM_UNSUPPORTED,
          tandem_tensor_wrap(context, x, TANDEM_F32, 1, one, NULL, 64, &made));
    BAD(tandem_tensor_wrap(context, (char *)x + 1, TANDEM_F32, 1, one, NULL, 0,
                           &made));
    BAD(tandem_tensor_wrap(context, x, TANDEM_F32, 1, two, large, 0, &made));
    BAD(tandem_tensor_wrap(context, x, TANDEM_F32, 1, two, wild, 0, &made));
    ck_assert_ptr_null(made);
    BAD(tandem_tensor_view(NULL, 0, 1, one, NULL, &made));
    BAD(tandem_tensor_view(freed, 0, 1, one, NULL, &made));
    BAD(tandem_tensor_view(tx, 0, 1, one, NULL, NULL));
    BAD(tandem_tensor_view(tx, 0, 1, NULL, NULL, &made));
    BAD(tandem_tensor_view(tx, 0, 9, nine, NULL, &made));
    BAD(tandem_tensor_view(tx, 0, 1, minus, NULL, &made));
    BAD(tandem_tensor_view(tx, N, 1, one, NULL, &made));
    BAD(tandem_tensor_view(tx, INT64_MIN, 1, one, NULL, &made));
    BAD(tandem_tensor_view(tx, INT64_MAX, 1, two, NULL, &made));
    BAD(tandem_tensor_view(tx, -1, 1, one, NULL, &made));
    BAD(tandem_tensor_view(tx, N - 1, 1, two, NULL, &made));
    BAD(tandem_tensor_view(tx, 0, 1, two, minus, &made));
    BAD(tandem_tensor_view(tx, 0, 1, two, large, &made));
    ck_assert_ptr_null(made);
    tandem_tensor_destroy(NULL);
    tandem_tensor_destroy(freed); /* Destroying a freed handle does nothing. */
}

TEST(test_tensor_functions)
{
    struct tandem_tensor *const wrong[] = {NULL, freed};
    const void *data;
    uint32_t value;
    int64_t shape[TANDEM_MAX_RANK];
    float room[N];

    for (int i = 0; i < 2; i++) {
        struct tandem_tensor *t = wrong[i];

        BAD(tandem_tensor_describe(t, &value, &value, shape, shape));
        BAD(tandem_tensor_write(t, room, sizeof room));
        BAD(tandem_tensor_read(t, room, sizeof room, TANDEM_TIMEOUT_INFINITE));
        BAD(tensor_wait(t));
        BAD(tandem_tensor_host_data(t, TANDEM_TIMEOUT_INFINITE, &data));
        BAD(tandem_tensor_host_written(t));
        BAD(tandem_tensor_prefetch(t, 0));
        BAD(tandem_tensor_residency(t, &value));
    }
    BAD(tandem_tensor_write(tx, NULL, sizeof x));
    BAD(tandem_tensor_write(tx, room, sizeof x - 1));
    BAD(tandem_tensor_write(tx, room, 0));
    BAD(tandem_tensor_write(tx, room, UINT64_MAX));
    BAD(tandem_tensor_read(tx, NULL, sizeof x, TANDEM_TIMEOUT_INFINITE));
    BAD(tandem_tensor_read(tx, room, sizeof x + 1, TANDEM_TIMEOUT_INFINITE));
    BAD(tandem_tensor_host_data(tx, TANDEM_TIMEOUT_INFINITE, NULL));
    BAD(tandem_tensor_residency(tx, NULL));
    BAD(tandem_tensor_prefetch(tx, 15));
    BAD(tandem_tensor_describe(tx, NULL, &value, NULL, NULL));
    BAD(tandem_tensor_describe(tx, &value, NULL, NULL, NULL));
}

TEST(test_operands)
{
    struct tandem_op op = operator(TANDEM_OP_ADD);
    struct tandem_tensor *in[2] = {tx, tx}, *out[1] = {ty};
    struct tandem_tensor *many[9] = {tx, tx, tx, tx, tx, tx, tx, tx, tx};
    struct tandem_run_options options = {.device = simulated};

    BAD(tandem_run(NULL, &op, in, 2, out, 1, NULL));
    BAD(tandem_run(context, NULL, in, 2, out, 1, NULL));
    BAD(tandem_run(context, &op, NULL, 2, out, 1, NULL));
    BAD(tandem_run(context, &op, in, 2, NULL, 1, NULL));
    BAD(tandem_run(context, &op, in, 1, out, 1, NULL));
    expect_last_error("add");
    BAD(tandem_run(context, &op, in, 2, out, 0, NULL));
    BAD(tandem_run(context, &op, many, 9, out, 1, NULL));
    BAD(tandem_run(context, &op, many, UINT32_MAX, out, UINT32_MAX, NULL));
    out[0] = NULL;
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    out[0] = freed;
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    out[0] = other_context_tensor;
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    out[0] = ty;
    in[1] = freed;
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    expect_last_error("input 1");
    in[1] = other_context_tensor;
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    in[1] = NULL; /* A NULL input without a scalar value. */
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    in[0] = NULL;
    BAD(tandem_run(context, &op, in, 2, out, 1, NULL));
    BAD(tandem_run(context, &op, in, 2, out, 1, TANDEM_RUN_ON(15)));
    in[0] = in[1] = tx;
    options.struct_size = 4;
    BAD(tandem_run(context, &op, in, 2, out, 1, &options));
    options.struct_size = sizeof options;
    options.flags = 1;
    FAILS(TANDEM_UNSUPPORTED,
          tandem_run(context, &op, in, 2, out, 1, &options));
    BAD(tandem_run(NULL, &op, in, 2, out, 1, TANDEM_RUN_ON(0)));
}

/* argument_check.c, which test-argument-check tests, checks shapes, dtypes,
 * attributes and aliasing. */
TEST(test_operators)
{
    static const uint32_t none[] = {0, 99, TANDEM_OP_ID_END, UINT32_MAX};
    static const int64_t five[1] = {5};
    struct tandem_op op;
    struct tandem_tensor *small, *other_view;

    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        op = operator(none[i]);
        BAD(tandem_run(context, &op, &tx, 1, &ty, 1, NULL));
    }
    op = operator(TANDEM_OP_GEMM);
    BAD(tandem_run(context, &op, NULL, 0, NULL, 0, NULL));
    op = operator(TANDEM_OP_SOFTMAX); /* Without an axis. */
    BAD(tandem_run(context, &op, &tx, 1, &ty, 1, NULL));
    expect_last_error("softmax");
    op.int_count = 1; /* NULL */
    BAD(tandem_run(context, &op, &tx, 1, &ty, 1, NULL));
    OK(tandem_tensor_view(ty, 0, 1, five, NULL, &small));
    BAD(tandem_unary(context, TANDEM_OP_NEG, tx, small));
    expect_last_error("neg");
    BAD(tandem_unary(context, TANDEM_OP_ADD, tx, ty));
    BAD(tandem_unary(context, TANDEM_OP_NEG, NULL, ty));
    BAD(tandem_unary(context, TANDEM_OP_NEG, tx, NULL));
    BAD(tandem_unary(NULL, TANDEM_OP_NEG, tx, ty));
    BAD(tandem_binary(context, TANDEM_OP_ADD, tx, small, ty));
    expect_last_error("add");
    BAD(tandem_binary(context, TANDEM_OP_NEG, tx, tx, ty));
    BAD(tandem_binary(NULL, TANDEM_OP_ADD, tx, tx, ty));
    BAD(tandem_binary(context, TANDEM_OP_ADD, tx, tx, NULL));
    BAD(tandem_reduce(context, TANDEM_OP_SUM, 1, tx, small));
    BAD(tandem_reduce(context, TANDEM_OP_SUM, 1, NULL, small));
    BAD(tandem_reduce(context, TANDEM_OP_SUM, 1, tx, NULL));
    BAD(tandem_reduce(NULL, TANDEM_OP_SUM, 1, tx, small));
    OK(tandem_tensor_view(tx, 3, 1, five, NULL, &small));
    OK(tandem_tensor_view(tx, 0, 1, five, NULL, &other_view));
    BAD(tandem_unary(context, TANDEM_OP_NEG, other_view, small));
    expect_last_error("overlap");
}

TEST(test_gemms)
{
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = TANDEM_ANY_DEVICE};
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_tensor *half;
    const int64_t square[2] = {3, 3};
    const double forms[] = {0.5, 2, -1, 1e-300, (double)NAN, (double)INFINITY};

    BAD(tandem_matmul(NULL, NULL, a, b, c));
    BAD(tandem_matmul(context, NULL, NULL, b, c));
    BAD(tandem_matmul(context, NULL, a, NULL, c));
    BAD(tandem_matmul(context, NULL, a, b, NULL));
    BAD(tandem_matmul(context, NULL, a, a, c));
    expect_last_error("3 x 4");
    BAD(tandem_matmul(context, NULL, tx, b, c));
    BAD(tandem_matmul(context, NULL, a, b, other_context_tensor));
    BAD(tandem_matmul(context, NULL, a, freed, c));
    options.bias = tx;
    BAD(tandem_matmul(context, &options, a, b, c));
    expect_last_error("bias");
    options.bias = freed;
    BAD(tandem_matmul(context, &options, a, b, c));
    options.bias = NULL;
    options.activation = TANDEM_OP_ADD;
    FAILS(TANDEM_UNSUPPORTED, tandem_matmul(context, &options, a, b, c));
    expect_last_error("add");
    /* The call cache contains the GEMM with a valid activation parameter. */
    options.activation = TANDEM_OP_GELU;
    OK(tandem_explain_matmul(context, &options, a, b, c, &e));
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        options.activation_parameter = forms[i];
        BAD(tandem_matmul(context, &options, a, b, c));
        expect_last_error("activation_parameter");
        BAD(tandem_explain_matmul(context, &options, a, b, c, &e));
    }
    options.activation = TANDEM_OP_CELU;
    options.activation_parameter = -0.5;
    BAD(tandem_matmul(context, &options, a, b, c));
    expect_last_error("celu: alpha is -0.5");
    options.activation_parameter = 0;
    options.activation = TANDEM_OP_INVALID;
    options.flags = 1u << 31;
    FAILS(TANDEM_UNSUPPORTED, tandem_matmul(context, &options, a, b, c));
    options.flags = TANDEM_GEMM_TRANSPOSE_A;
    FAILS(TANDEM_UNSUPPORTED, tandem_matmul(context, &options, a, b, c));
    expect_last_error("unknown bits");
    options.flags = TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR;
    options.device = 15;
    BAD(tandem_matmul(context, &options, a, b, c));
    OK(tandem_tensor_wrap(context, x, TANDEM_F16, 2, square, NULL, 0, &half));
    BAD(tandem_matmul(context, NULL, half, c, c));
    expect_last_error("a is f16 and b is f32");
    OK(tandem_tensor_wrap(context, x, TANDEM_F16, 1, square, NULL, 0,
                          &options.bias));
    options.device = TANDEM_ANY_DEVICE;
    BAD(tandem_matmul(context, &options, half, half, c));
    expect_last_error("bias is f16 and c is f32");
    BAD(tandem_explain_matmul(context, NULL, a, a, c, &e));
    BAD(tandem_explain_matmul(context, NULL, a, b, c, NULL));
    BAD(tandem_explain_matmul(NULL, NULL, a, b, c, &e));
}

TEST(test_explanations)
{
    struct tandem_op op = operator(TANDEM_OP_NEG);
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_tensor *two[2] = {tx, tx};

    BAD(tandem_explain_last(NULL, &e));
    BAD(tandem_explain_op(NULL, &op, &tx, 1, &ty, 1, &e));
    BAD(tandem_explain_op(context, NULL, &tx, 1, &ty, 1, &e));
    BAD(tandem_explain_op(context, &op, NULL, 1, &ty, 1, &e));
    BAD(tandem_explain_op(context, &op, two, 2, &ty, 1, &e));
    BAD(tandem_explain_op(context, &op, &tx, 1, &ty, 1, NULL));
}

TEST_MAIN(host_tests_run("input", input_setup, input_teardown))
