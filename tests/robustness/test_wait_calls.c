/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL calls of long waits for a device: none of them is the driver's own
 * wait, which can be a busy loop, and events are queried so rarely that other
 * processes get the CPU. The driver makes callbacks or does not.
 */
#include <time.h>

#include "../../tools/common/tensor_call.h"
#include "single_fault.h"

#define ELEMENTS ((int64_t)1 << 20)
#define BYTES ((uint64_t)ELEMENTS * sizeof(float))
#define LIMIT_NS UINT64_C(600000000000)
#define LONG_S 0.2

static struct tandem_buffer *buffer;
static int64_t repeats; /* Launches that take at least LONG_S seconds. */

static double clock_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void enqueue(int64_t launches)
{
    const struct tandem_tensor_desc x = {.buffer = buffer,
                                         .dtype = TANDEM_F32,
                                         .rank = 1,
                                         .shape = {ELEMENTS},
                                         .strides = {1}};
    const struct tandem_tensor_desc *const descs[] = {&x};
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ERF};

    for (int64_t i = 0; i < launches; i++)
        OK(tensors_launch(plug.api, work.device, work.stream, &op, descs, 1,
                          descs, 1, 64));
}

/* Opens the device for all tests and measures the launch. */
static void set_up(void)
{
    const float one = 1.0f;
    double start;

    if (buffer)
        return;
    device_new(NULL, NULL);
    OK(plug.api->alloc(work.device, TANDEM_BYTES(BYTES), &buffer));
    OK(plug.api->fill(work.stream, buffer, 0, BYTES, &one, sizeof one));
    enqueue(1);
    OK(synchronize());
    start = clock_s();
    enqueue(1);
    OK(synchronize());
    repeats = (int64_t)(LONG_S / (clock_s() - start)) + 1;
}

static void wait_by_stream(uint64_t timeout_ns)
{
    OK(plug.api->stream_synchronize(work.stream, timeout_ns));
}

static void wait_by_event(uint64_t timeout_ns)
{
    struct tandem_event *event;

    OK(plug.api->event_record(work.stream, &event));
    OK(plug.api->event_wait(event, timeout_ns));
    plug.api->event_destroy(event);
}

static void wait_by_download(uint64_t timeout_ns)
{
    float result[1024];

    OK(plug.api->download(work.stream, buffer, 0, result, sizeof result, 0,
                          timeout_ns));
}

static void (*const waits[])(uint64_t timeout_ns) = {
    wait_by_stream, wait_by_event, wait_by_download};

/*
 * A wait for a CPU device sleeps until the driver calls back, and queries the
 * event every 100 ms. Without callbacks, it queries the event continuously for
 * 100 us, which is at most some thousand times, and then between sleeps of 10
 * us to 0.5 ms (docs/plugin-abi.md). Polling without sleeps would exceed the
 * limit within some milliseconds.
 */
LOOP_TEST(a_long_wait_makes_few_calls, 4 * CASES_IN(waits))
{
    const bool has_callbacks = _i & 1, has_limit = _i & 2;
    const uint64_t waits_before = plug_counts(&plug).waits;
    uint64_t queries, waited;
    double start, seconds, limit;

    enqueue(repeats);
    script_nth(LAYER_FAULT_CALL, "clSetEventCallback",
               has_callbacks ? UINT64_MAX / 2 : 1, UINT64_MAX / 2, -5);
    start = clock_s();
    waits[_i / 4](has_limit ? LIMIT_NS : TANDEM_TIMEOUT_INFINITE);
    seconds = clock_s() - start;
    queries = calls_of("clGetEventInfo");
    waited = plug_counts(&plug).waits - waits_before;
    limit = has_callbacks ? 4 + seconds / 50e-3 : 3000 + seconds / 250e-6;
    ck_assert_uint_eq(waited, 0);
    ck_assert_msg((double)queries < limit,
                  "%llu queries in %g s, expected fewer than %g",
                  (unsigned long long)queries, seconds, limit);
}

int main(void)
{
    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    return plug_start(&plug)
               ? tests_run_without_fork("wait-calls", set_up, NULL)
               : 77;
}
