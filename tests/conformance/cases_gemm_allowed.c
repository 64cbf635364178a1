/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm of f32 where the caller allows TF32, or an error relative to the largest
 * elements of rows and columns: tiles' and slices' edges, and elements that are
 * not finite, tiny or huge.
 */
#include "gemm_form.h"

static const struct gemm_form forms[] = {
    {.m = 64, .n = 64, .k = 64, .batch = 1, .alpha = 1, .always = true},
    {.m = 31, .n = 37, .k = 41, .batch = 1, .alpha = 1, .always = true},
    {.m = 132, .n = 260, .k = 100, .batch = 1, .alpha = 1, .always = true},
    {.m = 132, .n = 260, .k = 100, .batch = 1, .flags = TA, .alpha = 1},
    {.m = 132, .n = 260, .k = 100, .batch = 1, .flags = TB, .alpha = 1},
    {.m = 132, .n = 260, .k = 100, .batch = 1, .flags = TA | TB, .alpha = 1},
    {.m = 133,
     .n = 131,
     .k = 301,
     .batch = 1,
     .flags = TB,
     .alpha = 0.75,
     .beta = -1,
     .bias = COLUMN,
     .activation = TANDEM_OP_RELU,
     .pad = {5, 6, 7},
     .lead = 7,
     .always = true},
    {.m = 140,
     .n = 72,
     .k = 300,
     .batch = 3,
     .alpha = 0.5,
     .beta = 1,
     .bias = ROW,
     .activation = TANDEM_OP_GELU,
     .pad = {4, 0, 8},
     .repeat = 2},
    {.m = 7,
     .n = 9,
     .k = 11,
     .batch = 4,
     .flags = TB,
     .alpha = 1,
     .repeat = 1,
     .always = true},
    {.m = 140,
     .n = 144,
     .k = 64,
     .batch = 1,
     .alpha = 1,
     .special = true,
     .always = true},
    {.m = 45, .n = 33, .k = 300, .batch = 1, .alpha = 1, .special = true},
    {.m = 40, .n = 44, .k = 300, .batch = 1, .alpha = 1, .scale = 1e17},
    {.m = 40, .n = 44, .k = 300, .batch = 1, .alpha = 1, .scale = 1e-18},
    {.m = 40, .n = 44, .k = 300, .batch = 1, .alpha = 1, .scale = 1e-40},
    {.m = 300,
     .n = 520,
     .k = 1000,
     .batch = 1,
     .flags = TB,
     .alpha = 1,
     .full_only = true},
    {.m = 1024,
     .n = 1024,
     .k = 1024,
     .batch = 1,
     .alpha = 1,
     .full_only = true},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

void gemm_allowed_run(struct suite *suite)
{
    static const uint32_t flags[] = {TANDEM_GEMM_ALLOW_TF32,
                                     TANDEM_GEMM_ALLOW_ROW_SCALED};
    bool full = suite->options->full;

    for (uint32_t i = 0; i < FORM_COUNT * 2; i++) {
        struct gemm_form form = forms[i / 2];

        form.flags |= flags[i % 2];
        if (full || (!form.full_only &&
                     (form.always || suite->options->filter != NULL)))
            gemm_form_run(suite, &form);
    }
}
