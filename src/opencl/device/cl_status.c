/* SPDX-License-Identifier: Apache-2.0 */
/* Converts error codes of OpenCL and CLBlast to statuses with lookup tables. */
#include "opencl/device/cl_status.h"

#include "opencl/device/device.h"

/* NVIDIA's driver returns this code after a kernel accessed invalid memory. */
#define ILLEGAL_ACCESS_NV (-9999)

/* An error code.  `suspect` is true if drivers also return this code from
 * unrelated calls after the device is lost.  For example, after a kernel crash
 * NVIDIA's driver returns CL_OUT_OF_RESOURCES or CL_INVALID_COMMAND_QUEUE. */
struct code {
    int value;
    enum tandem_status status;
    const char *name;
    bool suspect;
};

#define CODE(code, status, suspect)                                            \
    {                                                                          \
        code, TANDEM_##status, #code, suspect                                  \
    }

static const struct code cl_codes[] = {
    CODE(CL_DEVICE_NOT_FOUND, NO_DEVICE, false),
    CODE(CL_DEVICE_NOT_AVAILABLE, DEVICE_LOST, false),
    CODE(CL_COMPILER_NOT_AVAILABLE, UNSUPPORTED, false),
    CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_MEMORY, false),
    CODE(CL_OUT_OF_RESOURCES, OUT_OF_MEMORY, true),
    CODE(CL_OUT_OF_HOST_MEMORY, OUT_OF_MEMORY, false),
    CODE(CL_PROFILING_INFO_NOT_AVAILABLE, NOT_READY, false),
    CODE(CL_BUILD_PROGRAM_FAILURE, FAILED, false),
    CODE(CL_MAP_FAILURE, FAILED, false),
    CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, FAILED, true),
    CODE(CL_INVALID_VALUE, FAILED, false),
    CODE(CL_INVALID_PLATFORM, NO_DEVICE, false),
    CODE(CL_INVALID_DEVICE, NO_DEVICE, false),
    CODE(CL_INVALID_CONTEXT, FAILED, true),
    CODE(CL_INVALID_COMMAND_QUEUE, FAILED, true),
    CODE(CL_INVALID_MEM_OBJECT, FAILED, true),
    CODE(CL_INVALID_BINARY, FAILED, false),
    CODE(CL_INVALID_BUILD_OPTIONS, FAILED, false),
    CODE(CL_INVALID_PROGRAM, FAILED, false),
    CODE(CL_INVALID_PROGRAM_EXECUTABLE, FAILED, false),
    CODE(CL_INVALID_KERNEL_NAME, FAILED, false),
    CODE(CL_INVALID_KERNEL, FAILED, false),
    CODE(CL_INVALID_ARG_INDEX, FAILED, false),
    CODE(CL_INVALID_ARG_VALUE, FAILED, false),
    CODE(CL_INVALID_ARG_SIZE, FAILED, false),
    CODE(CL_INVALID_KERNEL_ARGS, FAILED, false),
    CODE(CL_INVALID_WORK_GROUP_SIZE, FAILED, false),
    CODE(CL_INVALID_GLOBAL_WORK_SIZE, FAILED, false),
    CODE(CL_INVALID_EVENT_WAIT_LIST, FAILED, false),
    CODE(CL_INVALID_EVENT, FAILED, true),
    CODE(CL_INVALID_OPERATION, FAILED, false),
    CODE(CL_INVALID_BUFFER_SIZE, OUT_OF_MEMORY, false),
    CODE(CL_PLATFORM_NOT_FOUND_KHR, NO_DEVICE, false),
    {ILLEGAL_ACCESS_NV, TANDEM_DEVICE_LOST, "illegal access by a kernel",
     false},
    {0, TANDEM_FAILED, NULL, true}};

/* Error codes that CLBlast defines.  CLBlast also returns codes of OpenCL. */
static const struct code clblast_codes[] = {
    {-1024, TANDEM_UNSUPPORTED, "not implemented", false},
    {-1022, TANDEM_FAILED, "matrix A is not a buffer", false},
    {-1021, TANDEM_FAILED, "matrix B is not a buffer", false},
    {-1020, TANDEM_FAILED, "matrix C is not a buffer", false},
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
        return "; the host has too little memory";
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
