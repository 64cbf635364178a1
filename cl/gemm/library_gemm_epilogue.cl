/* SPDX-License-Identifier: Apache-2.0 */
/* Applies bias and activation to the result c of a GEMM that a library
 * computed, with one work-item per element: c = ACTIVATION(scale * c + bias).
 * If scale is 0, c is not read. */
#include "common/params.cl"

struct gemm_epilogue_params {
    uint64_t elements;
    float scale, activation[2];
    uint32_t has_bias;
    uint64_t c_offset, bias_offset;
    uint64_t columns, plane; /* columns is n, plane is m * n */
    int64_t ld, batch_stride;
    int64_t bias_column,
        bias_row; /* strides of bias: 1, or 0 to broadcast bias */
};
PARAMS_SIZE(gemm_epilogue_params, 88);

#ifdef __OPENCL_C_VERSION__
#include "gemm/gemm_dtypes.cl"

KERNEL void gemm_epilogue(__global C_T *c, __global const C_T *bias,
                          const struct gemm_epilogue_params p)
{
    ulong i = get_global_id(0);
    if (i >= p.elements)
        return;
    ELEMENT_POSITION(i, p.elements, p.plane, p.columns);
    ulong at = p.c_offset + batch * (ulong)p.batch_stride +
               row * (ulong)p.ld + column;
    float x = p.scale == 0.0f ? 0.0f : p.scale * C_TO_F32(c[at]);
    if (p.has_bias)
        x += C_TO_F32(bias[p.bias_offset + column * (ulong)p.bias_column +
                           row * (ulong)p.bias_row]);
    c[at] = C_FROM_F32(ACTIVATION(x, p.activation[0], p.activation[1]));
}

#endif
