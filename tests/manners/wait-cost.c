/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a wait costs: for each way of waiting for a device, how long a short
 * wait takes and how much of a processor a long one keeps busy.
 *
 *     wait-cost [DEVICE [SECONDS [warm] [products]]]
 *
 * DEVICE is as TANDEM_DEVICE (opencl), SECONDS the length of a long wait (1).
 * warm: one long wait is not judged, by which the library learns what the
 * driver does.  products: long waits are for matrix products, as they are on
 * GPUs without this word.  Exits with 1 where a long wait took more than a
 * tenth of a processor, with 77 where there is no such device.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tandem/host.h>

#define SHORT_WAITS 201
#define LIMIT_NS UINT64_C(600000000000)
#define VECTOR ((int64_t)1 << 20)

struct bench {
    struct tandem_context *context;
    const struct tandem_backend *table;
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *buffers[3];
    int64_t side; /* of the products that make a long wait; 0: a vector */
    int64_t repeat;
    float *result;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "wait-cost: %s: %s\n", what, why);
    exit(2);
}

static void ok(const struct bench *bench, enum tandem_status status,
               const char *what)
{
    if (status != TANDEM_OK)
        fail(what, bench->table->last_error());
}

static double clock_s(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- work ---- */

/* y = erf(x) over elements. */
static void vector_enqueue(struct bench *bench, int64_t elements)
{
    struct tandem_tensor_desc x = {.buffer = bench->buffers[0],
                                   .dtype = TANDEM_F32,
                                   .rank = 1,
                                   .shape = {elements},
                                   .strides = {1}};
    struct tandem_tensor_desc y = x;
    const struct tandem_tensor_desc *const inputs[] = {&x}, *outputs[] = {&y};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ERF};

    y.buffer = bench->buffers[1];
    ok(bench,
       bench->table->launch(bench->stream, &op, inputs, 1, outputs, 1),
       "launch");
}

static void product_enqueue(struct bench *bench)
{
    struct tandem_gemm gemm = {.struct_size = sizeof gemm,
                               .dtype = TANDEM_F32,
                               .m = bench->side,
                               .n = bench->side,
                               .k = bench->side,
                               .batch = 1,
                               .alpha = 1.0};

    gemm.a.ld = gemm.b.ld = gemm.c.ld = bench->side;
    gemm.a.buffer = bench->buffers[0];
    gemm.b.buffer = bench->buffers[1];
    gemm.c.buffer = bench->buffers[2];
    ok(bench, bench->table->gemm(bench->stream, &gemm), "gemm");
}

static void long_enqueue(struct bench *bench)
{
    for (int64_t i = 0; i < bench->repeat; i++) {
        if (bench->side != 0)
            product_enqueue(bench);
        else
            vector_enqueue(bench, VECTOR);
    }
}

static void buffers_make(struct bench *bench, uint64_t elements)
{
    const float one = 1.0f;

    for (int i = 0; i < 3; i++) {
        bench->table->free(bench->buffers[i]);
        ok(bench,
           bench->table->alloc(bench->device, elements * sizeof(float),
                               &bench->buffers[i]),
           "alloc");
        ok(bench,
           bench->table->fill(bench->stream, bench->buffers[i], 0,
                              elements * sizeof(float), &one, sizeof one),
           "fill");
    }
}

/* Chooses work that lasts. */
static void long_choose(struct bench *bench, bool gpu, double seconds)
{
    double start, took = 0;

    bench->side = gpu ? 512 : 0;
    bench->repeat = 1;
    for (;;) {
        buffers_make(bench, gpu ? (uint64_t)(bench->side * bench->side)
                                : (uint64_t)VECTOR);
        for (int i = 0; i < 2; i++) {
            start = clock_s(CLOCK_MONOTONIC);
            long_enqueue(bench);
            ok(bench,
               bench->table->stream_synchronize(bench->stream, LIMIT_NS),
               "stream_synchronize");
            took = clock_s(CLOCK_MONOTONIC) - start;
        }
        if (!gpu || took > seconds / 60 || bench->side >= 16384)
            break;
        bench->side *= 2;
    }
    bench->repeat = (int64_t)(seconds / took) + 2;
}

/* ---- ways to wait ---- */

static void synchronize(struct bench *bench, uint64_t timeout_ns)
{
    ok(bench, bench->table->stream_synchronize(bench->stream, timeout_ns),
       "stream_synchronize");
}

static void event(struct bench *bench, uint64_t timeout_ns)
{
    struct tandem_event *made = NULL;

    ok(bench, bench->table->event_record(bench->stream, &made),
       "event_record");
    ok(bench, bench->table->event_wait(made, timeout_ns), "event_wait");
    bench->table->event_destroy(made);
}

static enum tandem_status result_get(struct bench *bench, uint64_t timeout_ns)
{
    return bench->table->download(bench->stream, bench->buffers[1], 0,
                                  bench->result, 4096, 0, timeout_ns);
}

/* The result of vector_enqueue: erf(1) everywhere. */
static void result_check(struct bench *bench)
{
    for (int i = 0; i < 1024; i++) {
        if (bench->result[i] < 0.84269f || bench->result[i] > 0.84271f)
            fail("download", "a wrong result");
        bench->result[i] = 0;
    }
}

static void download(struct bench *bench, uint64_t timeout_ns)
{
    ok(bench, result_get(bench, timeout_ns), "download");
}

static void device(struct bench *bench, uint64_t timeout_ns)
{
    ok(bench, bench->table->synchronize(bench->device, timeout_ns),
       "synchronize");
}

static const struct {
    const char *name;
    void (*wait)(struct bench *bench, uint64_t timeout_ns);
    uint64_t timeout_ns;
} ways[] = {
    {"stream_synchronize", synchronize, TANDEM_FOREVER},
    {"stream_synchronize, limit", synchronize, LIMIT_NS},
    {"event_wait", event, TANDEM_FOREVER},
    {"event_wait, limit", event, LIMIT_NS},
    {"download of 4 KiB", download, TANDEM_FOREVER},
    {"download of 4 KiB, limit", download, LIMIT_NS},
    {"synchronize", device, TANDEM_FOREVER},
};
#define WAYS (sizeof ways / sizeof *ways)

/* A download that was given up leaves the next one right. */
static void given_up(struct bench *bench)
{
    const float zero = 0.0f;

    for (int i = 0; i < 3; i++) {
        long_enqueue(bench);
        if (result_get(bench, 1000) != TANDEM_NOT_READY)
            fail("download", "1 us was enough for a long work");
        vector_enqueue(bench, 1024);
        ok(bench, result_get(bench, i == 1 ? LIMIT_NS : TANDEM_FOREVER),
           "download");
        result_check(bench);
        ok(bench,
           bench->table->fill(bench->stream, bench->buffers[1], 0, 4096, &zero,
                              sizeof zero),
           "fill");
    }
}

/* ---- measuring ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds of one small launch and the wait for it: the median. */
static double short_measure(struct bench *bench, size_t way)
{
    double times[SHORT_WAITS];

    for (int i = 0; i < SHORT_WAITS; i++) {
        const double start = clock_s(CLOCK_MONOTONIC);

        vector_enqueue(bench, 1024);
        ways[way].wait(bench, ways[way].timeout_ns);
        times[i] = clock_s(CLOCK_MONOTONIC) - start;
    }
    qsort(times, SHORT_WAITS, sizeof *times, compare);
    return times[SHORT_WAITS / 2];
}

/* A long wait; the share of a processor that it kept busy. */
static double long_measure(struct bench *bench, size_t way, double *out_wall)
{
    double wall, busy;

    long_enqueue(bench);
    wall = clock_s(CLOCK_MONOTONIC);
    busy = clock_s(CLOCK_THREAD_CPUTIME_ID);
    ways[way].wait(bench, ways[way].timeout_ns);
    busy = clock_s(CLOCK_THREAD_CPUTIME_ID) - busy;
    wall = clock_s(CLOCK_MONOTONIC) - wall;
    *out_wall = wall;
    return busy / wall;
}

static void bench_open(struct bench *bench, const char *name, bool *out_gpu)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    uint32_t id;

    if (tandem_context_create(NULL, &bench->context) != TANDEM_OK)
        fail("context", tandem_last_error());
    if (tandem_device_find(bench->context, name, &id) != TANDEM_OK) {
        fprintf(stderr, "wait-cost: skipped: %s\n", tandem_last_error());
        exit(77);
    }
    if (tandem_device_describe(bench->context, id, &info) != TANDEM_OK ||
        tandem_device_backend(bench->context, id, &bench->table,
                              &bench->device) != TANDEM_OK)
        fail(name, tandem_last_error());
    ok(bench, bench->table->stream_create(bench->device, 0, &bench->stream),
       "stream_create");
    bench->result = calloc(1, 4096);
    *out_gpu = info.kind != TANDEM_DEVICE_CPU;
    printf("%s, %s\n", info.name, info.driver);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 1.0;
    bool warm = false;
    struct bench bench = {0};
    double wall, share;
    bool gpu, good = true;

    bench_open(&bench, argc > 1 ? argv[1] : "opencl", &gpu);
    for (int i = 3; i < argc; i++) {
        warm = warm || strcmp(argv[i], "warm") == 0;
        gpu = gpu || strcmp(argv[i], "products") == 0;
    }
    long_choose(&bench, gpu, seconds);
    if (warm) {
        share = long_measure(&bench, 0, &wall);
        printf("the first wait: %.0f ms, %.1f%% of a processor\n", wall * 1e3,
               share * 100);
    }
    printf("%-28s %14s %14s %14s\n", "", "short wait us", "long wait ms",
           "processor %");
    for (size_t i = 0; i < WAYS; i++) {
        const double brief = short_measure(&bench, i);

        share = long_measure(&bench, i, &wall);
        good = good && share <= 0.1;
        printf("%-28s %14.1f %14.1f %14.1f%s\n", ways[i].name, brief * 1e6,
               wall * 1e3, share * 100, share <= 0.1 ? "" : "  too much");
    }
    given_up(&bench);
    for (int i = 0; i < 3; i++)
        bench.table->free(bench.buffers[i]);
    bench.table->stream_destroy(bench.stream);
    tandem_context_destroy(bench.context);
    free(bench.result);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
