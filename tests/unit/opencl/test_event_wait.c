/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the CPU time and the latency of waits: event_wait.c and event_poll.c
 * alone, with a driver, a clock and sleeps that this file simulates.
 */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "support/test_list.h"
#include "opencl/device/cl_status.h"
#include "opencl/device/event_wait.h"
#include "opencl/queue/stream.h"

#define US 1000u
#define MS (1000u * US)
#define S UINT64_C(1000000000)

/*
 * CPU time of a query and of a sleep on a slow machine, including system calls
 * and driver locks, and the wake-up latency.
 */
#define QUERY_NS (5 * US)
#define SLEEP_NS (15 * US)
#define WAKE_LATENCY_NS (5 * US)

/* ---- functions that the tested files call ---- */

static uint64_t wall_ns, busy_ns; /* The simulated clocks. */
static uint64_t end_ns;           /* When the work completes. */
static cl_event work_event;       /* The event of the work. */
static cl_int end_state;          /* The final state of the work. */
static cl_int query_code;         /* The return value of each query. */
/* Delay of the callback after the work completes; 0 means no callback. */
static uint64_t callback_delay_ns;
static uint32_t queries, naps, yields, sleeps;
/* The timer slack of the thread, and that during its last sleep. */
static long slack, slack_asleep;
static char call_failed[64];

static void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
static void *notify_user;

static struct platform_device hardware;
static struct tandem_device device;

static void time_pass(uint64_t ns)
{
    wall_ns += ns;
    busy_ns += ns;
}

int clock_gettime(clockid_t clock, struct timespec *out_now)
{
    const uint64_t now = clock == CLOCK_THREAD_CPUTIME_ID ? busy_ns : wall_ns;

    out_now->tv_sec = (time_t)(now / S);
    out_now->tv_nsec = (long)(now % S);
    return 0;
}

int sched_yield(void)
{
    yields++;
    time_pass(US);
    return 0;
}

int nanosleep(const struct timespec *length, struct timespec *left)
{
    (void)left;
    naps++;
    slack_asleep = slack;
    wall_ns += (uint64_t)length->tv_sec * S + (uint64_t)length->tv_nsec;
    wall_ns += WAKE_LATENCY_NS;
    time_pass(SLEEP_NS);
    return 0;
}

int prctl(int option, ...)
{
    va_list rest;

    if (option == PR_GET_TIMERSLACK)
        return (int)slack;
    ck_assert_int_eq(option, PR_SET_TIMERSLACK);
    va_start(rest, option);
    slack = (long)va_arg(rest, unsigned long);
    va_end(rest);
    return 0;
}

cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info name,
                                  size_t bytes, void *value, size_t *out_bytes)
{
    (void)event, (void)out_bytes;
    ck_assert_uint_eq(name, CL_EVENT_COMMAND_EXECUTION_STATUS);
    ck_assert_uint_eq(bytes, sizeof(cl_int));
    queries++;
    time_pass(QUERY_NS);
    *(cl_int *)value = wall_ns < end_ns ? CL_RUNNING : end_state;
    return query_code;
}

cl_int CL_API_CALL clSetEventCallback(
    cl_event event, cl_int state,
    void(CL_CALLBACK *callback)(cl_event, cl_int, void *), void *user)
{
    (void)event;
    ck_assert_int_eq(state, CL_COMPLETE);
    if (callback_delay_ns == 0)
        return CL_OUT_OF_RESOURCES;
    notify = callback;
    notify_user = user;
    return CL_SUCCESS;
}

/* The driver's callback arrives while the thread sleeps, or later. */
int pthread_cond_timedwait(pthread_cond_t *woken, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    const uint64_t deadline_ns =
        (uint64_t)until->tv_sec * S + (uint64_t)until->tv_nsec;

    (void)woken;
    sleeps++;
    busy_ns += SLEEP_NS;
    if (end_ns == UINT64_MAX || end_ns + callback_delay_ns >= deadline_ns) {
        wall_ns = deadline_ns;
        return ETIMEDOUT;
    }
    wall_ns = end_ns + callback_delay_ns;
    pthread_mutex_unlock(mutex);
    notify(NULL, end_state, notify_user);
    pthread_mutex_lock(mutex);
    return 0;
}

enum tandem_status status_from_cl(struct tandem_device *of, cl_int code,
                                  const char *call)
{
    ck_assert_ptr_eq(of, &device);
    ck_assert_int_ne(code, CL_SUCCESS);
    snprintf(call_failed, sizeof(call_failed), "%s", call);
    return TANDEM_FAILED;
}

/* ---- waits ---- */

static void set_up(void)
{
    memset(&device, 0, sizeof(device));
    hardware.info.kind = TANDEM_DEVICE_GPU;
    device.hardware = &hardware;
    wall_ns = 77 * S;
    busy_ns = 3 * S;
    end_state = CL_COMPLETE;
    query_code = CL_SUCCESS;
    callback_delay_ns = 0;
    slack = 50000;
    notify = NULL;
    work_event = NULL;
    call_failed[0] = '\0';
}

static uint64_t wait_ns, cpu_ns; /* Results of the last wait. */

static enum tandem_status wait_for(uint64_t work_ns, uint64_t timeout_ns,
                                   cl_int *out_code)
{
    const uint64_t start_ns = wall_ns, busy_start_ns = busy_ns;

    end_ns = work_ns == UINT64_MAX ? UINT64_MAX : wall_ns + work_ns;
    queries = naps = yields = sleeps = 0;
    slack_asleep = 0;
    enum tandem_status status =
        wait_event(&device, work_event, timeout_ns, out_code);
    wait_ns = wall_ns - start_ns;
    cpu_ns = busy_ns - busy_start_ns;
    return status;
}

static void wait_expect_ok(uint64_t work_ns, uint64_t timeout_ns)
{
    cl_int code = 1;

    ck_assert_int_eq(wait_for(work_ns, timeout_ns, &code), TANDEM_OK);
    ck_assert_int_eq(code, CL_COMPLETE);
    ck_assert_uint_ge(wait_ns, work_ns);
}

TEST(short_waits_poll_without_sleeping)
{
    for (uint64_t work_ns = 0; work_ns <= 90 * US; work_ns += 10 * US) {
        wait_expect_ok(work_ns, S);
        ck_assert_uint_eq(naps, 0);
        ck_assert_uint_le(wait_ns, work_ns + 2 * (QUERY_NS + US));
    }
    ck_assert_int_eq(slack, 50000);
}

TEST(long_waits_sleep_and_end_in_time)
{
    static const struct {
        uint64_t work_ns, most; /* CPU time in percent. */
    } waits[] = {{10 * MS, 48}, {100 * MS, 16}, {S, 6}, {10 * S, 5}};

    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        const uint64_t work_ns = waits[i].work_ns;
        const uint64_t nap_ns =
            work_ns / 256 < 500 * US ? work_ns / 256 : 500 * US;

        wait_expect_ok(work_ns, 100 * S);
        ck_assert_uint_le(wait_ns, work_ns + nap_ns + WAKE_LATENCY_NS +
                                       SLEEP_NS + 2 * QUERY_NS);
        ck_assert_uint_le(cpu_ns * 100, work_ns * waits[i].most);
        ck_assert_int_eq(slack_asleep, 1);
        ck_assert_int_eq(slack, 50000);
    }
}

TEST(a_timeout_is_kept)
{
    cl_int code = 1;

    for (uint64_t limit_ns = 0; limit_ns < S; limit_ns = limit_ns * 3 + 1) {
        ck_assert_int_eq(wait_for(UINT64_MAX, limit_ns, &code),
                         TANDEM_NOT_READY);
        ck_assert_int_eq(code, CL_SUCCESS);
        ck_assert_uint_ge(wait_ns, limit_ns);
        ck_assert_uint_le(wait_ns,
                          limit_ns + WAKE_LATENCY_NS + SLEEP_NS + 3 * QUERY_NS);
        ck_assert_int_eq(slack, 50000);
    }
    /* A single query. */
    ck_assert_int_eq(wait_for(UINT64_MAX, 0, &code), TANDEM_NOT_READY);
    ck_assert_uint_eq(queries, 1);
    ck_assert_uint_eq(naps + yields, 0);
}

TEST(waits_for_cpu_devices_sleep)
{
    cl_int code = 1;

    hardware.info.kind = TANDEM_DEVICE_CPU;
    callback_delay_ns = 10 * US;
    for (uint64_t work_ns = 10 * US; work_ns <= S; work_ns *= 10) {
        wait_expect_ok(work_ns, 2 * S);
        ck_assert_uint_le(queries, 2 + work_ns / (100 * MS));
        ck_assert_uint_eq(naps + yields, 0);
        ck_assert_uint_le(wait_ns, work_ns + callback_delay_ns + QUERY_NS);
    }
    wait_expect_ok(S, TANDEM_TIMEOUT_INFINITE);
    ck_assert_uint_eq(naps + yields, 0);
    ck_assert_int_eq(wait_for(2 * S, S, &code), TANDEM_NOT_READY);
    ck_assert_uint_ge(wait_ns, S);
    ck_assert_uint_le(wait_ns, S + 2 * QUERY_NS);
    ck_assert_int_eq(wait_for(UINT64_MAX, 0, &code), TANDEM_NOT_READY);
    ck_assert_uint_eq(queries, 1);
    ck_assert_uint_eq(sleeps, 0);
}

/* A late callback, which arrives when no thread waits any more. */
TEST(a_missing_callback_delays_a_wait_by_a_tenth_of_a_second)
{
    hardware.info.kind = TANDEM_DEVICE_CPU;
    callback_delay_ns = 10 * S;
    wait_expect_ok(S, TANDEM_TIMEOUT_INFINITE);
    ck_assert_uint_le(wait_ns, S + 110 * MS);
    notify(NULL, CL_COMPLETE, notify_user);
    callback_delay_ns = 10 * US;
    wait_expect_ok(10 * MS, S);
    ck_assert_uint_le(wait_ns, 10 * MS + callback_delay_ns + QUERY_NS);
}

/* A callback wakes few threads that wait for other events. */
TEST(waits_for_different_events_have_different_wake_slots)
{
    const void *slots[32];
    uint32_t different = 0;

    hardware.info.kind = TANDEM_DEVICE_CPU;
    callback_delay_ns = 10 * US;
    for (uintptr_t i = 0; i < 32; i++) {
        bool seen = false;

        work_event = (cl_event)(UINT64_C(0x7f0012345000) + 0x180 * i);
        wait_expect_ok(US * 100, S);
        slots[i] = notify_user;
        for (uintptr_t j = 0; j < i; j++)
            seen |= slots[j] == slots[i];
        different += !seen;
    }
    ck_assert_uint_ge(different, 20);
}

TEST(without_callbacks_waits_for_cpu_devices_poll)
{
    hardware.info.kind = TANDEM_DEVICE_CPU;
    wait_expect_ok(S, 2 * S);
    ck_assert_uint_ge(naps, 100);
    ck_assert_uint_eq(sleeps, 0);
    ck_assert_uint_le(cpu_ns, S / 10);
}

static const enum tandem_device_kind kinds[] = {TANDEM_DEVICE_GPU,
                                                TANDEM_DEVICE_CPU};

LOOP_TEST(the_error_of_failed_work_is_reported, 2)
{
    cl_int code = 1;

    hardware.info.kind = kinds[_i];
    callback_delay_ns = 10 * US;
    end_state = CL_OUT_OF_RESOURCES;
    ck_assert_int_eq(wait_for(MS, S, &code), TANDEM_OK);
    ck_assert_int_eq(code, CL_OUT_OF_RESOURCES);
    ck_assert_str_eq(call_failed, "");
}

LOOP_TEST(a_driver_error_is_reported, 2)
{
    cl_int code = 1;

    hardware.info.kind = kinds[_i];
    callback_delay_ns = 10 * US;
    query_code = CL_OUT_OF_HOST_MEMORY;
    ck_assert_int_eq(wait_for(MS, S, &code), TANDEM_FAILED);
    ck_assert_str_eq(call_failed, "clGetEventInfo");
    ck_assert_uint_eq(queries, 1);
}

TEST(work_over_little_memory_is_brief)
{
    static struct tandem_stream stream;
    uint32_t commands = 0;

    ck_assert(stream_wait_is_short(&stream));
    stream_add_pending(&stream, 4 << 20);
    ck_assert(stream_wait_is_short(&stream));
    stream_add_pending(&stream, 4 << 20);
    ck_assert(!stream_wait_is_short(&stream));
    stream_add_pending(&stream, UINT64_MAX);
    ck_assert(!stream_wait_is_short(&stream));
    atomic_store(&stream.pending_bytes, 0);
    for (; stream_wait_is_short(&stream); commands++)
        stream_add_pending(&stream, 0);
    ck_assert_uint_eq(commands, 128);
}

TEST_MAIN(tests_run_with("wait", set_up, NULL))
