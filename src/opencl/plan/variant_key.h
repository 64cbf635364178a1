/* SPDX-License-Identifier: Apache-2.0 */
/* Variant keys: 64-bit codes that identify kernel variants.  On one device, the
 * key determines the source and build options of a kernel.  Pure functions that
 * any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_VARIANT_KEY_H
#define TANDEM_OPENCL_PLAN_VARIANT_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* All kernels in the folder cl/. */
enum kernel_id {
    KERNEL_COPY_BUFFER = 0, /* no kernel, but clEnqueueCopyBuffer */
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

/* OpenCL C types of operand elements. */
enum kernel_type {
    TYPE_FLOAT = 0,
    TYPE_INT = 1,
    TYPE_LONG = 2,
    TYPE_UCHAR = 3,
    TYPE_USHORT = 4,
    TYPE_UINT = 5,
    TYPE_ULONG = 6,
    TYPE_BOOL = 7, /* a uchar with the value 0 or 1 */
    TYPE_F16 = 8,  /* in a ushort */
    TYPE_BF16 = 9  /* in a ushort */
};

/* Fields of a variant key.  Two fields can share bits if no kernel uses
 * both. */
#define KEY_KERNEL(key) ((uint32_t)((key)&0xffu))
#define KEY_OP(key) ((uint32_t)((key) >> 8 & 0xffu))
/* The enum kernel_type of an operand.  Operand 0 is the output. */
#define KEY_TYPE(key, operand)                                                 \
    ((uint32_t)((key) >> (16 + 4 * (operand)) & 0xfu))
#define KEY_64BIT_INDEX(key) ((uint32_t)((key) >> 32 & 1u))
#define KEY_GELU_TANH(key) ((uint32_t)((key) >> 33 & 1u))
/* For loss gradients: 1 if the scale is so large that rounding errors of
 * subnormal probabilities exceed the tolerance. */
#define KEY_LARGE_LOSS_SCALE(key) KEY_GELU_TANH(key)
#define KEY_GROUP_LOG2(key) ((uint32_t)((key) >> 34 & 0xfu))
/* For softmax and norm kernels: log2 of the number of vec4 of a row that a
 * work-item keeps in registers. */
#define KEY_REGISTER_VEC4_LOG2(key) ((uint32_t)((key) >> 38 & 0x7u))
/* For element-wise kernels: bit i is set if input i is transposed. */
#define KEY_TRANSPOSED_INPUTS(key) KEY_REGISTER_VEC4_LOG2(key)
/* For GEMV kernels: log2 of the number of vectors. */
#define KEY_GEMV_VECTORS_LOG2(key) KEY_REGISTER_VEC4_LOG2(key)
#define KEY_VEC4(key) ((uint32_t)((key) >> 41 & 1u))
/* For softmax and norm kernels: the value of enum row_access. */
#define KEY_ROW_ACCESS(key) ((uint32_t)((key) >> 42 & 7u))
/* With ROW_ACCESS_LOCAL_MEMORY: elements per row.  With
 * ROW_ACCESS_SECTOR_ALIGNED: vec4 per work-item.  Otherwise 0. */
#define KEY_COUNT(key) ((uint32_t)((key) >> 45 & 0x3fu))
/* With ROW_ACCESS_SECTOR_ALIGNED: log2 of the work-items that share a row. */
#define KEY_LANES_LOG2(key) ((uint32_t)((key) >> 51 & 0xfu))
/* For GEMM kernels: the value of enum gemm_kernel_id. */
#define KEY_GEMM_KERNEL(key) ((uint32_t)((key) >> 42 & 0x1fu))
#define KEY_A_MN_MAJOR(key) ((uint32_t)((key) >> 47 & 1u))
#define KEY_B_MN_MAJOR(key) ((uint32_t)((key) >> 49 & 1u))
/* For tensor-core kernels: values of enum operand_layout and packed_format. */
#define KEY_A_LAYOUT(key) ((uint32_t)((key) >> 47 & 3u))
#define KEY_B_LAYOUT(key) ((uint32_t)((key) >> 49 & 3u))
#define KEY_FORMAT(key) ((uint32_t)((key) >> 52 & 7u))
/* For GEMM kernels: 1 if `b` is read as aligned vec4.  For GEMV kernels: 1 if
 * the vectors are read as aligned vec4. */
#define KEY_SECOND_VEC4(key) ((uint32_t)((key) >> 51 & 1u))

/* Each function below returns bits of a variant key; combine them with |. */
static inline uint64_t variant_key_kernel(uint32_t kernel, uint32_t op,
                                          bool index_64bit, uint32_t group_log2)
{
    return (uint64_t)kernel | (uint64_t)op << 8 | (uint64_t)index_64bit << 32 |
           (uint64_t)group_log2 << 34;
}
static inline uint64_t variant_key_type(uint32_t operand, uint32_t type)
{
    return (uint64_t)type << (16 + 4 * operand);
}
#define VARIANT_KEY_BITS(name, shift)                                          \
    static inline uint64_t name(uint64_t value)                                \
    {                                                                          \
        return value << (shift);                                               \
    }
VARIANT_KEY_BITS(variant_key_gelu_tanh, 33)
VARIANT_KEY_BITS(variant_key_large_loss_scale, 33)
VARIANT_KEY_BITS(variant_key_register_vec4, 38)
VARIANT_KEY_BITS(variant_key_transposed_inputs, 38)
VARIANT_KEY_BITS(variant_key_gemv_vectors, 38)
VARIANT_KEY_BITS(variant_key_vec4, 41)
VARIANT_KEY_BITS(variant_key_second_vec4, 51)
VARIANT_KEY_BITS(variant_key_row_access, 42)
VARIANT_KEY_BITS(variant_key_count, 45)
VARIANT_KEY_BITS(variant_key_lanes, 51)
VARIANT_KEY_BITS(variant_key_format, 52)
/* a_layout and b_layout are values of enum operand_layout or is_mn_major. */
static inline uint64_t variant_key_gemm(uint32_t kernel, uint32_t a_layout,
                                        uint32_t b_layout, bool vec4)
{
    return (uint64_t)kernel << 42 | (uint64_t)a_layout << 47 |
           (uint64_t)b_layout << 49 | variant_key_vec4(vec4);
}
/* Returns true if the kernel has a fixed work-group size, which does not depend
 * on the device. */
static inline bool variant_key_has_fixed_group_size(uint64_t key)
{
    uint32_t kernel = KEY_KERNEL(key);
    return kernel == KERNEL_GEMM_SIMT || kernel == KERNEL_GEMM_3XTF32 ||
           kernel == KERNEL_GEMV || kernel == KERNEL_GEMM_MMA ||
           kernel == KERNEL_GEMM_WGMMA || kernel == KERNEL_PACK_MAXIMA ||
           kernel == KERNEL_PACK_OPERANDS || kernel == KERNEL_PACK_SINGLE_PASS;
}
static inline bool variant_key_needs_build(uint64_t key)
{
    return KEY_KERNEL(key) != KERNEL_COPY_BUFFER;
}

#endif
