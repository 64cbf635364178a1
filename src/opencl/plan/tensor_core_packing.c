/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the packing kernels of cl/nvidia/pack_operands.cl. */
#include "opencl/plan/tensor_core_packing.h"

#include "common/operator_table.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/gemm_params.h"
#include "nvidia/pack_operands.cl"

/* Defined in cl/nvidia/operand_formats.cl. */
#define PACKED_ROWS 128
#define PACKED_LINE_BYTES 128
/* Defined in cl/nvidia/pack_operands.cl. */
#define MAXIMA_ROWS 32
#define PACK_GROUP_LOG2 8
/* Limits of the kernel that packs in a single pass: the number of elements in
 * the registers of a work-group, and the number of rows per work-group. */
#define GROUP_ELEMENTS (64u << PACK_GROUP_LOG2)
#define MAX_GROUP_ROWS 64u
/* The kernel that finds row maxima divides k into ranges of at most
 * MIN_K_PER_RANGE elements, or into MAX_K_RANGES longer ranges if k is
 * large. */
#define MIN_K_PER_RANGE 256
#define MAX_K_RANGES 16
/* Limit of k, so that offsets in a block of packed rows fit in 32 bits. */
#define MAX_K (1 << 22)
/* cl/nvidia/gemm_wgmma.cl and cl/nvidia/tensor_map.cl have the same values. */
#define MAX_WGMMA_GROUPS 512u
#define TENSOR_MAP_BYTES 128u
#define MAX_TENSOR_MAP_STRIDE (INT64_C(1) << 36) /* in bytes */

/* ---- kernels ---- */

static uint32_t tf32_to_even(const struct define_input *in)
{
    return in->hardware->tf32_to_even;
}

/* An MMA kernel has four or eight warps in two rows. */
static uint32_t warp_m(const struct define_input *in)
{
    return gemm_configs[in->key->gemm_kernel].tile_m / 2;
}

static uint32_t warp_n(const struct define_input *in)
{
    uint32_t warps = 1u << (in->key->group_log2 - 5);
    return gemm_configs[in->key->gemm_kernel].tile_n / (warps / 2);
}

/* Large tiles have as many pipeline stages as fit in 192 KiB of local memory.
 */
static uint32_t stages(const struct define_input *in)
{
    const struct gemm_kernel_config *config =
        &gemm_configs[in->key->gemm_kernel];
    return config->group_log2 == 8 ? 1536 / (config->tile_m + config->tile_n)
                                   : 4;
}

static const struct kernel_define mma_defines[] = {
    GEMM_DTYPE_DEFINES,
    DEFINE_FIELD("FORMAT", format),
    DEFINE_CONFIG("TILE_M", tile_m),
    DEFINE_CONFIG("TILE_N", tile_n),
    DEFINE_NUMBER("WARP_M", warp_m, 0),
    DEFINE_NUMBER("WARP_N", warp_n, 0),
    DEFINE_FIELD("A_LAYOUT", a_layout),
    DEFINE_FIELD("B_LAYOUT", b_layout),
    DEFINE_NUMBER("STAGES", stages, 0),
    DEFINE_NUMBER("TF32_TO_EVEN", tf32_to_even, 0),
    EPILOGUE_DEFINES,
    END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(gemm_mma);
static const struct kernel_info kernel_mma = {
    KERNEL_SOURCE(gemm_mma), .function = "gemm_mma", .defines = mma_defines,
    .param_bytes = sizeof(struct gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE | KERNEL_SELF_TEST};

static const struct kernel_define wgmma_defines[] = {
    GEMM_DTYPE_DEFINES,
    DEFINE_FIELD("FORMAT", format),
    DEFINE_CONFIG("TILE_M", tile_m),
    DEFINE_CONFIG("TILE_N", tile_n),
    DEFINE_FIELD("A_LAYOUT", a_layout),
    DEFINE_FIELD("B_LAYOUT", b_layout),
    EPILOGUE_DEFINES,
    END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(gemm_wgmma);
static const struct kernel_info kernel_wgmma = {
    KERNEL_SOURCE(gemm_wgmma), .function = "gemm_wgmma",
    .defines = wgmma_defines, .param_bytes = sizeof(struct gemm_params),
    .flags = KERNEL_FIXED_GROUP_SIZE | KERNEL_SELF_TEST | KERNEL_PTX_REWRITE};

static const struct kernel_define pack_defines[] = {
    DEFINE_FIELD("FORMAT", format),
    DEFINE_NUMBER("TF32_TO_EVEN", tf32_to_even, 0), END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(pack_operands);
static const struct kernel_info kernel_pack = {
    KERNEL_SOURCE(pack_operands), .function = "pack_operands",
    .defines = pack_defines, .param_bytes = sizeof(struct pack_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};
static const struct kernel_info kernel_pack_maxima = {
    KERNEL_SOURCE(pack_operands), .function = "pack_row_maxima",
    .defines = pack_defines, .param_bytes = sizeof(struct pack_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};
static const struct kernel_info kernel_pack_single_pass = {
    KERNEL_SOURCE(pack_operands), .function = "pack_register_resident",
    .defines = pack_defines, .param_bytes = sizeof(struct pack_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};

/* ---- operands ---- */

enum packed_format tensor_core_format(const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel)
{
    if (gemm_configs[kernel].mma_format == MMA_FP16X3)
        return FORMAT_FP16X3;
    if (gemm_configs[kernel].mma_format == MMA_3XTF32)
        return FORMAT_3XTF32;
    return gemm->dtype == TANDEM_F16    ? FORMAT_F16
           : gemm->dtype == TANDEM_BF16 ? FORMAT_BF16
                                        : FORMAT_TF32;
}

bool tensor_core_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel)
{
    bool is_f32 = gemm->dtype == TANDEM_F32;
    if (gemm->k >= MAX_K)
        return false;
    switch (gemm_configs[kernel].mma_format) {
    case MMA_3XTF32:
        return is_f32;
    case MMA_16BIT:
        return gemm->dtype == TANDEM_F16 || gemm->dtype == TANDEM_BF16;
    case MMA_FP16X3:
        return is_f32 && (gemm->flags & TANDEM_GEMM_ALLOW_NORMWISE_ERROR) != 0;
    default:
        return is_f32 && (gemm->flags & TANDEM_GEMM_ALLOW_TF32) != 0;
    }
}

/* Operand `a` or `b` with its layout and the size of its packed copy. */
struct source {
    struct gemm_operand operand;
    uint32_t blocks; /* number of blocks of PACKED_ROWS rows */
    enum operand_layout layout;
};

uint64_t tensor_map_bytes(const struct kernel_key *key, uint64_t groups)
{
    bool uses_maps =
        key->kernel == &kernel_wgmma && key->format == FORMAT_TF32 &&
        (key->a_layout == LAYOUT_K_MAJOR || key->b_layout == LAYOUT_K_MAJOR);
    if (groups > MAX_WGMMA_GROUPS)
        groups = MAX_WGMMA_GROUPS;
    return uses_maps ? groups * OPERAND_COUNT * TENSOR_MAP_BYTES : 0;
}

/* Returns the layout in which gemm_mma.cl reads the operand, if the number
 * format does not require packing. */
static enum operand_layout layout_of(const struct tandem_gemm *gemm,
                                     enum operand_id id)
{
    struct gemm_operand operand = operand_of(gemm, id);
    uint32_t elements = 16 / dtype_bytes(gemm->dtype); /* in 16 bytes */
    if (!matrix_is_aligned(operand.matrix, gemm->dtype, gemm->batch,
                           elements) ||
        (operand.is_mn_major && operand.rows % elements != 0))
        return LAYOUT_PACKED;
    return operand.is_mn_major ? LAYOUT_MN_MAJOR : LAYOUT_K_MAJOR;
}

static struct source source_of(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel, enum operand_id id)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    struct source out = {.operand = operand_of(gemm, id),
                         .layout = layout_of(gemm, id)};
    const struct tandem_matrix *matrix = out.operand.matrix;
    uint32_t tile = id == OPERAND_A ? config->tile_m : config->tile_n;
    uint64_t tile_rows = div_ceil((uint64_t)out.operand.rows, tile) * tile;
    out.blocks = (uint32_t)div_ceil(tile_rows, PACKED_ROWS);
    /* wgmma instructions can read MN-major operands only if elements have 16
     * bits.  K-major TF32 operands are read through tensor maps, whose limit
     * for strides can be exceeded only by the stride between batches. */
    bool fits_tensor_map =
        gemm->batch == 1 ||
        matrix->batch_stride <
            MAX_TENSOR_MAP_STRIDE / (int64_t)dtype_bytes(gemm->dtype);
    if (config->mma_format == MMA_FP16X3 || config->mma_format == MMA_3XTF32 ||
        (config->uses_wgmma && config->mma_format == MMA_TF32 &&
         (out.layout == LAYOUT_MN_MAJOR || !fits_tensor_map)))
        out.layout = LAYOUT_PACKED;
    return out;
}

struct kernel_key tensor_core_key(const struct tandem_gemm *gemm,
                                  enum gemm_kernel_id kernel)
{
    const struct gemm_kernel_config *config = &gemm_configs[kernel];
    struct source a = source_of(gemm, kernel, OPERAND_A);
    struct source b = source_of(gemm, kernel, OPERAND_B);
    struct kernel_key key = {.kernel = config->uses_wgmma ? &kernel_wgmma
                                                          : &kernel_mma,
                             .group_log2 = config->group_log2,
                             .gemm_kernel = kernel,
                             .a_layout = a.layout,
                             .b_layout = b.layout,
                             .format = tensor_core_format(gemm, kernel)};
    kernel_key_set_types(&key, gemm);
    return key;
}

static uint64_t k_tiles_of(const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel)
{
    return div_ceil((uint64_t)gemm->k, gemm_configs[kernel].k_tile);
}

/* Returns the rows per work-group of the kernel that packs in a single pass and
 * keeps whole rows in registers.  Returns 0 if the rows are too long. */
static uint32_t single_pass_rows(const struct tandem_gemm *gemm,
                                 enum gemm_kernel_id kernel)
{
    uint64_t k = k_tiles_of(gemm, kernel) * gemm_configs[kernel].k_tile;
    uint32_t rows = MAX_GROUP_ROWS;
    while (rows > 2 && rows * k > GROUP_ELEMENTS)
        rows /= 2;
    return rows > 2 ? rows : 0;
}

/* Returns the size of one packed batch in bytes, not counting its scales. */
static uint64_t packed_bytes(const struct source *source, uint64_t k_tiles)
{
    return source->blocks * k_tiles * PACKED_ROWS * PACKED_LINE_BYTES;
}

bool tensor_core_packs_operand(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel, enum operand_id id)
{
    return source_of(gemm, kernel, id).layout == LAYOUT_PACKED;
}

uint64_t tensor_core_packing_bytes(const struct tandem_gemm *gemm,
                                   enum gemm_kernel_id kernel,
                                   uint32_t operands, uint32_t *out_launches)
{
    enum mma_format format = gemm_configs[kernel].mma_format;
    bool two_passes =
        format == MMA_FP16X3 && single_pass_rows(gemm, kernel) == 0;
    /* Number of bytes read and written to pack an operand, per two packed
     * bytes.  Two passes read the operand twice.  3xTF32 doubles the size of
     * elements. */
    uint32_t factor = two_passes ? 6 : format == MMA_3XTF32 ? 3 : 4;
    uint64_t bytes = 0;
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++) {
        struct source source = source_of(gemm, kernel, id);
        if ((operands >> id & 1u) != 0)
            bytes += factor * source.operand.batches *
                     packed_bytes(&source, k_tiles_of(gemm, kernel)) / 2;
    }
    *out_launches = operands == 0 ? 0 : two_passes ? 2 : 1;
    return bytes;
}

uint64_t packing_layout_id(const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel, enum operand_id id)
{
    if (gemm_configs[kernel].mma_format == MMA_NONE)
        return 0;
    return 1 + (uint64_t)tensor_core_format(gemm, kernel) +
           ((uint64_t)source_of(gemm, kernel, id).blocks << 8);
}

/* Adds operand i to the parameters.  Sets *out_matrix to its packed copy. */
static void pack_params_add(struct launch_plan *plan, struct pack_params *out,
                            uint32_t i, const struct source *source,
                            const struct tandem_gemm *gemm, bool has_scales,
                            struct tandem_matrix *out_matrix)
{
    const struct gemm_operand *operand = &source->operand;
    const struct tandem_matrix *from = operand->matrix;
    uint32_t element_bytes = dtype_bytes(gemm->dtype);
    uint64_t plane = packed_bytes(source, out->k_tiles), batch = plane;
    if (has_scales)
        batch += (uint64_t)source->blocks * PACKED_ROWS * sizeof(int32_t);
    out->from[i] = from->byte_offset / element_bytes;
    out->row[i] = operand->is_mn_major ? 1 : from->ld;
    out->depth[i] = operand->is_mn_major ? from->ld : 1;
    out->batch[i] = from->batch_stride;
    out->rows[i] = (uint32_t)operand->rows;
    out->blocks[i] = source->blocks;
    out->batches[i] = operand->batches;
    out->is_vec4[i] =
        !operand->is_mn_major &&
        matrix_is_aligned(from, gemm->dtype, gemm->batch, 16 / element_bytes);
    out->to[i] = plan_reserve_temp(plan, batch * operand->batches, 1) / 16;
    out->to_batch[i] = batch / 16;
    out->scales[i] = plane / 16;
    *out_matrix = (struct tandem_matrix){
        .buffer = TEMP_BUFFER,
        .byte_offset = out->to[i] * 16,
        /* In a packed matrix, `ld` is the offset of the row scales. */
        .ld = (int64_t)(plane / element_bytes),
        .batch_stride =
            operand->batches == 1 ? 0 : (int64_t)(batch / element_bytes)};
}

static void add_step(struct launch_plan *plan, const struct kernel_info *kernel,
                     enum packed_format format,
                     const struct pack_params *params,
                     const struct tandem_gemm *gemm, uint64_t groups)
{
    const struct kernel_key key = {
        .kernel = kernel, .group_log2 = PACK_GROUP_LOG2, .format = format};
    struct kernel_step *step = plan_add_step(plan, &key, params);
    step_add_temp(step, true);
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++)
        step_add_gemm_operand(step, gemm, operand_of(gemm, id),
                              params->batches[id] != 0
                                  ? AT(pack_params, from[0]) +
                                        id * (uint32_t)sizeof(uint64_t)
                                  : NO_OFFSET);
    if (kernel == &kernel_pack)
        step_add_temp(step, false);
    step->groups = groups;
}

static void plan_row_maxima(struct launch_plan *plan,
                            struct pack_params *params,
                            const struct tandem_gemm *gemm)
{
    uint64_t groups = 0;
    params->k_ranges =
        min_u32((uint32_t)div_ceil(params->k, MIN_K_PER_RANGE), MAX_K_RANGES);
    /* Makes every range of k start at a multiple of four elements. */
    params->k_per_range =
        (uint32_t)div_ceil(div_ceil(params->k, params->k_ranges), 4) * 4;
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        uint64_t blocks =
            (uint64_t)params->blocks[i] * params->batches[i] * params->k_ranges;
        params->maxima[i] =
            plan_reserve_temp(plan, blocks * PACKED_ROWS * sizeof(uint32_t),
                              1) /
            sizeof(uint32_t);
        groups += blocks * (PACKED_ROWS / MAXIMA_ROWS);
    }
    add_step(plan, &kernel_pack_maxima, FORMAT_FP16X3, params, gemm, groups);
}

void tensor_core_plan_packing(struct launch_plan *plan,
                              const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel, uint32_t operands,
                              struct tandem_gemm *out_packed)
{
    struct tandem_matrix *out[OPERAND_COUNT] = {&out_packed->a, &out_packed->b};
    enum packed_format format = tensor_core_format(gemm, kernel);
    bool has_scales = format == FORMAT_FP16X3;
    struct pack_params params = {.k = (uint32_t)gemm->k,
                                 .k_tiles = (uint32_t)k_tiles_of(gemm, kernel)};
    uint64_t blocks = 0;
    for (enum operand_id id = OPERAND_A; id < OPERAND_COUNT; id++) {
        struct source source = source_of(gemm, kernel, id);
        if ((operands >> id & 1u) == 0)
            continue;
        pack_params_add(plan, &params, id, &source, gemm, has_scales, out[id]);
        blocks += (uint64_t)source.blocks * source.operand.batches;
    }
    params.rows_per_group = has_scales ? single_pass_rows(gemm, kernel) : 0;
    if (params.rows_per_group != 0) {
        add_step(plan, &kernel_pack_single_pass, format, &params, gemm,
                 blocks * (PACKED_ROWS / params.rows_per_group));
        return;
    }
    if (has_scales)
        plan_row_maxima(plan, &params, gemm);
    add_step(plan, &kernel_pack, format, &params, gemm,
             blocks * params.k_tiles);
}
