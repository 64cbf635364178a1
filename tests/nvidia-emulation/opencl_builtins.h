/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before kernels that are compiled for the host CPU. Defines OpenCL's
 * math and vector functions as clang builtins, which need no OpenCL library.
 */
#define fmax(a, b) __builtin_elementwise_max(a, b)
#define fmin(a, b) __builtin_elementwise_min(a, b)
#define max(a, b) __builtin_elementwise_max(a, b)
#define min(a, b) __builtin_elementwise_min(a, b)
#define clamp(x, least, most) min(max(x, least), most)
#define fabs(x) __builtin_elementwise_abs(x)
#define sqrt(x) __builtin_elementwise_sqrt(x)
#define exp(x) __builtin_elementwise_exp(x)
#define log(x) __builtin_elementwise_log(x)
#define fma(a, b, c) __builtin_elementwise_fma(a, b, c)
#define isnan(x) ((x) != (x))
#define mul_hi(a, b) ((uint)((ulong)(a) * (b) >> 32))
#define native_exp2(x) __builtin_elementwise_exp2(x)
#define native_recip(x) (1.0f / (x))
#define copysign(x, y) __builtin_elementwise_copysign(x, y)
