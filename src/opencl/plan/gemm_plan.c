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

uint64_t product_groups(const struct tandem_gemm *gemm, enum tile_id tile)
{
    if (tiles[tile].narrow != 0)
        return skinny_groups(gemm, tile);
    return tiles_of(gemm->m, tiles[tile].m) * tiles_of(gemm->n, tiles[tile].n) *
           (uint64_t)gemm->batch;
}

uint32_t product_slice(const struct tandem_gemm *gemm, enum tile_id tile)
{
    return tiles[tile].narrow != 0 ? skinny_depth(gemm, tile)
                                   : tiles[tile].slice;
}

uint32_t product_share(const struct tandem_gemm *gemm, enum tile_id tile)
{
    return tiles[tile].narrow != 0 ? skinny_rows(gemm, tile) : 1;
}

static bool fours_of(const struct tandem_gemm *gemm, enum operand_id id)
{
    struct operand operand = operand_of(gemm, id);
    return operand_is_vec4(gemm, &operand);
}

bool product_fits(const struct tandem_gemm *gemm, enum tile_id tile)
{
    if (tiles[tile].tensor != TENSOR_NONE)
        return tensor_fits(gemm, tile);
    if (tiles[tile].strict && gemm->dtype != TANDEM_F32)
        return false;
    return tiles[tile].narrow == 0 ? packing_fits(gemm, tile)
                                   : gemv_supports(gemm, tile);
}

bool product_by_ones(const struct tandem_gemm *gemm, enum tile_id tile)
{
    return tiles[tile].tensor == TENSOR_NONE && !tiles[tile].strict &&
           tiles[tile].narrow == 0 && packing_needs(gemm, tile) == 0 &&
           !(fours_of(gemm, OPERAND_A) && fours_of(gemm, OPERAND_B));
}

/* ---- the product ---- */

/* packed: what the tile does not take as it lies. */
static uint64_t key_of(const struct tandem_gemm *gemm, enum tile_id tile,
                       bool packed)
{
    bool strict = tiles[tile].strict;
    bool fours = strict || (packed && tile == GEMM_SIMT_128X128);
    return kernel_key(strict ? KERNEL_STRICT : KERNEL_PRODUCT, 0, false,
                      tiles[tile].group_log2) |
           key_product(tile, operand_is_mn_major(gemm, OPERAND_A),
                       operand_is_mn_major(gemm, OPERAND_B),
                       fours || fours_of(gemm, OPERAND_A)) |
           key_second_vector(fours || fours_of(gemm, OPERAND_B)) |
           product_types(gemm);
}

static uint64_t groups_of(const struct product *params)
{
    return params->whole + (uint64_t)params->parted * params->splits;
}

static uint64_t partial_bytes(const struct product *params)
{
    uint64_t sums = params->plane;
    if (params->whole > 0)
        sums = (uint64_t)params->parted * params->tile_m * params->tile_n;
    return params->splits * sums * sizeof(float);
}

/* A kernel's step; the temporary holds marks, or tensor maps, and partial
 * results. */
static void plan_tiles(struct plan *plan, const struct tandem_gemm *gemm,
                       uint64_t key, const struct product *params, bool marks)
{
    bool some = params->whole > 0;
    bool parts = (params->flags & (PARTS | SAVES)) != 0;
    bool again = (params->flags & ONLY_NONFINITE_TILES) != 0;
    struct tandem_buffer *none = gemm->c.buffer;
    key |= some ? product_activation(gemm) : 0;
    struct step *step = plan_step(plan, key, sizeof(struct product));
    *(struct product *)step->params = *params;
    step_buffer(step, gemm->c.buffer, some);
    step_buffer(step, parts ? NULL : none, parts);
    step_buffer(step, gemm->a.buffer, false);
    step_buffer(step, gemm->b.buffer, false);
    step_buffer(step, product_bias(gemm), false);
    step_buffer(step, marks ? NULL : none, marks && !again);
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
static void plan_promote(struct plan *plan, struct product *params,
                         enum tile_id tile)
{
    uint32_t most = params->whole > 0 ? params->k : params->chunk;
    uint32_t steps = steps_promoted(params->k);
    uint32_t times = (most + steps - 1) / steps;
    uint32_t slices = (most + tiles[tile].slice - 1) / tiles[tile].slice;
    if (tiles[tile].tensor != TENSOR_HALF || tiles[tile].patched)
        return;
    params->promote = (slices + times - 1) / times;
    if (times == 1)
        return;
    params->flags |= SAVES;
    plan->temp_bytes = (plan->temp_bytes + 15) / 16 * 16;
    params->saved_offset = plan->temp_bytes / sizeof(float);
    plan->temp_bytes += groups_of(params) * params->tile_m * params->tile_n *
                        sizeof(float);
}

/* Makes room for the totals of cl/gemm/gemm_simt.cl's larger tiles in the
 * temporary, unless they can be kept in c: if it is f32 and not read (beta is
 * 0). */
static void plan_totals(struct plan *plan, const struct tandem_gemm *gemm,
                        struct product *params, enum tile_id plain)
{
    bool in_c = gemm_c_dtype(gemm) == TANDEM_F32 && params->beta == 0;
    if (plain == TILE_SMALL || in_c || params->whole == 0 ||
        params->k <= PARTIAL_TERMS)
        return;
    params->flags |= SAVES;
    plan->temp_bytes = (plan->temp_bytes + 15) / 16 * 16;
    params->saved_offset = plan->temp_bytes / sizeof(float);
    plan->temp_bytes += params->plane * sizeof(float);
}

/* Where tensor maps are written, if the kernel has any. */
static bool plan_maps(struct plan *plan, uint64_t key, struct product *params)
{
    uint64_t bytes = tensor_map_bytes(key, groups_of(params));
    if (bytes == 0)
        return false;
    plan->temp_bytes = (plan->temp_bytes + TENSOR_MAP_ALIGN - 1) /
                       TENSOR_MAP_ALIGN * TENSOR_MAP_ALIGN;
    params->maps_offset = plan->temp_bytes / sizeof(uint32_t);
    plan->temp_bytes += bytes;
    return true;
}

/* All after what the temporary holds already.  from: gemm with operands as the
 * tile reads them. */
static void plan_kernels(struct plan *plan, const struct tandem_gemm *gemm,
                         const struct tandem_gemm *from, enum tile_id tile,
                         struct division division, uint32_t group_log2)
{
    bool tensor = tiles[tile].tensor != TENSOR_NONE;
    bool marks = tiles[tile].strict || tiles[tile].tensor == MMA_FP16X3;
    struct product params;
    product_fill(&params, from, tiles[tile].slice, division.splits);
    params.tile_m = tiles[tile].m;
    params.tile_n = tiles[tile].n;
    product_divide(&params, (uint32_t)tiles_of(gemm->m, tiles[tile].m),
                   (uint32_t)tiles_of(gemm->n, tiles[tile].n),
                   division.parted);
    /* What strict stores may be computed again, and so must not be added. */
    if (tiles[tile].strict && gemm->beta != 0) {
        params.chunk = params.splits > 1 ? params.chunk : params.k;
        params.parted += params.whole;
        params.whole = 0;
    }
    uint64_t key = tensor ? tensor_key(gemm, tile) : key_of(from, tile, true);
    bool maps = plan_maps(plan, key, &params);
    params.partial_offset = plan->temp_bytes / sizeof(float);
    if (params.parted > 0) {
        params.flags |= PARTS;
        plan->temp_bytes += partial_bytes(&params);
    }
    plan_promote(plan, &params, tile);
    if (!tensor && !tiles[tile].strict)
        plan_totals(plan, gemm, &params, tile);
    params.marks_offset = plan->temp_bytes / sizeof(uint32_t);
    plan_tiles(plan, from, key, &params, marks || maps);
    if (marks) {
        /* Of pairs, what is not finite is not packed. */
        const struct tandem_gemm *plain = tensor ? gemm : from;
        plan->temp_bytes += groups_of(&params) * sizeof(uint32_t);
        params.flags |= ONLY_NONFINITE_TILES;
        plan_totals(plan, gemm, &params, tiles[tile].plain);
        operands_fill(&params, plain);
        plan_tiles(plan, plain, key_of(plain, tiles[tile].plain, !tensor),
                   &params, true);
        params.flags &= ~(ONLY_NONFINITE_TILES | SAVES);
    }
    if ((params.flags & PARTS) != 0)
        plan_split_k_fixup(plan, gemm, &params, group_log2);
}

void plan_product(struct plan *plan, const struct tandem_gemm *gemm,
                  enum tile_id tile, struct division division,
                  const struct tandem_matrix *const *kept,
                  uint32_t group_log2)
{
    struct tandem_gemm whole; /* gemm may be shorter */
    gemm_args_normalize(&whole, gemm);
    struct tandem_gemm packed = whole;
    struct tandem_matrix *matrices[OPERANDS] = {&packed.a, &packed.b};
    uint32_t needs = packing_needs(&whole, tile);
    for (uint32_t i = 0; i < OPERANDS && kept != NULL; i++)
        if (kept[i] != NULL) {
            *matrices[i] = *kept[i];
            needs &= ~(1u << i);
        }
    plan->steps = 0;
    plan->temp_bytes = 0;
    packing_plan(plan, &whole, tile, needs, group_log2, &packed);
    if (tiles[tile].narrow != 0)
        plan_skinny(plan, &packed, tile, division.splits, group_log2);
    else
        plan_kernels(plan, &whole, &packed, tile, division, group_log2);
}
