/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of all entries of the plugin that use memory, streams and events, in a
 * random order. A model knows the content of each buffer.
 */
#include "opencl_workload.h"

#include "../../tools/common/tensor_call.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define BUFFERS 3
#define SIDE 16 /* of a matrix */
#define PAGE 4096

struct sequence {
    struct workload *work;
    uint64_t seed;
    struct tandem_stream *streams[2]; /* The second one measures times. */
    int on;                           /* The current stream. */
    uint32_t elements;                /* of each buffer */
    struct tandem_buffer *buffers[BUFFERS];
    /* Of the current step: two buffers and a range of their elements. */
    uint32_t a, b, first, count;
};

static float model[BUFFERS][LARGEST], source[LARGEST];

/* Returns a random number below the limit. */
static uint32_t draw(struct sequence *s, uint32_t limit)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((s->seed >> 33) % limit);
}

/* Draws new values, which are small integers, for a range of the source. */
static void source_draw(struct sequence *s)
{
    const uint32_t start = draw(s, 1000);

    for (uint32_t i = 0; i < s->count; i++)
        source[i] = (float)((start + i) % 1024);
}

static uint64_t offset(const struct sequence *s)
{
    return s->first * sizeof(float);
}

static uint64_t bytes(const struct sequence *s)
{
    return s->count * sizeof(float);
}

static bool content_holds(struct sequence *s, uint32_t buffer)
{
    return range_matches(s->work, s->buffers[buffer], s->first,
                         model[buffer] + s->first, s->count, s->work->call);
}

/* ---- steps ---- */

/* The caller may overwrite the source, unless the upload is asynchronous. */
static bool upload_range(struct sequence *s)
{
    const bool async = draw(s, 2) == 1;

    source_draw(s);
    memcpy(model[s->a] + s->first, source, bytes(s));
    if (!CALL(s->work, upload, s->work->stream, s->buffers[s->a], offset(s),
              source, bytes(s), async ? TANDEM_TRANSFER_ASYNC : 0))
        return false;
    if (async)
        return stream_wait(s->work, s->work->stream);
    memset(source, 0xff, bytes(s));
    return true;
}

static bool download_range(struct sequence *s)
{
    return content_holds(s, s->a);
}

static bool copy_range(struct sequence *s)
{
    memcpy(model[s->b] + s->first, model[s->a] + s->first, bytes(s));
    return CALL(s->work, copy, s->work->stream, s->buffers[s->b], offset(s),
                s->buffers[s->a], offset(s), bytes(s)) &&
           content_holds(s, s->b);
}

static bool fill_range(struct sequence *s)
{
    const float value = (float)draw(s, 1000);

    for (uint32_t i = 0; i < s->count; i++)
        model[s->a][s->first + i] = value;
    return CALL(s->work, fill, s->work->stream, s->buffers[s->a], offset(s),
                bytes(s), &value, sizeof value);
}

static bool map_range(struct sequence *s)
{
    float *const at = model[s->a] + s->first;
    void *memory = NULL;
    bool passed;

    if (!CALL(s->work, map, s->work->stream, s->buffers[s->a], offset(s),
              bytes(s), TANDEM_MAP_READ | TANDEM_MAP_WRITE,
              TANDEM_TIMEOUT_INFINITE, &memory))
        return false;
    passed = memcmp(memory, at, bytes(s)) == 0 ||
             record_violation(s->work, "wrong bytes in a map");
    source_draw(s);
    memcpy(at, source, bytes(s));
    memcpy(memory, source, bytes(s));
    return CALL(s->work, unmap, s->work->stream, s->buffers[s->a], memory) &&
           passed && content_holds(s, s->a);
}

/* Computes b = a + 1 for all elements. */
static bool launch_kernel(struct sequence *s)
{
    for (uint32_t i = 0; i < s->elements; i++)
        model[s->b][i] = model[s->a][i] + 1.0f;
    return launch_add(s->work, s->buffers[s->b], s->buffers[s->a], 1.0,
                      s->elements);
}

/* The operator is compiled in the background before it is launched. */
static bool launch_prepared(struct sequence *s)
{
    const struct tandem_tensor_desc in = vector(s->buffers[s->a], s->elements),
                                    out = vector(s->buffers[s->b], s->elements);
    const struct tandem_tensor_desc *input = &in, *output = &out;
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ABS};
    enum tandem_status status = TANDEM_NOT_READY;

    memcpy(model[s->b], model[s->a], s->elements * sizeof(float));
    /* This forgets the error of an earlier compilation. */
    if (!call_succeeded(s->work,
                        tensors_prepare(s->work->api, s->work->device, &op,
                                        &input, 1, &output, 1, 64),
                        "prepare"))
        return false;
    for (int i = 0; i < 300000 && status == TANDEM_NOT_READY; i++) {
        status = tensors_poll(s->work->api, s->work->device, &op, &input, 1,
                              &output, 1, 64);
        nanosleep(&(struct timespec){0, i == 0 ? 0 : 200000}, NULL);
    }
    return call_succeeded(s->work, status, "compilation") &&
           call_succeeded(s->work,
                          tensors_launch(s->work->api, s->work->device,
                                         s->work->stream, &op, &input, 1,
                                         &output, 1, 64),
                          "launch of what was prepared");
}

/* Computes c = relu(a b + bias), with constant matrices. */
static bool multiply(struct sequence *s)
{
    const uint32_t c = BUFFERS - s->a - s->b, all = SIDE * SIDE;
    const float two = 2, three = 3;
    const struct tandem_gemm gemm = {.struct_size = sizeof gemm,
                                     .dtype = TANDEM_F32,
                                     .m = SIDE,
                                     .n = SIDE,
                                     .k = SIDE,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = {s->buffers[s->a], 0, SIDE, all},
                                     .b = {s->buffers[s->b], 0, SIDE, all},
                                     .c = {s->buffers[c], 0, SIDE, all},
                                     .bias = s->buffers[s->b],
                                     .bias_kind = TANDEM_BIAS_PER_COLUMN,
                                     .activation = TANDEM_OP_RELU};

    for (uint32_t i = 0; i < all; i++) {
        model[s->a][i] = two;
        model[s->b][i] = three;
        model[c][i] = two * three * SIDE + three;
    }
    s->first = 0;
    s->count = all;
    return CALL(s->work, fill, s->work->stream, s->buffers[s->a], 0, bytes(s),
                &two, sizeof two) &&
           CALL(s->work, fill, s->work->stream, s->buffers[s->b], 0, bytes(s),
                &three, sizeof three) &&
           CALL(s->work, gemm, s->work->stream, &gemm) && content_holds(s, c);
}

/* The memory is given to another owner while work still uses it. */
static bool replace_buffer(struct sequence *s)
{
    s->work->api->free(s->buffers[s->a]);
    s->buffers[s->a] = NULL;
    s->first = 0;
    s->count = s->elements;
    return buffer_new(s->work, bytes(s), &s->buffers[s->a]) && upload_range(s);
}

static bool switch_stream(struct sequence *s)
{
    struct tandem_event *event = NULL;
    bool passed;

    passed = CALL(s->work, event_record, s->work->stream, &event) &&
             CALL(s->work, stream_wait_event, s->streams[!s->on], event) &&
             /* The wait may end with the event. */
             CALL(s->work, event_wait, event, TANDEM_TIMEOUT_INFINITE) &&
             CALL(s->work, event_wait, event, 0);
    s->work->api->event_destroy(event);
    s->on = !s->on;
    s->work->stream = s->streams[s->on];
    return passed;
}

static bool measure_time(struct sequence *s)
{
    struct tandem_event *from = NULL, *to = NULL;
    uint64_t ns = 0;
    bool passed =
        (s->on == 1 || switch_stream(s)) &&
        CALL(s->work, event_record, s->work->stream, &from) &&
        launch_kernel(s) && CALL(s->work, event_record, s->work->stream, &to) &&
        CALL(s->work, event_wait, to, UINT64_C(60000000000)) &&
        CALL(s->work, event_elapsed_ns, from, to, &ns) &&
        CALL(s->work, stream_synchronize, s->work->stream, 60000000000u) &&
        CALL(s->work, stream_synchronize, s->work->stream, 0);

    s->work->api->event_destroy(from);
    s->work->api->event_destroy(to);
    return passed;
}

static bool use_pinned_memory(struct sequence *s)
{
    const struct tandem_backend *api = s->work->api;
    void *memory = NULL;
    bool passed;

    source_draw(s);
    passed = CALL(s->work, host_alloc, s->work->device, bytes(s), &memory);
    if (passed) {
        memcpy(memory, source, bytes(s));
        memcpy(model[s->a] + s->first, source, bytes(s));
        passed = CALL(s->work, upload, s->work->stream, s->buffers[s->a],
                      offset(s), memory, bytes(s), 0) &&
                 launch_kernel(s) &&
                 CALL(s->work, download, s->work->stream, s->buffers[s->b],
                      offset(s), memory, bytes(s), TANDEM_TRANSFER_ASYNC, 0) &&
                 stream_wait(s->work, s->work->stream) &&
                 (memcmp(memory, model[s->b] + s->first, bytes(s)) == 0 ||
                  record_violation(s->work, "wrong bytes in pinned memory"));
    }
    /* If the wait failed, the download may still be running. */
    if (!passed && memory)
        api->stream_synchronize(s->work->stream, TANDEM_TIMEOUT_INFINITE);
    api->host_free(s->work->device, memory);
    return passed;
}

/* The number of the last import, and of its releases. After a fault, a driver
 * may release the memory of an earlier import late. */
static _Atomic uintptr_t last_import;
static _Atomic uint32_t import_releases;

static void import_released(void *number)
{
    if ((uintptr_t)number == atomic_load(&last_import))
        atomic_fetch_add(&import_releases, 1);
}

static bool import_memory(struct sequence *s)
{
    static _Alignas(PAGE) float memory[PAGE / sizeof(float)];
    const uint32_t count = PAGE / sizeof(float);
    struct tandem_buffer *buffer = NULL;
    enum tandem_status status;
    bool passed = true;

    fill_ramp(memory, count, 0.0f, 1.0f);
    fill_ramp(source, count, 2.0f, 1.0f);
    atomic_store(&import_releases, 0);
    status = s->work->api->import_host(
        s->work->device, memory, PAGE, import_released,
        (void *)(atomic_fetch_add(&last_import, 1) + 1), &buffer);
    /* The device may work on a copy. */
    if (status != TANDEM_UNSUPPORTED)
        passed = call_succeeded(s->work, status, "import_host") &&
                 launch_add(s->work, buffer, buffer, 2.0, count) &&
                 stream_wait(s->work, s->work->stream) &&
                 (memcmp(memory, source, PAGE) == 0 ||
                  record_violation(s->work, "wrong bytes in imported memory"));
    s->work->api->stream_synchronize(s->work->stream, TANDEM_TIMEOUT_INFINITE);
    s->work->api->free(buffer);
    if (atomic_load(&import_releases) > 1 ||
        (status != TANDEM_OK && atomic_load(&import_releases) != 0))
        passed = record_violation(s->work, "imported memory was released "
                                           "again, or without having been "
                                           "imported");
    return passed;
}

static bool trim_pool(struct sequence *s)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};

    return CALL(s->work, trim, s->work->device, 0) &&
           CALL(s->work, memory_stats, s->work->device, &stats) &&
           (stats.buffer_count == BUFFERS ||
            record_violation(s->work, "buffers that nobody holds"));
}

static const struct step {
    const char *name;
    bool (*run)(struct sequence *s);
} steps[] = {{"upload", upload_range},     {"download", download_range},
             {"copy", copy_range},         {"fill", fill_range},
             {"map", map_range},           {"launch", launch_kernel},
             {"prepare", launch_prepared}, {"gemm", multiply},
             {"replace", replace_buffer},  {"switch", switch_stream},
             {"time", measure_time},       {"pinned", use_pinned_memory},
             {"import", import_memory},    {"trim", trim_pool}};
#define STEPS ((uint32_t)(sizeof steps / sizeof *steps))

/* ---- the sequence ---- */

static bool sequence_begin(struct sequence *s)
{
    bool passed = stream_new(s->work, 0, &s->streams[0]) &&
                  stream_new(s->work, TANDEM_STREAM_PROFILING, &s->streams[1]);

    s->work->stream = s->streams[0];
    s->count = s->elements;
    for (s->a = 0; s->a < BUFFERS && passed; s->a++)
        passed =
            buffer_new(s->work, bytes(s), &s->buffers[s->a]) && upload_range(s);
    return passed;
}

static bool step_run(struct sequence *s, const struct step *step)
{
    s->a = draw(s, BUFFERS);
    s->b = (s->a + 1 + draw(s, BUFFERS - 1)) % BUFFERS;
    s->first = draw(s, 2) ? 0 : draw(s, s->elements);
    s->count = s->elements - s->first;
    if (draw(s, 2))
        s->count = 1 + draw(s, s->count);
    s->work->call = step->name;
    return step->run(s);
}

bool sequence_run(struct workload *work, uint32_t elements, uint64_t seed)
{
    struct sequence s = {.work = work, .elements = elements, .seed = seed};
    uint32_t order[STEPS];
    bool passed;

    for (uint32_t i = 0; i < STEPS; i++) {
        const uint32_t at = draw(&s, i + 1);

        order[i] = order[at];
        order[at] = i;
    }
    passed = sequence_begin(&s);
    for (uint32_t i = 0; i < STEPS && passed; i++)
        passed = step_run(&s, &steps[order[i]]);
    s.first = 0;
    s.count = elements;
    for (uint32_t i = 0; i < BUFFERS && passed; i++)
        passed = content_holds(&s, i);
    for (uint32_t i = 0; i < BUFFERS; i++)
        work->api->free(s.buffers[i]);
    /* Waiting on a stream reports and clears its errors. */
    for (int i = 0; i < 2; i++) {
        passed &= s.streams[i] != NULL && stream_wait(work, s.streams[i]);
        work->api->stream_destroy(s.streams[i]);
    }
    return passed;
}
