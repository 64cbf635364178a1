/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the errors that each OpenCL function may return although its caller
 * made no mistake: its own errors, and those of a driver that lost its state.
 */
#include "internal.h"

#include <string.h>

#define ILLEGAL_ACCESS_NV (-9999)
#define MAX_CODES 7

struct row {
    /* The first entry whose prefix matches the function's name is used. */
    const char *prefix;
    cl_int codes[MAX_CODES]; /* Ends with CL_SUCCESS. */
};

static const struct row rows[] = {
    {"clGetPlatformIDs", {CL_OUT_OF_HOST_MEMORY, -1001}},
    {"clGetDeviceIDs",
     {CL_DEVICE_NOT_FOUND, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
      CL_INVALID_PLATFORM}},
    {"clGetDeviceInfo",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_DEVICE,
      CL_INVALID_VALUE}},
    {"clCreateContext",
     {CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY}},
    {"clCreateCommandQueue",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_CONTEXT,
      CL_INVALID_QUEUE_PROPERTIES}},
    {"clCreateBuffer",
     {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY, CL_INVALID_BUFFER_SIZE, CL_INVALID_CONTEXT}},
    {"clBuildProgram",
     {CL_BUILD_PROGRAM_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
      CL_COMPILER_NOT_AVAILABLE, CL_INVALID_BUILD_OPTIONS, CL_INVALID_BINARY}},
    {"clCreateKernel",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_KERNEL_NAME,
      CL_INVALID_PROGRAM_EXECUTABLE}},
    {"clSetKernelArg",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_MEM_OBJECT,
      CL_INVALID_ARG_SIZE}},
    {"clEnqueueNDRangeKernel",
     {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY, CL_INVALID_WORK_GROUP_SIZE,
      CL_INVALID_COMMAND_QUEUE, CL_DEVICE_NOT_AVAILABLE, ILLEGAL_ACCESS_NV}},
    {"clEnqueueMapBuffer",
     {CL_MAP_FAILURE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY}},
    {"clEnqueue",
     {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY, CL_INVALID_COMMAND_QUEUE,
      CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_MEM_OBJECT,
      ILLEGAL_ACCESS_NV}},
    {"clFinish",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_COMMAND_QUEUE,
      CL_MEM_OBJECT_ALLOCATION_FAILURE, ILLEGAL_ACCESS_NV}},
    {"clFlush",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_COMMAND_QUEUE}},
    {"clWaitForEvents",
     {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY, CL_INVALID_EVENT, ILLEGAL_ACCESS_NV}},
    {"clGetEventProfilingInfo",
     {CL_PROFILING_INFO_NOT_AVAILABLE, CL_OUT_OF_RESOURCES,
      CL_OUT_OF_HOST_MEMORY, CL_INVALID_EVENT}},
    {"clGetEventInfo",
     {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_EVENT}},
    {"cl", {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_VALUE}}};

static const struct row *row_of(const char *function, uint32_t *out_count)
{
    const struct row *row = rows;
    uint32_t most = 0;

    while (strncmp(function, row->prefix, strlen(row->prefix)) != 0)
        row++;
    while (most < MAX_CODES && row->codes[most] != CL_SUCCESS)
        most++;
    *out_count = most;
    return row;
}

cl_int code_pick(const char *function, uint32_t pick)
{
    uint32_t most;
    const struct row *row = row_of(function, &most);

    return row->codes[pick % most];
}

uint32_t layer_codes(const char *function)
{
    uint32_t most;

    row_of(function, &most);
    return most;
}
