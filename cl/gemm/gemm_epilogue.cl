/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around matrix products, row-major with leading dimensions, one item an
 * element.
 *
 * epilogue  what comes after one: c = ACTIVATION(scale c + bias).  Where scale
 *           is 0, c is not read.
 * multiply  a whole one, for devices that run none of the tiles of gemm_simt.cl
 *           (their groups are too small) and dtypes that no library takes.
 */
#include "gemm/gemm_dtypes.cl"

/* Splits i, below elements, into the place of an element. */
#if WIDE
#define PLACE(i, elements, plane, columns)                                     \
    ulong batch = (i) / (plane), rest_ = (i) - batch * (plane);                \
    ulong row = rest_ / (columns), column = rest_ - row * (columns)
#else
#define PLACE(i, elements, plane, columns)                                     \
    uint batch = (plane) < (elements) ? (uint)(i) / (uint)(plane) : 0;         \
    uint rest_ = (uint)(i) - batch * (uint)(plane);                            \
    uint row = rest_ / (uint)(columns);                                        \
    uint column = rest_ - row * (uint)(columns)
#endif

struct epilogue {
    ulong elements;
    float scale, slope;
    ulong c_offset, bias_offset;
    ulong columns, plane; /* n, m n */
    long ld, batch_stride;
    long bias_column, bias_row; /* strides of bias: 1 or 0 */
    uint has_bias, reserved;
};

KERNEL void epilogue(__global C_T *c, __global const C_T *bias,
                     const struct epilogue p)
{
    ulong i = get_global_id(0);
    if (i >= p.elements)
        return;
    PLACE(i, p.elements, p.plane, p.columns);
    ulong at = p.c_offset + batch * (ulong)p.batch_stride +
               row * (ulong)p.ld + column;
    float x = p.scale == 0.0f ? 0.0f : p.scale * C_VALUE(c[at]);
    if (p.has_bias)
        x += C_VALUE(bias[p.bias_offset + column * (ulong)p.bias_column +
                          row * (ulong)p.bias_row]);
    c[at] = C_ROUND(ACTIVATION(x, p.slope, 0.0f));
}

struct multiply {
    ulong elements;
    ulong a_offset, b_offset, c_offset, bias_offset;
    ulong k, columns, plane; /* k, n, m n */
    long a_batch, a_row, a_step, b_batch, b_column, b_step; /* step: along k */
    long ld, batch_stride;
    long bias_column, bias_row;
    float alpha, beta, slope;
    uint has_bias;
};

KERNEL void multiply(__global C_T *c, __global const AB_T *a,
                     __global const AB_T *b, __global const C_T *bias,
                     const struct multiply p)
{
    ulong i = get_global_id(0);
    if (i >= p.elements)
        return;
    PLACE(i, p.elements, p.plane, p.columns);
    a += (long)p.a_offset + (long)batch * p.a_batch + (long)row * p.a_row;
    b += (long)p.b_offset + (long)batch * p.b_batch + (long)column * p.b_column;
    c += (long)p.c_offset + (long)batch * p.batch_stride + (long)row * p.ld +
         column;
    float total = 0.0f;
    for (ulong first = 0; first < p.k; first += PARTIAL_TERMS) {
        ulong end = min(first + PARTIAL_TERMS, p.k);
        float sum = 0.0f;
        for (ulong k = first; k < end; ++k, a += p.a_step, b += p.b_step)
            sum = fma(AB_VALUE(*a), AB_VALUE(*b), sum);
        total += sum;
    }
    float x = p.alpha * total;
    if (p.beta != 0.0f)
        x += p.beta * C_VALUE(*c);
    if (p.has_bias)
        x += C_VALUE(bias[(long)p.bias_offset + (long)column * p.bias_column +
                          (long)row * p.bias_row]);
    *c = C_ROUND(ACTIVATION(x, p.slope, 0.0f));
}
