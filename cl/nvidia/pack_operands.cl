/* SPDX-License-Identifier: Apache-2.0 */
/* Packs GEMM operands for gemm_mma.cl and gemm_wgmma.cl into blocks of
 * PACKED_ROWS rows by 128 bytes of k, swizzled as in local memory. Neighbouring
 * blocks along k are neighbours in memory. Elements past the edges are 0.
 *
 * For fp16x3, each row is multiplied by a power of two, its scale, so that the
 * exponent of its largest element is SCALED_EXPONENT. Each element is then
 * split into two f16 numbers, a high part and the rest. Elements of at least
 * 2^-17 times the row's largest element are as precise as f32. Smaller elements
 * have an error of at most 2^-40 times the largest element.
 *
 * For 3xtf32, an element is multiplied by TF32_SPLIT_SCALE and split into two
 * TF32 numbers with 11 significant bits. If the element or this product is
 * infinite, the result is NaN. */
#include "common/params.cl"

/* Layouts of operands `a` (index 0) and `b` (index 1), also when packed. */
struct pack_params {
    uint64_t from[2];
    int64_t row[2], depth[2], batch[2]; /* strides of rows, k and batches */
    uint64_t to[2];                     /* offset in units of 16 bytes */
    uint64_t to_batch[2], scales[2];    /* batch stride, offset of the scales */
    uint64_t maxima[2];                 /* offset in the buffer of row maxima */
    uint32_t rows[2], blocks[2];        /* a block has PACKED_ROWS rows */
    uint32_t is_vec4[2]; /* 1 if one load reads 16 bytes along k */
    uint32_t batches[2];
    uint32_t k, k_tiles, k_ranges, k_per_range; /* ranges of k for the maxima */
    uint32_t rows_per_group;                    /* for pack_register_resident */
};
PARAMS_SIZE(pack_params, 184);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"
#include "nvidia/operand_formats.cl"

#define SCALED_EXPONENT 14
/* Number of rows per work-group of pack_row_maxima. */
#define MAXIMA_ROWS 32

#if ELEMENT_BYTES == 4
typedef float source_t;
#else
typedef ushort source_t;
#endif
/* A read loads ELEMENTS_PER_16B elements. They are stored as two chunks if
 * elements are split, otherwise as one chunk. */
#define READS_PER_ROW                                                          \
    (FORMAT == FORMAT_FP16X3 || FORMAT == FORMAT_3XTF32 ? 4 : 8)
#define ELEMENTS_PER_16B                                                       \
    (FORMAT == FORMAT_TF32 || FORMAT == FORMAT_3XTF32 ? 4 : 8)

#if FORMAT == FORMAT_FP16X3
/* ---- scales of rows ---- */

static inline uint magnitude_bits(float x)
{
    return as_uint(x) & 0x7fffffffu;
}

static inline uint row_maximum_along_k(__global const float *from, uint begin,
                                       uint end, uint is_vec4)
{
    uint maximum = 0, lane = get_local_id(0) % 32;
    /* Elements after the last complete vector are loaded one by one. */
    const uint vec4_end = is_vec4 ? end / 4 * 4 : begin;
    for (uint k = begin + lane * 4; k < vec4_end; k += 128) {
        float4 x = *(__global const float4 *)(from + k);
        maximum =
            max(max(maximum, max(magnitude_bits(x.s0), magnitude_bits(x.s1))),
                max(magnitude_bits(x.s2), magnitude_bits(x.s3)));
    }
    for (uint k = vec4_end + lane; k < end; k += 32)
        maximum = max(maximum, magnitude_bits(from[k]));
    return maximum;
}

/* Finds the largest magnitude of each row in a range of k, as f32 bits. */
static inline void row_maxima_find(__global uint *maxima,
                                   __global const float *from, long row_step,
                                   long depth_step, uint rows, uint first,
                                   uint begin, uint end, uint is_vec4,
                                   __local uint *shared)
{
    uint id = get_local_id(0), lane = id % MAXIMA_ROWS, warp = id / MAXIMA_ROWS;
    bool is_k_major = depth_step == 1;
    const uint warps = GROUP_SIZE / MAXIMA_ROWS;
    if (is_k_major) {
        for (uint row = warp; row < MAXIMA_ROWS; row += warps)
            shared[row * (MAXIMA_ROWS + 1) + lane] =
                first + row < rows
                    ? row_maximum_along_k(from + (long)(first + row) * row_step,
                                          begin, end, is_vec4)
                    : 0;
    } else {
        uint maximum = 0;
        if (first + lane < rows) {
            from += (long)(first + lane) * row_step;
#pragma unroll 8
            for (uint k = begin + warp; k < end; k += warps)
                maximum =
                    max(maximum, magnitude_bits(from[(long)k * depth_step]));
        }
        shared[lane * (MAXIMA_ROWS + 1) + warp] = maximum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < MAXIMA_ROWS) {
        uint maximum = 0;
        for (uint i = 0; i < (is_k_major ? MAXIMA_ROWS : warps); ++i)
            maximum = max(maximum, shared[id * (MAXIMA_ROWS + 1) + i]);
        maxima[first + id] = maximum;
    }
}

#ifdef BUILD_pack_row_maxima
KERNEL void pack_row_maxima(__global uint *maxima, __global const float *a,
                            __global const float *b, const struct pack_params p)
{
    if (p.k_tiles == 0)
        return;
    __local uint shared[MAXIMA_ROWS * (MAXIMA_ROWS + 1)];
    const uint parts = PACKED_ROWS / MAXIMA_ROWS;
    uint group = get_group_id(0), first = p.blocks[0] * parts;
    uint groups = first * p.batches[0] * p.k_ranges;
#define MAXIMA(from_, o)                                                       \
    do {                                                                       \
        uint columns = p.blocks[o] * parts;                                    \
        uint plane = group / columns, at = group % columns * MAXIMA_ROWS;      \
        uint batch = plane / p.k_ranges, range = plane % p.k_ranges;           \
        row_maxima_find(                                                       \
            maxima + p.maxima[o] + (ulong)plane * p.blocks[o] * PACKED_ROWS,   \
            (from_) + (long)p.from[o] + (long)batch * p.batch[o], p.row[o],    \
            p.depth[o], p.rows[o], at, range * p.k_per_range,                  \
            min(p.k, (range + 1) * p.k_per_range), p.is_vec4[o],               \
            shared);                                                           \
    } while (0)
    if (group < groups) {
        MAXIMA(a, 0);
    } else {
        group -= groups;
        MAXIMA(b, 1);
    }
}
#endif

/* Returns the exponent of the power of two that undoes a row's scaling. */
static inline int scale_exponent_of(uint maximum)
{
    if (maximum >= 0x7f800000u)
        return SCALE_NOT_FINITE;
    if (maximum < 0x800000u)
        return maximum == 0 ? 0
                            : 31 - (int)clz(maximum) - 149 - SCALED_EXPONENT;
    return (int)(maximum >> 23) - 127 - SCALED_EXPONENT;
}

#ifdef EMULATED
ushort f16_from_float(float x);
float f16_to_float(ushort x);
#else
static inline ushort f16_from_float(float x)
{
    ushort out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}
static inline float f16_to_float(ushort x)
{
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x));
    return out;
}
#endif
#endif

/* ---- rows ---- */

#define UNPACK_VEC4(out, v)                                                    \
    (out)[0] = (v).s0, (out)[1] = (v).s1, (out)[2] = (v).s2, (out)[3] = (v).s3;

/* Loads the chunk of a row that begins at k. Missing elements are 0. */
static inline void elements_read(source_t *out, __global const source_t *from,
                                 long row_step, long depth_step, uint row,
                                 uint rows, uint k, uint end, uint is_vec4)
{
    from += (long)row * row_step + (long)k * depth_step;
    if (is_vec4 && row < rows && k + ELEMENTS_PER_16B <= end) {
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
        ushort8 x = *(__global const ushort8 *)from;
        UNPACK_VEC4(out, x.lo)
        UNPACK_VEC4(out + 4, x.hi)
#else
#pragma unroll
        for (uint i = 0; i < ELEMENTS_PER_16B; i += 4) {
            float4 x = *(__global const float4 *)(from + i);
            UNPACK_VEC4(out + i, x)
        }
#endif
        return;
    }
    REPEAT (i, ELEMENTS_PER_16B) {
        out[i] = 0;
        if (row < rows && k + i < end)
            out[i] = from[(long)i * depth_step];
    }
}

#if FORMAT == FORMAT_FP16X3
static inline void fp16_pair_make(uint4 *out_high, uint4 *out_low,
                                  const source_t *x, int scale)
{
    int half_exponent = -scale / 2;
    float factor1 = as_float((half_exponent + 127) << 23);
    float factor2 = as_float((-scale - half_exponent + 127) << 23);
    uint high[4], low[4];
    REPEAT (i, 4) {
        float even = x[i * 2] * factor1 * factor2,
              odd = x[i * 2 + 1] * factor1 * factor2;
        ushort even_high = f16_from_float(even), odd_high = f16_from_float(odd);
        high[i] = even_high | (uint)odd_high << 16;
        low[i] = f16_from_float(even - f16_to_float(even_high)) |
                 (uint)f16_from_float(odd - f16_to_float(odd_high)) << 16;
    }
    *out_high = (uint4)(high[0], high[1], high[2], high[3]);
    *out_low = (uint4)(low[0], low[1], low[2], low[3]);
}
#endif

/* Stores a chunk of a row in a block, or two chunks if elements are split. */
static inline void chunk_store(__local uint4 *line, uint chunk, uint swizzle,
                               const source_t *x, int scale)
{
#if FORMAT == FORMAT_FP16X3
    uint4 high, low;
    fp16_pair_make(&high, &low, x, scale);
    line[chunk ^ swizzle] = high;
    line[(chunk + 4) ^ swizzle] = low;
#elif FORMAT == FORMAT_3XTF32
    uint high[4], low[4];
    REPEAT (i, 4) {
        high[i] = (as_uint(x[i] * TF32_SPLIT_SCALE) + 0x1000u) & 0xffffe000u;
        low[i] = as_uint(fma(x[i], TF32_SPLIT_SCALE, -as_float(high[i])));
    }
    line[chunk ^ swizzle] = (uint4)(high[0], high[1], high[2], high[3]);
    line[(chunk + 4) ^ swizzle] = (uint4)(low[0], low[1], low[2], low[3]);
#elif FORMAT == FORMAT_TF32
    line[chunk ^ swizzle] =
        (uint4)(tf32_round(as_uint(x[0])), tf32_round(as_uint(x[1])),
                tf32_round(as_uint(x[2])), tf32_round(as_uint(x[3])));
#else
    line[chunk ^ swizzle] =
        (uint4)(x[0] | (uint)x[1] << 16, x[2] | (uint)x[3] << 16,
                x[4] | (uint)x[5] << 16, x[6] | (uint)x[7] << 16);
#endif
}

#define READS_PER_ITEM (PACKED_ROWS * READS_PER_ROW / GROUP_SIZE)

/* Packs the k_tile at `k` of a block whose first row is `first`. `maxima` holds
 * k_ranges arrays with one maximum per row, `step` elements apart. */
static inline void block_pack(__global uint4 *to, __global const source_t *from,
                              long row_step, long depth_step, uint rows,
                              uint first, uint k, uint end, uint is_vec4,
                              __global const uint *maxima, uint k_ranges,
                              ulong step, __global int *scales_to,
                              __local int *scales, __local uint4 *block_image)
{
    uint id = get_local_id(0);
    bool is_k_major = depth_step == 1;
    source_t x[READS_PER_ITEM][ELEMENTS_PER_16B];
    REPEAT (i, READS_PER_ITEM) {
        uint item = i * GROUP_SIZE + id;
        uint row = is_k_major ? item / READS_PER_ROW : item % PACKED_ROWS;
        uint chunk = is_k_major ? item % READS_PER_ROW : item / PACKED_ROWS;
        elements_read(x[i], from, row_step, depth_step, first + row, rows,
                      k + chunk * ELEMENTS_PER_16B, end, is_vec4);
    }
#if FORMAT == FORMAT_FP16X3
    if (id < PACKED_ROWS) {
        uint maximum = 0;
#pragma unroll 8
        for (uint i = 0; i < k_ranges; ++i)
            maximum = max(maximum, maxima[i * step + first + id]);
        int scale = scale_exponent_of(maximum);
        scales[id] = scale == SCALE_NOT_FINITE ? 0 : scale;
        if (k == 0)
            scales_to[first + id] = scale;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    REPEAT (i, READS_PER_ITEM) {
        uint item = i * GROUP_SIZE + id;
        uint row = is_k_major ? item / READS_PER_ROW : item % PACKED_ROWS;
        uint chunk = is_k_major ? item % READS_PER_ROW : item / PACKED_ROWS;
        chunk_store(block_image + row * 8, chunk, row & 7, x[i], scales[row]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    REPEAT (i, PACKED_ROWS * 8 / GROUP_SIZE)
        to[i * GROUP_SIZE + id] = block_image[i * GROUP_SIZE + id];
}

#ifdef BUILD_pack_operands
KERNEL void pack_operands(__global uint4 *to, __global const source_t *a,
                          __global const source_t *b,
                          __global const uint *maxima,
                          const struct pack_params p)
{
    __local uint4 block_image[PACKED_ROWS * 8];
    __local int scales[PACKED_ROWS];
    if (p.k_tiles == 0)
        return;
    uint group = get_group_id(0);
    uint groups = p.blocks[0] * p.batches[0] * p.k_tiles;
#define PACK(from_, o)                                                         \
    do {                                                                       \
        uint k_tile = group % p.k_tiles, plane = group / p.k_tiles;            \
        uint block = plane % p.blocks[o], batch = plane / p.blocks[o];         \
        __global uint4 *to_ = to + p.to[o] + batch * p.to_batch[o];            \
        ulong step = (ulong)p.blocks[o] * PACKED_ROWS;                         \
        block_pack(                                                            \
            to_ + ((ulong)block * p.k_tiles + k_tile) * PACKED_ROWS * 8,       \
            (from_) + (long)p.from[o] + (long)batch * p.batch[o], p.row[o],    \
            p.depth[o], p.rows[o], block * PACKED_ROWS,                        \
            k_tile * (READS_PER_ROW * ELEMENTS_PER_16B), p.k, p.is_vec4[o],    \
            maxima + p.maxima[o] + batch * p.k_ranges * step, p.k_ranges,      \
            step, (__global int *)(to_ + p.scales[o]), scales, block_image);   \
    } while (0)
    if (group < groups) {
        PACK(a, 0);
    } else {
        group -= groups;
        PACK(b, 1);
    }
}
#endif

#if FORMAT == FORMAT_FP16X3
/* ---- register-resident rows ---- */

/* Number of octets (eight elements) that a work-item loads. */
#define OCTETS_PER_ITEM 8

/* Loads all octets of a work-item before the first one is used. */
static inline void octets_read(source_t (*out)[8],
                               __global const source_t *from, long depth_step,
                               uint first, uint step, uint end, bool is_vec4)
{
    if (is_vec4) {
        REPEAT (i, OCTETS_PER_ITEM) {
            uint k = first + i * step;
            float4 x = (float4)(0.0f), y = (float4)(0.0f);
            if (k < end) {
                x = *(__global const float4 *)(from + k);
                y = *(__global const float4 *)(from + k + 4);
            }
            UNPACK_VEC4(out[i], x)
            UNPACK_VEC4(out[i] + 4, y)
        }
        return;
    }
    REPEAT (i, OCTETS_PER_ITEM)
        REPEAT (j, 8) {
            uint k = first + i * step + j;
            out[i][j] = k < end ? from[(long)k * depth_step] : 0.0f;
        }
}

/* Returns the largest own_maximum of all work-items that load a row. `shared`
 * has room for GROUP_SIZE values. */
static inline uint row_max(uint own_maximum, uint row, uint lane, uint lanes,
                           __local uint *shared)
{
    uint maximum = 0;
    shared[row * lanes + lane] = own_maximum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < lanes; i += 4) {
        uint4 x = *(__local const uint4 *)(shared + row * lanes + i);
        maximum = max(maximum, max(max(x.s0, x.s1), max(x.s2, x.s3)));
    }
    return maximum;
}

/* Packs rows, beginning with row `first`, into the operand's blocks at `to`.
 * The work-group keeps the rows in registers. */
static inline void resident_rows_pack(
    __global uint4 *to, __global const source_t *from, long row_step,
    long depth_step, uint rows, uint first, uint rows_per_group, uint end,
    uint k_tiles, uint is_vec4, __global int *scales_to, __local uint *shared)
{
    uint id = get_local_id(0), lanes = GROUP_SIZE / rows_per_group;
    bool is_k_major = depth_step == 1;
    uint row = is_k_major ? id / lanes : id % rows_per_group;
    uint lane = is_k_major ? id % lanes : id / rows_per_group;
    source_t x[OCTETS_PER_ITEM][8];
    uint own_maximum = 0;
    octets_read(x, from + (long)(first + row) * row_step, depth_step, lane * 8,
                lanes * 8, first + row < rows ? end : 0,
                is_vec4 && is_k_major && end % 8 == 0);
    REPEAT (i, OCTETS_PER_ITEM)
        REPEAT (j, 8)
            own_maximum = max(own_maximum, magnitude_bits(x[i][j]));
    int scale =
        scale_exponent_of(row_max(own_maximum, row, lane, lanes, shared));
    if (lane == 0)
        scales_to[first + row] = scale;
    scale = scale == SCALE_NOT_FINITE ? 0 : scale;
    row += first;
    to += (ulong)(row / PACKED_ROWS) * k_tiles * (PACKED_ROWS * 8) +
          row % PACKED_ROWS * 8;
    REPEAT (i, OCTETS_PER_ITEM) {
        uint octet = i * lanes + lane, chunk = octet % 4;
        uint4 high, low;
        fp16_pair_make(&high, &low, x[i], scale);
        if (octet / 4 < k_tiles) {
            __global uint4 *line = to + (ulong)(octet / 4) * (PACKED_ROWS * 8);
            line[chunk ^ (row & 7)] = high;
            line[(chunk + 4) ^ (row & 7)] = low;
        }
    }
}

#ifdef BUILD_pack_register_resident
KERNEL void pack_register_resident(__global uint4 *to,
                                   __global const source_t *a,
                                   __global const source_t *b,
                                   const struct pack_params p)
{
    __local uint shared[GROUP_SIZE] __attribute__((aligned(16)));
    if (p.k_tiles == 0 || p.rows_per_group == 0)
        return;
    const uint parts = PACKED_ROWS / p.rows_per_group;
    uint group = get_group_id(0);
    uint groups = p.blocks[0] * parts * p.batches[0];
#define PACK_RESIDENT(from_, o)                                                \
    do {                                                                       \
        uint columns = p.blocks[o] * parts, batch = group / columns;           \
        __global uint4 *to_ = to + p.to[o] + batch * p.to_batch[o];            \
        resident_rows_pack(                                                    \
            to_, (from_) + (long)p.from[o] + (long)batch * p.batch[o],         \
            p.row[o], p.depth[o], p.rows[o],                                   \
            group % columns * p.rows_per_group, p.rows_per_group, p.k,         \
            p.k_tiles, p.is_vec4[o], (__global int *)(to_ + p.scales[o]),      \
            shared);                                                           \
    } while (0)
    if (group < groups) {
        PACK_RESIDENT(a, 0);
    } else {
        group -= groups;
        PACK_RESIDENT(b, 1);
    }
}
#endif
#endif

#endif
