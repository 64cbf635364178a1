/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits for a device.  Some drivers sleep in their own waits, some
 * keep a processor busy; OpenCL does not tell which, so the first wait of a
 * device that lasts is watched, and a driver that was busy in it is polled from
 * then on.  Polling is also what a wait with a limit is, which OpenCL does not
 * offer.  Any thread.
 */
#include <sched.h>
#include <time.h>

#include "opencl/status.h"
#include "opencl/stream.h"

/* Polls at full speed so long, as most waits of small work end within it. */
#define SPIN_NS 100000u
/* Then it sleeps for this share of the time that was waited already, which
 * bounds both what a wait loses and what it costs. */
#define SLEEP_SHARE 16u
#define LONGEST_SLEEP_NS 500000u
/* A wait that lasts so long tells what a driver does in it. */
#define TELLING_NS 5000000u

static uint64_t clock_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool wait_polls(struct tandem_device *device)
{
    return atomic_load_explicit(&device->waits, memory_order_relaxed) ==
           WAITS_BUSY;
}

void wait_watch(struct tandem_device *device, struct wait_watch *out_watch)
{
    out_watch->wall_ns = 0;
    if (atomic_load_explicit(&device->waits, memory_order_relaxed) !=
        WAITS_UNKNOWN)
        return;
    out_watch->wall_ns = clock_now(CLOCK_MONOTONIC);
    out_watch->busy_ns = clock_now(CLOCK_THREAD_CPUTIME_ID);
}

void wait_watched(struct tandem_device *device, const struct wait_watch *watch)
{
    if (watch->wall_ns == 0)
        return;
    uint64_t wall_ns = clock_now(CLOCK_MONOTONIC) - watch->wall_ns;
    if (wall_ns < TELLING_NS)
        return;
    uint64_t busy_ns = clock_now(CLOCK_THREAD_CPUTIME_ID) - watch->busy_ns;
    bool busy = busy_ns > wall_ns / 10;
    atomic_store(&device->waits, busy ? WAITS_BUSY : WAITS_ASLEEP);
    device_log(device, TANDEM_LOG_DEBUG,
               "the driver was busy for %llu of %llu us in a wait: waits are "
               "%s",
               (unsigned long long)busy_ns / 1000,
               (unsigned long long)wall_ns / 1000,
               busy ? "polled from now on" : "left to it");
}

static void pause_after(uint64_t spent_ns, uint64_t left_ns)
{
    uint64_t sleep_ns = spent_ns / SLEEP_SHARE;
    if (spent_ns < SPIN_NS) {
        sched_yield();
        return;
    }
    if (sleep_ns > LONGEST_SLEEP_NS)
        sleep_ns = LONGEST_SLEEP_NS;
    struct timespec nap = {0, (long)(sleep_ns < left_ns ? sleep_ns : left_ns)};
    nanosleep(&nap, NULL);
}

enum tandem_status wait_polled(struct tandem_device *device, cl_event event,
                               uint64_t timeout_ns, cl_int *out_code)
{
    uint64_t start = 0;
    *out_code = CL_SUCCESS;
    for (;;) {
        cl_int state = CL_QUEUED;
        cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                     sizeof(state), &state, NULL);
        if (code != CL_SUCCESS)
            return status_from_cl(device, code, "clGetEventInfo");
        if (state <= CL_COMPLETE) {
            *out_code = state;
            return TANDEM_OK;
        }
        if (timeout_ns == 0)
            return message_set(TANDEM_NOT_READY, "work is under way");
        uint64_t now = clock_now(CLOCK_MONOTONIC);
        if (start == 0)
            start = now;
        uint64_t spent = now - start;
        if (spent >= timeout_ns)
            return message_set(TANDEM_NOT_READY,
                               "work is under way after %llu ns",
                               (unsigned long long)timeout_ns);
        pause_after(spent, timeout_ns - spent);
    }
}
