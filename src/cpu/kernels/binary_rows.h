/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators with two inputs, in plain C that the compiler can
 * vectorize.  Each input can be a single element that repeats. */
#ifndef TANDEM_CPU_KERNELS_BINARY_ROWS_H
#define TANDEM_CPU_KERNELS_BINARY_ROWS_H

#include "cpu/kernels/kernel_table.h"

#define BINARY_LOOP(out_type, a_value, b_value, expression)                    \
    for (int64_t i = 0; i < n; i++) {                                          \
        x = a_value;                                                           \
        y = b_value;                                                           \
        out[i] = (out_type)(expression);                                       \
    }

/* Defines row_<name>, which computes `expression` of the inputs x and y. */
#define BINARY(name, type, out_type, expression)                               \
    static void row_##name(const struct row *row)                              \
    {                                                                          \
        const type *a = row->in[0], *b = row->in[1];                           \
        out_type *out = row->out[0];                                           \
        type x, y, a0 = *a, b0 = *b;                                           \
        int64_t n = row->n;                                                    \
        switch (row->constants & 3u) {                                         \
        case 0:                                                                \
            BINARY_LOOP(out_type, a[i], b[i], expression)                      \
            break;                                                             \
        case 1:                                                                \
            BINARY_LOOP(out_type, a0, b[i], expression)                        \
            break;                                                             \
        case 2:                                                                \
            BINARY_LOOP(out_type, a[i], b0, expression)                        \
            break;                                                             \
        default:                                                               \
            BINARY_LOOP(out_type, a0, b0, expression)                          \
        }                                                                      \
    }

#endif
