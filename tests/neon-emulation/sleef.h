/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SLEEF's functions for NEON, computed lane by lane with the C library. Only
 * the plugin's files are tested.
 */
#ifndef TANDEM_TESTS_ARM_SLEEF_H
#define TANDEM_TESTS_ARM_SLEEF_H

#include <arm_neon.h>
#include <math.h>

#define LANEWISE(name)                                                         \
    static inline float32x4_t Sleef_##name##f4_u10advsimd(float32x4_t x)       \
    {                                                                          \
        float lanes[4];                                                        \
        vst1q_f32(lanes, x);                                                   \
        for (int i = 0; i < 4; i++)                                            \
            lanes[i] = name##f(lanes[i]);                                      \
        return vld1q_f32(lanes);                                               \
    }

LANEWISE(exp)
LANEWISE(expm1)
LANEWISE(log)
LANEWISE(log1p)
LANEWISE(sin)
LANEWISE(cos)
LANEWISE(tan)
LANEWISE(asin)
LANEWISE(acos)
LANEWISE(atan)
LANEWISE(sinh)
LANEWISE(cosh)
LANEWISE(asinh)
LANEWISE(acosh)
LANEWISE(atanh)
LANEWISE(exp2)
LANEWISE(log2)

static inline float32x4_t Sleef_powf4_u10advsimd(float32x4_t a, float32x4_t b)
{
    float x[4], y[4];
    vst1q_f32(x, a);
    vst1q_f32(y, b);
    for (int i = 0; i < 4; i++)
        x[i] = powf(x[i], y[i]);
    return vld1q_f32(x);
}

#endif
