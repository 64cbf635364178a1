/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel keys: on one device, a key determines the source and the compiler
 * options of a kernel. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_KEY_H
#define TANDEM_OPENCL_PLAN_KERNEL_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kernel_info;

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
    TYPE_BF16 = 9, /* in a ushort */
    TYPE_COUNT
};

#define KEY_OPERANDS 5u

/* Initialize a key with zeros.  A field that a kernel does not use stays 0, so
 * that equal kernels have equal keys. */
struct kernel_key {
    const struct kernel_info *kernel; /* NULL means clEnqueueCopyBuffer */
    uint16_t op; /* enum tandem_op_id: the operator, or a GEMM's activation */
    /* A form of the operator: 1 for the tanh form of GELU, the macro REDUCTION
     * of a reduction, the macro FORM of a softmax, or the macro COMPONENTS of a
     * gather or scatter. */
    uint8_t op_form;
    uint8_t group_log2;  /* log2 of the work-group size */
    uint8_t index_64bit; /* 1 if an element index needs 64 bits */
    /* 1 if the operator tolerates a division and a square root with an error of
     * 3 ULP, which is OpenCL's default. */
    uint8_t fast_division;
    uint8_t types[KEY_OPERANDS]; /* enum kernel_type; the output comes first */
    /* 1 if the kernel accesses operands as aligned vec4.  For a GEMM, `vec4` is
     * about `a` or the matrix of a GEMV, and `b_vec4` about `b` or its
     * vectors. */
    uint8_t vec4, b_vec4;
    uint8_t transposed_inputs; /* bit i is set if input i is transposed */
    /* Kernels that process rows: see row_mapping.h. */
    uint8_t row_access;   /* enum row_access */
    uint8_t item_vec4;    /* vec4 of a row that a work-item keeps */
    uint8_t row_elements; /* only with ROW_ACCESS_LOCAL_MEMORY */
    uint8_t lanes_log2;   /* only with ROW_ACCESS_SECTOR_ALIGNED */
    uint8_t large_scale;  /* 1 for a loss gradient with a large scale */
    /* GEMM kernels: see gemm_kernel_configs.h and tensor_core_packing.h. */
    uint8_t gemm_kernel;        /* enum gemm_kernel_id */
    uint8_t format;             /* enum packed_format */
    uint8_t a_layout, b_layout; /* enum operand_layout */
    uint8_t padding;            /* 0; makes the size a multiple of 8 */
};

/* The key has no padding, so keys are compared and hashed as bytes. */
_Static_assert(sizeof(struct kernel_key) == sizeof(void *) + 24,
               "struct kernel_key has padding");

static inline bool kernel_key_equal(const struct kernel_key *a,
                                    const struct kernel_key *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Returns a hash whose upper bits are well mixed. */
static inline uint64_t kernel_key_hash(const struct kernel_key *key)
{
    uint32_t words[sizeof(*key) / sizeof(uint32_t)];
    uint64_t hash = 0;
    memcpy(words, key, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

#endif
