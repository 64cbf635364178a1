/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the optimizers SGD and Adam, which cl/optimizer.cl computes. */
#include <math.h>

#include "common/operator_table.h"
#include "opencl/plan/kernel_step.h"
#include "optimizer.cl"

static uint32_t is_adam(const struct define_input *in)
{
    return in->key->op == TANDEM_OP_ADAM;
}

static const struct kernel_define optimizer_defines[] = {
    DEFINE_NUMBER("ADAM", is_adam, 0), END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(optimizer);
static const struct kernel_info kernel_optimizer = {
    KERNEL_SOURCE(optimizer), .function = "optimizer_update",
    .defines = optimizer_defines,
    .param_bytes = sizeof(struct optimizer_params)};

/* Attributes of SGD: nesterov, learning rate, momentum, dampening, decay. */
static void sgd_fill(struct optimizer_params *out, const struct tandem_op *op)
{
    out->variant = op->ints[0] != 0;
    out->rate = attribute_f32(op->floats[0]);
    out->beta1 = attribute_f32(op->floats[1]);
    out->one_minus_beta1 = attribute_f32(1.0 - op->floats[2]);
    out->decay = attribute_f32(op->floats[3]);
}

/* Attributes of Adam: step, decoupled (weight decay), learning rate, beta1,
 * beta2, epsilon, weight decay. */
static void adam_fill(struct optimizer_params *out, const struct tandem_op *op)
{
    const double *f = op->floats;
    double step = (double)op->ints[0];
    out->variant = op->ints[1] != 0;
    out->rate = attribute_f32(f[0]);
    out->beta1 = attribute_f32(f[1]);
    out->one_minus_beta1 = attribute_f32(1.0 - f[1]);
    out->beta2 = attribute_f32(f[2]);
    out->one_minus_beta2 = attribute_f32(1.0 - f[2]);
    out->epsilon = epsilon_f32(f[3]);
    out->decay = attribute_f32(f[4]);
    out->rate1 = attribute_f32(f[0] / (1.0 - pow(f[1], step)));
    out->correction2 = (float)(1.0 / (1.0 - pow(f[2], step)));
}

static void operands_fill(struct kernel_step *step,
                          struct optimizer_params *out,
                          const struct op_request *request,
                          const struct iteration_space *space)
{
    bool contiguous = true, aligned = true;
    for (uint32_t i = 0; i < space->operands; i++) {
        bool output = i < request->output_count;
        const struct tandem_tensor_desc *tensor =
            output ? request->outputs[i]
                   : request->inputs[i - request->output_count];
        step_add_tensor(step, tensor, output,
                        AT(optimizer_params, offset[0]) +
                            i * (uint32_t)sizeof(out->offset[0]));
        out->offset[i] = element_offset(tensor);
        strides_fill(out->strides + i * MAX_AXES, space, i);
        contiguous = contiguous && space_contiguous(space, i);
        aligned = aligned && tensor_is_vec4_aligned(tensor);
    }
    out->rank = contiguous ? 0 : space->rank;
    out->is_vec4 = contiguous && aligned;
}

static void plan_optimizer(struct launch_plan *plan,
                           const struct op_request *request)
{
    struct iteration_space space;
    space_elementwise(&space, request->inputs, request->input_count,
                      request->outputs, request->output_count);
    const struct kernel_key key = {.kernel = &kernel_optimizer,
                                   .op = request->op->id,
                                   .group_log2 = request->group_log2,
                                   .index_64bit = needs_64bit_index(&space)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct optimizer_params *out = (struct optimizer_params *)step->params;
    if (request->op->id == TANDEM_OP_ADAM)
        adam_fill(out, request->op);
    else
        sgd_fill(out, request->op);
    out->elements = (uint64_t)space.elements;
    operands_fill(step, out, request, &space);
    fast_divmod_fill(&out->space, &space);
    step_set_items(step,
                   out->is_vec4 ? div_ceil(out->elements, 4) : out->elements);
}

const struct plan_class plan_class_optimizer = {.plan = plan_optimizer};
