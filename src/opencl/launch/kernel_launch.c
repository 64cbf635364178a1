/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues the steps of a launch plan; see kernel_launch.h. */
#include "opencl/launch/kernel_launch.h"

#include <string.h>

#include "common/operator_table.h"
#include "opencl/device/cl_status.h"
#include "opencl/launch/clblast.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/hazard_tracking.h"
#include "opencl/queue/stream_kernels.h"

/* ---- one step ---- */

static enum tandem_status set_arguments(struct tandem_stream *stream,
                                        struct stream_kernel *kernel,
                                        const struct kernel_step *step,
                                        struct tandem_buffer *const *buffers,
                                        const unsigned char *params)
{
    cl_int code = CL_SUCCESS;
    uint32_t bytes = step->param_bytes;
    for (uint32_t i = 0; i < step->buffer_count && code == CL_SUCCESS; i++) {
        uint64_t address = buffers[i]->block != NULL ? buffers[i]->address : 0;
        if (address != 0 && kernel->bound_addresses[i] == address)
            continue;
        code =
            clSetKernelArg(kernel->kernel, i, sizeof(cl_mem), &buffers[i]->mem);
        kernel->bound_addresses[i] = code == CL_SUCCESS ? address : 0;
    }
    /* Arguments stay set, because only this stream uses the kernel object. */
    if (code == CL_SUCCESS && (kernel->param_bytes != bytes ||
                               memcmp(kernel->params, params, bytes) != 0)) {
        kernel->param_bytes = 0;
        code =
            clSetKernelArg(kernel->kernel, step->buffer_count, bytes, params);
        if (code == CL_SUCCESS) {
            memcpy(kernel->params, params, bytes);
            kernel->param_bytes = bytes;
        }
    }
    return status_from_cl(stream->device, code, "clSetKernelArg");
}

/* Sets buffers[i] to that of argument i, and `params` to the parameters. */
static void step_bind(const struct kernel_step *step,
                      const struct launch_memory *memory,
                      struct tandem_buffer **buffers, unsigned char *params)
{
    struct slot_address addresses[SLOT_COUNT];
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        uint32_t slot = step->slots[i];
        buffers[i] = memory->buffers[slot];
        addresses[slot] = (struct slot_address){
            memory->byte_offsets[slot], buffer_misalignment(buffers[i])};
    }
    step_params_patch(params, step, addresses);
}

static cl_int step_enqueue(struct tandem_stream *stream, cl_kernel kernel,
                           const struct kernel_step *step,
                           const struct launch_memory *memory)
{
    const size_t local = (size_t)1 << step->key.group_log2;
    const size_t global = (size_t)step->groups * local;
    uint32_t target = step->slots[0], source = step->slots[1];
    if (kernel != NULL)
        return clEnqueueNDRangeKernel(stream->queue, kernel, 1, NULL, &global,
                                      &local, 0, NULL, NULL);
    return clEnqueueCopyBuffer(
        stream->queue, memory->buffers[source]->mem,
        memory->buffers[target]->mem,
        (size_t)(memory->byte_offsets[source] + step->source_offset),
        (size_t)(memory->byte_offsets[target] + step->target_offset),
        (size_t)step->bytes, 0, NULL, NULL);
}

static enum tandem_status enqueue(struct tandem_stream *stream,
                                  struct stream_kernel *kernel,
                                  const struct kernel_step *step,
                                  const struct launch_memory *memory)
{
    cl_int code;
    bool retried = false;
    do
        code = step_enqueue(stream, kernel != NULL ? kernel->kernel : NULL,
                            step, memory);
    while (stream_trim_for_retry(stream, code, &retried));
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code,
                              kernel != NULL ? "clEnqueueNDRangeKernel"
                                             : "clEnqueueCopyBuffer");
    stream_next_seqno(stream);
    return TANDEM_OK;
}

static enum tandem_status step_launch(struct tandem_stream *stream,
                                      const struct kernel_step *step,
                                      struct stream_kernel *kernel,
                                      const struct launch_memory *memory)
{
    struct tandem_buffer *buffers[MAX_STEP_BUFFERS];
    _Alignas(8) unsigned char params[MAX_PARAM_BYTES];
    enum tandem_status status = TANDEM_OK;
    step_bind(step, memory, buffers, params);
    if (kernel != NULL)
        status = set_arguments(stream, kernel, step, buffers, params);
    for (uint32_t i = 0; i < step->buffer_count && status == TANDEM_OK; i++)
        status = stream_begin_use(stream, buffers[i]);
    if (status == TANDEM_OK)
        status = enqueue(stream, kernel, step, memory);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < step->buffer_count; i++)
        stream_note_use(stream, buffers[i], step->written >> i & 1u);
    return TANDEM_OK;
}

/* Returns true if the step writes another buffer than the temporary one. */
static bool step_writes_output(const struct kernel_step *step)
{
    for (uint32_t i = 0; i < step->buffer_count; i++)
        if ((step->written >> i & 1u) != 0 && step->slots[i] != SLOT_TEMP)
            return true;
    return false;
}

/* Ensures that the stream's arrival counters exist and are set to 0. */
static enum tandem_status prepare_counters(struct tandem_stream *stream)
{
    static const cl_uint zero = 0;
    const size_t bytes = ARRIVAL_COUNTERS * sizeof(zero);
    if (stream->arrival_counters != NULL &&
        atomic_load(&stream->arrival_counters_are_zero))
        return TANDEM_OK;
    enum tandem_status status = TANDEM_OK;
    if (stream->arrival_counters == NULL)
        status = buffer_create(stream->device, bytes, true,
                               &stream->arrival_counters);
    if (status != TANDEM_OK)
        return status;
    /* Set the flag before the fill, so that stream_fail can still clear it. */
    atomic_store(&stream->arrival_counters_are_zero, true);
    status = buffer_fill(stream, stream->arrival_counters, 0, bytes, &zero,
                         sizeof(zero));
    if (status != TANDEM_OK)
        atomic_store(&stream->arrival_counters_are_zero, false);
    return status;
}

static bool step_uses_counters(const struct kernel_step *step)
{
    for (uint32_t i = 0; i < step->buffer_count; i++)
        if (step->slots[i] == SLOT_COUNTERS)
            return true;
    return false;
}

/* ---- CLBlast ---- */

static void matrix_set_memory(struct tandem_matrix *matrix,
                              const struct launch_memory *memory)
{
    uint32_t slot = buffer_slot(matrix->buffer);
    matrix->buffer = memory->buffers[slot];
    matrix->byte_offset += memory->byte_offsets[slot];
}

static void gemm_set_memory(struct tandem_gemm *gemm,
                            const struct launch_memory *memory)
{
    matrix_set_memory(&gemm->a, memory);
    matrix_set_memory(&gemm->b, memory);
    matrix_set_memory(&gemm->c, memory);
}

bool launch_supports_clblast(const struct launch_plan *plan,
                             const struct launch_memory *memory)
{
    struct tandem_gemm gemm = plan->gemm.gemm;
    gemm_set_memory(&gemm, memory);
    return clblast_supports_gemm(&gemm) && clblast_supports_alignment(&gemm);
}

static enum tandem_status clblast_launch(struct tandem_stream *stream,
                                         const struct launch_plan *plan,
                                         const struct launch_memory *memory)
{
    struct tandem_gemm gemm = plan->gemm.gemm;
    gemm_set_memory(&gemm, memory);
    return clblast_gemm_launch(stream, &gemm);
}

/* ---- plans ---- */

enum tandem_status launch_steps(struct tandem_stream *stream,
                                const struct launch_plan *plan,
                                const struct launch_memory *memory)
{
    enum tandem_status status = TANDEM_OK;
    bool output_written = false;
    const bool clblast = plan->gemm.uses_clblast;
    for (uint32_t i = 0; i <= plan->step_count && status == TANDEM_OK; i++) {
        const struct kernel_step *step = &plan->step[i];
        struct stream_kernel *kernel = NULL;
        if (clblast && i == plan->gemm.clblast_at) {
            status = clblast_launch(stream, plan, memory);
            if (status != TANDEM_OK && output_written)
                return stream_fail(stream, status);
            output_written = true;
        }
        if (status != TANDEM_OK || i == plan->step_count)
            break;
        if (step->key.kernel != NULL)
            status = stream_kernel_get(stream, plan, i, &kernel);
        if (status == TANDEM_OK)
            status = step_launch(stream, step, kernel, memory);
        /* The outputs are incomplete, because only the earlier steps ran. */
        if (status != TANDEM_OK && output_written)
            status = stream_fail(stream, status);
        output_written = output_written || step_writes_output(step);
    }
    return status;
}

enum tandem_status launch_plan(struct tandem_stream *stream,
                               const struct launch_plan *plan,
                               struct launch_memory *memory)
{
    struct tandem_buffer *temp = NULL;
    struct stream_kernel *kernel;
    enum tandem_status status = launch_plan_check(plan);
    /* Build all kernels first, so that nothing is enqueued if a build fails. */
    const bool has_several = plan->step_count > 1 || plan->gemm.uses_clblast;
    for (uint32_t i = 0; has_several && i < plan->step_count; i++)
        if (status == TANDEM_OK && plan->step[i].key.kernel != NULL)
            status = stream_kernel_get(stream, plan, i, &kernel);
    if (status == TANDEM_OK && plan->temp_bytes != 0)
        status = buffer_create(stream->device, plan->temp_bytes, true, &temp);
    for (uint32_t i = 0; i < plan->step_count && status == TANDEM_OK; i++)
        if (step_uses_counters(&plan->step[i]))
            status = prepare_counters(stream);
    launch_memory_set(memory, SLOT_TEMP, temp, 0);
    launch_memory_set(memory, SLOT_COUNTERS, stream->arrival_counters, 0);
    if (status == TANDEM_OK)
        status = launch_steps(stream, plan, memory);
    if (temp != NULL)
        buffer_destroy(temp);
    return status;
}

/* ---- the memory of operands ---- */

struct tandem_buffer *launch_memory_set(struct launch_memory *out,
                                        uint32_t slot,
                                        struct tandem_buffer *buffer,
                                        uint64_t byte_offset)
{
    uint64_t address = byte_offset + buffer_misalignment(buffer);
    uint32_t low = (uint32_t)(address % MAX_SLOT_ALIGNMENT);
    out->buffers[slot] = buffer;
    out->byte_offsets[slot] = byte_offset;
    return slot_buffer(slot, low != 0 ? low & -low : MAX_SLOT_ALIGNMENT);
}

static void matrix_to_slot(struct tandem_matrix *matrix,
                           struct launch_memory *out, uint32_t slot)
{
    matrix->buffer =
        launch_memory_set(out, slot, matrix->buffer, matrix->byte_offset);
    matrix->byte_offset = 0;
}

void gemm_memory_to_slots(struct tandem_gemm *gemm, struct launch_memory *out)
{
    matrix_to_slot(&gemm->a, out, SLOT_INPUT);
    matrix_to_slot(&gemm->b, out, SLOT_INPUT + 1);
    matrix_to_slot(&gemm->c, out, SLOT_OUTPUT);
    gemm->bias = launch_memory_set(out, SLOT_INPUT + 2, gemm->bias,
                                   gemm->bias_byte_offset);
    gemm->bias_byte_offset = 0;
}

/* ---- operators ---- */

enum tandem_status buffer_address_range(const void *user,
                                        const struct tandem_buffer *buffer,
                                        struct address_range *out)
{
    enum tandem_status status = buffer_check(user, buffer);
    if (status != TANDEM_OK)
        return status;
    out->base = buffer->address;
    out->bytes = buffer->bytes;
    out->is_sealed = atomic_load(&buffer->is_sealed);
    return TANDEM_OK;
}

enum tandem_status device_plan_make(struct tandem_device *device,
                                    const struct op_request *request,
                                    struct launch_plan *out_plan)
{
    struct op_request complete = *request;
    complete.hardware = device->hardware;
    complete.group_log2 = device->programs.group_log2;
    complete.has_device_scope_visibility = device->has_device_scope_visibility;
    complete.gemm_selector = &device->gemm_selector;
    complete.avoids_attention_mma = atomic_load(&device->attention_mma_failed);
    return launch_plan_make(out_plan, &complete);
}
