/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums whose partial sums leave the range of f32 though the result does not:
 * what reduce.cl and norm.cl share.
 *
 * A row is summed as ever.  Where its sum is not finite it is summed once more,
 * with elements times STEP_DOWN, and where a sum of squares or of products is
 * so small that its terms have lost digits, times STEP_UP; ordinary elements
 * never come to that.  Parts of a row carry the steps by which their elements
 * were divided: 1, 0 or -1.
 */
#ifndef TANDEM_RESCALED_SUM_CL
#define TANDEM_RESCALED_SUM_CL


/* Squares of the largest f32 times STEP_DOWN are below 2^80, of the smallest
 * one times STEP_UP above 2^-122. */
#define STEP_UP 0x1p88f
#define STEP_DOWN 0x1p-88f
/* Terms of a sum from here on are too large to have lost digits that count:
 * 2^40 of them may each be off by 2^-126. */
#define SMALL_SUM 0x1p-64f

/* 2^n, n from -126 to 127. */
static inline float power_of_two(int n)
{
    return as_float((uint)(n + 127) << 23);
}

/* x 2^n, rounded once: |x| is in [1, 2), 0, infinite or NaN. */
static inline float scaled(float x, int n)
{
    int all = clamp(n, -226, 227), most = clamp(all, -100, 100);
    return x * power_of_two(most) * power_of_two(all - most);
}

/* Returns x divided by the power of two that brings |x| into [1, 2), and adds
 * the exponent of that power to *n.  Returns 0, infinities and NaN unchanged,
 * and leaves *n as it is for them. */
static inline float normalized(float x, int *n)
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

/* x y z 2^n, whatever the size of a product of two. */
static inline float product_of(float x, float y, float z, int n)
{
    float a = normalized(x, &n), b = normalized(y, &n), c = normalized(z, &n);
    float ab = normalized(a * b, &n);
    float abc = normalized(ab * c, &n);
    return scaled(abc, n);
}

#endif
