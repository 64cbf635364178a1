/* SPDX-License-Identifier: Apache-2.0 */
/* The activation and the data types of a GEMM. C_ macros are for c and bias,
 * AB_ macros for a and b. The types are f32, f16 and bf16 (float16.cl). */
#ifndef TANDEM_GEMM_DTYPES_CL
#define TANDEM_GEMM_DTYPES_CL

#include "common/float16.cl"
#include "common/indexing.cl"
#include "common/operators.cl"
#include "gemm/gemm_params.cl"

#ifndef ACTIVATION
#define ACTIVATION op_none
#endif
#ifndef C_DTYPE
#define C_DTYPE f32
#define AB_DTYPE f32
#endif
#define C_T CAT(C_DTYPE, _t)
#define C_T4 CAT(C_DTYPE, _t4)
#define C_TO_F32 CAT(C_DTYPE, _to_f32)
#define C_TO_F32_VEC4 CAT(C_DTYPE, _to_f32_vec4)
#define C_FROM_F32 CAT(C_DTYPE, _from_f32)
#define C_FROM_F32_VEC4 CAT(C_DTYPE, _from_f32_vec4)
#define AB_T CAT(AB_DTYPE, _t)
#define AB_T4 CAT(AB_DTYPE, _t4)
#define AB_TO_F32 CAT(AB_DTYPE, _to_f32)
#define AB_TO_F32_VEC4 CAT(AB_DTYPE, _to_f32_vec4)

/* Declares the position of element i. Each matrix has `plane` elements. */
#if INDEX_64BIT
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
