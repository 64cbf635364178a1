/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for events and translates the result into a status. */
#include "opencl/device/event_wait.h"

#include "opencl/device/cl_status.h"

enum tandem_status wait_event(struct tandem_device *device, cl_event event,
                              uint64_t timeout_ns, cl_int *out_code)
{
    const bool cpu = device->hardware->info.kind == TANDEM_DEVICE_CPU;
    cl_int state;
    const cl_int code = cpu ? sleep_until_event(event, timeout_ns, &state)
                            : poll_event(event, timeout_ns, &state);
    *out_code = CL_SUCCESS;
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clGetEventInfo");
    if (state > CL_COMPLETE)
        return last_error_set(TANDEM_NOT_READY,
                              "work has not completed after %llu ns",
                              (unsigned long long)timeout_ns);
    *out_code = state;
    return TANDEM_OK;
}
