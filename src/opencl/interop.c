/* SPDX-License-Identifier: Apache-2.0 */
/* The extension "opencl-interop.1": devices, streams and buffers in OpenCL
 * objects of the program, and the plugin's OpenCL objects. extensions.h
 * describes the functions. Any thread may call them. */
#include "opencl/interop.h"

#include "common/argument_check.h"
#include "common/thread_state_guard.h"
#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/device_lifecycle.h"
#include "opencl/memory/buffer.h"
#include "opencl/queue/stream_lifecycle.h"

/* Alignment that kernels may expect (MAX_SLOT_ALIGNMENT in plan/plan.h). */
#define ADDRESS_MULTIPLE 128u

/* Reports that the driver rejected an object of the program. */
static enum tandem_status object_rejected(const char *what, cl_int code)
{
    return argument_error("%s is not a live object of this driver (error %d)",
                          what, (int)code);
}

/* ---- devices ---- */

/* Returns the plugin's device with this OpenCL device, or NULL. */
static const struct platform_device *find_device(cl_device_id id)
{
    uint32_t count = 0;
    if (opencl_device_count(&count) != TANDEM_OK)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct platform_device *device = opencl_device_get(i);
        if (device != NULL && device->id == id)
            return device;
    }
    last_error_set(TANDEM_NO_DEVICE,
                   "open_native: the plugin has no device with cl_device_id "
                   "%p; sub-devices and devices of blocked drivers are not "
                   "supported",
                   (void *)id);
    return NULL;
}

static enum tandem_status context_check(cl_context context, cl_device_id id)
{
    cl_uint count = 0;
    cl_device_id only = NULL;
    cl_int code = clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES,
                                   sizeof(count), &count, NULL);
    if (code != CL_SUCCESS)
        return object_rejected("open_native: context", code);
    if (count != 1)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "open_native: the context has %u devices; "
                              "expected 1",
                              (unsigned)count);
    code = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(only), &only,
                            NULL);
    if (code != CL_SUCCESS)
        return object_rejected("open_native: context", code);
    if (only != id)
        return argument_error("open_native: the context does not have the "
                              "device %p",
                              (void *)id);
    return TANDEM_OK;
}

static enum tandem_status
open_guarded(cl_context context, cl_device_id id,
             const struct tandem_open_options *options,
             struct tandem_device **out_device)
{
    const struct platform_device *hardware = find_device(id);
    if (hardware == NULL)
        return TANDEM_NO_DEVICE;
    enum tandem_status status = context_check(context, id);
    return status == TANDEM_OK
               ? device_open_in(hardware, context, options, out_device)
               : status;
}

static enum tandem_status open_native(cl_context context, cl_device_id id,
                                      const struct tandem_open_options *options,
                                      struct tandem_device **out_device)
{
    if (out_device == NULL)
        return argument_error("open_native: out_device is NULL");
    *out_device = NULL;
    if (context == NULL || id == NULL)
        return argument_error("open_native: %s is NULL",
                              context == NULL ? "context" : "device_id");
    struct thread_state host;
    thread_state_guard_enter(&host);
    enum tandem_status status = open_guarded(context, id, options, out_device);
    thread_state_guard_leave(&host);
    return status;
}

static enum tandem_status device_handles_get(struct tandem_device *device,
                                             cl_context *out_context,
                                             cl_device_id *out_device_id)
{
    if (out_context == NULL || out_device_id == NULL)
        return argument_error("device_handles: an output is NULL");
    *out_context = NULL;
    *out_device_id = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    *out_context = device->context;
    *out_device_id = device->hardware->id;
    return TANDEM_OK;
}

/* ---- streams ---- */

static enum tandem_status queue_check(const struct tandem_device *device,
                                      cl_command_queue queue, uint32_t flags)
{
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_command_queue_properties properties = 0;
    cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT,
                                        sizeof(context), &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(id), &id,
                                     NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES,
                                     sizeof(properties), &properties, NULL);
    if (code != CL_SUCCESS)
        return object_rejected("stream_wrap: queue", code);
    if (context != device->context || id != device->hardware->id)
        return argument_error("stream_wrap: the queue has another context or "
                              "device; open the device with open_native in "
                              "the queue's context");
    if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
        return argument_error("stream_wrap: the queue is out of order");
    if ((flags & TANDEM_STREAM_PROFILING) != 0 &&
        (properties & CL_QUEUE_PROFILING_ENABLE) == 0)
        return argument_error("stream_wrap: TANDEM_STREAM_PROFILING needs a "
                              "queue with CL_QUEUE_PROFILING_ENABLE");
    return TANDEM_OK;
}

static enum tandem_status stream_wrap(struct tandem_device *device,
                                      cl_command_queue queue, uint32_t flags,
                                      struct tandem_stream **out_stream)
{
    if (out_stream == NULL)
        return argument_error("stream_wrap: out_stream is NULL");
    *out_stream = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (queue == NULL)
        return argument_error("stream_wrap: queue is NULL");
    status = check_flags("stream_wrap", flags, TANDEM_STREAM_PROFILING);
    if (status == TANDEM_OK)
        status = queue_check(device, queue, flags);
    if (status != TANDEM_OK)
        return status;
    cl_int code = clRetainCommandQueue(queue);
    return code == CL_SUCCESS
               ? stream_adopt(device, queue, flags, out_stream)
               : status_from_cl(device, code, "clRetainCommandQueue");
}

static enum tandem_status stream_handle_get(struct tandem_stream *stream,
                                            cl_command_queue *out_queue)
{
    if (out_queue == NULL)
        return argument_error("stream_handle: out_queue is NULL");
    *out_queue = NULL;
    if (!stream_is_live(stream))
        return stream_check(stream);
    enum tandem_status status = device_check(stream->device);
    if (status == TANDEM_OK)
        *out_queue = stream->queue;
    return status;
}

/* ---- buffers ---- */

/* Fills `out` with the properties of a memory object. */
static cl_int memory_query(cl_mem memory, struct wrapped_memory *out,
                           cl_mem_object_type *out_type,
                           cl_mem_flags *out_flags, cl_context *out_context)
{
    size_t bytes = 0, offset = 0;
    cl_mem parent = NULL;
    void *host = NULL;
    const struct {
        cl_mem_info name;
        size_t bytes;
        void *value;
    } queries[] = {
        {CL_MEM_TYPE, sizeof(*out_type), out_type},
        {CL_MEM_FLAGS, sizeof(*out_flags), out_flags},
        {CL_MEM_CONTEXT, sizeof(*out_context), out_context},
        {CL_MEM_SIZE, sizeof(bytes), &bytes},
        {CL_MEM_OFFSET, sizeof(offset), &offset},
        {CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent},
        {CL_MEM_HOST_PTR, sizeof(host), &host},
    };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        cl_int code = clGetMemObjectInfo(
            memory, queries[i].name, queries[i].bytes, queries[i].value, NULL);
        if (code != CL_SUCCESS)
            return code;
    }
    *out = (struct wrapped_memory){.mem = memory,
                                   .root = parent != NULL ? parent : memory,
                                   .bytes = bytes,
                                   .root_bytes = bytes,
                                   .root_offset = offset,
                                   .host = host};
    if (parent != NULL) {
        cl_int code = clGetMemObjectInfo(parent, CL_MEM_SIZE, sizeof(bytes),
                                         &bytes, NULL);
        out->root_bytes = bytes;
        return code;
    }
    return CL_SUCCESS;
}

static enum tandem_status memory_check(const struct tandem_device *device,
                                       cl_mem memory,
                                       struct wrapped_memory *out)
{
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    cl_context context = NULL;
    cl_int code = memory_query(memory, out, &type, &flags, &context);
    if (code != CL_SUCCESS)
        return object_rejected("buffer_wrap: memory", code);
    if (type != CL_MEM_OBJECT_BUFFER)
        return argument_error("buffer_wrap: the memory object is not a buffer");
    if (context != device->context)
        return argument_error("buffer_wrap: the memory object has another "
                              "context than the device");
    if ((flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "buffer_wrap: the memory object has "
                              "CL_MEM_READ_ONLY or CL_MEM_WRITE_ONLY; expected "
                              "CL_MEM_READ_WRITE");
    if (device->hardware->info.kind != TANDEM_DEVICE_CPU &&
        (uintptr_t)out->host % ADDRESS_MULTIPLE != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "buffer_wrap: the memory object uses host memory "
                              "at %p, which is not aligned to %u",
                              out->host, ADDRESS_MULTIPLE);
    return TANDEM_OK;
}

static enum tandem_status wrap(struct tandem_device *device, cl_mem memory,
                               tandem_release_fn release, void *user,
                               struct tandem_buffer **out_buffer)
{
    struct wrapped_memory from;
    if (out_buffer == NULL)
        return argument_error("buffer_wrap: out_buffer is NULL");
    *out_buffer = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    if (memory == NULL)
        return argument_error("buffer_wrap: memory is NULL");
    status = memory_check(device, memory, &from);
    return status == TANDEM_OK
               ? buffer_wrap(device, &from, release, user, out_buffer)
               : status;
}

static enum tandem_status buffer_handle_get(struct tandem_buffer *buffer,
                                            cl_mem *out_memory,
                                            uint64_t *out_byte_offset)
{
    if (out_memory == NULL || out_byte_offset == NULL)
        return argument_error("buffer_handle: an output is NULL");
    *out_memory = NULL;
    *out_byte_offset = 0;
    enum tandem_status status = buffer_check_live(buffer);
    if (status == TANDEM_OK)
        status = device_check(buffer->device);
    if (status != TANDEM_OK)
        return status;
    buffer_expose(buffer);
    *out_memory = buffer->mem;
    return TANDEM_OK;
}

const struct tandem_opencl_interop_extension interop_extension = {
    .struct_size = sizeof(interop_extension),
    .open_native = open_native,
    .stream_wrap = stream_wrap,
    .buffer_wrap = wrap,
    .device_handles = device_handles_get,
    .stream_handle = stream_handle_get,
    .buffer_handle = buffer_handle_get,
};
