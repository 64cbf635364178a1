/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of OpenCL and CLBlast error codes, with their names and statuses. */
#include "opencl/device/cl_status.h"

#include "opencl/device/device.h"

/* NVIDIA's code for a kernel that accessed memory out of bounds. */
#define ILLEGAL_ACCESS_NV (-9999)

/* `suspect` is set if drivers also return the code from unrelated calls after
 * the device is lost.  For example, NVIDIA's driver returns CL_OUT_OF_RESOURCES
 * or CL_INVALID_COMMAND_QUEUE after a kernel has crashed. */
struct code {
    int value;
    enum tandem_status status;
    const char *name;
    bool suspect;
};

static const struct code cl_codes[] = {
    {CL_DEVICE_NOT_FOUND, TANDEM_NO_DEVICE, "CL_DEVICE_NOT_FOUND", false},
    {CL_DEVICE_NOT_AVAILABLE, TANDEM_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE",
     false},
    {CL_COMPILER_NOT_AVAILABLE, TANDEM_UNSUPPORTED, "CL_COMPILER_NOT_AVAILABLE",
     false},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, TANDEM_OUT_OF_MEMORY,
     "CL_MEM_OBJECT_ALLOCATION_FAILURE", false},
    {CL_OUT_OF_RESOURCES, TANDEM_OUT_OF_MEMORY, "CL_OUT_OF_RESOURCES", true},
    {CL_OUT_OF_HOST_MEMORY, TANDEM_OUT_OF_MEMORY, "CL_OUT_OF_HOST_MEMORY",
     false},
    {CL_PROFILING_INFO_NOT_AVAILABLE, TANDEM_NOT_READY,
     "CL_PROFILING_INFO_NOT_AVAILABLE", false},
    {CL_BUILD_PROGRAM_FAILURE, TANDEM_FAILED, "CL_BUILD_PROGRAM_FAILURE",
     false},
    {CL_MAP_FAILURE, TANDEM_FAILED, "CL_MAP_FAILURE", false},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, TANDEM_FAILED,
     "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", true},
    {CL_INVALID_VALUE, TANDEM_FAILED, "CL_INVALID_VALUE", false},
    {CL_INVALID_PLATFORM, TANDEM_NO_DEVICE, "CL_INVALID_PLATFORM", false},
    {CL_INVALID_DEVICE, TANDEM_NO_DEVICE, "CL_INVALID_DEVICE", false},
    {CL_INVALID_CONTEXT, TANDEM_FAILED, "CL_INVALID_CONTEXT", true},
    {CL_INVALID_COMMAND_QUEUE, TANDEM_FAILED, "CL_INVALID_COMMAND_QUEUE", true},
    {CL_INVALID_MEM_OBJECT, TANDEM_FAILED, "CL_INVALID_MEM_OBJECT", true},
    {CL_INVALID_BINARY, TANDEM_FAILED, "CL_INVALID_BINARY", false},
    {CL_INVALID_BUILD_OPTIONS, TANDEM_FAILED, "CL_INVALID_BUILD_OPTIONS",
     false},
    {CL_INVALID_PROGRAM, TANDEM_FAILED, "CL_INVALID_PROGRAM", false},
    {CL_INVALID_PROGRAM_EXECUTABLE, TANDEM_FAILED,
     "CL_INVALID_PROGRAM_EXECUTABLE", false},
    {CL_INVALID_KERNEL_NAME, TANDEM_FAILED, "CL_INVALID_KERNEL_NAME", false},
    {CL_INVALID_KERNEL, TANDEM_FAILED, "CL_INVALID_KERNEL", false},
    {CL_INVALID_ARG_INDEX, TANDEM_FAILED, "CL_INVALID_ARG_INDEX", false},
    {CL_INVALID_ARG_VALUE, TANDEM_FAILED, "CL_INVALID_ARG_VALUE", false},
    {CL_INVALID_ARG_SIZE, TANDEM_FAILED, "CL_INVALID_ARG_SIZE", false},
    {CL_INVALID_KERNEL_ARGS, TANDEM_FAILED, "CL_INVALID_KERNEL_ARGS", false},
    {CL_INVALID_WORK_GROUP_SIZE, TANDEM_FAILED, "CL_INVALID_WORK_GROUP_SIZE",
     false},
    {CL_INVALID_GLOBAL_WORK_SIZE, TANDEM_FAILED, "CL_INVALID_GLOBAL_WORK_SIZE",
     false},
    {CL_INVALID_EVENT_WAIT_LIST, TANDEM_FAILED, "CL_INVALID_EVENT_WAIT_LIST",
     false},
    {CL_INVALID_EVENT, TANDEM_FAILED, "CL_INVALID_EVENT", true},
    {CL_INVALID_OPERATION, TANDEM_FAILED, "CL_INVALID_OPERATION", false},
    {CL_INVALID_BUFFER_SIZE, TANDEM_OUT_OF_MEMORY, "CL_INVALID_BUFFER_SIZE",
     false},
    {CL_PLATFORM_NOT_FOUND_KHR, TANDEM_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR",
     false},
    {ILLEGAL_ACCESS_NV, TANDEM_DEVICE_LOST, "illegal access by a kernel",
     false},
    {0, TANDEM_FAILED, NULL, true}};

/* The codes of CLBlast itself.  Its other codes are OpenCL codes. */
static const struct code clblast_codes[] = {
    {-1024, TANDEM_UNSUPPORTED, "not implemented", false},
    {-1022, TANDEM_FAILED, "matrix A is no buffer", false},
    {-1021, TANDEM_FAILED, "matrix B is no buffer", false},
    {-1020, TANDEM_FAILED, "matrix C is no buffer", false},
    {-1017, TANDEM_FAILED, "a dimension is zero", false},
    {-1016, TANDEM_FAILED, "A's leading dimension is too small", false},
    {-1015, TANDEM_FAILED, "B's leading dimension is too small", false},
    {-1014, TANDEM_FAILED, "C's leading dimension is too small", false},
    {-1011, TANDEM_FAILED, "A's buffer is too small", false},
    {-1010, TANDEM_FAILED, "B's buffer is too small", false},
    {-1009, TANDEM_FAILED, "C's buffer is too small", false},
    {-2050, TANDEM_FAILED, "the temporary buffer is too small", false},
    {-2049, TANDEM_FAILED, "invalid batch count", false},
    {-2046, TANDEM_UNSUPPORTED, "not enough local memory", false},
    {-2045, TANDEM_UNSUPPORTED, "no half precision", false},
    {-2044, TANDEM_UNSUPPORTED, "no double precision", false},
    {-2041, TANDEM_FAILED, "database error", false},
    {-2040, TANDEM_FAILED, "unknown error", false},
    {-2039, TANDEM_FAILED, "unexpected exception", false},
    {0, TANDEM_FAILED, NULL, false}};

static const struct code *code_find(const struct code *codes, int value)
{
    while (codes->name != NULL && codes->value != value)
        codes++;
    return codes;
}

static const char *advice(enum tandem_status status, int value)
{
    if (status == TANDEM_DEVICE_LOST)
        return "; the device is lost: close it and open another";
    if (status != TANDEM_OUT_OF_MEMORY)
        return "";
    switch (value) {
    case CL_OUT_OF_HOST_MEMORY:
        return "; the driver found no memory of the host";
    case CL_INVALID_BUFFER_SIZE:
        return "; the buffer is larger than the device allows: use smaller "
               "ones";
    default:
        return "; free buffers, or use smaller ones";
    }
}

static enum tandem_status report(struct tandem_device *device,
                                 const struct code *code, int value,
                                 const char *call)
{
    enum tandem_status status = code->status;
    if (code->suspect && device != NULL && !device_health_check(device))
        status = TANDEM_DEVICE_LOST;
    if (status == TANDEM_DEVICE_LOST && device != NULL)
        atomic_store(&device->lost, true);
    return last_error_set(status, "%s: %s (%d)%s%s%s", call,
                          code->name != NULL ? code->name : "an unknown error",
                          value, device != NULL ? " on " : "",
                          device != NULL ? device->hardware->info.name : "",
                          advice(status, value));
}

enum tandem_status status_from_cl(struct tandem_device *device, cl_int code,
                                  const char *call)
{
    if (code == CL_SUCCESS)
        return TANDEM_OK;
    return report(device, code_find(cl_codes, code), code, call);
}

enum tandem_status status_from_clblast(struct tandem_device *device, int code,
                                       const char *call)
{
    if (code == 0)
        return TANDEM_OK;
    if (code > -1000 || code == ILLEGAL_ACCESS_NV)
        return status_from_cl(device, code, call);
    return report(device, code_find(clblast_codes, code), code, call);
}
