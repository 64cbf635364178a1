/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM with the wgmma instruction on NVIDIA GPUs of compute capability 9.0. The
 * formats are f16, bf16, f32 rounded to TF32 (tf32), and f32 as the sum of two
 * f16 numbers (fp16x3) or of two TF32 numbers (3xtf32). pack_operands.cl packs
 * the operands, unless they are f16, bf16 or K-major TF32 and their lines have
 * whole chunks of 16 bytes. Unpacked TF32 operands are copied and rounded with
 * tensor maps.
 *
 * The driver's OpenCL compiler does not support sm_90a instructions. In the PTX
 * of the program, they and their operands are comments that begin with //@.
 * src/opencl/program/nvidia/ptx_rewrite.c turns the comments into instructions;
 * docs/kernels.md says why that is safe. Without this step, the file
 * compiles but multiplies nothing.
 *
 * Two producer warp groups copy k_tiles to local memory, up to STAGES ahead.
 * Two consumer warp groups each multiply half of the tile's rows. Tensor cores
 * truncate sums. For 3xtf32 and fp16x3, which add up the products low * high +
 * high * low + high * high, a sum on tensor cores therefore covers one k_tile.
 * There are two sets of registers for these sums: one is added to f32 totals
 * while tensor cores compute the other. For f16 and bf16, a sum covers
 * MAX_K_TILES_PER_SUM k_tiles. Truncation does not matter for TF32.
 *
 * If a row or column of a tile (fp16x3) or a sum (3xtf32) is not finite, the
 * work-group sets the tile's non-finite flag, and gemm_recompute.cl's kernel
 * computes the tile again afterwards. */
#ifndef TILE_M
#define TILE_M 128
#define TILE_N 128
#define A_LAYOUT LAYOUT_PACKED
#define B_LAYOUT LAYOUT_PACKED
#endif
#include "gemm/gemm_common.cl"
#include "nvidia/operand_formats.cl"
#include "nvidia/tensor_map.cl"

#define IS_SPLIT_F32 (FORMAT == FORMAT_FP16X3 || FORMAT == FORMAT_3XTF32)
#define LINE_BYTES 128
#if FORMAT == FORMAT_3XTF32
#define K_TILE 16
#elif FORMAT == FORMAT_FP16X3 || FORMAT == FORMAT_TF32
#define K_TILE 32
#else
#define K_TILE 64
#endif
#define A_STAGE (TILE_M * LINE_BYTES)
#define B_STAGE (TILE_N * LINE_BYTES)
#define ELEMENTS_PER_16B (16 / ELEMENT_BYTES)
/* Number of arrivals that a stage's barrier waits for: one per producer if
 * there are asynchronous copies, plus one for all bulk copies together. */
#define USES_TENSOR_MAP(layout)                                                \
    (FORMAT == FORMAT_TF32 && (layout) == LAYOUT_K_MAJOR)
#define USES_BULK_COPY(layout)                                                 \
    ((layout) == LAYOUT_PACKED || USES_TENSOR_MAP(layout))
#define ANY_TENSOR_MAP (USES_TENSOR_MAP(A_LAYOUT) || USES_TENSOR_MAP(B_LAYOUT))
#define ANY_BULK_COPY (USES_BULK_COPY(A_LAYOUT) || USES_BULK_COPY(B_LAYOUT))
#define ANY_ASYNC_COPY (!USES_BULK_COPY(A_LAYOUT) || !USES_BULK_COPY(B_LAYOUT))
#define ARRIVALS_PER_STAGE                                                     \
    ((ANY_ASYNC_COPY ? PRODUCERS : 0) + (ANY_BULK_COPY ? 1 : 0))
#define BULK_BYTES                                                             \
    ((USES_BULK_COPY(A_LAYOUT) ? A_STAGE : 0) +                                \
     (USES_BULK_COPY(B_LAYOUT) ? B_STAGE : 0))
/* Number of stages. All stages together take 192 KiB of local memory. */
#ifndef STAGES
#define STAGES (1536 / (TILE_M + TILE_N))
#endif
#define PACKED_BLOCK (PACKED_ROWS * LINE_BYTES)
/* Size in bytes of 64 elements of each line of an MN-major k_tile. */
#define MN_MAJOR_BLOCK (64 * LINE_BYTES)
#define MAX_K_TILES_PER_SUM 8
/* Number of 64-row blocks per warp group, and number of sums that a work-item
 * has in each block. */
#define BLOCKS (TILE_M / 128)
#define SUMS_PER_ITEM (TILE_N / 2)
/* A tile is stored in rounds. A warp stores 8 rows by 64 columns per round. */
#define OUT_COLUMNS 64
#define OUT_PITCH (OUT_COLUMNS + 8)
/* A work-item stores OUT_VEC4S vectors per round, OUT_ROW_STEP rows apart. */
#define OUT_VEC4S (8 * OUT_COLUMNS / 4 / 32)
#define OUT_ROW_STEP (8 / OUT_VEC4S)
#define OUT_ROUNDS (BLOCKS * 2 * (TILE_N / OUT_COLUMNS))
#define CONSUMERS 256
#define CONSUMER_WARPS (CONSUMERS / 32)
#define PRODUCERS 256
/* The maximum number of active work-groups. Each has two tensor maps.
 * src/opencl/plan/tensor_core_packing.c has the same limit. */
#define MAX_GROUPS 512u
/* Number of registers per producer and per consumer. A multiprocessor has 65536
 * registers for 256 producers and 256 consumers. The two numbers must therefore
 * add up to 256. */
#if ANY_ASYNC_COPY
#define PRODUCER_REGISTERS 56
#else
#define PRODUCER_REGISTERS 40
#endif
#define CONSUMER_REGISTERS (256 - PRODUCER_REGISTERS)

#include "nvidia/ptx_sm90a.cl"

/* ---- products of a k_tile ---- */

/* Multiplies a k_tile of elements split into high and low parts. The wgmma
 * descriptors `a` and `b`, plus 0 or 2, address the high parts. The same
 * descriptors plus 4 or 6 address the low parts. */
#define SPLIT_MULTIPLY(d, a, b)                                                \
    do {                                                                       \
        WGMMA_FENCE();                                                         \
        WGMMA(d, (a) + 4, b, 0);                                               \
        WGMMA(d, (a) + 6, (b) + 2, 1);                                         \
        WGMMA(d, a, (b) + 4, 1);                                               \
        WGMMA(d, (a) + 2, (b) + 6, 1);                                         \
        WGMMA(d, a, b, 1);                                                     \
        WGMMA(d, (a) + 2, (b) + 2, 1);                                         \
        WGMMA_COMMIT();                                                        \
    } while (0)
#define STEP_MULTIPLY(d, a, b, step, add)                                      \
    REPEAT (i_, BLOCKS)                                                        \
    WGMMA(d[i_],                                                               \
          (a) + i_ * (64 * LINE_BYTES >> 4) + (step)*STEP_DISTANCE(A_LAYOUT),  \
          (b) + (step)*STEP_DISTANCE(B_LAYOUT), add)
/* Multiplies a k_tile. `add` is 0 for the first k_tile of a sum, else 1. */
#define K_TILE_MULTIPLY(d, a, b, add)                                          \
    do {                                                                       \
        WGMMA_FENCE();                                                         \
        STEP_MULTIPLY(d, a, b, 0, add);                                        \
        REPEAT (step_, 3)                                                      \
            STEP_MULTIPLY(d, a, b, step_ + 1, 1);                              \
        WGMMA_COMMIT();                                                        \
    } while (0)
#define K_TILE_WAIT(d, pending)                                                \
    REPEAT (i_, BLOCKS)                                                        \
    WGMMA_WAIT(d[i_], pending)

/* Goes to the next stage. parity flips each time all stages have been used. */
#define STAGE_NEXT()                                                           \
    do {                                                                       \
        if (++stage == STAGES) {                                               \
            stage = 0;                                                         \
            parity ^= 1;                                                       \
        }                                                                      \
    } while (0)
#define STAGE_WAIT()                                                           \
    do {                                                                       \
        mbarrier_wait(full + stage * 8, parity);                               \
        if (ANY_ASYNC_COPY)                                                    \
            shared_memory_fence();                                             \
    } while (0)
#define STAGE_RELEASE(index) mbarrier_arrive(empty + (index)*8)
#define A_AT() (a_from + stage * (A_STAGE >> 4))
#define B_AT() (b_from + stage * (B_STAGE >> 4))
#define ADD_SUMS(d)                                                            \
    REPEAT (i_, SUMS_PER_ITEM)                                                 \
        sum[0][i_] += d[i_]

#if IS_SPLIT_F32
/* No product is in flight at the end of a loop iteration. Otherwise the
 * assembler inserts a wait after each instruction. */
#define MULTIPLY_ALL()                                                         \
    do {                                                                       \
        float even[SUMS_PER_ITEM], odd[SUMS_PER_ITEM];                         \
        REPEAT (i_, SUMS_PER_ITEM)                                             \
            even[i_] = odd[i_] = 0.0f;                                         \
        uint left = count;                                                     \
        for (; left > 1; left -= 2) {                                          \
            uint first = stage;                                                \
            STAGE_WAIT();                                                      \
            SPLIT_MULTIPLY(even, A_AT(), B_AT());                              \
            STAGE_NEXT();                                                      \
            uint second = stage;                                               \
            STAGE_WAIT();                                                      \
            SPLIT_MULTIPLY(odd, A_AT(), B_AT());                               \
            STAGE_NEXT();                                                      \
            WGMMA_WAIT(even, 1);                                               \
            STAGE_RELEASE(first);                                              \
            ADD_SUMS(even);                                                    \
            WGMMA_WAIT(odd, 0);                                                \
            STAGE_RELEASE(second);                                             \
            ADD_SUMS(odd);                                                     \
        }                                                                      \
        if (left > 0) {                                                        \
            STAGE_WAIT();                                                      \
            SPLIT_MULTIPLY(even, A_AT(), B_AT());                              \
            WGMMA_WAIT(even, 0);                                               \
            STAGE_RELEASE(stage);                                              \
            STAGE_NEXT();                                                      \
            ADD_SUMS(even);                                                    \
        }                                                                      \
    } while (0)
#elif FORMAT == FORMAT_TF32
#define MULTIPLY_ALL()                                                         \
    do {                                                                       \
        uint previous_stage = stage;                                           \
        STAGE_WAIT();                                                          \
        K_TILE_MULTIPLY(sum, A_AT(), B_AT(), 0);                               \
        STAGE_NEXT();                                                          \
        for (uint left = count; left > 1; --left) {                            \
            STAGE_WAIT();                                                      \
            K_TILE_MULTIPLY(sum, A_AT(), B_AT(), 1);                           \
            K_TILE_WAIT(sum, 1);                                               \
            STAGE_RELEASE(previous_stage);                                     \
            previous_stage = stage;                                            \
            STAGE_NEXT();                                                      \
        }                                                                      \
        K_TILE_WAIT(sum, 0);                                                   \
        STAGE_RELEASE(previous_stage);                                         \
    } while (0)
#else
/* Adds the products of the next k_tile to partial_sum. */
#define MULTIPLY_NEXT()                                                        \
    do {                                                                       \
        STAGE_WAIT();                                                          \
        K_TILE_MULTIPLY(partial_sum, A_AT(), B_AT(), 1);                       \
        K_TILE_WAIT(partial_sum, 1);                                           \
        STAGE_RELEASE(previous_stage);                                         \
        previous_stage = stage;                                                \
        STAGE_NEXT();                                                          \
    } while (0)
#define MULTIPLY_ALL()                                                         \
    do {                                                                       \
        float partial_sum[1][SUMS_PER_ITEM];                                   \
        REPEAT (i_, SUMS_PER_ITEM)                                             \
            partial_sum[0][i_] = 0.0f;                                         \
        uint left = count;                                                     \
        for (; left > 0;                                                       \
             left -= left < MAX_K_TILES_PER_SUM ? 1 : MAX_K_TILES_PER_SUM) {   \
            uint previous_stage = stage;                                       \
            STAGE_WAIT();                                                      \
            K_TILE_MULTIPLY(partial_sum, A_AT(), B_AT(), 0);                   \
            STAGE_NEXT();                                                      \
            if (left >= MAX_K_TILES_PER_SUM)                                   \
                REPEAT (k_tile_, MAX_K_TILES_PER_SUM - 1)                      \
                    MULTIPLY_NEXT();                                           \
            K_TILE_WAIT(partial_sum, 0);                                       \
            STAGE_RELEASE(previous_stage);                                     \
            ADD_SUMS(partial_sum[0]);                                          \
        }                                                                      \
    } while (0)
#endif

/* ---- copies ---- */

/* Copies a k_tile of packed rows: whole blocks, or a part of one block.
 * group_step is the number of bytes from one block of rows to the next. */
static inline void packed_copy(uint to, __global const uchar *from, uint rows,
                               ulong group_step, uint barrier_at)
{
    if (rows <= PACKED_ROWS)
        copy_bulk(to, from, rows * LINE_BYTES, barrier_at);
    else
        for (uint i = 0; i < rows / PACKED_ROWS; ++i)
            copy_bulk(to + i * PACKED_BLOCK, from + i * group_step,
                      PACKED_BLOCK, barrier_at);
}

/* Copies a k_tile of `size` rows and `depth` steps of k that are not packed.
 * Past the last row, the last row is copied, and the results are not stored. */
static inline void rows_copy(uint to, __global const uchar *from, uint layout,
                             uint size, uint rows, ulong line_bytes, uint depth)
{
    uint id = get_local_id(0) - CONSUMERS, line = id / 8, at = id % 8;
    uint bytes = at * ELEMENTS_PER_16B < depth
                     ? min((depth - at * ELEMENTS_PER_16B) * ELEMENT_BYTES, 16u)
                     : 0;
    to += line * LINE_BYTES + (at ^ (line & 7)) * 16;
    REPEAT (r, size * 8 / PRODUCERS) {
        uint row = r * (PRODUCERS / 8) + line;
        if (layout == LAYOUT_K_MAJOR) {
            copy_async(to + r * (PRODUCERS / 8 * LINE_BYTES),
                       from + min(row, rows - 1) * line_bytes + at * 16, bytes);
        } else {
            uint first = row / 64 * 64 + at * ELEMENTS_PER_16B;
            copy_async(to + r * (PRODUCERS / 8 * LINE_BYTES),
                       from + row % 64 * line_bytes +
                           min(first, rows - ELEMENTS_PER_16B) * ELEMENT_BYTES,
                       row % 64 < depth ? 16 : 0);
        }
    }
}

/* Returns the offset, in bytes, at which an operand's range of k begins. */
static inline ulong k_range_source(uint layout, uint first, ulong line_bytes,
                                   uint begin, uint k_tiles)
{
    if (layout == LAYOUT_PACKED)
        return ((ulong)(first / PACKED_ROWS) * k_tiles + begin / K_TILE) *
                   PACKED_BLOCK +
               first % PACKED_ROWS * LINE_BYTES;
    return layout == LAYOUT_MN_MAJOR
               ? begin * line_bytes + first * ELEMENT_BYTES
               : first * line_bytes + begin * ELEMENT_BYTES;
}
/* Returns the number of bytes from one k_tile to the next. */
static inline ulong k_tile_step(uint layout, ulong line_bytes)
{
    return layout == LAYOUT_PACKED     ? PACKED_BLOCK
           : layout == LAYOUT_MN_MAJOR ? K_TILE * line_bytes
                                       : LINE_BYTES;
}

/* Copies an operand's k_tile. A batch stride of 0 means one matrix. */
#define COPY_OPERAND(to, from, layout, size, first, rows, line_bytes, batch_,  \
                     map)                                                      \
    do {                                                                       \
        if (USES_TENSOR_MAP(layout)) {                                         \
            if (is_leader)                                                     \
                copy_tensor_box(to, map, k, first,                             \
                                (batch_) == 0 ? 0 : tile->batch,               \
                                full + stage * 8);                             \
        } else if (layout != LAYOUT_PACKED)                                    \
            rows_copy(to, from, layout, size, rows, line_bytes, depth);        \
        else if (is_leader)                                                    \
            packed_copy(to, from, size, block_row_step, full + stage * 8);     \
        (from) += k_tile_step(layout, line_bytes);                             \
    } while (0)

/* Copies a tile's k_tiles. stage_state is the next stage and its parity. */
INLINE void k_tiles_copy(uint a_to, uint b_to, __global const uchar *a,
                         __global const uchar *b,
                         __global const uint *tensor_maps,
                         const struct tile *tile, uint full, uint empty,
                         uint2 *stage_state, const struct gemm_params *p)
{
    const bool is_leader = get_local_id(0) == CONSUMERS;
    const uint first_m = tile->m * TILE_M, first_n = tile->n * TILE_N;
    const uint k_tiles = (p->k + K_TILE - 1) / K_TILE;
    const ulong block_row_step = (ulong)k_tiles * PACKED_BLOCK;
    const ulong a_line = p->a_ld * ELEMENT_BYTES,
                b_line = p->b_ld * ELEMENT_BYTES;
    uint stage = stage_state->s0, parity = stage_state->s1;
    a += k_range_source(A_LAYOUT, first_m, a_line, tile->begin, k_tiles);
    b += k_range_source(B_LAYOUT, first_n, b_line, tile->begin, k_tiles);
    if (!ANY_ASYNC_COPY && !is_leader)
        return;
    for (uint k = tile->begin; k < tile->end; k += K_TILE) {
        const uint depth = tile->end - k;
        mbarrier_wait(empty + stage * 8, parity);
        if (ANY_BULK_COPY && is_leader)
            mbarrier_arrive_expect(full + stage * 8, BULK_BYTES);
        COPY_OPERAND(a_to + stage * A_STAGE, a, A_LAYOUT, TILE_M, first_m,
                     p->m - first_m, a_line, p->a_batch, tensor_maps);
        COPY_OPERAND(b_to + stage * B_STAGE, b, B_LAYOUT, TILE_N, first_n,
                     p->n - first_n, b_line, p->b_batch,
                     tensor_maps + MAP_WORDS);
        if (ANY_ASYNC_COPY)
            copies_arrive(full + stage * 8);
        STAGE_NEXT();
    }
    *stage_state = (uint2)(stage, parity);
}

/* Writes this work-group's tensor maps. Called by only one producer. */
static inline void tensor_maps_write(__global uint *tensor_maps,
                                     __global const uchar *a,
                                     __global const uchar *b,
                                     const struct gemm_params *p)
{
    if (USES_TENSOR_MAP(A_LAYOUT))
        tensor_map_write(tensor_maps, (ulong)(a + p->a_offset * ELEMENT_BYTES),
                         p->k, p->m, p->batch, p->a_ld * ELEMENT_BYTES,
                         p->a_batch * ELEMENT_BYTES, TILE_M);
    if (USES_TENSOR_MAP(B_LAYOUT))
        tensor_map_write(tensor_maps + MAP_WORDS,
                         (ulong)(b + p->b_offset * ELEMENT_BYTES), p->k, p->n,
                         p->batch, p->b_ld * ELEMENT_BYTES,
                         p->b_batch * ELEMENT_BYTES, TILE_N);
    tensor_map_release();
}

static inline void tensor_maps_acquire(__global const uint *tensor_maps)
{
    if (USES_TENSOR_MAP(A_LAYOUT))
        tensor_map_acquire(tensor_maps);
    if (USES_TENSOR_MAP(B_LAYOUT))
        tensor_map_acquire(tensor_maps + MAP_WORDS);
}

/* ---- sums ---- */

#if FORMAT == FORMAT_FP16X3
/* Returns two factors whose product undoes a row's or column's scaling. If the
 * product of a row's and a column's factor is below 2^-126, the result is 0. */
static inline float2 scale_factors(int exponent)
{
    int half_exponent = exponent / 2;
    return (float2)(as_float((half_exponent + 127) << 23),
                    as_float((exponent - half_exponent + 127) << 23));
}

/* Each work-item loads the scale of one row or column of the tile. */
#define SCALES(operand, ld)                                                    \
    ((__global const int *)((operand) + (ld)*ELEMENT_BYTES))
static inline int scale_load(__global const uchar *a, __global const uchar *b,
                             const struct tile *tile,
                             const struct gemm_params *p)
{
    uint id = get_local_id(0);
    if (id < TILE_M)
        return SCALES(a, p->a_ld)[tile->m * TILE_M + id];
    if (id < TILE_M + TILE_N)
        return SCALES(b, p->b_ld)[tile->n * TILE_N + id - TILE_M];
    return 0;
}
#endif

static inline bool vec4_is_finite(float4 x)
{
    return isfinite(x.s0) && isfinite(x.s1) && isfinite(x.s2) &&
           isfinite(x.s3);
}

#if FORMAT == FORMAT_FP16X3
/* The scales of four columns. */
struct column_scale {
    float4 factor[2];
};

/* Returns the scales of the columns at `column`. */
INLINE struct column_scale column_scale_of(__local const float2 *scales,
                                           uint column)
{
    __local const float2 *from = scales + TILE_M + column;
    struct column_scale of;
    of.factor[0] = (float4)(from[0].s0, from[1].s0, from[2].s0, from[3].s0);
    of.factor[1] = (float4)(from[0].s1, from[1].s1, from[2].s1, from[3].s1);
    return of;
}

#define UNSCALE(four, y, column_scale)                                         \
    do {                                                                       \
        const float2 row_scale_ = scales[y];                                   \
        four = four * (row_scale_.s0 * (column_scale).factor[0]) *             \
               (row_scale_.s1 * (column_scale).factor[1]);                     \
    } while (0)
#elif FORMAT == FORMAT_3XTF32
#define UNSCALE(four, y, column_scale)                                         \
    do {                                                                       \
        is_finite = is_finite && vec4_is_finite(four);                         \
        four = four * (1.0f / TF32_SPLIT_SCALE) * (1.0f / TF32_SPLIT_SCALE);   \
    } while (0)
#else
#define UNSCALE(four, y, column_scale) ((void)0)
#endif

/* Stores the vectors that a work-item has in a round of store_tile. Uses a
 * loop, because the unrolled code would be too long. */
#define STORE_VEC4S(row, column)                                               \
    do {                                                                       \
        _Pragma("unroll 1") for (uint i_ = 0; i_ < OUT_VEC4S; ++i_)            \
        {                                                                      \
            const uint y_ = (row) + i_ * OUT_ROW_STEP + y, x_ = (column) + x;  \
            float4 four_ =                                                     \
                *(__local const float4 *)(own_vec4s +                          \
                                          i_ * OUT_ROW_STEP * OUT_PITCH);      \
            UNSCALE(four_, y_, column_scale_of(scales, x_));                   \
            tile_store_clipped(c, partial, old, bias, tile, y_, x_, four_, p); \
        }                                                                      \
    } while (0)

/* Stores the vectors that a work-item has in a round of store_tile, without a
 * loop. beta must be 0, and C_IS_VEC4 must be set. round_scale and round_bias
 * are those of the columns of the round. */
#define ACTIVATE(x) ACTIVATION(x, p->activation[0], p->activation[1])
#define STORE_VEC4S_FAST(row, column)                                          \
    do {                                                                       \
        float4 four_[OUT_VEC4S];                                               \
        REPEAT (i_, OUT_VEC4S)                                                 \
            four_[i_] =                                                        \
                *(__local const float4 *)(own_vec4s +                          \
                                          i_ * OUT_ROW_STEP * OUT_PITCH);      \
        REPEAT (i_, OUT_VEC4S) {                                               \
            const uint y_ = (row) + i_ * OUT_ROW_STEP + y, x_ = (column) + x;  \
            const float row_bias_ =                                            \
                has_row_bias && y_ < rows ? C_TO_F32(row_bias[y_]) : 0.0f;     \
            UNSCALE(four_[i_], y_, round_scale);                               \
            four_[i_] = p->alpha * four_[i_] + (round_bias + row_bias_);       \
            four_[i_] =                                                        \
                (float4)(ACTIVATE(four_[i_].s0), ACTIVATE(four_[i_].s1),       \
                         ACTIVATE(four_[i_].s2), ACTIVATE(four_[i_].s3));      \
            if (y_ < rows && x_ < columns)                                     \
                *(__global C_T4 *)(to +                                        \
                                   (long)((row) + i_ * OUT_ROW_STEP) *         \
                                       p->c_ld +                               \
                                   (column)) = C_FROM_F32_VEC4(four_[i_]);     \
        }                                                                      \
    } while (0)

/* Row and column of a round of store_tile, in the rows of a warp. */
#define ROUND_BLOCK(round) ((round) / 2 / (TILE_N / OUT_COLUMNS))
#define ROUND_ROW(round) (ROUND_BLOCK(round) * 64 + (round) % 2 * 8)
#define ROUND_COLUMN(round)                                                    \
    ((round) / 2 % (TILE_N / OUT_COLUMNS) * OUT_COLUMNS)
/* Stores the sums of a round in local memory. */
#define SHARE_SUMS(round)                                                      \
    REPEAT (j_, OUT_COLUMNS / 8)                                               \
        *(__local float2 *)(own_pairs + j_ * 8) = (float2)(                    \
            sum[ROUND_BLOCK(round)]                                            \
               [ROUND_COLUMN(round) / 2 + j_ * 4 + (round) % 2 * 2],           \
            sum[ROUND_BLOCK(round)]                                            \
               [ROUND_COLUMN(round) / 2 + j_ * 4 + (round) % 2 * 2 + 1])

/* Stores a tile through each warp's part of local memory to coalesce writes.
 * For 3xtf32, returns false if a sum is not finite. */
INLINE bool store_tile(__global C_T *c, __global float *partial,
                       __global const C_T *old, __global const C_T *bias,
                       const struct tile *tile,
                       float (*sum)[SUMS_PER_ITEM], __local float *out,
                       __local const float2 *scales,
                       const struct gemm_params *p)
{
    const uint id = get_local_id(0), lane = id % 32;
    const uint first = id / 128 * (TILE_M / 2) + id % 128 / 32 * 16;
    const uint y = lane / (OUT_COLUMNS / 4), x = lane % (OUT_COLUMNS / 4) * 4;
    const uint rows = p->m - tile->m * TILE_M;
    const uint columns = p->n - tile->n * TILE_N;
    const bool uses_fast_path =
        !tile->is_split && (p->flags & C_IS_VEC4) != 0 && p->beta == 0.0f;
    const bool has_row_bias = (p->flags & HAS_BIAS) != 0 && p->bias_row != 0;
    bool is_finite = true;
    float4 column_bias[TILE_N / OUT_COLUMNS];
    __local float *own_pairs = out + lane / 4 * OUT_PITCH + lane % 4 * 2;
    __local const float *own_vec4s = out + y * OUT_PITCH + x;
    __global C_T *to = c + (long)p->c_offset + (long)tile->batch * p->c_batch +
                       (long)(tile->m * TILE_M + y) * p->c_ld +
                       (tile->n * TILE_N + x);
    __global const C_T *row_bias = bias + p->bias_offset + tile->m * TILE_M;
    REPEAT (i, TILE_N / OUT_COLUMNS)
        column_bias[i] = (float4)(0.0f);
    if (uses_fast_path && (p->flags & HAS_BIAS) != 0 && p->bias_column != 0)
        REPEAT (i, TILE_N / OUT_COLUMNS)
            if (i * OUT_COLUMNS + x < columns) {
                __global const C_T *from =
                    bias + p->bias_offset + tile->n * TILE_N +
                    i * OUT_COLUMNS + x;
                column_bias[i] = (float4)(C_TO_F32(from[0]), C_TO_F32(from[1]),
                                          C_TO_F32(from[2]), C_TO_F32(from[3]));
            }
#if FORMAT == FORMAT_FP16X3
    struct column_scale column_scale[TILE_N / OUT_COLUMNS];
    REPEAT (i, TILE_N / OUT_COLUMNS)
        column_scale[i] = column_scale_of(scales, i * OUT_COLUMNS + x);
#endif
    if (uses_fast_path) {
        FOR_EACH_PART (now, OUT_ROUNDS) {
            float4 round_bias = (float4)(0.0f);
#if FORMAT == FORMAT_FP16X3
            struct column_scale round_scale;
            REPEAT_PART (now, round, OUT_ROUNDS)
                round_scale = column_scale[ROUND_COLUMN(round) / OUT_COLUMNS];
#endif
            REPEAT_PART (now, round, OUT_ROUNDS) {
                SHARE_SUMS(round);
                round_bias = column_bias[ROUND_COLUMN(round) / OUT_COLUMNS];
            }
            warp_sync();
            STORE_VEC4S_FAST(first + ROUND_ROW(now), ROUND_COLUMN(now));
            warp_sync();
        }
        return is_finite;
    }
    FOR_EACH_PART (now, OUT_ROUNDS) {
        REPEAT_PART (now, round, OUT_ROUNDS)
            SHARE_SUMS(round);
        warp_sync();
        STORE_VEC4S(first + ROUND_ROW(now), ROUND_COLUMN(now));
        warp_sync();
    }
    return is_finite;
}

/* A work-group computes every group_step-th tile. Producers copy the k_tiles of
 * the next tile while consumers store a tile. A work-group occupies a whole
 * multiprocessor, so each multiprocessor has one active work-group. */
KERNEL void gemm_wgmma(__global C_T *c, __global float *partial,
                       __global const uchar *a_all, __global const uchar *b_all,
                       __global const C_T *bias, __global uint *nonfinite_flags,
                       __global const C_T *old_base,
                       const struct gemm_params p)
{
    /* Aligned to 1024 bytes, because the swizzle depends on the address. */
    __local uchar shared[STAGES * (A_STAGE + B_STAGE)]
        __attribute__((aligned(1024)));
    __local float out[CONSUMERS / 32 * 8 * OUT_PITCH]
        __attribute__((aligned(16)));
    __local ulong barriers[2 * STAGES];
    __local float2 scales[FORMAT == FORMAT_FP16X3 ? TILE_M + TILE_N : 2]
        __attribute__((aligned(16)));
    const uint id = get_local_id(0);
    const uint a_to = address_of(shared), b_to = a_to + STAGES * A_STAGE;
    const uint full = address_of(barriers), empty = full + STAGES * 8;
    const uint groups = p.unsplit_tiles + p.split_tiles * p.splits;
    const uint group_step =
        min(min((uint)get_num_groups(0), multiprocessor_count()), MAX_GROUPS);
    __global uint *tensor_maps = nonfinite_flags + p.tensor_maps_offset +
                                 get_group_id(0) * (2 * MAP_WORDS);
    if (get_group_id(0) >= group_step)
        return;
    if (id == 0) {
        REPEAT (i, STAGES) {
            mbarrier_init(full + i * 8, ARRIVALS_PER_STAGE);
            mbarrier_init(empty + i * 8, CONSUMER_WARPS);
        }
        shared_memory_fence();
    }
    if (ANY_TENSOR_MAP && id == CONSUMERS)
        tensor_maps_write(tensor_maps, a_all, b_all, &p);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= CONSUMERS) {
        SET_REGISTERS("dec", PRODUCER_REGISTERS);
        uint2 stage_state = (uint2)(0, 1);
        if (ANY_TENSOR_MAP && id == CONSUMERS)
            tensor_maps_acquire(tensor_maps);
        for (uint at = get_group_id(0); at < groups; at += group_step) {
            const struct tile tile = tile_assign(at, &p);
            k_tiles_copy(a_to, b_to,
                         a_all + (p.a_offset + (ulong)tile.batch * p.a_batch) *
                                     ELEMENT_BYTES,
                         b_all + (p.b_offset + (ulong)tile.batch * p.b_batch) *
                                     ELEMENT_BYTES,
                         tensor_maps, &tile, full, empty, &stage_state, &p);
        }
        /* Local memory must not be freed while copies to it are in flight. */
        if (ANY_ASYNC_COPY)
            copies_end();
        return;
    }
    SET_REGISTERS("inc", CONSUMER_REGISTERS);
    const ulong a_from =
        matrix_descriptor(a_to + id / 128 * (A_STAGE / 2), A_LAYOUT);
    const ulong b_from = matrix_descriptor(b_to, B_LAYOUT);
    uint stage = 0, parity = 0;
    float sum[BLOCKS][SUMS_PER_ITEM];
    REPEAT (i, BLOCKS)
        REPEAT (j, SUMS_PER_ITEM)
            sum[i][j] = 0.0f;
    for (uint at = get_group_id(0); at < groups; at += group_step) {
        const struct tile tile = tile_assign(at, &p);
        const uint count = (tile.end - tile.begin + K_TILE - 1) / K_TILE;
        bool nonfinite = false;
#if FORMAT != FORMAT_TF32
        REPEAT (j, SUMS_PER_ITEM)
            sum[0][j] = 0.0f;
#endif
#if FORMAT == FORMAT_FP16X3
        const int scale =
            scale_load(a_all + (p.a_offset + (ulong)tile.batch * p.a_batch) *
                                   ELEMENT_BYTES,
                       b_all + (p.b_offset + (ulong)tile.batch * p.b_batch) *
                                   ELEMENT_BYTES,
                       &tile, &p);
#endif
        MULTIPLY_ALL();
#if FORMAT == FORMAT_FP16X3
        /* Wait until no consumer reads the scales of the previous tile. */
        consumers_wait();
        if (id < TILE_M + TILE_N)
            scales[id] = scale_factors(scale == SCALE_NOT_FINITE ? 0 : scale);
        nonfinite = consumers_any(scale == SCALE_NOT_FINITE);
#endif
        if (!nonfinite)
            nonfinite = !store_tile(c, partial, OLD(p), bias, &tile, sum,
                                    out + id / 32 * 8 * OUT_PITCH, scales, &p);
#if FORMAT == FORMAT_3XTF32
        nonfinite = consumers_any(nonfinite);
#endif
#if IS_SPLIT_F32
        if (id == 0)
            nonfinite_flags[p.nonfinite_flags_offset + at] = nonfinite;
#endif
    }
}
