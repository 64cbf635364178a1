/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for an event with a limit, which OpenCL does not offer. */
#include <sched.h>
#include <time.h>

#include "opencl/status.h"
#include "opencl/stream.h"

/* Polls at full speed so long, as most waits of small work end within it. */
#define SPIN_NS 50000u
#define SHORTEST_SLEEP_NS 20000u
#define LONGEST_SLEEP_NS 500000u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

enum tandem_status wait_polled(struct tandem_device *device, cl_event event,
                               uint64_t timeout_ns, cl_int *out_code)
{
    uint64_t start = 0, pause = SHORTEST_SLEEP_NS;
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
        uint64_t now = now_ns();
        if (start == 0)
            start = now;
        uint64_t spent = now - start;
        if (spent >= timeout_ns)
            return message_set(TANDEM_NOT_READY,
                               "work is under way after %llu ns",
                               (unsigned long long)timeout_ns);
        if (spent < SPIN_NS) {
            sched_yield();
            continue;
        }
        uint64_t left = timeout_ns - spent;
        uint64_t sleep = pause < left ? pause : left;
        struct timespec nap = {0, (long)sleep};
        nanosleep(&nap, NULL);
        pause = pause * 2 < LONGEST_SLEEP_NS ? pause * 2 : LONGEST_SLEEP_NS;
    }
}
