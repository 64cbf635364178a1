/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of waits: for each function that waits for a device, the
 * duration of a short wait, the CPU time of a long one and, with the layer
 * wait-layer.so, the number of event queries.
 *
 *     wait-cost [DEVICE [SECONDS [products]]]
 *
 * DEVICE is like TANDEM_DEVICE (opencl), SECONDS is the duration of a long wait
 * (1). With a third argument, long waits are for GEMMs, as always on GPUs.
 * Times are printed, not checked. The exit status is 1 if a wait called the
 * driver too often, or used the driver's own wait, which can be a busy loop; 77
 * if there is no such device.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tandem/host.h>

#include "wait_counting_layer.h"
#include "support/case_summary.h"
#include "../../tools/common/tensor_call.h"

#define SHORT_WAITS 201
#define LIMIT_NS UINT64_C(600000000000)
#define VECTOR ((int64_t)1 << 20)

struct bench {
    struct tandem_context *context;
    const struct tandem_backend *table;
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct tandem_buffer *buffers[3];
    /* Size of the GEMM in long waits; 0 stands for a vector operator. */
    int64_t side;
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

/* Enqueues y = erf(x) for this number of elements. */
static void vector_enqueue(struct bench *bench, int64_t elements)
{
    struct tandem_tensor_desc x = {.buffer = bench->buffers[0],
                                   .dtype = TANDEM_F32,
                                   .rank = 1,
                                   .shape = {elements},
                                   .strides = {1}};
    struct tandem_tensor_desc y = x;
    const struct tandem_tensor_desc *const inputs[] = {&x}, *outputs[] = {&y};
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ERF};

    y.buffer = bench->buffers[1];
    ok(bench,
       tensors_launch(bench->table, bench->device, bench->stream, &op, inputs,
                      1, outputs, 1, 64),
       "launch");
}

static void gemm_enqueue(struct bench *bench)
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
            gemm_enqueue(bench);
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
           bench->table->alloc(bench->device,
                               TANDEM_BYTES(elements * sizeof(float)),
                               &bench->buffers[i]),
           "alloc");
        ok(bench,
           bench->table->fill(bench->stream, bench->buffers[i], 0,
                              elements * sizeof(float), &one, sizeof one),
           "fill");
    }
}

/* Selects work that takes long enough. */
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
            ok(bench, bench->table->stream_synchronize(bench->stream, LIMIT_NS),
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

    ok(bench, bench->table->event_record(bench->stream, &made), "event_record");
    ok(bench, bench->table->event_wait(made, timeout_ns), "event_wait");
    bench->table->event_destroy(made);
}

static enum tandem_status result_get(struct bench *bench, uint64_t timeout_ns)
{
    return bench->table->download(bench->stream, bench->buffers[1], 0,
                                  bench->result, 4096, 0, timeout_ns);
}

/* Checks the result of vector_enqueue: erf(1) everywhere. */
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

static const struct {
    const char *name;
    void (*wait)(struct bench *bench, uint64_t timeout_ns);
    uint64_t timeout_ns;
} ways[] = {
    {"stream_synchronize", synchronize, TANDEM_TIMEOUT_INFINITE},
    {"stream_synchronize, limit", synchronize, LIMIT_NS},
    {"event_wait", event, TANDEM_TIMEOUT_INFINITE},
    {"event_wait, limit", event, LIMIT_NS},
    {"download of 4 KiB", download, TANDEM_TIMEOUT_INFINITE},
    {"download of 4 KiB, limit", download, LIMIT_NS},
};
#define WAYS (sizeof ways / sizeof *ways)

/* Lets downloads time out. On a loaded machine, some may be complete. */
static void result_timeout(struct bench *bench)
{
    enum tandem_status status = TANDEM_OK;

    for (int i = 0; i < 20 && status == TANDEM_OK; i++) {
        long_enqueue(bench);
        status = result_get(bench, 1000);
    }
    if (status != TANDEM_NOT_READY)
        fail("download", "1 us was enough for a long work");
}

/* A download that timed out does not affect the next one. */
static void result_after_timeout(struct bench *bench)
{
    const float zero = 0.0f;

    for (int i = 0; i < 3; i++) {
        result_timeout(bench);
        vector_enqueue(bench, 1024);
        ok(bench,
           result_get(bench, i == 1 ? LIMIT_NS : TANDEM_TIMEOUT_INFINITE),
           "download");
        result_check(bench);
        ok(bench,
           bench->table->fill(bench->stream, bench->buffers[1], 0, 4096, &zero,
                              sizeof zero),
           "fill");
    }
}

/* ---- the layer ---- */

static wait_layer_counts_fn *layer_counts;
static bool has_callbacks; /* Waits sleep until the driver calls back. */

static void layer_find(void)
{
    const char *path = getenv("OPENCL_LAYERS");
    void *layer = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;

    if (layer)
        *(void **)&layer_counts = dlsym(layer, "wait_layer_counts");
    if (path && !layer_counts)
        fail(path, "not in use, or not wait-layer.so");
}

static struct wait_layer_counts counts_get(void)
{
    const struct wait_layer_counts none = {0};

    return layer_counts ? layer_counts() : none;
}

/*
 * A wait for a CPU device sleeps until the driver calls back, and queries the
 * event every 100 ms. Without callbacks, it queries the event continuously for
 * 100 us, which is at most some thousand times, and then between sleeps of 10
 * us to 0.5 ms (docs/plugin-abi.md). Polling without sleeps would exceed this
 * number within some milliseconds.
 */
static bool counts_are_acceptable(struct wait_layer_counts counts, double wall)
{
    const double most = has_callbacks ? 4 + wall / 50e-3 : 3000 + wall / 250e-6;

    return counts.waits == 0 && (double)counts.queries < most;
}

/* ---- measuring ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Measures the median time of one small launch and its wait, in seconds. */
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

struct long_wait {
    double wall, busy; /* Seconds; busy is CPU time. */
    struct wait_layer_counts counts;
};

static struct long_wait long_measure(struct bench *bench, size_t way)
{
    struct long_wait wait;
    struct wait_layer_counts before;

    long_enqueue(bench);
    before = counts_get();
    wait.wall = clock_s(CLOCK_MONOTONIC);
    wait.busy = clock_s(CLOCK_THREAD_CPUTIME_ID);
    ways[way].wait(bench, ways[way].timeout_ns);
    wait.busy = clock_s(CLOCK_THREAD_CPUTIME_ID) - wait.busy;
    wait.wall = clock_s(CLOCK_MONOTONIC) - wait.wall;
    wait.counts = counts_get();
    wait.counts.waits -= before.waits;
    wait.counts.queries -= before.queries;
    return wait;
}

static void long_print(const struct long_wait *wait)
{
    printf("%14.1f %12.1f", wait->wall * 1e3, wait->busy / wait->wall * 100);
    if (layer_counts)
        printf(" %12llu %12llu", (unsigned long long)wait->counts.waits,
               (unsigned long long)wait->counts.queries);
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
    printf("%s, %s\n", info.name, info.driver_version);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 1.0;
    struct bench bench = {0};
    struct long_wait wait;
    uint64_t passed = 0;
    bool gpu;

    bench_open(&bench, argc > 1 ? argv[1] : "opencl", &gpu);
    layer_find();
    has_callbacks = !gpu && getenv("WAIT_LAYER_NO_CALLBACKS") == NULL;
    long_choose(&bench, gpu || argc > 3, seconds);
    printf("%-28s %14s %14s %12s%s\n", "", "short wait us", "long wait ms",
           "processor %", layer_counts ? "   its waits    questions" : "");
    for (size_t i = 0; i < WAYS; i++) {
        const double brief = short_measure(&bench, i);
        bool few;

        wait = long_measure(&bench, i);
        few = !layer_counts || counts_are_acceptable(wait.counts, wait.wall);
        passed += few;
        printf("%-28s %14.1f ", ways[i].name, brief * 1e6);
        long_print(&wait);
        printf("%s\n", few ? "" : "  too many");
    }
    result_after_timeout(&bench);
    for (int i = 0; i < 3; i++)
        bench.table->free(bench.buffers[i]);
    bench.table->stream_destroy(bench.stream);
    tandem_context_destroy(bench.context);
    free(bench.result);
    return case_summary(passed, WAYS - passed);
}
