/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between f32 and the 16-bit formats f16 and bf16. Kernels hold
 * 16-bit values as ushort. The same macros exist for f32 itself. */
#ifndef TANDEM_FLOAT16_CL
#define TANDEM_FLOAT16_CL

typedef float f32_t;
typedef float4 f32_t4;
typedef ushort f16_t;
typedef ushort4 f16_t4;
typedef ushort bf16_t;
typedef ushort4 bf16_t4;
#define f32_to_f32(x) (x)
#define f32_to_f32_vec4(x) (x)
#define f32_from_f32(x) (x)
#define f32_from_f32_vec4(x) (x)

/* Without cl_khr_fp16, only vload_half and vstore_half convert f16 values. */
static inline float f16_to_f32(ushort x)
{
    return vload_half(0, (const half *)&x);
}
static inline ushort f16_from_f32(float x)
{
    ushort y;
    vstore_half_rte(x, 0, (half *)&y);
    return y;
}
static inline float bf16_to_f32(ushort x)
{
    return as_float((uint)x << 16);
}
static inline ushort bf16_from_f32(float x)
{
    uint bits = as_uint(x);
    uint rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (ushort)((x != x ? bits | 0x400000u : rounded) >> 16);
}

static inline float4 f16_to_f32_vec4(ushort4 x)
{
    return vload_half4(0, (const half *)&x);
}
static inline ushort4 f16_from_f32_vec4(float4 x)
{
    ushort4 y;
    vstore_half4_rte(x, 0, (half *)&y);
    return y;
}
static inline float4 bf16_to_f32_vec4(ushort4 x)
{
    return as_float4(convert_uint4(x) << 16);
}
static inline ushort4 bf16_from_f32_vec4(float4 x)
{
    return (ushort4)(bf16_from_f32(x.s0), bf16_from_f32(x.s1),
                     bf16_from_f32(x.s2), bf16_from_f32(x.s3));
}

#endif
