/* SPDX-License-Identifier: Apache-2.0 */
/* A GEMM with one work-item per element, for devices whose work-groups are too
 * small for gemm_simt.cl and for data types that no library supports. */
#include "common/params.cl"

struct gemm_naive_params {
    uint64_t elements;
    uint64_t a_offset, b_offset, c_offset, bias_offset;
    uint64_t k, columns, plane; /* plane is m * n */
    int64_t a_batch, a_row, a_step, b_batch, b_column,
        b_step; /* step: along k */
    int64_t ld, batch_stride;
    int64_t bias_column, bias_row;
    float alpha, beta, activation[2];
    uint32_t has_bias, reserved;
};
PARAMS_SIZE(gemm_naive_params, 168);

#ifdef __OPENCL_C_VERSION__
#include "gemm/gemm_dtypes.cl"

/* Adds product i of the current chunk to the sum. */
#define ADD_PRODUCT(i)                                                         \
    sum = fma(AB_TO_F32(a[(i) * p.a_step]), AB_TO_F32(b[(i) * p.b_step]), sum)

KERNEL void gemm_naive(__global C_T *c, __global const AB_T *a,
                       __global const AB_T *b, __global const C_T *bias,
                       const struct gemm_naive_params p)
{
    ulong i = get_global_id(0);
    if (i >= p.elements)
        return;
    ELEMENT_POSITION(i, p.elements, p.plane, p.columns);
    a += (long)p.a_offset + (long)batch * p.a_batch + (long)row * p.a_row;
    b += (long)p.b_offset + (long)batch * p.b_batch + (long)column * p.b_column;
    c += (long)p.c_offset + (long)batch * p.batch_stride + (long)row * p.ld +
         column;
    float total = 0.0f;
    for (ulong first = 0; first < p.k; first += PARTIAL_TERMS) {
        ulong end = min(first + PARTIAL_TERMS, p.k), k = first;
        float sum = 0.0f;
        /* Mesa's llvmpipe ends all loops of a kernel after 65,535 iterations,
         * so an iteration adds eight products. */
        for (; k + 8 <= end; k += 8, a += 8 * p.a_step, b += 8 * p.b_step) {
            ADD_PRODUCT(0);
            ADD_PRODUCT(1);
            ADD_PRODUCT(2);
            ADD_PRODUCT(3);
            ADD_PRODUCT(4);
            ADD_PRODUCT(5);
            ADD_PRODUCT(6);
            ADD_PRODUCT(7);
        }
        for (; k < end; ++k, a += p.a_step, b += p.b_step)
            ADD_PRODUCT(0);
        total += sum;
    }
    float x = p.alpha * total;
    if (p.beta != 0.0f)
        x += p.beta * C_TO_F32(*c);
    if (p.has_bias)
        x += C_TO_F32(bias[(long)p.bias_offset + (long)column * p.bias_column +
                           (long)row * p.bias_row]);
    *c = C_FROM_F32(ACTIVATION(x, p.activation[0], p.activation[1]));
}

#endif
