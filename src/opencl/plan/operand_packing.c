/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the GEMM operands to pack, and plans cl/gemm/pad_operands.cl. */
#include "opencl/plan/operand_packing.h"

#include "opencl/plan/gemm_params.h"
#include "opencl/plan/tensor_core_packing.h"
#include "gemm/pad_operands.cl"

static const struct kernel_define defines[] = {DEFINE_TYPE("BITS", 0),
                                               END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(pad_operands);
static const struct kernel_info kernel_pad = {
    KERNEL_SOURCE(pad_operands), .function = "pad_operands", .defines = defines,
    .param_bytes = sizeof(struct pad_params)};

/* An operand in memory, as lines (rows or columns) of `length` elements. */
struct operand_lines {
    uint32_t lines, length, vectors_per_line, batches;
};

static struct operand_lines lines_of(const struct tandem_gemm *gemm,
                                     struct gemm_operand operand)
{
    int64_t length = operand.is_mn_major ? operand.rows : gemm->k;
    return (struct operand_lines){
        .lines = (uint32_t)(operand.is_mn_major ? gemm->k : operand.rows),
        .length = (uint32_t)length,
        .vectors_per_line = (uint32_t)div_ceil((uint64_t)length, 4),
        .batches = operand.batches};
}

static uint64_t vectors_of(const struct operand_lines *lines)
{
    return (uint64_t)lines->lines * lines->vectors_per_line * lines->batches;
}

uint32_t gemm_packed_operands(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    uint32_t mask = 0;
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++) {
        bool readable = true;
        if (config->mma_format != MMA_NONE)
            readable = !tensor_core_packs_operand(gemm, kernel, id);
        /* This kernel reads only whole vec4. */
        else if (kernel == GEMM_SIMT_128X128)
            readable = operand_is_vec4(gemm, operand_of(gemm, id));
        else if (config->is_3xtf32)
            readable = operand_is_aligned(gemm, id);
        mask |= readable ? 0 : 1u << id;
    }
    return mask;
}

bool packing_fits_32bit_index(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel)
{
    /* This is a double, because a product of three uint32_t can overflow. */
    double vectors = 0;
    uint32_t packed = gemm_packed_operands(gemm, kernel);
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++) {
        struct operand_lines lines = lines_of(gemm, operand_of(gemm, id));
        if ((packed >> id & 1u) != 0)
            vectors +=
                (double)lines.lines * lines.vectors_per_line * lines.batches;
    }
    return vectors <= MAX_32BIT_INDEX;
}

uint64_t packing_bytes(const struct tandem_gemm *gemm,
                       enum gemm_kernel_id kernel, uint32_t operands,
                       uint32_t *out_launches)
{
    uint64_t elements = 0;
    if (gemm_configs[kernel].mma_format != MMA_NONE)
        return tensor_core_packing_bytes(gemm, kernel, operands, out_launches);
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++) {
        struct operand_lines lines = lines_of(gemm, operand_of(gemm, id));
        if ((operands >> id & 1u) != 0)
            elements += 4 * vectors_of(&lines);
    }
    *out_launches = operands != 0;
    return 2 * elements * TANDEM_DTYPE_BYTES(gemm->dtype);
}

/* Adds an operand to the parameters of the padding kernel.  Sets *out_matrix to
 * the padded copy, and returns the number of vec4 that the copy contains. */
static uint64_t pad_params_add(struct launch_plan *plan, struct pad_params *out,
                               const struct tandem_gemm *gemm,
                               enum operand_id i,
                               struct tandem_matrix *out_matrix)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    struct gemm_operand operand = operand_of(gemm, i);
    struct operand_lines lines = lines_of(gemm, operand);
    out->from[i] = operand.matrix->byte_offset / bytes;
    out->to[i] = plan->temp_bytes / (4 * bytes);
    out->ld[i] = operand.matrix->ld;
    out->batch[i] = operand.matrix->batch_stride;
    out->length[i] = lines.length;
    out->vectors_per_line[i] = lines.vectors_per_line;
    out->lines[i] = lines.lines;
    out->batches[i] = lines.batches;
    int64_t ld = 4 * (int64_t)lines.vectors_per_line;
    *out_matrix = (struct tandem_matrix){
        .buffer = TEMP_BUFFER,
        .byte_offset = plan->temp_bytes,
        .ld = ld,
        .batch_stride = lines.batches == 1 ? 0 : ld * (int64_t)lines.lines};
    /* Aligns the next operand in the buffer to 16 bytes. */
    plan->temp_bytes += div_ceil(vectors_of(&lines) * 4 * bytes, 16) * 16;
    return vectors_of(&lines);
}

void plan_operand_packing(struct launch_plan *plan,
                          const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel, uint32_t operands,
                          uint32_t group_log2, struct tandem_gemm *out_packed)
{
    struct tandem_matrix *out[OPERAND_COUNT] = {&out_packed->a, &out_packed->b};
    struct pad_params params = {.batches = {0}};
    uint64_t items = 0;
    if (operands == 0)
        return;
    if (gemm_configs[kernel].mma_format != MMA_NONE) {
        tensor_core_plan_packing(plan, gemm, kernel, operands, out_packed);
        return;
    }
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++)
        if ((operands >> id & 1u) != 0)
            items += pad_params_add(plan, &params, gemm, id, out[id]);
    const struct kernel_key key = {.kernel = &kernel_pad,
                                   .types = {kernel_bits_type(gemm->dtype)},
                                   .group_log2 = group_log2,
                                   .index_64bit = items > MAX_32BIT_INDEX};
    struct kernel_step *step = plan_add_step(plan, &key, &params);
    step_add_temp(step, true);
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++)
        step_add_gemm_operand(step, gemm, operand_of(gemm, id),
                              params.batches[id] != 0
                                  ? AT(pad_params, from[0]) +
                                        id * (uint32_t)sizeof(uint64_t)
                                  : NO_OFFSET);
    step_set_items(step, items);
}
