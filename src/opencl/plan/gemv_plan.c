/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm/gemv.cl. */
#include "opencl/plan/gemv_plan.h"

#include "opencl/plan/gemm_params.h"

/* By narrow_log2; measured on an H200, docs/gpu-kernels.md. */
static const struct gemv_shape along[5] = {[0] = {2, 32, 4, 7},
                                           [2] = {2, 32, 4, 7},
                                           [3] = {4, 32, 2, 7},
                                           [4] = {4, 32, 2, 7}};
static const struct gemv_shape across[5] = {[0] = {4, 64, 8, 8},
                                            [2] = {4, 32, 8, 8},
                                            [3] = {4, 32, 8, 8},
                                            [4] = {4, 16, 4, 8}};
static const struct gemv_shape broad = {4, 64, 8, GEMV_MN_MAJOR_GROUP_LOG2};

/* A slice of 512 lines is counted in 32 bits. */
#define MOST_LINE (INT32_MAX / 256)

/* The wide operand and the narrow one. */
struct sides {
    struct gemm_operand wide, narrow;
    bool swapped; /* wide is b */
};

/* The longer one is wide; of two of a length, one that lies along k. */
static struct sides sides_of(const struct tandem_gemm *gemm)
{
    struct gemm_operand a = operand_of(gemm, OPERAND_A);
    struct gemm_operand b = operand_of(gemm, OPERAND_B);
    struct sides sides;
    sides.swapped = a.rows < b.rows || (a.rows == b.rows && a.is_mn_major);
    sides.wide = sides.swapped ? b : a;
    sides.narrow = sides.swapped ? a : b;
    /* A column without gaps lies along k as well. */
    if (sides.narrow.rows == 1 && sides.narrow.matrix->ld == 1)
        sides.narrow.is_mn_major = false;
    return sides;
}

const struct gemv_shape *gemv_shape(enum gemm_kernel_id tile, bool outer)
{
    uint32_t narrow_log2 = log2_ceil(gemm_configs[tile].gemv_vectors);
    if (tile == GEMV_1_MN_MAJOR)
        return &broad;
    return outer ? &across[narrow_log2] : &along[narrow_log2];
}

static const struct gemv_shape *shape_of(const struct sides *sides,
                                         enum gemm_kernel_id tile)
{
    return gemv_shape(tile, sides->wide.is_mn_major);
}

bool gemv_matrix_is_mn_major(const struct tandem_gemm *gemm)
{
    return sides_of(gemm).wide.is_mn_major;
}

static uint32_t shape_rows(const struct gemv_shape *shape)
{
    return (1u << shape->group_log2) / shape->lanes * shape->rows_per_item;
}

uint32_t gemv_rows_per_group(const struct tandem_gemm *gemm,
                             enum gemm_kernel_id tile)
{
    struct sides sides = sides_of(gemm);
    return shape_rows(shape_of(&sides, tile));
}

uint32_t gemv_k_tile(const struct tandem_gemm *gemm, enum gemm_kernel_id tile)
{
    struct sides sides = sides_of(gemm);
    const struct gemv_shape *shape = shape_of(&sides, tile);
    return shape->lanes * shape->k_unroll * (sides.wide.is_mn_major ? 1 : 4);
}

static uint64_t blocks_of(int64_t extent, uint32_t size)
{
    return ((uint64_t)extent + size - 1) / size;
}

uint64_t gemv_groups(const struct tandem_gemm *gemm, enum gemm_kernel_id tile)
{
    struct sides sides = sides_of(gemm);
    return blocks_of(sides.wide.rows, shape_rows(shape_of(&sides, tile))) *
           blocks_of(sides.narrow.rows, gemm_configs[tile].gemv_vectors) *
           (uint64_t)gemm->batch;
}

bool gemv_supports(const struct tandem_gemm *gemm, enum gemm_kernel_id tile)
{
    int64_t least = gemm->m < gemm->n ? gemm->m : gemm->n;
    return least <= 2 * (int64_t)gemm_configs[tile].gemv_vectors &&
           gemm->a.ld < MOST_LINE && gemm->b.ld < MOST_LINE &&
           (tile != GEMV_1_MN_MAJOR || gemv_matrix_is_mn_major(gemm));
}

static uint64_t key_of(const struct tandem_gemm *gemm,
                       const struct sides *sides, enum gemm_kernel_id tile)
{
    uint64_t key = variant_key_kernel(KERNEL_GEMV, 0, false,
                                      shape_of(sides, tile)->group_log2);
    /* Fours of a single row lie along k, whatever its leading dimension. */
    struct gemm_operand narrow = sides->narrow;
    struct tandem_matrix single = *narrow.matrix;
    single.ld = 0;
    if (narrow.rows == 1 && !narrow.is_mn_major)
        narrow.matrix = &single;
    bool fours = operand_is_vec4(gemm, &narrow) &&
                 (gemm_configs[tile].gemv_vectors > 1 || !narrow.is_mn_major);
    return key |
           variant_key_register_vec4(
               log2_ceil(gemm_configs[tile].gemv_vectors)) |
           variant_key_second_vec4(fours) |
           variant_key_gemm(tile, sides->wide.is_mn_major,
                            sides->narrow.is_mn_major,
                            operand_is_vec4(gemm, &sides->wide));
}

/* In the struct the wide operand is a. */
static void sides_fill(struct gemm_params *out, const struct sides *sides,
                       uint32_t bytes, enum gemm_kernel_id tile)
{
    const struct tandem_matrix *wide = sides->wide.matrix;
    const struct tandem_matrix *narrow = sides->narrow.matrix;
    out->a_offset = wide->byte_offset / bytes;
    out->b_offset = narrow->byte_offset / bytes;
    out->a_ld = wide->ld;
    out->b_ld = narrow->ld;
    out->a_batch = wide->batch_stride;
    out->b_batch = narrow->batch_stride;
    gemm_params_set_tiles(
        out,
        (uint32_t)blocks_of(sides->wide.rows,
                            shape_rows(shape_of(sides, tile))),
        (uint32_t)blocks_of(sides->narrow.rows,
                            gemm_configs[tile].gemv_vectors),
        ALL_GEMM_TILES);
    out->flags |= sides->swapped ? OPERANDS_SWAPPED : 0;
}

/* Returns true if the kernel adds up its partial sums itself (TOTALS in
 * cl/gemm/gemv.cl). */
static bool has_totals(const struct tandem_gemm *gemm,
                       const struct sides *sides, enum gemm_kernel_id tile)
{
    if (gemm_configs[tile].gemv_vectors == 1)
        return true;
    return !sides->wide.is_mn_major && (gemm_configs[tile].gemv_vectors < 16 ||
                                        operand_is_vec4(gemm, &sides->wide));
}

/* Returns the least number of splits with which no sum of a kernel without
 * totals has more than PARTIAL_TERMS terms, at most MAX_SPLIT_K. */
static uint32_t splits_least(const struct tandem_gemm *gemm,
                             const struct sides *sides,
                             enum gemm_kernel_id tile)
{
    uint64_t depth = PARTIAL_TERMS * shape_of(sides, tile)->lanes;
    uint64_t splits = ((uint64_t)sides->wide.k + depth - 1) / depth;
    if (has_totals(gemm, sides, tile))
        return 1;
    return splits < MAX_SPLIT_K ? (uint32_t)splits : MAX_SPLIT_K;
}

void plan_gemv(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id tile, uint32_t splits, uint32_t group_log2)
{
    struct sides sides = sides_of(gemm);
    uint32_t least = splits_least(gemm, &sides, tile);
    splits = splits > least ? splits : least;
    struct gemm_params params;
    product_fill(&params, gemm, gemv_k_tile(gemm, tile), splits);
    sides_fill(&params, &sides, TANDEM_DTYPE_BYTES(gemm->dtype), tile);
    params.partial_offset = plan->temp_bytes / sizeof(float);
    bool parts = params.splits > 1;
    if (parts) {
        params.flags |= STORES_PARTIALS;
        plan->temp_bytes += params.splits * params.plane * sizeof(float);
    }
    uint64_t key = key_of(gemm, &sides, tile) | variant_key_gemm_types(gemm) |
                   (parts ? 0 : variant_key_activation(gemm));
    struct kernel_step *step = plan_add_step(plan, key, sizeof(params));
    *(struct gemm_params *)step->params = params;
    step_add_buffer(step, gemm->c.buffer, !parts);
    step_add_buffer(step, parts ? NULL : gemm->c.buffer, parts);
    step_add_buffer(step, sides.wide.matrix->buffer, false);
    step_add_buffer(step, sides.narrow.matrix->buffer, false);
    step_add_buffer(step, gemm_bias_buffer(gemm), false);
    step->groups = gemv_groups(gemm, tile) * params.splits;
    if (parts)
        plan_split_k_fixup(plan, gemm, &params, group_log2);
}
