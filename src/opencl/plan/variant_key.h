/* SPDX-License-Identifier: Apache-2.0 */
/* Variant keys: a kernel with all facts on which its source and its compiler
 * options depend, except the device, coded in 64 bits.  Pure functions; any
 * thread. */
#ifndef TANDEM_OPENCL_PLAN_VARIANT_KEY_H
#define TANDEM_OPENCL_PLAN_VARIANT_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* The kernels of cl/. */
enum kernel_id {
    KERNEL_COPY_BUFFER = 0, /* none: clEnqueueCopyBuffer */
    KERNEL_ELEMENTWISE_CONTIGUOUS = 1,
    KERNEL_STRIDED = 2,
    KERNEL_ELEMENTWISE_TRANSPOSED = 3,
    KERNEL_TRANSPOSE_TILED = 4,
    KERNEL_GATHER = 5,
    KERNEL_OPTIMIZER = 6,
    KERNEL_REDUCE = 7,
    KERNEL_JOIN_SPLITS = 8,
    KERNEL_SOFTMAX = 9,
    KERNEL_EPILOGUE = 10,
    KERNEL_SOFTMAX_PART = 11,
    KERNEL_SOFTMAX_WRITE = 12,
    KERNEL_NORM = 13,
    KERNEL_NORM_PART = 14,
    KERNEL_NORM_WRITE = 15,
    KERNEL_PRODUCT = 16,
    KERNEL_JOIN_PARTS = 17,
    KERNEL_STRICT = 18,
    KERNEL_SKINNY = 19,
    KERNEL_JOIN_LANES = 20,
    KERNEL_MULTIPLY = 21,
    KERNEL_JOIN_TILES = 22,
    KERNEL_TENSOR = 23,
    KERNEL_PACK_MAXIMA = 24,
    KERNEL_PACK = 25,
    KERNEL_PAD = 26,
    KERNEL_WGMMA = 27,
    KERNEL_PACK_HELD = 28,
    KERNEL_REDUCE_JOINED = 29,
    KERNEL_IDS = 30
};

/* OpenCL C types, as they stand in a key. */
enum kernel_type {
    TYPE_FLOAT = 0,
    TYPE_INT = 1,
    TYPE_LONG = 2,
    TYPE_UCHAR = 3,
    TYPE_USHORT = 4,
    TYPE_UINT = 5,
    TYPE_ULONG = 6,
    TYPE_BOOL = 7, /* a uchar of 0 or 1 */
    TYPE_F16 = 8,  /* ushorts */
    TYPE_BF16 = 9
};

/* A variant of a kernel in 64 bits: everything that its source and options
 * depend on, but for the device. */
#define KEY_KERNEL(key) ((uint32_t)((key)&0xffu))
#define KEY_OP(key) ((uint32_t)((key) >> 8 & 0xffu))
#define KEY_TYPE(key, operand) \
    ((uint32_t)((key) >> (16 + 4 * (operand)) & 0xfu))
#define KEY_WIDE(key) ((uint32_t)((key) >> 32 & 1u))
#define KEY_TANH(key) ((uint32_t)((key) >> 33 & 1u))
#define KEY_GROUP_LOG2(key) ((uint32_t)((key) >> 34 & 0xfu))
#define KEY_HELD_LOG2(key) ((uint32_t)((key) >> 38 & 0x7u))
#define KEY_VECTOR(key) ((uint32_t)((key) >> 41 & 1u))
/* Of rows: enum rows_access. */
#define KEY_ACCESS(key) ((uint32_t)((key) >> 42 & 7u))
/* Of ROWS_STAGED, the elements of a row; of ROW_ACCESS_SECTOR_ALIGNED, the
 * fours that a work-item keeps, and how many of these share a row; of others,
 * 0. */
#define KEY_COUNT(key) ((uint32_t)((key) >> 45 & 0x3fu))
#define KEY_LANES_LOG2(key) ((uint32_t)((key) >> 51 & 0xfu))
/* Of a product: gemm_plan.h's tile, and how a and b lie. */
#define KEY_TILE(key) ((uint32_t)((key) >> 42 & 0x1fu))
#define KEY_A_OUTER(key) ((uint32_t)((key) >> 47 & 1u))
#define KEY_B_OUTER(key) ((uint32_t)((key) >> 49 & 1u))
/* Or tensor_core_packing.h's. */
#define KEY_A_LIES(key) ((uint32_t)((key) >> 47 & 3u))
#define KEY_B_LIES(key) ((uint32_t)((key) >> 49 & 3u))
#define KEY_FORMAT(key) ((uint32_t)((key) >> 52 & 7u))
/* Whether the second operand, b or the narrow one of a skinny product, is made
 * of aligned vectors. */
#define KEY_SECOND_VECTOR(key) ((uint32_t)((key) >> 51 & 1u))

/* Operand 0 is the output. */
static inline uint64_t kernel_key(uint32_t kernel, uint32_t op, bool wide,
                                  uint32_t group_log2)
{
    return (uint64_t)kernel | (uint64_t)op << 8 | (uint64_t)wide << 32 |
           (uint64_t)group_log2 << 34;
}
static inline uint64_t key_type(uint32_t operand, uint32_t type)
{
    return (uint64_t)type << (16 + 4 * operand);
}
static inline uint64_t key_tanh(bool tanh_form)
{
    return (uint64_t)tanh_form << 33;
}
/* Of a gradient of a loss, in its place: whether its scale lifts what is below
 * f32's range. */
#define KEY_LIFTS(key) KEY_TANH(key)
static inline uint64_t variant_key_large_loss_scale(bool lifts)
{
    return key_tanh(lifts);
}
/* Whether a kernel's groups are of one size, whatever a device prefers. */
static inline bool key_tiled(uint64_t key)
{
    return KEY_KERNEL(key) == KERNEL_PRODUCT ||
           KEY_KERNEL(key) == KERNEL_STRICT ||
           KEY_KERNEL(key) == KERNEL_SKINNY ||
           KEY_KERNEL(key) == KERNEL_TENSOR ||
           KEY_KERNEL(key) == KERNEL_WGMMA ||
           KEY_KERNEL(key) == KERNEL_PACK_MAXIMA ||
           KEY_KERNEL(key) == KERNEL_PACK ||
           KEY_KERNEL(key) == KERNEL_PACK_HELD;
}
/* Whether there is anything to compile. */
static inline bool key_compiles(uint64_t key)
{
    return KEY_KERNEL(key) != KERNEL_COPY_BUFFER;
}

/* Inputs that lie across the output, a bit each, where no vectors are kept. */
#define KEY_ACROSS(key) KEY_HELD_LOG2(key)
static inline uint64_t key_across(uint32_t inputs)
{
    return (uint64_t)inputs << 38;
}

/* Vectors that a work-item keeps in registers; whether rows are made of
 * aligned ones. */
static inline uint64_t key_held(uint32_t held_log2)
{
    return (uint64_t)held_log2 << 38;
}
static inline uint64_t key_vector(bool vector)
{
    return (uint64_t)vector << 41;
}
static inline uint64_t key_second_vector(bool vector)
{
    return (uint64_t)vector << 51;
}
static inline uint64_t key_access(uint32_t access)
{
    return (uint64_t)access << 42;
}
static inline uint64_t key_count(uint64_t count)
{
    return count << 45;
}
static inline uint64_t key_lanes(uint32_t lanes_log2)
{
    return (uint64_t)lanes_log2 << 51;
}
static inline uint64_t key_product(uint32_t tile, uint32_t a_lies,
                                   uint32_t b_lies, bool vector)
{
    return (uint64_t)tile << 42 | (uint64_t)a_lies << 47 |
           (uint64_t)b_lies << 49 | key_vector(vector);
}
static inline uint64_t key_format(uint32_t format)
{
    return (uint64_t)format << 52;
}

#endif
