/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the operator GEMM: a kernel of the plugin, or CLBlast and the kernel of
 * the epilogue.  A residual that is not the output is read by the kernel, or
 * copied to the output first. */
#include "common/gemm_operator.h"
#include "common/op_class.h"
#include "common/tensor_extent.h"
#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/gemm_selector.h"
#include "opencl/plan/operand_packing.h"

/* Returns the residual if it is not the output, otherwise NULL. */
static const struct tandem_tensor_desc *
separate_residual(const struct op_call *call, const struct tandem_gemm *gemm)
{
    const struct tandem_tensor_desc *residual;
    if (gemm->beta == 0)
        return NULL;
    residual = call->inputs[gemm_residual_input(call)];
    return buffer_slot(residual->buffer) == buffer_slot(gemm->c.buffer)
               ? NULL
               : residual;
}

/* Returns true if two tensors of one shape have the same strides. */
static bool strides_equal(const struct tandem_tensor_desc *a,
                          const struct tandem_tensor_desc *b)
{
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

static void residual_copy(struct launch_plan *plan,
                          const struct op_request *request,
                          const struct tandem_tensor_desc *residual)
{
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_COPY};
    struct op_request copy = *request;
    copy.op = &op;
    copy.inputs = &residual;
    copy.input_count = 1;
    plan_copy(plan, &copy);
}

/* Selects the kernel or CLBlast.  Returns false if only the naive kernel can
 * compute the GEMM. */
static bool select(struct gemm_selection *out, const struct op_request *request,
                   const struct tandem_gemm *gemm)
{
    if (request->gemm_selection != NULL) {
        *out = *request->gemm_selection;
        return true;
    }
    return request->gemm_selector != NULL &&
           gemm_selector_choose_any(request->gemm_selector, gemm,
                                    request->avoids_clblast, out);
}

/* Adds the plugin's kernel.  Operands with a packed copy are not packed. */
static void kernel_add(struct launch_plan *plan,
                       const struct op_request *request,
                       const struct tandem_tensor_desc *residual,
                       const struct gemm_selection *selection)
{
    const struct tandem_gemm *gemm = &plan->gemm.gemm;
    const struct gemm_sources sources = {.old = residual};
    const uint32_t copies = request->packed_operands;
    struct tandem_gemm packed = *gemm;
    const struct tandem_matrix *matrices[OPERAND_COUNT] = {NULL, NULL};
    for (enum operand_id i = OPERAND_A; i < OPERAND_COUNT; i++) {
        struct tandem_matrix *matrix = i == OPERAND_A ? &packed.a : &packed.b;
        if ((copies >> i & 1u) == 0)
            continue;
        /* Each copy was packed by a plan of its own, which this one repeats for
         * the layout. */
        struct launch_plan packing = {.step_count = 0};
        plan_operand_packing(&packing, gemm, selection->kernel, 1u << i,
                             request->group_log2, &packed);
        matrix->buffer =
            slot_buffer(SLOT_PACKED_A + (uint32_t)i, MAX_SLOT_ALIGNMENT);
        matrices[i] = matrix;
    }
    plan->gemm.packs = gemm_packed_operands(gemm, selection->kernel) & ~copies;
    plan->gemm.split = selection->split;
    plan->selected_gemm = (uint32_t)selection->kernel + 1;
    plan_add_gemm(plan, gemm, &sources, selection, matrices,
                  request->group_log2);
}

static void gemm_class_plan(struct launch_plan *plan,
                            const struct op_request *request)
{
    const struct op_call call = {.info = operator_lookup(TANDEM_OP_GEMM),
                                 .op = request->op,
                                 .inputs = request->inputs,
                                 .outputs = request->outputs,
                                 .input_count = request->input_count,
                                 .output_count = request->output_count};
    struct tandem_gemm *gemm = &plan->gemm.gemm;
    const uint32_t group_log2 = request->group_log2;
    struct gemm_selection selection;
    /* The strides were checked when the operator was prepared. */
    (void)gemm_from_call(&call, gemm);
    const struct tandem_tensor_desc *residual = separate_residual(&call, gemm);
    /* If alpha or k is 0, only beta * c and the epilogue remain. */
    bool is_zero = gemm->k == 0 || gemm->alpha == 0;
    bool selected = !is_zero && select(&selection, request, gemm);
    if (residual != NULL && (!selected || selection.clblast ||
                             !strides_equal(residual, request->outputs[0]))) {
        residual_copy(plan, request, residual);
        residual = NULL;
    }
    if (selected)
        plan->predicted_ns = selection.ns;
    if (is_zero) {
        plan_epilogue(plan, gemm, group_log2, (float)gemm->beta);
    } else if (!selected) {
        plan_naive_gemm(plan, gemm, group_log2);
    } else if (!selection.clblast) {
        kernel_add(plan, request, residual, &selection);
    } else {
        plan->gemm.uses_clblast = true;
        plan->gemm.clblast_at = plan->step_count;
        if (gemm->bias_kind != TANDEM_BIAS_NONE ||
            gemm->activation != TANDEM_OP_INVALID)
            plan_epilogue(plan, gemm, group_log2, 1.0f);
    }
}

const struct plan_class plan_class_gemm = {.plan = gemm_class_plan};
