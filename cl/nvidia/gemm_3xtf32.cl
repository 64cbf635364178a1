/* SPDX-License-Identifier: Apache-2.0 */
/* f32 GEMM on the tensor cores of NVIDIA GPUs from compute capability 8.0 on,
 * as accurate as f32 arithmetic. The kernel splits each element into a high and
 * a low TF32 number and adds up the products low * high + high * low + high *
 * high. Tensor cores truncate sums. A sum on tensor cores therefore covers only
 * 16 steps of k, and these sums are added up in f32. Each line (contiguous row
 * or column) of `a` and `b` is aligned to four elements. Lines of MN-major
 * operands are padded to a multiple of four. With PATCHES, `b` are patches of a
 * tensor (patches.cl), which are read element by element.
 *
 * All elements are multiplied by 2^36, so that the smallest ones have a low
 * part. A sum is not finite if an element is infinite or NaN, or if an element
 * or a product is too large. The work-group then sets the non-finite flag of
 * its tile, and gemm_recompute.cl's kernel computes the tile again. Because the
 * first kernel may have overwritten c, beta must be 0 unless the sums are
 * stored as partial sums. */
/* Sizes of a work-group's tile and of the part of it that a warp computes. */
#ifndef TILE_M
#define TILE_M 64
#define TILE_N 64
#define WARP_M 64
#define WARP_N 32
#endif
#ifndef PATCHES
#define PATCHES 0
#endif
#include "gemm/gemm_common.cl"
#if PATCHES
#include "gemm/patches.cl"
#endif
#include "nvidia/ptx_sm80.cl"

#define K_TILE 16
#ifndef STAGES
#define STAGES 3
#endif
/* A k_tile has the layout of its operand. Padding avoids bank conflicts. */
#define STAGE_PITCH(outer, size) ((outer) ? (size) + 8 : K_TILE + 4)
#define A_PITCH STAGE_PITCH(A_MN_MAJOR, TILE_M)
#define B_PITCH STAGE_PITCH(B_MN_MAJOR, TILE_N)
#define A_AT(row, k) OFFSET_AT(A_MN_MAJOR, A_PITCH, row, k)
#define B_AT(row, k) OFFSET_AT(B_MN_MAJOR, B_PITCH, row, k)
#define WARPS_M (TILE_M / WARP_M)
#define BLOCKS_M (WARP_M / 16)
#define BLOCKS_N (WARP_N / 8)
#define A_STAGE (A_MN_MAJOR ? K_TILE * A_PITCH : TILE_M * A_PITCH)
#define B_STAGE (B_MN_MAJOR ? K_TILE * B_PITCH : TILE_N * B_PITCH)
#define A_READS (TILE_M * K_TILE / 4 / GROUP_SIZE)
#define B_READS (TILE_N * K_TILE / 4 / GROUP_SIZE)
#define OUT_PITCH (TILE_N + (B_MN_MAJOR ? 4 : 8))
/* Number of blocks of `b` that are loaded before the first of them is used. */
#define B_BLOCKS_AHEAD 4

/* Both functions split an element into a high TF32 number with 11 significant
 * bits and a low number, of which mma also reads 11 bits. split_round rounds
 * the high part of `a`. split_truncate truncates the high part of `b`. Rounding
 * makes the low parts of `a` unbiased, so omitting the products low * low
 * causes no bias. */
static inline void split_round(uint x, uint *high, uint *low)
{
    *high = (as_uint(as_float(x) * TF32_SPLIT_SCALE) + 0x1000u) & 0xffffe000u;
    *low = as_uint(fma(as_float(x), TF32_SPLIT_SCALE, -as_float(*high)));
}
static inline void split_truncate(uint x, uint *high, uint *low)
{
    *high = as_uint(as_float(x) * TF32_SPLIT_SCALE) & 0xffffe000u;
    *low = as_uint(fma(as_float(x), TF32_SPLIT_SCALE, -as_float(*high)));
}

/* Position of a work-item's read number r in the k_tile. */
#define READ_ROW(outer, size, r)                                               \
    ((outer) ? id % ((size) / 4) * 4 : id / 4 + (r) * (GROUP_SIZE / 4))
#define READ_K(outer, size, r)                                                 \
    ((outer) ? id / ((size) / 4) + (r) * (GROUP_SIZE * 4 / (size)) : id % 4 * 4)
/* Number of bytes of a 16-byte read that are before the end of k. */
#define BYTES_BEFORE_END(outer, k)                                             \
    ((k) >= end ? 0u : (outer) ? 16u : min((end - (k)) * 4, 16u))

/* A read's source is a pointer, or an offset from a pointer that all reads
 * share. Experiments showed which of the two takes fewer registers. */
#if B_MN_MAJOR && TILE_M > 64
#define DECLARE_SOURCES(at, reads) uint at[reads]
#define SOURCE_INIT(from, offset) (offset)
#define SOURCE(from, at) ((from) + (at))
#define ADVANCE(from, at, reads, step) from += (step)
#else
#define DECLARE_SOURCES(at, reads) __global const float *at[reads]
#define SOURCE_INIT(from, offset) ((from) + (offset))
#define SOURCE(from, at) (at)
#define ADVANCE(from, at, reads, step)                                         \
    REPEAT (r_, reads) at[r_] += (step)
#endif

/* Starts the asynchronous copies of the k_tile that begins at k. */
#define PREFETCH(k_, stage_)                                                   \
    do {                                                                       \
        if ((k_) < end) {                                                      \
            REPEAT (r_, A_READS) {                                             \
                copy_async(                                                    \
                    a_target[r_] + (stage_)*A_STAGE * 4,                       \
                    SOURCE(a, a_source[r_]),                                   \
                    BYTES_BEFORE_END(A_MN_MAJOR,                               \
                                     (k_) + READ_K(A_MN_MAJOR, TILE_M, r_)));  \
            }                                                                  \
            PREFETCH_B(k_, stage_);                                            \
        }                                                                      \
        ADVANCE(a, a_source, A_READS, a_step);                                 \
        ADVANCE_B();                                                           \
        copies_commit();                                                       \
    } while (0)
#if PATCHES
/* A work-item reads the rows of one column. */
#define PREFETCH_B(k_, stage_)                                                 \
    do {                                                                       \
        struct patch_row row_ = patch_row_of(k_, &patches);                    \
        REPEAT (r_, K_TILE) {                                                  \
            bool inside_ =                                                     \
                (k_) + r_ < end && patch_is_inside(&window, &row_);            \
            copy_word_async(b_target + ((stage_)*B_STAGE + r_ * B_PITCH) * 4,  \
                            b + (inside_ ? window.offset + row_.offset : 0),   \
                            inside_ ? 4 : 0);                                  \
            patch_row_next(&row_, &patches);                                   \
        }                                                                      \
    } while (0)
#define ADVANCE_B() (void)0
#else
#define PREFETCH_B(k_, stage_)                                                 \
    do {                                                                       \
        REPEAT (r_, B_READS) {                                                 \
            copy_async(b_target[r_] + (stage_)*B_STAGE * 4,                    \
                       SOURCE(b, b_source[r_]),                                \
                       BYTES_BEFORE_END(B_MN_MAJOR,                            \
                                        (k_) +                                 \
                                            READ_K(B_MN_MAJOR, TILE_N, r_)));  \
        }                                                                      \
    } while (0)
#define ADVANCE_B() ADVANCE(b, b_source, B_READS, b_step)
#endif

/* For the mma instruction, a work-item loads two rows of each block of `a` and
 * one column of each block of `b`. Any assignment of the warp's rows and
 * columns to work-items is correct. In an MN-major operand, a work-item's rows
 * or columns are neighbours, so that it loads four elements at a time. */
#define A_ROW(i, h, line)                                                      \
    (A_MN_MAJOR ? (i) / 2 * 32 + (line)*4 + (i) % 2 * 2 + (h)                  \
                : (i)*16 + (h)*8 + (line))

/* A block of `a` has 16 rows by 8 steps of k. A block of `b` has 8 columns by
 * 16 steps of k. */
#if A_MN_MAJOR
#define LOAD_A()                                                               \
    REPEAT (i_, BLOCKS_M / 2)                                                  \
        REPEAT (e_, 4) {                                                       \
            uint x_[4];                                                        \
            load_4_words(                                                      \
                x_, a_from + (stage * A_STAGE + A_AT(i_ * 32, e_ * 4)) * 4);   \
            REPEAT (q_, 4)                                                     \
                SPLIT_A(i_ * 2 + q_ / 2, e_ / 2, e_ % 2 * 2 + q_ % 2, x_[q_]); \
        }
#else
#define LOAD_A()                                                               \
    REPEAT (i_, BLOCKS_M)                                                      \
        REPEAT (s_, 2) {                                                       \
            uint x_[4];                                                        \
            load_matrices(                                                     \
                x_, a_from + (stage * A_STAGE + A_AT(i_ * 16, s_ * 8)) * 4);   \
            REPEAT (e_, 4)                                                     \
                SPLIT_A(i_, s_, e_, x_[e_]);                                   \
        }
#endif
#define SPLIT_A(i, s, e, x) split_round(x, &a_high[i][s][e], &a_low[i][s][e])
#if B_MN_MAJOR
#define LOAD_B(first)                                                          \
    REPEAT (e_, 4) {                                                           \
        uint y_[4];                                                            \
        load_4_words(y_, b_from +                                              \
                             (stage * B_STAGE + B_AT((first)*8, e_ * 4)) * 4); \
        REPEAT (j_, 4)                                                         \
            SPLIT_B(j_, e_, y_[j_]);                                           \
    }
#else
#define LOAD_B(first)                                                          \
    REPEAT (j_, B_BLOCKS_AHEAD) {                                              \
        uint y_[4];                                                            \
        load_matrices(                                                         \
            y_, b_from + (stage * B_STAGE + B_AT(((first) + j_) * 8, 0)) * 4); \
        REPEAT (e_, 4)                                                         \
            SPLIT_B(j_, e_, y_[e_]);                                           \
    }
#endif
#define SPLIT_B(j, e, y) split_truncate(y, &b_high[j][e], &b_low[j][e])

/* Adds the products of all blocks of `a` and block `column` of `b` to the
 * sums. */
static inline void column_multiply(float (*sum)[BLOCKS_N][4], uint column,
                                   uint (*a_high)[2][4], uint (*a_low)[2][4],
                                   const uint *b_high, const uint *b_low)
{
    float column_sum[BLOCKS_M][4];
    REPEAT (i, BLOCKS_M)
        mma_multiply(column_sum[i], a_low[i][0], b_high);
    REPEAT (i, BLOCKS_M)
        mma_accumulate(column_sum[i], a_high[i][0], b_low);
    REPEAT (i, BLOCKS_M)
        mma_accumulate(column_sum[i], a_low[i][1], b_high + 2);
    REPEAT (i, BLOCKS_M)
        mma_accumulate(column_sum[i], a_high[i][1], b_low + 2);
    REPEAT (i, BLOCKS_M)
        mma_accumulate(column_sum[i], a_high[i][0], b_high);
    REPEAT (i, BLOCKS_M)
        mma_accumulate(column_sum[i], a_high[i][1], b_high + 2);
    REPEAT (i, BLOCKS_M)
        REPEAT (e, 4)
            sum[i][column][e] += column_sum[i][e];
}

/* Reads the work-group's ID again. With a saved ID, the compiler would keep
 * values that depend on the ID in registers during the loop. */
static inline uint group_id_reload(void)
{
    uint group;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(group));
    return group;
}

static inline bool sums_finite(float (*sum)[BLOCKS_N][4])
{
    float all = 0.0f; /* infinity * 0 is NaN */
    REPEAT (i, BLOCKS_M)
        REPEAT (j, BLOCKS_N)
            REPEAT (e, 4)
                all = fma(sum[i][j][e], 0.0f, all);
    return all == 0.0f;
}

/* Stores the sums of 16 rows in local memory. */
INLINE void block_share(float (*sum)[4], __local float *to)
{
    const float scale = 1.0f / (TF32_SPLIT_SCALE * TF32_SPLIT_SCALE);
    REPEAT (h, 2) {
#if B_MN_MAJOR
        REPEAT (j, BLOCKS_N)
            REPEAT (e, 2)
                if (j % 4 == 0)
                    *(__local float4 *)(to + j * 8 + e * 4) =
                        (float4)(sum[j][h * 2 + e], sum[j + 1][h * 2 + e],
                                 sum[j + 2][h * 2 + e],
                                 sum[j + 3][h * 2 + e]) *
                        scale;
#else
        REPEAT (j, BLOCKS_N)
            *(__local float2 *)(to + j * 8) =
                (float2)(sum[j][h * 2], sum[j][h * 2 + 1]) * scale;
#endif
        to += 8 * OUT_PITCH;
    }
}

/* Stores a tile through local memory, 16 rows of each warp at a time. */
static inline void store_tile(__global C_T *c, __global float *partial,
                              __global const C_T *old,
                              __global const C_T *bias,
                              const struct tile *tile,
                              float (*sum)[BLOCKS_N][4], __local float *shared,
                              const struct gemm_params *p)
{
    uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    uint first_row = warp % WARPS_M * 16 + lane / 4;
    uint first_column =
        warp / WARPS_M * WARP_N + lane % 4 * (B_MN_MAJOR ? 8 : 2);
    const bool uses_vec4 = tile_uses_vec4(tile, p);
    FOR_EACH_PART (block, BLOCKS_M) {
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT_PART (block, i, BLOCKS_M)
            block_share(sum[i], shared + first_row * OUT_PITCH + first_column);
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
        for (uint at = uses_vec4 ? id * 4 : id; at < WARPS_M * 16 * TILE_N;
             at += uses_vec4 ? GROUP_SIZE * 4 : GROUP_SIZE) {
            uint row = at / TILE_N, column = at % TILE_N;
            uint y = row / 16 * WARP_M + A_ROW(block, row % 16 / 8, row % 8);
            __local const float *from = shared + row * OUT_PITCH + column;
            if (uses_vec4)
                tile_store_vec4(c, partial, old, bias, tile, y, column,
                                *(__local const float4 *)from, p);
            else
                tile_store_scalar(c, partial, old, bias, tile, y, column, *from,
                                  p);
        }
    }
}

KERNEL void gemm_3xtf32(__global C_T *c, __global float *partial,
                        __global const float *a, __global const float *b,
                        __global const C_T *bias,
                        __global uint *nonfinite_flags,
#if PATCHES
                        __global const C_T *old_base,
                        const struct patches_gemm_params all)
{
    const struct gemm_params p = all.gemm;
    const struct patches_params patches = all.patches;
#else
                        __global const C_T *old_base,
                        const struct gemm_params p)
{
#endif
    __local float shared[STAGES * (A_STAGE + B_STAGE)]
        __attribute__((aligned(128)));
    __local uint nonfinite;
    __local float *a_stages = shared, *b_stages = shared + STAGES * A_STAGE;
    const uint a_base = (uint)(ulong)a_stages, b_base = (uint)(ulong)b_stages;
    uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    uint warp_m = warp % WARPS_M * WARP_M, warp_n = warp / WARPS_M * WARP_N;
    struct tile tile = tile_assign(get_group_id(0), &p);
    uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    uint begin = tile.begin, end = tile.end;
    const long a_step = A_MN_MAJOR ? K_TILE * p.a_ld : K_TILE;
#if !PATCHES
    const long b_step = B_MN_MAJOR ? K_TILE * p.b_ld : K_TILE;
    const uint last_n = ((p.n - 1) & (B_MN_MAJOR ? ~3u : ~0u)) - first_n;
#endif
    const uint last_m = ((p.m - 1) & (A_MN_MAJOR ? ~3u : ~0u)) - first_m;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch +
         OFFSET_AT(A_MN_MAJOR, p.a_ld, (long)first_m, (long)begin);
    b += (long)p.b_offset + (long)tile.batch * p.b_batch;
#if PATCHES
    const uint column = first_n + id;
    const struct window window = window_of(column, column < p.n, &patches);
    const uint b_target = b_base + B_AT(id, 0) * 4;
#else
    b += OFFSET_AT(B_MN_MAJOR, p.b_ld, (long)first_n, (long)begin);
#endif

    /* Reads past the last row load that row. Their results are not stored. */
    DECLARE_SOURCES(a_source, A_READS);
    uint a_target[A_READS];
    REPEAT (r, A_READS) {
        uint row = READ_ROW(A_MN_MAJOR, TILE_M, r),
             k = READ_K(A_MN_MAJOR, TILE_M, r);
        a_source[r] = SOURCE_INIT(
            a, OFFSET_AT(A_MN_MAJOR, (uint)p.a_ld, min(row, last_m), k));
        a_target[r] = a_base + A_AT(row, k) * 4;
    }
#if !PATCHES
    DECLARE_SOURCES(b_source, B_READS);
    uint b_target[B_READS];
    REPEAT (r, B_READS) {
        uint row = READ_ROW(B_MN_MAJOR, TILE_N, r),
             k = READ_K(B_MN_MAJOR, TILE_N, r);
        b_source[r] = SOURCE_INIT(
            b, OFFSET_AT(B_MN_MAJOR, (uint)p.b_ld, min(row, last_n), k));
        b_target[r] = b_base + B_AT(row, k) * 4;
    }
#endif
    uint a_from =
        a_base + (A_MN_MAJOR ? A_AT(warp_m + lane / 4 * 4, lane % 4)
                             : A_AT(warp_m + lane % 16, lane / 16 * 4)) *
                     4;
    uint b_from =
        b_base + (B_MN_MAJOR ? B_AT(warp_n + lane / 4 * 4, lane % 4)
                             : B_AT(warp_n + lane % 8, lane / 8 * 4)) *
                     4;
    float sum[BLOCKS_M][BLOCKS_N][4];
    REPEAT (i, BLOCKS_M)
        REPEAT (j, BLOCKS_N)
            REPEAT (e, 4)
                sum[i][j][e] = 0.0f;
    if (id == 0)
        nonfinite = 0;

    REPEAT (s, STAGES - 1)
        PREFETCH(begin + s * K_TILE, s);
    uint stage = 0, next = STAGES - 1;
    for (uint k = begin; k < end; k += K_TILE) {
        copies_wait(STAGES - 2);
        PREFETCH(k + (STAGES - 1) * K_TILE, next);
        next = next + 1 == STAGES ? 0 : next + 1;
        uint a_high[BLOCKS_M][2][4], a_low[BLOCKS_M][2][4];
        LOAD_A();
        REPEAT (first, BLOCKS_N / B_BLOCKS_AHEAD) {
            uint b_high[B_BLOCKS_AHEAD][4], b_low[B_BLOCKS_AHEAD][4];
            LOAD_B(first * B_BLOCKS_AHEAD);
            REPEAT (j, B_BLOCKS_AHEAD)
                column_multiply(sum, first * B_BLOCKS_AHEAD + j, a_high, a_low,
                                b_high[j], b_low[j]);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    if (!sums_finite(sum))
        nonfinite = 1;
    copies_wait(0);
    if (id == 0)
        nonfinite_flags[p.nonfinite_flags_offset + get_group_id(0)] = nonfinite;
    tile = tile_assign(group_id_reload(), &p);
    store_tile(c, partial, OLD(p), bias, &tile, sum, shared, &p);
}
