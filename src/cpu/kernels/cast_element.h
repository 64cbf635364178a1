/* SPDX-License-Identifier: Apache-2.0 */
/* Casts one element between f32, i32, i64, u8 and bool, or from an integer
 * to bf16. cast.c uses these functions in loops over strided elements, and
 * vectorized_loops.h in loops over contiguous rows.  Pure functions. */
#ifndef TANDEM_CPU_KERNELS_CAST_ELEMENT_H
#define TANDEM_CPU_KERNELS_CAST_ELEMENT_H

#include <stdbool.h>

#include "common/float16.h"

/* Returns x clamped to the range from `low` (negative) to `high` (positive),
 * which are the bits of f32 numbers.  NaN becomes one of the limits.  Compares
 * bits as integers, because SIMD instruction sets have integer minimum
 * instructions: larger bits mean a smaller negative or a larger positive
 * number.  Casts to integers convert every clamped element and then replace the
 * results for large numbers and NaN, because GCC does not vectorize conditional
 * conversions. */
static inline float clamp(float x, uint32_t low, int32_t high)
{
    uint32_t bits = float_bits(x);
    bits = bits < low ? bits : low;
    int32_t number = (int32_t)bits;
    number = number < high ? number : high;
    return float_of_bits((uint32_t)number);
}

static inline int32_t f32_to_i32(float x)
{
    int32_t y = (int32_t)clamp(x, 0xcf000000u, 0x4effffff);
    int32_t other = x == x ? INT32_MAX : 0;
    return x < 0x1p31f ? y : other;
}

static inline int64_t f32_to_i64(float x)
{
#if defined(TANDEM_SIMD_AVX512) || defined(TANDEM_SIMD_NEON)
    int64_t y = (int64_t)clamp(x, 0xdf000000u, 0x5effffff);
    int64_t other = x == x ? INT64_MAX : 0;
    return x < 0x1p63f ? y : other;
#else /* AVX2 cannot convert f32 to 64-bit integers */
    return x >= 0x1p63f    ? INT64_MAX
           : x >= -0x1p63f ? (int64_t)x
           : x < 0         ? INT64_MIN
                           : 0;
#endif
}

static inline uint8_t f32_to_u8(float x)
{
    int32_t bits = (int32_t)float_bits(x);
    bits = bits > 0x7f800000 ? 0 : bits; /* NaN */
    bits = bits < 0 ? 0 : bits;
    bits = bits > 0x437f0000 ? 0x437f0000 : bits; /* 255 */
    return (uint8_t)(int32_t)float_of_bits((uint32_t)bits);
}

static inline int32_t i64_to_i32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

#define TO_U8(x) ((x) > 255 ? 255 : (x) < 0 ? 0 : (x))

/* Rounds `x` to bf16.  `x` must not be NaN. */
static inline uint16_t number_round(float x)
{
    uint32_t bits = float_bits(x);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Rounds an integer to bf16 in one step.  If the integer has more than 24 bits,
 * a conversion to f32 would round it first.  One sticky bit therefore replaces
 * the low 8 bits, which affect the result only by being zero or not, so that
 * the conversion to f32 is exact. */
static inline uint16_t i32_to_bf16(int32_t x)
{
    bool exact = (uint32_t)x + (1u << 24) <= 1u << 25;
    int32_t low = x & (exact ? 0 : 0xff);
    return number_round((float)((x ^ low) | (low != 0) << 7));
}

/* Rounds an integer to f32, and the f32 to bf16.  The f32 is rounded to odd,
 * that is, toward zero with the last bit set if the f32 is inexact. */
static inline uint16_t i64_to_bf16(int64_t x)
{
    float nearest = (float)x;
    nearest = nearest < 0x1p63f ? nearest : 0x1.fffffep62f;
    int64_t excess = (int64_t)nearest - x;
    uint32_t bits = float_bits(nearest);
    bits -= (excess != 0) & ((excess ^ x) >= 0); /* away from zero */
    return number_round(float_of_bits(bits | (excess != 0)));
}

/* Lists the casts as X(source name, source type, target name, target type,
 * expression that casts the source element x). */
#define CASTS(X)                                                               \
    X(u32, uint32_t, u32, uint32_t, x)                                         \
    X(f32, float, i32, int32_t, f32_to_i32(x))                                 \
    X(f32, float, i64, int64_t, f32_to_i64(x))                                 \
    X(f32, float, u8, uint8_t, f32_to_u8(x))                                   \
    X(f32, float, bool, uint8_t, x != 0)                                       \
    X(i32, int32_t, f32, float, x)                                             \
    X(i32, int32_t, i64, int64_t, x)                                           \
    X(i32, int32_t, u8, uint8_t, TO_U8(x))                                     \
    X(i32, int32_t, bool, uint8_t, x != 0)                                     \
    X(i32, int32_t, bf16, uint16_t, i32_to_bf16(x))                            \
    X(i64, int64_t, f32, float, x)                                             \
    X(i64, int64_t, i32, int32_t, i64_to_i32(x))                               \
    X(i64, int64_t, i64, int64_t, x)                                           \
    X(i64, int64_t, u8, uint8_t, TO_U8(x))                                     \
    X(i64, int64_t, bool, uint8_t, x != 0)                                     \
    X(i64, int64_t, bf16, uint16_t, i64_to_bf16(x))                            \
    X(u8, uint8_t, f32, float, x)                                              \
    X(u8, uint8_t, i32, int32_t, x)                                            \
    X(u8, uint8_t, i64, int64_t, x)                                            \
    X(u8, uint8_t, u8, uint8_t, x)                                             \
    X(u8, uint8_t, bool, uint8_t, x != 0)                                      \
    X(u8, uint8_t, bf16, uint16_t, float_bits(x) >> 16)                        \
    X(f16, uint16_t, f16, uint16_t, x | ((x & 0x7fffu) > 0x7c00u ? 0x200u : 0))

/* Cast functions.  Rows are the source types f32, i32, i64, and u8 (also for
 * bool).  Columns are the target types f32, i32, i64, u8, bool and bf16.  The
 * entry for f32 to bf16 holds the cast from f16 to f16.  Casts from f32 to bf16
 * use bf16_narrow instead. */
#define CAST_TABLE                                                             \
    {                                                                          \
        {u32_u32, f32_i32, f32_i64, f32_u8, f32_bool, f16_f16},                \
            {i32_f32, u32_u32, i32_i64, i32_u8, i32_bool, i32_bf16},           \
            {i64_f32, i64_i32, i64_i64, i64_u8, i64_bool, i64_bf16},           \
            {u8_f32, u8_i32, u8_i64, u8_u8, u8_bool, u8_bf16},                 \
    }

#endif
