/* SPDX-License-Identifier: Apache-2.0 */
/* What c and bias, and a and b, of a product are made of: f32, f16 or bf16
 * (float16.cl); and what is done last, to every element. */
#ifndef TANDEM_GEMM_DTYPES_CL
#define TANDEM_GEMM_DTYPES_CL

#include "common/float16.cl"
#include "common/indexing.cl"
#include "common/operators.cl"

#ifndef ACTIVATION
#define ACTIVATION op_none
#endif
#ifndef C_DTYPE
#define C_DTYPE f32
#endif
#ifndef AB_DTYPE
#define AB_DTYPE f32
#endif
/* The most terms of a partial sum of a product.  Each begins at 0, because a
 * long f32 sum of terms of one sign is rounded in one direction. */
#define PARTIAL_TERMS 256
#define C_T CAT(C_DTYPE, _t)
#define C_T4 CAT(C_DTYPE, _t4)
#define C_VALUE CAT(C_DTYPE, _value)
#define C_VALUE4 CAT(C_DTYPE, _value4)
#define C_ROUND CAT(C_DTYPE, _round)
#define C_ROUND4 CAT(C_DTYPE, _round4)
#define AB_T CAT(AB_DTYPE, _t)
#define AB_T4 CAT(AB_DTYPE, _t4)
#define AB_VALUE CAT(AB_DTYPE, _value)
#define AB_VALUE4 CAT(AB_DTYPE, _value4)

/* Declares batch, row and column of element i of `elements` in all batches. A
 * plane is one batch. */
#if WIDE
#define ELEMENT_POSITION(i, elements, plane, columns)                          \
    ulong batch = (i) / (plane), rest_ = (i) - batch * (plane);                \
    ulong row = rest_ / (columns), column = rest_ - row * (columns)
#else
#define ELEMENT_POSITION(i, elements, plane, columns)                          \
    uint batch = (plane) < (elements) ? (uint)(i) / (uint)(plane) : 0;         \
    uint rest_ = (uint)(i) - batch * (uint)(plane);                            \
    uint row = rest_ / (uint)(columns);                                        \
    uint column = rest_ - row * (uint)(columns)
#endif

#endif
