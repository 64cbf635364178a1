/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in plain C that the compiler vectorizes.  For each instruction
 * set, one file includes this header to compile the kernels for it.  Pure
 * functions, callable from any thread. */
#ifndef TANDEM_CPU_KERNELS_VECTORIZED_LOOPS_H
#define TANDEM_CPU_KERNELS_VECTORIZED_LOOPS_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/kernels/binary_rows.h"
#include "cpu/kernels/cast_element.h"
#ifndef TANDEM_SIMD_AVX512 /* AVX-512 uses the AVX2 row functions */
#include "cpu/kernels/integer_rows.h"
#endif

/* ---- element-wise operators that give bool ------------------------------ */

#ifndef TANDEM_SIMD_AVX512 /* AVX-512 uses the AVX2 row functions */
BINARY(equal, float, uint8_t, x == y)
BINARY(not_equal, float, uint8_t, x != y)
BINARY(less, float, uint8_t, x < y)
BINARY(less_equal, float, uint8_t, x <= y)
BINARY(greater, float, uint8_t, x > y)
BINARY(greater_equal, float, uint8_t, x >= y)
BINARY(and, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY(or, uint8_t, uint8_t, (x != 0) | (y != 0))
BINARY(xor, uint8_t, uint8_t, (x != 0) ^ (y != 0))

static void row_not(const struct row *row)
{
    const uint8_t *in = row->in[0];
    uint8_t *out = row->out[0];
    int64_t n = row->n;
    if (row->constants != 0)
        memset(out, *in == 0, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = in[i] == 0;
}

static void row_isnan(const struct row *row)
{
    const float *in = row->in[0];
    uint8_t *out = row->out[0];
    float x = *in;
    int64_t n = row->n;
    if (row->constants != 0)
        memset(out, x != x, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = in[i] != in[i];
}

/* An input beyond `low` or `high` is infinite.  A sign that is not detected has
 * the limit infinity. */
static void row_isinf(const struct row *row)
{
    const float *in = row->in[0], *f = row->params->f;
    uint8_t *out = row->out[0];
    float low = f[0] != 0 ? -FLT_MAX : -INFINITY;
    float high = f[1] != 0 ? FLT_MAX : INFINITY, x = *in;
    int64_t n = row->n;
    if (row->constants != 0)
        memset(out, x < low || x > high, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = (in[i] < low) | (in[i] > high);
}
#endif

/* ---- casts -------------------------------------------------------------- */

#define DENSE_CAST(from_name, from_type, to_name, to_type, expression)         \
    static void from_name##_##to_name(void *restrict to,                       \
                                      const void *restrict from, int64_t n)    \
    {                                                                          \
        const from_type *in = from;                                            \
        to_type *out = to;                                                     \
        for (int64_t i = 0; i < n; i++) {                                      \
            from_type x = in[i];                                               \
            out[i] = (to_type)(expression);                                    \
        }                                                                      \
    }

CASTS(DENSE_CAST)
DENSE_CAST(i64, int64_t, exact_bf16, uint16_t, number_round((float)x))

/* Casts i64 to bf16, by a faster loop if all integers fit in 24 bits. */
static void i64_any_bf16(void *to, const void *from, int64_t n)
{
    const int64_t *in = from;
    uint64_t large = 0;
    for (int64_t i = 0; i < n; i++)
        large |= ((uint64_t)in[i] + (1u << 24)) >> 25;
    (large != 0 ? i64_bf16 : i64_exact_bf16)(to, from, n);
}
#define i64_bf16 i64_any_bf16

static const dense_cast_fn casts[CAST_SOURCES][CAST_TARGETS] = CAST_TABLE;

static void loop_kernels(struct kernels *table)
{
#ifndef TANDEM_SIMD_AVX512
    row_fn *rows = table->rows;
    BOOL_ROWS(ROW_FILL)
    table->i32_rows = i32_rows;
    table->i64_rows = i64_rows;
#endif
    table->casts = casts;
}

#endif
