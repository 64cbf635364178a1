/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on the tensor cores of NVIDIA GPUs from compute capability
 * 8.0 on: of f16, bf16, f32 rounded to TF32, and of f32 as pairs of halves.
 *
 * A slice of a tile's rows, 128 bytes along k, comes into local memory by
 * asynchronous copies, STAGES - 1 slices ahead.  Its pieces of 16 bytes lie in
 * an order in which eight neighbouring lines have the same piece on different
 * banks.  Copies, reads of local memory and products of a slice are one
 * sequence without a branch, which the driver's compiler then mixes.
 *
 * Of pairs, low high + high low + high high is summed.  Tensor cores truncate
 * when they add, so they add 16 steps of k only; those sums are added as f32.
 * Of f16 and bf16 all of k would be too much: after some slices an item saves
 * its sums, for which it has no registers, in global memory.
 * A tile with rows or columns that are not finite is left to gemm_simt.cl's
 * kernel, which runs after this one and computes those that are marked.
 */
/* A group's tile, and that of each warp in it. */
#ifndef TILE_M
#define TILE_M 128
#define TILE_N 128
#define WARP_M 64
#define WARP_N 32
#endif
#include "gemm/gemm_common.cl"
#include "nvidia/ptx_sm80.cl"

#ifndef A_LIES
#define A_LIES LIES_ALONG
#define B_LIES LIES_ALONG
#endif
#ifndef STAGES
#define STAGES 4
#endif

#if FORMAT == FORMAT_TF32 || FORMAT == FORMAT_PAIR
typedef uint element_t;
#define BYTES 4
#else
typedef ushort element_t;
#define BYTES 2
#endif
#define PIECE (16 / BYTES)
/* Whether an operand's elements are read one by one, or two neighbours as one:
 * mma's first operand x takes two of a step of k, and so b is x where it lies
 * so, and a is y; the sums are then those of the result turned. */
#if FORMAT == FORMAT_TF32
#define IN_WORDS(lies) ((lies) == LAYOUT_MN_MAJOR)
#else
#define IN_WORDS(lies) 0
#endif
#define TURNED IN_WORDS(B_LIES)
#define LINE 128
/* Steps of k in a slice, and what mma takes at a time. */
#if FORMAT == FORMAT_PAIR
#define SLICE 32
#define SLICE_PARTS 2
#define PLANES 2 /* high and low */
#else
#define SLICE (LINE / BYTES)
#define SLICE_PARTS 4
#define PLANES 1
#endif
/* The next slice's copies start in all parts but the last. */
#define COPYING (SLICE_PARTS - 1)
#define WARPS_M (TILE_M / WARP_M)
#if TURNED
#define X_BLOCKS (WARP_N / 16)
#define Y_BLOCKS (WARP_M / 8)
#else
#define X_BLOCKS (WARP_M / 16)
#define Y_BLOCKS (WARP_N / 8)
#endif
#define A_STAGE (TILE_M * LINE)
#define B_STAGE (TILE_N * LINE)
#define A_READS (A_STAGE / 16 / GROUP)
#define B_READS (B_STAGE / 16 / GROUP)
#define OUT_LINE (TILE_N + (TURNED ? 4 : 8))
/* Elements of a block of packed rows. */
#define PACKED_BLOCK (PACKED_ROWS * LINE / BYTES)

/* ---- from memory ---- */

/* Piece (line, at) of a slice whose lines have so many bytes. */
static inline uint place(uint line, uint at, uint bytes)
{
    return line * bytes + ((at ^ (line & 7)) * 16);
}
/* Of TF32 across k, of which a warp reads four lines of eight elements. */
static inline uint place_words(uint line, uint at, uint bytes)
{
    return line * bytes + ((at ^ ((line & 3) * 2)) * 16);
}

static inline uint piece_line(uint lies, uint size, uint read)
{
    uint piece = get_local_id(0) + read * GROUP;
    return lies == LAYOUT_MN_MAJOR ? piece / (size / PIECE) : piece / 8;
}
static inline uint piece_at(uint lies, uint size, uint read)
{
    uint piece = get_local_id(0) + read * GROUP;
    return lies == LAYOUT_MN_MAJOR ? piece % (size / PIECE) : piece % 8;
}
static inline uint piece_to(uint lies, uint size, uint read)
{
    if (lies == LIES_PACKED)
        return (get_local_id(0) + read * GROUP) * 16;
    if (IN_WORDS(lies))
        return place_words(piece_line(lies, size, read),
                           piece_at(lies, size, read), size * BYTES);
    return place(piece_line(lies, size, read), piece_at(lies, size, read),
                 lies == LAYOUT_MN_MAJOR ? size * BYTES : LINE);
}

/* Elements from the slice's first to piece read's.  Rows past the edge are the
 * last ones; nobody stores what comes of them. */
static inline uint piece_from(uint lies, uint size, uint read, uint ld,
                              uint rows, uint slices)
{
    uint line = piece_line(lies, size, read), at = piece_at(lies, size, read);
    if (lies == LIES_PACKED)
        return line / PACKED_ROWS * slices * PACKED_BLOCK +
               (line % PACKED_ROWS * 8 + at) * PIECE;
    if (lies == LAYOUT_MN_MAJOR)
        return line * ld + min(at * PIECE, rows - PIECE);
    return min(line, rows - 1) * ld + at * PIECE;
}

/* Of a slice of depth steps of k, the bytes of a piece. */
static inline uint piece_bytes(uint lies, uint size, uint read, uint depth)
{
    uint at = piece_at(lies, size, read) * PIECE;
    if (lies == LIES_PACKED)
        return 16;
    if (lies == LAYOUT_MN_MAJOR)
        return piece_line(lies, size, read) < depth ? 16 : 0;
    return at < depth ? min((depth - at) * BYTES, 16u) : 0;
}
/* Reads first to last of an operand's slice. */
#define COPY(first, last, to, from, pieces, lies, size, bytes)                 \
    _Pragma("unroll") for (uint r_ = (first); r_ < (last); ++r_)               \
        copy_async((to) + piece_to(lies, size, r_), (from) + pieces[r_], bytes)

/* The last slice of a chunk, of which there may be less than SLICE, comes
 * first, that the others need not look where k ends. */
#define FETCH_LAST()                                                           \
    do {                                                                       \
        const uint depth_ = end - begin - (count - 1) * SLICE;       \
        COPY(0, A_READS, a_base, a + (count - 1) * a_step, a_piece, A_LIES,    \
             TILE_M, piece_bytes(A_LIES, TILE_M, r_, depth_));                 \
        COPY(0, B_READS, b_base, b + (count - 1) * b_step, b_piece, B_LIES,    \
             TILE_N, piece_bytes(B_LIES, TILE_N, r_, depth_));                 \
    } while (0)
/* Part of parts of the next slice that is not yet on its way; where there is
 * none, zeros. */
#define FETCH(part_, parts_)                                                   \
    do {                                                                       \
        COPY(A_READS * (part_) / (parts_), A_READS * ((part_) + 1) / (parts_), \
             a_base + next * A_STAGE, a, a_piece, A_LIES, TILE_M,              \
             left > 0 ? 16 : 0);                                               \
        COPY(B_READS * (part_) / (parts_), B_READS * ((part_) + 1) / (parts_), \
             b_base + next * B_STAGE, b, b_piece, B_LIES, TILE_N,              \
             left > 0 ? 16 : 0);                                               \
        if ((part_) + 1 < (parts_))                                            \
            break;                                                             \
        copies_commit();                                                       \
        a += a_step;                                                           \
        b += b_step;                                                           \
        --left;                                                                \
        next = next + 1 == STAGES ? 0 : next + 1;                              \
    } while (0)

/* ---- from local memory ---- */

/* Where an item's part of the first blocks from row on lies in a stage.  As x,
 * lines along k are 16 rows, as y twice 8, of which one item's half along k is;
 * of lines across k, the other way round.  Of single elements, two that are
 * neighbours are in two halves of x's rows. */
static inline uint x_first(uint lies, uint row, uint size)
{
    uint lane = get_local_id(0) % 32;
    if (IN_WORDS(lies))
        return place_words(lane % 4, row / 4 + lane / 8, size * BYTES) +
               lane / 4 % 2 * 8;
    if (lies == LAYOUT_MN_MAJOR)
        return place(lane % 8 + lane / 16 * 8, row / 8 + lane / 8 % 2,
                     size * BYTES);
    return place(row + lane % 16, lane / 16, LINE);
}
static inline uint y_first(uint lies, uint row, uint size)
{
    uint lane = get_local_id(0) % 32;
    if (IN_WORDS(lies))
        return place_words(lane % 4, row / 4 + lane / 16, size * BYTES) +
               lane / 4 % 4 * 4;
    if (lies == LAYOUT_MN_MAJOR)
        return place(lane % 16, row / 8 + lane / 16, size * BYTES);
    return place(row + lane % 8 + lane / 16 * 8, lane / 8 % 2, LINE);
}

/* 16 rows by part, 32 bytes, of k, as mma wants them. */
static inline void rows_load(uint *out, uint first, uint lies, uint size,
                             uint rows, uint part)
{
    if (lies == LAYOUT_MN_MAJOR)
        load_turned(out, (first ^ (rows * 32)) + part * 16 * size * BYTES);
    else
        load_blocks(out, (first ^ (part * 32)) + rows * 16 * LINE);
}
static inline void x_rows_load(uint *out, uint first, uint lies, uint size,
                               uint rows, uint part)
{
    if (IN_WORDS(lies))
        REPEAT (later, 2)
            load_two(out + later * 2, (first ^ (rows * 64)) +
                                          (part * 8 + later * 4) * size *
                                              BYTES);
    else
        rows_load(out, first, lies, size, rows, part);
}
static inline void y_rows_load(uint *out, uint first, uint lies, uint size,
                               uint rows, uint part)
{
    if (IN_WORDS(lies))
        REPEAT (e, 4)
            out[e] = load_word((first ^ (rows * 64 + e / 2 * 32)) +
                               (part * 8 + e % 2 * 4) * size * BYTES);
    else
        rows_load(out, first, lies, size, rows, part);
}
#if TURNED
#define X_LOAD(out, i, part)                                                   \
    x_rows_load(out, b_from + stage * B_STAGE, B_LIES, TILE_N, i, part)
#define Y_LOAD(out, j, part)                                                   \
    y_rows_load(out, a_from + stage * A_STAGE, A_LIES, TILE_M, j, part)
#else
#define X_LOAD(out, i, part)                                                   \
    x_rows_load(out, a_from + stage * A_STAGE, A_LIES, TILE_M, i, part)
#define Y_LOAD(out, j, part)                                                   \
    y_rows_load(out, b_from + stage * B_STAGE, B_LIES, TILE_N, j, part)
#endif

/* ---- sums ---- */

#if FORMAT == FORMAT_TF32
/* What is packed was rounded there.  The rest as it is multiplied: as it is
 * read, the products would wait for it. */
static inline void words_round(uint *words, uint lies)
{
    if (lies != LIES_PACKED)
        REPEAT (e, 4)
            words[e] = tf32_of(words[e]);
}
#define ROUND(now, i)                                                          \
    words_round(x[now][0][i], TURNED ? B_LIES : A_LIES);                       \
    if (i == 0)                                                                \
        REPEAT (j, Y_BLOCKS / 2)                                               \
            words_round(y[now][0][j], TURNED ? A_LIES : B_LIES);
#else
#define ROUND(now, i)
#endif

/* Adds a part's products, while the next part's blocks are read. */
#if FORMAT == FORMAT_PAIR
#define MULTIPLY(now, then, after)                                             \
    REPEAT (j, Y_BLOCKS / 2) {                                                 \
        float some[2][X_BLOCKS][4];                                            \
        REPEAT (i, X_BLOCKS)                                                   \
            if (i % (Y_BLOCKS / 2) == j) {                                     \
                X_LOAD(x[then][0][i], i, after);                               \
                X_LOAD(x[then][1][i], i, after + 2);                           \
            }                                                                  \
        Y_LOAD(y[then][0][j], j, after);                                       \
        Y_LOAD(y[then][1][j], j, after + 2);                                   \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                block_product(some[h][i], x[now][1][i], y[now][0][j] + h * 2); \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                block_add(some[h][i], x[now][0][i], y[now][1][j] + h * 2);     \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                block_add(some[h][i], x[now][0][i], y[now][0][j] + h * 2);     \
        REPEAT (h, 2)                                                          \
            REPEAT (i, X_BLOCKS)                                               \
                REPEAT (e, 4)                                                  \
                    sum[i][j * 2 + h][e] += some[h][i][e];                     \
    }
#else
#define MULTIPLY(now, then, after)                                             \
    REPEAT (i, X_BLOCKS) {                                                     \
        X_LOAD(x[then][0][i], i, after);                                       \
        REPEAT (j, Y_BLOCKS / 2)                                               \
            if (j % X_BLOCKS == i)                                             \
                Y_LOAD(y[then][0][j], j, after);                               \
        ROUND(now, i)                                                          \
        REPEAT (j, Y_BLOCKS)                                                   \
            block_add(sum[i][j], x[now][0][i], y[now][0][j / 2] + j % 2 * 2);  \
    }
#endif

#if FORMAT == FORMAT_PAIR
/* The sums of a row and a column whose scales are to be taken back. */
static inline float unscaled(float x, int exponent)
{
    /* Below, all is 0. */
    exponent = max(exponent, -252);
    int some = exponent / 2;
    return x * as_float((some + 127) << 23) *
           as_float((exponent - some + 127) << 23);
}
static inline float4 four_unscaled(float4 x, int4 exponent)
{
    return (float4)(unscaled(x.s0, exponent.s0), unscaled(x.s1, exponent.s1),
                    unscaled(x.s2, exponent.s2), unscaled(x.s3, exponent.s3));
}
#define ONE_OF(from, row, column)                                              \
    unscaled(*(from), a_scales[row] + b_scales[column])
#define FOUR_OF(from, row, column)                                             \
    four_unscaled(*(__local const float4 *)(from),                             \
                  a_scales[row] +                                              \
                      *(__global const int4 *)(b_scales + (column)))
#else
#define ONE_OF(from, row, column) (*(from))
#define FOUR_OF(from, row, column) (*(__local const float4 *)(from))
#endif

/* Through local memory, 16 rows of each warp at a time, so that neighbours
 * store neighbours.  Sums that have an address would be no registers. */
INLINE void store_tile(__global C_T *c, __global float *partial,
                       __global const C_T *bias, const struct tile *tile,
                       float (*sum)[Y_BLOCKS][4], __local float *shared,
                       __global const int *a_scales,
                       __global const int *b_scales, const struct product *p)
{
    uint id = get_local_id(0), warp = id / 32, lane = id % 32;
    uint first_row = warp % WARPS_M * 16;
    uint first_column = warp / WARPS_M * WARP_N;
    REPEAT (i, WARP_M / 16) {
        barrier(CLK_LOCAL_MEM_FENCE);
#if TURNED
        REPEAT (j, X_BLOCKS)
            REPEAT (h, 4)
                *(__local float2 *)(shared +
                                    (first_row + h / 2 * 8 + lane % 4 * 2 +
                                     h % 2) *
                                        OUT_LINE +
                                    first_column + j * 16 + lane / 4 * 2) =
                    (float2)(sum[j][i * 2 + h / 2][h % 2],
                             sum[j][i * 2 + h / 2][h % 2 + 2]);
#else
        REPEAT (j, Y_BLOCKS)
            REPEAT (h, 2)
                *(__local float2 *)(shared +
                                    (first_row + (IN_WORDS(A_LIES)
                                                      ? lane / 4 * 2 + h
                                                      : h * 8 + lane / 4)) *
                                        OUT_LINE +
                                    first_column + j * 8 + lane % 4 * 2) =
                    (float2)(sum[i][j][h * 2], sum[i][j][h * 2 + 1]);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        bool fours = tile_in_fours(tile, p);
        for (uint at = fours ? id * 4 : id; at < WARPS_M * 16 * TILE_N;
             at += fours ? GROUP * 4 : GROUP) {
            uint row = at / TILE_N, column = at % TILE_N;
            __local const float *from = shared + row * OUT_LINE + column;
            row = row / 16 * WARP_M + i * 16 + row % 16;
            if (fours)
                store_four(c, partial, bias, tile, row, column,
                           FOUR_OF(from, row, column), p);
            else
                store_one(c, partial, bias, tile, row, column,
                          ONE_OF(from, row, column), p);
        }
    }
}

/* Where a chunk of an operand begins, and how far on its slices are. */
static inline long chunk_from(uint lies, uint first, long ld, uint begin,
                              uint slices)
{
    if (lies == LIES_PACKED)
        return ((long)(first / PACKED_ROWS) * slices + begin / SLICE) *
                   PACKED_BLOCK +
               first % PACKED_ROWS * (LINE / BYTES);
    return lies == LAYOUT_MN_MAJOR ? begin * ld + first : first * ld + begin;
}
static inline long slice_step(uint lies, long ld)
{
    return lies == LIES_PACKED   ? PACKED_BLOCK
           : lies == LAYOUT_MN_MAJOR ? SLICE * ld
                                 : SLICE;
}

#if FORMAT == FORMAT_PAIR
/* Whether all rows and columns of the tile are finite. */
static inline bool scales_finite(__global const int *a_scales,
                                 __global const int *b_scales,
                                 __local uint *missed)
{
    uint id = get_local_id(0);
    if (id == 0)
        *missed = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < TILE_M + TILE_N; i += GROUP)
        if ((i < TILE_M ? a_scales[i] : b_scales[i - TILE_M]) == NOT_FINITE)
            *missed = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    return *missed == 0;
}
#endif

#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
/* Adds the sums to those that the item saved, but for the first, and begins
 * anew; or ends with all of them. */
INLINE void sums_save(float (*sum)[Y_BLOCKS][4], __global float4 *saved,
                      bool first, bool last)
{
    REPEAT (i, X_BLOCKS)
        REPEAT (j, Y_BLOCKS) {
            uint at = (i * Y_BLOCKS + j) * GROUP;
            float4 x = (float4)(sum[i][j][0], sum[i][j][1], sum[i][j][2],
                                sum[i][j][3]);
            if (!first)
                x += saved[at];
            if (!last)
                saved[at] = x;
            sum[i][j][0] = last ? x.s0 : 0.0f;
            sum[i][j][1] = last ? x.s1 : 0.0f;
            sum[i][j][2] = last ? x.s2 : 0.0f;
            sum[i][j][3] = last ? x.s3 : 0.0f;
        }
}
#endif

KERNEL void tensor(__global C_T *c, __global float *partial,
                   __global const element_t *a, __global const element_t *b,
                   __global const C_T *bias, __global uint *marks,
                   const struct product p)
{
    /* rows_load changes bits of addresses, up to those of 128 bytes. */
    __local uint shared[STAGES * (A_STAGE + B_STAGE) / 4]
        __attribute__((aligned(256)));
    const uint a_base = address_of(shared);
    const uint b_base = a_base + STAGES * A_STAGE;
    const uint warp = get_local_id(0) / 32;
    const uint warp_m = warp % WARPS_M * WARP_M;
    const uint warp_n = warp / WARPS_M * WARP_N;
    struct tile tile = tile_of(get_group_id(0), &p);
    const uint begin = tile.begin, end = tile.end;
    const uint first_m = tile.m * TILE_M, first_n = tile.n * TILE_N;
    const uint slices = (p.k + SLICE - 1) / SLICE;
    __global const int *a_scales = 0, *b_scales = 0;
    a += (long)p.a_offset + (long)tile.batch * p.a_batch;
    b += (long)p.b_offset + (long)tile.batch * p.b_batch;
#if FORMAT == FORMAT_PAIR
    __local uint missed;
    a_scales = (__global const int *)(a + p.a_ld) + first_m;
    b_scales = (__global const int *)(b + p.b_ld) + first_n;
    const bool finite = scales_finite(a_scales, b_scales, &missed);
    if (get_local_id(0) == 0)
        marks[p.marks_offset + get_group_id(0)] = !finite;
    if (!finite)
        return;
#endif
    a += chunk_from(A_LIES, first_m, p.a_ld, begin, slices);
    b += chunk_from(B_LIES, first_n, p.b_ld, begin, slices);
    const long a_step = slice_step(A_LIES, p.a_ld);
    const long b_step = slice_step(B_LIES, p.b_ld);
    uint a_piece[A_READS], b_piece[B_READS];
    REPEAT (r, A_READS)
        a_piece[r] = piece_from(A_LIES, TILE_M, r, (uint)p.a_ld,
                                p.m - first_m, slices);
    REPEAT (r, B_READS)
        b_piece[r] = piece_from(B_LIES, TILE_N, r, (uint)p.b_ld,
                                p.n - first_n, slices);
#if TURNED
    const uint a_from = a_base + y_first(A_LIES, warp_m, TILE_M);
    const uint b_from = b_base + x_first(B_LIES, warp_n, TILE_N);
#else
    const uint a_from = a_base + x_first(A_LIES, warp_m, TILE_M);
    const uint b_from = b_base + y_first(B_LIES, warp_n, TILE_N);
#endif

    float sum[X_BLOCKS][Y_BLOCKS][4];
    REPEAT (i, X_BLOCKS)
        REPEAT (j, Y_BLOCKS)
            REPEAT (e, 4)
                sum[i][j][e] = 0.0f;

    const uint count = (end - begin + SLICE - 1) / SLICE;
    int left = (int)count - 1;
    uint stage = 0, next = 1;
    if (count > 0)
        FETCH_LAST();
    copies_commit();
    REPEAT (s, STAGES - 2)
        FETCH(0, 1);
    uint x[2][PLANES][X_BLOCKS][4], y[2][PLANES][Y_BLOCKS / 2][4];
    copies_wait(STAGES - 2);
    REPEAT (plane, PLANES) {
        REPEAT (i, X_BLOCKS)
            X_LOAD(x[0][plane][i], i, plane * 2);
        REPEAT (j, Y_BLOCKS / 2)
            Y_LOAD(y[0][plane][j], j, plane * 2);
    }
    uint stop = count;
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
    __global float4 *saved = (__global float4 *)(partial + p.saved_offset) +
                             (ulong)get_group_id(0) * (TILE_M * TILE_N / 4) +
                             get_local_id(0);
    for (uint begun = 0; begun < count; begun = stop) {
        stop = min(count, begun + max(p.promote, 1u));
#else
    {
        const uint begun = 0;
#endif
        for (uint slice = begun; slice < stop; ++slice)
            REPEAT (part, SLICE_PARTS) {
                if (part < COPYING) {
                    FETCH(part, COPYING);
                } else {
                    copies_wait(STAGES - 2);
                    stage = stage + 1 == STAGES ? 0 : stage + 1;
                }
                MULTIPLY(part % 2, (part + 1) % 2, (part + 1) % SLICE_PARTS);
            }
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
        if (p.flags & SAVES)
            sums_save(sum, saved, begun == 0, stop == count);
#endif
    }
    copies_wait(0);
    store_tile(c, partial, bias, &tile, sum, (__local float *)shared, a_scales,
               b_scales, &p);
}
