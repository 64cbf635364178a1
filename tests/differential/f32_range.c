/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of GEMM whose partial results may overflow or become subnormal in
 * some order of summation, although the result itself does not.  See
 * result_check.h.
 */
#include "result_check.h"

#include <float.h>
#include <math.h>

void range_find(const struct problem *problem, struct expected *expected,
                bool **out_outside)
{
    const struct tandem_gemm *gemm = &problem->gemm;
    double size = fabs(gemm->alpha) < 1.0 ? fabs(gemm->alpha) : 1.0;
    double k = (double)gemm->k;
    double relative =
        (problem->row->tolerance + 2.0 * sqrt(k)) * REFERENCE_2EPS;
    bool *outside = must_allocate((uint64_t)expected->elements);

    for (int64_t i = 0; i < expected->elements; i++) {
        /* The tolerance is relative to the sum of magnitudes. */
        double scale = expected->tolerance[i] / relative;

        outside[i] = size > 0.0 && scale / size > 0.5 * (double)FLT_MAX;
        expected->tolerance[i] +=
            (k + 2.0) * fmax(fabs(gemm->alpha), 1.0) * (double)FLT_MIN;
    }
    *out_outside = outside;
}
