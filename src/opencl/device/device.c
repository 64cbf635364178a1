/* SPDX-License-Identifier: Apache-2.0 */
/* Validity checks, log, health check and fork detection of opened devices. */
#include "opencl/device/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/atfork.h"
#include "opencl/device/event_poll.h"

#define DEVICE_MAGIC 0x64657663u

struct handle_pool device_handles =
    HANDLE_POOL(struct tandem_device, DEVICE_MAGIC);
static atomic_bool forked;

static void record_fork(void)
{
    atomic_store(&forked, true);
}

bool fork_detected(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

void fork_detection_start(void)
{
    static struct atfork once = ATFORK;
    atfork_once(&once, NULL, NULL, record_fork);
}

enum tandem_status device_check(const struct tandem_device *device)
{
    enum tandem_status status = handle_check(&device_handles, device, "device",
                                             "a device, or it was closed");
    if (status != TANDEM_OK)
        return status;
    if (fork_detected())
        return last_error_set(
            TANDEM_DEVICE_LOST,
            "this process is a fork of the one that opened the device: OpenCL "
            "does not work here; open devices after the fork");
    if (atomic_load_explicit(&device->lost, memory_order_relaxed))
        return last_error_set(TANDEM_DEVICE_LOST,
                              "%s is lost: close it and open another",
                              device->hardware->info.name);
    return TANDEM_OK;
}

void device_log(struct tandem_device *device, enum tandem_log_level level,
                const char *format, ...)
{
    char line[1024];
    va_list arguments;
    tandem_log_fn log = device->log;
    if (log == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    for (char *at = line; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    log(device->log_user, level, line);
}

/* ---- health check ---- */

#define HEALTH_CHECK_BYTES 64u

/* The health check must not call status_from_cl, because status_from_cl calls
 * the health check. */
bool device_health_check(struct tandem_device *device)
{
    const cl_uint zero = 0;
    cl_event event = NULL;
    cl_int state = CL_QUEUED;
    bool is_healthy = false;
    if (device->utility == NULL || atomic_load(&device->lost))
        return !atomic_load(&device->lost);
    cl_mem mem = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                HEALTH_CHECK_BYTES, NULL, NULL);
    if (mem == NULL)
        return false;
    if (clEnqueueFillBuffer(device->utility, mem, &zero, sizeof(zero), 0,
                            HEALTH_CHECK_BYTES, 0, NULL,
                            &event) == CL_SUCCESS) {
        is_healthy =
            clFlush(device->utility) == CL_SUCCESS &&
            poll_event(event, HEALTH_CHECK_TIMEOUT_NS, &state) == CL_SUCCESS &&
            state == CL_COMPLETE;
        clReleaseEvent(event);
    }
    clReleaseMemObject(mem);
    return is_healthy;
}
