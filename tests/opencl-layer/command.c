/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that enqueue commands. Counts the calls, and lets calls or
 * commands fail as the script says.
 */
#include "internal.h"

#include <stdlib.h>

#define WAITS cl_uint wait_count, const cl_event *waits, cl_event *event

static void enqueued(cl_int error, uint64_t *counter, size_t bytes,
                     cl_bool blocking, const cl_event *event)
{
    if (error != CL_SUCCESS)
        return;
    count(counter, 1);
    count(&counts.bytes, bytes);
    if (blocking)
        count(&counts.waits, 1);
    if (event && *event)
        count(&counts.created[LAYER_EVENT], 1);
}

/*
 * first, second: the buffers of the command, or NULL. bytes: the size of a
 * transfer between a buffer and the host.
 */
#define ENQUEUES(counter, bytes, blocking, first, second, name, parameters,    \
                 arguments)                                                    \
    cl_int CL_API_CALL layer_##name parameters                                 \
    {                                                                          \
        const cl_mem uses[2] = {first, second};                                \
        struct hold_waits held;                                                \
        cl_int error;                                                          \
                                                                               \
        if (fault_call(F_##name, NULL, &error))                                \
            return error;                                                      \
        command_waits(queue, wait_count, waits);                               \
        if (!command_is_replaced(F_##name, NULL, queue, uses, 2, blocking,     \
                                 event, &error)) {                             \
            import_before_command(queue, uses, 2, false);                      \
            hold_begin(queue, blocking, &wait_count, &waits, &held);           \
            error = target.name arguments;                                     \
            import_after_command(queue, uses, 2, false);                       \
            hold_done(queue, blocking, event);                                 \
        }                                                                      \
        enqueued(error, &counts.counter, bytes, blocking, event);              \
        return error;                                                          \
    }

ENQUEUES(reads, size, blocking, buffer, NULL, clEnqueueReadBuffer,
         (cl_command_queue queue, cl_mem buffer, cl_bool blocking,
          size_t offset, size_t size, void *host, WAITS),
         (queue, buffer, blocking, offset, size, host, wait_count, waits,
          event))
ENQUEUES(writes, size, blocking, buffer, NULL, clEnqueueWriteBuffer,
         (cl_command_queue queue, cl_mem buffer, cl_bool blocking,
          size_t offset, size_t size, const void *host, WAITS),
         (queue, buffer, blocking, offset, size, host, wait_count, waits,
          event))
ENQUEUES(copies, size, CL_FALSE, from, to, clEnqueueCopyBuffer,
         (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
          size_t to_offset, size_t size, WAITS),
         (queue, from, to, from_offset, to_offset,
          (launch_log_copy(from_offset, to_offset, size), size), wait_count,
          waits, event))
ENQUEUES(fills, 0, CL_FALSE, buffer, NULL, clEnqueueFillBuffer,
         (cl_command_queue queue, cl_mem buffer, const void *pattern,
          size_t pattern_size, size_t offset, size_t size, WAITS),
         (queue, buffer, pattern, pattern_size, offset, size, wait_count,
          waits, event))
ENQUEUES(unmaps, 0, CL_FALSE, NULL, NULL, clEnqueueUnmapMemObject,
         (cl_command_queue queue, cl_mem memory, void *mapped, WAITS),
         (queue, memory, mapped, wait_count, waits, event))
ENQUEUES(markers, 0, CL_FALSE, NULL, NULL, clEnqueueMarkerWithWaitList,
         (cl_command_queue queue, WAITS), (queue, wait_count, waits, event))
ENQUEUES(markers, 0, CL_FALSE, NULL, NULL, clEnqueueBarrierWithWaitList,
         (cl_command_queue queue, WAITS), (queue, wait_count, waits, event))

cl_int CL_API_CALL layer_clEnqueueNDRangeKernel(
    cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
    const size_t *offset, const size_t *global, const size_t *local, WAITS)
{
    cl_mem memories[KERNEL_ARGUMENTS];
    char name[64];
    const cl_uint memory_count =
        kernel_memories(kernel, memories, name, sizeof name);
    struct hold_waits held;
    cl_int error;

    if (fault_call(F_clEnqueueNDRangeKernel, name, &error))
        return error;
    command_waits(queue, wait_count, waits);
    if (!command_is_replaced(F_clEnqueueNDRangeKernel, name, queue, memories,
                             memory_count, CL_FALSE, event, &error)) {
        import_before_command(queue, memories, memory_count, true);
        hold_begin(queue, CL_FALSE, &wait_count, &waits, &held);
        error = target.clEnqueueNDRangeKernel(queue, kernel, dimensions,
                                              offset, global, local,
                                              wait_count, waits, event);
        import_after_command(queue, memories, memory_count, true);
        hold_done(queue, CL_FALSE, event);
        if (error == CL_SUCCESS && dimensions == 1 && local)
            launch_log_kernel(kernel, *global, *local);
        if (error == CL_SUCCESS)
            kernel_corrupt(queue, kernel,
                           fault_result(F_clEnqueueNDRangeKernel, name));
    }
    enqueued(error, &counts.kernels, 0, CL_FALSE, event);
    return error;
}

/*
 * A map whose command fails nevertheless returns an address, like a driver
 * that returns it before the command runs.
 */
void *CL_API_CALL layer_clEnqueueMapBuffer(
    cl_command_queue queue, cl_mem buffer, cl_bool blocking,
    cl_map_flags flags, size_t offset, size_t size, WAITS, cl_int *error)
{
    struct hold_waits held;
    cl_int own = CL_SUCCESS;
    void *mapped = NULL;

    if (fault_call(F_clEnqueueMapBuffer, NULL, &own)) {
        if (error)
            *error = own;
        return NULL;
    }
    if (!command_is_replaced(F_clEnqueueMapBuffer, NULL, queue, &buffer, 1,
                             blocking, event, &own)) {
        hold_begin(queue, blocking, &wait_count, &waits, &held);
        mapped =
            target.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset,
                                      size, wait_count, waits, event, &own);
        hold_done(queue, blocking, event);
    } else if (own == CL_SUCCESS)
        mapped = target.clEnqueueMapBuffer(queue, buffer, CL_FALSE, flags,
                                           offset, size, 0, NULL, NULL, NULL);
    enqueued(own, &counts.maps, size, blocking, event);
    if (error)
        *error = own;
    return mapped;
}
