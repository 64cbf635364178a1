/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of GEMM kernels, except for gemm_naive.cl. */
#ifndef TANDEM_GEMM_PARAMS_CL
#define TANDEM_GEMM_PARAMS_CL

#include "common/params.cl"

/* Parameters of a GEMM with row-major c: c = ACTIVATION(alpha * a * b + beta *
 * old + bias). `old` is what c holds before, or another matrix with the strides
 * of c.
 *
 * Stream-K: one work-group computes each of the first unsplit_tiles tiles. For
 * the last split_tiles tiles, k is split into `splits` ranges. A work-group
 * sums one range and stores the partial sums (partials). Fixup kernels add up
 * the partials, which are stored as matrices if all tiles are split, otherwise
 * tile by tile. */
struct gemm_params {
    uint64_t a_offset, b_offset, c_offset, bias_offset;
    uint64_t partial_offset, nonfinite_flags_offset;
    uint64_t tensor_maps_offset; /* in uints; only for gemm_wgmma.cl */
    uint64_t c_elements;         /* number of elements of c: batch * m * n */
    uint64_t old_offset;         /* of `old` */
    int64_t a_ld, b_ld, c_ld, a_batch, b_batch, c_batch;
    int64_t bias_row,
        bias_column; /* strides of bias: 1, or 0 to broadcast bias */
    uint32_t m, n, k, k_per_split;
    uint32_t tiles_m, tiles_n, splits, batch;
    float alpha, beta;
    float activation[2]; /* attributes of the activation */
    uint32_t flags;
    uint32_t lanes_log2; /* 2^lanes_log2 work-items add up one sum in fixups */
    uint32_t unsplit_tiles, split_tiles;
    uint32_t tile_m, tile_n; /* number of rows and columns of a tile */
    uint32_t tiles; /* number of tiles of a matrix: tiles_m * tiles_n */
    /* If PROMOTES_IN_MEMORY is set, gemm_mma.cl adds its sums to the totals in
     * memory every promote_interval k_tiles. */
    uint32_t promote_interval;
    uint64_t promoted_offset;
};
PARAMS_SIZE(gemm_params, 224);

/* Flag: bias is added. */
#define HAS_BIAS 1u
/* Flag: c and the partials are accessed as vectors of four elements. */
#define C_IS_VEC4 2u
/* Flag: only tiles whose non-finite flag is set are computed. */
#define ONLY_NONFINITE_TILES 4u
/* Flag: the sums of split tiles are stored as partial sums. */
#define STORES_PARTIALS 8u
/* Flag for gemv.cl: `w` times a vector is a row of c instead of a column. */
#define OPERANDS_SWAPPED 16u
/* Flag: gemm_mma.cl and gemm_simt.cl add their sums to f32 totals at
 * promoted_offset in global memory. */
#define PROMOTES_IN_MEMORY 32u
/* Flags for gemm_recompute.cl, which has no macros for them: the layouts of `a`
 * and `b`, and whether `b` are patches. */
#define A_IS_MN_MAJOR 64u
#define B_IS_MN_MAJOR 128u
#define B_HAS_PATCHES 256u

/* Maximum number of terms of a partial sum. A long f32 sum is split into
 * partial sums, because its rounding errors can all have the same direction,
 * for example if all terms have the same sign. */
#define PARTIAL_TERMS 256

#endif
