/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the planners of matrix products share: the kernels' parameters, the
 * operands, and how parts are joined.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_GEMM_PARAMS_H
#define TANDEM_OPENCL_PLAN_GEMM_PARAMS_H

#include "opencl/plan/gemm_plan.h"
#include "opencl/plan/kernel_step.h"

/* As in cl/gemm/gemm_common.cl. */
struct gemm_params {
    uint64_t a_offset, b_offset, c_offset, bias_offset;
    uint64_t partial_offset, nonfinite_flags_offset;
    uint64_t tensor_maps_offset;
    uint64_t plane;
    int64_t a_ld, b_ld, c_ld, a_batch, b_batch, c_batch;
    int64_t bias_row, bias_column;
    uint32_t m, n, k, k_per_split;
    uint32_t tiles_m, tiles_n, splits, batch;
    float alpha, beta, slope;
    uint32_t flags;
    uint32_t lanes_log2;
    uint32_t unsplit_tiles, split_tiles;
    uint32_t tile_m, tile_n, tiles;
    uint32_t promote_interval, reserved;
    uint64_t promoted_offset;
};

#define HAS_BIAS 1u
#define C_IS_VEC4 2u
#define ONLY_NONFINITE_TILES 4u
#define STORES_PARTIALS 8u
#define OPERANDS_SWAPPED 16u
#define PROMOTES_IN_MEMORY 32u

/* As in cl/gemm/gemm_dtypes.cl. */
#define PARTIAL_TERMS 256u

/* a or b as the kernels see it: rows of m, or n, by k. */
struct gemm_operand {
    const struct tandem_matrix *matrix;
    int64_t rows, k;
    bool is_mn_major; /* neighbours in memory lie along its rows' axis */
};

struct gemm_operand operand_of(const struct tandem_gemm *gemm,
                               enum operand_id id);
/* Whether a kernel may read it in fours. */
bool operand_is_vec4(const struct tandem_gemm *gemm,
                     const struct gemm_operand *operand);
/* Where a and b start, and their strides. */
void operands_fill(struct gemm_params *out, const struct tandem_gemm *gemm);
/* What does not depend on tiles, and for k in splits chunks, at most, of whole
 * slices. */
void product_fill(struct gemm_params *out, const struct tandem_gemm *gemm,
                  uint32_t slice, uint32_t splits);
/* What depends on tiles, of which the last ones, parted of them, are cut into
 * the splits that were filled in, if there are several. */
void gemm_params_set_tiles(struct gemm_params *out, uint32_t tiles_m,
                           uint32_t tiles_n, uint32_t parted);
/* The key's bits of what is done last. */
uint64_t variant_key_activation(const struct tandem_gemm *gemm);
/* And of what c, and a and b, are made of. */
uint64_t variant_key_gemm_types(const struct tandem_gemm *gemm);
/* Buffers that a kernel is not to read, or write, are c's. */
struct tandem_buffer *gemm_bias_buffer(const struct tandem_gemm *gemm);
/* The step that makes c of the parts. */
void plan_split_k_fixup(struct launch_plan *plan,
                        const struct tandem_gemm *gemm,
                        const struct gemm_params *from, uint32_t group_log2);

#endif
