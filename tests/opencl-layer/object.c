/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that create, retain, release and query objects. Counts the
 * calls, and lets them fail as the script says.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- objects ---- */

/* Defines a function that returns an object, which `note` records. */
#define CREATES(object, type, name, text, note, parameters, arguments)       \
    type CL_API_CALL layer_##name parameters                                 \
    {                                                                        \
        cl_int code;                                                         \
        type created;                                                        \
                                                                             \
        if (fault_call(F_##name, text, &code)) {                             \
            if (error)                                                       \
                *error = code;                                               \
            return NULL;                                                     \
        }                                                                    \
        created = target.name arguments;                                     \
        if (created) {                                                       \
            count(&counts.created[object], 1);                               \
            note;                                                            \
        }                                                                    \
        return created;                                                      \
    }

CREATES(LAYER_CONTEXT, cl_context, clCreateContext, NULL, (void)0,
        (const cl_context_properties *properties, cl_uint device_count,
         const cl_device_id *devices,
         void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
         void *user, cl_int *error),
        (properties, device_count, devices, notify, user, error))
CREATES(LAYER_QUEUE, cl_command_queue, clCreateCommandQueue, NULL, (void)0,
        (cl_context context, cl_device_id device,
         cl_command_queue_properties properties, cl_int *error),
        (context, device, properties, error))
/*
 * The source prefix of the environment is one more string, if the arrays below
 * have room for it. They are reused by the thread's next call.
 */
#define MAX_STRINGS 16u
static const char *source_prefix(cl_uint string_count)
{
    return string_count + 1 < MAX_STRINGS ? getenv("TANDEM_LAYER_SOURCE_PREFIX")
                                          : NULL;
}

static cl_uint source_prefix_count(cl_uint string_count)
{
    return string_count + (source_prefix(string_count) != NULL);
}

static const char **source_prefix_strings(cl_uint string_count,
                                          const char **strings)
{
    static _Thread_local const char *texts[MAX_STRINGS];

    texts[0] = source_prefix(string_count);
    for (cl_uint i = 0; texts[0] && i < string_count; i++)
        texts[i + 1] = strings[i];
    return texts[0] ? texts : strings;
}

static const size_t *source_prefix_lengths(cl_uint string_count,
                                           const size_t *lengths)
{
    static _Thread_local size_t longer[MAX_STRINGS];

    if (!source_prefix(string_count) || !lengths)
        return lengths;
    memcpy(longer + 1, lengths, string_count * sizeof *lengths);
    return longer;
}

CREATES(LAYER_MEMORY, cl_mem, clCreateBuffer, NULL,
        (buffer_created(created), import_created(created, flags, host, size)),
        (cl_context context, cl_mem_flags flags, size_t size, void *host,
         cl_int *error),
        (context, import_flags(flags), size, host, error))
CREATES(LAYER_PROGRAM, cl_program, clCreateProgramWithSource, NULL, (void)0,
        (cl_context context, cl_uint string_count, const char **strings,
         const size_t *lengths, cl_int *error),
        (context, source_prefix_count(string_count),
         source_prefix_strings(string_count, strings),
         source_prefix_lengths(string_count, lengths), error))
CREATES(LAYER_PROGRAM, cl_program, clCreateProgramWithBinary, NULL, (void)0,
        (cl_context context, cl_uint device_count, const cl_device_id *devices,
         const size_t *lengths, const unsigned char **binaries,
         cl_int *statuses, cl_int *error),
        (context, device_count, devices, lengths, binaries, statuses, error))
CREATES(LAYER_KERNEL, cl_kernel, clCreateKernel, name,
        kernel_created(created, program, name),
        (cl_program program, const char *name, cl_int *error),
        (program, name, error))

#define RETAINS(object, type, name)                                          \
    cl_int CL_API_CALL layer_##name(type handle)                             \
    {                                                                        \
        cl_int error;                                                        \
                                                                             \
        if (fault_call(F_##name, NULL, &error))                              \
            return error;                                                    \
        error = target.name(handle);                                         \
        if (error == CL_SUCCESS)                                             \
            count(&counts.retained[object], 1);                              \
        return error;                                                        \
    }

RETAINS(LAYER_CONTEXT, cl_context, clRetainContext)
RETAINS(LAYER_QUEUE, cl_command_queue, clRetainCommandQueue)
RETAINS(LAYER_MEMORY, cl_mem, clRetainMemObject)
RETAINS(LAYER_KERNEL, cl_kernel, clRetainKernel)
RETAINS(LAYER_EVENT, cl_event, clRetainEvent)

/* Defines a release function. note: a statement that removes records. */
#define RELEASES(object, type, name, note)                                   \
    cl_int CL_API_CALL layer_##name(type handle)                             \
    {                                                                        \
        cl_int error;                                                        \
                                                                             \
        if (fault_call(F_##name, NULL, &error)) {                            \
            count(&counts.unreleased[object], 1);                            \
            return error;                                                    \
        }                                                                    \
        note;                                                                \
        error = target.name(handle);                                         \
        if (error == CL_SUCCESS)                                             \
            count(&counts.released[object], 1);                              \
        return error;                                                        \
    }

RELEASES(LAYER_CONTEXT, cl_context, clReleaseContext, (void)0)
RELEASES(LAYER_QUEUE, cl_command_queue, clReleaseCommandQueue,
         (queue_gone(handle), hold_queue_gone(handle)))
RELEASES(LAYER_MEMORY, cl_mem, clReleaseMemObject,
         (buffer_gone(handle), import_gone(handle)))
RELEASES(LAYER_PROGRAM, cl_program, clReleaseProgram, program_gone(handle))
RELEASES(LAYER_KERNEL, cl_kernel, clReleaseKernel, kernel_gone(handle))
RELEASES(LAYER_EVENT, cl_event, clReleaseEvent,
         (event_gone(handle), hold_event_gone(handle)))

/* ---- queries, and functions without an object ---- */

#define PASSES(name, parameters, arguments)                                  \
    cl_int CL_API_CALL layer_##name parameters                               \
    {                                                                        \
        cl_int error;                                                        \
                                                                             \
        if (fault_call(F_##name, NULL, &error))                              \
            return error;                                                    \
        return target.name arguments;                                        \
    }
#define ROOM size_t room, void *value, size_t *out_size

/* If the environment says so, cuts OCL_ICD_FILENAMES like CUDA's loader. */
static cl_uint drivers_cut(cl_uint room)
{
    char *drivers = getenv("OCL_ICD_FILENAMES");
    char *colon = drivers ? strchr(drivers, ':') : NULL;

    if (colon && getenv("TANDEM_LAYER_CUT_DRIVERS"))
        *colon = '\0';
    return room;
}

PASSES(clGetPlatformIDs,
       (cl_uint room, cl_platform_id *platforms, cl_uint *out_count),
       (drivers_cut(room), platforms, out_count))
PASSES(clGetPlatformInfo,
       (cl_platform_id platform, cl_platform_info name, ROOM),
       (platform, name, room, value, out_size))
PASSES(clGetDeviceIDs,
       (cl_platform_id platform, cl_device_type type, cl_uint room,
        cl_device_id *devices, cl_uint *out_count),
       (platform, type, room, devices, out_count))
PASSES(clGetContextInfo, (cl_context context, cl_context_info name, ROOM),
       (context, name, room, value, out_size))
PASSES(clGetCommandQueueInfo,
       (cl_command_queue queue, cl_command_queue_info name, ROOM),
       (queue, name, room, value, out_size))
PASSES(clGetMemObjectInfo, (cl_mem memory, cl_mem_info name, ROOM),
       (memory, name, room, value, out_size))
PASSES(clGetProgramInfo, (cl_program program, cl_program_info name, ROOM),
       (program, name, room, value, out_size))
PASSES(clGetKernelWorkGroupInfo,
       (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info name,
        ROOM),
       (kernel, device, name, room, value, out_size))
PASSES(clGetEventProfilingInfo,
       (cl_event event, cl_profiling_info name, ROOM),
       (event, name, room, value, out_size))

cl_int CL_API_CALL layer_clFlush(cl_command_queue queue)
{
    cl_int error;

    if (fault_call(F_clFlush, NULL, &error))
        return error;
    hold_flush(queue);
    return target.clFlush(queue);
}

#define DEVICE_GLOBAL_FREE_MEMORY_AMD 0x4039

/* A CPU reports to be a GPU, and its free memory, if the environment says so.
 */
cl_int CL_API_CALL layer_clGetDeviceInfo(cl_device_id device,
                                         cl_device_info name, ROOM)
{
    const char *gpu = getenv("TANDEM_LAYER_GPU");
    const char *free_kib = getenv("TANDEM_LAYER_FREE_KIB");
    cl_int error;

    if (fault_call(F_clGetDeviceInfo, NULL, &error))
        return error;
    if (name == DEVICE_GLOBAL_FREE_MEMORY_AMD && free_kib &&
        room >= sizeof(size_t)) {
        *(size_t *)value = strtoull(free_kib, NULL, 10);
        return CL_SUCCESS;
    }
    error = target.clGetDeviceInfo(device, name, room, value, out_size);
    if (error == CL_SUCCESS && value && name == CL_DEVICE_TYPE && gpu)
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    if (error == CL_SUCCESS && value && name == CL_DEVICE_HOST_UNIFIED_MEMORY &&
        gpu && strcmp(gpu, "discrete") == 0)
        *(cl_bool *)value = CL_FALSE;
    return error;
}

cl_int CL_API_CALL layer_clSetKernelArg(cl_kernel kernel, cl_uint index,
                                        size_t size, const void *value)
{
    cl_int error;

    if (fault_call(F_clSetKernelArg, NULL, &error))
        return error;
    error = target.clSetKernelArg(kernel, index, size, value);
    if (error == CL_SUCCESS)
        kernel_argument(kernel, index, size, value);
    return error;
}

/* ---- builds ---- */

cl_int CL_API_CALL layer_clBuildProgram(
    cl_program program, cl_uint device_count, const cl_device_id *devices,
    const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
    void *user)
{
    cl_int error;

    count(&counts.builds, 1);
    if (fault_call(F_clBuildProgram, options, &error))
        return error;
    error = target.clBuildProgram(program, device_count, devices, options,
                                  notify, user);
    if (error == CL_SUCCESS)
        program_built(program, options);
    return error;
}

cl_int CL_API_CALL layer_clGetProgramBuildInfo(cl_program program,
                                               cl_device_id device,
                                               cl_program_build_info name,
                                               ROOM)
{
    const char *log = fault_build_log();
    cl_int error;

    if (fault_call(F_clGetProgramBuildInfo, NULL, &error))
        return error;
    if (name != CL_PROGRAM_BUILD_LOG || !log)
        return target.clGetProgramBuildInfo(program, device, name, room, value,
                                            out_size);
    if (value && room > 0)
        snprintf(value, room, "%s", log);
    if (out_size)
        *out_size = strlen(log) + 1;
    return CL_SUCCESS;
}
