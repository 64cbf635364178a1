/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm of f16 and bf16, in every combination with f32: the roundings' ends,
 * and one or more of all that gemm can do.
 */
#include "gemm_form.h"

#include <string.h>

/* For operands of 16 bits, in whichever dtype: c near its largest numbers (of
 * alpha 0, alpha is such), c and all else subnormal in f16, NaN. */
static const struct gemm_form forms_16[] = {
    {.m = 31, .n = 37, .k = 41, .batch = 1, .alpha = 1, .always = true},
    {.m = 40, .n = 72, .k = 64, .batch = 1, .alpha = 1, .always = true},
    {.m = 31, .n = 37, .k = 41, .batch = 1, .flags = TA, .alpha = 1},
    {.m = 36, .n = 40, .k = 44, .batch = 1, .flags = TA, .alpha = 1},
    {.m = 31, .n = 37, .k = 41, .batch = 1, .flags = TB, .alpha = 1},
    {.m = 36, .n = 40, .k = 44, .batch = 1, .flags = TB, .alpha = 1},
    {.m = 31, .n = 37, .k = 41, .batch = 1, .flags = TA | TB, .alpha = 1},
    {.m = 5,
     .n = 6,
     .k = 0,
     .batch = 2,
     .alpha = 1,
     .beta = 0.5,
     .bias = COLUMN,
     .activation = TANDEM_OP_RELU,
     .pad = {0, 0, 2},
     .always = true},
    {.m = 33,
     .n = 65,
     .k = 17,
     .batch = 1,
     .alpha = 0.75,
     .beta = -1,
     .bias = ROW,
     .pad = {5, 6, 7},
     .lead = 7,
     .always = true},
    {.m = 7,
     .n = 9,
     .k = 11,
     .batch = 5,
     .alpha = 1,
     .beta = 0.5,
     .bias = COLUMN,
     .activation = TANDEM_OP_RELU,
     .pad = {1, 2, 3},
     .lead = 5,
     .always = true},
    {.m = 7, .n = 9, .k = 11, .batch = 4, .alpha = 1, .repeat = 2},
    {.m = 16, .n = 16, .k = 16, .batch = 1, .alpha = 0, .beta = 0.25},
    {.m = 23,
     .n = 29,
     .k = 31,
     .batch = 1,
     .alpha = 0.3,
     .bias = COLUMN,
     .activation = TANDEM_OP_GELU},
    {.m = 23,
     .n = 29,
     .k = 31,
     .batch = 1,
     .alpha = 0.3,
     .beta = 1,
     .activation = TANDEM_OP_SWISH},
    {.m = 1, .n = 97, .k = 533, .batch = 1, .flags = TB, .alpha = 1},
    {.m = 97, .n = 1, .k = 533, .batch = 1, .alpha = 1},
    {.m = 12,
     .n = 13,
     .k = 14,
     .batch = 1,
     .alpha = 1,
     .special = true,
     .always = true},
    {.m = 31, .n = 37, .k = 41, .batch = 1, .alpha = NEAR_LARGEST,
     .always = true},
    {.m = 31,
     .n = 37,
     .k = 41,
     .batch = 1,
     .alpha = 0.25,
     .scale = 0x1p-8,
     .always = true},
    {.m = 31,
     .n = 37,
     .k = 41,
     .batch = 1,
     .alpha = 0x1p24,
     .scale = 0x1p-17,
     .always = true},
    {.m = 64, .n = 256, .k = 1100, .batch = 1, .alpha = 1, .full_only = true},
    {.m = 20, .n = 2100, .k = 1100, .batch = 1, .alpha = 1, .full_only = true},
    {.m = 1100,
     .n = 36,
     .k = 130,
     .batch = 2,
     .flags = TB,
     .alpha = 1,
     .beta = 1,
     .repeat = 2,
     .full_only = true},
};
#define FORM_16_COUNT (sizeof(forms_16) / sizeof(forms_16[0]))

static const struct {
    uint32_t dtype, c_dtype;
    bool always;
} pairs[] = {
    {TANDEM_F16, TANDEM_F16, true},   {TANDEM_BF16, TANDEM_BF16, true},
    {TANDEM_F16, TANDEM_F32, false},  {TANDEM_BF16, TANDEM_F32, false},
    {TANDEM_F32, TANDEM_F16, false},  {TANDEM_F32, TANDEM_BF16, false},
    {TANDEM_F16, TANDEM_BF16, false}, {TANDEM_BF16, TANDEM_F16, false},
};
#define PAIR_COUNT (sizeof(pairs) / sizeof(pairs[0]))

void gemm_16_run(struct suite *suite)
{
    const char *filter = suite->options->filter;
    bool full = suite->options->full;
    struct random choice;

    /* A part of a name that others have, too, stands for these others: where
     * kernels are compiled, these here take longer. */
    if (filter != NULL && strstr(filter, "f16") == NULL)
        return;
    random_seed(&choice, suite->options->seed, "gemm of 16 bits");
    for (uint32_t i = 0; i < PAIR_COUNT; i++) {
        for (uint32_t j = 0; j < FORM_16_COUNT; j++) {
            struct gemm_form form = forms_16[j];
            bool chosen = random_once_in(&choice, pairs[i].always ? 8 : 24);

            form.dtype = pairs[i].dtype;
            form.c_dtype = pairs[i].c_dtype;
            if (form.full_only && !full)
                continue;
            if (full || chosen || (pairs[i].always && form.always))
                gemm_form_run(suite, &form);
        }
        for (uint32_t j = 0; j < (full ? 30u : pairs[i].always); j++)
            gemm_random_run(suite, &choice, pairs[i].dtype, pairs[i].c_dtype);
    }
}
