/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the plugin's functions that take an operator.  backend.h says from
 * which threads each may be called. */
#include "opencl/operator_entries.h"
#include "opencl/gemm/gemm.h"
#include "opencl/transfer/host_import.h"
#include "opencl/queue/kernel_launch.h"

static bool is_gemm(const struct tandem_op *op)
{
    return op != NULL && op->id == TANDEM_OP_GEMM;
}

static struct op_request op_request_of(
    const struct tandem_op *op, const struct tandem_tensor_desc *const *inputs,
    uint32_t input_count, const struct tandem_tensor_desc *const *outputs,
    uint32_t output_count)
{
    return (struct op_request){.op = op,
                               .inputs = inputs,
                               .outputs = outputs,
                               .input_count = input_count,
                               .output_count = output_count};
}

/* Checks device and operands of a call that launches no kernel, such as
 * operator_supports. */
static enum tandem_status check_call(struct tandem_device *device,
                                     const struct op_request *request)
{
    enum tandem_status status = device_check(device);
    if (status == TANDEM_OK)
        status = launch_check(device, request, false);
    return status;
}

static enum tandem_status make_plan(struct tandem_device *device,
                                    struct op_request *request,
                                    struct launch_plan *plan)
{
    request->hardware = device->hardware;
    request->group_log2 = device->programs.group_log2;
    request->has_device_scope_visibility = device->has_device_scope_visibility;
    return launch_plan_make(plan, request);
}

enum tandem_status operator_supports(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct op_request request =
        op_request_of(op, inputs, input_count, outputs, output_count);
    struct launch_plan plan;
    enum tandem_status status = check_call(device, &request);
    if (status != TANDEM_OK || is_gemm(op))
        return status;
    return make_plan(device, &request, &plan);
}

enum tandem_status operator_prepare(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct op_request request =
        op_request_of(op, inputs, input_count, outputs, output_count);
    struct launch_plan plan;
    enum tandem_status status = check_call(device, &request);
    if (status == TANDEM_OK)
        import_prepare(device);
    if (status == TANDEM_OK && is_gemm(op))
        return gemm_prepare(device, op->gemm);
    if (status == TANDEM_OK)
        status = make_plan(device, &request, &plan);
    for (uint32_t i = 0; status == TANDEM_OK && i < plan.step_count; i++)
        if (KEY_KERNEL(plan.step[i].key) != KERNEL_COPY_BUFFER)
            status = kernel_variant_prepare(device, plan.step[i].key);
    return status;
}

static enum tandem_status step_ready(struct tandem_device *device,
                                     const struct kernel_step *step)
{
    enum tandem_status status = kernel_variant_query(device, step->key);
    /* The kernel may have been prepared for larger work-groups than it
     * supports.  Prepare it again with the current group size. */
    if (status == TANDEM_NOT_READY && programs_need_smaller_groups(device))
        kernel_variant_prepare(device, step->key);
    return status;
}

enum tandem_status operator_ready(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct op_request request =
        op_request_of(op, inputs, input_count, outputs, output_count);
    struct launch_plan plan;
    enum tandem_status status = check_call(device, &request);
    if (status == TANDEM_OK && is_gemm(op))
        return gemm_ready(device, op->gemm);
    if (status == TANDEM_OK)
        status = make_plan(device, &request, &plan);
    for (uint32_t i = 0; status == TANDEM_OK && i < plan.step_count; i++)
        if (KEY_KERNEL(plan.step[i].key) != KERNEL_COPY_BUFFER)
            status = step_ready(device, &plan.step[i]);
    return status;
}

enum tandem_status operator_launch(
    struct tandem_stream *stream, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    struct op_request request = {.hardware = stream->device->hardware,
                                 .op = op,
                                 .inputs = inputs,
                                 .outputs = outputs,
                                 .input_count = input_count,
                                 .output_count = output_count};
    if (is_gemm(op))
        return op->gemm != NULL ? gemm_launch(stream, op->gemm)
                                : last_error_set(TANDEM_INVALID_ARGUMENT,
                                                 "launch: op->gemm is NULL");
    return launch_op(stream, &request);
}

enum tandem_status operator_gemm(struct tandem_stream *stream,
                                 const struct tandem_gemm *gemm)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    return gemm != NULL
               ? gemm_launch(stream, gemm)
               : last_error_set(TANDEM_INVALID_ARGUMENT, "gemm: gemm is NULL");
}
