/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the GEMM kernels share: the parameters, the assignment of tiles to
 * work-groups, and the epilogue. gemm_simt.cl and the kernels in cl/nvidia
 * define TILE_M and TILE_N before they include this file. */
#ifndef TANDEM_GEMM_COMMON_CL
#define TANDEM_GEMM_COMMON_CL

#include "gemm/gemm_dtypes.cl"

/* 1 if the operand is MN-major: contiguous along m or n. 0 if the operand is
 * K-major: contiguous along k. */
#ifndef A_MN_MAJOR
#define A_MN_MAJOR 0
#define B_MN_MAJOR 1
#endif

#define ELEMENT(v, i)                                                          \
    ((i) == 0 ? (v).s0 : (i) == 1 ? (v).s1 : (i) == 2 ? (v).s2 : (v).s3)

/* Offset of an element of `a` or `b`. `mn` is its index along m or n. */
#define OFFSET_AT(mn_major, ld, mn, k)                                         \
    ((mn_major) ? (k) * (ld) + (mn) : (mn) * (ld) + (k))

/* Loads one element or four aligned elements of `a` or `b` as f32. */
#define LOAD1(from) AB_TO_F32(*(from))
#define LOAD4(from) AB_TO_F32_VEC4(*(__global const AB_T4 *)(from))

/* Beta multiplies the elements of the matrix at the kernels' argument
 * `old_base`, which may be c. OLD(p) has the same offsets as c. */
#define OLD(p) (old_base + ((long)(p).old_offset - (long)(p).c_offset))

INLINE float epilogue(float sum, float old, float bias,
                      const struct gemm_params *p)
{
    float x = p->alpha * sum;
    if (p->beta != 0.0f)
        x += p->beta * old;
    return ACTIVATION(x + bias, p->activation[0], p->activation[1]);
}

/* Number of rows of tiles in a band. Work-groups that compute tiles of a band
 * run at the same time and read the same operands. */
#define TILE_BAND 8u

/* Returns the position (m, n, batch) of a tile, where m and n count tiles. The
 * tiles in a band are numbered column by column. */
INLINE uint4 tile_from_index(uint index, const struct gemm_params *p)
{
    uint columns = max(p->tiles_n, 1u);
    uint batch = index / max(p->tiles, 1u);
    uint tile = index - batch * p->tiles;
    uint band = tile / (TILE_BAND * columns);
    uint within = tile - band * TILE_BAND * columns;
    uint rows = max(min(TILE_BAND, p->tiles_m - band * TILE_BAND), 1u);
    uint n = within / rows;
    return (uint4)(band * TILE_BAND + within - n * rows, n, batch, 0);
}

/* The tile and the range of k that a work-group computes. */
struct tile {
    uint m, n, batch, begin, end;
    bool is_split;
    uint partial_tile, partial_plane; /* indices in the partials */
};

INLINE struct tile tile_assign(uint group, const struct gemm_params *p)
{
    struct tile at;
    uint split = 0;
    at.is_split = group >= p->unsplit_tiles;
    at.partial_tile = 0;
    at.begin = 0;
    at.end = p->k;
    if (at.is_split) {
        at.partial_tile = group - p->unsplit_tiles;
        split = at.partial_tile / max(p->split_tiles, 1u);
        group -= split * p->split_tiles;
        at.begin = split * p->k_per_split;
        at.end = min(p->k, at.begin + p->k_per_split);
    }
    uint4 position = tile_from_index(group, p);
    at.m = position.s0;
    at.n = position.s1;
    at.batch = position.s2;
    at.partial_plane = split * p->batch + at.batch;
    return at;
}

/* If `inside` is true, applies the epilogue to a sum and stores the result at
 * c. `old_at` points to the element that beta multiplies. Tests conditions
 * that are the same in all work-items first, because PoCL's vectorizer
 * otherwise stores elements beyond the edge of c. */
INLINE void epilogue_scalar_if(__global C_T *c, __global const C_T *old_at,
                               __global const C_T *bias, bool inside,
                               float sum, const struct gemm_params *p)
{
    float old = 0.0f, bias_value = 0.0f;
    if ((p->flags & HAS_BIAS) != 0 && inside)
        bias_value = C_TO_F32(*bias);
    if (p->beta != 0.0f && inside)
        old = C_TO_F32(*old_at);
    sum = epilogue(sum, old, bias_value, p);
    if (inside)
        *c = C_FROM_F32(sum);
}

/* Like epilogue_scalar_if, for the sums of four neighbouring elements. */
INLINE void epilogue_vec4_if(__global C_T *c, __global const C_T *old_at,
                             __global const C_T *bias, bool inside, float4 sum,
                             const struct gemm_params *p)
{
    float4 old = (float4)(0.0f), bias_value = (float4)(0.0f);
    const long step = p->bias_column;
    if ((p->flags & HAS_BIAS) != 0 && inside)
        bias_value =
            (float4)(C_TO_F32(bias[0]), C_TO_F32(bias[step]),
                     C_TO_F32(bias[2 * step]), C_TO_F32(bias[3 * step]));
    if (p->beta != 0.0f && inside)
        old = C_TO_F32_VEC4(*(__global const C_T4 *)old_at);
    sum.s0 = epilogue(sum.s0, old.s0, bias_value.s0, p);
    sum.s1 = epilogue(sum.s1, old.s1, bias_value.s1, p);
    sum.s2 = epilogue(sum.s2, old.s2, bias_value.s2, p);
    sum.s3 = epilogue(sum.s3, old.s3, bias_value.s3, p);
    if (inside)
        *(__global C_T4 *)c = C_FROM_F32_VEC4(sum);
}

#define C_OFFSET                                                               \
    ((long)p->c_offset + (long)batch * p->c_batch + (long)row * p->c_ld +      \
     column)
#define BIAS_OFFSET                                                            \
    ((long)p->bias_offset + (long)row * p->bias_row +                          \
     (long)column * p->bias_column)

/* Apply the epilogue to the sum of one element, or of four neighbours, and
 * store the result in c. `old` has the element that beta multiplies at the same
 * offset as c. */
INLINE void epilogue_scalar(__global C_T *c, __global const C_T *old,
                            __global const C_T *bias, uint batch, uint row,
                            uint column, float sum,
                            const struct gemm_params *p)
{
    epilogue_scalar_if(c + C_OFFSET, old + C_OFFSET, bias + BIAS_OFFSET, true,
                       sum, p);
}
INLINE void epilogue_vec4(__global C_T *c, __global const C_T *old,
                          __global const C_T *bias, uint batch, uint row,
                          uint column, float4 sum,
                          const struct gemm_params *p)
{
    epilogue_vec4_if(c + C_OFFSET, old + C_OFFSET, bias + BIAS_OFFSET, true,
                     sum, p);
}

/* Offset of an element in the partials, for partials that are stored as
 * matrices and for partials that are stored tile by tile. */
#define MATRIX_PARTIAL_OFFSET(tile)                                            \
    (((ulong)(tile)->partial_plane * p->m + row) * p->n + column)
#define TILE_PARTIAL_OFFSET                                                    \
    (((ulong)tile->partial_tile * TILE_M + y) * TILE_N + x)

/* Returns the number of columns from `column` to the end of c, or 0 if the
 * element (row, column) is outside c. */
INLINE uint columns_left(uint row, uint column, const struct gemm_params *p)
{
    return row < p->m && column < p->n ? p->n - column : 0;
}

#ifdef TILE_M
/* Returns true if work-items store the sums of a tile as vectors of four
 * elements, or false if neighbouring work-items store neighbouring elements. */
INLINE bool tile_uses_vec4(const struct tile *tile, const struct gemm_params *p)
{
    return (p->flags & C_IS_VEC4) != 0 ||
           (tile->is_split && p->unsplit_tiles > 0);
}

/* Stores four neighbouring sums of a tile, the first one at row y and column x,
 * in c or in the partials. tile_uses_vec4 must be true. */
INLINE void tile_store_vec4(__global C_T *c, __global float *partial,
                            __global const C_T *old, __global const C_T *bias,
                            const struct tile *tile, uint y, uint x, float4 sum,
                            const struct gemm_params *p)
{
    uint row = tile->m * TILE_M + y, column = tile->n * TILE_N + x;
    uint left = columns_left(row, column, p);
    partial += p->partial_offset;
    if (!tile->is_split) {
        if (left > 0)
            epilogue_vec4(c, old, bias, tile->batch, row, column, sum, p);
    } else if (p->unsplit_tiles > 0) {
        if (left > 0)
            *(__global float4 *)(partial + TILE_PARTIAL_OFFSET) = sum;
    } else if (left > 0) {
        *(__global float4 *)(partial + MATRIX_PARTIAL_OFFSET(tile)) = sum;
    }
}

/* Stores the sum of a tile's element (y, x). tile_uses_vec4 must be false. */
INLINE void tile_store_scalar(__global C_T *c, __global float *partial,
                              __global const C_T *old,
                              __global const C_T *bias, const struct tile *tile,
                              uint y, uint x, float sum,
                              const struct gemm_params *p)
{
    uint row = tile->m * TILE_M + y, column = tile->n * TILE_N + x;
    uint left = columns_left(row, column, p);
    if (!tile->is_split) {
        if (left > 0)
            epilogue_scalar(c, old, bias, tile->batch, row, column, sum, p);
    } else if (left > 0) {
        partial[p->partial_offset + MATRIX_PARTIAL_OFFSET(tile)] = sum;
    }
}

/* Stores four neighbouring sums of a tile's row, except those outside c. */
INLINE void tile_store_clipped(__global C_T *c, __global float *partial,
                               __global const C_T *old,
                               __global const C_T *bias,
                               const struct tile *tile, uint y, uint x,
                               float4 sum, const struct gemm_params *p)
{
    if (tile_uses_vec4(tile, p)) {
        tile_store_vec4(c, partial, old, bias, tile, y, x, sum, p);
        return;
    }
#pragma unroll 1
    for (uint e = 0; e < 4; ++e)
        tile_store_scalar(c, partial, old, bias, tile, y, x + e,
                          ELEMENT(sum, e), p);
}
#endif

#endif
