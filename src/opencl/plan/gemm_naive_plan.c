/* SPDX-License-Identifier: Apache-2.0 */
/* Plans cl/gemm/gemm_naive.cl and cl/gemm/library_gemm_epilogue.cl. */
#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/gemm_params.h"
#include "gemm/gemm_naive.cl"
#include "gemm/library_gemm_epilogue.cl"

static const struct kernel_define defines[] = {
    GEMM_DTYPE_DEFINES, EPILOGUE_DEFINES, END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(gemm_naive);
static const struct kernel_info kernel_naive = {
    KERNEL_SOURCE(gemm_naive), .function = "gemm_naive", .defines = defines,
    .param_bytes = sizeof(struct gemm_naive_params)};
DECLARE_KERNEL_SOURCE(library_gemm_epilogue);
static const struct kernel_info kernel_epilogue = {
    KERNEL_SOURCE(library_gemm_epilogue), .function = "gemm_epilogue",
    .defines = defines, .param_bytes = sizeof(struct gemm_epilogue_params)};

/* Adds a step, which runs one work-item per element of `c`.  The
 * first buffer of the step is that of `c`, whose offset is at position
 * `c_offset_at` of the parameters. */
static struct kernel_step *element_step_add(struct launch_plan *plan,
                                            const struct tandem_gemm *gemm,
                                            struct kernel_key key,
                                            const void *params,
                                            uint32_t c_offset_at)
{
    uint64_t elements = gemm_c_elements(gemm);
    key.index_64bit = elements > MAX_32BIT_INDEX;
    gemm_key_set_activation(&key, gemm);
    struct kernel_step *step = plan_add_step(plan, &key, params);
    step_add_gemm_c(step, gemm, true, c_offset_at);
    step_set_items(step, elements);
    return step;
}

void plan_naive_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
                     uint32_t group_log2)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    uint32_t c_bytes = TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    bool transpose_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool transpose_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    struct gemm_naive_params params = {
        .elements = gemm_c_elements(gemm),
        .a_offset = gemm->a.byte_offset / bytes,
        .b_offset = gemm->b.byte_offset / bytes,
        .c_offset = gemm->c.byte_offset / c_bytes,
        .bias_offset = gemm->bias_byte_offset / c_bytes,
        .k = (uint64_t)gemm->k,
        .columns = (uint64_t)gemm->n,
        .plane = (uint64_t)gemm->m * (uint64_t)gemm->n,
        .a_batch = gemm->a.batch_stride,
        .a_row = transpose_a ? 1 : gemm->a.ld,
        .a_step = transpose_a ? gemm->a.ld : 1,
        .b_batch = gemm->b.batch_stride,
        .b_column = transpose_b ? gemm->b.ld : 1,
        .b_step = transpose_b ? 1 : gemm->b.ld,
        .ld = gemm->c.ld,
        .batch_stride = gemm->c.batch_stride,
        .bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN,
        .bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW,
        .alpha = (float)gemm->alpha,
        .beta = (float)gemm->beta,
        .has_bias = gemm->bias_kind != TANDEM_BIAS_NONE};
    activation_fill(params.activation, gemm);
    struct kernel_key key = {.kernel = &kernel_naive, .group_log2 = group_log2};
    kernel_key_set_types(&key, gemm);
    struct kernel_step *step = element_step_add(
        plan, gemm, key, &params, AT(gemm_naive_params, c_offset));
    step_add_gemm_operand(step, gemm, operand_of(gemm, OPERAND_A),
                          AT(gemm_naive_params, a_offset));
    step_add_gemm_operand(step, gemm, operand_of(gemm, OPERAND_B),
                          AT(gemm_naive_params, b_offset));
    step_add_gemm_bias(step, gemm, AT(gemm_naive_params, bias_offset));
}

void plan_epilogue(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   uint32_t group_log2, float scale)
{
    uint32_t dtype = gemm_c_dtype(gemm), bytes = TANDEM_DTYPE_BYTES(dtype);
    struct gemm_epilogue_params params = {
        .elements = gemm_c_elements(gemm),
        .scale = scale,
        .c_offset = gemm->c.byte_offset / bytes,
        .bias_offset = gemm->bias_byte_offset / bytes,
        .columns = (uint64_t)gemm->n,
        .plane = (uint64_t)gemm->m * (uint64_t)gemm->n,
        .ld = gemm->c.ld,
        .batch_stride = gemm->c.batch_stride,
        .bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN,
        .bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW,
        .has_bias = gemm->bias_kind != TANDEM_BIAS_NONE};
    activation_fill(params.activation, gemm);
    const struct kernel_key key = {.kernel = &kernel_epilogue,
                                   .types = {kernel_type_of(dtype)},
                                   .group_log2 = group_log2};
    struct kernel_step *step = element_step_add(
        plan, gemm, key, &params, AT(gemm_epilogue_params, c_offset));
    step_add_gemm_bias(step, gemm, AT(gemm_epilogue_params, bias_offset));
}
