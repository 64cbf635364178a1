/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the parameters of GEMM kernels. Plans cl/gemm/split_k_fixup.cl. */
#include "opencl/plan/gemm_params.h"

#include <string.h>

#include "common/argument_check.h"
#include "common/operator_table.h"

struct gemm_operand operand_of(const struct tandem_gemm *gemm,
                               enum operand_id id)
{
    bool is_a = id == OPERAND_A;
    const struct tandem_matrix *matrix = is_a ? &gemm->a : &gemm->b;
    return (struct gemm_operand){
        .matrix = matrix,
        .rows = is_a ? gemm->m : gemm->n,
        .batches = matrix->batch_stride == 0 ? 1 : (uint32_t)gemm->batch,
        .is_mn_major = is_a ? (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0
                            : (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) == 0};
}

bool matrix_is_aligned(const struct tandem_matrix *matrix, uint32_t dtype,
                       int64_t batch, uint32_t elements)
{
    uint64_t offset = matrix->byte_offset | slot_alignment(matrix->buffer);
    return offset % (elements * TANDEM_DTYPE_BYTES(dtype)) == 0 &&
           matrix->ld % elements == 0 &&
           (batch == 1 || matrix->batch_stride % elements == 0);
}

bool operand_is_vec4(const struct tandem_gemm *gemm,
                     struct gemm_operand operand)
{
    return matrix_is_aligned(operand.matrix, gemm->dtype, gemm->batch, 4) &&
           (operand.is_mn_major ? operand.rows : gemm->k) % 4 == 0;
}

bool operand_is_aligned(const struct tandem_gemm *gemm, enum operand_id id)
{
    struct gemm_operand operand = operand_of(gemm, id);
    return matrix_is_aligned(operand.matrix, gemm->dtype, gemm->batch, 4) &&
           (!operand.is_mn_major || operand.rows % 4 == 0);
}

void kernel_key_set_types(struct kernel_key *key,
                          const struct tandem_gemm *gemm)
{
    key->types[0] = kernel_type_of(gemm_c_dtype(gemm));
    key->types[1] = kernel_type_of(gemm->dtype);
    key->op = TANDEM_OP_CLIP;
}

void activation_fill(float *out, const struct tandem_gemm *gemm)
{
    struct activation given = gemm_activation(gemm);
    struct activation activation = activation_for_kernel(&given);
    activation_attributes(out, &activation);
}

void gemm_key_set_activation(struct kernel_key *key,
                             const struct tandem_gemm *gemm)
{
    struct activation activation = gemm_activation(gemm);
    kernel_key_set_activation(key, &activation);
}

bool define_gemm_dtype(char out[DEFINE_VALUE_BYTES],
                       const struct define_input *in)
{
    uint8_t type = in->key->types[in->argument];
    return define_string(out, type == TYPE_F16    ? "f16"
                              : type == TYPE_BF16 ? "bf16"
                                                  : "f32");
}

uint32_t define_gemm_config(const struct define_input *in)
{
    const char *config = (const char *)&gemm_configs[in->key->gemm_kernel];
    uint32_t value;
    memcpy(&value, config + in->argument, sizeof(value));
    return value;
}

uint32_t define_vector(const struct define_input *in)
{
    return ((const uint8_t *)in->key)[in->argument] != 0 ? 4 : 1;
}

uint64_t gemm_c_elements(const struct tandem_gemm *gemm)
{
    return (uint64_t)gemm->m * (uint64_t)gemm->n * (uint64_t)gemm->batch;
}

void gemm_params_set_operands(struct gemm_params *out,
                              const struct tandem_matrix *a,
                              const struct tandem_matrix *b, uint32_t dtype)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(dtype);
    out->a_offset = a->byte_offset / bytes;
    out->b_offset = b->byte_offset / bytes;
    out->a_ld = a->ld;
    out->b_ld = b->ld;
    out->a_batch = a->batch_stride;
    out->b_batch = b->batch_stride;
}

void gemm_params_fill(struct gemm_params *out, const struct tandem_gemm *gemm,
                      uint32_t k_tile, uint32_t splits)
{
    uint32_t k_tiles = (uint32_t)div_ceil((uint64_t)gemm->k, k_tile);
    uint32_t per_split = (uint32_t)div_ceil(k_tiles, splits);
    uint32_t c_bytes = TANDEM_DTYPE_BYTES(gemm_c_dtype(gemm));
    memset(out, 0, sizeof(*out));
    gemm_params_set_operands(out, &gemm->a, &gemm->b, gemm->dtype);
    out->c_offset = gemm->c.byte_offset / c_bytes;
    out->old_offset = out->c_offset;
    out->bias_offset = gemm->bias_byte_offset / c_bytes;
    out->c_elements = gemm_c_elements(gemm);
    out->c_ld = gemm->c.ld;
    out->c_batch = gemm->c.batch_stride;
    out->bias_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
    out->bias_column = gemm->bias_kind == TANDEM_BIAS_PER_COLUMN;
    out->m = (uint32_t)gemm->m;
    out->n = (uint32_t)gemm->n;
    out->k = (uint32_t)gemm->k;
    out->k_per_split = per_split * k_tile;
    out->splits = (uint32_t)div_ceil(k_tiles, per_split);
    out->batch = (uint32_t)gemm->batch;
    out->alpha = (float)gemm->alpha;
    out->beta = (float)gemm->beta;
    activation_fill(out->activation, gemm);
    out->flags = gemm->bias_kind != TANDEM_BIAS_NONE ? HAS_BIAS : 0;
    if (matrix_is_aligned(&gemm->c, gemm_c_dtype(gemm), gemm->batch, 4) &&
        gemm->n % 4 == 0)
        out->flags |= C_IS_VEC4;
}

void gemm_params_set_old(struct gemm_params *out,
                         const struct tandem_tensor_desc *old)
{
    if (old == NULL)
        return;
    out->old_offset = element_offset(old);
    if (!tensor_is_vec4_aligned(old))
        out->flags &= ~C_IS_VEC4;
}

void gemm_params_set_tiles(struct gemm_params *out, uint32_t tiles_m,
                           uint32_t tiles_n, uint32_t split_tiles)
{
    uint32_t all = tiles_m * tiles_n * out->batch;
    out->tiles_m = tiles_m;
    out->tiles_n = tiles_n;
    out->tiles = tiles_m * tiles_n;
    out->split_tiles = out->splits == 1 ? 0 : min_u32(split_tiles, all);
    out->unsplit_tiles = all - out->split_tiles;
    if (out->split_tiles == 0)
        out->splits = 1;
}

/* ---- arguments ---- */

/* Returns the offset of the end of a batch of matrices.  A matrix has `lines`
 * lines of `length` adjacent elements. */
static uint64_t matrix_end(const struct tandem_matrix *matrix, uint64_t lines,
                           uint64_t length, uint64_t batches, uint32_t dtype)
{
    double elements = (double)(batches - 1) * (double)matrix->batch_stride +
                      (double)(lines - 1) * (double)matrix->ld + (double)length;
    double bytes = elements * TANDEM_DTYPE_BYTES(dtype);
    return bytes < 0x1p60 ? matrix->byte_offset + (uint64_t)bytes : UINT64_MAX;
}

/* Adds an argument whose bytes end at `end`. */
static void step_add_matrix(struct kernel_step *step,
                            const struct tandem_buffer *buffer, uint32_t dtype,
                            uint64_t end, bool written, uint32_t at)
{
    const struct tandem_tensor_desc tensor = {
        .buffer = (struct tandem_buffer *)buffer, .dtype = dtype};
    step_add_slot(step, buffer_slot(buffer), 0, end, written);
    if (at != NO_OFFSET)
        step_patch_offset(step, &tensor, at);
}

void step_add_gemm_operand(struct kernel_step *step,
                           const struct tandem_gemm *gemm,
                           struct gemm_operand operand, uint32_t at)
{
    const struct tandem_matrix *matrix = operand.matrix;
    uint64_t rows = (uint64_t)operand.rows, k = (uint64_t)gemm->k;
    uint32_t slot = buffer_slot(matrix->buffer);
    if (slot == SLOT_TEMP || slot == SLOT_PACKED_A || slot == SLOT_PACKED_B)
        /* A packed copy, whose layout the GEMM does not describe. */
        step_add_slot(step, slot, 0, 0, false);
    else
        step_add_matrix(step, matrix->buffer, gemm->dtype,
                        matrix_end(matrix, operand.is_mn_major ? k : rows,
                                   operand.is_mn_major ? rows : k,
                                   operand.batches, gemm->dtype),
                        false, at);
}

void step_add_gemm_c(struct kernel_step *step, const struct tandem_gemm *gemm,
                     bool written, uint32_t at)
{
    uint32_t dtype = gemm_c_dtype(gemm);
    step_add_matrix(step, gemm->c.buffer, dtype,
                    matrix_end(&gemm->c, (uint64_t)gemm->m, (uint64_t)gemm->n,
                               (uint64_t)gemm->batch, dtype),
                    written, at);
}

void step_add_gemm_bias(struct kernel_step *step,
                        const struct tandem_gemm *gemm, uint32_t at)
{
    uint32_t dtype = gemm_c_dtype(gemm);
    int64_t elements =
        gemm->bias_kind == TANDEM_BIAS_PER_ROW ? gemm->m : gemm->n;
    if (gemm->bias_kind == TANDEM_BIAS_NONE)
        step_add_gemm_c(step, gemm, false, NO_OFFSET);
    else
        step_add_matrix(step, gemm->bias, dtype,
                        gemm->bias_byte_offset +
                            (uint64_t)elements * TANDEM_DTYPE_BYTES(dtype),
                        false, at);
}

void step_add_gemm_old(struct kernel_step *step, const struct tandem_gemm *gemm,
                       const struct tandem_tensor_desc *old)
{
    if (old != NULL)
        step_add_tensor(step, old, false, AT(gemm_params, old_offset));
    else
        step_add_gemm_c(step, gemm, false, AT(gemm_params, old_offset));
}

/* ---- fixup of split k ---- */

static const struct kernel_define fixup_defines[] = {
    GEMM_DTYPE_DEFINES, EPILOGUE_DEFINES, END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(split_k_fixup);
static const struct kernel_info fixup = {
    KERNEL_SOURCE(split_k_fixup), .function = "split_k_fixup",
    .defines = fixup_defines, .param_bytes = sizeof(struct gemm_params)};

/* If the result has at least this number of elements, one work-item per element
 * adds up the partial sums of the element. */
#define MIN_UNSHARED_ELEMENTS 65536
#define MAX_FIXUP_LANES_LOG2 5

/* Returns log2 of the number of work-items that add up the partial sums of one
 * element.  A work-group computes at least eight neighbouring elements. */
static uint32_t fixup_lanes_log2(const struct gemm_params *params,
                                 uint32_t group_log2)
{
    if (params->c_elements >= MIN_UNSHARED_ELEMENTS || params->splits < 4 ||
        group_log2 < 3)
        return 0;
    uint32_t log2 = min_u32(log2_ceil(params->splits), MAX_FIXUP_LANES_LOG2);
    return min_u32(log2, group_log2 - 3);
}

void plan_split_k_fixup(struct launch_plan *plan,
                        const struct tandem_gemm *gemm,
                        const struct tandem_tensor_desc *old,
                        const struct gemm_params *from, uint32_t group_log2)
{
    /* If only some tiles are split, partial sums are stored tile by tile. */
    bool has_tiles = from->unsplit_tiles > 0;
    uint32_t lanes_log2 = has_tiles ? 0 : fixup_lanes_log2(from, group_log2);
    uint64_t items = from->c_elements << lanes_log2;
    if (has_tiles)
        items = (uint64_t)from->split_tiles * from->tile_m * from->tile_n / 4;
    else if (lanes_log2 == 0 && (from->flags & C_IS_VEC4) != 0)
        items = from->c_elements / 4;
    struct kernel_key key = {.kernel = &fixup,
                             .group_log2 = group_log2,
                             .index_64bit = from->c_elements > MAX_32BIT_INDEX};
    kernel_key_set_types(&key, gemm);
    gemm_key_set_activation(&key, gemm);
    struct kernel_step *step = plan_add_step(plan, &key, from);
    ((struct gemm_params *)step->params)->lanes_log2 = lanes_log2;
    step_add_gemm_c(step, gemm, true, AT(gemm_params, c_offset));
    step_add_temp(step, false);
    step_add_gemm_bias(step, gemm, AT(gemm_params, bias_offset));
    step_add_gemm_old(step, gemm, old);
    step_set_items(step, items);
}
