/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL layer that counts how often a thread waits in the driver, and how
 * often it queries events. With WAIT_LAYER_NO_CALLBACKS in the environment, it
 * simulates a driver that makes no callbacks.
 *
 * Any thread may call the layer.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <stdlib.h>

#include "wait_counting_layer.h"

#define EXPORT __attribute__((visibility("default")))

static cl_icd_dispatch target, layer;
static _Thread_local struct wait_layer_counts counts;

EXPORT struct wait_layer_counts wait_layer_counts(void)
{
    return counts;
}

/* ---- counted functions ---- */

static cl_int CL_API_CALL layer_finish(cl_command_queue queue)
{
    counts.waits++;
    return target.clFinish(queue);
}

static cl_int CL_API_CALL layer_wait(cl_uint count, const cl_event *events)
{
    counts.waits++;
    return target.clWaitForEvents(count, events);
}

static cl_int CL_API_CALL layer_read(cl_command_queue queue, cl_mem buffer,
                                     cl_bool blocking, size_t offset,
                                     size_t bytes, void *memory,
                                     cl_uint wait_count, const cl_event *waits,
                                     cl_event *event)
{
    counts.waits += blocking ? 1 : 0;
    return target.clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes,
                                      memory, wait_count, waits, event);
}

static cl_int CL_API_CALL layer_ask(cl_event event, cl_event_info name,
                                    size_t bytes, void *value,
                                    size_t *out_bytes)
{
    counts.queries += name == CL_EVENT_COMMAND_EXECUTION_STATUS ? 1 : 0;
    return target.clGetEventInfo(event, name, bytes, value, out_bytes);
}

static cl_int CL_API_CALL
layer_callback(cl_event event, cl_int state,
               void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user)
{
    (void)event;
    (void)state;
    (void)notify;
    (void)user;
    return CL_OUT_OF_RESOURCES;
}

/* ---- the layer ---- */

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name,
                                                      size_t bytes, void *value,
                                                      size_t *out_bytes)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

    if (name != CL_LAYER_API_VERSION || (value && bytes < sizeof version))
        return CL_INVALID_VALUE;
    if (value)
        *(cl_layer_api_version *)value = version;
    if (out_bytes)
        *out_bytes = sizeof version;
    return CL_SUCCESS;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL
clInitLayer(cl_uint count, const struct _cl_icd_dispatch *dispatch,
            cl_uint *out_count, const struct _cl_icd_dispatch **out_layer)
{
    if (count * sizeof(void *) < sizeof target || !out_count || !out_layer)
        return CL_INVALID_VALUE;
    target = layer = *dispatch;
    layer.clFinish = layer_finish;
    layer.clWaitForEvents = layer_wait;
    layer.clEnqueueReadBuffer = layer_read;
    layer.clGetEventInfo = layer_ask;
    if (getenv("WAIT_LAYER_NO_CALLBACKS"))
        layer.clSetEventCallback = layer_callback;
    *out_layer = &layer;
    *out_count = (cl_uint)(sizeof layer / sizeof(void *));
    return CL_SUCCESS;
}
