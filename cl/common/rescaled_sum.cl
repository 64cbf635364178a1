/* SPDX-License-Identifier: Apache-2.0 */
/* Sums for reduce.cl and norm.cl whose partial sums may overflow or underflow
 * although the final result is in range.
 *
 * The first pass sums the row unscaled. If the sum is not finite, a second pass
 * sums the elements scaled by SCALE_DOWN. If a sum of squares or products is so
 * small that its terms are imprecise, the second pass scales the elements by
 * SCALE_UP. Ordinary elements need no second pass. */
#ifndef TANDEM_RESCALED_SUM_CL
#define TANDEM_RESCALED_SUM_CL

/* If x is the largest f32, (x * SCALE_DOWN)^2 is below 2^80. If x is the
 * smallest positive f32, (x * SCALE_UP)^2 is 2^-122. */
#define SCALE_LOG2 88
#define SCALE_UP 0x1p88f
#define SCALE_DOWN 0x1p-88f
/* Sums of at least this size are precise, even if each of 2^40 terms has an
 * error of 2^-126. */
#define MIN_EXACT_SUM 0x1p-64f

/* Returns 2^n for n from -126 to 127. */
static inline float power_of_two(int n)
{
    return as_float((uint)(n + 127) << 23);
}

/* Returns x * 2^n, rounded once. |x| must be in [1, 2), 0, infinite or NaN. */
static inline float scale_by_power(float x, int n)
{
    int clamped = clamp(n, -226, 227), partial_n = clamp(clamped, -100, 100);
    return x * power_of_two(partial_n) * power_of_two(clamped - partial_n);
}

/* Divides x by the power of two that brings |x| into [1, 2), and adds the
 * power's exponent to *n. Does nothing if x is 0, infinite or NaN. */
static inline float normalize_exponent(float x, int *n)
{
    if (fabs(x) < 0x1p-126f && x != 0.0f) {
        x *= 0x1p24f;
        *n -= 24;
    }
    uint bits = as_uint(x);
    uint field = bits >> 23 & 255;
    if (field - 1 >= 254)
        return x;
    *n += (int)field - 127;
    return as_float((bits & 0x807fffff) | 0x3f800000);
}

/* Returns x * y * z * 2^n, even if an intermediate product is out of range. */
static inline float multiply3_scaled(float x, float y, float z, int n)
{
    float a = normalize_exponent(x, &n), b = normalize_exponent(y, &n),
          c = normalize_exponent(z, &n);
    float ab = normalize_exponent(a * b, &n);
    float abc = normalize_exponent(ab * c, &n);
    return scale_by_power(abc, n);
}

#endif
