/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm.cl: what is done to a product before it is read. */
#include "opencl/plan.h"

/* As in cl/gemm.cl. */
struct epilogue {
    uint64_t elements;
    float scale, slope;
    uint64_t c_offset, bias_offset;
    uint64_t columns, plane;
    int64_t ld, batch_stride;
    int64_t bias_column, bias_row;
    uint32_t has_bias, reserved;
};

static uint64_t key_of(const struct tandem_gemm *gemm, uint32_t group_log2,
                       bool wide)
{
    bool tanh_form =
        gemm->activation == TANDEM_OP_GELU && gemm->activation_alpha != 0;
    return kernel_key(KERNEL_EPILOGUE, gemm->activation, wide, group_log2) |
           key_tanh(tanh_form);
}

void plan_epilogue(struct plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale)
{
    uint64_t elements =
        (uint64_t)gemm->m * (uint64_t)gemm->n * (uint64_t)gemm->batch;
    uint64_t key = key_of(gemm, group_log2, elements > INT32_MAX);
    plan->steps = 0;
    plan->temp_bytes = 0;
    struct step *step = plan_step(plan, key, sizeof(struct epilogue));
    struct epilogue *out = (struct epilogue *)step->params;
    step_buffer(step, gemm->c.buffer, true);
    step_buffer(step, gemm->bias != NULL ? gemm->bias : gemm->c.buffer, false);
    out->elements = elements;
    out->scale = scale;
    out->slope = (float)gemm->activation_alpha;
    out->c_offset = gemm->c.byte_offset / sizeof(float);
    out->bias_offset = gemm->bias_byte_offset / sizeof(float);
    out->columns = (uint64_t)gemm->n;
    out->plane = (uint64_t)gemm->m * (uint64_t)gemm->n;
    out->ld = gemm->c.ld;
    out->batch_stride = gemm->c.batch_stride;
    out->has_bias = gemm->bias_kind != TANDEM_BIAS_NONE;
    out->bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN;
    out->bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    step_items(step, elements);
}
