/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between f32 and f16 (IEEE binary16) or bf16 (the upper half of an
 * f32). Widening is exact.  Narrowing rounds to nearest, ties to even; values
 * that are too large become infinity.  NaN stays NaN, and all functions but
 * bf16_value make it quiet.  Pure functions; they need the default
 * floating-point environment. */
#ifndef TANDEM_COMMON_FLOAT16_H
#define TANDEM_COMMON_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Converts f16 to f32. The multiplication by 2^112 converts the exponent bias
 * from 15 to 127 and also normalizes subnormals. */
static inline float f16_value(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, size = x & 0x7fffu;
    uint32_t bits = float_bits(float_of_bits(size << 13) * 0x1p112f);
    if (size >= 0x7c00u)
        bits = size << 13 | (size > 0x7c00u ? 0x7fc00000u : 0x7f800000u);
    return float_of_bits(sign | bits);
}

static inline uint16_t f16_round(float x)
{
    uint32_t sign = float_bits(x) >> 16 & 0x8000u;
    uint32_t size = float_bits(x) & 0x7fffffffu;
    /* f16 subnormals are spaced 2^-24 apart, as are f32 values from 1/2 to 1.
     * Adding 1/2 to an f32 value therefore rounds it to that spacing. */
    uint32_t small = float_bits(float_of_bits(size) + 0.5f) - float_bits(0.5f);
    uint32_t normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    uint32_t bits = size < 0x38800000u ? small : normal;
    if (size >= 0x477ff000u) /* magnitudes from 65520 on round to infinity */
        bits = 0x7c00u;
    if (size > 0x7f800000u)
        bits = 0x7e00u | (size >> 13 & 0x3ffu);
    return (uint16_t)(sign | bits);
}

static inline float bf16_value(uint16_t x)
{
    return float_of_bits((uint32_t)x << 16);
}

static inline uint16_t bf16_round(float x)
{
    uint32_t bits = float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
