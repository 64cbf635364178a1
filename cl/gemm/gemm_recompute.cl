/* SPDX-License-Identifier: Apache-2.0 */
/* Computes tiles of a GEMM again whose sums are not finite, after a kernel for
 * tensor cores, which does not compute infinities and NaN correctly. A
 * work-group computes a tile in blocks of BLOCK_M x BLOCK_N elements; each
 * work-item computes 4 x 4 elements of a block. Because such tiles are rare,
 * layouts, tile sizes and patches are parameters instead of macros, so that one
 * compiled kernel serves all GEMMs with the same dtypes and activation. */
#define TILE_M (p->tile_m)
#define TILE_N (p->tile_n)
#include "gemm/gemm_common.cl"
#include "gemm/patches.cl"

#define BLOCK_M 32u
#define BLOCK_N 64u
#define K_TILE 16u
#define A_READS (BLOCK_M * K_TILE / GROUP_SIZE)
#define B_READS (BLOCK_N * K_TILE / GROUP_SIZE)

/* Position in a k_tile of read number r of a work-item. Neighbouring work-items
 * read along the contiguous axis. */
INLINE uint2 read_position(uint r, uint size, bool is_mn_major)
{
    const uint i = get_local_id(0) + r * GROUP_SIZE;
    return is_mn_major ? (uint2)(i % size, i / size)
                       : (uint2)(i / K_TILE, i % K_TILE);
}

/* Returns element (mn, k) of an operand, or 0 if it does not exist. */
INLINE float operand_read(__global const AB_T *from, bool is_mn_major, long ld,
                          uint mn, uint mn_end, uint k, uint k_end)
{
    return mn < mn_end && k < k_end
               ? LOAD1(from + OFFSET_AT(is_mn_major, ld, (long)mn, (long)k))
               : 0.0f;
}

/* Sums the block at (row, column). The products of each k_tile are summed
 * separately, so that rounding errors are those of k / K_TILE + K_TILE
 * additions. */
INLINE void block_sum(float (*total)[4], __global const AB_T *a,
                      __global const AB_T *b, uint row, uint column,
                      const struct tile *tile, __local float (*a_tile)[BLOCK_M],
                      __local float (*b_tile)[BLOCK_N],
                      const struct patches_gemm_params *all)
{
    const struct gemm_params *p = &all->gemm;
    const bool a_mn_major = (p->flags & A_IS_MN_MAJOR) != 0;
    const bool b_mn_major = (p->flags & B_IS_MN_MAJOR) != 0;
    const bool has_patches = (p->flags & B_HAS_PATCHES) != 0;
    const uint y = get_local_id(0) / (BLOCK_N / 4) * 4;
    const uint x = get_local_id(0) % (BLOCK_N / 4) * 4;
    struct window window = {0, {0, 0, 0}};
    if (has_patches) {
        const uint n = column + get_local_id(0) % BLOCK_N;
        window = window_of(n, n < p->n, &all->patches);
    }
    REPEAT (i, 4)
        REPEAT (j, 4)
            total[i][j] = 0.0f;
#pragma unroll 1
    for (uint first = tile->begin; first < tile->end; first += K_TILE) {
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
        for (uint r = 0; r < A_READS; ++r) {
            const uint2 at = read_position(r, BLOCK_M, a_mn_major);
            a_tile[at.s1][at.s0] =
                operand_read(a, a_mn_major, p->a_ld, row + at.s0, p->m,
                             first + at.s1, tile->end);
        }
#pragma unroll 1
        for (uint r = 0; r < B_READS; ++r) {
            const uint2 at =
                read_position(r, BLOCK_N, b_mn_major || has_patches);
            const uint k = first + at.s1;
            float value = 0.0f;
            if (has_patches) {
                const struct patch_row tap = patch_row_of(k, &all->patches);
                if (k < tile->end && patch_is_inside(&window, &tap))
                    value = LOAD1(b + (window.offset + tap.offset));
            } else {
                value = operand_read(b, b_mn_major, p->b_ld, column + at.s0,
                                     p->n, k, tile->end);
            }
            b_tile[at.s1][at.s0] = value;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        float sum[4][4];
        REPEAT (i, 4)
            REPEAT (j, 4)
                sum[i][j] = 0.0f;
#pragma unroll 1
        for (uint k = 0; k < K_TILE; ++k) {
            float own[4];
            REPEAT (i, 4)
                own[i] = a_tile[k][y + i];
            REPEAT (i, 4)
                REPEAT (j, 4)
                    sum[i][j] = fma(own[i], b_tile[k][x + j], sum[i][j]);
        }
        REPEAT (i, 4)
            REPEAT (j, 4)
                total[i][j] += sum[i][j];
    }
}

/* Stores the sum of element (y, x) of the tile in c or in the partials. Unlike
 * the other kernels, always stores single elements, to have the code of the
 * epilogue once. */
INLINE void sum_store(__global C_T *c, __global float *partial,
                      __global const C_T *old, __global const C_T *bias,
                      const struct tile *tile, uint y, uint x, float sum,
                      const struct gemm_params *p)
{
    const uint row = tile->m * TILE_M + y, column = tile->n * TILE_N + x;
    if (row >= p->m || column >= p->n)
        return;
    if (tile->is_split)
        partial[p->partial_offset + (p->unsplit_tiles > 0
                                         ? TILE_PARTIAL_OFFSET
                                         : MATRIX_PARTIAL_OFFSET(tile))] = sum;
    else
        epilogue_scalar(c, old, bias, tile->batch, row, column, sum, p);
}

KERNEL void gemm_recompute(__global C_T *c, __global float *partial,
                           __global const AB_T *a, __global const AB_T *b,
                           __global const C_T *bias,
                           __global const uint *nonfinite_flags,
                           __global const C_T *old_base,
                           const struct patches_gemm_params all)
{
    __local float a_tile[K_TILE][BLOCK_M], b_tile[K_TILE][BLOCK_N];
    __local float shared[BLOCK_M * BLOCK_N] __attribute__((aligned(16)));
    const struct gemm_params *p = &all.gemm;
    const uint id = get_local_id(0);
    if ((p->flags & ONLY_NONFINITE_TILES) &&
        nonfinite_flags[p->nonfinite_flags_offset + get_group_id(0)] == 0)
        return;
    const struct tile tile = tile_assign(get_group_id(0), p);
    a += (long)p->a_offset + (long)tile.batch * p->a_batch;
    b += (long)p->b_offset + (long)tile.batch * p->b_batch;
    const uint columns = (p->tile_n + BLOCK_N - 1) / BLOCK_N;
    const uint blocks = (p->tile_m + BLOCK_M - 1) / BLOCK_M * columns;
#pragma unroll 1
    for (uint block = 0; block < blocks; ++block) {
        const uint first_y = block / columns * BLOCK_M;
        const uint first_x = block % columns * BLOCK_N;
        const uint row = tile.m * TILE_M + first_y;
        const uint column = tile.n * TILE_N + first_x;
        if (row >= p->m || column >= p->n)
            continue;
        float sum[4][4];
        block_sum(sum, a, b, row, column, &tile, a_tile, b_tile, &all);
        __local float *own = shared + id / (BLOCK_N / 4) * 4 * BLOCK_N +
                             id % (BLOCK_N / 4) * 4;
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT (i, 4)
            REPEAT (j, 4)
                own[i * BLOCK_N + j] = sum[i][j];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
        for (uint i = id; i < BLOCK_M * BLOCK_N; i += GROUP_SIZE)
            sum_store(c, partial, OLD(*p), bias, &tile, first_y + i / BLOCK_N,
                      first_x + i % BLOCK_N, shared[i], p);
    }
}
