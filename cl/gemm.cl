/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes after a matrix product: c = ACTIVATION(scale c + bias), row-major
 * with a leading dimension, one item an element.  Where scale is 0, c is not
 * read.
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

#ifndef ACTIVATION
#define ACTIVATION op_none
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

KERNEL void epilogue(__global float *c, __global const float *bias,
                     const struct epilogue p)
{
    ulong i = get_global_id(0);
    if (i >= p.elements)
        return;
    ulong batch = 0, row, column;
#if WIDE
    batch = i / p.plane;
    i -= batch * p.plane;
    row = i / p.columns;
    column = i - row * p.columns;
#else
    uint rest = (uint)i;
    if (p.plane < p.elements) {
        batch = rest / (uint)p.plane;
        rest -= (uint)batch * (uint)p.plane;
    }
    row = rest / (uint)p.columns;
    column = rest - (uint)row * (uint)p.columns;
#endif
    ulong at = p.c_offset + batch * (ulong)p.batch_stride +
               row * (ulong)p.ld + column;
    float x = p.scale == 0.0f ? 0.0f : p.scale * c[at];
    if (p.has_bias)
        x += bias[p.bias_offset + column * (ulong)p.bias_column +
                  row * (ulong)p.bias_row];
    c[at] = ACTIVATION(x, p.slope, 0.0f);
}
