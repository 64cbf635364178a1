/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a call of launch to enqueued kernels.  On this path nothing is locked,
 * created or released once the stream has its kernels.
 */
#include "opencl/queue/kernel_launch.h"

#include <stdlib.h>
#include <string.h>

#include "common/operator_table.h"
#include "opencl/device/cl_status.h"
#include "opencl/transfer/transfer.h"

#define FIRST_SLOTS 64u

/* ---- a stream's kernels ---- */

static struct stream_kernel *slot_of(struct stream_kernel *kernels,
                                     uint32_t slots, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40) & (slots - 1);
    while (kernels[at].key != 0 && kernels[at].key != key)
        at = (at + 1) & (slots - 1);
    return &kernels[at];
}

static enum tandem_status slots_grow(struct tandem_stream *stream)
{
    uint32_t slots =
        stream->kernel_slots != 0 ? stream->kernel_slots * 2 : FIRST_SLOTS;
    struct stream_kernel *kernels = calloc(slots, sizeof(*kernels));
    if (kernels == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                              "launch: out of host memory");
    for (uint32_t i = 0; i < stream->kernel_slots; i++)
        if (stream->kernels[i].key != 0)
            *slot_of(kernels, slots, stream->kernels[i].key) =
                stream->kernels[i];
    free(stream->kernels);
    stream->kernels = kernels;
    stream->kernel_slots = slots;
    return TANDEM_OK;
}

static enum tandem_status kernel_add(struct tandem_stream *stream,
                                     const struct step *step,
                                     struct stream_kernel **out_kernel)
{
    struct stream_kernel made = {.key = step->key};
    enum tandem_status status = TANDEM_OK;
    if (stream->kernel_count * 2 >= stream->kernel_slots)
        status = slots_grow(stream);
    if (status == TANDEM_OK)
        status =
            kernel_variant_create_kernel(stream->device, step, &made.kernel);
    if (status != TANDEM_OK)
        return status;
    made.params = malloc(step->param_bytes);
    if (made.params == NULL) {
        clReleaseKernel(made.kernel);
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                              "launch: out of host memory");
    }
    *out_kernel = slot_of(stream->kernels, stream->kernel_slots, step->key);
    **out_kernel = made;
    stream->kernel_count++;
    return TANDEM_OK;
}

enum tandem_status stream_kernel(struct tandem_stream *stream,
                                 const struct step *step,
                                 struct stream_kernel **out_kernel)
{
    if (stream->kernel_slots != 0) {
        *out_kernel = slot_of(stream->kernels, stream->kernel_slots, step->key);
        if ((*out_kernel)->key != 0)
            return TANDEM_OK;
    }
    return kernel_add(stream, step, out_kernel);
}

void stream_kernels_free(struct tandem_stream *stream)
{
    for (uint32_t i = 0; i < stream->kernel_slots; i++)
        if (stream->kernels[i].key != 0) {
            clReleaseKernel(stream->kernels[i].kernel);
            free(stream->kernels[i].params);
        }
    free(stream->kernels);
    stream->kernels = NULL;
    stream->kernel_slots = stream->kernel_count = 0;
}

/* ---- one step ---- */

static enum tandem_status set_arguments(struct tandem_stream *stream,
                                        struct stream_kernel *kernel,
                                        const struct step *step)
{
    cl_int code = CL_SUCCESS;
    uint32_t bytes = step->param_bytes;
    for (uint32_t i = 0; i < step->buffer_count && code == CL_SUCCESS; i++) {
        const struct tandem_buffer *buffer = step->buffers[i];
        uint64_t address = buffer->block != NULL ? buffer->address : 0;
        if (address != 0 && kernel->bound[i] == address)
            continue;
        code = clSetKernelArg(kernel->kernel, i, sizeof(cl_mem), &buffer->mem);
        kernel->bound[i] = code == CL_SUCCESS ? address : 0;
    }
    /* The kernel is this stream's alone: what is set stays set. */
    if (code == CL_SUCCESS &&
        (kernel->param_bytes != bytes ||
         memcmp(kernel->params, step->params, bytes) != 0)) {
        kernel->param_bytes = 0;
        code = clSetKernelArg(kernel->kernel, step->buffer_count, bytes,
                              step->params);
        if (code == CL_SUCCESS) {
            memcpy(kernel->params, step->params, bytes);
            kernel->param_bytes = bytes;
        }
    }
    return status_from_cl(stream->device, code, "clSetKernelArg");
}

static cl_int enqueue_once(struct tandem_stream *stream,
                           struct stream_kernel *kernel,
                           const struct step *step)
{
    if (kernel == NULL)
        return clEnqueueCopyBuffer(
            stream->queue, step->buffers[1]->mem, step->buffers[0]->mem,
            (size_t)step->source_offset, (size_t)step->target_offset,
            (size_t)step->bytes, 0, NULL, NULL);
    size_t local = (size_t)1 << KEY_GROUP_LOG2(step->key);
    size_t global = (size_t)step->groups * local;
    return clEnqueueNDRangeKernel(stream->queue, kernel->kernel, 1, NULL,
                                  &global, &local, 0, NULL, NULL);
}

/* Drivers allocate at first use, so memory may run out here: the pool gives
 * back what it has cached, and the command is tried once more. */
static enum tandem_status enqueue(struct tandem_stream *stream,
                                  struct stream_kernel *kernel,
                                  const struct step *step)
{
    cl_int code = enqueue_once(stream, kernel, step);
    if (code != CL_SUCCESS && stream_relieve(stream, code))
        code = enqueue_once(stream, kernel, step);
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code,
                              kernel != NULL ? "clEnqueueNDRangeKernel"
                                             : "clEnqueueCopyBuffer");
    stream_issue(stream);
    return TANDEM_OK;
}

static enum tandem_status step_launch(struct tandem_stream *stream,
                                      const struct step *step)
{
    struct stream_kernel *kernel = NULL;
    enum tandem_status status = TANDEM_OK;
    if (key_compiles(step->key)) {
        status = stream_kernel(stream, step, &kernel);
        if (status == TANDEM_OK)
            status = set_arguments(stream, kernel, step);
    }
    for (uint32_t i = 0; i < step->buffer_count && status == TANDEM_OK; i++)
        status = stream_use(stream, step->buffers[i]);
    if (status == TANDEM_OK)
        status = enqueue(stream, kernel, step);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < step->buffer_count; i++)
        stream_used(stream, step->buffers[i], (step->written >> i & 1u) != 0);
    return TANDEM_OK;
}

/* Whether a step writes more than the plan's temporary. */
static bool step_shows(const struct step *step,
                       const struct tandem_buffer *temp)
{
    for (uint32_t i = 0; i < step->buffer_count; i++)
        if ((step->written >> i & 1u) != 0 && step->buffers[i] != temp)
            return true;
    return false;
}

/* The stream's counters, made and cleared if need be. */
static enum tandem_status counters_ready(struct tandem_stream *stream)
{
    static const cl_uint zero = 0;
    const size_t bytes = PLAN_COUNTERS * sizeof(zero);
    if (stream->counters != NULL && atomic_load(&stream->counters_clear))
        return TANDEM_OK;
    enum tandem_status status = TANDEM_OK;
    if (stream->counters == NULL)
        status = buffer_create(stream->device, bytes, true, &stream->counters);
    if (status != TANDEM_OK)
        return status;
    /* Before it is done, as another thread may find a failure meanwhile. */
    atomic_store(&stream->counters_clear, true);
    status = transfer_fill(stream, stream->counters, 0, bytes, &zero,
                           sizeof(zero));
    if (status != TANDEM_OK)
        atomic_store(&stream->counters_clear, false);
    return status;
}

/* What the planner left open. */
static void step_bind(const struct tandem_stream *stream, struct step *step,
                      struct tandem_buffer *temp)
{
    if (step->counters != 0)
        step->buffers[step->counters] = stream->counters;
    for (uint32_t i = 0; i < step->buffer_count; i++)
        if (step->buffers[i] == NULL)
            step->buffers[i] = temp;
}

enum tandem_status launch_steps(struct tandem_stream *stream, struct plan *plan,
                                struct tandem_buffer *temp)
{
    enum tandem_status status = TANDEM_OK;
    bool shows = false; /* a result, of which a part is missing */
    for (uint32_t i = 0; i < plan->steps && status == TANDEM_OK; i++) {
        struct step *step = &plan->step[i];
        step_bind(stream, step, temp);
        status = step_launch(stream, step);
        if (status != TANDEM_OK && shows)
            status = stream_fail(stream, status);
        shows = shows || step_shows(step, temp);
    }
    return status;
}

enum tandem_status launch_plan(struct tandem_stream *stream, struct plan *plan)
{
    struct tandem_buffer *temp = NULL;
    struct stream_kernel *kernel;
    enum tandem_status status = TANDEM_OK;
    /* All kernels first: a failure then has started no work. */
    for (uint32_t i = 0; plan->steps > 1 && i < plan->steps; i++)
        if (status == TANDEM_OK && key_compiles(plan->step[i].key))
            status = stream_kernel(stream, &plan->step[i], &kernel);
    if (status == TANDEM_OK && plan->temp_bytes != 0)
        status = buffer_create(stream->device, plan->temp_bytes, true, &temp);
    for (uint32_t i = 0; i < plan->steps && status == TANDEM_OK; i++)
        if (plan->step[i].counters != 0)
            status = counters_ready(stream);
    if (status == TANDEM_OK)
        status = launch_steps(stream, plan, temp);
    if (temp != NULL)
        buffer_destroy(temp);
    return status;
}

/* ---- the call ---- */

enum tandem_status launch_span(const void *user,
                               const struct tandem_buffer *buffer,
                               struct memory_span *out)
{
    const struct span_user *from = user;
    enum tandem_status status = buffer_check(from->device, buffer, from->name);
    if (status != TANDEM_OK)
        return status;
    out->base = buffer->address;
    out->bytes = buffer->bytes;
    return TANDEM_OK;
}

enum tandem_status launch_check(const struct tandem_device *device,
                                const struct request *request, bool buffers)
{
    struct span_user user = {
        device, request->op != NULL ? operator_name(request->op->id) : ""};
    return check_op(request->op, request->inputs, request->input_count,
                    request->outputs, request->output_count,
                    buffers ? launch_span : NULL, &user);
}

static enum tandem_status inputs_poisoned(const struct request *request)
{
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *input = request->inputs[i];
        if (input == NULL || input->buffer == NULL)
            continue;
        enum tandem_status status = buffer_poisoned(input->buffer);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

enum tandem_status launch_op(struct tandem_stream *stream,
                             struct request *request)
{
    struct tandem_device *device = stream->device;
    struct plan plan;
    enum tandem_status status = launch_check(device, request, true);
    if (status == TANDEM_OK)
        status = inputs_poisoned(request);
    if (status != TANDEM_OK)
        return status;
    request->has_device_scope_visibility = device->has_device_scope_visibility;
    do {
        request->group_log2 = device->programs.group_log2;
        status = plan_make(&plan, request);
        if (status == TANDEM_OK)
            status = launch_plan(stream, &plan);
    } while (status == TANDEM_NOT_READY);
    return status;
}
