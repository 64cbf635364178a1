/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators on i32 and i64, in plain C that the compiler can
 * vectorize.  Results wrap around.  Pure functions, callable from any thread.
 */
#ifndef TANDEM_CPU_KERNELS_INTEGER_ROWS_H
#define TANDEM_CPU_KERNELS_INTEGER_ROWS_H

#include "cpu/kernels/binary_rows.h"

/* Defines row_<name>, which computes `expression` of the input x. */
#define INTEGER_UNARY(name, type, expression)                                  \
    static void row_##name(const struct row *row)                              \
    {                                                                          \
        const type *in = row->in[0];                                           \
        type *out = row->out[0];                                               \
        int64_t n = row->n;                                                    \
        for (int64_t i = 0; i < n; i++) {                                      \
            type x = in[i];                                                    \
            out[i] = (type)(expression);                                       \
        }                                                                      \
    }

/* Defines row_<name>_where. */
#define INTEGER_WHERE(name, type)                                              \
    static void row_##name##_where(const struct row *row)                      \
    {                                                                          \
        const uint8_t *condition = row->in[0];                                 \
        const type *a = row->in[1], *b = row->in[2];                           \
        type *out = row->out[0];                                               \
        int64_t step = (row->constants & 1u) == 0;                             \
        int64_t a_step = (row->constants & 2u) == 0;                           \
        int64_t b_step = (row->constants & 4u) == 0, n = row->n;               \
        for (int64_t i = 0; row->constants == 0 && i < n; i++) {               \
            type x = a[i], y = b[i];                                           \
            out[i] = condition[i] != 0 ? x : y;                                \
        }                                                                      \
        for (int64_t i = 0; row->constants != 0 && i < n; i++) {               \
            type x = a[i * a_step], y = b[i * b_step];                         \
            out[i] = condition[i * step] != 0 ? x : y;                         \
        }                                                                      \
    }

/* Defines the rows of a type.  The processor traps if it divides by 0, or the
 * smallest integer by -1, so these divisors are replaced by 1. */
#define INTEGER_ROWS(name, type, unsigned_type)                                \
    static inline type name##_negate(type x)                                   \
    {                                                                          \
        return (type)(0 - (unsigned_type)x);                                   \
    }                                                                          \
    static inline type name##_divisor(type b)                                  \
    {                                                                          \
        return b == 0 || b == -1 ? 1 : b;                                      \
    }                                                                          \
    static inline type name##_divide(type a, type b)                           \
    {                                                                          \
        type quotient = a / name##_divisor(b);                                 \
        return b == 0 ? 0 : b == -1 ? name##_negate(a) : quotient;             \
    }                                                                          \
    static inline type name##_floored_mod(type a, type b)                      \
    {                                                                          \
        type r = a % name##_divisor(b);                                        \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                       \
    }                                                                          \
    INTEGER_UNARY(name##_neg, type, name##_negate(x))                          \
    INTEGER_UNARY(name##_abs, type, x < 0 ? name##_negate(x) : x)              \
    INTEGER_UNARY(name##_sign, type, (x > 0) - (x < 0))                        \
    BINARY(name##_add, type, type, (unsigned_type)x + (unsigned_type)y)        \
    BINARY(name##_sub, type, type, (unsigned_type)x - (unsigned_type)y)        \
    BINARY(name##_mul, type, type, (unsigned_type)x *(unsigned_type)y)         \
    BINARY(name##_div, type, type, name##_divide(x, y))                        \
    BINARY(name##_mod, type, type, name##_floored_mod(x, y))                   \
    BINARY(name##_fmod, type, type, x % name##_divisor(y))                     \
    BINARY(name##_min, type, type, x < y ? x : y)                              \
    BINARY(name##_max, type, type, x > y ? x : y)                              \
    BINARY(name##_equal, type, uint8_t, x == y)                                \
    BINARY(name##_not_equal, type, uint8_t, x != y)                            \
    BINARY(name##_less, type, uint8_t, x < y)                                  \
    BINARY(name##_less_equal, type, uint8_t, x <= y)                           \
    BINARY(name##_greater, type, uint8_t, x > y)                               \
    BINARY(name##_greater_equal, type, uint8_t, x >= y)                        \
    INTEGER_WHERE(name, type)                                                  \
    static const row_fn name##_rows[TANDEM_OP_ID_END] = {                      \
        [TANDEM_OP_NEG] = row_##name##_neg,                                    \
        [TANDEM_OP_ABS] = row_##name##_abs,                                    \
        [TANDEM_OP_SIGN] = row_##name##_sign,                                  \
        [TANDEM_OP_ADD] = row_##name##_add,                                    \
        [TANDEM_OP_SUB] = row_##name##_sub,                                    \
        [TANDEM_OP_MUL] = row_##name##_mul,                                    \
        [TANDEM_OP_DIV] = row_##name##_div,                                    \
        [TANDEM_OP_MOD] = row_##name##_mod,                                    \
        [TANDEM_OP_FMOD] = row_##name##_fmod,                                  \
        [TANDEM_OP_MIN] = row_##name##_min,                                    \
        [TANDEM_OP_MAX] = row_##name##_max,                                    \
        [TANDEM_OP_EQUAL] = row_##name##_equal,                                \
        [TANDEM_OP_NOT_EQUAL] = row_##name##_not_equal,                        \
        [TANDEM_OP_LESS] = row_##name##_less,                                  \
        [TANDEM_OP_LESS_EQUAL] = row_##name##_less_equal,                      \
        [TANDEM_OP_GREATER] = row_##name##_greater,                            \
        [TANDEM_OP_GREATER_EQUAL] = row_##name##_greater_equal,                \
        [TANDEM_OP_WHERE] = row_##name##_where};

INTEGER_ROWS(i32, int32_t, uint32_t)
INTEGER_ROWS(i64, int64_t, uint64_t)

#endif
