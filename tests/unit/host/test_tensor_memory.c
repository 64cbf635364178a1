/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may do with the memory of a tensor: forget its content, make
 * it constant, get it back, exchange it, and view it with another dtype.
 */
#include <config.h>

#include "support.h"

#include <pthread.h>
#include <string.h>

#define N 64

static struct tandem_context *context;
static uint32_t simulated, cpu;
static float data[N], other[N];

static void context_setup(void)
{
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    cpu = device_named(context, "cpu");
    count_up(data, N);
    count_up(other, N);
}

static void reads(struct tandem_tensor *tensor, float first)
{
    float values[N];

    OK(tandem_tensor_read(tensor, values, sizeof values,
                          TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(values[i], first * (float)(i + 1));
}

static struct tandem_tensor *vector_with(const float *content)
{
    struct tandem_tensor *tensor = vector_new(context, N);

    OK(tandem_tensor_write(tensor, content, sizeof data));
    return tensor;
}

/* ---- reset ---- */

TEST(test_a_reset_tensor_has_no_content)
{
    struct tandem_tensor *x = vector_with(data), *y = vector_new(context, N);
    float values[N];

    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    OK(tandem_tensor_reset(y));
    ck_assert_uint_eq(residency(y), 0);
    BAD(tandem_tensor_read(y, values, sizeof values, TANDEM_TIMEOUT_INFINITE));
    expect_last_error("reset");
    BAD(unary_status(context, cpu, TANDEM_OP_NEG, y, x));
    unary_on(context, cpu, TANDEM_OP_NEG, x, y);
    reads(y, -1);
    OK(tandem_tensor_reset(y));
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    reads(y, -1);
}

/* Nothing is copied to keep what a reset tensor held. */
TEST(test_a_reset_tensor_is_not_copied)
{
    struct tandem_tensor *x = vector_with(data), *half;
    const int64_t shape[] = {N / 2};
    struct sim_counters before;

    unary_on(context, simulated, TANDEM_OP_NEG, x, x);
    OK(tandem_tensor_view(x, 0, 1, shape, NULL, &half));
    OK(tandem_tensor_reset(x));
    before = counters_read(0);
    OK(tandem_tensor_write(half, data, sizeof data / 2));
    ck_assert_uint_eq(counters_since(0, &before).downloads, 0);
}

/* ---- constants ---- */

TEST(test_a_constant_is_never_written)
{
    struct tandem_tensor *x = vector_with(data), *y = vector_with(data),
                         *wrapped = vector_wrap(context, other, N), *view;
    const int64_t shape[] = {1};
    struct sim_counters before;

    BAD(tandem_tensor_set_constant(vector_new(context, N))); /* no content */
    unary_on(context, simulated, TANDEM_OP_NEG, x, y); /* x is on the device */
    before = counters_read(0);
    OK(tandem_tensor_set_constant(x));
    OK(tandem_tensor_set_constant(x));
    ck_assert_uint_eq(counters_since(0, &before).seals, 1);
    OK(tandem_tensor_set_constant(wrapped));
    OK(tandem_tensor_view(x, 3, 1, shape, NULL, &view));
    BAD(tandem_tensor_write(x, other, sizeof other));
    expect_last_error("constant");
    BAD(tandem_tensor_write(view, other, sizeof other[0]));
    BAD(unary_status(context, cpu, TANDEM_OP_NEG, y, x));
    expect_last_error("output 0");
    BAD(unary_status(context, simulated, TANDEM_OP_NEG, x, x));
    BAD(tandem_tensor_reset(x));
    BAD(tandem_tensor_host_written(wrapped));
    BAD(tandem_tensor_rebind(wrapped, data));
    reads(x, 1);
    unary_on(context, cpu, TANDEM_OP_NEG, x, y);
    reads(y, -1);
    unary_on(context, simulated, TANDEM_OP_NEG, wrapped, y);
    reads(y, -1);
}

/* ---- release ---- */

static void count(void *user)
{
    ++*(int *)user;
}

TEST(test_wrapped_memory_is_released_once)
{
    struct tandem_tensor *x = vector_wrap(context, data, N), *view,
                         *y = vector_new(context, N);
    const int64_t shape[] = {1};
    int released = 0;

    OK(tandem_tensor_set_release(x, count, &released));
    BAD(tandem_tensor_set_release(x, count, &released));
    BAD(tandem_tensor_set_release(x, NULL, NULL));
    BAD(tandem_tensor_set_release(y, count, &released));
    expect_last_error("belongs to the library");
    OK(tandem_tensor_view(x, 3, 1, shape, NULL, &view));
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    tandem_tensor_destroy(x);
    ck_assert_int_eq(released, 0);
    tandem_tensor_destroy(view);
    ck_assert_int_eq(released, 1);
    reads(y, -1);
}

TEST(test_a_context_releases_the_memory_of_its_tensors)
{
    struct tandem_context *own = context_new(NULL);
    int released = 0;

    OK(tandem_tensor_set_release(vector_wrap(own, data, N), count, &released));
    OK(tandem_tensor_set_release(vector_wrap(own, other, N), count, &released));
    tandem_context_destroy(own);
    ck_assert_int_eq(released, 2);
}

static void *destroy(void *tensor)
{
    tandem_tensor_destroy(tensor);
    return NULL;
}

TEST(test_any_thread_releases)
{
    struct tandem_tensor *x = vector_wrap(context, data, N);
    int released = 0;
    pthread_t thread;

    OK(tandem_tensor_set_release(x, count, &released));
    ck_assert_int_eq(pthread_create(&thread, NULL, destroy, x), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(released, 1);
}

/* ---- rebind ---- */

TEST(test_a_rebound_tensor_uses_the_new_memory)
{
    struct tandem_tensor *x = vector_wrap(context, data, N),
                         *y = vector_new(context, N);
    int released = 0;

    OK(tandem_tensor_set_release(x, count, &released));
    for (int i = 0; i < N; i++)
        other[i] *= 2;
    for (uint32_t device = cpu; device <= simulated; device++) {
        unary_on(context, device, TANDEM_OP_NEG, x, y);
        reads(y, -1);
        OK(tandem_tensor_rebind(x, other));
        ck_assert_int_eq(released, 1);
        unary_on(context, device, TANDEM_OP_NEG, x, y);
        reads(y, -2);
        OK(tandem_tensor_rebind(x, data));
    }
    /* Results go to the new memory. */
    OK(tandem_tensor_rebind(x, other));
    unary_on(context, simulated, TANDEM_OP_NEG, y, x);
    OK(tensor_wait(x));
    ck_assert_float_eq(other[1], 4);
    ck_assert_float_eq(data[1], 2);
    unary_on(context, cpu, TANDEM_OP_NEG, x, x);
    OK(tensor_wait(x));
    ck_assert_float_eq(other[1], -4);
    OK(tandem_tensor_set_release(x, count, &released));
    tandem_tensor_destroy(x);
    ck_assert_int_eq(released, 2);
}

/* Memory of another alignment needs another kernel. */
TEST(test_rebound_memory_may_be_less_aligned)
{
    static _Alignas(64) float memory[N + 1];
    struct tandem_tensor *x = vector_wrap(context, memory, N),
                         *y = vector_new(context, N);

    count_up(memory, N);
    for (uint32_t device = cpu; device <= simulated; device++) {
        OK(tandem_tensor_rebind(x, memory));
        unary_on(context, device, TANDEM_OP_NEG, x, y);
        memmove(memory + 1, memory, N * sizeof *memory);
        OK(tandem_tensor_rebind(x, memory + 1));
        unary_on(context, device, TANDEM_OP_NEG, x, y);
        reads(y, -1);
        memmove(memory, memory + 1, N * sizeof *memory);
    }
}

/* The bytes between the elements of strided memory stay as they are. */
TEST(test_rebound_memory_keeps_its_gaps)
{
    static float first[2 * N], second[2 * N];
    const int64_t shape[] = {N}, strides[] = {-2};
    struct tandem_tensor *x, *y = vector_with(data);

    OK(tandem_tensor_wrap(context, first + 2 * N - 2, TANDEM_F32, 1, shape,
                          strides, 0, &x));
    OK(tandem_tensor_rebind(x, second + 2 * N - 2));
    unary_on(context, simulated, TANDEM_OP_NEG, y, x);
    OK(tensor_wait(x));
    for (int i = 0; i < N; i++) {
        ck_assert_float_eq(second[2 * N - 2 - 2 * i], -(float)(i + 1));
        ck_assert_float_eq(second[2 * i + 1], 0);
        ck_assert_float_eq(first[2 * i], 0);
    }
}

struct racer {
    struct tandem_tensor *x, *y;
    uint32_t device;
    int runs;
};

static void *race(void *user)
{
    struct racer *racer = user;

    for (int i = 0; i < racer->runs; i++)
        unary_on(context, racer->device, TANDEM_OP_NEG, racer->x, racer->y);
    return NULL;
}

/* Each call of another thread sees the old memory or the new one, which is less
 * aligned. */
TEST(test_calls_race_with_rebinds)
{
    enum { ROUNDS = 3000 };
    static _Alignas(64) float memory[2][N + 16];
    struct tandem_tensor *x = vector_wrap(context, memory[0], N);
    struct racer racers[2];
    pthread_t threads[2];

    count_up(memory[0], N);
    count_up(memory[1] + 1, N);
    for (uint32_t i = 0; i < 2; i++) {
        racers[i] = (struct racer){x, vector_new(context, N),
                                   i == 0 ? cpu : simulated, ROUNDS};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, race, &racers[i]),
                         0);
    }
    for (int i = 0; i < ROUNDS; i++)
        OK(tandem_tensor_rebind(x, i % 2 ? memory[0] : memory[1] + 1));
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        reads(racers[i].y, -1);
    }
}

/* So do calls that race with tandem_tensor_reset and _set_constant: they are
 * done before, or fail. */
TEST(test_calls_race_with_resets)
{
    struct tandem_tensor *x = vector_with(data), *y = vector_with(data);
    struct racer racer = {x, y, simulated, 1000};
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, race, &racer), 0);
    for (int i = 0; i < 1000; i++)
        OK(tandem_tensor_reset(y));
    OK(tandem_tensor_set_constant(x));
    pthread_join(thread, NULL);
    unary_on(context, cpu, TANDEM_OP_NEG, x, y);
    reads(y, -1);
}

TEST(test_an_empty_tensor_is_rebound)
{
    const int64_t shape[] = {0};
    struct tandem_tensor *x;
    int released = 0;

    OK(tandem_tensor_wrap(context, NULL, TANDEM_F32, 1, shape, NULL, 0, &x));
    OK(tandem_tensor_set_release(x, count, &released));
    OK(tandem_tensor_rebind(x, other));
    ck_assert_int_eq(released, 1);
}

TEST(test_other_tensors_are_not_rebound)
{
    struct tandem_tensor *x = vector_wrap(context, data, N), *view;
    const int64_t shape[] = {1};

    BAD(tandem_tensor_rebind(vector_new(context, N), other));
    BAD(tandem_tensor_rebind(NULL, other));
    BAD(tandem_tensor_rebind(x, NULL));
    BAD(tandem_tensor_rebind(x, (char *)other + 2));
    OK(tandem_tensor_view(x, 3, 1, shape, NULL, &view));
    BAD(tandem_tensor_rebind(x, other));
    expect_last_error("views");
    BAD(tandem_tensor_rebind(view, other));
    tandem_tensor_destroy(view);
    OK(tandem_tensor_rebind(x, other));
}

/* ---- buffers of the program ---- */

static const struct tandem_backend *plugin;
static struct tandem_device *device;
static struct tandem_stream *stream;

static struct tandem_buffer *buffer_with(const float *content)
{
    struct tandem_buffer *buffer;

    OK(tandem_device_backend(context, simulated, &plugin, &device));
    if (stream == NULL)
        OK(plugin->stream_create(device, 0, &stream));
    OK(plugin->alloc(device, TANDEM_BYTES(sizeof data), &buffer));
    OK(plugin->upload(stream, buffer, 0, content, sizeof data, 0));
    OK(plugin->stream_synchronize(stream, TANDEM_TIMEOUT_INFINITE));
    return buffer;
}

static void buffer_holds(struct tandem_buffer *buffer, float first)
{
    float values[N];

    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    OK(plugin->download(stream, buffer, 0, values, sizeof values, 0,
                        TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(values[i], first * (float)(i + 1));
}

TEST(test_a_tensor_may_use_a_buffer_of_the_program)
{
    struct tandem_buffer *buffer = buffer_with(data);
    struct tandem_tensor *x, *y = vector_new(context, N);
    const int64_t shape[] = {N};
    struct sim_counters before;
    int released = 0;

    OK(tandem_tensor_from_buffer(context, simulated, buffer, TANDEM_F32, 1,
                                 shape, &x));
    OK(tandem_tensor_set_release(x, count, &released));
    before = counters_read(0);
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    unary_on(context, simulated, TANDEM_OP_NEG, x, x);
    ck_assert_uint_eq(counters_since(0, &before).upload_bytes, 0);
    buffer_holds(buffer, -1);
    reads(y, -1);
    reads(x, -1);
    /* Another device writes the tensor. */
    unary_on(context, cpu, TANDEM_OP_ABS, x, x);
    OK(tandem_tensor_prefetch(x, simulated));
    buffer_holds(buffer, 1);
    OK(tandem_tensor_write(x, other, sizeof other));
    OK(tandem_tensor_set_constant(x));
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    reads(y, -1);
    before = counters_read(0);
    tandem_tensor_destroy(x);
    ck_assert_uint_eq(counters_since(0, &before).frees, 0);
    ck_assert_int_eq(released, 1);
    plugin->free(buffer);
    plugin->stream_destroy(stream);
}

/* The simulated device has not yet read the buffer when the tensor is
 * destroyed. */
TEST(test_a_buffer_in_use_is_released_later)
{
    struct tandem_buffer *buffer = buffer_with(data);
    struct tandem_tensor *x, *y = vector_new(context, N);
    const int64_t shape[] = {N};
    int released = 0;

    OK(tandem_tensor_from_buffer(context, simulated, buffer, TANDEM_F32, 1,
                                 shape, &x));
    OK(tandem_tensor_set_release(x, count, &released));
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    tandem_tensor_destroy(x);
    ck_assert_int_eq(released, 0);
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    ck_assert_int_eq(released, 1);
    reads(y, -1);
    plugin->free(buffer);
    plugin->stream_destroy(stream);
}

TEST(test_other_buffers_are_refused)
{
    struct tandem_buffer *buffer = buffer_with(data);
    const int64_t shape[] = {N}, negative[] = {-1};
    struct tandem_tensor *x;

    BAD(tandem_tensor_from_buffer(NULL, simulated, buffer, TANDEM_F32, 1, shape,
                                  &x));
    BAD(tandem_tensor_from_buffer(context, 15, buffer, TANDEM_F32, 1, shape,
                                  &x));
    BAD(tandem_tensor_from_buffer(context, simulated, NULL, TANDEM_F32, 1,
                                  shape, &x));
    BAD(tandem_tensor_from_buffer(context, simulated, buffer, TANDEM_F32, 1,
                                  negative, &x));
    BAD(tandem_tensor_from_buffer(context, simulated, buffer, TANDEM_F32, 1,
                                  shape, NULL));
    FAILS(TANDEM_UNSUPPORTED,
          tandem_tensor_from_buffer(context, cpu, buffer, TANDEM_F32, 1, shape,
                                    &x));
    expect_last_error("tandem_tensor_wrap");
    ck_assert_ptr_null(x);
    /* The plugin finds out that the buffer is too small. */
    OK(tandem_tensor_from_buffer(context, simulated, buffer, TANDEM_F32, 1,
                                 (int64_t[]){2 * N}, &x));
    BAD(unary_status(context, simulated, TANDEM_OP_NEG, x,
                     vector_new(context, 2 * N)));
    tandem_tensor_destroy(x);
    plugin->free(buffer);
    plugin->stream_destroy(stream);
}

/* ---- views with another dtype ---- */

TEST(test_a_view_may_have_another_dtype)
{
    struct tandem_tensor *x = vector_with(data), *bits, *bytes, *y;
    const int64_t one[] = {1}, four[] = {2, 2};
    int32_t value;
    uint8_t last[4];

    OK(tandem_tensor_reinterpret(x, TANDEM_I32, 4 * (N - 1), 1, one, NULL,
                                 &bits));
    OK(tandem_tensor_read(bits, &value, sizeof value, TANDEM_TIMEOUT_INFINITE));
    ck_assert_int_eq(value, 0x42800000); /* 64.0f */
    OK(tandem_tensor_reinterpret(x, TANDEM_U8, 4 * (N - 1), 2, four, NULL,
                                 &bytes));
    OK(tandem_tensor_read(bytes, last, sizeof last, TANDEM_TIMEOUT_INFINITE));
    ck_assert_uint_eq(last[3], 0x42);
    /* Both are views of the memory of x. */
    value = 0x43000000; /* 128.0f */
    OK(tandem_tensor_write(bits, &value, sizeof value));
    OK(tandem_tensor_create(context, TANDEM_F32, 1, (int64_t[]){N}, &y));
    unary_on(context, simulated, TANDEM_OP_NEG, x, y);
    OK(tandem_tensor_reinterpret(y, TANDEM_I32, 4 * (N - 1), 1, one, NULL,
                                 &bits));
    OK(tandem_tensor_read(bits, &value, sizeof value, TANDEM_TIMEOUT_INFINITE));
    ck_assert_uint_eq((uint32_t)value, 0xc3000000);
}

TEST(test_a_view_stays_inside_and_aligned)
{
    struct tandem_tensor *x = vector_with(data), *wrapped, *view;
    const int64_t one[] = {1}, many[] = {N / 2}, none[] = {0};

    BAD(tandem_tensor_reinterpret(x, TANDEM_I32, 2, 1, one, NULL, &view));
    expect_last_error("aligned");
    ck_assert_ptr_null(view);
    BAD(tandem_tensor_reinterpret(x, TANDEM_I32, -4, 1, one, NULL, &view));
    BAD(tandem_tensor_reinterpret(x, TANDEM_I64, 8, 1, many, NULL, &view));
    BAD(tandem_tensor_reinterpret(x, TANDEM_I64, INT64_MAX, 1, one, NULL,
                                  &view));
    BAD(tandem_tensor_reinterpret(x, TANDEM_I64, 0, 1, one, NULL, NULL));
    FAILS(TANDEM_UNSUPPORTED,
          tandem_tensor_reinterpret(x, 7, 0, 1, one, NULL, &view));
    OK(tandem_tensor_reinterpret(x, TANDEM_I64, 0, 1, many, NULL, &view));
    OK(tandem_tensor_reinterpret(x, TANDEM_I64, 0, 1, none, NULL, &view));
    /* Alignment is that of the address. */
    wrapped = vector_wrap(context, other + ((uintptr_t)other % 8 == 0), 4);
    BAD(tandem_tensor_reinterpret(wrapped, TANDEM_I64, 0, 1, one, NULL, &view));
    OK(tandem_tensor_reinterpret(wrapped, TANDEM_I64, 4, 1, one, NULL, &view));
}

TEST(test_views_of_other_dtypes_overlap)
{
    struct tandem_tensor *x = vector_with(data), *bits;
    const int64_t shape[] = {N};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_CAST};

    OK(tandem_tensor_reinterpret(x, TANDEM_I32, 0, 1, shape, NULL, &bits));
    BAD(tandem_run(context, &op, &x, 1, &bits, 1, NULL));
    expect_last_error("overlaps");
}

TEST_MAIN(host_tests_run("tensor memory", context_setup, NULL))
