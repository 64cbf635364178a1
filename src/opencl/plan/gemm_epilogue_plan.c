/* SPDX-License-Identifier: Apache-2.0 */
/* Plans cl/gemm/gemm_epilogue.cl. */
#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/gemm_params.h"

/* Parameters of cl/gemm/gemm_epilogue.cl. */
struct gemm_epilogue_params {
    uint64_t elements;
    float scale, slope;
    uint64_t c_offset, bias_offset;
    uint64_t columns, plane;
    int64_t ld, batch_stride;
    int64_t bias_column, bias_row;
    uint32_t has_bias, reserved;
};

void plan_epilogue(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale)
{
    uint32_t dtype = gemm_c_dtype(gemm), bytes = TANDEM_DTYPE_BYTES(dtype);
    uint64_t plane = (uint64_t)gemm->m * (uint64_t)gemm->n;
    uint64_t elements = plane * (uint64_t)gemm->batch;
    uint64_t key = variant_key_kernel(KERNEL_GEMM_EPILOGUE, 0,
                                      elements > MAX_32BIT_INDEX, group_log2) |
                   variant_key_activation(gemm) |
                   variant_key_type(0, kernel_type_of(dtype));
    plan->step_count = 0;
    plan->temp_bytes = 0;
    struct kernel_step *step =
        plan_add_step(plan, key, sizeof(struct gemm_epilogue_params));
    step_add_buffer(step, gemm->c.buffer, true);
    step_add_buffer(step, gemm_bias_buffer(gemm), false);
    *(struct gemm_epilogue_params *)step->params =
        (struct gemm_epilogue_params){
            .elements = elements,
            .scale = scale,
            .slope = attribute_f32(gemm->activation_parameter),
            .c_offset = gemm->c.byte_offset / bytes,
            .bias_offset = gemm->bias_byte_offset / bytes,
            .columns = (uint64_t)gemm->n,
            .plane = plane,
            .ld = gemm->c.ld,
            .batch_stride = gemm->c.batch_stride,
            .bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN,
            .bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW,
            .has_bias = gemm->bias_kind != TANDEM_BIAS_NONE};
    step_set_items(step, elements);
}
