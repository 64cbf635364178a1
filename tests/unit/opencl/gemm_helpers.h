/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product as tests that need no OpenCL ask about it. */
#ifndef TANDEM_TESTS_OPENCL_PRODUCT_H
#define TANDEM_TESTS_OPENCL_PRODUCT_H

#include <tandem/backend.h>

/* Of f32, without gaps, b being transposed. */
static inline struct tandem_gemm product(int64_t m, int64_t n, int64_t k,
                                         int64_t batch)
{
    return (struct tandem_gemm){.struct_size = sizeof(struct tandem_gemm),
                                .dtype = TANDEM_F32,
                                .flags = TANDEM_GEMM_TRANSPOSE_B,
                                .m = m,
                                .n = n,
                                .k = k,
                                .batch = batch,
                                .alpha = 1,
                                .a = {NULL, 0, k, m * k},
                                .b = {NULL, 0, k, n * k},
                                .c = {NULL, 0, n, m * n}};
}

#endif
