/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a kernel step on scratch memory. */
#include "opencl/program/trial_launch.h"

#include <stdlib.h>

#include "opencl/plan/kernel_step.h"

/* A step that accesses more memory than this has no trial. */
#define MAX_TRIAL_BYTES ((uint64_t)64 << 20)

struct trial_launch {
    uint64_t bytes[MAX_STEP_BUFFERS]; /* sizes of the buffers */
    struct kernel_step step;          /* without patches */
};

/* Returns false if the size is not known or too large. */
static bool buffer_bytes(uint64_t *out, const struct launch_plan *plan,
                         const struct kernel_step *step, uint32_t i,
                         const struct slot_address *addresses)
{
    uint32_t slot = step->slots[i];
    *out = slot == SLOT_TEMP       ? plan->temp_bytes
           : slot == SLOT_COUNTERS ? ARRIVAL_COUNTERS * sizeof(uint32_t)
                                   : step->bytes_after[i];
    bool is_known = slot != SLOT_PACKED_A && slot != SLOT_PACKED_B;
    if (!is_known || *out > MAX_TRIAL_BYTES ||
        addresses[slot].byte_offset > MAX_TRIAL_BYTES)
        return false;
    *out += addresses[slot].byte_offset;
    return true;
}

/* Operands with negative strides start later in their buffers. */
static void addresses_fill(struct slot_address *out,
                           const struct kernel_step *step)
{
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        uint64_t *offset = &out[step->slots[i]].byte_offset;
        uint64_t before = step->bytes_before[i] > MAX_TRIAL_BYTES
                              ? MAX_TRIAL_BYTES + 1
                              : step->bytes_before[i];
        before = div_ceil(before, MAX_SLOT_ALIGNMENT) * MAX_SLOT_ALIGNMENT;
        *offset = *offset > before ? *offset : before;
    }
}

struct trial_launch *trial_launch_create(const struct launch_plan *plan,
                                         uint32_t index)
{
    const struct kernel_step *step = &plan->step[index];
    struct slot_address addresses[SLOT_COUNT] = {{0, 0}};
    uint64_t bytes[MAX_STEP_BUFFERS] = {0}, total = 0;
    addresses_fill(addresses, step);
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        if (!buffer_bytes(&bytes[i], plan, step, i, addresses) ||
            total + bytes[i] > MAX_TRIAL_BYTES)
            return NULL;
        total += bytes[i];
    }
    struct trial_launch *trial = malloc(sizeof(*trial));
    if (trial == NULL)
        return NULL;
    trial->step = *step;
    step_params_patch(trial->step.params, step, addresses);
    /* cl/transpose.cl reads whole words, and no buffer can be empty. */
    for (uint32_t i = 0; i < step->buffer_count; i++)
        trial->bytes[i] = bytes[i] / 4 * 4 + 4;
    return trial;
}

/* Creates buffer i.  Arrival counters must be 0.  Other buffers can have any
 * content, because kernels check indices and labels. */
static cl_mem buffer_make(cl_context context, const struct trial_launch *trial,
                          uint32_t i, cl_int *out_code)
{
    static uint32_t zeros[ARRIVAL_COUNTERS + 1]; /* see trial_launch_create */
    bool counters = trial->step.slots[i] == SLOT_COUNTERS;
    return clCreateBuffer(
        context, CL_MEM_READ_WRITE | (counters ? CL_MEM_COPY_HOST_PTR : 0),
        (size_t)trial->bytes[i], counters ? zeros : NULL, out_code);
}

cl_int kernel_step_enqueue(cl_command_queue queue, cl_kernel kernel,
                           const struct kernel_step *step,
                           const cl_mem *buffers, uint64_t groups)
{
    size_t local = (size_t)1 << step->key.group_log2;
    size_t global = (size_t)groups * local;
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

cl_int trial_launch_run(const struct trial_launch *trial, cl_context context,
                        cl_device_id device, cl_kernel kernel,
                        uint64_t max_groups)
{
    const struct kernel_step *step = &trial->step;
    cl_mem buffers[MAX_STEP_BUFFERS] = {NULL};
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    if (code != CL_SUCCESS)
        return code;
    for (uint32_t i = 0; code == CL_SUCCESS && i < step->buffer_count; i++)
        buffers[i] = buffer_make(context, trial, i, &code);
    if (code == CL_SUCCESS)
        code = kernel_step_enqueue(queue, kernel, step, buffers,
                                   step->groups < max_groups ? step->groups
                                                             : max_groups);
    if (code == CL_SUCCESS)
        code = clFinish(queue);
    for (uint32_t i = 0; i < MAX_STEP_BUFFERS; i++)
        if (buffers[i] != NULL)
            clReleaseMemObject(buffers[i]);
    clReleaseCommandQueue(queue);
    return code;
}
