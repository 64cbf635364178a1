/* SPDX-License-Identifier: Apache-2.0 */
/* The operator GEMM.  Its plan is the product without addresses, and a copy to
 * the output of a residual that is not the output.  Any thread may call these
 * functions. */
#include "config.h"

#include "common/gemm_operator.h"
#include "cpu/gemm/gemm.h"
#include "cpu/kernels/copy.h"

struct gemm_plan {
    struct tandem_gemm gemm; /* without buffers and offsets */
    uint32_t bias;           /* number of the input, or UINT32_MAX */
    uint32_t residual;       /* number of the input to copy, or UINT32_MAX */
    struct copy residual_copy;
};

static struct op_call op_call_of(const struct work *work)
{
    return (struct op_call){.info = operator_lookup(work->op->id),
                            .op = work->op,
                            .inputs = work->inputs,
                            .outputs = work->outputs,
                            .input_count = work->input_count,
                            .output_count = work->output_count};
}

static enum tandem_status gemm_class_plan(void *out, const struct work *work)
{
    struct gemm_plan *plan = out;
    const struct op_call call = op_call_of(work);
    enum tandem_status status = gemm_from_call(&call, &plan->gemm);
    if (status == TANDEM_OK)
        status = gemm_check_sizes(&plan->gemm);
    if (status != TANDEM_OK)
        return status;
    plan->bias = plan->gemm.bias_kind != TANDEM_BIAS_NONE ? 2 : UINT32_MAX;
    plan->residual = UINT32_MAX;
    if (plan->gemm.beta == 0)
        return TANDEM_OK;
    plan->residual = gemm_residual_input(&call);
    copy_plan(&plan->residual_copy, work->outputs[0],
              work->inputs[plan->residual]);
    return TANDEM_OK;
}

/* Computes a GEMM in blocks, with a workspace that this function allocates. */
static enum tandem_status run_blocks(struct tandem_device *device,
                                     struct gemm_call *call)
{
    struct gemm_job job;
    struct tandem_buffer *workspace = NULL;
    parallel_gemm_prepare(&job, call);
    if (job.workspace_bytes > 0) {
        enum tandem_status status =
            memory_alloc(device, job.workspace_bytes, &workspace);
        if (status != TANDEM_OK && job.needs_workspace)
            return status;
    }
    parallel_gemm_run(&job, workspace == NULL ? NULL : workspace->base);
    memory_free(workspace);
    return TANDEM_OK;
}

static enum tandem_status gemm_class_run(const void *planned,
                                         const struct work *work,
                                         unsigned char *const *addresses)
{
    const struct gemm_plan *plan = planned;
    struct tandem_device *device = work->device;
    unsigned char *c = addresses[work->input_count];
    const struct gemm_addresses operands = {
        addresses[0], addresses[1],
        plan->bias != UINT32_MAX ? addresses[plan->bias] : NULL, c};
    struct gemm_call call;
    if (plan->gemm.m == 0)
        return TANDEM_OK;
    enum tandem_status status = gemm_prepare(&call, &plan->gemm, &operands,
                                             device->kernels, device->pool);
    if (status != TANDEM_OK)
        return status;
    if (plan->residual != UINT32_MAX && addresses[plan->residual] != c)
        copy_execute(&plan->residual_copy, device, TANDEM_OP_COPY, c,
                     addresses[plan->residual]);
    if (!gemv_supports(&call))
        return run_blocks(device, &call);
    gemv_run(&call);
    return TANDEM_OK;
}

const struct cpu_class cpu_class_gemm = {.plan_bytes = sizeof(struct gemm_plan),
                                         .plan = gemm_class_plan,
                                         .run_plan = gemm_class_run};
