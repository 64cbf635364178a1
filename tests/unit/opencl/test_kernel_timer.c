/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel timer measures correctly although other processes sometimes use
 * the CPU. Tests kernel_timer.c alone, with a fake clock and a fake stream.
 */
#include <config.h>

#include <string.h>
#include <sys/resource.h>

#include "support/test_list.h"
#include "opencl/device/device.h"
#include "opencl/tune/kernel_timer.h"
#include "opencl/device/event_poll.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/transfer/transfer.h"

#define WAIT_NS 12000u /* The duration of a wait itself. */
/* The duration for which the system runs other processes. */
#define INTERRUPTION_NS 4000000u

static struct platform_device hardware = {.info.kind = TANDEM_DEVICE_GPU};
static struct tandem_device device = {.hardware = &hardware};
static uint64_t clock_ns, under_way_ns;
/* Which waits are interrupted by other processes. */
static uint32_t waits, interrupt_period, interrupted_wait;
/* Longer waits last until the other process's time slice ends. */
static uint64_t time_slice_ns;
static long turns;

uint64_t monotonic_ns(void)
{
    return clock_ns;
}

enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    (void)stream, (void)timeout_ns;
    const uint64_t lasts_ns = under_way_ns + WAIT_NS;
    clock_ns += lasts_ns;
    if (lasts_ns > time_slice_ns) {
        clock_ns = (clock_ns / INTERRUPTION_NS + 1) * INTERRUPTION_NS;
        turns++;
    }
    under_way_ns = 0;
    if (waits == interrupted_wait ||
        (interrupt_period != 0 && waits % interrupt_period == 0))
        clock_ns += INTERRUPTION_NS;
    waits++;
    return TANDEM_OK;
}

int getrusage(__rusage_who_t who, struct rusage *out)
{
    ck_assert_int_eq(who, RUSAGE_THREAD);
    memset(out, 0, sizeof(*out));
    out->ru_nivcsw = turns;
    return 0;
}

enum tandem_status stream_create(struct tandem_device *of, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    static struct tandem_stream stream;
    (void)of, (void)flags;
    *out_stream = &stream;
    return TANDEM_OK;
}

void stream_destroy(struct tandem_stream *stream)
{
    (void)stream;
}

enum tandem_status buffer_create(struct tandem_device *of, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer)
{
    static struct tandem_buffer buffer;
    (void)of, (void)bytes, (void)internal;
    *out_buffer = &buffer;
    return TANDEM_OK;
}

void buffer_destroy(struct tandem_buffer *buffer)
{
    (void)buffer;
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    (void)stream, (void)buffer, (void)offset, (void)source, (void)bytes;
    (void)flags;
    return TANDEM_OK;
}

enum tandem_status buffer_copy(struct tandem_stream *stream,
                               struct tandem_buffer *to, uint64_t to_offset,
                               struct tandem_buffer *from, uint64_t from_offset,
                               uint64_t bytes)
{
    (void)stream, (void)to, (void)to_offset, (void)from, (void)from_offset;
    (void)bytes;
    return TANDEM_OK;
}

static enum tandem_status launch(struct kernel_timer *timer, void *ns)
{
    (void)timer;
    clock_ns += 100;
    under_way_ns += *(const uint64_t *)ns;
    return TANDEM_OK;
}

static uint64_t deadline_ns = UINT64_MAX;

static enum tandem_status measure(struct kernel_timer *timer, uint64_t ns,
                                  double *out_ns)
{
    memset(timer, 0, sizeof(*timer));
    timer->device = &device;
    timer->deadline_ns = deadline_ns;
    clock_ns = under_way_ns = 0;
    waits = 0;
    return kernel_timer_measure(timer, launch, &ns, out_ns);
}

/* Returns the measured time of work that takes `ns`, divided by `ns`. */
static double measured_ratio(uint64_t ns, uint32_t which, uint32_t of)
{
    struct kernel_timer timer;
    double got;
    interrupted_wait = which;
    interrupt_period = of;
    time_slice_ns = UINT64_MAX;
    ck_assert_int_eq(measure(&timer, ns, &got), TANDEM_OK);
    ck_assert_uint_eq(timer.aborted, 0);
    return got / (double)ns;
}

static const uint64_t lengths[] = {5000, 30000, 200000, 3000000, 50000000};

/* Returns the time that remains after builds that take `ns` each. */
static uint64_t remaining_after_builds(uint64_t ns, uint32_t builds)
{
    struct kernel_timer timer;
    interrupted_wait = UINT32_MAX;
    interrupt_period = 0;
    time_slice_ns = UINT64_MAX;
    clock_ns = under_way_ns = 0;
    waits = 0;
    ck_assert_int_eq(
        kernel_timer_init(&timer, &device, UINT64_C(1) << 20, 5000000000),
        TANDEM_OK);
    for (uint32_t i = 0; i < builds; i++)
        ck_assert_int_eq(kernel_timer_build(&timer, launch, &ns), TANDEM_OK);
    return kernel_timer_remaining_ns(&timer);
}

TEST(builds_of_30_seconds_do_not_count)
{
    const uint64_t before = remaining_after_builds(0, 0);

    ck_assert_uint_eq(remaining_after_builds(2000000000, 1), before);
    ck_assert_uint_eq(remaining_after_builds(2000000000, 14), before);
    /* 32 s in total, of which 2 s count, and the time to launch and wait. */
    const uint64_t after = remaining_after_builds(2000000000, 16);
    ck_assert_uint_le(after, before - 2000000000);
    ck_assert_uint_ge(after, before - 2001000000);
    ck_assert_uint_eq(remaining_after_builds(2000000000, 30), 0);
}

TEST(waits_are_short_compared_to_batches)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        double share = measured_ratio(lengths[i], UINT32_MAX, 0);
        ck_assert(share >= 1.0 && share <= 1.06);
    }
}

TEST(one_interruption_has_no_effect)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (uint32_t which = 0; which < 12; which++) {
            double share = measured_ratio(lengths[i], which, 0);
            ck_assert(share >= 1.0 && share <= 1.06);
        }
}

TEST(every_other_wait_may_be_interrupted)
{
    /* The longest work is timed three times. */
    for (size_t i = 0; i + 1 < sizeof(lengths) / sizeof(lengths[0]); i++) {
        double share = measured_ratio(lengths[i], UINT32_MAX, 2);
        ck_assert(share >= 1.0 && share <= 1.06);
    }
}

/*
 * Values measured with as many busy threads as CPUs: NVIDIA's driver yields in
 * waits longer than about 100 us, and the time slice of other processes is 4
 * ms.
 */
TEST(busy_cpus_are_detected)
{
    struct kernel_timer timer;
    double got;
    interrupted_wait = UINT32_MAX;
    interrupt_period = 0;
    time_slice_ns = 100000;
    for (uint64_t ns = 5000; ns < 80000; ns += 5000) {
        ck_assert_int_eq(measure(&timer, ns, &got), TANDEM_OK);
        ck_assert(got >= (double)ns && got <= 1.4 * (double)ns);
    }
    ck_assert_int_eq(measure(&timer, 300000, &got), TANDEM_FAILED);
    ck_assert_uint_eq(timer.aborted, 1);
    /* On a CPU device, its own threads do not count as other processes. */
    hardware.info.kind = TANDEM_DEVICE_CPU;
    ck_assert_int_eq(measure(&timer, 300000, &got), TANDEM_OK);
    hardware.info.kind = TANDEM_DEVICE_GPU;
}

/* A compile may use up the time. */
TEST(no_result_after_the_time_limit)
{
    struct kernel_timer timer;
    double got;
    interrupted_wait = UINT32_MAX;
    interrupt_period = 0;
    time_slice_ns = UINT64_MAX;
    deadline_ns = 1;
    ck_assert_int_eq(measure(&timer, 10000, &got), TANDEM_FAILED);
    /* One batch that fills the measuring time is enough. */
    ck_assert_int_eq(measure(&timer, 3000000, &got), TANDEM_OK);
    ck_assert(got >= 3000000.0 && got <= 1.01 * 3000000.0);
    deadline_ns = UINT64_MAX;
}

TEST_MAIN(tests_run("kernel-timer"))
