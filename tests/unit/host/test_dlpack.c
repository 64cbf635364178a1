/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors from and to DLPack: who owns the memory, when the deleter is called,
 * and what is refused. check-dlpack shares tensors with NumPy.
 */
#include <config.h>

#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The structs of dlpack.h, of DLPack 1.1. */
struct element_type {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    struct element_type dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct DLManagedTensor {
    struct dl_tensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    struct dl_tensor dl_tensor;
};

#define ROWS 3
#define COLUMNS 4
#define N (ROWS * COLUMNS)

static struct tandem_context *context;
static uint32_t simulated, cpu;
static float data[N];
static int deleted;

static void context_setup(void)
{
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    cpu = device_named(context, "cpu");
    count_up(data, N);
    deleted = 0;
}

static void versioned_deleter(struct DLManagedTensorVersioned *self)
{
    ck_assert_ptr_eq(self->manager_ctx, &deleted);
    deleted++;
}

static void legacy_deleter(struct DLManagedTensor *self)
{
    ck_assert_ptr_eq(self->manager_ctx, &deleted);
    deleted++;
}

static int64_t shape[] = {ROWS, COLUMNS};

static struct dl_tensor matrix(void)
{
    return (struct dl_tensor){.data = data,
                              .device_type = 1,
                              .ndim = 2,
                              .dtype = {2, 32, 1},
                              .shape = shape};
}

static struct DLManagedTensorVersioned versioned(void)
{
    return (struct DLManagedTensorVersioned){.major = 1,
                                             .minor = 1,
                                             .manager_ctx = &deleted,
                                             .deleter = versioned_deleter,
                                             .dl_tensor = matrix()};
}

static struct DLManagedTensor legacy(void)
{
    return (struct DLManagedTensor){.manager_ctx = &deleted,
                                    .deleter = legacy_deleter,
                                    .dl_tensor = matrix()};
}

static void negated(struct tandem_tensor *x, uint32_t device)
{
    struct tandem_tensor *y = matrix_new(context, ROWS, COLUMNS);
    float values[N];

    unary_on(context, device, TANDEM_OP_NEG, x, y);
    OK(tandem_tensor_read(y, values, sizeof values, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(values[i], -(float)(i + 1));
    tandem_tensor_destroy(y);
}

/* ---- import ---- */

TEST(test_imported_memory_is_used_without_a_copy)
{
    struct DLManagedTensorVersioned managed = versioned();
    struct DLManagedTensor old = legacy();
    struct tandem_tensor *x, *y;
    const void *memory;

    OK(tandem_tensor_from_dlpack(context, &managed, &x));
    negated(x, cpu);
    negated(x, simulated);
    OK(tandem_tensor_host_data(x, TANDEM_TIMEOUT_INFINITE, &memory));
    ck_assert_ptr_eq(memory, data);
    ck_assert_int_eq(deleted, 0);
    tandem_tensor_destroy(x);
    ck_assert_int_eq(deleted, 1);
    OK(tandem_tensor_from_dlpack_legacy(context, &old, &y));
    negated(y, simulated);
    tandem_tensor_destroy(y);
    ck_assert_int_eq(deleted, 2);
}

TEST(test_imported_strides_and_offset_count)
{
    struct DLManagedTensorVersioned managed = versioned();
    int64_t strides[] = {1, ROWS};
    float values[N], shifted[N + 1];
    struct tandem_tensor *x;

    memcpy(shifted + 1, data, sizeof data);
    managed.dl_tensor.data = shifted;
    managed.dl_tensor.byte_offset = sizeof shifted[0];
    managed.dl_tensor.strides = strides;
    OK(tandem_tensor_from_dlpack(context, &managed, &x));
    OK(tandem_tensor_read(x, values, sizeof values, TANDEM_TIMEOUT_INFINITE));
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            ck_assert_float_eq(values[row * COLUMNS + column],
                               (float)(row + column * ROWS + 1));
    tandem_tensor_destroy(x);
}

TEST(test_read_only_memory_stays_as_it_is)
{
    struct DLManagedTensorVersioned managed = versioned();
    struct tandem_tensor *x;

    managed.flags = 1;
    OK(tandem_tensor_from_dlpack(context, &managed, &x));
    BAD(unary_status(context, cpu, TANDEM_OP_NEG, x, x));
    expect_last_error("read-only");
    negated(x, simulated);
    tandem_tensor_destroy(x);
}

/* A tensor without a deleter belongs to the program. */
TEST(test_a_deleter_is_optional)
{
    struct DLManagedTensorVersioned managed = versioned();
    struct tandem_tensor *x;

    managed.deleter = NULL;
    OK(tandem_tensor_from_dlpack(context, &managed, &x));
    negated(x, cpu);
    tandem_tensor_destroy(x);
}

TEST(test_a_context_calls_the_deleters)
{
    struct DLManagedTensorVersioned managed = versioned();
    struct tandem_context *own = context_new(NULL);
    struct tandem_tensor *x;

    OK(tandem_tensor_from_dlpack(own, &managed, &x));
    tandem_context_destroy(own);
    ck_assert_int_eq(deleted, 1);
}

static void refused(enum tandem_status expected,
                    struct DLManagedTensorVersioned managed)
{
    struct tandem_tensor *x = (void *)&managed;
    struct DLManagedTensor old = legacy();

    FAILS(expected, tandem_tensor_from_dlpack(context, &managed, &x));
    ck_assert_ptr_null(x);
    if (managed.major == 1) {
        old.dl_tensor = managed.dl_tensor;
        FAILS(expected, tandem_tensor_from_dlpack_legacy(context, &old, &x));
    }
    ck_assert_int_eq(deleted, 0);
}

TEST(test_foreign_memory_and_types_are_refused)
{
    struct DLManagedTensorVersioned managed = versioned();
    struct tandem_tensor *x;
    int64_t negative[] = {ROWS, -COLUMNS}, huge[] = {INT64_MAX, INT64_MAX};

    managed.dl_tensor.device_type = 2; /* CUDA */
    refused(TANDEM_UNSUPPORTED, managed);
    expect_last_error("device type 2");
    managed = versioned();
    managed.dl_tensor.dtype = (struct element_type){5, 64, 1}; /* complex */
    refused(TANDEM_UNSUPPORTED, managed);
    managed.dl_tensor.dtype = (struct element_type){2, 32, 4};
    refused(TANDEM_UNSUPPORTED, managed);
    expect_last_error("4 lanes");
    managed = versioned();
    managed.major = 2;
    refused(TANDEM_UNSUPPORTED, managed);
    managed = versioned();
    managed.dl_tensor.ndim = TANDEM_MAX_RANK + 1;
    refused(TANDEM_UNSUPPORTED, managed);
    managed.dl_tensor.ndim = -1;
    refused(TANDEM_INVALID_ARGUMENT, managed);
    managed = versioned();
    managed.dl_tensor.data = NULL;
    refused(TANDEM_INVALID_ARGUMENT, managed);
    managed = versioned();
    managed.dl_tensor.data = (char *)data + 1;
    refused(TANDEM_INVALID_ARGUMENT, managed);
    managed = versioned();
    managed.dl_tensor.shape = NULL;
    refused(TANDEM_INVALID_ARGUMENT, managed);
    managed.dl_tensor.shape = negative;
    refused(TANDEM_INVALID_ARGUMENT, managed);
    managed = versioned();
    managed.dl_tensor.strides = huge;
    refused(TANDEM_INVALID_ARGUMENT, managed);
    managed = versioned();
    BAD(tandem_tensor_from_dlpack(context, NULL, &x));
    BAD(tandem_tensor_from_dlpack(context, &managed, NULL));
    BAD(tandem_tensor_from_dlpack(NULL, &managed, &x));
    BAD(tandem_tensor_from_dlpack_legacy(context, NULL, &x));
    ck_assert_int_eq(deleted, 0);
}

/* ---- export ---- */

static struct tandem_tensor *matrix_on_device(struct tandem_context *owner)
{
    struct tandem_tensor *x = matrix_new(owner, ROWS, COLUMNS);

    OK(tandem_tensor_write(x, data, sizeof data));
    unary_on(owner, device_named(owner, "simulated"), TANDEM_OP_NEG, x, x);
    return x;
}

static void holds_result(const struct dl_tensor *tensor)
{
    const float *values =
        (const float *)(void *)((char *)tensor->data + tensor->byte_offset);

    ck_assert_int_eq(tensor->device_type, 1);
    ck_assert_int_eq(tensor->device_id, 0);
    ck_assert_int_eq(tensor->ndim, 2);
    ck_assert_uint_eq(tensor->dtype.code, 2);
    ck_assert_uint_eq(tensor->dtype.bits, 32);
    ck_assert_uint_eq(tensor->dtype.lanes, 1);
    ck_assert_int_eq(tensor->shape[0], ROWS);
    ck_assert_int_eq(tensor->shape[1], COLUMNS);
    ck_assert_int_eq(tensor->strides[0], COLUMNS);
    ck_assert_int_eq(tensor->strides[1], 1);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(values[i], -(float)(i + 1));
}

static void *delete_in_thread(void *exported)
{
    struct DLManagedTensorVersioned *managed = exported;

    managed->deleter(managed);
    return NULL;
}

/* The memory outlives the tensor and the context. */
TEST(test_exported_memory_outlives_the_context)
{
    struct tandem_context *own = context_new(NULL);
    struct tandem_tensor *x = matrix_on_device(own);
    struct DLManagedTensorVersioned *first, *second;
    struct DLManagedTensor *old;
    pthread_t thread;

    OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &first));
    OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &second));
    OK(tandem_tensor_to_dlpack_legacy(x, TANDEM_TIMEOUT_INFINITE, &old));
    ck_assert_uint_eq(first->major, 1);
    ck_assert_uint_eq(first->flags, 0);
    ck_assert_ptr_eq(first->dl_tensor.data, second->dl_tensor.data);
    first->deleter(first);
    tandem_tensor_destroy(x);
    holds_result(&second->dl_tensor);
    tandem_context_destroy(own);
    holds_result(&second->dl_tensor);
    ck_assert_int_eq(pthread_create(&thread, NULL, delete_in_thread, second),
                     0);
    pthread_join(thread, NULL);
    holds_result(&old->dl_tensor);
    old->deleter(old);
}

/* A tensor that was imported, exported and imported again is deleted when its
 * last user is. */
TEST(test_an_imported_tensor_can_be_exported)
{
    struct DLManagedTensorVersioned managed = versioned(), *exported;
    struct tandem_tensor *x, *y;

    OK(tandem_tensor_from_dlpack(context, &managed, &x));
    OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &exported));
    ck_assert_ptr_eq(exported->dl_tensor.data, data);
    tandem_tensor_destroy(x);
    ck_assert_int_eq(deleted, 0);
    OK(tandem_tensor_from_dlpack(context, exported, &y));
    negated(y, simulated);
    tandem_tensor_destroy(y);
    ck_assert_int_eq(deleted, 1);
}

/* The consumer's changes count after tandem_tensor_host_written. */
TEST(test_the_consumer_may_write)
{
    struct tandem_tensor *x = matrix_on_device(context);
    struct DLManagedTensorVersioned *exported;
    float values[N];

    BAD(tandem_tensor_host_written(x));
    OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &exported));
    memcpy(exported->dl_tensor.data, data, sizeof data);
    OK(tandem_tensor_host_written(x));
    negated(x, simulated);
    /* A later operator writes the same memory on the CPU. */
    unary_on(context, cpu, TANDEM_OP_NEG, x, x);
    OK(tandem_tensor_read(x, values, sizeof values, TANDEM_TIMEOUT_INFINITE));
    holds_result(&exported->dl_tensor);
    exported->deleter(exported);
}

TEST(test_what_must_not_be_written_is_marked)
{
    struct tandem_tensor *x = matrix_on_device(context);
    struct DLManagedTensorVersioned *exported;
    struct DLManagedTensor *old = NULL;

    OK(tandem_tensor_set_constant(x));
    OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &exported));
    ck_assert_uint_eq(exported->flags, 1);
    exported->deleter(exported);
    FAILS(TANDEM_UNSUPPORTED,
          tandem_tensor_to_dlpack_legacy(x, TANDEM_TIMEOUT_INFINITE, &old));
    ck_assert_ptr_null(old);
}

TEST(test_a_tensor_without_content_is_not_exported)
{
    struct DLManagedTensorVersioned *exported = (void *)&exported;
    struct DLManagedTensor *old = (void *)&old;
    struct tandem_tensor *x = matrix_new(context, ROWS, COLUMNS);

    BAD(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &exported));
    ck_assert_ptr_null(exported);
    BAD(tandem_tensor_to_dlpack_legacy(x, TANDEM_TIMEOUT_INFINITE, &old));
    ck_assert_ptr_null(old);
    BAD(tandem_tensor_to_dlpack(NULL, 0, &exported));
    BAD(tandem_tensor_to_dlpack(x, 0, NULL));
    BAD(tandem_tensor_to_dlpack_legacy(NULL, 0, &old));
    BAD(tandem_tensor_to_dlpack_legacy(x, 0, NULL));
}

/* A rebound tensor leaves its old memory to the consumer. */
TEST(test_a_rebound_tensor_leaves_the_exported_memory)
{
    static float other[N];
    struct DLManagedTensorVersioned managed = versioned(), *exported;
    struct tandem_tensor *x;

    OK(tandem_tensor_from_dlpack(context, &managed, &x));
    OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &exported));
    OK(tandem_tensor_rebind(x, other));
    ck_assert_int_eq(deleted, 0);
    exported->deleter(exported);
    ck_assert_int_eq(deleted, 1);
}

TEST(test_every_dtype_comes_back)
{
    static const uint32_t dtypes[] = {
        TANDEM_I8,  TANDEM_I16,  TANDEM_I32, TANDEM_I64, TANDEM_U8,
        TANDEM_U16, TANDEM_U32,  TANDEM_U64, TANDEM_F16, TANDEM_F32,
        TANDEM_F64, TANDEM_BF16, TANDEM_BOOL};
    static const struct element_type types[] = {
        {0, 8, 1},  {0, 16, 1}, {0, 32, 1}, {0, 64, 1}, {1, 8, 1},
        {1, 16, 1}, {1, 32, 1}, {1, 64, 1}, {2, 16, 1}, {2, 32, 1},
        {2, 64, 1}, {4, 16, 1}, {6, 8, 1}};
    const int64_t one[] = {1};
    const char zeros[8] = {0};

    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        struct DLManagedTensorVersioned *exported;
        struct tandem_tensor *x, *y;
        uint32_t dtype, rank;

        OK(tandem_tensor_create(context, dtypes[i], 1, one, &x));
        OK(tandem_tensor_write(x, zeros, types[i].bits / 8));
        OK(tandem_tensor_to_dlpack(x, TANDEM_TIMEOUT_INFINITE, &exported));
        ck_assert_mem_eq(&exported->dl_tensor.dtype, &types[i],
                         sizeof types[i]);
        OK(tandem_tensor_from_dlpack(context, exported, &y));
        OK(tandem_tensor_describe(y, &dtype, &rank, NULL, NULL));
        ck_assert_uint_eq(dtype, dtypes[i]);
        tandem_tensor_destroy(x);
        tandem_tensor_destroy(y);
    }
}

TEST_MAIN(host_tests_run("dlpack", context_setup, NULL))
