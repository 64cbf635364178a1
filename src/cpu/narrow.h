/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products with few rows or columns, without a CBLAS.  Any thread. */
#ifndef TANDEM_CPU_NARROW_H
#define TANDEM_CPU_NARROW_H

#include "cpu/kernels.h"
#include "cpu/pool.h"

/* Whether narrow_run serves gemm, and a CBLAS is no faster. */
bool narrow_takes(const struct tandem_gemm *gemm,
                  const struct kernels *kernels);
/* All batches, without bias and activation. */
void narrow_run(const struct tandem_gemm *gemm, const struct kernels *kernels,
                struct pool *pool, const float *a, const float *b, float *c);

#endif
