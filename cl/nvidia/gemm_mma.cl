/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM on the tensor cores of NVIDIA GPUs from compute capability 8.0 on. The
 * formats are f16, bf16, f32 rounded to TF32 (tf32), and f32 as the sum of two
 * f16 numbers (fp16x3).
 *
 * A k_tile has 128 bytes along k of each row of `a` and each column of `b`. It
 * is copied asynchronously to local memory STAGES - 1 k_tiles ahead of its use.
 * Its 16-byte chunks are swizzled, so that chunks with the same index in eight
 * neighbouring lines are in different banks. The copies, loads and products of
 * a k_tile have no branch, so that the driver's compiler can interleave them.
 *
 * Tensor cores truncate sums, so long sums are inaccurate. For fp16x3, which
 * adds up the products low * high + high * low + high * high, a sum on tensor
 * cores covers only 16 steps of k, and these sums are added up in f32. For f16
 * and bf16, a sum covers promote_interval k_tiles and is then added to an f32
 * total in global memory, because there are too few registers for totals.
 *
 * If a row or column of an fp16x3 tile is not finite, the work-group sets the
 * tile's non-finite flag. gemm_recompute.cl's kernel then computes the tile. */
/* Sizes of a work-group's tile and of the part of it that a warp computes. */
#ifndef TILE_M
#define TILE_M 128
#define TILE_N 128
#define WARP_M 64
#define WARP_N 32
#define A_LAYOUT LAYOUT_K_MAJOR
#define B_LAYOUT LAYOUT_K_MAJOR
#define STAGES 4
#endif
#include "gemm/gemm_common.cl"
#include "nvidia/ptx_sm80.cl"

#if ELEMENT_BYTES == 4
typedef uint element_t;
#else
typedef ushort element_t;
#endif
#define ELEMENTS_PER_16B (16 / ELEMENT_BYTES)
/* Operands `x` and `y` of mma are `a` and `b`, or `b` and `a` if `b` is
 * MN-major TF32. The result is then transposed. The reason is that MN-major
 * TF32 is loaded in pairs of words for `x`, but word by word for `y`. */
#if FORMAT == FORMAT_TF32
#define LOADS_WORDS(layout) ((layout) == LAYOUT_MN_MAJOR)
#else
#define LOADS_WORDS(layout) 0
#endif
#define IS_TRANSPOSED LOADS_WORDS(B_LAYOUT)
#define LINE_BYTES 128
/* Number of elements along k, and of mma steps, in a k_tile. */
#if FORMAT == FORMAT_FP16X3
#define K_TILE 32
#define K_STEPS 2
#define PLANES 2 /* high and low parts of elements */
#else
#define K_TILE (LINE_BYTES / ELEMENT_BYTES)
#define K_STEPS 4
#define PLANES 1
#endif
/* Number of mma steps that start copies: all steps of a k_tile but the last. */
#define COPY_STEPS (K_STEPS - 1)
#define WARPS_M (TILE_M / WARP_M)
#if IS_TRANSPOSED
#define X_BLOCKS (WARP_N / 16)
#define Y_BLOCKS (WARP_M / 8)
#else
#define X_BLOCKS (WARP_M / 16)
#define Y_BLOCKS (WARP_N / 8)
#endif
#define A_STAGE (TILE_M * LINE_BYTES)
#define B_STAGE (TILE_N * LINE_BYTES)
#define A_READS (A_STAGE / 16 / GROUP_SIZE)
#define B_READS (B_STAGE / 16 / GROUP_SIZE)
#define OUT_PITCH (TILE_N + (IS_TRANSPOSED ? 4 : 8))
#define PACKED_BLOCK (PACKED_ROWS * LINE_BYTES / ELEMENT_BYTES)

/* ---- global memory to local memory ---- */

/* Returns the swizzled offset in bytes of 16-byte chunk `at` of a line. */
static inline uint swizzle(uint line, uint at, uint bytes)
{
    return line * bytes + ((at ^ (line & 7)) * 16);
}
/* Like swizzle, for MN-major TF32. Warps read 8 elements of each of 4 lines. */
static inline uint swizzle_words(uint line, uint at, uint bytes)
{
    return line * bytes + ((at ^ ((line & 3) * 2)) * 16);
}

static inline uint copy_16b_row(uint layout, uint size, uint read)
{
    uint chunk = get_local_id(0) + read * GROUP_SIZE;
    return layout == LAYOUT_MN_MAJOR ? chunk / (size / ELEMENTS_PER_16B)
                                     : chunk / 8;
}
static inline uint copy_16b_column(uint layout, uint size, uint read)
{
    uint chunk = get_local_id(0) + read * GROUP_SIZE;
    return layout == LAYOUT_MN_MAJOR ? chunk % (size / ELEMENTS_PER_16B)
                                     : chunk % 8;
}
static inline uint copy_16b_target(uint layout, uint size, uint read)
{
    if (layout == LAYOUT_PACKED)
        return (get_local_id(0) + read * GROUP_SIZE) * 16;
    if (LOADS_WORDS(layout))
        return swizzle_words(copy_16b_row(layout, size, read),
                             copy_16b_column(layout, size, read),
                             size * ELEMENT_BYTES);
    return swizzle(
        copy_16b_row(layout, size, read), copy_16b_column(layout, size, read),
        layout == LAYOUT_MN_MAJOR ? size * ELEMENT_BYTES : LINE_BYTES);
}

/* Returns the offset, in elements, of the 16-byte chunk that a work-item copies
 * in read number `read`. Reads past the last row load the last row, and their
 * results are not stored. */
static inline uint copy_16b_source(uint layout, uint size, uint read, uint ld,
                                   uint rows, uint k_tiles)
{
    uint line = copy_16b_row(layout, size, read),
         at = copy_16b_column(layout, size, read);
    if (layout == LAYOUT_PACKED)
        return line / PACKED_ROWS * k_tiles * PACKED_BLOCK +
               (line % PACKED_ROWS * 8 + at) * ELEMENTS_PER_16B;
    if (layout == LAYOUT_MN_MAJOR)
        return line * ld + min(at * ELEMENTS_PER_16B, rows - ELEMENTS_PER_16B);
    return min(line, rows - 1) * ld + at * ELEMENTS_PER_16B;
}

/* Returns how many bytes of a chunk are inside the first `depth` steps of k. */
static inline uint copy_16b_byte_count(uint layout, uint size, uint read,
                                       uint depth)
{
    uint at = copy_16b_column(layout, size, read) * ELEMENTS_PER_16B;
    if (layout == LAYOUT_PACKED)
        return 16;
    if (layout == LAYOUT_MN_MAJOR)
        return copy_16b_row(layout, size, read) < depth ? 16 : 0;
    return at < depth ? min((depth - at) * ELEMENT_BYTES, 16u) : 0;
}
/* Starts a work-item's copies `first` to `last` - 1 of an operand's k_tile. */
#define COPY(first, last, to, from, sources, layout, size, bytes)              \
    _Pragma("unroll") for (uint r_ = (first); r_ < (last); ++r_) copy_async(   \
        (to) + copy_16b_target(layout, size, r_), (from) + sources[r_], bytes)

/* The last k_tile of a range of k may be incomplete. It is copied and
 * multiplied first, so that the other k_tiles need no test for the end of k. */
#define PREFETCH_LAST()                                                        \
    do {                                                                       \
        const uint depth_ = end - begin - (count - 1) * K_TILE;                \
        COPY(0, A_READS, a_base, a + (count - 1) * a_step, a_source, A_LAYOUT, \
             TILE_M, copy_16b_byte_count(A_LAYOUT, TILE_M, r_, depth_));       \
        COPY(0, B_READS, b_base, b + (count - 1) * b_step, b_source, B_LAYOUT, \
             TILE_N, copy_16b_byte_count(B_LAYOUT, TILE_N, r_, depth_));       \
    } while (0)
/* Divides the copies of the next k_tile into steps_ parts and starts part
 * step_. Copies zeros if no k_tile is left. */
#define PREFETCH(step_, steps_)                                                \
    do {                                                                       \
        COPY(A_READS *(step_) / (steps_), A_READS * ((step_) + 1) / (steps_),  \
             a_base + next * A_STAGE, a, a_source, A_LAYOUT, TILE_M,           \
             tiles_left > 0 ? 16 : 0);                                         \
        COPY(B_READS *(step_) / (steps_), B_READS * ((step_) + 1) / (steps_),  \
             b_base + next * B_STAGE, b, b_source, B_LAYOUT, TILE_N,           \
             tiles_left > 0 ? 16 : 0);                                         \
        if ((step_) + 1 < (steps_))                                            \
            break;                                                             \
        copies_commit();                                                       \
        a += a_step;                                                           \
        b += b_step;                                                           \
        --tiles_left;                                                          \
        next = next + 1 == STAGES ? 0 : next + 1;                              \
    } while (0)

/* ---- local memory to registers ---- */

/* Both functions return the offset in a stage from which a work-item loads its
 * part of a block. A block begins at `row` and has 16 rows by 32 bytes of k. It
 * consists of four matrices. The first two matrices contain the first half of k
 * for `x`, and the first half of the rows for `y`. If `x` is loaded as words,
 * the first word of each pair belongs to the first half of the rows. */
static inline uint x_load_address(uint layout, uint row, uint size)
{
    uint lane = get_local_id(0) % 32;
    if (LOADS_WORDS(layout))
        return swizzle_words(lane % 4, row / 4 + lane / 8,
                             size * ELEMENT_BYTES) +
               lane / 4 % 2 * 8;
    if (layout == LAYOUT_MN_MAJOR)
        return swizzle(lane % 8 + lane / 16 * 8, row / 8 + lane / 8 % 2,
                       size * ELEMENT_BYTES);
    return swizzle(row + lane % 16, lane / 16, LINE_BYTES);
}
static inline uint y_load_address(uint layout, uint row, uint size)
{
    uint lane = get_local_id(0) % 32;
    if (LOADS_WORDS(layout))
        return swizzle_words(lane % 4, row / 4 + lane / 16,
                             size * ELEMENT_BYTES) +
               lane / 4 % 4 * 4;
    if (layout == LAYOUT_MN_MAJOR)
        return swizzle(lane % 16, row / 8 + lane / 16, size * ELEMENT_BYTES);
    return swizzle(row + lane % 8 + lane / 16 * 8, lane / 8 % 2, LINE_BYTES);
}

/* Loads 16 rows by 32 bytes of k in the register layout that mma needs. */
static inline void rows_load(uint *out, uint first, uint layout, uint size,
                             uint rows, uint k_step)
{
    if (layout == LAYOUT_MN_MAJOR)
        load_matrices_transposed(out, (first ^ (rows * 32)) +
                                          k_step * 16 * size * ELEMENT_BYTES);
    else
        load_matrices(out, (first ^ (k_step * 32)) + rows * 16 * LINE_BYTES);
}
static inline void x_rows_load(uint *out, uint first, uint layout, uint size,
                               uint rows, uint k_step)
{
    if (LOADS_WORDS(layout))
        REPEAT (half_, 2)
            load_2_words(out + half_ * 2,
                         (first ^ (rows * 64)) +
                             (k_step * 8 + half_ * 4) * size * ELEMENT_BYTES);
    else
        rows_load(out, first, layout, size, rows, k_step);
}
static inline void y_rows_load(uint *out, uint first, uint layout, uint size,
                               uint rows, uint k_step)
{
    if (LOADS_WORDS(layout))
        REPEAT (e, 4)
            out[e] = load_word((first ^ (rows * 64 + e / 2 * 32)) +
                               (k_step * 8 + e % 2 * 4) * size * ELEMENT_BYTES);
    else
        rows_load(out, first, layout, size, rows, k_step);
}
#if IS_TRANSPOSED
#define X_LOAD(out, i, k_step)                                                 \
    x_rows_load(out, b_from + stage * B_STAGE, B_LAYOUT, TILE_N, i, k_step)
#define Y_LOAD(out, j, k_step)                                                 \
    y_rows_load(out, a_from + stage * A_STAGE, A_LAYOUT, TILE_M, j, k_step)
#else
#define X_LOAD(out, i, k_step)                                                 \
    x_rows_load(out, a_from + stage * A_STAGE, A_LAYOUT, TILE_M, i, k_step)
#define Y_LOAD(out, j, k_step)                                                 \
    y_rows_load(out, b_from + stage * B_STAGE, B_LAYOUT, TILE_N, j, k_step)
#endif

/* ---- sums ---- */

#if FORMAT == FORMAT_TF32
/* Rounds elements to TF32, unless they were rounded when they were packed.
 * Called just before the multiplication. If elements were rounded right after
 * the load, other products would have to wait for the load. */
static inline void words_round(uint *words, uint layout)
{
    if (layout != LAYOUT_PACKED)
        REPEAT (e, 4)
            words[e] = tf32_round(words[e]);
}
#define ROUND(buffer, i)                                                       \
    words_round(x[buffer][0][i], IS_TRANSPOSED ? B_LAYOUT : A_LAYOUT);         \
    if (i == 0)                                                                \
        REPEAT (j, Y_BLOCKS / 2)                                               \
            words_round(y[buffer][0][j], IS_TRANSPOSED ? A_LAYOUT : B_LAYOUT);
#else
#define ROUND(buffer, i)
#endif

/* Adds the products of an mma step and loads the blocks of the next step. */
#if FORMAT == FORMAT_FP16X3
#define MULTIPLY_STEP(buffer, next_buffer, next_step)                          \
    REPEAT (j, Y_BLOCKS / 2) {                                                 \
        float step_sum[2][X_BLOCKS][4];                                        \
        REPEAT (i, X_BLOCKS)                                                   \
            if (i % (Y_BLOCKS / 2) == j) {                                     \
                X_LOAD(x[next_buffer][0][i], i, next_step);                    \
                X_LOAD(x[next_buffer][1][i], i, next_step + 2);                \
            }                                                                  \
        Y_LOAD(y[next_buffer][0][j], j, next_step);                            \
        Y_LOAD(y[next_buffer][1][j], j, next_step + 2);                        \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                mma_multiply(step_sum[h][i], x[buffer][1][i],                  \
                             y[buffer][0][j] + h * 2);                         \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                mma_accumulate(step_sum[h][i], x[buffer][0][i],                \
                               y[buffer][1][j] + h * 2);                       \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                mma_accumulate(step_sum[h][i], x[buffer][0][i],                \
                               y[buffer][0][j] + h * 2);                       \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                REPEAT (e, 4)                                                  \
                    sum[i][j * 2 + h][e] += step_sum[h][i][e];                 \
    }
#else
#define MULTIPLY_STEP(buffer, next_buffer, next_step)                          \
    REPEAT (i, X_BLOCKS) {                                                     \
        X_LOAD(x[next_buffer][0][i], i, next_step);                            \
        REPEAT (j, Y_BLOCKS / 2)                                               \
            if (j % X_BLOCKS == i)                                             \
                Y_LOAD(y[next_buffer][0][j], j, next_step);                    \
        ROUND(buffer, i)                                                       \
        REPEAT (j, Y_BLOCKS)                                                   \
            mma_accumulate(sum[i][j], x[buffer][0][i],                         \
                           y[buffer][0][j / 2] + j % 2 * 2);                   \
    }
#endif

#if FORMAT == FORMAT_FP16X3
/* Returns x * 2^exponent, which undoes the scaling of a row and a column. */
static inline float unscale(float x, int exponent)
{
    /* If the exponent is below -252, the result is 0 in any case. */
    exponent = max(exponent, -252);
    int half_exponent = exponent / 2;
    return x * as_float((half_exponent + 127) << 23) *
           as_float((exponent - half_exponent + 127) << 23);
}
static inline float4 vec4_unscale(float4 x, int4 exponent)
{
    return (float4)(unscale(x.s0, exponent.s0), unscale(x.s1, exponent.s1),
                    unscale(x.s2, exponent.s2), unscale(x.s3, exponent.s3));
}
#define SCALED_SCALAR(from, row, column)                                       \
    unscale(*(from), a_scales[row] + b_scales[column])
#define SCALED_VEC4(from, row, column)                                         \
    vec4_unscale(*(__local const float4 *)(from),                              \
                 a_scales[row] +                                               \
                     *(__global const int4 *)(b_scales + (column)))
#else
#define SCALED_SCALAR(from, row, column) (*(from))
#define SCALED_VEC4(from, row, column) (*(__local const float4 *)(from))
#endif

/* Stores a tile through local memory, 16 rows of each warp at a time. Must be
 * inlined, because `sum` would otherwise not stay in registers. */
INLINE void store_tile(__global C_T *c, __global float *partial,
                       __global const C_T *old, __global const C_T *bias,
                       const struct tile *tile,
                       float (*sum)[Y_BLOCKS][4], __local float *shared,
                       __global const int *a_scales,
                       __global const int *b_scales,
                       const struct gemm_params *p)
{
    uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    uint first_row = warp % WARPS_M * 16;
    uint first_column = warp / WARPS_M * WARP_N;
    const bool uses_vec4 = tile_uses_vec4(tile, p);
    FOR_EACH_PART (block, WARP_M / 16) {
        barrier(CLK_LOCAL_MEM_FENCE);
        REPEAT_PART (block, i, WARP_M / 16) {
#if IS_TRANSPOSED
            REPEAT (j, X_BLOCKS)
                REPEAT (h, 4)
                    *(__local float2 *)(shared +
                                        (first_row + h / 2 * 8 + lane % 4 * 2 +
                                         h % 2) *
                                            OUT_PITCH +
                                        first_column + j * 16 + lane / 4 * 2) =
                        (float2)(sum[j][i * 2 + h / 2][h % 2],
                                 sum[j][i * 2 + h / 2][h % 2 + 2]);
#else
            REPEAT (j, Y_BLOCKS)
                REPEAT (h, 2)
                    *(__local float2 *)(shared +
                                        (first_row + (LOADS_WORDS(A_LAYOUT)
                                                          ? lane / 4 * 2 + h
                                                          : h * 8 + lane / 4)) *
                                            OUT_PITCH +
                                        first_column + j * 8 + lane % 4 * 2) =
                        (float2)(sum[i][j][h * 2], sum[i][j][h * 2 + 1]);
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
        for (uint at = uses_vec4 ? id * 4 : id; at < WARPS_M * 16 * TILE_N;
             at += uses_vec4 ? GROUP_SIZE * 4 : GROUP_SIZE) {
            uint row = at / TILE_N, column = at % TILE_N;
            __local const float *from = shared + row * OUT_PITCH + column;
            row = row / 16 * WARP_M + block * 16 + row % 16;
            if (uses_vec4)
                tile_store_vec4(c, partial, old, bias, tile, row, column,
                                SCALED_VEC4(from, row, column), p);
            else
                tile_store_scalar(c, partial, old, bias, tile, row, column,
                                  SCALED_SCALAR(from, row, column), p);
        }
    }
}

/* Returns the offset, in elements, at which an operand's range of k begins. */
static inline long k_range_source(uint layout, uint first, long ld, uint begin,
                                  uint k_tiles)
{
    if (layout == LAYOUT_PACKED)
        return ((long)(first / PACKED_ROWS) * k_tiles + begin / K_TILE) *
                   PACKED_BLOCK +
               first % PACKED_ROWS * (LINE_BYTES / ELEMENT_BYTES);
    return layout == LAYOUT_MN_MAJOR ? begin * ld + first : first * ld + begin;
}
/* Returns the number of elements from one k_tile to the next. */
static inline long k_tile_step(uint layout, long ld)
{
    return layout == LAYOUT_PACKED     ? PACKED_BLOCK
           : layout == LAYOUT_MN_MAJOR ? K_TILE * ld
                                       : K_TILE;
}

#if FORMAT == FORMAT_FP16X3
/* Returns true if the tile's rows of `a` and columns of `b` are finite. */
static inline bool scales_are_finite(__global const int *a_scales,
                                     __global const int *b_scales,
                                     __local uint *nonfinite)
{
    uint id = get_local_id(0);
    if (id == 0)
        *nonfinite = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < TILE_M + TILE_N; i += GROUP_SIZE)
        if ((i < TILE_M ? a_scales[i] : b_scales[i - TILE_M]) ==
            SCALE_NOT_FINITE)
            *nonfinite = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    return *nonfinite == 0;
}
#endif

#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
/* Adds the sums to promoted sums (f32 sums in global memory) and clears the
 * sums. If `first` is true, stores the sums as the first promoted sums. If
 * `last` is true, leaves the totals in `sum` instead. */
INLINE void sums_promote(float (*sum)[Y_BLOCKS][4], __global float4 *promoted,
                         bool first, bool last)
{
    REPEAT (i, X_BLOCKS)
        REPEAT (j, Y_BLOCKS) {
            uint at = (i * Y_BLOCKS + j) * GROUP_SIZE;
            float4 x = (float4)(sum[i][j][0], sum[i][j][1], sum[i][j][2],
                                sum[i][j][3]);
            if (!first)
                x += promoted[at];
            if (!last)
                promoted[at] = x;
            sum[i][j][0] = last ? x.s0 : 0.0f;
            sum[i][j][1] = last ? x.s1 : 0.0f;
            sum[i][j][2] = last ? x.s2 : 0.0f;
            sum[i][j][3] = last ? x.s3 : 0.0f;
        }
}
#endif

KERNEL void gemm_mma(__global C_T *c, __global float *partial,
                     __global const element_t *a, __global const element_t *b,
                     __global const C_T *bias, __global uint *nonfinite_flags,
                     __global const C_T *old_base,
                     const struct gemm_params p)
{
    /* Aligned to 256 bytes, because rows_load flips address bits 5 to 7. */
    __local uint shared[STAGES * (A_STAGE + B_STAGE) / 4]
        __attribute__((aligned(256)));
    const uint a_base = address_of(shared);
    const uint b_base = a_base + STAGES * A_STAGE;
    const uint warp = get_local_id(0) / 32;
    const uint warp_m = warp % WARPS_M * WARP_M;
    const uint warp_n = warp / WARPS_M * WARP_N;
    struct tile tile = tile_assign(get_group_id(0), &p);
    const uint begin = tile.begin, end = tile.end;
    const uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    const uint k_tiles = (p.k + K_TILE - 1) / K_TILE;
    __global const int *a_scales = 0, *b_scales = 0;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch;
    b += (long)p.b_offset + (long)tile.batch * p.b_batch;
#if FORMAT == FORMAT_FP16X3
    __local uint nonfinite;
    a_scales = (__global const int *)(a + p.a_ld) + first_m;
    b_scales = (__global const int *)(b + p.b_ld) + first_n;
    const bool finite = scales_are_finite(a_scales, b_scales, &nonfinite);
    if (get_local_id(0) == 0)
        nonfinite_flags[p.nonfinite_flags_offset + get_group_id(0)] = !finite;
    if (!finite)
        return;
#endif
    a += k_range_source(A_LAYOUT, first_m, p.a_ld, begin, k_tiles);
    b += k_range_source(B_LAYOUT, first_n, p.b_ld, begin, k_tiles);
    const long a_step = k_tile_step(A_LAYOUT, p.a_ld);
    const long b_step = k_tile_step(B_LAYOUT, p.b_ld);
    uint a_source[A_READS], b_source[B_READS];
    REPEAT (r, A_READS)
        a_source[r] = copy_16b_source(A_LAYOUT, TILE_M, r, (uint)p.a_ld,
                                      p.m - first_m, k_tiles);
    REPEAT (r, B_READS)
        b_source[r] = copy_16b_source(B_LAYOUT, TILE_N, r, (uint)p.b_ld,
                                      p.n - first_n, k_tiles);
#if IS_TRANSPOSED
    const uint a_from = a_base + y_load_address(A_LAYOUT, warp_m, TILE_M);
    const uint b_from = b_base + x_load_address(B_LAYOUT, warp_n, TILE_N);
#else
    const uint a_from = a_base + x_load_address(A_LAYOUT, warp_m, TILE_M);
    const uint b_from = b_base + y_load_address(B_LAYOUT, warp_n, TILE_N);
#endif

    float sum[X_BLOCKS][Y_BLOCKS][4];
    REPEAT (i, X_BLOCKS)
        REPEAT (j, Y_BLOCKS)
            REPEAT (e, 4)
                sum[i][j][e] = 0.0f;

    const uint count = (end - begin + K_TILE - 1) / K_TILE;
    int tiles_left = (int)count - 1;
    uint stage = 0, next = 1;
    if (count > 0)
        PREFETCH_LAST();
    copies_commit();
    REPEAT (s, STAGES - 2)
        PREFETCH(0, 1);
    uint x[2][PLANES][X_BLOCKS][4], y[2][PLANES][Y_BLOCKS / 2][4];
    copies_wait(STAGES - 2);
    REPEAT (plane, PLANES) {
        REPEAT (i, X_BLOCKS)
            X_LOAD(x[0][plane][i], i, plane * 2);
        REPEAT (j, Y_BLOCKS / 2)
            Y_LOAD(y[0][plane][j], j, plane * 2);
    }
    uint end_tile = count;
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
    __global float4 *promoted =
        (__global float4 *)(partial + p.promoted_offset) +
        (ulong)get_group_id(0) * (TILE_M * TILE_N / 4) + get_local_id(0);
    for (uint begin_tile = 0; begin_tile < count; begin_tile = end_tile) {
        end_tile = min(count, begin_tile + max(p.promote_interval, 1u));
#else
    {
        const uint begin_tile = 0;
#endif
        for (uint k_tile = begin_tile; k_tile < end_tile; ++k_tile)
            REPEAT (k_step, K_STEPS) {
                if (k_step < COPY_STEPS) {
                    PREFETCH(k_step, COPY_STEPS);
                } else {
                    copies_wait(STAGES - 2);
                    stage = stage + 1 == STAGES ? 0 : stage + 1;
                }
                MULTIPLY_STEP(k_step % 2, (k_step + 1) % 2,
                              (k_step + 1) % K_STEPS);
            }
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
        if (p.flags & PROMOTES_IN_MEMORY)
            sums_promote(sum, promoted, begin_tile == 0, end_tile == count);
#endif
    }
    copies_wait(0);
    store_tile(c, partial, OLD(p), bias, &tile, sum, (__local float *)shared,
               a_scales,
               b_scales, &p);
}
