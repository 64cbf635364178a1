/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/optimizer.cl. */
#include <math.h>

#include "common/operator_table.h"
#include "opencl/plan/kernel_step.h"

/* As in cl/optimizer.cl; strides has as many rows as there are operands. */
struct optimizer {
    uint64_t elements;
    uint32_t rank, vector, variant, reserved;
    float rate, decay;
    float beta1, rest1;
    float beta2, rest2;
    float rate1, correction2;
    float epsilon, reserved1;
    uint64_t offset[8];
    struct fast_divmod space;
    int64_t strides[7][TANDEM_MAX_RANK];
};

/* SGD: nesterov; lr, momentum, dampening, weight_decay. */
static void fill_sgd(struct optimizer *out, const struct tandem_op *op)
{
    out->variant = op->ints[0] != 0;
    out->rate = attribute_f32(op->floats[0]);
    out->beta1 = attribute_f32(op->floats[1]);
    out->rest1 = attribute_f32(1.0 - op->floats[2]);
    out->decay = attribute_f32(op->floats[3]);
}

/* Adam: step, decoupled; lr, beta1, beta2, eps, weight_decay. */
static void fill_adam(struct optimizer *out, const struct tandem_op *op)
{
    const double *f = op->floats;
    double step = (double)op->ints[0];
    out->variant = op->ints[1] != 0;
    out->rate = attribute_f32(f[0]);
    out->beta1 = attribute_f32(f[1]);
    out->rest1 = attribute_f32(1.0 - f[1]);
    out->beta2 = attribute_f32(f[2]);
    out->rest2 = attribute_f32(1.0 - f[2]);
    out->epsilon = epsilon_f32(f[3]);
    out->decay = attribute_f32(f[4]);
    out->rate1 = attribute_f32(f[0] / (1.0 - pow(f[1], step)));
    out->correction2 = (float)(1.0 / (1.0 - pow(f[2], step)));
}

static void fill_operands(struct kernel_step *step, struct optimizer *out,
                          const struct op_request *request,
                          const struct layout *layout)
{
    bool flat = true;
    out->vector = 1;
    for (uint32_t i = 0; i < layout->operands; i++) {
        bool output = i < request->output_count;
        const struct tandem_tensor_desc *tensor =
            output ? request->outputs[i]
                   : request->inputs[i - request->output_count];
        step_add_buffer(step, tensor->buffer, output);
        out->offset[i] = element_offset(tensor);
        flat = flat && layout_contiguous(layout, i);
        if (!tensor_is_vec4_aligned(tensor))
            out->vector = 0;
    }
    out->rank = flat ? 0 : layout->rank;
    if (!flat)
        out->vector = 0;
}

enum tandem_status plan_optimizer(struct launch_plan *plan,
                                  const struct op_request *request)
{
    struct layout layout;
    layout_elementwise(&layout, request->inputs, request->input_count,
                       request->outputs, request->output_count);
    bool adam = request->op->id == TANDEM_OP_ADAM;
    /* The kernel's struct has no rows of strides past its operands. */
    uint32_t bytes =
        (uint32_t)(sizeof(struct optimizer) -
                   (7 - layout.operands) * sizeof(int64_t[TANDEM_MAX_RANK]));
    uint64_t key =
        variant_key_kernel(KERNEL_OPTIMIZER, request->op->id,
                           needs_64bit_index(&layout), request->group_log2);
    struct kernel_step *step = plan_add_step(plan, key, bytes);
    struct optimizer *out = (struct optimizer *)step->params;
    if (adam)
        fill_adam(out, request->op);
    else
        fill_sgd(out, request->op);
    out->elements = (uint64_t)layout.elements;
    fill_operands(step, out, request, &layout);
    fast_divmod_fill(&out->space, &layout);
    for (uint32_t i = 0; i < layout.operands; i++)
        strides_fill(out->strides[i], &layout, i);
    step_set_items(step, out->vector ? (out->elements + 3) / 4 : out->elements);
    return TANDEM_OK;
}
