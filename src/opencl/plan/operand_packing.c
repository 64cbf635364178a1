/* SPDX-License-Identifier: Apache-2.0 */
/* Which operands are packed, and plans for cl/gemm/pad_operands.cl. */
#include "opencl/plan/operand_packing.h"

#include "opencl/plan/tensor_core_packing.h"
#include "opencl/plan/gemm_params.h"

/* As in cl/gemm/pad_operands.cl. */
struct padding {
    uint64_t from[OPERAND_COUNT], to[OPERAND_COUNT];
    int64_t ld[OPERAND_COUNT], batch[OPERAND_COUNT];
    uint32_t length[OPERAND_COUNT], fours[OPERAND_COUNT], lines[OPERAND_COUNT],
        batches[OPERAND_COUNT];
};

/* How an operand lies in memory: lines of so many elements. */
struct extent {
    uint32_t lines, length, fours, batches;
};

static struct extent extent_of(const struct tandem_gemm *gemm,
                               const struct gemm_operand *operand)
{
    int64_t lines = operand->is_mn_major ? operand->k : operand->rows;
    int64_t length = operand->is_mn_major ? operand->rows : operand->k;
    int64_t batches = operand->matrix->batch_stride == 0 ? 1 : gemm->batch;
    return (struct extent){(uint32_t)lines, (uint32_t)length,
                           (uint32_t)((length + 3) / 4), (uint32_t)batches};
}

static uint64_t fours_of(const struct extent *extent)
{
    return (uint64_t)extent->lines * extent->fours * extent->batches;
}

uint32_t gemm_packed_operands(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id tile)
{
    bool fours = gemm_configs[tile].simt_fallback ==
                 GEMM_SIMT_128X128; /* reads nothing else */
    uint32_t needs = 0;
    if (gemm_configs[tile].mma_format != MMA_NONE)
        return tensor_core_packed_operands(gemm, tile);
    if (!fours && !gemm_configs[tile].is_3xtf32)
        return 0;
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        struct gemm_operand operand = operand_of(gemm, (enum operand_id)i);
        bool taken = fours ? operand_is_vec4(gemm, &operand)
                           : operand_is_aligned(gemm, (enum operand_id)i);
        needs |= taken ? 0 : 1u << i;
    }
    return needs;
}

bool packing_fits_32bit_index(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id tile)
{
    uint64_t fours = 0;
    if (gemm_configs[tile].mma_format != MMA_NONE)
        return true;
    uint32_t needs = gemm_packed_operands(gemm, tile);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        struct gemm_operand operand = operand_of(gemm, (enum operand_id)i);
        struct extent extent = extent_of(gemm, &operand);
        /* Doubles first: three such numbers may be more than 64 bits. */
        if ((needs >> i & 1u) == 0)
            continue;
        if ((double)extent.lines * extent.fours * extent.batches >
            MAX_32BIT_INDEX)
            return false;
        fours += fours_of(&extent);
    }
    return fours <= MAX_32BIT_INDEX;
}

uint64_t packing_bytes(const struct tandem_gemm *gemm, enum gemm_kernel_id tile,
                       uint32_t operands, uint32_t *out_launches)
{
    uint64_t elements = 0;
    if (gemm_configs[tile].mma_format != MMA_NONE)
        return tensor_core_packing_bytes(gemm, tile, operands, out_launches);
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        struct gemm_operand operand = operand_of(gemm, (enum operand_id)i);
        struct extent extent = extent_of(gemm, &operand);
        if ((operands >> i & 1u) != 0)
            elements += 4 * fours_of(&extent);
    }
    *out_launches = operands != 0;
    return 2 * elements * TANDEM_DTYPE_BYTES(gemm->dtype);
}

uint64_t packing_layout_id(const struct tandem_gemm *gemm,
                           enum gemm_kernel_id tile, enum operand_id operand)
{
    return gemm_configs[tile].mma_format != MMA_NONE
               ? tensor_core_layout_id(gemm, tile, operand)
               : 0;
}

/* Operand i, and where it lies then. */
static uint64_t operand_pad(struct launch_plan *plan, struct padding *padding,
                            const struct tandem_gemm *gemm, uint32_t i,
                            struct tandem_matrix *out)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    struct gemm_operand operand = operand_of(gemm, (enum operand_id)i);
    struct extent extent = extent_of(gemm, &operand);
    const struct tandem_matrix *from = operand.matrix;
    padding->from[i] = from->byte_offset / bytes;
    padding->to[i] = plan->temp_bytes / (4 * bytes);
    padding->ld[i] = from->ld;
    padding->batch[i] = from->batch_stride;
    padding->length[i] = extent.length;
    padding->fours[i] = extent.fours;
    padding->lines[i] = extent.lines;
    padding->batches[i] = extent.batches;
    int64_t ld = 4 * (int64_t)extent.fours;
    *out = (struct tandem_matrix){
        .byte_offset = plan->temp_bytes,
        .ld = ld,
        .batch_stride = extent.batches == 1 ? 0 : ld * (int64_t)extent.lines};
    /* The next one starts at 16 bytes again. */
    plan->temp_bytes += (fours_of(&extent) * 4 * bytes + 15) / 16 * 16;
    return fours_of(&extent);
}

static void pad_plan(struct launch_plan *plan, const struct tandem_gemm *gemm,
                     uint32_t operands, uint32_t group_log2,
                     struct tandem_gemm *out_packed)
{
    struct tandem_matrix *out[OPERAND_COUNT] = {&out_packed->a, &out_packed->b};
    struct padding padding = {.batches = {0}};
    uint64_t items = 0;
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        if ((operands >> i & 1u) != 0)
            items += operand_pad(plan, &padding, gemm, i, out[i]);
    struct kernel_step *step =
        plan_add_step(plan,
                      variant_key_kernel(KERNEL_PAD_OPERANDS, 0,
                                         items > INT32_MAX, group_log2) |
                          variant_key_type(0, kernel_bits_type(gemm->dtype)),
                      sizeof(padding));
    *(struct padding *)step->params = padding;
    step_add_buffer(step, NULL, true);
    step_add_buffer(step, gemm->a.buffer, false);
    step_add_buffer(step, gemm->b.buffer, false);
    step_set_items(step, items);
}

void plan_operand_packing(struct launch_plan *plan,
                          const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile, uint32_t operands,
                          uint32_t group_log2, struct tandem_gemm *out_packed)
{
    if (operands == 0)
        return;
    if (gemm_configs[tile].mma_format != MMA_NONE)
        tensor_core_plan_packing(plan, gemm, tile, operands, out_packed);
    else
        pad_plan(plan, gemm, operands, group_log2, out_packed);
}
