/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands as gemm_mma.cl and gemm_wgmma.cl read them: blocks of PACKED_ROWS
 * rows by 128 bytes of k, in the order in which they lie in local memory,
 * blocks along k side by side.  What lies past the edges is 0.
 *
 * Of pairs, each row is multiplied by a power of two that makes its largest
 * element's exponent TOP; each element is then a half and what that leaves,
 * another half.  They have f32's digits as far as 2^-17 of the row's largest
 * element, and below an error of 2^-40 of that at most.
 *
 * Of pairs of TF32 numbers, of 11 digits, an element is the nearest and what
 * that leaves.  An infinite one, and one that SPLIT_SCALE makes infinite, is
 * no number then.
 */
#include "common/indexing.cl"
#include "nvidia/packed_layout.cl"

/* An operand, and where it goes: its rows by k, for each batch. */
struct packing {
    ulong from[2];
    long row[2], depth[2], batch[2]; /* strides, in elements */
    ulong to[2];                     /* in 16 bytes */
    ulong to_batch[2], scales[2];    /* from batch to batch, and to scales */
    ulong maxima[2];                 /* in uints */
    uint rows[2], blocks[2];         /* of rows; of PACKED_ROWS of them */
    uint wide[2];                    /* 16 bytes along k are read as one */
    uint batches[2];
    uint k, slices, chunks, chunk; /* of k */
    uint held;                     /* rows of a group that keeps them */
};

#define TOP 14
/* Rows of a group that looks for their largest elements. */
#define MOST_ROWS 32

#if FORMAT == FORMAT_PAIR
#define ROW_PIECES 4 /* of eight elements, and so two pieces */
typedef float source_t;
#elif FORMAT == FORMAT_SPLIT
#define ROW_PIECES 4 /* of four elements, and so two pieces */
typedef float source_t;
#elif FORMAT == FORMAT_TF32
#define ROW_PIECES 8
typedef float source_t;
#else
#define ROW_PIECES 8
typedef ushort source_t;
#endif
#define PER_PIECE (FORMAT == FORMAT_TF32 || FORMAT == FORMAT_SPLIT ? 4 : 8)

#if FORMAT == FORMAT_PAIR
/* ---- scales ---- */

static inline uint size_of(float x)
{
    return as_uint(x) & 0x7fffffffu;
}

static inline uint largest_along(__global const float *from, uint begin,
                                 uint end, uint wide)
{
    uint most = 0, lane = get_local_id(0) % 32;
    /* What follows the last whole four may be nobody's. */
    const uint fours_end = wide ? end / 4 * 4 : begin;
    for (uint k = begin + lane * 4; k < fours_end; k += 128) {
        float4 x = *(__global const float4 *)(from + k);
        most = max(max(most, max(size_of(x.s0), size_of(x.s1))),
                   max(size_of(x.s2), size_of(x.s3)));
    }
    for (uint k = fours_end + lane; k < end; k += 32)
        most = max(most, size_of(from[k]));
    return most;
}

/* The largest magnitude of each row, as an integer, in each chunk of k. */
static inline void maxima_find(__global uint *maxima,
                               __global const float *from, long row_step,
                               long depth_step, uint rows, uint first,
                               uint begin, uint end, uint wide,
                               __local uint *shared)
{
    uint id = get_local_id(0), lane = id % MOST_ROWS, warp = id / MOST_ROWS;
    bool along = depth_step == 1;
    const uint warps = GROUP / MOST_ROWS;
    if (along) {
        for (uint row = warp; row < MOST_ROWS; row += warps)
            shared[row * (MOST_ROWS + 1) + lane] =
                first + row < rows
                    ? largest_along(from + (long)(first + row) * row_step,
                                    begin, end, wide)
                    : 0;
    } else {
        uint most = 0;
        if (first + lane < rows) {
            from += (long)(first + lane) * row_step;
#pragma unroll 8
            for (uint k = begin + warp; k < end; k += warps)
                most = max(most, size_of(from[(long)k * depth_step]));
        }
        shared[lane * (MOST_ROWS + 1) + warp] = most;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < MOST_ROWS) {
        uint most = 0;
        for (uint i = 0; i < (along ? MOST_ROWS : warps); ++i)
            most = max(most, shared[id * (MOST_ROWS + 1) + i]);
        maxima[first + id] = most;
    }
}

KERNEL void pack_maxima(__global uint *maxima, __global const float *a,
                        __global const float *b, const struct packing p)
{
    if (p.slices == 0)
        return;
    __local uint shared[MOST_ROWS * (MOST_ROWS + 1)];
    const uint parts = PACKED_ROWS / MOST_ROWS;
    uint group = get_group_id(0), first = p.blocks[0] * parts;
    uint groups = first * p.batches[0] * p.chunks;
#define MAXIMA(from_, o)                                                       \
    do {                                                                       \
        uint columns = p.blocks[o] * parts;                                    \
        uint plane = group / columns, at = group % columns * MOST_ROWS;        \
        uint batch = plane / p.chunks, chunk = plane % p.chunks;               \
        maxima_find(maxima + p.maxima[o] +                                     \
                        (ulong)plane * p.blocks[o] * PACKED_ROWS,              \
                    (from_) + (long)p.from[o] + (long)batch * p.batch[o],      \
                    p.row[o], p.depth[o], p.rows[o], at, chunk * p.chunk,      \
                    min(p.k, (chunk + 1) * p.chunk), p.wide[o], shared);       \
    } while (0)
    if (group < groups) {
        MAXIMA(a, 0);
    } else {
        group -= groups;
        MAXIMA(b, 1);
    }
}

/* The exponent that takes a row's scale back. */
static inline int scale_of(uint most)
{
    if (most >= 0x7f800000u)
        return NOT_FINITE;
    if (most < 0x800000u)
        return most == 0 ? 0 : 31 - (int)clz(most) - 149 - TOP;
    return (int)(most >> 23) - 127 - TOP;
}

#ifdef EMULATED
ushort half_of(float x);
float float_of(ushort x);
#else
static inline ushort half_of(float x)
{
    ushort out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}
static inline float float_of(ushort x)
{
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x));
    return out;
}
#endif
#endif

/* ---- rows ---- */

/* Elements of a row from k on, those past the edges 0. */
static inline void elements_read(source_t *out, __global const source_t *from,
                                 long row_step, long depth_step, uint row,
                                 uint rows, uint k, uint end, uint wide)
{
    from += (long)row * row_step + (long)k * depth_step;
    if (wide && row < rows && k + PER_PIECE <= end) {
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
        ushort8 x = *(__global const ushort8 *)from;
        out[0] = x.s0;
        out[1] = x.s1;
        out[2] = x.s2;
        out[3] = x.s3;
        out[4] = x.s4;
        out[5] = x.s5;
        out[6] = x.s6;
        out[7] = x.s7;
#else
#pragma unroll
        for (uint i = 0; i < PER_PIECE; i += 4) {
            float4 x = *(__global const float4 *)(from + i);
            out[i] = x.s0;
            out[i + 1] = x.s1;
            out[i + 2] = x.s2;
            out[i + 3] = x.s3;
        }
#endif
        return;
    }
#pragma unroll
    for (uint i = 0; i < PER_PIECE; ++i) {
        out[i] = 0;
        if (row < rows && k + i < end)
            out[i] = from[(long)i * depth_step];
    }
}

/* A piece's place in a block, and two pieces' where elements are pairs. */
#if FORMAT == FORMAT_PAIR
static inline void pair_make(uint4 *out_high, uint4 *out_low,
                             const source_t *x, int scale)
{
    int some = -scale / 2;
    float by = as_float((some + 127) << 23);
    float too = as_float((-scale - some + 127) << 23);
    uint high[4], low[4];
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
        float even = x[i * 2] * by * too, odd = x[i * 2 + 1] * by * too;
        ushort even_high = half_of(even), odd_high = half_of(odd);
        high[i] = even_high | (uint)odd_high << 16;
        low[i] = half_of(even - float_of(even_high)) |
                 (uint)half_of(odd - float_of(odd_high)) << 16;
    }
    *out_high = (uint4)(high[0], high[1], high[2], high[3]);
    *out_low = (uint4)(low[0], low[1], low[2], low[3]);
}

static inline void piece_write(__local uint4 *line, uint piece, uint turn,
                               const source_t *x, int scale)
{
    uint4 high, low;
    pair_make(&high, &low, x, scale);
    line[piece ^ turn] = high;
    line[(piece + 4) ^ turn] = low;
}
#elif FORMAT == FORMAT_SPLIT
static inline void piece_write(__local uint4 *line, uint piece, uint turn,
                               const source_t *x, int scale)
{
    uint high[4], low[4];
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
        high[i] = (as_uint(x[i] * SPLIT_SCALE) + 0x1000u) & 0xffffe000u;
        low[i] = as_uint(fma(x[i], SPLIT_SCALE, -as_float(high[i])));
    }
    line[piece ^ turn] = (uint4)(high[0], high[1], high[2], high[3]);
    line[(piece + 4) ^ turn] = (uint4)(low[0], low[1], low[2], low[3]);
}
#elif FORMAT == FORMAT_TF32
static inline void piece_write(__local uint4 *line, uint piece, uint turn,
                               const source_t *x, int scale)
{
    line[piece ^ turn] = (uint4)(tf32_of(as_uint(x[0])), tf32_of(as_uint(x[1])),
                                 tf32_of(as_uint(x[2])),
                                 tf32_of(as_uint(x[3])));
}
#else
static inline void piece_write(__local uint4 *line, uint piece, uint turn,
                               const source_t *x, int scale)
{
    line[piece ^ turn] = (uint4)(
        x[0] | (uint)x[1] << 16, x[2] | (uint)x[3] << 16,
        x[4] | (uint)x[5] << 16, x[6] | (uint)x[7] << 16);
}
#endif

#define ITEMS (PACKED_ROWS * ROW_PIECES / GROUP)

/* The block of rows from first on, of the slice from k on; maxima: of the first
 * chunk of k, chunks with step between them; scales_to: where the scales go. */
static inline void block_pack(__global uint4 *to, __global const source_t *from,
                              long row_step, long depth_step, uint rows,
                              uint first, uint k, uint end, uint wide,
                              __global const uint *maxima, uint chunks,
                              ulong step, __global int *scales_to,
                              __local int *scales, __local uint4 *image)
{
    uint id = get_local_id(0);
    bool along = depth_step == 1;
    source_t x[ITEMS][PER_PIECE];
#pragma unroll
    for (uint i = 0; i < ITEMS; ++i) {
        uint item = i * GROUP + id;
        uint row = along ? item / ROW_PIECES : item % PACKED_ROWS;
        uint piece = along ? item % ROW_PIECES : item / PACKED_ROWS;
        elements_read(x[i], from, row_step, depth_step, first + row, rows,
                      k + piece * PER_PIECE, end, wide);
    }
#if FORMAT == FORMAT_PAIR
    if (id < PACKED_ROWS) {
        uint most = 0;
#pragma unroll 8
        for (uint i = 0; i < chunks; ++i)
            most = max(most, maxima[i * step + first + id]);
        int scale = scale_of(most);
        scales[id] = scale == NOT_FINITE ? 0 : scale;
        if (k == 0)
            scales_to[first + id] = scale;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#pragma unroll
    for (uint i = 0; i < ITEMS; ++i) {
        uint item = i * GROUP + id;
        uint row = along ? item / ROW_PIECES : item % PACKED_ROWS;
        uint piece = along ? item % ROW_PIECES : item / PACKED_ROWS;
        piece_write(image + row * 8, piece, row & 7, x[i], scales[row]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < PACKED_ROWS * 8 / GROUP; ++i)
        to[i * GROUP + id] = image[i * GROUP + id];
}

KERNEL void pack(__global uint4 *to, __global const source_t *a,
                 __global const source_t *b, __global const uint *maxima,
                 const struct packing p)
{
    __local uint4 image[PACKED_ROWS * 8];
    __local int scales[PACKED_ROWS];
    if (p.slices == 0)
        return;
    uint group = get_group_id(0);
    uint groups = p.blocks[0] * p.batches[0] * p.slices;
#define PACK(from_, o)                                                         \
    do {                                                                       \
        uint slice = group % p.slices, plane = group / p.slices;               \
        uint block = plane % p.blocks[o], batch = plane / p.blocks[o];         \
        __global uint4 *to_ = to + p.to[o] + batch * p.to_batch[o];            \
        ulong step = (ulong)p.blocks[o] * PACKED_ROWS;                         \
        block_pack(to_ + ((ulong)block * p.slices + slice) * PACKED_ROWS * 8,  \
                   (from_) + (long)p.from[o] + (long)batch * p.batch[o],       \
                   p.row[o], p.depth[o], p.rows[o], block * PACKED_ROWS,       \
                   slice * (ROW_PIECES * PER_PIECE), p.k, p.wide[o],           \
                   maxima + p.maxima[o] + batch * p.chunks * step, p.chunks,   \
                   step, (__global int *)(to_ + p.scales[o]), scales, image);  \
    } while (0)
    if (group < groups) {
        PACK(a, 0);
    } else {
        group -= groups;
        PACK(b, 1);
    }
}

#if FORMAT == FORMAT_PAIR
/* ---- rows that a group keeps ---- */

/* Eights of a row that an item keeps. */
#define HELD 8

/* They are all read before one is used. */
static inline void eights_read(source_t (*out)[8],
                               __global const source_t *from, long depth_step,
                               uint first, uint step, uint end, bool wide)
{
    if (wide) {
#pragma unroll
        for (uint i = 0; i < HELD; ++i) {
            uint k = first + i * step;
            float4 x = (float4)(0.0f), y = (float4)(0.0f);
            if (k < end) {
                x = *(__global const float4 *)(from + k);
                y = *(__global const float4 *)(from + k + 4);
            }
            out[i][0] = x.s0;
            out[i][1] = x.s1;
            out[i][2] = x.s2;
            out[i][3] = x.s3;
            out[i][4] = y.s0;
            out[i][5] = y.s1;
            out[i][6] = y.s2;
            out[i][7] = y.s3;
        }
        return;
    }
#pragma unroll
    for (uint i = 0; i < HELD; ++i)
#pragma unroll
        for (uint j = 0; j < 8; ++j) {
            uint k = first + i * step + j;
            out[i][j] = k < end ? from[(long)k * depth_step] : 0.0f;
        }
}

/* The largest of the values that the items of a row have; GROUP of them are
 * shared, a row's side by side. */
static inline uint row_most(uint own, uint row, uint lane, uint lanes,
                            __local uint *shared)
{
    uint most = 0;
    shared[row * lanes + lane] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < lanes; i += 4) {
        uint4 x = *(__local const uint4 *)(shared + row * lanes + i);
        most = max(most, max(max(x.s0, x.s1), max(x.s2, x.s3)));
    }
    return most;
}

/* Held rows from first on; to: where the operand's blocks begin. */
static inline void rows_pack(__global uint4 *to, __global const source_t *from,
                             long row_step, long depth_step, uint rows,
                             uint first, uint held, uint end, uint slices,
                             uint wide, __global int *scales_to,
                             __local uint *shared)
{
    uint id = get_local_id(0), lanes = GROUP / held;
    bool along = depth_step == 1;
    uint row = along ? id / lanes : id % held;
    uint lane = along ? id % lanes : id / held;
    source_t x[HELD][8];
    uint own = 0;
    eights_read(x, from + (long)(first + row) * row_step, depth_step, lane * 8,
                lanes * 8, first + row < rows ? end : 0,
                wide && along && end % 8 == 0);
#pragma unroll
    for (uint i = 0; i < HELD; ++i)
#pragma unroll
        for (uint j = 0; j < 8; ++j)
            own = max(own, size_of(x[i][j]));
    int scale = scale_of(row_most(own, row, lane, lanes, shared));
    if (lane == 0)
        scales_to[first + row] = scale;
    scale = scale == NOT_FINITE ? 0 : scale;
    row += first;
    to += (ulong)(row / PACKED_ROWS) * slices * (PACKED_ROWS * 8) +
          row % PACKED_ROWS * 8;
#pragma unroll
    for (uint i = 0; i < HELD; ++i) {
        uint eight = i * lanes + lane, piece = eight % 4;
        uint4 high, low;
        pair_make(&high, &low, x[i], scale);
        if (eight / 4 < slices) {
            __global uint4 *line = to + (ulong)(eight / 4) * (PACKED_ROWS * 8);
            line[piece ^ (row & 7)] = high;
            line[(piece + 4) ^ (row & 7)] = low;
        }
    }
}

KERNEL void pack_held(__global uint4 *to, __global const source_t *a,
                      __global const source_t *b, const struct packing p)
{
    __local uint shared[GROUP] __attribute__((aligned(16)));
    if (p.slices == 0 || p.held == 0)
        return;
    const uint parts = PACKED_ROWS / p.held;
    uint group = get_group_id(0);
    uint groups = p.blocks[0] * parts * p.batches[0];
#define PACK_HELD(from_, o)                                                    \
    do {                                                                       \
        uint columns = p.blocks[o] * parts, batch = group / columns;           \
        __global uint4 *to_ = to + p.to[o] + batch * p.to_batch[o];            \
        rows_pack(to_, (from_) + (long)p.from[o] + (long)batch * p.batch[o],   \
                  p.row[o], p.depth[o], p.rows[o],                             \
                  group % columns * p.held, p.held, p.k, p.slices, p.wide[o],  \
                  (__global int *)(to_ + p.scales[o]), shared);                \
    } while (0)
    if (group < groups) {
        PACK_HELD(a, 0);
    } else {
        group -= groups;
        PACK_HELD(b, 1);
    }
}
#endif
