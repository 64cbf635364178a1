/* SPDX-License-Identifier: Apache-2.0 */
/* What c and bias, and a and b, of a product are made of: f32, f16 or bf16
 * (common.cl); and what is done last, to every element. */
#ifndef TANDEM_GEMM_DTYPES_CL
#define TANDEM_GEMM_DTYPES_CL

#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

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

#endif
