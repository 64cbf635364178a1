/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD conversions of f16 and bf16 rows to f32 and back. */
#include "config.h"

#include <string.h>

#include "cpu/simd/simd_kernels.h"
#include "cpu/simd/vector.h"

/* Converts the last, partial vector in a buffer that holds a full vector. */
#define WIDEN(name)                                                            \
    static void name##_widen(float *y, const uint16_t *x, int64_t n)           \
    {                                                                          \
        uint16_t part[LANES] = {0};                                            \
        float wide[LANES];                                                     \
        int64_t i = 0;                                                         \
        for (; i + LANES <= n; i += LANES)                                     \
            vf_store(y + i, vf_load_##name(x + i));                            \
        if (i == n)                                                            \
            return;                                                            \
        memcpy(part, x + i, (size_t)(n - i) * sizeof *x);                      \
        vf_store(wide, vf_load_##name(part));                                  \
        memcpy(y + i, wide, (size_t)(n - i) * sizeof *y);                      \
    }
#define NARROW(name)                                                           \
    static void name##_narrow(uint16_t *y, const float *x, int64_t n)          \
    {                                                                          \
        uint16_t part[LANES];                                                  \
        int64_t i = 0;                                                         \
        for (; i + LANES <= n; i += LANES)                                     \
            vf_store_##name(y + i, vf_load(x + i));                            \
        if (i == n)                                                            \
            return;                                                            \
        vf_store_##name(part, vf_load_part(x + i, n - i, vf_set(0)));          \
        memcpy(y + i, part, (size_t)(n - i) * sizeof *y);                      \
    }

WIDEN(f16)
WIDEN(bf16)
NARROW(f16)
NARROW(bf16)

void ISA(float16_kernels)(struct kernels *table)
{
    table->f16_widen = f16_widen;
    table->f16_narrow = f16_narrow;
    table->bf16_widen = bf16_widen;
    table->bf16_narrow = bf16_narrow;
}
