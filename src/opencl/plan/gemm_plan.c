/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm/gemm_simt.cl, cl/nvidia/gemm_3xtf32.cl and
 * cl/gemm/split_k_fixup.cl. */
#include "opencl/plan/gemm_params.h"

#include <math.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/memory/buffer.h"
#include "opencl/plan/tensor_core_packing.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/plan/gemv_plan.h"

static uint64_t tiles_of(int64_t extent, uint32_t size)
{
    return ((uint64_t)extent + size - 1) / size;
}

uint64_t gemm_kernel_groups(const struct tandem_gemm *gemm,
                            enum gemm_kernel_id tile)
{
    if (gemm_configs[tile].gemv_vectors != 0)
        return gemv_groups(gemm, tile);
    return tiles_of(gemm->m, gemm_configs[tile].tile_m) *
           tiles_of(gemm->n, gemm_configs[tile].tile_n) * (uint64_t)gemm->batch;
}

uint32_t gemm_kernel_k_tile(const struct tandem_gemm *gemm,
                            enum gemm_kernel_id tile)
{
    return gemm_configs[tile].gemv_vectors != 0 ? gemv_k_tile(gemm, tile)
                                                : gemm_configs[tile].k_tile;
}

uint32_t gemm_kernel_cost_units(const struct tandem_gemm *gemm,
                                enum gemm_kernel_id tile)
{
    return gemm_configs[tile].gemv_vectors != 0
               ? gemv_rows_per_group(gemm, tile)
               : 1;
}

static bool fours_of(const struct tandem_gemm *gemm, enum operand_id id)
{
    struct gemm_operand operand = operand_of(gemm, id);
    return operand_is_vec4(gemm, &operand);
}

bool gemm_kernel_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile)
{
    if (gemm_configs[tile].mma_format != MMA_NONE)
        return tensor_core_supports(gemm, tile);
    if (gemm_configs[tile].is_3xtf32 && gemm->dtype != TANDEM_F32)
        return false;
    return gemm_configs[tile].gemv_vectors == 0
               ? packing_fits_32bit_index(gemm, tile)
               : gemv_supports(gemm, tile);
}

bool gemm_kernel_reads_scalars(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id tile)
{
    return gemm_configs[tile].mma_format == MMA_NONE &&
           !gemm_configs[tile].is_3xtf32 &&
           gemm_configs[tile].gemv_vectors == 0 &&
           gemm_packed_operands(gemm, tile) == 0 &&
           !(fours_of(gemm, OPERAND_A) && fours_of(gemm, OPERAND_B));
}

/* ---- the product ---- */

/* packed: what the tile does not take as it lies. */
static uint64_t key_of(const struct tandem_gemm *gemm, enum gemm_kernel_id tile,
                       bool packed)
{
    bool strict = gemm_configs[tile].is_3xtf32;
    bool fours = strict || (packed && tile == GEMM_SIMT_128X128);
    return variant_key_kernel(strict ? KERNEL_GEMM_3XTF32 : KERNEL_GEMM_SIMT, 0,
                              false, gemm_configs[tile].group_log2) |
           variant_key_gemm(tile, operand_is_mn_major(gemm, OPERAND_A),
                            operand_is_mn_major(gemm, OPERAND_B),
                            fours || fours_of(gemm, OPERAND_A)) |
           variant_key_second_vec4(fours || fours_of(gemm, OPERAND_B)) |
           variant_key_gemm_types(gemm);
}

static uint64_t groups_of(const struct gemm_params *params)
{
    return params->unsplit_tiles +
           (uint64_t)params->split_tiles * params->splits;
}

static uint64_t partial_bytes(const struct gemm_params *params)
{
    uint64_t sums = params->plane;
    if (params->unsplit_tiles > 0)
        sums = (uint64_t)params->split_tiles * params->tile_m * params->tile_n;
    return params->splits * sums * sizeof(float);
}

/* A kernel's step; the temporary holds marks, or tensor maps, and partial
 * results. */
static void plan_tiles(struct launch_plan *plan, const struct tandem_gemm *gemm,
                       uint64_t key, const struct gemm_params *params,
                       bool marks)
{
    bool some = params->unsplit_tiles > 0;
    bool parts = (params->flags & (STORES_PARTIALS | PROMOTES_IN_MEMORY)) != 0;
    bool again = (params->flags & ONLY_NONFINITE_TILES) != 0;
    struct tandem_buffer *none = gemm->c.buffer;
    key |= some ? variant_key_activation(gemm) : 0;
    struct kernel_step *step =
        plan_add_step(plan, key, sizeof(struct gemm_params));
    *(struct gemm_params *)step->params = *params;
    step_add_buffer(step, gemm->c.buffer, some);
    step_add_buffer(step, parts ? NULL : none, parts);
    step_add_buffer(step, gemm->a.buffer, false);
    step_add_buffer(step, gemm->b.buffer, false);
    step_add_buffer(step, gemm_bias_buffer(gemm), false);
    step_add_buffer(step, marks ? NULL : none, marks && !again);
    step->groups = groups_of(params);
}

/* Tensor cores truncate when they add: positive halves lose up to 6.5e-9 of
 * their sum at each step of k.  Steps after which that is 0.85 of what a
 * product of all of k may be off (8 + 2 sqrt k, of 2^-23); or as many as need
 * no saving. */
#define UNSAVED 1536u

static uint32_t steps_promoted(uint32_t k)
{
    double steps = 31 * (4 + sqrt(k));
    return steps > UNSAVED ? (uint32_t)steps : UNSAVED;
}

/* Where sums of halves are saved meanwhile, if there are more steps. */
static void plan_promote(struct launch_plan *plan, struct gemm_params *params,
                         enum gemm_kernel_id tile)
{
    uint32_t most = params->unsplit_tiles > 0 ? params->k : params->k_per_split;
    uint32_t steps = steps_promoted(params->k);
    uint32_t times = (most + steps - 1) / steps;
    uint32_t slices =
        (most + gemm_configs[tile].k_tile - 1) / gemm_configs[tile].k_tile;
    if (gemm_configs[tile].mma_format != MMA_16BIT ||
        gemm_configs[tile].uses_wgmma)
        return;
    params->promote_interval = (slices + times - 1) / times;
    if (times == 1)
        return;
    params->flags |= PROMOTES_IN_MEMORY;
    plan->temp_bytes = (plan->temp_bytes + 15) / 16 * 16;
    params->promoted_offset = plan->temp_bytes / sizeof(float);
    plan->temp_bytes += groups_of(params) * params->tile_m * params->tile_n *
                        sizeof(float);
}

/* Makes room for the totals of cl/gemm/gemm_simt.cl's larger tiles in the
 * temporary, unless they can be kept in c: if it is f32 and not read (beta is
 * 0). */
static void plan_totals(struct launch_plan *plan,
                        const struct tandem_gemm *gemm,
                        struct gemm_params *params, enum gemm_kernel_id plain)
{
    bool in_c = gemm_c_dtype(gemm) == TANDEM_F32 && params->beta == 0;
    if (plain == GEMM_SIMT_32X64 || in_c || params->unsplit_tiles == 0 ||
        params->k <= PARTIAL_TERMS)
        return;
    params->flags |= PROMOTES_IN_MEMORY;
    plan->temp_bytes = (plan->temp_bytes + 15) / 16 * 16;
    params->promoted_offset = plan->temp_bytes / sizeof(float);
    plan->temp_bytes += params->plane * sizeof(float);
}

/* Where tensor maps are written, if the kernel has any. */
static bool plan_maps(struct launch_plan *plan, uint64_t key,
                      struct gemm_params *params)
{
    uint64_t bytes = tensor_map_bytes(key, groups_of(params));
    if (bytes == 0)
        return false;
    plan->temp_bytes = (plan->temp_bytes + TENSOR_MAP_ALIGN - 1) /
                       TENSOR_MAP_ALIGN * TENSOR_MAP_ALIGN;
    params->tensor_maps_offset = plan->temp_bytes / sizeof(uint32_t);
    plan->temp_bytes += bytes;
    return true;
}

/* All after what the temporary holds already.  from: gemm with operands as the
 * tile reads them. */
static void plan_kernels(struct launch_plan *plan,
                         const struct tandem_gemm *gemm,
                         const struct tandem_gemm *from,
                         enum gemm_kernel_id tile, struct split_k division,
                         uint32_t group_log2)
{
    bool tensor = gemm_configs[tile].mma_format != MMA_NONE;
    bool marks = gemm_configs[tile].is_3xtf32 ||
                 gemm_configs[tile].mma_format == MMA_FP16X3;
    struct gemm_params params;
    product_fill(&params, from, gemm_configs[tile].k_tile, division.splits);
    params.tile_m = gemm_configs[tile].tile_m;
    params.tile_n = gemm_configs[tile].tile_n;
    gemm_params_set_tiles(
        &params, (uint32_t)tiles_of(gemm->m, gemm_configs[tile].tile_m),
        (uint32_t)tiles_of(gemm->n, gemm_configs[tile].tile_n),
        division.split_tiles);
    /* What strict stores may be computed again, and so must not be added. */
    if (gemm_configs[tile].is_3xtf32 && gemm->beta != 0) {
        params.k_per_split = params.splits > 1 ? params.k_per_split : params.k;
        params.split_tiles += params.unsplit_tiles;
        params.unsplit_tiles = 0;
    }
    uint64_t key =
        tensor ? tensor_core_variant_key(gemm, tile) : key_of(from, tile, true);
    bool maps = plan_maps(plan, key, &params);
    params.partial_offset = plan->temp_bytes / sizeof(float);
    if (params.split_tiles > 0) {
        params.flags |= STORES_PARTIALS;
        plan->temp_bytes += partial_bytes(&params);
    }
    plan_promote(plan, &params, tile);
    if (!tensor && !gemm_configs[tile].is_3xtf32)
        plan_totals(plan, gemm, &params, tile);
    params.nonfinite_flags_offset = plan->temp_bytes / sizeof(uint32_t);
    plan_tiles(plan, from, key, &params, marks || maps);
    if (marks) {
        /* Of pairs, what is not finite is not packed. */
        const struct tandem_gemm *plain = tensor ? gemm : from;
        plan->temp_bytes += groups_of(&params) * sizeof(uint32_t);
        params.flags |= ONLY_NONFINITE_TILES;
        plan_totals(plan, gemm, &params, gemm_configs[tile].simt_fallback);
        operands_fill(&params, plain);
        plan_tiles(plan, plain,
                   key_of(plain, gemm_configs[tile].simt_fallback, !tensor),
                   &params, true);
        params.flags &= ~(ONLY_NONFINITE_TILES | PROMOTES_IN_MEMORY);
    }
    if ((params.flags & STORES_PARTIALS) != 0)
        plan_split_k_fixup(plan, gemm, &params, group_log2);
}

void plan_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id tile, struct split_k division,
               const struct tandem_matrix *const *kept, uint32_t group_log2)
{
    struct tandem_gemm whole; /* gemm may be shorter */
    gemm_args_normalize(&whole, gemm);
    struct tandem_gemm packed = whole;
    struct tandem_matrix *matrices[OPERAND_COUNT] = {&packed.a, &packed.b};
    uint32_t needs = gemm_packed_operands(&whole, tile);
    for (uint32_t i = 0; i < OPERAND_COUNT && kept != NULL; i++)
        if (kept[i] != NULL) {
            *matrices[i] = *kept[i];
            needs &= ~(1u << i);
        }
    plan->step_count = 0;
    plan->temp_bytes = 0;
    plan_operand_packing(plan, &whole, tile, needs, group_log2, &packed);
    if (gemm_configs[tile].gemv_vectors != 0)
        plan_gemv(plan, &packed, tile, division.splits, group_log2);
    else
        plan_kernels(plan, &whole, &packed, tile, division, group_log2);
}
