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
    KERNEL_ELEMENTWISE_STRIDED = 2,
    KERNEL_ELEMENTWISE_TRANSPOSED = 3,
    KERNEL_TRANSPOSE_TILED = 4,
    KERNEL_GATHER = 5,
    KERNEL_OPTIMIZER = 6,
    KERNEL_REDUCE = 7,
    KERNEL_REDUCE_COMBINE_SPLITS = 8,
    KERNEL_SOFTMAX_SINGLE_PASS = 9,
    KERNEL_GEMM_EPILOGUE = 10,
    KERNEL_SOFTMAX_PARTIAL_PASS = 11,
    KERNEL_SOFTMAX_FINAL_PASS = 12,
    KERNEL_NORM_SINGLE_PASS = 13,
    KERNEL_NORM_PARTIAL_PASS = 14,
    KERNEL_NORM_FINAL_PASS = 15,
    KERNEL_GEMM_SIMT = 16,
    KERNEL_SPLIT_K_FIXUP = 17,
    KERNEL_GEMM_3XTF32 = 18,
    KERNEL_GEMV = 19,
    KERNEL_SPLIT_K_FIXUP_LANES = 20,
    KERNEL_GEMM_NAIVE = 21,
    KERNEL_SPLIT_K_FIXUP_TILES = 22,
    KERNEL_GEMM_MMA = 23,
    KERNEL_PACK_MAXIMA = 24,
    KERNEL_PACK_OPERANDS = 25,
    KERNEL_PAD_OPERANDS = 26,
    KERNEL_GEMM_WGMMA = 27,
    KERNEL_PACK_SINGLE_PASS = 28,
    KERNEL_REDUCE_LAST_GROUP = 29,
    KERNEL_COUNT = 30
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
#define KEY_64BIT_INDEX(key) ((uint32_t)((key) >> 32 & 1u))
#define KEY_GELU_TANH(key) ((uint32_t)((key) >> 33 & 1u))
#define KEY_GROUP_LOG2(key) ((uint32_t)((key) >> 34 & 0xfu))
#define KEY_REGISTER_VEC4_LOG2(key) ((uint32_t)((key) >> 38 & 0x7u))
#define KEY_VEC4(key) ((uint32_t)((key) >> 41 & 1u))
/* Of rows: enum row_access. */
#define KEY_ROW_ACCESS(key) ((uint32_t)((key) >> 42 & 7u))
/* Of ROW_ACCESS_LOCAL_MEMORY, the elements of a row; of
 * ROW_ACCESS_SECTOR_ALIGNED, the fours that a work-item keeps, and how many of
 * these share a row; of others, 0. */
#define KEY_COUNT(key) ((uint32_t)((key) >> 45 & 0x3fu))
#define KEY_LANES_LOG2(key) ((uint32_t)((key) >> 51 & 0xfu))
/* Of a product: gemm_plan.h's tile, and how a and b lie. */
#define KEY_GEMM_KERNEL(key) ((uint32_t)((key) >> 42 & 0x1fu))
#define KEY_A_MN_MAJOR(key) ((uint32_t)((key) >> 47 & 1u))
#define KEY_B_MN_MAJOR(key) ((uint32_t)((key) >> 49 & 1u))
/* Or tensor_core_packing.h's. */
#define KEY_A_LAYOUT(key) ((uint32_t)((key) >> 47 & 3u))
#define KEY_B_LAYOUT(key) ((uint32_t)((key) >> 49 & 3u))
#define KEY_FORMAT(key) ((uint32_t)((key) >> 52 & 7u))
/* Whether the second operand, b or the narrow one of a skinny product, is made
 * of aligned vectors. */
#define KEY_SECOND_VEC4(key) ((uint32_t)((key) >> 51 & 1u))

/* Operand 0 is the output. */
static inline uint64_t variant_key_kernel(uint32_t kernel, uint32_t op,
                                          bool wide, uint32_t group_log2)
{
    return (uint64_t)kernel | (uint64_t)op << 8 | (uint64_t)wide << 32 |
           (uint64_t)group_log2 << 34;
}
static inline uint64_t variant_key_type(uint32_t operand, uint32_t type)
{
    return (uint64_t)type << (16 + 4 * operand);
}
static inline uint64_t variant_key_gelu_tanh(bool tanh_form)
{
    return (uint64_t)tanh_form << 33;
}
/* Of a gradient of a loss, in its place: whether its scale lifts what is below
 * f32's range. */
#define KEY_LARGE_LOSS_SCALE(key) KEY_GELU_TANH(key)
static inline uint64_t variant_key_large_loss_scale(bool lifts)
{
    return variant_key_gelu_tanh(lifts);
}
/* Whether a kernel's groups are of one size, whatever a device prefers. */
static inline bool variant_key_has_fixed_group_size(uint64_t key)
{
    return KEY_KERNEL(key) == KERNEL_GEMM_SIMT ||
           KEY_KERNEL(key) == KERNEL_GEMM_3XTF32 ||
           KEY_KERNEL(key) == KERNEL_GEMV ||
           KEY_KERNEL(key) == KERNEL_GEMM_MMA ||
           KEY_KERNEL(key) == KERNEL_GEMM_WGMMA ||
           KEY_KERNEL(key) == KERNEL_PACK_MAXIMA ||
           KEY_KERNEL(key) == KERNEL_PACK_OPERANDS ||
           KEY_KERNEL(key) == KERNEL_PACK_SINGLE_PASS;
}
/* Whether there is anything to compile. */
static inline bool variant_key_needs_build(uint64_t key)
{
    return KEY_KERNEL(key) != KERNEL_COPY_BUFFER;
}

/* Inputs that lie across the output, a bit each, where no vectors are kept. */
#define KEY_TRANSPOSED_INPUTS(key) KEY_REGISTER_VEC4_LOG2(key)
static inline uint64_t variant_key_transposed_inputs(uint32_t inputs)
{
    return (uint64_t)inputs << 38;
}

/* Vectors that a work-item keeps in registers; whether rows are made of
 * aligned ones. */
static inline uint64_t variant_key_register_vec4(uint32_t held_log2)
{
    return (uint64_t)held_log2 << 38;
}
static inline uint64_t variant_key_vec4(bool vector)
{
    return (uint64_t)vector << 41;
}
static inline uint64_t variant_key_second_vec4(bool vector)
{
    return (uint64_t)vector << 51;
}
static inline uint64_t variant_key_row_access(uint32_t access)
{
    return (uint64_t)access << 42;
}
static inline uint64_t variant_key_count(uint64_t count)
{
    return count << 45;
}
static inline uint64_t variant_key_lanes(uint32_t lanes_log2)
{
    return (uint64_t)lanes_log2 << 51;
}
static inline uint64_t variant_key_gemm(uint32_t tile, uint32_t a_lies,
                                        uint32_t b_lies, bool vector)
{
    return (uint64_t)tile << 42 | (uint64_t)a_lies << 47 |
           (uint64_t)b_lies << 49 | variant_key_vec4(vector);
}
static inline uint64_t variant_key_format(uint32_t format)
{
    return (uint64_t)format << 52;
}

#endif
