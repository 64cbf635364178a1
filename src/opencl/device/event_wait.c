/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for events. OpenCL does not report whether the driver's wait function
 * spins, so the first long wait is timed. A wait without a timeout uses the
 * function unless the function spins. OpenCL has no wait function with a
 * timeout. Therefore, on a GPU, a wait with a timeout polls, because callbacks
 * can be late (20 ms with NVIDIA's driver). On a CPU device, it sleeps until
 * the driver calls back, because polling would take CPU time from the work. */
#include "opencl/device/event_wait.h"

#include <time.h>

#include "opencl/device/cl_status.h"

/* A driver wait of at least MIN_TIMED_WAIT_NS shows whether the driver spins.
 * A blocking wait uses almost no CPU time.  A spinning wait uses all CPU time
 * that other processes leave, which can be little.  Therefore, a wait whose CPU
 * time exceeds 1/32 of its duration counts as spinning. */
#define MIN_TIMED_WAIT_NS 5000000u
#define SPINNING_DIVISOR 32u
/* Maximum time from the end of a driver wait until the event reports that its
 * command has completed. */
#define STATE_DELAY_NS 1000000000u

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool driver_wait_is_spinning(struct tandem_device *device)
{
    return atomic_load_explicit(&device->driver_wait_mode,
                                memory_order_relaxed) == DRIVER_WAIT_SPINNING;
}

/* Waits with the driver's wait function.  Measures the first long wait and sets
 * device->driver_wait_mode. */
static cl_int driver_wait(struct tandem_device *device, cl_event event)
{
    if (atomic_load_explicit(&device->driver_wait_mode, memory_order_relaxed) !=
        DRIVER_WAIT_UNKNOWN)
        return clWaitForEvents(1, &event);
    const uint64_t start_ns = monotonic_ns(), start_cpu_ns = thread_cpu_ns();
    const cl_int code = clWaitForEvents(1, &event);
    const uint64_t wall_ns = monotonic_ns() - start_ns;
    if (wall_ns < MIN_TIMED_WAIT_NS)
        return code;
    const uint64_t cpu_ns = thread_cpu_ns() - start_cpu_ns;
    const bool spins = cpu_ns > wall_ns / SPINNING_DIVISOR;
    atomic_store(&device->driver_wait_mode,
                 spins ? DRIVER_WAIT_SPINNING : DRIVER_WAIT_BLOCKING);
    device_log(
        device, TANDEM_LOG_DEBUG,
        "a driver wait used %llu of %llu us of CPU time: driver waits are %s",
        (unsigned long long)cpu_ns / 1000, (unsigned long long)wall_ns / 1000,
        spins ? "avoided from now on" : "used");
    return code;
}

static enum tandem_status wait_with_timeout(struct tandem_device *device,
                                            cl_event event, uint64_t timeout_ns,
                                            cl_int *out_code)
{
    cl_int state = CL_QUEUED;
    cl_int code = event_get_state(event, &state);
    *out_code = CL_SUCCESS;
    if (code == CL_SUCCESS && state > CL_COMPLETE && timeout_ns != 0 &&
        (device->hardware->info.kind != TANDEM_DEVICE_CPU ||
         !sleep_until_event(event, timeout_ns, &state, &code)))
        code = poll_event(event, timeout_ns, &state);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clGetEventInfo");
    if (state > CL_COMPLETE)
        return last_error_set(TANDEM_NOT_READY,
                              "work has not completed after %llu ns",
                              (unsigned long long)timeout_ns);
    *out_code = state;
    return TANDEM_OK;
}

enum tandem_status wait_event(struct tandem_device *device, cl_event event,
                              uint64_t timeout_ns, cl_int *out_code)
{
    *out_code = CL_SUCCESS;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE ||
        driver_wait_is_spinning(device))
        return wait_with_timeout(device, event, timeout_ns, out_code);
    cl_int code = driver_wait(device, event);
    if (code != CL_SUCCESS &&
        code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        return status_from_cl(device, code, "clWaitForEvents");
    enum tandem_status status =
        wait_with_timeout(device, event, STATE_DELAY_NS, out_code);
    if (code != CL_SUCCESS && *out_code == CL_SUCCESS)
        *out_code = code;
    return status;
}
