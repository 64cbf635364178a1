/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and prepares GEMMs, and applies bias and activation; see gemm.h. */
#include "config.h"

#include <limits.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/gemm.h"

enum tandem_status gemm_check_sizes(const struct tandem_gemm *gemm)
{
    int64_t largest = gemm->m > gemm->n ? gemm->m : gemm->n;
    const int64_t others[] = {gemm->k, gemm->a.ld, gemm->b.ld, gemm->c.ld};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        largest = others[i] > largest ? others[i] : largest;
    if (largest <= INT_MAX)
        return TANDEM_OK;
    return last_error_set(TANDEM_UNSUPPORTED,
                          "gemm: %lld is above the CBLAS's limit of %d for "
                          "m, n, k and leading dimensions",
                          (long long)largest, INT_MAX);
}

enum tandem_status gemm_prepare(struct gemm_call *out,
                                const struct tandem_gemm *gemm,
                                const struct gemm_addresses *operands,
                                const struct kernels *kernels,
                                struct pool *pool)
{
    enum tandem_status status = blas_ready();
    if (status != TANDEM_OK)
        return status;
    *out = (struct gemm_call){.gemm = gemm, .kernels = kernels, .pool = pool};
    if (gemm->k > 0) {
        out->a = operands->a;
        out->b = operands->b;
    }
    out->c = operands->c;
    out->bias = operands->bias;
    struct activation activation = gemm_activation(gemm);
    activation_attributes(out->params.f, &activation);
    out->params.flag = activation_is_gelu_tanh(&activation);
    return TANDEM_OK;
}

void gemm_epilogue_apply(const struct gemm_call *call, float *c, int64_t row,
                         int64_t column, int64_t n)
{
    const struct tandem_gemm *gemm = call->gemm;
    struct row operands = {
        .n = n, .in = {c}, .out = {c}, .params = &call->params};
    if (gemm->bias_kind != TANDEM_BIAS_NONE) {
        bool by_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
        operands.in[1] = call->bias + (by_row ? row : column);
        operands.constants = by_row ? 2u : 0u;
        call->kernels->rows[TANDEM_OP_ADD](&operands);
        operands.constants = 0;
    }
    if (gemm->activation != TANDEM_OP_INVALID)
        call->kernels->rows[gemm->activation](&operands);
}
