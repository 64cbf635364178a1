/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "user-cases": operators and sizes of the performance reports that
 * motivated Tandem.  The data is in device memory, or on the host before and
 * after; the device is given, or chosen by the library.
 */
#include <config.h>

#include "library_run.h"
#ifdef BENCH_OPENCL
#include "raw_opencl.h"
#endif

#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {1000, 10000, 100000, 1000000};
static const char *const flat_ops[] = {
    "add",  "dot",     "relu", "leaky_relu", "elu",
    "clip", "sigmoid", "tanh", "swish",      "gelu",
};
static const char *const row_ops[] = {"softmax", "log_softmax"};
static const struct {
    const char *op, *shape, *detail;
} others[] = {
    {"log_softmax", "4096x10", ""},
    /* Short rows. */
    {"log_softmax", "500000x8", ""},
    {"softmax", "1000000x8", ""},
    {"gather", "1000000x1", ""},
    {"gather", "250000x4", ""},
    {"gather", "20000x64", ""},
    {"gemm", "100x100x100", ""},
    {"gemm", "256x256x256", ""},
    {"gemm", "500x500x500", ""},
    {"gemm", "512x512x512", ""},
    {"gemm", "1000x1000x1000", ""},
    {"gemm", "1024x1024x1024", ""},
    {"gemm", "4096x4096x4096", ""},
    {"gemm", "1024x2048x784", "bias+relu"},
    {"gemm", "8192x4096x4096", "bias+relu"},
    {"transpose", "1000x1000", ""},
    {"transpose", "4096x4096", ""},
    {"reduce_sum", "1000x1000", "axis=0"},
    {"reduce_sum", "1000x1000", "axis=1"},
    {"reduce_max", "1000x1000", "axis=0"},
    {"reduce_max", "1000x1000", "axis=1"},
    {"reduce_sum", "1x100000", "axis=0"},
    {"reduce_sum", "1x100000", "axis=1"},
    {"argmax", "100000x1", "axis=1"},
    {"reduce_mean", "4096x4096", "axis=0"},
    {"reduce_mean", "4096x4096", "axis=1"},
    /* 16 filters of 5x5; the result is 32x16x24x24. */
    {"conv2d", "32x1x28x28", "16 filters 5x5"},
    {"max_pool", "32x16x24x24", "3x3"},
};

static void list_mode(struct list *list, const char *mode)
{
    for (size_t i = 0; i < COUNT(flat_ops); i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            list_add_shape(list, flat_ops[i], 1, &sizes[j], "", mode);
    for (size_t i = 0; i < COUNT(row_ops); i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            list_add_shape(list, row_ops[i], 2,
                           (int64_t[]){sizes[j] / 1000, 1000}, "", mode);
    for (size_t i = 0; i < COUNT(others); i++)
        list_add(list, others[i].op, others[i].shape, others[i].detail, mode);
}

void user_cases_list(struct list *list)
{
    list_mode(list, "stream");
    list_mode(list, "host");
}

#ifdef BENCH_OPENCL
/* Uploads of the inputs and download of the output, without Tandem. */
struct round_trip {
    struct raw_opencl *raw_opencl;
    const struct op_case *c;
    cl_mem buffers[TANDEM_MAX_OPERANDS + 1]; /* inputs, then output 0 */
    void *memory[TANDEM_MAX_OPERANDS + 1];
    size_t bytes[TANDEM_MAX_OPERANDS + 1];
    bool add; /* the operator is add, which the raw kernel computes */
};

static bool round_trip_open(struct round_trip *round_trip,
                            const struct op_case *c)
{
    round_trip->c = c;
    round_trip->add = c->op.id == TANDEM_OP_ADD;
    for (uint32_t i = 0; i <= c->inputs; i++) {
        uint64_t bytes =
            (uint64_t)desc_bytes(i < c->inputs ? &c->in[i] : &c->out[0]);

        round_trip->bytes[i] = bytes;
        round_trip->memory[i] = aligned_alloc(64, (bytes + 127) / 64 * 64);
        round_trip->buffers[i] =
            raw_opencl_buffer(round_trip->raw_opencl, bytes);
        if (round_trip->memory[i] == NULL || round_trip->buffers[i] == NULL)
            return false;
        memset(round_trip->memory[i], 0, bytes);
    }
    return true;
}

static void round_trip_close(struct round_trip *round_trip)
{
    for (uint32_t i = 0; i <= TANDEM_MAX_OPERANDS; i++) {
        raw_opencl_free(round_trip->buffers[i]);
        free(round_trip->memory[i]);
    }
}

static bool round_trip_add(struct round_trip *round_trip)
{
    return raw_opencl_add(round_trip->raw_opencl, round_trip->buffers[0],
                          round_trip->buffers[1], round_trip->buffers[2],
                          (cl_uint)(round_trip->bytes[0] / sizeof(float))) ==
           CL_SUCCESS;
}

static bool round_trip_run(void *argument)
{
    struct round_trip *t = argument;
    cl_command_queue queue = t->raw_opencl->queue;
    uint32_t inputs = t->c->inputs;

    for (uint32_t i = 0; i < inputs; i++)
        if (clEnqueueWriteBuffer(queue, t->buffers[i], CL_FALSE, 0, t->bytes[i],
                                 t->memory[i], 0, NULL, NULL) != CL_SUCCESS)
            return false;
    if (t->add && !round_trip_add(t))
        return false;
    return clEnqueueReadBuffer(queue, t->buffers[inputs], CL_TRUE, 0,
                               t->bytes[inputs], t->memory[inputs], 0, NULL,
                               NULL) == CL_SUCCESS;
}
static BENCH_FN(round_trips, round_trip_run, NULL);

/* Runs the raw kernel on data in device memory. */
static bool add_resident(void *argument)
{
    return round_trip_add(argument);
}

static BENCH_FN(adds_resident, add_resident, raw_opencl_wait);

/* Adds an implementation that uses OpenCL directly. */
static void add_raw_opencl(struct bench *bench, struct comparison *comparison,
                           struct round_trip *round_trip,
                           const struct op_case *c, bool resident)
{
    if (!bench_on(bench, "opencl"))
        return;
    round_trip->raw_opencl = raw_opencl_of(bench);
    if (round_trip->raw_opencl == NULL || !round_trip_open(round_trip, c))
        return;
    if (resident)
        comparison_add(comparison, "a plain kernel", adds_resident, round_trip);
    else
        comparison_add(comparison,
                       round_trip->add ? "write, kernel, read" : "write, read",
                       round_trips, round_trip);
}
#endif

static void comparison_with_raw(struct bench *bench,
                                struct comparison *comparison,
                                const struct op_case *c, bool resident)
{
#ifdef BENCH_OPENCL
    struct round_trip round_trip = {.raw_opencl = NULL};

    add_raw_opencl(bench, comparison, &round_trip, c, resident);
    bench_compare(bench, comparison);
    round_trip_close(&round_trip);
#else
    (void)c;
    (void)resident;
    bench_compare(bench, comparison);
#endif
}

static void run_host(struct bench *bench)
{
    struct comparison comparison = {.unit = "ns"};
    struct library_run library_run;

    if (library_run_open(&library_run, bench, bench->row, bench->device) &&
        library_run_check(&library_run)) {
        comparison_add(&comparison, "Tandem", library_run_host_to_host,
                       &library_run);
        comparison_with_raw(bench, &comparison, &library_run.c, false);
    }
    library_run_close(&library_run);
}

static void run_resident(struct bench *bench)
{
    struct comparison comparison = {.unit = "ns"};
    struct resident_op work;

    if (!bench_resident_op(bench, &work))
        return;
    if (check_resident_op(bench, &work)) {
        comparison_add(&comparison, "Tandem", resident_op_run, &work);
        /* Other operators are compared with a copy of as many bytes, which is
         * not an upper bound; PyTorch is. */
        if (bench_on(bench, "opencl") && work.c.op.id == TANDEM_OP_ADD)
            comparison_with_raw(bench, &comparison, &work.c, true);
        else
            copy_baseline_comparison(bench, &comparison, work.c.bytes);
    }
    resident_op_destroy(&work);
}

void user_cases_run(struct bench *bench)
{
    if (strcmp(bench->row->mode, "host") == 0)
        run_host(bench);
    else if (strcmp(bench->row->op, "gemm") == 0 &&
             tandem_op_by_name("gemm") != NULL)
        gemm_run(bench);
    else if (bench->device != TANDEM_ANY_DEVICE)
        run_resident(bench);
}
