/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors and residency: number and size of transfers (counted by the
 * simulated GPU), views and strides, and writes by the caller. check-threads
 * compares the results of random sequences of these calls.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define N 64

static struct tandem_context *context;
static uint32_t simulated;
static float x[N], y[N], z[N];
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

#define ON_SIM (1u << simulated)
/* The CPU uses the host's memory, so bit 0 is set with the host's. */
#define ON_HOST (TANDEM_RESIDENT_HOST | 1u)

/* ---- transfers ---- */

TEST(test_no_transfer_twice)
{
    struct sim_counters before = counters_read(0), moved;

    OK(tandem_tensor_host_written(tx));
    for (int i = 0; i < 10; i++) {
        unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
        unary_on(context, simulated, TANDEM_OP_ABS, ty, tz);
    }
    moved = counters_since(0, &before);
    ck_assert_uint_eq(moved.launches, 20);
    ck_assert_uint_eq(moved.uploads, 1);
    ck_assert_uint_eq(moved.upload_bytes, sizeof x);
    ck_assert_uint_eq(moved.downloads, 0);
    ck_assert_uint_eq(residency(tx), ON_SIM | ON_HOST);
    ck_assert_uint_eq(residency(ty), ON_SIM);
    for (int i = 0; i < 3; i++)
        OK(tensor_wait(tz));
    moved = counters_since(0, &before);
    ck_assert_uint_eq(moved.downloads, 1);
    ck_assert_uint_eq(moved.download_bytes, sizeof z);
    ck_assert_uint_eq(residency(tz), ON_SIM | ON_HOST);
    ck_assert_mem_eq(x, z, sizeof x);
    /* y was not read. */
    ck_assert_uint_eq(residency(ty), ON_SIM);
}

TEST(test_nothing_runs_before_a_wait)
{
    struct sim_counters before, moved;

    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    before = counters_read(0);
    for (int i = 0; i < 20; i++)
        unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    moved = counters_since(0, &before);
    ck_assert_uint_eq(moved.launches, 20);
    ck_assert_uint_eq(moved.executed, 0);
    ck_assert_uint_eq(moved.waits, 0);
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    moved = counters_since(0, &before);
    ck_assert_uint_eq(moved.executed, 20);
    ck_assert_uint_le(moved.waits, 1);
}

TEST(test_host_written_makes_copies_stale)
{
    struct sim_counters before;

    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    OK(tensor_wait(ty));
    x[3] = 50;
    OK(tandem_tensor_host_written(tx));
    ck_assert_uint_eq(residency(tx), ON_HOST);
    before = counters_read(0);
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    OK(tensor_wait(ty));
    ck_assert_float_eq(y[3], -50);
    ck_assert_uint_eq(counters_since(0, &before).uploads, 1);
}

TEST(test_prefetch_moves_once)
{
    struct sim_counters before = counters_read(0), moved;

    OK(tandem_tensor_prefetch(tx, simulated));
    ck_assert_uint_eq(residency(tx), ON_SIM | ON_HOST);
    OK(tandem_tensor_prefetch(tx, simulated));
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    moved = counters_since(0, &before);
    ck_assert_uint_eq(moved.uploads, 1);
    ck_assert_uint_eq(moved.executed, 0);
    /* Downloads y, because the CPU is a device too. */
    OK(tandem_tensor_prefetch(ty, 0));
    OK(tensor_wait(ty));
    ck_assert_uint_eq(counters_since(0, &before).downloads, 1);
    ck_assert_float_eq(y[0], -1);
}

/* ---- owned memory, read, write, data ---- */

TEST(test_write_and_read)
{
    struct tandem_tensor *t = vector_new(context, N);
    const void *data = NULL;

    OK(tandem_tensor_write(t, x, sizeof x));
    memset(x, 0, sizeof x); /* The caller may reuse x at once. */
    unary_on(context, simulated, TANDEM_OP_NEG, t, t);
    OK(tandem_tensor_read(t, y, sizeof y, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(y[N - 1], -N);
    OK(tandem_tensor_host_data(t, TANDEM_TIMEOUT_INFINITE, &data));
    ck_assert_mem_eq(data, y, sizeof y);
    BAD(tandem_tensor_read(t, y, sizeof y - 1, TANDEM_TIMEOUT_INFINITE));
    BAD(tandem_tensor_write(t, x, sizeof x + 4));
}

TEST(test_reading_what_was_never_written)
{
    struct tandem_tensor *t = vector_new(context, N);
    struct tandem_tensor *u = vector_new(context, N);
    const void *data;

    BAD(tandem_tensor_read(t, y, sizeof y, TANDEM_TIMEOUT_INFINITE));
    BAD(tandem_tensor_host_data(t, TANDEM_TIMEOUT_INFINITE, &data));
    BAD(tandem_unary(context, TANDEM_OP_NEG, t, u));
    ck_assert_uint_eq(residency(u), 0);
    OK(tandem_tensor_write(t, y, sizeof y));
    OK(tandem_unary(context, TANDEM_OP_NEG, t, u));
    OK(tandem_tensor_read(u, y, sizeof y, TANDEM_TIMEOUT_INFINITE));
}

TEST(test_read_only_memory)
{
    const int64_t shape = N;
    struct tandem_tensor *t, *u = vector_wrap(context, y, N);

    OK(tandem_tensor_wrap(context, x, TANDEM_F32, 1, &shape, NULL,
                          TANDEM_TENSOR_READ_ONLY, &t));
    OK(tandem_unary(context, TANDEM_OP_NEG, t, u));
    unary_on(context, simulated, TANDEM_OP_NEG, t, u);
    BAD(tandem_unary(context, TANDEM_OP_NEG, u, t));
    BAD(tandem_unary(context, TANDEM_OP_NEG, t, t));
    BAD(tandem_tensor_write(t, y, sizeof y));
    OK(tensor_wait(u));
    ck_assert_float_eq(x[3], 4);
    ck_assert_float_eq(y[3], -4);
}

/* The copy on a device is sealed, and replaced if the caller writes the memory.
 */
TEST(test_copies_of_read_only_memory_are_sealed)
{
    const int64_t shape = N;
    struct tandem_tensor *t, *u = vector_wrap(context, y, N);
    const struct sim_counters before = counters_read(0);

    OK(tandem_tensor_wrap(context, x, TANDEM_F32, 1, &shape, NULL,
                          TANDEM_TENSOR_READ_ONLY, &t));
    for (uint32_t round = 1; round <= 3; round++) {
        unary_on(context, simulated, TANDEM_OP_NEG, t, u);
        unary_on(context, simulated, TANDEM_OP_NEG, t, u);
        OK(tensor_wait(u));
        ck_assert_float_eq(y[3], -x[3]);
        ck_assert_uint_eq(counters_since(0, &before).seals, round);
        OK(tensor_wait(t));
        x[3] += 5;
        OK(tandem_tensor_host_written(t));
    }
}

/* ---- strides, views ---- */

/*
 * A wrapped 4 x 3 matrix with a row pitch of 5. The gaps belong to the caller.
 */
LOOP_TEST(test_gaps_of_wrapped_memory_are_untouched, 2)
{
    float a[4 * 5], b[4 * 5];
    const int64_t shape[2] = {4, 3}, strides[2] = {5, 1};
    struct tandem_tensor *ta, *tb;

    for (int i = 0; i < 20; i++) {
        a[i] = (float)i;
        b[i] = 1000 + (float)i;
    }
    OK(tandem_tensor_wrap(context, a, TANDEM_F32, 2, shape, strides, 0, &ta));
    OK(tandem_tensor_wrap(context, b, TANDEM_F32, 2, shape, strides, 0, &tb));
    unary_on(context, _i ? simulated : 0, TANDEM_OP_NEG, ta, tb);
    /* Data that the caller writes into a gap meanwhile is preserved. */
    b[4] = -77;
    OK(tensor_wait(tb));
    for (int i = 0; i < 20; i++)
        if (i == 4)
            ck_assert_float_eq(b[i], -77);
        else
            ck_assert_float_eq(b[i], i % 5 < 3 ? -a[i] : 1000 + (float)i);
}

LOOP_TEST(test_negative_and_zero_strides, 2)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[12];
    const int64_t shape[2] = {2, 6}, strides[2] = {0, -1};
    struct tandem_tensor *ta, *tb = matrix_wrap(context, b, 2, 6);

    OK(tandem_tensor_wrap(context, a + 5, TANDEM_F32, 2, shape, strides,
                          TANDEM_TENSOR_READ_ONLY, &ta));
    unary_on(context, _i ? simulated : 0, TANDEM_OP_NEG, ta, tb);
    OK(tensor_wait(tb));
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(b[i], -a[5 - i % 6]);
}

TEST(test_a_view_shares_memory_and_residency)
{
    float a[12], b[4];
    const int64_t column[1] = {4}, step[1] = {3};
    struct tandem_tensor *t = matrix_wrap(context, a, 4, 3), *view = NULL;
    struct tandem_tensor *tb = vector_wrap(context, b, 4);
    struct sim_counters before;

    count_up(a, 12);
    OK(tandem_tensor_view(t, 1, 1, column, step, &view));
    unary_on(context, simulated, TANDEM_OP_NEG, t, t);
    ck_assert_uint_eq(residency(view), residency(t));
    before = counters_read(0);
    unary_on(context, simulated, TANDEM_OP_ABS, view, tb);
    ck_assert_uint_eq(counters_since(0, &before).uploads, 0);
    OK(tensor_wait(tb));
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(b[i], (float)(3 * i + 2));
    unary_on(context, simulated, TANDEM_OP_NEG, view,
             view); /* One column of t. */
    OK(tensor_wait(t));
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(a[i], i % 3 == 1 ? (float)(i + 1) : -(float)(i + 1));
}

/* Two devices each write a part; both parts must be visible. */
TEST(test_views_written_on_different_devices)
{
    float a[8];
    const int64_t half[1] = {4};
    struct tandem_tensor *t = vector_wrap(context, a, 8), *low, *high;

    count_up(a, 8);
    OK(tandem_tensor_view(t, 0, 1, half, NULL, &low));
    OK(tandem_tensor_view(t, 4, 1, half, NULL, &high));
    unary_on(context, simulated, TANDEM_OP_NEG, low, low);
    unary_on(context, 0, TANDEM_OP_NEG, high, high);
    OK(tensor_wait(t));
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(a[i], -(float)(i + 1));
}

TEST(test_a_view_keeps_the_memory)
{
    float out[4] = {0};
    const int64_t four[1] = {4};
    struct tandem_tensor *t = vector_new(context, N), *view = NULL;

    OK(tandem_tensor_write(t, x, sizeof x));
    OK(tandem_tensor_view(t, 8, 1, four, NULL, &view));
    tandem_tensor_destroy(t);
    unary_on(context, simulated, TANDEM_OP_NEG, view, view);
    OK(tandem_tensor_read(view, out, sizeof out, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(out[0], -9);
    BAD(tandem_tensor_read(t, x, sizeof x, TANDEM_TIMEOUT_INFINITE));
    tandem_tensor_destroy(view);
}

TEST(test_describe)
{
    const int64_t shape[3] = {2, 3, 4};
    struct tandem_tensor *t = NULL, *scalar = NULL;
    int64_t got[TANDEM_MAX_RANK], strides[TANDEM_MAX_RANK];
    uint32_t dtype = 0, rank = 0;

    OK(tandem_tensor_create(context, TANDEM_I32, 3, shape, &t));
    OK(tandem_tensor_describe(t, &dtype, &rank, got, strides));
    ck_assert_uint_eq(dtype, TANDEM_I32);
    ck_assert_uint_eq(rank, 3);
    ck_assert_mem_eq(got, shape, sizeof shape);
    ck_assert_int_eq(strides[0], 12);
    ck_assert_int_eq(strides[1], 4);
    ck_assert_int_eq(strides[2], 1);
    OK(tandem_tensor_describe(t, &dtype, &rank, NULL, NULL));
    OK(tandem_tensor_create(context, TANDEM_F32, 0, NULL, &scalar));
    OK(tandem_tensor_describe(scalar, &dtype, &rank, got, strides));
    ck_assert_uint_eq(rank, 0);
}

TEST(test_empty_and_scalar_tensors)
{
    const int64_t none[2] = {0, 3};
    float a = 5, b = 0;
    struct tandem_tensor *e, *f, *s, *t;

    OK(tandem_tensor_create(context, TANDEM_F32, 2, none, &e));
    OK(tandem_tensor_create(context, TANDEM_F32, 2, none, &f));
    OK(tandem_tensor_write(e, NULL, 0));
    unary_on(context, simulated, TANDEM_OP_NEG, e, f);
    OK(tandem_unary(context, TANDEM_OP_NEG, e, f));
    OK(tandem_tensor_read(f, NULL, 0, TANDEM_TIMEOUT_INFINITE));
    OK(tandem_tensor_wrap(context, &a, TANDEM_F32, 0, NULL, NULL, 0, &s));
    OK(tandem_tensor_wrap(context, &b, TANDEM_F32, 0, NULL, NULL, 0, &t));
    unary_on(context, simulated, TANDEM_OP_NEG, s, t);
    OK(tensor_wait(t));
    ck_assert_float_eq(b, -5);
}

/* Memory needs the alignment of its elements, and no more. */
TEST(test_the_alignment_of_wrapped_memory)
{
    static const uint32_t dtypes[] = {TANDEM_F32,  TANDEM_F16, TANDEM_BF16,
                                      TANDEM_I32,  TANDEM_I64, TANDEM_U8,
                                      TANDEM_BOOL, TANDEM_F64};
    _Alignas(64) static char memory[256];
    const int64_t three = 3;
    struct tandem_tensor *t;

    for (size_t offset = 0; offset < 64; offset++)
        for (int i = 0; i < CASES_IN(dtypes); i++)
            ck_assert_int_eq(tandem_tensor_wrap(context, memory + offset,
                                                dtypes[i], 1, &three, NULL, 0,
                                                &t),
                             offset % TANDEM_DTYPE_BYTES(dtypes[i]) == 0
                                 ? TANDEM_OK
                                 : TANDEM_INVALID_ARGUMENT);
    for (size_t offset = 0; offset < 16; offset++) {
        unary_on(context, offset % 2 ? simulated : 0, TANDEM_OP_NEG,
                 vector_wrap(context, x + offset, 37),
                 t = vector_wrap(context, y + 15 - offset, 37));
        OK(tensor_wait(t));
        for (size_t i = 0; i < 37; i++)
            ck_assert_float_eq(y[15 - offset + i], -x[offset + i]);
    }
}

/* Without strides, a view is row-major in its memory, even if the tensor is
 * transposed. */
TEST(test_a_view_without_strides)
{
    const int64_t square[2] = {8, 8}, turned[2] = {1, 8}, shape[2] = {2, 3};
    struct tandem_tensor *matrix, *transposed, *view;
    int64_t strides[TANDEM_MAX_RANK];
    uint32_t dtype, rank;
    float got[6];

    OK(tandem_tensor_wrap(context, x, TANDEM_F32, 2, square, NULL, 0, &matrix));
    OK(tandem_tensor_view(matrix, 0, 2, square, turned, &transposed));
    OK(tandem_tensor_view(transposed, 5, 2, shape, NULL, &view));
    OK(tandem_tensor_describe(view, &dtype, &rank, NULL, strides));
    ck_assert_int_eq(strides[0], 3);
    ck_assert_int_eq(strides[1], 1);
    OK(tandem_tensor_read(view, got, sizeof got, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(got[i], x[5 + i]);
}

TEST(test_axes_of_the_smallest_softmax)
{
    const int64_t one[1] = {1};
    struct tandem_op op = {
        .struct_size = sizeof op, .id = TANDEM_OP_SOFTMAX, .int_count = 1};
    float in = 5, out = 9;
    struct tandem_tensor *scalar, *line,
        *result = vector_wrap(context, &out, 1);

    OK(tandem_tensor_wrap(context, &in, TANDEM_F32, 0, NULL, NULL, 0, &scalar));
    OK(tandem_tensor_view(scalar, 0, 1, one, NULL, &line));
    for (int64_t axis = -1; axis <= 1; axis++) {
        op.ints = &axis;
        BAD(tandem_run(context, &op, &scalar, 1, &result, 1, NULL));
    }
    op.ints = &(int64_t){0};
    OK(tandem_run(context, &op, &line, 1, &result, 1, NULL));
    OK(tensor_wait(result));
    ck_assert_float_eq(out, 1);
}

TEST(test_one_hot_needs_a_depth)
{
    const int64_t none[1] = {0}, two[1] = {2}, attributes[2] = {0, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ONE_HOT,
                                 .int_count = 2,
                                 .ints = attributes};
    int32_t index = 0;
    struct tandem_tensor *in[2], *empty;

    OK(tandem_tensor_wrap(context, &index, TANDEM_I32, 0, NULL, NULL, 0,
                          &in[0]));
    OK(tandem_tensor_view(tx, 0, 1, two, NULL, &in[1]));
    OK(tandem_tensor_create(context, TANDEM_F32, 1, none, &empty));
    BAD(tandem_run(context, &op, in, 2, &empty, 1, NULL));
    expect_last_error("depth is 0; expected 1 or more");
}

TEST(test_destroying_tensors_in_use)
{
    struct tandem_tensor *middle = vector_new(context, N);
    struct sim_counters before = counters_read(0);

    unary_on(context, simulated, TANDEM_OP_NEG, tx, middle);
    unary_on(context, simulated, TANDEM_OP_NEG, middle, ty);
    tandem_tensor_destroy(middle);
    tandem_tensor_destroy(tx);
    ck_assert_uint_eq(counters_since(0, &before).executed, 0);
    OK(tensor_wait(ty));
    ck_assert_mem_eq(x, y, sizeof x);
}

TEST_MAIN(host_tests_run("tensor", context_setup, NULL))
