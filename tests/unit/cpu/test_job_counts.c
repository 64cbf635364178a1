/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the jobs and CBLAS calls of the CPU plugin.  Axes of length 1 must not
 * change how an operator is computed, softmax and gather process short rows
 * together, and attention with one query does not multiply matrices.
 * The linker replaces pool_run with a function that records the jobs of the
 * thread pool, and runs them on the calling thread.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "common/iteration_space.h"
#include "cpu/attention/attention.h"
#include "cpu/objects.h"
#include "support/test_list.h"

#define MAX_JOBS 8
#define ELEMENTS 21000

struct job {
    uint32_t kind;
    int64_t tasks, units;
};

static struct job jobs[MAX_JOBS];
static size_t job_count;

/* The linker calls this function instead of pool_run. */
void __wrap_pool_run(struct pool *pool, uint32_t kind, pool_fn fn,
                     const void *work, int64_t tasks, int64_t units);
void __wrap_pool_run(struct pool *pool, uint32_t kind, pool_fn fn,
                     const void *work, int64_t tasks, int64_t units)
{
    (void)pool;
    ck_assert_uint_lt(job_count, MAX_JOBS);
    jobs[job_count++] = (struct job){kind, tasks, units};
    fn(work, 0, tasks);
}

static size_t gemm_count;

/* The linker calls this function instead of cblas_sgemm. */
void __wrap_cblas_sgemm(void);
void __wrap_cblas_sgemm(void)
{
    gemm_count++;
}

static struct tandem_device device;
/* Memory of the operands, large enough for their largest dtype. */
static int64_t memory[4][ELEMENTS];
static struct tandem_buffer buffers[4];

static void device_setup(void)
{
    float *x = (float *)memory[0];
    device.kernels = kernels_choose(NULL);
    device.pool = pool_create(1);
    for (int i = 0; i < 4; i++)
        buffers[i].base = (unsigned char *)memory[i];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i % 7 - 3);
}

static void device_teardown(void)
{
    pool_destroy(device.pool);
}

/* ---- operators ---------------------------------------------------------- */

enum kind {
    REDUCE,
    FIND,
    ALONG,
    UNARY,
    ADD_ROW,
    GATHER,
    GATHER_ELEMENTS,
    NORM
};

static const struct operator
{
    uint32_t id;
    enum kind kind;
    const struct cpu_class *class;
}
operators[] = {
    {TANDEM_OP_SUM, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_MEAN, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_PROD, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_REDUCE_MAX, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_REDUCE_MIN, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_SUM_SQUARE, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_L2, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_LOG_SUM_EXP, REDUCE, &cpu_class_reduce},
    {TANDEM_OP_ARGMAX, FIND, &cpu_class_arg_reduce},
    {TANDEM_OP_ARGMIN, FIND, &cpu_class_arg_reduce},
    {TANDEM_OP_SOFTMAX, ALONG, &cpu_class_softmax},
    {TANDEM_OP_LOG_SOFTMAX, ALONG, &cpu_class_softmax},
    {TANDEM_OP_CUMSUM, ALONG, &cpu_class_cumsum},
    {TANDEM_OP_EXP, UNARY, &cpu_class_unary},
    {TANDEM_OP_COPY, UNARY, &cpu_class_copy},
    {TANDEM_OP_ADD, ADD_ROW, &cpu_class_binary},
    {TANDEM_OP_GATHER, GATHER, &cpu_class_gather},
    {TANDEM_OP_GATHER_ELEMENTS, GATHER_ELEMENTS, &cpu_class_gather},
    {TANDEM_OP_LAYER_NORM, NORM, &cpu_class_norm},
    {TANDEM_OP_RMS_NORM, NORM, &cpu_class_norm},
};

/* Returns a contiguous tensor in buffer number `buffer`. */
static struct tandem_tensor_desc tensor_make(uint32_t buffer, uint32_t dtype,
                                             uint32_t rank,
                                             const int64_t *shape)
{
    struct tandem_tensor_desc tensor = {
        .dtype = dtype, .rank = rank, .buffer = &buffers[buffer]};
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0; stride *= shape[i]) {
        tensor.shape[i] = shape[i];
        tensor.strides[i] = stride;
    }
    ck_assert_int_le(stride, ELEMENTS);
    return tensor;
}

/* Runs the operator on a tensor of this shape, along an axis, and records the
 * jobs.  Gathered rows have the numbers 0. */
static void operator_run(const struct operator* operator, uint32_t rank,
                         const int64_t *shape, uint32_t axis)
{
    const bool reduces = operator->kind == REDUCE || operator->kind == FIND;
    struct tandem_tensor_desc x = tensor_make(0, TANDEM_F32, rank, shape);
    struct tandem_tensor_desc y = tensor_make(1, TANDEM_F32, rank, shape);
    struct tandem_tensor_desc a, b;
    const struct tandem_tensor_desc *inputs[3] = {&x, &a, &b},
                                    *outputs[1] = {&y};
    int64_t ints[3] = {reduces ? INT64_C(1) << axis : axis, 0, 0};
    int64_t small[TANDEM_MAX_RANK];
    const double floats[1] = {1e-5};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = operator->id,
                                 .int_count = 3,
                                 .float_count = 1,
                                 .ints = ints,
                                 .floats = floats};
    uint32_t count = 1;
    memcpy(small, shape, sizeof *shape * rank);
    if (reduces) {
        memmove(small + axis, small + axis + 1,
                sizeof *small * (rank - axis - 1));
        y = tensor_make(1, operator->kind == FIND ? TANDEM_I64 : TANDEM_F32,
                        rank - 1, small);
    } else if (operator->kind == ADD_ROW) {
        small[0] = 1;
        a = tensor_make(2, TANDEM_F32, rank, small);
        count = 2;
    } else if (operator->kind == GATHER) {
        a = tensor_make(2, TANDEM_I32, 1, shape + axis);
        count = 2;
    } else if (operator->kind == GATHER_ELEMENTS) {
        a = tensor_make(2, TANDEM_I32, rank, shape);
        count = 2;
    } else if (operator->kind == NORM) {
        a = tensor_make(2, TANDEM_F32, rank - axis, shape + axis);
        b = tensor_make(3, TANDEM_F32, rank - axis, shape + axis);
        count = operator->id == TANDEM_OP_RMS_NORM ? 2 : 3;
    }
    const struct work work = {.device = &device,
                              .op = &op,
                              .inputs = inputs,
                              .outputs = outputs,
                              .input_count = count,
                              .output_count = 1};
    job_count = 0;
    ck_assert_int_eq(operator->class->run(&work), TANDEM_OK);
}

/* ---- tests -------------------------------------------------------------- */

/* An axis of length 1 anywhere in the shape does not change the jobs. */
LOOP_TEST(test_inserted_axis, CASES_IN(operators))
{
    const struct operator* operator= & operators[_i];
    static const int64_t shape[3] = {10, 300, 7};
    for (uint32_t axis = 0; axis < 3; axis++) {
        static int64_t results[ELEMENTS];
        struct job expected[MAX_JOBS];
        operator_run(operator, 3, shape, axis);
        size_t count = job_count;
        memcpy(expected, jobs, sizeof jobs);
        memcpy(results, memory[1], sizeof results);
        ck_assert_uint_gt(count, 0);
        for (uint32_t at = 0; at <= 3; at++) {
            int64_t longer[4] = {1, 1, 1, 1};
            memcpy(longer, shape, at * sizeof *shape);
            memcpy(longer + at + 1, shape + at, (3 - at) * sizeof *shape);
            /* Layer norm covers all axes from `axis` on, and ADD_ROW repeats
             * the first axis. */
            if (operator->kind == ADD_ROW && at == 0)
                continue;
            operator_run(operator, 4, longer, axis + (at <= axis));
            ck_assert_uint_eq(job_count, count);
            ck_assert_int_eq(memcmp(results, memory[1], sizeof results), 0);
            for (size_t i = 0; i < count; i++)
                ck_assert_msg(jobs[i].kind == expected[i].kind &&
                                  jobs[i].tasks == expected[i].tasks &&
                                  jobs[i].units == expected[i].units,
                              "operator %u, axis %u, length 1 at %u: kind %u, "
                              "%lld tasks of %lld; expected %u, %lld of %lld",
                              operator->id, axis, at, jobs[i].kind,
                              (long long)jobs[i].tasks,
                              (long long)jobs[i].units, expected[i].kind,
                              (long long)expected[i].tasks,
                              (long long)expected[i].units);
        }
    }
}

/* Work along an axis of length 1 is not divided into one task per element. */
LOOP_TEST(test_work_along_unit_axis, CASES_IN(operators))
{
    const struct operator* operator= & operators[_i];
    if (operator->kind == NORM)
        return;
    for (uint32_t axis = 0; axis < 2; axis++) {
        int64_t shape[2] = {ELEMENTS, ELEMENTS}, tasks = 0;
        shape[axis] = 1;
        operator_run(operator, 2, shape, axis);
        for (size_t i = 0; i < job_count; i++)
            tasks += jobs[i].tasks;
        ck_assert_msg(tasks <= ELEMENTS / 64,
                      "operator %u along axis %u: %lld tasks", operator->id,
                      axis, (long long)tasks);
    }
}

/* One task of softmax computes many short rows. */
LOOP_TEST(test_short_rows, 63)
{
    static const struct operator softmax[] = {
        {TANDEM_OP_SOFTMAX, ALONG, &cpu_class_softmax},
        {TANDEM_OP_LOG_SOFTMAX, ALONG, &cpu_class_softmax},
    };
    const int64_t shape[2] = {ELEMENTS / (_i + 1), _i + 1};
    /* The generic level has no kernels for short rows. */
    for (size_t i = 0; i < 2 && _i < device.kernels->short_row; i++) {
        operator_run(&softmax[i], 2, shape, 1);
        ck_assert_uint_eq(job_count, 1);
        ck_assert_int_le(jobs[0].tasks, ELEMENTS / 1000);
    }
}

/* One task of gather copies many short slices. */
LOOP_TEST(test_short_slices, 64)
{
    static const struct operator gather = {TANDEM_OP_GATHER, GATHER,
                                           &cpu_class_gather};
    const int64_t shape[2] = {ELEMENTS / (_i + 1), _i + 1};
    operator_run(&gather, 2, shape, 0);
    ck_assert_uint_eq(job_count, 1);
    ck_assert_int_le(jobs[0].tasks, ELEMENTS / 2048);
}

/* Attention with one query multiplies a vector, not a matrix, by the keys and
 * values. */
TEST(test_attention_with_one_query)
{
    const int64_t ints[] = {0, 0};
    const double floats[] = {0.125, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ATTENTION,
                                 .int_count = 2,
                                 .float_count = 2,
                                 .ints = ints,
                                 .floats = floats};
    for (int64_t queries = 1; queries <= 2; queries++) {
        const int64_t shape[4] = {1, 2, queries, 8}, keys[4] = {1, 2, 300, 8};
        const struct tandem_tensor_desc q =
            tensor_make(0, TANDEM_F32, 4, shape);
        const struct tandem_tensor_desc k = tensor_make(0, TANDEM_F32, 4, keys);
        const struct tandem_tensor_desc v = tensor_make(2, TANDEM_F32, 4, keys);
        const struct tandem_tensor_desc y =
            tensor_make(1, TANDEM_F32, 4, shape);
        const struct tandem_tensor_desc *inputs[3] = {&q, &k, &v},
                                        *outputs[1] = {&y};
        const struct work work = {.device = &device,
                                  .op = &op,
                                  .inputs = inputs,
                                  .outputs = outputs,
                                  .input_count = 3,
                                  .output_count = 1};
        struct attention_job job;
        void *workspace = calloc(1, attention_prepare(&job, &work));
        ck_assert_ptr_nonnull(workspace);
        job_count = gemm_count = 0;
        attention_run(&job, workspace);
        free(workspace);
        /* Two products for each of two blocks of keys of two heads. */
        ck_assert_uint_eq(gemm_count, queries == 1 ? 0 : 8);
    }
}

TEST_MAIN(tests_run_with("job counts", device_setup, device_teardown))
