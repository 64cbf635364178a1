/* SPDX-License-Identifier: Apache-2.0 */
/* State of a matrix product, shared by the files that compute it.  Callable
 * from any thread. */
#ifndef TANDEM_CPU_GEMM_GEMM_H
#define TANDEM_CPU_GEMM_GEMM_H

#include "cpu/objects.h"

struct product {
    const struct tandem_gemm *gemm; /* normalized by gemm_args_normalize */
    const struct kernels *kernels;
    const float *a, *b;   /* valid only if gemm->dtype is f32 */
    const float *bias;    /* as f32 */
    float *c;             /* valid only if gemm->c_dtype is f32 */
    struct params params; /* attributes of the activation */
};

/* Applies bias and activation to n elements at c, in f32: the elements of the
 * result's row `row` from column `column` on. */
void product_row_finish(const struct product *product, float *c, int64_t row,
                        int64_t column, int64_t n);

/* Computes a product of f32 or 16-bit operands; defined in parallel_gemm.c.
 * Only a product with a 16-bit type can fail with TANDEM_OUT_OF_MEMORY, and
 * then c is unchanged. */
enum tandem_status parallel_gemm_run(struct tandem_device *device,
                             struct product *product);

#endif
