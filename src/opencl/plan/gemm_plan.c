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

const struct tile tiles[TILES] = {
    [GEMM_SIMT_128X128] = {"large", 128, 128, 16, 7, 2, false,
                           GEMM_SIMT_128X128, 0, TENSOR_NONE, false},
    [TILE_MEDIUM] = {"medium", 64, 64, 16, 7, 4, false, TILE_MEDIUM, 0,
                     TENSOR_NONE, false},
    [TILE_SMALL] = {"small", 32, 64, 32, 7, 5, false, TILE_SMALL, 0,
                    TENSOR_NONE, false},
    [GEMM_MMA_3XTF32_128X128] = {"strict-large", 128, 128, 16, 7, 2, true,
                                 GEMM_SIMT_128X128, 0, TENSOR_NONE, false},
    [TILE_STRICT_MEDIUM] = {"strict-medium", 64, 64, 16, 6, 4, true,
                            TILE_MEDIUM, 0, TENSOR_NONE, false},
    [TILE_SKINNY_1] = {"skinny-1", 0, 0, 0, 0, 1, false, TILE_SKINNY_1, 1,
                       TENSOR_NONE, false},
    [TILE_SKINNY_4] = {"skinny-4", 0, 0, 0, 0, 1, false, TILE_SKINNY_4, 4,
                       TENSOR_NONE, false},
    [TILE_SKINNY_8] = {"skinny-8", 0, 0, 0, 0, 1, false, TILE_SKINNY_8, 8,
                       TENSOR_NONE, false},
    [TILE_SKINNY_16] = {"skinny-16", 0, 0, 0, 0, 1, false, TILE_SKINNY_16, 16,
                        TENSOR_NONE, false},
    [TILE_TF32_LARGE] = {"tf32-large", 128, 256, 32, 8, 1, false, TILE_MEDIUM,
                         0, TENSOR_TF32, false},
    [TILE_TF32_MEDIUM] = {"tf32-medium", 128, 64, 32, 7, 2, false, TILE_MEDIUM,
                          0, TENSOR_TF32, false},
    [TILE_PAIR_LARGE] = {"pair-large", 128, 128, 32, 8, 1, false,
                         GEMM_SIMT_128X128, 0, MMA_FP16X3, false},
    [TILE_PAIR_MEDIUM] = {"pair-medium", 64, 64, 32, 7, 3, false, TILE_MEDIUM,
                          0, MMA_FP16X3, false},
    [GEMM_MMA_16BIT_128X256] = {"half-large", 128, 256, 64, 8, 1, false,
                                TILE_MEDIUM, 0, TENSOR_HALF, false},
    [TILE_HALF_MEDIUM] = {"half-medium", 128, 64, 64, 7, 2, false, TILE_MEDIUM,
                          0, TENSOR_HALF, false},
    [TILE_TALL] = {"tall", 128, 64, 16, 7, 3, false, TILE_TALL, 0, TENSOR_NONE,
                   false},
    [TILE_WGMMA_PAIR_LARGE] = {"wgmma-pair-large", 128, 128, 32, 9, 1, false,
                               GEMM_SIMT_128X128, 0, MMA_FP16X3, true},
    [TILE_WGMMA_PAIR_MEDIUM] = {"wgmma-pair-medium", 128, 64, 32, 9, 1, false,
                                TILE_TALL, 0, MMA_FP16X3, true},
    [TILE_WGMMA_SPLIT_LARGE] = {"wgmma-split-large", 128, 128, 16, 9, 1, true,
                                GEMM_SIMT_128X128, 0, TENSOR_SPLIT, true},
    [TILE_WGMMA_SPLIT_MEDIUM] = {"wgmma-split-medium", 128, 64, 16, 9, 1, true,
                                 TILE_TALL, 0, TENSOR_SPLIT, true},
    [TILE_WGMMA_TF32_LARGE] = {"wgmma-tf32-large", 256, 128, 32, 9, 1, false,
                               TILE_MEDIUM, 0, TENSOR_TF32, true},
    [TILE_WGMMA_TF32_MEDIUM] = {"wgmma-tf32-medium", 128, 128, 32, 9, 1, false,
                                TILE_MEDIUM, 0, TENSOR_TF32, true},
    [TILE_WGMMA_HALF_LARGE] = {"wgmma-half-large", 128, 128, 64, 9, 1, false,
                               TILE_MEDIUM, 0, TENSOR_HALF, true},
    [TILE_WGMMA_HALF_MEDIUM] = {"wgmma-half-medium", 128, 64, 64, 9, 1, false,
                                TILE_MEDIUM, 0, TENSOR_HALF, true},
    [TILE_SKINNY_BROAD] = {"skinny-broad", 0, 0, 0, 0, 1, false,
                           TILE_SKINNY_BROAD, 1, TENSOR_NONE, false},
};

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

/* 128 lines are counted in 32 bits. */
#define MOST_LINE (INT32_MAX / 128)

bool product_counts(const struct tandem_gemm *gemm)
{
    /* A chunk past the last must not wrap either, nor a tile of rows. */
    return gemm->m < INT32_MAX && gemm->n < INT32_MAX &&
           gemm->k < INT32_MAX && gemm->batch < INT32_MAX &&
           gemm->a.ld < MOST_LINE && gemm->b.ld < MOST_LINE;
}

bool product_wide(const struct tandem_gemm *gemm)
{
    return gemm->dtype == TANDEM_F32 && gemm_c_dtype(gemm) == TANDEM_F32;
}

/* Padding included: a tile of 256 rows is more than any of CLBlast's
 * parameters pads to. */
static bool counted_in_int(const struct tandem_matrix *matrix, int64_t rows,
                           int64_t batch)
{
    double end = (double)(matrix->byte_offset / sizeof(float)) +
                 (double)matrix->batch_stride * (double)(batch - 1) +
                 ((double)rows + 256.0) * ((double)matrix->ld + 256.0);
    return end < (double)INT32_MAX;
}

bool product_by_clblast(const struct tandem_gemm *gemm)
{
    bool turned_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool turned_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    return product_wide(gemm) &&
           counted_in_int(&gemm->a, turned_a ? gemm->k : gemm->m,
                          gemm->batch) &&
           counted_in_int(&gemm->b, turned_b ? gemm->n : gemm->k,
                          gemm->batch) &&
           counted_in_int(&gemm->c, gemm->m, gemm->batch);
}

/* ---- operands ---- */

struct operand operand_of(const struct tandem_gemm *gemm, enum operand_id id)
{
    if (id == OPERAND_B)
        return (struct operand){
            &gemm->b, gemm->n, gemm->k,
            (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) == 0};
    return (struct operand){&gemm->a, gemm->m, gemm->k,
                            (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0};
}

/* Whether all lines of a matrix start at aligned fours. */
static bool matrix_aligned(const struct tandem_matrix *matrix, uint32_t dtype,
                           int64_t batch)
{
    uint64_t skew = buffer_misalignment(matrix->buffer);
    return (matrix->byte_offset + skew) % (4 * TANDEM_DTYPE_BYTES(dtype)) ==
               0 &&
           matrix->ld % 4 == 0 && (batch == 1 || matrix->batch_stride % 4 == 0);
}

bool operand_is_vec4(const struct tandem_gemm *gemm,
                   const struct operand *operand)
{
    return matrix_aligned(operand->matrix, gemm->dtype, gemm->batch) &&
           (operand->outer ? operand->rows : operand->depth) % 4 == 0;
}

static bool fours_of(const struct tandem_gemm *gemm, enum operand_id id)
{
    struct operand operand = operand_of(gemm, id);
    return operand_is_vec4(gemm, &operand);
}

bool operand_is_mn_major(const struct tandem_gemm *gemm, enum operand_id id)
{
    return operand_of(gemm, id).outer;
}

bool operand_aligned(const struct tandem_gemm *gemm, enum operand_id id)
{
    struct operand operand = operand_of(gemm, id);
    return matrix_aligned(operand.matrix, gemm->dtype, gemm->batch) &&
           (!operand.outer || operand.rows % 4 == 0);
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

uint64_t product_types(const struct tandem_gemm *gemm)
{
    return key_type(0, type_of(gemm_c_dtype(gemm))) |
           key_type(1, type_of(gemm->dtype));
}

uint64_t product_activation(const struct tandem_gemm *gemm)
{
    bool tanh_form =
        gemm->activation == TANDEM_OP_GELU && gemm->activation_parameter != 0;
    return (uint64_t)gemm->activation << 8 | key_tanh(tanh_form);
}

static void operands_fill(struct product *out, const struct tandem_gemm *gemm)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    out->a_offset = gemm->a.byte_offset / bytes;
    out->b_offset = gemm->b.byte_offset / bytes;
    out->a_ld = gemm->a.ld;
    out->b_ld = gemm->b.ld;
    out->a_batch = gemm->a.batch_stride;
    out->b_batch = gemm->b.batch_stride;
}

void product_fill(struct product *out, const struct tandem_gemm *gemm,
                  uint32_t slice, uint32_t splits)
{
    memset(out, 0, sizeof(*out));
    uint32_t slices = ((uint32_t)gemm->k + slice - 1) / slice;
    uint32_t each = (slices + splits - 1) / splits;
    uint32_t c_bytes = TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    operands_fill(out, gemm);
    out->c_offset = gemm->c.byte_offset / c_bytes;
    out->bias_offset = gemm->bias_byte_offset / c_bytes;
    out->plane = (uint64_t)gemm->m * (uint64_t)gemm->n * (uint64_t)gemm->batch;
    out->c_ld = gemm->c.ld;
    out->c_batch = gemm->c.batch_stride;
    out->bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    out->bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN;
    out->m = (uint32_t)gemm->m;
    out->n = (uint32_t)gemm->n;
    out->k = (uint32_t)gemm->k;
    out->chunk = each * slice;
    out->splits = (slices + each - 1) / each;
    out->batch = (uint32_t)gemm->batch;
    out->alpha = (float)gemm->alpha;
    out->beta = (float)gemm->beta;
    out->slope = attribute_f32(gemm->activation_parameter);
    out->flags = gemm->bias_kind != TANDEM_BIAS_NONE ? HAS_BIAS : 0;
    if (matrix_aligned(&gemm->c, gemm_c_dtype(gemm), gemm->batch) &&
        gemm->n % 4 == 0)
        out->flags |= C_VECTOR;
}

void product_divide(struct product *out, uint32_t tiles_m, uint32_t tiles_n,
                    uint32_t parted)
{
    uint32_t all = tiles_m * tiles_n * out->batch;
    out->tiles_m = tiles_m;
    out->tiles_n = tiles_n;
    out->tiles = tiles_m * tiles_n;
    out->parted = parted < all ? parted : all;
    if (out->splits == 1)
        out->parted = 0;
    out->whole = all - out->parted;
    if (out->parted == 0)
        out->splits = 1;
}

struct tandem_buffer *product_bias(const struct tandem_gemm *gemm)
{
    return gemm->bias != NULL ? gemm->bias : gemm->c.buffer;
}

/* Work-items that share a sum, where there are few: as many as parts, but no
 * more than keep neighbours of 8, and than are of use. */
#define FEW_SUMS 65536
#define MOST_LANES_LOG2 5

static uint32_t join_lanes_log2(const struct product *product,
                                uint32_t group_log2)
{
    uint32_t log2 = log2_ceil(product->splits);
    if (product->plane >= FEW_SUMS || product->splits < 4 || group_log2 < 3)
        return 0;
    log2 = log2 < MOST_LANES_LOG2 ? log2 : MOST_LANES_LOG2;
    return log2 < group_log2 - 3 ? log2 : group_log2 - 3;
}

void plan_split_k_fixup(struct plan *plan, const struct tandem_gemm *gemm,
                  const struct product *from, uint32_t group_log2)
{
    bool tiled = from->whole > 0; /* what is parted */
    uint32_t lanes_log2 = tiled ? 0 : join_lanes_log2(from, group_log2);
    uint32_t kernel = tiled            ? KERNEL_JOIN_TILES
                      : lanes_log2 > 0 ? KERNEL_JOIN_LANES
                                       : KERNEL_JOIN_PARTS;
    uint64_t key = kernel_key(kernel, 0, from->plane > INT32_MAX, group_log2) |
                   product_types(gemm);
    struct step *step =
        plan_step(plan, key | product_activation(gemm), sizeof(struct product));
    struct product *out = (struct product *)step->params;
    *out = *from;
    out->lanes_log2 = lanes_log2;
    step_buffer(step, gemm->c.buffer, true);
    step_buffer(step, NULL, false);
    step_buffer(step, product_bias(gemm), false);
    if (tiled)
        step_items(step, (uint64_t)from->parted * from->tile_m *
                             from->tile_n / 4);
    else
        step_items(step, lanes_log2 == 0 && (from->flags & C_VECTOR) != 0
                             ? from->plane / 4
                             : from->plane << lanes_log2);
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
