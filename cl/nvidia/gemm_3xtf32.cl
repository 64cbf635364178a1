/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on the tensor cores of NVIDIA GPUs from compute capability
 * 8.0 on, as accurate as f32: each element is a high and a low TF32 number,
 * and low high + high low + high high is summed.  Tensor cores truncate when
 * they add, so they add the products of 16 steps of k only; those sums are
 * added as f32.  Lines of a and b start at aligned fours; those that do not lie
 * along k have room for whole ones to their ends.
 *
 * All elements are multiplied by 2^36, so that the smallest have a low part
 * too.  Where a sum is then not finite (an infinite or NaN element, a product
 * or an element that is too large), the group leaves a mark: gemm_simt.cl's
 * kernel, which runs after this one in the same tiles, computes those that are
 * marked again.  So beta is 0 here, or sums go to the partials.
 */
/* A group's tile, and that of each warp in it. */
#ifndef TILE_M
#define TILE_M 64
#define TILE_N 64
#define WARP_M 64
#define WARP_N 32
#endif
#include "gemm/gemm_common.cl"
#include "nvidia/ptx_sm80.cl"

#define SLICE 16
#ifndef STAGES
#define STAGES 3
#endif
/* A slice lies as in memory, its lines along k, or along m or n, longer by
 * what keeps neighbours off one bank. */
#define LINE(outer, size) ((outer) ? (size) + 8 : SLICE + 4)
#define A_LINE LINE(A_OUTER, TILE_M)
#define B_LINE LINE(B_OUTER, TILE_N)
#define AT(outer, line, row, k)                                                \
    ((outer) ? (k) * (line) + (row) : (row) * (line) + (k))
#define A_AT(row, k) AT(A_OUTER, A_LINE, row, k)
#define B_AT(row, k) AT(B_OUTER, B_LINE, row, k)
#define WARPS_M (TILE_M / WARP_M)
#define BLOCKS_M (WARP_M / 16)
#define BLOCKS_N (WARP_N / 8)
#define A_STAGE (A_OUTER ? SLICE * A_LINE : TILE_M * A_LINE)
#define B_STAGE (B_OUTER ? SLICE * B_LINE : TILE_N * B_LINE)
#define A_READS (TILE_M * SLICE / 4 / GROUP)
#define B_READS (TILE_N * SLICE / 4 / GROUP)
#define OUT_LINE (TILE_N + (B_OUTER ? 4 : 8))
/* Blocks of b read before the first is used. */
#define AHEAD 4

/* Four elements, by an address that takes one register. */
static inline void load_four(uint *out, uint from)
{
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
}

/* An element as TF32 numbers, of 11 digits: the nearest, and what is left, of
 * which mma looks at no more digits.  Those of b are cut off, not rounded, as
 * the products of low and low, which are left out, have no bias while one of
 * them has none. */
static inline void split_round(uint x, uint *high, uint *low)
{
    *high = (as_uint(as_float(x) * SPLIT_SCALE) + 0x1000u) & 0xffffe000u;
    *low = as_uint(fma(as_float(x), SPLIT_SCALE, -as_float(*high)));
}
static inline void split_cut(uint x, uint *high, uint *low)
{
    *high = as_uint(as_float(x) * SPLIT_SCALE) & 0xffffe000u;
    *low = as_uint(fma(as_float(x), SPLIT_SCALE, -as_float(*high)));
}

/* Where read r of an item lies in a slice. */
#define ROW_OF(outer, size, r)                                                 \
    ((outer) ? id % ((size) / 4) * 4 : id / 4 + (r) * (GROUP / 4))
#define DEPTH_OF(outer, size, r)                                               \
    ((outer) ? id / ((size) / 4) + (r) * (GROUP * 4 / (size)) : id % 4 * 4)
/* How many of its bytes lie before the end of k. */
#define BYTES_FROM(outer, k)                                                   \
    ((k) >= end ? 0u : (outer) ? 16u : min((end - (k)) * 4, 16u))

/* Where an item's reads of an operand are: pointers, or what is to be added to
 * one.  Which takes fewer registers is the compiler's secret. */
#if B_OUTER && TILE_M > 64
#define PLACES(at, reads) uint at[reads]
#define PLACE(from, offset) (offset)
#define SOURCE(from, at) ((from) + (at))
#define ADVANCE(from, at, reads, step) from += (step)
#else
#define PLACES(at, reads) __global const float *at[reads]
#define PLACE(from, offset) ((from) + (offset))
#define SOURCE(from, at) (at)
#define ADVANCE(from, at, reads, step)                                         \
    _Pragma("unroll") for (uint r_ = 0; r_ < (reads); ++r_) at[r_] += (step)
#endif

/* Starts the reads of the slice from k on. */
#define FETCH(k_, stage_)                                                      \
    do {                                                                       \
        if ((k_) < end) {                                                      \
            _Pragma("unroll") for (uint r_ = 0; r_ < A_READS; ++r_)            \
            {                                                                  \
                copy_async(a_to[r_] + (stage_)*A_STAGE * 4,                    \
                           SOURCE(a, a_at[r_]),                                \
                           BYTES_FROM(A_OUTER, (k_) + DEPTH_OF(A_OUTER,        \
                                                               TILE_M, r_)));  \
            }                                                                  \
            _Pragma("unroll") for (uint r_ = 0; r_ < B_READS; ++r_)            \
            {                                                                  \
                copy_async(b_to[r_] + (stage_)*B_STAGE * 4,                    \
                           SOURCE(b, b_at[r_]),                                \
                           BYTES_FROM(B_OUTER, (k_) + DEPTH_OF(B_OUTER,        \
                                                               TILE_N, r_)));  \
            }                                                                  \
        }                                                                      \
        ADVANCE(a, a_at, A_READS, a_step);                                     \
        ADVANCE(b, b_at, B_READS, b_step);                                     \
        copies_commit();                                                       \
    } while (0)

/* Of a warp's part of a slice an item has, as mma wants it, of each block of a
 * two rows and of each block of b a column.  Which of the warp's rows, or
 * columns, these are is free: where lines lie along them an item's are
 * neighbours, so that four are read as one. */
#define A_ROW(i, h, line)                                                      \
    (A_OUTER ? (i) / 2 * 32 + (line)*4 + (i) % 2 * 2 + (h)                     \
             : (i)*16 + (h)*8 + (line))

/* a's blocks, of rows 0 to 7 and 8 to 15 by four steps of k, then of the next
 * four; b's, of 8 columns by 16 steps of k. */
#if A_OUTER
#define A_LOAD()                                                               \
    REPEAT (i_, BLOCKS_M / 2)                                                  \
        REPEAT (e_, 4) {                                                       \
            uint x_[4];                                                        \
            load_four(x_, a_from + (stage * A_STAGE + A_AT(i_ * 32, e_ * 4)) * \
                                       4);                                     \
            REPEAT (q_, 4)                                                     \
                A_SPLIT(i_ * 2 + q_ / 2, e_ / 2, e_ % 2 * 2 + q_ % 2, x_[q_]); \
        }
#else
#define A_LOAD()                                                               \
    REPEAT (i_, BLOCKS_M)                                                      \
        REPEAT (s_, 2) {                                                       \
            uint x_[4];                                                        \
            load_blocks(x_,                                                    \
                        a_from + (stage * A_STAGE + A_AT(i_ * 16, s_ * 8)) *   \
                                     4);                                       \
            REPEAT (e_, 4)                                                     \
                A_SPLIT(i_, s_, e_, x_[e_]);                                   \
        }
#endif
#define A_SPLIT(i, s, e, x) split_round(x, &a_high[i][s][e], &a_low[i][s][e])
#if B_OUTER
#define B_LOAD(first)                                                          \
    REPEAT (e_, 4) {                                                           \
        uint y_[4];                                                            \
        load_four(y_, b_from + (stage * B_STAGE + B_AT((first)*8, e_ * 4)) *   \
                                   4);                                         \
        REPEAT (j_, 4)                                                         \
            B_SPLIT(j_, e_, y_[j_]);                                           \
    }
#else
#define B_LOAD(first)                                                          \
    REPEAT (j_, AHEAD) {                                                       \
        uint y_[4];                                                            \
        load_blocks(y_, b_from + (stage * B_STAGE +                            \
                                  B_AT(((first) + j_) * 8, 0)) *               \
                                     4);                                       \
        REPEAT (e_, 4)                                                         \
            B_SPLIT(j_, e_, y_[e_]);                                           \
    }
#endif
#define B_SPLIT(j, e, y) split_cut(y, &b_high[j][e], &b_low[j][e])

/* Adds a's blocks times one column of b's blocks. */
static inline void multiply(float (*sum)[BLOCKS_N][4], uint column,
                            uint (*a_high)[2][4], uint (*a_low)[2][4],
                            const uint *b_high, const uint *b_low)
{
    float part[BLOCKS_M][4];
    REPEAT (i, BLOCKS_M)
        block_product(part[i], a_low[i][0], b_high);
    REPEAT (i, BLOCKS_M)
        block_add(part[i], a_high[i][0], b_low);
    REPEAT (i, BLOCKS_M)
        block_add(part[i], a_low[i][1], b_high + 2);
    REPEAT (i, BLOCKS_M)
        block_add(part[i], a_high[i][1], b_low + 2);
    REPEAT (i, BLOCKS_M)
        block_add(part[i], a_high[i][0], b_high);
    REPEAT (i, BLOCKS_M)
        block_add(part[i], a_high[i][1], b_high + 2);
    REPEAT (i, BLOCKS_M)
        REPEAT (e, 4)
            sum[i][column][e] += part[i][e];
}

/* So that registers keep nothing of what is worked out of it. */
static inline uint group_again(void)
{
    uint group;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(group));
    return group;
}

static inline bool sums_finite(float (*sum)[BLOCKS_N][4])
{
    float all = 0.0f; /* infinity times 0 is NaN */
    REPEAT (i, BLOCKS_M)
        REPEAT (j, BLOCKS_N)
            REPEAT (e, 4)
                all = fma(sum[i][j][e], 0.0f, all);
    return all == 0.0f;
}

/* Through local memory, 16 rows of each warp at a time, so that neighbours
 * store neighbours. */
static inline void store_tile(__global C_T *c, __global float *partial,
                              __global const C_T *bias,
                              const struct tile *tile,
                              float (*sum)[BLOCKS_N][4], __local float *shared,
                              const struct product *p)
{
    uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    uint first_row = warp % WARPS_M * 16 + lane / 4;
    uint first_column = warp / WARPS_M * WARP_N + lane % 4 * (B_OUTER ? 8 : 2);
    const float scale = 1.0f / (SPLIT_SCALE * SPLIT_SCALE);
    REPEAT (i, BLOCKS_M) {
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT (h, 2) {
            __local float *to =
                shared + (first_row + h * 8) * OUT_LINE + first_column;
#if B_OUTER
            REPEAT (j, BLOCKS_N)
                REPEAT (e, 2)
                    if (j % 4 == 0)
                        *(__local float4 *)(to + j * 8 + e * 4) =
                            (float4)(sum[i][j][h * 2 + e],
                                     sum[i][j + 1][h * 2 + e],
                                     sum[i][j + 2][h * 2 + e],
                                     sum[i][j + 3][h * 2 + e]) *
                            scale;
#else
            REPEAT (j, BLOCKS_N)
                *(__local float2 *)(to + j * 8) =
                    (float2)(sum[i][j][h * 2], sum[i][j][h * 2 + 1]) * scale;
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        bool fours = tile_in_fours(tile, p);
        for (uint at = fours ? id * 4 : id; at < WARPS_M * 16 * TILE_N;
             at += fours ? GROUP * 4 : GROUP) {
            uint row = at / TILE_N, column = at % TILE_N;
            uint y = row / 16 * WARP_M + A_ROW(i, row % 16 / 8, row % 8);
            __local const float *from = shared + row * OUT_LINE + column;
            if (fours)
                store_four(c, partial, bias, tile, y, column,
                           *(__local const float4 *)from, p);
            else
                store_one(c, partial, bias, tile, y, column, *from, p);
        }
    }
}

KERNEL void strict(__global C_T *c, __global float *partial,
                   __global const float *a, __global const float *b,
                   __global const C_T *bias, __global uint *marks,
                   const struct product p)
{
    __local float shared[STAGES * (A_STAGE + B_STAGE)]
        __attribute__((aligned(128)));
    __local uint marked;
    __local float *a_stages = shared, *b_stages = shared + STAGES * A_STAGE;
    const uint a_base = (uint)(ulong)a_stages, b_base = (uint)(ulong)b_stages;
    uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    uint warp_m = warp % WARPS_M * WARP_M, warp_n = warp / WARPS_M * WARP_N;
    struct tile tile = tile_of(get_group_id(0), &p);
    uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    uint begin = tile.begin, end = tile.end;
    const long a_step = A_OUTER ? SLICE * p.a_ld : SLICE;
    const long b_step = B_OUTER ? SLICE * p.b_ld : SLICE;
    const uint last_m = ((p.m - 1) & (A_OUTER ? ~3u : ~0u)) - first_m;
    const uint last_n = ((p.n - 1) & (B_OUTER ? ~3u : ~0u)) - first_n;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch +
         AT(A_OUTER, p.a_ld, (long)first_m, (long)begin);
    b += (long)p.b_offset + (long)tile.batch * p.b_batch +
         AT(B_OUTER, p.b_ld, (long)first_n, (long)begin);

    /* Rows past the edge read the last one; nobody stores what comes of it. */
    PLACES(a_at, A_READS);
    PLACES(b_at, B_READS);
    uint a_to[A_READS], b_to[B_READS];
    REPEAT (r, A_READS) {
        uint row = ROW_OF(A_OUTER, TILE_M, r), k = DEPTH_OF(A_OUTER, TILE_M, r);
        a_at[r] = PLACE(a, AT(A_OUTER, (uint)p.a_ld, min(row, last_m), k));
        a_to[r] = a_base + A_AT(row, k) * 4;
    }
    REPEAT (r, B_READS) {
        uint row = ROW_OF(B_OUTER, TILE_N, r), k = DEPTH_OF(B_OUTER, TILE_N, r);
        b_at[r] = PLACE(b, AT(B_OUTER, (uint)p.b_ld, min(row, last_n), k));
        b_to[r] = b_base + B_AT(row, k) * 4;
    }
    uint a_from = a_base + (A_OUTER ? A_AT(warp_m + lane / 4 * 4, lane % 4)
                                    : A_AT(warp_m + lane % 16, lane / 16 * 4)) *
                               4;
    uint b_from = b_base + (B_OUTER ? B_AT(warp_n + lane / 4 * 4, lane % 4)
                                    : B_AT(warp_n + lane % 8, lane / 8 * 4)) *
                               4;
    float sum[BLOCKS_M][BLOCKS_N][4];
    REPEAT (i, BLOCKS_M)
        REPEAT (j, BLOCKS_N)
            REPEAT (e, 4)
                sum[i][j][e] = 0.0f;
    if (id == 0)
        marked = 0;

    REPEAT (s, STAGES - 1)
        FETCH(begin + s * SLICE, s);
    uint stage = 0, next = STAGES - 1;
    for (uint k = begin; k < end; k += SLICE) {
        copies_wait(STAGES - 2);
        FETCH(k + (STAGES - 1) * SLICE, next);
        next = next + 1 == STAGES ? 0 : next + 1;
        uint a_high[BLOCKS_M][2][4], a_low[BLOCKS_M][2][4];
        A_LOAD();
        REPEAT (first, BLOCKS_N / AHEAD) {
            uint b_high[AHEAD][4], b_low[AHEAD][4];
            B_LOAD(first * AHEAD);
            REPEAT (j, AHEAD)
                multiply(sum, first * AHEAD + j, a_high, a_low, b_high[j],
                         b_low[j]);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    if (!sums_finite(sum))
        marked = 1;
    copies_wait(0);
    if (id == 0)
        marks[p.marks_offset + get_group_id(0)] = marked;
    tile = tile_of(group_again(), &p);
    store_tile(c, partial, bias, &tile, sum, shared, &p);
}
