/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL layer that counts: objects created, retained and released, and
 * what is enqueued.  It changes nothing.  Any thread.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl_layer.h>

#include <string.h>

#include "layer.h"

static cl_icd_dispatch target; /* what we pass calls on to */
static cl_icd_dispatch layer;
static struct layer_counts counts;

static void count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

void layer_counts_read(struct layer_counts *out_counts)
{
    uint64_t copy[sizeof counts / sizeof(uint64_t)];
    const uint64_t *from = (const uint64_t *)&counts;

    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        copy[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    memcpy(out_counts, copy, sizeof copy);
}

/* ---- objects ---- */

/* A function that returns a new object. */
#define CREATES(object, type, name, parameters, arguments)                   \
    static type CL_API_CALL layer_##name parameters                          \
    {                                                                        \
        type created = target.name arguments;                                \
                                                                             \
        if (created)                                                         \
            count(&counts.created[object], 1);                               \
        return created;                                                      \
    }

CREATES(LAYER_CONTEXT, cl_context, clCreateContext,
        (const cl_context_properties *properties, cl_uint device_count,
         const cl_device_id *devices,
         void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
         void *user, cl_int *error),
        (properties, device_count, devices, notify, user, error))
CREATES(LAYER_CONTEXT, cl_context, clCreateContextFromType,
        (const cl_context_properties *properties, cl_device_type type,
         void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
         void *user, cl_int *error),
        (properties, type, notify, user, error))
CREATES(LAYER_QUEUE, cl_command_queue, clCreateCommandQueue,
        (cl_context context, cl_device_id device,
         cl_command_queue_properties properties, cl_int *error),
        (context, device, properties, error))
CREATES(LAYER_QUEUE, cl_command_queue, clCreateCommandQueueWithProperties,
        (cl_context context, cl_device_id device,
         const cl_queue_properties *properties, cl_int *error),
        (context, device, properties, error))
CREATES(LAYER_MEMORY, cl_mem, clCreateBuffer,
        (cl_context context, cl_mem_flags flags, size_t size, void *host,
         cl_int *error),
        (context, flags, size, host, error))
CREATES(LAYER_MEMORY, cl_mem, clCreateBufferWithProperties,
        (cl_context context, const cl_mem_properties *properties,
         cl_mem_flags flags, size_t size, void *host, cl_int *error),
        (context, properties, flags, size, host, error))
CREATES(LAYER_MEMORY, cl_mem, clCreateSubBuffer,
        (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
         const void *info, cl_int *error),
        (buffer, flags, type, info, error))
CREATES(LAYER_MEMORY, cl_mem, clCreateImage,
        (cl_context context, cl_mem_flags flags, const cl_image_format *format,
         const cl_image_desc *desc, void *host, cl_int *error),
        (context, flags, format, desc, host, error))
CREATES(LAYER_PROGRAM, cl_program, clCreateProgramWithSource,
        (cl_context context, cl_uint string_count, const char **strings,
         const size_t *lengths, cl_int *error),
        (context, string_count, strings, lengths, error))
CREATES(LAYER_PROGRAM, cl_program, clCreateProgramWithBinary,
        (cl_context context, cl_uint device_count, const cl_device_id *devices,
         const size_t *lengths, const unsigned char **binaries,
         cl_int *statuses, cl_int *error),
        (context, device_count, devices, lengths, binaries, statuses, error))
CREATES(LAYER_PROGRAM, cl_program, clCreateProgramWithIL,
        (cl_context context, const void *il, size_t length, cl_int *error),
        (context, il, length, error))
CREATES(LAYER_PROGRAM, cl_program, clCreateProgramWithBuiltInKernels,
        (cl_context context, cl_uint device_count, const cl_device_id *devices,
         const char *names, cl_int *error),
        (context, device_count, devices, names, error))
CREATES(LAYER_PROGRAM, cl_program, clLinkProgram,
        (cl_context context, cl_uint device_count, const cl_device_id *devices,
         const char *options, cl_uint program_count, const cl_program *programs,
         void(CL_CALLBACK *notify)(cl_program, void *), void *user,
         cl_int *error),
        (context, device_count, devices, options, program_count, programs,
         notify, user, error))
CREATES(LAYER_KERNEL, cl_kernel, clCreateKernel,
        (cl_program program, const char *name, cl_int *error),
        (program, name, error))
CREATES(LAYER_KERNEL, cl_kernel, clCloneKernel,
        (cl_kernel kernel, cl_int *error), (kernel, error))
CREATES(LAYER_EVENT, cl_event, clCreateUserEvent,
        (cl_context context, cl_int *error), (context, error))
CREATES(LAYER_SAMPLER, cl_sampler, clCreateSampler,
        (cl_context context, cl_bool normalized, cl_addressing_mode addressing,
         cl_filter_mode filter, cl_int *error),
        (context, normalized, addressing, filter, error))

static cl_int CL_API_CALL layer_clCreateKernelsInProgram(
    cl_program program, cl_uint room, cl_kernel *kernels, cl_uint *out_count)
{
    cl_uint made = 0;
    const cl_int error =
        target.clCreateKernelsInProgram(program, room, kernels, &made);

    if (out_count)
        *out_count = made;
    if (error == CL_SUCCESS && kernels)
        count(&counts.created[LAYER_KERNEL], made);
    return error;
}

/* Retain or release; counted is the field of the counts. */
#define REFERS(object, counted, type, name)                                  \
    static cl_int CL_API_CALL layer_##name(type handle)                      \
    {                                                                        \
        const cl_int error = target.name(handle);                            \
                                                                             \
        if (error == CL_SUCCESS)                                             \
            count(&counts.counted[object], 1);                               \
        return error;                                                        \
    }

REFERS(LAYER_CONTEXT, retained, cl_context, clRetainContext)
REFERS(LAYER_CONTEXT, released, cl_context, clReleaseContext)
REFERS(LAYER_QUEUE, retained, cl_command_queue, clRetainCommandQueue)
REFERS(LAYER_QUEUE, released, cl_command_queue, clReleaseCommandQueue)
REFERS(LAYER_MEMORY, retained, cl_mem, clRetainMemObject)
REFERS(LAYER_MEMORY, released, cl_mem, clReleaseMemObject)
REFERS(LAYER_PROGRAM, retained, cl_program, clRetainProgram)
REFERS(LAYER_PROGRAM, released, cl_program, clReleaseProgram)
REFERS(LAYER_KERNEL, retained, cl_kernel, clRetainKernel)
REFERS(LAYER_KERNEL, released, cl_kernel, clReleaseKernel)
REFERS(LAYER_EVENT, retained, cl_event, clRetainEvent)
REFERS(LAYER_EVENT, released, cl_event, clReleaseEvent)
REFERS(LAYER_SAMPLER, retained, cl_sampler, clRetainSampler)
REFERS(LAYER_SAMPLER, released, cl_sampler, clReleaseSampler)

/* ---- enqueued work ---- */

#define WAITS cl_uint wait_count, const cl_event *waits, cl_event *event

static void enqueued(cl_int error, uint64_t *counter, cl_bool blocking,
                     const cl_event *event)
{
    if (error != CL_SUCCESS)
        return;
    count(counter, 1);
    if (blocking)
        count(&counts.waits, 1);
    if (event && *event)
        count(&counts.created[LAYER_EVENT], 1);
}

#define ENQUEUES(counter, blocking, name, parameters, arguments)             \
    static cl_int CL_API_CALL layer_##name parameters                        \
    {                                                                        \
        const cl_int error = target.name arguments;                          \
                                                                             \
        enqueued(error, &counts.counter, blocking, event);                   \
        return error;                                                        \
    }

ENQUEUES(kernels, CL_FALSE, clEnqueueNDRangeKernel,
         (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
          const size_t *offset, const size_t *global, const size_t *local,
          WAITS),
         (queue, kernel, dimensions, offset, global, local, wait_count, waits,
          event))
ENQUEUES(kernels, CL_FALSE, clEnqueueTask,
         (cl_command_queue queue, cl_kernel kernel, WAITS),
         (queue, kernel, wait_count, waits, event))
ENQUEUES(reads, blocking, clEnqueueReadBuffer,
         (cl_command_queue queue, cl_mem buffer, cl_bool blocking,
          size_t offset, size_t size, void *host, WAITS),
         (queue, buffer, blocking, offset, size, host, wait_count, waits,
          event))
ENQUEUES(writes, blocking, clEnqueueWriteBuffer,
         (cl_command_queue queue, cl_mem buffer, cl_bool blocking,
          size_t offset, size_t size, const void *host, WAITS),
         (queue, buffer, blocking, offset, size, host, wait_count, waits,
          event))
ENQUEUES(reads, blocking, clEnqueueReadBufferRect,
         (cl_command_queue queue, cl_mem buffer, cl_bool blocking,
          const size_t *from, const size_t *to, const size_t *region,
          size_t row, size_t slice, size_t host_row, size_t host_slice,
          void *host, WAITS),
         (queue, buffer, blocking, from, to, region, row, slice, host_row,
          host_slice, host, wait_count, waits, event))
ENQUEUES(writes, blocking, clEnqueueWriteBufferRect,
         (cl_command_queue queue, cl_mem buffer, cl_bool blocking,
          const size_t *from, const size_t *to, const size_t *region,
          size_t row, size_t slice, size_t host_row, size_t host_slice,
          const void *host, WAITS),
         (queue, buffer, blocking, from, to, region, row, slice, host_row,
          host_slice, host, wait_count, waits, event))
ENQUEUES(copies, CL_FALSE, clEnqueueCopyBuffer,
         (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
          size_t to_offset, size_t size, WAITS),
         (queue, from, to, from_offset, to_offset, size, wait_count, waits,
          event))
ENQUEUES(copies, CL_FALSE, clEnqueueCopyBufferRect,
         (cl_command_queue queue, cl_mem from, cl_mem to,
          const size_t *from_origin, const size_t *to_origin,
          const size_t *region, size_t from_row, size_t from_slice,
          size_t to_row, size_t to_slice, WAITS),
         (queue, from, to, from_origin, to_origin, region, from_row,
          from_slice, to_row, to_slice, wait_count, waits, event))
ENQUEUES(fills, CL_FALSE, clEnqueueFillBuffer,
         (cl_command_queue queue, cl_mem buffer, const void *pattern,
          size_t pattern_size, size_t offset, size_t size, WAITS),
         (queue, buffer, pattern, pattern_size, offset, size, wait_count,
          waits, event))
ENQUEUES(unmaps, CL_FALSE, clEnqueueUnmapMemObject,
         (cl_command_queue queue, cl_mem memory, void *mapped, WAITS),
         (queue, memory, mapped, wait_count, waits, event))
ENQUEUES(copies, CL_FALSE, clEnqueueMigrateMemObjects,
         (cl_command_queue queue, cl_uint memory_count, const cl_mem *memories,
          cl_mem_migration_flags flags, WAITS),
         (queue, memory_count, memories, flags, wait_count, waits, event))
ENQUEUES(markers, CL_FALSE, clEnqueueMarkerWithWaitList,
         (cl_command_queue queue, WAITS), (queue, wait_count, waits, event))
ENQUEUES(markers, CL_FALSE, clEnqueueBarrierWithWaitList,
         (cl_command_queue queue, WAITS), (queue, wait_count, waits, event))
ENQUEUES(markers, CL_FALSE, clEnqueueMarker,
         (cl_command_queue queue, cl_event *event), (queue, event))

static void *CL_API_CALL layer_clEnqueueMapBuffer(
    cl_command_queue queue, cl_mem buffer, cl_bool blocking,
    cl_map_flags flags, size_t offset, size_t size, WAITS, cl_int *error)
{
    cl_int own = CL_SUCCESS;
    void *mapped =
        target.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size,
                                  wait_count, waits, event, &own);

    enqueued(own, &counts.maps, blocking, event);
    if (error)
        *error = own;
    return mapped;
}

static cl_int CL_API_CALL layer_clFinish(cl_command_queue queue)
{
    count(&counts.waits, 1);
    return target.clFinish(queue);
}

static cl_int CL_API_CALL layer_clWaitForEvents(cl_uint event_count,
                                                const cl_event *events)
{
    count(&counts.waits, 1);
    return target.clWaitForEvents(event_count, events);
}

static cl_int CL_API_CALL layer_clBuildProgram(
    cl_program program, cl_uint device_count, const cl_device_id *devices,
    const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
    void *user)
{
    count(&counts.builds, 1);
    return target.clBuildProgram(program, device_count, devices, options,
                                 notify, user);
}

/* ---- the layer ---- */

#define COUNTED(X)                                                           \
    X(clCreateContext) X(clCreateContextFromType) X(clRetainContext)         \
    X(clReleaseContext) X(clCreateCommandQueue)                              \
    X(clCreateCommandQueueWithProperties) X(clRetainCommandQueue)            \
    X(clReleaseCommandQueue) X(clCreateBuffer)                               \
    X(clCreateBufferWithProperties) X(clCreateSubBuffer) X(clCreateImage)    \
    X(clRetainMemObject) X(clReleaseMemObject) X(clCreateProgramWithSource)  \
    X(clCreateProgramWithBinary) X(clCreateProgramWithIL)                    \
    X(clCreateProgramWithBuiltInKernels) X(clLinkProgram)                    \
    X(clRetainProgram) X(clReleaseProgram) X(clBuildProgram)                 \
    X(clCreateKernel) X(clCloneKernel) X(clCreateKernelsInProgram)           \
    X(clRetainKernel) X(clReleaseKernel) X(clCreateUserEvent)                \
    X(clRetainEvent) X(clReleaseEvent) X(clCreateSampler)                    \
    X(clRetainSampler) X(clReleaseSampler) X(clEnqueueNDRangeKernel)         \
    X(clEnqueueTask) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer)          \
    X(clEnqueueReadBufferRect) X(clEnqueueWriteBufferRect)                   \
    X(clEnqueueCopyBuffer) X(clEnqueueCopyBufferRect)                        \
    X(clEnqueueFillBuffer) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject)  \
    X(clEnqueueMigrateMemObjects) X(clEnqueueMarkerWithWaitList)             \
    X(clEnqueueBarrierWithWaitList) X(clEnqueueMarker) X(clFinish)           \
    X(clWaitForEvents)

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL
clGetLayerInfo(cl_layer_info name, size_t room, void *value, size_t *out_size)
{
    static const char text[] = "tandem's counting layer";
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *from = name == CL_LAYER_NAME ? (const void *)text : &version;
    const size_t size = name == CL_LAYER_NAME ? sizeof text : sizeof version;

    if (name != CL_LAYER_NAME && name != CL_LAYER_API_VERSION)
        return CL_INVALID_VALUE;
    if (value && room < size)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, size);
    if (out_size)
        *out_size = size;
    return CL_SUCCESS;
}

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL
clInitLayer(cl_uint entries, const cl_icd_dispatch *target_dispatch,
            cl_uint *out_entries, const cl_icd_dispatch **out_dispatch)
{
    if (!target_dispatch || !out_entries || !out_dispatch ||
        entries < sizeof target / sizeof(void *))
        return CL_INVALID_VALUE;
    memcpy(&target, target_dispatch, sizeof target);
    layer = target;
#define REPLACE(name)                                                        \
    if (target.name)                                                         \
        layer.name = layer_##name;
    COUNTED(REPLACE)
    *out_entries = sizeof layer / sizeof(void *);
    *out_dispatch = &layer;
    return CL_SUCCESS;
}
