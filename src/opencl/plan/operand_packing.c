/* SPDX-License-Identifier: Apache-2.0 */
/* Which operands are packed, and plans for cl/gemm/pad_operands.cl. */
#include "opencl/plan/operand_packing.h"

#include "opencl/plan/tensor_core_packing.h"
#include "opencl/plan/gemm_params.h"

/* As in cl/gemm/pad_operands.cl. */
struct padding {
    uint64_t from[OPERANDS], to[OPERANDS];
    int64_t ld[OPERANDS], batch[OPERANDS];
    uint32_t length[OPERANDS], fours[OPERANDS], lines[OPERANDS],
        batches[OPERANDS];
};

/* How an operand lies in memory: lines of so many elements. */
struct extent {
    uint32_t lines, length, fours, batches;
};

static struct extent extent_of(const struct tandem_gemm *gemm,
                               const struct operand *operand)
{
    int64_t lines = operand->outer ? operand->depth : operand->rows;
    int64_t length = operand->outer ? operand->rows : operand->depth;
    int64_t batches = operand->matrix->batch_stride == 0 ? 1 : gemm->batch;
    return (struct extent){(uint32_t)lines, (uint32_t)length,
                           (uint32_t)((length + 3) / 4), (uint32_t)batches};
}

static uint64_t fours_of(const struct extent *extent)
{
    return (uint64_t)extent->lines * extent->fours * extent->batches;
}

uint32_t packing_needs(const struct tandem_gemm *gemm, enum tile_id tile)
{
    bool fours =
        tiles[tile].plain == GEMM_SIMT_128X128; /* reads nothing else */
    uint32_t needs = 0;
    if (tiles[tile].tensor != TENSOR_NONE)
        return tensor_needs(gemm, tile);
    if (!fours && !tiles[tile].strict)
        return 0;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        struct operand operand = operand_of(gemm, (enum operand_id)i);
        bool taken = fours ? operand_is_vec4(gemm, &operand)
                           : operand_aligned(gemm, (enum operand_id)i);
        needs |= taken ? 0 : 1u << i;
    }
    return needs;
}

bool packing_fits(const struct tandem_gemm *gemm, enum tile_id tile)
{
    uint64_t fours = 0;
    if (tiles[tile].tensor != TENSOR_NONE)
        return true;
    uint32_t needs = packing_needs(gemm, tile);
    for (uint32_t i = 0; i < OPERANDS; i++) {
        struct operand operand = operand_of(gemm, (enum operand_id)i);
        struct extent extent = extent_of(gemm, &operand);
        /* Doubles first: three such numbers may be more than 64 bits. */
        if ((needs >> i & 1u) == 0)
            continue;
        if ((double)extent.lines * extent.fours * extent.batches > MOST_NARROW)
            return false;
        fours += fours_of(&extent);
    }
    return fours <= MOST_NARROW;
}

uint64_t packing_moves(const struct tandem_gemm *gemm, enum tile_id tile,
                       uint32_t operands, uint32_t *out_launches)
{
    uint64_t elements = 0;
    if (tiles[tile].tensor != TENSOR_NONE)
        return tensor_moves(gemm, tile, operands, out_launches);
    for (uint32_t i = 0; i < OPERANDS; i++) {
        struct operand operand = operand_of(gemm, (enum operand_id)i);
        struct extent extent = extent_of(gemm, &operand);
        if ((operands >> i & 1u) != 0)
            elements += 4 * fours_of(&extent);
    }
    *out_launches = operands != 0;
    return 2 * elements * TANDEM_DTYPE_BYTES(gemm->dtype);
}

uint64_t packing_layout(const struct tandem_gemm *gemm, enum tile_id tile,
                        enum operand_id operand)
{
    return tiles[tile].tensor != TENSOR_NONE
               ? tensor_layout(gemm, tile, operand)
               : 0;
}

/* Operand i, and where it lies then. */
static uint64_t operand_pad(struct plan *plan, struct padding *padding,
                            const struct tandem_gemm *gemm, uint32_t i,
                            struct tandem_matrix *out)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    struct operand operand = operand_of(gemm, (enum operand_id)i);
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

static void pad_plan(struct plan *plan, const struct tandem_gemm *gemm,
                     uint32_t operands, uint32_t group_log2,
                     struct tandem_gemm *out_packed)
{
    struct tandem_matrix *out[OPERANDS] = {&out_packed->a, &out_packed->b};
    struct padding padding = {.batches = {0}};
    uint64_t items = 0;
    for (uint32_t i = 0; i < OPERANDS; i++)
        if ((operands >> i & 1u) != 0)
            items += operand_pad(plan, &padding, gemm, i, out[i]);
    struct step *step = plan_step(plan,
                                  kernel_key(KERNEL_PAD, 0, items > INT32_MAX,
                                             group_log2) |
                                      key_type(0, bits_type(gemm->dtype)),
                                  sizeof(padding));
    *(struct padding *)step->params = padding;
    step_buffer(step, NULL, true);
    step_buffer(step, gemm->a.buffer, false);
    step_buffer(step, gemm->b.buffer, false);
    step_items(step, items);
}

void packing_plan(struct plan *plan, const struct tandem_gemm *gemm,
                  enum tile_id tile, uint32_t operands, uint32_t group_log2,
                  struct tandem_gemm *out_packed)
{
    if (operands == 0)
        return;
    if (tiles[tile].tensor != TENSOR_NONE)
        tensor_pack(plan, gemm, tile, operands, out_packed);
    else
        pad_plan(plan, gemm, operands, group_log2, out_packed);
}
