/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm/gemm_epilogue.cl: what is done to a product before it is
 * read, and whole products in the simplest way. */
#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/plan.h"

/* As in cl/gemm/gemm_epilogue.cl. */
struct epilogue {
    uint64_t elements;
    float scale, slope;
    uint64_t c_offset, bias_offset;
    uint64_t columns, plane;
    int64_t ld, batch_stride;
    int64_t bias_column, bias_row;
    uint32_t has_bias, reserved;
};

struct multiply {
    uint64_t elements;
    uint64_t a_offset, b_offset, c_offset, bias_offset;
    uint64_t k, columns, plane;
    int64_t a_batch, a_row, a_step, b_batch, b_column, b_step;
    int64_t ld, batch_stride;
    int64_t bias_column, bias_row;
    float alpha, beta, slope;
    uint32_t has_bias;
};

static uint64_t key_of(const struct tandem_gemm *gemm, uint32_t kernel,
                       uint32_t group_log2, bool wide)
{
    bool tanh_form =
        gemm->activation == TANDEM_OP_GELU && gemm->activation_parameter != 0;
    return kernel_key(kernel, gemm->activation, wide, group_log2) |
           key_tanh(tanh_form) | key_type(0, type_of(gemm_c_dtype(gemm))) |
           key_type(1, kernel == KERNEL_MULTIPLY ? type_of(gemm->dtype)
                                                 : TYPE_FLOAT);
}

void plan_epilogue(struct plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale)
{
    uint64_t elements =
        (uint64_t)gemm->m * (uint64_t)gemm->n * (uint64_t)gemm->batch;
    uint64_t key =
        key_of(gemm, KERNEL_EPILOGUE, group_log2, elements > INT32_MAX);
    plan->steps = 0;
    plan->temp_bytes = 0;
    struct step *step = plan_step(plan, key, sizeof(struct epilogue));
    struct epilogue *out = (struct epilogue *)step->params;
    step_buffer(step, gemm->c.buffer, true);
    step_buffer(step, gemm->bias != NULL ? gemm->bias : gemm->c.buffer, false);
    out->elements = elements;
    out->scale = scale;
    out->slope = attribute_f32(gemm->activation_parameter);
    out->c_offset =
        gemm->c.byte_offset / TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    out->bias_offset =
        gemm->bias_byte_offset / TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    out->columns = (uint64_t)gemm->n;
    out->plane = (uint64_t)gemm->m * (uint64_t)gemm->n;
    out->ld = gemm->c.ld;
    out->batch_stride = gemm->c.batch_stride;
    out->has_bias = gemm->bias_kind != TANDEM_BIAS_NONE;
    out->bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN;
    out->bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    step_items(step, elements);
}

void plan_naive_gemm(struct plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2)
{
    uint64_t elements =
        (uint64_t)gemm->m * (uint64_t)gemm->n * (uint64_t)gemm->batch;
    uint64_t key =
        key_of(gemm, KERNEL_MULTIPLY, group_log2, elements > INT32_MAX);
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    uint32_t c_bytes = TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    bool ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    plan->steps = 0;
    plan->temp_bytes = 0;
    struct step *step = plan_step(plan, key, sizeof(struct multiply));
    step_buffer(step, gemm->c.buffer, true);
    step_buffer(step, gemm->a.buffer, false);
    step_buffer(step, gemm->b.buffer, false);
    step_buffer(step, gemm->bias != NULL ? gemm->bias : gemm->c.buffer, false);
    *(struct multiply *)step->params = (struct multiply){
        .elements = elements,
        .a_offset = gemm->a.byte_offset / bytes,
        .b_offset = gemm->b.byte_offset / bytes,
        .c_offset = gemm->c.byte_offset / c_bytes,
        .bias_offset = gemm->bias_byte_offset / c_bytes,
        .k = (uint64_t)gemm->k,
        .columns = (uint64_t)gemm->n,
        .plane = (uint64_t)gemm->m * (uint64_t)gemm->n,
        .a_batch = gemm->a.batch_stride,
        .a_row = ta ? 1 : gemm->a.ld,
        .a_step = ta ? gemm->a.ld : 1,
        .b_batch = gemm->b.batch_stride,
        .b_column = tb ? gemm->b.ld : 1,
        .b_step = tb ? 1 : gemm->b.ld,
        .ld = gemm->c.ld,
        .batch_stride = gemm->c.batch_stride,
        .bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN,
        .bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW,
        .alpha = (float)gemm->alpha,
        .beta = (float)gemm->beta,
        .slope = attribute_f32(gemm->activation_parameter),
        .has_bias = gemm->bias_kind != TANDEM_BIAS_NONE};
    step_items(step, elements);
}
