/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm/gemv.cl. */
#include "opencl/plan/gemv_plan.h"

#include "opencl/plan/gemm_params.h"

/* By narrow_log2; measured on an H200, docs/gpu-kernels.md. */
static const struct skinny_shape along[5] = {
    [0] = {2, 32, 4, 7}, [2] = {2, 32, 4, 7},
    [3] = {4, 32, 2, 7}, [4] = {4, 32, 2, 7}};
static const struct skinny_shape across[5] = {
    [0] = {4, 64, 8, 8}, [2] = {4, 32, 8, 8},
    [3] = {4, 32, 8, 8}, [4] = {4, 16, 4, 8}};
static const struct skinny_shape broad = {4, 64, 8, BROAD_GROUP_LOG2};

/* A slice of 512 lines is counted in 32 bits. */
#define MOST_LINE (INT32_MAX / 256)

/* The wide operand and the narrow one. */
struct sides {
    struct operand wide, narrow;
    bool swapped; /* wide is b */
};

/* The longer one is wide; of two of a length, one that lies along k. */
static struct sides sides_of(const struct tandem_gemm *gemm)
{
    struct operand a = operand_of(gemm, OPERAND_A);
    struct operand b = operand_of(gemm, OPERAND_B);
    struct sides sides;
    sides.swapped = a.rows < b.rows || (a.rows == b.rows && a.outer);
    sides.wide = sides.swapped ? b : a;
    sides.narrow = sides.swapped ? a : b;
    /* A column without gaps lies along k as well. */
    if (sides.narrow.rows == 1 && sides.narrow.matrix->ld == 1)
        sides.narrow.outer = false;
    return sides;
}

const struct skinny_shape *skinny_shape(enum tile_id tile, bool outer)
{
    uint32_t narrow_log2 = log2_ceil(tiles[tile].narrow);
    if (tile == TILE_SKINNY_BROAD)
        return &broad;
    return outer ? &across[narrow_log2] : &along[narrow_log2];
}

static const struct skinny_shape *shape_of(const struct sides *sides,
                                           enum tile_id tile)
{
    return skinny_shape(tile, sides->wide.outer);
}

bool skinny_outer(const struct tandem_gemm *gemm)
{
    return sides_of(gemm).wide.outer;
}

static uint32_t shape_rows(const struct skinny_shape *shape)
{
    return (1u << shape->group_log2) / shape->lanes * shape->item;
}

uint32_t skinny_rows(const struct tandem_gemm *gemm, enum tile_id tile)
{
    struct sides sides = sides_of(gemm);
    return shape_rows(shape_of(&sides, tile));
}

uint32_t skinny_depth(const struct tandem_gemm *gemm, enum tile_id tile)
{
    struct sides sides = sides_of(gemm);
    const struct skinny_shape *shape = shape_of(&sides, tile);
    return shape->lanes * shape->turns * (sides.wide.outer ? 1 : 4);
}

static uint64_t blocks_of(int64_t extent, uint32_t size)
{
    return ((uint64_t)extent + size - 1) / size;
}

uint64_t skinny_groups(const struct tandem_gemm *gemm, enum tile_id tile)
{
    struct sides sides = sides_of(gemm);
    return blocks_of(sides.wide.rows, shape_rows(shape_of(&sides, tile))) *
           blocks_of(sides.narrow.rows, tiles[tile].narrow) *
           (uint64_t)gemm->batch;
}

bool gemv_supports(const struct tandem_gemm *gemm, enum tile_id tile)
{
    int64_t least = gemm->m < gemm->n ? gemm->m : gemm->n;
    return least <= 2 * (int64_t)tiles[tile].narrow &&
           gemm->a.ld < MOST_LINE && gemm->b.ld < MOST_LINE &&
           (tile != TILE_SKINNY_BROAD || skinny_outer(gemm));
}

static uint64_t key_of(const struct tandem_gemm *gemm,
                       const struct sides *sides, enum tile_id tile)
{
    uint64_t key = kernel_key(KERNEL_SKINNY, 0, false,
                              shape_of(sides, tile)->group_log2);
    /* Fours of a single row lie along k, whatever its leading dimension. */
    struct operand narrow = sides->narrow;
    struct tandem_matrix single = *narrow.matrix;
    single.ld = 0;
    if (narrow.rows == 1 && !narrow.outer)
        narrow.matrix = &single;
    bool fours = operand_is_vec4(gemm, &narrow) &&
                 (tiles[tile].narrow > 1 || !narrow.outer);
    return key | key_held(log2_ceil(tiles[tile].narrow)) |
           key_second_vector(fours) |
           key_product(tile, sides->wide.outer, sides->narrow.outer,
                       operand_is_vec4(gemm, &sides->wide));
}

/* In the struct the wide operand is a. */
static void sides_fill(struct product *out, const struct sides *sides,
                       uint32_t bytes, enum tile_id tile)
{
    const struct tandem_matrix *wide = sides->wide.matrix;
    const struct tandem_matrix *narrow = sides->narrow.matrix;
    out->a_offset = wide->byte_offset / bytes;
    out->b_offset = narrow->byte_offset / bytes;
    out->a_ld = wide->ld;
    out->b_ld = narrow->ld;
    out->a_batch = wide->batch_stride;
    out->b_batch = narrow->batch_stride;
    product_divide(out,
                   (uint32_t)blocks_of(sides->wide.rows,
                                       shape_rows(shape_of(sides, tile))),
                   (uint32_t)blocks_of(sides->narrow.rows, tiles[tile].narrow),
                   ALL_TILES);
    out->flags |= sides->swapped ? SWAPPED : 0;
}

/* Returns true if the kernel adds up its partial sums itself (TOTALS in
 * cl/gemm/gemv.cl). */
static bool has_totals(const struct tandem_gemm *gemm,
                       const struct sides *sides, enum tile_id tile)
{
    if (tiles[tile].narrow == 1)
        return true;
    return !sides->wide.outer &&
           (tiles[tile].narrow < 16 || operand_is_vec4(gemm, &sides->wide));
}

/* Returns the least number of splits with which no sum of a kernel without
 * totals has more than PARTIAL_TERMS terms, at most MOST_SPLITS. */
static uint32_t splits_least(const struct tandem_gemm *gemm,
                             const struct sides *sides, enum tile_id tile)
{
    uint64_t depth = PARTIAL_TERMS * shape_of(sides, tile)->lanes;
    uint64_t splits = ((uint64_t)sides->wide.depth + depth - 1) / depth;
    if (has_totals(gemm, sides, tile))
        return 1;
    return splits < MOST_SPLITS ? (uint32_t)splits : MOST_SPLITS;
}

void plan_skinny(struct plan *plan, const struct tandem_gemm *gemm,
                 enum tile_id tile, uint32_t splits, uint32_t group_log2)
{
    struct sides sides = sides_of(gemm);
    uint32_t least = splits_least(gemm, &sides, tile);
    splits = splits > least ? splits : least;
    struct product params;
    product_fill(&params, gemm, skinny_depth(gemm, tile), splits);
    sides_fill(&params, &sides, TANDEM_DTYPE_BYTES(gemm->dtype), tile);
    params.partial_offset = plan->temp_bytes / sizeof(float);
    bool parts = params.splits > 1;
    if (parts) {
        params.flags |= PARTS;
        plan->temp_bytes += params.splits * params.plane * sizeof(float);
    }
    uint64_t key = key_of(gemm, &sides, tile) |
                   product_types(gemm) |
                   (parts ? 0 : product_activation(gemm));
    struct step *step = plan_step(plan, key, sizeof(params));
    *(struct product *)step->params = params;
    step_buffer(step, gemm->c.buffer, !parts);
    step_buffer(step, parts ? NULL : gemm->c.buffer, parts);
    step_buffer(step, sides.wide.matrix->buffer, false);
    step_buffer(step, sides.narrow.matrix->buffer, false);
    step_buffer(step, product_bias(gemm), false);
    step->groups = skinny_groups(gemm, tile) * params.splits;
    if (parts)
        plan_split_k_fixup(plan, gemm, &params, group_log2);
}
