/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/nvidia/pack_operands.cl. */
#include "opencl/plan/tensor_core_packing.h"

#include "common/operator_table.h"
#include "opencl/memory/buffer.h"
#include "opencl/plan/gemm_params.h"

/* As in cl/nvidia/packed_layout.cl. */
#define PACKED_ROWS 128
#define LINE_BYTES 128
/* As in cl/nvidia/pack_operands.cl. */
#define MOST_ROWS 32
struct packing {
    uint64_t from[2];
    int64_t row[2], depth[2], batch[2];
    uint64_t to[2], to_batch[2], scales[2], maxima[2];
    uint32_t rows[2], blocks[2], wide[2], batches[2];
    uint32_t k, slices, chunks, chunk;
    uint32_t held;
};
#define PACK_GROUP_LOG2 8
/* Elements of the rows that a group keeps, and the most rows. */
#define HELD_ELEMENTS (64u << PACK_GROUP_LOG2)
#define HELD_ROWS 64u
/* Steps of k whose largest elements a group finds. */
#define CHUNK 256
#define MOST_CHUNKS 16
/* A row of slices is counted in 32 bits. */
#define MOST_DEPTH (1 << 22)

enum packed_format tensor_core_format(const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id tile)
{
    if (gemm_configs[tile].mma_format == MMA_FP16X3)
        return FORMAT_FP16X3;
    if (gemm_configs[tile].mma_format == MMA_3XTF32)
        return FORMAT_3XTF32;
    return gemm->dtype == TANDEM_F16    ? FORMAT_F16
           : gemm->dtype == TANDEM_BF16 ? FORMAT_BF16
                                        : FORMAT_TF32;
}

bool tensor_core_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile)
{
    uint32_t allowed = gemm_configs[tile].mma_format == MMA_FP16X3
                           ? TANDEM_GEMM_ALLOW_NORMWISE_ERROR
                           : TANDEM_GEMM_ALLOW_TF32;
    if (gemm->k >= MOST_DEPTH)
        return false;
    if (gemm_configs[tile].mma_format == MMA_3XTF32)
        return gemm->dtype == TANDEM_F32;
    if (gemm_configs[tile].mma_format == MMA_16BIT)
        return gemm->dtype == TANDEM_F16 || gemm->dtype == TANDEM_BF16;
    return gemm->dtype == TANDEM_F32 && (gemm->flags & allowed) != 0;
}

/* ---- operands ---- */

/* a or b, and what is made of it. */
struct source {
    struct gemm_operand operand;
    uint32_t blocks, batches;
    enum operand_layout lies;
};

/* Whether lines start at multiples of sixteen bytes. */
static bool matrix_aligned(const struct tandem_matrix *matrix,
                           const struct tandem_gemm *gemm)
{
    uint64_t skew = buffer_misalignment(matrix->buffer);
    int64_t piece = 16 / (int64_t)dtype_bytes(gemm->dtype);
    return (matrix->byte_offset + skew) % 16 == 0 && matrix->ld % piece == 0 &&
           (gemm->batch == 1 || matrix->batch_stride % piece == 0);
}

/* As in cl/nvidia/gemm_wgmma.cl and cl/nvidia/tensor_map.cl. */
#define MOST_GROUPS 512u
#define MAP_BYTES 128u
#define MAP_STEP_LIMIT (INT64_C(1) << 36)

/* Whether a tensor map can say how far apart its planes are; lines are less. */
static bool map_reaches(const struct tandem_matrix *matrix,
                        const struct tandem_gemm *gemm)
{
    return gemm->batch == 1 ||
           matrix->batch_stride <
               MAP_STEP_LIMIT / (int64_t)dtype_bytes(gemm->dtype);
}

uint64_t tensor_map_bytes(uint64_t key, uint64_t groups)
{
    bool mapped = KEY_KERNEL(key) == KERNEL_GEMM_WGMMA &&
                  KEY_FORMAT(key) == FORMAT_TF32 &&
                  (KEY_A_LAYOUT(key) == LAYOUT_K_MAJOR ||
                   KEY_B_LAYOUT(key) == LAYOUT_K_MAJOR);
    uint64_t at_work = groups < MOST_GROUPS ? groups : MOST_GROUPS;
    return mapped ? at_work * OPERAND_COUNT * MAP_BYTES : 0;
}

/* How gemm_mma.cl reads it, unless it is packed all the same. */
static enum operand_layout lies_of(const struct tandem_gemm *gemm,
                                   enum operand_id id)
{
    struct gemm_operand operand = operand_of(gemm, id);
    int64_t piece = 16 / (int64_t)dtype_bytes(gemm->dtype);
    if (!matrix_aligned(operand.matrix, gemm) ||
        (operand.is_mn_major && operand.rows % piece != 0))
        return LAYOUT_PACKED;
    return operand.is_mn_major ? LAYOUT_MN_MAJOR : LAYOUT_K_MAJOR;
}

uint32_t tensor_core_key_flags(const struct tandem_gemm *gemm)
{
    return (gemm->flags &
            (TANDEM_GEMM_ALLOW_TF32 | TANDEM_GEMM_ALLOW_NORMWISE_ERROR)) |
           (uint32_t)lies_of(gemm, OPERAND_A) |
           (uint32_t)lies_of(gemm, OPERAND_B) << 4;
}

static struct source source_of(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id tile, enum operand_id id)
{
    const struct gemm_kernel_config *of = &gemm_configs[tile];
    struct source out = {.operand = operand_of(gemm, id)};
    uint32_t size = id == OPERAND_A ? of->tile_m : of->tile_n;
    uint64_t covered =
        ((uint64_t)out.operand.rows + size - 1) / size * size;
    out.blocks = (uint32_t)((covered + PACKED_ROWS - 1) / PACKED_ROWS);
    out.batches = out.operand.matrix->batch_stride == 0
                      ? 1
                      : (uint32_t)gemm->batch;
    out.lies = lies_of(gemm, id);
    /* wgmma takes halves alone across k, and other f32 by a tensor map. */
    if (of->mma_format == MMA_FP16X3 || of->mma_format == MMA_3XTF32 ||
        (of->uses_wgmma && of->mma_format == MMA_TF32 &&
         (out.lies == LAYOUT_MN_MAJOR ||
          !map_reaches(out.operand.matrix, gemm))))
        out.lies = LAYOUT_PACKED;
    return out;
}

uint64_t tensor_core_variant_key(const struct tandem_gemm *gemm,
                                 enum gemm_kernel_id tile)
{
    struct source a = source_of(gemm, tile, OPERAND_A);
    struct source b = source_of(gemm, tile, OPERAND_B);
    uint32_t kernel =
        gemm_configs[tile].uses_wgmma ? KERNEL_GEMM_WGMMA : KERNEL_GEMM_MMA;
    return variant_key_kernel(kernel, 0, false, gemm_configs[tile].group_log2) |
           variant_key_gemm(tile, a.lies, b.lies, true) |
           variant_key_format(tensor_core_format(gemm, tile)) |
           variant_key_gemm_types(gemm);
}

static uint64_t slices_of(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile)
{
    return ((uint64_t)gemm->k + gemm_configs[tile].k_tile - 1) /
           gemm_configs[tile].k_tile;
}

/* Rows of a pair that a group keeps, so that they are read once; 0: they are
 * too long. */
static uint32_t held_of(const struct tandem_gemm *gemm,
                        enum gemm_kernel_id tile)
{
    uint64_t depth = slices_of(gemm, tile) * gemm_configs[tile].k_tile;
    uint32_t rows = HELD_ROWS;
    while (rows > 2 && rows * depth > HELD_ELEMENTS)
        rows /= 2;
    return rows > 2 ? rows : 0;
}

/* Bytes of one batch, without scales. */
static uint64_t plane_bytes(const struct source *source, uint64_t slices)
{
    return source->blocks * slices * PACKED_ROWS * LINE_BYTES;
}

static uint64_t scale_bytes(const struct source *source,
                            enum gemm_kernel_id tile)
{
    return gemm_configs[tile].mma_format == MMA_FP16X3
               ? (uint64_t)source->blocks * PACKED_ROWS * sizeof(int32_t)
               : 0;
}

uint32_t tensor_core_packed_operands(const struct tandem_gemm *gemm,
                                     enum gemm_kernel_id tile)
{
    uint32_t needs = 0;
    for (uint32_t i = 0; i < OPERAND_COUNT; i++)
        if (source_of(gemm, tile, (enum operand_id)i).lies == LAYOUT_PACKED)
            needs |= 1u << i;
    return needs;
}

uint64_t tensor_core_packing_bytes(const struct tandem_gemm *gemm,
                                   enum gemm_kernel_id tile, uint32_t operands,
                                   uint32_t *out_launches)
{
    bool pair = gemm_configs[tile].mma_format == MMA_FP16X3;
    bool split = gemm_configs[tile].mma_format == MMA_3XTF32;
    bool twice = pair && held_of(gemm, tile) == 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        struct source source = source_of(gemm, tile, (enum operand_id)i);
        /* Read, twice where long rows are scaled, and written; pairs of TF32
         * numbers are twice as long as what is read. */
        if ((operands >> i & 1u) != 0)
            bytes += (twice ? 6 : split ? 3 : 4) * source.batches *
                     plane_bytes(&source, slices_of(gemm, tile)) / 2;
    }
    *out_launches = operands == 0 ? 0 : twice ? 2 : 1;
    return bytes;
}

uint64_t tensor_core_layout_id(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id tile,
                               enum operand_id operand)
{
    return 1 + (uint64_t)tensor_core_format(gemm, tile) +
           ((uint64_t)source_of(gemm, tile, operand).blocks << 8);
}

/* ---- packing ---- */

/* The temporary's bytes from here on. */
static uint64_t place(struct launch_plan *plan, uint64_t bytes)
{
    uint64_t at = plan->temp_bytes;
    plan->temp_bytes += bytes;
    return at;
}

/* Operand i of what is packed, and where it lies then. */
static void operand_pack(struct launch_plan *plan, struct packing *packing,
                         uint32_t i, const struct source *source,
                         const struct tandem_gemm *gemm,
                         enum gemm_kernel_id tile, struct tandem_matrix *out)
{
    const struct gemm_operand *operand = &source->operand;
    const struct tandem_matrix *from = operand->matrix;
    uint32_t element = dtype_bytes(gemm->dtype);
    uint64_t plane = plane_bytes(source, packing->slices);
    uint64_t each = plane + scale_bytes(source, tile);
    packing->from[i] = from->byte_offset / element;
    packing->row[i] = operand->is_mn_major ? 1 : from->ld;
    packing->depth[i] = operand->is_mn_major ? from->ld : 1;
    packing->batch[i] = from->batch_stride;
    packing->rows[i] = (uint32_t)operand->rows;
    packing->blocks[i] = source->blocks;
    packing->batches[i] = source->batches;
    packing->wide[i] = !operand->is_mn_major && matrix_aligned(from, gemm);
    packing->to[i] = place(plan, each * source->batches) / 16;
    packing->to_batch[i] = each / 16;
    packing->scales[i] = plane / 16;
    *out = (struct tandem_matrix){
        .buffer = NULL,
        .byte_offset = packing->to[i] * 16,
        /* Of pairs, where the scales are. */
        .ld = (int64_t)(plane / element),
        .batch_stride = source->batches == 1
                            ? 0
                            : (int64_t)(each / element)};
}

static void step_add(struct launch_plan *plan, uint32_t kernel,
                     enum packed_format format, const struct packing *packing,
                     const struct tandem_gemm *gemm, uint64_t groups)
{
    struct kernel_step *step =
        plan_add_step(plan,
                      variant_key_kernel(kernel, 0, false, PACK_GROUP_LOG2) |
                          variant_key_format(format),
                      sizeof(*packing));
    *(struct packing *)step->params = *packing;
    step_add_buffer(step, NULL, true);
    step_add_buffer(step, gemm->a.buffer, false);
    step_add_buffer(step, gemm->b.buffer, false);
    if (kernel == KERNEL_PACK_OPERANDS)
        step_add_buffer(step, NULL, false);
    step->groups = groups;
}

/* What finds the rows' largest elements. */
static void maxima_plan(struct launch_plan *plan, struct packing *packing,
                        const struct tandem_gemm *gemm)
{
    uint64_t groups = 0;
    uint32_t chunks = (packing->k + CHUNK - 1) / CHUNK;
    packing->chunks = chunks < MOST_CHUNKS ? chunks : MOST_CHUNKS;
    packing->chunk = (packing->k + packing->chunks - 1) / packing->chunks;
    packing->chunk = (packing->chunk + 3) / 4 * 4; /* as wide reads are */
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        uint64_t blocks = (uint64_t)packing->blocks[i] * packing->batches[i] *
                          packing->chunks;
        packing->maxima[i] =
            place(plan, blocks * PACKED_ROWS * sizeof(uint32_t)) /
            sizeof(uint32_t);
        groups += blocks * (PACKED_ROWS / MOST_ROWS);
    }
    step_add(plan, KERNEL_PACK_MAXIMA, FORMAT_FP16X3, packing, gemm, groups);
}

void tensor_core_plan_packing(struct launch_plan *plan,
                              const struct tandem_gemm *gemm,
                              enum gemm_kernel_id tile, uint32_t operands,
                              struct tandem_gemm *out_packed)
{
    struct tandem_matrix *out[OPERAND_COUNT] = {&out_packed->a, &out_packed->b};
    enum packed_format format = tensor_core_format(gemm, tile);
    struct packing packing = {.k = (uint32_t)gemm->k,
                              .slices = (uint32_t)slices_of(gemm, tile)};
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < OPERAND_COUNT; i++) {
        struct source source = source_of(gemm, tile, (enum operand_id)i);
        if ((operands >> i & 1u) == 0)
            continue;
        operand_pack(plan, &packing, i, &source, gemm, tile, out[i]);
        blocks += (uint64_t)source.blocks * source.batches;
    }
    packing.held = format == FORMAT_FP16X3 ? held_of(gemm, tile) : 0;
    if (packing.held != 0) {
        step_add(plan, KERNEL_PACK_SINGLE_PASS, format, &packing, gemm,
                 blocks * (PACKED_ROWS / packing.held));
        return;
    }
    if (format == FORMAT_FP16X3)
        maxima_plan(plan, &packing, gemm);
    step_add(plan, KERNEL_PACK_OPERANDS, format, &packing, gemm,
             blocks * packing.slices);
}
