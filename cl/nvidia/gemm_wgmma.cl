/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products through wgmma, on NVIDIA GPUs of compute capability 9.0: of
 * f16, bf16, f32 rounded to TF32, and of f32 as pairs of halves or of TF32
 * numbers.  Operands are packed by pack_operands.cl, whose blocks lie as wgmma
 * wants them, unless they are halves, or lie along k, in whole pieces of
 * sixteen bytes; f32 that does comes by the copy engine, which rounds it.
 *
 * The driver's compiler does not know the instructions of sm_90a.  So they
 * stand in comments that begin with //@, with their operands, which get into
 * the program's PTX; src/opencl/program/nvidia/ptx_rewrite.c makes instructions
 * of them there, and docs/gemm-wgmma.md says how that is kept safe.  Without it
 * this file builds, and multiplies nothing.
 *
 * Two warp groups copy slices to local memory, STAGES ahead; two others have
 * half of the tile's rows each.  Of pairs, low high + high low + high high is
 * summed.  Tensor cores truncate when they add, so of pairs they add one slice
 * only, in one of two sets of registers; the other's sums meanwhile are added
 * as f32.  Of halves they add LONGEST slices; TF32's digits are too few for it
 * to matter.
 *
 * Of pairs of halves, a tile with rows or columns that are not finite is left
 * to gemm_simt.cl's kernel; of pairs of TF32 numbers, one whose sums are not
 * finite: the kernel that runs after this one computes the tiles that are
 * marked.
 */
#ifndef TILE_M
#define TILE_M 128
#define TILE_N 128
#endif
#include "gemm/gemm_common.cl"
#include "nvidia/packed_layout.cl"
#include "nvidia/tensor_map.cl"

#define IS_PAIR (FORMAT == FORMAT_PAIR || FORMAT == FORMAT_SPLIT)
#define LINE 128
#if FORMAT == FORMAT_SPLIT
#define SLICE 16
#elif FORMAT == FORMAT_PAIR || FORMAT == FORMAT_TF32
#define SLICE 32
#else
#define SLICE 64
#endif
#define A_STAGE (TILE_M * LINE)
#define B_STAGE (TILE_N * LINE)
#ifndef A_LIES
#define A_LIES LIES_PACKED
#define B_LIES LIES_PACKED
#endif
#define PIECE (16 / BYTES)
/* Barriers count the copies of all work-items that make some, and those of
 * blocks. */
#define IS_MAPPED(lies) (FORMAT == FORMAT_TF32 && (lies) == LIES_ALONG)
#define IS_BULK(lies) ((lies) == LIES_PACKED || IS_MAPPED(lies))
#define ANY_MAPPED (IS_MAPPED(A_LIES) || IS_MAPPED(B_LIES))
#define ANY_BULK (IS_BULK(A_LIES) || IS_BULK(B_LIES))
#define ANY_DIRECT (!IS_BULK(A_LIES) || !IS_BULK(B_LIES))
#define COPIES ((ANY_DIRECT ? COPIERS : 0) + (ANY_BULK ? 1 : 0))
#define BULK_BYTES                                                             \
    ((IS_BULK(A_LIES) ? A_STAGE : 0) + (IS_BULK(B_LIES) ? B_STAGE : 0))
/* As many as 192 KiB of local memory hold. */
#ifndef STAGES
#define STAGES (1536 / (TILE_M + TILE_N))
#endif
#define PACKED_BLOCK (PACKED_ROWS * LINE)
/* Sixty-four elements of all lines across k. */
#define ACROSS_BLOCK (64 * LINE)
#define LONGEST 8
/* Of a warp group, which has several blocks of 64 rows where it adds up in one
 * set of registers, and sums of an item in each. */
#define BLOCKS (TILE_M / 128)
#define SUMS (TILE_N / 2)
/* What a warp stores at a time: eight rows of so many columns. */
#define OUT_COLUMNS 64
#define OUT_LINE (OUT_COLUMNS + 8)
/* And an item of these: fours of lines so many rows apart. */
#define OUT_FOURS (8 * OUT_COLUMNS / 4 / 32)
#define OUT_ROWS (8 / OUT_FOURS)
#define OUT_ROUNDS (BLOCKS * 2 * (TILE_N / OUT_COLUMNS))
#define CONSUMERS 256
#define CONSUMER_WARPS (CONSUMERS / 32)
#define COPIERS 256
/* Groups at work, each with two maps: as in
 * src/opencl/plan/tensor_core_packing.c. */
#define MOST_GROUPS 512u
/* Together half of all registers, for half of the work-items. */
#if ANY_DIRECT
#define FEW_REGISTERS 56
#else
#define FEW_REGISTERS 40
#endif
#define MANY_REGISTERS (256 - FEW_REGISTERS)

#define REPEAT(i, count)                                                       \
    _Pragma("unroll") for (uint i = 0; i < (count); ++i)

#include "nvidia/ptx_sm90a.cl"

/* ---- a slice's products ---- */

/* There is one slice at least. */

/* Highs are at 0 and 2, lows at 4 and 6. */
#define PAIRS_MULTIPLY(d, a, b)                                                \
    do {                                                                       \
        MULTIPLY_BEGIN();                                                      \
        MULTIPLY(d, (a) + 4, b, 0);                                            \
        MULTIPLY(d, (a) + 6, (b) + 2, 1);                                      \
        MULTIPLY(d, a, (b) + 4, 1);                                            \
        MULTIPLY(d, (a) + 2, (b) + 6, 1);                                      \
        MULTIPLY(d, a, b, 1);                                                  \
        MULTIPLY(d, (a) + 2, (b) + 2, 1);                                      \
        MULTIPLY_COMMIT();                                                     \
    } while (0)
#define PART_MULTIPLY(d, a, b, part, add)                                      \
    REPEAT (i_, BLOCKS)                                                        \
        MULTIPLY(d[i_],                                                        \
                 (a) + i_ * (64 * LINE >> 4) + (part)*PART(A_LIES),            \
                 (b) + (part)*PART(B_LIES), add)
/* add: 0 or 1, whether d holds something yet. */
#define LINES_MULTIPLY(d, a, b, add)                                           \
    do {                                                                       \
        MULTIPLY_BEGIN();                                                      \
        PART_MULTIPLY(d, a, b, 0, add);                                        \
        REPEAT (part_, 3)                                                      \
            PART_MULTIPLY(d, a, b, part_ + 1, 1);                              \
        MULTIPLY_COMMIT();                                                     \
    } while (0)
#define LINES_WAIT(d, pending)                                                 \
    do {                                                                       \
        REPEAT (i_, BLOCKS)                                                    \
            MULTIPLY_WAIT(d[i_], pending);                                     \
    } while (0)

/* A stage, and which time it comes. */
#define STAGE_NEXT()                                                           \
    do {                                                                       \
        if (++stage == STAGES) {                                               \
            stage = 0;                                                         \
            parity ^= 1;                                                       \
        }                                                                      \
    } while (0)
#define STAGE_WAIT()                                                           \
    do {                                                                       \
        barrier_wait(full + stage * 8, parity);                                \
        if (ANY_DIRECT)                                                        \
            memory_show();                                                     \
    } while (0)
#define STAGE_DONE(which) barrier_arrive(empty + (which)*8)
#define A_AT() (a_from + stage * (A_STAGE >> 4))
#define B_AT() (b_from + stage * (B_STAGE >> 4))
#define SUMS_ADD(d)                                                            \
    REPEAT (i_, SUMS)                                                          \
        sum[0][i_] += d[i_]

#if IS_PAIR
/* Sets that are under way when the loop goes round would make the assembler
 * wait after each instruction. */
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        float even[SUMS], odd[SUMS];                                           \
        REPEAT (i_, SUMS)                                                      \
            even[i_] = odd[i_] = 0.0f;                                         \
        uint left = count;                                                     \
        for (; left > 1; left -= 2) {                                          \
            uint first = stage;                                                \
            STAGE_WAIT();                                                      \
            PAIRS_MULTIPLY(even, A_AT(), B_AT());                              \
            STAGE_NEXT();                                                      \
            uint second = stage;                                               \
            STAGE_WAIT();                                                      \
            PAIRS_MULTIPLY(odd, A_AT(), B_AT());                               \
            STAGE_NEXT();                                                      \
            MULTIPLY_WAIT(even, 1);                                            \
            STAGE_DONE(first);                                                 \
            SUMS_ADD(even);                                                    \
            MULTIPLY_WAIT(odd, 0);                                             \
            STAGE_DONE(second);                                                \
            SUMS_ADD(odd);                                                     \
        }                                                                      \
        if (left > 0) {                                                        \
            STAGE_WAIT();                                                      \
            PAIRS_MULTIPLY(even, A_AT(), B_AT());                              \
            MULTIPLY_WAIT(even, 0);                                            \
            STAGE_DONE(stage);                                                 \
            STAGE_NEXT();                                                      \
            SUMS_ADD(even);                                                    \
        }                                                                      \
    } while (0)
#elif FORMAT == FORMAT_TF32
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        uint before = stage;                                                   \
        STAGE_WAIT();                                                          \
        LINES_MULTIPLY(sum, A_AT(), B_AT(), 0);                                \
        STAGE_NEXT();                                                          \
        for (uint left = count; left > 1; --left) {                            \
            STAGE_WAIT();                                                      \
            LINES_MULTIPLY(sum, A_AT(), B_AT(), 1);                            \
            LINES_WAIT(sum, 1);                                                \
            STAGE_DONE(before);                                                \
            before = stage;                                                    \
            STAGE_NEXT();                                                      \
        }                                                                      \
        LINES_WAIT(sum, 0);                                                    \
        STAGE_DONE(before);                                                    \
    } while (0)
#else
/* One of LONGEST slices, after the first. */
#define NEXT_MULTIPLY()                                                        \
    do {                                                                       \
        STAGE_WAIT();                                                          \
        LINES_MULTIPLY(part, A_AT(), B_AT(), 1);                               \
        LINES_WAIT(part, 1);                                                   \
        STAGE_DONE(before);                                                    \
        before = stage;                                                        \
        STAGE_NEXT();                                                          \
    } while (0)
#define ALL_MULTIPLY()                                                         \
    do {                                                                       \
        float part[1][SUMS];                                                   \
        REPEAT (i_, SUMS)                                                      \
            part[0][i_] = 0.0f;                                                \
        uint left = count;                                                     \
        for (; left > 0; left -= left < LONGEST ? 1 : LONGEST) {               \
            uint before = stage;                                               \
            STAGE_WAIT();                                                      \
            LINES_MULTIPLY(part, A_AT(), B_AT(), 0);                           \
            STAGE_NEXT();                                                      \
            if (left >= LONGEST)                                               \
                REPEAT (slice_, LONGEST - 1)                                   \
                    NEXT_MULTIPLY();                                           \
            LINES_WAIT(part, 0);                                               \
            STAGE_DONE(before);                                                \
            SUMS_ADD(part[0]);                                                 \
        }                                                                      \
    } while (0)
#endif

/* ---- copies ---- */

/* A slice of packed rows: whole blocks, or a part of one.  step: from one
 * block of rows to the next. */
static inline void blocks_copy(uint to, __global const uchar *from, uint rows,
                               ulong step, uint barrier_at)
{
    if (rows <= PACKED_ROWS)
        copy_bulk(to, from, rows * LINE, barrier_at);
    else
        for (uint i = 0; i < rows / PACKED_ROWS; ++i)
            copy_bulk(to + i * PACKED_BLOCK, from + i * step, PACKED_BLOCK,
                      barrier_at);
}

/* A slice of size rows as they lie, of depth steps of k.  Rows past the edge
 * are the last ones; nobody stores what comes of them. */
static inline void lines_copy(uint to, __global const uchar *from, uint lies,
                              uint size, uint rows, ulong line_bytes,
                              uint depth)
{
    uint id = get_local_id(0) - CONSUMERS, line = id / 8, at = id % 8;
    uint bytes = at * PIECE < depth ? min((depth - at * PIECE) * BYTES, 16u)
                                    : 0;
    to += line * LINE + (at ^ (line & 7)) * 16;
    REPEAT (r, size * 8 / COPIERS) {
        uint row = r * (COPIERS / 8) + line;
        if (lies == LIES_ALONG) {
            copy_async(to + r * (COPIERS / 8 * LINE),
                       from + min(row, rows - 1) * line_bytes + at * 16, bytes);
        } else {
            uint first = row / 64 * 64 + at * PIECE;
            copy_async(to + r * (COPIERS / 8 * LINE),
                       from + row % 64 * line_bytes +
                           min(first, rows - PIECE) * BYTES,
                       row % 64 < depth ? 16 : 0);
        }
    }
}

/* Where an operand's rows from first on begin, and what comes after a slice. */
static inline ulong slices_at(uint lies, uint first, ulong line_bytes,
                              uint begin, uint slices)
{
    if (lies == LIES_PACKED)
        return ((ulong)(first / PACKED_ROWS) * slices + begin / SLICE) *
                   PACKED_BLOCK +
               first % PACKED_ROWS * LINE;
    return lies == LAYOUT_MN_MAJOR ? begin * line_bytes + first * BYTES
                               : first * line_bytes + begin * BYTES;
}
static inline ulong slice_step(uint lies, ulong line_bytes)
{
    return lies == LIES_PACKED   ? PACKED_BLOCK
           : lies == LAYOUT_MN_MAJOR ? SLICE * line_bytes
                                 : LINE;
}

/* batch: what lies between planes of the operand, 0 if all are one. */
#define OPERAND_COPY(to, from, lies, size, first, rows, line_bytes, batch_,    \
                     map)                                                      \
    do {                                                                       \
        if (IS_MAPPED(lies)) {                                                 \
            if (leads)                                                         \
                copy_box(to, map, k, first, (batch_) == 0 ? 0 : tile->batch,   \
                         full + stage * 8);                                    \
        } else if (lies != LIES_PACKED)                                        \
            lines_copy(to, from, lies, size, rows, line_bytes, depth);         \
        else if (leads)                                                        \
            blocks_copy(to, from, size, blocks_step, full + stage * 8);        \
        (from) += slice_step(lies, line_bytes);                                \
    } while (0)

/* A tile's slices, by the work-items that do not multiply; turn: the next
 * stage, and which time it comes. */
INLINE void slices_copy(uint a_to, uint b_to, __global const uchar *a,
                        __global const uchar *b, __global const uint *maps,
                        const struct tile *tile, uint full, uint empty,
                        uint2 *turn, const struct product *p)
{
    const bool leads = get_local_id(0) == CONSUMERS;
    const uint first_m = tile->m * TILE_M, first_n = tile->n * TILE_N;
    const uint slices = (p->k + SLICE - 1) / SLICE;
    const ulong blocks_step = (ulong)slices * PACKED_BLOCK;
    const ulong a_line = p->a_ld * BYTES, b_line = p->b_ld * BYTES;
    uint stage = turn->s0, parity = turn->s1;
    a += slices_at(A_LIES, first_m, a_line, tile->begin, slices);
    b += slices_at(B_LIES, first_n, b_line, tile->begin, slices);
    if (!ANY_DIRECT && !leads)
        return;
    for (uint k = tile->begin; k < tile->end; k += SLICE) {
        const uint depth = tile->end - k;
        barrier_wait(empty + stage * 8, parity);
        if (ANY_BULK && leads)
            barrier_expect(full + stage * 8, BULK_BYTES);
        OPERAND_COPY(a_to + stage * A_STAGE, a, A_LIES, TILE_M, first_m,
                     p->m - first_m, a_line, p->a_batch, maps);
        OPERAND_COPY(b_to + stage * B_STAGE, b, B_LIES, TILE_N, first_n,
                     p->n - first_n, b_line, p->b_batch, maps + MAP_WORDS);
        if (ANY_DIRECT)
            copies_arrive(full + stage * 8);
        STAGE_NEXT();
    }
    *turn = (uint2)(stage, parity);
}

/* This group's maps, by the work-item that starts its copies. */
static inline void maps_write(__global uint *maps, __global const uchar *a,
                              __global const uchar *b, const struct product *p)
{
    if (IS_MAPPED(A_LIES))
        map_write(maps, (ulong)(a + p->a_offset * BYTES), p->k, p->m,
                  p->batch, p->a_ld * BYTES, p->a_batch * BYTES, TILE_M);
    if (IS_MAPPED(B_LIES))
        map_write(maps + MAP_WORDS, (ulong)(b + p->b_offset * BYTES), p->k,
                  p->n, p->batch, p->b_ld * BYTES, p->b_batch * BYTES, TILE_N);
    maps_show();
}

static inline void maps_take(__global const uint *maps)
{
    if (IS_MAPPED(A_LIES))
        map_take(maps);
    if (IS_MAPPED(B_LIES))
        map_take(maps + MAP_WORDS);
}

/* ---- sums ---- */

#if FORMAT == FORMAT_PAIR
/* What takes a scale back, as the product of two: each product of a row's and a
 * column's is 2^-126 or more, or the result is 0. */
static inline float2 halves_of(int exponent)
{
    int some = exponent / 2;
    return (float2)(as_float((some + 127) << 23),
                    as_float((exponent - some + 127) << 23));
}

/* Of a row of the tile, or a column; every work-item has one. */
static inline int scale_read(__global const uchar *a, __global const uchar *b,
                             const struct tile *tile, const struct product *p)
{
    uint id = get_local_id(0);
    if (id < TILE_M)
        return ((__global const int *)(a + p->a_ld * BYTES))[tile->m * TILE_M +
                                                             id];
    if (id < TILE_M + TILE_N)
        return ((__global const int *)(b +
                                       p->b_ld * BYTES))[tile->n * TILE_N +
                                                         id - TILE_M];
    return 0;
}
#endif

static inline bool four_finite(float4 x)
{
    return isfinite(x.s0) && isfinite(x.s1) && isfinite(x.s2) &&
           isfinite(x.s3);
}

#if FORMAT == FORMAT_PAIR
#define RESCALED(four, y, column)                                              \
    do {                                                                       \
        const float2 by_ = scales[y];                                          \
        four = four * (by_.s0 * by_some[(column) / OUT_COLUMNS]) *             \
               (by_.s1 * by_rest[(column) / OUT_COLUMNS]);                     \
    } while (0)
#elif FORMAT == FORMAT_SPLIT
#define RESCALED(four, y, column)                                              \
    do {                                                                       \
        finite = finite && four_finite(four);                                  \
        four = four * (1.0f / SPLIT_SCALE) * (1.0f / SPLIT_SCALE);             \
    } while (0)
#else
#define RESCALED(four, y, column)                                              \
    do {                                                                       \
    } while (0)
#endif

/* What an item stores of a round, in any case: one four after the other, since
 * there is much code to each. */
#define FOURS_STORE(row, column)                                               \
    do {                                                                       \
        _Pragma("unroll 1") for (uint i_ = 0; i_ < OUT_FOURS; ++i_)            \
        {                                                                      \
            const uint y_ = (row) + i_ * OUT_ROWS + y, x_ = (column) + x;      \
            float4 four_ = *(__local const float4 *)(own_fours +               \
                                                     i_ * OUT_ROWS *           \
                                                         OUT_LINE);            \
            RESCALED(four_, y_, column);                                       \
            store_sums(c, partial, bias, tile, y_, x_, four_, p);              \
        }                                                                      \
    } while (0)

/* Of tiles of whole fours of c that is not read: all at once. */
#define FOURS_QUICK(row, column)                                               \
    do {                                                                       \
        float4 four_[OUT_FOURS];                                               \
        REPEAT (i_, OUT_FOURS)                                                 \
            four_[i_] = *(__local const float4 *)(own_fours +                  \
                                                  i_ * OUT_ROWS * OUT_LINE);   \
        REPEAT (i_, OUT_FOURS) {                                               \
            const uint y_ = (row) + i_ * OUT_ROWS + y, x_ = (column) + x;      \
            const float added_row_ =                                           \
                by_row && y_ < rows ? C_VALUE(row_bias[y_]) : 0.0f;            \
            RESCALED(four_[i_], y_, column);                                   \
            four_[i_] = p->alpha * four_[i_] +                                 \
                        (added[(column) / OUT_COLUMNS] + added_row_);          \
            four_[i_] = (float4)(ACTIVATION(four_[i_].s0, p->slope, 0.0f),     \
                                 ACTIVATION(four_[i_].s1, p->slope, 0.0f),     \
                                 ACTIVATION(four_[i_].s2, p->slope, 0.0f),     \
                                 ACTIVATION(four_[i_].s3, p->slope, 0.0f));    \
            if (y_ < rows && x_ < columns)                                     \
                *(__global C_T4 *)(to + (long)((row) + i_ * OUT_ROWS) *        \
                                            p->c_ld +                          \
                                   (column)) = C_ROUND4(four_[i_]);            \
        }                                                                      \
    } while (0)

/* Through local memory of each warp's, so that neighbours store neighbours.
 * Whether all sums were finite. */
INLINE bool store_tile(__global C_T *c, __global float *partial,
                       __global const C_T *bias, const struct tile *tile,
                       float (*sum)[SUMS], __local float *out,
                       __local const float2 *scales, const struct product *p)
{
    const uint id = get_local_id(0), lane = id % 32;
    const uint first = id / 128 * (TILE_M / 2) + id % 128 / 32 * 16;
    const uint y = lane / (OUT_COLUMNS / 4), x = lane % (OUT_COLUMNS / 4) * 4;
    const uint rows = p->m - tile->m * TILE_M;
    const uint columns = p->n - tile->n * TILE_N;
    const bool quick =
        !tile->parted && (p->flags & C_VECTOR) != 0 && p->beta == 0.0f;
    const bool by_row = (p->flags & HAS_BIAS) != 0 && p->bias_row != 0;
    bool finite = true;
    float4 added[TILE_N / OUT_COLUMNS];
    __local float *own = out + lane / 4 * OUT_LINE + lane % 4 * 2;
    __local const float *own_fours = out + y * OUT_LINE + x;
    __global C_T *to = c + (long)p->c_offset + (long)tile->batch * p->c_batch +
                       (long)(tile->m * TILE_M + y) * p->c_ld +
                       (tile->n * TILE_N + x);
    __global const C_T *row_bias = bias + p->bias_offset + tile->m * TILE_M;
    REPEAT (i, TILE_N / OUT_COLUMNS)
        added[i] = (float4)(0.0f);
    if (quick && (p->flags & HAS_BIAS) != 0 && p->bias_column != 0)
        REPEAT (i, TILE_N / OUT_COLUMNS)
            if (i * OUT_COLUMNS + x < columns) {
                __global const C_T *from =
                    bias + p->bias_offset + tile->n * TILE_N +
                    i * OUT_COLUMNS + x;
                added[i] = (float4)(C_VALUE(from[0]), C_VALUE(from[1]),
                                    C_VALUE(from[2]), C_VALUE(from[3]));
            }
#if FORMAT == FORMAT_PAIR
    float4 by_some[TILE_N / OUT_COLUMNS], by_rest[TILE_N / OUT_COLUMNS];
    REPEAT (i, TILE_N / OUT_COLUMNS) {
        __local const float2 *of = scales + TILE_M + i * OUT_COLUMNS + x;
        by_some[i] = (float4)(of[0].s0, of[1].s0, of[2].s0, of[3].s0);
        by_rest[i] = (float4)(of[0].s1, of[1].s1, of[2].s1, of[3].s1);
    }
#endif
    REPEAT (round, OUT_ROUNDS) {
        const uint block = round / 2 / (TILE_N / OUT_COLUMNS);
        const uint column = round / 2 % (TILE_N / OUT_COLUMNS) * OUT_COLUMNS;
        const uint row = first + block * 64 + round % 2 * 8;
        REPEAT (j, OUT_COLUMNS / 8) {
            const uint at = column / 2 + j * 4 + round % 2 * 2;
            *(__local float2 *)(own + j * 8) =
                (float2)(sum[block][at], sum[block][at + 1]);
        }
        warp_wait();
        if (quick)
            FOURS_QUICK(row, column);
        else
            FOURS_STORE(row, column);
        warp_wait();
    }
    return finite;
}

/* A group has every so manieth tile, so that the next one's slices are copied
 * while one is stored: as many groups as there are multiprocessors have work,
 * since one fills a multiprocessor. */
KERNEL void wgmma(__global C_T *c, __global float *partial,
                  __global const uchar *a_all, __global const uchar *b_all,
                  __global const C_T *bias, __global uint *marks,
                  const struct product p)
{
    /* Eight lines are put in order by their addresses. */
    __local uchar shared[STAGES * (A_STAGE + B_STAGE)]
        __attribute__((aligned(1024)));
    __local float out[CONSUMERS / 32 * 8 * OUT_LINE]
        __attribute__((aligned(16)));
    __local ulong barriers[2 * STAGES];
    __local float2 scales[FORMAT == FORMAT_PAIR ? TILE_M + TILE_N : 2]
        __attribute__((aligned(16)));
    const uint id = get_local_id(0);
    const uint a_to = address_of(shared), b_to = a_to + STAGES * A_STAGE;
    const uint full = address_of(barriers), empty = full + STAGES * 8;
    const uint groups = p.whole + p.parted * p.splits;
    const uint step =
        min(min((uint)get_num_groups(0), multiprocessors()), MOST_GROUPS);
    __global uint *maps =
        marks + p.maps_offset + get_group_id(0) * (2 * MAP_WORDS);
    if (get_group_id(0) >= step)
        return;
    if (id == 0) {
        REPEAT (i, STAGES) {
            barrier_start(full + i * 8, COPIES);
            barrier_start(empty + i * 8, CONSUMER_WARPS);
        }
        memory_show();
    }
    if (ANY_MAPPED && id == CONSUMERS)
        maps_write(maps, a_all, b_all, &p);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= CONSUMERS) {
        REGISTERS("dec", FEW_REGISTERS);
        uint2 turn = (uint2)(0, 1);
        if (ANY_MAPPED && id == CONSUMERS)
            maps_take(maps);
        for (uint at = get_group_id(0); at < groups; at += step) {
            const struct tile tile = tile_of(at, &p);
            slices_copy(
                a_to, b_to,
                a_all + (p.a_offset + (ulong)tile.batch * p.a_batch) * BYTES,
                b_all + (p.b_offset + (ulong)tile.batch * p.b_batch) * BYTES,
                maps, &tile, full, empty, &turn, &p);
        }
        /* Their memory is not another group's while they are under way. */
        if (ANY_DIRECT)
            copies_end();
        return;
    }
    REGISTERS("inc", MANY_REGISTERS);
    const ulong a_from = matrix_at(a_to + id / 128 * (A_STAGE / 2), A_LIES);
    const ulong b_from = matrix_at(b_to, B_LIES);
    uint stage = 0, parity = 0;
    float sum[BLOCKS][SUMS];
    REPEAT (i, BLOCKS)
        REPEAT (j, SUMS)
            sum[i][j] = 0.0f;
    for (uint at = get_group_id(0); at < groups; at += step) {
        const struct tile tile = tile_of(at, &p);
        const uint count = (tile.end - tile.begin + SLICE - 1) / SLICE;
        bool missed = false;
#if FORMAT != FORMAT_TF32
        REPEAT (j, SUMS)
            sum[0][j] = 0.0f;
#endif
#if FORMAT == FORMAT_PAIR
        const int scale = scale_read(
            a_all + (p.a_offset + (ulong)tile.batch * p.a_batch) * BYTES,
            b_all + (p.b_offset + (ulong)tile.batch * p.b_batch) * BYTES, &tile,
            &p);
#endif
        ALL_MULTIPLY();
#if FORMAT == FORMAT_PAIR
        /* Nobody needs the last tile's any more. */
        consumers_wait();
        if (id < TILE_M + TILE_N)
            scales[id] = halves_of(scale == NOT_FINITE ? 0 : scale);
        missed = consumers_any(scale == NOT_FINITE);
#endif
        if (!missed)
            missed = !store_tile(c, partial, bias, &tile, sum,
                                 out + id / 32 * 8 * OUT_LINE, scales, &p);
#if FORMAT == FORMAT_SPLIT
        missed = consumers_any(missed);
#endif
#if IS_PAIR
        if (id == 0)
            marks[p.marks_offset + at] = missed;
#endif
    }
}
