/* SPDX-License-Identifier: Apache-2.0 */
/* All sections of the workload except GEMM. */
#include "opencl_workload.h"

#include "../../tools/common/tensor_call.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define N 1000u
#define BYTES (N * sizeof(float))
/* LARGE uploads have several commands; LARGEST uploads wait for earlier work.
 */
#define LARGE (400u << 10)

static float in[LARGEST], want[LARGEST];

bool section_run(struct workload *work, const struct section *section)
{
    const uint64_t bytes = (uint64_t)section->elements * sizeof(float);
    struct tandem_buffer *a = NULL, *b = NULL;
    bool passed;

    if (section->elements == 0)
        return section->run(work, NULL, NULL);
    fill_ramp(in, section->elements, 1.0f, 0.5f);
    passed = buffer_new(work, bytes, &a) && buffer_new(work, bytes, &b) &&
             upload(work, a, in, bytes) && section->run(work, a, b);
    work->api->free(a);
    work->api->free(b);
    return passed;
}

static bool move(struct workload *work, struct tandem_buffer *a,
                 struct tandem_buffer *b)
{
    const float seven = 7.0f;

    for (uint32_t i = 0; i < N; i++)
        want[i] = i < 4 ? 7.0f : i < 14 ? in[i - 4] : in[i];
    return CALL(work, copy, work->stream, b, 0, a, 0, BYTES) &&
           CALL(work, copy, work->stream, b, 16, a, 0, 40) &&
           CALL(work, fill, work->stream, b, 0, 16, &seven, 4) &&
           content_matches(work, b, want, N, "copies and a fill") &&
           content_matches(work, a, in, N, "the source");
}

/* Transfers through the ring, by the driver, and while the caller waits. */
static bool move_large(struct workload *work, struct tandem_buffer *a,
                       struct tandem_buffer *b)
{
    const struct tandem_backend *api = work->api;

    for (uint32_t i = 0; i < LARGEST; i++)
        want[i] = in[i] + 1.0f;
    if (!launch_add(work, b, a, 1.0, LARGEST))
        return false;
    in[0] = 77.0f;
    want[0] = 78.0f;
    return call_succeeded(
               work,
               api->upload(work->stream, a, 0, in, LARGE * sizeof(float), 0),
               "upload behind work") &&
           call_succeeded(work,
                          api->upload(work->stream, a, 0, in,
                                      LARGEST * sizeof(float),
                                      TANDEM_TRANSFER_ASYNC),
                          "asynchronous upload") &&
           launch_add(work, b, a, 1.0, LARGEST) &&
           content_matches(work, b, want, LARGEST, "large uploads");
}

static bool pinned(struct workload *work, struct tandem_buffer *first,
                   struct tandem_buffer *second)
{
    const struct tandem_backend *api = work->api;
    struct tandem_buffer *a = NULL;
    void *memory = NULL;
    bool passed;

    (void)first;
    (void)second;
    passed = CALL(work, host_alloc, work->device, BYTES, &memory) &&
             buffer_new(work, BYTES, &a);
    if (passed) {
        fill_ramp(memory, N, 3.0f, 1.0f);
        fill_ramp(want, N, 4.0f, 1.0f);
        passed = upload(work, a, memory, BYTES) &&
                 launch_add(work, a, a, 1.0, N) &&
                 call_succeeded(work,
                                api->download(work->stream, a, 0, memory, BYTES,
                                              TANDEM_TRANSFER_ASYNC, 0),
                                "asynchronous download") &&
                 stream_wait(work, work->stream) &&
                 (memcmp(memory, want, BYTES) == 0 ||
                  record_violation(work, "wrong bytes in pinned memory"));
    }
    /* If the wait failed, the download may still be running. */
    if (!passed && memory)
        api->stream_synchronize(work->stream, TANDEM_TIMEOUT_INFINITE);
    api->free(a);
    api->host_free(work->device, memory);
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

static bool import(struct workload *work, struct tandem_buffer *first,
                   struct tandem_buffer *second)
{
    static _Alignas(4096) float memory[1024];
    struct tandem_buffer *a = NULL;
    enum tandem_status status;
    bool passed = true;

    (void)first;
    (void)second;
    fill_ramp(memory, 1024, 0.0f, 1.0f);
    fill_ramp(want, 1024, 2.0f, 1.0f);
    atomic_store(&import_releases, 0);
    status = work->api->import_host(
        work->device, memory, 4096, import_released,
        (void *)(atomic_fetch_add(&last_import, 1) + 1), &a);
    /* The device may work on a copy. */
    if (status != TANDEM_UNSUPPORTED)
        passed = call_succeeded(work, status, "import_host") &&
                 launch_add(work, a, a, 2.0, 1024) &&
                 stream_wait(work, work->stream) &&
                 (memcmp(memory, want, 4096) == 0 ||
                  record_violation(work, "wrong bytes in imported memory"));
    else
        work->unsupported++;
    work->api->stream_synchronize(work->stream, TANDEM_TIMEOUT_INFINITE);
    work->api->free(a);
    if (atomic_load(&import_releases) > 1 ||
        (status != TANDEM_OK && atomic_load(&import_releases) != 0))
        passed = record_violation(work, "imported memory was released again, "
                                        "or without having been imported");
    return passed;
}

static bool map_both(struct workload *work, struct tandem_buffer *a,
                     struct tandem_buffer *b)
{
    void *memory = NULL;
    bool passed;

    (void)b;
    if (!CALL(work, map, work->stream, a, 0, BYTES,
              TANDEM_MAP_READ | TANDEM_MAP_WRITE, TANDEM_TIMEOUT_INFINITE,
              &memory))
        return false;
    passed = memcmp(memory, in, BYTES) == 0 ||
             record_violation(work, "wrong bytes in a map");
    if (passed)
        fill_ramp(memory, N, -1.0f, 2.0f);
    fill_ramp(want, N, -1.0f, 2.0f);
    return CALL(work, unmap, work->stream, a, memory) && passed &&
           content_matches(work, a, want, N, "what was written through a map");
}

/* Contiguous, strided (b = a transposed), softmax over rows, gather. */
static bool operators(struct workload *work, struct tandem_buffer *a,
                      struct tandem_buffer *b)
{
    static const int64_t last = -1;
    const struct tandem_tensor_desc rows = {a, 0,        TANDEM_F32,
                                            2, {25, 40}, {40, 1}};
    const struct tandem_tensor_desc columns = {b, 0,        TANDEM_F32,
                                               2, {25, 40}, {1, 25}};
    const struct tandem_tensor_desc *from = &rows, *to = &columns;

    for (uint32_t i = 0; i < 25; i++)
        for (uint32_t j = 0; j < 40; j++)
            want[j * 25 + i] = -in[i * 40 + j];
    if (!launch(work, TANDEM_OP_NEG, NULL, 0, NULL, 0, &from, 1, to) ||
        !content_matches(work, b, want, N, "neg with strides") ||
        !launch(work, TANDEM_OP_COPY, NULL, 0, NULL, 0, &to, 1, from))
        return false;
    for (uint32_t i = 0; i < N; i++)
        want[i] = -in[i];
    if (!content_matches(work, a, want, N, "copy with strides") ||
        !launch(work, TANDEM_OP_SOFTMAX, NULL, 0, &last, 1, &from, 1, to))
        return false;
    for (uint32_t j = 0; j < 40; j++)
        for (uint32_t i = 0; i < 25; i++) {
            float sum = 0;

            for (uint32_t k = 0; k < 40; k++)
                sum += expf(-0.5f * (float)k);
            want[j * 25 + i] = expf(-0.5f * (float)j) / sum;
        }
    return content_matches(work, b, want, N, "softmax");
}

/* Long enough to be split, with a temporary buffer. */
static bool reduce(struct workload *work, struct tandem_buffer *a,
                   struct tandem_buffer *b)
{
    static const int64_t whole[2] = {1, 0};
    const struct tandem_tensor_desc from = vector(a, LARGE);
    const struct tandem_tensor_desc to = {b, 0, TANDEM_F32, 0, {0}, {0}};
    const struct tandem_tensor_desc *operand = &from;

    want[0] = in[LARGE - 1];
    if (!launch(work, TANDEM_OP_REDUCE_MAX, NULL, 0, whole, 2, &operand, 1,
                &to) ||
        !content_matches(work, b, want, 1, "a maximum"))
        return false;
    want[0] = (in[0] + in[LARGE - 1]) / 2.0f;
    return launch(work, TANDEM_OP_MEAN, NULL, 0, whole, 2, &operand, 1, &to) &&
           content_matches(work, b, want, 1, "a mean");
}

/* Several inputs of one kernel, then several kernels with a temporary buffer.
 */
static bool movement(struct workload *work, struct tandem_buffer *a,
                     struct tandem_buffer *b)
{
    static const int32_t places[2] = {7, -1};
    static const int64_t axis_and_reduction[2] = {0, 0};
    struct tandem_buffer *places_buffer = NULL;
    struct tandem_tensor_desc halves[2] = {vector(a, N / 2), vector(a, N / 2)};
    const struct tandem_tensor_desc to = vector(b, N), updates = vector(a, 2);
    const struct tandem_tensor_desc *operands[] = {&halves[0], &halves[1],
                                                   &updates};
    bool passed = buffer_new(work, sizeof places, &places_buffer) &&
                  upload(work, places_buffer, places, sizeof places);
    struct tandem_tensor_desc indices = vector(places_buffer, 2);

    indices.dtype = TANDEM_I32;
    halves[0].byte_offset = BYTES / 2;
    for (uint32_t i = 0; i < N; i++)
        want[i] = in[(i + N / 2) % N];
    passed = passed &&
             launch(work, TANDEM_OP_CONCAT, NULL, 0, axis_and_reduction, 1,
                    operands, 2, &to) &&
             content_matches(work, b, want, N, "two halves");
    operands[0] = &to;
    operands[1] = &indices;
    want[7] = in[0];
    want[N - 1] = in[1];
    passed = passed &&
             launch(work, TANDEM_OP_SCATTER_ELEMENTS, NULL, 0,
                    axis_and_reduction, 2, operands, 3, &to) &&
             content_matches(work, b, want, N, "scattered elements");
    work->api->free(places_buffer);
    return passed;
}

static bool optimize(struct workload *work, struct tandem_buffer *w,
                     struct tandem_buffer *g)
{
    static const int64_t plain = 0;
    const double floats[4] = {0.5, 0, 0, 0};
    struct tandem_buffer *m = NULL;
    const uint32_t zero = 0;
    bool passed = buffer_new(work, BYTES, &m);
    const struct tandem_tensor_desc weights = vector(w, N),
                                    gradient = vector(g, N),
                                    momentum = vector(m, N);
    const struct tandem_tensor_desc *inputs[] = {&weights, &gradient,
                                                 &momentum};
    const struct tandem_tensor_desc *outputs[] = {&weights, &momentum};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SGD,
                                 .int_count = 1,
                                 .float_count = 4,
                                 .ints = &plain,
                                 .floats = floats};

    for (uint32_t i = 0; i < N; i++)
        want[i] = in[i] - 0.5f * in[i];
    passed =
        passed && CALL(work, fill, work->stream, m, 0, BYTES, &zero, 4) &&
        CALL(work, copy, work->stream, g, 0, w, 0, BYTES) &&
        call_succeeded(work,
                       tensors_launch(work->api, work->device, work->stream,
                                      &op, inputs, 3, outputs, 2, 64),
                       "launch of an optimizer") &&
        content_matches(work, w, want, N, "a step of an optimizer");
    work->api->free(m);
    return passed;
}

/* Waits until the background build has finished. */
static enum tandem_status ready_wait(struct workload *work,
                                     const struct tandem_op *op,
                                     const struct tandem_tensor_desc *operand)
{
    const struct timespec pause = {0, 200000};
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < 300000 && status == TANDEM_NOT_READY; i++) {
        status = tensors_poll(work->api, work->device, op, &operand, 1,
                              &operand, 1, 64);
        if (status == TANDEM_NOT_READY)
            nanosleep(&pause, NULL);
    }
    return status;
}

static bool prepare(struct workload *work, struct tandem_buffer *a,
                    struct tandem_buffer *b)
{
    const struct tandem_tensor_desc tensor = vector(a, N);
    const struct tandem_tensor_desc *operand = &tensor;
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ABS};

    (void)b;
    return call_succeeded(work,
                          tensors_prepare(work->api, work->device, &op,
                                          &operand, 1, &operand, 1, 64),
                          "prepare") &&
           call_succeeded(work, ready_wait(work, &op, operand), "ready") &&
           call_succeeded(work,
                          tensors_launch(work->api, work->device, work->stream,
                                         &op, &operand, 1, &operand, 1, 64),
                          "launch of what was prepared") &&
           content_matches(work, a, in, N, "what was prepared");
}

/* ---- streams ---- */

static bool pass(struct workload *work, struct tandem_buffer *a,
                 struct tandem_buffer *b)
{
    const struct tandem_backend *api = work->api;
    struct tandem_event *event = NULL;
    bool passed;

    fill_ramp(want, N, 2.0f, 0.5f);
    passed = launch_add(work, b, a, 1.0, N) &&
             CALL(work, event_record, work->stream, &event) &&
             CALL(work, event_wait, event, TANDEM_TIMEOUT_INFINITE) &&
             CALL(work, event_wait, event, 0) &&
             call_succeeded(work, api->event_wait(event, 1000000000u),
                            "event_wait with a limit") &&
             call_succeeded(work,
                            api->stream_synchronize(work->stream, 60000000000u),
                            "stream_synchronize with a limit") &&
             CALL(work, stream_synchronize, work->stream, 0) &&
             content_matches(work, b, want, N, "what an event passed");
    api->event_destroy(event);
    return passed;
}

static bool profile(struct workload *work, struct tandem_buffer *a,
                    struct tandem_buffer *b)
{
    const struct tandem_backend *api = work->api;
    struct tandem_stream *plain = work->stream, *timed = NULL;
    struct tandem_event *from = NULL, *to = NULL;
    uint64_t ns = 0;
    bool passed;

    passed = stream_wait(work, plain) &&
             call_succeeded(work,
                            api->stream_create(work->device,
                                               TANDEM_STREAM_PROFILING, &timed),
                            "stream_create for profiling");
    if (passed) {
        work->stream = timed;
        fill_ramp(want, N, 2.0f, 0.5f);
        passed = CALL(work, event_record, timed, &from) &&
                 launch_add(work, b, a, 1.0, N) &&
                 CALL(work, event_record, timed, &to) &&
                 CALL(work, event_wait, to, TANDEM_TIMEOUT_INFINITE) &&
                 CALL(work, event_elapsed_ns, from, to, &ns) &&
                 content_matches(work, b, want, N, "what was timed") &&
                 stream_wait(work, timed);
        work->stream = plain;
    }
    api->event_destroy(from);
    api->event_destroy(to);
    api->stream_destroy(timed);
    return passed;
}

/* Two streams alternate, and a block changes its owner without a wait. */
static bool cross(struct workload *work, struct tandem_buffer *a,
                  struct tandem_buffer *b)
{
    const struct tandem_backend *api = work->api;
    struct tandem_stream *first = work->stream, *second = NULL;
    struct tandem_buffer *again = NULL;
    struct tandem_event *event = NULL;
    bool passed;

    passed = CALL(work, stream_create, work->device, 0, &second) &&
             launch_add(work, b, a, 1.0, N) &&
             CALL(work, event_record, first, &event) &&
             CALL(work, stream_wait_event, second, event);
    if (passed) {
        work->stream = second;
        fill_ramp(want, N, 4.0f, 0.5f);
        passed = launch_add(work, b, b, 2.0, N) &&
                 content_matches(work, b, want, N, "work behind an event") &&
                 stream_wait(work, second);
        work->stream = first;
    }
    if (passed && buffer_new(work, BYTES, &again) &&
        launch_add(work, again, a, 3.0, N)) {
        api->free(again); /* The work that uses the buffer is still running. */
        passed = buffer_new(work, BYTES, &again);
        work->stream = second;
        fill_ramp(want, N, 6.0f, 0.5f);
        passed = passed && launch_add(work, again, a, 5.0, N) &&
                 content_matches(work, again, want, N,
                                 "a block that changed hands") &&
                 stream_wait(work, second);
        work->stream = first;
    } else {
        passed = false;
    }
    api->free(again);
    api->event_destroy(event);
    api->stream_destroy(second);
    return passed;
}

static bool housekeeping(struct workload *work, struct tandem_buffer *first,
                         struct tandem_buffer *second)
{
    const struct tandem_backend *api = work->api;
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};
    struct tandem_buffer *large = NULL;
    bool passed;

    (void)first;
    (void)second;
    passed = buffer_new(work, 2u << 20, &large);
    api->free(large);
    return passed && CALL(work, memory_stats, work->device, &stats) &&
           ((stats.buffer_count == 0 && stats.allocated_bytes == 0) ||
            record_violation(work, "buffers that nobody holds")) &&
           CALL(work, trim, work->device, 0) &&
           CALL(work, stream_synchronize, work->stream,
                TANDEM_TIMEOUT_INFINITE);
}

const struct section sections[SECTIONS] = {{"memory", N, move},
                                           {"large", LARGEST, move_large},
                                           {"pinned", 0, pinned},
                                           {"import", 0, import},
                                           {"map", N, map_both},
                                           {"operators", N, operators},
                                           {"reduce", LARGE, reduce},
                                           {"movement", N, movement},
                                           {"optimizer", N, optimize},
                                           {"prepare", N, prepare},
                                           {"events", N, pass},
                                           {"profiling", N, profile},
                                           {"streams", N, cross},
                                           {"products", 0, section_products},
                                           {"housekeeping", 0, housekeeping}};
