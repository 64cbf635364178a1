/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a warm-up call. */
#include "opencl/program/warmup_launch.h"

/* Creates buffer i of the call.  Arrival counters must be 0.  Other buffers can
 * have any contents, because kernels check indices and labels. */
static cl_mem buffer_make(cl_context context, const struct warmup_call *call,
                          uint32_t i, cl_int *out_code)
{
    static uint32_t zeros[ARRIVAL_COUNTERS];
    bool counters = i != 0 && i == call->step->arrival_counters;
    return clCreateBuffer(
        context, CL_MEM_READ_WRITE | (counters ? CL_MEM_COPY_HOST_PTR : 0),
        (size_t)call->bytes[i], counters ? zeros : NULL, out_code);
}

cl_int kernel_step_enqueue(cl_command_queue queue, cl_kernel kernel,
                           const struct kernel_step *step,
                           const cl_mem *buffers)
{
    size_t local = (size_t)1 << KEY_GROUP_LOG2(step->key);
    size_t global = (size_t)step->groups * local;
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; code == CL_SUCCESS && i < step->buffer_count; i++)
        code = clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, step->buffer_count, step->param_bytes,
                              step->params);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local,
                                      0, NULL, NULL);
    return code;
}

cl_int warmup_launch_run(cl_context context, cl_device_id device,
                         cl_kernel kernel, const struct warmup_call *call)
{
    cl_mem buffers[MAX_STEP_BUFFERS] = {NULL};
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    if (code != CL_SUCCESS)
        return code;
    for (uint32_t i = 0; code == CL_SUCCESS && i < call->step->buffer_count;
         i++)
        buffers[i] = buffer_make(context, call, i, &code);
    if (code == CL_SUCCESS)
        code = kernel_step_enqueue(queue, kernel, call->step, buffers);
    if (code == CL_SUCCESS)
        code = clFinish(queue);
    for (uint32_t i = 0; i < MAX_STEP_BUFFERS; i++)
        if (buffers[i] != NULL)
            clReleaseMemObject(buffers[i]);
    clReleaseCommandQueue(queue);
    return code;
}
