/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for the kernel that applies bias and activation to the result of a
 * GEMM: cl/gemm/gemm_epilogue.cl. */
#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/gemm_params.h"

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

void plan_epilogue(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale)
{
    uint64_t elements =
        (uint64_t)gemm->m * (uint64_t)gemm->n * (uint64_t)gemm->batch;
    uint32_t c_bytes = TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    uint64_t key = variant_key_kernel(KERNEL_GEMM_EPILOGUE, 0,
                                      elements > INT32_MAX, group_log2) |
                   variant_key_activation(gemm) |
                   variant_key_type(0, kernel_type_of(gemm_c_dtype(gemm)));
    plan->step_count = 0;
    plan->temp_bytes = 0;
    struct kernel_step *step =
        plan_add_step(plan, key, sizeof(struct epilogue));
    struct epilogue *out = (struct epilogue *)step->params;
    step_add_buffer(step, gemm->c.buffer, true);
    step_add_buffer(step, gemm_bias_buffer(gemm), false);
    out->elements = elements;
    out->scale = scale;
    out->slope = attribute_f32(gemm->activation_parameter);
    out->c_offset = gemm->c.byte_offset / c_bytes;
    out->bias_offset = gemm->bias_byte_offset / c_bytes;
    out->columns = (uint64_t)gemm->n;
    out->plane = (uint64_t)gemm->m * (uint64_t)gemm->n;
    out->ld = gemm->c.ld;
    out->batch_stride = gemm->c.batch_stride;
    out->has_bias = gemm->bias_kind != TANDEM_BIAS_NONE;
    out->bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN;
    out->bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    step_set_items(step, elements);
}
