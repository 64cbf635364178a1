/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that the GEMM kernels share, their operands, and the plan for
 * cl/gemm/split_k_fixup.cl. */
#include "opencl/plan/gemm_params.h"

#include <string.h>

#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/memory/buffer.h"

struct gemm_operand operand_of(const struct tandem_gemm *gemm,
                               enum operand_id id)
{
    if (id == OPERAND_B)
        return (struct gemm_operand){&gemm->b, gemm->n, gemm->k,
                                     (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) ==
                                         0};
    return (struct gemm_operand){&gemm->a, gemm->m, gemm->k,
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
                     const struct gemm_operand *operand)
{
    return matrix_aligned(operand->matrix, gemm->dtype, gemm->batch) &&
           (operand->is_mn_major ? operand->rows : operand->k) % 4 == 0;
}

bool operand_is_mn_major(const struct tandem_gemm *gemm, enum operand_id id)
{
    return operand_of(gemm, id).is_mn_major;
}

bool operand_is_aligned(const struct tandem_gemm *gemm, enum operand_id id)
{
    struct gemm_operand operand = operand_of(gemm, id);
    return matrix_aligned(operand.matrix, gemm->dtype, gemm->batch) &&
           (!operand.is_mn_major || operand.rows % 4 == 0);
}

uint64_t variant_key_gemm_types(const struct tandem_gemm *gemm)
{
    return variant_key_type(0, kernel_type_of(gemm_c_dtype(gemm))) |
           variant_key_type(1, kernel_type_of(gemm->dtype));
}

uint64_t variant_key_activation(const struct tandem_gemm *gemm)
{
    bool tanh_form =
        gemm->activation == TANDEM_OP_GELU && gemm->activation_parameter != 0;
    return (uint64_t)gemm->activation << 8 | variant_key_gelu_tanh(tanh_form);
}

void operands_fill(struct gemm_params *out, const struct tandem_gemm *gemm)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(gemm->dtype);
    out->a_offset = gemm->a.byte_offset / bytes;
    out->b_offset = gemm->b.byte_offset / bytes;
    out->a_ld = gemm->a.ld;
    out->b_ld = gemm->b.ld;
    out->a_batch = gemm->a.batch_stride;
    out->b_batch = gemm->b.batch_stride;
}

void product_fill(struct gemm_params *out, const struct tandem_gemm *gemm,
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
    out->k_per_split = each * slice;
    out->splits = (slices + each - 1) / each;
    out->batch = (uint32_t)gemm->batch;
    out->alpha = (float)gemm->alpha;
    out->beta = (float)gemm->beta;
    out->slope = attribute_f32(gemm->activation_parameter);
    out->flags = gemm->bias_kind != TANDEM_BIAS_NONE ? HAS_BIAS : 0;
    if (matrix_aligned(&gemm->c, gemm_c_dtype(gemm), gemm->batch) &&
        gemm->n % 4 == 0)
        out->flags |= C_IS_VEC4;
}

void gemm_params_set_tiles(struct gemm_params *out, uint32_t tiles_m,
                           uint32_t tiles_n, uint32_t parted)
{
    uint32_t all = tiles_m * tiles_n * out->batch;
    out->tiles_m = tiles_m;
    out->tiles_n = tiles_n;
    out->tiles = tiles_m * tiles_n;
    out->split_tiles = parted < all ? parted : all;
    if (out->splits == 1)
        out->split_tiles = 0;
    out->unsplit_tiles = all - out->split_tiles;
    if (out->split_tiles == 0)
        out->splits = 1;
}

struct tandem_buffer *gemm_bias_buffer(const struct tandem_gemm *gemm)
{
    return gemm->bias != NULL ? gemm->bias : gemm->c.buffer;
}

/* Work-items that share a sum, where there are few: as many as parts, but no
 * more than keep neighbours of 8, and than are of use. */
#define FEW_SUMS 65536
#define MOST_LANES_LOG2 5

static uint32_t join_lanes_log2(const struct gemm_params *product,
                                uint32_t group_log2)
{
    uint32_t log2 = log2_ceil(product->splits);
    if (product->plane >= FEW_SUMS || product->splits < 4 || group_log2 < 3)
        return 0;
    log2 = log2 < MOST_LANES_LOG2 ? log2 : MOST_LANES_LOG2;
    return log2 < group_log2 - 3 ? log2 : group_log2 - 3;
}

void plan_split_k_fixup(struct launch_plan *plan,
                        const struct tandem_gemm *gemm,
                        const struct gemm_params *from, uint32_t group_log2)
{
    bool tiled = from->unsplit_tiles > 0; /* what is parted */
    uint32_t lanes_log2 = tiled ? 0 : join_lanes_log2(from, group_log2);
    uint32_t kernel = tiled            ? KERNEL_SPLIT_K_FIXUP_TILES
                      : lanes_log2 > 0 ? KERNEL_SPLIT_K_FIXUP_LANES
                                       : KERNEL_SPLIT_K_FIXUP;
    uint64_t key =
        variant_key_kernel(kernel, 0, from->plane > INT32_MAX, group_log2) |
        variant_key_gemm_types(gemm);
    struct kernel_step *step = plan_add_step(
        plan, key | variant_key_activation(gemm), sizeof(struct gemm_params));
    struct gemm_params *out = (struct gemm_params *)step->params;
    *out = *from;
    out->lanes_log2 = lanes_log2;
    step_add_buffer(step, gemm->c.buffer, true);
    step_add_buffer(step, NULL, false);
    step_add_buffer(step, gemm_bias_buffer(gemm), false);
    if (tiled)
        step_set_items(step, (uint64_t)from->split_tiles * from->tile_m *
                                 from->tile_n / 4);
    else
        step_set_items(step, lanes_log2 == 0 && (from->flags & C_IS_VEC4) != 0
                                 ? from->plane / 4
                                 : from->plane << lanes_log2);
}
