/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of the workload of libtandem; see host_workload.h. */
#include "host_workload.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N 1000
#define SIDE 24
#define VIEWS 80

static float in[LARGE_ELEMENTS], want[LARGE_ELEMENTS], got[LARGE_ELEMENTS];

static bool values_match(const float *values, uint32_t count, const char *what)
{
    char text[128];

    for (uint32_t i = 0; i < count; i++)
        if (!(fabsf(values[i] - want[i]) <=
              1e-4f * fmaxf(1.0f, fabsf(want[i])))) {
            snprintf(text, sizeof text, "%s: element %u is %g, not %g", what, i,
                     (double)values[i], (double)want[i]);
            host_violation(text);
            return false;
        }
    return true;
}

static bool must(bool good, const char *what)
{
    if (!good)
        host_violation(what);
    return good;
}

static bool tensor_matches(struct tandem_tensor *tensor, uint32_t count,
                           const char *what)
{
    memset(got, 0xff, count * sizeof(float));
    return HOST_TRY(tandem_tensor_read(tensor, got, count * sizeof(float),
                                       TANDEM_TIMEOUT_INFINITE)) &&
           values_match(got, count, what);
}

/* Evaluates a call that creates a tensor, or sets it to NULL if it fails. */
#define CREATED(tensor, call)                                                  \
    (*(tensor) = (void *)in,                                                   \
     must(HOST_TRY(call) == (*(tensor) != NULL), #call ": the tensor") &&      \
         *(tensor) != NULL)

static bool created(struct host_workload *work, uint32_t rank,
                    const int64_t *shape, struct tandem_tensor **out)
{
    return CREATED(
        out, tandem_tensor_create(work->context, TANDEM_F32, rank, shape, out));
}

static bool wrapped(struct host_workload *work, float *data, int64_t count,
                    int64_t stride, struct tandem_tensor **out)
{
    return CREATED(out, tandem_tensor_wrap(work->context, data, TANDEM_F32, 1,
                                           &count, &stride, 0, out));
}

static void tensors_destroy(struct tandem_tensor **tensors, int count)
{
    host_call_begin();
    for (int i = 0; i < count; i++)
        tandem_tensor_destroy(tensors[i]);
    host_call_end();
}

static bool unary(struct host_workload *work, uint32_t device, uint32_t id,
                  struct tandem_tensor *from, struct tandem_tensor *to)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return device == TANDEM_ANY_DEVICE
               ? HOST_TRY(
                     tandem_run(work->context, &op, &from, 1, &to, 1, NULL))
               : HOST_TRY(tandem_run(work->context, &op, &from, 1, &to, 1,
                                     TANDEM_RUN_ON(device)));
}

/* ---- sections ---- */

/* Two operators, which a transfer precedes and follows. */
static bool chain(struct host_workload *work, uint32_t device, uint32_t count)
{
    const int64_t shape = count;
    struct tandem_tensor *t[2] = {NULL, NULL};
    bool passed;

    for (uint32_t i = 0; i < count; i++) {
        in[i] = (float)(i % 1000) * 0.5f - 100.0f;
        want[i] = in[i] > 0 ? -in[i] : 0;
    }
    passed = created(work, 1, &shape, &t[0]) &&
             created(work, 1, &shape, &t[1]) &&
             HOST_TRY(tandem_tensor_write(t[0], in, count * sizeof(float))) &&
             unary(work, device, TANDEM_OP_RELU, t[0], t[1]) &&
             unary(work, device, TANDEM_OP_NEG, t[1], t[1]) &&
             tensor_matches(t[1], count, "a chain");
    memcpy(want, in, count * sizeof(float));
    passed = passed && tensor_matches(t[0], count, "the source of a chain");
    tensors_destroy(t, 2);
    return passed;
}

/* Memory of the caller, who also writes to it. */
static bool caller_memory(struct host_workload *work)
{
    static _Alignas(4096) float memory[N], result[N];
    struct tandem_tensor *t[2] = {NULL, NULL};
    bool passed;

    for (uint32_t i = 0; i < N; i++)
        memory[i] = (float)i;
    passed = wrapped(work, memory, N, 1, &t[0]) &&
             wrapped(work, result, N, 1, &t[1]) &&
             (work->device == TANDEM_ANY_DEVICE ||
              HOST_TRY(tandem_tensor_prefetch(t[0], work->device))) &&
             unary(work, work->device, TANDEM_OP_ABS, t[0], t[1]) &&
             (host_synchronize(work) || host_synchronize(work));
    for (uint32_t i = 0; i < N; i++) {
        memory[i] = -(float)i - 1.0f;
        want[i] = (float)i + 1.0f;
    }
    passed = passed && HOST_TRY(tandem_tensor_host_written(t[0])) &&
             unary(work, work->device, TANDEM_OP_ABS, t[0], t[1]) &&
             HOST_TRY(tandem_tensor_sync(t[1], TANDEM_TIMEOUT_INFINITE)) &&
             values_match(result, N, "memory of the caller");
    tensors_destroy(t, 2);
    return passed;
}

/* Contents that move between the host and two devices. */
static bool migration(struct host_workload *work)
{
    const int64_t n = N;
    struct tandem_tensor *t[2] = {NULL, NULL};
    const void *data = NULL;
    uint32_t mask = 0;
    bool passed;

    for (uint32_t i = 0; i < N; i++)
        in[i] = want[i] = (float)i;
    passed = created(work, 1, &n, &t[0]) && created(work, 1, &n, &t[1]) &&
             HOST_TRY(tandem_tensor_write(t[0], in, N * sizeof(float))) &&
             unary(work, work->device, TANDEM_OP_NEG, t[0], t[1]) &&
             unary(work, work->cpu, TANDEM_OP_NEG, t[1], t[0]) &&
             unary(work, work->device, TANDEM_OP_NEG, t[0], t[1]) &&
             unary(work, work->cpu, TANDEM_OP_ABS, t[1], t[1]) &&
             HOST_TRY(tandem_tensor_residency(t[1], &mask)) &&
             must(mask != 0, "residency") &&
             HOST_TRY(tandem_tensor_host_data(t[1], TANDEM_TIMEOUT_INFINITE,
                                              &data)) &&
             values_match(data, N, "data that moved");
    tensors_destroy(t, 2);
    return passed;
}

/* Results between elements that belong to other data. */
static bool gaps(struct host_workload *work)
{
    static float memory[2 * N];
    const int64_t half = N / 2, stride = 4;
    struct tandem_tensor *t[3] = {NULL, NULL, NULL};
    bool passed;

    for (uint32_t i = 0; i < N; i++) {
        in[i] = (float)i;
        memory[2 * i] = memory[2 * i + 1] = 7;
        want[2 * i] = i % 2 == 0 ? (float)i : -(float)i;
        want[2 * i + 1] = 7;
    }
    passed =
        wrapped(work, in, N, 1, &t[0]) && wrapped(work, memory, N, 2, &t[1]) &&
        unary(work, work->device, TANDEM_OP_NEG, t[0], t[1]) &&
        HOST_TRY(tandem_tensor_sync(t[1], TANDEM_TIMEOUT_INFINITE)) &&
        CREATED(&t[2], tandem_tensor_view(t[1], 0, 1, &half, &stride, &t[2])) &&
        unary(work, work->device, TANDEM_OP_ABS, t[2], t[2]) &&
        HOST_TRY(tandem_tensor_sync(t[1], TANDEM_TIMEOUT_INFINITE)) &&
        HOST_TRY(tandem_tensor_read(t[2], got, half * sizeof(float),
                                    TANDEM_TIMEOUT_INFINITE)) &&
        HOST_TRY(tandem_tensor_write(t[2], got, half * sizeof(float))) &&
        values_match(memory, 2 * N - 1, "a result with gaps");
    tensors_destroy(t, 3);
    return passed;
}

/* More views than libtandem's tables have room for at first. */
static bool views(struct host_workload *work)
{
    const int64_t n = VIEWS, one = 1;
    struct tandem_tensor *t[VIEWS + 1] = {NULL};
    bool passed = created(work, 1, &n, &t[VIEWS]);

    for (int i = 0; i < VIEWS && passed; i++)
        passed = CREATED(&t[i],
                         tandem_tensor_view(t[VIEWS], i, 1, &one, NULL, &t[i]));
    tensors_destroy(t, VIEWS + 1);
    return passed;
}

static bool product(struct host_workload *work)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    struct tandem_explanation explanation = {.struct_size = sizeof explanation};
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = work->device};
    struct tandem_tensor *t[3] = {NULL, NULL, NULL};
    bool passed;

    memset(in, 0, SIDE * SIDE * sizeof(float));
    for (uint32_t i = 0; i < SIDE; i++)
        in[i * SIDE + i] = (float)i;
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        want[i] = in[i] * in[i];
    passed =
        created(work, 2, shape, &t[0]) && created(work, 2, shape, &t[1]) &&
        created(work, 0, NULL, &t[2]) &&
        HOST_TRY(tandem_tensor_write(t[0], in, SIDE * SIDE * sizeof(float))) &&
        HOST_TRY(tandem_matmul(work->context, &options, t[0], t[0], t[1])) &&
        HOST_TRY(tandem_explain_matmul(work->context, NULL, t[0], t[0], t[1],
                                       &explanation)) &&
        tensor_matches(t[1], SIDE * SIDE, "a product") &&
        HOST_TRY(
            tandem_reduce(work->context, TANDEM_OP_REDUCE_MAX, 3, t[1], t[2]));
    want[0] = (SIDE - 1) * (SIDE - 1);
    passed = passed && tensor_matches(t[2], 1, "a maximum");
    tensors_destroy(t, 3);
    return passed;
}

static void observe(void *user, const struct tandem_explanation *explanation,
                    bool after)
{
    (void)explanation, (void)after;
    ++*(unsigned *)user;
}

static bool explained(struct host_workload *work)
{
    struct tandem_context *context = work->context;
    struct tandem_explanation explanation = {.struct_size = sizeof explanation};
    unsigned calls = 0;
    bool passed;

    passed = HOST_TRY(tandem_context_set_timing(context, 1)) &&
             HOST_TRY(tandem_context_set_observer(context, observe, &calls)) &&
             chain(work, work->device, N);
    /* These calls restore what later sections expect. */
    passed &= HOST_TRY(tandem_context_set_observer(context, NULL, NULL));
    passed &= HOST_TRY(tandem_context_set_timing(context, 0));
    return passed && must(calls >= 2, "the observer's calls") &&
           HOST_TRY(tandem_explain_last(context, &explanation)) &&
           must(explanation.op == TANDEM_OP_NEG, "what is explained");
}

static bool forced(struct host_workload *work)
{
    bool passed =
        HOST_TRY(tandem_context_force_device(work->context, work->cpu)) &&
        chain(work, TANDEM_ANY_DEVICE, N);

    passed &=
        HOST_TRY(tandem_context_force_device(work->context, TANDEM_ANY_DEVICE));
    return passed;
}

/* A second thread has its own thread-local state. */
static void *thread_main(void *argument)
{
    struct host_workload *work = argument;

    return chain(work, work->device, N) ? work : NULL;
}

static bool threaded(struct host_workload *work)
{
    pthread_t thread;
    void *result;

    if (!must(pthread_create(&thread, NULL, thread_main, work) == 0, "thread"))
        return false;
    pthread_join(thread, &result);
    return result != NULL;
}

uint32_t host_sections_run(struct host_workload *work, uint32_t large)
{
    static bool (*const sections[])(struct host_workload *) = {
        caller_memory, migration, gaps,   views,
        product,       explained, forced, threaded};
    uint32_t failures = 0;

    failures += !chain(work, work->device, N);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        failures += !sections[i](work);
    failures += !chain(work, work->device, large);
    return failures;
}
