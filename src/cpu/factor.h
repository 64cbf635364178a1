/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of f32 in f64 whose exponents leave f64's range on the way: a number
 * and an exponent of 2.  Pure functions.
 */
#ifndef TANDEM_CPU_FACTOR_H
#define TANDEM_CPU_FACTOR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* So many factors, subnormal ones included, keep within f64's range what is
 * from 2^-FACTOR_RANGE to 2^FACTOR_RANGE. */
#define FACTORS 6
#define FACTOR_RANGE 100
/* Exponents end here, so that a float has all. */
#define FACTOR_MOST_EXPONENT 0x1p24f

static inline uint64_t factor_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Whether x is outside of that range; 0, what is infinite, and NaN are. */
static inline bool factor_outside(double x)
{
    return (factor_bits(x) >> 52 & 2047) - (1023 - FACTOR_RANGE) >
           2 * FACTOR_RANGE;
}

/* x as a number in [1, 2) whose exponent is added to *exponent; 0, infinities
 * and NaN stay. */
static inline double factor_normalized(double x, float *exponent)
{
    int n;
    if (x == 0 || !isfinite(x))
        return x;
    x = frexp(x, &n) * 2;
    *exponent += (float)(n - 1);
    *exponent =
        fminf(fmaxf(*exponent, -FACTOR_MOST_EXPONENT), FACTOR_MOST_EXPONENT);
    return x;
}

/* The product itself, x being in range. */
static inline double factor_value(double x, float exponent)
{
    return ldexp(x, (int)fminf(fmaxf(exponent, -4096), 4096));
}

#endif
