/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM descriptors for tests that need no OpenCL. */
#ifndef TANDEM_TESTS_OPENCL_GEMM_HELPERS_H
#define TANDEM_TESTS_OPENCL_GEMM_HELPERS_H

#include <tandem/backend.h>

/* Returns an f32 GEMM without padding, in which b is transposed. */
static inline struct tandem_gemm gemm_new(int64_t m, int64_t n, int64_t k,
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
