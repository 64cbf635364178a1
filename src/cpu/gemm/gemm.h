/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product under way, for the files that compute it.  Any thread. */
#ifndef TANDEM_CPU_GEMM_GEMM_H
#define TANDEM_CPU_GEMM_GEMM_H

#include "cpu/objects.h"

struct product {
    const struct tandem_gemm *gemm; /* complete */
    const struct kernels *kernels;
    const float *a, *b; /* gemm's, where they are f32 */
    const float *bias;  /* in f32 */
    float *c;           /* likewise */
    struct params params; /* of the activation */
};

/* Bias and activation over the first n elements from column on of a row, which
 * c has in f32. */
void product_row_finish(const struct product *product, float *c, int64_t row,
                        int64_t column, int64_t n);

/* parallel_gemm.c: the whole of a product, of f32 or 16 bits.  OUT_OF_MEMORY,
 * of 16 bits alone, before anything is written. */
enum tandem_status parallel_gemm_run(struct tandem_device *device,
                             struct product *product);

#endif
