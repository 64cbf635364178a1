/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whole GEMMs: operand packing, the GEMM kernel, the kernel that
 * recomputes tiles with infinities or NaN, and the addition of partial sums. */
#include "opencl/plan/gemm_plan.h"

#include <math.h>

#include "common/argument_check.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_params.h"
#include "opencl/plan/gemv_plan.h"
#include "opencl/plan/operand_packing.h"
#include "opencl/plan/tensor_core_packing.h"

struct gemm_tiling gemm_kernel_tiling(const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    if (config->gemv_vectors != 0)
        return gemv_tiling(gemm, kernel);
    return (struct gemm_tiling){
        .groups = div_ceil((uint64_t)gemm->m, config->tile_m) *
                  div_ceil((uint64_t)gemm->n, config->tile_n) *
                  (uint64_t)gemm->batch,
        .k_tile = config->k_tile,
        .cost_units = 1};
}

/* Returns true for sin, cos and tan, whose slow path for large arguments takes
 * many registers. */
static bool activation_is_long(uint32_t op)
{
    return op == TANDEM_OP_SIN || op == TANDEM_OP_COS || op == TANDEM_OP_TAN;
}

bool gemm_kernel_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    if ((config->mma_format != MMA_NONE || config->is_3xtf32) &&
        activation_is_long(gemm->activation))
        return false;
    if (config->mma_format != MMA_NONE)
        return tensor_core_supports(gemm, kernel);
    if (config->is_3xtf32 && gemm->dtype != TANDEM_F32)
        return false;
    return config->gemv_vectors == 0 ? packing_fits_32bit_index(gemm, kernel)
                                     : gemv_supports(gemm, kernel);
}

bool gemm_kernel_reads_scalars(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    return config->mma_format == MMA_NONE && !config->is_3xtf32 &&
           config->gemv_vectors == 0 &&
           gemm_packed_operands(gemm, kernel) == 0 &&
           !(operand_is_vec4(gemm, operand_of(gemm, OPERAND_A)) &&
             operand_is_vec4(gemm, operand_of(gemm, OPERAND_B)));
}

/* ---- SIMT and 3xTF32 kernels ---- */

/* Returns the number of rows of the tile per work-item of a SIMT kernel. */
static uint32_t item_m(const struct kernel_key *key)
{
    return gemm_configs[key->gemm_kernel].tile_m / 8;
}

static uint32_t item_n(const struct kernel_key *key)
{
    return gemm_configs[key->gemm_kernel].tile_n / 16;
}

static uint32_t define_item_m(const struct define_input *in)
{
    return item_m(in->key);
}

static uint32_t define_item_n(const struct define_input *in)
{
    return item_n(in->key);
}

/* The number of unrolled iterations along k_tile: four, or two for the largest
 * tiles, because LLVM 16 otherwise runs out of registers.  NVIDIA's compiler
 * fully unrolls the loop: with 4 to 16 iterations, smaller tiles take 1.03 to
 * 1.4 times as long on an H200. */
static uint32_t define_unroll(const struct define_input *in)
{
    if (in->hardware->nvidia)
        return gemm_configs[in->key->gemm_kernel].k_tile;
    return item_m(in->key) * item_n(in->key) >= 128 ? 2 : 4;
}

/* Four steps at once for the largest tiles, which have the most totals in
 * memory. With more than one, LLVM spills registers on AMD GPUs. */
static uint32_t define_steps_at_once(const struct define_input *in)
{
    bool large = item_m(in->key) * item_n(in->key) >= 128;
    return in->hardware->nvidia && large && !activation_is_long(in->key->op)
               ? 4
               : NOT_DEFINED;
}

#define SIMT_DEFINES                                                           \
    GEMM_DTYPE_DEFINES, DEFINE_NUMBER("ITEM_M", define_item_m, 0),             \
        DEFINE_NUMBER("ITEM_N", define_item_n, 0),                             \
        DEFINE_CONFIG("K_TILE", k_tile), DEFINE_FIELD("A_MN_MAJOR", a_layout), \
        DEFINE_FIELD("B_MN_MAJOR", b_layout), DEFINE_VECTOR("A_VECTOR", vec4), \
        DEFINE_VECTOR("B_VECTOR", b_vec4),                                     \
        DEFINE_NUMBER("UNROLL", define_unroll, 0), EPILOGUE_DEFINES,           \
        DEFINE_NUMBER("STEPS_AT_ONCE", define_steps_at_once, 0)
static const struct kernel_define simt_defines[] = {SIMT_DEFINES,
                                                    END_OF_DEFINES};
static const struct kernel_define simt_patches_defines[] = {
    SIMT_DEFINES, DEFINE_CONSTANT("PATCHES", 1), END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(gemm_simt);
static const struct kernel_info kernel_simt = {
    KERNEL_SOURCE(gemm_simt), .function = "gemm_simt", .defines = simt_defines,
    .param_bytes = sizeof(struct gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};
static const struct kernel_info kernel_simt_patches = {
    KERNEL_SOURCE(gemm_simt), .function = "gemm_simt",
    .defines = simt_patches_defines,
    .param_bytes = sizeof(struct patches_gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};

static const struct kernel_define recompute_defines[] = {
    GEMM_DTYPE_DEFINES, EPILOGUE_DEFINES, END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(gemm_recompute);
static const struct kernel_info kernel_recompute = {
    KERNEL_SOURCE(gemm_recompute), .function = "gemm_recompute",
    .defines = recompute_defines,
    .param_bytes = sizeof(struct patches_gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};

static struct kernel_key recompute_key(const struct tandem_gemm *gemm)
{
    struct kernel_key key = {.kernel = &kernel_recompute,
                             .group_log2 =
                                 gemm_configs[GEMM_RECOMPUTE].group_log2};
    kernel_key_set_types(&key, gemm);
    return key;
}

/* A work-group has two or four warps.  Each warp computes a block of 64 rows
 * and half of the tile's columns. */
static uint32_t define_warp_n(const struct define_input *in)
{
    return gemm_configs[in->key->gemm_kernel].tile_n / 2;
}

#define TF32X3_DEFINES                                                         \
    GEMM_DTYPE_DEFINES, DEFINE_CONFIG("TILE_M", tile_m),                       \
        DEFINE_CONFIG("TILE_N", tile_n), DEFINE_CONSTANT("WARP_M", 64),        \
        DEFINE_NUMBER("WARP_N", define_warp_n, 0),                             \
        DEFINE_FIELD("A_MN_MAJOR", a_layout),                                  \
        DEFINE_FIELD("B_MN_MAJOR", b_layout), EPILOGUE_DEFINES
static const struct kernel_define tf32x3_defines[] = {TF32X3_DEFINES,
                                                      END_OF_DEFINES};
static const struct kernel_define tf32x3_patches_defines[] = {
    TF32X3_DEFINES, DEFINE_CONSTANT("PATCHES", 1), END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(gemm_3xtf32);
static const struct kernel_info kernel_3xtf32 = {
    KERNEL_SOURCE(gemm_3xtf32), .function = "gemm_3xtf32",
    .defines = tf32x3_defines, .param_bytes = sizeof(struct gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE | KERNEL_SELF_TEST};
static const struct kernel_info kernel_3xtf32_patches = {
    KERNEL_SOURCE(gemm_3xtf32), .function = "gemm_3xtf32",
    .defines = tf32x3_patches_defines,
    .param_bytes = sizeof(struct patches_gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE | KERNEL_SELF_TEST};

/* Returns the key of a SIMT or 3xTF32 kernel, for a GEMM in which packed copies
 * replace operands that the kernel cannot read directly. */
static struct kernel_key simt_key(const struct tandem_gemm *gemm,
                                  enum gemm_kernel_id kernel)
{
    if (kernel == GEMM_RECOMPUTE)
        return recompute_key(gemm);
    bool is_3xtf32 = gemm_configs[kernel].is_3xtf32;
    bool vec4 = is_3xtf32 || kernel == GEMM_SIMT_128X128;
    struct gemm_operand a = operand_of(gemm, OPERAND_A);
    struct gemm_operand b = operand_of(gemm, OPERAND_B);
    struct kernel_key key = {.kernel =
                                 is_3xtf32 ? &kernel_3xtf32 : &kernel_simt,
                             .group_log2 = gemm_configs[kernel].group_log2,
                             .gemm_kernel = kernel,
                             .a_layout = a.is_mn_major,
                             .b_layout = b.is_mn_major,
                             .vec4 = vec4 || operand_is_vec4(gemm, a),
                             .b_vec4 = vec4 || operand_is_vec4(gemm, b)};
    kernel_key_set_types(&key, gemm);
    return key;
}

bool gemm_kernel_reads_patches(enum gemm_kernel_id kernel)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    return config->gemv_vectors == 0 && config->mma_format == MMA_NONE;
}

bool gemm_key_reads_patches(const struct kernel_key *key)
{
    return key->kernel == &kernel_simt_patches ||
           key->kernel == &kernel_3xtf32_patches;
}

/* ---- plans ---- */

static uint64_t total_groups(const struct gemm_params *params)
{
    return params->unsplit_tiles +
           (uint64_t)params->split_tiles * params->splits;
}

/* Adds the temporary buffer as an argument, or `c` as a placeholder. */
static void step_add_temp_or_c(struct kernel_step *step,
                               const struct tandem_gemm *gemm, bool is_temp,
                               bool written)
{
    if (is_temp)
        step_add_temp(step, written);
    else
        step_add_gemm_c(step, gemm, written, NO_OFFSET);
}

/* Adds a step.  With patches, changes its key to that of the kernel for
 * patches. */
static struct kernel_step *tiles_step_add(struct launch_plan *plan,
                                          const struct tandem_gemm *gemm,
                                          struct kernel_key *key,
                                          const struct gemm_params *params,
                                          const struct gemm_patches *patches)
{
    struct patches_gemm_params all = {.gemm = *params};
    if (patches != NULL)
        all.patches = patches->params;
    if (key->kernel == &kernel_recompute) {
        if (operand_of(gemm, OPERAND_A).is_mn_major)
            all.gemm.flags |= A_IS_MN_MAJOR;
        if (operand_of(gemm, OPERAND_B).is_mn_major)
            all.gemm.flags |= B_IS_MN_MAJOR;
        if (patches != NULL)
            all.gemm.flags |= B_HAS_PATCHES;
        return plan_add_step(plan, key, &all);
    }
    if (patches == NULL)
        return plan_add_step(plan, key, params);
    key->kernel = key->kernel == &kernel_simt ? &kernel_simt_patches
                                              : &kernel_3xtf32_patches;
    key->b_layout = 1;
    key->b_vec4 = 0;
    return plan_add_step(plan, key, &all);
}

/* Plans the launch of a GEMM kernel.  `has_flags` is true if the temporary
 * buffer holds tensor maps, or flags that mark tiles with infinities or NaN. */
static void plan_tiles(struct launch_plan *plan, const struct tandem_gemm *gemm,
                       const struct gemm_sources *sources,
                       struct kernel_key key, const struct gemm_params *params,
                       bool has_flags)
{
    const struct gemm_patches *patches = sources->patches;
    bool writes_c = params->unsplit_tiles > 0;
    bool uses_temp =
        (params->flags & (STORES_PARTIALS | PROMOTES_IN_MEMORY)) != 0;
    bool recomputes = (params->flags & ONLY_NONFINITE_TILES) != 0;
    if (writes_c)
        gemm_key_set_activation(&key, gemm);
    struct kernel_step *step =
        tiles_step_add(plan, gemm, &key, params, patches);
    step_add_gemm_c(step, gemm, writes_c, AT(gemm_params, c_offset));
    step_add_temp_or_c(step, gemm, uses_temp, uses_temp);
    step_add_gemm_operand(step, gemm, operand_of(gemm, OPERAND_A),
                          AT(gemm_params, a_offset));
    if (patches != NULL)
        step_add_tensor(step, patches->tensor, false,
                        AT(gemm_params, b_offset));
    else
        step_add_gemm_operand(step, gemm, operand_of(gemm, OPERAND_B),
                              AT(gemm_params, b_offset));
    step_add_gemm_bias(step, gemm, AT(gemm_params, bias_offset));
    step_add_temp_or_c(step, gemm, has_flags, has_flags && !recomputes);
    step_add_gemm_old(step, gemm, writes_c ? sources->old : NULL);
    step->groups = total_groups(params);
}

/* Number of products that tensor cores can always add up without promotion. */
#define MIN_PROMOTION_STEPS 1536u

/* Returns the number of products after which a sum is promoted, that is, added
 * to a separate total.  Tensor cores truncate each addition: with each product,
 * a sum of positive f16 products loses up to 6.5e-9 of its value.  The loss
 * must stay below 0.85 of the tolerance, which is (8 + 2 sqrt(k)) * 2^-23. */
static uint32_t steps_per_promotion(uint32_t k)
{
    double steps = 31 * (4 + sqrt(k));
    return steps > MIN_PROMOTION_STEPS ? (uint32_t)steps : MIN_PROMOTION_STEPS;
}

static void promoted_sums_reserve(struct launch_plan *plan,
                                  struct gemm_params *params, uint64_t sums)
{
    params->flags |= PROMOTES_IN_MEMORY;
    params->promoted_offset =
        plan_reserve_temp(plan, sums * sizeof(float), 16) / sizeof(float);
}

/* Sets the number of k tiles after which gemm_mma.cl adds its sums of 16-bit
 * products to f32 totals.  Reserves temporary memory for the totals. */
static void plan_mma_promotion(struct launch_plan *plan,
                               struct gemm_params *params,
                               const struct gemm_kernel_config *config)
{
    uint32_t group_k =
        params->unsplit_tiles > 0 ? params->k : params->k_per_split;
    uint64_t intervals = div_ceil(group_k, steps_per_promotion(params->k));
    if (config->mma_format != MMA_16BIT || config->uses_wgmma)
        return;
    params->promote_interval =
        (uint32_t)div_ceil(div_ceil(group_k, config->k_tile), intervals);
    if (intervals > 1)
        promoted_sums_reserve(plan, params,
                              total_groups(params) * params->tile_m *
                                  params->tile_n);
}

/* Reserves temporary memory for the f32 totals of SIMT kernels with large
 * tiles.  If `c` is f32 and beta does not multiply it, `c` holds the totals
 * instead. */
static void plan_simt_promotion(struct launch_plan *plan,
                                const struct tandem_gemm *gemm,
                                const struct gemm_sources *sources,
                                struct gemm_params *params,
                                enum gemm_kernel_id kernel)
{
    bool in_c = gemm_c_dtype(gemm) == TANDEM_F32 &&
                (params->beta == 0 || sources->old != NULL);
    if (kernel != GEMM_SIMT_32X64 && kernel != GEMM_RECOMPUTE && !in_c &&
        params->unsplit_tiles != 0 && params->k > PARTIAL_TERMS)
        promoted_sums_reserve(plan, params, params->c_elements);
}

static uint64_t partial_bytes(const struct gemm_params *params)
{
    uint64_t elements = params->c_elements;
    if (params->unsplit_tiles > 0)
        elements =
            (uint64_t)params->split_tiles * params->tile_m * params->tile_n;
    return params->splits * elements * sizeof(float);
}

/* Plans the kernel that recomputes tiles with infinities or NaN. */
static void plan_recompute(struct launch_plan *plan,
                           const struct tandem_gemm *gemm,
                           const struct gemm_sources *sources,
                           struct gemm_params *params)
{
    plan->temp_bytes += total_groups(params) * sizeof(uint32_t);
    params->flags |= ONLY_NONFINITE_TILES;
    gemm_params_set_operands(params, &gemm->a, &gemm->b, gemm->dtype);
    plan_tiles(plan, gemm, sources, recompute_key(gemm), params, true);
    params->flags &= ~ONLY_NONFINITE_TILES;
}

static void params_set_tiles(struct gemm_params *params,
                             const struct tandem_gemm *gemm,
                             const struct gemm_sources *sources,
                             const struct gemm_kernel_config *config,
                             uint32_t split_tiles)
{
    params->tile_m = config->tile_m;
    params->tile_n = config->tile_n;
    gemm_params_set_tiles(
        params, (uint32_t)div_ceil((uint64_t)gemm->m, config->tile_m),
        (uint32_t)div_ceil((uint64_t)gemm->n, config->tile_n), split_tiles);
    if (!config->is_3xtf32 || gemm->beta == 0 || sources->old != NULL)
        return;
    /* The tile can be recomputed, but beta * c must be added only
     * once.  Therefore the fixup kernel adds beta * c to all tiles. */
    if (params->splits == 1)
        params->k_per_split = params->k;
    params->split_tiles += params->unsplit_tiles;
    params->unsplit_tiles = 0;
}

/* Returns `split` with at least as many splits as keep rounding errors in
 * bounds.  Some kernels add the sums of 16 steps of k to one f32 sum.  If all
 * products are equal, each addition can round in the same direction, and from
 * about 150,000 steps on, the error is larger than backend.h allows. */
static struct split_k split_k_limited(struct split_k split, int64_t k)
{
    uint64_t needed = div_ceil((uint64_t)k, MAX_SPLIT_STEPS);
    if (needed <= 1)
        return split;
    needed = needed < MAX_SPLIT_K ? needed : MAX_SPLIT_K;
    return (struct split_k){.splits = max_u32(split.splits, (uint32_t)needed),
                            .split_tiles = ALL_GEMM_TILES};
}

/* Plans the GEMM kernel, recomputed tiles and the sum of split-K partial sums.
 * `packed` is a copy of `gemm`, in which packed copies replace the operands
 * that the kernel cannot read directly. */
static void plan_kernels(struct launch_plan *plan,
                         const struct tandem_gemm *gemm,
                         const struct tandem_gemm *packed,
                         const struct gemm_sources *sources,
                         enum gemm_kernel_id kernel, struct split_k split_k,
                         uint32_t group_log2)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    bool uses_mma = config->mma_format != MMA_NONE;
    bool recomputes = config->is_3xtf32 || config->mma_format == MMA_FP16X3;
    struct kernel_key key =
        uses_mma ? tensor_core_key(gemm, kernel) : simt_key(packed, kernel);
    struct gemm_params params;
    split_k = split_k_limited(split_k, gemm->k);
    gemm_params_fill(&params, packed, config->k_tile, split_k.splits);
    gemm_params_set_old(&params, sources->old);
    params_set_tiles(&params, gemm, sources, config, split_k.split_tiles);
    uint64_t map_bytes = tensor_map_bytes(&key, total_groups(&params));
    if (map_bytes != 0)
        params.tensor_maps_offset =
            plan_reserve_temp(plan, map_bytes, TENSOR_MAP_ALIGN) /
            sizeof(uint32_t);
    params.partial_offset = plan->temp_bytes / sizeof(float);
    if (params.split_tiles > 0) {
        params.flags |= STORES_PARTIALS;
        plan->temp_bytes += partial_bytes(&params);
    }
    plan_mma_promotion(plan, &params, config);
    if (!uses_mma && !config->is_3xtf32)
        plan_simt_promotion(plan, gemm, sources, &params, kernel);
    params.nonfinite_flags_offset = plan->temp_bytes / sizeof(uint32_t);
    plan_tiles(plan, packed, sources, key, &params,
               recomputes || map_bytes != 0);
    /* Packing for tensor cores does not preserve infinities and NaN, so the
     * original operands are read. */
    if (recomputes)
        plan_recompute(plan, gemm, sources, &params);
    if ((params.flags & STORES_PARTIALS) != 0)
        plan_split_k_fixup(plan, gemm, sources->old, &params, group_log2);
}

void plan_add_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   const struct gemm_sources *sources,
                   const struct gemm_selection *selection,
                   const struct tandem_matrix *const *packed,
                   uint32_t group_log2)
{
    static const struct gemm_sources no_sources;
    enum gemm_kernel_id kernel = selection->kernel;
    struct tandem_gemm complete; /* normalized copy of `gemm` */
    gemm_args_normalize(&complete, gemm);
    struct tandem_gemm packed_gemm = complete;
    struct tandem_matrix *matrices[OPERAND_COUNT] = {&packed_gemm.a,
                                                     &packed_gemm.b};
    uint32_t to_pack = gemm_packed_operands(&complete, kernel);
    if (sources == NULL)
        sources = &no_sources;
    if (sources->patches != NULL)
        to_pack &= ~(1u << OPERAND_B);
    for (uint32_t i = 0; i < OPERAND_COUNT && packed != NULL; i++)
        if (packed[i] != NULL) {
            *matrices[i] = *packed[i];
            to_pack &= ~(1u << i);
        }
    plan_operand_packing(plan, &complete, kernel, to_pack, group_log2,
                         &packed_gemm);
    if (gemm_configs[kernel].gemv_vectors != 0)
        plan_gemv(plan, &packed_gemm, sources->old, kernel,
                  selection->split.splits, group_log2);
    else
        plan_kernels(plan, &complete, &packed_gemm, sources, kernel,
                     selection->split, group_log2);
}

void plan_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id kernel, struct split_k split_k,
               const struct tandem_matrix *const *packed, uint32_t group_log2)
{
    const struct gemm_selection selection = {.kernel = kernel,
                                             .split = split_k};
    launch_plan_clear(plan);
    plan_add_gemm(plan, gemm, NULL, &selection, packed, group_log2);
}
